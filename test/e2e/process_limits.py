#!/usr/bin/env python3
"""Limits on a process, as ulimit sets them: a run ends well, or on every rank with a sentence and status 1; no signal ends it, and none hangs.

What it may map (-v), over a range below what a run needs and closely around it: resident, with everything on disk, and on two ranks. Files that are open (-n),
their size (-f), stacks (-s), locked memory (-l) and, for a user who is not root, processes and threads (-u). zeroc keeps the same promise.
"""
import os
import subprocess

import numpy as np
from safetensors.numpy import save_file

from harness import Suite, expect
from ranks import Ranks, sentences, world

DISK = [flag for what in ("params", "optimizer", "activations") for flag in (f"--offload-{what}", "disk")]
MIB, NOBODY = 1 << 20, 65534
suite = Suite(__doc__)


def limited(limit, size, command):
    """The command, with a limit of the shell's: in KiB where that is a size."""
    return ["bash", "-c", f'ulimit {limit} {size}; exec "$@"', "limited", *map(str, command)]


def train(plan, folder="out"):
    out = suite.work / folder
    return [suite.bin / "zerorun", suite.work / plan, "--data", suite.work / "data.safetensors", "--steps", 4, "--threads", 2, "--disk-path", out / "disk",
            "--checkpoint", out / "kept", "--every", 2, "--export", out / "trained.safetensors", "--metrics", out / "metrics.jsonl"]


def ends(command, ranks=1):
    """Whether it ends well: every rank, or none of them without a sentence."""
    suite.run(["bash", "-c", "rm -rf out && mkdir out"])
    with Ranks(suite, world(ranks) if ranks > 1 else [{}], command) as run:
        statuses, said = run.end(60)
    if statuses == [0] * ranks:
        return True
    shown = f"{command[2]}: statuses {statuses}, said {said}"
    for status, text in zip(statuses, said):
        # Of shared libraries that find no room the loader says so, before there is a main.
        expect(status == 1 and sentences([text]) or status == 127 and "error while loading shared libraries" in text, shown)
    return False


def addresses(plan, ranks):
    """Every 25 MiB from what no program starts in; then the least that is enough is looked for, and the last MiB below it are tried one by one."""
    def enough(mib):
        return ends(limited("-v", mib * 1024, train(plan)), ranks)
    tried = {mib: enough(mib) for mib in range(60, 260, 25)}
    expect(not tried[60] and tried[235], f"of {tried} MiB the first must be too little and the last enough")
    low, high = max(m for m in tried if not tried[m]), min(m for m in tried if tried[m])
    expect(low < high, f"{low} MiB are not enough where {high} are: {tried}")
    while high - low > 2:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    for mib in range(high - 8, high):
        enough(mib)
    return f"{high} MiB are enough"


def files(plan, ranks):
    # Where rank 0 cannot even listen the others wait for it, as for one that is started later.
    counts = [count for count in (4, 6, 8, 10, 12, 16, 20, 64) if ranks == 1 or count >= 8]
    enough = {count: ends(limited("-n", count, train(plan)), ranks) for count in counts}
    expect(not enough[counts[0]] and enough[counts[-1]], f"of {enough} files the first must be too few and the last enough")
    return f"{min(count for count in enough if enough[count])} files are enough"


def sizes():
    """Of files: what is to be written is refused at once, and nothing of it is left."""
    suite.run(["bash", "-c", "rm -rf small && mkdir small"])
    for flags in (["--checkpoint", "kept"], ["--export", "w.safetensors"], ["--disk-path", "disk"]):
        run = subprocess.run(limited("-f", 64, [suite.bin / "zerorun", suite.work / "disk.plan", "--data", suite.work / "data.safetensors", "--steps", "2", *flags]),
                             cwd=suite.work / "small", capture_output=True, text=True)
        expect(run.returncode == 1 and "File too large for the limit on the size of files (ulimit -f)" in run.stderr, f"{flags}: {run.returncode}, {run.stderr}")
    for size in (1, 64):
        run = subprocess.run(limited("-f", size, [suite.bin / "zeroc", suite.work / "model.onnx", "-o", "p.plan", "-q"]), cwd=suite.work / "small",
                             capture_output=True, text=True)
        expect(run.returncode == 1 and "(ulimit -f)" in run.stderr, f"zeroc: {run.returncode}, {run.stderr}")
    left = [path.name for path in (suite.work / "small").rglob("*") if path.is_file()]
    expect(not left, f"left {left}")
    return ""


def stacks():
    for size in (64, 128, 512, "unlimited"):
        well = ends(limited("-s", size, train("disk.plan")))
        expect(well == (size not in (64, 128)), f"with stacks of {size} KiB it ended {'well' if well else 'in a sentence'}")
    run = subprocess.run(limited("-s", 128, [suite.bin / "zeroc", suite.work / "model.onnx", "-o", suite.work / "p.plan"]), capture_output=True, text=True)
    expect(run.returncode == 1 and "(ulimit -s)" in run.stderr, f"zeroc: {run.returncode}, {run.stderr}")
    return ""


def of_nobody():
    """Locked memory and threads are not limited for root."""
    if os.getuid() != 0 or subprocess.run(["setpriv", "--reuid", str(NOBODY), "true"], capture_output=True).returncode:
        return "nothing was tried: only root can become nobody"
    folder = suite.work / "nobody"
    folder.mkdir()
    folder.chmod(0o777)
    for path in (suite.work, suite.work / "data.safetensors"):
        path.chmod(0o755)
    as_nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    ended = {}
    for limit, counts in (("-l", (0, 64, 8192)), ("-u", (1, 3, 5, 8, 32))):
        for count in counts:
            suite.run(["bash", "-c", "rm -rf nobody/*"])
            run = subprocess.run([str(c) for c in as_nobody] + limited(limit, count, train("disk.plan", "nobody")), cwd=folder, capture_output=True, text=True, timeout=60)
            ended[limit, count] = run.returncode
            expect(run.returncode == 0 or (run.returncode == 1 and sentences([run.stderr])), f"{limit} {count}: {run.returncode}, {run.stderr}")
    expect(ended["-l", 0] == 0 and ended["-u", 1] == 1, f"ended with {ended}")
    return ", ".join(f"{limit} {count}: {'well' if status == 0 else 'a sentence'}" for (limit, count), status in ended.items())


suite.start()
suite.gpt("model.onnx", "--layers", 2, "--hidden", 64, "--heads", 4, "--vocab", 512, "--seq", 64, "--batch", 2)
inputs, labels = np.random.default_rng(1).integers(0, 512, (2, 16, 64))
save_file({"input_ids": inputs, "labels": labels}, suite.work / "data.safetensors")
for name, flags in (("resident", []), ("disk", DISK), ("ranks", ["--world", 2, "--stage", 3, *DISK])):
    suite.zeroc("model.onnx", f"{name}.plan", "-q", *flags)
for plan, ranks in (("resident.plan", 1), ("disk.plan", 1), ("ranks.plan", 2)):
    what = f"{plan.removesuffix('.plan')}, {ranks} rank{'s' * (ranks > 1)}"
    suite.check(f"process limits: what is mapped, {what}", addresses, plan, ranks)
    suite.check(f"process limits: open files, {what}", files, plan, ranks)
suite.check("process limits: the size of files", sizes)
suite.check("process limits: stacks", stacks)
suite.check("process limits: of who is not root", of_nobody)
suite.finish()
