# SPDX-License-Identifier: MIT
"""What is refused: one line that names cause and fix, status 125, nothing started, nothing left."""

import os
import subprocess

import machine
import system
from case import CLAUDE, CONFIG, SANDBOX, equal, holds, processes, test, wait_for
from machine import ALICE, GUEST, ROOT

BOTH = (ALICE, ROOT)


def refused(lab, *words, user=ALICE, **options):
    """`claude-sandbox shell` is refused with these words, and nothing of it stays."""
    before = set(processes())
    service = lab.service_pid()
    result = lab.shell("echo STARTED", user, **options).refused(125, *words)
    wait_for(lambda: set(processes()) <= before | {lab.service_pid(), service}, "nothing stays behind")
    wait_for(lambda: not lab.sessions(), "nothing of it stays")
    return result


@test(60, needs="bus")
def tools_missing(lab):
    for user in BOTH:
        for tool in ("bwrap", "pasta"):
            lab.hide(f"/usr/bin/{tool}")
            refused(lab, tool, user=user)
            lab.restore()
    lab.shell("true").ok()


@test(60, needs="bus")
def tools_not_executable(lab):
    for tool in ("bwrap", "pasta"):
        path = os.path.realpath(f"/usr/bin/{tool}")
        lab.mode(path, 0o644)
        refused(lab, tool)
        lab.restore()


@test(60, needs="bus")
def tools_failing(lab):
    """A bwrap or pasta that ends at once, or that lies about having worked."""
    for tool in ("bwrap", "pasta"):
        for script in ("#!/bin/sh\necho broken for a test >&2\nexit 1\n", "#!/bin/sh\nexit 0\n"):
            lab.replace(f"/usr/bin/{tool}", script, 0o755)
            refused(lab, tool, limit=30)
            lab.restore()


@test(60, needs="bus")
def tun_missing(lab):
    for user in BOTH:
        lab.hide("/dev/net/tun")
        refused(lab, "/dev/net/tun", user=user)
        lab.restore()


@test(needs="bus")
def tun_not_permitted(lab):
    lab.mode("/dev/net/tun", 0o600)
    refused(lab, "/dev/net/tun")


@test(60, needs="bus")
def user_namespaces_forbidden(lab):
    """As a machine does that has no user namespaces left (ENOSPC) or forbids them (EPERM)."""
    session = "/usr/libexec/claude-sandbox/session"
    for error in ("ENOSPC", "EPERM"):
        for user in BOTH:
            lab.wrap(session, f"forbid-namespaces {error}")
            refused(lab, "namespace", user=user)
            lab.restore()


@test(60, needs="bus")
def no_bus(lab):
    lab.stop_service()
    lab.bus.stop()
    try:
        for user in BOTH:
            lab.shell("true", user).refused(125, "bus")
            lab.run([CLAUDE], user).refused(125, "bus")
            result = lab.run([SANDBOX, "sessions"], user)
            equal(result.status, 125, repr(result))
    finally:
        lab.bus.start()
    lab.shell("true").ok()


@test(60, needs="bus")
def service_missing(lab):
    lab.stop_service()
    lab.hide("/usr/libexec/claude-sandbox/claude-sandboxd")
    lab.shell("true").refused(125)


@test(60, needs="bus")
def unsafe_workspaces(lab):
    os.makedirs("/var/lib/thing", exist_ok=True)
    os.makedirs("/etc/thing", exist_ok=True)
    for user in BOTH:
        for directory in ("/", user.home, "/home", "/etc", "/etc/thing", "/usr", "/usr/share", "/var", "/run", "/proc", "/sys",
                          "/dev", "/boot", "/usr/libexec/claude-sandbox", "/dev/shm"):
            if os.path.isdir(directory):
                refused(lab, directory, user=user, cwd=directory)
    for name in (".ssh", ".config", ".gnupg", ".aws", ".local", ".local/share"):
        directory = f"{ALICE.home}/{name}"
        machine.write(f"{directory}/x", "", 0o600, ALICE)
        refused(lab, directory, cwd=directory)


@test(60, needs="bus")
def workspace_gone(lab):
    """The directory was removed under the shell."""
    directory = lab.workspace(ALICE, "short-lived")
    result = lab.run(["/bin/sh", "-c", f"rmdir {directory}; exec {SANDBOX} shell -c 'echo STARTED'"], cwd=directory)
    result.refused(125)


@test(60, needs="bus")
def bad_configuration(lab):
    cases = {
        "no-forge\nbogus-key = 1\n": (f"{CONFIG}:2", "bogus-key"),
        "allow-ip = 10.1.2\n": (f"{CONFIG}:1", "10.1.2"),
        "allow-ip = 10.0.0.0/8\n": (f"{CONFIG}:1",),
        "allow-ip = 0.0.0.0/0\n": (f"{CONFIG}:1",),
        "allow-ip = 127.0.0.1\n": (f"{CONFIG}:1",),
        "workspace-root = relative\n": (f"{CONFIG}:1",),
        "max-sessions = 3\nmax-sessions = 4\n": (f"{CONFIG}:2", "max-sessions"),
        "egress-jail = perhaps\n": (f"{CONFIG}:1", "perhaps"),
        "pass-env = LD_PRELOAD\n": (f"{CONFIG}:1", "LD_PRELOAD"),
        "allow-write = ../etc\n": (f"{CONFIG}:1",),
        "no-forge\nallow-write = /\n": (f"{CONFIG}:2", "whole jail"),
        "workspace-root = /home\n": (f"{CONFIG}:1", "home directories"),
        "allow-device = /dev/net/tun\n": (f"{CONFIG}:1", "networks"),
        "no-forge\ndeny-group = nosuchgroup\n": (f"{CONFIG}:2", "no such group"),
        "\n\nlocal-port = 01920\n": (f"{CONFIG}:3",),
    }
    for text, words in cases.items():
        lab.configure(text)
        refused(lab, *words)
        lab.run([SANDBOX, "policy"], ALICE).refused(1, *words)
        lab.restore()
    lab.configure(b"no-forge\0\n")
    refused(lab, CONFIG)
    lab.restore()
    lab.configure("no-forge\r\n# fine\r\nallow-ip = 10.20.30.40 # device\r\n")
    lab.shell("true").ok()


@test(60, needs="bus")
def untrusted_configuration(lab):
    """A file that somebody else could have written, or that is no file."""
    lab.configure("no-forge\n", 0o666)
    refused(lab, CONFIG, "writ")
    lab.restore()
    lab.configure("no-forge\n")
    os.chown(CONFIG, ALICE.uid, ALICE.gid)
    refused(lab, CONFIG, "root")
    lab.restore()
    lab.configure("no-forge\n")
    os.rename(CONFIG, CONFIG + ".real")
    os.symlink(CONFIG + ".real", CONFIG)
    refused(lab, CONFIG)
    os.unlink(CONFIG + ".real")
    lab.restore()
    os.mkdir(CONFIG)
    lab.undo.append(lambda: os.rmdir(CONFIG))
    refused(lab, CONFIG)
    lab.restore()
    os.mkfifo(CONFIG)
    lab.undo.append(lambda: os.unlink(CONFIG))
    refused(lab, CONFIG)
    lab.restore()
    lab.shell("true").ok()


def controllers():
    """What this kernel's cgroup2 can limit."""
    try:
        with open("/sys/fs/cgroup/cgroup.controllers", encoding="ascii") as f:
            return f.read().split()
    except FileNotFoundError:
        return []


@test(60, needs="bus")
def limits_that_cannot_be_had(lab):
    """A limit that the kernel does not offer here is a warning at the launch, and Posture says what holds."""
    if controllers():
        return                         # then they hold, and there is nothing to warn of
    lab.configure("memory-max = 1G\ntasks-max = 100\n")
    result = lab.shell("true")
    equal((result.status, result.out), (0, b""))
    lines = result.err.decode().splitlines()
    for line, key in zip(lines, ("memory-max", "tasks-max"), strict=True):
        holds(line.startswith(f"claude-sandbox: {CONFIG}:") and f"{key} does not hold" in line, result)
    lab.restore()
    lab.shell("true").ok()


@test(60, needs="bus")
def twins_that_widen(lab):
    """A variable that asks for more than the configuration gives needs polkit; a planted one opens nothing."""
    lab.shell("true").ok()                # polkit runs from here on
    cases = {"CLAUDE_SANDBOX_EGRESS_JAIL": "0", "CLAUDE_SANDBOX_ALLOW_IP": "10.20.30.40",
             "CLAUDE_SANDBOX_ALLOW_WRITE": "/srv", "CLAUDE_SANDBOX_PASS_ENV": "SECRET", "CLAUDE_SANDBOX_WORKSPACE_ROOT": "/srv/x",
             "CLAUDE_SANDBOX_LOCAL_PORTS": "8080", "CLAUDE_SANDBOX_LOCAL_MODEL_PORT": "8080",
             "CLAUDE_SANDBOX_CALLBACK_PORTS": "8081", "CLAUDE_SANDBOX_GPU": "1", "CLAUDE_SANDBOX_ALLOW_DEVICES": "/dev/kvm"}
    for name, value in cases.items():
        refused(lab, name, env=lab.environment(ALICE, **{name: value}))
    lab.configure("no-forge\n")
    refused(lab, "CLAUDE_SANDBOX_NO_FORGE", env=lab.environment(ALICE, CLAUDE_SANDBOX_NO_FORGE="0"))
    lab.restore()
    lab.shell("true", env=lab.environment(ALICE, CLAUDE_SANDBOX_NO_FORGE="1")).ok()


@test(60, needs="bus")
def descriptors_of_forbidden_kinds(lab):
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number in range(3):
            def place(number=number):
                os.dup2(directory, number)
            result = lab.run([SANDBOX, "shell", "-c", "echo STARTED > started"], before=place)
            holds(result.status == 125 and not os.path.exists(f"{lab.workspace(ALICE)}/started"), repr(result))
    finally:
        os.close(directory)
    wait_for(lambda: not lab.sessions(), "nothing of it stays")


@test(60, needs="bus")
def confined_callers(lab):
    """A program that lacks what the service has may not get it through a session."""
    def other(flags):
        return lambda: system.unshare(flags)

    def pid_namespace():
        system.unshare(system.CLONE_NEWPID)
        if os.fork():
            os._exit(os.waitstatus_to_exitcode(os.wait()[1]))

    def root_directory():
        system.unshare(system.CLONE_NEWNS)
        system.mount("none", "/", None, system.MS_REC | system.MS_PRIVATE)
        os.makedirs("/run/lab/other-root", exist_ok=True)
        system.mount("/", "/run/lab/other-root", None, system.MS_BIND | system.MS_REC)
        os.chroot("/run/lab/other-root")
        os.chdir(lab.workspace(ALICE))

    cases = {
        "mount namespace": other(system.CLONE_NEWNS),
        "network namespace": other(system.CLONE_NEWNET),
        "pid namespace": pid_namespace,
        "user namespace": None,
        "NoNewPrivs": lambda: system.prctl(system.PR_SET_NO_NEW_PRIVS, 1),
        "root directory": root_directory,
    }
    lab.shell("true").ok()
    for name, before in cases.items():
        if before:
            result = lab.shell("echo STARTED", before=before)
        else:
            result = lab.run(["/usr/bin/unshare", "-U", SANDBOX, "shell", "-c", "echo STARTED"])
        holds(result.status == 125 and result.out == b"" and result.err.startswith(b"claude-sandbox:"), f"{name}: {result!r}")
    wait_for(lambda: not lab.sessions(), "nothing of it stays")


@test(needs="bus")
def callers_under_a_filter(lab):
    """A seccomp filter that forbids nothing is a filter all the same."""
    def install():
        import ctypes
        import struct
        program = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)          # BPF_RET | BPF_K, SECCOMP_RET_ALLOW
        buffer = ctypes.create_string_buffer(program)
        header = struct.pack("H6xQ", 1, ctypes.addressof(buffer))
        if system.libc.prctl(22, 2, ctypes.create_string_buffer(header), 0, 0) != 0:     # PR_SET_SECCOMP, MODE_FILTER
            os._exit(99)
    result = lab.shell("echo STARTED", before=install)
    holds(result.status == 125 and result.err.startswith(b"claude-sandbox:"), repr(result))


@test(needs="bus")
def system_accounts(lab):
    result = lab.shell("echo STARTED", GUEST)
    holds(result.status == 125 and result.out == b"" and b"login" in result.err, repr(result))


@test(60, needs="bus")
def too_many_sessions(lab):
    lab.configure("max-sessions = 3\n")
    held = []
    try:
        for _ in range(3):
            process = lab.start([SANDBOX, "shell", "-c", "echo ready; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            held.append(process)
            equal(process.stdout.readline(), b"ready\n")
        lab.shell("echo STARTED").refused(125, "3")
        lab.shell("true", ROOT).ok()          # another user's count is another one
        held[0].stdin.close()
        held[0].wait(10)
        wait_for(lambda: len(lab.sessions()) == 2, "the session is gone")
        lab.shell("true").ok()
    finally:
        for process in held:
            process.stdin.close()
            process.wait(10)
            process.stdout.close()


@test(60, needs="bus")
def usage(lab):
    for words in (["nonsense"], ["stop"], ["sessions", "--nonsense"], []):
        result = lab.run([SANDBOX, *words])
        equal(result.status, 2, repr(result))
        holds(result.err.startswith(b"claude-sandbox:"), repr(result))


@test(needs="bus")
def root_without_capabilities_is_told(lab):
    """Inside, root passes only where modes let it; the sentence says so, and nothing starts."""
    directory = "/home/alice/private/project"
    subprocess.run(["/usr/bin/install", "-d", "-o", str(ALICE.uid), "-m", "0700", "/home/alice/private", directory],
                   check=True)
    lab.shell("true", ROOT, cwd=directory).refused(125, directory, "root has no capabilities", "owner")
    lab.shell("true", ALICE, cwd=directory).ok()
