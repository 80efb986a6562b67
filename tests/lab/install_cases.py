# SPDX-License-Identifier: MIT
"""`claude-sandbox install`: the real npm, against a registry of the lab's own."""

import json
import os
import platform
import signal
import subprocess
import tarfile

import machine
from case import CLAUDE, SANDBOX, Skip, equal, holds, processes, test, wait_for
from machine import ALICE, ROOT
from registry import Registry

AGENTS = "/usr/libexec/claude-sandbox/agents"
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
TRIPLE = f"{platform.machine()}-unknown-linux-musl"
STUB = "@anthropic-ai/claude-code"
NATIVE = f"{STUB}-linux-{MACHINE}"
WRONG = "sha512-" + "A" * 86 + "=="

# Says its version; "wait" says it, waits for a line, then shows whether its file is still there.
AGENT = """#!/bin/bash
echo {version}
if [ "$1" = wait ]; then
	read -r line
	head -n 1 {place}
fi
"""


def claude(version):
    return AGENT.format(version=version, place=f"{AGENTS}/.versions/claude-{version}/claude")


def publish(registry, version="1.2.3", program=None, more=None, stub=None, **record):
    """Claude as its makers have it: a stub, and the program in an optional dependency."""
    registry.publish(STUB, version, {"cli.js": "process.exit(9)\n"},
                     **{"optionalDependencies": {NATIVE: version, f"{STUB}-win32-x64": version}, **(stub or {})})
    registry.publish(f"{STUB}-win32-x64", version, {"claude.exe": "MZ"}, os=["win32"])
    return registry.publish(NATIVE, version, {"claude": (0o755, program or claude(version)), **(more or {})},
                            os=["linux"], **record)


def start(lab, registry, *words, user=ROOT, **more):
    return lab.start([SANDBOX, "install", *words], user, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     env=lab.environment(user, npm_config_registry=registry.address, **more))


def install(lab, registry, *words, user=ROOT, **more):
    if not any(os.path.exists(f"{directory}/npm") for directory in ("/usr/bin", "/usr/local/bin")):
        raise Skip("npm is not installed")
    address = registry.address if registry else "http://127.0.0.1:1/"
    return lab.run([SANDBOX, "install", *words], user, cwd="/", limit=60,
                   env=lab.environment(user, npm_config_registry=address, **more))


def clear(lab):
    """As if nothing had been installed; said again at the end of the test."""
    machine.shutil.rmtree(AGENTS, ignore_errors=True)
    for name in ("claude", "codex", "pi"):             # of whoever was here before
        lab.remove_agent(ALICE, name)
    lab.undo.append(lambda: machine.shutil.rmtree(AGENTS, ignore_errors=True))


def versions():
    return sorted(os.listdir(f"{AGENTS}/.versions")) if os.path.isdir(f"{AGENTS}/.versions") else []


def nothing_left():
    """No staging, no half of anything."""
    found = set(os.listdir(AGENTS)) if os.path.isdir(AGENTS) else set()
    equal(found - {".lock", ".versions", "claude", "codex", "pi"}, set())


def settled(path):
    """All below path is root's and only read by others."""
    for directory, directories, files in os.walk(path):
        for name in [".", *directories, *files]:
            status = os.lstat(os.path.join(directory, name))
            equal((status.st_uid, status.st_gid), (0, 0), f"{directory}/{name}")
            if not os.path.islink(os.path.join(directory, name)):
                equal(status.st_mode & 0o7022, 0, f"{directory}/{name}: mode {status.st_mode:o}")


@test(120, needs="bus")
def for_every_user(lab):
    """Installed by root, with another umask and a hostile home; started by anybody; listed; removed."""
    clear(lab)
    machine.write("/root/.npmrc", "ignore-scripts=false\nprefix=/opt/elsewhere\n")
    lab.undo.append(lambda: os.unlink("/root/.npmrc"))
    lab.run([CLAUDE], ALICE).refused(127, "sudo claude-sandbox install claude")
    with Registry() as registry:
        publish(registry, stub={"scripts": {"postinstall": "touch /run/lab/ran"}},
                scripts={"preinstall": "touch /run/lab/ran", "install": "touch /run/lab/ran"})
        previous = os.umask(0o077)
        try:
            result = install(lab, registry, "claude").ok()
        finally:
            os.umask(previous)
    holds(b"installed claude 1.2.3" in result.out and registry.address.encode() in result.out, repr(result))
    holds(not os.path.exists("/run/lab/ran"), "a script of a package ran")
    equal(versions(), ["claude-1.2.3"])
    nothing_left()
    settled(AGENTS)
    for user in (ALICE, ROOT):
        equal(lab.run([CLAUDE], user).ok().out, b"1.2.3\n", str(user))
    equal(json.loads(lab.run([SANDBOX, "install", "--list", "--json"], ALICE).ok().out),
          [{"agent": "claude", "version": "1.2.3", "from": "system", "path": f"{AGENTS}/claude/claude"}])
    lab.run([SANDBOX, "install", "--remove", "claude"], ALICE).refused(125, "sudo claude-sandbox install --remove claude")
    lab.run([SANDBOX, "install", "--remove", "claude"], ROOT).ok()
    equal(versions(), [])
    lab.run([SANDBOX, "install", "--remove", "claude"], ROOT).refused(1, "--list")
    lab.run([CLAUDE], ALICE).refused(127, "sudo claude-sandbox install claude")


@test(120, needs="bus")
def sessions_keep_theirs(lab):
    """A newer version is for new sessions; the old one goes when its last session has gone."""
    clear(lab)
    with Registry() as registry:
        publish(registry, "1.0.0")
        install(lab, registry, "claude").ok()
        process = lab.start([CLAUDE, "wait"], ALICE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            equal(process.stdout.readline(), b"1.0.0\n")
            publish(registry, "2.0.0-rc.1")
            result = install(lab, registry, "claude").ok()
            holds(b"running sessions keep" in result.out, repr(result))
            equal(versions(), ["claude-1.0.0", "claude-2.0.0-rc.1"])
            equal(lab.run([CLAUDE]).ok().out, b"2.0.0-rc.1\n")
            equal(process.communicate(b"go\n", timeout=20)[0], b"#!/bin/bash\n", "the old program was still there")
            equal(process.returncode, 0)
        finally:
            process.kill()
            process.wait()
        wait_for(lambda: not lab.sessions(), "the session is gone")
        # the same version once more, by its number
        install(lab, registry, "claude", "1.0.0").ok()
        equal(versions(), ["claude-1.0.0"])
        equal(lab.run([CLAUDE]).ok().out, b"1.0.0\n")
        install(lab, registry, "claude", "1.0.0").ok()
        equal(versions(), ["claude-1.0.0+1"])
        equal(json.loads(lab.run([SANDBOX, "install", "--list", "--json"]).ok().out)[0]["version"], "1.0.0")
        settled(AGENTS)


@test(180)
def refused_and_nothing_changed(lab):
    """What the registry has is not right: the old version stays, nothing else does."""
    clear(lab)
    with Registry() as registry:
        publish(registry, "1.0.0")
        install(lab, registry, "claude").ok()
        before = sorted(os.listdir(f"{AGENTS}/.versions/claude-1.0.0"))

        def refused(what, *words, agent=("claude",)):
            result = install(lab, registry, *agent)
            lines = result.err.decode().splitlines()
            equal((result.status, len(lines)), (125, 1), f"{what}: {result!r}")
            for word in words:
                holds(word in lines[0], f"{what}: no {word!r} in {lines[0]!r}")
            nothing_left()
            equal((versions(), sorted(os.listdir(f"{AGENTS}/claude/"))), (["claude-1.0.0"], before), what)

        publish(registry, "2.0.0", digest=WRONG)
        refused("the program has another digest", "integrity")
        publish(registry, "2.0.1", digest="")
        refused("no digest but a weak one", "SHA-512", NATIVE)
        publish(registry, "2.0.2", stub={"optionalDependencies": {NATIVE: "git+ssh://git@127.0.0.1/x.git"}})
        refused("the program comes from git", "git")
        publish(registry, "2.0.3", stub={"optionalDependencies": {NATIVE: "npm:other@2.0.3"}})
        registry.publish("other", "2.0.3", {"claude": (0o755, claude("2.0.3"))})
        refused("the program is another's", "elsewhere")
        publish(registry, "2.0.4", stub={"optionalDependencies": {}})
        refused("no program for this machine", "no program for this machine")
        publish(registry, "2.0.5", dependencies={"evil": registry.address + "evil.tgz"})
        refused("a dependency that is not there", "npm failed")
        registry.publish(STUB, "2.0.6", {}, optionalDependencies={NATIVE: "2.0.6"})
        registry.publish(NATIVE, "2.0.6", {"other": "x"}, os=["linux"])
        refused("the program is missing", "is not in what npm fetched")
        refused("no such version", "npm failed", "9.9.9", agent=("claude", "9.9.9"))
        refused("nor such a tag", "npm failed", "nightly", agent=("claude", "nightly"))
        refused("nor such a package", "npm failed", agent=("codex",))
    registry.address = "http://127.0.0.1:1/"
    refused("no network", "registry cannot be reached", "https_proxy", "npm failed", "ECONNREFUSED")


@test(60)
def what_archives_may_hold(lab):
    """Set-id bits, odd modes, links, and names that lead out: none of it arrives."""
    clear(lab)
    link = tarfile.TarInfo()
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/shadow"
    hard = tarfile.TarInfo()
    hard.type, hard.linkname = tarfile.LNKTYPE, "package/claude"
    device = tarfile.TarInfo()
    device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 3
    more = {"setuid": (0o6777, "x"), "writable": (0o666, "x"), "../../../../../../../../../run/lab/out": "x",
            "/run/lab/absolute": "x", "package/link": link, "package/hard": hard, "package/device": device}
    with Registry() as registry:
        publish(registry, program=claude("1.2.3"), more=more)
        install(lab, registry, "claude").ok()
    settled(AGENTS)
    found = f"{AGENTS}/claude/"
    for name in ("link", "hard", "device"):
        holds(not os.path.lexists(found + name), name)
    for path in ("/run/lab/out", "/run/lab/absolute"):
        holds(not os.path.lexists(path), path)
    equal(os.stat(found + "setuid").st_mode & 0o7777, 0o755)


@test(120)
def killed_at_work(lab):
    """kill -9 while an archive comes: the old version stays, npm dies too, the next installation clears up."""
    clear(lab)
    with Registry() as registry:
        publish(registry, "1.0.0")
        install(lab, registry, "claude").ok()
        registry.hold = publish(registry, "2.0.0")
        for number in (signal.SIGKILL, signal.SIGTERM):
            registry.held.clear()
            process = start(lab, registry, "claude")
            holds(registry.held.wait(30), "npm asks for the archive")
            install(lab, registry, "claude").refused(125, "another")
            os.kill(process.pid, number)
            _, err = process.communicate(timeout=20)
            equal((process.returncode, err),
                  (-number, b"") if number == signal.SIGKILL
                  else (125, b"claude-sandbox: interrupted; nothing was changed\n"))
            wait_for(lambda: not [line for line in processes().values() if "npm" in line], "npm has ended")
            equal(os.readlink(f"{AGENTS}/claude"), ".versions/claude-1.0.0")
            equal(os.path.exists(f"{AGENTS}/.staging"), number == signal.SIGKILL)
        registry.hold = None
        os.makedirs(f"{AGENTS}/.staging/" + "deep/" * 300)
        os.symlink("/nowhere", f"{AGENTS}/.new")
        install(lab, registry, "claude").ok()
        nothing_left()
        equal(versions(), ["claude-2.0.0"])


@test(120, needs="bus")
def codex_and_pi(lab):
    """A program deep in its package, and one that needs a node of its own."""
    clear(lab)
    codex, pi, node = "@openai/codex", "@mariozechner/pi-coding-agent", f"node-linux-{MACHINE}"
    with Registry() as registry:
        registry.publish(codex, "0.5.0", {}, optionalDependencies={
            f"{codex}-linux-{MACHINE}": f"npm:{codex}@0.5.0-linux-{MACHINE}"})
        registry.publish(f"{codex}-linux-{MACHINE}", f"0.5.0-linux-{MACHINE}", {
            f"vendor/{TRIPLE}/bin/codex": (0o755, "#!/bin/sh\necho codex \"$@\"\n"),
            f"vendor/{TRIPLE}/codex-path/rg": (0o755, "#!/bin/sh\n")}, alias=codex)
        install(lab, registry, "codex").ok()
        equal(lab.run(["/usr/local/bin/codex", "--version"]).ok().out, b"codex -c features.daemon_auto_start=false --version\n")
        equal(os.path.realpath(f"{AGENTS}/codex/codex"),
              f"{AGENTS}/.versions/codex-0.5.0/vendor/{TRIPLE}/bin/codex")

        with open("/bin/echo", "rb") as f:
            registry.publish(node, "24.1.0", {"bin/node": (0o755, f.read()), "share/doc": "x"})
        registry.publish(node, "99.0.0", {})
        registry.publish("library", "3.0.0", {"index.js": ""})
        registry.publish(pi, "0.7.0", {"dist/cli.js": "#!/usr/bin/env node\n"}, bin={"pi": "dist/cli.js"},
                         dependencies={"library": "^3.0.0"})
        result = json.loads(install(lab, registry, "--json", "pi").ok().out)
        equal(result, {"agent": "pi", "version": "0.7.0", "path": f"{AGENTS}/pi/pi"})
        place = f"{AGENTS}/.versions/pi-0.7.0"
        equal(lab.run(["/usr/local/bin/pi", "hello"]).ok().out, f"{place}/pi hello\n".encode(), "started by its own node")
        with open(f"{place}/pi", encoding="ascii") as f:
            equal(f.read(), f'#!{place}/node\nimport("{place}/node_modules/{pi}/dist/cli.js");\n')
        holds(os.path.isfile(f"{place}/node_modules/library/index.js"), "what it depends on")
        holds(not os.path.exists(f"{place}/node_modules/{node}"), "node is there once")
    settled(AGENTS)
    table = lab.run([SANDBOX, "install", "--list"], ALICE).ok().out.decode().splitlines()
    equal([line.split()[:3] for line in table[1:]], [["codex", "0.5.0", "system"], ["pi", "0.7.0", "system"]])


@test(60, needs="bus")
def another_ahead_on_path(lab):
    """What stands before the entry on PATH runs without a jail: the commands that people look with say so."""
    clear(lab)
    own = f"{ALICE.home}/.local/bin/claude"
    machine.write(own, "#!/bin/bash\n", 0o755, ALICE)
    usual = lab.environment(ALICE)
    ahead = {**usual, "PATH": f"{ALICE.home}/.local/bin:" + usual["PATH"]}
    for words in (["install", "--list"], ["version"], ["install", "--list", "--json"]):
        equal(lab.run([SANDBOX, *words], ALICE, env=usual).ok().err, b"")
        result = lab.run([SANDBOX, *words], ALICE, env=ahead)
        equal(result.status, 0, repr(result))
        lines = result.err.decode().splitlines()
        holds(len(lines) == 1 and f"'claude' starts {own}, without a jail" in lines[0] and "/usr/local/bin first" in lines[0],
              repr(result))
    equal(lab.run([SANDBOX, "shell", "-c", "true"], ALICE, env=ahead).ok().err, b"", "a script's shell")
    with lab.terminal([SANDBOX, "shell", "-c", f"{SANDBOX} version; echo $((40+2))"], ALICE, env=ahead) as terminal:
        terminal.expect("without a jail", 20)
        holds(b"without a jail" not in terminal.expect("42", 20), "inside a session it is the agent's own")
        equal(terminal.wait(), 0)
    os.unlink(own)
    os.symlink("/usr/local/bin/claude", own)
    equal(lab.run([SANDBOX, "version"], ALICE, env=ahead).ok().err, b"", "a link to the entry")
    os.unlink(own)


@test(60, needs="bus")
def who_and_what(lab):
    """Not by users, not from a session, not by any npm, not what is no version."""
    clear(lab)
    with Registry() as registry:
        publish(registry)
        lab.run([SANDBOX, "install", "claude", "1.2.3"], ALICE).refused(125, "'sudo claude-sandbox install claude 1.2.3'")
        result = lab.shell(f"{SANDBOX} install claude", ROOT)
        equal((result.status, result.out), (125, b""), repr(result))
        holds(b"inside a session" in result.err, repr(result))
        for words in (("claude", "--global"), ("claude", "--", "-g"), ("claude", "../x"), ("claude", "1@x"), ("claude", "1 2"),
                      ("claude", "npm:other"), ("claude", "~/x"), ("claude", ""), ("claude", "1" * 65), ("shell",), ("npm",),
                      ("../claude",), (), ("--list", "claude"), ("--remove", "claude", "1"), ("--list", "--remove"),
                      ("claude", "1", "2")):
            equal(install(lab, registry, *words).status, 2, repr(words))
        equal(registry.requests, [], "nobody asked the registry")

        real = os.path.realpath(next(path for path in ("/usr/bin/npm", "/usr/local/bin/npm") if os.path.exists(path)))
        lab.mode(os.path.dirname(real), 0o777)
        install(lab, registry, "claude").refused(125, "apt-get install --no-install-recommends npm", "others than root")
        lab.restore()
        for path in ("/usr/bin/npm", "/usr/local/bin/npm"):
            if os.path.lexists(path):
                lab.hide(path)
        lab.run([SANDBOX, "install", "claude"], ROOT, cwd="/").refused(125, "apt-get install --no-install-recommends npm")
        lab.restore()
        clear(lab)
        os.makedirs(AGENTS)
        os.chmod(AGENTS, 0o777)
        install(lab, registry, "claude").refused(125, AGENTS)
        equal(registry.requests, [], "nobody asked the registry")
