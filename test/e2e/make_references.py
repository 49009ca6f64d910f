#!/usr/bin/env python3
"""Writes test/e2e/data: tiny models exported by PyTorch, samples for them, and what PyTorch itself computes in f64 when it trains them.

Needs torch (any recent one with torch.onnx) and onnxscript; test/e2e/features.py, which reads the files, needs neither.

usage: python test/e2e/make_references.py
"""
import copy
import json
import math
import pathlib
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
from torch import nn

DATA = pathlib.Path(__file__).resolve().parent / "data"
VOCABULARY, SEQUENCE, WIDTH, HEADS, LAYERS = 128, 16, 24, 2, 2
GLOBAL, STEPS, SAMPLES, HELD_OUT = 12, 5, 60, 14
warnings.filterwarnings("ignore")


class Block(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)  # a key bias has no true gradient, so it would compare noise
        self.out, self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = dropout

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training) if self.dropout else x

    def forward(self, x):
        heads = lambda t: t.view(t.shape[0], SEQUENCE, HEADS, WIDTH // HEADS).transpose(1, 2)
        q, k, v = (heads(t) for t in self.qkv(self.before(x)).split(WIDTH, 2))
        mask = torch.full((SEQUENCE, SEQUENCE), float("-inf")).triu(1).to(x.dtype)
        weights = self.drop(F.softmax(q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS) + mask, -1))
        x = x + self.drop(self.out((weights @ v).transpose(1, 2).reshape(x.shape)))
        return x + self.drop(self.down(F.gelu(self.up(self.after(x)), approximate="tanh")))


class Gpt(nn.Module):
    """A GPT with a tied head; `with_loss` makes it compute the mean over its own batch."""

    def __init__(self, dropout=0.0, with_loss=False):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(SEQUENCE, WIDTH)
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight
        self.dropout, self.with_loss = dropout, with_loss

    def forward(self, input_ids, labels=None):
        x = self.tokens(input_ids) + self.positions(torch.arange(SEQUENCE))
        if self.dropout:
            x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1)) if self.with_loss else logits


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


class Dropped(nn.Module):
    """Its loss is the share of elements that dropout keeps, times what keeping multiplies them by: 1 in the mean."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1000))

    def forward(self, x):
        return F.dropout(x * self.weight, 0.1, self.training).mean()


def make(seed, kind, *args, **kw):
    torch.manual_seed(seed)
    model = kind(*args, **kw)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.normal_(0, 0.15)  # large enough that every operation matters to the loss
            elif kind is not Dropped:
                p.add_(torch.randn_like(p) * 0.1)
    return model


def export(model, name, inputs, outputs, dynamo=True, training=False):
    names = list(inputs)
    model = copy.deepcopy(model).train(training)
    path = DATA / f"{name}.onnx"
    common = dict(input_names=names, output_names=outputs)
    if dynamo:
        batch = torch.export.Dim("batch")
        torch.onnx.export(model, tuple(inputs.values()), str(path), dynamo=True, dynamic_shapes=tuple({0: batch} for _ in names),
                          external_data=False, verbose=False, **common)
    else:
        torch.onnx.export(model, tuple(inputs.values()), str(path), dynamo=False, opset_version=17, do_constant_folding=True,
                          training=torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL,
                          dynamic_axes={n: {0: "batch"} for n in names}, **common)
    return initializers(path, model)


def initializers(path, model):
    """For each initializer that holds a parameter: the parameter's name, and whether its axes are exchanged."""
    found = {}
    for tensor in onnx.load(str(path)).graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        for name, p in state(model).items():
            if p.shape == values.shape and np.array_equal(p, values):
                found[tensor.name] = [name, False]
            elif p.shape == values.T.shape and p.ndim == 2 and np.array_equal(p.T, values):
                found[tensor.name] = [name, True]
    assert {name for name, _ in found.values()} == set(state(model)), path
    return found


# ------------------------------------------------------------------------------------------------ samples
def token_samples(count, seed):
    """Sentences of a small grammar, so that there is something to learn, and labels of which very uneven parts are ignored."""
    rng = np.random.default_rng(seed)
    ids = np.cumsum(rng.integers(1, 4, (count, SEQUENCE + 1)), 1) % VOCABULARY
    labels = ids[:, 1:].copy()
    for i in range(count):
        ignored = (0, 15, 3, 16, 8, 1, 14)[i % 7]  # 16: the whole sample
        labels[i, rng.permutation(SEQUENCE)[:ignored]] = -100
    return ids[:, :-1].astype(np.int64), labels.astype(np.int64)


# ------------------------------------------------------------------------------------------------ training in f64
def learning_rate(step, peak, schedule, warmup):
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / (STEPS - warmup)
    return {"constant": peak, "linear": peak * (1 - done), "cosine": peak * 0.5 * (1 + math.cos(math.pi * done))}[schedule]


def train(model, loss_of, optimizer="adamw", lr=1e-2, clip=None, schedule="constant", warmup=0, freeze=(), held_out=None, **hyper):
    model = copy.deepcopy(model).double()
    for name, p in model.named_parameters():
        p.requires_grad_(name not in freeze)
    trained = [p for p in model.parameters() if p.requires_grad]
    kind = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[optimizer]
    steps = kind(trained, lr=lr, **hyper)
    result = {"loss": [], "grad_norm": [], "lr": [], "eval_loss": []}
    for step in range(STEPS):
        steps.param_groups[0]["lr"] = learning_rate(step, lr, schedule, warmup)
        steps.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(trained, clip if clip else math.inf)
        if step == 0:
            gradients = {n: p.grad.float().numpy().copy() for n, p in model.named_parameters() if p.requires_grad and not clip}
        steps.step()
        result["loss"].append(loss.item())
        result["grad_norm"].append(norm.item())
        result["lr"].append(steps.param_groups[0]["lr"])
        if held_out:
            with torch.no_grad():
                result["eval_loss"].append(held_out(model).item())
    if not held_out:
        del result["eval_loss"]
    return result, model, gradients


def state(model):
    return {n: p.detach().float().numpy().copy() for n, p in model.named_parameters()}


def main():
    DATA.mkdir(exist_ok=True)
    ids, labels = token_samples(SAMPLES, 1)
    held_ids, held_labels = token_samples(HELD_OUT, 2)
    save_file({"input_ids": ids, "labels": labels}, DATA / "samples.safetensors")
    save_file({"input_ids": held_ids, "labels": held_labels}, DATA / "held-out.safetensors")
    t = torch.from_numpy
    batch = lambda a, step: t(a[step * GLOBAL:(step + 1) * GLOBAL])

    gpt = make(3, Gpt)
    own = make(3, Gpt, with_loss=True)
    names = {}
    names["gpt"] = export(gpt, "gpt", {"input_ids": t(ids[:3])}, ["logits"])
    names["gpt_ts"] = export(gpt, "gpt_ts", {"input_ids": t(ids[:3])}, ["logits"], dynamo=False)
    export(make(3, Gpt, dropout=0.1), "gpt_dropout", {"input_ids": t(ids[:3])}, ["logits"], dynamo=False, training=True)
    names["gpt_loss"] = export(own, "gpt_loss", {"input_ids": t(ids[:3]), "labels": t(labels[:3])}, ["loss"])
    export(make(5, Dropped), "dropped", {"x": torch.ones(4, 1000)}, ["loss"], dynamo=False, training=True)

    def mean(model, i, l):
        return F.cross_entropy(model(i).reshape(-1, VOCABULARY), l.reshape(-1))

    token_mean = lambda m, s: mean(m, batch(ids, s), batch(labels, s))
    held_out = lambda m: mean(m, t(held_ids[:12]), t(held_labels[:12]))
    references, final = {}, {}
    cases = {
        "adamw": dict(held_out=held_out),
        "adamw-hyper": dict(weight_decay=0.3, betas=(0.8, 0.95), eps=1e-3),
        "adamw-clip": dict(clip=0.05, schedule="cosine", warmup=2),
        "sgd": dict(optimizer="sgd", lr=0.1),
        "sgd-momentum": dict(optimizer="sgd", lr=0.1, momentum=0.9, weight_decay=0.1, schedule="linear", warmup=1),
        "sgd-clip": dict(optimizer="sgd", lr=0.5, clip=0.1, momentum=0.5),
        "frozen": dict(freeze=("tokens.weight", "blocks.0.up.weight", "blocks.0.up.bias", "blocks.0.down.weight", "blocks.0.down.bias")),
    }
    for name, flags in cases.items():
        reference, model, gradients = train(gpt, token_mean, **flags)
        references[name] = reference
        final.update({f"{name}/{k}": v for k, v in state(model).items()})
        if name == "adamw":
            final.update({f"gradients/{k}": v for k, v in gradients.items()})
            with torch.no_grad():
                final["logits"] = model(batch(ids, 0)).float().numpy()
    # the mean of the means of micro-batches of three samples, as a model with its own loss has it; a batch without labels has none
    whole = lambda a: t(np.where(a == -100, 5, a))
    own_mean = lambda m, s: sum(m(i, l) for i, l in zip(batch(ids, s).split(3), whole(labels[s * GLOBAL:(s + 1) * GLOBAL]).split(3))) / 4
    save_file({"input_ids": ids, "labels": whole(labels).numpy()}, DATA / "whole-labels.safetensors")
    references["own-loss"], model, _ = train(own, own_mean)
    final.update({f"own-loss/{k}": v for k, v in state(model).items()})

    regression = make(7, Regression)
    rng = np.random.default_rng(4)
    x = rng.standard_normal((SAMPLES, 6)).astype(np.float32)
    y = np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2], x[:, 3]], 1).astype(np.float32)
    names["regression"] = export(regression, "regression", {"x": t(x[:3])}, ["y"])
    save_file({"x": x, "labels": y}, DATA / "regression.safetensors")
    references["mse"], model, _ = train(regression, lambda m, s: F.mse_loss(m(batch(x, s).double()), batch(y, s).double()))
    final.update({f"mse/{k}": v for k, v in state(model).items()})

    save_file(final, DATA / "references.safetensors")
    text = json.dumps({"torch": torch.__version__, "references": references, "initializers": names}, indent=1)
    (DATA / "references.json").write_text(text + "\n")
    for f in sorted(DATA.iterdir()):
        print(f"{f.stat().st_size:9,} {f.name}")


main()
