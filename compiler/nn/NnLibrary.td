//===- NnLibrary.td - calls of the target's library ----------------------------------------------===//
#ifndef ZERO_NN_LIBRARY_TD
#define ZERO_NN_LIBRARY_TD
include "NnBase.td"

def Nn_MatMulOp : Nn_Op<"matmul", [Pure, Nn_Splittable, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptorWithIsCompatible]> {
  let summary = "op(lhs) · op(rhs), both of rank 2, or both of rank 3 with equal first dimension; onto something, if that is given";
  let description = [{
    `transpose_lhs`/`transpose_rhs` exchange the last two dimensions of the stored operand. The result has the operands' type, or is f32
    where they are bf16 or f16: products are summed in f32 and rounded once. `recompute`: the result is not kept for backward, which computes it
    again (nn-recompute). `keep_lhs`: lhs is kept for backward, even where it could cheaply be made again there.

    `onto`, of the result's type, is what the product is added to: a gradient that is summed up over several products, in their order, lies in one
    buffer. It has no gradient of its own, since nothing but backward writes it.
  }];
  let arguments = (ins Nn_Float:$lhs, Nn_Float:$rhs, Optional<Nn_Float>:$onto, DefaultValuedAttr<BoolAttr, "false">:$transpose_lhs,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose_rhs, UnitAttr:$recompute, UnitAttr:$keep_lhs);
  let results = (outs Nn_Float:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, CArg<"bool", "false">:$transpose_lhs,
                                 CArg<"bool", "false">:$transpose_rhs, CArg<"bool", "false">:$recompute), [{
    build($_builder, $_state, lhs, rhs, ::mlir::Value(), transpose_lhs, transpose_rhs, recompute, /*keep_lhs=*/false);
  }]>];
  let assemblyFormat = "$lhs `,` $rhs (`onto` $onto^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_Epilogue : I32EnumAttr<"Epilogue", "what is made of a product before it is rounded",
                              [I32EnumAttrCase<"bias", 0>, I32EnumAttrCase<"gelu", 1>, I32EnumAttrCase<"gelu_grad", 2>]> {
  let cppNamespace = "::zero::nn";
}

def Nn_MatMulEpilogueOp : Nn_Op<"matmul_epilogue", [Pure, Nn_Evaluable]> {
  let summary = "An nn.matmul of rank 2 and what a library makes of it in the same pass";
  let description = [{
    With p = op(lhs) · op(rhs), rounded no sooner than the results, which have the operands' type:
    - `bias`: p + other, of as many numbers as p has columns;
    - `gelu`: gelu(p + other) in the tanh form, and `aux`, which is p + other;
    - `gelu_grad`: p times the slope of GELU at other, which is such an `aux`.
  }];
  let arguments = (ins Nn_Epilogue:$epilogue, Nn_Float:$lhs, Nn_Float:$rhs, Nn_Float:$other, DefaultValuedAttr<BoolAttr, "false">:$transpose_lhs,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose_rhs);
  let results = (outs Nn_Float:$result, Optional<Nn_Float>:$aux);
  let assemblyFormat = "$epilogue $lhs `,` $rhs `,` $other attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_BlockMatMulOp : Nn_Op<"block_matmul", [Pure, Nn_Evaluable]> {
  let summary = "Each block of rows times the matrix of its group: result[b] = lhs[b] · op(rhs[group_of[b]])";
  let description = [{
    lhs [blocks, height, k], rhs [groups, k, n] or with `transpose_rhs` [groups, n, k], group_of [blocks]. Blocks of group -1 are those of `onto`, of the result's type, or
    zeros where that is not given. `all_groups`: there are so many in all, of which these are some, and
    blocks of the others are of group -1, too. Types as those of nn.matmul.
  }];
  let arguments = (ins Nn_Float:$lhs, Nn_Float:$rhs, Nn_Integer:$group_of, Optional<Nn_Float>:$onto, DefaultValuedAttr<BoolAttr, "false">:$transpose_rhs,
                       OptionalAttr<I64Attr>:$all_groups);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$lhs `,` $rhs `by` $group_of (`onto` $onto^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_BlockMatMulSumOp : Nn_Op<"block_matmul_sum", [Pure, Nn_Evaluable]> {
  let summary = "Of each group the sum of its blocks' lhs[b]ᵀ · rhs[b], in the order of blocks; zeros where a group has none";
  let description = [{
    lhs [blocks, height, m], rhs [blocks, height, n], group_of [blocks]; result [groups, m, n]. `all_groups` as nn.block_matmul has it. Types as those of nn.matmul.
  }];
  let arguments = (ins Nn_Float:$lhs, Nn_Float:$rhs, Nn_Integer:$group_of, OptionalAttr<I64Attr>:$all_groups);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$lhs `,` $rhs `by` $group_of attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_AttentionOp : Nn_Op<"attention", [Pure, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptor, AttrSizedOperandSegments]> {
  let summary = "softmax(scale * q·k^T + mask [causal]) · v, scores never materialised";
  let description = [{
    q [batch, heads, q_len, dim], k and v [batch, kv_heads, kv_len, dim], heads a multiple of kv_heads.
    `mask` is additive f32 of rank 4 whose dimensions are 1 or those of the scores; it has no gradient.
    `bias` [heads, q_len, kv_len] is additive f32, too, one for all samples, and has a gradient: learnt relative positions (T5, BEiT, Swin). `causal`: position i sees j <= i + kv_len - q_len. `band` [first, last]: it sees i + first <= j <= i + last
    alone, as in a sliding window. A row that sees nothing gives zeros. One that sees nothing but what the mask hides by finite numbers weighs all of these keys alike,
    and so does its gradient (runtime/plan/hidden.h): a softmax in f32 does. `beyond`: the finite number by which the model hides what `causal` and `band` do, added
    in place of the mask. Such a row weighs these keys, too; without it they are hidden by -inf.
    Results: out [batch, heads, q_len, dim] and lse [batch, heads, q_len]. Where q, k and v are bf16 or f16 so is out; mask and lse are f32.
    `bshd`: the heads of a position lie side by side, as products leave them and read them: q and out are [batch, q_len, heads, dim], k and v
    [batch, kv_len, kv_heads, dim], lse [batch, q_len, heads]. The mask has the dimensions of the scores as ever.
    `packed_kv_heads` (of that layout alone): q, k and v are one value [batch, len, heads + 2 kv_heads, dim], as one product makes them. In each
    position lie the heads of the queries, then those of the keys, whose number this is, then those of the values.
    `softcap`: scores are softcap · tanh(scale · q·k^T / softcap) before the mask, as in Gemma 2.
    `sink` [heads]: one more score of each row, which takes its part of the softmax and has no value (the learnt sinks of GPT-OSS). lse counts it. Only until
    composites are decomposed (nn-expand-sinks).
  }];
  let arguments = (ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, Optional<Nn_Float>:$mask, Optional<Nn_Float>:$bias, Optional<Nn_Float>:$sink, F32Attr:$scale,
                       DefaultValuedAttr<BoolAttr, "false">:$causal,
                       DefaultValuedAttr<BoolAttr, "false">:$bshd, OptionalAttr<I64Attr>:$packed_kv_heads,
                       OptionalAttr<DenseI64ArrayAttr>:$band, OptionalAttr<F32Attr>:$softcap, OptionalAttr<F32Attr>:$beyond);
  let results = (outs Nn_Float:$result, Nn_Float:$lse);
  let assemblyFormat = "$q `,` $k `,` $v (`mask` $mask^)? (`bias` $bias^)? (`sink` $sink^)? attr-dict `:` functional-type(operands, results)";
}

/// Gradients of q, k and v of an nn.attention, or where they are one value, the gradient of that; and of the bias, where there is one: f32
/// [parts, heads, q_len, kv_len], each part the sum over batch / parts samples.
class Nn_AttentionGrad<string mnemonic, dag operands> : Nn_Op<mnemonic, [Pure, Nn_Evaluable, AttrSizedOperandSegments]> {
  let arguments = !con((ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, Optional<Nn_Float>:$mask, Optional<Nn_Float>:$bias), operands,
                       (ins Nn_Float:$dout, F32Attr:$scale, DefaultValuedAttr<BoolAttr, "false">:$causal,
                            DefaultValuedAttr<BoolAttr, "false">:$bshd, OptionalAttr<I64Attr>:$packed_kv_heads,
                            OptionalAttr<DenseI64ArrayAttr>:$band, OptionalAttr<F32Attr>:$softcap, OptionalAttr<F32Attr>:$beyond));
  let results = (outs Variadic<Nn_Float>:$gradients);
  let hasVerifier = 1;
}

def Nn_AttentionGradOp : Nn_AttentionGrad<"attention_grad", (ins Nn_Float:$out, Nn_Float:$lse)> {
  let summary = "Gradients of q, k and v of an nn.attention, given its operands, results and the gradient of its result";
  let assemblyFormat = "$q `,` $k `,` $v (`mask` $mask^)? (`bias` $bias^)? `,` $out `,` $lse `,` $dout attr-dict `:` functional-type(operands, results)";
}

def Nn_AttentionGradByRowSumsOp : Nn_AttentionGrad<"attention_grad_by_row_sums", (ins Nn_Float:$lse, Nn_Float:$delta)> {
  let summary = "The same, given of each row the sum of dout · out, `delta`, instead of out: what a kernel makes of it";
  let description = [{ `delta` has the type of lse. The rest as nn.attention_grad has it. }];
  let assemblyFormat = "$q `,` $k `,` $v (`mask` $mask^)? (`bias` $bias^)? `,` $lse `,` $delta `,` $dout attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Rows where they lie
//===----------------------------------------------------------------------===//

def Nn_RowsOp : Nn_Op<"rows", [Pure, Nn_Movement, Nn_Diff, Nn_Evaluable]> {
  let summary = "Some rows of a tensor, of its first dimension, where they lie: never moves a byte";
  let description = [{ result[i, …] = input[from + i, …]. The operand is in memory, and no kernel makes it in passing: that is what nn.slice is for. }];
  let arguments = (ins Nn_Tensor:$input, I64Attr:$from);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `from` $from attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Nn_JoinRowsOp : Nn_Op<"join_rows", [Pure, Nn_Movement, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "Tensors below each other, along their first dimension: each is written where it belongs, and none is moved";
  let description = [{ What nn.concat with dim 0 means, of tensors that library calls and kernels of their own make: nn.rows the other way round. }];
  let arguments = (ins Variadic<Nn_Tensor>:$inputs);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$inputs attr-dict `:` functional-type($inputs, $result)";
}
#endif
