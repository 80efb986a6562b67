# SPDX-License-Identifier: MIT
"""A jail is checked: a new one and that of a running session, by the command and over the bus; and honestly."""

import json
import os
import re
import signal
import subprocess

import bus
import machine
import system
from authority import rules
from bus_cases import Held, answer
from case import CONFIG, SANDBOX, equal, holds, test, wait_for
from machine import ALICE, BOB, MALLORY, ROOT

VERIFY = "/usr/libexec/claude-sandbox/verify"
SESSION = "/usr/libexec/claude-sandbox/session"
CHECKS = [f"{n:02}" for n in range(1, 23)]


class Verdict:
    """What `claude-sandbox verify --json` says."""

    def __init__(self, result):
        holds(result.status in (0, 1) and not result.err, repr(result))
        self.status = result.status
        self.said = json.loads(result.out)
        self.rows = {row["number"]: row for row in self.said["rows"]}
        equal(len(self.rows), len(self.said["rows"]), "every row once")
        equal(self.status, 0 if self.said["passed"] else 1)

    def of(self, status):
        return {number: row["detail"] for number, row in self.rows.items() if row["status"] == status}

    def passes(self, notes=()):
        equal(self.of("fail"), {}, "what failed")
        equal([number for number in self.rows if number[0] != "p"], CHECKS)
        equal(sorted(number for number in self.of("note") if number[0] != "p"), sorted(notes), f"notes: {self.of('note')}")
        holds(self.said["passed"], "passed")
        return self


def verify(lab, *words, user=ALICE, limit=30, **options):
    return Verdict(lab.run([SANDBOX, "verify", "--json", *words], user, limit=limit, **options))


def bytes_of(text):
    data = os.fsencode(text)
    return [len(data), *data]


def no_session_is_left(lab, what):
    wait_for(lambda: not lab.sessions(), f"{what}: {lab.sessions()}")


# ---- a new jail ----


@test(60, needs="bus")
def a_new_jail_passes(lab):
    """As a user and as root; every agent that is there, and the shell."""
    for user in (ALICE, ROOT):
        lab.install_agent(user)
        for agent in ("claude", "shell"):
            said = verify(lab, agent, user=user).passes().said
            equal((said["agent"], said["session"]), (agent, None))
        equal(verify(lab, user=user).said["agent"], "claude", "the first that is installed")
        lab.remove_agent(user)
        equal(verify(lab, user=user).passes().said["agent"], "shell", "the first that is installed")
    no_session_is_left(lab, "a session stays")


@test(120, needs="bus")
def no_probe_escapes(lab):
    for user in (ALICE, ROOT):
        verdict = verify(lab, "--probes", "shell", user=user, limit=60).passes()
        probes = [number for number in verdict.rows if number[0] == "p"]
        holds(len(probes) >= 40, f"{len(probes)} probes")
        unclear = verdict.of("note")
        holds(not any("bait" in unclear[number] for number in probes if number in unclear), f"nothing to aim at: {unclear}")
    no_session_is_left(lab, "a session stays")


@test(60, needs="bus")
def over_the_bus(lab):
    """Both members by busctl, as anybody."""
    for user in (ALICE, ROOT):
        passed, rows = answer(lab.call("Verify", "saayaya{sv}", "shell", 0, *bytes_of(lab.workspace(user)), 0, user=user))
        equal((passed, [row[0] for row in rows], {len(row) for row in rows}), (True, CHECKS, {5}))
        with Held(lab, user) as held:
            passed, rows = answer(lab.call("Verify", "a{sv}", 0, user=user, interface=bus.SESSION, path=held.path))
            equal((passed, [row[0] for row in rows]), (True, CHECKS))
            equal(held.end(), 3, "its agent")


@test(60, needs="bus")
def lines_for_a_person(lab):
    result = lab.run([SANDBOX, "verify", "shell"]).ok()
    lines = result.out.decode().splitlines()
    equal([line.split()[0] for line in lines[:22]], CHECKS)
    equal({line.split()[1] for line in lines[:22]}, {"pass"})
    equal({line.index(line.split(maxsplit=2)[2]) for line in lines[:22]}, {11}, "titles begin in one column")
    equal(lines[22:], ["", "22 of 22 passed"])
    holds(b"\033" not in result.out, "no colours in a pipe")
    # On a terminal: colours, and only there.
    with lab.terminal([SANDBOX, "verify", "shell"]) as terminal:
        seen = terminal.expect("22 of 22 passed")
        holds(b"\033[32mpass" in seen, repr(seen[:200]))
        equal(terminal.wait(), 0)


class Monitor:
    """What the bus carries to and from the service, in its order, as root sees it."""

    def __init__(self, lab):
        # Else it keeps lines to itself until there are many.
        self.process = lab.start(["/usr/bin/stdbuf", "-oL", "/usr/bin/busctl", "--system", "--json=short", "monitor", bus.NAME],
                                 ROOT, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def until_verdict(self):
        """[(destination, call, row)] of the signals Row, then the destination of the answer and its values."""
        rows = []
        for line in self.process.stdout:
            message = json.loads(line)
            data = message["payload"].get("data")
            if message["type"] == "signal" and message.get("member") == "Row":
                rows.append((message.get("destination"), data[0], data[1]))
            if message["type"] == "method_return" and message["payload"]["type"] == "ba(sssss)":
                return rows, message["destination"], data
        raise AssertionError("the monitor ended")

    def __enter__(self):
        line = self.process.stdout.readline()
        holds(line.startswith(b"Monitoring"), repr(line))
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@test(60, needs="bus")
def rows_come_before_the_answer(lab):
    """One by one, in order, to the caller alone; and without the option not at all."""
    lab.call("ListAllowIp")
    with Held(lab) as held, Monitor(lab) as monitor:
        manager = ["Verify", "saayaya{sv}", "shell", 0, *bytes_of(lab.workspace(ALICE))]
        session = ["Verify", "a{sv}"]
        for words, where in ((manager, {}), (session, {"interface": bus.SESSION, "path": held.path})):
            lab.call(*words, 1, "call", "s", "mine", user=ALICE, **where).ok()
            rows, caller, (passed, answered) = monitor.until_verdict()
            equal(({destination for destination, _, _ in rows}, {call for _, call, _ in rows}), ({caller}, {"mine"}))
            equal((passed, [row for _, _, row in rows]), (True, answered))
            lab.call(*words, 0, user=ALICE, **where).ok()
            rows, caller, (passed, answered) = monitor.until_verdict()
            equal((passed, rows, len(answered)), (True, [], 22))


def launch_arguments(lab, user, options, agent="shell", environment=()):
    import dbus

    def line(data):
        return dbus.Array([dbus.Byte(b) for b in os.fsencode(data)], signature="y")
    return [agent, dbus.Array([line(e) for e in environment], signature="ay"), line(lab.workspace(user)),
            dbus.Dictionary(options, signature="sv")]


@test(60, needs="bus")
def bad_requests(lab):
    from bus_cases import error_of
    bad = "org.claudesandbox1.Error.BadRequest"
    for options, words in (({"nonsense": True}, "nonsense"), ({"call": 1}, "call"), ({"probes": "yes"}, "probes"),
                           ({"call": "x" * 129}, "call")):
        name, sentence = error_of("Verify", "saayaya{sv}", *launch_arguments(lab, ALICE, options))
        holds(name == bad and words in sentence, f"{options}: {name}: {sentence}")
    name, sentence = error_of("Verify", "saayaya{sv}", *launch_arguments(lab, ALICE, {}, agent="nobody"))
    equal(name, bad)
    for words in (["nobody!"], ["--prob"], ["shell", "claude"]):
        holds(lab.run([SANDBOX, "verify", *words]).status == 2, words)
    lab.run([SANDBOX, "verify", "-H", "elsewhere", "shell"]).refused(2, "machine")
    lab.run([SANDBOX, "verify", "zzzzzzzzzzzz"]).refused(1, "begins with")


@test(60, needs="bus")
def refused_as_a_launch(lab):
    """The plan is the agent's: what refuses it refuses this, with the same words."""
    lab.run([SANDBOX, "verify", "codex"]).refused(125, "codex", "install")
    for cwd in ("/", "/home", "/usr"):
        launched = lab.run([SANDBOX, "shell", "-c", "true"], cwd=cwd)
        equal(lab.run([SANDBOX, "verify", "shell"], cwd=cwd).refused(125).err, launched.refused(125).err)
    lab.configure("nonsense\n")
    lab.run([SANDBOX, "verify", "shell"]).refused(125, "claude-sandbox.conf:1")
    machine.write(CONFIG, "max-sessions = 1\n")
    with Held(lab):
        lab.run([SANDBOX, "verify", "shell"]).refused(125, "max-sessions")
    machine.write(CONFIG, "")
    # A planted variable takes a password here, too.
    env = lab.environment(ALICE, CLAUDE_SANDBOX_EGRESS_JAIL="0")
    lab.run([SANDBOX, "verify", "shell"], env=env).refused(125, "network jail off")
    rules(lab, launch="NO")
    lab.run([SANDBOX, "verify", "shell"]).refused(125)


# ---- nobody sees the session, and nothing of it stays ----


def stop_verify(limit=10):
    """Stop the program that checks, wherever it runs (with probes it does for a while). Return: its pid, before its children's."""
    def look():
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and os.readlink(f"/proc/{entry}/exe") == VERIFY:
                    os.kill(int(entry), signal.SIGSTOP)
                    return int(entry)
            except OSError:
                pass
        return None
    return wait_for(look, "the program that checks runs", limit)


@test(60, needs="bus")
def nobody_sees_it(lab):
    process = lab.start([SANDBOX, "verify", "--probes", "--json", "shell"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stopped = stop_verify()
    for user in (ALICE, ROOT):
        equal(answer(lab.call("ListSessions", user=user)), [[]])
        tree = lab.run(["/usr/bin/busctl", "--system", "--list", "tree", bus.NAME], user).ok().out.decode()
        holds("/session/" not in tree, tree)
    found = lab.sessions()
    equal(len(found), 1, "its run directory")
    lab.run([SANDBOX, "stop", found[0]], ROOT).refused(1, "no session")
    lab.run([SANDBOX, "show", found[0]], ROOT).refused(1)
    os.kill(stopped, signal.SIGCONT)
    out, err = process.communicate(timeout=20)
    holds(process.returncode == 0, f"{out!r} {err!r}")
    log = lab.run([SANDBOX, "log", "--json"], ROOT).ok().out.decode()
    holds(found[0] not in log, "no launch in the log")
    no_session_is_left(lab, "its session stays")


@test(60, needs="bus")
def ends_with_its_caller(lab):
    process = lab.start([SANDBOX, "verify", "--probes", "shell"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stopped = stop_verify()
    process.kill()
    process.wait()
    wait_for(lambda: not os.path.exists(f"/proc/{stopped}"), "the checks end")
    no_session_is_left(lab, "the caller was killed")


@test(60, needs="bus")
def ends_with_the_service(lab):
    process = lab.start([SANDBOX, "verify", "--probes", "shell"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    stopped = stop_verify()
    pid = lab.service_pid()
    os.kill(pid, signal.SIGKILL)
    holds(bus.wait_pid_gone(pid, 10), "the service is gone")
    equal(process.wait(20), 125)
    process.stderr.close()
    wait_for(lambda: not os.path.exists(f"/proc/{stopped}"), "the checks end")
    equal(answer(lab.call("ListSessions")), [[]], "the next service takes nothing over")
    no_session_is_left(lab, "the service was killed")


def pids_of(program):
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.readlink(f"/proc/{entry}/exe") == program:
                found.append(int(entry))
        except OSError:
            pass
    return found


@test(60, needs="bus")
def killed_sessions_leave_nothing(lab):
    """In the midst of their checks: no process, no file, not even what the checks aim at."""
    before = sorted(os.listdir("/tmp"))
    for running in (False, True):
        held = Held(lab) if running else None
        process = lab.start([SANDBOX, "verify", "--probes", held.id if held else "shell"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        stopped = stop_verify()
        holds(sorted(os.listdir("/tmp")) != before, "there is something to aim at")
        os.kill(pids_of(SESSION)[0], signal.SIGKILL)
        out, err = process.communicate(timeout=20)
        # Before its first row there was nothing to be checked, as far as anybody has heard.
        holds(process.returncode == 1 or (process.returncode == 125 and not out and err), f"{process.returncode} {out!r} {err!r}")
        wait_for(lambda stopped=stopped: not os.path.exists(f"/proc/{stopped}"), "the checks end")
        no_session_is_left(lab, "the session was killed")
        wait_for(lambda: sorted(os.listdir("/tmp")) == before, "what the checks aimed at goes")
        if held:
            held.process.wait(10)
            held.__exit__()


@test(60, needs="bus")
def killed_or_silent_is_a_failure(lab):
    """Whoever keeps the checks from their end gets no shorter list, but a row that fails."""
    for number, words in ((signal.SIGKILL, "signal 9"), (signal.SIGSTOP, "silent")):
        process = lab.start([SANDBOX, "verify", "--probes", "--json", "shell"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        stopped = stop_verify()
        if number != signal.SIGSTOP:
            os.kill(stopped, number)
        out, err = process.communicate(timeout=20)
        said = json.loads(out)
        equal((process.returncode, said["passed"], err), (1, False, b""))
        end = said["rows"][-1]
        holds(end["number"] == "end" and end["status"] == "fail" and words in end["detail"], str(end))
        no_session_is_left(lab, "its session stays")


@test(90, needs="bus")
def twenty_at_once(lab):
    """Under load: each has its own answer."""
    processes = [lab.start([SANDBOX, "verify", "--json", "shell"], user, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for user in (ALICE, BOB) for _ in range(10)]
    for process in processes:
        out, err = process.communicate(timeout=60)
        holds(process.returncode == 0 and json.loads(out)["passed"], f"{process.returncode} {out!r} {err!r}")
    no_session_is_left(lab, "a session stays")


# ---- a session that runs ----


def of_the_jail(leader):
    """{pid: (parent, name)} of leader and what is below it."""
    found, more = {}, [leader]
    while more:
        pid = more.pop()
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
                found[pid] = f.read().strip()
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as f:
                    more += [int(child) for child in f.read().split()]
        except OSError:
            pass
    return found


def leader_of(lab, session):
    return int(json.loads(lab.run([SANDBOX, "show", "--json", session], ROOT).ok().out)["leader"])


def everything_below(path):
    return sorted((directory, name, os.lstat(os.path.join(directory, name)).st_mtime_ns)
                  for directory, directories, files in os.walk(path) for name in directories + files)


@test(120, needs="bus")
def a_running_session_passes(lab):
    """With its agent at work, which notices nothing: not at its terminal, its processes, its files, its network."""
    for user in (ALICE, ROOT):
        with Held(lab, user) as held:
            leader = leader_of(lab, held.id)
            before = of_the_jail(leader), everything_below(user.home), os.listdir(f"/proc/{leader}/fd")
            said = verify(lab, held.id, user=user).passes().said
            equal((said["agent"], said["session"]), (None, held.id))
            verify(lab, held.id[:8], "--probes", user=user, limit=60).passes()
            wait_for(lambda: of_the_jail(leader) == before[0], "no process stays in the jail")
            denied = json.loads(lab.run([SANDBOX, "denied", "--json", held.id], user).ok().out)
            equal({row["program"] for row in denied}, {"? while verify ran"}, f"what was denied is not the agent's: {denied}")
            equal(json.loads(lab.run([SANDBOX, "show", "--json", held.id], user).ok().out)["denied"], 0, "nor is it counted")
            equal(everything_below(user.home), before[1], "files")
            equal(os.listdir(f"/proc/{leader}/fd"), before[2], "descriptors of the jail's init")
            equal(held.end(), 3, "its agent goes on")


@test(60, needs="bus")
def root_checks_anybodys(lab):
    with Held(lab) as held:
        verify(lab, held.id, user=ROOT).passes()
        equal(held.end(), 3)


@test(60, needs="bus")
def another_user_may_not(lab):
    from bus_cases import error_of
    import dbus
    with Held(lab) as held:
        lab.run([SANDBOX, "verify", held.id], MALLORY).refused(1)
        lab.run([SANDBOX, "verify", held.id[:6]], MALLORY).refused(1, "no session")
        name, _ = error_of("Verify", "a{sv}", dbus.Dictionary({}, signature="sv"), user=MALLORY, interface=bus.SESSION,
                           path=held.path)
        equal(name, "org.freedesktop.DBus.Error.UnknownObject")
        equal(held.end(), 3)


@test(60, needs="bus")
def one_after_the_other(lab):
    """Several callers of one session: each has an answer, and the session has one run at a time."""
    with Held(lab) as held:
        processes = [lab.start([SANDBOX, "verify", "--json", held.id], user, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE) for user in (ALICE, ROOT) for _ in range(4)]
        for process in processes:
            out, err = process.communicate(timeout=40)
            holds(process.returncode == 0 and json.loads(out)["passed"], f"{process.returncode} {out!r} {err!r}")
        equal(held.end(), 3)


@test(60, needs="bus")
def ended_meanwhile(lab):
    with Held(lab) as held:
        process = lab.start([SANDBOX, "verify", "--probes", held.id], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        stop_verify()
        lab.run([SANDBOX, "stop", held.id], ROOT).ok()
        out, err = process.communicate(timeout=20)
        equal(process.returncode, 1, f"{out!r} {err!r}")
        holds(b"ends" in err, repr(err))


# ---- an agent that does not want to be checked ----

HOSTILE = r"""
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
print("ready", flush=True)
own = {1, os.getpid()}
seen, held = 0, []
end = time.monotonic() + float(sys.argv[1])
last = os.getpid()
while time.monotonic() < end:
    for pid in range(last, last + 40):
        if pid in own:
            continue
        for request in (16, 0x4206):                       # PTRACE_ATTACH, PTRACE_SEIZE
            if libc.ptrace(request, pid, 0, 0) == 0:
                held.append(f"ptrace {request:#x}")
            elif ctypes.get_errno() == 1:                  # EPERM: it is there
                seen += 1
        for name in ("mem", "environ", "maps", "fd/1", "root/etc"):
            try:
                fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
                # Of one that has just ended there is nothing to read.
                if not os.path.isdir(f"/proc/self/fd/{fd}") and not os.read(fd, 1):
                    raise OSError
                held.append(name)
                os.close(fd)
            except OSError:
                pass
        try:
            os.pidfd_open(pid)
            last = pid - 5
        except OSError:
            pass
print("seen", seen > 0, "held", sorted(set(held)), flush=True)
sys.stdin.read()
"""


@test(90, needs="bus")
def cannot_be_traced(lab):
    """An agent that tries all the time neither traces what joins its jail nor reads it, in any of its moments."""
    script = f"{lab.workspace(ALICE)}/hostile.py"
    machine.write(script, HOSTILE, 0o644, ALICE)
    with Held(lab, script=f"exec python3 {script} 6") as held:
        for _ in range(40):
            verify(lab, held.id).passes()
        line = held.process.stdout.readline().decode()
        equal(line, "seen True held []\n")


KILLER = r"""
import os, signal, sys
print("ready", flush=True)
number, own = int(sys.argv[1]), {1, os.getpid()}
while True:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in own:
            try:
                os.kill(int(entry), number)
            except OSError:
                pass
"""


@test(90, needs="bus")
def cannot_be_silenced(lab):
    """An agent that stops or kills what checks its jail makes the check fail, and nothing else."""
    script = f"{lab.workspace(ALICE)}/killer.py"
    machine.write(script, KILLER, 0o644, ALICE)
    for number in (signal.SIGKILL, signal.SIGSTOP):
        with Held(lab, script=f"exec python3 {script} {int(number)}") as held:
            # those that were over before the agent had a turn have passed, and whole
            tries = 20
            while (verdict := verify(lab, held.id)).status == 0:
                verdict.passes()
                tries -= 1
                holds(tries, f"signal {number}: twenty checks passed")
            holds(verdict.rows["end"]["status"] == "fail", str(verdict.rows["end"]))
            lab.run([SANDBOX, "stop", held.id]).ok()


REPLACER = r"""
import os, sys
done = []
for path in ("/usr/libexec/claude-sandbox/verify", "/usr/libexec/claude-sandbox", "/usr/libexec"):
    for name, call in (("rename", lambda: os.rename(path, path + ".old")), ("unlink", lambda: os.unlink(path)),
                       ("chmod", lambda: os.chmod(path, 0o777)), ("read", lambda: os.close(os.open(path, os.O_RDONLY)))):
        if name == "read" and os.path.isdir(path):
            continue
        try:
            call()
            done.append(name + " " + path)
        except OSError:
            pass
print("ready", flush=True)
sys.stdin.read()
print(done, flush=True)
"""


@test(60, needs="bus")
def cannot_be_replaced(lab):
    script = f"{lab.workspace(ALICE)}/replacer.py"
    machine.write(script, REPLACER, 0o644, ALICE)
    with Held(lab, script=f"exec python3 {script}") as held:
        verify(lab, held.id).passes()
        held.process.stdin.close()
        equal(held.rest(), b"[]\n")
        held.process.wait(10)


# ---- honesty ----


@test(60, needs="bus")
def outside_a_jail_it_fails(lab):
    for user in (ALICE, ROOT):
        result = lab.run([VERIFY], user)
        equal(result.status, 1, repr(result))
        first = result.out.decode().splitlines()
        holds(re.match(r"fail\s+01\b", first[0]), first[0])
        holds("no jail" in result.out.decode(), result.out.decode()[:300])


@test(60, needs="bus")
def without_the_network_jail(lab):
    """It is off: rows 19 and 20 pass, and say so."""
    lab.configure("egress-jail = 0\n")
    for user in (ALICE, ROOT):
        verify(lab, "shell", user=user).passes(notes=("19", "20"))
        with Held(lab, user) as held:
            verify(lab, held.id, user=user).passes(notes=("19", "20"))
            equal(held.end(), 3)


@test(90, needs="bus")
def under_both_kinds_of_proc(lab):
    lab.configure("")
    for kind in ("outer", "private"):
        machine.write(CONFIG, f"procfs = {kind}\n")
        for user in (ALICE, ROOT):
            verify(lab, "shell", user=user).passes()
            with Held(lab, user) as held:
                verify(lab, held.id, user=user).passes()
                equal(held.end(), 3)


@test(60, needs="bus")
def as_in_a_container(lab):
    """Parts of /proc are covered, so that no private one can be had; no control groups."""
    for path in ("/proc/kcore", "/proc/keys"):
        if os.path.exists(path):
            system.bind("/dev/null", path)
            lab.undo.append(lambda path=path: system.unmount(path))
    if os.path.exists("/sys/fs/cgroup/cgroup.procs"):
        system.mount("tmpfs", "/sys/fs/cgroup", "tmpfs", 0, "mode=0755")
        lab.undo.append(lambda: system.unmount("/sys/fs/cgroup"))
        lab.stop_service()
        lab.undo.append(lab.stop_service)
    for user in (ALICE, ROOT):
        verify(lab, "shell", user=user).passes()
        with Held(lab, user) as held:
            verify(lab, held.id, user=user).passes()
            equal(held.end(), 3)


@test(60, needs="bus")
def what_was_asked_for_is_a_note(lab):
    lab.configure("pass-env = GH_TOKEN DISPLAY\nallow-write = /srv/shared\n")
    os.makedirs("/srv/shared", exist_ok=True)
    os.chmod("/srv/shared", 0o1777)
    env = lab.environment(ALICE, GH_TOKEN="x", DISPLAY=":0")
    verdict = verify(lab, "shell", env=env).passes(notes=("04", "05"))
    holds("GH_TOKEN" in verdict.of("note")["04"], verdict.of("note")["04"])
    holds("DISPLAY" in verdict.of("note")["05"], verdict.of("note")["05"])
    holds("x" not in verdict.of("note")["04"].split(), "never a value")


@test(60, needs="bus")
def time_it_takes(lab):
    """22 rows in less than 300 ms, with the command that asks, when the machine has a moment for them."""
    with Held(lab) as held:
        holds(any(lab.run([SANDBOX, "verify", held.id]).ok().seconds < 0.3 for _ in range(30)), "none of thirty")
