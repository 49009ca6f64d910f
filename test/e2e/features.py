#!/usr/bin/env python3
"""Every feature of training, held against what PyTorch computed in f64 (test/e2e/data, written by make_references.py).

The global batch is always the same 12 samples, cut into ranks, micro-steps and samples in different ways; labels are ignored very
unevenly, so a mean of means would not do.
"""
import json
import math
import os
import pathlib
import shutil
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import Failure, Suite, expect, relative

DATA = pathlib.Path(__file__).resolve().parent / "data"
STEPS, GLOBAL = 5, 12
suite = Suite(__doc__)
reference = json.loads((DATA / "references.json").read_text())
final = load_file(DATA / "references.safetensors")
straight = {}  # (case, layout) -> exported bytes, to compare stages


# ------------------------------------------------------------------------------------------------ helpers
def plan(model="gpt", world=1, stage=0, accumulate=1, *flags):
    """Compiled once per set of flags."""
    name = "-".join(map(str, (model, world, stage, accumulate, *flags))).replace("/", "_").replace(" ", "") + ".plan"
    if not (suite.work / name).exists():
        suite.zeroc(DATA / f"{model}.onnx", name, "--quiet", "--bind", f"batch={GLOBAL // world // accumulate}", "--world", world, "--stage", stage,
                    "--accumulate", accumulate, "--bucket-elements", 4000, *flags)
    return name


def train(compiled, *flags, world=1, data="samples.safetensors", steps=STEPS, threads=1, **kw):
    """Metrics of a run, and the weights it exported."""
    metrics, weights = suite.work / "metrics.jsonl", suite.work / "final.safetensors"
    metrics.unlink(missing_ok=True)
    weights.unlink(missing_ok=True)
    suite.zerorun(compiled, "--data", DATA / data, "--steps", steps, "--metrics", metrics, "--export", weights, "--threads", threads, *flags,
                  world=world, **kw)
    return [json.loads(line) for line in metrics.read_text().splitlines()], load_file(weights)


def off(have, want):
    """Distance relative to the norm of what is wanted."""
    return float(np.linalg.norm(have.astype(np.float64) - want) / max(np.linalg.norm(want.astype(np.float64)), 1e-12))


def as_torch(weights, model="gpt"):
    """What zerorun exported, under PyTorch's names and in its layouts."""
    names = reference["initializers"][model]
    return {names[name][0]: value.T if names[name][1] else value for name, value in weights.items()}


def parameters_hold(weights, case, limit, model="gpt", prefix=None):
    have, worst = as_torch(weights, model), 0
    wanted = {n.split("/", 1)[1]: v for n, v in final.items() if n.startswith((prefix or case) + "/")}
    expect(set(have) == set(wanted), f"other parameters than PyTorch's: {set(have) ^ set(wanted)}")
    for name, want in wanted.items():
        expect(have[name].shape == want.shape, f"{name} has the shape {have[name].shape}, not {want.shape}")
        error = off(have[name], want)
        expect(error <= limit, f"{name} is off by {error:.1e} of its norm")
        worst = max(worst, error)
    return worst


def curve_holds(rows, case, field, limit):
    want, have = reference["references"][case][field], [row[field] for row in rows]
    expect(len(have) == len(want), f"{len(have)} values of {field}, not {len(want)}")
    worst = max(relative(x, y) for x, y in zip(have, want))
    expect(worst <= limit, f"{field} is {have}, PyTorch's is {want}")
    return worst


# ------------------------------------------------------------------------------------------------ optimizers
CASES = {
    "adamw": ["--lr", 1e-2],
    "adamw-hyper": ["--lr", 1e-2, "--weight-decay", 0.3, "--betas", "0.8,0.95", "--eps", 1e-3],
    "adamw-clip": ["--lr", 1e-2, "--clip", 0.05, "--schedule", "cosine", "--warmup", 2],
    "sgd": ["--lr", 0.1],
    "sgd-momentum": ["--lr", 0.1, "--betas", 0.9, "--weight-decay", 0.1, "--schedule", "linear", "--warmup", 1],
    "sgd-clip": ["--lr", 0.5, "--clip", 0.1, "--betas", 0.5],
}
LAYOUTS = [(1, 1), (1, 3), (1, 4), (2, 1), (2, 3), (4, 1)]  # ranks, micro-steps


def optimizer_flags(case):
    return ["--optimizer", "sgd"] if case.startswith("sgd") else []


def optimizes(case, world, stage, accumulate):
    rows, weights = train(plan("gpt", world, stage, accumulate, *optimizer_flags(case)), *CASES[case], world=world)
    worst = parameters_hold(weights, case, 2e-4)
    notes = [curve_holds(rows, case, field, limit) for field, limit in (("loss", 1e-5), ("grad_norm", 1e-4), ("lr", 1e-12))]
    bits = {name: value.tobytes() for name, value in weights.items()}
    first = straight.setdefault((case, world, accumulate), bits)
    expect(bits == first, "other bits than at the first stage that was tried")
    return f"parameters within {worst:.0e}, losses {notes[0]:.0e}, norms {notes[1]:.0e}"



# ------------------------------------------------------------------------------------------------ losses
def own_loss(world, stage, accumulate):
    """A model that computes its own mean: the mean of the means of micro-batches of three samples, as PyTorch would over ranks."""
    rows, weights = train(plan("gpt_loss", world, stage, accumulate, "--loss", "output:loss"), "--lr", 1e-2, world=world, data="whole-labels.safetensors")
    worst = parameters_hold(weights, "own-loss", 2e-5, "gpt_loss")
    return f"parameters within {worst:.0e}, losses {curve_holds(rows, 'own-loss', 'loss', 1e-5):.0e}"


def squares(world, stage, accumulate):
    rows, weights = train(plan("regression", world, stage, accumulate, "--loss", "mse"), "--lr", 1e-2, world=world, data="regression.safetensors")
    worst = parameters_hold(weights, "mse", 2e-5, "regression")
    return f"parameters within {worst:.0e}, losses {curve_holds(rows, 'mse', 'loss', 1e-5):.0e}"


def gradients(world, stage, accumulate):
    train(plan("gpt", world, stage, accumulate), "--gradients", "gradients.safetensors", "--clip", 0.01, world=world, steps=1)
    have, worst = as_torch(load_file(suite.work / "gradients.safetensors")), 0
    wanted = {n.split("/", 1)[1]: v for n, v in final.items() if n.startswith("gradients/")}
    expect(set(have) == set(wanted), f"gradients of other parameters: {set(have) ^ set(wanted)}")
    for name, want in wanted.items():
        worst = max(worst, off(have[name], want))
    expect(worst <= 1e-5, f"a gradient is off by {worst:.1e} of its norm")
    return f"within {worst:.0e}"


def nothing_counts():
    """A batch without labels has the loss 0 and no gradient; what does not count cannot make anything infinite."""
    data = load_file(DATA / "samples.safetensors")
    data["labels"][:GLOBAL] = -100
    save_file(data, suite.work / "none.safetensors")
    before = train(plan(), steps=0)[1]
    rows, weights = train(plan(), "--weight-decay", 0, data=suite.work / "none.safetensors", steps=1)
    expect(rows[0]["loss"] == 0 and rows[0]["grad_norm"] == 0, f"loss {rows[0]['loss']}, gradient norm {rows[0]['grad_norm']}")
    expect(same(before, weights), "parameters changed")


# ------------------------------------------------------------------------------------------------ which parameters
FROZEN = ["--freeze", "head|embed.*|tokens", "--freeze", r"blocks\.0\.(up|down).*|val_44|val_46"]


def same(one, two):
    return set(one) == set(two) and all(one[n].tobytes() == two[n].tobytes() for n in one)


def inspect(compiled):
    return json.loads(suite.run([suite.bin / "zero-inspect", compiled, "--json"]).stdout)


suite.start()
for case in CASES:
    pass
for w, st, a in [(1, 0, 1), (1, 0, 4), (2, 3, 2), (4, 1, 1)]:
    suite.check(f"features: gradients, {w} ranks, stage {st}, {a} micro-steps", gradients, w, st, a)
    suite.check(f"features: mse, {w} ranks, stage {st}, {a} micro-steps", squares, w, st, a)
for w, st, a in [(1, 0, 4), (2, 3, 2), (4, 1, 1), (4, 3, 1)]:
    suite.check(f"features: the model's own loss, {w} ranks, stage {st}, {a} micro-steps", own_loss, w, st, a)
suite.check(f"features: no label counts", nothing_counts)
suite.finish()
