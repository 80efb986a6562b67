# SPDX-License-Identifier: MIT
"""The interfaces as their users see them."""

import signal
import xml.etree.ElementTree as ElementTree

import raw
from fixture import *  # noqa: F403
from fixture import OTHER, USER, Actor, case, nothing_left, refused, service

STANDARD = ("org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable", PROPERTIES)


def interface_of(tree, name):
    """An interface as comparable values."""
    found = tree.find(f"interface[@name='{name}']")
    assert found is not None, name
    members = {}
    for member in found:
        arguments = [(a.get("name"), a.get("type"), a.get("direction", "out" if member.tag == "signal" else "in"))
                     for a in member.findall("arg")]
        annotations = sorted((a.get("name"), a.get("value")) for a in member.findall("annotation"))
        members[member.tag, member.get("name")] = (member.get("type"), member.get("access"), arguments, annotations)
    return members


@case
def introspection_is_the_xml(machine, watch):
    """The running service shows what the documented XML says, member by member."""
    documented = ElementTree.parse(SOURCE + "/dbus/org.claudesandbox1.xml").getroot()
    with Caller(USER) as user:
        _, path, _ = user.launch(b"run")
        for where, name in ((PATH, MANAGER), (path, SESSION)):
            shown = ElementTree.fromstring(introspect(user, where))
            assert interface_of(shown, name) == interface_of(documented, name), \
                (interface_of(shown, name), interface_of(documented, name))
            names = {i.get("name") for i in shown.findall("interface")}
            assert names == {name, *STANDARD}, names


@case
def errors_say_something(machine, watch):
    """Unknown members, objects, interfaces, properties and wrong types have an error with words."""
    with Caller(USER) as user:
        for call in ((PATH, MANAGER, "Nonsense"), (PATH, MANAGER, "StopSession", "s", "x"),
                     (PATH, MANAGER, "StopSession", "sa{sv}", "x", {}), (PATH + "/nowhere", MANAGER, "ListSessions"),
                     (PATH + "/session/aaaaaaaaaaaaaaaa", SESSION, "Stop"),
                     (PATH, PROPERTIES, "Get", "ss", MANAGER, "Nonsense"),
                     (PATH, PROPERTIES, "Set", "ssv", MANAGER, "Version", "2")):
            try:
                user.call(*call)
            except Error as e:
                assert e.message and "." in e.name and e.name != "python", (call, e)
            else:
                raise AssertionError(call)


@case
def own_sessions_only(machine, watch):
    """A user sees their own sessions: not the others' ids, paths, objects or signals; root sees all."""
    with Caller(USER) as user, Caller(OTHER) as other, Caller(0) as root:
        watchers = {uid: Watch(watch, uid) for uid in (0, USER, OTHER)}
        silent = Watch(watch, USER, subscribe=False)
        session, path, _ = user.launch(b"run")
        assert [s[0] for s in user.manager("ListSessions")] == [session]
        assert [s[0] for s in root.manager("ListSessions")] == [session]
        assert other.manager("ListSessions") == []
        assert user.get(PATH, MANAGER, "Sessions") == 1 and other.get(PATH, MANAGER, "Sessions") == 0
        assert session in introspect(user, PATH + "/session") and session in introspect(root, PATH + "/session")
        assert session not in introspect(other, PATH + "/session")
        refused("org.freedesktop.DBus.Error.UnknownObject", "", introspect, other, path)
        for call in ((path, PROPERTIES, "Get", "ss", SESSION, "Workspace"), (path, SESSION, "Stop"),
                     (path, PROPERTIES, "GetAll", "s", SESSION)):
            refused("org.freedesktop.DBus.Error.UnknownObject", "", other.call, *call)
        sentences = [refused("NoSuchSession", "manage-sessions", other.manager, "StopSession", "sa{sv}", name, {}).message
                     for name in (session, "aaaaaaaaaaaaaaaa")]
        assert sentences[0].replace(session, "aaaaaaaaaaaaaaaa") == sentences[1], sentences
        refused("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", "manage-sessions", other.manager, "ListAllSessions")
        assert root.get(path, SESSION, "Uid") == USER
        root.manager("StopSession", "sa{sv}", session, {})
        watchers[0].expect("SessionRemoved")
        watchers[USER].expect("SessionRemoved")
        other.launch(b"exit")
        watchers[OTHER].expect("SessionRemoved")
        lines = {uid: w.close() for uid, w in watchers.items()}
        assert not any(session in line for line in lines[OTHER]), lines[OTHER]
        assert silent.close() == ["ready"], silent.lines
        for uid in (0, USER):
            assert f"SessionAdded {PATH} {session} 0" in lines[uid], lines[uid]
            assert f"changed {path} State" in lines[uid] and f"changed {path} Warnings" in lines[uid], lines[uid]
            assert f"changed {PATH} Sessions" in lines[uid], lines[uid]


@case
def unsubscribed(machine, watch):
    """After Unsubscribe there are no signals."""
    with Caller(USER) as user:
        user.manager("Subscribe")
        user.manager("Unsubscribe")
        user.launch(b"exit")


@case
def subscribers_are_counted(machine, watch):
    """One user cannot make the service speak to hundreds of connections."""
    watchers = [Watch(watch, USER) for _ in range(16)]
    with Caller(USER) as user, Caller(OTHER) as other:
        refused("LimitsExceeded", "subscribed already", user.manager, "Subscribe")
        other.manager("Subscribe")
        watchers.pop().close()
        wait_for(lambda: subscribed(user), "room for another one")
        for watcher in watchers:
            watcher.close()


def subscribed(user):
    try:
        user.manager("Subscribe")
        return True
    except Error:
        return False


@case
def changes_are_told_together(machine, watch):
    """A session that changes its state without end does not make the service speak without end."""
    with Caller(USER) as user:
        watcher = Watch(watch, USER)
        session, _, _ = user.launch(b"flood")
        end = time.monotonic() + 1
        while time.monotonic() < end:
            watcher.read(end - time.monotonic())
        user.manager("StopSession", "sa{sv}", session, {"grace": 0})
        changes = [line for line in watcher.close() if line.startswith("StateChanged")]
        assert 2 <= len(changes) <= 20, changes


@case
def busctl_works(machine, watch):
    """busctl, as any user, with what every method takes."""
    with Caller(USER) as user:
        session, path, _ = user.launch(b"run")
        for uid in (0, USER, OTHER):
            def busctl(*arguments):
                return subprocess.run(["busctl", "--system", *arguments], user=uid, group=uid, extra_groups=[],
                                      check=True, stdout=subprocess.PIPE, text=True).stdout
            assert "ListSessions" in busctl("introspect", NAME, PATH)
            assert "SessionAdded" in busctl("introspect", NAME, PATH)
            assert busctl("get-property", NAME, PATH, MANAGER, "Version").startswith('s "')
            assert busctl("call", NAME, PATH, MANAGER, "ListAllowIp") == "a(sss) 0\n"
            assert (session in busctl("call", NAME, PATH, MANAGER, "ListSessions")) == (uid != OTHER)
            assert (session in busctl("tree", NAME)) == (uid != OTHER)
        assert 's "running"' in subprocess.run(["busctl", "--system", "get-property", NAME, path, SESSION, "State"],
                                               user=USER, group=USER, extra_groups=[], check=True,
                                               stdout=subprocess.PIPE, text=True).stdout
        subprocess.run(["busctl", "--system", "call", NAME, PATH, MANAGER, "StopSession", "sa{sv}", session, "0"],
                       user=USER, group=USER, extra_groups=[], check=True)


@case
def a_burst_keeps_its_order(machine, watch):
    """What a new caller sends before the bus says who it is, is answered, and in order."""
    for _ in range(5):
        done = subprocess.run([watch, "burst", "8"], user=USER, group=USER, extra_groups=[], check=True,
                              stdout=subprocess.PIPE, text=True, timeout=30)
        assert done.stdout == "".join(f"{i} ok\n" for i in range(8)), done.stdout
    done = subprocess.run([watch, "burst", "120"], user=USER, group=USER, extra_groups=[], check=True,
                          stdout=subprocess.PIPE, text=True, timeout=30)
    assert len(done.stdout.splitlines()) == 120, done.stdout
    for line in done.stdout.splitlines():
        assert line.endswith((" ok", " " + ERROR + "LimitsExceeded")), line


@case
def long_messages_are_not_kept(machine, watch):
    """A message that no launch could need is refused before anything is done with it."""
    with Caller(USER) as user:
        refused("LimitsExceeded", "too long", user.manager, "StopSession", "sa{sv}", "x" * 4000000, {})
        refused("LimitsExceeded", "too long", user.launch, *[b""] * 500000)
        refused("LimitsExceeded", "too long", user.launch, b"x" * 3300000, fresh=True)


def answer_of_first(kept):
    error, _ = kept[0].answer(2)
    return error.encode() or b"fine"


@case
def who_holds_most_makes_room(machine, watch):
    """Messages of senders that are not known yet share a table: hundreds of one user's do not fill it for others."""
    with Caller(USER) as user:
        user.manager("ListSessions")
        pid = service()
        os.kill(pid, signal.SIGSTOP)
        try:
            with Actor(USER, raw.first_calls, 120, 8).done(), \
                    Actor(OTHER, raw.first_calls, 1, 1, then=answer_of_first).done() as other:
                os.kill(pid, signal.SIGCONT)
                answer = other.then()
                assert answer == b"fine", answer
        finally:
            os.kill(pid, signal.SIGCONT)
        assert service() == pid


def replace_configuration(text):
    with open("/etc/claude-sandbox.conf.new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename("/etc/claude-sandbox.conf.new", "/etc/claude-sandbox.conf")


@case
def changes_of_the_configuration_are_told(machine, watch):
    """PolicyChanged and AllowIpChanged come when the file says something else, and only then, to who subscribed."""
    watcher, silent = Watch(watch, OTHER), Watch(watch, OTHER, subscribe=False)
    with Caller(OTHER) as other:
        for text, wanted in (
                ("# words alone\n", []),
                ("no-forge\n", ["PolicyChanged"]),
                ("no-forge\nallow-ip = 10.9.8.7 # printer\n", ["PolicyChanged", "AllowIpChanged"]),
                ("no-forge\nallow-ip = 10.9.8.7 # scanner\n", ["AllowIpChanged"]),
                ("no-forge\nallow-ip = 10.9.8.7 # scanner\n# the end\n", []),
                ("no-forge\n# more\nallow-ip = 10.9.8.7 # scanner\n", ["PolicyChanged"]),
                ("no-forge\nallow-ip = 10.9.8.6 # scanner\n", ["PolicyChanged", "AllowIpChanged"]),
                ("nonsense\n", ["PolicyChanged", "AllowIpChanged"]),
                (None, ["PolicyChanged", "AllowIpChanged"])):
            if text is None:
                machine.unconfigure()
            else:
                replace_configuration(text)
            with open("/etc/claude-sandbox.other", "w", encoding="utf-8"):
                pass
            # what is told of a session comes after what its launch has found
            if text == "nonsense\n":
                watcher.expect("AllowIpChanged")
            else:
                other.launch(b"exit")
                watcher.expect("SessionRemoved")
            found = [line.split()[0] for line in watcher.take()]
            found = [name for name in found if name in ("PolicyChanged", "AllowIpChanged")]
            assert found == wanted, (text, found, wanted)
        machine.configure("no-forge\n")
        watcher.expect("PolicyChanged")
        nothing_left(other)
        assert not [line for line in silent.close() if "PolicyChanged" in line or "AllowIpChanged" in line]
        watcher.close()
        wait_for(lambda: not watches_files(service()), "the end of the watch with its last subscriber")


def watches_files(pid):
    return [fd for fd in os.listdir(f"/proc/{pid}/fd") if "inotify" in os.readlink(f"/proc/{pid}/fd/{fd}")]
