#!/usr/bin/env python3
"""Where state rests, and where activations wait, changes nothing but memory and time.

gpt2 and llama of models/tiny and a GPT whose embedding is updated in slices, with parameters, optimizer state and activations on the
device, on host and on disk in every combination, at every stage, on 1 and 2 ranks, with and without accumulation and clipping: the parameters after some steps
are bitwise those of the resident run. Checkpoints go from one placement to another, also with another number of ranks. What zerorun says
of bytes written to disk is what the plan says.
"""
import itertools
import json

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import TINY, Suite, expect

MODELS = {"gpt2": "dynamo_sdpa_dyn.onnx", "llama": "ts17_eager_dyn.onnx"}
RESIDENT = ("none", "none", "none")
HOMES = [homes for homes in itertools.product(("none", "host", "disk"), repeat=3) if homes != RESIDENT]
STEPS = 6
suite = Suite(__doc__)
resident = {}  # what the run without offloading exported


def compiled(name, model, flags, homes):
    suite.zeroc(model, name, *flags, "--offload-params", homes[0], "--offload-optimizer", homes[1], "--offload-activations", homes[2], "--quiet")
    return [] if "disk" not in homes else ["--disk-path", suite.work / "disk"]


def trained(model, data, world, flags, homes, run_flags):
    where = compiled("one.plan", model, flags, homes)
    suite.zerorun("one.plan", "--data", data, "--steps", STEPS, "--lr", "1e-3", "--seed", 3, "--threads", 1, "--export", "one.safetensors",
                  "--gradients", "gradients.safetensors", "--metrics", "one.jsonl", *where, *run_flags, world=world)
    steps = [json.loads(line) for line in (suite.work / "one.jsonl").read_text().splitlines()]
    return [load_file(suite.work / name) for name in ("one.safetensors", "gradients.safetensors")], [step["loss"] for step in steps if "loss" in step]


def same(name, model, data, world, stage, accumulate, clip, homes):
    """The bits of the resident run with the same ranks, stage and micro-steps."""
    flags = [*model[1:], "--world", world, "--stage", stage, "--accumulate", accumulate]
    run_flags = ["--clip", 0.7] if clip else []
    key = (name, world, stage, accumulate, clip)
    if key not in resident:
        resident[key] = trained(model[0], data, world, flags, RESIDENT, run_flags)
    files, losses = trained(model[0], data, world, flags, homes, run_flags)
    expect(len(losses) == STEPS and losses == resident[key][1], f"losses {losses}, resident {resident[key][1]}")
    for found, wanted, what in zip(files, resident[key][0], ("parameters", "gradients")):
        expect(set(found) == set(wanted), f"other {what} were written")
        different = [n for n in wanted if wanted[n].tobytes() != found[n].tobytes()]
        expect(not different, f"{len(different)} of {len(wanted)} {what} differ from the resident run, such as {min(different, default='')}")
    return f"{len(files[0])} parameters"


def resumed(*legs):
    """Two steps in each placement, with so many ranks: what one leaves is to the bit what the next one finds, and all of it is a run without a break."""
    flags = lambda world: ["--bind", f"batch=1,seq={seqs['gpt2']}", "--world", world, "--stage", 3, "--accumulate", 4 // world]
    model, last, losses = TINY / "gpt2" / MODELS["gpt2"], 2 * len(legs), []
    run = lambda plan, steps, export, world, *more: suite.zerorun(plan, "--data", "gpt2.safetensors", "--steps", steps, "--lr", "1e-3", "--threads", 1, "--export",
                                                                  export, *more, world=world)
    differing = lambda one, two: [n for n in two if one[n].tobytes() != two[n].tobytes()]
    for leg, (homes, world) in enumerate(legs):
        where = compiled("resumed.plan", model, flags(world), homes)
        if leg > 0:
            left = load_file(suite.work / "resumed.safetensors")
            run("resumed.plan", 2 * leg, "found.safetensors", world, "--resume", "kept", *where)
            wrong = differing(load_file(suite.work / "found.safetensors"), left)
            expect(not wrong, f"{len(wrong)} parameters are not what leg {leg} left, such as {min(wrong, default='')}")
        run("resumed.plan", 2 * (leg + 1), "resumed.safetensors", world, "--checkpoint", "kept", "--resume", "kept", "--metrics", "resumed.jsonl", *where)
        losses += suite.losses("resumed.jsonl")[-2:]
    compiled("whole.plan", model, flags(legs[0][1]), RESIDENT)
    run("whole.plan", last, "whole.safetensors", legs[0][1], "--metrics", "whole.jsonl")
    suite.run(["rm", "-r", "kept"])
    whole = suite.losses("whole.jsonl")
    if len({world for _, world in legs}) == 1:
        expect(losses == whole, f"losses {losses}, without a break {whole}")
        expect(not differing(*(load_file(suite.work / name) for name in ("resumed.safetensors", "whole.safetensors"))), "other parameters than without a break")
        return "same bits"
    far = max(abs(x - y) / abs(y) for x, y in zip(losses, whole))
    expect(far <= 1e-4, f"a loss is off by {far:.1e}")
    return f"losses within {far:.0e}"


def runs_on(homes, *flags):
    """The trace: lanes work for two programs at once where one follows the other."""
    steps = 8
    where = compiled("on.plan", suite.work / "wide.onnx", flags, homes)
    suite.zerorun("on.plan", "--data", "wide.safetensors", "--steps", steps, "--lr", "1e-3", "--threads", 1, "--trace", "on.json", *where)
    spans = [event for event in json.loads((suite.work / "on.json").read_text()) if event["ph"] == "X"]
    lanes = {}
    for span in spans:
        lanes.setdefault(span["tid"], []).append(span)
    over = 0
    for step in range(1, steps):
        share = lambda lane, k: lane[len(lane) * k // steps:len(lane) * (k + 1) // steps]
        begins = min(share(lane, step)[0]["ts"] for lane in lanes.values())
        over += begins < max(share(lane, step - 1)[-1]["ts"] + share(lane, step - 1)[-1]["dur"] for lane in lanes.values())
    expect(over > steps // 2, f"lanes ran on after {over} of {steps - 1} steps")
    return f"after {over} of {steps - 1} steps"


suite.parser.add_argument("--long", action="store_true", help="each combination twice for gpt2 and once for llama: each stage with each kind of micro-steps")
args = suite.start()
seqs = {model: suite.tiny_data(model) for model in MODELS}
PLACES = ((1, 0), (2, 0), (2, 1), (2, 2), (2, 3))  # ranks and stage
MICRO = ((1, False), (3, False), (1, True), (2, True))  # micro-steps, and whether gradients are clipped


def told(homes, world, stage, accumulate, clip):
    return (f"parameters {homes[0]}, optimizer {homes[1]}, activations {homes[2]}, {world} ranks, stage {stage}, {accumulate} micro-steps"
            f"{', clipped' if clip else ''}")


for m, model in enumerate(MODELS):
    onnx = [TINY / model / MODELS[model], "--bind", f"batch=1,seq={seqs[model]}"]
    for i, homes in enumerate(HOMES):  # each combination for gpt2, a third of them for llama; with --long twice and once
        for k in range(2 - m if args.long else 1 if m == 0 or i % 3 == 0 else 0):
            world, stage = PLACES[(i + 2 * k + m) % 5]
            accumulate, clip = MICRO[(i // 5 + k + m) % 4]
            suite.check(f"offload: {model}: {told(homes, world, stage, accumulate, clip)}", same, model, onnx, f"{model}.safetensors", world, stage,
                        accumulate, clip, homes)
suite.gpt("wide.onnx", "--layers", "1", "--hidden", "128", "--heads", "4", "--vocab", "17500", "--seq", "8", "--batch", "1")
rng = np.random.default_rng(5)
tokens = rng.integers(0, 17500, size=(12, 8)).astype(np.int64)
save_file({"input_ids": tokens, "labels": tokens}, suite.work / "wide.safetensors")
SLICED = ((2, 2, 1, False), (2, 1, 1, True), (1, 0, 1, False), (2, 3, 2, True), (2, 0, 1, False), (1, 0, 2, True))
for homes, (world, stage, accumulate, clip) in zip(HOMES[2::3], itertools.cycle(SLICED)):
    suite.check(f"offload: in slices: {told(homes, world, stage, accumulate, clip)}", same, "wide", [suite.work / "wide.onnx"],
                "wide.safetensors", world, stage, accumulate, clip, homes)
for homes, clip in ((("none", "disk", "none"), False), (("none", "host", "none"), True)):
    suite.check(f"offload: in slices, bf16: {told(homes, 2, 2, 1, clip)}", same, "wide in bf16", [suite.work / "wide.onnx", "--precision", "bf16"],
                "wide.safetensors", 2, 2, 1, clip, homes)
suite.check("offload: lanes run on into the next step", runs_on, ("none", "disk", "none"))
DISK, HOST = ("disk",) * 3, ("host",) * 3
suite.check("offload: resumed on disk, begun resident", resumed, (RESIDENT, 1), (DISK, 1))
suite.check("offload: resumed resident, begun on disk by two ranks", resumed, (("disk", "disk", "host"), 2), (RESIDENT, 2))
suite.check("offload: resident on one rank, then on disk on two, on host and disk on four", resumed, (RESIDENT, 1), (DISK, 2), (("host", "disk", "none"), 4))
suite.check("offload: on disk on four ranks, then resident on two, on host on one", resumed, (DISK, 4), (RESIDENT, 2), (HOST, 1))
suite.finish()
