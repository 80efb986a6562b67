# SPDX-License-Identifier: MIT
"""An ordinary user who walks the introspection and calls whatever is there with whatever comes to mind."""

import os
import random
import time
import xml.etree.ElementTree as ElementTree

import bus
from bus_cases import Held, answer, as_user
from case import CONFIG, LONG, SEED, SESSIONS, equal, holds, test, wait_for
from machine import ALICE, MALLORY, ROOT

SECONDS = 60 if LONG else 3
TEXTS = ("", "shell", "claude", "../x", "10.20.30.40", "0.0.0.0/0", "a" * 16, "\u202e", "x" * 3000, "org.claudesandbox1.Manager",
         "org.claudesandbox1.Session", "Version", "State", "#\n", "\\x00", "grace", "background", "check")
NUMBERS = (0, 1, 2, 3, 255, 1 << 31, (1 << 63) - 1, (1 << 64) - 1)
BOUNDS = {"y": (0, 255), "n": (-1 << 15, (1 << 15) - 1), "q": (0, (1 << 16) - 1), "i": (-1 << 31, (1 << 31) - 1),
          "u": (0, (1 << 32) - 1), "x": (-1 << 63, (1 << 63) - 1), "t": (0, (1 << 64) - 1)}


class Walker:
    def __init__(self, connection, chance, paths):
        self.connection = connection
        self.chance = chance
        self.paths = paths
        self.errors = {}
        self.calls = 0

    def value(self, signature, depth=0):
        """Of one complete type, mostly."""
        import dbus
        chance = self.chance
        kind = signature[0]
        if kind == "s":
            return dbus.String(chance.choice(TEXTS))
        if kind == "o":
            return dbus.ObjectPath(chance.choice(self.paths))
        if kind == "b":
            return dbus.Boolean(chance.choice((True, False)))
        if kind == "d":
            return dbus.Double(chance.random())
        if kind == "h":
            return dbus.types.UnixFd(chance.choice((0, 1, 2)))
        if kind in BOUNDS:
            low, high = BOUNDS[kind]
            types = {"y": dbus.Byte, "n": dbus.Int16, "q": dbus.UInt16, "i": dbus.Int32, "u": dbus.UInt32, "x": dbus.Int64,
                     "t": dbus.UInt64}
            return types[kind](min(max(chance.choice(NUMBERS), low), high))
        if kind == "v":
            inner = chance.choice(("s", "u", "t", "b", "as", "ay", "aay", "a{sv}", "v") if depth < 4 else ("s", "u"))
            value = self.value(inner, depth + 1)
            return value if inner != "v" else dbus.String("v", variant_level=chance.randrange(1, 5))
        if kind == "a" and signature[1] == "{":
            pairs = {self.value(signature[2], depth + 1): self.value(signature[3:-1], depth + 1)
                     for _ in range(chance.randrange(4))}
            return dbus.Dictionary(pairs, signature=signature[2:-1])
        if kind == "a":
            return dbus.Array([self.value(signature[1:], depth + 1) for _ in range(chance.choice((0, 1, 2, 5, 40)))],
                              signature=signature[1:])
        raise ValueError(signature)

    def call(self, path, interface, member, signatures):
        import dbus
        chance = self.chance
        if chance.random() < 0.1:
            signatures = [chance.choice(("s", "u", "as", "a{sv}", "v", "ay")) for _ in range(chance.randrange(4))]
        try:
            arguments = [self.value(signature) for signature in signatures]
            self.calls += 1
            self.connection.call_blocking(bus.NAME, path, interface, member, "".join(signatures), arguments, timeout=30)
            name = "done"
        except dbus.DBusException as error:
            name = error.get_dbus_name()
            if not error.get_dbus_message():
                name += " without a word"
        except (ValueError, TypeError, OverflowError, UnicodeError):     # libdbus itself does not send it
            return
        self.errors[f"{member}: {name}"] = self.errors.get(f"{member}: {name}", 0) + 1

    def walk(self, end):
        import dbus
        while time.monotonic() < end:
            path = self.chance.choice(self.paths)
            try:
                text = self.connection.call_blocking(bus.NAME, path, "org.freedesktop.DBus.Introspectable", "Introspect", "", [],
                                                     timeout=30)
            except dbus.DBusException:
                self.call(path, bus.SESSION, self.chance.choice(("Stop", "ListRoutes", "AllowIp", "Nonsense")), [])
                continue
            root = ElementTree.fromstring(text)
            for node in root.findall("node"):
                below = f"{path.rstrip('/')}/{node.get('name')}"
                if below not in self.paths and len(self.paths) < 200:
                    self.paths.append(below)
            for interface in root.findall("interface"):
                for method in interface.findall("method"):
                    self.call(path, interface.get("name"), method.get("name"),
                              [a.get("type") for a in method.findall("arg") if a.get("direction") != "out"])


def memory(pid):
    """Resident, in MiB; 0 where a sanitizer keeps what was freed."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        if "libasan" in f.read():
            return 0
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return [int(line.split()[1]) for line in f if line.startswith("VmRSS")][0] // 1024


@test(60 + 2 * SECONDS, needs="bus")
def a_random_caller(lab):
    """Nothing ends, nothing leaks, nothing is opened, and another's session does not notice."""
    lab.workspace(MALLORY)
    before = open(CONFIG, "rb").read() if os.path.exists(CONFIG) else None
    with Held(lab, ALICE) as held:
        pid = lab.service_pid()
        descriptors, resident = len(os.listdir(f"/proc/{pid}/fd")), memory(pid)

        def walk(connection):
            walker = Walker(connection, random.Random(SEED), ["/", bus.PATH, bus.PATH + "/session", held.path,
                                                             bus.PATH + "/session/" + "a" * 16])
            walker.walk(time.monotonic() + SECONDS)
            return [walker.calls, walker.errors]
        found = as_user(MALLORY, walk)
        holds(isinstance(found, list), found)
        calls, errors = found
        holds(calls > 20 * SECONDS, f"{calls} calls")
        equal([name for name in errors if name.endswith("without a word")], [], "errors without a sentence")
        for member in ("AddAllowIp", "RemoveAllowIp", "ListAllSessions"):
            holds(not errors.get(f"{member}: done"), f"{member} was done: {errors}")
        equal(lab.service_pid(), pid, "the same service")
        after = open(CONFIG, "rb").read() if os.path.exists(CONFIG) else None
        equal(after, before, "the configuration")
        wait_for(lambda: [row[0] for row in answer(lab.call("ListSessions", user=ROOT))[0]] == [held.id], "only alice's session", 20)
        wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= descriptors + 4, "the service's descriptors")
        holds(memory(pid) <= resident + 12, f"resident: {resident} MiB before, {memory(pid)} MiB after")
        holds(os.path.isdir(f"{SESSIONS}/{held.id}"), "her run directory")
        equal(held.end(), 3)
