# SPDX-License-Identifier: MIT
"""Doctor on a machine where all is well, by the command and over the bus, and the words of a refusal in its rows."""

import json
import os
import re
import shutil
import stat
import subprocess

import bus
import case
from case import CLAUDE, CONFIG, SANDBOX, equal, holds, test
from machine import ALICE, ROOT

STATUSES = {"ok", "note", "warn", "fail"}
# What every run has, in whatever order
ROWS = {
    "entry.path", "entry.ours", "entry.planted", "service.bus", "service.policy", "service.activation", "service.name",
    "files.owner", "config.owner", "config.file", "config.warnings", "config.environment", "run.stale",
    "cgroup.controllers", "polkit.alive", "polkit.actions", "polkit.launch", "user.caller", "user.groups", "user.root",
    "user.home", "user.directory", "agent.claude", "agent.codex", "agent.pi", "kernel.version", "kernel.seccomp",
    "kernel.apparmor", "kernel.userns", "machine.container", "machine.wsl", "program.bwrap", "program.pasta", "program.git",
    "device.tun", "network.uplink", "network.forwarder", "dns.resolver", "dns.answers", "git.identity", "chain.session",
    "chain.programs", "chain.namespaces", "chain.tap", "chain.routes", "chain.proc", "chain.plan", "chain.mounts",
    "chain.wire", "chain.agent", "chain.end",
}
CHAIN = ["chain.programs", "chain.namespaces", "chain.tap", "chain.routes", "chain.proc", "chain.plan", "chain.mounts",
         "chain.wire", "chain.agent", "dns.answers", "chain.end"]


def rows_of(lab, user=ALICE, agent=(), status=None, **options):
    """{id: (status, detail, fix)} of the command; its status and its "ok" fit the rows."""
    result = lab.run([SANDBOX, "doctor", "--json", *agent], user, cwd=options.pop("cwd", lab.workspace(user)), **options)
    document = json.loads(result.out)
    rows = {row["id"]: (row["status"], row["detail"], row["fix"]) for row in document["rows"]}
    equal(len(rows), len(document["rows"]), "a row twice")
    failed = [row for row in rows.values() if row[0] == "fail"]
    equal((result.status, document["ok"], result.err), (1 if failed else 0, not failed, b""), repr(failed))
    if status is not None:
        equal(result.status, status, repr(failed))
    for name, (word, detail, fix) in rows.items():
        holds(word in STATUSES and detail, f"{name}: {word} {detail!r}")
        holds(word != "fail" or fix or "not tried" in detail, f"{name} says not what helps: {detail!r}")
    return rows


def as_refused(lab, row, user=ALICE, agent="shell", **options):
    """The launch is refused with exactly what the row says."""
    refused = lab.run([SANDBOX, "shell", "-c", "true"] if agent == "shell" else [f"/usr/local/bin/{agent}"], user,
                      cwd=options.pop("cwd", lab.workspace(user)), **options)
    said = refused.err.decode().strip().removeprefix("claude-sandbox: ").rstrip(".")
    equal(said, f"{row[1]}; {row[2]}", "the refusal and the row")


def without_agents(lab):
    """What other tests installed does not count: the start is a shell's."""
    for user in (ALICE, ROOT):
        for name in ("claude", "codex", "pi"):
            lab.remove_agent(user, name)


@test(60, needs="bus")
def healthy(lab):
    """Nothing is wrong, as a user and as root; every row is there; nothing is left."""
    without_agents(lab)
    for user in (ALICE, ROOT):
        lab.workspace(user)
        before = sorted(os.listdir("/tmp"))
        home = sorted(os.listdir(user.home))
        rows = rows_of(lab, user, status=0)
        equal(sorted(ROWS - rows.keys()), [], "rows that are missing")
        for name in CHAIN:
            equal(rows[name][0], "ok", f"{user}: {name} {rows[name]}")
        equal((sorted(os.listdir("/tmp")), sorted(os.listdir(user.home))), (before, home), "something is left")
        case.wait_for(lambda: os.listdir(case.SESSIONS) == [], "the session is gone")
    equal(rows_of(lab, ROOT)["user.root"][0], "warn")
    equal(rows_of(lab)["user.root"][:2], ("ok", f"{ALICE.name}, uid {ALICE.uid}"))


@test(60, needs="bus")
def pasta_that_takes_no_descriptors(lab):
    """It is told the holder's process instead, once and for the whole session; Doctor says so, Verify is content."""
    without_agents(lab)
    holds("by inherited descriptors" in rows_of(lab)["chain.wire"][1], "the usual way")
    lab.hide("/usr/bin/pasta")
    lab.replace("/usr/bin/pasta", "#!/bin/bash\n[[ $* != *--userns* ]] || { echo no descriptors here >&2; exit 1; }\n"
                                  "exec -a pasta /usr/bin/pasta.hidden-by-a-test \"$@\"\n", 0o755)
    for user in (ALICE, ROOT):
        status, detail, _ = rows_of(lab, user, status=0)["chain.wire"]
        equal(status, "note", detail)
        holds("process ID" in detail and "no descriptors here" in detail, detail)
        rows = json.loads(lab.run([SANDBOX, "verify", "--json", "shell"], user, limit=40).out)["rows"]
        equal([row["status"] for row in rows if str(row["number"]) in ("19", "20")], ["pass", "pass"], rows)


@test(60, needs="bus")
def lines_for_people(lab):
    """A line a row, what helps below what is not well, and the sum."""
    result = lab.run([SANDBOX, "doctor"], ALICE, cwd=ALICE.home)
    lines = result.out.decode().splitlines()
    equal(result.status, 0)
    equal({line.split()[0] for line in lines if line and not line.startswith(" ")} & ROWS, ROWS)
    at = next(i for i, line in enumerate(lines) if line.startswith("user.directory"))
    holds(lines[at].split()[1] == "note" and ALICE.home in lines[at + 1] and "directory of a project" in lines[at + 2],
          "the home is no place to work in: " + repr(lines[at:at + 3]))
    holds(lines[-1].endswith(" 0 wrong"), lines[-1])
    holds("Wrong:" not in lines, "nothing is wrong: " + repr(lines[-5:]))
    equal(lab.run([SANDBOX, "doctor", "emacs"], ALICE).status, 2)


@test(60, needs="bus")
def what_matters_stands_at_the_end(lab):
    """Below the rows, whatever their number, those that fail and those that warn once more, rows of one cause together."""
    os.rename("/dev/net/tun", "/dev/net/away")
    lab.undo.append(lambda: os.rename("/dev/net/away", "/dev/net/tun"))
    result = lab.run([SANDBOX, "doctor"], ROOT, cwd=lab.workspace(ROOT))
    equal(result.status, 1)
    rows, wrong, look = [part.splitlines() for part in re.split(r"\n\n(?=Wrong:|To look at:)", result.out.decode())]
    look, total = look[:-2], look[-1]
    equal([line.split()[:2] for line in wrong[1:] if not line.startswith(" ")],
          [["device.tun", "fail"], ["chain.tap", "fail"]])
    equal([line[:8] + line.strip()[:12] for line in wrong[3:]], ["        /dev/net/tun", "        load the ker"])
    holds("user.root" in [line.split()[0] for line in look[1:]], repr(look))
    equal({line.split()[1] for line in look[1:] if not line.startswith(" ")}, {"warn"})
    holds(set(wrong[1:] + look[1:]) <= set(rows), "said as above")
    count = len([line for line in look[1:] if not line.startswith(" ")])
    holds(total.endswith(f" {count} to look at, 2 wrong"), total)


@test(60, needs="bus")
def over_the_bus(lab):
    """busctl without any option, by every user; unknown options are refused."""
    for user in (ALICE, ROOT):
        result = lab.run(["/usr/bin/busctl", "--json=short", "call", "org.claudesandbox1", "/org/claudesandbox1",
                          "org.claudesandbox1.Manager", "Doctor", "a{sv}", "0"], user).ok()
        rows = {row[0]: row for row in json.loads(result.out)["data"][0]}
        equal(sorted(ROWS - {"entry.path"} - rows.keys()), [], "rows that are missing")
        equal([row for row in rows.values() if row[1] == "fail"], [])
        for options, word in ((["1", "nonsense", "s", "x"], "nonsense"), (["1", "cwd", "s", "/srv"], "'ay'"),
                              (["1", "cwd", "ay", "1", "120"], "absolute"), (["1", "environment", "ay", "0"], "'aay'"),
                              (["1", "agent", "s", "emacs"], "emacs"), (["1", "call", "s", "x" * 200], "128")):
            refused = lab.run(["/usr/bin/busctl", "call", "org.claudesandbox1", "/org/claudesandbox1",
                               "org.claudesandbox1.Manager", "Doctor", "a{sv}", *options], user)
            holds(refused.status != 0 and word.encode() in refused.err, f"{options}: {refused!r}")


@test(60, needs="bus")
def rows_as_they_come(lab):
    """With the option call each row is a signal to the caller alone, before the answer and in its order; else none."""
    words = ["/usr/bin/busctl", "call", "org.claudesandbox1", "/org/claudesandbox1", "org.claudesandbox1.Manager", "Doctor",
             "a{sv}"]
    lab.call("ListAllowIp")
    with subprocess.Popen(["/usr/bin/busctl", "--system", "--json=short", "monitor", bus.NAME], env=lab.environment(ROOT), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as monitor:
        try:
            holds(b"Monitoring" in monitor.stderr.readline(), "the monitor is on the bus")
            for options, call in ((["1", "call", "s", "mine"], "mine"), (["0"], None)):
                lab.run(words + options, ALICE).ok()
                rows, caller, answer = until_answer(monitor)
                equal([row for _, _, row in rows], answer if call else [])
                equal({(where, of) for where, of, _ in rows}, {(caller, call)} if call else set())
        finally:
            monitor.kill()


def until_answer(monitor):
    """[(destination, call, row)] of the signals Row, then the destination of the answer and its rows."""
    rows = []
    for line in monitor.stdout:
        message = json.loads(line)
        data = message["payload"].get("data")
        if message["type"] == "signal" and message.get("member") == "Row":
            rows.append((message["destination"], data[0], data[1]))
        if message["type"] == "method_return" and message["payload"]["type"] == "a(sssss)":
            return rows, message["destination"], data[0]
    raise AssertionError("the monitor ended")


@test(60, needs="bus")
def broken_configuration(lab):
    """Each launch is refused, and Doctor goes on all the same: the same words, and a chain that was tried."""
    without_agents(lab)
    lab.configure("no-forge\negress-jail = perhaps\n")
    rows = rows_of(lab, status=1)
    equal(rows["config.file"][0], "fail")
    holds(f"{CONFIG}:2" in rows["config.file"][1], rows["config.file"])
    as_refused(lab, rows["config.file"])
    equal([name for name in CHAIN if rows[name][0] != "ok"], [], "what does not depend on it")


@test(60, needs="bus")
def missing_device(lab):
    """The innermost step is named, those behind it were not tried, and the launch says the same."""
    os.rename("/dev/net/tun", "/dev/net/away")
    lab.undo.append(lambda: os.rename("/dev/net/away", "/dev/net/tun"))
    rows = rows_of(lab, status=1)
    equal(rows["device.tun"], rows["chain.tap"])
    equal(rows["chain.tap"][0], "fail")
    equal([rows[name][0] for name in CHAIN[:2]], ["ok", "ok"])
    equal([rows[name][1] for name in CHAIN[3:]], ["not tried"] * len(CHAIN[3:]))
    as_refused(lab, rows["chain.tap"])


@test(60, needs="bus")
def what_the_environment_asks_for(lab):
    """A planted variable that would widen is told, asks nobody for a password, and opens nothing here."""
    rows = rows_of(lab, status=0, env=lab.environment(ALICE, CLAUDE_SANDBOX_EGRESS_JAIL="0"))
    equal(rows["config.environment"][0], "warn")
    equal(rows["chain.routes"][0], "ok", "the network is jailed all the same")


@test(60, needs="bus")
def without_a_service(lab):
    """What can be seen without it is said, and the row that fails is named."""
    path = "/usr/libexec/claude-sandbox/claude-sandboxd"
    mode = stat.S_IMODE(os.stat(path).st_mode)
    lab.stop_service()
    os.rename(path, path + ".away")
    try:
        rows = rows_of(lab, status=1)
    finally:
        os.rename(path + ".away", path)
        os.chmod(path, mode)
    equal(rows["service.activation"][0], "fail")
    holds("chain.agent" not in rows and rows["entry.path"][0] == "ok", repr(rows))
    rows_of(lab, status=0)


@test(60, needs="bus")
def what_measures_inside_fails(lab):
    """Missing, or something else in its place: a row fails, never a shorter list."""
    path, aside = "/usr/libexec/claude-sandbox/verify", "/usr/libexec/claude-sandbox/verify.aside"
    os.rename(path, aside)
    lab.undo.append(lambda: os.rename(aside, path))
    rows = rows_of(lab, status=1)
    equal(rows["chain.agent"][0], "fail")
    holds(path in rows["chain.agent"][1], rows["chain.agent"])
    for stand_in in ("/bin/false", "/bin/true"):
        shutil.copy(stand_in, path)
        rows = rows_of(lab, status=1 if stand_in == "/bin/false" else None)
        if stand_in == "/bin/false":
            equal(rows["chain.end"][0], "fail")
        equal(rows["dns.answers"][1], "not tried")


@test(60, needs="bus")
def leaves_nothing(lab):
    """With an agent that has a place for temporary files: no directory of a workspace is made, no home of the agent."""
    lab.install_agent(ALICE)
    lab.remove_agent(ALICE, "pi")
    lab.run([CLAUDE, "status", "0"], ALICE, cwd=lab.workspace(ALICE))
    place = f"/var/tmp/claude-agent/{ALICE.uid}"
    before, temporary = sorted(os.listdir(place)), sorted(os.listdir("/tmp"))
    shutil.rmtree(f"{ALICE.home}/.claude", ignore_errors=True)
    rows = rows_of(lab, cwd=ALICE.home, status=0)
    equal(rows["agent.claude"][0], "ok")
    equal((sorted(os.listdir(place)), os.path.exists(f"{ALICE.home}/.claude"), sorted(os.listdir("/tmp"))),
          (before, False, temporary))
    rows_of(lab, ALICE, ["claude"], status=0)
    equal(rows_of(lab, ALICE, ["pi"], status=1)["agent.pi"][0], "fail")
