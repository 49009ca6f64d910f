#!/usr/bin/env python3
"""Models of other libraries than Transformers, with random weights, by both of PyTorch's exporters through zeroc to zerorun, held against PyTorch.

usage: test/architectures/libraries.py [--only TEXT[,TEXT]] [--exporters dynamo,torchscript] [--table FILE.md]

Each model makes five AdamW steps in PyTorch and in zerorun. It holds if every loss agrees to 1e-4, if as many numbers are trained, and if the first step's
gradients agree to 1e-3 of their norm where the newer exporter has kept a parameter's name (the older one merges what starts equal under one of the names).
Needs torch, onnxscript and safetensors, and the libraries of library_models.py; set-up does not install these, so this runs by hand: some seconds for each model.
"""
import argparse
import contextlib
import io
import json
import pathlib
import re
import sys
import tempfile
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file, save_file

import library_models
from run import Fails, gradients_within, losses_within, program, write_table

STEPS, RATE = 5, 1e-4


def exported(model, batch, exporter, path):
    """Writes the forward pass; a model that the exporter does not take says so."""
    arguments = tuple(torch.from_numpy(value) for value in batch.values())
    how = {"dynamo": {"dynamo": True, "optimize": False, "external_data": False},
           "torchscript": {"dynamo": False, "opset_version": 17, "do_constant_folding": False}}[exporter]
    with torch.no_grad():
        model(*arguments)  # what a model keeps from its first call must not come from the exporter's
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, arguments, str(path), input_names=list(batch), **how)
    except Exception as e:
        raise Fails(f"not exported: {type(e).__name__}") from e


def trained_by_torch(model, inputs, labels):
    """(losses, gradients of the first step by name)."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    losses, gradients = [], {}
    for step in range(STEPS):
        out, wanted = model(*(torch.from_numpy(value[step]) for value in inputs.values())), torch.from_numpy(labels[step])
        loss = F.mse_loss(out, wanted) if wanted.is_floating_point() else F.cross_entropy(out.flatten(0, -2), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        gradients = gradients or {n: p.grad.numpy().copy() for n, p in model.named_parameters(remove_duplicate=False) if p.grad is not None}
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients


def compare(build, exporter, work):
    """(numbers trained, worst relative difference of a loss, of a gradient, gradients compared)."""
    torch.manual_seed(0)
    model, inputs, labels = build()
    model.eval()
    exported(model, {name: value[0] for name, value in inputs.items()}, exporter, work / "model.onnx")
    save_file({name: np.concatenate(value) for name, value in (inputs | {"labels": labels}).items()}, work / "data.safetensors")
    compiling = ["-q", "model.onnx", "-o", "plan.bin", "--loss", "mse" if labels.dtype == np.float32 else "cross_entropy"]
    program("zeroc", *compiling, cwd=work)
    taken = {p["name"] for p in json.loads(program("zero-inspect", "plan.bin", "--json", cwd=work))["parameters"]}
    frozen = [f"--freeze=^{re.escape(n)}$" for n, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad and n in taken]
    if frozen:
        program("zeroc", *compiling, *frozen, cwd=work)
    program("zerorun", "plan.bin", "--data", "data.safetensors", "--steps", STEPS, "--lr", RATE, "--weight-decay", "0.01", "--threads", "1",
            "--metrics", "metrics.jsonl", "--gradients", "gradients.safetensors", cwd=work)
    losses, gradients = trained_by_torch(model, inputs, labels)
    found = load_file(work / "gradients.safetensors")
    numbers = sum(g.size for g in found.values())
    wanted = sum(p.numel() for p in model.parameters() if p.grad is not None)
    moved = sum(p.numel() for p in model.parameters() if p.grad is not None and p.grad.any())  # a head of a layer whose result is not used has zeros
    if numbers not in (wanted, moved):
        raise Fails(f"{numbers:,} numbers are trained, and {wanted:,} in PyTorch")
    off = losses_within(losses, work / "metrics.jsonl")
    worst, compared = gradients_within(gradients, found if exporter == "dynamo" else {})
    if off > 1e-4 or worst > 1e-3:
        raise Fails(f"losses differ by {off:.1e}, gradients by {worst:.1e} of their norm")
    return numbers, off, worst, compared


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", metavar="TEXT[,TEXT]", default="")
    p.add_argument("--exporters", metavar="NAME[,NAME]", default="dynamo,torchscript")
    p.add_argument("--table", metavar="FILE.md", help="write the rows as a table")
    options = p.parse_args()
    rows, held, tried = [], 0, 0
    for name, build in library_models.MODELS.items():
        if not any(text in name for text in options.only.split(",")):
            continue
        for exporter in options.exporters.split(","):
            with tempfile.TemporaryDirectory() as work:
                try:
                    numbers, off, worst, compared = compare(build, exporter, pathlib.Path(work))
                    row, held = f"| {name} | {numbers:,} | {exporter} | {off:.0e} | " + (f"{worst:.0e} ({compared}) |" if compared else "|"), held + 1
                except Fails as e:
                    row = f"| {name} | | {exporter} | {e} | |"
            tried += "not exported" not in row
            rows.append(row)
            print(row, flush=True)
    print(f"{held} of {tried} exports hold")
    if options.table:
        write_table(options.table, "| model | parameters | exporter | losses within | gradients within (compared) |", rows)
    return held != tried


if __name__ == "__main__":
    sys.exit(main())
