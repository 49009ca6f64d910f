"""What the end-to-end tests share: running the programs, and reporting each check as a line.

Every check prints `ok NAME` or `FAILED NAME: why`; test/run.sh counts those lines. A script that ran no check has failed.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPT = ROOT / "models" / "gpt.py"
TINY = ROOT / "models" / "tiny"


class Failure(Exception):
    """A check that does not hold; its text is the reason."""


def expect(condition, why):
    if not condition:
        raise Failure(why)


class Suite:
    def __init__(self, description):
        p = self.parser = argparse.ArgumentParser(description=description)
        p.add_argument("--bin", default=str(ROOT / "build" / "bin"), help="folder of zeroc, zerorun and zero-inspect")
        p.add_argument("--only", default="", help="run the checks whose name contains this")
        p.add_argument("--keep", help="work in this folder and leave it, instead of a temporary one")
        self.passed = self.failed = 0

    def start(self):
        self.args = self.parser.parse_args()
        self.bin = pathlib.Path(self.args.bin).resolve()
        self.folder = None if self.args.keep else tempfile.TemporaryDirectory(prefix="zero-e2e-")
        self.work = pathlib.Path(self.args.keep or self.folder.name).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        return self.args

    def check(self, name, function, *args, **kw):
        if self.args.only not in name:
            return
        begin = time.time()
        try:
            note = function(*args, **kw)
        except Failure as why:
            self.failed += 1
            print(f"FAILED {name}: {why}", flush=True)
        else:
            self.passed += 1
            print(f"ok {name} ({time.time() - begin:.1f} s{', ' + note if note else ''})", flush=True)

    def finish(self):
        if self.passed + self.failed == 0:
            print(f"FAILED {self.parser.prog}: no check was run")
            self.failed = 1
        sys.exit(1 if self.failed else 0)

    # ------------------------------------------------------------------------------------------ programs
    def run(self, command, timeout=120, check=True, env=None):
        """Runs to the end; a time-out or (with check) a non-zero exit is a failure that shows the last line of stderr."""
        command = [str(c) for c in command]
        process = subprocess.Popen(command, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   start_new_session=True, env={**os.environ, **(env or {})})
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Failure(f"{pathlib.Path(command[0]).name} still ran after {timeout} s: {' '.join(command)}")
        if check and process.returncode != 0:
            lines = (err.strip() or out.strip() or "it said nothing").splitlines()
            tail = next((line for line in lines if line.startswith(("zeroc: error:", "zerorun:", "zero-inspect:"))), lines[-1])
            raise Failure(f"exit {process.returncode} of {' '.join(command)}: {tail[:300]}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def gpt(self, name, *flags):
        """A model file of models/gpt.py in the work folder."""
        self.run([sys.executable, GPT, *flags, "-o", name])
        return self.work / name

    def tiny_data(self, model):
        """The batches of a model of models/tiny, one after the other, as MODEL.safetensors in the work folder; yields their sequence length."""
        batches = np.load(TINY / model / "batches.npz")
        steps = len({key.split("/")[0] for key in batches.files})
        stack = lambda name: np.concatenate([batches[f"{step}/{name}"] for step in range(steps)])
        save_file({"input_ids": stack("input_ids"), "labels": stack("targets")}, self.work / f"{model}.safetensors")
        return batches["0/input_ids"].shape[1]

    def zeroc(self, model, plan, *flags, **kw):
        return self.run([self.bin / "zeroc", model, "-o", plan, *flags], **kw)

    def zerorun_command(self, plan, *flags, world=1):
        command = [self.bin / "zerorun", plan, *flags]
        return command if world == 1 else [*self.mpirun(world), *command]

    @staticmethod
    def mpirun(world):
        return ["mpirun", "--oversubscribe", "--allow-run-as-root", "-np", str(world)]

    def zerorun(self, plan, *flags, world=1, **kw):
        # ranks beyond the cores yield to each other instead of spinning; each rank computes with one thread
        env = {"OMPI_MCA_mpi_yield_when_idle": "1"} if world > 1 else {}
        return self.run(self.zerorun_command(plan, *flags, world=world), env={**env, **kw.pop("env", {})}, **kw)

    def without_gpu(self, plan, model, *flags):
        """The environment in which zerorun runs a plan for cuda, made with these flags of zeroc, on a machine without one."""
        (self.work / "placed.mlir").write_text(self.run([self.bin / "zeroc", model, *flags, "--emit", "place"]).stdout)
        self.run([self.bin / "gpu-double", plan, "placed.mlir", "-o", f"{plan}.so"])
        return {"ZERO_CUDA_LIBRARIES": str(self.bin.parent / "test" / "gpu" / "fake"), "ZERORUN_CACHE": "",
                "ZERO_FAKE_KERNELS": str(self.work / f"{plan}.so")}

    def losses(self, metrics):
        rows = [json.loads(line) for line in (self.work / metrics).read_text().splitlines()]
        return [row["loss"] for row in rows if "loss" in row]


def relative(a, b):
    return abs(a - b) / max(abs(b), 1e-30)
