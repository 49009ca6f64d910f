#!/usr/bin/env python3
"""Prints how far PyTorch's own training in bf16 is from its training in f32: what the bounds of check_references.py and precision.py go by.

GPT-2 of models/tiny, ten steps, under autocast, and with all parameters and activations in bf16 beside masters in f32.
Needs torch (1.13 or later) and onnx.

usage: python test/e2e/make_bf16_bounds.py
"""
import pathlib

import numpy as np
import onnx
import torch
import torch.nn.functional as F

GPT2 = pathlib.Path(__file__).resolve().parents[2] / "models" / "tiny" / "gpt2"
HEADS, LAYERS, STEPS = 4, 2, 10
graph = onnx.load(GPT2 / "dynamo_eager_noopt.onnx").graph
weights = {i.name: torch.tensor(onnx.numpy_helper.to_array(i)) for i in graph.initializer if i.name.startswith(("transformer.", "lm_head."))}
stored = np.load(GPT2 / "batches.npz")
batches = [(torch.tensor(stored[f"{s}/input_ids"]), torch.tensor(stored[f"{s}/targets"])) for s in range(STEPS)]


def logits(w, tokens):
    batch, length = tokens.shape
    x = F.embedding(tokens, w["lm_head.weight"]) + w["transformer.wpe.weight"][:length]
    width = x.shape[-1]
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    norm = lambda x, name: F.layer_norm(x, (width,), w[f"{name}.weight"], w[f"{name}.bias"])
    dense = lambda x, name: F.linear(x, w[f"{name}.weight"].t(), w[f"{name}.bias"])
    heads = lambda x: x.view(batch, length, HEADS, width // HEADS).transpose(1, 2)
    for layer in range(LAYERS):
        h = f"transformer.h.{layer}"
        q, k, v = (heads(part) for part in dense(norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn").split(width, -1))
        scores = (q @ k.transpose(-1, -2) / (width // HEADS) ** 0.5).masked_fill(future, float("-inf"))
        x = x + dense((F.softmax(scores, -1) @ v).transpose(1, 2).reshape(x.shape), f"{h}.attn.c_proj")
        x = x + dense(F.gelu(dense(norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc"), approximate="tanh"), f"{h}.mlp.c_proj")
    return F.linear(norm(x, "transformer.ln_f"), w["lm_head.weight"])


def train(how):
    masters = {name: value.clone().requires_grad_() for name, value in weights.items()}
    optimizer = torch.optim.AdamW(masters.values(), lr=1e-3, weight_decay=0.01)
    losses, gradients = [], None
    for tokens, targets in batches:
        optimizer.zero_grad()
        used = {name: value.to(torch.bfloat16) for name, value in masters.items()} if how == "all bf16" else masters
        with torch.autocast("cpu", torch.bfloat16, enabled=how == "autocast"):
            out = logits(used, tokens)
        loss = F.cross_entropy(out.float().flatten(0, 1), targets.flatten())
        loss.backward()
        losses.append(loss.item())
        gradients = gradients or {name: value.grad.clone() for name, value in masters.items()}
        optimizer.step()
    return np.array(losses), gradients


single, wanted = train("f32")
for how in ("autocast", "all bf16"):
    losses, gradients = train(how)
    off = abs(losses - single)
    worst, name = max((((gradients[n] - g).norm() / g.norm()).item(), n) for n, g in wanted.items())
    print(f"{how}: first loss off by {off[0]:.1e} of {single[0]:.2f}, any by {off.max():.1e}; gradients by {worst:.1e} of their norm ({name})")
