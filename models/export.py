#!/usr/bin/env python3
"""Export a Hugging Face model to ONNX for training: the forward graph, every parameter kept apart.

usage: models/export.py HF_MODEL_OR_CONFIG -o model.onnx

HF_MODEL_OR_CONFIG is the name of a model on the Hub, a folder saved by `save_pretrained`, or a config.json (then the weights are random).
The task follows the model's architecture (causal, masked or sequence-to-sequence language model, sequence or image classification); --task
overrides it.

PyTorch's exporters optimise for inference by default: they merge parameters that happen to be equal, fold parameters into constants and
split tied ones, and such a file can no longer be trained as the model it was. Here these optimisations are off. Where the first exporter
fails, the older one (TorchScript) is tried in the same spirit, and the tool says so.

Needs torch, transformers and onnxscript, which tools/setup.sh does not install: pip install torch transformers onnx onnxscript
"""
import argparse
import inspect
import logging
import os
import sys
import warnings

TASKS = {
    "causal": ("ForCausalLM", "LMHeadModel"),
    "masked": ("ForMaskedLM",),
    "classification": ("ForSequenceClassification",),
    "image": ("ForImageClassification",),
    "seq2seq": ("ForConditionalGeneration",),
}
SYMBOLS = {"decoder_input_ids": ("batch", "target")}  # of an input's dimensions; all others are batch and seq


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", help="name on the Hub, folder, or config.json")
    p.add_argument("-o", "--output", required=True, metavar="FILE.onnx")
    p.add_argument("--task", choices=sorted(TASKS), help="default: what the model's architecture says")
    p.add_argument("--batch", type=int, default=2, metavar="N", help="batch of the example input, or with --static the batch itself (default: 2)")
    p.add_argument("--seq", type=int, default=64, metavar="N", help="sequence of the example input, or with --static the sequence itself (default: 64)")
    p.add_argument("--static", action="store_true", help="fixed dimensions instead of symbolic `batch` and `seq`")
    p.add_argument("--attention", choices=("eager", "sdpa"), default="sdpa", help="attention implementation to export (default: sdpa)")
    p.add_argument("--exporter", choices=("auto", "dynamo", "torchscript"), default="auto",
                   help="PyTorch's newer or older exporter (default: the newer, and the older where that fails)")
    p.add_argument("--opset", type=int, metavar="N", help="default: 20 (dynamo), 17 (torchscript)")
    p.add_argument("--mask", action="store_true", help="give language models an attention_mask input (classifiers always have one)")
    p.add_argument("--train-mode", action="store_true", help="keep dropout in the graph")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of random weights (default: 0)")
    a = p.parse_args()
    if not os.path.isdir(os.path.dirname(a.output) or "."):
        p.error(f"there is no folder {os.path.dirname(a.output)} for -o {a.output}")
    return a


def load(a):
    """The model with its task's head, and the name of the task."""
    import torch
    from transformers import (AutoConfig, AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForMaskedLM, AutoModelForSeq2SeqLM,
                              AutoModelForSequenceClassification)
    classes = {"causal": AutoModelForCausalLM, "masked": AutoModelForMaskedLM, "classification": AutoModelForSequenceClassification,
               "image": AutoModelForImageClassification, "seq2seq": AutoModelForSeq2SeqLM}
    config = AutoConfig.from_pretrained(a.model)
    architecture = (config.architectures or [""])[0]
    task = a.task or next((t for t, ends in TASKS.items() if architecture.endswith(ends)), None)
    if task is None:
        raise SystemExit(f"export: cannot tell the task from the architecture '{architecture}' of {a.model}; give one with --task ({', '.join(TASKS)})")
    config.use_cache = False
    if not a.train_mode:  # no dropout, whichever mode an exporter puts the model into
        for name, value in vars(config).items():
            if "drop" in name and isinstance(value, float):
                setattr(config, name, 0.0)
    longest = getattr(config, "max_position_embeddings", None)
    if longest and a.seq > longest:
        if a.static:
            raise SystemExit(f"export: --seq {a.seq} is more than the {longest} positions of {a.model}")
        a.seq = longest
    torch.manual_seed(a.seed)
    if os.path.isfile(a.model):
        model = classes[task].from_config(config, attn_implementation=a.attention)
    else:
        model = classes[task].from_pretrained(a.model, config=config, attn_implementation=a.attention, dtype=torch.float32)
    return model.float(), task


def example(a, model, task):
    """Input tensors by name, and which of their dimensions are symbolic."""
    import torch
    config = model.config
    if task == "image":
        size = config.image_size if isinstance(config.image_size, (tuple, list)) else (config.image_size,) * 2
        return {"pixel_values": torch.randn(a.batch, getattr(config, "num_channels", 3), *size)}, {"pixel_values": {0: "batch"}}
    names = ["input_ids"]
    accepted = inspect.signature(model.forward).parameters
    if a.mask or task == "classification":
        names.append("attention_mask")
    if task == "seq2seq":
        names.append("decoder_input_ids")
    if "token_type_ids" in accepted and task != "causal" and getattr(config, "type_vocab_size", 0) > 1:
        names.append("token_type_ids")
    shape = (a.batch, a.seq)
    tokens = lambda: torch.randint(1, config.vocab_size, shape)
    make = {"input_ids": tokens, "decoder_input_ids": tokens, "attention_mask": lambda: torch.ones(shape, dtype=torch.int64),
            "token_type_ids": lambda: torch.zeros(shape, dtype=torch.int64)}
    return {n: make[n]() for n in names}, {n: dict(enumerate(SYMBOLS.get(n, ("batch", "seq")))) for n in names}


def wrap(model, names, task, exporter):
    """Positional inputs in, the logits out: what both exporters understand."""
    import torch

    class NoDropout(torch.nn.Identity):
        p = 0.0  # models read it

    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, torch.nn.Dropout) and child.p == 0:
                setattr(parent, name, NoDropout())

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, *inputs):
            given = dict(zip(names, inputs))
            if exporter == "torchscript" and task in ("causal", "masked"):
                # without a mask transformers looks for packed sequences, with operators that exporter does not know
                given.setdefault("attention_mask", torch.ones_like(given["input_ids"]))
            return self.inner(**given).logits

    return Logits()


def export(a, model, task, exporter):
    import torch
    inputs, axes = example(a, model, task)
    names = list(inputs)
    wrapped = wrap(model, names, task, exporter)
    wrapped.train(a.train_mode)
    common = dict(input_names=names, output_names=["logits"], opset_version=a.opset or (20 if exporter == "dynamo" else 17))
    if exporter == "dynamo":
        # one entry per positional argument of forward(*inputs): the tuple of all inputs
        shapes = None if a.static else (tuple({axis: torch.export.Dim.DYNAMIC for axis in axes[n]} for n in names),)
        torch.onnx.export(wrapped, tuple(inputs.values()), a.output, dynamo=True, optimize=False, verbose=False, dynamic_shapes=shapes,
                          external_data=model.num_parameters() > 400_000_000, **common)
    else:
        # in any other mode this exporter merges parameters of equal value
        torch.onnx.export(wrapped, tuple(inputs.values()), a.output, dynamo=False, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING, dynamic_axes=None if a.static else axes, **common)


def tidy(a, model, names):
    """Give the parameters their torch names back and the dimensions theirs; returns the parameters that are gone."""
    import onnx
    graph = onnx.load(a.output)
    rename = {i.name: i.name[len("inner."):] for i in graph.graph.initializer if i.name.startswith("inner.")}
    for i in graph.graph.initializer:
        i.name = rename.get(i.name, i.name)
    for node in graph.graph.node:
        for k, name in enumerate(node.input):
            node.input[k] = rename.get(name, name)
        # so that zeroc's messages and tables speak of the model's own modules
        node.name = node.name.replace("/inner/", "/", 1)
        for entry in node.metadata_props:
            if entry.key == "pkg.torch.onnx.name_scopes":
                entry.value = entry.value.replace("'inner.", "'").replace("'inner', ", "")
    if not a.static:
        for value in graph.graph.input:
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if dim.HasField("dim_param"):
                    dim.dim_param = SYMBOLS.get(value.name, ("batch", "seq"))[axis]
    onnx.save(graph, a.output)
    used = {name for node in graph.graph.node for name in node.input}
    kept = {i.name for i in graph.graph.initializer} & used
    tied = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        tied.setdefault(id(p), []).append(name)
    return [names[0] for names in tied.values() if not kept & set(names)]


def main():
    a = arguments()
    try:
        import torch
        import transformers
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as e:
        raise SystemExit(f"export: {e.name} is not installed; this tool needs torch, transformers, onnx and onnxscript "
                         "(pip install torch transformers onnx onnxscript)")
    transformers.logging.set_verbosity_error()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    try:
        model, task = load(a)
    except (OSError, ValueError) as e:
        raise SystemExit(f"export: cannot load {a.model}: {str(e).splitlines()[0]}")
    names = list(example(a, model, task)[0])
    order = {"auto": ["dynamo", "torchscript"]}.get(a.exporter, [a.exporter])
    for exporter in order:
        try:
            with torch.no_grad():
                export(a, model, task, exporter)
            break
        except Exception as e:  # exporters raise whatever the model made them stumble over
            reason = (str(e).strip() or type(e).__name__).splitlines()[0][:300]
            last = exporter == order[-1]
            print(f"export: the {exporter} exporter failed: {reason}{'' if last else '; trying the other'}", file=sys.stderr)
            if last:
                raise SystemExit(f"export: {a.model} could not be exported; try --attention eager, --static or another --exporter")
    missing = tidy(a, model, names)
    count = sum(p.numel() for p in model.parameters())
    print(f"{a.output}: {type(model).__name__} ({task}), {count:,} parameters, inputs {', '.join(names)}, exporter {exporter}")
    if missing:
        print(f"export: {len(missing)} parameters are not in the graph, such as {missing[0]}: the forward pass does not use them, "
              "or the exporter folded them into a constant", file=sys.stderr)


if __name__ == "__main__":
    main()
