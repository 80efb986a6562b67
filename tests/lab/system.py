# SPDX-License-Identifier: MIT
"""The few system calls that Python 3.11 does not offer, and processes with a deadline."""

import ctypes
import os
import signal
import subprocess

libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38


def _check(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def unshare(flags):
    _check(libc.unshare(flags), "unshare")


def enter(fd, kind):
    """Join the namespace of that kind."""
    _check(libc.setns(fd, kind), "setns")


def mount(source, target, kind=None, flags=0, data=None):
    def encode(text):
        return None if text is None else os.fsencode(text)
    _check(libc.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data)),
           f"mount {source} on {target}")


def bind(source, target):
    mount(source, target, None, MS_BIND | MS_REC)


def unmount(target, flags=MNT_DETACH):
    _check(libc.umount2(os.fsencode(target), flags), f"unmount {target}")


def prctl(option, value):
    _check(libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


UNAME26 = 0x0020000                    # personality(2): uname(2) tells of Linux 2.6


def personality(value):
    if libc.personality(ctypes.c_ulong(value)) == -1:
        _check(-1, "personality")


def die_with_parent():
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def reset_signals():
    """Python ignores SIGPIPE and SIGXFSZ; what it starts must not."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def take_signals():
    """What this process ignores all that it starts ignores too, sessions included (signal(7)): nothing here."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) == signal.SIG_IGN and number not in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def must(*command, timeout=20, **options):
    """Run a tool of the lab itself; its failure is the lab's."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=timeout, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n"
                           + done.stdout.decode(errors="replace"))
    return done.stdout.decode(errors="replace")
