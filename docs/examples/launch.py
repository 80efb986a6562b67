#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Start an agent by Launch of org.claudesandbox1 and exit as it does.

    launch.py AGENT [ARGUMENT...]

Standard input, output and error become the agent's where they are pipes or files. A terminal never enters the jail:
in its place the agent reads /dev/null and writes through cat(1). For an agent that needs a terminal, type its name;
that makes a pseudo-terminal. Needs python3-dbus.
"""

import os
import signal
import socket
import struct
import subprocess
import sys

import dbus

BUS_NAME = "org.claudesandbox1"
MANAGER_PATH = "/org/claudesandbox1"
MANAGER_INTERFACE = "org.claudesandbox1.Manager"

# A packet of the lifeline: kind, number, length of the text, text. See org.claudesandbox1(5).
HEAD = struct.Struct("<IiI")
WARNING, EXITED = 0, 4
PACKET_MAX = 8192

NO_TIME_LIMIT = 0x7FFFFFFF / 1000.0  # what libdbus takes for "infinite", in seconds


def descriptors():
    """What becomes 0, 1 and 2 of the agent, and the children that stand between it and a terminal."""
    passed, children = {}, []
    for fd in (0, 1, 2):
        if not os.isatty(fd):
            passed[fd] = fd
        elif fd == 0:
            passed[fd] = os.open("/dev/null", os.O_RDONLY)
        else:
            child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=fd)
            passed[fd] = child.stdin.fileno()
            children.append(child)
    return passed, children


def byte_strings(strings):
    return dbus.Array([dbus.ByteArray(s) for s in strings], signature="ay")


def launch(agent, arguments, fds):
    """Return the socket that reports the agent's end. While it is open, the agent's caller is there."""
    proxy = dbus.SystemBus().get_object(BUS_NAME, MANAGER_PATH, introspect=False)
    _id, _session, lifeline = dbus.Interface(proxy, MANAGER_INTERFACE).Launch(
        agent,
        byte_strings(arguments),
        byte_strings(name + b"=" + value for name, value in os.environb.items()),
        dbus.ByteArray(os.getcwdb()),
        dbus.Dictionary({dbus.UInt32(n): dbus.types.UnixFd(fd) for n, fd in fds.items()}, signature="uh"),
        dbus.Dictionary({}, signature="sv"),
        timeout=NO_TIME_LIMIT,
    )
    return socket.socket(fileno=lifeline.take())


def wait(lifeline):
    """Print the warnings. Return the agent's status as wait(2) encodes it, or None if nobody can tell."""
    while packet := lifeline.recv(PACKET_MAX):
        kind, number, size = HEAD.unpack_from(packet)
        if kind == WARNING:
            sys.stderr.buffer.write(b"launch.py: " + packet[HEAD.size : HEAD.size + size] + b"\n")
            sys.stderr.flush()
        elif kind == EXITED:
            return number
    return None


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: launch.py AGENT [ARGUMENT...]")
    fds, children = descriptors()
    try:
        lifeline = launch(sys.argv[1], [os.fsencode(a) for a in sys.argv[2:]], fds)
    except dbus.DBusException as error:
        print(f"launch.py: {error.get_dbus_message()}", file=sys.stderr)
        return 125
    for child in children:
        child.stdin.close()
    status = wait(lifeline)
    for child in children:
        child.wait()
    if status is None:
        print("launch.py: the session ended without a word; see its service's journal", file=sys.stderr)
        return 125
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


if __name__ == "__main__":
    sys.exit(main())
