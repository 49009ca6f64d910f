#!/usr/bin/env python3
"""Parameters and tokens in tiles: the same training but for rounding, and the same bits wherever the tiles lie.

gpt2 and llama of models/tiny and models of models/gpt.py (tied and untied heads, tables, weights of every linear layer in tiles), with --tile, --tile-tokens, both and without:
losses within 1e-4, first gradients within 1e-5 of their norm. All stages, placements and numbers of micro-steps' own runs of one tiled plan agree to the bit. A checkpoint
of a tiled run resumes untiled, and the reverse; exports and gradients have the whole parameters' names and shapes.
"""
import json

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser
from safetensors.numpy import load_file, save_file

from harness import TINY, Suite, expect, relative

STEPS = 5
suite = Suite(__doc__)
kept = {}  # runs that others are compared with

EVERYWHERE = ["--offload-params", "disk", "--offload-optimizer", "disk", "--offload-activations", "disk"]


def data_of(name, vocabulary, length):
    rng = np.random.default_rng(5)
    tokens = rng.integers(0, vocabulary, size=(24, length)).astype(np.int64)
    labels = np.where(rng.random(tokens.shape) < 0.2, -100, np.roll(tokens, -1, axis=1))  # some do not count
    save_file({"input_ids": tokens, "labels": labels}, suite.work / f"{name}.safetensors")


def trained(name, flags, run_flags=(), world=1, zeroc=(), parts=None):
    """Parameters, first gradients and losses; `parts`: of how many tiles each parameter has to be that is in any."""
    suite.zeroc(MODELS[name][0], "one.plan", *MODELS[name][1], *flags, *zeroc, "--world", world, "--quiet")
    facts = json.loads(suite.run([suite.bin / "zero-inspect", "one.plan", "--json"]).stdout)
    if parts is not None:
        found = {p["name"]: len(p["pieces"]) for p in facts["parameters"] if len(p["pieces"]) > 1}
        expect(found == parts, f"in tiles are {found}, not {parts}")
    suite.run([suite.bin / "zero-inspect", "one.plan", "--check"])
    disk = ["--disk-path", suite.work / "disk"] if "disk" in flags else []
    suite.zerorun("one.plan", "--data", f"{name}.safetensors", "--steps", STEPS, "--lr", "1e-3", "--seed", 3, "--threads", 1, "--export", "one.safetensors",
                  "--gradients", "gradients.safetensors", "--metrics", "one.jsonl", *disk, *run_flags, world=world)
    return load_file(suite.work / "one.safetensors"), load_file(suite.work / "gradients.safetensors"), suite.losses("one.jsonl")


def close(name, tiles, parts, run_flags=(), zeroc=()):
    whole = trained(name, [], run_flags, zeroc=zeroc, parts={})
    tiled = trained(name, tiles, run_flags, zeroc=zeroc, parts=parts)
    expect(len(whole[2]) == STEPS == len(tiled[2]), "a run lost a step")
    far = max(relative(a, b) for a, b in zip(tiled[2], whole[2]))
    expect(far <= 1e-4, f"a loss is off by {far:.1e}: {tiled[2]}, untiled {whole[2]}")
    expect({n: v.shape for n, v in tiled[1].items()} == {n: v.shape for n, v in whole[1].items()}, "gradients of other names or shapes")
    square = lambda arrays: float(np.sqrt(sum(np.sum(np.square(a, dtype=np.float64)) for a in arrays)))
    error = square(tiled[1][n] - whole[1][n] for n in whole[1]) / square(whole[1].values())
    worst = max((relative_norm(tiled[1][n], whole[1][n]) for n in parts), default=0)
    expect(error <= 1e-5 and worst <= 1e-5, f"first gradients are off by {error:.1e} of their norm, those of a parameter in tiles by {worst:.1e}")
    return f"losses within {far:.0e}, gradients within {error:.0e}"


def relative_norm(a, b):
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


def same(name, tiles, world, flags, run_flags=(), zeroc=()):
    """The bits of the resident run at stage 0 of the same tiled model, ranks and micro-steps."""
    key = (name, tuple(tiles), world, tuple(run_flags), tuple(zeroc))
    if key not in kept:
        kept[key] = trained(name, tiles, run_flags, world, zeroc)
    found, wanted = trained(name, [*tiles, *flags], run_flags, world, zeroc), kept[key]
    expect(found[2] == wanted[2], f"losses {found[2]}, resident at stage 0 {wanted[2]}")
    for a, b, what in zip(found, wanted, ("parameters", "gradients")):
        different = [n for n in b if a[n].tobytes() != b[n].tobytes()]
        expect(set(a) == set(b) and not different, f"{len(different)} {what} differ from those at stage 0, such as {min(different, default='')}")
    return f"{len(found[0])} parameters"


def logits_kept(name, tiles, budget, kept=True, zeroc=()):
    """Under a budget logits of tiles wait for backward, or are made again where they have no room: the bits are the same."""
    outcome = same(name, tiles, 1, ["--device-memory", budget], zeroc=zeroc)
    why = suite.run([suite.bin / "zero-inspect", "one.plan", "--why"]).stdout
    lines = [line for line in why.splitlines() if line.startswith("logits: kept for backward")]
    expect(len(lines) == kept, f"--why says of logits {lines}")
    return f"{outcome}, {lines[0].split('(')[0] if lines else 'made again'}"


def left_alone(name, parts, budget):
    """As many tiles as --tile asks for, where tokens are cut as a budget takes it."""
    suite.zeroc(MODELS[name][0], "one.plan", *MODELS[name][1], "--tile", parts, "--tile-tokens", "auto", "--device-memory", budget)
    why = suite.run([suite.bin / "zero-inspect", "one.plan", "--why"]).stdout
    expect("\ntiles of tokens: " in why, "no tokens are cut")
    expect(f"(--tile allows 1/{parts} of the largest parameter)" in why, f"--why says {[line for line in why.splitlines() if line.startswith('tiles: ')]}")
    return f"1/{parts}"


def needs_itself():
    """A kernel of several results, one of which a product needs that another one is made of: they are far apart, and clusters do not look so far."""
    random = np.random.default_rng(0)
    shapes = {"p1": (6, 3, 2), "p48": (2, 8), "p50": (8, 2), "p57": (6, 3), "p63": (2, 4), "p65": (4,), "t88": (6, 4, 3, 3), "t60": (3, 3), "k55": (), "k78": (3, 3), "k84": (6, 3, 2)}
    weights = {name: (0.3 * random.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    weights["t69"] = weights["p63"].T.copy()
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[3, 4, 5, 6] x) => (float loss) {
      t49 = MatMul(p1, p48)
      t51 = MatMul(t49, p50)
      t52 = Add(p1, t51)
      t53 = Transpose<perm = [0, 2, 1]>(t52)
      t54 = MatMul(t52, t53)
      t56 = Mul(t54, k55)
      t61 = Einsum<equation = "abc,ar,rc->br">(t56, p57, t60)
      t62 = ReduceSumSquare<axes = [0, 2], keepdims = 1>(t52)
      t64 = MatMul(t52, p63)
      t66 = Add(t64, p65)
      t67 = Sigmoid(t66)
      t68 = Mul(t66, t67)
      t70 = MatMul(t68, t69)
      t71 = Add(t52, t70)
      t79 = Mul(t61, k78)
      t80 = ReduceMean<keepdims = 0>(t79)
      t82 = ReduceMean<keepdims = 0>(t62)
      t83 = Add(t80, t82)
      t85 = Mul(t71, k84)
      t86 = ReduceMean<keepdims = 0>(t85)
      t87 = Add(t83, t86)
      t89 = ReduceMean<keepdims = 0>(t88)
      loss = Add(t87, t89)
    }""")
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    onnx.save(model, suite.work / "itself.onnx")
    save_file({"x": np.zeros((3, 4, 5, 6), np.float32)}, suite.work / "itself.safetensors")
    found = []
    for flags in ([], ["--tile-tokens", 2]):
        suite.zeroc("itself.onnx", "itself.plan", "-q", "--loss", "output:loss", "--train", "^[ptk]", *flags)
        suite.zerorun("itself.plan", "--data", "itself.safetensors", "--steps", 1, "--gradients", "itself-gradients.safetensors")
        found.append(load_file(suite.work / "itself-gradients.safetensors"))
    apart = max(relative_norm(found[1][name], gradient) for name, gradient in found[0].items())
    expect(set(found[0]) == set(found[1]) and apart < 1e-5, f"gradients are off by {apart:.1e}")
    return f"gradients within {apart:.0e}"


def resumed(name, first, second, world=1):
    """Some steps with the first flags, the others with the second, beside all of them with the second."""
    losses = []
    for steps, flags in ((3, first), (6, second)):
        suite.zeroc(MODELS[name][0], "part.plan", *MODELS[name][1], *flags, "--world", world, "--quiet")
        suite.zerorun("part.plan", "--data", f"{name}.safetensors", "--steps", steps, "--lr", "1e-3", "--threads", 1, "--checkpoint", "kept",
                      "--resume", "kept", "--metrics", "part.jsonl", "--export", "part.safetensors", world=world)
        losses += suite.losses("part.jsonl")[-3:]
    suite.run(["rm", "-r", "kept"])
    suite.zerorun("part.plan", "--data", f"{name}.safetensors", "--steps", 6, "--lr", "1e-3", "--threads", 1, "--metrics", "part.jsonl",
                  "--export", "whole.safetensors", world=world)
    far = max(relative(a, b) for a, b in zip(losses, suite.losses("part.jsonl")))
    expect(far <= 1e-4, f"a loss is off by {far:.1e}")
    a, b = (load_file(suite.work / file) for file in ("part.safetensors", "whole.safetensors"))
    apart = max(relative_norm(a[n], b[n]) for n in b)
    expect(set(a) == set(b) and apart <= 1e-2, f"parameters are off by {apart:.1e}") # Adam's first steps take the sign of noise for large
    return f"losses within {far:.0e}, parameters within {apart:.0e}"


def capped(name, of):
    """As published models do to each of their logits: a scale, a cap and, here, a bias."""
    model = onnx.load(suite.work / of)
    graph, logits = model.graph, model.graph.output[0].name
    graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in (
        ("scale", np.float32(2)), ("cap", np.float32(1.5)),
        ("lm_head.bias", np.random.default_rng(6).normal(0, 0.1, graph.output[0].type.tensor_type.shape.dim[-1].dim_value).astype(np.float32))))
    for node in graph.node:
        node.output[:] = ["products" if o == logits else o for o in node.output]
    for kind, inputs, result in (("Mul", ["products", "scale"], "scaled"), ("Div", ["scaled", "cap"], "part"), ("Tanh", ["part"], "tanh"),
                                 ("Mul", ["tanh", "cap"], "capped"), ("Add", ["capped", "lm_head.bias"], logits)):
        graph.node.append(helper.make_node(kind, inputs, [result]))
    onnx.save(model, suite.work / f"{name}.onnx")


suite.start()
suite.gpt("untied.onnx", "--layers", "1", "--hidden", "48", "--heads", "2", "--vocab", "515", "--seq", "12", "--batch", "2", "--untied")
suite.gpt("tied.onnx", "--layers", "2", "--hidden", "40", "--heads", "2", "--vocab", "301", "--seq", "10", "--batch", "2", "--tied")
suite.gpt("long.onnx", "--layers", "1", "--hidden", "16", "--heads", "2", "--vocab", "301", "--seq", "24", "--batch", "2", "--tied")
# Of more tokens what is computed from a number of each is large enough to be made again.
suite.gpt("many.onnx", "--layers", "1", "--hidden", "16", "--heads", "2", "--vocab", "9001", "--seq", "512", "--batch", "4", "--tied")
capped("capped", "untied.onnx")
MODELS = {name: (suite.work / f"{name}.onnx", []) for name in ("untied", "tied", "long", "many", "capped")}
for model, file in {"gpt2": "dynamo_sdpa_dyn.onnx", "llama": "ts17_eager_dyn.onnx"}.items():
    MODELS[model] = (TINY / model / file, ["--bind", f"batch=1,seq={suite.tiny_data(model)}"])
data_of("untied", 515, 12)
data_of("capped", 515, 12)
data_of("tied", 301, 10)
data_of("long", 301, 24)
data_of("many", 9001, 512)
LAYER = ("attn.c_attn", "mlp.c_fc", "mlp.c_proj")
layers = lambda n, parts: {f"transformer.h.{i}.{what}.weight": k for i in range(n) for what, k in zip(LAYER, parts)}
GPT2 = {"lm_head.weight": 4, **layers(2, (2, 3, 3))}
LLAMA = {"model.embed_tokens.weight": 3, "onnx::MatMul_782": 3, **{f"onnx::MatMul_{n}": 2 for n in (751, 752, 753, 779, 780, 781)}}  # the head by columns
UNTIED = {"transformer.wte.weight": 4, "lm_head.weight": 4, **layers(1, (2, 2, 2))}
suite.check("tile: gpt2, the table tied to the head", close, "gpt2", ["--tile", 4], GPT2)
suite.check("tile: gpt2, smoothed labels", close, "gpt2", ["--tile", 4], GPT2, zeroc=["--label-smoothing", "0.1"])
suite.check("tile: llama, head by columns, smoothed labels", close, "llama", ["--tile", 3], LLAMA, zeroc=["--label-smoothing", "0.3"])
suite.check("tile: llama, head by columns, clipped", close, "llama", ["--tile", 3], LLAMA, ["--clip", "0.5"])
suite.check("tile: own head, labels that do not count, two micro-steps", close, "untied", ["--tile", 4], UNTIED, zeroc=["--accumulate", 2])
suite.check("tile: 2048 tokens of a large table", close, "many", ["--tile", 4], {"transformer.wte.weight": 4})
suite.check("tile: capped logits", close, "capped", ["--tile", 4], UNTIED)
suite.check("tile: capped logits, smoothed labels", close, "capped", ["--tile", 4], UNTIED, zeroc=["--label-smoothing", "0.1"])
suite.check("tile: capped logits, tokens and parameters", close, "capped", ["--tile", 4, "--tile-tokens", 5], UNTIED)
for parts in ("off", 4):
    suite.check(f"tile: same bits: 2048 tokens of a large table, --tile {parts}, optimizer on disk", same, "many", ["--tile", parts], 1, ["--offload-optimizer", "disk"], [], ["--clip", "never"])
for flags in (["--recompute", "none"], ["--recompute", "full"]):
    suite.check(f"tile: same bits: 2048 tokens of a large table, --tile 8 --tile-tokens 1024 {' '.join(flags)}", same, "many", ["--tile", 8, "--tile-tokens", 1024], 1, flags)
for parts, budget in ((2, "10M"), (8, "8M")):
    suite.check(f"tile: --tile {parts} with tokens cut under a budget", left_alone, "many", parts, budget)
for model in ("gpt2", "llama", "tied"):
    suite.check(f"tile: tokens, {model}", close, model, ["--tile-tokens", 5], {})
suite.check("tile: tokens one by one, smoothed labels", close, "gpt2", ["--tile-tokens", 1], {}, zeroc=["--label-smoothing", "0.1"])
suite.check("tile: tokens, two micro-steps", close, "untied", ["--tile-tokens", 7], {}, zeroc=["--accumulate", 2])
suite.check("tile: tokens and parameters, gpt2", close, "gpt2", ["--tile-tokens", 5, "--tile", 4], GPT2)
suite.check("tile: tokens and parameters, smoothed labels", close, "gpt2", ["--tile-tokens", 5, "--tile", 4], GPT2, zeroc=["--label-smoothing", "0.1"])
suite.check("tile: tokens and parameters, llama", close, "llama", ["--tile-tokens", 5, "--tile", 3], LLAMA)
for tiles in (["--tile", 5], ["--tile-tokens", 6]):
    for flags, run_flags, zeroc, world in (
        (EVERYWHERE, [], [], 1),
        (EVERYWHERE, ["--clip", "0.7"], ["--accumulate", 2], 1),
        (["--stage", 1], [], [], 2),
        (["--stage", 2], [], [], 2),
        (["--stage", 3], [], [], 2),
        (["--stage", 3, *EVERYWHERE], [], [], 2),
        (["--recompute", "none"], [], [], 2),
        (["--recompute", "full"], [], [], 2),
    ):
        title = f"tile: same bits: {' '.join(str(f) for f in [*tiles, *flags, *zeroc, *run_flags])}, {world} ranks"
        suite.check(title, same, "tied", tiles, world, flags, run_flags, zeroc)
suite.check("tile: same bits: llama at stage 3 on disk, 2 ranks", same, "llama", ["--tile", 3], 2, ["--stage", 3, *EVERYWHERE], ["--clip", "0.5"])
suite.check("tile: same bits: llama, tokens and parameters, stage 3 on disk, 2 ranks", same, "llama", ["--tile", 3, "--tile-tokens", 6], 2,
            ["--stage", 3, *EVERYWHERE], ["--clip", "0.5"])
suite.check("tile: same bits: tokens in bf16, all made again, stage 3 on disk, 2 ranks", same, "llama", ["--tile-tokens", 6], 2,
            ["--stage", 3, "--recompute", "full", *EVERYWHERE], [], ["--precision", "bf16"])
suite.check("tile: same bits: smoothed labels at stage 3, 2 ranks", same, "tied", ["--tile", 5], 2, ["--stage", 3], [], ["--label-smoothing", "0.1"])
for model, least in {"tied": "360K", "untied": "540K"}.items():
    for budget in ("1G", least):
        suite.check(f"tile: logits kept, {model} under {budget}", logits_kept, model, ["--tile", 5], budget)
for parts in (2, 3): # a row of so few, whose kernel is another one
    suite.check(f"tile: logits of {parts} tiles kept, 2048 tokens", logits_kept, "many", ["--tile", parts], "90M")
suite.check("tile: more logits than their weights' gradient are kept", logits_kept, "long", ["--tile", 5], "200K")
suite.check("tile: and made again where they have no room", logits_kept, "long", ["--tile", 5], "150K", False)
suite.check("tile: logits kept, not over micro-steps", logits_kept, "tied", ["--tile", 5], "1G", False, ["--accumulate", 2])
suite.check("tile: a kernel whose results need each other", needs_itself)
suite.check("tile: begun whole, resumed in tiles", resumed, "tied", [], ["--tile", 4])
suite.check("tile: begun in tiles, resumed whole", resumed, "tied", ["--tile", 4], ["--stage", 3], 2)
suite.finish()
