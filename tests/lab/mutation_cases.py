# SPDX-License-Identifier: MIT
"""
The mutation test. Everything that denies is left out, and then weakened, one at a time, in a session that still tells
Verify what its plan says: a row has to fail. What there is to change is enumerated by the session itself
(session-mutant.c, init-mutant.c), so that an entry, variable, flag, route or rule that no row notices fails here the
day it comes. What was found is docs/mutation.md: this test holds it against what it finds, and writes it anew to the
file that the variable MUTATION_TABLE names.
"""

import contextlib
import difflib
import os
import re
import select
import subprocess
import tempfile
import time

import machine
import mutation_table
import network
from case import CONFIG, SESSIONS, equal, holds, test
from device_cases import stand_in
from exposure_cases import furnish, worktree
from hostile_cases import own
from kinds import clear, rows
from kinds_cases import fill
from listener_cases import Listener
from machine import ALICE, ROOT, SOURCE, TOOLS

SESSION = "/usr/libexec/claude-sandbox/session"
INIT = "/usr/libexec/claude-sandbox/init"
DRIVER = f"{TOOLS}/session-driver"
AT_ONCE = 3
DEADLINE = 60
CHECKS = [f"{number:02}" for number in range(1, 23)]
SHARED = "/srv/shared"

_wanted = os.environ.get("MUTATION_TABLE")
# opened before the checkout is hidden
_table_fd = os.open(_wanted, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644) if _wanted else None


class Scene:
    """One kind of session: who, which agent, and what it asks for."""

    def __init__(self, user, agent, configuration=(), cwd=None, joined=False, **environment):
        self.user = user
        self.agent = agent
        self.name = f"{agent}, {user}{', joined' if joined else ''}"
        self.words = ["stubborn"] if joined else []
        self.cwd = cwd or f"{user.home}/project"
        self.command = [DRIVER, "-j" if joined else "-v", "-u", user.name, "-d", self.cwd]
        for line in configuration:
            self.command += ["-c", line]
        variables = {"HOME": user.home, "USER": user.name, "TERM": "xterm-256color", "LANG": "C.UTF-8",
                     "PATH": "/usr/local/bin:/usr/bin:/bin"}
        for name, value in {**variables, **environment}.items():
            self.command += ["-E", f"{name}={value}"]

    def run(self, mutation):
        """Start it. Return: Run."""
        return Run([*self.command, "-E", f"LAB_MUTATION={mutation}", self.agent, *self.words])


class Run:
    """One session with Verify in the agent's place, or beside it."""

    def __init__(self, command):
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()     # pylint: disable=consider-using-with
        self.process = subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)
        self.fd = os.pidfd_open(self.process.pid)

    def end(self):
        self.process.wait()
        os.close(self.fd)
        texts = []
        for file in (self.out, self.err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        self.rows = [line.split("\t") for line in texts[0].splitlines() if line.count("\t") == 3]
        self.words = texts[1]

    def failed(self):
        """Numbers of the rows that failed, in their order."""
        return sorted(row[0] for row in self.rows if row[1] == "fail")

    def outcome(self):
        """The first row that failed; "refused": it did not start; "broken off": Verify did not come to its end; ""."""
        if "link: failed" in self.words:
            return "refused"
        failed = self.failed()
        if failed:
            return failed[0]
        return "" if [row[0] for row in self.rows] == CHECKS else "broken off"

    def __str__(self):
        rows = "\n".join("  " + " | ".join(row) for row in self.rows if row[1] != "pass")
        return f"{self.process.args[-1]}, {self.process.args[-2]}:\n{rows}\n{self.words}"


def run_all(jobs, take, at_once):
    """jobs: [(key, scene, mutation)]. take(key, run) for each when it has ended; so many run at a time."""
    waiting, running = list(reversed(jobs)), {}
    while waiting or running:
        while waiting and len(running) < at_once:
            key, scene, mutation = waiting.pop()
            run = scene.run(mutation)
            running[run.fd] = (key, run, time.monotonic() + DEADLINE)
        ready, _, _ = select.select(list(running), [], [], 1)
        for fd in ready:
            key, run, _ = running.pop(fd)
            run.end()
            take(key, run)
        for key, run, end in running.values():
            if time.monotonic() > end:
                run.process.kill()


def offers(scene, user):
    """Every change that can be made in that scene: [(group, index, how, what)]."""
    # where the holder can still write when it makes the jail: what agents write, and nothing else
    path = f"{scene.cwd}/.mutations"
    if os.path.exists(path):
        os.unlink(path)
    run = scene.run(f"list:{path}")
    run.end()
    holds(not run.failed() and [row[0] for row in run.rows] == CHECKS, f"nothing is changed, and not all is well: {run}")
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip("\n").split("\t", 3) for line in f]
    os.unlink(path)
    listed = subprocess.run([f"{TOOLS}/init-mutant", "--list", *(["root"] if user is ROOT else [])], check=True,
                            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout.decode()
    return lines + [line.split("\t", 3) for line in listed.splitlines()]


def plain(what, user):
    """The same for every user, run and machine."""
    what = re.sub(rf"{re.escape(user.home)}(?=/|\t|$)", "~", what)
    what = re.sub(r"/ssh_host_\w+_key", "/ssh_host_KIND_key", what)
    what = re.sub(r"^/dev/(hwrng|kvm|cpu_dma_latency|rtc0)\b", "/dev/NODE", what)
    what = re.sub(r"(/var/tmp/claude-agent/)\d+/[a-z2-7]+", r"\1UID/WORKSPACE", what)
    return re.sub(r"driver:\d+", "configuration", what)


def system_secrets(lab):
    """Every secret of the system that the plan knows, whoever may read it."""
    for path in ("/etc/wireguard/wg0.conf", "/etc/NetworkManager/system-connections/home", "/etc/letsencrypt/key",
                 "/etc/ssl/private/key", "/etc/sudoers", "/etc/sudoers.d/one", "/etc/krb5.keytab", "/etc/ssh/ssh_host_rsa_key",
                 "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/var/mail/someone", "/var/crash/report",
                 "/var/lib/systemd/coredump/core.program"):
        if not os.path.exists(path):
            lab.undo.append(lambda path=path: os.unlink(path))
            machine.write(path, "secret\n", 0o644)


def places(lab, user):
    """A home, a workspace and a machine in which every rule has something to do. Return: the workspace."""
    furnish(user)
    cwd = worktree(lab, user)
    own(user, f"/srv/another-{user.uid}", f"{cwd}/tools", f"{cwd}/tools/bin", f"{user.home}/project", f"/var/tmp/claude-agent/{user.uid}")
    os.chmod("/var/tmp/claude-agent", 0o711)
    os.chmod(f"/var/tmp/claude-agent/{user.uid}", 0o700)
    for agent in ("claude", "codex", "pi"):
        lab.install_agent(user, agent)
        lab.undo.append(lambda agent=agent: lab.remove_agent(user, agent))
    for name in ("uv", "uvx"):
        machine.write(f"{user.home}/.local/bin/{name}", "#!/bin/sh\n", 0o755, user)
    return cwd


def scenes(lab, stack, user, joined=False):
    os.makedirs(SHARED, exist_ok=True)
    os.chmod(SHARED, 0o1777)
    machine.write("/srv/a-file", "x\n", 0o666)
    cwd = places(lab, user)
    for path in (f"{cwd}/run/dev.sock", f"{user.home}/.cache/tool/s", "/srv/listening/s"):
        stack.enter_context(Listener(path, user))
    return [
        Scene(user, "claude", (f"allow-ip = {network.DEVICE}", f"allow-write = {SHARED}", "allow-write = /srv/a-file",
                               "pass-env = SECRET_TOKEN", f"allow-device = {stand_in(lab, 1, 5)}"), cwd, joined,
              PATH=f"{cwd}/tools/bin:/usr/local/bin:/usr/bin:/bin", SECRET_TOKEN="x", EDITOR="vi", VIRTUAL_ENV="/opt/venv",
              TZ="UTC"),
        Scene(user, "codex", ("procfs = outer", "no-forge")),
        Scene(user, "pi"),
        Scene(user, "shell", ("egress-jail = 0",)),
    ]


def explore(lab, user, found, unnoticed):
    with contextlib.ExitStack() as stack:
        done = set()
        for scene in scenes(lab, stack, user):
            jobs = []
            for group, index, how, what in offers(scene, user):
                key = (group, plain(what, user), how)
                if key not in done:
                    done.add(key)
                    found[key, user is ROOT] = None
                    jobs.append((key, scene, f"{group}:{index}:{how}"))

            def take(key, run, user=user):
                wanted = mutation_table.committed(key, user is ROOT)
                if run.outcome() == "" or (wanted is not None and wanted != run.outcome()):
                    again.append((key, run))
                found[key, user is ROOT] = run.outcome()

            again = []
            # without an anchor Verify moves what the others have too
            run_all([job for job in jobs if job[0][0] != "anchor"], take, AT_ONCE)
            run_all([job for job in jobs if job[0][0] == "anchor"], take, 1)
            # once more, alone: a machine that is busy may be late
            by_key = {key: (scene, mutation) for key, scene, mutation in jobs}
            for key, _ in again:
                scene_again, mutation = by_key[key]
                run = scene_again.run(mutation)
                run.end()
                found[key, user is ROOT] = run.outcome()
                if run.outcome() == "" and mutation_table.reason(key, user is ROOT) is None:
                    unnoticed.append(f"{scene.name}: {' · '.join(key)}")


def is_seen_beside(group, what, how):
    """By Verify beside an agent, which may have changed what is its own, and whose list of name servers follows the
    machine's."""
    kind, origin = what.split("\t")[1:3] if group == "entry" else ("", "")
    own_by_now = kind.startswith(("link", "directory")) or (kind.startswith("tmpfs") and how == "looser mode")
    return group in ("entry", "flag", "filter load") and not own_by_now and not (origin == "network" and how == "other bytes")


def explore_joined(lab, user, unnoticed):
    """The first scene, with Verify beside its agent: what is mounted and what bwrap is told, as far as an agent cannot
    have done the same since. Return: how many."""
    with contextlib.ExitStack() as stack:
        scene = scenes(lab, stack, user, joined=True)[0]
        jobs = [((group, plain(what, user), how), scene, f"{group}:{index}:{how}") for group, index, how, what in offers(scene, user)
                if is_seen_beside(group, what, how) and mutation_table.reason((group, what, how), False) is None]

        def take(key, run):
            if run.outcome() == "":
                again.append(key)

        again = []
        run_all(jobs, take, AT_ONCE)
        for key, _, mutation in [job for job in jobs if job[0] in again]:
            run = scene.run(mutation)
            run.end()
            if run.outcome() == "":
                unnoticed.append(f"{scene.name}: {' · '.join(key)}")
        return len(jobs)


def install_mutants(lab):
    for path, name in ((SESSION, "session-mutant"), (INIT, "init-mutant")):
        with open(f"{TOOLS}/{name}", "rb") as f:
            lab.replace(path, f.read(), 0o755)
    own(ROOT, os.path.dirname(CONFIG), os.path.dirname(SESSIONS))
    mutation_table.read(f"{SOURCE}/docs/mutation.md")
    system_secrets(lab)


@test(1200, needs="bus")
def every_change_is_noticed(lab):
    install_mutants(lab)
    found, unnoticed = {}, []
    for user in (ALICE, ROOT):
        explore(lab, user, found, unnoticed)
    text = mutation_table.text(found)
    if _table_fd is not None:
        os.ftruncate(_table_fd, 0)
        os.pwrite(_table_fd, text.encode(), 0)
    print(f"     {len(found)} changes", flush=True)
    holds(not unnoticed, "no row notices\n" + "\n".join(unnoticed))
    if os.uname().machine == "x86_64":
        with open(f"{SOURCE}/docs/mutation.md", encoding="utf-8") as f:
            difference = list(difflib.unified_diff(f.read().splitlines(), text.splitlines(), "docs/mutation.md", "found",
                                                   lineterm="", n=0))
        holds(not difference, "the table is another:\n" + "\n".join(difference[:60]))
    equal(mutation_table.without_use(found), [], "a row notices what is said to be beyond them")


@test(120, needs="bus")
def probes_notice_state_of_outside(lab):
    """An agent's state is the machine's, and what is of a session is the workspace's: probes get out."""
    install_mutants(lab)
    for row in rows():
        clear(ALICE, row)
        fill(ALICE, row)
        own(ALICE, f"{ALICE.home}/project")
        scene = Scene(ALICE, row.name)
        wanted = {(f"~/{row.state}", "the machine's"): {"p111", "p112"} | ({"p109"} if row.orders else set())
                  | ({"p110"} if row.session else set())}
        for name in row.session:
            if name.endswith("/"):
                wanted[f"~/{row.state}/{name.rstrip('/')}", "dropped"] = {"p110"}
        changes = [(group, index, how, plain(what, ALICE).split("\t")[0]) for group, index, how, what in offers(scene, ALICE)]
        scene.command[scene.command.index("-v")] = "-P"
        run = scene.run("list:/dev/null")
        run.end()
        holds(len(run.rows) > 120 and not run.failed(), f"nothing is changed: {run}")
        tried = set()
        for group, index, how, path in changes:
            if group == "entry" and (path, how) in wanted:
                run = scene.run(f"{group}:{index}:{how}")
                run.end()
                found = {number for number in run.failed() if number[0] == "p"}
                holds(wanted[path, how] <= found, f"{row.name}, {path}, {how}: {found}: {run}")
                tried.add((path, how))
        equal(tried, set(wanted), row.name)


@test(200, needs="bus")
def beside_an_agent_too(lab):
    install_mutants(lab)
    unnoticed = []
    n = explore_joined(lab, ALICE, unnoticed)
    print(f"     {n} changes", flush=True)
    holds(n > 100, n)
    holds(not unnoticed, "no row notices\n" + "\n".join(unnoticed))
