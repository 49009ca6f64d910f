#!/usr/bin/env python3
"""Layers that are one, start equal or are copies: as many parameters as PyTorch has, and its losses, whatever its exporters merged, folded
and renamed. Equal and no reason to be one is said."""
import json

import numpy as np
import onnx
from onnx import helper, numpy_helper
from safetensors.numpy import load_file

from harness import ROOT, Suite, expect, relative

DATA = ROOT / "test" / "e2e" / "data" / "ties"
REFERENCES = json.loads((DATA / "references.json").read_text())["models"]
APART = {"copied", "towers", "state_space"}  # what starts equal in them is not one
suite = Suite(__doc__)


def train(file, model, *flags):
    """Compiled and trained: what zeroc says on stderr, the number of parameters, the losses."""
    loss = "mse" if model == "autoencoder" else "cross_entropy"
    said = suite.zeroc(DATA / f"{file}.onnx", "plan.bin", "--loss", loss, *flags).stderr
    plan = json.loads(suite.run([suite.bin / "zero-inspect", "plan.bin", "--json"]).stdout)
    want = REFERENCES[model]["loss"]
    suite.zerorun("plan.bin", "--data", DATA / f"{model}.safetensors", "--steps", len(want), "--lr", "1e-2", "--metrics", "m.jsonl",
                  "--export", "trained.safetensors")
    return said, plan["parameter_elements"], suite.losses("m.jsonl")


def as_pytorch(file, model, reference, *flags):
    said, parameters, losses = train(file, model, *flags)
    want = REFERENCES[reference]
    expect(parameters == want["parameters"], f"{parameters:,} parameters are trained, PyTorch trains {want['parameters']:,}")
    worst = max(relative(a, b) for a, b in zip(losses, want["loss"]))
    expect(len(losses) == len(want["loss"]) and worst < 1e-5, f"losses {losses}, PyTorch's are {want['loss']}")
    expect(("start equal and are trained apart" in said) == (model in APART and not flags), f"zeroc says {said}")
    return f"{parameters:,} parameters, losses within {worst:.0e}"


def in_constants():
    """Weights that stand in Constant nodes, as Paddle's exporter leaves them, train like initializers and go back to where they were."""
    model = onnx.load(str(DATA / "applied_ts.onnx"))
    weights = [t for t in model.graph.initializer if numpy_helper.to_array(t).dtype == np.float32]
    for tensor in weights:
        model.graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))
        model.graph.initializer.remove(tensor)
    onnx.save(model, str(suite.work / "constants.onnx"))
    suite.zeroc("constants.onnx", "plan.bin")
    want = REFERENCES["applied"]["loss"]
    run = ["plan.bin", "--data", DATA / "applied.safetensors", "--steps", len(want), "--lr", "1e-2"]
    suite.zerorun(*run, "--metrics", "m.jsonl", "--export", "trained.onnx")
    suite.zerorun(*run, "--export", "trained.safetensors")
    worst = max(relative(a, b) for a, b in zip(suite.losses("m.jsonl"), want))
    expect(worst < 1e-5, f"losses {suite.losses('m.jsonl')}, PyTorch's are {want}")
    trained = load_file(suite.work / "trained.safetensors")
    back = {n.output[0]: numpy_helper.to_array(n.attribute[0].t) for n in onnx.load(str(suite.work / "trained.onnx")).graph.node if n.op_type == "Constant"}
    expect(trained and all(np.array_equal(back[n], v) for n, v in trained.items()), "the exported model has other weights")
    return f"{len(trained)} tensors, losses within {worst:.0e}"


suite.start()
for name in REFERENCES:
    for exporter in ("dynamo", "ts"):
        suite.check(f"ties: {name}, {exporter}", as_pytorch, f"{name}_{exporter}", name, name)
for exporter in ("dynamo", "ts"):
    suite.check(f"ties: copied layers that --tie makes one, {exporter}", as_pytorch, f"copied_{exporter}", "copied", "applied", "--tie", r"layers\.\d")
    suite.check(f"ties: towers that --tie makes one, {exporter}", as_pytorch, f"towers_{exporter}", "towers", "siamese", "--tie", r"^(left|right)\.")
suite.check("ties: weights in Constant nodes", in_constants)
suite.finish()
