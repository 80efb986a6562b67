# SPDX-License-Identifier: MIT
"""Faults of what is the administrator's: configuration, bus, polkit, installed files, leavings."""

import os
import signal
import subprocess

import bus
import injuries
from authority import end_polkit, pid_of_polkit, rules
from case import CLAUDE, CONFIG, SANDBOX, SESSIONS, equal, wait_for
from fault_table import OTHER, STARTED, WAITS, because, fault, quoted, unquoted
from machine import ALICE, MALLORY, ROOT

POLICY = "/usr/share/dbus-1/system.d/org.claudesandbox1.conf"
ACTIVATION = "/usr/share/dbus-1/system-services/org.claudesandbox1.service"
ACTIONS = "/usr/share/polkit-1/actions/org.claudesandbox1.policy"
POLKIT_ACTIVATION = "/usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service"
POLKIT = "/usr/lib/polkit-1/polkitd"
VERIFY = "/usr/libexec/claude-sandbox/verify"
INIT = "/usr/libexec/claude-sandbox/init"


# Configuration

@fault("config.file", "fail", f"{CONFIG}:2: unknown key 'bogus-key'", "correct it or remove the line", also={"config.warnings": "note"})
def configuration_bad(lab, _user):
    """An unknown key in the configuration"""
    lab.configure("no-forge\nbogus-key = 1\n")


def on_the_file(lab, fix):
    command = fix.split("'sudo ")[1].split("'")[0]
    lab.run(["/bin/sh", "-c", f"{command} {CONFIG}"], ROOT, cwd="/").ok()


@fault("config.owner", "fail", **because("CONFIG_MODE", CONFIG), mend=on_the_file)
def configuration_writable(lab, _user):
    """The configuration may be written by everybody"""
    lab.configure("no-forge\n", 0o666)


@fault("config.owner", "fail", **because("CONFIG_OWNER", CONFIG, ALICE.uid), mend=on_the_file)
def configuration_of_another(lab, _user):
    """The configuration is not root's"""
    lab.configure("no-forge\n")
    os.chown(CONFIG, ALICE.uid, ALICE.gid)


@fault("config.owner", "fail", **because("CONFIG_LINK", CONFIG))
def configuration_a_link(lab, _user):
    """The configuration is a symbolic link"""
    lab.replace(CONFIG + ".real", "no-forge\n")
    injuries.instead(lab, CONFIG, lambda path: os.symlink(CONFIG + ".real", path))


@fault("config.owner", "fail", **because("CONFIG_IRREGULAR", CONFIG))
def configuration_a_fifo(lab, _user):
    """The configuration is a FIFO"""
    injuries.instead(lab, CONFIG, os.mkfifo)


@fault("config.warnings", "note", "egress-jail is off, allow-write = /srv", launch=OTHER,
       also=dict.fromkeys(("network.uplink", "network.forwarder", "chain.tap", "chain.routes", "chain.wire", "dns.answers"), "note"))
def configuration_opens(lab, _user):
    """The configuration opens the jail"""
    lab.configure("egress-jail = 0\nallow-write = /srv\n")


@fault("config.environment", "warn", **because("ENVIRONMENT_WIDENS", CONFIG, "…"), launch=OTHER,
       where=lambda user: {"env": {"CLAUDE_SANDBOX_EGRESS_JAIL": "0"}})
def environment_opens(_lab, _user):
    """A variable asks for more than the configuration gives"""


# Installed files

@fault("files.owner", "fail", **because("FILE_OWNER", INIT, MALLORY.uid, "0755", fix=[INIT, INIT]), launch=OTHER, mend=unquoted)
def file_of_another(lab, _user):
    """A program of ours is not root's"""
    injuries.owner(lab, INIT, MALLORY)


@fault("files.owner", "fail", **because("FILE_MISSING", injuries.SESSION), launch=OTHER, also={"chain.session": "fail"})
def file_missing(lab, _user):
    """A program of ours is missing"""
    lab.hide(injuries.SESSION)


@fault("entry.ours", "fail", **because("ENTRY_OTHER", CLAUDE), launch=OTHER, also={"entry.path": "fail"})
def entry_replaced(lab, _user):
    """/usr/local/bin/claude is another program"""
    lab.replace(CLAUDE, "#!/bin/sh\n", 0o755)


@fault("run.stale", "warn", **because("RUN_STALE", 1, SESSIONS, "…"), launch=STARTED,
       mend=lambda lab, fix: lab.stop_service())
def run_directory_stale(lab, _user):
    """A run directory whose session has gone"""
    lab.call("ListSessions", user=ROOT).ok()
    injuries.stale(lab)


@fault("files.owner", "fail", **because("FILE_MISSING", INIT), launch=OTHER, also={"chain.mounts": "fail"})
def init_missing(lab, _user):
    """The jail's first program is missing"""
    lab.hide(INIT)


@fault("files.owner", "fail", **because("FILE_MISSING", VERIFY), launch=STARTED, also={"chain.agent": "fail"})
def verify_missing(lab, _user):
    """The program of checks is missing"""
    lab.hide(VERIFY)


@fault("chain.session", "fail", f"You have 1 session, and max-sessions in {CONFIG} allows 1",
       "end one ('claude-sandbox sessions' lists them)")
def sessions_used_up(lab, user):
    """The user's sessions are as many as there may be"""
    lab.configure("max-sessions = 1\n")
    held = lab.start([SANDBOX, "shell", "-c", "echo ready; read x"], user, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lab.undo.append(lambda: (held.stdin.close(), held.wait(10), held.stdout.close(),
                             wait_for(lambda: not lab.sessions(), "the session is gone")))
    equal(held.stdout.readline(), b"ready\n")


# The bus

@fault("service.bus", "fail", **because("BUS_NONE", "/run/dbus/system_bus_socket"), bus=False)
def no_bus(lab, _user):
    """There is no system bus"""
    injuries.no_bus(lab)


@fault("service.policy", "fail", **because("POLICY_MISSING", POLICY), bus=False)
def policy_missing(lab, _user):
    """The bus policy is not installed"""
    injuries.changed_bus(lab, lambda: lab.hide(POLICY))


@fault("service.policy", "fail", **because("BUS_POLICY", "org.claudesandbox1", "…"), bus=False)
def policy_denies(lab, _user):
    """Another policy lets nobody talk to the service"""
    injuries.changed_bus(lab, lambda: lab.replace(
        "/etc/dbus-1/system.d/lab.conf", '<busconfig><policy context="mandatory"><deny send_destination="org.claudesandbox1"/>'
        "</policy></busconfig>\n"), running=True)


@fault("service.activation", "fail", **because("FILE_MISSING", ACTIVATION), bus=False)
def activation_missing(lab, _user):
    """The bus does not know how to start the service"""
    injuries.changed_bus(lab, lambda: lab.hide(ACTIVATION))


@fault("service.activation", "fail", **because("ACTIVATION_BROKEN", ACTIVATION, "/nonexistent", "No such file or directory"),
       bus=False)
def activation_broken(lab, _user):
    """The bus starts a program that is not there"""
    injuries.changed_bus(lab, lambda: lab.replace(
        ACTIVATION, "[D-BUS Service]\nName=org.claudesandbox1\nExec=/nonexistent\nUser=root\n"))


@fault("service.activation", "fail", **because("SERVICE_UNSTARTED", "org.claudesandbox1", "…"), bus=False)
def service_fails(lab, _user):
    """The service ends at once"""
    lab.undo.append(lab.stop_service)
    lab.stop_service()
    lab.replace(injuries.SERVICE, "#!/bin/sh\nexit 1\n", 0o755)


@fault("service.name", "fail", **because("SERVICE_GONE"), bus=False)
def service_dies(lab, _user):
    """The service dies while it is asked"""
    injuries.other_service(lab, """
bus.add_message_filter(lambda connection, message: os._exit(1) if message.get_type() == 1 else None)
name = dbus.service.BusName("org.claudesandbox1", bus)
GLib.MainLoop().run()""")


@fault("service.name", "fail", **because("SERVICE_OTHER", "…"), bus=False)
def service_of_another_version(lab, _user):
    """The service that runs has no such call"""
    injuries.other_service(lab, """
name = dbus.service.BusName("org.claudesandbox1", bus)
GLib.MainLoop().run()""")


@fault("service.name", "fail", **because("NAME_OTHER", "org.claudesandbox1", "…", "thief", 0), bus=False)
def name_of_another(lab, _user):
    """Another program owns the service's name"""
    injuries.other_service(lab, """
with open("/proc/self/comm", "w") as f:
    f.write("thief")
name = dbus.service.BusName("org.claudesandbox1", bus)
GLib.MainLoop().run()""")


@fault("service.name", "fail", **because("NAME_OTHER", "org.claudesandbox1", "…", "…", 0), bus=False, launch=WAITS,
       users=(ALICE,))
def name_of_a_silent_one(lab, _user):
    """Another program owns the service's name, and answers nothing"""
    injuries.owner_of_the_name(lab)


@fault("service.name", "fail", **because("SERVICE_SILENT", "org.claudesandbox1", "…", fix=["…"]), bus=False, launch=WAITS,
       users=(ALICE,), slow=True, mend=quoted)
def service_hangs(lab, _user):
    """The service is stopped"""
    lab.call("ListSessions", user=ROOT).ok()
    pid = lab.service_pid()
    lab.undo.append(lambda: bus.wait_pid_gone(pid, 10))
    os.kill(pid, signal.SIGSTOP)


# polkit

@fault("polkit.actions", "fail", **because("POLKIT_UNKNOWN", "org.claudesandbox1.launch"), users=(ALICE,), step="polkit.launch")
def polkit_without_actions(lab, _user):
    """polkit's actions are not installed"""
    injuries.polkit_forgets(lab, lambda: lab.hide(ACTIONS))


@fault("polkit.alive", "warn", **because("POLKIT_ABSENT", "org.claudesandbox1.widen"), users=(ALICE,), launch=STARTED,
       also={"polkit.actions": "note"})
def polkit_absent(lab, _user):
    """polkit is not on this machine"""
    lab.undo.append(injuries.polkit_is_there)
    injuries.changed_bus(lab, lambda: (lab.hide(POLKIT_ACTIVATION), end_polkit(lab)), running=True)


@fault("polkit.alive", "fail", **because("POLKIT_BROKEN", "org.claudesandbox1.launch", "…"), users=(ALICE,),
       also={"polkit.actions": "note"})
def polkit_dead(lab, _user):
    """polkitd ends as often as it is started"""
    injuries.polkit_forgets(lab, lambda: lab.replace(POLKIT, "#!/bin/sh\nexit 1\n", 0o755))


@fault("polkit.launch", "fail", **because("POLKIT_NO", "org.claudesandbox1.launch"), users=(ALICE,))
def polkit_says_no(lab, _user):
    """A rule of the administrator's forbids it"""
    lab.undo.append(injuries.polkit_is_there)
    rules(lab, launch="NO")


@fault("polkit.alive", "fail", **because("POLKIT_SILENT", "org.claudesandbox1.launch"), users=(ALICE,), launch=WAITS, slow=True,
       also={"polkit.actions": "note"})
def polkit_hangs(lab, _user):
    """polkitd is stopped"""
    lab.shell("true").ok()
    injuries.stopped(lab, pid_of_polkit(lab))
