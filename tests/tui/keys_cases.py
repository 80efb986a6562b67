# SPDX-License-Identifier: MIT
"""Every key of the table of keys, in every view, with and without rows: the program goes on."""

import json

import authority
from case import equal, holds, test
from machine import ALICE
from window import DEADLINE, TUI, Session, Window

PROBE = "{ : 3<>/dev/tcp/10.1.0.5/80; } 2>/dev/null"
VIEWS = {"sessions": "1", "exposure": "2", "routes": "3", "denied": "4", "allow-ip": "5", "policy": "6", "verify": "7",
         "doctor": "8", "help": "9"}
TMUX = {"PgUp": "PageUp", "PgDn": "PageDown", "Del": "DC", "Backspace": "BSpace", "Shift-Tab": "BTab", "Esc": "Escape"}
QUITS = {"q", "F10", "^C", "^Z"}


def keys_of(lab):
    """[(key of tmux, views)] from what Help says."""
    found = []
    for row in json.loads(lab.run([TUI, "--dump", "help", "--json"]).ok().out):
        names = row["name"].split()
        if not names or names[0][0].isdigit() or row["name"] in ("Views", "Words"):
            continue
        for name in names:
            if name in QUITS:
                continue
            key = TMUX.get(name, name)
            if key.startswith("^"):
                key = "C-" + key[1:].lower()
            found.append((key, row["views"].split() or list(VIEWS)))
    return [(key, views) for key, views in found
            if len(key) == 1 or key.startswith(("C-", "F")) or key in
            {"Enter", "Up", "Down", "Left", "Right", "Home", "End", "Tab", "Space", *TMUX.values()}]


def settled(window):
    """After a key, and what it opened closed again: the tabs are there and it answers."""
    window.keys("Escape", "Escape", "Escape", "Escape")
    window.keys("C-l")


def press_all(lab, window):
    keys = keys_of(lab)
    holds(len(keys) > 35, f"Help names keys: {keys}")
    pid = window.pid()
    for view, number in VIEWS.items():
        for key, views in keys:
            if view not in views or key in ("x", "DC"):
                continue
            window.keys(number)
            window.keys(key)
            settled(window)
        window.keys("1").shows("Sessions", limit=DEADLINE)
        equal(window.pid(), pid, f"after the keys of {view}")


@test(deadline=300, needs="bus")
def with_a_session(lab):
    authority.rules(lab, manage_sessions="YES", edit_allow_ip="YES")
    lab.configure("allow-ip = 10.9.0.1 # printer\nallow-ip = 10.9.0.2\n")
    with Session(lab, PROBE) as session, Session(lab, PROBE, workspace=lab.workspace(ALICE, "other")), \
            Window(lab) as window:
        window.shows("running", session.id)
        press_all(lab, window)
        window.keys("1").shows(session.id)
        window.keys("q")
        window.keys("y")
        equal(window.dead(), 0)


@test(deadline=300, needs="bus")
def with_nothing_at_all(lab):
    authority.rules(lab, manage_sessions="YES", edit_allow_ip="YES")
    with Window(lab) as window:
        window.shows("No agent runs")
        press_all(lab, window)
        window.keys("F10")
        equal(window.dead(), 0)


@test(deadline=60, needs="bus")
def every_way_to_quit(lab):
    for key in ("q", "F10", "C-c"):
        with Window(lab) as window:
            window.shows("No agent runs")
            window.keys(key)
            equal(window.dead(), 0, key)


@test(deadline=60, needs="bus")
def the_mouse(lab):
    """A tab, a row, the wheel, a heading."""
    with Session(lab), Session(lab), Window(lab) as window:
        screen = window.wait(lambda seen: seen.count("running") >= 2, "both sessions")
        lines = screen.split("\n")

        def click(x, y, button=0):
            # as this terminal's description says: three characters behind the key
            for code in (button, 3) if button < 3 else (button,):
                window.type("\x1b[M" + chr(32 + code) + chr(33 + x) + chr(33 + y))

        click(lines[0].index("Routes") + 1, 0)
        window.shows("10.0.0.0/8")
        click(lines[0].index("Sessions") + 1, 0)
        screen = window.wait(lambda seen: "WORKSPACE" in seen and seen.count("running") >= 2, "both sessions")
        rows = [number for number, line in enumerate(screen.split("\n")) if "running" in line]
        click(5, rows[1])
        window.wait(lambda _: window.screen().split("\n")[rows[1]].strip() in window.selected(), "the second row is selected")
        click(lines[0].index("Policy") + 1, 0)
        first = window.shows("egress-jail").split("\n")
        click(5, 10, button=65)
        window.wait(lambda seen: seen.split("\n") != first or len(first) > 40, "the wheel scrolls")


@test(deadline=60, needs="bus")
def bytes_that_are_no_keys(lab):
    """Half of a sequence, unknown ones, what is not UTF-8, a paste of a megabyte."""
    with Session(lab):
        terminal = lab.terminal([TUI])
        with terminal:
            terminal.expect("running", DEADLINE)
            for data in (b"\x1b[", b"\x1b[999~", b"\x1b[1;999Z", b"\xff\xfe", b"\xe2\x82", b"\x00", b"\x1bOx", b"\x1b[<1;1;1M",
                         b"\x1b[<999999999;1;1M", b"\x1b[200~paste\x1b[201~", b"\x1b]0;x\x07", b"\x1b\x1b\x1b"):
                terminal.type(data)
            # a paste is no keys: none of these stops a session, or quits
            terminal.type(b"\x1b[200~xyqqq\r\x1b[201~")
            terminal.type(b"\x1b")
            terminal.type(b"2")
            terminal.expect("workspace", DEADLINE)
            terminal.type(b"q")
            equal(terminal.wait(DEADLINE), 0)
