# SPDX-License-Identifier: MIT
"""What an agent leaves in its workspace's part of the state leads no mount elsewhere, and makes nothing outside of it."""

import json
import os
import shutil
import subprocess

import machine
from agent_cases import clear, program, put
from case import equal, holds, test
from listener_cases import before_bwrap, times_of
from machine import ALICE
from mask_cases import things

OUTSIDE = f"{ALICE.home}/planted-outside"
HOOK = "hooks/deep/guard.sh"
# What the plan mounts something on, or on the way to it
TOPS = ("hooks", "plugins", "commands", "ide", "sessions", "projects", "data")
DEEP = ("hooks/deep", HOOK, "projects/-home-alice-project", "data/out", "data/file")

# How an agent makes each of them; the root in which bwrap works has the host at /oldroot.
KINDS = {
    "a link to where the host is": lambda path: os.symlink(f"/oldroot{OUTSIDE}", path),
    "a link to nothing there": lambda path: os.symlink(f"/oldroot{OUTSIDE}/new", path),
    "a link in the jail": lambda path: os.symlink("/usr/share", path),
    "a relative link": lambda path: os.symlink("../" * 12 + f"oldroot{OUTSIDE}", path),
    "a link to the home": lambda path: os.symlink("..", path),
    "a link to itself": lambda path: os.symlink(os.path.basename(path), path),
    "a chain": lambda path: (os.path.lexists(f"{path}.next") or os.symlink(f"/oldroot{OUTSIDE}", f"{path}.next"),
                             os.symlink(os.path.basename(path) + ".next", path)),
    "a FIFO": os.mkfifo,
    "a file": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)),
    "a directory that lets nobody in": lambda path: os.mkdir(path, 0),
}


def prepare(lab):
    """A hook, a directory and a file below the state; all of them the host's. Return: the workspace's part of the state."""
    clear(lab, ALICE)
    put(ALICE, "claude")
    state = f"{ALICE.home}/.claude"
    machine.write(f"{state}/{HOOK}", "#!/bin/sh\necho guarded\n", 0o755, ALICE)
    machine.write(f"{state}/data/out/mine", "out\n", 0o644, ALICE)
    machine.write(f"{state}/data/file", "file\n", 0o644, ALICE)
    machine.write(f"{state}/plugins/mine", "plugin\n", 0o644, ALICE)
    machine.write(f"{state}/commands/mine", "command\n", 0o644, ALICE)
    machine.write(f"{state}/projects/-home-alice-project/mine", "transcript\n", 0o644, ALICE)
    machine.write(f"{state}/settings.json", json.dumps({"hooks": {"command": f"~/.claude/{HOOK}"}}), 0o600, ALICE)
    machine.write(f"{OUTSIDE}/mine", "x", 0o644, ALICE)
    lab.undo.append(lambda: shutil.rmtree(OUTSIDE))
    lab.configure(f"allow-write = {state}/data/out\nallow-write = {state}/data/file\n")
    lab.run([program("claude"), "touch ~/.claude/kept"], ALICE)
    return machine.project_state(ALICE, ".claude")


def host():
    """All that no session may change: the home, without what sessions keep for workspaces."""
    return {path: value for path, value in things(ALICE.home).items()
            if "/.local/state/claude-sandbox" not in path and not path.startswith(f"{ALICE.home}/project")}


SEEN = ("cd ~/.claude; hooks/deep/guard.sh; cat data/out/mine data/file plugins/mine commands/mine "
        "projects/-home-alice-project/mine; ls -A ide sessions")
WANTED = b"guarded\nout\nfile\nplugin\ncommand\ntranscript\nide:\n\nsessions:\n"


@test(240, needs="bus")
def what_is_planted_is_replaced(lab):
    """At each name on which something is mounted, and on the way to it."""
    own = prepare(lab)
    for what, make in KINDS.items():
        for names in (TOPS, DEEP):
            for name in names:
                path = f"{own}/{name}"
                machine.remove(path)
                if not os.path.isdir(os.path.dirname(path)):
                    continue
                make(path)
                os.lchown(path, ALICE.uid, ALICE.gid)
            before = host()
            result = lab.run([program("claude"), SEEN], ALICE)
            equal(host(), before, f"{what} at {names}: {result!r}")
            equal((result.status, result.out), (0, WANTED), f"{what} at {names}: {result!r}")


def swapped(own, name, target):
    """What another session's agent can do in which nothing is mounted at these names."""
    return f"mv -T {own}/{name} {own}/aside-by-a-test; ln -s {target} {own}/{name}"


@test(120, needs="bus")
def what_is_swapped_before_bwrap_makes_nothing(lab):
    """bwrap follows the link, can write nowhere, and the launch is made anew."""
    own = prepare(lab)
    lab.run([program("claude"), SEEN], ALICE)
    for name in ("hooks", "hooks/deep", "data"):
        for target in (f"/oldroot{OUTSIDE}", "../" * 12 + f"oldroot{OUTSIDE}", f"/oldroot{OUTSIDE}/new", "../.cache", "/usr/share",
                       f"/newroot{ALICE.home}"):
            lab.run([program("claude"), "true"], ALICE)
            before, kept = host(), len(lab.undo)
            count = before_bwrap(lab, swapped(own, name, target), user=ALICE)
            result = lab.run([program("claude"), SEEN], ALICE)
            equal(host(), before, f"{name} to {target}: {result!r}")
            equal((result.status, result.out), (0, WANTED), f"{name} to {target}: {result!r}")
            equal(times_of(count), 2, f"{name} to {target}: bwrap ran")
            while len(lab.undo) > kept:
                lab.undo.pop()()
            machine.remove(f"{own}/aside-by-a-test")


EXCHANGE = """#!/usr/bin/python3
import ctypes, os
libc = ctypes.CDLL(None)
os.chdir(os.path.expanduser("~/.claude"))
for name in ("hooks", "data"):
    if os.path.lexists("swap-" + name):
        os.unlink("swap-" + name)
    os.symlink("/oldroot%s", "swap-" + name)
print("up", flush=True)
while True:
    for name in (b"hooks", b"data"):
        libc.renameat2(-100, name, -100, b"swap-" + name, 2)
"""


@test(240, needs="bus")
def races_make_nothing_elsewhere(lab):
    """As an agent of another session of the workspace could, in which nothing is mounted at these names."""
    own = prepare(lab)
    lab.run([program("claude"), SEEN], ALICE)
    machine.write(f"{ALICE.home}/exchange", (EXCHANGE % OUTSIDE).replace('os.path.expanduser("~/.claude")', repr(own)), 0o755, ALICE)
    agent = lab.start([f"{ALICE.home}/exchange"], ALICE, stdout=subprocess.PIPE)
    agent.stdout.readline()
    try:
        before = host()
        for _ in range(20):
            result = lab.run([program("claude"), SEEN], ALICE)
            equal(host(), before, repr(result))
            # It goes on while the agent runs, and nothing outside a jail holds what lies there.
            if result.status == 125:
                holds(result.err.startswith(b"claude-sandbox: "), repr(result))
    finally:
        agent.kill()
        agent.wait()
