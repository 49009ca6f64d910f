#!/usr/bin/env python3
"""Tensors that are indexed by a mask, as exporters write them with NonZero, through the reader and the reference interpreter, against onnx's own.

usage: masks.py ONNX-EVAL
"""
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

HEAD = '<ir_version: 10, opset_import: ["": 18]> g (int64[2, 5] ids, float[2, 5, 4] x, float[{source}] s) => (float[{result}] y)'
FOUND = """held = Constant <value_ints = [3]> ()  b = Equal (ids, held)  last = Constant <value_ints = [-1]> ()  column = Unsqueeze (b, last)
    like = Shape (x)  mask = Expand (column, like)  found = NonZero (mask)  rows = Transpose <perm = [1, 0]> (found)
    zero = Constant <value_ints = [0]> ()  one = Constant <value_int = 0> ()"""
COUNT = "shape = Shape (rows)  n = Gather (shape, one)  count = Unsqueeze (n, zero)  flat = Reshape (s, last)"
CHOSEN = """held = Constant <value_ints = [3]> ()  b = Equal (ids, held)  found = NonZero (b)  rows = Transpose <perm = [1, 0]> (found)
    chosen = GatherND (x, rows)  all = Constant <value_ints = [2, -1, 4]> ()  each = Reshape (chosen, all)"""
SUMMED = """last1 = Constant <value_ints = [-1]> ()  ones = Reshape (b, last1)  numbers = Cast <to = 7> (ones)  count = ReduceSum (numbers)
    width = Constant <value_ints = [4]> ()  wide = Concat <axis = 0> (count, width)"""
KNOWN = FOUND.replace("Equal (ids, held)", "Equal (known, held)").replace("held =", "known = Constant <value = int64[2, 5] {3, 0, 3, 1, 2, 0, 3, 2, 3, 9}> ()  held =", 1)
# Dimensions are counted from the end, too, as PyTorch's older exporter writes them.
ROWS = """held = Constant <value_ints = [3]> ()  b = Equal (ids, held)  found = NonZero (b)  rows = Transpose <perm = [-1, 0]> (found)
    chosen = GatherND (x, rows)  zero = Constant <value_ints = [0]> ()  one = Constant <value_ints = [1]> ()  two = Constant <value_ints = [2]> ()"""
TOKENS = "tokens = Slice (rows, one, two, one)"  # of each sample's five: two samples may name the same
CASES = {  # shape of what is put, shape of the result, nodes
    "masked_scatter": ("4, 4", "2, 5, 4", f"{FOUND} {COUNT} first = Slice (flat, zero, count, zero)  y = ScatterND (x, rows, first)"),
    "masked_scatter of odd elements": ("17", "2, 5, 4", f"{FOUND} {COUNT} first = Slice (flat, zero, count, zero)  y = ScatterND (x, rows, first)"),
    "one row put everywhere": ("4", "2, 5, 4", f"{FOUND} {SUMMED} same = Expand (s, wide)  put = Reshape (same, last)  y = ScatterND (x, rows, put)"),
    "one row put where a known mask holds": ("4", "2, 5, 4", f"{KNOWN} {SUMMED} same = Expand (s, wide)  put = Reshape (same, last)  y = ScatterND (x, rows, put)"),
    "one row put by a mask of rows": ("4", "2, 5, 4", f"{ROWS} {SUMMED} same = Expand (s, wide)  y = ScatterND (x, rows, same)"),
    "as many rows as there are": ("4, 4", "2, 5, 4", f"{FOUND} {SUMMED} same = Expand (s, wide)  put = Reshape (same, last)  y = ScatterND (x, rows, put)"),
    "the last of each sample": ("1", "2, 4", f"{CHOSEN} end = Constant <value_int = -1> ()  y = Gather <axis = 1> (each, end)"),
    "the last of each sample, of all samples": ("1", "2, 4", f"{CHOSEN} end = Constant <value_int = -1> ()  flat = Constant <value_ints = [-1]> ()  first = Constant <value_int = 0> ()"
                                                " low = Reshape (first, flat)  most = Constant <value_ints = [9223372036854775807]> ()  whole = Slice (each, low, most, low)"
                                                "  y = Gather <axis = 1> (whole, end)"),
    "the first of each sample": ("1", "2, 1, 4", f"{CHOSEN} end = Constant <value_ints = [0]> ()  y = Gather <axis = 1> (each, end)"),
    "rows put back": ("4, 4", "2, 5, 4", f"{ROWS} product = MatMul (chosen, s)  new = Relu (product)  y = ScatterND (x, rows, new)"),
    "rows put where a mask computed alike holds": ("4", "2, 5, 4", f"{ROWS} again = Equal (ids, held)  places = NonZero (again)  to = Transpose <perm = [1, 0]> (places)  new = Relu (chosen)  y = ScatterND (x, to, new)"),
    "rows put where another mask holds": ("4", "2, 5, 4", f"{ROWS} other = Equal (ids, one)  places = NonZero (other)  to = Transpose <perm = [1, 0]> (places)  y = ScatterND (x, to, chosen)"),
    "rows added": ("2, 5, 4", "2, 5, 4", f"{ROWS} scale = Softmax (chosen)  new = Mul (chosen, scale)  y = ScatterND <reduction = \"add\"> (s, rows, new)"),
    "rows of both samples added": ("5, 4", "5, 4", f"{ROWS} {TOKENS} y = ScatterND <reduction = \"add\"> (s, tokens, chosen)"),
    "rows of both samples put": ("5, 4", "5, 4", f"{ROWS} {TOKENS} y = ScatterND (s, tokens, chosen)"),
    "elements added": ("5, 4", "5, 4", f"{ROWS} {TOKENS} like = Shape (chosen)  wide = Expand (tokens, like)  y = ScatterElements <axis = 0, reduction = \"add\"> (s, wide, chosen)"),
    "a mean over all rows": ("4", "2, 5, 4", f"{ROWS} mean = ReduceMean (chosen, zero)  y = Add (x, mean)"),
    "the largest of rows": ("4", "2, 5, 4", f"{ROWS} most = ReduceMax <keepdims = 0> (chosen, zero)  y = Add (x, most)"),
    "a norm of everything": ("4", "2, 5, 4", f"{ROWS} norm = ReduceL2 <keepdims = 0> (chosen)  y = Add (x, norm)"),
    "a loss of rows": ("4", "", f"""{ROWS} picked = GatherND (ids, rows)  four = Constant <value_int = 4> ()  classes = Mod (picked, four)
        y = SoftmaxCrossEntropyLoss <ignore_index = -100> (chosen, classes)"""),
    "a running sum of rows": ("4", "2, 5, 4", f"{ROWS} run = CumSum (chosen, zero)  mean = ReduceMean (run, zero)  y = Add (x, mean)"),
    "how many there are": ("4", "2, 5, 4", f"{ROWS} shape = Shape (chosen)  n = Gather (shape, zero)  k = Cast <to = 1> (n)  y = Add (x, k)"),
    "the first two rows": ("4", "2, 4", f"{ROWS} y = Slice (chosen, zero, two, zero)"),
    "rows as a result": ("4", "k, 4", f"{ROWS} y = Relu (chosen)"),
    "the largest of rows put": ("5, 4", "5, 4", f"{ROWS} {TOKENS} y = ScatterND <reduction = \"max\"> (s, tokens, chosen)"),
    "rows put in another order": ("4", "2, 5, 4", f"{ROWS} last = Constant <value_ints = [-1]> ()  turned = Mul (rows, last)  y = ScatterND (x, turned, chosen)"),
    "rows put to one row": ("4", "2, 5, 4", f"{ROWS} first = Mul (rows, zero)  y = ScatterND (x, first, chosen)"),
    "the second of each sample": ("1", "2, 4", f"{CHOSEN} end = Constant <value_int = 1> ()  y = Gather <axis = 1> (each, end)"),
    "the last of one sample": ("1", "1, 4", f"{CHOSEN} end = Constant <value_int = -1> ()  low = Constant <value_ints = [0]> ()  high = Constant <value_ints = [1]> ()"
                                            "  one = Slice (each, low, high, low)  y = Gather <axis = 1> (one, end)"),
    "from the second element on": ("4, 4", "2, 5, 4", f"{FOUND} {COUNT} k = Constant <value_ints = [1]> ()  first = Slice (flat, k, count, zero)  y = ScatterND (x, rows, first)"),
}
random = np.random.default_rng(0)
for name, (source, result, nodes) in CASES.items():
    model = onnx.parser.parse_model(HEAD.format(source=source, result=result) + "{\n" + nodes.replace(")  ", ")\n").replace(") ", ")\n") + "\n}")
    feeds = {"ids": np.array([[3, 0, 3, 1, 2], [0, 3, 2, 3, 9]]), "x": random.normal(size=(2, 5, 4)).astype(np.float32),
             "s": random.normal(size=[int(n) for n in source.split(",")]).astype(np.float32)}
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/m.onnx")
        for key, value in feeds.items():
            value.tofile(f"{folder}/{key}.bin")
        done = subprocess.run([sys.argv[1], f"{folder}/m.onnx", "--run", folder], capture_output=True, text=True)
        if done.returncode:
            print(f"{name}: refused: {done.stderr.strip().splitlines()[-1]}")
            continue
        want = ReferenceEvaluator(model).run(None, feeds)[0]
        have = np.fromfile(f"{folder}/out0.bin", np.float32).reshape(want.shape)
    print(f"{name}: {'right' if np.allclose(have, want, rtol=1e-5, atol=1e-6) else 'wrong'}")
