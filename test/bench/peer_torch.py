#!/usr/bin/env python3
"""The same training step in PyTorch: a model as transformers has it, random weights, f32 (or bf16 by autocast), fused AdamW. Driven by turns.py over pipes.

Each line on stdin is a number of steps to take; the answer is one JSON line: {"seconds": [...], "loss": x, "peak": bytes resident at most}.
"""
import argparse
import json
import pathlib
import sys
import time

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("model", metavar="config.json")
for name, default in dict(batch=4, seq=64, threads=2).items():
    p.add_argument(f"--{name}", type=int, default=default)
p.add_argument("--mask", action="store_true", help="give language models an attention_mask")
p.add_argument("--mode", choices=("eager", "compile"), default="eager")
p.add_argument("--precision", choices=("f32", "bf16"), default="f32")
# What models/huggingface.py asks of models/export.py.
p.set_defaults(task=None, labels=None, image_size=None, static=True, train_mode=False, no_weights=False, seed=0)
a = p.parse_args()

import torch  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "models"))
import huggingface  # noqa: E402
from turns import resident_peak  # noqa: E402

torch.set_num_threads(a.threads)
try:
    model, task, _ = huggingface.load(a, "sdpa")
except ValueError:  # transformers has only the plain attention of it
    model, task, _ = huggingface.load(a, "eager")
if getattr(model.config, "_experts_implementation", None):
    model.config._experts_implementation = "grouped_mm"  # transformers' own choice; huggingface.py has one that can be exported
model.train()
inputs, _ = huggingface.example(a, model, task)
labels = torch.randint(0, model.config.num_labels, (a.batch,)) if task == "image" else torch.randint(0, model.config.vocab_size, (a.batch * a.seq,))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def loss_of(inputs):
    with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
        logits = model(**inputs).logits
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, -2), labels)


forward = torch.compile(loss_of) if a.mode == "compile" else loss_of  # the loss, too, which is faster


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = forward(inputs)
    loss.backward()
    optimizer.step()
    return loss.item()


for line in sys.stdin:
    seconds, loss = [], None
    for _ in range(int(line)):
        begin = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": seconds, "loss": loss, "peak": resident_peak()}), flush=True)
