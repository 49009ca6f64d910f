//===- sums_in_rows.cpp - sums of columns by the kernels that pass over the rows anyway -------------------===//
#include "passes/fuse/sums_in_rows.h"
#include "compiler/codegen/program.h"
#include "compiler/nn/build.h"
#include "compiler/nn/rows.h"
#include "passes/fuse/access.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
namespace {

// Rows of a part, which leaves a sum of each column for the second kernel to read.
constexpr int64_t kMostRows = 32, kFewestRows = 8;
// That a thread keeps at least.
constexpr int64_t kColumnsOfThread = 4;
// Shorter rows have no vector for each thread of a warp.
constexpr int64_t kFewestColumns = 256;
// Of a kernel, whose threads keep a vector for each in registers.
constexpr size_t kMostSums = 4;

ValueRange returned(func::FuncOp kernel) { return kernel.getBody().front().getTerminator()->getOperands(); }

/// The most by which there are columns enough; 0 if there are not.
int64_t rowsOfPart(int64_t rows, int64_t columns, int64_t enough) {
  for (int64_t part = kMostRows; part >= kFewestRows; part /= 2)
    if (rows % part == 0 && rows > part && rows / part * columns >= enough * kColumnsOfThread) return part;
  return 0;
}

/// Whether all that the kernel sums are its rows and, of each part, `sums` times its columns.
bool sumsInRows(func::FuncOp kernel, size_t sums) {
  auto program = codegen::buildProgram(kernel);
  if (failed(program) || program->sums.size() != sums) return false;
  for (auto [i, node] : llvm::enumerate(program->nodes)) {
    bool expected = llvm::is_contained(program->reductions, int(i)) ||
                    llvm::any_of(program->sums, [&, i = int(i)](const codegen::Store &s) { return s.node == i; });
    if (node.kind == codegen::Node::Reduce && !expected) return false;
  }
  return true;
}

/// The results of a kernel's operations where its arguments are these.
SmallVector<Value> inlined(OpBuilder &builder, func::FuncOp kernel, ValueRange arguments) {
  Build b{builder, kernel.getLoc()};
  IRMapping map;
  map.map(kernel.getArguments(), arguments);
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    // What another kernel stored and this one read is one kernel's own now, and not rounded.
    auto widened = dyn_cast<CastOp>(op);
    Value stored = widened && isa<BlockArgument>(widened.getInput()) ? viewed(map.lookup(widened.getInput())) : Value();
    auto rounded = stored ? stored.getDefiningOp<CastOp>() : CastOp();
    if (rounded && elementOf(rounded.getInput()) == elementOf(widened.getResult()))
      map.map(widened.getResult(), b.reshape(rounded.getInput(), typeOf(widened.getResult()).getShape()));
    else
      builder.clone(op, map);
  }
  return llvm::map_to_vector(returned(kernel), [&](Value result) { return map.lookup(result); });
}

/// What is made of the launches' results up to `end`, in order.
SmallVector<Operation *> usersUpTo(Operation *end, ArrayRef<LaunchOp> launches) {
  SmallVector<Operation *> users;
  llvm::SmallPtrSet<Operation *, 8> needing;
  Operation *first = end;
  for (LaunchOp launch : launches) {
    needing.insert(launch->user_begin(), launch->user_end());
    if (launch->isBeforeInBlock(first)) first = launch;
  }
  for (Operation *op = first; op != end->getNextNode(); op = op->getNextNode())
    if (needing.contains(op)) {
      users.push_back(op);
      needing.insert(op->user_begin(), op->user_end());
    }
  return users;
}

} // namespace

ReduceOp sumOf(Value result) {
  if (auto cast = result.getDefiningOp<CastOp>()) result = cast.getInput();
  auto sum = result.getDefiningOp<ReduceOp>();
  return sum && sum.getKind() == ReductionKind::sum && reductionOf(sum).kind == Reduction::Columns ? sum : ReduceOp();
}

LaunchOp launchBefore(LaunchOp place, ArrayRef<Value> results, ValueRange operands, KernelTable &table, std::string &why) {
  llvm::SetVector<Value> inputs(operands.begin(), operands.end());
  const KernelTable::Entry &entry = table.kernelFor(results, inputs.getArrayRef(), place->getParentOfType<func::FuncOp>());
  func::FuncOp kernel = entry.function;
  why = entry.why;
  if (!kernel) return {};
  OpBuilder b(place);
  return b.create<LaunchOp>(place->getLoc(), TypeRange(ValueRange(results)), kernel.getSymName(), inputs.getArrayRef());
}

void eraseComputed(Operation *before, Operation *place) {
  for (Operation *op = place->getPrevNode(); op != before;) {
    Operation *previous = op->getPrevNode();
    if (!isa<LaunchOp>(op)) op->erase();
    op = previous;
  }
}

func::FuncOp SumsInRows::kernelOf(LaunchOp launch) const { return symbols.lookup<func::FuncOp>(launch.getKernel()); }

const SumsInRows::Facts &SumsInRows::factsOf(LaunchOp launch) {
  func::FuncOp kernel = kernelOf(launch);
  auto [known, fresh] = facts.try_emplace(kernel);
  Facts &found = known->second;
  if (!fresh) return found;
  ValueRange results = returned(kernel);
  bool columns = llvm::all_of(results, [](Value result) { return bool(sumOf(result)); });
  for (auto sum : kernel.getOps<ReduceOp>()) {
    Reduction of = reductionOf(sum);
    if (of.kind == Reduction::Trivial) continue;
    int64_t kept = of.rest, summed = of.whole / of.rest;
    Facts fact = columns ? Facts{Facts::SumsColumns, summed, kept} : Facts{Facts::SumsRows, kept, summed};
    bool alike = found.kind == Facts::Other || (found.rows == fact.rows && found.columns == fact.columns);
    if (!alike || of.kind != (columns ? Reduction::Columns : Reduction::Rows)) return found = {};
    found = fact;
  }
  return found;
}

bool SumsInRows::hasAll(LaunchOp rows, LaunchOp columns) {
  const Facts &of = factsOf(columns);
  return llvm::all_of(columns.getInputs(), [&](Value v) {
    Value root = viewed(v);
    auto from = root.getDefiningOp<LaunchOp>();
    if (from == rows || llvm::any_of(rows.getInputs(), [&](Value read) { return viewed(read) == root; })) return true;
    // No other parameters: each is whole around its uses alone.
    return elementsOf(v) < of.rows * of.columns && (from ? from->isBeforeInBlock(rows) : isa<BlockArgument>(root));
  });
}

int64_t SumsInRows::run(func::FuncOp function) {
  SmallVector<LaunchOp> rows;
  SmallVector<std::pair<LaunchOp, unsigned>> columns;
  llvm::DenseMap<Operation *, int64_t> position;
  for (Operation &op : function.getBody().front()) {
    position[&op] = int64_t(position.size());
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch || !launch->getDiscardableAttrDictionary().empty()) continue; // marked launches stay what they are
    const Facts &of = factsOf(launch);
    bool fits = of.columns >= kFewestColumns && of.columns <= codegen::kMostSummedColumns && of.columns % codegen::kSummedColumns == 0 &&
                of.rows * of.columns >= least && rowsOfPart(of.rows, of.columns, enough);
    if (!fits) continue;
    if (of.kind == Facts::SumsRows) rows.push_back(launch);
    if (of.kind == Facts::SumsColumns) columns.push_back({launch, launch->getNumResults()});
  }
  llvm::MapVector<LaunchOp, SmallVector<LaunchOp>> joined;
  llvm::DenseMap<LaunchOp, size_t> sums;
  for (auto [launch, results] : columns) {
    LaunchOp nearest;
    auto distance = [&](LaunchOp other) { return std::abs(position[other] - position[launch]); };
    for (LaunchOp other : rows) {
      const Facts &a = factsOf(launch), &b = factsOf(other);
      if (a.rows == b.rows && a.columns == b.columns && sums[other] + results <= kMostSums && hasAll(other, launch) &&
          (!nearest || distance(other) < distance(nearest)))
        nearest = other;
    }
    if (!nearest) continue;
    joined[nearest].push_back(launch);
    sums[nearest] += results;
  }
  int64_t count = 0;
  for (auto &[first, all] : joined) {
    LaunchOp launch = first;
    // Others may have moved since what they need.
    llvm::erase_if(all, [&](LaunchOp other) { return !hasAll(launch, other); });
    // Not if it needs the sums itself, or they each other.
    SmallVector<Operation *> users = usersUpTo(launch, all);
    llvm::SmallPtrSet<Operation *, 8> needing(users.begin(), users.end());
    needing.insert(all.begin(), all.end());
    bool apart = !needing.contains(launch) && llvm::none_of(all, [&](LaunchOp other) {
      return llvm::any_of(other.getInputs(), [&](Value v) { return needing.contains(viewed(v).getDefiningOp()); });
    });
    if (!all.empty() && apart && join(launch, all, users)) count += int64_t(all.size());
  }
  return count;
}

bool SumsInRows::join(LaunchOp rows, ArrayRef<LaunchOp> columns, ArrayRef<Operation *> users) {
  OpBuilder builder(rows);
  Build b{builder, rows.getLoc()};
  const Facts of = factsOf(rows);
  int64_t part = rowsOfPart(of.rows, of.columns, enough);
  Operation *before = rows->getPrevNode(); // or null
  SmallVector<Value> results = inlined(builder, kernelOf(rows), rows.getInputs());
  llvm::DenseMap<Value, Value> known; // by what it is a view of: what the kernel of rows has of it
  for (Value read : rows.getInputs()) known.try_emplace(viewed(read), read);
  for (auto [result, inside] : llvm::zip(rows.getOutputs(), results)) known[result] = inside;
  llvm::SetVector<Value> operands(rows.getInputs().begin(), rows.getInputs().end());
  SmallVector<Value> summed, replaced; // by the columns' kernels, and results of their launches
  for (LaunchOp launch : columns) {
    SmallVector<Value> arguments;
    for (Value v : launch.getInputs()) {
      Value root = viewed(v), inside = known.lookup(root);
      if (!inside) operands.insert(inside = root);
      arguments.push_back(b.reshape(inside, typeOf(v).getShape()));
    }
    for (Value result : inlined(builder, kernelOf(launch), arguments))
      summed.push_back(b.reshape(sumOf(result).getInput(), {of.rows / part, part, of.columns}));
    llvm::append_range(replaced, launch.getOutputs());
  }
  for (Value terms : summed) results.push_back(b.reduce(ReductionKind::sum, terms, {1}));
  std::string why;
  LaunchOp first = launchBefore(rows, results, operands.getArrayRef(), table, why), second;
  auto kernel = first ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(first, first.getKernelAttr()) : func::FuncOp();
  if (kernel && sumsInRows(kernel, summed.size())) {
    ValueRange parts = first.getOutputs().take_back(summed.size());
    SmallVector<Value> sums;
    for (auto [sum, result] : llvm::zip(parts, replaced))
      sums.push_back(b.reshape(b.cast(b.reduce(ReductionKind::sum, sum, {0}), elementOf(result)), typeOf(result).getShape()));
    second = launchBefore(rows, sums, parts, table, why);
  }
  eraseComputed(before, rows);
  if (!second) {
    if (first) first->erase();
    return false;
  }
  Operation *after = rows->getNextNode();
  for (Operation *user : users) user->moveBefore(after);
  rows->replaceAllUsesWith(first.getOutputs().take_front(rows->getNumResults()));
  for (auto [result, sum] : llvm::zip(replaced, second.getOutputs())) result.replaceAllUsesWith(sum);
  for (LaunchOp launch : columns) launch->erase();
  rows->erase();
  return true;
}

} // namespace zero::fuse
