#!/usr/bin/env python3
"""Small ONNX files for the tests of the reader: models.py NAME OUT.onnx"""
import os, sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper

B, T, D, H, V = 2, 6, 8, 2, 11
HD = D // H
random = np.random.default_rng(0)


class Graph:
    """Nodes, inputs and initializers under construction; every method that adds a node gives its output's name."""

    def __init__(self, opset=20):
        self.nodes, self.inputs, self.weights, self.opset, self.outputs = [], [], [], opset, []

    def input(self, name, kind, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def ids(self, name="input_ids"):
        return self.input(name, TensorProto.INT64, B, T)

    def weight(self, name, value):
        value = np.asarray(value)
        self.weights.append(numpy_helper.from_array(value.astype(np.float32) if value.dtype.kind == "f" else value, name))
        return name

    def normal(self, name, *shape):
        return self.weight(name, random.normal(size=shape) * 0.02)

    def const(self, value):
        name = f"c{len(self.weights)}"
        return self.weight(name, value)

    def __getattr__(self, op):
        def add(*inputs, name=None, outputs=1, **attributes):
            base = name or f"{op}_{len(self.nodes)}"
            out = [base] if outputs == 1 else [f"{base}.{i}" for i in range(outputs)]
            self.nodes.append(helper.make_node(op, list(inputs), out, name=base, **attributes))
            return out[0] if outputs == 1 else out
        return add

    def said(self, call, *scopes, function="it"):
        """What PyTorch's exporter writes of the last node: the call it came from, the modules it stands in."""
        props = self.nodes[-1].metadata_props
        props.add(key="pkg.torch.onnx.fx_node", value=f"%it : [num_users=1] = call_function[target=torch.ops.aten.{function}.default](args = ({call}), kwargs = {{}})")
        props.add(key="pkg.torch.onnx.name_scopes", value=str(["", *scopes, "it"]))

    def linear(self, x, name, *shape):
        return self.MatMul(x, self.normal(name, *shape))

    def einsum_of(self, x):
        """x xᵀ w, the dots standing for the batch."""
        return self.Einsum(x, x, self.normal("mix", D, 5), equation="...id,...jd,dk->...ijk")

    def heads(self, x):
        return self.Transpose(self.Reshape(x, self.const(np.array([0, 0, H, HD]))), perm=[0, 2, 1, 3])

    def attend(self, q, k, v, bias=None):
        """Decomposed attention; `bias` maps scores to scores."""
        s = self.MatMul(q, self.Transpose(k, perm=[0, 1, 3, 2]))
        s = self.Mul(s, self.const(0.5))
        p = self.Softmax(bias(s) if bias else s, axis=-1)
        return self.Reshape(self.Transpose(self.MatMul(p, v), perm=[0, 2, 1, 3]), self.const(np.array([0, 0, D])))

    def model(self, *outputs):
        infos = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
        graph = helper.make_graph(self.nodes, "g", self.inputs, infos, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10, producer_name="tests")


def embedded(g, ids="input_ids"):
    return g.Gather(g.normal("wte", V, D), g.ids(ids))


# ---------------------------------------------------------------------------------------------------- roles
def linear():
    g = Graph()
    x = embedded(g)
    y = g.Add(g.linear(x, "w", D, D), g.normal("b", D), name="add_bias")
    return g.model(g.LayerNormalization(y, g.normal("scale", D), g.normal("shift", D), axis=-1, name="norm"))


def zero_row(in_loss=False):
    """The buffer of zeros that BART adds to its logits, beside fresh biases of several shapes."""
    g = Graph()
    y = g.Add(g.linear(embedded(g), "w", D, D), g.weight("bias", np.zeros(D, np.float32)))
    y = g.Tanh(g.Add(y, g.weight("row", np.zeros((1, D), np.float32))))
    y = g.Add(g.Mul(y, g.normal("gain", 1, 1, D)), g.weight("grn.bias", np.zeros((1, 1, D), np.float32)))
    logits = g.Add(g.MatMul(y, g.normal("head", D, V)), g.weight("final_logits_bias", np.zeros((1, V), np.float32)))
    if not in_loss:
        return g.model(logits)
    flat, labels = g.Reshape(logits, g.const(np.array([-1, V]))), g.Reshape(g.ids("labels"), g.const(np.array([-1])))
    return g.model(g.SoftmaxCrossEntropyLoss(flat, labels, ignore_index=-100, reduction="mean"))


def zero_row_in_loss():
    return zero_row(in_loss=True)


def fillers():
    """A norm without weights, and sines projected by a weight, as exporters fold them."""
    g = Graph()
    x = g.LayerNormalization(embedded(g), g.weight("val_7", np.ones(D, np.float32)), axis=-1)
    x = g.LayerNormalization(x, g.weight("norm.weight", np.ones(D, np.float32)), axis=-1)
    x = g.InstanceNormalization(x, g.weight("val_8", np.ones(T, np.float32)), g.weight("val_9", np.zeros(T, np.float32)))
    angle = np.arange(T, 0, -1)[:, None] / 100.0 ** (np.arange(D // 2) * 2 / D)
    table = np.zeros((T + 1, D), np.float32) # the row of the padding token is zero
    table[1:] = np.concatenate([np.sin(np.arange(T)[:, None] * 0.3 ** np.arange(D // 2)), np.cos(np.arange(T)[:, None] * 0.3 ** np.arange(D // 2))], 1)
    x = g.Add(x, g.Gather(g.weight("embed_positions", table), g.ids("position_ids")))
    sines = g.weight("expand", np.concatenate([np.sin(angle), np.cos(angle)], 1))
    positions = g.Transpose(g.MatMul(sines, g.normal("r", D, D)), perm=[1, 0])
    return g.model(g.MatMul(x, positions))


def masks():
    """A causal mask, a sinusoidal table and a folded class token beside what can be learnt."""
    g = Graph()
    x = g.Add(embedded(g), g.normal("positions", 1, T, D))
    angle = np.arange(T)[:, None] / 100.0 ** (np.arange(D) // 2 * 2 / D)
    x = g.Add(x, g.weight("sinusoid", np.where(np.arange(D) % 2, np.cos(angle), np.sin(angle))[None]))
    x = g.Concat(g.weight("folded_token", np.repeat(random.normal(size=(1, 1, D)), B, 0)), x, axis=1)
    x = g.Concat(g.Expand(g.normal("token", 1, 1, D), g.const(np.array([B, 1, D]))), x, axis=1)
    n = T + 2
    q, k, v = (g.heads(g.linear(x, w, D, D)) for w in ("wq", "wk", "wv"))
    mask = g.weight("mask", np.triu(np.full((n, n), -1e30), 1)[None, None])
    soft = g.normal("soft_mask", 1, H, n, n)
    return g.model(g.attend(q, k, v, lambda s: g.Add(g.Add(s, mask), soft)))


def rotary(form):
    """Rotary embedding: from a cache looked up by position, one that is made of frequencies, or from frequencies times positions."""
    g = Graph()
    x = embedded(g)
    positions = g.ids("position_ids")
    if form == "cached":
        angles = np.outer(np.arange(32), 100.0 ** -np.tile(np.arange(HD // 2) / (HD // 2), 2))
        cos = g.Gather(g.weight("cos_cached", np.cos(angles)), positions)
        sin = g.Gather(g.weight("sin_cached", np.sin(angles)), positions)
    elif form == "made":
        angle = g.Mul(g.const(np.arange(32, dtype=np.float32)[:, None]), g.weight("inv_freq", [[1.0, 0.1, 1.0, 0.1]]))
        cos, sin = g.Gather(g.Cos(angle), positions), g.Gather(g.Sin(angle), positions)
    else:
        f = g.Cast(g.Unsqueeze(positions, g.const(np.array([1]))), to=TensorProto.FLOAT)
        angle = g.Transpose(g.MatMul(g.weight("inv_freq", [[[1.0], [0.1]]]), f), perm=[0, 2, 1])
        angle = g.Concat(angle, angle, axis=-1)
        cos, sin = g.Cos(angle), g.Sin(angle)
    one = g.const(np.array([1]))
    cos, sin = g.Unsqueeze(cos, one), g.Unsqueeze(sin, one)

    def turn(t):
        a, b = g.Split(t, outputs=2, axis=-1, num_outputs=2)
        return g.Add(g.Mul(t, cos), g.Mul(g.Concat(g.Neg(b), a, axis=-1), sin))

    q, k, v = (g.heads(g.linear(x, w, D, D)) for w in ("wq", "wk", "wv"))
    return g.model(g.attend(turn(q), turn(k), v))


def gates():
    """Activations times rows of learnt tables: of each position, and one number for each of the places that the data chooses."""
    g = Graph()
    x = embedded(g)
    positions = g.ids("position_ids")
    x = g.Mul(x, g.Gather(g.weight("gates", 0.1 * random.normal(size=(32, D))), positions))
    scale = g.Unsqueeze(g.Gather(g.weight("scales", np.ones(32)), positions), g.const(np.array([-1])))
    return g.model(g.linear(g.Mul(x, scale), "w", D, D))


def chosen_bias():
    """As in T5's encoder: where the attention mask shows a key, the bias of its relative position is chosen, and elsewhere the lowest number."""
    g = Graph()
    x = embedded(g)
    q, k, v = (g.heads(g.linear(x, w, D, D)) for w in ("wq", "wk", "wv"))
    buckets = np.abs(np.subtract.outer(np.arange(T), np.arange(T)))
    relative = g.Unsqueeze(g.Transpose(g.Gather(g.normal("relative_attention_bias", T, H), g.const(buckets)), perm=[2, 0, 1]), g.const(np.array([0])))
    seen = g.Unsqueeze(g.Cast(g.ids("attention_mask"), to=TensorProto.BOOL), g.const(np.array([1, 2])))
    return g.model(g.attend(q, k, v, lambda s: g.Add(s, g.Where(seen, relative, g.const(-3e38)))))


def bias():
    """A relative-position table looked up by known buckets, and ALiBi slopes times the attention mask's positions."""
    g = Graph()
    x = embedded(g)
    mask = g.Cast(g.ids("attention_mask"), to=TensorProto.FLOAT)
    q, k, v = (g.heads(g.linear(x, w, D, D)) for w in ("wq", "wk", "wv"))
    buckets = np.abs(np.subtract.outer(np.arange(T), np.arange(T)))
    relative = g.Unsqueeze(g.Transpose(g.Gather(g.normal("relative_attention_bias", T, H), g.const(buckets)), perm=[2, 0, 1]), g.const(np.array([0])))
    hide = g.Mul(g.Sub(g.const(1.0), g.Unsqueeze(mask, g.const(np.array([1, 2])))), g.const(-3e38))
    along = g.Mul(g.Sub(g.CumSum(mask, g.const(np.array(1))), g.const(1.0)), mask)
    alibi = g.Mul(g.weight("slopes", [[[0.5]], [[0.25]]]), g.Unsqueeze(along, g.const(np.array([1, 2]))))
    both = g.Add(relative, hide)
    return g.model(g.attend(q, k, v, lambda s: g.Add(g.Add(s, both), alibi)))


def gemma():
    """A scaled embedding, an RMS norm by 1 + w, a norm with a weight per head, a rotary table as a constant."""
    g = Graph()
    x = g.Mul(embedded(g), g.const(2.83))
    r = g.Reciprocal(g.Sqrt(g.Add(g.ReduceMean(g.Pow(x, g.const(2.0)), g.const(np.array([-1]))), g.const(1e-6))))
    x = g.Mul(g.Mul(x, r), g.Add(g.weight("norm", random.normal(size=D)), g.const(1.0)))
    q = g.Mul(g.Reshape(g.linear(x, "wq", D, D), g.const(np.array([0, 0, H, HD]))), g.weight("per_head", random.normal(size=(1, 1, H, HD))))
    q = g.Transpose(q, perm=[0, 2, 1, 3])
    angle = np.arange(T)[:, None] * np.array([1.0, 0.1, 1.0, 0.1])
    q = g.Mul(q, g.weight("cos_table", np.cos(angle)[None, None]))
    k, v = (g.heads(g.linear(x, w, D, D)) for w in ("wk", "wv"))
    return g.model(g.Mul(g.attend(q, k, v), g.normal("layer_scale", D)))


def numbers():
    """Numbers that scale activations: two picked out of vectors, one after an exponential, one of a module, two constants."""
    g = Graph()
    x, one = g.linear(embedded(g), "w", D, D), g.const(np.array(1))
    x = g.Mul(x, g.Gather(g.weight("lambdas", [0.7, 0.2]), one, axis=0))
    x = g.Mul(x, g.Slice(g.weight("skips", [0.5, 0.1, 0.3]), *(g.const(np.array([i])) for i in (1, 2, 0))))
    x = g.Mul(x, g.Exp(g.weight("logit_scale", 0.5)))
    x = g.Div(x, g.weight("attention.temperature", [1.5]))
    x = g.Add(g.weight("zeros", np.zeros(D)), x)
    return g.model(g.Mul(g.Mul(x, g.weight("val_3", [2.0])), g.weight("embed_scale", 8.0)))


def sums_begin():
    """What sums and recurrences begin with, as exporters fold zeros_like(x), for all samples and for all tokens, and an identity; positions start from zeros, too."""
    g = Graph()
    x = g.Add(embedded(g), g.weight("val_7", np.zeros((1, T, D))))
    x = g.Reshape(g.Add(g.weight("val_8", np.zeros((B, T, D))), x), g.const(np.array([B * T, D])))
    x = g.Reshape(g.Add(g.weight("val_9", np.zeros((B * T, D))), x), g.const(np.array([B, T, D])))
    x = g.Add(x, g.MatMul(x, g.weight("clone_5", np.zeros((B, D, D)))))
    x = g.Add(x, g.Mul(x, g.weight("clone_6", np.zeros((B, T, D)))))
    return g.model(g.MatMul(x, g.Add(g.MatMul(g.Transpose(x, perm=[0, 2, 1]), x), g.weight("_to_copy_1", np.eye(D)))))


def tables():
    """Coordinates through a little network make a position table; a decay is a lower triangle."""
    g = Graph()
    grid = np.stack(np.meshgrid(np.arange(T), np.arange(D), indexing="ij"), -1)[None] / 8.0
    bias = g.MatMul(g.Relu(g.MatMul(g.weight("layers.coords", grid), g.normal("mlp1", 2, 5))), g.normal("mlp2", 5, 1))
    x = g.Add(embedded(g), g.Reshape(bias, g.const(np.array([1, T, D]))))
    q, k = (g.heads(g.linear(x, w, D, D)) for w in ("wq", "wk"))
    s = g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), g.weight("layers.decay", np.tril(0.5 + random.random(size=(1, H, T, T)))))
    return g.model(g.MatMul(s, q))


def sorting():
    """All positions sorted by a score of each, and the scores put in that order."""
    g = Graph()
    score = g.Reshape(g.linear(embedded(g), "score", D, 4), g.const(np.array([1, B * T * 4])))
    return g.model(g.TopK(score, g.const(np.array([B * T * 4])), outputs=2, axis=-1, largest=0)[0])


def extremes():
    """Numbers at the ends of their types: a diagonal beyond the matrix, the largest padding, NaN among what is sorted."""
    g = Graph()
    most = g.const(np.array(2**63 - 1))
    far = g.Trilu(g.const(np.ones((1, D), np.int64)), most, upper=1)
    padded = g.Pad(g.const(np.zeros(D - 1, np.int64)), g.const(np.array([0, 1])), most)
    order = g.TopK(g.const(np.array([3, np.nan, 5, 4, 1, 0, 2, 6.0])), g.const(np.array([D])), outputs=2)[1]
    x = embedded(g)
    for known in (far, padded, order):
        x = g.Mul(x, g.Cast(known, to=TensorProto.FLOAT))
    return g.model(x)


def endless():
    """An image resized by a factor that is no number of elements."""
    g = Graph()
    x = g.input("pixels", TensorProto.FLOAT, B, 3, 8, 8)
    return g.model(g.Resize(x, "", g.const(np.array([1, 1, np.inf, 1.0])), name="grow"))


def fourier():
    """The real part of a transform over both dimensions, as FNet mixes tokens."""
    g = Graph()
    x = g.Unsqueeze(embedded(g), g.const(np.array([-1])))
    x = g.DFT(g.DFT(x, "", g.const(np.array(2))), "", g.const(np.array(1)))
    return g.model(g.Gather(x, g.const(np.array(0)), axis=-1))


def streams():
    """A table read by constants beside the data, as several streams."""
    g = Graph()
    one = g.Gather(g.normal("ngram", 2, D), g.const(np.ones((B, 1), np.int64)))
    return g.model(g.einsum_of(g.Concat(g.linear(embedded(g), "w", D, D), one, axis=1)))


def features():
    """A table of numbers, each times a vector of its own; a time that is no integer on its way to sines; a norm by running statistics
    whose mean the exporter has merged with a bias; a learnt number below a module."""
    g = Graph()
    x = g.BatchNormalization(g.input("numbers", TensorProto.FLOAT, B, T), g.weight("bn.weight", np.ones(T)), g.weight("bn.bias", np.zeros(T)),
                             "bn.bias", g.weight("bn.running_var", np.full(T, 2.0)), name="bn")
    x = g.Add(g.Mul(g.Unsqueeze(x, g.const(np.array([-1]))), g.normal("tokenizer", T, D)), g.normal("shift", T, D))
    angle = g.Mul(g.Unsqueeze(g.input("time", TensorProto.FLOAT, B), g.const(np.array([-1]))), g.weight("frequencies", 0.1 ** np.arange(D)[None]))
    x = g.Add(x, g.Unsqueeze(g.linear(g.Cos(angle), "time_mlp", D, D), g.const(np.array([1]))))
    x = g.PRelu(g.linear(x, "w", D, D), g.Reshape(g.weight("act.weight", [0.25]), g.const(np.array([1, 1, 1]))))
    return g.model(g.Add(x, g.weight("loss.bias", [0.5])))


def state_space():
    """Mamba's decays, a matrix of the layer's width and its states, in a layer as wide as the sequence is long; a table of positions in
    one with as many heads."""
    g = Graph()
    x = g.linear(embedded(g), "w", D, T)
    last = g.const(np.array([-1]))
    decay = g.Neg(g.Exp(g.weight("A_log", np.log(1 + random.random(size=(T, 3))))))
    steps = g.Unsqueeze(g.Softplus(g.Add(x, g.normal("dt_bias", T))), last)
    folded = g.Mul(steps, g.weight("A", -1 - random.random(size=(T, 3))))
    x = g.ReduceSum(g.Mul(g.Exp(g.Mul(steps, decay)), g.Exp(folded)), last, keepdims=0)
    heads = g.Transpose(g.Reshape(g.linear(x, "q", T, 2 * T), g.const(np.array([0, 0, T, 2]))), perm=[0, 2, 1, 3])
    return g.model(g.Mul(heads, g.weight("table", random.normal(size=(1, 1, T, 2)))))


def spectrum():
    """A filter that is learnt for each frequency and channel, its real parts in a dimension of their own."""
    g = Graph()
    x = g.DFT(g.Unsqueeze(embedded(g), g.const(np.array([-1]))), "", g.const(np.array(1)), onesided=1)
    real = g.Slice(x, *(g.const(np.array([i])) for i in (0, 1, 3)))
    y = g.Mul(real, g.normal("filter", T // 2 + 1, D, 1))
    return g.model(g.Sub(g.weight("fill", np.ones(D)), g.Squeeze(y, g.const(np.array([3])))))


def singular():
    """A matrix divided by its largest singular value, estimated by two vectors that are kept beside it; queries repeated for each sample
    and projected; queries that were projected before."""
    g = Graph()
    unit = lambda n: (lambda v: v / np.linalg.norm(v))(random.normal(size=n))
    w = g.normal("w", D, D)
    sigma = g.ReduceSum(g.Mul(g.weight("w_u", unit(D)), g.MatMul(w, g.weight("w_v", unit(D)))))
    x = g.MatMul(embedded(g), g.Div(w, sigma))
    q = g.MatMul(g.weight("queries", np.repeat(random.normal(size=(1, T, D)), B, 0)), g.normal("wq", D, D))
    x = g.MatMul(g.Softmax(g.MatMul(q, g.Transpose(x, perm=[0, 2, 1]))), x)
    folded = g.weight("folded", np.repeat(random.normal(size=(1, H, T, HD)), B, 0))
    turns = g.weight("turns", np.repeat(random.normal(size=(T, 1, D)), B, 1)) # the batch in the middle
    x = g.Add(x, g.Transpose(g.linear(turns, "wt", D, D), perm=[1, 0, 2]))
    return g.model(g.MatMul(folded, g.Transpose(g.heads(x), perm=[0, 1, 3, 2])))


def doubles():
    m = linear()
    for t in m.graph.initializer:
        if t.name == "w":
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), "w"))
    return m


def router():
    """Weights of the two best experts of each token, put in their places among four."""
    g = Graph()
    x = embedded(g)
    scores, experts = g.TopK(g.Softmax(g.linear(x, "gate", D, 4), axis=-1), g.const(np.array([2])), outputs=2, axis=-1)
    return g.model(g.ScatterElements(g.weight("zeros_7", np.zeros((B, T, 4))), experts, scores, axis=-1, name="routing"))


def as_given():
    """What PyTorch's exporters write as it was given: an einsum of integers and numbers, zeros of rank 2 where a convolution has no bias, a
    parameter of no rows, a buffer behind an alias, a tensor that the program itself holds; and the two largest numbers along a dimension that is
    not the last."""
    g = Graph()
    x = embedded(g)
    memory = g.Expand(g.weight("cell.memory", np.zeros((0, D))), g.const(np.array([B, 0, D])))
    g.said("%p_cell_memory, [2, -1, -1]", "cell")
    noise = g.Identity(g.normal("cell.noise", D, D), name="alias")
    g.said("%b_cell_noise", "cell")
    x = g.Einsum(g.const(np.arange(T)), g.MatMul(g.Concat(memory, x, axis=1), noise), equation="t,btd->btd")
    x = g.Add(x, g.normal("cell.lifted_tensor_0", T, D))
    g.said("%x, %c_cell_lifted_tensor_0", "cell")
    x = g.Conv(g.Reshape(x, g.const(np.array([B, T, 2, 2, 2]))), g.normal("mix", 4, T, 1, 1, 1), g.const(np.zeros((4, 2))))
    return g.model(g.TopK(x, g.const(np.array([2])), outputs=2, axis=1)[0])


def image():
    """Patches cut by a convolution, images normalised by constants."""
    g = Graph()
    x = g.input("pixels", TensorProto.FLOAT, B, 3, 8, 8)
    x = g.Div(g.Sub(x, g.weight("mean", random.normal(size=(3, 1, 1)))), g.weight("std", 1 + random.random(size=(3, 1, 1))))
    y = g.Conv(x, g.normal("patch", D, 3, 4, 4), g.normal("patch_bias", D), strides=[4, 4], kernel_shape=[4, 4])
    y = g.Conv(y, g.normal("kernel", D, D, 3, 3), g.normal("kernel_bias", D), pads=[1, 1, 1, 1])
    y = g.Transpose(g.Reshape(y, g.const(np.array([0, 0, -1]))), perm=[0, 2, 1])
    score = g.Add(g.linear(y, "head", D, 1), g.normal("head_bias", 1))
    return g.model(score)


def tied(value="embedding"):
    """The output projection is the embedding's transpose, stored again."""
    g = Graph()
    e = random.normal(size=(V, D))
    x = g.Gather(g.weight("wte", e), g.ids())
    return g.model(g.MatMul(x, g.weight("head", e.T)))


def copies():
    """Layers that start equal, two towers' tables, and a half that is another transposed; no word of an exporter."""
    g = Graph()
    w, e, a = random.normal(size=(D, D)), random.normal(size=(V, D)), random.normal(size=(D, 5))
    x = g.Add(g.Gather(g.weight("left.wte", e), g.ids()), g.Gather(g.weight("right.wte", e), g.ids("other_ids")))
    for i in range(4):
        x = g.Add(g.MatMul(x, g.weight(f"layers.{i}.weight", w)), g.weight(f"layers.{i}.bias", w[0]))
    x = g.MatMul(g.Tanh(g.MatMul(x, g.weight("encode.weight", a))), g.weight("val_3", a.T))
    return g.model(g.MatMul(g.MatMul(x, g.weight("eye.0", np.eye(D) * 2)), g.Transpose(g.weight("eye.1", np.eye(D) * 2), perm=[1, 0])))


def shared_table():
    """T5's embeddings of encoder and decoder and its head, each a copy."""
    g = Graph()
    e = random.normal(size=(V, D))
    x = g.Add(g.Gather(g.weight("encoder.weight", e), g.ids()), g.Gather(g.weight("decoder.weight", e), g.ids("decoder_input_ids")))
    return g.model(g.MatMul(x, g.weight("onnx::MatMul_7", e.T)))


def two_models():
    """Two language models that begin as one, each with a head that is its embedding."""
    g = Graph()
    e, out = random.normal(size=(V, D)), []
    for name in ("student", "teacher"):
        x = g.Tanh(g.Gather(g.weight(f"{name}.wte", e), g.ids(f"{name}_ids")))
        out.append(g.MatMul(x, g.weight(f"{name}.head", e.T)))
    return g.model(*out)


def declared():
    """Arguments of calls that tell parameters ("p_") and buffers ("b_"), whatever they hold; one value the exporter has computed."""
    g = Graph()

    def at(op, x, name, value, kind="p"):
        x = op(x, g.weight(name, value))
        g.said(f"%x, %{kind}_" + name.replace(".", "_"))
        return x
    x = at(g.MatMul, g.Gather(g.normal("wte.weight", V, D), g.ids()), "mix.weight", np.eye(D))
    x = at(g.Mul, x, "norm.alpha", np.array(0.5))
    x = at(g.Mul, x, "norm.scale", np.array(0.5), "b")
    x = at(g.Mul, x, "temp", np.array(2.0))
    x = at(g.Add, x, "attn.k_bias", np.zeros(D), "b")
    x = at(g.Sub, x, "mean", random.normal(size=D), "b")
    x = at(g.Add, x, "rows.signs", np.eye(T, D))
    turns = np.arange(T)[:, None] / 2.0 ** np.arange(D // 2)
    x = at(g.Add, x, "positions.weight", np.concatenate([np.sin(turns), np.cos(turns)], axis=1))
    x = g.Add(x, g.normal("mul_1", T, D))
    g.said("%x, %mul_1")
    x = g.MatMul(x, g.normal("t_1", D, D))
    g.said("%x, %t_1")
    return g.model(x)


def literals():
    """PyTorch's older exporter: numbers of the program in Constant nodes (a grid of positions that a convolution of 1 projects, a size of Resize
    that is joined of two), and weights as initializers."""
    g = Graph()
    places = g.Conv(g.Sin(g.weight("/pos/Constant_output_0", np.arange(32.0).reshape(1, 4, 4, 2))), g.weight("pos.proj.weight", random.normal(size=(D, 4, 1, 1))))
    x = g.Add(g.Conv(g.input("image", TensorProto.FLOAT, B, 3, 4, 2), g.weight("conv.weight", random.normal(size=(D, 3, 1, 1)))), places)
    x = g.Mul(x, g.weight("/Constant_1_output_0", np.full((1,), 2.0)))
    factors = g.Concat(g.weight("/Constant_2_output_0", np.ones(2)), g.weight("/Constant_3_output_0", np.full(2, 2.0)), axis=0)
    m = g.model(g.Resize(x, "", factors, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"))
    m.producer_name = "pytorch"
    for t in [t for t in m.graph.initializer if t.name.startswith("/")]:
        m.graph.node.insert(0, helper.make_node("Constant", [], [t.name], name=t.name, value=t))
        m.graph.initializer.remove(t)
    return m


def undeclared():
    """Numbers of modules of which nothing tells whether they are learnt."""
    g = Graph()
    x = g.linear(g.Gather(g.normal("wte.weight", V, D), g.ids()), "w", D, D)
    return g.model(g.Mul(g.Mul(x, g.weight("norm.alpha", np.array(0.5))), g.const(np.array(0.5))))


def calls():
    """What the newer exporter leaves of a layer that is applied twice, and of two that start equal: folded copies, and one tensor for all."""
    g = Graph()
    x, w, v, b = embedded(g), *(random.normal(size=(D, D)) for _ in range(2)), g.weight("layers.0.bias", random.normal(size=D))
    for i in range(2):
        x = g.MatMul(x, g.weight(f"val_{i}", w), name=f"applied_{i}")
        g.said("%x, %p_one_weight, %p_one_bias", "one")
        x = g.Add(x, "one.bias", name=f"applied_bias_{i}")
        g.said("%x, %p_one_weight, %p_one_bias", "one")
    g.weight("one.bias", random.normal(size=D))
    for i in range(2):
        x = g.MatMul(x, g.weight(f"val_{2 + i}", v), name=f"copied_{i}")
        g.said(f"%x, %p_layers_{i}_weight, %p_layers_{i}_bias", f"layers.{i}")
        x = g.Add(x, b, name=f"copied_bias_{i}")
        g.said(f"%x, %p_layers_{i}_weight, %p_layers_{i}_bias", f"layers.{i}")
    return g.model(x)


def numbered():
    """What PyTorch 2.5 calls an argument that comes again, and two parameters of a module with names like that."""
    g = Graph()
    x, w, v = embedded(g), g.normal("made_1", D, D), g.normal("made_2", D, D)
    for again in ("", "_1", "_2"):
        x = g.MatMul(x, w)
        g.said(f"%x, %p_l__s___table_weight{again}")
    for name in ("p_mix_weight", "p_mix_weight_1"):
        x = g.MatMul(x, v)
        g.said(f"%x, %{name}")
    return g.model(g.Add(x, g.normal("mix.weight_1", D)))


def at_one_node():
    """One tensor for the scale and the bias of a norm, and for two biases of a module that is a function: an exporter has merged what was equal."""
    g = Graph()
    both, zeros = g.weight("norm.weight", np.full(D, 0.5)), g.weight("block.first", np.zeros(D))
    x = g.LayerNormalization(embedded(g), both, both, name="norm")
    m = g.model(g.Block(x, zeros, zeros, domain="tests", name="call"))
    block = [helper.make_node("Add", ["x", "a"], ["s"], name="first"), helper.make_node("Tanh", ["s"], ["t"]), helper.make_node("Add", ["t", "b"], ["y"], name="second")]
    m.functions.append(helper.make_function("tests", "Block", ["x", "a", "b"], ["y"], block, [helper.make_opsetid("", 20)]))
    m.opset_import.append(helper.make_opsetid("tests", 1))
    return m


def identities():
    """What the older exporter leaves of the same: tensors merged through Identity nodes, its names on nodes."""
    g = Graph()
    x = embedded(g)
    for name, modules in (("one", ("one", "one_1")), ("layers.0", ("layers.0", "layers.1"))):
        w, b = g.normal(f"onnx::MatMul_{len(g.nodes)}", D, D), g.normal(f"{name}.bias", D)
        for i, module in enumerate(modules):
            first, second = w, b
            if i:
                first = g.Identity(w, name=f"onnx::MatMul_{90 + len(g.nodes)}")
                second = g.Identity(b, name=f"{module}.bias") if name != "one" else b
            x = g.MatMul(x, first, name=f"/{module}/MatMul")
            x = g.Add(x, second, name=f"/{module}/Add")
    return g.model(x)


def own():
    """What the older exporter leaves of vectors that are the exported model's own, read number by number, one of them beside an input alone; two pairs are merged."""
    g = Graph()
    gains, zeros = g.weight("gains", np.ones(3)), g.weight("last.bias", np.zeros(D))
    picked = lambda v, i: g.Gather(v, g.const(np.array(i)), name=f"/Gather_{len(g.nodes)}")
    x = g.Mul(g.input("pixels", TensorProto.FLOAT, B, T, D), picked(gains, 0), name="/Mul")
    x = g.Add(g.linear(x, "first.weight", D, D), g.Identity(zeros, name="first.bias"), name="/first/Add")
    x = g.Mul(g.Tanh(g.Mul(x, picked(gains, 1), name="/Mul_1")), picked(gains, 2), name="/Mul_2")
    x = g.Mul(x, picked(g.Identity(gains, name="others"), 0), name="/Mul_3")
    return g.model(g.Add(g.linear(x, "last.weight", D, D), zeros, name="/last/Add"))


def stripped():
    """Two layers that an exporter has merged and a tool has stripped of their names, beside an embedding that is the output projection."""
    g = Graph()
    wte, w, b = g.normal("wte", V, D), g.normal("layers.0.weight", D, D), g.normal("layers.0.bias", D)
    x = g.Gather(wte, g.ids())
    for _ in range(2):
        x = g.Tanh(g.Add(g.MatMul(x, w), b))
    return g.model(g.MatMul(x, g.Transpose(wte, perm=[1, 0])))


def renamed():
    """Matrices and a scale under names that an exporter has made up, and what their nodes are called."""
    g = Graph()
    x = g.MatMul(embedded(g), g.normal("onnx::MatMul_88", D, D), name="/encoder/layers.0/query/MatMul")
    x = g.Mul(x, g.weight("val_3", 0.5), name="/encoder/layers.0/query/Mul")
    x = g.MatMul(x, g.normal("val_17", D, D), name="node_linear")
    g.said("%x, %p_encoder_layers_0_value_weight", "encoder", "encoder.layers.0", "encoder.layers.0.value")
    return g.model(x)


def constants():
    """Paddle's way: weights in Constant nodes."""
    m = linear()
    for t in [t for t in m.graph.initializer if t.name != "wte"]:
        m.graph.node.insert(0, helper.make_node("Constant", [], [t.name], name=f"Constant_{t.name}", value=t))
        m.graph.initializer.remove(t)
    return m


def quantized():
    """A table of rows and a matrix in 8 bits, by a cast and scales and by DequantizeLinear; a mask of bytes is no table."""
    g = Graph()
    rows = g.Gather(g.weight("wte_q", random.integers(-127, 127, (V, D)).astype(np.int8)), g.ids())
    scales = g.Gather(g.normal("wte_scale", V, 1), "input_ids")
    x = g.Mul(g.Cast(rows, to=TensorProto.FLOAT), scales)
    x = g.Add(g.MatMul(x, g.DequantizeLinear(g.weight("w_q", random.integers(0, 255, (D, D)).astype(np.uint8)), g.normal("w_scale", D),
                                             g.weight("w_zero", np.full(D, 128, np.uint8)), axis=1)), g.normal("b", D))
    mask = g.Cast(g.weight("mask", np.tril(np.ones((T, T), np.uint8))), to=TensorProto.FLOAT)
    return g.model(g.MatMul(g.Mul(mask, g.const(0.5)), x))


def integers():
    g = Graph()
    return g.model(g.Cast(g.MatMulInteger(g.input("x", TensorProto.INT8, 2, D), g.weight("w_q", np.ones((D, 4), np.int8)), name="product"), to=TensorProto.FLOAT))


def hidden():
    """Dropout that rests, dropout that drops, products in 16 bits, a matrix that is stored so."""
    g = Graph()
    half = lambda x: g.Cast(x, to=TensorProto.FLOAT16)
    x = g.Dropout(embedded(g), g.const(0.1), name="rests")
    x = g.Dropout(x, g.const(0.25), g.const(np.array(True)), name="drops")
    stored = numpy_helper.from_array((random.normal(size=(D, D)) * 0.02).astype(np.float16), "w16")
    g.weights.append(stored)
    x = g.MatMul(half(x), g.Cast(g.normal("w", D, D), to=TensorProto.FLOAT16))
    return g.model(g.Cast(g.MatMul(x, "w16"), to=TensorProto.FLOAT))


def bytes_for_names(node=False):
    """Names that are no UTF-8: of a matrix, or of a node only."""
    m = linear()
    data = m.SerializeToString()
    old, new = (b"MatMul_", b"MatMul\xff") if node else (b"scale", b"sc\xfcle")
    assert data.count(old) > 1
    return data.replace(old, new)


def thin():
    """A matrix of one column has the bytes of a vector, and is not its transpose."""
    g = Graph()
    column = random.normal(size=(D, 1))
    x = g.Add(g.linear(embedded(g), "w", D, D), g.weight("b", column[:, 0]))
    return g.model(g.MatMul(x, g.weight("column", column)))


def merged():
    """One zero vector serves as every bias; an Identity node keeps a lost name."""
    g = Graph()
    zero = g.weight("b0", np.zeros(D))
    x = g.Add(embedded(g), zero, name="first")
    x = g.Add(g.linear(x, "w1", D, D), g.Identity(zero, name="kept/b1"), name="second")
    return g.model(g.LayerNormalization(x, g.weight("scale", np.ones(D)), zero, axis=-1, name="norm"))


def shared():
    """One layer applied twice: its zero bias is one parameter."""
    g = Graph()
    x, w, b = embedded(g), g.normal("w", D, D), g.weight("b", np.zeros(D))
    for _ in range(2):
        x = g.Add(g.MatMul(x, w), b)
    return g.model(x)


def left_out():
    """The optimizer of PyTorch's newer exporter leaves out a bias of zeros, and computes a table of a buffer."""
    g = Graph()
    x = g.Gather(g.normal("val_3", V, D), g.input("ids", TensorProto.INT64, B))
    g.said("%b_schedule, [%ids]", function="index")
    x = g.Gemm(x, g.normal("head.weight", D, 5))
    g.said("%x, %p_head_weight, %p_head_bias", "head")
    return g.model(x)


def called_again():
    """Modules that are called more than once, as the older exporter names nodes: by their parent, and by another module. What a tool has merged since is used in modules of its own."""
    g = Graph()
    norm = lambda x, name, path: g.LayerNormalization(x, *params[name], axis=-1, name=f"/{path}/LayerNormalization")
    params = {name: [g.weight(f"h.{name}.{part}", np.full(D, number)) for part, number in zip(("weight", "bias"), numbers)]
              for name, numbers in (("0.norm", (1.0, 0.0)), ("0.out.last", (1.0, 0.0)), ("0.first", (2.0, 3.0)))}  # equal ones that stand apart were not merged
    x = embedded(g)
    for name, path in (("0.norm", "h.0/norm"), ("0.norm", "h.0/norm_1"), ("0.norm", "h.0/norm_2"), ("0.out.last", "h.0/out/last"), ("0.out.last", "h.0/last"),
                       ("0.first", "h.0/first"), ("0.first", "h.1/first")):
        x = norm(g.Relu(x), name, path)
    return g.model(x)


# ---------------------------------------------------------------------------------------------------- forms
def branches():
    """An If with a known condition, a sequence, a model-local function and a training dropout."""
    g = Graph()
    x = embedded(g)
    w = g.normal("w", D, D)
    then = helper.make_graph([helper.make_node("MatMul", [x, w], ["t"], name="inner")], "then", [], [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)])
    other = helper.make_graph([helper.make_node("NoSuchOperator", [x], ["e"])], "else", [], [helper.make_tensor_value_info("e", TensorProto.FLOAT, None)])
    y = g.If(g.const(np.array(True)), then_branch=then, else_branch=other)
    parts = g.SplitToSequence(y, g.const(np.array(4)), axis=2)
    y = g.Concat(g.SequenceAt(parts, g.const(np.array(1))), g.SequenceAt(parts, g.const(np.array(0))), axis=-1)
    y = g.Dropout(y, g.const(0.25), g.const(np.array(True)), name="drop")
    y = g.Twice(y, domain="tests", name="call")
    m = g.model(y)
    twice = [helper.make_node("Add", ["a", "a"], ["s"], name="sum")]
    m.functions.append(helper.make_function("tests", "Twice", ["a"], ["s"], twice, [helper.make_opsetid("", 20)]))
    m.opset_import.append(helper.make_opsetid("tests", 1))
    return m


def unbound():
    """Pieces of one, without their dimension, as PyTorch 2.7 writes torch.unbind."""
    g = Graph()
    parts = g.SplitToSequence(embedded(g), g.const(np.array(1)), axis=1, keepdims=0)
    return g.model(g.Add(g.SequenceAt(parts, g.const(np.array(0))), g.SequenceAt(parts, g.const(np.array(-1)))))


def dynamic():
    g = Graph()
    ids = g.input("input_ids", TensorProto.INT64, "batch", "seq")
    x = g.Gather(g.normal("wte", V, D), ids)
    shape = g.Concat(g.Shape(ids), g.const(np.array([H, HD])), axis=0)
    return g.model(g.linear(g.Reshape(x, shape), "w", HD, HD))


def weighted_loss():
    """A weight for each class, no reduction, then the mean."""
    g = Graph()
    logits = g.Reshape(g.linear(embedded(g), "head", D, V), g.const(np.array([-1, V])))
    labels = g.Reshape(g.ids("labels"), g.const(np.array([-1])))
    loss = g.SoftmaxCrossEntropyLoss(logits, labels, g.weight("class_weights", np.linspace(0.5, 1.5, V)), ignore_index=-100, reduction="none")
    return g.model(g.ReduceMean(loss, keepdims=0, name="loss"))


def cross_entropy():
    g = Graph(17)
    logits = g.Transpose(g.linear(embedded(g), "head", D, V), perm=[0, 2, 1])
    return g.model(g.SoftmaxCrossEntropyLoss(logits, g.ids("labels"), ignore_index=-100))


def attention():
    g = Graph(23)
    x = embedded(g)
    q = g.linear(x, "wq", D, D)
    k, v = (g.linear(x, w, D, HD) for w in ("wk", "wv"))
    mask = g.const(np.tril(np.ones((T, T), bool)))
    return g.model(g.Attention(q, k, v, mask, q_num_heads=H, kv_num_heads=1, scale=0.5))


def sinks():
    """GPT-OSS: a column of learnt numbers beside the scores, which are under a cap here, too."""
    g = Graph()
    x = embedded(g)
    q, k, v = (g.heads(g.linear(x, w, D, D)) for w in ("wq", "wk", "wv"))
    scores = g.Mul(g.Tanh(g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), g.const(np.array(0.25)))), g.const(np.array(2.0)))
    column = g.Expand(g.normal("sinks", 1, H, 1, 1), g.const(np.array([B, H, T, 1])))
    joined = g.Concat(scores, column, axis=-1)
    p = g.Softmax(g.Sub(joined, g.ReduceMax(joined, g.const(np.array([-1])), keepdims=1)), axis=-1)
    y = g.MatMul(g.Slice(p, g.const(np.array([0])), g.const(np.array([T])), g.const(np.array([3]))), v)
    return g.model(g.linear(g.Reshape(g.Transpose(y, perm=[0, 2, 1, 3]), g.const(np.array([0, 0, D]))), "wo", D, D))


def slices():
    """What PyTorch's exporter makes of y[..., 2, :] = a and y[..., 3:5] = b."""
    g = Graph()
    x = embedded(g)
    a = g.ReduceSum(x, g.const(np.array([1])), keepdims=1)
    y = g.ScatterElements(x, g.const(np.full((B, 1, D), 2)), a, axis=1)
    turned = g.Transpose(y, perm=[2, 0, 1])
    b = g.Slice(turned, g.const(np.array([0])), g.const(np.array([2])), g.const(np.array([0])))
    return g.model(g.Transpose(g.ScatterND(turned, g.const(np.array([[3], [4]])), b), perm=[1, 2, 0]))


def layers():
    """Each layer makes the same mask of its own, as PyTorch's attention writes it, beside a window that differs."""
    g = Graph()
    x = g.input("x", TensorProto.FLOAT, 1, 1, 160, 160)
    rows, columns = g.const(np.arange(160).reshape(160, 1)), g.const(np.arange(160).reshape(1, 160))
    for window in (200, 200, 40):
        seen = g.And(g.LessOrEqual(columns, rows), g.Greater(g.Add(columns, g.const(np.array(window))), rows))
        mask = g.Where(seen, g.const(np.array(0.0)), g.const(np.array(-np.inf)))
        x = g.Add(g.Mul(x, g.normal(f"scale{len(g.nodes)}", 160)), mask)
    return g.model(x)


def norms_of_vectors():
    """Rows over their norm, by an operator and by hand."""
    g = Graph()
    x = g.LpNormalization(embedded(g), axis=-1, p=2)
    return g.model(g.Div(x, g.ReduceL2(x, g.const(np.array([-1])), keepdims=1)))


# ---------------------------------------------------------------------------------------------------- broken files
def found():
    """Tokens found by a mask of the data."""
    g = Graph()
    ids = g.ids()
    return g.model(g.GatherND(g.normal("x", B, T, D), g.Transpose(g.NonZero(g.Equal(ids, g.const(np.array(2))), name="find"), perm=[1, 0])))


def complex_cast():
    g = Graph()
    return g.model(g.Cast(embedded(g), to=TensorProto.COMPLEX128, name="cast"))


def custom():
    g = Graph()
    m = g.model(g.FusedGelu(embedded(g), domain="com.microsoft", name="gelu_7"))
    m.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return m


def detached():
    """detach() of a product, of a parameter and of an input, and the two forms of a straight-through estimator."""
    g = Graph()

    def detach(x):
        y = g.Identity(x, name=f"detach_{len(g.nodes)}")
        g.said("%p_" + x.replace(".", "_"), function="detach")
        return y
    x = g.input("x", TensorProto.FLOAT, T, D)
    a = g.linear(x, "w", D, D)
    b = g.Mul(detach(a), g.Tanh(detach(x)), name="of_detached")
    c = g.Add(g.MatMul(b, detach(g.normal("fixed.weight", D, D))), g.linear(x, "v", D, D))
    d = g.Add(g.Sub(g.Round(c), c, name="less"), c, name="rounded")
    e = g.Floor(d)
    return g.model(g.Add(d, g.Sub(e, d), name="floored"))


def unknown():
    g = Graph()
    return g.model(g.Unique(g.input("x", TensorProto.FLOAT, 4), name="unique"))


def without_weights():
    """As PyTorch's older exporter writes export_params=False: parameters are inputs."""
    g = Graph()
    m = g.model(g.MatMul(g.input("x", TensorProto.FLOAT, 4, 3), g.input("head.weight", TensorProto.FLOAT, 3, 5)))
    m.producer_name = "pytorch"
    return m


def weights_left_out():
    """As the newer one does: nothing defines them."""
    g = Graph()
    return g.model(g.MatMul(g.input("x", TensorProto.FLOAT, 4, 3), "head.weight", name="product"))


def runtime_shape():
    g = Graph()
    return g.model(g.Reshape(g.input("x", TensorProto.FLOAT, 4), g.input("shape", TensorProto.INT64, 2), name="view"))


def old():
    g = Graph(9)
    return g.model(g.Relu(g.input("x", TensorProto.FLOAT, 4)))


def newer():
    """Uses an operator its opset does not have."""
    g = Graph(18)
    return g.model(g.Gelu(g.input("x", TensorProto.FLOAT, 4), name="gelu"))


def wrong_shapes():
    g = Graph()
    return g.model(g.MatMul(g.input("x", TensorProto.FLOAT, 4, 3), g.normal("w", 5, 2), name="product"))


def wrong_types():
    g = Graph()
    large = g.Greater(g.input("x", TensorProto.FLOAT, 4, 3), g.const(0.0))
    return g.model(g.LayerNormalization(large, g.weight("scale", np.ones(3)), name="norm"))


def relu_of_sequence():
    g = Graph()
    return g.model(g.Relu(g.SplitToSequence(g.input("x", TensorProto.FLOAT, 4, 3), name="parts"), name="bend"))


def boolean_product():
    g = Graph()
    flags = g.Mul(g.const(np.array([True, False, True])), g.const(np.array([True, True, True])), name="product")
    return g.model(g.Where(flags, g.input("x", TensorProto.FLOAT, 4, 3), g.const(0.0)))


def many_pieces():
    g = Graph()
    x = g.input("x", TensorProto.FLOAT, 4, 3)
    return g.model(g.Concat(*[x] * 5000, axis=1, name="join"))


def in_module():
    m = wrong_shapes()
    m.graph.node[0].metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'transformer', 'transformer.h.3', 'product']")
    return m


def external(location="weights.bin", offset=64, length=V * D * 4, write=True):
    m = linear()
    t = next(i for i in m.graph.initializer if i.name == "wte")
    data = t.raw_data
    t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        t.external_data.add(key=key, value=str(value))
    return m, data


def no_data():
    m = linear()
    for t in m.graph.initializer:
        if t.name == "wte":
            t.ClearField("raw_data")
    return m


def main():
    name, out = sys.argv[1:3]
    folder = os.path.dirname(os.path.abspath(out))
    if name == "truncated":
        data = linear().SerializeToString()
        data = data[:len(data) * 2 // 3]
    elif name == "text":
        data = b"this is a text file, not a model\n" * 20
    elif name.startswith("external"):
        how = name.partition("_")[2]
        location = {"": "weights.bin", "absolute": "/etc/passwd", "parent": "a/../../secret.bin", "missing": "nowhere.bin", "link": "link.bin",
                    "hard": "hard.bin"}.get(how, "weights.bin")
        m, raw = external(location, 2**63 if how == "offset" else 64, 4 if how == "length" else V * D * 4)
        for other in ("weights.bin", "link.bin", "hard.bin", "other.bin"):
            if os.path.lexists(f"{folder}/{other}"):
                os.remove(f"{folder}/{other}")
        with open(f"{folder}/weights.bin", "wb") as f:
            f.write(b"\0" * 64 + raw[:10 if how == "short" else None])
        if how == "link":
            os.symlink("weights.bin", f"{folder}/link.bin")
        if how == "hard":
            os.link(f"{folder}/weights.bin", f"{folder}/hard.bin")
        data = m.SerializeToString()
    else:
        arguments = {"rotary_cached": (rotary, "cached"), "rotary_made": (rotary, "made"), "rotary_frequencies": (rotary, "frequencies"), "bytes_for_nodes": (bytes_for_names, True)}.get(name)
        m = arguments[0](arguments[1]) if arguments else globals()[name]()
        data = m if isinstance(m, bytes) else m.SerializeToString()
    with open(out, "wb") as f:
        f.write(data)


main()
