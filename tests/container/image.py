# SPDX-License-Identifier: MIT
"""
The root of the containers: Debian 12 as an image has it, made of Debian's packages by mmdebstrap from the sources that
this machine's apt has, with an ordinary user. It is kept below CACHE under a hash of all that goes into it, and never
written to: each container has an overlay. The product's build is kept beside it.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess

CACHE = "/var/cache/claude-sandbox-container"
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITE = "bookworm"
USER = "tester"
LIMIT = 1500
PATHS = "/usr/sbin:/usr/bin:/sbin:/bin"

# what images have: no number of the machine, no resolver of their own
SETUP = f"useradd -m -s /bin/bash {USER}; : >/etc/machine-id; rm -f /var/lib/dbus/machine-id"


class Unavailable(Exception):
    """This machine cannot make an image or start a container; the text says why."""


def packages():
    with open(f"{SOURCE}/quickstart", encoding="utf-8") as f:
        return sorted({*re.search(r"^packages=\(([^)]*)\)", f.read(), re.M)[1].split(), "procps"})


def sources():
    """Lines for apt: the archives of this machine, of that version."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"],
                             stdout=subprocess.PIPE, check=True, text=True).stdout
    lines = []
    for archive, codename in (line.split(" ", 1) for line in targets.splitlines()):
        kind = re.fullmatch(r"[a-z]+((?:-(?:updates|security))?)", codename)
        if kind:
            lines.append(f"deb {archive} {SUITE}{kind[1]} main\n")
    return "".join(sorted(set(lines)))


def make(root):
    command = ["mmdebstrap", "--mode=root", "--variant=minbase", '--aptopt=APT::Install-Recommends "false"',
               "--include=" + ",".join(packages()), f'--customize-hook=chroot "$1" sh -ec "{SETUP}"', SUITE, root, "-"]
    made = subprocess.run(command, input=sources(), capture_output=True, timeout=LIMIT, check=False, text=True)
    if made.returncode != 0:
        raise Unavailable(f"mmdebstrap failed:\n{made.stderr[-3000:]}")


def image():
    """Return: the directory of the root, which is made when it is not there, and the one of the build."""
    for program in ("mmdebstrap", "podman", "runc"):
        if not shutil.which(program, path=PATHS):
            raise Unavailable(f"there is no {program}; install the package {program}")
    key = hashlib.sha256("\n".join([SUITE, SETUP, *packages()]).encode()).hexdigest()[:12]
    root = f"{CACHE}/root-{key}"
    os.makedirs(f"{CACHE}/build", mode=0o700, exist_ok=True)
    with open(f"{CACHE}/lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(root):
            # what an older list has made
            for old in os.listdir(CACHE):
                if old.startswith("root-"):
                    shutil.rmtree(f"{CACHE}/{old}")
            make(f"{root}.new")
            os.rename(f"{root}.new", root)
    return root, f"{CACHE}/build"
