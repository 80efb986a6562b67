# SPDX-License-Identifier: MIT
"""Faults of the person's surroundings: the network, names, agents, PATH, home."""

import os
import shutil

import injuries
import machine
import system
from fault_table import BOTH, MISSING, OTHER, STARTED, WARNED, because, fault, quoted
from machine import ALICE, ROOT

REST = "/usr/local/bin:/usr/bin:/bin"


# The host's network

@fault("network.uplink", "warn", **because("UPLINK_NONE"), launch=WARNED)
def no_uplink(lab, _user):
    """The host has no default route"""
    injuries.no_default_route(lab)


@fault("network.forwarder", "note", "192.0.2.53 lies in a network of the host or in an allow-ip, so 198.51.100.53 is used",
       launch=STARTED)
def forwarder_taken(lab, _user):
    """192.0.2.0/24 is a network of the host"""
    injuries.subnet(lab, "192.0.2.7/24")


@fault("network.forwarder", "fail", **because("FORWARDER_NONE"), launch=WARNED, also={"dns.answers": "note"})
def forwarders_taken(lab, _user):
    """All three documentation networks are the host's"""
    for address in ("192.0.2.7/24", "198.51.100.7/24", "203.0.113.7/24"):
        injuries.subnet(lab, address)


@fault("dns.resolver", "fail", **because("RESOLVER_NONE"), launch=WARNED, also={"dns.answers": "note"}, users=(ALICE,), slow=True)
def no_resolver(lab, _user):
    """/etc/resolv.conf names nobody"""
    injuries.resolvers(lab, "search corp.example\n")


@fault("dns.resolver", "fail", **because("RESOLVER_NO_IPV4"), launch=WARNED, also={"dns.answers": "note"}, users=(ALICE,), slow=True)
def resolver_of_ipv6(lab, _user):
    """/etc/resolv.conf names an IPv6 server alone"""
    injuries.resolvers(lab, "nameserver 2001:db8:1::1\n")


@fault("dns.resolver", "fail", **because("RESOLVER_NONE"), launch=WARNED,
       also={"dns.answers": "note", "chain.plan": "note"}, users=(ALICE,), slow=True)
def no_resolv_conf(lab, _user):
    """There is no /etc/resolv.conf"""
    lab.hide(injuries.RESOLV)


@fault("dns.resolver", "fail", **because("RESOLVER_SILENT", "127.0.0.77", "Connection refused"), launch=STARTED,
       also={"dns.answers": "note"}, users=(ALICE,), slow=True)
def resolver_dead(lab, _user):
    """Nobody listens where the name server should"""
    injuries.resolvers(lab, "nameserver 127.0.0.77\n")


@fault("dns.resolver", "fail", **because("RESOLVER_SILENT", "127.0.0.78", "silence"), launch=STARTED,
       also={"dns.answers": "note"}, users=(ALICE,), slow=True)
def resolver_deaf(lab, _user):
    """The name server hears and does not answer"""
    injuries.deaf_server(lab, "127.0.0.78")


# Agents

@fault("agent.claude", "note", **because("AGENT_MISSING", "claude", fix=["claude"]), launch=MISSING)
def agent_missing(lab, user):
    """Claude is not installed"""
    lab.hide(f"{user.home}/.local/bin/claude")


@fault("agent.claude", "warn", **because("AGENT_ODD", "claude", "…", "leads to the entry of the jail", fix=["claude"]), launch=MISSING)
def agent_is_our_entry(lab, user):
    """The own install leads to our entry"""
    injuries.agent_is(lab, user, "/usr/local/bin/claude")


@fault("agent.claude", "warn", **because("AGENT_ODD", "claude", "…", "is a link that leads nowhere", fix=["claude"]), launch=MISSING)
def agent_leads_nowhere(lab, user):
    """The own install is a dangling link"""
    injuries.agent_is(lab, user, "/nonexistent/claude")


# PATH

def home_first(user):
    return {"env": {"PATH": f"{user.home}/.local/bin:{REST}"}}


@fault("entry.path", "fail", **because("ENTRY_BEHIND", "claude", "…"), launch=OTHER, where=home_first)
def entry_shadowed(_lab, _user):
    """The own install stands before /usr/local/bin on PATH"""


def workspace_first(user):
    return {"env": {"PATH": f"{user.home}/project/bin:{REST}"}}


def removed(lab, _fix):
    for user in BOTH:
        if os.path.exists(f"{user.home}/project/bin/claude"):
            os.unlink(f"{user.home}/project/bin/claude")


@fault("entry.planted", "fail", **because("ENTRY_PLANTED", "…/project/bin/claude"), where=workspace_first, step="chain.plan",
       also={"entry.path": "fail"}, mend=removed)
def entry_planted(lab, user):
    """A `claude` in the workspace stands before /usr/local/bin on PATH"""
    injuries.planted(lab, user)


@fault("entry.planted", "fail", "PATH has '.' before /usr/local/bin, which depends on the current directory, where an agent may "
       "have put a program", "name it from / on, or put /usr/local/bin before it on PATH",
       where=lambda user: {"env": {"PATH": f".:{REST}"}}, step="chain.plan")
def path_relative(_lab, _user):
    """PATH begins with the current directory"""


@fault("entry.path", "note", "an agent's own installer has put a program into …/.claude/local, which starts without a jail by its path, "
       "or by an alias that was not found", "remove it, with 'rm -r …/.claude/local'", launch=STARTED, mend=quoted)
def program_aside(lab, user):
    """Claude's own installer has made ~/.claude/local"""
    machine.write(f"{user.home}/.claude/local/claude", "#!/bin/sh\n", 0o755, user)
    lab.undo.append(lambda: shutil.rmtree(f"{user.home}/.claude/local", ignore_errors=True))


@fault("entry.path", "fail", **because("ENTRY_OFF_PATH"), launch=OTHER, where=lambda user: {"env": {"PATH": "/usr/bin:/bin"}})
def path_without_us(_lab, _user):
    """/usr/local/bin is not on PATH"""


@fault("entry.planted", "fail", "PATH has '…/project/none' before /usr/local/bin, which does not exist, and agents could make it in "
       "…/project", "create it, take it out, or put /usr/local/bin before it on PATH",
       where=lambda user: {"env": {"PATH": f"{user.home}/project/none:{REST}"}}, step="chain.plan")
def path_to_be_made(_lab, _user):
    """PATH begins with a directory that the agent could make"""


# Who one is

@fault("git.identity", "warn", **because("GIT_IDENTITY_NONE"), launch=STARTED)
def git_identity_missing(lab, user):
    """git knows no name and no address"""
    lab.hide(f"{user.home}/.gitconfig")


@fault("user.home", "note", "HOME is /srv/odd, and passwd says …, which is what agents are given; both are hidden",
       "unset HOME, or let passwd name the right one", launch=STARTED, where=lambda user: {"env": {"HOME": "/srv/odd"}})
def home_odd(lab, _user):
    """HOME is not the home of passwd"""
    os.makedirs("/srv/odd", exist_ok=True)
    lab.undo.append(lambda: shutil.rmtree("/srv/odd"))


@fault("user.home", "fail", "HOME /etc lies in or around a system directory and cannot be hidden from the agent",
       "give the person a directory of their own, or unset HOME", where=lambda user: {"env": {"HOME": "/etc"}}, step="chain.plan")
def home_impossible(_lab, _user):
    """HOME is /etc"""


def confined(_user):
    return {"before": lambda: system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)}


@fault("user.caller", "fail",
       "A session is refused: the caller has no_new_privs set. A session would give the caller what it lacks",
       "call from an ordinary login shell on this machine", where=confined)
def caller_confined(_lab, _user):
    """The caller has NoNewPrivs, which the service has not"""


@fault("user.root", "warn", "this is root: sessions work, but the agents' own sandboxes are off in them",
       "start agents as an ordinary user", launch=STARTED, users=(ROOT,))
def root(_lab, _user):
    """Root starts agents"""


@fault("user.directory", "note", "/etc cannot be the workspace: it is a system directory",
       "change to the directory of a project (mkdir makes one), or name one with workspace-root", where=lambda user: {"cwd": "/etc"})
def directory_unsafe(_lab, _user):
    """The current directory is /etc"""
