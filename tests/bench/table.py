# SPDX-License-Identifier: MIT
"""What was measured, as a table, as JSON, and beside what was measured before."""

import json


def quantile(values, share):
    """The nearest-rank quantile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000 * len(ordered)) // 1000) - 1))]


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class Figure:
    """
    One row. value: a median unless the name says otherwise, of count runs. base: what it is compared with, in the
    same run, called against. target: (what, "<=" or ">=", number), what being "ratio" or "value"; None: no target.
    """

    def __init__(self, name, unit, value, count, base=None, against="", target=None):
        self.name = name
        self.unit = unit
        self.value = value
        self.count = count
        self.base = base
        self.against = against
        self.target = target

    @property
    def ratio(self):
        return self.value / self.base if self.base else None

    @property
    def verdict(self):
        if not self.target:
            return "-"
        what, relation, wanted = self.target
        found = self.ratio if what == "ratio" else self.value
        return "met" if (found <= wanted if relation == "<=" else found >= wanted) else "MISSED"

    def to_json(self):
        what, relation, wanted = self.target or (None, None, None)
        return {"name": self.name, "unit": self.unit, "value": self.value, "count": self.count, "base": self.base,
                "against": self.against, "ratio": self.ratio, "target": wanted, "target_of": what,
                "relation": relation, "verdict": self.verdict}


def number(value):
    if value is None:
        return ""
    if isinstance(value, int) or value >= 1000:
        return f"{value:.0f}"
    return f"{value:.2f}"


def cells(figure, earlier):
    what, relation, wanted = figure.target or ("", "", None)
    row = [figure.name, figure.unit, number(figure.value), str(figure.count),
           f"{number(figure.base)} {figure.against}" if figure.base is not None else "", number(figure.ratio),
           f"{what} {relation} {wanted:g}" if figure.target else "", figure.verdict]
    if earlier is not None:
        before = earlier.get(figure.name)
        # ratios within one run travel between machines and hours, bare values do not
        now, then = (figure.ratio, before["ratio"]) if before and before["ratio"] and figure.ratio else (
            figure.value, before["value"] if before else None)
        row.append(f"{now / then:.2f} x" if then else "new")
    return row


def show(figures, earlier=None):
    heads = ["figure", "unit", "value", "runs", "against", "ratio", "target", "verdict"]
    if earlier is not None:
        heads.append("to earlier")
    rows = [heads] + [cells(figure, earlier) for figure in figures]
    widths = [max(len(row[i]) for row in rows) for i in range(len(heads))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def write(stream, figures):
    json.dump({"figures": [figure.to_json() for figure in figures]}, stream, indent=2)
    stream.write("\n")


def read(stream):
    return {figure["name"]: figure for figure in json.load(stream)["figures"]}
