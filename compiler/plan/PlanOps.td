//===- PlanOps.td - the plan dialect: steps on lanes, buffers in arenas --------------------------===//
#ifndef ZERO_PLAN_OPS_TD
#define ZERO_PLAN_OPS_TD
include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "compiler/plan/PlanEnums.td"
include "compiler/zero/ZeroAttrs.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::zero::planir";
  let summary = "What runs when and on which bytes";
  let description = [{
    A `plan.program` is a linear order of *steps*. Each step belongs to a *lane*, an in-order queue; lanes run concurrently,
    and `waits` (lane, tick) is the only synchronisation between them: until `tick` steps of the lane are complete.
    The host's inputs are written on lane compute in front of a program's first step, and its results read after the last. A `plan.entry`
    lets lanes run on from one program into the next; without one they are drained between them.

    Memory is buffers: `plan.state` of the module (persistent, bytes never shared) and `plan.buffer` of a program
    (transient, live in the steps `live` = [first, last], both inclusive). Steps name the bytes they touch by references:
    `%b[64, 128]` is bytes 64 to 191 of the buffer, `%b[0 + rank * 256, 128]` depends on the rank. References before `->`
    are read, those after it are written (and may be read).

    The passes of passes/schedule make the programs and order them; those of passes/place find lives, offsets and waits.
    Numbers in this dialect are bytes where nothing else is said. It mirrors runtime/plan/plan.proto, and
    compiler/plan/export.h writes it there.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
  }];
}

def Plan_BufferType : TypeDef<Plan_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "A contiguous range of an arena";
}
def Plan_Buffer : Type<Plan_BufferType.predicate, "buffer", "::zero::planir::BufferType">,
                  BuildableType<"$_builder.getType<::zero::planir::BufferType>()">;

def Plan_StepInterface : OpInterface<"StepOp"> {
  let cppNamespace = "::zero::planir";
  let description = [{ What every step has. Reference i is bytes[i] bytes from offsets[i] + rank * strides[i] on of buffers[i];
    references from index `inputs` on are written. }];
  let methods = [
    InterfaceMethod<"Buffers touched, one per reference", "::mlir::OperandRange", "getBuffers">,
    InterfaceMethod<"", "::llvm::ArrayRef<int64_t>", "getOffsets">,
    InterfaceMethod<"", "::llvm::ArrayRef<int64_t>", "getStrides">,
    InterfaceMethod<"", "::llvm::ArrayRef<int64_t>", "getBytes">,
    InterfaceMethod<"Number of references that are only read", "uint64_t", "getInputs">,
    InterfaceMethod<"", "::zero::planir::Lane", "getLane">,
    InterfaceMethod<"", "void", "setLane", (ins "::zero::planir::Lane":$lane)>,
    InterfaceMethod<"Pairs (lane, tick)", "::mlir::DenseI64ArrayAttr", "getWaitsAttr">,
    InterfaceMethod<"", "void", "setWaitsAttr", (ins "::mlir::DenseI64ArrayAttr":$waits)>];
}

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Buffers and programs
//===----------------------------------------------------------------------===//

def Plan_StateOp : Plan_Op<"state", [Symbol]> {
  let summary = "A persistent buffer";
  let description = [{
    Model state is a `tensor` of a `bucket`, whose tier is that of the arena it lies in; everything else lies on the
    device. Inputs carry the name (`input`), `role`, `type`, `limit` and `classes` of what the host writes, and of
    which micro-step it is, where a program holds several (`micro_step`; none: the first). Constants carry their `value`. `offset` in its arena is known once laid out.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_Kind:$kind, I64Attr:$bytes, OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<FlatSymbolRefAttr>:$bucket, OptionalAttr<Zero_TensorAttr>:$tensor, OptionalAttr<StrAttr>:$input,
                       OptionalAttr<StrAttr>:$role, OptionalAttr<TypeAttr>:$type, OptionalAttr<I64Attr>:$limit,
                       OptionalAttr<ElementsAttr>:$value, OptionalAttr<I64Attr>:$micro_step,
                       OptionalAttr<DenseI64ArrayAttr>:$classes);
  let assemblyFormat = "$kind $sym_name `bytes` $bytes (`at` $offset^)? attr-dict";
  let hasVerifier = 1;
}

def Plan_ProgramOp : Plan_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoRegionArguments]> {
  let summary = "Steps in one linear order; the steps of a lane run in this order";
  let description = [{
    `height` and `live`: bytes the arena "work" needs for this program, and the largest sum of live bytes. `away`: the same of the transient
    arenas on host and on disk, [height, live, height, live], if there are any.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_Role:$role, UnitAttr:$clips, OptionalAttr<I64Attr>:$height,
                       OptionalAttr<I64Attr>:$live, OptionalAttr<DenseI64ArrayAttr>:$away);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$role (`clips` $clips^)? $sym_name (`height` $height^)? (`live` $live^)? attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Plan_BufferOp : Plan_Op<"buffer", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A transient buffer of the program";
  let description = [{
    One that works for a `bucket` (its gradient, its staging) names it, and says as which `tensor` its elements lie there, from element
    `begin` of the tensor's part on.
  }];
  let arguments = (ins StrAttr:$name, Plan_Kind:$kind, I64Attr:$bytes, OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<I64Attr>:$first, OptionalAttr<I64Attr>:$last, OptionalAttr<FlatSymbolRefAttr>:$bucket,
                       OptionalAttr<Zero_TensorAttr>:$tensor, OptionalAttr<I64Attr>:$begin,
                       DefaultValuedAttr<Zero_Tier, "::zero::state::Tier::device">:$tier);
  let results = (outs Plan_Buffer:$result);
  let assemblyFormat = "$kind $name (`on` $tier^)? `bytes` $bytes (`at` $offset^)? (`live` $first^ `to` $last)? attr-dict";
  let hasVerifier = 1;
}

def Plan_UseOp : Plan_Op<"use", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
                                 DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A persistent buffer, as the program's steps name it";
  let arguments = (ins FlatSymbolRefAttr:$state);
  let results = (outs Plan_Buffer:$result);
  let assemblyFormat = "$state attr-dict";
}

def Plan_DecisionOp : Plan_Op<"decision"> {
  let summary = "Why a pass did what it did; carried to `zero-inspect --why`";
  let arguments = (ins StrAttr:$subject, StrAttr:$choice, StrAttr:$reason);
  let assemblyFormat = "$subject `:` $choice `because` $reason attr-dict";
}

def Plan_EntryOp : Plan_Op<"entry", [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "How lanes run on into this program from another";
  let description = [{
    Waits for ticks of program `after`, which runs right before this one: those of writing the inputs, and triples (step, lane, tick)
    of steps of this program.
  }];
  let arguments = (ins FlatSymbolRefAttr:$after, OptionalAttr<DenseI64ArrayAttr>:$inputWaits, DenseI64ArrayAttr:$waits);
  let assemblyFormat = "`after` $after `` custom<Waits>($inputWaits) custom<EntryWaits>($waits) attr-dict";
  let hasVerifier = 1;
}

def Plan_ReturnOp : Plan_Op<"return", [Terminator, HasParent<"ProgramOp">]> {
  let summary = "Where the host finds the loss and, if there is one, the squared gradient norm, and what reading them waits for";
  let arguments = (ins Variadic<Plan_Buffer>:$buffers, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$bytes, I64Attr:$inputs, OptionalAttr<DenseI64ArrayAttr>:$waits);
  let assemblyFormat = "`` custom<Waits>($waits) custom<Refs>($buffers, $offsets, $strides, $bytes, $inputs) attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

def Plan_TableRows : AttrDef<Plan_Dialect, "TableRows"> {
  let mnemonic = "table_rows";
  let summary = "What a step is about that has rows of a table by index";
  let description = [{
    Rows of `row` bytes, of a window that begins with byte `begin` of a table of `rows` rows; see TableRows of plan.proto.
  }];
  let parameters = (ins "::mlir::Type":$index_type, "int64_t":$rows, "int64_t":$row, "int64_t":$begin);
  let assemblyFormat = "`<` $rows `x` $row `from` $begin `by` $index_type `>`";
}

class Plan_Step<string mnemonic, dag own, string format> : Plan_Op<mnemonic, [DeclareOpInterfaceMethods<Plan_StepInterface>]> {
  let arguments = !con((ins Variadic<Plan_Buffer>:$buffers, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$strides,
                            DenseI64ArrayAttr:$bytes, I64Attr:$inputs, Plan_Lane:$lane, OptionalAttr<DenseI64ArrayAttr>:$waits), own);
  let assemblyFormat = "custom<Lane>($lane, $waits) custom<Refs>($buffers, $offsets, $strides, $bytes, $inputs)" # format # " attr-dict";
  let hasVerifier = 1;
}

def Plan_LaunchStep : Plan_Step<"launch", (ins FlatSymbolRefAttr:$kernel), " `:` $kernel"> {
  let summary = "Run a generated kernel; references are its parameters in order, inputs first";
}
def Plan_MatMulStep : Plan_Step<"matmul",
    (ins TypeAttr:$type, TypeAttr:$result_type, I64Attr:$m, I64Attr:$n, I64Attr:$k, I64Attr:$batch, DenseI64ArrayAttr:$ld, DenseI64ArrayAttr:$step,
         UnitAttr:$transpose_a, UnitAttr:$transpose_b, UnitAttr:$accumulate, UnitAttr:$tf32,
         DefaultValuedAttr<Plan_Epilogue, "::zero::planir::Epilogue::none">:$epilogue,
         DefaultValuedAttr<Plan_Grouped, "::zero::planir::Grouped::none">:$grouped, DefaultValuedAttr<I64Attr, "0">:$groups,
         DefaultValuedAttr<I64Attr, "0">:$all_groups),
    " `:` $m `x` $n `x` $k `of` $type `to` $result_type `ld` custom<List>($ld) `batch` $batch custom<List>($step) (`with` $epilogue^)? "
    "(`grouped` $grouped^ `of` $groups)?"> {
  let summary = "A, B [, C] [, bias or aux] -> C [, aux]: C[b] (+)= op(A[b]) · op(B[b]); `ld` elements between rows, `step` between matrices, of A, B and C. "
                "A and B are of `type`, C of `result_type`; with `tf32` elements of f32 are multiplied with 10 bits of fraction. With `grouped` the group of each "
                "product is read, too, and `groups` matrices of B, or of C, are one for each group";
}
def Plan_AttentionStep : Plan_Step<"attention",
    (ins TypeAttr:$type, DenseI64ArrayAttr:$sizes, F32Attr:$scale, UnitAttr:$causal, OptionalAttr<DenseI64ArrayAttr>:$band,
     OptionalAttr<DenseI64ArrayAttr>:$mask_shape, OptionalAttr<F32Attr>:$softcap, OptionalAttr<I64Attr>:$bias_parts, UnitAttr:$beyond),
    " `:` custom<List>($sizes) `of` $type `scale` $scale"> {
  let summary = "q, k, v [, mask] [, bias] -> out, lse; sizes are batch, heads, kv_heads, q_len, kv_len, dim. Mask, bias and lse are f32, the others of `type`. "
                "`bias_parts`: there is a bias. `beyond`: rows that see nothing but what is hidden weigh keys beyond `causal` and `band`, too";
}
def Plan_AttentionGradStep : Plan_Step<"attention_grad",
    (ins TypeAttr:$type, DenseI64ArrayAttr:$sizes, F32Attr:$scale, UnitAttr:$causal, OptionalAttr<DenseI64ArrayAttr>:$band,
     OptionalAttr<DenseI64ArrayAttr>:$mask_shape, OptionalAttr<F32Attr>:$softcap, OptionalAttr<I64Attr>:$bias_parts, UnitAttr:$beyond),
    " `:` custom<List>($sizes) `of` $type `scale` $scale"> {
  let summary = "q, k, v [, mask] [, bias], out, lse, dout -> dq, dk, dv [, dbias, in `bias_parts` parts]; types as there";
}
def Plan_CollectiveStep : Plan_Step<"collective",
    (ins Plan_CollectiveKind:$kind, I64Attr:$count, TypeAttr:$type, OptionalAttr<I64Attr>:$slice),
    " `:` $kind $count `of` $type (`by` $slice^)?"> {
  let summary = "All ranks together: src -> dst [, staging]; `count` elements per rank (all_reduce: in all). Sums with a `slice` add in the order "
                "of ranks and go so many elements of each rank at a time, for which there is room in staging; those without are the library's";
}
def Plan_CopyStep : Plan_Step<"copy", (ins), ""> { let summary = "src -> dst"; }
def Plan_FillStep : Plan_Step<"fill", (ins I32Attr:$pattern), " `:` $pattern"> { let summary = "-> dst; every 4 bytes become `pattern`"; }
def Plan_UpdateStep : Plan_Step<"update", (ins FlatSymbolRefAttr:$bucket, FlatSymbolRefAttr:$kernel, TypeAttr:$type, UnitAttr:$whole,
                                                DefaultValuedAttr<I64Attr, "0">:$begin, OptionalAttr<Plan_TableRows>:$apart),
    " `:` $bucket $kernel `of` $type (`whole` $whole^)? (`from` $begin^)? (`apart` $apart^)?"> {
  let summary = "The optimizer's kernel on a bucket or this rank's shard of it, or on a slice that starts with element `begin` of that; the "
                "second reference is the gradient, of `type`; the compute copy of what is updated is written after the optimizer's state. Where "
                "rows are set `apart` before it: then also indices, rows -> rows, the gradient";
}
def Plan_UpdateRowsStep : Plan_Step<"update_rows", (ins FlatSymbolRefArrayAttr:$buckets, DenseI64ArrayAttr:$begins, FlatSymbolRefAttr:$kernel,
                                                         TypeAttr:$index_type, I64Attr:$row),
    " `:` $buckets $begins $kernel `row` $row `of` $index_type"> {
  let summary = "The optimizer's kernel on rows of a table that updates have set apart: its parameters, then indices. A table lies in `buckets`, "
                "of which each has its elements from `begins` on";
}
def Plan_WriteRowsStep : Plan_Step<"write_rows", (ins Plan_TableRows:$rows), " `:` $rows"> {
  let summary = "rows, indices, the window of a table -> the window";
}
#endif
