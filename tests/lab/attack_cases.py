# SPDX-License-Identifier: MIT
"""
Another local user against alice's session, over the bus and beside it. Each attack is a function whose docstring says
why it fails; it runs as mallory, who has no rights, and returns what it got.
"""

import array
import errno
import json
import os
import signal
import socket
import subprocess

import bus
from bus_cases import Held, LAUNCH, answer, as_user, launch_arguments
from case import SANDBOX, SESSIONS, equal, holds, test, wait_for
from machine import ALICE, BOB, MALLORY, ROOT

PROPERTIES = "org.freedesktop.DBus.Properties"
DBUS = "org.freedesktop.DBus.Error."
OURS = "org.claudesandbox1.Error."
UNKNOWN = (DBUS + "UnknownObject",)
LINK_MAX = 64 * 1024


def call(connection, path, interface, member, signature="", *arguments):
    """Return: the error's name and sentence, or "done" and what came back."""
    import dbus
    try:
        value = connection.call_blocking(bus.NAME, path, interface, member, signature, arguments, timeout=20)
    except dbus.DBusException as error:
        return [error.get_dbus_name(), error.get_dbus_message()]
    return ["done", str(value)]


def empty():
    import dbus
    return dbus.Dictionary({}, signature="sv")


# Attacks on the session's object: (connection, held) -> [name of the error, sentence]

def end_it_by_id(connection, held):
    """manage-sessions is not mallory's; the answer is that for an id that does not exist."""
    return call(connection, bus.PATH, bus.MANAGER, "StopSession", "sa{sv}", held.id, empty())


def end_it_by_object(connection, held):
    """There is no such object for mallory."""
    return call(connection, held.path, bus.SESSION, "Stop")


def read_a_property(connection, held):
    """Nor properties of it,"""
    return call(connection, held.path, PROPERTIES, "Get", "ss", bus.SESSION, "Workspace")


def read_all_properties(connection, held):
    """nor all of them,"""
    return call(connection, held.path, PROPERTIES, "GetAll", "s", bus.SESSION)


def write_a_property(connection, held):
    """nor one that could be written,"""
    return call(connection, held.path, PROPERTIES, "Set", "ssv", bus.SESSION, "State", "ending")


def introspect_it(connection, held):
    """nor a description,"""
    return call(connection, held.path, "org.freedesktop.DBus.Introspectable", "Introspect")


def read_what_it_sees(connection, held):
    """nor tables: its paths,"""
    return call(connection, held.path, bus.SESSION, "ListExposure")


def read_its_variables(connection, held):
    """its variables,"""
    return call(connection, held.path, bus.SESSION, "ListEnvironment")


def read_its_routes(connection, held):
    """its routes,"""
    return call(connection, held.path, bus.SESSION, "ListRoutes")


def read_its_denials(connection, held):
    """what it was refused,"""
    return call(connection, held.path, bus.SESSION, "ListDenied")


def read_its_ports(connection, held):
    """its ports;"""
    return call(connection, held.path, bus.SESSION, "ListPorts")


def open_an_address(connection, held):
    """and what changes it is there as little: AllowIp,"""
    import dbus
    return call(connection, held.path, bus.SESSION, "AllowIp", "sta{sv}", "10.20.30.40", dbus.UInt64(60), empty())


def close_an_address(connection, held):
    """RevokeIp."""
    return call(connection, held.path, bus.SESSION, "RevokeIp", "s", "10.20.30.40")


def reach_below_it(connection, held):
    """A path below the object is no object."""
    return call(connection, held.path + "/x", bus.SESSION, "Stop")


def use_its_object_as_manager(connection, held):
    """The manager's interface is at the manager's path alone."""
    return call(connection, held.path, bus.MANAGER, "StopSession", "sa{sv}", held.id, empty())


def use_the_manager_as_session(connection, held):
    """And the session's at the session's."""
    return call(connection, bus.PATH, bus.SESSION, "Stop")


ON_THE_OBJECT = [
    (end_it_by_id, (OURS + "NoSuchSession",)), (end_it_by_object, UNKNOWN), (read_a_property, UNKNOWN),
    (read_all_properties, UNKNOWN), (write_a_property, UNKNOWN), (introspect_it, UNKNOWN), (read_what_it_sees, UNKNOWN),
    (read_its_variables, UNKNOWN), (read_its_routes, UNKNOWN), (read_its_denials, UNKNOWN), (read_its_ports, UNKNOWN),
    (open_an_address, UNKNOWN), (close_an_address, UNKNOWN), (reach_below_it, UNKNOWN), (use_its_object_as_manager, UNKNOWN),
    (use_the_manager_as_session, (DBUS + "UnknownMethod", DBUS + "UnknownInterface")),
]


@test(60, needs="bus")
def objects_of_another(lab):
    """Every member, by another user: refused in the very words for a session that never was."""
    with Held(lab, ALICE) as held:
        class Nobodys:
            id = "a" * 16
            path = bus.PATH + "/session/" + "a" * 16

        for attack, wanted in ON_THE_OBJECT:
            found = as_user(MALLORY, lambda connection, attack=attack: attack(connection, held))
            holds(found[0] in wanted and found[1], f"{attack.__name__}: {found}")
            other = as_user(MALLORY, lambda connection, attack=attack: attack(connection, Nobodys))
            equal([text.replace(held.id, Nobodys.id) for text in found], other, f"{attack.__name__}: what it tells")
            holds("alice" not in found[1] and "project" not in found[1], f"{attack.__name__}: {found}")
            equal(held.process.poll(), None, attack.__name__)
        equal(held.end(), 3)


# Attacks by Launch: (connection) -> the arguments that are tried; each must be refused with one of these errors.

def with_another_users_option(_):
    """There is no option that says who one is: the bus says it."""
    import dbus
    return launch_arguments(options={"uid": dbus.UInt32(ALICE.uid)})


def as_a_path(_):
    """An agent is a name of the table, not a file."""
    return launch_arguments(agent="/home/mallory/evil")


def as_a_path_upwards(_):
    """Nor a way to one."""
    return launch_arguments(agent="../../tmp/evil")


def in_her_directory(_):
    """The session opens the directory with mallory's rights, and that home is closed."""
    return launch_arguments(cwd=b"/home/alice/project")


def with_a_directory(_):
    """A directory handed in would be a way out of the jail."""
    return descriptor(os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY))


def with_a_path_handle(_):
    """So would a handle to a path."""
    return descriptor(os.open("/etc/passwd", os.O_PATH))


def with_a_datagram_socket(_):
    """A socket that is no stream could carry descriptors to the agent, or from it."""
    return descriptor(keep(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]).fileno())


def with_an_event(_):
    """Objects of the kernel that are no files are no standard input."""
    return descriptor(os.eventfd(0))


def with_a_process(_):
    """Nor is a handle to a process."""
    return descriptor(os.pidfd_open(os.getpid()))


def with_the_master_of_a_terminal(_):
    """The other end of a pseudo-terminal answers for the person."""
    return descriptor(os.openpty()[0])


def with_the_controlling_device(_):
    """/dev/tty and its like are whoever's terminal it is."""
    return descriptor(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))


def with_a_zero_in_the_environment(_):
    """A variable ends at its zero byte: two readers would see two."""
    return launch_arguments(environment=(b"A=b\0PATH=/evil",))


def with_too_many_arguments(_):
    """Counted before memory is taken for them."""
    return launch_arguments(argv=[b"x"] * 70000)


def with_too_long_arguments(_):
    """And weighed."""
    return launch_arguments(argv=[b"x" * 130000] * 20)


def with_a_wide_environment(_):
    """widen is not mallory's, and nobody asks for a password where the call does not allow it."""
    return launch_arguments(environment=(b"CLAUDE_SANDBOX_PASS_ENV=SECRET",))


def with_a_fourth_descriptor(_):
    """0, 1 and 2 are passed, no other."""
    import dbus
    return launch_arguments(fds={dbus.UInt32(7): dbus.types.UnixFd(os.open("/dev/null", os.O_RDWR))})


_kept = []


def keep(thing):
    _kept.append(thing)
    return thing


def descriptor(fd):
    import dbus
    return launch_arguments(cwd=b"/home/mallory/project", fds={dbus.UInt32(0): dbus.types.UnixFd(fd)})


BAD, LONG = (OURS + "BadRequest",), (OURS + "LimitsExceeded",)
BY_LAUNCH = [
    (with_another_users_option, BAD), (as_a_path, BAD), (as_a_path_upwards, BAD),
    (in_her_directory, (OURS + "UnsafeWorkspace", OURS + "JailUnavailable", OURS + "PlanRefused")),
    (with_a_directory, BAD), (with_a_path_handle, BAD), (with_a_datagram_socket, BAD), (with_an_event, BAD),
    (with_a_process, BAD), (with_the_master_of_a_terminal, BAD), (with_the_controlling_device, BAD),
    (with_a_zero_in_the_environment, BAD), (with_too_many_arguments, LONG), (with_too_long_arguments, LONG),
    (with_a_wide_environment, (DBUS + "InteractiveAuthorizationRequired",)), (with_a_fourth_descriptor, BAD),
]


@test(90, needs="bus")
def launches_of_another(lab):
    """What Launch is given to be more than the caller."""
    lab.workspace(ALICE)
    lab.workspace(MALLORY)
    for attack, wanted in BY_LAUNCH:
        found = as_user(MALLORY, lambda connection, attack=attack: call(connection, bus.PATH, bus.MANAGER, "Launch", LAUNCH,
                                                                        *attack(connection)))
        holds(found[0] in wanted and found[1], f"{attack.__name__}: {found}")
    wait_for(lambda: not lab.sessions(), "nothing was started")


@test(60, needs="bus")
def a_sealed_file_and_a_terminal_of_somebody_else(lab):
    """What one may pass is one's own affair: a memfd works; a terminal that is not open to the caller cannot be named."""
    lab.workspace(MALLORY)

    def memory(connection):
        fd = os.memfd_create("in", os.MFD_ALLOW_SEALING)
        os.write(fd, b"exit 5\n")
        os.lseek(fd, 0, os.SEEK_SET)
        arguments = descriptor(fd)
        arguments[1] = arguments[1][:0]
        return call(connection, bus.PATH, bus.MANAGER, "Launch", LAUNCH, *arguments)[0]
    equal(as_user(MALLORY, memory), "done")

    master, slave = os.openpty()
    os.fchown(slave, ALICE.uid, ALICE.gid)
    os.fchmod(slave, 0o600)
    name = os.ttyname(slave)

    def open_hers(_connection):
        try:
            os.open(name, os.O_RDWR | os.O_NOCTTY)
        except OSError as error:
            return errno.errorcode[error.errno]
        return "open"
    equal(as_user(MALLORY, open_hers), "EACCES")
    os.close(master)
    os.close(slave)
    wait_for(lambda: not lab.sessions(), "the session's end")


@test(60, needs="bus")
def beside_the_bus(lab):
    """Processes, files and sockets of the session: the kernel's own rules, and what the service leaves nobody."""
    with Held(lab, ALICE) as held:
        leader = int(answer_of_property(lab, held, "Leader"))

        def outside(_connection):
            found = {}

            def attempt(name, function):
                try:
                    found[name] = f"done: {function()!r}"
                except OSError as error:
                    found[name] = errno.errorcode[error.errno]
            run = f"{SESSIONS}/{held.id}"
            attempt("signal", lambda: os.kill(leader, signal.SIGKILL))
            attempt("pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(leader), signal.SIGTERM))
            attempt("memory", lambda: os.open(f"/proc/{leader}/mem", os.O_RDONLY))
            attempt("environment", lambda: open(f"/proc/{leader}/environ", "rb").read(1))
            attempt("descriptors", lambda: os.listdir(f"/proc/{leader}/fd"))
            attempt("root", lambda: os.listdir(f"/proc/{leader}/root/"))
            attempt("ids", lambda: os.listdir(SESSIONS))
            attempt("forged directory", lambda: os.mkdir(f"{SESSIONS}/{'b' * 16}"))
            attempt("record", lambda: os.open(f"{run}/record", os.O_RDONLY))
            attempt("another record", lambda: os.symlink("/etc/passwd", f"{run}/record.new"))
            attempt("removed", lambda: os.unlink(f"{run}/link"))
            attempt("link", lambda: connect(f"{run}/link"))
            return found

        def connect(path):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.connect(path)
                return "connected"
        found = as_user(MALLORY, outside)
        holds(isinstance(found, dict), found)
        for name, result in found.items():
            holds(result in ("EPERM", "EACCES", "ENOENT"), f"{name}: {result}")
        equal(held.process.poll(), None)
        equal(held.end(), 3)


def answer_of_property(lab, held, name):
    result = lab.run(["/usr/bin/busctl", "--system", "get-property", bus.NAME, held.path, bus.SESSION, name], ALICE).ok()
    return result.out.split()[1]


@test(60, needs="bus")
def forged_directories_and_peers(lab):
    """
    What somebody made to look like a session is none: the link is listened on by the process that was spawned, with its
    user, and only root's directory counts. Her own session's peer may not speak for another.
    """
    with Held(lab, ALICE) as held:
        forged = f"{SESSIONS}/{'b' * 16}"
        # as if mallory had found a way to write there
        os.mkdir(forged, 0o711)
        os.chown(forged, MALLORY.uid, MALLORY.gid)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(f"{forged}/link")
            s.listen(4)
            lab.stop_service(signal.SIGKILL)
            rows = answer(lab.call("ListSessions", user=ROOT))[0]
        equal([row[0] for row in rows], [held.id], "only what is one")
        subprocess.run(["/bin/rm", "-rf", forged], check=True)
        equal(held.end(), 3)


@test(60, needs="bus")
def polkit_is_asked_about_the_connection(lab):
    """
    The subject is who connected, as the bus knows it, and not a process: one that has become another user since, or has
    left its number to another one, gains and loses nothing. A connection's leave is that connection's.
    """
    from authority import rules
    rules(lab, manage_sessions='return subject.user == "bob" ? polkit.Result.YES : polkit.Result.NO;')
    with Held(lab, ALICE) as held:
        def become(first, then):
            def run(_connection):
                os.seteuid(first.uid)
                connection = bus.Bus.connect()
                call(connection, bus.PATH, bus.MANAGER, "ListSessions")
                os.seteuid(0)
                os.setresuid(then.uid, then.uid, then.uid)
                return call(connection, bus.PATH, bus.MANAGER, "ListAllSessions")[0]
            return as_user(ROOT, run)
        equal(become(MALLORY, BOB), OURS + "NotAuthorized")
        equal(become(BOB, MALLORY), "done")
        equal(as_user(BOB, lambda c: call(c, bus.PATH, bus.MANAGER, "ListAllSessions")[0]), "done")
        equal(as_user(MALLORY, lambda c: call(c, held.path, PROPERTIES, "Get", "ss", bus.SESSION, "User")[0]), UNKNOWN[0])
        equal(held.end(), 3)


@test(60, needs="bus")
def storms_of_calls_that_are_taken_back(lab):
    """Hundreds of calls whose callers leave at once: nothing of them stays, and others are served."""
    import dbus
    lab.workspace(MALLORY)
    pid = lab.service_pid() or (lab.call("ListSessions"), lab.service_pid())[1]
    before = len(os.listdir(f"/proc/{pid}/fd"))

    def storm(first):
        for n in range(40):
            connection = first if n == 0 else bus.Bus.connect()
            for member, signature, arguments in (
                    ("Launch", LAUNCH, launch_arguments(environment=(b"CLAUDE_SANDBOX_PASS_ENV=X",), cwd=b"/home/mallory/project")),
                    ("ListAllSessions", "", []), ("StopSession", "sa{sv}", ["c" * 16, empty()]),
                    ("Subscribe", "", []), ("AddAllowIp", "ssa{sv}", ["10.1.2.3", "", empty()])):
                message = dbus.lowlevel.MethodCallMessage(bus.NAME, bus.PATH, bus.MANAGER, member)
                message.append(signature=signature, *arguments)
                message.set_auto_start(True)
                connection.send_message(message)
            connection.flush()
            connection.close()
        return "sent"
    equal(as_user(MALLORY, storm), "sent")
    lab.shell("true").ok()
    wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before + 4, "its descriptors")
    equal(lab.service_pid(), pid, "the same service")
    wait_for(lambda: not lab.sessions(), "nothing of it stays")


@test(60, needs="bus")
def a_thousand_descriptors(lab):
    """The bus takes sixteen in a message; more, and many messages of them, end mallory's connection, not the service."""
    lab.workspace(MALLORY)
    pid = lab.service_pid() or (lab.call("ListSessions"), lab.service_pid())[1]

    def flood(_connection):
        outcome = []
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(bus.SOCKET)
            null = os.open("/dev/null", os.O_RDONLY)
            s.sendall(b"\0AUTH EXTERNAL " + str(MALLORY.uid).encode().hex().encode() + b"\r\n")
            s.recv(100)
            s.sendall(b"NEGOTIATE_UNIX_FD\r\n")
            s.recv(100)
            s.sendall(b"BEGIN\r\n")
            try:
                for _ in range(8):
                    s.sendmsg([b"l"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 125))])
                s.settimeout(5)
                outcome.append("closed" if s.recv(1) == b"" else "answered")
            except OSError as error:
                outcome.append(errno.errorcode.get(error.errno, str(error)))
        return outcome
    found = as_user(MALLORY, flood)
    holds(found[0] in ("closed", "ECONNRESET", "EPIPE", "timed out", "None"), f"{found}")
    lab.shell("true").ok()
    equal(lab.service_pid(), pid)


@test(60, needs="bus")
def answers_and_signals_of_others(lab):
    """A reply or a signal that mallory sends in the service's or polkit's name is not taken for theirs: the bus signs it."""
    import dbus
    with Held(lab, ALICE) as held:
        owner = str(bus.Bus.connect().get_object("org.freedesktop.DBus", "/org/freedesktop/DBus", introspect=False).GetNameOwner(
            bus.NAME, dbus_interface="org.freedesktop.DBus"))

        def forge(connection):
            signal_message = dbus.lowlevel.SignalMessage("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged")
            signal_message.append(bus.NAME, owner, "", signature="sss")
            signal_message.set_destination(owner)
            connection.send_message(signal_message)
            connection.flush()
            return call(connection, bus.PATH, bus.MANAGER, "ListSessions")
        equal(as_user(MALLORY, forge)[0], "done")
        equal([row[0] for row in answer(lab.call("ListSessions", user=ALICE))[0]], [held.id])
        equal(held.end(), 3)


@test(60, needs="bus")
def names_of_others_in_what_one_sees(lab):
    """Lists, counts, the tree, the log and errors of mallory hold nothing of alice: no id, no path, no name."""
    with Held(lab, ALICE) as held:
        text = b""
        for command in ([SANDBOX, "sessions"], [SANDBOX, "sessions", "--json"], [SANDBOX, "show"],
                        [SANDBOX, "show", held.id[:6]], ["/usr/bin/busctl", "--system", "tree", "--list", bus.NAME],
                        ["/usr/bin/busctl", "--system", "get-property", bus.NAME, bus.PATH, bus.MANAGER, "Sessions"],
                        ["/usr/bin/busctl", "--system", "call", bus.NAME, bus.PATH, bus.MANAGER, "GetPolicy"]):
            result = lab.run(command, MALLORY)
            text += result.out + result.err.replace(held.id[:6].encode(), b"")
        holds(held.id.encode() not in text and b"alice" not in text, text.decode(errors="replace"))
        told = []
        for name in (held.id, "d" * 16):
            as_user(MALLORY, lambda c, name=name: call(c, bus.PATH, bus.MANAGER, "StopSession", "sa{sv}", name, empty()))
            event = json.loads(lab.run([SANDBOX, "log", "--json"], MALLORY).ok().out)[-1]
            equal(event.pop("about"), name, "what was asked for, whether it is there or not")
            event.pop("time_usec")
            told.append(event)
        equal(told[0], told[1])
        equal(held.end(), 3)
