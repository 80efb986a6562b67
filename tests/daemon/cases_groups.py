# SPDX-License-Identifier: MIT
"""Where a session's control group lies: below its caller's, in a scope of systemd's, or in a tree of our own."""

import contextlib

from fixture import *  # noqa: F403
from fixture import OTHER, USER, case, cgroup2, end_service, nothing_left, warnings

SYSTEMD = os.path.join(os.path.dirname(sys.argv[2]), "daemon-systemd-stand-in")


def group_of(pid):
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as f:
        return [line.strip()[3:] for line in f if line.startswith("0::")][0]


def put(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def posture(caller, path):
    return [row for row in caller.get(path, SESSION, "Posture") if row[0] == "cgroup"][0]


@contextlib.contextmanager
def group(name, **files):
    """A group of the hierarchy's, until the test ends."""
    path = f"{cgroup2()}/{name}"
    os.mkdir(path)
    try:
        for file, text in files.items():
            put(f"{path}/{file.replace('_', '.')}", text)
        yield path
    finally:
        def gone():
            for top, names, _ in os.walk(path, topdown=False):
                for child in names:
                    with contextlib.suppress(OSError):
                        os.rmdir(f"{top}/{child}")
            with contextlib.suppress(OSError):
                os.rmdir(path)
            return not os.path.exists(path)
        wait_for(gone, f"{path} to become empty")


@case
def one_group_for_each_session(machine, watch):
    """Below one of each user, and all of them gone with the last one."""
    with Caller(USER) as user, Caller(OTHER) as other:
        _, path, _ = user.launch(b"run")
        user.launch(b"run")
        other.launch(b"run")
        found = sorted(group_of(pid) for pid in processes("session"))
        assert len(set(found)) == 3 and [g.split("/")[-2] for g in found] == [str(USER)] * 2 + [str(OTHER)], found
        assert all(g.split("/")[-3] == "claude-sandbox" for g in found), found
        assert posture(user, path)[1] == "group" and "ends with the session" in posture(user, path)[2]
        for caller in (user, other):
            caller.close_fds()
        nothing_left(user)
        wait_for(lambda: not any(os.path.exists(cgroup2() + g) for g in found), "no group is left")


@case
def a_limited_caller_stays_limited(machine, watch):
    """A session is no way out of a group with a limit; it lies below it, also after a restart, and ends with it."""
    with group("limited", cgroup_max_descendants="3") as limited, group("free") as free, Caller(USER) as user:
        put(f"{free}/cgroup.procs", str(user.pid))
        user.launch(b"run")
        assert "/free/" not in group_of(processes("session")[0]), "no limit, no reason to stay"
        user.close_fds()
        nothing_left(user)
        put(f"{limited}/cgroup.procs", str(user.pid))
        _, path, _ = user.launch(b"leave-child")
        wait_for(lambda: processes("left-behind"), "the child")
        pid, = processes("session")
        assert os.path.dirname(group_of(pid)).endswith("/limited"), group_of(pid)
        assert posture(user, path)[1] == "group"
        end_service()
        assert posture(user, path)[1] == "group"
        user.call(path, SESSION, "Stop")
        wait_for(lambda: not processes("left-behind"), "the child's end")
        wait_for(lambda: os.listdir(limited).count("cgroup.procs") and
                 not [n for n in os.listdir(limited) if os.path.isdir(f"{limited}/{n}")], "the group's end")
        # where no group can be made: the caller's own
        put(f"{limited}/cgroup.max.descendants", "0")
        _, path, _ = user.launch(b"run")
        pid, = processes("session")
        assert group_of(pid).endswith("/limited"), group_of(pid)
        assert posture(user, path)[1] == "caller's", posture(user, path)
        user.close_fds()
        nothing_left(user)


class Systemd:
    def __init__(self, how):
        if processes("claude-sandboxd"):
            end_service()
        os.makedirs("/run/systemd/system", exist_ok=True)
        self.process = subprocess.Popen([SYSTEMD, cgroup2(), how], stdout=subprocess.PIPE)
        self.lines = []
        self.buffer = b""
        self.expect("ready")

    def expect(self, text):
        while not any(text in line for line in self.lines):
            assert select.select([self.process.stdout], [], [], DEADLINE)[0], f"no '{text}' in {self.lines}"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, f"the stand-in has ended: {self.lines}"
            *lines, self.buffer = (self.buffer + data).split(b"\n")
            self.lines += [line.decode() for line in lines]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        if processes("claude-sandboxd"):
            end_service()
        os.rmdir("/run/systemd/system")

        def gone():
            for top, names, _ in os.walk(f"{cgroup2()}/user.slice", topdown=False):
                for name in names:
                    with contextlib.suppress(OSError):
                        os.rmdir(f"{top}/{name}")
            with contextlib.suppress(OSError):
                os.rmdir(f"{cgroup2()}/user.slice")
            return not os.path.exists(f"{cgroup2()}/user.slice")
        wait_for(gone, "an empty user.slice")


def own_bus_policy(machine):
    """root may own systemd's name, as systemd's package lets it."""
    path = "/usr/share/dbus-1/system.d/systemd-stand-in.conf"
    put(path, '<busconfig><policy user="root"><allow own="org.freedesktop.systemd1"/></policy><policy context="default">'
              '<allow send_destination="org.freedesktop.systemd1"/></policy></busconfig>')
    os.kill(machine.bus.pid, signal.SIGHUP)
    wait_for(lambda: machine.text().count("Reloaded configuration") > 0 or True, "the policy")


def make_threaded(path):
    """A group whose new groups take no process: "domain threaded", by one that is "threaded"."""
    os.mkdir(f"{path}/of-threads")
    put(f"{path}/of-threads/cgroup.type", "threaded")
    with open(f"{path}/cgroup.type", encoding="ascii") as f:
        assert f.read() == "domain threaded\n"


@case
def groups_that_take_no_process(machine, watch):
    """The caller's, with a limit, or the service's is \"domain threaded\": the session starts all the same."""
    with group("limited", cgroup_max_descendants="5") as limited, Caller(USER) as user:
        put(f"{limited}/cgroup.procs", str(user.pid))
        make_threaded(limited)
        user.launch(b"run")
        pid, = processes("session")
        assert group_of(pid).endswith("/limited"), group_of(pid)
        user.close_fds()
        nothing_left(user)
        end_service()
    with group("services") as services:
        make_threaded(services)
        before = group_of(machine.bus.pid)
        put(f"{services}/cgroup.procs", str(machine.bus.pid))
        try:
            with Caller(USER) as user:
                user.launch(b"run")
                assert group_of(service()).endswith("/services"), group_of(service())
                pid, = processes("session")
                assert f"/claude-sandbox/{USER}/claude-sandbox-" in group_of(pid), group_of(pid)
                assert "/services/" not in group_of(pid), group_of(pid)
                user.close_fds()
                nothing_left(user)
        finally:
            end_service()
            put(f"{cgroup2()}{before}/cgroup.procs", str(machine.bus.pid))


@case
def systemd_makes_a_scope(machine, watch):
    """A scope in the user's slice, with the limits, before anything runs in it; killed whole; taken over again."""
    own_bus_policy(machine)
    machine.configure("memory-max = 512M\ntasks-max = 99\n")
    for how in ("good", "late", "old"):
        with Systemd(how) as systemd, Caller(USER) as user:
            start = time.monotonic()
            _, path, _ = user.launch(b"leave-child")
            assert time.monotonic() - start < 1.5, "it waits for an answer that has come"
            systemd.expect("asked ")
            wait_for(lambda: processes("left-behind"), "the child")
            pid, = processes("session")
            name = group_of(pid).split("/")[-1]
            assert group_of(pid).endswith(f"/user.slice/user-{USER}.slice/{name}"), group_of(pid)
            assert name.startswith("claude-sandbox-") and name.endswith(".scope") and path.split("/")[-1] not in name
            assert f"asked {name} for {pid} in user-{USER}.slice" in systemd.lines, systemd.lines
            for line in ("TasksMax=99", "MemoryMax=536870912", "MemorySwapMax=0", "CollectMode=inactive-or-failed",
                         f"Slice=user-{USER}.slice"):
                assert f"property {line}" in systemd.lines, systemd.lines
            # without it, one process that the kernel kills for its memory ends the session; not every systemd has it
            assert systemd.lines.count("property OOMPolicy=continue") == 1, systemd.lines
            assert sum(line.startswith("asked ") for line in systemd.lines) == (2 if how == "old" else 1), systemd.lines
            child, = wait_for(lambda: processes("left-behind"), "the child")
            assert group_of(child) == group_of(pid)
            assert posture(user, path)[1] == "group"
            end_service()
            assert posture(user, path)[1] == "group"
            user.call(path, SESSION, "Stop")
            wait_for(lambda: not processes("left-behind"), "the child's end")
            nothing_left(user)


@case
def a_job_is_not_left(machine, watch):
    """With systemd: a login's session is a scope; a job, a service, and a unit with limits keep theirs."""
    own_bus_policy(machine)
    slice_ = f"user.slice/user-{USER}.slice"
    limit = ("cgroup.max.descendants", "7")
    rows = (("user.slice/user-1234.slice/session-2.scope", None, "", None),
            (f"{slice_}/session-1.scope", None, "", None),
            (f"{slice_}/session-1.scope", None, "memory-max = 512M\n", None),
            (f"{slice_}/user@1.service/app.slice/run-1.scope", limit, "", f"{slice_}/user@1.service/app.slice/run-1.scope/"),
            # what the administrator has set cannot be undone by a unit of the user's
            (f"{slice_}/user@1.service/app.slice/run-1.scope", limit, "memory-max = 512M\n", None),
            ("system.slice/slurmstepd.scope/job_7/step_0/task_0", None, "", "system.slice/slurmstepd.scope/job_7/step_0/task_0/"),
            ("system.slice/some.service", None, "memory-max = 512M\n", "system.slice/some.service/"))
    for name, limits, configuration, wanted in rows:
        machine.configure(configuration)
        top = name.split("/", maxsplit=1)[0]
        with Systemd("good"), (group(top) if top != "user.slice" else contextlib.nullcontext()), Caller(USER) as user:
            place = f"{cgroup2()}/{name}"
            os.makedirs(place, exist_ok=True)
            if limits:
                put(f"{place}/{limits[0]}", limits[1])
            before = group_of(user.pid)
            put(f"{place}/cgroup.procs", str(user.pid))
            user.launch(b"run")
            pid, = processes("session")
            found = group_of(pid)
            if wanted:
                assert found.startswith(f"/{wanted}claude-sandbox-") and not found.endswith(".scope"), (name, found)
            else:
                assert found.startswith(f"/{slice_}/claude-sandbox-") and found.endswith(".scope"), (name, found)
            user.close_fds()
            nothing_left(user)
            put(f"{cgroup2()}{before}/cgroup.procs", str(user.pid))


def hierarchies():
    """Of version 1: controllers and directories."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            fields = line.split()
            if fields[fields.index("-") + 1] == "cgroup" and os.access(fields[4], os.W_OK):
                yield fields[-1].split(",")[1:], fields[4]


@case
def a_caller_in_groups_of_version_1(machine, watch):
    """A session is in its caller's group of each hierarchy, the limits of which hold."""
    wanted = {name: path for names, path in hierarchies() for name in names if name in ("pids", "freezer", "cpuacct", "cpu")}
    jobs = {name: f"{path}/claude-sandbox-job-{os.getpid()}" for name, path in wanted.items()}
    try:
        for job in jobs.values():
            os.mkdir(job)
        with Caller(USER) as user:
            for job in jobs.values():
                put(f"{job}/cgroup.procs", str(user.pid))
            user.launch(b"run")
            pid, = processes("session")
            for name, job in jobs.items():
                with open(f"{job}/cgroup.procs", encoding="ascii") as f:
                    assert str(pid) in f.read().split(), name
            user.close_fds()
            nothing_left(user)
            # the other ones are the service's, as the caller's are
            with open("/proc/self/cgroup", encoding="utf-8") as ours, open(f"/proc/{service()}/cgroup", encoding="utf-8") as its:
                assert ours.read() == its.read()
    finally:
        for job in jobs.values():
            with contextlib.suppress(OSError):
                os.rmdir(job)


@case
def systemd_does_not_make_a_scope(machine, watch):
    """Refused, failed, silent, lying, gone: the session gets a group of ours, and starts."""
    own_bus_policy(machine)
    for how in ("refuse", "fail", "elsewhere", "silent", "gone"):
        with Systemd("good" if how == "gone" else how) as systemd, Caller(USER) as user:
            if how == "gone":
                systemd.process.kill()
                systemd.process.wait()
            before = machine.text().count("systemd makes no scope")
            start = time.monotonic()
            _, path, _ = user.launch(b"leave-child")
            assert how == "silent" or time.monotonic() - start < 1.5, how
            wait_for(lambda: processes("left-behind"), "the child")
            pid, = processes("session")
            assert f"/claude-sandbox/{USER}/claude-sandbox-" in group_of(pid), (how, group_of(pid))
            assert machine.text().count("systemd makes no scope") == before + 1, how
            assert posture(user, path)[1] == "group"
            end_service()
            user.call(path, SESSION, "Stop")
            wait_for(lambda: not processes("left-behind"), "the child's end")
            nothing_left(user)


@case
def a_child_that_waits_ends_with_the_service(machine, watch):
    """Killed while systemd is asked: what waits for the answer starts nothing, and nothing is left."""
    own_bus_policy(machine)
    with Systemd("silent") as systemd, Caller(USER) as user, Caller(0) as root:
        user.launch_start(b"run")
        systemd.expect("asked ")
        end_service()
        wait_for(lambda: not processes("claude-sandboxd"), "the end of what waited")
        assert user.manager is not None and root.manager("ListSessions") == []
        nothing_left(root)
    with Systemd("silent") as systemd, Caller(0) as root:
        with Caller(USER) as user:
            user.launch_start(b"run")
            systemd.expect("asked ")
        nothing_left(root)


@case
def limits_that_are_not_offered(machine, watch):
    """A configured limit that cannot be had is a warning of the session's; one that nobody asked for is none."""
    try:
        with open(cgroup2() + "/cgroup.controllers", encoding="ascii") as f:
            offered = f.read().split()
    except OSError:
        offered = []
    with Caller(USER) as user:
        machine.configure("memory-max = 1G\ntasks-max = 7\n")
        _, path, _ = user.launch(b"run")
        found = [line for line in warnings(user, path, "leads 1") if "does not hold" in line]
        assert len(found) == sum(c not in offered for c in ("memory", "pids")), (found, offered)
        assert all("/etc/claude-sandbox.conf:" in line for line in found), found
        machine.unconfigure()
        _, path, _ = user.launch(b"run")
        assert not [line for line in warnings(user, path, "leads 1") if "does not hold" in line]
