#!/usr/bin/env python3
"""Adapters as PEFT saves them, through models/export.py, zeroc and zerorun and back into PEFT: trained beside a frozen model they have PyTorch's losses, and the
model that loads what zerorun exports of them (--only-trained) has the loss of PyTorch's own.

usage: test/architectures/adapters.py [--bin BUILD/bin] [--only LoRA]     by hand, with a Python that has torch, transformers, peft, onnx and onnxscript
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

import adapter_models

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS, LENGTH = 64, 16
STEPS = 3  # from the fourth on PyTorch's RandLoRA is as far from its own training in double precision
MORE = {"LoRA with a head": ["--tie", "off"]}  # that starts as a copy of the embedding
args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
args.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
args.add_argument("--only", default="")
args = args.parse_args()
transformers.logging.set_verbosity_error()


def run(work, *command):
    done = subprocess.run([str(c) for c in command], cwd=work, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1][:300])


def loaded(work, folder="adapter"):
    base = transformers.AutoModelForCausalLM.from_pretrained(work / "base", attn_implementation="eager")
    return peft.PeftModel.from_pretrained(base, work / folder, is_trainable=True).eval()


def holds(work, name, kind):
    torch.manual_seed(3)
    model = adapter_models.adapted(name, kind, WORDS, LENGTH)
    trained = "|".join(n.removeprefix("base_model.model.").replace(".", r"\.") for n, p in model.named_parameters(remove_duplicate=False) if p.requires_grad)
    model.save_pretrained(work / "adapter")
    model.unload().save_pretrained(work / "base")
    config = json.loads((work / "adapter/adapter_config.json").read_text())
    (work / "adapter/adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": str(work / "base")}))
    ids, labels = (torch.randint(0, WORDS, (2 * STEPS, LENGTH)) for _ in range(2))
    save_file({"input_ids": ids, "labels": labels}, work / "data.safetensors")
    run(work, sys.executable, ROOT / "models" / "export.py", "adapter", "-o", "model.onnx", "--attention", "eager")
    run(work, args.bin / "zeroc", "model.onnx", "-o", "plan.bin", "--bind", f"batch=2,seq={LENGTH}", "--freeze", ".", "--train", f"^({trained})$", *MORE.get(kind, []))
    run(work, args.bin / "zerorun", "plan.bin", "--data", "data.safetensors", "--steps", STEPS, "--lr", "1e-2", "--metrics", "metrics.jsonl",
        "--export", "trained.safetensors", "--only-trained")
    ours = [row["loss"] for row in map(json.loads, (work / "metrics.jsonl").read_text().splitlines()) if "loss" in row]
    model = loaded(work)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    loss_of = lambda model, step: torch.nn.functional.cross_entropy(model(input_ids=ids[2 * step:2 * step + 2]).logits.flatten(0, 1), labels[2 * step:2 * step + 2].flatten())
    theirs = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        optimizer.step()
        theirs.append(loss.item())
    again = loaded(work)
    unknown = again.base_model.model.load_state_dict(load_file(work / "trained.safetensors"), strict=False).unexpected_keys
    if unknown:
        raise RuntimeError(f"PEFT's model has no {unknown[0]}")
    last = (loss_of(again, 0).item(), loss_of(model, 0).item())
    far = max(abs(x - y) / abs(y) for x, y in [*zip(ours, theirs), last])
    if len(ours) != STEPS or far > 1e-4:
        raise RuntimeError(f"losses {ours} and {last[0]}, PyTorch's {theirs} and {last[1]}")
    return far


good = failed = 0
for name, kind in adapter_models.NAMES:
    if args.only not in f"{name} {kind}" or adapter_models.KINDS[kind][0] in adapter_models.WITHOUT_TARGETS[1:]:
        continue
    with tempfile.TemporaryDirectory() as work:
        try:
            print(f"ok {name}, {kind}: losses within {holds(pathlib.Path(work), name, kind):.0e}", flush=True)
            good += 1
        except Exception as error:  # of whichever program did not go on
            print(f"FAILED {name}, {kind}: {error}", flush=True)
            failed += 1
print(f"{good} of {good + failed} adapters hold")
sys.exit(failed > 0 or good == 0)
