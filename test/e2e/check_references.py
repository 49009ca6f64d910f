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

suite = Suite(__doc__)
# How far the first loss (relative), any loss (of the largest) and a gradient (of its norm) may be off. In bf16 every value between kernels is
# rounded to 2^-9 of its size. PyTorch's own training of gpt2 here in bf16, held against f32, is off by 4e-5, 3.3e-4 and 0.8 % under
# autocast, which keeps norms and residuals in f32, and by 1.2e-5, 3.7e-4 and 3.1 % where all of it is bf16, as it is here but for what
# happens inside kernels (test/e2e/make_bf16_bounds.py measures both).
# A loss over a handful of labels does not average that out. (Where a model has ReLUs, gradients jump: PyTorch's are off by 4.9 and 6.5 % there.)
# In f16 it is 2^-12 of its size: eight times as close.
BOUNDS = {"f32": (1e-4, 3e-3, 1e-3), "bf16": (2e-3, 3e-3, 4e-2), "f16": (2.5e-4, 3e-3, 5e-3)}
CUDA_STEPS = 3  # emulated threads are slow
suite.parser.add_argument("--models", default=str(TINY), help="folder of folders with reference.json")


def as_initializer(gradient, record):
    """PyTorch's gradient in the layout of the initializer, or None where part of the parameter was folded away."""
    how = record["transform"]
    if how == "identity":
        return gradient
    if how == "transpose":
        return gradient.transpose(record.get("perm", [1, 0]))
    if how == "reshape":
        return gradient.reshape(record["shape"])
    if how == "slice" and "start" in record:
        return gradient[record["start"]:record["stop"]].reshape(record["shape"])
    return None


def gradients_hold(folder, export, reference, found, bound):
    wanted = load_file(folder / "gradients.safetensors")
    trainable = export["trainable"]
    unknown = set(found) - set(trainable)
    expect(not unknown, f"{len(unknown)} tensors were trained that are no parameters, such as {min(unknown, default='')}")
    seen = {trainable[name]["torch"] for name in found}
    for name, record in trainable.items():
        if name not in found:
            expect(record.get("tied_copy") and record["torch"] in seen, f"there is no gradient of {name}")
            continue
        want = as_initializer(wanted[record["torch"]], record)
        if want is None or record["torch"] in reference["noise_gradient"]:
            continue
        expect(found[name].shape == want.shape, f"the gradient of {name} has the shape {found[name].shape}, not {want.shape}")
        norm = np.linalg.norm(want.astype(np.float64))
        error = np.linalg.norm(found[name] - want.astype(np.float64))
        expect(error <= bound * norm + 1e-7, f"the gradient of {name} is off by {error / norm:.1e} of its norm")
    return len(found)


def without_gpu(plan, *flags):
    """The environment in which zerorun runs a plan for cuda, made with these flags of zeroc, on a machine without one."""
    (suite.work / "placed.mlir").write_text(suite.run([suite.bin / "zeroc", *flags, "--emit", "place"]).stdout)
    suite.run([suite.bin / "gpu-double", plan, "placed.mlir", "-o", "kernels.so"])
    return {"ZERO_CUDA_LIBRARIES": str(suite.bin.parent / "test" / "gpu" / "fake"), "ZERO_FAKE_KERNELS": str(suite.work / "kernels.so")}


def batches_of(folder, export, world, steps=None):
    """Writes data.safetensors; the flags that bind the export's shapes for so many ranks, and how many steps the data has."""
    batches = np.load(folder / "batches.npz")
    steps = steps or len({key.split("/")[0] for key in batches.files})
    names = [i["name"] for i in export["inputs"]]
    data = {name: np.concatenate([batches[f"{s}/{name}"] for s in range(steps)]) for name in names}
    if "labels" not in data:
        data["labels"] = np.concatenate([batches[f"{s}/targets"] for s in range(steps)])
    save_file(data, suite.work / "data.safetensors")
    binds = {}
    for i in export["inputs"]:
        for axis, dimension in enumerate(i["shape"]):
            if isinstance(dimension, str):
                binds[dimension] = batches[f"0/{i['name']}"].shape[axis] // (world if axis == 0 else 1)
    return (["--bind", ",".join(f"{k}={v}" for k, v in binds.items())] if binds else []), steps


def holds(folder, export, world, stage, precision, target="cpu"):
    reference = json.loads((folder / "reference.json").read_text())
    bind, steps = batches_of(folder, export, world, CUDA_STEPS if target == "cuda" else None)
    flags = ["--loss", export["loss"], "--optimizer", "adamw", "--world", world, "--stage", stage, "--precision", precision, "--target", target, *bind]
    suite.zeroc(folder / export["file"], "plan.bin", *flags)
    env = without_gpu("plan.bin", folder / export["file"], *flags) if target == "cuda" else {}
    o = reference["optimizer"]
    suite.zerorun("plan.bin", "--data", "data.safetensors", "--steps", steps, "--lr", o["lr"], "--weight-decay", o["weight_decay"],
                  "--betas", ",".join(map(str, o["betas"])), "--eps", o["eps"], "--metrics", "metrics.jsonl",
                  "--gradients", "gradients.safetensors", world=world, env=env, timeout=600)
    want, have = reference["loss_curve"][:steps], suite.losses("metrics.jsonl")
    expect(len(have) == len(want), f"{len(have)} losses, not {len(want)}")
    off = [abs(x - y) for x, y in zip(have, want)]
    first, any_step, gradient = BOUNDS[precision]
    expect(off[0] <= first * want[0], f"the first loss is {have[0]}, PyTorch's {want[0]}")
    expect(max(off) <= any_step * max(want), f"the loss of step {int(np.argmax(off))} is off by {max(off):.1e}")
    note = f"losses within {max(off):.0e}"
    if (folder / "gradients.safetensors").exists():
        note += f", {gradients_hold(folder, export, reference, load_file(suite.work / 'gradients.safetensors'), gradient)} gradients"
    return note


def stages_agree(folder, export, world, reduce_type, *more):
    """Plans for cuda sum as NCCL does, in an order that is not that of ranks: it is the same at every stage."""
    bind, steps = batches_of(folder, export, world, 2)
    flags = ["--loss", export["loss"], "--optimizer", "adamw", "--world", world, "--reduce-type", reduce_type, "--target", "cuda", *bind]
    first = None
    for stage in range(4):
        suite.zeroc(folder / export["file"], "plan.bin", *flags, "--stage", stage)
        env = without_gpu("plan.bin", folder / export["file"], *flags, "--stage", stage)
        suite.zerorun("plan.bin", "--data", "data.safetensors", "--steps", steps, "--lr", 1e-3, "--metrics", "metrics.jsonl",
                      "--export", "weights.safetensors", *more, world=world, env=env, timeout=600)
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
        for precision in ("f32", "bf16"):
            suite.check(f"reference: {path.parent.name}/{export['file']}, {precision} for cuda", holds, path.parent, export, 1, 0, precision, "cuda")
        if any(isinstance(d, str) for d in export["inputs"][0]["shape"]):
            for stage in (0, 3):
                suite.check(f"reference: {path.parent.name}/{export['file']}, 2 ranks, stage {stage}", holds, path.parent, export, 2, stage, "f32")
            suite.check(f"reference: {path.parent.name}/{export['file']}, 2 ranks, stage 3 for cuda", holds, path.parent, export, 2, 3, "f32", "cuda")
            if np.load(path.parent / "batches.npz")["0/input_ids"].shape[0] % 4 == 0:
                for reduce_type in ("f32", "bf16"):
                    suite.check(f"reference: {path.parent.name}/{export['file']}, 4 ranks for cuda, all stages, sums of {reduce_type}", stages_agree,
                                path.parent, export, 4, reduce_type)
suite.finish()
