#!/usr/bin/env python3
"""--no-decay and --lr-scale: each parameter's update is that of AdamW with its own hyper-parameters, and cutting an update changes no bit."""
import json

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import Suite, expect

suite = Suite(__doc__)
LR, DECAY = 1e-2, 0.3
FLAGS = ["--lr", LR, "--weight-decay", DECAY, "--no-decay", "bias|ln", "--no-decay", "wpe", "--lr-scale", "wte=0.1", "--lr-scale", "attn=0.25",
         "--lr-scale", "attn.*bias=3"]
machines = {}  # by plan: the environment of those for cuda


def group_of(name):
    decays = not any(part in name for part in ("bias", "ln", "wpe"))
    scale = 0.1 if "wte" in name else 3 if "attn" in name and "bias" in name else 0.25 if "attn" in name else 1
    return LR * scale, DECAY * decays


def plan(world, stage, *flags):
    name = f"{world}-{stage}{''.join(flags)}.plan"
    if not (suite.work / name).exists():
        made = ["--bind", f"batch={4 // world},seq=8", "--world", world, "--stage", stage, "-q", *flags]
        suite.zeroc("model.onnx", name, *made)
        if "cuda" in flags:
            machines[name] = suite.without_gpu(name, "model.onnx", *made)
    return name


def train(plan_, *flags, world=1, steps=3):
    out = suite.zerorun(plan_, "--data", "data.safetensors", "--steps", steps, "--threads", 1, "--export", "w.safetensors", *flags, world=world,
                        env=machines.get(plan_, {}), timeout=300).stdout
    return load_file(suite.work / "w.safetensors"), out


def state(folder):
    """Whole tensors of a checkpoint of one rank, by (parameter, tensor)."""
    step, = (suite.work / folder).iterdir()
    index, file = json.loads((step / "index.json").read_text()), load_file(step / "rank-0.safetensors")
    whole = {}
    for piece in sorted(index["pieces"], key=lambda p: p["start"]):
        whole.setdefault((piece["parameter"], piece["tensor"]), []).append(file[piece["key"]].astype(np.float64))
    return {key: np.concatenate(parts) for key, parts in whole.items()}


def adamw():
    """From one checkpoint to the next by PyTorch's formula, in f64, with the moments of the second."""
    go = ["--data", "data.safetensors", "--threads", 1, *FLAGS]
    suite.zerorun(plan(1, 0), *go, "--steps", 3, "--checkpoint", "before")
    suite.zerorun(plan(1, 0), *go, "--steps", 4, "--resume", "before", "--checkpoint", "after")
    before, after, worst = state("before"), state("after"), 0
    names = {name for name, _ in before}
    for name in names:
        lr, decay = group_of(name)
        m, v = after[name, "m"] / (1 - 0.9 ** 4), after[name, "v"] / (1 - 0.999 ** 4)
        expected = before[name, "param"] * (1 - lr * decay) - lr * m / (np.sqrt(v) + 1e-8)
        moved = np.abs(expected - before[name, "param"]).max()
        worst = max(worst, np.abs(after[name, "param"] - expected).max() / moved)
    expect(worst < 1e-4, f"an update is off by {worst:.1e} of itself")
    return f"{len(names)} parameters, within {worst:.0e} of their updates"


def said():
    out = train(plan(1, 0), *FLAGS, steps=1)[1]
    names = list(train(plan(1, 0), steps=0)[0])
    decays = sum(group_of(n)[1] > 0 for n in names)
    expect(f"weight decay 0.3 for {decays} tensors, none for {len(names) - decays} (--no-decay)\n" in out, out)
    expect("learning rate x 0.1 for 1 tensor, x 0.25 for" in out and "(--lr-scale)\n" in out, out)


def stages(world, *kind):
    """Every stage gives the same bits; and other ones than without the flags."""
    flags = [*FLAGS, *(["--clip", 0.5] if "clip" in kind else [])]
    zeroc = ["--optimizer", "sgd"] if "sgd" in kind else []
    zeroc += ["--target", "cuda"] if "cuda" in kind else []
    first = None
    for stage in (0,) if world == 1 else (0, 3) if kind else range(4):
        weights, _ = train(plan(world, stage, *zeroc), *flags, world=world)
        first = first or weights
        different = [n for n in weights if weights[n].tobytes() != first[n].tobytes()]
        expect(not different, f"stage {stage} differs from stage 0 in {different}")
    plain, _ = train(plan(world, 0, *zeroc), *flags[:4], world=world)
    same = {n for n in plain if plain[n].tobytes() == first[n].tobytes()}
    expect(len(same) < len(plain) / 2, f"the flags change nothing of {sorted(same)}")


def cut(world, *flags, zeroc=()):
    """Groups whose hyper-parameters are those of all to the last bit: updates are cut, and nothing else changes."""
    near = [f"{regex}={1 + (i + 1) * 1e-12!r}" for i, regex in enumerate(("wte", "ln", "bias", "fc"))]
    scales = [part for text in near for part in ("--lr-scale", text)]
    for stage in (0, 3) if world > 1 else (0,):
        plain, _ = train(plan(world, stage, *zeroc), "--lr", LR, *flags, "--metrics", "plain.jsonl", world=world)
        groups, _ = train(plan(world, stage, *zeroc), "--lr", LR, *scales, *flags, "--metrics", "cut.jsonl", world=world)
        expect(all(plain[n].tobytes() == groups[n].tobytes() for n in plain), f"stage {stage}: cut updates give other bits")
        told = [[(row["loss"], row["grad_norm"]) for row in map(json.loads, (suite.work / f).read_text().splitlines())] for f in ("plain.jsonl", "cut.jsonl")]
        expect(told[0] == told[1], f"stage {stage}: {told}")


suite.start()
suite.gpt("model.onnx", "--layers", 2, "--hidden", 24, "--heads", 2, "--vocab", 50, "--seq", 8, "--dynamic")  # sizes that end within rows
tokens = np.random.default_rng(1).integers(0, 50, (8, 9))
save_file({"input_ids": np.ascontiguousarray(tokens[:, :-1]), "labels": np.ascontiguousarray(tokens[:, 1:])}, suite.work / "data.safetensors")
suite.check("groups: AdamW by each parameter's hyper-parameters", adamw)
suite.check("groups: what applies is said", said)
suite.check("groups: one rank", stages, 1)
suite.check("groups: one rank, clipped", stages, 1, "clip")
suite.check("groups: stages of two ranks", stages, 2)
suite.check("groups: stages of two ranks, clipped", stages, 2, "clip")
suite.check("groups: SGD, stages of two ranks", stages, 2, "sgd")
for world in (1, 2):
    suite.check(f"groups: cut updates, {world} ranks", cut, world)
    suite.check(f"groups: cut updates, clipped, {world} ranks", cut, world, "--clip", 0.5)
suite.check("groups: stages of two ranks for cuda", stages, 2, "cuda")
for precision in ("f32", "bf16"):
    suite.check(f"groups: cut updates for cuda, {precision}", lambda: cut(1, zeroc=("--target", "cuda", "--precision", precision)))
suite.finish()
