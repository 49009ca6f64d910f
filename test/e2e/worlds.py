#!/usr/bin/env python3
"""Worlds that divide nothing evenly, with more ranks than cores and heads: the same bits at every stage, and one rank's gradients."""
import numpy as np
from safetensors.numpy import load_file, save_file

from harness import Suite, expect

STEPS = 4
suite = Suite(__doc__)


def prepare():
    suite.gpt("model.onnx", "--layers", "2", "--hidden", "24", "--heads", "3", "--vocab", "37", "--seq", "7", "--dynamic")
    random = np.random.default_rng(0)
    tokens = random.integers(0, 37, (53, 8))
    labels = np.where(random.random((53, 7)) < 0.2, -100, tokens[:, 1:])
    save_file({"input_ids": np.ascontiguousarray(tokens[:, :7]), "labels": np.ascontiguousarray(labels)}, suite.work / "data.safetensors")


def trained(name, world, *flags):
    """Gradients of the first step and the weights after the last."""
    suite.zeroc("model.onnx", f"{name}.plan", "--bind", "batch=1,seq=7", "-q", *flags)
    suite.zerorun(f"{name}.plan", "--data", "data.safetensors", "--steps", STEPS, "--lr", "1e-2", "--threads", 1,
                  "--gradients", f"{name}-g.safetensors", "--export", f"{name}-w.safetensors", world=world)
    return load_file(suite.work / f"{name}-g.safetensors"), load_file(suite.work / f"{name}-w.safetensors")


def one_world(ranks, stages):
    alone, _ = trained(f"alone-{ranks}", 1, "--accumulate", ranks)
    first, worst = None, 0.0
    for stage in stages:
        gradients, weights = trained(f"{ranks}-{stage}", ranks, "--world", ranks, "--stage", stage)
        first = first or (gradients, weights)
        for ours, theirs in zip((gradients, weights), first):
            different = [n for n in ours if ours[n].tobytes() != theirs[n].tobytes()]
            expect(not different, f"stage {stage} differs from stage {stages[0]} in {len(different)} tensors, as in {different[:1]}")
        worst = max([worst, *(np.abs(gradients[n] - alone[n]).max() / max(np.abs(alone[n]).max(), 1e-8) for n in alone)])
        expect(worst < 1e-5, f"at stage {stage} a gradient is off by {worst:.1e} from one rank's")
    return f"gradients within {worst:.0e} of one rank's"


suite.start()
prepare()
suite.check("worlds: 3 ranks, stages 0 to 3", one_world, 3, (0, 1, 2, 3))
suite.check("worlds: 5 ranks, stages 1 and 3", one_world, 5, (1, 3))
suite.check("worlds: 16 ranks, stages 0 and 3", one_world, 16, (0, 3))
suite.finish()
