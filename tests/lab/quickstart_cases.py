# SPDX-License-Identifier: MIT
"""
`quickstart` on a machine that has nothing of the product: no files, no bus, a tun device for root alone. These are
the last tests: they take the product away.
"""

import os
import signal
import subprocess

import machine
from bus_cases import Held
from case import CLAUDE, SANDBOX, equal, holds, test, wait_for
from machine import ALICE, ROOT

QUICKSTART = machine.SOURCE + "/quickstart"
INSTALLED = ("/usr/libexec/claude-sandbox", "/usr/local/bin/claude", "/usr/local/bin/codex", "/usr/local/bin/pi",
             "/usr/local/bin/claude-sandbox",
             "/usr/share/dbus-1/system.d/org.claudesandbox1.conf", "/usr/share/dbus-1/system-services/org.claudesandbox1.service",
             "/etc/claude-gitconfig", "/usr/share/doc/claude-sandbox", "/var/lib/claude-sandbox",
             "/var/cache/claude-sandbox")


def run(lab, *words, **more):
    """quickstart, as sudo starts it for alice, without a terminal."""
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "TERM": "xterm",
                   "LANG": "C.UTF-8", "SUDO_USER": "alice", "SUDO_UID": str(ALICE.uid), "SUDO_GID": str(ALICE.gid), **more}
    return lab.run([QUICKSTART, *words], ROOT, env=environment, cwd=machine.SOURCE, limit=500)


def take_away(lab):
    """A machine as it was before the product."""
    lab.stop_service()
    if lab.bus.process:
        lab.bus.stop()
    for path in machine.installed():
        if os.path.lexists(path) and not os.path.isdir(path):
            os.unlink(path)
    for directory in ("/usr/libexec/claude-sandbox", "/usr/share/doc/claude-sandbox", "/run/claude-sandbox",
                      "/run/dbus"):
        machine.shutil.rmtree(directory, ignore_errors=True)
    for path in ("/etc/claude-gitconfig", "/etc/claude-sandbox.conf"):
        if os.path.lexists(path):
            os.unlink(path)
    os.chmod("/dev/net/tun", 0o600)
    subprocess.run(["/bin/chown", "-R", "alice:alice", machine.SOURCE], check=True)


def bus_pid():
    with open("/run/dbus/pid", encoding="ascii") as f:
        return int(f.read())


def tree():
    found = {}
    for directory, _, names in os.walk(machine.SOURCE):
        for name in names:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            found[path] = (status.st_uid, status.st_mtime_ns)
    return found


@test(600)
def from_nothing_and_back(lab):
    take_away(lab)
    before = tree()
    result = run(lab)
    equal(result.status, 0, repr(result))
    holds(b"works" in result.out and b"0666" in result.out and b"started the system bus" in result.out, repr(result))
    holds(b"claude-sandbox doctor: " in result.out and b" 0 wrong" in result.out, repr(result))
    holds(b"claude-sandbox verify: 22 of 22 passed" in result.out, repr(result))
    equal(tree(), before, "the person's checkout is as it was")
    for user in (ALICE, ROOT):
        equal(lab.shell("exit 7", user).status, 7)
        lab.remove_agent(user)
        lab.run([CLAUDE], user).refused(127, "install")
    lab.run([SANDBOX, "version"], ALICE).ok()

    # again, with a configuration of one's own and the service running
    service, system_bus = lab.service_pid(), bus_pid()
    lab.configure("no-forge  # mine\n")
    result = run(lab, "--no-start")
    equal(result.status, 0, repr(result))
    equal(bus_pid(), system_bus, "the bus goes on")
    with open("/etc/claude-sandbox.conf", encoding="ascii") as f:
        equal(f.read(), "no-forge  # mine\n")
    wait_for(lambda: lab.service_pid() not in (None, service), "another service answers")

    # in a terminal it ends in a session of the person who called sudo
    environment = lab.environment(ROOT, SUDO_USER="alice", SUDO_UID="4001")
    machine.shutil.rmtree(f"{ALICE.home}/.local", ignore_errors=True)
    with lab.terminal([QUICKSTART], ROOT, env=environment, cwd=machine.SOURCE) as terminal:
        terminal.expect("ready", 240)
        terminal.type("echo $USER-$IS_SANDBOX_AGENT-$((40+2))\n")
        terminal.expect("alice-shell-42", 20)
        terminal.type("exit 5\n")
        equal(terminal.wait(), 5)

    lab.restore()
    with Held(lab) as held:
        result = run(lab, "--uninstall")
        holds(result.status == 1 and held.id.encode() in result.err and b"claude-sandbox stop" in result.err, repr(result))
        lab.run([SANDBOX, "stop", held.id], ROOT).ok()
        wait_for(lambda: held.process.poll() is not None, "the session ends")
    result = run(lab, "--uninstall")
    equal(result.status, 0, repr(result))
    holds(b".local/state/claude-sandbox" in result.out and b"packages" in result.out, repr(result))
    for path in INSTALLED:
        holds(not os.path.lexists(path), f"{path} is still there")
    holds(not os.path.lexists("/run/claude-sandbox"), "what the service kept there is gone")
    os.kill(bus_pid(), signal.SIGTERM)


@test(60)
def only_what_failed_is_shown(lab):
    """Of a check that fails, what stands at its end, once; of one that cannot run, all that it said."""
    function = subprocess.run(["sed", "-n", "/^check() {/,/^}/p", QUICKSTART], check=True, stdout=subprocess.PIPE).stdout.decode()
    said = ("one  ok    well\ntwo  fail  odd\n        cause\n        fix\n\nWrong:\ntwo  fail  odd\n        cause\n        fix\n"
            "\nTo look at:\nsix  warn  so\n        cause\n\n1 ok, 0 to note, 1 to look at, 1 wrong\n")
    for status, shown in ((0, "say claude-sandbox doctor: 1 ok, 0 to note, 1 to look at, 1 wrong\n"),
                          (1, "two  fail  odd\n        cause\n        fix\n1 ok, 0 to note, 1 to look at, 1 wrong\n"
                              "fail installed, but so\n"), (125, said + "fail installed, but so\n")):
        result = lab.run(["/bin/bash", "-c", 'set -eu; say() { echo "say $*"; }; fail() { echo "fail $*"; exit 1; }\n'
                          f'as_person() {{ printf %s "$said"; return {status}; }}\n{function}\n'
                          'work=$(mktemp -d); trap \'rm -r "$work"\' EXIT; check doctor so'], ROOT,
                         env={"PATH": "/usr/bin:/bin", "said": said})
        equal((result.status, (result.err + result.out).decode()), (1 if status else 0, shown))


@test(60)
def wrong_use(lab):
    result = lab.run([QUICKSTART], ALICE, cwd=machine.SOURCE)
    holds(result.status == 1 and b"sudo" in result.err, repr(result))
    equal(run(lab, "--nonsense").status, 2)
    for name in ("claude", "codex", "pi"):
        lab.replace(f"/usr/local/bin/{name}", "#!/bin/sh\n", 0o755)
        result = run(lab, "--no-start")
        equal(result.status, 1, repr(result))
        holds(f"/usr/local/bin/{name} is there and is not from here".encode() in result.err, repr(result))
        with open(f"/usr/local/bin/{name}", encoding="ascii") as f:
            equal(f.read(), "#!/bin/sh\n", "somebody's program was replaced")
        lab.restore()
    equal(lab.run([QUICKSTART, "--help"], ALICE, cwd="/").status, 0)
