#!/usr/bin/env python3
"""The memory a plan states: arenas at most 1.05 x the largest sum of live bytes, and every plan passes the judge.

Each tiny export on one rank, and the ones with a symbolic batch on two ranks at stages 0 to 3 with two micro-steps.
"""
import json

from harness import TINY, Suite, expect

suite = Suite(__doc__)


def tight(model, *flags):
    suite.zeroc(model, "x.plan", *flags)
    facts = json.loads(suite.run([suite.bin / "zero-inspect", "x.plan", "--json"]).stdout)
    worst = 0.0
    for name, program in facts["memory"]["programs"].items():
        ratio = program["arena_bytes"] / program["live_bytes"]
        expect(ratio <= 1.05, f"@{name} needs {program['arena_bytes']:,} bytes for {program['live_bytes']:,} live ones")
        worst = max(worst, ratio)
    memory = facts["memory"]
    expect(memory["total_bytes"] == memory["state_bytes"] + memory["work_bytes"], "the parts do not add up")
    suite.run([suite.bin / "zero-inspect", "x.plan", "--check"])
    return f"{memory['total_bytes']:,} bytes, arenas {worst:.4f} x live"


suite.start()
for path in sorted(TINY.glob("*/reference.json")):
    for export in json.loads(path.read_text())["exports"]:
        model, name = path.parent / export["file"], f"{path.parent.name}/{export['file']}"
        loss = ["--loss", export["loss"]]
        if isinstance(export["inputs"][0]["shape"][0], str):
            bind = ["--bind", "batch=2,seq=64"]
            suite.check(f"memory: {name}", tight, model, *loss, *bind)
            for stage in range(4):
                suite.check(f"memory: {name}, 2 ranks, stage {stage}, 2 micro-steps", tight, model, *loss, *bind, "--world", 2, "--stage", stage, "--accumulate", 2)
        else:
            suite.check(f"memory: {name}", tight, model, *loss)
suite.finish()
