# SPDX-License-Identifier: MIT
"""One user who sends without end, and what others notice of it: judged by order and ratio."""

import statistics
import sys

import raw
from fixture import *  # noqa: F403
from fixture import OTHER, USER, Actor, case, nothing_left, service

LOG = "/var/log/claude-sandbox"


def fill_log(uid):
    """As long as a user's log may be."""
    line = '{"time":%d,"event":"refused","uid":%d,"session":"","member":"Launch","agent":"x","error":"BadRequest"}\n'
    os.makedirs(LOG, mode=0o700, exist_ok=True)
    for name in (f"{LOG}/{uid}.log", f"{LOG}/{uid}.log.1"):
        with open(name, "w", encoding="ascii") as f:
            f.write("".join(line % (10**15 + i, uid) for i in range(9000)))
        os.chmod(name, 0o600)


def worked(pid):
    """What the processor has done for a process, in ticks."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13])


def quick(call, n=20):
    """The middle of n times."""
    times = []
    for _ in range(n):
        start = time.monotonic()
        call()
        times.append(time.monotonic() - start)
    return statistics.median(times)


def lists(n, silent):
    connection = raw.Connection()
    for _ in range(n):
        connection.log(silent)
    # the bus works through what one connection sends in order
    connection.answer(connection.call(raw.BUS, "GetId"))
    return connection


def all_answers(n):
    """That of n calls. Return: how many were refused."""
    def count(connection):
        found = connection.answers()
        while len(found) < n:
            connection.more(16)
            found += connection.answers()
        refusals = [name for name in found if name]
        assert len(found) == n and set(refusals) <= {"org.claudesandbox1.Error.LimitsExceeded"}, (len(found), set(found))
        return b"%d" % len(refusals)
    return count


def answers_so_far(connection):
    return b"%d" % len([name for name in connection.answers() if not name])


@case
def lists_without_an_answer(machine, watch):
    """What only lists and wants no answer is not carried out: twenty thousand cost less than a hundred with one."""
    fill_log(USER)
    with Caller(OTHER) as other, Caller(USER) as user:
        other.manager("ListSessions")
        pid = service()
        before = worked(pid)
        for _ in range(100):
            assert len(user.manager("ListEvents", "sa{sv}", "", {})) == 1000
        middle = worked(pid)
        with Actor(USER, lists, 20000, True).done():
            other.manager("ListSessions")
            assert worked(pid) - middle <= middle - before, (before, middle, worked(pid))


@case
def calls_are_taken_in_turn(machine, watch):
    """Sixty calls of one user that read a whole log wait; another user's is answered among the first."""
    fill_log(USER)
    fill_log(OTHER)
    with Caller(OTHER) as other:
        other.manager("ListSessions")
        with Actor(USER, lists, 60, False, then=answers_so_far).done() as hungry:
            assert len(other.manager("ListEvents", "sa{sv}", "", {"max": 1})) == 1
            other.manager("ListSessions")
            answered = int(hungry.then())
            # in the order of their coming all sixty would be
            assert answered < 50, answered


@case
def nothing_is_lost(machine, watch):
    """Of as many calls as the bus lets wait each is answered, or refused with a name; then the user is served again."""
    shutil.rmtree(LOG, ignore_errors=True)
    with Actor(USER, lists, 120, False, then=all_answers(120)).done() as hungry, Caller(USER) as user:
        refusals = int(hungry.then())
        assert refusals < 120, refusals
        wait_for(lambda: gets_through(user), "an answer")


def gets_through(caller):
    try:
        caller.manager("ListSessions")
        return True
    except Error as e:
        assert e.name == "org.claudesandbox1.Error.LimitsExceeded", e
        return False


def last_word(connection):
    """By what comes behind it on the same connection: the bus works through that in order, and so does the service."""
    connection.answer(connection.call(raw.SERVICE, "ListSessions"))


def stop_silently(session):
    """Behind more than the service keeps of what others of the user wait for."""
    reader, connection = raw.Connection(), raw.Connection()
    last_word(reader)
    last_word(connection)
    for _ in range(60):
        reader.log()
    reader.answer(reader.call(raw.BUS, "GetId"))
    for name in ["x"] * 600 + [session]:
        connection.call(raw.SERVICE, "StopSession", "sa{sv}", raw.aligned(raw.string(name), 4) + struct.pack("<II", 0, 0),
                        silent=True)
    last_word(connection)
    return reader, connection


@case
def what_is_refused_is_not_carried_out(machine, watch):
    """A call that finds no room does nothing, also when its sender does not want to know of it."""
    fill_log(USER)
    with Caller(USER) as user, Caller(OTHER) as other:
        session, _, _ = user.launch()
        with Actor(USER, stop_silently, session).done():
            other.manager("ListSessions")
            assert processes("session")
        wait_for(lambda: gets_through(user), "an answer")
        assert [row[0] for row in user.manager("ListSessions")] == [session]
        user.manager("StopSession", "sa{sv}", session, {})
        nothing_left(user)


def latencies():
    """The middle of what a question to the bus alone takes, and of one that the service answers."""
    connection = raw.Connection()
    last_word(connection)
    bus = quick(lambda: connection.answer(connection.call(raw.BUS, "GetId")), 40)
    service_ = quick(lambda: last_word(connection), 40)
    return struct.pack("dd", bus, service_)


def connections(connection):
    return connection.answer(connection.call(raw.BUS, "ListNames"))[1].count(b"\0:1.")


@case
def every_method_without_end(machine, watch):
    """A user sends all there is, with and without waiting: what another waits for is the bus, not the service."""
    fill_log(USER)
    ours = raw.Connection()
    before = connections(ours)
    flood = subprocess.Popen([sys.argv[1] + "/tests/bench/bench-flood"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             user=USER, group=USER, extra_groups=[])
    try:
        assert select.select([flood.stdout], [], [], DEADLINE)[0] and flood.stdout.readline() == b"ready\n"
        # as much as the budget lets through at once has passed
        with Actor(OTHER, latencies, then=lambda found: found).done() as other:
            other.then()
        with Actor(OTHER, latencies, then=lambda found: found).done() as other:
            bus, answered = struct.unpack("dd", other.then())
        assert flood.poll() is None
        # half a second for a machine that others use too; what waits behind the flood waits for many
        assert answered < 10 * bus + 0.5, (bus, answered)
    finally:
        flood.kill()
        flood.wait()
        # the bus still has what it sent, and would start a service for that
        wait_for(lambda: connections(ours) <= before, "the end of the flood")
        last_word(ours)
        ours.close()


@case
def links_that_never_stop(machine, watch):
    """Sixteen sessions that send as fast as they can: another user launches, lists and stops as if they were not there."""
    def round_trip():
        session, _, _ = other.launch(b"run")
        other.manager("ListSessions")
        other.manager("StopSession", "sa{sv}", session, {})

    with Caller(OTHER) as other, Caller(USER) as user:
        quiet = quick(round_trip)
        for _ in range(16):
            user.launch(b"flood-link")
        # sixteen busy processes share the machine's processors, too
        flooded = quick(round_trip)
        assert flooded < 10 * quiet, (quiet, flooded)
        # however long it goes on, most of the service's time is not theirs
        pid = service()
        start, before = time.monotonic(), worked(pid)
        wait_for(lambda: time.monotonic() > start + 2, "two seconds")
        share = (worked(pid) - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - start)
        assert share < 0.6, share
        for session in processes("session"):
            os.kill(session, signal.SIGKILL)
        nothing_left(other)
