#!/usr/bin/env python3
"""Samples of several lengths under causal triangles and sliding windows: a query sees the tokens that its position and the padding allow.

What is under the padding, to the right or to the left of a sample, changes neither losses nor gradients; samples without padding train to the bit like a
model without an attention_mask; and no plan holds a number for each pair of positions. Where labels of padding count, losses and gradients are those of the
same attention written out as products and a softmax. The same plans for a GPU, in its double, follow those of the processor.
The first tokens of a long sequence, whose mask is not computed but compared, train like a short one.
"""
import numpy as np
import onnx
from safetensors.numpy import load_file, save_file

from harness import Suite, expect, relative

SEQ, BATCH, STEPS, VOCAB = 90, 2, 3, 64
LONG = 4200  # more pairs than are looked at
SIZE = ["--layers", 2, "--hidden", 32, "--heads", 4, "--vocab", VOCAB, "--seq", SEQ, "--batch", BATCH]
MODELS = {"gpt": [], "llama": ["--arch", "llama", "--kv-heads", 2], "llama, window of 7": ["--arch", "llama", "--kv-heads", 2, "--window", 7],
          "llama, window of 70": ["--arch", "llama", "--window", 70]}
suite = Suite(__doc__)


def samples(padding):
    """input_ids, labels and the mask of samples filled up to the right, to the left, or not at all; labels of padding do not count."""
    rng = np.random.default_rng(7)
    tokens, lengths = rng.integers(0, VOCAB, (STEPS * BATCH, SEQ)), rng.integers(SEQ // 3, SEQ, (STEPS * BATCH, 1))
    place = np.arange(SEQ)[None]
    real = {"right": place < lengths, "left": place >= SEQ - lengths, "none": np.ones_like(tokens, bool)}[padding]
    return tokens, np.where(real, np.roll(tokens, -1, axis=1), -100), real.astype(np.int64)


def trained(plan, tokens, labels, mask=None, env=None, world=1):
    """Losses and first gradients."""
    save_file({"input_ids": tokens, "labels": labels} | ({} if mask is None else {"attention_mask": mask}), suite.work / "data.safetensors")
    suite.zerorun(plan, "--data", "data.safetensors", "--steps", STEPS, "--lr", "1e-3", "--gradients", "g.safetensors", "--metrics", "m.jsonl",
                  *([] if env else ["--threads", 3 - world]), env=env or {}, world=world)
    return suite.losses("m.jsonl"), load_file(suite.work / "g.safetensors")


def model_of(name, padded):
    return suite.gpt(f"{name}{' padded' * padded}.onnx".replace(" ", "_"), *SIZE, *MODELS[name], *["--padded"] * padded)


def expect_same(found, wanted, why):
    different = [n for n in wanted[1] if found[1][n].tobytes() != wanted[1][n].tobytes()]
    expect(found[0] == wanted[0] and not different, f"{why}: losses {found[0]} and {wanted[0]}, {len(different)} gradients differ")


def unseen(name, precision):
    """What is under the padding is not seen, and what is not under it is."""
    suite.zeroc(model_of(name, True), "p.plan", "--precision", precision)
    schedule = suite.run([suite.bin / "zero-inspect", "p.plan", "--schedule", "--operands"]).stdout
    pairs = [line for line in schedule.splitlines() if f"x {SEQ} x {SEQ}]" in line]
    expect(not pairs, f"steps over all pairs of positions: {pairs[:2]}")
    form = f"in a window of {MODELS[name][-1]}" if "--window" in MODELS[name] else "causal"
    expect(f"{form} masked" in schedule, f"attention is not {form} and masked")
    for padding in ("right", "left"):
        tokens, labels, mask = samples(padding)
        first = trained("p.plan", tokens, labels, mask)
        other = trained("p.plan", np.where(mask, tokens, (tokens + 11) % VOCAB), labels, mask)
        expect_same(other, first, f"padding to the {padding} is seen")
        seen = trained("p.plan", tokens, labels, np.ones_like(mask))
        expect(seen[0][0] != first[0][0] or padding == "right", "padding before a sample changes nothing where it is no padding")


def written_out(model):
    """The model with probabilities that go through one operation more, so that attention stays products and a softmax."""
    graph = (file := onnx.load(model)).graph
    graph.initializer.append(onnx.numpy_helper.from_array(np.float32(-1), "below"))
    for node in [n for n in graph.node if n.op_type == "Softmax"]:
        same = onnx.helper.make_node("Max", [f"{node.output[0]} itself", "below"], [node.output[0]], f"{node.name}.same")
        node.output[0] = same.input[0]
        graph.node.insert(list(graph.node).index(node) + 1, same)
    onnx.save(file, suite.work / "written.onnx")
    return suite.work / "written.onnx"


def counted(name, precision):
    """Queries that see nothing but what a finite number hides weigh all keys alike, and pass gradients on."""
    tokens, labels, mask = samples("left")
    labels = np.roll(tokens, -1, axis=1)
    suite.zeroc(written_out(model_of(name, True)), "w.plan")
    steps = suite.run([suite.bin / "zero-inspect", "w.plan", "--schedule"]).stdout
    expect("attention " not in steps, "attention is not written out")
    suite.zeroc(model_of(name, True), "p.plan", "--precision", precision)
    wanted, found = (trained(plan, tokens, labels, mask) for plan in ("w.plan", "p.plan"))
    loss = max(relative(a, b) for a, b in zip(found[0], wanted[0]))
    error = max(float(np.linalg.norm(g - wanted[1][n]) / np.linalg.norm(wanted[1][n])) for n, g in found[1].items())
    bounds = (1e-6, 1e-5) if precision == "f32" else (3e-3, 5e-2)
    expect(loss < bounds[0] and error < bounds[1], f"losses {found[0]}, written out {wanted[0]}, gradients within {error:.0e}")
    if precision == "f32":
        suite.zeroc(model_of(name, True), "o.plan", "--recompute", "full")
        expect_same(trained("o.plan", tokens, labels, mask), found, "recomputed")
    stages = []
    for stage in (0, 3):
        suite.zeroc(model_of(name, True), "o.plan", "--precision", precision, "--world", 2, "--stage", stage)
        stages.append(trained("o.plan", tokens, labels, mask, world=2))
    expect_same(*stages, "stages 0 and 3 of two ranks")
    return f"losses within {loss:.0e}, gradients within {error:.0e}"


def blind(name, precision):
    """Where labels of padding count, queries that see nothing do not pass on more than others."""
    suite.zeroc(model_of(name, True), "p.plan", "--precision", precision)
    tokens, labels, mask = samples("left")
    size = lambda gradients: float(np.sqrt(sum(np.sum(np.square(g, dtype=np.float64)) for g in gradients.values())))
    wanted, found = (size(trained("p.plan", tokens, which, mask)[1]) for which in (labels, np.roll(tokens, -1, axis=1)))
    expect(found < 1.05 * wanted, f"gradients of norm {found:.3g}, without these labels {wanted:.3g}")
    return f"gradients of norm {found:.3g}, without these labels {wanted:.3g}"


def like_unmasked(name, precision):
    tokens, labels, mask = samples("none")
    suite.zeroc(model_of(name, True), "p.plan", "--precision", precision)
    suite.zeroc(model_of(name, False), "u.plan", "--precision", precision)
    expect_same(trained("p.plan", tokens, labels, mask), trained("u.plan", tokens, labels), "a mask of ones is not as none")


def on_gpu(name, precision):
    tokens, labels, mask = samples("left")
    flags = ["--precision", precision]
    suite.zeroc(model_of(name, True), "p.plan", *flags)
    wanted = trained("p.plan", tokens, labels, mask)
    said = suite.zeroc(model_of(name, True), "g.plan", *flags, "--target", "cuda")
    expect(("give labels there -100" in said.stdout + said.stderr) == (name != "gpt"), f"of rows that see nothing else: {said.stderr}")  # gpt hides by -inf
    found = trained("g.plan", tokens, labels, mask, env=suite.without_gpu("g.plan", model_of(name, True), *flags, "--target", "cuda"))
    far = max(relative(a, b) for a, b in zip(found[0], wanted[0]))
    expect(far < (1e-6 if precision == "f32" else 1e-3), f"losses {found[0]}, of the processor {wanted[0]}")
    return f"losses within {far:.0e}"


def long(name, padded):
    """Labels of the first tokens alone count, which see nothing of the others."""
    found = {}
    for length in (SEQ, LONG):
        model = suite.gpt(f"{length}.onnx", *SIZE, *MODELS[name], "--seq", length, "--batch", 1, "--positions", LONG, *["--padded"] * padded)
        suite.zeroc(model, "p.plan")
        schedule = suite.run([suite.bin / "zero-inspect", "p.plan", "--schedule"]).stdout
        expect(f"{length} x {length}]" not in schedule, f"a step over all pairs of {length} positions")
        rng = np.random.default_rng(3)
        tokens = rng.integers(0, VOCAB, (STEPS, LONG))
        labels = np.where(np.arange(LONG) < SEQ, np.roll(tokens, -1, axis=1), -100)
        mask = np.ones_like(tokens) if padded else None
        found[length] = trained("p.plan", *(None if x is None else x[:, :length].copy() for x in (tokens, labels, mask)))
    far = max(relative(a, b) for a, b in zip(found[LONG][0], found[SEQ][0]))
    error = max(float(np.linalg.norm(g - found[SEQ][1][n]) / np.linalg.norm(found[SEQ][1][n])) for n, g in found[LONG][1].items())
    expect(far < 1e-6 and error < 1e-5, f"losses {found[LONG][0]}, of the first tokens alone {found[SEQ][0]}, gradients within {error:.0e}")
    return f"losses within {far:.0e}, gradients within {error:.0e}"


suite.start()
for name in MODELS:
    for precision in ("f32", "bf16"):
        suite.check(f"masks: {name} {precision}, padding is not seen", unseen, name, precision)
        # the mask of gpt is -inf: its queries that see nothing have nothing to pass on
        suite.check(f"masks: {name} {precision}, padding that counts", blind if name == "gpt" else counted, name, precision)
        suite.check(f"masks: {name} {precision}, without padding", like_unmasked, name, precision)
        suite.check(f"masks: {name} {precision}, in the double of a GPU", on_gpu, name, precision)
    for padded in (False, True):
        suite.check(f"masks: {name}, {LONG} tokens{', padded' * padded}", long, name, padded)
suite.finish()
