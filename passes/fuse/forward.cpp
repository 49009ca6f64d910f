//===- forward.cpp - the forward pass of a training step, as a chain of tensors that are made --------------===//
#include "passes/fuse/forward.h"
#include "compiler/codegen/codegen.h"
#include "compiler/nn/library/products.h"
#include "compiler/nn/rows.h"
#include "passes/train/backward.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
namespace {

/// Multiply-adds of a product that take as long as moving one byte: the measure in which both are compared. A core with 512-bit vectors
/// does some fifty in a nanosecond and moves some six bytes.
constexpr uint64_t kProductsPerByte = 8;

ValueRange returned(func::FuncOp kernel) { return kernel.getBody().front().getTerminator()->getOperands(); }

uint64_t costOf(Operation *op, uint64_t moved) {
  uint64_t products = multiplyAddsOf(op);
  return products ? products : moved * kProductsPerByte;
}

/// Equal for kernels of the same operations, whichever random numbers they draw: those of each layer's dropout are others.
uint64_t kindOf(func::FuncOp kernel) {
  llvm::DenseMap<Value, unsigned> number;
  llvm::hash_code kind = llvm::hash_value(kernel.getFunctionType().getAsOpaquePointer());
  for (BlockArgument argument : kernel.getArguments()) number[argument] = number.size();
  for (Operation &op : kernel.getBody().front()) {
    kind = llvm::hash_combine(kind, op.getName().getAsOpaquePointer());
    for (NamedAttribute attribute : op.getAttrs())
      if (!op.hasTrait<Draws>() || attribute.getName() != "id")
        kind = llvm::hash_combine(kind, attribute.getName().getAsOpaquePointer(), attribute.getValue().getAsOpaquePointer());
    for (Value v : op.getOperands()) kind = llvm::hash_combine(kind, number.lookup(v), v.getType().getAsOpaquePointer());
    for (Value v : op.getResults()) number[v] = number.size();
  }
  return kind;
}

/// The first operation of backward: after the one that makes the loss, or a product before it that the loss does not depend on.
Operation *backwardOf(Operation *loss) {
  DenseSet<Operation *> leading{loss};
  Operation *first = loss->getNextNode();
  for (Operation *op = loss; op; op = op->getPrevNode()) {
    if (leading.contains(op)) {
      for (Value v : op->getOperands())
        if (Operation *from = v.getDefiningOp()) leading.insert(from);
    } else if (isa<MatMulOp, MatMulEpilogueOp, BlockMatMulOp>(op)) {
      first = op;
    }
  }
  return first;
}

} // namespace

Operation *Forward::lossOf(func::FuncOp train) {
  Value loss = train::returnedLoss(train);
  return loss ? viewed(loss).getDefiningOp() : nullptr;
}

Forward::Forward(func::FuncOp train, KernelTable &kernels) : train(train), kernels(kernels) {
  for (auto kernel : train->getParentOfType<ModuleOp>().getOps<func::FuncOp>())
    if (kernel->hasAttr(NnDialect::kKernelAttr)) launched[kernel.getSymName()] = kernel;
  backward = backwardOf(lossOf(train));
  for (Operation &op : train.getBody().front()) {
    if (&op == backward) break;
    if (auto launch = dyn_cast<LaunchOp>(op)) {
      addLaunch(launch);
    } else if (!isa<GetOp, ConstantOp, GradientOp>(op) && !isView(&op)) {
      uint64_t bytes = 0;
      SmallVector<unsigned> results;
      for (OpResult result : op.getResults()) bytes += bytesOf(typeOf(result)), results.push_back(result.getResultNumber());
      // What a parameter is to it is part of what it does; which one it is is not.
      llvm::hash_code kind = llvm::hash_combine(op.getName().getAsOpaquePointer(), op.getAttrDictionary().getAsOpaquePointer());
      for (Value v : op.getOperands()) kind = llvm::hash_combine(kind, v.getType().getAsOpaquePointer(), bool(indexOf(v)));
      add(&op, results, bytes, op.getOperands(), kind);
    }
  }
  for (Operation *op = backward; op; op = op->getNextNode())
    if (!isView(op))
      for (Value v : op->getOperands())
        if (auto i = indexOf(v)) made[*i].read = true;
}

std::optional<uint32_t> Forward::indexOf(Value v) const {
  auto found = index.find(storedIn(v));
  return found == index.end() ? std::nullopt : std::optional(found->second);
}

void Forward::add(Operation *op, ArrayRef<unsigned> results, uint64_t bytes, ValueRange reads, uint64_t kind) {
  Made one;
  one.bytes = bytes;
  one.kind = kind;
  uint64_t moved = bytes;
  for (Value v : reads) {
    moved += bytesOf(typeOf(v));
    if (auto i = indexOf(v); i && !llvm::is_contained(one.needs, *i)) one.needs.push_back(*i);
  }
  one.cost = costOf(op, moved);
  for (unsigned r : results) index[op->getResult(r)] = uint32_t(made.size());
  made.push_back(std::move(one));
  sources.push_back({op, SmallVector<unsigned>(results)});
}

//===----------------------------------------------------------------------===//
// Results of kernels by themselves
//===----------------------------------------------------------------------===//

Forward::Part Forward::partOf(func::FuncOp kernel, ArrayRef<unsigned> results) {
  auto [known, fresh] = parts.try_emplace({kernel, SmallVector<unsigned>(results)});
  if (!fresh) return known->second;
  SmallVector<Value> wanted;
  for (unsigned r : results)
    if (!llvm::is_contained(wanted, returned(kernel)[r])) wanted.push_back(returned(kernel)[r]);
  bool isAll = llvm::equal(wanted, returned(kernel)) && llvm::none_of(wanted, [](Value v) { return isa<BlockArgument>(v); });
  if (isAll) return known->second = {SmallVector<Value>(kernel.getArguments()), kernel};
  llvm::SetVector<Value> operands;
  DenseSet<Value> seen(wanted.begin(), wanted.end());
  SmallVector<Value> work(llvm::reverse(wanted));
  while (!work.empty()) {
    Value v = work.pop_back_val();
    bool own = llvm::is_contained(wanted, v);
    if (!own && (isa<BlockArgument>(v) || llvm::is_contained(returned(kernel), v))) {
      operands.insert(v);
      continue;
    }
    if (!v.getDefiningOp()) return known->second = {}; // an argument, returned as it is
    for (Value operand : llvm::reverse(v.getDefiningOp()->getOperands()))
      if (seen.insert(operand).second) work.push_back(operand);
  }
  Part part{SmallVector<Value>(operands.getArrayRef()), {}};
  const KernelTable::Entry &entry = kernels.kernelFor(wanted, part.operands, train);
  if (entry.summed.empty() || entry.summed == summedBy(kernel)) part.kernel = entry.function;
  return known->second = std::move(part);
}

const std::vector<int64_t> &Forward::summedBy(func::FuncOp kernel) {
  auto [known, fresh] = summed.try_emplace(kernel);
  if (!fresh) return known->second;
  if (FailureOr<codegen::KernelInfo> info = codegen::describe(kernel); succeeded(info)) known->second = std::move(info->summed);
  return known->second;
}

Value Forward::outside(LaunchOp launch, func::FuncOp kernel, Value inside) {
  if (auto argument = dyn_cast<BlockArgument>(inside)) return launch.getInputs()[argument.getArgNumber()];
  auto results = returned(kernel);
  return launch.getResult(unsigned(llvm::find(results, inside) - results.begin()));
}

void Forward::addLaunch(LaunchOp launch) {
  func::FuncOp kernel = launched.lookup(launch.getKernel());
  llvm::MapVector<Value, SmallVector<unsigned>> results; // that are the same
  for (auto [r, v] : llvm::enumerate(returned(kernel))) results[v].push_back(unsigned(r));
  SmallVector<ArrayRef<unsigned>> order;
  for (auto &entry : results) order.push_back(entry.second);
  // As the kernel makes them, so that each stands after those it needs.
  DenseMap<Operation *, unsigned> position;
  for (Operation &op : kernel.getBody().front()) position[&op] = position.size();
  llvm::stable_sort(order, [&](ArrayRef<unsigned> a, ArrayRef<unsigned> b) {
    return position.lookup(returned(kernel)[a[0]].getDefiningOp()) < position.lookup(returned(kernel)[b[0]].getDefiningOp());
  });
  bool apart = llvm::all_of(order, [&](ArrayRef<unsigned> same) { return bool(partOf(kernel, same).kernel); });
  if (!apart) {
    uint64_t bytes = 0;
    SmallVector<unsigned> all;
    for (OpResult result : launch->getResults()) bytes += bytesOf(typeOf(result)), all.push_back(result.getResultNumber());
    return add(launch, all, bytes, launch.getInputs(), kindOf(kernel));
  }
  for (ArrayRef<unsigned> same : order) {
    Part part = partOf(kernel, same);
    SmallVector<Value> reads;
    for (Value inside : part.operands) reads.push_back(outside(launch, kernel, inside));
    add(launch, same, bytesOf(typeOf(launch.getResult(same[0]))), reads, kindOf(part.kernel));
  }
}

//===----------------------------------------------------------------------===//
// Once more
//===----------------------------------------------------------------------===//

Value Forward::latest(Value v, OpBuilder &b, IRMapping &copies) {
  if (Value copy = copies.lookupOrNull(v)) return copy;
  Operation *view = v.getDefiningOp();
  if (!isView(view)) return v;
  Value input = latest(view->getOperand(0), b, copies);
  if (input == view->getOperand(0)) return v;
  Operation *copy = b.clone(*view);
  copy->setOperand(0, input);
  copies.map(v, copy->getResult(0));
  return copy->getResult(0);
}

void Forward::launchAgain(LaunchOp launch, ArrayRef<unsigned> results, OpBuilder &b, IRMapping &copies) {
  func::FuncOp kernel = launched.lookup(launch.getKernel());
  Part part = partOf(kernel, results);
  if (!part.kernel) { // not together: one after another
    for (uint32_t i = *indexOf(launch.getResult(results[0])); !results.empty(); ++i) {
      ArrayRef<unsigned> same = sources[i].results;
      if (!llvm::is_contained(results, same[0])) continue;
      launchAgain(launch, same, b, copies);
      results = results.drop_front(same.size());
    }
    return;
  }
  SmallVector<Value> operands, inside;
  for (Value v : part.operands) operands.push_back(latest(outside(launch, kernel, v), b, copies));
  for (unsigned r : results)
    if (!llvm::is_contained(inside, returned(kernel)[r])) inside.push_back(returned(kernel)[r]);
  auto copy = b.create<LaunchOp>(launch.getLoc(), TypeRange(ValueRange(inside)), part.kernel.getSymName(), operands);
  for (unsigned r : results)
    copies.map(launch.getResult(r), copy.getResult(unsigned(llvm::find(inside, returned(kernel)[r]) - inside.begin())));
}

void Forward::makeAgain(const std::vector<bool> &again, uint32_t begin, uint32_t end, OpBuilder &b, IRMapping &copies) {
  for (uint32_t i = begin; i < end; ++i) {
    if (!again[i]) continue;
    Operation *op = sources[i].op;
    auto launch = dyn_cast<LaunchOp>(op);
    SmallVector<unsigned> results = sources[i].results;
    for (; i + 1 < end && sources[i + 1].op == op; ++i) // of a kernel, all at once
      if (again[i + 1]) results.append(sources[i + 1].results);
    if (launch && results.size() < launch->getNumResults()) {
      launchAgain(launch, results, b, copies);
      continue;
    }
    SmallVector<Value> operands;
    for (Value v : op->getOperands()) operands.push_back(latest(v, b, copies));
    Operation *copy = b.clone(*op);
    copy->setOperands(operands);
    copies.map(op->getResults(), copy->getResults());
  }
}

} // namespace zero::fuse
