#!/usr/bin/env python3
"""What test/gpu/bundle.sh does once the programs are built: compiles plans, computes references, and writes the list of rungs that run.sh goes up."""
import argparse
import datetime
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "e2e"))
from references import BOUNDS, bindings, bounds_of, data_of, hyper_parameters, wanted_gradients  # noqa: E402

TINY = ROOT / "models" / "tiny"
LARGEST = 48 << 20
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}
PRECISIONS = ("f32", "bf16")
# Of this model with a symbolic batch: stages, places of state, ranks.
PLACED = "gpt2-dynamo_sdpa_dyn"
PLACES = {"stage3": ["--stage", 3],
          "host": ["--offload-params", "host", "--offload-optimizer", "host", "--offload-activations", "host",
                   "--cpu", "x86-64-v3"], # of what the host updates
          "disk": ["--offload-params", "disk", "--offload-optimizer", "disk", "--offload-activations", "disk"],
          "host-disk": ["--stage", 3, "--offload-params", "host", "--offload-optimizer", "disk"]}
FEWER = ("stage3", "host", "host-disk") # in bf16
# For room: what these models are made of the others have, too, and the stand-ins train them; and whose first gradients are held against PyTorch's.
LEFT_OUT = ("bert_mlm", "plain_causal", "t5", "gpt2-dynamo_eager_noopt")
GRADIENTS = ("gpt2", "gpt2_loss", "llama")
# GPT-2: layers, width, heads; samples of 1024 tokens in a micro-step; micro-steps.
GPT2 = {"gpt2-124M": (12, 768, 12, 16, 4), "gpt2-1.5B": (48, 1600, 25, 8, 4)}
VOCABULARY, LENGTH = 50257, 1024
GPU = "sm_90a" # of benchmarks and what belongs to them: the machine that the bundle is made for
# State beyond the GPU: layers, width, heads, samples in a micro-step; plan, flags; steps, processors, seconds without which it is not begun, and at most
# (docs/gpu.md says why these sizes). Speeds that choices are made by are those of an H200's machine.
BEYOND = {"gpt-7B": ((34, 4096, 32, 8), "bf16-host", ["--device-memory", "24GiB", "--host-memory", "110GiB"], (6, 8, 60, 150)),
          "gpt-7B-disk": ((34, 4096, 32, 8), "bf16-host-disk", ["--device-memory", "24GiB", "--host-memory", "92GiB"], (4, 8, 90, 200)),
          "gpt-17.6B": ((28, 7168, 56, 8), "bf16-host-disk", ["--recompute", "full", "--device-memory", "134GiB", "--host-memory", "116GiB"], (3, 8, 200, 330))}
SMALL = {"gpt-host": ((6, 64, 2, 2), "bf16-host", ["--device-memory", "2M", "--host-memory", "64M"], (3, 1, 5, 60)),
         "gpt-disk": ((6, 64, 2, 2), "bf16-host-disk", ["--device-memory", "3500K", "--host-memory", "2500K"], (3, 1, 5, 60))}
ROOM = {"host": 112 << 30, "disk": 56 << 30} # bytes, of the machine that the bundle is made for
SPEEDS = ROOT / "test" / "gpu" / "h200.json"


class Bundle:
    def __init__(self, folder, stand_ins):
        self.folder, self.stand_ins, self.rungs = folder, stand_ins, []
        self.bin = ROOT / "build" / "bin"

    def run(self, *command, folder=None, **kw):
        done = subprocess.run([str(c) for c in command], cwd=folder or self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)
        if done.returncode:
            sys.exit(f"bundle: {' '.join(map(str, command))}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
        return done.stdout

    def rung(self, *words):
        self.rungs.append(" ".join(map(str, words)))

    def compile(self, name, plan, model, *flags, references=True):
        """NAME/PLAN.plan, its kernels for processors, and with stand-ins their double."""
        folder = self.folder / name
        flags = [model, "--target", "cuda", *flags]
        self.run(self.bin / "zeroc", "-q", *flags, "-o", f"{plan}.plan", folder=folder)
        if not references and not self.stand_ins:
            return
        (folder / "placed.mlir").write_text(self.run(self.bin / "zeroc", *flags, "--emit", "place", folder=folder))
        if references:
            interpret = ["--interpret", "softmax"] if self.stand_ins else [] # in place of kernels that processors have no form of
            self.run(self.bin / "gpu-reference", f"{plan}.plan", "placed.mlir", "-o", plan, *interpret, folder=folder)
        if self.stand_ins:
            self.run(self.bin / "gpu-double", f"{plan}.plan", "placed.mlir", "-o", f"{plan}.double.so", folder=folder)
        (folder / "placed.mlir").unlink()

    def programs(self):
        (self.folder / "bin").mkdir(parents=True)
        for program in ("zerorun", "gpu-check"):
            self.run("strip", "-o", self.folder / "bin" / program, ROOT / "build-portable" / "bin" / program)
        self.libraries()
        shutil.copy(ROOT / "test" / "gpu" / "run.sh", self.folder)

    def libraries(self):
        """What programs want beside glibc, where they look for it first."""
        (self.folder / "lib").mkdir()
        for program in (self.folder / "bin").iterdir():
            for line in self.run("ldd", ROOT / "build-portable" / "bin" / program.name).splitlines():
                name, _, path = line.strip().partition(" => ")
                if path and name not in GLIBC:
                    self.run("strip", "-o", self.folder / "lib" / name, path.split(" (")[0])

    # ------------------------------------------------------------------------------------------ models with PyTorch's references
    def exports(self):
        for path in sorted(TINY.glob("*/reference.json")):
            reference = json.loads(path.read_text())
            for export in reference["exports"]:
                name = f"{path.parent.name}-{pathlib.Path(export['file']).stem}"
                if not name.startswith(LEFT_OUT):
                    yield name, path.parent, export, reference

    def reference(self, name, source, export, reference):
        """What does not depend on plans: the model, the data, and what PyTorch makes of them."""
        folder = self.folder / name
        folder.mkdir()
        shutil.copy(source / export["file"], folder)
        save_file(data_of(source, export, len(reference["loss_curve"])), folder / "data.safetensors")
        trainable = {n: {"torch": r["torch"], "tied_copy": bool(r.get("tied_copy"))} for n, r in export["trainable"].items()}
        (folder / "reference.json").write_text(json.dumps({"losses": reference["loss_curve"], "bounds": {p: bounds_of(reference, p) for p in BOUNDS}, "trainable": trainable}))
        (folder / "flags").write_text(" ".join(map(str, ["--data", "data.safetensors", *hyper_parameters(reference)])) + "\n")
        if source.name in GRADIENTS:
            save_file({n: np.ascontiguousarray(g) for n, g in wanted_gradients(source, export, reference).items()}, folder / "gradients.safetensors")

    def flags(self, source, export, precision, world=1):
        return ["--loss", export["loss"], "--precision", precision, "--world", world, *bindings(source, export, world)]

    def models(self, steps):
        wanted = [e for e in self.exports() if not self.stand_ins or e[0].startswith("gpt2_loss")]
        for name, source, export, reference in wanted:
            self.reference(name, source, export, reference)
            for precision in PRECISIONS:
                self.compile(name, precision, export["file"], *self.flags(source, export, precision))
                self.rung("kernels", name, precision)
        self.rung("products", *(f"{name}/{precision}" for name, *_ in wanted for precision in PRECISIONS))
        for name, *_ in wanted:
            for precision in PRECISIONS:
                self.rung("training", name, precision, precision, steps)

    def placements(self, steps):
        """The same training wherever state lies, to the bit."""
        name, source, export, _ = next(e for e in self.exports() if e[0].startswith("gpt2_loss" if self.stand_ins else PLACED))
        places = ("stage3", "host", "disk") if self.stand_ins else PLACES
        for precision in PRECISIONS[:1] if self.stand_ins else PRECISIONS:
            places = [place for place in places if precision == "f32" or place in FEWER]
            for place in places:
                self.compile(name, f"{precision}-{place}", export["file"], *self.flags(source, export, precision), *PLACES[place], references=False)
            self.rung("equal", name, steps, precision, *(f"{precision}-{place}" for place in places))
            self.rung("graphs", name, precision, steps)

    def ranks(self, world, steps):
        name, source, export, reference = next(e for e in self.exports() if e[0] == PLACED)
        if not (self.folder / name).exists():
            self.reference(name, source, export, reference)
        for precision in PRECISIONS[:1] if self.stand_ins else PRECISIONS:
            stages = (0, 3) if self.stand_ins or precision != "f32" or world > 2 else range(4)
            plans = [f"{precision}-{world}-ranks-stage{stage}" for stage in stages]
            for stage, plan in zip(stages, plans):
                self.compile(name, plan, export["file"], *self.flags(source, export, precision, world), "--stage", stage, references=False)
            self.rung("ranks", world, name, precision, steps, *plans)

    # ------------------------------------------------------------------------------------------ GPT-2
    def gpt(self, name, layers, width, heads, batch, accumulate, vocabulary=VOCABULARY, length=LENGTH, references=False, plan="bf16", flags=()):
        """A plan in bf16 without weights, and random tokens; yields the floating-point operations of a model for a token, 6 N + 12 L H T: N parameters
        without the table of positions, the output matrix counted once."""
        folder = self.folder / name
        folder.mkdir()
        self.run(sys.executable, ROOT / "models" / "gpt.py", "--no-weights", "--layers", layers, "--hidden", width, "--heads", heads, "--vocab", vocabulary,
                 "--seq", length, "--batch", batch, "-o", folder / "model.onnx")
        self.compile(name, plan, "model.onnx", "--gpu", "sm_80" if self.stand_ins else GPU, "--init", "random", "--precision", "bf16", "--accumulate", accumulate, *flags, references=references)
        np.random.default_rng(0).integers(0, vocabulary, batch * accumulate * length + 1, dtype=np.uint16).tofile(folder / "data.bin")
        (folder / "flags").write_text("--data data.bin --lr 1e-4\n")
        parameters = vocabulary * width + layers * (12 * width * width + 13 * width) + 2 * width
        return 6 * parameters + 12 * layers * width * length

    def benchmarks(self, peer):
        if self.stand_ins:
            flops = self.gpt("gpt-small", 1, 32, 2, 2, 1, vocabulary=64, length=16)
            self.rung("benchmark", "gpt-small", "bf16", 6, flops)
            self.rung("slowest", "gpt-small", "bf16")
            self.rung("tuned", "gpt-small", "bf16", 6, flops)
            if peer:
                self.rung("peer", "gpt-small")
            self.sanitizer()
            return
        for name, (layers, width, heads, batch, accumulate) in GPT2.items(): # the larger one last
            flops = self.gpt(name, layers, width, heads, batch, accumulate)
            if name == "gpt2-124M":
                self.rung("products", f"{name}/bf16")
            self.rung("benchmark", name, "bf16", 30 if name == "gpt2-124M" else 14, flops)
            self.rung("slowest", name, "bf16")
            self.rung("tuned", name, "bf16", 30 if name == "gpt2-124M" else 14, flops)
            if name == "gpt2-124M":
                if peer:
                    self.rung("peer", name, "--model", "124M", "--micro", batch, "--accumulate", accumulate, "--steps", 10)
                self.sanitizer()

    def beyond(self):
        """Where a plan of the same model with everything on the GPU would not fit."""
        size = {"vocabulary": 64, "length": 16} if self.stand_ins else {}
        for name, (shape, plan, flags, (steps, processors, seconds, limit)) in (SMALL if self.stand_ins else BEYOND).items():
            self.gpt(name, *shape, 1, **size, plan=plan, flags=[*flags, "--cpu", "x86-64-v3", "--machine", SPEEDS])
            self.rests(name, plan)
            self.rung("beyond", name, plan, steps, processors, seconds, limit)

    def rests(self, name, plan):
        """The plan has state where its name says, and no more of it than the machine that the bundle is made for has room for."""
        facts = json.loads(self.run(self.bin / "zero-inspect", f"{plan}.plan", "--json", folder=self.folder / name))
        for tier in plan.split("-")[1:]:
            if not 0 < facts["memory"][tier]["state_bytes"] <= ROOM[tier]:
                sys.exit(f"bundle: {name}/{plan} keeps {facts['memory'][tier]['state_bytes']} bytes in tier {tier}")

    def sanitizer(self):
        self.rung("sanitizer", "gpt2_loss-dynamo_eager", "f32", 2)

    def finish(self):
        commit = self.run("git", "-C", ROOT, "describe", "--always", "--dirty").strip()
        now = datetime.datetime.now(datetime.timezone.utc)
        (self.folder / "README").write_text(f"Bundle of commit {commit}, made on {now:%Y-%m-%d %H:%M} UTC.\n")
        (self.folder / "rungs").write_text("\n".join(self.rungs) + "\n")
        files = sorted(p for p in self.folder.rglob("*") if p.is_file())
        (self.folder / "sums").write_text("".join(f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(self.folder)}\n" for p in files))
        size = sum(p.stat().st_size for p in self.folder.rglob("*") if p.is_file())
        print(f"{self.folder}: {len(files)} files, {size / 2**20:.1f} MiB, {len(self.rungs)} rungs")
        if size > LARGEST:
            sys.exit(f"bundle: {size} bytes are more than {LARGEST}")


def main():
    p = argparse.ArgumentParser(prog="bundle.sh", description=__doc__)
    p.add_argument("bundle", type=pathlib.Path)
    p.add_argument("--peer", type=pathlib.Path, help="the program that trains GPT-2 with PyTorch")
    p.add_argument("--stand-ins", action="store_true", help="a small bundle, with kernels for the stand-ins of test/gpu/fake")
    a = p.parse_args()
    if a.bundle.exists():
        sys.exit(f"bundle: '{a.bundle}' is there already; name a folder that is not")
    steps = 3 if a.stand_ins else 10
    bundle = Bundle(a.bundle.resolve(), a.stand_ins)
    bundle.programs()
    if a.peer:
        shutil.copy(a.peer, bundle.folder / "peer.py")
    for name in ("set square 64", "set copies 4", "set large 10000") if a.stand_ins else ():
        bundle.rung(name)
    for name in ("whole", "machine", "copies"):
        bundle.rung(name)
    bundle.models(steps)
    bundle.placements(steps)
    for world in (2, 4):
        bundle.ranks(world, 1 if a.stand_ins else steps)
    if a.stand_ins:
        bundle.rung("timed", "gpt2_loss-dynamo_eager", "f32")
    else:
        for width in (64, 128): # of heads whose attention is multiplied by warpgroups
            bundle.gpt(f"gpt-heads-{width}", 1, 256, 256 // width, 1, 1, vocabulary=256, length=200, references=True)
            bundle.rung("kernels", f"gpt-heads-{width}", "bf16")
        bundle.gpt("gpt2-one-layer", 1, 768, 12, 1, 1, references=True)
        bundle.rung("timed", "gpt2-one-layer", "bf16")
    bundle.benchmarks(a.peer)
    bundle.beyond()
    bundle.finish()


if __name__ == "__main__":
    main()
