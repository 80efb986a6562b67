# SPDX-License-Identifier: MIT
"""The audit log: what is in it, who sees it, what it outlives."""

import pwd
import signal
import stat

from fixture import *  # noqa: F403
from fixture import OTHER, USER, Watch, case, end_service, nothing_left, refused, service, warnings

LOG = "/var/log/claude-sandbox"
JOURNAL = "/run/systemd/journal/socket"
RUN = "/run/claude-sandbox/sessions"


def events(caller, session="", **options):
    return caller.manager("ListEvents", "sa{sv}", session, options)


def kinds(caller, session=""):
    return [event[1] for event in events(caller, session)]


def fresh():
    """No service runs, no session is left of which one would tell the end, and nothing was logged."""
    if processes("claude-sandboxd"):
        end_service()
    if os.path.isdir(RUN) and os.listdir(RUN):
        with Caller(0) as root:
            root.manager("ListSessions")
        end_service()
    shutil.rmtree(LOG, ignore_errors=True)


@case
def a_session_is_in_the_log(machine, watch):
    """Launch, posture, stop and exit: who, what, where, how; and nothing of variables and arguments."""
    fresh()
    with Caller(USER) as user:
        session, path, _ = user.launch(b"run", b"SECRET-ARGUMENT", environment=[b"TOKEN=SECRET-VALUE"], cwd=b"/tmp/\xfe")
        wait_for(lambda: kinds(user) == ["launch", "posture"], "the posture")
        user.call(path, SESSION, "Stop")
        nothing_left(user)
        found = events(user)
        assert [e[1] for e in found] == ["launch", "posture", "stop", "exit"], found
        assert all(e[2] == USER and e[3] == session for e in found), found
        assert [e[0] for e in found] == sorted({e[0] for e in found}), found
        launch, posture, stopped, ended = [e[4] for e in found]
        assert launch["agent"] == "shell" and launch["workspace"] == "/tmp/\\xfe" and launch["user"], launch
        assert posture["posture"] == "stand-in=none" and posture["cgroup"] in ("group", "none"), posture
        assert stopped["by"] == launch["user"] == pwd.getpwuid(USER).pw_name, stopped
        assert ended["status"] == "signal 1" and ended["seconds"].isdigit(), ended
        assert user.launch(b"exit") and wait_for(lambda: kinds(user)[-1:] == ["exit"], "the end")
        assert events(user)[-1][4]["status"] == "7"
        assert {e[3] for e in events(user, session)} == {session} and len(events(user, session)) == 4
        assert len(events(user, max=2)) == 2 and len(events(user, after=found[2][0])) > 1
    for name in os.listdir(LOG):
        with open(f"{LOG}/{name}", "rb") as f:
            text = f.read()
        assert b"SECRET" not in text
        for line in text.splitlines():
            json.loads(line)
    assert "SECRET" not in machine.text().split("launch: session " + session)[1]


@case
def refusals_are_in_the_log(machine, watch):
    """What was refused, and why by name; never the sentence, which may quote what was asked."""
    fresh()
    with Caller(USER) as user, Caller(OTHER) as other:
        refused("BadRequest", "not known", user.launch, b"run", agent="SECRET")
        refused("BadConfiguration", "SECRET", user.launch, b"run", environment=[b"CLAUDE_SANDBOX_NO_FORGE=SECRET"])
        session, _, _ = user.launch(b"run")
        refused("NoSuchSession", "manage-sessions", other.manager, "StopSession", "sa{sv}", session, {})
        found = [e for e in events(user) if e[1] == "refused"]
        assert [e[4]["error"] for e in found] == ["BadRequest", "BadConfiguration"], found
        assert all(e[4]["member"] == "Launch" and e[3] == "" for e in found), found
        theirs = events(other)
        assert [(e[1], e[2], e[3], e[4]) for e in theirs] == [
            ("refused", OTHER, "", {"user": pwd.getpwuid(OTHER).pw_name, "about": session, "member": "StopSession", "error": "NotAuthorized"})], theirs
    for name in os.listdir(LOG):
        with open(f"{LOG}/{name}", "rb") as f:
            assert b"SECRET" not in f.read()


@case
def everybody_sees_their_own(machine, watch):
    """A user is told of their own sessions, asked and signalled; root of all."""
    fresh()
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        mine, theirs, both = Watch(watch, USER), Watch(watch, OTHER), Watch(watch, 0)
        session, _, _ = user.launch(b"run")
        second, _, _ = other.launch(b"run")
        wait_for(lambda: kinds(user) == kinds(other) == ["launch", "posture"], "what was said")
        assert {e[3] for e in events(user)} == {session} and {e[3] for e in events(other)} == {second}
        assert events(other, session) == [] and len(events(root, session)) == 2
        everything = events(root)
        assert {e[3] for e in everything} == {session, second} and len(everything) == 4
        assert [e[0] for e in everything] == sorted(e[0] for e in everything)
        both.expect("Event")
        for watcher, n in ((mine, 2), (theirs, 2), (both, 4)):
            wait_for(lambda w=watcher, n=n: w.read(0.01) is None or sum("Event " in line for line in w.lines) == n,
                     "the signals")
            watcher.close()
        refused("BadRequest", "16 characters", user.manager, "ListEvents", "sa{sv}", "../../etc/passwd", {})
        refused("BadRequest", "other", user.manager, "ListEvents", "sa{sv}", "", {"other": 1})
    assert stat.S_IMODE(os.stat(LOG).st_mode) == 0o700
    assert all(stat.S_IMODE(os.stat(f"{LOG}/{name}").st_mode) == 0o600 for name in os.listdir(LOG))


@case
def the_log_outlives_everything(machine, watch):
    """A killed service, a torn line, garbage, a full file: what was whole is still told."""
    fresh()
    path = f"{LOG}/{USER}.log"
    with Caller(USER) as user:
        session, _, _ = user.launch(b"run")
        wait_for(lambda: kinds(user) == ["launch", "posture"], "the posture")
        end_service()
        with open(path, "ab") as f:
            f.write(b"\n\0\xff garbage\n" + b'{"time":1,"event":"launch","uid":')
        assert kinds(user) == ["launch", "posture", "adopted"]
        user.close_fds()
        nothing_left(user)
        assert kinds(user) == ["launch", "posture", "adopted", "exit"]
        with open(path, "rb") as f:
            assert f.read().count(b'"launch"') == 1, "what was torn is cut off"
        line = b'{"time":%d,"event":"refused","uid":1000,"session":"","member":"' + b"x" * 900 + b'"}\n'
        with open(path, "ab") as f:
            for i in range(1100):
                f.write(line % (10**15 + i))
        before = os.path.getsize(path)
        user.launch(b"exit")
        nothing_left(user)
        assert os.path.getsize(path + ".1") == before and os.path.getsize(path) < 4096
        found = events(user)
        assert len(found) == 1000 and [e[1] for e in found[-3:]][-1] == "exit", found[-3:]
        # an old one of a session is found behind all of that
        assert kinds(user, session)[0] == "launch"


@case
def an_end_that_no_service_saw(machine, watch):
    """A session that ended without a service, or with the machine, has an exit in the log, and one only."""
    fresh()
    with Caller(USER) as user:
        for how in ("service", "machine"):
            session, _, _ = user.launch(b"run")
            wait_for(lambda: kinds(user)[-1] == "posture", "the posture")
            end_service()
            for pid in processes("session"):
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not processes("session"), "the session's end")
            if how == "machine":
                shutil.rmtree("/run/claude-sandbox")
            assert kinds(user, session) == ["launch", "posture", "exit"], how
            ended = events(user, session)[-1]
            assert ended[2] == USER and ended[4]["status"] == "unknown" and ended[4]["agent"] == "shell", ended
            assert ("while no service ran" if how == "service" else "the machine was shut down") in ended[4]["why"], ended
            assert ended[4]["user"] == pwd.getpwuid(USER).pw_name, ended
            end_service()
            assert kinds(user, session) == ["launch", "posture", "exit"], how
        # sessions that go on are none of those
        session, _, _ = user.launch(b"run")
        end_service()
        assert "exit" not in kinds(user, session)
        user.close_fds()
        nothing_left(user)


@case
def a_log_on_a_full_disk(machine, watch):
    """A line is written whole or not at all, and the log goes on when there is room again."""
    fresh()
    path = f"{LOG}/{USER}.log"
    os.mkdir(LOG, 0o700)
    run("mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs", LOG)
    try:
        line = b'{"time":%d,"event":"refused","uid":1000,"session":"","member":"' + b"x" * 900 + b'"}\n'
        with open(path, "wb") as f:
            f.write(b"".join(line % (10**15 + i) for i in range(16)))
        os.chmod(path, 0o600)
        with Caller(USER) as user:
            before = machine.text().count("the audit log is not kept")
            for _ in range(20):
                refused("BadRequest", "", user.launch, b"run", agent="x" * 900)
            assert os.path.getsize(path) < 16 << 10, "it did not fit"
            assert machine.text().count("the audit log is not kept") == before + 1
            with open(path, "rb") as f:
                whole = f.read()
            assert whole.endswith(b"\n") and all(json.loads(line) for line in whole.splitlines()), whole[-200:]
            run("mount", "-o", "remount,size=64k", LOG)
            user.launch(b"exit")
            nothing_left(user)
            assert kinds(user)[-1] == "exit"
            with open(path, "rb") as f:
                assert f.read().startswith(whole)
        end_service()
    finally:
        run("umount", "-l", LOG)


@case
def a_full_run(machine, watch):
    """What is full is named, with what to do."""
    sessions = "/run/claude-sandbox/sessions"
    with Caller(USER) as user:
        assert user.manager("ListSessions") == []
        run("mount", "-t", "tmpfs", "-o", "size=4k,mode=711", "tmpfs", sessions)
        try:
            with open(f"{sessions}/full", "wb") as f:
                f.write(b"x" * 4096)
            refused("JailUnavailable", f"{sessions} cannot be written: No space left on device; free space there", user.launch, b"run")
            os.unlink(f"{sessions}/full")
            wait_for(lambda: not processes("session") and os.listdir(sessions) == [], "nothing is left of it")
        finally:
            run("umount", sessions)


@case
def a_log_that_is_not_ours(machine, watch):
    """Links and files of others in its place are not written to, and stop nobody."""
    fresh()
    os.mkdir(LOG, 0o700)
    os.symlink("/var/log/victim", f"{LOG}/{USER}.log")
    with open("/var/log/victim", "w", encoding="ascii") as f:
        f.write("as it was\n")
    with Caller(USER) as user:
        before = machine.text().count("the audit log is not kept")
        user.launch(b"exit")
        nothing_left(user)
        assert events(user) == []
        assert machine.text().count("the audit log is not kept") == before + 1
        os.unlink(f"{LOG}/{USER}.log")
        os.link("/var/log/victim", f"{LOG}/{USER}.log")
        user.launch(b"exit")
        nothing_left(user)
        os.unlink(f"{LOG}/{USER}.log")
        os.mkfifo(f"{LOG}/{USER}.log")
        user.launch(b"exit")
        nothing_left(user)
        assert events(user) == []
    with open("/var/log/victim", encoding="ascii") as f:
        assert f.read() == "as it was\n"
    fresh()
    os.mkdir(LOG, 0o777)
    os.chown(LOG, OTHER, OTHER)
    with Caller(USER) as user:
        user.launch(b"exit")
        nothing_left(user)
        refused("org.freedesktop.DBus.Error.Failed", "cannot be read", events, user)
        assert os.listdir(LOG) == []
    shutil.rmtree(LOG)


@case
def the_journal_gets_each_event(machine, watch):
    """Where a journal is it has each event, with an id that stays; one that is full makes nobody wait."""
    fresh()
    os.makedirs(os.path.dirname(JOURNAL))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal, Caller(USER) as user:
        journal.bind(JOURNAL)
        session, _, _ = user.launch(b"exit", environment=[b"A=SECRET"])
        nothing_left(user)
        found = []
        while select.select([journal], [], [], 0)[0]:
            text = journal.recv(65536).decode()
            found.append(dict(line.split("=", 1) for line in text.rstrip("\n").split("\n")))
        first = found[0]
        assert first["MESSAGE_ID"] == "7c60de48b405498988d422b9d1855e1b", first
        assert first["CLAUDE_SANDBOX_EVENT"] == "launch" and first["CLAUDE_SANDBOX_SESSION"] == session, first
        assert first["CLAUDE_SANDBOX_UID"] == str(USER) and first["CLAUDE_SANDBOX_WORKSPACE"] == "/tmp", first
        assert found[-1]["MESSAGE_ID"] == "638f41ca788b439297324358b5c14cfe", found
        assert "launch: session " + session not in machine.text() and "SECRET" not in str(found)
        # nobody reads it any more
        for _ in range(300):
            refused("BadRequest", "", user.launch, b"run", agent="x")
        assert kinds(user).count("refused") == 300
    os.unlink(JOURNAL)


@case
def denials_are_told_and_summed_up(machine, watch):
    """A destination is an event when it is tried first; at the end all of them are one."""
    fresh()
    with Caller(USER) as user:
        user.launch(b"denied")
        nothing_left(user)
        *new, found = [e for e in events(user) if e[1] == "denied"]
        # what is no address is no destination
        assert [e[4].get("to") for e in new] == ["tcp 10.0.0.2:22 (ssh)"], new
        assert found[4]["attempts"] == "12 or more", found
        assert found[4]["most"].startswith("tcp 10.0.0.2:22 (ssh), ") and "\x1b" not in found[4]["most"], found


@case
def a_scan_is_told_in_few_lines(machine, watch):
    """Of many destinations at once twenty are events, and how many more there were; each is told once."""
    fresh()
    with Caller(USER) as user:
        user.launch(b"scan")
        nothing_left(user)
        new = [e[4] for e in events(user) if e[1] == "denied" and "attempts" not in e[4]]
        one_by_one = [e["to"] for e in new if "to" in e]
        more = [int(e["destinations"].split()[0]) for e in new if "destinations" in e]
        assert one_by_one[0] == "tcp 169.254.169.254:80 (curl)" and len(set(one_by_one)) == len(one_by_one), one_by_one
        assert len(one_by_one) + sum(more) == 102 and 20 <= len(one_by_one) < 102, (len(one_by_one), more)
