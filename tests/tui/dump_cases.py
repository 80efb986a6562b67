# SPDX-License-Identifier: MIT
"""`--dump`: views without a screen."""

import json
import os

from case import SANDBOX, equal, holds, test
from machine import ALICE, BOB
from window import TUI, Session, StandIn

PROBE = "{ : 3<>/dev/tcp/10.1.0.5/80; } 2>/dev/null"
VIEWS = ["sessions", "exposure", "routes", "denied", "allow-ip", "policy", "help"]


def dump(lab, *words, user=ALICE):
    return lab.run([TUI, "--dump", *words], user)


def objects(lab, *words, user=ALICE):
    return json.loads(dump(lab, *words, "--json", user=user).ok().out)


@test(needs="bus")
def every_view_is_printed(lab):
    lab.configure("allow-ip = 10.9.0.1 # printer\nlocal-port = 8080\n")
    with Session(lab, PROBE) as session:
        seen = {view: dump(lab, view).ok().out.decode() for view in VIEWS}
        for view, words in {"sessions": session.id, "exposure": "the workspace", "routes": "10.0.0.0/8", "denied": "10.1.0.5",
                            "allow-ip": "printer", "policy": "egress-jail", "help": "quit"}.items():
            holds(words in seen[view], f"{view} has {words!r}: {seen[view]}")
            holds("\x1b" not in seen[view], f"{view} has no escape code")
        holds("reason" in seen["exposure"].lower() and "10.9.0.1" in seen["routes"], "columns are there")
        # the sentence, an empty line, the headings
        lines = seen["exposure"].split("\n")
        holds("variables." in lines[0] and lines[1] == "" and lines[2].startswith("PATH"), seen["exposure"])


@test(needs="bus")
def programs_get_what_the_command_says(lab):
    with Session(lab, PROBE) as session:
        command = json.loads(lab.run([SANDBOX, "exposure", session.id, "--json"]).ok().out)
        found = objects(lab, "exposure", session.id)
        equal([row["path"] for row in found], [row["path"] for row in command["paths"]]
              + [row["name"] for row in command["variables"]])
        equal([row["mode"] for row in found if row["kind"] != "variable"], [row["mode"] for row in command["paths"]])
        equal(sorted(found[0]), ["differs", "kind", "mode", "origin", "path", "reason"])

        command = json.loads(lab.run([SANDBOX, "denied", session.id, "--json"]).ok().out)
        found = objects(lab, "denied", session.id[:5])
        equal([(row["address"], row["port"], row["count"], row["last_usec"]) for row in found],
              [(row["address"], row["port"], row["count"], row["last_usec"]) for row in command])
        command = json.loads(lab.run([SANDBOX, "routes", session.id, "--json"]).ok().out)
        equal([row["destination"] for row in objects(lab, "routes")], [row["destination"] for row in command])
        command = json.loads(lab.run([SANDBOX, "sessions", "--json"]).ok().out)
        equal([(row["id"], row["jailed"]) for row in objects(lab, "sessions")], [(row["id"], row["jailed"]) for row in command])
        equal(command[0]["jailed"], True)
        equal(objects(lab, "policy"), json.loads(lab.run([SANDBOX, "policy", "--json"]).ok().out))


@test(needs="bus")
def which_session_is_meant(lab):
    dump(lab, "exposure").refused(1, "there is no session", program="claude-sandbox-tui")
    with Session(lab):
        result = dump(lab, "exposure").ok()
        equal(result.err, b"", "the only one needs no word")
    with Session(lab) as one, Session(lab, workspace=lab.workspace(ALICE, "other")) as two:
        # the newest, and that is said
        result = dump(lab, "exposure")
        equal(result.status, 0, repr(result))
        holds(b"/home/alice/other" in result.out and b"/home/alice/project" not in result.out, repr(result))
        equal(result.err.decode(), f"claude-sandbox-tui: of 2 sessions the newest is shown, the shell session {two.id} of alice "
              "in /home/alice/other; --session ID shows another\n")
        for session, place in ((one, "project"), (two, "other")):
            paths = [row["path"] for row in objects(lab, "exposure", session.id)]
            holds(f"/home/alice/{place}" in paths, f"{session.id} is in {place}: {paths}")
        result = dump(lab, "exposure", "zzzz")
        equal((result.status, result.err.count(b"\n")), (1, 1), repr(result))
        # another user's is none
        result = dump(lab, "exposure", one.id, user=BOB)
        equal(result.status, 1, repr(result))
        equal(objects(lab, "sessions", user=BOB), [])


@test(needs="bus")
def nobody_answers(lab):
    lab.stop_service()
    lab.hide("/usr/share/dbus-1/system-services/org.claudesandbox1.service")
    lab.run(["/usr/bin/busctl", "call", "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "ReloadConfig"], cwd="/").ok()
    lab.undo.append(lambda: lab.run(["/usr/bin/busctl", "call", "org.freedesktop.DBus", "/", "org.freedesktop.DBus",
                                     "ReloadConfig"], cwd="/"))
    result = dump(lab, "sessions")
    equal((result.status, result.out, result.err.count(b"\n")), (125, b"", 1), repr(result))


@test(needs="bus")
def a_strange_workspace_is_escaped(lab):
    place = f"{ALICE.home}/x\x1b[31m\udcff\u202e"
    os.mkdir(place)
    os.chown(place, ALICE.uid, ALICE.gid)
    lab.undo.append(lambda: os.rmdir(place))
    with Session(lab, workspace=place) as session:
        for view in ("sessions", "exposure"):
            out = dump(lab, view).ok().out
            holds(b"\\x1b[31m\\xff\\xe2\\x80\\xae" in out, f"{view}: {out!r}")
            holds(b"\x1b" not in out and b"\xff" not in out and b"\xe2\x80\xae" not in out, f"{view}: {out!r}")
            holds(b"\\\\xff" in dump(lab, view, "--json").ok().out, "as the command has it")
        holds(session.id in dump(lab, "sessions").out.decode(), "it is listed")


@test(needs="bus")
def letters_of_other_languages(lab):
    """As they are where the reader takes UTF-8, escaped where not; in the sentence above the table too."""
    place = lab.workspace(ALICE, "\u00fcbung-\u65e5\u672c")
    lab.undo.append(lambda: os.rmdir(place))
    with Session(lab, workspace=place) as session:
        for view in ("sessions", "verify"):
            for locale, wanted in (("C.UTF-8", place.encode()), ("C", b"/home/alice/\\xc3\\xbcbung-\\xe6\\x97\\xa5")):
                result = lab.run([TUI, "--dump", view, session.id], env=lab.environment(ALICE, LC_ALL=locale)).ok()
                holds(wanted in result.out, f"{view}, {locale}: {result.out!r}")


@test(needs="bus")
def programs_get_whole_numbers(lab):
    """Where people get what a column has room for."""
    StandIn(lab, 4, 50)
    holds(b" 39k " in dump(lab, "denied").ok().out, "for people")
    equal(max(row["count"] for row in objects(lab, "denied")), 199 * 199 + 1)


@test(needs="bus")
def wrong_words_are_usage(lab):
    for words in (["nosuch"], [], ["sessions", "a", "b", "c"]):
        result = dump(lab, *words)
        equal((result.status, result.out), (2, b""), repr(result))
        holds(result.err.startswith(b"claude-sandbox-tui: "), repr(result))
        equal(result.err.count(b"\n"), 1, repr(result))
