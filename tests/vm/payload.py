# SPDX-License-Identifier: MIT
"""
What a machine finds in it at its first start: a checkout of this tree in a person's home, and the build that
quickstart would make there, made in the image's own files without emulation. quickstart finds nothing left to compile.
"""

import os
import shutil
import subprocess

import image
import images

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKOUT = "home/alice/claude-sandbox"
CACHE = "var/cache/claude-sandbox"
PERSON = "1000"
# Inside a mount namespace: the checkout and the build over the image's files, which stay as they are.
BUILD = f"""set -eu
mount --make-rprivate /
mount --bind "$1" "$1"
mkdir -p "$1/{CHECKOUT}" "$1/{CACHE}"
mount --bind "$2/{CHECKOUT}" "$1/{CHECKOUT}"
mount --bind "$2/{CACHE}" "$1/{CACHE}"
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/tmp"
exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root sh -euc '
[ -f /{CACHE}/build/build.ninja ] || meson setup /{CACHE}/build /{CHECKOUT} -Dtests=false -Dprefix=/usr
ninja -C /{CACHE}/build
echo /{CHECKOUT} >/{CACHE}/source'
"""


def is_ours(name):
    return not (name.startswith("build") or name in (".git", "__pycache__"))


def copy_tree(source, target):
    """What is the same keeps its time, so that only what changed is compiled."""
    os.makedirs(target, exist_ok=True)
    names = {name for name in os.listdir(source) if is_ours(name)}
    for name in set(os.listdir(target)) - names:
        path = f"{target}/{name}"
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    for name in names:
        old, new = f"{source}/{name}", f"{target}/{name}"
        if os.path.isdir(old) and not os.path.islink(old):
            copy_tree(old, new)
            continue
        if os.path.isfile(new):
            with open(old, "rb") as a, open(new, "rb") as b:
                if a.read() == b.read() and os.stat(old).st_mode == os.stat(new).st_mode:
                    continue
        shutil.copy(old, new, follow_symlinks=False)


def payload(suite):
    """Return: the file, a tar archive, which the machine has as its second disk."""
    place = image.image(suite)
    work, archive = f"{place}/work", f"{place}/payload.tar"
    for directory in (CHECKOUT, CACHE, "var/lib/vm"):
        os.makedirs(f"{work}/{directory}", exist_ok=True)
    copy_tree(images.SOURCE, f"{work}/{CHECKOUT}")
    for name in ("control.py", "world.sh", "echo.py"):
        shutil.copy(f"{HERE}/{name}", f"{work}/var/lib/vm/{name}")
    os.chmod(f"{work}/{CACHE}", 0o700)
    with open(f"{work}/var/lib/vm/done", "w", encoding="utf-8"):
        pass
    image.run(["unshare", "-m", "sh", "-c", BUILD, "sh", f"{place}/root", work], f"{place}/build.log")
    tar = ["tar", "--format=posix", "-C", work]
    subprocess.run([*tar, "--owner=0", "--group=0", "-cf", f"{archive}.new", "var"], check=True)
    subprocess.run([*tar, f"--owner={PERSON}", f"--group={PERSON}", "-rf", f"{archive}.new", CHECKOUT], check=True)
    os.rename(f"{archive}.new", archive)
    return archive
