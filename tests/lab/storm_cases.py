# SPDX-License-Identifier: MIT
"""Storms: stops, continuations and sizes by the hundred, while output flows."""

import json
import os
import random
import re
import signal
import time

from case import equal, holds, test, wait_for
from conform import ALICE, PROMPT, ROOT, Side, STAND_IN
from conform_jobs_cases import agent_of, is_gone

BOTH = (ALICE, ROOT)
CYCLES = 100
LINE = b"%08d the quick brown fox jumps over the lazy dog, and then it does it again\r\n"


def jailed(lab, user):
    lab.remove_agent(user)
    lab.install_agent(user, source=STAND_IN)
    side = Side(lab, user, True)
    side.clean_notes()
    return side


def running(lab):
    return [row[7] for row in json.loads(lab.call("ListSessions", user=ROOT).ok().out)["data"][0]] == ["running"]


@test(120, needs="bus")
def stops_lose_no_byte(lab):
    """Ctrl-Z and fg, again and again, in the middle of output. The terminal is told to drop nothing (noflsh)."""
    with jailed(lab, ALICE).shell() as shell:
        shell.do("stty noflsh")
        start = len(shell.transcript)
        shell.type("claude flood 100000000\n")
        for _ in range(CYCLES):
            shell.expect("does it again\r\n")
            shell.type(b"\x1a")
            shell.prompt()
            shell.type("fg\n")
        shell.expect("does it again\r\n")
        shell.type(b"\x03")
        shell.prompt()
        # what the keys and the shell write in between
        text = re.sub(rb"\x1b\[\?2004[hl]\r?|\^[ZC]", b"", shell.transcript[start:])
        name = rb"claude flood 100000000\r\n"
        stops = rb"\r\n\[1\]\+  Stopped +" + name + PROMPT.encode() + rb"fg\r\n" + name
        text, count = re.subn(stops, b"", text)
        equal(count, CYCLES, "stops")
        text = text.split(b"\r\n", 1)[1].removesuffix(PROMPT.encode()).rstrip()
        wanted = b"".join(LINE % n for n in range(text.count(b"\n") + 1))[:len(text)]
        if text != wanted:
            at = next(i for i, (a, b) in enumerate(zip(text, wanted)) if a != b)
            raise AssertionError(f"byte {at} of {len(text)}: {text[at - 100:at + 300]!r}")


@test(60, needs="bus")
def sizes_by_the_hundred(lab):
    """The last one is the one that counts."""
    for user in BOTH:
        terminal = jailed(lab, user).terminal()
        with terminal:
            terminal.expect("ready 24x80.")
            for n in range(300):
                terminal.resize(10 + n % 40, 40 + n % 100)
                terminal.read(0)
            terminal.resize(33, 101)
            terminal.expect("size 33x101.")
            terminal.type("q")
            equal(terminal.wait(), 0)


@test(120, needs="bus")
def signals_by_the_hundred(lab):
    """Every order of stops and continuations; afterwards the agent is there and answers."""
    for seed in range(4):
        chance = random.Random(seed)
        with jailed(lab, ALICE).shell() as shell:
            shell.type("claude lines ''\n")
            shell.expect("ready 24x80.\r\n")
            job = agent_of(None, shell)
            for _ in range(CYCLES):
                os.kill(job, chance.choice((signal.SIGTSTP, signal.SIGCONT, signal.SIGSTOP, signal.SIGWINCH, signal.SIGTTIN,
                                            signal.SIGCONT)))
                shell.read(chance.choice((0, 0, 0.002, 0.02)))
            os.kill(job, signal.SIGCONT)
            # whatever state it is in, and a late stop may change that: as a person does it
            for keys, done in (("word\n", lambda: b"line 5 word" in shell.transcript[-2000:]), (b"\x15\x04", lambda: is_gone(job))):
                end = time.monotonic() + 20
                while not done():
                    holds(time.monotonic() < end, f"seed {seed}: no answer to {keys!r}: {shell.transcript[-600:]!r}")
                    shell.type("fg\n" if os.tcgetpgrp(shell.master) == shell.pid else keys)
                    shell.read(0.2)


@test(60, needs="bus")
def killed_while_it_is_stopped(lab):
    """kill -9 of what the shell knows as the job: the agent behind it goes too, and the terminal is the shell's."""
    for user in BOTH:
        with jailed(lab, user).shell() as shell:
            shell.type("claude\n")
            shell.expect("ready 24x80.")
            shell.type(b"\x1a")
            shell.prompt()
            os.kill(agent_of(None, shell), signal.SIGKILL)
            wait_for(lambda: not lab.sessions(), "the session is gone", 6)
            holds(b"usable\r\n" in shell.do("echo usa''ble"), "the shell has its terminal")
            equal({mode for mode in shell.screen() if mode != "2004"}, set(), "modes that are left")


@test(120, needs="bus")
def interrupts_at_the_moment_of_fg(lab):
    """Ctrl-C while the job is being continued, sooner or later: it ends, always."""
    chance = random.Random(1)
    with jailed(lab, ALICE).shell() as shell:
        for line in ("claude exec cat", "claude exec tail -f /dev/null | sed -u s/^/two-/", "sh -c 'claude lines \"\"; echo no'"):
            for _ in range(6):
                shell.type(line + "\n")
                wait_for(lambda: os.tcgetpgrp(shell.master) != shell.pid, "the job has the terminal")
                wait_for(lambda: running(lab), "the agent runs")
                shell.type(b"\x1a")
                shell.expect("Stopped")
                shell.prompt()
                shell.type("fg\n")
                wait_for(lambda: os.tcgetpgrp(shell.master) != shell.pid, "the job has the terminal")
                shell.read(chance.choice((0, 0, 0.001, 0.003, 0.01)))
                shell.type(b"\x03")
                shell.prompt()
            wait_for(lambda: not lab.sessions(), "every session is gone")
