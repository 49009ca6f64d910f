"""Runs to break: models, plans and data in a work folder, jobs with the bytes each must end with, and one run of a job with a fault in it."""
import dataclasses
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "e2e"))
from ranks import free_port  # noqa: E402

GIVE_UP = 120  # seconds after which a run counts as hanging


class Broken(Exception):
    """What must not happen has happened; the text says what."""


@dataclasses.dataclass
class Fault:
    rank: int
    call: int  # of that rank's file calls, from 1
    kind: str  # as `fault --do` takes it


@dataclasses.dataclass
class Job:
    """A command line, the folder it starts in, and what must be there at its end."""
    name: str
    world: int
    command: list  # a program of ours and its flags, the same for every rank
    begin: pathlib.Path
    end: dict = None  # tree of the undisturbed run
    whole: dict = dataclasses.field(default_factory=dict)  # the checkpoints that are known: step -> files
    seconds: float = 0.0

    @property
    def program(self):
        return self.command[0]

    def __str__(self):
        return self.name if self.program == "zeroc" else f"{self.name}, {self.world} rank{'s' if self.world > 1 else ''}"


@dataclasses.dataclass
class Ended:
    """How the processes of a run ended: statuses as Popen gives them (-9: killed), and what each said on stderr."""
    statuses: list
    errors: list


def tree(folder):
    """Files by name. What holds times is reduced to what does not: metrics to their numbers of training, a trace to its being whole."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            continue
        name, data = str(path.relative_to(folder)), path.read_bytes()
        try:
            if name == "m.jsonl":
                data = [[json.loads(line).get(key) for key in ("step", "loss", "lr", "grad_norm")] for line in data.splitlines()]
            elif name == "t.json":
                data = isinstance(json.loads(data), list)
        except json.JSONDecodeError:
            pass  # half a line: left as it is, and equal to nothing
        files[name] = data
    return files


def checkpoints(files):
    """The checkpoints of a tree that claim to be whole: step -> files."""
    found = {}
    for name, data in files.items():
        parts = pathlib.PurePath(name).parts
        if len(parts) == 3 and parts[0] == "c" and parts[1].startswith("step-") and parts[1][5:].isdigit():
            found.setdefault(int(parts[1][5:]), {})[parts[2]] = data
    return {step: held for step, held in found.items() if "index.json" in held}


def difference(one, two):
    names = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
    return ", ".join(f"'{name}' {'is not there' if name not in one else 'should not be there' if name not in two else 'differs'}" for name in names[:4])


def temporary(name):
    return any(ending in name for ending in (".partial", ".removed", ".probe"))


def bigrams():
    """The least model that has what files know of: weights outside the model, a tied transposed copy, a second parameter. A larger one makes the
    same file calls more often."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    embedding = numpy.random.default_rng(1).normal(0, 0.1, (8, 4)).astype(numpy.float32)
    weights = {"embedding": embedding, "head": numpy.ascontiguousarray(embedding.T), "bias": numpy.linspace(-0.1, 0.1, 8, dtype=numpy.float32)}
    nodes = [helper.make_node("Gather", ["embedding", "input_ids"], ["embedded"]),
             helper.make_node("MatMul", ["embedded", "head"], ["product"]),
             helper.make_node("Add", ["product", "bias"], ["logits"])]
    graph = helper.make_graph(nodes, "bigrams", [helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, [2, 4])],
                              [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, [2, 4, 8])],
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class World:
    def __init__(self, bin, work):
        self.bin, self.work = pathlib.Path(bin).resolve(), pathlib.Path(work).resolve()
        self.jobs = {}

    # ------------------------------------------------------------------------------------------ what is run
    def tool(self, *command, cwd):
        result = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True)
        if result.returncode:
            raise Broken(f"{' '.join(map(str, command))}: {result.stderr.strip()[-300:]}")

    def material(self, name, model, vocabulary, *flags):
        """A folder with a model, its weights beside it, a stream of tokens, and plans for one rank and two, made with these flags."""
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        onnx.save(model, folder / "model.onnx", save_as_external_data=True, location="model.data", size_threshold=0)
        numbers = random.Random(1)
        (folder / "data.bin").write_bytes(b"".join(numbers.randrange(vocabulary).to_bytes(2, "little") for _ in range(4000)))
        for world in (1, 2):
            self.tool(self.bin / "zeroc", "-q", "model.onnx", "-o", f"{world}.plan", "--world", world, "--stage", 3 if world > 1 else 0, *flags, cwd=folder)
        return folder

    def gpt(self, *flags):
        path = self.work / "gpt.onnx"
        self.tool(sys.executable, ROOT / "models" / "gpt.py", *flags, "-o", path, cwd=self.work)
        return onnx.load(path)

    def training(self, name, world, flags, begin):
        return self.undisturbed(Job(name, world, ["zerorun", f"{world}.plan", "--data", "data.bin", "--lr", "1e-2", *flags], begin))

    def undisturbed(self, job):
        """Runs it twice, for the bytes it must end with and the seconds it takes."""
        for name in (f"{job.name}-{job.world}-again", f"{job.name}-{job.world}-undisturbed"):
            folder = self.fresh(job, name)
            start = time.time()
            ended = self.run(job, folder)
            job.seconds = time.time() - start
            if any(ended.statuses):
                raise Broken(f"{job} undisturbed ended with {ended.statuses}: {' '.join(ended.errors).strip()[-300:]}")
            before, job.end = job.end, tree(folder)
        if before != job.end:
            raise Broken(f"{job} undisturbed ends with other bytes the second time: {difference(job.end, before)}")
        job.whole = {**checkpoints(tree(job.begin)), **checkpoints(job.end)}
        return job

    def learn(self, job, step):
        """Adds a checkpoint to those known that the job makes and removes again: it is killed in between."""
        folder, log = self.fresh(job, f"{job.name}-{job.world}-learned"), self.work / "learned"
        self.run(job, folder, log=log)
        for line in pathlib.Path(f"{log}.0").read_text().splitlines():
            number, name, _, paths = line.split(" ", 3)
            if name == "rename" and paths.startswith(f"{folder}/c/step-{step}\t"):
                folder = self.fresh(job, f"{job.name}-{job.world}-learned")
                self.run(job, folder, Fault(0, int(number), "kill-after"), log)
                job.whole[step] = checkpoints(tree(folder))[step]
                return
        raise Broken(f"{job} makes no checkpoint of step {step}")

    def small(self):
        """Jobs of which every file call is looked at."""
        base = self.material("small", bigrams(), 8)
        (base / "out").mkdir()
        (base / "w.safetensors").write_bytes(b"the result of an earlier run")
        go_on = ["--threads", 1, "--checkpoint", "c", "--resume", "c", "--every", 2, "--keep", 1, "--metrics", "m.jsonl"]
        for world in (1, 2):
            self.training("half", world, [*go_on, "--steps", 2], base)
            middle = self.work / f"half-{world}-undisturbed"
            train = self.training("train", world, [*go_on, "--steps", 4, "--export", "w.safetensors"], base)
            resume = self.training("resume", world, [*go_on, "--steps", 4, "--export", "out/model.onnx"], middle)
            results = self.training("results", world, ["--threads", 1, "--steps", 1, "--export", "w.safetensors", "--gradients", "g.safetensors",
                                                       "--trace", "t.json", "--metrics", "m.jsonl"], base)
            self.learn(train, 2)
            for job in (train, resume, results):
                self.jobs[job.name, world] = job

        self.jobs["compile", 1] = self.undisturbed(Job("compile", 1, ["zeroc", "-q", "model.onnx", "-o", "1.plan", "--stage", 0], base))

    def large(self):
        """A job that spends its time in products, and one that spends it in checkpoints."""
        base = self.material("large", self.gpt("--layers", 2, "--hidden", 256, "--heads", 4, "--vocab", 512, "--seq", 64, "--batch", 4), 512)
        for world in (1, 2):
            for name, flags in (("products", []), ("checkpoints", ["--every", 1])):
                self.jobs[name, world] = self.training(name, world, ["--threads", 2 if world == 1 else 1, "--checkpoint", "c", "--resume", "c", "--keep", 1,
                                                                     "--metrics", "m.jsonl", "--steps", 6, *flags], base)

    # ------------------------------------------------------------------------------------------ one run
    def fresh(self, job, name):
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(job.begin, folder)
        return folder

    def start(self, job, folder, fault=None, log=None, threads=False, env_of=lambda rank: {}):
        """Starts the ranks; several find each other over TCP, so that each is a child of ours. With a log their file calls are counted. `env_of`
        gives what a rank has in its environment beside ours."""
        env = dict(os.environ)
        if job.begin.name != "large":
            env["DNNL_MAX_CPU_ISA"] = "SSE41"  # otherwise the product library spends most of such a run in making code
        if job.world > 1:
            env.update(WORLD_SIZE=str(job.world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), ZERORUN_SECRET="a secret that is known to a test",
                       ZERORUN_START_TIMEOUT="20")  # where one ends before it has met the others, nobody but this tells them
        processes = []
        for rank in range(job.world):
            command = [self.bin / job.program, *job.command[1:]]
            if log and (fault is None or fault.rank == rank):
                at = ["--at", fault.call, "--do", fault.kind] if fault else []
                counted = ["--threads"] if threads else ["--under", folder]
                command = [self.bin / "fault", *counted, "--log", f"{log}.{rank}", *at, "--", *command]
            with open(f"{folder}.err{rank}", "wb") as err:
                processes.append(subprocess.Popen([str(c) for c in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                  stderr=err, env={**env, **({"RANK": str(rank)} if job.world > 1 else {}), **env_of(rank)}))
        return processes

    def finish(self, folder, processes):
        limit = time.time() + GIVE_UP
        try:
            for process in processes:
                process.wait(max(limit - time.time(), 0.1))
        except subprocess.TimeoutExpired:
            raise Broken(f"still ran after {GIVE_UP} s")
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        errors = [pathlib.Path(f"{folder}.err{rank}").read_text(errors="replace") for rank in range(len(processes))]
        for rank in range(len(processes)):
            os.unlink(f"{folder}.err{rank}")
        return Ended([process.returncode for process in processes], errors)

    def run(self, job, folder, fault=None, log=None, threads=False, env_of=lambda rank: {}):
        return self.finish(folder, self.start(job, folder, fault, log, threads, env_of))

    # ------------------------------------------------------------------------------------------ what must hold
    def check_kept(self, job, files):
        """Whatever ended a run: what stands under a final name is the old or the new, and whole."""
        before = tree(job.begin)
        for step, held in checkpoints(files).items():
            if step in job.whole and held != job.whole[step]:
                raise Broken(f"the checkpoint of step {step} claims to be whole, and is not: {difference(held, job.whole[step])}")
        for name in before:
            if name not in files and not name.startswith("c/"):
                raise Broken(f"'{name}' is gone")
        for name, data in files.items():
            if temporary(name) or name.startswith("c/") or name == "m.jsonl" or data in (before.get(name), job.end.get(name)):
                continue
            raise Broken(f"'{name}' is neither what was there before nor what the run makes")

    def check_resumes(self, job, folder, lost_lines=False):
        """The same command once more ends with the bytes of the run that nothing disturbed. Lines of metrics that could not be written, which
        was said, are lost; those of a run that had no checkpoint yet are kept beside the new ones."""
        metrics, kept = folder / "m.jsonl", {}
        if "--resume" in job.command and not checkpoints(tree(folder)) and metrics.exists() and metrics.stat().st_size:
            kept["m.jsonl.1"] = metrics.read_bytes()
        ended = self.run(job, folder)
        if any(ended.statuses):
            raise Broken(f"the run after it ended with {ended.statuses}: {' '.join(ended.errors).strip()[-300:]}")
        found = tree(folder)
        if lost_lines:
            found["m.jsonl"] = job.end["m.jsonl"]
        if found != (end := job.end | kept):
            raise Broken(f"after going on: {difference(found, end)}")


def in_parallel(count, work, items):
    """work(item) for all, on `count` threads; results in order of the items."""
    results, left, lock = [None] * len(items), iter(enumerate(items)), threading.Lock()

    def worker():
        while True:
            with lock:
                index, item = next(left, (None, None))
            if index is None:
                return
            results[index] = work(item)

    threads = [threading.Thread(target=worker) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
