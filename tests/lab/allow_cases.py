# SPDX-License-Identifier: MIT
"""Addresses opened and closed while agents run."""

import json
import os
import select
import subprocess
import time

import bus
import network
from case import CONFIG, SANDBOX, equal, holds, test, wait_for
from machine import ALICE, MALLORY, ROOT

OTHER = network.INTERNAL["10.0.0.0/8"]

# An agent that does what it is told by lines and answers with lines of JSON.
AGENT = r"""
import json, select, socket, sys, threading, time
PORT = %d
flows = {}
counts = {}
def stream(address):
    s = socket.socket(); s.settimeout(2); s.connect((address, PORT)); return s
def datagrams(address, device=None):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)
    if device: s.setsockopt(socket.SOL_SOCKET, 25, device)
    s.connect((address, PORT)); return s
def echoes(s, text):
    try:
        s.settimeout(0.7)
        s.send(text)
        while True:
            data = s.recv(4096)
            if not data: return "closed"
            if text in data: return "echo"
    except OSError as e:
        return "error" if not isinstance(e, TimeoutError) else "silence"
def loop(address):
    n = {"reached": 0, "refused": 0}
    counts[address] = n
    while True:
        try:
            # connect(2) may say yes for a moment of a socket that an ICMP error has just closed
            s = stream(address); s.getpeername(); s.close(); n["reached"] += 1
        except OSError:
            n["refused"] += 1
def do(words):
    if words[0] == "open":
        flows.update({"tcp": stream(words[1]), "udp": datagrams(words[1]), "bound": datagrams(words[1], b"jail0\0")})
        return "opened"
    if words[0] == "echo":
        return {name: echoes(s, (words[1] + name).encode()) for name, s in flows.items()}
    if words[0] == "storm":
        for name, s in flows.items(): s.send(("storm " + words[1] + name).encode())
        return "sent"
    if words[0] == "hear":
        # what waits was let in before; then all that comes until the time is over
        heard, end = {name: 0 for name in flows}, None
        for seconds in (0, float(words[1])):
            end = time.monotonic() + seconds
            while True:
                ready = select.select(list(flows.values()), [], [], max(0, end - time.monotonic()))[0]
                for name, s in flows.items():
                    if s in ready:
                        try: got = len(s.recv(65536, socket.MSG_DONTWAIT))
                        except OSError: got = 0
                        if not got and name == "tcp": flows[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                        heard[name] += bool(got and seconds)
                if time.monotonic() >= end and (seconds or not ready): break
        return heard
    if words[0] == "try":
        try: return echoes(stream(words[1]), b"try " + words[2].encode())
        except OSError as e: return "refused"
    if words[0] == "loop":
        threading.Thread(target=loop, args=(words[1],), daemon=True).start(); return "looping"
    if words[0] == "counts":
        return counts
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    try: answer = do(line.split())
    except Exception as e: answer = "failed: %%r" %% (e,)
    print(json.dumps(answer), flush=True)
""" % network.ECHO_PORT


class Agent:
    """A session whose agent obeys."""

    def __init__(self, lab, user=ALICE):
        before = set(lab.sessions())
        self.process = lab.start([SANDBOX, "shell", "-c", 'exec /usr/bin/python3 -c "$1"', "sh", AGENT], user,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        lab.undo.append(self.end)
        equal(self.answer(), "ready")
        self.id = (set(lab.sessions()) - before).pop()
        self.path = f"{bus.PATH}/session/{self.id}"

    def answer(self, limit=15):
        holds(select.select([self.process.stdout], [], [], limit)[0], "the agent answers in time")
        line = self.process.stdout.readline()
        holds(line, "the agent lives")
        return json.loads(line)

    def tell(self, *words):
        self.process.stdin.write((" ".join(words) + "\n").encode())
        self.process.stdin.flush()
        return self.answer()

    def reaches(self, address, token="x"):
        answer = self.tell("try", address, token)
        holds(answer in ("echo", "refused"), f"{address}: {answer}")
        return answer == "echo"

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)


def words(result):
    """What busctl printed."""
    holds(result.status == 0, repr(result))
    return json.loads(result.out)["data"]


def add(lab, address, comment="", user=ROOT):
    return lab.call("AddAllowIp", "ssa{sv}", address, comment, 0, user=user)


def remove(lab, address, user=ROOT):
    return lab.call("RemoveAllowIp", "s", address, user=user)


def allow(lab, agent, address, seconds=0, user=ROOT):
    return lab.call("AllowIp", "sta{sv}", address, seconds, 0, user=user, interface=bus.SESSION, path=agent.path)


def revoke(lab, agent, address, user=ROOT):
    return lab.call("RevokeIp", "s", address, user=user, interface=bus.SESSION, path=agent.path)


def read(path=CONFIG):
    with open(path, "rb") as f:
        return f.read()


@test(60, needs="bus")
def running_sessions_follow(lab):
    """AddAllowIp opens in every running session, RemoveAllowIp closes; the file is the same again."""
    text = b"# ours\r\nallow-ip = 10.99.0.1   # kept\r\n"
    lab.configure(text)
    agents = [Agent(lab, ALICE), Agent(lab, ROOT)]
    for agent in agents:
        holds(not agent.reaches(network.DEVICE), "closed at first")
    equal(words(add(lab, network.DEVICE, "the oscilloscope")), [[]])
    for agent in agents:
        holds(agent.reaches(network.DEVICE), "open")
        holds(not agent.reaches(OTHER), "and nothing else")
    equal(read(), text + b"allow-ip = 10.20.30.40 # the oscilloscope\r\n")
    rows = words(lab.call("ListAllowIp"))[0]
    equal(rows, [["10.99.0.1", "kept", CONFIG + ":2"], ["10.20.30.40", "the oscilloscope", CONFIG + ":3"]])
    equal(words(remove(lab, network.DEVICE)), [[]])
    equal(read(), text)
    for agent in agents:
        holds(not agent.reaches(network.DEVICE), "closed again")
        holds(agent.reaches(network.PUBLIC), "the internet stays")


@test(60, needs="bus")
def flows_end(lab):
    """A stream, a connected datagram socket and one bound to the device carry nothing more, in either direction."""
    agent = Agent(lab)
    allow(lab, agent, network.DEVICE).ok()
    equal(agent.tell("open", network.DEVICE), "opened")
    equal(agent.tell("echo", "first"), {"tcp": "echo", "udp": "echo", "bound": "echo"})
    lab.network.inet.take()
    revoke(lab, agent, network.DEVICE).ok()
    found = agent.tell("echo", "second")
    holds("echo" not in found.values(), f"{found}")
    equal(found["tcp"], "error", "the program learns of it at once")
    equal([note for note in lab.network.inet.take() if "second" in note[3]], [], "outside")
    # opened again, old sockets stay ended
    allow(lab, agent, network.DEVICE).ok()
    holds(agent.reaches(network.DEVICE), "a new one")
    holds(agent.tell("echo", "third")["tcp"] != "echo", "the old stream")


@test(60, needs="bus")
def nothing_comes_in(lab):
    """What the other end goes on sending after RevokeIp does not arrive, on any of the sockets."""
    agent = Agent(lab)
    allow(lab, agent, network.DEVICE).ok()
    equal(agent.tell("open", network.DEVICE), "opened")
    equal(agent.tell("storm", "x"), "sent")
    wait_for(lambda: min(agent.tell("hear", "0.3").values()) > 3, "it comes in while it may", 4)
    revoke(lab, agent, network.DEVICE).ok()
    equal(agent.tell("hear", "1"), {"tcp": 0, "udp": 0, "bound": 0})


@test(60, needs="bus")
def expires(lab):
    """A session's own address closes by itself; the configuration's of the same address outlives it."""
    lab.configure("")
    agent = Agent(lab)
    allow(lab, agent, network.DEVICE, 2).ok()
    begin = time.monotonic()
    holds(agent.reaches(network.DEVICE), "open")
    rows = words(lab.call("ListAllowIp"))[0]
    equal([row[:2] for row in rows], [[network.DEVICE, ""]])
    holds(rows[0][2].startswith(f"session {agent.id} until "), rows[0][2])
    wait_for(lambda: not words(lab.call("ListAllowIp"))[0], "the end of its time", 6)
    holds(1.5 < time.monotonic() - begin < 5, "after two seconds")
    holds(not agent.reaches(network.DEVICE), "closed")
    # both sets
    allow(lab, agent, network.DEVICE).ok()
    equal(words(add(lab, network.DEVICE)), [[]])
    revoke(lab, agent, network.DEVICE).ok()
    holds(agent.reaches(network.DEVICE), "the configuration has it")
    holds(revoke(lab, agent, network.DEVICE).status != 0, "nothing of its own is left")
    allow(lab, agent, network.DEVICE).ok()
    equal(words(remove(lab, network.DEVICE)), [[]])
    holds(agent.reaches(network.DEVICE), "the session has it")
    revoke(lab, agent, network.DEVICE).ok()
    holds(not agent.reaches(network.DEVICE), "nobody has it")


@test(60, needs="bus")
def never_wider(lab):
    """While addresses come and go, an agent that connects all the time reaches nothing else."""
    lab.configure("")
    agent = Agent(lab)
    lab.network.inet.take()
    lab.network.host.take()
    for address in (network.DEVICE, OTHER, network.HOST, "192.0.0.1", "10.20.99.99"):
        equal(agent.tell("loop", address), "looping")
    for i in range(12):
        equal(words(add(lab, "10.20.0.0/16" if i % 2 else network.DEVICE)), [[]])
        wait_for(lambda: agent.tell("counts")[network.DEVICE]["reached"] > i, "the agent reaches it")
        equal(words(remove(lab, "10.20.0.0/16" if i % 2 else network.DEVICE)), [[]])
    counts = agent.tell("counts")
    for address in (OTHER, network.HOST, "192.0.0.1", "10.20.99.99"):
        equal(counts[address]["reached"], 0, address)
    seen = {note[1] for site in (lab.network.inet, lab.network.host) for note in site.take()}
    equal(seen - {network.DEVICE}, set(), "outside")


@test(60, needs="bus")
def who_may(lab):
    """Root may; others are asked by polkit, and refused where it says no or is not there; closing one's own may."""
    lab.configure("")
    agent = Agent(lab)
    for result in (add(lab, network.DEVICE, user=ALICE), remove(lab, network.DEVICE, user=ALICE),
                   allow(lab, agent, network.DEVICE, user=ALICE)):
        holds(result.status != 0, repr(result))
    equal(read(), b"")
    result = allow(lab, agent, network.DEVICE, user=MALLORY)
    holds(result.status != 0 and b"Unknown object" in result.err, repr(result))
    allow(lab, agent, network.DEVICE).ok()
    equal(words(lab.call("ListAllowIp", user=MALLORY))[0], [])
    equal(len(words(lab.call("ListAllowIp", user=ALICE))[0]), 1)
    revoke(lab, agent, network.DEVICE, user=ALICE).ok()
    holds(not agent.reaches(network.DEVICE), "closed")
    # only a check: anybody, and nothing changes
    lab.call("AddAllowIp", "ssa{sv}", network.DEVICE, "", 1, "check", "b", "true", user=MALLORY).ok()
    equal(read(), b"")


@test(60, needs="bus")
def polkit_says_yes(lab):
    """Whom polkit lets edit addresses may, for all sessions and for one; what was asked about is what is done."""
    lab.configure("")
    agent = Agent(lab)
    lab.replace("/etc/polkit-1/rules.d/00-of-a-test.rules", b"""polkit.addRule(function(action, subject) {
        if (action.id == "org.claudesandbox1.edit-allow-ip")
            return subject.user == "mallory" ? polkit.Result.NO : polkit.Result.YES;
    });""")
    # polkitd looks at its rules again when it is told of the file
    wait_for(lambda: add(lab, network.DEVICE, "by alice", user=ALICE).status == 0, "polkit's new rule")
    holds(agent.reaches(network.DEVICE), "open")
    result = remove(lab, network.DEVICE, user=MALLORY)
    holds(result.status != 0 and b"does not allow" in result.err, repr(result))
    equal(words(remove(lab, network.DEVICE, user=ALICE)), [[]])
    allow(lab, agent, network.DEVICE, 60, user=ALICE).ok()
    holds(agent.reaches(network.DEVICE), "open in one")


@test(120, needs="bus")
def fifty_sessions(lab):
    """Fifty sessions take an address and give it back; each has confirmed when the call returns."""
    lab.configure("")
    agents = [lab.start([SANDBOX, "shell", "-c", "read line"], ALICE if i % 2 else ROOT, stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for i in range(49)]
    lab.undo.append(lambda: [agent.communicate(timeout=20) for agent in agents])
    last = Agent(lab)
    running = wait_for(lambda: (rows := words(lab.call("ListSessions"))[0]) and
                       sum(row[7] in ("running", "offline") for row in rows) == 50 and rows, "fifty sessions", 60)
    connection = bus.Bus.connect()
    times = []
    for member, signature, arguments in (("AddAllowIp", "ssa{sv}", (network.DEVICE, "", {})),
                                         ("RemoveAllowIp", "s", (network.DEVICE,))):
        begin = time.monotonic()
        unconfirmed = connection.call_blocking(bus.NAME, bus.PATH, bus.MANAGER, member, signature, arguments)
        times.append((time.monotonic() - begin) * 1000)
        equal(list(unconfirmed), [], member)
        equal(last.reaches(network.DEVICE), member == "AddAllowIp", member)
    print(f"     {len(running)} sessions: added in {times[0]:.0f} ms, removed in {times[1]:.0f} ms")
    # the aim is 200 ms on a machine with nothing else to do
    holds(max(times) < 1900, f"{times}")
    connection.close()


@test(60, needs="bus")
def by_the_command(lab):
    """claude-sandbox allow-ip: list, add, remove, of one session for a time; as lines and as JSON."""
    lab.configure("# ours\n")
    agent = Agent(lab)
    other = Agent(lab)

    def command(*words, user=ROOT):
        return lab.run([SANDBOX, "allow-ip", *words], user)

    equal(command("add", network.DEVICE, "the oscilloscope").ok().out, b"added 10.20.30.40\n")
    equal(read(), b"# ours\nallow-ip = 10.20.30.40  # the oscilloscope\n")
    holds(agent.reaches(network.DEVICE) and other.reaches(network.DEVICE), "open")
    equal(json.loads(command("remove", "--json", network.DEVICE).ok().out),
          {"address": network.DEVICE, "session": None, "unconfirmed": []})
    equal(read(), b"# ours\n")
    equal(command("add", network.DEVICE, "--session", agent.id[:9], "--for=1h").ok().out,
          f"opened 10.20.30.40 in session {agent.id}\n".encode())
    holds(agent.reaches(network.DEVICE) and not other.reaches(network.DEVICE), "in one alone")
    rows = json.loads(command("list", "--json", user=ALICE).ok().out)
    holds(len(rows) == 1 and rows[0]["origin"].startswith(f"session {agent.id} until 20"), rows)
    equal(command("remove", network.DEVICE, "--session", agent.id, user=ALICE).ok().out,
          f"closed 10.20.30.40 in session {agent.id}\n".encode())
    holds(not agent.reaches(network.DEVICE), "closed")
    command("remove", network.DEVICE).refused(1, "no allow-ip is 10.20.30.40")
    command("remove", network.DEVICE, "--session", agent.id, user=ALICE).refused(1, "was not opened")
    equal(command("add", network.DEVICE, "the", "new", "printer").ok().out, b"added 10.20.30.40\n")
    command("add", network.DEVICE).ok()
    holds(b"# the new printer\n" in read(), "without another one a comment stays")
    equal(read(), b"# ours\nallow-ip = 10.20.30.40  # the new printer\n")
    command("remove", network.DEVICE).ok()
    said = command("add", "8.8.8.8").ok().out
    holds(said.startswith(b"added 8.8.8.8\n8.8.8.8 is of the internet"), repr(said))
    command("remove", "8.8.8.8").ok()
    said = command("add", network.HOST).ok().out
    holds(f"{network.HOST} is this machine's own address".encode() in said, repr(said))
    command("remove", network.HOST).ok()
    holds(b"credentials of this machine" in command("add", "169.254.169.254").ok().out, "metadata")
    command("remove", "169.254.169.254").ok()
    result = command("add", "127.0.0.1")
    holds(result.status == 125 and b"loopback" in result.err and b"leave it out" in result.err, repr(result))
    command("add", "10.20.30.40/16").refused(125, "write 10.20.0.0/16")
    command("add", network.DEVICE, user=ALICE).refused(125, "edit-allow-ip")


@test(60, needs="bus")
def in_an_editor(lab):
    """allow-ip edit does what was changed, and nothing when a line is no address; a planted editor does not run."""
    before = b"gpu 0 # \xff\n".replace(b"gpu 0", b"no-forge") + b"allow-ip = 10.9.9.1 # one\nallow-ip = 10.9.9.2\n"
    lab.configure(before)
    planted, program = f"{ALICE.home}/evil", "/usr/local/bin/an-editor"
    lab.replace(program, b"", 0o755)
    lab.replace(planted, b"#!/bin/sh\ntouch /tmp/it-ran\n", 0o755)

    def edit(script, status, said, again=":", name="an-editor", **more):
        """again: what it does when it is opened once more."""
        with open(program, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nif [ -e /tmp/opened ]; then {again}\nelse [ $# = 1 ] || exit 9\n>/tmp/opened\n{script}\nfi\n")
        with lab.terminal([SANDBOX, "allow-ip", "edit"], ROOT,
                          lab.environment(ROOT, **{"VISUAL": "an-editor --wait", **more})) as terminal:
            terminal.expect(said)
            equal(terminal.wait(), status, said)
        if os.path.exists("/tmp/opened"):
            os.unlink("/tmp/opened")

    edit("sed -i s/10.9.9.2/10.9.9.0\\\\/16/ $1", 125, "10.9.0.0/16")
    edit("exit 3", 125, "nothing was changed")
    edit(":", 0, "nothing was changed")
    edit(":", 125, "in none of", VISUAL=planted)
    holds(not os.path.exists("/tmp/it-ran"), "it did not run")
    equal(read(), before)
    edit("sed -i -e '/10.9.9.2/d' -e 's/# one/# first/' $1; echo 10.9.9.3 >> $1", 0, "set 10.9.9.3")
    equal(read(), b"no-forge # \xff\nallow-ip = 10.9.9.1 # first\nallow-ip = 10.9.9.3\n")
    # at the line, with the reason above it; what was right is done with it
    program = "/usr/local/bin/vi"
    lab.replace(program, b"", 0o755)
    edit("echo '10.9.0.0/8 # all' >> $1; echo 10.9.9.4 >> $1", 0, "set 10.9.9.4", VISUAL="vi",
         again='[ $# = 2 ] || exit 8; n=${1#+}; [ "$1" = "+$n" ] || exit 7; sed -n "$((n - 1))p" $2 | grep -q "# Not taken: .*from 16" || exit 6;'
               ' sed -n "${n}p" $2 | grep -q "^10.9.0.0/8" || exit 5; sed -i "${n}d" $2')
    equal(read(), b"no-forge # \xff\nallow-ip = 10.9.9.1 # first\nallow-ip = 10.9.9.3\nallow-ip = 10.9.9.4\n")
    equal([name for name in os.listdir("/tmp") if name.startswith("claude-sandbox-edit")], [])


@test(60, needs="bus")
def follow_an_editor(lab):
    """A hand edit holds at once; a broken file changes nothing; after a restart of the service sessions catch up."""
    lab.configure(f"allow-ip = {network.DEVICE}\n")
    agent = Agent(lab)
    holds(agent.reaches(network.DEVICE), "open")
    with open(CONFIG, "w", encoding="utf-8") as f:
        f.write(f"allow-ip = {network.DEVICE}\nallow-ip = {OTHER}\n")
    wait_for(lambda: agent.reaches(OTHER), "the new address")
    with open(CONFIG, "w", encoding="utf-8") as f:
        f.write("rubbish\n")
    holds(lab.call("AddAllowIp", "ssa{sv}", "10.9.9.9", "", 0).status != 0, "a broken file is not edited")
    holds(agent.reaches(OTHER) and agent.reaches(network.DEVICE), "a broken file changes nothing")
    lab.stop_service()
    with open(CONFIG, "w", encoding="utf-8") as f:
        f.write(f"allow-ip = {OTHER}\n")
    lab.call("ListSessions").ok()
    wait_for(lambda: not agent.reaches(network.DEVICE), "its end in a session that was taken over")
    holds(agent.reaches(OTHER), "what stays")


@test(60, needs="bus")
def one_refused_address_costs_no_session(lab):
    """What a session cannot open (its name server's address) keeps it from nothing else, and does not end it."""
    lab.configure("allow-ip = 10.9.9.9\n")
    agent = Agent(lab)
    equal(json.loads(lab.call("AddAllowIp", "ssa{sv}", "192.0.2.53", "", 0).ok().out)["data"], [[agent.id]])
    equal(json.loads(lab.call("AddAllowIp", "ssa{sv}", network.DEVICE, "", 0).ok().out)["data"], [[agent.id]])
    holds(agent.reaches(network.DEVICE), "what comes after it in the file is open")
    equal(json.loads(lab.call("RemoveAllowIp", "s", "10.9.9.9").ok().out)["data"], [[agent.id]])
    equal(json.loads(lab.call("RemoveAllowIp", "s", network.DEVICE).ok().out)["data"], [[agent.id]])
    holds(not agent.reaches(network.DEVICE), "closed, and the session goes on")
    equal(json.loads(lab.call("RemoveAllowIp", "s", "192.0.2.53").ok().out)["data"], [[]])
