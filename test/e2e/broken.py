#!/usr/bin/env python3
"""Broken inputs: each gives one sentence that names the matter and an exit status that is an error, never a crash or a hang."""
import os
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
from safetensors.numpy import save_file

from harness import ROOT, TINY, Failure, Suite, expect

sys.path.insert(0, str(ROOT / "models"))
sys.path.insert(0, str(ROOT / "test"))
import plan_file  # noqa: E402
SMALL = ["--layers", "1", "--hidden", "32", "--heads", "2", "--vocab", "50", "--seq", "8", "--batch", "2"]
suite = Suite(__doc__)


def refused(command, *words, within=60):
    """Exit status of an error (no signal), one sentence on stderr, and each of `words` (alternatives by |) in it."""
    result = suite.run(command, check=False, timeout=within)
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    program = os.path.basename(str(command[0]))
    expect(result.returncode != 0, f"{program} accepted it")
    expect(0 < result.returncode < 126, f"{program} ended with {result.returncode}: {result.stderr[-200:]}")
    expect(lines, f"{program} ended with {result.returncode} and said nothing")
    expect(len(lines) == 1, f"{len(lines)} lines instead of one sentence: {' / '.join(lines)[:400]}")
    for word in words:
        expect(any(w.lower() in lines[0].lower() for w in word.split("|")), f"the sentence does not speak of '{word}': {lines[0]}")
    return lines[0]


def zeroc(model, *flags):
    return [suite.bin / "zeroc", model, "-o", "x.plan", *flags]


def zerorun(plan, *flags):
    return [suite.bin / "zerorun", plan, *(flags or ["--data", "good.safetensors", "--steps", "1"])]


# ------------------------------------------------------------------------------------------------ models
def with_external(name, location):
    """The small model with its embedding in external data at `location`, whatever that is."""
    model = onnx.load(str(suite.work / "model.onnx"))
    tensor = next(i for i in model.graph.initializer if i.name == "transformer.wte.weight")
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
    (suite.work / name).write_bytes(model.SerializeToString())
    return name


def truncated_model():
    data = (suite.work / "model.onnx").read_bytes()
    for part in (0, 10, len(data) // 2, len(data) - 1):
        (suite.work / "cut.onnx").write_bytes(data[:part])
        refused(zeroc("cut.onnx"), "cut.onnx")


def no_model():
    refused(zeroc("nowhere.onnx"), "nowhere.onnx")


def missing_external():
    refused(zeroc(with_external("lost.onnx", "lost.data")), "lost.data", "wte|lost.onnx")


def path_escape():
    secret = suite.work.parent / f"{suite.work.name}-secret.bin"
    secret.write_bytes(b"\0" * 1_000_000)
    inside = suite.work / "inside"
    inside.mkdir(exist_ok=True)
    link = suite.work / "link.bin"
    link.unlink(missing_ok=True)
    link.symlink_to(secret)
    try:
        for location in (f"../{secret.name}", str(secret), f"inside/../../{secret.name}", "link.bin"):
            refused(zeroc(with_external("escape.onnx", location)), "wte|external|escape")
    finally:
        secret.unlink()


def short_external():
    (suite.work / "short.data").write_bytes(b"\0" * 100)
    refused(zeroc(with_external("short.onnx", "short.data")), "short.data|wte")


def unsupported_operator():
    model = onnx.load(str(suite.work / "model.onnx"))
    relu = next(n for n in model.graph.node if n.op_type == "Tanh")
    relu.op_type = "Det"
    (suite.work / "det.onnx").write_bytes(model.SerializeToString())
    refused(zeroc("det.onnx"), "Det", relu.name)


def custom_domain():
    model = onnx.load(str(suite.work / "model.onnx"))
    node = next(n for n in model.graph.node if n.op_type == "Tanh")
    node.domain = "com.example"
    model.opset_import.add(domain="com.example", version=1)
    (suite.work / "domain.onnx").write_bytes(model.SerializeToString())
    refused(zeroc("domain.onnx"), "com.example", node.name)


def unbound_dimension():
    refused(zeroc(TINY / "gpt2" / "dynamo_sdpa_dyn.onnx"), "batch|seq", "--bind")


def unknown_bind():
    refused(zeroc("model.onnx", "--bind", "nothing=3"), "nothing")


def no_data_in_model():
    suite.gpt("empty.onnx", *SMALL, "--no-weights")
    refused(zeroc("empty.onnx"), "--init random|no data")


def bad_flag():
    refused(zeroc("model.onnx", "--stage", "7"), "stage")


# ------------------------------------------------------------------------------------------------ data
def data(name, **change):
    good = {"input_ids": np.arange(8 * 8).reshape(8, 8) % 50, "labels": (np.arange(8 * 8).reshape(8, 8) + 1) % 50}
    tensors = {k: v for k, v in {**good, **change}.items() if v is not None}
    save_file(tensors, suite.work / name)
    return name


def bad_data(words, **change):
    refused(zerorun("model.plan", "--data", data("bad.safetensors", **change), "--steps", "1"), *words)


def missing_data():
    refused(zerorun("model.plan", "--data", "nowhere.safetensors", "--steps", "1"), "nowhere.safetensors")


def truncated_data():
    whole = (suite.work / "good.safetensors").read_bytes()
    for part in (4, 60, len(whole) - 8):
        (suite.work / "cut.safetensors").write_bytes(whole[:part])
        refused(zerorun("model.plan", "--data", "cut.safetensors", "--steps", "1"), "cut.safetensors")


# ------------------------------------------------------------------------------------------------ plans
def truncated_plan():
    whole = (suite.work / "model.plan").read_bytes()
    for part in (0, 8, 100, len(whole) // 2, len(whole) - 1):
        (suite.work / "cut.plan").write_bytes(whole[:part])
        refused(zerorun("cut.plan"), "cut.plan")


def corrupted_plan():
    """A changed byte is noticed wherever it is: magic, version, table, any byte of any segment and of what lies between them."""
    whole = (suite.work / "model.plan").read_bytes()
    random = np.random.default_rng(3)
    places = [0, 8, 12, 20, 40, 112, 115, 116, 4095, len(whole) - 1] + [int(p) for p in random.integers(len(whole), size=12)]
    for place in places:
        (suite.work / "bad.plan").write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1:])
        try:
            refused(zerorun("bad.plan"), "bad.plan")
        except Failure as why:
            raise Failure(f"byte {place} of {len(whole)} changed: {why}")
    return f"{len(places)} places"


def other_cpu():
    """A plan whose kernels use a CPU feature that no machine has."""
    plan = plan_file.read(suite.work / "model.plan")
    plan.target.features.append("avx4096")
    plan_file.write(suite.work / "foreign.plan", suite.work / "model.plan", plan)
    refused(zerorun("foreign.plan"), "avx4096")


def wrong_world():
    suite.zeroc("model.onnx", "two.plan", "--world", 2)
    refused(zerorun("two.plan"), "2", "1")
    result = suite.zerorun("model.plan", "--data", "good.safetensors", "--steps", "1", world=2, check=False, timeout=30)
    said = [line for line in result.stderr.splitlines() if line.startswith("zerorun:")]
    expect(result.returncode != 0 and said and "2" in said[0], f"2 ranks on a plan of one: exit {result.returncode}: {result.stderr[-300:]}")


def ended(pid, within=2):
    """Gone, or a zombie that nobody has asked after."""
    for _ in range(int(within / 0.05)):
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def killed_rank():
    """SIGKILL one of two ranks in the middle of a run: the other ends within 10 seconds, with an error."""
    suite.zeroc("model.onnx", "pair.plan", "--world", 2, "--stage", 3)
    command = suite.zerorun_command("pair.plan", "--data", "good.safetensors", "--steps", 10_000_000, "--metrics", "pair.jsonl", world=2)
    process = subprocess.Popen([str(c) for c in command], cwd=suite.work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        begin = time.time()
        while not (suite.work / "pair.jsonl").exists() or (suite.work / "pair.jsonl").read_text().count("\n") < 3:
            expect(process.poll() is None, f"the run ended by itself with {process.returncode}")
            expect(time.time() - begin < 30, "no 3 lines of metrics after 30 s")
            time.sleep(0.05)
        ranks = [int(p) for p in subprocess.run(["pgrep", "-P", str(process.pid), "zerorun"], capture_output=True, text=True).stdout.split()]
        expect(len(ranks) == 2, f"{len(ranks)} ranks found")
        os.kill(ranks[1], signal.SIGKILL)
        begin = time.time()
        while process.poll() is None and time.time() - begin < 10:
            time.sleep(0.05)
        expect(process.poll() is not None, "still running 10 s after a rank was killed")
        expect(process.returncode != 0, "the run said it was fine")
        expect(ended(ranks[0]), "mpirun ended and left the other rank running")
        return f"ended after {time.time() - begin:.1f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


suite.start()
suite.gpt("model.onnx", *SMALL)
check = suite.check
check("broken: model cut short", truncated_model)
check("broken: model that is not there", no_model)
check("broken: external data missing", missing_external)
check("broken: external data outside the model's folder", path_escape)
check("broken: external data too short", short_external)
check("broken: operator not supported", unsupported_operator)
check("broken: operator of another domain", custom_domain)
check("broken: dimension not bound", unbound_dimension)
check("broken: bound dimension that is not there", unknown_bind)
check("broken: model without data", no_data_in_model)
check("broken: stage 7", bad_flag)

data("good.safetensors")
try:
    suite.zeroc("model.onnx", "model.plan")
    suite.zerorun("model.plan", "--data", "good.safetensors", "--steps", "1")
except Failure as why:
    check("broken: the good case itself", lambda: expect(False, str(why)))
else:
    check("broken: data that is not there", missing_data)
    check("broken: data cut short", truncated_data)
    check("broken: data of the wrong type", bad_data, ["input_ids"], input_ids=np.zeros((8, 8), np.float32))
    check("broken: data of the wrong shape", bad_data, ["input_ids"], input_ids=np.zeros((8, 9), np.int64))
    check("broken: data without labels", bad_data, ["labels"], labels=None)
    check("broken: token beyond the vocabulary", bad_data, ["input_ids", "50"], input_ids=np.full((8, 8), 50))
    check("broken: label beyond the vocabulary", bad_data, ["labels", "50"], labels=np.full((8, 8), 50))
    check("broken: too few samples", bad_data, ["sample"], input_ids=np.zeros((1, 8), np.int64), labels=np.zeros((1, 8), np.int64))
    check("broken: inputs of different length", bad_data, ["labels|input_ids"], labels=np.zeros((4, 8), np.int64))
    check("broken: plan cut short", truncated_plan)
    check("broken: plan with a changed byte", corrupted_plan)
    check("broken: plan of another CPU", other_cpu)
    check("broken: wrong number of ranks", wrong_world)
    check("broken: a killed rank ends the others", killed_rank)
suite.finish()
