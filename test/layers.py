#!/usr/bin/env python3
"""Whether sources include only what lies below them.

usage: layers.py [ROOT]

compiler, passes and runtime are folders of rooms, and so is tools. A room includes rooms of its own folder that the folder's CMakeLists.txt
lists before it, files beside the rooms, and of other folders what BELOW says. Prints how many includes there are, and fails with the place of each that goes another way."""
import pathlib, re, sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1]

BELOW = {
    "runtime": [],
    "compiler": ["runtime/base", "runtime/plan"],
    "passes": ["compiler", "runtime/base", "runtime/plan"],
    "passes/pipeline": ["runtime/inspect", "runtime/judge", "runtime/process", "runtime/simulate"],
    "tools": ["compiler", "passes", "runtime"],  # each tool for itself
}


def rooms(top):
    """In the order in which they are built; of the runtime the lowest is headers alone."""
    listed = re.search(r"foreach\(room ([^)]*)\)", (ROOT / top / "CMakeLists.txt").read_text())
    return ["base"] * (top == "runtime") + listed[1].split()


ORDER = {top: rooms(top) for top in ("compiler", "passes", "runtime")}


def may(top, room, included):
    to, inside = included.split("/")[:2]
    if to == top:
        order = ORDER.get(top, [])
        return inside == room or included.count("/") == 1 or (inside in order and room in order and order.index(inside) < order.index(room))
    return any(included.startswith(below + "/") for below in BELOW[top] + BELOW.get(f"{top}/{room}", []))


includes, wrong = 0, []
for top in ("compiler", "passes", "runtime", "tools"):
    for path in sorted(p for p in (ROOT / top).rglob("*") if p.suffix in (".cpp", ".h")):
        room = path.relative_to(ROOT).parts[1]
        for n, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'#include "((?:compiler|passes|runtime|tools|test)/.*)"', line)
            includes += bool(found)
            if found and not may(top, room, found[1]):
                wrong.append(f"{path.relative_to(ROOT)}:{n} includes {found[1]}, which does not lie below it")
print(f"{includes} includes")
for line in wrong:
    print("FAILED", line)
print("ok" if includes and not wrong else "FAILED")
sys.exit(bool(wrong) or not includes)
