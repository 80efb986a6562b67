# SPDX-License-Identifier: MIT
"""Who may do more than the configuration gives, or see what others run: the real polkit, its rules and its agent."""

import json
import os
import signal
import subprocess
import termios
import time

import bus
from authority import PASSWORD, agents, asked, cancellations, end_polkit, pid_of_polkit, read_until, rules, with_password
from bus_cases import Held, LAUNCH, answer, as_user, error_of, launch_arguments
from case import SANDBOX, equal, holds, test, wait_for
from machine import ALICE, BOB, ROOT

PLACE = "/srv/wide"
NEEDS = "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"
REFUSED = "org.claudesandbox1.Error.NotAuthorized"


def place():
    if not os.path.isdir(PLACE):
        os.mkdir(PLACE, 0o755)
    os.chown(PLACE, ALICE.uid, ALICE.gid)
    for name in os.listdir(PLACE):
        os.unlink(f"{PLACE}/{name}")


def wide(lab, **more):
    place()
    return lab.environment(ALICE, CLAUDE_SANDBOX_ALLOW_WRITE=PLACE, **more)


WRITES = [SANDBOX, "shell", "-c", f"touch {PLACE}/it && echo WRO''TE"]


@test(60, needs="bus")
def a_person_is_asked_in_words(lab):
    """The dialog names what would be widened; until a password is typed nothing is started, and then exactly that runs."""
    with_password(lab)
    with lab.terminal(WRITES, env=wide(lab, CLAUDE_SANDBOX_PASS_ENV="SECRET,OTHER")) as terminal:
        words_seen = " ".join(asked(terminal).decode().split())
        for words in ("start shell in /home/alice/project with more than the configuration allows",
                      f"CLAUDE_SANDBOX_ALLOW_WRITE lets the agent write to {PLACE}",
                      "CLAUDE_SANDBOX_PASS_ENV passes to the agent the variable SECRET, OTHER"):
            holds(words in words_seen, f"{words!r} is not in {words_seen!r}")
        equal(lab.sessions(), [], "before the answer")
        holds(not os.listdir(PLACE), "nothing is changed")
        terminal.type(PASSWORD + "\n")
        terminal.expect("WROTE")
        equal(terminal.wait(), 0)
        equal(terminal.current_modes(), terminal.modes, "the terminal's modes")
    wait_for(lambda: not agents(), "no agent is left")
    equal(os.listdir(PLACE), ["it"])


@test(60, needs="bus")
def wrong_passwords(lab):
    with_password(lab)
    with lab.terminal(WRITES, env=wide(lab)) as terminal:
        asked(terminal)
        terminal.type("a wrong one\n")
        terminal.expect("FAILED", 20)
        seen = terminal.expect("claude-sandbox:", 20) + terminal.expect("\n")
        equal(terminal.wait(), 125, repr(seen))
        equal(terminal.current_modes(), terminal.modes)
    wait_for(lambda: not agents(), "no agent is left")
    equal((os.listdir(PLACE), lab.sessions()), ([], []))


@test(90, needs="bus")
def whoever_leaves_takes_the_question_along(lab):
    """By Ctrl-C, by kill -9, by a closed terminal: nothing starts, no agent and no echo switched off is left."""
    with_password(lab)
    for way in ("key", "kill", "hang up", "terminate"):
        with lab.terminal(WRITES, env=wide(lab)) as terminal:
            asked(terminal)
            if way == "key":
                terminal.type(b"half a pass\x03")
                equal(terminal.wait(), -signal.SIGINT)
            elif way == "terminate":
                os.kill(terminal.pid, signal.SIGTERM)
                equal(terminal.wait(), -signal.SIGTERM)
            elif way == "kill":
                os.kill(terminal.pid, signal.SIGKILL)
            else:
                terminal.hang_up()
            wait_for(lambda: not agents(), f"{way}: the agent's end")
            if way in ("key", "terminate"):
                equal(terminal.current_modes(), terminal.modes, way)
        equal((lab.sessions(), os.listdir(PLACE)), ([], []), way)
    lab.shell("true").ok()


@test(60, needs="bus")
def a_dialog_is_taken_back(lab):
    """The caller has gone, and the agent that asks does not know: polkit is told, so that no desktop goes on asking."""
    with_password(lab)
    monitor = cancellations(lab)
    # under a shell: the death of a terminal's first process wakes all that run on it
    with lab.terminal(["/bin/bash", "-c", f"{SANDBOX} shell -c 'touch {PLACE}/it'; exit 0"], env=wide(lab)) as terminal:
        asked(terminal)
        agent, = agents()
        with open(f"/proc/{agent}/stat", encoding="utf-8") as f:
            caller = int(f.read().rsplit(")", 1)[1].split()[1])
        os.kill(agent, signal.SIGSTOP)
        try:
            os.kill(caller, signal.SIGKILL)
            read_until(monitor, b"CancelCheckAuthorization")
        finally:
            if agent in agents():
                os.kill(agent, signal.SIGKILL)
    equal((lab.sessions(), os.listdir(PLACE)), ([], []))


@test(60, needs="bus")
def what_was_asked_about_runs(lab):
    """The configuration changes while a password is typed: the session has what the dialog said, and nothing else."""
    with_password(lab)
    other = "/srv/other"
    if not os.path.isdir(other):
        os.mkdir(other, 0o777)
    os.chmod(other, 0o777)
    script = f"touch {PLACE}/it && echo WRO''TE; touch {other}/it 2>/dev/null || echo CLO''SED"
    with lab.terminal([SANDBOX, "shell", "-c", script], env=wide(lab)) as terminal:
        asked(terminal)
        lab.configure(f"allow-write = {other}\nno-forge\n")
        terminal.type(PASSWORD + "\n")
        terminal.expect("WROTE")
        terminal.expect("CLOSED")
        equal(terminal.wait(), 0)


@test(60, needs="bus")
def one_question_for_both_actions(lab):
    """Where launch takes a password too, the one dialog is about what is widened."""
    with_password(lab)
    rules(lab, launch="AUTH_ADMIN")
    with lab.terminal(WRITES, env=wide(lab)) as terminal:
        asked(terminal)
        terminal.type(PASSWORD + "\n")
        seen = terminal.expect("WROTE")
        holds(seen.count(b"AUTHENTICATING") == 0, repr(seen))
        equal(terminal.wait(), 0)
    with lab.terminal([SANDBOX, "shell", "-c", "echo RAN''NOW"]) as terminal:
        seen = asked(terminal)
        holds(b"Authentication is required to run a coding agent" in seen, repr(seen))
        terminal.type(PASSWORD + "\n")
        terminal.expect("RANNOW")
        equal(terminal.wait(), 0)
    rules(lab, launch="NO", widen="YES")
    lab.run(WRITES, env=wide(lab)).refused(125, "org.claudesandbox1.launch")


@test(60, needs="bus")
def rules_decide(lab):
    """YES, NO, and a rule that looks at what would be widened. Without a terminal nobody is asked."""
    lab.run(WRITES, env=wide(lab)).refused(125, "asks for more than", PLACE, "password")
    rules(lab, widen="YES")
    equal(lab.run(WRITES, env=wide(lab)).ok().out, b"WROTE\n")
    rules(lab, widen="NO")
    lab.run(WRITES, env=wide(lab)).refused(125, PLACE, "polkit does not allow this")
    rules(lab, widen='return action.lookup("agent") == "shell" && action.lookup("workspace") == "/home/alice/project" && '
                     f'action.lookup("widened") == "CLAUDE_SANDBOX_ALLOW_WRITE lets the agent write to {PLACE}" && '
                     'subject.user == "alice" ? polkit.Result.YES : polkit.Result.NO;')
    equal(lab.run(WRITES, env=wide(lab)).ok().out, b"WROTE\n")
    lab.run(WRITES, env=wide(lab, CLAUDE_SANDBOX_PASS_ENV="SECRET")).refused(125, "SECRET")
    # narrowing asks nobody
    rules(lab, widen="NO")
    lab.shell("true", env=lab.environment(ALICE, CLAUDE_SANDBOX_NO_FORGE="1", CLAUDE_SANDBOX_EGRESS_JAIL="1")).ok()


@test(60, needs="bus")
def words_of_the_dialog_are_the_services(lab):
    """A path cannot pass for something else in the dialog: no escapes, no lines, no names of details; and not too long."""
    with_password(lab)
    path = f"{PLACE}/$(agent)\x1b[31m\u202e"
    place()
    os.mkdir(path)
    try:
        with lab.terminal(WRITES, env=lab.environment(ALICE, CLAUDE_SANDBOX_ALLOW_WRITE=path)) as terminal:
            question = asked(terminal)
            holds(b"wide/$(agent)\\x1b[31m\\xe2\\x80\\xae" in question.replace(b"\r\n", b""), repr(question))
    finally:
        os.rmdir(path)
    names = ",".join(f"NAME_{n:02}_" + "X" * 60 for n in range(40))
    lab.run(WRITES, env=lab.environment(ALICE, CLAUDE_SANDBOX_PASS_ENV=names)).refused(125, "more than one question can name")


@test(120, needs="bus")
def polkit_hangs_or_ends(lab):
    """Silence and death are a no with their reason; the service goes on for others."""
    with_password(lab)
    lab.shell("true").ok()
    os.kill(pid_of_polkit(lab), signal.SIGSTOP)
    try:
        process = lab.start(WRITES, env=wide(lab), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lab.shell("true", ROOT).ok()
        answer(lab.call("ListSessions", user=BOB))
        out, err = process.communicate(timeout=40)
        equal((process.returncode, out), (125, b""))
        holds(b"polkit does not answer" in err, repr(err))
    finally:
        os.kill(pid_of_polkit(lab), signal.SIGCONT)
    with lab.terminal(WRITES, env=wide(lab)) as terminal:
        asked(terminal)
        end_polkit(lab)
        seen = terminal.expect("claude-sandbox:", 20) + terminal.expect("\n")
        equal(terminal.wait(), 125)
        holds(b"polkit does not answer" in seen, repr(seen))
        equal(terminal.current_modes(), terminal.modes)
    equal((os.listdir(PLACE), lab.sessions()), ([], []))


@test(60, needs="bus")
def without_polkit(lab):
    """Launching is everybody's all the same; everything else is root's."""
    lab.hide("/usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service")
    lab.undo.append(lambda: reload(lab))
    reload(lab)
    end_polkit(lab)
    with Held(lab) as held:
        lab.run(WRITES, env=wide(lab)).refused(125, PLACE, "polkit is not on this machine")
        equal(error_of("ListAllSessions", user=BOB)[0], REFUSED)
        name, sentence = error_of("StopSession", "sa{sv}", held.id, empty(), user=BOB)
        holds(name.endswith("NoSuchSession") and "only root" in sentence, (name, sentence))
        equal(held.process.poll(), None)
    lab.shell("true", ROOT, env=lab.environment(ROOT, CLAUDE_SANDBOX_ALLOW_WRITE=PLACE)).ok()


@test(60, needs="bus")
def polkit_without_its_program(lab):
    """The bus could start it, were its program there: as where there is none."""
    lab.hide("/usr/lib/polkit-1/polkitd")
    end_polkit(lab)
    with Held(lab) as held:
        result = lab.run(WRITES, env=wide(lab)).refused(125, PLACE, "polkit is not on this machine", "; install polkitd")
        holds(b". Or unset" in result.err, repr(result))
        equal(error_of("ListAllSessions", user=BOB)[0], REFUSED)
        equal(held.process.poll(), None)


def reload(lab):
    lab.bus.process.send_signal(signal.SIGHUP)
    lab.run(["/usr/bin/busctl", "--system", "call", "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
             "ReloadConfig"], ROOT).ok()


def empty():
    import dbus
    return dbus.Dictionary({}, signature="sv")


@test(60, needs="bus")
def others_are_seen_with_leave(lab):
    """manage-sessions opens the list, the objects and the end of another's session; for that connection, and no other."""
    with Held(lab, ALICE) as held:
        def look(connection):
            import dbus
            seen = []
            for path, interface, member, signature, *arguments in (
                    (bus.PATH, bus.MANAGER, "ListSessions", ""), (bus.PATH, bus.MANAGER, "ListAllSessions", ""),
                    (bus.PATH, bus.MANAGER, "ListSessions", ""),
                    (held.path, "org.freedesktop.DBus.Properties", "Get", "ss", bus.SESSION, "User"),
                    (held.path, bus.SESSION, "ListExposure", ""),
                    (bus.PATH, "org.freedesktop.DBus.Properties", "Get", "ss", bus.MANAGER, "Sessions")):
                try:
                    value = connection.call_blocking(bus.NAME, path, interface, member, signature, arguments, timeout=20)
                    seen.append(len(value) if isinstance(value, (list, dbus.Array)) else value)
                except dbus.DBusException as error:
                    seen.append(error.get_dbus_name())
            return seen
        equal(as_user(BOB, look), [0, NEEDS, 0, "org.freedesktop.DBus.Error.UnknownObject",
                                   "org.freedesktop.DBus.Error.UnknownObject", 0])
        rules(lab, manage_sessions='return subject.user == "bob" ? polkit.Result.YES : polkit.Result.NO;')
        seen = as_user(BOB, look)
        equal(seen[:4] + seen[5:], [0, 1, 1, "alice", 1])
        holds(seen[4] > 10, f"rows of the exposure: {seen}")
        equal(answer(lab.call("ListSessions", user=BOB))[0], [], "another connection of the same user")
        holds(held.id.encode() in lab.run([SANDBOX, "sessions", "--all"], BOB).ok().out, "the command")
        rows = json.loads(lab.run([SANDBOX, "sessions", "--all", "--json"], BOB).ok().out)
        equal([(row["id"], row["user"]) for row in rows], [(held.id, "alice")])
        holds(b"alice" in lab.run([SANDBOX, "show", held.id], BOB).ok().out, "show")
        lab.run([SANDBOX, "stop", held.id], BOB).ok()
        holds(held.process.wait(10) != 3, "it was stopped")


@test(60, needs="bus")
def a_password_for_the_sessions_of_others(lab):
    """claude-sandbox starts the agent that asks, once for one command."""
    with_password(lab)
    with Held(lab, ALICE) as held:
        with lab.terminal([SANDBOX, "sessions", "--all"], BOB) as terminal:
            question = asked(terminal)
            holds(b"Authentication is required to see and stop the coding agents of other users" in question, repr(question))
            holds(held.id.encode() not in question and b"alice" not in question, "nothing of it before the answer")
            terminal.type(PASSWORD + "\n")
            terminal.expect(held.id)
            equal(terminal.wait(), 0)
            equal(terminal.current_modes(), terminal.modes)
        with lab.terminal([SANDBOX, "stop", held.id], BOB) as terminal:
            asked(terminal)
            terminal.type(PASSWORD + "\n")
            seen = terminal.expect(f"stopped {held.id}")
            holds(b"Password" not in seen, "asked once")
            equal(terminal.wait(), 0)
        wait_for(lambda: not agents(), "no agent is left")
        held.process.wait(10)


@test(60, needs="bus")
def a_password_for_an_address(lab):
    """allow-ip asks by the same agent; a later command asks again, since what polkit keeps is a process's."""
    with_password(lab)
    lab.configure("no-forge\n")
    with lab.terminal([SANDBOX, "allow-ip", "add", "10.20.30.40", "the printer"], BOB) as terminal:
        question = asked(terminal)
        holds(b"10.20.30.40" in question and b"edit-allow-ip" in question, repr(question))
        terminal.type(PASSWORD + "\n")
        terminal.expect("added")
        equal(terminal.wait(), 0)
        equal(terminal.current_modes(), terminal.modes)
    with open("/etc/claude-sandbox.conf", encoding="utf-8") as f:
        holds("10.20.30.40" in f.read(), "the file")
    with lab.terminal([SANDBOX, "allow-ip", "remove", "10.20.30.40"], BOB) as terminal:
        asked(terminal)
        terminal.type(b"\x03")
        equal(terminal.wait(), -signal.SIGINT)
    wait_for(lambda: not agents(), "the agent's end")


@test(60, needs="bus")
def typed_into_tmux(lab):
    """The same by a real terminal emulator, as over a connection from elsewhere: no desktop, no session of logind."""
    from conform_tmux_cases import Tmux
    from storm_cases import jailed
    with_password(lab)
    place()
    with Tmux(jailed(lab, ALICE)) as tmux:
        tmux.line(f"CLAUDE_SANDBOX_ALLOW_WRITE={PLACE} {SANDBOX} shell -c 'touch {PLACE}/it; echo wro''te'")
        tmux.shows("Password:", 20)
        path = tmux.run("display-message", "-p", "#{pane_tty}").strip()
        with open(path, "rb", buffering=0) as tty:
            wait_for(lambda: not termios.tcgetattr(tty)[3] & termios.ECHO, "the echo is off while a password is typed")
        tmux.line(PASSWORD)
        screen = tmux.shows("\nwrote\nprompt>")
        holds(PASSWORD not in screen, screen)
        tmux.line("echo usa''ble")
        tmux.shows("\nusable")


@test(120, needs="bus")
def one_users_launches_do_not_hold_up_anothers(lab):
    """Five hundred calls of one user: most are refused or wait, and another's launch comes as soon as ever."""
    import dbus
    lab.workspace(ALICE)
    lab.workspace(BOB)
    machine_pid = lab.service_pid()
    children = []
    for _ in range(10):
        pid = os.fork()
        if pid == 0:
            try:
                os.initgroups(ALICE.name, ALICE.gid)
                os.setgid(ALICE.gid)
                os.setuid(ALICE.uid)
                connection = bus.Bus.connect()
                for _ in range(50):
                    message = dbus.lowlevel.MethodCallMessage(bus.NAME, bus.PATH, bus.MANAGER, "Launch")
                    message.append(signature=LAUNCH, *launch_arguments(argv=(b"-c", b"read x")))
                    connection.send_message(message)
                connection.flush()
                signal.pause()
            finally:
                os._exit(0)
        children.append(pid)
    try:
        wait_for(lambda: lab.sessions(), "the first of them", 20)
        slowest = 0.0
        for _ in range(5):
            start = time.monotonic()
            lab.shell("true", BOB).ok()
            slowest = max(slowest, time.monotonic() - start)
        holds(slowest < 10, f"another's launch took {slowest:.1f} s")
        rows = answer(lab.call("ListSessions", user=ROOT))[0]
        holds(len([row for row in rows if row[3] == "alice"]) <= 64, f"{len(rows)} sessions")
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    wait_for(lambda: not lab.sessions(), "nothing of it stays", 60)
    holds(machine_pid is None or lab.service_pid() == machine_pid, "the same service")
