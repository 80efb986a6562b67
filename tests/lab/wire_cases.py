# SPDX-License-Identifier: MIT
"""The jail is made while the wire comes, and waits: no agent runs before, whatever dies meanwhile."""

import os
import signal
import subprocess

from case import SANDBOX, holds, processes, test, wait_for
from machine import ALICE, ROOT

SILENT_PASTA = "#!/bin/sh\nexec tail -f /dev/null\n"
INIT = "/usr/libexec/claude-sandbox/init"


def named(text):
    """A pid with that command line, or None."""
    return next((pid for pid, words in processes().items() if words == text), None)


def waiting_init():
    """The pid of an init that sits in poll(2), number 7 in /proc/PID/syscall, or None."""
    pid = named(INIT)
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
            return pid if f.read().startswith("7 ") else None
    except OSError:
        return None


@test(60, needs="bus")
def no_agent_without_a_wire(lab):
    for user in (ALICE, ROOT):
        lab.shell("true", user).ok()
        wait_for(lambda: not lab.sessions(), "the session before ends")
        for victim in ("session", "pasta", "launch"):
            before = set(processes())
            trace = lab.workspace(user) + "/ran"
            lab.replace("/usr/bin/pasta", SILENT_PASTA, 0o755)
            process = lab.start([SANDBOX, "shell", "-c", "touch ran"], user, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            wait_for(waiting_init, f"{user}: the jail is made and waits")
            os.kill({"session": named("/usr/libexec/claude-sandbox/session"), "pasta": named("tail -f /dev/null"),
                     "launch": process.pid}[victim], signal.SIGKILL)
            _, said = process.communicate(timeout=20)
            holds(process.returncode == (-signal.SIGKILL if victim == "launch" else 125),
                  f"{user}, {victim}: ended with {process.returncode}: {said}")
            wait_for(lambda: not lab.sessions(), f"{user}, {victim}: the session ends")
            wait_for(lambda: not set(processes()) - before, f"{user}, {victim}: nothing stays")
            holds(not os.path.exists(trace), f"{user}, {victim}: the agent has run")
            lab.restore()
