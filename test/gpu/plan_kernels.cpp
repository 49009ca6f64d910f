#include "plan_kernels.h"
#include "compiler/nn/Nn.h"
#include "compiler/plan/Plan.h"
#include "compiler/zero/Zero.h"
#include "mlir/Parser/Parser.h"
#include "passes/pipeline/alignments.h"

namespace zero::test {

PlanKernels::PlanKernels(const std::string &plan, const std::string &path)
    : file(plan::load(plan)), context(mlir::MLIRContext::Threading::DISABLED) {
  context.loadDialect<mlir::func::FuncDialect, nn::NnDialect, state::ZeroDialect, planir::PlanDialect>();
  module = mlir::parseSourceFile<mlir::ModuleOp>(path, &context);
  if (!module) throw std::runtime_error(path + " is no module");
  for (auto [kernel, alignment] : llvm::zip(file.plan.kernels(), pipeline::argumentAlignments(file.plan))) {
    auto function = module->lookupSymbol<mlir::func::FuncOp>(kernel.symbol());
    if (!function) throw std::runtime_error(path + " has no kernel '" + kernel.symbol() + "'; was it printed with the same flags?");
    kernels.push_back({function, alignment});
  }
}

} // namespace zero::test
