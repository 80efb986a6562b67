# SPDX-License-Identifier: MIT
"""
Golden screens: what does not move is compared line by line. TUI_WRITE=1 writes tests/tui/screens anew; read the
difference before it is kept.
"""

import os
import re

from case import Skip, holds, test
from machine import ALICE
from window import Session, Window

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "screens")
WRITE = os.environ.get("TUI_WRITE") == "1"
CONFIGURATION = """allow-ip = 10.9.0.1 # the printer
allow-ip = 10.9.8.0/24 # boards
local-port = 8080
callback-port = 1455
"""
# opened before the checkout is hidden
_directory = os.open(HERE, os.O_RDONLY | os.O_DIRECTORY)


def _read(name):
    with open(os.open(name, os.O_RDONLY, dir_fd=_directory), encoding="utf-8") as f:
        return f.read()


def steady(screen, session=None):
    """What differs from run to run is written the same, in the same columns."""
    if session:
        screen = screen.replace(session.id, "abcdefghijklmnop")
    screen = re.sub(r"\d\d:\d\d:\d\dZ", "09:00:00Z", re.sub(r"\d{4}-\d\d-\d\d ", "2026-01-31 ", screen))
    screen = re.sub(r"\((\d+)\)", lambda found: "(" + "7" * len(found.group(1)) + ")", screen)
    lines = [line.rstrip() for line in screen.rstrip("\n").split("\n")]
    return "\n".join(lines) + "\n"


def compare(name, screen):
    if WRITE:
        with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=_directory), "w",
                  encoding="utf-8") as f:
            f.write(screen)
        return
    try:
        wanted = _read(name)
    except FileNotFoundError as error:
        raise Skip(f"there is no tests/tui/screens/{name}; TUI_WRITE=1 makes it") from error
    if screen != wanted:
        found, meant = screen.split("\n"), wanted.split("\n")
        lines = [f"  -{a}\n  +{b}" for a, b in zip(meant, found) if a != b]
        raise AssertionError(f"{name} is another picture:\n" + "\n".join(lines) + f"\nthe whole:\n{screen}")


VIEWS = [("1", "sessions", "<1m"), ("2", "exposure", "12 variables."), ("3", "routes", "the internet"), ("4", "denied", "10.1.0.5"),
         ("5", "allow-ip", "boards"), ("6", "policy", "egress-jail"), ("9", "help", "KEY OR WORD")]


@test(deadline=60, needs="bus")
def of_every_view(lab):
    lab.configure(CONFIGURATION)
    with Session(lab, "(exec 3<>/dev/tcp/10.1.0.5/80) 2>/dev/null") as session, \
            Window(lab, columns=110, rows=40) as window:
        window.shows("/home/alice/project")
        for key, name, text in VIEWS:
            window.keys(key)
            compare(f"{name}.txt", steady(window.shows(text), session))


@test(deadline=60, needs="bus")
def on_a_small_window(lab):
    lab.configure(CONFIGURATION)
    with Session(lab, "(exec 3<>/dev/tcp/10.1.0.5/80) 2>/dev/null") as session, \
            Window(lab, columns=40, rows=10) as window:
        window.shows("running")
        for key, name, text in (("2", "exposure", "1/25"), ("4", "denied", "10.1.0.5"), ("5", "allow-ip", "10.9.8")):
            window.keys(key)
            compare(f"{name}-40x10.txt", steady(window.shows(text), session))


@test(needs="bus")
def of_a_terminal_that_knows_only_ascii(lab):
    lab.configure(CONFIGURATION)
    with Window(lab, columns=80, rows=20, env={"LC_ALL": "C", "LANG": "C", "TERM": "vt100"}) as window:
        window.keys("5")
        screen = window.shows("boards")
        holds(screen.isascii(), screen)
        compare("allow-ip-vt100.txt", steady(screen))


@test(needs="bus")
def of_a_question(lab):
    """What is about to be widened, and for whom."""
    lab.configure(CONFIGURATION)
    with Session(lab, "(exec 3<>/dev/tcp/10.1.0.5/80) 2>/dev/null", user=ALICE) as session, \
            Window(lab, columns=90, rows=24) as window:
        window.shows("running")
        window.keys("4")
        window.shows("10.1.0.5")
        window.keys("a")
        compare("allow.txt", steady(window.shows("this session"), session))
        window.keys("h")
        compare("allow-question.txt", steady(window.shows("one hour?"), session))
