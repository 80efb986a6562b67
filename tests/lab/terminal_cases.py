# SPDX-License-Identifier: MIT
"""A real shell's job control around the whole chain: pipelines, wrappers, the background, sizes, other readers."""

import fcntl
import os
import struct
import tempfile
import termios

import system
from case import equal, holds, test, wait_for
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


def make_gate(lab, user):
    """A FIFO by which something outside lets something inside go on."""
    path = f"{lab.workspace(user)}/gate"
    os.mkfifo(path)
    os.chown(path, user.uid, user.gid)
    lab.undo.append(lambda: os.unlink(path))
    return path


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
            wait_for(lambda: lab.states() == ["stopped"], "the service knows of the stop")
            terminal.type("fg\n")
            terminal.expect("| sed -u s/^/two-/\r\n")
            # nothing of the agent's says that it goes on; the service does
            wait_for(lambda: lab.states() == ["running"], "the agent goes on")
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
        make_gate(lab, user)
        with shell(lab, user) as terminal:
            # the agent runs until the pager has its key
            terminal.type("claude-sandbox shell -c 'echo rea''dy; read x <gate' | { cat <&0 & read key </dev/tty; "
                          "echo \"pager got $key\"; echo >gate; wait; }\n")
            terminal.expect("ready\r\n")
            terminal.type("word\n")
            terminal.expect("pager got word\r\n")
            terminal.expect("prompt> ")


def echoes(terminal):
    return bool(terminal.current_modes()[3] & termios.ECHO)


def is_in_line_mode(terminal):
    return bool(terminal.current_modes()[3] & termios.ICANON)


@test(60, needs="bus")
def a_password_beside_it_stays_secret(lab):
    """`claude | sudo tee`: an agent that asks for the keys while another program asks for a password waits."""
    for user in BOTH:
        gate = make_gate(lab, user)
        for line in ("claude-sandbox shell -c '{0}' 2>/dev/null | ({1})",
                     "({1}) | claude-sandbox shell -c 'exec 2>/dev/null; {0}'"):
            with shell(lab, user) as terminal:
                # what the agent does, and what another program of the pipeline does
                terminal.type(line.format(
                    "exec 3</dev/tty; read x <gate; stty -icanon -echo <&3; echo y >gate; head -c 1 <&3 >key; stty sane <&3",
                    "read -s key </dev/tty; echo \"got $key\" >/dev/tty") + "; cat key; rm key\n")
                wait_for(lambda: not echoes(terminal), "the password is asked for")
                terminal.expect("key\r\n")
                with open(gate, "w", encoding="ascii") as f:
                    f.write("x\n")
                with open(gate, encoding="ascii") as f:
                    f.read()
                # longer than launch takes to look again
                terminal.read(0.3)
                holds(is_in_line_mode(terminal), "the terminal is as it was when the password was asked for")
                terminal.type("secret\n")
                terminal.expect("got secret\r\n")
                wait_for(lambda: not echoes(terminal), "the keys are the agent's now")
                terminal.type("k")
                terminal.expect("k")
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


TIOCSPTLCK, TIOCGPTPEER = 0x40045431, 0x5441


def open_pair(ptmx):
    """Master and slave of one devpts or another."""
    master = os.open(ptmx, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(master, TIOCSPTLCK, struct.pack("i", 0))
    return master, fcntl.ioctl(master, TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)


def number_of(pair):
    return os.fstat(pair[1]).st_rdev


def close_pair(pair):
    for fd in pair:
        os.close(fd)


@test(needs="bus")
def terminal_of_another_devpts(lab):
    """Its number is that of the PTY which launch would make first; that says nothing of what it is."""
    place = tempfile.mkdtemp(dir="/run")
    lab.undo.append(lambda: os.rmdir(place))
    system.mount("devpts", place, "devpts", 0, "newinstance,ptmxmode=0666,mode=0620")
    lab.undo.append(lambda: system.unmount(place))
    for user in BOTH:
        fresh = open_pair("/dev/ptmx")
        wanted = number_of(fresh)
        close_pair(fresh)
        others = [open_pair(f"{place}/ptmx")]
        while number_of(others[-1]) != wanted:
            others.append(open_pair(f"{place}/ptmx"))
        with lab.terminal(["/usr/local/bin/claude-sandbox", "shell", "-c", "tty; echo here"], user,
                          pair=others.pop()) as terminal:
            terminal.expect("/dev/console\r\nhere\r\n")
            equal(terminal.wait(), 0)
        for pair in others:
            close_pair(pair)
