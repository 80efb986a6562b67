# SPDX-License-Identifier: MIT
"""The tables that sessions answer with, and sessions that answer badly."""

import dbus.lowlevel

from fixture import *  # noqa: F403
from fixture import OTHER, USER, Actor, case, nothing_left, refused, service

TABLES = ("ListExposure", "ListEnvironment", "ListRoutes", "ListPorts")
HOSTILE = b"/esc \x1b[2J\n\xff\xe2\x80\xae"
SHOWN = "/esc \\x1b[2J\\x0a\\xff\\xe2\\x80\\xae"
LONG = "/" + "n" * 4095


@case
def tables_are_text_and_bytes(machine, watch):
    """Paths come as their bytes, the rest as text that reaches no terminal as a command; 4 KiB names whole."""
    with Caller(USER) as user, Caller(0) as root:
        _, path, _ = user.launch(b"run")
        for caller in (user, root):
            for member, columns in (("ListExposure", 5), ("ListEnvironment", 2), ("ListRoutes", 5)):
                found = caller.call(path, SESSION, member)
                wanted = [[SHOWN] * columns, [LONG] * columns, [""] * columns]
                if member == "ListExposure":
                    wanted = [[text, *row[1:]] for text, row in zip((HOSTILE, LONG.encode(), b""), wanted)]
                assert found == wanted, (member, found)


@case
def numbers_are_numbers(machine, watch):
    """A session that says something else where a number belongs is named as one that does not answer as it should."""
    with Caller(USER) as user:
        _, path, _ = user.launch(b"run")
        refused("SessionSilent", "does not answer as it should", user.call, path, SESSION, "ListPorts")


@case
def tables_of_others_are_not_there(machine, watch):
    """Whoever may not see a session does not find its object."""
    with Caller(USER) as user, Caller(OTHER) as other:
        _, path, _ = user.launch(b"run")
        for member in TABLES:
            refused("org.freedesktop.DBus.Error.UnknownObject", "", other.call, path, SESSION, member)


@case
def silent_sessions(machine, watch):
    """A session that does not answer costs its askers two seconds, together; nobody else waits."""
    with Caller(USER) as user, Caller(0) as root:
        _, path, _ = user.launch(b"hush")
        _, good, _ = user.launch(b"run", fresh=True)
        start = time.monotonic()
        callers = [Caller(USER) for _ in range(8)]
        for caller in callers:
            caller.start(path, SESSION, "ListExposure", "")
        root.call(good, SESSION, "ListExposure")
        assert time.monotonic() - start < 1.5
        for caller in callers:
            refused("SessionSilent", "does not answer", caller.finish)
            caller.close()
        assert time.monotonic() - start < 6, time.monotonic() - start


@case
def waiting_calls_are_counted(machine, watch):
    """What one user waits for is bounded; root gets through, and a caller that leaves is forgotten."""
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        _, path, _ = user.launch(b"hush")
        _, good, _ = other.launch(b"run")
        with Actor(USER, crowd, path, 40).done():
            refused("LimitsExceeded", "16 calls of yours wait", user.call, path, SESSION, "ListRoutes")
            assert other.call(good, SESSION, "ListExposure")
            refused("SessionSilent", "does not answer", root.call, path, SESSION, "ListRoutes")
        pid = service()
        # the crowd has gone: its places are free at once, while the question is still open
        wait_for(lambda: not limited(user, path), "room for the same user")
        assert service() == pid


def crowd(path, n):
    """Calls that wait for a silent session, all of them taken when this returns."""
    connection = dbus.bus.BusConnection(BUS)
    # a sender that is not known yet may send a few messages alone
    connection.call_blocking(NAME, PATH, MANAGER, "ListSessions", "", [], timeout=20)
    for _ in range(n):
        connection.send_message(dbus.lowlevel.MethodCallMessage(NAME, path, SESSION, "ListExposure"))
    connection.call_blocking(NAME, PATH, MANAGER, "ListSessions", "", [], timeout=20)
    return connection


def limited(user, path):
    try:
        user.call(path, SESSION, "ListEnvironment")
        return False
    except Error as error:
        return error.name.endswith("LimitsExceeded")


@case
def tables_that_are_too_long(machine, watch):
    """A session that has more to say than any session has is refused, and bounded while it speaks."""
    with Caller(USER) as user:
        _, path, _ = user.launch(b"too-much")
        pid = service()
        for member in TABLES:
            refused("SessionSilent", "does not answer as it should", user.call, path, SESSION, member)
        assert service() == pid


@case
def tables_before_there_is_a_plan(machine, watch):
    """What a session does not know yet is an error, never an empty table."""
    with Caller(USER) as user:
        _, path, _ = user.launch(b"refuse-table")
        refused("SessionSilent", "about to start", user.call, path, SESSION, "ListExposure")


@case
def a_session_that_ends_answers(machine, watch):
    """Whoever waits for a session that is killed gets an answer."""
    with Caller(USER) as user, Caller(0) as root:
        _, path, _ = user.launch(b"hush")
        root.start(path, SESSION, "ListExposure", "")
        root_waits = Caller(0)
        root_waits.start(path, SESSION, "ListRoutes", "")
        wait_for(lambda: processes("session"), "the session")
        for process in processes("session"):
            os.kill(process, signal.SIGKILL)
        for caller in (root, root_waits):
            try:
                caller.finish(4)
            except Error as error:
                assert error.name.endswith(("NoSuchSession", "UnknownObject")) and error.message, error
            else:
                raise AssertionError("an answer of a dead session")
        root_waits.close()
        nothing_left(user)
