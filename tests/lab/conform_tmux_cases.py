# SPDX-License-Identifier: MIT
"""A real terminal emulator: tmux, with bash in it. What it shows and which of its modes are set."""

import itertools
import os
import time

from case import holds, wait_for
from conform import PROMPT, conform

MODES = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{mouse_sgr_flag} #{keypad_flag} #{wrap_flag} #{pane_current_command}"


class Tmux:
    """A server of its own with one pane; its socket is the user's, and no other's that is still ending."""

    numbers = itertools.count(1)

    def __init__(self, side, columns=80, rows=24):
        self.side = side
        self.name = f"conform-{next(Tmux.numbers)}"
        first = os.path.dirname(side.path)
        self.shell = f"PS1='{PROMPT}' PATH={first}:/usr/bin:/bin exec /bin/bash --norc --noprofile -i"
        self.run("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), self.shell)
        self.shows(PROMPT.strip())

    def run(self, *words):
        result = self.side.lab.run(["/usr/bin/tmux", "-L", self.name, *words], self.side.user,
                                   env=self.side.environment(), cwd=self.side.workspace)
        holds(result.status == 0, repr(result))
        return result.out.decode()

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def line(self, text):
        self.run("send-keys", "-l", text)
        self.keys("Enter")

    def screen(self):
        return self.run("capture-pane", "-p")

    def modes(self):
        return self.run("display-message", "-p", MODES).strip()

    def shows(self, text, limit=10):
        """Wait until text is on the screen. Return: the screen without its empty lines at the end."""
        end = time.monotonic() + limit
        while True:
            screen = self.screen()
            if text in screen:
                return screen.rstrip("\n")
            if time.monotonic() > end:
                raise AssertionError(f"{self.side}: waited for {text!r}, the screen is\n{screen}")
            self.side.lab.pause()

    def close(self):
        self.side.lab.run(["/usr/bin/tmux", "-L", self.name, "kill-server"], self.side.user)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@conform()
def the_screen_comes_and_goes(side):
    with Tmux(side) as tmux:
        tmux.line("claude")
        seen = [tmux.shows("ready 24x80."), tmux.modes()]
        tmux.keys("a")
        seen += [tmux.shows("key 61."), tmux.modes()]
        tmux.keys("C-c")
        seen += [tmux.shows("key 03."), tmux.modes()]
        tmux.keys("q")
        seen += [tmux.shows("claude\n" + PROMPT.strip()), tmux.modes()]
        tmux.line("echo status=$?; stty -a | head -3; echo e''nd")
        seen += [tmux.shows("end\n" + PROMPT.strip()), tmux.modes()]
        return seen


@conform()
def suspended_and_back(side):
    with Tmux(side) as tmux:
        tmux.line("claude")
        tmux.shows("ready 24x80.")
        tmux.keys("C-z")
        tmux.shows("Stopped")
        seen = [tmux.shows("claude\n" + PROMPT.strip()), tmux.modes()]
        tmux.line("jobs; echo b''etween")
        seen += [tmux.shows("between\n" + PROMPT.strip()), tmux.modes()]
        tmux.line("fg")
        seen += [tmux.shows("resumed 24x80."), tmux.modes()]
        tmux.keys("q")
        seen += [tmux.shows("fg\nclaude\n" + PROMPT.strip()), tmux.modes()]
        return seen


@conform()
def the_window_changes(side):
    with Tmux(side) as tmux:
        tmux.line("claude")
        seen = [tmux.shows("ready 24x80.")]
        tmux.run("resize-window", "-x", "100", "-y", "30")
        seen += [tmux.shows("size 30x100.")]
        tmux.run("resize-window", "-x", "60", "-y", "12")
        seen += [tmux.shows("size 12x60."), tmux.modes()]
        tmux.keys("q")
        seen += [tmux.shows("claude\n" + PROMPT.strip()), tmux.modes()]
        return seen


@conform()
def a_split_beside_it(side):
    """Two of them on one screen."""
    with Tmux(side) as tmux:
        tmux.line("claude")
        tmux.shows("ready 24x80.")
        tmux.run("split-window", "-h", tmux.shell)
        tmux.shows(PROMPT.strip())
        tmux.line("claude lines ''")
        tmux.shows("ready 24x39.")
        tmux.line("word")
        seen = [tmux.shows("line 5 word"), tmux.modes()]
        tmux.keys("C-d")
        tmux.shows("end 0")
        tmux.run("select-pane", "-L")
        seen += [tmux.shows("size 24x40."), tmux.modes()]
        tmux.keys("q")
        seen += [tmux.shows("claude\n" + PROMPT.strip()), tmux.modes()]
        return seen


@conform()
def an_agent_that_dies_on_it(side):
    with Tmux(side) as tmux:
        tmux.line("claude")
        tmux.shows("ready 24x80.")
        during = tmux.modes()
        tmux.keys("k")
        tmux.shows("Killed")
        natural = "0 1 0 0 0 1 bash"
        left = during.replace(" claude", " bash")
        return during, side.differs("undone", tmux.modes(), left, natural)


@conform()
def the_pane_is_closed(side):
    with Tmux(side) as tmux:
        tmux.line("claude hear obey")
        tmux.shows("ready")
        tmux.run("split-window", tmux.shell)
        tmux.run("kill-pane", "-t", "0.0")
        wait_for(lambda: "signal 1" in side.notes(), "the agent hears it")
        return side.notes().count("signal 1")
