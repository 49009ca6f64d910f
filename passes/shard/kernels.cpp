//===- kernels.cpp - the kernels of model state, each made once per shape --------------------------===//
#include "passes/shard/kernels.h"
#include "compiler/nn/kernel.h"

using namespace mlir;

namespace zero::shard {
namespace {

std::string sized(StringRef stem, int64_t rows, int64_t columns) { return (stem + "_" + Twine(rows) + "x" + Twine(columns)).str(); }

func::FuncOp buildSumKernel(ModuleOp module, StringRef name, int64_t n) {
  nn::KernelBuilder k(module, name, {RankedTensorType::get({n}, Float32Type::get(module.getContext()))});
  return k.finish(k.b.reshape(k.b.reduce(nn::ReductionKind::sum, k.arg(0), {0}), {1}));
}

} // namespace

std::string suffixOf(Type type) { return type.isF32() ? "" : type.isF16() ? "_f16" : "_bf16"; }

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
