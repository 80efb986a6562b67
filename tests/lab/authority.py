# SPDX-License-Identifier: MIT
"""polkit in the lab: the real one, with rules of a test, and what happens to it."""

import os
import select
import signal
import subprocess
import termios
import time

import bus
import machine
from case import wait_for

NAME = "org.freedesktop.PolicyKit1"
RULES = "/etc/polkit-1/rules.d/00-lab.rules"
PASSWORD = "a good password"
AGENT = "pkttyagent"
ACTION = "org.claudesandbox1."


def pid_of_polkit(lab):
    return lab.bus.owner_pid(NAME)


def end_polkit(lab):
    """It forgets what it has kept, and reads its rules when it is asked again."""
    pid = pid_of_polkit(lab)
    if pid:
        os.kill(pid, signal.SIGKILL)
        bus.wait_pid_gone(pid, 5)
        wait_for(lambda: pid_of_polkit(lab) != pid, "the bus forgets polkit")


def rules(lab, **results):
    """{action: result}: YES, NO, AUTH_ADMIN, AUTH_SELF, or the body of a function(action, subject); for this test."""
    text = "polkit.addRule(function(action, subject) {\n"
    for action, result in results.items():
        body = result if "return" in result else f"return polkit.Result.{result};"
        text += f'if (action.id == "{ACTION}{action.replace("_", "-")}") {{ {body} }}\n'
    write_rules(lab, text + "return polkit.Result.NOT_HANDLED; });\n")


def write_rules(lab, text):
    def remove():
        if os.path.exists(RULES):
            os.unlink(RULES)
            end_polkit(lab)
    lab.undo.append(remove)
    machine.write(RULES, text)
    end_polkit(lab)


def with_password(lab):
    """Root can be an administrator who types one."""
    with open("/etc/shadow", "rb") as f:
        before = f.read()
    lab.undo.append(lambda: machine.write("/etc/shadow", before, 0o640))
    subprocess.run(["/usr/sbin/chpasswd"], input=f"root:{PASSWORD}\n".encode(), check=True)
    end_polkit(lab)
    lab.undo.append(lambda: end_polkit(lab))


def agents():
    """The pids of the agents for terminals."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                    text = f.read()
            except OSError:
                continue
            if f"({AGENT})" in text and text.rsplit(")", 1)[1].split()[0] not in "ZX":
                found.append(int(entry))
    return found


def asked(terminal):
    """Wait for the question; whoever types before the echo is off types into nothing. Return: its words."""
    seen = terminal.expect("Password:", 20)
    wait_for(lambda: not terminal.current_modes()[3] & termios.ECHO, "the echo is off while a password is typed")
    return seen


def cancellations(lab):
    """A process that writes of each question that is taken back."""
    process = subprocess.Popen(["/usr/bin/dbus-monitor", "--system", "member=CancelCheckAuthorization"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, bufsize=0)
    lab.undo.append(lambda: (process.kill(), process.wait(), process.stdout.close()))
    read_until(process, b"NameLost")                     # it is a monitor now
    return process


def read_until(process, text, limit=10):
    seen, end = b"", time.monotonic() + limit
    while text not in seen:
        if not select.select([process.stdout], [], [], max(end - time.monotonic(), 0))[0]:
            raise AssertionError(f"waited for {text!r}, saw {seen!r}")
        data = os.read(process.stdout.fileno(), 65536)
        if not data:
            raise AssertionError(f"ended before {text!r}, saw {seen!r}")
        seen += data
