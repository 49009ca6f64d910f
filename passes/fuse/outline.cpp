//===- outline.cpp - clusters to functions and launches ---------------------------------------------------===//
#include "passes/fuse/outline.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
namespace {

/// Writes the function's block anew: library calls in their order, a launch once its operands are there and
/// something needs it or its last result's turn has come. What needs what can be as deep as the function is long, so
/// that the work under way stands on a stack of its own.
class Writer {
public:
  Writer(func::FuncOp function, const Clusters &clusters, KernelTable &kernels)
      : function(function), clusters(clusters), kernels(kernels), manyParts(function), launched(clusters.clusters.size(), false) {}

  FailureOr<int64_t> run() {
    Block &block = function.getBody().front();
    std::vector<Operation *> order;
    for (Operation &op : block) order.push_back(&op);
    for (Operation *op : order) {
      if (isBarrier(op)) {
        if (!isa<ConstantOp>(op)) // where they are needed
          write(op);
      } else if (auto it = clusters.home.find(op->getResult(0));
                 it != clusters.home.end() && clusters.clusters[it->second].results.back() == op->getResult(0)) {
        launch(it->second);
      }
      while (!bad && !work.empty()) advance();
      if (bad) return failure();
    }
    // Everything written stands at the end of the block, in order; the rest is computed by kernels now.
    for (Operation *op : llvm::reverse(order))
      if (!written.contains(op)) {
        op->dropAllUses();
        op->erase();
      }
    return count;
  }

private:
  /// Something to be written, and how far it is.
  struct Task {
    enum Kind { Write, Launch, Call } kind;
    Operation *op = nullptr; // Write: a library call or a view
    unsigned cluster = 0;    // Launch: results of its own one after another, if they do not go together
    SmallVector<Value, 2> results = {}, operands = {}, inputs = {}; // Call
    Parts parts = {};
    func::FuncOp kernel = {};
    unsigned next = 0; // operand or result
  };

  func::FuncOp function;
  const Clusters &clusters;
  KernelTable &kernels;
  ManyParts manyParts;
  std::vector<bool> launched;
  DenseSet<Operation *> begun, written;
  DenseMap<Value, Value> now; // kept values -> results of launches
  std::vector<Task> work;     // each waits for the one after it
  int64_t count = 0;
  bool bad = false;

  Block &block() { return function.getBody().front(); }

  void advance() {
    switch (work.back().kind) {
    case Task::Write:
      return advanceWrite(work.back());
    case Task::Launch:
      return advanceLaunch(work.back());
    case Task::Call:
      return advanceCall(work.back());
    }
  }

  /// The value as it exists in the new order: a launch's result, a view of one, or a library call's. Null, and a task is added that
  /// leads there, while it does not exist.
  Value available(Value v) {
    Operation *op = v.getDefiningOp();
    if (!op) return v;
    if (auto it = now.find(v); it != now.end()) return it->second;
    if (auto home = clusters.home.find(v); home != clusters.home.end()) {
      if (!launched[home->second])
        launch(home->second);
      else // its kernel is waiting for this very value: compute it apart
        alone(v);
      return nullptr;
    }
    if (!isa<ReshapeOp>(op) && !isBarrier(op)) {
      op->emitOpError("is wanted in memory, but no kernel was to write it");
      bad = true;
      return nullptr;
    }
    if (written.contains(op)) return v;
    begun.contains(op) ? giveUpUntil(op) : write(op);
    return nullptr;
  }

  void write(Operation *op) {
    if (begun.insert(op).second) work.push_back({Task::Write, op});
  }

  /// A kernel is to be called before `op`, for one of its results, and needs `op` for another: what has been begun for the sake of `op` is
  /// given up. What that needs is asked for again then, and computed apart, since the kernel counts as launched.
  void giveUpUntil(Operation *op) {
    for (; work.back().kind != Task::Write || work.back().op != op; work.pop_back())
      if (work.back().kind == Task::Write) begun.erase(work.back().op);
  }

  void advanceWrite(Task &task) {
    Operation *op = task.op;
    for (; task.next < op->getNumOperands(); ++task.next) {
      Value v = available(op->getOperand(task.next));
      if (!v) return;
      op->setOperand(task.next, v);
    }
    op->moveBefore(&block(), block().end());
    written.insert(op);
    work.pop_back();
  }

  /// Tensors in memory from which the results are computed, and by what.
  llvm::SetVector<Value> operandsOf(ArrayRef<Value> results, SmallVectorImpl<Operation *> &computed) {
    llvm::SetVector<Value> operands;
    DenseSet<Value> seen(results.begin(), results.end());
    // In the order of a walk from the results down, operands from the first to the last.
    SmallVector<Value> work;
    auto push = [&](Operation *op) {
      for (Value v : llvm::reverse(op->getOperands())) work.push_back(v);
    };
    for (Value v : results) {
      computed.push_back(v.getDefiningOp());
      push(v.getDefiningOp());
      while (!work.empty()) {
        Value next = work.pop_back_val();
        if (!seen.insert(next).second) continue;
        Operation *from = next.getDefiningOp();
        if (!from || isBarrier(from) || clusters.home.contains(next))
          operands.insert(next);
        else
          computed.push_back(from), push(from);
      }
    }
    return operands;
  }

  void launch(unsigned number) {
    if (launched[number]) return;
    launched[number] = true;
    work.push_back({Task::Launch, nullptr, number});
    const Cluster &cluster = clusters.clusters[number];
    if (cluster.results.size() > 1) call(cluster.results);
  }

  void advanceLaunch(Task &task) {
    const Cluster &cluster = clusters.clusters[task.cluster];
    while (task.next < cluster.results.size() && now.contains(cluster.results[task.next])) ++task.next;
    if (task.next < cluster.results.size()) // one, or results that do not go together: a kernel each
      alone(cluster.results[task.next]);
    else
      work.pop_back();
  }

  void alone(Value v) {
    std::string why;
    if (call({v}, &why)) return;
    v.getDefiningOp()->emitError("it cannot be made into a kernel: ") << why;
    bad = true;
  }

  bool call(ArrayRef<Value> results, std::string *why = nullptr) {
    SmallVector<Operation *> computed;
    auto wanted = operandsOf(results, computed);
    SmallVector<Value> operands(wanted.begin(), wanted.end());
    Parts parts = manyParts.partsOf(operands, computed, results);
    const KernelTable::Entry &entry = kernels.kernelFor(results, operands, parts, function);
    if (why) *why = entry.why;
    if (!entry.function) return false;
    Task task{Task::Call};
    task.results.assign(results.begin(), results.end());
    task.operands.assign(operands.begin(), operands.end());
    task.parts = std::move(parts);
    task.kernel = entry.function;
    work.push_back(std::move(task));
    return true;
  }

  void advanceCall(Task &task) {
    while (task.inputs.size() < task.operands.size()) {
      Value v = available(task.operands[task.inputs.size()]);
      if (!v) return;
      task.inputs.push_back(v);
    }
    OpBuilder b(function.getContext());
    b.setInsertionPointToEnd(&block());
    SmallVector<Location> places;
    for (Value v : task.results) places.push_back(v.getLoc());
    Location loc = FusedLoc::get(function.getContext(), places);
    for (auto [input, part] : llvm::zip(task.inputs, task.parts))
      if (part) input = part->of(input, Build{b, loc});
    auto op = b.create<LaunchOp>(loc, TypeRange(ValueRange(task.results)), task.kernel.getSymName(), task.inputs);
    written.insert(op);
    ++count;
    for (auto [v, result] : llvm::zip(task.results, op.getOutputs())) now.try_emplace(v, result);
    work.pop_back();
  }
};

} // namespace

FailureOr<int64_t> outline(func::FuncOp function, const Clusters &clusters, KernelTable &kernels) {
  return Writer(function, clusters, kernels).run();
}

} // namespace zero::fuse
