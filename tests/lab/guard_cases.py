# SPDX-License-Identifier: MIT
"""The entry-point guard: what an agent may write ahead of /usr/local/bin on PATH holds no `claude` of its own."""

import os
import signal
import subprocess

import machine
from bus_cases import Held, answer
from case import CLAUDE, SANDBOX, equal, holds, processes, test, wait_for
from hostile_cases import own
from machine import ALICE, ROOT
from view_cases import environment, listing

BOTH = (ALICE, ROOT)
NAMES = ("claude", "codex", "pi", "claude-sandbox", "claude-sandbox-tui")
REST = "/usr/local/bin:/usr/bin:/bin"

# Inside: every way to put a program at a guarded name. It prints what worked.
ATTACKS = """
import ctypes, os, sys
directory, top = sys.argv[1:3]
libc = ctypes.CDLL(None, use_errno=True)
evil = directory + "/evil"
with open(evil, "w") as f:
    f.write("#!/bin/sh\\necho PLANTED\\n")
os.chmod(evil, 0o755)
def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
def attempt(what, function, *arguments):
    try:
        function(*arguments)
    except OSError:
        return
    print("did", what, arguments)
def exchange(one, other):
    call("renameat2", -100, one.encode(), -100, other.encode(), 2)
def unnamed(name):
    fd = os.open(directory, os.O_RDWR | os.O_TMPFILE, 0o755)
    os.write(fd, b"#!/bin/sh\\n")
    call("linkat", -100, b"/proc/self/fd/%d" % fd, -100, name.encode(), 0x400)
def overwrite(name):
    with open(name, "w") as f:
        f.write("#!/bin/sh\\n")
for n in sys.argv[3:]:
    name = directory + "/" + n
    for mode in (os.R_OK, os.W_OK, os.X_OK):
        attempt("open", os.open, name, {os.R_OK: os.O_RDONLY, os.W_OK: os.O_WRONLY, os.X_OK: os.O_RDWR | os.O_TRUNC}[mode])
    attempt("unlink", os.unlink, name)
    attempt("rename away", os.rename, name, name + ".away")
    attempt("rename over", os.rename, evil, name)
    attempt("exchange", exchange, evil, name)
    attempt("exchange", exchange, name, evil)
    attempt("link", os.link, evil, name)
    attempt("link of it", os.link, name, name + ".linked")
    attempt("link", os.symlink, evil, name)
    attempt("unnamed", unnamed, name)
    attempt("overwrite", overwrite, name)
    attempt("mode", os.chmod, name, 0o755)
    attempt("mkdir", os.mkdir, name)
    attempt("mknod", os.mknod, name)
    attempt("truncate", os.truncate, name, 0)
    attempt("umount", call, "umount2", name.encode(), 2)
    attempt("mount", call, "mount", evil.encode(), name.encode(), None, 4096, None)
part = directory
while part != os.path.dirname(top):
    os.makedirs(top + "/other", exist_ok=True)
    attempt("rename", os.rename, part, part + ".away")
    attempt("rename", os.rename, part, top + "/other/away")
    attempt("rename over", os.rename, top + "/other", part)
    attempt("exchange", exchange, part, top + "/other")
    attempt("rmdir", os.rmdir, part)
    attempt("umount", call, "umount2", part.encode(), 2)
    part = os.path.dirname(part)
os.rmdir(top + "/other")
# by descriptors, from a mount namespace that has none of these mounts
inner, outer = os.open(directory, os.O_RDONLY), os.open(os.path.dirname(directory), os.O_RDONLY)
uid, gid = os.getuid(), os.getgid()
try:
    call("unshare", 0x10000000 | 0x20000)
    for path, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{path}", "w") as f:
            f.write(text)
    os.mkdir("/tmp/new")
    call("mount", b"none", b"/tmp/new", b"tmpfs", 0, None)
    os.mkdir("/tmp/new/old")
    call("pivot_root", b"/tmp/new", b"/tmp/new/old") if hasattr(libc, "pivot_root") else libc.syscall(155, b"/tmp/new", b"/tmp/new/old")
    os.chdir("/")
    call("umount2", b"/old", 2)
    print("elsewhere")
except OSError:
    pass
for n in sys.argv[3:]:
    attempt("unlink from elsewhere", lambda: os.unlink(n, dir_fd=inner))
attempt("rename from elsewhere",
        lambda: os.rename(os.path.basename(directory), "away", src_dir_fd=outer, dst_dir_fd=outer))
os.unlink("evil", dir_fd=inner)
print("tried", flush=True)
"""


def tried(user):
    """What the attempts print when none succeeds; only an ordinary user gets as far as namespaces."""
    return b"tried\n" if user is ROOT else b"elsewhere\ntried\n"


def path_of(*directories):
    return ":".join([*directories, REST])


def attack(lab, user, directory, top, **options):
    return lab.shell('exec /usr/bin/python3 -c "$0" "$@"', user, arguments=(ATTACKS, directory, top, *NAMES), limit=30,
                     env=lab.environment(user, PATH=path_of(directory)), **options)


def refused(lab, user, path, *words, **options):
    """No session begins, and the line names the cause."""
    return lab.shell("echo ran", user, env=lab.environment(user, PATH=path), **options).refused(125, *words)


@test(120, needs="bus")
def nothing_is_planted_ahead_on_path(lab):
    for user in BOTH:
        top = lab.workspace(user, "guarded")
        own(user, f"{top}/tools", f"{top}/tools/bin")
        machine.write(f"{top}/tools/bin/tool", "#!/bin/sh\necho tool\n", 0o755, user)
        for words in (["init", "-q"], ["add", "."], ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x"]):
            lab.run(["/usr/bin/git", *words], user, cwd=top).ok()
        before = listing(top)
        result = attack(lab, user, f"{top}/tools/bin", top, cwd=top)
        equal((result.status, result.out), (0, tried(user)), f"{user}: {result!r}")
        wait_for(lambda: not lab.sessions(), "the session is gone")
        after = {path: value for path, value in listing(top).items() if "/.git" not in path}
        equal(after, {path: value for path, value in before.items() if "/.git" not in path}, str(user))
        equal(lab.run(["/usr/bin/git", "status", "--porcelain"], user, cwd=top).ok().out, b"", str(user))
        # the directory can be used as before
        script = f"{top}/tools/bin/tool && touch {top}/tools/bin/new && mv {top}/tools/bin/new {top}/tools/new && rm {top}/tools/new"
        equal(lab.shell(script, user, cwd=top, env=lab.environment(user, PATH=path_of(f"{top}/tools/bin"))).ok().out,
              b"tool\n", str(user))


@test(60, needs="bus")
def the_shell_outside_finds_the_entry(lab):
    """While a session runs, and after it; what stands there is no program."""
    for user in BOTH:
        top = lab.workspace(user, "found")
        own(user, f"{top}/bin")
        env = lab.environment(user, PATH=path_of(f"{top}/bin"))
        with Held(lab, user, cwd=top, env=env) as held:
            equal(sorted(os.listdir(f"{top}/bin")), sorted(NAMES), str(user))
            status = os.lstat(f"{top}/bin/claude")
            equal((status.st_mode, status.st_uid, status.st_nlink), (0o100444, user.uid, 1), str(user))
            equal(lab.run(["/bin/sh", "-c", "command -v claude"], user, env=env).ok().out, CLAUDE.encode() + b"\n", str(user))
            variables = answer(lab.call("ListEnvironment", user=user, interface="org.claudesandbox1.Session", path=held.path))
            equal(variables[0][-1][0], "CLAUDE_SANDBOX_ENTRY_GUARD", str(user))
            posture = dict(row[:2] for row in answer(lab.run(
                ["/usr/bin/busctl", "--system", "--json=short", "get-property", "org.claudesandbox1", held.path,
                 "org.claudesandbox1.Session", "Posture"], user)))
            equal((posture["entry-point guard"], posture["nested sandboxes"]), ("on", "off" if user is ROOT else "on"), str(user))
            equal(held.end(), 3)
        wait_for(lambda: not lab.sessions() and not os.listdir(f"{top}/bin"), "the names are free again")
        if user is ROOT:
            lab.install_agent(user)
            result = lab.run([CLAUDE, "environment"], user, env=lab.environment(user, PATH=path_of(f"{top}/bin")))
            holds(b"CLAUDE_SANDBOX_ENTRY_GUARD=\n" in result.warned("of your PATH").out, f"not in this workspace: {result!r}")


@test(60, needs="bus")
def entries_that_no_guard_holds_refuse(lab):
    for user in BOTH:
        top = lab.workspace(user, "refused")
        own(user, f"{top}/bin", f"{top}/real")
        start = listing(top)
        for path, words in ((":" + REST, ("empty entry", "take it out")), (f"{REST.replace('/usr/local/bin:', '')}:", ("empty",)),
                            ("bin:" + REST, ("'bin'", "current directory")), (".:" + REST, ("'.'",)),
                            ("~/bin:" + REST, ("'~/bin'",)), ("node_modules/.bin:" + REST, ("'node_modules/.bin'",)),
                            (path_of(f"{top}/.venv/bin"), (f"{top}/.venv/bin", "does not exist", "create it")),
                            (path_of(f"{top}/bin/../missing"), ("does not exist",)),
                            (os.fsdecode(b"odd\xff\x1b[1m:") + REST, ("'odd\\xff\\x1b[1m'",)),
                            (path_of(f"{top}/" + os.fsdecode(b"odd\xff\n")), ("odd\\xff\\x0a",))):
            refused(lab, user, path, *words, cwd=top)
        os.symlink("real", f"{top}/link")
        os.lchown(f"{top}/link", user.uid, user.gid)
        refused(lab, user, path_of(f"{top}/link"), f"the link {top}/link", "name what the link leads to", cwd=top)
        os.unlink(f"{top}/link")
        equal(listing(top), start, f"{user}: nothing was left by the refusals")
        # behind /usr/local/bin all of that is nobody's business
        for path in (f"{REST}:", f"{REST}:.", f"{REST}:{top}/missing", f"{REST}:{top}/bin"):
            equal(lab.shell("echo ran", user, cwd=top, env=lab.environment(user, PATH=path)).ok().out, b"ran\n", path)


@test(60, needs="bus")
def what_is_planted_refuses_and_stays(lab):
    for user in BOTH:
        top = lab.workspace(user, "planted")
        own(user, f"{top}/bin")
        path = f"{top}/bin/claude"
        for make in (lambda: machine.write(path, "#!/bin/sh\n", 0o755, user), lambda: machine.write(path, "", 0o444, user),
                     lambda: os.symlink("/nowhere", path), lambda: os.mkdir(path), lambda: os.mkfifo(path)):
            make()
            os.lchown(path, user.uid, user.gid)
            before = os.lstat(path)
            refused(lab, user, path_of(f"{top}/bin"), f"{path} is there", "put /usr/local/bin first", cwd=top)
            after = os.lstat(path)
            equal((after.st_ino, after.st_mode, after.st_size), (before.st_ino, before.st_mode, before.st_size), str(user))
            equal(os.listdir(f"{top}/bin"), ["claude"], f"{user}: nothing else came")
            (os.rmdir if os.path.isdir(path) else os.unlink)(path)
        # not in a directory that no agent writes
        machine.write(path, "#!/bin/sh\n", 0o755, user)
        result = lab.shell("echo ran", user, env=lab.environment(user, PATH=path_of(f"{top}/bin")))
        equal(result.warned("1 directory of your PATH", f"allow-read = {top}/bin").out, b"ran\n")
        os.unlink(path)


@test(60, needs="bus")
def what_the_mode_forbids_needs_no_names(lab):
    """A directory of root's, or on a read-only mount, in the workspace; but one's own mode can be changed."""
    top = lab.workspace(ALICE, "forbidden")
    own(ALICE, f"{top}/loose", f"{top}/closed", f"{top}/mounted")
    os.makedirs(f"{top}/loose/roots", exist_ok=True)
    subprocess.run(["/bin/mount", "--bind", "-o", "ro", f"{top}/closed", f"{top}/mounted"], check=True)
    lab.undo.append(lambda: subprocess.run(["/bin/umount", f"{top}/mounted"], check=True))
    before = listing(top)
    script = """
import os, sys
for function, *arguments in ((os.mkdir, sys.argv[1] + "/claude"), *((os.rename, path, "away") for path in sys.argv[1:])):
    try:
        function(*arguments)
        print("did", arguments)
    except OSError:
        pass"""
    for directory, *above in (("loose/roots", "loose"), ("mounted",)):
        result = lab.shell('exec /usr/bin/python3 -c "$0" "$@"', arguments=(script, directory, *above), cwd=top,
                           env=lab.environment(ALICE, PATH=path_of(f"{top}/{directory}"))).ok()
        equal((result.out, listing(top)), (b"", before), directory)
    os.chmod(f"{top}/closed", 0o555)
    refused(lab, ALICE, path_of(f"{top}/closed"), f"{top}/closed/claude cannot be kept free", "Permission denied", cwd=top)


@test(60, needs="bus")
def directories_are_guarded_by_every_name(lab):
    """Through a link that no agent can change, and through a second mount."""
    for user in BOTH:
        top = lab.workspace(user, "twice-named")
        own(user, f"{top}/shims")
        link, second = f"/opt/shims-{user}", f"/opt/second-{user}"
        os.symlink(f"{top}/shims", link)
        os.makedirs(second, exist_ok=True)
        subprocess.run(["/bin/mount", "--bind", top, second], check=True)
        lab.undo += [lambda: os.unlink(link), lambda: subprocess.run(["/bin/umount", second], check=True)]
        for entry in (link, f"{second}/shims", f"{top}//./shims/", f"{top}/shims/../shims"):
            script = f"for n in claude pi; do echo x >{top}/shims/$n; rm -f {top}/shims/$n; mv {top}/shims {top}/away; done 2>/dev/null; " \
                     "echo $CLAUDE_SANDBOX_ENTRY_GUARD"
            result = lab.shell(script, user, cwd=top, env=lab.environment(user, PATH=path_of(entry)))
            # in root's sessions a link outside the system is followed by nobody
            if user is ROOT and entry == link:
                result.warned("of your PATH", link)
            else:
                result.ok()
            equal(result.out.decode(), f"{top}/shims\n", f"{user}: {entry}")
            wait_for(lambda: not lab.sessions(), "the session is gone")
            equal(os.listdir(top), ["shims"], str(user))
            equal(os.listdir(f"{top}/shims"), [], f"{user}: {entry}")
        # the sandbox's own directory by a link ends the list, whatever follows
        os.symlink("/usr/local/bin", f"/opt/own-{user}")
        lab.undo.append(lambda: os.unlink(f"/opt/own-{user}"))
        result = lab.shell("echo ran", user, cwd=top, env=lab.environment(user, PATH=f"/opt/own-{user}/:relative:{top}/missing"))
        equal((result.warned("of your PATH") if user is ROOT else result.ok()).out, b"ran\n", str(user))
        lab.restore()


@test(60, needs="bus")
def allow_write_is_guarded_too(lab):
    """Of a directory above; what is named a second time below it has no mount of its own and is writable all the same."""
    for user in BOTH:
        shared = f"/srv/guarded-{user}"
        own(user, shared, f"{shared}/a", f"{shared}/a/bin", f"{shared}/a/inner")
        lab.configure(f"allow-write = {shared}\nallow-write = {shared}/a/inner\n")
        result = attack(lab, user, f"{shared}/a/bin", shared)
        equal((result.status, result.out), (0, tried(user)), f"{user}: {result!r}")
        script = f"grep -c ' {shared}/a/inner ' /proc/self/mountinfo; touch {shared}/a/inner/x && mv {shared}/a/inner/x {shared}/x"
        result = lab.shell(script, user, env=lab.environment(user, PATH=path_of(f"{shared}/a/bin")))
        equal(result.out, b"0\n", f"{user}: {result!r}")
        holds(os.path.exists(f"{shared}/x"), f"{user}: written in the inner one")
        lab.restore()
        lab.configure(f"allow-write = {shared}/a/bin/claude\n")
        machine.write(f"{shared}/a/bin/claude", "", 0o644, user)
        refused(lab, user, path_of(f"{shared}/a/bin"), f"agents may write {shared}/a/bin/claude")
        lab.restore()
        lab.configure("allow-write = /\n")
        refused(lab, user, path_of(f"{shared}/a/bin"), "allow-write", "the whole jail")
        lab.restore()


@test(60, needs="bus")
def sessions_share_a_placeholder(lab):
    """The first to end leaves it to the other, whose mount would go with it."""
    top = lab.workspace(ALICE, "shared-guard")
    own(ALICE, f"{top}/bin")
    env = lab.environment(ALICE, PATH=path_of(f"{top}/bin"))
    look = f"echo ready; read x; rm -f {top}/bin/claude 2>/dev/null || echo kept; exit 3"
    with Held(lab, cwd=top, env=env) as first, Held(lab, cwd=top, env=env, script=look) as second:
        equal(first.end(), 3)
        wait_for(lambda: lab.sessions() == [second.id], "the first is gone")
        equal(sorted(os.listdir(f"{top}/bin")), sorted(NAMES))
        second.process.stdin.close()
        equal((second.process.stdout.read(), second.process.wait(10)), (b"kept\n", 3))
        equal(second.process.stderr.read(), b"")
    wait_for(lambda: not os.listdir(f"{top}/bin"), "the last one removes them")


def session_process():
    found = [pid for pid, text in processes().items() if text.endswith("/session")]
    equal(len(found), 1, "one session")
    return found[0]


@test(60, needs="bus")
def next_launch_sweeps_what_a_kill_left(lab):
    """Files and directories; but nothing that is not ours by then, and nothing through a link."""
    for user in BOTH:
        top, share = lab.workspace(user, "swept"), f"{user.home}/.local/share/uv"
        own(user, f"{user.home}/.local", f"{user.home}/.local/share", share, f"{top}/bin", f"{top}/other")
        lab.shell("true", user).ok()
        wait_for(lambda: not lab.sessions(), "nothing runs")
        before = sorted(os.listdir(share))
        held = Held(lab, user, cwd=top, env=lab.environment(user, PATH=path_of(f"{top}/bin", f"{top}/other")))
        os.kill(session_process(), signal.SIGKILL)
        held.process.wait(10)
        held.__exit__()
        wait_for(lambda: not lab.sessions(), "the service has put it away")
        equal(sorted(os.listdir(f"{top}/bin")), sorted(NAMES), "a kill leaves them")
        # a directory that was there keeps its place; one that a mask needed is made and goes
        holds("tools" in os.listdir(share), "and the directories of masks")
        # what is not ours: content, mode, a second name, behind a link
        os.unlink(f"{top}/bin/codex")
        machine.write(f"{top}/bin/codex", "mine\n", 0o444, user)
        os.chmod(f"{top}/bin/pi", 0o644)
        os.link(f"{top}/bin/claude-sandbox", f"{top}/second")
        os.rename(f"{top}/other", f"{top}/moved")
        os.symlink("moved", f"{top}/other")
        with Held(lab, user, script="echo ready; ls ~/.local/share/uv; read x; exit 3") as held:
            equal(sorted(os.listdir(f"{top}/bin")), ["claude-sandbox", "codex", "pi"], f"{user}: while the next one runs")
            equal(sorted(os.listdir(f"{top}/moved")), sorted(NAMES), f"{user}: through a link")
            equal(held.end(), 3)
        wait_for(lambda: not lab.sessions() and sorted(os.listdir(share)) == before, "all is as it was")
        holds(not os.path.exists(f"{user.home}/.local/state/claude-sandbox/placeholders"), str(user))
        subprocess.run(["/bin/rm", "-rf", top], check=True)


@test(90, needs="bus")
def placeholder_that_goes_ends_the_session(lab):
    """From outside: removed, replaced, or moved with its directory."""
    for user in BOTH:
        top = lab.workspace(user, "watched")
        for place, commands in (("bin/claude", [["/bin/rm", "-f", f"{top}/a/bin/claude"]]),
                                ("bin/pi", [["/bin/cp", "/bin/true", f"{top}/x"], ["/bin/mv", f"{top}/x", f"{top}/a/bin/pi"]]),
                                ("bin", [["/bin/mv", f"{top}/a/bin", f"{top}/a/moved"]]),
                                ("", [["/bin/mv", f"{top}/a", f"{top}/moved"]])):
            own(user, f"{top}/a", f"{top}/a/bin")
            with Held(lab, user, cwd=top, env=lab.environment(user, PATH=path_of(f"{top}/a/bin")),
                      script="echo ready; exec tail -f /dev/null") as held:
                for command in commands:
                    lab.run(["/bin/sh", "-c", 'exec "$@" </dev/null', "sh", *command], user).ok()
                equal(held.process.wait(10), -9, f"{user}: {place}")
                err = held.process.stderr.read().decode()
            path = f"{top}/a/{place}".rstrip("/")
            holds(err.startswith(f"claude-sandbox: the session was ended: {path} was moved, removed or replaced") and
                  err.count("\n") == 1, f"{user}: {err!r}")
            wait_for(lambda: not lab.sessions(), "it is gone")
            left = [name for _, _, names in os.walk(top) for name in names if name in NAMES]
            equal(left, ["pi"] if place == "bin/pi" else [], f"{user}: only what a person put there stays")
            subprocess.run(["/bin/rm", "-rf", top], check=True)
            lab.workspace(user, "watched")


@test(60, needs="bus")
def guard_costs_few_mounts(lab):
    """An ordinary plan stays at 80 mounts; one that goes past all bounds says what to do."""
    top = lab.workspace(ALICE, "counted")
    own(ALICE, f"{top}/a", f"{top}/a/bin", f"{top}/b")
    with Held(lab, cwd=top, env=lab.environment(ALICE, PATH=path_of(f"{top}/a/bin", f"{top}/b"))) as held:
        rows = answer(lab.call("ListExposure", user=ALICE, interface="org.claudesandbox1.Session", path=held.path))[0]
        guarded = [row for row in rows if row[3] == "entry-point guard"]
        equal(len(guarded), 3 + 10, "three directories, ten names")
        holds(len(rows) <= 80, f"{len(rows)} mounts")
    many = [f"{top}/{n}" for n in range(40)]
    own(ALICE, *many)
    refused(lab, ALICE, path_of(*many), "more than 150 mounts", "put /usr/local/bin before", cwd=top)
    for directory in many:
        equal(os.listdir(directory), [], "nothing came")


@test(60, needs="bus")
def own_directories_need_no_guard(lab):
    """~/.local/bin is the person's alone: no agent writes there."""
    for user in BOTH:
        lab.install_agent(user)
        found = environment(lab, user, PATH=path_of(f"{user.home}/.local/bin", f"{user.home}/bin", "/opt/none/bin"))
        equal(found["CLAUDE_SANDBOX_ENTRY_GUARD"], "", str(user))
        equal(lab.run([SANDBOX, "shell", "-c", "echo ran"], user, env=lab.environment(user, PATH=None)).ok().out, b"ran\n")
