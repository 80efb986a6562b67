# SPDX-License-Identifier: MIT
"""The person's git settings inside: the same commits, files ignored, and what has to stay outside."""

import os
import shutil

import machine
from case import equal, holds, test
from git_cases import BOTH, git, person
from machine import ALICE

START = ("export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'; git init -q -b main .; ")
COMMIT = "git add -A; git commit -q -m m; git rev-parse HEAD"
# what the person has set, files of the home, what is done with it
TABLE = {
    "line ends": ("core.autocrlf = input", {}, r"printf 'a\r\nb\r\n' >f; " + COMMIT),
    "a list of what is ignored": ("core.excludesFile = ~/.ignored", {".ignored": ".envrc\n"}, "echo TOKEN=x >.envrc; echo a >a; " + COMMIT),
    "git's own list": ("", {".config/git/ignore": ".envrc\n"}, "echo TOKEN=x >.envrc; echo a >a; " + COMMIT),
    "attributes": ("core.attributesFile = ~/.attributes", {".attributes": "*.txt text\n"}, r"printf 'a\r\n' >a.txt; " + COMMIT),
    "git's own attributes": ("", {".config/git/attributes": "*.txt text\n"}, r"printf 'a\r\n' >a.txt; " + COMMIT),
    "an alias": ("alias.ci = commit --quiet --allow-empty", {}, "git ci -m m; git rev-parse HEAD"),
    "how a message is cleaned": ("commit.cleanup = verbatim", {}, r"printf 'm\n\n# kept\n\n\n' | git commit -q --allow-empty -F -; git rev-parse HEAD"),
    "another encoding": ("i18n.commitEncoding = ISO-8859-1", {}, r"printf 'm\344\n' | git commit -q --allow-empty -F -; git rev-parse HEAD"),
    "how names are shown": ("core.quotePath = false", {}, "touch ü; git status --porcelain"),
    "how conflicts are written": ("merge.conflictStyle = diff3", {},
                                  "echo a >f; " + COMMIT + "; git checkout -q -b b; echo b >f; git commit -q -a -m b; git checkout -q main;"
                                  " echo c >f; git commit -q -a -m c; git merge -q b >/dev/null; git hash-object f"),
    "another address": ("url.https://mirror.example.org/.insteadOf = up:", {}, "git ls-remote --get-url up:x"),
}


def settings(user, text, files):
    """~/.gitconfig with one more setting, and files of the home."""
    for name, content in files.items():
        machine.write(f"{user.home}/{name}", content, 0o644, user)
        os.chown(os.path.dirname(f"{user.home}/{name}"), user.uid, user.gid)
    if text:
        key, value = text.split(" = ")
        section, name = key.rsplit(".", 1)
        section, _, middle = section.partition(".")
        header = f'[{section} "{middle}"]' if middle else f"[{section}]"
        with open(f"{user.home}/.gitconfig", "a", encoding="utf-8") as f:
            f.write(f"{header}\n{name} = {value}\n")


def cleared(user, files):
    for name in (".gitconfig", ".config/git/ignore", ".config/git/attributes", *files):
        if os.path.lexists(f"{user.home}/{name}"):
            os.unlink(f"{user.home}/{name}")


def place(lab, user, name):
    shutil.rmtree(f"{user.home}/{name}", ignore_errors=True)
    return lab.workspace(user, name)


@test(120, needs="bus")
def the_same_commits(lab):
    for user in BOTH:
        for what, (text, files, script) in TABLE.items():
            found = []
            for name, inside, with_it in (("plain", False, False), ("outside", False, True), ("inside", True, True)):
                cleared(user, files)
                person(lab, user)
                if with_it:
                    settings(user, text, files)
                cwd = place(lab, user, name)
                run = lab.shell(START + script, user, cwd=cwd) if inside else lab.run(["/bin/sh", "-c", START + script], user, cwd=cwd)
                found.append((run.out.decode(), run.err.decode()))
            equal(found[2], found[1], f"{user}: {what}")
            holds(found[0][0] != found[1][0], f"{user}: {what}: the setting does nothing: {found}")
        cleared(user, (".ignored", ".attributes"))


@test(60, needs="bus")
def what_stays_outside_is_named(lab):
    """Once, in one line, where a repository is; the commit is made without it."""
    for user in BOTH:
        cleared(user, ())
        person(lab, user)
        cwd = place(lab, user, "project")
        git(lab, user, cwd, "init", "-q", "-b", "main", ".")
        for key, value in (("commit.gpgSign", "true"), ("tag.gpgSign", "false"), ("core.hooksPath", "~/hooks"),
                           ("filter.secret.clean", "secret-filter"), ("alias.run", "!touch /tmp/it-ran"),
                           ("http.proxy", "http://me:secret@proxy.example.org"), ("url.ext::sh.insteadOf", "sh:"),
                           ("url.https://secret@example.org/.insteadOf", "x:"), ("filter.lfs.process", "git-lfs filter-process"),
                           ("diff.external", "/tmp/evil"), ("http.extraHeader", "Authorization: secret")):
            git(lab, user, user.home, "config", "--global", key, value)
        result = lab.shell("git commit -q --allow-empty -m m && git log --format=%s%G? && git config --list", user, cwd=cwd)
        equal(result.status, 0, repr(result))
        lines = result.err.decode().splitlines()
        equal(len(lines), 1, lines)
        holds("commit.gpgsign, core.hookspath, filter.secret.clean, filter.lfs:" in lines[0] and "tag.gpgsign" not in lines[0], lines[0])
        text = result.out.decode()
        holds(text.startswith("mN\n"), text)
        for word in ("secret", "it-ran", "evil", "ext::", "hooks"):
            holds(word not in text, f"{word}: {text}")
        cleared(user, ())


@test(60, needs="bus")
def no_link_of_an_agents_leads_elsewhere(lab):
    """A list in the workspace that became a link shows nothing of where it leads; a person's own link is followed."""
    cleared(ALICE, ())
    person(lab, ALICE)
    machine.write(f"{ALICE.home}/.ssh/planted", "SECRET\n", 0o600, ALICE)
    cwd = place(lab, ALICE, "project")
    git(lab, ALICE, cwd, "init", "-q", "-b", "main", ".")
    git(lab, ALICE, ALICE.home, "config", "--global", "core.excludesFile", f"{cwd}/list")
    show = "cat $(git config core.excludesFile) 2>/dev/null; true"
    os.symlink(f"{ALICE.home}/.ssh/planted", f"{cwd}/list")
    result = lab.shell(show, cwd=cwd)
    equal(result.out, b"", repr(result))
    holds(f"goes without {cwd}/list".encode() in result.err, repr(result))
    # nor in another session, whose workspace it is not, nor out of what all agents write
    other = place(lab, ALICE, "other")
    git(lab, ALICE, other, "init", "-q", "-b", "main", ".")
    holds(b"SECRET" not in lab.shell(show, cwd=other).out, "by a link in another workspace")
    git(lab, ALICE, ALICE.home, "config", "--global", "core.excludesFile", "~/.cache/list")
    machine.write(f"{ALICE.home}/.cache/list", "", 0o644, ALICE)
    os.chown(f"{ALICE.home}/.cache", ALICE.uid, ALICE.gid)
    lab.shell(f"ln -sf {ALICE.home}/.ssh/planted ~/.cache/list", cwd=other).ok()
    result = lab.shell(show, cwd=other)
    holds(b"SECRET" not in result.out and b"goes without" in result.err, repr(result))
    os.unlink(f"{ALICE.home}/.cache/list")
    git(lab, ALICE, ALICE.home, "config", "--global", "core.excludesFile", "")
    equal(lab.shell("true", cwd=other).ok().err, b"", "an empty one")
    git(lab, ALICE, ALICE.home, "config", "--global", "core.excludesFile", f"{cwd}/list")
    os.unlink(f"{cwd}/list")
    machine.write(f"{cwd}/list", "a\n", 0o644, ALICE)
    equal(lab.shell(show, cwd=cwd).ok().out, b"a\n")
    git(lab, ALICE, ALICE.home, "config", "--global", "core.excludesFile", "~/.linked")
    machine.write(f"{ALICE.home}/dotfiles", "b\n", 0o644, ALICE)
    os.symlink("dotfiles", f"{ALICE.home}/.linked")
    equal(lab.shell(show, cwd=cwd).ok().out, b"b\n")
    machine.write(f"{ALICE.home}/dotfiles", "x" * 70000, 0o644, ALICE)
    holds(b"up to 65536 bytes" in lab.shell("true", cwd=cwd).err, "too long")
    for name in (".linked", "dotfiles", ".ssh/planted"):
        os.unlink(f"{ALICE.home}/{name}")
    cleared(ALICE, ())
