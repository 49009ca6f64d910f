#!/usr/bin/env python3
"""Plans on a device that completes operations in any order their waits allow: the bits of the cpu, and others once a wait is missing."""
import numpy as np
from safetensors.numpy import load_file

from harness import Failure, Suite, expect

suite = Suite(__doc__)
STEPS = 3
AWAY = ("--offload-params", "host", "--offload-optimizer", "disk", "--offload-activations", "disk")


def plan(name, *flags):
    """A model of two layers, and ids for it."""
    if not (suite.work / "gpt.onnx").exists():
        suite.gpt("gpt.onnx", "--layers", 2, "--hidden", 16, "--heads", 2, "--vocab", 32, "--seq", 8, "--batch", 2)
        np.random.default_rng(1).integers(0, 32, 2000).astype(np.uint16).tofile(suite.work / "ids.bin")
    suite.zeroc("gpt.onnx", name, "-q", *flags)
    return suite.work / name


def virtual(compiled, world, seed, *wait, check=True):
    """The trained weights, or nothing if the run has failed."""
    out = suite.work / "virtual.safetensors"
    out.unlink(missing_ok=True)
    command = [suite.bin / "virtual_run", compiled, "ids.bin", STEPS, out, seed, *wait]
    done = suite.run(command if world == 1 else [*suite.mpirun(world), *command], check=check)
    return done, load_file(out) if done.returncode == 0 else None


def same(a, b):
    return a is not None and a.keys() == b.keys() and all(a[k].tobytes() == b[k].tobytes() for k in a)


def expected(compiled, world, *flags):
    out = suite.work / "cpu.safetensors"
    suite.run(suite.zerorun_command(compiled, "--disk-path", "disk", "--data", "ids.bin", "--steps", STEPS, "--lr", "1e-2", "--threads", 1, "--export", out, *flags, world=world))
    return load_file(out)


def any_order(world, *flags):
    compiled = plan(f"order{world}.bin", "--world", world, *flags)
    weights = expected(compiled, world)
    for seed in range(3):
        expect(same(virtual(compiled, world, seed)[1], weights), f"seed {seed} gives other weights")


def drained(world, *flags):
    """Steps that do not run on into each other leave the same bits."""
    compiled = plan(f"drained{world}.bin", "--world", world, *flags)
    expect(same(expected(compiled, world, "--drain"), expected(compiled, world)), "--drain gives other weights")


def missing_waits(kind, world, *flags):
    """Each wait of a step taken away: some order gives other weights, or numbers that are none."""
    compiled = plan("waits.bin", "--world", world, *flags)
    weights, looked = expected(compiled, world), 0
    expect(same(virtual(compiled, world, 0)[1], weights), "with all of its waits the plan gives other weights")
    for wait in range(1000):
        for seed in range(30):
            done, found = virtual(compiled, world, seed, kind, wait, check=False)
            if done.returncode == 3 or not same(found, weights):
                expect(done.returncode in (0, 3) or "virtual_run: " in done.stderr, f"wait {wait}: exit {done.returncode}: {done.stderr[-200:]}")
                break
        else:
            raise Failure(f"without wait {wait} nothing changes: {done.stdout.splitlines()[0]}")
        if done.returncode == 3:
            break
        looked += 1
    else:
        raise Failure("its waits come to no end")
    expect(looked >= (4 if kind == "own" else 1), f"only {looked} waits")
    return f"{looked} waits"


suite.start()
suite.check("any order of one rank's operations", any_order, 1)
suite.check("any order of two ranks' operations at stage 3", any_order, 2, "--stage", 3, "--accumulate", 2)
suite.check("any order of operations with state on host and disk", any_order, 1, *AWAY)
suite.check("any order of two ranks' micro-steps with state on disk", any_order, 2, "--stage", 2, "--accumulate", 3, *AWAY)
suite.check("any order of two ranks' operations in f16, with gradients that travel in bf16 and state on disk", any_order, 2, "--precision", "f16", "--reduce-type", "bf16",
            "--stage", 1, *AWAY)
suite.check("steps that wait for each other, with state on host and disk", drained, 1, *AWAY)
suite.check("steps of two ranks that wait for each other", drained, 2, "--stage", 3)
suite.check("a missing wait is seen", missing_waits, "own", 2, "--stage", 3)
suite.check("a missing wait for the program before is seen", missing_waits, "entry", 2, "--stage", 3)
suite.check("a missing wait for the program before is seen, with state on host and disk", missing_waits, "entry", 1, *AWAY)
suite.finish()
