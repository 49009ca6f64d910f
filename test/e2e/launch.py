#!/usr/bin/env python3
"""Ranks started by RANK, WORLD_SIZE and MASTER_ADDR in the environment: they train as those of mpirun do, and end together."""
import os
import random
import signal
import socket
import subprocess
import time

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import Suite, expect

suite = Suite(__doc__)


def free_port():
    """Below the ports that the system gives out by itself."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Ranks:
    """Processes of one run, each with its own stderr; all of them are gone at the end."""

    def __init__(self, variables, *flags, plan="2.plan"):
        self.port = free_port()
        command = [str(c) for c in suite.zerorun_command(plan, "--data", "../data.safetensors", "--lr", "1e-2", "--threads", 1, *flags)]
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_"))}
        self.processes = []
        for i, own in enumerate(variables):
            env = {**clean, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port), **{k: str(v) for k, v in own.items()}}
            folder = suite.work / f"rank{i}"
            folder.mkdir(exist_ok=True)
            self.processes.append(subprocess.Popen(["../" + command[1] if c == command[1] else c for c in command], cwd=folder, env=env,
                                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def end(self, within):
        """Exit statuses and what each rank said on stderr."""
        until = time.time() + within
        said = []
        for rank, process in enumerate(self.processes):
            try:
                said.append(process.communicate(timeout=max(0.1, until - time.time()))[1])
            except subprocess.TimeoutExpired:
                expect(False, f"rank {rank} still ran after {within} s")
        return [p.returncode for p in self.processes], said

    def await_step(self, step):
        """Until rank 0 has made that many steps."""
        path, until = suite.work / "rank0" / "metrics.jsonl", time.time() + 30
        while not path.exists() or path.read_text().count("\n") < step:
            expect(all(p.poll() is None for p in self.processes), "a rank ended by itself")
            expect(time.time() < until, f"no {step} steps after 30 s")
            time.sleep(0.02)


def world(n):
    return [{"RANK": r, "WORLD_SIZE": n, "LOCAL_RANK": r} for r in range(n)]


def sentences(said):
    return [line for text in said for line in text.splitlines() if line.startswith("zerorun:")]


def prepare():
    suite.gpt("model.onnx", "--layers", "2", "--hidden", "24", "--heads", "3", "--vocab", "37", "--seq", "8")
    tokens = np.random.default_rng(0).integers(0, 37, (40, 9))
    save_file({"input_ids": np.ascontiguousarray(tokens[:, :8]), "labels": np.ascontiguousarray(tokens[:, 1:])}, suite.work / "data.safetensors")
    for n in (2, 4):
        suite.zeroc("model.onnx", f"{n}.plan", "-q", "--world", n, "--stage", 3)


def same_bits(n):
    suite.zerorun(f"{n}.plan", "--data", "data.safetensors", "--lr", "1e-2", "--threads", 1, "--steps", 5, "--clip", "0.5", "--export", "mpi.safetensors", world=n)
    with Ranks(world(n), "--steps", 5, "--clip", "0.5", "--export", suite.work / "tcp.safetensors", plan=f"{n}.plan") as ranks:
        statuses, said = ranks.end(60)
    expect(statuses == [0] * n, f"exit {statuses}: {sentences(said)}")
    mpi, tcp = load_file(suite.work / "mpi.safetensors"), load_file(suite.work / "tcp.safetensors")
    different = [name for name in mpi if mpi[name].tobytes() != tcp[name].tobytes()]
    expect(set(mpi) == set(tcp) and not different, f"{len(different)} of {len(mpi)} parameters differ, such as {min(different, default='')}")
    return f"{len(mpi)} parameters"


def killed_rank(victim):
    (suite.work / "rank0" / "metrics.jsonl").unlink(missing_ok=True)
    with Ranks(world(4), "--steps", 10_000_000, "--metrics", "metrics.jsonl", plan="4.plan") as ranks:
        ranks.await_step(3)
        pid = ranks.processes[victim].pid
        begin = time.time()
        ranks.processes[victim].kill()
        statuses, said = ranks.end(10)
    expect(statuses == [-signal.SIGKILL if r == victim else 1 for r in range(4)], f"exit {statuses}")
    lines = sentences(said)
    expect(len(lines) == 1 and f"rank {victim} (process {pid} on " in lines[0] and "has ended" in lines[0], f"said: {lines}")
    return f"ended after {time.time() - begin:.1f} s"


def stopped_by_signal():
    """Ctrl-C reaches one rank only; all stop after the same step, with a checkpoint."""
    (suite.work / "rank0" / "metrics.jsonl").unlink(missing_ok=True)
    with Ranks(world(2), "--steps", 10_000_000, "--metrics", "metrics.jsonl", "--checkpoint", suite.work / "saved") as ranks:
        ranks.await_step(3)
        ranks.processes[1].send_signal(signal.SIGINT)
        statuses, said = ranks.end(20)
    expect(statuses == [130, 130], f"exit {statuses}: {sentences(said)}")
    steps = (suite.work / "rank0" / "metrics.jsonl").read_text().count("\n")
    expect((suite.work / "saved" / f"step-{steps}" / "index.json").exists(), f"no checkpoint of step {steps}")


def missing_rank():
    with Ranks([{**own, "ZERORUN_START_TIMEOUT": 6} for own in world(4)[:3]], "--steps", 1, plan="4.plan") as ranks:
        statuses, said = ranks.end(20)
    expect(statuses == [1, 1, 1], f"exit {statuses}")
    first = sentences(said[:1])
    expect(len(first) == 2 and "rank 0 has waited 5 s" in first[0] and "rank 3 of 4" in first[0] and "gives up" in first[1], f"said: {first}")
    expect(sentences(said[1:]) == [first[1]] * 2, f"the others said: {sentences(said[1:])}")


def missing_first():
    with Ranks([{**world(2)[1], "ZERORUN_START_TIMEOUT": 2}], "--steps", 1) as ranks:
        statuses, said = ranks.end(20)
        port = ranks.port
    lines = sentences(said)
    expect(statuses == [1] and len(lines) == 1 and f"rank 1 has waited 2 s for rank 0 at 127.0.0.1:{port}" in lines[0], f"exit {statuses}: {lines}")


def refused(words, variables, flags=("--steps", 1), plan="2.plan", lines=None):
    with Ranks(variables, *flags, plan=plan) as ranks:
        statuses, said = ranks.end(20)
    expect(all(statuses) and statuses == [1] * len(statuses), f"exit {statuses}: {said}")
    spoken = [sentences([text]) for text in said]
    expect(all(len(each) <= 1 for each in spoken) and any(spoken), f"said: {spoken}")
    expect(all(words in line for each in spoken for line in each), f"said: {spoken}")
    if lines is not None:
        expect(sum(map(len, spoken)) == lines, f"{lines} sentences were expected: {spoken}")


def mpirun_wins():
    env = {"WORLD_SIZE": "7", "RANK": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    suite.zerorun("2.plan", "--data", "data.safetensors", "--steps", 1, "--threads", 1, world=2, env=env, timeout=30)


suite.start()
prepare()
suite.check("launch: 2 ranks by environment have the bits of mpirun", same_bits, 2)
suite.check("launch: 4 ranks by environment have the bits of mpirun", same_bits, 4)
suite.check("launch: a killed rank ends the others", killed_rank, 2)
suite.check("launch: the end of rank 0 ends the others", killed_rank, 0)
suite.check("launch: a signal to one rank stops all", stopped_by_signal)
suite.check("launch: a missing rank is named and given up", missing_rank)
suite.check("launch: a missing rank 0 is named and given up", missing_first)
suite.check("launch: another WORLD_SIZE", refused, "was started with WORLD_SIZE=3, but rank 0 with WORLD_SIZE=2",
            [{"RANK": 0, "WORLD_SIZE": 2}, {"RANK": 1, "WORLD_SIZE": 3}], lines=2)
suite.check("launch: a rank too much", refused, "RANK='2' in the environment is no rank from 0 to 1", [{"RANK": 2, "WORLD_SIZE": 2}], lines=1)
suite.check("launch: a plan of another world", refused, "was compiled for 4 ranks", world(2), plan="4.plan", lines=1)
suite.check("launch: a wrong flag", refused, "--steps", world(2), flags=("--steps", "x"), lines=1)
suite.check("launch: mpirun comes before the environment", mpirun_wins)
suite.finish()
