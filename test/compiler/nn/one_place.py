#!/usr/bin/env python3
"""Where operations of the nn dialect are named in the sources.

usage: one_place.py [ROOT]

An operation has one definition (compiler/nn/Nn*.td), one file that implements it (a folder of compiler/nn for each family), and a handler
where ONNX has it (compiler/onnx/ops/); everybody else asks its interfaces and traits. Files that name operations all the same stand in
EXCEPTIONS with the reason: they write formulas with them, or recognise formulas by them. A list of all operations of a kind is no reason.

Prints how many there are of each kind, and fails with the place of what is named elsewhere, and with exceptions that nothing needs."""
import collections, pathlib, re, sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[3]
FAMILIES = ["elementwise", "movement", "reduction", "composites", "library"]
OF_EVERYBODY = {"Constant", "Reshape"}  # numbers that are known, and views: what a graph consists of, as its values do

EXCEPTIONS = {
    # What recognises the formulas of exporters may name whatever they consist of.
    "passes/raise/": ("recognises formulas", None),
    # Writing formulas.
    "compiler/nn/build.cpp": ("short ways to write formulas",
        "Add Sub Mul Div Max Neg Exp Log Tanh Erf Rsqrt Sigmoid Compare Select Cast Broadcast Slice Pad Transpose Iota Reduce"),
    "compiler/nn/patterns_arithmetic.cpp": ("identities", "Add Sub Mul Div Neg Not Pow Sqrt Rsqrt Select Cast Broadcast"),
    "compiler/nn/patterns_movement.cpp": ("identities", "Broadcast Transpose Slice Pad Concat Reduce"),
    "passes/train/add_loss.cpp": ("writes the loss", "Concat CrossEntropy"),
    "passes/train/undrawn.cpp": ("evaluation drops nothing; recognises what is drawn to be kept", "Add Cast Compare Dropout Floor Noise"),
    "passes/train/differentiate.cpp": ("gradients of slices are joined; nothing is detached after it", "Pad Detach"),
    "passes/train/join_pads.h": ("gradients of slices are joined", "Pad"),
    "passes/train/join_pads.cpp": ("", "Pad Concat"),
    "passes/train/join_products.cpp": ("gradients of steps of a loop are one product", "Concat"),
    "passes/fuse/hoist_slices.cpp": ("identities of slices", "Broadcast Slice Transpose"),
    "passes/fuse/parts.cpp": ("slices of which kernels are told apart", "Slice"),
    "passes/train/epilogues.cpp": ("recognises what is made of products", "Add Broadcast"),
    "passes/train/gelu_in_products.cpp": ("recognises what is made of products", "Gelu GeluGrad"),
    "passes/train/logits_in_products.cpp": ("recognises what is made of products", "CrossEntropy Select"),
    "passes/train/optimizer.cpp": ("writes the update", "Min Sqrt Rsqrt"),
    "passes/train/tile.h": ("tiles products, lookups and their loss", "Gather GroupedMatMul"),
    "passes/train/tile.cpp": ("", "Gather GroupedMatMul"),
    "passes/train/tile_uses.cpp": ("", "And Concat Gather GroupedMatMul"),
    "passes/train/pad_classes.cpp": ("pads the classes of a loss", "CrossEntropy"),
    "passes/train/tile_loss.cpp": ("", "Add And Broadcast Cast Concat CrossEntropy Sub"),
    "passes/train/logits.h": ("", "CrossEntropy"),
    "passes/train/logits.cpp": ("what models do to each logit alone", "Add Broadcast Cast CrossEntropy Div Mul Neg Sub Tanh"),
    "passes/shard/partition.cpp": ("a table that is looked up is alone in its bucket", "Gather"),
    "passes/fuse/table_rows.cpp": ("recognises lookups, and what adds their rows to a gradient", "Add Gather ScatterAdd"),
    "passes/shard/row_kernels.cpp": ("writes the kernels of rows in a shard", "Add And Gather ScatterAdd"),
    # Reading ONNX: numpy's broadcasting in front of operations, and what a use says about an initializer.
    "compiler/onnx/emit.h": ("operations that broadcast as numpy does", "Add Sub Mul Div"),
    "compiler/onnx/emit.cpp": ("", "Compare Select IsNan Cast"),
    "compiler/onnx/emit_ops.cpp": ("", "Exp Log Broadcast Transpose Slice Pad Concat Gather TakeAlong ScatterAdd Iota Reduce CumSum Softmax Gelu "
        "LayerNorm RmsNorm CrossEntropy Dropout Noise Depthwise"),
    "compiler/onnx/forward.cpp": ("what depends on no parameter is not detached", "Detach Select"),
    "compiler/onnx/input_numbers.cpp": ("indices and labels are followed to the input they come from, and held inside their table",
        "Max Min Not Cast Broadcast Slice Transpose Pad Select Compare"),
    "compiler/onnx/facts.h": ("what a use says about an initializer", "Gather Concat"),
    "compiler/onnx/roles.cpp": ("", "CrossEntropy Sin Cos Mul Cast Compare IsNan Broadcast Transpose Slice Concat Gather Softmax Depthwise"),
    "compiler/onnx/role_evidence.cpp": ("", "Add Sub Mul Div Select Compare Broadcast Concat CrossEntropy"),
    "compiler/onnx/sequence.cpp": ("", "Broadcast Transpose Slice Pad Concat Gather Reduce CumSum Dropout Depthwise"),
    # Kernels: their kinds are those of sums, and what is stored is rounded.
    "compiler/codegen/classify.h": ("the kinds of kernels are those of the sums in them", "Reduce"),
    "compiler/codegen/classify.cpp": ("", "Reduce CumSum ScatterAdd"),
    "compiler/codegen/builder.h": ("", "Reduce"),
    "compiler/codegen/build_values.cpp": ("", "Reduce"),
    "compiler/codegen/build.cpp": ("a scatter begins with a summand; a store rounds by itself", "Add Cast CumSum ScatterAdd Reduce"),
    "compiler/codegen/codegen.cpp": ("a kernel that only copies", "Cast Broadcast Iota"),
    "passes/fuse/fuse.cpp": ("many pieces are joined in groups", "Concat"),
    "passes/fuse/access.h": ("the kinds of kernels are those of the sums in them", "Reduce"),
    "passes/fuse/access.cpp": ("repetitions are looked through; what is turned", "Broadcast Transpose Reduce"),
    "passes/fuse/clusters.cpp": ("the kinds of kernels; a lookup reads a tile", "Add Broadcast Gather Reduce CumSum ScatterAdd"),
    "passes/fuse/kernel_table.cpp": ("kernels get names for people", "Iota Reduce"),
    "passes/fuse/bias_in_products.cpp": ("recognises kernels that add a bias", "Add Broadcast Cast"),
    "passes/fuse/expand_blocks.cpp": ("writes products of blocks as lookups and sums", "Gather ScatterAdd"),
    "passes/fuse/expand_put_along.cpp": ("writes sums as comparisons or as those of a table", "ScatterAdd"),
    "passes/fuse/few_rows.cpp": ("a table of few rows is sums of columns", "Concat ScatterAdd"),
    "passes/fuse/split_columns.cpp": ("", "Reduce"),
    "passes/fuse/split_reductions.cpp": ("", "Reduce"),
    "passes/fuse/sums_in_rows.cpp": ("recognises sums of columns; what is not stored is not rounded", "Cast Reduce"),
    "passes/fuse/sums_in_rows.h": ("", "Reduce"),
    "passes/fuse/repeat.cpp": ("sums and lookups are not made twice", "Gather Reduce CumSum ScatterAdd"),
    "passes/fuse/stored_types.cpp": ("what adds up in memory stays f32", "Add Broadcast Slice Transpose Iota Random Reduce CumSum ScatterAdd"),
    "passes/fuse/mixed_precision.cpp": ("", "Cast"),
    "passes/fuse/round_extrema.cpp": ("a maximum is found among numbers that are rounded alike", "Broadcast Transpose Reduce Compare"),
    "passes/train/duplicates.cpp": ("what backward makes again", "Broadcast Transpose Slice Pad Iota Random"),
}


def operations():
    """Name without Op: (kind, mnemonic) of the primitives and composites."""
    found = {}
    for path in sorted((ROOT / "compiler/nn").glob("Nn*.td")):
        for name, base, mnemonic, rest in re.findall(r'^def Nn_(\w+)Op\s*:\s*Nn_(\w+)<"(\w+)"([^{]*)\{', path.read_text(), re.M):
            kind = ("elementwise" if base in ("Unary", "Binary", "PointwiseOp") else "composite" if "Nn_Composite" in rest else
                    "movement" if "Nn_Indexed" in rest else "reduction" if "Nn_Accumulates" in rest else None)
            if kind and name not in OF_EVERYBODY:
                found[name] = kind, mnemonic
    return found


def sources():
    for path in sorted(p for top in ("compiler", "passes", "runtime", "tools") for p in (ROOT / top).rglob("*") if p.suffix in (".cpp", ".h")):
        name = str(path.relative_to(ROOT))
        if not name.startswith(("compiler/onnx/ops/", "compiler/zero/", "compiler/plan/", "runtime/")):  # handlers; other dialects' operations
            yield name, re.sub(r"//.*", "", path.read_text())


def named(text, ops):
    """Operations that the text names by class, of no other namespace, or by mnemonic."""
    found = {name for space, name in re.findall(r"(?:\b(\w+)::)?\b(\w+?)Op\b", text) if space in ("", "nn") and name in ops}
    return found | {o for o, (_, mnemonic) in ops.items() if f'"nn.{mnemonic}"' in text}


ops, wrong = operations(), []
implemented, elsewhere = collections.defaultdict(list), collections.defaultdict(set)
needed = collections.defaultdict(set)
for file, text in sources():
    family = file.split("/")[2] if file.startswith("compiler/nn/") and file.count("/") == 3 else None
    rule = next((e for e in EXCEPTIONS if file.startswith(e)), None)
    for op in sorted(named(text, ops)):
        if family in FAMILIES:
            if re.search(rf"\b{op}Op::", text):
                implemented[op].append(file)
            continue  # other operations' formulas
        elsewhere[op].add(file)
        needed[rule].add(op)
        allowed = EXCEPTIONS[rule][1] if rule else ""
        if allowed is not None and op not in allowed.split():
            wrong.append(f"{file} names {op}Op: ask one of its interfaces (NnInterfaces.td) or traits (NnBase.td), or, where it writes or "
                         "recognises a formula, say so in EXCEPTIONS")
for op in ops:
    if len(implemented[op]) != 1:
        wrong.append(f"{op}Op is implemented in {len(implemented[op])} files of compiler/nn: {', '.join(implemented[op]) or 'none'}")
for file, (_, allowed) in EXCEPTIONS.items():
    for op in [] if allowed is None else allowed.split():
        if op not in needed[file]:
            wrong.append(f"{file} does not name {op}Op any more: take it out of EXCEPTIONS")
for kind in ("elementwise", "movement", "reduction", "composite"):
    mine = [o for o in ops if ops[o][0] == kind]
    uses = sum(len([f for f in elsewhere[o] if not f.startswith("passes/raise/")]) for o in mine)
    print(f"{kind}: {len(mine)} operations, {sum(not elsewhere[o] for o in mine)} of them named by nobody else, {uses} uses in formulas")
for line in wrong:
    print("FAILED", line)
print("ok" if ops and not wrong else "FAILED")
sys.exit(bool(wrong) or not ops)
