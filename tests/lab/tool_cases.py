# SPDX-License-Identifier: MIT
"""
Programs that agents use work behind the filter: what each opens is what the filter allows. Those that are not installed here
are left out; those that the product or its tests need must be there. And the probes load no module into the kernel.
"""

import ctypes
import errno
import os
import shutil

import machine
from case import SANDBOX, holds, test
from machine import ALICE, ROOT

NODE = r"""
const net = require("net"), dgram = require("dgram"), os = require("os");
const {Worker} = require("worker_threads");
os.networkInterfaces();
const server = net.createServer(c => c.end("node"));
server.listen(0, "127.0.0.1", () => net.connect(server.address().port, "127.0.0.1").on("data", data => {
    const socket = dgram.createSocket("udp4");
    socket.bind(0, "127.0.0.1", () => new Worker(`require("worker_threads").parentPort.postMessage(1)`, {eval: true})
        .on("message", () => { console.log(data + " works"); process.exit(0); }));
}));
"""

PYTHON = r"""
import asyncio, multiprocessing, socket
a, b = socket.socketpair()
a.send(b"x")
assert b.recv(1) == b"x" and socket.if_nameindex() and socket.getaddrinfo("localhost", 80)
async def main():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    await asyncio.open_connection(*server.sockets[0].getsockname())
asyncio.run(main())
assert multiprocessing.Pool(2).map(abs, [1, -2]) == [1, 2]
print("python works")
"""

SERVED = r"""
import http.server, subprocess, sys, threading
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
command = [word.replace("URL", f"http://127.0.0.1:{server.server_port}/page.html") for word in sys.argv[1:]]
sys.exit(subprocess.run(command, stderr=subprocess.DEVNULL).returncode)
"""

NESTED = "bwrap --ro-bind / / --unshare-all --proc /proc --dev /dev"
CHROMIUM = "chromium --headless=new --disable-gpu --no-first-run --user-data-dir=/tmp/chromium --dump-dom URL"

# program, a script of the shell, what its output must contain
TOOLS = (
    ("ip", "ip addr && ip route && ip rule && ip neigh && ip -s link", "jail0"),
    ("ss", "ss -tunapx && ss -s", "TCP"),
    ("git", "git init -q g && cd g && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline", " x"),
    ("python3", f"python3 -c '{PYTHON}'", "python works"),
    ("bwrap", f"{NESTED} ip -br addr", "127.0.0.1"),
    ("bwrap", f"{NESTED} {NESTED} ip -br link", "lo"),
    ("unshare", "unshare -Urn sh -c 'ip link set lo up && ip -br addr'", "127.0.0.1"),
    ("ping", "ping -n -c 1 127.0.0.1", " 1 received"),
    ("curl", f"python3 served.py curl -sS URL", "<b>served</b>"),
    ("wget", f"python3 served.py wget -qO- URL", "<b>served</b>"),
    ("node", f"node -e '{NODE}'", "node works"),
    ("perl", "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die; print qq(perl works)'", "perl works"),
    ("strace", "strace -f -yy -e trace=network ss -t 2>&1", "exited with 0"),
    ("gdb", "gdb -q -batch -ex starti -ex 'info inferiors' /bin/true", "process"),
    ("java", "java -version 2>&1", "Runtime"),
    ("docker", "docker -H tcp://127.0.0.1:1 ps 2>&1; docker ps 2>&1", "Cannot connect to the Docker daemon"),
    ("ssh", "ssh -o BatchMode=yes -p 1 127.0.0.1 2>&1", "refused"),
    ("udevadm", "timeout 1 udevadm monitor --kernel", "KERNEL"),
    ("chromium", f"python3 served.py {CHROMIUM}", "<b>served</b>"),
)
NEEDED = {"ip", "ss", "git", "python3", "bwrap", "unshare"}


@test(300, needs="bus")
def they_work_behind_the_filter(lab):
    work = lab.workspace(ALICE, "tools")
    machine.write(f"{work}/served.py", SERVED, 0o644, ALICE)
    machine.write(f"{work}/page.html", "<b>served</b>\n", 0o644, ALICE)
    for program, script, words in TOOLS:
        if not shutil.which(program):
            holds(program not in NEEDED, f"{program} is not installed")
            continue
        result = lab.shell(f"({script}) || true", cwd=work, limit=90)
        holds(words in result.out.decode(errors="replace"), f"{program}: {result.out!r} {result.err!r}")


def modules():
    """The kernel's modules; None where it has none at all, which the call that removes one says."""
    if os.path.exists("/proc/modules"):
        with open("/proc/modules", encoding="ascii") as file:
            return {line.split()[0] for line in file}
    ctypes.CDLL(None, use_errno=True).delete_module(b"no_such_module_of_a_test", os.O_NONBLOCK)
    holds(ctypes.get_errno() == errno.ENOSYS, "a kernel with modules and no /proc/modules")
    return None


@test(120, needs="bus")
def probes_load_no_module(lab):
    """After a first launch, which may load what a session needs (tun, for one)."""
    lab.shell("true").ok()
    before = modules()
    for user in (ALICE, ROOT):
        lab.run([SANDBOX, "verify", "--probes", "shell"], user, limit=60)
    after = modules()
    holds(before is None or after <= before, f"loaded: {sorted((after or set()) - (before or set()))}")
