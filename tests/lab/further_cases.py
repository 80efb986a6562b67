# SPDX-License-Identifier: MIT
"""Descriptors above 2: pipes and files go along at their numbers, what leads further does not."""

import json
import os
import socket

from case import ALICE, CLAUDE, SANDBOX, equal, has, holds, test, wait_for
from conform import BOTH, STAND_IN, conform

# a shell's own are close-on-exec
OPEN = "ls -l /proc/self/fd | awk '$9 > 2 {print $9, $1}' | grep -v ' lr-x.*proc'"
NUMBERS = "cd /proc/$$/fd && echo *"

LINES = (
    "claude exec cat <(echo one) <(echo two)",
    "claude exec sh -c 'cat <&9; echo $?' 9< <(echo nine)",
    "claude exec sh -c 'echo up >&8' 8> >(tr a-z A-Z >up); until [ -s up ]; do :; done; cat up",
    "claude exec sh -c 'cat <&3' 3<<<'from a string'",
    "claude exec sh -c 'cat <&200 <&199' 200<held 199<other",
    "claude exec sh -c 'cat /dev/fd/7; cat <&7' 7<held",
    "{ read -u 5 line; claude exec cat /dev/fd/5 /proc/self/fd/5; } 5<held",
    "claude exec sh -c 'echo more >&6' 6>>written; cat written",
    "claude exec sh -c 'read a <&6; echo $a; echo end >&6' 6<>both; cat both",
    "exec 9>lock; flock 9; claude exec true; flock -n lock true; echo $?; exec 9>&-",
    "claude exec sh -c 'cat <&4' 4<held 4<&-; echo $?",
    "ulimit -Sn 100; claude exec sh -c 'ulimit -n; cat <&150' 150<held; ulimit -Sn 1024",
    "claude exec sh -c '" + NUMBERS + "' 3<held 11<held 63<held 255<held",
    "claude exec sh -c '" + NUMBERS + "' 3<held 4<held 5<held 6<held 7<held 8<held 9<held 10<held 11<held 12<held 13<held 14<held 15<held",
    "claude exec bash -c 'cat <&22; cat <&4; cat <&5; cat <&6; cat <&9' 4< <(echo 4) 5< <(echo 5) 6< <(echo 6) 9< <(echo 9) 22< <(echo 22)",
)


@conform(users=BOTH, of=tuple(range(len(LINES))))
def a_line_of_shell(side, number):
    for name, text in (("held", "first\nsecond\n"), ("other", "else\n"), ("both", "in\n"), ("written", "was\n"), ("lock", "")):
        path = f"{side.workspace}/{name}"
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chown(path, side.user.uid, side.user.gid)
    with side.shell() as shell:
        return shell.do(LINES[number]), shell.exit_status()


@conform()
def the_end_of_a_pipe(side):
    """Whoever reads what the agent writes sees its end when the agent closes it, not when it goes."""
    reader, writer = os.pipe()
    process = side.start("exec", "bash", "-c", f"echo said >&{writer}; exec {writer}>&-; read x", stdin=-1, stdout=-1,
                         pass_fds=[writer])
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read()
    running = process.poll() is None
    process.stdin.write(b"go\n")
    process.stdin.close()
    return said, running, process.wait(20)


def kept(lab, script, fds, user=ALICE, what=NUMBERS):
    """Run the agent with those descriptors left open, and nothing else above 2."""
    return lab.run([CLAUDE, "exec", "sh", "-c", what + script], user, pass_fds=fds)


@test(needs="bus")
def what_leads_further_stays_outside(lab):
    """Sockets, directories, devices, terminals, paths, epoll and files of the kernel: closed inside, without a word."""
    lab.install_agent(ALICE, source=STAND_IN)
    workspace = lab.workspace(ALICE)
    one, other = socket.socketpair()
    server = socket.socket()
    fds = [one.fileno(), other.fileno(), server.fileno(), os.open(workspace, os.O_RDONLY), os.open(workspace, os.O_PATH),
           os.open("/dev/null", os.O_RDWR), os.open("/dev/tty0" if os.path.exists("/dev/tty0") else "/dev/zero", os.O_RDONLY),
           os.open("/etc/passwd", os.O_PATH), os.open("/proc/self/status", os.O_RDONLY), os.open("/proc/self/ns/net", os.O_RDONLY),
           os.epoll_create() if hasattr(os, "epoll_create") else os.eventfd(0), *os.openpty()]
    try:
        result = kept(lab, "", fds)
        equal((result.status, result.out.split()[:3], result.err), (0, [b"0", b"1", b"2"], b""))
        holds(not set(map(int, result.out.split())) & set(fds), result.out)
    finally:
        for fd in fds[3:]:
            os.close(fd)
        for thing in (one, other, server):
            thing.close()


@test(needs="bus")
def a_file_gives_what_was_passed(lab):
    """One that was opened for reading cannot be opened again and changed, nor its mode."""
    lab.install_agent(ALICE, source=STAND_IN)
    path = f"{lab.workspace(ALICE, 'elsewhere')}/notes"
    with open(path, "w", encoding="utf-8") as f:
        f.write("kept\n")
    os.chown(path, ALICE.uid, ALICE.gid)
    fd = os.open(path, os.O_RDONLY)
    try:
        result = kept(lab, f"cat /proc/self/fd/{fd}; echo bad >/proc/self/fd/{fd}; true >/dev/fd/{fd}; chmod 777 /proc/self/fd/{fd}; "
                           f"echo bad >>/proc/self/fd/{fd}; exit 0", [fd], what="")
        equal((result.status, result.out), (0, b"kept\n"))
        with open(path, encoding="utf-8") as f:
            equal(f.read(), "kept\n")
        equal(os.stat(path).st_mode & 0o777, 0o644)
    finally:
        os.close(fd)


@test(needs="bus")
def too_much_is_said(lab):
    """Thirteen go along; a file that is too large for a copy does not."""
    lab.install_agent(ALICE, source=STAND_IN)
    pipes = [fd for _ in range(8) for fd in os.pipe()]
    large = f"{lab.workspace(ALICE)}/large"
    with open(large, "wb") as f:
        f.truncate((16 << 20) + 1)
    os.chown(large, ALICE.uid, ALICE.gid)
    fd = os.open(large, os.O_RDONLY)
    try:
        result = kept(lab, "", pipes)
        has(result.err, b"claude-sandbox: 3 open files and pipes do not go to the agent: 13 go along")
        numbers = set(map(int, result.out.split()))
        holds(numbers >= set(sorted(pipes)[:13]) and not numbers & set(sorted(pipes)[13:]), (numbers, pipes))
        result = kept(lab, "", [fd])
        has(result.err, b"descriptor %d, a file opened for reading, does not go to the agent: File too large" % fd)
        holds(fd not in map(int, result.out.split()), result.out)
    finally:
        for one in pipes + [fd]:
            os.close(one)


@test(needs="bus")
def exposure_names_the_file(lab):
    """A row for each file, with what can be done with it."""
    lab.install_agent(ALICE, source=STAND_IN)
    path = f"{lab.workspace(ALICE, 'elsewhere')}/log"
    with open(path, "w", encoding="utf-8"):
        pass
    os.chown(path, ALICE.uid, ALICE.gid)
    fd = os.open(path, os.O_WRONLY)
    process = lab.start([CLAUDE, "exec", "cat"], pass_fds=[fd], stdin=-1, stdout=-1)
    try:
        process.stdin.write(b"here\n")
        process.stdin.flush()
        equal(process.stdout.readline(), b"here\n")
        name = wait_for(lab.sessions, "the session")[0]
        rows = json.loads(lab.run([SANDBOX, "exposure", "--json", name]).ok().out)["paths"]
        rows = [row for row in rows if row["kind"] == "descriptor" and row["path"] == path]
        equal([(row["mode"], row["origin"]) for row in rows], [("rw", "caller")])
        has(rows[0]["reason"], "above 2")
    finally:
        os.close(fd)
        process.stdin.close()
        process.stdout.close()
        process.wait()
