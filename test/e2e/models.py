#!/usr/bin/env python3
"""models/gpt.py: its graphs are valid ONNX, run in onnxruntime, look only backwards, and stay small without weights."""
import contextlib
import io
import sys

import numpy as np
import onnx
import onnxruntime

from harness import ROOT, Suite, expect

sys.path.insert(0, str(ROOT / "models"))
import gpt  # noqa: E402

SMALL = ["--layers", "2", "--hidden", "64", "--heads", "4", "--vocab", "100", "--seq", "12", "--batch", "2"]
suite = Suite(__doc__)


def logits(path, ids):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(["logits"], {"input_ids": ids})[0]


def runs(name, batch, seq, *flags):
    path = suite.gpt(name, *SMALL, *flags)
    onnx.checker.check_model(str(path), full_check=True)
    ids = np.random.default_rng(1).integers(0, 100, (batch, seq))
    first = logits(path, ids)
    expect(first.shape == (batch, seq, 100), f"logits have the shape {first.shape}")
    expect(np.isfinite(first).all() and first.std() > 1e-3, "logits are not finite or all alike")
    changed = ids.copy()
    changed[:, 7] = (changed[:, 7] + 1) % 100
    second = logits(path, changed)
    expect(np.array_equal(first[:, :7], second[:, :7]), "a later token changed earlier logits")
    expect(all(np.abs(first[:, t] - second[:, t]).max() > 1e-6 for t in range(7, seq)), "a token did not change later logits")
    model = onnx.load(str(path))
    large = [i for i in model.graph.initializer if "." in i.name]
    expect(len({i.raw_data for i in large}) == len(large), "two parameters hold the same values")


def external():
    """Weights beside the graph: the same values as inside."""
    inside = suite.gpt("inside.onnx", *SMALL)
    limit, gpt.EXTERNAL_ABOVE, argv = gpt.EXTERNAL_ABOVE, 1000, sys.argv
    try:
        sys.argv = ["gpt.py", *SMALL, "-o", str(suite.work / "beside.onnx")]
        with contextlib.redirect_stdout(io.StringIO()):
            gpt.main()
    finally:
        gpt.EXTERNAL_ABOVE, sys.argv = limit, argv
    beside = suite.work / "beside.onnx"
    expect(beside.stat().st_size < 60_000 < (suite.work / "beside.onnx.data").stat().st_size, "the weights are not beside the graph")
    onnx.checker.check_model(str(beside))
    ids = np.arange(24).reshape(2, 12)
    expect(np.array_equal(logits(inside, ids), logits(beside, ids)), "other logits than with the weights inside")


def no_weights():
    path = suite.gpt("175b.onnx", "--layers", "96", "--hidden", "12288", "--heads", "96", "--seq", "2048", "--no-weights")
    size = path.stat().st_size
    expect(size < 1_000_000, f"the 175B file has {size} bytes")
    model = onnx.load(str(path))
    tensors = [i for i in model.graph.initializer if "." in i.name]
    count = sum(int(np.prod(i.dims)) for i in tensors)
    expect(count == 174_604_259_328, f"it has {count} parameters")
    expect(not any(i.raw_data or i.float_data or i.external_data for i in tensors), "an initializer has data")
    return f"{size / 1000:.0f} kB"


def wrong_flags():
    for flags, word in ((["--hidden", "65"], "multiple"), (["--arch", "llama", "--kv-heads", "3"], "multiple"), (["--layers", "0"], "at least"), (["--ffn", "-4"], "at least"), (["--arch", "llama", "--kv-heads", "0"], "at least"),
                        (["--seed", "-1"], "negative")):
        result = suite.run([sys.executable, ROOT / "models" / "gpt.py", *SMALL, *flags, "-o", "x.onnx"], check=False)
        expect(result.returncode != 0 and word in result.stderr.splitlines()[-1], f"{flags} was not refused: {result.stderr}")


suite.start()
suite.check("models: gpt", runs, "gpt.onnx", 2, 12)
suite.check("models: gpt, dynamic, untied", runs, "gpt_dynamic.onnx", 3, 9, "--dynamic", "--untied")
suite.check("models: llama", runs, "llama.onnx", 2, 12, "--arch", "llama", "--kv-heads", "2")
suite.check("models: llama, dynamic, tied", runs, "llama_dynamic.onnx", 3, 9, "--arch", "llama", "--kv-heads", "2", "--dynamic", "--tied")
suite.check("models: external weights", external)
suite.check("models: 175B without weights", no_weights)
suite.check("models: flags that cannot be", wrong_flags)
suite.finish()
