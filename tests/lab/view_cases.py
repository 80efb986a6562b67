# SPDX-License-Identifier: MIT
"""What an agent sees of the machine and of its owner: files, sockets, variables, processes."""

import os
import socket

import machine
from case import CLAUDE, equal, holds, test, wait_for
from machine import ALICE, BOB, PROBE, ROOT

BOTH = (ALICE, ROOT)

# What a person has in the shell and an agent must not get, and what steers a program.
PLANTED = {
    "LD_PRELOAD": "/tmp/evil.so", "LD_LIBRARY_PATH": "/tmp", "LD_AUDIT": "/tmp/evil.so", "GLIBC_TUNABLES": "glibc.x=1",
    "GCONV_PATH": "/tmp", "BASH_ENV": "/tmp/evil.sh", "ENV": "/tmp/evil.sh", "PYTHONPATH": "/tmp", "SSH_AUTH_SOCK": "/tmp/a",
    "GH_TOKEN": "secret-1", "GITHUB_TOKEN": "secret-2", "OPENAI_API_KEY": "secret-3", "ANTHROPIC_API_KEY": "secret-4",
    "AWS_SECRET_ACCESS_KEY": "secret-5", "DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0", "GIT_DIR": "/tmp",
    "GIT_CONFIG_GLOBAL": "/tmp/evil", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/tmp/x", "XDG_RUNTIME_DIR": "/run/user/4001",
    "IS_SANDBOX": "0", "CLAUDE_CONFIG_DIR": "/tmp", "FOO": "bar",
}


def environment(lab, user, **more):
    lab.install_agent(user)
    result = lab.run([CLAUDE, "environment"], user, env=lab.environment(user, **more)).ok()
    return dict(line.split("=", 1) for line in result.out.decode().splitlines())


@test(needs="bus")
def environment_is_composed_from_nothing(lab):
    for user in BOTH:
        home = user.home
        found = environment(lab, user, **PLANTED, EDITOR="vi", LC_TIME="C", COLORTERM="truecolor", TZ="UTC")
        temp = found.pop("CLAUDE_CODE_TMPDIR", "")
        holds(temp.startswith(f"/var/tmp/claude-agent/{user.uid}/"), f"{user}: CLAUDE_CODE_TMPDIR is {temp!r}")
        equal(found, {
            "PATH": f"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{home}/.local/bin",
            "HOME": home, "USER": user.name, "LOGNAME": user.name, "SHELL": "/bin/bash", "IS_SANDBOX": "1",
            "IS_SANDBOX_AGENT": "claude", "GIT_CONFIG_GLOBAL": "/etc/claude-gitconfig", "GIT_CONFIG_SYSTEM": "/dev/null",
            "CLAUDE_CONFIG_DIR": f"{home}/.claude", "CLAUDE_CODE_DISABLE_AGENT_VIEW": "1",
            "CLAUDE_CODE_ENABLE_CFC": "0", "DISABLE_AUTOUPDATER": "1", "TERM": "xterm-256color", "LANG": "C.UTF-8", "EDITOR": "vi",
            "LC_TIME": "C", "COLORTERM": "truecolor", "TZ": "UTC",
        } | {name: value for name, value in found.items() if name == "CLAUDE_SANDBOX_ENTRY_GUARD"}, str(user))


@test(needs="bus")
def true_names_come_from_passwd(lab):
    """HOME, USER and SHELL of the person, whatever the shell says."""
    found = environment(lab, ALICE, USER="root", LOGNAME="root", SHELL="/bin/false")
    equal((found["USER"], found["LOGNAME"], found["SHELL"]), ("alice", "alice", "/bin/bash"))


@test(needs="bus")
def workspace_is_writable_and_nothing_else(lab):
    script = """
    for d in / /etc /usr /usr/local/bin /var /var/lib /opt /boot /srv /usr/libexec/claude-sandbox /sys; do
        touch "$d/planted" 2>/dev/null && echo "wrote $d"
    done
    ls -A /mnt /media; for d in /mnt /media; do touch $d/planted 2>/dev/null; done
    echo inside > written; cat written"""
    for user in BOTH:
        result = lab.shell(script, user)
        equal(result.ok().out, b"/media:\n\n/mnt:\ninside\n", str(user))
        with open(f"{lab.workspace(user)}/written", encoding="ascii") as f:
            equal(f.read(), "inside\n", str(user))
        equal(os.stat(f"{lab.workspace(user)}/written").st_uid, user.uid)
        holds(not any(os.path.exists(f"{place}/planted") for place in ("/etc", "/mnt", "/media")), "nothing came out")


@test(needs="bus")
def homes_and_secrets_are_hidden(lab):
    for user in BOTH:
        machine.write(f"{user.home}/.ssh/id_ed25519", "PRIVATE-KEY", 0o600, user)
        machine.write(f"{user.home}/.netrc", "PRIVATE-NETRC", 0o600, user)
        machine.write(f"{user.home}/.aws/credentials", "PRIVATE-AWS", 0o600, user)
        machine.write(f"{user.home}/.config/gh/hosts.yml", "forge", 0o600, user)
        machine.write(f"{user.home}/.config/other/token", "PRIVATE-OTHER", 0o600, user)
        machine.write(f"{user.home}/other-project/secret", "PRIVATE-PROJECT", 0o600, user)
        machine.write(f"{user.home}/.codex/auth.json", '{"key": "PRIVATE-CODEX"}', 0o600, user)
        machine.write(f"{user.home}/.claude/settings.json", "{}", 0o600, user)
        lab.install_agent(user)
        script = "ls -A ~ /home /root 2>/dev/null; cat ~/.ssh/* ~/.netrc ~/.aws/* ~/.config/other/* ~/other-project/* ~/.codex/* " \
                 "/etc/shadow /etc/gshadow /home/bob/* 2>/dev/null; echo done"
        result = lab.shell(script, user)
        holds(result.status == 0 and result.out.endswith(b"done\n"), f"{user}: {result!r}")
        holds(b"PRIVATE" not in result.out and b"root:" not in result.out.split(b"/root:")[-1],
              f"{user}: {result.out!r}")
        holds(b"other-project" not in result.out and b".ssh" not in result.out and b"bob" not in result.out,
              f"{user}: {result.out!r}")
    result = lab.run(["/bin/cat", f"{ROOT.home}/.ssh/id_ed25519"], ROOT)
    equal(result.out, b"PRIVATE-KEY", "outside they are what they were")


@test(needs="bus")
def state_of_the_agent_is_kept(lab):
    """What is of the account is the real one for claude; what is of the project is there the next time."""
    for user in BOTH:
        lab.install_agent(user, "claude", "/bin/bash")
        machine.write(f"{user.home}/.claude/commands/x", '{"kept": 1}', 0o600, user)
        machine.write(f"{user.home}/agent.sh", "", 0o644, user)
        machine.write(f"{lab.workspace(user)}/agent.sh",
                      "cat ~/.claude/commands/x; echo session > ~/.claude/commands/new; ls ~/.local/bin/claude\n", 0o644, user)
        machine.write(f"{user.home}/.local/bin/claude", "#!/bin/bash\nexec /bin/bash \"$@\"\n", 0o755, user)
        result = lab.run([CLAUDE, "agent.sh"], user).ok()
        equal(result.out.decode(), '{"kept": 1}' + f"{user.home}/.local/bin/claude\n", str(user))
        with open(f"{user.home}/.claude/commands/new", encoding="ascii") as f:
            equal(f.read(), "session\n", str(user))


@test(needs="bus")
def agent_itself_is_read_only(lab):
    for user in BOTH:
        machine.write(f"{user.home}/.local/bin/claude",
                      "#!/bin/bash\necho planted >> ~/.local/bin/claude && echo wrote\n"
                      "rm -f ~/.local/bin/claude && echo removed\necho tried\n",
                      0o755, user)
        result = lab.run([CLAUDE], user)
        equal((result.status, result.out), (0, b"tried\n"), f"{user}: {result!r}")
        with open(f"{user.home}/.local/bin/claude", encoding="ascii") as f:
            holds("\nplanted" not in f.read(), str(user))


@test(needs="bus")
def system_bus_is_not_inside(lab):
    for user in BOTH:
        result = lab.shell(f"{PROBE} connect /run/dbus/system_bus_socket; {PROBE} connect /var/run/dbus/system_bus_socket; "
                           "ls -A /run /run/dbus 2>/dev/null", user)
        equal(result.out.split(b"\n")[:2], [b"refused:ENOENT"] * 2, f"{user}: {result!r}")
        holds(b"dbus" not in result.out and b"lab" not in result.out, f"{user}: {result.out!r}")
        result = lab.run([machine.PROBE, "connect", "/run/dbus/system_bus_socket"], user)
        equal(result.out, b"connected\n", "outside it answers")


@test(needs="bus")
def listening_sockets_are_covered(lab):
    """A socket of a service that this uid could open, outside /run."""
    for path in ("/var/tmp/service.sock", "/opt/engine.sock"):
        with socket.socket(socket.AF_UNIX) as listener:
            if os.path.lexists(path):
                os.unlink(path)
            listener.bind(path)
            try:
                os.chmod(path, 0o777)
                listener.listen(5)
                for user in BOTH:
                    equal(lab.run([PROBE, "connect", path], user).out, b"connected\n", "outside it answers")
                    result = lab.shell(f"{PROBE} connect {path}", user)
                    holds(b"refused" in result.out, f"{user}: {path}: {result!r}")
            finally:
                os.unlink(path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0lab-abstract")
        listener.listen(1)
        script = "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0lab-abstract\")' " \
                 "2>/dev/null && echo connected; true"
        for user in BOTH:
            equal(lab.shell(script, user).ok().out, b"", f"{user}: an abstract socket")


@test(needs="bus")
def processes_of_others_are_not_there(lab):
    for user in BOTH:
        result = lab.shell("ps -e -o pid= -o args=; echo; kill -0 1 && echo init; readlink /proc/self/ns/pid", user).ok()
        listing = result.out.decode()
        holds("dbus-daemon" not in listing and "server.py" not in listing, f"{user}: {listing}")
        holds(len(listing.splitlines()) < 10, f"{user}: {listing}")


@test(needs="bus")
def privileges_are_gone(lab):
    for user in BOTH:
        result = lab.shell("grep -E '^(CapEff|CapPrm|CapInh|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status", user).ok()
        values = dict(line.split(":\t") for line in result.out.decode().splitlines())
        equal(values, {"CapEff": "0" * 16, "CapPrm": "0" * 16, "CapInh": "0" * 16, "CapAmb": "0" * 16, "NoNewPrivs": "1",
                       "Seccomp": "2"}, str(user))


@test(needs="bus")
def groups_that_are_root_are_dropped(lab):
    outside = lab.run(["/usr/bin/id", "-G"], BOB).out.split()
    holds(b"4100" in outside, "bob is in docker outside")
    result = lab.shell("cat /proc/self/status | grep ^Groups", BOB).ok()
    holds(b"4100" not in result.out, result.out)


@test(needs="bus")
def nested_bwrap_works_for_an_ordinary_user(lab):
    script = "bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp echo nested"
    equal(lab.shell(script, ALICE).ok().out, b"nested\n")
    result = lab.shell(script, ROOT)
    holds(result.status != 0 and b"nested" not in result.out, f"root's sessions refuse namespaces: {result!r}")


@test(needs="bus")
def git_knows_the_person(lab):
    awkward = 'A "quoted" #name; \\ with\ttab'
    for user in BOTH:
        workspace = lab.workspace(user, "repository")
        for words in (["init", "-q", workspace], ["config", "--global", "user.name", awkward],
                      ["config", "--global", "user.email", "person@example.org"],
                      ["config", "--global", "credential.helper", "store"]):
            lab.run(["/usr/bin/git", *words], user, cwd=workspace).ok()
        result = lab.shell("git config user.name; git config user.email; git config --get-all credential.helper; "
                           "git status --porcelain; touch /etc/claude-gitconfig 2>/dev/null && echo writable; true",
                           user, cwd=workspace).ok()
        lines = result.out.decode().split("\n")
        equal(lines[:2], [awkward, "person@example.org"], str(user))
        holds("store" not in lines and "writable" not in lines, f"{user}: {lines}")


@test(60, needs="bus")
def git_worktrees_work(lab):
    """The common git directory of a linked worktree is there too."""
    main = lab.workspace(ALICE, "main-tree")
    linked = f"{ALICE.home}/linked-tree"
    for words in (["init", "-q"], ["config", "user.name", "x"], ["config", "user.email", "x@example.org"],
                  ["commit", "-q", "--allow-empty", "-m", "first"], ["worktree", "add", "-q", linked]):
        lab.run(["/usr/bin/git", *words], ALICE, cwd=main).ok()
    result = lab.shell("git status --porcelain && git commit -q --allow-empty -m inside && git log --format=%s", ALICE,
                       cwd=linked)
    equal(result.ok().out, b"inside\nfirst\n")


def listing(directory):
    found = {}
    for path, directories, names in os.walk(directory):
        for name in directories + names:
            full = os.path.join(path, name)
            status = os.lstat(full)
            found[full] = (status.st_mode, status.st_uid, status.st_size if not os.path.isdir(full) else 0)
    return found


@test(60, needs="bus")
def sessions_leave_no_trace(lab):
    for user in BOTH:
        lab.install_agent(user)
        lab.run([CLAUDE, "exit", "0"], user).ok()
        workspace = lab.workspace(user, "repository-clean")
        lab.run(["/usr/bin/git", "init", "-q"], user, cwd=workspace)
        wait_for(lambda: not lab.sessions(), "the service has put the sessions' directories away")
        before = listing(user.home), listing("/etc"), listing("/run"), listing("/var/tmp")
        lab.run([CLAUDE, "exit", "0"], user, cwd=workspace).ok()
        lab.shell("true", user, cwd=workspace).ok()
        wait_for(lambda: not lab.sessions(), "the service has put the sessions' directories away")
        after = listing(user.home), listing("/etc"), listing("/run"), listing("/var/tmp")
        # what the sessions keep for a project is theirs, and no agent's directory
        own = ("/var/tmp/claude-agent", "/run/lab", f"{user.home}/.local/state/claude-sandbox")
        for old, new in zip(before, after):
            new = {path: value for path, value in new.items() if not path.startswith(own)}
            equal({path: value for path, value in new.items() if old.get(path) != value}, {}, f"{user}: new or changed")
            equal([path for path in old if path not in new and not path.startswith(own)],
                  [], f"{user}: gone")


@test(needs="bus")
def allow_write_opens_one_directory(lab):
    for user in BOTH:
        shared = "/srv/shared"
        os.makedirs(shared, exist_ok=True)
        os.chmod(shared, 0o1777)
        equal(lab.shell(f"touch {shared}/x 2>/dev/null && echo wrote; true", user).ok().out, b"", str(user))
        lab.configure(f"allow-write = {shared}\n")
        equal(lab.shell(f"touch {shared}/{user} && echo wrote", user).ok().out, b"wrote\n", str(user))
        holds(os.path.exists(f"{shared}/{user}"), "it came out")
        lab.restore()


@test(needs="bus")
def pass_env_forwards_a_name(lab):
    lab.configure("pass-env = FOO SECRET_TOKEN\n")
    found = environment(lab, ALICE, FOO="b\\ar", SECRET_TOKEN="x y", OTHER="no")
    equal((found.get("FOO"), found.get("SECRET_TOKEN"), found.get("OTHER")), ("b\\5car", "x y", None))


@test(needs="bus")
def console_is_the_terminal(lab):
    """`tty` names a terminal even when stdout is a pipe."""
    read, write = os.pipe()
    with lab.terminal(["/usr/local/bin/claude-sandbox", "shell", "-c", "tty"], redirect={1: write}) as terminal:
        os.close(write)
        equal(terminal.wait(), 0)
        out = os.read(read, 100)
        os.close(read)
    holds(out.startswith(b"/dev/"), repr(out))
