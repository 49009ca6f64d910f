//===- split_columns.cpp - nn-split-columns ----------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/fuse/Passes.h"
#include "passes/fuse/access.h"
#include "passes/fuse/sums_in_rows.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_SPLITCOLUMNSPASS
#include "passes/fuse/Passes.h.inc"

namespace {

// What a part sums at least, so that parts are few beside what they are made of.
constexpr int64_t kFewestTerms = 16;
// Of a kernel: the second one has two arguments for each.
constexpr size_t kMostSums = 64;

struct SplitColumns : impl::SplitColumnsPassBase<SplitColumns> {
  using SplitColumnsPassBase::SplitColumnsPassBase;

  void runOnOperation() override {
    KernelTable table(getOperation());
    SymbolTable symbols(getOperation());
    SumsInRows inRows(getOperation(), table, least, columns);
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && !function->hasAttr(NnDialect::kKernelAttr)) functions.push_back(function);
    for (func::FuncOp function : functions) {
      launches += inRows.run(function);
      for (auto launch : llvm::make_early_inc_range(function.getOps<LaunchOp>())) {
        auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel());
        if (!kernel) continue; // made here
        int64_t count = partsOf(kernel);
        if (count == 1) continue;
        if (failed(split(launch, kernel, count, table))) return signalPassFailure();
        ++launches;
      }
    }
    llvm::StringSet<> launched;
    getOperation().walk([&](LaunchOp launch) { launched.insert(launch.getKernel()); });
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (kernel->hasAttr(NnDialect::kKernelAttr) && !launched.contains(kernel.getSymName())) kernel.erase();
  }

  /// The fewest parts that have columns for all threads, of a kernel whose results are sums of equally many and long columns and nothing
  /// else; or 1.
  int64_t partsOf(func::FuncOp kernel) const {
    ValueRange results = kernel.getBody().front().getTerminator()->getOperands();
    ReduceOp first = sumOf(results[0]);
    if (!first || results.size() > kMostSums) return 1;
    Reduction of = reductionOf(first);
    if (of.whole < least) return 1;
    for (Value result : results.drop_front()) {
      ReduceOp sum = sumOf(result);
      if (!sum || reductionOf(sum).whole != of.whole || reductionOf(sum).rest != of.rest) return 1;
    }
    int64_t rows = of.whole / of.rest, count = 1;
    while (count * of.rest < columns && rows % (count * 2) == 0 && rows / (count * 2) >= kFewestTerms) count *= 2;
    return count;
  }

  /// The kernel's operations at the launch, with sums over every `count`-th row, and then the sums of these.
  LogicalResult split(LaunchOp launch, func::FuncOp kernel, int64_t count, KernelTable &table) {
    OpBuilder builder(launch);
    Build b{builder, launch.getLoc()};
    Block &body = kernel.getBody().front();
    IRMapping map;
    map.map(body.getArguments(), launch.getInputs());
    Operation *before = launch->getPrevNode(); // or null
    for (Operation &op : body.without_terminator()) builder.clone(op, map);
    SmallVector<Value> parts, sums;
    for (Value result : body.getTerminator()->getOperands()) {
      ReduceOp sum = sumOf(map.lookup(result));
      int64_t rows = elementsOf(sum.getInput()) / elementsOf(sum);
      SmallVector<int64_t> shape{rows / count, count};
      llvm::append_range(shape, typeOf(sum).getShape());
      parts.push_back(b.reduce(ReductionKind::sum, b.reshape(sum.getInput(), shape), {0}));
    }
    std::string why;
    LaunchOp first = launchBefore(launch, parts, launch.getInputs(), table, why), second;
    if (first) {
      for (auto [part, result] : llvm::zip(first.getOutputs(), launch.getOutputs()))
        sums.push_back(b.cast(b.reduce(ReductionKind::sum, part, {0}), elementOf(result)));
      second = launchBefore(launch, sums, first.getOutputs(), table, why);
    }
    if (!second) return launch->emitOpError("cannot be summed in parts: ") << why;
    launch->replaceAllUsesWith(second);
    eraseComputed(before, launch);
    launch->erase();
    return success();
  }
};

} // namespace
} // namespace zero::fuse
