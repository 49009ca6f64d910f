#!/usr/bin/env python3
"""Checkpoints: a run killed after one, or stopped anywhere, and resumed ends with the bits of a run never stopped; another world and stage may resume it too.

usage: resume.py [--stops N]     --stops: so many runs are stopped at random moments by each of the four signals (60 take some minutes)
"""
import os
import random
import shutil
import signal
import subprocess
import time

from safetensors.numpy import load_file

from harness import TINY, Failure, Suite, expect, relative

STEPS, EVERY = 20, 8
suite = Suite(__doc__)


def plan(world, stage, accumulate):
    name = f"{world}-{stage}.plan"
    if not (suite.work / name).exists():
        suite.zeroc(TINY / "gpt2" / "dynamo_sdpa_dyn.onnx", name, "--bind", "batch=1,seq=64", "--world", world, "--stage", stage,
                    "--accumulate", accumulate)
    return name


def flags(name, steps=STEPS):
    return ["--data", "gpt2.safetensors", "--steps", steps, "--lr", "1e-3", "--threads", 1, "--metrics", f"{name}.jsonl"]


def straight(world, stage, accumulate):
    """The run that nothing stops; made once."""
    name = f"straight-{world}-{stage}"
    if not (suite.work / f"{name}-final.safetensors").exists():
        suite.zerorun(plan(world, stage, accumulate), *flags(name), "--export", f"{name}-final.safetensors", world=world)
    return name


def children_of(process):
    """mpirun puts ranks into process groups of their own."""
    return [int(pid) for pid in subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()]


def kill_after_checkpoint(world, stage, accumulate, folder):
    """Starts a run that would go on for long, and SIGKILLs every process of it a few steps past its first checkpoint."""
    metrics = suite.work / f"{folder}.jsonl"
    command = suite.zerorun_command(plan(world, stage, accumulate), *flags(folder, 100_000), "--checkpoint", folder, "--every", EVERY, world=world)
    process = subprocess.Popen([str(c) for c in command], cwd=suite.work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    children = []
    try:
        begin = time.time()
        while not metrics.exists() or metrics.read_text().count("\n") < EVERY + 3:
            if metrics.exists() and not children:  # beforehand: while they are looked for the run goes on
                children = children_of(process)
            if process.poll() is not None:
                raise Failure(f"the run ended by itself: {process.stderr.read().decode()[-300:]}")
            if time.time() - begin > 60:
                raise Failure(f"no {EVERY + 3} lines of metrics after 60 s")
            time.sleep(0.001)
    finally:
        for pid in [*(children or children_of(process)), process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait()


def killed(world, stage, accumulate):
    reference, folder = straight(world, stage, accumulate), f"killed-{world}-{stage}"
    kill_after_checkpoint(world, stage, accumulate, folder)
    name = f"resumed-{world}-{stage}"
    suite.zerorun(plan(world, stage, accumulate), *flags(name), "--resume", folder, "--export", f"{name}-final.safetensors", world=world)
    tail, whole = suite.losses(f"{name}.jsonl"), suite.losses(f"{reference}.jsonl")
    expect(0 < len(tail) < STEPS, f"the resumed run took {len(tail)} steps of {STEPS}")
    expect((STEPS - len(tail)) % EVERY == 0, f"it resumed after step {STEPS - len(tail)}, where no checkpoint was due")
    expect(tail == whole[-len(tail):], f"losses after resuming differ: {tail[0]} and {whole[-len(tail)]}")
    one, two = load_file(suite.work / f"{reference}-final.safetensors"), load_file(suite.work / f"{name}-final.safetensors")
    different = [n for n in one if one[n].tobytes() != two[n].tobytes()]
    expect(set(one) == set(two) and not different, f"{len(different)} of {len(one)} parameters differ from the run never stopped")
    return f"resumed after step {STEPS - len(tail)}"


def other_world():
    """2 ranks at stage 3, then 4 ranks at stage 1, the same global batch."""
    reference = straight(2, 3, 2)
    suite.zerorun(plan(2, 3, 2), *flags("half", STEPS // 2), "--checkpoint", "moved", "--every", STEPS // 2, world=2)
    suite.zerorun(plan(4, 1, 1), *flags("moved-on"), "--resume", "moved", world=4)
    tail, whole = suite.losses("moved-on.jsonl"), suite.losses(f"{reference}.jsonl")
    expect(len(tail) == STEPS - STEPS // 2, f"the resumed run took {len(tail)} steps, not {STEPS - STEPS // 2}")
    far = max(relative(x, y) for x, y in zip(tail, whole[-len(tail):]))
    expect(far <= 1e-4, f"a loss is off by {far:.1e} relative")
    return f"losses within {far:.0e}"


def file_of_another_step(pipe=False):
    """Whole by itself, or something that cannot be read at all: the checkpoint before is taken."""
    folder = "piped" if pipe else "mixed"
    suite.zerorun(plan(2, 3, 2), *flags(folder), "--checkpoint", folder, "--every", EVERY, world=2)
    older, newer = (suite.work / folder / f"step-{step}" / "rank-1.safetensors" for step in (STEPS - STEPS % EVERY, STEPS))
    newer.unlink()
    if pipe:
        os.mkfifo(newer)
    else:
        shutil.copy(older, newer)
    result = suite.zerorun(plan(2, 3, 2), *flags(folder, STEPS + 1), "--resume", folder, world=2, timeout=60)
    words = "is no regular file" if pipe else "is damaged, or of another step or run"
    expect(f"rank-1.safetensors' {words}" in result.stderr and f"the run goes on from '{folder}/{older.parent.name}'" in result.stderr, f"said: {result.stderr[-300:]}")


def nothing_there():
    result = suite.zerorun(plan(1, 0, 4), *flags("nothing"), "--resume", "no-such-folder", check=False)
    expect(result.returncode == 1 and "no-such-folder" in result.stderr, f"exit {result.returncode}: {result.stderr[-200:]}")


def stopped_in_products(stops):
    """A model large enough that a thread is inside the library of products most of the time: that runs on a stack of its own, where nothing may interrupt it."""
    suite.gpt("wide.onnx", "--layers", 2, "--hidden", 256, "--heads", 4, "--vocab", 256, "--seq", 64, "--batch", 8)
    suite.zeroc("wide.onnx", "wide.plan", "-q")
    (suite.work / "text.txt").write_bytes(bytes(range(256)) * 64)
    run = [suite.bin / "zerorun", "wide.plan", "--data", "text.txt", "--lr", "1e-3", "--threads", "2"]
    rng = random.Random(0)
    for i in range(stops):
        number = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1][i % 4]
        shutil.rmtree(suite.work / "stops", ignore_errors=True)
        metrics = suite.work / "stops.jsonl"
        metrics.unlink(missing_ok=True)
        command = [*map(str, run), "--steps", "100000", "--checkpoint", "stops", "--resume", "stops", "--metrics", metrics.name]
        process = subprocess.Popen(command, cwd=suite.work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and (not metrics.exists() or not metrics.stat().st_size):
            time.sleep(0.001)
        time.sleep(rng.random() / 4)
        process.send_signal(number)
        if i % 2:  # as timeout does: to the process, and to its group
            time.sleep(rng.random() / 2000)
            process.send_signal(number)
        error = process.communicate(timeout=60)[1]
        expect(process.returncode == 128 + number, f"stop {i}: exit {process.returncode}: {error[-300:]}")
        steps = len(suite.losses(metrics.name))
        expect((suite.work / "stops" / f"step-{steps}" / "index.json").exists(), f"stop {i}: no checkpoint of step {steps}")
    suite.run([*run, "--steps", steps + 3, "--resume", "stops", "--metrics", metrics.name])
    suite.run([*run, "--steps", steps + 3, "--metrics", "through.jsonl"])
    expect(suite.losses(metrics.name) == suite.losses("through.jsonl"), "the resumed run differs from the one that was not stopped")
    return f"{stops} stops"


def what_stays():
    """A resumed run keeps as many checkpoints as the one before; where there is nothing to resume, the metrics that are there stay; and other data is said."""
    text = suite.work / "grows.txt"
    text.write_bytes(bytes(range(64)) * 40)
    run = lambda steps, *more: suite.run([suite.bin / "zerorun", plan(1, 0, 4), "--data", text.name, "--steps", steps, "--checkpoint", "kept", "--metrics", "kept.jsonl", *more]).stdout
    run(5, "--every", 1, "--keep", 4)
    text.write_bytes(text.read_bytes() * 2)
    said = run(6, "--resume", "kept")
    expect("the number of samples in --data is " in said and "--keep is" not in said and "in a step" not in said, said)
    left = sorted(path.name for path in (suite.work / "kept").iterdir())
    expect(left == ["step-3", "step-4", "step-5", "step-6"], f"left: {left}")
    before = (suite.work / "kept.jsonl").read_bytes()
    (suite.work / "kept").rename(suite.work / "elsewhere")  # as if a disk were not mounted
    said = run(1, "--resume", "kept")
    expect("no checkpoint in kept yet" in said and "what kept.jsonl held is in kept.jsonl.1 now" in said, said)
    expect((suite.work / "kept.jsonl.1").read_bytes() == before and len(suite.losses("kept.jsonl")) == 1, "metrics were lost")
    suite.run([suite.bin / "zerorun", plan(1, 0, 4), "--data", text.name, "--steps", 0, "--metrics", "kept.jsonl.1"])
    expect((suite.work / "kept.jsonl.1").read_bytes() == before, "a run of no steps has changed metrics")


suite.parser.add_argument("--stops", type=int, default=1)
suite.start()
suite.tiny_data("gpt2")
suite.check("resume: stopped inside products", stopped_in_products, 4 * suite.args.stops)
suite.check("resume: killed and resumed, 1 rank, stage 0", killed, 1, 0, 4)
suite.check("resume: killed and resumed, 2 ranks, stage 3", killed, 2, 3, 2)
suite.check("resume: 2 ranks at stage 3 resumed by 4 ranks at stage 1", other_world)
suite.check("resume: a checkpoint with a file of another step", file_of_another_step)
suite.check("resume: a checkpoint with a pipe as a file", file_of_another_step, True)
suite.check("resume: a checkpoint that is not there", nothing_there)
suite.check("resume: what stays, and what is said of other data", what_stays)
suite.finish()
