# SPDX-License-Identifier: MIT
"""
What can be wrong with a machine, done to the lab until the test ends. Each takes the lab, undoes itself by
lab.undo, and touches nothing but what it is named for.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import struct

import machine
import system
from authority import end_polkit
from case import equal, wait_for

SESSION = "/usr/libexec/claude-sandbox/session"
SERVICE = "/usr/libexec/claude-sandbox/claude-sandboxd"
RESOLV = "/etc/resolv.conf"
IDS = "/run/lab-ids"               # where wrapper.c has its ids mapped
SYSCTLS = "/run/lab-kernel"


# The device

def _gone(path):
    if os.path.lexists(path):
        os.unlink(path)


def tun_on_files_without_devices(_lab):
    system.mount("net", "/dev/net", None, system.MS_BIND | system.MS_REMOUNT | system.MS_NODEV)


def with_devices_again(_lab):
    system.mount("net", "/dev/net", None, system.MS_BIND | system.MS_REMOUNT)


BPF_PROG_LOAD, BPF_PROG_ATTACH, BPF_PROG_DETACH = 5, 8, 9
BPF_PROG_TYPE_CGROUP_DEVICE, BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI = 15, 6, 2
SYS_BPF = {"x86_64": 321, "aarch64": 280}


def _bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result = system.libc.syscall(SYS_BPF[os.uname().machine], command, buffer, len(attributes))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"bpf: {os.strerror(error)}")
    return result


def device_cgroup(lab, major, minor):
    """As engines do for their containers: a program of the control group decides, and that device is not for us."""
    def instruction(code, target, source, jump, value):
        return struct.pack("<BBhi", code, target | source << 4, jump, value)

    # struct bpf_cgroup_dev_ctx (linux/bpf.h): access_type, major, minor
    program = b"".join([
        instruction(0x61, 2, 1, 4, 0), instruction(0x61, 3, 1, 8, 0), instruction(0xb7, 0, 0, 0, 1),
        instruction(0x55, 2, 0, 2, major), instruction(0x55, 3, 0, 1, minor), instruction(0xb7, 0, 0, 0, 0),
        instruction(0x95, 0, 0, 0, 0)])
    code = ctypes.create_string_buffer(program, len(program))
    licence = ctypes.create_string_buffer(b"MIT")
    fd = _bpf(BPF_PROG_LOAD, struct.pack("<IIQQIIQII", BPF_PROG_TYPE_CGROUP_DEVICE, len(program) // 8, ctypes.addressof(code),
                                         ctypes.addressof(licence), 0, 0, 0, 0, 0))
    group = os.open("/sys/fs/cgroup", os.O_RDONLY | os.O_DIRECTORY)
    _bpf(BPF_PROG_ATTACH, struct.pack("<IIII", group, fd, BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI))

    def detach():
        _bpf(BPF_PROG_DETACH, struct.pack("<IIII", group, fd, BPF_CGROUP_DEVICE, 0))
        os.close(group)
        os.close(fd)
    lab.undo.append(detach)


# Files and programs

def instead(lab, path, make):
    """make puts something at path, whether or not there was a thing before."""
    if os.path.lexists(path):
        lab.hide(path)
    lab.undo.append(lambda: _gone(path))
    make(path)


def owner(lab, path, user):
    before = os.stat(path)
    lab.undo.append(lambda: os.chown(path, before.st_uid, before.st_gid))
    os.chown(path, user.uid, user.gid)


def stands_in(lab, path, script):
    """A program that answers --help and --version as the real one does, and does that otherwise."""
    target = os.path.realpath(path)
    lab.replace(target, f'#!/bin/sh\ncase $1 in --help|--version) exec {target}.hidden-by-a-test "$1";; esac\n{script}\n', 0o755)


def old_bwrap(lab):
    """One of a time before --bind-fd."""
    path = os.path.realpath("/usr/bin/bwrap")
    lab.replace(path, f"#!/bin/sh\ncase $1 in --version) echo bubblewrap 0.4.1; exit;;\n"
                      f"--help) {path}.hidden-by-a-test --help | grep -v -e -fd; exit;; esac\n"
                      "echo \"bwrap: Unknown option --bind-fd\" >&2; exit 1\n", 0o755)


# The kernel

@contextlib.contextmanager
def _mapper():
    """Maps every id to itself for each process that connects to IDS."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(IDS)
        os.chmod(IDS, 0o666)
        listener.listen(5)
        child = os.fork()
        if child == 0:
            try:
                system.die_with_parent()
                while True:
                    peer, _ = listener.accept()
                    pid = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
                    for name in ("uid_map", "gid_map"):
                        with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as f:
                            f.write("0 0 4294967295")
                    peer.send(b"x")
                    peer.close()
            finally:
                os._exit(1)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.unlink(IDS)


def in_a_user_namespace(lab, line):
    """Sessions start in a user namespace of the test's own: line is the wrapper's."""
    stack = contextlib.ExitStack()
    stack.enter_context(_mapper())
    lab.undo.append(stack.close)
    lab.wrap(SESSION, line)


def chrooted(lab):
    os.makedirs("/srv/other-root", exist_ok=True)
    lab.undo.append(lambda: system.unmount("/srv/other-root"))
    system.bind("/", "/srv/other-root")
    in_a_user_namespace(lab, "chroot /srv/other-root")


def kernel_says(lab, **values):
    """Other numbers in /proc/sys/kernel, by a mount over it; /proc/sys itself is the whole machine's, and stays."""
    os.makedirs(SYSCTLS)
    for directory, _, names in os.walk("/proc/sys/kernel"):
        target = SYSCTLS + directory.removeprefix("/proc/sys/kernel")
        os.makedirs(target, exist_ok=True)
        for name in names:
            with contextlib.suppress(OSError):
                with open(f"{directory}/{name}", "rb") as f:
                    machine.write(f"{target}/{name}", f.read())
    for name, value in values.items():
        machine.write(f"{SYSCTLS}/{name.replace('__', '/')}", f"{value}\n")
    system.bind(SYSCTLS, "/proc/sys/kernel")
    lab.undo.append(lambda: (system.unmount("/proc/sys/kernel"), shutil.rmtree(SYSCTLS)))


def apparmor_is_on(lab):
    """By the file that its module has."""
    system.mount("module", "/sys/module", "tmpfs", system.MS_NODEV, "mode=0755")
    lab.undo.append(lambda: system.unmount("/sys/module"))
    machine.write("/sys/module/apparmor/parameters/enabled", "Y\n")


def proc_is_masked(lab):
    """As container engines do: something lies over a part of it."""
    path = next(path for path in ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/interrupts") if os.path.isfile(path))
    system.mount("/dev/null", path, None, system.MS_BIND)
    lab.undo.append(lambda: system.unmount(path))


def no_cgroup2(lab):
    lab.undo.append(lab.stop_service)
    lab.stop_service()
    system.mount("none", "/sys/fs/cgroup", "tmpfs", system.MS_NODEV | system.MS_RDONLY, "mode=0755")
    lab.undo.append(lambda: system.unmount("/sys/fs/cgroup"))


# The network

def ip(*words):
    system.must("/usr/sbin/ip", *words)


def subnet(lab, address):
    ip("address", "add", address, "dev", "up1")
    lab.undo.append(lambda: ip("address", "del", address, "dev", "up1"))


def no_default_route(lab):
    with_it = system.must("/usr/sbin/ip", "-4", "route", "show", "default").split()
    ip("route", "del", "default")
    lab.undo.append(lambda: ip("route", "replace", *with_it))


def resolvers(lab, text):
    lab.replace(RESOLV, text)


def deaf_server(lab, address):
    """A name server that hears everything and says nothing."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    lab.undo.append(server.close)
    resolvers(lab, f"nameserver {address}\n")


# The bus and polkit

def reload_bus(lab):
    system.must("/usr/bin/busctl", "call", "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ReloadConfig")
    equal(lab.bus.process.poll(), None, "the bus runs")


def changed_bus(lab, change, running=False):
    """change: something that the bus reads. running: the service goes on."""
    lab.undo.append(lambda: (reload_bus(lab), None if running else lab.stop_service()))
    if running:
        lab.call("ListSessions", user=machine.ROOT).ok()
    else:
        lab.stop_service()
    change()
    reload_bus(lab)


def no_bus(lab):
    lab.stop_service()
    end_polkit(lab)
    lab.bus.stop()
    lab.undo.append(lambda: (lab.bus.start(), polkit_is_there()))


def other_service(lab, script):
    """A program of root's that the bus starts in the service's place. script: Python, with `bus` connected and owner of the name."""
    lab.undo.append(lab.stop_service)
    lab.stop_service()
    lab.replace(SERVICE, f"""#!/usr/bin/python3
import os, dbus, dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib
DBusGMainLoop(set_as_default=True)
bus = dbus.SystemBus()
{script}
""", 0o755)


def owner_of_the_name(lab):
    """This very process has the name, and answers nothing."""
    import dbus
    lab.stop_service()
    connection = lab.bus.connect()
    lab.undo.append(connection.close)
    daemon = connection.get_object("org.freedesktop.DBus", "/org/freedesktop/DBus", introspect=False)
    equal(int(daemon.RequestName("org.claudesandbox1", dbus.UInt32(4), dbus_interface="org.freedesktop.DBus")), 1)


def stopped(lab, pid):
    """A process that lives and does nothing."""
    os.kill(pid, signal.SIGSTOP)
    lab.undo.append(lambda: os.kill(pid, signal.SIGCONT))


def polkit_is_there():
    """Started anew it takes its time on a busy machine, more than Doctor gives it."""
    system.must("/usr/bin/busctl", "call", "org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority",
                "org.freedesktop.PolicyKit1.Authority", "EnumerateActions", "s", "", timeout=30)


def polkit_forgets(lab, change):
    lab.undo.append(lambda: (end_polkit(lab), polkit_is_there()))
    change()
    end_polkit(lab)


# What is the person's

def agent_is(lab, user, target, name="claude"):
    """A link in the place of the person's own install."""
    instead(lab, f"{user.home}/.local/bin/{name}",
            lambda path: (os.symlink(target, path), os.chown(path, user.uid, user.gid, follow_symlinks=False)))


def planted(lab, user, name="claude"):
    """In a directory that the agent may write. Return: the directory."""
    path = f"{lab.workspace(user)}/bin/{name}"
    machine.write(path, "#!/bin/sh\necho PLANTED\n", 0o755, user)
    lab.undo.append(lambda: shutil.rmtree(os.path.dirname(path)))
    return os.path.dirname(path)


def stale(lab, name="aaaaaaaaaaaaaaaa"):
    """A run directory that a session has left while the service runs."""
    path = f"/run/claude-sandbox/sessions/{name}"
    os.mkdir(path, 0o711)
    lab.undo.append(lambda: wait_for(lambda: _swept(path), "nothing stays"))


def _swept(path):
    shutil.rmtree(path, ignore_errors=True)
    return not os.path.lexists(path)
