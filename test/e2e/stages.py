#!/usr/bin/env python3
"""ZeRO stages and world sizes give the same training.

gpt2 and llama of models/tiny, 10 steps, a global batch of 4 as ranks x accumulation 1 x 4, 2 x 2 and 4 x 1, at stages 0, 1, 2 and 3:
- the same number of ranks: the parameters after 10 steps are bitwise equal at every stage;
- and with any slices of the sums over ranks, which a plan may say: they are cut to a few elements, the last one shorter;
- other numbers of ranks: first gradients within 1e-5 of their norm, every loss within 1e-4 relative. (Parameters may drift where the
  true gradient is zero, as in key biases: Adam turns rounding noise into full steps.)
"""
import sys

import numpy as np
from safetensors.numpy import load_file

from harness import ROOT, TINY, Suite, expect, relative

sys.path.insert(0, str(ROOT / "test"))
import plan_file  # noqa: E402

MODELS = {"gpt2": "dynamo_sdpa_dyn.onnx", "llama": "ts17_eager_dyn.onnx"}
WORLDS = (1, 2, 4)
STEPS, GLOBAL = 10, 4
suite = Suite(__doc__)
runs = {}  # (model, world, stage) -> losses, final parameters, first gradients


def run(name, model, world):
    """The losses, and the final parameters."""
    suite.zerorun(f"{name}.plan", "--data", f"{model}.safetensors", "--steps", STEPS, "--lr", "1e-3", "--weight-decay", "0.01",
                  "--metrics", f"{name}.jsonl", "--gradients", f"{name}-gradients.safetensors", "--export", f"{name}-final.safetensors", "--threads", 1, world=world)
    losses = suite.losses(f"{name}.jsonl")
    expect(len(losses) == STEPS, f"{len(losses)} losses, not {STEPS}")
    expect(losses[-1] < losses[0], f"the loss did not fall: {losses[0]} to {losses[-1]}")
    return losses, load_file(suite.work / f"{name}-final.safetensors")


def train(model, seq, world, stage):
    name = f"{model}-{world}-{stage}"
    suite.zeroc(TINY / model / MODELS[model], f"{name}.plan", "--bind", f"batch=1,seq={seq}", "--world", world, "--stage", stage,
                "--accumulate", GLOBAL // world)
    losses, final = run(name, model, world)
    runs[model, world, stage] = losses, final, load_file(suite.work / f"{name}-gradients.safetensors")
    return f"loss {losses[0]:.4f} to {losses[-1]:.4f}"


def run_of(model, world, stage):
    expect((model, world, stage) in runs, f"the run with {world} ranks at stage {stage} failed")
    return runs[model, world, stage]


def same_bits(model, world, stage):
    return equal(run_of(model, world, 0)[1], run_of(model, world, stage)[1])


def same_in_slices(model, world, stage, slice):
    name = f"{model}-{world}-{stage}-slices"
    plan, cut = plan_file.read(suite.work / f"{model}-{world}-{stage}.plan"), 0
    for step in (step for program in plan.programs for step in program.steps):
        if step.HasField("collective") and step.collective.order:
            step.collective.slice = min(slice, step.collective.count)
            step.writes[1].bytes = 4 * world * step.collective.slice
            cut += step.collective.slice < step.collective.count
    expect(cut, "no sum is longer than a slice")
    plan_file.write(suite.work / f"{name}.plan", suite.work / f"{model}-{world}-{stage}.plan", plan)
    return equal(run_of(model, world, 0)[1], run(name, model, world)[1])


def equal(zero, other):
    expect(set(zero) == set(other), "other parameters were exported")
    different = [n for n in zero if zero[n].tobytes() != other[n].tobytes()]
    expect(not different, f"{len(different)} of {len(zero)} parameters differ from stage 0, such as {min(different, default='')}")
    return f"{len(zero)} parameters"


def same_training(model, world):
    losses, _, grads = run_of(model, 1, 0)
    others, _, other_grads = run_of(model, world, 0)
    expect(set(grads) == set(other_grads), "other gradients were written")
    worst = 0.0
    for name, gradient in grads.items():
        wide = gradient.astype(np.float64)
        error = np.linalg.norm(other_grads[name] - wide) / max(np.linalg.norm(wide), 1e-12)
        expect(error <= 1e-5, f"the first gradient of {name} is off by {error:.1e} of its norm")
        worst = max(worst, error)
    far = max(relative(x, y) for x, y in zip(others, losses))
    expect(far <= 1e-4, f"a loss is off by {far:.1e} relative")
    return f"gradients within {worst:.0e}, losses within {far:.0e}"


suite.start()
for model in MODELS:
    seq = suite.tiny_data(model)
    for world in WORLDS:
        for stage in range(4):
            suite.check(f"stages: {model} trains on {world} ranks at stage {stage}", train, model, seq, world, stage)
        for stage in range(1, 4):
            suite.check(f"stages: {model}, {world} ranks: stage {stage} has the bits of stage 0", same_bits, model, world, stage)
    for world in WORLDS[1:]:
        suite.check(f"stages: {model}, {world} ranks: sums in slices of 700 have the same bits", same_in_slices, model, world, 2, 700)
        suite.check(f"stages: {model}: {world} ranks train as one rank does", same_training, model, world)
suite.finish()
