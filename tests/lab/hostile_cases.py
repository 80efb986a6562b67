# SPDX-License-Identifier: MIT
"""Ways out that were found once: each stays shut."""

import os
import socket
import subprocess

from case import CLAUDE, SANDBOX, equal, holds, test
from machine import ALICE, ROOT
from network import ECHO_PORT, HOST, LOOPBACK, NEIGHBOUR, PUBLIC


@test(needs="bus")
def kernel_settings_stay(lab):
    """uid 0 needs no capability for most of /proc/sys; core_pattern names a program that the kernel runs as root."""
    script = (
        "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/swappiness"
        " /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/disable_ipv6 /proc/sys/fs/suid_dumpable; do"
        "  [ -e $f ] || continue; IFS= read -r v <$f; { printf '%s\\n' \"$v\" >$f; } 2>/dev/null && echo \"wrote $f\";"
        " done; echo tried")
    for user in (ROOT, ALICE):
        equal(lab.shell(script, user).ok().out, b"tried\n", str(user))


@test(needs="bus")
def repositories_of_other_projects_stay(lab):
    """An agent makes a git directory of its own, whose file commondir names another project's repository."""
    work, other = lab.workspace(ALICE, "forged"), lab.workspace(ALICE, "other")
    lab.run(["/usr/bin/git", "init", "-q", other], ALICE).ok()
    cache = f"{ALICE.home}/.cache"
    if not os.path.isdir(cache):
        os.mkdir(cache)
        os.chown(cache, ALICE.uid, ALICE.gid)
    first = (
        f"mkdir -p ~/.cache/evil && cd ~/.cache/evil && echo 'ref: refs/heads/main' >HEAD && echo {other}/.git >commondir"
        f" && echo {work}/.git >gitdir && echo 'gitdir: {cache}/evil' >{work}/.git")
    lab.shell(first, cwd=work).ok()
    second = lab.shell(f"ls -d {other}; touch {other}/.git/hooks/post-commit; echo tried", cwd=work)
    equal((second.status, second.out), (0, b"tried\n"))
    holds(b"git does not work inside" in second.err, f"no warning: {second!r}")
    holds(not os.path.exists(f"{other}/.git/hooks/post-commit"), "a hook was planted")


@test(needs="bus")
def keyrings_stay(lab):
    """A uid's keyrings are the same in every namespace."""
    lab.install_agent(ALICE)
    equal(lab.run([CLAUDE, "keys"], ALICE).ok().out.split(), [b"38"] * 3)      # ENOSYS


@test(needs="bus")
def what_is_hidden_cannot_be_made(lab):
    """A hidden directory that does not exist is no place for an agent's own, and leaves nothing behind."""
    share = f"{ALICE.home}/.local/share"
    subprocess.run(["/usr/bin/install", "-d", "-o", str(ALICE.uid), "-g", str(ALICE.gid), f"{ALICE.home}/.local", share],
                   check=True)
    before = sorted(os.listdir(share))
    lab.shell("mkdir -p ~/.local/share/bash-completion/completions && echo 'touch ~/PWNED' "
              ">~/.local/share/bash-completion/completions/git; mkdir -p ~/.local/share/fish/vendor_conf.d; true").ok()
    equal(sorted(os.listdir(share)), before)


@test(needs="bus")
def squatted_temp_root_costs_no_launch(lab):
    """Any user can be first in /var/tmp."""
    path = "/var/tmp/claude-agent"
    subprocess.run(["/bin/rm", "-rf", path], check=True)
    os.symlink("/tmp", path)
    try:
        lab.install_agent(ALICE)
        result = lab.run([CLAUDE, "environment"], ALICE)
        equal(result.status, 0, repr(result))
        holds(b"temporary files" in result.err and b"CLAUDE_CODE_TMPDIR" not in result.out, repr(result))
    finally:
        os.unlink(path)


# Inside: one datagram out and its answer back, so that pasta has opened the port on the host; then whatever comes.
LISTENER = f"""
import select, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 8125))
s.sendto(b"hello", ("{PUBLIC}", {ECHO_PORT}))
select.select([s], [], [], 5)[0] or sys.exit("no answer")
s.recvfrom(100)
print("ready", flush=True)
sys.stdin.readline()
s.sendto(b"hello", ("{PUBLIC}", {ECHO_PORT}))
while True:
    select.select([s], [], [], 5)[0] or sys.exit("no second answer")
    data, sender = s.recvfrom(100)
    if sender[0] == "{PUBLIC}":
        break
    print("got", data, sender, flush=True)
while select.select([s], [], [], 0)[0]:
    print("got", *s.recvfrom(100), flush=True)
"""


@test(needs="bus")
def nobody_talks_to_an_agent_by_its_ports(lab):
    """A port that an agent sends from is opened on the host; denied senders stay denied that way round too."""
    for user in (ALICE, ROOT):
        agent = lab.start([SANDBOX, "shell", "-c", "exec /usr/bin/python3 -c \"$0\"", LISTENER], user, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            equal(agent.stdout.readline(), b"ready\n", str(user))
            sender = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'secret', ('%s', 8125))"
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
                for to in (HOST, LOOPBACK):
                    own.sendto(b"secret of the host", (to, 8125))
            subprocess.run(["/usr/bin/nsenter", "-t", str(lab.network.inet.process), "-n", "/usr/bin/python3", "-c",
                            sender % HOST], check=True, timeout=10)
            # pasta hands datagrams on in order: with the answer to a second one, what came before it has been seen
            out, err = agent.communicate(b"look\n", timeout=10)
            equal((agent.returncode, out), (0, b""), f"{user}: {err!r}; from {NEIGHBOUR} or the host")
        finally:
            if agent.poll() is None:
                agent.kill()
                agent.wait()
