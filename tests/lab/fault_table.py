# SPDX-License-Identifier: MIT
"""
The table of faults: what is wrong, which row of Doctor tells of it, in which words, and what becomes of a launch. A
function makes each fault in the lab (faults_of_*.py, by injuries.py); doctor_fault_cases.py holds Doctor and launches
against the table, and docs/faults.py writes it down for people.
"""

import os
import re

from machine import ALICE, ROOT

BOTH = (ALICE, ROOT)
TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dbus")
# Of each kind one: refused by status 125 with the row's own words; the same with 127; started, with the row's words as a
# warning; started without a word; not looked at, since the fault is no launch's; not tried, since it waits.
REFUSED, MISSING, WARNED, STARTED, OTHER, WAITS = "refused", "refused, 127", "warned", "started", "", "waits"

FAULTS = []


def _read_texts():
    """{name: text} of dbus/causes.h; what dbus/names.h spells is put in."""
    raw = {}
    for name in ("names.h", "causes.h"):
        with open(f"{TEXTS}/{name}", encoding="utf-8") as f:
            raw.update(re.findall(r'#define (\w+)[ \t]+((?:"(?:[^"\\]|\\.)*"[ \t]*|[A-Z_]+\b[ \t]*)+)', f.read().replace("\\\n", " ")))

    def resolved(value):
        return "".join(resolved(raw[macro]) if macro else word.replace('\\"', '"')
                       for word, macro in re.findall(r'"((?:[^"\\]|\\.)*)"|([A-Z_]+)', value))

    found = {name: resolved(value) for name, value in raw.items() if name.startswith(("CAUSE_", "FIX_"))}
    for name, value in found.items():
        if name.startswith("FIX_") and "; " in value:
            raise ValueError(f"{name} would be taken apart at its semicolon")
    return found


_texts = _read_texts()


def text(name, *values):
    """A text of dbus/causes.h with values in the place of its conversions; "…" stands for any."""
    rest = list(values)
    result = re.sub(r"%(?:\d\$)?[-0-9.]*z?[sudo]", lambda _: str(rest.pop(0)) if rest else "…", _texts[name])
    if rest:
        raise ValueError(f"{name} has no place for {rest}")
    return result.removesuffix(".")


class Fault:
    """
    row, status, found, fix: what Doctor says. launch: what becomes of a launch. step: the row of the chain in which the
    start ends, in the same words. also: other rows that change, and their status, as a consequence that has words of
    its own. users: for whom. where: what PATH, directory and so on the caller has: options of Lab.run().
    mend: does what fix says; without it lab.restore() does, as an installation does. after: rows that are not as before
    then, though nothing is in the way any more. bus: the service can be asked. slow: ask no more often than is needed.
    """

    def __init__(self, inject, row, status, found, fix, launch, users=BOTH, step=None, also=(), mend=None, after=(), where=None,
                 bus=True, slow=False):
        self.inject, self.name, self.words = inject, inject.__name__, inject.__doc__
        self.row, self.status, self.found, self.fix = row, status, found, fix
        self.launch, self.users, self.step = launch, users, step
        self.also, self.mend, self.after, self.where, self.bus, self.slow = dict(also), mend, dict(after), where, bus, slow


def fault(row, status, found, fix="", launch=REFUSED, **more):
    def register(function):
        FAULTS.append(Fault(function, row, status, found, fix, launch, **more))
        return function
    return register


def because(name, *values, fixed=None, fix=()):
    """Cause and fix of that name; fixed: another fix's name. values, fix: what stands in them."""
    return {"found": text(f"CAUSE_{name}", *values), "fix": text(f"FIX_{fixed or name}", *fix)}


def quoted(lab, fix):
    """Do what stands between quotes."""
    command = re.search(r"'(?:sudo )?([^']*)'", fix).group(1)
    lab.run(["/bin/sh", "-c", command], ROOT, cwd="/").ok()


def unquoted(lab, fix):
    lab.run(["/bin/sh", "-c", fix.replace("sudo ", "")], ROOT, cwd="/").ok()
