//===- batch.cpp - which dimension the samples lie along -------------------------------------------===//
#include "passes/train/batch.h"
#include "compiler/nn/build.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace zero::train {
namespace {

using nn::NnDialect;

/// Whether the rows of `v` are those of samples, one sample's after the other's: whether they lead back to a value whose first dimension
/// is the samples, through what takes rows apart or computes each by itself.
bool isOfSamples(Value v, int64_t samples) {
  SmallVector<Value> open{v};
  llvm::DenseSet<Value> seen;
  auto follow = [&](Value from) {
    if (seen.insert(from).second) open.push_back(from);
  };
  while (!open.empty()) {
    Value at = open.pop_back_val();
    Operation *op = at.getDefiningOp();
    if (!op) continue;
    int64_t rows = nn::typeOf(at).getDimSize(0);
    if (auto product = dyn_cast<nn::MatMulOp>(op)) {
      if (!product.getTransposeLhs()) follow(product.getLhs());
    } else if (isa<nn::ReshapeOp>(op) || op->hasTrait<nn::RowWise>() || op->hasTrait<nn::Elementwise>()) {
      for (Value operand : op->getOperands()) {
        auto type = nn::typeOf(operand);
        if (isa<nn::ReshapeOp>(op) && type.getRank() > 0 && type.getDimSize(0) == samples) return true;
        if (type.getRank() > 0 && type.getDimSize(0) == rows) follow(operand);
      }
    }
  }
  return false;
}

class Batch {
public:
  explicit Batch(func::FuncOp train) : train(train) {
    llvm::StringSet<> later; // symbols of dimensions after the first
    for (unsigned i = 0; i < train.getNumArguments(); ++i)
      if (!train.getArgAttr(i, NnDialect::kRoleAttr)) {
        inputs.push_back(i);
        if (auto symbols = train.getArgAttrOfType<ArrayAttr>(i, NnDialect::kSymbolsAttr))
          for (StringAttr symbol : llvm::drop_begin(symbols.getAsRange<StringAttr>())) later.insert(symbol.getValue());
      }
    bool symbolic = llvm::any_of(inputs, [&](unsigned i) { return !leading(i).empty() && !later.contains(leading(i)); });
    for (unsigned i : inputs) {
      auto type = typeOf(i);
      if (type.getRank() == 0 || later.contains(leading(i)) || (symbolic && leading(i).empty() && type.getDimSize(0) == 1)) continue;
      candidates.push_back(i);
    }
    if (candidates.empty()) // symbols said too much
      llvm::copy_if(inputs, std::back_inserter(candidates), [&](unsigned i) { return typeOf(i).getRank() > 0; });
  }

  LogicalResult ofOutputs(MutableArrayRef<Loss> losses) {
    for (Loss &loss : losses) {
      if (!loss.hasLabels()) continue;
      unflatten(loss);
      auto type = nn::typeOf(loss.value);
      if (!size) size = type.getDimSize(0), output = loss;
      if (type.getDimSize(0) != size)
        return train.emitError() << "output '" << loss.output << "' is " << type << " and output '" << output.output << "' "
                                 << nn::typeOf(output.value) << ": their losses need the same number of samples, the first dimension";
    }
    return success();
  }

  void ofInputs() { size = mostFrequent(); }

  LogicalResult assign() {
    auto begins = [&](unsigned i) { return typeOf(i).getRank() > 0 && typeOf(i).getDimSize(0) == size; };
    SmallVector<unsigned> data;
    llvm::copy_if(candidates, std::back_inserter(data), begins);
    if (data.empty()) llvm::copy_if(inputs, std::back_inserter(data), begins);
    if (data.empty() && !inputs.empty()) return refuse();
    for (unsigned i : inputs)
      train.setArgAttr(i, NnDialect::kRoleAttr, StringAttr::get(train.getContext(), llvm::is_contained(data, i) ? "data" : "shared"));
    for (unsigned i : inputs) train.removeArgAttr(i, NnDialect::kSymbolsAttr);
    // What depends on no sample is drawn alike for all of them; but noise that nothing but its shape is known of, and that has as many rows
    // as there are samples, is theirs.
    llvm::DenseSet<Value> ofSamples, ofNothing;
    for (unsigned i : data) ofSamples.insert(train.getArgument(i));
    for (Operation &op : train.getBody().front()) {
      auto among = [&](const llvm::DenseSet<Value> &set) { return [&](Value v) { return set.contains(v); }; };
      bool depends = llvm::any_of(op.getOperands(), among(ofSamples));
      if (depends) ofSamples.insert(op.result_begin(), op.result_end());
      bool known = op.hasTrait<OpTrait::ConstantLike>() || (op.getNumOperands() && llvm::all_of(op.getOperands(), among(ofNothing)));
      if (known) ofNothing.insert(op.result_begin(), op.result_end());
      if (!op.hasTrait<nn::Draws>()) continue;
      auto type = nn::typeOf(op.getResult(0));
      depends |= ofNothing.contains(op.getOperand(0)) && type.getRank() && type.getDimSize(0) == size;
      bool divides = size && type.getNumElements() % size == 0;
      op.setAttr("samples", IntegerAttr::get(IntegerType::get(train.getContext(), 64), depends && divides ? size : 0));
    }
    return success();
  }

private:
  RankedTensorType typeOf(unsigned i) { return nn::typeOf(train.getArgument(i)); }

  /// The first dimension that most inputs have; among equals not 1, then the first. 0 without inputs.
  int64_t mostFrequent() {
    llvm::MapVector<int64_t, unsigned> votes;
    for (unsigned i : candidates) ++votes[typeOf(i).getDimSize(0)];
    int64_t chosen = 0;
    unsigned most = 0;
    for (auto [candidate, count] : votes)
      if (count > most || (count == most && chosen == 1)) chosen = candidate, most = count;
    return chosen;
  }

  /// Logits that the model gives as [samples * places, classes] become [samples, places, classes] again.
  void unflatten(Loss &loss) {
    auto type = nn::typeOf(loss.value);
    int64_t samples = mostFrequent(), rows = type.getDimSize(0);
    if (samples < 1 || rows == samples || rows % samples != 0 || !isOfSamples(loss.value, samples)) return;
    SmallVector<int64_t> shape{samples, rows / samples};
    llvm::append_range(shape, type.getShape().drop_front());
    OpBuilder builder(train.getBody().front().getTerminator());
    loss.value = nn::Build{builder, loss.value.getLoc()}.reshape(loss.value, shape);
  }

  StringRef leading(unsigned i) {
    auto symbols = train.getArgAttrOfType<ArrayAttr>(i, NnDialect::kSymbolsAttr);
    return symbols && !symbols.empty() ? cast<StringAttr>(symbols[0]).getValue() : "";
  }

  LogicalResult refuse() {
    auto error = train.emitError();
    if (output.value)
      error << "output '" << output.output << "' is " << output.value.getType() << ", whose first dimension no input has";
    else
      error << "no input has a first dimension, along which samples could lie";
    error << "; the inputs are";
    for (auto [n, i] : llvm::enumerate(inputs))
      error << (n ? ", '" : " '") << train.getArgAttrOfType<StringAttr>(i, NnDialect::kNameAttr).getValue() << "' " << typeOf(i);
    if (output.value) error << "; export the model with an output that has the batch first, as its inputs do";
    return error;
  }

  func::FuncOp train;
  SmallVector<unsigned> inputs, candidates;
  int64_t size = 0;
  Loss output;
};

} // namespace

LogicalResult findBatch(func::FuncOp train, MutableArrayRef<Loss> losses) {
  Batch batch(train);
  if (failed(batch.ofOutputs(losses))) return failure();
  if (llvm::none_of(losses, [](const Loss &loss) { return loss.hasLabels(); })) batch.ofInputs();
  return batch.assign();
}

} // namespace zero::train
