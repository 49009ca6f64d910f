#!/usr/bin/env python3
"""Turn plan.proto and the container's header comment into one page: comments become prose, declarations stay code.
usage: proto_page.py plan.proto container.h example.textproto OUT.md"""
import re, sys

proto, container, example, out = sys.argv[1:]


def prose(lines):
    return "\n".join(re.sub(r"^\s*//\s?", "", line) for line in lines)


page = ["# The plan format", "", "## The file", "", "```", prose(l for l in open(container).read().split("#pragma")[0].splitlines()), "```", "", "## The plan", ""]
comment, code = [], []


def flush():
    if code:
        page.extend(["```proto", *code, "```", ""])
        code.clear()


depth = 0
for line in open(proto).read().splitlines():
    if depth == 0 and line.startswith("//"):
        flush()
        if line.startswith("// ---"):
            page.extend(["## " + line.strip("/- ").capitalize(), ""])
        else:
            comment.append(line)
        continue
    if comment and (depth == 0):
        page.extend([prose(comment), ""])
        comment.clear()
    if depth == 0 and (not line.strip() or line.startswith(("syntax", "package", "option"))):
        continue
    opened = re.match(r"\s*(message|enum) (\w+)", line)
    if opened and depth == 0:
        flush()
        page.extend([f"### {opened.group(2)}", ""])
    code.append(line)
    depth += line.split("//")[0].count("{") - line.split("//")[0].count("}")
flush()
page.extend(["## An example", "", "A plan in protobuf's text form; `test/plan_file.py` makes a file of it that zero-inspect reads.", "",
             "```proto", open(example).read().rstrip(), "```", ""])
open(out, "w").write("\n".join(page) + "\n")
