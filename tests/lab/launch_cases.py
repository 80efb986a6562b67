# SPDX-License-Identifier: MIT
"""`claude` and `claude-sandbox shell` at the command line: arguments, streams, terminals, signals, statuses."""

import errno
import os
import signal
import subprocess
import termios

import bus
import machine
from bus_cases import Held, answer
from case import CLAUDE, SANDBOX, equal, holds, test, wait_for
from machine import ALICE, PROBE, ROOT

BOTH = (ALICE, ROOT)
AWKWARD = [b"\xff\xfe", b"", b"two\nlines\n", b"x" * (120 * 1024), b"$HOME `id` \"'\\ *", b"--", b"-c", "größer".encode()]


@test(60, needs="bus")
def statuses_arrive(lab):
    for user in BOTH:
        for status in (0, 1, 7, 125, 255):
            result = lab.shell(f"exit {status}", user)
            equal((result.status, result.out, result.err), (status, b"", b""), f"{user}, exit {status}")


@test(60, needs="bus")
def deaths_arrive(lab):
    for user in BOTH:
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGSEGV):
            result = lab.shell(f"kill -{number} $$", user)
            equal((result.status, result.out, result.err), (-number, b"", b""), f"{user}, signal {number}")


@test(60, needs="bus")
def arguments_arrive(lab):
    """Byte for byte, through the shell and in an agent's place."""
    wanted = b"".join(argument.hex().encode() + b"\n" for argument in AWKWARD)
    for user in BOTH:
        result = lab.shell(f'exec {PROBE} args "$@"', user, ["name", *AWKWARD])
        equal(result.ok().out, wanted, f"{user}, shell")
        lab.install_agent(user)
        result = lab.run([CLAUDE, "args", *AWKWARD], user)
        equal(result.ok().out, wanted, f"{user}, agent")


@test(60, needs="bus")
def two_mebibytes_of_arguments_arrive(lab):
    many = [bytes([65 + n]) * (120 * 1024) for n in range(15)]
    result = lab.shell(f'exec {PROBE} args "$@"', ALICE, ["name", *many])
    equal(result.ok().out, b"".join(argument.hex().encode() + b"\n" for argument in many))


@test(needs="bus")
def streams_are_apart(lab):
    for user in BOTH:
        result = lab.shell(f"exec {PROBE} both", user)
        equal((result.status, result.out, result.err), (0, b"out\n", b"err\n"), str(user))


@test(needs="bus")
def bytes_pass_unchanged(lab):
    """Every byte value and control character, in and out, and no CR is added."""
    data = bytes(range(256)) * 8192
    for user in BOTH:
        result = lab.shell(f"exec {PROBE} copy", user, data=data)
        equal((result.status, result.err), (0, b""), str(user))
        holds(result.out == data, f"{user}: {len(result.out)} of {len(data)} bytes, or changed ones")
        equal(lab.shell("printf 'a\\nb\\n'", user).ok().out, b"a\nb\n")


@test(60, needs="bus")
def terminals_are_what_they_are(lab):
    """isatty(3) of 0, 1, 2 in all eight combinations, as outside."""
    for user in BOTH:
        lab.install_agent(user)
        workspace = lab.workspace(user)
        for bits in range(8):
            path = f"{workspace}/tty-{bits}"
            null = os.open("/dev/null", os.O_RDWR)
            redirect = {number: null for number in range(3) if not bits >> number & 1}
            with lab.terminal([CLAUDE, "tty", path], user, redirect=redirect) as terminal:
                status = terminal.wait(20)
                os.close(null)
                equal(status, 0, f"{user}, combination {bits:03b}; on the terminal: {terminal.output!r}")
            with open(path, encoding="ascii") as f:
                found = dict(line.strip().split("=", 1) for line in f)
            wanted = {str(number): "tty" if bits >> number & 1 else "no" for number in range(3)}
            wanted["tty"] = "yes" if bits else "no"
            equal(found, wanted, f"{user}, combination {bits:03b}")


@test(needs="bus")
def closed_descriptors_stay_closed(lab):
    lab.install_agent(ALICE)
    workspace = lab.workspace(ALICE)
    process = lab.start([CLAUDE, "tty", f"{workspace}/closed"], ALICE, before=lambda: [os.close(n) for n in range(3)])
    equal(process.wait(20), 0)
    with open(f"{workspace}/closed", encoding="ascii") as f:
        text = f.read()
    equal(text, "0=closed\n1=closed\n2=closed\ntty=no\n")


@test(needs="bus")
def terminal_size_follows(lab):
    for user in BOTH:
        with lab.terminal([SANDBOX, "shell", "-c", f"exec {PROBE} sizes"], user, size=(33, 101)) as terminal:
            terminal.expect("size 33 101.")
            terminal.resize(20, 60)
            terminal.expect("size 20 60.")
            terminal.type("\n")
            equal(terminal.wait(), 0)


@test(needs="bus")
def terminal_is_restored(lab):
    """Raw modes, an agent's private modes, and what it left set are undone, and nothing else is written."""
    for user in BOTH:
        script = "stty raw -echo; printf '\\033[?1049h\\033[?25l\\033[?2004h'; echo ready; kill -9 $$"
        with lab.terminal([SANDBOX, "shell", "-c", script], user) as terminal:
            before = terminal.current_modes()
            equal(terminal.wait(), -signal.SIGKILL, f"on the terminal: {terminal.output!r}")
            equal(terminal.current_modes(), before, "the modes of the terminal")
            tail = terminal.output[terminal.output.index(b"ready"):]
            for undone in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?2004l"):
                holds(undone in tail, f"{undone!r} is not in {tail!r}")
        with lab.terminal([SANDBOX, "shell", "-c", "printf done"], user) as terminal:
            equal(terminal.wait(), 0)
            equal(terminal.output, b"done", "an ordinary end writes nothing of ours")


@test(needs="bus")
def keys_interrupt(lab):
    for user in BOTH:
        # a trap that is set off just before read(2) waits for its end: it has one
        script = "trap 'echo caught; exit 9' INT; echo ready; while :; do read -r -t 0.2 x; done"
        with lab.terminal([SANDBOX, "shell", "-c", script], user) as terminal:
            terminal.expect("ready")
            terminal.type(b"\x03")
            terminal.expect("caught")
            equal(terminal.wait(), 9)
        with lab.terminal([SANDBOX, "shell", "-c", "echo ready; exec tail -f /dev/null"], user) as terminal:
            terminal.expect("ready")
            terminal.type(b"\x03")
            equal(terminal.wait(), -signal.SIGINT)
        with lab.terminal([SANDBOX, "shell", "-c", "exec sh -c 'echo ready; exec tail -f /dev/null'"], user) as terminal:
            # not bash's own word: bash ignores SIGQUIT until it has become something else
            terminal.expect("ready")
            terminal.type(b"\x1c")
            equal(terminal.wait(), -signal.SIGQUIT)
        with lab.terminal([SANDBOX, "shell", "-c", "echo ready; cat; echo end"], user) as terminal:
            terminal.expect("ready")
            terminal.type(b"\x04")
            terminal.expect("end")
            equal(terminal.wait(), 0)


@test(60, needs="bus")
def job_control_works(lab):
    """Ctrl-Z gives the terminal back to the person's shell, fg goes on."""
    for user in BOTH:
        with lab.terminal(["/bin/bash", "--norc", "--noprofile", "-i"], user,
                          env=lab.environment(user, PS1="prompt> ")) as terminal:
            terminal.expect("prompt> ")
            terminal.type("claude-sandbox shell -c 'echo rea''dy; exec cat'\n")
            terminal.expect("ready\r\n")
            terminal.type("first\n")
            terminal.expect("first\r\nfirst\r\n")
            terminal.type(b"\x1a")
            terminal.expect("Stopped")
            terminal.expect("prompt> ")
            terminal.type("echo out''side\n")
            terminal.expect("outside\r\n")
            terminal.expect("prompt> ")
            terminal.type("fg\n")
            wait_for(lambda: lab.states() == ["running"], "it goes on")
            terminal.type("second\n")
            terminal.expect("second\r\nsecond\r\n")
            terminal.type(b"\x04")
            terminal.expect("prompt> ")
            terminal.type("echo status $?\n")
            terminal.expect("status 0\r\n")
            terminal.type("exit\n")
            equal(terminal.wait(), 0)


@test(60, needs="bus")
def signals_arrive_once(lab):
    for user in BOTH:
        notes = f"{lab.workspace(user)}/signals"
        for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2"):
            number = int(getattr(signal, "SIG" + name))
            process = lab.start([SANDBOX, "shell", "-c", f"exec {PROBE} signals {notes}"], user,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            try:
                equal(process.stdout.readline(), b"ready\n")
                process.send_signal(number)
                equal(process.stdout.readline(), f"got {number}\n".encode(), f"{user}, SIG{name}")
                process.stdin.close()
                equal(process.wait(10), 1, f"{user}: how often SIG{name} arrived")
            finally:
                process.kill()
                process.wait()
                process.stdout.close()


@test(60, needs="bus")
def hang_up_reaches_the_agent(lab):
    """The window is closed: the agent hears it and may save, then everything is gone."""
    for user in BOTH:
        notes = f"{lab.workspace(user)}/hang-up"
        with lab.terminal([SANDBOX, "shell", "-c", f"exec {PROBE} signals {notes}"], user) as terminal:
            terminal.expect("ready")
            terminal.hang_up()
            wait_for(lambda: not lab.sessions(), "the session is gone", 4)
            with open(notes, encoding="ascii") as f:
                equal(f.read().split()[:1], [str(int(signal.SIGHUP))], str(user))


@test(60, needs="bus")
def stubborn_agents_are_killed(lab):
    """One that ignores the hang-up is killed after five seconds."""
    with lab.terminal([SANDBOX, "shell", "-c", f"exec {PROBE} stubborn"]) as terminal:
        terminal.expect("ready")
        terminal.hang_up()
        wait_for(lambda: not lab.sessions(), "the session is gone", 8)


@test(60, needs="bus")
def last_byte_is_written(lab):
    for user in BOTH:
        result = lab.shell("head -c 3000000 /dev/zero | tr '\\0' x; printf END", user)
        equal((result.status, len(result.out), result.out[-4:]), (0, 3000003, b"xEND"), str(user))
        with lab.terminal([SANDBOX, "shell", "-c", "head -c 300000 /dev/zero | tr '\\0' x; printf END"],
                          user) as terminal:
            equal(terminal.wait(20), 0)
            equal((len(terminal.output), terminal.output[-4:]), (300003, b"xEND"), str(user))


@test(needs="bus")
def person_is_the_same_inside(lab):
    """uid, gid, directory, umask and hard limits."""
    for user in BOTH:
        result = lab.shell("id -u; id -g; pwd; umask; echo $PPID; ulimit -Hn", user, before=lambda: os.umask(0o027))
        lines = result.ok().out.decode().split()
        equal(lines[:4], [str(user.uid), str(user.gid), lab.workspace(user), "0027"], str(user))


@test(needs="bus")
def output_to_a_closed_pipe(lab):
    """A reader that goes away ends the agent by SIGPIPE, as outside."""
    read, write = os.pipe()
    process = lab.start([SANDBOX, "shell", "-c", "trap - PIPE; yes"], stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.DEVNULL)
    os.close(write)
    holds(os.read(read, 4), "output")
    os.close(read)
    equal(process.wait(10), -signal.SIGPIPE)


@test(needs="bus")
def agent_missing(lab):
    for user in BOTH:
        lab.remove_agent(user)
        lab.run([CLAUDE], user).refused(127, "claude-sandbox install claude")


@test(needs="bus")
def agent_is_found_without_path(lab):
    """The user's own install, through its links; never through PATH, never our own entry."""
    lab.install_agent(ALICE, "claude-2.0")
    link = f"{ALICE.home}/.local/bin/claude"
    lab.remove_agent(ALICE)
    os.symlink("claude-2.0", link)
    try:
        equal(lab.run([CLAUDE, "exit", "5"]).status, 5)
        os.unlink(link)
        os.symlink(CLAUDE, link)
        lab.run([CLAUDE, "exit", "5"]).refused(127, "install")
    finally:
        os.unlink(link)
        lab.remove_agent(ALICE, "claude-2.0")
    machine.write(f"{lab.workspace(ALICE)}/bin/claude", "#!/bin/sh\nexit 9\n", 0o755, ALICE)
    lab.run([CLAUDE], env=lab.environment(ALICE, PATH=f"{CLAUDE}:/usr/bin:/bin")).refused(127, "install")


@test(needs="bus")
def root_owned_agent_comes_first(lab):
    path = "/usr/libexec/claude-sandbox/agents/claude"
    lab.undo.append(lambda: os.path.isdir(path) and machine.shutil.rmtree(path))
    with open(PROBE, "rb") as f:
        machine.write(f"{path}/claude", f.read(), 0o755)
    lab.install_agent(ALICE, "claude", "/bin/false")
    equal(lab.run([CLAUDE, "exit", "5"]).status, 5)


@test(needs="bus")
def typed_ahead_is_flushed(lab):
    """An agent in raw mode that leaves input unread does not hand it to the person's shell."""
    with lab.terminal([SANDBOX, "shell", "-c", "stty raw -echo; echo ready; read -r -N 1 x; stty sane"]) as terminal:
        terminal.expect("ready")
        terminal.type("q")
        equal(terminal.wait(), 0)
        equal(termios.tcgetattr(terminal.slave)[3] & termios.ECHO, termios.ECHO)


NS_GET_USERNS = 0xb701                                 # linux/nsfs.h


def property_of(lab, held, name, user):
    return answer(lab.run(["/usr/bin/busctl", "--system", "--json=short", "get-property", bus.NAME, held.path,
                           bus.SESSION, name], user, cwd="/"))


@test(60, needs="bus")
def agents_have_pids_of_their_own(lab):
    """No two agents have the same number in their jails: it is the one that the jail's init has outside."""
    script = "echo ready; echo $$; read x; exit 3"
    for user in BOTH:
        with Held(lab, user, script) as one, Held(lab, user, script) as other:
            found = [int(held.process.stdout.readline()) for held in (one, other)]
            equal(found, [property_of(lab, held, "Leader", user) for held in (one, other)], str(user))
            holds("pid" not in {row[0] for row in property_of(lab, one, "Posture", user)}, str(user))


@test(60, needs="bus")
def a_pid_that_cannot_be_set_ends_no_launch(lab):
    """And the isolation summary says so."""
    for user in BOTH:
        lab.wrap("/usr/libexec/claude-sandbox/session", f"fail ioctl {errno.EPERM} 1 {NS_GET_USERNS}")
        with Held(lab, user, "echo ready; echo $$; read x; exit 3") as held:
            equal(held.process.stdout.readline(), b"2\n", str(user))
            summary = {row[0]: row[1:] for row in property_of(lab, held, "Posture", user)}
            equal(summary["pid"], ["shared", "agents of several sessions can have the same PID: Operation not permitted"])
        lab.restore()
