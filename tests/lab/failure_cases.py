# SPDX-License-Identifier: MIT
"""
Every prerequisite and every group of system calls of the launch path failing, one at a time. Each: status 125, one
line with the innermost cause, nothing left, the service lives, and the next launch works.
"""

import errno
import json
import os
import random
import resource

import machine
import system
from case import CLAUDE, LONG, SANDBOX, Skip, equal, holds, processes, test, wait_for
from fault_cases import Leavings
from machine import ALICE, ROOT, User

LIBEXEC = "/usr/libexec/claude-sandbox"
SESSION, SERVICE, LAUNCH, INIT = (f"{LIBEXEC}/{name}" for name in ("session", "claude-sandboxd", "launch", "init"))
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
TUNSETIFF, TUNSETPERSIST, TUNSETTXFILTER = 0x400454CA, 0x400454CB, 0x400454D1
AF_NETLINK, AF_UNIX, NETLINK_ROUTE, NETLINK_SOCK_DIAG, SOL_NETLINK, AF_INET = 16, 1, 0, 4, 270, 2


def fail(call, error, *matches):
    """A line for the wrapper, and what the refusal must name."""
    number = getattr(errno, error)
    return f"fail {call} {number} {' '.join(str(match) for match in matches)}", os.strerror(number)


# name: (line for the wrapper and the cause, further words, users)
SESSION_CALLS = {
    "memfd_create": (fail("memfd_create", "EMFILE"), ["bwrap"]),
    "memfd_create_no_memory": (fail("memfd_create", "ENOMEM"), ["bwrap"]),
    "socketpair": (fail("socketpair", "EMFILE"), ["holder"]),
    "fork": (fail("clone", "EAGAIN"), ["process"]),
    "unshare_user_forbidden": (fail("unshare", "EPERM", 6, CLONE_NEWUSER), ["user namespace"]),
    "unshare_user_none_left": ((fail("unshare", "ENOSPC", 6, CLONE_NEWUSER)[0], "namespace"), ["max_user_namespaces"]),
    "unshare_user_unknown": (fail("unshare", "EINVAL", 6, CLONE_NEWUSER), ["CONFIG_USER_NS"]),
    "unshare_net_forbidden": (fail("unshare", "EPERM", 6, CLONE_NEWNET), ["network namespace"]),
    "unshare_net_none_left": ((fail("unshare", "ENOSPC", 6, CLONE_NEWNET)[0], "namespace"), []),
    "tun_attach_forbidden": ((fail("ioctl", "EPERM", 1, TUNSETIFF)[0], "tap"), ["user namespaces"]),
    "tun_attach_busy": ((fail("ioctl", "EBUSY", 1, TUNSETIFF)[0], "jail0 exists"), []),
    "tun_attach": (fail("ioctl", "ENOMEM", 1, TUNSETIFF), ["jail0"]),
    "tun_persist": (fail("ioctl", "EINVAL", 1, TUNSETPERSIST), ["jail0"]),
    "tun_filter": (fail("ioctl", "EINVAL", 1, TUNSETTXFILTER), ["filter"]),
    "netlink_socket": (fail("socket", "EPROTONOSUPPORT", 0, AF_NETLINK, 2, NETLINK_ROUTE), ["network"]),
    "diagnosis_socket": (fail("socket", "EPROTONOSUPPORT", 0, AF_NETLINK, 2, NETLINK_SOCK_DIAG), ["CONFIG_INET_DIAG"]),
    "packet_sockets": (fail("socket", "EACCES", 0, AF_INET), ["self-test"]),
    "netlink_bind": (fail("bind", "EADDRINUSE"), ["network"]),
    "netlink_send": (fail("sendmsg", "EACCES"), ["network"]),
    "netlink_options": (fail("setsockopt", "ENOPROTOOPT", 1, SOL_NETLINK), ["network"]),
    "openat2": (fail("openat2", "ENOSYS"), ["openat2"]),
    "openat2_filtered": (fail("openat2", "EPERM"), ["openat2"]),
    "execve": (fail("execve", "EACCES"), ["executed"]),
    "pidfd_open": (fail("pidfd_open", "ENOSYS"), ["watched"]),
    "pidfd_open_no_descriptors": (fail("pidfd_open", "EMFILE"), ["watched"]),
    "epoll_create": (fail("epoll_create1", "EMFILE"), ["cannot begin", "limits"]),
    "timerfd_create": (fail("timerfd_create", "EMFILE"), ["cannot begin", "limits"]),
    "signalfd": (fail("signalfd4", "EMFILE"), ["cannot begin", "limits"]),
    "listen": (fail("listen", "EADDRINUSE"), ["cannot begin"]),
    "no_new_privs": (fail("prctl", "EINVAL", 0, 38), ["cannot begin"]),
    "descriptor_copies": (fail("fcntl", "EMFILE", 1, 1030), []),
    "pipes": (fail("pipe2", "EMFILE"), ["pipe"]),
    "mounts": (fail("mount", "EPERM"), ["a security module"]),
    "pivot_root": (fail("pivot_root", "EPERM"), ["a security module"]),
    "setsid": (fail("setsid", "EPERM"), ["session of processes"]),
    "seccomp": (fail("seccomp", "EINVAL"), ["seccomp"]),
}

SERVICE_CALLS = {
    "memfd_create": (fail("memfd_create", "EMFILE"), ["request"]),
    "socketpair": (fail("socketpair", "ENFILE"), ["lifeline"]),
    "fork": (("\n".join(fail(call, "EAGAIN")[0] for call in ("clone3", "clone")), os.strerror(errno.EAGAIN)), ["process"]),
    "pipes": (fail("pipe2", "EMFILE"), []),
    "bind": (fail("bind", "ENOSPC"), ["/run/claude-sandbox"]),
    "setresuid": (fail("setresuid", "EAGAIN"), ["user and groups"]),
    "setgroups": (fail("setgroups", "EPERM"), ["user and groups"]),
    "keyring": (fail("keyctl", "EDQUOT"), ["keyring"]),
    "setsid": (fail("setsid", "EPERM"), ["setsid"]),
    "limits": (fail("prlimit64", "EINVAL"), ["limits"]),
    "descriptors": (fail("close_range", "EMFILE"), ["descriptors"]),
    "execve": (fail("execve", "EACCES"), [SESSION]),
    "record": (fail("renameat", "ENOSPC"), ["cannot be written", "free space"]),
    "random": (fail("getrandom", "ENOSYS"), []),
    # a session's socket, not the bus's: its path goes through a descriptor of one or two digits
    "connect": (("\n".join(fail("connect", "EACCES", 2, 2 + len("/proc/self/fd//link") + digits + 1)[0]
                           for digits in (1, 2)), os.strerror(errno.EACCES)), []),
}

LAUNCH_CALLS = {
    "epoll_create": (fail("epoll_create1", "EMFILE"), []),
    "signalfd": (fail("signalfd4", "EMFILE"), []),
    "socket": (fail("socket", "EMFILE", 0, AF_UNIX), ["bus"]),
    "connect": (fail("connect", "EACCES"), ["bus"]),
    "getcwd": ((fail("getcwd", "ENOENT")[0], "current directory"), ["change to another"]),
}

ENTRY_CALLS = {
    "memfd_create": (fail("memfd_create", "EMFILE"), ["launch cannot be started"]),
    "seals": (fail("fcntl", "EPERM", 1, 1033), ["launch cannot be started"]),
    "execve": (fail("execve", "EACCES"), ["launch"]),
}


def after(lab, leavings, what, pid):
    leavings.nothing_left(what)
    equal(lab.service_pid(), pid, f"{what}: the service lives")


def works_again(lab, what, users=(ALICE,)):
    for user in users:
        result = lab.shell("exit 4", user)
        equal((result.status, result.err), (4, b""), f"{what}: the next launch of {user}: {result!r}")


def session_call(name, row, users):
    (line, cause), words = row

    def run(lab):
        lab.shell("true").ok()
        leavings, pid = Leavings.now(lab), lab.service_pid()
        for user in users:
            lab.wrap(SESSION, line)
            result = lab.shell("echo STARTED", user, limit=40)
            lab.restore()
            result.refused(125, cause, *words)
            after(lab, leavings, f"{user}: {name}", pid)
        works_again(lab, name, users)
    run.__name__ = f"session_{name}"
    run.__module__ = __name__
    test(60, needs="bus")(run)


def service_call(name, row):
    (line, cause), words = row

    def run(lab):
        lab.undo.append(lab.stop_service)             # the last of what is undone: the real one is in its place then
        lab.stop_service()
        lab.wrap(SERVICE, line)
        lab.call("ListSessions", user=ALICE)
        leavings, pid = Leavings.now(lab), lab.service_pid()
        holds(pid, "the service runs in spite of it")
        for user in (ALICE, ROOT):
            result = lab.shell("echo STARTED", user, limit=70)
            result.refused(125, cause, *words)
            after(lab, leavings, f"{user}: {name}", pid)
        lab.restore()
        works_again(lab, name)
    run.__name__ = f"service_{name}"
    run.__module__ = __name__
    test(90, needs="bus")(run)


def shim_call(kind, path, command, name, row):
    (line, cause), words = row

    def run(lab):
        lab.install_agent(ALICE)
        lab.shell("true").ok()
        leavings, pid = Leavings.now(lab), lab.service_pid()
        lab.wrap(path, line)
        result = lab.run(command)
        lab.restore()
        result.refused(125, cause, *words)
        after(lab, leavings, name, pid)
        works_again(lab, name)
    run.__name__ = f"{kind}_{name}"
    run.__module__ = __name__
    test(30, needs="bus")(run)


for each, what in SESSION_CALLS.items():
    session_call(each, what, (ALICE, ROOT))
for each, what in SERVICE_CALLS.items():
    service_call(each, what)
for each, what in LAUNCH_CALLS.items():
    shim_call("launch", LAUNCH, [CLAUDE, "exit", "0"], each, what)
for each, what in ENTRY_CALLS.items():
    shim_call("entry", os.path.realpath(CLAUDE) if os.path.exists(CLAUDE) else f"{LIBEXEC}/entry", [CLAUDE, "exit", "0"],
              each, what)


class Refused:
    """with Refused(lab, ...): what is taken away inside makes the launch fail with these words; then it works again."""

    def __init__(self, lab, what, *words, user=ALICE, limit=40, before=None, status=125):
        self.lab, self.what, self.words, self.user = lab, what, words, user
        self.limit, self.before, self.status = limit, before, status

    def __enter__(self):
        self.lab.shell("true").ok()
        self.leavings, self.pid = Leavings.now(self.lab), self.lab.service_pid()

    def __exit__(self, kind, *_):
        if kind:
            return
        result = self.lab.shell("echo STARTED", self.user, limit=self.limit, before=self.before)
        equal(self.lab.service_pid(), self.pid, f"{self.what}: the service lives")
        self.lab.restore()
        result.refused(self.status, *self.words)
        self.leavings.nothing_left(self.what)
        works_again(self.lab, self.what, (self.user,))


def script(text):
    return "#!/bin/sh\n" + text + "\n"


@test(60, needs="bus")
def pasta_that_never_attaches(lab):
    """Running, and silent: the launch gives up, says so, and ends it."""
    with Refused(lab, "pasta hangs", "pasta", "10 seconds"):
        lab.replace("/usr/bin/pasta", script("exec tail -f /dev/null"), 0o755)


@test(60, needs="bus")
def pasta_that_says_why(lab):
    with Refused(lab, "pasta ends", "pasta", "out of luck"):
        lab.replace("/usr/bin/pasta", script("echo a line before >&2; echo out of luck >&2; exit 1"), 0o755)
    with Refused(lab, "pasta is killed", "pasta"):
        lab.replace("/usr/bin/pasta", script("kill -9 $$"), 0o755)


@test(60, needs="bus")
def bwrap_that_says_why(lab):
    for text in ("echo out of luck >&2; exit 1", "echo out of luck >&2; exit 0"):
        with Refused(lab, "bwrap ends", "bwrap", "out of luck"):
            lab.replace("/usr/bin/bwrap", script(text), 0o755)
    with Refused(lab, "bwrap is killed", "bwrap"):
        lab.replace("/usr/bin/bwrap", script("kill -9 $$"), 0o755)


@test(60, needs="bus")
def bwrap_that_hangs(lab):
    if not LONG:
        return
    with Refused(lab, "bwrap hangs", "30 seconds", limit=50):
        lab.replace("/usr/bin/bwrap", script("exec tail -f /dev/null"), 0o755)


@test(60, needs="bus")
def git_that_fails_or_hangs(lab):
    """Without an answer of git there is no identity, and that is all."""
    for text in ("exit 1", "kill -9 $$", "exec tail -f /dev/null", "cat /dev/zero"):
        lab.replace("/usr/bin/git", script(text), 0o755)
        lab.shell("true", limit=30)
        leavings = Leavings.now(lab)
        result = lab.shell("exit 4", limit=30)
        equal(result.status, 4, f"{text}: {result!r}")
        leavings.nothing_left(text)
        lab.restore()


@test(60, needs="bus")
def programs_of_wrong_modes(lab):
    """Each program of the product missing, not executable, or not a program."""
    for path, word in ((SESSION, SESSION), (INIT, "init")):
        with Refused(lab, f"no {path}", word, "No such file"):
            lab.hide(path)
        with Refused(lab, f"{path} not executable", word, "Permission denied"):
            lab.mode(path, 0o644)
        with Refused(lab, f"{path} is no program", word):
            lab.replace(path, "nothing\n", 0o755)
    for mode in (0o4755, 0o777, 0o600):
        for name in ("bwrap", "pasta"):
            with Refused(lab, f"{name} of mode {mode:o}", name):
                lab.mode(os.path.realpath(f"/usr/bin/{name}"), mode)


@test(60, needs="bus")
def launch_missing(lab):
    lab.shell("true").ok()
    for change in (lambda: lab.hide(LAUNCH), lambda: lab.mode(LAUNCH, 0o644)):
        change()
        lab.run([CLAUDE]).refused(125, LAUNCH, "install")
        lab.shell("true").refused(125, LAUNCH, "install")
        lab.restore()
    works_again(lab, "launch")


def limited(which, value):
    return lambda: resource.setrlimit(which, (value, value))


LIMITS = {
    # a limit of the caller, which the session gets as well: the launch is refused with a cause, or works
    "open_files": (resource.RLIMIT_NOFILE, range(4, 64, 3)),
    "address_space": (resource.RLIMIT_AS, [n << 20 for n in (4, 8, 12, 16, 20, 24, 28, 32, 48)]),
    "locked_memory": (resource.RLIMIT_MEMLOCK, [0]),
    "stack": (resource.RLIMIT_STACK, [256 << 10, 512 << 10]),
}


def limit_case(name, which, values):
    def run(lab):
        lab.shell("true").ok()
        leavings, pid = Leavings.now(lab), lab.service_pid()
        for value in values:
            result = lab.run([CLAUDE, "exit", "4"], before=limited(which, value), limit=40)
            what = f"{name} {value}"
            if result.status == 125:
                result.refused(125)
            elif result.status not in (4, 127, -11, -9):
                # the loader, bwrap or the agent itself may find it too little: theirs, but never a success
                raise AssertionError(f"{what}: {result!r}")
            after(lab, leavings, what, pid)
        works_again(lab, name)
    run.__name__ = f"limit_{name}"
    run.__module__ = __name__
    test(90, needs="bus")(run)


for each, (number, levels) in LIMITS.items():
    limit_case(each, number, levels)


def nobody_elses():
    """A user with a number of its own: what it may have is counted over all of the machine, in other labs too."""
    uid = random.SystemRandom().randrange(20000, 60000)
    user = User(f"crowded-{uid}", uid, f"/home/crowded-{uid}")
    machine.add_user(user)
    os.mkdir(user.home, 0o700)
    os.chown(user.home, user.uid, user.gid)
    return user


@test(60, needs="bus")
def limits_are_named(lab):
    """A limit of the caller's below what a jail needs: which, what it is, what is needed, and ulimit's option for it; Doctor too."""
    user = nobody_elses()
    for which, value, words in ((resource.RLIMIT_FSIZE, 0, ("File too large", "ulimit -f")),
                                (resource.RLIMIT_FSIZE, 1 << 20, ("file sizes is 1024 KiB, and a jail needs 4096 KiB", "ulimit -f")),
                                (resource.RLIMIT_STACK, 64 << 10, ("the stack is 64 KiB, and a jail needs 4096 KiB", "ulimit -Hs")),
                                (resource.RLIMIT_NOFILE, 10, ("open files", "(ulimit -")),
                                (resource.RLIMIT_NOFILE, 100, ("open files is 100, and a jail needs 512", "ulimit -Hn")),
                                (resource.RLIMIT_DATA, 1 << 20, ("data is 1024 KiB, and a jail needs", "ulimit -Hd")),
                                (resource.RLIMIT_AS, 64 << 20, ("memory is 65536 KiB, and a jail needs", "ulimit -Hv"))):
        said = lab.shell("true", user, before=limited(which, value)).refused(125, *words).err.decode()
        if value > 10:
            result = lab.run([SANDBOX, "doctor", "--json"], user, before=limited(which, value))
            row = next(row for row in json.loads(result.out)["rows"] if row["id"] == "chain.session")
            equal((result.status, row["status"], f"claude-sandbox: {row['detail']}; {row['fix']}\n"), (1, "fail", said))
        # what may be raised again is: the agent has it as it was
        if which in (resource.RLIMIT_STACK, resource.RLIMIT_DATA, resource.RLIMIT_AS, resource.RLIMIT_NOFILE):
            hard = 1 << 30 if which != resource.RLIMIT_NOFILE else 1024
            soft = {resource.RLIMIT_AS: 72 << 20, resource.RLIMIT_DATA: 4 << 20, resource.RLIMIT_NOFILE: 20}.get(which, 256 << 10)
            option = {resource.RLIMIT_STACK: "s", resource.RLIMIT_DATA: "d", resource.RLIMIT_AS: "v", resource.RLIMIT_NOFILE: "n"}[which]
            said = lab.shell(f"ulimit -S{option}", user,
                             before=lambda: resource.setrlimit(which, (soft, hard))).ok().out.decode().strip()
            equal(int(said) * (1 if option == "n" else 1024), soft, option)
    works_again(lab, "limits", (user,))


@test(90, needs="bus")
def limit_processes(lab):
    """So few processes of this user that the session, its holder, pasta, bwrap or the agent cannot be made."""
    user = nobody_elses()
    lab.shell("true", user).ok()
    leavings, pid = Leavings.now(lab), lab.service_pid()
    outcomes = set()
    for n in (*range(1, 12), 400):
        try:
            result = lab.shell("exit 4", user, before=limited(resource.RLIMIT_NPROC, n), limit=40)
        except BlockingIOError:                        # not even the program itself may be executed (execve(2), EAGAIN)
            continue
        if result.status != 4:
            result.refused(125)
        outcomes.add(result.status)
        after(lab, leavings, f"{n} processes", pid)
    equal(outcomes, {4, 125}, "too few refuse, enough do not")
    works_again(lab, "processes", (user,))


@test(60, needs="bus")
def run_without_space(lab):
    """Each file and directory of a session below /run that no longer fits."""
    outcomes = []
    for inodes in range(4, 14):
        lab.stop_service()
        system.mount("full", "/run/claude-sandbox", "tmpfs", system.MS_NODEV, f"mode=0755,nr_inodes={inodes},size=1m")
        lab.undo.append(lambda: (lab.stop_service(), system.unmount("/run/claude-sandbox")))
        lab.call("ListSessions", user=ALICE)
        before, pid = set(processes()), lab.service_pid()
        holds(pid, "the service runs")
        result = lab.shell("exit 4")
        if result.status != 4:
            result.refused(125, "No space left on device")
        outcomes.append(result.status)
        wait_for(lambda: set(processes()) <= before, f"{inodes}: nothing stays")
        wait_for(lambda: not lab.sessions(), f"{inodes}: no directory stays")
        equal(lab.service_pid(), pid, f"{inodes}: the service lives")
        lab.restore()
    equal((outcomes[0], outcomes[-1]), (125, 4), f"too little refuses, enough does not: {outcomes}")
    works_again(lab, "a full /run")


@test(60, needs="bus")
def run_that_the_service_cannot_use(lab):
    lab.stop_service()
    system.mount("full", "/run/claude-sandbox", "tmpfs", system.MS_NODEV, "mode=0755,nr_inodes=1,size=1m")
    lab.undo.append(lambda: system.unmount("/run/claude-sandbox"))
    result = lab.shell("true").refused(125)
    holds(b"service" in result.err, repr(result))
    lab.restore()
    works_again(lab, "a /run of no use")


@test(60, needs="bus")
def control_group_that_takes_nobody(lab):
    """The session's group can be made, and no process may enter it, as below a threaded parent (cgroups(7))."""
    lab.shell("true").ok()
    if not os.path.isfile("/sys/fs/cgroup/cgroup.procs"):
        raise Skip("no cgroup2 here")
    lab.undo.append(lab.stop_service)
    lab.stop_service()
    # born there, and the one byte that is written to cgroup.procs
    lines = [fail("clone3", "EOPNOTSUPP"), fail("write", "EOPNOTSUPP", 2, 1)]
    cause = lines[0][1]
    lab.wrap(SERVICE, "\n".join(line for line, _ in lines))
    lab.call("ListSessions", user=ALICE)
    leavings, pid = Leavings.now(lab), lab.service_pid()
    result = lab.shell("echo STARTED").refused(125)
    # a service that found no group to use has none that could take nobody
    holds(b"control group" in result.err and cause.encode() in result.err or b"ended before" in result.err, repr(result))
    after(lab, leavings, "control group", pid)
    lab.restore()
    works_again(lab, "control group")
