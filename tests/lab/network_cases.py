# SPDX-License-Identifier: MIT
"""
The lab's own network, before anything of the product is asked: every address that later must be refused can be
reached from the host, so that a refusal in a jail is the jail's.
"""

import json
import os

import network
from case import Skip, equal, holds, test
from machine import ALICE, PROBE


def reach(lab, addresses, token, run=None, limit=700):
    """[(protocol, trick, device, address, result, msec)] from the probe; run: how it is started."""
    words = [PROBE, "reach", str(limit), token, *addresses]
    result = (run or lab.run)(words, limit=60)
    equal(result.status, 0, f"the probe itself: {result!r}")
    return [tuple(line.split()) for line in result.out.decode().splitlines()]


@test()
def other_machines_answer(lab):
    """From the host every other machine is reached by TCP and UDP."""
    wanted = [network.PUBLIC, network.PUBLIC_SECOND, network.DEVICE, network.GATEWAY, network.NEIGHBOUR,
              network.NEIGHBOUR_SECOND, network.HOST, network.HOST_SECOND, network.LOOPBACK,
              *network.INTERNAL.values()]
    rows = reach(lab, wanted, "plain")
    for address in wanted:
        for protocol in ("tcp", "udp"):
            found = [row[4] for row in rows if row[:4] == (protocol, "plain", "-", address)]
            equal(found, ["reached"], f"{protocol} to {address}")


@test()
def groups_arrive(lab):
    """A datagram to a group or to everybody arrives at the other machines of the subnet."""
    lab.network.inet.take()
    reach(lab, [network.MULTICAST, network.MULTICAST_SITE, network.BROADCAST, "203.0.113.255"], "group")
    notes = lab.network.inet.take()
    for address in (network.MULTICAST, network.MULTICAST_SITE, network.BROADCAST, "203.0.113.255"):
        holds(any(note[1] == address and note[3].startswith("group") for note in notes), f"nothing came to {address}")


@test()
def names_resolve(lab):
    result = lab.run([PROBE, "lookup", "public.example", network.LOOPBACK_STUB])
    equal(result.out, b"93.184.216.34\n")
    equal(lab.run([PROBE, "lookup", "nothing.example", network.LOOPBACK_STUB]).status, 1)


@test()
def ipv6_answers(lab):
    rows = reach(lab, [network.PUBLIC6, network.INTERNAL6, network.GATEWAY6, "::1"], "six")
    for address in (network.PUBLIC6, network.INTERNAL6, network.GATEWAY6, "::1"):
        for protocol in ("tcp", "udp"):
            found = [row[4] for row in rows if row[:4] == (protocol, "plain", "-", address)]
            equal(found, ["reached"], f"{protocol} to {address}")


@test()
def nothing_else_is_linked(lab):
    """The two namespaces hang together and on nothing else."""
    links = {link["ifname"] for link in json.loads(lab.run(["/usr/sbin/ip", "-j", "link"]).out)}
    equal(links, {"lo", "up0", "up1"})
    holds(lab.network.inet.process != os.getpid(), "inet is another process")


@test()
def users_are_apart(lab):
    result = lab.run(["/usr/bin/id"], user=ALICE)
    equal(result.out, b"uid=4001(alice) gid=4001(alice) groups=4001(alice)\n")
    equal(lab.run(["/bin/cat", "/etc/shadow"]).status, 1)
    equal(lab.run(["/bin/ls", "/home/bob"]).status, 2)
    if not os.path.exists("/dev/net/tun"):
        raise Skip("no tun device could be made")
