# SPDX-License-Identifier: MIT
"""The probes, in jails of every kind: none gets out, and none has nothing to try but where that is said here."""

import os

import machine
import system
from bus_cases import Held
from case import SANDBOX, equal, holds, test
from hostile_cases import own
from kinds import WATCHER, Sessions, clear, rows
from kinds_cases import fill, is_account
from listener_cases import Listener
from machine import ALICE, ROOT
from sabotage_cases import sabotage, steps
from verify_cases import verify

exec(WATCHER)                                              # the same one as inside

BOTH = (ALICE, ROOT)
# those that aim at addresses, which a shared network has
OF_THE_NETWORK = {f"p{n}" for n in range(83, 107)}


def blocked(lab, user, *words, notes=(), **options):
    """All of them, but for notes."""
    verdict = verify(lab, "--probes", *words, user=user, limit=60, **options)
    rows = {number: row for number, row in verdict.rows.items() if number[0] == "p"}
    holds(len(rows) >= 100, f"{len(rows)} probes")
    equal({number: row["detail"] for number, row in rows.items() if row["status"] == "fail"}, {}, f"{user}: {words}")
    equal({number: row["detail"] for number, row in rows.items() if row["status"] == "note" and number not in notes}, {},
          f"{user}: {words}")
    for number, row in rows.items():
        holds(row["detail"].startswith(("blocked: ", "inconclusive: ")), f"{number}: {row['detail']!r}")
    return verdict


def listed(*paths):
    """What is there, and of files when it was changed."""
    found = []
    for path in paths:
        for directory, directories, names in os.walk(path):
            for name in directories + names:
                status = os.lstat(os.path.join(directory, name))
                found.append(f"{directory}/{name} {status.st_mode:o} {status.st_uid} "
                             f"{status.st_mtime_ns if name in names and not name == 's' else ''}")
    return found


@test(120, needs="bus")
def in_a_new_jail(lab):
    for user in BOTH:
        blocked(lab, user, "shell")


@test(120, needs="bus")
def beside_an_agent(lab):
    for user in BOTH:
        with Held(lab, user) as held:
            blocked(lab, user, held.id)
            equal(held.end(), 3)


@test(120, needs="bus")
def under_the_machines_proc(lab):
    lab.configure("procfs = outer\n")
    for user in BOTH:
        blocked(lab, user, "shell")
        with Held(lab, user) as held:
            blocked(lab, user, held.id)
            equal(held.end(), 3)


@test(120, needs="bus")
def as_in_a_container(lab):
    for path in ("/proc/kcore", "/proc/keys"):
        if os.path.exists(path):
            system.bind("/dev/null", path)
            lab.undo.append(lambda path=path: system.unmount(path))
    for user in BOTH:
        blocked(lab, user, "shell")


@test(120, needs="bus")
def in_a_shared_network(lab):
    """What aims at addresses has nothing to try; all else holds, abstract sockets aside."""
    lab.configure("egress-jail = 0\n")
    for user in BOTH:
        verdict = blocked(lab, user, "shell", notes=OF_THE_NETWORK | {"p64"})
        equal(set(verdict.of("note")) - {"19", "20"}, OF_THE_NETWORK, str(user))


@test(120, needs="bus")
def with_much_in_the_plan(lab):
    """Masks in the home, a guarded directory, sockets and FIFOs in sight, what the configuration adds."""
    lab.configure("allow-write = /srv/shared\nallow-device = /dev/full\nlocal-port = 7071\nallow-ip = 10.20.0.0/16\n")
    own(ROOT, "/srv/shared")
    os.chmod("/srv/shared", 0o1777)
    for user in BOTH:
        own(user, f"{user.home}/.local", f"{user.home}/.local/bin", f"{user.home}/.local/share",
            f"{user.home}/.local/share/uv", f"{user.home}/.local/share/uv/tools", f"{user.home}/.cache", f"{user.home}/.cache/run")
        machine.write(f"{user.home}/.netrc", "machine example password secret\n", 0o600, user)
        workspace = lab.workspace(user, "much")
        own(user, f"{workspace}/bin")
        if not os.path.exists(f"{workspace}/fifo"):
            os.mkfifo(f"{workspace}/fifo")
            os.chown(f"{workspace}/fifo", user.uid, user.gid)
        env = lab.environment(user)
        env["PATH"] = f"{workspace}/bin:{env['PATH']}"
        with Listener(f"{user.home}/.cache/run/s", user):
            before = listed(user.home, "/srv/shared")
            blocked(lab, user, "shell", cwd=workspace, env=env)
            equal([line for line in listed(user.home, "/srv/shared") if line not in before and "/.local/state" not in line], [],
                  f"{user}: left behind")


@test(120, needs="bus")
def in_an_agents_state(lab):
    """What agents keep outside is another's inside, and one who looks on outside sees nothing of the attempts."""
    for row in rows():
        clear(ALICE, row)
        fill(ALICE, row)
        cwd = lab.workspace(ALICE)
        with Sessions(lab, ALICE, row) as sessions:
            agent = sessions.start()
            outside = Watcher(f"{ALICE.home}/{row.state}")
            outside.look()
            verdicts = [blocked(lab, ALICE, row.name, cwd=cwd), blocked(lab, ALICE, lab.sessions()[0])]
            for verdict in verdicts:
                for number in ("p109", "p110", "p111", "p112"):
                    holds("the workspace's" in verdict.rows[number]["detail"] or number != "p111", f"{row.name}: {verdict.rows[number]}")
            # row 17 opens files without a name in what is the account's
            equal([name for name in outside.look() if not is_account(row, name)], [], f"{row.name}: seen outside")
            os.close(outside.fd)
            sessions.end(agent)


def escaped(lab, user, *left_out):
    """The probes that get out when these parts of the denial are left out, with the real wire."""
    sabotage(lab, *left_out, "no-self-test", "no-read-back")
    verdict = verify(lab, "--probes", "shell", user=user, limit=60)
    lab.restore()
    return {number for number in verdict.of("fail") if number[0] == "p"}, verdict


@test(120, needs="bus")
def without_parts_of_the_network_they_get_out(lab):
    """What stands between is what they measure: nobody has to listen at the addresses."""
    steps(lab)
    for user in BOTH:
        found, verdict = escaped(lab, user, "filter", "reverse-path")
        holds({"p84", "p85", "p86", "p87", "p89", "p91", "p93"} <= found, f"{user}: no filter: {verdict.of('fail')}")
        found, verdict = escaped(lab, user, "prohibits", "ledger", "reverse-path")
        holds({"p83", "p97", "p99", "p100"} <= found, f"{user}: no denials: {verdict.of('fail')}")


@test(60, needs="bus")
def within_two_seconds(lab):
    with Held(lab) as held:
        holds(any(lab.run([SANDBOX, "verify", "--probes", held.id], limit=30).ok().seconds < 2 for _ in range(10)), "none of ten")
