# SPDX-License-Identifier: MIT
"""The way in cannot be redirected: what an agent may have planted does not run outside the jail."""

import os
import socket
import subprocess

import machine
from case import CLAUDE, SANDBOX, equal, holds, test, wait_for
from machine import ALICE, ROOT

BOTH = (ALICE, ROOT)
PLANT = "/srv/plant"
SOURCE = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void ran(void)
{
	int fd = open("/srv/plant/ran", O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
	(void)!write(fd, "ran\\n", 4);
	close(fd);
}
int gconv(void) { ran(); return 0; }
int gconv_init(void) { ran(); return 0; }
unsigned la_version(unsigned v) { ran(); return v; }
"""


def plant():
    """A library, a shell script and programs that leave a mark when anything loads or runs them."""
    os.makedirs(PLANT, exist_ok=True)
    os.chmod(PLANT, 0o1777)
    library = f"{PLANT}/library.so"
    if not os.path.exists(library):
        machine.write(f"{PLANT}/library.c", SOURCE)
        subprocess.run(["/usr/bin/gcc", "-shared", "-fPIC", "-w", "-o", library, f"{PLANT}/library.c"], check=True)
        for name in ("libsystemd.so.0", "libc.so.6", "libjson-c.so.5", "libnl-3.so.200", "libnl-route-3.so.200", "UTF-32.so"):
            os.link(library, f"{PLANT}/{name}")
        machine.write(f"{PLANT}/gconv-modules", "module UTF-8// INTERNAL UTF-32 1\nmodule INTERNAL UTF-8// UTF-32 1\n")
        script = f"#!/bin/sh\necho ran >> {PLANT}/ran\n"
        machine.write(f"{PLANT}/script", script, 0o755)
        for name in ("bwrap", "pasta", "git", "sh", "bash", "script", "ip", "launch", "session", "init", "claude-sandboxd", "env"):
            machine.write(f"{PLANT}/{name}", script, 0o755)


def ran():
    try:
        with open(f"{PLANT}/ran", encoding="ascii") as f:
            return f.read()
    except FileNotFoundError:
        return ""


VARIABLES = {
    "LD_PRELOAD": f"{PLANT}/library.so", "LD_LIBRARY_PATH": PLANT, "LD_AUDIT": f"{PLANT}/library.so", "LD_DEBUG": "all",
    "LD_DEBUG_OUTPUT": f"{PLANT}/ran", "LD_PROFILE": "libc.so.6", "LD_BIND_NOW": "1", "LD_ORIGIN_PATH": PLANT,
    "GLIBC_TUNABLES": "glibc.malloc.check=3:glibc.rtld.nns=1", "GCONV_PATH": PLANT, "LOCPATH": PLANT, "NLSPATH": f"{PLANT}/%N",
    "TERMINFO": PLANT, "TERMINFO_DIRS": PLANT, "BASH_ENV": f"{PLANT}/script", "ENV": f"{PLANT}/script",
    "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={PLANT}/bus", "DBUS_STARTER_ADDRESS": f"unix:path={PLANT}/bus",
    "DBUS_STARTER_BUS_TYPE": "system", "SYSTEMD_LOG_TARGET": "console", "SYSTEMD_LOG_LEVEL": "debug",
    "GIT_SSH_COMMAND": f"{PLANT}/script", "GIT_EXEC_PATH": PLANT, "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": f"{PLANT}/script", "PATH": f"{PLANT}:/usr/bin:/bin",
    "LD_SHOW_AUXV": "1", "LD_TRACE_LOADED_OBJECTS": "1", "LD_VERBOSE": "1", "LD_WARN": "1", "LD_BIND_NOT": "1",
    "LD_DYNAMIC_WEAK": "1", "LD_USE_LOAD_BIAS": "1", "LD_HWCAP_MASK": "0", "LD_PROFILE_OUTPUT": PLANT, "LD_ASSUME_KERNEL": "2.4",
    "LD_SOMETHING_NEW": f"{PLANT}/library.so", "LD_POINTER_GUARD": "0",
    "NCURSES_NO_UTF8_ACS": "1", "NCURSES_TRACE": "9", "NCURSES_CONSOLE2": "1", "NCURSES_NO_SETBUF": "1", "NCURSES_ASSUMED_COLORS": "1",
    "TERMCAP": f"{PLANT}/script", "TERMPATH": PLANT, "TERM": "planted",
    "DBUS_SESSION_BUS_ADDRESS": f"unix:path={PLANT}/bus", "DBUS_VERBOSE": "1",
    "SYSTEMD_PROC_CMDLINE": "x", "SYSTEMD_BUS_TIMEOUT": "1us", "SYSTEMD_NSS_BYPASS_BUS": "1", "SYSTEMD_PAGER": f"{PLANT}/script",
    "SYSTEMD_LOG_LOCATION": "1", "SYSTEMD_MEMPOOL": "0", "SYSTEMD_EVENT_PROFILE_DELAYS": "1",
    "GIT_DIR": f"{PLANT}/.git", "GIT_WORK_TREE": PLANT, "GIT_TEMPLATE_DIR": PLANT, "GIT_CONFIG_GLOBAL": f"{PLANT}/gitconfig",
    "GIT_CONFIG_SYSTEM": f"{PLANT}/gitconfig", "GIT_CONFIG": f"{PLANT}/gitconfig", "GIT_PAGER": f"{PLANT}/script",
    "GIT_EDITOR": f"{PLANT}/script", "GIT_ASKPASS": f"{PLANT}/script", "GIT_SSH": f"{PLANT}/script",
    "GIT_EXTERNAL_DIFF": f"{PLANT}/script", "GIT_PROXY_COMMAND": f"{PLANT}/script", "GIT_TRACE": f"{PLANT}/ran",
    "GIT_TRACE2_EVENT": f"{PLANT}/ran", "GIT_REDIRECT_STDERR": f"{PLANT}/ran",
    "IFS": "/", "SHELLOPTS": "xtrace", "PS4": f"$({PLANT}/script)", "PROMPT_COMMAND": f"{PLANT}/script", "MALLOC_TRACE": f"{PLANT}/ran",
    "RESOLV_HOST_CONF": f"{PLANT}/script", "HOSTALIASES": f"{PLANT}/script", "GETCONF_DIR": PLANT, "TZ": f":{PLANT}/script",
    "TZDIR": PLANT, "CDPATH": PLANT, "SSL_CERT_FILE": f"{PLANT}/script", "OPENSSL_CONF": f"{PLANT}/script",
    "PYTHONPATH": PLANT, "BASH_FUNC_true%%": f"() {{ {PLANT}/script; }}", "IS_SANDBOX": "1", "TMPDIR": PLANT,
}


# those whose unknown value the agent itself, a shell, complains about or obeys inside; nothing of ours reads them
INSIDE = {"SHELLOPTS", "PS4", "PROMPT_COMMAND", "IFS", "TERM"}


class FakeBus:
    """A bus where a variable says that the bus is: it notes each caller."""

    def __enter__(self):
        path = f"{PLANT}/bus"
        if os.path.lexists(path):
            os.unlink(path)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        os.chmod(path, 0o777)
        self.socket.listen(64)
        self.socket.setblocking(False)
        return self

    def callers(self):
        found = 0
        while True:
            try:
                self.socket.accept()[0].close()
                found += 1
            except BlockingIOError:
                return found

    def __exit__(self, *_):
        self.socket.close()


@test(120, needs="bus")
def planted_buses_are_not_asked(lab):
    """No program of ours calls a bus that a variable names."""
    plant()
    address = f"unix:path={PLANT}/bus"
    names = ("DBUS_SYSTEM_BUS_ADDRESS", "DBUS_STARTER_ADDRESS", "DBUS_SESSION_BUS_ADDRESS")
    with FakeBus() as fake:
        for user in BOTH:
            lab.install_agent(user)
            values = {name: address for name in names} | {"DBUS_STARTER_BUS_TYPE": "system"}
            equal(lab.run([CLAUDE, "exit", "6"], user, env=lab.environment(user, **values)).status, 6)
            for words in (["sessions"], ["policy"], ["allow-ip", "list"], ["shell", "-c", "exit 0"]):
                lab.run([SANDBOX, *words], user, env=lab.environment(user, **values)).ok()
            equal(fake.callers(), 0, f"{user}: the planted bus was called")


@test(120, needs="bus")
def planted_places_run_nothing(lab):
    """In each place that an agent may write, a program, library, hook or shell file in every name that could be run."""
    plant()
    text = f"#!/bin/sh\necho ran >> {PLANT}/ran\n"
    names = ("bwrap", "pasta", "git", "ip", "sh", "bash", "env", "launch", "session", "init", "claude", "claude-sandbox", "npm",
             "node", "pasta.avx2", "passt", ".bashrc", ".profile", ".bash_profile", ".bash_env", ".gitconfig", ".npmrc")
    libraries = ("libc.so.6", "libsystemd.so.0", "libjson-c.so.5", "libnl-3.so.200", "libnl-route-3.so.200", "libnss_files.so.2")
    for user in BOTH:
        workspace = lab.workspace(user, "planted-places")
        lab.install_agent(user)
        places = [workspace, f"{user.home}/.cache", f"{user.home}/.local/share", f"{user.home}/.claude/skills", f"{user.home}/.agents/skills",
                  f"{user.home}/.config/gh", f"{user.home}/.config/glab-cli", "/tmp/planted", "/var/tmp/planted", "/dev/shm/planted"]
        made = []
        for place in places:
            wait_for(lambda place=place: not os.path.isdir(f"{place}/claude"), "what a mask stood on is gone with its session")
            for name in names:
                made.append(f"{place}/{name}")
                machine.write(made[-1], text, 0o755, user)
            with open(f"{PLANT}/library.so", "rb") as f:
                library = f.read()
            for name in libraries:
                made.append(f"{place}/{name}")
                machine.write(made[-1], library, 0o755, user)
            values = {"PATH": f"{place}:/usr/local/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": place, "BASH_ENV": f"{place}/.bash_env",
                      "GIT_EXEC_PATH": place, "GIT_CONFIG_GLOBAL": f"{place}/.gitconfig"}
            directory = workspace if place != workspace else place
            for extra in ({}, values):
                result = lab.run([CLAUDE, "exit", "6"], user, cwd=directory, env=lab.environment(user, **extra))
                equal(ran(), "", f"{user}: {place} with {sorted(extra)}: {result!r}")
                holds(result.status in (6, 125), f"{user}: {place}: {result!r}")
        for path in made:
            os.unlink(path)


@test(120, needs="bus")
def planted_variables_run_nothing(lab):
    """Each alone, for both ways in, with the service running and with the service to be activated."""
    plant()
    for user in BOTH:
        lab.install_agent(user)
        for name, value in VARIABLES.items():
            result = lab.run([CLAUDE, "exit", "6"], user, env=lab.environment(user, **{name: value}), cwd=lab.workspace(user))
            equal((result.status, result.err), (6, b""), f"{user}: {name}: {result!r}")
            equal(ran(), "", f"{user}: claude with {name}")
    lab.stop_service()
    result = lab.run([CLAUDE, "exit", "6"], env=lab.environment(ALICE, **VARIABLES))
    equal(result.status, 6, repr(result))
    equal(ran(), "", "everything at once, and the service activated")


@test(120, needs="bus")
def planted_variables_and_the_command(lab):
    """The command is dynamic: the loader's own variables are the person's, the rest must not matter."""
    plant()
    loader = {name for name in VARIABLES if name.startswith("LD_")} | {"GLIBC_TUNABLES"}
    for user in BOTH:
        for name, value in VARIABLES.items():
            if name not in loader | INSIDE:
                result = lab.run([SANDBOX, "shell", "-c", "exit 6"], user, env=lab.environment(user, **{name: value}))
                equal((result.status, result.err), (6, b""), f"{user}: {name}")
                equal(ran(), "", f"{user}: claude-sandbox with {name}")


@test(60, needs="bus")
def planted_files_run_nothing(lab):
    """In the directory where the person stands: hooks, monitors, shell files, libraries, programs."""
    plant()
    for user in BOTH:
        workspace = lab.workspace(user, "planted")
        script = f"#!/bin/sh\necho ran >> {PLANT}/ran\n"
        lab.run(["/usr/bin/git", "init", "-q"], user, cwd=workspace).ok()
        for name in ("bwrap", "pasta", "git", ".git/hooks/post-checkout", "fsmonitor", "claude", "launch", ".bashrc", ".profile"):
            machine.write(f"{workspace}/{name}", script, 0o755, user)
        machine.write(f"{workspace}/.git/config",
                      f"[core]\n\tfsmonitor = {workspace}/fsmonitor\n\tsshCommand = {workspace}/fsmonitor\n\thooksPath = {workspace}"
                      f"\n\tpager = {workspace}/fsmonitor\n[include]\n\tpath = /etc/passwd\n[alias]\n\tconfig = !{workspace}/fsmonitor\n",
                      0o644, user)
        lab.install_agent(user)
        result = lab.run([CLAUDE, "exit", "6"], user, cwd=workspace)
        equal(ran(), "", f"{user}: {result!r}")


@test(needs="bus")
def entry_is_static_and_small(lab):
    result = lab.run(["/usr/bin/file", "-L", CLAUDE]) if os.path.exists("/usr/bin/file") else None
    if result:
        holds(b"static" in result.out, repr(result.out))
    with open(os.path.realpath(CLAUDE), "rb") as f:
        data = f.read()
    holds(b"/lib64/ld-linux" not in data, "no interpreter is named in it")
    status = os.stat(os.path.realpath(CLAUDE))
    equal((status.st_uid, status.st_mode & 0o7777), (0, 0o755))


@test(needs="bus")
def installed_files_are_roots(lab):
    """Nothing of the product can be changed by a user, and nothing is set-id."""
    for directory in ("/usr/libexec/claude-sandbox", "/usr/share/dbus-1/system.d", "/usr/share/dbus-1/system-services",
                      "/usr/share/polkit-1/actions"):
        for path, directories, names in os.walk(directory):
            for name in directories + names:
                status = os.lstat(os.path.join(path, name))
                holds(status.st_uid == 0, f"{path}/{name} is not root's")
                holds(os.path.islink(os.path.join(path, name)) or not status.st_mode & 0o6022, f"{path}/{name}: {status.st_mode:o}")
    for name in ("claude", "claude-sandbox"):
        path = f"/usr/local/bin/{name}"
        if os.path.lexists(path):
            equal(os.stat(path).st_mode & 0o6022, 0, path)


@test(needs="bus")
def marker_decides_nesting(lab):
    """Inside, `claude` is the agent itself; a planted IS_SANDBOX outside is nothing."""
    for user in BOTH:
        machine.write(f"{user.home}/.local/bin/claude", "#!/bin/bash\necho agent \"$@\"\n"
                      "[ \"$1\" = nested ] && exec claude again\nexit 0\n", 0o755, user)
        result = lab.run([CLAUDE, "nested"], user).ok()
        holds(result.out.startswith(b"agent nested\nagent "), f"{user}: {result!r}")
    lab.install_agent(ALICE)
    result = lab.run([CLAUDE, "environment"], env=lab.environment(ALICE, IS_SANDBOX="1", IS_SANDBOX_AGENT="claude")).ok()
    holds(b"CLAUDE_CONFIG_DIR=" in result.out, "it was jailed all the same")
