#!/usr/bin/env python3
"""Gradients through operators that a handler writes out, against finite differences of ONNX's reference evaluator in double precision;
straight-through estimators, extrema of equal numbers and the padding of embeddings against what PyTorch makes of them; powers of integers;
and numbers drawn in the forward pass."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from safetensors.numpy import load_file, save_file
import onnx

from harness import Suite, expect

node, BATCH = helper.make_node, 4
suite = Suite(__doc__)
rng = np.random.default_rng(0)


def real(*shape, scale=1.0):
    return rng.normal(size=shape, scale=scale)


PRODUCER = {}  # of models, where what it is decides how they are read


def model(nodes, parameters, constants, x, y, kind, opset=20):
    """A graph from `x` to `y`, its floats of one type."""
    as_kind = lambda a: a.astype(kind) if a.dtype.kind == "f" else a
    tensors = [numpy_helper.from_array(as_kind(np.asarray(v)), n) for n, v in (parameters | constants).items()]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", element, x.shape)],
                              [helper.make_tensor_value_info("y", element, y)], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10, **PRODUCER)


def said(each, function, *arguments):
    """The node, with the call that PyTorch's newer exporter notes beside it."""
    call = f"%it : [num_users=1] = call_function[target=torch.ops.aten.{function}](args = ({', '.join(arguments)}), kwargs = {{}})"
    each.metadata_props.add(key="pkg.torch.onnx.fx_node", value=call)
    return each


def trained(nodes, parameters, constants, x, labels, *flags, **kw):
    """(loss, gradients) of the first step, the mean squared error to the labels."""
    made = model(nodes, parameters, constants, x, labels.shape, np.float32)
    onnx.save(made, str(suite.work / "m.onnx"))
    save_file({"x": x.astype(np.float32), "labels": labels.astype(np.float32)}, suite.work / "d.safetensors")
    suite.zeroc("m.onnx", "p.bin", "--loss", "mse", "--train", f"^({'|'.join(parameters)})$", *flags)
    suite.zerorun("p.bin", "--data", "d.safetensors", "--steps", 1, "--gradients", "g.safetensors", "--metrics", "m.jsonl", "--threads", 1, **kw)
    return suite.losses("m.jsonl")[0], load_file(suite.work / "g.safetensors")


def by_differences(nodes, parameters, constants, x, labels, compute=None):
    """Along random directions of each parameter. `compute`: the result by the parameters, else ONNX's reference evaluator says it."""
    loss, found = trained(nodes, parameters, constants, x, labels)
    def at(values):
        out = compute(values) if compute else ReferenceEvaluator(model(nodes, values, constants, x, labels.shape, np.float64)).run(None, {"x": x})[0]
        return float(np.mean((out - labels) ** 2))
    exact = at(parameters)
    expect(abs(loss - exact) < 1e-5 * abs(exact), f"the loss is {loss}, not {exact}")
    worst, step = 0.0, 1e-6
    for name, value in parameters.items():
        for _ in range(3):
            along = real(*value.shape)
            slope = (at(parameters | {name: value + step * along}) - at(parameters | {name: value - step * along})) / (2 * step)
            have = float(np.sum(found[name].astype(np.float64) * along))
            scale = np.linalg.norm(found[name]) * np.linalg.norm(along) + 1e-6
            worst = max(worst, abs(have - slope) / scale)
            expect(abs(have - slope) < 1e-5 * scale, f"along a direction the loss changes by {slope:.6g} with {name}, the gradient says {have:.6g}")
    return f"within {worst:.0e}"


def read_at(image, grid, mode, padding, corners):
    """torch.nn.functional.grid_sample. (ONNX's evaluator computes places in single precision, and pads those of cubic before their taps.)"""
    def padded(x, n):
        low, span = (0, n - 1) if corners else (-0.5, n)
        if padding == "reflection":
            turns, rest = np.divmod(np.abs(x - low), span)
            x = np.where(turns % 2, span - rest, rest) + low
        return x if padding == "zeros" else np.clip(x, 0, n - 1)

    def taps(x, n):
        """(place, weight) of each that counts."""
        if mode == "nearest":
            return [(np.rint(padded(x, n)), np.ones_like(x))]
        if mode == "linear":
            x = padded(x, n)
            return [(np.floor(x) + i, 1 - np.abs(x - np.floor(x) - i)) for i in (0, 1)]
        near, far = (lambda d: (1.25 * d - 2.25) * d * d + 1), (lambda d: ((-0.75 * d + 3.75) * d - 6) * d + 3)
        distance = lambda i: np.abs(x - np.floor(x) - i)
        return [(padded(np.floor(x) + i, n), (near if i in (0, 1) else far)(distance(i))) for i in (-1, 0, 1, 2)]

    sizes, samples = image.shape[2:], np.arange(len(image)).reshape(-1, *[1] * (grid.ndim - 2))
    found = [((), 1.0)]
    for d, n in enumerate(sizes):
        x = grid[..., len(sizes) - 1 - d] * (n - 1 if corners else n) / 2 + (n - 1) / 2
        inside = lambda at: (at >= 0) & (at < n)
        found = [((*before, np.where(inside(at), at, 0).astype(int)), weight * np.where(inside(at), w, 0)) for before, weight in found for at, w in taps(x, n)]
    rows = np.moveaxis(image, 1, -1)
    return np.moveaxis(sum(rows[(samples, *at)] * weight[..., None] for at, weight in found), -1, 1)


def grid_sample(mode, padding, corners, size=(5, 6)):
    """Both the image and the places are computed with parameters."""
    n = len(size)
    places = (3, 2) + (2,) * (n - 2)
    x, channels = real(BATCH, 7), 3
    parameters = {"image.weight": real(7, channels * int(np.prod(size)), scale=0.4), "places.weight": real(7, n * int(np.prod(places)), scale=0.35)}
    constants = {"image": np.array([BATCH, channels, *size]), "places": np.array([BATCH, *places, n])}
    nodes = [node("MatMul", ["x", "image.weight"], ["a"]), node("Reshape", ["a", "image"], ["b"]),
             node("MatMul", ["x", "places.weight"], ["c"]), node("Reshape", ["c", "places"], ["d"]),
             node("GridSample", ["b", "d"], ["y"], mode=mode, padding_mode=padding, align_corners=corners)]
    if mode == "nearest":
        del parameters["places.weight"]
        constants["places.weight"] = real(7, n * int(np.prod(places)), scale=0.35)
    def compute(values):
        image, grid = (x @ (constants | values)[f"{w}.weight"] for w in ("image", "places"))
        return read_at(image.reshape(constants["image"]), grid.reshape(constants["places"]), mode, padding, corners)
    return by_differences(nodes, parameters, constants, x, real(BATCH, channels, *places), compute)


def recurrent(op, direction="forward", steps=5, hidden=4, **attributes):
    """Many steps share a kernel, and weights that are large beside the rows of a step get the gradient of all at once."""
    inputs, gates, directions = 3, {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 2 if direction == "bidirectional" else 1
    x = real(BATCH, steps, inputs)
    parameters = {"w": real(directions, gates * hidden, inputs), "r": real(directions, gates * hidden, hidden, scale=hidden**-0.5), "b": real(directions, 2 * gates * hidden),
                  "first": real(directions, 1, hidden)}
    constants = {"state": np.array([directions, BATCH, hidden]), "flat": np.array([BATCH, -1])}
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), node("Expand", ["first", "state"], ["h"]),
             node(op, ["t", "w", "r", "b", "", "h"], ["all"], hidden_size=hidden, direction=direction, **attributes),
             node("Transpose", ["all"], ["back"], perm=[2, 0, 1, 3]), node("Reshape", ["back", "flat"], ["y"])]
    return by_differences(nodes, parameters, constants, x, real(BATCH, steps * directions * hidden))


def curve(op, low, high):
    """Of numbers between these, and beyond the middle that sigmoid keeps to."""
    x = real(BATCH, 6)
    parameters, constants = {"w": real(6, 5)}, {"low": np.array(low), "span": np.array(high - low)}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Sigmoid", ["a"], ["b"]), node("Mul", ["b", "span"], ["c"]), node("Add", ["c", "low"], ["d"]), node(op, ["d"], ["y"])]
    return by_differences(nodes, parameters, constants, x, real(BATCH, 5))


def straight_through(nodes):
    """y = round(x w), whose gradient is that of x w: 2 (y - labels) / n, and not that of a round, which is nothing."""
    x, labels, w = real(BATCH, 6), real(BATCH, 5), real(6, 5)
    loss, found = trained([node("MatMul", ["x", "w"], ["a"]), node("Round", ["a"], ["r"]), *nodes], {"w": w}, {}, x, labels)
    y = np.rint(x.astype(np.float32) @ w.astype(np.float32))
    want = x.T @ (2 * (y - labels) / y.size)
    off = np.linalg.norm(found["w"] - want) / np.linalg.norm(want)
    expect(abs(loss - np.mean((y - labels) ** 2)) < 1e-5 and off < 1e-5, f"the gradient is off by {off:.1e} of its norm")
    return f"within {off:.0e}"


def added_back():
    """(h - m) + m, of whose calls none reads what detach() gave, is no straight-through estimator."""
    x, parameters = real(BATCH, 6), {"w": real(6, 5), "v": real(6, 5)}
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("MatMul", ["x", "v"], ["m"]), said(node("Sub", ["h", "m"], ["d"]), "sub.Tensor", "%h", "%m"),
             said(node("Add", ["d", "m"], ["s"]), "add.Tensor", "%d", "%m"), node("Mul", ["s", "m"], ["y"])]
    return by_differences(nodes, parameters, {}, x, real(BATCH, 5))


def equal_numbers():
    """Of a maximum each of two equal numbers gets half of the gradient; within the bounds of a clip, which they belong to, all of it."""
    p, q = np.array([0.5, -1.0, 2.0, 0.0, 1.0]), np.array([0.5, 1.0, -2.0, 0.0, 1.0])
    x, labels = rng.integers(-1, 2, (BATCH, 5)).astype(np.float64), real(BATCH, 5)
    sums = [node("Add", ["x", "p"], ["a"]), node("Add", ["x", "q"], ["b"])]
    _, found = trained([*sums, node("Max", ["a", "b"], ["y"])], {"p": p, "q": q}, {}, x, labels)
    d = 2 * (x + np.maximum(p, q) - labels) / labels.size
    for name, share in (("p", (p > q) + 0.5 * (p == q)), ("q", (q > p) + 0.5 * (p == q))):
        expect(np.allclose(found[name], d.sum(0) * share, atol=1e-6), f"the gradient of {name} is {found[name]}")
    clip = [node("Cast", ["below"], ["low"], to=TensorProto.FLOAT), node("Cast", ["above"], ["high"], to=TensorProto.FLOAT), node("Clip", ["b", "low", "high"], ["y"])]
    _, found = trained([sums[1], *clip], {"q": np.zeros(5)}, {"below": np.array(-1), "above": np.array(1)}, x, labels)
    expect(np.allclose(found["q"], (2 * (x - labels) / labels.size).sum(0), atol=1e-6), f"the gradient of what is clipped is {found['q']}")


def distances():
    """Of each sample from each, as PyTorch's older exporter writes cdist(): that from itself is 0, and has no gradient."""
    x, power = real(BATCH, 6), np.array([1 / (2 + 1e-6)])
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Unsqueeze", ["a", "one"], ["row"]), node("Unsqueeze", ["a", "none"], ["column"]), node("Sub", ["row", "column"], ["d"]),
             node("Pow", ["d", "two"], ["squares"]), node("ReduceSum", ["squares", "last"], ["sum"], keepdims=0), node("Pow", ["sum", "power"], ["y"])]
    constants = {"one": np.array([1]), "none": np.array([0]), "last": np.array([-1]), "two": np.array(2.0), "power": power}
    return by_differences(nodes, {"w": real(6, 5)}, constants, x, real(BATCH, BATCH))


def corner(each, value, slope, constants={}):
    """Of a parameter that begins with zeros, at which the function has this value and PyTorch's gradient this slope."""
    x, labels = real(BATCH, 5), real(BATCH, 5)
    _, found = trained([each, node("Mul", ["x", "f"], ["y"])], {"p": np.zeros(5)}, constants, x, labels)
    want = (2 * (x * value - labels) / labels.size * x).sum(0) * slope
    expect(np.allclose(found["p"], want, atol=1e-6), f"the gradient is {found['p']}, not {want}")


def by_pytorch(version, function, *arguments):
    """What `function` finds in a model that this version of PyTorch has exported."""
    PRODUCER.update(producer_name="pytorch", producer_version=version)
    try:
        return function(*arguments)
    finally:
        PRODUCER.clear()


def saturated(nodes, value, slope):
    """Of x w, which is far from 0: what becomes of a logarithm of a sigmoid whose f32 is 0 or 1."""
    x, w = np.array([[40.0], [-40.0], [95.0], [-95.0]]), np.ones((1, 1))
    labels = real(BATCH, 1)
    loss, found = trained([node("MatMul", ["x", "w"], ["a"]), *nodes], {"w": w}, {"one": np.array(1.0), "least": np.array(-100.0)}, x, labels)
    y = value(x)
    want = np.sum(2 * (y - labels) / labels.size * slope(x) * x)
    expect(abs(loss - np.mean((y - labels) ** 2)) < 1e-4 * loss and abs(found["w"].item() - want) < 1e-4 * abs(want) + 1e-5, f"{loss}, {found['w']}, not {np.mean((y - labels) ** 2)}, {want}")


def smoothed(weighted):
    """Cross entropy whose call says that labels are smoothed, and some do not count."""
    x, labels, w = real(8, 6), rng.integers(0, 5, 8), real(6, 5)
    labels[2] = -100
    v = np.abs(real(5)) + 0.5
    inputs = ["a", "labels"] + ["v"] * weighted
    loss = said(node("SoftmaxCrossEntropyLoss", inputs, ["loss"], ignore_index=-100, reduction="mean"), "cross_entropy_loss.default", "%a", "%labels", "%v" if weighted else "None", "1", "-100", "0.2")
    graph = helper.make_graph([node("MatMul", ["x", "w"], ["a"]), loss], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 6]), helper.make_tensor_value_info("labels", TensorProto.INT64, [8])],
                              [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], [numpy_helper.from_array(a.astype(np.float32), n) for n, a in (("w", w), ("v", v))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), str(suite.work / "m.onnx"))
    save_file({"x": x.astype(np.float32), "labels": labels}, suite.work / "d.safetensors")
    suite.zeroc("m.onnx", "p.bin", "--loss", "output:loss", "--train", "w")
    suite.zerorun("p.bin", "--data", "d.safetensors", "--steps", 1, "--gradients", "g.safetensors", "--metrics", "m.jsonl", "--threads", 1)
    logits = x @ w
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    each, counts = (v if weighted else np.ones(5)), labels >= 0
    rows = [-(0.8 * each[label] * row[label] + 0.2 / 5 * (each * row).sum()) for row, label in zip(logs, labels) if label >= 0]
    want = sum(rows) / each[labels[counts]].sum()
    have = suite.losses("m.jsonl")[0]
    expect(abs(have - want) < 1e-5 * want, f"the loss is {have}, not {want}")


def shares(weighted, part, reduction):
    """Cross entropy of labels that are probabilities, over places of an image, with weights of classes and smoothing."""
    x, w, v, labels = real(4, 3, 6), real(3, 5), np.abs(real(5)) + 0.5, np.exp(real(4, 5, 6))
    labels /= labels.sum(1, keepdims=True)
    inputs = ["a", "labels"] + ["v"] * weighted
    loss = said(node("SoftmaxCrossEntropyLoss", inputs, ["each"], reduction=reduction), "cross_entropy_loss.default", "%a", "%labels", "%v" if weighted else "None", "1", "-100", str(part))
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("MatMul", ["t", "w"], ["b"]), node("Transpose", ["b"], ["a"], perm=[0, 2, 1]), loss,
             node("ReduceSum", ["each"], ["loss"], keepdims=0)]
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [value("x", [4, 3, 6]), value("labels", [4, 5, 6])], [value("loss", [])],
                              [numpy_helper.from_array(a.astype(np.float32), n) for n, a in (("w", w), ("v", v))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), str(suite.work / "m.onnx"))
    save_file({"x": x.astype(np.float32), "labels": labels.astype(np.float32)}, suite.work / "d.safetensors")
    suite.zeroc("m.onnx", "p.bin", "--loss", "output:loss", "--train", "w")
    suite.zerorun("p.bin", "--data", "d.safetensors", "--steps", 1, "--metrics", "m.jsonl", "--threads", 1)
    logits = np.einsum("bit,ic->bct", x, w)
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    want = -((labels * (1 - part) + part / 5) * (v[:, None] if weighted else 1) * logs).sum() / (24 if reduction == "mean" else 1)
    have = suite.losses("m.jsonl")[0]
    expect(abs(have - want) < 1e-5 * want, f"the loss is {have}, not {want}")


def refused(nodes, *words, inputs=("x",), parameters=("w",)):
    """Files whose numbers would be others than the model's."""
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 4]) for n in inputs], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 4])],
                              [numpy_helper.from_array(real(4, 4).astype(np.float32), n) for n in parameters])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), str(suite.work / "m.onnx"))
    result = suite.run([suite.bin / "zeroc", "m.onnx", "-o", "p.bin", "-q", "--loss", "mse"], check=False)
    expect(result.returncode == 1 and all(word in result.stderr for word in words), f"exit {result.returncode}: {result.stderr}")


def large_halves():
    """Whole numbers beyond the precision of halves stay as they are."""
    x, labels = np.array([8388609.0, 8388607.5, 2.5, -3.5]).reshape(BATCH, 1), np.zeros((BATCH, 1))
    loss, _ = trained([node("Round", ["x"], ["r"]), node("Sub", ["r", "x"], ["d"]), node("Mul", ["d", "p"], ["y"])], {"p": np.ones((1, 1))}, {}, x, labels)
    expect(loss == 0.75 / 4, f"the squares of what rounding changes are {loss} in the mean, not {0.75 / 4}")


def elementwise_without_axes():
    """ReduceSumSquare of no axes squares, and a sequence takes what is inserted at a negative position before its last."""
    parameters, constants = {"w": real(6, 5), "v": real(6, 5)}, {"none": np.array([], np.int64), "place": np.array(-1), "first": np.array(0)}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["x", "v"], ["b"]), node("ReduceSumSquare", ["a", "none"], ["s"], noop_with_empty_axes=1),
             node("SequenceConstruct", ["b", "b"], ["list"]), node("SequenceInsert", ["list", "s", "place"], ["longer"]),
             node("ConcatFromSequence", ["longer"], ["y"], axis=1)]
    return by_differences(nodes, parameters, constants, real(BATCH, 6), real(BATCH, 15))


def mapped_sequence():
    """SequenceMap as PyTorch's newer exporter writes hstack: what is less than a vector becomes one."""
    value = lambda name, shape=None: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    same = helper.make_graph([node("Identity", ["each"], ["same"])], "same", [], [value("same")])
    column = helper.make_graph([node("Reshape", ["each", "column"], ["turned"])], "turned", [], [value("turned")])
    body = helper.make_graph([node("Shape", ["each"], ["shape"]), node("Size", ["shape"], ["rank"]), node("Less", ["rank", "two"], ["flat"]),
                              node("If", ["flat"], ["one"], then_branch=column, else_branch=same), node("Mul", ["one", "by"], ["out"])], "body", [value("each"), value("by")], [value("out")])
    parameters, constants = {"w": real(6, 5), "v": real(6)}, {"two": np.array(2), "column": np.array([BATCH, 1]), "half": np.array(0.5), "at": np.array(0), "next": np.array(1)}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["x", "v"], ["b"]), node("SequenceConstruct", ["a", "b"], ["list"]),
             node("SequenceMap", ["list", "half"], ["mapped"], body=body), node("SequenceAt", ["mapped", "at"], ["c"]), node("SequenceAt", ["mapped", "next"], ["d"]),
             node("Concat", ["c", "d"], ["y"], axis=1)]
    x = real(BATCH, 6)
    return by_differences(nodes, parameters, constants, x, real(BATCH, 6), lambda v: 0.5 * np.concatenate([x @ v["w"], (x @ v["v"])[:, None]], 1))


def large_exponents(base=np.e):
    """log(base^a + base^b) of numbers whose powers are none, of equal ones among them, and of -inf."""
    x, p, q = np.ones((BATCH, 5)), np.array([300.0, -400.0, 2.0, 120.0, 1.0]), np.array([100.0, -399.0, 1.0, 119.0, -np.inf])
    power = lambda a, out: node("Exp", [a], [out]) if base == np.e else node("Pow", ["base", a], [out])
    nodes = [node("Mul", ["x", "p"], ["a"]), node("Add", ["x", "q"], ["b"]), power("a", "u"), power("b", "v"), node("Add", ["u", "v"], ["s"]), node("Log", ["s"], ["y"])]
    labels, b, scale = real(BATCH, 5), q + 1, np.log(base)
    loss, found = trained(nodes, {"p": p}, {"q": q, "base": np.array(base)}, x, labels)
    y = np.logaddexp(scale * p, scale * b)
    want = (2 * (y - labels) / labels.size).sum(0) * np.exp(scale * p - y) * scale
    expect(abs(loss - np.mean((y - labels) ** 2)) < 1e-5 * loss and np.allclose(found["p"], want, rtol=1e-5), f"the loss is {loss}, the gradient {found['p']}, not {want}")


def multiplied(op):
    """Products of what is there and of updates, several of which go to one place, as PyTorch's scatter_reduce(reduce="prod") has them."""
    to = np.array([[0, 2, 0, 0, 3], [1, 1, 1, 1, 1], [4, 3, 2, 1, 0], [0, 0, 4, 4, 4]]) if op == "ScatterElements" else np.array([[2], [0], [2], [2]])
    parameters, constants = {"w": real(6, 5), "v": real(6, 5)}, {"to": to}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["x", "v"], ["b"]), node(op, ["a", "to", "b"], ["y"], reduction="mul", **({"axis": 1} if op == "ScatterElements" else {}))]
    x = real(BATCH, 6)
    def compute(values):
        y, b = x @ values["w"], x @ values["v"]
        if op == "ScatterElements":
            np.multiply.at(y, (np.arange(BATCH)[:, None], to), b)
        else:
            np.multiply.at(y, to[:, 0], b)
        return y
    return by_differences(nodes, parameters, constants, x, real(BATCH, 5), compute)


def averaged(counts):
    """scatter_reduce(reduce="mean"), which the newer exporter writes as if updates replaced what is there, after zeros where that does not count."""
    to = np.array([[0, 2, 0, 0, 3], [1, 1, 1, 1, 1], [4, 3, 2, 1, 0], [0, 0, 4, 4, 4]])
    call = ["scatter_reduce.two", "%a", "1", "%to", "%b", "mean"]
    put = lambda data, updates, out: said(node("ScatterElements", [data, "to", updates], [out], axis=1), *call)
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["x", "v"], ["b"]), *([] if counts else [put("a", "none", "cleared")]), put("a" if counts else "cleared", "b", "y")]
    for each in nodes:
        for note in each.metadata_props:
            note.value = note.value.replace("kwargs = {}", f"kwargs = {{include_self: {counts}}}")
    x, rows = real(BATCH, 6), np.arange(BATCH)[:, None]
    def compute(values):
        a, sums, many = x @ values["w"], np.zeros((BATCH, 5)), np.zeros((BATCH, 5))
        np.add.at(sums, (rows, to), x @ values["v"])
        np.add.at(many, (rows, to), 1)
        return (a + sums) / (1 + many) if counts else np.where(many, sums / np.maximum(many, 1), a)
    return by_differences(nodes, {"w": real(6, 5), "v": real(6, 5)}, {"to": to, "none": np.zeros((BATCH, 5))}, x, real(BATCH, 5), compute)


def determinant(n):
    """Of matrices that a parameter makes."""
    x = real(BATCH, 6)
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Reshape", ["a", "matrix"], ["m"]), node("Det", ["m"], ["d"]), node("Reshape", ["d", "column"], ["y"])]
    constants = {"matrix": np.array([BATCH, n, n]), "column": np.array([BATCH, 1])}
    return by_differences(nodes, {"w": real(6, n * n, scale=0.4)}, constants, x, real(BATCH, 1), lambda v: np.linalg.det((x @ v["w"]).reshape(BATCH, n, n))[:, None])


def scanned(backwards, axis):
    """A linear recurrence over what a parameter makes, along a dimension, from its first element or from its last."""
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    body = helper.make_graph([node("Mul", ["h", "decay"], ["kept"]), node("Add", ["kept", "each"], ["next"]), node("Tanh", ["next"], ["out"])], "body",
                             [value("h"), value("each")], [value("next"), value("out")])
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Reshape", ["a", "shape"], ["all"]),
             node("Scan", ["first", "all"], ["last", "outs"], body=body, num_scan_inputs=1, scan_input_axes=[axis], scan_input_directions=[backwards], scan_output_axes=[axis],
                  scan_output_directions=[backwards]), node("Unsqueeze", ["last", "axis"], ["more"]), node("Concat", ["outs", "more"], ["y"], axis=axis)]
    shape = [BATCH, 3, 5]
    x, rest = real(BATCH, 6), [d for i, d in enumerate(shape) if i != axis]
    def compute(values):
        all, h, outs = (x @ values["w"]).reshape(shape), np.zeros(rest), []
        order = range(shape[axis])[::-1 if backwards else 1]
        for at in order:
            h = h * values["decay"] + all.take(at, axis)
            outs.append(np.tanh(h))
        return np.concatenate([np.stack(outs[::-1] if backwards else outs, axis), np.expand_dims(h, axis)], axis)
    labels = list(shape)
    labels[axis] += 1
    return by_differences(nodes, {"w": real(6, 15), "decay": real(rest[-1], scale=0.5)}, {"shape": np.array(shape), "first": np.zeros(rest), "axis": np.array([axis])}, x, real(*labels), compute)


def called_alike():
    """A buffer and a mean that the newer exporter both calls "mean", and a parameter like a result that is read beside it."""
    x, parameters = real(BATCH, 6), {"w": real(6, 5), "mul": real(5)}
    mean = real(5)
    nodes = [node("MatMul", ["x", "w"], ["a"]), said(node("ReduceMean", ["a", "last"], ["mean"]), "mean.dim", "%a", "[-1]"),
             said(node("Sub", ["a", "mean"], ["b"]), "sub.Tensor", "%a", "%mean"), said(node("Add", ["b", "mean"], ["c"]), "add.Tensor", "%b", "%b_mean"),
             said(node("Mul", ["c", "c"], ["mul"]), "mul.Tensor", "%c", "%c"), said(node("Sub", ["mul", "mul"], ["y"]), "sub.Tensor", "%p_mul", "%mul")]
    def compute(values):
        a = x @ values["w"]
        c = a - a.mean(1, keepdims=True) + mean
        return values["mul"] - c * c
    return by_differences(nodes, parameters, {"mean": mean, "last": np.array([-1])}, x, real(BATCH, 5), compute)


def diagonals(equation, width):
    """Einsum of an operand that has a letter twice, or two of them."""
    parameters, constants = {"w": real(6, 9), "v": real(6, 9)}, {"matrix": np.array([0, 3, 3])}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Reshape", ["a", "matrix"], ["m"]), node("MatMul", ["x", "v"], ["b"]), node("Reshape", ["b", "matrix"], ["n"]),
             node("Einsum", ["m", "n"], ["y"], equation=equation)]
    return by_differences(nodes, parameters, constants, real(BATCH, 6), real(BATCH, *width))


def looked_up(nodes, known, ids, numbers):
    """Of integers `n` that these nodes make of `ids`, which choose the rows of a table; `numbers`: what they are."""
    table, labels = real(97, 3), real(*ids.shape, 3)
    nodes = [node("Cast", ["x"], ["ids"], to=TensorProto.INT64), *nodes, node("Mod", ["n", "rows"], ["row"]), node("Gather", ["table", "row"], ["y"])]
    loss, found = trained(nodes, {"table": table}, known | {"rows": np.array(97)}, ids.astype(np.float64), labels)
    rows = np.array([int(n) % 97 for n in numbers.reshape(-1)]).reshape(ids.shape)
    d, want = table[rows] - labels, np.zeros_like(table)
    np.add.at(want, rows, 2 * d / labels.size)
    expect(abs(loss - np.mean(d**2)) < 1e-5 and np.allclose(found["table"], want, atol=1e-6), f"the loss is {loss}, not {np.mean(d**2)}")


def whole_powers(base, power):
    """Of integers, which wrap as 64 bits do; what is None comes from the data."""
    ids = rng.integers(0, 64, (BATCH, 6))
    known = {n: np.asarray(v) for n, v in (("base", base), ("power", power)) if v is not None}
    nodes = [node("Pow", [n if n in known else "ids" for n in ("base", "power")], ["p"]), node("Add", ["p", "ids"], ["n"])]
    def number(b, n, i):
        whole = b**n if n >= 0 else (b**-n if abs(b) == 1 else 0)
        return (whole + i + 2**63) % 2**64 - 2**63
    each = np.broadcast_arrays(known.get("base", ids), known.get("power", ids), ids)
    looked_up(nodes, known, ids, np.array([number(*(int(n) for n in at)) for at in zip(*(a.reshape(-1) for a in each))], dtype=object))


def bits(op, function):
    """Of integers on both sides of 0, the two operands from the data."""
    ids = rng.integers(-1000, 1000, (BATCH, 6))
    looked_up([node("Mul", ["ids", "seven"], ["m"]), node(op, ["ids"] + ["m"] * (op != "BitwiseNot"), ["n"])], {"seven": np.array(7)}, ids, function(ids, 7 * ids))


def shifted(kind, direction, places):
    """Bits of unsigned integers, by what is known or comes from the data, which may be all places and more."""
    ids = rng.integers(-1000, 1000, (BATCH, 6))
    bits, to = 8 * np.dtype(kind).itemsize, helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    by = np.abs(ids) % (bits + 2) if places is None else np.broadcast_to(places, ids.shape)
    counted = [node("Abs", ["ids"], ["a"]), node("Mod", ["a", "most"], ["by"])] if places is None else []
    nodes = [*counted, node("Cast", ["ids"], ["u"], to=to), node("Cast", ["by"], ["v"], to=to), node("BitShift", ["u", "v"], ["w"], direction=direction),
             node("Cast", ["w"], ["n"], to=TensorProto.INT64)]
    def number(n, k):
        n, k = int(n) % 2**bits, int(k)
        return n >> k if direction == "RIGHT" else (n << k) % 2**bits
    numbers = np.array([number(*at) for at in zip(ids.reshape(-1), by.reshape(-1))], dtype=object)
    looked_up(nodes, {"by": np.array(places)} if counted == [] else {"most": np.array(bits + 2)}, ids, (numbers + 2**63) % 2**64 - 2**63)


def narrowed(kind, whole):
    """Numbers that the type does not have are taken by their low bits, as in PyTorch."""
    ids, to = rng.integers(-100000, 100000, (BATCH, 6)), helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    between = [] if whole else [node("Cast", ["ids"], ["f"], to=TensorProto.FLOAT), node("Div", ["f", "three"], ["d"])]
    nodes = [*between, node("Cast", ["ids" if whole else "d"], ["u"], to=to), node("Cast", ["u"], ["n"], to=TensorProto.INT64)]
    exact = ids if whole else np.trunc(ids.astype(np.float32) / np.float32(3)).astype(np.int64)
    looked_up(nodes, {} if whole else {"three": np.array(3.0)}, ids, exact.astype(kind).astype(np.int64))


def computed_power():
    """Of what is learnt, to what is learnt; and 2 to the power of that."""
    parameters, constants = {"w": real(6, 5), "p": real(5) + 2}, {"low": np.array(0.2), "two": np.array(2.0)}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Sigmoid", ["a"], ["b"]), node("Add", ["b", "low"], ["c"]), node("Pow", ["c", "p"], ["e"]), node("Pow", ["two", "e"], ["y"])]
    return by_differences(nodes, parameters, constants, real(BATCH, 6), real(BATCH, 5))


def product(keep):
    """Of five numbers, which may be negative."""
    constants = {"shape": np.array([BATCH, 5, 2]), "axis": np.array([1])}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Reshape", ["a", "shape"], ["b"]), node("ReduceProd", ["b", "axis"], ["y"], keepdims=keep)]
    return by_differences(nodes, {"w": real(7, 10)}, constants, real(BATCH, 7), real(BATCH, *[1] * keep, 2))


def masked_rows():
    """The log of a sum of exponentials is -inf where a row is masked throughout, as what comes after it may ask for."""
    mask, x = rng.integers(0, 2, (BATCH, 5)) == 1, real(BATCH, 6)
    mask[0], mask[1] = False, True
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Cast", ["nought"], ["zero"], to=TensorProto.FLOAT), node("Log", ["zero"], ["low"]),
             node("Where", ["mask", "low", "a"], ["b"]), node("ReduceLogSumExp", ["b", "axis"], ["l"], keepdims=0), node("IsInf", ["l"], ["i"]), node("Where", ["i", "zero", "l"], ["y"])]
    def compute(values):
        sums = np.where(mask, 0, np.exp(x @ values["w"])).sum(1)
        return np.log(np.where(sums == 0, 1, sums))
    return by_differences(nodes, {"w": real(6, 5)}, {"mask": mask, "nought": np.array(0), "axis": np.array([1])}, x, real(BATCH), compute)


def nearest(length, to):
    """On which side of a whole number a place lies is what single precision says."""
    places, x = np.floor(np.arange(to, dtype=np.float32) / np.float32(to / length)).astype(int), real(BATCH, 1, length)
    nodes = [node("Mul", ["x", "w"], ["a"]), node("Resize", ["a", "", "", "sizes"], ["y"], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")]
    return by_differences(nodes, {"w": real(1, 1, length)}, {"sizes": np.array([BATCH, 1, to])}, x, real(BATCH, 1, to), lambda values: (x * values["w"])[..., places])


def linear(length, scale, to):
    """By a factor, whose product with a length is a whole number in single precision alone."""
    places, x = (np.arange(to) + 0.5) / float(np.float32(scale)) - 0.5, real(BATCH, 1, length)
    nodes = [node("Mul", ["x", "w"], ["a"]), node("Resize", ["a", "", "scales"], ["y"], mode="linear")]
    at_places = lambda rows: np.stack([np.interp(places, np.arange(length), row[0])[None] for row in rows])
    return by_differences(nodes, {"w": real(1, 1, length)}, {"scales": np.array([1, 1, scale])}, x, real(BATCH, 1, to), lambda values: at_places(x * values["w"]))


def aligned(length, scale, to):
    """By a factor whose product with a length is no whole number, corner to corner."""
    places, x = np.linspace(0, length - 1, to), real(BATCH, 1, length)
    nodes = [node("Mul", ["x", "w"], ["a"]), node("Resize", ["a", "", "scales"], ["y"], mode="linear", coordinate_transformation_mode="align_corners")]
    at_places = lambda rows: np.stack([np.interp(places, np.arange(length), row[0])[None] for row in rows])
    return by_differences(nodes, {"w": real(1, 1, length)}, {"scales": np.array([1, 1, scale])}, x, real(BATCH, 1, to), lambda values: at_places(x * values["w"]))


def broadcast_letters(equation, first, second, width):
    """Einsum of operands of which one has a dimension of 1 where the other has more."""
    sizes = [int(np.prod(shape)) for shape in (first, second)]
    parameters, constants = {"w": real(6, sizes[0]), "v": real(sizes[1])}, {"first": np.array([BATCH, *first]), "second": np.array(second)}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Reshape", ["a", "first"], ["m"]), node("Reshape", ["v", "second"], ["n"]), node("Einsum", ["m", "n"], ["y"], equation=equation)]
    return by_differences(nodes, parameters, constants, real(BATCH, 6), real(BATCH, *width))


def divided_sums():
    """AveragePool whose call alone says what sums are divided by."""
    pool = said(node("AveragePool", ["b"], ["y"], kernel_shape=[2, 2], strides=[2, 2], count_include_pad=1), "avg_pool2d.default", "%b", "[2, 2]", "[2, 2]", "[0, 0]", "False", "True", "3")
    x, constants = real(BATCH, 6), {"shape": np.array([BATCH, 1, 4, 4])}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Reshape", ["a", "shape"], ["b"]), pool]
    return by_differences(nodes, {"w": real(6, 16)}, constants, x, real(BATCH, 1, 2, 2), lambda values: (x @ values["w"]).reshape(BATCH, 1, 2, 2, 2, 2).sum((3, 5)) / 3)


def whole_numbers_round():
    """Round has no gradient, of what is whole neither."""
    w, x, labels = np.array([0.0, 1.0, -2.0, 0.3, 2.5]), real(BATCH, 5), real(BATCH, 5)
    loss, found = trained([node("Round", ["w"], ["r"]), node("Add", ["r", "w"], ["s"]), node("Mul", ["x", "s"], ["y"])], {"w": w}, {}, x, labels)
    want = (2 * (x * (np.rint(w) + w) - labels) * x / labels.size).sum(0)
    expect(np.allclose(found["w"], want, atol=1e-5), f"the gradient is {found['w']}, not {want}")


def left_out():
    """A function whose call leaves out what its body hands on."""
    function = helper.make_function("local", "Bounded", ["a", "low", "high"], ["b"], [node("Clip", ["a", "low", "high"], ["b"])], [helper.make_opsetid("", 20)])
    x, high = real(BATCH, 6), np.array(0.3)
    made = model([node("MatMul", ["x", "w"], ["a"]), node("Bounded", ["a", "", "high"], ["y"], domain="local")], {"w": real(6, 5)}, {"high": high}, x, (BATCH, 5), np.float32)
    made.functions.append(function)
    made.opset_import.append(helper.make_opsetid("local", 1))
    onnx.save(made, str(suite.work / "m.onnx"))
    labels = real(BATCH, 5).astype(np.float32)
    save_file({"x": x.astype(np.float32), "labels": labels}, suite.work / "d.safetensors")
    suite.zeroc("m.onnx", "p.bin", "--loss", "mse")
    suite.zerorun("p.bin", "--data", "d.safetensors", "--steps", 1, "--lr", 0, "--metrics", "m.jsonl", "--threads", 1)
    want = np.mean((np.minimum(x @ numpy_helper.to_array(made.graph.initializer[0]), high) - labels) ** 2)
    expect(abs(suite.losses("m.jsonl")[0] - want) < 1e-5 * want, f"the loss is not {want}")


def columns(worst):
    """Columns of one input look rows up in tables of their own; what no table has is refused."""
    tables = {f"t{i}": real(rows, 3) for i, rows in enumerate((2, 100, 7))}
    ids = np.stack([rng.integers(0, len(t), BATCH) for t in tables.values()], 1)
    ids[-1] = (1, worst, 6)
    nodes = [n for i, t in enumerate(tables) for n in (node("Gather", ["cat", f"i{i}"], [f"c{i}"], axis=1), node("Gather", [t, f"c{i}"], [f"r{i}"]))]
    nodes += [node("Add", ["r0", "r1"], ["s"]), node("Add", ["s", "r2"], ["y"])]
    constants = {f"i{i}": np.array(i) for i in range(len(tables))}
    tensors = [numpy_helper.from_array(np.asarray(v, np.float32 if v.dtype.kind == "f" else np.int64), n) for n, v in (tables | constants).items()]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("cat", TensorProto.INT64, [BATCH, 3])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [BATCH, 3])], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), str(suite.work / "m.onnx"))
    labels = real(BATCH, 3).astype(np.float32)
    save_file({"cat": ids, "labels": labels}, suite.work / "d.safetensors")
    suite.zeroc("m.onnx", "p.bin", "--loss", "mse")
    run = ["p.bin", "--data", "d.safetensors", "--steps", 1, "--lr", 0, "--metrics", "m.jsonl", "--threads", 1]
    if worst >= 100:
        result = suite.run([suite.bin / "zerorun", *map(str, run)], check=False)
        return expect(result.returncode == 1 and f"has the value {worst} at position 1, but the model knows 100 of them" in result.stderr, f"exit {result.returncode}: {result.stderr}")
    suite.zerorun(*run)
    want = np.mean((sum(t[ids[:, i]] for i, t in enumerate(tables.values())) - labels) ** 2)
    expect(abs(suite.losses("m.jsonl")[0] - want) < 1e-5 * want, f"the loss is not {want}")


def index_beside_number():
    """Of an input whose one column is an index, another may hold any number."""
    nodes = [node("Gather", ["cat", "first"], ["i"], axis=1), node("Gather", ["table", "i"], ["row"]), node("Gather", ["cat", "rest"], ["n"], axis=1),
             node("Cast", ["n"], ["number"], to=TensorProto.FLOAT), node("Mul", ["number", "w"], ["scaled"]), node("Add", ["row", "scaled"], ["y"])]
    table, w, cat, labels = real(5, 3), real(3), np.array([[0, 1000], [4, -7], [2, 5], [1, 0]]), real(BATCH, 3).astype(np.float32)
    tensors = [numpy_helper.from_array(a, n) for n, a in (("table", table.astype(np.float32)), ("w", w.astype(np.float32)), ("first", np.array(0)), ("rest", np.array([1])))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("cat", TensorProto.INT64, [BATCH, 2])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [BATCH, 3])], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), str(suite.work / "m.onnx"))
    save_file({"cat": cat, "labels": labels}, suite.work / "d.safetensors")
    suite.zeroc("m.onnx", "p.bin", "--loss", "mse")
    suite.zerorun("p.bin", "--data", "d.safetensors", "--steps", 1, "--lr", 0, "--metrics", "m.jsonl", "--threads", 1)
    want = np.mean((table[cat[:, 0]] + cat[:, 1:] * w - labels) ** 2)
    expect(abs(suite.losses("m.jsonl")[0] - want) < 1e-5 * want, f"the loss is not {want}")


def guarded_rows():
    """Attention as PyTorch's older exporter guards it: rows that are masked throughout are none after the softmax, and zeros where they are read."""
    mask = rng.integers(0, 2, (BATCH, 5, 5)) == 1
    mask[:, :, 0], mask[0] = True, False
    low, zero = np.where(mask, 0.0, -np.inf), np.array(0.0)
    x, constants = real(BATCH, 6), {"shape": np.array([BATCH, 5, 5]), "low": low, "zero": zero}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Reshape", ["a", "shape"], ["b"]), node("Add", ["b", "low"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1),
             node("IsNaN", ["p"], ["none"]), node("Where", ["none", "zero", "p"], ["q"]), node("MatMul", ["q", "v"], ["y"])]
    def compute(values):
        e = np.where(mask, np.exp((x @ values["w"]).reshape(BATCH, 5, 5)), 0)
        return e / np.maximum(e.sum(-1, keepdims=True), 1e-30) @ values["v"]
    return by_differences(nodes, {"w": real(6, 25), "v": real(5, 3)}, constants, x, real(BATCH, 5, 3), compute)


def padding_row():
    """The row of an embedding's padding gets no gradient, as the call that the exporter notes says; what else reads the table gives it one."""
    ids, labels, table = np.array([[2, 0, 1], [0, 0, 3]]), real(2, 3, 5), real(4, 5)
    lookup = said(node("Gather", ["table", "ids"], ["rows"]), "embedding.default", "%p_table", "%ids", "0")
    nodes = [node("Cast", ["x"], ["ids"], to=TensorProto.INT64), lookup, node("Slice", ["table", "zero", "three"], ["again"]), node("Add", ["rows", "again"], ["y"])]
    loss, found = trained(nodes, {"table": table}, {"zero": np.array([0]), "three": np.array([3])}, ids.astype(np.float64), labels)
    d = 2 * (table[ids] + table[:3] - labels) / labels.size
    want = np.zeros_like(table)
    np.add.at(want, ids, d * (ids != 0)[..., None])
    want[:3] += d.sum(0)
    off = np.linalg.norm(found["table"] - want) / np.linalg.norm(want)
    expect(off < 1e-5, f"off by {off:.1e}")
    return f"within {off:.0e}"


def fake_quantized(kind, scale, zero, of, most=None):
    """What PyTorch's fake_quantize is in ONNX: rounded to a grid, with the gradient of what is rounded inside its range and none beyond. `of`:
    the activations, or the weights; `most`: where the range ends before that of the type."""
    x, labels, w = real(BATCH, 6), real(BATCH, 5), real(6, 5)
    scale, zero = np.asarray(scale, np.float32), np.asarray(zero, kind)
    clip = [] if most is None else [node("Clip", ["q", "", "most"], ["c"])]
    grid = lambda a: [node("QuantizeLinear", [a, "scale", "zero"], ["q"], axis=1), *clip, node("DequantizeLinear", ["c" if clip else "q", "scale", "zero"], ["g"], axis=1)]
    product = lambda a, out: node("MatMul", ["x", a], [out])
    nodes = [product("w", "a"), *grid("a"), node("Identity", ["g"], ["y"])] if of == "activations" else [*grid("w"), product("g", "y")]
    loss, found = trained(nodes, {"w": w}, {"scale": scale, "zero": zero} | ({"most": np.asarray(most, kind)} if clip else {}), x, labels)
    single, low, high = w.astype(np.float32), np.iinfo(kind).min, np.iinfo(kind).max if most is None else most
    steps = np.rint((x.astype(np.float32) @ single if of == "activations" else single) / scale) + zero.astype(np.float32)
    inside, g = (low <= steps) & (steps <= high), (np.clip(steps, low, high) - zero.astype(np.float32)) * scale
    expect(inside.any() and not inside.all(), "all or none are inside the range")
    y = g if of == "activations" else x @ g
    d = 2 * (y - labels) / y.size
    want = x.T @ (d * inside) if of == "activations" else (x.T @ d) * inside
    off = np.linalg.norm(found["w"] - want) / np.linalg.norm(want)
    expect(list(found) == ["w"] and abs(loss - np.mean((y - labels) ** 2)) < 1e-5 * loss and off < 1e-5, f"the loss is {loss}, gradients of {sorted(found)} are off by {off:.1e} of their norm")
    return f"within {off:.0e}"


def quantized_and_turned():
    """What happens to integers before they are numbers again has no gradient, so that it is refused."""
    nodes = [node("QuantizeLinear", ["x", "scale", "zero"], ["q"]), node("Transpose", ["q"], ["t"], perm=[1, 0]), node("DequantizeLinear", ["t", "scale", "zero"], ["g"]),
             node("MatMul", ["g", "w"], ["y"])]
    made = model(nodes, {"w": real(4, 4)}, {"scale": np.array(0.1), "zero": np.array(0, np.int8)}, np.zeros((4, 4)), (4, 4), np.float32)
    onnx.save(made, str(suite.work / "m.onnx"))
    result = suite.zeroc("m.onnx", "p.bin", "--loss", "mse", check=False)
    expect(result.returncode == 1 and "computed with since they were quantized" in result.stderr, f"exit {result.returncode}: {result.stderr}")


def codebook():
    """z + (q - z).detach(): the gradient is z's; the table that q is looked up in has none but by the loss of its own, here none."""
    x, labels, w, table = real(BATCH, 6), real(BATCH, 5), real(6, 5), real(3, 5)
    nodes = [node("MatMul", ["x", "w"], ["z"]), node("MatMul", ["z", "table"], ["s"]), node("ArgMax", ["s"], ["i"], axis=1, keepdims=0),
             node("Gather", ["codes", "i"], ["q"]), node("Sub", ["q", "z"], ["d"]), node("Add", ["z", "d"], ["y"])]
    _, found = trained(nodes, {"w": w, "codes": table}, {"table": table.T}, x, labels)
    q = table[np.argmax(x @ w @ table.T, 1)]
    want = x.T @ (2 * (q - labels) / q.size)
    off = np.linalg.norm(found["w"] - want) / np.linalg.norm(want)
    expect(off < 1e-5 and "codes" not in found, f"off by {off:.1e}; gradients of {sorted(found)}")
    return f"within {off:.0e}"


def drawn(op, expected, square, **attributes):
    """Other numbers in each step, the same on two ranks as on one, of the distribution that is asked for."""
    batch, width = 8, 512
    x = np.zeros((batch, width))
    nodes = [node("Mul", ["x", "w"], ["a"]), node(op, ["a"] if op.endswith("Like") else [], ["r"], **attributes), node("Add", ["a", "r"], ["y"])]
    onnx.save(model(nodes, {"w": np.ones(width)}, {}, x, x.shape, np.float32), str(suite.work / "m.onnx"))
    save_file({"x": np.zeros((4 * batch, width), np.float32), "labels": np.full((4 * batch, width), expected, np.float32)}, suite.work / "d.safetensors")
    losses = []
    for world in (1, 2):
        suite.zeroc("m.onnx", "p.bin", "--loss", "mse", "--train", ".", "--world", world, *(["--accumulate", "2"] if world == 1 else []))
        suite.zerorun("p.bin", "--data", "d.safetensors", "--steps", 2, "--metrics", "m.jsonl", "--seed", 3, world=world)
        losses.append(suite.losses("m.jsonl"))
    one, other = losses[0]
    expect(one != other, "two steps draw the same numbers")
    expect(np.allclose(losses[0], losses[1], rtol=1e-6), f"losses {losses[0]} on one rank and {losses[1]} on two")
    expect(abs(one - square) < 0.06 * square, f"the mean square is {one}, not {square}")
    return f"{one:.3f}, {other:.3f}"


suite.start()
for mode in ("linear", "nearest", "cubic"):
    for padding in ("zeros", "border", "reflection"):
        for corners in (0, 1):
            suite.check(f"operators: GridSample, {mode}, {padding}, {'centres' if corners else 'edges'}", grid_sample, mode, padding, corners)
suite.check("operators: GridSample of volumes", grid_sample, "linear", "zeros", 0, size=(3, 4, 5))
for op in ("LSTM", "GRU", "RNN"):
    for direction in ("forward", "reverse", "bidirectional"):
        suite.check(f"operators: {op}, {direction}", recurrent, op, direction)
    suite.check(f"operators: {op}, many steps", recurrent, op, "bidirectional", steps=24, hidden=32)
suite.check("operators: GRU, reset after", recurrent, "GRU", linear_before_reset=1)
for op, low, high in (("Tan", -1.2, 1.2), ("Asin", -0.95, 0.95), ("Acos", -0.95, 0.95), ("Atan", -5.0, 5.0), ("Sinh", -3.0, 3.0), ("Cosh", -3.0, 3.0),
                      ("Acosh", 1.05, 6.0), ("Atanh", -0.9, 0.9), ("Celu", -2.0, 2.0)):
    suite.check(f"operators: {op}", curve, op, low, high)
suite.check("operators: straight through, rounded - x.detach() + x", straight_through, [node("Sub", ["r", "a"], ["d"]), node("Add", ["d", "a"], ["y"])])
suite.check("operators: straight through, x + (rounded - x).detach()", straight_through, [node("Sub", ["r", "a"], ["d"]), node("Add", ["a", "d"], ["y"])])
for name, first, second in (("rounded - x.detach() + x", ["%r", "%detach"], ["%d", "%a"]), ("x + (rounded - x).detach()", ["%r", "%a"], ["%a", "%detach"])):
    suite.check(f"operators: straight through, {name}, as its calls say", straight_through,
                [said(node("Sub", ["r", "a"], ["d"]), "sub.Tensor", *first), said(node("Add", ["d", "a"], ["y"]), "add.Tensor", *second)])
suite.check("operators: straight through to a codebook", codebook)
for kind, scale, zero in ((np.int8, 0.01, 0), (np.uint8, 0.01, 100), (np.int16, 4e-5, 3), (np.uint8, [0.01, 0.02, 0.004, 0.01, 0.01], [100, 128, 90, 10, 250])):
    for of in ("activations", "weights"):
        suite.check(f"operators: {of} quantized to {np.dtype(kind)} and back, {'a scale for each column' if np.ndim(scale) else 'one scale'}", fake_quantized, kind, scale, zero, of)
suite.check("operators: activations quantized to a part of the range", fake_quantized, np.uint8, 0.02, 60, "activations", 127)
suite.check("operators: integers of a quantizer that are computed with", quantized_and_turned)
suite.check("operators: what is taken away and added back", added_back)
suite.check("operators: gradients of equal numbers", equal_numbers)
suite.check("operators: distances", distances)
for op, value, slope, attributes in (("Softplus", np.log(2), 0.5, {}), ("Mish", 0, np.tanh(np.log(2)), {}), ("Elu", 0, 1.5, {"alpha": 1.5}), ("Selu", 0, 1.0507009873554805 * 1.6732632423543772, {}),
                                     ("Celu", 0, 1, {"alpha": 2.0}), ("LeakyRelu", 0, 0.3, {"alpha": 0.3}), ("Relu", 0, 0, {}), ("Abs", 0, 0, {})):
    suite.check(f"operators: {op} of zeros", corner, node(op, ["p"], ["f"], **attributes), value, slope)
suite.check("operators: PRelu of zeros", corner, node("PRelu", ["p", "slope"], ["f"]), 0, 0.25, {"slope": np.array([0.25])})
for function, slope in (("clamp.default", 1), ("hardtanh.default", 0)):
    suite.check(f"operators: Clip of zeros at a bound, as {function} says", corner, said(node("Clip", ["p", "low"], ["f"]), function, "%p", "0"), 0, slope, {"low": np.array(0.0)})
suite.check("operators: Max of zeros, as clamp_min says", corner, said(node("Max", ["p", "low"], ["f"]), "clamp_min.default", "%p", "0"), 0, 1, {"low": np.array(0.0)})
for function, bound, slope in (("clamp.default", "0.0", 0), ("clamp_min.default", "0.0", 0)):
    each = node("Clip" if function == "clamp.default" else "Max", ["p", "low"], ["f"])
    suite.check(f"operators: {function} of zeros at a bound, by PyTorch 2.15", by_pytorch, "2.15.0", corner, said(each, function, "%p", bound), 0, slope, {"low": np.array(0.0)})
    suite.check(f"operators: {function} of zeros at a bound, by PyTorch 2.8", by_pytorch, "2.8.0", corner, said(each, function, "%p", bound), 0, 1, {"low": np.array(0.0)})
sigmoid, soft = lambda x: 1 / (1 + np.exp(-x)), lambda x: np.logaddexp(0, x)
of = [node("Sigmoid", ["a"], ["s"])]
suite.check("operators: Log of a sigmoid", saturated, [*of, node("Log", ["s"], ["y"])], lambda x: -soft(-x), lambda x: sigmoid(-x))
suite.check("operators: Log of 1 less a sigmoid", saturated, [*of, node("Sub", ["one", "s"], ["r"]), node("Log", ["r"], ["y"])], lambda x: -soft(x), lambda x: -sigmoid(x))
suite.check("operators: Log of 1 and a negative sigmoid", saturated, [*of, node("Neg", ["s"], ["n"]), node("Add", ["n", "one"], ["r"]), node("Log", ["r"], ["y"])], lambda x: -soft(x), lambda x: -sigmoid(x))
suite.check("operators: max(log(1 - p), -100) of a p that is 1", saturated, [*of, node("Sub", ["one", "s"], ["r"]), node("Log", ["r"], ["l"]), node("Max", ["l", "least"], ["y"])],
            lambda x: np.where(x > 0, -100.0, -np.exp(np.minimum(x, 0))), lambda x: np.where(x > 0, 0.0, -sigmoid(x)))
for weighted in (0, 1):
    suite.check(f"operators: smoothed labels that a call alone has{', with weights of classes' * weighted}", smoothed, weighted)
for weighted, part, reduction in ((0, 0, "mean"), (1, 0, "mean"), (1, 0.2, "sum"), (0, 0.1, "none")):
    suite.check(f"operators: labels that are probabilities, {reduction}{', weights of classes' * weighted}{f', {part} of them smoothed' if part else ''}", shares, weighted, part, reduction)
product_of, tanh = node("MatMul", ["x", "w"], ["a"]), node("Tanh", ["a"], ["t"])
for names, whose, last in (({"parameters": ("w", "t")}, "a weight", ["t", "x"]), ({"inputs": ("x", "t")}, "an input", ["t", "x"]), ({}, "another node's result", ["a", "x"])):
    nodes = [product_of, tanh, node("Mul", last, ["y"])] if names else [product_of, node("Tanh", ["x"], ["a"]), node("Mul", last, ["y"])]
    suite.check(f"operators: a result with the name of {whose}", refused, nodes, "'t', as is " + whose if names else "'a', as is " + whose, "cannot be told", **names)
suite.check("operators: a BatchNorm in train() that an exporter has folded", refused,
            [said(node("MatMul", ["x", "w"], ["y"]), "_native_batch_norm_legit_functional.default", "%x", "%w")], "the batch's own statistics", "optimize=False")
suite.check("operators: Round of large numbers", large_halves)
suite.check("operators: reductions of no axes, insertions from behind", elementwise_without_axes)
for name, base, power in (("the cube of the data", None, 3), ("known powers of the data", None, [0, 1, 2, 5, 40, -3]), ("powers of -3 by the data", -3, None),
                          ("known powers of known numbers", [2, 3, -1, 31, 7, 0], [62, 39, -5, 13, 0, 5]), ("the data to its own power", None, None)):
    suite.check(f"operators: {name}", whole_powers, base, power)
suite.check("operators: powers that are computed", computed_power)
for op, function in (("BitwiseAnd", np.bitwise_and), ("BitwiseOr", np.bitwise_or), ("BitwiseXor", np.bitwise_xor), ("BitwiseNot", lambda a, b: ~a)):
    suite.check(f"operators: {op}", bits, op, function)
for kind in (np.uint8, np.uint16, np.uint32, np.uint64):
    for direction in ("LEFT", "RIGHT"):
        for places in (3, None):
            suite.check(f"operators: BitShift of {np.dtype(kind)}, {direction}, {'by the data' if places is None else 'known'}", shifted, kind, direction, places)
for kind in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32):
    for whole in (True, False):
        suite.check(f"operators: Cast of {'integers' if whole else 'floats'} to {np.dtype(kind)}", narrowed, kind, whole)
for equation, width in (("bii,bij->bj", (3,)), ("bij,bkk->bk", (3,)), ("bii,bkk->bik", (3, 3))):
    suite.check(f"operators: Einsum {equation}", diagonals, equation, width)
for keep in (0, 1):
    suite.check(f"operators: ReduceProd, {'keeping' if keep else 'dropping'} the dimension", product, keep)
suite.check("operators: ReduceLogSumExp of masked rows", masked_rows)
suite.check("operators: Log of a sum of two exponentials", large_exponents)
suite.check("operators: Log of a sum of two powers of 2", large_exponents, 2.0)
for counts in (True, False):
    suite.check(f"operators: scatter_reduce by the mean, of what is there {'too' if counts else 'nothing'}", averaged, counts)
for n in (1, 2, 3, 5):
    suite.check(f"operators: Det of {n} x {n}", determinant, n)
for axis, backwards in ((1, 0), (1, 1), (2, 0)):
    suite.check(f"operators: Scan along dimension {axis}{', backwards' * backwards}", scanned, backwards, axis)
suite.check("operators: results called as a buffer and a parameter are", called_alike)
for op in ("ScatterElements", "ScatterND"):
    suite.check(f"operators: {op} that multiplies", multiplied, op)
suite.check("operators: SequenceMap", mapped_sequence)
suite.check("operators: a softmax of masked rows that is guarded", guarded_rows)
for length, to in ((14, 36), (18, 42), (5, 10)):
    suite.check(f"operators: Resize, nearest, {length} to {to}", nearest, length, to)
suite.check("operators: Resize, linear, 10 by 1.3", linear, 10, 1.3, 13)
for length, scale, to in ((3, 1.5, 4), (3, 2.5, 7), (5, 0.6, 3)):
    suite.check(f"operators: Resize, linear, corners aligned, {length} by {scale}", aligned, length, scale, to)
for equation, first, second, width in (("bhqd,bhkd->bhqk", (6, 3, 2), (1, 1, 4, 2), (6, 3, 4)), ("...qd,...kd->...qk", (3, 2), (1, 4, 2), (3, 4)), ("bij,bjk->bik", (2, 3), (1, 3, 5), (2, 5))):
    suite.check(f"operators: Einsum {equation} that broadcasts", broadcast_letters, equation, first, second, width)
suite.check("operators: AveragePool with a divisor", divided_sums)
suite.check("operators: Round of whole numbers", whole_numbers_round)
suite.check("operators: a function's input that is left out", left_out)
suite.check("operators: columns of an input with tables of their own", columns, 99)
suite.check("operators: columns of an input, beyond all tables", columns, 100)
suite.check("operators: an index and a number in columns of an input", index_beside_number)
suite.check("operators: the padding of an embedding", padding_row)
suite.check("operators: RandomNormalLike", drawn, "RandomNormalLike", 1.0, 4.0, mean=1.0, scale=2.0)
suite.check("operators: RandomUniformLike", drawn, "RandomUniformLike", 2.0, 1 / 3, low=1.0, high=3.0)
suite.check("operators: RandomNormal", drawn, "RandomNormal", 0.0, 1.0, shape=[8, 512])
suite.finish()
