#!/usr/bin/env python3
"""Ranks started by RANK, WORLD_SIZE and MASTER_ADDR in the environment: they train as those of mpirun do, and end together."""
import contextlib
import os
import signal
import subprocess
import time

import numpy as np
from safetensors.numpy import load_file, save_file

import ranks
from harness import Suite, expect
from ranks import free_port, reasons, sentences, world

suite = Suite(__doc__)
gpus = {}  # the environment of ranks on GPUs, which the stand-ins of test/gpu are here


class Ranks(ranks.Ranks):
    def __init__(self, variables, *flags, plan="2.plan"):
        command = suite.zerorun_command(f"../{plan}", "--data", "../data.safetensors", "--lr", "1e-2", "--threads", 1, *flags)
        super().__init__(suite, variables, command)


def prepare():
    suite.gpt("model.onnx", "--layers", "2", "--hidden", "24", "--heads", "3", "--vocab", "37", "--seq", "8")
    tokens = np.random.default_rng(0).integers(0, 37, (40, 9))
    save_file({"input_ids": np.ascontiguousarray(tokens[:, :8]), "labels": np.ascontiguousarray(tokens[:, 1:])}, suite.work / "data.safetensors")
    for n in (2, 4):
        suite.zeroc("model.onnx", f"{n}.plan", "-q", "--world", n, "--stage", 3)
    flags = ["-q", "--world", 4, "--stage", 3, "--target", "cuda"]
    suite.zeroc("model.onnx", "cuda.plan", *flags)
    gpus.update(suite.without_gpu("cuda.plan", "model.onnx", *flags))


def same_bits(n):
    suite.zerorun(f"{n}.plan", "--data", "data.safetensors", "--lr", "1e-2", "--threads", 1, "--steps", 5, "--clip", "0.5", "--export", "mpi.safetensors", world=n)
    with Ranks(world(n), "--steps", 5, "--clip", "0.5", "--export", suite.work / "tcp.safetensors", plan=f"{n}.plan") as ranks:
        statuses, said = ranks.end(60)
    expect(statuses == [0] * n, f"exit {statuses}: {sentences(said)}")
    mpi, tcp = load_file(suite.work / "mpi.safetensors"), load_file(suite.work / "tcp.safetensors")
    different = [name for name in mpi if mpi[name].tobytes() != tcp[name].tobytes()]
    expect(set(mpi) == set(tcp) and not different, f"{len(different)} of {len(mpi)} parameters differ, such as {min(different, default='')}")
    return f"{len(mpi)} parameters"


def killed_rank(victim, plan="4.plan"):
    (suite.work / "rank0" / "metrics.jsonl").unlink(missing_ok=True)
    variables = [{**own, **gpus} for own in world(4)] if plan == "cuda.plan" else world(4)
    with Ranks(variables, "--steps", 10_000_000, "--metrics", "metrics.jsonl", plan=plan) as ranks:
        ranks.await_step(3)
        pid = ranks.processes[victim].pid
        begin = time.time()
        ranks.processes[victim].kill()
        statuses, said = ranks.end(10)
    expect(statuses == [-signal.SIGKILL if r == victim else 1 for r in range(4)], f"exit {statuses}")
    spoken = [sentences([text]) for rank, text in enumerate(said) if rank != victim]
    expect(all(len(each) == 1 for each in spoken), f"said: {spoken}")
    why = reasons([line for each in spoken for line in each])
    expect(why and all(f"rank {victim} (process {pid} on " in line and "has ended" in line for line in why), f"said: {spoken}")
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


@contextlib.contextmanager
def stopped_rank(variables, limit, *flags, plan):
    """A run whose rank 2 is stopped: the statuses of the others when they have ended, their sentences, its process id, and how long that took.
    It is continued after the body, and ends as soon as it can."""
    (suite.work / "rank0" / "metrics.jsonl").unlink(missing_ok=True)
    with Ranks(variables, "--steps", 10_000_000, "--metrics", "metrics.jsonl", *flags, plan=plan) as run:
        run.await_step(3)
        silent, begin = run.processes.pop(2), time.time()
        try:
            silent.send_signal(signal.SIGSTOP)
            statuses, said = run.end(limit)
            yield statuses, sentences(said), silent.pid, time.time() - begin
            silent.send_signal(signal.SIGCONT)
            expect(silent.wait(timeout=5) == 1, f"the rank that was stopped ended with {silent.returncode}")
        finally:
            silent.kill()
            silent.wait()


def silent_tcp_rank():
    with stopped_rank(world(4), 12, "--timeout", 2, plan="4.plan") as (statuses, lines, pid, lasted):
        expect(statuses == [1] * 3, f"exit {statuses}: {lines}")
        for rank in (0, 1, 3):
            mine = [line for line in lines if f"rank {rank} has waited" in line]
            expect(len(mine) == 1 and f"for rank 2 (process {pid} on " in mine[0] and "which is stopped, and gives up" in mine[0], f"said: {lines}")
    return f"ended after {lasted:.1f} s"


def stopped_gpu_rank():
    """Nothing comes of the collectives of the others' GPUs: they look at the processes, and end within half a minute."""
    with stopped_rank([{**own, **gpus} for own in world(4)], 30, plan="cuda.plan") as (statuses, lines, pid, lasted):
        expect(statuses == [1] * 3, f"exit {statuses}: {lines}")
        why = reasons(lines)
        expect(why and len(lines) == 3 and all(f"rank 2 (process {pid} on " in line and "is stopped" in line for line in why), f"said: {lines}")
    return f"ended after {lasted:.1f} s"


def alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def silent_mpi_rank():
    metrics = suite.work / "silent.jsonl"
    command = suite.zerorun_command("2.plan", "--data", "data.safetensors", "--threads", 1, "--steps", 10_000_000, "--metrics", metrics,
                                    "--timeout", 2, world=2)
    process = subprocess.Popen([str(c) for c in command], cwd=suite.work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        until = time.time() + 30
        while not metrics.exists() or metrics.read_text().count("\n") < 3:
            expect(process.poll() is None and time.time() < until, "no 3 steps after 30 s")
            time.sleep(0.02)
        pids = [int(p) for p in subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()]
        rank1 = [p for p in pids if "OMPI_COMM_WORLD_RANK=1\0" in open(f"/proc/{p}/environ").read()]
        expect(len(rank1) == 1, f"ranks {pids}, of which rank 1 is {rank1}")
        begin = time.time()
        os.kill(rank1[0], signal.SIGSTOP)
        said = process.communicate(timeout=20)[1]
        lasted = time.time() - begin
    finally:
        process.kill()
    expect(process.returncode == 1, f"mpirun ended with {process.returncode}")
    # mpirun continues the stopped rank before it kills it, so that one may have its say as well.
    lines = [line for line in sentences([said]) if "rank 0 has waited" in line and "gives up" in line]
    expect(len(lines) == 1 and f"for rank 1 (process {rank1[0]} on " in lines[0], f"said: {said}")
    while alive(rank1[0]):  # mpirun kills it as the last thing it does
        expect(time.time() - begin < 20, "the stopped rank is still there")
        time.sleep(0.02)
    return f"ended after {lasted:.1f} s"


def missing_rank():
    with Ranks([{**own, "ZERORUN_START_TIMEOUT": 8} for own in world(4)[:3]], "--steps", 1, plan="4.plan") as ranks:
        statuses, said = ranks.end(20)
    expect(statuses == [1, 1, 1], f"exit {statuses}")
    first = sentences(said[:1])
    expect(len(first) == 2 and "rank 0 has waited 5 s" in first[0] and "rank 3 of 4" in first[0] and "gives up" in first[1], f"said: {first}")
    for rank in (1, 2):
        other = sentences([said[rank]])
        expect(len(other) == 2 and f"rank {rank} has waited 5 s for rank 0" in other[0] and other[1] == first[1], f"rank {rank} said: {other}")


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
    expect(all(words in line for each in spoken for line in reasons(each)), f"said: {spoken}")
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
suite.check("launch: a stopped rank ends the others, over TCP", silent_tcp_rank)
suite.check("launch: a stopped rank ends the others, with mpirun", silent_mpi_rank)
suite.check("launch: a missing rank is named and given up", missing_rank)
suite.check("launch: a missing rank 0 is named and given up", missing_first)
suite.check("launch: another WORLD_SIZE", refused, "was started with WORLD_SIZE=3, but rank 0 with WORLD_SIZE=2",
            [{"RANK": 0, "WORLD_SIZE": 2}, {"RANK": 1, "WORLD_SIZE": 3}], lines=2)
suite.check("launch: a rank too much", refused, "RANK='2' in the environment is no rank from 0 to 1", [{"RANK": 2, "WORLD_SIZE": 2}], lines=1)
suite.check("launch: a plan of another world", refused, "was compiled for 4 ranks", world(2), plan="4.plan", lines=2)
suite.check("launch: a wrong flag", refused, "--steps", world(2), flags=("--steps", "x"), lines=1)
suite.check("launch: mpirun comes before the environment", mpirun_wins)
suite.check("launch: a killed rank on a GPU ends the others", killed_rank, 2, "cuda.plan")
suite.check("launch: a stopped rank on a GPU ends the others", stopped_gpu_rank)
suite.finish()
