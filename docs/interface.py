#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The reference of the bus interface, from its introspection XML.

    interface.py markdown XML > dbus.md
    interface.py scdoc XML HEAD TAIL > org.claudesandbox1.5.scd

A comment before a member or before the node is what the reference says of it. The first comment of the file is the
licence. For scdoc the hand-written HEAD and TAIL stand around the members.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree


def sentence(comment):
    return re.sub(r"\s+", " ", comment).strip()


def paragraphs(comment):
    return [sentence(part) for part in re.split(r"\n\s*\n", comment) if part.strip()]


def parse(path):
    """Return (paragraphs of the whole, [(interface, [(member, text)])])."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    with open(path, encoding="utf-8") as file:
        source = file.read()
    before = source[: source.index("<node")]
    whole = [c for c in re.findall(r"<!--(.*?)-->", before, re.S) if "SPDX-License-Identifier" not in c]
    root = ElementTree.fromstring(source, parser=parser)

    interfaces = []
    for interface in root.findall("interface"):
        members, text = [], ""
        for element in interface:
            if element.tag is ElementTree.Comment:
                text = sentence(element.text)
            elif element.tag in ("method", "signal", "property"):
                members.append((element, text))
                text = ""
        interfaces.append((interface.get("name"), members))
    return [p for c in whole for p in paragraphs(c)], interfaces


def arguments(member, direction):
    return ", ".join(
        f"{a.get('type')} {a.get('name')}" for a in member.findall("arg") if a.get("direction", "out") == direction
    )


def signature(member):
    name = member.get("name")
    if member.tag == "property":
        return f"{name} {member.get('type')}"
    if member.tag == "signal":
        return f"{name}({arguments(member, 'out')})"
    result = arguments(member, "out")
    return f"{name}({arguments(member, 'in')})" + (f" → {result}" if result else "")


KINDS = (("method", "Methods"), ("property", "Properties"), ("signal", "Signals"))


def changes(member):
    """What a property says about its changes."""
    for annotation in member.findall("annotation"):
        if annotation.get("name") == "org.freedesktop.DBus.Property.EmitsChangedSignal":
            return {"const": "It never changes.", "false": "Its changes are not signalled."}.get(
                annotation.get("value"), ""
            )
    return ""


def member_text(member, text):
    return " ".join(part for part in (text, changes(member) if member.tag == "property" else "") if part)


def markdown(path):
    whole, interfaces = parse(path)
    print("# The interface org.claudesandbox1\n")
    for paragraph in whole:
        print(f"{paragraph}\n")
    for name, members in interfaces:
        print(f"## {name}\n")
        for tag, title in KINDS:
            print(f"### {title}\n")
            for member, text in members:
                if member.tag == tag:
                    print(f"    {signature(member)}\n")
                    if member_text(member, text):
                        print(f"{member_text(member, text)}\n")


def escape(text):
    """What scdoc(5) would take for formatting, and what it reads only at the start of a line."""
    text = re.sub(r"([*_\\])", r"\\\1", text)
    return re.sub(r"^([#|.;\-])", r"\\\1", text)


def scdoc(path, head, tail):
    _, interfaces = parse(path)
    with open(head, encoding="utf-8") as file:
        print(file.read())
    for name, members in interfaces:
        print(f"# {name.upper()}\n")
        for tag, title in KINDS:
            print(f"## {title}\n")
            for member, text in members:
                if member.tag == tag:
                    print(f"*{member.get('name')}*{escape(signature(member)[len(member.get('name')):])}")
                    print(f"\t{escape(member_text(member, text))}\n" if member_text(member, text) else "")
    with open(tail, encoding="utf-8") as file:
        print(file.read(), end="")


def main():
    sys.stdout.reconfigure(encoding="utf-8")
    if len(sys.argv) == 3 and sys.argv[1] == "markdown":
        markdown(sys.argv[2])
    elif len(sys.argv) == 5 and sys.argv[1] == "scdoc":
        scdoc(*sys.argv[2:])
    else:
        sys.exit("usage: interface.py markdown XML | scdoc XML HEAD TAIL")


if __name__ == "__main__":
    main()
