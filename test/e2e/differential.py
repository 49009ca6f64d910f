#!/usr/bin/env python3
"""Random small models, compiled and trained in every way that must give the same.

For each model: the loss and the slope along a random direction of every parameter against onnx.reference in f64; plans with other buckets,
ranks, micro-steps, stages, memory budgets, recomputation and threads against the first, the same bits where the number of ranks and
micro-steps is the same and rounding apart where it is not; the bytes of memory and communication; a resumed run; compiling twice.
Ranks and micro-steps whose labels are all ignored are among the samples.

usage: differential.py [--seeds FIRST:END]      longer hunts are by hand
"""
import json
import random
import shutil
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import ROOT, Suite, expect, relative

sys.path.insert(0, str(ROOT / "test"))
import random_graphs  # noqa: E402

suite = Suite(__doc__)
suite.parser.add_argument("--seeds", default="30:40", help="models, as FIRST:END")
OF_GRADIENT, STEPS = 3e-5, 3  # of its norm; these models are no better conditioned than chance makes them


class Case:
    def __init__(self, seed):
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.model = random_graphs.Model(seed)
        self.model.save(suite.work / "model.onnx")
        self.batch = self.random.choice((2, 4, 8))  # samples of a step
        data = self.model.samples(2 * self.batch + 1, self.numbers, self.random.choice((0, .5)))
        if self.model.loss == "cross_entropy":
            data["labels"][: self.batch // 2] = -100  # one of two ranks, or micro-steps, has nothing to learn from
            data["labels"].reshape(-1)[data["labels"][: self.batch].size - 1] = 0  # and another one has
        save_file(data, suite.work / "data.safetensors")
        self.first = {name: value[: self.batch] for name, value in data.items()}
        self.flags = ["--quiet", "--loss", self.model.loss, "--train", "^m\\.", "--optimizer", self.random.choice(("adamw", "sgd"))]
        self.run_flags = ["--lr", "1e-2", *self.random.choice(([], ["--clip", 0.5], ["--weight-decay", 0.1]))]
        self.bits = {}  # (ranks, micro-steps) -> what the first such run gave

    def compile(self, name, world, stage, accumulate, *more):
        suite.zeroc("model.onnx", name, *self.flags, "--bind", f"batch={self.batch // world // accumulate}", "--world", world, "--stage", stage,
                    "--accumulate", accumulate, *more)
        return json.loads(suite.run([suite.bin / "zero-inspect", name, "--json"]).stdout)

    def train(self, plan, world, *more, steps=STEPS):
        (suite.work / "metrics.jsonl").unlink(missing_ok=True)
        suite.zerorun(plan, "--data", "data.safetensors", "--steps", steps, "--metrics", "metrics.jsonl", "--export", "final.safetensors",
                      "--threads", self.random.choice((1, 2, 3)), "--disk-path", suite.work / "disk", *self.run_flags, *more, world=world)
        rows = [json.loads(line) for line in (suite.work / "metrics.jsonl").read_text().splitlines()]
        return rows, load_file(suite.work / "final.safetensors")

    def same(self, key, rows, weights, what):
        have = {name: value.tobytes() for name, value in weights.items()}, [(row["loss"], row["grad_norm"]) for row in rows]
        first = self.bits.setdefault(key, have)
        different = [name for name in have[0] if have[0][name] != first[0][name]]
        expect(not different, f"{what}: {len(different)} of {len(have[0])} parameters have other bits, such as {min(different, default='')}")
        expect(have[1] == first[1], f"{what}: losses and norms {have[1]}, not {first[1]}")

    def reference(self):
        """The first step against f64."""
        self.compile("base.plan", 1, 0, 1)
        once = (suite.work / "base.plan").read_bytes()
        self.compile("base.plan", 1, 0, 1)
        expect((suite.work / "base.plan").read_bytes() == once, "compiled twice, the plan has other bytes")
        rows, weights = self.train("base.plan", 1, "--gradients", "gradients.safetensors")
        self.gradients = load_file(suite.work / "gradients.safetensors")
        self.loss = rows[0]["loss"]
        self.same((1, 1), rows, weights, "one rank")
        evaluator = self.model.evaluator()
        wide = {n: v.astype(np.float64) for n, v in self.model.parameters.items()}
        want = self.model.loss_of(evaluator, self.first, wide)
        expect(abs(self.loss - want) <= 2e-5 * abs(want) + 1e-6, f"the first loss is {self.loss}, in f64 {want}")
        norm = np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in self.gradients.values()))
        for name, value in self.model.parameters.items():
            direction = self.numbers.standard_normal(value.shape)
            # one number used at several places is several parameters, "name@node", as documented; the loss sees their sum
            parts = [g for n, g in self.gradients.items() if n == name or n.startswith(name + "@")]
            gradient = sum((g.astype(np.float64) for g in parts), np.zeros(value.shape))
            have = float(np.sum(gradient * direction))
            slope = min(self.model.slopes(evaluator, self.first, name, direction), key=lambda s: abs(s - have))
            limit = 5e-5 * np.linalg.norm(gradient) * np.linalg.norm(direction) + 1e-5 * (norm + 1)
            expect(abs(have - slope) <= limit, f"the loss changes by {slope} along {name}, the gradient says {have}")

    def layout(self, world, stage, accumulate, buckets, *more):
        what = f"{world} ranks, stage {stage}, {accumulate} micro-steps, buckets {buckets}, {more}"
        facts = self.compile("x.plan", world, stage, accumulate, "--bucket-elements", buckets, *more)
        suite.run([suite.bin / "zero-inspect", "x.plan", "--check"])
        sizes = [sum(b["elements"] for b in facts["buckets"] if b["trainable"] is kind) for kind in (True, False)]
        sent = lambda kind: facts["communication"]["collectives"].get(kind, {"bytes_sent": 0})["bytes_sent"]
        unit = 4 * sizes[0] * (world - 1) // world
        expect(sent("reduce_scatter") == accumulate * unit, f"{what}: gradients send {sent('reduce_scatter')} bytes, not {accumulate * unit}")
        expect(stage == 3 or sent("all_gather") == unit, f"{what}: parameters send {sent('all_gather')} bytes, not {unit}")
        rows, weights = self.train("x.plan", world, "--gradients", "gradients.safetensors")
        expect(rows[0]["memory_bytes"] <= facts["memory"]["total_bytes"], f"{what}: more bytes than the plan states")
        self.same((world, accumulate, buckets), rows, weights, what)
        expect(relative(rows[0]["loss"], self.loss) <= 1e-4, f"{what}: the first loss is {rows[0]['loss']}, not {self.loss}")
        gradients = load_file(suite.work / "gradients.safetensors")
        norms = {name: np.linalg.norm(g.astype(np.float64)) for name, g in self.gradients.items()}
        for name, gradient in self.gradients.items():
            error = np.linalg.norm(gradients[name].astype(np.float64) - gradient)
            expect(error <= OF_GRADIENT * norms[name] + 1e-6 * max(norms.values()), f"{what}: the gradient of {name} is off by {error:.1e} of {norms[name]:.1e}")
        return facts["memory"]["total_bytes"]

    def budget(self, world, accumulate, buckets, need):
        """Just enough, less (some state on disk) and more than the usual schedule needs: the same bits, or one sentence."""
        for factor in (1, .8, 4):
            flags = ["--bind", f"batch={self.batch // world // accumulate}", "--world", world, "--stage", 3, "--accumulate", accumulate, "--bucket-elements", buckets]
            result = suite.zeroc("model.onnx", "budget.plan", *self.flags, *flags, "--device-memory", int(need * factor), check=False)
            if result.returncode and factor < 1:
                expect(result.returncode == 1 and "would help" in result.stderr.splitlines()[-1], f"--device-memory: {result.stderr}")
                continue
            expect(result.returncode == 0, f"--device-memory {int(need * factor)}, with {need} needed: {result.stderr}")
            facts = json.loads(suite.run([suite.bin / "zero-inspect", "budget.plan", "--json"]).stdout)
            expect(facts["memory"]["total_bytes"] <= need * factor, "the budget is not kept")
            if factor != 1:
                self.same((world, accumulate, buckets), *self.train("budget.plan", world), f"--device-memory of {factor} x the need")

    def resumed(self, world, key):
        """x.plan, stopped after its first step."""
        shutil.rmtree(suite.work / "saved", ignore_errors=True)
        self.train("x.plan", world, "--checkpoint", "saved", steps=1)
        rows, weights = self.train("x.plan", world, "--resume", "saved")
        different = [name for name, value in weights.items() if value.tobytes() != self.bits[key][0][name]]
        expect(not different, f"resumed, {len(different)} parameters have other bits, such as {min(different, default='')}")


def holds(seed):
    case = Case(seed)
    case.reference()
    buckets = case.random.choice((1, 17, 200, 100000))
    first, second = case.random.sample(range(4), 2)
    case.layout(2, first, 1, buckets)
    case.layout(2, second, 1, buckets, "--recompute", "none")
    case.resumed(2, (2, 1, buckets))
    case.layout(1, second, 2, buckets)
    if case.batch > 2 and seed % 2:
        case.layout(2, first, 2, buckets)
    if seed % 3 == 0:
        need = case.layout(2, 3, 1, buckets)
        case.budget(2, 1, buckets, need)
    return f"{len(case.gradients)} parameters, {case.model.loss}, {case.batch} samples"


arguments = suite.start()
begin, end = map(int, arguments.seeds.split(":"))
for seed in range(begin, end):
    suite.check(f"differential: model {seed}", holds, seed)
suite.finish()
