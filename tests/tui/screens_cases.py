# SPDX-License-Identifier: MIT
"""
Golden screens: what does not move is compared line by line. TUI_WRITE=1 writes tests/tui/screens anew; read the
difference before it is kept.
"""

import importlib
import os
import re
import sys
from xml.etree import ElementTree

import machine
from case import Skip, holds, test, wait_for
from machine import ALICE
from window import DEADLINE, Session, StandIn, Window

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "screens")
WRITE = os.environ.get("TUI_WRITE") == "1"
CONFIGURATION = """allow-ip = 10.9.0.1 # the printer
allow-ip = 10.9.8.0/24 # boards
local-port = 8080
callback-port = 1455
"""
TREE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
DOCS = os.path.join(TREE, "docs")
# opened before the checkout is hidden
_directory = os.open(HERE, os.O_RDONLY | os.O_DIRECTORY)
sys.path.append(DOCS)
picture = importlib.import_module("picture").picture
_docs = os.open(DOCS, os.O_RDONLY | os.O_DIRECTORY)


def _read(name, directory=_directory):
    with open(os.open(name, os.O_RDONLY, dir_fd=directory), encoding="utf-8") as f:
        return f.read()


def _write(name, text, directory=_directory):
    with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=directory), "w", encoding="utf-8") as f:
        f.write(text)


def steady(screen, session=None):
    """What differs from run to run is written the same, in the same columns."""
    if session:
        screen = screen.replace(session.id, "abcdefghijklmnop").replace(session.id[:6], "abcdef")
    screen = re.sub(r"\d\d:\d\d:\d\dZ", "09:00:00Z", re.sub(r"\d{4}-\d\d-\d\d ", "2026-01-31 ", screen))
    screen = re.sub(r"\((\d+)\)", lambda found: "(" + "7" * len(found.group(1)) + ")", screen)
    lines = [line.rstrip() for line in screen.rstrip("\n").split("\n")]
    return "\n".join(lines) + "\n"


def settled(make):
    """What make() says when it says the same for a while."""
    before, same = None, 0
    while same < 8:
        now = make()
        same = same + 1 if now == before else 0
        before = now
    return before


def compare(name, window, session=None, directory=_directory, make=None):
    """The picture becomes, within the deadline, what is kept: it is made of several answers."""
    make = make or (lambda: steady(window.screen(), session))
    if WRITE:
        _write(name, settled(make), directory)
    try:
        wanted = _read(name, directory)
    except FileNotFoundError as error:
        raise Skip(f"there is no {name}; TUI_WRITE=1 makes it") from error
    try:
        wait_for(lambda: make() == wanted, "", DEADLINE)
    except AssertionError:
        screen = make()
        found, meant = screen.split("\n"), wanted.split("\n")
        lines = [f"  -{a}\n  +{b}" for a, b in zip(meant, found) if a != b]
        raise AssertionError(f"{name} is another picture:\n" + "\n".join(lines) + f"\nthe whole:\n{screen}") from None


VIEWS = [("1", "sessions", "<1m"), ("2", "exposure", "13 variables."), ("3", "routes", "the internet"), ("4", "denied", "Nothing was refused"),
         ("5", "allow-ip", "boards"), ("6", "policy", "egress-jail"), ("9", "help", "KEY OR WORD")]


@test(deadline=60, needs="bus")
def of_every_view(lab):
    lab.configure(CONFIGURATION)
    with Session(lab) as session, \
            Window(lab, columns=110, rows=40) as window:
        window.shows("/home/alice/project")
        for key, name, text in VIEWS:
            window.keys(key)
            window.shows(text)
            compare(f"{name}.txt", window, session)


@test(deadline=60, needs="bus")
def on_a_small_window(lab):
    lab.configure(CONFIGURATION)
    with Session(lab) as session, \
            Window(lab, columns=40, rows=10) as window:
        window.shows("running")
        for key, name, text in (("2", "exposure", "1/31"), ("5", "allow-ip", "10.9.8")):
            window.keys(key)
            window.shows(text)
            compare(f"{name}-40x10.txt", window, session)


@test(needs="bus")
def of_a_terminal_that_knows_only_ascii(lab):
    lab.configure(CONFIGURATION)
    with Window(lab, columns=80, rows=20, env={"LC_ALL": "C", "LANG": "C", "TERM": "vt100"}) as window:
        window.keys("5")
        screen = window.shows("boards")
        holds(screen.isascii(), screen)
        compare("allow-ip-vt100.txt", window)


@test(needs="bus")
def of_a_question(lab):
    """What is about to be widened, and for whom; names as strangers make them."""
    StandIn(lab, 3, 6)
    with Window(lab, columns=90, rows=24) as window:
        window.shows("running")
        window.keys("End", "4").shows("of alice in /home/alice/project-2", "1/6")
        window.keys("End")
        compare("denied-names.txt", window)
        window.keys("a").shows("this session")
        compare("allow.txt", window)
        window.keys("h").shows("one hour?")
        compare("allow-question.txt", window)
    with Window(lab, columns=40, rows=10) as window:
        window.shows("running")
        window.keys("End", "4").shows("1/6")
        compare("denied-40x10.txt", window)


@test(deadline=60, needs="bus")
def of_the_readme(lab):
    """docs/screen.svg is of a run of today's program."""
    lab.configure("allow-ip = 10.20.4.7 # the build server\n")
    for name in (".claude", ".codex", "shop", "notes"):
        lab.workspace(ALICE, name)
    for name, attempts in (("claude", 5), ("codex", 0)):
        machine.write(f"{ALICE.home}/.local/bin/{name}", "#!/bin/bash\n"
                      f"for ((i = 0; i < {attempts}; i++)); do {{ : 3<>/dev/tcp/10.1.0.5/80; }} 2>/dev/null; done\n"
                      "echo up; read -r line\n", 0o755, ALICE)
        lab.undo.append(lambda gone=name: lab.remove_agent(ALICE, gone))
    with Session(lab, workspace=f"{ALICE.home}/shop", command=["/usr/local/bin/claude"]) as one, \
            Session(lab, workspace=f"{ALICE.home}/notes", command=["/usr/local/bin/codex"]) as two, \
            Window(lab, columns=100, rows=26) as window:
        window.shows(one.id, two.id, "Reaches", "5 attempts")

        def now():
            text = window.screen(styles=True).replace(one.id, "sl2dc45o3ii65ybt").replace(two.id, "atjtdr7kdcghud7b")
            return picture(re.sub(r"(claude-agent/4001/)[a-z2-7]{13}", r"\1ealbmkhtegc5d", text))

        compare("screen.svg", window, directory=_docs, make=now)
        ElementTree.fromstring(now())
