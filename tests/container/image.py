# SPDX-License-Identifier: MIT
"""
The root of the containers: Debian 12 as an image has it, with an ordinary user. It is kept below CACHE (tests/images.py)
and never written to: each container has an overlay. The product's build is kept beside it.
"""

import os
import subprocess

import images

CACHE = "/var/cache/claude-sandbox-container"
SUITE = "bookworm"
USER = "tester"

# what images have: no number of the machine, no resolver of their own
SETUP = f"useradd -m -s /bin/bash {USER}; : >/etc/machine-id; rm -f /var/lib/dbus/machine-id"


def packages():
    return sorted({*images.of_script("quickstart"), "procps"})


def make(root):
    command = ["mmdebstrap", "--mode=root", "--variant=minbase", '--aptopt=APT::Install-Recommends "false"',
               "--include=" + ",".join(packages()), f'--customize-hook=chroot "$1" sh -ec "{SETUP}"', SUITE, root, "-"]
    made = subprocess.run(command, input=images.sources(SUITE), capture_output=True, timeout=images.LIMIT, check=False, text=True)
    if made.returncode != 0:
        raise images.Unavailable(f"mmdebstrap failed:\n{made.stderr[-3000:]}")


def image():
    """Return: the directory of the root, which is made when it is not there, and the one of the build."""
    images.need({"mmdebstrap": "mmdebstrap", "podman": "podman", "runc": "runc"})
    os.makedirs(f"{CACHE}/build", mode=0o700, exist_ok=True)
    return images.kept(CACHE, "root", [SUITE, SETUP, *packages()], make), f"{CACHE}/build"
