# SPDX-License-Identifier: MIT
"""The system bus of the lab: the real dbus-daemon at the real path, the real polkitd, and what they say."""

import json
import os
import signal
import socket
import subprocess
import time

import machine
import system

SOCKET = "/run/dbus/system_bus_socket"
LOG = machine.LOGS + "/bus.log"
NAME = "org.claudesandbox1"
POLKIT = "org.freedesktop.PolicyKit1"
PATH = "/org/claudesandbox1"
MANAGER = "org.claudesandbox1.Manager"
SESSION = "org.claudesandbox1.Session"


class Bus:
    def __init__(self):
        self.process = None

    def start(self):
        """Return when the bus accepts connections."""
        ready, theirs = os.pipe()
        log = open(LOG, "ab")
        self.process = subprocess.Popen(
            ["/usr/bin/dbus-daemon", "--system", "--nofork", "--nopidfile", "--nosyslog", f"--print-address={theirs}"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[theirs], preexec_fn=system.reset_signals,
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"})
        log.close()
        os.close(theirs)
        with os.fdopen(ready, "rb") as f:
            if not f.readline():
                raise RuntimeError("dbus-daemon did not start:\n" + self.log())
        self.polkit_is_there()

    def polkit_is_there(self, limit=20):
        """Started by the first who asks it, it would be taken for something that this one has left behind."""
        import dbus
        end = time.monotonic() + limit
        connection = self.connect()
        try:
            while True:
                try:
                    connection.call_blocking("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                             "StartServiceByName", "su", (POLKIT, 0), timeout=limit)
                    return
                except dbus.DBusException:             # a test has just given the bus its file back, or its last one dies
                    if time.monotonic() > end:
                        raise
                    select_nothing(0.05)
        finally:
            connection.close()

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(10)
            self.process = None

    @staticmethod
    def log():
        try:
            with open(LOG, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    @staticmethod
    def connect():
        import dbus
        import dbus.bus
        return dbus.bus.BusConnection(f"unix:path={SOCKET}")

    def owner_pid(self, name=NAME):
        """Return: the pid of the name's owner, or None (without a bus too); never activates it."""
        import dbus
        try:
            connection = self.connect()
        except dbus.DBusException as error:
            if error.get_dbus_name().rsplit(".", 1)[-1] in ("FileNotFound", "NoServer"):
                return None
            raise
        try:
            daemon = connection.get_object("org.freedesktop.DBus", "/org/freedesktop/DBus", introspect=False)
            return int(daemon.GetConnectionUnixProcessID(name, dbus_interface="org.freedesktop.DBus"))
        except dbus.DBusException as error:
            if error.get_dbus_name() == "org.freedesktop.DBus.Error.NameHasNoOwner":
                return None
            raise
        finally:
            connection.close()


def connected(pid):
    """Has that process a connection to the bus?"""
    connection = Bus.connect()
    try:
        daemon = connection.get_object("org.freedesktop.DBus", "/org/freedesktop/DBus", introspect=False)
        for name in daemon.ListNames(dbus_interface="org.freedesktop.DBus"):
            if name.startswith(":"):
                try:
                    if int(daemon.GetConnectionUnixProcessID(name, dbus_interface="org.freedesktop.DBus")) == pid:
                        return True
                except Exception:                      # it left meanwhile
                    pass
        return False
    finally:
        connection.close()


def wait_pid_gone(pid, limit):
    """Return: True when the process ended within limit seconds."""
    import select
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], limit)[0])
    finally:
        os.close(fd)


def wait_socket(path, limit):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(path)
                return True
            except OSError:
                select_nothing(0.01)
    return False


def select_nothing(seconds):
    import select
    select.select([], [], [], seconds)


def as_user(user, function):
    """What function(connection) returns (JSON values only), called in a process that is that user's."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        value = None
        try:
            os.close(read)
            os.initgroups(user.name, user.gid)
            os.setgid(user.gid)
            os.setuid(user.uid)
            value = function(Bus.connect())
        except BaseException as error:                 # the parent shows it
            value = f"in the caller's process: {error!r}"
        finally:
            os.write(write, json.dumps(value).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        value = json.loads(f.read())
    os.waitpid(pid, 0)
    return value


def send_rows(word, user):
    """user sends a row, for the call that is known by word, to everybody on the bus; all of it has arrived."""
    def forge(connection):
        import dbus
        driver = connection.get_object("org.freedesktop.DBus", "/org/freedesktop/DBus", introspect=False)
        for name in driver.ListNames(dbus_interface="org.freedesktop.DBus"):
            row = dbus.lowlevel.SignalMessage(PATH, MANAGER, "Row")
            row.append(word, ("00", "fail", "forged", "forged too", "forged"), signature="s(sssss)")
            row.set_destination(name)
            if name.startswith(":"):
                connection.send_message(row)
        # the bus answers behind what it has passed on
        driver.GetId(dbus_interface="org.freedesktop.DBus")
        return "sent"
    answer = as_user(user, forge)
    if answer != "sent":
        raise AssertionError(answer)
