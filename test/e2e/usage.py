#!/usr/bin/env python3
"""Wrong uses of every flag: one sentence on stderr, exit status 1, nothing lost; and the rules of checkpoint folders."""
import os
import shutil

import numpy as np
import onnx
from onnx import helper
from safetensors.numpy import load_file, save_file

from harness import Failure, Suite, expect

SMALL = ["--layers", "1", "--hidden", "32", "--heads", "2", "--vocab", "50", "--seq", "8", "--dynamic"]
suite = Suite(__doc__)


def refused(command, *words):
    result = suite.run(command, check=False, timeout=30)
    shown = " ".join(map(str, command[1:]))
    lines = result.stderr.splitlines()
    expect(result.returncode == 1, f"exit {result.returncode} of {shown}: {result.stderr[-200:]}")
    expect(len(lines) == 1 and len(lines[0]) < 400, f"not one sentence for {shown}: {result.stderr[:400]}")
    expect(all(w in lines[0] for w in words), f"for {shown} the sentence speaks not of {words}: {lines[0]}")


def all_refused(program, good, cases):
    for line, *words in cases:
        refused([suite.bin / program, *good, *line.split(" ")], *(words or [line.split(" ")[0]]))
    return f"{len(cases)} uses"


ZEROC = [
    ("--bind batch",), ("--bind batch=0",), ("--bind batch=x",), ("--bind batch=2,batch=3", "batch", "2", "3"), ("--bind beam=2", "beam", "batch"),
    ("--bind batch=3", "2", "3"), ("--loss hinge", "hinge"), ("--loss output:nothing", "nothing", "logits"),
    ("--loss output:logits", "logits"), ("--optimizer adam",), ("--freeze (",), ("--freeze nowhere", "nowhere"), ("--train nowhere", "nowhere"),
    ("--freeze .*", "nothing to train"), ("--tie maybe", "maybe", "nearest"), ("--tie off --tie auto", "--tie"), ("--tie wte", "ties nothing"), ("--world 0",), ("--world x",), ("--world 2.5",), ("--stage 4",), ("--stage -1",),
    ("--accumulate 0",), ("--accumulate 99999999999999999999",), ("--init zeros",), ("--init random:x",), ("--init weights:3",), ("--cpu z80", "z80"),
    ("--bucket-elements -3",), ("--device-memory much",), ("--device-memory 1K", "bytes"), ("--recompute x",),
    ("--precision f64", "f64"), ("--reduce-type f16", "wants f32 or bf16"), ("--target tpu", "cuda"), ("--target cuda --gpu sm_70", "sm_70", "sm_90"), ("--gpu sm_90", "--gpu", "cpu"), ("--tf32", "--tf32", "cpu"), ("--target sim --cpu native", "--cpu", "sim"), ("--stage x", "0"), ("--machine /no/such/file", "/no/such/file"), ("--tile 1", "2"), ("--tile x",), ("--report x.txt", "html"), ("--report /no/such/x.html", "/no/such"), ("--report model.onnx", "html"), ("--report x.html --print-pipeline", "--report"),
    ("--offload-optimizer tape", "tape"), ("--offload-activations ram", "ram"),
    ("--host-memory much",), ("--disk-memory -1",), ("--disk-memory 16777216T", "8 EiB"), ("--device-memory ", "--device-memory", "nothing"), ("--sign ", "--sign", "nothing"),
    ("--freeze " + "(" * 20000, "--freeze", "20000"), ("--loss --quiet", "--loss", "--quiet", "flag"), ("--machine .", "not a regular file", "a100"), ("--emit nothing", "nothing"), ("--no-such-flag",), ("stray", "stray"),
    ("-o /no/such/folder/x.plan", "/no/such/folder"), ("-o .", "."),
]
ZERORUN = [
    ("--lr x",), ("--lr -1",), ("--lr nan", "finite"), ("--lr inf", "finite"), ("--schedule step", "step"), ("--warmup -1",), ("--warmup 3", "3", "2"), ("--warmup 1.5",), ("--warmup 010", "without zeros in front"),
    ("--weight-decay -1",), ("--weight-decay x",), ("--betas 0.9",), ("--betas 0.9,1",), ("--betas 0.9,0.99,0.999",), ("--betas x,y",), ("--eps -1",),
    ("--eps x",), ("--clip -1",), ("--clip nan",), ("--seed -1",), ("--seed 18446744073709551616",), ("--metrics /no/such/file", "/no/such"),
    ("--metrics .",), ("--gradients g.npz",), ("--gradients /no/such/g.safetensors", "/no/such"), ("--checkpoint /proc/none",), ("--checkpoint data.safetensors",),
    ("--every 2", "--checkpoint"), ("--keep 2", "--checkpoint"), ("--checkpoint c --keep 0", "--keep"), ("--checkpoint c --every 0", "--every"), ("--resume nowhere", "nowhere"), ("--resume .", "."), ("--export weights.pt", ".onnx"),
    ("--export /no/such/w.safetensors", "/no/such"), ("--export model.onnx", "overwrite"), ("--export data.safetensors", "--data"), ("--metrics model.onnx", "the model"), ("--trace ./model.onnx", "the model"), ("--metrics good.plan", "plan"),
    ("--export x.safetensors --gradients ./x.safetensors", "--export", "--gradients"), ("--eval-every 2", "--eval-data"), ("--eval-data nowhere.npz", "nowhere.npz"),
    ("--eval-data data.safetensors --eval-every 0", "--eval-every"), ("--threads 0",), ("--threads x",), ("--threads 100000",), ("--timeout x",), ("--require-signature /no/such.pub", "/no/such.pub"), ("--require-signature good.plan", "good.plan"), ("--timeout -1",), ("--trace /no/such/t.json", "/no/such"),
    ("--metrics --shuffle", "--metrics", "--shuffle", "flag"), ("--checkpoint --drain", "--checkpoint", "flag"), ("--checkpoint ", "nothing"), ("--lr-scale wte=x", "--lr-scale"),
    ("--disk-path",), ("--simulate x", "--data", "--simulate"), ("--no-such-flag",), ("stray", "stray"), ("--steps 1", "--steps"),
]
NO_STEPS = [
    ("--data data.safetensors", "--steps"), ("--steps 2", "--data"), ("--data data.safetensors --steps x", "--steps"),
    ("--data data.safetensors --steps -1", "--steps"), ("--data data.safetensors --steps 99999999999999999999", "--steps"),
    ("--data good.plan --steps 1", "good.plan"), ("--data nowhere.npz --steps 1", "nowhere.npz"), ("--data . --steps 1", "."),
    ("--steps 0 --gradients g.safetensors", "--gradients"), ("--simulate /no/such/m.json", "/no/such/m.json", "a100"), ("--simulate a100 --steps 0", "--steps"),
    ("--simulate a100 --lr 1", "--lr"), ("--simulate a100 --trace good.plan", "the plan", "--trace"), ("--simulate a100 --metrics /no/such/m", "--metrics", "/no/such"),
    ("--simulate data.safetensors", "data.safetensors", "JSON"),
]
SGD = [("--eps 1e-3",), ("--betas 0.9,0.99",)]
INSPECT = [("nowhere", "nowhere"), (".", "."), ("data.safetensors", "no"), ("good.plan stray", "stray"), ("good.plan --no-such-flag", "--no-such-flag"),
           ("--judge nowhere", "nowhere"), ("--judge .", "regular"), ("--judge /dev/null", "regular"), ("--judge empty", "nothing to judge"), ("good.plan --measured ", "nothing"), ("--judge data.safetensors", "line 1"), ("good.plan --judge data.safetensors", "both")]


def nothing_lost():
    """What was refused has changed nothing that was read."""
    model, data = (suite.work / "model.onnx").read_bytes(), (suite.work / "data.safetensors").read_bytes()
    refused([suite.bin / "zeroc", "model.onnx", "-o", "model.onnx", "--bind", "batch=2,seq=8"], "the model", "-o", "model.onnx")
    refused([suite.bin / "zerorun", "good.plan", "--data", "data.safetensors", "--steps", 1, "--export", "data.safetensors"], "data.safetensors")
    refused([suite.bin / "zerorun", "good.plan", "--data", "data.safetensors", "--steps", 1, "--export", "model.onnx"], "model.onnx")
    # nor what is no file: a device would be gone
    os.mkfifo(suite.work / "pipe.safetensors")
    refused([suite.bin / "zeroc", "model.onnx", "-o", "pipe.safetensors", "--bind", "batch=2,seq=8"], "not a regular file")
    for flag in ("--export", "--gradients", "--trace"):
        refused([suite.bin / "zerorun", "good.plan", "--data", "data.safetensors", "--steps", 1, flag, "pipe.safetensors"], "not a regular file")
    expect((suite.work / "pipe.safetensors").is_fifo(), "a pipe was replaced")
    expect((suite.work / "model.onnx").read_bytes() == model and (suite.work / "data.safetensors").read_bytes() == data, "an input was overwritten")


def constants_spared():
    """A data file of the model that holds a constant alone is no place for results, nor is the machine's description."""
    constant = onnx.numpy_helper.from_array(np.arange(8)[::-1].copy(), "order")
    (suite.work / "order.data").write_bytes(constant.raw_data)
    onnx.external_data_helper.set_external_data(constant, "order.data", offset=0, length=len(constant.raw_data))
    constant.ClearField("raw_data")
    weight = onnx.numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 5), np.float32), "w")
    nodes = [helper.make_node("Gather", ["x", "order"], ["a"], axis=1), helper.make_node("MatMul", ["a", "w"], ["logits"])]
    value = lambda name, width: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, width])
    model = helper.make_model(helper.make_graph(nodes, "g", [value("x", 8)], [value("logits", 5)], [weight, constant]),
                              opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (suite.work / "apart.onnx").write_bytes(model.SerializeToString())
    np.savez(suite.work / "apart.npz", x=np.ones((4, 8), np.float32), labels=np.arange(4))
    (suite.work / "machine.json").write_text('{"memory": 1e10}')
    suite.zeroc("apart.onnx", "apart.plan", "-q")
    before = {name: (suite.work / name).read_bytes() for name in ("order.data", "machine.json")}
    refused([suite.bin / "zeroc", "apart.onnx", "-o", "order.data"], "data of the model", "-o")
    refused([suite.bin / "zeroc", "apart.onnx", "-o", "machine.json", "--machine", "machine.json"], "--machine", "-o")
    for flag in ("--metrics", "--trace"):
        refused([suite.bin / "zerorun", "apart.plan", "--data", "apart.npz", "--steps", 1, flag, "order.data"], "the model's data", flag)
        refused([suite.bin / "zerorun", "apart.plan", "--simulate", "a100", flag, "order.data"], "the model's data", flag)
    expect(all((suite.work / name).read_bytes() == content for name, content in before.items()), "an input was overwritten")


def pipes():
    """Nobody waits for a file that is a pipe, or takes anything out of one."""
    os.mkfifo(suite.work / "fifo")
    zeroc, zerorun, good = suite.bin / "zeroc", suite.bin / "zerorun", ["good.plan", "--data", "data.safetensors", "--steps", 1]
    model = ["model.onnx", "-o", "x.plan", "--bind", "batch=2,seq=8"]
    for command in ([zeroc, "fifo", "-o", "x.plan"], [zeroc, *model, "--machine", "fifo"], [zeroc, *model, "--sign", "fifo"], [zeroc, "model.onnx", "-o", "fifo"],
                    [zerorun, *good, "--require-signature", "fifo"], [zerorun, "good.plan", "--simulate", "fifo"],
                    *([suite.bin / "zero-inspect", *flags, "fifo"] for flags in (["--judge"], ["good.plan", "--measured"], ["good.plan", "--time", "--machine"]))):
        refused(command, "fifo")


def lost_output():
    """What cannot be printed is no success."""
    for command in ("zero-inspect good.plan --json", "zero-inspect good.plan", "zeroc model.onnx --bind batch=2,seq=8 --emit import"):
        refused(["sh", "-c", f"{suite.bin}/{command} > /dev/full"], "could not be written")


def moved():
    """A plan finds its model from any folder, and in a folder moved with it; one taken away alone says what is missing."""
    (suite.work / "home").mkdir()
    shutil.copy(suite.work / "model.onnx", suite.work / "home")
    suite.zeroc("home/model.onnx", "home/p.plan", "--bind", "batch=2,seq=8", "-q")
    suite.zeroc("home/model.onnx", "away.plan", "--bind", "batch=2,seq=8", "-q")
    (suite.work / "far").mkdir()
    (suite.work / "away.plan").rename(suite.work / "far" / "away.plan")
    suite.zeroc("home/model.onnx", "far/sibling.plan", "--bind", "batch=2,seq=8", "-q")
    go = ["--data", suite.work / "data.safetensors", "--steps", 1]
    for plan in ("home/p.plan", "far/sibling.plan"):
        suite.run(["env", "-C", "/", suite.bin / "zerorun", suite.work / plan, *go])
    refused([suite.bin / "zerorun", "far/away.plan", *go], "far/home/model.onnx", "move plan and model together")
    (suite.work / "home").rename(suite.work / "new home")
    suite.run([suite.bin / "zerorun", "new home/p.plan", *go, "--export", "moved.onnx"])
    refused([suite.bin / "zerorun", "far/sibling.plan", *go], "home/model.onnx", "compile again")


def bytes_in_paths():
    """A folder whose name is no UTF-8: a plan in it runs, one elsewhere cannot name its model and is not written."""
    folder = os.fsdecode(os.fsencode(suite.work) + b"/caf\xe9")
    os.mkdir(folder)
    shutil.copy(suite.work / "model.onnx", folder)
    suite.zeroc(f"{folder}/model.onnx", f"{folder}/p.plan", "--bind", "batch=2,seq=8", "-q")
    suite.zerorun(f"{folder}/p.plan", "--data", "data.safetensors", "--steps", 1)
    suite.run([suite.bin / "zero-inspect", f"{folder}/p.plan", "--json"])
    refused([suite.bin / "zeroc", f"{folder}/model.onnx", "-o", "bytes.plan", "--bind", "batch=2,seq=8"], "bytes.plan", "no UTF-8")
    expect(not (suite.work / "bytes.plan").exists(), "a plan was written all the same")


def replaced():
    """A model that took the name of the one a plan was compiled from; the same one with other weights is not such a model."""
    shutil.copy(suite.work / "model.onnx", suite.work / "again.onnx")
    suite.zeroc("again.onnx", "again.plan", "--bind", "batch=2,seq=8", "-q")
    go = [suite.bin / "zerorun", "again.plan", "--data", "data.safetensors", "--steps", 2]
    suite.run([*go, "--export", "trained.onnx"])
    (suite.work / "trained.onnx").rename(suite.work / "again.onnx")
    suite.run(go)
    whole = (suite.work / "again.onnx").read_bytes()
    at = whole.rindex(b"MatMul")
    (suite.work / "again.onnx").write_bytes(whole[:at] + b"Matmul" + whole[at + 6:])
    refused(go, "again.onnx", "another model", "compile it again")
    (suite.work / "again.onnx").write_bytes(whole + b"\0\0")
    refused(go, "again.onnx", "bytes", "compile it again")


def bare():
    for program in ("zeroc", "zerorun", "zero-inspect"):
        refused([suite.bin / program], f"{program} ")
        help_ = suite.run([suite.bin / program, "--help"])
        expect("Usage" in help_.stdout and not help_.stderr, f"{program} --help says {help_.stdout[:100]}")
    refused([suite.bin / "zeroc", "model.onnx"], "-o")
    refused([suite.bin / "zerorun", "model.onnx", "--data", "data.safetensors", "--steps", 1], "model.onnx", "zeroc")
    # flags may come before the file
    suite.run([suite.bin / "zeroc", "--bind", "batch=2,seq=8", "model.onnx", "--freeze", "wpe", "-o", "other.plan", "-q"])


def closed_streams():
    """A stream that is closed must not become the next file that is opened: what is said would be written into it."""
    for command in ("zeroc model.onnx -o closed.plan --bind batch=2,seq=8", "zero-inspect good.plan", "zero-opt --help",
                    "zerorun good.plan --data data.safetensors --steps 3 --metrics closed.jsonl --export closed.safetensors --threads 1"):
        suite.run(["bash", "-c", f"exec {suite.bin}/{command} <&- >&- 2>&-"])
    expect((suite.work / "closed.plan").read_bytes() == (suite.work / "good.plan").read_bytes(), "the plan is another one")
    expect(len(suite.losses("closed.jsonl")) == 3, "the metrics are not three lines")
    load_file(suite.work / "closed.safetensors")


# ------------------------------------------------------------------------------------------------ checkpoints
def run(*flags, plan="good.plan", world=1, check=True):
    return suite.zerorun(plan, "--data", "data.safetensors", *flags, world=world, check=check)


def steps_of(folder):
    return sorted(p.name for p in (suite.work / folder).iterdir())


def disk_path():
    """A folder that the plan has no use for is not made."""
    said = run("--steps", 1, "--disk-path", "spare,other").stdout
    expect("--disk-path is not needed: the plan keeps nothing on disk" in said, said)
    expect(not (suite.work / "spare").exists(), "the folder was made")


def checkpoint_folders():
    go = [suite.bin / "zerorun", "good.plan", "--data", "data.safetensors"]
    run("--steps", 2, "--checkpoint", "c")
    expect(steps_of("c") == ["step-2"], f"the folder holds {steps_of('c')}")
    refused([*go, "--steps", 2, "--checkpoint", "c"], "'c'", "step-2")
    refused([*go, "--steps", 1, "--resume", "c"], "2 steps", "--steps 1")
    refused([*go, "--steps", 4, "--resume", "c", "--seed", 4], "--seed 4")
    run("--steps", 9, "--resume", "c", "--checkpoint", "c", "--every", 2, "--keep", 3)
    expect(steps_of("c") == ["step-6", "step-8", "step-9"], f"with --keep 3 there are {steps_of('c')}")
    refused([*go, "--steps", 9, "--resume", "c/step-8", "--checkpoint", "c"], "'c'", "step-9", "newer")
    shutil.copytree(suite.work / "c" / "step-9", suite.work / "c" / "step-3.partial")  # what killed runs leave
    shutil.copytree(suite.work / "c" / "step-9", suite.work / "c" / "step-4.removed")
    run("--steps", 10, "--resume", "c", "--checkpoint", "c")
    expect(steps_of("c") == ["step-10", "step-8", "step-9"], f"as many should stay as before, and nothing of killed runs: {steps_of('c')}")
    run("--steps", 11, "--resume", "c", "--checkpoint", "c", "--keep", 2)
    expect(steps_of("c") == ["step-10", "step-11"], f"two should stay: {steps_of('c')}")
    shutil.rmtree(suite.work / "c")
    run("--steps", 5, "--checkpoint", "c", "--every", 2, "--keep", 1)
    expect(steps_of("c") == ["step-5"], f"with --keep 1 there are {steps_of('c')}")
    run("--steps", 6, "--resume", "c/step-5", "--checkpoint", "d")
    expect(steps_of("c") == ["step-5"] and steps_of("d") == ["step-6"], "a checkpoint in another folder touched the one resumed from")
    refused([*go, "--steps", 7, "--resume", "d", "--checkpoint", "c"], "'c'", "step-5")
    (suite.work / "d" / "step-9.partial").mkdir()
    run("--steps", 7, "--resume", "d")  # what is not whole is not looked at


def damaged_checkpoint():
    go = [suite.bin / "zerorun", "good.plan", "--data", "data.safetensors", "--steps", 4, "--resume", "broken"]
    run("--steps", 2, "--checkpoint", "whole")

    def damage(name, change):
        shutil.rmtree(suite.work / "broken", ignore_errors=True)
        shutil.copytree(suite.work / "whole", suite.work / "broken")
        file = suite.work / "broken" / "step-2" / name
        file.write_bytes(change(file.read_bytes()))

    damage("rank-0.safetensors", lambda b: b"")
    refused(go, "rank-0.safetensors")
    damage("rank-0.safetensors", lambda b: b[:-8])
    refused(go, "rank-0.safetensors")
    damage("rank-0.safetensors", lambda b: b[:len(b) // 2] + bytes([b[len(b) // 2] ^ 1]) + b[len(b) // 2 + 1:])
    refused(go, "rank-0.safetensors", "is damaged")
    damage("index.json", lambda b: b"{")
    refused(go, "index.json")
    damage("index.json", lambda b: b.replace(b'"m"', b'"q"'))
    refused(go, "broken/step-2")
    (suite.work / "broken" / "step-2" / "rank-0.safetensors").unlink()
    refused(go, "broken")


def other_plan():
    """State of another optimizer, model or set of trained parameters is refused by name; metrics go on where the run does."""
    run("--steps", 2, "--checkpoint", "adam", "--metrics", "m.jsonl")
    suite.zeroc("model.onnx", "sgd.plan", "--bind", "batch=2,seq=8", "--optimizer", "sgd", "-q")
    resume = ["--data", "data.safetensors", "--steps", 4, "--resume", "adam"]
    refused([suite.bin / "zerorun", "sgd.plan", *resume], "adamw", "sgd")
    suite.gpt("deeper.onnx", "--layers", "2", *SMALL[2:])
    suite.zeroc("deeper.onnx", "deeper.plan", "--bind", "batch=2,seq=8", "-q")
    refused([suite.bin / "zerorun", "deeper.plan", *resume], "another model")
    run("--steps", 4, "--resume", "adam", "--metrics", "m.jsonl")
    expect(len(suite.losses("m.jsonl")) == 4, "the metrics of the first part are gone")


suite.start()
suite.gpt("model.onnx", *SMALL)
tokens = np.arange(8 * 9) % 50
save_file({"input_ids": tokens[:64].reshape(8, 8), "labels": tokens[1:65].reshape(8, 8)}, suite.work / "data.safetensors")
(suite.work / "empty").touch()
try:
    suite.zeroc("model.onnx", "good.plan", "--bind", "batch=2,seq=8", "-q")
    suite.zeroc("model.onnx", "plain-sgd.plan", "--bind", "batch=2,seq=8", "--optimizer", "sgd", "-q")
    run("--steps", 1)
except Failure as why:
    suite.check("usage: the good case itself", lambda: expect(False, str(why)))
else:
    suite.check("usage: zeroc", all_refused, "zeroc", ["model.onnx", "-o", "x.plan", "--bind", "batch=2,seq=8"], [c for c in ZEROC if c[0][:3] != "-o "])
    suite.check("usage: zeroc -o", all_refused, "zeroc", ["model.onnx", "--bind", "batch=2,seq=8"], [c for c in ZEROC if c[0][:3] == "-o "])
    suite.check("usage: zerorun", all_refused, "zerorun", ["good.plan", "--data", "data.safetensors", "--steps", 2], ZERORUN)
    suite.check("usage: zerorun without what it needs", all_refused, "zerorun", ["good.plan"], NO_STEPS)
    suite.check("usage: zerorun, SGD", all_refused, "zerorun", ["plain-sgd.plan", "--data", "data.safetensors", "--steps", 2], SGD)
    suite.check("usage: zero-inspect", all_refused, "zero-inspect", [], INSPECT)
    suite.check("usage: programs alone", bare)
    suite.check("usage: inputs are spared", nothing_lost)
    suite.check("usage: constants and machines are spared", constants_spared)
    suite.check("usage: pipes", pipes)
    suite.check("usage: output that is lost", lost_output)
    suite.check("usage: plans and models that move", moved)
    suite.check("usage: paths that are no UTF-8", bytes_in_paths)
    suite.check("usage: models that are replaced", replaced)
    suite.check("usage: closed standard streams", closed_streams)
    suite.check("usage: a disk path for nothing", disk_path)
    suite.check("usage: checkpoint folders", checkpoint_folders)
    suite.check("usage: damaged checkpoints", damaged_checkpoint)
    suite.check("usage: checkpoints of another plan", other_plan)
suite.finish()
