#include "compiler/codegen/ptx/dynamic_shared.h"
#include "llvm/IR/Constants.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace zero::codegen {

unsigned gatherShared(Module &module, const std::string &symbol) {
  LLVMContext &context = module.getContext();
  SmallVector<GlobalVariable *> arrays;
  while (auto *array = module.getGlobalVariable(symbol + "_shared_" + std::to_string(arrays.size()), true)) arrays.push_back(array);
  // Those that want it most come first, so that nothing is lost between two.
  stable_sort(arrays, [](auto *x, auto *y) { return x->getAlign().valueOrOne() > y->getAlign().valueOrOne(); });
  if (arrays.empty()) return 0;
  auto *given = new GlobalVariable(module, ArrayType::get(Type::getInt8Ty(context), 0), false, GlobalValue::ExternalLinkage, nullptr,
                                   symbol + "_shared", nullptr, GlobalValue::NotThreadLocal, arrays[0]->getAddressSpace());
  given->setAlignment(arrays[0]->getAlign().valueOrOne());
  uint64_t bytes = 0;
  for (GlobalVariable *array : arrays) {
    bytes = alignTo(bytes, array->getAlign().valueOrOne());
    Constant *at = ConstantExpr::getGetElementPtr(Type::getInt8Ty(context), given, ConstantInt::get(Type::getInt64Ty(context), bytes));
    array->replaceAllUsesWith(at);
    bytes += module.getDataLayout().getTypeAllocSize(array->getValueType());
    array->eraseFromParent();
  }
  return unsigned(bytes);
}

} // namespace zero::codegen
