# SPDX-License-Identifier: MIT
"""Output: every byte, in order, to the last one."""

import os

from conform import BOTH, conform

FAST = int(os.environ.get("CONFORM_FAST", "100"))
ODD = r"a\tb\nc\rd\r\ne\bf\0g\377\376\033[31mred\033[0m\vx\fy\n"


@conform(users=BOTH)
def a_flood_on_a_terminal(side):
    terminal = side.terminal("flood", 30000)
    return terminal.wait(20), terminal.transcript


@conform()
def a_flood_through_a_pipe(side):
    return side.pipes("flood", 30000)


@conform()
def a_flood_for_a_slow_reader(side):
    """The terminal takes little at a time, and nothing after the agent's end is lost."""
    terminal = side.terminal("flood", 3000)
    data = b""
    while len(data) < 3000 * 40:
        data += os.read(terminal.master, 97)
    terminal.transcript = data
    return terminal.wait(20), terminal.transcript


@conform(users=BOTH)
def odd_bytes(side):
    terminal = side.terminal("exec", "printf", ODD)
    return terminal.wait(), terminal.transcript


@conform()
def odd_bytes_of_a_raw_agent(side):
    terminal = side.terminal("exec", "bash", "-c", f"s=$(stty -g); stty raw; printf '{ODD}'; stty $s")
    return terminal.wait(), terminal.transcript


@conform()
def odd_bytes_in_the_background(side):
    with side.shell() as shell:
        shell.do(f"claude exec printf '{ODD}end\\n' & wait")
        seen = shell.transcript
        return seen[seen.index(b"a       b") if b"a       b" in seen else seen.index(b"a\tb"):].split(b"end")[0]


@conform()
def output_and_error_on_one_terminal(side):
    terminal = side.terminal("exec", "sh", "-c", "for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done")
    return terminal.wait(), terminal.transcript


@conform()
def a_last_word_before_death(side):
    terminal = side.terminal("exec", "sh", "-c", "printf 'last word'; kill -KILL $$")
    return terminal.wait(), terminal.transcript


@conform(limit=240)
def a_fast_program_loses_nothing(side):
    """Ends right after its output: every time all of it is there. CONFORM_FAST: how often, 100 without it."""
    lost = []
    for n in range(FAST if side.jailed else 10):
        terminal = side.terminal("write", f"the last of {n % 10}: " + "x" * 300 + "END")
        status = terminal.wait()
        if status != 0 or not terminal.transcript.endswith(b"END") or len(terminal.transcript) != 318:
            lost.append((n, status, terminal.transcript))
        terminal.close()
    return lost


@conform()
def a_fast_program_between_pipes(side):
    return [side.pipes("write", f"{n} END") for n in range(20)]
