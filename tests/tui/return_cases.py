# SPDX-License-Identifier: MIT
"""Away and back: the service, the bus, the shell, the window; and ends of every kind leave a usable terminal."""

import os
import signal
import subprocess

import machine
from authority import rules
from case import SANDBOX, equal, holds, test, wait_for
from machine import ALICE, ROOT
from screen import Screen
from window import DEADLINE, TUI, Session, Window, pass_time, switches, wait_at_rest


@test(deadline=60, needs="bus")
def the_service_is_started_again(lab):
    with Session(lab) as session, Window(lab) as window:
        window.shows("running", "project")
        lab.stop_service()
        window.shows("the service has gone", session.id)
        lab.run([SANDBOX, "sessions"]).ok()
        window.lacks("the service has gone")
        window.shows("running", session.id)
        lab.stop_service(signal.SIGKILL)
        window.shows("the service has gone", session.id)
        window.keys("R").lacks("the service has gone")
        window.shows("running", session.id)


@test(deadline=60, needs="bus")
def without_a_service(lab):
    """What was known stays on the screen, below a line that says why it may be old."""
    with Session(lab) as session, Window(lab) as window:
        window.shows("running", session.id)
        aside = "/usr/libexec/claude-sandbox/claude-sandboxd"
        lab.hide(aside)
        lab.stop_service()
        window.shows("service", session.id)
        lab.restore()
        window.keys("R")
        window.wait(lambda screen: "cannot be started" not in screen and "running" in screen, "it is back")


@test(deadline=60, needs="bus")
def the_bus_goes_and_comes(lab):
    with Window(lab) as window:
        window.shows("No agent runs")
        pid = window.pid()
        lab.stop_service()
        lab.bus.stop()
        window.shows("no system bus answers")
        lab.bus.start()
        window.lacks("no system bus answers")
        equal(window.pid(), pid)
        with Session(lab) as session:
            window.shows("running", session.id)


@test(deadline=60, needs="bus")
def to_the_shell_and_back(lab):
    with Session(lab), Window(lab, shell=True) as window:
        window.line(TUI)
        window.shows("running")
        equal(window.format("#{alternate_on}"), "1")
        for _ in range(3):
            window.keys("C-z")
            window.shows("Stopped")
            equal(window.format("#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_flag}"), "0 1 0 0")
            window.line("echo bet''ween; stty -a | tr ' ' '\\n' | grep -x -- '-\\?\\(echo\\|icanon\\|isig\\)'")
            window.shows("between\nisig\nicanon\necho\n")
            window.line("clear; fg")
            window.shows("running", "WORKSPACE")
        window.resize(70, 20).shows("running")
        window.keys("q")
        window.shows("$")
        equal(window.format("#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_flag}"), "0 1 0 0")
        window.line("echo status=$?")
        window.shows("status=0")


def ends(lab, number):
    with Window(lab, shell=True) as window:
        window.line(TUI)
        window.shows("No agent runs")
        os.kill(window.pid(), number)
        window.shows("$")
        wait_for(lambda: window.format("#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{mouse_sgr_flag} #{keypad_flag}")
                 == "0 1 0 0 0", f"the terminal is as it was, after signal {number}", DEADLINE)
        # the prompt, or how to have it: one that the shell wrote on the other screen, too quickly, went with that
        window.wait(lambda _: window.lines()[-1] == "$" or "Enter shows the prompt again" in window.screen(), "there is a prompt")
        window.line("")
        window.line("echo he''re; stty -a | tr ' ' '\\n' | grep -x -- '-\\?\\(echo\\|icanon\\|isig\\|onlcr\\)'")
        window.shows("here\nonlcr\nisig\nicanon\necho\n")


@test(deadline=90, needs="bus")
def every_end_leaves_a_usable_terminal(lab):
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT, signal.SIGINT):
        ends(lab, number)


@test(deadline=60, needs="bus")
def the_terminal_is_hung_up(lab):
    terminal = lab.terminal([TUI])
    terminal.expect(" open  ", DEADLINE)
    pid = terminal.pid
    terminal.hang_up()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}/fd/0") or not _running(pid), "it has ended", DEADLINE)
    terminal.close()


def _running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@test(deadline=60, needs="bus")
def a_storm_of_sizes(lab):
    with Session(lab), Window(lab) as window:
        window.shows("running")
        pid = window.pid()
        for round_ in range(3):
            for columns, rows in ((40, 10), (120, 50), (41, 11), (200, 10), (40, 60), (20, 5), (10, 3), (5, 2), (2, 1), (100, 30)):
                window.resize(columns, rows)
                window.keys(str(round_ * 3 % 9 + 1))
        window.keys("1")
        window.shows("running", "WORKSPACE")
        window.resize(40, 10).shows("running")
        window.resize(100, 30).shows("WORKSPACE")
        equal(window.pid(), pid)
        window.keys("q")
        equal(window.dead(), 0)


@test(deadline=90, needs="bus")
def on_every_kind_of_terminal(lab):
    with Session(lab):
        for term in ("vt100", "vt220", "linux", "screen", "screen-256color", "xterm", "xterm-mono", "tmux-256color", "rxvt", "ansi"):
            terminal = lab.terminal([TUI], env=lab.environment(ALICE, TERM=term))
            with terminal:
                terminal.expect("running", DEADLINE)
                terminal.type("2")
                terminal.expect("ORIGIN", DEADLINE)
                terminal.type("q")
                equal(terminal.wait(DEADLINE), 0, term)
        # what nobody has described is taken for an xterm
        for term in ("nosuchterminal", "xterm-nosuch", "screen.nosuch"):
            terminal = lab.terminal([TUI], env=lab.environment(ALICE, TERM=term))
            with terminal:
                terminal.expect("running", DEADLINE)
                terminal.type("q")
                equal(terminal.wait(DEADLINE), 0, term)
        for term in ("dumb", "", None, "../x"):
            terminal = lab.terminal([TUI], env=lab.environment(ALICE, TERM=term))
            with terminal:
                equal(terminal.wait(DEADLINE), 125, repr(term))
                holds(terminal.output.startswith(b"claude-sandbox-tui:") and terminal.output.count(b"\n") == 1,
                      f"{term}: {terminal.output!r}")


@test(deadline=60, needs="bus")
def in_screen(lab):
    """GNU screen draws what it understands of it: views, a resized window, detached and attached again, and its shell afterwards."""
    place = f"{ALICE.home}/.screen"
    os.makedirs(place, mode=0o700, exist_ok=True)
    os.chown(place, ALICE.uid, ALICE.gid)
    machine.write(f"{ALICE.home}/.screenrc", b"startup_message off\naltscreen on\n", 0o600, ALICE)
    with Session(lab) as session, Window(lab, env={"SCREENDIR": place, "PS1": "'$ '", "SHELL": "/bin/sh"}, shell=True) as window:
        try:
            window.line("screen -S lab")
            window.wait(lambda screen: "screen" not in screen and "$" in screen, "screen's own shell")
            window.line(TUI)
            window.shows("WORKSPACE", "running", session.id)
            window.keys("2").shows("ORIGIN", "the workspace")
            window.resize(60, 16).shows("2 Exposure")
            window.keys("1").shows("running")
            window.resize(100, 30).shows("WORKSPACE", session.id)
            window.keys("C-a", "d").shows("detached")
            window.line("clear; screen -r lab")
            window.shows("WORKSPACE", session.id)
            window.keys("C-z").shows("Stopped")
            window.line("clear; fg")
            window.shows("WORKSPACE", session.id)
            window.keys("q")
            window.lacks("WORKSPACE")
            window.line("echo status=$? term=$TERM")
            window.shows("status=0 term=screen")
            window.line("clear; claude-sandbox shell -c 'echo jailed with $TERM; stty size'")
            window.shows("jailed with screen", "30 100")
            window.line("clear; exit")
            window.shows("terminating")
        finally:
            os.unlink(f"{ALICE.home}/.screenrc")
            lab.run(["/usr/bin/screen", "-S", "lab", "-X", "quit"], env=lab.environment(ALICE, SCREENDIR=place))


@test(deadline=60, needs="bus")
def nothing_is_left_of_its_modes(lab):
    """The bytes themselves: every private mode that is set is reset."""
    with Session(lab):
        for term in ("xterm-256color", "screen", "linux"):
            terminal = lab.terminal([TUI], env=lab.environment(ALICE, TERM=term))
            with terminal:
                modes = terminal.current_modes()
                seen = terminal.expect("running", DEADLINE)
                terminal.type("q")
                equal(terminal.wait(DEADLINE), 0)
                equal(Screen().feed(seen + terminal.output).unnatural(), {}, term)
                equal(terminal.current_modes(), modes, term)


@test(deadline=60, needs="bus")
def colours_are_the_persons_choice(lab):
    with Session(lab, "{ : 3<>/dev/tcp/10.1.0.5/80; } 2>/dev/null"):
        for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "vt100"}, False)):
            terminal = lab.terminal([TUI], env=lab.environment(ALICE, **env))
            with terminal:
                seen = terminal.expect("running", DEADLINE)
                terminal.type("2")
                seen += terminal.expect("ORIGIN", DEADLINE)
                terminal.type("q")
                terminal.wait(DEADLINE)
                import re
                colours = re.findall(rb"\x1b\[[0-9;]*(?:3[0-7]|9[0-7]|38;5;\d+|4[0-7]|48;5;\d+)(?:;[0-9]+)*m", seen)
                equal(bool(colours), coloured, f"{env}: {colours}")


@test(deadline=60, needs="bus")
def nothing_runs_while_nothing_happens(lab):
    with Session(lab), Window(lab) as window:
        window.shows("running")
        window.keys("4")
        window.shows("Nothing was refused")
        pid = window.pid()
        wait_at_rest(pid)
        before = switches(pid)
        pass_time(3)
        equal(switches(pid) - before, 0, "context switches in three seconds")


@test(deadline=60, needs="bus")
def a_planted_environment_changes_nothing(lab):
    """Places that a variable names are not looked at."""
    place = f"{ALICE.home}/planted"
    os.makedirs(f"{place}/x", exist_ok=True)
    subprocess.run(["/usr/bin/infocmp", "-x", "xterm"], stdout=open(f"{place}/source", "wb"), check=True)
    machine.write(f"{place}/source", open(f"{place}/source", encoding="utf-8").read().replace("smcup=", "smcup=PLANTED"))
    subprocess.run(["/usr/bin/tic", "-x", "-o", place, f"{place}/source"], check=True)
    env = lab.environment(ALICE, TERM="xterm", TERMINFO=place, TERMINFO_DIRS=place, LOCPATH=place,
                          DBUS_SYSTEM_BUS_ADDRESS="unix:path=/nowhere", DBUS_STARTER_ADDRESS="unix:path=/nowhere")
    terminal = lab.terminal([TUI], env=env)
    with terminal:
        seen = terminal.expect(" open  ", DEADLINE)
        holds(b"PLANTED" not in seen, repr(seen))
        terminal.type("q")
        equal(terminal.wait(DEADLINE), 0)


@test(deadline=60, needs="bus")
def a_session_comes_and_goes(lab):
    with Window(lab) as window:
        window.shows("No agent runs")
        with Session(lab) as session:
            window.shows(session.id, "running")
        # it is selected, so what is known of it stays
        window.wait(lambda screen: "ended" in screen and "Not told" not in screen, "it has ended")


@test(deadline=60, needs="bus")
def a_session_is_stopped(lab):
    with Session(lab) as session, Window(lab) as window:
        window.shows(session.id)
        window.keys("x")
        window.shows("project", "y")
        window.keys("n")
        window.lacks("Stop")
        equal(lab.sessions(), [session.id])
        window.keys("x")
        window.shows("y")
        window.keys("y")
        window.shows("the session has been stopped", "ended")
        session.process.wait(DEADLINE)


@test(deadline=60, needs="bus")
def root_sees_everybody(lab):
    with Session(lab) as session, Window(lab, user=ROOT) as window:
        window.shows(session.id, "alice")


@test(deadline=60, needs="bus")
def another_users_session_is_not_seen(lab):
    rules(lab, manage_sessions="NO")
    with Session(lab) as session, Window(lab, user=machine.BOB) as window:
        screen = window.shows("No agent runs")
        holds(session.id not in screen, screen)
        window.keys("A")
        window.wait(lambda seen: "may not" in seen or "administrator" in seen or "refused" in seen.lower(), "it is refused")
        holds(session.id not in window.screen(), "and nothing of it is told")
