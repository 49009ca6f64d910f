#!/usr/bin/env python3
"""Rows of the table of the vocabulary, of which a step looks up few.

Ranks exchange rows in place of the table. A tied table (gpt: what an output projection adds to its gradient travels as ever) and one of its own (llama:
nothing else does), of 4096 rows for 2 x 12 tokens a rank: the same bits at every stage, however state is kept and micro-steps are ordered, and one
rank's gradients.

On one rank whose optimizer's state rests elsewhere a tied table is updated early but for its rows that were looked up: the bits of one that is updated
as a whole.
"""
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import ROOT, Suite, expect

sys.path.insert(0, str(ROOT / "test"))
import plan_file  # noqa: E402

VOCAB, HIDDEN, BATCH, SEQ, STEPS = 4096, 32, 2, 12, 3
suite = Suite(__doc__)


def prepare():
    for architecture, flags in {"gpt": [], "llama": ["--ffn", "64"]}.items():
        suite.gpt(f"{architecture}.onnx", "--arch", architecture, "--layers", 2, "--hidden", HIDDEN, "--heads", 2, "--vocab", VOCAB, "--seq", SEQ, "--dynamic", *flags)
    random = np.random.default_rng(0)
    # Few of many words, so that ranks and places look up the same ones; the first and the last row among them.
    tokens = random.choice(np.array([0, 1, 7, 2047, 2048, VOCAB - 2, VOCAB - 1]), (48, SEQ + 1))
    save_file({"input_ids": np.ascontiguousarray(tokens[:, :SEQ]), "labels": np.ascontiguousarray(tokens[:, 1:])}, suite.work / "data.safetensors")


def trained(name, model, world, *flags, clip=False, batch=BATCH):
    """Gradients of the first step and the weights after the last."""
    made = ["--bind", f"batch={batch},seq={SEQ}", "--world", world, *flags]
    suite.zeroc(f"{model}.onnx", f"{name}.plan", "-q", *made)
    env = suite.without_gpu(f"{name}.plan", f"{model}.onnx", *made) if "--target=cuda" in flags else {}
    suite.zerorun(f"{name}.plan", "--data", "data.safetensors", "--steps", STEPS, "--lr", "1e-2", "--threads", 1, *(["--clip", "0.5"] if clip else []),
                  "--gradients", f"{name}-g.safetensors", "--export", f"{name}-w.safetensors", world=world, env=env)
    return load_file(suite.work / f"{name}-g.safetensors"), load_file(suite.work / f"{name}-w.safetensors")


def equal(ours, theirs):
    for mine, other in zip(ours, theirs):
        different = [n for n in mine if mine[n].tobytes() != other[n].tobytes()]
        expect(not different, f"{len(different)} of {len(mine)} tensors differ, as {different[:1]}")


def stages(model, world, others):
    first = trained(f"{model}-{world}-0", model, world, "--stage", 0)
    for stage in others: equal(trained(f"{model}-{world}-{stage}", model, world, "--stage", stage), first)
    alone, _ = trained(f"{model}-alone-{world}", model, 1, "--accumulate", world)
    worst = max(np.abs(first[0][n] - alone[n]).max() / max(np.abs(alone[n]).max(), 1e-8) for n in alone)
    expect(worst < 1e-5, f"a gradient is off by {worst:.1e} from one rank's")
    return f"gradients within {worst:.0e} of one rank's"


def moved(model):
    """Of the table's bucket at stage 3: it is gathered for the output projection alone, and its gradient is summed once or not at all."""
    suite.zeroc(f"{model}.onnx", f"{model}-moved.plan", "--bind", f"batch={BATCH},seq={SEQ}", "-q", "--world", 2, "--stage", 3)
    plan = plan_file.read(suite.work / f"{model}-moved.plan")
    table = {b for b, bucket in enumerate(plan.buckets) if bucket.name in (plan.buckets[p.pieces[0].bucket].name for p in plan.parameters if list(p.shape) == [VOCAB, HIDDEN] and "head" not in p.name)}
    expect(len(table) == 1, f"{len(table)} buckets hold the table")
    shard = plan.buckets[min(table)].shard_elements
    expect(shard % HIDDEN == 0, f"a shard of {shard} elements is not of whole rows")
    program = next(p for p in plan.programs if p.role == 0)
    kinds = [step.collective.kind for step in program.steps if step.HasField("collective") and step.collective.count == shard and
             plan.buffers[step.writes[0].buffer].HasField("bucket") and plan.buffers[step.writes[0].buffer].bucket in table]
    wanted = [0, 1] if model == "gpt" else []
    expect(kinds[:1] == wanted[:1] and kinds.count(1) == len(wanted) // 2, f"whole tables travel: {kinds}")
    return f"{len(kinds)} collectives of the whole table"


def judged(model):
    """Rows that are gathered for no gradient, or summed as a table, are no sum of it."""
    path = suite.work / f"{model}-moved.plan"
    plan = plan_file.read(path)
    rows = [step for p in plan.programs if p.role == 0 for step in p.steps if step.name.endswith(".gradient_rows") and step.HasField("collective")]
    expect(rows, "no rows are gathered")
    for step in rows: plan.buffers[step.writes[0].buffer].ClearField("bucket")
    plan_file.write(suite.work / "wrong.plan", path, plan)
    said = suite.run([suite.bin / "zero-inspect", "--check", "wrong.plan"], check=False)
    wanted = "is reduced 0 times, not once"
    expect(said.returncode != 0 and wanted in said.stdout + said.stderr, f"the judge says: {(said.stdout + said.stderr).strip()[:200]}")


def variant(model, flags, clip=False):
    """With other flags at stage 3, against stage 0 with those that change bits."""
    bits = [f for f in flags if f.startswith(("--precision=", "--reduce-type=", "--accumulate=", "--target="))]
    name = f"{model}-{'-'.join(f.strip('-').replace('=', '-') for f in flags)}{'-clip' * clip}"
    equal(trained(name, model, 2, "--stage", 3, *flags, clip=clip), trained(f"{name}-0", model, 2, "--stage", 0, *bits, clip=clip))


def one_sample():
    """What reaches the rows of a sample is the gradient of positions, too, and lies in another bucket."""
    equal(*(trained(f"sample-{stage}", "gpt", 2, "--stage", stage, batch=1) for stage in (3, 0)))


def apart(flags):
    """Of one rank: gradients and weights as where all state rests on the device, and again after a checkpoint, which resumes there."""
    name, same = "apart-" + "-".join(f.strip("-").replace("=", "-") for f in flags), [f for f in flags if f.startswith(("--precision=", "--tile=", "--optimizer="))]
    away, resident = ["--clip", "never", *flags], ["--clip", "never", *same]
    equal(trained(name, "gpt", 1, *away), trained(f"{name}-0", "gpt", 1, *resident))
    plan = plan_file.read(suite.work / f"{name}.plan")
    steps = [step for p in plan.programs if p.role == 0 for step in p.steps]
    rows = [step for step in steps if step.HasField("write_rows")]
    wanted = "--offload-params=disk" not in flags  # else the next step would wait for them
    expect(bool(rows) == wanted and sum(step.HasField("update_rows") for step in steps) == wanted, f"{len(rows)} steps write rows")
    run = lambda plan, *more: suite.zerorun(plan, "--data", "data.safetensors", "--lr", "1e-2", "--threads", 1, *more)
    for steps, plan, more in ((1, f"{name}.plan", ["--checkpoint", f"{name}.check"]), (2, f"{name}-0.plan", ["--resume", f"{name}.check", "--export", f"{name}-1.safetensors"])):
        run(plan, "--steps", steps, *more)
    run(f"{name}-0.plan", "--steps", 2, "--export", f"{name}-2.safetensors")
    expect((suite.work / f"{name}-1.safetensors").read_bytes() == (suite.work / f"{name}-2.safetensors").read_bytes(), "resumed elsewhere, weights differ")
    return f"{len(rows)} steps write rows"


suite.start()
prepare()
for flags in (["--offload-optimizer=disk"], ["--offload-optimizer=host"], ["--offload-optimizer=disk", "--tile=4"], ["--offload-params=disk", "--offload-optimizer=disk", "--tile=4"],
              ["--offload-params=disk", "--offload-optimizer=host", "--offload-activations=disk", "--tile=4"], ["--offload-optimizer=disk", "--optimizer=sgd", "--tile=4"],
              ["--offload-optimizer=disk", "--precision=bf16", "--tile=4"], ["--offload-params=disk", "--offload-optimizer=disk", "--precision=bf16", "--tile=4"],
              ["--device-memory=1900K", "--tile=4"], ["--device-memory=1900K", "--host-memory=400K", "--tile=4", "--precision=bf16"]):
    suite.check(f"table_rows: apart, {' '.join(flags)}", apart, flags)
suite.check("table_rows: gpt, one sample in each rank's micro-step", one_sample)
for model in ("gpt", "llama"):
    suite.check(f"table_rows: {model}, 2 ranks, stages 0 to 3", stages, model, 2, (1, 2, 3))
    suite.check(f"table_rows: {model}, 3 ranks, stages 0 and 3", stages, model, 3, (3,))
    suite.check(f"table_rows: {model}, what moves", moved, model)
    if model == "llama": suite.check("table_rows: judged", judged, model)
    for flags in (["--precision=bf16"], ["--precision=f16"], ["--reduce-type=bf16", "--precision=bf16"], ["--accumulate=2"], ["--accumulate=2", "--accumulate-order=vertical"],
                  ["--offload-params=disk", "--offload-optimizer=disk"], ["--offload-params=host"], ["--recompute=full"], ["--target=cuda"], ["--target=cuda", "--precision=bf16"]):
        suite.check(f"table_rows: {model}, {' '.join(flags)}", variant, model, flags)
    suite.check(f"table_rows: {model}, --clip", variant, model, [], clip=True)
suite.finish()
