#!/usr/bin/env python3
"""Optimizer state that rests on the host or on disk is updated by the host's processors in plans for cuda, on the stand-ins for NVIDIA's libraries: losses,
norms, gradients and weights have the bits of the plan that keeps everything on the device, whose updates are the device's."""
import json

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import Suite, expect

STEPS = 3  # the third is the first to run as graphs; emulated threads are slow
suite = Suite(__doc__)


def results(model, flags, run, world):
    """What a run leaves, and the plan as JSON."""
    flags = ["--target", "cuda", "--world", world, *flags]
    suite.zeroc(model, "plan.bin", *flags)
    suite.zerorun("plan.bin", "--data", "data.safetensors", "--steps", STEPS, "--lr", 1e-2, "--metrics", "metrics.jsonl", "--export", "weights.safetensors",
                  "--gradients", "gradients.safetensors", *run, world=world, env=suite.without_gpu("plan.bin", model, *flags))
    rows = [json.loads(line) for line in (suite.work / "metrics.jsonl").read_text().splitlines()]
    found = {f"{key} of step {i}": row[key] for i, row in enumerate(rows) for key in ("loss", "grad_norm") if key in row}
    for file in ("weights", "gradients"):
        found |= {f"{name} of the {file}": w.tobytes() for name, w in load_file(suite.work / f"{file}.safetensors").items()}
    return found


def lanes():
    """What each lane does in a step of the plan."""
    text = suite.run([suite.bin / "zero-inspect", "plan.bin", "--json"]).stdout
    return json.loads(text)["lanes"]


resident = {}  # what runs leave that keep everything on the device, by model and flags


def agree(model, base, placement, run=(), world=1, on_host=True):
    have = results(model, [*base, *placement], [*run, *(DISK if "disk" in placement else ())], world)
    made = lanes().get("update_host", {"steps": 0})["steps"]
    expect(bool(made) == on_host, f"lane update_host has {made} steps")
    key = (model, *base, *(flag for flag in run if flag not in DISK), world)
    if key not in resident:
        resident[key] = results(model, base, run, world)
        expect("update_host" not in lanes(), "the host makes updates of what rests on the device")
    want = resident[key]
    expect(have.keys() == want.keys(), f"{have.keys() ^ want.keys()} are there in one run alone")
    for name, value in want.items():
        shown = f": {have[name]}, not {value}" if isinstance(value, float) else ""
        expect(have[name] == value, f"{name} has other bits than with everything on the device{shown}")
    return f"{made} steps of the host, {len(want)} results"


def sums_rest():
    """However many micro-steps there are, nothing goes up but the sum, for the last one, and what updates have made; each gradient comes down once, and the sum."""
    up, down = [], []
    for micro in (2, 5):
        suite.zeroc(model, "plan.bin", "--target", "cuda", *HOST, "--accumulate", micro)
        moved = lanes()
        up.append(moved["to_device"]["bytes_touched"])
        down.append(moved["to_host"]["bytes_touched"])
    expect(up[0] == up[1], f"with 5 micro-steps {up[1]} bytes are touched to go up, with 2 {up[0]}")
    expect(down[1] < 2.51 * down[0], f"with 5 micro-steps {down[1]} bytes are touched to come down, with 2 {down[0]}")
    return f"{up[0]} bytes read and written to go up"


def resumed():
    """The copy that programs read on the device is made again from the master."""
    flags = ["--target", "cuda", *BUCKETS, *HOST]
    suite.zeroc(model, "plan.bin", *flags)
    env = suite.without_gpu("plan.bin", model, *flags)
    run = lambda steps, *more: suite.zerorun("plan.bin", "--data", "data.safetensors", "--steps", steps, "--lr", 1e-2, *more, env=env)
    run(STEPS, "--export", "whole.safetensors")
    run(1, "--checkpoint", "folder")
    run(STEPS, "--resume", "folder", "--export", "resumed.safetensors")
    whole, again = load_file(suite.work / "whole.safetensors"), load_file(suite.work / "resumed.safetensors")
    expect(all(whole[name].tobytes() == again[name].tobytes() for name in whole), "a resumed run ends with other weights")


suite.start()
model = suite.gpt("small.onnx", "--layers", "2", "--hidden", "32", "--heads", "2", "--vocab", "96", "--seq", "8", "--batch", "1")
tokens = np.random.default_rng(3).integers(0, 96, (24, 9))
save_file({"input_ids": np.ascontiguousarray(tokens[:, :8]), "labels": np.ascontiguousarray(tokens[:, 1:])}, suite.work / "data.safetensors")
HOST, PARAMS = ("--offload-optimizer", "host"), ("--offload-optimizer", "host", "--offload-params", "host")
CLIP, DISK = ("--clip", 0.5), ("--disk-path", ".")
OPTIMIZER, ALL = ("--offload-optimizer", "disk"), ("--offload-optimizer", "disk", "--offload-params", "disk")
COPIES = ("--offload-optimizer", "disk", "--offload-params", "host")
GROUPS = ("--no-decay", "bias", "--lr-scale", "wte=0.5")
BUDGET = ("--device-memory", 300_000, "--host-memory", "4M") # some buckets are updated on the device
BUCKETS, BF16 = ["--bucket-elements", 8192], ["--precision", "bf16"]
for name, base, placement, run, world in [
    ("AdamW", BUCKETS, HOST, [], 1),
    ("AdamW, with parameters on the host", BUCKETS, PARAMS, [], 1),
    ("SGD, clipped", [*BUCKETS, "--optimizer", "sgd"], HOST, CLIP, 1),
    ("groups of parameters, clipped", BUCKETS, HOST, [*GROUPS, *CLIP], 1),
    ("bf16", [*BUCKETS, *BF16], HOST, [], 1),
    ("f16, with parameters on the host", [*BUCKETS, "--precision", "f16"], PARAMS, [], 1),
    ("accumulation", ["--accumulate", 3], HOST, [], 1),
    ("accumulation, bf16, clipped, with parameters on the host", ["--accumulate", 4, *BF16], PARAMS, CLIP, 1),
    ("accumulation on 2 ranks, stage 0", [*BUCKETS, "--accumulate", 3, "--stage", 0], HOST, [], 2),
    ("accumulation on 2 ranks, stage 2, bf16, clipped", ["--accumulate", 3, "--stage", 2, *BF16], HOST, CLIP, 2),
    ("accumulation in vertical order, bf16, clipped", ["--accumulate", 2, "--accumulate-order", "vertical", *BF16], HOST, CLIP, 1),
    ("2 ranks, stage 0", [*BUCKETS, "--stage", 0], HOST, [], 2),
    ("2 ranks, stage 1, bf16, clipped, with parameters on the host", ["--stage", 1, *BF16], PARAMS, CLIP, 2),
    ("2 ranks, stage 2", [*BUCKETS, "--stage", 2], HOST, [], 2),
    ("2 ranks, stage 2, with parameters on the host", [*BUCKETS, "--stage", 2], PARAMS, [], 2),
    ("2 ranks, stage 3, bf16", ["--stage", 3, *BF16], HOST, [], 2),
]:
    suite.check(f"host updates: {name}", agree, model, base, placement, run, world)
suite.check("host updates: sums of gradients go up once", sums_rest)
suite.check("host updates: of what a budget leaves no room for", agree, model, BUCKETS, BUDGET)
suite.check("host updates: of what a budget puts on disk", agree, model, BUCKETS, ("--device-memory", 300_000, "--host-memory", 300_000), DISK)
suite.check("host updates: none without room for them on the host", agree, model, BUCKETS, ("--device-memory", 340_000, "--host-memory", 60_000), DISK, on_host=False)
suite.check("host updates: none on disk where a budget names no host memory", agree, model, BUCKETS, ("--device-memory", 340_000), DISK, on_host=False)
suite.check("host updates: a resumed run", resumed)
for name, base, placement, run, world in [
    ("AdamW", BUCKETS, OPTIMIZER, [], 1),
    ("AdamW, with parameters on disk", BUCKETS, ALL, [], 1),
    ("SGD, clipped, with parameters on the host", [*BUCKETS, "--optimizer", "sgd"], COPIES, CLIP, 1),
    ("groups of parameters, clipped, with parameters on disk", BUCKETS, ALL, [*GROUPS, *CLIP], 1),
    ("bf16", [*BUCKETS, *BF16], OPTIMIZER, [], 1),
    ("bf16, with parameters on disk", [*BUCKETS, *BF16], ALL, [], 1),
    ("moments on the host, parameters on disk", BUCKETS, ("--offload-optimizer", "host", "--offload-params", "disk"), [], 1),
    ("f16, with parameters on the host", [*BUCKETS, "--precision", "f16"], COPIES, [], 1),
    ("accumulation", ["--accumulate", 3], OPTIMIZER, [], 1),
    ("accumulation in vertical order, bf16, clipped", ["--accumulate", 2, "--accumulate-order", "vertical", *BF16], ALL, CLIP, 1),
    ("gradients that wait on disk", BUCKETS, (*ALL, "--offload-activations", "disk"), CLIP, 1),
    ("2 ranks, stage 0, with parameters on disk", [*BUCKETS, "--stage", 0], ALL, [], 2),
    ("2 ranks, stage 1", [*BUCKETS, "--stage", 1], OPTIMIZER, [], 2),
    ("2 ranks, stage 1, bf16, clipped, with parameters on disk", ["--stage", 1, *BF16], ALL, CLIP, 2),
    ("2 ranks, stage 2, with parameters on disk", [*BUCKETS, "--stage", 2], ALL, [], 2),
    ("2 ranks, stage 2, bf16, with parameters on the host", [*BUCKETS, "--stage", 2, *BF16], COPIES, [], 2),
    ("2 ranks, stage 3, f32", [*BUCKETS, "--stage", 3], OPTIMIZER, [], 2),
    ("2 ranks, stage 3, bf16, clipped, with parameters on disk", ["--stage", 3, *BF16], ALL, CLIP, 2),
]:
    suite.check(f"host updates of state on disk: {name}", agree, model, base, placement, run, world)
wide = suite.gpt("wide.onnx", "--layers", "1", "--hidden", "128", "--heads", "4", "--vocab", "17500", "--seq", "8", "--batch", "1")
for placement, base, run in [(HOST, BF16, []), (OPTIMIZER, [], []), (ALL, BF16, CLIP)]:
    suite.check(f"host updates in slices: {' '.join(map(str, (*base, *placement, *run)))}", agree, wide, base, placement, run)
suite.finish()
