# SPDX-License-Identifier: MIT
"""Names inside: the host's resolvers as they are and as they change, and names that are no way round a denial."""

import contextlib
import json
import os
import shutil
import struct
import threading

import machine
import network
from bus_cases import Held
from case import equal, holds, test, wait_for
from listener_cases import Listener
from machine import ALICE, PROBE, ROOT
from reach_cases import arrived, quiet
from uplink_cases import default, ip, state
from verify_cases import verify

BOTH = (ALICE, ROOT)
RESOLV = "/etc/resolv.conf"
STUB = "nameserver 127.0.0.53\n"
# Another name server, on the internet: the lab's machines all answer on port 53.
OTHER = f"nameserver {network.PUBLIC_SECOND}\noptions timeout:1\n"

# Does what it is told, a line at a time.
OBEYING = "echo ready; while read line; do eval \"$line\"; echo done; done"


class Obeying(Held):
    def __init__(self, lab, user):
        super().__init__(lab, user, script=OBEYING)

    def tell(self, command):
        """Run it inside. Return: what it wrote."""
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        lines = []
        while True:
            line = self.process.stdout.readline().decode()
            holds(line, f"the agent has gone: {self.process.poll()}")
            if line == "done\n":
                return "".join(lines)
            lines.append(line)

    def resolv(self):
        return self.tell("cat /etc/resolv.conf")


def replace(path, text):
    """As programs that write it do: a new file in its place."""
    machine.write(path + ".new", text)
    os.rename(path + ".new", path)


def host_has(lab, text):
    with open(RESOLV, "rb") as f:
        before = f.read()
    lab.undo.append(lambda: replace(RESOLV, before))
    replace(RESOLV, text)


def warnings(lab, held):
    result = lab.run(["/usr/bin/busctl", "--system", "--json=short", "get-property", "org.claudesandbox1", held.path,
                      "org.claudesandbox1.Session", "Warnings"], ROOT, cwd="/")
    return json.loads(result.out)["data"] if result.status == 0 else []


def asked(lab, held, server):
    """A name resolves inside, and that server of the host's was asked for it."""
    quiet(lab)
    found = held.tell("getent hosts public.example")
    return "93.184.216.34" in found and any(note[0] == "dns" and note[1] == server for note in arrived(lab, "public.example"))


@test(60, needs="bus")
def resolvers_of_every_kind(lab):
    """A stub on the loopback, several, one of the internet; search, domain and options come along, comments do not."""
    for user in BOTH:
        for text in (STUB, f"# here\n{STUB}nameserver 9.9.9.9\nnameserver ::1\n", OTHER,
                     f"domain corp.example\n{STUB}search a.example b.example ; not a comment\noptions ndots:3 timeout:1 edns0\n",
                     f"{STUB}search crlf.example\r\n"):
            host_has(lab, text)
            result = lab.shell(f"cat {RESOLV}; getent hosts public.example", user).ok()
            lines = result.out.decode().splitlines()
            holds("93.184.216.34" in lines[-1], f"{user}: {text!r}: {result!r}")
            equal(sum(line.startswith("nameserver ") for line in lines), 1, f"{user}: {text!r}")
            for line in text.splitlines():
                if line.split()[0] in ("search", "domain", "options"):
                    holds(line in lines, f"{user}: {line!r} in {lines}")
            lab.restore()


@test(60, needs="bus")
def no_resolver_is_a_warning(lab):
    for user in BOTH:
        for text in ("", "search corp.example\n", "nameserver ::1\n"):
            host_has(lab, text)
            result = lab.shell("getent hosts public.example || echo none", user)
            holds(result.out == b"none\n" and b"names do not resolve inside" in result.err, f"{user}: {text!r}: {result!r}")
            lab.restore()


@test(90, needs="bus")
def resolvers_change_while_an_agent_runs(lab):
    """Replaced or written in place: the jail keeps its own file, names go to the new server, and search follows."""
    for user in BOTH:
        host_has(lab, STUB + "search one.example\n")
        with Obeying(lab, user) as held:
            mine = held.resolv()
            holds("one.example" in mine and "127.0.0.53" not in mine, f"{user}: {mine!r}")
            for n, text in enumerate((OTHER + "search two.example\n", STUB + "search three.example\noptions ndots:2\n",
                                      STUB + "search four.example\n", STUB + "search five.example\n")):
                if n != 1:
                    machine.write(RESOLV, text)      # in place
                else:
                    replace(RESOLV, text)
                wanted = mine.split("\n")[0] + "\n" + text.split("\n", 1)[1]
                wait_for(lambda held=held, wanted=wanted: held.resolv() == wanted, f"{user}: {n}: {held.resolv()!r}, {wanted!r}", 5)
                server = text.split()[1]
                wait_for(lambda held=held, server=server: asked(lab, held, server), f"{user}: {n}: {server} is asked", 6)
            refused = held.tell("echo x > /etc/resolv.conf; mount --bind /dev/null /etc/resolv.conf; true")
            equal(refused, "", str(user))
            holds("five.example" in held.resolv(), f"{user}: the agent does not change it")
            equal(warnings(lab, held), [], str(user))
            equal(state(lab, held), "running", str(user))
        lab.restore()


@test(60, needs="bus")
def a_link_takes_the_place_of_the_file(lab):
    """As when systemd-resolved is installed during a session: a link into /run, renamed over the file, and back."""
    for user in BOTH:
        host_has(lab, STUB + "search one.example\n")
        with Obeying(lab, user) as held:
            for n, target in enumerate(("../run/resolver-of-later/deep/stub.conf", "/var/run/resolver-of-others")):
                path = os.path.normpath(os.path.join("/etc", target)).replace("/var/run", "/run")
                lab.undo.append(lambda path=path: os.path.exists(path) and os.unlink(path))
                machine.write(path, OTHER + f"search link{n}.example\n")
                os.symlink(target, RESOLV + ".new")
                os.rename(RESOLV + ".new", RESOLV)
                wait_for(lambda held=held, n=n: f"link{n}.example" in held.resolv(), f"{user}: {target}: {held.resolv()!r}", 5)
                holds(network.PUBLIC_SECOND not in held.resolv(), f"{user}: the host's own: {held.resolv()!r}")
                holds("93.184.216.34" in held.tell("getent hosts public.example"), f"{user}: {target}")
                replace(path, STUB + f"search again{n}.example\n")
                wait_for(lambda held=held, n=n: f"again{n}.example" in held.resolv(), f"{user}: {target}: {held.resolv()!r}", 5)
            replace(RESOLV, STUB + "search file.example\n")
            wait_for(lambda held=held: "file.example" in held.resolv() and "127.0.0.53" not in held.resolv(),
                     f"{user}: {held.resolv()!r}", 5)
            equal(warnings(lab, held), [], str(user))
            os.symlink("/srv/not-there", RESOLV + ".new")
            os.rename(RESOLV + ".new", RESOLV)
            wait_for(lambda held=held: any("cannot follow" in w for w in warnings(lab, held)), f"{user}: a link to nothing", 5)
            holds(not os.path.lexists("/srv/not-there"), "nothing is made on the host")
            equal(state(lab, held), "running", str(user))
        lab.restore()


@test(60, needs="bus")
def resolvers_behind_links(lab):
    """As systemd-resolved has it: a link, whose target is in /run, replaced with each change."""
    for user in BOTH:
        host_has(lab, "")
        machine.write("/run/resolver/stub.conf", STUB + "search one.example\n")
        os.unlink(RESOLV)
        os.symlink("../run/resolver/stub.conf", RESOLV)
        with Obeying(lab, user) as held:
            holds("one.example" in held.resolv() and "127.0.0.53" not in held.resolv(), f"{user}: {held.resolv()!r}")
            replace("/run/resolver/stub.conf", OTHER + "search two.example\n")
            wait_for(lambda held=held: "two.example" in held.resolv(), f"{user}: {held.resolv()!r}", 5)
            holds("93.184.216.34" in held.tell("getent hosts public.example"), str(user))
            # the link itself gives way to a file
            replace(RESOLV, STUB + "search three.example\n")
            wait_for(lambda held=held: "three.example" in held.resolv() and "127.0.0.53" not in held.resolv(),
                     f"{user}: {held.resolv()!r}", 5)
            holds("93.184.216.34" in held.tell("getent hosts public.example"), str(user))
            equal(held.tell("ls -A /run"), "claude-sandbox\nresolver\n", f"{user}: nothing else is left there")
            equal(warnings(lab, held), [], str(user))
        lab.restore()


@test(60, needs="bus")
def forwarder_keeps_clear_of_the_host(lab):
    """The first of three addresses that no network of the host holds; none left is a warning and no names."""
    nets = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
    for user in BOTH:
        for n in range(3):
            for net in nets[:n]:
                ip("route", "add", net, "dev", "up1")
            try:
                result = lab.shell(f"cat {RESOLV}; getent hosts public.example || echo none", user)
            finally:
                for net in nets[:n]:
                    ip("route", "del", net, "dev", "up1")
            if n == 2:                                # the third is the host's own subnet in the lab
                holds(b"nameserver" not in result.out and b"none" in result.out and b"no names will resolve" in result.err,
                      f"{user}: {result!r}")
            else:
                holds(f"nameserver {nets[n].removesuffix('0/24')}53\n".encode() in result.ok().out
                      and b"93.184.216.34" in result.out, f"{user}: {result!r}")


@test(60, needs="bus")
def forwarder_that_the_host_comes_to_hold(lab):
    """Names stop with a warning; the address is denied, never a leak."""
    for user in BOTH:
        with Obeying(lab, user) as held:
            holds("nameserver 192.0.2.53\n" in held.resolv(), str(user))
            ip("address", "add", "192.0.2.1/24", "dev", "up1")
            try:
                wait_for(lambda held=held: any("no names resolve inside" in line for line in warnings(lab, held)), f"{user}: said", 3)
                quiet(lab)
                held.tell("echo leak > /dev/udp/192.0.2.53/7007; echo leak > /dev/udp/192.0.2.53/53; getent hosts public.example")
                equal(arrived(lab, "leak"), [], str(user))
                equal(state(lab, held), "running", str(user))
            finally:
                ip("address", "del", "192.0.2.1/24", "dev", "up1")
                default()


@test(60, needs="bus")
def names_are_no_way_round(lab):
    """A public name that answers with a denied address, and AAAA answers, lead nowhere."""
    for user in BOTH:
        quiet(lab)
        result = lab.shell(
            "getent ahosts rebind.example; getent ahosts six.example; for i in 1 2 3; do "
            "echo rebound > /dev/udp/rebind.example/7007; timeout 2 sh -c 'echo rebound | /usr/bin/nc rebind.example 7007'; "
            f"echo rebound > /dev/udp/six.example/7007; done; {PROBE} reach 500 rebound 10.1.2.3 {network.INTERNAL6} {network.PUBLIC6}",
            user, limit=40)
        holds(b"10.1.2.3" in result.out, f"{user}: the name has the denied address: {result!r}")
        equal([line for line in result.out.decode().splitlines() if " reached" in line], [], str(user))
        equal(arrived(lab, "rebound"), [], str(user))


# ---- names of users ----

@test(60, needs="bus")
def a_user_of_no_file_has_a_name(lab):
    """One whom only a program of the machine's knows: here systemd's records, in the machine's /run."""
    user = machine.User("carol", 54321, "/home/carol")
    os.makedirs(user.home, exist_ok=True)
    os.chown(user.home, user.uid, user.gid)
    record = {"userName": user.name, "uid": user.uid, "gid": user.gid, "homeDirectory": user.home, "shell": "/bin/bash",
              "disposition": "regular"}
    machine.write(f"/run/userdb/{user.name}.user", json.dumps(record))
    os.symlink(f"{user.name}.user", f"/run/userdb/{user.uid}.user")
    lab.undo.append(lambda: shutil.rmtree("/run/userdb"))
    holds(b"systemd" in lab.run(["/usr/bin/grep", "^passwd", "/etc/nsswitch.conf"]).out, "this machine asks systemd's module")
    text = lab.shell("id -un; echo ~; getent passwd carol; getent passwd 54321; ls /run/host/userdb", user).ok().out.decode()
    line = f"carol:x:54321:54321:carol:{user.home}:/bin/bash"
    equal(text.split("\n"), ["carol", user.home, line, line, "54321.user", "carol.user", ""])
    verify(lab, "--probes", "shell", user=user, limit=60).passes()
    # Who has a line needs no record.
    equal(lab.shell("id -un; ls /run", ALICE).ok().out, b"alice\nclaude-sandbox\n")


def know_nobody(listener):
    """As nscd answers for what it does not keep: whoever asks looks elsewhere at once."""
    while True:
        try:
            with listener.accept()[0] as client:
                client.recv(1024)
                client.send(struct.pack("ii", 2, -1) + bytes(56))
        except BrokenPipeError:
            pass
        except OSError:
            return


@test(60, needs="bus")
def name_services_answer_and_nothing_else_does(lab):
    """Sockets that anybody may connect to, as the real ones are."""
    allowed = {"/run/nscd/socket": (ALICE,), "/var/lib/sss/pipes/nss": BOTH}
    others = ("/var/lib/sss/pipes/pam", "/var/lib/sss/pipes/sudo", "/run/nslcd/socket", "/run/samba/winbindd/pipe")
    with contextlib.ExitStack() as stack:
        for path in (*allowed, *others):
            listener = stack.enter_context(Listener(path, ROOT))
            os.chmod(path, 0o666)
            threading.Thread(target=know_nobody, args=(listener.socket,), daemon=True).start()
        for user in BOTH:
            for path in (*allowed, *others):
                inside = lab.shell(f"{PROBE} connect {path}", user)
                holds(inside.out, f"{user}: {path}: nothing was said")
                equal(inside.out.rstrip().endswith(b"connected"), user in allowed.get(path, ()), f"{user}: {path}: {inside.out!r}")
            verify(lab, "--probes", "shell", user=user, limit=60).passes()
        holds(lab.shell("mv /run/nscd/socket /run/nscd/other", ALICE).status != 0, "it stays in its place")
