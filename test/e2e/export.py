#!/usr/bin/env python3
"""Trained weights go back into the ONNX file they came from: nothing else in it changes, and onnxruntime computes with it the loss that
zerorun reports for the next step."""
import json

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from safetensors.numpy import load_file, save_file

from harness import TINY, Suite, expect, relative

STEPS = 3
suite = Suite(__doc__)
onnxruntime.set_default_logger_severity(3)


def cross_entropy(logits, labels):
    x = logits.reshape(-1, logits.shape[-1]).astype(np.float64)
    y = labels.reshape(-1)
    top = x.max(1)
    losses = top + np.log(np.exp(x - top[:, None]).sum(1)) - x[np.arange(len(y)), np.maximum(y, 0)]
    return losses[y != -100].mean()


def same_but_for_weights(before, after, trained):
    """The two models are equal once the trained tensors' data is taken out; returns the trained tensors by name."""
    found = {}
    for model, keep in ((before, False), (after, True)):
        for tensor in model.graph.initializer:
            if tensor.name in trained:
                if keep:
                    found[tensor.name] = numpy_helper.to_array(tensor)
                for field in ("raw_data", "float_data"):
                    tensor.ClearField(field)
    expect(before == after, "more than the weights changed")
    return found


def round_trip(folder, export, world, stage):
    reference = json.loads((folder / "reference.json").read_text())
    batches = np.load(folder / "batches.npz")
    names = [i["name"] for i in export["inputs"]]
    data = {name: np.concatenate([batches[f"{s}/{name}"] for s in range(10)]) for name in names}
    if "labels" not in data:
        data["labels"] = np.concatenate([batches[f"{s}/targets"] for s in range(10)])
    save_file(data, suite.work / "data.safetensors")
    shape = batches[f"0/{names[0]}"].shape
    bind = ["--bind", f"batch={shape[0] // world},seq={shape[1]}"] if isinstance(export["inputs"][0]["shape"][0], str) else []
    suite.zeroc(folder / export["file"], "plan.bin", "--loss", export["loss"], "--world", world, "--stage", stage, *bind)
    run = ["--data", "data.safetensors", "--lr", "1e-3"]
    suite.zerorun("plan.bin", *run, "--steps", STEPS, "--export", "trained.onnx", world=world)
    suite.zerorun("plan.bin", *run, "--steps", STEPS, "--export", "trained.safetensors", world=world)
    suite.zerorun("plan.bin", *run, "--steps", STEPS + 1, "--metrics", "metrics.jsonl", world=world)

    after = onnx.load(str(suite.work / "trained.onnx"))
    weights = load_file(suite.work / "trained.safetensors")
    found = same_but_for_weights(onnx.load(str(folder / export["file"])), after, set(export["trainable"]))
    expect(set(weights) <= set(found), f"{min(set(weights) - set(found), default='')} is in the safetensors file and not in the model")
    expect(all(np.array_equal(found[n], w) for n, w in weights.items()), "the two exports hold different weights")
    for name in set(found) - set(weights):  # the other copies of tied matrices
        twins = [w for n, w in weights.items() if export["trainable"][n]["torch"] == export["trainable"][name]["torch"]]
        expect(any(np.array_equal(found[name], w) or np.array_equal(found[name], w.T) for w in twins), f"{name} was not written")

    session = onnxruntime.InferenceSession(str(suite.work / "trained.onnx"), providers=["CPUExecutionProvider"])
    feed = {name: batches[f"{STEPS}/{name}"] for name in names}
    out = session.run([session.get_outputs()[0].name], feed)[0]
    loss = float(out) if export["loss"].startswith("output:") else cross_entropy(out, batches[f"{STEPS}/targets"])
    reported = suite.losses("metrics.jsonl")[STEPS]
    expect(relative(loss, reported) < 1e-5, f"onnxruntime computes a loss of {loss}, zerorun {reported}")
    expect(relative(loss, reference["loss_curve"][STEPS]) < 0.05, f"a loss of {loss}, PyTorch's run had {reference['loss_curve'][STEPS]}")
    return f"{len(weights)} tensors, loss {loss:.4f}"


suite.start()
for path in sorted(TINY.glob("*/reference.json")):
    for export in json.loads(path.read_text())["exports"]:
        suite.check(f"export: {path.parent.name}/{export['file']}", round_trip, path.parent, export, 1, 0)
        if isinstance(export["inputs"][0]["shape"][0], str):
            suite.check(f"export: {path.parent.name}/{export['file']} from 2 ranks at stage 3", round_trip, path.parent, export, 2, 3)
suite.finish()
