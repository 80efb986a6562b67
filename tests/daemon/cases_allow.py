# SPDX-License-Identifier: MIT
"""Addresses: the file, the sessions that are told, and those that do not listen."""

from fixture import *  # noqa: F403
from fixture import OTHER, USER, Caller, Watch, case, end_service, refused, wait_for, warnings

CONFIG = "/etc/claude-sandbox.conf"


def text():
    with open(CONFIG, "rb") as f:
        return f.read()


def add(caller, address, comment="", **options):
    return caller.manager("AddAllowIp", "ssa{sv}", address, comment, options)


def remove(caller, address):
    return caller.manager("RemoveAllowIp", "s", address)


def lives(caller, session):
    return any(row[0] == session for row in caller.manager("ListSessions"))


@case
def every_session_is_told(machine, watch):
    """Each confirms; the file is what it was but for the line; subscribers hear of it."""
    machine.configure("gpu # \xff\nallow-ip = 10.0.0.1")
    before = text()
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        paths = [user.launch(b"run")[1], user.launch(b"run")[1], other.launch(b"run")[1]]
        hears = Watch(watch, OTHER)
        start = time.monotonic()
        assert add(root, "10.1.2.3/32", "a printer") == []
        assert time.monotonic() - start < 1.5
        assert text() == before + b"\nallow-ip = 10.1.2.3  # a printer"
        hears.expect("AllowIpChanged")
        hears.close()
        for path in paths:
            warnings(root, path, "allow 110.1.2.3 usec 0")
        assert root.manager("ListAllowIp") == [["10.0.0.1", "", CONFIG + ":2"], ["10.1.2.3", "a printer", CONFIG + ":3"]]
        assert remove(root, "10.1.2.3") == []
        assert text() == before
        for path in paths:
            warnings(root, path, "revoke 110.1.2.3 usec 0")
        # a comment alone concerns no session
        assert add(root, "10.0.0.1", "router") == []
        assert b"10.0.0.1  # router" in text()


def opened():
    """A descriptor that tells what is opened below /etc (inotify(7))."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert libc.inotify_add_watch(fd, b"/etc", 0x20) >= 0       # IN_OPEN
    return fd


def count_opened(fd, name):
    data, names = os.read(fd, 1 << 20), []
    while data:
        length = struct.unpack_from("iIII", data)[3]
        names.append(data[16:16 + length].rstrip(b"\0").decode())
        data = data[16 + length:]
    return names.count(name)


@case
def the_file_is_opened_once(machine, watch):
    """Of one change, however many sessions there are, and each of them gets one packet, with the whole list."""
    machine.configure("allow-ip = 10.0.0.1\n")
    with Caller(USER) as user, Caller(0) as root:
        paths = [user.launch(b"run")[1] for _ in range(4)]
        # one that has just been written by somebody else is read again
        wait_for(lambda: time.time() - os.stat(CONFIG).st_ctime > 0.1, "a file that is not new")
        root.manager("ListAllowIp")
        for change, told in ((lambda: add(root, "10.1.2.3"), "told of 2"), (lambda: remove(root, "10.1.2.3"), "told of 1")):
            fd = opened()
            assert change() == []
            for path in paths:
                warnings(root, path, told)
            looked(root)
            assert count_opened(fd, "claude-sandbox.conf") == 1
            os.close(fd)
        for path in paths:
            assert len([fact for fact in root.get(path, SESSION, "Warnings") if fact.startswith("told of")]) == 2


@case
def the_deaf_are_named_and_ended(machine, watch):
    """Two seconds, whatever they do: named when an address is added, ended when one is removed; nobody else waits."""
    machine.configure("allow-ip = 10.0.0.9\n")
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        deaf = [user.launch(act)[0] for act in (b"deaf-reach", b"refuse-reach", b"deaf-reach")]
        good, path, _ = other.launch(b"run")
        start = time.monotonic()
        root.start(PATH, MANAGER, "AddAllowIp", "ssa{sv}", "10.1.2.3", "", {})
        warnings(other, path, "allow 110.1.2.3")
        assert time.monotonic() - start < 1.5
        assert sorted(root.finish()) == sorted(deaf)
        assert 1.5 < time.monotonic() - start < 3.5, time.monotonic() - start
        assert b"10.1.2.3" in text()
        start = time.monotonic()
        assert sorted(remove(root, "10.0.0.9")) == sorted(deaf)
        assert time.monotonic() - start < 3.5
        wait_for(lambda: not any(lives(root, session) for session in deaf), "their end")
        assert lives(root, good)
        assert remove(root, "10.1.2.3") == []


@case
def only_who_may(machine, watch):
    """Without polkit only root changes anything; to close one's own address needs nobody."""
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        _, path, _ = user.launch(b"run")
        refused("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", "edit-allow-ip", add, user, "10.1.2.3")
        refused("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", "edit-allow-ip", user.call, path, SESSION, "AllowIp", "sta{sv}",
                "10.1.2.3", 5, {})
        assert not os.path.exists(CONFIG)
        root.call(path, SESSION, "AllowIp", "sta{sv}", "10.1.2.3", 5, {})
        warnings(user, path, "allow 010.1.2.3 usec 5000000")
        assert user.manager("ListAllowIp") == [["10.1.2.3", "comment \\x1b[2J", "session " + path.rsplit("/", 1)[1]]]
        assert other.manager("ListAllowIp") == []
        user.call(path, SESSION, "RevokeIp", "s", "10.1.2.3")
        warnings(user, path, "revoke 010.1.2.3")
        refused("org.freedesktop.DBus.Error.UnknownObject", "", other.call, path, SESSION, "RevokeIp", "s", "10.1.2.3")
        refused("BadRequest", "at most", root.call, path, SESSION, "AllowIp", "sta{sv}", "10.1.2.3",
                1 << 60, {})


@case
def sessions_that_refuse_or_lie(machine, watch):
    """A session's own words reach the caller as text; rows that are no addresses reach nobody."""
    with Caller(USER) as user, Caller(0) as root:
        _, path, _ = user.launch(b"refuse-reach")
        error = refused("BadRequest", "because \\x1b[1m of that", root.call, path, SESSION, "AllowIp", "sta{sv}",
                        "10.1.2.3", 5, {})
        assert "\x1b" not in str(error)
        _, path, _ = user.launch(b"deaf-reach")
        refused("SessionSilent", "does not answer", root.call, path, SESSION, "RevokeIp", "s", "10.1.2.3")
        # it was allowed and said: whether it is done nobody knows
        event, = [e[4] for e in root.manager("ListEvents", "sa{sv}", path.rsplit("/", 1)[1], {}) if e[1] == "allow-ip"]
        assert (event["change"], event["address"], event["confirmed"]) == ("revoke", "10.1.2.3", "no"), event
        user.launch(b"lie-reach")
        assert root.manager("ListAllowIp") == []


def looked(caller):
    """The service has seen what was written: who writes in place once more empties the file for a moment."""
    for _ in range(2):
        caller.manager("ListSessions")


@case
def edits_by_hand(machine, watch):
    """Sessions follow the file, whoever changed it; one that no launch would read changes nothing."""
    with Caller(USER) as user:
        _, path, _ = user.launch(b"run")
        machine.configure("allow-ip = 10.1.2.3\nallow-ip = 10.1.2.4\n")
        warnings(user, path, "allow 110.1.2.4")
        machine.configure("allow-ip = 10.1.2.3\nrubbish\n")
        looked(user)
        machine.configure("allow-ip = 10.1.2.4\n", mode=0o666)
        looked(user)
        machine.configure("allow-ip = 10.1.2.4\nallow-ip = 10.1.2.5\n")
        warnings(user, path, "allow 110.1.2.5")
        warnings(user, path, "revoke 110.1.2.3")
        machine.unconfigure()
        warnings(user, path, "revoke 110.1.2.4")
        warnings(user, path, "revoke 110.1.2.5")
        facts = user.get(path, SESSION, "Warnings")
        # never closed and opened again by a file that was half written or refused
        assert len([fact for fact in facts if fact.startswith("allow 110.1.2.4")]) == 1, facts


@case
def sessions_taken_over_are_told(machine, watch):
    """After a restart a session gets what the file says by then."""
    machine.configure("allow-ip = 10.1.2.3\nallow-ip = 10.1.2.4\n")
    with Caller(USER) as user, Caller(0) as root:
        _, path, _ = user.launch(b"run")
        end_service()
        machine.configure("allow-ip = 10.1.2.4\nallow-ip = 10.1.2.5\n")
        user.manager("ListSessions")
        warnings(user, path, "revoke 110.1.2.3")
        facts = warnings(user, path, "allow 110.1.2.5")
        assert not any("10.1.2.4" in fact for fact in facts), facts
        assert remove(root, "10.1.2.4") == []


@case
def what_is_no_address(machine, watch):
    """Refused with the reason, before anything else."""
    with Caller(0) as root, Caller(USER) as user:
        for address, said in (("10.1.2.3/16", "10.1.0.0/16"), ("0.0.0.0/0", "default route"), ("127.0.0.1", "loopback"),
                              ("224.0.0.1", "multicast"), ("192.0.0.9", "192.0.0.0/24"), ("10.0.0.0/8", "too wide"),
                              ("::1", "not IPv4"), ("x\ny", "not an IPv4"), ("", "not an IPv4")):
            refused("BadRequest", said, add, root, address)
            refused("BadRequest", said, remove, root, address)
        refused("BadRequest", "one line", add, root, "10.1.2.3", "a\nallow-ip = 10.9.9.9")
        refused("BadRequest", "longer than", add, root, "10.1.2.3", "c" * 300)
        refused("BadRequest", "no allow-ip is 10.1.2.3", remove, root, "10.1.2.3")
        refused("BadRequest", "'nonsense'", add, root, "10.1.2.3", "", nonsense=True)
        assert add(user, "10.1.2.3", "only a check", check=True) == []
        refused("BadRequest", "too wide", add, user, "10.0.0.0/8", check=True)
        assert not os.path.exists(CONFIG)


@case
def odd_files(machine, watch):
    """A file that no launch would read is not edited; a missing one is made; owner and mode are kept."""
    with Caller(0) as root:
        for content, mode, said in ((b"rubbish\n", 0o644, ":1"), (b"", 0o666, "chmod"), (b"allow-ip = x\n", 0o644, ":1")):
            machine.configure(content.decode(), mode)
            refused("BadConfiguration", said, add, root, "10.1.2.3")
            assert text() == content and os.stat(CONFIG).st_mode & 0o777 == mode
        machine.configure("")
        os.chown(CONFIG, USER, 0)
        refused("BadConfiguration", "must be root's", add, root, "10.1.2.3")
        machine.unconfigure()
        os.symlink("/etc/passwd", CONFIG)
        refused("BadConfiguration", "symbolic link", add, root, "10.1.2.3")
        assert os.readlink(CONFIG) == "/etc/passwd"
        machine.unconfigure()
        assert add(root, "10.1.2.3") == []
        st = os.stat(CONFIG)
        assert (text(), st.st_mode & 0o7777, st.st_uid) == (b"allow-ip = 10.1.2.3\n", 0o644, 0)
        os.chown(CONFIG, 0, OTHER)
        os.chmod(CONFIG, 0o640)
        # what an earlier edit may have left
        os.symlink("/etc/passwd", "/etc/.claude-sandbox.conf.new")
        assert add(root, "10.1.2.4") == []
        st = os.stat(CONFIG)
        assert (st.st_mode & 0o7777, st.st_uid, st.st_gid) == (0o640, 0, OTHER)
        assert not os.path.lexists("/etc/.claude-sandbox.conf.new")
        assert os.stat("/run/claude-sandbox/allow-ip.lock").st_mode & 0o777 == 0o600


@case
def two_editors(machine, watch):
    """Calls at the same time all reach the file."""
    callers = [Caller(0) for _ in range(8)]
    for i, caller in enumerate(callers):
        caller.start(PATH, MANAGER, "AddAllowIp", "ssa{sv}", f"10.1.2.{i}", f"{i}", {})
    for caller in callers:
        assert caller.finish() == []
    assert text() == b"".join(b"allow-ip = 10.1.2.%d  # %d\n" % (i, i) for i in range(8)) or \
        sorted(text().splitlines()) == [b"allow-ip = 10.1.2.%d  # %d" % (i, i) for i in range(8)], text()
    for i, caller in enumerate(callers):
        caller.start(PATH, MANAGER, "RemoveAllowIp", "s", f"10.1.2.{i}")
    for caller in callers:
        caller.finish()
        caller.close()
    assert text() == b""


@case
def fifty_sessions(machine, watch):
    """All of them are told and confirm at once."""
    with Caller(USER) as user, Caller(0) as root:
        for _ in range(50):
            user.launch(b"run")
        start = time.monotonic()
        assert add(root, "10.1.2.3") == []
        assert remove(root, "10.1.2.3") == []
        print(f"     50 sessions: added and removed in {(time.monotonic() - start) * 1000:.0f} ms")
        assert time.monotonic() - start < 4
