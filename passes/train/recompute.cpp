//===- recompute.cpp - nn-recompute --------------------------------------------------------------------===//
#include "compiler/nn/rows.h"
#include "passes/train/Passes.h"
#include "passes/train/backward.h"
#include "passes/train/duplicates.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/train/Passes.h.inc"

namespace {

constexpr unsigned kMostOperations = 24; // of one value that is made again
constexpr unsigned kMostTensors = 2;     // of its size that are read for it
constexpr int64_t kStatistic = 8;        // a tensor this many times smaller is a row statistic: keeping it costs nothing

int64_t elements(Value v) { return nn::typeOf(v).getNumElements(); }

/// Which forward values backward keeps and which it makes again. Values are offered in the order of their definition.
struct Keeper {
  DenseSet<Value> kept, again; // roots
  DenseSet<Value> required;    // kept, however little it takes to make them again

  bool isLeaf(Value root, Value target) const {
    Operation *op = root.getDefiningOp();
    if (!op || isa<nn::GetOp, nn::ConstantOp>(op) || kept.contains(root)) return true;
    return elements(root) * kStatistic <= elements(target) && !isMarked(op);
  }

  /// Operations and leaves needed to make `v` (a root) from what is kept; false when something in it is not cheap.
  bool walk(Value v, Value target, DenseSet<Operation *> &operations, DenseSet<Value> &large, bool &marked) const {
    v = nn::storedIn(v);
    if (v != target && isLeaf(v, target)) {
      if (v.getDefiningOp() && !isa<nn::GetOp, nn::ConstantOp>(v.getDefiningOp()) && elements(v) * kStatistic > elements(target))
        large.insert(v);
      return large.size() <= kMostTensors;
    }
    Operation *op = v.getDefiningOp();
    if (isMarked(op)) return marked = true; // its operands are at hand, kept or made again
    if (!isCheap(op)) return false;
    if (!operations.insert(op).second) return true;
    return operations.size() <= kMostOperations &&
           llvm::all_of(op->getOperands(), [&](Value o) { return walk(o, target, operations, large, marked); });
  }

  /// Without `minBytes` only what a marked product makes is made again.
  void offer(Value root, std::optional<uint64_t> minBytes) {
    DenseSet<Operation *> operations;
    DenseSet<Value> large;
    bool marked = false;
    if (!required.contains(root) && walk(root, root, operations, large, marked) &&
        (marked || (minBytes && nn::bytesOf(nn::typeOf(root)) >= *minBytes)))
      again.insert(root);
    else
      kept.insert(root);
  }
};

/// Whether it holds integers, not booleans.
bool holdsIntegers(Value v) { return nn::elementOf(v).isInteger() && !nn::elementOf(v).isInteger(1); }

/// Elements of the largest integer input, such as token ids. Integers of no more elements are taken for indices of lookups.
int64_t mostIndices(func::FuncOp function) {
  int64_t most = 0;
  for (BlockArgument input : function.getArguments())
    if (holdsIntegers(input)) most = std::max(most, elements(input));
  return most;
}

struct Recompute : impl::RecomputePassBase<Recompute> {
  using RecomputePassBase::RecomputePassBase;
  Keeper keeper;
  IRMapping copies;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (mode != "auto" && mode != "none") {
      function.emitError() << "recomputation of cheap values is auto or none, not '" << mode << "'";
      return signalPassFailure();
    }
    Operation *loss = lossOf(function);
    if (!loss) return;
    std::optional<uint64_t> least;
    if (mode == "auto") least = minBytes;
    keeper = {};
    copies = {};
    Block &block = function.getBody().front();
    SmallVector<Operation *> backward;
    for (Operation *op = loss->getNextNode(); op; op = op->getNextNode()) backward.push_back(op);

    DenseSet<Value> read; // roots that backward reads
    auto reads = [&](Operation *op) {
      for (Value v : op->getOperands()) read.insert(nn::storedIn(v));
    };
    for (Operation *op : backward)
      if (!nn::isView(op)) reads(op);
    for (auto product : block.getOps<nn::MatMulOp>()) {
      if (isMarked(product)) reads(product);
      if (product.getKeepLhs()) keeper.required.insert(nn::storedIn(product.getLhs()));
    }
    int64_t indices = mostIndices(function);
    for (Operation *op = &block.front(); op != loss->getNextNode(); op = op->getNextNode())
      for (Value v : op->getResults()) {
        // nn-table-rows matches a table's lookup and its gradient by their indices, which are few bytes beside the rows.
        if (holdsIntegers(v) && elements(v) <= indices) keeper.required.insert(v);
        if (read.contains(v) && !isa<nn::GetOp, nn::ConstantOp>(op) && !nn::isView(op)) keeper.offer(v, least);
      }
    for (Value v : keeper.again) {
      ++values;
      savedBytes += nn::bytesOf(nn::typeOf(v));
    }

    for (Operation *op : backward)
      for (OpOperand &operand : op->getOpOperands())
        if (Value root = nn::storedIn(operand.get()); keeper.again.contains(root)) {
          OpBuilder b(op);
          operand.set(make(operand.get(), root, b));
        }
  }

  /// `v`, made again before the operation that reads it (or, by an earlier reader, before that).
  Value make(Value v, Value target, OpBuilder &b) {
    if (Value copy = copies.lookupOrNull(v)) return copy;
    if (nn::storedIn(v) != target && keeper.isLeaf(nn::storedIn(v), target)) return v;
    Operation *op = v.getDefiningOp();
    SmallVector<Value> operands;
    for (Value o : op->getOperands())
      operands.push_back(!isMarked(op) ? make(o, target, b) : keeper.again.contains(nn::storedIn(o)) ? make(o, nn::storedIn(o), b) : o);
    Operation *copy = b.clone(*op);
    copy->setOperands(operands);
    copies.map(v, copy->getResult(0));
    return copy->getResult(0);
  }
};

} // namespace
} // namespace zero::train
