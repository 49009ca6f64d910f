//===- quantized.cpp - from tables of integers to the numbers they stand for ------------------------===//
#include "compiler/onnx/quantized.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace zero::onnx {
namespace {

/// A mask of zeros and ones is no table of weights.
bool isMask(StringRef bytes) {
  return llvm::all_of(bytes, [](char c) { return c == 0 || c == 1; });
}

bool moves(const Node &n) {
  return llvm::is_contained({"Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Expand", "Flatten", "Gather"}, n.op);
}

} // namespace

Quantized findQuantized(const Graph &graph, Weights &weights) {
  llvm::StringMap<const TensorProto *> integers, floats; // by the name of a value: the initializer it is made of
  for (const TensorProto &t : graph.initializers) {
    if ((t.type == Type::Int8 || t.type == Type::UInt8) && t.hasData) integers[t.name] = &t;
    if (isFloat(t.type)) floats[t.name] = &t;
  }
  Quantized found;
  llvm::DenseSet<const TensorProto *> counted;
  auto count = [&](const TensorProto &t) {
    if (t.dims.size() < 2 || isMask(weights.bytes(t)) || !counted.insert(&t).second) return;
    if (!found.tables++) found.first = t.name;
    found.weights += t.elements;
  };
  for (const Node &n : graph.nodes) {
    if (integers.empty() || n.inputs.empty() || n.outputs.empty()) continue;
    StringRef out = n.outputs[0];
    auto table = [&](size_t i) { return i < n.inputs.size() ? integers.lookup(n.inputs[i]) : nullptr; };
    auto scale = [&](size_t i) { return i < n.inputs.size() ? floats.lookup(n.inputs[i]) : nullptr; };
    if (n.op == "DequantizeLinear" && table(0)) {
      count(*table(0));
      if (auto s = scale(1)) found.scales.insert(s->name);
    } else if (moves(n) || n.op == "Cast") {
      if (auto t = table(0)) integers[out] = t;
      if (auto t = scale(0)) floats[out] = t;
    } else if (n.op == "Sub" && table(0) && (table(1) || scale(1))) { // the zero point
      integers[out] = table(0);
    } else if (n.op == "Mul" || n.op == "Div") {
      for (size_t i : {0, 1}) {
        if (!table(i) || !scale(1 - i)) continue;
        count(*table(i));
        if (counted.contains(table(i))) found.scales.insert(scale(1 - i)->name);
      }
    }
  }
  return found;
}

} // namespace zero::onnx
