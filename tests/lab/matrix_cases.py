# SPDX-License-Identifier: MIT
"""
What an agent reaches, as one table: every destination by TCP, UDP and ICMP, jailed, with an allow-ip, and with the jail
off; as an ordinary user and as root.
"""

import json
import socket

import bus
import network
from bus_cases import Held, answer
from case import CONFIG, SANDBOX, equal, holds, processes, test, wait_for
from machine import ALICE, PROBE, ROOT
from reach_cases import arrived, inside, quiet

BOTH = (ALICE, ROOT)
INTERNET = (network.PUBLIC, network.PUBLIC_SECOND)
INTERNAL = tuple(network.INTERNAL.values())
HOSTS = (network.HOST, network.GATEWAY, network.NEIGHBOUR, network.HOST_SECOND, network.NEIGHBOUR_SECOND, network.LOOPBACK,
         network.LOOPBACK_STUB)
GROUPS = (network.MULTICAST, network.MULTICAST_SITE, network.BROADCAST, "203.0.113.255")
# nobody is there in the lab, or the host itself does not take them for destinations
NOWHERE = ("192.0.0.1", "192.0.0.2", "192.88.99.1", "127.5.6.7", "10.255.255.255")
EVERYTHING = (*INTERNET, network.DEVICE, *INTERNAL, *HOSTS, *GROUPS, *NOWHERE)

# [address, protocol, 1 if something answered] a line; ICMP by a ping socket, plainly and by the device
TABLE = """exec /usr/bin/python3 - "$@" <<'END'
import os, select, socket, struct, sys, time
token, addresses = sys.argv[1].encode(), sys.argv[2:]
waiting, answered = {}, set()
p = select.poll()
def add(s, key, events):
    waiting[s.fileno()] = (s, key)
    p.register(s, events)
def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff
for address in addresses:
    for device in (b"", b"jail0"):
        for protocol in ("tcp", "udp", "icmp"):
            try:
                s = socket.socket(socket.AF_INET, {"tcp": socket.SOCK_STREAM}.get(protocol, socket.SOCK_DGRAM),
                                  {"icmp": socket.IPPROTO_ICMP}.get(protocol, 0))
            except OSError as error:
                print("-", protocol, error.errno)
                continue
            s.setblocking(False)
            try:
                if device:
                    s.setsockopt(socket.SOL_SOCKET, 25, device)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                if protocol == "tcp":
                    s.connect((address, 7007))
                elif protocol == "udp":
                    s.sendto(token, (address, 7007))
                else:
                    body = token + b"x" * (len(token) % 2)
                    packet = struct.pack("!BBHHH", 8, 0, 0, 0, 1) + body
                    s.sendto(packet, (address, 0))
            except BlockingIOError:
                pass
            except OSError:
                s.close()
                continue
            add(s, (address, protocol), select.POLLOUT if protocol == "tcp" else select.POLLIN)
end = time.monotonic() + 1.5
while waiting and time.monotonic() < end:
    for fd, _ in p.poll(max(0, (end - time.monotonic()) * 1000)):
        s, key = waiting[fd]
        try:
            if key[1] == "tcp" and s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 and not s.getpeername():
                continue
            if key[1] == "tcp":
                s.send(token + b"\\n")
                p.modify(s, select.POLLIN)
                data = s.recv(2000)
            else:
                data = s.recv(2000)
            if key[1] != "icmp" or data[:1] == b"\\0":
                answered.add(key)
        except BlockingIOError:
            continue
        except OSError:
            pass
        p.unregister(fd)
        del waiting[fd]
        s.close()
for address in addresses:
    for protocol in ("tcp", "udp", "icmp"):
        print(address, protocol, int((address, protocol) in answered))
END"""


def table(lab, user, token, **options):
    """{(address, protocol)} of what answered."""
    quiet(lab)
    result = lab.shell(TABLE, user, ["sh", token, *EVERYTHING], limit=30, **options)
    equal(result.status, 0, f"{user}: {result!r}")
    rows = [line.split() for line in result.out.decode().splitlines()]
    equal([row for row in rows if row[0] == "-"], [], f"{user}: sockets that could not be had")
    equal(len(rows), 3 * len(EVERYTHING), str(user))
    return {(row[0], row[1]) for row in rows if row[2] == "1"}, result


def reached_by(addresses):
    return {(address, protocol) for address in addresses for protocol in ("tcp", "udp", "icmp")}


def let_ping():
    """The lab's host lets everybody ping, as most systems do; pasta does it as the user."""
    with open("/proc/sys/net/ipv4/ping_group_range", "w", encoding="ascii") as f:
        f.write("0 2147483647")


# the jail's own stack answers pings of its own addresses
OWN = {(address, "icmp") for address in (network.LOOPBACK, network.LOOPBACK_STUB, "127.5.6.7", "192.0.0.2")}


def unseen(lab, token, allowed):
    notes = [note for note in arrived(lab, token) if note[1] not in allowed]
    equal(notes, [], "seen outside")


@test(90, needs="bus")
def jailed(lab):
    holds(len(set(EVERYTHING)) >= 25, "enough destinations")
    let_ping()
    for user in BOTH:
        found, _ = table(lab, user, f"matrix-{user}")
        equal(found, reached_by(INTERNET) | OWN, str(user))
        unseen(lab, f"matrix-{user}", INTERNET)


@test(90, needs="bus")
def with_an_allow_ip(lab):
    let_ping()
    for user in BOTH:
        for entry, opened in ((network.DEVICE, (network.DEVICE,)), ("10.0.0.0/16", ()), ("192.168.0.0/16", ("192.168.7.7",)),
                              (network.GATEWAY, (network.GATEWAY,))):
            lab.configure(f"allow-ip = {entry}\n")
            quiet(lab)
            found, _ = table(lab, user, f"opened-{user}")
            equal(found, reached_by((*INTERNET, *opened)) | OWN, f"{user}: {entry}")
            unseen(lab, f"opened-{user}", (*INTERNET, *opened))
            lab.restore()


WARNING = "claude-sandbox: the network is not jailed ("


@test(90, needs="bus")
def jail_off(lab):
    """Everything that the host reaches, and it is said."""
    let_ping()
    lab.configure("egress-jail = 0\nallow-ip = 10.1.2.3\ncallback-port = 7070\n")
    for user in BOTH:
        found, result = table(lab, user, f"shared-{user}")
        lines = result.err.decode().splitlines()
        holds(lines[0].startswith(WARNING + f"{CONFIG}:1)") and len(lines) <= 2, f"{user}: {lines}")
        equal({address for address, protocol in found if protocol == "tcp"} - set(NOWHERE),
              {*INTERNET, network.DEVICE, *INTERNAL, *HOSTS}, f"{user}: TCP")
        equal({address for address, protocol in found if protocol == "udp"} - set(NOWHERE) - set(GROUPS),
              {*INTERNET, network.DEVICE, *INTERNAL, *HOSTS}, f"{user}: UDP")


def posture(lab, held):
    return {row[0]: row[1] for row in answer(lab.run(
        ["/usr/bin/busctl", "--system", "--json=short", "get-property", bus.NAME, held.path, "org.claudesandbox1.Session",
         "Posture"], ROOT, cwd="/"))}


@test(60, needs="bus")
def jail_off_is_shown_and_holds_the_rest(lab):
    for user in BOTH:
        lab.configure("egress-jail = 0\n")
        with Held(lab, user) as held:
            equal(posture(lab, held)["network"], "shared", str(user))
            equal(answer(lab.run(["/usr/bin/busctl", "--system", "--json=short", "get-property", bus.NAME, held.path,
                                  "org.claudesandbox1.Session", "Jailed"], user, cwd="/")), False, str(user))
            listed = json.loads(lab.run([SANDBOX, "sessions", "--json"], user).ok().out)
            equal([row["jailed"] for row in listed if row["id"] == held.id], [False], str(user))
            holds(b"  shared  " in lab.run([SANDBOX, "sessions"], user).ok().out, str(user))
            equal(lab.run([SANDBOX, "routes", held.id], user).status, 0, f"{user}: no routes of ours")
            holds(not any(words.startswith("pasta ") for words in processes().values()), "no pasta")
            refused = lab.call("AllowIp", "sta{sv}", "10.1.2.3", 0, 0, interface="org.claudesandbox1.Session", path=held.path)
            holds(refused.status != 0, f"{user}: nothing to allow: {refused!r}")
        script = f"ls -A /run /tmp; {PROBE} connect /run/dbus/system_bus_socket; ip link set lo down; cat /etc/resolv.conf; " \
                 "getent hosts public.example; touch /etc/x /sys/x; true"
        result = lab.shell(script, user)
        holds(b"nameserver 127.0.0.53" in result.out and b"93.184.216.34" in result.out, f"{user}: the host's resolver: {result!r}")
        holds(b"connected" not in result.out and b"system_bus" not in result.out, f"{user}: the bus stays hidden: {result!r}")
        equal(lab.run(["/usr/sbin/ip", "-br", "link", "show", "lo", "up"], ROOT).out[:2], b"lo", "an agent, root too, changes nothing")
        wait_for(lambda: not lab.sessions(), "nothing of it stays")
        lab.restore()
        with Held(lab, user) as held:
            equal(posture(lab, held)["network"], "jailed", str(user))


@test(60, needs="bus")
def jail_off_by_the_environment(lab):
    """Root decides for itself; a variable of a user's, which may be planted, opens nothing, and what narrows needs nobody."""
    twin = {"CLAUDE_SANDBOX_EGRESS_JAIL": "0"}
    result = lab.shell("echo in", ROOT, env=lab.environment(ROOT, **twin))
    holds(result.out == b"in\n" and result.err.decode().startswith(WARNING), repr(result))
    lab.shell("echo in", env=lab.environment(ALICE, **twin)).refused(125, "CLAUDE_SANDBOX_EGRESS_JAIL")
    lab.configure("egress-jail = 0\n")
    lab.shell("echo in", env=lab.environment(ALICE, CLAUDE_SANDBOX_EGRESS_JAIL="1")).ok()
    lab.restore()


@test(30, needs="bus")
def abstract_sockets_belong_to_the_network(lab):
    """Out of reach in a jail; within reach where the network is shared, as security.md says."""
    script = """/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("\\0lab-abstract"); print("connected")' 2>&1 | tail -1"""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0lab-abstract")
        listener.listen(5)
        for user in BOTH:
            holds(b"refused" in lab.shell(script, user).ok().out, str(user))
            lab.configure("egress-jail = 0\n")
            equal(lab.shell(script, user).out, b"connected\n", str(user))
            lab.restore()
