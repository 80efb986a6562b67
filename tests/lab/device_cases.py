# SPDX-License-Identifier: MIT
"""Devices that the configuration gives, and those that it never does."""

import json
import os
import stat
import subprocess

from bus_cases import Held
from case import CONFIG, SANDBOX, Skip, equal, holds, test
from machine import ALICE, ROOT

BOTH = (ALICE, ROOT)


def stand_in(lab, major, minor):
    """A name in /dev under which another device lies for this test. Return: the name."""
    names = [name for name in ("/dev/hwrng", "/dev/kvm", "/dev/cpu_dma_latency", "/dev/rtc0") if os.path.exists(name)]
    if not names:
        raise Skip("there is no device node to put another over")
    node = f"/dev/net/lab-{major}-{minor}"
    if not os.path.exists(node):
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        os.chmod(node, 0o666)
    subprocess.run(["/bin/mount", "--bind", node, names[0]], check=True)
    lab.undo.append(lambda: subprocess.run(["/bin/umount", names[0]], check=True))
    return names[0]


@test(60, needs="bus")
def allow_device_gives_one_node(lab):
    name = stand_in(lab, 1, 5)
    script = f"head -c 3 {name} | od -An -tx1; ls -A /dev | wc -l"
    for user in BOTH:
        before = lab.shell(f"test -e {name} && echo there; ls -A /dev | wc -l", user).ok().out
        lab.configure(f"allow-device = {name}\n")
        result = lab.shell(script, user).ok().out
        equal(result.split(b"\n")[0], b" 00 00 00", str(user))
        equal(int(result.split()[-1]), int(before) + 1, f"{user}: one more than without")
        with Held(lab, user) as held:
            found = lab.run([SANDBOX, "exposure", "--json", held.id], user, cwd="/").ok().out
            rows = [row for row in json.loads(found)["paths"] if row["path"] == name]
            equal([(row["kind"], row["mode"], row["origin"]) for row in rows], [("device", "rw", f"{CONFIG}:1")], str(user))
        lab.undo.pop()()
        result = lab.shell(script, user, env=lab.environment(user, CLAUDE_SANDBOX_ALLOW_DEVICES=name))
        if user is ROOT:
            equal(result.ok().out.split(b"\n")[0], b" 00 00 00")
        else:
            result.refused(125, "CLAUDE_SANDBOX_ALLOW_DEVICES")


@test(60, needs="bus")
def devices_that_are_never_given(lab):
    """By name where the file is read, by number where the node is."""
    name = stand_in(lab, 10, 200)
    lab.configure(f"allow-device = {name}\n")
    for user in BOTH:
        lab.shell("echo STARTED", user).refused(125, f"{CONFIG}:1", name, "networks")
    lab.undo.pop()()
    lab.configure("allow-device = /dev/mem\n")
    lab.shell("echo STARTED", ROOT).refused(125, f"{CONFIG}:1", "/dev/mem", "memory")
    lab.restore()
    name = stand_in(lab, 10, 229)
    for path in (name, "/dev/fuse"):
        lab.configure(f"allow-device = {path}\n")
        for user in BOTH:
            if os.path.exists(path):
                lab.shell("echo STARTED", user).refused(125, f"{CONFIG}:1", path, "set-id")
    lab.restore()
    lab.shell("true", ROOT, env=lab.environment(ROOT, CLAUDE_SANDBOX_ALLOW_DEVICES="/dev/net/tun")).refused(
        125, "CLAUDE_SANDBOX_ALLOW_DEVICES", "networks")


@test(needs="bus")
def devices_that_are_not_there(lab):
    lab.configure("allow-device = /dev/lab-is-not-there\ngpu\n")
    result = lab.shell("echo fine", ALICE)
    equal((result.status, result.out), (0, b"fine\n"), repr(result))
    lines = result.err.decode().splitlines()
    holds(any("allow-device /dev/lab-is-not-there is not given" in line for line in lines), repr(result))
    if not os.path.exists("/dev/dri") and not os.path.exists("/dev/nvidiactl"):
        holds(any(f"{CONFIG}:2: gpu gives nothing" in line for line in lines), repr(result))
