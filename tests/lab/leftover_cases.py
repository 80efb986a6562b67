# SPDX-License-Identifier: MIT
"""What an agent changes that a later launch, or the machine, takes for granted: modes, second names, leases."""

import os
import subprocess

import machine
from case import SANDBOX, equal, holds, test
from hostile_cases import own
from listener_cases import Listener
from machine import ALICE, PROBE, ROOT


@test(needs="bus")
def homes_are_hidden_wherever_they_are_mounted(lab):
    """A second mount of a home, or of what /etc lies on, is one more name for all that is kept from agents."""
    for user in (ALICE, ROOT):
        machine.write(f"{user.home}/.ssh/id", "SECRET", 0o600, user)
        for path in ("/home", "/root", "/etc", "/tmp", "/run", "/var/tmp"):
            second = f"/srv/second{path}"
            os.makedirs(second, exist_ok=True)
            subprocess.run(["/bin/mount", "--bind", path, second], check=True)
        try:
            script = (f"cat /srv/second{user.home}/.ssh/id /srv/second/etc/shadow; cd /srv/second;"
                      " find home tmp run var/tmp/claude-agent -mindepth 1; echo tried")
            result = lab.shell(script, user)
            equal((result.status, result.out), (0, b"tried\n"), f"{user}: {result!r}")
            # a project is one all the same, and a home is none
            project = f"/srv/second{lab.workspace(user, 'twice')}"
            equal(lab.shell(f"touch new && ls; cat /srv/second{user.home}/.ssh/id 2>&1 | grep -c SECRET; true", user, cwd=project).ok().out,
                  b"new\n0\n", str(user))
            lab.shell("echo ran", user, cwd=f"/srv/second{user.home}").refused(125, "home directory")
        finally:
            for path in ("/home", "/root", "/etc", "/tmp", "/run", "/var/tmp"):
                subprocess.run(["/bin/umount", "-l", f"/srv/second{path}"], check=True)
            subprocess.run(["/bin/rm", "-rf", f"{user.home}/.ssh", f"{user.home}/twice"], check=True)


@test(needs="bus")
def devices_of_the_machine_stay_as_they_are(lab):
    """In root's jail uid 0 owns /dev/null. The modes that are tried are those that stand there."""
    script = ("for d in /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty; do"
              " chmod $(stat -c %a $d) $d 2>/dev/null && echo chmod $d; touch -r $d $d 2>/dev/null && echo touch $d;"
              " chown 0:0 $d 2>/dev/null && echo chown $d; done; echo text >/dev/null && head -c 1 /dev/zero | wc -c")
    handed_in = ("exec /usr/bin/python3 -c 'import os\nfor fd in (0, 2):\n try: os.fchmod(fd, os.fstat(fd).st_mode & 0o7777)\n"
                 " except OSError: continue\n print(\"fchmod\", fd)\nprint(os.read(0, 1), os.write(2, b\"text\"))'")
    for user in (ROOT, ALICE):
        equal(lab.shell(script, user).ok().out, b"1\n", str(user))
        for name, answer_of_it in (("null", b"b''"), ("zero", b"b'\\x00'")):
            with open(f"/dev/{name}", "r+b", buffering=0) as device:
                process = lab.start([SANDBOX, "shell", "-c", handed_in], user, stdin=device, stdout=subprocess.PIPE, stderr=device)
                equal((process.communicate(timeout=20)[0], process.returncode), (answer_of_it + b" 4\n", 0), f"{user}: {name}")


@test(needs="bus")
def nobody_waits_for_an_agents_lease(lab):
    """Who owns a file may have a lease on it where it can only be read: whoever opens it then waits for 45 s."""
    script = ("import fcntl, os\nfor path in ('/etc/passwd', '/etc/claude-sandbox.conf', '/etc/claude-gitconfig'):\n"
              " try: fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
              " except OSError: continue\n print('lease', path)\nprint('tried')")
    lab.configure("")
    for user in (ROOT, ALICE):
        equal(lab.shell("exec /usr/bin/python3 -c \"$0\"", user, arguments=(script,)).ok().out, b"tried\n", str(user))


def closed_and_opened(lab, user, mode, share, cache, codex):
    machine.write(f"{share}/tools/key", "SECRET", 0o600, user)
    machine.write(f"{codex}/packages/program", "SECRET", 0o700, user)
    own(user, f"{user.home}/.local", f"{user.home}/.local/share", share, f"{share}/tools", f"{user.home}/.cache", cache, codex, f"{codex}/packages")
    with Listener(f"{cache}/s", user):
        lab.shell(f"chmod {mode} ~/.local/share/uv ~/.cache/shut", user)
        if mode == "500":      # what is missing could not be made to be hidden
            subprocess.run(["/bin/rm", "-rf", f"{share}/tools"], check=True)
        script = ("chmod 700 ~/.local/share/uv ~/.cache/shut; cat ~/.local/share/uv/tools/key; mkdir -p ~/.local/share/uv/tools/evil;"
                  f" {PROBE} connect {cache}/s; exit 0")
        result = lab.shell(script, user)
        holds(b"SECRET" not in result.out and b"connected" not in result.out, f"{user} {mode}: {result!r}")
        holds(b"chmod u+rwx" in result.err or mode == "500" and user is ROOT, f"{user} {mode}: {result!r}")
        holds(not os.path.exists(f"{share}/tools/evil"), f"{user} {mode}: planted")
        # the socket's own mode is its owner's as well
        os.chmod(cache, 0o700)
        os.chmod(f"{cache}/s", 0)
        os.chmod(share, 0o700)
        result = lab.shell(f"chmod 700 ~/.cache/shut/s; {PROBE} connect {cache}/s; exit 0", user)
        holds(b"connected" not in result.out, f"{user} {mode}: {result!r}")
    # Of this the agent has its own; what it did to the mode of that does not matter either.
    os.chmod(codex, int(mode, 8))
    lab.run(["/usr/local/bin/codex", "-c", f"chmod {mode} ~/.codex"], user)
    result = lab.run(["/usr/local/bin/codex", "-c", "chmod 700 ~/.codex; cat ~/.codex/packages/program; touch ~/.codex/packages/new"],
                     user)
    holds(b"SECRET" not in result.out and not os.path.exists(f"{codex}/packages/new"), f"{user} {mode}: {result!r}")


@test(60, needs="bus")
def modes_take_no_mask_away(lab):
    """An agent closes a directory of its person's; the next one opens it, and would find what no mask lies on."""
    for user in (ALICE, ROOT):
        machine.write(f"{user.home}/.local/bin/codex", "#!/bin/bash\nshift 2; exec /bin/bash \"$@\"\n", 0o755, user)
        share, cache, codex = f"{user.home}/.local/share/uv", f"{user.home}/.cache/shut", f"{user.home}/.codex"
        for mode in ("000", "500"):
            try:
                closed_and_opened(lab, user, mode, share, cache, codex)
            finally:
                subprocess.run(["/bin/rm", "-rf", share, cache, codex], check=True)
        lab.remove_agent(user, "codex")
