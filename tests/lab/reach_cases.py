# SPDX-License-Identifier: MIT
"""What an agent reaches: the internet, and nothing else, whichever way it tries."""

import network
from case import equal, holds, test
from machine import ALICE, PROBE, ROOT
from network_cases import reach

BOTH = (ALICE, ROOT)
TRICKS = {"plain", "source", "dontroute", "lsrr", "mapped", "bindtodevice", "bindtoifindex", "unicast-if", "multicast-if",
          "mapped-device", "pktinfo"}
FORWARDERS = ("192.0.2.53", "198.51.100.53", "203.0.113.53")


def inside(lab, user, **options):
    """A function for reach(): the probe in the jail."""
    def run(words, limit=60):
        return lab.shell('exec "$@"', user, ["sh", *words], limit=limit, **options)
    return run


def quiet(lab):
    lab.network.inet.take()
    lab.network.host.take()


def arrived(lab, token):
    """What the other machines and the host itself noted of that token."""
    return [note for site in (lab.network.inet, lab.network.host) for note in site.take() if token in note[3]]


@test(60, needs="bus")
def internet_is_reached(lab):
    for user in BOTH:
        rows = reach(lab, [network.PUBLIC, network.PUBLIC_SECOND], "internet", inside(lab, user))
        for address in (network.PUBLIC, network.PUBLIC_SECOND):
            for protocol in ("tcp", "udp"):
                found = [row[4] for row in rows if row[:4] == (protocol, "plain", "-", address)]
                equal(found, ["reached"], f"{user}: {protocol} to {address}")


@test(120, needs="bus")
def everything_else_is_refused(lab):
    """Every denied range, the host's loopback, its own addresses, gateways and subnets, by every trick."""
    for user in BOTH:
        quiet(lab)
        token = f"denied-{user}"
        rows = reach(lab, network.DENIED, token, inside(lab, user), limit=1000)
        holds({row[1] for row in rows} >= TRICKS, "every trick was tried")
        holds({row[2] for row in rows} >= {"lo", "jail0"}, f"each interface was tried: {sorted({row[2] for row in rows})}")
        reached = [row for row in rows if row[4] == "reached"]
        # the jail's own loopback is the jail's: nothing listens there
        equal(reached, [], f"{user}: reached from inside")
        equal(arrived(lab, token), [], f"{user}: seen outside")


@test(60, needs="bus")
def refusals_come_at_once(lab):
    """A plain connection to a denied address fails within a quarter of a second with an error, it does not hang."""
    for user in BOTH:
        rows = reach(lab, network.DENIED, "quick", inside(lab, user), limit=3000)
        for row in rows:
            if row[1] == "plain" and row[0] == "tcp":
                holds(row[4].startswith("refused:") and int(row[5]) < 250, f"{user}: {row}")
            # the loopback is the jail's own; nobody answers a datagram to a group with an error (RFC 1122, 3.2.2)
            if row[1] == "plain" and row[0] == "udp" and row[3] not in (
                    network.LOOPBACK, network.LOOPBACK_STUB, network.MULTICAST, network.MULTICAST_SITE, network.BROADCAST):
                holds(row[4].startswith("refused:") and int(row[5]) < 250, f"{user}: {row}")


@test(60, needs="bus")
def allow_ip_is_reached(lab):
    """One device of a denied range, and a network of it; the rest of the range stays denied."""
    for user in BOTH:
        for entry in (network.DEVICE, network.DEVICE_NETWORK):
            lab.configure(f"allow-ip = {entry}  # the oscilloscope\n")
            quiet(lab)
            rows = reach(lab, [network.DEVICE, network.INTERNAL["10.0.0.0/8"]], "allowed", inside(lab, user))
            for protocol in ("tcp", "udp"):
                found = [row[4] for row in rows if row[:4] == (protocol, "plain", "-", network.DEVICE)]
                equal(found, ["reached"], f"{user}, {entry}: {protocol}")
            equal([row for row in rows if row[4] == "reached" and row[3] != network.DEVICE], [], f"{user}, {entry}")
            lab.restore()
        rows = reach(lab, [network.DEVICE], "not allowed", inside(lab, user))
        equal([row for row in rows if row[4] == "reached"], [], f"{user}: without the entry")


@test(60, needs="bus")
def narrower_denials_win(lab):
    """An allow-ip that holds the host's own address or subnet does not open these."""
    lab.configure("allow-ip = 203.0.0.0/16\n")
    quiet(lab)
    rows = reach(lab, [network.HOST, network.GATEWAY, network.NEIGHBOUR], "narrow", inside(lab, ALICE))
    equal([row for row in rows if row[4] == "reached"], [])
    equal(arrived(lab, "narrow"), [])


@test(60, needs="bus")
def names_resolve(lab):
    for user in BOTH:
        result = lab.shell("cat /etc/resolv.conf", user)
        lines = result.ok().out.decode().splitlines()
        servers = [line.split()[1] for line in lines if line.startswith("nameserver")]
        equal(len(servers), 1, f"{user}: {lines}")
        holds(servers[0] in FORWARDERS and servers[0] != "203.0.113.53", f"{user}: {servers[0]} is in no subnet of the host")
        holds("search corp.example" in lines and "options edns0" in lines, f"{user}: {lines}")
        result = lab.shell(f"{PROBE} lookup public.example {servers[0]}; {PROBE} lookup nothing.example {servers[0]}; "
                           "getent hosts public.example", user)
        words = result.out.decode().split()
        equal(words[0], "93.184.216.34", f"{user}: {result!r}")
        holds("93.184.216.34" in words[1:], f"{user}: through the resolver of libc: {result!r}")


@test(60, needs="bus")
def forwarder_serves_names_only(lab):
    """The forwarder's address answers port 53 and nothing else."""
    rows = reach(lab, list(FORWARDERS[:1]), "forwarder", inside(lab, ALICE))
    equal([row for row in rows if row[4] == "reached"], [])


@test(60, needs="bus")
def ipv6_finds_nothing(lab):
    addresses = [network.PUBLIC6, network.INTERNAL6, network.HOST6, network.GATEWAY6, "fe80::1", "ff02::1",
                 "::ffff:10.1.2.3", "64:ff9b::a01:203", "2002:a01:203::1"]
    for user in BOTH:
        quiet(lab)
        rows = reach(lab, addresses, "six", inside(lab, user), limit=1000)
        equal([row for row in rows if row[4] == "reached"], [], str(user))
        equal(arrived(lab, "six"), [], str(user))


@test(60, needs="bus")
def routes_cannot_be_changed(lab):
    """Nothing that an agent can do to its own network succeeds."""
    attempts = ["route add 10.0.0.0/8 dev jail0", "route del prohibit 10.0.0.0/8", "route replace default dev jail0",
                "link add tap9 type veth", "link set jail0 down", "address add 10.9.9.9/8 dev jail0",
                "neighbour add 10.1.2.3 lladdr 02:00:00:00:00:01 dev jail0", "rule add from all table 99",
                "tuntap add dev tap9 mode tap", "link set lo down"]
    script = "; ".join(f"ip {attempt} 2>/dev/null && echo DID {attempt}" for attempt in attempts) + "; echo tried"
    for user in BOTH:
        equal(lab.shell(script, user).ok().out, b"tried\n", str(user))
    equal(lab.shell(f"unshare -Ur bash -c {script!r}", ALICE).ok().out, b"tried\n", "as root of a nested namespace")


@test(60, needs="bus")
def no_tun_inside(lab):
    for user in BOTH:
        result = lab.shell("ls /dev", user).ok()
        holds(b"null" in result.out.split() and b"net" not in result.out.split(), f"{user}: {result.out!r}")


@test(60, needs="bus")
def own_loopback_works(lab):
    """127.0.0.1 inside is the jail's own: a server and a client of the agent find each other."""
    script = """/usr/bin/python3 - <<'END'
import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1)
c = socket.create_connection(s.getsockname()); p, _ = s.accept(); p.send(b"own\\n"); print(c.recv(9).decode(), end="")
END"""
    for user in BOTH:
        equal(lab.shell(script, user).ok().out, b"own\n", str(user))
