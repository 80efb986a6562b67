# SPDX-License-Identifier: MIT
"""What each view shows of a session that runs, and what a person finds in it."""

import json

from case import equal, holds, test
from machine import ALICE
from window import TUI, Session, Window

PROBE = "{ : 3<>/dev/tcp/10.1.0.5/80; } 2>/dev/null"
NAMES = ["Sessions", "Exposure", "Routes", "Denied", "Allow-IP", "Policy", "Verify", "Doctor", "Help"]


@test(deadline=60, needs="bus")
def each_view_by_its_number_and_by_tab(lab):
    with Session(lab), Window(lab) as window:
        window.shows("running", *NAMES)
        texts = ["WORKSPACE", "the workspace", "10.0.0.0/8", "Nothing was refused", "No internal address", "egress-jail",
                 "erify", "octor", "KEY OR WORD"]
        for number, text in enumerate(texts, 1):
            window.keys(str(number)).shows(text)
        window.keys("1").shows("WORKSPACE")
        for text in texts[1:]:
            window.keys("Tab").shows(text)
        window.keys("Tab").shows("WORKSPACE")
        for text in reversed(texts[1:]):
            window.keys("BTab").shows(text)
        window.keys("l", "l", "h", "1").shows("WORKSPACE")
        window.keys("Right").shows("the workspace")
        window.keys("Left").shows("WORKSPACE")


@test(deadline=60, needs="bus")
def the_open_session_is_the_selected_one(lab):
    with Session(lab) as one, Session(lab, workspace=lab.workspace(ALICE, "other")) as two, Window(lab) as window:
        window.shows(one.id, two.id)
        window.keys("End", "Enter").shows("/home/alice/other", "the workspace")
        window.keys("[").shows("/home/alice/project", "the workspace")
        window.keys("]").shows("/home/alice/other", "the workspace")
        window.keys("Escape").shows("WORKSPACE")
        window.keys("Home", "Enter").shows("/home/alice/project", "the workspace")


@test(deadline=60, needs="bus")
def a_filter_a_search_an_order(lab):
    with Session(lab), Window(lab) as window:
        window.shows("running")
        window.keys("2").shows("the workspace", "/dev")
        window.keys("f").type("workspace")
        window.keys("Enter").wait(lambda screen: "the workspace" in screen and "/etc/resolv.conf" not in screen, "it is filtered")
        window.keys("Escape").shows("/etc/resolv.conf")
        window.keys("/").type("resolv")
        window.keys("Enter")
        window.wait(lambda _: any("resolv.conf" in line for line in window.selected()), "the search selects it")
        window.keys("n", "N")
        window.wait(lambda _: any("resolv.conf" in line for line in window.selected()), "and goes round")
        before = window.lines()

        def by_path(screen):
            paths = [line.split()[0] for line in screen.split("\n") if line.startswith("/")]
            return paths and paths == sorted(paths)
        # the first of the two keys may be on the screen before the second
        window.keys("o", "o").wait(lambda screen: window.lines() != before and by_path(screen), "in the order of paths")
        window.keys("O").wait(lambda screen: screen.index("/tmp") < screen.index("/home"), "the other way round")


@test(deadline=60, needs="bus")
def why_a_path_is_visible(lab):
    """Enter on a row, and w for any path."""
    with Session(lab), Window(lab) as window:
        window.shows("running")
        window.keys("2").shows("the workspace")
        window.keys("/").type("the workspace")
        window.keys("Enter", "Escape")
        window.shows("Path: /home/alice/project", "Mode: rw (can be read and changed", "Reason: the workspace")
        window.keys("w").shows("Which path")
        window.type("/home/alice/.ssh/id_ed25519")
        window.keys("Enter").shows("Decided by: /home", "private", "hides keys, tokens")
        window.keys("Escape").lacks("Decided by")


@test(deadline=60, needs="bus")
def why_an_address_is_refused(lab):
    with Session(lab, PROBE), Window(lab) as window:
        window.shows("running")
        window.keys("4").shows("10.1.0.5", "private network (RFC 1918)", "Refused because")
        window.keys("3").shows("10.0.0.0/8")
        window.keys("w").shows("Which address")
        window.type("192.168.4.4")
        window.keys("Enter").shows("deny (refused, whatever way is tried)", "Decided by: 192.168.0.0/16")


@test(deadline=60, needs="bus")
def two_sessions_are_compared(lab):
    with Session(lab) as one, Session(lab, workspace=lab.workspace(ALICE, "other")) as two, Window(lab) as window:
        window.shows(one.id, two.id)
        window.keys("Home", "Enter").shows("/home/alice/project")
        window.keys("=").shows("Compare with which session", two.id)
        window.keys("1").shows("only what differs", "+  /home/alice/project", "-  /home/alice/other")
        window.keys("=").lacks("only what differs")


@test(deadline=60, needs="bus")
def denied_rows_come_as_they_happen(lab):
    with Session(lab), Window(lab) as window:
        window.shows("running")
        window.keys("4").shows("Nothing was refused")
        with Session(lab, PROBE, workspace=lab.workspace(ALICE, "other")):
            window.keys("A").shows("10.1.0.5")
            window.keys("A").shows("Nothing was refused")


@test(deadline=60, needs="bus")
def a_row_is_copied_whole(lab):
    with Session(lab), Window(lab, columns=60) as window:
        window.shows("running")
        window.keys("2").shows("Reason: programs")
        window.keys("d").lacks("Reason: programs")
        window.keys("c").shows("Path: /", "Reason: programs and libraries")
        window.keys("Escape").lacks("Reason: programs")


@test(deadline=60, needs="bus")
def the_configuration_is_wrong(lab):
    lab.configure("nonsense = 1\n")
    with Window(lab, columns=140) as window:
        window.keys("6").shows("refuses every launch", "nonsense")


@test(deadline=60, needs="bus")
def help_names_every_key(lab):
    rows = json.loads(lab.run([TUI, "--dump", "help", "--json"]).ok().out)
    with Window(lab, columns=140, rows=100) as window:
        window.keys("?")
        # it may be looked at while it is drawn
        window.shows("KEY OR WORD", *[row["name"] for row in rows], *NAMES)
        window.keys("Escape").shows("No agent runs")
