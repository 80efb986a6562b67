# SPDX-License-Identifier: MIT
"""Ports that cross between the loopback addresses of jail and machine: those that are named, and no other."""

import errno
import os
import random
import resource
import signal
import socket
import subprocess
import threading
import time

import network
from bus_cases import Held, answer
from case import CYCLES, LONG, SANDBOX, SEED, equal, holds, processes, test, wait_for
from cycle_cases import LATEST, cycle
from fault_cases import Leavings
from machine import ALICE, BOB, ROOT
from network_cases import reach
from reach_cases import arrived, inside, quiet

BOTH = (ALICE, ROOT)
PYTHON = "/usr/bin/python3"
LOCAL, LOCAL6, LOW, SILENT, OTHER, CALLBACK = 5432, 5433, 88, 5434, 5435, 1455

# A line for each "ADDRESS PORT": what came back until the end, or the error, and whether it took less than a second.
CLIENT = """
import errno, socket, sys, time
for target in sys.argv[1:]:
    host, port = target.split()
    begin = time.monotonic()
    try:
        s = socket.create_connection((host, int(port)), 5)
        s.sendall(b"hello")
        s.shutdown(socket.SHUT_WR)
        said = b""
        while True:
            more = s.recv(65536)
            if not more:
                break
            said += more
        said = said.decode()
    except TimeoutError:
        said = "ETIMEDOUT"
    except OSError as error:
        said = errno.errorcode.get(error.errno, str(error))
        # what shutdown(2) says of a connection that was reset meanwhile
        said = "ECONNRESET" if said in ("ENOTCONN", "EPIPE") else said
        # of the ledger, or without it of the prohibiting route
        said = "denied" if said in ("EHOSTUNREACH", "EACCES") else said
    print(said, "soon" if time.monotonic() - begin < 1 else "late", flush=True)
"""

# Answers each connection with its name and what it was sent, after the end of that; ends with its input.
SERVER = """
import socket, sys, threading
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(200)
def answer(c):
    said = b""
    while True:
        try:
            more = c.recv(65536)
        except OSError:
            return
        if not more:
            break
        said += more
    c.sendall(sys.argv[2].encode() + b" heard " + said)
    c.close()
def serve():
    while True:
        threading.Thread(target=answer, args=(s.accept()[0],), daemon=True).start()
threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


class Outside:
    """A server on the machine's own loopback; what it hears it says again, when that has ended."""

    def __init__(self, port, host="127.0.0.1", name="outside"):
        self.name = name
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((host, port))
        self.socket.listen(200)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        said = b""
        with connection:
            try:
                while more := connection.recv(65536):
                    said += more
                connection.sendall(self.name.encode() + b" heard " + said)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


def asked(lab, user, *targets):
    """What these say to a process of that user on the machine."""
    return lab.run([PYTHON, "-c", CLIENT, *targets], user, cwd="/").ok().out.decode().splitlines()


def asked_inside(lab, user, *targets, **options):
    return lab.shell('exec "$@"', user, ["sh", PYTHON, "-c", CLIENT, *targets], **options).ok().out.decode().splitlines()


def login(port=CALLBACK, name="inside"):
    """A script for a session in which something listens at that port."""
    return f"exec {PYTHON} -c '{SERVER}' {port} {name}"


def ports(lab, held, user):
    return answer(lab.call("ListPorts", user=user, interface="org.claudesandbox1.Session", path=held.path))[0]


def children(held):
    """The process that is in the network of that session and outside its other namespaces, by the session's pid."""
    def look():
        found_sessions = [pid for pid, text in processes().items() if text.endswith("claude-sandbox/session") and
                          "claude-sandbox/init" in " ".join(below(pid))]
        return found_sessions[0] if len(found_sessions) == 1 else None
    session = wait_for(look, "one session with a jail")
    own = os.readlink(f"/proc/{session}/ns/net")
    found = []
    for pid in processes():
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            if parent == session and os.readlink(f"/proc/{pid}/ns/net") != own and \
                    os.readlink(f"/proc/{pid}/exe").endswith("claude-sandbox/session"):
                found.append(pid)
        except OSError:
            pass
    return session, found


def below(pid):
    """The command lines of everything below pid."""
    parents = {}
    for other in processes():
        try:
            with open(f"/proc/{other}/stat", encoding="ascii", errors="replace") as f:
                parents[other] = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    found, level = [], {pid}
    while level:
        level = {other for other, parent in parents.items() if parent in level}
        found += [processes().get(other, "") for other in level]
    return found


@test(90, needs="bus")
def local_ports_lead_outside(lab):
    lab.configure(f"local-port = {LOCAL}\nlocal-port = {LOCAL6}\nlocal-port = {LOW}\nlocal-model-port = {SILENT}\n")
    for user in BOTH:
        with Outside(LOCAL), Outside(LOCAL6, "::1", "six"), Outside(LOW, name="low"), Outside(OTHER):
            equal(asked_inside(lab, user, f"127.0.0.1 {LOCAL}", f"127.0.0.1 {LOCAL6}", f"127.0.0.1 {LOW}",
                               f"127.0.0.1 {SILENT}", f"127.0.0.1 {OTHER}", f"{network.HOST} {LOCAL}"),
                  ["outside heard hello soon", "six heard hello soon", "low heard hello soon",
                   # nothing listens outside: reset at once; not named: the jail's own loopback
                   "ECONNRESET soon", "ECONNREFUSED soon", "denied soon"], str(user))


@test(90, needs="bus")
def callback_ports_lead_inside(lab):
    """For the session's user and root, on both loopback addresses of the machine, and for nobody else."""
    lab.configure(f"callback-port = {CALLBACK}\ncallback-port = {SILENT}\n")
    for user in BOTH:
        with Held(lab, user, script=login()) as held:
            targets = [f"127.0.0.1 {CALLBACK}", f"::1 {CALLBACK}", f"127.0.0.1 {SILENT}"]
            for caller in {user, ROOT}:
                equal(asked(lab, caller, *targets),
                      ["inside heard hello soon", "inside heard hello soon", "ECONNRESET soon"], f"{user}: {caller}")
            equal(asked(lab, BOB, *targets), ["ECONNRESET soon"] * 3, f"{user}: somebody else")
            equal(asked(lab, user, f"{network.HOST} {CALLBACK}"), ["ECONNREFUSED soon"], "on loopback alone")
            equal(ports(lab, held, user),
                  [[CALLBACK, "callback", "listening", "/etc/claude-sandbox.conf:1"],
                   [SILENT, "callback", "listening", "/etc/claude-sandbox.conf:2"]])
            # neither a neighbour nor another session gets there
            done = subprocess.run(["/usr/bin/nsenter", "-t", str(lab.network.inet.process), "-n", PYTHON, "-c", CLIENT,
                                   f"{network.HOST} {CALLBACK}"], capture_output=True, check=False, timeout=20)
            equal(done.stdout, b"ECONNREFUSED soon\n", repr(done))
        lab.restore()
        lab.configure(f"callback-port = {CALLBACK}\n")
        with Held(lab, user, script=login()):
            lab.restore()
            equal(asked_inside(lab, user, f"127.0.0.1 {CALLBACK}", f"{network.HOST} {CALLBACK}"),
                  ["ECONNREFUSED soon", "denied soon"], f"{user}: from another session")
            lab.configure(f"callback-port = {CALLBACK}\ncallback-port = {SILENT}\n")
        equal(asked(lab, user, f"127.0.0.1 {CALLBACK}"), ["ECONNREFUSED soon"], f"{user}: gone with the session")


@test(60, needs="bus")
def another_user_in_the_way(lab):
    """Whoever may not come in and comes all the time keeps nobody out, and the session from nothing."""
    lab.configure(f"callback-port = {CALLBACK}\n")
    crowd = (f"import socket\nprint('ready', flush=True)\nwhile True:\n  s = socket.socket()\n  try:\n"
             f"    s.connect(('127.0.0.1', {CALLBACK}))\n    s.send(b'x')\n  except OSError:\n    pass\n  s.close()\n")
    crowds = []
    try:
        with Held(lab, script=login()) as held:
            for _ in range(3):
                crowds.append(lab.start([PYTHON, "-c", crowd], BOB, cwd="/", stdout=subprocess.PIPE))
                equal(crowds[-1].stdout.readline(), b"ready\n")
            for _ in range(5):
                said, = asked(lab, ALICE, f"127.0.0.1 {CALLBACK}")
                equal(said.split(" ")[:3], ["inside", "heard", "hello"])
                result = lab.call("ListPorts", user=ALICE, interface="org.claudesandbox1.Session", path=held.path)
                equal(answer(result), [[[CALLBACK, "callback", "listening", "/etc/claude-sandbox.conf:1"]]])
                holds(result.seconds < 1.5, repr(result))
    finally:
        for process in crowds:
            process.kill()
            process.wait()
            process.stdout.close()


@test(60, needs="bus")
def few_descriptors(lab):
    """Where the caller's limit leaves room for few connections a warning says so, and one too many is reset at once."""
    lab.configure(f"callback-port = {CALLBACK}\n")
    hold = f"""
import socket, select
def is_reset(s):
    try:
        s.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True
waiting = [socket.create_connection(("127.0.0.1", {CALLBACK})) for _ in range(40)]
while len(waiting) > 14:
    ready = select.select(waiting, [], [], 10)[0]
    assert ready, len(waiting)
    waiting = [s for s in waiting if s not in ready or not is_reset(s)]
n = 0
for s in waiting:
    s.sendall(b"x")
    s.shutdown(socket.SHUT_WR)
    n += s.recv(99) == b"inside heard x"
print(n)
"""
    with Held(lab, script=login(), before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600))) as held:
        equal(lab.run([PYTHON, "-c", hold], cwd="/").ok().out, b"14\n")
        equal(asked(lab, ALICE, f"127.0.0.1 {CALLBACK}"), ["inside heard hello soon"])
        held.end()
        err = held.process.stderr.read().decode()
    holds("the limit of 600 open files leaves room for 14 connections" in err, repr(err))


@test(60, needs="bus")
def connections_given_up_are_nobodys(lab):
    """Data from a socket that its process has closed already reaches nothing, whatever the kernel says of its owner."""
    lab.configure(f"callback-port = {CALLBACK}\n")
    send = ("import socket\nfor i in range(50):\n s = socket.create_connection(('127.0.0.1', " f"{CALLBACK}" "))\n"
            " try:\n  s.sendall(b'stolen')\n except OSError:\n  pass\n s.close()\nprint('sent')\n")
    listen = ("import socket, select, sys\ns = socket.socket()\ns.bind((\"127.0.0.1\", " f"{CALLBACK}" "))\ns.listen(99)\n"
              "print(\"ready\", flush=True)\nn = 0\n"
              "while sys.stdin not in select.select([s, sys.stdin], [], [])[0]:\n"
              "  c = s.accept()[0]; print(c.recv(99), flush=True)\n")
    with Held(lab, ALICE, script=f"exec {PYTHON} -c '{listen}'") as held:
        equal(lab.run([PYTHON, "-c", send], BOB, cwd="/").ok().out, b"sent\n")
        equal(asked(lab, BOB, f"127.0.0.1 {CALLBACK}"), ["ECONNRESET soon"])
        held.end()
        equal(held.process.stdout.read(), b"", "what reached the agent")


@test(60, needs="bus")
def last_bytes_of_an_agent_arrive(lab):
    """A login page that is the last that the agent says."""
    lab.configure(f"callback-port = {CALLBACK}\n")
    page = ("import socket\ns = socket.socket()\ns.bind((\"127.0.0.1\", " f"{CALLBACK}" "))\ns.listen(9)\nprint(\"ready\", flush=True)\n"
            "c = s.accept()[0]\nc.recv(99)\nc.sendall(b\"p\" * 100000)\n")
    for user in BOTH:
        with Held(lab, user, script=f"exec {PYTHON} -c '{page}'") as held:
            equal(asked(lab, user, f"127.0.0.1 {CALLBACK}"), ["p" * 100000 + " soon"], str(user))
            equal(held.process.wait(10), 0)


@test(90, needs="bus")
def ports_that_are_taken(lab):
    lab.configure(f"callback-port = {CALLBACK}\nlocal-port = {LOCAL}\ncallback-port = {SILENT}\n")
    origin = "/etc/claude-sandbox.conf"
    for user in BOTH:
        with Outside(CALLBACK, name="squatter"), Outside(SILENT, "::1"):
            with Held(lab, user) as held:
                equal(ports(lab, held, user),
                      [[LOCAL, "local", "listening", f"{origin}:2"], [CALLBACK, "callback", "taken", f"{origin}:1"],
                       [SILENT, "callback", "listening", f"{origin}:3"]], str(user))
                held.end()
                err = held.process.stderr.read().decode()
        for word in (f"callback-port {CALLBACK}: another program listens on 127.0.0.1:{CALLBACK}",
                     f"callback-port {SILENT}: another program listens on [::1]:{SILENT}"):
            holds(word in err, f"{user}: {word!r} is not in {err!r}")
        equal(len(err.splitlines()), 2, err)
        with Held(lab, user, script=login()):
            with Held(lab, user) as second:
                equal([row[2] for row in ports(lab, second, user) if row[0] == CALLBACK], ["taken"], f"{user}: a second session")
                equal(asked(lab, user, f"127.0.0.1 {CALLBACK}"), ["inside heard hello soon"], "the first keeps it")


@test(60, needs="bus")
def ports_are_shown(lab):
    lab.configure(f"callback-port = {CALLBACK}\nlocal-model-port = {LOCAL}\nlocal-port = {LOCAL}\n")
    with Held(lab) as held:
        equal(lab.run([SANDBOX, "ports"], cwd="/").ok().out.decode().splitlines(),
              ["PORT  DIRECTION  STATE      ORIGIN", f"{LOCAL}  local      listening  /etc/claude-sandbox.conf:3",
               f"{CALLBACK}  callback   listening  /etc/claude-sandbox.conf:1"])
        shown = lab.run([SANDBOX, "show", held.id], cwd="/").ok().out.decode()
        holds("PORTS      2 (2 listening)" in shown and "some cross" in shown, shown)
        holds(lab.run([SANDBOX, "ports", held.id], BOB, cwd="/").status != 0, "another's are not shown")
    lab.restore()
    with Held(lab) as held:
        equal(lab.run([SANDBOX, "ports"], cwd="/").ok().out, b"no ports cross\n")
        equal(ports(lab, held, ALICE), [])
        equal(children(held)[1], [], "no process for ports that are not")


@test(60, needs="bus")
def twins_add_for_root(lab):
    lab.configure(f"local-port = {LOCAL}\n")
    env = lab.environment(ROOT, CLAUDE_SANDBOX_LOCAL_PORTS=f"{OTHER}, {LOCAL}", CLAUDE_SANDBOX_CALLBACK_PORTS=str(CALLBACK),
                          CLAUDE_SANDBOX_LOCAL_MODEL_PORT=str(SILENT))
    with Outside(LOCAL), Outside(OTHER), Outside(SILENT), Held(lab, ROOT, login(), env=env) as held:
        equal([row[:3] for row in ports(lab, held, ROOT)],
              [[LOCAL, "local", "listening"], [OTHER, "local", "listening"], [SILENT, "local", "listening"],
               [CALLBACK, "callback", "listening"]])
        equal(asked(lab, ROOT, f"127.0.0.1 {CALLBACK}"), ["inside heard hello soon"])


@test(120, needs="bus")
def denials_hold_beside_ports(lab):
    """Everything else is refused as ever, by every trick, and the namespace is what was meant."""
    lab.configure(f"local-port = {network.ECHO_PORT}\ncallback-port = {CALLBACK}\n")
    for user in BOTH:
        quiet(lab)
        token = f"beside-{user}"
        rows = reach(lab, network.DENIED, token, inside(lab, user), limit=1000)
        # the named port of loopback is meant to be reached, by TCP
        equal([row for row in rows if row[4] == "reached" and (row[3] != network.LOOPBACK or row[0] != "tcp")], [], f"{user}")
        equal([note for note in arrived(lab, token) if note[1] != network.LOOPBACK or note[0] != "tcp"], [], f"{user}")


@test(90, needs="bus")
def many_connections_at_once(lab):
    """A hundred at a time each way, and one that nobody reads stops none of them."""
    lab.configure(f"local-port = {LOCAL}\ncallback-port = {CALLBACK}\n")
    many = """
import socket, sys
port = int(sys.argv[1])
slow = socket.create_connection(("127.0.0.1", port))
slow.setblocking(False)
total = 0
try:
    while total < 1 << 28:
        total += slow.send(bytes(1 << 20))
except BlockingIOError:
    pass
all = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
for i, s in enumerate(all):
    s.sendall(str(i).encode() * 20000)
    s.shutdown(socket.SHUT_WR)
wrong = 0
for i, s in enumerate(all):
    said = b""
    while more := s.recv(65536):
        said += more
    wrong += said.partition(b" heard ")[2] != str(i).encode() * 20000
print(wrong)
"""
    for user in BOTH:
        with Outside(LOCAL):
            equal(lab.shell('exec "$@"', user, ["sh", PYTHON, "-c", many, str(LOCAL)]).ok().out, b"0\n", f"{user}: local")
        with Held(lab, user, script=login()):
            equal(lab.run([PYTHON, "-c", many, str(CALLBACK)], user, cwd="/").ok().out, b"0\n", f"{user}: callback")


@test(60, needs="bus")
def session_answers_while_bytes_move(lab):
    """Whoever fills a relay as fast as it goes keeps the session from nothing else."""
    lab.configure(f"local-port = {LOCAL}\n")
    pull = (f"import socket\ns = socket.create_connection((\"127.0.0.1\", {LOCAL}))\nprint(\"ready\", flush=True)\n"
            "buffer = bytearray(1 << 18)\nwhile s.recv_into(buffer):\n  pass\nprint(\"end\", flush=True)\n")
    push = (f"import socket\ns = socket.socket()\ns.setsockopt(1, 2, 1)\ns.bind(('127.0.0.1', {LOCAL}))\ns.listen()\n"
            "print('ready', flush=True)\nc = s.accept()[0]\ntry:\n  while True:\n    c.sendall(bytes(1 << 18))\n"
            "except OSError:\n  pass\n")
    server = lab.start([PYTHON, "-c", push], cwd="/", stdout=subprocess.PIPE)
    try:
        equal(server.stdout.readline(), b"ready\n")
        with Held(lab, script=f"exec {PYTHON} -c '{pull}'") as held:
            for _ in range(10):
                result = lab.call("ListPorts", user=ALICE, interface="org.claudesandbox1.Session", path=held.path)
                equal(answer(result), [[[LOCAL, "local", "listening", "/etc/claude-sandbox.conf:1"]]])
                holds(result.seconds < 1, repr(result))
            holds(held.process.poll() is None and server.poll() is None, "the bytes still move")
            server.kill()
            equal(held.process.stdout.readline(), b"end\n")
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


@test(120, needs="bus")
def gone_with_the_session(lab):
    """Whoever is killed: nothing listens, and nothing of it is left."""
    lab.configure(f"local-port = {LOCAL}\ncallback-port = {CALLBACK}\n")
    for user in BOTH:
        leavings = Leavings(lab)
        for victim in ("session", "launch", "init", "bwrap"):
            with Held(lab, user, script=login()) as held:
                session, (child,) = children(held)
                pid = {"session": session, "launch": held.process.pid}.get(victim) or \
                    next(p for p, text in processes().items() if text.split(" ")[0].endswith(victim))
                os.kill(pid, signal.SIGKILL)
                wait_for(lambda: not os.path.exists(f"/proc/{child}"), f"{user}, {victim}: the process for ports goes too")
                wait_for(lambda: asked(lab, user, f"127.0.0.1 {CALLBACK}") == ["ECONNREFUSED soon"],
                         f"{user}, {victim}: the port is free")
                held.process.wait(10)
            lab.shell("true", user, limit=20)               # sweeps what a killed session could not
            leavings.nothing_left(f"{user}: {victim} was killed")


@test(300, needs="bus")
def killed_while_starting(lab):
    """At any moment of a start: no process, no namespace and no listener stays."""
    lab.configure(f"local-port = {LOCAL}\ncallback-port = {CALLBACK}\n")
    leavings, chance = Leavings(lab), random.Random(SEED)
    for n in range(CYCLES):
        role, user = ("session", "launch", "bwrap", "init")[n % 4], BOTH[chance.randrange(2)]
        what = f"seed {SEED}, cycle {n}: {role} of {user}"
        cycle(lab, leavings, user, role, chance.random() * LATEST, what)
        with socket.socket() as s:
            equal(s.connect_ex(("127.0.0.1", CALLBACK)), errno.ECONNREFUSED, f"{what}: the port is free")


@test(60, needs="bus")
def process_for_ports_that_hangs(lab):
    """A connection for which no socket comes is reset in the end; the session is not held up by it."""
    if not LONG:
        return
    lab.configure(f"local-port = {LOCAL}\ncallback-port = {CALLBACK}\n")
    with Held(lab, script=login()) as held:
        _, (child,) = children(held)
        os.kill(child, signal.SIGSTOP)
        for _ in range(8):
            with socket.create_connection(("127.0.0.1", CALLBACK)) as s:
                s.sendall(b"x")
                s.shutdown(socket.SHUT_WR)
                s.settimeout(15)
                begin = time.monotonic()
                try:
                    equal(s.recv(99), b"inside heard x")
                except ConnectionResetError:
                    holds(8 < time.monotonic() - begin < 13, "after ten seconds")
                    break
                result = lab.call("ListPorts", user=ALICE, interface="org.claudesandbox1.Session", path=held.path)
                holds(result.ok().seconds < 1, repr(result))
        else:
            raise AssertionError("sockets without end")
        os.kill(child, signal.SIGCONT)
        wait_for(lambda: asked(lab, ALICE, f"127.0.0.1 {CALLBACK}") == ["inside heard hello soon"], "it goes on", 10)


@test(60, needs="bus")
def death_of_the_process_for_ports(lab):
    """Then a login does not come in any more, which the list says; local ports and the agent go on."""
    lab.configure(f"local-port = {LOCAL}\ncallback-port = {CALLBACK}\n")
    script = f"echo ready; read x; {PYTHON} -c '{CLIENT}' '127.0.0.1 {LOCAL}'; read y"
    for user in BOTH:
        with Outside(LOCAL), Held(lab, user, script=script) as held:
            session, (child,) = children(held)
            os.kill(child, signal.SIGKILL)
            wait_for(lambda: [row[2] for row in ports(lab, held, user)] == ["listening", "failed"], "the list says so")
            equal(asked(lab, user, f"127.0.0.1 {CALLBACK}"), ["ECONNREFUSED soon"], str(user))
            held.process.stdin.write(b"\n")
            held.process.stdin.flush()
            equal(held.process.stdout.readline(), b"outside heard hello soon\n", str(user))
            holds(os.path.exists(f"/proc/{session}"), "the session goes on")


@test(60, needs="bus")
def process_for_ports_has_nothing_else(lab):
    """No capability, two descriptors at most, a filter, no way to it from inside."""
    for procfs in ("auto", "outer"):
        lab.configure(f"callback-port = {CALLBACK}\nprocfs = {procfs}\n")
        for user in BOTH:
            script = "echo ready; while read pid; do kill -0 $pid; cat /proc/$pid/environ /proc/$pid/maps >&2; echo done; done"
            with Held(lab, user, script=script) as held:
                _, (child,) = children(held)
                with open(f"/proc/{child}/status", encoding="ascii") as f:
                    status = dict(line.split(":", 1) for line in f)
                equal([status[name].strip() for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp")],
                      ["0" * 16] * 4 + ["1", "2"], f"{user}: {procfs}")
                fds = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
                holds(len(fds) <= 2 and all(fd.startswith("socket:") for fd in fds), f"{user}: {fds}")
                equal(os.readlink(f"/proc/{child}/ns/mnt"), os.readlink("/proc/self/ns/mnt"), "it is not in the jail")
                held.process.stdin.write(b"%d\n" % child)
                held.process.stdin.flush()
                equal(held.process.stdout.readline(), b"done\n")
                held.end()
                err = held.process.stderr.read().decode()
                holds("No such process" in err, f"{user}, {procfs}: no signal to it: {err!r}")
                equal(err.count("No such file") + err.count("Permission denied"), 2, f"{user}, {procfs}: {err!r}")
        lab.restore()


@test(60, needs="bus")
def the_agents_own_use_of_a_local_port(lab):
    """The listener is there before the agent, who cannot take its place; the callback's place is the agent's."""
    lab.configure(f"local-port = {LOCAL}\ncallback-port = {CALLBACK}\n")
    bind = "import socket\nfor p in ({}, {}):\n try:\n  socket.socket().bind((\"127.0.0.1\", p)); print(\"bound\")\n except OSError as e:\n  print(e.errno)\n"
    for user in BOTH:
        equal(lab.shell('exec "$@"', user, ["sh", PYTHON, "-c", bind.format(LOCAL, CALLBACK)]).ok().out, b"98\nbound\n", str(user))


@test(30, needs="bus")
def a_callback_port_that_no_agent_can_have(lab):
    """Refused where it stands: in its line, and by its variable."""
    for port, status in ((1023, 125), (1024, 0)):
        result = lab.shell("true", env=lab.environment(ROOT, CLAUDE_SANDBOX_CALLBACK_PORTS=str(port)), user=ROOT)
        equal(result.status, status, repr(result))
    lab.configure(f"local-port = {LOW}\ncallback-port = {LOW}\n")
    lab.shell("true").refused(125, "/etc/claude-sandbox.conf:2", "no agent can listen on", "1024 to 65535")
