# SPDX-License-Identifier: MIT
"""Signals from outside and the end of the terminal: who hears what, how often, in which order."""

import os
import signal
import subprocess
import time

from case import equal, wait_for
from conform import BOTH, conform

NAMES = ("TERM", "HUP", "INT", "QUIT", "USR1", "USR2")


def family(side, **options):
    process = side.start("family", "itqh12", stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
    equal(process.stdout.readline(), b"ready\n")
    return process


@conform(users=BOTH, of=NAMES)
def one_process_hears_it(side, name):
    """kill of one process reaches that one, once; not its children."""
    process = family(side)
    process.send_signal(getattr(signal, "SIG" + name))
    line = process.stdout.readline()
    process.send_signal(signal.SIGUSR1 if name != "USR1" else signal.SIGUSR2)
    line += process.stdout.readline()
    process.stdin.close()
    return line, process.wait(10), side.notes()


@conform(of=("CONT", "WINCH", "TSTP"))
def signals_without_an_end(side, name):
    process = family(side) if name != "TSTP" else side.start("family", "z", stdin=subprocess.PIPE,
                                                             stdout=subprocess.PIPE)
    if name == "TSTP":
        equal(process.stdout.readline(), b"ready\n")
    process.send_signal(getattr(signal, "SIG" + name))
    notes = side.wait_notes(1)
    process.stdin.close()
    return process.wait(10), notes


@conform(of=NAMES)
def default_actions(side, name):
    process = side.start("exec", "sh", "-c", "ulimit -c 0; echo ready; exec cat", stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    equal(process.stdout.readline(), b"ready\n")
    process.send_signal(getattr(signal, "SIG" + name))
    return process.wait(10)


@conform()
def in_the_order_of_their_coming(side):
    process = side.start("hear", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(process.stdout.readline(), b"ready\n")
    seen = []
    for name in NAMES + ("USR1", "TERM"):
        process.send_signal(getattr(signal, "SIG" + name))
        seen.append(process.stdout.readline())
    process.stdin.close()
    return seen, process.wait(10), side.notes()


@conform()
def keys_of_a_terminal_that_is_not_ours(side):
    """`agent < file > file` in a shell: its Ctrl-C is the group's."""
    with side.shell() as shell:
        side.lab.run(["/bin/rm", "-f", "output"], side.user)
        shell.type("(trap '' INT; exec tail -f /dev/null) | claude family i > output\n")
        wait_for(lambda: _has(side, "output"), "the agent is ready")
        shell.type(b"\x03")
        notes = sorted(side.wait_notes(2))
        shell.type(b"\x1a")
        shell.expect("Stopped")
        return notes


def _has(side, name):
    try:
        with open(f"{side.workspace}/{name}", "rb") as f:
            return b"ready\n" in f.read()
    except FileNotFoundError:
        return False


@conform(of=("INT", "QUIT"))
def keys_beside_a_pipe(side, name):
    with side.shell() as shell:
        shell.type("claude family iq | (trap '' INT QUIT; cat)\n")
        shell.expect("ready\r\n")
        shell.type(b"\x03" if name == "INT" else b"\x1c")
        notes = sorted(side.wait_notes(2))
        shell.type(b"\x1a")
        shell.expect("Stopped")
        return notes


@conform(users=BOTH)
def the_terminal_is_closed(side):
    """The agent hears it once, may still work, and goes when it wants."""
    terminal = side.terminal("hear", "obey")
    terminal.expect("ready\r\n")
    terminal.hang_up()
    wait_for(lambda: "signal 1" in side.notes(), "the agent hears it")
    wait_for(lambda: not side.lab.sessions(), "the session is gone", 5)
    return side.notes().count("signal 1")


@conform()
def the_shell_and_its_terminal_are_closed(side):
    with side.shell() as shell:
        shell.type("claude hear obey\n")
        shell.expect("ready\r\n")
        shell.hang_up()
        wait_for(lambda: "signal 1" in side.notes(), "the agent hears it")
        wait_for(lambda: not side.lab.sessions(), "the session is gone", 5)
        return side.notes().count("signal 1")


@conform()
def the_terminal_of_a_screen_is_closed(side):
    terminal = side.terminal()
    terminal.expect("ready 24x80.")
    terminal.hang_up()
    wait_for(lambda: not side.lab.sessions(), "the session is gone", 5)
    return True


@conform()
def a_deaf_agent(side):
    """It ignores that its terminal is gone."""
    terminal = side.terminal("hear")
    terminal.expect("ready\r\n")
    begin = time.monotonic()
    terminal.hang_up()
    if not side.jailed:
        wait_for(lambda: "signal 1" in side.notes(), "the agent hears it")
        alive = os.path.exists(f"/proc/{terminal.pid}")
        return side.differs("hang-up grace", alive, True, True)
    wait_for(lambda: not side.lab.sessions(), "the session is gone", 8)
    return side.differs("hang-up grace", 4.5 < time.monotonic() - begin < 8, True, True)


@conform(users=BOTH)
def what_is_ignored_stays_ignored(side):
    """`trap '' INT; agent`, nohup: who starts a program decides."""
    with side.shell() as shell:
        seen = []
        for names in ("INT", "HUP", "TSTP TTOU USR1 PIPE", "CHLD", "34 64"):
            seen.append(shell.do(f"(trap '' {names}; exec claude look)"))
            seen += side.notes()
            side.clean_notes()
        shell.do("nohup claude look >/dev/null 2>&1 </dev/null")
        return seen, [line for line in side.notes() if line.startswith("SigIgn")]


@conform()
def ignored_keys(side):
    """The key is typed, and nobody minds."""
    with side.shell() as shell:
        shell.type("(trap '' INT QUIT; exec claude lines '')\n")
        shell.expect("ready 24x80.\r\n")
        shell.type(b"a\x03b\x1cword\n")
        shell.expect("word\r\nline 5 word\r\n")
        shell.type(b"\x04")
        shell.prompt()
        return shell.transcript, shell.exit_status()


@conform(of=("INT", "HUP", "TERM", "USR1"))
def ignored_signals(side, name):
    """... and sent, in vain."""
    process = side.start("exec", "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         before=lambda: signal.signal(getattr(signal, "SIG" + name), signal.SIG_IGN))
    process.stdin.write(b"one\n")
    process.stdin.flush()
    first = process.stdout.readline()
    process.send_signal(getattr(signal, "SIG" + name))
    process.stdin.close()
    return first, process.wait(10)


@conform(of=("INT", "TERM", "QUIT", "USR1", "USR2"))
def an_ignored_signal_that_is_minded_again(side, name):
    """A job in the background of a script, whose INT the shell ignores, and an agent that handles it."""
    number = int(getattr(signal, "SIG" + name))
    process = side.start("exec", "python3", "-c", f"import os, signal; signal.signal({number}, lambda *_: os.write(1, b'heard\\n')); "
                         "os.write(1, b'ready\\n'); input()", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         before=lambda: signal.signal(number, signal.SIG_IGN))
    first = process.stdout.readline()
    process.send_signal(number)
    second = process.stdout.readline()
    process.stdin.write(b"\n")
    process.stdin.flush()
    return first, second, process.wait(10)


@conform()
def an_ignored_stop_that_is_minded_again(side):
    """The agent takes the stop back into use for itself."""
    with side.shell() as shell:
        shell.type("(trap '' TSTP; exec claude exec python3 -c 'import os, signal; signal.signal(signal.SIGTSTP, "
                   "signal.SIG_DFL); os.kill(os.getpid(), signal.SIGTSTP); print(\"after\")')\n")
        shell.expect("Stopped")
        shell.prompt()
        shell.do("fg")
        return shell.transcript.count(b"after\r\n"), shell.exit_status()


@conform(of=NAMES)
def a_group_is_told(side, name):
    """kill of the job's group. Nobody can tell from a signal whether it came to a process or to its group."""
    process = family(side)
    os.killpg(process.pid, getattr(signal, "SIG" + name))
    line = process.stdout.readline()
    wait_for(lambda: len(side.notes()) == (1 if side.jailed else 2), "those who hear it have noted it")
    process.stdin.close()
    status = process.wait(10)
    number = int(getattr(signal, "SIG" + name))
    return status, side.differs("group", sorted(side.notes()), [f"child {number}", f"parent {number}"],
                                [f"parent {number}"])
