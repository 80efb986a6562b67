# SPDX-License-Identifier: MIT
"""
Roots of other machines, made of Debian's packages by mmdebstrap from the sources that this machine's apt has. Each is
kept under a hash of all that goes into it.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = 1500                           # seconds that the making of one may take
PATHS = "/usr/sbin:/usr/bin:/sbin:/bin"


class Unavailable(Exception):
    """This machine cannot make an image or start it; the text says why."""


def need(programs):
    """These must be there. programs: {name: the Debian package that has it}"""
    for program, package in programs.items():
        if not shutil.which(program, path=PATHS):
            raise Unavailable(f"there is no {program}; install the package {package}")


def of_script(name):
    """The packages that quickstart or check installs."""
    with open(f"{SOURCE}/{name}", encoding="utf-8") as f:
        return re.search(r"^packages=\(([^)]*)\)", f.read(), re.M)[1].split()


def sources(suite):
    """Lines for apt: the same archives as this machine's, of that version."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"],
                             stdout=subprocess.PIPE, check=True, text=True).stdout
    lines = set()
    for archive, codename in (line.split(" ", 1) for line in targets.splitlines()):
        kind = re.fullmatch(r"[a-z]+((?:-(?:updates|security))?)", codename)
        if kind:
            lines.add(f"deb {archive} {suite}{kind[1]} main\n")
    return "".join(sorted(lines))


def kept(directory, prefix, parts, make):
    """What make(place) makes of these parts, in a directory of its own; made when it is not there. Return: path."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    place = f"{directory}/{prefix}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:12]}"
    with open(f"{directory}/{prefix}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(place):
            # what an older list has made, or was interrupted
            for old in os.listdir(directory):
                if old.startswith(f"{prefix}-"):
                    shutil.rmtree(f"{directory}/{old}")
            os.mkdir(f"{place}.new", 0o755)
            make(f"{place}.new")
            os.rename(f"{place}.new", place)
    return place
