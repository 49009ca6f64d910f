#!/usr/bin/env python3
"""Train the real exports of models/tiny and hold losses and first gradients against PyTorch's own training.

World 1: every export. World 2 (and any stage): the exports with a symbolic batch, bound to half of PyTorch's batch per rank, so that the
global batch, and with the exact global mean the loss and gradient, are the same. In f32, and on one rank in bf16 and f16 with the bounds below.
And plans for cuda on the stand-ins for NVIDIA's libraries (test/gpu), with the very kernels that PTX is made of: no GPU takes part.
"""
import json
import pathlib

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import TINY, Suite, expect
from references import bindings, bounds_of, data_of, hyper_parameters, wanted_gradients

suite = Suite(__doc__)
CUDA_STEPS = 3  # emulated threads are slow
suite.parser.add_argument("--models", default=str(TINY), help="folder of folders with reference.json")


def gradients_hold(folder, export, reference, found, bound):
    wanted, trainable = wanted_gradients(folder, export, reference), export["trainable"]
    unknown = set(found) - set(trainable)
    expect(not unknown, f"{len(unknown)} tensors were trained that are no parameters, such as {min(unknown, default='')}")
    seen = {trainable[name]["torch"] for name in found}
    for name, record in trainable.items():
        if name not in found:
            expect(record.get("tied_copy") and record["torch"] in seen, f"there is no gradient of {name}")
            continue
        if name not in wanted:
            continue
        want = wanted[name]
        expect(found[name].shape == want.shape, f"the gradient of {name} has the shape {found[name].shape}, not {want.shape}")
        norm = np.linalg.norm(want.astype(np.float64))
        error = np.linalg.norm(found[name] - want.astype(np.float64))
        expect(error <= bound * norm + 1e-7, f"the gradient of {name} is off by {error / norm:.1e} of its norm")
    return len(found)


def holds(folder, export, world, stage, precision, target="cpu"):
    reference = json.loads((folder / "reference.json").read_text())
    steps = len(reference["loss_curve"]) if target == "cpu" else CUDA_STEPS
    save_file(data_of(folder, export, steps), suite.work / "data.safetensors")
    flags = ["--loss", export["loss"], "--optimizer", "adamw", "--world", world, "--stage", stage, "--target", target,
             *(["--tf32"] if precision == "tf32" else ["--precision", precision]),
             *bindings(folder, export, world)]
    suite.zeroc(folder / export["file"], "plan.bin", *flags)
    env = suite.without_gpu("plan.bin", folder / export["file"], *flags) if target == "cuda" else {}
    suite.zerorun("plan.bin", "--data", "data.safetensors", "--steps", steps, *hyper_parameters(reference), "--metrics", "metrics.jsonl",
                  "--gradients", "gradients.safetensors", world=world, env=env, timeout=600)
    want, have = reference["loss_curve"][:steps], suite.losses("metrics.jsonl")
    expect(len(have) == len(want), f"{len(have)} losses, not {len(want)}")
    off = [abs(x - y) for x, y in zip(have, want)]
    first, any_step, gradient = bounds_of(reference, precision)
    expect(off[0] <= first * want[0], f"the first loss is {have[0]}, PyTorch's {want[0]}")
    expect(max(off) <= any_step * max(want), f"the loss of step {int(np.argmax(off))} is off by {max(off):.1e}")
    return f"losses within {max(off):.0e}, {gradients_hold(folder, export, reference, load_file(suite.work / 'gradients.safetensors'), gradient)} gradients"


def stages_agree(reduce_type, precision):
    """Plans for cuda sum as NCCL does, in an order that is not that of ranks: it is the same at every stage, with and without graphs (which
    the third step is the first to run as)."""
    model = suite.gpt("small.onnx", "--layers", "2", "--hidden", "32", "--heads", "2", "--vocab", "96", "--seq", "16", "--batch", "1")
    tokens = np.random.default_rng(2).integers(0, 96, (12, 17))
    save_file({"input_ids": np.ascontiguousarray(tokens[:, :16]), "labels": np.ascontiguousarray(tokens[:, 1:])}, suite.work / "data.safetensors")
    first = None
    for stage in range(4):
        flags = ["--world", 4, "--stage", stage, "--reduce-type", reduce_type, "--precision", precision, "--target", "cuda"]
        suite.zeroc(model, "plan.bin", *flags)
        suite.zerorun("plan.bin", "--data", "data.safetensors", "--steps", 3, "--lr", 1e-3, "--metrics", "metrics.jsonl", "--export", "weights.safetensors",
                      *(["--no-graphs"] if stage % 2 else []), world=4, env=suite.without_gpu("plan.bin", model, *flags))
        have = (suite.losses("metrics.jsonl"), {name: w.tobytes() for name, w in load_file(suite.work / "weights.safetensors").items()})
        first = first or have
        expect(have[0] == first[0], f"the losses of stage {stage} are {have[0]}, those of stage 0 {first[0]}")
        for name, bits in have[1].items():
            expect(bits == first[1][name], f"stage {stage} trains {name} to other bits than stage 0")
    return f"{len(first[1])} tensors"


args = suite.start()
for path in sorted(pathlib.Path(args.models).glob("*/reference.json")):
    for export in json.loads(path.read_text())["exports"]:
        suite.check(f"reference: {path.parent.name}/{export['file']}", holds, path.parent, export, 1, 0, "f32")
        for precision in ("bf16", "f16"):
            suite.check(f"reference: {path.parent.name}/{export['file']}, {precision}", holds, path.parent, export, 1, 0, precision)
        for precision in ("f32", "bf16", *(["tf32"] if path.parent.name == "llama" else [])):
            suite.check(f"reference: {path.parent.name}/{export['file']}, {precision} for cuda", holds, path.parent, export, 1, 0, precision, "cuda")
        if any(isinstance(d, str) for d in export["inputs"][0]["shape"]):
            for stage in (0, 3):
                suite.check(f"reference: {path.parent.name}/{export['file']}, 2 ranks, stage {stage}", holds, path.parent, export, 2, stage, "f32")
            suite.check(f"reference: {path.parent.name}/{export['file']}, 2 ranks, stage 3 for cuda", holds, path.parent, export, 2, 3, "f32", "cuda")
for reduce_type, precision in (("f32", "f32"), ("bf16", "f32"), ("f32", "bf16")):
    suite.check(f"reference: 4 ranks for cuda, all stages, {precision}, sums of {reduce_type}", stages_agree, reduce_type, precision)
suite.finish()
