# SPDX-License-Identifier: MIT
"""From a fresh machine to a session, as a newcomer does it."""

import re

from case import Session, equal, has, holds, test


@test(smoke=True)
def ends_well(machine):
    """A person with sudo, logged in, types one line and answers for the password; it ends with 0 and a jail that works."""
    before = machine.shell("ls -A /tmp | grep project; true").out
    program = machine.login("alice", "cd claude-sandbox && sudo ./quickstart; echo \"ended-$?\"", terminal=True)
    program.expect("password for alice")
    program.type("alice-pw\n")
    said = program.expect("ready. From now on:")
    has(said, "claude-sandbox doctor:", " 0 wrong", "claude-sandbox verify:")
    program.expect("$ ")
    program.type("test \"$IS_SANDBOX\" = 1 && echo jailed-$((40 + 2)); exit\n")
    program.expect("jailed-42")
    program.expect("ended-")
    program.wait()
    equal(re.search(r"ended-(\d+)", program.out)[1], "0", program.tail())
    equal(before, "", "directories of an earlier run")


@test(smoke=True)
def doctor_finds_nothing_wrong(machine):
    """As a person, and as root."""
    for who in ("alice", "root"):
        result = machine.person(who, "mkdir -p project; cd project; claude-sandbox doctor")
        equal(result.status, 0, result)
        holds(result.out.rstrip().endswith(" 0 wrong"), result)


@test(smoke=True)
def verify_and_probes(machine):
    """Nothing fails and nothing gets out, as a person and as root; a slow machine is no reason."""
    for who in ("alice", "root"):
        result = machine.person(who, "mkdir -p project; cd project; claude-sandbox verify --probes shell")
        equal(result.status, 0, result)


@test(smoke=True)
def a_session(machine):
    """It starts, its agent reaches the internet by name and no internal machine, and its exit status comes out."""
    session = Session(machine)
    has(session.ask("exec 3<>/dev/tcp/name.example/7007; cat <&3"), "hello from 93.184.216.34")
    for address in ("192.168.77.1", "10.1.2.3", "169.254.169.254"):
        holds("hello" not in session.ask(f"exec 3<>/dev/tcp/{address}/7007 && cat <&3"), address)
    rows = machine.person("alice", "claude-sandbox denied --json").ok().out
    has(rows, "192.168.77.1", "10.1.2.3", "169.254.169.254")
    equal(session.end(), 3)
    session.is_gone()
