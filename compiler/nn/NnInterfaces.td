//===- NnInterfaces.td - what passes ask of a tensor operation -----------------------------------===//
#ifndef ZERO_NN_INTERFACES_TD
#define ZERO_NN_INTERFACES_TD
include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::zero::nn";
  let description = [{
    Reverse-mode differentiation, one rule per operation, in the file that implements it. The rule emits ordinary `nn` operations.
  }];
  let methods = [
    InterfaceMethod<[{
      Emit the gradient of the operands. `dresults` holds the gradient of each result, null where it is
      zero. `doperands` arrives with one null per operand; the rule sets those that have a gradient and
      leaves null where it is zero (indices, booleans). Shapes equal those of the operands.
      Fails with an error on the op when this form has no gradient.
    }], "::llvm::LogicalResult", "differentiate",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$dresults,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$doperands)>
  ];
}

def PointwiseOpInterface : OpInterface<"PointwiseOpInterface"> {
  let cppNamespace = "::zero::nn";
  let description = [{
    Each element of the one result is a function of the operands' elements at the same index (compiler/nn/elementwise/*.cpp). The interpreter,
    the kernels of every target, the cost and fusion all ask this one formula.
  }];
  let methods = [
    InterfaceMethod<[{
      The result's number, given those of the operands: a formula on a builder that computes it, makes code of it or counts it
      (compiler/nn/scalar.h). Numbers of f16 and bf16 come and go as f32.
    }], "::zero::nn::Number", "compute", (ins "::zero::nn::ScalarBuilder &":$builder, "::llvm::ArrayRef<::zero::nn::Number>":$operands)>
  ];
}

def IndexedOpInterface : OpInterface<"IndexedOpInterface"> {
  let cppNamespace = "::zero::nn";
  let description = [{
    Each element of the one result is an element of an operand, or a number of its own, that the index alone chooses
    (compiler/nn/movement/*.cpp): what moves, repeats or selects elements, and what makes them of nothing (constants, indices, random numbers).
    Inside a kernel it only changes the index at which an operand is read.
  }];
  let methods = [
    InterfaceMethod<"The result's number at this index. Without one (id -1) after an error on the op.",
      "::zero::nn::Number", "read", (ins "::zero::nn::ElementReader &":$reader, "::llvm::ArrayRef<::zero::nn::Index>":$at)>,
    InterfaceMethod<"Whether a kernel makes its elements where they are read at no cost: it is never kept for that.", "bool", "isFree", (ins), "",
      [{ return false; }]>,
    InterfaceMethod<"Values that reading one element takes: none where only an index changes, `kLongWork` for a long function.", "unsigned", "getWork", (ins), "",
      [{ return 1; }]>
  ];
}

def CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let cppNamespace = "::zero::nn";
  let description = [{ A name that passes and gradients need for what primitives can say (compiler/nn/composites/*.cpp); `nn-decompose` rewrites it. }];
  let methods = [
    InterfaceMethod<"The same results as formulas of primitives, emitted at the builder's place.",
                    "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::zero::nn::Build &":$builder)>
  ];
}

def SplittableOpInterface : OpInterface<"SplittableOpInterface"> {
  let cppNamespace = "::zero::nn";
  let description = [{
    Rows are what lies at one index of the leading dimensions, as many of them as make up a number of rows: the tokens of a batch. An operation can be
    split along them where each row of its results is computed from that row of its operands and from what is the same for all rows
    (compiler/nn/rows.h, which knows it of elementwise and row-wise operations by their traits).
  }];
  let methods = [
    InterfaceMethod<[{
      Whether each of `rows` rows of the results is computed from the same row of some operands, which are set in `cut` (all clear at first), and
      from the others as a whole.
    }], "bool", "readsRows", (ins "int64_t":$rows, "::llvm::SmallBitVector &":$cut)>,
    InterfaceMethod<[{
      Make `part`, a copy with the types and operands of some rows, compute these: where attributes speak of dimensions, or of all rows. The
      rows of a tensor are one dimension there.
    }], "void", "takeRows", (ins "::zero::nn::Build &":$builder, "const ::zero::nn::Rows &":$rows, "::mlir::OperationState &":$part)>,
    InterfaceMethod<"Whether a result is the sum over all rows, and so that of the parts'.", "bool", "sumsRows", (ins "unsigned":$result), "",
      [{ return false; }]>
  ];
}

def EvaluableOpInterface : OpInterface<"EvaluableOpInterface"> {
  let cppNamespace = "::zero::nn";
  let description = [{ What the reference interpreter (compiler/nn/eval) does for an operation that is not elementwise. }];
  let methods = [
    InterfaceMethod<[{
      Fills `results`, which arrive zero-filled and with their types. Operands and results of f16 and bf16 are f32 here, except where the
      operation only moves bytes. Fails with an error on the op where an index is out of range.
    }], "::llvm::LogicalResult", "evaluate",
      (ins "::llvm::ArrayRef<const ::zero::nn::Tensor *>":$operands, "::llvm::MutableArrayRef<::zero::nn::Tensor>":$results)>
  ];
}
#endif
