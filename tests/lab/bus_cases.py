# SPDX-License-Identifier: MIT
"""The contract, as any program on the machine meets it over the system bus."""

import json
import os
import select
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import bus
import machine
from bus import as_user
from case import SANDBOX, equal, holds, processes, test, wait_for
from machine import ALICE, BOB, ROOT

INTERFACES = "/usr/share/dbus-1/interfaces/org.claudesandbox1.xml"


@test(needs="bus")
def bus_is_real(lab):
    """The real daemon at the real path, open to ordinary users; polkit answers through it."""
    result = lab.run(["/usr/bin/busctl", "--system", "list", "--activatable", "--no-legend"], user=ALICE)
    names = {line.split()[0] for line in result.out.decode().splitlines()}
    holds("org.freedesktop.PolicyKit1" in names, "polkit can be activated")
    result = lab.run(["/usr/bin/busctl", "--system", "get-property", "org.freedesktop.PolicyKit1",
                      "/org/freedesktop/PolicyKit1/Authority", "org.freedesktop.PolicyKit1.Authority",
                      "BackendName"], user=ALICE)
    equal(result.out, b's "js"\n', "polkit's own backend")


def holders(fd):
    """{pid: [command, its descriptors]} of those who have the file of fd open."""
    wanted, found, commands = os.readlink(f"/proc/self/fd/{fd}"), {}, processes()
    for pid, command in commands.items():
        try:
            for number in os.listdir(f"/proc/{pid}/fd"):
                if os.readlink(f"/proc/{pid}/fd/{number}") == wanted:
                    found.setdefault(pid, [command]).append(int(number))
        except OSError:                                # it has ended
            pass
    return found


class Held:
    """A session that runs until it is told to end. What comes after it finds nothing of it."""

    id = None

    def __init__(self, lab, user=ALICE, script="echo ready; read x; exit 3", **options):
        self.lab = lab
        before = set(lab.sessions())
        self.process = lab.start([SANDBOX, "shell", "-c", script], user, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, **options)
        line = self.process.stdout.readline()
        if line != b"ready\n":
            self.process.kill()
            raise AssertionError(f"the session did not start: {line!r} {self.process.stderr.read()!r}")
        # the agent writes before its caller has the answer; with it, the caller leaves the bus
        wait_for(lambda: not bus.connected(self.process.pid), "the caller has its answer")
        new = [name for name in lab.sessions() if name not in before]
        equal(len(new), 1, "one run directory for one session")
        self.id = new[0]
        self.path = f"{bus.PATH}/session/{self.id}"

    def end(self, limit=10):
        """Let it end by itself. Return: the status."""
        self.process.stdin.close()
        return self.process.wait(limit)

    def rest(self, limit=20):
        """Its output to the end, which comes when nobody has the pipe any more."""
        data, end = b"", time.monotonic() + limit
        while True:
            left = max(end - time.monotonic(), 0)
            if not select.select([self.process.stdout], [], [], left)[0]:
                raise AssertionError(f"its output has no end; {data!r} came, launch: {self.process.poll()}, and the pipe have "
                                     f"{holders(self.process.stdout.fileno())}")
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return data
            data += more

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for f in (self.process.stdout, self.process.stderr):
            f.close()
        if self.id:
            self.lab.wait_gone(self.id)


def answer(result):
    """The values of a reply in busctl's JSON."""
    equal(result.status, 0, repr(result))
    return json.loads(result.out)["data"]


def error_of(member, signature="", *arguments, user=ALICE, interface=bus.MANAGER, path=bus.PATH):
    """The name of the error that a call ends with, and its sentence."""
    import dbus

    def call(connection):
        try:
            connection.call_blocking(bus.NAME, path, interface, member, signature, arguments, timeout=20)
        except dbus.DBusException as error:
            return [error.get_dbus_name(), error.get_dbus_message()]
        return ["no error", ""]
    found = as_user(user, call)
    if not isinstance(found, list):
        raise AssertionError(found)
    return tuple(found)


def shape(node):
    """An interface as comparable data."""
    found = {}
    for member in node:
        if member.tag in ("method", "signal", "property"):
            arguments = [(argument.get("type"), argument.get("direction", "out" if member.tag == "signal" else "in"))
                         for argument in member.findall("arg")]
            found[member.tag, member.get("name")] = (arguments, member.get("type"), member.get("access"))
    return found


@test(needs="bus")
def introspection_equals_the_contract(lab):
    wanted = {node.get("name"): shape(node) for node in ElementTree.parse(INTERFACES).getroot().findall("interface")}
    with Held(lab) as held:
        for path, name in ((bus.PATH, bus.MANAGER), (held.path, bus.SESSION)):
            result = lab.run(["/usr/bin/busctl", "--system", "introspect", "--xml-interface", bus.NAME, path], ALICE)
            nodes = {node.get("name"): shape(node) for node in ElementTree.fromstring(result.out).findall("interface")}
            equal(nodes[name], wanted[name], name)
            holds({"org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.Properties"}
                  <= set(nodes), f"{path}: {sorted(nodes)}")


@test(needs="bus")
def any_user_may_look(lab):
    for user in (ALICE, ROOT):
        for member in ("ListAllowIp", "ListSessions", "GetPolicy"):
            result = lab.run(["/usr/bin/busctl", "--system", "call", bus.NAME, bus.PATH, bus.MANAGER, member], user)
            equal((result.status, result.err), (0, b""), f"{user}: {member}")
        result = lab.run(["/usr/bin/busctl", "--system", "introspect", bus.NAME, bus.PATH], user)
        holds(result.status == 0 and b"Launch" in result.out, repr(result))
        result = lab.run(["/usr/bin/busctl", "--system", "get-property", bus.NAME, bus.PATH, bus.MANAGER, "Version",
                          "ConfigPath", "ConfigError", "Sessions"], user)
        lines = result.out.decode().splitlines()
        equal(lines[1:], ['s "/etc/claude-sandbox.conf"', 's ""', "u 0"], repr(result))
    lab.configure("nonsense\n")
    result = lab.run(["/usr/bin/busctl", "--system", "get-property", bus.NAME, bus.PATH, bus.MANAGER, "ConfigError"], ALICE)
    holds(b"claude-sandbox.conf:1" in result.out, repr(result))


@test(needs="bus")
def commands_answer(lab):
    """The command's verbs, as tables and as JSON."""
    lab.configure("allow-ip = 10.20.30.40  # the oscilloscope\nmax-sessions = 9\n")
    for user in (ALICE, ROOT):
        holds(b"10.20.30.40" in lab.run([SANDBOX, "allow-ip", "list"], user).ok().out, "a table")
        listed = json.loads(lab.run([SANDBOX, "allow-ip", "list", "--json"], user).ok().out)
        holds("the oscilloscope" in json.dumps(listed), json.dumps(listed))
        holds("/etc/claude-sandbox.conf:1" in json.dumps(listed), json.dumps(listed))
        holds("max-sessions" in json.dumps(json.loads(lab.run([SANDBOX, "policy", "--json"], user).ok().out)), "policy")
        lab.run([SANDBOX, "policy"], user).ok()
        lab.run([SANDBOX, "version"], user).ok()
        json.loads(lab.run([SANDBOX, "version", "--json"], user).ok().out)
        with Held(lab, user) as held:
            holds(held.id.encode() in lab.run([SANDBOX, "sessions"], user).ok().out, "its id in the table")
            listed = json.loads(lab.run([SANDBOX, "sessions", "--json"], user).ok().out)
            holds(held.id in json.dumps(listed) and lab.workspace(user) in json.dumps(listed), json.dumps(listed))
            lab.run([SANDBOX, "stop", held.id], user).ok()
            holds(held.process.wait(10) != 3, "it was stopped, it did not end by itself")


@test(needs="bus")
def session_object_tells(lab):
    with Held(lab) as held:
        result = lab.run(["/usr/bin/busctl", "--system", "get-property", bus.NAME, held.path, bus.SESSION, "Id", "Agent",
                          "User", "Uid", "State", "Jailed", "Leader", "ExitStatus"], ALICE)
        lines = result.out.decode().splitlines()
        equal(lines[:6], [f's "{held.id}"', 's "shell"', 's "alice"', "u 4001", 's "running"', "b true"], repr(result))
        leader = int(lines[6].split()[1])
        with open(f"/proc/{leader}/status", encoding="ascii") as f:
            namespaces = [line for line in f if line.startswith("NSpid:")][0].split()
        equal(namespaces[-1], "1", "Leader is process 1 of the jail")
        row = answer(lab.call("ListSessions", user=ALICE))[0][0]
        equal(row[:5] + row[7:], [held.id, held.path, "shell", "alice", 4001, "running"])
        equal(bytes(row[5]).decode(), lab.workspace(ALICE))
        equal(held.end(), 3)


@test(60, needs="bus")
def activation_is_plain(lab):
    """No service: the first call starts it, as root, without systemd."""
    lab.stop_service()
    lab.call("ListAllowIp", user=ALICE)
    pid = lab.service_pid()
    holds(pid, "the service runs")
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        holds("Uid:\t0\t0\t0\t0" in f.read(), "as root")
    equal(os.readlink(f"/proc/{pid}/exe"), "/usr/libexec/claude-sandbox/claude-sandboxd")
    with open(f"/proc/{pid}/environ", "rb") as f:
        names = {entry.split(b"=")[0] for entry in f.read().split(b"\0") if entry}
    holds(names <= {b"DBUS_STARTER_ADDRESS", b"DBUS_STARTER_BUS_TYPE", b"PATH"}, f"its environment: {names}")


@test(90, needs="bus")
def idle_service_ends(lab):
    """After 30 s with nothing to do; not earlier, and not with a session."""
    lab.stop_service()
    with Held(lab):
        pid = lab.service_pid()
        holds(not bus.wait_pid_gone(pid, 33), "it stays while a session lives")
    lab.call("ListAllowIp", user=ALICE)
    holds(not bus.wait_pid_gone(pid, 20), "it stays for a while")
    holds(bus.wait_pid_gone(pid, 20), "it ends when idle")
    lab.shell("true").ok()


def launch_arguments(agent="shell", argv=(b"-c", b"true"), environment=(b"TERM=dumb",), cwd=b"/home/alice/project", fds=None,
                     options=None):
    import dbus

    def line(data):
        return dbus.Array([dbus.Byte(b) for b in data], signature="y")
    return [agent, dbus.Array([line(a) for a in argv], signature="ay"), dbus.Array([line(e) for e in environment], signature="ay"),
            line(cwd), dbus.Dictionary(fds or {}, signature="uh"), dbus.Dictionary(options or {}, signature="sv")]


LAUNCH = "saayaayaya{uh}a{sv}"


@test(60, needs="bus")
def bad_messages(lab):
    """Wrong types, unknown keys, things too long: each has its error, and the service goes on."""
    import dbus
    lab.workspace(ALICE)
    pid = lab.service_pid() or (lab.call("ListAllowIp"), lab.service_pid())[1]
    null = os.open("/dev/null", os.O_RDWR)
    directory = os.open("/", os.O_RDONLY)
    path_only = os.open("/etc/hostname", os.O_PATH)
    bad = "org.claudesandbox1.Error.BadRequest"
    cases = {
        "unknown option": (launch_arguments(options={"nonsense": 1}), bad),
        "unknown agent": (launch_arguments(agent="nobody"), bad),
        "agent with a path": (launch_arguments(agent="../shell"), bad),
        "empty agent": (launch_arguments(agent=""), bad),
        "NUL in an argument": (launch_arguments(argv=(b"a\0b",)), bad),
        "NUL in the environment": (launch_arguments(environment=(b"A=b\0c",)), bad),
        "relative directory": (launch_arguments(cwd=b"project"), bad),
        "empty directory": (launch_arguments(cwd=b""), bad),
        "directory with NUL": (launch_arguments(cwd=b"/home\0/alice"), bad),
        "directory with dots": (launch_arguments(cwd=b"/home/alice/../bob"), None),
        "long directory": (launch_arguments(cwd=b"/" + b"x" * 5000), None),
        "key 3": (launch_arguments(fds={dbus.UInt32(3): dbus.types.UnixFd(null)}), bad),
        "a directory": (launch_arguments(fds={dbus.UInt32(0): dbus.types.UnixFd(directory)}), bad),
        "O_PATH": (launch_arguments(fds={dbus.UInt32(0): dbus.types.UnixFd(path_only)}), bad),
        "too many strings": (launch_arguments(argv=[b""] * 70000), None),
        "too long": (launch_arguments(argv=[b"x" * 100000] * 22), None),
    }
    try:
        for what, (arguments, wanted) in cases.items():
            name, sentence = error_of("Launch", LAUNCH, *arguments)
            holds(sentence and name.startswith("org.claudesandbox1.Error.") and "may say why" not in sentence,
                  f"{what}: {name}: {sentence}")
            if wanted:
                equal(name, wanted, f"{what}: {sentence}")
        for signature, arguments in (("s", ["shell"]), ("u", [dbus.UInt32(1)]), ("", [])):
            name, _ = error_of("Launch", signature, *arguments)
            equal(name, "org.freedesktop.DBus.Error.InvalidArgs", f"signature {signature!r}")
        equal(error_of("Nonsense")[0], "org.freedesktop.DBus.Error.UnknownMethod")
        equal(error_of("Stop", path=bus.PATH + "/session/aaaaaaaaaaaaaaaa", interface=bus.SESSION)[0],
              "org.freedesktop.DBus.Error.UnknownObject")
    finally:
        for fd in (null, directory, path_only):
            os.close(fd)
    equal(lab.service_pid(), pid, "the same service answers")
    wait_for(lambda: not lab.sessions(), "nothing of it stays")


@test(60, needs="bus")
def vanished_caller(lab):
    """One that leaves right after the call gets nothing, and nothing of it stays."""
    import dbus
    lab.workspace(ALICE)

    def leave(connection):
        message = dbus.lowlevel.MethodCallMessage(bus.NAME, bus.PATH, bus.MANAGER, "Launch")
        message.append(signature=LAUNCH, *launch_arguments(argv=(b"-c", b"exec tail -f /dev/null")))
        connection.send_message(message)
        connection.flush()
        connection.close()
        return "sent"
    for _ in range(5):
        equal(as_user(ALICE, leave), "sent")
    lab.call("ListAllowIp")
    wait_for(lambda: not lab.sessions(), "no session of a caller that has gone", 10)


@test(60, needs="bus")
def users_do_not_see_each_other(lab):
    with Held(lab, ALICE) as held:
        for user, visible in ((ALICE, True), (ROOT, True), (BOB, False)):
            rows = answer(lab.call("ListSessions", user=user))[0]
            equal([row[0] for row in rows], [held.id] if visible else [], f"{user}: ListSessions")
            result = lab.run(["/usr/bin/busctl", "--system", "tree", "--list", bus.NAME], user)
            equal(held.id.encode() in result.out, visible, f"{user}: the tree of objects")
            result = lab.run(["/usr/bin/busctl", "--system", "get-property", bus.NAME, bus.PATH, bus.MANAGER, "Sessions"], user)
            equal(result.out, b"u 1\n" if visible else b"u 0\n", f"{user}: Sessions")
            result = lab.run(["/usr/bin/busctl", "--system", "get-property", bus.NAME, held.path, bus.SESSION, "Workspace"], user)
            equal(result.status == 0, visible, f"{user}: Workspace")
        for path in (held.path, bus.PATH + "/session/aaaaaaaaaaaaaaaa"):
            equal(error_of("Stop", user=BOB, path=path, interface=bus.SESSION)[0],
                  "org.freedesktop.DBus.Error.UnknownObject", "another's session is as one that is not there")
        import dbus
        for session in (held.id, "aaaaaaaaaaaaaaaa"):
            name, _ = error_of("StopSession", "sa{sv}", session, dbus.Dictionary({}, signature="sv"), user=BOB)
            holds(name in ("org.claudesandbox1.Error.NoSuchSession", "org.claudesandbox1.Error.NotAuthorized"), name)
        equal(lab.run(["/bin/sh", "-c", f"kill -0 $(pgrep -u {ALICE.uid} -x bash | head -1)"], BOB).status, 1)
        result = lab.run(["/bin/ls", f"/run/claude-sandbox/sessions/{held.id}"], BOB)
        holds(result.status != 0, "its run directory is closed")
        holds(lab.run(["/bin/ls", "/run/claude-sandbox/sessions"], BOB).status != 0, "nor are the ids listed")
        equal(held.process.poll(), None, "the session lives")
        equal(held.end(), 3)


@test(60, needs="bus")
def signals_go_to_subscribers(lab):
    """Those who asked and may see; nobody else."""
    wait_for(lambda: not lab.states(), "no session of another test")
    watch = machine.TOOLS + "/daemon-watch"
    watchers = {who: lab.start([watch, *words], user, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                for who, user, words in (("alice", ALICE, []), ("bob", BOB, []), ("root", ROOT, []),
                                         ("not subscribed", ALICE, ["no"]))}
    for who, watcher in watchers.items():
        equal(watcher.stdout.readline(), b"ready\n", who)
    with Held(lab, ALICE) as held:
        equal(held.end(), 3)
    wait_for(lambda: not lab.sessions(), "the session is gone")
    lab.call("ListAllowIp")                  # answered after the signals were sent
    heard = {who: watcher.communicate(timeout=10)[0].decode() for who, watcher in watchers.items()}
    for who in ("alice", "root"):
        members = [line.split()[0] for line in heard[who].splitlines()]
        holds("SessionAdded" in members and "StateChanged" in members and "SessionRemoved" in members, f"{who}: {heard[who]}")
        holds(members.index("SessionAdded") < members.index("SessionRemoved"), f"{who}: {heard[who]}")
        holds(held.id in heard[who], f"{who}: {heard[who]}")
    equal((heard["bob"], heard["not subscribed"]), ("", ""))


@test(needs="bus")
def name_is_roots(lab):
    lab.stop_service()
    result = lab.run(["/usr/bin/python3", "-c",
                      "import dbus; print(dbus.SystemBus().request_name('org.claudesandbox1', 4))"], ALICE)
    holds(result.status != 0 and b"AccessDenied" in result.err, repr(result))


@test(60, needs="bus")
def stop_session_hangs_up_then_kills(lab):
    with Held(lab, script="trap 'exit 4' HUP; echo ready; read x; exit 3") as held:
        answer_status = lab.call("StopSession", "sa{sv}", held.id, 0, user=ALICE)
        equal(answer_status.status, 0, repr(answer_status))
        equal(held.process.wait(10), 4, "it heard the hang-up")
        equal(held.process.stderr.read(), b"", "whose it is knows")
        equal(lab.sessions(), [], "StopSession answers when the session has ended")
    with Held(lab, script="trap '' HUP TERM; echo ready; exec /usr/local/lib/lab/probe stubborn") as held:
        result = lab.call("StopSession", "sa{sv}", held.id, 1, "grace", "t", 300000, user=ROOT)
        equal(result.status, 0, repr(result))
        equal(held.process.wait(10), -signal.SIGKILL)
        equal(held.process.stderr.read(), b"claude-sandbox: the session was stopped by root\n")
    equal(error_of("StopSession", "sa{sv}", held.id, _empty(), user=ALICE)[0], "org.claudesandbox1.Error.NoSuchSession")


def _empty():
    import dbus
    return dbus.Dictionary({}, signature="sv")
