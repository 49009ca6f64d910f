#!/usr/bin/env python3
"""A run stays below the memory that zero-inspect states for its process, and is refused where it could not.

Small exports and a GPT whose state is much larger than what else a process takes, resident and with all of it on disk, on one rank and on two, with
checkpoints and an export, in a control group with exactly the stated memory for each rank: the run ends with status 0, and its resident set was below
it. With nine tenths of that zerorun says so before it starts. Where control groups cannot be made, which is said, the resident set alone is looked at.

--long does the same with GPT-2 124M and one of 1.5 billion parameters (on disk alone), which takes minutes and 60 GB of disk.
"""
import json
import os
import pathlib
import re
import subprocess
import time

import numpy as np
from safetensors.numpy import save_file

from harness import TINY, Suite, expect
from ranks import free_port

MIB = 1 << 20
DISK = [flag for what in ("params", "optimizer", "activations") for flag in (f"--offload-{what}", "disk")]
suite = Suite(__doc__)
suite.parser.add_argument("--long", action="store_true", help="GPT-2 124M and 1.5B")


class Group:
    """A control group with a limit on memory, of version 1 or 2, below that of this process."""

    def __init__(self, limit):
        self.limit, self.folder = limit, pathlib.Path(self.parent()) / f"zero-hard-limit-{os.getpid()}"

    @staticmethod
    def parent():
        """Where groups with such a limit can be made; None if nowhere."""
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                folder = pathlib.Path("/sys/fs/cgroup/memory" + path)
                if os.access(folder / "cgroup.procs", os.W_OK):
                    return str(folder)
            if not controllers:
                folder = pathlib.Path("/sys/fs/cgroup" + path)
                given = folder / "cgroup.subtree_control"
                if given.exists() and "memory" in given.read_text().split() and os.access(folder, os.W_OK):
                    return str(folder)
        return None

    def __enter__(self):
        try:
            self.folder.mkdir()
        except OSError as error:
            raise SystemExit(f"FAILED hard limit: a control group cannot be made in {self.folder.parent}: {error}")
        first = self.folder / "memory.limit_in_bytes"
        (first if first.exists() else self.folder / "memory.max").write_text(str(self.limit))
        if (swap := self.folder / "memory.swap.max").exists():
            swap.write_text("0")
        return self

    def __exit__(self, *_):
        for _ in range(100):  # pages of a process that has ended may be on their way
            try:
                return self.folder.rmdir()
            except OSError:
                time.sleep(0.05)

    def join(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))


def ranks(command, world, group=None):
    """Runs the ranks as children of ours, which find each other over TCP. Returns statuses, what they said, and the largest resident set."""
    env = dict(os.environ)
    if world > 1:
        env.update(WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), ZERORUN_SECRET="a secret that is known to a test")
    files = [open(suite.work / f"said-{rank}", "w+") for rank in range(world)]
    processes = [subprocess.Popen([str(c) for c in command], cwd=suite.work, stdout=subprocess.DEVNULL, stderr=files[rank],
                                  env={**env, **({"RANK": str(rank)} if world > 1 else {})}, preexec_fn=group.join if group else None) for rank in range(world)]
    statuses, resident = [], 0
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        statuses.append(process.returncode)
        resident = max(resident, usage.ru_maxrss * 1024)
    said = []
    for file in files:
        file.seek(0)
        said += file.read().splitlines()
        file.close()
    return statuses, said, resident


def within(model, data, flags, world, threads=1, steps=3):
    suite.run(["rm", "-rf", "kept"])
    suite.zeroc(model, "x.plan", *flags, "--world", world, "--stage", 3 if world > 1 else 0, "-q", timeout=600)
    stated = json.loads(suite.run([suite.bin / "zero-inspect", "x.plan", "--json", "--threads", threads]).stdout)["process"]
    total = stated["total_bytes"]
    page = suite.run([suite.bin / "zero-inspect", "x.plan", "--threads", threads]).stdout
    expect(total == sum(stated["parts"].values()) and f"{total:,}".replace(",", " ") in page, "the lines do not add up")
    command = [suite.bin / "zerorun", "x.plan", "--data", data, "--steps", steps, "--threads", threads, "--checkpoint", "kept", "--every", max(steps - 1, 1),
               "--export", "trained.safetensors", "--disk-path", "disk"]
    if Group.parent():
        with Group(world * total * 9 // 10) as group:
            statuses, said, _ = ranks(command, world, group)
        expect(statuses == [1] * world, f"with nine tenths of {total:,} bytes it ended with {statuses}: {said}")
        expect(sum("the memory limit of the control group '" in line and "would bring this rank to" in line for line in said) >= 1, f"said {said}")
        expect(not (suite.work / "kept").exists() or not list((suite.work / "kept").glob("step-*")), "it had begun")
        with Group(world * total) as group:
            statuses, said, resident = ranks(command, world, group)
    else:
        statuses, said, resident = ranks(command, world)
    expect(statuses == [0] * world, f"with {world} x {total:,} bytes it ended with {statuses}: {said}")
    suite.run(["rm", "-r", "kept", "trained.safetensors"])
    expect(resident <= total, f"{resident:,} bytes were resident, {total:,} are stated")
    beside = resident - stated["parts"]["arenas"]
    expect(beside <= 48 * MIB, f"{beside / MIB:.1f} MiB beside the arenas were resident")
    return f"{resident:,} of {total:,} bytes, {beside / MIB:.1f} MiB beside {stated['parts']['arenas']:,} of arenas"


def mapped(model, data):
    """Limits of ulimit, which count addresses: refused by name."""
    suite.zeroc(model, "x.plan", "-q")
    run = suite.run(["bash", "-c", f"ulimit -d $((200 * 1024)); exec {suite.bin}/zerorun x.plan --data {data} --steps 1 --threads 1"], check=False)
    expect(run.returncode == 1 and "mapped (ulimit -d) leaves" in run.stderr, f"{run.returncode}, {run.stderr}")
    return ""


def advised(model, data):
    """What a refusal advises holds: compiled with the budget that it names, the model trains where it was refused."""
    suite.zeroc(model, "x.plan", "-q")
    total = json.loads(suite.run([suite.bin / "zero-inspect", "x.plan", "--json", "--threads", 1]).stdout)["process"]["total_bytes"]
    command = [suite.bin / "zerorun", "x.plan", "--data", data, "--steps", 2, "--threads", 1, "--disk-path", "disk"]
    with Group(total * 6 // 10) as group:
        statuses, said, _ = ranks(command, 1, group)
        budget = re.search(r"--device-memory (\d+M)", " ".join(said))
        expect(statuses == [1] and budget, f"{statuses}: {said}")
        suite.zeroc(model, "x.plan", "-q", "--device-memory", budget[1])
        statuses, said, _ = ranks(command, 1, group)
        expect(statuses == [0], f"with {budget[0]} it ended with {statuses}: {said}")
    return f"{budget[0]} in {total * 6 // 10:,} of {total:,} bytes"


def tokens(name, vocabulary, batch, seq):
    inputs, labels = np.random.default_rng(1).integers(0, vocabulary, (2, 4 * batch, seq))
    save_file({"input_ids": inputs, "labels": labels}, suite.work / name)
    return name


suite.start()
if not Group.parent():
    print("hard limit: no control group can be made here, so no run is held by one", flush=True)
if suite.args.long:
    shape = ["--vocab", 50257, "--positions", 1024, "--batch", 4, "--seq", 64, "--no-weights"]
    data = tokens("long.safetensors", 50257, 4, 64)
    model = suite.gpt("gpt2.onnx", "--layers", 12, *shape)
    for what, flags in (("resident", []), ("on disk", DISK)):
        suite.check(f"hard limit: GPT-2 124M {what}", within, model, data, ["--init", "random", *flags], 1, 2)
    suite.check("hard limit: GPT-2 124M on disk, 2 ranks", within, model, data, ["--init", "random", *DISK], 2)
    model = suite.gpt("xl.onnx", "--layers", 48, "--hidden", 1600, "--heads", 25, *shape)
    suite.check("hard limit: GPT-2 1.5B on disk", within, model, data, ["--init", "random", *DISK], 1, 2, 1)
else:
    models = []
    for name, file in (("gpt2", "dynamo_sdpa_dyn.onnx"), ("llama", "ts17_eager_dyn.onnx")):
        batches = np.load(TINY / name / "batches.npz")
        seq = batches["0/input_ids"].shape[1]
        models.append((name, TINY / name / file, tokens(f"{name}.safetensors", 64, 1, seq), ["--bind", f"batch=1,seq={seq}"]))
    wide = suite.gpt("wide.onnx", "--layers", 2, "--hidden", 512, "--heads", 8, "--vocab", 12000, "--seq", 64, "--batch", 2)
    models.append(("a GPT of 12.5 million parameters", wide, tokens("wide.safetensors", 12000, 2, 64), []))
    for name, model, data, bind in models:
        for what, flags in (("resident", []), ("on disk", DISK)):
            for world in (1, 2):
                if name != "gpt2" and (world == 2) != bool(flags) and not (model == wide and flags):
                    continue
                suite.check(f"hard limit: {name} {what}, {world} rank{'s' * (world > 1)}", within, model, data, [*bind, *flags], world)
    if Group.parent():
        suite.check("hard limit: the advice of a refusal", advised, wide, "wide.safetensors")
    suite.check("hard limit: what may be mapped", mapped, wide, "wide.safetensors")
suite.finish()
