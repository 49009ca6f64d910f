"""What the architectures of gpt_models.py are made of: nodes, constants and parameters of an ONNX graph, linear layers, attention."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper


class Graph:
    """Collects nodes, small constants and parameters; names values after what they are."""

    def __init__(self):
        self.nodes, self.constants, self.parameters = [], {}, []

    def op(self, kind, inputs, name, outputs=1, **attributes):
        outs = [name] if outputs == 1 else [f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, outs, name=f"node_{name}", **attributes))
        return outs[0] if outputs == 1 else outs

    def constant(self, value, dtype):
        """An initializer that is no parameter; equal ones are shared, as exporters do."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = onnx.numpy_helper.from_array(array, f"val_{len(self.constants)}")
        return self.constants[key].name

    def ints(self, *values):
        return self.constant(values, np.int64)

    def scalar(self, value, dtype=np.float32):
        return self.constant(value, dtype)

    def parameter(self, name, shape, mean=0.0, std=0.02):
        self.parameters.append((name, tuple(shape), mean, std))
        return name


class Model:
    """What both architectures share: shapes that may be symbolic, linear layers, attention."""

    def __init__(self, a):
        self.a, self.g = a, Graph()
        self.head_dim = a.hidden // a.heads
        if a.dynamic:
            self.batch = self.g.op("Shape", ["input_ids"], "sym_batch", start=0, end=1)
            self.seq = self.g.op("Shape", ["input_ids"], "sym_seq", start=1, end=2)
            self.length = self.g.op("Squeeze", [self.seq], "sym_size_int_1")
        else:
            self.length = self.g.scalar(a.seq, np.int64)

    def shape(self, name, *last):
        """The target of a Reshape to [batch, seq, last...]."""
        if not self.a.dynamic:
            return self.g.ints(self.a.batch, self.a.seq, *last)
        return self.g.op("Concat", [self.batch, self.seq, self.g.ints(*last)], f"{name}_shape", axis=0)

    def positions(self):
        zero, one = self.g.scalar(0, np.int64), self.g.scalar(1, np.int64)
        return self.g.op("Range", [zero, self.length, one], "arange")

    def seen(self, positions):
        """bool [1 or batch, 1, seq, seq]: true where a query sees a key."""
        if not self.a.padded:
            return self.causal(positions)
        real = self.g.op("Unsqueeze", [self.g.op("Cast", ["attention_mask"], "real", to=TensorProto.BOOL), self.g.ints(1, 2)], "real_keys")
        return self.g.op("And", [self.causal(positions), real], "seen")

    def causal(self, positions):
        """bool [1, 1, seq, seq]: true where a query sees a key, but for padding."""
        g = self.g
        rows = g.op("Unsqueeze", [positions, g.ints(0, 1, 3)], "causal_rows")
        cols = g.op("Unsqueeze", [positions, g.ints(0, 1, 2)], "causal_cols")
        seen = g.op("LessOrEqual", [cols, rows], "causal_le")
        if not self.a.window:
            return seen
        near = g.op("Less", [g.op("Sub", [rows, cols], "window_distance"), g.ints(self.a.window)], "window_less")
        return g.op("And", [seen, near], "window_and")

    def linear(self, x, name, out, inner):
        """torch.nn.Linear without bias: the weight is stored [out, in] and transposed by a node."""
        g = self.g
        weight = g.parameter(f"{name}.weight", (out, inner), std=self.std(name))
        return g.op("MatMul", [x, g.op("Transpose", [weight], f"{name}.t", perm=[1, 0])], name)

    def std(self, name):
        """Projections into the residual stream are scaled down by its length, as GPT-2 does."""
        residual = name.endswith(("c_proj", "o_proj", "down_proj"))
        return 0.02 / math.sqrt(2 * self.a.layers) if residual else 0.02

    def heads(self, x, name, count):
        """[batch, seq, count * dim] -> [batch, count, seq, dim]"""
        view = self.g.op("Reshape", [x, self.shape(name, count, self.head_dim)], f"{name}.view")
        return self.g.op("Transpose", [view], f"{name}.heads", perm=[0, 2, 1, 3])

    def attend(self, q, k, v, name, mask):
        """mask takes the scaled scores and returns the masked ones"""
        g = self.g
        scores = g.op("MatMul", [q, g.op("Transpose", [k], f"{name}.key_t", perm=[0, 1, 3, 2])], f"{name}.scores")
        scaled = g.op("Mul", [scores, g.scalar(1 / math.sqrt(self.head_dim))], f"{name}.scaled")
        probs = g.op("Softmax", [mask(scaled, name)], f"{name}.softmax", axis=-1)
        out = g.op("Transpose", [g.op("MatMul", [probs, v], f"{name}.context")], f"{name}.context_t", perm=[0, 2, 1, 3])
        return g.op("Reshape", [out, self.shape(f"{name}.context", self.a.hidden)], f"{name}.merged")

    def head(self, x, embedding):
        """Logits: the embedding itself, transposed by a node, or a matrix of its own."""
        g, a = self.g, self.a
        weight = embedding if a.tied else g.parameter("lm_head.weight", (a.vocab, a.hidden))
        g.op("MatMul", [x, g.op("Transpose", [weight], "lm_head.t", perm=[1, 0])], "logits")
