#!/usr/bin/env python3
"""Hold the gradients that the compiler derives against PyTorch's, without a plan: reference interpreter on @train.

usage: check_gradients.py --corpus DIR [--bin BUILD/bin] [--only NAME[,NAME]] [--variants SUBSTR] [--plain] [--verbose]
Each folder of the corpus holds models, batches.npz and what PyTorch computed, as models/tiny/README.md says (or with a manifest.json).
Prints one line per export that does not hold and, last, 'N of M exports hold'; exit 0 only when all hold.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file


def tensors(path):
    return load_file(path) if path.exists() else {}


def tiny_exports(folder):
    """Exports of a folder with reference.json, in the form check() wants."""
    record = json.loads((folder / "reference.json").read_text())
    for export in record["exports"]:
        yield dict(file=export["file"], inputs=export["inputs"], loss=export["loss"], first_loss=record["loss_curve"][0],
                   trainable=export["trainable"], noise=set(record["noise_gradient"]), tie=True, untied={},
                   gradients=tensors(folder / "gradients.safetensors"))


def manifest_exports(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    reference = json.loads((folder / manifest["files"]["ref"]).read_text())
    noise = {name for name, t in reference["tensors"].items() if t.get("noise_gradient")}
    for export in manifest["exports"]:
        usable = export.get("export_ok") and (folder / export["file"]).exists() and export.get("training_reference")
        if not usable or export.get("logits_ok") is False:
            continue
        adjusted = export.get("adjusted_reference")
        merged = export["training_reference"].startswith("none")  # several parameters of PyTorch in one initializer
        yield dict(file=export["file"], inputs=export["inputs"],
                   loss="output:" + export.get("loss_output", "loss") if export.get("hfloss") else "cross_entropy",
                   first_loss=(adjusted or reference)["loss_curve"][0], trainable=None if merged else export["trainable"], noise=noise,
                   tie=not (adjusted and adjusted.get("untied")), untied=tensors(folder / "grads_step0_untied.safetensors"),
                   gradients=tensors(folder / manifest["files"]["grads"]))


def as_initializer(gradient, how):
    """PyTorch's gradient in the layout of the initializer; None where it cannot be said."""
    kind = how.get("transform", "identity")
    if kind.startswith("transpose"):
        return np.transpose(gradient, how.get("perm", [1, 0]))
    if kind.startswith("slice"):
        return gradient[how["start"]:how["stop"]].reshape(how["shape"]) if "start" in how else None
    if kind.startswith("folded"):
        return None
    if kind.startswith("reshape"):
        return gradient.reshape(how["shape"]) if gradient.size == np.prod(how["shape"]) else None
    return gradient


def compare(found, export):
    """Sentences about wrong gradients, and the largest relative error."""
    bad, worst = [], 0.0
    for name, how in export["trainable"].items():
        apart = not export["tie"] and "untied_grad_key" in how
        source = export["untied"].get(how["untied_grad_key"]) if apart else export["gradients"].get(how["torch"])
        if name not in found and not any(n in found and o["torch"] == how["torch"] for n, o in export["trainable"].items()):
            bad.append(f"{name} missing")
        expected = as_initializer(source, how) if source is not None else None
        if expected is None or name not in found or how["torch"] in export["noise"]:
            continue
        if found[name].shape != expected.shape:
            bad.append(f"{name} {found[name].shape} not {expected.shape}")
            continue
        size = np.linalg.norm(expected.astype(np.float64))
        off = np.linalg.norm(found[name].astype(np.float64) - expected)
        worst = max(worst, off / max(size, 1e-6))
        if off > 1e-4 * size + 1e-7:
            bad.append(f"{name} off by {off / max(size, 1e-30):.1e}")
    extra = sorted(set(found) - set(export["trainable"]))
    return bad + [f"{name} is no parameter" for name in extra], worst


def check(folder, export, binaries, plain):
    batches = np.load(folder / "batches.npz")
    inputs = {i["name"]: batches["0/" + i["name"]] for i in export["inputs"]}
    scale = 1.0
    if export["loss"] == "cross_entropy":
        inputs["labels"] = batches["0/targets"]
        scale = 1.0 / max(1, int((inputs["labels"] != -100).sum()))
    inputs["loss_scale"] = np.array([scale], np.float32)
    binds = {s: n for i in export["inputs"] for s, n in zip(i["shape"], inputs[i["name"]].shape) if isinstance(s, str)}
    with tempfile.TemporaryDirectory() as work:
        save_file({k: np.ascontiguousarray(v) for k, v in inputs.items()}, f"{work}/in.safetensors")
        command = [f"{binaries}/evaluate_training", str(folder / export["file"]), f"{work}/in.safetensors", f"{work}/out.safetensors",
                   "--loss", export["loss"], "--tie", "on" if export["tie"] else "off"]
        command += ["--bind", ",".join(f"{k}={v}" for k, v in binds.items())] if binds else []
        command += ["--plain"] if plain else []
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            lines = ran.stderr.strip().splitlines() or [f"exit {ran.returncode}"]
            return [next((line for line in lines if "error" in line), lines[-1])[:300]], 0.0
        found = load_file(f"{work}/out.safetensors")
    loss, wanted = float(found.pop("loss")), export["first_loss"]
    problems = [] if abs(loss - wanted) <= 1e-5 * max(1, wanted) else [f"loss {loss} not {wanted}"]
    bad, worst = compare(found, export) if export["trainable"] is not None else ([], 0.0)
    if bad:
        problems.append(f"{len(bad)} gradients wrong: {', '.join(bad[:3])}")
    return problems, worst


parser = argparse.ArgumentParser()
parser.add_argument("--bin", default=pathlib.Path(shutil.which("evaluate_training") or "").parent, help="default: where PATH finds it")
parser.add_argument("--corpus", required=True)
parser.add_argument("--only")
parser.add_argument("--variants", default="")
parser.add_argument("--plain", action="store_true", help="without the raising passes")
parser.add_argument("--verbose", action="store_true")
args = parser.parse_args()

good = total = 0
for folder in sorted(pathlib.Path(args.corpus).resolve().iterdir()):
    if args.only and folder.name not in args.only.split(","):
        continue
    exports = tiny_exports if (folder / "reference.json").exists() else manifest_exports if (folder / "manifest.json").exists() else None
    for export in exports(folder) if exports else []:
        if args.variants not in export["file"]:
            continue
        total += 1
        problems, worst = check(folder, export, args.bin, args.plain)
        good += not problems
        if problems or args.verbose:
            print(f"{folder.name}/{export['file']}: {'; '.join(problems) or f'holds, largest error {worst:.1e}'}", flush=True)
print(f"{good} of {total} exports hold")
sys.exit(0 if total and good == total else 1)
