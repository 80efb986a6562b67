# SPDX-License-Identifier: MIT
"""Launch: who gets which session, and who gets none."""

import ctypes
import grp

from fixture import *  # noqa: F403
from fixture import DEADLINE, OTHER, USER, case, refused

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
CAP_SYS_PTRACE = 19
CAP_SYS_ADMIN = 21
CLONE = {"user": 0x10000000, "mount": 0x20000, "network": 0x40000000}


@case
def activation_and_root(machine, watch):
    """The bus starts the service; root gets a session with root's identity and nothing else."""
    with Caller(0) as root:
        session, path, lifeline = root.launch(b"run", b"\xff\n", b"")
        assert len(session) == 16 and path == PATH + "/session/" + session and "fd" in lifeline
        facts = warnings(root, path, "fd 6")
        assert "uid 0 gid 0" in facts, facts
        assert "argument 2 bytes" in facts and "argument 0 bytes" in facts, facts
        assert "leads 1" in facts and "environment 0" in facts, facts
        fds = [int(line.split()[1]) for line in facts if line.startswith("fd ")]
        assert fds == [0, 1, 2, 3, 5, 6, 10, 11], fds
        assert root.manager("ListSessions")[0][0] == session
        root.manager("StopSession", "sa{sv}", session, {})
        assert root.manager("ListSessions") == []
        assert os.listdir("/run/claude-sandbox/sessions") == []


@case
def identity_of_an_ordinary_user(machine, watch):
    """uid, gid, groups less deny-group, umask, limits and nice are the caller's."""
    denied = grp.getgrnam("adm").gr_gid

    def before():
        import resource
        os.nice(3)
        os.umask(0o027)
        resource.setrlimit(resource.RLIMIT_NOFILE, (540, 550))

    with Caller(USER, groups=[USER, 4321, denied], prepare=before) as user:
        session, path, _ = user.launch(b"run", fds={0: "null", 2: "pipe"})
        facts = warnings(user, path, "fd 9")
        assert f"uid {USER} gid {USER}" in facts, facts
        assert sorted(f for f in facts if f.startswith("group ")) == [f"group {USER}", "group 4321"], facts
        assert "files 540 550" in facts and "nice 3" in facts and "umask 027 asked 027" in facts, facts
        assert "terminals 0 descriptors 5" in facts, facts
        fds = {line.split()[1]: line.split()[3] for line in facts if line.startswith("fd ")}
        assert list(fds) == ["0", "1", "2", "3", "5", "6", "7", "9", "10", "11"], fds
        assert all(int(fds[name], 8) & os.O_ACCMODE == os.O_RDONLY for name in ("10", "11")), fds
        assert fds["7"] == "20000" and fds["9"] == "10000", fds
        assert user.get(path, SESSION, "User") == "cloudsdk"
        user.call(path, SESSION, "Stop")


@case
def nothing_that_the_caller_lacks(machine, watch):
    """A session can gain no privilege that its caller cannot: its bounding set, and no set-id program at all."""
    with Caller(USER) as user:
        _, path, _ = user.launch(b"run")
        facts = warnings(user, path, "bounding set of")
        assert f"bounding set of {bounding_set()}, no new privileges 1" in facts, facts

    def confine():
        for n in range(64):
            libc.prctl(24, n, 0, 0, 0)      # PR_CAPBSET_DROP

    with Caller(USER, prepare=confine) as user:
        _, path, _ = user.launch(b"run")
        assert "bounding set of 0, no new privileges 1" in warnings(user, path, "bounding set of")


def bounding_set():
    return sum(libc.prctl(23, n, 0, 0, 0) == 1 for n in range(64))     # PR_CAPBSET_READ


@case
def primary_group_is_never_believed(machine, watch):
    """A primary group that is denied is replaced by the account's own, and refused where that is denied too."""
    sudo = grp.getgrnam("sudo").gr_gid
    with Caller(USER, gid=sudo, groups=[USER, sudo]) as user:
        _, path, _ = user.launch(b"run")
        facts = warnings(user, path, "leads")
        assert f"uid {USER} gid {USER}" in facts and f"group {sudo}" not in facts, facts
    with Caller(USER, gid=sudo, groups=[sudo]) as user:
        refused("NotAuthorized", "deny-group", user.launch, b"run")


@case
def directories_are_made_and_checked(machine, watch):
    """The temp root belongs to root, what is below to its user; links and squatters get nothing."""
    with Caller(USER) as user:
        user.launch(b"run", agent="claude")
        for path, uid, mode in (("/var/tmp/claude-agent", 0, 0o711), (f"/var/tmp/claude-agent/{USER}", USER, 0o700),
                                ("/run/claude-sandbox", 0, 0o755), ("/run/claude-sandbox/sessions", 0, 0o711),
                                (f"/run/claude-sandbox/users/{USER}", 0, 0o711),
                                (f"/run/claude-sandbox/users/{USER}/guard", 0, 0o600),
                                (f"/run/claude-sandbox/users/{USER}/state", 0, 0o600)):
            st = os.lstat(path)
            assert (st.st_uid, st.st_mode & 0o7777) == (uid, mode), (path, st)
        session = os.listdir("/run/claude-sandbox/sessions")[0]
        for name in ("link", "record"):
            st = os.lstat(f"/run/claude-sandbox/sessions/{session}/{name}")
            assert st.st_uid == 0 and st.st_mode & 0o7777 == 0o600, (name, st)
        shutil.rmtree("/var/tmp/claude-agent")
        os.symlink("/tmp", "/var/tmp/claude-agent")
        user.launch(b"run", agent="claude")
        assert not os.path.lexists(f"/tmp/{USER}")
        os.unlink("/var/tmp/claude-agent")
        os.mkdir("/var/tmp/claude-agent")
        os.chown("/var/tmp/claude-agent", OTHER, OTHER)
        user.launch(b"run", agent="claude")
        assert os.listdir("/var/tmp/claude-agent") == []
        os.rmdir("/var/tmp/claude-agent")


@case
def descriptors(machine, watch):
    """Files, pipes, streams and new terminals are passed; everything else is refused by what it is."""
    with Caller(USER) as user:
        for good in ("null", "file", "pipe", "stream", "pty", "memfd"):
            _, path, _ = user.launch(b"run", fds={1: good})
            facts = warnings(user, path, "fd 8")
            assert f"terminals {2 if good == 'pty' else 0} descriptors 2" in facts, (good, facts)
        for bad, words in (("directory", "a directory"), ("path", "O_PATH"), ("datagram", "no stream"),
                           ("pidfd", "object of the kernel"), ("eventfd", "object of the kernel"),
                           ("epoll", "object of the kernel"), ("master", "not the slave"), ("status", "/proc"),
                           ("mem", "/proc"), ("namespace", "/proc")):
            for key in (0, 2):
                refused("BadRequest", words, user.launch, b"run", fds={key: bad})
        for good in ("file", "pipe", "memfd"):
            _, path, _ = user.launch(b"run", fds={63: good})
            warnings(user, path, "fd 13")
        for bad in ("null", "stream", "pty", "directory", "eventfd", "epoll", "pidfd"):
            refused("BadRequest", "Descriptor 63 is neither a file nor a pipe", user.launch, b"run", fds={63: bad})
        for bad in ("status", "mem", "namespace"):
            refused("BadRequest", "Descriptor 63 is a file of /proc", user.launch, b"run", fds={63: bad})
        refused("BadRequest", "Descriptor 63", user.launch, b"run", fds={63: "path"})
        refused("BadRequest", "255 is the last", user.launch, b"run", fds={256: "file"})
        refused("BadRequest", "another terminal", user.launch, b"run", fds={0: "pty", 1: "pty-2"})
        refused("BadRequest", "own terminal", user.launch, b"run", fds={0: "tty"})
    with Caller(0) as root:
        refused("BadRequest", "a device", root.launch, b"run", fds={0: "tun"})
        refused("BadRequest", "a device", root.launch, b"run", fds={0: "kmsg"})


@case
def shapes_and_bounds(machine, watch):
    """What no program could be started with, and what no message should hold, is refused and named."""
    with Caller(USER) as user:
        refused("LimitsExceeded", "longer than 131071", user.launch, b"run", b"x" * (128 * 1024))
        user.launch(b"run", b"x" * (128 * 1024 - 1))
        refused("LimitsExceeded", "too long", user.launch, b"run", *[b"y" * 100000] * 21)
        refused("LimitsExceeded", "too long", user.launch, b"run", *[b"y" * 100000] * 40)
        refused("LimitsExceeded", "too long", user.launch, b"run", environment=[b""] * 70000)
        refused("BadRequest", "NUL", user.launch, b"a\0b")
        refused("BadRequest", "absolute", user.launch, b"run", cwd=b"tmp")
        refused("BadRequest", "absolute", user.launch, b"run", cwd=b"")
        refused("LimitsExceeded", "too long", user.launch, b"run", cwd=b"/" + b"x" * 4096)
        refused("BadRequest", "'colour'", user.launch, b"run", options={"colour": "red"})
        refused("BadRequest", "1 to 64", user.launch, b"run", agent="")
        refused("BadRequest", "claude, codex, pi, shell", user.launch, b"run", agent="emacs")
        _, path, _ = user.launch(b"run", b"\xff\xfe\n", cwd=b"/tmp/\xff")
        assert user.get(path, SESSION, "Workspace") == b"/tmp/\xff"
        assert user.manager("ListSessions")[0][5] == b"/tmp/\xff"
        error = refused("org.freedesktop.DBus.Error.InvalidArgs", "", user.manager, "Launch", "s", "shell")
        assert error.message
        user.launch(b"run")


def unshare(what):
    def prepare():
        assert libc.unshare(CLONE[what]) == 0, ctypes.get_errno()
    return prepare


def unshare_user():
    uid = os.getuid()
    unshare("user")()
    with open("/proc/self/uid_map", "w", encoding="ascii") as f:
        f.write(f"{uid} {uid} 1")


def unshare_mapped(*maps):
    """In a user namespace of the user's own for which root wrote every id into each of maps. Return: options of Caller."""
    made, wrote = os.pipe(), os.pipe()

    def prepare():
        pid = os.getpid()
        if os.fork() == 0:
            os.read(made[0], 1)
            for name in maps:
                with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as f:
                    f.write("0 0 4294967295")
            os.write(wrote[1], b"1")
            os._exit(0)

    def after():
        unshare("user")()
        os.write(made[1], b"1")
        assert select.select([wrote[0]], [], [], DEADLINE)[0], "root wrote no map"
    return {"prepare": prepare, "after": after}


def no_new_privs():
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0


def seccomp():
    # one instruction: SECCOMP_RET_ALLOW
    program = struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)
    buffer = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxQ", 1, ctypes.addressof(buffer))
    assert libc.prctl(PR_SET_SECCOMP, 2, header, 0, 0) == 0


def change_root(to):
    def prepare():
        for source, target in (("/", "/run/root"), ("/run/dbus", "/run/bare/run/dbus")):
            os.makedirs(target, exist_ok=True)
            if not os.path.ismount(target):
                run("mount", "--rbind", "--make-rslave", source, target)
        os.chroot(to)
        os.chdir("/")
    return prepare


def drop(capability):
    def prepare():
        assert libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
    return prepare


def in_new_pid_namespace():
    assert libc.unshare(0x20000000) == 0
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)


def confined_callers_are_refused():
    for uid, options, words in (
            (USER, {"after": unshare_user}, "user namespace"), (0, {"prepare": unshare("mount")}, "mount namespace"),
            (USER, {"prepare": unshare("mount")}, "mount namespace"),
            (USER, unshare_mapped("uid_map", "gid_map"), "user namespace"),
            (USER, {"prepare": unshare("network")}, "network namespace"),
            (0, {"prepare": change_root("/run/root")}, "root directory"),
            (USER, {"prepare": change_root("/run/root")}, "root directory"),
            (USER, {"prepare": change_root("/run/bare")}, "root directory"),
            (USER, {"prepare": no_new_privs}, "no_new_privs"), (0, {"prepare": seccomp}, "seccomp"),
            (USER, {"prepare": seccomp}, "seccomp"), (0, {"prepare": drop(CAP_SYS_ADMIN)}, "capabilities"),
            (USER, {"prepare": in_new_pid_namespace}, "pid namespace")):
        with Caller(uid, **options) as caller:
            refused("NestedCaller", words, caller.launch, b"run")
            if words != "pid namespace":
                assert isinstance(caller.manager("ListSessions"), list)
    with Caller(33) as www:
        refused("NestedCaller", "no login shell", www.launch, b"run")
    for when in ("now", "later"):
        with Caller(USER) as caller:
            caller.start("leave-to-child", when)
            refused("NestedCaller", "has ended", caller.finish)
    assert processes("session") == []


@case
def confined_callers(machine, watch):
    """Who lives in other namespaces or another root, or is confined otherwise, cannot leave it by a session."""
    confined_callers_are_refused()
    with Caller(USER, **unshare_mapped("uid_map", "gid_map", "projid_map")) as caller:
        refused("NestedCaller", "user namespace", caller.launch, b"run")


@case
def confined_callers_of_a_service_that_traces_nobody(machine, watch):
    """A container gives no CAP_SYS_PTRACE: the same are refused, and an ordinary user is not."""
    with machine.service_confined(drop(CAP_SYS_PTRACE)):
        with Caller(USER) as user, Caller(0) as root:
            for caller in (user, root):
                session = caller.launch(b"run")[0]
                caller.manager("StopSession", "sa{sv}", session, {})
            look = f"setpriv --bounding-set -sys_ptrace --inh-caps -all readlink /proc/{user.pid}/ns/user"
            assert subprocess.run(look.split(), capture_output=True, check=False).returncode != 0, "it could be traced"
            with open(f"/proc/{service()}/status", encoding="ascii") as f:
                capabilities = [int(line.split()[1], 16) for line in f if line.startswith("CapPrm:")][0]
            assert capabilities & 1 << CAP_SYS_PTRACE == 0 and capabilities & 1 << CAP_SYS_ADMIN, f"{capabilities:x}"
        confined_callers_are_refused()


@case
def callers_with_more_seccomp_filters_than_the_service(machine, watch):
    """In a container the service has a filter itself: who has another one besides is confined further."""
    def two():
        seccomp()
        seccomp()

    with machine.service_confined(seccomp):
        with Caller(USER, prepare=seccomp) as caller:
            caller.manager("StopSession", "sa{sv}", caller.launch(b"run")[0], {})
        with Caller(USER, prepare=two) as caller:
            refused("NestedCaller", "seccomp", caller.launch, b"run")


@case
def configuration_is_strict(machine, watch):
    """A file that is not root's alone, or does not parse, refuses every launch and says so."""
    with Caller(USER) as user, Caller(0) as root:
        def check(words):
            refused("BadConfiguration", words, user.launch, b"run")
            refused("BadConfiguration", words, root.launch, b"run")
            assert words in user.get(PATH, MANAGER, "ConfigError")

        machine.configure("no-forge\ncolour = red\n")
        check("/etc/claude-sandbox.conf:2")
        refused("BadConfiguration", "/etc/claude-sandbox.conf:2", user.manager, "GetPolicy")
        machine.configure("no-forge\n", mode=0o666)
        check("chmod go-w")
        machine.configure("no-forge\n")
        os.chown("/etc/claude-sandbox.conf", USER, USER)
        check("must be root's")
        machine.unconfigure()
        os.symlink("/etc/passwd", "/etc/claude-sandbox.conf")
        check("symbolic link")
        machine.unconfigure()
        os.mkfifo("/etc/claude-sandbox.conf")
        check("regular file")
        machine.unconfigure()
        os.mkdir("/etc/claude-sandbox.conf")
        check("regular file")
        os.rmdir("/etc/claude-sandbox.conf")
        machine.configure("# " + "x" * 300000)
        check("longer than")
        machine.unconfigure()
        assert user.get(PATH, MANAGER, "ConfigError") == ""
        user.launch(b"run")


@case
def policy_and_addresses(machine, watch):
    """GetPolicy and ListAllowIp are read off the file."""
    machine.configure("allow-ip = 10.1.2.3 # printer\nmax-sessions = 3\n")
    with Caller(USER) as user:
        assert user.manager("ListAllowIp") == [["10.1.2.3", "printer", "/etc/claude-sandbox.conf:1"]]
        policy = {row[0]: row[1:] for row in user.manager("GetPolicy")}
        assert policy["max-sessions"] == ["3", "/etc/claude-sandbox.conf:2"], policy
        assert policy["egress-jail"][1] == "default", policy


@case
def environment_does_not_widen(machine, watch):
    """A variable that asks for more is refused by name; one that narrows is not."""
    with Caller(USER) as user:
        refused("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", "CLAUDE_SANDBOX_ALLOW_IP", user.launch, b"run",
                environment=[b"CLAUDE_SANDBOX_ALLOW_IP=10.0.0.1"])
        refused("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", "CLAUDE_SANDBOX_PASS_ENV", user.launch, b"run",
                environment=[b"CLAUDE_SANDBOX_PASS_ENV=SECRET"])
        refused("BadConfiguration", "CLAUDE_SANDBOX_NO_FORGE", user.launch, b"run",
                environment=[b"CLAUDE_SANDBOX_NO_FORGE=perhaps"])
        user.launch(b"run", environment=[b"CLAUDE_SANDBOX_NO_FORGE=1"])
    with Caller(0) as root:
        root.launch(b"run", environment=[b"CLAUDE_SANDBOX_ALLOW_IP=10.0.0.1"])


@case
def max_sessions(machine, watch):
    """max-sessions counts for each user, and those that start count too."""
    machine.configure("max-sessions = 2\n")
    with Caller(USER) as user, Caller(OTHER) as other, Caller(USER) as second:
        user.launch(b"run")
        second.launch_start(b"silent")
        wait_for(lambda: len(processes("session")) == 2, "the second session")
        refused("LimitsExceeded", "max-sessions", user.launch, b"run")
        other.launch(b"run")


@case
def accounts_that_change(machine, watch):
    """A change of /etc/passwd holds at once, whichever way; who was refused is asked about anew."""
    with open("/etc/passwd", encoding="utf-8") as f:
        before = f.read()

    def accounts(text):
        with open("/etc/passwd.new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename("/etc/passwd.new", "/etc/passwd")

    with Caller(USER) as user:
        user.launch(b"exit")
        try:
            accounts(f"closed:x:{USER}:{USER}::/home/closed:/usr/sbin/nologin\n" + before)
            refused("NestedCaller", "login", user.launch, b"exit")
        finally:
            accounts(before)
        user.launch(b"exit")
        nothing_left(user)
