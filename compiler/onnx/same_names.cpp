//===- same_names.cpp - results that are called as a weight or an input is ---------------------------===//
#include "compiler/onnx/same_names.h"
#include "compiler/onnx/origin.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace zero::onnx {
namespace {

/// Whether a node has a graph that reads the name.
bool readsInside(const Node &node, StringRef name) {
  return llvm::any_of(node.attributes, [&](const Attribute &a) {
    return a.graph &&
           (llvm::any_of(a.graph->nodes, [&](const Node &n) { return llvm::is_contained(n.inputs, name) || readsInside(n, name); }) ||
            llvm::any_of(a.graph->outputs, [&](const ValueInfo &o) { return o.name == name; }));
  });
}

/// The inputs of a node, by their places, that are the result and not the model's own; nothing if the call leaves it open.
std::optional<llvm::SmallVector<size_t>> resultsAmong(const Node &node, StringRef name) {
  llvm::SmallVector<size_t> places;
  for (auto [i, input] : llvm::enumerate(node.inputs))
    if (input == name) places.push_back(i);
  if (readsInside(node, name) || (!places.empty() && node.call.empty())) return std::nullopt;
  llvm::SmallVector<bool> isResult; // of the call's arguments that the file calls so, in their order
  for (StringRef argument : argumentNames(node))
    if (argument == name || isNameOf(argument, name)) isResult.push_back(argument == name);
  bool result = llvm::is_contained(isResult, true), own = llvm::is_contained(isResult, false);
  if (!result) return llvm::SmallVector<size_t>(); // an input of the graph, where the call names it otherwise
  if (!own) return places;
  if (isResult.size() != places.size()) return std::nullopt;
  llvm::SmallVector<size_t> found;
  for (auto [place, is] : llvm::zip(places, isResult))
    if (is) found.push_back(place);
  return found;
}

} // namespace

void partNames(Model &model) {
  Graph &graph = model.graph;
  llvm::StringSet<> given, outputs;
  for (const TensorProto &t : graph.initializers)
    if (!t.inNode) given.insert(t.name);
  for (const ValueInfo &v : graph.inputs) given.insert(v.name);
  for (const ValueInfo &v : graph.outputs) outputs.insert(v.name);
  for (auto [at, node] : llvm::enumerate(graph.nodes))
    for (StringRef &name : node.outputs) {
      if (!given.contains(name) || outputs.contains(name)) continue;
      std::vector<StringRef *> reads;
      bool told = true;
      for (Node &later : llvm::drop_begin(graph.nodes, at + 1)) {
        auto places = resultsAmong(later, name);
        if (!(told = places.has_value())) break;
        for (size_t place : *places) reads.push_back(&later.inputs[place]);
      }
      if (!told) continue;
      StringRef fresh = model.made.emplace_back((name + "'").str());
      for (StringRef *read : reads) *read = fresh;
      name = fresh;
    }
}

} // namespace zero::onnx
