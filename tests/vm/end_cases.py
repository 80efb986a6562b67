# SPDX-License-Identifier: MIT
"""Rights over ssh, another machine, and what ends or replaces the product. These come last."""

from case import SANDBOX, Session, equal, has, holds, ids, test


@test()
def polkit_asks_over_ssh(machine):
    """A person who asks for more is asked for the administrator's password on that terminal."""
    program = machine.login("alice", "claude-sandbox allow-ip add 10.1.2.3; echo \"ended-$?\"", terminal=True)
    program.expect("Password:")
    program.type("wrong\n")
    program.expect("ended-125")
    program.wait()
    program = machine.login("alice", "claude-sandbox allow-ip add 10.1.2.3; echo \"ended-$?\"", terminal=True)
    program.expect("Password:")
    program.type("alice-pw\n")
    program.expect("ended-0")
    program.wait()
    session = Session(machine)
    has(session.ask("exec 3<>/dev/tcp/10.1.2.3/7007; cat <&3"), "hello from 10.1.2.3")
    session.end()
    machine.run([SANDBOX, "allow-ip", "remove", "10.1.2.3"]).ok()


@test()
def another_machine(machine):
    """-H: by the real ssh, those sessions that the user there may see."""
    session = Session(machine)
    has(machine.person("bob", f"{SANDBOX} -H alice@127.0.0.1 sessions").ok().out, session.id)
    holds(session.id not in machine.person("alice", f"{SANDBOX} -H bob@127.0.0.1 sessions").ok().out, "bob's view")
    equal(machine.person("alice", f"{SANDBOX} -H alice@127.0.0.1:4 sessions").status, 125)
    session.end()


@test()
def upgraded_with_a_live_session(machine):
    """quickstart again: the session goes on under the new service, and ends as ever."""
    session = Session(machine)
    machine.shell("cd /home/alice/claude-sandbox && ./quickstart --no-start").ok()
    session.lives("after quickstart")
    equal(session.end(), 3)
    session.is_gone()


def modules(machine):
    return {line.split()[0] for line in machine.run(["cat", "/proc/modules"]).ok().out.splitlines()}


@test()
def rebooted_with_a_live_session(machine):
    """
    Nothing holds the shutdown up, and the next start finds nothing of the session. On the fresh kernel then: what is
    tried to get out of a jail loads no module.
    """
    Session(machine)
    machine.reboot()
    equal(ids(machine), set())
    equal(machine.shell("ls -A /run/claude-sandbox/sessions 2>/dev/null").out, "")
    machine.person("alice", "cd project; claude-sandbox shell -c true").ok()
    before = modules(machine)
    machine.person("alice", "cd project; claude-sandbox verify --probes shell").ok()
    # by these a session asks the kernel, outside the jail, whose a refused packet was
    equal(modules(machine) - before - {"inet_diag", "tcp_diag", "udp_diag"}, set(), "modules that Verify's probes load")


@test()
def uninstalled(machine):
    """Not while a session runs; then without a trace but what it says."""
    session = Session(machine)
    result = machine.shell("cd /home/alice/claude-sandbox && ./quickstart --uninstall")
    holds(result.status != 0 and session.id[:8] in result.err, result)
    session.end()
    session.is_gone()
    machine.shell("cd /home/alice/claude-sandbox && ./quickstart --uninstall").ok()
    left = machine.shell("find / -xdev \\( -path /proc -o -path /sys -o -path /home -o -path /var/log -o -path /var/lib/vm \\) "
                         "-prune -o -iname '*claude*' -print").out
    equal(left, "", "left behind")
    for what in ("systemctl list-unit-files --no-legend 'claude*'", "pkaction | grep -i claudesandbox",
                 "busctl --system list --activatable --no-legend | grep -i claudesandbox"):
        equal(machine.shell(what).out, "", what)
