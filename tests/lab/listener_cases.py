# SPDX-License-Identifier: MIT
"""What other programs listen on, where the agent sees it; and a jail whose network changes while it runs."""

import os
import socket
import subprocess

import bus
import machine
from bus_cases import Held
from case import SANDBOX, equal, holds, processes, test, wait_for
from fault_cases import Leavings
from machine import ALICE, PROBE, ROOT

BOTH = (ALICE, ROOT)


class Listener:
    """A socket of that user's, listening at path."""

    def __init__(self, path, user):
        directory = os.path.dirname(path)
        machine.write(f"{directory}/beside", "", 0o600, user)
        self.path = path
        if os.path.lexists(path):
            os.unlink(path)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        os.chown(path, user.uid, user.gid)
        os.chmod(path, 0o700)
        self.socket.listen(8)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        if os.path.lexists(self.path):
            os.unlink(self.path)


def connect(path):
    return f"{PROBE} connect {path}"


@test(60, needs="bus")
def sockets_in_shown_directories_are_covered(lab):
    """The person's own sockets in the workspace and in what is brought back of the home."""
    for user in BOTH:
        workspace = lab.workspace(user, "listening")
        lab.install_agent(user)
        for path in (f"{workspace}/run/dev.sock", f"{user.home}/.cache/tool/s", f"{user.home}/.local/share/uv/tool/s",
                     f"{user.home}/.claude/s", f"{user.home}/.claude/skills/s"):
            with Listener(path, user):
                outside = lab.run([PROBE, "connect", path], user)
                holds(outside.out.rstrip().endswith(b"connected"), f"{user}: outside it answers: {outside!r}")
                inside = lab.run(["/usr/local/bin/claude", "connect", path], user, cwd=workspace) \
                    if "/.claude/" in path else lab.shell(connect(path), user, cwd=workspace)
                holds(b"connected" not in inside.out, f"{user}: {path} answers inside: {inside!r}")
                holds(inside.out, f"{user}: the probe said nothing: {inside!r}")
                equal(f"programs outside listen on {path} in the workspace".encode() in inside.err, path.startswith(workspace),
                      f"{user}: the launch names it: {inside.err!r}")
            holds("beside" in os.listdir(os.path.dirname(path)), f"{path}: what is beside it stays")
            holds(not os.path.lexists(path), "nothing lies in its place afterwards")


@test(60, needs="bus")
def sockets_that_stay_hidden_do_not_count(lab):
    """However many programs listen in the rest of the home: what is not seen needs no cover."""
    listeners = [Listener(f"{ALICE.home}/elsewhere/{n}", ALICE) for n in range(80)]
    try:
        lab.shell("true").ok()
    finally:
        for listener in listeners:
            listener.__exit__()
    workspace = lab.workspace(ALICE, "many")
    listeners = [Listener(f"{workspace}/{n}", ALICE) for n in range(80)]
    try:
        lab.shell("true", cwd=workspace).refused(125, "sockets", f"{workspace}/")
    finally:
        for listener in listeners:
            listener.__exit__()
    lab.shell("true").ok()


def before_bwrap(lab, command, times=1, after=":", user=ROOT):
    """
    A bwrap before which the shell's command is run, so many times; after: when it has ended. Outside, where nothing is
    held in its place or read-only. Return: the file with a line for each time.
    """
    lab.hide("/usr/bin/bwrap")
    lab.undo.append(lambda: os.unlink("/usr/bin/bwrap"))
    count, ask, answer = "/srv/bwrap-count", "/srv/bwrap-ask", "/srv/bwrap-answer"
    machine.write(count, "", 0o666)
    lab.undo.append(lambda: os.unlink(count))
    for fifo in (ask, answer):
        os.mkfifo(fifo)
        os.chmod(fifo, 0o666)
        lab.undo.append(lambda fifo=fifo: os.unlink(fifo))
    outside = lab.start(["/bin/sh", "-c", f"""while read what < {ask}; do
        [ $what = after ] || echo x >> {count}
        [ $(wc -l < {count}) -gt {times} ] || if [ $what = after ]; then {after}; else {command}; fi
        echo y > {answer}
        done"""], user, cwd="/")
    lab.undo.append(outside.wait)
    lab.undo.append(outside.kill)
    machine.write("/usr/bin/bwrap", "#!/bin/sh\n"
                  f"echo before > {ask}; read y < {answer}\n"
                  + ("exec /usr/bin/bwrap.hidden-by-a-test \"$@\"\n" if after == ":" else
                     f"/usr/bin/bwrap.hidden-by-a-test \"$@\"; s=$?; echo after > {ask}; read y < {answer}; exit $s\n"), 0o755)
    return count


def times_of(count):
    with open(count, encoding="ascii") as f:
        return len(f.readlines())


@test(60, needs="bus")
def sockets_may_go_between_plan_and_mount(lab):
    """Planned again once, where the directory is read-only; where it is not, no file is left in the place."""
    leavings = Leavings(lab)
    for user in BOTH:
        os.makedirs("/srv/vanish", exist_ok=True)
        path = f"/srv/vanish/{user}/s"
        with Listener(path, user):
            os.chown(os.path.dirname(path), user.uid, user.gid)
            count = before_bwrap(lab, f"rm -f {path}")
            equal(lab.shell("echo fine; exit 5", user).out, b"fine\n", str(user))
            equal(times_of(count), 2, "bwrap ran twice")
            lab.restore()
        leavings.nothing_left(f"{user}: a socket went")
        workspace = lab.workspace(user, "vanishing")
        path = f"{workspace}/s"
        with Listener(path, user):
            before_bwrap(lab, f"rm -f {path}")
            equal(lab.shell("true", user, cwd=workspace).status, 0)
            holds(not os.path.lexists(path), f"{user}: {path} is there: an empty file of bwrap's")
            lab.restore()
        leavings.nothing_left(f"{user}: a socket of the workspace went")


@test(60, needs="bus")
def bwrap_that_ends_is_not_tried_again_without_a_cause(lab):
    tries = f"{lab.workspace(ALICE)}/tries"      # writable in the jail, and so for whatever makes it
    lab.replace("/usr/bin/bwrap", f"#!/bin/sh\necho x >> {tries}\necho broken for a test >&2\nexit 1\n", 0o755)
    lab.shell("true").refused(125, "bwrap", "broken for a test")
    equal(times_of(tries), 1)
    os.unlink(tries)


def jail_init(user):
    """The pid of that user's one init, in a network namespace of its own."""
    own = os.readlink("/proc/self/ns/net")

    def look():
        found = []
        for pid, text in processes().items():
            try:
                if text == "/usr/libexec/claude-sandbox/init" and os.readlink(f"/proc/{pid}/ns/net") != own \
                        and os.stat(f"/proc/{pid}").st_uid in (user.uid, 0):
                    found.append(pid)
            except OSError:                            # it has ended since processes() looked
                pass
        return found[0] if len(found) == 1 else None
    return wait_for(look, f"one init of {user}")


def change(pid, *words):
    subprocess.run(["/usr/bin/nsenter", "-t", str(pid), "-n", "/usr/sbin/ip", *words], check=True, stdin=subprocess.DEVNULL)


CHANGES = {
    "a route": ("route", "add", "10.7.0.0/16", "dev", "lo"),
    "a denial that goes": ("route", "del", "prohibit", "10.0.0.0/8"),
    "an address": ("addr", "add", "10.9.9.9/32", "dev", "lo"),
    "a device": ("link", "add", "other0", "type", "veth"),
    "a rule": ("rule", "add", "from", "all", "lookup", "77"),
}


@test(120, needs="bus")
def network_that_changes_ends_the_session_and_says_why(lab):
    """Last of all, on the terminal that was given back; never with the status of a success."""
    for user in BOTH:
        for name, words in CHANGES.items():
            mark = len(bus.Bus.log())
            with Held(lab, user, script="trap 'exit 0' HUP TERM; echo ready; read x; exit 0") as held:
                change(jail_init(user), *words)
                status = held.process.wait(10)
                err = held.process.stderr.read().decode()
            equal(status, -9, f"{user}: {name}: {err!r}")
            lines = err.splitlines()
            holds(len(lines) == 1 and lines[0].startswith("claude-sandbox: the session was ended: its network"),
                  f"{user}: {name}: {err!r}")
            wait_for(lambda: not lab.sessions(), "nothing of it stays")
            log = bus.Bus.log()[mark:]
            holds(any("why its agent ended" in line and held.id in line for line in log.splitlines()), f"{name}: {log}")


@test(60, needs="bus")
def network_that_changes_under_a_terminal(lab):
    with lab.terminal([SANDBOX, "shell", "-c", "stty raw -echo; printf '\\033[?1049h\\033[?2004hready'; exec tail -f /dev/null"]) \
            as terminal:
        before = terminal.modes
        terminal.expect("ready")
        change(jail_init(ALICE), *CHANGES["a device"])
        terminal.expect("\x1b[?1049l")
        seen = terminal.expect("changes networks")
        holds(b"\nclaude-sandbox: " in seen or seen.startswith(b"claude-sandbox: ") or b"claude-sandbox: the session" in seen,
              repr(seen))
        equal(terminal.wait(), -9)
        equal(terminal.current_modes(), before, "the terminal is as it was")
