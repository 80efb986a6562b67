# SPDX-License-Identifier: MIT
"""Tests: functions with a deadline, and what they ask of the machine."""

import json
import os
import shutil
import signal
import subprocess
import time
import traceback

import bus
import machine
import system
from claims import Skip, equal, has, holds, short_name as name_of    # noqa: F401, pylint: disable=unused-import
from machine import ALICE, ROOT
from terminal import Terminal

SANDBOX = "/usr/local/bin/claude-sandbox"
CLAUDE = "/usr/local/bin/claude"
CONFIG = "/etc/claude-sandbox.conf"
SESSIONS = "/run/claude-sandbox/sessions"
# What a session consists of, by the programs that run in it
PARTS = ("/usr/libexec/claude-sandbox/launch", "/usr/libexec/claude-sandbox/session", "/usr/libexec/claude-sandbox/init",
         "/usr/libexec/claude-sandbox/verify", "/usr/bin/bwrap", "/usr/bin/pasta")

_tests = []


class Late(Exception):
    """The test's deadline passed."""


def test(deadline=30, needs=""):
    """Register a test. needs: "bus" starts the system bus first; "" for tests of the lab itself."""
    def register(function):
        function.deadline = deadline
        function.needs = needs
        _tests.append(function)
        return function
    return register


def tests():
    return list(_tests)


def wait_for(condition, what, limit=6.0):
    """
    Ask until condition() is true; for states that the kernel announces to nobody (processes, mounts and files of
    others). The pause only bounds the load.
    """
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit} s: {what}")
        bus.select_nothing(0.01)


CYCLES = int(os.environ.get("CHECK_CYCLES") or "24")
SEED = int(os.environ.get("CHECK_SEED") or "1")
LONG = os.environ.get("CHECK_LONG") == "1"               # tests that would take too long every time
SHOW = bool(os.environ.get("LAB_SHOW_REFUSALS"))       # read before the environment is cleared


def in_the_table(sentence):
    """Has docs/messages.md a row for what was said?"""
    if not _table and os.path.isdir(machine.SOURCE):
        import importlib.util
        spec = importlib.util.spec_from_file_location("messages", f"{machine.SOURCE}/docs/messages.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with open(f"{machine.SOURCE}/docs/messages.md", encoding="utf-8") as f:
            _table.extend(module.templates(f.read()))
    return not _table or any(pattern.fullmatch(sentence) for pattern in _table)


_table = []


class Result:
    def __init__(self, status, out, err, seconds):
        self.status = status
        self.out = out
        self.err = err
        self.seconds = seconds

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.2f} s\nstdout: {self.out!r}\nstderr: {self.err!r}"

    def ok(self):
        if self.status != 0 or self.err:
            raise AssertionError(f"wanted success without a word on stderr: {self!r}")
        return self

    def warned(self, *words):
        """Success, and one line of ours with these words on standard error."""
        lines = self.err.decode(errors="replace").splitlines()
        if self.status != 0 or len(lines) != 1 or not all(word in lines[0] for word in ("claude-sandbox: ", *words)):
            raise AssertionError(f"wanted success and a warning with {words}: {self!r}")
        return self

    def refused(self, status, *words, program="claude-sandbox"):
        """Our own refusal: its status, one line of ours, each word in it."""
        lines = self.err.decode(errors="replace").splitlines()
        ours = [line for line in lines if line.startswith(f"{program}:")]
        if self.status != status or len(ours) != 1 or len(lines) != 1 or self.out:
            raise AssertionError(f"wanted a refusal with status {status} in one line: {self!r}")
        holds(in_the_table(ours[0].removeprefix(f"{program}: ")), f"docs/messages.md has no row for {ours[0]!r}")
        if SHOW:
            print("     " + ours[0], flush=True)
        for word in words:
            if word not in ours[0]:
                raise AssertionError(f"the refusal does not say {word!r}: {ours[0]!r}")
        return self


class Lab:
    """What tests use: users, the network, the bus, and the product's programs."""

    def __init__(self, network):
        self.network = network
        self.ground = machine.Ground()
        self.bus = bus.Bus()
        self.undo = []

    def environment(self, user, **more):
        values = {
            "HOME": user.home, "USER": user.name, "LOGNAME": user.name, "SHELL": "/bin/bash", "TERM": "xterm-256color",
            "LANG": "C.UTF-8", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        }
        values.update(more)
        return {name: value for name, value in values.items() if value is not None}

    def workspace(self, user, name="project"):
        path = f"{user.home}/{name}"
        if not os.path.isdir(path):
            os.mkdir(path, 0o755)
            os.chown(path, user.uid, user.gid)
        return path

    def start(self, command, user=ALICE, cwd=None, env=None, before=None, **options):
        """A process of that user. before: called in the child, still as root."""
        def prepare():
            system.reset_signals()
            if before:
                before()
            os.initgroups(user.name, user.gid)
            os.setgid(user.gid)
            os.setuid(user.uid)

        return subprocess.Popen(command, cwd=cwd or self.workspace(user), env=env or self.environment(user),
                                preexec_fn=prepare, start_new_session=True, **options)

    def run(self, command, user=ALICE, data=b"", limit=20, **options):
        begin = time.monotonic()
        process = self.start(command, user, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             **options)
        try:
            out, err = process.communicate(data, timeout=limit)
        except subprocess.TimeoutExpired as late:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"{command} did not end within {limit} s\nstdout: {out!r}\nstderr: {err!r}") from late
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        return Result(process.returncode, out, err, time.monotonic() - begin)

    def shell(self, script, user=ALICE, arguments=(), **options):
        """`claude-sandbox shell -c SCRIPT`"""
        return self.run([SANDBOX, "shell", "-c", script, *arguments], user, **options)

    def terminal(self, command, user=ALICE, env=None, cwd=None, **options):
        return Terminal(command, user, env or self.environment(user), cwd or self.workspace(user), **options)

    def call(self, member, signature="", *arguments, user=ROOT, interface=bus.MANAGER, path=bus.PATH, limit=20):
        """One method call by busctl. Return: Result."""
        command = ["/usr/bin/busctl", "--system", "--json=short", "call", bus.NAME, path, interface, member]
        if signature:
            command += [signature, *[str(argument) for argument in arguments]]
        return self.run(command, user, cwd="/", limit=limit)

    def install_agent(self, user, name="claude", source=machine.PROBE):
        """The user's own install of an agent: the probe in its place."""
        path = f"{user.home}/.local/bin/{name}"
        with open(source, "rb") as f:
            machine.write(path, f.read(), 0o755, user)
        return path

    def remove_agent(self, user, name="claude"):
        try:
            os.unlink(f"{user.home}/.local/bin/{name}")
        except FileNotFoundError:
            pass

    def configure(self, text, mode=0o644):
        """The configuration for this test only."""
        self.replace(CONFIG, text.encode() if isinstance(text, str) else text, mode)

    def hide(self, path):
        """Nothing at path until the test ends."""
        aside = path + ".hidden-by-a-test"
        os.rename(path, aside)
        self.undo.append(lambda: os.rename(aside, path))

    def replace(self, path, data, mode=0o644):
        """Other content at path until the test ends."""
        if os.path.lexists(path):
            self.hide(path)
        self.undo.append(lambda: machine.remove(path))
        machine.write(path, data, mode)

    def mode(self, path, mode):
        """Another mode of path until the test ends."""
        before = os.stat(path).st_mode & 0o7777
        self.undo.append(lambda: os.chmod(path, before))
        os.chmod(path, mode)

    def wrap(self, path, what):
        """wrapper.c in the place of the program at path until the test ends. what: one line or more."""
        self.hide(path)
        self.undo.append(lambda: machine.remove(path))
        shutil.copy2(machine.TOOLS + "/wrapper", path)
        machine.write("/run/lab-wrap", f"{path}.hidden-by-a-test\n{what}\n")

    @staticmethod
    def pause():
        """Between two looks at what the kernel announces to nobody."""
        bus.select_nothing(0.01)

    def restore(self):
        while self.undo:
            self.undo.pop()()

    def service_pid(self):
        return self.bus.owner_pid()

    def stop_service(self, number=signal.SIGTERM):
        """End the service, if it runs; the next call activates a new one."""
        pid = self.service_pid()
        if pid:
            os.kill(pid, number)
            holds(bus.wait_pid_gone(pid, 10), "the service did not end within 10 s of SIGTERM")
            # whoever follows it has perhaps started the next one
            wait_for(lambda: self.service_pid() != pid, "the bus forgets the service")

    def states(self):
        """What the service says of every session."""
        return [row[7] for row in json.loads(self.call("ListSessions", user=ROOT).ok().out)["data"][0]]

    def sessions(self):
        """Ids of the run directories that exist."""
        try:
            return sorted(os.listdir(SESSIONS))
        except FileNotFoundError:
            return []

    def is_gone(self, session):
        """Its run directory goes last of all, by the service."""
        return session not in self.sessions() or self.service_pid() is None

    def wait_gone(self, session, limit=6):
        """Return: False when it is there all the same."""
        end = time.monotonic() + limit
        while not self.is_gone(session):
            if time.monotonic() > end:
                return False
            self.pause()
        return True

    def settle(self, limit=10):
        """
        Until what a test has ended has come to its end: a caller has its status before its session has put everything
        away, and what a killed session leaves ends by itself. Return: what is there all the same.
        """
        end = time.monotonic() + limit
        while True:
            left = of_sessions() or [session for session in self.sessions() if not self.is_gone(session)]
            if not left or time.monotonic() > end:
                return left
            self.pause()


def processes():
    """{pid: command line or name} of everything in this machine."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as f:
                    text = f.read().replace(b"\0", b" ").strip().decode(errors="replace")
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                    stat = f.read()
                name = stat[stat.index("(") + 1:stat.rindex(")")]
                if stat[stat.rindex(")") + 2] != "Z":
                    found[int(entry)] = text or f"[{name}]"
            except (FileNotFoundError, ProcessLookupError):
                pass
    return found


def of_sessions():
    """The processes of sessions, of whatever users."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.readlink(f"/proc/{entry}/exe").startswith(PARTS):
                    found.append(int(entry))
            except OSError:                            # it has ended, or is of the kernel
                pass
    return found


def namespaces():
    """{identity: a process} of the network, user, mount and pid namespaces that some process is in."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            for kind in ("net", "user", "mnt", "pid"):
                try:
                    found.setdefault(os.readlink(f"/proc/{entry}/ns/{kind}"), int(entry))
                except OSError:
                    pass
    return found


def cgroups():
    """Directories of the lab's own cgroup tree."""
    return {directory for directory, _, _ in os.walk("/sys/fs/cgroup")} if os.path.isfile(
        "/sys/fs/cgroup/cgroup.procs") else set()


def run_one(function, lab, must_run):
    """Return: "pass", "fail" or "skip", and seconds; prints what a reader needs."""
    def late(_signal, _frame):
        raise Late(f"not finished after {function.deadline} s")

    begin = time.monotonic()
    log_start = len(bus.Bus.log())
    outcome, words = "pass", ""
    previous = signal.signal(signal.SIGALRM, late)
    signal.alarm(function.deadline)
    try:
        if function.needs == "bus":
            lab.bus.polkit_is_there()
        function(lab)
    except Skip as skip:
        outcome, words = ("fail" if must_run else "skip"), f"cannot run here: {skip}"
    except (Exception, Late):
        outcome, words = "fail", traceback.format_exc()
    finally:
        signal.alarm(20)
        try:
            lab.restore()
            signal.alarm(20)
            left = lab.settle()
            if left:
                print(f"     still there: {left} of {processes()}", flush=True)
            lab.ground.restore()
        except (Exception, Late):
            outcome, words = "fail", words + traceback.format_exc()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    seconds = time.monotonic() - begin
    print(f"{outcome:4} {name_of(function)} ({seconds:.1f} s)", flush=True)
    if words:
        print("     " + words.rstrip().replace("\n", "\n     "))
    if outcome == "fail":
        log = bus.Bus.log()[log_start:]
        if log:
            print("     the bus and the service wrote:\n       | " + log.rstrip()[-6000:].replace("\n", "\n       | "))
    return outcome, seconds
