#!/usr/bin/env python3
"""Mixtures of experts: what a token's experts compute costs what it should, wherever state lies.

The matrices of experts are never copied for each token. Stages and ranks, tiers, recomputation and either order of micro-steps give the same parameters to the bit; half precision,
tiles and the double of a GPU, which puts tokens into other blocks, follow. An expert that no token goes to has a gradient of zeros. Experts that look their tokens up one after
another, as models are written, are computed like those that exporters write at once.
"""
import json
import re

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import load_file

from harness import Suite, expect, relative

SEQ, BATCH, STEPS, VOCAB, EXPERTS, HIDDEN, FFN = 24, 4, 4, 64, 6, 32, 48
SIZE = ["--arch", "llama", "--layers", 2, "--hidden", HIDDEN, "--heads", 4, "--kv-heads", 2, "--vocab", VOCAB, "--seq", SEQ, "--ffn", FFN, "--experts", EXPERTS]
LOOP = ["--loop"]
DISK = ["--offload-params", "disk", "--offload-optimizer", "disk", "--offload-activations", "disk"]
suite = Suite(__doc__)


def model_of(batch=BATCH, top=2, *flags):
    return suite.gpt(f"{batch}-{top}{''.join(flags)}.onnx", *SIZE, "--batch", batch, "--top", top, *flags)


def trained(name, world=1, env=None, steps=STEPS):
    """Losses, first gradients, final parameters."""
    (np.arange(BATCH * SEQ * STEPS + 1) ** 2 % 61).astype(np.uint16).tofile(suite.work / "data.bin")
    suite.zerorun(f"{name}.plan", "--data", "data.bin", "--steps", steps, "--lr", "1e-2", "--metrics", "m.jsonl", "--gradients", "g.safetensors",
                  "--export", "w.safetensors", *([] if env else ["--threads", 2 // world]), world=world, env=env or {})
    return suite.losses("m.jsonl"), load_file(suite.work / "g.safetensors"), load_file(suite.work / "w.safetensors")


def different(a, b):
    return [n for n in a if a[n].tobytes() != b[n].tobytes()]


def size():
    """As many multiplications as the experts of all tokens have, but for blocks that are not full, and no buffer with a matrix for each token."""
    suite.zeroc(model_of(), "p.plan")
    facts = json.loads(suite.run([suite.bin / "zero-inspect", "p.plan", "--json"]).stdout)
    taken, gathered = facts["memory"]["total_bytes"], BATCH * SEQ * 2 * 2 * FFN * HIDDEN * 4
    expect(taken < gathered, f"{taken} bytes have room for a matrix for each choice of a token, {gathered} bytes")
    schedule = suite.run([suite.bin / "zero-inspect", "p.plan", "--schedule"]).stdout
    grouped = [line for line in schedule.splitlines() if "@step" not in line and f"in {EXPERTS} groups" in line]
    expect(len(grouped) >= 2 * (2 + 2 + 2), f"{len(grouped)} products of groups")
    return f"{len(grouped)} products of groups"


def same(flags, world=1, stage=0, against=(), top=2, model=()):
    """To the bit as with other flags."""
    accumulate = ["--accumulate", 2]
    found = []
    for name, own in (("one", [*flags, "--stage", stage]), ("other", [*against, "--stage", 0])):
        suite.zeroc(model_of(BATCH // 2 // world, top, *model), f"{name}.plan", *accumulate, "--world", world, *own)
        found.append(trained(name, world))
    expect(found[0][0] == found[1][0] and not different(found[0][2], found[1][2]) and not different(found[0][1], found[1][1]),
           f"losses {found[0][0]} and {found[1][0]}, parameters {different(found[0][2], found[1][2])[:3]} differ")
    expect(found[0][0][-1] < found[0][0][0], f"losses do not fall: {found[0][0]}")


def near(flags, bound, gpu=False, model=()):
    file = model_of(BATCH, 2, *model)
    suite.zeroc(file, "p.plan")
    wanted = trained("p")
    suite.zeroc(file, "q.plan", *flags)
    found = trained("q", env=suite.without_gpu("q.plan", file, *flags) if gpu else None)
    far = max(relative(a, b) for a, b in zip(found[0], wanted[0]))
    expect(far < bound, f"losses {found[0]}, expected {wanted[0]}")
    return f"losses within {far:.0e}"


def turns():
    """The work of experts in turn is that of experts at once, and so are their losses, given the same weights."""
    work, losses = [], []
    at_once, in_turn = (suite.work / model_of(BATCH, 2, *flags) for flags in ((), LOOP))
    weights = {w.name: w for w in onnx.load(at_once).graph.initializer}
    turned = onnx.load(in_turn)
    for weight in turned.graph.initializer:
        name = weight.name
        if found := re.fullmatch(r"(.*[.]experts)[.](\d+)[.](\w+)_proj[.]weight", name):
            layer, expert, part = found.groups()
            both = numpy_helper.to_array(weights[f"{layer}.{'down' if part == 'down' else 'gate_up'}_proj"])[int(expert)]
            values = {"gate": both[:FFN], "up": both[FFN:], "down": both}[part]
        elif name.startswith("val_"):
            continue
        else:
            values = numpy_helper.to_array(weights[name])
        weight.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), name))
    onnx.save(turned, suite.work / "turned.onnx")
    for model in (at_once, suite.work / "turned.onnx"):
        suite.zeroc(model, "p.plan")
        lanes = json.loads(suite.run([suite.bin / "zero-inspect", "p.plan", "--json"]).stdout)["lanes"]
        work.append(sum(lane["flops"] for lane in lanes.values()))
        losses.append(trained("p")[0])
    far = max(relative(a, b) for a, b in zip(*losses))
    expect(work[1] < 1.1 * work[0] and far < 1e-5, f"operations {work}, losses {losses}")
    return f"{work[1] / work[0]:.2f} of the operations, losses within {far:.0e}"


def tiles():
    """A tile has some experts; training is that of all at once, and takes less at its fullest with state on disk."""
    model, peaks = suite.gpt("large.onnx", *SIZE, "--hidden", 256, "--ffn", 512, "--batch", 1, "--seq", 8), []
    for tile in ([], ["--tile", 6]):
        suite.zeroc(model, "t.plan", *DISK, *tile)
        peaks.append(json.loads(suite.run([suite.bin / "zero-inspect", "t.plan", "--json"]).stdout)["memory"]["total_bytes"])
    whole = EXPERTS * 2 * 512 * 256 * 4
    expect(peaks[1] < peaks[0] - whole, f"{peaks[1]} bytes in tiles, {peaks[0]} whole, of which the matrices of one layer's experts are {whole}")
    return f"{peaks[0]} -> {peaks[1]} bytes, {near(['--tile', 6], 1e-6)}"


def unchosen():
    """Four tokens of one expert each reach four of six at most."""
    model = suite.gpt("few.onnx", *SIZE, "--batch", 1, "--seq", 4, "--top", 1)
    suite.zeroc(model, "p.plan")
    gradients = trained("p", steps=1)[1]
    for part in ("gate_up_proj", "down_proj"):
        reached = [bool(np.any(g)) for g in gradients[f"model.layers.1.mlp.experts.{part}"]]
        expect(1 <= sum(reached) <= 4, f"{sum(reached)} experts have gradients of {part}")
    return f"{sum(reached)} of {EXPERTS} experts have gradients"


suite.start()
suite.check("experts: nothing is copied for each token", size)
for world in (1, 2):
    for stage in range(4):
        if world > 1 or stage:
            suite.check(f"experts: {world} ranks, stage {stage}", same, [], world, stage)
for name, flags in {"recomputed": ["--recompute", "full"], "on disk": DISK, "vertical": ["--accumulate-order", "vertical"],
                    "within a budget": ["--device-memory", "1100K", "--bucket-elements", 8192]}.items():
    suite.check(f"experts: {name}", same, flags)
    suite.check(f"experts: {name}, bf16", same, [*flags, "--precision", "bf16"], 1, 0, ["--precision", "bf16"])
suite.check("experts in turn: the work of all at once", turns)
for name, flags, world, stage, against in (("2 ranks, stage 3", [], 2, 3, []), ("on disk", DISK, 1, 0, []), ("recomputed", ["--recompute", "full"], 1, 0, []),
                                           ("2 ranks, stage 3, on disk, bf16", [*DISK, "--precision", "bf16"], 2, 3, ["--precision", "bf16"])):
    suite.check(f"experts in turn: {name}", same, flags, world, stage, against, 2, LOOP)
suite.check("experts in turn: in tiles", near, ["--tile", 6], 1e-5, False, LOOP)
suite.check("experts in turn: in tiles, 2 ranks, stage 3, on disk", same, ["--tile", 6, *DISK], 2, 3, ["--tile", 6], 2, LOOP)
suite.check("experts in turn: in the double of a GPU", near, ["--target", "cuda"], 1e-5, True, LOOP)
suite.check("experts: one for each token", same, ["--recompute", "full"], 1, 0, [], 1)
suite.check("experts: all for each token", same, DISK, 1, 0, [], EXPERTS)
suite.check("experts: bf16", near, ["--precision", "bf16"], 5e-3)
suite.check("experts: f16", near, ["--precision", "f16"], 5e-3)
suite.check("experts: in tiles", tiles)
suite.check("experts: in tiles, on disk", same, ["--tile", 6, *DISK], 1, 0, ["--tile", 6])
suite.check("experts: in tiles, 2 ranks", same, ["--tile", 6], 2, 3, ["--tile", 6])
suite.check("experts: in tiles, bf16", near, ["--tile", 6, "--precision", "bf16"], 5e-3)
suite.check("experts: in tiles, in the double of a GPU", near, ["--tile", 6, "--target", "cuda"], 1e-5, True)
for precision, bound in (("f32", 1e-5), ("bf16", 5e-3)):
    suite.check(f"experts: {precision}, in the double of a GPU", near, ["--precision", precision, "--target", "cuda"], bound, True)
suite.check("experts: some that no token goes to", unchosen)
suite.finish()
