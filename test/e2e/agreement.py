#!/usr/bin/env python3
"""Ranks that were given different flags, files or checkpoints: all of them end with one sentence that names the difference and the ranks.

Flags are taken from `zerorun --help`, so that a new one is tried without being named here. `--long` tries every case with two and with
four ranks, over TCP and with mpirun; without it most have two ranks over TCP."""
import json
import re
import shutil
import time

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import Suite, expect
from ranks import Ranks, reasons, sentences, world

suite = Suite(__doc__)
suite.parser.add_argument("--long", action="store_true", help="every case with 2 and 4 ranks, over TCP and with mpirun")

# Values that zerorun's command line takes, by the type that --help prints; None: no value.
VALUES = {"FILE": "x.safetensors", "DIR": "x", "N": "3", "X": "0.25", "A[,B]": "0.8,0.9", "SECONDS": "77", "NAME": "x", "REGEX": "x",
          "REGEX=X": "x=0.5", "PUBKEY": "x.pub"}
FREE = {"--threads", "--show-batch", "--help", "--disk-path", "--simulate"}  # may differ; the last runs on no ranks


def flags():
    """Each flag that must agree, with a value."""
    found = {}
    for line in suite.run([suite.bin / "zerorun", "--help"]).stdout.splitlines():
        if match := re.match(r"\s+(?:-\w,)?(--[a-z-]+)(?: (\S+))?", line):
            flag, kind = match.groups()
            kind = kind.rstrip(".") if kind else None
            found[flag] = [flag] if kind is None else [flag, VALUES.get(kind, kind.split("|")[-1])]
    expect(len(found) > 15, f"zerorun --help shows only {sorted(found)}")
    return {flag: value for flag, value in found.items() if flag not in FREE}


def prepare():
    suite.gpt("model.onnx", "--layers", "1", "--hidden", "24", "--heads", "3", "--vocab", "37", "--seq", "8")
    tokens = np.random.default_rng(0).integers(0, 37, (40, 9))
    save = lambda name: save_file({"input_ids": np.ascontiguousarray(tokens[:, :8]), "labels": np.ascontiguousarray(tokens[:, 1:])}, suite.work / name)
    save("data.safetensors")
    tokens[39, 3] = (tokens[39, 3] + 1) % 37
    save("other.safetensors")
    for n in (2, 4):
        folder = suite.work / f"a{n}"
        folder.mkdir()
        shutil.copy(suite.work / "model.onnx", folder)
        suite.zeroc(folder / "model.onnx", folder / "plan", "-q", "--world", n, "--stage", 3)
        # Another machine's copy, in which one weight is another.
        shutil.copytree(folder, suite.work / f"b{n}")
        model = suite.work / f"b{n}" / "model.onnx"
        raw = bytearray(model.read_bytes())
        at = raw.find(weight_bytes(folder / "model.onnx"))
        raw[at] ^= 1
        model.write_bytes(raw)
        suite.zeroc(folder / "model.onnx", folder / "other", "-q", "--world", n, "--stage", 1)
        with Ranks(suite, world(n), command(n, ["--checkpoint", suite.work / f"c{n}"])) as run:
            statuses, said = run.end(30)
            expect(statuses == [0] * n, f"the run that ranks agree on ended with {statuses}: {sentences(said)}")
        copy(f"c{n}/step-2", f"d{n}/step-2", "rank-0.safetensors", lambda b: b[:-300] + bytes([b[-300] ^ 1]) + b[-299:])
        copy(f"c{n}/step-2", f"e{n}/step-1", "index.json", lambda b: b.replace(b'"step": 2', b'"step": 1'))


def weight_bytes(model):
    import onnx
    from onnx import numpy_helper
    largest = max(onnx.load(model).graph.initializer, key=lambda t: len(t.raw_data))
    return numpy_helper.to_array(largest).tobytes()[:64]


def copy(source, target, name, change):
    shutil.copytree(suite.work / source, suite.work / target)
    path = suite.work / target / name
    before = path.read_bytes()
    path.write_bytes(change(before))
    expect(path.read_bytes() != before, f"{path} was not changed")


def command(n, extra=(), plan=None, data="data.safetensors", steps=2, threads=1):
    return [suite.bin / "zerorun", plan or suite.work / f"a{n}" / "plan", "--data", suite.work / data, "--steps", steps, "--threads", threads, *extra]


def over_tcp(commands):
    with Ranks(suite, world(len(commands)), commands) as run:
        statuses, said = run.end(20)
    expect(statuses == [1] * len(commands), f"exit {statuses}: {sentences(said)}")
    expect(all(len(sentences([text])) == 1 for text in said), f"not one sentence of each rank: {said}")
    return reasons(sentences(said))


def with_mpirun(commands):
    line = [*suite.mpirun(1), *commands[0]]
    for each in commands[1:]:
        line += [":", "-np", 1, *each]
    result = suite.run(line, check=False, timeout=20, env={"OMPI_MCA_mpi_yield_when_idle": "1"})
    expect(result.returncode == 1, f"mpirun ended with {result.returncode}: {result.stderr[-300:]}")
    return sentences([result.stderr])


def disagree(transport, n, words, common, odd, odd_rank=None):
    """All ranks but one have the command line `common`, and one has `odd`."""
    odd_rank = n - 1 if odd_rank is None else odd_rank
    lines = transport([odd if rank == odd_rank else common for rank in range(n)])
    expect(len(lines) == 1, f"one sentence was expected: {lines}")
    others = [r for r in range(n) if r != odd_rank]
    ranks = f"rank {others[0]}" if len(others) == 1 else "ranks " + (f"{others[0]} to {others[-1]}" if others[-1] - others[0] == n - 2 else ", ".join(map(str, others)))
    for each in [*words, f"on rank {odd_rank}", f"on {ranks}", "all ranks of a run must be given the same"]:
        expect(each in lines[0], f"'{each}' is missing in: {lines[0]}")


def flag(transport, n, value):
    base = command(n)
    if value[0] in base:  # one that every run has: another value of it
        odd = list(base)
        odd[odd.index(value[0]) + 1] = value[1]
        if value[0] == "--data":  # whether it is the same file is another case
            odd = [c for c in odd if c not in value]
    else:
        odd = [*base, *value]
    disagree(transport, n, [f"{value[0]} is "], base, odd)


def files(transport, n):
    """What differs are bytes of a file; names may differ."""
    base = command(n)
    disagree(transport, n, ["--data is a file of "], base, command(n, data="other.safetensors"))
    disagree(transport, n, ["the plan is a file of "], base, command(n, plan=suite.work / f"a{n}" / "other"), odd_rank=0)
    disagree(transport, n, ["the model's file 'model.onnx' is a file of "], base, command(n, plan=suite.work / f"b{n}" / "plan"))
    held_out = lambda name: command(n, ["--eval-data", suite.work / name])
    disagree(transport, n, ["--eval-data is a file of "], held_out("data.safetensors"), held_out("other.safetensors"))


def checkpoints(transport, n):
    resume = lambda name: command(n, ["--resume", suite.work / name], steps=3)
    disagree(transport, n, ["--resume is 'step-2' of "], resume(f"c{n}"), resume(f"d{n}"))
    disagree(transport, n, ["--resume is 'step-2' of ", "'step-1' of"], resume(f"c{n}"), resume(f"e{n}"))


def folders(transport, n):
    """Results that all ranks write must lie where all of them see them."""
    for name in ("here", "there"):
        (suite.work / name).mkdir(exist_ok=True)
    for flag, name in ("--export", "x.safetensors"), ("--gradients", "x.safetensors"), ("--trace", "x.json"), ("--checkpoint", ""):
        at = lambda folder: command(n, [flag, suite.work / folder / name])
        lines = transport([at("there" if rank == 1 else "here") for rank in range(n)])
        expect(len(lines) == 1 and "rank 1: " + flag in lines[0] and "in another folder than rank 0's" in lines[0], f"said: {lines}")
    left = [p.name for name in ("here", "there") for p in (suite.work / name).iterdir()]
    expect(not left, f"left behind: {left}")


def agreed(transport, n):
    """The same contents under other names, and another number of threads, are no difference."""
    shutil.copy(suite.work / "data.safetensors", suite.work / "copy.safetensors")
    shutil.copytree(suite.work / f"a{n}", suite.work / f"same{n}", dirs_exist_ok=True)
    odd = command(n, ["--lr", "0.001"], plan=suite.work / f"same{n}" / "plan", data="copy.safetensors", threads=2)
    with Ranks(suite, world(n), [odd if rank == 1 else command(n) for rank in range(n)]) as run:
        statuses, said = run.end(30)
    expect(statuses == [0] * n, f"exit {statuses}: {sentences(said)}")


def changed_settings():
    """A resume with other hyper-parameters goes on and says so."""
    with Ranks(suite, world(2), command(2, ["--resume", suite.work / "c2", "--lr", "0.01", "--clip", "1", "--betas", "0.9,0.99"], steps=3)) as run:
        outs = [p.communicate(timeout=30)[0] for p in run.processes]
        statuses = [p.returncode for p in run.processes]
    expect(statuses == [0, 0], f"exit {statuses}")
    for words in "--lr is 0.01, where the checkpoint's run had 0.001", "--clip is 1, where", "--betas is 0.9,0.99, where the checkpoint's run had 0.9,0.999":
        expect(words in outs[0], f"'{words}' is missing in: {outs[0]}")
    expect("--eps" not in outs[0] and "where the" not in outs[1], f"said: {outs}")
    recorded = json.loads((suite.work / "c2" / "step-2" / "index.json").read_text())["settings"]
    expect(recorded == {"--lr": "0.001", "--schedule": "constant", "--warmup": "0", "--weight-decay": "0.01", "--betas": "0.9,0.999",
                        "--eps": "1e-08", "--clip": "0", "--no-decay": "none", "--lr-scale": "none", "--keep": "2", "--labels": "same",
                        "the number of samples in --data": "40", "the number of samples in a step": "2"}, f"recorded: {recorded}")


args = suite.start()
prepare()
everywhere = [(t, name, n) for t, name in ((over_tcp, "TCP"), (with_mpirun, "mpirun")) for n in (2, 4)]
some = everywhere if args.long else [everywhere[0]]
for each, value in flags().items():
    for transport, name, n in some + ([everywhere[3]] if not args.long and each in ("--lr", "--eval-data") else []):
        suite.check(f"agreement: {each}, {n} ranks, {name}", flag, transport, n, value)
for transport, name, n in some + ([] if args.long else [everywhere[3]]):
    suite.check(f"agreement: files, {n} ranks, {name}", files, transport, n)
    suite.check(f"agreement: checkpoints, {n} ranks, {name}", checkpoints, transport, n)
for transport, name, n in some:
    suite.check(f"agreement: folders, {n} ranks, {name}", folders, transport, n)
suite.check("agreement: other names of the same files", agreed, over_tcp, 4)
suite.check("agreement: a resume with other settings", changed_settings)
suite.finish()
