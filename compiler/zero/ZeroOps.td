//===- ZeroOps.td - the zero dialect: where model state lives and how it moves --------------------===//
#ifndef ZERO_ZERO_OPS_TD
#define ZERO_ZERO_OPS_TD
include "mlir/IR/OpBase.td"
include "compiler/zero/ZeroAttrs.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Zero_Op<string mnemonic, list<Trait> traits = []> : Op<Zero_Dialect, mnemonic, traits>;
def Zero_Tensor : StaticShapeTensorOf<[F32, BF16, F16, I64, I32, I1]>;
def Zero_Flat : ConfinedType<1DTensorOf<[F32, BF16, F16]>, [HasStaticShapePred], "flat tensor of static size", "::mlir::RankedTensorType">;
/// Operations that name a bucket check that it exists and has as many elements as their tensors.
defvar Zero_BucketUser = DeclareOpInterfaceMethods<SymbolUserOpInterface>;

def Zero_BucketOp : Zero_Op<"bucket", [Symbol]> {
  let summary = "Parameters that are gathered, reduced and updated together";
  let description = [{
    A flat range of `elements` = world * `shard` elements. `parameters[i]` (an `nn.parameter`) occupies elements from
    `offsets[i]` on, row-major. Elements no parameter owns are padding and stay zero. Rank r owns elements
    [r * shard, (r + 1) * shard). Frozen parameters have buckets of their own (`trainable = false`): no gradient, no moments, and one copy,
    in the type that programs read: the master if that is f32, else the compute copy.
    `tensors` is what every rank keeps of it from step to step: which numbers, as what type, all of them or a shard, and where. With a
    compute copy (the master rounded to another type) the programs read and gather that, and only updates touch the master. Where the master
    is whole on the device none is kept: programs that read another type round the master around their uses (`zero.gather` with a kernel).
    `updated_on_host`: the host's processors update it in the host's memory, where it rests or where it comes from disk. What programs read on the device is then a
    compute copy, of f32 as well, or the one tensor of it that comes from there and returns.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$elements, I64Attr:$shard, FlatSymbolRefArrayAttr:$parameters,
                       DenseI64ArrayAttr:$offsets, BoolAttr:$trainable, DefaultValuedAttr<Zero_TensorArrayAttr, "{}">:$tensors, UnitAttr:$updated_on_host);
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The tensor of this role; null if the bucket keeps none.
    TensorAttr tensorOf(Role role);
    /// What the programs read of its parameters: the compute copy if one is kept, else the master.
    Role readRole() { return tensorOf(Role::compute) ? Role::compute : Role::master; }
    /// Whether a rank keeps but its shard of what is whole elsewhere: true of no tensor on one rank.
    bool isSharded(Role role);
    /// Whether all of it lies on the device of every rank, where operations read it as it is.
    bool isResident(Role role);
    /// Whether ranks update their shards of parameters that each of them keeps whole.
    bool isPublished();
    /// Elements of a part.
    int64_t elementsOf(Part part) { return int64_t(part == Part::whole ? getElements() : getShard()); }
    /// Bytes of one of its tensors.
    int64_t bytesOf(TensorAttr tensor) { return elementsOf(tensor.getPart()) * tensor.getType().getIntOrFloatBitWidth() / 8; }
  }];
}

def Zero_ResidentOp : Zero_Op<"resident", [Pure, Zero_BucketUser]> {
  let summary = "The whole bucket, which every rank keeps on its device (stages 0 to 2)";
  let arguments = (ins FlatSymbolRefAttr:$bucket);
  let results = (outs Zero_Flat:$whole);
  let assemblyFormat = "$bucket attr-dict `:` type($whole)";
}
def Zero_GatherOp : Zero_Op<"gather", [MemoryEffects<[MemRead]>, Zero_BucketUser]> {
  let summary = "Bring the whole bucket to the device: from the shards of all ranks (stage 3), from another tier, or both";
  let description = [{
    With a `kernel` it is there already, as another type than what reads it: the launched nn.kernel rounds the master, (param [r, c]) -> (param [r, c]).
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, OptionalAttr<FlatSymbolRefAttr>:$kernel);
  let results = (outs Zero_Flat:$whole);
  let assemblyFormat = "$bucket attr-dict `:` type($whole)";
}
def Zero_ReleaseOp : Zero_Op<"release", [MemoryEffects<[MemWrite]>]> {
  let summary = "The gathered copy is not needed beyond this point";
  let arguments = (ins Zero_Flat:$whole);
  let assemblyFormat = "$whole attr-dict `:` type($whole)";
}
def Zero_ViewOp : Zero_Op<"view", [Pure]> {
  let summary = "A parameter inside its bucket: elements [offset, offset + size); no byte moves";
  let arguments = (ins Zero_Flat:$whole, I64Attr:$offset);
  let results = (outs Zero_Tensor:$result);
  let assemblyFormat = "$whole `at` $offset attr-dict `:` type($whole) `->` type($result)";
  let hasVerifier = 1;
}
def Zero_PackOp : Zero_Op<"pack", [Pure]> {
  let summary = "Tensors side by side in one flat buffer; who computes them writes them in place";
  let description = [{ `inputs[i]` occupies elements from `offsets[i]` on; gaps are zero. Gradients of a bucket, partial sums, scalars. }];
  let arguments = (ins Variadic<Zero_Tensor>:$inputs, DenseI64ArrayAttr:$offsets);
  let results = (outs Zero_Flat:$result);
  let assemblyFormat = "$inputs `at` $offsets attr-dict `:` functional-type($inputs, $result)";
  let hasVerifier = 1;
}
def Zero_OwnShardOp : Zero_Op<"own_shard", [Pure]> {
  let summary = "This rank's part of a buffer that is split evenly over the ranks; no byte moves";
  let arguments = (ins Zero_Flat:$whole);
  let results = (outs Zero_Flat:$shard);
  let assemblyFormat = "$whole attr-dict `:` type($whole) `->` type($shard)";
  let hasVerifier = 1;
}
def Zero_ReduceScatterOp : Zero_Op<"reduce_scatter"> {
  let summary = "Sum over ranks in rank order; each rank receives its own shard";
  let description = [{ Sums are f32 and are made in f32; what travels may be bf16. }];
  let arguments = (ins Zero_Flat:$whole);
  let results = (outs Zero_Flat:$shard);
  let assemblyFormat = "$whole attr-dict `:` type($whole) `->` type($shard)";
  let hasVerifier = 1;
}
def Zero_AllGatherOp : Zero_Op<"all_gather"> {
  let summary = "Every rank's shard, side by side, on every rank";
  let arguments = (ins Zero_Flat:$shard);
  let results = (outs Zero_Flat:$whole);
  let assemblyFormat = "$shard attr-dict `:` type($shard) `->` type($whole)";
  let hasVerifier = 1;
}
def Zero_AllReduceOp : Zero_Op<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "Sum over ranks in rank order, on every rank; for scalars";
  let arguments = (ins Zero_Flat:$input);
  let results = (outs Zero_Flat:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}
def Zero_ToHostOp : Zero_Op<"to_host", [SameOperandsAndResultType]> {
  let summary = "The same numbers in the host's memory, where its processors read them: a gradient for an update, or what that needs beside it";
  let arguments = (ins Zero_Flat:$input);
  let results = (outs Zero_Flat:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}
def Zero_AccumulateOp : Zero_Op<"accumulate", [Zero_BucketUser]> {
  let summary = "Add a micro-step's gradient shard to the sum so far";
  let description = [{
    The sum so far is `onto`, where the micro-steps before are of the same program; else the bucket's accumulator, which keeps it from program to
    program. `first`: the accumulator is overwritten instead. `kernel` is the launched nn.kernel (none when first).
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, Zero_Flat:$shard, Optional<Zero_Flat>:$onto, OptionalAttr<FlatSymbolRefAttr>:$kernel,
                       UnitAttr:$first);
  let results = (outs Zero_Flat:$sum);
  let assemblyFormat = "$bucket `,` $shard (`onto` $onto^ `:` type($onto))? attr-dict `:` type($shard) `->` type($sum)";
}
def Zero_LookUpOp : Zero_Op<"look_up", [MemoryEffects<[MemRead]>, Zero_BucketUser]> {
  let summary = "Rows of a table by index, as far as they lie in this rank's shard of its bucket; the table is nowhere whole";
  let description = [{
    The table is the bucket's only parameter, [rows, c], and shards are whole rows. By one launch of `kernel`: (shard [r, c], rank f32[16], indices f32[n])
    -> f32[n, c]. `indices` are those of all ranks, `rank` holds this rank's number. Row i of the result is the one that `indices[i]` names, or -0
    where another rank owns that, so that the sum over ranks is the row, to the bit.
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, Zero_Flat:$rank, Zero_Flat:$indices, FlatSymbolRefAttr:$kernel);
  let results = (outs Zero_Flat:$rows);
  let assemblyFormat = "$bucket `,` $rank `,` $indices attr-dict `:` functional-type(operands, results)";
}
def Zero_AddRowsOp : Zero_Op<"add_rows", [Zero_BucketUser]> {
  let summary = "Add rows of a table's gradient, by index, to this rank's shard of it, in the order of ranks";
  let description = [{
    Bucket, `rank` and `indices` as in `zero.look_up`; `rows` [n, c] belong to the indices. By one launch of `kernel`: (shard [r, c], rank f32[16],
    indices f32[n], rows [n, c]) -> [r, c]. Rows that other ranks own add nothing.
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, Zero_Flat:$shard, Zero_Flat:$rank, Zero_Flat:$indices, Zero_Flat:$rows, FlatSymbolRefAttr:$kernel);
  let results = (outs Zero_Flat:$sum);
  let assemblyFormat = "$bucket `,` $shard `,` $rank `,` $indices `,` $rows attr-dict `:` functional-type(operands, results)";
}
def Zero_UpdateOp : Zero_Op<"update", [Zero_BucketUser, AttrSizedOperandSegments]> {
  let summary = "One optimizer step on the bucket, on this rank's shard of it, or on a slice of either";
  let description = [{
    Reads `gradient` (of the shard; of the whole bucket when `whole`; from element `begin` of that on, as many as it has), the parameters and their state, and writes parameters and state in
    place, by one launch of `kernel`: (param [r, c], grad [r, c], states [r, c]…, hyper, norm2?) -> (param, states…, compute?, sums [r]?)
    with r * c = the gradient's elements; a bucket with a compute copy has that written too. Result `sums` (absent in the clipping variant): squared gradient summed per row, [r].
    Where the loss is scaled the kernel changes nothing if `norm2`, the squared norm of the scaled gradient, is not finite.

    The bucket may be a table of `table_rows` rows, or a tile of one, the gradient of some of whose rows is not final: rows of `row` elements,
    by their `indices` in the table. With `apart` (of `zero.room_for_rows`) what is kept of these rows, parameters, then states, and their gradient so far are copied
    there before, and their gradient becomes zero; `table_begin` is the element of the table that comes first in the bucket. What the kernel
    makes of these rows is overwritten by zero.write_rows.
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, Zero_Flat:$gradient, Zero_Tensor:$hyper, Optional<Zero_Tensor>:$norm2,
                       Optional<Zero_Flat>:$apart, Optional<Zero_Tensor>:$indices, FlatSymbolRefAttr:$kernel, UnitAttr:$whole,
                       DefaultValuedAttr<I64Attr, "0">:$begin, DefaultValuedAttr<I64Attr, "0">:$row, DefaultValuedAttr<I64Attr, "0">:$table_begin,
                       DefaultValuedAttr<I64Attr, "0">:$table_rows);
  let results = (outs Optional<Zero_Flat>:$sums);
  let assemblyFormat = "$bucket `,` $gradient `,` $hyper (`clip` $norm2^)? (`apart` $apart^ `at` $indices)? attr-dict `:` functional-type(operands, results)";
}
def Zero_RoomForRowsOp : Zero_Op<"room_for_rows"> {
  let summary = "Bytes that updates fill with the rows of a table that they set apart";
  let description = [{
    Of all rows the parameters, then each state, then the gradient, a row for each index; see `zero.update`. Of equal indices the first has the
    gradient, and the others' is zero.
  }];
  let results = (outs Zero_Flat:$room);
  let assemblyFormat = "attr-dict `:` type($room)";
}
def Zero_UpdateRowsOp : Zero_Op<"update_rows", [Zero_BucketUser]> {
  let summary = "One optimizer step on the rows of a table that updates have set apart, once their gradient is final";
  let description = [{
    By one launch of `kernel`, as in `zero.update`: (param [n, row], grad [n, row], states [n, row]…, hyper) -> (param, states…, compute?, sums [n]).
    Parameters and states are those of `room`, the gradient is given. Of equal `indices` the first counts: the others' gradient is zero, and
    nobody reads what becomes of them. The table is the only parameter of `buckets`, in its order; `begins`: which of its elements comes first
    in each.
  }];
  let arguments = (ins Zero_Flat:$room, Zero_Tensor:$gradient, Zero_Tensor:$hyper, Zero_Tensor:$indices, FlatSymbolRefAttr:$kernel,
                       FlatSymbolRefArrayAttr:$buckets, DenseI64ArrayAttr:$begins);
  let results = (outs Variadic<Zero_Tensor>:$changed);
  let assemblyFormat = "$buckets $begins `,` $room `,` $gradient `,` $hyper `at` $indices attr-dict `:` functional-type(operands, results)";
}
def Zero_WriteRowsOp : Zero_Op<"write_rows", [Zero_BucketUser]> {
  let summary = "Rows of a table go to their places in one of its bucket's tensors, wherever it rests";
  let description = [{
    The bucket is a table of `table_rows` rows, or a tile of one, `elements` from `begin` on of the table; rows whose index lies in another tile go nowhere. Of equal
    `indices` the first counts.
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, Zero_Role:$role, Zero_Tensor:$rows, Zero_Tensor:$indices, I64Attr:$elements,
                       DefaultValuedAttr<I64Attr, "0">:$begin, I64Attr:$table_rows);
  let assemblyFormat = "$bucket $role `,` $rows `at` $indices attr-dict `:` type($rows) `,` type($indices)";
}
def Zero_PublishOp : Zero_Op<"publish", [Zero_BucketUser]> {
  let summary = "After the update of its shards, bring the whole resident bucket up to date on every rank (stages 1 and 2)";
  let arguments = (ins FlatSymbolRefAttr:$bucket);
  let assemblyFormat = "$bucket attr-dict";
}
#endif
