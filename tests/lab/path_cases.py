# SPDX-License-Identifier: MIT
"""Links, places that lie elsewhere than usual, what earlier sessions left, and the files of other users."""

import os
import shutil
import socket
import subprocess

import machine
from case import CLAUDE, CONFIG, SANDBOX, equal, holds, test
from listener_cases import before_bwrap, times_of
from machine import ALICE, BOB, PROBE, ROOT, User

BOTH = (ALICE, ROOT)
AGENT = "#!/bin/bash\nexec /bin/bash \"$@\"\n"      # a script as the agent


def put(user, path, text="", mode=0o644):
    machine.write(path, text, mode, user)


def link(user, path, target):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    os.symlink(target, path)
    os.lchown(path, user.uid, user.gid)


def claude(lab, user, script, **options):
    put(user, f"{user.home}/.local/bin/claude", AGENT, 0o755)
    return lab.run([CLAUDE, "-c", script], user, **options)


def forget(lab, user, *names):
    """Take those of the home away at the end."""
    for name in names:
        lab.undo.append(lambda path=f"{user.home}/{name}": shutil.rmtree(path) if os.path.isdir(path) and not
                        os.path.islink(path) else os.path.lexists(path) and os.unlink(path))


def warned(result, out, *words):
    """It went on, and one line says each of the words."""
    equal((result.status, result.out), (0, out), repr(result))
    lines = result.err.decode().splitlines()
    holds(any(all(word in line for word in words) for line in lines), f"no line says {words}: {result!r}")
    return lines


@test(60, needs="bus")
def state_in_a_repository_of_dotfiles(lab):
    """~/.claude is a link: the account's part is what lies there, the rest of the repository is hidden."""
    for user in BOTH:
        forget(lab, user, ".claude", "dotfiles", ".ssh")
        put(user, f"{user.home}/dotfiles/claude/commands/x", "COMMAND")
        put(user, f"{user.home}/dotfiles/ssh/id_ed25519", "PRIVATE-KEY", 0o600)
        link(user, f"{user.home}/.claude", "dotfiles/claude")
        link(user, f"{user.home}/.ssh", "dotfiles/ssh")
        result = claude(lab, user, "readlink ~/.claude; cat ~/.claude/commands/x; echo new > ~/.claude/commands/new; "
                                   "ls -A ~/dotfiles ~/.ssh 2>/dev/null; true").ok()
        equal(result.out.decode(), "COMMAND", str(user))
        with open(f"{user.home}/dotfiles/claude/commands/new", encoding="ascii") as f:
            equal(f.read(), "new\n", str(user))
        holds(os.path.islink(f"{user.home}/.claude"), f"{user}: the link is there")
        lab.shell("echo STARTED", user, cwd=f"{user.home}/dotfiles").refused(
            125, "cannot be the workspace", f"{user.home}/dotfiles/ssh", f"{user.home}/.ssh leads there")
        lab.restore()


@test(60, needs="bus")
def links_inside_of_the_state_are_told(lab):
    """What an agent could have made leads nowhere; the person hears of it, and allow-write helps."""
    for user in BOTH:
        forget(lab, user, ".claude", "dotfiles")
        put(user, f"{user.home}/dotfiles/commands/x", "COMMAND")
        put(user, f"{user.home}/dotfiles/skills/one/SKILL.md", "SKILL")
        put(user, f"{user.home}/.claude/x")
        link(user, f"{user.home}/.claude/commands", "../dotfiles/commands")
        link(user, f"{user.home}/.claude/skills", f"{user.home}/dotfiles/skills")
        link(user, f"{user.home}/.claude/gone", "/srv/gone")
        script = "cat ~/.claude/commands/x ~/.claude/skills/one/SKILL.md 2>/dev/null; true"
        lines = warned(claude(lab, user, script), b"", ".claude/commands (and 1 more links) leads to",
                       "hidden from the agent")
        equal(len(lines), 1, str(user))
        lab.configure(f"allow-write = {user.home}/dotfiles\n")
        equal(claude(lab, user, script).ok().out, b"COMMANDSKILL", str(user))
        lab.restore()


@test(needs="bus")
def state_that_leads_nowhere(lab):
    for user in BOTH:
        forget(lab, user, ".claude")
        link(user, f"{user.home}/.claude", "/srv/gone")
        equal(claude(lab, user, "echo went on").ok().out, b"went on\n")
        holds(os.path.islink(f"{user.home}/.claude") and not os.path.exists("/srv/gone"), "nothing was made there")
        lab.restore()


@test(60, needs="bus")
def home_behind_a_link(lab):
    """An account whose home is reached by root's link, as /home is /var/home on some systems."""
    user = User("moved", 4005, "/home/moved")
    machine.add_user(user)
    os.makedirs("/var/home/moved", exist_ok=True)
    os.chown("/var/home/moved", user.uid, user.gid)
    os.symlink("/var/home/moved", user.home)
    put(user, "/var/home/moved/.ssh/id", "PRIVATE-KEY", 0o600)
    put(user, "/var/home/moved/.claude/commands/x", "COMMAND")
    put(user, "/var/home/moved/.cache/x")
    lab.workspace(user)
    result = claude(lab, user, "echo $HOME; pwd -P; cat ~/.claude/commands/x; ls -A /var/home/moved /var/home; "
                               "echo new > ~/.cache/new; cat ~/.ssh/id /var/home/moved/.ssh/id 2>/dev/null; true").ok()
    lines = result.out.decode().splitlines()
    equal(lines[:2], ["/home/moved", "/var/home/moved/project"])
    holds("COMMAND" in lines[2] and "PRIVATE" not in result.out.decode() and ".ssh" not in result.out.decode(),
          result.out)
    holds(os.path.exists("/var/home/moved/.cache/new"), "the cache is the real one")
    lab.shell("echo STARTED", user, cwd="/var/home/moved").refused(125, "home directory")


@test(needs="bus")
def home_of_the_environment(lab):
    """$HOME that differs from the account's is hidden too; inside, HOME is the account's."""
    for user in BOTH:
        put(user, "/srv/second/.ssh/id", "PRIVATE-KEY", 0o600)
        put(user, f"{user.home}/.ssh/id", "PRIVATE-KEY", 0o600)
        result = lab.shell("echo $HOME; ls -A /srv/second; cat ~/.ssh/id /srv/second/.ssh/id 2>/dev/null; true", user,
                           env=lab.environment(user, HOME="/srv/second")).ok()
        equal(result.out.decode(), user.home + "\n", str(user))
        lab.shell("echo STARTED", user, cwd="/srv", env=lab.environment(user, HOME="/srv/second")).refused(
            125, "contains the home directory /srv/second")
        shutil.rmtree("/srv/second")


@test(60, needs="bus")
def stores_that_variables_name(lab):
    """Settings and logins that lie elsewhere are hidden; a planted variable breaks nothing and shows nothing."""
    for user in BOTH:
        put(user, "/srv/xdg/config/gh/hosts.yml", "PRIVATE-GH")
        put(user, "/srv/xdg/aws", "PRIVATE-AWS")
        script = "cat /srv/xdg/config/gh/hosts.yml /srv/xdg/aws ~/.config/gh/hosts.yml 2>/dev/null | grep PRIVATE; env | grep XDG; echo done"
        variables = {"XDG_CONFIG_HOME": "/srv/xdg/config", "AWS_CONFIG_FILE": "/srv/xdg/aws"}
        equal(lab.shell(script, user, env=lab.environment(user, **variables)).ok().out, b"done\n", str(user))
        result = lab.shell("echo works; ls /usr/bin/env", user, env=lab.environment(user, XDG_DATA_HOME="/usr"))
        warned(result, b"works\n/usr/bin/env\n", "XDG_DATA_HOME", "/usr", "stays readable")
        inside = f"{lab.workspace(user)}/.xdg"
        put(user, f"{inside}/x", "SHOWN")
        result = lab.shell("cat .xdg/x", user, env=lab.environment(user, XDG_CONFIG_HOME=inside)).ok()
        equal(result.out, b"SHOWN", f"{user}: what lies in the workspace is the workspace's")
        shutil.rmtree("/srv/xdg")


@test(60, needs="bus")
def keys_one_link_away(lab):
    """What a link among the keys leads to, and what each kind of variable names."""
    for user in BOTH:
        for name in ("id", "kube", "k1", "k2", "cc"):
            put(user, f"/srv/keys/{name}", f"PRIVATE-{name}", 0o600)
        for name, target in ((".ssh/id_lab", "id"), (".kube/config", "kube")):
            path = f"{user.home}/{name}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.chown(os.path.dirname(path), user.uid, user.gid)
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink(f"/srv/keys/{target}", path)
            os.chown(path, user.uid, user.gid, follow_symlinks=False)
        variables = {"KUBECONFIG": "/srv/keys/k1:/srv/keys/k2", "KRB5CCNAME": "FILE:/srv/keys/cc"}
        result = lab.shell("cat /srv/keys/*; wc -c /srv/keys/* | tail -1", user, env=lab.environment(user, **variables)).ok()
        equal(result.out.split(), [b"0", b"total"], str(user))
        for name in (".ssh/id_lab", ".kube/config"):
            os.unlink(f"{user.home}/{name}")
        shutil.rmtree("/srv/keys")


@test(60, needs="bus")
def allow_write_reaches_through_masks(lab):
    """A directory, a file, a socket and a FIFO come back; what lies beside them does not."""
    for user in BOTH:
        share = f"{user.home}/.local/share"
        put(user, f"{share}/keyrings/one", "ONE", 0o600)
        put(user, f"{share}/keyrings/two", "TWO", 0o600)
        put(user, f"{share}/fish/config", "FISH")
        os.makedirs("/run/engine", exist_ok=True)
        for name in ("events", "others"):
            if not os.path.exists(f"/run/engine/{name}"):
                os.mkfifo(f"/run/engine/{name}")
                os.chmod(f"/run/engine/{name}", 0o666)
        listeners = []
        for name in ("api", "admin"):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(f"/run/engine/{name}.sock")
            os.chmod(f"/run/engine/{name}.sock", 0o777)
            listener.listen(5)
            listeners.append(listener)
        try:
            lab.configure(f"allow-write = {share}/keyrings/one\nallow-write = {share}/fish\n"
                          "allow-write = /run/engine/api.sock\nallow-write = /run/engine/events\n")
            result = lab.shell(f"""
                cd {share}; cat keyrings/one; echo more >> keyrings/one; ls -A keyrings; cat fish/config; touch fish/new
                {PROBE} connect /run/engine/api.sock; {PROBE} connect /run/engine/admin.sock
                test -p /run/engine/events && echo fifo; ls -A /run/engine; exec 3<>/run/engine/events && echo opened""", user)
            equal(result.out.decode(), "ONEone\nFISHconnected\nrefused:ENOENT\nfifo\napi.sock\nevents\nopened\n", repr(result))
            holds(result.err.count(b"\n") == 1 and b":1: allow-write" in result.err and b"keys or logins" in result.err, repr(result.err))
            with open(f"{share}/keyrings/one", encoding="ascii") as f:
                equal(f.read(), "ONEmore\n", str(user))
            holds(os.path.exists(f"{share}/fish/new"), str(user))
        finally:
            for listener in listeners:
                listener.close()
            lab.restore()
            shutil.rmtree("/run/engine")
            shutil.rmtree(f"{share}/fish")
            shutil.rmtree(f"{share}/keyrings")


@test(60, needs="bus")
def links_left_at_the_places_of_mounts(lab):
    """An agent plants links where the configuration names paths: they are not followed, whoever it was, and the launch goes on."""
    for user in BOTH:
        put(user, f"{user.home}/.ssh/id", "PRIVATE-KEY", 0o600)
        put(user, f"{user.home}/.cache/x")
        workspace = lab.workspace(user, "planting")
        outside = f"/srv/planted-{user}"
        os.makedirs(outside, exist_ok=True)
        os.chown(outside, user.uid, user.gid)
        forget(lab, user, "planting", ".cache/planted-tool")
        places = [f"{workspace}/out", f"{user.home}/.cache/planted-tool", f"{outside}/data"]
        lab.shell(f"for p in {places[0]} {places[1]}; do ln -sfn {user.home}/.ssh $p; done", user, cwd=workspace).ok()
        lab.shell(f"ln -sfn {user.home}/.ssh {places[2]}", user, cwd=outside).ok()
        lab.configure("".join(f"allow-write = {place}\n" for place in places))
        result = lab.shell("cat ~/.ssh/id out/id ~/.cache/planted-tool/id 2>/dev/null; "
                           f"cat {places[2]}/id 2>/dev/null; echo tried", user, cwd=lab.workspace(user))
        lines = warned(result, b"tried\n", f"{CONFIG}:1: allow-write {places[0]} stays as it is", "a link")
        equal(len(lines), 3, f"{user}: {lines}")
        lab.configure(f"workspace-root = {places[2]}\n")
        lab.shell("echo STARTED", user, cwd=workspace).refused(125, "cannot be the workspace", "a link on the way")
        lab.restore()
        shutil.rmtree(outside)


@test(60, needs="bus")
def other_users_are_apart(lab):
    """Homes that their owners opened to everybody, and temporary directories."""
    put(ALICE, f"{ALICE.home}/public/notes", "ALICES-NOTES")
    os.chmod(ALICE.home, 0o755)
    lab.undo.append(lambda: os.chmod(ALICE.home, 0o700))
    lab.install_agent(ALICE)
    temp = [line.split(b"=", 1)[1].decode() for line in lab.run([CLAUDE, "environment"], ALICE).ok().out.splitlines()
            if line.startswith(b"CLAUDE_CODE_TMPDIR=")][0]
    put(ALICE, f"{temp}/note", "ALICES-NOTES", 0o666)
    for user in (BOB, ROOT):
        equal(lab.run(["/bin/cat", f"{ALICE.home}/public/notes"], user, cwd="/").out, b"ALICES-NOTES", "outside it is open")
        result = lab.shell(f"ls -A /home /home/alice; cat /home/alice/public/notes; cat {temp}/note; ls -A /var/tmp/claude-agent;"
                           " true", user)
        holds(b"NOTES" not in result.out and b"alice" not in result.out and b"4001" not in result.out, f"{user}: {result!r}")
    own = lab.shell("ls -A /var/tmp/claude-agent", BOB)
    equal(own.out, b"", "a shell has none")


@test(60, needs="bus")
def groups_open_no_sockets(lab):
    """What a member of docker could open outside: a socket and a file of that group."""
    os.makedirs("/srv/engine", exist_ok=True)
    path = "/srv/engine/docker.sock"
    machine.write("/srv/engine/file", "GROUPS-FILE", 0o640)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(5)
        for name, mode in ((path, 0o660), ("/srv/engine/file", 0o640)):
            os.chown(name, 0, machine.GROUPS["docker"])
            os.chmod(name, mode)
        try:
            script = f"{PROBE} connect {path}; cat /srv/engine/file 2>/dev/null; id -G | grep -cw {machine.GROUPS['docker']}"
            outside = lab.run(["/bin/sh", "-c", script], BOB).out
            equal(outside, b"connected\nGROUPS-FILE1\n", "outside")
            inside = lab.shell(script, BOB).out
            holds(b"connected" not in inside and b"GROUPS" not in inside and inside.endswith(b"\n0\n"), repr(inside))
            lab.configure(f"allow-write = {path}\n")
            inside = lab.shell(script, BOB).out
            holds(b"connected" not in inside, f"allow-write gives back the place, not the group: {inside!r}")
            lab.configure("deny-group = nogroup\n")
            holds(b"GROUPS-FILE" in lab.shell(script, BOB).out, "the list is the administrator's")
        finally:
            os.unlink(path)


@test(60, needs="bus")
def ordinary_plans_have_few_mounts(lab):
    """As the kernel counts them in a jail, without the dozen of bwrap's own /dev."""
    for user in BOTH:
        for name in (".cache/x", ".agents/skills/x", ".config/gh/x", ".config/glab-cli/x", ".local/share/x"):
            put(user, f"{user.home}/{name}")
        result = claude(lab, user, "cut -d' ' -f5 /proc/self/mountinfo").ok()
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            machines = {line.split()[4] for line in f} - {"/", "/home", "/root", "/tmp", "/run"}
        mounts = [place for place in result.out.decode().split() if place not in machines and not place.startswith("/dev/")]
        # of root's: what the machine has in /etc and /var that only root may read
        holds(20 < len(mounts) <= (60 if user is ALICE else 100), f"{user}: {len(mounts)} mounts: {mounts}")

class Swapping:
    """An agent in a session of its own that swaps things round as fast as it can until it is let go."""

    def __init__(self, lab, user, cwd, words):
        script = f"import os, sys\n{SWAP}\nprint('up', flush=True)\nwhile True:\n    swap({words!r})\n"
        machine.write(f"{cwd}/.swap.py", script, 0o644, user)
        self.process = lab.start([SANDBOX, "shell", "-c", "exec /usr/bin/python3 .swap.py"], user, cwd=cwd, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        if line != b"up\n":
            self.process.kill()
            raise AssertionError(f"it does not swap: {line!r} {self.process.communicate()!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        holds(self.process.poll() is None, f"it had ended: {self.process.communicate() if self.process.poll() is not None else ''}")
        self.process.kill()
        self.process.communicate()


# path: what is swapped; target: where the link leads
SWAP = '''
def attempt(function, *arguments):
    try:
        function(*arguments)
    except OSError:
        pass

def swap(words):
    for path, target in words:
        attempt(os.rename, path, path + ".aside")
        attempt(os.symlink, target, path)
        attempt(os.unlink, path)
        attempt(os.rename, path + ".aside", path)
'''


def launches(lab, user, cwd, script, times):
    """Launch so often. Nothing secret comes out; hardly ever is it swapped back each time that it is looked at."""
    fine = 0
    for _ in range(times):
        result = lab.shell(script, user, cwd=cwd)
        holds(b"PRIVATE" not in result.out + result.err, f"shown: {result!r}")
        if result.status == 0:
            equal(result.out, b"ran\n")
            fine += 1
        else:
            result.refused(125, "what the jail is made of was replaced each time")
    holds(fine >= times * 3 // 4, f"{fine} of {times}")


@test(120, needs="bus")
def swaps_while_sessions_start(lab):
    """Whatever an agent does to a path meanwhile: hidden or shown as itself, never what a link leads to."""
    for user in BOTH:
        forget(lab, user, "main-swapped", "linked-swapped")
        put(user, f"{user.home}/.ssh/id", "PRIVATE-KEY", 0o600)
        main = lab.workspace(user, "main-swapped")
        for words in (["init", "-q"], ["config", "user.name", "x"], ["config", "user.email", "x@example.org"],
                      ["commit", "-q", "--allow-empty", "-m", "first"],
                      ["worktree", "add", "-q", f"{user.home}/linked-swapped"]):
            lab.run(["/usr/bin/git", *words], user, cwd=main).ok()
        with Swapping(lab, user, main, [(".git", "../.ssh")]):
            launches(lab, user, f"{user.home}/linked-swapped", f"cat ~/.ssh/id ../main-swapped/.git/id 2>/dev/null; echo ran", 15)
        put(user, f"{main}/out/file")
        os.chown(f"{main}/out", user.uid, user.gid)
        with Swapping(lab, user, main, [("out", "../.ssh")]):
            lab.configure(f"allow-write = {main}/out\n")
            for cwd in (main, lab.workspace(user)):
                launches(lab, user, cwd, f"cat ~/.ssh/id {main}/out/id 2>/dev/null; echo ran", 15)
        lab.restore()


@test(60, needs="bus")
def sources_that_go_between_plan_and_mount(lab):
    """Removed, or replaced by a link, a file or another directory: planned again, and hidden with a warning."""
    for user in BOTH:
        out = f"/srv/going/{user}"
        put(user, f"{user.home}/.ssh/id", "PRIVATE-KEY", 0o600)
        for line, tries, words in (
                (f"rm -r {out}", 2, f"allow-write {out}: it does not exist"),
                (f"mv {out} {out}.aside; ln -s {user.home}/.ssh {out}", 2, f"allow-write {out} stays as it is"),
                # another directory at the name: what was planned is shown all the same
                (f"mv {out} {out}.aside; mkdir -m 777 {out}", 1, None)):
            put(user, f"{out}/kept")
            os.chown(out, user.uid, user.gid)
            os.chmod("/srv/going", 0o777)
            lab.configure(f"allow-write = {out}\n")
            count = before_bwrap(lab, line, user=user)
            result = lab.shell(f"cat {out}/id 2>/dev/null; touch {out}/new 2>/dev/null && echo wrote; echo ran", user)
            if words:
                warned(result, b"ran\n", CONFIG, words)
            else:
                equal(result.ok().out, b"wrote\nran\n", str(user))
                holds(os.path.exists(f"{out}.aside/new") and not os.path.exists(f"{out}/new"), str(user))
            equal(times_of(count), tries, f"{user}: {line}: bwrap ran")
            lab.restore()
            shutil.rmtree("/srv/going")


@test(60, needs="bus")
def destinations_that_become_links(lab):
    """A relative link could lead a mount to another place of the jail: it is planned again before the agent starts."""
    for user in BOTH:
        out = f"/srv/leading/{user}"
        put(user, f"{out}/kept")
        os.chown(out, user.uid, user.gid)
        os.chmod("/srv/leading", 0o777)
        lab.configure(f"allow-write = {out}\n")
        before_bwrap(lab, f"mv {out} {out}.aside; ln -s ../../usr/share {out}", user=user)
        result = lab.shell("read x; echo went on", user, data=b"")
        holds(b"stays as it is" in result.err and result.out == b"went on\n", repr(result))
        lab.restore()
        shutil.rmtree("/srv/leading")


@test(60, needs="bus")
def sources_that_never_stay(lab):
    """There whenever it is planned, away whenever it is mounted: given up, with the cause."""
    out = "/srv/never/out"
    put(ALICE, f"{out}/kept", "", 0o644)
    os.chmod("/srv/never", 0o777)
    lab.configure(f"allow-write = {out}\n")
    count = before_bwrap(lab, f"mv {out} {out}.aside", 100, f"mv {out}.aside {out}", ALICE)
    lab.shell("echo STARTED").refused(125, "was replaced each time while it was made")
    equal(times_of(count), 4, "bwrap ran")
    lab.restore()
    shutil.rmtree("/srv/never")
    lab.shell("true").ok()


@test(needs="bus")
def installers_behind_links(lab):
    """uv as package managers put it; a link to anything but a program shows nothing."""
    for user in BOTH:
        forget(lab, user, ".local/share/pipx", ".local/bin/uv", ".local/bin/uvx")
        put(user, f"{user.home}/.local/share/pipx/venvs/uv/bin/uv", "#!/bin/sh\necho uv runs\n", 0o755)
        put(user, f"{user.home}/.ssh/id", "PRIVATE-KEY", 0o600)
        put(user, f"{user.home}/.local/bin/other")
        lab.configure("tools = no\n")
        link(user, f"{user.home}/.local/bin/uv", "../share/pipx/venvs/uv/bin/uv")
        link(user, f"{user.home}/.local/bin/uvx", f"{user.home}/.ssh/id")
        venv = f"{user.home}/.venvs/one"
        put(user, f"{venv}/bin/tool", "#!/bin/sh\n", 0o755)
        result = lab.shell("uv; cat ~/.local/bin/uvx 2>/dev/null; echo >> ~/.local/bin/uv; echo $PATH | grep -c venvs", user,
                           env=lab.environment(user, VIRTUAL_ENV=venv))
        lines = result.err.decode().splitlines()
        holds(result.out == b"uv runs\n0\n" and any(".local/bin/uvx stays hidden" in line for line in lines), repr(result))
        with open(f"{user.home}/.local/share/pipx/venvs/uv/bin/uv", encoding="ascii") as f:
            equal(f.read(), "#!/bin/sh\necho uv runs\n", str(user))
        lab.restore()


TOOLS = {                               # below the home: what answers, and the directory of PATH
    ".cargo/bin/rustc": ".cargo/bin",
    ".nvm/versions/node/v20/bin/node": ".nvm/versions/node/v20/bin",
    "miniconda3/bin/conda": "miniconda3/bin",
    ".pyenv/shims/python3": ".pyenv/shims",
    ".sdkman/candidates/java/current/bin/java": ".sdkman/candidates/java/current/bin",
    "go/bin/gopls": "go/bin",
    ".local/bin/black": ".local/bin",
    "bin/own": "bin",
}


@test(60, needs="bus")
def tools_of_the_home_are_the_same_inside(lab):
    """The same command is the same program; what may hold a token beside it, and other directories, stay hidden."""
    for user in BOTH:
        tops = sorted({name.split("/")[0] for name in TOOLS} - {".local"})
        forget(lab, user, *tops, ".local/bin/black", "private", ".npm")
        for name in TOOLS:
            put(user, f"{user.home}/{name}", f"#!/bin/sh\necho {os.path.basename(name)} of the person\n", 0o755)
        put(user, f"{user.home}/.cargo/credentials.toml", "TOKEN", 0o600)
        put(user, f"{user.home}/miniconda3/.condarc", "TOKEN", 0o600)
        put(user, f"{user.home}/.npm/_cacache/index", "cached", 0o644)
        put(user, f"{user.home}/.npm/_logs/log", "TOKEN", 0o644)
        put(user, f"{user.home}/private/bin/tool", "#!/bin/sh\necho tool\n", 0o755)
        path = ":".join([f"{user.home}/{directory}" for directory in TOOLS.values()] + ["/usr/local/bin", "/usr/bin", "/bin"])
        names = " ".join(os.path.basename(name) for name in TOOLS)
        script = f"for n in {names}; do command -v $n; $n; done"
        env = lab.environment(user, PATH=path)
        equal(lab.shell(script, user, env=env).ok().out, lab.run(["/bin/sh", "-c", script], user, env=env).ok().out, str(user))
        look = "cd; cat .cargo/credentials.toml miniconda3/.condarc .npm/_logs/log; for n in .cargo/bin bin; do echo x >$n/planted; done; " \
               "echo more >>.npm/_cacache/index; cat .npm/_cacache/index"
        result = lab.shell(f"exec 2>/dev/null; {look}", user, env=env)
        equal(result.ok().out, b"cached\nmore\n" if result.out.count(b"\n") == 2 else b"cachedmore\n", str(user))
        holds(not os.path.exists(f"{user.home}/bin/planted"), "a tool directory is read-only")
        hidden = lab.environment(user, PATH=f"{path}:{user.home}/private/bin")
        lab.shell("command -v tool >/dev/null && echo found; true", user, env=hidden).warned(
            "1 directory of your PATH", f"allow-read = {user.home}/private/bin")
        lab.configure("allow-read = ~/private\n")
        equal(lab.shell("tool", user, env=hidden).ok().out, b"tool\n", str(user))
        machine.write("/etc/claude-sandbox.conf", "tools = no\n", 0o644)
        equal(lab.shell(f"ls {user.home}/.cargo 2>/dev/null; true", user).ok().out, b"", str(user))
        machine.write("/etc/claude-sandbox.conf", "hide = ~/.cargo\n", 0o644)
        equal(lab.shell(f"ls {user.home}/.cargo/bin 2>/dev/null; true", user).ok().out, b"", str(user))
        lab.restore()


@test(30, needs="bus")
def a_workspace_that_lets_nobody_in(lab):
    """Its mode is the cause, and the person can change it."""
    place = f"{ALICE.home}/closed"
    forget(lab, ALICE, "closed")
    put(ALICE, f"{place}/file")
    result = lab.run(["/bin/bash", "-c", f"cd {place} && chmod 000 . && exec {SANDBOX} shell -c true"], ALICE)
    result.refused(125, place, "mode", "chmod u+rwx")
