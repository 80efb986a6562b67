#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A terminal's screen as SVG, for the documents:

    tmux capture-pane -e -p | docs/picture.py > docs/screen.svg

The one there is of a run in the lab: TUI_WRITE=1 tests/tui/run --build build --only screens.of_the_readme
"""

import re
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, SIZE = 8.43, 18, 14          # of a cell and of its characters, in pixels
BACKGROUND, FOREGROUND = "#16181d", "#d3d7cf"
NAMED = ["#2e3436", "#cc4b4b", "#6aa84f", "#d0a215", "#5c8fd6", "#a674b8", "#3fa7a7", "#d3d7cf"]
LEVELS = [0, 95, 135, 175, 215, 255]


def colour(number):
    """Of xterm's 256."""
    if number < 16:
        return NAMED[number % 8]
    if number >= 232:
        return "#" + 3 * f"{8 + 10 * (number - 232):02x}"
    number -= 16
    return "#" + "".join(f"{LEVELS[number // step % 6]:02x}" for step in (36, 6, 1))


class Look:
    def __init__(self):
        self.reset()

    def reset(self):
        self.fore = self.back = None
        self.bold = self.dim = self.reverse = self.underline = False

    def take(self, numbers):
        numbers = list(numbers) or [0]
        while numbers:
            n = numbers.pop(0)
            if n == 0:
                self.reset()
            elif n in (38, 48) and numbers[:1] == [5]:
                value = colour(numbers[1])
                del numbers[:2]
                self.fore, self.back = (value, self.back) if n == 38 else (self.fore, value)
            elif n == 1:
                self.bold = True
            elif n == 2:
                self.dim = True
            elif n == 4:
                self.underline = True
            elif n == 7:
                self.reverse = True
            elif 30 <= n <= 37:
                self.fore = NAMED[n - 30]
            elif 40 <= n <= 47:
                self.back = NAMED[n - 40]
            elif n == 39:
                self.fore = None
            elif n == 49:
                self.back = None

    def colours(self):
        fore, back = self.fore or FOREGROUND, self.back
        return (BACKGROUND, fore) if self.reverse else (fore, back)


def runs(line, look):
    """(column, text, look of it) of a line."""
    column = 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            look.take(int(n or 0) for n in part[2:-1].split(";"))
        elif part:
            yield column, part, look
            column += len(part)


def picture(text):
    lines = text.rstrip("\n").split("\n")
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    columns = max(len(line) for line in plain)
    width, height = columns * WIDTH + 24, len(lines) * HEIGHT + 20
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">',
           f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>',
           f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{SIZE}" xml:space="preserve">']
    look = Look()
    for row, line in enumerate(lines):
        y = 10 + row * HEIGHT
        for column, part, style in runs(line, look):
            fore, back = style.colours()
            x = 12 + column * WIDTH
            if back:
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{len(part) * WIDTH:.1f}" height="{HEIGHT}" fill="{back}"/>')
            if part.strip():
                more = ' font-weight="bold"' * style.bold + ' opacity="0.6"' * style.dim
                out.append(f'<text x="{x:.1f}" y="{y + 14}" textLength="{len(part) * WIDTH:.1f}" fill="{fore}"{more}>'
                           f"{escape(part)}</text>")
    return "\n".join([*out, "</g>", "</svg>", ""])


if __name__ == "__main__":
    sys.stdout.write(picture(sys.stdin.read()))
