#!/usr/bin/env python3
"""Models that are large without looking it: each compiles, or is refused in one sentence, within 1 GiB and 30 s of processor time
(a few on a machine with nothing else to do)."""
import os
import resource
import subprocess
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness import Suite, expect

SECONDS, BYTES = 30, 1 << 30
suite = Suite(__doc__)
random = np.random.default_rng(0)
F32, I64 = TensorProto.FLOAT, TensorProto.INT64


class Graph:
    """A model under construction: `graph.Op(inputs…, attributes…)` adds a node and gives the name of its output."""

    def __init__(self, opset=18):
        self.nodes, self.inputs, self.weights, self.functions, self.opset = [], [], [], [], opset

    def input(self, name, *shape, kind=F32):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def const(self, value, name=None):
        name = name or f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def weight(self, *shape):
        return self.const((random.normal(size=shape) * 0.02).astype(np.float32), f"w{len(self.weights)}")

    def __getattr__(self, op):
        def add(*inputs, outputs=1, domain="", **attributes):
            names = [f"{op}_{len(self.nodes)}" + (f".{i}" if outputs > 1 else "") for i in range(outputs)]
            self.nodes.append(helper.make_node(op, list(inputs), names, name=f"{op}_{len(self.nodes)}", domain=domain, **attributes))
            return names[0] if outputs == 1 else names
        return add

    def conv(self, x, channels, to, kernel, stride=1):
        pad = kernel // 2
        return self.Conv(x, self.weight(to, channels, kernel, kernel), self.weight(to), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                         pads=[pad] * 4)

    def silu(self, x):
        return self.Mul(x, self.Sigmoid(x))

    def pool(self, x, op="MaxPool", kernel=5, **attributes):
        return getattr(self, op)(x, kernel_shape=[kernel] * 2, strides=[1, 1], pads=[kernel // 2] * 4, **attributes)

    def model(self, *outputs):
        infos = [helper.make_tensor_value_info(o, F32, None) for o in outputs]
        graph = helper.make_graph(self.nodes, "limits", self.inputs, infos, self.weights)
        imports = [helper.make_opsetid("", self.opset)] + ([helper.make_opsetid("own", 1)] if self.functions else [])
        return helper.make_model(graph, opset_imports=imports, ir_version=10, functions=self.functions).SerializeToString()


def learned(g, shape=(4, 8)):
    """An input times a parameter, so that there is something to train."""
    return g.Mul(g.input("x", *shape), g.weight(shape[-1]))


# --------------------------------------------------------------------------------------- windows on top of each other
def pools(count, op="MaxPool", kernel=5):
    g = Graph()
    y = g.conv(g.input("x", 1, 8, 16, 16), 8, 8, 1)
    for _ in range(count):
        y = g.pool(y, op, kernel)
    return g.model(y)


def wide_convolution():
    g = Graph()
    y = g.input("x", 1, 4, 40, 40)
    for _ in range(2):
        y = g.silu(g.Conv(y, g.weight(4, 1, 31, 31), kernel_shape=[31] * 2, pads=[15] * 4, group=4))
    return g.model(y)


def yolo(size=320, width=16, depth=1, classes=80):
    """The graph of a YOLOv8n: C2f blocks, three chained poolings (SPPF), two paths over three scales, and their heads."""
    g = Graph()

    def block(x, c, to, k=1, s=1):
        return g.silu(g.conv(x, c, to, k, s))

    def c2f(x, c, to, n, shortcut):
        half = to // 2
        a, b = g.Split(block(x, c, to), g.ints(half, half), outputs=2, axis=1)
        parts = [a, b]
        for _ in range(n):
            y = block(block(parts[-1], half, half, 3), half, half, 3)
            parts.append(g.Add(parts[-1], y) if shortcut else y)
        return block(g.Concat(*parts, axis=1), half * (2 + n), to)

    def sppf(x, c):
        y = [block(x, c, c // 2)]
        for _ in range(3):
            y.append(g.pool(y[-1]))
        return block(g.Concat(*y, axis=1), 2 * c, c)

    def up(x):
        return g.Resize(x, "", g.const(np.array([1, 1, 2, 2], np.float32)), mode="nearest", coordinate_transformation_mode="asymmetric",
                        nearest_mode="floor")

    w = width
    x = block(block(g.input("images", 1, 3, size, size), 3, w, 3, 2), w, 2 * w, 3, 2)
    x = c2f(x, 2 * w, 2 * w, depth, True)
    p3 = c2f(block(x, 2 * w, 4 * w, 3, 2), 4 * w, 4 * w, 2 * depth, True)
    p4 = c2f(block(p3, 4 * w, 8 * w, 3, 2), 8 * w, 8 * w, 2 * depth, True)
    p5 = sppf(c2f(block(p4, 8 * w, 16 * w, 3, 2), 16 * w, 16 * w, depth, True), 16 * w)
    n4 = c2f(g.Concat(up(p5), p4, axis=1), 24 * w, 8 * w, depth, False)
    n3 = c2f(g.Concat(up(n4), p3, axis=1), 12 * w, 4 * w, depth, False)
    n4 = c2f(g.Concat(block(n3, 4 * w, 4 * w, 3, 2), n4, axis=1), 12 * w, 8 * w, depth, False)
    n5 = c2f(g.Concat(block(n4, 8 * w, 8 * w, 3, 2), p5, axis=1), 24 * w, 16 * w, depth, False)
    heads, boxes = [], 64
    for x, c, stride in ((n3, 4 * w, 8), (n4, 8 * w, 16), (n5, 16 * w, 32)):
        box = g.conv(block(block(x, c, boxes, 3), boxes, boxes, 3), boxes, boxes, 1)
        cls = g.conv(block(block(x, c, classes, 3), classes, classes, 3), classes, classes, 1)
        heads.append(g.Reshape(g.Concat(box, cls, axis=1), g.ints(1, boxes + classes, (size // stride) ** 2)))
    box, cls = g.Split(g.Concat(*heads, axis=2), g.ints(boxes, classes), outputs=2, axis=1)
    anchors = sum((size // s) ** 2 for s in (8, 16, 32))
    dist = g.Softmax(g.Transpose(g.Reshape(box, g.ints(1, 4, 16, anchors)), perm=[0, 3, 1, 2]), axis=3)
    dist = g.Reshape(g.MatMul(dist, g.const(np.arange(16, dtype=np.float32).reshape(16, 1))), g.ints(1, anchors, 4))
    return g.model(g.Concat(g.Transpose(dist, perm=[0, 2, 1]), g.Sigmoid(cls), axis=1))


# -------------------------------------------------------------------------------------------------------- long and wide
def chain(op, count):
    g = Graph()
    y = learned(g)
    for _ in range(count):
        y = getattr(g, op)(y)
    return g.model(y)


def sums(count):
    g = Graph()
    y = x = learned(g)
    for _ in range(count):
        y = g.Add(y, x)
    return g.model(y)


def doubling(op, count):
    """Each value twice the one before: 2^count paths."""
    g = Graph()
    y = learned(g)
    for _ in range(count):
        y = getattr(g, op)(y, y)
    return g.model(y)


def dense(count):
    """Every value is made of all before."""
    g = Graph()
    values = [learned(g)]
    for _ in range(count):
        values.append(g.Tanh(g.Sum(*values)))
    return g.model(values[-1])


def halves(count):
    """Halves exchanged and joined, again and again: movement through movement."""
    g = Graph()
    y = learned(g)
    for _ in range(count):
        a, b = g.Split(y, g.ints(4, 4), outputs=2, axis=1)
        y = g.Concat(g.Tanh(b), g.Add(a, b), axis=1)
    return g.model(y)


def shifts(count):
    """A row added to its neighbour, again and again: each element depends on ever more elements."""
    g = Graph()
    y = learned(g, (4, 64))
    for _ in range(count):
        moved = g.Pad(g.Slice(y, g.ints(1), g.ints(64), g.ints(1)), g.ints(0, 0, 0, 1))
        y = g.Tanh(g.Add(y, moved))
    return g.model(y)


def pieces(count):
    g = Graph()
    parts = g.Split(g.Mul(g.input("x", 4, count), g.weight(count)), g.ints(*[1] * count), outputs=count, axis=1)
    return g.model(g.Concat(*[g.Tanh(p) for p in parts[::-1]], axis=1))


def functions(depth):
    """f0 calls f1 twice, f1 calls f2 twice, …"""
    g = Graph()
    for i in range(depth):
        op, domain = (f"f{i + 1}", "own") if i + 1 < depth else ("Tanh", "")
        body = [helper.make_node(op, ["x"], ["h"], domain=domain), helper.make_node(op, ["h"], ["y"], domain=domain)]
        g.functions.append(helper.make_function("own", f"f{i}", ["x"], ["y"], body,
                                                [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]))
    return g.model(g.f0(learned(g), domain="own"))


# ------------------------------------------------------------------------------------------- sizes from a few bytes
def sized(make):
    g = Graph()
    return g.model(make(g, learned(g)))


def huge_constant(g, x):
    big = g.ConstantOfShape(g.ints(1 << 20, 1 << 15))
    return g.Add(x, g.ReduceSum(g.Cos(big)))


def huge_range(g, x):
    scalars = [g.const(np.int64(v)) for v in (0, (1 << 28) - 1, 1)]
    return g.Add(x, g.Cast(g.ReduceSum(g.Mul(g.Range(*scalars), g.Range(*scalars))), to=F32))


def huge_expand(g, x):
    return g.Expand(g.Reshape(x, g.ints(4, 1, 8)), g.ints(4, 1 << 40, 8))


def huge_resize(g, x):
    x = g.Resize(x, "", "", g.ints(4, 1 << 20), mode="linear")
    return g.Resize(x, "", "", g.ints(4, 1 << 19), mode="linear")


def huge_pad(g, x):
    return g.Pad(x, g.ints(0, 1 << 39, 0, 1 << 39))


def huge_scatter(*rows):
    def build(g, x):
        return g.ScatterND(g.Expand(x, g.ints(1 << 42, 4, 8)), g.const(np.array(rows, np.int64)[:, None]), g.weight(len(rows), 4, 8))
    return build


def huge_onehot(g, x):
    return g.MatMul(x, g.OneHot(g.ints(*range(8)), g.const(np.int64(1 << 28)), g.const(np.array([0, 1], np.float32))))


def huge_tile(g, x):
    return g.Add(x, g.ReduceSum(g.Tile(g.Exp(g.const(np.ones((64, 64), np.float32))), g.ints(1 << 14, 1 << 14))))


def gpt3():
    suite.gpt("gpt3.onnx", "--layers", 96, "--hidden", 12288, "--heads", 96, "--vocab", 50257, "--seq", 2048, "--batch", 1, "--no-weights")
    return (suite.work / "gpt3.onnx").read_bytes()


def compile(model, words, flags, loss="mse", seconds_allowed=SECONDS):
    """Status 0, or 1 with one sentence that holds `words` (alternatives by |); within the limits either way."""
    (suite.work / "model.onnx").write_bytes(model)

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (3 * BYTES, 3 * BYTES))  # the machine's other users
        resource.setrlimit(resource.RLIMIT_CPU, (3 * SECONDS, 3 * SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    process = subprocess.Popen([suite.bin / "zeroc", "model.onnx", "-q", "-o", "plan.bin", "--loss", loss, *flags], cwd=suite.work,
                               stderr=subprocess.PIPE, text=True, errors="replace", preexec_fn=limit)
    said = process.stderr.read().strip()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    seconds, bytes = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    note = f"{seconds:.1f} s, {bytes >> 20} MiB"
    expect(status in (0, 256), f"it ended with status {status} after {note}: {said[-300:]}")
    expect(seconds < seconds_allowed and bytes < BYTES, f"it took {note}")
    if status == 0:  # what was compiled can be opened
        opened = subprocess.run([suite.bin / "zero-inspect", "--check", "plan.bin"], cwd=suite.work, capture_output=True, text=True)
        expect(opened.returncode == 0, opened.stderr)
    if status:
        errors = [line for line in said.splitlines() if line.startswith("zeroc: error: ")]
        expect(len(errors) == 1, f"{len(errors)} errors: {said[-300:]}")
        note += ", " + errors[0].removeprefix("zeroc: error: ")[:160]
        for word in words:
            expect(any(w in errors[0] for w in word.split("|")), f"the sentence does not speak of '{word}': {errors[0]}")
    expect(bool(status) == bool(words), f"it was {'refused' if status else 'compiled'}: {said[-300:]}")
    return note


suite.parser.add_argument("--long", action="store_true", help="larger ones too")
long = suite.start().long


def check(name, model, *words, flags=(), **others):
    suite.check(f"limits: {name}", lambda: compile(model(), words, flags, **others))


LESS = ["--compile-memory", "800M"]  # than the budget a model has by itself, which is more than this test may take
check("two chained 5 x 5 maxima", lambda: pools(2))
check("three chained 13 x 13 maxima", lambda: pools(3, kernel=13))
check("three chained 5 x 5 means", lambda: pools(3, "AveragePool"))
check("YOLO", yolo)
check("two 31 x 31 convolutions", wide_convolution)
check("3,500 chained Tanh", lambda: chain("Tanh", 3500))
check("3,500 chained Relu", lambda: chain("Relu", 3500))
check("3,500 sums with one value", lambda: sums(3500))
check("2^200 paths through sums", lambda: doubling("Add", 200))
check("2^200 paths through sums in half precision", lambda: doubling("Add", 200), flags=["--precision", "bf16"])
check("2^50 paths through products", lambda: doubling("Mul", 50))
check("functions that call each other 2^30 times", lambda: functions(30), "node 'f0_", "inlined")
check("a constant of 128 GiB", lambda: sized(huge_constant))  # is never made: its sum is computed where it is read
check("ranges of 2 GiB", lambda: sized(huge_range), "node 'Range_", "memory", flags=LESS)
check("a tensor of 2^45 elements", lambda: sized(huge_expand), "140737488355840 bytes, more than any machine can address")
check("a resize by a matrix of 2 TiB", lambda: sized(huge_resize), "node 'Resize_", "constant of")
check("a pad by 2^40", lambda: sized(huge_pad))
check("a scatter into 2^42 rows", lambda: sized(huge_scatter(0, 2)), "node 'ScatterND_", "constant of")  # a lookup with as many
check("a scatter to neighbours of 2^42 rows", lambda: sized(huge_scatter(0, 1)), "is 'tensor<4398046511104x4x8xf32>'")  # none, but the output
check("2^28 classes", lambda: sized(huge_onehot), flags=LESS)
check("a tiled constant of 4 TiB", lambda: sized(huge_tile))
for memory in ("1G", "2G", "4G"):  # far too little is known after one choice for each stage
    check(f"175 billion parameters in {memory}", gpt3, "--device-memory allows", "it cannot hold 'bucket384.gradient' (transformer.h.95.", loss="cross_entropy",
          seconds_allowed=15, flags=["--init", "random", "--world", "64", "--stage", "auto", "--device-memory", memory, "--target", "sim"])
check("175 billion parameters in a second", gpt3, "1 s of processor time (--compile-seconds gives it more)", loss="cross_entropy",
      flags=["--init", "random", "--world", "64", "--stage", "auto", "--device-memory", "24G", "--target", "sim", "--compile-seconds", "1"])
check("175 billion parameters in 2G, in tiles", gpt3, "--device-memory allows", "it cannot hold 'bucket", loss="cross_entropy", seconds_allowed=25,
      flags=["--init", "random", "--world", "64", "--stage", "auto", "--tile", "auto", "--device-memory", "2G", "--target", "sim"])
if long:  # what else is known to be heavy, some of it beyond the bounds today
    check("a value made of all before, 100 times", lambda: dense(100))
    check("halves exchanged 100 times", lambda: halves(100))
    check("rows shifted 100 times", lambda: shifts(100))
    check("20,000 chained Relu", lambda: chain("Relu", 20000))
    check("20,000 chained Tanh", lambda: chain("Tanh", 20000))
    check("20,000 sums with one value", lambda: sums(20000))
    check("2,000 pieces", lambda: pieces(2000), "node 'Mul_0'", "257 tensors")
    check("20,000 pieces", lambda: pieces(20000), "node 'Concat_", "joining 20000 tensors")
    check("YOLO at 640 x 640", lambda: yolo(640))
suite.finish()
