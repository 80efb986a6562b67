# SPDX-License-Identifier: MIT
"""A terminal with a program on it: what a person types and what a person sees, each wait with a deadline."""

import fcntl
import os
import select
import signal
import struct
import termios
import time

import system


class Terminal:
    def __init__(self, command, user, environment, directory, size=(24, 80), redirect=None, pair=None):
        """redirect: {0: fd, ...}: descriptors of the program that are not this terminal; pair: master and slave,
        of a pseudo-terminal that may have no name here."""
        self.output = b""
        self.status = None
        self.master, slave = pair or os.openpty()
        os.set_inheritable(slave, False)
        os.fchown(slave, user.uid, user.gid)
        self.path = None if pair else os.ttyname(slave)
        self.slave = slave
        self.resize(*size)
        self.modes = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
                for number in range(3):
                    os.dup2((redirect or {}).get(number, slave), number)
                os.closerange(3, 1024)
                system.reset_signals()
                os.initgroups(user.name, user.gid)
                os.setgid(user.gid)
                os.setuid(user.uid)
                os.chdir(directory)
                os.execve(command[0], command, environment)
            except OSError as error:
                os.write(2, str(error).encode())
            finally:
                os._exit(126)
        self.pidfd = os.pidfd_open(self.pid)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text if isinstance(text, bytes) else text.encode())

    def read(self, limit):
        """One portion of output. Return: False at the end or after limit seconds."""
        if not select.select([self.master], [], [], max(limit, 0))[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.output += data
        return bool(data)

    def expect(self, text, limit=10):
        """Wait until text was written; what came before it is forgotten. Return: everything up to its end."""
        text = text if isinstance(text, bytes) else text.encode()
        end = time.monotonic() + limit
        while text not in self.output:
            if not self.read(end - time.monotonic()):
                raise AssertionError(f"waited for {text!r} on the terminal, saw {self.output!r}")
        at = self.output.index(text) + len(text)
        seen, self.output = self.output[:at], self.output[at:]
        return seen

    def wait(self, limit=10):
        """Wait for the program, reading what it writes. Return: exit status, or -N for death by signal N."""
        end = time.monotonic() + limit
        while self.status is None:
            if not select.select([self.pidfd, self.master], [], [], max(end - time.monotonic(), 0))[0]:
                raise AssertionError(f"the program did not end; on the terminal: {self.output!r}")
            if select.select([self.pidfd], [], [], 0)[0]:
                self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            else:
                self.read(0)
        while self.read(0):
            pass
        return self.status

    def current_modes(self):
        return termios.tcgetattr(self.slave)

    def close(self):
        if self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        for fd in (self.master, self.slave, self.pidfd):
            os.close(fd)

    def hang_up(self):
        """Close the window: the terminal goes away under the program."""
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = os.open("/dev/null", os.O_RDONLY)
        self.slave = os.dup(self.master)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
