# SPDX-License-Identifier: MIT
"""Sessions on a machine with systemd: activation, scopes, limits, the journal, logout."""

import json

from case import SANDBOX, Session, equal, has, holds, ids, test

SERVICE = "claude-sandboxd.service"
LAUNCHES = "7c60de48b405498988d422b9d1855e1b"        # MESSAGE_ID, claude-sandboxd(8)


def property_of(machine, unit, name):
    return machine.run(["systemctl", "show", "-P", name, unit]).ok().out.strip()


def group_of(machine, session):
    """The control group of a session's processes, from the outside."""
    leader = machine.json([SANDBOX, "show", "--json", session.id])["leader"]
    return machine.run(["cat", f"/proc/{leader}/cgroup"]).ok().out.strip().removeprefix("0::")


@test()
def the_bus_starts_the_service_and_it_goes(machine):
    """By a call, with nothing that would refuse its callers, and gone by itself when nobody needs it."""
    machine.run([SANDBOX, "sessions"]).ok()
    equal(property_of(machine, SERVICE, "ActiveState"), "active")
    for name in ("NoNewPrivileges", "PrivateTmp", "RestrictNamespaces"):
        equal(property_of(machine, SERVICE, name), "no", name)
    machine.wait_for(f"[ $(systemctl show -P ActiveState {SERVICE}) = inactive ]")
    equal(property_of(machine, SERVICE, "Result"), "success")


@test()
def a_session_is_a_scope_of_its_users(machine):
    session = Session(machine)
    group = group_of(machine, session)
    scope = group.rsplit("/", 1)[-1]
    holds(group.startswith("/user.slice/user-1000.slice/claude-sandbox-") and scope.endswith(".scope"), group)
    equal(property_of(machine, scope, "ActiveState"), "active")
    if machine.suite != "bookworm":                  # its systemd has no such property for scopes, and stops none
        equal(property_of(machine, scope, "OOMPolicy"), "continue")
    session.end()
    machine.wait_for(f"! systemctl is-active -q {scope}")


@test()
def a_unit_with_limits_keeps_its_session(machine):
    """Started in a scope of the user's own that has a limit, unless the administrator has named one."""
    within = "systemd-run --user --scope -q -p MemoryMax=300M"
    session = Session(machine, within=within)
    group = group_of(machine, session)
    holds(group.startswith("/user.slice/user-1000.slice/user@1000.service/"), group)
    unit = group.rsplit("/", 1)[0]
    holds(unit.endswith(".scope"), group)
    equal(machine.run(["cat", f"/sys/fs/cgroup{unit}/memory.max"]).ok().out.strip(), str(300 << 20))
    session.lives("in its unit")
    equal(session.end(), 3)
    session.is_gone()
    machine.write("/etc/claude-sandbox.conf", "memory-max = 256M\n")
    session = Session(machine, within=within)
    group = group_of(machine, session)
    holds(group.startswith("/user.slice/user-1000.slice/claude-sandbox-"), group)
    equal(session.end(), 3)


# forks until it may not, and ends what it made
FORKS = """
import os, signal
made = []
try:
    while len(made) < 200:
        pid = os.fork()
        if not pid:
            signal.pause()
        made.append(pid)
except BlockingIOError:
    print("refused", end=" ")
for pid in made:
    os.kill(pid, 9)
print(len(made))
""".strip()


@test()
def limits_hold(machine):
    """256 MiB and 50 processes; one process that takes more dies alone, and the agent goes on."""
    machine.write("/etc/claude-sandbox.conf", "memory-max = 256M\ntasks-max = 50\n")
    session = Session(machine)
    group = f"/sys/fs/cgroup{group_of(machine, session)}"
    for name, value in (("memory.max", str(256 << 20)), ("memory.swap.max", "0"), ("pids.max", "50")):
        equal(machine.run(["cat", f"{group}/{name}"]).ok().out.strip(), value, name)
    said = session.ask("python3 -c 'x = b\"a\" * (1 << 30)'; echo python-$?")
    has(said, "python-137")
    session.lives("after one process was killed")
    said = session.ask(f"python3 -c '{FORKS}'")
    has(said, "refused")
    holds(20 < int(said.split()[-1]) <= 50, said)
    session.lives("after it could fork no more")
    equal(session.end(), 3)


@test()
def the_journal_has_fields(machine):
    session = Session(machine)
    machine.run(["journalctl", "--sync"]).ok()
    lines = machine.run(["journalctl", "-q", "-o", "json", f"MESSAGE_ID={LAUNCHES}"]).ok().out.splitlines()
    mine = [fields for fields in map(json.loads, lines) if fields.get("CLAUDE_SANDBOX_SESSION") == session.id]
    equal(len(mine), 1, "entries of the launch")
    equal(mine[0].get("CLAUDE_SANDBOX_UID"), "1000", mine[0])
    session.end()


@test()
def everything_around_a_session_restarts(machine):
    """Each of them, orderly and by SIGKILL: the agent goes on, under the same id."""
    session = Session(machine)
    for what in (f"systemctl restart {SERVICE}", f"systemctl stop {SERVICE}", f"systemctl kill -s KILL {SERVICE}",
                 "systemctl daemon-reload", "systemctl daemon-reexec", "systemctl restart systemd-journald",
                 "systemctl restart systemd-logind", "systemctl restart polkit", "systemctl restart ssh",
                 "systemctl kill -s KILL systemd-journald"):
        machine.shell(f"{SANDBOX} sessions >/dev/null; {what}").ok()
        session.lives(what)
    equal(session.end(), 3)
    session.is_gone()


def detached(machine):
    """A session in a tmux of alice's, whose login ends once it is there. Return: its id."""
    login = machine.login("alice", "mkdir -p project; rm -f said status; tmux -L vm new-session -d -s a "
                          "'cd ~/project; claude-sandbox shell 2>~/said; echo $? >~/status'; read end")
    machine.wait_for("claude-sandbox sessions --all --json | grep -q '\"id\"'")
    new = ids(machine)
    equal(len(new), 1, "sessions")
    login.close()
    login.wait()
    return new.pop()


def ended(machine):
    machine.wait_for(f"[ \"$({SANDBOX} sessions --all --json | tr -d ' \\n')\" = '[]' ]")
    machine.wait_for("! systemctl list-units --no-legend 'claude-sandbox-*.scope' | grep -q .")
    machine.wait_for("[ -z \"$(ls /run/claude-sandbox/sessions 2>/dev/null)\" ]")


@test()
def logged_out(machine):
    """What stays when its user leaves goes on; what logind ends takes the session along, and nothing is left."""
    here = detached(machine)
    holds(here in ids(machine), "the session stays with its tmux")
    machine.run(["loginctl", "terminate-user", "alice"]).ok()
    machine.shell("pkill -KILL -u alice tmux; true")
    ended(machine)
    detached(machine)
    machine.shell("loginctl kill-user -s KILL alice; pkill -KILL -u alice tmux; true")
    ended(machine)
    detached(machine)
    machine.run(["systemctl", "stop", "user-1000.slice"]).ok()
    ended(machine)


@test()
def logged_out_where_nothing_may_stay(machine):
    machine.write("/etc/systemd/logind.conf.d/vm.conf", "[Login]\nKillUserProcesses=yes\n")
    machine.shell("systemctl restart systemd-logind").ok()
    try:
        detached(machine)
        ended(machine)
    finally:
        machine.shell("rm /etc/systemd/logind.conf.d/vm.conf; systemctl restart systemd-logind").ok()
