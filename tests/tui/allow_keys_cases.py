# SPDX-License-Identifier: MIT
"""allow-ip from the screen: what is asked, who is asked for a password, and what then holds."""

import json
import os
import signal
from contextlib import ExitStack

import authority
import machine
from case import CONFIG, SANDBOX, equal, holds, test, wait_for
from machine import ALICE, ROOT
from window import Session, Window

# reaches an address of the lab's internal network, which answers once it is allowed
PROBE = "{ : 3<>/dev/tcp/10.1.0.5/80; } 2>/dev/null"


def configured(lab):
    return [row["address"] for row in json.loads(lab.run([SANDBOX, "allow-ip", "list", "--json"]).ok().out)]


def file_says(text):
    with open(CONFIG, encoding="utf-8") as f:
        return text in f.read()


@test(deadline=60, needs="bus")
def an_address_is_added(lab):
    lab.configure("# ours\n")
    with Window(lab, user=ROOT) as window:
        window.keys("5").shows("No internal address")
        window.keys("a").shows("Address or network")
        window.type("10.9.0.1 # the printer")
        window.keys("Enter").shows("10.9.0.1", "the printer", "not saved", "1 change is not saved")
        holds(not file_says("10.9.0.1"), "nothing is written yet")
        window.keys("s").shows("For the agents of all users", "Open 10.9.0.1.")
        window.keys("n").shows("1 change is not saved")
        window.keys("s").shows("Open 10.9.0.1.")
        window.keys("y").shows(CONFIG + ":2")
        wait_for(lambda: file_says("allow-ip = 10.9.0.1"), "it is written")
        holds(file_says("# ours") and file_says("the printer"), "the rest of the file stays")


@test(deadline=60, needs="bus")
def what_is_wrong_is_said_as_it_is_typed(lab):
    """In the service's own words, and nothing of it is written."""
    lab.configure("")
    with Window(lab, user=ROOT, columns=140) as window:
        window.keys("5", "a").shows("Address or network")
        for text in ("10.0.0.0/8", "printer", "192.0.0.1", "10.0.0.1/33", "0.0.0.0"):
            window.keys("C-u").type(text)
            words = lab.run([SANDBOX, "allow-ip", "add", text], ROOT).err.decode()
            sentence = words.removeprefix("claude-sandbox: ").strip()
            holds(sentence, f"{text} is refused")
            window.shows(sentence[:60])
        window.keys("C-u").type("10.9.0.1")
        window.wait(lambda screen: sentence[:60] not in screen, "what is right is not complained of")
        window.keys("Escape")
        equal(configured(lab), [])


@test(deadline=60, needs="bus")
def enter_waits_for_the_check(lab):
    lab.configure("")
    with Window(lab, user=ROOT) as window:
        window.keys("5").shows("No internal address")
        service = lab.service_pid()
        for text, wanted in (("bsypw", "IPv4"), ("10.9.0.1", "1 change is not saved")):
            window.keys("a").shows("Address or network")
            os.kill(service, signal.SIGSTOP)
            try:
                window.type(text)
                screen = window.keys("Enter").shows("Address or network", text, "is being asked")
                holds("not saved" not in screen, screen)
            finally:
                os.kill(service, signal.SIGCONT)
            window.shows(wanted)
            if text == "bsypw":
                window.keys("Escape").lacks("bsypw", "not saved")


@test(deadline=60, needs="bus")
def comments_removals_and_undo(lab):
    lab.configure("allow-ip = 10.9.0.1 # router\nallow-ip = 10.9.0.2\nallow-ip = 10.9.0.3\n")
    with Window(lab, user=ROOT) as window:
        window.keys("5").shows("10.9.0.3")
        window.keys("Home", "e").shows("Comment of 10.9.0.1")
        window.keys("C-u").type("gate")
        window.keys("Enter").shows("gate", "1 change is not saved")
        window.keys("Down", "x").shows("2 changes are not saved")
        window.keys("u").shows("1 change is not saved")
        window.keys("x").shows("2 changes are not saved")
        window.keys("s").shows("Close 10.9.0.2", "gets the comment 'gate'")
        window.keys("y").lacks("not saved", "10.9.0.2")
        wait_for(lambda: file_says("gate") and not file_says("10.9.0.2"), "it is written")
        equal(configured(lab), ["10.9.0.1", "10.9.0.3"])
        window.keys("u").shows("nothing to undo")


@test(deadline=60, needs="bus")
def changes_of_others_appear(lab):
    lab.configure("allow-ip = 10.9.0.1\n")
    with Window(lab) as window:
        window.keys("5").shows("10.9.0.1")
        lab.run([SANDBOX, "allow-ip", "add", "10.9.0.7", "from", "elsewhere"], ROOT).ok()
        window.shows("10.9.0.7", "from elsewhere")
        machine.write(CONFIG, "allow-ip = 10.9.0.8 # by an editor\n")
        window.shows("10.9.0.8", "by an editor")
        window.lacks("10.9.0.7")


@test(deadline=60, needs="bus")
def leaving_with_changes_asks(lab):
    lab.configure("allow-ip = 10.9.0.1\n")
    with Window(lab, user=ROOT) as window:
        window.keys("5").shows("10.9.0.1")
        window.keys("x").shows("1 change is not saved")
        window.keys("q").shows("not saved", "y")
        window.keys("n").shows("1 change is not saved")
        window.keys("q").shows("Leave")
        window.keys("y")
        equal(window.dead(), 0)
        holds(file_says("10.9.0.1"), "nothing was written")


@test(deadline=90, needs="bus")
def a_denied_row_is_opened_for_the_session(lab):
    authority.rules(lab, edit_allow_ip="YES")
    lab.configure("")
    with Session(lab, PROBE) as session, Session(lab, PROBE, workspace=lab.workspace(ALICE, "other")) as other, \
            Window(lab) as window:
        window.shows(session.id)
        window.keys("Home", "4").shows("10.1.0.5")
        window.keys("a").shows("Allow 10.1.0.5", "private network (RFC 1918)", "for this session, until it ends",
                               "for one hour", "always")
        window.keys("h").says("every port of 10.1.0.5, for one hour", "Other sessions stay as they are")
        window.keys("y").shows("10.1.0.5 is open in this session for one hour")
        pane = window.keys("Enter").shows("Refused because: private network (RFC 1918)", "Allowed now: in this session, until 20")
        holds("To allow it" not in pane and "whatever the route" not in pane, pane)
        window.keys("Escape")
        first = window.keys("1").shows(session.id, other.id)
        chosen = session.id if first.index(session.id) < first.index(other.id) else other.id
        routes = {row.id: lab.run([SANDBOX, "routes", row.id]).ok().out for row in (session, other)}
        opened = [name for name, text in routes.items() if b"10.1.0.5/32" in text]
        equal(opened, [chosen])
        window.keys("5").shows("10.1.0.5", f"session {chosen} until")
        window.keys("x").says("Take 10.1.0.5 back")
        window.keys("y").lacks(f"session {chosen} until")


@test(deadline=90, needs="bus")
def a_password_is_asked_on_the_same_terminal(lab):
    """polkit's text agent takes the screen and gives it back."""
    authority.with_password(lab)
    lab.configure("")
    with Window(lab) as window:
        window.keys("5", "a").shows("Address or network")
        window.type("10.9.0.1")
        window.keys("Enter").shows("not saved")
        window.keys("s").shows("Open 10.9.0.1")
        window.keys("y").is_asked("10.9.0.1")
        equal(window.format("#{alternate_on}"), "0")
        window.type(authority.PASSWORD)
        window.keys("Enter").shows(CONFIG + ":1", "Allow-IP")
        equal(window.format("#{alternate_on}"), "1")
        holds(authority.PASSWORD not in window.screen(), "it is not shown")
        wait_for(lambda: not authority.agents(), "the agent has gone")
        equal(configured(lab), ["10.9.0.1"])
        window.keys("q")
        equal(window.dead(), 0)


@test(deadline=90, needs="bus")
def a_wrong_password_changes_nothing(lab):
    authority.with_password(lab)
    lab.configure("")
    with Window(lab, columns=140) as window:
        window.keys("5", "a").shows("Address or network")
        window.type("10.9.0.1")
        window.keys("Enter").shows("not saved")
        window.keys("s").shows("Open 10.9.0.1")
        window.keys("y").is_asked()
        window.type("wrong")
        window.keys("Enter")
        window.shows("Allow-IP", "1 change is not saved", limit=20)
        equal(configured(lab), [])
        wait_for(lambda: not authority.agents(), "the agent has gone")


@test(deadline=60, needs="bus")
def who_may_not_is_told(lab):
    authority.rules(lab, edit_allow_ip="NO")
    lab.configure("")
    with Window(lab, columns=140) as window:
        window.keys("5", "a").shows("Address or network")
        window.type("10.9.0.1")
        window.keys("Enter").shows("not saved")
        window.keys("s").shows("Open 10.9.0.1")
        window.keys("y")
        window.wait(lambda screen: "may not" in screen or "not allow" in screen or "administrator" in screen, "it is refused")
        window.shows("1 change is not saved")
        equal(configured(lab), [])


@test(deadline=60, needs="bus")
def always_is_for_everybody(lab):
    lab.configure("")
    with Session(lab, PROBE) as session, Window(lab, user=ROOT, columns=140) as window:
        window.shows(session.id)
        window.keys("4").shows("10.1.0.5")
        window.keys("a").shows("always")
        window.keys("a").says("the agents of all users", "It is written to")
        window.keys("y").shows("10.1.0.5 is open for the agents of all users")
        wait_for(lambda: file_says("allow-ip = 10.1.0.5"), "it is written")
        window.keys("3").shows("10.0.0.0/8")
        window.keys("End").shows("10.1.0.5/32", "allow")
        window.keys("5").shows("10.1.0.5", CONFIG + ":1")


@test(deadline=60, needs="bus")
def a_question_is_read_to_its_end(lab):
    """In a window that has no room for it: what has not been seen cannot be agreed to."""
    addresses = [f"10.9.0.{number}" for number in range(1, 13)]
    lab.configure("".join(f"allow-ip = {address}\n" for address in addresses))
    with Window(lab, user=ROOT, columns=40, rows=10) as window:
        window.keys("5").shows("1/12")
        for number, _ in enumerate(addresses, 1):
            window.keys("x").shows(f"{number} change")
            window.keys("Down")
        window.keys("s")
        screen = window.shows("For the agents of all users", "Close 10.9.0.1;", "n no", "PgDn more")
        holds("y yes" not in screen and "10.9.0.12" not in screen, screen)
        window.keys("Down", "Down", "Up").lacks("For the agents")
        window.keys("y", "y")
        holds("y yes" not in window.screen() and file_says(addresses[0]), "two pages are not all of it")
        window.keys("G").shows("Close 10.9.0.12;", "y yes", "PgUp its beginning")
        # what has been read can be agreed to from anywhere, and is not scrolled away by another size
        window.keys("g").shows("Close 10.9.0.1;", "y yes")
        window.keys("G").resize(100, 30).shows("For the agents of all users", "Close 10.9.0.12;", "y yes")
        window.resize(40, 10).shows("y yes")
        window.keys("y").shows("saved", "No internal address")
        equal(configured(lab), [])


@test(deadline=60, needs="bus")
def more_choices_than_lines(lab):
    with ExitStack() as stack:
        sessions = [stack.enter_context(Session(lab)) for _ in range(8)]
        window = stack.enter_context(Window(lab, columns=60, rows=8))
        window.shows("running")
        window.keys("2", "=").shows("Compare with which session", "1  the shell", "PgDn more")
        last = sessions[-2].id
        holds(last not in window.screen(), window.screen())
        window.keys("PageDown").shows("7  the shell", "PgUp the first")
        window.keys("7").shows("The two sessions see the same")

