#!/usr/bin/env python3
"""What hiding transfers wins: GPT-2 124M under a budget of device memory, the rest on disk, and the same with prefetching, with what stays on the
device, and with running on from step to step switched off one by one.

For each: seconds per step (median), how long each lane was busy in one, and by the trace how long other lanes worked for a step after the end of
its computation, and before its computation began, per step: work across the boundary of steps.

usage: test/bench/overlap.py [--path DIR] [--size 4x64] [--budget 384] [--clip NORM] [--zeroc FLAGS]
"""
import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCAB = 50257
p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--bin", default=str(ROOT / "build" / "bin"))
p.add_argument("--path", help="folder on the disk to use (default: the temporary folder)")
p.add_argument("--size", default="4x64", help="batch x sequence")
p.add_argument("--budget", type=int, default=384, help="MiB of device memory")
p.add_argument("--clip", help="clip the global norm, which every update then waits for")
p.add_argument("--zeroc", default="--tile 8", help="more flags of zeroc")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--steps", type=int, default=6, help="steps counted, after two that are not; ten in all are traced")
args = p.parse_args()
BIN, WARM = pathlib.Path(args.bin).resolve(), 2


def across(trace, steps):
    """Per counted step: busy seconds of each lane; of those other than compute's the seconds after its end, and before its beginning."""
    events = json.loads(trace.read_text())
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    lanes = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lanes[names[event["tid"]]].append((event["ts"] * 1e-6, event["dur"] * 1e-6))
    runs = {lane: [sorted(all)[len(all) * i // steps:len(all) * (i + 1) // steps] for i in range(steps)] for lane, all in lanes.items()}
    busy, after, before = collections.Counter(), 0.0, 0.0
    for i in range(WARM, steps):
        begin, end = runs["compute"][i][0][0], sum(runs["compute"][i][-1])
        for lane, all in runs.items():
            for at, seconds in all[i]:
                busy[lane] += seconds / (steps - WARM)
                if lane != "compute":
                    after += max(0.0, at + seconds - max(at, end)) / (steps - WARM)
                    before += max(0.0, min(at + seconds, begin) - at) / (steps - WARM)
    return busy, after, before


def run(folder, title, compiled, started):
    subprocess.run([BIN / "zeroc", "model.onnx", "-o", "plan.bin", "-q", *compiled, *args.zeroc.split()], cwd=folder, check=True)
    facts = json.loads(subprocess.run([BIN / "zero-inspect", "plan.bin", "--json"], cwd=folder, capture_output=True, text=True, check=True).stdout)
    metrics, trace = folder / "metrics.jsonl", folder / "trace.json"
    metrics.unlink(missing_ok=True)
    steps = WARM + args.steps
    subprocess.run([BIN / "zerorun", "plan.bin", "--data", "tokens.safetensors", "--steps", str(steps), "--threads", str(args.threads), "--lr", "1e-4",
                    "--metrics", metrics, "--trace", trace, "--disk-path", args.path or folder / "disk", *started,
                    *(["--clip", args.clip] if args.clip else [])], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    seconds = statistics.median(row["seconds"] for row in rows[WARM:])
    busy, after, before = across(trace, steps)
    told = ", ".join(f"{lane} {s:.2f}" for lane, s in busy.most_common() if s > 0.005)
    print(f"  {title:<42} {seconds:5.2f} s/step, proven {facts['memory']['total_bytes'] / 2**20:5.0f} MiB; lanes: {told}; "
          f"after its computation {after:.2f}, before it {before:.2f}", flush=True)
    return seconds


def main():
    batch, seq = map(int, args.size.split("x"))
    print(f"GPT-2 124M, {batch} x {seq} tokens, {args.budget} MiB, {args.threads} threads, {args.steps} steps each {args.zeroc}"
          + (f", --clip {args.clip}" if args.clip else ""))
    with tempfile.TemporaryDirectory(prefix="zero-bench-", dir=args.path) as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.executable, ROOT / "models" / "gpt.py", "--layers", "12", "--hidden", "768", "--heads", "12", "--vocab", str(VOCAB),
                        "--seq", str(seq), "--batch", str(batch), "-o", "model.onnx"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        tokens = np.random.default_rng(0).integers(0, VOCAB, (batch * 4, seq + 1))
        save_file({"input_ids": tokens[:, :-1].copy(), "labels": tokens[:, 1:].copy()}, folder / "tokens.safetensors")
        budget = ["--device-memory", f"{args.budget}M"]
        everything = [f"--offload-{what}=disk" for what in ("params", "optimizer", "activations")]
        whole = run(folder, "as it is", budget, [])
        for title, compiled, started in (("nothing is fetched ahead (--prefetch none)", [*budget, "--prefetch", "none"], []),
                                         ("nothing stays on the device (--offload-…)", [*budget, *everything], []),
                                         ("lanes drain between steps (--drain)", budget, ["--drain"]),
                                         ("none of the three", [*budget, *everything, "--prefetch", "none"], ["--drain"])):
            print(f"    {run(folder, title, compiled, started) / whole:.2f} x", flush=True)


if __name__ == "__main__":
    main()
