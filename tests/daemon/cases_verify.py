# SPDX-License-Identifier: MIT
"""Verify, with sessions that say anything of their own jail: the verdict is the service's."""

import os
import select
import signal
import time

from fixture import *  # noqa: F403
from fixture import OTHER, USER, case, nothing_left, processes, refused, wait_for

CHECKS = [f"{n:02}" for n in range(1, 23)]
SHOWN = ["esc \\x1b[2J", "\\xff\\x0a"]


def of_a_new_jail(caller, act, options=None):
    return caller.manager("Verify", "saayaya{sv}", "shell", [b"ACT=" + act], b"/tmp", options or {})


def of_a_session(caller, act, options=None):
    _, path, _ = caller.launch(act)
    try:
        return caller.call(path, SESSION, "Verify", "a{sv}", options or {})
    finally:
        caller.call(path, SESSION, "Stop")


def both(caller, act):
    """What either member answers to a session that acts so."""
    return [of_a_new_jail(caller, act), of_a_session(caller, act)]


@case
def good_checks_pass(machine, watch):
    """Each of 22 rows once: passed, and no text of a session reaches a terminal as a command."""
    with Caller(USER) as user, Caller(0) as root:
        for passed, rows in both(user, b"checks"):
            assert passed is True and [row[0] for row in rows] == CHECKS, rows
            assert all(row[1:] == ["pass", *SHOWN, ""] for row in rows), rows
        nothing_left(root)


@case
def bad_checks_do_not(machine, watch):
    """One that fails, too few, one twice, no row, too many, another word than its rows, a kill: none passes."""
    words = {b"checks-bad": None, b"checks-few": "04, 05", b"checks-twice": "07", b"checks-strange": "no row",
             b"checks-flood": "no row", b"checks-liar": "no row says what", b"checks-killed": "killed"}
    with Caller(USER) as user, Caller(0) as root:
        for act, said in words.items():
            for passed, rows in both(user, act):
                assert passed is False, (act, rows)
                assert len(rows) <= 257, (act, len(rows))
                last = rows[-1]
                if said:
                    assert last[:2] == ["end", "fail"] and said in last[3] and "\x1b" not in last[3], (act, last)
                else:
                    assert [row[0] for row in rows] == CHECKS, (act, rows)
                    # the service's own words; the session's "run this as root" reaches nobody
                    assert [row[4] != "" for row in rows] == [row[1] == "fail" for row in rows], rows
                    assert not any("as root" in row[4] for row in rows), rows
        nothing_left(root)


@case
def rows_of_nobody(machine, watch):
    """What a session says of a question that nobody asked is not heard."""
    with Caller(USER) as user:
        for passed, rows in both(user, b"checks-foreign"):
            assert passed is True and len(rows) == 22, rows


@case
def silent_checks(machine, watch):
    """One that is stopped keeps its caller for some seconds, and not whoever comes behind; then it can be asked other things."""
    with Caller(USER) as user, Caller(0) as root:
        _, path, _ = user.launch(b"checks-silent")
        start = time.monotonic()
        [pid] = processes("session")
        os.kill(pid, signal.SIGSTOP)
        root.start(path, SESSION, "Verify", "a{sv}", {})
        passed, rows = user.call(path, SESSION, "Verify", "a{sv}", {})
        assert passed is False and rows[-1][:2] == ["end", "fail"] and "silent" in rows[-1][3], rows
        assert root.finish()[0] is False
        assert time.monotonic() - start < 40
        os.kill(pid, signal.SIGCONT)
        assert user.call(path, SESSION, "ListRoutes")
        user.call(path, SESSION, "Stop")
        nothing_left(root)


@case
def checks_are_hidden(machine, watch):
    """A session that is made to check is no session to anybody, and ends with its caller."""
    with Caller(USER) as user, Caller(0) as root:
        user.start(PATH, MANAGER, "Verify", "saayaya{sv}", "shell", [b"ACT=checks-silent"], b"/tmp", {})
        wait_for(lambda: os.listdir("/run/claude-sandbox/sessions"), "its directory")
        identity = os.listdir("/run/claude-sandbox/sessions")[0]
        assert root.manager("ListSessions") == [] and root.get(PATH, MANAGER, "Sessions") == 0
        refused("NoSuchSession", identity, root.manager, "StopSession", "sa{sv}", identity, {})
        refused("org.freedesktop.DBus.Error.UnknownObject", "", root.get, PATH + "/session/" + identity, SESSION, "Id")
        os.kill(user.pid, signal.SIGKILL)
        nothing_left(root)


@case
def checks_of_others(machine, watch):
    """Another user's session is not there; root may check it."""
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        _, path, _ = user.launch(b"checks")
        refused("org.freedesktop.DBus.Error.UnknownObject", "", other.call, path, SESSION, "Verify", "a{sv}", {})
        assert root.call(path, SESSION, "Verify", "a{sv}", {})[0] is True


@case
def checks_are_limited(machine, watch):
    """So many calls of one user wait for sessions to be checked; and options are as the interface says."""
    with Caller(USER) as user:
        _, path, _ = user.launch(b"checks-silent")
        callers = [Caller(USER) for _ in range(17)]
        for caller in callers:
            caller.start(path, SESSION, "Verify", "a{sv}", {})
        answered, _, _ = select.select([caller.socket for caller in callers], [], [], 4)
        first = [caller for caller in callers if caller.socket in answered]
        assert len(first) == 1, "sixteen wait, and one does not"
        refused("LimitsExceeded", "checked", first[0].finish)
        user.call(path, SESSION, "Stop")
        for caller in callers:
            if caller is not first[0]:
                refused("NoSuchSession", "", caller.finish)
            caller.close()
        _, path, _ = user.launch(b"checks")
        for options in ({"nonsense": True}, {"call": 7}, {"probes": 1}, {"call": "x" * 129}):
            refused("BadRequest", next(iter(options)), of_a_new_jail, user, b"checks", options)
            refused("BadRequest", next(iter(options)), user.call, path, SESSION, "Verify", "a{sv}", options)
