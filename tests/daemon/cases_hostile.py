# SPDX-License-Identifier: MIT
"""Sessions that their user has bent, and callers that leave."""

import resource
import signal

import raw
from fixture import *  # noqa: F403
from fixture import OTHER, USER, Actor, case, nothing_left, refused, service


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
def flood_of_denials(machine, watch):
    """Each row becomes a signal: of a session's flood few do, all escaped, to those who may see it; nobody else waits."""
    with Caller(USER) as user, Caller(0) as root:
        hears, strange = Watch(watch, USER), Watch(watch, OTHER)
        start = time.monotonic()
        session, path, _ = user.launch(b"denied-flood")
        hears.expect("denied tcp 10.0.0.2 22 \\x1b[31m (1) 3")
        for _ in range(20):
            begin = time.monotonic()
            root.manager("ListSessions")
            assert time.monotonic() - begin < 1
        user.manager("StopSession", "sa{sv}", session, {"grace": 0})
        nothing_left(user)
        hears.expect("SessionRemoved")
        seconds = time.monotonic() - start
        lines = hears.close()
        signals = [line for line in lines if line.startswith("Denied ")]
        assert 0 < len(signals) <= 256 * (seconds + 1), f"{len(signals)} in {seconds} s"
        assert all(line.split(" ")[1] == path for line in signals), signals[:3]
        assert all(line.endswith(" 3") for line in lines if line.startswith("denied ")), "a row without a number is dropped"
        assert not any("Denied" in line for line in strange.close())


@case
def what_a_session_leaves_running(machine, watch):
    """With a control group, a process that outlives its session is killed."""
    with Caller(USER) as user:
        session, path, _ = user.launch(b"leave-child")
        if not any(row[:2] == ["cgroup", "group"] for row in user.get(path, SESSION, "Posture")):
            raise AssertionError("no cgroup2 hierarchy can be written here")
        child, = wait_for(lambda: processes("left-behind"), "the child")
        group = group_of(child)
        assert os.path.isdir(group), group
        user.manager("StopSession", "sa{sv}", session, {})
        wait_for(lambda: not processes("left-behind"), f"the end of {child}")
        wait_for(lambda: not os.path.exists(group), "the removal of the group")


def group_of(pid):
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as f:
        return cgroup2() + [line.strip()[3:] for line in f if line.startswith("0::")][0]


def anybody_reads(uid):
    """What the machine shows to every user of the others' sessions."""
    text = ""
    for path in ["/proc/net/unix"] + [f"/proc/{pid}/{name}" for pid in processes("session") + processes("claude-sandboxd")
                                      for name in ("cgroup", "cmdline", "mountinfo", "environ")]:
        text += subprocess.run(["/bin/cat", path], user=uid, group=uid, extra_groups=[], check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode(errors="replace")
    for top, _, _ in os.walk(cgroup2()):
        text += top + "\n"
    return text


@case
def ids_are_not_shown(machine, watch):
    """No id stands where every user of the machine can read it: sockets, control groups, command lines."""
    with Caller(USER) as user:
        session, _, _ = user.launch(b"run")
        text = anybody_reads(OTHER)
        assert "0::/" in text and "/link" in text, text
        assert session not in text, [line for line in text.splitlines() if session in line]
        end_service()
        assert [s[0] for s in user.manager("ListSessions")] == [session]
        assert session not in anybody_reads(OTHER)


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def stops(session, n, n_fds):
    """Calls that wait, each with descriptors that nobody asked for; all have been taken when this returns."""
    null = os.open("/dev/null", os.O_RDONLY)
    kept = []
    for _ in range(0, n, 4):
        kept.append(raw.Connection())
        for _ in range(4):
            kept[-1].stop(session, [null] * n_fds)
        kept[-1].call(raw.SERVICE, "ListSessions")
    for connection in kept:
        error, answer = connection.answer(connection.serial)
        assert not error and session.encode() in answer, (error, answer)
    return kept


@case
def descriptors_that_nobody_asked_for(machine, watch):
    """What is attached to a call goes with its reading, however long the call waits."""
    with Caller(USER) as user, Caller(OTHER) as other:
        session, _, _ = user.launch(b"stubborn")
        other.manager("ListSessions")
        pid = service()
        with open(f"/proc/{pid}/limits", encoding="utf-8") as f:
            soft, hard = [line.split()[3:5] for line in f if line.startswith("Max open files")][0]
        # CAP_SYS_RESOURCE, without which none can be raised
        assert soft == hard and (int(hard) >= 65536 or libc.prctl(23, 24, 0, 0, 0) == 0), (soft, hard)
        before = open_files(pid)
        with Actor(USER, stops, session, 60, 16).done():
            assert open_files(pid) < before + 60, (before, open_files(pid))
            other.launch(b"exit")
        for process in processes("session"):
            os.kill(process, signal.SIGKILL)
        nothing_left(other)
        assert service() == pid


def crowd(n):
    """Connections that begin with more than the service may hold, with all the descriptors that the bus lets through."""
    null = os.open("/dev/null", os.O_RDONLY)
    kept = []
    for _ in range(n):
        kept.append(raw.Connection())
        for _ in range(8):
            kept[-1].call(raw.SERVICE, "ListSessions", fds=[null] * 16)
    for connection in kept:
        error, _ = connection.answer(connection.serial)
        # what the bus itself has turned away, because so much waits, the service has never met
        while error == "org.freedesktop.DBus.Error.LimitsExceeded":
            error, _ = connection.answer(connection.call(raw.SERVICE, "ListSessions"))
    return kept


@case
def few_descriptors(machine, watch):
    """Where the service may open no more than 512 files, crowds of one user do not end it; then others get through."""
    with Caller(OTHER) as other:
        other.manager("ListSessions")
        pid = service()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (512, 512))
        try:
            with Actor(USER, crowd, 200).done():
                assert open_files(pid) < 400, open_files(pid)
                wait_for(lambda: gets_through(other), "room for somebody else")
            # what has arrived before anybody is known
            os.kill(pid, signal.SIGSTOP)
            try:
                with Actor(USER, raw.first_calls, 80, 3, 16).done():
                    os.kill(pid, signal.SIGCONT)
                    wait_for(lambda: gets_through(other), "room for somebody else")
                    assert service() == pid
            finally:
                os.kill(pid, signal.SIGCONT)
            with Actor(USER, crowd, 200).done(), Caller(USER) as user:
                wait_for(lambda: gets_through(user, "ListSessions"), "a connection of the same user")
                refused("NestedCaller", "too many connections", user.launch, b"run")
            nothing_left(other)
            assert service() == pid
        finally:
            end_service()


def gets_through(caller, member="Launch"):
    """A call as the first of its connection; false where too many others' wait."""
    try:
        if member == "Launch":
            caller.launch(b"exit", fresh=True)
        else:
            caller.manager(member)
        return True
    except Error as e:
        # ours, or the bus's own while so much waits for the service
        assert e.name.endswith(".Error.LimitsExceeded"), e
        return False


def memory(pid):
    """Resident, in MiB; 0 where a sanitizer keeps what was freed."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        if "libasan" in f.read():
            return 0
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return [int(line.split()[1]) for line in f if line.startswith("VmRSS")][0] / 1024


@case
def memory_of_waiting_launches(machine, watch):
    """What a launch asked for is not kept while its session starts, and given back afterwards."""
    long = [b"X%02d=" % i + b"x" * 120000 for i in range(16)]
    with Caller(USER) as root:
        root.manager("ListSessions")
        pid = service()
        before = memory(pid)
        callers = [Caller(USER) for _ in range(16)]
        for i, caller in enumerate(callers):
            caller.launch_start(b"silent", environment=long)
            wait_for(lambda: len(processes("session")) > i, "a session")
        assert memory(pid) < before + 10, (before, memory(pid))
        for caller in callers:
            caller.close()
        nothing_left(root)
        assert memory(pid) < before + 5, (before, memory(pid))


@case
def turns_by_user(machine, watch):
    """Sixteen sessions of one user are being started at most; the next comes when one has gone, another user's at once."""
    with Caller(OTHER) as other:
        other.manager("ListSessions")
        callers = [Caller(USER) for _ in range(20)]
        for caller in callers:
            caller.launch_start(b"silent")
        wait_for(lambda: len(processes("session")) == 16, "sixteen of them")
        other.launch(b"run")
        assert len(processes("session")) == 17, processes("session")
        waiting = [caller for caller in callers if not caller.answered()]
        assert len(waiting) == 20
        os.kill(processes("session")[0], signal.SIGKILL)
        wait_for(lambda: len([c for c in callers if c.answered()]) == 1, "the answer about the one that was killed")
        wait_for(lambda: len(processes("session")) == 17, "the next one")
        for caller in callers:
            caller.close()
        wait_for(lambda: len(processes("session")) == 1, "only the other user's session")


@case
def long_launches_that_wait_for_polkit(machine, watch):
    """The requests of one user that wait for an answer are bounded together, and cost others nothing."""
    long = [b"X%02d=" % i + b"x" * 120000 for i in range(16)]
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        user.launch(b"exit")
        nothing_left(root)
        polkit = wait_for(lambda: processes("polkitd"), "polkit")[0]
        os.kill(polkit, signal.SIGSTOP)
        callers = [Caller(USER) for _ in range(12)]
        try:
            for caller in callers:
                caller.launch_start(b"run", environment=long)
            answered = wait_for(lambda: [c for c in callers if c.answered()], "a refusal")
            wait_for(lambda: len([c for c in callers if c.answered()]) >= 4, f"more than {len(answered)}")
            root.launch(b"exit", environment=long)
            other.launch_start(b"exit", environment=long)
            answered = [c for c in callers if c.answered()]
            assert len(answered) == 4, len(answered)
            for caller in answered:
                refused("LimitsExceeded", "16 MiB", caller.finish)
        finally:
            os.kill(polkit, signal.SIGCONT)
        other.finish()
        for caller in callers:
            if caller not in answered:
                caller.finish()
            caller.close()
        nothing_left(root)


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
