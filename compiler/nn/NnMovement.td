//===- NnMovement.td - operations that move, select or sum elements ------------------------------===//
#ifndef ZERO_NN_MOVEMENT_TD
#define ZERO_NN_MOVEMENT_TD
include "NnBase.td"

def Nn_BroadcastOp : Nn_Op<"broadcast", [Pure, Nn_Movement, Nn_IndexedFree, Nn_Splittable, Nn_Diff, Nn_Evaluable]> {
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

def Nn_ReshapeOp : Nn_Op<"reshape", [Pure, Nn_Movement, Nn_Indexed, Nn_Splittable, Nn_Diff, Nn_Evaluable]> {
  let summary = "The same elements in the same row-major order under another shape; never moves a byte";
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_TransposeOp : Nn_Op<"transpose", [Pure, Nn_Movement, Nn_IndexedOfWork, Nn_Splittable, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "Permute dimensions: result dimension i is operand dimension perm[i]";
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$perm);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `perm` $perm attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Nn_SliceOp : Nn_Op<"slice", [Pure, Nn_Movement, Nn_IndexedOfWork, Nn_Splittable, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "result[i…] = input[start + i * step…]; steps may be negative";
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `starts` $starts `sizes` $sizes `steps` $steps attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Nn_PadOp : Nn_Op<"pad", [Pure, Nn_Movement, Nn_Indexed, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "Surround a tensor with a constant: low[i] elements before, high[i] after, interior[i] between neighbours";
  let arguments = (ins Nn_Tensor:$input, TypedAttrInterface:$value, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `with` $value `low` $low `high` $high `interior` $interior attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Nn_ConcatOp : Nn_Op<"concat", [Pure, Nn_Movement, Nn_IndexedOfWork, Nn_Splittable, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "Join tensors along one dimension";
  let arguments = (ins Variadic<Nn_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` functional-type($inputs, $result)";
}

def Nn_GatherOp : Nn_Op<"gather", [Pure, Nn_Movement, Nn_Indexed, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "Rows by index: result[i…, j…] = input[indices[i…], j…]";
  let description = [{
    Along dimension 0 only (importers move other axes there). Indices lie in [0, dim 0): the reader
    normalises negative ones, and values that come from the user's data are checked before the step.
  }];
  let arguments = (ins Nn_Tensor:$input, Nn_Integer:$indices);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` type($input) `,` type($indices) `->` type($result)";
}

def Nn_TakeAlongOp : Nn_Op<"take_along", [Pure, Nn_Movement, Nn_Indexed, Nn_Splittable, Nn_Diff, Nn_Evaluable]> {
  let summary = "Elements of each row by index, over the last dimension: one, result[i…] = input[i…, indices[i…]], or several, result[i…, j] = input[i…, indices[i…, j]]";
  let arguments = (ins Nn_Tensor:$input, Nn_Integer:$indices);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` type($input) `,` type($indices) `->` type($result)";
  let hasVerifier = 1;
}

def Nn_PutAlongOp : Nn_Op<"put_along", [Pure, Nn_Evaluable]> {
  let summary = "Where several elements of each row were taken, their sums: result[i…, c] = sum of updates[i…, j] where indices[i…, j] = c, in order of j";
  let description = [{ The gradient of an nn.take_along of several. It is no primitive: what it becomes depends on the target (nn-expand-put-along). }];
  let arguments = (ins Nn_Float:$updates, Nn_Integer:$indices);
  let results = (outs Nn_Float:$result);
  let assemblyFormat = "$updates `,` $indices attr-dict `:` type($updates) `,` type($indices) `->` type($result)";
  let hasVerifier = 1;
}

def Nn_ScatterAddOp : Nn_Op<"scatter_add", [Pure, Nn_Accumulates, Nn_Diff, Nn_Evaluable]> {
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
def Nn_ReduceOp : Nn_Op<"reduce", [Pure, Nn_Accumulates, Nn_Splittable, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "Reduce dimensions away";
  let description = [{ `dims` is sorted; reduced dimensions vanish from the shape. The order of a sum is fixed by the generated
    kernel, never by the number of threads. }];
  let arguments = (ins Nn_ReductionKind:$kind, Nn_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$kind $input `dims` $dims attr-dict `:` type($input) `->` type($result)";
}

def Nn_CumSumOp : Nn_Op<"cumsum", [Pure, Nn_Accumulates, Nn_Diff, Nn_Evaluable, InferTypeOpAdaptor]> {
  let summary = "Running sum along the last dimension";
  let arguments = (ins Nn_Tensor:$input, DefaultValuedAttr<BoolAttr, "false">:$exclusive, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}
#endif
