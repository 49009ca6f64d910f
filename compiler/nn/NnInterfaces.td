//===- NnInterfaces.td - what passes ask of a tensor operation -----------------------------------===//
#ifndef ZERO_NN_INTERFACES_TD
#define ZERO_NN_INTERFACES_TD
include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::zero::nn";
  let description = [{
    Reverse-mode differentiation, one rule per operation, beside the operation
    (compiler/nn/gradients/*.cpp). The rule emits ordinary `nn` operations.
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

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::zero::nn";
  let description = [{ Work an operation does, for the cost model: never negative, 64 bit. }];
  let methods = [
    InterfaceMethod<"Floating-point operations.", "uint64_t", "getFlops", (ins), "", [{
      uint64_t n = 0;
      for (auto t : $_op->getResultTypes())
        n = std::max<uint64_t>(n, ::mlir::cast<::mlir::ShapedType>(t).getNumElements());
      return n;
    }]>,
    InterfaceMethod<"Bytes read and written.", "uint64_t", "getBytes", (ins), "", [{
      uint64_t n = 0;
      for (auto t : llvm::concat<const ::mlir::Type>(llvm::to_vector($_op->getOperandTypes()), llvm::to_vector($_op->getResultTypes())))
        n += ::zero::nn::bytesOf(::mlir::cast<::mlir::ShapedType>(t));
      return n;
    }]>
  ];
}
#endif
