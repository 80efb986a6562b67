# SPDX-License-Identifier: MIT
"""
Names as bad as a stranger can make them. What is looked at are the bytes that reach the terminal, not what an
emulator makes of them: no control but those that the screen itself is drawn with.
"""

import os
import re

from case import equal, holds, test
from machine import ALICE
from window import DEADLINE, TUI, Session, StandIn, Window

# What ncurses draws with on an xterm: cursor, attributes, modes, erasing, scrolling, character sets, keypad.
DRAWN = re.compile(rb"\x1b(?:\[[?>]?[0-9;]*[A-HJKLMPSTX@bcdfghilmnrtu`]|\[[0-9;]*[ ]?q|[()][0AB]|[78=>DMEHc]|\[!p)")
ALLOWED = b"\r\n\b\t\x0e\x0f"


def judge(data, what):
    """Only what the screen is drawn with, and characters that show."""
    rest = DRAWN.sub(b"", data)
    holds(b"\x1b" not in rest, f"{what}: {rest[max(rest.find(chr(27).encode()) - 40, 0):][:120]!r}")
    text = rest.decode("utf-8")                                      # valid, whatever came in
    bad = [c for c in text if (c < " " and c.encode() not in ALLOWED and c.encode()[0] not in ALLOWED) or "\x7f" <= c < "\xa0"
           or c in "\u200b\u200d\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"]
    equal(bad, [], f"{what}: {data[-300:]!r}")
    for forbidden in (b"owned", ):
        for match in re.finditer(forbidden, data):
            holds(not data[:match.start()].endswith(b"\x1b]0;"), f"{what}: a title is set")


def walk(terminal, what, views="123456789"):
    """Every view, the details of every row on the way, and everything that was written meanwhile."""
    seen = terminal.output
    for number in views:
        terminal.type(number)
        for key in ("\x1b[B", "\x1b[B", "\r", "\x1b", "c", "\x1b", "G", "\r", "\x1b", "o", "O"):
            terminal.type(key)
            while terminal.read(0.012):
                pass
    seen += terminal.output
    terminal.output = b""
    terminal.type("1")
    terminal.type("q")
    terminal.type("y")
    equal(terminal.wait(DEADLINE), 0, what)
    judge(seen + terminal.output, what)
    return seen


@test(deadline=120, needs="bus")
def a_service_full_of_them(lab):
    """Each string that the service can pass on, in every view, on terminals of both kinds."""
    StandIn(lab, 4, 20)
    for env in ({}, {"TERM": "vt100", "LANG": "C", "LC_ALL": "C"}, {"TERM": "screen"}, {"NO_COLOR": "1"}):
        terminal = lab.terminal([TUI], env=lab.environment(ALICE, **env), size=(30, 100))
        with terminal:
            terminal.expect("running", DEADLINE)
            seen = walk(terminal, repr(env))
            holds(b"\\x1b]0;owned" in seen or b"\\x1b]0" in seen, f"it is shown, escaped: {env}")
            if env.get("LANG") == "C":
                equal([byte for byte in seen if byte >= 0x80], [], "only ASCII")


@test(deadline=120, needs="bus")
def a_workspace_of_theirs(lab):
    """The real service, with a directory that somebody named so, and a program too."""
    name = "x\x1b]0;owned\x07\x1b[31m\udcff\udcfe\u202ee\u0301\u0301\u0301\u0301\u0301\u65e5\n\rz"
    place = f"{ALICE.home}/{name}"
    os.mkdir(place)
    os.chown(place, ALICE.uid, ALICE.gid)
    lab.undo.append(lambda: os.rmdir(place))
    script = "cd /tmp; printf '%b' '#!/bin/bash\\nexec 3<>/dev/tcp/10.1.0.5/80' > $'\\e]0;owned\\a'; chmod +x *; ./* 2>/dev/null"
    with Session(lab, script, workspace=place):
        terminal = lab.terminal([TUI], size=(30, 120))
        with terminal:
            terminal.expect("running", DEADLINE)
            seen = walk(terminal, "a workspace")
            holds(b"x\\x1b]0;owned\\x07" in seen, f"it is shown: {seen!r}")
            holds(b"\\xff\\xfe" in seen, "what is not UTF-8 is shown")


@test(deadline=120, needs="bus")
def a_path_of_four_thousand_bytes(lab):
    """As long as a path may be; the window is as small as it may be."""
    parts, place = [], ALICE.home
    while len(place) < 3500:
        part = "\x1b[5m" + "w" * 240
        parts.append(part)
        place += "/" + part
    os.makedirs(place)
    base = f"{ALICE.home}/{parts[0]}"
    lab.undo.append(lambda: __import__("shutil").rmtree(base))
    for directory, _, _ in os.walk(base):
        os.chown(directory, ALICE.uid, ALICE.gid)
    with Session(lab, workspace=place):
        for size in ((10, 40), (50, 250)):
            terminal = lab.terminal([TUI], size=size)
            with terminal:
                terminal.expect("running", DEADLINE)
                walk(terminal, f"at {size}")


@test(deadline=60, needs="bus")
def no_line_is_pushed_out_of_its_place(lab):
    """In an emulator: every row of the screen begins where it should, wide and combining characters or not."""
    StandIn(lab, 4, 20)
    with Window(lab, columns=100, rows=30) as window:
        window.shows("running")
        for number in "123456":
            window.keys(number)
            screen = window.wait(lambda seen: "?" in seen.rstrip("\n").split("\n")[-1], "the hint line is the last")
            lines = screen.rstrip("\n").split("\n")
            equal(len(lines), 30, f"view {number}: {screen}")
            holds("Sessions" in lines[0] and "Help" in lines[0], f"view {number}: {screen}")


@test(deadline=60, needs="bus")
def what_is_typed_is_shown_escaped(lab):
    with Window(lab) as window:
        window.shows("No agent runs")
        window.keys("5", "a")
        window.type("10.0.0.1 \u65e5\u202e\u00e9")
        screen = window.shows("10.0.0.1")
        holds("\u202e" not in screen, screen)
        window.keys("Escape").lacks("10.0.0.1")
