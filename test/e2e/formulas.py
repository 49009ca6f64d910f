#!/usr/bin/env python3
"""zero-inspect on GPT-2 124M agrees with the ZeRO formulas.

Per rank, f32 with Adam, P parameters, N ranks: 4P bytes of parameters (4P/N at stage 3), 4P of gradients (4P/N from stage 2), 8P of optimizer state
(8P/N from stage 1); sent per step 2P elements x (N-1)/N, 3P at stage 3. Parameters, state and volume equal the formula plus a padding below
0.1 %. Gradients may lie below it: those at rest are nothing with one micro-step, because each is consumed as it is produced. On their way to
the ranks that own them whole buckets exist for a while at every stage; the formulas leave such buffers out, here they are bounded and shown.

In bf16 the 4P bytes of masters go with the optimizer's state from stage 1 on (4P/N), and 2P of compute copies beside them are what is whole (2P/N at
stage 3) and what travels: 2P bytes instead of 4P wherever parameters do. At stage 0 masters are the parameters and nothing else is kept: a bucket's copy
exists around its uses. With --reduce-type bf16 gradients are reduced in 2P bytes.

Of the table of the vocabulary ranks exchange rows: those of all tokens where they are looked up at stage 3, in place of a gather of the table, and those
that lookups add to its gradient (which is f32 then), beside the sum of what the output projection adds.
"""
import json

from harness import Suite, expect

P = 124_439_808
TOKENS, VOCAB, HIDDEN = 64, 50257, 768  # of a rank
suite = Suite(__doc__)


def within(what, have, formula, below=False):
    expect(have <= formula * 1.001, f"{what}: {have:,} bytes are more than the {formula:,.0f} of the formula and 0.1 %")
    expect(below or have >= formula - 1, f"{what}: {have:,} bytes are fewer than the {formula:,.0f} of the formula")


def agrees(world, stage, accumulate, precision="f32", reduced="f32"):
    suite.zeroc("gpt2.onnx", "x.plan", "--init", "random", "--precision", precision, "--reduce-type", reduced, "--world", world, "--stage", stage, "--accumulate", accumulate)
    facts = json.loads(suite.run([suite.bin / "zero-inspect", "x.plan", "--json"]).stdout)
    expect(facts["parameter_elements"] == P, f"{facts['parameter_elements']:,} parameters, not {P:,}")
    memory = facts["memory"]
    kinds = memory["persistent"]
    half = precision == "bf16"
    read = (2 if half else 4) * P  # bytes of parameters as forward and backward read them
    copies = half and stage > 0  # are kept
    parameters = (read if copies else 4 * P) / (world if stage == 3 else 1)
    gradients = 4 * P / (world if stage >= 2 else 1)
    states = (12 if copies else 8) * P / (world if stage >= 1 else 1)
    within("parameters", kinds["parameter"], parameters)
    within("optimizer state", kinds["optimizer"], states)
    rest = kinds.get("gradient", 0)
    within("gradients at rest", rest, gradients, below=True)
    within("all three", kinds["parameter"] + kinds["optimizer"] + rest, parameters + gradients + states, below=True)
    if half and not copies: # the table of the vocabulary, and a neighbour
        most = max(p["largest"].get("gathered", 0) for p in memory["programs"].values())
        rounded = sorted((2 * b["elements"] for b in facts["buckets"]), reverse=True)
        expect(0 < most <= rounded[0] + 2 * rounded[1], f"copies take {most:,} bytes at once, more than the largest bucket's and two others'")
    moving = max(p["largest"].get("gradient", 0) for name, p in memory["programs"].items() if not name.endswith("_clip"))
    sizes = sorted((4 * b["elements"] for b in facts["buckets"]), reverse=True)
    # the embedding is also the head: its gradient is open from the first to the last step of backward, beside the buckets under way
    # what travels in bf16 lies beside its sum in f32, which stage 0 gathers whole
    beside = sizes[0] / 2 if reduced == "bf16" else 0
    expect(moving <= sizes[0] + 4 * sizes[1] + beside, f"gradients on their way: {moving:,} bytes, more than the largest bucket and four others")
    # the variant that waits for the global norm keeps every reduced shard until the norm is known
    waiting = max(p["largest"].get("gradient", 0) for name, p in memory["programs"].items() if name.endswith("_clip"))
    expect(waiting <= sum(sizes) / world + sizes[0] + 4 * sizes[1] + beside, f"gradients that wait for the norm: {waiting:,} bytes, more than all shards and the buckets under way")
    sent = ((2 if reduced == "bf16" else 4) * P + (2 * read if stage == 3 else read if stage else 4 * P)) * (world - 1) / world
    rows = (world - 1) * TOKENS * HIDDEN
    if reduced == "f32": sent += rows * (2 if half else 4)
    if stage == 3: sent += 4 * rows - VOCAB * HIDDEN * (2 if half else 4) * (world - 1) / world
    # with accumulation a step gathers (stage 3) and reduces once per micro-step
    if accumulate == 1:
        # at stage 3 the bucket at the turn from forward to backward travels once instead of twice
        have = facts["communication"]["bytes_sent"]
        within("sent per step", have, sent, below=stage == 3)
        expect(have >= 0.98 * sent, f"only {have:,} bytes are sent per step, the formula says {sent:,.0f}")
    expect(memory["padding_bytes"] <= 4 * P * 0.001, f"padding is {memory['padding_bytes']:,} bytes")
    suite.run([suite.bin / "zero-inspect", "x.plan", "--check"])
    return (f"parameters {kinds['parameter'] / parameters:.5f}, optimizer {kinds['optimizer'] / states:.5f}, gradients {rest / gradients:.5f} "
            f"of the formula, padding {memory['padding_bytes']:,} bytes, gradients on their way {moving / (4 * P):.3f} x 4P")


suite.start()
suite.gpt("gpt2.onnx", "--batch", "1", "--seq", "64", "--positions", "1024", "--no-weights")
for world in (4, 64):
    for stage in range(4):
        suite.check(f"formulas: {world} ranks, stage {stage}", agrees, world, stage, 1)
suite.check("formulas: 4 ranks, stage 2, 4 micro-steps", agrees, 4, 2, 4)
for stage in range(4):
    suite.check(f"formulas: 4 ranks, stage {stage}, bf16", agrees, 4, stage, 1, "bf16")
    suite.check(f"formulas: 4 ranks, stage {stage}, gradients reduced in bf16", agrees, 4, stage, 1, "f32" if stage % 2 else "bf16", "bf16")
suite.finish()
