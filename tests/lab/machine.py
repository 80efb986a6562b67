# SPDX-License-Identifier: MIT
"""
A machine within this one: private mount, pid, ipc, uts, cgroup and network namespaces in which the product is
installed for real (meson install to its real paths, on overlays), with users of its own. Nothing of it is left
when its first process ends: the kernel kills what runs in it and drops the mounts; the one cgroup made outside
is removed by whoever started it.
"""

import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import time

import system

TOOLS = "/usr/local/lib/lab"       # what tests run as other programs
PROBE = TOOLS + "/probe"
SOURCE = "/srv/claude-sandbox"     # a copy of the tree
LOGS = "/run/lab"                  # root's: logs, control files of test programs


class User:
    def __init__(self, name, uid, home, groups=()):
        self.name = name
        self.uid = uid
        self.gid = uid
        self.home = home
        self.groups = list(groups)

    def __repr__(self):
        return self.name


ROOT = User("root", 0, "/root")
ALICE = User("alice", 4001, "/home/alice")
BOB = User("bob", 4002, "/home/bob", ["docker"])
MALLORY = User("mallory", 4003, "/home/mallory")
GUEST = User("guest", 4004, "/home/guest")        # a system account: no login shell
USERS = [ALICE, BOB, MALLORY, GUEST]
GROUPS = {"docker": 4100, "friends": 4101}


def cgroup2_root():
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            if " - cgroup2 " in line:
                return line.split()[4]
    return None


def _mounts():
    """Mount points, in the order of their mounts."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        # spaces and the like are in octal (proc(5))
        return [line.split()[4].encode().decode("unicode_escape") for line in mounts]


def _mounts_below(path):
    return [place for place in _mounts() if place == path or place.startswith(path + "/")]


class Cgroup:
    """One directory in the machine's cgroup2 tree, the root of the lab's own."""

    def __init__(self):
        self.path = None
        root = cgroup2_root()
        if root and os.access(root, os.W_OK):
            self.path = os.path.join(root, f"claude-sandbox-lab-{os.getpid()}")
            try:
                os.mkdir(self.path)
            except OSError:
                self.path = None

    def enter(self):
        if self.path:
            with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write("0")

    def remove(self):
        """Remove it and what is below; the kernel tells when the last of the killed processes has left."""
        if not self.path:
            return
        with open(os.path.join(self.path, "cgroup.events"), "rb", buffering=0) as events:
            poll = select.poll()
            poll.register(events, select.POLLPRI)
            end = time.monotonic() + 10
            while b"populated 1" in os.pread(events.fileno(), 200, 0) and time.monotonic() < end:
                poll.poll(1000)
        for directory, _, _ in os.walk(self.path, topdown=False):
            try:
                os.rmdir(directory)
            except OSError as error:
                print(f"lab: {directory} stays: {error.strerror}", file=sys.stderr)


def run_inside(function, limit):
    """Call function in a machine of its own. Return: its exit status; 124 when it took longer than limit seconds."""
    cgroup = Cgroup()
    first = os.fork()
    if first == 0:
        status = 125
        try:
            system.die_with_parent()
            os.setpgid(0, 0)
            cgroup.enter()
            system.unshare(system.CLONE_NEWNS | system.CLONE_NEWPID | system.CLONE_NEWIPC | system.CLONE_NEWUTS
                           | system.CLONE_NEWNET | system.CLONE_NEWCGROUP)
            init = os.fork()
            if init == 0:
                system.die_with_parent()
                _init(function)
            status = os.waitstatus_to_exitcode(os.waitpid(init, 0)[1])
            status = status if status >= 0 else 125
        finally:
            os._exit(status)

    def late(_signal, _frame):
        raise TimeoutError

    def stop(number, _frame):
        raise SystemExit(128 + number)

    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGTERM, stop)
    signal.alarm(limit)
    status = 124
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
        first = 0
    except TimeoutError:
        print(f"lab: not finished after {limit} s", file=sys.stderr)
    finally:
        signal.alarm(0)
        if first:
            os.kill(first, signal.SIGKILL)
            os.waitpid(first, 0)
        cgroup.remove()
    return status


def _init(function):
    """Process 1: start the one that works, reap everything else, end with it."""
    worker = os.fork()
    if worker == 0:
        status = 125
        try:
            status = function()
        except BaseException:                # the worker's last words, whatever it was
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    while True:
        pid, status = os.wait()
        if pid == worker:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 125)


def _overlay(scratch, path):
    upper, work = f"{scratch}{path}/upper", f"{scratch}{path}/work"
    os.makedirs(upper)
    os.makedirs(work)
    before = os.stat(path)
    os.chmod(upper, stat.S_IMODE(before.st_mode))
    system.mount("overlay", path, "overlay", 0, f"lowerdir={path},upperdir={upper},workdir={work}")


# What every machine has; the mounts of a test's host besides these are nobody's business.
MOUNTS = ("/", "/usr", "/etc", "/var", "/run", "/home", "/root", "/tmp", "/srv", "/opt", "/mnt", "/media")


def _detach_mounts(*kept):
    """Take away what the host has mounted elsewhere: disks, images, other roots. kept: paths that are still needed."""
    for place in reversed(_mounts()):
        if place not in MOUNTS and not f"{place}/".startswith(("/proc/", "/sys/", "/dev/")) \
                and not any(f"{path}/".startswith(f"{place}/") for path in kept):
            system.unmount(place)


def _append(path, text):
    with open(path, "a", encoding="utf-8") as f:
        f.write(text)


def project_state(user, state, workspace=None):
    """Where sessions of that workspace have what they see as ~/STATE."""
    top = f"{user.home}/.local/state/claude-sandbox/projects"
    for key in os.listdir(top) if os.path.isdir(top) else ():
        try:
            with open(f"{top}/{key}/workspace", encoding="utf-8", errors="surrogateescape") as f:
                if f.read() == os.path.realpath(workspace or f"{user.home}/project"):
                    return f"{top}/{key}/{state}"
        except (FileNotFoundError, NotADirectoryError):
            pass
    return f"{top}/none/{state}"


def write(path, text, mode=0o644, owner=ROOT):
    """A file with that content, mode and owner, and the directories above it."""
    directory = os.path.dirname(path)
    missing = []
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for directory in reversed(missing):
        os.mkdir(directory, 0o755)
        os.chown(directory, owner.uid, owner.gid)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)
    os.chown(path, owner.uid, owner.gid)


def enter():
    """Leave the outer machine's mounts and processes behind."""
    system.mount("none", "/", None, system.MS_REC | system.MS_PRIVATE)
    system.mount("proc", "/proc", "proc", system.MS_NODEV | system.MS_NOSUID | system.MS_NOEXEC)


def build(directory):
    """Make the machine: mounts, users, the installed product. `host`'s network is not touched here."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    _detach_mounts(root, directory)
    scratch = [path for path in ("/mnt", "/media") if not f"{root}/".startswith(path + "/")
               and not f"{directory}/".startswith(path + "/")][0]
    system.mount("lab", scratch, "tmpfs", system.MS_NODEV, "mode=0755,size=4g")
    for path in ("/usr", "/etc", "/var"):
        _overlay(scratch, path)
    _users()
    _private_places()
    _install(directory)
    _copy_tree(root, f"{scratch}/tree")

    # the checkout may lie in any of these: nothing is read from it from here on
    os.chdir("/")
    system.mount("run", "/run", "tmpfs", system.MS_NODEV | system.MS_NOSUID, "mode=0755")
    os.makedirs(LOGS, 0o700)
    for path, mode in (("/home", "0755"), ("/root", "0700"), ("/tmp", "1777"), ("/srv", "0755"), ("/opt", "0755"),
                       ("/var/tmp", "1777"), ("/var/cache", "0755"), ("/var/log", "0755"), ("/var/spool", "0755")):
        system.mount(path.strip("/"), path, "tmpfs", system.MS_NODEV, f"mode={mode}")
    system.mount("shm", "/dev/shm", "tmpfs", system.MS_NODEV, "mode=1777")
    if cgroup2_root():
        for place in reversed(_mounts_below("/sys/fs/cgroup")):
            system.unmount(place)
        system.mount("cgroup2", "/sys/fs/cgroup", "cgroup2", system.MS_NODEV | system.MS_NOSUID | system.MS_NOEXEC)
    system.mount("net", "/dev/net", "tmpfs", 0, "mode=0755")
    os.mknod("/dev/net/tun", 0o666 | stat.S_IFCHR, os.makedev(10, 200))
    os.chmod("/dev/net/tun", 0o666)
    shutil.copytree(f"{scratch}/tree", SOURCE, symlinks=True)
    shutil.rmtree(f"{scratch}/tree")
    system.unmount(scratch)

    os.symlink("../mail", "/var/spool/mail")
    # what the service keeps for good, as in a machine that has had a session
    for path, mode in OF_SERVICE:
        os.mkdir(path)
        os.chmod(path, mode)
    for user in USERS:
        os.mkdir(user.home, 0o700)
        os.chown(user.home, user.uid, user.gid)
    write("/etc/resolv.conf", "nameserver 127.0.0.53\nsearch corp.example\noptions edns0\n")
    write("/etc/hostname", "lab\n")
    write("/etc/hosts", "127.0.0.1 localhost\n")
    os.makedirs("/run/dbus", 0o755)
    # the host's may be empty, as images have it
    os.unlink("/etc/machine-id")
    system.must("/usr/bin/dbus-uuidgen", "--ensure=/etc/machine-id")


# Where tests write; not the service's own places, since it runs on.
PLACES = ("/home", "/root", "/tmp", "/var/spool", "/opt", "/srv", "/mnt", "/media", "/etc", "/usr/local")


class Ground:
    """What is in PLACES now, to which each test returns: names, modes, owners, contents."""

    def __init__(self):
        self.mounts = set(_mounts())
        self.entries = dict(self._entries())
        self.contents = {path: _content(path) for path in self.entries}

    @staticmethod
    def _entries():
        """(path, what it is), what is in a directory after it."""
        for place in PLACES:
            if os.path.isdir(place):
                yield place, _kind(place)
                for directory, names, files in os.walk(place):
                    for path in (os.path.join(directory, name) for name in names + files):
                        try:
                            yield path, _kind(path)
                        except FileNotFoundError:        # of a process that was just ending
                            pass

    def restore(self):
        for place in reversed(_mounts()):
            if place not in self.mounts and place.startswith(tuple(f"{top}/" for top in PLACES)):
                system.unmount(place)
        now = dict(self._entries())
        for path, kind in now.items():
            # another sort of file is another file
            if os.path.lexists(path) and (path not in self.entries or kind[0] != self.entries[path][0]):
                remove(path)
        for path, kind in self.entries.items():
            if now.get(path) != kind:
                self._put_back(path, kind)

    def _put_back(self, path, kind):
        sort, mode, uid, gid, *times = kind
        content = self.contents[path]
        if sort == stat.S_IFDIR:
            os.makedirs(path, exist_ok=True)
        elif sort == stat.S_IFLNK:
            remove(path)
            os.symlink(content, path)
        elif sort == stat.S_IFREG:
            if content is None and (not os.path.exists(path) or os.stat(path).st_size != kind[5]):
                raise AssertionError(f"a test has changed {path}")
            if content is not None and (not os.path.exists(path) or _content(path) != content):
                with open(path, "wb") as f:
                    f.write(content)
        elif not os.path.lexists(path):
            raise AssertionError(f"a test has removed {path}")
        os.chown(path, uid, gid, follow_symlinks=False)
        if sort != stat.S_IFLNK:
            os.chmod(path, mode)
        if times:
            os.utime(path, ns=(times[0], times[0]))


def _kind(path):
    status = os.lstat(path)
    kind = (stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
    return (*kind, status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else kind


# of what the machine has in /usr/local; no test changes so large a file
CONTENT_MOST = 1 << 20


def _content(path):
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(path)
    if stat.S_ISREG(status.st_mode) and status.st_size <= CONTENT_MOST:
        with open(path, "rb") as f:
            return f.read()
    return None


def add_user(user):
    """One more account, until the test ends."""
    _append("/etc/passwd", f"{user.name}:x:{user.uid}:{user.gid}:{user.name}:{user.home}:/bin/bash\n")
    _append("/etc/group", f"{user.name}:x:{user.gid}:\n")


def _users():
    for user in USERS:
        shell = "/usr/sbin/nologin" if user is GUEST else "/bin/bash"
        _append("/etc/passwd", f"{user.name}:x:{user.uid}:{user.gid}:{user.name}:{user.home}:{shell}\n")
        _append("/etc/group", f"{user.name}:x:{user.gid}:\n")
        _append("/etc/shadow", f"{user.name}:*:19000:0:99999:7:::\n")
    with open("/etc/group", encoding="utf-8") as f:
        lines = [line for line in f if line.split(":")[0] not in GROUPS]
    for group, gid in GROUPS.items():
        members = ",".join(user.name for user in USERS if group in user.groups)
        lines.append(f"{group}:x:{gid}:{members}\n")
    write("/etc/group", "".join(lines))


def _copy_tree(root, target):
    """The tree as git has it or would take it."""
    listed = subprocess.run(["/usr/bin/git", "-C", root, "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    if listed.returncode != 0:
        for path, directories, files in os.walk(root):
            directories[:] = [name for name in directories if not name.startswith((".git", "build"))]
            names += [os.path.relpath(os.path.join(path, name), root) for name in files]
    for name in names:
        if os.path.isfile(os.path.join(root, name)):
            os.makedirs(os.path.join(target, os.path.dirname(name)), exist_ok=True)
            shutil.copy2(os.path.join(root, name), os.path.join(target, name))


_installed = []


# What only root, or a few, may read of /etc and /var, in every machine: path, mode, owner's name, group's name.
PRIVATE = (
    ("/etc/shadow", 0o640, "root", "shadow"),
    ("/etc/shadow-", 0o640, "root", "shadow"),
    ("/etc/gshadow", 0o640, "root", "shadow"),
    ("/etc/gshadow-", 0o640, "root", "shadow"),
    ("/etc/ssl/private/", 0o710, "root", "root"),
    ("/etc/polkit-1/rules.d/", 0o700, "polkitd", "root"),
    ("/var/lib/polkit-1/", 0o700, "polkitd", "root"),
)
# What anybody may look into and some machines have not.
PUBLIC = (("/var/mail/", 0o2775), ("/var/lib/systemd/coredump/", 0o755))
ABSENT = ("/etc/letsencrypt", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/krb5.keytab", "/etc/sudoers",
          "/etc/sudoers.d", "/var/crash")
OF_SERVICE = (("/var/log/claude-sandbox", 0o700), ("/var/tmp/claude-agent", 0o711))
# Replaced by empty ones later.
EMPTY = {"/var/tmp", "/var/cache", "/var/log", "/var/spool"}


def remove(path):
    """Whatever is there."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _is_private(status):
    if stat.S_ISLNK(status.st_mode):
        return False
    return status.st_mode & 0o005 != 0o005 if stat.S_ISDIR(status.st_mode) else not status.st_mode & 0o004


def _remove_private(directory):
    """What not everybody may read below directory goes, whichever packages have put it there."""
    with os.scandir(directory) as entries:
        for entry in list(entries):
            if entry.path in EMPTY or entry.is_symlink():
                continue
            if _is_private(entry.stat(follow_symlinks=False)):
                remove(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                _remove_private(entry.path)


def _private_places():
    """What of the system is hidden from agents stands in golden files: the same on every machine."""
    for path in ABSENT:
        remove(path)
    texts = {}
    for path, _, _, _ in PRIVATE:
        if not path.endswith("/") and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                texts[path] = file.read()
    for directory in ("/etc", "/var"):
        _remove_private(directory)
    for path, mode, owner, group in PRIVATE:
        if path.endswith("/"):
            os.makedirs(path, exist_ok=True)
        else:
            _append(path, texts.get(path, ""))
        shutil.chown(path, owner, group)
        os.chmod(path, mode)
    for path, mode in PUBLIC:
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)


def installed():
    """Paths of the files that the installation of this lab made."""
    return list(_installed)


def _install(directory):
    for path in ("/etc/claude-sandbox.conf", "/etc/claude-gitconfig"):
        if os.path.lexists(path):
            os.unlink(path)
    # nor anything else that a service of the outer machine has made
    for path in ("/usr/libexec/claude-sandbox", "/var/tmp/claude-agent", "/var/log/claude-sandbox", "/var/lib/claude-sandbox",
                 "/var/cache/claude-sandbox"):
        shutil.rmtree(path, ignore_errors=True)
    system.must("/usr/bin/meson", "install", "-C", directory, "--no-rebuild", "--quiet", timeout=120,
                env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8"})
    with open(os.path.join(directory, "meson-logs", "install-log.txt"), encoding="utf-8") as f:
        _installed.extend(line.strip() for line in f if not line.startswith("#"))
    if not os.path.exists("/etc/claude-gitconfig"):
        write("/etc/claude-gitconfig", "")
    os.makedirs(TOOLS, exist_ok=True)
    for folder in ("lab", "daemon", "bench", "tui"):
        tools = os.path.join(directory, "tests", folder)
        for name in os.listdir(tools) if os.path.isdir(tools) else ():
            path = os.path.join(tools, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                shutil.copy2(path, os.path.join(TOOLS, name))
                os.chmod(os.path.join(TOOLS, name), 0o755)
    subprocess.run(["/usr/sbin/ldconfig"], check=False)
