//===- object.cpp - vector code to one shared object -----------------------------------------------===//
// Kernels are emitted into a context of their own, lowered by the conversions of MLIR, optimised and
// assembled by LLVM and linked by lld, all in this process.
#include "compiler/codegen/codegen.h"
#include "lld/Common/Driver.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace mlir;

namespace zero::codegen {
namespace {

LogicalResult lower(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  pm.addPass(createConvertSCFToCFPass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.force32BitVectorIndices = false;
  pm.addPass(createConvertVectorToLLVMPass(vectors));
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createArithToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(functions));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  return pm.run(module);
}

/// extern "C" void NAME(void *const *args, int64_t begin, int64_t end) around the function of pointers of that name.
void exportThroughArray(llvm::Module &module, llvm::Function *body, const std::string &name) {
  llvm::LLVMContext &context = module.getContext();
  body->setName(name + ".body");
  body->setLinkage(llvm::GlobalValue::InternalLinkage);
  body->addFnAttr(llvm::Attribute::AlwaysInline);
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *i64 = llvm::Type::getInt64Ty(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, i64, i64}, false);
  auto *wrapper = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", wrapper));
  llvm::SmallVector<llvm::Value *> arguments;
  for (unsigned i = 0; i + 2 < body->arg_size(); ++i)
    arguments.push_back(b.CreateLoad(pointer, b.CreateConstGEP1_64(pointer, wrapper->getArg(0), i)));
  arguments.push_back(wrapper->getArg(1));
  arguments.push_back(wrapper->getArg(2));
  b.CreateCall(body, arguments);
  b.CreateRetVoid();
}

/// What the loader compares with the plan: a plan that asks more of a kernel than it was made for is not run.
void exportBounds(llvm::Module &module, const KernelInfo &info) {
  SmallVector<uint64_t> numbers{info.extent, info.args};
  llvm::append_range(numbers, info.argBytes);
  auto *table = llvm::ConstantDataArray::get(module.getContext(), ArrayRef<uint64_t>(numbers));
  new llvm::GlobalVariable(module, table->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, table,
                           info.symbol + ".bounds");
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = false; // the code is vectors already
  tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

FailureOr<SmallVector<char, 0>> link(ArrayRef<char> object, Location loc) {
  int in = memfd_create("kernels.o", MFD_CLOEXEC), out = memfd_create("kernels.so", MFD_CLOEXEC);
  auto closeBoth = llvm::make_scope_exit([&] {
    close(in);
    close(out);
  });
  if (in < 0 || out < 0 || write(in, object.data(), object.size()) != ssize_t(object.size()))
    return emitError(loc) << "cannot hold the kernels' object in memory: " << strerror(errno);
  std::string source = "/proc/self/fd/" + std::to_string(in);
  // lld renames its output into place, so it needs a directory; /dev/shm keeps it off the disk.
  char path[] = "/dev/shm/zero-kernels-XXXXXX";
  const char *directory = mkdtemp(path);
  std::string folder = directory ? directory : "", target = folder + "/kernels.so";
  if (!directory) return emitError(loc) << "cannot make a folder in /dev/shm: " << strerror(errno);
  auto cleanUp = llvm::make_scope_exit([&] {
    unlink(target.c_str());
    rmdir(folder.c_str());
  });
  std::string complaints;
  llvm::raw_string_ostream complain(complaints);
  std::vector<const char *> arguments{"ld.lld", "-shared",     "--threads=1",  "-Bsymbolic", "--no-undefined", "--build-id=none",
                                      "-z",     "noexecstack", source.c_str(), "-o",         target.c_str()};
  auto result = lld::lldMain(arguments, complain, complain, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode) return emitError(loc) << "kernels do not link: " << complaints;
  auto buffer = llvm::MemoryBuffer::getFile(target, false, false);
  if (!buffer) return emitError(loc) << "cannot read the linked kernels back: " << buffer.getError().message();
  StringRef bytes = (*buffer)->getBuffer();
  return SmallVector<char, 0>(bytes.begin(), bytes.end());
}

/// A kernel that calls anything (a function of the C library, say) would not load everywhere.
LogicalResult refersToNothing(ArrayRef<char> object, Location loc) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(StringRef(object.data(), object.size()), "kernels.o"));
  if (!file) return emitError(loc) << "the kernels' object is malformed: " << llvm::toString(file.takeError());
  for (const auto &symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (flags && name && (*flags & llvm::object::BasicSymbolRef::SF_Undefined) && !name->empty() && *name != "_GLOBAL_OFFSET_TABLE_")
      return emitError(loc) << "generated code refers to the symbol '" << *name << "', which nobody defines";
  }
  return success();
}

} // namespace

FailureOr<SmallVector<char, 0>> compileToSharedObject(ArrayRef<func::FuncOp> kernels, const CpuTarget &target) {
  if (kernels.empty()) return SmallVector<char, 0>();
  Location loc = func::FuncOp(kernels.front()).getLoc();
  DialectRegistry registry;
  registerDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = emitKernels(context, kernels, target.lanes);
  if (failed(module) || failed(verify(**module)) || failed(lower(**module))) return emitError(loc) << "kernels could not be lowered";

  llvm::LLVMContext llvmContext;
  auto code = translateModuleToLLVMIR(**module, llvmContext, "kernels");
  if (!code) return emitError(loc) << "kernels could not be translated";
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string triple = "x86_64-unknown-linux-gnu", error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend) return emitError(loc) << error;
  std::string width = std::to_string(target.lanes * 32);
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.name, "", llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
  code->setTargetTriple(triple);
  code->setDataLayout(machine->createDataLayout());
  std::vector<llvm::Function *> bodies;
  for (llvm::Function &f : *code)
    if (!f.isDeclaration()) bodies.push_back(&f);
  for (llvm::Function *f : bodies) exportThroughArray(*code, f, f->getName().str());
  for (func::FuncOp kernel : kernels) {
    auto info = describe(kernel);
    if (failed(info)) return failure();
    exportBounds(*code, *info);
  }
  for (llvm::Function &f : *code)
    if (!f.isDeclaration()) {
      f.addFnAttr("target-cpu", target.name);
      f.addFnAttr("prefer-vector-width", width);
      f.addFnAttr("no-builtins"); // no loop becomes a call of memcpy or memset
      f.addFnAttr(llvm::Attribute::NoUnwind);
    }
  optimize(*code, *machine);

  SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager assemble;
  if (machine->addPassesToEmitFile(assemble, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return emitError(loc) << "LLVM cannot write objects for " << triple;
  assemble.run(*code);
  if (failed(refersToNothing(object, loc))) return failure();
  return link(object, loc);
}

} // namespace zero::codegen
