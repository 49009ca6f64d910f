//===- codegen.cpp - kernels to vector code and their description ----------------------------------===//
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/emit.h"
#include "compiler/codegen/object.h"
#include "compiler/codegen/primitives.h"
#include "compiler/codegen/rows.h"
#include "compiler/nn/Nn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace zero::codegen {
namespace {

/// The functions of the body worth naming, in order, each once.
std::string operationNames(func::FuncOp kernel) {
  std::string names;
  llvm::StringMap<bool> seen;
  for (Operation &op : kernel.getBody().front()) {
    StringRef name = op.getName().stripDialect();
    auto cast = dyn_cast<nn::CastOp>(op); // between types that are computed alike: part of loads and stores
    if (cast && computed(scalarOf(cast.getInput())) == computed(scalarOf(cast.getResult()))) continue;
    if (op.hasTrait<OpTrait::IsTerminator>() || isa<nn::ConstantOp, nn::BroadcastOp, nn::ReshapeOp, nn::IotaOp>(op) ||
        !seen.try_emplace(name, true).second)
      continue;
    if (!names.empty()) names += ',';
    names += name;
  }
  return names.empty() ? "copy" : names;
}

std::string summaryOf(const Program &p, func::FuncOp kernel) {
  static const char *kinds[] = {"rows", "columns", "scatter", "scan", "tiles"};
  std::string text = p.kind == Program::Rows && p.reductions.empty() ? "map " : std::string(kinds[p.kind]) + " ";
  text += operationNames(kernel) + " [";
  std::vector<unsigned> dims(p.kind == Program::Columns ? p.reduced : p.outer);
  dims.insert(dims.end(), p.inner.begin(), p.inner.end());
  SmallVector<int64_t> sizes = llvm::map_to_vector(dims, [&](unsigned d) { return p.size(d); });
  if (const Attention &a = p.attention; p.kind == Program::Tiles) sizes = {a.batch, a.heads, a.queries, a.keys, a.dim};
  for (auto [i, size] : llvm::enumerate(sizes)) text += (i ? " x " : "") + std::to_string(size);
  return text + "]";
}

} // namespace

LogicalResult forProcessor(const Program &p, func::FuncOp kernel) {
  if (p.kind != Program::Tiles) return success();
  return kernel.emitOpError("is attention, which a processor does in a step of its own and in no kernel");
}

KernelInfo describe(const Program &p, func::FuncOp kernel) {
  KernelInfo info;
  info.symbol = p.name;
  info.extent = p.extent();
  if (p.kind == Program::Rows && p.sums.empty()) info.row = p.chunked() ? kChunk : p.points(p.inner);
  if (!p.sums.empty()) info.summed.push_back(p.extent()); // on a GPU in an order of their own
  if (p.kind == Program::Rows && !p.reductions.empty()) {
    for (unsigned dim : p.inner) info.summed.push_back(p.size(dim));
    llvm::append_range(info.summed, sumsAtOnce(p));
  }
  Work work = workOf(p);
  info.flops = work.flops;
  info.bytes = work.bytes;
  // Nanoseconds of one iteration on one core, roughly: 10 GB/s, 10 GFLOP/s. A piece should take 10 µs and more.
  double each = std::max(work.bytes, work.flops) / 10.0 / double(info.extent);
  info.grain = std::max<uint64_t>(1, uint64_t(10000.0 / std::max(each, 0.01)));
  if (p.kind == Program::Scatter) // every piece looks at all indices
    info.grain = std::max(info.grain, llvm::divideCeil(info.extent, 16));
  info.grain = std::min(info.grain, info.extent);
  info.args = p.inputs.size() + p.outputs.size();
  info.outputsFrom = p.inputs.size();
  for (const auto *side : {&p.inputs, &p.outputs})
    for (const Argument &argument : *side) info.argBytes.push_back(uint64_t(argument.elements) * bytesOf(argument.type));
  info.inplace = inplacePairs(p);
  info.summary = summaryOf(p, kernel);
  return info;
}

std::vector<uint64_t> boundsOf(const KernelInfo &info) {
  std::vector<uint64_t> numbers{info.extent, info.args};
  llvm::append_range(numbers, info.argBytes);
  numbers.push_back(info.row);
  return numbers;
}

FailureOr<KernelInfo> describe(func::FuncOp kernel) {
  auto program = buildProgram(kernel);
  if (failed(program)) return failure();
  return describe(*program, kernel);
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                  vector::VectorDialect>();
}

FailureOr<OwningOpRef<ModuleOp>> emitKernels(MLIRContext &context, ArrayRef<func::FuncOp> kernels, unsigned lanes) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  for (func::FuncOp kernel : kernels) {
    auto p = buildProgram(kernel);
    if (failed(p) || failed(forProcessor(*p, kernel))) return failure();
    emitProgram(*p, *module, lanes, UnknownLoc::get(&context));
  }
  return module;
}

} // namespace zero::codegen
