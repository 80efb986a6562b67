# SPDX-License-Identifier: MIT
"""A real shell's job control around the whole chain: pipelines, wrappers, the background, sizes, other readers."""

import json
import os

from case import test, wait_for
from machine import ALICE, ROOT

BOTH = (ALICE, ROOT)


def shell(lab, user, **options):
    """An interactive bash on a terminal, at its prompt."""
    terminal = lab.terminal(["/bin/bash", "--norc", "--noprofile", "-i"], user,
                            env=lab.environment(user, PS1="prompt> "), **options)
    terminal.expect("prompt> ")
    return terminal


def status(terminal, wanted):
    terminal.type("echo status $?\n")
    terminal.expect(f"status {wanted}\r\n")
    terminal.expect("prompt> ")


def states(lab):
    """What the service says of every session."""
    return [row[7] for row in json.loads(lab.call("ListSessions", user=ROOT).ok().out)["data"][0]]


@test(60, needs="bus")
def pipeline_stops_and_goes_on(lab):
    """The terminal is the whole job's here: its keys reach the agent as signals, its stop is the job's."""
    for user in BOTH:
        with shell(lab, user) as terminal:
            terminal.type("claude-sandbox shell -c 'echo rea''dy; exec tail -f /dev/null' | sed -u s/^/two-/\n")
            terminal.expect("two-ready\r\n")
            terminal.type(b"\x1a")
            terminal.expect("Stopped")
            terminal.expect("prompt> ")
            wait_for(lambda: states(lab) == ["stopped"], "the service knows of the stop")
            terminal.type("fg\n")
            terminal.expect("| sed -u s/^/two-/\r\n")
            # nothing of the agent's says that it goes on; the service does
            wait_for(lambda: states(lab) == ["running"], "the agent goes on")
            terminal.type(b"\x03")
            terminal.expect("prompt> ")
            status(terminal, 130)


@test(60, needs="bus")
def wrappers_stop_too(lab):
    """A script around the launch stops with it, as it would around the agent."""
    for user in BOTH:
        with shell(lab, user) as terminal:
            terminal.type("sh -c 'claude-sandbox shell -c \"echo rea''dy; exec sed -u s/^/answer-/\"; echo af''ter $?'\n")
            terminal.expect("ready\r\n")
            terminal.type(b"\x1a")
            terminal.expect("Stopped")
            terminal.expect("prompt> ")
            terminal.type("fg\n")
            terminal.type("word\n")
            terminal.expect("answer-word\r\n")
            terminal.type(b"\x04")
            terminal.expect("after 0\r\n")
            terminal.expect("prompt> ")


@test(60, needs="bus")
def background_waits_for_the_foreground(lab):
    """An agent that wants single keys stops in the background, and runs when it is brought back."""
    for user in BOTH:
        with shell(lab, user) as terminal:
            terminal.type("claude-sandbox shell -c 'stty raw -echo; echo rea''dy; head -c 3; stty sane; exit 5' &\n")
            terminal.expect("prompt> ")
            terminal.type("wait\n")
            terminal.expect("Stopped")
            terminal.expect("prompt> ")
            terminal.type("fg\n")
            terminal.expect("ready\n")
            terminal.type("abc")
            terminal.expect("abc")
            terminal.expect("prompt> ")
            status(terminal, 5)


@test(60, needs="bus")
def background_output_arrives(lab):
    for user in BOTH:
        with shell(lab, user) as terminal:
            terminal.type("claude-sandbox shell -c 'echo fi''rst; echo sec''ond' & wait\n")
            terminal.expect("first\r\nsecond\r\n")
            terminal.expect("Done")


@test(60, needs="bus")
def size_is_right_after_a_stop(lab):
    for user in BOTH:
        with shell(lab, user) as terminal:
            terminal.type("claude-sandbox shell -c 'echo rea''dy; kill -TSTP 0; stty size; exit 0'\n")
            terminal.expect("ready\r\n")
            terminal.expect("Stopped")
            terminal.expect("prompt> ")
            terminal.resize(19, 71)
            terminal.type("fg\n")
            terminal.expect("19 71\r\n")
            terminal.expect("prompt> ")


@test(60, needs="bus")
def a_stopped_job_can_be_killed(lab):
    """Nobody continues it; the shell ends it, and continues it for that: it must not run until it stops again."""
    for user in BOTH:
        for line in ("kill %1\n", "kill %1; fg\n"):
            with shell(lab, user) as terminal:
                terminal.type("claude-sandbox shell -c 'echo rea''dy; exec cat'\n")
                terminal.expect("ready\r\n")
                terminal.type(b"\x1a")
                terminal.expect("Stopped")
                terminal.expect("prompt> ")
                terminal.type(line)
                wait_for(lambda: not lab.sessions(), "the session is gone")
                # bash says it at its next prompt, or its fg does
                terminal.type("\n")
                terminal.expect("Terminated")
                terminal.expect("prompt> ")


@test(60, needs="bus")
def pipes_do_not_take_the_keys(lab):
    """`claude | pager`: what is typed is the pager's, as long as the agent asks for no keys."""
    for user in BOTH:
        gate = f"{lab.workspace(user)}/gate"
        os.mkfifo(gate)
        os.chown(gate, user.uid, user.gid)
        lab.undo.append(lambda path=gate: os.unlink(path))
        with shell(lab, user) as terminal:
            # the agent runs until the pager has its key
            terminal.type("claude-sandbox shell -c 'echo rea''dy; read x <gate' | { cat <&0 & read key </dev/tty; "
                          "echo \"pager got $key\"; echo >gate; wait; }\n")
            terminal.expect("ready\r\n")
            terminal.type("word\n")
            terminal.expect("pager got word\r\n")
            terminal.expect("prompt> ")


@test(60, needs="bus")
def piped_input_leaves_the_keys_to_the_agent(lab):
    """`text | claude`: the prompt comes by the pipe, the keys by the terminal."""
    for user in BOTH:
        with shell(lab, user) as terminal:
            terminal.type("echo prom''pt | claude-sandbox shell -c 'cat; stty raw -echo </dev/tty; echo r''aw; "
                          "head -c 3 </dev/tty; stty sane </dev/tty; echo'\n")
            terminal.expect("prompt\r\n")
            terminal.expect("raw")
            terminal.type("abc")
            terminal.expect("abc")
            terminal.expect("prompt> ")
            terminal.type("stty -a | tr ' ' '\\n' | grep icanon | sed s/^/mode:/\n")
            terminal.expect("mode:icanon\r\n")
