//===- object.cpp - a few kernels to one relocatable object -----------------------------------------===//
#include "compiler/codegen/object.h"
#include "compiler/codegen/emit.h"
#include "compiler/codegen/lower.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;

namespace zero::codegen {
namespace {

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
  std::vector<uint64_t> numbers = boundsOf(info);
  auto *table = llvm::ConstantDataArray::get(module.getContext(), numbers);
  new llvm::GlobalVariable(module, table->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, table,
                           info.symbol + ".bounds");
}

} // namespace

llvm::Expected<SmallVector<char, 0>> compileObject(ArrayRef<const KernelSource *> kernels, const CpuTarget &target) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  llvm::LLVMContext context;
  auto lowered = lowerKernels(context, [&](ModuleOp module, Location loc) {
    for (const KernelSource *kernel : kernels) emitProgram(kernel->program, module, target.lanes, loc);
  });
  if (!lowered) return lowered.takeError();
  std::unique_ptr<llvm::Module> code = std::move(*lowered);

  std::string triple = "x86_64-unknown-linux-gnu", error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend) return llvm::createStringError(error);
  std::string width = std::to_string(target.lanes * 32);
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.name, "", llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
  code->setTargetTriple(triple);
  code->setDataLayout(machine->createDataLayout());
  std::vector<llvm::Function *> bodies;
  for (llvm::Function &f : *code)
    if (!f.isDeclaration()) bodies.push_back(&f);
  for (llvm::Function *f : bodies) exportThroughArray(*code, f, f->getName().str());
  for (const KernelSource *kernel : kernels) exportBounds(*code, kernel->info);
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
    return llvm::createStringError("LLVM cannot write objects for " + triple);
  assemble.run(*code);
  return object;
}

} // namespace zero::codegen
