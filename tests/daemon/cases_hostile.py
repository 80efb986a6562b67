# SPDX-License-Identifier: MIT
"""Sessions that their user has bent, and callers that leave."""

import signal

from fixture import *  # noqa: F403
from fixture import USER, case, nothing_left, refused


@case
def sessions_that_fail(machine, watch):
    """A session's failure is the answer: a known name, a sentence that is text; never an empty one."""
    with Caller(USER) as user:
        error = refused("UnsafeWorkspace", "because", user.launch, b"fail")
        assert error.message == "because \\x1b[1m of \\xfe\\x0athat", error.message
        refused("JailUnavailable", "because", user.launch, b"fail-strange")
        refused("SessionDied", "", user.launch, b"die")
        refused("SessionDied", "", user.launch, b"no-listen")
        refused("SessionDied", "", user.launch, b"close-pipe")
        refused("JailUnavailable", "wrote into the pipe", user.launch, b"write-pipe")
        refused("SessionDied", "Another process listens", user.launch, b"other-listens")
        refused("SessionDied", "", user.launch, b"garbage")
        nothing_left(user)


@case
def program_missing(machine, watch):
    """Without the session's program the launch is refused and names it."""
    os.rename(LIBEXEC + "/session", LIBEXEC + "/away")
    try:
        with Caller(USER) as user:
            refused("JailUnavailable", LIBEXEC + "/session: No such file", user.launch, b"run")
            nothing_left(user)
    finally:
        os.rename(LIBEXEC + "/away", LIBEXEC + "/session")


@case
def tables_that_lie(machine, watch):
    """A table that does not add up ends its session alone."""
    with Caller(USER) as user:
        _, good, _ = user.launch(b"run")
        user.launch(b"lie")
        wait_for(lambda: len(user.manager("ListSessions")) == 1, "the end of the liar")
        assert warnings(user, good, "leads")
        assert "breaks the protocol" in machine.text()


@case
def what_a_session_says_is_text(machine, watch):
    """Control characters and bytes of a session reach nobody's terminal."""
    with Caller(USER) as user:
        _, path, _ = user.launch(b"run")
        posture = wait_for(lambda: [r for r in user.get(path, SESSION, "Posture") if r[0] == "stand-in"], "posture")
        assert posture == [["stand-in", "none", "esc \\x1b[31m and \\xff"]], posture
        assert any(row[0] == "cgroup" for row in user.get(path, SESSION, "Posture"))


@case
def stop_a_deaf_session(machine, watch):
    """A session that does not answer is killed when it should have."""
    with Caller(USER) as user:
        session, _, _ = user.launch(b"deaf")
        start = time.monotonic()
        user.manager("StopSession", "sa{sv}", session, {})
        assert time.monotonic() - start < 4
        nothing_left(user)


@case
def stop_a_stubborn_session(machine, watch):
    """A session that answers and does not end is killed after the grace time."""
    with Caller(USER) as user:
        session, _, _ = user.launch(b"stubborn")
        start = time.monotonic()
        user.manager("StopSession", "sa{sv}", session, {"grace": 300000})
        assert 0.3 < time.monotonic() - start < 5
        nothing_left(user)
        session, _, _ = user.launch(b"run")
        refused("BadRequest", "'grace' is at most", user.manager, "StopSession", "sa{sv}", session,
                {"grace": 61000000})
        refused("BadRequest", "'grace' has the type 't'", user.manager, "StopSession", "sa{sv}", session,
                {"grace": "1"})
        refused("BadRequest", "'force'", user.manager, "StopSession", "sa{sv}", session, {"force": 1})


@case
def flood(machine, watch):
    """A session that never stops talking does not slow the service for others."""
    with Caller(USER) as user, Caller(0) as root:
        session, _, _ = user.launch(b"flood")
        for _ in range(50):
            start = time.monotonic()
            root.manager("ListSessions")
            assert time.monotonic() - start < 1
        user.manager("StopSession", "sa{sv}", session, {"grace": 0})
        nothing_left(root)


@case
def what_a_session_leaves_running(machine, watch):
    """With a control group, a process that outlives its session is killed."""
    with Caller(USER) as user:
        session, path, _ = user.launch(b"leave-child")
        if not any(row[:2] == ["cgroup", "group"] for row in user.get(path, SESSION, "Posture")):
            raise AssertionError("no cgroup2 hierarchy can be written here")
        child = wait_for(lambda: processes("left-behind"), "the child")
        user.manager("StopSession", "sa{sv}", session, {})
        wait_for(lambda: not processes("left-behind"), f"the end of {child}")
        wait_for(lambda: not find_group(session), "the removal of the group")


def find_group(session):
    for top, directories, _ in os.walk("/sys/fs/cgroup"):
        if session in directories:
            return os.path.join(top, session)
    return None


@case
def the_session_is_killed(machine, watch):
    """kill -9 of a session, running or starting, leaves nothing."""
    with Caller(USER) as user, Caller(USER) as second:
        session, _, _ = user.launch(b"leave-child")
        wait_for(lambda: processes("left-behind"), "the child")
        for pid in processes("session"):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not processes("left-behind"), "the child's end")
        nothing_left(user)
        second.launch_start(b"silent")
        wait_for(lambda: processes("session"), "a session")
        for pid in processes("session"):
            os.kill(pid, signal.SIGKILL)
        refused("SessionDied", "", second.finish)
        nothing_left(user)


@case
def caller_leaves_while_it_starts(machine, watch):
    """The caller goes away before the agent runs: the session is hung up."""
    with Caller(USER) as user, Caller(0) as root:
        user.launch_start(b"silent")
        wait_for(lambda: root.manager("ListSessions"), "the session")
        assert root.manager("ListSessions")[0][7] == "starting"
        os.kill(user.pid, signal.SIGKILL)
        nothing_left(root)
    with Caller(USER) as user, Caller(0) as root:
        user.launch_start(b"numb")
        wait_for(lambda: root.manager("ListSessions"), "the session that ignores its end")
        os.kill(user.pid, signal.SIGKILL)
        nothing_left(root)


@case
def lifeline(machine, watch):
    """The lifeline is the only thing that keeps a session: with the caller's end it ends."""
    with Caller(USER) as user, Caller(USER) as second:
        user.launch(b"run")
        second.launch(b"run")
        os.kill(user.pid, signal.SIGKILL)
        wait_for(lambda: len(second.manager("ListSessions")) == 1, "the end of one session")
        second.close_fds()
        nothing_left(second)


@case
def exit_status(machine, watch):
    """How the agent ended is told."""
    with Caller(USER) as user:
        watcher = Watch(watch, USER)
        session, path, _ = user.launch(b"exit")
        watcher.expect("SessionRemoved")
        lines = watcher.close()
        assert f"StateChanged {path} ending {7 << 8}" in lines, lines
        assert f"SessionAdded {PATH} {session} 0" in lines, lines
        nothing_left(user)
