//===- emitter.h - what the emission of expressions and of loops share ---------------------------===//
// Private to emit*.cpp and ptx/. The expressions are those of every target; the loops are a CPU's, and a GPU's emitter derives its own
// (ptx/gpu_emitter.h). An expression is emitted in the outermost scope where everything it depends on is known, so what is constant along a
// row is computed once per row; scopes are the loops being built, outermost first.
#pragma once
#include "compiler/codegen/math.h"
#include "compiler/codegen/program.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <functional>

namespace zero::codegen {

struct RowPasses; // rows.h

struct Scope {
  explicit Scope(mlir::Block *block, mlir::Operation *before = nullptr) : block(block), before(before) {}
  mlir::Block *block;
  mlir::Operation *before;                                      // where new code of this scope goes; null: at the end of the block
  llvm::SmallVector<std::pair<unsigned, mlir::Value>, 4> bound; // dimension -> its value (index); of the lane dimension the first lane's
  llvm::DenseMap<int, mlir::Value> values, splat;               // by node: as computed; repeated for all lanes
};

/// While it lives, new code of `op`'s block goes before `op`, from whichever scope it comes: scopes can share a block.
class CodeBefore {
public:
  CodeBefore(llvm::SmallVectorImpl<Scope> &scopes, mlir::Operation *op) : scopes(scopes) {
    for (Scope &s : scopes) {
      saved.push_back(s.before);
      if (s.block == op->getBlock()) s.before = op;
    }
  }
  ~CodeBefore() {
    for (auto [s, before] : llvm::zip_equal(scopes, saved)) s.before = before;
  }
  CodeBefore(const CodeBefore &) = delete;

private:
  llvm::SmallVectorImpl<Scope> &scopes;
  llvm::SmallVector<mlir::Operation *> saved;
};

class Emitter {
public:
  Emitter(const Program &p, mlir::OpBuilder &b, mlir::Location loc, unsigned lanes)
      : p(p), b(b), loc(loc), lanes(lanes), math{b, loc, lanes == 16} {}
  virtual ~Emitter() = default;

  const Program &p;
  mlir::OpBuilder &b;
  mlir::Location loc;
  unsigned lanes;
  Math math;
  llvm::SmallVector<mlir::Value> inputs, outputs; // memrefs
  llvm::SmallVector<Scope, 8> scopes;

  // The vector dimension while vector code is emitted, and its mask where not all lanes count.
  std::optional<unsigned> lane;
  mlir::Value mask;
  bool prefetches = true; // asks for memory ahead of loads

  // Nodes whose values stand in a result's row for now (see rows.h).
  llvm::DenseMap<int, Store> inRow;

  // Inside a branch that guards decided: the branch's scope, and what holds there. Guarded nodes stay inside.
  size_t branch = 0;
  llvm::SmallVector<Guard> holding;

  //--- expressions (emit_values.cpp, emit_apply.cpp, emit_index.cpp, emit_memory.cpp) ------------------------------------------------
  bool isVector(const Node &n) const { return lane && n.depends[*lane]; }
  mlir::Type typeOf(Scalar type) const;   // in registers
  mlir::Type storedAs(Scalar type) const; // in memory
  mlir::VectorType vectorOf(mlir::Type element) const { return mlir::VectorType::get({int64_t(lanes)}, element); }

  mlir::Value number(int64_t value); // index constant
  /// The node's value: a scalar if it is the same in all lanes, else a vector.
  mlir::Value value(int node);
  /// The node's value in every lane.
  mlir::Value vector(int node);
  mlir::Value scalarIndex(const Index &index);
  void store(unsigned output, const Index &index, int node);
  void store(unsigned output, const Index &index, mlir::Value v);
  void storeScalar(unsigned output, mlir::Value at, mlir::Value v);
  mlir::Value combine(Fn fn, Scalar type, mlir::Value x, mlir::Value y);
  mlir::Value identity(Fn fn, Scalar type, bool asVector);
  /// All lanes of a vector to one number, in a fixed tree.
  mlir::Value horizontal(Fn fn, Scalar type, mlir::Value v);
  mlir::Value maskOf(int64_t count); // the first `count` lanes

  size_t depthOf(const std::vector<bool> &depends) const;
  size_t depthOf(const Node &n) const;
  void goTo(size_t depth);

  //--- loops (emit_loops.cpp, emit_kinds.cpp, emit_scatter.cpp) ----------------------------------------------------------------------
  using Values = llvm::SmallVector<mlir::Value>;
  using Body = std::function<Values(Values carried)>;
  /// A loop in the scope at `depth`; `dim` (if any) is bound to the induction variable.
  Values loop(size_t depth, mlir::Value from, mlir::Value to, int64_t step, std::optional<unsigned> dim, Values carried,
              const std::function<Values(mlir::Value, Values)> &body);
  Values nest(size_t depth, llvm::ArrayRef<unsigned> dims, Values carried, const Body &body);
  /// Reductions over `dims`: `body` adds a term to what it carries. At most kTermsInARow terms are added one after another, then a new sum
  /// begins; `join` adds as many sums, and so on: rounding errors grow with the logarithm of the number of terms.
  using Join = std::function<Values(Values, Values)>;
  Values reduceOver(size_t depth, llvm::ArrayRef<unsigned> dims, const Values &start, const Join &join, const Body &body);
  static constexpr int64_t kTermsInARow = 64;
  void when(mlir::Value condition, const std::function<void()> &then, const std::function<void()> &otherwise = {});

  /// The kernel's function, over memrefs of inputs and outputs and then arguments of the types `more`, which it returns. New code goes
  /// into it.
  llvm::SmallVector<mlir::Value> beginFunction(llvm::ArrayRef<mlir::Type> more);
  void emitRows(mlir::Value begin, mlir::Value end);
  void emitColumns(mlir::Value begin, mlir::Value end);
  void emitScatter(mlir::Value begin, mlir::Value end);
  void emitScan(mlir::Value begin, mlir::Value end);

protected:
  void emitChunks(mlir::Value begin, mlir::Value end);
  void lastPass(mlir::Value row, const RowPasses &rows);
  virtual mlir::Value compute(const Node &n);
  mlir::Value apply(const Node &n);
  mlir::Value convert(mlir::Value x, Scalar from, Scalar to, Scalar type);
  mlir::Value compare(Fn fn, Scalar type, mlir::Value x, mlir::Value y);
  mlir::Value quotient(Fn fn, Scalar type, mlir::Value x, mlir::Value y);
  mlir::Value shift(Fn fn, mlir::Value x, mlir::Value places);
  mlir::Value loadNode(const Node &n);
  int64_t aheadOf(const Node &n) const;
  mlir::Value reload(const Store &place);
  mlir::Value reduceInline(const Node &n);
  mlir::Value position(const Node &n);
  mlir::Value chooseByBranch(const Node &n);
  mlir::Value atomValue(unsigned atom);
  mlir::Value laneAtom(unsigned atom);
  mlir::Value laneIndex(const Index &index); // vector of i64
  bool variesByLane(const Index &index) const;
  std::vector<bool> dependsOf(const Index &index) const;
  mlir::Value holds(llvm::ArrayRef<Guard> guards, bool asVector);
  mlir::Value toMemory(mlir::Value v, Scalar type);
  mlir::Value fromMemory(mlir::Value v, Scalar type);
  mlir::Value divided(mlir::Value v, int64_t divisor, bool remainder, bool maybeNegative);

  void bindOuter(mlir::Value iteration, llvm::ArrayRef<unsigned> dims);
  void unlessInPlace(const std::function<void()> &initialise);
  /// Of the update in work: the row it goes to; and adding it.
  mlir::Value scatterRow();
  void addUpdate(mlir::Value start);
  /// Of a row the element at which the vector in work begins; a vector of the result, and it with an update added, as memory holds them.
  mlir::Value updatedColumn();
  mlir::Value loadUpdated(mlir::Value at);
  mlir::Value plusUpdate(mlir::Value stored, mlir::Value update);
  void storeUpdated(mlir::Value stored, mlir::Value at);
  mlir::Value liesIn(mlir::Value row, mlir::Value from, mlir::Value to);
  /// The running sum along `dims`, from `sum` on.
  Values scanAlong(llvm::ArrayRef<unsigned> dims, Values sum);
  /// The body at every point of `inner`, the last dimension in vectors; `carried` has `copies` accumulators for each
  /// of its entries, so that sums do not wait for one another.
  Values sweep(llvm::ArrayRef<unsigned> dims, Values carried, unsigned copies, const Body &body);
  Values sweepLast(unsigned dim, mlir::Value from, mlir::Value to, Values carried, unsigned copies, const Body &body);
  Values atLane(unsigned dim, mlir::Value first, mlir::Value mask, Values carried, const Body &body);
  Values initial(llvm::ArrayRef<int> reductions, unsigned copies);
  Values accumulate(llvm::ArrayRef<int> reductions, Values carried);
  void finish(llvm::ArrayRef<int> reductions, unsigned copies, Values carried);
  void storeAll(llvm::ArrayRef<Store> stores);
  /// The row in work to the sums of its part, which stand in their results.
  void addToSums(mlir::Value isFirst, llvm::ArrayRef<mlir::Value> terms);
  static void interleave(llvm::ArrayRef<llvm::SmallVector<mlir::Operation *>> parts);
  /// All reductions and stores of `width` columns from `first` on.
  void columnsOf(unsigned dim, mlir::Value first, int64_t width);
};

} // namespace zero::codegen
