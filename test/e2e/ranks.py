"""Ranks started by the environment, as a launcher starts them: each a process of its own, with its own flags and its own stderr."""
import os
import random
import socket
import subprocess
import time

from harness import expect


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


def world(n):
    return [{"RANK": r, "WORLD_SIZE": n, "LOCAL_RANK": r} for r in range(n)]


def sentences(said):
    return [line for text in said for line in text.splitlines() if line.startswith("zerorun:")]


def reasons(lines):
    """Without those that leave the reason to another rank."""
    return [line for line in lines if not line.endswith(" ended the run and has said why")]


class Ranks:
    """Processes of one run, each in its own folder; all of them are gone at the end. `commands`: the command line of each, or of all."""

    def __init__(self, suite, variables, commands, port=None):
        self.suite, self.port = suite, port or free_port()
        self.processes = []
        if not isinstance(commands[0], list):
            commands = [commands] * len(variables)
        for i, (own, command) in enumerate(zip(variables, commands)):
            self.start(i, own, command)

    def start(self, i, own, command):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_", "ZERORUN_"))}
        env = {**clean, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port), **{k: str(v) for k, v in own.items()}}
        folder = self.suite.work / f"rank{i}"
        folder.mkdir(exist_ok=True)
        self.processes.append(subprocess.Popen([str(c) for c in command], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                               text=True))

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

    def await_step(self, step, metrics="metrics.jsonl"):
        """Until rank 0 has made that many steps."""
        path, until = self.suite.work / "rank0" / metrics, time.time() + 30
        while not path.exists() or path.read_text().count("\n") < step:
            expect(all(p.poll() is None for p in self.processes), "a rank ended by itself")
            expect(time.time() < until, f"no {step} steps after 30 s")
            time.sleep(0.02)
