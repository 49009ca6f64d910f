"""zerorun and PyTorch on the same model in turns, so that a machine that changes its speed changes that of both."""
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
GIB = 2**30
WARM = 3  # steps of a turn that are not counted


# Runs a program and says on the last line of stderr what it took: seconds, resident kilobytes. A program started by a larger process than it is
# itself, as one that has loaded a model, is counted with the size of that one, until it begins.
LAUNCHER = """
import os, sys, time
begin = time.perf_counter()
_, status, usage = os.wait4(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0)
print(f"{chr(10)}{time.perf_counter() - begin} {usage.ru_maxrss}", file=sys.stderr)
sys.exit(abs(os.waitstatus_to_exitcode(status)))
"""


def measured(command, cwd):
    """Seconds and peak resident bytes of a program that must succeed."""
    ran = subprocess.run([sys.executable, "-S", "-E", "-c", LAUNCHER, *map(str, command)], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    *said, took = ran.stderr.splitlines()
    if ran.returncode:
        raise SystemExit(f"exit {ran.returncode} of {' '.join(map(str, command))}: {chr(10).join(said).strip()[-500:]}")
    seconds, kilobytes = took.split()
    return float(seconds), int(kilobytes) * 1024


def resident_peak():
    """Bytes that this process itself has had in memory at once."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024


def busy_elsewhere():
    """Share of this machine's CPUs that others use: measured over a second in which no program of ours computes."""
    def ticks():
        fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]
    (all0, idle0), _, (all1, idle1) = ticks(), time.sleep(1), ticks()
    return 1 - (idle1 - idle0) / max(all1 - all0, 1)


class Zero:
    """zerorun, started anew for each turn; its first steps are warm-up. `plan.bin` and `data.safetensors` are in the folder."""
    name = "zerorun"

    def __init__(self, bin, work, threads):
        self.work, self.peak, self.seconds, self.loss = work, 0, [], None
        self.command = [bin / "zerorun", "plan.bin", "--data", "data.safetensors", "--lr", "1e-4", "--threads", threads, "--metrics", "metrics.jsonl"]

    def turn(self, steps, trace=False):
        command = [*self.command, "--steps", WARM + steps]
        _, peak = measured([*command, "--trace", "trace.json"] if trace else command, self.work)
        rows = [json.loads(line) for line in (self.work / "metrics.jsonl").read_text().splitlines()]
        if not trace:
            self.peak = max(self.peak, peak)
            self.seconds += [row["seconds"] for row in rows[WARM:]]
            self.loss = rows[-1]["loss"]

    def close(self):
        pass


class Torch:
    """A peer process that waits between its turns."""

    def __init__(self, python, mode, config, *flags):
        self.name, self.peak, self.seconds, self.loss = f"torch {mode}", 0, [], None
        self.process = subprocess.Popen([str(c) for c in (python, HERE / "peer_torch.py", config, "--mode", mode, *flags)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.take(WARM)  # and compilation

    def take(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended by itself (exit {self.process.wait()})")
        return json.loads(line)

    def turn(self, steps):
        answer = self.take(steps)
        self.seconds += answer["seconds"]
        self.peak = answer["peak"]
        self.loss = self.loss or answer["loss"]  # of the first turn: zerorun begins anew at each

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def take_turns(programs, rounds, steps):
    """How busy others have kept the machine meanwhile."""
    others = []
    for _ in range(rounds):
        for program in programs:
            others.append(busy_elsewhere())
            program.turn(steps)
    return statistics.mean(others)


def has_torch(python):
    return bool(shutil.which(python)) and subprocess.run([python, "-c", "import torch, transformers"], capture_output=True).returncode == 0
