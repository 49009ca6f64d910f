#!/usr/bin/env python3
"""Convolutions whose windows are too large to be taken apart tap by tap, and those of each channel by itself, through the reader and the
reference interpreter, against onnx's own.

usage: windows.py ONNX-EVAL
"""
import json
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

random = np.random.default_rng(0)
CASES = {  # input, weight, attributes
    "one dimension": ((2, 4, 150), (4, 4, 100), dict(pads=[50, 50])),
    "two, groups, strides, dilations": ((1, 4, 21, 30), (6, 2, 9, 10), dict(pads=[4, 3, 2, 5], strides=[2, 1], dilations=[1, 2], group=2)),
    "three": ((1, 2, 6, 7, 8), (3, 2, 4, 5, 6), dict(pads=[1, 2, 3, 0, 1, 2], strides=[1, 2, 2])),
    "one place": ((1, 2, 10, 9), (3, 2, 10, 9), dict(strides=[3, 1])),
    "each channel, one dimension": ((2, 5, 40), (5, 1, 31), dict(pads=[15, 15], group=5)),
    "each channel, strides, dilations": ((2, 4, 13, 12), (4, 1, 3, 5), dict(pads=[2, 0, 1, 3], strides=[2, 1], dilations=[1, 2], group=4)),
    "each channel, one place": ((1, 3, 4, 3), (3, 1, 4, 3), dict(strides=[1, 2], group=3)),
    "each channel twice": ((2, 3, 6, 6), (6, 1, 3, 3), dict(pads=[1, 1, 1, 1], group=3)),
    "each channel, a large window": ((1, 2, 20, 20), (2, 1, 9, 9), dict(pads=[4, 4, 4, 4], group=2)),
}
for name, (shape, weight, attributes) in CASES.items():
    x, w = (random.normal(size=s).astype(np.float32) for s in (shape, weight))
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=weight[2:], **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    want = ReferenceEvaluator(model).run(None, {"x": x})[0]
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/m.onnx")
        x.tofile(f"{folder}/x.bin")
        told = subprocess.run([sys.argv[1], f"{folder}/m.onnx", "--run", folder], check=True, capture_output=True, text=True).stdout
        have = np.fromfile(f"{folder}/out0.bin", np.float32).reshape(want.shape)
    right = np.allclose(have, want, rtol=1e-4, atol=1e-4)
    roles = {parameter["role"] for parameter in json.loads(told)["parameters"]}
    print(f"{name}: {'right' if right else 'wrong'}, {want.size} elements, by a {', '.join(roles)}")
