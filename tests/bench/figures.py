# SPDX-License-Identifier: MIT
"""The measurements: each a function that yields Figures. What is compared alternates within one run."""

import json
import os
import select
import shutil
import subprocess
import time

import machine
from case import CLAUDE, SANDBOX, equal, holds, processes, wait_for
from table import Figure, median, quantile

AGENT = machine.TOOLS + "/bench-agent"
FLOOR = machine.TOOLS + "/bench-floor"
PLAN_DUMP = machine.TOOLS + "/bench-plan-dump"
ROUNDS = machine.TOOLS + "/bench-rounds"
STREAM = machine.TOOLS + "/bench-stream"
CALLS = machine.TOOLS + "/bench-calls"
FLOOD = machine.TOOLS + "/bench-flood"
HOSTILE = machine.TOOLS + "/daemon-stand-in"     # a session that its user has bent
SESSION_PROGRAM = "/usr/libexec/claude-sandbox/session"
RELAY = machine.TOOLS + "/bench-relay"
SCRIPT = "/usr/bin/script"
SOCAT = "/usr/bin/socat"
PLAN = "/srv/bench-plan"                # readable by everybody, hidden from nobody

AT_ONCE = 20
LINE_BYTES = 80                         # agent.c
THROUGHPUT_ROUNDS = 5
RELAY_ROUNDS = 5
RELAY_CONNECTIONS = 100
RELAY_BYTES = 500 * 1000 * 1000          # in all
RELAY_OPENED = 500
RELAYED_PORT, DIRECT_PORT, SOCAT_PORT = 1455, 1456, 1457
MEMORY_SESSIONS = 10
QUIET_SECONDS = 5
SETTLED_SECONDS = 0.5
FLOOD_ROUNDS = 15
FLOOD_LISTS = 100
HOSTILE_SESSIONS = 64
MILLISECOND = 1e6
MEBIBYTE = 1 << 20


class Bench:
    def __init__(self, lab, user, options):
        self.lab = lab
        self.user = user
        self.rounds = options.rounds
        self.megabytes = options.megabytes
        self.keys = options.keys
        self.sessions = options.sessions

    def prepare(self):
        """An agent, and a workspace that is a repository, as most are."""
        self.lab.install_agent(self.user, "claude", AGENT)
        workspace = self.lab.workspace(self.user)
        self.lab.run(["/usr/bin/git", "init", "-q", workspace], self.user).ok()
        # the first launch starts the service and makes the places that outlive sessions
        self.lab.run([CLAUDE], self.user).ok()
        self.lab.run([CLAUDE], self.user).ok()
        dump = self.lab.run([PLAN_DUMP, "claude"], self.user).ok()
        machine.write(PLAN, dump.out)

    def measure(self, *command, limit=250):
        """Return: a list of the integers in each line that the tool printed."""
        result = self.lab.run([str(word) for word in command], self.user, limit=limit).ok()
        return [[int(word) for word in line.split()] for line in result.out.splitlines()]

    def compare(self, *command):
        """Return: the values of each command, those of the first first."""
        rows = self.measure(*command)
        return tuple([value for index, value in rows if index == which] for which in range(1 + max(rows)[0]))


def launch(bench):
    """An agent that ends at once, against the least that the same jail can cost."""
    jailed, floor = bench.compare(ROUNDS, "each", bench.rounds, CLAUDE, "--", FLOOR, PLAN, AGENT)
    base = median(floor) / MILLISECOND
    yield Figure("launch", "ms", median(jailed) / MILLISECOND, len(jailed), base, "floor", ("ratio", "<=", 1.3))
    yield Figure("launch p95", "ms", quantile(jailed, 0.95) / MILLISECOND, len(jailed),
                 quantile(floor, 0.95) / MILLISECOND, "floor p95")
    on_terminal, floor = bench.compare(ROUNDS, "each", bench.rounds, "tty", CLAUDE, "--", "tty", FLOOR, PLAN, AGENT)
    yield Figure("launch on a terminal", "ms", median(on_terminal) / MILLISECOND, len(on_terminal),
                 median(floor) / MILLISECOND, "floor")


def at_once(bench):
    """Twenty at once, against their own median and against one alone."""
    values = []
    while len(values) < max(bench.rounds, AT_ONCE):
        values += [value for _, value in bench.measure(ROUNDS, "once", AT_ONCE, CLAUDE)]
    alone = [value for _, value in bench.measure(ROUNDS, "each", bench.rounds, CLAUDE)]
    late = quantile(values, 0.95) / MILLISECOND
    yield Figure(f"{AT_ONCE} at once, p95", "ms", late, len(values), median(values) / MILLISECOND, "their median",
                 ("ratio", "<=", 3))
    yield Figure(f"{AT_ONCE} at once, p95 to one", "ms", late, len(values), median(alone) / MILLISECOND, "one alone")


def throughput(bench):
    """Lines that the agent writes to its terminal, against script(1)."""
    size = bench.megabytes * 1000 * 1000
    sent = size + size // LINE_BYTES    # the PTY makes a carriage return for each line
    speeds = {"launch": [], "script": []}
    for _ in range(THROUGHPUT_ROUNDS):
        for name, command in (("launch", [CLAUDE, "lines", size]),
                              ("script", [SCRIPT, "-q", "-c", f"{AGENT} lines {size}", "/dev/null"])):
            (received, nsec), = bench.measure(STREAM, "drain", *command)
            equal(received, sent, f"bytes through {name}")
            speeds[name].append(size / nsec * 1e9 / 1e6)
    yield Figure("terminal throughput", "MB/s", median(speeds["launch"]), len(speeds["launch"]),
                 median(speeds["script"]), "script", ("ratio", ">=", 1.0))


def echo(bench):
    """One key and its echo, against a bare PTY; and against script(1), since whoever stands between has a second PTY."""
    jailed, bare, script = bench.compare(STREAM, "keys", bench.keys, CLAUDE, "echo", "--", AGENT, "echo", "--",
                                         SCRIPT, "-q", "-c", f"{AGENT} echo", "/dev/null")
    for name, share, target in (("p50", 0.5, None), ("p99", 0.99, ("ratio", "<=", 1.5))):
        ours = quantile(jailed, share) / 1000
        yield Figure(f"key echoed, {name}", "us", ours, len(jailed), quantile(bare, share) / 1000, "bare PTY", target)
        yield Figure(f"key echoed, {name}, to script", "us", ours, len(jailed), quantile(script, share) / 1000, "script")


def ready(process):
    holds(select.select([process.stdout], [], [], 20)[0] and process.stdout.readline() == b"ready\n", "a server starts")
    return process


def relay(bench):
    """A callback port against socat(1), which stands between two ports of the machine."""
    holds(os.path.exists(SOCAT), f"{SOCAT} is there: install the package socat")
    bench.lab.configure(f"callback-port = {RELAYED_PORT}\n")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    servers = [ready(bench.lab.start([SANDBOX, "shell", "-c", f"exec {RELAY} serve {RELAYED_PORT}"], bench.user, **pipes)),
               ready(bench.lab.start([RELAY, "serve", str(DIRECT_PORT)], bench.user, **pipes))]
    socat = bench.lab.start([SOCAT, f"TCP4-LISTEN:{SOCAT_PORT},bind=127.0.0.1,reuseaddr,fork,backlog=512",
                             f"TCP4:127.0.0.1:{DIRECT_PORT}"], bench.user)
    names = {RELAYED_PORT: "relay", SOCAT_PORT: "socat"}
    try:
        wait_for(lambda: bench.lab.run([RELAY, "each", str(SOCAT_PORT), "1"], bench.user).status == 0, "socat listens")
        for connections in (1, RELAY_CONNECTIONS):
            speeds = {name: [] for name in names.values()}
            for _ in range(RELAY_ROUNDS):
                for port, name in names.items():
                    (nsec,), = bench.measure(RELAY, "pull", port, connections, RELAY_BYTES // connections)
                    speeds[name].append(RELAY_BYTES / nsec * 1e9 / 1e6)
            yield Figure(f"relay, {connections} connection{'s' if connections > 1 else ''}", "MB/s", median(speeds["relay"]),
                         RELAY_ROUNDS, median(speeds["socat"]), "socat", ("ratio", ">=", 1.5))
        opened = {name: [row[0] for row in bench.measure(RELAY, "each", port, RELAY_OPENED)] for port, name in names.items()}
        yield Figure("relay, to connect and get a byte", "us", median(opened["relay"]) / 1000, RELAY_OPENED,
                     median(opened["socat"]) / 1000, "socat")
    finally:
        socat.terminate()
        socat.wait(10)
        for server in servers:
            server.stdin.close()
            server.wait(30)
            server.stdout.close()
    wait_for(lambda: not bench.lab.sessions(), "the sessions of the measurement end", 30)


def pss(pid):
    """Return: kibibytes."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def programs(name):
    """Pids of an installed program of ours."""
    found = []
    for pid in processes():
        try:
            if os.readlink(f"/proc/{pid}/exe") == f"/usr/libexec/claude-sandbox/{name}":
                found.append(pid)
        except OSError:
            pass
    return found


def memory(bench):
    """An idle session's own processes."""
    terminals = []
    try:
        for _ in range(MEMORY_SESSIONS):
            terminals.append(bench.lab.terminal([CLAUDE, "idle"], bench.user))
            terminals[-1].expect("ready")
        totals = {}
        for name in ("launch", "session", "init"):
            pids = programs(name)
            equal(len(pids), MEMORY_SESSIONS, f"processes of {name}")
            totals[name] = sum(pss(pid) for pid in pids) / 1024 / MEMORY_SESSIONS
    finally:
        for terminal in terminals:
            terminal.close()
    yield Figure("memory of a session (mean)", "MiB", sum(totals.values()), MEMORY_SESSIONS,
                 target=("value", "<=", 4))
    for name, value in totals.items():
        yield Figure(f"  of it, {name} (mean)", "MiB", value, MEMORY_SESSIONS)
    wait_for(lambda: not bench.lab.sessions(), "the sessions of the measurement end", 30)


def switches(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def stays(pidfd, seconds):
    """The process goes on for so long."""
    holds(not select.select([pidfd], [], [], seconds)[0], "the service goes on")


def woken(pid):
    """How often something happens to the service, and to the sessions' own processes, when nobody does anything."""
    pidfd = os.pidfd_open(pid)
    try:
        # what the last session and the last client left to be done is over
        before, after = -1, switches(pid)
        for _ in range(int(QUIET_SECONDS / SETTLED_SECONDS)):
            stays(pidfd, SETTLED_SECONDS)
            before, after = after, switches(pid)
            if before == after:
                break
        others = [other for name in ("launch", "session", "init") for other in programs(name)]
        before = sum(switches(other) for other in others)
        stays(pidfd, QUIET_SECONDS)
        return (switches(pid) - after) / QUIET_SECONDS, (sum(switches(other) for other in others) - before) / QUIET_SECONDS
    finally:
        os.close(pidfd)


def service(bench):
    """The service beside many idle sessions."""
    running = []
    if bench.sessions > 60:
        bench.lab.configure(f"max-sessions = {bench.sessions + 4}\n")
    try:
        for _ in range(bench.sessions):
            process = bench.lab.start([CLAUDE, "idle"], bench.user, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            running.append(process)
            holds(select.select([process.stdout], [], [], 20)[0] and process.stdout.readline() == b"ready\n",
                  "an idle session starts")
        pid = bench.lab.service_pid()
        times = [row[0] for row in bench.measure(CALLS, 100)]
        listed = bench.lab.call("ListSessions").ok().out.count(b"running")
        equal(listed, bench.sessions, "sessions that are listed")
        memory_now = resident(pid) / 1024
        of_service, of_sessions = woken(pid)
    finally:
        for process in running:
            process.stdin.close()
        for process in running:
            process.wait(30)
            process.stdout.close()
    beside = f"service with {bench.sessions} sessions"
    yield Figure(f"{beside}, RSS", "MiB", memory_now, 1, target=("value", "<=", 16))
    yield Figure(f"{beside}, wake-ups", "1/s", of_service, 1, target=("value", "<=", 0))
    yield Figure(f"  of the {bench.sessions} idle sessions", "1/s", of_sessions, 1, target=("value", "<=", 0))
    yield Figure(f"{beside}, ListSessions", "ms", median(times) / MILLISECOND, len(times), target=("value", "<=", 5))
    wait_for(lambda: not bench.lab.sessions(), "the sessions of the measurement end", 30)


def timed(times, name, function):
    begin = time.monotonic_ns()
    value = function()
    times.setdefault(name, []).append(time.monotonic_ns() - begin)
    return value


def other_user(bench):
    """What a user does who has nothing to do with it. Return: nanoseconds, by what was done."""
    lab, user, times = bench.lab, machine.BOB, {}
    for _ in range(FLOOD_ROUNDS):
        timed(times, "launch", lambda: lab.run([CLAUDE], user).ok())
        before = {row["id"] for row in sessions_of(lab, user)}
        process = lab.start([CLAUDE, "idle"], user, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holds(select.select([process.stdout], [], [], 60)[0], "an idle session starts")
        session, = {row["id"] for row in sessions_of(lab, user)} - before
        path = "/org/claudesandbox1/session/" + session
        timed(times, "allow-ip", lambda: lab.call("AllowIp", "sta{sv}", "10.1.2.3", 60, 0, path=path,
                                                  interface="org.claudesandbox1.Session").ok())
        timed(times, "allow-ip removed", lambda: lab.call("RevokeIp", "s", "10.1.2.3", path=path, user=user,
                                                          interface="org.claudesandbox1.Session").ok())
        timed(times, "stop", lambda: lab.run([SANDBOX, "stop", session], user).ok())
        process.communicate(timeout=60)
    times["list"] = [int(line) for line in lab.run([CALLS, str(FLOOD_LISTS)], user, limit=60).ok().out.split()]
    return times


def sessions_of(lab, user):
    return json.loads(lab.run([SANDBOX, "sessions", "--json"], user).ok().out)


def by_calls(bench):
    """Every method, without end. Return: how to end it."""
    process = bench.lab.start([FLOOD], bench.user, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ready(process)

    def end():
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
    return end


def by_links(bench):
    """As many sessions as a user may have send on their links what they can."""
    bench.lab.configure(f"max-sessions = {HOSTILE_SESSIONS + 4}\n")
    running = []
    os.rename(SESSION_PROGRAM, SESSION_PROGRAM + ".aside")
    try:
        shutil.copy2(HOSTILE, SESSION_PROGRAM)
        for _ in range(HOSTILE_SESSIONS):
            running.append(bench.lab.start([CLAUDE, "flood-link"], bench.user, stdin=subprocess.PIPE))
        wait_for(lambda: len(bench.lab.sessions()) == HOSTILE_SESSIONS, "all of them run", 120)
    finally:
        os.rename(SESSION_PROGRAM + ".aside", SESSION_PROGRAM)

    def end():
        for process in running:
            process.kill()
            process.wait(30)
            process.stdin.close()
        wait_for(lambda: not bench.lab.sessions(), "the sessions of the measurement end", 60)
    return end


def floods(bench):
    """What one user who sends without end costs another."""
    bench.lab.install_agent(machine.BOB, "claude", AGENT)
    quiet = other_user(bench)
    for name, begin in (("calls", by_calls), (f"{HOSTILE_SESSIONS} links", by_links)):
        end = begin(bench)
        try:
            flooded = other_user(bench)
        finally:
            end()
        for what, times in flooded.items():
            yield Figure(f"{what} under a flood of {name}", "ms", median(times) / MILLISECOND, len(times),
                         median(quiet[what]) / MILLISECOND, "quiet", ("ratio", "<=", 3))


def size(_bench):
    """What the installation puts on the disk; names of one file count once."""
    seen = {}
    for path in machine.installed():
        stat = os.lstat(path)
        seen[stat.st_dev, stat.st_ino] = stat.st_size
    yield Figure("installed size", "MB", sum(seen.values()) / 1e6, 1, target=("value", "<=", 4))


FIGURES = {function.__name__.replace("_", "-"): function
           for function in (launch, at_once, throughput, echo, relay, memory, service, floods, size)}
