#!/usr/bin/env python3
"""What a run takes and leaves: data files, exports, checkpoints, metrics, traces, memory, whatever the number of ranks and threads."""
import json
import os
import pathlib
import shutil
import subprocess

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import load_file, save_file

from harness import expect, relative
from trained import DATA, GLOBAL, STEPS, Training, final, off, reference, same

suite = Training(__doc__)


# ------------------------------------------------------------------------------------------------ weights going out
def logits_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"input_ids": load_file(DATA / "samples.safetensors")["input_ids"][:GLOBAL]})[0]


def exported(source, compiled, world):
    """The trained model answers in onnxruntime as PyTorch's trained model does; nothing but weights has changed."""
    folder = suite.work / "exported"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if isinstance(compiled, tuple):
        compiled = suite.plan(*compiled)
    suite.zerorun(compiled, "--data", DATA / "samples.safetensors", "--steps", STEPS, "--lr", 1e-2, "--export", folder / "trained.onnx", "--threads", 1, world=world)
    error = off(logits_of(folder / "trained.onnx"), final["logits"])
    expect(error < 1e-5, f"logits are off by {error:.1e}")
    one, two = onnx.load(str(source)), onnx.load(str(folder / "trained.onnx"))
    names = set()
    for a, b in zip(one.graph.initializer, two.graph.initializer):
        if a != b:
            names.add(a.name)
            b.CopyFrom(a)
    expect(one == two, "more than initializers changed")
    expect(names == set(reference["initializers"][pathlib.Path(source).stem.split("-")[0]]), f"other initializers changed: {names}")
    return f"logits within {error:.0e}"


def external_data():
    """Every tensor in a file of its own, some in a folder below."""
    folder = suite.work / "parts"
    folder.mkdir(exist_ok=True)
    model = onnx.load(str(DATA / "gpt.onnx"))
    (folder / "deep").mkdir(exist_ok=True)
    for i, tensor in enumerate(model.graph.initializer):
        if len(tensor.raw_data) > 1000:
            onnx.external_data_helper.set_external_data(tensor, f"deep/{i}.bin" if i % 2 else f"{i}.bin")
    onnx.save(model, str(folder / "gpt-parts.onnx"))
    expect(len(list(folder.rglob("*.bin"))) > 5, "there are few data files")
    suite.zeroc(folder / "gpt-parts.onnx", "parts.plan", "--quiet", "--bind", "batch=6", "--world", 2, "--stage", 3)
    return exported(folder / "gpt-parts.onnx", "parts.plan", 2)


def other_models_data():
    """Data files have the names that the model has for them: an export under another name would take those of the first one."""
    folder = suite.work / "beside"
    folder.mkdir()
    model = onnx.load(str(DATA / "gpt.onnx"))
    onnx.save(model, str(folder / "gpt-data.onnx"), save_as_external_data=True, location="weights.data", size_threshold=1000)
    suite.zeroc(folder / "gpt-data.onnx", "data.plan", "--quiet", "--bind", "batch=6")
    train = ["data.plan", "--data", DATA / "samples.safetensors", "--steps", 1, "--threads", 1]
    (suite.work / "shelf").mkdir()
    suite.zerorun(*train, "--export", "shelf/first.onnx")
    files = ("first.onnx", "weights.data")
    first = [(suite.work / "shelf" / name).read_bytes() for name in files]
    result = suite.zerorun(*train, "--export", "shelf/second.onnx", check=False)
    expect(result.returncode == 1 and "would overwrite 'shelf/weights.data', which holds data of 'shelf/first.onnx'" in result.stderr, result.stderr[-300:])
    expect([(suite.work / "shelf" / name).read_bytes() for name in files] == first, "the first export has changed")
    suite.zerorun(*train[:4], 2, "--threads", 1, "--export", "shelf/first.onnx")
    expect((suite.work / "shelf" / "weights.data").read_bytes() != first[1], "an export under the same name does not replace the one before")
    (suite.work / "new").mkdir()
    shutil.copy(DATA / "samples.safetensors", suite.work / "new" / "weights.data")
    result = suite.zerorun(*train, "--export", "new/m.onnx", check=False)
    expect(result.returncode == 1 and "'new/weights.data', which is not of an earlier export" in result.stderr, result.stderr[-300:])


def random_export():
    compiled = suite.plan("gpt", 1, 0, 1, "--init", "random:7")
    result = suite.zerorun(compiled, "--data", DATA / "samples.safetensors", "--steps", 1, "--export", "random.onnx", check=False)
    expect(result.returncode == 1 and "--init random" in result.stderr and ".safetensors" in result.stderr, f"not refused: {result.stderr[-300:]}")
    one, two = (suite.train(suite.plan("gpt", w, s, 1, "--init", f"random:{seed}"), steps=0, world=w)[1] for w, s, seed in ((1, 0, 7), (2, 3, 7)))
    other = suite.train(suite.plan("gpt", 1, 0, 1, "--init", "random:8"), steps=0)[1]
    expect(same(one, two) and not same(one, other), "random weights depend on the layout, or not on the seed")
    std = one["head.weight"].std()
    expect(0.018 < std < 0.022, f"the embedding has the standard deviation {std}")


# ------------------------------------------------------------------------------------------------ data files
def data_files():
    """The same tokens as .txt, .bin, .u32.bin, .npz and .safetensors, of any integer type, train to the same bits."""
    tokens = np.frombuffer(("the quick brown fox jumps over the lazy dog; " * 40).encode(), np.uint8)[:60 * 16 + 5]
    (suite.work / "tokens.txt").write_bytes(tokens.tobytes())
    tokens.astype("<u2").tofile(suite.work / "tokens.bin")
    tokens.astype("<u4").tofile(suite.work / "tokens.u32.bin")
    ids, labels = tokens[:960].reshape(60, 16), tokens[1:961].reshape(60, 16)
    np.savez(suite.work / "tokens.npz", input_ids=ids.astype(np.int64), labels=labels.astype(np.int32))
    np.savez_compressed(suite.work / "packed.npz", input_ids=ids.astype(np.uint16), labels=labels)
    save_file({"input_ids": ids.astype(np.int16), "labels": labels.astype(np.int64)}, suite.work / "tokens.safetensors")
    first = None
    for name in ("tokens.txt", "tokens.bin", "tokens.u32.bin", "tokens.npz", "tokens.safetensors"):
        result = suite.train(suite.plan(), data=suite.work / name, steps=6)  # wraps around after five steps
        first = first or result
        expect([r["loss"] for r in result[0]] == [r["loss"] for r in first[0]] and same(result[1], first[1]), f"{name} trains otherwise than tokens.txt")
    result = suite.zerorun(suite.plan(), "--data", "packed.npz", "--steps", 1, check=False)
    expect(result.returncode == 0 or ("packed.npz" in result.stderr and "compress" in result.stderr), f"compressed .npz: {result.stderr[-200:]}")


# ------------------------------------------------------------------------------------------------ resuming
RESUMED = {  # model, zeroc's flags, zerorun's flags
    "AdamW and clipping": ("gpt", [], ["--warmup", 2, "--lr", 1e-2, "--clip", 0.5]),
    "SGD": ("gpt", ["--optimizer", "sgd"], ["--lr", 0.1, "--betas", 0.9]),
    "dropout and a seed": ("gpt_dropout", [], ["--seed", 9]),
}


def resumed(case):
    """After 3 of 5 steps at world 1: the same world goes on bit for bit, 2 ranks at stage 3 with 3 micro-steps go on to rounding."""
    model, compiling, flags = RESUMED[case]
    whole = suite.train(suite.plan(model, 1, 0, 1, *compiling), *flags)
    folder = f"resumed-{case.replace(' ', '-')}"
    suite.train(suite.plan(model, 1, 0, 1, *compiling), *flags, "--checkpoint", folder, steps=3)
    flags = [f for f in flags if f not in ("--seed", 9)]
    tail, weights = suite.train(suite.plan(model, 1, 0, 1, *compiling), *flags, "--resume", folder)
    expect([r["loss"] for r in tail] == [r["loss"] for r in whole[0][3:]] and same(weights, whole[1]), "the same world does not go on bit for bit")
    tail, weights = suite.train(suite.plan(model, 2, 3, 3, *compiling), *flags, "--resume", folder, world=2)
    expect([r["step"] for r in tail] == [4, 5], f"steps {[r['step'] for r in tail]} were made")
    far = max([relative(x["loss"], y["loss"]) for x, y in zip(tail, whole[0][3:])] + [off(weights[n], whole[1][n]) for n in weights])
    expect(far < 1e-5, f"2 ranks are off by {far:.1e}")
    return f"within {far:.0e}"


# ------------------------------------------------------------------------------------------------ what a run tells
def metrics(world, stage):
    rows, _ = suite.train(suite.plan("gpt", world, stage, 3 - world), world=world)
    fields = {"step", "loss", "lr", "grad_norm", "epoch", "tokens_per_s", "seconds", "bytes", "memory_bytes"}
    for i, row in enumerate(rows):
        expect(set(row) == fields, f"fields of a line: {sorted(row)}")
        expect(row["step"] == i + 1 and row["seconds"] > 0, f"a line is {row}")
        expect(relative(row["tokens_per_s"] * row["seconds"], GLOBAL * 16) < 0.01, f"{row['tokens_per_s']} tokens/s in {row['seconds']} s")
    facts = suite.inspect(suite.plan("gpt", world, stage, 3 - world))
    sent = facts["communication"]["bytes_sent"]
    if world > 1:  # without accumulation; zero-inspect counts the step program
        expect(sum(rows[1]["bytes"].values()) == sent, f"{rows[1]['bytes']} were sent, zero-inspect says {sent}")


def trace():
    suite.train(suite.plan("gpt", 2, 3, 1), "--trace", "trace.json", world=2)
    events = json.loads((suite.work / "trace.json").read_text())
    spans = [e for e in events if e["ph"] == "X"]
    names = {(e["pid"], e["args"]["name"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    expect({e["pid"] for e in spans} == {0, 1} and {(0, "compute"), (1, "gather"), (1, "reduce")} <= names, f"lanes: {sorted(names)}")
    expect(all(e["ts"] >= 0 and e["dur"] >= 0 for e in spans), "a time is negative")
    lanes = {}
    for e in sorted(spans, key=lambda e: e["ts"]):
        expect(e["ts"] >= lanes.get((e["pid"], e["tid"]), 0) - 0.01, f"'{e['name']}' begins before its lane's previous step ends")
        lanes[e["pid"], e["tid"]] = e["ts"] + e["dur"]
    return f"{len(spans)} spans"


def memory():
    """The arenas a run allocates are those zero-inspect names, to the byte, and the process is not much larger than they are."""
    for flags, programs in (([], ["step"]), (["--clip", 1], ["step_clip"]), (["--eval-data", DATA / "held-out.safetensors"], ["step", "eval"])):
        for w, s in ((1, 0), (2, 3)):
            rows, _ = suite.train(suite.plan("gpt", w, s, 1), *flags, world=w, steps=1)
            m = suite.inspect(suite.plan("gpt", w, s, 1))["memory"]
            planned = m["state_bytes"] + max(m["programs"][p]["arena_bytes"] for p in programs)
            expect(rows[0]["memory_bytes"] == planned, f"{rows[0]['memory_bytes']} bytes were allocated, {planned} planned")


def resident():
    """Peak resident memory of a process: what was planned, and the same small rest whatever the model (programs, packing of products)."""
    suite.gpt("large.onnx", "--layers", 3, "--hidden", 256, "--heads", 4, "--vocab", 16000, "--seq", 64, "--batch", 8)
    suite.zeroc("large.onnx", "large.plan", "--quiet")
    rng = np.random.default_rng(0)
    save_file({"input_ids": rng.integers(0, 16000, (8, 64)), "labels": rng.integers(0, 16000, (8, 64))}, suite.work / "large.safetensors")
    child = subprocess.Popen([suite.bin / "zerorun", "large.plan", "--data", "large.safetensors", "--steps", "2", "--threads", "1"], cwd=suite.work,
                             stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    expect(status == 0, f"zerorun ended with {status}")
    m = suite.inspect("large.plan")["memory"]
    planned, peak = m["state_bytes"] + m["programs"]["step"]["arena_bytes"], usage.ru_maxrss * 1024
    expect(planned > 100 << 20, f"only {planned:,} bytes are planned")
    expect(peak < planned + (48 << 20), f"{peak:,} bytes were resident, {planned:,} planned")
    return f"{peak / 2**20:.0f} MiB resident, {planned / 2**20:.0f} MiB planned"


def threads():
    """Kernels do not depend on how many threads share them; products may by rounding, where the library treats smaller pieces otherwise."""
    one, two = (suite.train(suite.plan(), threads=t)[1] for t in (1, 2))
    expect(same(one, two), "a model whose products are too small to be cut gives other bits")
    one, two = (suite.train("large.plan", threads=t, data=suite.work / "large.safetensors", steps=2)[1] for t in (1, 2))
    # A key's bias has a gradient of rounding alone, of which AdamW's first steps make much: it counts as a part of the whole model.
    far = max(off(two[n], one[n]) for n in one if not n.endswith("c_attn.bias"))
    expect(far < 1e-5, f"two threads are off by {far:.1e}")
    whole = [np.concatenate([weights[n].ravel() for n in sorted(one)]) for weights in (two, one)]
    far = max(far, off(*whole))
    expect(far < 1e-5, f"all of the model is off by {far:.1e}")
    return "the same bits" if same(one, two) else f"within {far:.0e}"


suite.start()
check = suite.check
for model, w, s in (("gpt", 2, 3), ("gpt_ts", 1, 0)):
    check(f"results: --export .onnx of {model}, {w} ranks, stage {s}", exported, DATA / f"{model}.onnx", (model, w, s, 1), w)
check("results: --export .onnx with external data", external_data)
check("results: --export .onnx beside another model's data", other_models_data)
check("results: --init random", random_export)
check("results: data files", data_files)
for case in RESUMED:
    check(f"results: --resume, {case}", resumed, case)
for w, s in ((1, 0), (2, 3)):
    check(f"results: metrics, {w} ranks", metrics, w, s)
check("results: --trace", trace)
check("results: memory as planned", memory)
check("results: resident memory", resident)
check("results: --threads", threads)
suite.finish()
