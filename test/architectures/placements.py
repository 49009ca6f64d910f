#!/usr/bin/env python3
"""Published architectures under every placement, by hand: what a placement moves, cuts or makes again never changes what is trained.

usage: test/architectures/placements.py [--only NAME[,NAME]] [--mask] [--precision f32|bf16|f16]

Each model of configs.py makes four AdamW steps. The same bits of every weight and loss as resident: with all state and activations on disk, and with as
little device memory as zeroc says that a plan needs; as resident in tiles: tiles with as little memory. The same bits of two micro-steps, clipped: resident, on disk, and bucket by bucket. The same on two ranks: stages 0
and 3, and stage 3 with its state on disk. With --tile auto in the memory that this needs losses agree to 1e-4 (2e-2 in half precision). Needs what run.py needs, and mpirun.
"""
import argparse
import json
import os
import re
import subprocess
import sys

from safetensors.numpy import load_file, save_file

from run import ROOT, Fails, exported, hold, samples

STEPS = 4
DISK = ["--offload-params", "disk", "--offload-optimizer", "disk"]
TILES = ["--tile", "4", "--tile-tokens", "8"]


class Case:
    """One model in a folder of its own."""

    def __init__(self, config, task, mask, precision, work):
        self.work, self.precision = work, precision
        arguments, model, task, _ = exported(config, task, mask, work)
        save_file(samples(arguments, model, task), work / "data.safetensors")
        self.loss = "mse" if task == "encoder" else "cross_entropy"

    def run(self, command):
        allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return subprocess.run([str(c) for c in command], cwd=self.work, capture_output=True, text=True, timeout=300, env=os.environ | allow)

    def zeroc(self, *flags):
        return self.run([ROOT / "build/bin/zeroc", "-q", "model.onnx", "-o", "plan.bin", "--loss", self.loss, "--precision", self.precision, *flags])

    def trained(self, *flags, world=1, clip=0):
        """(weights, losses) of a plan with these flags, with the norm of gradients clipped at `clip` (0: not)."""
        made = self.zeroc(*flags, *(["--world", world] if world > 1 else []))
        if made.returncode:
            raise Fails(f"{flags}: {made.stderr.strip()}")
        launch = ["mpirun", "--oversubscribe", "-n", world] if world > 1 else []
        done = self.run([*launch, ROOT / "build/bin/zerorun", "plan.bin", "--data", "data.safetensors", "--steps", STEPS, "--lr", "1e-3", "--threads", 2 // world, "--clip", clip,
                         "--export", "final.safetensors", "--metrics", "metrics.jsonl", "--disk-path", self.work / "disk"])
        if done.returncode:
            raise Fails(f"{flags}: {done.stderr.strip()}")
        rows = (self.work / "metrics.jsonl").read_text().splitlines()
        return load_file(self.work / "final.safetensors"), [json.loads(row)["loss"] for row in rows]

    def least(self, *flags):
        """Bytes of device memory without which zeroc refuses a plan."""
        refused = self.zeroc(*flags, "--device-memory", "1K").stderr
        found = re.search(r"one rank needs ([\d ]+) bytes", refused)
        if not found:
            raise Fails(f"{flags} in 1K: {refused.strip()}")
        return found[1].replace(" ", "")


def same(what, found, wanted):
    different = [name for name in wanted[0] if found[0][name].tobytes() != wanted[0][name].tobytes()]
    if different or found[1] != wanted[1]:
        raise Fails(f"{what}: {len(different)} of {len(wanted[0])} weights have other bits, such as {different[:2]}; losses {found[1]}, not {wanted[1]}")


def check(case):
    resident = case.trained()
    same("all on disk", case.trained(*DISK, "--offload-activations", "disk"), resident)
    same("least memory", case.trained("--device-memory", case.least()), resident)
    tiled = case.trained(*TILES)
    same("tiles in least memory", case.trained(*TILES, "--device-memory", case.least(*TILES)), tiled)
    chosen = case.trained("--tile", "auto", "--device-memory", case.least("--tile", "auto"))
    for what, losses in (("tiles", tiled[1]), ("--tile auto", chosen[1])):
        off = max(abs(x - y) / max(1, abs(y)) for x, y in zip(losses, resident[1], strict=True))
        if off > (1e-4 if case.precision == "f32" else 2e-2):
            raise Fails(f"{what}: losses differ by {off:.1e}")
    micro = case.trained("--accumulate", 2, clip=0.5)
    same("two micro-steps on disk, clipped", case.trained("--accumulate", 2, *DISK, "--offload-activations", "disk", clip=0.5), micro)
    same("two micro-steps bucket by bucket on disk, clipped", case.trained("--accumulate", 2, "--accumulate-order", "vertical", *DISK, clip=0.5), micro)
    ranks = case.trained("--stage", 0, world=2)
    for flags in (["--stage", 3], ["--stage", 3, *DISK]):
        same(f"two ranks, {' '.join(map(str, flags))}", case.trained(*flags, world=2), ranks)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", metavar="NAME[,NAME]")
    p.add_argument("--mask", action="store_true", help="give causal and sequence-to-sequence models an attention_mask, too")
    p.add_argument("--precision", choices=("f32", "bf16", "f16"), default="f32")
    options = p.parse_args()
    return hold(lambda config, task, work: check(Case(config, task, options.mask, options.precision, work)), options.only, "architectures hold under every placement")


if __name__ == "__main__":
    sys.exit(main())
