# SPDX-License-Identifier: MIT
"""What a mask lies on stays in its place, whatever mount namespaces an agent makes."""

import errno
import os
import shutil
import subprocess

import machine
from bus_cases import Held
from case import equal, holds, test, wait_for
from hostile_cases import own
from listener_cases import Listener, before_bwrap, times_of
from machine import ALICE, ROOT, TOOLS
from verify_cases import verify

SESSION = "/usr/libexec/claude-sandbox/session"
UNMASK = f"{TOOLS}/unmask"
NAMESPACES = {"copy", "pivot", "pivot-in-place", "twice", "above"}      # that ordinary agents can make
CLOSED = {"bare-bind", "open-tree", "open-tree-plain", "open-tree-attr", "fsmount", "unshare-empty", "unshare-empty-plain",
          "clone-empty"}
TRIES = {"exchange", "exchange-back", "rename-over", "rename-away", "remove"}


def things(directory):
    """What has which name there, and how much is in it; links are not followed."""
    found = {}
    for path, directories, names in os.walk(directory):
        for name in directories + names:
            full = os.path.join(path, name)
            try:
                status = os.lstat(full)
            except FileNotFoundError:        # it went meanwhile
                continue
            found[full] = (status.st_ino, status.st_mode, status.st_uid)
    return found


def outcomes(result):
    """{how the namespace was made: {what was tried: the answer}}"""
    equal(result.status, 0, repr(result))
    found = {}
    for line in result.out.decode().splitlines():
        way, what, word = line.split(" ", 2)
        found.setdefault(way, {})[what] = word
    return found


def stays(result, what, namespaces=True):
    """Everything was tried, and nothing could be done."""
    found = outcomes(result)
    equal(set(found), NAMESPACES | CLOSED | {"jail"}, what)
    equal(found["jail"], dict.fromkeys(TRIES, "EBUSY"), f"{what}: in the jail's own namespace")
    for way in NAMESPACES:
        equal(found[way], dict.fromkeys(TRIES, "EBUSY") if namespaces else {"no-namespace": "EPERM"}, f"{what}: {way}")
    for way in CLOSED:
        holds(set(found[way]) == {"no-namespace"}, f"{what}: {way}: {found[way]}")


@test(60, needs="bus")
def outside_the_attempts_succeed(lab):
    """The program that the other tests believe: without anything that holds, each of them does what it says."""
    share = f"{ALICE.home}/.local/share/uv"
    own(ALICE, f"{ALICE.home}/.local", f"{ALICE.home}/.local/share", share, f"{share}/tools")
    found = outcomes(lab.run([UNMASK, share, "tools"], ALICE))
    for name in ("tools", "away-by-a-test"):
        shutil.rmtree(f"{share}/{name}", ignore_errors=True)
    for way in NAMESPACES | {"jail"}:
        equal(found[way], dict.fromkeys(TRIES, "done"), way)


@test(90, needs="bus")
def masked_places_stay_in_every_namespace(lab):
    """Directories of the home's, those that are there and those that the session made; agents' programs; sockets' covers."""
    share = f"{ALICE.home}/.local/share/uv"
    own(ALICE, f"{ALICE.home}/.local", f"{ALICE.home}/.local/share", share, f"{share}/tools", f"{ALICE.home}/.claude",
        f"{ALICE.home}/.claude/local")
    machine.write(f"{ALICE.home}/.claude/local/claude", "mine", 0o644, ALICE)
    shutil.rmtree(f"{share}/tools")      # the session makes it
    with Held(lab, ALICE) as other:
        before = things(ALICE.home)
        result = lab.shell(f"{UNMASK} {share} tools")
        stays(result, "tools")
        equal(result.err, b"")
        lab.install_agent(ALICE, "claude", source=UNMASK)
        for name in ("local", "jobs"):
            result = lab.run(["/usr/local/bin/claude", f"{ALICE.home}/.claude", name], ALICE)
            stays(result, name)
            equal(result.err, b"")
        lab.remove_agent(ALICE, "claude")
        after = things(ALICE.home)
        for path in (share, f"{ALICE.home}/.claude/local"):
            equal({p: v for p, v in after.items() if p.startswith(path)},
                  {p: v for p, v in before.items() if p.startswith(path)}, path)
        equal(other.end(), 3)
        equal(other.process.stderr.read(), b"")


@test(60, needs="bus")
def covers_and_what_leads_to_them_stay_in_every_namespace(lab):
    """A listening socket in the workspace, and the directories on the way to it."""
    workspace = lab.workspace(ALICE, "unmasking")
    own(ALICE, f"{workspace}/run", f"{workspace}/run/deep")
    with Listener(f"{workspace}/run/deep/socket", ALICE):
        before = things(workspace)
        for directory, name in ((f"{workspace}/run/deep", "socket"), (f"{workspace}/run", "deep"), (workspace, "run")):
            stays(lab.shell(f"{UNMASK} {directory} {name}", cwd=workspace), name)
        equal(things(workspace), before)


@test(60, needs="bus")
def places_below_tmp_stay(lab):
    """Where bwrap, and what comes before it, mount something for a moment."""
    workspace = "/tmp/unmasking"
    own(ALICE, workspace, f"{workspace}/run")
    lab.undo.append(lambda: shutil.rmtree(workspace))
    with Listener(f"{workspace}/run/socket", ALICE):
        stays(lab.shell(f"{UNMASK} {workspace}/run socket", cwd=workspace), "below /tmp")


@test(60, needs="bus")
def sessions_without_namespaces_have_them_too(lab):
    """Root's: the places hold, and no namespace can be made."""
    share = f"{ROOT.home}/.local/share/uv"
    own(ROOT, f"{ROOT.home}/.local", f"{ROOT.home}/.local/share", share, f"{share}/tools")
    before = things(share)
    stays(lab.shell(f"{UNMASK} {share} tools", ROOT), "root", namespaces=False)
    equal(things(share), before)


@test(60, needs="bus")
def other_names_are_the_agents(lab):
    """What is not masked can be made, moved and removed, from a namespace of the agent's too; bwrap works in bwrap."""
    share = f"{ALICE.home}/.local/share/uv"
    own(ALICE, f"{ALICE.home}/.local", f"{ALICE.home}/.local/share", share, f"{share}/tools")
    lab.shell(f"cd {share} && mkdir mine && mv mine other && echo x > other/file && rm -r other").ok()
    nested = ("bwrap --unshare-user --unshare-pid --unshare-ipc --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp"
              f" --bind {share} {share}")
    result = lab.shell(f"{nested} sh -c 'cd {share} && mkdir mine && mv mine other && ls tools && rmdir other && echo done';"
                       f" {nested} {nested} echo deep").ok()
    equal(result.out, b"done\ndeep\n")


@test(60, needs="bus")
def the_person_may_replace_what_is_masked(lab):
    """From outside nothing is held: the session ends, what the person put there stays, and what was there too."""
    share = f"{ALICE.home}/.local/share/uv"
    own(ALICE, f"{ALICE.home}/.local", f"{ALICE.home}/.local/share", share, f"{share}/tools", f"{share}/mine")
    machine.write(f"{share}/mine/ruff", "new", 0o644, ALICE)
    with Held(lab, ALICE) as held:
        wanted = os.lstat(f"{share}/mine").st_ino, os.lstat(f"{share}/tools").st_ino
        lab.run(["/bin/mv", f"{share}/tools", f"{share}/tools.old"], ALICE).ok()
        lab.run(["/bin/mv", f"{share}/mine", f"{share}/tools"], ALICE).ok()
        equal(held.process.wait(10), -9)
        equal(held.process.stderr.read().decode(),
              f"claude-sandbox: the session was ended: {share}/tools is hidden from the agent, and was replaced from outside, "
              "which uncovers it; start it anew\n")
    equal((os.lstat(f"{share}/tools").st_ino, os.lstat(f"{share}/tools.old").st_ino), wanted)
    shutil.rmtree(f"{share}/tools.old")
    wait_for(lambda: not lab.sessions(), "nothing of it stays")


@test(60, needs="bus")
def places_that_cannot_be_held_refuse(lab):
    """No mount namespace, no mounts, no other root: with the cause; and the next launch works."""
    share = f"{ALICE.home}/.local/share/uv"
    own(ALICE, f"{ALICE.home}/.local", f"{ALICE.home}/.local/share", share, f"{share}/tools")
    before = things(ALICE.home)
    mounts = "no mount namespace can be made"
    for words, number, *causes in (("unshare {} 6 131072", errno.EPERM, mounts, "Operation not permitted"),
                                   ("unshare {} 6 131072", errno.ENOSPC, "user.max_mnt_namespaces"),
                                   ("mount {}", errno.EPERM, mounts, "Operation not permitted"),
                                   ("pivot_root {}", errno.EINVAL, "the root cannot be moved: Invalid argument"),
                                   ("chroot {}", errno.EPERM, "the root cannot be moved: Operation not permitted")):
        lab.wrap(SESSION, "fail " + words.format(number))
        lab.shell("echo STARTED").refused(125, *causes)
        lab.restore()
        lab.shell("true").ok()
    wait_for(lambda: not lab.sessions(), "nothing of them stays")
    equal({path: value for path, value in things(share).items() if before.get(path) != value}, {})


@test(60, needs="bus")
def what_is_replaced_before_it_is_masked_is_masked_anew(lab):
    """After the place was held and before bwrap mounted its mask: that would lie on what nothing holds. No agent sees it."""
    share = f"{ALICE.home}/.local/share/uv"
    own(ALICE, f"{ALICE.home}/.local", f"{ALICE.home}/.local/share", share, f"{share}/tools", f"{share}/mine")
    machine.write(f"{share}/mine/secret", "SECRET", 0o644, ALICE)
    count = before_bwrap(lab, f"mv {share}/tools {share}/tools.old; mv {share}/mine {share}/tools")
    equal(lab.shell(f"ls -A {share}/tools; echo ran").ok().out, b"ran\n")
    equal(times_of(count), 2, "bwrap ran")
    os.unlink(f"{share}/tools/secret")
    lab.restore()
    shutil.rmtree(f"{share}/tools.old")
    lab.shell("true").ok()


@test(60, needs="bus")
def tools_of_uv_run_and_stay(lab):
    """What 'uv tool install' has made works by its link, next to what the agent installs for itself; logins are hidden."""
    for user in (ALICE, ROOT):
        share = f"{user.home}/.local/share/uv"
        machine.write(f"{share}/tools/ruff/bin/ruff", "#!/bin/sh\necho formatted\n", 0o755, user)
        machine.write(f"{share}/tools/.lock", "", 0o600, user)
        machine.write(f"{share}/credentials/credentials.toml", "password\n", 0o600, user)
        own(user, f"{user.home}/.local/bin")
        os.symlink("../share/uv/tools/ruff/bin/ruff", f"{user.home}/.local/bin/ruff")
        lab.undo += [lambda user=user: os.unlink(f"{user.home}/.local/bin/ruff"), lambda share=share: shutil.rmtree(share)]
        script = (f"~/.local/bin/ruff; cd {share}; echo x > tools/.lock && mkdir tools/black && echo installed; "
                  "for c in 'touch tools/ruff/bin/ruff' 'mv tools/ruff tools/other' 'rm -r tools/ruff' 'mv tools other' "
                  "'cat credentials/credentials.toml'; do $c 2> /dev/null && echo \"$c\"; done; exit 7")
        result = lab.shell(script, user)
        equal((result.status, result.out), (7, b"formatted\ninstalled\n"), str(user))
        equal(sorted(os.listdir(f"{share}/tools")), [".lock", "ruff"], str(user))
        equal(os.stat(f"{share}/tools/.lock").st_size, 0, str(user))
        equal(os.listdir(f"{share}/tools/ruff/bin"), ["ruff"], str(user))
        verify(lab, "--probes", "shell", user=user, limit=60).passes()


@test(60, needs="bus")
def what_the_host_mounts_later_stays_outside(lab):
    """A disk that comes while an agent runs would be as the host has it: writable. What is there stays read-only."""
    script = "echo ready; read x; touch /srv/late/written 2>&1; touch /srv/early/written 2>&1; ls /srv/early /srv/late; exit 3"
    own(ROOT, "/srv/late", "/srv/early")
    subprocess.run(["/bin/mount", "--make-rshared", "/"], check=True)
    lab.undo.append(lambda: subprocess.run(["/bin/mount", "--make-rprivate", "/"], check=True))
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "mode=1777", "early", "/srv/early"], check=True)
    lab.undo.append(lambda: subprocess.run(["/bin/umount", "/srv/early"], check=True))
    machine.write("/srv/early/file", "early")
    for user in (ALICE, ROOT):
        with Held(lab, user, script) as held:
            subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "mode=1777", "late", "/srv/late"], check=True)
            try:
                machine.write("/srv/late/file", "late")
                said, _ = held.process.communicate(b"\n", timeout=10)
                equal(os.listdir("/srv/late"), ["file"], f"{user}: on the host")
            finally:
                subprocess.run(["/bin/umount", "/srv/late"], check=True)
        lines = said.decode().splitlines()
        equal(lines[2:], ["/srv/early:", "file", "", "/srv/late:"], f"{user}: {said!r}")
        holds(all("Read-only file system" in line for line in lines[:2]) or "Permission denied" in lines[0], f"{user}: {said!r}")


@test(90, needs="bus")
def what_the_host_unmounts_is_nobody_elses(lab):
    """A jail keeps the mounts of its start: that is no mount which the plan does not have. And /mnt is hidden."""
    os.makedirs("/srv/disk", exist_ok=True)
    os.makedirs("/mnt/disk", exist_ok=True)
    for place in ("/srv/disk", "/mnt/disk"):
        subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "mode=755", "disk", place], check=True)
        machine.write(f"{place}/file", "file")
    for user in (ALICE, ROOT):
        if not os.path.ismount("/srv/disk"):
            subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "mode=755", "disk", "/srv/disk"], check=True)
        equal(lab.shell("ls -A /mnt", user).ok().out, b"", str(user))
        with Held(lab, user) as held:
            subprocess.run(["/bin/umount", "/srv/disk"], check=True)
            verify(lab, held.id, user=user).passes()
            equal(held.end(), 3)
    # A project on such a disk is shown, and the disk alone.
    os.makedirs("/mnt/disk/project")
    os.chown("/mnt/disk/project", ALICE.uid, ALICE.gid)
    equal(lab.shell("touch new; ls -A /mnt/disk /mnt/disk/project", cwd="/mnt/disk/project").ok().out,
          b"/mnt/disk:\nproject\n\n/mnt/disk/project:\nnew\n")
    wait_for(lambda: not lab.sessions(), "nothing of it stays")
    wait_for(lambda: subprocess.run(["/bin/umount", "/mnt/disk"], check=False).returncode == 0, "nobody is there any more")
    os.rmdir("/mnt/disk")
    os.rmdir("/srv/disk")
