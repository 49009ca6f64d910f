#!/usr/bin/env python3
"""Breaks runs of zeroc and zerorun in every way a machine can, and looks whether anything is lost.

Without flags a sample of each kind (under a minute); --all is every file call of every job, 100 kills and 60 stop signals of each kind, which
takes about half an hour on two cores. A run of --all that is interrupted goes on where it was.
"""
import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import at_random
import every_call
from runs import ROOT, Broken, Fault, World, in_parallel

KILLS, STOPS = {1: 70, 2: 30}, {1: 45, 2: 15}  # cases of --all by ranks; of stops for each signal


class Results:
    """What each case has given, kept in a file that belongs to the very programs."""

    def __init__(self, work, bin):
        digest = 0
        for program in ("zerorun", "zeroc", "fault"):
            digest = zlib.crc32((bin / program).read_bytes(), digest)
        self.path = work / f"results-{digest:08x}.jsonl"
        self.known = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                row = json.loads(line)
                self.known[row["case"]] = row

    def of(self, case, work):
        """The row of a case: the known one, or that of work(), which returns (how it ended, sentence)."""
        if case in self.known:
            return self.known[case]
        row = {"case": case}
        try:
            row["how"], row["said"] = work()
        except Broken as why:
            row["how"], row["said"] = "BROKEN", str(why)
        with self.path.open("a") as out:
            out.write(json.dumps(row) + "\n")
        return row


class Suite:
    def __init__(self, args):
        self.args, self.passed, self.failed = args, 0, 0
        self.world = World(args.bin, args.work)
        self.world.work.mkdir(parents=True, exist_ok=True)
        self.results = Results(self.world.work, self.world.bin) if args.all else None
        self.table = []

    def group(self, title, cases, aim=None):
        """One line for cases [(name, work)] that are of a kind. Of a whole group at least one must have ended as `aim`: moments that all miss show nothing."""
        if self.args.only not in title:
            return
        begin = time.time()

        def one(case):
            name, work = case
            if self.results:
                return self.results.of(f"{title}: {name}", work)
            try:
                how, said = work()
            except Broken as why:
                how, said = "BROKEN", str(why)
            return {"case": name, "how": how, "said": said}

        rows = in_parallel(self.args.jobs, one, cases)
        broken = [row for row in rows if row["how"] == "BROKEN"]
        ends = collections.Counter(row["how"] for row in rows)
        self.table.append((title, len(rows), ends))
        if not rows or ends["not reached"] == len(rows): # faults of one kind are made in some of them, or none is made at all
            self.failed += 1
            print(f"FAILED faults: {title}: none of {len(rows)} cases came to its call", flush=True)
        elif self.args.all and aim and not ends[aim]:
            self.failed += 1
            print(f"FAILED faults: {title}: none of {len(rows)} was {aim}: {dict(ends)}", flush=True)
        elif broken:
            self.failed += 1
            print(f"FAILED faults: {title}: {len(broken)} of {len(rows)}, the first: {broken[0]['case']}: {broken[0]['said']}", flush=True)
        else:
            self.passed += 1
            print(f"ok faults: {title} ({', '.join(f'{n} {how}' for how, n in sorted(ends.items()))}; {time.time() - begin:.1f} s)", flush=True)

    # ------------------------------------------------------------------------------------------ kinds of cases
    def calls(self, job, offset):
        """Every file call of each rank of a job; or of a sample one of each kind, with the faults taking turns."""
        for rank, calls in enumerate(every_call.count(self.world, job)):
            by_fault = collections.defaultdict(list)
            if self.args.all:
                for call in calls:
                    for kind in call.faults():
                        by_fault[kind].append(call)
            else:
                for call in calls:
                    if (str(job), rank, call.name, call.path) in ONCE_BROKEN:
                        by_fault["EIO"].append(call)
                for i, call in enumerate({every_call.kind_of(c): c for c in calls}.values()):
                    kinds = list(call.faults())
                    if i % SAMPLE == offset % SAMPLE:
                        by_fault[kinds[(i // SAMPLE + offset) % len(kinds)]].append(call)
            where = f"{job}" + (f", rank {rank}" if job.world > 1 else "") + f", {len(calls)} file calls"
            if not self.args.all:
                mixed = [(f"{kind} at {c}", self.case(job, rank, c, kind)) for kind, some in by_fault.items() for c in some]
                self.group(f"{where}, {len(mixed)} of them", mixed)
                continue
            for kind in every_call.KINDS:
                if by_fault[kind]:
                    self.group(f"{where}, {kind}", [(f"call {c.number}, {c.name} of '{c.path}'", self.case(job, rank, c, kind)) for c in by_fault[kind]])

    def case(self, job, rank, call, kind):
        name = f"{job.name}-{job.world}-{rank}-{call.number}-{kind}"
        return lambda: every_call.outcome(self.world, job, Fault(rank, call.number, kind), name)

    def durable(self, job):
        self.group(f"{job}, order of what reaches the disk",
                   [(f"rank {rank}", lambda calls=calls, rank=rank: every_call.check_durable(calls, rank)) for rank, calls in enumerate(every_call.count(self.world, job))])

    def threads(self, job):
        """No thread to be had, whichever it is."""
        folder = self.world.fresh(job, "threads")
        self.world.run(job, folder, log=f"{folder}.log", threads=True)
        started = len(every_call.calls_of(f"{folder}.log.0", folder))
        cases = [(f"thread {k}", lambda k=k: every_call.outcome(self.world, job, Fault(0, k, "EAGAIN"), f"threads-{job.world}-{k}", True))
                 for k in range(1, started + 1)]
        self.group(f"{job}, {started} threads, EAGAIN", cases)

    def random_ends(self, job, kills, stops):
        if job.name == "checkpoints":
            self.group(f"{job}, killed at random", [(f"number {i}", lambda i=i: at_random.killed(self.world, job, i)) for i in range(kills)], "killed")
        else:
            for name in at_random.STOPS:
                self.group(f"{job}, {name} at random", [(f"number {i}", lambda i=i: at_random.stopped(self.world, job, i, name)) for i in range(stops)], "stopped")

    # ------------------------------------------------------------------------------------------
    def run(self):
        self.world.small()
        for offset, job in enumerate(list(self.world.jobs.values())):
            self.calls(job, offset)
            self.durable(job)
        self.world.large()
        for ranks in (1, 2):
            self.random_ends(self.world.jobs["checkpoints", ranks], KILLS[ranks] if self.args.all else 2, 0)
            self.random_ends(self.world.jobs["products", ranks], 0, STOPS[ranks] if self.args.all else 1)
            self.threads(self.world.jobs["products", ranks])

    def print_table(self):
        """A row for each job and rank, with the number of cases of each fault; then what is no file call."""
        rows, others = {}, []
        for title, cases, ends in self.table:
            where, _, kind = title.rpartition(", ")
            if kind in every_call.KINDS:
                counts, sums = rows.setdefault(where, ({}, collections.Counter()))
                counts[kind] = cases
                sums.update(ends)
            else:
                others.append((title, cases, ends))
        told = lambda ends: ", ".join(f"{n} {how}" for how, n in sorted(ends.items()))
        print("\n| | " + " | ".join(every_call.KINDS) + " | ended as |\n|---|" + "---|" * (len(every_call.KINDS) + 1))
        for where, (counts, sums) in rows.items():
            print(f"| {where} | " + " | ".join(str(counts.get(kind, "")) for kind in every_call.KINDS) + f" | {told(sums)} |")
        print("\n| | cases | ended as |\n|---|---|---|")
        for title, cases, ends in others:
            print(f"| {title} | {cases} | {told(ends)} |")


SAMPLE = 6  # one in so many kinds of calls

# EIO at these broke a promise once: a folder that could not be looked at was taken for a new one, and removed with what was tried in it.
ONCE_BROKEN = {("resume, 2 ranks", 0, "newfstatat", "out")}


def main():
    # A shell's background jobs ignore SIGINT, those of nohup SIGHUP, and so would every run started here.
    for name in at_random.STOPS:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--all", action="store_true", help="every case, and a table of them at the end")
    p.add_argument("--bin", default=str(ROOT / "build" / "bin"), help="folder of zeroc, zerorun and fault")
    p.add_argument("--work", default=str(ROOT / "build" / "faults"), help="where the runs are made; broken ones stay there")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time [one for each processor]")
    p.add_argument("--only", default="", help="groups whose title contains this")
    suite = Suite(p.parse_args())
    suite.run()
    if suite.args.all:
        suite.print_table()
    if suite.passed + suite.failed == 0:
        print("FAILED faults: no case was run")
        suite.failed = 1
    sys.exit(1 if suite.failed else 0)


if __name__ == "__main__":
    main()
