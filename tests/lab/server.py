#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The other machines: TCP echo, UDP echo and a name server on every address of the namespace that this runs in.
Whatever arrives is noted and handed over on request, so that a test need not believe the client.

What begins with "storm" is sent back again and again for some seconds, whatever the other end does.

Control (a SOCK_SEQPACKET socket, descriptor 3): "take" answers the notes since the last "take" as JSON lines in
one packet; the end of the stream ends the program.
"""

import json
import selectors
import socket
import struct
import sys
import time

ECHO_PORT = 7007
DNS_PORT = 53
STORM_SECONDS = 8
IP_PKTINFO = 8
IPV6_RECVPKTINFO = 49
IPV6_PKTINFO = 50
NAMES = {
    b"public.example": "93.184.216.34",
    b"dual.example": "93.184.216.34",
    b"inside.example": "10.1.2.3",
    b"rebind.example": "10.1.2.3",       # a public name for what is internal
}
NAMES6 = {
    b"dual.example": "2606:2800:220:1::34",
    b"six.example": "fd00:1::5",
}


def name_of(query):
    labels, at = [], 12
    while at < len(query) and query[at]:
        labels.append(query[at + 1:at + 1 + query[at]])
        at += 1 + query[at]
    return b".".join(labels).lower(), at + 1


def dns_answer(query):
    """RFC 1035, one question; A and AAAA records only."""
    if len(query) < 17:
        return None
    name, end = name_of(query)
    kind = struct.unpack_from("!H", query, end)[0]
    question = query[12:end + 4]
    address = {1: NAMES, 28: NAMES6}.get(kind, {}).get(name)
    if name not in NAMES and name not in NAMES6:
        return query[:2] + b"\x81\x83" + struct.pack("!HHHH", 1, 0, 0, 0) + question
    if address is None:
        return query[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, 0, 0, 0) + question
    data = socket.inet_pton(socket.AF_INET if kind == 1 else socket.AF_INET6, address)
    record = b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(data)) + data
    return query[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, 1, 0, 0) + question + record


class Server:
    def __init__(self, control, groups, names):
        self.control = control
        self.notes = []
        self.storms = []
        self.loop = selectors.DefaultSelector()
        self.loop.register(control, selectors.EVENT_READ, self.on_control)
        self.listen(socket.AF_INET, "0.0.0.0")
        self.listen(socket.AF_INET6, "::")
        udp = self.datagrams(socket.AF_INET, "0.0.0.0", ECHO_PORT, self.on_datagram)
        for index in groups:
            for group in ("224.5.6.7", "239.1.2.3"):
                request = socket.inet_aton(group) + socket.inet_aton("0.0.0.0") + struct.pack("@i", index)
                udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        self.datagrams(socket.AF_INET6, "::", ECHO_PORT, self.on_datagram)
        self.datagrams(socket.AF_INET, names, DNS_PORT, self.on_query)

    def listen(self, family, address):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, ECHO_PORT))
        listener.listen(1024)
        listener.setblocking(False)
        self.loop.register(listener, selectors.EVENT_READ, self.on_listener)

    def datagrams(self, family, address, port, function):
        sock = socket.socket(family, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        sock.bind((address, port))
        sock.setblocking(False)
        self.loop.register(sock, selectors.EVENT_READ, function)
        return sock

    def on_listener(self, listener):
        try:
            connection, peer = listener.accept()
        except OSError:
            return
        connection.setblocking(False)
        self.notes.append(["tcp", connection.getsockname()[0], peer[0], ""])
        self.loop.register(connection, selectors.EVENT_READ, self.on_connection)

    def on_connection(self, connection):
        try:
            data = connection.recv(65536)
            if data:
                self.notes.append(["tcp", connection.getsockname()[0], connection.getpeername()[0],
                                   data[:80].decode(errors="replace")])
                connection.send(data)
                self.storm(data, lambda: connection.send(data))
                return
        except OSError:
            pass
        self.loop.unregister(connection)
        connection.close()

    @staticmethod
    def receive(sock):
        data, ancillary, _, peer = sock.recvmsg(65536, 256)
        to, reply = "?", []
        for level, kind, value in ancillary:
            if level == socket.IPPROTO_IP and kind == IP_PKTINFO:
                index, local, to = struct.unpack("@i4s4s", value[:12])
                to = socket.inet_ntoa(to)
                reply = [(level, kind, struct.pack("@i4s4s", 0, local, b"\0\0\0\0"))]
                if to.startswith(("224.", "239.", "255.")):
                    reply = []
            elif level == socket.IPPROTO_IPV6 and kind == IPV6_PKTINFO:
                to = socket.inet_ntop(socket.AF_INET6, value[:16])
                reply = [(level, kind, value[:20])]
        return data, peer, to, reply

    def on_datagram(self, sock):
        try:
            data, peer, to, reply = self.receive(sock)
            self.notes.append(["udp", to, peer[0], data[:80].decode(errors="replace")])
            sock.sendmsg([data], reply, 0, peer)
            self.storm(data, lambda: sock.sendmsg([data], reply, 0, peer))
        except OSError:
            pass

    def storm(self, data, send):
        if data.startswith(b"storm"):
            self.storms.append((time.monotonic() + STORM_SECONDS, send))

    def blow(self):
        for end, send in self.storms:
            try:
                send()
            except (OSError, ValueError):
                pass
        self.storms = [(end, send) for end, send in self.storms if time.monotonic() < end]

    def on_query(self, sock):
        try:
            data, peer, to, reply = self.receive(sock)
            answer = dns_answer(data)
            self.notes.append(["dns", to, peer[0], name_of(data)[0].decode(errors="replace")])
            if answer:
                sock.sendmsg([answer], reply, 0, peer)
        except (OSError, IndexError, struct.error):
            pass

    def on_control(self, control):
        if not control.recv(64):
            sys.exit(0)
        notes, self.notes = self.notes, []
        control.send(json.dumps(notes).encode())

    def run(self):
        self.control.send(b"ready")
        while True:
            for key, _ in self.loop.select(0.01 if self.storms else None):
                key.data(key.fileobj)
            self.blow()


if __name__ == "__main__":
    control = socket.socket(fileno=3)
    control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
    Server(control, [int(word) for word in sys.argv[2:]], sys.argv[1]).run()
