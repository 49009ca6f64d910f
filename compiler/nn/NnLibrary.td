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

def Nn_AttentionOp : Nn_Op<"attention", [Pure, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "softmax(scale * q·k^T + mask [causal]) · v, scores never materialised";
  let description = [{
    q [batch, heads, q_len, dim], k and v [batch, kv_heads, kv_len, dim], heads a multiple of kv_heads.
    `mask` is additive f32 of rank 4 whose dimensions are 1 or those of the scores; it has no gradient here (a trainable
    bias keeps the attention decomposed). `causal`: position i sees j <= i + kv_len - q_len. A row that sees nothing gives zeros.
    Results: out [batch, heads, q_len, dim] and lse [batch, heads, q_len]. Where q, k and v are bf16 or f16 so is out; mask and lse are f32.
    `bshd`: the heads of a position lie side by side, as products leave them and read them: q and out are [batch, q_len, heads, dim], k and v
    [batch, kv_len, kv_heads, dim], lse [batch, q_len, heads]. The mask has the dimensions of the scores as ever.
  }];
  let arguments = (ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, Optional<Nn_Float>:$mask, F32Attr:$scale,
                       DefaultValuedAttr<BoolAttr, "false">:$causal,
                       DefaultValuedAttr<BoolAttr, "false">:$bshd);
  let results = (outs Nn_Float:$result, Nn_Float:$lse);
  let assemblyFormat = "$q `,` $k `,` $v (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
}

def Nn_AttentionGradOp : Nn_Op<"attention_grad", [Pure, Nn_Evaluable]> {
  let summary = "Gradients of q, k and v of an nn.attention, given its operands, results and the gradient of its result";
  let arguments = (ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, Optional<Nn_Float>:$mask, Nn_Float:$out, Nn_Float:$lse,
                       Nn_Float:$dout, F32Attr:$scale, DefaultValuedAttr<BoolAttr, "false">:$causal,
                       DefaultValuedAttr<BoolAttr, "false">:$bshd);
  let results = (outs Nn_Float:$dq, Nn_Float:$dk, Nn_Float:$dv);
  let assemblyFormat = "$q `,` $k `,` $v (`mask` $mask^)? `,` $out `,` $lse `,` $dout attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

/// What one pass over the scores makes of an attention's gradients, where one kernel cannot add up all of them.
class Nn_AttentionGradPart<string mnemonic> : Nn_Op<mnemonic, [Pure, Nn_Evaluable]> {
  let arguments = (ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, Optional<Nn_Float>:$mask, Nn_Float:$lse, Nn_Float:$delta, Nn_Float:$dout,
                       F32Attr:$scale, DefaultValuedAttr<BoolAttr, "false">:$causal,
                       DefaultValuedAttr<BoolAttr, "false">:$bshd);
  let hasVerifier = 1;
}

def Nn_AttentionGradKeysOp : Nn_AttentionGradPart<"attention_grad_keys"> {
  let summary = "Gradients of k and v of an nn.attention: sums over the queries";
  let description = [{ `delta`, of the type of lse, is the sum of dout · out of each row. The rest as nn.attention_grad has it. }];
  let results = (outs Nn_Float:$dk, Nn_Float:$dv);
  let assemblyFormat = "$q `,` $k `,` $v (`mask` $mask^)? `,` $lse `,` $delta `,` $dout attr-dict `:` functional-type(operands, results)";
}

def Nn_AttentionGradQueriesOp : Nn_AttentionGradPart<"attention_grad_queries"> {
  let summary = "Gradient of q of an nn.attention: sums over the keys";
  let description = [{ The operands are those of nn.attention_grad_keys. }];
  let results = (outs Nn_Float:$dq);
  let assemblyFormat = "$q `,` $k `,` $v (`mask` $mask^)? `,` $lse `,` $delta `,` $dout attr-dict `:` functional-type(operands, results)";
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
