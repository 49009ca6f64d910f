#!/usr/bin/env python3
"""Damaged models through the whole compiler: each becomes a plan or is refused in one sentence, within a limit of time and memory.

Real models (and small ones of the reader's tests) are changed at random, a few changes each: numbers of attributes, shapes and
constants; operators; edges; nodes taken out, doubled and stacked. zeroc runs on each as a process of its own. A model that makes it
crash, hang, say nothing, say too much, or speak of a defect of its own is kept in --found. Model N of a seed is always the same.

usage: compile_fuzz.py --seconds 60 | --models 1000 [--seed S] [--first N] [--jobs J] [--bin build/bin] [--found build-fuzz/found]
"""
import argparse
import concurrent.futures
import copy
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS, MEMORY = 40, 3 << 30
NUMBERS = [-(1 << 63), -(1 << 31), -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 255, 1000, 1 << 12, 1 << 16, 1 << 20, 1 << 31, 1 << 40, 1 << 62]
SMALL = [n for n in NUMBERS if -2 <= n <= 16]
UNARY = ["Relu", "Tanh", "Exp", "Log", "Sqrt", "Neg", "Abs", "Sigmoid", "Softmax", "LogSoftmax", "Identity", "Reciprocal", "Erf", "Cast", "Not",
         "Shape", "Size", "Flatten", "Transpose", "ReduceSum", "ReduceMean", "ReduceMax", "ArgMax", "IsNaN", "Gelu", "Cos", "NonZero",
         "LeakyRelu", "HardSwish", "Elu", "Softplus", "GlobalAveragePool", "GlobalMaxPool", "Ceil", "Floor", "Sign"]
BINARY = ["Add", "Sub", "Mul", "Div", "Pow", "MatMul", "Max", "Min", "Concat", "Gather", "Expand", "Reshape", "Tile", "Equal", "Less",
          "Greater", "Mod", "And", "Or", "Unsqueeze", "Squeeze", "CumSum", "Split", "GatherElements", "GatherND", "TopK", "Trilu", "PRelu"]
SAME = ["Relu", "Tanh", "Neg", "Abs", "Sigmoid", "Softmax", "LogSoftmax", "Identity", "Erf", "Cos", "Softplus", "Elu", "LeakyRelu"]
# A sentence about zeroc itself rather than about the model.
OWN_FAULT = re.compile(r"defect|LLVM gives up|could not be|do(es)? not link|malformed|come to an end|std::|nobody defines|does not verify|"
                       r"op (requires|expected|failed|operand|attribute|result|inferred)|dominate|expects different type")


# -------------------------------------------------------------------------------------------------------------- seeds
def seeds(folder):
    """Pairs of a model and flags that compile it."""
    tests = ROOT / "test/compiler/onnx/Inputs/models.py"
    for name in ("linear fillers masks rotary_cached bias numbers tables sorting extremes fourier streams features router image tied merged "
                 "shared branches weighted_loss cross_entropy attention").split():
        subprocess.run([sys.executable, tests, name, folder / f"{name}.onnx"], check=True)
        model = onnx.load(folder / f"{name}.onnx")
        own = any(i.name == "labels" for i in model.graph.input)
        yield model, ["--loss", f"output:{model.graph.output[0].name}" if own else "mse"]
    for arch in ("gpt", "llama"):
        subprocess.run([sys.executable, ROOT / "models/gpt.py", "--arch", arch, "--layers", "1", "--hidden", "8", "--heads", "2", "--vocab", "8",
                        "--seq", "4", "--batch", "1", "-o", folder / f"{arch}.onnx"], check=True, stdout=subprocess.DEVNULL)
        yield onnx.load(folder / f"{arch}.onnx"), []
    for file in sorted(ROOT.glob("models/tiny/*/*.onnx")):
        model = onnx.load(file)
        symbols = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
        sizes = ["--bind", ",".join(f"{name}=2" for name in sorted(symbols))] if symbols else []
        yield model, sizes + (["--loss", "output:loss"] if "loss" in file.parent.name else [])
    yield images(), ["--loss", "mse"]


def images():
    """Convolutions, poolings of both kinds, resizing, joining: what detectors are made of."""
    weights = [numpy_helper.from_array(np.full(s, 0.1, "float32"), n)
               for n, s in (("w1", (4, 3, 3, 3)), ("w2", (4, 8, 1, 1)))]
    weights.append(numpy_helper.from_array(np.array([1, 1, 2, 2], "float32"), "twice"))
    n = helper.make_node
    nodes = [n("Conv", ["x", "w1"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]), n("Sigmoid", ["a"], ["s"]),
             n("Mul", ["a", "s"], ["b"]), n("MaxPool", ["b"], ["p"], kernel_shape=[5, 5], pads=[2, 2, 2, 2], strides=[1, 1]),
             n("AveragePool", ["p"], ["q"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]), n("Concat", ["b", "q"], ["c"], axis=1),
             n("Conv", ["c", "w2"], ["d"], kernel_shape=[1, 1]), n("Resize", ["d", "", "twice"], ["e"], mode="nearest"),
             n("Slice", ["e", "from", "to", "axes"], ["f"]), n("ReduceMean", ["f"], ["y"], keepdims=0)]
    weights += [numpy_helper.from_array(np.array(v), k) for k, v in (("from", [1, 0]), ("to", [8, 7]), ("axes", [2, 3]))]
    graph = helper.make_graph(nodes, "images", [helper.make_tensor_value_info("x", 1, [1, 3, 12, 12])],
                              [helper.make_tensor_value_info("y", 1, None)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


# ------------------------------------------------------------------------------------------------------------ changes
def change_attribute(r, m):
    attributes = [a for node in m.graph.node for a in node.attribute if a.type in (onnx.AttributeProto.INT, onnx.AttributeProto.INTS,
                                                                                      onnx.AttributeProto.FLOAT)]
    a = r.choice(attributes)
    if a.type == onnx.AttributeProto.INTS and a.ints:
        if r.random() < 0.2:
            a.ints.append(r.choice(SMALL)) if r.random() < 0.5 else a.ints.pop()
        else:
            a.ints[r.randrange(len(a.ints))] = r.choice(NUMBERS if r.random() < 0.4 else SMALL)
    elif a.type == onnx.AttributeProto.INT:
        a.i = r.choice(NUMBERS if r.random() < 0.4 else SMALL)
    elif a.type == onnx.AttributeProto.FLOAT:
        a.f = r.choice([0.0, -1.0, 1e30, float("nan"), float("inf"), 0.5])


def change_shape(r, m):
    i = r.choice(m.graph.input)
    dims = i.type.tensor_type.shape.dim
    if r.random() < 0.2 or not dims:
        dims.add().dim_value = r.choice(SMALL)
    else:
        dims[r.randrange(len(dims))].dim_value = r.choice(NUMBERS)


def change_constant(r, m):
    """A number of a small integer constant: shapes, axes, pads, counts."""
    known = [t for t in m.graph.initializer if t.data_type in (TensorProto.INT64, TensorProto.INT32)]
    known += [a.t for n in m.graph.node for a in n.attribute if n.op_type == "Constant" and a.type == onnx.AttributeProto.TENSOR]
    t = r.choice(known)
    values = numpy_helper.to_array(t).copy()
    if values.size == 0 or values.dtype.kind not in "if":
        return
    flat = values.reshape(-1)
    with np.errstate(all="ignore"):
        flat[r.randrange(flat.size)] = np.array(r.choice(NUMBERS if r.random() < 0.4 else SMALL)).astype(flat.dtype)
    t.CopyFrom(numpy_helper.from_array(values, t.name))


def change_operator(r, m):
    node = r.choice(m.graph.node)
    node.op_type = r.choice(UNARY if len(node.input) == 1 else BINARY if r.random() < 0.8 else [n.op_type for n in m.graph.node])


def visible(m, index):
    """Names that the node at `index` may read."""
    names = [i.name for i in m.graph.input] + [t.name for t in m.graph.initializer]
    return names + [o for n in m.graph.node[:index] for o in n.output if o]


def change_edge(r, m):
    index = r.randrange(len(m.graph.node))
    node = m.graph.node[index]
    if node.input:
        node.input[r.randrange(len(node.input))] = r.choice(visible(m, index))


def grow(r, m):
    """Something of the same shape between a node and its readers: what keeps the model sound reaches the later phases."""
    index = r.randrange(len(m.graph.node))
    node = m.graph.node[index]
    old, name = node.output[0], f"grown{r.getrandbits(32)}"
    node.output[0] = f"{name}.0"
    for i in range(r.choice([1, 1, 1, 2, 5, 30, 300])):
        more, x = f"{name}.{i + 1}", f"{name}.{i}"
        how = r.random()
        if how < 0.6:
            insert(m, index + 1, helper.make_node(r.choice(SAME), [x], [more], name=more))
        elif how < 0.8:
            insert(m, index + 1, helper.make_node(r.choice(["Add", "Mul", "Max", "Sub"]), [x, x], [more], name=more))
        else:
            insert(m, index + 1, helper.make_node(r.choice(["Add", "Mul", "Min", "Div"]), [x, f"{name}.{r.randrange(i + 1)}"], [more], name=more))
        index += 1
    m.graph.node[index].output[0] = old


def insert(m, index, node):
    nodes = list(m.graph.node)
    nodes.insert(index, node)
    del m.graph.node[:]
    m.graph.node.extend(nodes)


def stack(r, m):
    """A node applied to its own result again and again."""
    index = r.randrange(len(m.graph.node))
    node = m.graph.node[index]
    if not node.input or not node.output:
        return
    first, last = node.output[0], f"stacked{r.getrandbits(32)}"
    times = r.choice([1, 2, 3, 5, 20, 200])
    node.output[0] = f"{last}.0"
    slot = r.randrange(len(node.input))
    same = r.random() < 0.3 and len(node.input) > 1  # x op x
    for i in range(times):
        more = copy.deepcopy(node)
        more.name = f"{last}_{i}"
        for k in range(len(more.output)):
            more.output[k] = f"{last}.{i + 1}" if k == 0 else f"{last}.{i + 1}.{k}"
        for k in range(len(more.input)) if same else [slot]:
            more.input[k] = f"{last}.{i}"
        if i == times - 1:
            more.output[0] = first
        insert(m, index + 1 + i, more)


def add_node(r, m):
    index = r.randrange(len(m.graph.node))
    node = m.graph.node[index]
    names = visible(m, index)
    name = f"added{r.getrandbits(32)}"
    if r.random() < 0.4:
        more = helper.make_node(r.choice(UNARY), [r.choice(names)], [name], name=name)
    elif r.random() < 0.7:
        more = helper.make_node(r.choice(BINARY), [r.choice(names), r.choice(names)], [name], name=name)
    else:
        more = copy.deepcopy(r.choice(m.graph.node))
        more.name = name
        for k in range(len(more.output)):
            more.output[k] = name if k == 0 else f"{name}.{k}"
        for k in range(len(more.input)):
            if r.random() < 0.5:
                more.input[k] = r.choice(names)
    insert(m, index, more)
    if node.input:
        m.graph.node[index + 1].input[r.randrange(len(node.input))] = name


def remove_node(r, m):
    node = r.choice(m.graph.node)
    if not node.input or not node.output:
        return
    gone, instead = node.output[0], node.input[0]
    m.graph.node.remove(node)
    for n in m.graph.node:
        for i, name in enumerate(n.input):
            if name == gone:
                n.input[i] = instead


def change_output(r, m):
    m.graph.output[0].name = r.choice([o for n in m.graph.node for o in n.output if o])


def change_type(r, m):
    t = r.choice(list(m.graph.initializer) + list(m.graph.input))
    if isinstance(t, TensorProto):
        t.data_type = r.randrange(0, 24)
    else:
        t.type.tensor_type.elem_type = r.randrange(0, 24)


CHANGES = [change_attribute, change_attribute, change_shape, change_constant, change_constant, change_operator, change_edge, change_edge, stack,
           stack, add_node, add_node, remove_node, change_output, change_type, *[grow] * 8]


def changed(r, model):
    m = copy.deepcopy(model)
    for _ in range(r.choice([1, 1, 1, 2, 2, 3, 5])):
        try:
            r.choice(CHANGES)(r, m)
        except (IndexError, ValueError, OverflowError, TypeError):
            pass  # there is nothing of this kind to change
    data = bytearray(m.SerializeToString())
    for _ in range(r.choice([0] * 19 + [1, 3, 10])):
        data[r.randrange(len(data))] = r.randrange(256)
    return bytes(data)


# ---------------------------------------------------------------------------------------------------------------- runs
def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def complaint(zeroc, model, flags, folder):
    """(what is wrong or None, what zeroc did)."""
    file = folder / f"{threading.get_ident()}.onnx"
    file.write_bytes(model)
    try:
        p = subprocess.run([zeroc, file, "-q", "-o", f"{file}.plan", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           errors="replace", timeout=10 * SECONDS, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return "it hangs", "hangs"
    said = [line for line in p.stderr.splitlines() if not line.startswith(("zeroc: warning: ", "zeroc: note: "))]
    if p.returncode == 0:
        return (None if not said else f"it compiled and said {said[0]!r}"), "compiled"
    if p.returncode != 1:
        return f"it ended with {p.returncode}: {' / '.join(said)[-300:]}", "crashes"
    if len(said) != 1 or not said[0].startswith("zeroc: error: "):
        return f"it said {len(said)} things: {' / '.join(said)[:400]}", "refused"
    if OWN_FAULT.search(said[0]):
        return f"it speaks of itself: {said[0][:300]}", "refused"
    return None, "stopped by its limits" if "--compile-" in said[0] else "refused"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=float, default=0)
    p.add_argument("--models", type=int, default=0)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--bin", default=str(ROOT / "build/bin"))
    p.add_argument("--found", default=str(ROOT / "build-fuzz/found"))
    a = p.parse_args()
    if not a.seconds and not a.models:
        p.error("for how long? --seconds N or --models N")
    found, begin = pathlib.Path(a.found), time.time()
    found.mkdir(parents=True, exist_ok=True)
    counts, faults, lock = {}, [], threading.Lock()
    with tempfile.TemporaryDirectory(prefix="zero-fuzz-") as folder:
        folder = pathlib.Path(folder)
        pool = list(seeds(folder))

        def one(n):
            if a.seconds and time.time() - begin > a.seconds:
                return False
            r = random.Random(f"{a.seed}/{n}")
            model, flags = r.choice(pool)
            flags = flags if r.random() < 0.8 else ["--loss", r.choice(["mse", "cross_entropy"])]
            if r.random() < 0.2:
                flags = [*flags, "--world", "2", "--stage", str(r.randrange(4)), "--accumulate", r.choice("12")]
            data = changed(r, model)
            why, did = complaint(f"{a.bin}/zeroc", data, flags, folder)
            with lock:
                counts[did] = counts.get(did, 0) + 1
                if why:
                    kept = found / f"compile-{a.seed}-{n}.onnx"
                    kept.write_bytes(data)
                    faults.append(n)
                    print(f"{kept} ({' '.join(flags)}): {why}", flush=True)
            return True

        with concurrent.futures.ThreadPoolExecutor(a.jobs) as workers:
            n = a.first
            while not a.models or n < a.first + a.models:
                batch = list(workers.map(one, range(n, n + 8 * a.jobs if not a.models else min(n + 8 * a.jobs, a.first + a.models))))
                n += len(batch)
                if not all(batch):
                    break
    done = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    print(f"compile_fuzz: {sum(counts.values())} models in {time.time() - begin:.0f} s: {done}; {len(faults)} found")
    sys.exit(1 if faults or not counts else 0)


main()
