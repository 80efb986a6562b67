# SPDX-License-Identifier: MIT
"""Three kinds of state: what is of the account everybody has, what is of the project its sessions, the rest nobody."""

import json
import os
import shutil
import subprocess

import machine
import system
from case import equal, holds, test, wait_for
from kinds import WATCHER, Sessions, clear, host_path, rows, seconds
from machine import ALICE, ROOT

exec(WATCHER)                                              # the same one as inside

# What no list has: of today's versions, and of a later one.
UNLISTED = ("history.jsonl", "queue_1.sqlite", "todos/x", "settings.local.json", "hooks/new", "new-in-the-next-version",
            "agent/new-in-the-next-version", "bin/x", ".hidden", "a/b/c")


def text_of(name):
    return "{}" if name.endswith(".json") else "outside\n"


def fill(user, row):
    """All that a row names, on the host, but the last directory of the account; what another project has; what no list has."""
    for name in row.directories[:-1]:
        machine.write(f"{user.home}/{row.state}/{name}/outside", "outside\n", 0o600, user)
    for name in row.files:
        machine.write(host_path(user, row, name), text_of(name), 0o600, user)
    for name in row.session:
        machine.write(f"{user.home}/{row.state}/{name}{'outside' if name.endswith('/') else ''}", "outside\n", 0o600, user)
    for name in UNLISTED:
        machine.write(f"{user.home}/{row.state}/{name}", "outside\n", 0o600, user)
    machine.write(f"{user.home}/{row.state}/{row.transcripts}/other/outside.jsonl", "{}\n", 0o600, user)


def is_account(row, name):
    """Is a name that changed one of the account, or what a save of one makes beside it?"""
    if any(name == one or name.startswith(f"{one}/") for one in row.directories):
        return True
    saved = [*row.files, *row.locks, *[f"{file}.lock" for file in row.files]]
    return any(name == one or name.startswith((f"{one}/", f"{one}.")) for one in saved)


def is_of_project(row, name, cwd):
    """Transcripts of that workspace, and the directories that only lead there."""
    own = row.transcripts_of(cwd)
    return own is not None and (name == own or name.startswith(f"{own}/") or own.startswith(f"{name}/"))


@test(120, needs="bus")
def only_the_account_is_seen_elsewhere(lab):
    """Everything is done at every name below the state; one outside and one in another workspace's session look on."""
    for row in rows():
        for user in (ALICE, ROOT) if row.name == "claude" else (ALICE,):
            clear(user, row)
            fill(user, row)
            cwd = lab.workspace(user)
            names = [*row.directories, *row.files, *row.locks, *[name.rstrip("/") for name in row.session],
                     *UNLISTED, row.transcripts, f"{row.transcripts}/other", f"{row.transcripts}/2026/12/01/rollout-x.jsonl",
                     row.transcripts_of(cwd) or "x", f"{row.directories[0]}/new", f"{row.directories[-1]}/new"]
            with Sessions(lab, user, row, stderr=subprocess.DEVNULL) as sessions:
                other = sessions.start("other")
                other.ask(f"globals().update(watcher=Watcher(HOME + '/{row.state}')) or watcher.look()")
                outside = Watcher(f"{user.home}/{row.state}")
                outside.look()
                agent = sessions.start()
                hidden = agent.ask(f"[name for name in {[*UNLISTED, *row.session]!r} if get('{row.state}/' + name) == 'outside\\n']")
                equal(hidden, [], f"{row.name}: what it sees of others")
                equal(agent.ask(f"listing('{row.state}/{row.transcripts}/other')"), None, f"{row.name}: transcripts of others")
                for name in sorted(names, key=lambda name: -name.count("/")):
                    done = agent.ask(f"spoil('{row.state}/{name}')")
                    holds(done >= 3, f"{row.name}: only {done} done at {name}")
                # The last of all that is written, at a name that everybody sees.
                agent.ask(f"put('{row.state}/{row.directories[0]}/last', 'x') and 1")
                agent.ask(f"put('{row.state}/{row.files[0]}', '{{\"last\": 1}}') and 1")
                for name in (f"{row.directories[0]}/last", row.files[0]):
                    wait_for(lambda: name in other.ask("watcher.look()"), f"{row.name}: {name} is seen by another session", 20)
                    holds(name == row.home_file or wait_for(lambda: name in outside.look(), f"{row.name}: {name} outside", 20),
                          f"{row.name}: {name}")
                sessions.end(agent)
                wait_for(lambda: len(lab.sessions()) == 1, "the session is gone")
                seen = other.ask("watcher.look()")
                found = [name for name in seen if not is_account(row, name)]
                equal(found, [], f"{row.name}, {user}: seen by another workspace's session")
                sessions.end(other)
            wait_for(lambda: not lab.sessions(), "both are gone")
            found = [name for name in outside.look() if not is_account(row, name) and not is_of_project(row, name, cwd)]
            equal(found, [], f"{row.name}, {user}: seen outside")
            os.close(outside.fd)
            for name in [*UNLISTED, *[name for name in row.session if not name.endswith("/")]]:
                with open(f"{user.home}/{row.state}/{name}", encoding="ascii") as f:
                    equal(f.read(), "outside\n", name)


@test(60, needs="bus")
def a_project_is_shared_by_its_sessions(lab):
    """And kept; what is of one session is nobody else's, and gone with it."""
    for row in rows():
        clear(ALICE, row)
        with Sessions(lab, ALICE, row) as sessions:
            first, second, other = sessions.start(), sessions.start(), sessions.start("other")
            for name in ("unlisted", "deep/er/unlisted", f"{row.transcripts}/unlisted"):
                first.ask(f"put('{row.state}/{name}', 'of the project') and 1")
                equal(second.ask(f"get('{row.state}/{name}')"), "of the project", f"{row.name}: {name}")
                equal(other.ask(f"get('{row.state}/{name}')"), "FileNotFoundError", f"{row.name}: {name}")
                holds(not os.path.lexists(f"{ALICE.home}/{row.state}/{name}"), f"{row.name}: {name} is outside")
            private = [name for name in row.session if name.endswith("/")]
            for name in private:
                first.ask(f"put('{row.state}/{name}x', 'of the session') and 1")
                equal(second.ask(f"listing('{row.state}/{name}')"), [], f"{row.name}: {name}")
            sessions.end()
        wait_for(lambda: not lab.sessions(), "all are gone")
        with Sessions(lab, ALICE, row) as sessions:
            again, other = sessions.start(), sessions.start("other")
            equal(again.ask(f"get('{row.state}/deep/er/unlisted')"), "of the project", row.name)
            equal(other.ask(f"get('{row.state}/deep/er/unlisted')"), "FileNotFoundError", row.name)
            for name in private:
                equal(again.ask(f"listing('{row.state}/{name}')"), [], f"{row.name}: {name}")
            sessions.end()


@test(60, needs="bus")
def either_side_goes_on_with_the_others_transcripts(lab):
    for row in rows():
        cwd = lab.workspace(ALICE)
        own, others = row.transcripts_of(cwd), row.transcripts_of(lab.workspace(ALICE, "other"))
        if not own:
            continue
        # Begun inside, where the host has none of this workspace, and where it has.
        for n in range(2):
            if n == 0:
                clear(ALICE, row)
            machine.write(f"{ALICE.home}/{row.state}/{others}/secret.jsonl", "of another\n", 0o600, ALICE)
            with Sessions(lab, ALICE, row) as sessions:
                agent = sessions.start()
                equal(agent.ask(f"listing('{row.state}/{others}')"), None, f"{row.name}: another project's")
                agent.ask(f"put('{row.state}/{own}/inside-{n}.jsonl', 'inside') and 1")
                sessions.end()
            wait_for(lambda: not lab.sessions(), "it is gone")
            with open(f"{ALICE.home}/{row.state}/{own}/inside-{n}.jsonl", encoding="ascii") as f:
                equal(f.read(), "inside", row.name)
        # Begun outside: seen inside, gone on with there, and again outside, at once.
        path = f"{ALICE.home}/{row.state}/{own}/outside.jsonl"
        machine.write(path, "outside\n", 0o600, ALICE)
        with Sessions(lab, ALICE, row) as sessions:
            agent = sessions.start()
            equal(agent.ask(f"get('{row.state}/{own}/outside.jsonl')"), "outside\n", row.name)
            agent.ask(f"open(HOME + '/{row.state}/{own}/outside.jsonl', 'a').write('inside')")
            with open(path, encoding="ascii") as f:
                equal(f.read(), "outside\ninside", row.name)
            sessions.end()


@test(60, needs="bus")
def all_history_is_shown_where_the_configuration_says_so(lab):
    for row in rows():
        clear(ALICE, row)
        others = f"{row.transcripts}/-home-alice-elsewhere"
        machine.write(f"{ALICE.home}/{row.state}/{others}/x.jsonl", "of another\n", 0o600, ALICE)
        for text, wanted in (("", "FileNotFoundError"), ("history = all\n", "of another\n"),
                             ("history = project\n", "FileNotFoundError")):
            lab.configure(text)
            with Sessions(lab, ALICE, row) as sessions:
                agent = sessions.start()
                equal(agent.ask(f"get('{row.state}/{others}/x.jsonl')"), wanted, f"{row.name}: {text}")
                # And no more than that.
                agent.ask(f"put('{row.state}/unlisted', 'x') and 1")
                sessions.end()
            holds(not os.path.lexists(f"{ALICE.home}/{row.state}/unlisted"), f"{row.name}: {text}")
            wait_for(lambda: not lab.sessions(), "it is gone")
            lab.restore()


# ---- transcripts by date ----

def rollout(cwd, *lines):
    first = {"timestamp": "2026-12-01T10:00:00Z", "type": "session_meta", "payload": {"id": "x", "cwd": cwd}}
    return "".join(json.dumps(line) + "\n" for line in (first, *lines))


def dated(row, n, day="2026/12/01"):
    return f"{row.state}/{row.transcripts}/{day}/rollout-2026-12-01T10-00-{n}.jsonl"


def the_dated():
    found = [row for row in rows() if row.kept == "DATED"]
    holds(found, "an agent keeps its transcripts by date")
    return found


@test(60, needs="bus")
def transcripts_by_date_are_copied_both_ways(lab):
    for row in the_dated():
        clear(ALICE, row)
        cwd, other = lab.workspace(ALICE), lab.workspace(ALICE, "other")

        def host(name):
            return load(f"{ALICE.home}/{name}")

        begun = rollout(cwd)
        machine.write(f"{ALICE.home}/{dated(row, 'outside')}", begun, 0o600, ALICE)
        machine.write(f"{ALICE.home}/{dated(row, 'below')}", rollout(f"{cwd}/.below"), 0o600, ALICE)
        hidden = {"other": rollout(other), "above": rollout(f"{cwd}/../other"), "near": rollout(f"{cwd}2"), "none": "no line",
                  "twice": rollout(other).replace('"cwd"', f'"cwd": "{cwd}", "cwd"')}
        for name, text in hidden.items():
            machine.write(f"{ALICE.home}/{dated(row, name)}", text, 0o600, ALICE)
        machine.write(f"{ALICE.home}/{row.state}/{row.transcripts}/2026/12/01/notes", begun, 0o600, ALICE)
        # What an agent plants for the host, each in a place of its own.
        planted = {dated(row, "planted-other"): rollout(other), dated(row, "planted-none"): "x\n",
                   dated(row, "x").replace(".jsonl", ".txt"): begun, dated(row, "a b"): begun,
                   dated(row, "deep", "2026/12/01/02"): begun, dated(row, "day", "2026/12/day"): begun,
                   f"{row.state}/{row.transcripts}/notes": begun}
        with Sessions(lab, ALICE, row) as sessions:
            agent = sessions.start()
            equal(agent.ask(f"listing('{os.path.dirname(dated(row, 'x'))}')"),
                  sorted(os.path.basename(dated(row, name)) for name in ("outside", "below")), row.name)
            equal(agent.ask(f"get('{dated(row, 'outside')}')"), begun, row.name)
            longer = rollout(cwd, {"inside": 1})
            agent.ask(f"put('{dated(row, 'outside')}', {longer!r}) and 1")
            agent.ask(f"put('{dated(row, 'inside', '2026/12/02')}', {begun!r}) and 1")
            agent.ask(f"put('{dated(row, 'below')}', 'shorter') and 1")
            for name, text in planted.items():
                agent.ask(f"put('{name}', {text!r}) and 1")
            agent.ask(f"os.symlink('/etc/passwd', HOME + '/{dated(row, 'link')}')")
            agent.ask(f"os.mkfifo(HOME + '/{dated(row, 'fifo')}')")
            agent.ask(f"os.symlink('/etc', HOME + '/{row.state}/{row.transcripts}/2027')")
            equal(host(dated(row, "outside")), begun, "a copy, not the same file")
            sessions.end()
        wait_for(lambda: not lab.sessions(), "it is gone")
        equal((host(dated(row, "outside")), host(dated(row, "inside", "2026/12/02"))), (longer, begun), row.name)
        equal(host(dated(row, "below")), rollout(f"{cwd}/.below"), "the longer one wins")
        wanted = {dated(row, name) for name in ("outside", "below", *hidden)} | {dated(row, "inside", "2026/12/02")}
        wanted.add(f"{row.state}/{row.transcripts}/2026/12/01/notes")
        found = {os.path.relpath(f"{directory}/{name}", ALICE.home)
                 for directory, names, files in os.walk(f"{ALICE.home}/{row.state}/{row.transcripts}")
                 for name in [*files, *[one for one in names if os.path.islink(f"{directory}/{one}")]]}
        equal(found, wanted, row.name)
        # The host's longer one comes in; what was deleted there stays deleted.
        longest = rollout(cwd, {"inside": 1}, {"outside": 2})
        machine.write(f"{ALICE.home}/{dated(row, 'outside')}", longest, 0o600, ALICE)
        os.unlink(f"{ALICE.home}/{dated(row, 'inside', '2026/12/02')}")
        with Sessions(lab, ALICE, row) as sessions:
            equal(sessions.start().ask(f"get('{dated(row, 'outside')}')"), longest, row.name)
            sessions.end()
        wait_for(lambda: not lab.sessions(), "it is gone")
        equal(host(dated(row, "inside", "2026/12/02")), None, "it was deleted outside")


@test(60, needs="bus")
def copies_of_transcripts_are_bounded(lab):
    """The newest are there, and one line says that others are not."""
    for row in the_dated():
        clear(ALICE, row)
        cwd = lab.workspace(ALICE)
        for n in range(205):
            machine.write(f"{ALICE.home}/{dated(row, f'{n:03}')}", rollout(cwd), 0o600, ALICE)
        for _ in range(2):
            with Sessions(lab, ALICE, row, stderr=subprocess.PIPE) as sessions:
                agent = sessions.start()
                names = agent.ask(f"listing('{os.path.dirname(dated(row, 'x'))}')")
                equal(names, [os.path.basename(dated(row, f"{n:03}")) for n in range(5, 205)], row.name)
                agent.process.stdin.close()
                err = agent.process.stderr.read().decode()
                holds(err.count("\n") == 1 and "only the newest sessions of this workspace" in err, err)
                equal(agent.process.wait(20), 0)
                sessions.running.remove(agent)
            wait_for(lambda: not lab.sessions(), "it is gone")


@test(60, needs="bus")
def state_on_another_file_system_is_copied(lab):
    for row in rows():
        own = row.transcripts_of(lab.workspace(ALICE)) or f"{row.transcripts}/2026/12/01"
        text = rollout(lab.workspace(ALICE))
        clear(ALICE, row)
        place = f"{ALICE.home}/{row.state}"
        system.mount("elsewhere", place, "tmpfs", system.MS_NODEV | system.MS_NOSUID, f"uid={ALICE.uid},gid={ALICE.gid},mode=0700")
        lab.undo.append(lambda place=place: system.unmount(place))
        made = {f"{row.directories[0]}/new/deep/file": "x", f"{own}/rollout-x.jsonl": text}
        with Sessions(lab, ALICE, row) as sessions:
            agent = sessions.start()
            for name, content in made.items():
                agent.ask(f"put('{row.state}/{name}', {content!r}) and 1")
            agent.ask(f"os.symlink('new', HOME + '/{row.state}/{row.directories[0]}/link')")
            sessions.end()
        wait_for(lambda: not lab.sessions(), "it is gone")
        for name, content in made.items():
            equal(load(f"{place}/{name}"), content, f"{row.name}: {name}")
        equal(os.readlink(f"{place}/{row.directories[0]}/link"), "new", row.name)
        # It was moved: what the person removes stays removed.
        shutil.rmtree(f"{place}/{row.directories[0]}")
        with Sessions(lab, ALICE, row) as sessions:
            equal(sessions.start().ask(f"get('{row.state}/{own}/rollout-x.jsonl')"), text, row.name)
            sessions.end()
        wait_for(lambda: not lab.sessions(), "it is gone")
        holds(not os.path.exists(f"{place}/{row.directories[0]}"), f"{row.name}: it came back")
        lab.restore()


# ---- files of the account ----

def load(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return None


def save(user, path, text):
    """As an agent outside does it."""
    machine.write(f"{path}.tmp", text, 0o600, user)
    os.rename(f"{path}.tmp", path)


def merged(text):
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


@test(120, needs="bus")
def files_of_the_account_are_the_same_everywhere(lab):
    """Two workspaces and an agent outside: each change of one is everywhere, in order, and none is lost."""
    late = []
    for row in rows():
        clear(ALICE, row)
        for name in row.files:
            machine.write(host_path(ALICE, row, name), text_of(name), 0o600, ALICE)
        with Sessions(lab, ALICE, row) as sessions:
            agents = [sessions.start(), sessions.start("other")]

            def inside(agent, name):
                return agent.ask(f"get('{row.state}/{name}')")

            def has(text, wanted):
                found = merged(text)
                return text == wanted if isinstance(wanted, str) else found is not None and wanted.items() <= found.items()

            texts, keys = {}, {}
            for who in ("first", "second", "outside", "second", "outside", "first"):
                n, since = len(keys), seconds()
                keys[f"{who}-{n}"] = n
                for name in row.files:
                    path = host_path(ALICE, row, name)
                    if name.endswith(".json"):
                        texts[name] = keys
                        text = json.dumps({**json.loads(load(path)), f"{who}-{n}": n})
                    else:
                        texts[name] = text = f"of {who}, {n}\n"
                    if who == "outside":
                        save(ALICE, path, text)
                    else:
                        agents[who == "second"].ask(f"put('{row.state}/{name}', {text!r})")
                for name, wanted in texts.items():
                    what = f"{row.name}: {name}, {who}-{n}"
                    wait_for(lambda: has(load(host_path(ALICE, row, name)), wanted), f"{what}: outside", 20)
                    for agent in agents:
                        wait_for(lambda: has(inside(agent, name), wanted), f"{what}: inside", 20)
                late.append(seconds() - since)
            # A logout, on either side.
            for name in row.files[:2]:
                agents[0].ask(f"os.unlink(HOME + '/{row.state}/{name}')")
                wait_for(lambda: load(host_path(ALICE, row, name)) is None, f"{row.name}: {name} is gone outside", 20)
                wait_for(lambda: inside(agents[1], name) == "FileNotFoundError", f"{row.name}: {name} is gone in the other", 20)
            for name in row.files[2:4]:
                os.unlink(host_path(ALICE, row, name))
                for agent in agents:
                    wait_for(lambda: inside(agent, name) == "FileNotFoundError", f"{row.name}: {name} is gone inside", 20)
            sessions.end()
        wait_for(lambda: not lab.sessions(), "both are gone")
        for name in row.files[:4]:
            holds(load(host_path(ALICE, row, name)) is None, f"{row.name}: {name} has come back")
    late.sort()
    print(f"     a change of every file is everywhere after {late[len(late) // 2] * 1000:.0f} ms (median of {len(late)}, "
          f"at most {late[-1] * 1000:.0f} ms)", flush=True)


@test(60, needs="bus")
def locks_hold_on_both_sides(lab):
    for row in rows():
        clear(ALICE, row)
        fill(ALICE, row)
        with Sessions(lab, ALICE, row) as sessions:
            agents = [sessions.start(), sessions.start("other")]
            for name in row.locks:
                # Around the file in the home the session itself takes it on both sides, and merges what both saved.
                if name == f"{row.home_file}.lock":
                    continue
                path = host_path(ALICE, row, name)
                there = f"os.path.lexists(HOME + '/{row.state}/{name}')"
                # Held outside.
                os.makedirs(path)
                os.chown(path, ALICE.uid, ALICE.gid)
                for agent in agents:
                    wait_for(lambda: agent.ask(there), f"{row.name}: {name} is seen inside", 20)
                    equal(agent.ask(f"attempt(os.mkdir, HOME + '/{row.state}/{name}')"), False, f"{row.name}: {name}")
                os.rmdir(path)
                for agent in agents:
                    wait_for(lambda: not agent.ask(there), f"{row.name}: {name} is let go inside", 20)
                # Held inside.
                agents[0].ask(f"os.mkdir(HOME + '/{row.state}/{name}')")
                wait_for(lambda: os.path.lexists(path), f"{row.name}: {name} is seen outside", 20)
                wait_for(lambda: agents[1].ask(there), f"{row.name}: {name} is seen by another session", 20)
                agents[0].ask(f"os.rmdir(HOME + '/{row.state}/{name}')")
                wait_for(lambda: not os.path.lexists(path), f"{row.name}: {name} is let go outside", 20)
                wait_for(lambda: not agents[1].ask(there), f"{row.name}: {name} is let go by another session", 20)
            sessions.end()
