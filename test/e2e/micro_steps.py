#!/usr/bin/env python3
"""Micro-steps in vertical order give the bits of horizontal order, and move each bucket once for all of them.

gpt2 and llama of models/tiny, at every stage, on 1 and 2 ranks, on the device and on disk, with and without clipping, in 2 and 4 micro-steps:
losses, first gradients and parameters after some steps are bitwise those of the run whose micro-steps come one after another. The same with
recomputation, tiles, bf16, f16 with its loss scale, gradients that travel in bf16, dropout, evaluation and a run that goes on from the other
order's checkpoint. What is gathered and what is read from disk in a step is that of one micro-step.
"""
import json

from safetensors.numpy import load_file

from harness import ROOT, TINY, Suite, expect

MODELS = {"gpt2": "dynamo_sdpa_dyn.onnx", "llama": "ts17_eager_dyn.onnx"}
STEPS = 3
DATA = ROOT / "test" / "e2e" / "data"
DISK = ["--offload-params", "disk", "--offload-optimizer", "disk", "--offload-activations", "disk"]
suite = Suite(__doc__)
horizontal = {}  # what the run with one micro-step after another left


def trained(order, model, data, world, flags, run_flags, steps=STEPS):
    suite.zeroc(model[0], f"{order}.plan", *model[1:], "--world", world, "--accumulate-order", order, *flags, "--quiet")
    disk = ["--disk-path", suite.work / "disk"] if "disk" in flags else []
    suite.zerorun(f"{order}.plan", "--data", data, "--steps", steps, "--lr", "1e-3", "--seed", 3, "--threads", 1, "--export", "one.safetensors",
                  "--gradients", "gradients.safetensors", "--metrics", "one.jsonl", *disk, *run_flags, world=world)
    rows = [json.loads(line) for line in (suite.work / "one.jsonl").read_text().splitlines()]
    numbers = [{key: row[key] for key in ("loss", "gradient_norm", "eval_loss", "tokens", "loss_scale") if key in row} for row in rows]
    return [load_file(suite.work / name) for name in ("one.safetensors", "gradients.safetensors")], [n for n in numbers if n]


def same(model, data, world, flags, run_flags=(), resident=None):
    """The bits of horizontal order; `resident`: flags of that run, where state rests elsewhere in this one."""
    flags, run_flags = [str(f) for f in flags], [str(f) for f in run_flags]
    wanted_flags = flags if resident is None else [str(f) for f in resident]
    key = (str(model), world, tuple(wanted_flags), tuple(run_flags))
    if key not in horizontal:
        horizontal[key] = trained("horizontal", model, data, world, wanted_flags, run_flags)
    wanted, wanted_numbers = horizontal[key]
    found, numbers = trained("vertical", model, data, world, flags, run_flags)
    expect(len([n for n in numbers if "loss" in n]) == STEPS and numbers == wanted_numbers, f"metrics {numbers}, horizontal {wanted_numbers}")
    for ours, theirs, what in zip(found, wanted, ("parameters", "gradients")):
        expect(set(ours) == set(theirs), f"other {what} were written")
        different = [n for n in theirs if theirs[n].tobytes() != ours[n].tobytes()]
        expect(not different, f"{len(different)} of {len(theirs)} {what} differ from horizontal order, such as {min(different, default='')}")
    return f"{len(found[0])} parameters"


def resumed(model, data):
    """Two steps in each order, one going on where the other stopped: a run without a break."""
    flags = ["--accumulate", "2", *DISK]
    whole, _ = trained("horizontal", model, data, 1, flags, [], 4)
    trained("horizontal", model, data, 1, flags, ["--checkpoint", "kept"], 2)
    found, _ = trained("vertical", model, data, 1, flags, ["--checkpoint", "kept", "--resume", "kept"], 4)
    expect(all(whole[0][n].tobytes() == found[0][n].tobytes() for n in whole[0]), "other parameters than without a break")


def page(plan):
    return json.loads(suite.run([suite.bin / "zero-inspect", plan, "--json"]).stdout)


def moved(model, micros):
    """Gathers at stage 3, and what is read of parameters and written of gradients on disk, are those of one micro-step."""
    seen = {}
    for order in ("horizontal", "vertical"):
        suite.zeroc(model, "many.plan", "--init", "random", "--world", 4, "--stage", 3, "--accumulate", micros, "--accumulate-order", order, "--target", "sim", "--quiet")
        suite.zeroc(model, "disk.plan", "--init", "random", "--accumulate", micros, "--accumulate-order", order, "--target", "sim", "--quiet",
                    "--offload-params", "disk", "--offload-optimizer", "disk", "--offload-activations", "none")
        gathers = page("many.plan")["communication"]["collectives"]["all_gather"]
        lanes = {lane: work["bytes_touched"] for lane, work in page("disk.plan")["lanes"].items()}
        seen[order] = gathers["calls"], gathers["bytes_sent"], lanes["disk_read"], lanes["disk_write"]
        for plan in ("many.plan", "disk.plan"):
            suite.run([suite.bin / "zero-inspect", plan, "--check"])
    for i, what in enumerate(("gathers", "gathered bytes")):
        expect(seen["horizontal"][i] == micros * seen["vertical"][i], f"{what}: {seen['vertical'][i]}, in horizontal order {seen['horizontal'][i]}")
    expect(seen["vertical"][2] * micros < seen["horizontal"][2] * 2, f"bytes read: {seen['vertical'][2]}, in horizontal order {seen['horizontal'][2]}")
    # parameters and both moments are written by the update, the sum of gradients by each micro-step but the last
    expect(seen["vertical"][3] * (micros + 2) == seen["horizontal"][3] * 3, f"bytes written: {seen['vertical'][3]}, in horizontal order {seen['horizontal'][3]}")
    return f"{seen['vertical'][0]} gathers of {seen['horizontal'][0]}, {seen['vertical'][2]} bytes read of {seen['horizontal'][2]}"


def searched(model, memory, wanted):
    suite.zeroc(model, "auto.plan", "--init", "random", "--accumulate", 4, "--accumulate-order", "auto", "--device-memory", memory, "--target", "sim", "--quiet")
    expect(page("auto.plan")["vertical"] == (wanted == "vertical"), f"the search did not choose {wanted} order")
    why = suite.run([suite.bin / "zero-inspect", "auto.plan", "--why"]).stdout
    expect(f"--accumulate-order {wanted}" in why, f"--why does not say that {wanted} order was chosen: {why[:200]}")


suite.start()
onnx = {}
for m, (model, file) in enumerate(MODELS.items()):
    seq = suite.tiny_data(model)
    onnx[model] = [TINY / model / file, "--bind", f"batch=1,seq={seq}"]
    places = [(1, 0), (2, 0), (2, 1), (2, 2), (2, 3)]
    for i, (world, stage) in enumerate(places):
        for k, homes in enumerate(([], DISK)):
            if m and (k != i % 2 or stage == 1):
                continue  # llama: on the device or on disk
            micros, clip = (2, 4)[(i + k) % 2], (i // 2 + k + m) % 2
            given = ["--stage", stage, "--accumulate", micros]
            suite.check(f"micro-steps: {model}: {micros} on {world} ranks at stage {stage}{', on disk' if homes else ''}{', clipped' if clip else ''}",
                        same, onnx[model], f"{model}.safetensors", world, [*given, *homes], ["--clip", 0.7] if clip else [], given)
gpt2, data = onnx["gpt2"], "gpt2.safetensors"
suite.check("micro-steps: recomputed", same, gpt2, data, 1, ["--accumulate", 2, "--recompute", "full"])
suite.check("micro-steps: in tiles, on disk", same, gpt2, data, 1, ["--accumulate", 2, "--tile", 4, *DISK])
suite.check("micro-steps: in bf16, gradients too", same, onnx["llama"], "llama.safetensors", 2,
            ["--accumulate", 4, "--stage", 2, "--precision", "bf16", "--reduce-type", "bf16"])
suite.check("micro-steps: in f16, with a loss scale", same, gpt2, data, 1, ["--accumulate", 2, "--precision", "f16"])
suite.check("micro-steps: with evaluation", same, gpt2, data, 2, ["--accumulate", 2, "--stage", 3], ["--eval-data", data, "--eval-every", 2])
suite.check("micro-steps: more losses than a result holds", same, gpt2, data, 1, ["--accumulate", 20])
suite.check("micro-steps: on from the checkpoint of the other order", resumed, gpt2, data)
suite.gpt("deep.onnx", "--layers", "6", "--hidden", "64", "--heads", "4", "--vocab", "101", "--seq", "8", "--batch", "1", "--no-weights")
suite.check("micro-steps: with dropout", same, [DATA / "gpt_dropout.onnx", "--bind", "batch=1"], DATA / "samples.safetensors", 2, ["--accumulate", 4, "--stage", 3, *DISK])
for micros in (2, 4):
    suite.check(f"micro-steps: {micros} move what one does", moved, suite.work / "deep.onnx", micros)
suite.check("micro-steps: the search keeps them apart where all fits", searched, suite.work / "deep.onnx", "64M", "horizontal")
suite.gpt("wide.onnx", "--layers", "6", "--hidden", "128", "--heads", "4", "--vocab", "101", "--seq", "4", "--batch", "1", "--no-weights")
suite.check("micro-steps: and interleaves them where parameters travel", searched, suite.work / "wide.onnx", "8M", "vertical")
suite.finish()
