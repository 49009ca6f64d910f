#!/usr/bin/env python3
"""Export a Hugging Face model to ONNX for training: the forward graph, every parameter kept apart.

usage: models/export.py HF_MODEL_OR_CONFIG -o model.onnx

HF_MODEL_OR_CONFIG is the name of a model on the Hub, a folder saved by `save_pretrained`, of PEFT's adapters too (then the model has them), or a
config.json (then the weights are random).
With --no-weights it is the graph alone that is exported, of a model of any size: for plans, and for training from random weights.
The task follows the model's architecture (causal, masked or sequence-to-sequence language model, sequence or image classification, an encoder
alone); --task overrides it.

PyTorch's exporters optimise for inference by default: they merge parameters that happen to be equal, fold parameters into constants and
split tied ones, and such a file can no longer be trained as the model it was. Here these optimisations are off. Where one way fails, the
next is tried in the same spirit (the newer exporter, then the older one; attention as `sdpa`, then `eager`), and the tool says so.

Needs torch, transformers and onnxscript, which tools/setup.sh does not install: pip install torch transformers onnx onnxscript
"""
import argparse
import contextlib
import logging
import os
import re
import sys
import tempfile
import warnings

import huggingface
import weightless
from huggingface import SYMBOLS, TASKS, Refusal


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", help="name on the Hub, folder, or config.json")
    p.add_argument("-o", "--output", required=True, metavar="FILE.onnx")
    p.add_argument("--task", choices=sorted(TASKS), help="default: what the model's architecture says")
    p.add_argument("--labels", type=int, metavar="N", help="classes of a classifier (default: as the model's configuration has them)")
    p.add_argument("--batch", type=int, default=2, metavar="N", help="batch of the example input, or with --static the batch itself (default: 2)")
    p.add_argument("--seq", type=int, default=64, metavar="N", help="sequence of the example input, or with --static the sequence itself (default: 64)")
    p.add_argument("--image-size", type=int, metavar="N", help="height and width of images (default: the configuration's, or 224)")
    p.add_argument("--static", action="store_true", help="fixed dimensions instead of symbolic `batch` and `seq`")
    p.add_argument("--attention", choices=("auto", "eager", "sdpa"), default="auto",
                   help="attention implementation to export (default: sdpa, and eager where that fails; with --train-mode the other way round)")
    p.add_argument("--exporter", choices=("auto", "dynamo", "torchscript"), default="auto",
                   help="PyTorch's newer or older exporter (default: the newer, and the older where that fails)")
    p.add_argument("--opset", type=int, metavar="N", help="default: 20 (dynamo), 17 (torchscript)")
    p.add_argument("--mask", action="store_true",
                   help="give causal and sequence-to-sequence models an attention_mask input (masked models, classifiers and encoders always have one)")
    p.add_argument("--train-mode", action="store_true", help="keep dropout in the graph")
    p.add_argument("--no-weights", action="store_true",
                   help="dimensions without data, for zeroc --init random: a model need not fit into this machine's memory")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of random weights (default: 0)")
    a = p.parse_args()
    if not os.path.isdir(os.path.dirname(a.output) or "."):
        p.error(f"there is no folder {os.path.dirname(a.output)} for -o {a.output}")
    if a.no_weights and a.exporter == "torchscript":
        p.error("--no-weights is not for --exporter torchscript, which runs the model")
    if a.labels is not None and a.labels < 1:
        p.error(f"--labels {a.labels}: a classifier has at least one class")
    return a


@contextlib.contextmanager
def quiet():
    """Exporters print whole graphs and reports when they stumble, some from C++: nothing of it reaches the terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as sink:
        saved = [os.dup(1), os.dup(2)]
        try:
            os.dup2(sink.fileno(), 1)
            os.dup2(sink.fileno(), 2)
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for descriptor, old in enumerate(saved, 1):
                os.dup2(old, descriptor)
                os.close(old)


def export(a, model, task, exporter):
    import torch
    inputs, axes = huggingface.example(a, model, task)
    names = list(inputs)
    module = huggingface.one_output(model, names, task, exporter)
    module.train(a.train_mode)
    common = dict(input_names=names, output_names=[huggingface.OUTPUTS.get(task, "logits")],
                  opset_version=a.opset or (20 if exporter == "dynamo" else 17))
    if exporter == "dynamo":
        shapes = None if a.static else tuple({axis: torch.export.Dim.DYNAMIC for axis in axes[n]} for n in names)
        program = torch.onnx.export(module, tuple(inputs.values()), None, dynamo=True, optimize=False, verbose=False, dynamic_shapes=shapes, **common)
        if a.no_weights:
            weightless.save(program, a.output)
        else:
            program.save(a.output, external_data=model.num_parameters() > 400_000_000)
    else:
        # in any other mode this exporter merges parameters of equal value
        torch.onnx.export(module, tuple(inputs.values()), a.output, dynamo=False, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING, dynamic_axes=None if a.static else axes, **common)


def reason(error):
    """One line of what went wrong first: exporters wrap it in reports of many pages."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:200]}" if text else type(error).__name__


def first_way(a):
    """Tries each exporter with each form of attention; returns what the first that works exported: (model, task, fresh, exporter, attention)."""
    import torch
    attentions = ["sdpa", "eager"] if a.attention == "auto" else [a.attention]
    if a.train_mode and a.attention == "auto":  # the dropout inside sdpa is written as one that drops nothing
        attentions.reverse()
    exporters = [a.exporter] if a.exporter != "auto" else ["dynamo"] if a.no_weights else ["dynamo", "torchscript"]
    failures = []
    for exporter in exporters:
        for attention in attentions:
            try:
                with quiet():
                    model, task, fresh = huggingface.load(a, attention)
            except ValueError as e:
                if attention == "sdpa" and "scaled_dot_product_attention" in str(e):  # a model that has none
                    failures.append("the model has no sdpa attention")
                    print("export: this model has no sdpa attention; exporting its eager one", file=sys.stderr)
                    attentions = ["eager"] if a.attention == "auto" else attentions
                    continue
                raise
            try:
                with quiet(), torch.no_grad():
                    export(a, model, task, exporter)
                return model, task, fresh, exporter, attention
            except Exception as e:  # exporters raise whatever the model made them stumble over
                failures.append(reason(e))
                print(f"export: the {exporter} exporter failed on {attention} attention: {failures[-1]}", file=sys.stderr)
    raise Refusal(f"{a.model} could not be exported in any of {len(failures)} ways; --static may help")


def tidy(a, model, names):
    """Give the parameters their torch names back and the dimensions theirs; returns the parameters that are gone."""
    import onnx
    graph = onnx.load(a.output, load_external_data=False)  # a file of weights beside it stays as it is
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
            elif entry.key == "pkg.torch.onnx.fx_node":  # which says of each argument whether it is a parameter ("p_") or a buffer ("b_")
                entry.value = entry.value.replace("%p_inner_", "%p_").replace("%b_inner_", "%b_")
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
        model, task, fresh, exporter, attention = first_way(a)
    except Refusal as e:
        raise SystemExit(f"export: {e}")
    except (OSError, ValueError) as e:
        raise SystemExit(f"export: cannot load {a.model}: {(str(e).strip() or type(e).__name__).splitlines()[0]}")
    names = list(huggingface.example(a, model, task)[0])
    missing = tidy(a, model, names)
    count = sum(p.numel() for p in model.parameters())
    print(f"{a.output}: {type(model).__name__} ({task}), {count:,} parameters, inputs {', '.join(names)}, exporter {exporter}, {attention} attention")
    if fresh:
        print(f"export: newly initialised, because {a.model} does not hold them: {', '.join(fresh)}", file=sys.stderr)
    if missing:
        print(f"export: {len(missing)} parameters are not in the graph, such as {missing[0]}: the forward pass does not use them, "
              "or the exporter folded them into a constant", file=sys.stderr)


if __name__ == "__main__":
    main()
