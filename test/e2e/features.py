#!/usr/bin/env python3
"""Optimizers, schedules, accumulation, losses, frozen parameters, dropout and held-out loss, held against what PyTorch computed in f64."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file

from harness import expect, relative
from trained import DATA, GLOBAL, STEPS, Training, as_torch, curve_holds, final, off, parameters_hold, reference, same

suite = Training(__doc__)
straight = {}  # (case, ranks, micro-steps) -> exported bits, which every stage must give


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
    rows, weights = suite.train(suite.plan("gpt", world, stage, accumulate, *optimizer_flags(case)), *CASES[case], world=world)
    worst = parameters_hold(weights, case, 5e-5)
    notes = [curve_holds(rows, case, field, limit) for field, limit in (("loss", 1e-5), ("grad_norm", 1e-4), ("lr", 1e-12))]
    bits = {name: value.tobytes() for name, value in weights.items()}
    first = straight.setdefault((case, world, accumulate), bits)
    expect(bits == first, "other bits than at the first stage that was tried")
    return f"parameters within {worst:.0e}, losses {notes[0]:.0e}, norms {notes[1]:.0e}"



# ------------------------------------------------------------------------------------------------ losses
def own_loss(world, stage, accumulate):
    """A model that computes its own mean: the mean of the means of micro-batches of three samples, as PyTorch would over ranks."""
    rows, weights = suite.train(suite.plan("gpt_loss", world, stage, accumulate, "--loss", "output:loss"), "--lr", 1e-2, world=world, data="whole-labels.safetensors")
    worst = parameters_hold(weights, "own-loss", 2e-5, "gpt_loss")
    return f"parameters within {worst:.0e}, losses {curve_holds(rows, 'own-loss', 'loss', 1e-5):.0e}"


def squares(world, stage, accumulate):
    rows, weights = suite.train(suite.plan("regression", world, stage, accumulate, "--loss", "mse"), "--lr", 1e-2, world=world, data="regression.safetensors")
    worst = parameters_hold(weights, "mse", 2e-5, "regression")
    return f"parameters within {worst:.0e}, losses {curve_holds(rows, 'mse', 'loss', 1e-5):.0e}"


def gradients(world, stage, accumulate):
    suite.train(suite.plan("gpt", world, stage, accumulate), "--gradients", "gradients.safetensors", "--clip", 0.01, world=world, steps=1)
    have, worst = as_torch(load_file(suite.work / "gradients.safetensors")), 0
    wanted = {n.split("/", 1)[1]: v for n, v in final.items() if n.startswith("gradients/")}
    expect(set(have) == set(wanted), f"gradients of other parameters: {set(have) ^ set(wanted)}")
    for name, want in wanted.items():
        worst = max(worst, off(have[name], want))
    expect(worst <= 1e-5, f"a gradient is off by {worst:.1e} of its norm")
    return f"within {worst:.0e}"


def nothing_counts(world, stage, accumulate, *flags):
    """A batch without labels has the loss 0 and no gradient, clipped or not; what does not count cannot make anything infinite."""
    data = load_file(DATA / "samples.safetensors")
    data["labels"][:GLOBAL] = -100
    save_file(data, suite.work / "none.safetensors")
    compiled = suite.plan("gpt", world, stage, accumulate)
    before = suite.train(compiled, world=world, steps=0)[1]
    rows, weights = suite.train(compiled, "--weight-decay", 0, *flags, world=world, data=suite.work / "none.safetensors", steps=1)
    expect(rows[0]["loss"] == 0 and rows[0]["grad_norm"] == 0, f"loss {rows[0]['loss']}, gradient norm {rows[0]['grad_norm']}")
    expect(same(before, weights), "parameters changed")


def few_count(world, stage, accumulate):
    """All labels that count on the last rank, in its last micro-step: the same step as on one rank."""
    data = load_file(DATA / "samples.safetensors")
    data["labels"][: GLOBAL - 1] = -100
    save_file(data, suite.work / "few.safetensors")
    flags = {"data": suite.work / "few.safetensors", "steps": 1}
    runs = [suite.train(suite.plan("gpt", w, s, a), "--gradients", "gradients.safetensors", world=w, **flags)[0] + [load_file(suite.work / "gradients.safetensors")]
            for w, s, a in ((1, 0, 1), (world, stage, accumulate))]
    expect(relative(runs[1][0]["loss"], runs[0][0]["loss"]) < 1e-6, f"loss {runs[1][0]['loss']}, on one rank {runs[0][0]['loss']}")
    worst = max(off(runs[1][1][name], value) for name, value in runs[0][1].items() if np.any(value))
    expect(worst < 1e-5, f"a gradient is off by {worst:.1e} of its norm")
    return f"gradients within {worst:.0e}"


# ------------------------------------------------------------------------------------------------ which parameters
FROZEN = {"tokens.weight", "blocks.0.up.weight", "blocks.0.up.bias", "blocks.0.down.weight", "blocks.0.down.bias"}


def initializers_of(parameters):
    return [name for name, (torch, _) in reference["initializers"]["gpt"].items() if torch in parameters]


def frozen(how, world, stage):
    pattern = lambda names: "^(" + "|".join(n.replace(".", r"\.") for n in names) + ")$"
    everything = {torch for torch, _ in reference["initializers"]["gpt"].values()}
    flags = {"freeze": ["--freeze", pattern(initializers_of(FROZEN))],
             "train": ["--freeze", ".*", "--train", pattern(initializers_of(everything - FROZEN))]}[how]
    compiled = suite.plan("gpt", world, stage, 12 // world // 3, *flags)
    rows, weights = suite.train(compiled, "--lr", 1e-2, world=world)
    before = as_torch(suite.train(suite.plan(), steps=0)[1])
    after = as_torch(weights)
    changed = {name for name in after if after[name].tobytes() != before[name].tobytes()}
    expect(changed == set(after) - FROZEN, f"{sorted(changed & FROZEN)} changed though frozen, {sorted(set(after) - FROZEN - changed)} did not change")
    worst = parameters_hold(weights, "frozen", 2e-5)
    curve_holds(rows, "frozen", "grad_norm", 1e-5)
    less, all_ = suite.inspect(compiled)["memory"]["persistent"]["optimizer"], suite.inspect(suite.plan("gpt", world, stage, 12 // world // 3))["memory"]["persistent"]["optimizer"]
    elements = sum(before[n].size for n in FROZEN)
    share = world if stage >= 1 else 1
    expect(abs((all_ - less) - 8 * elements / share) <= 8 * 64 * 12, f"the optimizer has {all_ - less} bytes less, not the {8 * elements / share:.0f} of the frozen")
    return f"parameters within {worst:.0e}, optimizer {less:,} of {all_:,} bytes"


def frozen_tie():
    """Freezing the output projection freezes the embedding it is, under whichever name it is asked for."""
    names = initializers_of({"tokens.weight"})
    expect(len(names) == 2, f"the export holds the tied matrix as {names}")
    for name in names:
        _, weights = suite.train(suite.plan("gpt", 1, 0, 1, "--freeze", f"^{name}$".replace(".", r"\.")), steps=1)
        before = suite.train(suite.plan(), steps=0)[1]
        expect(all(weights[n].tobytes() == before[n].tobytes() for n in names), f"--freeze {name} let a copy train")


def untied():
    """--tie off trains the two copies apart: together their gradients are that of the tied one."""
    suite.train(suite.plan("gpt_ts", 1, 0, 1, "--tie", "off"), "--gradients", "gradients.safetensors", steps=1)
    found = load_file(suite.work / "gradients.safetensors")
    names = {n: turned for n, (torch, turned) in reference["initializers"]["gpt_ts"].items() if torch == "tokens.weight"}
    expect(len(names) == 2 and set(names) <= set(found), f"gradients of {sorted(names)} were expected")
    total = sum(found[n].T if turned else found[n] for n, turned in names.items())
    error = off(total, final["gradients/tokens.weight"])
    expect(error < 1e-5, f"the sum of both gradients is off by {error:.1e}")
    _, weights = suite.train(suite.plan("gpt_ts", 1, 0, 1, "--tie", "off"))
    one, two = (weights[n].T if turned else weights[n] for n, turned in names.items())
    expect(not np.array_equal(one, two), "the copies did not part")


# ------------------------------------------------------------------------------------------------ dropout
def dropout_repeats():
    compiled = suite.plan("gpt_dropout", 1, 0, 4)
    runs = [suite.train(compiled, "--seed", seed) for seed in (1, 1, 2)]
    loss = [[r["loss"] for r in rows] for rows, _ in runs]
    expect(loss[0] == loss[1] and same(runs[0][1], runs[1][1]), "the same run twice gives other bits")
    expect(all(a != b for a, b in zip(loss[0], loss[2])), f"another seed gives the same losses: {loss[0]}, {loss[2]}")


def dropout_layouts():
    """What is dropped depends on the place of the sample in the global batch, not on who computes it."""
    runs = {(w, s, a): suite.train(suite.plan("gpt_dropout", w, s, a), "--seed", 5, world=w) for w, s, a in ((1, 0, 1), (1, 0, 4), (2, 3, 2), (4, 1, 1))}
    first, worst = runs[1, 0, 1], 0
    for layout, (rows, weights) in runs.items():
        far = max(relative(x["loss"], y["loss"]) for x, y in zip(rows, first[0]))
        expect(far < 2e-6, f"ranks, stage, micro-steps {layout}: a loss is off by {far:.1e}")
        worst = max(worst, far, max(off(weights[n], first[1][n]) for n in weights))
    expect(worst < 1e-4, f"parameters are off by {worst:.1e}")
    return f"within {worst:.0e}"


def dropout_expectation():
    """mean(dropout(x * w)) with x = w = 1: one in the mean, other masks in every step, no dropout in evaluation."""
    save_file({"x": np.ones((96, 1000), np.float32)}, suite.work / "ones.safetensors")
    compiled = suite.plan("dropped", 1, 0, 1, "--loss", "output:loss", "--optimizer", "sgd")
    rows, _ = suite.train(compiled, "--lr", 0, "--eval-data", "ones.safetensors", "--eval-every", 1, "--gradients", "gradients.safetensors",
                    data=suite.work / "ones.safetensors", steps=40)
    losses = np.array([r["loss"] for r in rows])
    sigma = math.sqrt(0.1 / 0.9 / (12 * 1000))
    expect(abs(losses.mean() - 1) < 4 * sigma / math.sqrt(len(losses)), f"the mean loss is {losses.mean()}")
    expect(0.6 * sigma < losses.std() < 1.5 * sigma, f"losses scatter by {losses.std():.1e}, not {sigma:.1e}")
    expect(all(abs(r["eval_loss"] - 1) < 1e-6 for r in rows), f"evaluation drops: {rows[0]['eval_loss']}")
    gradient = load_file(suite.work / "gradients.safetensors")["weight"] * 12000 * 0.9  # elements kept in each of the 1000 columns of 12
    expect(np.abs(gradient - np.round(gradient)).max() < 1e-3 and 0 <= gradient.min() and gradient.max() < 12.5, "gradients are not of the same mask")
    expect(abs(gradient.mean() / 12 / 0.9 - losses[0]) < 1e-5, "the gradient has another mask than the loss")
    kept = np.bincount(np.round(gradient).astype(int), minlength=13)
    expect(kept[12] > 200 and kept[:8].sum() < 20, f"columns by elements kept: {kept}")


def dropout_rests():
    """Evaluation drops nothing: the held-out loss is that of the same weights without dropout."""
    flags = ["--lr", 0, "--eval-data", DATA / "held-out.safetensors"]
    one, two = (suite.train(suite.plan(model), *flags, steps=1)[0][0] for model in ("gpt", "gpt_dropout"))
    expect(one["loss"] != two["loss"], "training drops nothing")
    expect(relative(two["eval_loss"], one["eval_loss"]) < 1e-6, f"the held-out loss is {two['eval_loss']}, without dropout {one['eval_loss']}")
    said = suite.zerorun(suite.plan("gpt_dropout"), "--steps", 0, "--eval-data", DATA / "held-out.safetensors").stdout
    expect(f"held-out loss {two['eval_loss']:.4f}" in said, f"without a step zerorun says {said}")


def recomputes(world, stage):
    """Computing values again in backward, dropout's masks among them, changes no bit and needs less memory."""
    runs = {how: suite.train(suite.plan("gpt_dropout", world, stage, 1, "--recompute", how), world=world) for how in ("auto", "none")}
    expect(same(runs["auto"][1], runs["none"][1]), "parameters differ")
    less, more = (runs[how][0][0]["memory_bytes"] for how in ("auto", "none"))
    expect(less < more, f"{less:,} bytes instead of {more:,}")
    return f"{less:,} bytes instead of {more:,}"


# ------------------------------------------------------------------------------------------------ held-out loss
def held_out(world, stage, accumulate):
    compiled = suite.plan("gpt", world, stage, accumulate)
    batch = GLOBAL // accumulate  # of one evaluation; 12 of the 14 samples are reached by 1, 2, 3, 4, 6 and 12
    quiet = suite.train(compiled, "--lr", 1e-2, world=world)
    rows, weights = suite.train(compiled, "--lr", 1e-2, "--eval-data", DATA / "held-out.safetensors", "--eval-every", 1, world=world)
    expect(14 // batch * batch == 12, "the batch does not fit the reference")
    worst = curve_holds(rows, "adamw", "eval_loss", 1e-5)
    expect([r["loss"] for r in rows] == [r["loss"] for r in quiet[0]] and same(weights, quiet[1]), "evaluation disturbs training")
    every, _ = suite.train(compiled, "--lr", 1e-2, "--eval-data", DATA / "held-out.safetensors", "--eval-every", 2, world=world)
    expect([r["step"] for r in every if "eval_loss" in r] == [2, 4, 5], "--eval-every 2 evaluates at other steps")
    return f"within {worst:.0e}"


def known_before(clip, world, stage, accumulate):
    """A plan for runs that clip alone, or for those that do not, trains as one for both."""
    flags = ["--clip", 0.05] if clip == "always" else []
    both, alone = (suite.train(suite.plan("gpt", world, stage, accumulate, "--clip", how), "--lr", 1e-2, *flags, world=world) for how in ("any", clip))
    expect(same(both[1], alone[1]) and [r["loss"] for r in both[0]] == [r["loss"] for r in alone[0]], "other bits")
    return f"{alone[0][0]['memory_bytes']:,} bytes, for both {both[0][0]['memory_bytes']:,}"


suite.start()
def fades(steps):
    """Moments of rows that no step looks up any more become 0, or rest where numbers have all their digits: others take many times as long."""
    real, node = TensorProto.FLOAT, helper.make_node
    rows = numpy_helper.from_array(np.random.default_rng(0).normal(0, 1, (16, 4)).astype(np.float32), "rows")
    graph = helper.make_graph([node("Gather", ["rows", "ids"], ["x"]), node("Mul", ["x", "x"], ["y"]), node("ReduceMean", ["y"], ["loss"], keepdims=0)], "table",
                              [helper.make_tensor_value_info("ids", TensorProto.INT64, (2, 8))], [helper.make_tensor_value_info("loss", real, ())], [rows])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), suite.work / "table.onnx")
    ids = np.random.default_rng(1).integers(0, 8, (2 * steps, 8))
    ids[0] = np.arange(8, 16)  # in the first step alone
    save_file({"ids": ids}, suite.work / "table.safetensors")
    suite.zeroc("table.onnx", "table.plan", "-q", "--loss", "output:loss")
    suite.zerorun("table.plan", "--data", "table.safetensors", "--steps", steps, "--lr", "1e-3", "--checkpoint", "table")
    files = load_file(suite.work / "table" / f"step-{steps}" / "rank-0.safetensors")
    values = np.concatenate([v.ravel() for v in files.values() if v.dtype == np.float32])
    small = np.abs(values[values != 0])
    expect(small.min() >= np.finfo(np.float32).tiny, f"{(small < np.finfo(np.float32).tiny).sum()} numbers are subnormal")
    expect(small.min() < 1e-30, f"no moment has become small: {small.min()}")


check = suite.check
# case -> layouts as (ranks, micro-steps, stages)
MATRIX = {
    "adamw": [(1, 1, (0, 3)), (1, 3, (2,)), (1, 4, (0, 1)), (2, 1, (0, 1, 2, 3)), (2, 3, (0, 1, 2, 3)), (4, 1, (1, 3)), (4, 3, (2,))],
    "adamw-hyper": [(1, 4, (0,)), (2, 1, (2,)), (2, 3, (3,))],
    "adamw-clip": [(1, 1, (0,)), (1, 3, (1,)), (2, 1, (0, 1, 2, 3)), (2, 3, (0, 1, 2, 3)), (4, 1, (3,))],
    "sgd": [(1, 1, (0,)), (2, 3, (2,))],
    "sgd-momentum": [(1, 4, (0,)), (2, 1, (1, 3))],
    "sgd-clip": [(1, 3, (0,)), (2, 1, (3,)), (2, 3, (2,))],
}
for case, layouts in MATRIX.items():
    for world, accumulate, stages in layouts:
        for stage in stages:
            check(f"features: {case}, {world} ranks, stage {stage}, {accumulate} micro-steps", optimizes, case, world, stage, accumulate)
for w, s, a in [(1, 0, 4), (1, 3, 1), (2, 0, 3), (2, 1, 1), (2, 2, 3), (2, 3, 1)]:
    check(f"features: gradients, {w} ranks, stage {s}, {a} micro-steps", gradients, w, s, a)
for w, s, a in [(1, 0, 1), (2, 3, 2), (6, 1, 2)]:
    check(f"features: mse, {w} ranks, stage {s}, {a} micro-steps", squares, w, s, a)
for w, s, a in [(1, 0, 4), (2, 3, 2), (4, 1, 1)]:
    check(f"features: the model's own loss, {w} ranks, stage {s}, {a} micro-steps", own_loss, w, s, a)
check("features: no label counts", nothing_counts, 1, 0, 1)
check("features: no label counts, 2 ranks, stage 3, 3 micro-steps, clipped", nothing_counts, 2, 3, 3, "--clip", 0.1)
check("features: one label in twelve samples counts, 2 ranks, stage 2, 3 micro-steps", few_count, 2, 2, 3)
for clip, w, s, a in [("never", 1, 0, 1), ("always", 2, 3, 3)]:
    check(f"features: compiled with --clip {clip}, {w} ranks, stage {s}, {a} micro-steps", known_before, clip, w, s, a)
for w, s in [(1, 0), (2, 3)]:
    for how in ("freeze", "train"):
        check(f"features: --{how}, {w} ranks, stage {s}", frozen, how, w, s)
check("features: --freeze of one name of a tied parameter", frozen_tie)
check("features: --tie off", untied)
check("features: dropout repeats", dropout_repeats)
check("features: dropout at any layout", dropout_layouts)
check("features: dropout expectation", dropout_expectation)
check("features: dropout in evaluation", dropout_rests)
for w, s in [(1, 0), (2, 3)]:
    check(f"features: --recompute, {w} ranks, stage {s}", recomputes, w, s)
for w, s, a in [(1, 0, 1), (1, 0, 4), (2, 3, 1), (4, 1, 1)]:
    check(f"features: held-out loss, {w} ranks, stage {s}, {a} micro-steps", held_out, w, s, a)
check("features: moments that fade", fades, 1500)
suite.finish()
