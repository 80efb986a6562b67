# SPDX-License-Identifier: MIT
"""An agent that does what it is told line by line, and who sees it: for the tests of what its state is shared with."""

import json
import os
import re
import select
import shutil
import subprocess
import time

import machine
from case import holds

# In an agent's jail, and on the host. Names of what changes anywhere below a directory, as inotify(7) tells them.
WATCHER = '''
import ctypes, os, select, struct

class Watcher:
    MASK = 0x002 | 0x004 | 0x008 | 0x040 | 0x080 | 0x100 | 0x200  # written, attributes, closed, moved, made, removed
    ONLYDIR, DONT_FOLLOW, ISDIR = 0x01000000, 0x02000000, 0x40000000

    def __init__(self, top):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.fd >= 0
        self.places, self.seen = {}, set()
        self.add(top, "")

    def add(self, path, name):
        watch = self.libc.inotify_add_watch(self.fd, os.fsencode(path), self.MASK | self.ONLYDIR | self.DONT_FOLLOW)
        if watch < 0:
            return
        self.places[watch] = (path, name)
        for entry in os.scandir(path):
            below = os.path.join(name, entry.name)
            if self.begun:
                self.seen.add(below)
            if entry.is_dir(follow_symlinks=False):
                self.add(entry.path, below)

    begun = False

    def look(self):
        self.begun = True
        while select.select([self.fd], [], [], 0)[0]:
            data = os.read(self.fd, 65536)
            while data:
                watch, mask, _, size = struct.unpack_from("iIII", data)
                name = os.fsdecode(data[16:16 + size].rstrip(b"\\0"))
                data = data[16 + size:]
                assert not mask & 0x4000, "events were lost"
                path, below = self.places.get(watch, ("", ""))
                if name and path:
                    self.seen.add(os.path.join(below, name))
                    if mask & self.ISDIR and mask & (0x100 | 0x080):
                        try:
                            self.add(os.path.join(path, name), os.path.join(below, name))
                        except OSError:
                            pass
        return sorted(self.seen)
'''

# A line of its input is an expression in Python, a line of its output what came of it.
AGENT = f"""#!/usr/bin/python3
import json, os, shutil, sys, time
{WATCHER}
HOME = os.environ["HOME"]

def get(name):
    try:
        with open(f"{{HOME}}/{{name}}", encoding="utf-8") as f:
            return f.read()
    except OSError as error:
        return error.__class__.__name__

def put(name, text):
    path = f"{{HOME}}/{{name}}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{{path}}.tmp", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(f"{{path}}.tmp", path)
    return time.clock_gettime(time.CLOCK_MONOTONIC)

def listing(name):
    return sorted(os.listdir(f"{{HOME}}/{{name}}")) if os.path.isdir(f"{{HOME}}/{{name}}") else None

def attempt(function, *arguments):
    try:
        function(*arguments)
        return True
    except OSError:
        return False

def spoil(name):
    '''All that can be done at a name.'''
    path, done = f"{{HOME}}/{{name}}", 0
    def write(path):
        with open(path, "w", encoding="utf-8") as f:
            f.write("inside")
    def parent():
        os.makedirs(os.path.dirname(path), exist_ok=True)
    attempt(parent)
    for action in (lambda: write(path), lambda: os.makedirs(f"{{path}}/deep/er"), lambda: write(f"{{path}}/deep/er/file"),
                   lambda: write(f"{{path}}/file"), lambda: os.rename(f"{{path}}/deep", f"{{path}}/moved"),
                   lambda: write(f"{{path}}.beside"), lambda: os.rename(f"{{path}}.beside", path),
                   lambda: os.rename(path, f"{{path}}.aside"), lambda: os.rename(f"{{path}}.aside", path),
                   lambda: os.link(path, f"{{path}}.linked"), lambda: os.unlink(f"{{path}}.linked"),
                   lambda: os.chmod(path, 0o700), lambda: os.utime(path), lambda: shutil.rmtree(path),
                   lambda: os.unlink(path), lambda: os.symlink("/etc/passwd", path), lambda: os.unlink(path),
                   lambda: os.mkfifo(path), lambda: os.unlink(path), lambda: os.makedirs(f"{{path}}/deep/er"),
                   lambda: write(f"{{path}}/deep/er/file"), lambda: shutil.rmtree(path), lambda: write(path)):
        done += attempt(action)
    return done

for line in sys.stdin:
    found = eval(line)
    print(json.dumps(found), flush=True)
"""


class Row:
    """What the table of agents says of one."""

    def __init__(self, text):
        def one(name):
            found = re.search(rf'\.{name} = "([^"]+)"', text)
            return found.group(1) if found else None

        def many(name):
            found = re.search(rf"\.{name} = LIST\(([^;]*?)\),\n", text, re.DOTALL)
            return re.findall(r'"([^"]+)"', found.group(1)) if found else []

        self.name, self.state, self.home_file = one("name"), one("state"), one("home_file")
        self.transcripts, self.kept = one("transcripts"), re.search(r"TRANSCRIPTS_(\w+)", text)
        self.kept = self.kept.group(1) if self.kept else None
        self.directories, self.files = many("account_directories"), many("account_files")
        self.locks, self.session, self.orders = many("account_locks"), many("session_names"), many("orders")

    def transcripts_of(self, cwd):
        """The directory below the state where it keeps what it was told in cwd, if it keeps it so."""
        if self.kept == "DASHED":
            return f"{self.transcripts}/" + re.sub(r"[^A-Za-z0-9]", "-", cwd)
        return f"{self.transcripts}/--" + cwd[1:].replace("/", "-") + "--" if self.kept == "FRAMED" else None


def rows():
    with open(f"{machine.SOURCE}/service/plan/profile.c", encoding="utf-8") as f:
        table = f.read().split("profiles[] = {", 1)[1].split("\n};", 1)[0]
    found = [Row(text) for text in table.split("\n\t{\n")[1:]]
    found = [row for row in found if row.state]
    holds(len(found) >= 3 and all(row.directories and row.files and row.locks for row in found), "the table is read")
    return found


class Session:
    """A running agent, told what to do."""

    def __init__(self, lab, user, agent, workspace, **options):
        self.process = lab.start([f"/usr/local/bin/{agent}"], user, cwd=lab.workspace(user, workspace), stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, **options)

    def ask(self, expression, limit=20):
        self.process.stdin.write(expression.encode() + b"\n")
        self.process.stdin.flush()
        holds(select.select([self.process.stdout], [], [], limit)[0], f"no answer to {expression}")
        line = self.process.stdout.readline()
        holds(line, f"the agent is gone: {expression}")
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(20)
        self.process.stdout.close()
        holds(status == 0, f"the agent ended with {status}")


class Sessions:
    """Those of one test; all are ended with it."""

    def __init__(self, lab, user, row, **options):
        self.lab, self.user, self.row, self.options, self.running = lab, user, row, options, []

    def start(self, workspace="project"):
        session = Session(self.lab, self.user, self.row.name, workspace, **self.options)
        self.running.append(session)
        session.ask("1")
        return session

    def end(self, *sessions):
        for session in sessions or list(self.running):
            self.running.remove(session)
            session.end()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_rest):
        for session in self.running:
            session.process.kill()
            session.process.wait()


def clear(user, row):
    """A home in which that agent was never started, and the agent."""
    for name in (row.state, ".local/state/claude-sandbox/projects"):
        shutil.rmtree(f"{user.home}/{name}", ignore_errors=True)
    if row.home_file and os.path.lexists(f"{user.home}/{row.home_file}"):
        os.unlink(f"{user.home}/{row.home_file}")
    machine.write(f"{user.home}/{row.state}/.made", "", 0o600, user)
    # What the row puts before the arguments is nobody's line.
    machine.write(f"{user.home}/.local/bin/{row.name}", AGENT, 0o755, user)


def host_path(user, row, name):
    return f"{user.home}/{name if name == row.home_file else f'{row.state}/{name}'}"


def seconds():
    return time.clock_gettime(time.CLOCK_MONOTONIC)
