# SPDX-License-Identifier: MIT
"""What the configuration, its twins in the environment and the profiles change, seen from inside."""

import os
import socket

import machine
import network
from case import CLAUDE, SANDBOX, equal, holds, test
from machine import ALICE, PROBE, ROOT
from network_cases import reach
from reach_cases import inside
from view_cases import environment

BOTH = (ALICE, ROOT)


@test(needs="bus")
def arguments_of_the_profile(lab):
    """claude never gets --chrome; everything else passes, and a subcommand stays the first word."""
    for user in BOTH:
        machine.write(f"{user.home}/.local/bin/claude", "#!/bin/bash\nprintf '%s\\n' \"$@\"\n", 0o755, user)
        result = lab.run([CLAUDE, "--chrome", "-p", "x", "--chrome=y", "--", "--chrome"], user).ok()
        lines = result.out.decode().splitlines()
        equal(lines[:3], ["-p", "x", "--chrome=y"], str(user))
        holds("--chrome" not in lines[:3], f"{user}: {lines}")
        result = lab.run([SANDBOX, "shell", "-c", "printf '%s\\n' \"$@\"", "x", "--chrome"], user).ok()
        equal(result.out, b"--chrome\n", f"{user}: a shell's arguments are its own")


@test(needs="bus")
def virtual_environment_comes_last(lab):
    """A project's programs are found, but never before the system's."""
    for user in BOTH:
        venv = f"{lab.workspace(user)}/.venv"
        machine.write(f"{venv}/bin/only-here", "#!/bin/sh\necho found\n", 0o755, user)
        machine.write(f"{venv}/bin/ls", "#!/bin/sh\necho planted\n", 0o755, user)
        result = lab.shell("only-here; command -v ls; echo $PATH", user, env=lab.environment(user, VIRTUAL_ENV=venv)).ok()
        lines = result.out.decode().splitlines()
        equal(lines[:2], ["found", "/usr/bin/ls"], str(user))
        holds(lines[2].endswith(f":{venv}/bin"), f"{user}: {lines[2]}")


@test(60, needs="bus")
def twins_of_root_widen(lab):
    """Root decides for itself: what root's environment adds holds for root's session."""
    rows = reach(lab, [network.DEVICE], "twin", inside(lab, ROOT, env=lab.environment(
        ROOT, CLAUDE_SANDBOX_ALLOW_IP=f"10.66.0.1, {network.DEVICE}")))
    equal({row[4] for row in rows if row[1] == "plain"}, {"reached"})
    os.makedirs("/srv/for root", exist_ok=True)
    result = lab.shell("touch '/srv/for root/x' && echo wrote; echo $FOO-$BAR", ROOT, env=lab.environment(
        ROOT, CLAUDE_SANDBOX_ALLOW_WRITE="/srv/for root\n", CLAUDE_SANDBOX_PASS_ENV="FOO,BAR", FOO="f", BAR="b")).ok()
    equal(result.out, b"wrote\nf-b\n")


@test(60, needs="bus")
def twins_are_checked(lab):
    """A twin that is wrong refuses by its name, for root too."""
    for name, value in (("CLAUDE_SANDBOX_ALLOW_IP", "10.1.2"), ("CLAUDE_SANDBOX_PASS_ENV", "LD_PRELOAD"),
                        ("CLAUDE_SANDBOX_EGRESS_JAIL", "of"), ("CLAUDE_SANDBOX_WORKSPACE_ROOT", "here")):
        for user in BOTH:
            lab.shell("echo STARTED", user, env=lab.environment(user, **{name: value})).refused(125, name)


@test(60, needs="bus")
def no_forge_hides_the_forges(lab):
    for user in BOTH:
        for name in ("gh/hosts.yml", "glab-cli/config.yml"):
            machine.write(f"{user.home}/.config/{name}", "FORGE-LOGIN\n", 0o600, user)
        script = "cat ~/.config/gh/hosts.yml ~/.config/glab-cli/config.yml 2>/dev/null; git config --get-regexp '^credential'; true"
        lab.replace("/usr/local/bin/gh", "#!/bin/sh\n", 0o755)
        result = lab.shell(script, user).ok()
        holds(result.out.count(b"FORGE-LOGIN") == 2 and b"credential" in result.out, f"{user}: {result.out!r}")
        lab.configure("no-forge\n")
        equal(lab.shell(script, user).ok().out, b"", str(user))
        lab.restore()
        lab.replace("/usr/local/bin/gh", "#!/bin/sh\n", 0o755)
        result = lab.shell(script, user, env=lab.environment(user, CLAUDE_SANDBOX_NO_FORGE="1")).ok()
        equal(result.out, b"", f"{user}: the environment narrows without asking")
        lab.restore()


@test(needs="bus")
def workspace_root_replaces_the_directory(lab):
    """The root is writable, the agent starts where the person stands in it."""
    for user in BOTH:
        below = lab.workspace(user, "group") + "/one"
        os.makedirs(below, exist_ok=True)
        os.chown(below, user.uid, user.gid)
        lab.configure(f"workspace-root = {user.home}/group\n")
        result = lab.shell("pwd; touch ../beside && echo wrote", user, cwd=below).ok()
        equal(result.out.decode(), f"{below}\nwrote\n", str(user))
        lab.restore()


@test(needs="bus")
def allow_write_of_a_socket(lab):
    """One socket of a service, and only that one."""
    os.makedirs("/srv/engine", exist_ok=True)
    path = "/srv/engine/a.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chmod(path, 0o777)
        listener.listen(5)
        try:
            for user in BOTH:
                holds(b"refused" in lab.shell(f"{PROBE} connect {path}", user).out, f"{user}: without the entry")
                lab.configure(f"allow-write = {path}\n")
                equal(lab.shell(f"{PROBE} connect {path}", user).ok().out, b"connected\n", str(user))
                lab.restore()
        finally:
            os.unlink(path)


@test(needs="bus")
def secrets_stay_out_of_command_lines(lab):
    """No value of a variable can be read from any process's arguments."""
    lab.configure("pass-env = SECRET_TOKEN\n")
    script = "echo ready; read x"
    from bus_cases import Held
    with Held(lab, ALICE, script, env=lab.environment(ALICE, SECRET_TOKEN="very-secret-value")):
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/cmdline", "rb") as f:
                        holds(b"very-secret-value" not in f.read(), f"process {entry}")
                except (FileNotFoundError, ProcessLookupError):
                    pass


@test(needs="bus")
def sessions_do_not_share_their_temporary_files(lab):
    """/tmp is the session's own; the agent's own directory is one for each workspace."""
    one = environment(lab, ALICE)["CLAUDE_CODE_TMPDIR"]
    lab.shell("echo planted > /tmp/planted", ALICE).ok()
    holds(not os.path.exists("/tmp/planted"), "/tmp is private")
    equal(lab.shell("ls -A /tmp", ALICE).ok().out, b"", "the next session's is empty")
    lab.install_agent(ALICE)
    result = lab.run([CLAUDE, "environment"], ALICE, cwd=lab.workspace(ALICE, "second")).ok()
    two = [line.split("=", 1)[1] for line in result.out.decode().splitlines() if line.startswith("CLAUDE_CODE_TMPDIR=")][0]
    holds(one != two, "two workspaces have two directories")
    for path in (one, two):
        status = os.stat(path)
        equal((status.st_uid, status.st_mode & 0o7777), (ALICE.uid, 0o700), path)
    equal(os.stat("/var/tmp/claude-agent").st_mode & 0o7777, 0o711)
    equal(os.stat("/var/tmp/claude-agent").st_uid, 0)


@test(60, needs="bus")
def squatted_temp_root(lab):
    """Somebody else's directory or link at the place of the temporary root is never used, and the person hears of it."""
    root = "/var/tmp/claude-agent"
    lab.install_agent(ALICE)
    lab.run([CLAUDE, "exit", "0"], ALICE).ok()
    os.rename(f"{root}/{ALICE.uid}", f"{root}/aside")
    try:
        os.makedirs("/srv/elsewhere", exist_ok=True)
        os.chmod("/srv/elsewhere", 0o1777)

        def not_used(what):
            result = lab.run([CLAUDE, "environment"], ALICE)
            holds(b"temporary files" in result.err, f"{what}: {result!r}")
            holds(result.status == 125 or b"CLAUDE_CODE_TMPDIR=" + root.encode() not in result.out, f"{what}: {result!r}")
            equal(os.listdir("/srv/elsewhere"), [], what)
        os.symlink("/srv/elsewhere", f"{root}/{ALICE.uid}")
        not_used("a link")
        os.unlink(f"{root}/{ALICE.uid}")
        os.mkdir(f"{root}/{ALICE.uid}", 0o700)
        os.chown(f"{root}/{ALICE.uid}", machine.MALLORY.uid, machine.MALLORY.gid)
        not_used("another's directory")
        equal(os.listdir(f"{root}/{ALICE.uid}"), [], "another's directory")
    finally:
        machine.shutil.rmtree(f"{root}/{ALICE.uid}", ignore_errors=True)
        if os.path.islink(f"{root}/{ALICE.uid}"):
            os.unlink(f"{root}/{ALICE.uid}")
        os.rename(f"{root}/aside", f"{root}/{ALICE.uid}")


@test(60, needs="bus")
def identities_cannot_inject(lab):
    """A name with quotes, line ends and a section in it is a name and nothing else."""
    workspace = lab.workspace(ALICE, "named")
    lab.run(["/usr/bin/git", "init", "-q"], ALICE, cwd=workspace).ok()
    for name in ('"', "a\\", "x\n[core]\n\tpager = touch /tmp/pwned\n", "#;=", "e\u00e9\u4e2d", "  spaces  "):
        lab.run(["/usr/bin/git", "config", "user.name", name], ALICE, cwd=workspace).ok()
        result = lab.shell("git config --file /etc/claude-gitconfig -z user.name; "
                           "git config --file /etc/claude-gitconfig core.pager; true", ALICE, cwd=workspace).ok()
        found, rest = result.out.split(b"\0", 1)
        equal(rest, b"", f"{name!r} injected")
        holds(found.decode() in (name, name.strip(), " ".join(name.split())), f"{name!r} became {found!r}")


@test(needs="bus")
def misspelt_variables_are_named(lab):
    """Whoever sets a narrowing and misspells it must not believe that it holds."""
    environment_of = lab.environment(ALICE, CLAUDE_SANDBOX_NOFORGE="1", CLAUDE_SANDBOX_NO_FORGE="1")
    result = lab.shell("true", env=environment_of)
    equal((result.status, result.out), (0, b""), repr(result))
    holds(b"CLAUDE_SANDBOX_NOFORGE" in result.err and b"CLAUDE_SANDBOX_NO_FORGE" not in result.err, repr(result))
