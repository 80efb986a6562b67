# SPDX-License-Identifier: MIT
"""Git inside: who the person is, every place that a repository can have, and what a forged one gets."""

import os
import shutil
import subprocess
import time

import machine
from case import CLAUDE, SANDBOX, equal, holds, in_the_table, test
from machine import ALICE, BOB, ROOT

BOTH = (ROOT, ALICE)
GIT = "/usr/bin/git"


def git(lab, user, cwd, *words):
    return lab.run([GIT, *words], user, cwd=cwd).ok().out.decode()


def fresh(lab, user, name):
    """An empty directory of user's own below the home."""
    shutil.rmtree(f"{user.home}/{name}", ignore_errors=True)
    return lab.workspace(user, name)


def person(lab, user):
    git(lab, user, user.home, "config", "--global", "user.name", "A Person")
    git(lab, user, user.home, "config", "--global", "user.email", "person@example.org")


def repository(lab, user, path, *options):
    os.makedirs(path, exist_ok=True)
    os.chown(path, user.uid, user.gid)
    git(lab, user, path, "init", "-q", "-b", "main", *options)
    git(lab, user, path, "commit", "-q", "--allow-empty", "-m", "first")
    return path


def warned(result, *sentences, status=0):
    """Exactly these warnings, and that status. Return: what was said."""
    equal(result.err.decode(), "".join(f"claude-sandbox: {sentence}\n" for sentence in sentences), repr(result))
    equal(result.status, status, repr(result))
    return result.out.decode()


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


# ---- where a repository can be ----

def plain(lab, user, base):
    return repository(lab, user, f"{base}/plain")


def linked(lab, user, base):
    main = repository(lab, user, f"{base}/main")
    git(lab, user, main, "worktree", "add", "-q", f"{base}/linked")
    return f"{base}/linked"


def linked_by_a_relative_path(lab, user, base):
    path = linked(lab, user, base)
    machine.write(f"{path}/.git", "gitdir: ../main/.git/worktrees/linked\n", 0o644, user)
    return path


def linked_both_ways_relative(lab, user, base):
    path = linked_by_a_relative_path(lab, user, base)
    machine.write(f"{base}/main/.git/worktrees/linked/gitdir", "../../../../linked/.git\n", 0o644, user)
    return path


def above_submodules(lab, user, base):
    library = repository(lab, user, f"{base}/library")
    above = repository(lab, user, f"{base}/above")
    git(lab, user, above, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "sub")
    git(lab, user, above, "commit", "-q", "-m", "submodule")
    return above


def submodule(lab, user, base):
    return above_submodules(lab, user, base) + "/sub"


def worktree_of_a_submodule(lab, user, base):
    git(lab, user, submodule(lab, user, base), "worktree", "add", "-q", "-b", "beside", f"{base}/beside")
    return f"{base}/beside"


def beside_a_bare_one(lab, user, base):
    source = repository(lab, user, f"{base}/source")
    layout = f"{base}/layout"
    os.mkdir(layout)
    os.chown(layout, user.uid, user.gid)
    git(lab, user, layout, "clone", "-q", "--bare", source, ".bare")
    machine.write(f"{layout}/.git", "gitdir: ./.bare\n", 0o644, user)
    git(lab, user, layout, "worktree", "add", "-q", "-b", "work", f"{layout}/work")
    return f"{layout}/work"


def separate(lab, user, base):
    path = repository(lab, user, f"{base}/separate", f"--separate-git-dir={base}/elsewhere")
    git(lab, user, path, "config", "core.worktree", path)
    return path


def behind_a_link(lab, user, base):
    path = repository(lab, user, f"{base}/through")
    os.rename(f"{path}/.git", f"{base}/store")
    git(lab, user, base, "--git-dir=store", "config", "core.worktree", path)
    os.symlink("../store", f"{path}/.git")
    os.chown(f"{path}/.git", user.uid, user.gid, follow_symlinks=False)
    return path


LAYOUTS = (plain, linked, linked_by_a_relative_path, linked_both_ways_relative, above_submodules, submodule,
           worktree_of_a_submodule, beside_a_bare_one, separate, behind_a_link)

# Everything that a day of work does; each line fails the whole.
DAY = r"""set -e
git status --porcelain
echo one >file; git add file; git commit -q -m inside
git branch topic; git checkout -q topic; echo two >>file; git commit -q -a -m 'on topic'; git checkout -q -
echo three >>file; git stash push -q; git stash pop -q; git checkout -q file
git init -q --bare .remote.git; echo /.remote.git >>"$(git rev-parse --git-common-dir)/info/exclude"
git remote add near "$PWD/.remote.git"; git push -q near HEAD topic; git fetch -q near; git merge -q topic
git tag v1; git rebase -q HEAD~1
echo /.inner >>"$(git rev-parse --git-common-dir)/info/exclude"
git worktree add -q -b inner .inner; git -C .inner commit -q --allow-empty -m deeper; git worktree remove .inner
git worktree add -q --detach .inner; rm -r .inner
git log --format=%s -1; git config --get-all user.email
"""


@test(120, needs="bus")
def repositories_work_wherever_they_are(lab):
    for user in BOTH:
        person(lab, user)
        for layout in LAYOUTS:
            base = fresh(lab, user, "layouts")
            workspace = layout(lab, user, base)
            result = lab.shell(DAY, user, cwd=workspace)
            what = f"{layout.__name__} of {user}: {result!r}"
            equal((result.status, result.out, result.err), (0, b"on topic\nperson@example.org\n", b""), what)
            # and outside it all goes on
            equal(git(lab, user, workspace, "status", "--porcelain"), "", what)
            equal(git(lab, user, workspace, "log", "--format=%s", "-2"), "on topic\ninside\n", what)
            checked = lab.run([GIT, "fsck", "--strict", "--no-dangling"], user, cwd=workspace)
            equal((checked.status, checked.out), (0, b""), f"{what}: {checked!r}")
            git(lab, user, workspace, "commit", "-q", "--allow-empty", "-m", "outside")


@test(60, needs="bus")
def a_remote_that_is_hidden_is_named(lab):
    """Git itself says which path is not there; one that is bound can be fetched from."""
    person(lab, ALICE)
    base = fresh(lab, ALICE, "remotes")
    far = repository(lab, ALICE, f"{base}/far")
    near = f"{base}/near"
    git(lab, ALICE, base, "clone", "-q", far, near)
    result = lab.shell("git fetch", cwd=near)
    holds(result.status != 0 and f"'{far}'".encode() in result.err, repr(result))
    lab.configure(f"allow-write = {far}\n")
    lab.shell("git fetch && git push -q origin HEAD:refs/heads/back", cwd=near).ok()
    lab.restore()
    equal(git(lab, ALICE, far, "log", "--format=%s", "back"), "first\n")


@test(60, needs="bus")
def a_shared_repository_needs_a_umask(lab):
    """core.sharedRepository changes modes of set-group-ID directories, unless the umask leaves nothing to change."""
    person(lab, ALICE)
    work = repository(lab, ALICE, fresh(lab, ALICE, "shared"), "--shared=group")
    sentence = ("git cannot write inside: for core.sharedRepository it sets set-group-ID bits, which are refused there, unless "
                "the umask already gives the others their rights; run umask 002 first")
    commit = "echo $RANDOM >file; git add file && git commit -q -m inside && echo done"
    result = lab.run(["/bin/sh", "-c", "umask 022; exec claude-sandbox shell -c true"], cwd=work)
    warned(result, sentence)
    result = lab.run(["/bin/sh", "-c", f"umask 002; exec claude-sandbox shell -c '{commit}'"], cwd=work).ok()
    equal(result.out, b"done\n")


@test(60, needs="bus")
def worktrees_that_are_hidden_are_not_taken_for_gone(lab):
    """Housekeeping inside sees only one of the worktrees, and leaves the others what is theirs."""
    person(lab, ALICE)
    base = fresh(lab, ALICE, "trees")
    main = repository(lab, ALICE, f"{base}/main")
    for name in ("one", "two"):
        git(lab, ALICE, main, "worktree", "add", "-q", f"{base}/{name}")
    old = time.time() - 400 * 86400
    os.utime(f"{main}/.git/worktrees/two/index", (old, old))
    for workspace in (f"{base}/one", main):
        lab.shell("git gc -q && git worktree list --porcelain | grep -c ^worktree", cwd=workspace).ok()
        equal(git(lab, ALICE, f"{base}/two", "status", "--porcelain"), "", workspace)


# ---- what gets nothing ----

@test(60, needs="bus")
def a_directory_of_a_repository_is_not_all_of_it(lab):
    person(lab, ALICE)
    base = repository(lab, ALICE, fresh(lab, ALICE, "whole"))
    below = f"{base}/below"
    os.mkdir(below)
    os.chown(below, ALICE.uid, ALICE.gid)
    result = lab.shell("git status 2>/dev/null || echo none", cwd=below)
    equal(warned(result, f"git cannot work fully inside: the repository's top is {base}, and the workspace is only {below}; "
                         "start there"), "none\n")
    hooks = f"{base}/.git/hooks"
    result = lab.shell("true", cwd=hooks)
    warned(result, f"git cannot work fully inside: the repository's top is {base}/.git, and the workspace is only {hooks}; "
                   "start there")


@test(60, needs="bus")
def a_home_in_git_is_not_the_projects(lab):
    """Nothing to be told: that repository is hidden, and a project in the home is not part of it."""
    person(lab, ALICE)
    work = fresh(lab, ALICE, "loose")
    git(lab, ALICE, ALICE.home, "init", "-q")
    try:
        result = lab.shell("git status 2>/dev/null || echo none; git init -q && git commit -q --allow-empty -m x && echo own", cwd=work)
        equal(result.ok().out, b"none\nown\n")
    finally:
        shutil.rmtree(f"{ALICE.home}/.git")


FORGED = ("git does not work inside: .git names the repository {}, which knows no worktree here; if it should, run git "
          "worktree repair there")
FORGED_WHOLE = ("git does not work inside: .git names the repository {}, which knows no worktree here; if it should, run git "
                "config core.worktree {} there")
NO_REPOSITORY = "git does not work inside: it finds no repository of yours by {}/.git; run git status there to see why"


@test(90, needs="bus")
def forged_git_files_get_nothing(lab):
    """The file .git may be an agent's: what it names is not shown, and the person is told."""
    for user in BOTH:
        person(lab, user)
        work = fresh(lab, user, "work")
        other = repository(lab, user, fresh(lab, user, "victim"))
        git(lab, user, other, "worktree", "add", "-q", fresh(lab, user, "victim-tree"))
        cases = [(f"{other}/.git", FORGED_WHOLE.format(f"{other}/.git", work)),
                 (f"{other}/.git/worktrees/victim-tree", FORGED.format(f"{other}/.git/worktrees/victim-tree"))]
        for name in (".ssh", ".aws", ".gnupg", ".config", "nothing-there"):
            path = f"{user.home}/{name}"
            if name != "nothing-there":
                machine.write(f"{path}/planted-secret", "SECRET\n", 0o600, user)
            cases.append((path, NO_REPOSITORY.format(work)))
        bare = f"{user.home}/.ssh/store"
        shutil.rmtree(bare, ignore_errors=True)
        git(lab, user, user.home, "init", "-q", "--bare", bare)
        cases.append((bare, FORGED_WHOLE.format(bare, work)))
        for target, sentence in cases:
            for link in (False, True):
                shutil.rmtree(work)
                lab.workspace(user, "work")
                if link:
                    os.symlink(target, f"{work}/.git")
                    os.chown(f"{work}/.git", user.uid, user.gid, follow_symlinks=False)
                else:
                    machine.write(f"{work}/.git", f"gitdir: {target}\n", 0o644, user)
                result = lab.shell(f"ls {target} 2>/dev/null | grep -vx -e gh -e glab-cli; touch {target}/planted 2>/dev/null; git status >/dev/null 2>&1"
                                   " && echo works; true", user, cwd=work)
                # A link to what is no repository is no .git: git looks further up.
                equal(warned(result, sentence), "", f"{user}: {target}")
                holds(not os.path.exists(f"{target}/planted"), f"{target} was written")


@test(120, needs="bus")
def a_git_file_that_is_swapped_gets_nothing(lab):
    """An agent in another session of the workspace exchanges .git, its own and a forged one, while launches look."""
    person(lab, ALICE)
    base = fresh(lab, ALICE, "swapped")
    work = linked(lab, ALICE, base)
    secret = repository(lab, ALICE, fresh(lab, ALICE, "victim"))
    machine.write(f"{work}/other", f"gitdir: {secret}/.git\n", 0o644, ALICE)
    swap = ("import ctypes, sys\nlibc = ctypes.CDLL(None)\nprint('ready', flush=True)\n"
            "while True:\n    libc.renameat2(-100, b'.git', -100, b'other', 2)\n")
    agent = lab.start([SANDBOX, "shell", "-c", f"exec /usr/bin/python3 -c \"{swap}\""], cwd=work, stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE)
    own = shown = 0
    try:
        equal(agent.stdout.readline(), b"ready\n")
        for _ in range(40):
            result = lab.shell(f"test -d {base}/main/.git && echo own; test -e {secret}/.git && echo secret; true", cwd=work)
            equal(result.status, 0, repr(result))
            own += b"own" in result.out
            shown += b"secret" in result.out
    finally:
        agent.kill()
        agent.wait()
    equal(shown, 0, f"{shown} of 40 launches had the other repository")
    holds(0 < own < 40, f"nothing raced: {own} of 40 had their own")


@test(60, needs="bus")
def forged_git_directories_get_nothing(lab):
    """A directory .git with a file commondir, and a work tree elsewhere."""
    person(lab, ALICE)
    work = fresh(lab, ALICE, "work")
    other = repository(lab, ALICE, fresh(lab, ALICE, "victim"))
    git(lab, ALICE, work, "init", "-q")
    machine.write(f"{work}/.git/commondir", f"{other}/.git\n", 0o644, ALICE)
    result = lab.shell(f"ls {other}/.git 2>/dev/null; true", cwd=work)
    equal(warned(result, FORGED.format(f"{other}/.git")), "")

    shutil.rmtree(f"{work}/.git")
    git(lab, ALICE, work, "init", "-q")
    git(lab, ALICE, work, "config", "core.worktree", other)
    equal(lab.shell(f"ls -d {other} 2>/dev/null; true", cwd=work).ok().out, b"")


@test(60, needs="bus")
def names_of_repositories_cannot_steer_the_terminal(lab):
    """The warning names a path that an agent chose: shown, never sent."""
    person(lab, ALICE)
    work = fresh(lab, ALICE, "work")
    name = "victim \x1b]0;title\x07\x1b[31m"
    repository(lab, ALICE, fresh(lab, ALICE, name))
    machine.write(f"{work}/.git", f"gitdir: {ALICE.home}/{name}/.git\n", 0o644, ALICE)
    shown = f"{ALICE.home}/victim \\x1b]0;title\\x07\\x1b[31m/.git"
    warned(lab.shell("true", cwd=work), FORGED_WHOLE.format(shown, work))


@test(60, needs="bus")
def a_credential_store_is_no_repository(lab):
    """Even one that knows the worktree: what is kept from agents stays so."""
    person(lab, ALICE)
    work = fresh(lab, ALICE, "work")
    for where in (".ssh", ".gnupg", ".aws"):
        store = f"{ALICE.home}/{where}/store"
        shutil.rmtree(store, ignore_errors=True)
        machine.write(f"{ALICE.home}/{where}/planted-secret", "SECRET\n", 0o600, ALICE)
        repository(lab, ALICE, work, f"--separate-git-dir={store}")
        git(lab, ALICE, work, "config", "core.worktree", work)
        result = lab.shell(f"ls -d {store} 2>/dev/null; true", cwd=work)
        sentence = f"git does not work fully here: its directory {store} stays hidden: it lies where nothing is shown to agents"
        equal(warned(result, sentence), "")
        os.unlink(f"{work}/.git")


@test(60, needs="bus")
def repositories_of_others_stay_theirs(lab):
    person(lab, BOB)
    person(lab, ALICE)
    shutil.rmtree("/srv/of-bob", ignore_errors=True)
    of_bob = repository(lab, BOB, "/srv/of-bob")
    git(lab, BOB, of_bob, "config", "core.worktree", f"{ALICE.home}/work")
    work = fresh(lab, ALICE, "work")
    machine.write(f"{work}/.git", f"gitdir: {of_bob}/.git\n", 0o644, ALICE)
    result = lab.shell(f"touch {of_bob}/.git/planted 2>/dev/null; true", cwd=work)
    warned(result, NO_REPOSITORY.format(work))

    # The person may trust it; it is bob's all the same.
    git(lab, ALICE, ALICE.home, "config", "--global", "safe.directory", work)
    try:
        result = lab.shell("true", cwd=work)
        warned(result, f"git does not work fully here: its directory {of_bob}/.git stays hidden: it belongs to another user")
    finally:
        git(lab, ALICE, ALICE.home, "config", "--global", "--unset", "safe.directory")


# ---- what git is told inside ----

@test(60, needs="bus")
def a_trusted_repository_is_trusted_inside(lab):
    """safe.directory is hidden with the home: what it says of this one repository goes in, and no more."""
    person(lab, BOB)
    person(lab, ALICE)
    shutil.rmtree("/srv/of-bob", ignore_errors=True)
    of_bob = repository(lab, BOB, "/srv/of-bob")
    git(lab, ALICE, ALICE.home, "config", "--global", "safe.directory", "*")
    try:
        result = lab.shell("git log --format=%s; git config --get-all safe.directory", cwd=of_bob).ok()
        equal(result.out.decode(), f"first\n{of_bob}\n")
    finally:
        git(lab, ALICE, ALICE.home, "config", "--global", "--unset", "safe.directory")
    result = lab.shell("git log 2>/dev/null || echo refused; git config --get-all safe.directory; true", cwd=of_bob)
    equal(warned(result, NO_REPOSITORY.format(of_bob)), "refused\n")


@test(60, needs="bus")
def identities_come_from_where_git_finds_them(lab):
    """The home, its includes by directory and by remote, the XDG place, the repository; never the environment."""
    for user in BOTH:
        config, aside = f"{user.home}/.gitconfig", f"{user.home}/.config/git/config"
        work = repository_without_identity(lab, user)
        ask = "git config user.name; git config user.email; git config init.defaultBranch"

        def identity(**more):
            return lab.shell(ask, user, cwd=work, env=lab.environment(user, **more)).ok().out.decode().splitlines()

        try:
            machine.write(config, "", 0o644, user)
            equal(identity(GIT_AUTHOR_NAME="Planted", GIT_COMMITTER_EMAIL="p@x", EMAIL="p@x", GIT_CONFIG_COUNT="1",
                           GIT_CONFIG_KEY_0="user.name", GIT_CONFIG_VALUE_0="Planted"), ["main"], str(user))
            machine.write(config, "[user]\nname = Home\nemail = home@example.org\n[init]\ndefaultBranch = trunk\n", 0o644, user)
            equal(identity(), ["Home", "home@example.org", "trunk"], str(user))
            os.unlink(config)
            machine.write(aside, "[user]\nname = Aside\n", 0o644, user)
            equal(identity(), ["Aside", "main"], str(user))
            os.unlink(aside)
            machine.write(f"{user.home}/.gitconfig-work", "[user]\nname = At Work\n", 0o644, user)
            for condition in (f"gitdir:{work}/", "hasconfig:remote.*.url:https://example.org/**", "onbranch:main"):
                machine.write(config, f"[user]\nname = Home\n[includeIf \"{condition}\"]\npath = .gitconfig-work\n", 0o644, user)
                equal(identity(), ["At Work", "main"], f"{user}: {condition}")
            git(lab, user, work, "config", "user.name", "Here")
            equal(identity(), ["Here", "main"], str(user))
        finally:
            for path in (config, aside, f"{user.home}/.gitconfig-work"):
                if os.path.exists(path):
                    os.unlink(path)


def repository_without_identity(lab, user):
    work = fresh(lab, user, "identity")
    git(lab, user, work, "init", "-q", "-b", "main")
    git(lab, user, work, "remote", "add", "origin", "https://example.org/a/b.git")
    return work


@test(60, needs="bus")
def each_session_has_its_own(lab):
    """Two at a time, in two repositories, with and without the forges: neither changes the other's."""
    lab.replace("/usr/bin/gh", "#!/bin/sh\n", 0o755)
    ask = "read line; git config user.name; git config --get-all credential.https://github.com.helper; true"
    works = {}
    for name in ("One", "Two"):
        works[name] = fresh(lab, ALICE, name)
        git(lab, ALICE, works[name], "init", "-q")
        git(lab, ALICE, works[name], "config", "user.name", name)
    first = lab.start([SANDBOX, "shell", "-c", f"echo ready; {ask}"], cwd=works["One"], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE)
    try:
        equal(first.stdout.readline(), b"ready\n")
        second = lab.shell(ask, cwd=works["Two"], data=b"\n", env=lab.environment(ALICE, CLAUDE_SANDBOX_NO_FORGE="1")).ok()
        equal(second.out, b"Two\n")
        equal(first.communicate(b"\n", timeout=10)[0], b"One\n\n!/usr/bin/gh auth git-credential\n")
    finally:
        first.kill()
        first.wait()


@test(60, needs="bus")
def configuration_of_the_system_is_read_outside_only(lab):
    lab.replace("/etc/gitconfig", "[user]\nname = System\n[credential]\nhelper = store\n[core]\npager = false\n")
    work = repository_without_identity(lab, ALICE)
    machine.write(f"{ALICE.home}/.gitconfig", "[credential]\nhelper = store\n[alias]\nx = !true\n", 0o644, ALICE)
    result = lab.shell("cat /etc/gitconfig >/dev/null && echo seen; git config --show-origin --get-regexp . | grep -v "
                       "'^file:\\(/etc/claude-gitconfig\\|.git/config\\)'; git config user.name; "
                       "git config --get-all credential.helper; git config alias.x; echo \"$GIT_CONFIG_GLOBAL $GIT_CONFIG_SYSTEM\"",
                       cwd=work).ok()
    equal(result.out.decode().splitlines(), ["seen", "System", "/etc/claude-gitconfig /dev/null"])


@test(60, needs="bus")
def forges_are_reached_by_https(lab):
    lab.configure("forge-host = git.example.org\n")
    ask = "".join(f"git ls-remote --get-url {url}; " for host in ("github.com", "gitlab.com", "git.example.org", "other.example")
                  for url in (f"git@{host}:a/b.git", f"ssh://git@{host}/a/b.git"))
    wanted = "".join(f"https://{host}/a/b.git\n" * 2 for host in ("github.com", "gitlab.com", "git.example.org"))
    result = lab.shell(ask, cwd=fresh(lab, ALICE, "rewrites")).ok()
    equal(result.out.decode(), wanted + "git@other.example:a/b.git\nssh://git@other.example/a/b.git\n")


@test(60, needs="bus")
def helpers_answer_for_their_forges_alone(lab):
    """gh and glab where the machine has them, root's, by their absolute path; none with no-forge."""
    work = fresh(lab, ALICE, "helpers")
    hosts = ("github.com", "gist.github.com", "gitlab.com", "git.example.org", "other.example")
    ask = "".join(f"printf 'protocol=https\\nhost={host}\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill 2>/dev/null | grep ^pass;"
                  for host in hosts)

    def answers():
        return lab.shell(f"mkdir ~/bin; printf '#!/bin/sh\\necho password=planted\\n' >~/bin/gh; chmod 755 ~/bin/gh; cp ~/bin/gh"
                         f" ~/bin/glab; PATH=~/bin:$PATH; {ask} true", cwd=work).ok().out.decode().split()

    tool = "#!/bin/sh\n[ \"$1 $2 $3\" = 'auth git-credential get' ] && printf 'username=x\\npassword=%s\\n' of-{}\n"
    lab.configure("forge-host = git.example.org\n")
    for name in ("gh", "glab"):
        for directory in ("/usr/bin", "/usr/local/bin"):
            if os.path.lexists(f"{directory}/{name}"):
                lab.hide(f"{directory}/{name}")
    equal(answers(), [], "without gh and glab")
    lab.replace("/usr/bin/gh", tool.format("gh"), 0o755)
    equal(answers(), ["password=of-gh"] * 2, "with gh")
    lab.replace("/usr/local/bin/glab", tool.format("glab"), 0o755)
    equal(answers(), ["password=of-gh"] * 2 + ["password=of-glab"] * 2, "with both")
    os.chmod("/usr/bin/gh", 0o777)
    equal(answers(), ["password=of-glab"] * 2, "a gh that others may write")
    lab.configure("no-forge\nforge-host = git.example.org\n")
    equal(answers(), [], "with no-forge")


# ---- what git must not do outside ----

MARK = "/srv/ran-outside"
KEYS = ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy", "core.hooksPath",
        "core.alternateRefsCommand", "sequence.editor", "pager.config", "pager.rev-parse", "alias.config", "alias.rev-parse",
        "filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.external", "diff.x.textconv", "diff.x.command",
        "merge.x.driver", "gpg.program", "gpg.ssh.program", "credential.helper", "uploadpack.packObjectsHook",
        "trace2.normalTarget", "trace2.eventTarget", "sendemail.smtpServer", "interactive.diffFilter", "web.browser",
        "difftool.x.cmd", "mergetool.x.cmd", "browser.x.cmd", "man.x.cmd", "init.templateDir", "submodule.x.update")
HOOKS = ("post-index-change", "reference-transaction", "fsmonitor-watchman", "post-checkout", "pre-auto-gc", "update",
         "query-watchman", "pre-commit")


@test(60, needs="bus")
def nothing_of_a_repository_runs_outside(lab):
    """Every setting that names a program, and every hook, planted where git is asked."""
    for user in BOTH:
        person(lab, user)
        work = repository(lab, user, fresh(lab, user, "traps"))
        lab.install_agent(user)
        script = f"#!/bin/sh\necho \"$0 $*\" >>{MARK}\n"
        if os.path.exists(MARK):
            os.unlink(MARK)
        machine.write(f"{work}/trap", script, 0o755, user)
        for name in HOOKS:
            machine.write(f"{work}/.git/hooks/{name}", script, 0o755, user)
        machine.write(f"{work}/.gitattributes", "* filter=x diff=x merge=x\n", 0o644, user)
        for key in KEYS:
            value = f"!{work}/trap" if key.startswith("alias") or key.endswith("update") else f"{work}/trap"
            if key == "core.hooksPath":
                value = f"{work}/.git/hooks"
            lines = key.split(".")
            section, name = (f'{lines[0]} "{lines[1]}"', lines[2]) if len(lines) == 3 else lines
            with open(f"{work}/.git/config", "a", encoding="utf-8") as f:
                f.write(f"[{section}]\n\t{name} = {value}\n")
        holds("trap" in git(lab, user, work, "config", "core.sshCommand"), "the traps stand")
        result = lab.run([CLAUDE, "exit", "6"], user, cwd=work)
        equal((result.status, result.err), (6, b""), repr(result))
        holds(not os.path.exists(MARK), f"{user}: {text_of(MARK) if os.path.exists(MARK) else ''}")


@test(90, needs="bus")
def a_git_that_does_not_answer_is_told_of(lab):
    """Late, too much, ended, failing: a warning, and the session starts."""
    work = fresh(lab, ALICE, "silent")
    for text, what in (("exit 7", "ended with status 7"), ("kill -9 $$", "was ended by signal 9"),
                       ("exec tail -f /dev/null", "did not answer within 3 seconds"),
                       ("exec cat /dev/zero", "said more than 262144 bytes")):
        lab.replace(GIT, f"#!/bin/sh\n{text}\n", 0o755)
        result = lab.shell("cat /etc/claude-gitconfig", cwd=work, limit=30)
        out = warned(result, f"git is not fully set up inside: outside it {what}; run git status in {work} to see why")
        holds("name =" not in out and "[init]" in out, out)
        lab.restore()
    lab.hide(GIT)
    equal(lab.shell("echo started", cwd=work).ok().out, b"started\n", "no git at all")


@test(60, needs="bus")
def a_configuration_that_git_cannot_read_is_told_of(lab):
    """What an agent leaves in .git/config: a mistake, far too much, a pipe in its place; and nobody waits for a pipe."""
    for user in BOTH:
        work = fresh(lab, user, "spoilt")
        git(lab, user, work, "init", "-q")
        os.mkfifo(f"{work}/pipe")
        os.chown(f"{work}/pipe", user.uid, user.gid)
        unset = "git is not fully set up inside: outside it {}; run git status in " + work + " to see why"
        unread = unset.format("cannot read the repository's configuration")
        for text, sentences in (("[core\n", [unread]), (f"[include]\n\tpath = {work}/pipe\n", []),
                                ("[user]\n\tname = " + "x" * 70000 + "\n", [unread]), (None, [unread])):
            if text is None:
                os.unlink(f"{work}/.git/config")
                os.mkfifo(f"{work}/.git/config")
                os.chown(f"{work}/.git/config", user.uid, user.gid)
            else:
                machine.write(f"{work}/.git/config", text, 0o644, user)
            result = lab.shell("echo started", user, cwd=work, limit=30)
            equal(warned(result, *sentences), "started\n", f"{user} {text and text[:40]!r}")
            holds(result.seconds < 2.5, f"nothing was waited for: {result!r}")
