# SPDX-License-Identifier: MIT
"""Tests on booted machines: functions with a machine, in the order in which they stand."""

import time
import traceback

import guest
from claims import Skip, equal, has, holds, short_name    # noqa: F401, pylint: disable=unused-import

SANDBOX = "/usr/local/bin/claude-sandbox"
_tests = []


def test(smoke=False, suites=("bookworm", "trixie")):
    """Register a test. smoke: of the short run; suites: on which it makes sense."""
    def register(function):
        function.smoke, function.suites = smoke, suites
        _tests.append(function)
        return function
    return register


def name_of(function, suite):
    return f"{suite}.{short_name(function)}"


def tests():
    return list(_tests)


class Session:
    """
    A session of a person's, logged in by ssh, whose agent is a shell that does what it is asked. It outlives what
    started it or not, as a case likes.
    """

    def __init__(self, machine, user="alice", directory="project", before="", within=""):
        self.machine, self.user = machine, user
        known = ids(machine)
        machine.person(user, f"mkdir -p ~/{directory}").ok()
        self.program = machine.login(user, f"cd ~/{directory}; {before} exec {within} claude-sandbox shell", terminal=True)
        self.program.expect("$ ")
        self.program.type("PS1=; PS2=; stty -echo; echo here-\"$((40 + 2))\"\n")
        self.program.expect("here-42\n")
        new = ids(machine) - known
        equal(len(new), 1, "new sessions")
        self.id = new.pop()

    def ask(self, script):
        """What the script says inside. Return: text."""
        self.program.type(f"{{ {script}; }} 2>&1; echo \"done-$((40 + 2))-$?\"\n")
        return self.program.expect("done-42-").strip()

    def lives(self, what=""):
        """Its agent answers, and the service knows it."""
        equal(self.ask("echo $((6 * 7))").splitlines()[-1:], ["42"], what)
        holds(self.id in ids(self.machine), f"{what}: the service does not know {self.id}")

    def end(self):
        """As a person ends it. Return: the exit status."""
        self.program.type("exit 3\n")
        return self.program.wait().status

    def is_gone(self):
        self.machine.wait_for(f"! claude-sandbox sessions --all --json | grep -q {self.id}")


def ids(machine):
    return {row["id"] for row in machine.json([SANDBOX, "sessions", "--all", "--json"])}


def clean(machine):
    """What a case has left is ended, so that the next finds the machine as it was."""
    machine.shell("rm -f /etc/claude-sandbox.conf; for id in $(claude-sandbox sessions --all --json 2>/dev/null"
                  " | python3 -c 'import json,sys; [print(r[\"id\"]) for r in json.load(sys.stdin)]'); do"
                  " claude-sandbox stop $id; done")
    for program in list(machine.programs.values()):
        if program.status is None:
            program.signal(9)


def run_one(function, machine, must_run):
    """Return: "pass", "fail" or "skip"; prints what a reader needs."""
    begin = time.monotonic()
    outcome, words = "pass", ""
    try:
        function(machine)
    except Skip as skip:
        outcome, words = ("fail" if must_run else "skip"), f"cannot run here: {skip}"
    except (Exception, guest.Late):
        outcome, words = "fail", traceback.format_exc()
    print(f"{outcome:4} {name_of(function, machine.suite)} ({time.monotonic() - begin:.0f} s)", flush=True)
    if words:
        print("     " + words.rstrip().replace("\n", "\n     "), flush=True)
    try:
        if outcome == "fail":
            said = machine.shell("journalctl -b -q --no-pager -o short-monotonic -n 60; cat /run/vm/dnsmasq.log | tail -n 20", 120)
            print("     the machine's journal:\n       | " + said.out.rstrip()[-6000:].replace("\n", "\n       | "), flush=True)
        clean(machine)
    except (Exception, guest.Late) as error:
        print(f"     and afterwards: {error}", flush=True)
    return outcome
