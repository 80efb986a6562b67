# SPDX-License-Identifier: MIT
"""
The host's network changes while an agent runs: the session is offline or online as the host is, denies what the host
has come to be connected to, and is never wider, not for a moment: an agent tries all the while.
"""

import fcntl
import json
import os
import signal
import struct
import time

import network
import system
from bus_cases import Held
from case import equal, holds, processes, test, wait_for
from machine import ALICE, PROBE, ROOT
from reach_cases import arrived, quiet

BOTH = (ALICE, ROOT)

# Tries denied addresses by each way, and says once a second what it reaches of the internet.
TRYING = """exec /usr/bin/python3 -u - <<'END'
import os, select, signal, socket, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
denied = "10.1.2.3 172.16.5.5 192.168.7.7 169.254.169.254 100.64.9.9 203.0.113.10 203.0.113.1 203.0.113.77 127.0.0.53".split()
sockets = []
for bound in (b"", b"jail0"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setblocking(False)
    if bound:
        s.setsockopt(socket.SOL_SOCKET, 25, bound)
    sockets.append(s)
def reached(address, port=7007):
    c = socket.socket()
    c.settimeout(0.3)
    try:
        c.connect((address, port))
        c.send(b"hello\\n")
        return bool(c.recv(9))
    except OSError:
        return False
    finally:
        c.close()
print("ready")
said, n = None, 0
while True:
    n += 1
    for address in denied:
        for s in sockets:
            try:
                s.sendto(b"trying", (address, 7007))
            except OSError:
                pass
        c = socket.socket()
        c.setblocking(False)
        try:
            c.connect((address, 7007))
        except OSError:
            pass
        c.close()
    if n % 20 == 0:
        # once more, and once more: an answer may be late on a busy machine
        now = any(reached("93.184.216.34") for _ in range(3))
        if now != said:
            print("online" if now else "offline")
            said = now
END"""


def ip(*words):
    system.must("/usr/sbin/ip", *words)


def state(lab, held):
    result = lab.run(["/usr/bin/busctl", "--system", "--json=short", "get-property", "org.claudesandbox1", held.path,
                      "org.claudesandbox1.Session", "State"], ROOT, cwd="/")
    return json.loads(result.out)["data"] if result.status == 0 else None


class Trying(Held):
    """A session whose agent tries; what it says is read with a deadline."""

    def __init__(self, lab, user):
        super().__init__(lab, user, script=TRYING)
        self.user = user

    def says(self, word, limit=5.0, said=None):
        """The agent's next word is word, within limit seconds; and the bus says the same, or said."""
        begin = time.monotonic()

        def late(_signal, _frame):
            raise AssertionError(f"{self.user}: not {word} within {limit} s")
        previous = signal.signal(signal.SIGALRM, late)
        left = signal.setitimer(signal.ITIMER_REAL, limit)[0]
        try:
            line = self.process.stdout.readline().decode().strip()
        finally:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - begin), 0.1) if left else 0)
            signal.signal(signal.SIGALRM, previous)
        equal(line, word, f"{self.user}: the agent; {self.process.poll()}")
        said = said or {"online": "running"}.get(word, word)
        wait_for(lambda: state(self.lab, self) == said, f"{self.user}: the bus says {said}", limit)

    def __exit__(self, *rest):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        super().__exit__(*rest)

    def end_unseen(self, what):
        """It runs still, and nothing that it tried was seen outside."""
        holds(self.process.poll() is None, f"{self.user}: {what}: the session goes on: {self.process.poll()}")
        equal(arrived(self.lab, "trying"), [], f"{self.user}: {what}: seen outside")


def default():
    ip("route", "replace", "default", "via", network.GATEWAY, "dev", "up0")


def changed(lab, what, away, back):
    """away takes the uplink, back brings it."""
    for user in BOTH:
        quiet(lab)
        try:
            with Trying(lab, user) as held:
                held.says("online")
                away()
                held.says("offline")
                back()
                held.says("online")
                held.end_unseen(what)
        finally:
            back()


@test(90, needs="bus")
def default_route_goes_and_comes(lab):
    changed(lab, "default route", lambda: ip("route", "del", "default"), default)


def interface_back():
    ip("link", "set", "up0", "up")
    default()


@test(90, needs="bus")
def interface_goes_down_and_up(lab):
    changed(lab, "interface", lambda: ip("link", "set", "up0", "down"), interface_back)


@test(90, needs="bus")
def starts_without_an_uplink(lab):
    """No default route at the launch: a warning, an agent that runs, and online by itself."""
    for user in BOTH:
        quiet(lab)
        ip("route", "del", "default")
        try:
            with Trying(lab, user) as held:
                equal(state(lab, held), "offline", str(user))
                held.says("offline")
                default()
                held.says("online")
                held.end_unseen("offline start")
                os.kill(held.process.pid, signal.SIGTERM)
                held.process.wait(10)
                err = held.process.stderr.read().decode()
                holds("no usable IPv4 uplink" in err and len(err.splitlines()) == 1, f"{user}: {err!r}")
        finally:
            default()


@test(90, needs="bus")
def pasta_that_is_killed_comes_back(lab):
    for user in BOTH:
        quiet(lab)
        with Trying(lab, user) as held:
            held.says("online")
            killed = []

            def kill_another(killed=killed):
                """One that has not been killed yet: it, or the process that it leaves behind, may just have come or gone."""
                pid = next((pid for pid, words in processes().items() if words.startswith("pasta ") and pid not in killed), None)
                try:
                    if pid:
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)
                except ProcessLookupError:
                    pass
                return pid in killed
            for _ in range(5):
                wait_for(kill_another, "another pasta", 5)
            wait_for(lambda killed=killed: any(words.startswith("pasta ") and pid not in killed for pid, words in processes().items()),
                     "a last pasta", 5)
            wait_for(lambda held=held: state(lab, held) == "running", f"{user}: the wire is up again", 5)
            held.end_unseen("pasta killed")


@test(120, needs="bus")
def odd_uplinks_are_uplinks(lab):
    """Two defaults, one without gateway, the two halves of a VPN, a small MTU: a session starts, and one that runs goes on."""
    def halves():
        ip("route", "add", "0.0.0.0/1", "via", network.GATEWAY, "dev", "up0")
        ip("route", "add", "128.0.0.0/1", "via", network.GATEWAY, "dev", "up0")
        ip("route", "del", "default")

    def whole():
        default()
        ip("route", "del", "0.0.0.0/1")
        ip("route", "del", "128.0.0.0/1")
    ways = {
        "two defaults": (lambda: ip("route", "add", "default", "via", network.NEIGHBOUR_SECOND, "dev", "up1", "metric", "500"),
                         lambda: ip("route", "del", "default", "via", network.NEIGHBOUR_SECOND, "dev", "up1")),
        "no gateway": (lambda: ip("route", "replace", "default", "dev", "up0"), default),
        "a small MTU": (lambda: ip("link", "set", "up0", "mtu", "1280"), lambda: ip("link", "set", "up0", "mtu", "1500")),
        "two halves": (halves, whole),
    }
    for user in BOTH:
        for what, (begin, end) in ways.items():
            quiet(lab)
            with Trying(lab, user) as before:
                before.says("online")
                begin()
                try:
                    with Trying(lab, user) as held:
                        held.says("online")
                        held.end_unseen(what)
                    equal(state(lab, before), "running", f"{user}: {what}")
                    before.end_unseen(what)
                finally:
                    end()


@test(90, needs="bus")
def tunnels_that_take_the_default(lab):
    """A VPN's device with the two halves of everything: packets go there, and its own network is denied."""
    for user in BOTH:
        quiet(lab)
        with Trying(lab, user) as before:
            before.says("online")
            tun = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH", b"vpn0", 0x1001))     # TUNSETIFF, IFF_TUN | IFF_NO_PI
                ip("address", "add", "45.67.90.2/24", "dev", "vpn0")
                ip("link", "set", "vpn0", "up")
                ip("route", "add", "0.0.0.0/1", "dev", "vpn0")
                ip("route", "add", "128.0.0.0/1", "dev", "vpn0")
                before.says("offline", said="running")      # nobody is at the tunnel's other end, which the host does not know
                with Held(lab, user, script="echo ready; read x; for i in 1 2 3; do echo through > /dev/udp/93.184.216.34/7007; "
                                            "echo wrong > /dev/udp/45.67.90.9/7007; done; read x") as held:
                    wait_for(lambda held=held: "45.67.90.0/24" in routes(lab, held), f"{user}: the tunnel's network is denied", 2)
                    wait_for(lambda before=before: "45.67.90.0/24" in routes(lab, before), f"{user}: in running sessions too", 2)
                    held.process.stdin.write(b"\n")
                    held.process.stdin.flush()
                    seen = set()
                    wait_for(lambda seen=seen, tun=tun: (seen.update(packets(tun)), b"through" in seen)[1],
                             f"{user}: it goes through the tunnel", 5)
                    equal(state(lab, held), "running", str(user))
                    seen.update(packets(tun))
                    holds(b"wrong" not in seen, f"{user}: the tunnel's own network was reached")
            finally:
                os.close(tun)
            before.says("online")
            before.end_unseen("tunnel")


def packets(tun):
    """The texts of datagrams that wait on a tun."""
    found = []
    while True:
        try:
            packet = os.read(tun, 65536)
        except BlockingIOError:
            return found
        if packet[0] >> 4 == 4 and packet[9] == 17:
            found.append(packet[(packet[0] & 15) * 4 + 8:].strip())


@test(90, needs="bus")
def networks_that_come_are_denied(lab):
    """A subnet, an address and a gateway of the host that are new, also while it has no uplink."""
    address, peer, gateway = "93.184.217.10", "93.184.217.1", "93.184.218.1"
    inet = str(lab.network.inet.process)

    def there(*words):
        system.must("/usr/bin/nsenter", "-t", inet, "-n", "/usr/sbin/ip", *words)

    for user in BOTH:
        for offline in (False, True):
            there("address", "add", f"{peer}/32", "dev", "lo")
            there("address", "add", f"{gateway}/32", "dev", "lo")
            try:
                with Held(lab, user, script=f"echo ready; read x; {PROBE} reach 500 fresh {address} {peer} {gateway}; read x") as held:
                    if offline:
                        ip("route", "del", "default")
                    ip("address", "add", f"{address}/24", "dev", "up0")
                    ip("route", "add", gateway, "dev", "up0")
                    ip("route", "add", "8.8.8.0/24", "via", gateway, "dev", "up0")
                    if offline:
                        default()
                    wanted = {"93.184.217.0/24", "93.184.218.1/32"}
                    wait_for(lambda held=held: wanted <= routes(lab, held), f"{user}: denied, {routes(lab, held)}", 2)
                    quiet(lab)
                    held.process.stdin.write(b"\n")
                    held.process.stdin.flush()
                    held.process.stdin.write(b"\n")
                    held.process.stdin.close()
                    rows = [line.split() for line in held.process.stdout.read().decode().splitlines()]
                    holds(rows, "the probe ran")
                    equal([row for row in rows if row[4] == "reached"], [], f"{user}: reached")
                    equal(arrived(lab, "fresh"), [], f"{user}: seen outside")
                    # what went stays denied: it may come back
            finally:
                ip("route", "del", "8.8.8.0/24")
                ip("route", "del", gateway, "dev", "up0")
                ip("address", "del", f"{address}/24", "dev", "up0")
                there("address", "del", f"{peer}/32", "dev", "lo")
                there("address", "del", f"{gateway}/32", "dev", "lo")
                default()


CROWD = """
import os, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
here, there = socket.socketpair()
left = 150000
while left > 0:
    n = min(left, hard - 50)
    left -= n
    if os.fork() == 0:
        crowd = []
        for i in range(n):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("192.0.0.2", 2000 + i % 60000))
            s.connect(("1.1.%d.%d" % (i % 250, i // 250 % 250), 7007))
            crowd.append(s)
        there.send(b"x")
        sys.stdin.read()
        os._exit(0)
    here.recv(1)
stream = socket.create_connection(("93.184.219.1", 7007))
print("ready", flush=True)
stream.settimeout(10)
try:
    print("end" if not stream.recv(9) else "data", flush=True)
except OSError as error:
    print(error.errno, flush=True)
sys.stdin.read()
"""


@test(90, needs="bus")
def crowds_of_sockets_delay_no_denial(lab):
    """However many sockets an agent holds, networks of the host's are denied first; then flows to them end."""
    def there(*words):
        system.must("/usr/bin/nsenter", "-t", str(lab.network.inet.process), "-n", "/usr/sbin/ip", *words)

    new = [f"93.184.{n}.10/24" for n in (216 + 4, 216 + 5, 216 + 3)]
    there("address", "add", "93.184.219.1/32", "dev", "lo")
    lab.undo.append(lambda: there("address", "del", "93.184.219.1/32", "dev", "lo"))
    with Held(lab, ALICE, script=f"exec /usr/bin/python3 -c '{CROWD}'") as held:
        took = []
        for address in new:
            begin = time.monotonic()
            ip("address", "add", address, "dev", "up0")
            lab.undo.append(lambda address=address: ip("address", "del", address, "dev", "up0"))
            wait_for(lambda address=address: address.replace(".10/", ".0/") in routes(lab, held), f"{address} is denied", 20)
            took.append(time.monotonic() - begin)
        # the first look meets a session at rest, and the answer to the first question may wait for the flows
        holds(max(took[1:]) < 1, f"seconds until denied: {took}")
        holds(held.process.stdout.readline().strip() in (b"103", b"104"), "the flow is ended")


def routes(lab, held):
    result = lab.run(["/usr/bin/busctl", "--system", "--json=short", "call", "org.claudesandbox1", held.path,
                      "org.claudesandbox1.Session", "ListRoutes"], ROOT, cwd="/")
    return {row[0] for row in json.loads(result.out)["data"][0] if row[1] == "deny"} if result.status == 0 else set()
