# SPDX-License-Identifier: MIT
"""
Each fault of the table is done to the lab: the right row of Doctor tells of it, no other turns red, the command's text
and its JSON and the bus say the same, a launch is refused in the same words, and what the row says helps helps.
"""

import json
import os
import re

import bus
import faults_of_machine               # noqa: F401, pylint: disable=unused-import
import faults_of_person                # noqa: F401, pylint: disable=unused-import
import faults_of_system                # noqa: F401, pylint: disable=unused-import
import injuries
import machine
from case import CLAUDE, SANDBOX, equal, holds, test
from fault_table import FAULTS, MISSING, OTHER, REFUSED, STARTED, WAITS, WARNED
from machine import ALICE, ROOT

NOT_TRIED = "not tried"
STATUSES = ["ok", "note", "warn", "fail"]
BUSCTL = ["/usr/bin/busctl", "--system", "--json=short", "call", bus.NAME, bus.PATH, bus.MANAGER, "Doctor", "a{sv}"]
# What the command alone sees: it knows what the shell would start.
COMMAND = {"entry.path"}

_well = {}


class Row:
    def __init__(self, id, status, title, detail, fix):
        self.id, self.status, self.title, self.detail, self.fix = id, status, title, detail, fix

    def __eq__(self, other):
        return self.__dict__ == other.__dict__

    def __repr__(self):
        return f"{self.id} {self.status}: {self.detail}; {self.fix}"


def made_well(lab, user):
    """Nothing is wrong with this person: three agents and their state, and a name for git. Return: what Doctor says then."""
    for name in ("claude", "codex", "pi"):
        lab.install_agent(user, name)
        os.makedirs(f"{user.home}/.{name}", 0o700, exist_ok=True)
        os.chown(f"{user.home}/.{name}", user.uid, user.gid)
    machine.write(f"{user.home}/.gitconfig", "[user]\n\tname = Some One\n\temail = one@example.org\n", 0o644, user)
    if user not in _well:
        injuries.polkit_is_there()
        well = asked(lab, user)
        equal([row for row in well.values() if row.status == "fail" or row.detail == NOT_TRIED], [], f"{user}: all is well")
        _well[user] = well
    return _well[user]


def options(lab, fault, user):
    more = fault.where(user) if fault and fault.where else {}
    return {"cwd": lab.workspace(user), **more, "env": lab.environment(user, **more.get("env", {}))}


def asked(lab, user, fault=None):
    """What the command says, as JSON. Return: {id: Row}."""
    result = lab.run([SANDBOX, "doctor", "--json"], user, limit=40, **options(lab, fault, user))
    document = json.loads(result.out)
    rows = {row["id"]: Row(**row) for row in document["rows"]}
    equal(len(rows), len(document["rows"]), "each row once")
    failed = any(row.status == "fail" for row in rows.values())
    equal((result.status, document["ok"], result.err), (int(failed), not failed, b""), repr(result))
    return rows


def asked_in_words(lab, user, fault, rows):
    """The same as text: a line for what is well, what was found and what helps below the line of what is not."""
    result = lab.run([SANDBOX, "doctor"], user, limit=40, **options(lab, fault, user))
    text = lasting(" ".join(result.out.decode().split()))
    counts = [sum(row.status == status for row in rows.values()) for status in STATUSES]
    for row in rows.values():
        if row.detail == NOT_TRIED or row.id.startswith("chain."):       # wire and mounts are made at the same time
            continue
        line = f"{row.id} {row.status} {row.title}" + (": " if row.status == "ok" else " ") + f"{row.detail} {row.fix}"
        # what is looked at beside the wire may not have been come to, this time
        if row.id not in (fault.row, fault.step) and f"{row.id} note {row.title} {NOT_TRIED}" in text:
            continue
        holds(lasting(" ".join(line.split())) in text, f"{row} is not in {result.out.decode()}")
        holds(row.status != "fail" or f"{row.id} fail" in text.partition(" Wrong: ")[2], f"{row} is not said at the end")
    sums = [int(number) for number in re.search(r"(\d+) ok, (\d+) to note, (\d+) to look at, (\d+) wrong$", text).groups()]
    equal((sums[2:], result.status, result.err), (counts[2:], int(counts[3] > 0), b""), repr(result))
    equal(sum(sums), sum(counts), repr(result))


def byte_array(data):
    return [str(len(data)), *[str(byte) for byte in data]]


def asked_by_bus(lab, user, fault, rows):
    """The same by whoever speaks D-Bus."""
    more = options(lab, fault, user)
    variables = [f"{name}={value}".encode() for name, value in more["env"].items()]
    words = ["2", "cwd", "ay", *byte_array(more["cwd"].encode()), "environment", "aay", str(len(variables))]
    for variable in variables:
        words += byte_array(variable)
    result = lab.run([*BUSCTL, *words], user, cwd="/", limit=40, before=more.get("before")).ok()
    found = {row[0]: Row(*row) for row in json.loads(result.out)["data"][0]}
    for id in sorted(rows.keys() - COMMAND):
        if NOT_TRIED not in (found[id].detail, rows[id].detail):      # wire and mounts are made at the same time
            equal(lasting(repr(found[id])), lasting(repr(rows[id])), "over the bus")


def pattern(words):
    return "(?s:" + ".*".join(re.escape(part) for part in words.split("…")) + ")"


def matches(found, words):
    return re.fullmatch(pattern(words), found) is not None


def lasting(text):
    """Without what differs from one look to the next: numbers of entries and processes, names made up for the time."""
    return re.sub(r"/tmp/claude-sandbox-doctor\.\w+|\d+ entries|process \d+|after \d+ ms|\(Rejected .*?\)(?=; | install)", "…", text)


def right(fault, rows, base, user):
    """The fault's row, and no other, is red."""
    what = f"{user}: {fault.words}"
    row = rows[fault.row]
    equal(row.status, fault.status, f"{what}: {row}")
    holds(matches(row.detail, fault.found), f"{what}: found {row.detail!r} is not {fault.found!r}")
    holds(matches(row.fix, fault.fix), f"{what}: fix {row.fix!r} is not {fault.fix!r}")
    if fault.step:
        step = rows[fault.step]
        equal((step.status, step.detail, step.fix), ("fail", row.detail, row.fix), f"{what}: {fault.step}")
    ends = fault.step or fault.launch in (REFUSED, WAITS) or "fail" in fault.also.values()
    for row in rows.values():
        if row.id in fault.also:
            equal(row.status, fault.also[row.id], f"{what}: {row}")
        elif row.detail == NOT_TRIED and ends:
            equal(row.status, "note", f"{what}: {row}")
        elif row.id not in (fault.row, fault.step):
            equal(row.status, base[row.id].status, f"{what}: {row}")
    if fault.bus:
        equal(sorted(base.keys() ^ rows.keys()), [], f"{what}: rows")


def launched(lab, fault, user, row):
    """What becomes of a launch, held against the table and the row."""
    if fault.launch == WAITS:
        return
    result = lab.run([CLAUDE, "exit", "0"], user, limit=40, **options(lab, fault, user))
    if fault.launch == OTHER:
        return
    if fault.launch == STARTED:
        equal((result.status, result.err), (0, b""), repr(result))
        return
    if fault.launch == WARNED:
        equal(result.status, 0, repr(result))
    else:
        result.refused(127 if fault.launch == MISSING else 125)
    said = [line.removeprefix("claude-sandbox: ").removesuffix(".") for line in result.err.decode().splitlines()]
    wanted = {f"{row.detail}; {row.fix}"} | ({f"{row.detail}: {row.fix}"} if fault.launch == WARNED else set())
    # what the bus says of a call has the call in it
    found = [line for line in said if line in wanted or not fault.bus and matches(line, f"{fault.found}; {fault.fix}")]
    equal(len(found), 1, f"{user}: a launch says {said}, and the row {row}")


def healed(lab, fault, user, base, fix):
    """What the row says helps."""
    if fault.mend:
        fault.mend(lab, fix)
    else:
        lab.restore()
    rows = asked(lab, user, None if fault.where else fault)
    for row in rows.values():
        equal(row.status, fault.after.get(row.id, base[row.id].status), f"{user}: {fault.words}, mended: {row}")
        if row.id not in fault.after and not row.id.startswith("config."):
            equal(lasting(row.detail), lasting(base[row.id].detail), f"{user}: {fault.words}, mended")


def fault_case(fault):
    def run(lab):
        for user in fault.users:
            base = made_well(lab, user)
            try:
                fault.inject(lab, user)
                rows = asked(lab, user, fault)
                right(fault, rows, base, user)
                launched(lab, fault, user, rows[fault.row])
                if user is fault.users[0] and not fault.slow:
                    asked_in_words(lab, user, fault, rows)
                    if fault.bus:
                        asked_by_bus(lab, user, fault, rows)
                healed(lab, fault, user, base, rows[fault.row].fix)
            finally:
                lab.restore()
    run.__name__ = fault.name
    run.__module__ = __name__
    run.__doc__ = fault.words
    test(60, needs="bus")(run)


for each in FAULTS:
    fault_case(each)
