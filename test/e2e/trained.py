"""Runs of the tiny models in test/e2e/data, and PyTorch's runs of the same models to hold them against.

The data is written by make_references.py. The global batch is always the same 12 samples, cut into ranks, micro-steps and samples in
different ways; labels are ignored very unevenly, so that a mean of means would not do.
"""
import json
import pathlib

import numpy as np
from safetensors.numpy import load_file

from harness import Suite, expect, relative

DATA = pathlib.Path(__file__).resolve().parent / "data"
STEPS, GLOBAL = 5, 12
reference = json.loads((DATA / "references.json").read_text())
final = load_file(DATA / "references.safetensors")


def off(have, want):
    """Distance relative to the norm of what is wanted."""
    return float(np.linalg.norm(have.astype(np.float64) - want) / max(np.linalg.norm(want.astype(np.float64)), 1e-12))


def same(one, two):
    """The same tensors, bit for bit."""
    return set(one) == set(two) and all(one[n].tobytes() == two[n].tobytes() for n in one)


def as_torch(weights, model="gpt"):
    """What zerorun exported, under PyTorch's names and in its layouts."""
    names = reference["initializers"][model]
    unknown = set(weights) - set(names)
    expect(not unknown, f"{len(unknown)} tensors were trained that are no parameters, such as {min(unknown, default='')}")
    return {names[name][0]: value.T if names[name][1] else value for name, value in weights.items()}


def parameters_hold(weights, case, limit, model="gpt", prefix=None):
    have, worst = as_torch(weights, model), 0
    wanted = {n.split("/", 1)[1]: v for n, v in final.items() if n.startswith((prefix or case) + "/")}
    expect(set(have) == set(wanted), f"other parameters than PyTorch's: {set(have) ^ set(wanted)}")
    for name, want in wanted.items():
        expect(have[name].shape == want.shape, f"{name} has the shape {have[name].shape}, not {want.shape}")
        error = off(have[name], want)
        expect(error <= limit, f"{name} is off by {error:.1e} of its norm")
        worst = max(worst, error)
    return worst


def curve_holds(rows, case, field, limit):
    want, have = reference["references"][case][field], [row[field] for row in rows]
    expect(len(have) == len(want), f"{len(have)} values of {field}, not {len(want)}")
    worst = max(relative(x, y) for x, y in zip(have, want))
    expect(worst <= limit, f"{field} is {have}, PyTorch's is {want}")
    return worst


class Training(Suite):
    def start(self):
        super().start()
        self.plans = {}  # flags -> file

    def plan(self, model="gpt", world=1, stage=0, accumulate=1, *flags):
        """Compiled once per set of flags; the limit makes eight buckets of the GPT."""
        key = (model, world, stage, accumulate, *flags)
        if key not in self.plans:
            name = f"{model}-{len(self.plans)}.plan"
            self.zeroc(DATA / f"{model}.onnx", name, "--quiet", "--bind", f"batch={GLOBAL // world // accumulate}", "--world", world, "--stage", stage,
                       "--accumulate", accumulate, "--bucket-elements", 4000, *flags)
            self.plans[key] = name
        return self.plans[key]

    def train(self, compiled, *flags, world=1, data="samples.safetensors", steps=STEPS, threads=1, **kw):
        """The metrics of a run, and the weights it exported."""
        metrics, weights = self.work / "metrics.jsonl", self.work / "final.safetensors"
        metrics.unlink(missing_ok=True)
        weights.unlink(missing_ok=True)
        self.zerorun(compiled, "--data", DATA / data, "--steps", steps, "--metrics", metrics, "--export", weights, "--threads", threads, *flags,
                     world=world, **kw)
        return [json.loads(line) for line in metrics.read_text().splitlines()], load_file(weights)

    def inspect(self, compiled):
        return json.loads(self.run([self.bin / "zero-inspect", compiled, "--json"]).stdout)
