"""zero-inspect --json of a small plan holds what its pages say, and docs/inspect.md names every key of the outermost object."""
import json
import sys

facts = json.load(open(sys.argv[1]))
page = open(sys.argv[2]).read()
missing = [key for key in facts if f"`{key}`" not in page]
assert not missing, f"{sys.argv[2]} does not speak of {missing}"

memory, programs = facts["memory"], {p["name"]: p for p in facts["programs"]}
assert memory["total_bytes"] == memory["state_bytes"] + memory["work_bytes"]
assert set(memory["programs"]) == set(programs) == {"step", "step_clip", "eval"}
for name, program in programs.items():
    live = memory["programs"][name]
    assert program["steps"] == len(program["schedule"])
    layers = program["peak"]["layers"]
    assert sum(sum(kinds.values()) for kinds in layers.values()) == live["live_bytes"] == sum(live["at_peak"].values())
    assert "transformer.h.0" in layers, layers
    assert sum("lane" in step and "waits" in step for step in program["schedule"]) == program["steps"]

step = programs["step"]["schedule"]
lanes = facts["lanes"]
for lane, work in lanes.items():
    steps = [s for s in step if s["lane"] == lane]
    assert len(steps) == work["steps"]
    for key in ("flops", "bytes_sent", "bytes_touched"):
        assert sum(s[key] for s in steps) == work[key], (lane, key)
assert sum(work["bytes_sent"] for work in lanes.values()) == facts["communication"]["bytes_sent"] > 0

trained = {p["name"]: p["trainable"] for p in facts["parameters"]}
assert not trained["transformer.wpe.weight"] and trained["transformer.wte.weight"]
# Six products of 16 tokens forward: qkv, projection, two of the MLP, the head; backward twice as many.
assert lanes["compute"]["flops"] > 3 * 2 * 16 * (16 * 48 + 16 * 16 + 2 * 16 * 64 + 16 * 32)
