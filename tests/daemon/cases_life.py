# SPDX-License-Identifier: MIT
"""The service's own life: death, successors, idleness, polkit."""

import signal

from fixture import *  # noqa: F403
from fixture import DEADLINE, OTHER, USER, case, end_service, nothing_left, refused, service


@case
def killed_service_is_succeeded(machine, watch):
    """kill -9 of the service: sessions go on, the next one takes them over with the same id."""
    with Caller(USER) as user:
        session, path, _ = user.launch(b"run", cwd=b"/tmp/\xfe")
        started = user.manager("ListSessions")
        pid = processes("session")
        os.kill(service(), signal.SIGKILL)
        wait_for(lambda: not processes("claude-sandboxd"), "the service's end")
        assert processes("session") == pid
        adopted = user.manager("ListSessions")
        assert adopted == [started[0][:7] + ["running"]] and adopted[0][0] == session, (started, adopted)
        assert warnings(user, path, "leads 1")
        watcher = Watch(watch, USER)
        user.call(path, SESSION, "Stop")
        watcher.expect("SessionRemoved")
        assert f"StateChanged {path} ending 1" in watcher.close()
        nothing_left(user)


@case
def dead_sessions_are_swept(machine, watch):
    """What ended without the service is cleared away at its next start, and only what is ours."""
    with Caller(USER) as user:
        session, _, _ = user.launch(b"leave-child")
        kept, _, _ = user.launch(b"run")
        wait_for(lambda: processes("left-behind"), "the child")
        os.kill(service(), signal.SIGKILL)
        wait_for(lambda: not processes("claude-sandboxd"), "the service's end")
        with open(f"/run/claude-sandbox/sessions/{session}/record", "rb") as f:
            assert b"/tmp" in f.read()
        for pid in processes("session"):
            if holds_record(session, pid):
                os.kill(pid, signal.SIGKILL)
        os.mkdir("/run/claude-sandbox/sessions/aaaaaaaaaaaaaaaa", 0o711)
        os.mkdir("/run/claude-sandbox/sessions/not-ours")
        forged = "/run/claude-sandbox/sessions/bbbbbbbbbbbbbbbb"
        shutil.copytree(f"/run/claude-sandbox/sessions/{kept}", forged, ignore=shutil.ignore_patterns("link", "group"))
        wait_for(lambda: [s[0] for s in user.manager("ListSessions")] == [kept], "the end of the dead session")
        assert sorted(os.listdir("/run/claude-sandbox/sessions")) == sorted([kept, "not-ours"])
        wait_for(lambda: not processes("left-behind"), "the end of what was left")
        os.rmdir("/run/claude-sandbox/sessions/not-ours")


def holds_record(session, pid):
    """The record ends with the process and its start."""
    with open(f"/run/claude-sandbox/sessions/{session}/record", "rb") as f:
        return struct.unpack("<I", f.read()[-12:-8])[0] == pid


@case
def session_out_of_sight_is_killed(machine, watch):
    """A session that its user has made unreachable does not outlive the service's restart."""
    with Caller(USER) as user, Caller(OTHER) as other:
        kept, _, _ = other.launch(b"run")
        others = processes("session")
        session, _, _ = user.launch(b"shut")
        victim, = [pid for pid in processes("session") if pid not in others]
        # as where no control group can be had, which would be killed whole
        with open(cgroup2() + "/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(victim))
        end_service()
        assert victim in processes("session")
        assert user.manager("ListSessions") == []
        wait_for(lambda: processes("session") == others, "the end of the session that hid")
        assert os.listdir("/run/claude-sandbox/sessions") == [kept], session
        assert [s[0] for s in other.manager("ListSessions")] == [kept]


@case
def a_laxer_session_is_marked(machine, watch):
    """What today's configuration does not give any more marks who was started with it, before and after a restart."""
    lax = ("allow-write = /srv\npass-env = TOKEN\n", "")
    machine.configure(lax[0])
    with Caller(USER) as user:
        session, path, _ = user.launch(b"run")
        policy = lambda: [row[1] for row in user.get(path, SESSION, "Posture") if row[0] == "policy"]  # noqa: E731
        marks = lambda: [w for w in user.get(path, SESSION, "Warnings") if "start it anew" in w]       # noqa: E731
        assert policy() == ["today's"] and marks() == []
        machine.unconfigure()
        assert policy() == ["laxer"] and len(marks()) == 2 and "allow-write /srv" in marks()[0], marks()
        end_service()
        assert policy() == ["laxer"] and len(marks()) == 2
        event, = [e for e in user.manager("ListEvents", "sa{sv}", session, {}) if e[1] == "adopted"]
        assert "allow-write /srv" in event[4]["laxer"] and "pass-env TOKEN" in event[4]["laxer"], event
        machine.configure(lax[0])
        assert policy() == ["today's"] and marks() == []
        watcher = Watch(watch, USER)
        machine.configure("no-forge\n")
        watcher.expect(f"changed {path} Warnings")
        watcher.close()
        assert len(marks()) == 3
        end_service()
        os.unlink(f"/run/claude-sandbox/sessions/{session}/policy")
        assert policy() == ["laxer"] and "not known any more" in marks()[0]
        user.close_fds()
        nothing_left(user)


@case
def twenty_sessions_outlive_the_service(machine, watch):
    """Killed and replaced again and again under twenty sessions: the same ids, states and ends."""
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        for caller in (user, other) * 10:
            caller.launch(b"run")
        wait_for(lambda: {s[7] for s in root.manager("ListSessions")} == {"running"}, "all of them to run")
        before = sorted(root.manager("ListSessions"))
        pids = sorted(processes("session"))
        assert len(before) == 20
        for _ in range(5):
            end_service()
            assert sorted(root.manager("ListSessions")) == before
            assert sorted(processes("session")) == pids, (sorted(processes("session")), pids)
        user.close_fds()
        wait_for(lambda: len(root.manager("ListSessions")) == 10, "the end of half of them")
        assert {s[4] for s in root.manager("ListSessions")} == {OTHER}
        # those that end while no service runs, too
        end_service()
        other.close_fds()
        wait_for(lambda: not processes("session"), "the others' end")
        nothing_left(root)


@case
def a_record_that_names_another_user(machine, watch):
    """Whoever listens must be who the record says; else nothing is adopted, and nothing killed but that process."""
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        session, _, _ = user.launch(b"run")
        kept, _, _ = other.launch(b"run")
        end_service()
        path = f"/run/claude-sandbox/sessions/{session}/record"
        with open(path, "rb") as f:
            record = bytearray(f.read())
        at = record.rindex(struct.pack("<I", USER), 0, -12)
        record[at:at + 4] = struct.pack("<I", OTHER)
        with open(path, "wb") as f:
            f.write(record)
        assert [s[0] for s in other.manager("ListSessions")] == [kept]
        assert [s[0] for s in root.manager("ListSessions")] == [kept]
        wait_for(lambda: len(processes("session")) == 1, "the end of the one without a record")


@case
def directories_of_strangers(machine, watch):
    """What others put where sessions' directories are is not believed, whatever it looks like."""
    with Caller(USER) as user, Caller(0) as root:
        session, _, _ = user.launch(b"run")
        end_service()
        top = "/run/claude-sandbox/sessions"
        # a user's copy, a link to the real one, a link out, a record for all to write
        shutil.copytree(f"{top}/{session}", f"{top}/cccccccccccccccc", ignore=shutil.ignore_patterns("link", "group"))
        for name in ("", "/record", "/policy"):
            os.chown(f"{top}/cccccccccccccccc{name}", USER, USER)
        os.symlink(session, f"{top}/dddddddddddddddd")
        os.symlink("/etc", f"{top}/eeeeeeeeeeeeeeee")
        os.mkdir(f"{top}/ffffffffffffffff", 0o711)
        shutil.copy(f"{top}/{session}/record", f"{top}/ffffffffffffffff/record")
        os.chmod(f"{top}/ffffffffffffffff/record", 0o666)
        os.mkdir(f"{top}/gggggggggggggggg", 0o711)
        os.symlink("/../../etc/claude-sandbox-aaaaaaaaaaaaaaaa", f"{top}/gggggggggggggggg/group")
        assert [s[0] for s in root.manager("ListSessions")] == [session]
        assert session in os.listdir(top) and os.path.exists("/etc/passwd")
        for name in os.listdir(top):
            if name != session:
                path = f"{top}/{name}"
                assert os.path.islink(path), os.listdir(top)
                os.unlink(path)


@case
def a_session_without_a_record(machine, watch):
    """What a service had begun when it was killed is ended by the next one, by its control group."""
    with Caller(USER) as user:
        session, _, _ = user.launch(b"leave-child")
        child, = wait_for(lambda: processes("left-behind"), "the child")
        end_service()
        os.unlink(f"/run/claude-sandbox/sessions/{session}/record")
        assert user.manager("ListSessions") == []
        wait_for(lambda: not processes("left-behind") and not processes("session"), f"the end of {child}")


@case
def a_session_that_says_nothing(machine, watch):
    """After a restart, a session that does not speak makes its own user wait, for two seconds, and nobody else."""
    with Caller(USER) as user, Caller(OTHER) as other:
        user.launch(b"mute-again")
        other.launch(b"run")
        end_service()
        start = time.monotonic()
        user.start(PATH, MANAGER, "ListSessions", "")
        assert [s[7] for s in other.manager("ListSessions")] == ["running"]
        assert time.monotonic() - start < 1.8
        assert [s[7] for s in user.finish()] == ["starting"]
        assert 1.8 < time.monotonic() - start < 4


@case
def record_of_another_process(machine, watch):
    """A record whose process is another by now is no session."""
    with Caller(USER) as user:
        session, _, _ = user.launch(b"run")
        os.kill(service(), signal.SIGKILL)
        wait_for(lambda: not processes("claude-sandboxd"), "the service's end")
        path = f"/run/claude-sandbox/sessions/{session}/record"
        with open(path, "rb") as f:
            record = bytearray(f.read())
        record[-8:] = struct.pack("<Q", struct.unpack("<Q", record[-8:])[0] + 1)
        with open(path, "wb") as f:
            f.write(record)
        assert user.manager("ListSessions") == []
        assert not os.path.exists(path)
        user.close_fds()
        wait_for(lambda: not processes("session"), "the session's end")


@case
def terminated_service(machine, watch):
    """SIGTERM ends the service at once; sessions go on; launches under way are told."""
    with Caller(USER) as user, Caller(USER) as second:
        session, _, _ = user.launch(b"run")
        second.launch_start(b"silent")
        wait_for(lambda: len(processes("session")) == 2, "the second session")
        os.kill(service(), signal.SIGTERM)
        refused("ShuttingDown", "stopping", second.finish)
        wait_for(lambda: not processes("claude-sandboxd"), "the service's end")
        wait_for(lambda: len(processes("session")) == 1, "the end of the one that was starting")
        assert [s[0] for s in user.manager("ListSessions")] == [session]


@case
def bus_away_and_back(machine, watch):
    """Without the bus the service ends, sessions go on, and the next bus finds them."""
    with Caller(USER) as user:
        session, _, _ = user.launch(b"run")
        machine.stop_bus()
        wait_for(lambda: not processes("claude-sandboxd"), "the service's end")
        machine.start_bus()
        with Caller(USER) as again:
            assert [s[0] for s in again.manager("ListSessions")] == [session]


@case
def polkit_is_asked(machine, watch):
    """The administrator's rule decides about launch; root is not asked; a refusal starts nothing."""
    os.makedirs("/etc/polkit-1/rules.d", exist_ok=True)
    with open("/etc/polkit-1/rules.d/10-no.rules", "w") as f:
        f.write('polkit.addRule(function(action, subject) { if (action.id == "org.claudesandbox1.launch" &&'
                f' subject.user == "other") return polkit.Result.NO; }});')
    for pid in processes("polkitd"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not processes("polkitd"), "polkit's end")
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        refused("NotAuthorized", "org.claudesandbox1.launch", other.launch, b"run")
        user.launch(b"run")
        root.launch(b"run")
        assert len(root.manager("ListSessions")) == 2
    os.unlink("/etc/polkit-1/rules.d/10-no.rules")
    for pid in processes("polkitd"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not processes("polkitd"), "polkit's end")


@case
def polkit_hangs_and_the_caller_leaves(machine, watch):
    """While polkit is silent nothing is made; a caller that leaves takes its request along."""
    with Caller(USER) as user, Caller(0) as root:
        user.launch(b"run")
        user.close_fds()
        nothing_left(root)
        polkit = wait_for(lambda: processes("polkitd"), "polkit")[0]
        os.kill(polkit, signal.SIGSTOP)
        try:
            user.launch_start(b"run")
            root.launch(b"exit")
            nothing_left(root)
            assert os.listdir("/run/claude-sandbox/sessions") == []
            os.kill(user.pid, signal.SIGKILL)
            os.waitid(os.P_PIDFD, user.pidfd, os.WEXITED | os.WNOWAIT)
        finally:
            os.kill(polkit, signal.SIGCONT)
        with Caller(OTHER) as other:
            other.launch(b"exit")
        nothing_left(root)


@case
def without_polkit(machine, watch):
    """Where polkit is not at all, launch takes its default and everything else is refused."""
    service_file = "/usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service"
    with Caller(USER) as user, Caller(OTHER) as other:
        user.launch(b"run")
        os.rename(service_file, service_file + ".off")
        for pid in processes("polkitd"):
            os.kill(pid, signal.SIGKILL)
        os.kill(machine.bus.pid, signal.SIGHUP)
        wait_for(lambda: not can_activate("org.freedesktop.PolicyKit1"), "the bus to forget polkit")
        try:
            session, _, _ = other.launch(b"run")
            refused("NoSuchSession", "only root", user.manager, "StopSession", "sa{sv}", session, {})
            refused("NotAuthorized", "only root", user.manager, "ListAllSessions")
            refused("NotAuthorized", "only root", user.launch, b"run", environment=[b"CLAUDE_SANDBOX_PASS_ENV=SECRET"])
        finally:
            os.rename(service_file + ".off", service_file)
            os.kill(machine.bus.pid, signal.SIGHUP)


def can_activate(name):
    out = subprocess.run(["busctl", "--system", "--activatable", "list"], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    return name in out


@case
def idle_service_ends(machine, watch):
    """Half a minute without anybody: the service ends by itself, and comes when it is called."""
    with Caller(USER) as user:
        user.manager("ListSessions")
        pid = service()
        pidfd = os.pidfd_open(pid)
        assert select.select([pidfd], [], [], 45)[0], "it stays"
        os.close(pidfd)
        assert user.manager("ListSessions") == []
        assert service() != pid
        watcher = Watch(watch, USER)
        pidfd = os.pidfd_open(service())
        assert not select.select([pidfd], [], [], 33)[0], "it leaves its subscriber alone"
        os.close(pidfd)
        watcher.close()


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def is_owned():
    return "boolean true" in subprocess.run(
        ["dbus-send", "--system", "--print-reply", "--dest=org.freedesktop.DBus", "/", "org.freedesktop.DBus.NameHasOwner",
         "string:org.claudesandbox1"], stdout=subprocess.PIPE, text=True, check=True).stdout


@case
def a_call_at_the_end_of_idleness_is_served(machine, watch):
    """The name is given away while a launch is on its way. systemd ends the unit for it; the launch goes on all the same."""
    with Caller(USER) as user, Caller(OTHER) as late:
        user.manager("ListSessions")
        program = os.readlink(f"/proc/{service()}/exe")
        end_service()
        with subprocess.Popen(["sh", "-c", 'SYSTEMD_EXEC_PID=$$ exec "$0"', program]) as process:
            wait_for(is_owned, "its name")
            assert user.manager("ListSessions") == [] and service() == process.pid
            process.send_signal(signal.SIGSTOP)
            pidfd = os.pidfd_open(process.pid)
            assert not select.select([pidfd], [], [], 33)[0]
            late.launch_start(b"silent")
            # it has been sent and its answer is waited for; the bus, asked later, has it too
            wait_for(lambda: "poll" in read(f"/proc/{late.pid}/wchan"), "the call")
            assert is_owned()
            process.send_signal(signal.SIGCONT)
            # either may come first, the end of its idleness or the call; without the name systemd ends it
            wait_for(lambda: processes("session") or not is_owned(), "what comes first")
            gone = not is_owned()
            if gone:
                process.send_signal(signal.SIGTERM)
            launched = wait_for(lambda: processes("session"), "the launch")
            assert not late.answered() and service() == process.pid
            os.kill(launched[0], signal.SIGKILL)
            refused("SessionDied", "", late.finish)
            if not gone:
                process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE) == 0
            os.close(pidfd)
        assert user.manager("ListSessions") == [] and service() != process.pid


@case
def a_session_of_another_version_is_seen_and_stopped(machine, watch):
    """Taken over with a link of another version: shown, told of, stopped; asked nothing that it would not understand."""
    with Caller(USER) as user, Caller(0) as root:
        session, path, _ = user.launch(b"foreign")
        end_service()
        listed, = user.manager("ListSessions")
        assert (listed[0], listed[7]) == (session, "running"), listed
        wait_for(lambda: [row[1] for row in user.get(path, SESSION, "Posture") if row[0] == "link"] == ["foreign"], "Posture")
        assert any("another version" in text for text in user.get(path, SESSION, "Warnings"))
        assert (user.get(path, SESSION, "Leader"), user.get(path, SESSION, "Jailed")) == (4711, True)
        for member, signature, arguments in (("ListRoutes", "", ()), ("ListDenied", "", ()), ("Verify", "a{sv}", ({},))):
            refused("SessionSilent", "Another version", user.call, path, SESSION, member, signature, *arguments)
        refused("SessionSilent", "Another version", root.call, path, SESSION, "AllowIp", "sta{sv}", "10.1.2.3", 60, {})
        assert root.manager("AddAllowIp", "ssa{sv}", "10.1.2.3", "", {}) == [session]
        assert f"session {session} of uid {USER} speaks version 99" in machine.text()
        user.call(path, SESSION, "Stop")
        nothing_left(user)
        # with an address taken away it may not go on: nobody knows whether it has it
        user.launch(b"foreign")
        end_service()
        assert len(user.manager("ListSessions")) == 1
        root.manager("RemoveAllowIp", "s", "10.1.2.3")
        nothing_left(user)
        machine.unconfigure()


@case
def programs_that_do_not_fit_are_named(machine, watch):
    """A new `session` under an old service: the launch says what to do."""
    with Caller(USER) as user:
        refused("JailUnavailable", "another version", user.launch, b"foreign-first")
        nothing_left(user)
