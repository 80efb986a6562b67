# SPDX-License-Identifier: MIT
"""What shells offer behind `claude-sandbox`: bash really asked, zsh and fish too where they are installed."""

import re
import shutil

from case import SANDBOX, equal, holds, test
from exposure import Agent
from machine import ALICE, BOB

BASH = "/usr/share/bash-completion/completions/claude-sandbox"
ZSH = "/usr/share/zsh/vendor-completions/_claude-sandbox"
FISH = "/usr/share/fish/vendor_completions.d/claude-sandbox.fish"
# How each file names its verbs.
COMPLETIONS = {BASH: r"verbs='([a-z -]+)'", ZSH: r"^\t\t['\"]([a-z-]+):", FISH: r"^set -l verbs ([a-z -]+)"}
HERE = ("shell", "install", "gh-auth", "glab-auth")     # verbs that take no -H


def complete(lab, *words):
    """What bash offers for the last word, in words as readline makes them of a line."""
    words = [part for word in words[:-1] for part in re.findall(r"[=@:]+|[^=@:]+", word)] + list(words[-1:])
    script = (f"source {BASH}; COMP_WORDS=(claude-sandbox \"$@\"); COMP_CWORD=$#; "
              "$(complete -p claude-sandbox | grep -o '_claude_sandbox[^ ]*'); printf '%s\\n' \"${COMPREPLY[@]}\"")
    return lab.run(["/bin/bash", "-uc", script, "bash", *words], ALICE).ok().out.decode().split()


def verbs_of_the_help(lab):
    text = lab.run([SANDBOX, "help"]).ok().out.decode()
    return re.findall(r"^  ([a-z-]+) ", text[text.index("Verbs:"):text.index("Options:")], re.M)


def options_of(lab, verb):
    """As its help has them, with those that all verbs have."""
    text = lab.run([SANDBOX, "help", verb]).ok().out.decode()
    found = set(re.findall(r"(?<![\w-])(?:--[a-z][a-z-]+|-f)\b", text))
    if verb in ("shell", "help"):
        return set()
    return found | {"--help"} | (set() if verb in HERE else {"--host"})


@test(60, needs="bus")
def every_verb_and_option(lab):
    """Each shell's file names every verb of the help; bash offers the options that the verb's help has, and no other."""
    verbs = verbs_of_the_help(lab)
    holds({"show", "exposure", "routes", "why", "denied", "gh-auth"} <= set(verbs), verbs)
    for path, pattern in COMPLETIONS.items():
        with open(path, encoding="utf-8") as f:
            text = f.read()
        equal(sorted(" ".join(re.findall(pattern, text, re.M)).split()), sorted(verbs), path)
        for verb in verbs:
            for option in options_of(lab, verb) - {"-f"}:
                holds(re.search(rf"--{option[2:]}\b|-l {option[2:]}\b", text), f"{path}: {verb} {option}")
    equal(sorted(complete(lab, "")), sorted(verbs))
    equal(sorted(complete(lab, "help", "")), sorted(verbs))
    for words in (["-H", "far"], ["--host=far"], ["-H", "root@far:22"], ["-Hroot@far"], ["--host=root@far", "--json"]):
        equal(sorted(complete(lab, *words, "")), sorted(verbs), words)
        equal(complete(lab, *words, "exp"), ["exposure"], words)
    for words in (["-H"], ["--host"], ["-H", "root@"], ["--host="]):
        equal(complete(lab, *words, "s"), [], "a host is no verb")
    equal(complete(lab, "exp"), ["exposure"])
    equal(complete(lab, "--json", "exp"), ["exposure"])
    equal(sorted(complete(lab, "-")), ["--help", "--host", "--json", "--utc", "--version"])
    for verb in verbs:
        if verb not in ("shell", "help"):
            equal(sorted(complete(lab, verb, "-")), sorted(options_of(lab, verb)), verb)


@test(60, needs="bus")
def ids_paths_and_words(lab):
    """Ids are those of the caller's sessions alone; another machine is not asked."""
    lab.configure("allow-ip = 10.1.2.3\n")
    workspace = lab.workspace(ALICE)
    with Agent(lab, "shell", ALICE) as held, Agent(lab, "shell", BOB) as other:
        for verb in ("show", "exposure", "routes", "ports", "denied", "stop", "log"):
            equal(complete(lab, verb, ""), [held.id], verb)
            equal(complete(lab, verb, held.id[:2]), [held.id], verb)
            equal(complete(lab, "-H", "far", verb, ""), [], verb)
        equal(complete(lab, "why", "--session", held.id[:3]), [held.id])
        equal(complete(lab, "allow-ip", "add", "--session", ""), [held.id])
        equal(complete(lab, "why", "--session=", held.id[:3]), [held.id])
        equal(complete(lab, "-Hfar", "why", "--session", ""), [])
        equal(complete(lab, "why", "--session", other.id[:5]), [] if held.id[:5] != other.id[:5] else [held.id])
    with open(f"{workspace}/only here", "w", encoding="utf-8"):
        pass
    equal(complete(lab, "why", f"{workspace}/on"), f"{workspace}/only here".split())
    equal(complete(lab, "shell", f"{workspace}/on"), f"{workspace}/only here".split())
    equal(complete(lab, "shell", "-"), [])
    equal(complete(lab, "allow-ip", ""), ["list", "add", "remove", "edit"])
    equal(complete(lab, "allow-ip", "remove", ""), ["10.1.2.3"])
    equal(complete(lab, "allow-ip", "add", "--for", ""), ["15m", "1h", "8h", "1d"])
    equal(complete(lab, "install", "c"), ["claude", "codex"])
    equal(complete(lab, "glab-auth", "g"), ["gitlab.com"])
    equal(complete(lab, "nothing", ""), [])


@test(60, needs="bus")
def typed_into_bash(lab):
    """With readline in between: what Tab makes of a line."""
    def made(line, *wanted):
        terminal.type(f"{line}\t")
        for text in wanted:
            terminal.expect(text)
        terminal.type("\x15\n")
        terminal.expect("$ ")

    with Agent(lab, "shell", ALICE) as held, \
            lab.terminal(["/bin/bash", "--norc", "--noprofile", "-i"], env=lab.environment(ALICE, PS1="$ ")) as terminal:
        terminal.expect("$ ")
        terminal.type(f"source {BASH}\n")
        terminal.expect("$ ")
        made("claude-sandbox exp", "claude-sandbox exposure ")
        made("claude-sandbox --host=root@far:22 poli", "policy ")
        made("claude-sandbox show ", held.id + " ")
        made(f"claude-sandbox why --session={held.id[:3]}", f"--session={held.id} ")
        made("claude-sandbox log --fol", "--follow ")
        made("claude-sandbox why /etc/host\t", "/etc/host", "hosts")


@test(60, needs="bus")
def other_shells(lab):
    """Where they are installed: zsh takes its file, fish answers."""
    zsh, fish = shutil.which("zsh"), shutil.which("fish")
    if zsh:
        lab.run([zsh, "-f", "-n", ZSH], ALICE).ok()
    if fish:
        def offers(line):
            return lab.run([fish, "--no-config", "-c", f"source {FISH}; complete -C '{line}'"], ALICE).ok().out.decode()
        equal(sorted(re.findall(r"^([a-z-]+)\t", offers("claude-sandbox "), re.M)), sorted(verbs_of_the_help(lab)))
        for verb in verbs_of_the_help(lab):
            found = set(re.findall(r"^(--[a-z-]+)", offers(f"claude-sandbox {verb} --"), re.M))
            equal(sorted(options_of(lab, verb) - {"-f"} - found), [], verb)
        with Agent(lab, "shell", ALICE) as held:
            holds(held.id in offers("claude-sandbox show "), "ids")
            holds(held.id not in offers("claude-sandbox -H far show "), "another machine's")
