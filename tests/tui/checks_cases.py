# SPDX-License-Identifier: MIT
"""Verify and Doctor on the screen: rows as they come, what they found, what helps."""

import json
import os
import signal

import bus
import machine
from case import SANDBOX, equal, holds, test
from machine import ALICE, MALLORY
from window import TUI, Session, Window


@test(deadline=90, needs="bus")
def a_running_session_is_verified(lab):
    with Session(lab) as session, Window(lab, columns=120, rows=40) as window:
        window.shows(session.id)
        window.keys("v")
        window.shows("22", "pass", limit=30)
        screen = window.wait(lambda seen: "/22" in seen and all(number in seen for number in ("01", "07", "22")),
                             "all of them came", 30)
        holds("fail" not in screen.split("\n", 3)[3], screen)
        window.keys("G").shows("22")
        window.keys("Enter").shows("Result: pass", "Id: 22")


@test(deadline=90, needs="bus")
def doctor_says_what_it_found(lab):
    with Window(lab, columns=120, rows=50) as window:
        window.keys("8").shows("press r")
        window.keys("r")
        window.shows("kernel", "ok", limit=30)
        window.wait(lambda seen: "1/" in seen, "rows are there", 30)
        window.keys("Enter").shows("Check:", "Result:", "Id:")


@test(deadline=90, needs="bus")
def the_jail_of_an_agent_to_come(lab):
    """Without a session an agent is chosen; the checks are of this directory and environment."""
    with Window(lab, columns=120, rows=40) as window:
        window.shows("No agent runs")
        window.keys("7", "r").shows("Check the jail of which agent", "s  shell")
        window.keys("s").shows("a jail as shell would get it here")
        window.wait(lambda seen: "None of 22 checks failed" in seen, "it has ended", 30)


@test(deadline=90, needs="bus")
def both_without_a_screen(lab):
    lab.install_agent(ALICE)
    lab.undo.append(lambda: lab.remove_agent(ALICE))
    with Session(lab) as session:
        result = lab.run([TUI, "--dump", "verify", session.id, "--json"], limit=40)
        rows = json.loads(result.out)
        equal(result.status, 0, repr(result))
        equal([row["id"] for row in rows][:3], ["01", "02", "03"])
        equal({row["status"] for row in rows} - {"pass", "note"}, set())
    result = lab.run([TUI, "--dump", "doctor", "--json"], limit=40)
    rows = json.loads(result.out)
    holds(len(rows) > 20, repr(result))
    command = json.loads(lab.run([SANDBOX, "doctor", "--json"], limit=40).out)["rows"]
    ours = {row["id"]: row["status"] for row in rows}
    equal(ours["entry.path"], "ok")
    equal({name for name in ours if name.startswith("chain.")}, {row["id"] for row in command if row["id"].startswith("chain.")})


@test(deadline=90, needs="bus")
def what_a_name_starts_is_looked_at(lab):
    """As the command does, which needs no service for that."""
    own = f"{ALICE.home}/.local/bin/claude"
    machine.write(own, "#!/bin/bash\n", 0o755, ALICE)
    lab.undo.append(lambda: os.unlink(own))
    usual = lab.environment(ALICE)
    result = lab.run([TUI, "--dump", "doctor", "--json"], ALICE, env={**usual, "PATH": f"{ALICE.home}/.local/bin:" + usual["PATH"]}, limit=40)
    found = {row["id"]: row for row in json.loads(result.out)}["entry.path"]
    equal((found["status"], found["detail"]), ("fail", f"'claude' starts {own}, without a jail"))
    holds(found["fix"] and result.status != 0, repr(result))


@test(deadline=90, needs="bus")
def rows_of_others(lab):
    """While a run is awaited, another user sends rows for it: they are not shown, and nothing fails by them."""
    with Session(lab), Window(lab, columns=120, rows=60) as window:
        window.shows("running")
        service = lab.service_pid()
        for number, (view, first, words) in enumerate((("7", "The first row is awaited", ("22/22", "None of 22 checks failed")),
                                                      ("8", "Checking this machine: 1 so far", ("start: its end", "this machine"))), 1):
            os.kill(service, signal.SIGSTOP)
            try:
                window.keys(view, "r").shows(first)
                bus.send_rows(f"tui-{number}", MALLORY)
            finally:
                os.kill(service, signal.SIGCONT)
            window.wait(lambda seen: "so far" not in seen and "awaited" not in seen, "the run has ended", 30)
            window.keys("End")
            screen = window.shows(*words)
            holds("forged" not in screen and "FAILED" not in screen, screen)
