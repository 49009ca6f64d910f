#include "plan_kernels.h"
#include "compiler/codegen/program.h"
#include "compiler/codegen/ptx/division.h"
#include "compiler/nn/Nn.h"
#include "compiler/nn/eval/eval.h"
#include "compiler/plan/Plan.h"
#include "compiler/zero/Zero.h"
#include "mlir/Parser/Parser.h"
#include "passes/pipeline/alignments.h"
#include "runtime/plan/target.h"

namespace zero::test {

PlanKernels::PlanKernels(const std::string &plan, const std::string &path)
    : file(plan::load(plan)), context(mlir::MLIRContext::Threading::DISABLED) {
  context.loadDialect<mlir::func::FuncDialect, nn::NnDialect, state::ZeroDialect, planir::PlanDialect>();
  module = mlir::parseSourceFile<mlir::ModuleOp>(path, &context);
  if (!module) throw std::runtime_error(path + " is no module");
  for (auto [kernel, alignment] : llvm::zip(file.plan.kernels(), pipeline::argumentAlignments(file.plan))) {
    if (plan::isForHost(file.plan, kernel)) continue; // they come last
    auto function = module->lookupSymbol<mlir::func::FuncOp>(kernel.symbol());
    if (!function) throw std::runtime_error(path + " has no kernel '" + kernel.symbol() + "'; was it printed with the same flags?");
    kernels.push_back({function, alignment});
  }
}

namespace {

runtime::Element elementOf(mlir::Type type) {
  using runtime::Element;
  if (type.isF32()) return Element::F32;
  if (type.isF64()) return Element::F64;
  if (type.isF16()) return Element::F16;
  if (type.isBF16()) return Element::BF16;
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return Element::BOOL;
  case 8:
    return Element::I8;
  case 16:
    return Element::I16;
  case 32:
    return Element::I32;
  default:
    return Element::I64;
  }
}

} // namespace

bool hasProcessorForm(mlir::func::FuncOp kernel) {
  auto program = codegen::buildProgram(kernel);
  return succeeded(program) && program->kind != codegen::Program::Tiles;
}

KernelCase caseOf(mlir::func::FuncOp kernel) {
  auto info = codegen::describeForGpu(kernel), onProcessor = codegen::describe(kernel);
  auto program = codegen::buildProgram(kernel);
  if (failed(info) || failed(onProcessor) || failed(program))
    throw std::runtime_error("kernel '" + kernel.getSymName().str() + "' cannot be compiled");
  KernelCase made{info->symbol,
                  info->extent,
                  {},
                  info->outputsFrom,
                  program->kind == codegen::Program::Tiles || !program->reductions.empty() || codegen::approximates(*program),
                  onProcessor->extent};
  if (!hasProcessorForm(kernel)) made.reference = Reference::Sample;
  for (mlir::TypeRange types : {mlir::TypeRange(kernel.getArgumentTypes()), mlir::TypeRange(kernel.getResultTypes())})
    for (mlir::Type type : types) {
      auto tensor = mlir::cast<mlir::RankedTensorType>(type);
      made.arguments.push_back({elementOf(tensor.getElementType()), uint64_t(tensor.getNumElements())});
    }
  return made;
}

void interpret(mlir::func::FuncOp kernel, KernelMemory &memory) {
  llvm::SmallVector<nn::Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    inputs.emplace_back(mlir::cast<mlir::RankedTensorType>(type));
    std::memcpy(inputs.back().bytes.data(), memory.data(i), inputs.back().bytes.size());
  }
  auto results = nn::evaluateFunction(kernel, inputs);
  if (failed(results)) throw std::runtime_error("the interpreter does not take kernel '" + kernel.getSymName().str() + "'");
  for (auto [i, result] : llvm::enumerate(*results))
    std::memcpy(memory.whole(inputs.size() + i).data() + KernelMemory::kGuard, result.bytes.data(), result.bytes.size());
}

} // namespace zero::test
