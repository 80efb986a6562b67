# SPDX-License-Identifier: MIT
"""What is typed and what is shown: every byte on the terminal, compared with the program itself."""

import os
import select
import signal

from conform import BOTH, conform

SPECIAL = b"\x1astqek?!"


def finish(terminal, limit=10):
    return terminal.wait(limit), terminal.transcript, terminal.flags(), terminal.screen()


def pour(terminal, data, limit=10):
    """Type much, reading what comes back meanwhile."""
    os.set_blocking(terminal.master, False)
    while data:
        readable, writable, _ = select.select([terminal.master], [terminal.master], [], limit)
        if readable:
            terminal.read(0)
        elif writable:
            data = data[os.write(terminal.master, data[:1000]):]
        else:
            raise AssertionError(f"{len(data)} bytes are not taken")
    os.set_blocking(terminal.master, True)


@conform(users=BOTH)
def success_adds_no_byte(side):
    return finish(side.terminal("write", "x")), finish(side.terminal("exit", 0))


@conform(users=BOTH)
def lines_are_edited(side):
    """Erase, kill, word erase, reprint, literal next, end of file."""
    terminal = side.terminal("lines", "")
    terminal.expect("ready 24x80.\r\n")
    for keys, answer in ((b"hello\n", "line 6 hello\r\n"), (b"helxx\x7f\x7flo\r", "line 6 hello\r\n"),
                         (b"gone\x15new\n", "line 4 new\r\n"), (b"one two\x17three\n", "line 10 one three\r\n"),
                         (b"a\x16\x03b\n", "line 4 a\x03b\r\n"), ("größe\x7f\n".encode(), "line 7 größ")):
        terminal.type(keys)
        terminal.expect(answer)
    terminal.type(b"\x04")
    return finish(terminal)


@conform(users=BOTH)
def interrupt_kills(side):
    terminal = side.terminal("lines", "")
    terminal.expect("ready 24x80.\r\n")
    terminal.type(b"\x03")
    return finish(terminal)


@conform()
def quit_kills(side):
    terminal = side.terminal("exec", "sh", "-c", "ulimit -c 0; echo ready; exec cat")
    terminal.expect("ready")
    terminal.type(b"\x1c")
    return finish(terminal)


@conform()
def keys_that_are_heard_come_once(side):
    terminal = side.terminal("lines", "iq")
    terminal.expect("ready 24x80.\r\n")
    for key, answer in ((b"\x03", "got 2\r\n"), (b"\x1c", "got 3\r\n"), (b"\x03", "got 2\r\n")):
        terminal.type(key)
        terminal.expect(answer)
    terminal.type("x4\n")
    return finish(terminal), side.notes()


@conform()
def keys_reach_the_whole_group(side):
    terminal = side.terminal("family", "iq")
    terminal.expect("ready\r\n")
    terminal.type(b"\x03")
    side.wait_notes(2)
    terminal.type(b"\x1c")
    side.wait_notes(4)
    terminal.type("x\n")
    return terminal.wait(), sorted(side.notes())


@conform()
def interrupt_drops_the_line(side):
    """What was typed before it is gone, as the terminal does it."""
    terminal = side.terminal("lines", "i")
    terminal.expect("ready 24x80.\r\n")
    terminal.type(b"dropped\x03")
    terminal.expect("got 2\r\n")
    terminal.type("kept\n")
    terminal.expect("line 5 kept\r\n")
    terminal.type("x0\n")
    return finish(terminal)


@conform()
def output_is_paused(side):
    terminal = side.terminal("lines", "")
    terminal.expect("ready 24x80.\r\n")
    terminal.type(b"\x13")
    terminal.type("word\n")
    silent = not terminal.read(0.3)
    terminal.type(b"\x11")
    terminal.expect("line 5 word\r\n")
    terminal.type("x0\n")
    return silent, finish(terminal)


@conform(users=BOTH)
def raw_keys_arrive(side):
    terminal = side.terminal()
    terminal.expect("ready 24x80.")
    during = terminal.screen()
    for key in range(256):
        if bytes([key]) not in [bytes([c]) for c in SPECIAL]:
            terminal.type(bytes([key]))
            terminal.expect(f"key {key:02x}.")
    terminal.type("q")
    return during, finish(terminal)


@conform()
def answers_arrive(side):
    """The agent asks the terminal, the terminal answers."""
    terminal = side.terminal()
    terminal.expect("ready 24x80.")
    terminal.type("?")
    terminal.expect("asked.")
    terminal.type(b"\x1b[?62;22c\x1bP>|xterm(1)\x1b\\\x1b[?1u\x1b[1;1R\x1b]11;rgb:0/0/0\x1b\\.")
    terminal.expect("answered.")
    terminal.type("q")
    return finish(terminal)


@conform()
def late_answers_are_dropped(side):
    """The agent asks and leaves; the answer comes when it is gone. The shell must not get it."""
    with side.shell() as shell:
        shell.type("claude exec bash -c 's=$(stty -g); stty raw -echo; printf as\"\"ked; read -N 1 x; stty $s'\n")
        shell.expect("asked")
        shell.type(b"Xecho un''wanted\r")
        shell.prompt()
        shell.type("echo wan''ted\n")
        shell.expect("wan''ted\r\n")
        shell.prompt()
        return side.differs("flushed", b"unwanted\r\n" in shell.transcript, True, False)


@conform()
def a_long_paste_arrives(side):
    terminal = side.terminal("exec", "bash", "-c", "s=$(stty -g); stty raw -echo; echo ready; head -c 60000 | md5sum; stty $s")
    terminal.expect("ready")
    pour(terminal, b"".join(b"%05d paste " % n for n in range(5000)))
    return finish(terminal)


@conform()
def many_lines_arrive(side):
    terminal = side.terminal("exec", "bash", "-c", "s=$(stty -g); stty -echo; echo ready; head -n 2000 | md5sum; stty $s")
    terminal.expect("ready\r\n")
    pour(terminal, b"".join(b"line %05d of many\n" % n for n in range(2000)))
    return finish(terminal)


@conform()
def a_long_line_is_cut_the_same(side):
    terminal = side.terminal("exec", "bash", "-c", "s=$(stty -g); stty -echo; echo ready; head -n 1 | wc -c; stty $s")
    terminal.expect("ready\r\n")
    pour(terminal, b"y" * 4000 + b"\n")
    return finish(terminal)


@conform()
def secrets_are_not_shown(side):
    terminal = side.terminal("exec", "bash", "-c", "read -s -p 'secret: ' x; echo; echo \"got ${#x}\"")
    terminal.expect("secret: ")
    terminal.type("swordfish\n")
    return finish(terminal)


@conform(of=("e", "i", "c", "o", "n", "x", "ei", "ecinox"))
def modes_act(side, how):
    """Echo, signals, line mode, output, newline and flow control, each switched off by the agent."""
    terminal = side.terminal("modes", how)
    terminal.expect("set")
    terminal.type(b"a\r" + b"\n" * ("n" in how) if "i" not in how else b"\x03\x1c\x1a\r\n")
    status = terminal.wait()
    left = terminal.flags()
    return status, terminal.transcript, side.notes(), side.differs("undone", left == terminal.flags_at_start, False, True)


@conform()
def a_killed_agent(side):
    """What it left set is set back, and nothing else."""
    terminal = side.terminal()
    before = terminal.flags_at_start
    terminal.expect("ready 24x80.")
    during = terminal.screen()
    terminal.type("k")
    status = terminal.wait()
    return status, during, side.differs("undone", (terminal.screen(), terminal.flags() == before), (during, False),
                                        ({}, True))


@conform()
def an_agent_that_forgets(side):
    terminal = side.terminal()
    before = terminal.flags_at_start
    terminal.expect("ready 24x80.")
    during = terminal.screen()
    terminal.type("e")
    return terminal.wait(), side.differs("undone", (terminal.screen(), terminal.flags() == before), (during, False),
                                         ({}, True))


@conform(users=BOTH)
def a_tidy_agent(side):
    terminal = side.terminal()
    terminal.expect("ready 24x80.")
    terminal.type("q")
    return finish(terminal)


@conform()
def a_terminated_agent(side):
    terminal = side.terminal()
    terminal.expect("ready 24x80.")
    terminal.kill(signal.SIGTERM)
    return finish(terminal), side.notes()


@conform(of=("\\033[>1u\\033[>3u\\033[<u\\033[?2004h\\033[?2004l", "\\033[>1u\\033[?1049h\\033[>5u",
             "\\033[?1000;1006h\\033[?25l", "\\033=\\033[?1h\\033[>4;1m", "\\033]0;title\\007\\033[?2026h\\033[?7l",
             "\\033[?1049h\\033[?1003h\\033c"))
def exactly_what_was_set(side, text):
    """... is undone: the bytes before are the program's, those after undo just that."""
    terminal = side.terminal("exec", "bash", "-c", f"printf '{text}ready'; kill -9 $$")
    status = terminal.wait()
    output, after = terminal.transcript.split(b"ready")
    screen = terminal.screen()
    return status, output, side.differs("undone", (screen, after == b"" or bool(screen == {})),
                                        (screen, True), ({}, True))


@conform(users=BOTH)
def sizes_follow(side):
    terminal = side.terminal(size=(33, 101))
    terminal.expect("ready 33x101.")
    for rows, columns in ((20, 60), (50, 200), (24, 80)):
        terminal.resize(rows, columns)
        terminal.expect(f"size {rows}x{columns}.")
    terminal.type("q")
    return finish(terminal), side.notes()


@conform()
def a_size_in_the_middle_of_output(side):
    terminal = side.terminal("exec", "bash", "-c",
                             "trap 'stty size; exit' WINCH; while :; do printf '%01000d\\n' 7; done")
    terminal.expect("7\r\n")
    terminal.resize(19, 71)
    terminal.expect("19 71\r\n")
    return terminal.wait()
