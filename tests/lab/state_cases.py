# SPDX-License-Identifier: MIT
"""What an agent saves outlives its session, comes out, comes back, and nothing else is left on the host."""

import errno
import json
import os
import shutil
import signal
import subprocess

import case
import machine
from case import CLAUDE, SANDBOX, equal, holds, test, wait_for
from machine import ALICE, ROOT

BOTH = (ALICE, ROOT)

# Claude's own way to save: a directory as lock, a file beside, a rename.
AGENT = """#!/usr/bin/python3
import json, os, signal, sys, time
arguments = sys.argv[1:]
config = os.environ.get("CLAUDE_CONFIG_DIR") or os.environ["HOME"]
path = os.path.join(config, ".claude.json")

def load():
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return {}

def save(change, where=path):
    while True:
        try:
            os.mkdir(where + ".lock")
            break
        except FileExistsError:
            os.sched_yield()
    try:
        state = load()
        change(state)
        beside = f"{where}.tmp.{os.getpid()}"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, json.dumps(state, indent=2).encode())
        os.close(descriptor)
        os.rename(beside, where)
    finally:
        os.rmdir(where + ".lock")

exec(arguments[0])
"""


def install(user):
    machine.write(f"{user.home}/.local/bin/claude", AGENT, 0o755, user)


def host(user):
    try:
        with open(f"{user.home}/.claude.json", encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def forget(user):
    try:
        os.unlink(f"{user.home}/.claude.json")
    except FileNotFoundError:
        pass
    shutil.rmtree(f"{user.home}/.local/state/claude-sandbox/projects", ignore_errors=True)


def prepare(user):
    install(user)
    forget(user)


def put(user, text):
    machine.write(f"{user.home}/.claude.json", text, 0o600, user)


def ok(result):
    """The agent's own success, and no word of ours."""
    holds(result.status == 0 and result.err == b"", f"{result!r}")
    return result


@test(needs="bus")
def state_comes_in_and_out(lab):
    for user in BOTH:
        prepare(user)
        put(user, '{"a": 1, "n": 12345678901234567890.5}')
        result = ok(lab.run([CLAUDE, "print(open(path).read()); save(lambda s: s.update(b=2))"], user))
        equal(result.out, b'{"a": 1, "n": 12345678901234567890.5}\n', str(user))
        equal(host(user)["b"], 2, str(user))
        found = os.stat(f"{user.home}/.claude.json")
        equal((found.st_mode & 0o7777, found.st_uid), (0o600, user.uid), str(user))
        result = ok(lab.run([CLAUDE, "print(load()['b'])"], user))
        equal(result.out, b"2\n", str(user))
        # The person's own change wins against what an agent did to the same key, and only there.
        state = host(user)
        state.update(a=7, b=3)
        put(user, json.dumps(state))
        result = ok(lab.run([CLAUDE, "print(load()['a'], load()['b'])"], user))
        equal(result.out, b"7 3\n", str(user))


@test(needs="bus")
def state_is_published_while_the_agent_runs(lab):
    prepare(ALICE)
    agent = lab.start([CLAUDE, "save(lambda s: s.update(early=1)); sys.stdin.read(1); save(lambda s: s.update(late=1))"],
                      ALICE, stdin=subprocess.PIPE)
    wait_for(lambda: host(ALICE) == {"early": 1}, "the first save is outside")
    # A program outside changes its file meanwhile: merged with the next save.
    put(ALICE, '{"early": 1, "outside": 1}')
    agent.communicate(b"x", timeout=20)
    equal((agent.returncode, host(ALICE)), (0, {"early": 1, "outside": 1, "late": 1}))
    with open(f"{machine.project_state(ALICE, '.claude')}/.claude.json", encoding="utf-8") as f:
        equal(json.load(f), host(ALICE))


@test(needs="bus", deadline=60)
def two_sessions_lose_nothing(lab):
    prepare(ALICE)
    script = "for i in range(100): save(lambda s: s.update({sys.argv[-1] + str(i): i}))"
    agents = [lab.start([CLAUDE, script, name], ALICE) for name in ("x", "y")]
    for agent in agents:
        equal(agent.wait(timeout=50), 0)
    equal(set(host(ALICE)), {name + str(i) for name in "xy" for i in range(100)})


@test(needs="bus")
def link_of_the_persons_is_kept(lab):
    prepare(ALICE)
    os.makedirs(f"{ALICE.home}/own-dotfiles", exist_ok=True)
    os.chown(f"{ALICE.home}/own-dotfiles", ALICE.uid, ALICE.gid)
    machine.write(f"{ALICE.home}/own-dotfiles/claude.json", '{"a": 1}', 0o600, ALICE)
    os.symlink("own-dotfiles/claude.json", f"{ALICE.home}/.claude.json")
    ok(lab.run([CLAUDE, "save(lambda s: s.update(b=2))"], ALICE))
    equal(os.readlink(f"{ALICE.home}/.claude.json"), "own-dotfiles/claude.json")
    equal(host(ALICE), {"a": 1, "b": 2})
    equal(os.listdir(f"{ALICE.home}/own-dotfiles"), ["claude.json"])


@test(60, needs="bus")
def link_to_a_place_outside_the_homes_is_kept(lab):
    """What it leads to is hidden itself, and the session's own saves replace that file."""
    for user in BOTH:
        prepare(user)
        place = f"/srv/dotfiles-{user.uid}"
        machine.write(f"{place}/claude.json", '{"a": 0}', 0o600, user)
        os.chown(place, user.uid, user.gid)
        os.symlink(f"{place}/claude.json", f"{user.home}/.claude.json")
        lab.undo.append(lambda user=user: forget(user))
        script = f"""
for line in sys.stdin:
    save(lambda s: s.update(a=int(line)))
assert open("{place}/claude.json").read() == ""     # what the mask shows
sys.exit(7)"""
        with lab.start([CLAUDE, script], user, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as agent:
            for n in range(1, 6):
                agent.stdin.write(b"%d\n" % n)
                agent.stdin.flush()
                wait_for(lambda n=n: agent.poll() is not None or host(user) == {"a": n}, f"{user}: {n} is saved")
            _, err = agent.communicate(timeout=20)
        equal((agent.returncode, err), (7, b""), str(user))
        equal(os.readlink(f"{user.home}/.claude.json"), f"{place}/claude.json")
        equal((host(user), os.listdir(place)), ({"a": 5}, ["claude.json"]), str(user))


@test(needs="bus")
def what_replaces_the_link_inside_is_kept(lab):
    for user in BOTH:
        prepare(user)
        put(user, '{"a": 1}')
        script = """
home = os.environ["HOME"]
def replace(n):
    with open(home + "/.claude.json.new", "w") as f: json.dump({"a": n}, f)
    os.rename(home + "/.claude.json.new", home + "/.claude.json")
assert os.readlink(home + "/.claude.json") == ".claude/.claude.json"
replace(2)
end = time.monotonic() + 10
while not os.path.islink(home + "/.claude.json"): assert time.monotonic() < end
assert load() == {"a": 2}
replace(3)"""
        ok(lab.run([CLAUDE, script], user))
        equal(host(user), {"a": 3}, str(user))


# Ends at once, in one of three ways.
LAST_SAVE = """#!/bin/sh
[ $# = 2 ] || shift
echo "{\\"n\\": $1}" > ~/.claude.json.tmp
mv ~/.claude.json.tmp ~/.claude.json
[ "$2" = exit ] || kill -"$2" $$
"""


@test(needs="bus", deadline=1800 if case.LONG else 120)
def the_last_save_is_kept(lab):
    """What replaced the link is taken when the jail's mounts are gone: every time, whatever the agent's end."""
    prepare(ALICE)
    machine.write(f"{ALICE.home}/.local/bin/claude", LAST_SAVE, 0o755, ALICE)
    ends = {"exit": 0, "TERM": -signal.SIGTERM, "KILL": -signal.SIGKILL}
    for n in range(1000 if case.LONG else 45):
        end = list(ends)[n % len(ends)]
        result = lab.run([CLAUDE, str(n), end], ALICE)
        equal((result.status, host(ALICE)), (ends[end], {"n": n}), f"{n}, {end}: {result!r}")


@test(needs="bus", deadline=120)
def the_last_save_is_kept_by_a_session_that_sleeps(lab):
    """The session finds everything at once: a signal, the save, the agent's end, init's report of it, the end of the jail."""
    prepare(ALICE)
    machine.write(f"{ALICE.home}/.local/bin/claude", LAST_SAVE.replace("echo", "read x; echo", 1), 0o755, ALICE)
    for n in range(10):
        agent = lab.start([CLAUDE, str(n), "exit"], ALICE, stdin=subprocess.PIPE)
        wait_for(lambda: lab.states() == ["running"], "it runs")
        pid = session_pid()
        children = open(f"/proc/{pid}/task/{pid}/children", encoding="ascii").read().split()
        jail = [child for child in children if os.readlink(f"/proc/{child}/exe").endswith("/bwrap")]
        equal(len(jail), 1, "one jail")
        os.kill(pid, signal.SIGSTOP)
        try:
            # Of three that are due at once the loop takes the last before the second.
            agent.send_signal(signal.SIGUSR1)
            agent.stdin.write(b"x\n")
            agent.stdin.flush()
            wait_for(lambda: open(f"/proc/{jail[0]}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()[0] == "Z",
                     "the jail has ended")
        finally:
            os.kill(pid, signal.SIGCONT)
        equal((agent.wait(20), host(ALICE)), (0, {"n": n}), str(n))
        wait_for(lambda: not lab.sessions(), "it is gone")


SPOILS = {
    "text": "open(path, 'w').write('{')",
    "nothing": "open(path, 'w').write(chr(0) * 64)",
    "size": "open(path, 'w').truncate(1 << 30)",
    "depth": "open(path, 'w').write('{\"a\":' + '[' * 1000000 + ']' * 1000000 + '}')",
    "fifo": "os.unlink(path); os.mkfifo(path)",
    "directory": "os.unlink(path); os.mkdir(path)",
    "link": "os.unlink(path); os.symlink('/etc/passwd', path)",
}


@test(needs="bus", deadline=60)
def what_is_no_state_never_comes_out(lab):
    prepare(ALICE)
    put(ALICE, '{"a": 1}')
    for name, spoil in SPOILS.items():
        before = os.stat(f"{ALICE.home}/.claude.json")
        result = lab.run([CLAUDE, spoil], ALICE)
        holds(result.status == 0 and b"is not brought to" in result.err and result.err.count(b"\n") == 1, f"{name}: {result!r}")
        after = os.stat(f"{ALICE.home}/.claude.json")
        equal((before.st_ino, before.st_mtime_ns), (after.st_ino, after.st_mtime_ns), name)
        if name != "link":
            result = ok(lab.run([CLAUDE, "print(load())"], ALICE))
            equal(result.out, b"{'a': 1}\n", name)


@test(needs="bus")
def what_cannot_be_brought_out_is_told_and_kept(lab):
    """No right to write there, no space, nothing to be noticed by: told once; the next session brings it out."""
    prepare(ALICE)
    put(ALICE, '{"a": 1}')
    ok(lab.run([CLAUDE, "pass"], ALICE))
    lab.mode(ALICE.home, 0o555)
    result = lab.run([CLAUDE, "save(lambda s: s.update(b=2))"], ALICE)
    holds(result.status == 0 and b"not brought together: Permission denied" in result.err and result.err.count(b"\n") == 1,
          f"{result!r}")
    equal(host(ALICE), {"a": 1})
    lab.restore()
    ok(lab.run([CLAUDE, "pass"], ALICE))
    equal(host(ALICE), {"a": 1, "b": 2})


@test(needs="bus")
def failing_calls_lose_nothing(lab):
    """Each alone, in the session and what it starts: an error or a warning at most; the next session brings it out."""
    for call, number in (("renameat2", errno.ENOSPC), ("fsync", errno.EIO), ("renameat2", errno.EINVAL), ("flock", errno.ENOLCK),
                         ("inotify_init1", errno.EMFILE), ("symlinkat", errno.ENOSPC)):
        prepare(ALICE)
        put(ALICE, '{"a": 1}')
        ok(lab.run([CLAUDE, "pass"], ALICE))
        lab.wrap("/usr/libexec/claude-sandbox/session", f"fail {call} {number}")
        result = lab.run([CLAUDE, "save(lambda s: s.update(b=2))"], ALICE)
        lab.restore()
        saved = "b" in json.load(open(f"{machine.project_state(ALICE, '.claude')}/.claude.json", encoding="utf-8"))
        holds(saved == (result.status == 0), f"{call}: {result!r}")
        holds((host(ALICE) == {"a": 1, "b": 2}) or result.err, f"{call}: {result!r}, {host(ALICE)}")
        ok(lab.run([CLAUDE, "pass"], ALICE))
        equal(host(ALICE), {"a": 1, "b": 2} if saved else {"a": 1}, call)


@test(needs="bus", deadline=60)
def a_storm_of_saves_costs_little(lab):
    """What an agent does ten thousand times a second its session does four times at most."""
    prepare(ALICE)
    put(ALICE, '{"a": 1}')
    script = """
text = json.dumps({"fill": "x" * 1000000}).encode()
end = time.monotonic() + 3
n = 0
while time.monotonic() < end:
    with open(path + ".new", "wb") as f: f.write(text)
    os.rename(path + ".new", path)
    n += 1
save(lambda s: s.update(last=n))
sys.stdin.read(1)"""
    agent = lab.start([CLAUDE, script], ALICE, stdin=subprocess.PIPE)
    wait_for(lambda: lab.sessions(), "the session is there")
    versions = set()

    def is_last():
        versions.add(os.stat(f"{ALICE.home}/.claude.json").st_ino)
        return "last" in host(ALICE)

    wait_for(is_last, "the last save is outside", 30)
    pid = session_pid()
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    # utime, stime, and those of its children (proc(5)), in hundredths of a second
    spent = sum(int(field) for field in fields[11:15])
    agent.communicate(b"x", timeout=20)
    holds(host(ALICE)["last"] > 100, f"only {host(ALICE)['last']} saves")
    holds(spent < 100, f"the session spent {spent / 100} s")
    # Three seconds, and what the last one waits for; some inodes come again.
    holds(1 < len(versions) <= 20, f"{len(versions)} versions")


def session_pid():
    """The oldest: a session that keeps state has children of the same program."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/exe").endswith("/claude-sandbox/session"):
                found.append(int(name))
        except OSError:
            pass
    return min(found)


@test(needs="bus")
def killed_session_loses_nothing(lab):
    prepare(ALICE)
    put(ALICE, '{"a": 1}')
    agent = lab.start([CLAUDE, "save(lambda s: s.update(b=2)); signal.pause()"], ALICE, stderr=subprocess.DEVNULL)

    def is_saved():
        path = f"{machine.project_state(ALICE, '.claude')}/.claude.json"
        return os.path.exists(path) and "b" in open(path, encoding="utf-8").read()

    wait_for(is_saved, "the save is made")
    os.kill(session_pid(), signal.SIGKILL)
    agent.wait(timeout=20)
    wait_for(lambda: not lab.sessions(), "the session is gone")
    ok(lab.run([CLAUDE, "pass"], ALICE))
    equal(host(ALICE), {"a": 1, "b": 2})


# ---- no trace ----

def listing(top, skip=()):
    """Every name below top with all that stat(2) says of it but the time of its last reading."""
    found = {}
    for directory, names, files in os.walk(top):
        for name in [".", *names, *files]:
            path = os.path.normpath(os.path.join(directory, name))
            relative = os.path.relpath(path, top)
            if any(relative == one or relative.startswith(one + "/") for one in skip):
                continue
            st = os.lstat(path)
            found[path] = (st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_nlink, st.st_size, st.st_mtime_ns, st.st_ctime_ns)
    return found


# In these, something stands while a session runs, for what is mounted there: their own times change.
TIMES = (".local/share/uv", "linked/tools")


def without_times(found, home):
    return {path: stat[:6] if any(path == f"{home}/{name}" for name in TIMES) else stat for path, stat in found.items()}


def profiles():
    return [name for name in ("claude", "codex", "pi") if os.path.exists(f"/usr/local/bin/{name}")] + ["shell"]


def git(user, *words):
    command = ["/usr/bin/git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, user=user.uid, group=user.gid, extra_groups=[],
                             env={"HOME": user.home, "PATH": "/usr/bin:/bin"}, cwd="/")
    return process.stdout


def places_of(user):
    """A repository with a work tree elsewhere, a directory in it that stands ahead on PATH, and a home in use."""
    for name in (".claude/settings.json", ".codex/config.toml", ".pi/agent/settings.json", ".cache/x", ".local/share/uv/x",
                 ".config/gh/hosts.yml", ".agents/skills/x", "bin/x"):
        machine.write(f"{user.home}/{name}", "{}" if name.endswith(".json") else "", 0o600, user)
    machine.write(f"{user.home}/.claude.json", '{"a": 1}', 0o600, user)
    if not os.path.exists(f"{user.home}/linked"):
        git(user, "init", "-q", f"{user.home}/repository")
        git(user, "-C", f"{user.home}/repository", "commit", "-q", "--allow-empty", "-m", "x")
        git(user, "-C", f"{user.home}/repository", "worktree", "add", "-q", f"{user.home}/linked")
        machine.write(f"{user.home}/linked/tools/x", "", 0o755, user)
    return f"{user.home}/linked"


@test(needs="bus", deadline=120)
def idle_session_leaves_no_trace(lab):
    for user in BOTH:
        workspace = places_of(user)
        environment = lab.environment(user, PATH=f"{workspace}/tools:{user.home}/bin:/usr/local/bin:/usr/bin:/bin")
        skipped = {user.home: (".local/state/claude-sandbox",)}

        def look():
            found = {}
            for place in (user.home, "/usr/local/bin", f"/var/tmp/claude-agent/{user.uid}", "/etc"):
                found.update(without_times(listing(place, skipped.get(place, ())), user.home))
            return found

        for profile in profiles():
            command = [SANDBOX, "shell", "-c", "true"] if profile == "shell" else [f"/usr/local/bin/{profile}", "true"]
            if profile != "shell":
                lab.install_agent(user, profile, "/bin/true")
            ok(lab.run(command, user, cwd=workspace, env=environment))
            wait_for(lambda: not lab.sessions(), "that session is gone")
            status = git(user, "-C", workspace, "status", "--porcelain", "--ignored")
            before = look()
            ok(lab.run(command, user, cwd=workspace, env=environment))
            wait_for(lambda: not lab.sessions(), "the session is gone")
            after = look()
            changed = {path: (before.get(path), after.get(path)) for path in before.keys() | after.keys()
                       if before.get(path) != after.get(path)}
            holds(not changed, f"{user}, {profile}: {changed}")
            equal(git(user, "-C", workspace, "status", "--porcelain", "--ignored"), status, f"{user}, {profile}")
