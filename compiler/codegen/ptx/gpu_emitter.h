//===- gpu_emitter.h - each kind of kernel as what one thread of a GPU does -------------------------------===//
// The expressions are those of the CPU's emitter, with vectors as long as a thread loads at once. The loops are a thread's share
// (division.h). Between threads: barriers, shuffles inside a warp, and shared memory, as intrinsics of LLVM's NVPTX target.
#pragma once
#include "compiler/codegen/emitter.h"
#include "compiler/codegen/ptx/division.h"
#include "compiler/codegen/rows.h"

namespace zero::codegen {

class GpuEmitter : public Emitter {
public:
  GpuEmitter(const Program &p, mlir::OpBuilder &b, mlir::Location loc, const Division &division)
      : Emitter(p, b, loc, division.lanes), d(division) {
    prefetches = false;
    math.nvidia = true;
    math.approximate = approximates(p);
  }

  /// The body of the kernel's function; the insertion point is before its return.
  void emit();

protected:
  const Division &d;
  mlir::Value thread, block; // index of the thread in its block, of the block in the grid
  unsigned sharedArrays = 0;
  int kept = -1;         // Rows: the load whose row lies in shared memory (kept_row.h)
  mlir::Value keptRow;   // where; null until it is decided
  bool isKept = false;   // a pass has read it
  mlir::Value inShare;   // number of the vector that a thread is working on
  bool isInside = false; // and that it lies below insideOf()

  //--- threads and what they share (threads.cpp) ----------------------------------------------------------------------
  mlir::Value intrinsic(llvm::StringRef name, mlir::Type result, mlir::ValueRange operands);
  mlir::Value special(llvm::StringRef name); // register, as an index
  /// Until all threads of the block, or of the warp where a row is a warp's, have come here.
  void barrier();
  /// Until all threads of the warp have come here.
  void warpBarrier();
  /// Whether any thread of the block says so; all of them must ask.
  mlir::Value anyThread(mlir::Value condition);
  /// `v` of the thread of the warp whose number differs in these bits.
  mlir::Value shuffle(mlir::Value v, unsigned bits);
  mlir::Value joinWarp(Fn fn, Scalar type, mlir::Value v);
  mlir::Value ballot(mlir::Value condition, mlir::Value inWarp);
  /// `alignment` in bytes; 0: that of an element.
  mlir::Value sharedArray(mlir::Type element, int64_t size, int64_t alignment = 0);
  void storeShared(mlir::Value array, mlir::Value at, mlir::Value v);
  mlir::Value loadShared(mlir::Value array, mlir::Value at);
  mlir::Value plus(mlir::Value a, mlir::Value b);
  mlir::Value times(mlir::Value a, int64_t factor);
  mlir::Value quotient(mlir::Value a, int64_t divisor);
  mlir::Value remainder(mlir::Value a, int64_t divisor);
  mlir::Value below(mlir::Value a, mlir::Value b);
  // Of f32, numbers or vectors of them.
  mlir::Value real(double value) { return math.constants(b.getF32FloatAttr(float(value))); }
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value is(mlir::arith::CmpFPredicate predicate, mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);

private:
  //--- kinds of kernels (kinds.cpp, scatter.cpp) ----------------------------------------------------------------------
  void emitMap();
  void emitRows();
  mlir::Value compute(const Node &n) override;
  mlir::Value keptOrLoaded(const Node &load);
  void row(mlir::Value number, mlir::Value rank);
  void emitColumns();
  void sumColumns(llvm::ArrayRef<int> reductions, mlir::Value group);
  void joinGroups(llvm::ArrayRef<int> reductions, Values &sums, int64_t groups);
  void emitScatter();
  /// Of a round's updates those that fall into the block's rows: their numbers and rows, in shared memory, and how many there are.
  struct OwnUpdates {
    mlir::Value updates, rows, count;
  };
  /// Fills the list in; `found`: room for a bit of each update. The number of them.
  mlir::Value list(const OwnUpdates &own, mlir::Value found, llvm::ArrayRef<mlir::Value> updates, llvm::ArrayRef<mlir::Value> rows,
                   llvm::ArrayRef<mlir::Value> falls);
  void addUpdates(const OwnUpdates &own, mlir::Value first);
  void copyRows(mlir::Value from, mlir::Value to);
  void emitScan();
  void joinTeam(llvm::ArrayRef<int> reductions, Values sums, mlir::Value rank);

  //--- rows whose columns are summed, too (parts.cpp) --------------------------------------------------------------------
  void emitParts();
  std::vector<int> madeOfRow() const; // nodes
  std::vector<int> loadsOfRow() const;
  Values loadRows(mlir::Value first, llvm::ArrayRef<int> loads);
  class RowsOfPart;
  /// `width` rows from `first` of the part on, of which `loads` are there; adds what they have to `sums`.
  Values rowsOfPart(mlir::Value first, mlir::Value counts, Values sums, llvm::ArrayRef<int> loads, llvm::ArrayRef<mlir::Value> loaded);
  /// What the vectors of all threads make of these reductions, of one row after another, known to every thread.
  Values joinBlock(llvm::ArrayRef<int> reductions, Values sums);

  //--- what a thread works on at once (shares.cpp) -----------------------------------------------------------------------
  /// `vector` of the vectors that `dims` make, the last dimension in lanes.
  void bindVector(mlir::Value vector, llvm::ArrayRef<unsigned> dims);
  using AtOne = std::function<Values(mlir::Value position, Values carried)>;
  /// A loop's body that is `body` at `count` positions `step` apart, the first of them the loop's, each in a scope of its own; nothing is
  /// stored before all have loaded.
  AtOne several(unsigned count, int64_t step, AtOne body);
  /// The body at every `step`-th vector from `first` on, which is below `step`, and at `atOnce` of them before anything is stored; the last
  /// dimension is that of the lanes meanwhile.
  Values share(llvm::ArrayRef<unsigned> dims, mlir::Value first, int64_t step, unsigned atOnce, Values carried, const Body &body);
  /// Whether the node says that the column of a row is below a constant; guards that say so; and the least of these constants, or the row's
  /// length.
  bool isBound(const Node &n) const;
  llvm::SmallVector<Guard> boundsOfColumns() const;
  int64_t insideOf() const;
  static void storeLast(mlir::Block &block, mlir::Operation *before);
  unsigned atOnce(llvm::ArrayRef<int> roots) const;
  llvm::SmallVector<int> operandsOf(llvm::ArrayRef<int> reductions) const;

  //--- softmax in one pass (online_softmax.cpp) --------------------------------------------------------------------------
  /// The maximum of `maxima` whose row it is that `sum` adds up: exp(x - maximum of x). -1 if it is none.
  int maximumOf(int sum, llvm::ArrayRef<int> maxima) const;
  /// Whether the pass after that of `maxima` does nothing but add up such exponentials, of rows that are longer than a vector for each
  /// thread.
  bool sumsOnline(llvm::ArrayRef<int> maxima, llvm::ArrayRef<int> sums) const;
  void sumOnline(llvm::ArrayRef<int> reductions, llvm::ArrayRef<int> sums, mlir::Value rank);
};

} // namespace zero::codegen
