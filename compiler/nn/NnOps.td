//===- NnOps.td - operations of the nn dialect ---------------------------------------------------===//
#ifndef ZERO_NN_OPS_TD
#define ZERO_NN_OPS_TD
include "NnBase.td"

//===----------------------------------------------------------------------===//
// Parameters and constants
//===----------------------------------------------------------------------===//

def Nn_ParameterOp : Nn_Op<"parameter", [Symbol]> {
  let summary = "A tensor of the model that training may change; a symbol of the module";
  let description = [{
    The symbol's name is the initializer's name in the ONNX file and the name under which gradients,
    checkpoints and exports show it. Weights are not in the IR: `file`, `offset` and `bytes` say where they
    lie (row-major, element type `stored`); without `file` they come from `init` ("zeros", "ones", "normal").
    `aliases` lists tied initializers: dictionaries {name, transposed, file, offset, bytes, stored}.
    `nodes` are ONNX node names of its first uses, for messages.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Nn_Tensor>:$type, BoolAttr:$trainable,
                       OptionalAttr<StrAttr>:$file, DefaultValuedAttr<I64Attr, "0">:$offset,
                       DefaultValuedAttr<I64Attr, "0">:$bytes, OptionalAttr<TypeAttr>:$stored,
                       OptionalAttr<StrAttr>:$init, DefaultValuedAttr<F32Attr, "0.0f">:$init_std,
                       OptionalAttr<ArrayAttr>:$aliases);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
}

def Nn_GetOp : Nn_Op<"get", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The present value of a parameter";
  let arguments = (ins FlatSymbolRefAttr:$parameter);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$parameter attr-dict `:` type($result)";
}

def Nn_GradientOp : Nn_Op<"gradient", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Hand over the complete gradient of a trainable parameter (once per parameter and step)";
  let arguments = (ins FlatSymbolRefAttr:$parameter, Nn_Float:$value);
  let assemblyFormat = "$parameter `,` $value attr-dict `:` type($value)";
}

def Nn_ConstantOp : Nn_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A tensor known at compile time";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Nn_IotaOp : Nn_Op<"iota", [Pure]> {
  let summary = "The index along one dimension: result[…, i, …] = i";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Nn_RandomOp : Nn_Op<"random", [Pure]> {
  let summary = "Uniform numbers in [0, 1) from a counter-based generator";
  let description = [{
    `seed` is i64[2]: the run's seed mixed with the step, and the global index s of the first sample of this
    tensor. Dimension 0 (after removing leading dimensions by reshape) is the batch: element with
    linear index i gets hash(seed[0], id, s * (elements / samples) + i), where `samples` is the number of
    samples the tensor covers, so the stream does not depend on how the batch is split over ranks.
  }];
  let arguments = (ins StaticShapeTensorOf<[I64]>:$seed, I64Attr:$id, I64Attr:$samples);
  let results = (outs StaticShapeTensorOf<[F32]>:$result);
  let assemblyFormat = "$seed attr-dict `:` type($seed) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

def Nn_AddOp : Nn_Binary<"add", Nn_Tensor, [Nn_Diff, Commutative]> { let summary = "lhs + rhs"; }
def Nn_SubOp : Nn_Binary<"sub", Nn_Tensor, [Nn_Diff]> { let summary = "lhs - rhs"; }
def Nn_MulOp : Nn_Binary<"mul", Nn_Tensor, [Nn_Diff, Commutative]> { let summary = "lhs * rhs"; }
def Nn_DivOp : Nn_Binary<"div", Nn_Tensor, [Nn_Diff]> { let summary = "lhs / rhs (integers: towards zero)"; }
def Nn_ModOp : Nn_Binary<"mod", Nn_Integer> { let summary = "Remainder with the sign of rhs (ONNX Mod, fmod = 0)"; }
def Nn_PowOp : Nn_Binary<"pow", Nn_Float, [Nn_Diff]> { let summary = "lhs ^ rhs; gradient for a constant rhs only"; }
def Nn_MaxOp : Nn_Binary<"max", Nn_Tensor, [Nn_Diff, Commutative]> { let summary = "Larger operand; NaN if either is NaN"; }
def Nn_MinOp : Nn_Binary<"min", Nn_Tensor, [Nn_Diff, Commutative]> { let summary = "Smaller operand; NaN if either is NaN"; }
def Nn_AndOp : Nn_Binary<"and", Nn_Bool, [Commutative]> { let summary = "Logical and"; }
def Nn_OrOp  : Nn_Binary<"or", Nn_Bool, [Commutative]> { let summary = "Logical or"; }
def Nn_XorOp : Nn_Binary<"xor", Nn_Bool, [Commutative]> { let summary = "Logical exclusive or"; }
def Nn_NotOp : Nn_Unary<"not", Nn_Bool> { let summary = "Logical not"; }

def Nn_NegOp   : Nn_Unary<"neg", Nn_Tensor, [Nn_Diff]> { let summary = "-x"; }
def Nn_AbsOp   : Nn_Unary<"abs", Nn_Tensor, [Nn_Diff]> { let summary = "|x|"; }
def Nn_ExpOp   : Nn_Unary<"exp", Nn_Float, [Nn_Diff]> { let summary = "e^x"; }
def Nn_LogOp   : Nn_Unary<"log", Nn_Float, [Nn_Diff]> { let summary = "Natural logarithm"; }
def Nn_SqrtOp  : Nn_Unary<"sqrt", Nn_Float, [Nn_Diff]> { let summary = "Square root"; }
def Nn_RsqrtOp : Nn_Unary<"rsqrt", Nn_Float, [Nn_Diff]> { let summary = "1 / sqrt(x)"; }
def Nn_TanhOp  : Nn_Unary<"tanh", Nn_Float, [Nn_Diff]> { let summary = "Hyperbolic tangent"; }
def Nn_ErfOp   : Nn_Unary<"erf", Nn_Float, [Nn_Diff]> { let summary = "Error function"; }
def Nn_SinOp   : Nn_Unary<"sin", Nn_Float, [Nn_Diff]> { let summary = "Sine"; }
def Nn_CosOp   : Nn_Unary<"cos", Nn_Float, [Nn_Diff]> { let summary = "Cosine"; }
def Nn_FloorOp : Nn_Unary<"floor", Nn_Float> { let summary = "Largest integer not above x (no gradient)"; }
def Nn_SigmoidOp : Nn_Unary<"sigmoid", Nn_Float, [Nn_Diff]> { let summary = "1 / (1 + e^-x)"; }

def Nn_IsNanOp : Nn_Op<"is_nan", [Pure, Nn_Elementwise, SameOperandsAndResultShape]> {
  let summary = "Whether x is not a number";
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Bool:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Nn_Predicate : I32EnumAttr<"Predicate", "comparison", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::zero::nn";
}
def Nn_CompareOp : Nn_Op<"compare", [Pure, Nn_Elementwise, SameOperandsAndResultShape, SameTypeOperands]> {
  let summary = "Compare element by element (floats: ordered, except ne)";
  let arguments = (ins Nn_Predicate:$predicate, Nn_Tensor:$lhs, Nn_Tensor:$rhs);
  let results = (outs Nn_Bool:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
}

def Nn_SelectOp : Nn_Op<"select", [Pure, Nn_Elementwise, SameOperandsAndResultShape, Nn_Diff,
                                   AllTypesMatch<["on_true", "on_false", "result"]>]> {
  let summary = "condition ? on_true : on_false, element by element (ONNX Where)";
  let arguments = (ins Nn_Bool:$condition, Nn_Tensor:$on_true, Nn_Tensor:$on_false);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` type($condition) `,` type($result)";
}

def Nn_CastOp : Nn_Op<"cast", [Pure, Nn_Elementwise, SameOperandsAndResultShape, Nn_Diff]> {
  let summary = "Convert the element type (float to integer: towards zero; to bool: x != 0)";
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

def Nn_BroadcastOp : Nn_Op<"broadcast", [Pure, Nn_Diff]> {
  let summary = "Repeat a tensor along new dimensions or dimensions of size 1";
  let description = [{
    Operand dimension i becomes result dimension `dims[i]` (strictly increasing); its size is 1 or the
    result's. Dimensions not named are new. `nn.broadcast %b {dims = array<i64: 1>} : tensor<8xf32> -> tensor<4x8xf32>`
    adds rows.
  }];
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `dims` $dims attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_ReshapeOp : Nn_Op<"reshape", [Pure, Nn_Diff]> {
  let summary = "The same elements in the same row-major order under another shape; never moves a byte";
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_TransposeOp : Nn_Op<"transpose", [Pure, Nn_Diff, InferTypeOpAdaptor]> {
  let summary = "Permute dimensions: result dimension i is operand dimension perm[i]";
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$perm);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `perm` $perm attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Nn_SliceOp : Nn_Op<"slice", [Pure, Nn_Diff, InferTypeOpAdaptor]> {
  let summary = "result[i…] = input[start + i * step…]; steps may be negative";
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `starts` $starts `sizes` $sizes `steps` $steps attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Nn_PadOp : Nn_Op<"pad", [Pure, Nn_Diff, InferTypeOpAdaptor]> {
  let summary = "Surround a tensor with a constant: low[i] elements before, high[i] after, interior[i] between neighbours";
  let arguments = (ins Nn_Tensor:$input, TypedAttrInterface:$value, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `with` $value `low` $low `high` $high `interior` $interior attr-dict `:` type($input) `->` type($result)";
}

def Nn_ConcatOp : Nn_Op<"concat", [Pure, Nn_Diff, InferTypeOpAdaptor]> {
  let summary = "Join tensors along one dimension";
  let arguments = (ins Variadic<Nn_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` functional-type($inputs, $result)";
}

def Nn_GatherOp : Nn_Op<"gather", [Pure, Nn_Diff, InferTypeOpAdaptor]> {
  let summary = "Rows by index: result[i…, j…] = input[indices[i…], j…]";
  let description = [{
    Along dimension 0 only (importers move other axes there). Indices lie in [0, dim 0): the reader
    normalises negative ones, and values that come from the user's data are checked before the step.
  }];
  let arguments = (ins Nn_Tensor:$input, Nn_Integer:$indices);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` type($input) `,` type($indices) `->` type($result)";
}

def Nn_TakeAlongOp : Nn_Op<"take_along", [Pure, Nn_Diff]> {
  let summary = "One element per row: result[i…] = input[i…, indices[i…]] over the last dimension";
  let arguments = (ins Nn_Tensor:$input, Nn_Integer:$indices);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` type($input) `,` type($indices) `->` type($result)";
  let hasVerifier = 1;
}

def Nn_ScatterAddOp : Nn_Op<"scatter_add", [Pure, Nn_Diff]> {
  let summary = "Sum of rows by index: result[r, j…] = sum of updates[i…, j…] where indices[i…] = r, in order of i";
  let arguments = (ins Nn_Integer:$indices, Nn_Float:$updates);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$indices `,` $updates attr-dict `:` type($indices) `,` type($updates) `->` type($result)";
  let hasVerifier = 1;
}

def Nn_ReductionKind : I32EnumAttr<"ReductionKind", "reduction", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]> {
  let cppNamespace = "::zero::nn";
}
def Nn_ReduceOp : Nn_Op<"reduce", [Pure, Nn_Diff, Nn_CostOf, InferTypeOpAdaptor]> {
  let summary = "Reduce dimensions away";
  let description = [{ `dims` is sorted; reduced dimensions vanish from the shape. The order of a sum is fixed by the generated
    kernel, never by the number of threads. }];
  let arguments = (ins Nn_ReductionKind:$kind, Nn_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$kind $input `dims` $dims attr-dict `:` type($input) `->` type($result)";
}

def Nn_CumSumOp : Nn_Op<"cumsum", [Pure, Nn_Diff, InferTypeOpAdaptor]> {
  let summary = "Running sum along the last dimension";
  let arguments = (ins Nn_Tensor:$input, DefaultValuedAttr<BoolAttr, "false">:$exclusive, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Composites: named mathematics over the last dimension
//===----------------------------------------------------------------------===//

def Nn_GeluKind : I32EnumAttr<"GeluKind", "approximation", [I32EnumAttrCase<"erf", 0>, I32EnumAttrCase<"tanh", 1>]> {
  let cppNamespace = "::zero::nn";
}
def Nn_GeluOp : Nn_Op<"gelu", [Pure, Nn_Elementwise, SameOperandsAndResultType, Nn_Diff, Nn_CostOf]> {
  let summary = "x * Phi(x), exact (erf) or by tanh";
  let arguments = (ins Nn_GeluKind:$kind, Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$kind $input attr-dict `:` type($result)";
}
def Nn_SiluOp : Nn_Unary<"silu", Nn_Float, [Nn_Diff]> { let summary = "x * sigmoid(x)"; }

def Nn_SoftmaxOp : Nn_Op<"softmax", [Pure, SameOperandsAndResultType, Nn_Diff, Nn_CostOf]> {
  let summary = "Softmax over the last dimension";
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def Nn_LayerNormOp : Nn_Op<"layer_norm", [Pure, Nn_Diff, Nn_CostOf, InferTypeOpAdaptor]> {
  let summary = "(x - mean) * rstd * scale + bias over the last dimension";
  let description = [{ Results: y, and per row `mean` and `rstd = 1 / sqrt(var + eps)` (shape of x without its last dimension),
    which the gradient reads. `bias` may be absent. }];
  let arguments = (ins Nn_Float:$input, Nn_Float:$scale, Optional<Nn_Float>:$bias, F32Attr:$eps);
  let results = (outs Nn_Float:$result, Nn_Float:$mean, Nn_Float:$rstd);
  let assemblyFormat = "$input `,` $scale (`,` $bias^)? attr-dict `:` functional-type(operands, results)";
}

def Nn_RmsNormOp : Nn_Op<"rms_norm", [Pure, Nn_Diff, Nn_CostOf, InferTypeOpAdaptor]> {
  let summary = "x * rstd * scale over the last dimension, rstd = 1 / sqrt(mean(x^2) + eps)";
  let arguments = (ins Nn_Float:$input, Nn_Float:$scale, F32Attr:$eps);
  let results = (outs Nn_Float:$result, Nn_Float:$rstd);
  let assemblyFormat = "$input `,` $scale attr-dict `:` functional-type(operands, results)";
}

def Nn_CrossEntropyOp : Nn_Op<"cross_entropy", [Pure, Nn_Diff, Nn_CostOf, InferTypeOpAdaptor]> {
  let summary = "Sum over rows of scale * -log softmax(logits)[label], rows with label = ignore_index left out";
  let description = [{
    logits [rows, classes], labels [rows] (i64), scale f32[1]: the exact mean is had by scale = 1 / (labels that count in the
    global batch), which the runtime knows beforehand. Results: loss (f32[], no dimensions) and per row the log of the sum
    of exponentials, which the gradient reads. An ignored row's label is never used as an index.
  }];
  let arguments = (ins Nn_Float:$logits, Nn_Integer:$labels, Nn_Float:$scale, I64Attr:$ignore_index);
  let results = (outs Nn_Float:$loss, Nn_Float:$lse);
  let assemblyFormat = "$logits `,` $labels `,` $scale attr-dict `:` functional-type(operands, results)";
}

def Nn_DropoutOp : Nn_Op<"dropout", [Pure, Nn_Diff, AllTypesMatch<["input", "result"]>]> {
  let summary = "x / (1 - rate) where a random number says keep, else 0; the gradient draws the same numbers again";
  let arguments = (ins Nn_Float:$input, StaticShapeTensorOf<[I64]>:$seed, F32Attr:$rate, I64Attr:$id, I64Attr:$samples);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$input `,` $seed attr-dict `:` type($input) `,` type($seed)";
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

def Nn_MatMulOp : Nn_Op<"matmul", [Pure, Nn_Diff, Nn_CostOf, InferTypeOpAdaptor]> {
  let summary = "op(lhs) · op(rhs), both of rank 2, or both of rank 3 with equal first dimension";
  let description = [{ `transpose_lhs`/`transpose_rhs` exchange the last two dimensions of the stored operand. }];
  let arguments = (ins Nn_Float:$lhs, Nn_Float:$rhs, DefaultValuedAttr<BoolAttr, "false">:$transpose_lhs,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose_rhs);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Nn_AttentionOp : Nn_Op<"attention", [Pure, Nn_Diff, Nn_CostOf, InferTypeOpAdaptor]> {
  let summary = "softmax(scale * q·k^T + mask [causal]) · v, scores never materialised";
  let description = [{
    q [batch, heads, q_len, dim], k and v [batch, kv_heads, kv_len, dim], heads a multiple of kv_heads.
    `mask` is additive f32 of rank 4 whose dimensions are 1 or those of the scores; it has no gradient here (a trainable
    bias keeps the attention decomposed). `causal`: position i sees j <= i + kv_len - q_len. A row that sees nothing gives zeros.
    Results: out [batch, heads, q_len, dim] and lse [batch, heads, q_len].
  }];
  let arguments = (ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, Optional<Nn_Float>:$mask, F32Attr:$scale,
                       DefaultValuedAttr<BoolAttr, "false">:$causal);
  let results = (outs Nn_Float:$result, Nn_Float:$lse);
  let assemblyFormat = "$q `,` $k `,` $v (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
}

def Nn_AttentionGradOp : Nn_Op<"attention_grad", [Pure, Nn_CostOf]> {
  let summary = "Gradients of q, k and v of an nn.attention, given its operands, results and the gradient of its result";
  let arguments = (ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, Optional<Nn_Float>:$mask, Nn_Float:$out, Nn_Float:$lse,
                       Nn_Float:$dout, F32Attr:$scale, DefaultValuedAttr<BoolAttr, "false">:$causal);
  let results = (outs Nn_Float:$dq, Nn_Float:$dk, Nn_Float:$dv);
  let assemblyFormat = "$q `,` $k `,` $v (`mask` $mask^)? `,` $out `,` $lse `,` $dout attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Nn_LaunchOp : Nn_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Call of a generated kernel";
  let description = [{
    `kernel` names a private `func.func` of the module with the unit attribute `nn.kernel`, whose body holds primitives
    only; equal bodies are one function however often they are launched. Operand and result types are the function's.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Nn_Tensor>:$inputs);
  let results = (outs Variadic<Nn_Tensor>:$outputs);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}
#endif
