//===- builder.h - body of a kernel to its program ------------------------------------------------===//
// Private to build*.cpp. Every value is computed where it is needed, at the index it is needed at: an operation that
// moves data changes the index its operand is asked for and leaves no trace in the program. What an operation is, it says itself: by a
// formula (PointwiseOpInterface) or by which elements it reads (IndexedOpInterface).
#pragma once
#include "compiler/codegen/classify.h"
#include "compiler/codegen/program.h"
#include "compiler/nn/Nn.h"

namespace zero::codegen {

class ProgramBuilder {
public:
  explicit ProgramBuilder(mlir::func::FuncOp kernel) : kernel(kernel) {}
  mlir::FailureOr<Program> run();

private:
  mlir::func::FuncOp kernel;
  Program p;
  KernelForm form;
  Index outerLinear, innerLinear;                    // position among the rows and among the columns
  std::map<int, llvm::SmallVector<int64_t>> factors; // of each original dimension, by key
  std::map<std::pair<mlir::Operation *, int64_t>, int> keys;
  std::map<std::vector<int64_t>, int> memo, interned;
  llvm::SmallVector<Guard> guards; // under which the present value is asked for

  //--- dimensions and results (build.cpp) -------------------------------------------------------------
  mlir::Operation *terminator() { return kernel.getBody().front().getTerminator(); }
  /// A dimension of the given size as an index, its factors appended to `dims`.
  Index loop(mlir::Operation *op, int64_t number, int64_t size, std::vector<unsigned> &dims);
  Indices loops(llvm::ArrayRef<int64_t> shape, int64_t firstNumber, std::vector<unsigned> &dims);
  mlir::LogicalResult assemble();
  mlir::LogicalResult assembleScatter();
  mlir::LogicalResult assembleSum(unsigned result, nn::ReduceOp sum, llvm::ArrayRef<Index> root, llvm::ArrayRef<int64_t> rootShape);

  /// Fusion keeps kernels far below this; it bounds the memory that a body from elsewhere can take.
  static constexpr size_t kMostNodes = 1 << 14;

  //--- nodes (build_values.cpp): each returns the node's number, or -1 after an error -----------------------------------
  int intern(Node n);
  int constant(Scalar type, double value);
  int whole(Scalar type, int64_t value);
  int apply(Fn fn, Scalar type, llvm::ArrayRef<int> operands, int64_t whole = 0);
  /// The node of `v` at this index.
  int build(mlir::Value v, const Indices &at);
  int load(mlir::BlockArgument v, const Indices &at);
  int compute(mlir::Value v, const Indices &at);
  int pointwise(nn::PointwiseOpInterface op, const Indices &at);
  int read(nn::IndexedOpInterface op, const Indices &at);
  int reduce(nn::ReduceOp op, const Indices &at);
  /// e^(x - (log s + m)) as e^(x - m) / s, where s sums e^(x - m) over the columns: the exponential is there already. -1: not of this form,
  /// or a short row.
  int normalized(int exponent);

  /// Formulas of elementwise operations as nodes (build_values.cpp), and the elements that others read (build_reads.cpp).
  class FormulaBuilder;
  class Reader;
};

} // namespace zero::codegen
