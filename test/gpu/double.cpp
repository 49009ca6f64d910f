//===- double.cpp - kernels for a GPU as machine code of the processor ------------------------------------===//
#include "double.h"
#include "compiler/codegen/groups.h"
#include "compiler/codegen/link.h"
#include "compiler/codegen/lower.h"
#include "compiler/codegen/ptx/division.h"
#include "compiler/codegen/ptx/gpu_module.h"
#include "compiler/codegen/ptx/warpgroup.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;
namespace ids = llvm::Intrinsic;

namespace zero::test {
namespace {

constexpr const char *kTriple = "x86_64-unknown-linux-gnu", *kProcessor = "x86-64-v3";

/// Places in the table of GpuHooks, and the operands that a call hands on: as they are, or all of them in memory, with room for the results
/// after them.
struct Hook {
  ids::ID intrinsic;
  unsigned place;
  llvm::SmallVector<unsigned> operands;
  bool inMemory = false;
};
const Hook kHooks[] = {
    {ids::nvvm_read_ptx_sreg_tid_x, 0, {}},
    {ids::nvvm_read_ptx_sreg_ctaid_x, 1, {}},
    {ids::nvvm_barrier0, 2, {}},
    {ids::nvvm_barrier0_or, 3, {0}},
    {ids::nvvm_bar_warp_sync, 4, {}},
    {ids::nvvm_shfl_sync_bfly_i32, 5, {1, 2}},
    {ids::nvvm_mma_m16n8k16_row_col_bf16, 6, {}, true},
    {ids::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16, 7, {}, true},
    {ids::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16, 8, {}, true},
    {ids::nvvm_ff2bf16x2_rn, 9, {0, 1}},
    {ids::nvvm_ex2_approx_ftz_f, 10, {0}},
    {ids::nvvm_cp_async_cg_shared_global_16_s, 11, {0, 1, 2}},
    {ids::nvvm_cp_async_ca_shared_global_4_s, 12, {0, 1, 2}},
    {ids::nvvm_cp_async_wait_all, 13, {}},
    {ids::nvvm_rcp_approx_ftz_f, 14, {0}},
};
/// The same of functions that are no intrinsics.
struct NamedHook {
  llvm::StringLiteral function;
  Hook hook;
};
const NamedHook kNamedHooks[] = {
    {codegen::kTimesTransposed, {ids::not_intrinsic, 15, {}, true}},
    {codegen::kPlusTimesTransposed, {ids::not_intrinsic, 16, {}, true}},
    {codegen::kPlusTimes, {ids::not_intrinsic, 17, {}, true}},
    {codegen::kFenceShared, {ids::not_intrinsic, 18, {}}},
};
constexpr unsigned kPlaces = 19;

/// Null: none.
const Hook *hookOf(const llvm::CallInst *call) {
  if (const NamedHook *named =
          llvm::find_if(kNamedHooks, [&](const NamedHook &h) { return h.function == call->getCalledFunction()->getName(); });
      named != std::end(kNamedHooks))
    return &named->hook;
  const Hook *hook = llvm::find_if(kHooks, [&](const Hook &h) { return h.intrinsic == call->getIntrinsicID(); });
  return hook == std::end(kHooks) ? nullptr : hook;
}

/// The results of `call`, by a function that finds the operands in memory and leaves the results after them.
llvm::Value *callInMemory(llvm::IRBuilder<> &b, llvm::CallInst *call, llvm::Value *target) {
  auto *results = cast<llvm::StructType>(call->getType());
  llvm::SmallVector<llvm::Type *> types;
  for (llvm::Value *operand : call->args()) types.push_back(operand->getType());
  unsigned first = unsigned(types.size());
  llvm::append_range(types, results->elements());
  auto *registers = llvm::StructType::get(b.getContext(), types);
  llvm::BasicBlock &entry = call->getFunction()->getEntryBlock();
  llvm::Value *memory = llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(registers);
  for (unsigned i = 0; i < first; ++i) b.CreateStore(call->getArgOperand(i), b.CreateStructGEP(registers, memory, i));
  b.CreateCall(llvm::FunctionType::get(b.getVoidTy(), {memory->getType()}, false), target, {memory});
  llvm::Value *joined = llvm::PoisonValue::get(results);
  for (unsigned i = 0; i < results->getNumElements(); ++i)
    joined = b.CreateInsertValue(joined, b.CreateLoad(types[first + i], b.CreateStructGEP(registers, memory, first + i)), i);
  return joined;
}

llvm::Error callHooks(llvm::Module &module) {
  auto *pointer = llvm::PointerType::get(module.getContext(), 0);
  auto *type = llvm::ArrayType::get(pointer, kPlaces);
  auto *hooks = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::ExternalLinkage, llvm::ConstantAggregateZero::get(type),
                                         "zero_gpu_hooks");
  llvm::SmallVector<llvm::CallInst *> calls;
  for (llvm::Function &f : module)
    for (llvm::Instruction &i : llvm::instructions(f))
      if (auto *call = dyn_cast<llvm::CallInst>(&i); call && call->getCalledFunction() &&
                                                     (call->getCalledFunction()->getName().starts_with("llvm.nvvm.") ||
                                                      call->getCalledFunction()->getName().starts_with(codegen::kWarpgroupCalls)))
        calls.push_back(call);
  for (llvm::CallInst *call : calls) {
    const Hook *hook = hookOf(call);
    if (!hook) return llvm::createStringError("the double of a GPU has no " + call->getCalledFunction()->getName().str());
    llvm::IRBuilder<> b(call);
    llvm::SmallVector<llvm::Value *> operands;
    llvm::SmallVector<llvm::Type *> types;
    for (unsigned i : hook->operands) operands.push_back(call->getArgOperand(i)), types.push_back(operands.back()->getType());
    llvm::Value *target = b.CreateLoad(pointer, b.CreateConstGEP2_32(type, hooks, 0, hook->place));
    // Two halves travel as a word.
    llvm::Type *result = call->getType(), *given = result->isVectorTy() ? b.getInt32Ty() : result;
    llvm::Value *replacement =
        hook->inMemory ? callInMemory(b, call, target) : b.CreateCall(llvm::FunctionType::get(given, types, false), target, operands);
    if (replacement->getType() != result) replacement = b.CreateBitCast(replacement, result);
    if (!call->getType()->isVoidTy()) call->replaceAllUsesWith(replacement);
    call->eraseFromParent();
  }
  return llvm::Error::success();
}

void exportNumbers(llvm::Module &module, const std::string &name, const std::vector<uint64_t> &numbers) {
  auto *table = llvm::ConstantDataArray::get(module.getContext(), llvm::ArrayRef(numbers));
  new llvm::GlobalVariable(module, table->getType(), true, llvm::GlobalValue::ExternalLinkage, table, name);
}

/// SYMBOL(void *const *args), what one thread does; SYMBOL.grid; its shared memory by name.
void exportKernel(llvm::Module &module, const std::string &symbol, const codegen::Grid &grid) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Function *body = module.getFunction(symbol);
  body->setName(symbol + ".body");
  body->setLinkage(llvm::GlobalValue::InternalLinkage);
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false);
  auto *thread = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", thread));
  llvm::SmallVector<llvm::Value *> arguments;
  for (unsigned i = 0; i < body->arg_size(); ++i)
    arguments.push_back(b.CreateLoad(pointer, b.CreateConstGEP1_64(pointer, thread->getArg(0), i)));
  b.CreateCall(body, arguments);
  b.CreateRetVoid();

  std::vector<uint64_t> numbers{grid.blocks, grid.threads, 0};
  while (auto *array = module.getGlobalVariable(symbol + "_shared_" + std::to_string(numbers[2]), true)) {
    array->setLinkage(llvm::GlobalValue::ExternalLinkage);
    array->setInitializer(llvm::Constant::getNullValue(array->getValueType()));
    numbers.push_back(module.getDataLayout().getTypeAllocSize(array->getValueType()));
    ++numbers[2];
  }
  exportNumbers(module, symbol + ".grid", numbers);
}

llvm::Expected<codegen::Code> compileGroup(ArrayRef<const codegen::KernelSource *> kernels) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  llvm::LLVMContext context;
  auto made = codegen::gpuModule(context, kernels);
  if (!made) return made.takeError();
  llvm::Module &module = **made;
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (!backend) return llvm::createStringError(error);
  std::unique_ptr<llvm::TargetMachine> machine(
      backend->createTargetMachine(kTriple, kProcessor, "", llvm::TargetOptions(), llvm::Reloc::PIC_));
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
  if (auto unknown = callHooks(module)) return std::move(unknown);
  for (const codegen::KernelSource *kernel : kernels)
    exportKernel(module, kernel->info.symbol, codegen::divisionOf(kernel->program).grid());
  for (llvm::Function &f : module)
    if (!f.isDeclaration()) f.addFnAttr("target-cpu", kProcessor), f.addFnAttr("no-builtins");
  codegen::optimize(module, *machine);
  codegen::Code object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager assemble;
  if (machine->addPassesToEmitFile(assemble, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("LLVM cannot write objects");
  assemble.run(module);
  return object;
}

} // namespace

FailureOr<SmallVector<char, 0>> compileDouble(ArrayRef<codegen::GpuKernel> kernels) {
  SmallVector<func::FuncOp> functions;
  for (const codegen::GpuKernel &kernel : kernels) functions.push_back(kernel.function);
  auto sources = codegen::sourcesOf(functions);
  if (failed(sources)) return failure();
  SmallVector<const codegen::KernelSource *> all; // as one group: they share the table of hooks
  for (auto [source, kernel] : llvm::zip(*sources, kernels)) {
    source.alignment = kernel.alignment;
    all.push_back(&source);
  }
  Location loc = functions.front().getLoc();
  auto object = compileGroup(all);
  if (!object) return emitError(loc) << llvm::toString(object.takeError());
  auto linked = codegen::link({std::move(*object)});
  if (!linked) return emitError(loc) << llvm::toString(linked.takeError());
  return std::move(*linked);
}

} // namespace zero::test
