#!/usr/bin/env python3
"""Writes test/e2e/data/ties: models with layers that are one, start equal or are copies, as both exporters of PyTorch write them, and the
losses that PyTorch itself has when it trains them in f64.

Needs torch and onnxscript; test/e2e/ties.py, which reads the files, needs neither.

usage: python test/e2e/make_ties.py
"""
import copy
import json
import pathlib
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
from torch import nn

DATA = pathlib.Path(__file__).resolve().parent / "data" / "ties"
VOCABULARY, SEQUENCE, WIDTH, LAYERS, CLASSES = 32, 8, 24, 4, 8
BATCH, STEPS = 4, 6
warnings.filterwarnings("ignore")


def layer():
    made = nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, dropout=0.0, batch_first=True)
    with torch.no_grad():
        for p in made.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    return made


class Encoder(nn.Module):
    """`how`: layers copied from one, as nn.TransformerEncoder makes them; one layer applied again and again; or a list of one layer."""

    def __init__(self, how):
        super().__init__()
        self.how, first = how, layer()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        if how == "copied":
            self.encoder = nn.TransformerEncoder(first, LAYERS, enable_nested_tensor=False)
        elif how == "listed":
            self.layers = nn.ModuleList([first] * LAYERS)
        else:
            self.layer = first
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, input_ids):
        x = self.tokens(input_ids)
        if self.how == "copied":
            return self.head(self.encoder(x))
        for i in range(LAYERS):
            x = self.layers[i](x) if self.how == "listed" else self.layer(x)
        return self.head(x)


class Towers(nn.Module):
    """Two towers that begin as one, or are one."""

    def __init__(self, one):
        super().__init__()
        self.left = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Tanh(), nn.Linear(2 * WIDTH, WIDTH))
        self.right = self.left if one else copy.deepcopy(self.left)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, input_ids, other_ids):
        return self.head(self.left(input_ids).mean(1) * self.right(other_ids).mean(1))


class Mixer(nn.Module):
    """A state-space block's parameters: all blocks begin with the same A, in both directions."""

    def __init__(self):
        super().__init__()
        self.step, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, 5).float()).repeat(WIDTH, 1))
        self.A_b_log = nn.Parameter(self.A_log.detach().clone())

    def forward(self, x):
        step = F.softplus(self.step(x)).unsqueeze(-1)
        forth, back = torch.exp(step * -torch.exp(self.A_log)).mean(-1), torch.exp(step * -torch.exp(self.A_b_log)).sum(-1)
        return x + self.out(x) * (forth + back.flip(1))


class StateSpace(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Mixer() for _ in range(2))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, input_ids):
        x = self.tokens(input_ids)
        for block in self.layers:
            x = block(x)
        return self.head(x)


class Autoencoder(nn.Module):
    """Its second half is the first transposed."""

    def __init__(self):
        super().__init__()
        self.encode, self.bias = nn.Linear(16, 6), nn.Parameter(torch.randn(16) * 0.1)

    def forward(self, x):
        return F.linear(torch.tanh(self.encode(x)), self.encode.weight.t(), self.bias)


def write(model, name, inputs, dynamo, **options):
    path = DATA / f"{name}.onnx"
    common = dict(input_names=list(inputs), output_names=["logits"])
    args = tuple(v[:BATCH] for v in inputs.values())
    if dynamo:
        torch.onnx.export(model, args, str(path), dynamo=True, external_data=False, verbose=False, **common, **options)
        file = onnx.load(str(path))
        for node in file.graph.node:
            kept = [p for p in node.metadata_props if p.key in ("pkg.torch.onnx.fx_node", "pkg.torch.onnx.name_scopes")]
            del node.metadata_props[:]
            node.metadata_props.extend(kept)
        for value in [*file.graph.value_info, *file.graph.input, *file.graph.output]:
            del value.metadata_props[:]
        del file.graph.value_info[:]
        onnx.save(file, str(path))
    else:
        torch.onnx.export(model, args, str(path), dynamo=False, opset_version=17, **common)


def train(model, inputs, labels):
    model = copy.deepcopy(model).double().train()
    steps, losses = torch.optim.AdamW(model.parameters(), lr=1e-2), []
    for step in range(STEPS):
        at = slice(step * BATCH, (step + 1) * BATCH)
        steps.zero_grad()
        out = model(*(v[at].double() if v.is_floating_point() else v[at] for v in inputs.values()))
        loss = F.mse_loss(out, labels[at].double()) if labels.is_floating_point() else F.cross_entropy(out.reshape(-1, out.shape[-1]), labels[at].reshape(-1))
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return losses


def main():
    DATA.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    tokens = torch.from_numpy(np.cumsum(rng.integers(1, 4, (BATCH * STEPS, SEQUENCE + 1)), 1) % VOCABULARY)
    other = torch.from_numpy(rng.integers(0, VOCABULARY, (BATCH * STEPS, SEQUENCE)))
    ids, following, kind = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), tokens[:, 0] % CLASSES
    floats = torch.from_numpy(rng.standard_normal((BATCH * STEPS, 16)).astype(np.float32))
    one, two = {"input_ids": ids}, {"input_ids": ids, "other_ids": other}
    models = {
        "copied": (lambda: Encoder("copied"), one, following), "applied": (lambda: Encoder("applied"), one, following),
        "listed": (lambda: Encoder("listed"), one, following), "towers": (lambda: Towers(False), two, kind),
        "siamese": (lambda: Towers(True), two, kind), "state_space": (StateSpace, one, following),
        "autoencoder": (Autoencoder, {"x": floats}, floats),
    }
    references = {}
    for name, (make, inputs, labels) in models.items():
        torch.manual_seed(1)
        model = make().eval()
        # folding would leave -exp(A) of a state space in place of A
        write(model, f"{name}_dynamo", inputs, True, **({"optimize": False} if name == "state_space" else {}))
        write(model, f"{name}_ts", inputs, False)
        save_file({k: v.numpy() for k, v in [*inputs.items(), ("labels", labels)]}, DATA / f"{name}.safetensors")
        references[name] = {"parameters": sum(p.numel() for p in model.parameters()), "loss": train(model, inputs, labels)}
    text = json.dumps({"torch": torch.__version__, "models": references}, indent=1)
    (DATA / "references.json").write_text(text + "\n")
    for f in sorted(DATA.iterdir()):
        print(f"{f.stat().st_size:9,} {f.name}")


main()
