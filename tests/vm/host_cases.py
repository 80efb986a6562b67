# SPDX-License-Identifier: MIT
"""What happens to a machine while sessions run: its security module, its network, its clock, its disks."""

import time

import guest
from case import SANDBOX, Session, equal, has, holds, test

HELLO = "timeout 20 bash -c 'exec 3<>/dev/tcp/{}/7007 && cat <&3'"
NAMED = HELLO.format("name.example")
HELLO_OUTSIDE = "hello from 93.184.216.34"


def reaches(session, what=""):
    """By name: the route, pasta and the name server."""
    end = time.monotonic() + guest.PATIENCE
    while HELLO_OUTSIDE not in (said := session.ask(NAMED)):
        holds(time.monotonic() < end, f"{what}: {said}")


def refused(session, address, what=""):
    said = session.ask(HELLO.format(address))
    holds("hello" not in said, f"{what}: {address} was reached: {said}")


@test(smoke=True)
def apparmor_is_enforced(machine):
    """With passt's profile loaded and enforcing, and pasta under it; Doctor says so, the kernel blocks nothing."""
    loaded = machine.run(["cat", "/sys/kernel/security/apparmor/profiles"]).ok().out
    holds("passt (enforce)" in loaded or "pasta (enforce)" in loaded, loaded)
    machine.shell("dmesg -C").ok()
    session = Session(machine)
    profile = machine.shell("for pid in $(pgrep '^(passt|pasta)'); do cat /proc/$pid/attr/apparmor/current; done").out
    has(profile, "(enforce)")
    reaches(session)
    equal(session.end(), 3)
    rows = machine.person("alice", "cd project; claude-sandbox doctor --json")
    equal(rows.status, 0, rows)
    has(rows.out, "by inherited descriptors", "(enforce)")
    equal(machine.shell("dmesg | grep DENIED | grep -E 'pass?ta|passt'").out, "", "the kernel's log")


@test()
def resolved_is_installed(machine):
    """While a session runs: names go on, in it and in new ones, with the profile and with the link into /run."""
    before = machine.shell("readlink -f /etc/resolv.conf; cp -a /etc/resolv.conf /root/resolv.conf.before").out
    old = Session(machine)
    reaches(old, f"before ({before.strip()})")
    machine.shell("dpkg -i /root/later/*.deb && systemctl reload dbus && systemctl restart systemd-resolved").ok()
    try:
        machine.shell("ln -sfn ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf; "
                      "resolvectl dns uplink 192.168.77.1; resolvectl domain uplink '~.'").ok()
        machine.wait_for("getent hosts name.example")
        reaches(old, "the session that ran")
        new = Session(machine, directory="another")
        reaches(new, "a new session")
        result = machine.person("alice", "cd project; claude-sandbox doctor")
        equal(result.status, 0, result)
        for session in (old, new):
            session.end()
    finally:
        machine.shell("systemctl disable --now systemd-resolved; apt-get -q -y purge systemd-resolved; rm -f /etc/resolv.conf; "
                      "cp -a /root/resolv.conf.before /etc/resolv.conf")


@test()
def the_network_changes(machine):
    """A session follows each change, is never wider for it, and reaches the internet again after it."""
    session = Session(machine)
    reaches(session, "at the start")

    def step(what, script, denied=(), undo=""):
        machine.shell(script).ok()
        for address in ("192.168.77.1", "10.1.2.3", *denied):
            refused(session, address, what)
        if undo:
            machine.shell(undo).ok()
        reaches(session, what)

    # a lease is two minutes long
    acks = machine.shell("grep -c DHCPACK /run/vm/dnsmasq.log").ok().out.strip()
    machine.wait_for(f"[ $(grep -c DHCPACK /run/vm/dnsmasq.log) -gt {acks} ]")
    step("the lease was renewed", "true")
    step("the cable is pulled", "ip link set uplink down; ip link set uplink up",
         undo="ifdown --force uplink; ifup uplink")
    step("another address", "ip address add 192.168.77.7/24 dev uplink", ("192.168.77.7",),
         "ip address del 192.168.77.7/24 dev uplink")
    step("a bridge with a public range", "ip link add docker0 type bridge && ip address add 203.0.114.1/24 dev docker0 && "
         "ip link set docker0 up", ("203.0.114.1",), "ip link del docker0")
    step("a second uplink", "ip link add eth9 type dummy && ip address add 203.0.117.5/24 dev eth9 && ip link set eth9 up && "
         "ip route add default via 203.0.117.1 dev eth9 metric 500", ("203.0.117.5", "203.0.117.1"), "ip link del eth9")
    step("a tunnel takes the default route", "ip tuntap add mode tun vpn0 && ip address add 203.0.115.2/24 dev vpn0 && "
         "ip link set vpn0 up && ip route add 0.0.0.0/1 dev vpn0 && ip route add 128.0.0.0/1 dev vpn0",
         ("203.0.115.2", "203.0.115.9"), "ip link del vpn0")
    step("a policy rule", "ip rule add not fwmark 51820 table 51820", (), "ip rule del not fwmark 51820 table 51820")
    step("no default route, then one again", "ip route flush default",
         undo="ip route replace default via 192.168.77.1 dev uplink")
    step("the file of name servers is emptied, then whole", "cp /etc/resolv.conf /root/r; : >/etc/resolv.conf",
         undo="cat /root/r >/etc/resolv.conf")
    step("networking restarts", "systemctl restart networking; ifup uplink; true")
    session.lives("after all of it")
    equal(session.end(), 3)


@test()
def the_clock_jumps(machine):
    """A day forth and back: no session ends, no call waits."""
    session = Session(machine)
    for jump in ("+1 day", "-2 days", "+1 day"):
        machine.shell(f"date -s '{jump}'").ok()
        session.lives(jump)
        machine.run([SANDBOX, "show", session.id]).ok()
    equal(session.end(), 3)
    session.is_gone()


@test()
def the_disk_is_full(machine):
    """A session goes on, one starts or says why not, and all is well when there is room again."""
    session = Session(machine)
    machine.shell("fallocate -l $(($(df --output=avail -B1 / | tail -n 1))) /full; dd if=/dev/zero of=/full2 bs=4k; true")
    session.lives("with a full disk")
    machine.person("alice", "cd project; claude-sandbox shell -c true")
    machine.shell("rm -f /full /full2").ok()
    session.lives("with room again")
    equal(session.end(), 3)
    machine.person("alice", "cd project; claude-sandbox shell -c true").ok()


@test()
def run_is_full(machine):
    """Where no run directory can be made, the refusal names it; nothing is left of it."""
    machine.shell("dd if=/dev/zero of=/run/full bs=64k; dd if=/dev/zero of=/run/full2 bs=1; true")
    result = machine.person("alice", "cd project; claude-sandbox shell -c true")
    machine.shell("rm -f /run/full /run/full2").ok()
    if result.status != 0:
        has(result.err, "claude-sandbox: ", "/run")
    machine.person("alice", "cd project; claude-sandbox shell -c true").ok()
