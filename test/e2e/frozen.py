#!/usr/bin/env python3
"""What is frozen is what the model's file says: it rests once, in the type that steps read, checkpoints leave it out, and exports give it back to the bit.

gpt2 of models/tiny with one block trained: stages and placements agree to the bit in f32 and bf16, a stopped run goes on with the bits of one that was not,
another number of ranks goes on too, and a checkpoint that belongs to other values of what is frozen is refused with a sentence.
"""
import json
import shutil

import numpy as np
import onnx
from safetensors.numpy import load_file

from harness import TINY, Suite, expect

MODEL, STEPS = TINY / "gpt2" / "dynamo_sdpa_dyn.onnx", 6
ADAPTED = ["--freeze", ".", "--train", r"h\.1\."]
suite = Suite(__doc__)


def plan(name, *flags, model=MODEL, which=ADAPTED):
    suite.zeroc(model, name, "--bind", f"batch=1,seq={seq}", "--quiet", *which, *flags)
    return ["--disk-path", suite.work / "disk"] if "disk" in flags else []


def train(name, out, *flags, steps=STEPS, world=1):
    suite.zerorun(name, "--data", "gpt2.safetensors", "--steps", steps, "--lr", "1e-3", "--threads", 1, "--export", f"{out}.safetensors",
                  "--metrics", f"{out}.jsonl", *flags, world=world)
    return load_file(suite.work / f"{out}.safetensors"), suite.losses(f"{out}.jsonl")


def frozen_of(weights):
    return {name: values for name, values in weights.items() if "h.1." not in name}


def different(one, two):
    return [name for name in one if one[name].tobytes() != two[name].tobytes()]


def initial():
    """The values of the model's file."""
    plan("first.plan", which=[])
    return train("first.plan", "first", steps=0)[0]


def rests_once():
    """No optimizer state, no master: bytes of the frozen parameters, in bf16 half of those in f32."""
    told = {}
    for precision in ("f32", "bf16"):
        plan(f"{precision}.plan", "--precision", precision)
        told[precision] = json.loads(suite.run([suite.bin / "zero-inspect", f"{precision}.plan", "--json"]).stdout)["memory"]["persistent"]
    elements = {kind: sum(v.size for n, v in weights.items() if ("h.1." in n) == (kind == "trained")) for kind in ("trained", "frozen")}
    padding = 4096
    for precision, each in (("f32", 4), ("bf16", 2)):
        state = told[precision]["parameter"] + told[precision]["optimizer"]
        wanted = each * elements["frozen"] + 12 * elements["trained"]
        expect(wanted <= state <= wanted + padding, f"{precision}: parameters and optimizer rest in {state:,} bytes, expected {wanted:,} and at most {padding:,} of padding")
    return f"{elements['frozen']:,} of {sum(elements.values()):,} parameters frozen"


def agree(precision, world, stage, homes):
    """The bits of the resident run at stage 0; what is frozen has the file's."""
    key = (precision, world)
    if key not in straight:
        plan("straight.plan", "--precision", precision, "--world", world, "--accumulate", 2 // world)
        straight[key] = train("straight.plan", "straight", world=world)
    where = plan("one.plan", "--precision", precision, "--world", world, "--stage", stage, "--accumulate", 2 // world, "--offload-params", homes,
                 "--offload-optimizer", homes)
    found, losses = train("one.plan", "one", *where, world=world)
    wanted, expected = straight[key]
    expect(losses == expected, f"losses {losses}, expected {expected}")
    expect(not different(wanted, found), f"other bits in {different(wanted, found)[:3]}")
    expect(not different(frozen_of(weights), found), f"what is frozen was exported with other values: {different(frozen_of(weights), found)[:3]}")
    expect(different(weights, found), "nothing was trained")


def export_onnx(precision):
    plan("one.plan", "--precision", precision)
    (suite.work / "out").mkdir(exist_ok=True)
    suite.zerorun("one.plan", "--data", "gpt2.safetensors", "--steps", 2, "--threads", 1, "--export", "out/model.onnx")
    tensors = lambda path: {t.name: onnx.numpy_helper.to_array(t, str(path.parent)).tobytes() for t in onnx.load(path).graph.initializer}
    before, after = tensors(MODEL), tensors(suite.work / "out/model.onnx")
    changed = [name for name in before if before[name] != after[name]]
    expect(changed and all("h.1." in name for name in changed), f"{changed[:4]} changed")


def only_trained():
    plan("one.plan", "--world", 2, "--stage", 3, "--accumulate", 1)
    whole, _ = train("one.plan", "whole", world=2)
    part, _ = train("one.plan", "part", "--only-trained", world=2)
    expect(set(part) == {n for n in whole if "h.1." in n} and not different(part, whole), f"it holds {sorted(part)[:4]}")
    refusals = {("--export", "x.onnx", "--only-trained"): "an ONNX file holds the whole model", ("--only-trained",): "--only-trained needs --export"}
    plan("alone.plan")
    for flags, sentence in refusals.items():
        failed = suite.run([suite.bin / "zerorun", "alone.plan", "--data", "gpt2.safetensors", "--steps", 1, *flags], check=False)
        expect(failed.returncode == 1 and sentence in failed.stderr, f"{flags}: exit {failed.returncode}: {failed.stderr.strip()[-200:]}")
    return f"{len(part)} of {len(whole)} tensors"


def goes_on(precision, first, second):
    """A checkpoint holds what is trained alone, and resumes at other worlds and stages: with the same ranks to the bit."""
    shutil.rmtree(suite.work / "kept", ignore_errors=True)
    for (world, stage), name in ((first, "first.plan"), (second, "second.plan")):
        plan(name, "--precision", precision, "--world", world, "--stage", stage, "--accumulate", 2 // world)
    whole, losses = train("first.plan", "whole", world=first[0])
    train("first.plan", "half", "--checkpoint", "kept", steps=3, world=first[0])
    size = sum(f.stat().st_size for f in (suite.work / "kept/step-3").glob("*.safetensors"))
    trained = sum(v.size for n, v in weights.items() if "h.1." in n)
    expect(size < 12 * trained + 65536, f"the checkpoint has {size:,} bytes for {trained:,} trained parameters")
    found, rest = train("second.plan", "rest", "--resume", "kept", world=second[0])
    if first[0] == second[0]:
        expect(rest == losses[3:] and not different(whole, found), f"losses {rest}, without a break {losses[3:]}")
        return f"{size:,} bytes"
    far = max(abs(x - y) / abs(y) for x, y in zip(rest, losses[3:]))
    expect(far <= 1e-4, f"a loss is off by {far:.1e}")


def refused(precision):
    """Weights of what is frozen that changed under the checkpoint."""
    folder = suite.work / "model"
    shutil.rmtree(folder, ignore_errors=True), shutil.rmtree(suite.work / "kept", ignore_errors=True)
    folder.mkdir()
    model = onnx.load(MODEL)
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    plan("moved.plan", "--precision", precision, model=folder / "m.onnx")
    train("moved.plan", "half", "--checkpoint", "kept", steps=2)
    name = next(t.name for t in model.graph.initializer if "h.0.mlp.c_fc.weight" in t.name)
    place = next(t for t in onnx.load(folder / "m.onnx", load_external_data=False).graph.initializer if t.name == name)
    offset = next(int(e.value) for e in place.external_data if e.key == "offset")
    data = np.memmap(folder / "m.data", np.uint8, "r+")
    data[offset + 8] ^= 1  # the lowest bit of one number, which bf16 does not keep
    data.flush()
    failed = suite.run([suite.bin / "zerorun", "moved.plan", "--data", "gpt2.safetensors", "--steps", 4, "--threads", 1, "--resume", "kept"], check=False)
    expect(failed.returncode == 1 and f"the frozen parameter '{name}' has other values in '" in failed.stderr and "kept/step-2" in failed.stderr,
           f"exit {failed.returncode}: {failed.stderr.strip()[-300:]}")
    return failed.stderr.strip().splitlines()[-1]


def frozen_later(precision):
    """What was trained and is frozen from a checkpoint on has to be in the model first."""
    shutil.rmtree(suite.work / "kept", ignore_errors=True)
    plan("all.plan", "--precision", precision, which=[])
    halfway, _ = train("all.plan", "half", "--checkpoint", "kept", steps=2)
    plan("late.plan", "--precision", precision)
    failed = suite.run([suite.bin / "zerorun", "late.plan", "--data", "gpt2.safetensors", "--steps", 4, "--threads", 1, "--resume", "kept"], check=False)
    expect(failed.returncode == 1 and "it was trained until then, or that has changed; write the weights of that run" in failed.stderr, f"exit {failed.returncode}: {failed.stderr.strip()[-300:]}")
    (suite.work / "half").mkdir(exist_ok=True)
    suite.zerorun("all.plan", "--data", "gpt2.safetensors", "--steps", 2, "--threads", 1, "--resume", "kept", "--export", "half/model.onnx")
    plan("late.plan", "--precision", precision, model=suite.work / "half/model.onnx")
    found, losses = train("late.plan", "late", "--resume", "kept", steps=4)
    expect(len(losses) == 2 and not different(frozen_of(halfway), found), f"other values of what is frozen: {different(frozen_of(halfway), found)[:3]}")
    expect(different(halfway, found), "nothing was trained")


suite.start()
seq, straight = suite.tiny_data("gpt2"), {}
weights = initial()
suite.check("frozen: rests once", rests_once)
suite.check("frozen: left out of an export", only_trained)
for precision in ("f32", "bf16"):
    for world, stage in ((1, 0), (2, 0), (2, 1), (2, 2), (2, 3)):
        for homes in ("none", "disk") if stage in (0, 3) else ("none",):
            suite.check(f"frozen: {precision}, {world} ranks, stage {stage}, offloaded to {homes}", agree, precision, world, stage, homes)
    suite.check(f"frozen: {precision}, exported to ONNX", export_onnx, precision)
    for first, second in (((1, 0), (1, 0)), ((2, 3), (2, 1)), ((2, 1), (1, 0))):
        suite.check(f"frozen: {precision}, begun by {first[0]} ranks at stage {first[1]}, resumed by {second[0]} at stage {second[1]}", goes_on, precision, first, second)
    suite.check(f"frozen: {precision}, other weights under a checkpoint", refused, precision)
    suite.check(f"frozen: {precision}, trained before", frozen_later, precision)
suite.finish()
