#!/usr/bin/env python3
"""Hold the gradients that the compiler derives against PyTorch's, without a plan: reference interpreter on @train.

usage: check_gradients.py --bin BUILD/bin --corpus DIR [--only NAME[,NAME]] [--variants SUBSTR] [--plain]
Each corpus folder holds manifest.json, batches.npz, ref.json and grads_step0.safetensors. Prints one line per export that does
not hold and, last, 'N of M exports hold'; exit 0 only when all hold.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

parser = argparse.ArgumentParser()
parser.add_argument("--bin", required=True)
parser.add_argument("--corpus", required=True)
parser.add_argument("--only")
parser.add_argument("--variants", default="")
parser.add_argument("--plain", action="store_true", help="without the raising passes")
parser.add_argument("--verbose", action="store_true")
args = parser.parse_args()


def transformed(gradient, how):
    """PyTorch's gradient as the initializer holds it; None where it cannot be said."""
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


def compare(found, export, wanted, untied, reference, tied_apart):
    bad, worst = [], 0.0
    for name, how in export["trainable"].items():
        own = tied_apart and "untied_grad_key" in how
        source = untied.get(how["untied_grad_key"]) if own else wanted.get(how["torch"])
        if source is None or reference["tensors"].get(how["torch"], {}).get("noise_gradient"):
            continue
        if name not in found:
            if not any(n in found and o["torch"] == how["torch"] for n, o in export["trainable"].items()):
                bad.append(f"{name} missing")
            continue
        expected = transformed(source, how)
        if expected is None:
            continue
        if found[name].shape != expected.shape:
            bad.append(f"{name} {found[name].shape} not {expected.shape}")
            continue
        size = np.linalg.norm(expected.astype(np.float64))
        off = np.linalg.norm(found[name].astype(np.float64) - expected)
        worst = max(worst, off / max(size, 1e-6))
        if off > 1e-3 * size + 1e-7:
            bad.append(f"{name} off by {off / max(size, 1e-30):.1e}")
    return bad, worst


good = total = 0
for folder in sorted(pathlib.Path(args.corpus).resolve().iterdir()):
    if not (folder / "manifest.json").exists() or (args.only and folder.name not in args.only.split(",")):
        continue
    manifest = json.loads((folder / "manifest.json").read_text())
    reference = json.loads((folder / manifest["files"]["ref"]).read_text())
    batches = np.load(folder / manifest["files"]["batches"])
    wanted = load_file(folder / manifest["files"]["grads"])
    untied_file = folder / "grads_step0_untied.safetensors"
    untied = load_file(untied_file) if untied_file.exists() else {}
    for export in manifest["exports"]:
        usable = export.get("export_ok") and (folder / export["file"]).exists() and export.get("training_reference")
        if not usable or args.variants not in export["variant"] or export.get("logits_ok") is False:
            continue
        total += 1
        hfloss, merged = bool(export.get("hfloss")), export["training_reference"].startswith("none")
        adjusted = export.get("adjusted_reference")
        tied_apart = bool(adjusted and adjusted.get("untied"))
        inputs = {i["name"]: batches["0/" + i["name"]] for i in export["inputs"] if "0/" + i["name"] in batches.files}
        if hfloss:
            scale = 1.0
        else:
            inputs["labels"] = batches["0/targets"]
            scale = 1.0 / max(1, int((inputs["labels"] != -100).sum()))
        inputs["loss_scale"] = np.array([scale], np.float32)
        binds = {s: r for i in export["inputs"] for s, r in zip(i["shape"], batches["0/" + i["name"]].shape) if isinstance(s, str)}
        with tempfile.TemporaryDirectory() as work:
            save_file({k: np.ascontiguousarray(v) for k, v in inputs.items()}, f"{work}/in.safetensors")
            command = [f"{args.bin}/evaluate_training", str(folder / export["file"]), f"{work}/in.safetensors", f"{work}/out.safetensors"]
            command += ["--loss", "output:" + export.get("loss_output", "loss")] if hfloss else []
            command += ["--tie", "off"] if tied_apart else []
            command += ["--bind", ",".join(f"{k}={v}" for k, v in binds.items())] if binds else []
            command += ["--plain"] if args.plain else []
            ran = subprocess.run(command, capture_output=True, text=True)
            problems = []
            if ran.returncode:
                problems.append(next((l for l in ran.stderr.splitlines() if "error" in l), ran.stderr.strip() or str(ran.returncode))[:300])
            else:
                found = load_file(f"{work}/out.safetensors")
                loss, curve = float(found.pop("loss")), (adjusted or reference)["loss_curve"]
                if abs(loss - curve[0]) > 1e-4 * max(1, curve[0]):
                    problems.append(f"loss {loss} not {curve[0]}")
                worst = 0.0
                if not merged:
                    bad, worst = compare(found, export, wanted, untied, reference, tied_apart)
                    if bad:
                        problems.append(f"{len(bad)} gradients wrong: {', '.join(bad[:3])}")
                    extra = sorted(set(found) - set(export["trainable"]))
                    if extra:
                        problems.append(f"{len(extra)} tensors trained that are no parameters: {extra[:3]}")
        good += not problems
        if problems or args.verbose:
            print(f"{folder.name}/{export['variant']}: {'; '.join(problems) or f'holds, worst {worst:.1e}'}", flush=True)
print(f"{good} of {total} exports hold")
sys.exit(0 if total and good == total else 1)
