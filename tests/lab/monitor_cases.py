# SPDX-License-Identifier: MIT
"""The jail's network changed from outside, by root: seen at once, also where it is undone at once, and the session ends."""

import fcntl
import os
import socket
import struct
import subprocess
import time

import bus
import system
from bus_cases import Held
from case import equal, holds, test, wait_for
from listener_cases import jail_init
from machine import ALICE, ROOT
from reach_cases import arrived, quiet

BOTH = (ALICE, ROOT)

# An agent that tries all the while, plainly and by the device.
PROBING = """exec /usr/bin/python3 - <<'END'
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready", flush=True)
plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
bound.setsockopt(socket.SOL_SOCKET, 25, b"jail0")
while True:
    for address in ("10.1.2.3", "192.168.7.7", "169.254.169.254", "203.0.113.1", "192.0.0.8"):
        for s in (plain, bound):
            try:
                s.sendto(b"disturbed", (address, 7007))
            except OSError:
                pass
END"""

NS_GET_USERNS = 0xb701     # linux/nsfs.h

# what is done, what undoes it (None: that it was done is enough), what the sentence names
CHANGES = {
    "a route": ("ip route add 10.7.0.0/16 dev lo", "ip route del 10.7.0.0/16 dev lo", "10.7.0.0/16"),
    "a route in another table": ("ip route add 10.7.0.0/16 dev lo table 77", "ip route del 10.7.0.0/16 table 77", "table 77"),
    "an equal route behind another": ("ip route append blackhole 10.0.0.0/8 metric 4096",
                                      "ip route del blackhole 10.0.0.0/8 metric 4096", "10.0.0.0/8"),
    "a denial that goes": ("ip route del prohibit 10.0.0.0/8 metric 4096",
                           "ip route add prohibit 10.0.0.0/8 metric 4096 proto static", "10.0.0.0/8"),
    "a default that is replaced": ("ip route replace default via 192.0.0.1 dev jail0 onlink", None, "default"),
    "a nexthop object": ("ip nexthop add id 5 dev lo", "ip nexthop del id 5", "nexthop object"),
    "a rule": ("ip rule add from all lookup 77", "ip rule del from all lookup 77", "IPv4 rule"),
    "a rule of a range of users": ("", "", "IPv4 rule of priority 100"),
    "an IPv6 rule": ("ip -6 rule add from all lookup 77", "ip -6 rule del from all lookup 77", "IPv6 rule"),
    "a neighbour": ("ip neigh add 10.0.0.5 lladdr 02:00:00:00:00:01 dev jail0 nud permanent", "ip neigh del 10.0.0.5 dev jail0",
                    "neighbour 10.0.0.5"),
    "the far end's neighbour": ("ip neigh replace 192.0.0.1 lladdr 02:00:00:00:00:02 dev jail0 nud permanent",
                                "ip neigh replace 192.0.0.1 lladdr 02:00:00:00:00:01 dev jail0 nud permanent",
                                "neighbour 192.0.0.1"),
    "a device": ("ip link add other0 type veth peer name other1", "ip link del other0", "device other"),
    "an address": ("ip addr add 10.9.9.9/32 dev lo", "ip addr del 10.9.9.9/32 dev lo", "10.9.9.9"),
    "the MTU": ("ip link set jail0 mtu 1400", "ip link set jail0 mtu 65520", "MTU"),
    "a device that is down": ("ip link set jail0 down", "ip link set jail0 up", "jail0"),
    "an alternative name": ("ip link property add dev jail0 altname elsewhere", None, "alternative name"),
    "the reverse path filter": ("echo 0 > /proc/sys/net/ipv4/conf/jail0/rp_filter", "echo 1 > /proc/sys/net/ipv4/conf/jail0/rp_filter",
                                "rp_filter"),
    "forwarding": ("echo 1 > /proc/sys/net/ipv4/conf/all/forwarding", "echo 0 > /proc/sys/net/ipv4/conf/all/forwarding", "forwarding"),
    "routes without carrier": ("echo 1 > /proc/sys/net/ipv4/conf/jail0/ignore_routes_with_linkdown",
                               "echo 0 > /proc/sys/net/ipv4/conf/jail0/ignore_routes_with_linkdown", "setting"),
}


# root itself opens a way until the session is ended
OPENING = ("a denial that goes",)


def inside(pid, script):
    """Run a script as root of the machine in the network of pid."""
    subprocess.run(["/usr/bin/nsenter", "-t", str(pid), "-n", "/bin/sh", "-ec", "PATH=/usr/sbin:/usr/bin:/sbin:/bin; " + script],
                   check=True, stdin=subprocess.DEVNULL)


def rule_of_users(pid, uid, undo):
    """A rule of a range of users, which the kernel takes only in the namespace that owns the network, and so without an exec."""
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 77, 0, 0, 1, 0) \
        + struct.pack("=HHI", 8, 6, 100) + struct.pack("=HHII", 12, 20, uid, uid)
    with open(f"/proc/{pid}/ns/net", "rb", buffering=0) as space:
        owner = fcntl.ioctl(space.fileno(), NS_GET_USERNS)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                system.enter(space.fileno(), system.CLONE_NEWNET)
                system.enter(owner, system.CLONE_NEWUSER)
                with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
                    for kind, flags in ((32, 0x605), (33, 5))[:1 + undo]:      # RTM_NEWRULE, RTM_DELRULE
                        s.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
                        if struct.unpack("=i", s.recv(4096)[16:20])[0] != 0:
                            os._exit(2)
                status = 0
            finally:
                os._exit(status)
        os.close(owner)
        equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, "a rule of users is made")


def disturb(lab, user, name, script, named):
    quiet(lab)
    mark = len(bus.Bus.log())
    with Held(lab, user, script=PROBING) as held:
        begin = time.monotonic()
        if script:
            inside(jail_init(user), script)
        else:
            rule_of_users(jail_init(user), user.uid, "undone" in name)
        status = held.process.wait(10)
        seconds = time.monotonic() - begin
        err = held.process.stderr.read().decode()
    what = f"{user}: {name}: {err!r}"
    equal(status, -9, what)
    holds(seconds < 1.0, f"{what}: after {seconds:.2f} s")
    lines = err.splitlines()
    holds(len(lines) == 1 and lines[0].startswith("claude-sandbox: the session was ended: its network") and named in lines[0], what)
    wait_for(lambda: not lab.sessions(), "nothing of it stays")
    log = bus.Bus.log()[mark:]
    holds(any("why its agent ended" in line and held.id in line and named in line for line in log.splitlines()), f"{what}: {log}")
    if name.removesuffix(", undone") not in OPENING:
        equal(arrived(lab, "disturbed"), [], f"{what}: seen outside")


@test(240, needs="bus")
def whatever_others_change_ends_the_session(lab):
    for user in BOTH:
        for name, (script, _, named) in CHANGES.items():
            disturb(lab, user, name, script, named)


@test(240, needs="bus")
def what_is_undone_at_once_is_seen_too(lab):
    for user in BOTH:
        for name, (script, undo, named) in CHANGES.items():
            if undo is not None:
                disturb(lab, user, f"{name}, undone", f"{script}; {undo}" if script else "", named)


@test(60, needs="bus")
def what_the_kernel_does_by_itself_ends_nothing(lab):
    """Unresolved neighbours, multicast, a server on the loopback, pasta that goes and comes back."""
    script = """echo ready; /usr/bin/python3 - <<'END'
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 25, b"jail0")
for i in range(1, 200):
    for address in (f"198.51.100.{i}", f"224.5.6.{i}", f"127.0.0.{i}"):
        try:
            s.sendto(b"x", (address, 9))
        except OSError:
            pass
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(1)
for _ in range(50):
    c = socket.create_connection(l.getsockname()); p, _ = l.accept(); c.close(); p.close()
END
read x; exit 0"""
    for user in BOTH:
        with Held(lab, user, script=script) as held:
            held.process.stdin.write(b"\n")
            held.process.stdin.flush()
            equal(held.process.wait(10), 0, f"{user}: {held.process.stderr.read()!r}")
