# SPDX-License-Identifier: MIT
"""Deaths and leavings: what is killed takes nothing along that it should not, and leaves nothing behind."""

import glob
import os
import signal

import bus
import case
from bus_cases import Held, answer
from case import SANDBOX, cgroups, equal, holds, namespaces, processes, test, wait_for
from machine import ALICE, PROBE, ROOT

BOTH = (ALICE, ROOT)


class Leavings:
    """What is there before a session, to compare with."""

    def __init__(self, lab, but=0):
        """but: so many sessions are meant to be there."""
        lab.shell("true").ok()                       # the service runs, and what it makes once is made
        lab.shell("true", ROOT).ok()
        wait_for(lambda: len(lab.sessions()) == but, "no other session")
        self.look(lab)

    @classmethod
    def now(cls, lab):
        """As it is, whatever runs."""
        leavings = cls.__new__(cls)
        leavings.look(lab)
        return leavings

    def look(self, lab):
        self.lab = lab
        self.processes = set(processes())
        self.namespaces = namespaces()
        self.cgroups = cgroups()
        self.mounts = self.read_mounts()
        self.run = self.listing("/run/claude-sandbox")
        self.guards = self.read_guards()

    @staticmethod
    def read_guards():
        """{path: content} of the records of what was made on the host for masks."""
        found = {}
        for user in BOTH:
            for path in glob.glob(f"{user.home}/.local/state/claude-sandbox/**", recursive=True):
                if os.path.isfile(path):
                    with open(path, "rb") as f:
                        found[path] = f.read()
        return found

    @staticmethod
    def read_mounts():
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return f.read()

    @staticmethod
    def listing(path):
        return sorted(os.path.join(directory, name) for directory, names, files in os.walk(path) for name in names + files
                      if "/users/" not in directory + "/")

    def left(self, but=()):
        """What is there now and was not before."""
        found = []
        now = processes()
        new = [f"process {pid}: {text}" for pid, text in now.items()
               if pid not in self.processes and pid not in but and "claude-sandboxd" not in text]
        found += new
        # a program that was there before may go on to make its own
        found += [f"namespace {name} of {owner} ({now.get(owner)})" for name, owner in namespaces().items()
                  if name not in self.namespaces and owner not in self.processes]
        found += [f"cgroup {name}" for name in cgroups() - self.cgroups]
        found += [f"file {name}" for name in self.listing("/run/claude-sandbox") if name not in self.run]
        found += [f"record {path}" for path, text in self.read_guards().items() if text not in (b"", self.guards.get(path))]
        if self.read_mounts() != self.mounts:
            found.append("mounts")
        return found

    def nothing_left(self, what, limit=6):
        try:
            wait_for(lambda: not self.left(), what, limit)
        except AssertionError as error:
            raise AssertionError(f"{what}: left after {limit} s: {self.left()}") from error


@test(60, needs="bus")
def nothing_stays_after_an_end(lab):
    leavings = Leavings(lab)
    for user in BOTH:
        equal(lab.shell("exit 7", user).status, 7)
        leavings.nothing_left(f"{user}: exit")
        equal(lab.shell("kill -KILL $$", user).status, -signal.SIGKILL)
        leavings.nothing_left(f"{user}: killed")
        lab.shell("(exec setsid tail -f /dev/null) & (exec nohup tail -f /dev/null >/dev/null 2>&1) & exit 0", user).ok()
        leavings.nothing_left(f"{user}: with processes of its own in the background")
        with lab.terminal([SANDBOX, "shell", "-c", "echo ready; exec tail -f /dev/null"], user) as terminal:
            terminal.expect("ready")
            terminal.type(b"\x03")
            terminal.wait()
        leavings.nothing_left(f"{user}: interrupted")
        with Held(lab, user) as held:
            lab.call("StopSession", "sa{sv}", held.id, 0, user=user)
            held.process.wait(10)
        leavings.nothing_left(f"{user}: stopped")


@test(60, needs="bus")
def nothing_stays_after_a_refusal(lab):
    leavings = Leavings(lab)
    lab.shell("true", cwd="/etc").refused(125)
    leavings.nothing_left("an unsafe workspace")
    lab.configure("nonsense\n")
    lab.shell("true").refused(125)
    leavings.nothing_left("a bad configuration")
    lab.restore()
    lab.hide("/usr/bin/bwrap")
    lab.shell("true").refused(125)
    leavings.nothing_left("no bwrap")
    lab.restore()
    lab.run([case.CLAUDE], env=lab.environment(ALICE, HOME="/nonexistent"))
    leavings.nothing_left("no agent")


def parts(leavings, held):
    """{role: pid} of one session's processes."""
    roles = {}
    for pid, text in processes().items():
        if pid in leavings.processes:
            continue
        name = text.split(" ")[0].rsplit("/", 1)[-1]
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
                comm = f.read().strip()
        except (FileNotFoundError, ProcessLookupError):    # it has ended since processes() looked
            continue
        for role in ("launch", "session", "bwrap", "init"):
            if comm == role or name == role:
                roles.setdefault(role, pid)
        if comm.startswith(("pasta", "passt")):
            roles["pasta"] = pid
    roles.setdefault("launch", held.process.pid)
    return roles


@test(120, needs="bus")
def killed_parts(lab):
    """kill -9 of any one part of a session: everything of it goes, the others stay."""
    with Held(lab, ROOT) as other:
        leavings = Leavings(lab, 1)
        for user in BOTH:
            for role in ("launch", "session", "bwrap", "init"):
                with Held(lab, user) as held:
                    roles = parts(leavings, held)
                    holds(role in roles, f"{role} is not among {roles}")
                    os.kill(roles[role], signal.SIGKILL)
                    status = held.process.wait(10)
                    holds(status != 0 and status != 3, f"{user}, {role}: the status was {status}")
                if role == "session":
                    lab.shell("true", user).ok()      # the empty directories that masks stood on go with the next one
                leavings.nothing_left(f"{user}: {role} was killed")
        equal(other.process.poll(), None, "the other session lives")
        equal(other.end(), 3)


@test(60, needs="bus")
def killed_wire(lab):
    """Without pasta nothing leaves; the jail stays closed and the session goes on or ends, never wider."""
    import network
    from network_cases import reach
    leavings = Leavings(lab)
    with Held(lab, script=f"echo ready; read x; exec {PROBE} reach 500 unwired {network.INTERNAL['10.0.0.0/8']} "
                          f"{network.LOOPBACK}") as held:
        pid = parts(leavings, held)["pasta"]
        os.kill(pid, signal.SIGKILL)
        holds(bus.wait_pid_gone(pid, 5), "it is dead")
        lab.network.inet.take()
        lab.network.host.take()
        held.process.stdin.close()
        out = held.process.stdout.read().decode()
        held.process.wait(10)
        holds(" reached " not in out, out)
        notes = lab.network.inet.take() + lab.network.host.take()
        equal([note for note in notes if "unwired" in note[3]], [])
    leavings.nothing_left("the wire was killed")
    del reach


def adopted(lab, wanted):
    """The rows of ListSessions if they are the wanted ones; the ids are right from the first answer on."""
    rows = answer(lab.call("ListSessions", user=ALICE))[0]
    equal([row[:5] for row in rows], [row[:5] for row in wanted])
    return rows if [row[:5] + row[7:] for row in rows] == wanted else None


@test(60, needs="bus")
def sessions_outlive_the_service(lab):
    """kill -9 of the service, and its orderly end: the session is adopted with its id and still reports its exit."""
    for number in (signal.SIGKILL, signal.SIGTERM):
        with Held(lab) as held:
            lab.stop_service(number)
            equal(held.process.poll(), None, "the session lives")
            wanted = [[held.id, held.path, "shell", "alice", 4001, "running"]]
            rows = wait_for(lambda held=held, wanted=wanted: adopted(lab, wanted), f"it is known again after signal {number}")
            equal(bytes(rows[0][5]).decode(), lab.workspace(ALICE))
            equal(answer(lab.call("ListSessions", user=ROOT))[0][0][0], held.id)
            equal(held.end(), 3, "its exit arrives")
            wait_for(lambda: not lab.sessions(), "its run directory goes")
    for number in (signal.SIGKILL, signal.SIGTERM):
        with Held(lab) as held:
            lab.stop_service(number)
            equal(held.end(), 3, "its exit arrives without any service")
            wait_for(lambda: not answer(lab.call("ListSessions", user=ALICE))[0], "the next service sees that it is over")
            wait_for(lambda: not lab.sessions(), "what it left is swept")


@test(60, needs="bus")
def adopted_sessions_can_be_stopped(lab):
    with Held(lab) as held:
        lab.stop_service(signal.SIGKILL)
        result = lab.call("StopSession", "sa{sv}", held.id, 0, user=ALICE)
        equal(result.status, 0, repr(result))
        holds(held.process.wait(10) != 3, "it was stopped")
        equal(lab.sessions(), [])


@test(60, needs="bus")
def stale_directories_are_swept(lab):
    """What a machine's crash left: directories without a session, and things that are none."""
    lab.stop_service()
    for name in ("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"):
        os.makedirs(f"{case.SESSIONS}/{name}", 0o711, exist_ok=True)
    lab.call("ListSessions", user=ALICE)
    wait_for(lambda: not lab.sessions(), "they are swept")
    lab.shell("true").ok()


@test(60, needs="bus")
def bus_goes_and_comes(lab):
    """The bus dies: the agent goes on, and a new bus has a service that knows it."""
    with Held(lab) as held:
        lab.bus.stop()
        try:
            equal(held.process.poll(), None, "the session lives")
        finally:
            lab.bus.start()
        rows = answer(lab.call("ListSessions", user=ALICE))[0]
        equal([row[0] for row in rows], [held.id])
        equal(held.end(), 3)


@test(60, needs="bus")
def many_at_once(lab):
    """Twenty launches at the same time: each gets its own status."""
    began = [lab.start([SANDBOX, "shell", "-c", f"exit {n}"], (ALICE, ROOT)[n % 2], stdin=-3, stdout=-3, stderr=-3)
             for n in range(20)]
    try:
        equal([process.wait(30) for process in began], list(range(20)))
    finally:
        for process in began:
            if process.poll() is None:
                process.kill()
                process.wait()
    wait_for(lambda: not lab.sessions(), "no session")
