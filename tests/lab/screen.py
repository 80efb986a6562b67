# SPDX-License-Identifier: MIT
"""What a terminal's private modes are after some bytes were written to it: a model of the person's emulator."""

import re

# xterm's ctlseqs; the kitty keyboard protocol
NATURAL = {7: True, 25: True}
ALTERNATE = (47, 1047, 1049)
SEQUENCE = re.compile(rb"\x1b\[([<=>?]?)([0-9;]*)([!]?)([@-~])|\x1b([=>c])|\x1b[\]P_^X].*?(?:\x1b\\|\x07)", re.DOTALL)


class Screen:
    def __init__(self):
        self.reset()

    def reset(self):
        self.private = {}
        self.alternate = False
        self.keyboards = ([], [])
        self.other_keys = 0
        self.keypad = False

    def feed(self, data):
        for found in SEQUENCE.finditer(data):
            marker, numbers, soft, final, single = found.groups()
            if single == b"c":
                self.reset()
            elif single:
                self.keypad = single == b"="
            elif final and not soft:
                self.control(marker.decode(), [int(n or 0) for n in numbers.split(b";")], final.decode())
        return self

    def control(self, marker, numbers, final):
        if marker == "?" and final in "hl":
            for number in numbers:
                if number in ALTERNATE:
                    self.alternate = final == "h"
                elif (final == "h") == NATURAL.get(number, False):
                    self.private.pop(number, None)
                else:
                    self.private[number] = final == "h"
        elif final == "u" and marker == ">":
            self.keyboards[self.alternate].append(numbers[0])
        elif final == "u" and marker == "<":
            stack = self.keyboards[self.alternate]
            del stack[max(len(stack) - (numbers[0] or 1), 0):]
        elif final == "m" and marker == ">" and numbers[0] in (0, 4):
            self.other_keys = numbers[1] if len(numbers) > 1 else 0

    def unnatural(self):
        """What differs from a terminal that nobody asked for anything; empty when nothing does."""
        found = {str(number): value for number, value in sorted(self.private.items())}
        if self.alternate:
            found["alternate"] = True
        for name, stack in zip(("keyboard", "alternate keyboard"), self.keyboards):
            if stack:
                found[name] = list(stack)
        if self.other_keys:
            found["other keys"] = self.other_keys
        if self.keypad:
            found["keypad"] = True
        return found
