# SPDX-License-Identifier: MIT
"""The audit log, as `claude-sandbox log` shows it."""

import datetime
import json
import os
import signal
import time

import bus
import machine
from bus_cases import Held
from case import CONFIG, SANDBOX, equal, holds, test, wait_for
from machine import ALICE, BOB, ROOT

LOG = "/var/log/claude-sandbox"


def events(lab, user=ALICE, *arguments):
    return json.loads(lab.run([SANDBOX, "log", "--json", *arguments], user).ok().out)


@test(needs="bus")
def the_log_tells_of_a_session(lab):
    """Who, what, where, how strong, how it ended; to its user and to root."""
    with Held(lab) as held:
        session = held.id
        wait_for(lambda: [e["event"] for e in events(lab, ALICE, session)] == ["launch", "posture"], "the posture")
        lab.run([SANDBOX, "stop", session], ROOT).ok()
    found = events(lab, ALICE, session)
    equal([e["event"] for e in found], ["launch", "posture", "stop", "exit"])
    equal({(e["session"], e["uid"], e["user"], e["agent"]) for e in found}, {(session, 4001, "alice", "shell")})
    equal(found[0]["workspace"], lab.workspace(ALICE))
    holds("network=jailed" in found[1]["posture"] and "seccomp=on" in found[1]["posture"], found[1])
    equal(found[2]["by"], "root")
    equal((found[3]["status"], found[0]["widened"]), ("signal 1", None))
    equal(events(lab, ROOT, session), found)
    equal(events(lab, BOB, session), [])
    text = lab.run([SANDBOX, "log", session]).ok().out.decode()
    holds(text.splitlines()[0].split() == ["TIME", "EVENT", "SESSION", "USER", "DETAILS"], text)
    equal(len(text.splitlines()), 5)


@test(needs="bus")
def the_log_is_no_users_file(lab):
    """Only root reads the files, and no agent sees more of them than its user."""
    lab.shell("true").ok()
    for user in (ALICE, BOB):
        equal(lab.run(["/bin/ls", LOG], user).status, 2)
    equal(lab.shell(f"ls {LOG} 2>/dev/null").status, 2)
    path = f"{LOG}/{ALICE.uid}.log"
    before = lab.run(["/bin/cat", path], ROOT).ok().out
    lab.shell(f"echo x >>{path}; rm -f {LOG}/*; true", ROOT)
    found = lab.run(["/bin/cat", path], ROOT).ok().out
    holds(found.startswith(before) and b"\nx" not in found, "root's agent wrote the log")


@test(60, needs="bus")
def the_log_is_followed(lab):
    """-f shows what happens, once, also past the death of the service; and waits without a wake-up."""
    lab.shell("true").ok()
    follower = lab.start([SANDBOX, "log", "-f"], ALICE, stdout=-1, stderr=-1)
    lines = []

    def read(word):
        """Lines up to one with this word."""
        while True:
            line = follower.stdout.readline().decode()
            holds(line, "the follower has ended")
            lines.append(line)
            if word in line:
                return
    try:
        with Held(lab) as held:
            read(f"posture   {held.id}")
            lab.stop_service(signal.SIGKILL)
            read(f"adopted   {held.id}")
            lab.run([SANDBOX, "stop", held.id]).ok()
            read(f"exit      {held.id}")
            mine = [line for line in lines if held.id in line]
            equal([line.split()[1] for line in mine], ["launch", "posture", "adopted", "stop", "exit"], mine)
    finally:
        os.kill(follower.pid, signal.SIGINT)
        follower.communicate()
    equal(follower.returncode, -signal.SIGINT)
    follower = lab.start([SANDBOX, "log", "-f", "--json"], ALICE, stdout=-1, stderr=-1)
    try:
        lab.shell("true").ok()
        events = []
        while "exit" not in events:
            events.append(json.loads(follower.stdout.readline())["event"])     # each line is an object
    finally:
        os.kill(follower.pid, signal.SIGTERM)
        follower.communicate()
    zone = {"TZ": "EST5"}
    local, utc = (lab.run([SANDBOX, "log", *more], ALICE, env=lab.environment(ALICE, **zone)).ok().out.decode().splitlines()[-1].split()[0]
                  for more in ([], ["--utc"]))
    holds(local.endswith("-05:00") and utc.endswith("Z"), f"{local} {utc}")
    result = lab.run([SANDBOX, "log", "no/such"])
    result.refused(2, "no session's id")
    lab.run([SANDBOX, "log", "nosuch"]).refused(1, "whole id")


@test(needs="bus")
def the_log_holds_no_secrets(lab):
    """Arguments and values of variables, in launches that work and that are refused."""
    script = "true # SECRET-1"
    lab.shell(script, env=lab.environment(ALICE, TOKEN="SECRET-2")).ok()
    lab.run([SANDBOX, "shell", "-c", script], env=lab.environment(ALICE, CLAUDE_SANDBOX_NO_FORGE="SECRET-3"))
    lab.run([SANDBOX, "shell", "-c", script], env=lab.environment(ALICE, CLAUDE_SANDBOX_PASS_ENV="A=SECRET-4"))
    text = lab.run(["/bin/sh", "-c", f"cat {LOG}/*"], ROOT).out
    holds(b"SECRET" not in text and b"BadConfiguration" in text, text[-2000:])
    holds(bus.Bus.log().count("refused: uid 4001") >= 2, "the service's own log names them")


@test(needs="bus")
def what_is_looked_for_is_no_refusal(lab):
    """`verify` without a name asks for one agent after the other; a launch of one that is missing is told."""
    before = [e for e in events(lab) if e["error"] == "AgentMissing"]
    lab.run([SANDBOX, "verify", "codex"]).refused(125, "codex", "install")
    equal([e for e in events(lab) if e["error"] == "AgentMissing"], before, "looked for")
    holds(lab.run(["/usr/local/bin/codex"]).status == 127, "a launch")
    after = [e for e in events(lab) if e["error"] == "AgentMissing"]
    equal((len(after), after[-1]["agent"]), (len(before) + 1, "codex"), "refused")


@test(needs="bus")
def the_log_escapes_once(lab):
    """A name that looks escaped can be told from one that was, on the screen and in JSON."""
    name = b"a\\x1b\x1b[1m\xff"
    shown = "a\\\\x1b\\x1b[1m\\xff"
    path = os.fsencode(lab.workspace(ALICE)) + b"/" + name
    os.mkdir(path)
    lab.undo.append(lambda: os.rmdir(path))
    os.chown(path, ALICE.uid, ALICE.gid)

    def found():
        return [e["workspace"] for e in events(lab) if e["workspace"] and e["workspace"].endswith(shown)]
    before = len(found())
    lab.shell("true", cwd=path).ok()
    equal(len(found()), before + 1)
    for user in (ALICE, ROOT):
        text = lab.run([SANDBOX, "log"], user).ok().out
        holds(f"/{shown}\n".encode() in text and b"\x1b" not in text, text)


def changes(lab, *arguments, user=ROOT):
    """What the log has of addresses, as (change, address, comment, by, owner)."""
    return [tuple(e[key] for key in ("change", "address", "comment", "by", "owner")) for e in events(lab, user, *arguments)
            if e["event"] == "allow-ip"]


@test(60, needs="bus")
def hand_edits_are_told(lab):
    """Whether somebody watches, only a service is there, or none: once each, and nobody is named who is not known."""
    lab.configure("allow-ip = 10.1.2.3 # one\n")
    begin, others = len(changes(lab)), changes(lab, user=ALICE)

    def since():
        return changes(lab)[begin:]

    with Held(lab):
        machine.write(CONFIG, b"allow-ip = 10.1.2.4 # two \\\n", 0o644)
        wait_for(lambda: len(since()) == 2, "the edit is told")
        found = [e for e in events(lab, ROOT) if e["event"] == "allow-ip"][-1]
        equal((found["file"], found["written"]), (CONFIG, datetime.datetime.fromtimestamp(
            int(os.stat(CONFIG).st_mtime), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")))
    wait_for(lambda: not lab.sessions(), "the session's end")
    lab.stop_service(signal.SIGKILL)
    machine.write(CONFIG, b"allow-ip = 10.1.2.5\n", 0o644)
    edits = [("remove", "10.1.2.3", None, None, "root"), ("add", "10.1.2.4", "two \\\\", None, "root"),
             ("remove", "10.1.2.4", None, None, "root"), ("add", "10.1.2.5", None, None, "root")]
    equal(since(), edits)
    # what the service writes itself is told as that, and only once
    lab.run([SANDBOX, "allow-ip", "add", "10.1.2.6", "three"], ROOT).ok()
    lab.run([SANDBOX, "allow-ip", "remove", "10.1.2.5"], ROOT).ok()
    edits += [("add", "10.1.2.6", "three", "root", None), ("remove", "10.1.2.5", None, "root", None)]
    equal(since(), edits)
    # one that no launch would read opens nothing; without a file there is no owner
    machine.write(CONFIG, b"allow-ip = 10.1.2.7\nnonsense\n", 0o644)
    equal(since(), edits)
    os.unlink(CONFIG)
    lab.stop_service(signal.SIGKILL)
    equal(since(), edits + [("remove", "10.1.2.6", None, None, None)])
    equal(changes(lab, user=ALICE), others, "what an ordinary user is told of it")


@test(60, needs="bus")
def the_end_of_an_allowance_is_told(lab):
    """Of each once, also when its time was over while no service ran; nothing of what was closed or has no end."""
    with Held(lab) as held:
        for address, seconds in (("10.1.2.3", "1s"), ("10.1.2.4", "4s"), ("10.1.2.5", "4s"), ("10.1.2.6", None)):
            limit = ["--for", seconds] if seconds else []
            lab.run([SANDBOX, "allow-ip", "add", address, "--session", held.id, *limit], ROOT).ok()
        over = time.monotonic() + 4.2
        lab.run([SANDBOX, "allow-ip", "remove", "10.1.2.5", "--session", held.id], ROOT).ok()

        def ends():
            return [e[:2] + e[3:] for e in changes(lab, held.id, user=ALICE) if e[0] == "expire"]
        wait_for(lambda: ends() == [("expire", "10.1.2.3", None, None)], "the first end")
        lab.stop_service(signal.SIGKILL)
        wait_for(lambda: time.monotonic() > over, "the second one's time is over")
        equal(ends(), [("expire", "10.1.2.3", None, None), ("expire", "10.1.2.4", None, None)])
