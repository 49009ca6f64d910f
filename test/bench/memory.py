#!/usr/bin/env python3
"""Time against memory: GPT-2 124M, one AdamW step in f32 or bf16 on 2 threads, under budgets of device memory, the rest on disk.

For each budget: what zeroc proves, what the process takes, seconds per step (median), how long each lane was busy in it, the ratio of the
step to what it cannot go below (asked: at most 1.10), computation alone, as in runs without a budget, or the disk lanes alone, which make
the plan's transfers and wait for nothing else (disk_lanes); both before and after the run, since machines change their speed from minute to
minute; the ratio to what both take side by side, neither waiting for the other, which no order of a plan's steps goes below either; bytes
copied, and what zeroc says of them: over the least that any choice copies (asked: at most 1.15). Beside copies computation takes longer; so
the step is also told in what lane compute was busy in that run: what is more than 1 is waiting. A budget that zeroc refuses is a line, too.
Plans are for what is run, with --clip or without, and for this machine, as the run before has shown it to be: beside each other computation
and the disk are slower than alone.

usage: test/bench/memory.py [--path DIR] [--sizes 4x64,4x256] [--budgets 192,256,384,512,768,1024] [--zeroc FLAGS] [--precision f32|bf16]
                            [--clip NORM] [--deepspeed PYTHON] [--model FILE.onnx --data FILE.safetensors]

With --model and --data, those in place of GPT-2. With --deepspeed, a Python that has torch, transformers and deepspeed: its ZeRO-3 step with parameters and optimizer state on the same disk.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCAB, MIB = 50257, 2**20
p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--bin", default=str(ROOT / "build" / "bin"))
p.add_argument("--path", help="folder on the disk to use (default: the temporary folder)")
p.add_argument("--sizes", default="4x64,4x256", help="batch x sequence, separated by commas")
p.add_argument("--model", type=pathlib.Path, help="measure this model in place of GPT-2, on --data")
p.add_argument("--data", type=pathlib.Path, help="samples of --model")
p.add_argument("--budgets", default="192,256,384,512,768,1024", help="MiB of device memory, besides unlimited")
p.add_argument("--zeroc", default="", help="more flags of zeroc")
p.add_argument("--precision", choices=("f32", "bf16"), default="f32")
p.add_argument("--clip", help="clip the global norm, which every update then waits for")
p.add_argument("--deepspeed", metavar="PYTHON", help="measure DeepSpeed too, with this Python")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--steps", type=int, default=8, help="steps counted, after two that are not; at most 8, since a trace has ten")
args = p.parse_args()
BIN, WARM = pathlib.Path(args.bin).resolve(), 2
MOST = 10 - WARM  # a trace has the first ten steps
if bool(args.model) != bool(args.data):
    p.error("--model and --data go together")
if args.model and args.deepspeed:
    p.error("--deepspeed measures GPT-2, not --model")
MODEL, DATA = (path.resolve() if path else name for path, name in ((args.model, "model.onnx"), (args.data, "tokens.safetensors")))
if not 1 <= args.steps <= MOST:
    p.error(f"--steps {args.steps}: from 1 to {MOST} can be counted")


def processors():
    """(idle, all) ticks of all processors so far."""
    fields = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return fields[3] + fields[4], sum(fields)


def lanes_of(trace, steps):
    """Seconds each lane was busy, per step, in the last `steps` of them."""
    events = json.loads(trace.read_text())
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    runs = collections.defaultdict(list)  # of each lane, in order
    for event in events:
        if event["ph"] == "X":
            runs[event["tid"]].append((event["ts"], event["dur"] * 1e-6))
    counted = lambda all: [seconds for _, seconds in sorted(all)[len(all) * WARM // (WARM + steps):]]
    return {names.get(lane, str(lane)): sum(counted(all)) / steps for lane, all in runs.items()}


def disk_speed(folder, mode):
    """Bytes per second of disk transfers that have the disk to themselves."""
    folder.mkdir(exist_ok=True)
    result = subprocess.run([BIN / "disk_bench", folder, mode, "io_uring", "1024", "4", "16"], capture_output=True, text=True, check=True)
    return float(result.stdout)


class DiskLanes:
    """The disk lanes of plan.bin, ready to make `steps` of them when told to."""

    def __init__(self, folder, steps):
        command = [BIN / "disk_lanes", "plan.bin", args.path or folder / "disk", "step_clip" if args.clip else "step", str(steps)]
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit("memory: disk_lanes failed")

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def seconds(self):
        """The median of the steps, and the mean."""
        told = self.process.communicate()[0]
        if self.process.returncode:
            raise SystemExit("memory: disk_lanes failed")
        return [float(word) for word in told.split()]


def disk_lanes(folder):
    """Seconds of the disk lanes of plan.bin in a step, alone."""
    lanes = DiskLanes(folder, 5)
    lanes.go()
    return lanes.seconds()[0]


def describe(folder, disk, ran=False):
    """Writes machine.json: what plan.bin showed if it `ran`, and of the disk, where it does not use that, what reading and writing at once move."""
    machine = {lane: disk["disk_mixed"] for lane in ("disk_read", "disk_write")}
    if ran:
        machine |= json.loads(subprocess.run([BIN / "zero-inspect", "plan.bin", "--measured", "trace.json"], cwd=folder, capture_output=True, text=True, check=True).stdout)
    (folder / "machine.json").write_text(json.dumps(machine))


def zerorun(plan, steps):
    return [BIN / "zerorun", plan, "--data", DATA, "--steps", str(WARM + steps), "--threads", str(args.threads), "--lr", "1e-4",
            *(["--clip", args.clip] if args.clip else []), "--disk-path", args.path or "disk"]


def computation(folder):
    """Seconds of lane compute in a step of the plan without a budget."""
    subprocess.run([*zerorun("resident.bin", 3), "--trace", "alone.json"], cwd=folder, capture_output=True, text=True, check=True)
    return lanes_of(folder / "alone.json", 3)["compute"]


def both_at_once(folder):
    """Seconds of a step of computation without a budget and one of plan.bin's disk lanes, side by side and waiting for nothing."""
    lanes, metrics = DiskLanes(folder, args.steps), folder / "both.jsonl"
    metrics.unlink(missing_ok=True)
    process = subprocess.Popen([*zerorun("resident.bin", args.steps), "--metrics", metrics], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows = lambda: metrics.read_text().splitlines() if metrics.exists() else []
    while len(rows()) < WARM and process.poll() is None:
        time.sleep(0.002)
    lanes.go()
    disk = lanes.seconds()[1]
    if process.wait():
        raise SystemExit("memory: zerorun failed beside disk_lanes")
    return max(disk, statistics.mean(json.loads(row)["seconds"] for row in rows()[WARM:]))


def run(folder, budget, alone):
    """`alone`: bytes per second of the disk in each direction."""
    flags = [] if budget is None else ["--device-memory", f"{budget}M"]
    title = "unlimited" if budget is None else f"{budget} MiB"
    result = subprocess.run([BIN / "zeroc", MODEL, "-o", "plan.bin", *flags, "--precision", args.precision, "--clip", "always" if args.clip else "never",
                             "--machine", "machine.json", *args.zeroc.split()], cwd=folder, capture_output=True, text=True)
    if result.returncode:
        print(f"  {title:>9}  {result.stderr.strip().splitlines()[-1][:170]}", flush=True)
        return None
    found = re.search(r"([\d ]+) bytes are copied in a step[^,]*, no choice copies less than ([\d ]+)", result.stdout)
    facts = json.loads(subprocess.run([BIN / "zero-inspect", "plan.bin", "--json"], cwd=folder, capture_output=True, text=True, check=True).stdout)
    metrics, trace = folder / "metrics.jsonl", folder / "trace.json"
    metrics.unlink(missing_ok=True)
    if budget is None:
        shutil.copy(folder / "plan.bin", folder / "resident.bin")
    compute, disk = [computation(folder)], [disk_lanes(folder)] if found else []
    before = processors()
    process = subprocess.Popen([*zerorun("plan.bin", args.steps), "--metrics", metrics, "--trace", trace], cwd=folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"memory: zerorun failed: {error.strip()[-500:]}")
    after = processors()
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    seconds = statistics.median(row["seconds"] for row in rows[WARM:])
    lanes = lanes_of(trace, args.steps)
    copied = collections.Counter()
    for lane, size in rows[-1]["bytes"].items():  # updates that wait for the norm have lanes of their own; what lane update copies goes to disk
        if lane == "update" or lane.endswith(("_read", "_write")):
            copied["disk_read" if lane.endswith("_read") else "disk_write"] += size
    planned, least = (int(found[i].replace(" ", "")) for i in (1, 2)) if found else (0, 0)
    idle = (after[0] - before[0]) / (after[1] - before[1])
    describe(folder, alone, ran=True)
    disk = statistics.mean([*disk, disk_lanes(folder)]) if found else 0
    compute = statistics.mean([*compute, computation(folder)])
    both = both_at_once(folder) if found else compute
    told = ", ".join(f"{lane} {s:.2f}" for lane, s in sorted(lanes.items(), key=lambda item: -item[1]) if s > 0.005)
    print(f"  {title:>9}  proven {facts['memory']['total_bytes'] / MIB:6.0f} MiB, process {usage.ru_maxrss / 1024:6.0f} MiB, {seconds:6.2f} s/step = "
          f"{seconds / max(compute, disk):.2f} x the longer of computation alone, {compute:.2f}, and the disk lanes alone, {disk:.2f}, "
          f"{seconds / both:.2f} x both at once, {both:.2f}, and {seconds / lanes['compute']:.2f} x lane compute (lanes: {told}); copied {sum(copied.values()) / 1e9:.2f} GB"
          + (f", {planned / least:.2f} x the least" if least else "") + f"; CPUs idle {idle:.0%}", flush=True)
    return seconds, usage.ru_maxrss


def deepspeed(folder, batch, seq):
    """(seconds per step, resident kB at most), or None where it did not run, which is said."""
    command = [args.deepspeed, ROOT / "test" / "bench" / "peer_deepspeed.py", "--disk", folder / "deepspeed", "--batch", batch, "--seq", seq,
               "--threads", args.threads, "--steps", args.steps, "--warm", WARM, "--precision", args.precision]
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if result.returncode or not result.stdout.strip():
        last = (result.stderr.strip().splitlines() or ["nothing was said"])[-1]
        print(f"  DeepSpeed did not run (exit {result.returncode}): {last[:300]}", flush=True)
        return None
    answer = json.loads(result.stdout.strip().splitlines()[-1])
    return statistics.median(answer["seconds"]), answer["peak"] // 1024


def gpt2(folder, batch, seq):
    """Writes the model and samples to train it on."""
    subprocess.run([sys.executable, ROOT / "models" / "gpt.py", "--layers", "12", "--hidden", "768", "--heads", "12", "--vocab", str(VOCAB),
                    "--seq", str(seq), "--batch", str(batch), "-o", "model.onnx"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    tokens = np.random.default_rng(0).integers(0, VOCAB, (batch * 4, seq + 1))
    save_file({"input_ids": tokens[:, :-1].copy(), "labels": tokens[:, 1:].copy()}, folder / "tokens.safetensors")


def main():
    for size in [None] if args.model else args.sizes.split(","):
        batch, seq = map(int, size.split("x")) if size else (0, 0)
        title = f"GPT-2 124M, {batch} x {seq} tokens" if size else args.model
        print(f"{title}, {args.precision}, {args.threads} threads, {args.steps} steps each {args.zeroc}")
        with tempfile.TemporaryDirectory(prefix="zero-bench-", dir=args.path) as name:
            folder = pathlib.Path(name)
            if size:
                gpt2(folder, batch, seq)
            alone = {f"disk_{mode}": disk_speed(pathlib.Path(args.path or folder / "disk"), mode) for mode in ("read", "write", "mixed")}
            print("  the disk alone: " + ", ".join(f"{lane} {speed / 1e9:.2f} GB/s" for lane, speed in alone.items()), flush=True)
            describe(folder, alone)
            ours = {budget: run(folder, budget, alone) for budget in [None, *map(int, args.budgets.split(",")[::-1])]}
            theirs = deepspeed(folder, batch, seq) if args.deepspeed else None
            if theirs:
                print(f"  DeepSpeed ZeRO-3, parameters and optimizer on disk: {theirs[0]:.2f} s/step, process {theirs[1] / 1024:.0f} MiB", flush=True)
                for budget, measured in ours.items():
                    if budget and measured:
                        print(f"    {budget} MiB: {theirs[0] / measured[0]:.2f} x as fast (asked: 2.5) in {measured[1] / theirs[1]:.3f} x its memory (asked: 0.1)")


if __name__ == "__main__":
    main()
