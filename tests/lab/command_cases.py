# SPDX-License-Identifier: MIT
"""The command as a whole: its output, statuses and manual page, for every verb at once."""

import json
import os
import re
import signal
import subprocess

import machine
from authority_cases import reload
from case import SANDBOX, equal, holds, test, wait_for
from completion_cases import options_of, verbs_of_the_help
from forge_cases import TOKEN, tool
from machine import ALICE, ROOT
from remote_cases import SSH

PAGE = f"{machine.SOURCE}/docs/man/claude-sandbox.1.scd"
# A verb and what it needs to show something. {id}: of a session.
SHOWING = (["sessions"], ["show"], ["exposure"], ["routes"], ["ports"], ["denied"], ["why", "/etc"], ["why", "10.0.0.1"],
           ["allow-ip", "list"], ["policy"], ["log"], ["install", "--list"], ["version"])
SCRIPT = "(exec 3<>/dev/tcp/10.9.9.9/9) 2>/dev/null; echo ready; read line"


class Running:
    """A session that was denied something, with a descriptor and a port: each table of it has a row."""

    def __init__(self, lab):
        lab.configure("allow-ip = 10.1.2.3 # the printer\nlocal-port = 8123\n")
        self.process = lab.start([SANDBOX, "shell", "-c", SCRIPT], ALICE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        equal(self.process.stdout.readline(), b"ready\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate(b"\n", timeout=20)


def words_of_the_page():
    """What the table of JSON keys says of each verb."""
    with open(PAGE, encoding="utf-8") as f:
        text = f.read()
    rows = re.findall(r"^\|  ([a-z, -]+)\n:  ((?:.*\n   )*.*)", text[text.index("[[ *verb*"):text.index("# EXIT STATUS")], re.M)
    found = {verb: set(re.findall(r"(?<![\w\\])_([a-z][a-z_]*[a-z])_(?!\w)", words.replace("\\_", "_")))
             for names, words in rows for verb in names.split(", ")}
    found["show"] |= found["sessions"]                  # "as above"
    found["why"] |= found["routes"]
    return found


def keys_of(value):
    if isinstance(value, dict):
        return set(value).union(*[keys_of(item) for item in value.values()])
    return set().union(*[keys_of(item) for item in value]) if isinstance(value, list) else set()


@test(60, needs="bus")
def keys_are_documented(lab):
    """Every key that a verb writes is in the manual page's table."""
    page = words_of_the_page()
    with Running(lab):
        for words in SHOWING:
            result = lab.run([SANDBOX, "--json", *words], ALICE)
            holds(result.status == 0, result)
            value = json.loads(result.out)
            keys = keys_of(value)
            holds(keys or words == ["install", "--list"], f"{words} showed nothing: {result.out!r}")
            equal(sorted(keys - page[words[0]]), [], f"keys of {words} that the page does not have")
    tool(lab)
    value = json.loads(lab.run([SANDBOX, "gh-auth", "--json"], ALICE, data=TOKEN.encode()).ok().out)
    equal(set(value), page["gh-auth"])


@test(needs="bus")
def the_page_has_every_verb(lab):
    """In its synopsis, in its verbs, and each option of the help somewhere."""
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    synopsis, verbs = (page[page.index(f"# {name}\n"):page.index(f"# {end}\n")]
                       for name, end in (("SYNOPSIS", "DESCRIPTION"), ("VERBS", "OPTIONS")))
    for verb in verbs_of_the_help(lab):
        holds(re.search(rf"^\*claude-sandbox\*.* \*{verb}\*", synopsis, re.M), f"synopsis: {verb}")
        holds(re.search(rf"^(.*, )?\*{verb}\*", verbs, re.M), f"verbs: {verb}")
        for option in options_of(lab, verb):
            holds(f"*{option}" in page, f"{verb} {option}")


@test(60, needs="bus")
def output_that_goes_nowhere(lab):
    """A full disk is told, a reader that has gone is not; both are 125."""
    with Running(lab):
        for words in (*SHOWING, ["help"], ["--version"]):
            for more in ([], ["--json"]) if words[0] not in ("help", "--version") else ([],):
                with open("/dev/full", "wb") as full:
                    process = lab.start([SANDBOX, *words, *more], ALICE, stdout=full, stderr=subprocess.PIPE)
                    _, err = process.communicate(timeout=20)
                equal((process.returncode, err.count(b"\n")), (125, 1), f"{words} {err!r}")
                holds(b"the output cannot be written" in err, err)
                read, write = os.pipe()
                os.close(read)
                # As Python's children have it: the signal does not end them.
                process = lab.start(["/usr/bin/env", "--ignore-signal=PIPE", SANDBOX, *words, *more], ALICE, stdout=write,
                                    stderr=subprocess.PIPE)
                os.close(write)
                _, err = process.communicate(timeout=20)
                equal((process.returncode, err), (125, b""), words)
    result = lab.run(["/bin/bash", "-o", "pipefail", "-c", f"{SANDBOX} help | head -n 1"], ALICE)
    equal(result.err, b"")


@test(60, needs="bus")
def a_follower_whose_reader_goes(lab):
    """Ends at once, without a word, though nothing happens any more."""
    with Running(lab):
        for words in (["log", "-f"], ["log", "-f", "--json"], ["denied", "-f"], ["-H", "far", "log", "-f"]):
            if words[0] == "-H":
                machine.write("/run/lab-ssh", "", 0o666)
                lab.replace("/usr/bin/ssh", SSH.encode(), 0o755)
            process = lab.start([SANDBOX, *words], ALICE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            holds(process.stdout.readline(), words)
            process.stdout.close()
            # by SIGPIPE when it was writing just then
            status, err = process.wait(10), process.stderr.read()
            holds(status in (125, -signal.SIGPIPE) and not err, f"{words} {status} {err!r}")
            process.stderr.close()


@test(60, needs="bus")
def log_by_a_beginning(lab):
    """Of a session that has ended too."""
    def ends():
        rows = json.loads(lab.run([SANDBOX, "log", "--json"]).ok().out)
        return {row["session"] for row in rows if row["event"] == "exit"}

    wait_for(lambda: not lab.sessions(), "the end of what ran before")
    before = ends()
    lab.shell("true").ok()
    ended, = wait_for(lambda: ends() - before, "the last event")
    whole = json.loads(lab.run([SANDBOX, "log", "--json", ended]).ok().out)
    holds(whole and {row["session"] for row in whole} == {ended}, whole)
    equal(json.loads(lab.run([SANDBOX, "log", "--json", ended[:15]]).ok().out), whole)
    known = {row["session"] for row in json.loads(lab.run([SANDBOX, "log", "--json"]).ok().out)} - {None}
    for start in "abcdefghijklmnopqrstuvwxyz234567":
        n = sum(session.startswith(start) for session in known)
        result = lab.run([SANDBOX, "log", start])
        equal(result.status, 0 if n == 1 else 1, f"{start} {n} {result}")


@test(60, needs="bus")
def nobody_answers(lab):
    """Without a bus, or without the service: 125, cause and fix in one line, for every verb that asks."""
    verbs = [words for words in SHOWING if words[0] not in ("install", "version")] + [["stop", "abcd"]]
    lab.stop_service(9)
    lab.hide("/usr/share/dbus-1/system-services/org.claudesandbox1.service")
    lab.undo.append(lambda: reload(lab))
    reload(lab)
    for words in verbs:
        lab.run([SANDBOX, *words], ALICE).refused(125, "org.claudesandbox1.service is missing", "quickstart")
    lab.hide("/run/dbus/system_bus_socket")
    for words in verbs:
        lab.run([SANDBOX, *words], ALICE).refused(125, "no system bus answers", "start it")
    result = lab.run([SANDBOX, "version"], ALICE)
    equal((result.status, result.out.count(b"\n"), result.err.count(b"\n")), (1, 1, 1), result)


@test(60, needs="bus")
def usage_is_two(lab):
    """Nothing is asked of the service."""
    lab.hide("/run/dbus/system_bus_socket")
    for words, said in ((["sesions"], "did you mean 'sessions'?"), (["--jsn", "show"], "did you mean '--json'?"), ([], "a verb is missing"),
                        (["stop"], "needs ID"), (["show", "x", "y"], "one argument too many"), (["show", "XYZ"], "no session's id"),
                        (["policy", "--session", "x"], "no option"), (["show", "--", "--json"], "'--json' is no session's id"),
                        (["help", "shwo"], "did you mean 'show'?"), (["log", "a.c"], "no session's id")):
        lab.run([SANDBOX, *words], ALICE).refused(2, said)


@test(60, needs="bus")
def examples_of_the_page(lab):
    """Those of claude-sandbox(1), as they stand there; sudo, pass and the other machine are stand-ins."""
    with open(PAGE, encoding="utf-8") as f:
        text = f.read()
    examples = re.findall(r"^```\n(.*?)^```", text[text.index("# EXAMPLES"):], re.S | re.M)
    directory = lab.workspace(ALICE, "bin")
    for name, script in (("sudo", 'echo "$@"'), ("pass", f"echo {TOKEN}")):
        machine.write(f"{directory}/{name}", f"#!/bin/sh\n{script}\n", 0o755, ALICE)
    tool(lab)
    machine.write("/run/lab-ssh", "", 0o666)
    lab.replace("/usr/bin/ssh", SSH.encode(), 0o755)
    env = lab.environment(ALICE, PATH=f"{directory}:/usr/local/bin:/usr/bin:/bin")
    with Running(lab):
        outputs = [lab.run(["/bin/bash", "-euo", "pipefail", "-c", example], ALICE, env=env) for example in examples]
    outputs = [(example, result.ok().out.decode(errors="replace")) for example, result in zip(examples, outputs)]
    for part, wanted in (("install claude", "claude-sandbox install claude"), ("workspace", lab.workspace(ALICE)), ("id_ed25519", "not what is outside"),
                         ("192.168", "deny"), ('"rw"', lab.workspace(ALICE)), ("gh-auth", "stored the token"), ("-H admin", "WORKSPACE"),
                         ("findmnt", "IS_SANDBOX")):
        found = [out for example, out in outputs if part in example]
        holds(found and wanted in found[0], f"{part}: {found}")
    equal(len(outputs), 7)


@test(60, needs="bus")
def verbs_as_root(lab):
    """Root sees the sessions of all; nothing is asked, nothing is refused."""
    with Running(lab):
        for words in SHOWING:
            lab.run([SANDBOX, *words], ROOT, cwd="/").ok()
