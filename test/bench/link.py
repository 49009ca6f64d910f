#!/usr/bin/env python3
"""A slow link: GPT-2 124M at stage 3 on two ranks of one thread each, in two network namespaces joined by a veth pair that tc shapes, each plan
compiled for runs that do not clip, for its link, and for this machine as a run on the open link has shown it to be (--machine).

For each rate: seconds per step (median), against the longer of the step on the open link and what the bytes take on the link alone (asked: at most
1.15 x). Bytes alone are measured, too: the same bytes sent both ways over the shaped link.

usage: test/bench/link.py [--rates 10000,2000,1000] [--size 4x64] [--steps 5] [--zeroc FLAGS]      (root, iproute2)
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
import threading
import time

import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCAB, WARM = 50257, 2
NAMESPACES = [f"zero-link-{os.getpid()}-{r}" for r in range(2)]
ADDRESSES = ["10.83.0.1", "10.83.0.2"]
p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--bin", default=str(ROOT / "build" / "bin"))
p.add_argument("--rates", default="10000,2000,1000", help="Mbit/s, besides the open link")
p.add_argument("--size", default="4x64", help="batch x sequence of one rank")
p.add_argument("--zeroc", default="", help="more flags of zeroc")
p.add_argument("--steps", type=int, default=5, help="steps counted, after two that are not")
p.add_argument("--send", nargs=3, help=argparse.SUPPRESS)  # rank, port, bytes: one end of the measurement of the link alone
args = p.parse_args()
BIN = pathlib.Path(args.bin).resolve()


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def join():
    for name in NAMESPACES:
        ip("netns", "add", name)
    ip("link", "add", "zlink0", "netns", NAMESPACES[0], "type", "veth", "peer", "name", "zlink1", "netns", NAMESPACES[1])
    for r, name in enumerate(NAMESPACES):
        ip("-n", name, "addr", "add", f"{ADDRESSES[r]}/24", "dev", f"zlink{r}")
        ip("-n", name, "link", "set", f"zlink{r}", "up")
        ip("-n", name, "link", "set", "lo", "up")


def part():
    for name in NAMESPACES:
        subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)


def shape(mbit):
    """Both directions, as a full-duplex link has it; the buffers are those of a switch's port (1 MiB, 20 ms)."""
    for r, name in enumerate(NAMESPACES):
        subprocess.run(["tc", "-n", name, "qdisc", "replace", "dev", f"zlink{r}", "root", "tbf", "rate", f"{mbit}mbit", "burst", "1m", "latency", "20ms"], check=True)


def both(commands, cwd):
    """Runs one command in each namespace; the standard output of both."""
    environment = {"WORLD_SIZE": "2", "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": "29511", "LOCAL_RANK": "0", "ZERORUN_SECRET": secrets.token_hex(16)}
    running = [subprocess.Popen(["ip", "netns", "exec", name, *map(str, command)], cwd=cwd, env={**os.environ, **environment, "RANK": str(r)},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for r, (name, command) in enumerate(zip(NAMESPACES, commands))]
    said = [process.communicate() for process in running]
    for process, (_, error) in zip(running, said):
        if process.returncode:
            raise SystemExit(f"link: exit {process.returncode}: {error.strip()[-400:]}")
    return [out for out, _ in said]


def one_end(rank, port, size):
    """Sends `size` bytes and receives as many at once; prints the seconds that took. Rank 0 listens."""
    if rank == 0:
        with socket.create_server((ADDRESSES[0], port)) as server:
            peer = server.accept()[0]
    else:
        for _ in range(100):
            try:
                peer = socket.create_connection((ADDRESSES[0], port))
                break
            except OSError:
                time.sleep(0.05)
    block = bytes(1 << 20)

    def send():
        for begin in range(0, size, len(block)):
            peer.sendall(block[:size - begin])

    begin = time.perf_counter()
    sender = threading.Thread(target=send)
    sender.start()
    left, into = size, bytearray(1 << 20)
    while left:
        left -= peer.recv_into(into, min(left, len(into)))
    sender.join()
    print(time.perf_counter() - begin)


def alone(size, cwd):
    command = [sys.executable, __file__, "--send"]
    return max(float(out) for out in both([[*command, r, 29512, size] for r in range(2)], cwd))


def step(cwd, *flags):
    command = [BIN / "zerorun", "plan.bin", "--data", "tokens.safetensors", "--steps", WARM + args.steps, "--threads", 1, "--lr", "1e-4"]
    both([[*command, "--metrics", "metrics.jsonl", *flags]] * 2, cwd)  # rank 0 writes it
    rows = [json.loads(line) for line in (cwd / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(row["seconds"] for row in rows[WARM:])


def main():
    batch, seq = map(int, args.size.split("x"))
    with tempfile.TemporaryDirectory(prefix="zero-bench-") as name:
        folder = pathlib.Path(name)
        quiet = dict(cwd=folder, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([sys.executable, ROOT / "models" / "gpt.py", "--layers", "12", "--hidden", "768", "--heads", "12", "--vocab", str(VOCAB), "--seq", str(seq),
                        "--batch", str(batch), "--no-weights", "-o", "model.onnx"], **quiet)
        tokens = np.random.default_rng(0).integers(0, VOCAB, (batch * 8, seq + 1))
        save_file({"input_ids": tokens[:, :-1].copy(), "labels": tokens[:, 1:].copy()}, folder / "tokens.safetensors")

        inspected = lambda *flags: json.loads(subprocess.run([BIN / "zero-inspect", "plan.bin", *flags], cwd=folder, capture_output=True, check=True).stdout)

        def compiled(machine, mbit=None):
            """Bytes that a rank sends in a step of a plan for such a link."""
            (folder / "machine.json").write_text(json.dumps({**machine, **({"link": mbit * 1e6 / 8} if mbit else {})}))
            subprocess.run([BIN / "zeroc", "model.onnx", "-o", "plan.bin", "--init", "random", "--clip", "never", "--world", "2", "--stage", "3", "--machine", "machine.json", *args.zeroc.split()], **quiet)
            return inspected("--json")["communication"]["bytes_sent"]

        try:
            join()
            compiled({})
            step(folder, "--trace", "trace.json")
            machine = inspected("--measured", "trace.json")
            sent = compiled(machine)
            opened = step(folder)
            print(f"GPT-2 124M, stage 3, 2 ranks of {batch} x {seq} tokens and one thread, {sent / 1e9:.2f} GB sent by each in a step {args.zeroc}")
            print(f"  open link     {opened:6.2f} s/step", flush=True)
            for mbit in map(int, args.rates.split(",")):
                sent = compiled(machine, mbit)
                shape(mbit)
                link, seconds = alone(sent, folder), step(folder)
                print(f"  {mbit:5} Mbit/s  {seconds:6.2f} s/step, {sent / 1e9:.2f} GB sent = {seconds / max(opened, link):.2f} x the longer of the open link's step and its bytes "
                      f"alone ({link:.2f} s; asked: 1.15)", flush=True)
        finally:
            part()


if __name__ == "__main__":
    one_end(*map(int, args.send)) if args.send else main()
