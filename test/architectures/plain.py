#!/usr/bin/env python3
"""Published architectures as PyTorch's exporters write them when nobody tells them to train, by hand.

usage: test/architectures/plain.py dynamo|torchscript [--only NAME[,NAME]] [--symbolic]

Each model of run.py is exported by torch.onnx.export with its defaults, which fold, merge and rename parameters: weights are transposed, position tables cut to
the rows that are read, constants of the model stand beside them under names like theirs. A row holds if five losses of AdamW agree to 1e-4 with PyTorch's, where
parameters that the file no longer has are frozen. All parameters are moved by noise first, so that no two are equal; weight decay, which acts on
what was folded into a parameter (1 + w), is 0. Needs what run.py needs.
"""
import argparse
import sys

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from safetensors.numpy import save_file

from run import RATE, STEPS, Fails, bound, export, hold, huggingface, losses_within, program, samples, set_arguments, trained_by_torch


def exported(config, task, exporter, symbolic, work):
    """(arguments, the model and its task), or Fails."""
    set_arguments(config, task, False, work)
    a = export.arguments()
    try:
        model, task, _ = huggingface.load(a, "sdpa")
    except ValueError:
        model, task, _ = huggingface.load(a, "eager")
    random = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=random) * 0.02)
    inputs, axes = huggingface.example(a, model, task)
    module = huggingface.one_output(model, list(inputs), task, exporter).eval()
    how = dict(dynamo=True, verbose=False) if exporter == "dynamo" else dict(dynamo=False, opset_version=17)
    if symbolic and exporter == "dynamo":
        how["dynamic_shapes"] = (tuple({axis: torch.export.Dim.DYNAMIC for axis in axes[name]} for name in inputs),)
    elif symbolic:
        how["dynamic_axes"] = axes
    try:
        with export.quiet(), torch.no_grad():
            torch.onnx.export(module, tuple(inputs.values()), str(work / "model.onnx"), input_names=list(inputs), output_names=["logits"], **how)
    except Exception as e:  # exporters raise whatever the model made them stumble over
        raise Fails(f"not exported: {export.reason(e)[:120]}")
    return a, model, task


def is_in(p, tensors):
    """Whether a parameter is in the file: as it is, transposed or otherwise moved, plus one, or in some of its rows."""
    elements, columns = np.sort(p.ravel()), p.shape[-1] if p.ndim else 1
    for t in tensors:
        if t.size == p.size and (np.array_equal(np.sort(t.ravel()), elements) or np.array_equal(t.ravel(), (1 + p).astype(np.float32).ravel())):
            return True
        if p.ndim > 1 and 0 < t.size < p.size and t.ndim > 1 and t.shape[-1] == columns:
            rows, all_rows = t.reshape(-1, columns), p.reshape(-1, columns)
            if any(np.array_equal(rows, all_rows[first:first + len(rows)]) for first in range(min(3, len(all_rows)))):
                return True
    return False


def compare(config, task, exporter, symbolic, work):
    a, model, task = exported(config, task, exporter, symbolic, work)
    data = samples(a, model, task)
    save_file(data, work / "data.safetensors")
    graph = onnx.load(work / "model.onnx").graph
    tensors = [numpy_helper.to_array(i) for i in graph.initializer if i.data_type == onnx.TensorProto.FLOAT]
    gone = [name for name, p in model.named_parameters() if not is_in(p.detach().numpy(), tensors)]
    for name, p in model.named_parameters():
        p.requires_grad_(name not in gone)
    program("zeroc", "-q", "model.onnx", "-o", "plan.bin", "--loss", "mse" if task == "encoder" else "cross_entropy", *bound(work), cwd=work)
    program("zerorun", "plan.bin", "--data", "data.safetensors", "--steps", STEPS, "--lr", RATE, "--weight-decay", "0", "--threads", "1", "--metrics", "metrics.jsonl", cwd=work)
    off = losses_within(trained_by_torch(model, task, data, decay=0)[0], work / "metrics.jsonl")
    if off > 1e-4:
        raise Fails(f"losses differ by {off:.1e}" + (f"; not in the file: {len(gone)} parameters such as {gone[0]}" if gone else ""))
    return f"losses within {off:.0e}" + (f", {len(gone)} parameters not in the file" if gone else "")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("exporter", choices=("dynamo", "torchscript"))
    p.add_argument("--only", metavar="NAME[,NAME]")
    p.add_argument("--symbolic", action="store_true", help="symbolic batch and sequence")
    options = p.parse_args()
    return hold(lambda config, task, work: compare(config, task, options.exporter, options.symbolic, work), options.only, "plain exports hold")


if __name__ == "__main__":
    sys.exit(main())
