# SPDX-License-Identifier: MIT
"""A session of any profile, and its tables against what the kernel holds: entry by entry, both ways."""

import collections
import glob
import os
import re
import stat
import subprocess

import bus
import machine
from bus_cases import Held, answer
from case import SANDBOX, equal, holds, wait_for
from machine import ROOT

AGENT = "#!/bin/sh\necho ready\nread line\n"
DEV = ("null", "zero", "full", "random", "urandom", "tty", "pts")          # bwrap(1), --dev
PROC = ("sys", "sysrq-trigger", "irq", "bus")                              # what bwrap makes read-only of its own
PLACES = ("bind", "tmpfs", "dev", "proc", "file", "device")                # kinds that are mounts

Mount = collections.namedtuple("Mount", "path kind options root device")


class Agent(Held):
    """A session of any profile that runs until it is told to end."""

    def __init__(self, lab, profile, user, **options):  # pylint: disable=super-init-not-called
        self.lab = lab
        before = set(lab.sessions())
        command = [SANDBOX, "shell", "-c", "echo ready; read line; :"]
        if profile != "shell":
            machine.write(f"{user.home}/.local/bin/{profile}", AGENT, 0o755, user)
            lab.undo.append(lambda: lab.remove_agent(user, profile))
            command = [f"/usr/local/bin/{profile}"]
        options.setdefault("stdin", subprocess.PIPE)
        self.process = lab.start(command, user, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        line = self.process.stdout.readline()
        if line != b"ready\n":
            self.process.kill()
            raise AssertionError(f"the session did not start: {line!r} {self.process.stderr.read()!r}")
        wait_for(lambda: not bus.connected(self.process.pid), "the caller has its answer")
        self.id, = [name for name in lab.sessions() if name not in before]
        self.path = f"{bus.PATH}/session/{self.id}"

    def __exit__(self, *more):
        super().__exit__(*more)
        wait_for(lambda: self.id not in self.lab.sessions(), "the end of the session")

    def table(self, member, user=ROOT):
        return answer(self.lab.call(member, user=user, interface=bus.SESSION, path=self.path))[0]

    def exposure(self):
        return [(bytes(row[0]), *row[1:]) for row in self.table("ListExposure")]

    @property
    def leader(self):
        return answer(self.lab.run(["/usr/bin/busctl", "--system", "--json=short", "get-property", bus.NAME, self.path,
                                    bus.SESSION, "Leader"], ROOT, cwd="/"))

    @property
    def agent(self):
        """The agent's first process: the child of the jail's init."""
        leader = self.leader
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                        if int(f.read().rpartition(")")[2].split()[1]) == leader:
                            return int(name)
                except (FileNotFoundError, ProcessLookupError):
                    pass
        raise AssertionError("no agent")


def unescape(text):
    """proc(5): space, tab, newline and backslash are octal in mountinfo."""
    return re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), text)


def mounts_of(pid):
    found = []
    with open(f"/proc/{pid}/mountinfo", "rb") as f:
        for line in f:
            fields = line.split(b" ")
            rest = fields[fields.index(b"-") + 1:]
            found.append(Mount(unescape(fields[4]), rest[0], fields[5].split(b","), unescape(fields[3]), fields[2]))
    return found


def below(path, directory):
    return path != directory and path.startswith(directory.rstrip(b"/") + b"/")


def at_or_below(path, directory):
    return path == directory or below(path, directory)


def expected_mounts(rows, outside):
    """How often each place is a mount, by the table: a row each, and what its binds and kinds bring along."""
    wanted = collections.Counter()
    for path, kind, _mode, _origin, _reason in rows:
        if kind in PLACES:
            wanted[path] += 1
        if kind == "bind":
            wanted.update(mount.path for mount in outside if below(mount.path, path))
        if kind == "dev":
            wanted.update(path + b"/" + name.encode() for name in DEV)
    return wanted


def decider(rows, path):
    """The last row at or above path that is a mount."""
    return [row for row in rows if row[1] in PLACES and at_or_below(path, row[0])][-1]


def outside_of(rows, row, path, root):
    """Where the host has what the agent sees at path by that row: the agent's state is the workspace's own, elsewhere."""
    if row[1] != "bind" or not row[4].startswith("project:") or "transcripts" in row[4]:
        return path
    state = next(row[0] for row in rows if row[4].startswith("project: the agent's state"))
    inside = os.lstat(root + state)
    kept = os.path.join(os.path.dirname(state), b".local/state/claude-sandbox/projects/*/", os.path.basename(state))
    for found in glob.glob(kept):
        if os.path.samestat(os.lstat(found), inside):
            return found + path[len(state):]
    raise AssertionError(f"{state!r} is not one of {kept!r}")


def check_place(row, rows, top, leader, user):
    """What the row says of a place that no later row covers."""
    path, kind, mode, _origin, reason = row
    inside = b"/proc/%d/root" % leader + path
    what = f"{path!r} ({kind}, {mode}: {reason})"
    if kind == "link":
        holds(os.path.islink(inside), f"{what} is no link")
        return
    if kind == "directory":
        holds(os.path.isdir(inside) and not os.path.islink(inside), f"{what} is no directory")
        return
    status = os.lstat(inside)
    mount = top[path]
    if kind == "bind" and mode in ("ro", "rw"):
        equal(mode.encode() in mount.options, True, f"{what}: {mount}")
        outside = os.stat(outside_of(rows, row, path, b"/proc/%d/root" % leader))
        if not stat.S_ISREG(status.st_mode):
            equal((status.st_dev, status.st_ino), (outside.st_dev, outside.st_ino), f"{what}: it is what is outside")
    elif kind in ("tmpfs", "dev", "proc"):
        equal(mount.kind, b"proc" if kind == "proc" else b"tmpfs", what)
        if kind == "proc":
            equal(b"ro" in mount.options, mode == "ro", f"{what}: {mount}")
        if mode == "masked":
            equal([name for name in os.listdir(inside)
                   if not any(at_or_below(other[0], path + b"/" + name) for other in rows)], [], what)
    elif kind == "file":
        holds(b"ro" in mount.options and (stat.S_ISREG(status.st_mode) or mode == "masked"), f"{what}: {mount}")
        equal(mode == "masked", status.st_size == 0, what)
    elif kind == "device":
        holds(stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode), what)
        equal(status.st_rdev, os.stat(f"/proc/{leader}/root/dev/console").st_rdev if path == b"/dev/console"
              else os.stat(path).st_rdev, what)
    holds(kind in PLACES, f"a kind that the test does not know: {what}")


def check_private_places(rows, leader, user):
    """In directories of the session's own stands nothing but rows and the way to them."""
    root = b"/proc/%d/root" % leader
    for place in [row[0] for row in rows if row[1] == "tmpfs"]:
        device = os.lstat(root + place).st_dev
        for top, directories, names in os.walk(root + place):
            for name in directories + names:
                path = (top + b"/" + name)[len(root):]
                holds(any(at_or_below(row[0], path) for row in rows if row[1] != "descriptor"),
                      f"{user}: {path!r} is in a private place and no row says why")
            directories[:] = [name for name in directories if os.lstat(top + b"/" + name).st_dev == device]


def compare_paths(held, user):
    rows, leader, agent = held.exposure(), held.leader, held.agent
    holds(rows[0][:3] == (b"/", "bind", "ro"), rows[0])
    for path, kind, mode, origin, reason in rows:
        holds(path.startswith(b"/") and origin and reason, (path, origin, reason))
        holds(mode in ("ro", "rw", "masked", "private"), mode)
        holds(kind in PLACES + ("link", "directory", "descriptor"), kind)
    found = mounts_of(agent)
    equal([mount.path for mount in mounts_of(leader)], [mount.path for mount in found], "init and the agent see the same")
    wanted, real = expected_mounts(rows, mounts_of("self")), collections.Counter(mount.path for mount in found)
    extra = real - wanted
    if (b"/proc", "proc") in [row[:2] for row in rows]:
        extra -= collections.Counter(b"/proc/" + name.encode() for name in PROC)
    # While the jail is made, all is read-only but what is mounted read-write (anchors.h): those mounts are below its root.
    extra -= collections.Counter(path for path, kind, mode, _origin, _reason in rows if kind == "bind" and mode == "rw")
    extra = {path: n for path, n in extra.items() if b"/.local/state/claude-sandbox/projects/" not in path}
    equal(extra, {}, f"{user}: mounts inside that no row explains")
    equal(dict(wanted - real), {}, f"{user}: rows without a mount inside")
    top = {mount.path: mount for mount in found}
    for i, row in enumerate(rows):
        if row[1] == "descriptor" or any(later[1] in PLACES and at_or_below(row[0], later[0]) for later in rows[i + 1:]):
            continue
        check_place(row, rows, top, leader, user)
    check_private_places(rows, leader, user)
    # nothing is writable but what the table says
    for mount in found:
        if b"ro" in mount.options or top[mount.path] is not mount or mount.kind in (b"devpts", b"devtmpfs", b"proc"):
            continue
        row = decider(rows, mount.path)
        if any(below(mount.path, other[0]) and other[0] == b"/" and row is other for other in rows):
            raise AssertionError(f"{user}: {mount} can be written and no row says so")
        holds(row[2] in ("rw", "private", "masked"), f"{user}: {mount} can be written: {row}")
    return rows


def compare_variables(held, user):
    rows = held.table("ListEnvironment")
    names = [name for name, _ in rows]
    equal(len(names), len(set(names)), f"{user}: {names}")
    holds(all(origin for _, origin in rows), rows)
    with open(f"/proc/{held.agent}/environ", "rb") as f:
        found = [entry.split(b"=")[0].decode() for entry in f.read().split(b"\0") if entry]
    equal(sorted(names), sorted(found), f"{user}: the table and the agent's environment")
    return dict(rows)
