# SPDX-License-Identifier: MIT
"""
Each part of the denial left out, one at a time: the launch is refused. And with the filter and the self-test both
left out, the ways round the routes lead out: the probes of reach_cases would have seen them.
"""

import errno
import os

import machine
import network
from case import Skip, equal, holds, test, wait_for
from machine import ALICE, ROOT
from network_cases import reach
from reach_cases import arrived, inside, quiet

BOTH = (ALICE, ROOT)
SESSION = "/usr/libexec/claude-sandbox/session"
SABOTAGE = machine.TOOLS + "/session-sabotage"
# steps that may fail with a warning: without them less is reachable, never more
SOFT = {"forwarder", "allow-ip"}


def sabotage(lab, *words):
    """The session with these parts left out, until the test ends."""
    with open(SABOTAGE, "rb") as f:
        lab.replace(SESSION, f.read(), 0o755)
    lab.replace("/run/lab-sabotage", "\n".join(words) + "\n")


def steps(lab):
    if not os.path.exists(SABOTAGE):
        raise Skip("the program is not built")
    return lab.run([SABOTAGE, "--steps"], ROOT).ok().out.decode().splitlines()


@test(60, needs="bus")
def nothing_left_out_works(lab):
    """The program of these tests is the session as long as nothing is left out."""
    steps(lab)
    for user in BOTH:
        sabotage(lab)
        lab.shell("true", user).ok()
        lab.restore()


@test(120, needs="bus")
def each_step_left_out_refuses(lab):
    names = steps(lab)
    holds({"loopback", "address", "filter", "neighbour", "prohibits", "default"} <= set(names), f"the steps: {names}")
    lab.configure(f"allow-ip = {network.DEVICE}\n")
    for user in BOTH:
        for name in names:
            lab.configure(f"allow-ip = {network.DEVICE}\n")
            sabotage(lab, name)
            quiet(lab)
            result = lab.shell("echo STARTED", user)
            result.refused(125)
            holds(len(result.err) > 40, f"{user}: without {name} the sentence says too little: {result.err!r}")
            lab.restore()
            wait_for(lambda: not lab.sessions(), "nothing of it stays")


@test(60, needs="bus")
def mounts_that_cannot_be_looked_at_refuse(lab):
    """No agent starts in a jail that was not compared with the plan."""
    steps(lab)
    for user in BOTH:
        sabotage(lab, "no-jail-root")
        lab.shell("echo STARTED", user).refused(125, "mounts cannot be looked at", os.strerror(errno.EACCES))
        lab.restore()
        wait_for(lambda: not lab.sessions(), "nothing of it stays")


@test(120, needs="bus")
def tricks_work_without_the_filter(lab):
    """Proof that the probes of the other tests would see a hole."""
    steps(lab)
    internal = [network.INTERNAL["10.0.0.0/8"], network.INTERNAL["169.254.0.0/16"], network.NEIGHBOUR]
    for user in BOTH:
        sabotage(lab, "filter", "reverse-path", "no-self-test", "no-read-back")
        quiet(lab)
        token = f"open-{user}"
        rows = reach(lab, internal, token, inside(lab, user), limit=1000)
        lab.restore()
        reached = {(row[0], row[1]) for row in rows if row[4] == "reached"}
        for way in (("tcp", "bindtodevice"), ("tcp", "bindtoifindex"), ("udp", "bindtodevice"), ("udp", "bindtoifindex"),
                    ("udp", "unicast-if"), ("udp", "pktinfo")):
            holds(way in reached, f"{user}: {way} leads nowhere even without the filter: {sorted(reached)}")
        notes = arrived(lab, token)
        holds(any(note[1] in internal for note in notes), f"{user}: the other side noted {notes}")
        plain = [row for row in rows if row[1] == "plain" and row[4] == "reached"]
        equal(plain, [], f"{user}: the routes still refuse plain sockets")
