#!/usr/bin/env python3
"""Loops that can be unrolled while importing, through the reader and the reference interpreter, against numpy; and those that are not.

usage: loops.py ONNX-EVAL
"""
import json
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
info = helper.make_tensor_value_info
NUMBER, TRUTH = info("i", TensorProto.INT64, []), info("on", TensorProto.BOOL, [])


def by_numpy(iterations):
    """The value after so many iterations, then the scan output of each."""
    value, rows = x, []
    for i in range(iterations):
        rows.append(value * 0.5)
        value = rows[-1] + i
    return np.stack([value, *rows])


def model(nodes, body, outputs, count=3, condition=True):
    """A graph of x whose Loop, of these nodes, is named in `nodes` as None; y is its result. `count`: None for a loop without one."""
    constants = [numpy_helper.from_array(np.array(v), n) for n, v in (("count", count or 0), ("true", condition), ("one", 1), ("zero", [0]), ("half", np.float32(0.5)), ("m.bias", np.zeros(4, np.float32)))]
    loop = helper.make_node("Loop", ["" if count is None else "count", "true", "x"], outputs, name="loop", body=body)
    graph = helper.make_graph([loop if n is None else n for n in nodes], "g", [info("x", TensorProto.FLOAT, x.shape)],
                              [info("y", TensorProto.FLOAT, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def body(nodes, *yielded, on="on"):
    """A loop's body that carries `v`; what it yields besides are scan outputs."""
    carried = info("v", TensorProto.FLOAT, None)
    nodes = [*nodes, helper.make_node("Identity", [on], ["goes_on"])]
    return helper.make_graph(nodes, "body", [NUMBER, TRUTH, carried], [info("goes_on", TensorProto.BOOL, []), *(info(n, TensorProto.FLOAT, None) for n in yielded)])


node = helper.make_node
step = [node("Cast", ["i"], ["t"], to=TensorProto.FLOAT), node("Mul", ["v", "half"], ["h"]), node("Add", ["h", "t"], ["w"])]
two = node("Concat", ["last", "rows"], ["y"], axis=0)
CASES = {  # and the result; None: it is refused
    "a carried value": (model([None], body(step, "w"), ["y"]), by_numpy(3)[0]),
    "a scan output": (model([None, node("Unsqueeze", ["end", "zero"], ["last"]), two], body(step, "w", "h"), ["end", "rows"]), by_numpy(3)),
    "until the condition says so": (model([None], body([*step, node("Less", ["i", "one"], ["early"])], "w", on="early"), ["y"], count=9), by_numpy(2)[0]),
    "no trip count": (model([None], body([*step, node("Less", ["i", "one"], ["early"])], "w", on="early"), ["y"], count=None), by_numpy(2)[0]),
    "no iteration": (model([None], body(step, "w"), ["y"], condition=False), x),
    "what the graph around it has": (model([None], body([node("Add", ["v", "x"], ["w"])], "w"), ["y"]), 4 * x),
    "a fresh bias in each iteration": (model([None], body([node("Tanh", ["v"], ["t"]), node("Add", ["t", "m.bias"], ["w"])], "w"), ["y"]), np.tanh(np.tanh(np.tanh(x)))),
    "more iterations than there may be": (model([None], body([], "v"), ["y"], count=1 << 40), None),
    "no end": (model([None], body([], "v"), ["y"], count=None), None),
    "a condition of the data": (model([None], body([*step, node("ReduceMax", ["v"], ["m"], keepdims=0), node("Less", ["m", "half"], ["small"])], "w", on="small"), ["y"]), None),
    "no scanned element": (model([None, node("Unsqueeze", ["end", "zero"], ["last"]), two], body(step, "w", "h"), ["end", "rows"], count=0), None),
}
for name, (each, want) in CASES.items():
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(each, f"{folder}/m.onnx")
        x.tofile(f"{folder}/x.bin")
        ran = subprocess.run([sys.argv[1], f"{folder}/m.onnx", "--run", folder], capture_output=True, text=True)
        if want is None or ran.returncode:
            print(f"{name}: {(ran.stderr.strip() or 'not refused').splitlines()[-1]}")
            continue
        have = np.fromfile(f"{folder}/out0.bin", np.float32)
        right = have.size == want.size and np.allclose(have.reshape(want.shape), want, rtol=1e-5, atol=1e-5)
        print(f"{name}: {'right' if right else 'wrong'}, {want.size} elements, {len(json.loads(ran.stdout)['parameters'])} parameters")
