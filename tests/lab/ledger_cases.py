# SPDX-License-Identifier: MIT
"""What is denied is noted: each attempt, by whom and how often, whatever an agent does to the record or its reader."""

import errno
import json
import os
import re
import signal
import subprocess
import time

import bus
import network
from bus_cases import Held, as_user
from case import SANDBOX, equal, holds, processes, test, wait_for
from failure_cases import SESSION
from machine import ALICE, BOB, MALLORY, ROOT
from reach_cases import arrived, quiet

BOTH = (ALICE, ROOT)
TUNSETOFFLOAD = 0x400454D0

TRY = """
import errno, json, socket, sys, time
print("ready", flush=True)
sys.stdin.readline()
tries = []
for address in json.loads(sys.argv[1]):
    for kind in ("tcp", "udp"):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
        s.settimeout(5)
        begin = time.monotonic()
        try:
            s.connect((address, 7007))
            s.send(sys.argv[2].encode())
            s.recv(64)
            error = "reached"
        except OSError as e:
            error = errno.errorcode.get(e.errno, str(e))
        tries.append([kind, address, error, time.monotonic() - begin])
        s.close()
print(json.dumps(tries), flush=True)
sys.stdin.readline()
"""

MANY = """
import socket, sys
print("ready", flush=True)
sys.stdin.readline()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(10000):
    s.sendto(sys.argv[1].encode(), ("10.1.%d.%d" % (i % 4, i // 4 % 250), 1 + i // 1000))
print("sent", flush=True)
sys.stdin.readline()
"""

FLOOD = """
import json, os, signal, socket, sys
addresses = json.loads(sys.argv[1])
if os.fork() == 0:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    data = sys.argv[2].encode().ljust(1400)
    while os.getppid() != 1:
        for address in addresses:
            for _ in range(50):
                try:
                    s.sendto(data, (address, 7007))
                except OSError:
                    pass
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
print("ready", flush=True)
while sys.stdin.readline():
    print("line", flush=True)
"""

NAMED = """
import ctypes, socket, sys
name = bytes.fromhex(sys.argv[1])
ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
print("ready", flush=True)
sys.stdin.readline()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"x", ("10.1.2.3", 7007))
print("sent", flush=True)
sys.stdin.readline()
"""


PING = """
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s.settimeout(5)
request = struct.pack(">BBHHH", 8, 0, 0xf7fd - 77, 77, 1)
s.sendto(request, (sys.argv[1], 0))
packet, sender = s.recvfrom(256)
print(packet[20], packet[21], sender[0])
"""


# One connection to the first address, then as many as said below the prefix.
SCAN = """
import socket, sys
print("ready", flush=True)
sys.stdin.readline()
for i in range(int(sys.argv[3]) + 1):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex((sys.argv[1] if i == 0 else f"{sys.argv[2]}.{i // 250}.{i % 250}", 80))
    s.close()
print("sent", flush=True)
sys.stdin.readline()
"""


def quoted(*words):
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def program(script, *arguments):
    return "exec " + quoted("/usr/bin/python3", "-c", script, *arguments)


def go_on(held):
    held.process.stdin.write(b"\n")
    held.process.stdin.flush()


def denied(lab, held, user=ALICE):
    return json.loads(lab.run([SANDBOX, "denied", "--json", held.id], user).ok().out)


def counted(lab, held, user=ALICE):
    return sum(row["count"] for row in denied(lab, held, user))


def session_pids(user):
    return [pid for pid, text in processes().items() if text.split(" ")[0] == SESSION and owner_of(pid) == user.uid]


def owner_of(pid):
    """None when it has ended."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except FileNotFoundError:
        return None


def get_property(lab, held, name, user):
    return json.loads(lab.run(["/usr/bin/busctl", "--json=short", "get-property", bus.NAME, held.path, bus.SESSION, name], user,
                              cwd="/").ok().out)["data"]


@test(60, needs="bus")
def attempts_are_noted(lab):
    """TCP and UDP to every range: refused within 50 ms, and noted with time, address, port, program and count."""
    addresses = [*network.INTERNAL.values(), network.HOST, network.GATEWAY, network.NEIGHBOUR]
    for user in BOTH:
        quiet(lab)
        begin = time.time()
        # no more than a second's look-ups in all
        again = [network.HOST] * 3
        with Held(lab, user, program(TRY, json.dumps(addresses + again), f"noted-{user}")) as held:
            equal(denied(lab, held, user), [], "what the start itself tried is no attempt")
            go_on(held)
            tries = json.loads(held.process.stdout.readline())
            rows = {(row["protocol"], row["address"]): row for row in denied(lab, held, user)}
        for kind, address, error, seconds in tries:
            equal(error, "EHOSTUNREACH", f"{user}: {kind} {address}")
            holds(seconds < 0.05, f"{user}: {kind} {address} took {seconds:.3f} s")
        for kind in ("tcp", "udp"):
            for address in addresses:
                row = rows.pop((kind, address), None)
                holds(row, f"{user}: {kind} {address} is not noted")
                equal((row["port"], row["count"]), (7007, 4 if address == network.HOST else 1), f"{user}: {row}")
                holds(re.fullmatch(r"python3 \(\d+\)", row["program"]), f"{user}: {row}")
                holds(begin * 1e6 <= row["last_usec"] <= time.time() * 1e6, f"{user}: {row}")
                holds(row["reason"], f"{user}: {row}")
        equal(rows, {}, f"{user}: and nothing else")
        equal(arrived(lab, f"noted-{user}"), [], str(user))


@test(60, needs="bus")
def inner_denials_are_noted(lab):
    """The host's own address within a wider allow-ip."""
    lab.configure("allow-ip = 203.0.0.0/16\n")
    with Held(lab, ALICE, program(TRY, json.dumps([network.HOST]), "inner")) as held:
        go_on(held)
        tries = json.loads(held.process.stdout.readline())
        equal({error for _, _, error, _ in tries}, {"EHOSTUNREACH"})
        rows = denied(lab, held)
    equal({(row["protocol"], row["address"], row["reason"]) for row in rows},
          {(kind, network.HOST, "network of the host") for kind in ("tcp", "udp")})


@test(60, needs="bus")
def pings_are_noted(lab):
    """By root, from outside: no agent may send them. They are answered."""
    with Held(lab) as held:
        leader = get_property(lab, held, "Leader", ALICE)
        ping = subprocess.run(["/usr/bin/nsenter", "-t", str(leader), "-n", "/usr/bin/python3", "-c", PING, "10.1.2.3"],
                              capture_output=True, text=True, check=False)
        equal(ping.stdout, "3 13 192.0.0.8\n", ping.stderr)
        row, = denied(lab, held)
        equal((row["protocol"], row["address"], row["port"], row["count"]), ("icmp", "10.1.2.3", 0, 1))


@test(60, needs="bus")
def ten_thousand_flows_are_counted(lab):
    for user in BOTH:
        quiet(lab)
        with Held(lab, user, program(MANY, f"many-{user}")) as held:
            go_on(held)
            equal(held.process.stdout.readline(), b"sent\n")
            # what the agent has sent waits in the device until the session has come to it
            wait_for(lambda h=held, u=user: counted(lab, h, u) == 10000, f"{user}: all of them are counted")
            rows = denied(lab, held, user)
            wait_for(lambda h=held, u=user, r=rows: json.loads(lab.run([SANDBOX, "show", "--json", h.id], u).ok().out)
                     ["denied"] == sum(row["count"] for row in r), f"{user}: the session's count is the same")
        equal(sum(row["count"] for row in rows), 10000, str(user))
        holds(len(rows) <= 1026, f"{user}: {len(rows)} rows")
        equal(arrived(lab, f"many-{user}"), [], str(user))


@test(180, needs="bus")
def killed_reader_delivers_nothing(lab):
    """kill -9 of the session while its agent floods machines that exist: the device goes, and the prohibits answer."""
    quiet(lab)
    addresses = json.dumps([network.INTERNAL["10.0.0.0/8"], network.NEIGHBOUR, network.HOST])
    for _ in range(20):
        with Held(lab, ALICE, program(FLOOD, addresses, "flooded")) as held:
            wait_for(lambda h=held: counted(lab, h) > 0, "it floods")
            session, = session_pids(ALICE)
            os.kill(session, signal.SIGKILL)
            held.process.wait(10)
        wait_for(lambda: not lab.sessions() and not session_pids(ALICE), "nothing of it stays")
        equal(arrived(lab, "flooded"), [])


def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


@test(120, needs="bus")
def flood_keeps_nothing_waiting(lab):
    """Signals, lines, questions and the stop come through at once, and the session's memory stays what it is."""
    quiet(lab)
    with Held(lab, ALICE, program(FLOOD, json.dumps(["10.1.2.3", "10.1.2.4"]), "flood")) as held:
        session, = session_pids(ALICE)
        wait_for(lambda: counted(lab, held) > 50000, "it is a flood", limit=20)
        before, slowest = memory_of(session), {}
        for _ in range(10):
            for what, send, expected in (("signal", lambda: held.process.send_signal(signal.SIGINT), b"interrupted\n"),
                                         ("line", lambda: go_on(held), b"line\n")):
                begin = time.monotonic()
                send()
                equal(held.process.stdout.readline(), expected)
                slowest[what] = max(slowest.get(what, 0), time.monotonic() - begin)
            begin = time.monotonic()
            denied(lab, held)
            slowest["question"] = max(slowest.get("question", 0), time.monotonic() - begin)
        holds(max(slowest.values()) < 1, f"the slowest answers: {slowest}")
        holds(memory_of(session) < before + 1024, f"the session grew from {before} to {memory_of(session)} KiB")
        total = counted(lab, held)
        holds(any(not row["address"] for row in denied(lab, held)), "what was dropped is counted as well")
        begin = time.monotonic()
        lab.call("StopSession", "sa{sv}", held.id, 0, user=ALICE).ok()
        holds(time.monotonic() - begin < 7, "the stop takes its grace time and no more")
    holds(total > 50000, total)
    equal(arrived(lab, "flood"), [])


CROWD = """
import os, resource, socket, sys, threading
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
for _ in range(20):
    if os.fork() == 0:
        for _ in range(200):
            os.dup(0)
        waiting, kept = os.pipe()
        for _ in range(100):
            threading.Thread(target=os.read, args=(waiting, 1), daemon=True).start()
        os.read(waiting, 1)
        os._exit(0)
print("ready", flush=True)
sys.stdin.readline()
for i in range(200):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b"x", ("10.1.2.3", 7007))
    s.close()
print("sent", flush=True)
sys.stdin.readline()
"""


@test(60, needs="bus")
def crowds_cost_little(lab):
    """An agent with more processes, threads and descriptors than are looked at: its attempts count, and nothing waits."""
    with Held(lab, ALICE, program(CROWD)) as held:
        begin = time.monotonic()
        go_on(held)
        equal(held.process.stdout.readline(), b"sent\n")
        wait_for(lambda: counted(lab, held) == 200, "all of them are counted")
        holds(time.monotonic() - begin < 3, f"{time.monotonic() - begin:.1f} s")
        lab.call("StopSession", "sa{sv}", held.id, 0, user=ALICE).ok()


def holders_of_the_device():
    """Processes that have a descriptor of deny0 (tun(4): fdinfo)."""
    found = set()
    for pid in processes():
        try:
            for number in os.listdir(f"/proc/{pid}/fdinfo"):
                with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii", errors="replace") as f:
                    if re.search(r"^iff:\s+deny0$", f.read(), re.MULTILINE):
                        found.add(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


@test(60, needs="bus")
def session_alone_has_the_device(lab):
    """Neither pasta nor git, bwrap or anything in the jail; and the agent cannot open or change it."""
    for user in BOTH:
        with Held(lab, user):
            equal(holders_of_the_device(), set(session_pids(user)), str(user))
        for words in ("link set deny0 down", "link del deny0", "route add 10.9.9.9/32 dev jail0", "addr add 10.1.1.1/32 dev deny0"):
            result = lab.shell(f"ip {words}", user)
            holds(result.status != 0, f"{user}: {words}")
        holds(lab.shell("python3 -c 'import fcntl; open(\"/dev/net/tun\", \"r+\")'", user).status != 0, str(user))


def unescape(text):
    """What claude-sandbox(1) says of texts, undone."""
    return re.sub(rb"\\(?:x(..)|(\\))", lambda found: bytes.fromhex(found[1].decode()) if found[1] else b"\\", text.encode())


@test(60, needs="bus")
def hostile_names_are_bounded_and_escaped(lab):
    for name in (b"\x1b[31mred\x07", b"\xff\xfe\n\t", b"a (1)\" ,\\", b"\\x1b\\\x1b", b"", b"0123456789abcdef0123456789"):
        with Held(lab, ALICE, program(NAMED, name.hex())) as held:
            go_on(held)
            equal(held.process.stdout.readline(), b"sent\n")
            row, = wait_for(lambda h=held: denied(lab, h), "it is noted")
            holds(len(row["program"]) <= 15 * 4 + 16, row)
            if len(name) > 15:
                holds(row["program"].startswith("0123456789abcde ("), row)
            # what is not cut can be told from the text alone, whichever way it comes
            if 0 < len(name) < 16:
                equal(unescape(row["program"].rsplit(" (", 1)[0]), name.split(b"\0")[0])
                holds(row["program"] in lab.run([SANDBOX, "denied", held.id], ALICE).ok().out.decode(), row)
            for words in ([SANDBOX, "denied", held.id], [SANDBOX, "denied", "--json", held.id]):
                out = lab.run(words, ALICE).ok().out
                holds(not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xff", out), f"{name!r}: {out!r}")
            lines = lab.run([SANDBOX, "denied", held.id], ALICE).ok().out.splitlines()
            equal(lines.index(b""), 2, f"{name!r}: headings and a row, then what would allow it")


@test(60, needs="bus")
def what_came_first_stays(lab):
    """One attempt at where clouds give credentials, then eleven hundred others: it is listed, and an event of the log."""
    with Held(lab, ALICE, program(SCAN, "169.254.169.254", "10.9", "1100")) as held:
        go_on(held)
        equal(held.process.stdout.readline(), b"sent\n")
        wait_for(lambda: counted(lab, held) == 1101, "all are counted")
        rows = denied(lab, held)
        first = [row for row in rows if row["address"] == "169.254.169.254"]
        holds(len(first) == 1 and first[0]["count"] == 1, rows[:5])
        holds(any("in 10.9." in row["reason"] and not row["address"] for row in rows), "the rest is there by network")
        told = wait_for(lambda: [event["to"] or "" for event in log_of(lab, held)], "it is told")
        holds(told[0].startswith("tcp 169.254.169.254:80"), told[:5])
        holds(len(told) < 300, f"a scan is few lines, not {len(told)}")


def log_of(lab, held):
    return [event for event in json.loads(lab.run([SANDBOX, "log", "--json", held.id], ALICE).ok().out)
            if event["event"] == "denied"]


@test(60, needs="bus")
def without_a_tun_the_prohibits_answer(lab):
    """And Posture says so."""
    for user in BOTH:
        quiet(lab)
        lab.wrap(SESSION, f"fail ioctl {errno.EINVAL} 1 {TUNSETOFFLOAD}")
        with Held(lab, user, program(TRY, json.dumps([network.INTERNAL["10.0.0.0/8"], network.HOST]), f"none-{user}")) as held:
            posture = {row[0]: row[1:] for row in get_property(lab, held, "Posture", user)}
            equal(posture["ledger"][0], "none", str(user))
            holds("deny0" in posture["ledger"][1], posture["ledger"])
            go_on(held)
            tries = json.loads(held.process.stdout.readline())
            equal({error for _, _, error, _ in tries}, {"EACCES"}, str(user))
            holds(all(seconds < 0.05 for *_, seconds in tries), tries)
            equal(denied(lab, held, user), [], str(user))
            routes = json.loads(lab.run([SANDBOX, "routes", "--json", held.id], user).ok().out)
            equal({row["device"] for row in routes if row["verdict"] == "deny"}, {""}, str(user))
        equal(arrived(lab, f"none-{user}"), [], str(user))
        lab.restore()


@test(60, needs="bus")
def counts_outlive_the_service(lab):
    with Held(lab, ALICE, program(TRY, json.dumps(["10.1.2.3"]), "restart")) as held:
        go_on(held)
        held.process.stdout.readline()
        before = denied(lab, held)
        equal(len(before), 2)
        lab.stop_service(signal.SIGKILL)
        equal(denied(lab, held), before)
        mark = len(bus.Bus.log())
        go_on(held)
        held.end()
    wait_for(lambda: "attempts" in bus.Bus.log()[mark:], "the end sums up what was denied")


@test(60, needs="bus")
def what_others_send_is_not_shown(lab):
    """Another user may send anything to a follower's name on the bus: it is no row, and no end."""
    def forge(connection):
        import dbus
        driver = connection.get_object("org.freedesktop.DBus", "/org/freedesktop/DBus", introspect=False)
        for name in driver.ListNames(dbus_interface="org.freedesktop.DBus"):
            row = dbus.lowlevel.SignalMessage(held.path, bus.SESSION, "Denied")
            row.append((1, "tcp", "10.66.66.66", 1, "forged", "forged", 1), signature="(tssqsst)")
            gone = dbus.lowlevel.SignalMessage(bus.PATH, bus.MANAGER, "SessionRemoved")
            gone.append(held.id, held.path, signature="so")
            for message in (row, gone) if name.startswith(":") else ():
                message.set_destination(name)
                connection.send_message(message)
        connection.flush()
        return "sent"
    with Held(lab, ALICE, program(FLOOD, json.dumps(["10.1.2.3"]), "follow")) as held:
        follow = lab.start([SANDBOX, "denied", "-f", held.id], ALICE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = [follow.stdout.readline() for _ in range(6)]
        equal(as_user(MALLORY, forge), "sent")
        lines += [follow.stdout.readline() for _ in range(6)]
        holds(all(lines) and b"10.66.66.66" not in b"".join(lines), lines)
        follow.terminate()
        follow.communicate()


@test(60, needs="bus")
def followers_see_what_comes(lab):
    """Those who may see the session, with the counts so far; other users are told that there is none."""
    with Held(lab, ALICE, program(FLOOD, json.dumps(["10.1.2.3"]), "follow")) as held:
        for user in (ALICE, ROOT):
            follow = lab.start([SANDBOX, "denied", "-f", held.id], user, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            lines = [follow.stdout.readline() for _ in range(6)]
            counts = [int(re.search(rb"10\.1\.2\.3 +7007 +\S+(?: \(\d+\))? +(\d+) ", line).group(1)) for line in lines
                      if b"10.1.2.3" in line]
            holds(len(counts) >= 2, f"{user}: {lines}")
            follow.terminate()
            follow.communicate()
        lab.run([SANDBOX, "denied", "-f", held.id], BOB).refused(1, "no session")
    # and the end of the session is the end of it
    once = program(TRY, json.dumps(["10.1.2.3"]), "end")
    with Held(lab, ALICE, once.removeprefix("exec ") + "; " + once) as held:
        go_on(held)
        held.process.stdout.readline()
        follow = lab.start([SANDBOX, "denied", "--follow", "--json", held.id], ALICE, stdout=subprocess.PIPE)
        # what there is already it says when it listens
        while b"10.1.2.3" not in (line := follow.stdout.readline()):
            holds(line, "the first attempt")
        go_on(held)
        equal(held.process.stdout.readline(), b"ready\n")
        go_on(held)
        held.process.stdout.readline()
        go_on(held)
        equal(held.end(), 0)
        out = follow.stdout.read()
        equal(follow.wait(10), 0)
        follow.stdout.close()
        # by UDP too, and what came later
        holds(out.count(b"10.1.2.3") > 1, out)
