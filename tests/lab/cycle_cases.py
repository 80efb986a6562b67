# SPDX-License-Identifier: MIT
"""
kill -9 of each part of a session at random moments, from a seed that is printed: nothing of it is left, the others
go on, the next launch works. CHECK_CYCLES=N runs N cycles (200 with `./check cycles`), CHECK_SEED=N repeats a run.
"""

import os
import random
import select
import signal
import subprocess
import time

import bus
from bus_cases import Held, answer
from case import CYCLES, LONG, SANDBOX, SEED, equal, holds, processes, test, wait_for
from fault_cases import BOTH, Leavings
from machine import ALICE, ROOT

ROLES = ("launch", "service", "session", "holder", "pasta", "bwrap", "init", "bus connection")
LATEST = 0.060                                       # s after the start of launch: by then the agent runs
ROUND = 20                                           # cycles between two looks at the other sessions


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def role_of(pid, text, launch):
    """Which part of a session the process is, or None."""
    name = name_of(pid)
    program = os.path.basename(text.split(" ")[0])
    if pid == launch:
        return "launch"
    if name.startswith(("pasta", "passt")):
        return "pasta"
    if name == "bwrap" or program == "bwrap":
        return "bwrap"
    if program == "init":
        return "init"
    if program == "session" or name == "session":
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            if name_of(parent) != "session":
                return "session"
            # other children of the session stay in the machine's network, those of the holder in the holder's
            return "holder" if os.readlink(f"/proc/{pid}/ns/net") != os.readlink(f"/proc/{parent}/ns/net") else None
        except OSError:
            return None
    return None


def pause(seconds):
    select.select([], [], [], seconds)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False


def hit(lab, leavings, process, role, delay):
    """Kill that part, from delay seconds after the start on as soon as it is there. Return: whether it was."""
    if role == "service":
        pause(delay)
        pid = lab.service_pid()
        return bool(pid) and kill(pid)
    if role in ("launch", "bus connection"):
        pause(delay)
        return kill(process.pid)
    end = time.monotonic() + 1
    pause(delay)
    while time.monotonic() < end and process.poll() is None:
        for pid, text in processes().items():
            if pid not in leavings.processes and role_of(pid, text, process.pid) == role:
                return kill(pid)
    return False


def cycle(lab, leavings, user, role, delay, what):
    process = lab.start([SANDBOX, "shell", "-c", "echo ready; exec tail -f /dev/null"], user, stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        was = hit(lab, leavings, process, role, delay)
        if role in ("service", "pasta") or not was:
            # the session goes on without a service, and gets a new wire; or the launch failed for lack of one
            select.select([process.stdout], [], [], 5)
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=12)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"{what}: launch does not end: {processes()}") from late
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    holds(process.returncode != 0, f"{what}: a success: {out!r} {err!r}")
    lines = err.decode(errors="replace").splitlines()
    holds(len(lines) <= 1 and all(line.startswith("claude-sandbox: ") for line in lines), f"{what}: {err!r}")
    if role == "service":
        answer(lab.call("ListSessions", user=user))        # the next one sweeps
    if role == "session":
        lab.shell("true", user).ok()                       # likewise what its masks stood on
    leavings.nothing_left(what)
    return was


@test(900, needs="bus")
def cycles(lab):
    chance = random.Random(SEED)
    counts = {role: [0, 0] for role in ROLES}
    others = [Held(lab, user) for user in BOTH]
    begin = time.monotonic()
    try:
        leavings = Leavings(lab, 2)
        for n in range(CYCLES):
            role = ROLES[n % len(ROLES)]
            delay = chance.random() * LATEST
            user = BOTH[chance.randrange(2)]
            what = f"seed {SEED}, cycle {n}: {role} of {user} killed after {delay * 1000:.1f} ms"
            counts[role][0] += 1
            counts[role][1] += cycle(lab, leavings, user, role, delay, what)
            if n % ROUND == ROUND - 1:
                for other in others:
                    equal(other.process.poll(), None, f"{what}: another session lives")
                    rows = answer(lab.call("ListSessions", user=ROOT))[0]
                    holds(other.id in [row[0] for row in rows], f"{what}: the service knows {other.id}: {rows}")
                    equal(lab.shell("exit 4", other_user(other)).status, 4, f"{what}: the next launch")
        for other in others:
            equal(other.end(), 3, "the other sessions report their exits")
    finally:
        for other in others:
            other.__exit__()
    print("     " + f"seed {SEED}: " + ", ".join(f"{role} {was}/{n}" for role, (n, was) in counts.items())
          + f" ({time.monotonic() - begin:.0f} s)", flush=True)
    holds(all(was for n, was in counts.values() if n >= 4), f"each part was killed at least once: {counts}")


def other_user(held):
    return ALICE if os.stat(f"/proc/{held.process.pid}").st_uid == ALICE.uid else ROOT


@test(120, needs="bus")
def launch_killed_at_each_moment(lab):
    """From before the call to after the agent runs, in steps: the terminal is left as a shell can use it."""
    leavings = Leavings(lab)
    for user in BOTH:
        for step in range(0, 62, 2 if LONG else 10):
            with lab.terminal([SANDBOX, "shell", "-c", "exec tail -f /dev/null"], user) as terminal:
                pause(step / 1000)
                os.kill(terminal.pid, signal.SIGKILL)
                terminal.wait()
            leavings.nothing_left(f"{user}: launch killed after {step} ms")


@test(60, needs="bus")
def terminal_of_a_killed_launch_can_be_reset(lab):
    """SIGKILL leaves nobody to restore the modes; stty, which shells run for each prompt, finds a whole terminal."""
    with lab.terminal(["/bin/sh", "-c", f"{SANDBOX} shell -c 'stty raw; echo ready; exec tail -f /dev/null'; echo killed; "
                       "stty sane; stty -a; echo done; read x; echo got $x"]) as terminal:
        terminal.expect("ready")
        launch = [pid for pid, text in processes().items() if "/launch" in text or text.startswith("claude-sandbox shell")]
        equal(len(launch), 1, f"one launch: {processes()}")
        os.kill(launch[0], signal.SIGKILL)
        terminal.expect("killed")
        seen = terminal.expect("done")
        holds(b" icanon" in seen and b"-icanon" not in seen and b" echo " in seen, repr(seen))
        terminal.type("words\r")
        terminal.expect("got words")
        equal(terminal.wait(), 0)


@test(60, needs="bus")
def caller_gone_while_polkit_is_asked(lab):
    """polkit that does not answer: the call waits, its caller goes, nothing starts and nothing stays."""
    lab.shell("true").ok()
    polkit = bus.Bus().owner_pid("org.freedesktop.PolicyKit1")
    if not polkit:
        lab.run(["/usr/bin/busctl", "--system", "call", "org.freedesktop.PolicyKit1",
                 "/org/freedesktop/PolicyKit1/Authority", "org.freedesktop.DBus.Peer", "Ping"]).ok()
        polkit = bus.Bus().owner_pid("org.freedesktop.PolicyKit1")
    leavings = Leavings(lab)
    os.kill(polkit, signal.SIGSTOP)
    try:
        before = len(lab.sessions())
        callers = [lab.start([SANDBOX, "shell", "-c", "echo STARTED"], ALICE, stdin=-3, stdout=subprocess.PIPE, stderr=-3)
                   for _ in range(5)]
        for caller in callers:
            wait_for(lambda c=caller: bus.connected(c.pid), "it calls")
        equal(len(lab.sessions()), before, "nothing starts before the answer")
        for caller in callers:
            caller.kill()
            equal(caller.communicate()[0], b"")
    finally:
        os.kill(polkit, signal.SIGCONT)
    leavings.nothing_left("the callers went while polkit was asked")
    lab.shell("true").ok()


@test(120, needs="bus")
def sixty_five_sessions(lab):
    """The limit is 64 of a user; the one beyond is refused with its cause, and another user's are not counted."""
    held = []
    try:
        for _ in range(8):
            some = [lab.start([SANDBOX, "shell", "-c", "echo ready; read x; exit 3"], ALICE, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
            held += some
            for process in some:
                holds(select.select([process.stdout], [], [], 40)[0], "it starts")
                line = process.stdout.readline()
                equal(line, b"ready\n", repr(line))
        equal(len(lab.sessions()), 64)
        lab.shell("echo STARTED", limit=40).refused(125, "64", "max-sessions")
        lab.shell("true", ROOT).ok()
        for process in held:
            process.stdin.close()
        for process in held:
            equal(process.wait(40), 3)
    finally:
        for process in held:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
    wait_for(lambda: not lab.sessions(), "nothing of them stays", 12)
    lab.shell("true").ok()
