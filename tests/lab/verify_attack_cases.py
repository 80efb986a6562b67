# SPDX-License-Identifier: MIT
"""What others do to the checks of a jail: an agent beside them that starves them, a user who floods what they aim at."""

import json
import os
import re
import signal
import subprocess

import bus
import machine
from bus_cases import Held
from case import SANDBOX, equal, holds, processes, test, wait_for
from machine import ALICE, BOB, MALLORY
from verify_cases import verify

STARVER = r"""
import ctypes, os, resource, sys, time
print("ready", flush=True)
own, number, count = {1, os.getpid()}, int(sys.argv[1]), 0
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in own:
            try:
                hard = resource.prlimit(int(entry), number)[1]
                resource.prlimit(int(entry), number, (3, hard))
                count += 1
            except (OSError, ValueError):
                pass
print("starved", count > 0, flush=True)
sys.stdin.read()
"""


@test(90, needs="bus")
def starved_checks_fail(lab):
    """An agent takes their descriptors away from the checks: what could not be tried has not passed."""
    script = f"{lab.workspace(ALICE)}/starver.py"
    machine.write(script, STARVER, 0o644, ALICE)
    with Held(lab, script=f"exec python3 {script} 7 8") as held:
        holds(any(verify(lab, held.id).status == 1 for _ in range(20)), "none was starved")
        equal(held.process.stdout.readline(), b"starved True\n")


FLOOD = r"""
import socket, sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    with open("/proc/net/udp") as f:
        ports = [int(words[1][9:], 16) for words in map(str.split, f) if words[1].startswith("0100007F:") and words[7] == sys.argv[2]]
    for port in ports:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for _ in range(2000):
                try:
                    s.sendto(b"x", ("127.0.0.1", port))
                except OSError:
                    break
"""


@test(90, needs="bus")
def flooded_listeners_tell_nothing(lab):
    """Another user asks what the checks aim at without end: they say that nothing can be told, in the last line too."""
    flood = lab.start(["/usr/bin/python3", "-c", FLOOD, "60", str(ALICE.uid)], BOB, cwd="/")
    try:
        for _ in range(20):
            result = lab.run([SANDBOX, "verify", "--probes", "shell"], limit=30)
            if result.status:
                break
        equal(result.status, 1, repr(result))
        said = result.out.decode()
        holds("asked the listeners that the checks aim at without end" in said, said[-600:])
        holds(said.rstrip().endswith("FAILED, since the checks did not come to their end"), said[-200:])
    finally:
        flood.kill()
        flood.wait()
    holds(not [name for name in os.listdir("/tmp") if "claude-sandbox" in name], "nothing is left behind")


@test(60, needs="bus")
def listeners_do_not_name_the_session(lab):
    """Everybody reads the names of sockets; nobody else reads the ids of sessions."""
    with Held(lab) as held:
        process = lab.start([SANDBOX, "verify", "--probes", held.id], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        names = set()

        def seen():
            with open("/proc/net/unix", encoding="utf-8", errors="replace") as f:
                names.update(re.findall(r"\S*claude-sandbox-\S+", f.read()))
            return any("bait" in name for name in names) and any(name.startswith("/tmp/") for name in names)
        wait_for(seen, "the listeners")
        process.wait(30)
        holds(not any(held.id in name for name in names), str(names))
        equal(held.end(), 3)


@test(90, needs="bus")
def rows_of_others(lab):
    """Another user may send anything to a client's name on the bus: it is no row of its checks, and none of them fails by it."""
    lab.install_agent(ALICE)
    lab.undo.append(lambda: lab.remove_agent(ALICE))
    with Held(lab) as held:
        for words, last in ((["verify", "--probes", held.id], b"\n22 "), (["doctor"], b"\nchain.end ")):
            service = lab.service_pid()
            run = lab.start([SANDBOX, *words], ALICE, cwd=lab.workspace(ALICE), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            seen = run.stdout.readline()
            # it waits for more rows, in the middle of its run
            os.kill(service, signal.SIGSTOP)
            try:
                bus.send_rows(words[0], MALLORY)
                holds(run.poll() is None, f"{words}: it had ended already")
            finally:
                os.kill(service, signal.SIGCONT)
            seen += run.stdout.read()
            equal(run.wait(30), 0, f"{words}: {seen!r}")
            holds(b"forged" not in seen and last in seen, f"{words}: {seen!r}")


@test(60, needs="bus")
def a_silent_session_is_named(lab):
    """Whoever asks for the check is told which session says nothing, and what ends it."""
    with Held(lab) as held:
        [silent] = [pid for pid, text in processes().items() if text.split(" ")[0] == "/usr/libexec/claude-sandbox/session"]
        os.kill(silent, signal.SIGSTOP)
        try:
            verdict = json.loads(lab.run([SANDBOX, "verify", "--json", held.id[:7]], ALICE).out)
        finally:
            os.kill(silent, signal.SIGCONT)
        end = verdict["rows"][-1]
        equal((verdict["passed"], end["number"], end["status"]), (False, "end", "fail"))
        holds(f"the session {held.id} fell silent ('claude-sandbox stop {held.id}' ends it)" in end["detail"], str(end))
        lab.run([SANDBOX, "stop", held.id], ALICE).ok()
