# SPDX-License-Identifier: MIT
"""A booted machine: an emulator over an image, and what tests do with it. Every wait is for an event, with a deadline."""

import base64
import ctypes
import json
import os
import select
import shutil
import socket
import subprocess
import time

import image
import images

# The emulator may be 30 times slower than the machine, and share it: this bounds what hangs, and measures nothing.
PATIENCE = 600
BOOT_PATIENCE = 900
KVM_PATIENCE = 20
MEMORY_MIB = 2048
KVM = ["-machine", "pc", "-accel", "kvm", "-cpu", "host"]
EMULATED = ["-machine", "pc,hpet=off", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max,la57=off"]


class Late(Exception):
    """What was waited for did not come."""


class Gone(Exception):
    """The emulator ended or does not answer."""


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __repr__(self):
        return f"status {self.status}\nstdout: {self.out}\nstderr: {self.err}"

    def ok(self):
        if self.status != 0:
            raise AssertionError(f"wanted success: {self!r}")
        return self


class Program:
    """A program in the machine."""

    def __init__(self, guest, number, command):
        self.guest, self.number, self.command = guest, number, command
        self.data = {"out": b"", "err": b""}
        self.seen = 0                                # of out, what waits have passed
        self.status = None

    def take(self, message):
        for kind in ("out", "err"):
            if kind in message:
                self.data[kind] += base64.b64decode(message[kind])
        if "exit" in message:
            self.status = message["exit"]

    @property
    def out(self):
        return self.data["out"].decode(errors="replace").replace("\r\n", "\n")

    @property
    def err(self):
        return self.data["err"].decode(errors="replace")

    def type(self, text):
        self.guest.send(id=self.number, **{"in": base64.b64encode(text.encode()).decode()})

    def close(self):
        self.guest.send(id=self.number, close=True)

    def signal(self, number):
        self.guest.send(id=self.number, signal=number)

    def expect(self, text, limit=PATIENCE):
        """Wait until text comes in what was not looked at yet. Return: what came before it."""
        def found():
            return self.out.find(text, self.seen)
        self.guest.until(lambda: found() >= 0 or self.status is not None, limit, f"{text!r} from {self.command}: {self.tail()}")
        at = found()
        if at < 0:
            raise AssertionError(f"{self.command} ended with {self.status} and never said {text!r}: {self.tail()}")
        before, self.seen = self.out[self.seen:at], at + len(text)
        return before

    def wait(self, limit=PATIENCE):
        self.guest.until(lambda: self.status is not None, limit, f"the end of {self.command}: {self.tail()}")
        return Result(self.status, self.out, self.err)

    def tail(self):
        return f"{self.out[-6000:]} {self.err[-1500:]}"


def end_with_parent():
    ctypes.CDLL(None).prctl(1, 9)                    # PR_SET_PDEATHSIG, SIGKILL


def acceleration(kernel):
    """
    KVM where it works: there are machines where one can be made whose processor then stands still. So the kernel is
    started with it, which says its first word within a second.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return EMULATED
    process = subprocess.Popen(["qemu-system-x86_64", "-nodefaults", "-display", "none", *KVM, "-m", "512", "-no-reboot",
                                "-kernel", kernel, "-append", "console=ttyS0 panic=-1", "-serial", "stdio"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        said, end = b"", time.monotonic() + KVM_PATIENCE
        while b"Linux version" not in said:
            if not select.select([process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                return EMULATED
            data = os.read(process.stdout.fileno(), 4096)
            if not data:
                return EMULATED
            said += data
        return KVM
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Guest:
    def __init__(self, suite, directory, payload):
        self.suite, self.directory, self.payload = suite, directory, payload
        self.image = image.image(suite)
        self.acceleration = acceleration(f"{self.image}/kernel")
        self.process = self.port = self.monitor = None
        self.programs, self.next, self.rest = {}, 1, b""
        self.boot_id = None
        os.makedirs(directory, exist_ok=True)

    # ---- the emulator ----

    def start(self):
        disk = f"{self.directory}/disk.qcow2"
        if not os.path.exists(disk):
            subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", f"{self.image}/disk", "-F", "raw", disk], check=True)
        for name in ("control", "monitor"):
            if os.path.exists(f"{self.directory}/{name}"):
                os.unlink(f"{self.directory}/{name}")
        with open(f"{self.directory}/qemu.log", "ab") as log:
            self.process = subprocess.Popen([
                "qemu-system-x86_64", "-nodefaults", "-display", "none", *self.acceleration, "-smp", "2", "-m", str(MEMORY_MIB),
                "-kernel", f"{self.image}/kernel", "-initrd", f"{self.image}/initrd", "-append",
                "root=/dev/vda rw console=ttyS0 quiet systemd.show_status=0 mitigations=off net.ifnames=1",
                "-drive", f"file={disk},if=virtio,cache=unsafe,aio=threads",
                "-drive", f"file={self.payload},if=virtio,format=raw,readonly=on,cache=unsafe",
                "-netdev", "hubport,id=u,hubid=0", "-device", "virtio-net-pci,netdev=u,mac=02:00:00:00:99:01,id=uplink",
                "-netdev", "hubport,id=w,hubid=0", "-device", "virtio-net-pci,netdev=w,mac=02:00:00:00:99:02",
                "-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
                "-chardev", f"socket,id=control,path={self.directory}/control,server=on,wait=off",
                "-device", "virtserialport,chardev=control,name=control",
                "-serial", f"file:{self.directory}/serial", "-qmp", f"unix:{self.directory}/monitor,server=on,wait=off",
            ], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=end_with_parent)
        self.port = self.connect("control")
        self.monitor = self.connect("monitor")
        self.monitor_file = self.monitor.makefile("rb")
        self.monitor_file.readline()
        self.tell_monitor("qmp_capabilities")
        self.wait_boot()

    def connect(self, name):
        end = time.monotonic() + 30
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(f"{self.directory}/{name}")
                return connection
            except OSError as error:
                connection.close()
                if self.process.poll() is not None or time.monotonic() > end:
                    with open(f"{self.directory}/qemu.log", encoding="utf-8", errors="replace") as f:
                        raise images.Unavailable(f"the emulator does not start: {f.read()[-1000:]}") from error
                select.select([], [], [], 0.05)      # a socket's coming is announced to nobody

    def tell_monitor(self, command, **arguments):
        self.monitor.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            line = self.monitor_file.readline()
            if not line:
                raise Gone("the emulator's monitor is gone")
            answer = json.loads(line)
            if "return" in answer or "error" in answer:
                if "error" in answer:
                    raise AssertionError(f"{command}: {answer['error']}")
                return answer["return"]

    def wait_boot(self, before=None):
        """Until the machine has come up anew and rests."""
        self.until(lambda: self.boot_id not in (None, before), BOOT_PATIENCE, "the machine's boot")
        self.programs.clear()
        # a failed unit of the image's ("degraded") is no matter of ours
        self.run(["systemctl", "is-system-running", "--wait"], limit=BOOT_PATIENCE)
        self.run(["sh", "/var/lib/vm/world.sh"]).ok()
        self.run(["ifup", "uplink"])
        # what came up beside it may still be waiting for its lease, with an address of its own making until then
        self.wait_for("ip -4 route show default | grep -q 'via 192.168.77.1 dev uplink'")

    def reboot(self):
        before = self.boot_id
        self.run(["systemctl", "reboot", "--no-block"])
        self.wait_boot(before)

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for file in (self.port, self.monitor):
            if file:
                file.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def serial(self):
        try:
            with open(f"{self.directory}/serial", encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    # ---- programs ----

    def send(self, **message):
        self.port.sendall(json.dumps(message).encode() + b"\n")

    def pump(self, limit):
        if not select.select([self.port], [], [], max(0, limit))[0]:
            return
        data = self.port.recv(65536)
        if not data:
            raise Gone(f"the emulator ended: {self.serial()[-2000:]}")
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:                       # cut off by a reboot
                continue
            if "ready" in message:
                self.boot_id = message["ready"]
            elif message["id"] in self.programs:
                self.programs[message["id"]].take(message)

    def until(self, condition, limit, what):
        end = time.monotonic() + limit
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                raise Late(f"not within {limit} s: {what}")
            self.pump(left)

    def start_program(self, command, terminal=False):
        number, self.next = self.next, self.next + 1
        program = self.programs[number] = Program(self, number, command)
        self.send(id=number, start=command, terminal=terminal)
        return program

    def run(self, command, data="", limit=PATIENCE):
        program = self.start_program(command)
        if data:
            program.type(data)
        program.close()
        try:
            return program.wait(limit)
        except Late:
            program.signal(9)
            raise

    def shell(self, script, limit=PATIENCE):
        return self.run(["bash", "-c", script], limit=limit)

    # ---- people: logged in by ssh, with a session of logind's ----

    def login(self, user, script=None, terminal=False):
        command = ["ssh", *(["-tt"] if terminal else ["-T"]), f"{user}@127.0.0.1"]
        return self.start_program(command + ([script] if script else []), terminal)

    def person(self, user, script, limit=PATIENCE):
        program = self.login(user, script)
        program.close()
        try:
            return program.wait(limit)
        except Late:
            program.signal(9)
            raise

    def write(self, path, text, mode="0644", owner="root"):
        self.run(["install", "-D", "-m", mode, "-o", owner, "-g", owner, "/dev/stdin", path], data=text).ok()

    def json(self, command):
        return json.loads(self.run(command).ok().out)

    def wait_for(self, script, limit=PATIENCE):
        """
        Until the script says yes, for states that the machine announces to nobody. What else it says is looked at
        meanwhile; the pause only bounds the load.
        """
        end = time.monotonic() + limit
        while (result := self.shell(script, limit)).status != 0:
            if time.monotonic() > end:
                raise Late(f"not within {limit} s: {script}: {result!r}")
            self.pump(0.2)
        return result
