# SPDX-License-Identifier: MIT
"""
In the machine under test: starts programs for tests/vm/guest.py, by lines of JSON on a port of its own, so that no
network, login or session of the machine is needed for it.

    in   {"id": 1, "start": [...], "terminal": true}   {"id": 1, "in": BASE64}   {"id": 1, "close": true}   {"id": 1, "signal": 15}
    out  {"ready": BOOT_ID}   {"id": 1, "out": BASE64}   {"id": 1, "err": BASE64}   {"id": 1, "exit": STATUS}
"""

import base64
import fcntl
import json
import os
import selectors
import signal
import struct
import subprocess
import termios

PORTS = "/sys/class/virtio-ports"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root",
               "TERM": "xterm-256color"}


def open_port(name):
    for entry in os.listdir(PORTS):
        with open(f"{PORTS}/{entry}/name", encoding="utf-8") as f:
            if f.read().strip() == name:
                return os.open(f"/dev/{entry}", os.O_RDWR)
    raise FileNotFoundError(name)


class Program:
    def __init__(self, control, number, command, terminal):
        self.control, self.number = control, number
        self.open = {}                               # descriptor: "out" or "err"
        if terminal:
            self.input, slave = os.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

            def own_terminal():
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            streams = {"stdin": slave, "stdout": slave, "stderr": slave, "preexec_fn": own_terminal}
        else:
            streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=ENVIRONMENT, cwd="/", start_new_session=True, **streams)
        if terminal:
            os.close(slave)
            self.watch(self.input, "out")
        else:
            self.input = self.process.stdin.fileno()
            self.watch(self.process.stdout.fileno(), "out")
            self.watch(self.process.stderr.fileno(), "err")
        self.pidfd = os.pidfd_open(self.process.pid)
        control.selector.register(self.pidfd, selectors.EVENT_READ, self.ended)

    def watch(self, fd, kind):
        self.open[fd] = kind
        self.control.selector.register(fd, selectors.EVENT_READ, lambda: self.read(fd))

    def read(self, fd):
        try:
            data = os.read(fd, 32768)
        except OSError:                              # the other end of a terminal is gone
            data = b""
        if data:
            self.control.say(id=self.number, **{self.open[fd]: base64.b64encode(data).decode()})
        else:
            self.control.selector.unregister(fd)
            del self.open[fd]
        return bool(data)

    def ended(self):
        status = self.process.wait()
        # what it has written is told; what others that it started write is not waited for
        for fd in list(self.open):
            os.set_blocking(fd, False)
            while fd in self.open and self.has_more(fd):
                pass
            if fd in self.open:
                self.control.selector.unregister(fd)
        self.control.selector.unregister(self.pidfd)
        os.close(self.pidfd)
        if self.process.stdin:
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                try:
                    stream.close()
                except OSError:
                    pass
        else:
            os.close(self.input)
        del self.control.programs[self.number]
        self.control.say(id=self.number, exit=status)

    def has_more(self, fd):
        try:
            data = os.read(fd, 32768)
        except OSError:
            return False
        if data:
            self.control.say(id=self.number, **{self.open[fd]: base64.b64encode(data).decode()})
        return bool(data)


class Control:
    def __init__(self):
        self.port = open_port("control")
        self.selector = selectors.DefaultSelector()
        self.programs = {}
        self.rest = b""

    def say(self, **message):
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.port, data):]

    def take(self, message):
        number = message["id"]
        if "start" in message:
            try:
                self.programs[number] = Program(self, number, message["start"], message.get("terminal"))
            except OSError as error:
                self.say(id=number, err=base64.b64encode(str(error).encode()).decode())
                self.say(id=number, exit=127)
            return
        program = self.programs.get(number)
        if not program:
            return
        try:
            if "in" in message:
                data = base64.b64decode(message["in"])
                while data:
                    data = data[os.write(program.input, data):]
            if "close" in message and program.process.stdin:
                program.process.stdin.close()
            if "signal" in message:
                os.killpg(program.process.pid, message["signal"])
        except OSError:
            pass

    def commands(self):
        data = os.read(self.port, 65536)
        if not data:                                 # nobody is at the other end
            raise SystemExit(1)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.take(json.loads(line))

    def run(self):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        self.selector.register(self.port, selectors.EVENT_READ, self.commands)
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as f:
            self.say(ready=f.read().strip())
        while True:
            for key, _ in self.selector.select():
                if key.fd in self.selector.get_map():
                    key.data()


if __name__ == "__main__":
    Control().run()
