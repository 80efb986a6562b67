# SPDX-License-Identifier: MIT
"""What a session says that its agent sees, gets and reaches, and the command that shows it."""

import json
import os
import re
import shutil
import subprocess

import bus
import machine
from case import SANDBOX, equal, holds, test, wait_for
from device_cases import stand_in
from exposure import Agent, below, compare_paths, compare_variables, decider, outside_of
from machine import ALICE, BOB, ROOT


def worktree(lab, user):
    main, linked = lab.workspace(user, "trunk"), f"{user.home}/branch"
    if not os.path.isdir(linked):
        for words in (["init", "-q"], ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "--allow-empty",
                                       "-m", "first"], ["worktree", "add", "-q", linked]):
            lab.run(["/usr/bin/git", *words], user, cwd=main).ok()
    return linked


SECRET = "value-that-is-never-sent"

VARIANTS = {
    "plain": "",
    "no-forge": "no-forge\n",
    "worktree": "",
    "allow-write": "# one\nallow-write = /srv/shared\nallow-write = /srv/a-file\n",
    "pass-env": "pass-env = SECRET_TOKEN FOO\n",
    "outer": "procfs = outer\n",
    "guard": "",
    "links": "",
}


def profiles():
    return [name for name in ("claude", "codex", "pi") if os.path.lexists(f"/usr/local/bin/{name}")] + ["shell"]


def furnish(user):
    """A home in which every rule has something to do."""
    for name in (".cache", ".config/gh", ".config/glab-cli", ".config/other", ".local/share/applications",
                 ".local/share/keyrings", ".local/share/uv/tools/ruff", ".local/share/pipx", ".agents/skills", ".claude/local", ".codex/packages", ".pi"):
        os.makedirs(f"{user.home}/{name}", exist_ok=True)
    for name in (".netrc", ".Xauthority"):
        machine.write(f"{user.home}/{name}", "secret\n", 0o600, user)
    subprocess.run(["/bin/chown", "-R", f"{user.uid}:{user.gid}", user.home], check=True)


def check_variant(lab, profile, user, variant):
    os.makedirs("/srv/shared", exist_ok=True)
    os.chmod("/srv/shared", 0o1777)
    machine.write("/srv/a-file", "x\n", 0o666)
    lab.configure(VARIANTS[variant])
    cwd = worktree(lab, user) if variant == "worktree" else lab.workspace(user)
    what = f"{profile}, {variant}"
    more = {"SECRET_TOKEN": SECRET, "EDITOR": SECRET, "GH_TOKEN": SECRET}
    if variant == "guard":
        os.makedirs(f"{cwd}/tools/bin", exist_ok=True)
        subprocess.run(["/bin/chown", "-R", f"{user.uid}:{user.gid}", f"{cwd}/tools"], check=True)
        more["PATH"] = f"{cwd}/tools/bin:/usr/local/bin:/usr/bin:/bin"
    if variant == "links":
        for name in (".claude", ".codex", ".pi", ".cache"):
            lab.hide(f"{user.home}/{name}")
            os.makedirs(f"{user.home}/dotfiles/{name[1:]}", exist_ok=True)
            os.symlink(f"dotfiles/{name[1:]}", f"{user.home}/{name}")
            lab.undo.append(lambda path=f"{user.home}/{name}": os.unlink(path))
        subprocess.run(["/bin/chown", "-hR", f"{user.uid}:{user.gid}", user.home], check=True)
    with Agent(lab, profile, user, cwd=cwd, env=lab.environment(user, **more)) as held:
        rows = {row[0]: row for row in compare_paths(held, f"{user}, {what}")}
        names = compare_variables(held, f"{user}, {what}")
        for member in ("ListExposure", "ListEnvironment", "ListRoutes"):
            holds(SECRET not in json.dumps(held.table(member)), f"{what}: {member} sends a value")
    home = os.fsencode(user.home)
    equal(rows[os.fsencode(cwd)][1:4], ("bind", "rw", "current directory"), what)
    equal((home + b"/.config/gh" in rows), variant != "no-forge", what)
    equal(names.get("SECRET_TOKEN"), "pass-env, /etc/claude-sandbox.conf:1" if variant == "pass-env" else None, what)
    holds("GH_TOKEN" not in names, names)
    if variant == "allow-write":
        equal(rows[b"/srv/shared"][1:4], ("bind", "rw", "/etc/claude-sandbox.conf:2"), what)
        equal(rows[b"/srv/a-file"][1:4], ("bind", "rw", "/etc/claude-sandbox.conf:3"), what)
    if variant == "worktree":
        holds(any(path.endswith(b"/trunk/.git") for path in rows), f"{what}: {sorted(rows)}")
    if variant == "outer":
        equal(rows[b"/proc"][1:4], ("bind", "ro", "/etc/claude-sandbox.conf:1" if rows[b"/proc"][3] != "procfs" else "procfs"), what)
    if variant == "guard":
        holds(os.fsencode(cwd) + b"/tools" in rows and rows[os.fsencode(cwd) + b"/tools/bin/claude"][2:4] ==
              ("masked", "entry-point guard"), f"{what}: {sorted(rows)}")
    if variant == "links":
        equal((rows[home + b"/.cache"][1], rows[home + b"/dotfiles/cache"][1:3]), ("link", ("bind", "rw")), what)
    lab.restore()


@test(240, needs="bus")
def table_is_what_is_mounted(lab):
    """Every profile, user and setting: mountinfo and environ against the two tables, both ways."""
    for user in (ALICE, ROOT):
        furnish(user)
        for profile in profiles():
            for variant in VARIANTS:
                check_variant(lab, profile, user, variant)


def sample(user):
    """Paths of every part of the machine, without links on the way."""
    found = []
    for top, most in ((b"/", 60), (b"/etc", 400), (b"/run", 200), (b"/var", 200), (b"/srv", 50), (b"/opt", 50), (b"/tmp", 50),
                      (b"/usr/local", 100), (os.fsencode(user.home), 400), (b"/home/bob", 50), (b"/root", 50)):
        n = 0
        for directory, directories, names in os.walk(top):
            for name in sorted(directories + names):
                path = os.path.join(directory, name)
                if n < most and not below(path, b"/dev") and not below(path, b"/proc") and os.path.realpath(path) == path:
                    found.append(path)
                    n += 1
            if n >= most:
                break
            directories.sort()
    return found


def identity(path):
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


@test(90, needs="bus")
def every_path_is_what_the_table_says(lab):
    """For many paths of the machine: the agent sees the same file exactly where the last row at or above says so."""
    for user in (ALICE, ROOT):
        furnish(user)
        with Agent(lab, "claude", user) as held:
            rows, root = held.exposure(), b"/proc/%d/root" % held.leader
            paths, seen = sample(user), 0
            for path in paths:
                row = decider(rows, path)
                place = outside_of(rows, row, path, root)
                outside, inside = identity(place), identity(root + path)
                holds(place == path or inside != identity(path), f"{user}: {path!r} is the host's, and of no kind that is shared")
                if outside is None or row[1] in ("dev", "proc") or (row[0] == path and row[1] == "bind" and os.path.isfile(path)):
                    continue
                shown = row[1] == "bind" and row[2] in ("ro", "rw")
                equal(inside == outside, shown, f"{user}: {path!r} by {row}")
                seen += shown
            holds(300 < len(paths) and 100 < seen < len(paths), f"{len(paths)} paths, {seen} shown")


@test(60, needs="bus")
def sockets_and_terminals_are_rows(lab):
    """What is covered because another program listens there, and the session's own terminal."""
    import socket
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("/opt/rows.sock")
        try:
            os.chmod("/opt/rows.sock", 0o777)
            listener.listen(1)
            for user in (ALICE, ROOT):
                with Agent(lab, "shell", user) as held:
                    rows = {row[0]: row for row in compare_paths(held, str(user))}
                    equal(rows[b"/opt/rows.sock"][2], "masked", str(user))
        finally:
            os.unlink("/opt/rows.sock")
    before = set(lab.sessions())
    with lab.terminal([SANDBOX, "shell", "-c", "echo rea''dy; read line"]) as terminal:
        terminal.expect(b"ready")
        new, = set(lab.sessions()) - before
        held = Agent.__new__(Agent)
        held.lab, held.path = lab, f"{bus.PATH}/session/{new}"
        rows = {row[0]: row for row in compare_paths(held, "at a terminal")}
        equal(rows[b"/dev/console"][1:4], ("device", "rw", "terminal"))
        terminal.type(b"\r")
        terminal.wait()


@test(60, needs="bus")
def devices_are_rows(lab):
    name = stand_in(lab, 1, 5)
    lab.configure(f"allow-device = {name}\n")
    for user in (ALICE, ROOT):
        with Agent(lab, "shell", user) as held:
            rows = {row[0]: row for row in compare_paths(held, str(user))}
            equal(rows[os.fsencode(name)][1:4], ("device", "rw", "/etc/claude-sandbox.conf:1"), str(user))


@test(60, needs="bus")
def files_handed_in_are_rows(lab):
    """Descriptors 0, 1 and 2 that are files, by what the agent can do with them."""
    for user in (ALICE, ROOT):
        workspace = lab.workspace(user)
        own, others = f"{workspace}/own \\ \x01.txt", "/srv/others.txt"
        machine.write(own, "x\n" * 3, 0o600, user)
        machine.write(others, "x\n" * 3, 0o644)
        for path, mode in ((own, "rw"), (others, "ro" if user is ALICE else "rw")):
            with open(path, "rb") as f, open(f"{workspace}/errors", "wb") as errors:
                before = set(lab.sessions())
                process = lab.start([SANDBOX, "shell", "-c", "echo ready; exec tail -f /dev/null"], user, stdin=f,
                                    stdout=subprocess.PIPE, stderr=errors)
                try:
                    equal(process.stdout.readline(), b"ready\n")
                    new, = set(lab.sessions()) - before
                    held = Agent.__new__(Agent)
                    held.lab, held.path = lab, f"{bus.PATH}/session/{new}"
                    rows = [row for row in compare_paths(held, str(user)) if row[1] == "descriptor"]
                    equal([row[:4] for row in rows], [(os.fsencode(path), "descriptor", mode, "caller"),
                                                      (os.fsencode(f"{workspace}/errors"), "descriptor", "rw", "caller")])
                    equal([os.readlink(f"/proc/{held.agent}/fd/{n}") for n in (0, 2)], [path, f"{workspace}/errors"])
                    lab.call("StopSession", "sa{sv}", new, 0)
                finally:
                    process.kill()
                    process.wait()
                    process.stdout.close()


def routes_inside(leader, *words):
    """{destination: (type, device)} of `ip route`, read in the session's namespace; "to the ledger" behind it for those
    by deny0, of which each has a prohibit behind it."""
    done = subprocess.run(["/usr/bin/nsenter", "-t", str(leader), "-n", "/sbin/ip", "-4", "-N", "route", "show", *words],
                          capture_output=True, text=True, check=True)
    found = {}
    for line in done.stdout.splitlines():
        fields = line.split()
        kind = fields.pop(0) if fields[0] in ("prohibit", "local", "broadcast", "unreachable", "blackhole", "6", "7", "8",
                                              "2", "3") else "unicast"
        destination = fields[0] if "/" in fields[0] or fields[0] == "default" else fields[0] + "/32"
        device = fields[fields.index("dev") + 1] if "dev" in fields else ""
        found[destination + (" to the ledger" if device == "deny0" else "")] = (kind, device)
    return found


@test(60, needs="bus")
def routes_are_what_the_kernel_holds(lab):
    """ListRoutes against `ip route`, both ways, with an allow-ip of each size."""
    lab.configure("allow-ip = 10.77.0.7 # printer\nallow-ip = 10.78.0.0/16\nallow-ip = 172.16.5.0/24\n")
    for user in (ALICE, ROOT):
        with Agent(lab, "shell", user) as held:
            rows = held.table("ListRoutes", user)
            table, local = routes_inside(held.leader), routes_inside(held.leader, "table", "local")
        equal({row[4] for row in rows}, {"in force"}, f"{user}: {rows}")
        named = {"8": "prohibit", "2": "local", "3": "broadcast"}
        # the far end's stands in the main table (denial-steps.c)
        local["192.0.0.1/32"] = table.pop("192.0.0.1/32")
        wanted, own = {}, {}
        for destination, verdict, device, reason, _state in rows:
            holds(reason, f"{destination} without a reason")
            if reason.startswith("the jail's own"):
                own[destination] = ("local", device)
                equal(verdict, "allow")
            else:
                wanted[destination] = ("prohibit" if verdict == "deny" else "unicast", device)
                if device == "deny0":
                    wanted[destination] = ("prohibit", "")
                    wanted[destination + " to the ledger"] = ("unicast", "deny0")
                equal(device, "deny0" if verdict == "deny" else "jail0", destination)
        equal({d: (named.get(k, k), v) for d, (k, v) in table.items()}, wanted, str(user))
        local = {d: (named.get(k, k), v) for d, (k, v) in local.items()}
        # the kernel's own, which follow from the address of the loopback
        for destination in ("127.0.0.1/32", "127.255.255.255/32", "127.0.0.0/32"):
            local.pop(destination, None)
        equal(local, own, str(user))
        verdicts = {row[0]: (row[1], row[3]) for row in rows}
        equal(verdicts["10.77.0.7/32"], ("allow", "allow-ip, /etc/claude-sandbox.conf:1"), str(user))
        equal([verdicts[d][0] for d in ("10.0.0.0/8", "10.78.0.0/16", "172.16.5.0/24", "default")],
              ["deny", "allow", "allow", "internet"], str(user))


@test(60, needs="bus")
def routes_that_go_are_missing(lab):
    """The state is the kernel's: a route that somebody took away is not in force any more (and the session ends)."""
    with Agent(lab, "shell", ALICE) as held:
        rows = {row[0]: row[4] for row in held.table("ListRoutes")}
        equal(rows["10.0.0.0/8"], "in force")
        session = [pid for pid in processes_of(ALICE, "/usr/libexec/claude-sandbox/session")]
        for pid in session:
            os.kill(pid, 19)
        subprocess.run(["/usr/bin/nsenter", "-t", str(held.leader), "-n", "/sbin/ip", "route", "del", "prohibit", "10.0.0.0/8"],
                       check=True)
        asked = lab.start(["/usr/bin/busctl", "--system", "--json=short", "call", bus.NAME, held.path, bus.SESSION, "ListRoutes"],
                          ALICE, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: bus.connected(asked.pid), "the question")
        for pid in session:
            os.kill(pid, 18)
        out, err = asked.communicate(timeout=10)
        # the answer, or the end of a session whose network is no longer what was meant: whichever comes first
        if asked.returncode == 0:
            equal([row[4] for row in json.loads(out)["data"][0] if row[0] == "10.0.0.0/8"], ["missing"])
        else:
            holds(b"ends and says nothing more" in err or b"Unknown object" in err, err)


def processes_of(user, program):
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/exe") == program and os.stat(f"/proc/{name}").st_uid == user.uid:
                found.append(int(name))
        except OSError:
            pass
    return found


HOSTILE = b"esc\x1b[2J\nline \xff\xe2\x80\xae \\back"


@test(90, needs="bus")
def hostile_names_are_shown_and_never_sent(lab):
    """A workspace with escape codes, a newline and bytes that are not UTF-8 in its name, and one of 4 KiB."""
    top = lab.workspace(ALICE, "hostile")
    long = top
    while len(long) < 3500:
        long += "/" + "n" * 200
    for cwd in (os.fsencode(top) + b"/" + HOSTILE, os.fsencode(long)):
        os.makedirs(cwd, exist_ok=True)
        subprocess.run(["/bin/chown", "-R", "4001:4001", top], check=True)
        with Agent(lab, "shell", ALICE, cwd=cwd) as held:
            rows = compare_paths(held, "hostile")
            holds((cwd, "bind", "rw") in [row[:3] for row in rows], rows)
            for words in (["exposure"], ["exposure", "--json"], ["show"], ["show", "--json"], ["why", "."], ["why", ".", "--json"],
                          ["sessions"], ["sessions", "--json"]):
                result = lab.run([SANDBOX, *words], ALICE, cwd=cwd).ok()
                result.out.decode("utf-8")
                holds(b"\x1b" not in result.out and b"\xe2\x80\xae" not in result.out, result.out)
                if "--json" in words:
                    json.loads(result.out)
            found = json.loads(lab.run([SANDBOX, "exposure", "--json", held.id], ALICE, cwd="/").out)
            shown = os.fsencode(top) + b"/esc\x1b[2J\nline \\xff\xe2\x80\xae \\\\back" if HOSTILE in cwd else cwd
            holds(shown.decode() in [row["path"] for row in found["paths"]], found)
    shutil.rmtree(top)


@test(90, needs="bus")
def why_says_what_decides(lab):
    """Paths and addresses of one session, as the table and the kernel have them."""
    furnish(ALICE)
    workspace = lab.workspace(ALICE)
    if not os.path.islink(f"{workspace}/out"):
        os.symlink("/srv", f"{workspace}/out")
    lab.configure("allow-ip = 10.77.0.7\n")
    with Agent(lab, "claude", ALICE) as held:
        def why(*words):
            return json.loads(lab.run([SANDBOX, "why", "--json", *words], ALICE).ok().out)
        home = ALICE.home
        for path, wanted in {
                "/etc/passwd": ("ro", "/", "system"),
                f"{home}/.ssh/id_rsa": ("private", "/home", "homes"),
                home: ("private", home, "homes"),
                "/home/bob/x": ("private", "/home", "homes"),
                f"{home}/.claude/settings.json": ("rw", f"{home}/.claude", "profile claude"),
                f"{home}/.claude/local/claude": ("private", f"{home}/.claude/local", "profile claude"),
                f"{home}/.netrc": ("private", "/home", "homes"),
                "/run/dbus/system_bus_socket": ("private", "/run", "system"),
                "/tmp/x": ("private", "/tmp", "system"),
                "./new/file": ("rw", workspace, "current directory"),
                "out/x/../y": ("ro", "/", "system"),
                "/var/run/x": ("private", None, "system"),
        }.items():
            found = why(path)
            equal((found["mode"], wanted[1] and found["entry"], wanted[2] and found["origin"]), wanted, path)
        equal(why("out/x/../y")["leads_to"], "/srv/y")
        for address, wanted in {
                "10.77.0.7": ("allow", "10.77.0.7/32"), "10.77.0.8": ("deny", "10.0.0.0/8"), "8.8.8.8": ("internet", "default"),
                "127.0.0.1": ("allow", "127.0.0.0/8"), "169.254.169.254": ("deny", "169.254.0.0/16"),
                "::ffff:10.77.0.8": ("deny", "10.0.0.0/8"), "2001:db8::1": ("deny", None), "192.0.2.53": ("dns", "192.0.2.53/32"),
        }.items():
            found = why(address)
            equal((found["verdict"], found["route"]), wanted, address)
        equal(why("10.0.0.0/8")["route"], "10.0.0.0/8", "a destination as 'routes' lists it is the network")
        found = why("10.2.3.4")
        equal(found["to_allow"], "claude-sandbox allow-ip add 10.2.3.4")
        equal(found["to_allow_here"], f"claude-sandbox allow-ip add --session {held.id} 10.2.3.4")
        for key in ("to_allow_for_an_hour", "to_allow_here"):
            lab.run([SANDBOX, *found[key].split()[1:]], ROOT).ok()
            equal(why("10.2.3.4")["verdict"], "allow", found[key])
        holds(why("/srv/not-there")["meaning"].startswith("nothing is there"), "what is not there is not called readable")
        lab.run([SANDBOX, "why", "gitlab.com"], ALICE).refused(2, "not resolved")
        with Agent(lab, "shell", ALICE, cwd=lab.workspace(ALICE, "second")) as other:
            equal(why("/etc")["session"], held.id, "that of the current directory")
            equal(why("--session", other.id[:8], "/etc")["session"], other.id)
            lab.run([SANDBOX, "why", "/etc"], ALICE, cwd="/").refused(1, "more than one session")
            lab.run([SANDBOX, "exposure"], ALICE, cwd="/").refused(1, "more than one session")
            lab.run([SANDBOX, "show", other.id], BOB, cwd="/").refused(1, "no session")
    lab.run([SANDBOX, "why", "/etc"], ALICE).refused(1, "no session that you may see runs")
    os.unlink(f"{workspace}/out")


@test(60, needs="bus")
def examples_of_the_interface(lab):
    """The shell example of org.claudesandbox1(5) about tables, as it stands there, for a person without rights."""
    with open(f"{machine.SOURCE}/docs/man/org.claudesandbox1.tail.scd", encoding="utf-8") as f:
        examples = re.findall(r"^```\n(.*?)^```", f.read(), re.S | re.M)
    examples = [example for example in examples if "ListExposure" in example]
    equal(len(examples), 1)
    with Agent(lab, "shell", ALICE):
        outputs = [lab.run(["/bin/bash", "-euc", text.replace("\\\\\n", "\\\n")], ALICE).ok().out for text in examples]
    holds(any(out.count(b"\n") == 5 and b'"IS_SANDBOX" "sandbox"' in out and b"in force" in out for out in outputs), outputs)


@test(60, needs="bus")
def tables_have_colours_on_terminals_alone(lab):
    """And not with NO_COLOR; what is private steps back, what can be changed stands out."""
    with Agent(lab, "shell", ALICE):
        for words in (["exposure"], ["routes"], ["show"], ["why", "/etc"]):
            plain = lab.run([SANDBOX, *words], ALICE).ok().out
            holds(b"\x1b" not in plain, words)
            for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
                with lab.terminal([SANDBOX, *words], env=lab.environment(ALICE, **more), size=(24, 200)) as terminal:
                    equal(terminal.wait(), 0)
                    equal(b"\x1b[" in terminal.output, coloured, f"{words} {more}")


@test(60, needs="bus")
def hostile_settings_are_shown_escaped(lab):
    """A comment and a path of the configuration with escape codes and bytes that are not UTF-8."""
    path = b"/srv/esc\x1b[2J\xff"
    os.makedirs(path, exist_ok=True)
    os.chmod(path, 0o777)
    lab.configure(b"allow-ip = 10.9.9.9 # \xe2\x80\xaeprinter\x1b[2J\xff\nallow-write = " + path + b"\n")
    if lab.run([SANDBOX, "policy"]).status != 0:         # a file that holds such bytes may be refused as a whole
        lab.run([SANDBOX, "policy"]).refused(1, "/etc/claude-sandbox.conf:")
        return
    for user in (ALICE, ROOT):
        with Agent(lab, "shell", user) as held:
            rows = compare_paths(held, str(user))
            holds((path, "bind", "rw", "/etc/claude-sandbox.conf:2") in [row[:4] for row in rows], rows)
            for words in (["allow-ip", "list"], ["policy"], ["exposure"], ["routes"], ["show"], ["why", "/srv/" + path[5:].decode(
                    errors="surrogateescape")]):
                for more in ([], ["--json"]):
                    result = lab.run([SANDBOX, *words, *more], user).ok()
                    holds(b"\x1b" not in result.out and b"\xff" not in result.out and b"\xe2\x80\xae" not in result.out, result)
                    if more:
                        json.loads(result.out)


@test(60, needs="bus")
def tables_outlive_the_service(lab):
    """A session that a new service has taken over says the same, and counts for nobody else."""
    with Agent(lab, "claude", ALICE) as held:
        before = [held.table(member) for member in ("ListExposure", "ListEnvironment", "ListRoutes")]
        lab.stop_service(9)
        equal([held.table(member) for member in ("ListExposure", "ListEnvironment", "ListRoutes")], before)
        result = lab.run([SANDBOX, "exposure", "--json"], ALICE).ok()
        equal(len(json.loads(result.out)["paths"]), len(before[0]))
        lab.run([SANDBOX, "exposure", held.id], BOB, cwd="/").refused(1, "There is no session")
