"""The forward graphs of GPT and Llama, node by node as PyTorch's exporters write them."""
import math

import numpy as np
from onnx import TensorProto

from gpt_graph import Model


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
        hidden = g.op("Not", [self.seen(positions)], "hidden")
        mask = lambda scores, name: g.op("Where", [hidden, g.scalar(-math.inf), scores], f"{name}.masked")
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

    def mlp(self, y, name):
        g, a = self.g, self.a
        gate = self.linear(y, f"{name}.gate_proj", a.ffn, a.hidden)
        silu = g.op("Mul", [gate, g.op("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.silu")
        both = g.op("Mul", [silu, self.linear(y, f"{name}.up_proj", a.ffn, a.hidden)], f"{name}.gated")
        return self.linear(both, f"{name}.down_proj", a.hidden, a.ffn)

    def experts(self, y, name):
        """A mixture of experts."""
        g, a = self.g, self.a
        flat = g.op("Reshape", [y, g.ints(-1, a.hidden)], f"{name}.view")
        chances = g.op("Softmax", [self.linear(flat, f"{name}.gate", a.experts, a.hidden)], f"{name}.softmax", axis=-1)
        best, which = g.op("TopK", [chances, g.ints(a.top)], f"{name}.topk", outputs=2, axis=-1)
        share = g.op("Div", [best, g.op("ReduceSum", [best, g.ints(-1)], f"{name}.sum")], f"{name}.share")
        total = (self.experts_in_turn if a.loop else self.experts_at_once)(flat, which, share, name)
        return g.op("Reshape", [total, self.shape(name, a.hidden)], name)

    def experts_in_turn(self, flat, which, share, name):
        """As models are often written: one expert after another looks up the tokens that have chosen it, and adds to them."""
        g = self.g
        total = g.op("Expand", [g.scalar(0.0), g.op("Shape", [flat], f"{name}.size")], f"{name}.zeros")
        for e in range(self.a.experts):
            own = f"{name}.experts.{e}"
            places = g.op("NonZero", [g.op("Equal", [which, g.constant(e, np.int64)], f"{own}.chosen")], f"{own}.places")
            each = g.op("Transpose", [places], f"{own}.each", perm=[1, 0])
            row = g.op("Slice", [each, g.ints(0), g.ints(1), g.ints(1)], f"{own}.row")
            x = g.op("GatherND", [flat, row], f"{own}.tokens")
            shares = g.op("Unsqueeze", [g.op("GatherND", [share, each], f"{own}.share"), g.ints(1)], f"{own}.shares")
            weighted = g.op("Mul", [self.mlp(x, own), shares], f"{own}.weighted")
            total = g.op("ScatterND", [total, row, weighted], f"{own}.total", reduction="add")
        return total

    def experts_at_once(self, flat, which, share, name):
        """As exporters write it that have no operator for it: for each choice of a token the matrices of its expert are looked up."""
        g, a = self.g, self.a
        expert = g.op("Reshape", [which, g.ints(-1)], f"{name}.expert")
        rows = g.op("Expand", [g.op("Unsqueeze", [flat, g.ints(1)], f"{name}.unsqueeze"), g.ints(1, a.top, 1)], f"{name}.expand")

        def product(x, part, out, inner):
            weight = g.parameter(f"{name}.experts.{part}", (a.experts, out, inner))
            each = g.op("Gather", [weight, expert], f"{name}.experts.{part}.index", axis=0)
            column = g.op("Unsqueeze", [g.op("Reshape", [x, g.ints(-1, inner)], f"{name}.experts.{part}.rows"), g.ints(2)], f"{name}.experts.{part}.column")
            return g.op("Squeeze", [g.op("MatMul", [each, column], f"{name}.experts.{part}.bmm"), g.ints(2)], f"{name}.experts.{part}.squeeze")

        gate, up = g.op("Split", [product(rows, "gate_up_proj", 2 * a.ffn, a.hidden), g.ints(a.ffn, a.ffn)], f"{name}.split", outputs=2, axis=1)
        silu = g.op("Mul", [gate, g.op("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.silu")
        down = product(g.op("Mul", [silu, up], f"{name}.gated"), "down_proj", a.hidden, a.ffn)
        weighted = g.op("Mul", [down, g.op("Reshape", [share, g.ints(-1, 1)], f"{name}.shares")], f"{name}.weighted")
        return g.op("ReduceSum", [g.op("Reshape", [weighted, g.ints(-1, a.top, a.hidden)], f"{name}.choices"), g.ints(1)], f"{name}.total", keepdims=0)

    def build(self):
        g, a = self.g, self.a
        kv = a.kv_heads * self.head_dim
        embed = g.parameter("model.embed_tokens.weight", (a.vocab, a.hidden))
        x = g.op("Gather", [embed, "input_ids"], "embedding", axis=0)
        positions = self.positions()
        cos, sin = self.rotary_tables(positions)
        lowest = g.scalar(np.finfo(np.float32).min)
        bias = g.op("Where", [self.seen(positions), g.scalar(0.0), lowest], "causal_mask")
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
            x = g.op("Add", [x, self.experts(y, f"{h}.mlp") if a.experts else self.mlp(y, f"{h}.mlp")], f"{h}.out")
        self.head(self.norm(x, "model.norm"), embed)
        return g


ARCHITECTURES = {"gpt": Gpt, "llama": Llama}
