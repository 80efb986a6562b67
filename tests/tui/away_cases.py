# SPDX-License-Identifier: MIT
"""The terminal lent to others: to whoever asks for a password, and to ssh; and who it comes back from."""

import os
import signal

from authority import AGENT, PASSWORD, agents, with_password
from case import equal, holds, test, wait_for
from machine import ALICE
from window import TUI, Session, Window, children_of

PROBE = "(exec 3<>/dev/tcp/10.1.0.5/80) 2>/dev/null"
# Asks for a password as ssh does, then is the other end of the connection.
SSH = """#!/bin/bash
printf 'password of far: ' >/dev/tty
read -r typed </dev/tty
[ "$typed" = good ] || { echo 'Permission denied' >&2; exit 255; }
shift $(($# - 1))
exec "$1"
"""


BRIDGE = "systemd-stdio-bridge"


class Asked:
    """A window in which a password is asked for, so that an address may be allowed for the session."""

    def __init__(self, lab, window):
        with_password(lab)
        window.line(TUI)
        window.shows("running")
        window.keys("4").shows("10.1.0.5")
        window.keys("a").shows("for this session")
        window.keys("s").says("until it ends? All that runs in it may.")
        window.keys("y").is_asked()
        equal(window.format("#{alternate_on} #{mouse_any_flag}"), "0 0")


def is_back(window):
    """The screen has the terminal again, and nobody asks any more."""
    equal(window.format("#{alternate_on}"), "1")
    wait_for(lambda: not agents(), f"{AGENT} has gone")


@test(deadline=60, needs="bus")
def a_question_is_left(lab):
    """Ctrl-C is the question's: the program goes on, and nothing was allowed."""
    with Session(lab, PROBE), Window(lab, shell=True) as window:
        Asked(lab, window)
        window.keys("C-c")
        window.says("polkit does not allow this")
        is_back(window)
        window.keys("Escape", "3").lacks("10.1.0.5/32")


@test(deadline=60, needs="bus")
def a_question_is_put_aside(lab):
    """Ctrl-Z stops both, fg goes on with the question, not with the screen."""
    with Session(lab, PROBE), Window(lab, shell=True) as window:
        Asked(lab, window)
        window.keys("C-z").shows("Stopped")
        # the shell knows of its own child alone: the other one stops itself, when it comes to it
        wait_for(lambda: states(window) == ["T", "T"], "both have stopped")
        window.line("clear; fg")
        window.shows(TUI)
        wait_for(lambda: states(window) == ["S", "S"], "both went on, and wait again")
        equal(window.format("#{alternate_on}"), "0")
        window.line(PASSWORD)
        window.shows("is open in this session")
        is_back(window)


@test(deadline=60, needs="bus")
def the_password_is_not_on_the_screen(lab):
    with Session(lab, PROBE), Window(lab, shell=True) as window:
        Asked(lab, window)
        window.line(PASSWORD)
        window.shows("is open in this session")
        is_back(window)
        window.keys("q").shows("COMPLETE")
        holds(PASSWORD not in window.screen(), "the echo is off while it is typed")


def command_of(pid):
    with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
        return f.read()


def states(window):
    """One letter each, of the program and of who asks for a password."""
    found = []
    for pid in (window.pid(), *agents()):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                found.append(f.read().rsplit(")", 1)[1].split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def far(lab):
    lab.replace("/usr/bin/ssh", SSH.encode(), 0o755)


@test(deadline=60, needs="bus")
def another_machine(lab):
    """ssh asks before the screen is there, and again where it has to log in once more; signals come over it."""
    far(lab)
    go = lab.workspace(ALICE) + "/go"
    with Session(lab, f"mkfifo go; (read -r line <go; {PROBE}) &") as session, Window(lab, shell=True) as window:
        window.line(f"{TUI} -H far")
        window.shows("password of far:")
        window.line("good")
        window.shows("running", session.id, "far")
        window.keys("4").shows("Nothing was refused")
        with open(go, "w", encoding="utf-8") as f:
            f.write("now\n")
        window.shows("10.1.0.5")
        os.kill(next(pid for pid in children_of(window.pid()) if BRIDGE in command_of(pid)), signal.SIGTERM)
        window.says("no system bus answers over ssh at far", "press R to connect again")
        window.keys("R").wait(lambda screen: screen.count("password of far:") == 2, "ssh asks again")
        window.line("good")
        window.shows("10.1.0.5").index("Denied")
        window.lacks("press R")
        window.keys("q").shows("$")


@test(deadline=60, needs="bus")
def another_machine_that_does_not_let_in(lab):
    """There is no screen to be looked at: the reason, and the status of what could not be done."""
    far(lab)
    with Window(lab, shell=True) as window:
        window.line(f"{TUI} -H far; echo status=$?")
        window.shows("password of far:")
        window.line("bad")
        window.shows("Permission denied", "status=125")
        window.says("claude-sandbox-tui: no system bus answers over ssh at far")
