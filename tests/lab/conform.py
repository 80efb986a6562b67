# SPDX-License-Identifier: MIT
"""
Conformance: a case is a function that runs a program and returns what it saw of it. It is called twice, once with
the program itself and once with the program in its jail, started the same way; what it saw must be equal.

Where the two differ on purpose, the case says so with Side.differs() and the row of DIFFERENCES that explains it;
both values are then held against what that row says.
"""

import os
import signal
import time

import machine
from case import CLAUDE, equal, test, wait_for
from machine import ALICE, ROOT
from screen import Screen
from terminal import Terminal

BOTH = (ALICE, ROOT)
STAND_IN = machine.TOOLS + "/agent-stand-in"
NOTES = "stand-in-notes"
PROMPT = "prompt> "

# name of the difference: why it is one
DIFFERENCES = {
    "undone": "private modes and terminal modes that an agent leaves behind are undone: a killed agent does not cost "
              "the person the terminal",
    "flushed": "what was typed and not read when the agent ends is dropped: late answers to the agent's questions to "
               "the terminal are not typed into the person's shell",
    "no terminal": "without a terminal among 0, 1 and 2 there is none at all: /dev/tty cannot be opened, so that a "
                   "terminal which the agent was not given stays out of the jail",
    "hang-up grace": "an agent that ignores the hang-up is killed after five seconds: no session is left without a "
                     "person",
    "lines beside a pipe": "while the agent leaves the terminal as it was, the keys are those of the program that reads its output",
    "group": "a signal that was sent to the whole job reaches the agent's own process: launch cannot see that its group "
             "was meant, and what is sent to one process must not reach others",
    "repainted": "after a stop that left the agent's modes set they are taken back and set again, and the agent is "
                 "told to paint: natively the screen stays broken",
}


class Side:
    """One of the two ways to run the program: natively, or in the jail."""

    def __init__(self, lab, user, jailed):
        self.lab = lab
        self.user = user
        self.jailed = jailed
        self.path = CLAUDE if jailed else f"{user.home}/.local/bin/claude"
        self.workspace = lab.workspace(user)
        self.open = []

    def __repr__(self):
        return f"{self.user}, {'jailed' if self.jailed else 'native'}"

    def environment(self, **more):
        first = os.path.dirname(self.path)
        return self.lab.environment(self.user, PS1=PROMPT, PATH=f"{first}:/usr/bin:/bin:/usr/sbin:/sbin", **more)

    def differs(self, name, found, native, jailed):
        """Hold found against what the difference says for this side. Return: what both sides may then report."""
        holds = name in DIFFERENCES
        equal(holds, True, f"{name} is no documented difference")
        equal(found, jailed if self.jailed else native, f"{self}: {name}")
        return f"differs: {name}"

    def clean_notes(self):
        machine.write(f"{self.workspace}/{NOTES}", "", 0o644, self.user)

    def notes(self):
        with open(f"{self.workspace}/{NOTES}", encoding="utf-8") as f:
            return f.read().splitlines()

    def wait_notes(self, count, limit=6.0):
        """Until the program has noted that many lines; it tells nobody else."""
        end = time.monotonic() + limit
        while len(self.notes()) < count:
            if time.monotonic() > end:
                raise AssertionError(f"{self}: {count} lines of notes wanted, there are {self.notes()}")
            self.lab.pause()
        return self.notes()

    def terminal(self, *arguments, command=None, **options):
        """The program on a terminal of its own, as the leader of its session's foreground group."""
        terminal = Recorded(command or [self.path, *map(str, arguments)], self.user, self.environment(),
                            self.workspace, **options)
        self.open.append(terminal)
        return terminal

    def shell(self, **options):
        """An interactive bash at its prompt, where `claude` is the program."""
        terminal = self.terminal(command=["/bin/bash", "--norc", "--noprofile", "-i"], **options)
        terminal.expect(PROMPT)
        return terminal

    def pipes(self, *arguments, data=b"", command=None, **options):
        """The program between pipes. Return: status, standard output, standard error."""
        result = self.lab.run(command or [self.path, *map(str, arguments)], self.user, data=data,
                              env=self.environment(), cwd=self.workspace, **options)
        return result.status, result.out, result.err

    def start(self, *arguments, **options):
        process = self.lab.start([self.path, *map(str, arguments)], self.user, env=self.environment(),
                                 cwd=self.workspace, **options)
        self.open.append(Started(process))
        return process

    def close(self):
        """Nothing that a case started natively writes into the notes of the next one."""
        for thing in self.open:
            thing.close()
        if not self.jailed:
            wait_for(self.nobody_runs, "what ran natively is gone")

    def nobody_runs(self):
        left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self.runs(pid)]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not left

    def runs(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)") == self.path
        except OSError:
            return False


class Started:
    def __init__(self, process):
        self.process = process

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


class Recorded(Terminal):
    """A terminal that keeps everything that was written to it."""

    def __init__(self, *arguments, **options):
        self.transcript = b""
        self.open = True
        super().__init__(*arguments, **options)
        self.flags_at_start = self.modes[:4] + [self.modes[6]]

    def read(self, limit):
        before = len(self.output)
        more = super().read(limit)
        self.transcript += self.output[before:]
        return more

    def close(self):
        if self.open:
            self.open = False
            super().close()

    def screen(self):
        """Private modes of the emulator, as the bytes so far leave them."""
        return Screen().feed(self.transcript).unnatural()

    def flags(self):
        """iflag, oflag, cflag, lflag and characters of the person's terminal."""
        modes = self.current_modes()
        return modes[:4] + [[bytes(c) if isinstance(c, bytes) else c for c in modes[6]]]

    def prompt(self, limit=10):
        return self.expect(PROMPT, limit)

    def do(self, line, limit=10):
        """A line of shell, to the next prompt. Return: everything that was written, the echo included."""
        self.type(line + "\n")
        return self.prompt(limit)

    def exit_status(self):
        """$? of the shell's last command."""
        return self.do("echo status=$?").split(b"status=")[-1].split()[0]

    def ask(self, line):
        """The output of a line of shell."""
        self.type(line + "\n")
        return self.prompt().split(b"\r\n", 1)[1].removesuffix(PROMPT.encode())

    def kill(self, number):
        os.kill(self.pid, number)

    def wait_stopped(self):
        """Until the program itself is stopped. Return: by which signal."""
        return wait_stopped(self.pid)


def wait_stopped(pid, limit=10):
    def late(_signal, _frame):
        raise AssertionError(f"it did not stop within {limit} s")

    before = signal.signal(signal.SIGALRM, late)
    left = signal.alarm(limit)
    try:
        _, status = os.waitpid(pid, os.WUNTRACED)
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.alarm(max(left - 1, 1))
    if not os.WIFSTOPPED(status):
        raise AssertionError(f"it ended with {os.waitstatus_to_exitcode(status)} instead of stopping")
    return os.WSTOPSIG(status)


def conform(users=(ALICE,), limit=60, of=(None,)):
    """
    Register a case for each of users, and for each parameter in of. The function gets a Side (and the parameter)
    and returns anything that can be compared.
    """
    def register(function):
        for parameter in of:
            for user in users:
                _register(function, user, parameter, limit)
        return function
    return register


def _register(function, user, parameter, limit):
    def run(lab):
        seen = []
        lab.remove_agent(user)
        lab.install_agent(user, source=STAND_IN)
        for jailed in (False, True):
            side = Side(lab, user, jailed)
            side.clean_notes()
            try:
                seen.append(function(side) if parameter is None else function(side, parameter))
            except AssertionError as error:
                raise AssertionError(f"{side}: {error}") from error
            finally:
                side.close()
        if seen[0] != seen[1]:
            raise AssertionError(difference(seen[0], seen[1]))

    name = function.__name__ + ("" if parameter is None else f"_{parameter}").replace(" ", "_")
    run.__name__ = name + ("" if user is ALICE else f"_as_{user}")
    run.__module__ = function.__module__
    test(limit, needs="bus")(run)


def difference(native, jailed):
    if isinstance(native, (list, tuple)) and isinstance(jailed, (list, tuple)) and len(native) == len(jailed):
        for at, (one, other) in enumerate(zip(native, jailed)):
            if one != other:
                return f"item {at}: " + difference(one, other)
    if isinstance(native, bytes) and isinstance(jailed, bytes) and len(native) + len(jailed) > 4000:
        at = next((i for i, (a, b) in enumerate(zip(native, jailed)) if a != b), min(len(native), len(jailed)))
        return (f"{len(native)} and {len(jailed)} bytes, from byte {at}: native {native[at:at + 200]!r}, "
                f"jailed {jailed[at:at + 200]!r}")
    return f"native\n  {native!r}\njailed\n  {jailed!r}"
