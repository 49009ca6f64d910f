//===- kernel_table.cpp - the kernels of a module, each once ----------------------------------------------===//
#include "passes/fuse/kernel_table.h"
#include "compiler/codegen/codegen.h"
#include "compiler/nn/same_operation.h"
#include "passes/fuse/access.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
namespace {

/// What people call a kernel with these operations.
std::string nameFor(func::FuncOp kernel) {
  llvm::StringMap<int> count;
  std::string names;
  int shown = 0;
  bool sumsColumns = false, hasMax = false;
  for (Operation &op : kernel.getBody().front()) {
    StringRef name = op.getName().stripDialect();
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      sumsColumns |= reductionOf(reduce).kind == Reduction::Columns;
      hasMax |= reduce.getKind() == ReductionKind::max;
    }
    ++count[name];
  }
  bool readsLabels = llvm::any_of(kernel.getArgumentTypes(), [](Type type) { return getElementTypeOrSelf(type).isSignlessInteger(64); });
  auto has = [&](StringRef name) { return count.lookup(name) > 0; };
  if (has("scatter_add"))
    names = "scatter_add";
  else if (hasMax && has("exp") && readsLabels)
    names = "cross_entropy";
  else if (hasMax && has("exp"))
    names = "softmax";
  else if (has("rsqrt") || (has("reduce") && count.lookup("reduce") > 1 && !sumsColumns))
    names = "norm";
  else if (has("erf") || has("tanh"))
    names = "gelu";
  else if (has("sigmoid")) // SiLU, GELU by way of tanh
    names = "gate";
  if (sumsColumns) names = names.empty() ? "columns" : "columns_" + names;
  if (!names.empty()) return names;
  llvm::StringMap<bool> seen;
  for (Operation &op : kernel.getBody().front()) {
    StringRef name = op.getName().stripDialect();
    if (shown == 3 || isa<ReshapeOp, ConstantOp, IotaOp, func::ReturnOp>(op) || !seen.try_emplace(name, true).second) continue;
    if (!names.empty()) names += '_';
    names += name;
    ++shown;
  }
  return names.empty() ? "fill" : names;
}

/// Fills an empty function with the operations between `operands`, its parameters, and `results`, which it returns; operands first, and
/// equal operations (recomputed ones meet here) once.
void copyBetween(ArrayRef<Value> operands, const Parts &parts, ArrayRef<Value> results, func::FuncOp kernel) {
  Location nowhere = kernel.getLoc();
  Block *body = kernel.addEntryBlock();
  OpBuilder b = OpBuilder::atBlockBegin(body);
  IRMapping map;
  DenseMap<Value, unsigned> cut; // operands of which parts are there
  for (auto [i, operand, argument] : llvm::enumerate(operands, body->getArguments()))
    if (parts[i])
      cut[operand] = unsigned(i);
    else
      map.map(operand, argument);
  SmallVector<Operation *> stack;
  llvm::SetVector<Operation *> cloned;
  for (Value v : results)
    if (!map.contains(v)) stack.push_back(v.getDefiningOp());
  std::reverse(stack.begin(), stack.end());
  DistinctOperations distinct;
  while (!stack.empty()) {
    Operation *op = stack.back();
    if (cloned.contains(op)) {
      stack.pop_back();
      continue;
    }
    Value whole = wholeOf(op);
    if (auto of = whole ? cut.find(whole) : cut.end(); of != cut.end()) {
      stack.pop_back();
      cloned.insert(op);
      map.map(op->getResult(0), readFrom(body->getArgument(of->second), *parts[of->second], op, Build{b, nowhere}));
      continue;
    }
    bool ready = true;
    for (Value v : llvm::reverse(op->getOperands()))
      if (!map.contains(v)) {
        stack.push_back(v.getDefiningOp());
        ready = false;
      }
    if (!ready) continue;
    stack.pop_back();
    cloned.insert(op);
    Operation *copy = b.clone(*op, map);
    copy->setLoc(nowhere);
    auto [first, fresh] = distinct.insert(copy);
    if (!fresh) {
      copy->erase();
      map.map(op->getResults(), (*first)->getResults());
    }
  }
  SmallVector<Value> returned;
  for (Value v : results) returned.push_back(map.lookup(v));
  b.create<func::ReturnOp>(nowhere, returned);
}

} // namespace

KernelTable::KernelTable(ModuleOp module) : symbols(module) {}

const KernelTable::Entry &KernelTable::kernelFor(ArrayRef<Value> results, ArrayRef<Value> operands, const Parts &parts, Operation *place) {
  MLIRContext *context = place->getContext();
  Location nowhere = UnknownLoc::get(context);
  if (operands.size() + results.size() > kMostTensors) {
    tooMany.why = "it would read and write " + std::to_string(operands.size() + results.size()) + " tensors at once, of at most " +
                  std::to_string(kMostTensors);
    return tooMany;
  }
  OpBuilder b(context);
  SmallVector<Type> types;
  for (auto [operand, part] : llvm::zip(operands, parts)) types.push_back(part ? Type(part->typeOf(operand)) : operand.getType());
  OwningOpRef<func::FuncOp> kernel = func::FuncOp::create(nowhere, "kernel", b.getFunctionType(types, TypeRange(ValueRange(results))));
  kernel->setPrivate();
  (*kernel)->setAttr(NnDialect::kKernelAttr, b.getUnitAttr());
  copyBetween(operands, parts, results, *kernel);

  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  auto [it, fresh] = known.try_emplace(text);
  if (!fresh) return it->second;

  FailureOr<codegen::KernelInfo> info = failure();
  {
    ScopedDiagnosticHandler keep(context, [&](Diagnostic &d) {
      it->second.why = d.str();
      return success();
    });
    info = codegen::describe(*kernel);
  }
  if (failed(info)) return it->second;
  SmallVector<Attribute> pairs;
  for (auto [result, operand] : info->inplace) pairs.push_back(b.getI64ArrayAttr({int64_t(result), int64_t(operand)}));
  (*kernel)->setAttr(NnDialect::kInplaceAttr, b.getArrayAttr(pairs));
  std::string base = nameFor(*kernel), name;
  do name = base + "_" + std::to_string(numbers[base]++);
  while (symbols.lookup(name));
  kernel->setSymName(name);
  it->second.function = *kernel;
  it->second.summed = std::move(info->summed);
  symbols.insert(kernel.release(), place->getIterator());
  ++made;
  return it->second;
}

} // namespace zero::fuse
