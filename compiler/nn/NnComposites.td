//===- NnComposites.td - named mathematics over the last dimension, which nn-decompose rewrites --===//
#ifndef ZERO_NN_COMPOSITES_TD
#define ZERO_NN_COMPOSITES_TD
include "NnBase.td"

def Nn_GeluKind : I32EnumAttr<"GeluKind", "approximation", [I32EnumAttrCase<"erf", 0>, I32EnumAttrCase<"tanh", 1>]> {
  let cppNamespace = "::zero::nn";
}
def Nn_GeluOp : Nn_Op<"gelu", [Pure, Nn_Elementwise, SameOperandsAndResultType, Nn_Diff, Nn_Composite, Nn_Evaluable]> {
  let summary = "x * Phi(x), exact (erf) or by tanh";
  let arguments = (ins Nn_GeluKind:$kind, Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$kind $input attr-dict `:` type($result)";
}
def Nn_GeluGradOp : Nn_Op<"gelu_grad", [Pure, Nn_Elementwise, SameOperandsAndResultType, Nn_Composite, Nn_Evaluable]> {
  let summary = "The gradient of an nn.gelu's input, given that of its result";
  let arguments = (ins Nn_GeluKind:$kind, Nn_Float:$input, Nn_Float:$of_result);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$kind $input `,` $of_result attr-dict `:` type($result)";
}
def Nn_SiluOp : Nn_Op<"silu", [Pure, Nn_Elementwise, SameOperandsAndResultType, Nn_Diff, Nn_Composite, Nn_Evaluable]> {
  let summary = "x * sigmoid(x)";
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def Nn_SoftmaxOp : Nn_Op<"softmax", [Pure, Nn_RowWise, SameOperandsAndResultType, Nn_Diff, Nn_Composite, Nn_Evaluable]> {
  let summary = "Softmax over the last dimension";
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Nn_LayerNormOp : Nn_Op<"layer_norm", [Pure, Nn_RowWise, Nn_Diff, Nn_Composite, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "(x - mean) * rstd * scale + bias over the last dimension";
  let description = [{ Results: y, and per row `mean` and `rstd = 1 / sqrt(var + eps)` (shape of x without its last dimension),
    which the gradient reads. `bias` may be absent. }];
  let arguments = (ins Nn_Float:$input, Nn_Float:$scale, Optional<Nn_Float>:$bias, F32Attr:$eps);
  let results = (outs Nn_Float:$result, Nn_Float:$mean, Nn_Float:$rstd);
  let assemblyFormat = "$input `,` $scale (`,` $bias^)? attr-dict `:` functional-type(operands, results)";
}

def Nn_RmsNormOp : Nn_Op<"rms_norm", [Pure, Nn_RowWise, Nn_Diff, Nn_Composite, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "x * rstd * scale over the last dimension, rstd = 1 / sqrt(mean(x^2) + eps)";
  let arguments = (ins Nn_Float:$input, Nn_Float:$scale, F32Attr:$eps);
  let results = (outs Nn_Float:$result, Nn_Float:$rstd);
  let assemblyFormat = "$input `,` $scale attr-dict `:` functional-type(operands, results)";
}

def Nn_CrossEntropyOp : Nn_Op<"cross_entropy", [Pure, Nn_SplittableSum, Nn_Diff, Nn_Composite, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "Sum over rows of scale * the cross entropy of softmax(logits) and the label, rows with label = ignore_index left out";
  let description = [{
    logits [rows, classes], labels [rows] (i64), scale f32[1]: the exact mean is had by scale = 1 / (labels that count in the
    global batch), which the runtime knows beforehand. Results: loss (f32[], no dimensions) and per row the log of the sum
    of exponentials, which the gradient reads. An ignored row's label is never used as an index.

    A label stands for the distribution q over classes: 1 - label_smoothing at the label, and label_smoothing / classes more at every
    class, the label's among them. The loss of a row is -sum_c q[c] * log softmax(logits)[c].
  }];
  let arguments = (ins Nn_Float:$logits, Nn_Integer:$labels, Nn_Float:$scale, I64Attr:$ignore_index,
                       DefaultValuedAttr<F32Attr, "0.0f">:$label_smoothing);
  let results = (outs Nn_Float:$loss, Nn_Float:$lse);
  let assemblyFormat = "$logits `,` $labels `,` $scale attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The part of q at the label and at every other class.
    double atLabel() { return 1 - smoothing() + elsewhere(); }
    double elsewhere() { return smoothing() / double(::mlir::cast<::mlir::ShapedType>(getLogits().getType()).getDimSize(1)); }
    double smoothing() { return getLabelSmoothing().convertToDouble(); }
  }];
}

def Nn_DropoutOp : Nn_Op<"dropout", [Pure, Nn_Draws, Nn_Splittable, Nn_Diff, Nn_Composite, Nn_Evaluable, AllTypesMatch<["input", "result"]>]> {
  let summary = "x / (1 - rate) where a random number says keep, else 0; the gradient draws the same numbers again";
  let description = [{ The numbers are those of nn.random. `samples` is set by nn-add-loss, which knows what the batch is. }];
  let arguments = (ins Nn_Float:$input, StaticShapeTensorOf<[I64]>:$seed, F32Attr:$rate, I64Attr:$id, I64Attr:$samples);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input `,` $seed attr-dict `:` type($input) `,` type($seed)";
  let hasVerifier = 1;
}

def Nn_NoiseOp : Nn_Op<"noise", [Pure, Nn_Draws, Nn_NoGradient, Nn_Splittable, Nn_Composite, Nn_Evaluable, AllTypesMatch<["input", "result"]>]> {
  let summary = "Random numbers of the input's shape and type, uniform in [0, 1) or of the standard normal distribution";
  let description = [{
    The numbers are those of nn.random: one for each uniform number, two for each normal one (Box and Muller), of the streams `id` and `id` + 1.
    The input says which samples they are drawn for. `samples` is set by nn-add-loss, which knows what the batch is.
  }];
  let arguments = (ins Nn_Float:$input, StaticShapeTensorOf<[I64]>:$seed, BoolAttr:$normal, I64Attr:$id, I64Attr:$samples);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input `,` $seed attr-dict `:` type($input) `,` type($seed)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Convolutions that are no products
//===----------------------------------------------------------------------===//

def Nn_DepthwiseOp : Nn_Op<"depthwise", [Pure, Nn_Diff, Nn_Composite, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "A convolution of each channel by itself";
  let description = [{
    input [batch, n…, channels], kernel [k…, channels], result [batch, m…, channels]: the sum over taps t of
    kernel[t] · input[i · stride + t · dilation - low], where what lies outside of the input is zero. `low` and `high`: places before and after the
    input that windows may begin or end at, no more than the window reaches beyond its first tap.
  }];
  let arguments = (ins Nn_Float:$input, Nn_Float:$kernel, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input `by` $kernel `low` $low `high` $high `strides` $strides `dilations` $dilations attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Products of rows with the matrices of their groups, as in a mixture of experts
//===----------------------------------------------------------------------===//

def Nn_GroupRowsOp : Nn_Op<"group_rows", [Pure, Nn_Composite, Nn_Evaluable]> {
  let summary = "Where rows go so that each block of rows belongs to one group";
  let description = [{
    `group` [rows] says of each row which of the `groups` it belongs to. Rows are put into blocks of `height` slots: those of group 0 in their order, those of
    group 1 from the next block on, and so on, so that a group has less than a block too many. `slot` [rows]: where each row lies. `row` [blocks x height]: which row
    lies in each slot, -1 where none does. `group_of` [blocks]: the group of each block, -1 of those that are left over.

    How many blocks there are does not depend on the data: enough for any groups, (rows + groups (height - 1)) / height. So no row is ever dropped, as in
    MegaBlocks (Gale et al. 2022, arXiv:2211.15841).
  }];
  let arguments = (ins Nn_Integer:$group, I64Attr:$groups, I64Attr:$height);
  let results = (outs Nn_Integer:$slot, Nn_Integer:$row, Nn_Integer:$group_of);
  let builders = [OpBuilder<(ins "::mlir::Value":$group, "int64_t":$groups, "int64_t":$height)>];
  let assemblyFormat = "$group attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_GroupedMatMulOp : Nn_Op<"grouped_matmul", [Pure, Nn_Diff, Nn_Composite, Nn_Evaluable]> {
  let summary = "result[i] = input[i] · op(matrices[group of i])";
  let description = [{
    input [rows, k], matrices [groups, k, n] or with `transpose` [groups, n, k], and the results of an nn.group_rows; result [rows, n]. Of several tensors of
    matrices each has those of some groups, one after another.
  }];
  let arguments = (ins Nn_Float:$input, Variadic<Nn_Float>:$matrices, Nn_Integer:$slot, Nn_Integer:$row, Nn_Integer:$group_of,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input `,` $matrices `by` $slot `,` $row `,` $group_of attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_GroupedMatMulGradOp : Nn_Op<"grouped_matmul_grad", [Pure, Nn_Composite, Nn_Evaluable]> {
  let summary = "The gradient of the matrices: of each group the sum over its rows i of lhs[i]ᵀ · rhs[i]";
  let description = [{
    lhs [rows, m], rhs [rows, n], and `row` and `group_of` of an nn.group_rows; result [groups, m, n]. `all_groups`: of
    some groups of so many, and -1 stands for the others, too.
  }];
  let arguments = (ins Nn_Float:$lhs, Nn_Float:$rhs, Nn_Integer:$row, Nn_Integer:$group_of, OptionalAttr<I64Attr>:$all_groups);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$lhs `,` $rhs `by` $row `,` $group_of attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
#endif
