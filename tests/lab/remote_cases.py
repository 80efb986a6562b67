# SPDX-License-Identifier: MIT
"""`claude-sandbox -H`: another machine's service, over what stands where ssh does."""

import json
import os

import machine
from case import SANDBOX, equal, holds, test
from exposure import Agent
from machine import ALICE, BOB

# Says how it was started, on its stderr, then is the other end of the connection.
SSH = """#!/bin/bash
printf '%s|' "$@" "PATH=$PATH" "ASK=$SSH_ASKPASS$SSH_ASKPASS_REQUIRE" >>/run/lab-ssh
shift $(($# - 1))
exec "$1"
"""


def far(lab, *words, user=ALICE, program=SSH, **options):
    machine.write("/run/lab-ssh", "", 0o666)
    lab.undo.append(lambda: os.unlink("/run/lab-ssh"))
    lab.replace("/usr/bin/ssh", program.encode(), 0o755)
    try:
        result = lab.run([SANDBOX, *words], user, **options)
        with open("/run/lab-ssh", encoding="utf-8") as f:
            return result, f.read().split("|")[:-1]
    finally:
        lab.undo.pop()()
        lab.undo.pop()()
        lab.undo.pop()()


@test(60, needs="bus")
def verbs_ask_another_machine(lab):
    """Each verb that asks the service says over ssh what it says here; the current directory counts for nothing."""
    with Agent(lab, "shell", ALICE) as held:
        for words in (["sessions"], ["show"], ["exposure", held.id[:4]], ["routes"], ["ports"], ["denied"],
                      ["why", "10.0.0.1"], ["allow-ip", "list"], ["policy"], ["log"], ["version"]):
            near = lab.run([SANDBOX, *words, "--json"], ALICE).ok()
            there, said = far(lab, "-H", "root@far.example:22", *words, "--json", cwd="/")
            equal(there.ok().err, b"", words)
            if words != ["log"]:
                # A command to be typed is one for that machine.
                equal(json.loads(there.out.replace(b"-H root@far.example:22 ", b"")), json.loads(near.out), words)
                holds(words[0] != "why" or b"claude-sandbox -H root@far.example:22 allow-ip add" in there.out, there.out)
            equal(said[:-2], ["-xT", "-p", "22", "--", "root@far.example", "systemd-stdio-bridge"])
        there, _ = far(lab, "--host=far", "stop", held.id[:5])
        equal(there.ok().out, f"stopped {held.id}\n".encode())
        holds(held.id not in lab.run([SANDBOX, "sessions"], ALICE).ok().out.decode(), "stopped there")


@test(60, needs="bus")
def another_machine_sees_who_logs_in(lab):
    with Agent(lab, "shell", ALICE):
        there, _ = far(lab, "-H", "far", "sessions", "--json", user=BOB)
        equal(json.loads(there.ok().out), [])


@test(60, needs="bus")
def ssh_is_the_systems(lab):
    """No planted directory is looked into, and no planted program asks for the password."""
    workspace = lab.workspace(ALICE)
    planted = f"{workspace}/ssh"
    machine.write(planted, b"#!/bin/sh\ntouch ~/PWNED\n", 0o755, ALICE)
    try:
        env = lab.environment(ALICE, PATH=f"{workspace}:/usr/bin", SSH_ASKPASS=planted, SSH_ASKPASS_REQUIRE="force")
        there, said = far(lab, "-H", "far", "policy", env=env)
        there.ok()
        holds(not os.path.exists(f"{ALICE.home}/PWNED"), "a planted ssh ran")
        equal(said[-2:], ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "ASK="])
    finally:
        os.unlink(planted)


@test(60, needs="bus")
def another_machine_that_does_not_answer(lab):
    there, _ = far(lab, "-H", "far", "sessions", program="#!/bin/sh\necho 'no route' >&2\nexit 255\n")
    equal((there.status, there.out), (125, b""))
    holds(there.err.startswith(b"no route\n") and b"no system bus answers over ssh at far;" in there.err, there)
    lab.hide("/usr/bin/ssh")
    lab.run([SANDBOX, "-H", "far", "sessions"], ALICE).refused(125, "/usr/bin/ssh", "openssh-client")


@test(needs="bus")
def verbs_of_this_machine(lab):
    for words in (["shell"], ["install", "--list"]):
        lab.run([SANDBOX, "-H", "far", *words], ALICE).refused(2, "takes no -H", "log in there")
    lab.run([SANDBOX, "-H", "far", "why", "/etc"], ALICE).refused(2, "far", "claude-sandbox why")
    lab.run([SANDBOX, "-H", "-oProxyCommand=touch /tmp/x", "sessions"], ALICE).refused(2, "[USER@]HOST[:PORT]")
