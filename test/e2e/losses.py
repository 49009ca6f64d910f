#!/usr/bin/env python3
"""Losses of named outputs, sums of them and smoothed labels; inputs that are the same for every sample: against their formulas in numpy."""
import json

import numpy as np
import onnx
from onnx import numpy_helper, parser
from safetensors.numpy import load_file, save_file

from harness import Suite, expect, relative

suite = Suite(__doc__)
GLOBAL, LR, FEATURES, CLASSES = 8, 0.5, 6, 5
rng = np.random.default_rng(3)
LAYOUTS = [(1, 0, 1), (2, 3, 2), (4, 1, 1)]  # ranks, stage, micro-steps: the same eight samples


# ------------------------------------------------------------------------------------------------ models and runs
def save(name, text, **weights):
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>\n' + text)
    model.graph.initializer.extend(numpy_helper.from_array(value.astype(np.float32), key) for key, value in weights.items())
    onnx.checker.check_model(model)
    onnx.save(model, suite.work / f"{name}.onnx")
    return {key: value.astype(np.float32).astype(np.float64) for key, value in weights.items()}


def heads():
    """Three heads on one layer, and a loss of its own: the mean square of the layer."""
    return save("heads", """
    heads (float[batch,6] x) => (float[batch,5] start, float[batch,5] end, float[batch,2] value, float aux) {
      h = MatMul(x, w)
      start = MatMul(h, ws)
      end = MatMul(h, we)
      value = MatMul(h, wv)
      square = Mul(h, h)
      aux = ReduceMean<keepdims = 0>(square)
    }""", w=rng.normal(size=(FEATURES, 4)), ws=3 * rng.normal(size=(4, CLASSES)), we=rng.normal(size=(4, CLASSES)), wv=rng.normal(size=(4, 2)))


def run(model, layout, losses, data, *flags, steps=1, evaluate=None):
    """Metrics, gradients of the first step and final weights of plain gradient descent."""
    world, stage, micros = layout
    if "fixed" not in model:
        flags = [*flags, "--bind", f"batch={GLOBAL // world // micros}"]
    suite.zeroc(f"{model}.onnx", "plan.bin", "-q", *flags, "--world", world, "--stage", stage, "--accumulate", micros,
                "--optimizer", "sgd", *(f for loss in losses for f in ("--loss", loss)))
    for file in ("metrics.jsonl", "gradients.safetensors", "weights.safetensors"):
        (suite.work / file).unlink(missing_ok=True)
    save_file({name: np.array(value, order="C") for name, value in data.items()}, suite.work / "data.safetensors")
    extra = ["--eval-data", evaluate, "--eval-every", 1] if evaluate else []
    suite.zerorun("plan.bin", "--data", "data.safetensors", "--steps", steps, "--lr", LR, "--threads", 1, "--metrics", "metrics.jsonl", "--gradients",
                  "gradients.safetensors", "--export", "weights.safetensors", *extra, world=world)
    rows = [json.loads(line) for line in (suite.work / "metrics.jsonl").read_text().splitlines()]
    return rows, load_file(suite.work / "gradients.safetensors"), load_file(suite.work / "weights.safetensors")


def refused(model, *flags, says):
    result = suite.zeroc(f"{model}.onnx", "refused.bin", "--bind", f"batch={GLOBAL}", *flags, check=False)
    expect(result.returncode == 1 and len(result.stderr.splitlines()) == 1, f"{' '.join(flags)} is not refused with one line: {result.stderr}")
    expect(all(part in result.stderr for part in says), f"the refusal of {' '.join(flags)} is {result.stderr}")


# ------------------------------------------------------------------------------------------------ formulas
def cross_entropy(logits, labels, smoothing=0.0):
    """Mean over rows whose label is not -100, and its gradient."""
    rows, classes = logits.shape
    log = logits - logits.max(1, keepdims=True)
    log -= np.log(np.exp(log).sum(1, keepdims=True))
    target = np.full((rows, classes), smoothing / classes)
    counts = labels != -100
    target[counts, labels[counts]] += 1 - smoothing
    n = max(1, counts.sum())
    return -(target * log).sum(1)[counts].sum() / n, (np.exp(log) - target) * counts[:, None] / n


def forward(weights, data, terms, smoothing=0.0):
    """Loss and gradients of the model of heads(); terms: kind, output, weight, labels."""
    x = data["x"].astype(np.float64)
    h = x @ weights["w"]
    loss, dh, gradients = 0.0, np.zeros_like(h), {}
    for kind, output, weight, labels in terms:
        if kind == "output":
            loss += weight * (h * h).mean()
            dh += weight * 2 * h / h.size
            continue
        name = {"start": "ws", "end": "we", "value": "wv"}[output]
        y = h @ weights[name]
        if kind == "mse":
            error = y - data[labels]
            one, dy = (error**2).mean(), 2 * error / error.size
        else:
            one, dy = cross_entropy(y, data[labels], smoothing)
        loss += weight * one
        gradients[name] = weight * h.T @ dy
        dh += weight * dy @ weights[name].T
    gradients["w"] = x.T @ dh
    return loss, gradients


def samples(count):
    data = {"x": rng.normal(size=(count, FEATURES)).astype(np.float32), "value": rng.normal(size=(count, 2)).astype(np.float32)}
    for name in ("start", "end"):
        data[name] = rng.integers(0, CLASSES, count)
    data["start"][1:6] = -100  # unevenly, so that a mean of means would not do
    data["end"][count - 1] = -100
    return data


weights = data = held = None


def holds(layout, terms, inputs, smoothing=0.0, flags=(), evaluate=False):
    """Loss, gradients, the step and the held-out loss are those of the formula."""
    texts = [(f"{weight}*" if weight != 1 else "") + f"{kind}:{output}" for kind, output, weight, _ in terms]
    rename = lambda some: {"x": some["x"], **{labels: some[name] for name, labels in inputs.items()}}
    if evaluate:
        save_file({k: np.ascontiguousarray(v) for k, v in rename(held).items()}, suite.work / "held.safetensors")
    rows, gradients, trained = run("heads", layout, texts, rename(data), *flags, evaluate="held.safetensors" if evaluate else None)
    loss, wanted = forward(weights, rename(data), terms, smoothing)
    expect(relative(rows[0]["loss"], loss) < 2e-6, f"the loss is {rows[0]['loss']}, by the formula {loss}")
    each = [forward(weights, rename(data), [(kind, output, 1, labels)], smoothing)[0] for kind, output, _, labels in terms]
    told = rows[0].get("losses", each[:1])
    expect(len(told) == len(each) and all(relative(a, b) < 2e-6 for a, b in zip(told, each)), f"the losses are {told}, by the formula {each}")
    expect(set(gradients) == set(wanted), f"gradients of {sorted(gradients)}, not of {sorted(wanted)}")
    worst = max(np.abs(gradients[n] - wanted[n]).max() / np.abs(wanted[n]).max() for n in wanted)
    expect(worst < 5e-6, f"a gradient is off by {worst:.1e}")
    after = {n: weights[n] - LR * wanted.get(n, 0) for n in weights}
    expect(all(np.abs(trained[n] - after[n]).max() < 1e-5 for n in trained), "the step is not that of the gradient")
    if evaluate:
        whole = forward(after, {n: v[: len(v) // GLOBAL * GLOBAL] for n, v in rename(held).items()}, terms, smoothing)[0]
        expect(relative(rows[0]["eval_loss"], whole) < 1e-5, f"the held-out loss is {rows[0]['eval_loss']}, by the formula {whole}")
    return f"gradients within {worst:.0e}"


# ------------------------------------------------------------------------------------------------ losses
def one_of_several(layout):
    return holds(layout, [("cross_entropy", "end", 1, "labels")], {"end": "labels"})


def smoothed(layout):
    return holds(layout, [("cross_entropy", "start", 1, "labels")], {"start": "labels"}, 0.1, ["--label-smoothing", "0.1"], evaluate=True)


def smoothed_in_tiles(layout):
    """Of 40 classes in tiles of 16: labels first and last in one, and none."""
    wide = save("wide", "wide (float[batch,6] x) => (float[batch,40] start) {\n h = MatMul(x, w)\n start = MatMul(h, ws)\n}", w=rng.normal(size=(FEATURES, 4)), ws=3 * rng.normal(size=(4, 40)))
    some = {"x": data["x"], "labels": np.array([0, 15, 16, -100, 31, 32, 39, 7])}
    for smoothing in (0.1, 1):
        rows, gradients, _ = run("wide", layout, ["cross_entropy:start"], some, "--label-smoothing", smoothing, "--tile", 4)
        pieces = {p["name"]: len(p["pieces"]) for p in json.loads(suite.run([suite.bin / "zero-inspect", "plan.bin", "--json"]).stdout)["parameters"]}
        expect(pieces == {"w": 1, "ws": 3}, f"pieces of parameters: {pieces}")
        loss, wanted = forward(wide, some, [("cross_entropy", "start", 1, "labels")], smoothing)
        expect(relative(rows[0]["loss"], loss) < 2e-6, f"the loss is {rows[0]['loss']}, by the formula {loss}")
        worst = max(np.abs(gradients[n] - wanted[n]).max() / np.abs(wanted[n]).max() for n in wanted)
        expect(set(gradients) == set(wanted) and worst < 5e-6, f"a gradient of {sorted(gradients)} is off by {worst:.1e}")
    return f"gradients within {worst:.0e}"


def sum_of(layout):
    terms = [("cross_entropy", "start", 1, "labels.start"), ("cross_entropy", "end", 0.5, "labels.end"), ("mse", "value", 2, "labels.value"), ("output", "aux", 0.25, None)]
    return holds(layout, terms, {n: f"labels.{n}" for n in ("start", "end", "value")}, 0.2, ["--label-smoothing", "0.2"], evaluate=True)


def with_own_loss(layout):
    return holds(layout, [("cross_entropy", "start", 1, "labels"), ("output", "aux", -0.25, None)], {"start": "labels"}, evaluate=True)


OWN = {  # losses that the model computes of labels that it reads, as exporters and people write them
    "of scores": "loss = SoftmaxCrossEntropyLoss<ignore_index = -100>(a, labels)",
    "of logarithms": """
      logs = LogSoftmax<axis = 1>(a)
      loss = NegativeLogLikelihoodLoss<ignore_index = -100>(logs, labels)""",
    "row by row": """
      each = SoftmaxCrossEntropyLoss<ignore_index = -100, reduction = "none">(a, labels)
      sum = ReduceSum<keepdims = 0>(each)
      loss = Div(sum, count)""",
    **{f"by a lookup, {choice}": f"""
      logs = LogSoftmax<axis = 1>(a)
      is = Equal(labels, none)
      counts = Not(is)
      safe = {choice}
      column = Unsqueeze(safe, one)
      picked = GatherElements<axis = 1>(logs, column)
      each = Squeeze(picked, one)
      mask = Cast<to = 1>(counts)
      kept = Mul(each, mask)
      sum = ReduceSum<keepdims = 0>(kept)
      negative = Neg(sum)
      loss = Div(negative, count)""" for choice in ("Where(is, zero, labels)", "Where(counts, labels, zero)")},
    "of rows of places": """
      padded = Pad(labels, behind, none)
      next = Slice(padded, one, many)
      loss = SoftmaxCrossEntropyLoss<ignore_index = -100>(a, next)"""}


def own_labels(body):
    """Labels of a loss of the model's own: what is no class and not ignored is refused, as PyTorch does."""
    w = save("own", f"""
    own (float[8,6] x, int64[8] labels) => (float loss)
    <int64 none = {{-100}}, int64 zero = {{0}}, int64[1] one = {{1}}, int64[1] many = {{100}}, int64[2] behind = {{0, 1}}, float count = {{6}}> {{
      a = MatMul(x, w)
      {body}
    }}""", w=rng.normal(size=(FEATURES, CLASSES)))["w"]
    said = suite.zeroc("own.onnx", "plan.bin", "--loss", "output:loss").stdout
    expect("labels i64 samples 0 to 4, or -100 to be ignored" in " ".join(said.split()), f"labels are not told: {said[:1000]}")
    x, labels = rng.normal(size=(GLOBAL, FEATURES)).astype(np.float32), np.array([0, 4, -100, 2, 2, 1, -100, 3])
    def trained(labels):
        save_file({"x": x, "labels": labels}, suite.work / "data.safetensors")
        return suite.zerorun("plan.bin", "--data", "data.safetensors", "--steps", 1, "--lr", 0, "--metrics", "metrics.jsonl", check=False)
    result = trained(labels)
    expect(result.returncode == 0, f"good labels are refused: {result.stderr}")
    shifted = np.append(labels[1:], -100) if "next" in body else labels
    loss = cross_entropy(x @ w, shifted)[0]
    have = suite.losses("metrics.jsonl")[0]
    expect(relative(have, loss) < 2e-6, f"the loss is {have}, by the formula {loss}")
    for bad in (CLASSES, -1, -101):
        labels[5] = bad
        result = trained(labels)
        words = f"'data.safetensors': sample 5 of 'labels' has the value {bad} at position 0, but the model knows 5 of them, 0 to 4 (and -100 for ignored labels)"
        expect(result.returncode == 1 and words in result.stderr, f"a label of {bad}, exit {result.returncode}: {result.stderr}")


def own_labels_twice():
    """Of two losses that ignore different labels neither speaks for the other; a table and a loss that read one input both do."""
    w = save("twice", """
    twice (float[8,6] x, int64[8] labels) => (float loss) {
      a = MatMul(x, w)
      one = SoftmaxCrossEntropyLoss<ignore_index = -100>(a, labels)
      two = SoftmaxCrossEntropyLoss<ignore_index = -1>(a, labels)
      loss = Add(one, two)
    }""", w=rng.normal(size=(FEATURES, CLASSES)))
    said = suite.zeroc("twice.onnx", "plan.bin", "--loss", "output:loss").stdout
    expect("to be ignored" not in said, f"labels are held against one of two losses: {said[:1000]}")
    save("next", """
    next (int64[8,4] ids) => (float loss) <int64[1] first = {0}, int64[1] one = {1}, int64[1] last = {-1}, int64[1] end = {100}> {
      from = Slice(ids, first, last, one)
      to = Slice(ids, one, end, one)
      rows = Gather(table, from)
      scores = MatMul(rows, w)
      a = Transpose<perm = [0, 2, 1]>(scores)
      loss = SoftmaxCrossEntropyLoss<ignore_index = -100>(a, to)
    }""", table=rng.normal(size=(9, 4)), w=rng.normal(size=(4, 7)))
    said = suite.zeroc("next.onnx", "plan.bin", "--loss", "output:loss").stdout
    expect("ids i64 samples x 4 0 to 8 and as labels 0 to 6, or -100 to be ignored" in " ".join(said.split()), f"both are not told: {said[:1000]}")
    for bad in (7, 9):
        save_file({"ids": np.full((8, 4), bad)}, suite.work / "data.safetensors")
        result = suite.zerorun("plan.bin", "--data", "data.safetensors", "--steps", 1, check=False)
        expect(result.returncode == 1 and f"has the value {bad}" in result.stderr, f"exit {result.returncode}: {result.stderr}")


def smoothing_nothing():
    """A smoothing of 0 and a weight of 1 change no bit; smoothing is one kernel, as without."""
    inputs = {"x": data["x"], "labels": data["start"]}
    one, two = (run("heads", (1, 0, 1), ["cross_entropy:start" if not flags else "1*cross_entropy:start"], inputs, *flags, steps=3) for flags in ((), ("--label-smoothing", "0")))
    expect([r["loss"] for r in one[0]] == [r["loss"] for r in two[0]], "losses differ")
    expect(all(one[2][n].tobytes() == two[2][n].tobytes() for n in one[2]), "weights differ")
    kernels = []
    for smoothing in ("0", "0.1"):
        suite.zeroc("heads.onnx", "plan.bin", "-q", "--bind", f"batch={GLOBAL}", "--loss", "cross_entropy:start", "--label-smoothing", smoothing)
        kernels.append(suite.run([suite.bin / "zero-inspect", "plan.bin", "--schedule"]).stdout.count("cross_entropy"))
    expect(kernels[0] == kernels[1] > 0, f"{kernels} mentions of cross_entropy in the schedule")


def nothing_smoothed_counts():
    """Rows that are ignored have no loss and no gradient, smoothed or not, however large their logits."""
    inputs = {"x": data["x"].copy(), "labels": data["start"]}
    inputs["x"][1:6] *= 1e30
    rows, gradients, _ = run("heads", (1, 0, 1), ["cross_entropy:start"], {**inputs, "x": data["x"]}, "--label-smoothing", "0.3")
    same, again, _ = run("heads", (1, 0, 1), ["cross_entropy:start"], inputs, "--label-smoothing", "0.3")
    expect(rows[0]["loss"] == same[0]["loss"], f"the loss is {same[0]['loss']}, not {rows[0]['loss']}")
    expect(np.array_equal(gradients["ws"], again["ws"]), "gradients differ")


def refusals():
    shapes = ["'start' 'tensor<8x5xf32>'", "'aux' 'tensor<f32>'"]
    refused("heads", "--loss", "cross_entropy:ende", says=["no output is called 'ende'", *shapes])
    refused("heads", "--loss", "cross_entropy:aux", says=["output 'aux' cannot be the loss of cross_entropy", *shapes])
    refused("heads", "--loss", "mse:aux", says=["output 'aux' cannot be the loss of mse", *shapes])
    refused("heads", "--loss", "output:start", says=["output 'start' cannot be the loss", *shapes])
    refused("heads", says=["needs an output called 'logits' or exactly one", *shapes, "--loss cross_entropy:OUTPUT"])
    refused("heads", "--loss", "hinge:start", says=["loss 'hinge:start' is not known", "0.5*mse:OUTPUT"])
    refused("heads", "--loss", "mse:value", "--label-smoothing", "0.1", says=["label smoothing is of cross_entropy"])
    result = suite.zeroc("heads.onnx", "x.bin", "--loss", "mse:value", "--label-smoothing", "1.5", "--bind", "batch=2", check=False)
    expect(result.returncode and "--label-smoothing" in result.stderr, f"a smoothing of 1.5: {result.stderr}")
    refused("mixed", says=["output 'logits' is 'tensor<16x5xf32>', whose first dimension no input has", "'x' 'tensor<8x2x6xf32>'"])


def told():
    """zeroc says what the data file holds and what the loss is."""
    said = suite.zeroc("heads.onnx", "plan.bin", "--bind", "batch=2", "--loss", "cross_entropy:start", "--loss", "-0.5*mse:value", "--loss", "2*output:aux").stdout
    lines = [" ".join(line.split()) for line in said.splitlines()]
    for line in ("x f32 samples x 6", "labels.start i64 samples 0 to 4, or -100 to be ignored", "labels.value f32 samples x 2",
                 "loss: cross_entropy of 'start' and 'labels.start' - 0.5 * mse of 'value' and 'labels.value' + 2 * output 'aux'"):
        expect(line in lines, f"'{line}' is not said: {said[:2000]}")
    positions(False)
    said = suite.zeroc("positions.onnx", "plan.bin", "--bind", "batch=2,seq=3").stdout
    lines = [" ".join(line.split()) for line in said.splitlines()]
    for line in ("position_ids i64 1 x 3 0 to 6, the same for all samples", "mask f32 3 x 3 the same for all samples", "scale f32 scalar the same for all samples", "input_ids i64 samples x 3 0 to 6"):
        expect(line in lines, f"'{line}' is not said: {said[:2000]}")


def mixed():
    """Rows of two places of a sample, the first of all samples first: no input has their first dimension."""
    save("mixed", """
    mixed (float[batch,2,6] x) => (float[rows,5] logits) <int64[2] shape = {-1, 6}> {
      turned = Transpose<perm = [1, 0, 2]>(x)
      flat = Reshape(turned, shape)
      logits = MatMul(flat, w)
    }""", w=rng.normal(size=(FEATURES, CLASSES)))


# ------------------------------------------------------------------------------------------------ inputs that samples share
T, WIDTH, TABLE = 3, 4, 7


def positions(fixed):
    """Tokens and positions look their rows up; a mask [T, T] mixes the places, a scalar scales them. Positions come first."""
    one, batch, length = ("1", GLOBAL, T) if fixed else ("1", "batch", "seq")
    return save("positions_fixed" if fixed else "positions", f"""
    positions (int64[{one},{length}] position_ids, float[{length},{length}] mask, float scale, int64[{batch},{length}] input_ids) => (float[{batch},{length},5] logits) {{
      p = Gather(wpe, position_ids)
      t = Gather(wte, input_ids)
      e = Add(t, p)
      m = MatMul(mask, e)
      s = Mul(m, scale)
      logits = MatMul(s, head)
    }}""", wpe=rng.normal(size=(TABLE, WIDTH)), wte=rng.normal(size=(TABLE, WIDTH)), head=rng.normal(size=(WIDTH, CLASSES)))


def shares(layout, fixed=False):
    some = positions(fixed)
    ids, labels = rng.integers(0, TABLE, (GLOBAL, T)), rng.integers(0, CLASSES, (GLOBAL, T))
    inputs = {"position_ids": np.array([[4, 2, 2]]), "mask": np.tril(np.ones((T, T), np.float32)), "scale": np.array(0.5, np.float32), "input_ids": ids, "labels": labels}
    flags = [] if fixed else ["--bind", f"seq={T}"]
    rows, gradients, _ = run("positions_fixed" if fixed else "positions", layout, ["cross_entropy"], inputs, *flags)
    e = some["wte"][ids] + some["wpe"][inputs["position_ids"]]
    s = 0.5 * inputs["mask"] @ e
    loss, d = cross_entropy((s @ some["head"]).reshape(-1, CLASSES), labels.reshape(-1))
    expect(relative(rows[0]["loss"], loss) < 2e-6, f"the loss is {rows[0]['loss']}, by the formula {loss}")
    de = 0.5 * inputs["mask"].T @ (d.reshape(GLOBAL, T, CLASSES) @ some["head"].T)
    wanted = {"head": s.reshape(-1, WIDTH).T @ d, "wte": np.zeros((TABLE, WIDTH)), "wpe": np.zeros((TABLE, WIDTH))}
    np.add.at(wanted["wte"], ids, de)
    np.add.at(wanted["wpe"], inputs["position_ids"][0], de.sum(0))
    worst = max(np.abs(gradients[n] - wanted[n]).max() / np.abs(wanted[n]).max() for n in wanted)
    expect(worst < 5e-6, f"a gradient is off by {worst:.1e}")
    return f"gradients within {worst:.0e}"


def flattened(layout):
    """Logits that the model gives as rows of places, [batch * 3, 5], with labels of samples."""
    some = save("flattened", """
    flattened (float[batch,3,6] x) => (float[rows,5] logits) <int64[2] shape = {-1, 5}> {
      y = MatMul(x, w)
      logits = Reshape(y, shape)
    }""", w=rng.normal(size=(FEATURES, CLASSES)))
    x, labels = rng.normal(size=(GLOBAL, 3, FEATURES)).astype(np.float32), rng.integers(0, CLASSES, (GLOBAL, 3))
    labels[2, 1] = -100
    rows, gradients, _ = run("flattened", layout, ["cross_entropy"], {"x": x, "labels": labels})
    loss, d = cross_entropy((x @ some["w"]).reshape(-1, CLASSES), labels.reshape(-1))
    expect(relative(rows[0]["loss"], loss) < 2e-6, f"the loss is {rows[0]['loss']}, by the formula {loss}")
    worst = np.abs(gradients["w"] - x.reshape(-1, FEATURES).T @ d).max()
    expect(worst < 1e-6, f"a gradient is off by {worst:.1e}")


def shared_refusals():
    positions(False)
    suite.zeroc("positions.onnx", "plan.bin", "-q", "--bind", f"batch=1,seq={T}")
    good = {"position_ids": np.zeros((1, T), np.int64), "mask": np.ones((T, T), np.float32), "scale": np.array(1, np.float32), "input_ids": np.zeros((4, T), np.int64),
            "labels": np.zeros((4, T), np.int64)}
    for name, value, says in (("position_ids", np.zeros((4, T), np.int64), "needs [1 x 3], once for all samples"), ("position_ids", np.full((1, T), TABLE), "'position_ids' has the value 7"),
                              ("mask", None, "no tensor named 'mask'"), (None, None, None)):
        data = {n: value if n == name else v for n, v in good.items()}
        save_file({n: v for n, v in data.items() if v is not None}, suite.work / "data.safetensors")
        result = suite.zerorun("plan.bin", "--data", "data.safetensors", "--steps", 1, check=False)
        expect((result.returncode == 0) == (says is None) and (says or "") in result.stderr, f"{name} {value}: {result.stderr}")
    (suite.work / "tokens.bin").write_bytes(np.zeros(100, np.uint16).tobytes())
    result = suite.zerorun("plan.bin", "--data", "tokens.bin", "--steps", 1, check=False)
    expect(result.returncode and "which is the same for all samples" in result.stderr, f"a stream of tokens: {result.stderr}")


def dropout_of_shared(layouts):
    """What depends on no sample is dropped alike on every rank and in every micro-step; the rest by the place of the sample."""
    save("dropped", """
    dropped (float[1,50] table, float[batch,50] x) => (float loss) <float rate = {0.5}, bool training = {1}> {
      scaled = Mul(table, w)
      kept = Dropout(scaled, rate, training)
      sum = Add(x, kept)
      again = Dropout(sum, rate, training)
      loss = ReduceMean<keepdims = 0>(again)
    }""", w=rng.normal(size=(1, 50)))
    inputs = {"table": rng.normal(size=(1, 50)).astype(np.float32), "x": rng.normal(size=(2 * GLOBAL, 50)).astype(np.float32)}
    runs = [run("dropped", layout, ["output:loss"], inputs, steps=3) for layout in layouts]
    for rows, gradients, _ in runs[1:]:
        far = max(abs(a["loss"] - b["loss"]) for a, b in zip(rows, runs[0][0]))
        expect(far < 1e-6, f"a loss is off by {far:.1e}")
        worst = np.abs(gradients["w"] - runs[0][1]["w"]).max()
        expect(worst < 1e-7, f"a gradient is off by {worst:.1e}: other elements were dropped")
    dropped = (runs[0][1]["w"] == 0).sum()
    expect(10 <= dropped <= 40, f"{dropped} of 50 were dropped")


suite.start()
weights, data, held = heads(), samples(GLOBAL), samples(2 * GLOBAL + 3)
mixed()
for layout in LAYOUTS:
    label = "on {} ranks, stage {}, {} micro-steps".format(*layout)
    suite.check(f"the loss of one output of several {label}", one_of_several, layout)
    suite.check(f"smoothed labels {label}", smoothed, layout)
    suite.check(f"smoothed labels, logits in tiles, {label}", smoothed_in_tiles, layout)
    suite.check(f"a sum of losses {label}", sum_of, layout)
    suite.check(f"inputs that samples share {label}", shares, layout)
    suite.check(f"logits as rows of places {label}", flattened, layout)
suite.check("labels and a loss of the model's own", with_own_loss, (2, 2, 1))
suite.check("inputs that samples share, of fixed sizes", shares, (1, 0, 1), True)
suite.check("smoothing of 0 changes nothing", smoothing_nothing)
suite.check("ignored rows do not count when smoothed", nothing_smoothed_counts)
suite.check("dropout of what samples share", dropout_of_shared, LAYOUTS)
suite.check("zeroc tells data and loss", told)
for name, body in OWN.items():
    suite.check(f"labels of a loss of the model's own, {name}", own_labels, body)
suite.check("labels of two losses, and of a table and a loss", own_labels_twice)
suite.check("losses that do not fit are refused", refusals)
suite.check("shared inputs that do not fit are refused", shared_refusals)
suite.finish()
