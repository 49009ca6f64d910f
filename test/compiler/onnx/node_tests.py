#!/usr/bin/env python3
"""Run the ONNX project's own operator tests through the reader and the reference interpreter.

usage: node_tests.py ONNX-EVAL [--only SUBSTR]… [--verbose]
Cases whose types the nn dialect does not have (strings, 8-bit floats, complex, double results …) are left out. Integer and
one-element inputs become initializers where the reader wants to know them. A refusal is fine, a wrong number is not.
"""
import argparse, collections, os, pathlib, subprocess, sys, tempfile, warnings
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

warnings.filterwarnings("ignore")
p = argparse.ArgumentParser()
p.add_argument("tool"); p.add_argument("--only", action="append", default=[]); p.add_argument("--verbose", action="store_true")
a = p.parse_args()
NEWEST = 25
# Corners are aligned by whole sizes, as in PyTorch and onnxruntime; ONNX's evaluator takes the size that a factor would give before it is rounded.
OTHERWISE = {"test_resize_downsample_scales_linear_align_corners", "test_resize_downsample_scales_cubic_align_corners"}
KINDS = {TensorProto.FLOAT: np.float32, TensorProto.INT64: np.int64, TensorProto.INT32: np.int32, TensorProto.BOOL: np.bool_}


def attempt(model, feeds, wanted, rtol, atol, constant):
    """None if the numbers are right, ('refused', message) or ('wrong', message)."""
    m = onnx.ModelProto(); m.CopyFrom(model)
    given = {}
    for v, x in zip(list(m.graph.input), feeds):
        if constant(x):
            m.graph.input.remove(v)
            m.graph.initializer.append(numpy_helper.from_array(x, v.name))
        else:
            given[v.name] = x
    with tempfile.TemporaryDirectory() as w:
        onnx.save(m, f"{w}/m.onnx")
        for k, x in given.items():
            with open(f"{w}/{k}.bin", "wb") as f:
                f.write(np.ascontiguousarray(x).tobytes())
        r = subprocess.run([a.tool, f"{w}/m.onnx", "--run", w], capture_output=True, text=True)
        if r.returncode:
            return ("refused" if r.returncode == 1 else "crash", (r.stderr.strip().splitlines() or ["?"])[-1])
        for i, want in enumerate(wanted):
            have = np.fromfile(f"{w}/out{i}.bin", want.dtype)
            if have.size != want.size:
                return "wrong", f"result {i} has {have.size} elements, not {want.size}"
            if not np.allclose(have, want.reshape(-1), rtol=rtol, atol=atol, equal_nan=True):
                return "wrong", f"result {i} is {have[:4]}, not {want.reshape(-1)[:4]}"
    return None


from onnx.backend.test.case.node import collect_testcases
count, refused, bad = collections.Counter(), collections.Counter(), []
for case in collect_testcases(None):
    m = case.model
    if (a.only and not any(o in case.name for o in a.only)) or "expanded" in case.name or case.name in OTHERWISE:
        continue
    domains = {o.domain for o in m.opset_import}
    default = [o for o in m.opset_import if o.domain == ""]
    try:
        newest = max(onnx.defs.get_schema(n.op_type, max_inclusive_version=99).since_version for n in m.graph.node)
    except Exception:
        newest = 99
    types = [v.type for v in [*m.graph.input, *m.graph.output]]
    if domains != {""} or (default[0].version > NEWEST and newest > NEWEST) or default[0].version < 11:
        count["another opset"] += 1; continue
    if not all(t.HasField("tensor_type") and t.tensor_type.elem_type in KINDS for t in types):
        count["types"] += 1; continue
    default[0].version = min(default[0].version, NEWEST)
    feeds, wanted = case.data_sets[0]
    feeds, wanted = [np.asarray(x) for x in feeds], [np.asarray(x) for x in wanted]
    wanted = [x for x, v in zip(wanted, m.graph.output)]
    result = None
    for constant in (lambda x: False, lambda x: x.dtype.kind in "iub" or x.size <= 1, lambda x: True):
        result = attempt(m, feeds, wanted, max(case.rtol, 1e-3), max(case.atol, 1e-5), constant)
        if result is None or result[0] != "refused":
            break
    if result is None:
        count["right"] += 1
    elif result[0] == "refused":
        count["refused"] += 1
        refused[m.graph.node[0].op_type] += 1
        if a.verbose:
            print(f"{case.name}: {result[1]}")
    else:
        bad.append(case.name)
        print(f"{case.name}: {result[0]}: {result[1]}", flush=True)
print(dict(count), "wrong", len(bad))
print("refused operators:", ", ".join(f"{k} {v}" for k, v in refused.most_common(200)))
sys.exit(1 if bad else 0)
