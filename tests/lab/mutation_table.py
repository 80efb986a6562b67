# SPDX-License-Identifier: MIT
"""docs/mutation.md: written by mutation_cases.py, and read back by it."""

import re

HEAD = """\
# What Verify notices

Written by `tests/lab/mutation_cases.py` (docs/hacking.md says how). Each line is one change to what a session does,
while Verify expects what the session's plan says. The last two columns name the first row of Verify that fails, in a
session of an ordinary user's and in one of root's. *refused*: such a session does not start. Empty: there is nothing
to change there. A letter refers to the end of this document, where it says why nothing can notice.

One session of a user's is changed once more with Verify beside its agent: each mount and flag of bwrap's has to be
noticed there too, but for what the agent may have changed itself since, its private directories and links.
"""

# group: (title, what the columns hold, the text before)
GROUPS = {
    "entry": ("Mounts", ("path", "is", "of"), """\
The plan's entries (`service/plan/mounts.c`), for every profile. *dropped*: not mounted. *writable*: read-write in place
of read-only. *the machine's*: what the machine has there, in place of what hides it. *another's*: another object of the
same type. *other bytes*: a file or link with another content. *looser mode*: with rights for others."""),
    "variable": ("Variables", ("name",), "The plan's variables (`service/plan/environment.c`)."),
    "foreign variable": ("Variables of others", ("name",), "What the environment of an agent must not have."),
    "flag": ("bwrap's flags", ("flag",), "What stands before the mounts (`service/plan/bwrap-args.c`)."),
    "devices": ("Modes of devices", ("what",), "In sessions of root's (`service/session/device-modes.h`)."),
    "anchor": ("Anchors", ("place",), """\
What keeps a place in every mount namespace that an agent makes (`service/session/anchors.c`). Root's agents make none:
there the filter refuses it, which is a row below."""),
    "orders": ("Orders to init", ("order",), "`service/link/report.h`."),
    "init": ("init itself", ("what",), "`service/inside/init.c`."),
    "step": ("Steps of the denial", ("step",), """\
`service/net/denial-steps.c`. The self-test and the read-back at the start refuse such a session; here both are left out.
*read back*: Verify is told what the session reads back by netlink. *in the jail*: it is not, and sees by itself."""),
    "route": ("Routes", ("destination", "verdict", "why"), """\
The rows of the table (`service/plan/routes.c`), in the same two ways. A denial is a prohibit, with a route to the ledger
before it; *dropped* does without both, so that the destination is reached by the default, *narrower* leaves half of it
out, and *opened* has a way out in their place. Where only one of the two is missing the other still refuses and nothing
passes (without the ledger's route only the explanation is lost): it is noticed by what the table of routes holds, not by
what can be reached."""),
    "pasta": ("pasta's options", ("option",), "`service/session/pasta.c`."),
    "filter": ("The filter, by name", ("call, argument: condition",), """\
`service/inside/filter.c`, the part that libseccomp writes. *by 64 bits*: what stands above the 32 bits that the kernel
reads hides it."""),
    "filter architecture": ("The filter, other architectures", ("architecture",), "Its calls are let through."),
    "filter program": ("The filter, by number", ("instruction",), "The part that is written by hand."),
    "filter load": ("The filter as a whole", ("part",), ""),
}

# What no row can notice, and why nothing is lost. Few: (group, what, how, of root or None for both, reason).
_REASONS = [
    ("variable", r"SECRET_TOKEN", r"other value", None,
     "What `pass-env` lets through may be a secret: Verify is told its name, and its value to nobody."),
    ("flag", r"--unshare-user|--cap-drop ALL", r"dropped", False,
     "A bwrap that is not started by root makes a user namespace, and drops all capabilities, without being told."),
    ("flag", r"--die-with-parent", r"dropped", None,
     "The second lock of two: init ends the jail by itself when the session's socket closes, and what a process is to die of"
     " nobody else can see."),
    ("entry", r"/proc\tbind ro\tprocfs", r"dropped", None,
     "The machine's /proc comes along with /, read-only like it: the entry says what is there."),
    ("entry", r".*\tbind masked\t.*", r"writable", True,
     "What covers is /dev/null, and root's sessions make all of /dev read-only before bwrap sees it: see Modes of devices."),
    ("devices", r"/dev is read-only to bwrap", r"dropped", True,
     "The second lock of two: whatever agents do not write is read-only to bwrap."),
    ("anchor", r".*", r"dropped", True,
     "The second lock of two: the filter lets root's agents make no namespace in which an anchor would be needed: see Orders to"
     " init."),
    ("init", r"no new privileges", r"dropped", None,
     "The session has set it before, and so has bwrap: it cannot be taken back."),
    ("step", r"loopback", r"dropped, in the jail", None,
     "pasta brings the loopback device up as well. Without a wire the routes, which name an address of that device, are not there."),
    ("step", r"forwarder|allow-ip", r"dropped, in the jail", None, "An opening that is missing lets nothing out."),
    ("pasta", r"--(userns|netns) .*", r"dropped", None,
     "Without it pasta cannot join, and is told the namespaces in its other way, by the holder's process."),
    ("route", r".*\t(dns|allow)\t.*", r"dropped, in the jail", None, "An opening that is missing lets nothing out."),
    ("filter", r"socket(pair)? .*", r"by 64 bits", None,
     "A family with more above its 32 bits is larger than any that is held: the rule for those refuses it."),
    ("filter", r"fcntl64 .*", r"by 64 bits", None, "Programs that have this call have arguments of 32 bits."),
    ("filter program", r"instruction \d+: if (= 0xffffffff|>= 0xf0000)", r"never", None,
     "An exception from a refusal: without it the filter is stricter."),
    ("filter architecture", r"architecture 0x4000003e", r"let through", None,
     "The numbers of x32 are refused by the part of the filter that is written by hand too."),
]

_committed = {}


def _row(cells):
    return "| " + " | ".join(cells) + " |"


def _cell(text):
    return text.replace("|", "\\|")


def read(path):
    """What was found when the document was written."""
    group = None
    titles = {title: name for name, (title, _, _) in GROUPS.items()}
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        if line.startswith("## "):
            group = titles.get(line[3:])
        elif line.startswith("| ") and group and not line.startswith("| ---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            what = "\t".join(cell.strip("`") for cell in cells[:-3])
            for root, cell in ((False, cells[-2]), (True, cells[-1])):
                _committed[(group, what, cells[-3]), root] = cell


def committed(key, root):
    """The outcome that the document has for it, or None."""
    group, what, how = key
    outcome = _committed.get(((group, _cell(what), how), root))
    return None if not outcome else "" if outcome in LETTERS else outcome


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def reason(key, root):
    """Why nothing can notice it, or None."""
    for group, what, how, of_root, words in _REASONS:
        if key[0] == group and re.fullmatch(what, key[1]) and re.fullmatch(how, key[2]) and of_root in (None, root):
            return words
    return None


def without_use(found):
    """Reasons that nothing needs."""
    used = {reason(key, root) for (key, root), outcome in found.items() if outcome == ""}
    return [words for *_, words in _REASONS if words not in used]


def text(found):
    """found: {((group, what, how), of root): outcome}. Return: the document."""
    reasons = []
    parts = [HEAD]
    for group, (title, columns, words) in GROUPS.items():
        keys = []
        for key, _ in found:
            if key[0] == group and key not in keys:
                keys.append(key)
        if not keys:
            continue
        parts.append(f"\n## {title}\n")
        if words:
            parts.append(f"\n{words}\n")
        parts.append("\n" + _row([*columns, "change", "user", "root"]) + "\n" + _row(["---"] * (len(columns) + 3)) + "\n")
        for key in keys:
            cells = [f"`{_cell(part)}`" if number == 0 else _cell(part) for number, part in enumerate(key[1].split("\t"))]
            outcomes = []
            for root in (False, True):
                outcome = found.get((key, root))
                if outcome == "":
                    words = reason(key, root) or "?"
                    if words not in reasons:
                        reasons.append(words)
                    outcome = LETTERS[reasons.index(words)]
                outcomes.append(outcome or "")
            parts.append(_row([*cells, key[2], *outcomes]) + "\n")
    for key, _ in found:
        if key[0] not in GROUPS:
            raise AssertionError(f"the document has no part for {key[0]}")
    if reasons:
        parts.append("\n## What nothing can notice\n\n")
        parts += [f"- {LETTERS[number]}: {words}\n" for number, words in enumerate(reasons)]
    return "".join(parts)
