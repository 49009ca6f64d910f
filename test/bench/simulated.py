#!/usr/bin/env python3
"""A simulated run beside the run itself: GPT-2 124M on two ranks of one thread each, every rank on a processor of its own.

What this machine can do is measured once, in a run at stage 3 (zero-inspect --measured). With that the other plans are simulated, and run: the
stages, two micro-steps, a budget of device memory with the rest on disk, and ranks that differ: rank 1 shares its processor with another
process, which leaves it half of it. For each, seconds per step (medians) as simulated and as run, and how many times the one is the other.

usage: test/bench/simulated.py [--path DIR] [--size 4x64] [--steps 6]
"""
import argparse
import json
import os
import pathlib
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCAB, WARM, WORLD = 50257, 2, 2
p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--bin", default=str(ROOT / "build" / "bin"))
p.add_argument("--path", help="folder on the disk to use (default: the temporary folder)")
p.add_argument("--size", default="4x64", help="batch x sequence of one rank")
p.add_argument("--steps", type=int, default=6, help="steps counted, after two that are not")
args = p.parse_args()
BIN = pathlib.Path(args.bin).resolve()


def quiet(folder, *command):
    return subprocess.run([str(word) for word in command], cwd=folder, check=True, capture_output=True, text=True).stdout


def seconds(metrics):
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    metrics.unlink()
    return statistics.median(row["seconds"] for row in rows[WARM:])


def run(folder, *flags, slow=False):
    """Seconds of a step; with `slow`, rank 1 has half of its processor."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": str(WORLD), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "ZERORUN_SECRET": secrets.token_hex(16)}
    command = [BIN / "zerorun", "plan.bin", "--data", "tokens.safetensors", "--steps", WARM + args.steps, "--threads", 1, "--lr", "1e-4",
               "--metrics", "metrics.jsonl", *flags]
    other = subprocess.Popen(["taskset", "-c", "1", sys.executable, "-c", "while True: pass"]) if slow else None
    try:
        ranks = [subprocess.Popen(["taskset", "-c", str(rank), *map(str, command)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(WORLD)]
        for rank in ranks:
            said = rank.communicate()[0]
            if rank.returncode:
                raise SystemExit(f"simulated: exit {rank.returncode}: {said.strip()[-400:]}")
    finally:
        if other:
            other.kill()
            other.wait()
    return seconds(folder / "metrics.jsonl")


def main():
    batch, seq = map(int, args.size.split("x"))
    with tempfile.TemporaryDirectory(prefix="zero-bench-", dir=args.path) as name:
        folder = pathlib.Path(name)
        quiet(folder, sys.executable, ROOT / "models" / "gpt.py", "--layers", 12, "--hidden", 768, "--heads", 12, "--vocab", VOCAB, "--seq", seq,
              "--batch", batch, "--no-weights", "-o", "model.onnx")
        tokens = np.random.default_rng(0).integers(0, VOCAB, (batch * 8, seq + 1))
        save_file({"input_ids": tokens[:, :-1].copy(), "labels": tokens[:, 1:].copy()}, folder / "tokens.safetensors")

        def compile(*flags):
            quiet(folder, BIN / "zeroc", "model.onnx", "-o", "plan.bin", "--init", "random", "--clip", "never", "--world", WORLD,
                  "--machine", "machine.json", *flags)

        (folder / "machine.json").write_text("{}")
        compile("--stage", 3)
        run(folder, "--trace", "trace.json")
        machine = json.loads(quiet(folder, BIN / "zero-inspect", "plan.bin", "--measured", "trace.json"))
        half = {key: value / 2 for key, value in machine.items() if key.startswith("products") or key in ("memory", "host_memory")}
        (folder / "machine.json").write_text(json.dumps(machine))
        print(f"GPT-2 124M, {WORLD} ranks of {batch} x {seq} tokens and one thread; this machine: {json.dumps(machine)}")

        def compare(title, *flags, slow=False):
            compile(*flags)
            measured = run(folder, slow=slow)
            (folder / "cluster.json").write_text(json.dumps(machine | ({"ranks": {"1": half}} if slow else {})))
            quiet(folder, BIN / "zerorun", "plan.bin", "--simulate", "cluster.json", "--steps", WARM + args.steps, "--metrics", "metrics.jsonl")
            simulated = seconds(folder / "metrics.jsonl")
            print(f"  {title:46} simulated {simulated:6.3f} s, run {measured:6.3f} s, {measured / simulated:.2f} x", flush=True)

        for stage in (3, 2, 1, 0):
            compare(f"stage {stage}", "--stage", stage)
        compare("stage 3, two micro-steps of half", "--stage", 3, "--accumulate", 2)
        compare("stage 3, 512 MiB, the rest on disk", "--stage", 3, "--device-memory", "512M", "--tile", "auto")
        for stage in (3, 0):
            compare(f"stage {stage}, rank 1 with half a processor", "--stage", stage, slow=True)


if __name__ == "__main__":
    main()
