#!/usr/bin/env python3
"""Gradients through operators that a handler writes out, against finite differences of ONNX's reference evaluator in double precision;
straight-through estimators and the padding of embeddings against what PyTorch makes of them; and numbers drawn in the forward pass."""
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


def model(nodes, parameters, constants, x, y, kind, opset=20):
    """A graph from `x` to `y`, its floats of one type."""
    as_kind = lambda a: a.astype(kind) if a.dtype.kind == "f" else a
    tensors = [numpy_helper.from_array(as_kind(np.asarray(v)), n) for n, v in (parameters | constants).items()]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", element, x.shape)],
                              [helper.make_tensor_value_info("y", element, y)], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def trained(nodes, parameters, constants, x, labels, *flags, **kw):
    """(loss, gradients) of the first step, the mean squared error to the labels."""
    made = model(nodes, parameters, constants, x, labels.shape, np.float32)
    onnx.save(made, str(suite.work / "m.onnx"))
    save_file({"x": x.astype(np.float32), "labels": labels.astype(np.float32)}, suite.work / "d.safetensors")
    suite.zeroc("m.onnx", "p.bin", "--loss", "mse", "--train", ".", *flags)
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


def straight_through(nodes, *said):
    """y = round(x w), whose gradient is that of x w: 2 (y - labels) / n, and not that of a round, which is nothing."""
    x, labels, w = real(BATCH, 6), real(BATCH, 5), real(6, 5)
    loss, found = trained([node("MatMul", ["x", "w"], ["a"]), node("Round", ["a"], ["r"]), *nodes], {"w": w}, {}, x, labels)
    y = np.rint(x.astype(np.float32) @ w.astype(np.float32))
    want = x.T @ (2 * (y - labels) / y.size)
    off = np.linalg.norm(found["w"] - want) / np.linalg.norm(want)
    expect(abs(loss - np.mean((y - labels) ** 2)) < 1e-5 and off < 1e-5, f"the gradient is off by {off:.1e} of its norm")
    return f"within {off:.0e}"


def padding_row():
    """The row of an embedding's padding gets no gradient, as the call that the exporter notes says; what else reads the table gives it one."""
    ids, labels, table = np.array([[2, 0, 1], [0, 0, 3]]), real(2, 3, 5), real(4, 5)
    lookup = node("Gather", ["table", "ids"], ["rows"])
    lookup.metadata_props.add(key="pkg.torch.onnx.fx_node", value="%embedding : [num_users=1] = call_function[target=torch.ops.aten.embedding.default](args = (%p_table, %ids, 0), kwargs = {})")
    nodes = [node("Cast", ["x"], ["ids"], to=TensorProto.INT64), lookup, node("Slice", ["table", "zero", "three"], ["again"]), node("Add", ["rows", "again"], ["y"])]
    loss, found = trained(nodes, {"table": table}, {"zero": np.array([0]), "three": np.array([3])}, ids.astype(np.float64), labels)
    d = 2 * (table[ids] + table[:3] - labels) / labels.size
    want = np.zeros_like(table)
    np.add.at(want, ids, d * (ids != 0)[..., None])
    want[:3] += d.sum(0)
    off = np.linalg.norm(found["table"] - want) / np.linalg.norm(want)
    expect(off < 1e-5, f"off by {off:.1e}")
    return f"within {off:.0e}"


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
suite.check("operators: straight through to a codebook", codebook)
suite.check("operators: the padding of an embedding", padding_row)
suite.check("operators: RandomNormalLike", drawn, "RandomNormalLike", 1.0, 4.0, mean=1.0, scale=2.0)
suite.check("operators: RandomUniformLike", drawn, "RandomUniformLike", 2.0, 1 / 3, low=1.0, high=3.0)
suite.check("operators: RandomNormal", drawn, "RandomNormal", 0.0, 1.0, shape=[8, 512])
suite.finish()
