# SPDX-License-Identifier: MIT
"""Faults of the machine: devices, programs, kernel, control groups."""

import os
import re

import injuries
import machine
import system
from case import CONFIG
from fault_table import BOTH, OTHER, STARTED, because, fault, quoted
from machine import ALICE, ROOT


# The device

@fault("device.tun", "fail", **because("TUN_ABSENT"), step="chain.tap")
def tun_absent(lab, _user):
    """/dev/net/tun is not there"""
    lab.hide("/dev/net/tun")


@fault("device.tun", "fail", **because("TUN_MODE", "0600"), step="chain.tap", users=(ALICE,), mend=quoted)
def tun_closed(lab, _user):
    """/dev/net/tun of mode 0600"""
    lab.mode("/dev/net/tun", 0o600)


@fault("device.tun", "fail", **because("TUN_DIRECTORY"), step="chain.tap", users=(ALICE,), mend=quoted)
def tun_directory_closed(lab, _user):
    """/dev/net of mode 0700"""
    lab.mode("/dev/net", 0o700)


@fault("device.tun", "fail", **because("TUN_CGROUP"), step="chain.tap")
def tun_denied_by_cgroup(lab, _user):
    """The device cgroup denies 10:200"""
    injuries.device_cgroup(lab, 10, 200)


@fault("device.tun", "fail", **because("TUN_NODEV"), step="chain.tap",
       mend=lambda lab, fix: injuries.with_devices_again(lab))
def tun_without_devices(lab, _user):
    """/dev/net is mounted with nodev"""
    injuries.tun_on_files_without_devices(lab)
    lab.undo.append(lambda: injuries.with_devices_again(lab))


def mknod_as_told(lab, fix):
    os.unlink("/dev/net/tun")
    quoted(lab, fix)


@fault("device.tun", "fail", **because("TUN_OTHER"), step="chain.tap", mend=mknod_as_told)
def tun_is_another_device(lab, _user):
    """/dev/net/tun is the null device"""
    injuries.instead(lab, "/dev/net/tun", lambda path: (os.mknod(path, 0o020666, os.makedev(1, 3)), os.chmod(path, 0o666)))


# Programs

@fault("program.bwrap", "fail", **because("PROGRAM_MISSING", "bwrap", fixed="PROGRAM_PACKAGE", fix=["bubblewrap"]),
       step="chain.programs")
def bwrap_missing(lab, _user):
    """bwrap is not installed"""
    lab.hide("/usr/bin/bwrap")


def without_set_id(lab, _fix):
    lab.run(["/bin/chmod", "u-s,g-s", "/usr/bin/bwrap"], ROOT).ok()


@fault("program.bwrap", "fail", **because("PROGRAM_SET_ID", "/usr/bin/bwrap"), step="chain.programs", mend=without_set_id)
def bwrap_set_user_id(lab, _user):
    """bwrap is set-user-ID"""
    lab.mode("/usr/bin/bwrap", 0o4755)


@fault("program.bwrap", "fail", **because("BWRAP_OLD"), step="chain.mounts")
def bwrap_old(lab, _user):
    """bwrap does not know --bind-fd"""
    injuries.old_bwrap(lab)


@fault("program.bwrap", "fail", **because("PROGRAM_OWNER", "/usr/bin/bwrap", 0, "0777", fixed="PROGRAM_AGAIN", fix=["bubblewrap"]),
       step="chain.programs")
def bwrap_writable(lab, _user):
    """bwrap may be written by others than root"""
    lab.mode("/usr/bin/bwrap", 0o777)


@fault("program.bwrap", "fail",
       **because("PROGRAM_MODE", "/usr/bin/bwrap", "0644", "Permission denied", fixed="PROGRAM_AGAIN", fix=["bubblewrap"]),
       step="chain.programs")
def bwrap_not_executable(lab, _user):
    """bwrap of mode 0644"""
    lab.mode("/usr/bin/bwrap", 0o644)


@fault("chain.mounts", "fail", **because("BWRAP_ENDED", "out of luck"))
def bwrap_fails(lab, _user):
    """bwrap ends with an error"""
    injuries.stands_in(lab, "/usr/bin/bwrap", "echo out of luck >&2\nexit 1")


@fault("program.pasta", "fail", **because("PROGRAM_MISSING", "pasta", fixed="PROGRAM_PACKAGE", fix=["passt"]),
       step="chain.programs")
def pasta_missing(lab, _user):
    """pasta is not installed"""
    lab.hide("/usr/bin/pasta")


@fault("chain.wire", "fail", **because("PASTA_ENDED", "out of luck"))
def pasta_fails(lab, _user):
    """pasta ends with an error"""
    injuries.stands_in(lab, "/usr/bin/pasta", "echo out of luck >&2\nexit 1")


@fault("program.git", "note", **because("PROGRAM_MISSING", "git", fixed="PROGRAM_PACKAGE", fix=["git"]), launch=STARTED,
       also={"git.identity": "note"})
def git_missing(lab, _user):
    """git is not installed"""
    lab.hide("/usr/bin/git")


# The kernel

def sysctl_of_the_namespace(lab, fix):
    """sysctl -w user.NAME=NUMBER, where the test's own user namespace has it."""
    name, number = re.search(r"sysctl -w user\.(\w+)=(\d+)", fix).groups()
    machine.write("/run/lab-wrap", f"{injuries.SESSION}.hidden-by-a-test\nlimit {name} {number}\n")


@fault("kernel.userns", "fail", **because("USERNS_NONE"), step="chain.namespaces", mend=sysctl_of_the_namespace)
def no_user_namespaces(lab, _user):
    """user.max_user_namespaces is 0"""
    injuries.in_a_user_namespace(lab, "limit max_user_namespaces 0")


@fault("kernel.userns", "fail", **because("NETNS_NONE"), step="chain.namespaces", mend=sysctl_of_the_namespace)
def no_network_namespaces(lab, _user):
    """user.max_net_namespaces is 0"""
    injuries.in_a_user_namespace(lab, "limit max_net_namespaces 0")


@fault("kernel.userns", "fail", **because("USERNS_LIMIT"), step="chain.namespaces", also={"kernel.seccomp": "note"})
def no_user_namespaces_left(lab, _user):
    """The user's limit of namespaces is reached"""
    lab.wrap(injuries.SESSION, "forbid-namespaces ENOSPC")


@fault("kernel.userns", "fail", **because("USERNS_SECCOMP", "unshare of the user namespace", "Operation not permitted"),
       step="chain.namespaces", also={"kernel.seccomp": "note"})
def namespaces_filtered(lab, _user):
    """A container's seccomp filter forbids user namespaces"""
    lab.wrap(injuries.SESSION, "forbid-namespaces EPERM")


@fault("kernel.userns", "fail", **because("USERNS_KERNEL", "unshare of the user namespace", "Invalid argument"),
       step="chain.namespaces", also={"kernel.seccomp": "note"})
def namespaces_unknown(lab, _user):
    """A kernel without user namespaces"""
    lab.wrap(injuries.SESSION, "fail unshare 22")


@fault("kernel.userns", "fail", **because("USERNS_ROOT_ONLY"), step="chain.namespaces", also={"kernel.seccomp": "note"},
       users=(ALICE,))
def namespaces_for_root_alone(lab, _user):
    """kernel.unprivileged_userns_clone is 0"""
    injuries.kernel_says(lab, unprivileged_userns_clone=0)
    lab.wrap(injuries.SESSION, "forbid-namespaces EPERM")


@fault("kernel.userns", "fail", **because("USERNS_APPARMOR", "unshare of the user namespace", "Operation not permitted"),
       step="chain.namespaces", also={"kernel.seccomp": "note", "kernel.apparmor": "warn"}, users=(ALICE,))
def namespaces_restricted(lab, _user):
    """AppArmor restricts user namespaces"""
    injuries.kernel_says(lab, apparmor_restrict_unprivileged_userns=1)
    injuries.apparmor_is_on(lab)
    lab.wrap(injuries.SESSION, "forbid-namespaces EPERM")


@fault("kernel.userns", "fail", **because("USERNS_OTHER", "unshare of the user namespace", "Operation not permitted"),
       step="chain.namespaces", users=(ALICE,))
def namespaces_in_a_chroot(lab, _user):
    """The session is in a chroot"""
    injuries.chrooted(lab)


@fault("kernel.seccomp", "fail", "this kernel filters no system calls", "a kernel with CONFIG_SECCOMP_FILTER is needed",
       launch=OTHER, also={"chain.proc": "note"})
def no_filters(lab, _user):
    """A kernel without seccomp filters"""
    injuries.kernel_says(lab, seccomp__actions_avail="kill_process allow")


def tells_of_2_6(_user):
    return {"before": lambda: system.personality(system.UNAME26)}


@fault("kernel.version", "fail", "Linux 2.6.… is older than 5.12", "a newer kernel is needed", launch=OTHER, where=tells_of_2_6)
def kernel_old(_lab, _user):
    """Linux 2.6"""


@fault("machine.wsl", "note", "WSL2: drives of Windows below /mnt are no part of what is hidden", launch=OTHER,
       also={"chain.proc": "note"})
def wsl2(lab, _user):
    """Microsoft's kernel of WSL 2"""
    injuries.kernel_says(lab, osrelease="5.15.90.1-microsoft-standard-WSL2")


@fault("machine.wsl", "fail", "WSL 1 has no Linux kernel, and no namespaces", "convert it (wsl --set-version NAME 2)",
       launch=OTHER, also={"chain.proc": "note"})
def wsl1(lab, _user):
    """Microsoft's kernel of WSL 1"""
    injuries.kernel_says(lab, osrelease="4.4.0-19041-Microsoft")


@fault("machine.container", "note", "a container: docker", launch=STARTED)
def container(lab, _user):
    """A container that says so"""
    lab.replace("/run/systemd/container", "docker\n")


@fault("chain.proc", "note", **because("PROC_MASKED", "Operation not permitted", fixed="PROC_OUTER"), launch=STARTED)
def proc_masked(lab, _user):
    """A container masks parts of /proc"""
    injuries.proc_is_masked(lab)


@fault("chain.proc", "fail", **because("PROC_MASKED", "Operation not permitted"),
       mend=lambda lab, fix: machine.write(CONFIG, "procfs = auto\n"), after={"chain.proc": "note"})
def proc_masked_and_needed(lab, _user):
    """The same, with procfs = private"""
    lab.configure("procfs = private\n")
    injuries.proc_is_masked(lab)


@fault("cgroup.controllers", "note", **because("CGROUP_NONE"), launch=STARTED)
def no_cgroup2(lab, _user):
    """No cgroup2 that can be written"""
    injuries.no_cgroup2(lab)
