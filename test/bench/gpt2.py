#!/usr/bin/env python3
"""GPT-2 124M, one AdamW step on 2 threads, in f32 or bf16 (PyTorch: autocast): zerorun beside PyTorch, measured alternately in one run.

Prints seconds per step (median), the ratio to the faster of PyTorch eager and torch.compile, peak resident memory of each, the bandwidth
of the generated kernels against a copy measured in the same run, and what compiling costs: GPT-2 124M and a graph of 175 billion parameters.

All train on one batch of random tokens; they draw their first weights differently, so the losses fall alike but are not equal.

usage: test/bench/gpt2.py [--torch PYTHON] [--sizes 4x64,4x256] [--precision f32|bf16] [--rounds N]
PyTorch is not part of set-up: give a Python that has torch and transformers, or its columns are left out with a sentence.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
import plan_file  # noqa: E402
from turns import GIB, WARM, Torch, Zero, has_torch, measured, take_turns  # noqa: E402

VOCAB, POSITIONS = 50257, 1024
MIB = 2**20

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--bin", default=str(ROOT / "build" / "bin"))
p.add_argument("--torch", default=sys.executable, help="a Python with torch and transformers (default: this one)")
p.add_argument("--sizes", default="4x64,4x256", help="batch x sequence, separated by commas")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--precision", choices=("f32", "bf16"), default="f32")
p.add_argument("--rounds", type=int, default=3, help="how often the programs take turns")
p.add_argument("--steps", type=int, default=4, help="steps counted in each turn")
p.add_argument("--layers", type=int, default=12)
p.add_argument("--no-compile-time", action="store_true", help="leave out the compile times")
args = p.parse_args()
BIN = pathlib.Path(args.bin).resolve()


def copy_bandwidth():
    """Bytes per second, read and written, of a plain copy by as many threads as the benchmark uses."""
    n = 256 * MIB // 4
    source, target = np.ones(n, np.float32), np.zeros(n, np.float32)
    cuts = np.linspace(0, n, args.threads + 1).astype(int)
    best = float("inf")
    for _ in range(6):
        threads = [threading.Thread(target=np.copyto, args=(target[a:b], source[a:b])) for a, b in zip(cuts, cuts[1:])]
        begin = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        best = min(best, time.perf_counter() - begin)
    return 2 * 4 * n / best


class Gpt2(Zero):
    def __init__(self, work, batch, seq):
        super().__init__(BIN, work, args.threads)
        subprocess.run([sys.executable, ROOT / "models" / "gpt.py", "--layers", str(args.layers), "--vocab", str(VOCAB), "--batch", str(batch),
                        "--seq", str(seq), "--positions", str(POSITIONS), "--no-weights", "-o", "gpt2.onnx"], cwd=work, check=True, stdout=subprocess.DEVNULL)
        self.compile_seconds, self.compile_peak = measured([BIN / "zeroc", "gpt2.onnx", "-o", "plan.bin", "--init", "random", "--precision", args.precision], work)
        random = np.random.default_rng(0)
        shape = (batch, seq)  # one batch, again and again, as the peers have it
        save_file({"input_ids": random.integers(0, VOCAB, shape), "labels": random.integers(0, VOCAB, shape)}, work / "data.safetensors")


def peers(work, batch, seq):
    config = work / "config.json"
    config.write_text(json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": args.layers, "vocab_size": VOCAB, "n_positions": POSITIONS}))
    return [Torch(args.torch, mode, config, "--batch", batch, "--seq", seq, "--threads", args.threads, "--precision", args.precision)
            for mode in ("eager", "compile")]


def launches(plan):
    """Per program name and lane, what each step in order launches: (kernel, bytes it moves, what) or None.

    An update's kernel serves buckets of any size, so its bytes are those the step reads and writes; other kernels state theirs in the plan
    (an embedding's arguments span the whole table, of which a launch reads some rows).
    """
    table = {}
    for program in plan.programs:
        for step in program.steps:
            what = step.WhichOneof("what")
            launch = step.launch if what == "launch" else step.update.launch if what == "update" else None
            entry = None
            if launch is not None:
                kernel = plan.kernels[launch.kernel]
                entry = kernel, sum(ref.bytes for ref in [*step.reads, *step.writes]) if what == "update" else kernel.bytes, what
            table.setdefault((program.name, step.lane), []).append(entry)
    return table


def kernels(zero, copy):
    """Bandwidth of every generated kernel: its bytes (from the plan) over its time (from the trace), as a share of the copy's.

    The first run of each program is left out: it touches its memory for the first time.
    """
    zero.turn(args.steps, trace=True)
    copy = max(copy, copy_bandwidth())
    steps = launches(plan_file.read(zero.work / "plan.bin"))
    table = collections.defaultdict(lambda: [0, 0.0, 0])
    seen = collections.Counter()
    for event in json.loads((zero.work / "trace.json").read_text()):
        if event["ph"] != "X":
            continue
        place = event["cat"], event["tid"]
        lane = steps[place]
        step = lane[seen[place] % len(lane)]
        seen[place] += 1
        if step and seen[place] > len(lane):
            kernel, size, what = step
            row = table[("update: " if what == "update" else "") + (kernel.summary or kernel.symbol)]
            row[0], row[1], row[2] = row[0] + size, row[1] + event["dur"] * 1e-6, row[2] + 1
    for title, rows in (("AdamW", {k: r for k, r in table.items() if k.startswith("update: ")}),
                        ("generated kernels", {k: r for k, r in table.items() if not k.startswith("update: ")})):
        if not rows:
            continue
        size, seconds = (sum(r[k] for r in rows.values()) for k in (0, 1))
        print(f"  {title}: {size / seconds / copy:.0%} of a copy's {copy / 1e9:.1f} GB/s (asked: {80 if title == 'AdamW' else 70} %)")
        for summary, (size, seconds, count) in sorted(rows.items(), key=lambda r: -r[1][1])[:12]:
            print(f"    {size / seconds / copy:5.0%}  {1e3 * seconds / count:8.3f} ms x {count:4}  {summary[:100]}")


def compare(batch, seq, with_torch):
    with tempfile.TemporaryDirectory(prefix="zero-bench-") as folder:
        work = pathlib.Path(folder)
        zero = Gpt2(work, batch, seq)
        programs = [zero, *(peers(work, batch, seq) if with_torch else [])]
        others = take_turns(programs, args.rounds, args.steps)
        print(f"GPT-2 {args.layers} x 768, {batch} x {seq} tokens, {args.precision}, {args.threads} threads, {args.rounds} x {args.steps} steps each, in turns; "
              f"others used {others:.0%} of the CPUs")
        if others > 0.1:
            print("  NOT A VALID MEASUREMENT: other programs were computing; run it again on a quiet machine")
        for program in programs:
            median = statistics.median(program.seconds)
            print(f"  {program.name:14} {median:7.3f} s/step (best {min(program.seconds):.3f}), {batch * seq / median:6.0f} tokens/s, "
                  f"peak {program.peak / GIB:5.2f} GiB, loss {program.loss:.3f} after {WARM + args.steps} steps")
        if with_torch:
            fastest = min(programs[1:], key=lambda t: statistics.median(t.seconds))
            ratio = statistics.median(zero.seconds) / statistics.median(fastest.seconds)
            time_asked, memory_asked = ("at most 1, target 0.8", 0.7) if args.precision == "f32" else ("at most 0.67, target 0.5", 0.6)
            print(f"  time {ratio:.2f} x {fastest.name} (asked: {time_asked}), "
                  f"memory {zero.peak / min(t.peak for t in programs[1:]):.2f} x the leaner (asked: at most {memory_asked})")
        kernels(zero, copy_bandwidth())
        for program in programs:
            program.close()
        return zero


def main():
    with_torch = has_torch(args.torch)
    if not with_torch:
        print(f"gpt2: {args.torch} has no torch and transformers, so PyTorch is not measured; give a Python that has them with --torch")
    zeros = [compare(*map(int, size.split("x")), with_torch) for size in args.sizes.split(",")]
    if args.no_compile_time:
        return
    print("zeroc")
    print(f"  GPT-2 {args.layers} x 768: {zeros[0].compile_seconds:.2f} s, peak {zeros[0].compile_peak / GIB:.2f} GiB (asked: at most 5 s)")
    with tempfile.TemporaryDirectory(prefix="zero-bench-") as folder:
        subprocess.run([sys.executable, ROOT / "models" / "gpt.py", "--layers", "96", "--hidden", "12288", "--heads", "96", "--seq", "2048",
                        "--no-weights", "-o", "175b.onnx"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        seconds, peak = measured([BIN / "zeroc", "175b.onnx", "-o", "plan.bin", "--init", "random", "--world", "64", "--stage", "3"], folder)
        size = os.path.getsize(f"{folder}/plan.bin")
    print(f"  175B, 96 layers x 12288, 64 ranks, stage 3: {seconds:.2f} s, peak {peak / GIB:.2f} GiB, plan {size / MIB:.1f} MiB (asked: at most 20 s and 2 GiB)")


if __name__ == "__main__":
    main()
