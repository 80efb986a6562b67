# SPDX-License-Identifier: MIT
"""
A machine for the service: private mount, network and pid namespaces, the shipped files in their places, and the real
dbus-daemon at the real path. Everything ends with the process that made it.
"""

import contextlib
import ctypes
import json
import os
import pickle
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback

import dbus
import dbus.bus

NAME = "org.claudesandbox1"
PATH = "/org/claudesandbox1"
MANAGER = NAME + ".Manager"
SESSION = NAME + ".Session"
PROPERTIES = "org.freedesktop.DBus.Properties"
ERROR = NAME + ".Error."
BUS = "unix:path=/run/dbus/system_bus_socket"
LIBEXEC = "/usr/libexec/claude-sandbox"
DEADLINE = 20.0

USER = 1000
OTHER = 1001
CASES = []

libc = ctypes.CDLL(None, use_errno=True)
SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def enter():
    """Run this program again where nothing of it can be seen outside."""
    if os.environ.get("DAEMON_TEST_INSIDE"):
        return
    os.environ["DAEMON_TEST_INSIDE"] = "1"
    os.execv("/usr/bin/unshare", ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                                  "--propagation", "private", *sys.argv])


def run(*command, **options):
    return subprocess.run(command, check=True, **options)


def overlay(directory):
    upper = "/run/overlay" + directory
    os.makedirs(upper + "/upper")
    os.makedirs(upper + "/work")
    run("mount", "-t", "overlay", "overlay", "-o",
        f"lowerdir={directory},upperdir={upper}/upper,workdir={upper}/work", directory)


def prepend(path, line):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(line + text)


class Machine:
    def __init__(self, build, stand_in):
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
        run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/var/tmp")
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/var/log")
        run("ip", "link", "set", "lo", "up")
        for directory in ("/usr", "/etc"):
            overlay(directory)
        os.makedirs(LIBEXEC, exist_ok=True)
        shutil.copy(build + "/service/daemon/claude-sandboxd", LIBEXEC)
        shutil.copy(stand_in, LIBEXEC + "/session")
        shutil.copy(SOURCE + "/dbus/org.claudesandbox1.conf", "/usr/share/dbus-1/system.d")
        shutil.copy(build + "/dbus/org.claudesandbox1.service", "/usr/share/dbus-1/system-services")
        shutil.copy(SOURCE + "/polkit/org.claudesandbox1.policy", "/usr/share/polkit-1/actions")
        for name in os.listdir(LIBEXEC):
            os.chmod(os.path.join(LIBEXEC, name), 0o755)
        self.unconfigure()
        # before whomever the machine has under that number
        prepend("/etc/passwd", f"other:x:{OTHER}:{OTHER}::/home/other:/bin/sh\n")
        prepend("/etc/group", f"other:x:{OTHER}:\n")
        self.bus = None
        self.log = open("/run/bus.log", "ab+")
        self.start_bus()

    def start_bus(self, confine=None):
        """confine: called in the process that becomes the bus, which starts the service."""
        os.makedirs("/run/dbus", exist_ok=True)
        environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": "", "DBUS_VERBOSE": "0"}
        self.bus = subprocess.Popen(["dbus-daemon", "--system", "--nofork", "--nopidfile"], stdout=self.log,
                                    stderr=self.log, env=environment, preexec_fn=confine)
        wait_for(lambda: can_connect("/run/dbus/system_bus_socket"), "the bus")

    def stop_bus(self):
        self.bus.kill()
        self.bus.wait()
        os.unlink("/run/dbus/system_bus_socket")

    @contextlib.contextmanager
    def service_confined(self, confine):
        """A service as it is in a container."""
        for how in (confine, None):
            if processes("claude-sandboxd"):
                end_service()
            self.stop_bus()
            self.start_bus(how)
            if how:
                yield

    def text(self):
        with open("/run/bus.log", "r", errors="replace") as f:
            return f.read()

    def configure(self, text, mode=0o644):
        """At once, as editors do: a file that is written over is empty for a moment, and the service may look then."""
        with open("/etc/claude-sandbox.conf.new", "w") as f:
            f.write(text)
        os.chmod("/etc/claude-sandbox.conf.new", mode)
        os.rename("/etc/claude-sandbox.conf.new", "/etc/claude-sandbox.conf")

    def unconfigure(self):
        if os.path.lexists("/etc/claude-sandbox.conf"):
            os.unlink("/etc/claude-sandbox.conf")


def can_connect(path):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


def wait_for(function, what, deadline=DEADLINE):
    end = time.monotonic() + deadline
    while True:
        value = function()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited in vain for " + what)
        select.select([], [], [], 0.01)


def processes(name):
    """The pids of the living; who has ended may wait for whoever reaps."""
    found = []
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                    comm, rest = f.read().split("(", 1)[1].rsplit(")", 1)
                if comm == name[:15] and rest.split()[0] not in "ZX":
                    found.append(int(pid))
            except OSError:
                pass
    return found


def case(function):
    CASES.append(function)
    return function


def service():
    return wait_for(lambda: processes("claude-sandboxd"), "the service")[0]


def end_service():
    os.kill(service(), signal.SIGKILL)
    wait_for(lambda: not processes("claude-sandboxd"), "the service's end")


def cgroup2():
    with open("/proc/mounts", encoding="utf-8") as f:
        return [line.split()[1] for line in f if line.split()[2] == "cgroup2"][0]


def refused(name, words, function, *arguments, **options):
    """The call must fail with this error and these words in its sentence."""
    try:
        value = function(*arguments, **options)
    except Error as e:
        assert e.name == (name if "." in name else ERROR + name), e
        assert e.message and words in e.message, e
        return e
    raise AssertionError(f"not refused ({name}): {value}")


def nothing_left(caller):
    """No session, process or directory of one."""
    wait_for(lambda: caller.manager("ListSessions") == [] and not processes("session") and
             os.listdir("/run/claude-sandbox/sessions") == [], "the end of every session")


class Actor:
    """A process of some user that does something, says so, and stays until it is ended."""

    def __init__(self, uid, function, *arguments, then=None):
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                ours.close()
                os.setgroups([uid])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                kept = function(*arguments)
                theirs.sendall(b"done")
                theirs.recv(10)
                theirs.sendall(then(kept))
                signal.pause()
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()
            finally:
                os._exit(1)
        theirs.close()
        self.socket = ours

    def done(self):
        assert select.select([self.socket], [], [], DEADLINE)[0] and self.socket.recv(10) == b"done", "an actor failed"
        return self

    def then(self):
        """The second thing that it does. Return: its bytes."""
        self.socket.sendall(b"go")
        assert select.select([self.socket], [], [], DEADLINE)[0], "an actor does not answer"
        return self.socket.recv(65536)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.socket.close()


class Error(Exception):
    def __init__(self, name, message):
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


class Caller:
    """A process of some user that calls; its descriptors from answers stay open in it."""

    def __init__(self, uid, gid=None, groups=None, prepare=None, after=None):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                ours.close()
                if prepare:
                    prepare()
                gid = uid if gid is None else gid
                os.setgroups([gid] if groups is None else groups)
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
                libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, as after an execve
                if after:
                    after()
                serve(theirs)
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc()
            finally:
                os._exit(0)
        theirs.close()
        self.socket = ours
        self.pidfd = os.pidfd_open(self.pid)

    def start(self, *call, **options):
        self.socket.send(pickle.dumps((call, options)))

    def answered(self):
        return bool(select.select([self.socket], [], [], 0)[0])

    def finish(self, deadline=DEADLINE):
        if not select.select([self.socket], [], [], deadline)[0]:
            raise AssertionError("a call was not answered")
        kind, *rest = pickle.loads(self.socket.recv(8 << 20))
        if kind == "error":
            raise Error(*rest)
        return rest[0]

    def call(self, path, interface, member, signature="", *arguments, **options):
        self.start(path, interface, member, signature, *arguments, **options)
        return self.finish()

    def manager(self, member, signature="", *arguments, **options):
        return self.call(PATH, MANAGER, member, signature, *arguments, **options)

    def launch_start(self, *argv, agent="shell", environment=(), cwd=b"/tmp", fds=None, options=None, **more):
        self.start(PATH, MANAGER, "Launch", "saayaayaya{uh}a{sv}", agent, list(argv), list(environment), cwd,
                   {} if fds is None else fds, {} if options is None else options, **more)

    def launch(self, *argv, **options):
        self.launch_start(*argv, **options)
        return self.finish()

    def close_fds(self):
        self.start("close-fds")
        self.finish()

    def get(self, path, interface, name):
        return self.call(path, PROPERTIES, "Get", "ss", interface, name)

    def close(self):
        self.socket.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.pidfd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def plain(value):
    if isinstance(value, dbus.types.UnixFd):
        fd = value.take()
        return {"fd": fd}
    if isinstance(value, dbus.ByteArray):
        return bytes(value)
    if isinstance(value, (dbus.Array, dbus.Struct, tuple, list)):
        if isinstance(value, dbus.Array) and value.signature == "y":
            return bytes(value)
        return [plain(v) for v in value]
    if isinstance(value, dbus.Boolean):
        return bool(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    return value


OPENERS = {
    "null": lambda: os.open("/dev/null", os.O_RDWR),
    "mem": lambda: os.open("/proc/self/mem", os.O_RDWR),
    "status": lambda: os.open("/proc/self/status", os.O_RDONLY),
    "namespace": lambda: os.open("/proc/self/ns/net", os.O_RDONLY),
    "directory": lambda: os.open("/", os.O_RDONLY),
    "path": lambda: os.open("/etc/passwd", os.O_PATH),
    "file": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "pipe": lambda: os.pipe()[0],
    "stream": lambda: socket.socketpair()[0].detach(),
    "datagram": lambda: socket.socketpair(type=socket.SOCK_DGRAM)[0].detach(),
    "pidfd": lambda: os.pidfd_open(os.getpid()),
    "eventfd": lambda: os.eventfd(0),
    "epoll": lambda: libc.epoll_create1(0),
    "memfd": lambda: os.memfd_create("x"),
    "pty": lambda: os.openpty()[1],
    "master": lambda: os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY),
    "pty-2": lambda: os.openpty()[1],
    "tty": lambda: own_terminal(),
    "tun": lambda: os.open("/dev/net/tun", os.O_RDWR),
    "kmsg": lambda: os.open("/dev/kmsg", os.O_RDONLY),
}


def own_terminal():
    if os.getsid(0) != os.getpid():
        os.setsid()
    slave = os.openpty()[1]
    os.ttyname(slave)
    fd = os.open(os.ttyname(slave), os.O_RDWR)
    return fd


def serve(channel):
    """The calling process: one command after the other."""
    connection = None
    kept = []
    while True:
        data = channel.recv(8 << 20)
        if not data:
            return
        call, options = pickle.loads(data)
        try:
            if connection is None or options.get("fresh"):
                connection = dbus.bus.BusConnection(BUS)
            if call[0] == "name":
                channel.send(pickle.dumps(("value", str(connection.get_unique_name()))))
                continue
            if call[0] == "close-fds":
                for fd in kept:
                    os.close(fd)
                kept.clear()
                channel.send(pickle.dumps(("value", None)))
                continue
            if call[0] == "leave-to-child":
                leave_to_child(connection, channel, call[1])
                continue
            path, interface, member, signature, *arguments = call
            arguments = [prepare(a, kept) for a in arguments]
            value = connection.call_blocking(NAME, path, interface, member, signature, arguments, timeout=60.0)
            value = plain(value)
            for part in value if isinstance(value, list) else []:
                if isinstance(part, dict) and "fd" in part:
                    kept.append(part["fd"])
            channel.send(pickle.dumps(("value", value)))
        except dbus.DBusException as e:
            channel.send(pickle.dumps(("error", e.get_dbus_name(), e.get_dbus_message())))
        except Exception as e:  # pylint: disable=broad-except
            channel.send(pickle.dumps(("error", "python", repr(e))))


def leave_to_child(connection, channel, when):
    """The connection's process ends; its child calls through it."""
    if when == "later":
        connection.call_blocking(NAME, PATH, MANAGER, "ListSessions", "", [], timeout=60.0)
    parent = os.pidfd_open(os.getpid())
    if os.fork():
        os._exit(0)
    select.select([parent], [], [])
    try:
        connection.call_blocking(NAME, PATH, MANAGER, "Launch", "saayaayaya{uh}a{sv}",
                                 ["shell", [], [], dbus.ByteArray(b"/tmp"), {}, {}], timeout=60.0)
        channel.send(pickle.dumps(("value", None)))
    except dbus.DBusException as e:
        channel.send(pickle.dumps(("error", e.get_dbus_name(), e.get_dbus_message())))
    os._exit(0)


def prepare(argument, kept):
    if isinstance(argument, bytes):
        return dbus.ByteArray(argument)
    if isinstance(argument, list) and argument and isinstance(argument[0], bytes):
        return dbus.Array([dbus.ByteArray(a) for a in argument], signature="ay")
    if isinstance(argument, dict) and argument and all(isinstance(k, int) for k in argument):
        opened = {}
        for key, what in argument.items():
            if isinstance(what, str):
                if what not in opened:
                    opened[what] = OPENERS[what]()
                    kept.append(opened[what])
                argument[key] = dbus.types.UnixFd(opened[what])
        return dbus.Dictionary(argument, signature="uh")
    if isinstance(argument, dict):
        return dbus.Dictionary({k: number(v) for k, v in argument.items()}, signature="sv")
    return argument


def number(value):
    if isinstance(value, bytes):
        return dbus.ByteArray(value, variant_level=1)
    if isinstance(value, list):
        return dbus.Array([dbus.ByteArray(v) for v in value], signature="ay", variant_level=1)
    return dbus.UInt64(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Watch:
    """Signals, as one user gets them."""

    def __init__(self, program, uid, subscribe=True):
        self.process = subprocess.Popen([program] + ([] if subscribe else ["quiet"]), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, user=uid, group=uid, extra_groups=[])
        self.lines = []
        self.buffer = b""
        self.expect("ready")

    def read(self, timeout):
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            return False
        data = os.read(self.process.stdout.fileno(), 65536)
        self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        self.lines += [line.decode() for line in lines]
        return bool(data)

    def expect(self, text):
        end = time.monotonic() + DEADLINE
        while not any(text in line for line in self.lines):
            if time.monotonic() > end or not self.read(end - time.monotonic()):
                raise AssertionError(f"no signal '{text}' among {self.lines}")

    def take(self):
        """What has come, to be looked at once."""
        lines, self.lines = self.lines, []
        return lines

    def close(self):
        # Callers have a copy of the other end of its standard input, so it has no end while they live.
        self.process.kill()
        self.process.wait()
        while self.read(0):
            pass
        return self.lines


def warnings(caller, path, want):
    """The stand-in's facts, when they have come."""
    def ask():
        found = caller.get(path, SESSION, "Warnings")
        return found if any(want in line for line in found) else None
    return wait_for(ask, want)


def introspect(caller, path):
    return caller.call(path, "org.freedesktop.DBus.Introspectable", "Introspect")


__all__ = [name for name in dir() if not name.startswith("_")] + ["json", "signal", "struct"]
