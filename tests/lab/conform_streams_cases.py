# SPDX-License-Identifier: MIT
"""Descriptors 0, 1 and 2 in every form, and statuses, compared with the program itself."""

import os
import signal
import socket
import subprocess
import termios

from case import wait_for
from conform import BOTH, conform

COMBINATIONS = [f"{bits:03b}" for bits in range(8)]
STATUSES = (0, 1, 2, 3, 64, 77, 100, 124, 125, 126, 127, 128, 129, 130, 137, 143, 254, 255)
DEATHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 31)


@conform(users=BOTH, of=COMBINATIONS)
def terminals_are_seen(side, bits):
    """Digits are 0, 1, 2: a terminal, or a file. Names, modes, size, groups, signals, descriptors: as natively."""
    redirect = "".join(f" {number}{'<' if number == 0 else '>'}/dev/null"
                       for number, digit in enumerate(bits) if digit == "0")
    with side.shell(size=(31, 97)) as shell:
        out = shell.do(f"claude look{redirect}")
        notes = side.notes()
        if bits == "000":
            tty = [line for line in notes if line.startswith("tty=")]
            notes.remove(tty[0])
            notes.append(side.differs("no terminal", tty, ["tty=1"], ["tty=0"]))
        return out, notes, shell.exit_status()


@conform(of=("<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-"))
def closed_ones_stay_closed(side, how):
    with side.shell() as shell:
        out = shell.do(f"claude look {how}")
        out += shell.do(f"claude write hello {how}")
        return out, side.notes(), shell.exit_status()


@conform()
def all_closed(side):
    process = side.start("look", before=lambda: [os.close(n) for n in range(3)])
    status = process.wait(20)
    return status, [line for line in side.notes() if not line.startswith("leads")]


@conform(users=BOTH)
def bytes_through_pipes(side):
    data = bytes(range(256)) * 4096
    return side.pipes("exec", "cat", data=data)


@conform(users=BOTH)
def output_and_error_are_apart(side):
    return side.pipes("both")


@conform()
def output_and_error_in_one_pipe(side):
    with side.shell() as shell:
        return shell.do("claude both 2>&1 | cat -A"), shell.exit_status()


@conform()
def input_from_a_file(side):
    side.lab.run(["/bin/sh", "-c", "seq 1 100 > input"], side.user)
    with side.shell() as shell:
        return (shell.do("claude exec md5sum < input"), shell.do("claude look < input"), side.notes(), shell.exit_status())


@conform()
def a_file_is_eaten_in_parts(side):
    """Who reads next goes on where the agent left off."""
    side.lab.run(["/bin/sh", "-c", "seq 1 20 > input"], side.user)
    with side.shell() as shell:
        return shell.do("{ claude read 7; echo '|'; claude read 5; echo '|'; cat; } < input")


@conform()
def a_pipe_is_eaten_in_parts(side):
    with side.shell() as shell:
        return shell.do("seq 1 20 | { claude read 7; echo '|'; claude read 5; echo '|'; cat; }")


@conform()
def output_is_appended(side):
    side.lab.run(["/bin/rm", "-f", "output"], side.user)
    with side.shell() as shell:
        return shell.do("for i in 1 2 3; do claude write \"<$i>\" >> output; done; cat output; echo; "
                        "claude write over > output; cat output"), shell.do("claude look >> output"), side.notes()


@conform()
def the_device_is_full(side):
    with side.shell() as shell:
        return shell.do("claude write hello > /dev/full"), side.notes(), shell.exit_status()


@conform()
def a_reader_that_goes(side):
    with side.shell() as shell:
        return shell.do("claude flood 100000 | head -1; echo ${PIPESTATUS[*]}")


@conform()
def a_reader_that_goes_before_the_end(side):
    """Between pipes: the agent's own SIGPIPE."""
    read, write = os.pipe()
    process = side.start("flood", 100000, stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.DEVNULL)
    os.close(write)
    first = os.read(read, 1)
    os.close(read)
    return first, process.wait(10)


@conform()
def a_writer_without_end(side):
    with side.shell() as shell:
        return shell.do("yes abc | claude read 10; echo; echo ${PIPESTATUS[*]}")


@conform()
def a_silent_pipe_holds_nobody(side):
    """The agent's end is the end, whatever its input does."""
    process = side.start("exit", 5, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return process.wait(10), process.stdout.read()


@conform()
def sockets_pass(side):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = side.start("exec", "cat", stdin=theirs, stdout=theirs)
        theirs.close()
        ours.sendall(b"over a socket")
        ours.shutdown(socket.SHUT_WR)
        data = b"".join(iter(lambda: ours.recv(100), b""))
    return data, process.wait(10)


@conform()
def the_terminal_by_its_name(side):
    with side.shell() as shell:
        shell.type("claude by-name /dev/tty </dev/tty >/dev/tty\n")
        shell.expect("password: ")
        shell.type("other\n")
        shell.prompt()
        return shell.transcript


@conform()
def the_terminal_has_a_name(side):
    with side.shell() as shell:
        return shell.do("claude exec sh -c 'test -c \"$(tty)\" && test -w \"$(tty)\" && echo to-it > \"$(tty)\"'"), \
            shell.do("claude exec sh -c 'tty > /dev/null; echo $?' | cat"), \
            shell.do("claude exec tty < /dev/null"), shell.exit_status()


@conform(users=BOTH)
def statuses_are_verbatim(side):
    return [side.pipes("exit", status) for status in STATUSES]


@conform()
def deaths_are_told(side):
    """What the shell says of them, and what $? is."""
    with side.shell() as shell:
        shell.do("ulimit -c 0")
        return [(shell.do(f"claude die {number}"), shell.exit_status()) for number in DEATHS]


@conform()
def deaths_without_a_shell(side):
    return [side.pipes("die", number) for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGRTMIN + 1)]


@conform()
def tools_have_sessions_of_their_own(side):
    with side.shell() as shell:
        return shell.do("claude tool"), shell.exit_status()


@conform()
def what_is_left_behind(side):
    """The agent's end is seen at once although something holds its terminal."""
    terminal = side.terminal("leave-behind")
    status = terminal.wait(5)
    return status, terminal.transcript


@conform()
def a_pager_keeps_its_keys(side):
    """`claude -p ... | less`: what is typed is the pager's."""
    with side.shell() as shell:
        shell.type("claude flood 500 | less -X\n")
        shell.expect("00000022 ")
        shell.expect(":")
        shell.type(" ")
        shell.expect("00000044 ")
        shell.type("G")
        shell.expect("00000499 ")
        shell.type("q")
        shell.prompt()
        return shell.do("echo ${PIPESTATUS[*]}"), shell.screen(), shell.do("claude write next")


@conform()
def a_pager_before_the_end(side):
    """It is left while the agent still writes."""
    with side.shell() as shell:
        shell.type("claude flood 200000 | less -X\n")
        shell.expect("00000022 ")
        shell.type("q")
        shell.prompt()
        return shell.do("echo ${PIPESTATUS[*]}")


@conform()
def keys_beside_a_pipe(side):
    """`claude | tee`: the agent has the keys, line by line."""
    with side.shell() as shell:
        shell.type("claude exec bash -c 's=$(stty -g); stty -icanon; echo rea\"\"dy; head -c 5; stty $s' | tee copy\n")
        shell.expect("ready\r\n")
        wait_for(lambda: not shell.flags()[3] & termios.ICANON, "the terminal gives single keys")
        shell.type("hello")
        shell.prompt()
        return shell.transcript


@conform()
def a_secret_beside_a_pipe(side):
    with side.shell() as shell:
        shell.type("claude exec bash -c 'read -s -p secret: x; echo; echo \"got ${#x}\"' | tee copy\n")
        shell.expect("tee copy\r\n")
        shell.expect("secret:")
        wait_for(lambda: not shell.flags()[3] & termios.ECHO, "the terminal does not show what is typed")
        shell.type("swordfish\n")
        shell.prompt()
        return shell.transcript


@conform()
def lines_beside_a_pipe(side):
    """As long as the agent leaves the terminal's modes alone, its keys are left to the other end of the pipe."""
    with side.shell() as shell:
        shell.type("claude lines '' | cat\n")
        shell.expect("ready")
        shell.type("word\n")
        if not side.jailed:
            shell.expect("line 5 word\r\n")
        shell.type(b"\x03")
        shell.prompt()
        return side.differs("lines beside a pipe", b"line 5 word" in shell.transcript, True, False)
