# SPDX-License-Identifier: MIT
"""What a person sees: the program in tmux, in a window of a given size, and what stands on its screen."""

import itertools
import os
import re
import subprocess
import termios
import time

import bus
import machine
from case import holds, wait_for
from machine import ALICE

TUI = "/usr/local/bin/claude-sandbox-tui"
STAND_IN = machine.TOOLS + "/service-stand-in"
SHELL = ("/usr/local/bin/claude-sandbox", "shell", "-c")
DEADLINE = 15


class Window:
    """A server of tmux's own with one window; every test has another."""

    numbers = itertools.count(1)

    def __init__(self, lab, arguments=(), user=ALICE, columns=100, rows=30, shell=False, env=None, path=TUI):
        self.lab = lab
        self.user = user
        self.name = f"tui-{os.getpid()}-{next(Window.numbers)}"
        self.environment = lab.environment(user, LC_ALL="C.UTF-8")
        # what the program gets; tmux itself is an emulator that knows everything
        inside = " ".join(f"{name}={value}" for name, value in {"TERM": "tmux-256color", **(env or {})}.items())
        words = "PS1='$ ' /bin/bash --norc --noprofile -i" if shell else " ".join([path, *arguments])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), f"exec env {inside} {words}")
        self.tmux("set-option", "-g", "escape-time", "0")
        self.tmux("set-option", "-g", "remain-on-exit", "on")

    def tmux(self, *words):
        result = self.lab.run(["/usr/bin/tmux", "-u", "-L", self.name, *words], self.user, env=self.environment,
                              cwd=self.lab.workspace(self.user))
        holds(result.status == 0, repr(result))
        return result.out.decode(errors="backslashreplace")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)
        return self

    def type(self, text):
        self.tmux("send-keys", "-l", "--", text)
        return self

    def line(self, text):
        self.type(text)
        return self.keys("Enter")

    def screen(self, styles=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if styles else []))

    def lines(self):
        return [line.rstrip() for line in self.screen().rstrip("\n").split("\n")]

    def wait(self, condition, what, limit=DEADLINE):
        """Until condition(screen) holds. Return: that screen."""
        end = time.monotonic() + limit
        while True:
            screen = self.screen()
            if condition(screen):
                return screen
            if time.monotonic() > end:
                raise AssertionError(f"not within {limit} s: {what}; the screen is\n{screen}")
            self.lab.pause()

    def shows(self, *texts, limit=DEADLINE):
        return self.wait(lambda screen: all(text in screen for text in texts), f"it shows {texts!r}", limit)

    def says(self, *sentences, limit=DEADLINE):
        """As shows(), of text that was wrapped in a dialog."""
        def joined(screen):
            return " ".join(re.sub("[\u2500-\u257f|+]", " ", screen).split())
        return self.wait(lambda screen: all(text in joined(screen) for text in sentences), f"it says {sentences!r}", limit)

    def lacks(self, *texts, limit=DEADLINE):
        return self.wait(lambda screen: not any(text in screen for text in texts), f"it does not show {texts!r}", limit)

    def selected(self):
        """The line that stands out: the row that is selected."""
        return [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in self.screen(styles=True).split("\n")
                if re.search(r"\x1b\[[0-9;]*\b7(;[0-9;]*)?m", line)]

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        return self

    def format(self, text):
        return self.tmux("display-message", "-p", text).strip()

    def is_asked(self, *texts):
        """Wait for the question for a password, and until it is listened to: what is typed before goes nowhere."""
        screen = self.shows("Password:", *texts)
        wait_for(lambda: not echoes(self.format("#{pane_tty}")), "the echo is off while a password is typed", DEADLINE)
        return screen

    def pid(self):
        """The program's."""
        pid = int(self.format("#{pane_pid}"))
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            if f.read().startswith("claude-sandbox"):
                return pid
        return children_of(pid)[0]

    def dead(self, limit=DEADLINE):
        """Wait for its end. Return: its status, or -N for signal N."""
        return os.waitstatus_to_exitcode(wait_for(self._end, f"the program ends; the screen was\n{self.screen()}", limit)[0])

    def _end(self):
        """Its wait status in a tuple, or None. tmux may miss a child's end: then the kernel still has it."""
        dead, status, number, pid = self.format(
            "#{pane_dead},#{pane_dead_status},#{pane_dead_signal},#{pane_pid}").split(",")
        if dead != "1":
            return None
        if status or number:
            return (int(number) if number else int(status) << 8,)
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except FileNotFoundError:
            return None
        return (int(fields[-1]),) if fields[0] == "Z" else None

    def close(self):
        self.lab.run(["/usr/bin/tmux", "-L", self.name, "kill-server"], self.user)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def echoes(path):
    """Does that terminal show what is typed?"""
    fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        return bool(termios.tcgetattr(fd)[3] & termios.ECHO)
    finally:
        os.close(fd)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return [int(word) for word in f.read().split()]


class Session:
    """An agent that waits in its jail until it is let go, after a script of its own."""

    def __init__(self, lab, script="", user=ALICE, workspace=None, settings=None, command=SHELL):
        self.lab = lab
        self.process = lab.start([*command, f"{script}\necho up; read -r line"], user,
                                 cwd=workspace or lab.workspace(user), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, env=lab.environment(user, **(settings or {})))
        seen = b""
        while not seen.endswith(b"up\n"):
            line = self.process.stdout.readline()
            holds(line, f"the session ended: {seen!r}")
            seen += line
        known = set(Session.known(lab))
        self.id = (known - Session.ids).pop()
        Session.ids |= known

    ids = set()

    @staticmethod
    def known(lab):
        return lab.sessions()

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait(20)
        wait_for(lambda: self.id not in self.lab.sessions(), "the session has gone")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class StandIn:
    """service-stand-in in the service's place."""

    def __init__(self, lab, sessions, denied):
        # somebody who is just leaving may have it started once more
        for attempt in range(3):
            try:
                lab.stop_service()
                self.process = subprocess.Popen([STAND_IN, str(sessions), str(denied)], stdin=subprocess.PIPE,
                                                stdout=subprocess.PIPE, text=True, bufsize=1)
                lab.undo.append(self.end)
                holds(self.process.stdout.readline() == "ready\n", "the stand-in has the name")
                break
            except AssertionError:
                if attempt == 2:
                    raise

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def heard(self):
        """The next thing that it was asked to change."""
        return self.process.stdout.readline().strip()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
            self.process.stdin.close()
            self.process.stdout.close()


def switches(pid):
    """How often a process has run: its context switches."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)


def wait_at_rest(pid, limit=DEADLINE):
    """Until a process has not run for so long that nothing which it has asked others for is still to come."""
    def rests():
        before = switches(pid)
        pass_time(1.5)
        return switches(pid) == before
    wait_for(rests, "nothing is left to do", limit)


def pass_time(seconds):
    """Time in which nothing is to happen: what is looked for is its absence."""
    bus.select_nothing(seconds)
