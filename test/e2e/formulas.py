#!/usr/bin/env python3
"""zero-inspect on GPT-2 124M agrees with the ZeRO formulas.

Per rank, f32 with Adam, P parameters, N ranks: 4P bytes of parameters (4P/N at stage 3), 4P of gradients (4P/N from stage 2), 8P of optimizer state
(8P/N from stage 1); sent per step 2P elements x (N-1)/N, 3P at stage 3. Parameters, state and volume equal the formula plus a padding below
0.1 %; gradients may lie below it, because they are consumed as they are produced.
"""
import json

from harness import Suite, expect

P = 124_439_808
suite = Suite(__doc__)


def within(what, have, formula, below=False):
    expect(have <= formula * 1.001, f"{what}: {have:,} bytes are more than the {formula:,.0f} of the formula and 0.1 %")
    expect(below or have >= formula - 1, f"{what}: {have:,} bytes are fewer than the {formula:,.0f} of the formula")


def agrees(world, stage, accumulate):
    suite.zeroc("gpt2.onnx", "x.plan", "--init", "random", "--world", world, "--stage", stage, "--accumulate", accumulate)
    facts = json.loads(suite.run([suite.bin / "zero-inspect", "x.plan", "--json"]).stdout)
    expect(facts["parameter_elements"] == P, f"{facts['parameter_elements']:,} parameters, not {P:,}")
    memory = facts["memory"]
    kinds = memory["persistent"]
    parameters = 4 * P / (world if stage == 3 else 1)
    gradients = 4 * P / (world if stage >= 2 else 1)
    states = 8 * P / (world if stage >= 1 else 1)
    within("parameters", kinds["parameter"], parameters)
    within("optimizer state", kinds["optimizer"], states)
    most = kinds.get("gradient", 0) + max(p["largest"].get("gradient", 0) for p in memory["programs"].values())
    within("gradients", most, gradients, below=True)
    within("all three", kinds["parameter"] + kinds["optimizer"] + most, parameters + gradients + states, below=True)
    sent = 4 * P * (3 if stage == 3 else 2) * (world - 1) / world
    # with accumulation a step gathers (stage 3) and reduces once per micro-step
    if accumulate == 1:
        within("sent per step", facts["communication"]["bytes_sent"], sent)
    expect(memory["padding_bytes"] <= 4 * P * 0.001, f"padding is {memory['padding_bytes']:,} bytes")
    suite.run([suite.bin / "zero-inspect", "x.plan", "--check"])
    return (f"parameters {kinds['parameter'] / parameters:.5f}, optimizer {kinds['optimizer'] / states:.5f}, gradients {most / gradients:.3f} "
            f"of the formula, padding {memory['padding_bytes']:,} bytes")


suite.start()
suite.gpt("gpt2.onnx", "--batch", "1", "--seq", "64", "--positions", "1024", "--no-weights")
for world in (4, 64):
    for stage in range(4):
        suite.check(f"formulas: {world} ranks, stage {stage}", agrees, world, stage, 1)
suite.check("formulas: 4 ranks, stage 2, 4 micro-steps", agrees, 4, 2, 4)
suite.finish()
