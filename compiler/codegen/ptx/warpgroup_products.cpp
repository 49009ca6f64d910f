//===- warpgroup_products.cpp - products of tiles that four warps make together -----------------------------===//
// A block is one warpgroup, which owns 64 rows; tiles of the other side have as many. Both operands are read from shared memory by the
// matrix units themselves, or the left one from registers where it is a fragment.
#include "compiler/codegen/ptx/tiles.h"
#include "compiler/codegen/ptx/warpgroup.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace zero::codegen {

Fragment TileEmitter::together(StringRef what, ValueRange operands, size_t results) {
  auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  SmallVector<Type> floats(results, f32);
  Type made = results ? Type(LLVM::LLVMStructType::getLiteral(b.getContext(), floats)) : LLVM::LLVMVoidType::get(b.getContext());
  if (!module.lookupSymbol(what)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    b.create<LLVM::LLVMFuncOp>(loc, what, LLVM::LLVMFunctionType::get(made, SmallVector<Type>(operands.getTypes())));
  }
  auto call = b.create<LLVM::CallOp>(loc, results ? TypeRange(made) : TypeRange(), what, operands);
  Fragment f;
  for (size_t i = 0; i < results; ++i) f.push_back(b.create<LLVM::ExtractValueOp>(loc, call.getResult(), int64_t(i)));
  return f;
}

Value TileEmitter::panel(const Tile &tile, int64_t number) {
  Value first = this->number(number * tile.rows * kPanelColumns);
  return sharedAddress(tile.memory, tile.first ? plus(tile.first, first) : first, bytesOf(Scalar::BF16));
}

Fragment TileEmitter::timesTransposedByWarpgroup(const Tile &a, const Tile &right) {
  Fragment sum;
  for (int64_t i = 0; i < a.columns / kPanelColumns; ++i) {
    bool first = sum.empty();
    SmallVector<Value> operands(sum.begin(), sum.end());
    operands.append({panel(a, i), panel(right, i)});
    sum = together(first ? kTimesTransposed : kPlusTimesTransposed, operands, stripSize(kPanelColumns));
  }
  return sum;
}

/// As in plusTimesByUnits, two blocks of a fragment are the left operand of 16 rows.
Fragment TileEmitter::plusTimesByWarpgroup(const Fragment &sum, const Fragment &f, const Tile &right) {
  SmallVector<Value> words;
  for (size_t i = 0; i < f.size(); i += 2) words.push_back(math.packed(f[i], f[i + 1]));
  Fragment result;
  size_t size = stripSize(kPanelColumns);
  for (int64_t i = 0; i < right.columns / kPanelColumns; ++i) {
    SmallVector<Value> operands(llvm::ArrayRef<Value>(sum).slice(size_t(i) * size, size));
    operands.append(words);
    operands.push_back(panel(right, i));
    result.append(together(kPlusTimes, operands, size));
  }
  return result;
}

} // namespace zero::codegen
