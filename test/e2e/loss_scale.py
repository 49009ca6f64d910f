#!/usr/bin/env python3
"""Training with --precision f16, whose loss is scaled.

gpt2 of models/tiny:
- a scale that is too large is halved until gradients are finite again; steps that were skipped are counted, and change neither parameters nor
  what the optimizer keeps. Stages, ranks' shards, offload placements, micro-steps and clipping of one world agree to the bit on which they are;
- what the scale is does not change results, as long as nothing leaves the range of f16 and little falls below it;
- a run that is stopped right after a skipped step goes on with the bits of one that was not, at another stage as well;
- a step whose data is too large for f16 is skipped, and the run goes on; where none is finite it ends with a sentence;
- a scale for a plan without one, and one that would round, are refused.
How the scale grows is in test/unit/train_test.cpp; how close to PyTorch f16 comes is in check_references.py.
"""
import json
import shutil
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import TINY, Suite, expect

STEPS = 8
HUGE = 2**25  # gradients of this model overflow f16 for the first steps
suite = Suite(__doc__)
resident = {}


def compiled(world, stage, accumulate, homes=("none", "none", "none"), precision="f16"):
    suite.zeroc(TINY / "gpt2" / "dynamo_sdpa_dyn.onnx", "one.plan", "--quiet", "--precision", precision, "--bind", f"batch={4 // world // accumulate},seq={seq}",
                "--world", world, "--stage", stage, "--accumulate", accumulate, "--offload-params", homes[0], "--offload-optimizer", homes[1],
                "--offload-activations", homes[2])
    return ["--disk-path", suite.work / "disk"] if "disk" in homes else []


def trained(world, where, *flags, steps=STEPS, data="gpt2.safetensors"):
    """Parameters, and the lines of metrics without what depends on the clock and on where state lies."""
    (suite.work / "one.jsonl").unlink(missing_ok=True)
    suite.zerorun("one.plan", "--data", data, "--steps", steps, "--lr", "1e-3", "--threads", 1, "--metrics", "one.jsonl", "--export", "one.safetensors",
                  *where, *flags, world=world)
    lines = [json.loads(line) for line in (suite.work / "one.jsonl").read_text().splitlines()]
    return load_file(suite.work / "one.safetensors"), [{key: line.get(key) for key in ("step", "loss", "grad_norm", "loss_scale", "skipped")} for line in lines]


def expect_same(found, wanted, what):
    expect(found[1] == wanted[1], f"steps {found[1]}, {what} {wanted[1]}")
    different = [n for n in wanted[0] if wanted[0][n].tobytes() != found[0][n].tobytes()]
    expect(wanted[0] and not different, f"{len(different)} of {len(wanted[0])} parameters differ from {what}, such as {min(different, default='')}")


def skips(world, stage, accumulate, clip, homes):
    flags = ["--loss-scale", HUGE, *(["--clip", 0.7] if clip else [])]
    found = trained(world, compiled(world, stage, accumulate, homes), *flags)
    skipped = found[1][-1]["skipped"]
    expect(0 < skipped < STEPS - 2, f"{skipped} of {STEPS} steps were skipped")
    for line in found[1]: # all of them at the beginning, each time at half of the scale
        before = min(line["step"] - 1, skipped)
        expect(line["loss_scale"] == HUGE >> before and line["skipped"] == min(line["step"], skipped), f"step {line}")
        expect((line["grad_norm"] is None) == (line["step"] <= skipped), f"the gradient's norm in {line}")
    key = (world, accumulate, clip)
    expect_same(found, resident.setdefault(key, found), "the first run of as many ranks and micro-steps")
    return f"{skipped} of {STEPS} steps"


def counts_updates():
    """After skipped steps the optimizer is where it was: the first update that is made is its first one."""
    where = compiled(1, 0, 1)
    skipped = trained(1, where, "--loss-scale", HUGE)[1][-1]["skipped"]
    shutil.rmtree(suite.work / "initial", ignore_errors=True)
    initial, _ = trained(1, where, "--loss-scale", HUGE, "--checkpoint", "initial", steps=skipped)
    untrained = load_file(suite.work / "initial" / f"step-{skipped}" / "rank-0.safetensors")
    expect(all(not np.any(value) for name, value in untrained.items() if name.split("/")[0] in ("m", "v") and "crc" not in name), "a skipped step changed a moment")
    model = np.load(TINY / "gpt2" / "batches.npz")
    stack = lambda name: np.concatenate([model[f"{step}/{name}"] for step in range(skipped, skipped + 1)])
    save_file({"input_ids": stack("input_ids"), "labels": stack("targets")}, suite.work / "after.safetensors")
    one, _ = trained(1, where, "--loss-scale", HUGE >> skipped, steps=1, data="after.safetensors")
    all_of_them, _ = trained(1, where, "--loss-scale", HUGE, steps=skipped + 1)
    expect_same((all_of_them, []), (one, []), "a run that begins with the first step that is not skipped")
    expect(any(initial[n].tobytes() != one[n].tobytes() for n in one), "that step changed nothing")


def does_not_matter():
    """Powers of two round nothing: two scales give nearly the same losses, and the largest one without overflow f32's."""
    where = compiled(1, 0, 1)
    runs = {scale: trained(1, where, "--loss-scale", scale)[1] for scale in ("auto", 65536, 4096)}
    expect(runs["auto"] == runs[65536], f"auto is not 65536: {runs['auto']}")
    expect(all(line["skipped"] == 0 for lines in runs.values() for line in lines), "a step was skipped")
    far = max(abs(a["loss"] - b["loss"]) for a, b in zip(runs[65536], runs[4096]))
    expect(far < 2e-3, f"losses differ by {far}")
    return f"losses within {far:.0e}"


def resumed(first, second):
    """Stopped after the second of the steps that are skipped."""
    shutil.rmtree(suite.work / "kept", ignore_errors=True)
    compiled(2, first, 2)
    trained(2, [], "--loss-scale", HUGE, "--checkpoint", "kept", steps=2)
    compiled(2, second, 2)
    files, lines = trained(2, [], "--loss-scale", HUGE, "--checkpoint", "kept", "--resume", "kept")
    compiled(2, 0, 2)
    straight = trained(2, [], "--loss-scale", HUGE)
    expect_same((files, lines), (straight[0], straight[1][2:]), "the run that was not stopped")
    expect(straight[1][1]["skipped"] == 2 and lines[0]["loss_scale"] == HUGE >> 2, f"no step was skipped: {straight[1]}")


def other_precision():
    """Moments count the updates that were made: f32 goes on from there."""
    shutil.rmtree(suite.work / "kept", ignore_errors=True)
    trained(1, compiled(1, 0, 1), "--loss-scale", HUGE, "--checkpoint", "kept", steps=STEPS // 2)
    compiled(1, 0, 1, precision="f32")
    _, lines = trained(1, [], "--checkpoint", "kept", "--resume", "kept")
    expect(len(lines) == STEPS - STEPS // 2 and all(line["loss_scale"] is None for line in lines), f"steps {lines}")
    index = json.loads((suite.work / "kept" / f"step-{STEPS}" / "index.json").read_text())
    expect(index["skipped"] > 0 and "loss_scale" not in index, f"{index['skipped']} skipped steps in the index")


def data_too_large(bad_steps, steps):
    """A head on inputs beyond the range of f16, in these steps."""
    suite.run([sys.executable, "-c", MODEL])
    suite.zeroc("head.onnx", "head.plan", "--quiet", "--precision", "f16", "--loss", "mse")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4 * steps, 8), dtype=np.float32), rng.standard_normal((4 * steps, 8), dtype=np.float32)
    for step in bad_steps:
        x[4 * step:4 * step + 4] *= 1e30
    save_file({"x": x, "labels": y}, suite.work / "head.safetensors")
    (suite.work / "head.jsonl").unlink(missing_ok=True)
    result = suite.zerorun("head.plan", "--data", "head.safetensors", "--steps", steps, "--lr", "1e-3", "--metrics", "head.jsonl", check=False)
    return result, [json.loads(line) for line in (suite.work / "head.jsonl").read_text().splitlines()]


MODEL = """
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
weight = numpy_helper.from_array(np.eye(8, dtype=np.float32) * 0.5, "head.weight")
graph = helper.make_graph([helper.make_node("MatMul", ["x", "head.weight"], ["y"], name="head")], "head",
                          [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 8])], [weight])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "head.onnx")
"""


def skips_data():
    result, lines = data_too_large({2}, 5)
    expect(result.returncode == 0, f"the run ended: {result.stderr[-300:]}")
    expect([line["skipped"] for line in lines] == [0, 0, 1, 1, 1], f"skipped {[line['skipped'] for line in lines]}")
    expect([line["loss_scale"] for line in lines] == [65536] * 3 + [32768] * 2, f"scales {[line['loss_scale'] for line in lines]}")
    expect("scale 65536" in result.stdout and "(1 skipped)" in result.stdout, result.stdout)


def gives_up():
    result, lines = data_too_large(set(range(30)), 30)
    expect(result.returncode == 1 and len(lines) == 17, f"exit {result.returncode} after {len(lines)} steps")
    expect("the gradient of step 17 is not finite, and the loss scale is 1 already, so the run ends" in result.stderr, result.stderr[-300:])


def refused(precision, scale, sentence):
    compiled(1, 0, 1, precision=precision)
    result = suite.zerorun("one.plan", "--data", "gpt2.safetensors", "--steps", 1, "--loss-scale", scale, check=False)
    expect(result.returncode == 1 and sentence in result.stderr, result.stderr)


suite.start()
seq = suite.tiny_data("gpt2")
for world, stage, accumulate, clip, homes in ((1, 0, 1, False, ("none", "none", "none")), (1, 0, 1, False, ("disk", "host", "host")),
                                              (2, 0, 1, True, ("none", "none", "none")), (2, 3, 1, True, ("none", "none", "none")),
                                              (2, 1, 1, True, ("host", "disk", "disk")), (2, 0, 2, False, ("none", "none", "none")),
                                              (2, 2, 2, False, ("none", "host", "none")), (2, 3, 2, False, ("disk", "host", "host"))):
    suite.check(f"loss scale: {world} ranks, stage {stage}, {accumulate} micro-steps{', clipped' if clip else ''}, on {', '.join(homes)}", skips, world, stage,
                accumulate, clip, homes)
suite.check("loss scale: skipped steps are no updates", counts_updates)
suite.check("loss scale: two of them", does_not_matter)
for first, second in ((0, 3), (3, 1)):
    suite.check(f"loss scale: stopped after a skipped step at stage {first}, resumed at stage {second}", resumed, first, second)
suite.check("loss scale: resumed in f32", other_precision)
suite.check("loss scale: a step of data beyond f16", skips_data)
suite.check("loss scale: nothing but such data", gives_up)
suite.check("loss scale: of an f32 plan", refused, "f32", "auto", "--loss-scale is for plans of zeroc --precision f16")
suite.check("loss scale: of a bf16 plan", refused, "bf16", 1024, "--loss-scale is for plans of zeroc --precision f16")
suite.check("loss scale: one that rounds", refused, "f16", 1000, "wants auto or a power of two from 1 to 2^60")
suite.finish()
