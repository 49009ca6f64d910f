//===- program.h - a kernel as plain data --------------------------------------------------------===//
// What a kernel computes, free of MLIR: loops (dimensions), and a hash-consed graph of scalar expressions whose
// leaves are loads at index expressions. The CPU emitter turns it into vector code; an emitter for another
// target starts from the same.
//
// Kinds of kernels and how they run:
//   Rows      for each point of `outer` (rows): reductions over `inner` (columns), level by level, then the stores.
//             Without reductions this is a map over all dimensions; a map whose dimensions all collapse has no outer
//             dimension, and its extent counts chunks of kChunk elements. Results beside them may sum columns over parts of the
//             rows (`sums`); the extent then counts parts.
//   Columns   for each chunk of kColumns entries of the last `inner` dimension: reductions over `reduced` in row order, then the stores
//   Scatter   for each block of kBlock rows of the output: initialise it, then add the updates that fall into it, in order
//   Scan      for each row: a running sum along the only inner dimension
//   Tiles     attention or its gradient, which is no graph of expressions (attention.h); on a GPU alone
#pragma once
#include "compiler/codegen/attention.h"
#include "compiler/nn/reader.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <map>
#include <string>

namespace zero::codegen {

using nn::Atom, nn::Fn, nn::Guard, nn::Index, nn::Indices, nn::Space, nn::Term, nn::isTranscendental;

inline constexpr int64_t kChunk = 2048, kColumns = 64, kBlock = 64;
// Of rows whose columns are summed beside what else is made of them: at most so many, a multiple of the second. A GPU's thread keeps the
// sums of a vector of them.
inline constexpr int64_t kMostSummedColumns = 2048, kSummedColumns = 8;

enum class Scalar : uint8_t { F32, F64, F16, BF16, I64, I32, Bool };
unsigned bytesOf(Scalar type);
inline bool isFloat(Scalar t) { return t <= Scalar::BF16; }

struct Node {
  enum Kind : uint8_t {
    Constant, // real (floats) or whole (integers, booleans)
    Load,     // element `index` of argument `arg`; anything where a guard does not hold
    Position, // `index` as a number
    Apply,    // fn of operands; Random: of (seed, counter), `whole` is the id
    Choose,   // operands[0] where all guards hold, else operands[1]
    Reduce,   // fn (Add, Max, Min) of operands[0] over the dimensions `dims`
  };
  explicit Node(Kind kind) : kind(kind) {}

  Kind kind;
  Fn fn = Fn::Add;
  Scalar type = Scalar::F32;
  llvm::SmallVector<int, 3> operands;
  Index index;
  llvm::SmallVector<Guard, 1> guards;
  llvm::SmallVector<Guard, 1> otherwise; // Choose: what is known where the guards do not hold
  llvm::SmallVector<unsigned, 3> dims;
  unsigned arg = 0;
  double real = 0;
  int64_t whole = 0;

  // Derived when the graph is complete:
  std::vector<bool> depends; // on which atoms of kind Dim, through everything
  bool guarded = false;      // it or a node below has guards
  int level = 0;             // number of kernel-wide reductions below, counted along the longest path
};

struct Argument {
  Scalar type;
  int64_t elements;
};

struct Store {
  unsigned result; // output number
  int node;
  Index index;
};

struct Program {
  enum Kind { Rows, Columns, Scatter, Scan, Tiles } kind = Rows;
  std::string name;
  Space space;
  std::vector<Node> nodes;
  std::vector<Argument> inputs, outputs;
  // Dimensions (atoms), outermost first; `reduced`: of Columns, and of Rows with `sums` the rows of a part, the last of `outer`.
  std::vector<unsigned> outer, inner, reduced;
  std::vector<int> reductions; // kernel-wide Reduce nodes
  std::vector<Store> stores;
  std::vector<Store> sums; // Rows: of Reduce nodes over `reduced`, no kernel-wide ones: one element per part and column
  // Scatter: the output row that update point `outer` x `inner` goes to, and its value. The store says the initial value,
  // indexed by `reduced` (output row) and `inner`.
  int scatterRow = -1, scatterValue = -1;
  // Scan: `stores[0].node` is the summand.
  bool exclusive = false, reverse = false;
  Attention attention; // Tiles

  int64_t size(unsigned atom) const { return space.atoms[atom].size; }
  int64_t points(const std::vector<unsigned> &dims) const;
  /// Whether the map runs over chunks of one long dimension.
  bool chunked() const { return kind == Rows && reductions.empty() && outer.empty(); }
  int64_t extent() const;
  /// The rows alone decide its value: neither columns nor an inner loop of its own.
  bool oncePerRow(const Node &node) const;
  /// Whether a loaded index in it stands under guards.
  bool guarded(const Index &index) const;
  /// Nodes reachable from `roots`, each once, operands first; enters indices (loaded atoms) too, and nothing below `leaves`.
  std::vector<int> below(llvm::ArrayRef<int> roots, llvm::ArrayRef<int> leaves = {}) const;
};

/// Analyse the body of a kernel. Errors are reported at the operation in the way.
mlir::FailureOr<Program> buildProgram(mlir::func::FuncOp kernel);

/// Merge neighbouring dimensions that every index treats as one; choose outer and inner dimensions of maps.
void collapse(Program &program);

/// Fill in what nodes depend on and their levels.
void derive(Program &program);

/// (result, operand) pairs that may share bytes: the operand is read only at the element about to be written, or
/// earlier by the same row.
std::vector<std::pair<unsigned, unsigned>> inplacePairs(const Program &program);

/// Work of a whole launch.
struct Work {
  uint64_t flops, bytes;
};
Work workOf(const Program &program);

} // namespace zero::codegen
