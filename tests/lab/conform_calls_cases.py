# SPDX-License-Identifier: MIT
"""The ways in which shells and tools call a program: each compared with the program itself."""

import os
import re
import signal

from case import wait_for
from conform import conform
from conform_jobs_cases import agent_of

LINES = (
    "claude exec cat < <(echo hi)",
    "claude exec cat <<< 'a here string'",
    "claude exec cat <<'E'\none\nE",
    "echo \"[$(claude write out 2>/dev/null)]\"",
    "echo \"[$(claude both 2>&1)]\"",
    "(claude write sub); { claude write group; }",
    "claude exit 3 || echo \"failed with $?\"",
    "claude exit 0 && echo well",
    "! claude exit 4; echo $?",
    "claude write bg & wait $!; echo $?",
    "claude die 15 & wait $!; echo $?",
    "coproc claude exec cat; echo hi >&${COPROC[1]}; read x <&${COPROC[0]}; echo got $x; eval \"exec ${COPROC[1]}>&-\"; wait 2>/dev/null; jobs >/dev/null",
    "env -i \"$(type -p claude)\" write bare; echo $?",
    "bash -c 'exec claude exit 5'; echo $?",
    "sh -c 'claude exit 6; exit $?'; echo $?",
    "nice -n 5 claude exec nice",
    "timeout 30 claude exec cat </dev/null; echo $?",
    "timeout 0.2 claude exec sh -c 'read x <gate'; echo $?",
    "timeout -s INT 0.2 claude exec sh -c 'read x <gate'; echo $?",
    # it has said that it is ready by then, natively and in a jail
    "timeout --foreground 2 claude lines ''; echo $?",
    "echo a b | xargs claude write",
    "seq 3 | xargs -n 1 -P 3 claude write | wc -c",
    "find . -maxdepth 0 -exec claude write {} \\;",
    "setsid -w claude write own; echo $?",
    "setsid -w claude exec sh -c 'exit 7' </dev/null >/dev/null 2>&1; echo $?",
    "umask 027; claude exec sh -c umask",
    "ulimit -S -n 77; claude exec sh -c 'ulimit -S -n'",
    "exec 3>held; claude write x 3>&-; exec 3>&-",
    "claude write a | claude exec cat | claude exec tr a b",
    "command claude write x; builtin echo; \\claude write y",
    "PS4=; set -x; claude write x; set +x",
    "trap 'echo child' CHLD; claude write x; trap - CHLD",
    "set -o pipefail; claude exit 9 | cat; echo $?; set +o pipefail",
    "mkfifo p; claude write through >p & claude exec cat <p; wait; rm p",
    "for i in 1 2 3; do echo $i; done | while read l; do claude exec cat; done",
    "script -qec 'claude lines x6' /dev/null </dev/null >/dev/null; echo $?",
)


@conform(of=tuple(range(len(LINES))), limit=40)
def a_line_of_shell(side, number):
    gate = f"{side.workspace}/gate"
    os.mkfifo(gate)
    os.chown(gate, side.user.uid, side.user.gid)
    try:
        with side.shell() as shell:
            # a job's process id is not the same twice
            out = re.sub(rb"(\[1\]) \d+", rb"\1", shell.do(LINES[number]))
            return out.replace(side.path.encode(), b"PATH"), shell.exit_status()
    finally:
        os.unlink(gate)


@conform()
def the_window_is_closed_on_a_stopped_job(side):
    """It hears of it although it is stopped, and goes."""
    with side.shell() as shell:
        shell.type("claude hear obey\n")
        shell.expect("ready")
        job = agent_of(side, shell)
        os.kill(job, signal.SIGSTOP)
        shell.prompt()
        shell.hang_up()
        wait_for(lambda: "signal 1" in side.notes(), "the agent hears it")
        wait_for(lambda: not os.path.exists(f"/proc/{job}"), "it goes")
        wait_for(lambda: not side.lab.sessions(), "the session is gone", 5)
        return side.notes().count("signal 1")


@conform()
def nohup_outlives_the_window(side):
    gate = f"{side.workspace}/gate"
    os.mkfifo(gate)
    os.chown(gate, side.user.uid, side.user.gid)
    side.clean_notes()
    try:
        with side.shell() as shell:
            shell.type("nohup claude exec sh -c 'echo ready >stand-in-notes; read x <gate; echo done >stand-in-notes' >/dev/null 2>&1 &\n")
            shell.prompt()
            wait_for(lambda: side.notes() == ["ready"], "it runs")
            shell.hang_up()
            os.waitid(os.P_PID, shell.pid, os.WEXITED | os.WNOWAIT)
            with open(gate, "w", encoding="ascii") as f:
                f.write("x\n")
            wait_for(lambda: side.notes() == ["done"], "it goes on")
            wait_for(lambda: not side.lab.sessions(), "and ends")
            return True
    finally:
        os.unlink(gate)
