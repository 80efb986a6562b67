# SPDX-License-Identifier: MIT
"""What the documents show works as shown."""

import os
import subprocess

import machine
from case import SANDBOX, Skip, equal, holds, test
from machine import ALICE, ROOT

DOCUMENTS = "/usr/share/doc/claude-sandbox"
EXAMPLES = DOCUMENTS + "/examples"


@test(60, needs="bus")
def launching_from_python(lab):
    for user in (ALICE, ROOT):
        result = lab.run([f"{EXAMPLES}/launch.py", "shell", "-c", "cat; echo err >&2; exit 7"], user, data=b"typed\n")
        equal((result.status, result.out, result.err), (7, b"typed\n", b"err\n"), str(user))
        result = lab.run([f"{EXAMPLES}/launch.py", "shell", "-c", "kill -TERM $$"], user)
        equal(result.status, -15, repr(result))
        result = lab.run([f"{EXAMPLES}/launch.py", "shell"], user, cwd="/etc")
        holds(result.status == 125 and b"/etc" in result.err, repr(result))


@test(needs="bus")
def example_configuration(lab):
    with open(f"{EXAMPLES}/claude-sandbox.conf", "rb") as f:
        lab.configure(f.read())
    lab.shell("true").ok()


@test(60, needs="bus")
def call_of_the_contract(lab):
    """The one-liners: ListAllowIp by any user, and each verb of the command's help."""
    for user in (ALICE, ROOT):
        lab.run(["/usr/bin/busctl", "call", "org.claudesandbox1", "/org/claudesandbox1", "org.claudesandbox1.Manager",
                 "ListAllowIp"], user).ok()
    result = lab.run([SANDBOX, "help"]).ok()
    for verb in ("shell", "sessions", "show", "exposure", "routes", "ports", "why", "stop", "allow-ip", "policy", "install", "version"):
        holds(verb.encode() in result.out, verb)
        lab.run([SANDBOX, "help", verb]).ok()


@test(60, needs="bus")
def lines_for_the_shell(lab):
    """Each block of org.claudesandbox1(5) runs as it stands, and no member is missing; by root, whom nobody asks."""
    import re
    import xml.etree.ElementTree as ElementTree
    from bus_cases import Held, INTERFACES
    if not os.path.isdir(machine.SOURCE):
        raise Skip("no copy of the tree")
    lab.configure("no-forge\n")
    with open(f"{machine.SOURCE}/docs/man/org.claudesandbox1.tail.scd", encoding="utf-8") as f:
        text = f.read().split("# EXAMPLES")[1].split("# FILES")[0]
    blocks = [block.replace("\\\\\n", "\\\n") for block in re.findall(r"```\n(.*?)```", text, flags=re.S)]
    holds(len(blocks) >= 5, f"{len(blocks)} blocks")
    with Held(lab, ALICE) as held:
        for block in blocks:
            result = lab.run(["/bin/bash", "-e", "-o", "pipefail", "-c", re.sub(r"\bID\b", held.id, block)], ROOT)
            holds(result.status == 0 and result.out and not result.err, f"{block}\n{result!r}")
        holds(held.process.wait(10) != 3, "it was stopped")
    later = {"Launch"}
    members = {method.get("name") for method in ElementTree.parse(INTERFACES).getroot().iter("method")}
    equal(sorted(name for name in members - later if not re.search(rf"\b{name}\b", text)), [], "members without a line")


@test(needs="bus")
def manual_pages(lab):
    """Installed, and man(1) has nothing to complain about."""
    pages = {"claude.1", "claude-sandbox.1", "claude-sandbox.conf.5", "org.claudesandbox1.5", "claude-sandboxd.8"}
    found = {name for _, _, names in os.walk("/usr/share/man") for name in names}
    equal(sorted(pages - found), [])
    if not os.path.exists("/usr/bin/groff"):
        return
    for page in pages:
        path = f"/usr/share/man/man{page[-1]}/{page}"
        done = subprocess.run(["/usr/bin/groff", "-man", "-Tutf8", "-ww", "-z", path], capture_output=True, check=False)
        holds(b"error" not in done.stderr, f"{page}: {done.stderr!r}")


@test(needs="bus")
def links_of_the_documents(lab):
    """A document names no file of the tree that is not there."""
    import re
    if not os.path.isdir(machine.SOURCE):
        raise Skip("no copy of the tree")
    for name in ("README.md", "docs/security.md", "docs/architecture.md", "docs/hacking.md", "docs/messages.md", "docs/faults.md"):
        with open(f"{machine.SOURCE}/{name}", encoding="utf-8") as f:
            for link in re.findall(r"\]\(([^)#:]+)\)", f.read()):
                path = os.path.join(machine.SOURCE, os.path.dirname(name), link)
                holds(os.path.exists(path), f"{name} names {link}")
