# SPDX-License-Identifier: MIT
"""Ways out that were found once: each stays shut."""

import os
import subprocess

from case import CLAUDE, equal, holds, test
from machine import ALICE, ROOT


@test(needs="bus")
def kernel_settings_stay(lab):
    """uid 0 needs no capability for most of /proc/sys; core_pattern names a program that the kernel runs as root."""
    script = (
        "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/swappiness"
        " /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/disable_ipv6 /proc/sys/fs/suid_dumpable; do"
        "  [ -e $f ] || continue; IFS= read -r v <$f; { printf '%s\\n' \"$v\" >$f; } 2>/dev/null && echo \"wrote $f\";"
        " done; echo tried")
    for user in (ROOT, ALICE):
        equal(lab.shell(script, user).ok().out, b"tried\n", str(user))


@test(needs="bus")
def repositories_of_other_projects_stay(lab):
    """An agent makes a git directory of its own, whose file commondir names another project's repository."""
    work, other = lab.workspace(ALICE, "forged"), lab.workspace(ALICE, "other")
    lab.run(["/usr/bin/git", "init", "-q", other], ALICE).ok()
    cache = f"{ALICE.home}/.cache"
    if not os.path.isdir(cache):
        os.mkdir(cache)
        os.chown(cache, ALICE.uid, ALICE.gid)
    first = (
        f"mkdir -p ~/.cache/evil && cd ~/.cache/evil && echo 'ref: refs/heads/main' >HEAD && echo {other}/.git >commondir"
        f" && echo {work}/.git >gitdir && echo 'gitdir: {cache}/evil' >{work}/.git")
    lab.shell(first, cwd=work).ok()
    second = lab.shell(f"ls -d {other}; touch {other}/.git/hooks/post-commit; echo tried", cwd=work)
    equal((second.status, second.out), (0, b"tried\n"))
    holds(b"git does not work inside" in second.err, f"no warning: {second!r}")
    holds(not os.path.exists(f"{other}/.git/hooks/post-commit"), "a hook was planted")


@test(needs="bus")
def keyrings_stay(lab):
    """A uid's keyrings are the same in every namespace."""
    lab.install_agent(ALICE)
    equal(lab.run([CLAUDE, "keys"], ALICE).ok().out.split(), [b"38"] * 3)      # ENOSYS


@test(needs="bus")
def what_is_hidden_cannot_be_made(lab):
    """A hidden directory that does not exist is no place for an agent's own, and leaves nothing behind."""
    share = f"{ALICE.home}/.local/share"
    subprocess.run(["/usr/bin/install", "-d", "-o", str(ALICE.uid), "-g", str(ALICE.gid), f"{ALICE.home}/.local", share],
                   check=True)
    before = sorted(os.listdir(share))
    lab.shell("mkdir -p ~/.local/share/bash-completion/completions && echo 'touch ~/PWNED' "
              ">~/.local/share/bash-completion/completions/git; mkdir -p ~/.local/share/fish/vendor_conf.d; true").ok()
    equal(sorted(os.listdir(share)), before)


@test(needs="bus")
def squatted_temp_root_costs_no_launch(lab):
    """Any user can be first in /var/tmp."""
    path = "/var/tmp/claude-agent"
    subprocess.run(["/bin/rm", "-rf", path], check=True)
    os.symlink("/tmp", path)
    try:
        lab.install_agent(ALICE)
        result = lab.run([CLAUDE, "environment"], ALICE)
        equal(result.status, 0, repr(result))
        holds(b"temporary files" in result.err and b"CLAUDE_CODE_TMPDIR" not in result.out, repr(result))
    finally:
        os.unlink(path)
