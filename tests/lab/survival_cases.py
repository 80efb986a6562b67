# SPDX-License-Identifier: MIT
"""What lives on when the service does not, and what dies with its session however it hides."""

import contextlib
import os
import signal
import time

from bus_cases import Held, answer
from case import SANDBOX, equal, holds, processes, test, wait_for
from fault_cases import Leavings
from machine import ALICE, BOB, ROOT


@test(120, needs="bus")
def twenty_sessions_and_a_service_that_dies(lab):
    """Twenty jails of two users, the service killed again and again: same ids, states, agents, ends."""
    leavings = Leavings(lab)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(Held(lab, (ALICE, BOB)[n % 2], f"echo ready; read x; exit {n + 1}")) for n in range(20)]

        def all_running():
            rows = sorted(answer(lab.call("ListSessions"))[0])
            return rows if {row[7] for row in rows} == {"running"} else None

        running = wait_for(all_running, "all of them run")
        equal(sorted(row[0] for row in running), sorted(h.id for h in held))
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            lab.stop_service(number)
            equal(sorted(answer(lab.call("ListSessions"))[0]), running)
        # half of them while a service looks, half while none does
        for n, session in enumerate(held[:10]):
            equal(session.end(), n + 1)
        wait_for(lambda: len(answer(lab.call("ListSessions"))[0]) == 10, "the end of half")
        lab.stop_service(signal.SIGKILL)
        for n, session in enumerate(held[10:]):
            equal(session.end(), n + 11)
        wait_for(lambda: answer(lab.call("ListSessions"))[0] == [], "the end of all")
        for session in held[:10]:
            last = answer(lab.call("ListEvents", "sa{sv}", session.id, 0))[0][-1]
            equal((last[1], last[4]["status"]), ("exit", str(held.index(session) + 1)))
    leavings.nothing_left("twenty sessions")


# Leaves its parent, its session and its terminal, twice, and hears nothing any more.
DAEMON = "(setsid sh -c 'trap \"\" HUP INT TERM QUIT USR1 USR2 PIPE; exec </dev/null >/dev/null 2>&1; (setsid tail -f /dev/null &) &' &) ; "


@test(120, needs="bus")
def orphans_die_with_their_session(lab):
    """What has left its parent, its session and its terminal, and ignores every signal, goes when the agent does."""
    def hidden():
        return [pid for pid, text in processes().items() if text.startswith("tail -f /dev/null")]

    leavings = Leavings(lab)
    for user in (ALICE, ROOT):
        ends = {
            "the agent's exit": lambda held: held.end(),
            "a stop": lambda held: lab.call("StopSession", "sa{sv}", held.id, 0, user=user),
            "the death of launch": lambda held: os.kill(held.process.pid, signal.SIGKILL),
            "a stop by a new service": lambda held: (lab.stop_service(signal.SIGKILL),
                                                     lab.call("StopSession", "sa{sv}", held.id, 0, user=user)),
        }
        for what, end in ends.items():
            with Held(lab, user, DAEMON * 3 + "echo ready; read x; exit 3") as held:
                wait_for(lambda: len(hidden()) == 3, "what hides")
                end(held)
                held.process.wait(10)
            leavings.nothing_left(f"{user}: {what}")


@test(60, needs="bus")
def an_agent_that_hears_nothing(lab):
    """It ignores every signal: a stop kills it after its grace, a terminal that goes after five seconds."""
    script = "trap '' HUP INT TERM QUIT USR1 USR2; echo ready; while :; do read -t 100 x || tail -f /dev/null; done"
    leavings = Leavings(lab)
    with Held(lab, script=script) as held:
        start = time.monotonic()
        equal(lab.call("StopSession", "sa{sv}", held.id, 1, "grace", "t", 500000, user=ALICE).status, 0)
        holds(0.4 < time.monotonic() - start < 4, f"it took {time.monotonic() - start} s")
        equal(held.process.wait(5), -signal.SIGKILL)
    leavings.nothing_left("a stop")
    with lab.terminal([SANDBOX, "shell", "-c", script], ALICE) as terminal:
        terminal.expect("ready")
        start = time.monotonic()
        terminal.hang_up()
        wait_for(lambda: not lab.sessions(), "its end", 9)
        holds(time.monotonic() - start > 3, "it had its grace")
    leavings.nothing_left("a terminal that went")


@test(30)
def the_unit_confines_nobody(lab):
    """No directive that makes a namespace, a seccomp filter or NoNewPrivs: every caller would be refused then."""
    with open("/usr/lib/systemd/system/claude-sandboxd.service", encoding="utf-8") as f:
        lines = dict(line.strip().split("=", 1) for line in f if "=" in line and not line.startswith("#"))
    equal(lines.keys(), {"Description", "Documentation", "Type", "BusName", "ExecStart", "KillMode", "Delegate", "TasksMax",
                         "LimitNOFILE", "Restart"}, "each of these is known to confine nobody; look at a new one before it is")
    equal((lines["KillMode"], lines["Type"], lines["Restart"]), ("process", "dbus", "on-failure"))
    holds(os.access(lines["ExecStart"], os.X_OK), lines["ExecStart"])
    with open("/usr/share/dbus-1/system-services/org.claudesandbox1.service", encoding="utf-8") as f:
        holds("SystemdService=claude-sandboxd.service" in f.read(), "the bus starts it through systemd")
