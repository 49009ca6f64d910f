#!/usr/bin/env python3
"""Write a GPT- or Llama-style forward graph of any size as ONNX, with the onnx package alone.

The graph looks like what PyTorch's exporters write with their optimiser off (opset 20; every parameter its own
initializer under its torch name; masks and rotary tables computed by nodes), so a small file stands for a real export:

  gpt    learned positions, LayerNorm, Gemm with bias, gelu_new spelled out, causal Where mask, tied head
  llama  rotary positions, RMSNorm spelled out, grouped-query attention, SwiGLU, additive mask, own head

Input `input_ids` int64 [batch, seq], output `logits` float32 [batch, seq, vocab].

--no-weights keeps the name, type and dimensions of every initializer and writes no data at all (raw_data is absent).
Such a file is a few hundred kilobytes even for 175 billion parameters. It is no complete model: onnx.checker and onnxruntime
refuse it, zeroc takes it with `--init random` only.

With weights: matrices are normal(0, 0.02), norm weights 1 + normal(0, 0.01), biases normal(0, 0.01), so no two tensors
are equal. Above 1.5 GB they go into FILE.onnx.data beside the graph (the protobuf limit is 2 GB).
"""
import argparse
import math
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

EXTERNAL_ABOVE = 1_500_000_000
ALIGN = 4096  # of tensors in the external file: a page


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

    def causal(self, positions):
        """bool [1, 1, seq, seq]: true where a key lies in the future of its query."""
        g = self.g
        rows = g.op("Unsqueeze", [positions, g.ints(0, 1, 3)], "causal_rows")
        cols = g.op("Unsqueeze", [positions, g.ints(0, 1, 2)], "causal_cols")
        return g.op("LessOrEqual", [cols, rows], "causal_le")

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


class Gpt(Model):
    def norm(self, x, name):
        g, h = self.g, self.a.hidden
        weight = g.parameter(f"{name}.weight", (h,), mean=1, std=0.01)
        bias = g.parameter(f"{name}.bias", (h,), std=0.01)
        return g.op("LayerNormalization", [x, weight, bias], name, axis=-1, epsilon=1e-5)

    def conv1d(self, x, name, inner, out):
        """GPT-2's Conv1D: a Gemm on flattened tokens, the weight stored [in, out]."""
        g = self.g
        flat = g.op("Reshape", [x, g.ints(-1, inner)], f"{name}.view")
        weight = g.parameter(f"{name}.weight", (inner, out), std=self.std(name))
        bias = g.parameter(f"{name}.bias", (out,), std=0.01)
        return g.op("Reshape", [g.op("Gemm", [flat, weight, bias], f"{name}.addmm"), self.shape(name, out)], name)

    def gelu(self, x, name):
        g = self.g
        cubic = g.op("Mul", [g.op("Pow", [x, g.scalar(3.0)], f"{name}.pow"), g.scalar(0.044715)], f"{name}.cubic")
        inner = g.op("Mul", [g.op("Add", [x, cubic], f"{name}.sum"), g.scalar(math.sqrt(2 / math.pi))], f"{name}.inner")
        tanh = g.op("Add", [g.op("Tanh", [inner], f"{name}.tanh"), g.scalar(1.0)], f"{name}.one_plus")
        return g.op("Mul", [g.op("Mul", [x, g.scalar(0.5)], f"{name}.half"), tanh], name)

    def build(self):
        g, a = self.g, self.a
        wte = g.parameter("transformer.wte.weight", (a.vocab, a.hidden))
        wpe = g.parameter("transformer.wpe.weight", (a.positions, a.hidden))
        positions = self.positions()
        tokens = g.op("Gather", [wte, "input_ids"], "embedding", axis=0)
        where = g.op("Gather", [wpe, g.op("Unsqueeze", [positions, g.ints(0)], "position_ids")], "embedding_1", axis=0)
        x = g.op("Add", [tokens, where], "transformer.drop")
        future = g.op("Not", [self.causal(positions)], "future")
        mask = lambda scores, name: g.op("Where", [future, g.scalar(-math.inf), scores], f"{name}.masked")
        for i in range(a.layers):
            h = f"transformer.h.{i}"
            qkv = self.conv1d(self.norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn", a.hidden, 3 * a.hidden)
            parts = g.op("Split", [qkv, g.ints(*[a.hidden] * 3)], f"{h}.attn.split", outputs=3, axis=2)
            q, k, v = (self.heads(p, f"{h}.attn.{n}", a.heads) for p, n in zip(parts, ("query", "key", "value")))
            out = self.conv1d(self.attend(q, k, v, f"{h}.attn", mask), f"{h}.attn.c_proj", a.hidden, a.hidden)
            x = g.op("Add", [out, x], f"{h}.residual")
            up = self.conv1d(self.norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc", a.hidden, a.ffn)
            down = self.conv1d(self.gelu(up, f"{h}.mlp.act"), f"{h}.mlp.c_proj", a.ffn, a.hidden)
            x = g.op("Add", [x, down], f"{h}.out")
        self.head(self.norm(x, "transformer.ln_f"), wte)
        return g


class Llama(Model):
    def norm(self, x, name):
        g = self.g
        weight = g.parameter(f"{name}.weight", (self.a.hidden,), mean=1, std=0.01)
        mean = g.op("ReduceMean", [g.op("Pow", [x, g.scalar(2.0)], f"{name}.pow"), g.ints(-1)], f"{name}.mean", keepdims=1)
        root = g.op("Sqrt", [g.op("Add", [mean, g.scalar(1e-5)], f"{name}.eps")], f"{name}.sqrt")
        scaled = g.op("Mul", [x, g.op("Reciprocal", [root], f"{name}.rsqrt")], f"{name}.scaled")
        return g.op("Mul", [weight, scaled], name)

    def rotary_tables(self, positions):
        """cos and sin [1, 1, seq, dim] of position times frequency, both halves alike"""
        g, dim = self.g, self.head_dim
        inverse = self.a.rope_theta ** (-np.arange(0, dim, 2, dtype=np.float64) / dim)
        column = g.op("Unsqueeze", [g.op("Cast", [positions], "rotary.positions", to=TensorProto.FLOAT), g.ints(1)], "rotary.column")
        half = g.op("Mul", [column, g.constant(inverse[None, :], np.float32)], "rotary.freqs")
        angle = g.op("Unsqueeze", [g.op("Concat", [half, half], "rotary.cat", axis=-1), g.ints(0, 1)], "rotary.angle")
        return g.op("Cos", [angle], "rotary.cos"), g.op("Sin", [angle], "rotary.sin")

    def rotate(self, x, name, cos, sin):
        g, half = self.g, self.head_dim // 2
        last, one = g.ints(3), g.ints(1)
        low = g.op("Slice", [x, g.ints(0), g.ints(half), last, one], f"{name}.low")
        high = g.op("Slice", [x, g.ints(half), g.ints(np.iinfo(np.int64).max), last, one], f"{name}.high")
        turned = g.op("Concat", [g.op("Neg", [high], f"{name}.neg"), low], f"{name}.turned", axis=-1)
        return g.op("Add", [g.op("Mul", [x, cos], f"{name}.cos"), g.op("Mul", [turned, sin], f"{name}.sin")], f"{name}.embed")

    def repeat(self, x, name):
        """Grouped-query attention: every key/value head serves heads / kv_heads query heads."""
        g, a = self.g, self.a
        groups = a.heads // a.kv_heads
        if groups == 1:
            return x
        wide = g.op("Unsqueeze", [x, g.ints(2)], f"{name}.unsqueeze")
        if a.dynamic:
            ends = [self.batch, g.ints(a.kv_heads, groups), self.seq, g.ints(self.head_dim)]
            flat = [self.batch, g.ints(a.heads), self.seq, g.ints(self.head_dim)]
            to, flat = (g.op("Concat", s, f"{name}.{n}", axis=0) for s, n in ((ends, "expand_shape"), (flat, "repeat_shape")))
        else:
            to = g.ints(a.batch, a.kv_heads, groups, a.seq, self.head_dim)
            flat = g.ints(a.batch, a.heads, a.seq, self.head_dim)
        return g.op("Reshape", [g.op("Expand", [wide, to], f"{name}.expand"), flat], f"{name}.repeat")

    def build(self):
        g, a = self.g, self.a
        kv = a.kv_heads * self.head_dim
        embed = g.parameter("model.embed_tokens.weight", (a.vocab, a.hidden))
        x = g.op("Gather", [embed, "input_ids"], "embedding", axis=0)
        positions = self.positions()
        cos, sin = self.rotary_tables(positions)
        lowest = g.scalar(np.finfo(np.float32).min)
        bias = g.op("Where", [self.causal(positions), g.scalar(0.0), lowest], "causal_mask")
        mask = lambda scores, name: g.op("Add", [scores, bias], f"{name}.masked")
        for i in range(a.layers):
            h = f"model.layers.{i}"
            s, y = f"{h}.self_attn", self.norm(x, f"{h}.input_layernorm")
            q = self.heads(self.linear(y, f"{s}.q_proj", a.hidden, a.hidden), f"{s}.query", a.heads)
            k = self.heads(self.linear(y, f"{s}.k_proj", kv, a.hidden), f"{s}.key", a.kv_heads)
            v = self.heads(self.linear(y, f"{s}.v_proj", kv, a.hidden), f"{s}.value", a.kv_heads)
            q, k = (self.rotate(t, f"{s}.{n}", cos, sin) for t, n in ((q, "query"), (k, "key")))
            out = self.attend(q, self.repeat(k, f"{s}.key"), self.repeat(v, f"{s}.value"), s, mask)
            x = g.op("Add", [x, self.linear(out, f"{s}.o_proj", a.hidden, a.hidden)], f"{h}.residual")
            y = self.norm(x, f"{h}.post_attention_layernorm")
            gate = self.linear(y, f"{h}.mlp.gate_proj", a.ffn, a.hidden)
            silu = g.op("Mul", [gate, g.op("Sigmoid", [gate], f"{h}.mlp.sigmoid")], f"{h}.mlp.silu")
            both = g.op("Mul", [silu, self.linear(y, f"{h}.mlp.up_proj", a.ffn, a.hidden)], f"{h}.mlp.gated")
            x = g.op("Add", [x, self.linear(both, f"{h}.mlp.down_proj", a.hidden, a.ffn)], f"{h}.out")
        self.head(self.norm(x, "model.norm"), embed)
        return g


def values(seed, index, shape, mean, std):
    """Tensor number `index` of the model; depends on the seed and its place alone."""
    random = np.random.default_rng([seed, index])
    array = random.standard_normal(shape, dtype=np.float32)
    array *= np.float32(std)
    array += np.float32(mean)
    return array.astype("<f4", copy=False)


def initializers(a, g, path):
    """The parameters as TensorProtos, their data inside, in a file beside the graph, or nowhere."""
    external = not a.no_weights and 4 * sum(math.prod(s) for _, s, _, _ in g.parameters) > EXTERNAL_ABOVE
    data = open(path + ".data", "wb") if external else None
    for index, (name, shape, mean, std) in enumerate(g.parameters):
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
        if data:
            data.write(b"\0" * (-data.tell() % ALIGN))
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", os.path.basename(path) + ".data"), ("offset", data.tell()), ("length", 4 * math.prod(shape))):
                tensor.external_data.add(key=key, value=str(value))
            values(a.seed, index, shape, mean, std).tofile(data)
        elif not a.no_weights:
            tensor.raw_data = values(a.seed, index, shape, mean, std).tobytes()
        yield tensor
    if data:
        data.close()


def arguments(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arch", choices=("gpt", "llama"), default="gpt")
    for name, default in (("layers", 12), ("hidden", 768), ("heads", 12), ("vocab", 50257), ("seq", 1024), ("batch", 1), ("seed", 0)):
        p.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"default: {default}")
    p.add_argument("--kv-heads", type=int, metavar="N", help="key/value heads (llama; default: as many as heads)")
    p.add_argument("--ffn", type=int, metavar="N", help="inner width of the MLP (default: 4 hidden for gpt, 8/3 hidden in steps of 64 for llama)")
    p.add_argument("--positions", type=int, metavar="N", help="rows of GPT's position table (default: seq)")
    p.add_argument("--rope-theta", type=float, default=10000.0, metavar="X", help="default: 10000")
    p.add_argument("--tied", dest="tied", action="store_true", default=None, help="the head is the embedding (default for gpt)")
    p.add_argument("--untied", dest="tied", action="store_false", help="the head has its own matrix (default for llama)")
    p.add_argument("--dynamic", action="store_true", help="symbolic dimensions `batch` and `seq`")
    p.add_argument("--no-weights", action="store_true", help="dimensions without data, for zeroc --init random")
    p.add_argument("-o", "--output", required=True, metavar="FILE.onnx")
    a = p.parse_args(argv)
    for name in ("layers", "hidden", "heads", "vocab", "seq", "batch"):
        if getattr(a, name) < 1:
            p.error(f"--{name} must be at least 1")
    if a.hidden % a.heads:
        p.error(f"--hidden {a.hidden} is not a multiple of --heads {a.heads}")
    if not os.path.isdir(os.path.dirname(a.output) or "."):
        p.error(f"there is no folder {os.path.dirname(a.output)} for -o {a.output}")
    a.kv_heads = a.kv_heads or a.heads
    if a.arch == "gpt" and a.kv_heads != a.heads:
        p.error("--kv-heads is for --arch llama")
    if a.heads % a.kv_heads:
        p.error(f"--heads {a.heads} is not a multiple of --kv-heads {a.kv_heads}")
    if a.arch == "llama" and (a.hidden // a.heads) % 2:
        p.error(f"rotary positions need an even head dimension, not {a.hidden // a.heads}")
    a.tied = a.arch == "gpt" if a.tied is None else a.tied
    a.ffn = a.ffn or (4 * a.hidden if a.arch == "gpt" else -(-8 * a.hidden // 3 // 64) * 64)
    a.positions = a.positions or a.seq
    if a.positions < a.seq:
        p.error(f"--positions {a.positions} is less than --seq {a.seq}")
    return a


def main():
    a = arguments()
    g = (Gpt if a.arch == "gpt" else Llama)(a).build()
    dims = ["batch", "seq"] if a.dynamic else [a.batch, a.seq]
    graph = onnx.GraphProto(name="main_graph", node=g.nodes)
    graph.input.append(helper.make_tensor_value_info("input_ids", TensorProto.INT64, dims))
    graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, [*dims, a.vocab]))
    graph.initializer.extend(g.constants.values())
    graph.initializer.extend(initializers(a, g, a.output))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, producer_name="models/gpt.py")
    with open(a.output, "wb") as f:
        f.write(model.SerializeToString())
    count = sum(math.prod(s) for _, s, _, _ in g.parameters)
    size = os.path.getsize(a.output)
    where = "no weights" if a.no_weights else "weights beside it" if os.path.exists(a.output + ".data") and count * 4 > EXTERNAL_ABOVE else "weights inside"
    print(f"{a.output}: {a.arch}, {a.layers} layers x {a.hidden}, {count:,} parameters in {len(g.parameters)} tensors, {size / 1000:,.0f} kB ({where})")


if __name__ == "__main__":
    sys.exit(main())
