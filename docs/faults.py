#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of what can be wrong and what Doctor says of it, from the faults that the lab makes.

    faults.py > docs/faults.md      write it
    faults.py --check               does docs/faults.md still say the same?
"""

import importlib
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "tests", "lab"), os.path.join(HERE, "..", "tests")]

PARTS = {"faults_of_machine": "The machine", "faults_of_person": "Network, agents, PATH, home",
         "faults_of_system": "Configuration, bus, polkit, installed files"}
HEAD = """<!-- SPDX-License-Identifier: MIT -->
<!-- Made by docs/faults.py from the faults that tests/lab makes; a test holds the two together. -->
# Faults

What `claude-sandbox doctor` says of what may be wrong, and what becomes of a launch meanwhile. `…` stands for a name, a
number or what the kernel answered. A launch that is refused, or that warns, says the same: what was found, a semicolon,
what helps. Each line is a test: the fault is made in a machine of namespaces, that row has that status, no other row
turns red because of it (where the start of a session ends at that fault, its step of the start says the same, and what
lies behind is not tried), and when what helps was done all rows are as before.
"""
LAUNCH = {"refused": "refused", "refused, 127": "refused, status 127", "warned": "starts, with a warning", "started": "starts", "waits": "waits",
          "": ""}


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def page():
    from fault_table import FAULTS
    lines = [HEAD]
    for module, title in PARTS.items():
        importlib.import_module(module)
    for module, title in PARTS.items():
        lines += [f"## {title}", "", "| what is wrong | row | status | found | what helps | a launch |", "|---|---|---|---|---|---|"]
        for fault in FAULTS:
            if fault.inject.__module__ == module:
                row = f"`{fault.row}`" + (f", `{fault.step}`" if fault.step else "")
                lines.append(f"| {cell(fault.words)} | {row} | {fault.status} | {cell(fault.found)} | {cell(fault.fix)} | "
                             f"{LAUNCH[fault.launch]} |")
        lines.append("")
    return "\n".join(lines)


def main():
    path = os.path.join(HERE, "faults.md")
    if sys.argv[1:] != ["--check"]:
        sys.stdout.write(page())
        return 0
    with open(path, encoding="utf-8") as f:
        same = f.read() == page()
    if not same:
        print("docs/faults.md is not what docs/faults.py writes")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
