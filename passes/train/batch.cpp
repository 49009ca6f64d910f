//===- batch.cpp - which dimension the samples lie along -------------------------------------------===//
#include "passes/train/batch.h"
#include "compiler/nn/build.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace zero::train {
namespace {

using nn::NnDialect;

class Batch {
public:
  explicit Batch(func::FuncOp train) : train(train) {
    llvm::StringSet<> later; // symbols of dimensions behind the first
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

  LogicalResult ofOutputs(ArrayRef<Loss> losses) {
    for (const Loss &loss : losses) {
      if (!loss.hasLabels()) continue;
      auto type = nn::typeOf(loss.value);
      if (!size) size = type.getDimSize(0), output = loss;
      if (type.getDimSize(0) != size)
        return train.emitError() << "output '" << loss.output << "' is " << type << " and output '" << output.output << "' "
                                 << nn::typeOf(output.value) << ": their losses need the same number of samples, the first dimension";
    }
    return success();
  }

  /// The first dimension that most inputs have; among equals not 1, then the first.
  void ofInputs() {
    llvm::MapVector<int64_t, unsigned> votes;
    for (unsigned i : candidates) ++votes[typeOf(i).getDimSize(0)];
    unsigned most = 0;
    for (auto [candidate, count] : votes)
      if (count > most || (count == most && size == 1)) size = candidate, most = count;
  }

  LogicalResult assign() {
    auto begins = [&](unsigned i) { return typeOf(i).getRank() > 0 && typeOf(i).getDimSize(0) == size; };
    SmallVector<unsigned> data;
    llvm::copy_if(candidates, std::back_inserter(data), begins);
    if (data.empty()) llvm::copy_if(inputs, std::back_inserter(data), begins);
    if (data.empty() && !inputs.empty()) return refuse();
    for (unsigned i : inputs)
      train.setArgAttr(i, NnDialect::kRoleAttr, StringAttr::get(train.getContext(), llvm::is_contained(data, i) ? "data" : "shared"));
    for (unsigned i : inputs) train.removeArgAttr(i, NnDialect::kSymbolsAttr);
    // What depends on no sample is dropped alike for all of them.
    llvm::DenseSet<Value> ofSamples;
    for (unsigned i : data) ofSamples.insert(train.getArgument(i));
    for (Operation &op : train.getBody().front()) {
      bool depends = llvm::any_of(op.getOperands(), [&](Value v) { return ofSamples.contains(v); });
      if (depends) ofSamples.insert(op.result_begin(), op.result_end());
      if (auto dropout = dyn_cast<nn::DropoutOp>(op)) dropout.setSamples(depends ? size : 0);
    }
    return success();
  }

private:
  RankedTensorType typeOf(unsigned i) { return nn::typeOf(train.getArgument(i)); }

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

LogicalResult findBatch(func::FuncOp train, ArrayRef<Loss> losses) {
  Batch batch(train);
  if (failed(batch.ofOutputs(losses))) return failure();
  if (llvm::none_of(losses, [](const Loss &loss) { return loss.hasLabels(); })) batch.ofInputs();
  return batch.assign();
}

} // namespace zero::train
