# SPDX-License-Identifier: MIT
"""Ways out that were found once: each stays shut."""

import json
import os
import signal
import socket
import subprocess

import bus
import machine
from bus_cases import Held
from case import CLAUDE, SANDBOX, equal, holds, processes, test, wait_for
from listener_cases import Listener
from machine import ALICE, MALLORY, PROBE, ROOT
from network import ECHO_PORT, HOST, LOOPBACK, NEIGHBOUR, PUBLIC


@test(needs="bus")
def kernel_settings_stay(lab):
    """uid 0 needs no capability for most of /proc/sys; core_pattern names a program that the kernel runs as root."""
    script = (
        "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/swappiness"
        " /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/disable_ipv6 /proc/sys/fs/suid_dumpable; do"
        "  [ -e $f ] || continue; IFS= read -r v <$f; { printf '%s\\n' \"$v\" >$f; } 2>/dev/null && echo \"wrote $f\";"
        " done; echo tried")
    for user in (ROOT, ALICE):
        equal(lab.shell(script, user).ok().out, b"tried\n", str(user))


@test(needs="bus")
def repositories_of_other_projects_stay(lab):
    """An agent makes a git directory of its own, whose file commondir names another project's repository."""
    work, other = lab.workspace(ALICE, "forged"), lab.workspace(ALICE, "other")
    lab.run(["/usr/bin/git", "init", "-q", other], ALICE).ok()
    cache = f"{ALICE.home}/.cache"
    if not os.path.isdir(cache):
        os.mkdir(cache)
        os.chown(cache, ALICE.uid, ALICE.gid)
    first = (
        f"mkdir -p ~/.cache/evil && cd ~/.cache/evil && echo 'ref: refs/heads/main' >HEAD && echo {other}/.git >commondir"
        f" && echo {work}/.git >gitdir && echo 'gitdir: {cache}/evil' >{work}/.git")
    lab.shell(first, cwd=work).ok()
    second = lab.shell(f"ls -d {other}; touch {other}/.git/hooks/post-commit; echo tried", cwd=work)
    equal((second.status, second.out), (0, b"tried\n"))
    holds(b"git does not work inside" in second.err, f"no warning: {second!r}")
    holds(not os.path.exists(f"{other}/.git/hooks/post-commit"), "a hook was planted")


@test(needs="bus")
def keyrings_stay(lab):
    """A uid's keyrings are the same in every namespace."""
    lab.install_agent(ALICE)
    equal(lab.run([CLAUDE, "keys"], ALICE).ok().out.split(), [b"38"] * 3)      # ENOSYS


@test(needs="bus")
def what_is_hidden_cannot_be_made(lab):
    """A hidden directory that does not exist is no place for an agent's own, and leaves nothing behind."""
    share = f"{ALICE.home}/.local/share"
    subprocess.run(["/usr/bin/install", "-d", "-o", str(ALICE.uid), "-g", str(ALICE.gid), f"{ALICE.home}/.local", share],
                   check=True)
    before = sorted(os.listdir(share))
    lab.shell("mkdir -p ~/.local/share/bash-completion/completions && echo 'touch ~/PWNED' "
              ">~/.local/share/bash-completion/completions/git; mkdir -p ~/.local/share/fish/vendor_conf.d; true").ok()
    equal(sorted(os.listdir(share)), before)


@test(needs="bus")
def squatted_temp_root_costs_no_launch(lab):
    """Any user can be first in /var/tmp."""
    path = "/var/tmp/claude-agent"
    subprocess.run(["/bin/rm", "-rf", path], check=True)
    os.symlink("/tmp", path)
    try:
        lab.install_agent(ALICE)
        result = lab.run([CLAUDE, "environment"], ALICE)
        equal(result.status, 0, repr(result))
        holds(b"temporary files" in result.err and b"CLAUDE_CODE_TMPDIR" not in result.out, repr(result))
    finally:
        os.unlink(path)


# Inside: one datagram out and its answer back, so that pasta has opened the port on the host; then whatever comes.
LISTENER = f"""
import select, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 8125))
s.sendto(b"hello", ("{PUBLIC}", {ECHO_PORT}))
select.select([s], [], [], 5)[0] or sys.exit("no answer")
s.recvfrom(100)
print("ready", flush=True)
sys.stdin.readline()
s.sendto(b"hello", ("{PUBLIC}", {ECHO_PORT}))
while True:
    select.select([s], [], [], 5)[0] or sys.exit("no second answer")
    data, sender = s.recvfrom(100)
    if sender[0] == "{PUBLIC}":
        break
    print("got", data, sender, flush=True)
while select.select([s], [], [], 0)[0]:
    print("got", *s.recvfrom(100), flush=True)
"""


# Inside: away from the peer, and to another one.
RECONNECT = """
import ctypes, os, socket, sys
s = socket.socket(fileno=os.dup(0))
ctypes.CDLL(None).connect(s.fileno(), bytes(16), 16)
s.connect(("127.0.0.1", int(sys.argv[1])))
print("connected")
"""


@test(needs="bus")
def no_socket_of_the_network_is_handed_in(lab):
    """A socket stays in the network where it was made, and can be disconnected and connected to whatever is there."""
    def hand_in(stdin, *words):
        process = lab.start([SANDBOX, "shell", "-c", *words], ALICE, stdin=stdin, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=20)
        return process.returncode, out, err
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as hidden:
        with socket.create_connection(server.getsockname()) as handed:
            status, out, err = hand_in(handed, "exec /usr/bin/python3 -c \"$0\" \"$1\"", RECONNECT,
                                       str(hidden.getsockname()[1]))
    equal((status, out), (125, b""), repr(err))
    holds(b"Descriptor 0 is a socket of the network" in err, repr(err))
    with socket.socket(socket.AF_UNIX) as alone:
        status, out, err = hand_in(alone, "true")
    holds(status == 125 and b"not connected" in err, repr(err))


@test(needs="bus")
def nobody_talks_to_an_agent_by_its_ports(lab):
    """A port that an agent sends from is opened on the host; denied senders stay denied that way round too."""
    for user in (ALICE, ROOT):
        agent = lab.start([SANDBOX, "shell", "-c", "exec /usr/bin/python3 -c \"$0\"", LISTENER], user, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            equal(agent.stdout.readline(), b"ready\n", str(user))
            sender = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'secret', ('%s', 8125))"
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
                for to in (HOST, LOOPBACK):
                    own.sendto(b"secret of the host", (to, 8125))
            subprocess.run(["/usr/bin/nsenter", "-t", str(lab.network.inet.process), "-n", "/usr/bin/python3", "-c",
                            sender % HOST], check=True, timeout=10)
            # pasta hands datagrams on in order: with the answer to a second one, what came before it has been seen
            out, err = agent.communicate(b"look\n", timeout=10)
            equal((agent.returncode, out), (0, b""), f"{user}: {err!r}; from {NEIGHBOUR} or the host")
        finally:
            if agent.poll() is None:
                agent.kill()
                agent.wait()


def uncovered(lab, user, path, *commands):
    """A session runs while the commands replace what lies below a mask, as that user: it ends, and says why."""
    mark = len(bus.Bus.log())
    script = f"trap 'exit 0' HUP TERM; echo ready; until cat {path}/* {path} 2>/dev/null; do :; done; read x; exit 0"
    with Held(lab, user, script=script) as held:
        for command in commands:
            lab.run(command, user, cwd="/").ok()
        status = held.process.wait(10)
        err = held.process.stderr.read().decode()
    equal(status, -9, f"{user}: {path}: {err!r}")
    lines = err.splitlines()
    holds(len(lines) == 1 and lines[0].startswith(f"claude-sandbox: the session was ended: {path} is hidden"), err)
    wait_for(lambda: not lab.sessions(), "nothing of it stays")
    log = bus.Bus.log()[mark:]
    holds(any("why its agent ended" in line and path in line for line in log.splitlines()), log)


@test(60, needs="bus")
def masks_that_come_off_end_the_session(lab):
    """Where agents write. A mount goes along with what it lies on, and goes for good with what is removed or renamed over."""
    for user in (ALICE, ROOT):
        path = f"{user.home}/.cache/hidden"
        machine.write(f"{path}/init", "", 0o644, user)
        machine.write(f"{path}.new/plugin", "", 0o644, user)
        own(user, f"{user.home}/.cache", path, f"{path}.new")
        lab.configure(f"hide = {path}\n")
        uncovered(lab, user, path, ["/bin/mv", path, f"{path}.bak"])
        lab.run(["/bin/mkdir", "-p", path], user).ok()
        uncovered(lab, user, path, ["/bin/rmdir", path])
        if user is ALICE:      # the agents of root cannot make a namespace in which the new mask is missing
            lab.run(["/bin/mkdir", "-p", path], user).ok()
            uncovered(lab, user, path, ["/bin/mv", "-T", f"{path}.new", path])
        lab.restore()
        subprocess.run(["/bin/rm", "-rf", f"{path}.bak", f"{path}.new", path], check=True)


def seen(held, expected, what):
    """Ask what the agent sees of the hidden place until it is this: what it reads before that is in docs/security.md."""
    def is_seen():
        holds(held.process.poll() is None, f"{what}: {held.process.poll()}")
        held.process.stdin.write(b"x\n")
        held.process.stdin.flush()
        return held.process.stdout.readline() == expected
    wait_for(is_seen, f"{what}: {expected!r} is seen")


def credential(lab, user):
    """Return: a file that the plan of the user's sessions hides, and that the user's programs save by renaming."""
    if user is ROOT:
        lab.replace("/etc/shadow", b"root:SECRET:1::::::\n", 0o600)
        return "/etc/shadow"
    machine.write("/srv/rotated/netrc", "SECRET\n", 0o600, user)
    own(user, "/srv/rotated")
    if os.path.lexists(f"{user.home}/.netrc"):
        lab.hide(f"{user.home}/.netrc")
    os.symlink("/srv/rotated/netrc", f"{user.home}/.netrc")
    lab.undo.append(lambda: os.unlink(f"{user.home}/.netrc"))
    return "/srv/rotated/netrc"


ROTATE = ("for n in $(seq $2); do echo \"SECRET $n\" >$1.new && chmod 600 $1.new && mv $1.new $1 || exit 1; done;"
          " touch $(dirname $1)/other 2>/dev/null; exit 0")


@test(120, needs="bus")
def hidden_files_that_are_rotated_stay_hidden(lab):
    """As passwd(1), and every program that saves by renaming: the session goes on, and the next file is hidden too."""
    for user in (ALICE, ROOT):
        path = credential(lab, user)
        script = f"echo ready; while read x; do echo \"<$(cat {path} 2>/dev/null)>\"; done; exit 3"
        with Held(lab, user, script=script) as held:
            seen(held, b"<>\n", f"{user}: at the start")
            for n in range(10):
                lab.run(["/bin/sh", "-c", ROTATE, "sh", path, "1"], user, cwd="/").ok()
                seen(held, b"<>\n", f"{user}: {n}")
            lab.run(["/bin/sh", "-c", ROTATE, "sh", path, "20"], user, cwd="/").ok()
            seen(held, b"<>\n", f"{user}: many")
            # moved away, missing, and made again
            lab.run(["/bin/mv", path, f"{path}.old"], user, cwd="/").ok()
            seen(held, b"<>\n", f"{user}: none")
            lab.run(["/bin/sh", "-c", ROTATE, "sh", path, "1"], user, cwd="/").ok()
            seen(held, b"<>\n", f"{user}: made again")
            # verify looks through the session's own list of what covers what
            rows = json.loads(lab.run([SANDBOX, "verify", "--json", held.id], user, limit=40).out)["rows"]
            equal([row for row in rows if row["status"] == "fail"], [], str(user))
            seen(held, b"<>\n", f"{user}: at last")
            with open(path, encoding="ascii") as f:
                equal(f.read(), "SECRET 1\n")
            equal((held.end(), held.process.stderr.read()), (3, b""), str(user))
        equal(lab.shell(f"cat {path} {path}.old 2>/dev/null; echo end", user).out.replace(b"SECRET 20\n", b""), b"end\n")


@test(60, needs="bus")
def directories_that_move_stay_hidden(lab):
    """A directory above what is hidden is moved away and made anew."""
    top = "/etc/service.d"
    machine.write(f"{top}/private/key", "SECRET", 0o600)
    os.chmod(f"{top}/private", 0o700)
    lab.undo.append(lambda: subprocess.run(["/bin/rm", "-rf", top, f"{top}.aside"], check=True))
    script = f"echo ready; while read x; do echo \"<$(cat {top}/private/key {top}.aside/private/key 2>/dev/null)>\"; done; exit 3"
    with Held(lab, ROOT, script=script) as held:
        seen(held, b"<>\n", "at the start")
        os.rename(top, f"{top}.aside")
        seen(held, b"<>\n", "moved")
        machine.write(f"{top}/private/key", "SECRET", 0o600)
        seen(held, b"<>\n", "made anew")
        machine.write(f"{top}/private.new/key", "SECRET", 0o600)
        os.chmod(f"{top}/private.new", 0o700)
        os.rename(f"{top}/private", f"{top}.aside/old")
        os.rename(f"{top}/private.new", f"{top}/private")
        seen(held, b"<>\n", "the watch went along")
        equal((held.end(), held.process.stderr.read()), (3, b""))


@test(60, needs="bus")
def what_cannot_be_hidden_again_ends_the_session(lab):
    """In a nested sandbox no new mask is seen, and a link holds none."""
    path = credential(lab, ALICE)
    for what, script in (("namespace", "exec unshare -Urm sh -c 'echo ready; read x'"), ("link", "echo ready; read x")):
        if what == "link":
            os.symlink("netrc.old", f"{path}.new")
        else:
            machine.write(f"{path}.new", "SECRET\n", 0o600, ALICE)
        with Held(lab, ALICE, script=script) as held:
            lab.run(["/bin/mv", "-T", f"{path}.new", path], ALICE).ok()
            equal(held.process.wait(10), -9, what)
            holds(f"{path} is hidden from the agent".encode() in held.process.stderr.read(), what)
        os.unlink(path)
        machine.write(path, "SECRET\n", 0o600, ALICE)


@test(60, needs="bus")
def other_changes_beside_masks_end_nothing(lab):
    """Names that are not hidden, and what lies in hidden directories."""
    share = f"{ALICE.home}/.cache/share"
    machine.write(f"{share}/hidden/config", "", 0o644, ALICE)
    own(ALICE, f"{ALICE.home}/.cache", share, f"{share}/hidden")
    lab.configure(f"hide = {share}/hidden\n")
    with Held(lab, ALICE) as held:
        for command in (["/bin/mkdir", f"{share}/other"], ["/bin/mv", f"{share}/other", f"{share}/hidden/other"],
                        ["/bin/mv", f"{share}/hidden/other", f"{share}/other"], ["/bin/rmdir", f"{share}/other"],
                        ["/usr/bin/touch", f"{share}/hidden/config"]):
            lab.run(command, ALICE).ok()
        equal(held.end(), 3)
        equal(held.process.stderr.read(), b"")


def own(user, *directories):
    for directory in directories:
        os.makedirs(directory, exist_ok=True)
        os.chown(directory, user.uid, user.gid)


@test(60, needs="bus")
def crowds_of_sockets_and_fifos_keep_nobody_from_work(lab):
    """What an agent can make beside a socket of its person's, and what a person's programs make, ends no launch."""
    for user in (ALICE, ROOT):
        crowd, many = f"{user.home}/.cache/crowd", f"{user.home}/.cache/many"
        own(user, f"{user.home}/.cache", crowd, many)
        with Listener(f"{crowd}/s", user):
            for n in range(100):
                os.mkfifo(f"{crowd}/a{n}")
                os.chown(f"{crowd}/a{n}", user.uid, user.gid)
            result = lab.shell(f"{PROBE} connect {crowd}/s; echo fine", user)
            equal(result.status, 0, repr(result))
            holds(b"connected" not in result.out and result.out.endswith(b"fine\n"), repr(result))
            lines = result.err.decode().splitlines()
            holds(len(lines) == 1 and "FIFOs" in lines[0] and f"{crowd} " in lines[0], repr(result))
        listeners = [Listener(f"{many}/{n}", user) for n in range(80)]
        try:
            result = lab.shell(f"ls -A {many}; {PROBE} connect {many}/7; echo fine", user)
            equal(result.status, 0, repr(result))
            holds(b"connected" not in result.out and b"beside" not in result.out, repr(result))
            holds(f"{many} is hidden".encode() in result.err, repr(result))
        finally:
            for listener in listeners:
                listener.__exit__()
            subprocess.run(["/bin/rm", "-rf", crowd, many], check=True)


SERVER = """
import os, socket, sys
kind, path = sys.argv[1:]
s = socket.socket(socket.AF_UNIX)
os.umask(0)
if kind == "relative":
    os.chdir(os.path.dirname(path))
    s.bind("./" + os.path.basename(path))
elif kind == "daemon":
    s.bind(path[1:])
elif kind == "renamed":
    s.bind(path + ".tmp")
    os.rename(path + ".tmp", path)
else:
    s.bind(path)
s.listen(8)
print("ready", flush=True)
sys.stdin.read()
"""


@test(60, needs="bus")
def sockets_are_found_by_their_files(lab):
    """Bound by a relative path, renamed since, or mounted at a second place: the kernel's list of names shows none."""
    for user in (ALICE, ROOT):
        for kind in ("relative", "renamed", "mounted", "daemon"):
            directory = f"/srv/found/{user}-{kind}"
            own(user, directory)
            path = bound = f"{directory}/s"
            if kind == "mounted":
                path = f"/srv/found/{user}-second/s"
                machine.write(path, "")
            with lab.start(["/usr/bin/python3", "-c", SERVER, kind, bound], ROOT if kind == "daemon" else user, cwd="/", stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE) as server:
                try:
                    equal(server.stdout.readline(), b"ready\n")
                    if kind == "mounted":
                        subprocess.run(["/bin/mount", "--bind", bound, path], check=True)
                    outside = lab.run([PROBE, "connect", path], user)
                    holds(outside.out.rstrip().endswith(b"connected"), f"{user}: {kind}: {outside!r}")
                    inside = lab.shell(f"{PROBE} connect {path}; echo tried", user)
                    holds(b"connected" not in inside.out and inside.out.endswith(b"tried\n"), f"{user}: {kind}: {inside!r}")
                    equal(inside.err, b"", f"{user}: {kind}")
                finally:
                    if kind == "mounted":
                        subprocess.run(["/bin/umount", path], check=False)
                    server.kill()


@test(needs="bus")
def covered_sockets_stay_where_they_are(lab):
    """An agent that moves the directory of a covered socket would uncover it for the next session."""
    workspace = lab.workspace(ALICE, "moving")
    for directory in (f"{ALICE.home}/.cache/ibus", f"{workspace}/run/deep"):
        path = f"{directory}/dbus-abc"
        with Listener(path, ALICE):
            moved = f"{os.path.dirname(directory)}/moved"
            script = (f"mv {directory} {moved} 2>/dev/null; mv {workspace}/run {workspace}/gone 2>/dev/null;"
                      f" for p in {path} {moved}/dbus-abc {workspace}/gone/deep/dbus-abc; do {PROBE} connect $p; done;"
                      f" touch {directory}/new && rm {directory}/new && echo written")
            for _ in range(2):
                result = lab.shell(script, cwd=workspace)
                holds(b"connected" not in result.out, repr(result))
                holds(result.out.endswith(b"written\n"), f"the directory itself stays usable: {result!r}")
            holds(os.path.exists(path), "the socket was moved")


# In the person's own process: take the listening socket of the session out of its hands, and close it for good.
SHUT = """
import ctypes, os, socket, sys
libc, pidfd = ctypes.CDLL(None), os.pidfd_open(int(sys.argv[1]))
for n in range(3, 40):
    fd = libc.syscall(438, pidfd, n, 0)
    if fd < 0:
        continue
    try:
        s = socket.socket(fileno=fd)
    except OSError:
        os.close(fd)
        continue
    if s.family == socket.AF_UNIX and s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        s.shutdown(socket.SHUT_RDWR)
        print("shut", flush=True)
"""


def session_of(user):
    """The pid of the only session of that user."""
    found = [pid for pid, line in processes().items() if line.startswith("/usr/libexec/claude-sandbox/session")
             and uid_of(pid) == user.uid]
    return found[0] if found else None


def uid_of(pid):
    """None when it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return [int(line.split()[1]) for line in f if line.startswith("Uid:")][0]
    except (FileNotFoundError, ProcessLookupError):
        return None


@test(needs="bus")
def sessions_stay_in_sight(lab):
    """Who makes a session unreachable for the service's next start has no session then; others keep theirs."""
    command = [SANDBOX, "shell", "-c", "echo up; trap '' HUP TERM; while read x; do :; done; exec tail -f /dev/null"]
    agents = {}
    for user in (ALICE, MALLORY):
        agents[user] = lab.start(command, user, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal(agents[user].stdout.readline(), b"up\n")
    try:
        hidden = session_of(MALLORY)
        equal(lab.run(["/usr/bin/python3", "-c", SHUT, str(hidden)], MALLORY).ok().out, b"shut\n")
        lab.stop_service(signal.SIGKILL)
        listed = json.loads(lab.run([SANDBOX, "sessions", "--json"], ROOT).ok().out)
        equal(len(listed), 1, repr(listed))
        wait_for(lambda: session_of(MALLORY) is None, "the hidden session ends")
        holds(session_of(ALICE), "alice's session has gone")
        equal(len(lab.sessions()), 1)
        agents[MALLORY].wait(10)
    finally:
        for agent in agents.values():
            agent.kill()
            agent.wait()
        wait_for(lambda: not lab.sessions(), "the sessions end")


@test(needs="bus")
def what_a_session_shows_and_may(lab):
    """Its id is in no file that others may read; its process can gain nothing."""
    agent = lab.start([SANDBOX, "shell", "-c", "echo up; read x"], ALICE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        equal(agent.stdout.readline(), b"up\n")
        pid = session_of(ALICE)
        shown = lab.run(["/bin/cat", "/proc/net/unix", f"/proc/{pid}/cgroup", f"/proc/{pid}/cmdline"], MALLORY).ok().out
        holds(b"/link" in shown, "no link in /proc/net/unix")
        for session in lab.sessions():
            holds(session.encode() not in shown, f"{session} is shown")
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            holds("NoNewPrivs:\t1" in f.read(), "a session may gain privileges")
    finally:
        agent.communicate(b"x\n", timeout=10)
