# SPDX-License-Identifier: MIT
"""No file with foreign rights leaves a session, and what people do all day still works without them."""

import glob
import os
import shutil
import socket
import subprocess

import machine
from case import equal, holds, test
from machine import ALICE, BOB, GROUPS, MALLORY, PROBE, ROOT, TOOLS

BOTH = (ROOT, ALICE)


def fresh(lab, user, name="bits"):
    shutil.rmtree(f"{user.home}/{name}", ignore_errors=True)
    return lab.workspace(user, name)


def marked(directory):
    """Everything below that has one of the two bits; a set-gid directory gives nobody rights."""
    found = subprocess.run(["/usr/bin/find", directory, "-perm", "/6000", "!", "(", "-type", "d", "!", "-perm", "/4000", ")"],
                           capture_output=True, check=True)
    return found.stdout.decode().splitlines()


@test(60, needs="bus")
def no_call_makes_the_bits(lab):
    """Every way of the kernel, in 64 and 32 bits; outside, as the same user, nearly all of them can."""
    for user in BOTH:
        work = fresh(lab, user)
        os.mkdir(f"{work}/set-gid")
        os.chown(f"{work}/set-gid", user.uid, GROUPS["friends"])
        os.chmod(f"{work}/set-gid", 0o2777)
        inside = {line.split()[0]: line.split()[1:] for line in
                  lab.shell(f"{TOOLS}/set-id .", user, cwd=work).ok().out.decode().splitlines()}
        holds(len(inside) >= 19, f"{user}: {inside}")
        equal({name: answer for name, answer in inside.items() if answer[1] == "SET"}, {}, str(user))
        equal((inside["mkdir"], inside["inherit"]), (["ok", "clear"],) * 2, str(user))
        for name in ("openat2", "io_uring"):
            equal(inside[name], ["ENOSYS", "none"], f"{user}: {name}")
        for name in ("chmod", "chmod-gid", "fchmod", "fchmodat", "fchmodat2", "fchmodat2-by-descriptor", "chmod-in-proc"):
            equal(inside[name], ["EPERM", "clear"], f"{user}: {name}")
        for name in ("open", "openat", "open-without-umask", "creat", "tmpfile", "mknod", "mknodat"):
            equal(inside[name], ["EPERM", "none"], f"{user}: {name}")
        equal(marked(work), [], str(user))
    work = fresh(lab, ALICE)
    outside = lab.run([f"{TOOLS}/set-id", work], ALICE, cwd=work).ok().out.decode()
    for name in ("chmod", "open", "tmpfile", "mknod", "bind"):       # the newer ones, where the kernel has them
        holds(f"\n{name} ok SET\n" in "\n" + outside, f"outside {name} can: {outside}")


# Each copies $1, which has the bits, or makes its own; "2>/dev/null" since each tells of it in its own words.
TOOLS_THAT_KEEP_MODES = (
    "cp -p $1 a", "cp -a $1 a", "cp --preserve=all $1 a", "install -m 4755 $1 a", "install -m 2755 $1 a",
    "tar cf t -C ${1%/*} ${1##*/} && tar xpf t", "tar cf - -C ${1%/*} ${1##*/} | tar xpf - --same-permissions",
    "cp $1 a && chmod u+s a", "cp $1 a && chmod g+s a", "cp $1 a && chmod 6755 a", "cp $1 a && chmod --reference=$1 a",
    "/usr/bin/python3 -c 'import shutil, sys; shutil.copy2(sys.argv[1], \"a\")' $1",
    "/usr/bin/python3 -c 'import os; os.umask(0); os.open(\"a\", os.O_CREAT, 0o4777)'",
    "perl -e 'umask 0; open F, \">a\"; chmod 04755, \"a\" or die'", "rsync -a $1 a", "bsdtar cf - $1 | bsdtar xpf -",
    "echo $1 | cpio -pdm .", "zip -q z.zip $1 && unzip -X -K z.zip", "cp $1 a && setfacl --set u::rwx,g::rx,o::rx a && chmod u+s a",
    "mkdir d && chmod 4755 d",
)


@test(90, needs="bus")
def no_tool_keeps_the_bits(lab):
    for user in BOTH:
        source = f"/srv/bits-of-{user}"
        machine.write(source, "#!/bin/sh\n", 0o755, user)
        os.chmod(source, 0o6755)
        work = fresh(lab, user)
        for command in TOOLS_THAT_KEEP_MODES:
            lab.shell(f"mkdir x && cd x && {{ {command}; }} >/dev/null 2>&1; true", user, arguments=["sh", source], cwd=work).ok()
            equal(marked(work), [], f"{user}: {command}")
            shutil.rmtree(f"{work}/x")
        # The answer is an error and not a signal: everything else of the work is done.
        result = lab.shell("tar cf t -C /srv ${1##*/} && tar xpf t; echo $?; cat ${1##*/}", user, arguments=["sh", source], cwd=work)
        equal(result.out, b"2\n#!/bin/sh\n", repr(result))
        holds(b"Cannot change mode to rwsr-sr-x: Operation not permitted" in result.err, repr(result))


@test(60, needs="bus")
def no_namespace_brings_the_bits(lab):
    """An overlay copies files up with their modes; root's sessions get no namespace for it, others no owner."""
    script = ("mkdir up work all; unshare -Urm sh -c 'mount -t overlay -o lowerdir=/usr/bin,upperdir=up,workdir=work,userxattr"
              " overlay all && echo mounted; for f in su passwd chsh; do touch all/$f; chmod u+s all/$f; cp -p all/$f copy-$f;"
              " done; unshare -Ur chmod u+s copy-su' 2>&1; true")
    for user in BOTH:
        work = fresh(lab, user)
        result = lab.shell(script, user, cwd=work).ok()
        equal(marked(work), [], f"{user}: {result!r}")
        if user is ROOT:
            holds(b"mounted" not in result.out and b"unshare" in result.out, repr(result))


CAPABILITIES = r"""
import ctypes, os, struct
value = struct.pack("<5I", 0x02000001, 0xffffffff, 0, 0xff, 0)          # linux/capability.h: version 2, effective
try:
    os.setxattr("tool", "security.capability", value)
    print("set")
except OSError as error:
    print(error.strerror)
"""


@test(60, needs="bus")
def capabilities_of_files_give_nothing_outside(lab):
    """Refused; and what root of a user namespace may write counts in that namespace alone."""
    for user in BOTH:
        work = fresh(lab, user)
        machine.write(f"{work}/set.py", CAPABILITIES, 0o644, user)
        script = "cp /bin/cat tool; /usr/bin/python3 set.py; unshare -Ur /usr/bin/python3 set.py 2>&1; true"
        result = lab.shell(script, user, cwd=work).ok()
        lines = result.out.decode().splitlines()
        equal(lines[0], "Operation not permitted", str(user))
        holds(user is ALICE or "unshare" in lines[1], f"{user}: {lines}")
        os.chmod(user.home, 0o755)
        for other in (user, MALLORY):
            status = lab.run([f"{work}/tool", "/proc/self/status"], other, cwd="/")
            equal(f"CapEff:\t{'0' * 16}" in status.out.decode() or other is ROOT, True, f"{user} {other}: {status!r}")
        os.chmod(user.home, 0o700)


@test(60, needs="bus")
def set_gid_directories_work(lab):
    """Shared directories: what is made in them belongs to the group; their own mode stays as it is."""
    work = fresh(lab, ALICE)
    os.mkdir(f"{work}/shared")
    os.chown(f"{work}/shared", ALICE.uid, GROUPS["friends"])
    os.chmod(f"{work}/shared", 0o2775)
    script = ("cd shared && mkdir -p a/b && echo x >a/b/f && chmod 640 a/b/f && install -m 755 a/b/f g && cp -r a c && tar cf t a"
              " && mkdir e && tar xf t -C e && mkdir -m 2755 -p h 2>/dev/null; test -d h && cp -a a i 2>/dev/null; cat i/b/f")
    equal(lab.shell(script, cwd=work).ok().out, b"x\n")
    for path in ("a/b/f", "g", "a", "c/b", "e/a/b"):
        equal(os.stat(f"{work}/shared/{path}").st_gid, GROUPS["friends"], path)
    equal(marked(work), [])


WHEEL = r"""
import zipfile
with zipfile.ZipFile("one-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("one.py", "def main():\n    print('one')\n")
    wheel.writestr("one-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: one\nVersion: 1.0\n")
    wheel.writestr("one-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("one-1.0.dist-info/entry_points.txt", "[console_scripts]\none = one:main\n")
    wheel.writestr("one-1.0.dist-info/RECORD", "")
"""

# What people do all day, with the programs that it needs.
DAYS = (
    ("make cc", "printf 'int main(void){return 0;}\\n' >m.c && printf 'all: m\\nm: m.c\\n\\tcc -o m m.c\\ninstall: m\\n\\tinstall -d o/bin && "
                "install -m 755 m o/bin/m\\n' >Makefile && make -s all install && o/bin/m"),
    ("cmake cc make", "printf 'int main(void){return 0;}\\n' >m.c && printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x C)\\n"
                      "add_executable(x m.c)\\ninstall(TARGETS x DESTINATION bin)\\n' >CMakeLists.txt && cmake -S . -B b && cmake "
                      "--build b && cmake --install b --prefix $PWD/o && o/bin/x"),
    ("python3 pip3", "if [ $(id -u) = 0 ]; then set -- --without-pip; fi; /usr/bin/python3 -m venv \"$@\" v && /usr/bin/python3 w.py && "
                     "pip3 --python v/bin/python3 install -q --no-index one-1.0-py3-none-any.whl && v/bin/one"),
    ("npm node", "mkdir dep && echo '{\"name\":\"dep\",\"version\":\"1.0.0\",\"bin\":\"x.js\",\"scripts\":{\"postinstall\":"
                 "\"touch ran\"}}' >dep/package.json && printf '#!/usr/bin/env node\\n' >dep/x.js && npm pack -s ./dep && echo "
                 "'{\"name\":\"app\",\"dependencies\":{\"dep\":\"file:dep-1.0.0.tgz\"}}' >package.json && npm install -s --offline "
                 "--no-audit --no-fund && node_modules/.bin/dep && test -e node_modules/dep/ran"),
    ("cargo rustc cc", "cargo new -q --vcs git r && cd r && cargo test -q --offline && cargo run -q --offline"),
    ("go", "export GOTOOLCHAIN=local GOPATH=$PWD/p && printf 'package main\\nimport \"os/exec\"\\nfunc main(){if exec.Command(\"true\").Run()!="
           "nil {panic(1)}}\\n' >m.go && go mod init x && go build -o x . && ./x"),
    ("git tar", "git init -q g && cd g && echo a >a && git add a && git -c user.name=a -c user.email=a@b commit -q -m x && git gc -q && "
                "git clone -q . ../h && git archive HEAD | tar xf - -C .. && cmp a ../a"),
    ("zip unzip", "echo a >a && zip -q z a && rm a && unzip -q z && test -e a"),
    ("rsync", "mkdir -p a/b && echo x >a/b/c && rsync -a a/ d/ && cmp a/b/c d/b/c"),
    ("dpkg-deb", "mkdir -p d/DEBIAN d/usr && chmod 755 d d/DEBIAN && printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: "
                 "a <a@b>\\nDescription: x\\n' >d/DEBIAN/control && dpkg-deb --root-owner-group -b d x.deb && dpkg-deb -x x.deb o"),
    ("perl", "perl -e 'mkdir \"d\" or die; chmod 0700, \"d\" or die; exit system \"true\"'"),
)


@test(180, needs="bus")
def a_days_work_is_done(lab):
    """Builds, packages, archives: with as much of it as the machine has."""
    for user in BOTH:
        for programs, script in DAYS:
            if not all(os.path.exists(f"/usr/bin/{name}") for name in programs.split()):
                continue
            if "pip3" in programs and not glob.glob("/usr/lib/python3*/ensurepip"):
                continue
            work = fresh(lab, user, "day")
            machine.write(f"{work}/w.py", WHEEL, 0o644, user)
            result = lab.shell(f"{{ {script}; }} >log 2>&1 || {{ cat log; exit 1; }}", user, cwd=work, limit=60)
            equal((result.status, result.err), (0, b""), f"{user}: {programs}: {result!r}")


@test(60, needs="bus")
def groups_that_are_root_open_nothing(lab):
    """bob is in docker: what that group may open, his sessions may not, also when it is his first group."""
    path, secret = "/srv/engine.sock", "/srv/of-the-group"
    machine.write(secret, "SECRET\n", 0o640)
    os.chown(secret, 0, GROUPS["docker"])
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.chown(path, 0, GROUPS["docker"])
        os.chmod(path, 0o660)
        try:
            equal(lab.run([PROBE, "connect", path], BOB).out, b"connected\n", "outside the group opens it")

            script = f"{PROBE} connect {path}; cat {secret} 2>/dev/null; touch /srv/x 2>/dev/null; id -G; true"
            equal(lab.shell(script, BOB).ok().out, b"refused:EACCES\n4002\n")
            as_docker = ["/usr/bin/setpriv", "--reuid=4002", "--regid=4100", "--groups=4100,4002", "--",
                         "/usr/local/bin/claude-sandbox", "shell", "-c", script]
            result = lab.run(as_docker, ROOT, cwd=lab.workspace(BOB), env=lab.environment(BOB))
            equal((result.status, result.out, result.err), (0, b"refused:EACCES\n4002\n", b""), repr(result))
            lab.configure("deny-group = friends\n")
            # Carried in by the administrator's word, the group counts; what it may open is then covered as a socket.
            equal(lab.shell(script, BOB).ok().out, b"refused:ECONNREFUSED\nSECRET\n4002 65534\n")
        finally:
            os.unlink(path)
