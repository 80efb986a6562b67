# SPDX-License-Identifier: MIT
"""Job control of a real bash around the program, and inside it: every byte it writes, compared."""

import os
import re
import signal
import termios

from case import equal, wait_for
from conform import BOTH, PROMPT, conform


def begin(shell, line, ready):
    shell.type(line + "\n")
    shell.expect(ready)
    if line.startswith(("fg", "%")):
        # bash says the job's name before it gives it the terminal
        wait_for(lambda: os.tcgetpgrp(shell.master) != shell.pid, "the job has the terminal")


def agent_of(side, shell):
    """The process that the person's shell sees as the job."""
    with open(f"/proc/{shell.pid}/task/{shell.pid}/children", encoding="ascii") as f:
        return int(f.read().split()[-1])


def states(name):
    """One letter for each process of that name."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                before, after = f.read().rsplit(")", 1)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if before.split("(", 1)[1] == name:
            found.append(after.split()[0])
    return found


def catches(pid, number):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        caught = [line for line in f if line.startswith("SigCgt:")][0].split()[1]
    return int(caught, 16) >> (number - 1) & 1


def is_gone(pid):
    """The shell knows its end as well."""
    return not os.path.exists(f"/proc/{pid}")


@conform(users=BOTH)
def a_full_screen_agent_is_suspended(side):
    """Ctrl-Z as agents do it: they restore the terminal, say so, and stop their group."""
    with side.shell() as shell:
        begin(shell, "claude", "ready 24x80.")
        shell.type(b"\x1a")
        shell.prompt()
        screens = [shell.screen()]
        shell.do("jobs")
        begin(shell, "fg", "resumed 24x80.")
        screens.append(shell.screen())
        shell.type(b"\x1a")
        shell.prompt()
        begin(shell, "fg", "resumed 24x80.")
        shell.type("q")
        shell.prompt()
        return shell.transcript, screens, shell.exit_status(), [line for line in side.notes() if line != "signal 18"]


@conform(users=BOTH)
def a_line_agent_is_stopped(side):
    with side.shell() as shell:
        begin(shell, "claude lines ''", "ready 24x80.\r\n")
        shell.type(b"\x1a")
        shell.prompt()
        shell.do("jobs; echo between")
        begin(shell, "fg", "continued\r\n")
        shell.type("word\n")
        shell.expect("line 5 word\r\n")
        shell.type(b"\x1a")
        shell.prompt()
        begin(shell, "%1", "continued\r\n")
        shell.type(b"\x04")
        shell.prompt()
        return shell.transcript, shell.exit_status(), side.notes()


@conform()
def an_agent_that_stops_hard(side):
    """SIGSTOP, without a word to the terminal."""
    with side.shell() as shell:
        begin(shell, "claude", "ready 24x80.")
        during = shell.screen()
        shell.type("s")
        stopped = shell.prompt()
        left = shell.screen()
        begin(shell, "fg", "continued 24x80.")
        again = shell.screen()
        # natively the shell's modes stay: line mode
        shell.type("q\n")
        shell.prompt()
        # bash itself switches bracketed paste
        for modes in (during, again):
            modes.pop("2004", None)
        return b"[1]+  Stopped" in stopped, during, again, shell.screen(), \
            side.differs("repainted", left == {"2004": True}, False, True)


@conform()
def an_agent_that_stops_itself_alone(side):
    with side.shell() as shell:
        begin(shell, "claude exec sh -c 'kill -TSTP $$; echo after'", "Stopped")
        shell.prompt()
        shell.do("fg")
        return shell.transcript, shell.exit_status()


@conform(of=("TSTP", "STOP", "TTIN", "TTOU"))
def all_ways_to_stop(side, name):
    """What the shell calls them."""
    with side.shell() as shell:
        begin(shell, f"claude exec sh -c 'kill -{name} 0; echo after; exit 3'", "Stopped")
        shell.prompt()
        shell.do("jobs")
        shell.do("fg")
        return shell.transcript, shell.exit_status()


@conform()
def the_background_goes_on(side):
    with side.shell() as shell:
        begin(shell, "claude exec sh -c 'kill -STOP $$; echo one; kill -STOP $$; echo two; exit 4'", "Stopped")
        shell.prompt()
        begin(shell, "bg", "one\r\n")
        shell.do("until jobs | grep -q Stopped; do :; done")
        begin(shell, "bg; wait %1; echo status=$?", "two\r\n")
        shell.expect("status=4\r\n")
        shell.prompt()
        return shell.ask("jobs")


@conform(users=BOTH)
def a_reader_in_the_background_stops(side):
    with side.shell() as shell:
        begin(shell, "claude exec bash -c 'echo rea\"\"dy; trap \"echo continued\" CONT; while read x; do echo \"got $x\"; done'",
              "ready\r\n")
        shell.type(b"\x1a")
        shell.prompt()
        shell.do("bg")
        shell.do("until jobs | grep -q Stopped; do :; done")
        stopped = shell.ask("jobs")
        begin(shell, "fg", "got $x")
        shell.type("\nword\n")
        shell.expect("got word\r\n")
        shell.type(b"\x04")
        shell.prompt()
        return stopped, shell.exit_status()


@conform()
def a_reader_that_starts_in_the_background(side):
    with side.shell() as shell:
        shell.do("claude exec cat & wait")
        jobs = shell.ask("jobs")
        begin(shell, "fg", "claude exec cat\r\n")
        shell.type("word\n")
        shell.expect("word\r\nword\r\n")
        shell.type(b"\x04")
        shell.prompt()
        return jobs, shell.exit_status()


@conform()
def a_screen_that_starts_in_the_background(side):
    with side.shell() as shell:
        shell.do("claude & wait")
        jobs = shell.ask("jobs")
        begin(shell, "fg", "ready 24x80.")
        shell.type("q")
        shell.prompt()
        return jobs, shell.exit_status()


@conform()
def a_job_brought_forward_while_it_runs(side):
    """It did not stop: nobody tells it that it has the keys now."""
    os.mkfifo(f"{side.workspace}/gate")
    os.chown(f"{side.workspace}/gate", side.user.uid, side.user.gid)
    try:
        with side.shell() as shell:
            begin(shell, "claude exec sh -c 'echo beg\"\"un; read x < gate; echo asked; read y; echo \"got $y\"' &", "begun\r\n")
            begin(shell, "fg", "'\r\n")
            with open(f"{side.workspace}/gate", "w", encoding="ascii") as gate:
                gate.write("go\n")
            shell.expect("asked\r\n")
            shell.type("word\n")
            shell.expect("got word\r\n")
            shell.prompt()
            return shell.exit_status()
    finally:
        os.unlink(f"{side.workspace}/gate")


@conform()
def output_from_the_background(side):
    with side.shell() as shell:
        shell.do("claude exec echo from behind & wait")
        return shell.transcript.replace(b"\r", b"").split(b"\n", 2)[2].split(b"\n", 1)[1], shell.exit_status()


@conform()
def the_background_may_not_write(side):
    """`stty tostop`: it stops instead."""
    with side.shell() as shell:
        shell.do("stty tostop; claude exec echo from behind & wait")
        jobs = shell.ask("jobs")
        shell.do("fg")
        return jobs, b"from behind\r\n" in shell.transcript, shell.exit_status()


@conform(of=("TERM", "KILL", "HUP"))
def a_stopped_job_is_killed(side, name):
    with side.shell() as shell:
        begin(shell, "claude lines ''", "ready 24x80.\r\n")
        shell.type(b"\x1a")
        shell.prompt()
        job = agent_of(side, shell)
        # not by bash's own kill: it may forget what it hears of the job meanwhile
        os.killpg(job, getattr(signal, f"SIG{name}"))
        try:
            os.killpg(job, signal.SIGCONT)
        except ProcessLookupError:
            # SIGKILL waits for nobody
            equal(name, "KILL")
        wait_for(lambda: is_gone(job), "it is gone")
        shell.do("true")
        return shell.ask("jobs"), {"TERM": b"Terminated", "KILL": b"Killed", "HUP": b"Hangup"}[name] in shell.transcript


@conform()
def a_stop_from_outside(side):
    """kill -TSTP of the one process that the shell knows."""
    with side.shell() as shell:
        begin(shell, "claude lines ''", "ready 24x80.\r\n")
        os.kill(agent_of(side, shell), signal.SIGTSTP)
        shell.prompt()
        begin(shell, "fg", "continued\r\n")
        shell.type("word\n")
        shell.expect("line 5 word\r\n")
        shell.type(b"\x04")
        shell.prompt()
        return shell.transcript, shell.exit_status()


@conform()
def a_hard_stop_from_outside(side):
    with side.shell() as shell:
        begin(shell, "claude lines ''", "ready 24x80.\r\n")
        os.kill(agent_of(side, shell), signal.SIGSTOP)
        shell.prompt()
        begin(shell, "fg", "continued\r\n")
        shell.type("word\n")
        shell.expect("line 5 word\r\n")
        shell.type(b"\x04")
        shell.prompt()
        return shell.transcript, shell.exit_status()


@conform()
def a_hard_stop_of_a_screen(side):
    with side.shell() as shell:
        begin(shell, "claude", "ready 24x80.")
        during = shell.screen()
        os.kill(agent_of(side, shell), signal.SIGSTOP)
        shell.prompt()
        begin(shell, "fg", "claude\r\n")
        shell.type("a\n")
        shell.expect("key 61.")
        again = shell.screen()
        shell.type("q\n")
        shell.prompt()
        return during == again, shell.screen()


@conform()
def the_size_changes_meanwhile(side):
    with side.shell() as shell:
        begin(shell, "claude", "ready 24x80.")
        shell.type(b"\x1a")
        shell.prompt()
        shell.resize(19, 71)
        begin(shell, "fg", "resumed 19x71.")
        shell.resize(40, 120)
        shell.expect("size 40x120.")
        shell.type("q")
        shell.prompt()
        return shell.exit_status(), shell.screen()


@conform()
def a_pipeline_is_one_job(side):
    with side.shell() as shell:
        begin(shell, "claude exec tail -f /dev/null | sed -u s/^/two-/", "two-/\r\n")
        wait_for(lambda: b"tail" in side.lab.run(["/bin/ps", "-e", "-o", "comm"]).out, "the agent runs")
        shell.type(b"\x1a")
        shell.prompt()
        shell.do("jobs")
        begin(shell, "fg", "two-/\r\n")
        shell.type(b"\x03")
        shell.prompt()
        return shell.transcript, shell.do("echo ${PIPESTATUS[*]}")


@conform()
def a_loop_of_a_script_is_interrupted(side):
    """Ctrl-C ends the script too, as the terminal tells both."""
    with side.shell() as shell:
        begin(shell, "bash -c 'for i in 1 2 3; do claude lines \"\"; done; echo finished'", "ready 24x80.\r\n")
        shell.type(b"\x03")
        shell.prompt()
        return shell.transcript, shell.exit_status()


@conform()
def a_script_goes_on_when_the_agent_does(side):
    """The agent handles Ctrl-C: bash goes on."""
    with side.shell() as shell:
        begin(shell, "bash -c 'claude lines i; echo fin\"\"ished $?'", "ready 24x80.\r\n")
        wait_for(lambda: catches(agent_of(side, shell), signal.SIGINT), "bash waits for the agent")
        shell.type(b"\x03")
        shell.expect("got 2\r\n")
        shell.type("x6\n")
        shell.prompt()
        return shell.transcript, shell.exit_status(), side.notes()


@conform()
def a_trap_of_a_script_is_told(side):
    with side.shell() as shell:
        begin(shell, "bash -c 'trap \"echo trapped\" INT; claude lines i; echo fin\"\"ished'", "ready 24x80.\r\n")
        shell.type(b"\x03")
        shell.expect("got 2\r\n")
        shell.type("x0\n")
        shell.prompt()
        return shell.transcript, side.notes()


@conform()
def a_script_is_stopped_along(side):
    with side.shell() as shell:
        begin(shell, "sh -c 'claude lines \"\"; echo fin\"\"ished $?'", "ready 24x80.\r\n")
        shell.type(b"\x1a")
        shell.prompt()
        wait_for(lambda: set(states("claude")) == {"T"}, "the agent has stopped too, not only the script")
        begin(shell, "fg", "continued\r\n")
        shell.type("word\n")
        shell.expect("line 5 word\r\n")
        shell.type(b"\x04")
        shell.expect("finished 0\r\n")
        shell.prompt()
        return shell.transcript


@conform()
def two_of_them(side):
    with side.shell() as shell:
        for name in ("t", "q"):
            begin(shell, f"claude lines {name}", "ready 24x80.\r\n")
            shell.type(b"\x1a")
            shell.prompt()
        shell.do("jobs")
        for number, name in ((1, "t"), (2, "q")):
            begin(shell, f"fg %{number}", "continued\r\n")
            shell.type("word\n")
            shell.expect("line 5 word\r\n")
            shell.type(b"\x04")
            shell.prompt()
        return shell.transcript


@conform(users=BOTH)
def job_control_inside(side):
    """An interactive bash as the agent."""
    with side.shell() as shell:
        shell.do("claude exec env PS1=\"$PS1\" bash --norc --noprofile -i")
        for line in ("echo $-", "tty >/dev/null; echo $?", "tail -f /dev/null & jobs; disown; kill $!", "set -m; true | cat"):
            shell.do(line.replace("jobs", "jobs | sed 's/ [0-9][0-9]*$//'"))
        # it says when it goes on, and with that it has the terminal
        begin(shell, f"{side.user.home}/.local/bin/claude lines ''", "ready 24x80.\r\n")
        shell.type(b"\x1a")
        shell.prompt()
        begin(shell, "fg", "continued\r\n")
        shell.type(b"\x03")
        shell.prompt()
        shell.do("exit 9")
        return re.sub(rb"\[1\] \d+", b"[1] PID", shell.transcript), shell.exit_status()


@conform()
def a_shell_inside_stops(side):
    with side.shell() as shell:
        shell.do("claude exec env PS1=\"$PS1\" bash --norc --noprofile -i")
        begin(shell, "kill -STOP $$", "Stopped")
        shell.prompt()
        shell.do("echo outside")
        begin(shell, "fg", "-i\r\n")
        shell.type("\necho ins''ide\n")
        shell.expect("inside\r\n")
        shell.prompt()
        shell.do("exit 0")
        return shell.exit_status()


@conform()
def the_shell_leaves_a_stopped_job(side):
    """bash ends it: nothing stays."""
    with side.shell() as shell:
        begin(shell, "claude lines ''", "ready 24x80.\r\n")
        shell.type(b"\x1a")
        shell.prompt()
        job = agent_of(side, shell)
        shell.do("exit")
        shell.type("exit\n")
        shell.wait()
        # SIGHUP or SIGTERM, and SIGCONT: it hears them, and its terminal is gone then
        return b"There are stopped jobs" in shell.transcript, wait_for(lambda: not os.path.exists(f"/proc/{job}"), "it ends")


@conform()
def it_is_found_by_its_name(side):
    with side.shell() as shell:
        shell.type("claude lines t &\n")
        shell.expect("ready")
        job = agent_of(side, shell)
        with open(f"/proc/{job}/comm", encoding="ascii") as f:
            name = f.read()
        with open(f"/proc/{job}/cmdline", "rb") as f:
            return name, f.read().split(b"\0")[0]


def typed_while_the_shell_waits(side, shell, line, keys, shown):
    """Keys come while `line` waits for the gate, in line mode; then the gate opens."""
    gate = f"{side.workspace}/gate"
    os.mkfifo(gate)
    os.chown(gate, side.user.uid, side.user.gid)
    try:
        shell.type(f"read x <gate; {line}\n")
        wait_for(lambda: shell.flags()[3] & termios.ICANON, "the terminal is in line mode")
        shell.type(keys)
        shell.expect(shown)
        with open(gate, "w", encoding="ascii") as f:
            f.write("\n")
    finally:
        os.unlink(gate)


@conform(users=BOTH, of=("lines", "edited", "partly", "quoted"))
def typed_before_it_runs(side, how):
    """It is shown once, and edited once."""
    keys, shown, answers = {
        "lines": (b"one\ntwo\n\n", "two\r\n\r\n", ("line 4 one\r\n", "line 4 two\r\n", "line 1 \r\n")),
        "edited": (b"wrong\x15onx\x7fe\n", "e\r\n", ("line 4 one\r\n",)),
        "partly": (b"one\ntw", "tw", ("line 4 one\r\n",)),
        "quoted": (b"a\x16\x03b\x16\x7fc\x16\x04\n", "^D\r\n", ("line 7 a\x03b\x7fc\x04\r\n",)),
    }[how]
    with side.shell() as shell:
        typed_while_the_shell_waits(side, shell, "claude lines ''", keys, shown)
        for answer in answers:
            shell.expect(answer)
        shell.type(b"o\n" if how == "partly" else b"last\n")
        shell.expect("line 4 two\r\n" if how == "partly" else "line 5 last\r\n")
        shell.type(b"\x04")
        shell.prompt()
        return sorted(shell.transcript.split(b"\r\n")), shell.exit_status()


@conform()
def the_end_of_the_file_before_it_runs(side):
    with side.shell() as shell:
        typed_while_the_shell_waits(side, shell, "claude exec cat; echo sta''tus $?", b"one\ntwo\x04\x04", "two")
        shell.expect("status 0\r\n")
        shell.prompt()
        return sorted(shell.transcript.split(b"\r\n")), shell.exit_status()


@conform()
def typed_before_it_goes_on(side):
    with side.shell() as shell:
        begin(shell, "claude lines ''", "ready 24x80.\r\n")
        shell.type(b"\x1a")
        shell.prompt()
        typed_while_the_shell_waits(side, shell, "fg", b"one\ntwo\n", "two\r\n")
        shell.expect("line 4 one\r\n")
        shell.expect("line 4 two\r\n")
        shell.type(b"\x04")
        shell.prompt()
        return sorted(shell.transcript.split(b"\r\n")), shell.exit_status()


@conform()
def typed_before_a_screen_comes(side):
    with side.shell() as shell:
        typed_while_the_shell_waits(side, shell, "claude", b"ab\n", "ab\r\n")
        shell.expect("key 0a.")
        shell.type("q")
        shell.prompt()
        return shell.transcript.count(b"ab\r\n"), shell.exit_status(), shell.screen()
