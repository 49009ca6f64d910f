"""Random small models as ONNX, and their loss in f64 by onnx.reference.

What the generator is after is the structure of a training step, not the operators: parameters used several times or not at all, shared by
layers, tied to the embedding, of one element; odd sizes; residual-only graphs; deep and narrow, shallow and wide.
"""
import math
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", "Softplus", "silu", "gelu", "square", "root", "softmax")


class Graph:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes, self.constants, self.parameters = [], [], {}
        self.share = self.random.choice((0, .2, .8))  # how often a parameter is one that exists already
        self.again = None  # parameters of a block that is repeated

    def op(self, kind, inputs, outputs=1, **attributes):
        names = [f"{kind.lower()}_{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"node_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value, dtype=np.float32):
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), f"constant_{len(self.constants)}"))
        return self.constants[-1].name

    def parameter(self, shape, kind="weight", mean=0.0, std=None):
        if self.again is not None:
            return next(self.again)
        fitting = [n for n, v in self.parameters.items() if v.shape == tuple(shape) and n.endswith(kind)]
        if fitting and self.numbers.random() < self.share:  # numbers: a repeated block draws its structure again, and nothing else
            self.used.append(fitting[self.numbers.integers(len(fitting))])
            return self.used[-1]
        name = f"m.{len(self.parameters)}.{kind}"
        std = std or (1 / math.sqrt(shape[0]) if len(shape) > 1 else 0.1)
        self.parameters[name] = (mean + std * self.numbers.standard_normal(shape)).astype(np.float32)
        self.used.append(name)
        return name

    used = []  # by the block that is being made

    def linear(self, x, width, out):
        how = self.random.choice(("plain", "transposed", "bias", "gemm", "sum"))
        if how == "transposed":
            return self.op("MatMul", [x, self.op("Transpose", [self.parameter((out, width))], perm=[1, 0])])
        if how == "gemm":
            flat = self.op("Reshape", [x, self.constant([-1, width], np.int64)])
            y = self.op("Gemm", [flat, self.parameter((out, width)), self.parameter((out,), "bias")], transB=1, alpha=0.5, beta=2.0)
            return self.op("Reshape", [y, self.constant([-1, *self.seq, out], np.int64)])
        weight = self.parameter((width, out))
        if how == "sum":  # as of adapters; with `share` of weights that others use, too
            weight = self.op("Add", [weight, self.parameter((width, out))])
        y = self.op("MatMul", [x, weight])
        return self.op("Add", [self.parameter((out,), "bias"), y]) if how == "bias" else y

    def norm(self, x, width):
        weight = self.parameter((width,), mean=1.0)
        if self.random.random() < .5:
            return self.op("LayerNormalization", [x, weight, self.parameter((width,), "bias")], axis=-1, epsilon=1e-3)
        mean = self.op("ReduceMean", [self.op("Mul", [x, x]), self.constant([-1], np.int64)], keepdims=1)
        return self.op("Mul", [self.op("Div", [x, self.op("Sqrt", [self.op("Add", [mean, self.constant(1e-3)])])]), weight])

    def activation(self, x):
        how = self.random.choice(ACTIVATIONS)
        if how == "silu":
            return self.op("Mul", [x, self.op("Sigmoid", [x])])
        if how == "gelu":
            wide = self.op("Add", [self.op("Erf", [self.op("Div", [x, self.constant(math.sqrt(2))])]), self.constant(1.0)])
            return self.op("Mul", [self.op("Mul", [x, wide]), self.constant(0.5)])
        if how == "square":
            return self.op("Mul", [self.op("Mul", [x, x]), self.constant(0.3)])
        if how == "root":
            return self.op("Sqrt", [self.op("Add", [self.op("Mul", [x, x]), self.constant(0.5)])])
        return self.op("Softmax", [x], axis=-1) if how == "softmax" else self.op(how, [x])

    def attention(self, x, width):
        heads = self.random.choice([h for h in (1, 2, 3) if width % h == 0])
        parts = [self.linear(x, width, width) for _ in range(3)]
        views = [self.op("Reshape", [p, self.constant([0, 0, heads, width // heads], np.int64)]) for p in parts]
        q, k, v = (self.op("Transpose", [view], perm=[0, 2, 1, 3]) for view in views)
        scores = self.op("MatMul", [q, self.op("Transpose", [k], perm=[0, 1, 3, 2])])
        if self.random.random() < .5:  # under a cap
            scores = self.op("Mul", [self.op("Tanh", [self.op("Div", [scores, self.constant(0.7)])]), self.constant(0.7)])
        if self.random.random() < .5:  # with relative positions that are learnt
            scores = self.op("Add", [scores, self.parameter((1, heads, *self.seq * 2))])
        scores = self.op("Add", [scores, self.constant(np.triu(np.full((self.seq[0],) * 2, -1e9, np.float32), 1))])
        if self.random.random() < .5:  # beside a sink
            column = self.op("Concat", [self.op("Shape", [scores], start=0, end=3), self.constant([1], np.int64)], axis=0)
            scores = self.op("Concat", [scores, self.op("Expand", [self.parameter((1, heads, 1, 1)), column])], axis=-1)
            scores = self.op("Softmax", [self.op("Sub", [scores, self.op("ReduceMax", [scores, self.constant([-1], np.int64)], keepdims=1)])], axis=-1)
            probabilities = self.op("Slice", [scores, *(self.constant([n], np.int64) for n in (0, self.seq[0], 3))])
        else:
            probabilities = self.op("Softmax", [scores], axis=-1)
        y = self.op("Transpose", [self.op("MatMul", [probabilities, v])], perm=[0, 2, 1, 3])
        return self.op("Reshape", [y, self.constant([0, 0, width], np.int64)])

    def convolution(self, x, width):
        """Along the sequence: each channel by itself, or all of them."""
        taps, alone = self.random.choice((2, 3, 9)), self.random.random() < .7
        before = self.random.randint(0, taps - 1)
        y = self.op("Conv", [self.op("Transpose", [x], perm=[0, 2, 1]), self.parameter((width, 1 if alone else width, taps))], kernel_shape=[taps],
                    pads=[before, taps - 1 - before], group=width if alone else 1)
        return self.op("Transpose", [y], perm=[0, 2, 1])

    def block(self, x, width):
        how = self.random.choice(["mlp", "activation", "norm", "scale", "linear", "gate", "swap"] + (["attention"] * 3 + ["convolution"]) * len(self.seq))
        if how == "mlp":
            inner = self.random.choice((1, 3, 17, 2 * width))
            y = self.linear(self.activation(self.linear(x, width, inner)), inner, width)
        elif how == "scale":
            shape = self.random.choice(((width,), (1,), ()))
            y = self.op("Mul", [x, self.parameter(shape, mean=1.0)])
        elif how == "gate":
            y = self.op("Mul", [self.activation(self.linear(x, width, width)), self.linear(x, width, width)])
        elif how == "swap" and width > 1:
            cut = self.random.randint(1, width - 1)
            a, b = self.op("Split", [x, self.constant([cut, width - cut], np.int64)], outputs=2, axis=-1)
            y = self.op("Concat", [self.activation(b), a], axis=-1)
        else:
            y = {"activation": lambda: self.activation(x), "norm": lambda: self.norm(x, width), "attention": lambda: self.attention(x, width),
                 "convolution": lambda: self.convolution(x, width),
                 "linear": lambda: self.linear(x, width, width), "swap": lambda: self.op("Add", [x, x])}[how]()
        return self.op("Add", [x, y]) if self.random.random() < .5 else y

    def repeated(self, x, width, times):
        """One block with the same parameters again and again."""
        state, self.used = self.random.getstate(), []
        x = self.block(x, width)
        parameters = list(self.used)
        for _ in range(times - 1):
            self.random.setstate(state)
            share, self.share, self.again = self.share, 0, iter(parameters)
            x = self.block(x, width)
            self.share, self.again = share, None
        return x


class Model:
    """A model, the loss it is trained with, and samples for it."""

    def __init__(self, seed):
        g = Graph(seed)
        r = g.random
        width, vocab = r.choice((1, 3, 5, 8, 12, 33)), r.choice((2, 7, 31, 97))
        self.loss = r.choice(("cross_entropy", "cross_entropy", "mse", "output:loss"))
        self.tokens = r.random() < .6
        g.seq = self.seq = [r.choice((1, 2, 3, 5))] if self.tokens or r.random() < .3 else []
        g.used = []
        table = None
        if self.tokens:
            table = g.parameter((vocab, width), std=.5)
            x = g.op("Gather", [table, "input_ids"], axis=0)
        else:
            x = g.linear("x", 6, width)
        layers = r.choice((0, 1, 2, 4, 8))
        if layers and r.random() < .3:
            x = g.repeated(x, width, layers)
        else:
            for _ in range(layers):
                x = g.block(x, width)
        if r.random() < .3:
            g.share = 0
            g.parameter((5, 4))  # nobody reads it
        self.out = vocab if self.loss == "cross_entropy" else 3
        tied = table and self.loss == "cross_entropy" and r.random() < .6
        y = g.op("MatMul", [x, g.op("Transpose", [table], perm=[1, 0])]) if tied else g.linear(x, width, self.out)
        if self.loss == "output:loss":
            y = g.op("ReduceMean", [g.op("Mul", [y, y])], keepdims=0)
        self.result = "loss" if self.loss == "output:loss" else "logits"
        g.nodes.append(helper.make_node("Identity", [y], [self.result], name="last"))
        shape = [] if self.loss == "output:loss" else ["batch", *self.seq, self.out]
        given = ("input_ids", TensorProto.INT64, ["batch", *self.seq]) if self.tokens else ("x", TensorProto.FLOAT, ["batch", *self.seq, 6])
        self.parameters, self.vocab = g.parameters, vocab
        graph = helper.make_graph(g.nodes, "random", [helper.make_tensor_value_info(*given)],
                                  [helper.make_tensor_value_info(self.result, TensorProto.FLOAT, shape)], g.constants)
        self.onnx = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)

    def save(self, path):
        model = onnx.ModelProto()
        model.CopyFrom(self.onnx)
        model.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in self.parameters.items())
        onnx.save(model, str(path))

    def samples(self, count, random, ignored=0.0):
        data = {"input_ids": random.integers(0, self.vocab, (count, *self.seq))} if self.tokens else \
            {"x": random.standard_normal((count, *self.seq, 6)).astype(np.float32)}
        if self.loss == "cross_entropy":
            data["labels"] = random.integers(0, self.out, (count, *self.seq))
            data["labels"][random.random(data["labels"].shape) < ignored] = -100
        elif self.loss == "mse":
            data["labels"] = random.standard_normal((count, *self.seq, self.out)).astype(np.float32)
        return data

    def evaluator(self):
        """The graph in f64, its parameters as inputs."""
        wide = onnx.ModelProto()
        wide.CopyFrom(self.onnx)
        for constant in wide.graph.initializer:
            value = numpy_helper.to_array(constant)
            if value.dtype == np.float32:
                constant.CopyFrom(numpy_helper.from_array(value.astype(np.float64), constant.name))
        wide.graph.input.extend(helper.make_tensor_value_info(n, TensorProto.DOUBLE, v.shape) for n, v in self.parameters.items())
        for value in (*wide.graph.input, *wide.graph.output):
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                value.type.tensor_type.elem_type = TensorProto.DOUBLE
        return ReferenceEvaluator(wide)

    def loss_of(self, evaluator, data, parameters):
        given = {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in data.items() if n != "labels"}
        y = evaluator.run([self.result], {**given, **parameters})[0]
        if self.loss == "output:loss":
            return float(y)
        if self.loss == "mse":
            return float(np.mean((y - data["labels"]) ** 2))
        labels, y = data["labels"].reshape(-1), y.reshape(-1, self.out)
        y, labels = y[labels != -100], labels[labels != -100]
        if not len(labels):
            return 0.0
        y = y - y.max(-1, keepdims=True)
        return float(np.mean(np.log(np.exp(y).sum(-1)) - y[np.arange(len(y)), labels]))

    def slopes(self, evaluator, data, name, direction):
        """Of the loss along a direction of one parameter, by differences of several widths: kinks and rounding spoil some of them."""
        values = {n: v.astype(np.float64) for n, v in self.parameters.items()}
        at = lambda step: self.loss_of(evaluator, data, {**values, name: values[name] + step * direction})
        return [(at(step) - at(-step)) / (2 * step) for step in (1e-2, 1e-3, 1e-4, 1e-5)]
