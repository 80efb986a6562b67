# SPDX-License-Identifier: MIT
"""What tests on whatever machine say of it, and how they are named."""


class Skip(Exception):
    """This machine cannot show it; a failure where skips are not allowed."""


def short_name(function):
    return f"{function.__module__.removesuffix('_cases')}.{function.__name__}"


def equal(found, wanted, what=""):
    if found != wanted:
        raise AssertionError(f"{what}{': ' if what else ''}found {found!r}, wanted {wanted!r}")


def holds(condition, what):
    if not condition:
        raise AssertionError(what)


def has(text, *words):
    """Each of the words stands in text."""
    for word in words:
        if word not in text:
            raise AssertionError(f"{word!r} is missing in: {text}")
