# SPDX-License-Identifier: MIT
"""Messages that no library writes: many at once, with descriptors that nothing in them names (D-Bus specification)."""

import array
import os
import select
import socket
import struct

PATH = "/org/claudesandbox1"
NAME = "org.claudesandbox1"
BUS = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
SERVICE = (NAME, PATH, NAME + ".Manager")


def aligned(data, to):
    return data + bytes(-len(data) % to)


def string(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data + b"\0"


def signature(text):
    return bytes([len(text)]) + text.encode() + b"\0"


class Connection:
    """One connection of the calling process to the bus."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect("/run/dbus/system_bus_socket")
        uid = str(os.geteuid()).encode().hex().encode()
        for line, answer in ((b"\0AUTH EXTERNAL " + uid, b"OK"), (b"NEGOTIATE_UNIX_FD", b"AGREE")):
            self.socket.sendall(line + b"\r\n")
            found = self.socket.recv(1000)
            if not found.startswith(answer):
                raise OSError(f"the bus said {found}")
        self.socket.sendall(b"BEGIN\r\n")
        self.serial = 0
        self.buffer = b""
        self.passed = []                # answers that others were waited for meanwhile
        self.answer(self.call(BUS, "Hello"))

    def call(self, to, member, types="", body=b"", fds=(), silent=False):
        """silent: no answer is wanted."""
        self.serial += 1
        fields = b""
        for code, kind, value in ((1, "o", to[1]), (6, "s", to[0]), (2, "s", to[2]), (3, "s", member),
                                  (8, "g", types), (9, "u", len(fds))):
            if not value:
                continue
            fields = aligned(fields, 8) + bytes([code]) + signature(kind)
            if kind == "g":
                fields += signature(value)
            else:
                fields = aligned(fields, 4) + (struct.pack("<I", value) if kind == "u" else string(value))
        head = (b"l\1\1\1" if silent else b"l\1\0\1") + struct.pack("<III", len(body), self.serial, len(fields)) + fields
        message = aligned(head, 8) + body
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.socket.sendmsg([message], rights)
        self.socket.sendall(message[sent:])
        return self.serial

    def stop(self, session, fds=()):
        """StopSession with a minute of grace."""
        body = aligned(string(session), 4)
        body += struct.pack("<I", 0)
        start = len(aligned(body, 8))
        body = aligned(body, 8) + string("grace") + signature("t")
        body = aligned(body, 8) + struct.pack("<Q", 60000000)
        place = len(aligned(string(session), 4))
        body = body[:place] + struct.pack("<I", len(body) - start) + body[place + 4:]
        return self.call(SERVICE, "StopSession", "sa{sv}", body, fds)

    def log(self, silent=False):
        """ListEvents of all sessions, without options."""
        return self.call(SERVICE, "ListEvents", "sa{sv}", aligned(string(""), 4) + struct.pack("<II", 0, 0), silent=silent)

    def more(self, n):
        self.socket.settimeout(20)
        while len(self.buffer) < n:
            data = self.socket.recv(1 << 20)
            if not data:
                raise OSError("the bus has hung up")
            self.buffer += data

    def message(self):
        """The next message: its fields by their codes, and its bytes."""
        self.more(16)
        size, _, n_fields = struct.unpack("<III", self.buffer[4:16])
        head = 16 + n_fields + -n_fields % 8
        self.more(head + size)
        data, self.buffer = self.buffer[:head + size], self.buffer[head + size:]
        fields, at = {}, 16
        while at < 16 + n_fields:
            at += -at % 8
            code, kind = data[at], data[at + 2:at + 3]
            at += 4
            if kind == b"g":
                width = 1 + data[at] + 1
            else:
                at += -at % 4
                width = 4 if kind == b"u" else 4 + struct.unpack("<I", data[at:at + 4])[0] + 1
            fields[code] = data[at:at + width]
            at += width
        return fields, data

    def answer(self, serial):
        """Wait for the answer to a call. Return: the name of its error or "", and its bytes."""
        while True:
            fields, data = self.message()
            if data[1] not in (2, 3):
                continue
            error = fields.get(4, b"")[4:-1].decode() if data[1] == 3 else ""
            if fields.get(5) == struct.pack("<I", serial):
                return error, data
            self.passed.append(error)

    def answers(self):
        """The names of the errors, or "", of all answers that have come by now."""
        found, self.passed = self.passed, []
        while self.buffer or select.select([self.socket], [], [], 0)[0]:
            fields, data = self.message()
            if data[1] in (2, 3):
                found.append(fields.get(4, b"")[4:-1].decode() if data[1] == 3 else "")
        return found

    def close(self):
        self.socket.close()


def first_calls(n, n_calls, n_fds=0):
    """First messages of many connections; the bus has seen all of them when this returns."""
    null = os.open("/dev/null", os.O_RDONLY)
    kept = [Connection() for _ in range(n)]
    for connection in kept:
        for _ in range(n_calls):
            connection.call(SERVICE, "ListSessions", fds=[null] * n_fds)
        connection.answer(connection.call(BUS, "GetId"))
    return kept
