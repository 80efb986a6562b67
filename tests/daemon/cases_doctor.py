# SPDX-License-Identifier: MIT
"""Doctor, with sessions that say anything of themselves."""

import os
import signal

from fixture import *  # noqa: F403
from fixture import USER, case, nothing_left, refused, wait_for


def doctor(caller, act, **options):
    """{id: row} of a session that acts so."""
    rows = caller.manager("Doctor", "a{sv}", {"environment": [b"ACT=" + act], "cwd": b"/tmp", **options})
    assert len({row[0] for row in rows}) == len(rows), rows
    return {row[0]: row for row in rows}


@case
def rows_of_the_service(machine, watch):
    """Those of the service are there whatever the session says, and what nobody said was not tried."""
    with Caller(USER) as user, Caller(0) as root:
        for caller in (user, root):
            rows = doctor(caller, b"checks")
            assert rows["config.file"][1] == "ok" and rows["service.name"][1] == "ok", rows
            assert rows["07"][1:4] == ["ok", "esc \\x1b[2J", "\\xff\\x0a"], rows["07"]
            assert rows["chain.agent"][1:4:2] == ["note", "not tried"], rows["chain.agent"]
        nothing_left(root)


@case
def sessions_that_lie(machine, watch):
    """Too many rows, what is no row, a kill: the answer is bounded and has a row that fails."""
    with Caller(USER) as user, Caller(0) as root:
        for act in (b"checks", b"checks-strange", b"checks-flood", b"checks-killed"):
            rows = doctor(user, act)
            assert len(rows) < 256 and rows["config.file"][1] == "ok", (act, len(rows))
            assert [row for row in rows.values() if row[0].startswith("chain.") and row[1] == "fail"], (act, rows)
        nothing_left(root)


@case
def a_doctor_is_hidden(machine, watch):
    """Its session is no session to anybody, and ends with its caller."""
    with Caller(USER) as user, Caller(0) as root:
        user.start(PATH, MANAGER, "Doctor", "a{sv}", {"environment": [b"ACT=checks-silent"], "cwd": b"/tmp"})
        wait_for(lambda: os.listdir("/run/claude-sandbox/sessions"), "its directory")
        assert root.manager("ListSessions") == [] and root.get(PATH, MANAGER, "Sessions") == 0
        os.kill(user.pid, signal.SIGKILL)
        nothing_left(root)


@case
def doctors_options(machine, watch):
    """As the interface says; a malformed call is the one thing that is an error."""
    with Caller(USER) as user:
        for options in ({"nonsense": True}, {"call": 7}, {"agent": b"x"}, {"cwd": "/tmp"}, {"environment": b"x"},
                        {"call": "x" * 129}):
            refused("BadRequest", next(iter(options)), user.manager, "Doctor", "a{sv}", options)
        refused("BadRequest", "absolute", user.manager, "Doctor", "a{sv}", {"cwd": b"tmp"})
        refused("BadRequest", "emacs", user.manager, "Doctor", "a{sv}", {"agent": "emacs"})
