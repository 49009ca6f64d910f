#!/usr/bin/env python3
"""Write a GPT- or Llama-style forward graph of any size as ONNX, with the onnx package alone.

The graph looks like what PyTorch's exporters write with their optimiser off (opset 20; every parameter its own
initializer under its torch name; masks and rotary tables computed by nodes), so a small file stands for a real export:

  gpt    learned positions, LayerNorm, Gemm with bias, gelu_new spelled out, causal Where mask, tied head
  llama  rotary positions, RMSNorm spelled out, grouped-query attention, SwiGLU (or a mixture of experts), additive mask, own head

Input `input_ids` int64 [batch, seq], output `logits` float32 [batch, seq, vocab].

--no-weights keeps the name, type and dimensions of every initializer and writes no data at all (raw_data is absent).
Such a file is a few hundred kilobytes even for 175 billion parameters. It is no complete model: onnx.checker and onnxruntime
refuse it, zeroc takes it with `--init random` only.

With weights: matrices are normal(0, 0.02), norm weights 1 + normal(0, 0.01), biases normal(0, 0.01), so no two tensors
are equal. Above 1.5 GB they go into FILE.onnx.data beside the graph (the protobuf limit is 2 GB).
"""
import argparse
import contextlib
import math
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

from gpt_models import ARCHITECTURES

EXTERNAL_ABOVE = 1_500_000_000
ALIGN = 4096  # of tensors in the external file: a page


def values(seed, index, shape, mean, std):
    """Tensor number `index` of the model; depends on the seed and its place alone."""
    random = np.random.default_rng([seed, index])
    array = random.standard_normal(shape, dtype=np.float32)
    array *= np.float32(std)
    array += np.float32(mean)
    return array.astype("<f4", copy=False)


def elements(g):
    return sum(math.prod(shape) for _, shape, _, _ in g.parameters)


def placement(a, g):
    """Where the weights go: "inside" the graph, "beside" it in a file of their own, or nowhere."""
    if a.no_weights:
        return "nowhere"
    return "beside" if 4 * elements(g) > EXTERNAL_ABOVE else "inside"


@contextlib.contextmanager
def replacing(path):
    """A file that takes its name when it is whole; what had the name before stays where that fails."""
    partial = path + ".partial"
    try:
        with open(partial, "wb") as file:
            yield file
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def initializers(a, g, path, data):
    """The parameters as TensorProtos; `data`: the file beside the model that takes their values, or none."""
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


def arguments(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arch", choices=tuple(ARCHITECTURES), default="gpt")
    for name, default in (("layers", 12), ("hidden", 768), ("heads", 12), ("vocab", 50257), ("seq", 1024), ("batch", 1), ("seed", 0)):
        p.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"default: {default}")
    p.add_argument("--kv-heads", type=int, metavar="N", help="key/value heads (llama; default: as many as heads)")
    p.add_argument("--window", type=int, metavar="N", help="a query sees N keys, itself and those before it (llama; default: all before it)")
    p.add_argument("--padded", action="store_true", help="an input `attention_mask`: 0 where samples are filled up to the same length")
    p.add_argument("--ffn", type=int, metavar="N", help="inner width of the MLP (default: 4 hidden for gpt, 8/3 hidden in steps of 64 for llama)")
    p.add_argument("--experts", type=int, metavar="N", help="the MLP is a mixture of N experts, each as wide as --ffn says (llama)")
    p.add_argument("--loop", action="store_true", help="experts look their tokens up one after another, as models are often written, in place of all at once")
    p.add_argument("--top", type=int, default=2, metavar="K", help="experts that a token goes to (default: 2)")
    p.add_argument("--positions", type=int, metavar="N", help="rows of GPT's position table (default: seq)")
    p.add_argument("--rope-theta", type=float, default=10000.0, metavar="X", help="default: 10000")
    p.add_argument("--tied", dest="tied", action="store_true", default=None, help="the head is the embedding (default for gpt)")
    p.add_argument("--untied", dest="tied", action="store_false", help="the head has its own matrix (default for llama)")
    p.add_argument("--dynamic", action="store_true", help="symbolic dimensions `batch` and `seq`")
    p.add_argument("--no-weights", action="store_true", help="dimensions without data, for zeroc --init random")
    p.add_argument("-o", "--output", required=True, metavar="FILE.onnx")
    a = p.parse_args(argv)
    for name in ("layers", "hidden", "heads", "vocab", "seq", "batch", "kv_heads", "window", "ffn", "positions", "experts", "top"):
        if getattr(a, name) is not None and getattr(a, name) < 1:
            p.error(f"--{name.replace('_', '-')} must be at least 1")
    if a.seed < 0:
        p.error("--seed must not be negative")
    if a.hidden % a.heads:
        p.error(f"--hidden {a.hidden} is not a multiple of --heads {a.heads}")
    if not os.path.isdir(os.path.dirname(a.output) or "."):
        p.error(f"there is no folder {os.path.dirname(a.output)} for -o {a.output}")
    if not a.output or os.path.isdir(a.output):
        p.error(f"-o '{a.output}' is no file")
    if not a.rope_theta > 0 or math.isinf(a.rope_theta):
        p.error(f"--rope-theta must be a number above 0, not {a.rope_theta}")
    a.kv_heads = a.kv_heads or a.heads
    if a.arch == "gpt" and a.kv_heads != a.heads:
        p.error("--kv-heads is for --arch llama")
    if a.arch == "gpt" and a.window:
        p.error("--window is for --arch llama")
    if a.arch == "gpt" and a.experts:
        p.error("--experts is for --arch llama")
    if a.loop and not a.experts:
        p.error("--loop is for --experts")
    if a.experts and a.top > a.experts:
        p.error(f"a token goes to --top {a.top} of --experts {a.experts}")
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
    g = ARCHITECTURES[a.arch](a).build()
    dims = ["batch", "seq"] if a.dynamic else [a.batch, a.seq]
    graph = onnx.GraphProto(name="main_graph", node=g.nodes)
    graph.input.append(helper.make_tensor_value_info("input_ids", TensorProto.INT64, dims))
    if a.padded:
        graph.input.append(helper.make_tensor_value_info("attention_mask", TensorProto.INT64, dims))
    graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, [*dims, a.vocab]))
    graph.initializer.extend(g.constants.values())
    try:
        with replacing(a.output) as file, replacing(a.output + ".data") if placement(a, g) == "beside" else contextlib.nullcontext() as data:
            graph.initializer.extend(initializers(a, g, a.output, data))
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, producer_name="models/gpt.py")
            file.write(model.SerializeToString())
    except OSError as error:
        sys.exit(f"gpt.py: {a.output} could not be written: {error.strerror}")
    where = {"nowhere": "no weights", "beside": "weights beside it", "inside": "weights inside"}[placement(a, g)]
    print(f"{a.output}: {a.arch}, {a.layers} layers x {a.hidden}, {elements(g):,} parameters in {len(g.parameters)} tensors, "
          f"{os.path.getsize(a.output) / 1000:,.0f} kB ({where})")


if __name__ == "__main__":
    sys.exit(main())
