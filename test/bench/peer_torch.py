#!/usr/bin/env python3
"""The same training step in PyTorch: GPT-2 as transformers has it, random weights, f32 (or bf16 by autocast), fused AdamW. Driven by test/bench/gpt2.py over pipes.

Each line on stdin is a number of steps to take; the answer is one JSON line: {"seconds": [...], "loss": x, "peak": bytes resident at most}.
"""
import argparse
import json
import resource
import sys
import time

p = argparse.ArgumentParser(description=__doc__)
for name, default in dict(layers=12, hidden=768, heads=12, vocab=50257, positions=1024, batch=4, seq=64, threads=2).items():
    p.add_argument(f"--{name}", type=int, default=default)
p.add_argument("--mode", choices=("eager", "compile"), default="eager")
p.add_argument("--precision", choices=("f32", "bf16"), default="f32")
a = p.parse_args()

import torch  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

torch.set_num_threads(a.threads)
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=a.vocab, n_positions=a.positions, n_embd=a.hidden, n_layer=a.layers, n_head=a.heads,
                                   resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False))
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
forward = torch.compile(model) if a.mode == "compile" else model
ids = torch.randint(0, a.vocab, (a.batch, a.seq))
labels = torch.randint(0, a.vocab, (a.batch, a.seq))


def step():
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
        logits = forward(ids).logits
    loss = torch.nn.functional.cross_entropy(logits.float().view(-1, a.vocab), labels.view(-1))
    loss.backward()
    optimizer.step()
    return loss.item()


for line in sys.stdin:
    seconds, loss = [], None
    for _ in range(int(line)):
        begin = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": seconds, "loss": loss, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)
