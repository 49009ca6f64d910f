#!/usr/bin/env python3
"""The same training step in DeepSpeed, ZeRO-3 with parameters and optimizer state on disk (its NVMe engine), one rank on its CPU accelerator.

Needs torch, transformers, deepspeed and libaio-dev; its first run compiles DeepSpeed's own extensions, which takes minutes. Prints one JSON line:
{"seconds": [...], "loss": x, "peak": bytes resident at most}.

usage: test/bench/peer_deepspeed.py --disk DIR [--batch 4] [--seq 64] [--steps 5] [--warm 2] [--precision f32|bf16]
"""
import argparse
import json
import os
import sys
import time

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name, default in dict(layers=12, hidden=768, heads=12, vocab=50257, positions=1024, batch=4, seq=64, threads=2, steps=5, warm=2).items():
    p.add_argument(f"--{name}", type=int, default=default)
p.add_argument("--disk", required=True, help="folder on the disk to use")
p.add_argument("--precision", choices=("f32", "bf16"), default="f32")
a = p.parse_args()

# What DeepSpeed prints goes to standard error: the answer alone is on standard output.
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
os.environ.update(DS_ACCELERATOR="cpu", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29533")
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]  # ninja, for its extensions

import deepspeed  # noqa: E402
import torch  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

from turns import resident_peak  # noqa: E402

torch.set_num_threads(a.threads)
torch.manual_seed(0)
tier = {"device": "nvme", "nvme_path": a.disk, "pin_memory": False}
settings = {
    "train_micro_batch_size_per_gpu": a.batch,
    "zero_optimization": {"stage": 3, "offload_optimizer": tier, "offload_param": tier},
    "zero_allow_untested_optimizer": True,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
    "bf16": {"enabled": a.precision == "bf16"},
}
deepspeed.init_distributed(dist_backend="gloo")
model = GPT2LMHeadModel(GPT2Config(vocab_size=a.vocab, n_positions=a.positions, n_embd=a.hidden, n_layer=a.layers, n_head=a.heads,
                                   resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False))
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
ids = torch.randint(0, a.vocab, (a.batch, a.seq))
labels = torch.randint(0, a.vocab, (a.batch, a.seq))
seconds, loss = [], None
for step in range(a.warm + a.steps):
    begin = time.perf_counter()
    loss = torch.nn.functional.cross_entropy(engine(ids).logits.float().view(-1, a.vocab), labels.view(-1))
    engine.backward(loss)
    engine.step()
    if step >= a.warm:
        seconds.append(time.perf_counter() - begin)
print(json.dumps({"seconds": seconds, "loss": loss.item(), "peak": resident_peak()}), file=answer, flush=True)
os._exit(0)  # its threads of asynchronous I/O may wait for ever
