"""Every file call of a run, and what is done at it."""
import dataclasses
import pathlib
import re
import shutil

from runs import Broken, difference, temporary, tree

KINDS = ("kill-before", "kill-after", "EIO", "ENOSPC", "full", "short")


@dataclasses.dataclass(frozen=True)
class Call:
    number: int
    name: str
    traits: str  # c: changes the disk, r: takes room, m: moves bytes
    path: str  # relative to the folder of the run
    other: str = ""  # of a rename: the old name

    def faults(self):
        """What can happen at it. Killed after a call that changes no names is as good as killed before the next one."""
        yield "kill-before"
        yield "EIO"
        if "c" in self.traits:
            yield "ENOSPC"
            if "m" not in self.traits:
                yield "kill-after"
        if "r" in self.traits:
            yield "full"
        if "m" in self.traits:
            yield "short"


def calls_of(log, folder):
    calls = []
    for line in pathlib.Path(log).read_text().splitlines():
        number, name, traits, paths = line.split(" ", 3)
        path, other = (p.removeprefix(str(folder)).lstrip("/") for p in paths.split("\t"))
        calls.append(Call(int(number), name, traits, path, other))
    return calls


def count(world, job):
    """The calls of each rank."""
    folder = world.fresh(job, f"{job.name}-{job.world}-counted")
    log = world.work / f"{job.name}-{job.world}.calls"
    ended = world.run(job, folder, log=log)
    if any(ended.statuses) or tree(folder) != job.end:
        raise Broken(f"{job} under `fault`, which does nothing: {ended}")
    counted = [calls_of(f"{log}.{rank}", folder) for rank in range(job.world)]
    if not all(counted):
        raise Broken(f"{job}: `fault` saw no file call of some rank")
    return counted


def check_durable(calls, rank):
    """What a power failure may take: whatever gets its final name has reached the disk before, and the name reaches it afterwards. Of what all
    ranks write the first one brings the names to the disk, every rank its bytes."""
    files, names = {}, {}  # changed and not yet on disk: files, and folders whose entries changed; by which call
    for call in calls:
        if call.name in ("fsync", "fdatasync"):
            files.pop(call.path, None)
            names.pop(call.path, None)
        elif call.name.startswith("rename") and not temporary(call.path):
            inside = lambda path: path == call.other or path.startswith(call.other + "/")
            for path, change in [*files.items(), *names.items()]:
                if inside(path):
                    raise Broken(f"call {call.number} renames to '{call.path}' what call {change.number}, {change.name} of '{path}', has not brought to the disk")
            names[str(pathlib.PurePath(call.path).parent).removeprefix(".")] = call
        elif "m" in call.traits and "c" in call.traits and call.path != "m.jsonl" and not call.path.endswith(".probe"):
            files[call.path] = call
        elif call.name.startswith(("open", "mkdir")) and "r" in call.traits and call.path != "m.jsonl":
            names[str(pathlib.PurePath(call.path).parent).removeprefix(".")] = call
    for path, change in [*files.items(), *(names.items() if rank == 0 else ())]:
        raise Broken(f"'{path}' is not brought to the disk after call {change.number}, {change.name} of '{change.path}'")
    return "durable", ""


def outcome(world, job, fault, name, threads=False):
    """One run with a fault, and the one after it. Returns how it ended, and a sentence if it said one."""
    folder = world.fresh(job, f"cases/{name}")
    log = f"{folder}.log"
    ended = world.run(job, folder, fault, log, threads)
    try:
        how, said = judge(world, job, fault, folder, ended, pathlib.Path(f"{log}.{fault.rank}").read_text().splitlines())
    except Broken as why:
        raise Broken(f"{why} (left in {folder})")
    shutil.rmtree(folder)
    for rank in range(job.world):
        pathlib.Path(f"{log}.{rank}").unlink(missing_ok=True)
    return how, said


def judge(world, job, fault, folder, ended, log):
    line = f"done {fault.kind} {fault.call}"
    reached, call = line in log, log[log.index(line) - 1] if line in log else ""
    said = [line for error in ended.errors for line in error.splitlines()]
    said = [line for line in said if " has waited " not in line or "gives up" in line]  # for a rank that may still come
    killed, files = fault.kind.startswith("kill"), tree(folder)
    try:
        world.check_kept(job, files)
        if not all(line.startswith(f"{job.program}: ") for line in said) or len(said) > job.world:
            raise Broken("said something else than a sentence a rank")
        if any(ended.statuses):
            if not reached:
                raise Broken("ended before the call was reached")
            if ended.statuses != [-9 if killed and rank == fault.rank else 1 for rank in range(job.world)]:
                raise Broken("ended in another way than it should")
            if not killed and not said:
                raise Broken("ended without a word")
            # Of several ranks those that still write are ended where they are.
            if job.world == 1 and not killed and not removes(call) and (left := [n for n, data in files.items() if temporary(n) and data]):
                raise Broken(f"left {left} behind")
            world.check_resumes(job, folder, lost_lines=any("cannot write --metrics" in line for line in said))
            return "killed" if killed else "refused", said[0] if said else ""
        if reached and killed:
            raise Broken("killed, yet its status is 0")
        if files == job.end:
            return "harmless" if reached else "not reached", ""
        # What could not be removed is said, but for a lock, and removed by the next run.
        if removes(call) and files.keys() ^ job.end.keys() == {"c/run.lock"}:
            world.check_resumes(job, folder)
            return "harmless", ""
        if not said or not all(n.startswith("c/step-") for n in files.keys() ^ job.end.keys()):
            raise Broken(f"status 0, but {difference(files, job.end)}")
        world.check_resumes(job, folder)
        return "said, went on", said[0]
    except Broken as why:
        raise Broken(f"{why}; at {call!r}, statuses {ended.statuses}, said {said}")


def removes(call):
    """Whether a call is part of removing something: where it fails that something may stay until the next run."""
    return re.search(r"^\d+ (unlink|unlinkat|rmdir|getdents64) ", call) is not None


def kind_of(call):
    """Calls that do the same to like files: sampled once."""
    return call.name, re.sub(r"\d+", "N", call.path)
