#!/usr/bin/env python3
"""Making forward's results again in backward (--recompute full): the bits of keeping them, in less memory.

gpt2 and llama of models/tiny, a GPT with dropout, one of six layers, and a SqueezeBERT, whose norms go over what grouped convolutions made, groups side
by side, so that a norm by itself would go over its rows in another order than the kernel that also puts the groups there:
- parameters, first gradients and losses are bitwise those of the same plan without it, at every stage, on one rank and on two, with
  micro-steps, clipping, state and activations in other tiers, in bf16 and in tiles, and the judge finds nothing;
- in f32 so are those of --recompute none, of plain_causal too, whose layers exchange samples and tokens;
- a layer more takes the bytes of its input more, and nothing else of it;
- at stage 3 one gather serves a block's second forward and its backward.
"""
import json

from safetensors.numpy import load_file

from harness import ROOT, TINY, Suite, expect

DATA = ROOT / "test" / "e2e" / "data"
STEPS = 4
suite = Suite(__doc__)
AWAY = ["--offload-params", "disk", "--offload-optimizer", "host", "--offload-activations", "host"]


def plan(name, *flags):
    suite.zeroc(*[MODELS[name][0], "one.plan", *MODELS[name][1], *flags, "--quiet"])
    return json.loads(suite.run([suite.bin / "zero-inspect", "one.plan", "--json"]).stdout)


def trained(name, world, flags, run_flags):
    facts = plan(name, "--world", world, *flags)
    suite.run([suite.bin / "zero-inspect", "one.plan", "--check"])
    disk = ["--disk-path", suite.work / "disk"] if "disk" in flags else []
    suite.zerorun("one.plan", "--data", MODELS[name][2], "--steps", STEPS, "--lr", "1e-3", "--seed", 3, "--threads", 1, "--export", "one.safetensors",
                  "--gradients", "gradients.safetensors", "--metrics", "one.jsonl", *disk, *run_flags, world=world)
    return load_file(suite.work / "one.safetensors"), load_file(suite.work / "gradients.safetensors"), suite.losses("one.jsonl"), facts


def equal(kept, again):
    expect(len(kept[2]) == STEPS and again[2] == kept[2], f"losses {again[2]}, without {kept[2]}")
    for a, b, what in zip(again, kept, ("parameters", "gradients")):
        different = [n for n in b if a[n].tobytes() != b[n].tobytes()]
        expect(b and set(a) == set(b) and not different, f"{len(different)} of {len(b)} {what} differ, such as {min(different, default='')}")


def same(name, world, flags, run_flags):
    kept, again = (trained(name, world, [*flags, "--recompute", how], run_flags) for how in ("auto", "full"))
    equal(kept, again)
    decisions = {d["subject"]: d["choice"] for d in again[3]["decisions"]}
    expect("recomputation" in decisions and not decisions["recomputation"].startswith("0 "), f"nothing is made again: {decisions}")
    return decisions["recomputation"]


def none(name):
    """What is cheap is kept as well."""
    kept, cheap = (trained(name, 1, ["--recompute", how], []) for how in ("none", "auto"))
    equal(kept, cheap)
    bytes_kept, bytes_cheap = (each[3]["memory"]["programs"]["step"]["largest"]["activation"] for each in (kept, cheap))
    expect(bytes_kept > bytes_cheap, f"{bytes_kept} bytes of activations with everything kept, {bytes_cheap} without what is cheap")


def activations(name, *flags):
    """Bytes of activations in memory when a step of the plan has most in memory."""
    return plan(name, "--target", "sim", *flags)["memory"]["programs"]["step"]["largest"]["activation"]


def layer_is_its_input(precision, inputs):
    """What six layers take more than three is three times the input of one."""
    for how, least, most in (("full", 0.99, 1.05), ("auto", 4, 20)):
        few, many = (activations(f"layers{n}", "--recompute", how, "--precision", precision, "--optimizer", "sgd") for n in (6, 12))
        found = (many - few) / 6 / (inputs * BATCH * SEQ * HIDDEN * (2 if precision == "bf16" else 4))
        expect(least <= found <= most, f"--recompute {how}: a layer takes {found:.2f} times what its input does")
    return f"{found:.1f} inputs a layer without"


def gathers():
    calls = {}
    for how in ("auto", "full"):
        facts = plan("layers6", "--target", "sim", "--recompute", how, "--world", 2, "--stage", 3)
        calls[how] = facts["communication"]["collectives"]["all_gather"]["calls"]
    expect(calls["full"] <= calls["auto"], f"{calls}")
    return f"{calls['full']} all-gathers, without recomputation {calls['auto']}"


suite.start()
MODELS = {}
for model, file in {"gpt2": "dynamo_sdpa_dyn.onnx", "llama": "ts17_eager_dyn.onnx"}.items():
    MODELS[model] = (TINY / model / file, ["--bind", f"batch=1,seq={suite.tiny_data(model)}"], f"{model}.safetensors")
suite.tiny_data("plain_causal")
MODELS["plain_causal"] = (TINY / "plain_causal" / "dynamo_train.onnx", [], "plain_causal.safetensors")
MODELS["dropout"] = (DATA / "gpt_dropout.onnx", ["--bind", "batch=1"], DATA / "samples.safetensors")
HIDDEN, SEQ, BATCH = 64, 64, 4
MODELS["grouped"] = (DATA / "grouped.onnx", [], DATA / "grouped.safetensors")
for n in (6, 12):
    suite.gpt(f"layers{n}.onnx", "--layers", str(n), "--hidden", str(HIDDEN), "--heads", "2", "--vocab", "67", "--seq", str(SEQ), "--batch", str(BATCH), "--no-weights")
    MODELS[f"layers{n}"] = (suite.work / f"layers{n}.onnx", ["--init", "random"], None)
for name, world, flags, run_flags in (
    ("gpt2", 1, ["--accumulate", 2, *AWAY], ["--clip", 0.7]),
    ("gpt2", 2, ["--stage", 1, "--accumulate", 2], []),
    ("gpt2", 2, ["--stage", 3, "--precision", "bf16", *AWAY], ["--clip", 0.7]),
    ("llama", 1, ["--precision", "bf16"], []),
    ("llama", 2, ["--stage", 3, "--tile", 4], ["--clip", 0.7]),
    ("llama", 1, ["--tile-tokens", 2], []),  # tiles share a kernel of norms in forward that does more sums at once than what makes one of them again
    ("llama", 1, ["--tile-tokens", 3, "--accumulate", 2], []),
    ("dropout", 1, [], []),
    ("dropout", 2, ["--stage", 2, "--accumulate", 2], ["--clip", 0.7]),
    ("dropout", 2, ["--stage", 3, *AWAY], []),
    ("grouped", 1, [], []),
    ("grouped", 2, ["--stage", 3, "--precision", "bf16", *AWAY], ["--clip", 0.7]),
):
    suite.check(f"recompute: {name}: {' '.join(str(f) for f in [*flags, *run_flags])}, {world} ranks", same, name, world, flags, run_flags)
for name in ("gpt2", "plain_causal"):
    suite.check(f"recompute: {name}: none", none, name)
suite.check("recompute: a layer takes its input", layer_is_its_input, "f32", 1)
suite.check("recompute: in bf16 a layer takes two halves of a tensor", layer_is_its_input, "bf16", 2)
suite.check("recompute: one gather for a block's backward", gathers)
suite.finish()
