#!/usr/bin/env python3
"""Breaks the disk that a run keeps its state on, at random transfers, and looks whether anything is lost.

A GPT with parameters, optimizer state and activations on disk makes six steps, a checkpoint after every second one and an export, on one rank and on two at
stage 3, through io_uring and through threads. At one transfer of one rank the disk answers with an error, with too little, the file is cut short, its
folder is removed, or the ring takes no requests any more (disk_fault.cpp). Then all ranks must have ended with status 1 and a sentence of the
broken rank, unless what happened does no harm; checkpoints and results that are there must be those of the undisturbed run, byte for byte; and the
same command once more must end with the bytes of the undisturbed run.

Without flags two dozen moments drawn with a fixed seed; --moments 100 is a hundred of each rank and engine (about half an hour on two cores), and a table.
"""
import argparse
import collections
import dataclasses
import os
import pathlib
import random
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runs import ROOT, Broken, World, in_parallel, temporary, tree

# What a fault does to the run: it must end, it must not, or it depends on what was asked for next.
KINDS = {"EIO": "ends", "ENOSPC": "ends", "nothing": "ends", "part": "ends", "half": "goes on", "truncate": "either", "delete": "goes on", "ring": "ends"}
ENGINES = ("io_uring", "threads")
TIERS = [flag for what in ("params", "optimizer", "activations") for flag in (f"--offload-{what}", "disk")]


class Disks:
    def __init__(self, args):
        self.args = args
        self.world = World(args.bin, args.work)
        self.world.work.mkdir(parents=True, exist_ok=True)
        self.shim = {"LD_PRELOAD": str(self.world.bin / "disk_fault.so")}
        model = self.world.gpt("--layers", 2, "--hidden", 32, "--heads", 2, "--vocab", 96, "--seq", 16, "--batch", 1)
        base = self.world.material("offload", model, 96, *TIERS)
        flags = ["--threads", 1, "--checkpoint", "c", "--resume", "c", "--every", 2, "--keep", 9, "--steps", 6, "--export", "w.safetensors"]
        self.jobs = {world: self.world.training("offload", world, [*flags, "--disk-path", "../disk"], base) for world in (1, 2)}
        self.transfers = {(world, engine, rank): self.count(world, engine, rank) for world in (1, 2) for engine in ENGINES for rank in range(world)}

    def environment(self, engine, log, fault):
        """Of a rank; without a log its transfers are neither counted nor spoilt."""
        env = {**self.shim, "DISK_FAULT_THREADS": "1"} if engine == "threads" else dict(self.shim)
        return {**env, **({"DISK_FAULT_LOG": str(log), "DISK_FAULT": fault} if log else {})}

    def broken(self, job, engine, name, rank, fault):
        """One run, with a disk folder of its own. Returns how it ended, its folder, and whether the fault was made after how many transfers."""
        folder, disk, log = (self.world.work / "offload-cases" / f"{name}{ending}" for ending in ("", ".disk", ".log"))
        job = dataclasses.replace(job, command=[*job.command[:-1], str(disk)])
        self.world.fresh(job, folder)
        log.unlink(missing_ok=True)
        ended = self.world.run(job, folder, env_of=lambda r: self.environment(engine, log if r == rank else None, fault))
        count, done = log.read_text().split()
        shutil.rmtree(disk, ignore_errors=True)
        log.unlink()
        return job, folder, ended, int(count), done == "done"

    def count(self, world, engine, rank):
        """Transfers of a rank in the whole run."""
        job, folder, ended, count, _ = self.broken(self.jobs[world], engine, f"count-{world}-{engine}-{rank}", rank, "0:none")
        if any(ended.statuses) or tree(folder) != job.end:
            raise Broken(f"{job}, {engine}: undisturbed it ended with {ended.statuses}: {ended.errors}")
        shutil.rmtree(folder)
        return count

    def case(self, world, engine, number):
        moment = random.Random(f"{world} {engine} {number} {self.args.seed}")
        kinds = [kind for kind in KINDS if kind != "ring" or engine == "io_uring"]
        kind, rank = kinds[number % len(kinds)], moment.randrange(world)
        # The last transfers are reads alone, of the checkpoint and the export at the end.
        at = 1 + moment.randrange(self.transfers[world, engine, rank] * (10 if kind == "ENOSPC" else 19) // 20)
        job, folder, ended, _, made = self.broken(self.jobs[world], engine, f"{world}-{engine}-{number}", rank, f"{at}:{kind}")
        try:
            return f"{kind}: {self.judge(job, folder, ended, kind, rank, made)}"
        except Broken as why:
            raise Broken(f"{kind} at transfer {at} of rank {rank}: {why}; statuses {ended.statuses}, said {ended.errors} (left in {folder})")

    def judge(self, job, folder, ended, kind, rank, made):
        files = tree(folder)
        self.world.check_kept(job, files)
        if not any(ended.statuses):
            if made and KINDS[kind] == "ends":
                raise Broken("nobody noticed")
            if files != job.end:
                raise Broken("status 0, and other bytes than those of the undisturbed run")
            shutil.rmtree(folder)
            return "harmless" if made else "not reached"
        if not made or KINDS[kind] == "goes on":
            raise Broken("ended without a reason")
        if ended.statuses != [1] * job.world:
            raise Broken("ended in another way than it should")
        said = [line for error in ended.errors for line in error.splitlines()]
        said = [line for line in said if "threads read and write the disk instead" not in line]
        if not said or len(said) > job.world or not all(line.startswith("zerorun: ") for line in said):
            raise Broken("said something else than a sentence a rank")
        if not any(word in line for line in said for word in ("--disk-path", "io_uring")):
            raise Broken("no sentence is about the disk")
        if job.world == 1 and (left := [name for name, data in files.items() if temporary(name) and data]):
            raise Broken(f"left {left} behind")
        if locks := [name for name in (*files, *tree(pathlib.Path(f"{folder}.disk"))) if name.endswith(".lock")]:
            raise Broken(f"left {locks} behind")
        self.world.check_resumes(dataclasses.replace(job, command=[*job.command[:-1], f"{folder}.disk"]), folder)
        shutil.rmtree(f"{folder}.disk", ignore_errors=True)
        shutil.rmtree(folder)
        return "refused"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--moments", type=int, help="moments of each number of ranks and engine [a few]")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--bin", default=str(ROOT / "build" / "bin"))
    p.add_argument("--work", default=str(ROOT / "build" / "faults"), help="where the runs are made; broken ones stay there")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time [one for each processor]")
    args = p.parse_args()
    disks, failed, table = Disks(args), 0, []
    for world in (1, 2):
        for engine in ENGINES:
            begin, few = time.time(), len(KINDS) if world == 1 and engine == "io_uring" else 4

            def one(number, world=world, engine=engine):
                try:
                    return disks.case(world, engine, number)
                except Broken as why:
                    return f"BROKEN {why}"

            first = 0 if args.moments or world == 1 else 4 * (engine == "io_uring")  # in the suite, between them all kinds
            results = in_parallel(args.jobs, one, list(range(first, first + (args.moments or few))))
            broken = [result for result in results if result.startswith("BROKEN")]
            ends = collections.Counter(results)
            title = f"{world} rank{'s' if world > 1 else ''}, {engine}, {disks.transfers[world, engine, 0]} transfers"
            table.append((title, ends))
            failed += bool(broken)
            told = ", ".join(f"{n} {how}" for how, n in sorted(ends.items()))
            print(f"FAILED faults: disk: {title}: {len(broken)} of {len(results)}, the first: {broken[0]}" if broken else
                  f"ok faults: disk: {title} ({told}; {time.time() - begin:.1f} s)", flush=True)
    if args.moments:
        print("\n| | " + " | ".join(KINDS) + " |\n|---|" + "---|" * len(KINDS))
        for title, ends in table:
            cell = lambda kind: ", ".join(f"{n} {how.removeprefix(kind + ': ')}" for how, n in sorted(ends.items()) if how.startswith(kind + ": "))
            print(f"| {title} | " + " | ".join(cell(kind) for kind in KINDS) + " |")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
