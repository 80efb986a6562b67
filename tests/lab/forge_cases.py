# SPDX-License-Identifier: MIT
"""`gh-auth` and `glab-auth`: where a token comes from, where it goes, and where it is never seen."""

import glob
import json
import os
import shutil
import signal
import stat
import termios

import machine
from case import SANDBOX, equal, holds, test, wait_for
from machine import ALICE, ROOT

TOKEN = "ghp_0123456789abcdefABCDEF0123456789abcd"
GH = f"{ALICE.home}/.config/gh"
GLAB = f"{ALICE.home}/.config/glab-cli"
LOG = "/run/lab-forge"

# In the place of gh and glab: notes how it was started, adds a host to its file as the real one does.
TOOL = """#!/usr/bin/python3
import json, os, sys
token = sys.stdin.read()
opened = sorted(os.listdir("/proc/self/fd"))[:-1]
with open("/run/lab-forge", "w", encoding="utf-8") as f:
    json.dump({"arguments": sys.argv, "environment": dict(os.environ), "token": token, "directory": os.getcwd(),
               "descriptors": opened,
               "parent": open("/proc/%d/cmdline" % os.getppid(), encoding="utf-8").read()}, f)
place, name = (os.environ["GH_CONFIG_DIR"], "hosts.yml") if "GH_CONFIG_DIR" in os.environ else (
    os.environ["GLAB_CONFIG_DIR"], "config.yml")
os.makedirs(place + "/deep/er")
open(place + "/deep/er/state.yml", "w", encoding="utf-8").close()
with open(f"{place}/{name}", "a", encoding="utf-8") as f:
    f.write(f"{sys.argv[4]}:\\n    oauth_token: {token.strip()}\\n    git_protocol: https\\n")
"""


def tool(lab, name="gh", text=TOOL):
    lab.replace(f"/usr/bin/{name}", text.encode(), 0o755)
    machine.write(LOG, "", 0o666)
    shutil.rmtree(GH, ignore_errors=True)
    shutil.rmtree(GLAB, ignore_errors=True)
    lab.undo.append(lambda: shutil.rmtree(f"{ALICE.home}/.config", ignore_errors=True))


def own(path, text, mode=0o600):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    for directory in (os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):
        os.chown(directory, ALICE.uid, ALICE.gid)
    machine.write(path, text, mode, ALICE)


def auth(lab, *words, token=TOKEN, **options):
    return lab.run([SANDBOX, *(words or ["gh-auth"])], ALICE, data=token if isinstance(token, bytes) else token.encode(), **options)


def content(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def nothing_left():
    equal(glob.glob("/tmp/claude-sandbox-forge.*"), [], "private directories")
    for directory in (GH, GLAB):
        if os.path.isdir(directory):
            equal([name for name in os.listdir(directory) if name.startswith(".")], [], directory)


@test(60, needs="bus")
def a_token_is_stored_for_sessions(lab):
    """From standard input into gh's own file, beside what is there; the tool sees it on a pipe alone."""
    tool(lab)
    own(f"{GH}/hosts.yml", "ghe.example:\n    oauth_token: other\n", 0o644)
    own(f"{GH}/config.yml", "editor: touch /tmp/x\n")
    env = lab.environment(ALICE, GH_TOKEN="elsewhere", GH_CONFIG_DIR="/srv", LD_PRELOAD="", https_proxy="http://proxy:1",
                          BROWSER="touch", DBUS_SESSION_BUS_ADDRESS="unix:path=/run/x")
    result = auth(lab, token=TOKEN + "\n", env=env).ok()
    equal(result.out.decode(), f"stored the token for github.com in {GH}/hosts.yml\n")
    equal(content(f"{GH}/hosts.yml"), f"ghe.example:\n    oauth_token: other\ngithub.com:\n    oauth_token: {TOKEN}\n"
                                      "    git_protocol: https\n")
    equal(content(f"{GH}/config.yml"), "editor: touch /tmp/x\n")
    info = os.stat(f"{GH}/hosts.yml")
    equal((stat.S_IMODE(info.st_mode), info.st_uid), (0o600, ALICE.uid))
    said = json.loads(content(LOG))
    equal(said["arguments"][1:], ["auth", "login", "--hostname", "github.com", "--with-token"])
    equal((said["token"], said["directory"], said["descriptors"]), (TOKEN + "\n", "/", ["0", "1", "2"]))
    given = said["environment"]
    equal(sorted({"GH_TOKEN", "LD_PRELOAD", "BROWSER", "USER"} & set(given)), [])
    equal((given["https_proxy"], given["DBUS_SESSION_BUS_ADDRESS"]), ("http://proxy:1", "disabled:"))
    holds(given["GH_CONFIG_DIR"].startswith("/tmp/claude-sandbox-forge.") and given["HOME"] == given["GH_CONFIG_DIR"], given)
    holds(TOKEN not in said["parent"] and TOKEN not in json.dumps(given), said)
    nothing_left()
    inside = lab.shell("cat ~/.config/gh/hosts.yml").ok()
    holds(TOKEN.encode() in inside.out, inside)


@test(60, needs="bus")
def a_token_of_gitlab(lab):
    tool(lab, "glab")
    own(f"{GLAB}/config.yml", "hosts:\n")
    equal(json.loads(auth(lab, "glab-auth", "--json").ok().out), {"host": "gitlab.com", "file": f"{GLAB}/config.yml"})
    equal(json.loads(content(LOG))["arguments"][1:], ["auth", "login", "--hostname", "gitlab.com", "--stdin"])
    result = auth(lab, "glab-auth", "git.example.org")
    equal(result.status, 0)
    holds(b"forge-host = git.example.org" in result.err and result.err.count(b"\n") == 1, result)
    lab.configure("forge-host = git.example.org\n")
    auth(lab, "glab-auth", "git.example.org").ok()
    lab.configure("no-forge\n")
    result = auth(lab, "glab-auth")
    holds(result.status == 0 and b"no-forge is set (/etc/claude-sandbox.conf:1)" in result.err, result)
    for host in ("https://x", "a b", "-x", "x.", "a..b", "X", "x:1", "x/y", "a" * 64):
        auth(lab, "glab-auth", "--", host).refused(2, "is no host's name")
    equal(stat.S_IMODE(os.stat(f"{GLAB}/config.yml").st_mode), 0o600)
    nothing_left()


@test(60, needs="bus")
def without_a_bus_a_token_is_stored(lab):
    """And a directory that was not there is made, for the person alone."""
    tool(lab)
    lab.hide("/run/dbus/system_bus_socket")
    result = auth(lab).ok()
    holds(b"sessions that run already do not see it" in result.out, result)
    equal(stat.S_IMODE(os.stat(GH).st_mode), 0o700)


@test(60, needs="bus")
def what_is_no_token(lab):
    tool(lab)
    for token in ("", "\n", "a b", "a\nb", "a\tb", "\x1b[2J", b"\xff", "a" * 2049, "a" * 100000, b"a\0b", "\u00e9"):
        auth(lab, token=token).refused(125, "hand")
        holds(not os.path.exists(GH), "nothing was made")
    equal(content(LOG), "", "no tool was started")
    auth(lab, token="a" * 2048 + "\r\n").ok()
    equal(json.loads(content(LOG))["token"], "a" * 2048 + "\n")


@test(60, needs="bus")
def hostile_stores_are_refused(lab):
    """What an agent may have left: links, pipes, floods. Nothing is followed, read or waited for."""
    tool(lab)
    victim = f"{ALICE.home}/forge-victim"
    own(f"{ALICE.home}/.config/gh/x", "")
    machine.write(victim, "mine\n", 0o600, ALICE)
    lab.undo.append(lambda: os.unlink(victim))
    hosts = f"{GH}/hosts.yml"
    os.symlink(victim, hosts)
    auth(lab).refused(125, hosts, "is a link")
    os.unlink(hosts)
    os.mkfifo(hosts)
    auth(lab).refused(125, hosts, "plain one")
    os.unlink(hosts)
    os.mkdir(hosts)
    auth(lab).refused(125, hosts)
    os.rmdir(hosts)
    machine.write(hosts, "mine", 0o644, ROOT)
    auth(lab).refused(125, hosts, "owner")
    os.unlink(hosts)
    own(hosts, "#" * (1024 * 1024 + 1))
    auth(lab).refused(125, hosts, "larger")
    os.unlink(hosts)
    os.symlink(victim, f"{GH}/.claude-sandbox.new")
    auth(lab).ok()
    equal(content(victim), "mine\n")
    nothing_left()
    shutil.rmtree(GH)
    os.symlink("/srv", GH)
    auth(lab).refused(125, "~/.config/gh", "is a link")
    os.unlink(GH)
    os.mkdir(GH)
    os.chown(GH, ALICE.uid, ALICE.gid)
    os.chmod(GH, 0o777)
    auth(lab).refused(125, "~/.config/gh", "others may write")


@test(60, needs="bus")
def tools_that_are_not_there_or_not_roots(lab):
    if os.path.exists("/usr/bin/gh"):
        lab.hide("/usr/bin/gh")
    auth(lab).refused(125, "install the package gh")
    tool(lab)
    lab.mode("/usr/bin/gh", 0o775)
    auth(lab).refused(125, "/usr/bin/gh", "root alone")
    lab.restore()
    planted = f"{lab.workspace(ALICE)}/gh"
    machine.write(planted, "#!/bin/sh\ntouch ~/PWNED\n", 0o755, ALICE)
    lab.undo.append(lambda: os.unlink(planted))
    auth(lab, env=lab.environment(ALICE, PATH=os.path.dirname(planted) + ":/usr/bin")).refused(125, "gh")
    holds(not os.path.exists(f"{ALICE.home}/PWNED"), "a planted gh ran")


@test(60, needs="bus")
def a_tool_that_refuses(lab):
    """Its words are shown escaped; the file stays as it was; a keyring or a lie is no success."""
    tool(lab, text="#!/bin/sh\necho >&2; printf 'error: \\033[2J\\377 401\\nadvice\\n' >&2; exit 1\n")
    auth(lab).refused(125, "gh did not take the token (error: \\x1b[2J\\xff 401)")
    holds(not os.path.exists(GH), "nothing was made")
    lab.restore()
    tool(lab, text="#!/bin/sh\ncat >/dev/null; echo github.com: >$GH_CONFIG_DIR/hosts.yml\n")
    own(f"{GH}/hosts.yml", "before\n")
    auth(lab).refused(125, "not into its file hosts.yml")
    equal(content(f"{GH}/hosts.yml"), "before\n")
    lab.restore()
    tool(lab, text="#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x >&2; exit 1\n")
    auth(lab).refused(125, "did not take")
    nothing_left()


@test(60, needs="bus")
def interrupted_while_the_tool_works(lab):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        tool(lab, text="#!/bin/sh\necho $$ >/run/lab-forge\nexec tail -f /dev/null\n")
        with lab.terminal([SANDBOX, "gh-auth"]) as terminal:
            terminal.expect("not shown): ")
            terminal.type(TOKEN + "\n")
            wait_for(lambda: content(LOG), "the tool's start")
            child = int(content(LOG))
            if number == signal.SIGINT:
                terminal.type("\x03")
            else:
                os.kill(terminal.pid, number)
            equal(terminal.wait(), -number)
            holds(b"interrupted; nothing was stored" in terminal.output, terminal.output)
        holds(not os.path.exists(f"/proc/{child}"), "the tool goes too")
        holds(not os.path.exists(GH), "nothing was made")
        nothing_left()
        lab.restore()


@test(60, needs="bus")
def a_token_is_typed_unseen(lab):
    tool(lab)
    with lab.terminal([SANDBOX, "gh-auth"]) as terminal:
        terminal.expect("Token for github.com (it is not shown): ")
        holds(not terminal.current_modes()[3] & termios.ECHO, "no echo")
        terminal.type(TOKEN[:9] + "x\x7f" + TOKEN[9:] + "\n")
        terminal.expect("stored the token")
        equal(terminal.wait(), 0)
        equal(terminal.current_modes(), terminal.modes)
        holds(TOKEN[:9].encode() not in terminal.output, terminal.output)
    equal(json.loads(content(LOG))["token"], TOKEN + "\n")
    with lab.terminal([SANDBOX, "gh-auth"]) as terminal:
        terminal.expect("not shown): ")
        terminal.type("\x04")
        equal(terminal.wait(), 125)
        terminal.expect("no token came")
        equal(terminal.current_modes(), terminal.modes)


@test(60, needs="bus")
def the_terminal_is_given_back(lab):
    """On Ctrl-C, Ctrl-\\ and kill; half a token is dropped."""
    tool(lab)
    for end, number in ((b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT), (None, signal.SIGTERM), (None, signal.SIGHUP)):
        with lab.terminal([SANDBOX, "gh-auth"]) as terminal:
            terminal.expect("not shown): ")
            terminal.type(TOKEN[:7])
            if end:
                terminal.type(end)
            else:
                os.kill(terminal.pid, number)
            equal(terminal.wait(), -number)
            equal(terminal.current_modes(), terminal.modes, str(number))
            holds(TOKEN[:7].encode() not in terminal.output, terminal.output)


@test(60, needs="bus")
def a_stop_gives_the_terminal_back_too(lab):
    tool(lab)
    with lab.terminal(["/bin/bash", "--norc", "--noprofile", "-i"], env=lab.environment(ALICE, PS1="$ ")) as terminal:
        terminal.expect("$ ")
        terminal.type(f"{SANDBOX} gh-auth\n")
        terminal.expect("not shown): ")
        terminal.type(b"half\x1a")
        terminal.expect("Stopped")
        terminal.expect("$ ")
        terminal.type("stty -a | grep -o ' echo ' | tr e E\n")
        terminal.expect("Echo")
        holds(b"half" not in terminal.expect("$ "), "what was typed is dropped")
        terminal.type("fg\n")
        terminal.expect("not shown): ")
        terminal.type(TOKEN + "\n")
        terminal.expect("stored the token")
        terminal.expect("$ ")
        terminal.type("exit\n")
        equal(terminal.wait(), 0)
    equal(json.loads(content(LOG))["token"], TOKEN + "\n")


@test(60, needs="bus")
def no_token_inside(lab):
    tool(lab)
    for verb in ("gh-auth", "glab-auth"):
        result = lab.run([SANDBOX, "shell", "-c", f"echo {TOKEN} | {SANDBOX} {verb}; echo $?"], ALICE)
        equal(result.out, b"125\n", result)
        holds(b"the inside of a jail" in result.err, result)
    for verb in ("gh-auth", "glab-auth"):
        lab.run([SANDBOX, "-H", "far", verb], ALICE).refused(2, "takes no -H")
    holds(not os.path.exists(GH), "nothing was made")
