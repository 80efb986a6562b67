# SPDX-License-Identifier: MIT
"""Profiles: what each agent sees, gets and is told; where agents are found; what is none."""

import json
import os
import shutil

import machine
from case import SANDBOX, Skip, equal, holds, test
from machine import ALICE, ROOT

BOTH = (ALICE, ROOT)
AGENTS = ("claude", "codex", "pi")
ENTRY = "/usr/libexec/claude-sandbox/entry"
INSTALLED = "/usr/libexec/claude-sandbox/agents"
STATES = {"claude": ".claude", "codex": ".codex", "pi": ".pi"}
SKILLS = {"claude": "skills", "codex": "skills", "pi": "agent/skills"}

# Runs its first argument, which is a script.
SCRIPT = """#!/bin/bash
[ "$1" != -c ] || shift 2
eval "$1"
"""


def program(name):
    return f"/usr/local/bin/{name}"


def clear(lab, user):
    """A home without agents and their states, now and at the end."""
    def remove():
        for name in (".local", *STATES.values(), ".agents", ".npm-packages", ".nodes", "tool"):
            shutil.rmtree(f"{user.home}/{name}", ignore_errors=True)
    remove()
    lab.undo.append(remove)


def put(user, name, text=SCRIPT, mode=0o755):
    path = f"{user.home}/.local/bin/{name}"
    machine.write(path, text, mode, user)
    return path


def link(user, path, text):
    if not os.path.isdir(os.path.dirname(path)):
        machine.write(f"{os.path.dirname(path)}/.made", "", 0o644, user)
        os.unlink(f"{os.path.dirname(path)}/.made")
    os.symlink(text, path)
    os.lchown(path, user.uid, user.gid)


def tree(path):
    found = {}
    for directory, directories, files in os.walk(path):
        for name in directories + files:
            status = os.lstat(f"{directory}/{name}")
            found[f"{directory}/{name}"] = (status.st_mode, status.st_uid, status.st_size)
    return found


@test(needs="bus")
def entries_are_links_to_one_file(lab):
    for name in AGENTS:
        equal(os.readlink(program(name)), ENTRY)
        clear(lab, ALICE)
        lab.run([program(name)]).refused(127, f"{name} is not installed", f"sudo claude-sandbox install {name}")


@test(60, needs="bus")
def each_sees_its_own_state(lab):
    """Every agent against the state of every other, in both directions; what it writes is there afterwards."""
    for user in BOTH:
        clear(lab, user)
        for name, state in STATES.items():
            put(user, name)
            machine.write(f"{user.home}/{state}/{SKILLS[name]}/secret", f"of {name}\n", 0o600, user)
        for name, state in STATES.items():
            result = lab.run([program(name), "cat ~/.claude/*/secret ~/.codex/*/secret ~/.pi/*/*/secret 2>/dev/null;"
                              f" ls -dA ~/.claude ~/.codex ~/.pi 2>/dev/null; echo new > ~/{state}/{SKILLS[name]}/new;"
                              f" echo own > ~/{state}/own"], user).ok()
            equal(result.out.decode().split("\n"), [f"of {name}", f"{user.home}/{state}", ""], f"{user}: {name}")
            with open(f"{user.home}/{state}/{SKILLS[name]}/new", encoding="ascii") as f:
                equal(f.read(), "new\n")
            holds(not os.path.exists(f"{user.home}/{state}/own"), f"{user}: {name} wrote in the person's own")
            result = lab.run([program(name), f"cat ~/{state}/own"], user).ok()
            equal(result.out, b"own\n", f"{user}: {name} has its own again")
        result = lab.shell("ls -dA ~/.claude ~/.codex ~/.pi", user)
        equal((result.status, result.out), (2, b""), f"{user}: a shell has no agent's state")


@test(60, needs="bus")
def told_by_their_profile(lab):
    """Variables and arguments: each its own, none of the others'."""
    wanted = {
        "claude": ({"CLAUDE_CONFIG_DIR": "{home}/.claude", "DISABLE_AUTOUPDATER": "1",
                    "CLAUDE_CODE_DISABLE_AGENT_VIEW": "1", "CLAUDE_CODE_ENABLE_CFC": "0"}, ["one", "two"]),
        "codex": ({"CODEX_UPDATE_DISABLED": "1"},
                  ["-c", "features.daemon_auto_start=false", "--chrome", "one", "--chrome", "two"]),
        "pi": ({"PI_SKIP_VERSION_CHECK": "1"}, ["--chrome", "one", "--chrome", "two"]),
    }
    own = {"CLAUDE_CONFIG_DIR", "CLAUDE_CODE_TMPDIR", "CLAUDE_CODE_DISABLE_AGENT_VIEW", "CLAUDE_CODE_ENABLE_CFC",
           "DISABLE_AUTOUPDATER", "CODEX_UPDATE_DISABLED", "CODEX_HOME",
           "PI_SKIP_VERSION_CHECK", "PI_CODING_AGENT_DIR"}
    planted = {name: "/planted" for name in own} | {"IS_SANDBOX": "1", "IS_SANDBOX_AGENT": "shell"}
    for user in BOTH:
        clear(lab, user)
        for name, (variables, arguments) in wanted.items():
            put(user, name, "#!/bin/bash\nprintf '%s\\0' \"$@\"\necho -n :\ncat /proc/self/environ\n")
            result = lab.run([program(name), "--chrome", "one", "--chrome", "two"], user,
                             env=lab.environment(user, **planted)).ok()
            told, environment = result.out.split(b":", 1)
            equal(told.decode().split("\0")[:-1], arguments, f"{user}: {name}")
            found = dict(entry.split("=", 1) for entry in environment.decode().split("\0") if entry)
            temp = found.pop("CLAUDE_CODE_TMPDIR", None)
            equal(bool(temp), name == "claude", f"{user}: {name}: the temp root")
            equal({key: value for key, value in found.items() if key in own},
                  {key: value.format(home=user.home) for key, value in variables.items()}, f"{user}: {name}")
            equal((found["IS_SANDBOX"], found["IS_SANDBOX_AGENT"]), ("1", name))


@test(60, needs="bus")
def masks_and_skills(lab):
    """What a native agent runs later is out of reach, whether it is there or not; skills are shared where they are."""
    for user in BOTH:
        for name, place in (("codex", ".codex/packages"), ("codex", ".codex/app-server-control"),
                            ("codex", ".codex/app-server-daemon"), ("claude", ".claude/local")):
            clear(lab, user)
            put(user, name)
            machine.write(f"{user.home}/{place}/native", "#!/bin/sh\n", 0o755, user)
            write = f"ls ~/{place}; mkdir -p ~/{place} && echo planted > ~/{place}/native; cat ~/{place}/native"
            equal(lab.run([program(name), write], user).ok().out, b"planted\n", f"{user}: {name}")
            with open(f"{user.home}/{place}/native", encoding="ascii") as f:
                equal(f.read(), "#!/bin/sh\n")
            shutil.rmtree(f"{user.home}/{place}")
            equal(lab.run([program(name), write], user).ok().out, b"planted\n", f"{user}: {name}, not there")
            holds(not os.path.exists(f"{user.home}/{place}"), f"{user}: {place} was left")

            # a directory of skills that is not there is not made; one that is there is every agent's
            before = tree(user.home)
            lab.run([program(name), "mkdir -p ~/.agents/skills && echo lost > ~/.agents/skills/lost"], user).ok()
            equal(tree(user.home), before, f"{user}: {name} left a trace")
            machine.write(f"{user.home}/.agents/other", "PRIVATE", 0o600, user)
            machine.write(f"{user.home}/.agents/skills/one/SKILL.md", "shared\n", 0o644, user)
            result = lab.run([program(name), "cat ~/.agents/skills/one/SKILL.md; ls -A ~/.agents; echo > ~/.agents/skills/two"], user)
            equal(result.ok().out, b"shared\nskills\n", f"{user}: {name}")
            holds(os.path.isfile(f"{user.home}/.agents/skills/two"), "a new skill stays")


@test(60, needs="bus")
def our_entry_is_no_agent(lab):
    """A link, a chain of links, a copy, a hard link, a script: known before anything starts."""
    jail = "the entry of the jail"
    for name in AGENTS:
        clear(lab, ALICE)
        place = f"{ALICE.home}/.local/bin/{name}"

        def refused(*words, agent=name):
            lab.run([program(agent), "--version"]).refused(127, f"{agent} is not installed", *words,
                                                           f"'sudo claude-sandbox install {agent}'")
            os.unlink(f"{ALICE.home}/.local/bin/{agent}")

        for target in (program(name), program("claude"), ENTRY, "/usr/libexec/claude-sandbox/launch", SANDBOX):
            link(ALICE, place, target)
            refused(place, f"leads to {jail}")
        link(ALICE, f"{ALICE.home}/tool/second", program(name))
        link(ALICE, place, "../../tool/second")
        refused(place, f"leads to {jail}")
        link(ALICE, place, name)
        refused(place, "in a circle")
        link(ALICE, place, "../lib/none")
        refused(place, "leads nowhere")
        with open(ENTRY, "rb") as f:
            put(ALICE, name, f.read())
        equal(json.loads(lab.run([SANDBOX, "install", "--list", "--json"]).ok().out), [], "a copy is listed")
        refused(place, f"is a copy of {jail}")
        put(ALICE, name, f'#!/bin/sh\n# a comment\nexec {program(name)} "$@"\n')
        refused(place, f"is a script that starts {jail}")
        put(ALICE, name, SCRIPT, 0o644)
        refused(place, "no program that can be executed")

        # as what root installed: passed over, as if it were not there
        os.makedirs(f"{INSTALLED}/{name}", exist_ok=True)
        lab.undo.append(lambda path=f"{INSTALLED}/{name}": shutil.rmtree(path, ignore_errors=True))
        os.link(ENTRY, f"{INSTALLED}/{name}/{name}")
        lab.run([program(name)]).refused(127, f"{name} is not installed")
        put(ALICE, name)
        equal(lab.run([program(name), "echo own"]).ok().out, b"own\n")
        shutil.rmtree(f"{INSTALLED}/{name}")


@test(60, needs="bus")
def what_only_starts_us_ends(lab):
    """Programs that find the entry by PATH are known when they do: one line, and no storm of processes."""
    for user in BOTH:
        for name in AGENTS:
            clear(lab, user)
            place = put(user, name, f'#!/bin/bash\nexec {name} "$@"\n')
            lab.run([program(name), "x"], user).refused(125, f"{place} is no agent", f"it starts {name} again")
            put(user, name, f'#!/bin/bash\n{name} "$@"\n')
            lab.run([program(name), "x"], user).refused(125, f"{place} is no agent", f"it starts {name} again")


@test(needs="bus")
def nested_calls(lab):
    """Inside, the profile's own name is the agent; the others' names say where they are to be had."""
    for user in BOTH:
        clear(lab, user)
        for name in AGENTS:
            put(user, name)
            result = lab.run([program(name), f"{name} '{name} \"{name} \\\"echo deep\\\"\"'"], user,
                             env=lab.environment(user, IS_SANDBOX="1")).ok()
            equal(result.out, b"deep\n", f"{user}: {name}")
            for other in AGENTS:
                if other != name:
                    put(user, other)
                    lab.run([program(name), other], user).refused(
                        125, f"this is a session of {name}: it has neither the program nor the files of {other}",
                        f"start {other} outside")
        lab.shell("codex", ALICE).refused(125, "this is a session of shell")


def node_program():
    for path in ("/usr/bin/node", "/usr/local/bin/node"):
        if os.path.exists(path):
            return os.path.realpath(path)
    raise Skip("node is not installed")


CLI = """#!/usr/bin/env node
const fs = require("fs"), path = require("path");
console.log(require("./lib/words.js").join(" "), ...process.argv.slice(2));
console.log(path.basename(process.execPath) === "node" ? process.execPath : "another");
for (const place of [__dirname, process.execPath])
	try { fs.accessSync(place, fs.constants.W_OK); console.log("writable"); } catch (e) { console.log(e.code); }
const shared = ["project", ".cache", ".config", ".local", ".agents"];
console.log(fs.readdirSync(process.env.HOME).filter((name) => !shared.includes(name)).sort().join(" "));
console.log(fs.readdirSync(__dirname.replace(/node_modules.*/, "node_modules")).join(" "));
"""


def publish(user, prefix, package):
    """What `npm install --global --prefix` leaves."""
    place = f"{prefix}/lib/node_modules/{package}"
    machine.write(f"{place}/dist/cli.js", CLI, 0o755, user)
    machine.write(f"{place}/dist/lib/words.js", 'module.exports = ["it", "works"];\n', 0o644, user)
    machine.write(f"{prefix}/lib/node_modules/other/secret.js", "PRIVATE", 0o644, user)
    link(user, f"{prefix}/bin/tool", f"../lib/node_modules/{package}/dist/cli.js")
    return place


@test(60, needs="bus")
def packages_of_npm_in_the_home(lab):
    """With the system's node, and with the node of the same installation; read-only, and nothing else of it."""
    node = node_program()
    for user in BOTH:
        clear(lab, user)
        publish(user, f"{user.home}/.npm-packages", "@openai/codex")
        link(user, f"{user.home}/.local/bin/codex", "../../.npm-packages/bin/tool")
        lines = lab.run([program("codex"), "hello"], user).ok().out.decode().splitlines()
        equal((lines[0], lines[2], lines[4:]), ("it works -c features.daemon_auto_start=false hello", "EROFS",
                                                  [".codex .npm-packages", "@openai"]),
              str(user))

        prefix = f"{user.home}/.nodes/versions/node/v1"
        publish(user, prefix, "@x/pi")
        with open(node, "rb") as f:
            machine.write(f"{prefix}/bin/node", f.read(), 0o755, user)
        link(user, f"{user.home}/.nodes/current", "versions/node/v1")
        link(user, f"{user.home}/.local/bin/pi", f"{user.home}/.nodes/current/bin/tool")
        lines = lab.run([program("pi"), "hello"], user).ok().out.decode().splitlines()
        equal(lines, ["it works hello", f"{prefix}/bin/node", "EROFS", "EROFS", ".nodes .pi", "@x"], str(user))
        result = lab.run([program("pi"), "-x"], user)
        equal(result.ok().out.splitlines()[0], b"it works -x")


@test(60, needs="bus")
def packages_that_cannot_run(lab):
    """No node, or a place where agents write: said outside, before anything starts."""
    node_program()
    clear(lab, ALICE)
    place = publish(ALICE, f"{ALICE.home}/.npm-packages", "@openai/codex")
    link(ALICE, f"{ALICE.home}/.local/bin/codex", "../../.npm-packages/bin/tool")
    for path in ("/usr/bin/node", "/usr/local/bin/node"):
        if os.path.lexists(path):
            lab.hide(path)
    lab.run([program("codex")]).refused(127, f"{place}/dist/cli.js needs node, which no session sees",
                                        "'sudo claude-sandbox install codex'")
    clear(lab, ALICE)
    publish(ALICE, f"{ALICE.home}/.local/share/uv/npm", "@openai/codex")
    link(ALICE, f"{ALICE.home}/.local/bin/codex", "../share/uv/npm/bin/tool")
    machine.write("/usr/bin/node", "#!/bin/sh\n", 0o755)
    lab.undo.append(lambda: os.unlink("/usr/bin/node"))
    lab.run([program("codex")]).refused(125, "agents may write", ".local/share", "'sudo claude-sandbox install codex'")
    clear(lab, ALICE)
    machine.write(f"{ALICE.home}/.codex/bin/pi", SCRIPT, 0o755, ALICE)
    link(ALICE, f"{ALICE.home}/.local/bin/pi", "../../.codex/bin/pi")
    lab.run([program("pi")]).refused(125, "lies in the state of codex", "'sudo claude-sandbox install pi'")
    put(ALICE, "codex", "#!\n")
    lab.run([program("codex")]).refused(127, "its first line names no interpreter")


@test(60, needs="bus")
def programs_of_the_settings(lab):
    """A hook of the person's runs, and nobody can change it; what an agent names is not opened by that."""
    for user in BOTH:
        clear(lab, user)
        put(user, "claude")
        machine.write(f"{user.home}/bin/guard", "#!/bin/sh\necho guarded\n", 0o755, user)
        machine.write(f"{user.home}/notes", "SECRET\n", 0o600, user)
        machine.write(f"{user.home}/.ssh/run.sh", "#!/bin/sh\necho SECRET\n", 0o755, user)
        settings = {"hooks": {"PreToolUse": [{"hooks": [{"command": "~/bin/guard --x"}]}]},
                    "statusLine": {"command": "cat ~/notes; sh $HOME/.ssh/run.sh; ~/bin/none; ~/bin"}}
        machine.write(f"{user.home}/.claude/settings.json", json.dumps(settings), 0o600, user)
        result = lab.run([program("claude"), "~/bin/guard; echo x >> ~/bin/guard; rm -f ~/bin/guard; "
                          "cat ~/notes ~/.ssh/run.sh; ls ~/bin"], user)
        equal(result.out, b"guarded\nguard\n", f"{user}: {result!r}")
        warning = [line for line in result.err.decode().splitlines() if "settings name it" in line]
        equal(len(warning), 1, result.err)
        holds("/notes" in warning[0] and "/.ssh/run.sh" in warning[0] and "bin/" not in warning[0].split(";")[0], warning)
        with open(f"{user.home}/bin/guard", encoding="ascii") as f:
            equal(f.read(), "#!/bin/sh\necho guarded\n")
        result = lab.run([SANDBOX, "verify", "claude"], user)
        equal(result.status, 0, f"{user}: {result.out.decode()}")
        shutil.rmtree(f"{user.home}/bin")
        for path in ("notes", ".ssh/run.sh", ".claude/settings.json"):
            os.unlink(f"{user.home}/{path}")
