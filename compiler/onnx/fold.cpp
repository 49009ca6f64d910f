//===- fold.cpp - evaluating operations whose operands are known -----------------------------------===//
#include "compiler/onnx/emit.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace zero::onnx {

/// A broadcast of more elements than this is not folded: it stays an operation, and so does what is computed from it. So a mask of a long
/// sequence is never a constant of all pairs of positions, and nn-raise-attention may see that it compares them.
static constexpr int64_t kMostExpanded = int64_t(1) << 24; // elements
/// Operands up to this size are the same if their bytes are, larger ones if they are one tensor. So larger results are remembered: exports
/// compute the same mask again in every layer.
static constexpr uint64_t kCompared = 4096; // bytes

/// What an operation of the dialect computes from known operands: the same key, the same results. Types, names and attributes are unique in
/// their context, so their addresses tell them apart.
static std::string keyOf(Operation *op, ArrayRef<Val> operands) {
  std::string key;
  auto add = [&](const void *address) { key.append(reinterpret_cast<const char *>(&address), sizeof address); };
  add(op->getName().getAsOpaquePointer());
  add(op->getAttrDictionary().getAsOpaquePointer());
  for (mlir::Type t : op->getResultTypes()) add(t.getAsOpaquePointer());
  for (const Val &v : operands) {
    add(v.type().getAsOpaquePointer());
    if (v.constant->bytes.size() <= kCompared)
      key.append(v.constant->bytes.data(), v.constant->bytes.size());
    else
      add(v.constant.get());
  }
  return key;
}

std::optional<Vals> Emitter::fold(ArrayRef<Val> operands, Build build) {
  SmallVector<Value> values;
  SmallVector<const nn::Tensor *> tensors;
  int64_t given = 0; // elements
  for (const Val &v : operands) {
    given += v.type().getNumElements();
    values.push_back(scratch->addArgument(v.type(), location));
    tensors.push_back(v.constant.get());
  }
  OpBuilder inside(context());
  inside.setInsertionPointToEnd(scratch);
  Operation *op = build(inside, values);
  auto done = llvm::make_scope_exit([&] {
    op->erase();
    scratch->eraseArguments([](BlockArgument) { return true; });
  });
  if (!isTaken(op)) return Vals();
  uint64_t bytes = 0; // of the results
  for (mlir::Type t : op->getResultTypes()) {
    auto shaped = cast<RankedTensorType>(t);
    if (!fits(shaped.getShape())) return Vals();
    if (shaped.getNumElements() > std::max(kMostExpanded, 2 * given)) return std::nullopt;
    if (!affords(shaped.getShape(), shaped.getElementType())) return Vals();
    bytes += nn::bytesOf(shaped);
  }
  Folded *remembered = nullptr;
  if (bytes > kCompared) {
    remembered = &folded[keyOf(op, operands)];
    if (!remembered->results.empty()) return remembered->results;
  }
  std::string why;
  auto evaluated = [&] {
    ScopedDiagnosticHandler keep(context(), [&](Diagnostic &d) {
      if (why.empty()) why = ": " + StringRef(d.str()).split("' op ").second.str();
      return success();
    });
    return nn::evaluate(op, tensors);
  }();
  if (mlir::failed(evaluated)) {
    fail("it cannot be computed at compile time" + why);
    return Vals();
  }
  Vals results;
  for (nn::Tensor &t : *evaluated) results.push_back(std::move(t));
  if (remembered) *remembered = {results, Vals(operands)};
  return results;
}

} // namespace zero::onnx
