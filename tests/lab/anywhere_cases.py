# SPDX-License-Identifier: MIT
"""What an agent does without a project works in any directory; what would replace its program is answered."""

import os

import machine
from case import ALICE, CLAUDE, equal, holds, test
from conform import BOTH

WORDS = {"claude": ("--version", "-v", "--help", "doctor", "mcp", "auth"), "codex": ("--version", "mcp", "login", "doctor"),
         "pi": ("--version", "--help", "list")}
DIRECTORIES = ("/", "~", "/etc", "/usr", "/home", "~/.ssh")
SCRIPT = """#!/bin/bash
[ "$1" != -c ] || shift 2
echo "$*"
pwd
ls -A . | wc -l
echo kept >here && cat here
ls -A "$HOME/.ssh" 2>/dev/null | wc -l
"""


@test(120, needs="bus")
def without_a_project(lab):
    """In an empty directory of its own; nothing of it is left, and nothing of the current one is there."""
    for user in BOTH:
        machine.write(f"{user.home}/.ssh/id", "secret", 0o600, user)
        for agent, words in WORDS.items():
            machine.write(f"{user.home}/.local/bin/{agent}", SCRIPT, 0o755, user)
            for word in words:
                for directory in DIRECTORIES:
                    path = directory.replace("~", user.home)
                    result = lab.run([f"/usr/local/bin/{agent}", word, "x"], user, cwd=path)
                    equal((result.status, result.err), (0, b""), (agent, word, directory))
                    equal(result.out.splitlines()[0], f"{word} x".encode())
                    equal(result.out.splitlines()[2:], [b"0", b"kept", b"0"], (agent, word, directory))
                    equal(result.out.splitlines()[1], b"/tmp/no-workspace", (agent, word, directory))
                if agent != "claude":
                    break


@test(60, needs="bus")
def in_a_project(lab):
    """Where there may be a workspace it is one, and what needs one is refused without."""
    machine.write(f"{ALICE.home}/.local/bin/claude", SCRIPT, 0o755, ALICE)
    workspace = lab.workspace(ALICE)
    result = lab.run([CLAUDE, "mcp", "list"], cwd=workspace).ok()
    equal(result.out.splitlines()[1], workspace.encode())
    result = lab.run([CLAUDE, "--version"], cwd=workspace).ok()
    equal(result.out.splitlines()[1], b"/tmp/no-workspace")
    for words in (["-p", "hello"], [], ["hello"], ["--verbose", "--version"], ["", "mcp"], ["--resume"]):
        lab.run([CLAUDE, *words], cwd=ALICE.home).refused(125, "home")
    lab.configure(f"workspace-root = {workspace}\n")
    result = lab.run([CLAUDE, "mcp", "list"], cwd=ALICE.home)
    equal(result.out.splitlines()[1], workspace.encode())


@test(60, needs="bus")
def an_update(lab):
    """One line says what updates; nothing is started."""
    for agent, words in (("claude", ("update", "upgrade", "install")), ("codex", ("update",))):
        path = f"{ALICE.home}/.local/bin/{agent}"
        machine.write(path, "#!/bin/sh\necho STARTED\nrm -f ~/.local/bin/*\n", 0o755, ALICE)
        for word in words:
            result = lab.run([f"/usr/local/bin/{agent}", word])
            result.refused(125, f"sudo claude-sandbox install {agent}", f"~/.local/bin/{agent} {word}")
        # a prompt about it is one
        holds(b"does not update itself" not in lab.run([f"/usr/local/bin/{agent}", "-p", "update"]).err, "a prompt")
        holds(os.path.exists(path), "it is there")
