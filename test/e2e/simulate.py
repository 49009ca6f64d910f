#!/usr/bin/env python3
"""zerorun --simulate: steps of all ranks on machines that are described. Equal ranks take what zero-inspect estimates of one; a slow one is named; results are as
a run's; a plan that does not fit a rank is refused. A plan without machine code will do."""
import json
import re

from harness import Suite, expect

suite = Suite(__doc__)
MODEL = ["--layers", "3", "--hidden", "64", "--heads", "4", "--vocab", "96", "--seq", "16", "--batch", "2"]
FLAGS = ["--target", "sim", "--world", "6", "--stage", "3"]
STEPS = 8


def simulated(plan, machine, *flags, steps=STEPS):
    (suite.work / "machine.json").write_text(json.dumps(machine))
    text = suite.run([suite.bin / "zerorun", plan, "--simulate", "machine.json", "--steps", steps, "--metrics", "m.jsonl", *flags]).stdout
    return text, [json.loads(line) for line in (suite.work / "m.jsonl").read_text().splitlines()]


def estimated(plan, clips):
    """Seconds of a step, as zero-inspect has them for machine.json."""
    text = suite.run([suite.bin / "zero-inspect", plan, "--time", "--machine", "machine.json"]).stdout
    return float(re.search(r"from step to step +(.*)", text)[1].split()[clips])


def prepare():
    suite.gpt("model.onnx", *MODEL)
    suite.zeroc("model.onnx", "plain.plan", *FLAGS, "-q")
    suite.zeroc("model.onnx", "disk.plan", *FLAGS, "-q", "--offload-optimizer", "disk", "--offload-params", "disk", "--precision", "bf16")
    suite.zeroc("model.onnx", "micro.plan", *FLAGS, "-q", "--accumulate", "4", "--offload-optimizer", "host")
    suite.zeroc("model.onnx", "scaled.plan", *FLAGS, "-q", "--precision", "f16")


def equal_ranks():
    """As one rank alone, whatever is clipped, accumulated or offloaded, and on how many nodes."""
    for plan in ("plain.plan", "disk.plan", "micro.plan", "scaled.plan"):
        for clips in (False, True):
            for nodes in ({}, {"ranks_per_node": 4, "network": 3e8}):
                _, steps = simulated(plan, nodes, *(["--clip", "1"] if clips else []), steps=4)
                wanted = estimated(plan, clips)
                expect(len(steps) == 4 and all(s["simulated"] for s in steps), f"{len(steps)} steps of {plan}")
                found = (steps[-3]["seconds"] + steps[-2]["seconds"]) / 2  # as the estimate
                expect(abs(found / wanted - 1) < 1e-3, f"{plan}, clipped {clips}, {nodes}: {found} s, estimated {wanted}")
                micro = 4 if plan == "micro.plan" else 1
                expect(abs(steps[-1]["tokens_per_s"] * steps[-1]["seconds"] / (6 * micro * 2 * 16) - 1) < 1e-3, f"not the tokens of a step: {steps[-1]}")


def slow_rank():
    """It is waited for, and said so; the step is as long as its own work at least."""
    text, equal = simulated("plain.plan", {})
    expect("others wait" not in text, text)
    seconds = [s["seconds"] for s in equal]
    expect(len(seconds) == STEPS and seconds[4] == seconds[5] == seconds[6] >= seconds[7], f"all but the first steps and the last are not the same: {seconds}")
    text, steps = simulated("plain.plan", {"ranks": {"4": {"products_f32": 1e9, "memory": 1e9}}})
    expect("the others wait for rank 4, which itself waits for nobody; a lane of rank 0 waits " in text, text)
    expect(steps[-1]["seconds"] > 1.5 * equal[-1]["seconds"], f"{steps[-1]} beside {equal[-1]}")
    _, slow = simulated("plain.plan", {"products_f32": 1e9, "memory": 1e9})
    expect(equal[-1]["seconds"] < steps[-1]["seconds"] <= slow[-1]["seconds"] * 1.0001, f"{steps[-1]} beside {slow[-1]} of all as slow")


def variation():
    _, first = simulated("plain.plan", {"variation": 0.2})
    _, again = simulated("plain.plan", {"variation": 0.2})
    _, other = simulated("plain.plan", {"variation": 0.2}, "--seed", "1")
    expect(first == again and first != other, "the seed does not decide what varies")
    expect(len({s["seconds"] for s in first}) == STEPS, f"steps do not vary: {first}")


def trace():
    """Of rank 0 and the described ones, in the form that zero-inspect --measured reads."""
    simulated("plain.plan", {"ranks": {"4": {"memory": 1e9}}}, "--trace", "t.json", steps=3)
    events = json.loads((suite.work / "t.json").read_text())
    expect({e["pid"] for e in events} == {0, 4}, "not ranks 0 and 4")
    numbers = json.loads(suite.run([suite.bin / "zero-inspect", "plain.plan", "--json"]).stdout)
    for rank in (0, 4):
        spans = sum(e["ph"] == "X" and e["pid"] == rank for e in events)
        expect(spans == 3 * sum(lane["steps"] for lane in numbers["lanes"].values()), f"{spans} steps of rank {rank}, for lanes {numbers['lanes']}")
    (suite.work / "machine.json").write_text('{"memory": 5e9, "products_f32": 3e10}')
    suite.run([suite.bin / "zerorun", "plain.plan", "--simulate", "machine.json", "--steps", 3, "--trace", "t.json"])
    measured = json.loads(suite.run([suite.bin / "zero-inspect", "plain.plan", "--measured", "t.json"]).stdout)
    expect(0.3 < measured["memory"] / 5e9 <= 1.01, f"{measured}: a step takes 2 us beside its work")


def too_small():
    (suite.work / "small.json").write_text('{"device_bytes": 100000}')
    result = suite.run([suite.bin / "zerorun", "plain.plan", "--simulate", "small.json"], check=False)
    expect(result.returncode == 1 and re.fullmatch(r"zerorun: a rank takes [\d ]+ bytes of device memory, where the machine's description has 100 000: "
                                                    r"compile the plan with --device-memory 100000\n", result.stderr), result.stderr)


suite.start()
prepare()
for case in (equal_ranks, slow_rank, variation, trace, too_small):
    suite.check("simulate: " + case.__name__.replace("_", " "), case)
suite.finish()
