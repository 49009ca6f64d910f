//===- kernels.cpp - the kernels of model state, each made once per shape --------------------------===//
#include "passes/shard/kernels.h"
#include "compiler/nn/Nn.h"

using namespace mlir;

namespace zero::shard {
namespace {

std::string sized(StringRef stem, int64_t rows, int64_t columns) { return (stem + "_" + Twine(rows) + "x" + Twine(columns)).str(); }

std::string suffixOf(Type half) { return half.isF16() ? "_f16" : "_bf16"; }

func::FuncOp buildSumKernel(ModuleOp module, StringRef name, int64_t n) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto in = RankedTensorType::get({n}, b.getF32Type()), out = RankedTensorType::get({1}, b.getF32Type());
  auto function = b.create<func::FuncOp>(module.getLoc(), name, b.getFunctionType({in}, {out}));
  function.setPrivate();
  function->setAttr(nn::NnDialect::kKernelAttr, b.getUnitAttr());
  b.setInsertionPointToStart(function.addEntryBlock());
  Value sum = b.create<nn::ReduceOp>(module.getLoc(), nn::ReductionKind::sum, function.getArgument(0), b.getDenseI64ArrayAttr({0}));
  Value one = b.create<nn::ReshapeOp>(module.getLoc(), out, sum);
  b.create<func::ReturnOp>(module.getLoc(), one);
  return function;
}

} // namespace

FlatSymbolRefAttr StateKernels::once(const std::string &name, llvm::function_ref<func::FuncOp()> build) {
  auto found = symbols.lookup<func::FuncOp>(name);
  if (!found) {
    found = build();
    symbols.insert(found);
  }
  return FlatSymbolRefAttr::get(found.getSymNameAttr());
}

FlatSymbolRefAttr StateKernels::update(train::OptimizerKind kind, int64_t rows, int64_t columns, const train::UpdateForm &form) {
  std::string stem = std::string(kind == train::OptimizerKind::SGD ? "sgd" : "adamw") +
                     (form.scaled  ? "_scaled"
                      : form.clips ? "_clip"
                      : form.apart ? "_apart"
                                   : "") +
                     (form.compute ? suffixOf(form.compute) : "");
  std::string name = sized(stem, rows, columns);
  return once(name, [&] { return train::buildUpdateKernel(module, name, kind, rows, columns, form); });
}

FlatSymbolRefAttr StateKernels::round(Type type, int64_t rows, int64_t columns) {
  std::string name = sized("round" + suffixOf(type), rows, columns);
  return once(name, [&] { return train::buildRoundKernel(module, name, rows, columns, type); });
}

FlatSymbolRefAttr StateKernels::accumulate(int64_t rows, int64_t columns) {
  std::string name = sized("accumulate", rows, columns);
  return once(name, [&] { return train::buildAccumulateKernel(module, name, rows, columns); });
}

FlatSymbolRefAttr StateKernels::sumSquares(int64_t rows, int64_t columns) {
  std::string name = sized("sum_squares", rows, columns);
  return once(name, [&] { return train::buildSumSquaresKernel(module, name, rows, columns); });
}

FlatSymbolRefAttr StateKernels::sum(int64_t n) {
  std::string name = "sum_" + std::to_string(n);
  return once(name, [&] { return buildSumKernel(module, name, n); });
}

} // namespace zero::shard
