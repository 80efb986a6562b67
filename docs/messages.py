#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of what a person may be told, from the sentences in the code.

    messages.py [ROOT] > docs/messages.md      write it
    messages.py --check [ROOT]                 does docs/messages.md still say the same? names each difference
"""

import os
import re
import sys

FOLDERS = ("dbus", "service/daemon", "service/inside", "service/link", "service/net", "service/plan", "service/session",
           "shim", "tui")
CALLS = ("refuse", "dump_refuse", "refuse_call", "build_refuse", "sd_bus_error_setf", "sd_bus_error_set", "complain", "refused",
         "finish_refused", "session_fail", "session_refuse", "session_end_because", "end_for_the_network", "launch_abort",
         "launch_refuse", "stop_refuse", "verb_refuse", "sd_bus_reply_method_errorf", "REFUSE", "channel_fail",
         "fail_with_fix", "asprintf", "wire_lost")
WHERE = {"dbus": "The bus", "service/daemon": "The service", "service/inside": "Inside the jail",
         "service/link": "Between the programs", "service/net": "The jail's network",
         "service/plan": "Configuration, workspace and mounts", "service/session": "The session", "shim": "The command",
         "tui": "The screen"}
HEAD = """<!-- SPDX-License-Identifier: MIT -->
<!-- Made by docs/messages.py from the sentences in the code; a test holds the two together. -->
# Messages

Each refusal is one line on standard error that begins with `claude-sandbox:`, or `claude-sandbox-tui:` for the
screen, names the innermost cause, and after a semicolon what helps. The status is 125; 127 when the agent is not
installed. `…` stands for a name, a number or what the kernel answered. Where the second column points to the
answer, the line ends with what the last table says for it.
"""
ERRNO = "what belongs to the answer, below"
# What helps where the line itself says the cause alone, and the cause is no answer of the kernel.
FIXES = [
    (r"^(The option|fds has|cwd is|agent is|descriptor|Entry|no agent|Nobody may)|another type|is too long|O_PATH",
     "correct the call (org.claudesandbox1(5))"),
    (r"polkit", "start polkit, or let an administrator do it as root"),
    (r"calling process|who calls|caller's", "call again, from an ordinary login shell of the host"),
    (r"no account", "make the account known to this machine"),
    (r"^/dev/net", "as the line says"),
    (r"registry|npm|package|\.lock|\.versions|node_modules|^install|second name|more than … files|neither file|deeper than",
     "run the installation again (claude-sandbox(1))"),
    (r"by hand|exclude each other|more than one|takes no|no version", "claude-sandbox(1) has the words"),
    (r"before its agent ran", "start again"),
    (r"of one version|announced|this process is of user|terminal than|out of order", "install claude-sandbox again (sudo ./quickstart)"),
    (r"has no effect in this version|not supported", "remove it"),
]
CLAUSE = re.compile(r"it |,|a path|a socket|a terminal|an object|of a kind|something |its |start |end |raise |a kernel ")
BECAUSE = re.compile(r"\bBECAUSE\((\w+)\)")
STRING = r'"(?:[^"\\]|\\.)*"'


def strip_comments(text):
    return re.sub(r'("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\')|/\*.*?\*/|//[^\n]*',
                  lambda m: m.group(1) or " ", text, flags=re.S)


def sources(root):
    for folder in FOLDERS:
        for name in sorted(os.listdir(os.path.join(root, folder))):
            if name.endswith((".c", ".h")):
                with open(os.path.join(root, folder, name), encoding="utf-8") as f:
                    yield folder, name, BECAUSE.sub(r'CAUSE_\1 "; " FIX_\1', strip_comments(f.read()))


def macros(files):
    """Macros that stand for text."""
    found = {}
    for _, _, text in files:
        for name, value in re.findall(rf"#define (\w+)\s+((?:[ \t]*(?:{STRING}|\w+|\\\n))+)", text):
            if '"' in value:
                found.setdefault(name, value.replace("\\\n", " "))
    return found


def literal(tokens, known, depth=0):
    out = ""
    for token in re.findall(rf"{STRING}|\w+", tokens):
        if token.startswith('"'):
            out += token[1:-1].replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")
        elif token in known and depth < 4:
            out += literal(known[token], known, depth + 1)
    return out


def shown(text):
    return re.sub(r"%[-0 .*0-9]*(?:ll|l|z|h)?[a-zA-Z]", "…", text).replace("%%", "%").strip()


def arguments(text, start):
    """The text between the parenthesis at start and its partner."""
    depth, at = 0, start
    for match in re.compile(rf"{STRING}|'(?:[^'\\]|\\.)*'|[()]").finditer(text, start):
        if match.group() == "(":
            depth += 1
        elif match.group() == ")":
            depth -= 1
            if depth == 0:
                at = match.start()
                break
    return text[start + 1:at]


def sentences(folder, text, known):
    """Every sentence of a refusal in a file: whole literals of at least three words."""
    names = "|".join(CALLS)
    words = "|".join(re.escape(name) for name in known)
    run = re.compile(rf"(?:\b(?:{words})\b\s*)*{STRING}(?:\s*(?:{STRING}|\b(?:{words})\b))*" if words else STRING)
    for match in re.finditer(rf"\b(?:{names})\s*\(", text):
        call = arguments(text, match.end() - 1)
        # a text is made of many things; only what is named so is a sentence
        if match.group().startswith("asprintf") and not re.match(r"\s*&\*?(problem|why|sentence)\b", call):
            continue
        for piece in run.finditer(call):
            yield shown(literal(piece.group(), known))
    # what follows a value of the configuration
    for match in re.finditer(rf"refuse_value\s*\(|\breturn ((?:{STRING}\s*)+);", text):
        if match.group(1):
            if folder == "service/plan" and ";" in match.group(1):
                yield "'…' " + shown(literal(match.group(1), known))
        else:
            for piece in run.finditer(arguments(text, match.end() - 1)):
                yield "'…' " + shown(literal(piece.group(), known))
    for match in re.finditer(rf"\[INIT_STAGE_\w+\] = ({STRING})", text):
        yield shown(literal(match.group(1), known)) + " (…): …"
    for match in re.finditer(rf"->(?:sentence|problem) =\s*((?:{STRING}|\s)+);", text):
        yield shown(literal(match.group(1), known))


def is_sentence(text):
    """Not a clause that another sentence takes in."""
    return len(re.findall(r"[A-Za-z]{2,}", text.replace("%s", ""))) >= 2 and " " in text and not text.startswith(("org.", ";", "-", "(")) \
        and not CLAUSE.match(text)


def split(text):
    """Cause and fix."""
    cause, semicolon, fix = text.partition(";")
    if not semicolon and ". " in text:
        cause, _, fix = text.partition(". ")
    cause, fix = cause.strip().rstrip("."), fix.strip().rstrip(".")
    if not fix:
        fix = next((words for pattern, words in FIXES if re.search(pattern, cause)), ERRNO)
    return cause, fix


def errnos(text):
    """The fixes of error_fix(): [(names, fix)]."""
    body = text[text.index("static const char *error_fix"):]
    body = body[:body.index("\n}")]
    rows, names = [], []
    for name, other, fix in re.findall(rf"case -(\w+):|(default):|return ({STRING});", body):
        if name or other:
            names.append(name or "any other")
        elif fix:
            rows.append((", ".join(names), fix[1:-1]))
            names = []
    return rows


def cell(text):
    return text.replace("|", "\\|")


def table(root):
    files = list(sources(root))
    known = macros(files)
    out = [HEAD]
    for folder in FOLDERS:
        rows = {}
        for where, name, text in files:
            if where == folder and name.endswith(".c"):
                for sentence in sentences(folder, text, known):
                    if is_sentence(sentence):
                        rows.setdefault(split(sentence), None)
                if name == "errors.c":
                    body = text[text.index("errors[]"):text.index("};", text.index("errors[]"))]
                    for row in re.findall(rf"\{{\s*CS_\w+,((?:\s|{STRING}|\w)+)\}}", body):
                        rows.setdefault(split(shown(literal(row, known))), None)
        if rows:
            out.append(f"\n## {WHERE[folder]}\n\n| what is said | what helps |\n|---|---|\n")
            out += [f"| {cell(cause)} | {cell(fix)} |\n" for cause, fix in sorted(rows, key=lambda row: row[0].lower())]
    out.append("\n## What the kernel answered\n\n| answer | what helps |\n|---|---|\n")
    errors = next(text for where, name, text in files if (where, name) == ("dbus", "errors.c"))
    out += [f"| {names} | {cell(fix)} |\n" for names, fix in errnos(errors)]
    return "".join(out)


def templates(text):
    """Regular expressions of the causes in a written table, for what is said in earnest."""
    found = []
    for cause in re.findall(r"^\| (.*?) \| .* \|$", text, re.M):
        if cause not in ("what is said", "answer") and len(re.findall(r"[A-Za-z]{2,}", cause)) >= 2:
            pattern = ".*".join(re.escape(part) for part in cause.replace("\\|", "|").split("…"))
            # a cause is often the end of a longer line: the file, the key, the step
            found.append(re.compile(r"(?:.*: )?" + pattern + r"(?:$|[;.:( ].*)", re.S))
    return found


def main():
    check = "--check" in sys.argv
    rest = [word for word in sys.argv[1:] if word != "--check"]
    root = rest[0] if rest else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    new = table(root)
    if not check:
        sys.stdout.write(new)
        return 0
    with open(os.path.join(root, "docs", "messages.md"), encoding="utf-8") as f:
        old = f.read()
    for line in sorted(set(new.splitlines()) - set(old.splitlines())):
        print(f"said, and not in docs/messages.md: {line}")
    for line in sorted(set(old.splitlines()) - set(new.splitlines())):
        print(f"in docs/messages.md, and never said: {line}")
    # whoever takes a sentence apart does it at the last semicolon
    twice = [line for line in new.splitlines() if re.match(r"\| .* \| .*; .* \|$", line)]
    for line in twice:
        print(f"a second semicolon in what helps: {line}")
    return int(new != old or bool(twice))


if __name__ == "__main__":
    sys.exit(main())
