#!/usr/bin/env python3
"""Published architectures, with random weights, from Transformers through models/export.py and zeroc to zerorun, held against PyTorch.

usage: test/architectures/run.py [--only NAME[,NAME]] [--mask] [--symbolic] [--table FILE.md]

Each model makes five AdamW steps in PyTorch and in zerorun. It holds if every loss agrees to 1e-4 and the first step's gradients to 1e-3 of their
norm (f32 on both sides, each in its own order of sums), if --recompute full gives these gradients to the bit, and if as many numbers are trained. Needs torch, transformers, onnx,
onnxscript and safetensors; set-up does not install these, so this runs by hand: about half a minute for each architecture.
"""
import argparse
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(pathlib.Path(__file__).resolve().parent)]
import export  # noqa: E402  of models/
import huggingface  # noqa: E402
from configs import CONFIGS as FIRST  # noqa: E402
from decoder_configs import DECODERS  # noqa: E402
from encoder_configs import ENCODERS  # noqa: E402

CONFIGS = FIRST + DECODERS + ENCODERS

STEPS, BATCH, SEQUENCE, RATE = 5, 2, 16, 1e-3


class Fails(Exception):
    """Where the road ends for a model, in one sentence."""


def set_arguments(config, task, mask, work, symbolic=False):
    """The command line that models/export.py reads. Symbolic sizes are those of another example."""
    (work / "config.json").write_text(json.dumps(config))
    sys.argv = ["export.py", str(work / "config.json"), "-o", str(work / "model.onnx"), "--batch", str(BATCH), "--seq", str(SEQUENCE + 8 * symbolic),
                *["--static"] * (not symbolic), *(["--task", task] if task else []), *["--mask"] * mask]


def exported(config, task, mask, work, symbolic=False):
    """(arguments of the export, model as exported and its task, what the tool printed)."""
    set_arguments(config, task, mask, work, symbolic)
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            export.main()
    except SystemExit as e:
        raise Fails(f"{err.getvalue()}{e}".strip().replace("\n", "; "))
    a = export.arguments()
    a.seq = SEQUENCE
    attention = "eager" if "eager attention" in out.getvalue() else "sdpa"
    model, task, _ = huggingface.load(a, attention)
    exporter = "dynamo" if "exporter dynamo" in out.getvalue() else "torchscript"
    return a, model, task, f"{exporter}, {attention}"


def samples(a, model, task):
    """STEPS batches of inputs and labels as numpy arrays, samples first; a tenth of a language model's labels does not count."""
    rng = np.random.default_rng(1)
    shapes = {name: tuple(value.shape) for name, value in huggingface.example(a, model, task)[0].items()}
    n, data = STEPS * BATCH, {}
    for name, shape in shapes.items():
        if name == "pixel_values":
            data[name] = rng.standard_normal((n, *shape[1:])).astype(np.float32)
        elif name == "attention_mask":
            data[name] = (np.arange(shape[1])[None] < rng.integers(shape[1] // 2, shape[1] + 1, (n, 1))).astype(np.int64)
        elif name == "token_type_ids":
            data[name] = rng.integers(0, 2, (n, shape[1]))
        else:
            data[name] = rng.integers(3, model.config.vocab_size, (n, shape[1]))
    if task == "classification" and getattr(model.config, "is_encoder_decoder", False):
        data["input_ids"][:, -1] = model.config.eos_token_id  # where the head reads
    if task in ("classification", "image"):
        data["labels"] = rng.integers(0, model.config.num_labels, n)
    elif task == "encoder":
        data["labels"] = rng.standard_normal((n, SEQUENCE, model.config.hidden_size)).astype(np.float32)
    else:
        data["labels"] = rng.integers(3, model.config.vocab_size, (n, SEQUENCE))
        data["labels"][rng.random(data["labels"].shape) < 0.1] = -100
        if task != "seq2seq" and "attention_mask" in data:
            data["labels"][data["attention_mask"] == 0] = -100
    return data


def trained_by_torch(model, task, data, decay=0.01):
    """(losses, gradients of the first step by parameter's name)."""
    model.eval()  # without dropout; its configuration has none either
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=decay)
    losses, gradients = [], {}
    for step in range(STEPS):
        batch = {k: torch.from_numpy(v[step * BATCH:(step + 1) * BATCH]) for k, v in data.items()}
        labels = batch.pop("labels")
        out = getattr(model(**batch), huggingface.OUTPUTS.get(task, "logits"))
        loss = F.mse_loss(out, labels) if task == "encoder" else F.cross_entropy(out.flatten(0, -2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            gradients = {n: p.grad.numpy().copy() for n, p in model.named_parameters(remove_duplicate=False) if p.grad is not None}
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients


def program(name, *args, cwd):
    done = subprocess.run([ROOT / "build" / "bin" / name, *map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Fails((done.stderr.strip() or f"{name} ended with status {done.returncode}").splitlines()[-1])
    return done.stdout


def bound(work):
    """zeroc's flags that give symbolic dimensions their sizes: samples come first, and all sequences are of one length."""
    inputs = onnx.load(work / "model.onnx", load_external_data=False).graph.input
    sizes = {d.dim_param: SEQUENCE if axis else BATCH for i in inputs for axis, d in enumerate(i.type.tensor_type.shape.dim) if d.dim_param}
    return [word for name, size in sorted(sizes.items()) for word in ("--bind", f"{name}={size}")]


def made_again(task, work):
    """Gradients of the first step that differ where forward's results are made again in backward."""
    loss = "mse" if task == "encoder" else "cross_entropy"
    program("zeroc", "-q", "model.onnx", "-o", "again.bin", "--recompute", "full", "--loss", loss, *bound(work), cwd=work)
    program("zerorun", "again.bin", "--data", "data.safetensors", "--steps", 1, "--threads", "1", "--gradients", "again.safetensors", cwd=work)
    kept, again = (load_file(work / f"{name}.safetensors") for name in ("gradients", "again"))
    return [name for name in kept if kept[name].tobytes() != again[name].tobytes()]


def losses_within(losses, metrics):
    """Worst difference of a loss that zerorun reports, relative where it is above 1."""
    ours = [json.loads(line)["loss"] for line in metrics.read_text().splitlines()]
    return max(abs(x - y) / max(1, abs(y)) for x, y in zip(ours, losses, strict=True))


def gradients_within(wanted, found):
    """(worst difference of a gradient by its norm, how many were compared): those that have kept their name and shape; others are an exporter's own."""
    floor = 1e-4 * max(np.linalg.norm(g) for g in wanted.values())  # a key bias has no gradient but noise
    both = [(wanted[name], g) for name, g in found.items() if name in wanted and wanted[name].shape == g.shape]
    return max((float(np.linalg.norm(g - want) / max(np.linalg.norm(want), floor)) for want, g in both), default=0.0), len(both)


def write_table(path, head, rows):
    """`head`: the titles of the columns, as Markdown has them."""
    pathlib.Path(path).write_text("\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows]) + "\n")


def compare(config, task, mask, work, symbolic=False):
    """(parameters, how exported, worst relative difference of a loss, of a gradient, gradients compared)."""
    a, model, task, how = exported(config, task, mask, work, symbolic)
    data = samples(a, model, task)
    save_file(data, work / "data.safetensors")
    program("zeroc", "-q", "model.onnx", "-o", "plan.bin", "--loss", "mse" if task == "encoder" else "cross_entropy", *bound(work), cwd=work)
    program("zerorun", "plan.bin", "--data", "data.safetensors", "--steps", STEPS, "--lr", RATE, "--weight-decay", "0.01", "--threads", "1",
            "--metrics", "metrics.jsonl", "--gradients", "gradients.safetensors", cwd=work)
    losses, gradients = trained_by_torch(model, task, data)
    trained = json.loads(program("zero-inspect", "plan.bin", "--json", cwd=work))["parameter_elements"]
    wanted = sum(p.numel() for p in model.parameters() if p.grad is not None)
    if trained < wanted:
        raise Fails(f"{trained:,} numbers are trained, and {wanted:,} in PyTorch")
    loss = losses_within(losses, work / "metrics.jsonl")
    worst, compared = gradients_within(gradients, load_file(work / "gradients.safetensors"))
    if not compared:
        raise Fails("no gradient has the name of a parameter")
    again = made_again(task, work)
    if again:
        raise Fails(f"--recompute full changes bits of {len(again)} gradients, such as {again[0]}")
    if loss > 1e-4 or worst > 1e-3:
        raise Fails(f"losses differ by {loss:.1e}, gradients by {worst:.1e} of their norm")
    return sum(p.numel() for p in model.parameters()), task, how, loss, worst, compared


def hold(check, only, what):
    """`check(config, task, folder)` for every architecture, which says something or Fails; prints a line for each and returns the exit status."""
    chosen, held = [c for c in CONFIGS if not only or c[0] in only.split(",")], 0
    for name, task, config in chosen:
        with tempfile.TemporaryDirectory() as work:
            try:
                said = check(config, task, pathlib.Path(work))
                held += 1
                print(f"ok {name}" + (f": {said}" if said else ""), flush=True)
            except Fails as e:
                print(f"FAILS {name}: {e}", flush=True)
    print(f"{held} of {len(chosen)} {what}")
    return held != len(chosen)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", metavar="NAME[,NAME]")
    p.add_argument("--mask", action="store_true", help="give causal and sequence-to-sequence models an attention_mask, too: samples of several lengths")
    p.add_argument("--symbolic", action="store_true", help="export with symbolic sizes, which zeroc is told")
    p.add_argument("--table", metavar="FILE.md", help="write the rows as a table")
    options = p.parse_args()
    rows, held = [], 0
    chosen = [c for c in CONFIGS if not options.only or c[0] in options.only.split(",")]
    for name, task, config in chosen:
        with tempfile.TemporaryDirectory() as work:
            try:
                count, task, how, loss, worst, compared = compare(config, task, options.mask, pathlib.Path(work), options.symbolic)
                row, held = f"| {name} | {task} | {count:,} | {how} | {loss:.0e} | {worst:.0e} ({compared}) |", held + 1
            except Fails as e:
                row = f"| {name} | {task or ''} | | {e} | | |"
            except Exception as e:  # of Transformers or PyTorch, before anything of ours ran
                row = f"| {name} | {task or ''} | | {type(e).__name__}: {str(e).splitlines()[0][:150] if str(e) else ''} | | |"
        rows.append(row)
        print(row, flush=True)
    print(f"{held} of {len(chosen)} architectures hold")
    if options.table:
        write_table(options.table, "| architecture | task | parameters | export | losses within | gradients within (compared) |", rows)
    return held != len(chosen)


if __name__ == "__main__":
    sys.exit(main())
