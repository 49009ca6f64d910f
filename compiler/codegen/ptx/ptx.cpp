//===- ptx.cpp - kernels to one module of PTX -------------------------------------------------------------===//
#include "compiler/codegen/ptx/ptx.h"
#include "compiler/codegen/groups.h"
#include "compiler/codegen/lower.h"
#include "compiler/codegen/ptx/division.h"
#include "compiler/codegen/ptx/dynamic_shared.h"
#include "compiler/codegen/ptx/gpu_module.h"
#include "compiler/codegen/ptx/warpgroup.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

using namespace mlir;

namespace zero::codegen {
namespace {

/// Makes an entry of the function, launched with the division's threads, and with registers for as many blocks as it wishes.
void markEntry(llvm::Module &module, llvm::StringRef symbol, const Division &division) {
  llvm::LLVMContext &context = module.getContext();
  auto *annotations = module.getOrInsertNamedMetadata("nvvm.annotations");
  auto say = [&](const char *what, unsigned number) {
    auto *i32 = llvm::Type::getInt32Ty(context);
    annotations->addOperand(
        llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(module.getFunction(symbol)), llvm::MDString::get(context, what),
                                    llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i32, number))}));
  };
  say("kernel", 1);
  say("reqntidx", division.threads);
  if (division.resident) say("minctasm", division.resident);
}

/// PTX would declare it, and no driver could load that.
llvm::Error refersToNothing(const llvm::Module &module) {
  for (const llvm::Function &f : module)
    if (f.isDeclaration() && !f.isIntrinsic() && !f.use_empty())
      return llvm::createStringError("generated code refers to the symbol '" + f.getName().str() + "', which nobody defines");
  return llvm::Error::success();
}

llvm::Expected<Code> compileGroup(ArrayRef<const KernelSource *> kernels, const GpuTarget &target) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::LLVMContext context;
  auto made = gpuModule(context, kernels);
  if (!made) return made.takeError();
  llvm::Module &module = **made;
  for (const KernelSource *kernel : kernels) {
    Division division = divisionOf(kernel->program);
    markEntry(module, kernel->info.symbol, division);
    if (unsigned bytes = division.shared ? gatherShared(module, kernel->info.symbol) : 0; bytes > division.shared)
      return llvm::createStringError("kernel '" + kernel->info.symbol + "' takes " + std::to_string(bytes) +
                                     " bytes of shared memory and is launched with " + std::to_string(division.shared));
  }
  lowerWarpgroupCalls(module);
  std::string triple = "nvptx64-nvidia-cuda", error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend) return llvm::createStringError(error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // what is one operation is written as one (math.h)
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.architecture, target.version(), options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  optimize(module, *machine);
  if (auto undefined = refersToNothing(module)) return std::move(undefined);
  Code text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager print;
  if (machine->addPassesToEmitFile(print, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("LLVM cannot write PTX for " + target.architecture);
  print.run(module);
  return text;
}

/// An iteration is a block where each covers as many elements: where the optimizer's hyper-parameters change inside a bucket, only the
/// first blocks are launched.
void describeForGpu(KernelInfo &info, const Program &program) {
  Division division = divisionOf(program);
  info.grid = division.grid();
  if (division.form == Division::Map)
    info.row = uint64_t(division.threads) * division.lanes;
  else if (division.form == Division::Rows)
    info.row = uint64_t(program.points(program.inner)) * (division.threads / division.team);
  else
    return;
  info.extent = division.blocks;
  info.grain = std::min(info.grain, info.extent);
}

/// What the loader compares with the plan. LLVM would write numbers as bytes.
std::string boundsText(const KernelInfo &info) {
  std::vector<uint64_t> numbers = boundsOf(info);
  std::string text = ".visible .global .align 8 .u64 " + info.symbol + "_bounds[" + std::to_string(numbers.size()) + "] = {";
  for (size_t i = 0; i < numbers.size(); ++i) text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "};\n";
}

/// The modules of groups as one: the first one's directives hold for all.
std::string joined(ArrayRef<Code> modules, ArrayRef<KernelSource> kernels) {
  constexpr StringRef lastDirective = ".address_size 64\n";
  std::string text;
  for (const Code &code : modules) {
    StringRef module(code.data(), code.size());
    size_t body = module.find(lastDirective) + lastDirective.size();
    if (text.empty()) {
      text = module.take_front(body).str() + "\n";
      for (const KernelSource &kernel : kernels) text += boundsText(kernel.info);
    }
    text += module.drop_front(body);
  }
  return text;
}

} // namespace

FailureOr<GpuTarget> GpuTarget::fromName(StringRef name, std::string &error) {
  if (name == "sm_80" || name == "sm_90" || name == "sm_90a") return GpuTarget{name.str()};
  error = "unknown GPU architecture '" + name.str() +
          "': expected sm_80 or sm_90, which later GPUs run too, or sm_90a, which H100 and H200 run";
  return failure();
}

FailureOr<KernelInfo> describeForGpu(func::FuncOp kernel) {
  auto program = buildProgram(kernel);
  if (failed(program)) return failure();
  KernelInfo info = describe(*program, kernel);
  describeForGpu(info, *program);
  return info;
}

FailureOr<std::string> compileToPtx(ArrayRef<GpuKernel> kernels, const GpuTarget &target, unsigned threads) {
  if (kernels.empty()) return std::string();
  SmallVector<func::FuncOp> functions;
  for (const GpuKernel &kernel : kernels) functions.push_back(kernel.function);
  auto sources = sourcesOf(functions);
  if (failed(sources)) return failure();
  for (auto [source, kernel] : llvm::zip(*sources, kernels)) {
    source.alignment = kernel.alignment;
    describeForGpu(source.info, source.program);
  }
  auto compiled = compileGroups(*sources, threads, [&](ArrayRef<const KernelSource *> group) { return compileGroup(group, target); });
  if (!compiled) return emitError(functions.front().getLoc()) << llvm::toString(compiled.takeError());
  return joined(*compiled, *sources);
}

} // namespace zero::codegen
