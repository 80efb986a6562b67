# SPDX-License-Identifier: MIT
"""
Two network namespaces. `host` is the one that the lab itself runs in: the machine on which the product is
installed, with an uplink, a default route and a resolver on a loopback address. `inet` is everything else: the
router, the internet, and on the internal addresses the machines that an agent must not reach. `inet` has no
other link, so no packet leaves this machine.
"""

import json
import os
import socket
import sys

import system

HERE = os.path.dirname(os.path.abspath(__file__))

ECHO_PORT = 7007

HOST = "203.0.113.10"          # own address, on the uplink
GATEWAY = "203.0.113.1"
NEIGHBOUR = "203.0.113.77"     # another machine of the connected subnet
HOST_SECOND = "45.67.89.10"    # an own address on a second, public subnet
NEIGHBOUR_SECOND = "45.67.89.11"

PUBLIC = "93.184.216.34"
PUBLIC_SECOND = "1.1.1.1"
DEVICE = "10.20.30.40"         # allowed by tests that say so
DEVICE_NETWORK = "10.20.0.0/16"

# one machine in every denied range
INTERNAL = {
    "0.0.0.0/8": "0.1.2.3",
    "10.0.0.0/8": "10.1.2.3",
    "172.16.0.0/12": "172.16.5.5",
    "192.168.0.0/16": "192.168.7.7",
    "100.64.0.0/10": "100.64.9.9",
    "169.254.0.0/16": "169.254.169.254",
    "168.63.129.16/32": "168.63.129.16",
    "192.0.0.0/24": "192.0.0.8",
    "198.18.0.0/15": "198.18.1.1",
    "240.0.0.0/4": "240.1.1.1",
}
MULTICAST = "224.5.6.7"
MULTICAST_SITE = "239.1.2.3"
BROADCAST = "255.255.255.255"
LOOPBACK = "127.0.0.1"
LOOPBACK_STUB = "127.0.0.53"

HOST6 = "2001:db8:1::10"
GATEWAY6 = "2001:db8:1::1"
PUBLIC6 = "2606:2800:220:1::34"
INTERNAL6 = "fd00:1::5"

# everything that must be refused, whatever is tried
DENIED = [*INTERNAL.values(), MULTICAST, MULTICAST_SITE, BROADCAST, LOOPBACK, LOOPBACK_STUB, HOST, GATEWAY, NEIGHBOUR,
          HOST_SECOND, NEIGHBOUR_SECOND, "203.0.113.255"]


class Site:
    """One running server.py."""

    def __init__(self, process, control):
        self.process = process
        self.control = control

    def take(self):
        """What arrived since the last call: [protocol, destination, source, text]."""
        self.control.send(b"take")
        return json.loads(self.control.recv(8 << 20))


class Network:
    def __init__(self):
        self.inet = None
        self.host = None

    @staticmethod
    def _serve(names, indices, prepare=None):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(20)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)

        pid = os.fork()
        if pid == 0:
            try:
                system.die_with_parent()
                system.reset_signals()
                if prepare:
                    system.unshare(system.CLONE_NEWNET)
                theirs.send(b"namespace")
                theirs.recv(64)
                os.dup2(theirs.fileno(), 3)
                os.set_inheritable(3, True)
                os.execv(sys.executable, [sys.executable, os.path.join(HERE, "server.py"), names,
                                          *[str(index) for index in indices]])
            finally:
                os._exit(126)
        theirs.close()
        if ours.recv(64) != b"namespace":
            raise RuntimeError("a server of the lab did not start")
        if prepare:
            prepare(pid)
        ours.send(b"go")
        if ours.recv(64) != b"ready":
            raise RuntimeError("a server of the lab did not start")
        return Site(pid, ours)

    @staticmethod
    def _inet(pid):
        def ip(*words):
            system.must("/usr/bin/nsenter", "-t", pid, "-n", "/usr/sbin/ip", *words)

        system.must("/usr/sbin/ip", "link", "add", "up0", "type", "veth", "peer", "name", "down0", "netns", pid)
        system.must("/usr/sbin/ip", "link", "add", "up1", "type", "veth", "peer", "name", "down1", "netns", pid)
        ip("link", "set", "lo", "up")
        ip("link", "set", "down0", "up")
        ip("link", "set", "down1", "up")
        ip("address", "add", f"{GATEWAY}/24", "dev", "down0")
        ip("address", "add", f"{NEIGHBOUR}/24", "dev", "down0")
        ip("address", "add", f"{NEIGHBOUR_SECOND}/29", "dev", "down1")
        ip("-6", "address", "add", f"{GATEWAY6}/64", "dev", "down0", "nodad")
        for address in (PUBLIC, PUBLIC_SECOND, DEVICE, *INTERNAL.values()):
            ip("address", "add", f"{address}/32", "dev", "lo")
        for address in (PUBLIC6, INTERNAL6):
            ip("-6", "address", "add", f"{address}/128", "dev", "lo", "nodad")

    def start(self):
        def ip(*words):
            system.must("/usr/sbin/ip", *words)

        ip("link", "set", "lo", "up")
        # interface 1 is lo, 2 and 3 are the veths' ends in the fresh namespace
        self.inet = self._serve("0.0.0.0", [2, 3], self._inet)
        ip("link", "set", "up0", "up")
        ip("link", "set", "up1", "up")
        ip("address", "add", f"{HOST}/24", "dev", "up0")
        ip("address", "add", f"{HOST_SECOND}/29", "dev", "up1")
        ip("-6", "address", "add", f"{HOST6}/64", "dev", "up0", "nodad")
        ip("route", "add", "default", "via", GATEWAY, "dev", "up0")
        ip("-6", "route", "add", "default", "via", GATEWAY6, "dev", "up0")
        # 0/8 and 240/4 follow the default; the kernel needs no more
        self.host = self._serve(LOOPBACK_STUB, [])
