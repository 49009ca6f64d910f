//===- by_mask.cpp - tensors that are indexed by a mask ---------------------------------------------===//
#include "compiler/onnx/by_mask.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace zero::onnx {
namespace {

/// Arithmetic on shapes between a count of elements and who asks for as many.
constexpr int kMostSteps = 24;

class Masks {
public:
  Masks(std::vector<Node> &nodes, llvm::ArrayRef<TensorProto> initializers) {
    for (Node &n : nodes)
      for (StringRef o : n.outputs) made[o] = &n;
    for (const TensorProto &t : initializers) stored[t.name] = &t;
  }

  void find(Node &n) {
    if (!n.domain.empty()) return;
    const Attribute *axis = attribute(n, "axis"), *reduction = attribute(n, "reduction");
    if (n.op == "ScatterND" && n.inputs.size() == 3 && (!reduction || reduction->s == "none")) put(n);
    if (n.op == "Gather" && n.inputs.size() == 2 && axis && axis->i == 1) pick(n);
  }

private:
  static const Attribute *attribute(const Node &n, StringRef name) {
    auto found = llvm::find_if(n.attributes, [&](const Attribute &a) { return a.name == name; });
    return found == n.attributes.end() ? nullptr : &*found;
  }

  const Node *maker(StringRef name, llvm::ArrayRef<StringRef> ops) const {
    Node *n = made.lookup(name);
    return n && n->domain.empty() && !n->inputs.empty() && llvm::is_contained(ops, n->op) ? n : nullptr;
  }

  /// The mask whose elements `indices` are, one row for each; empty if they are no mask's.
  StringRef maskOf(StringRef indices) const {
    const Node *rows = maker(indices, {"Transpose"});
    const Node *found = rows ? maker(rows->inputs[0], {"NonZero"}) : nullptr;
    return found ? found->inputs[0] : StringRef();
  }

  /// Whether a size is computed from how many elements a mask has: from these, or from what the mask repeats.
  bool counts(StringRef size, llvm::ArrayRef<StringRef> of, int &steps) const {
    if (++steps > kMostSteps) return false;
    if (llvm::is_contained(of, size)) return true;
    const Node *n = maker(size, {"Shape", "Gather", "Unsqueeze", "Squeeze", "Concat", "Cast", "Slice", "ReduceSum", "Reshape"});
    return n && llvm::any_of(n->inputs, [&](StringRef i) { return counts(i, of, steps); });
  }

  void put(Node &n) {
    StringRef indices = n.inputs[1], mask = maskOf(indices), source = n.inputs[2], starts;
    if (mask.empty()) return;
    llvm::SmallVector<StringRef> counted{indices, mask};
    while (const Node *same = maker(counted.back(), {"Expand", "Unsqueeze", "Cast"})) counted.push_back(same->inputs[0]);
    auto isCount = [&](StringRef size) {
      int steps = 0;
      return counts(size, counted, steps);
    };
    bool found = false;
    const Node *first = maker(source, {"Slice"});
    if (first && first->inputs.size() >= 3 && first->inputs.size() < 5 && isCount(first->inputs[2])) {
      source = first->inputs[0], starts = first->inputs[1], found = true;
      if (const Node *flat = maker(source, {"Reshape"})) source = flat->inputs[0];
    }
    for (const Node *same; !found && (same = maker(source, {"Reshape", "Expand"}));) {
      source = same->inputs[0];
      found = same->op == "Expand" && same->inputs.size() == 2 && isCount(same->inputs[1]);
    }
    if (!found) return;
    n.inputs = {n.inputs[0], mask, source, starts};
    n.mask = Node::Mask::Put;
  }

  /// A shape of three dimensions.
  bool isOfRank3(StringRef shape) const {
    if (const TensorProto *t = stored.lookup(shape)) return t->elements == 3;
    const Node *n = made.lookup(shape);
    if (!n || (n->op != "Concat" && n->op != "Constant")) return false;
    if (n->op == "Concat") return n->inputs.size() == 3;
    return llvm::any_of(n->attributes, [](const Attribute &a) { return a.ints.size() == 3 || (a.tensor && a.tensor->elements == 3); });
  }

  void pick(Node &n) {
    const Node *rows = maker(n.inputs[0], {"Reshape"}), *chosen = rows ? maker(rows->inputs[0], {"GatherND"}) : nullptr;
    if (!chosen || rows->inputs.size() != 2 || chosen->inputs.size() != 2 || !isOfRank3(rows->inputs[1])) return;
    StringRef mask = maskOf(chosen->inputs[1]);
    if (mask.empty()) return;
    n.inputs = {chosen->inputs[0], mask, n.inputs[1], rows->inputs[1]};
    n.mask = Node::Mask::Pick;
  }

  llvm::DenseMap<StringRef, Node *> made;
  llvm::DenseMap<StringRef, const TensorProto *> stored;
};

void findIn(std::vector<Node> &nodes, llvm::ArrayRef<TensorProto> initializers) {
  if (llvm::none_of(nodes, [](const Node &n) { return n.op == "NonZero"; })) return;
  Masks masks(nodes, initializers);
  for (Node &n : nodes) masks.find(n);
}

} // namespace

void findMasks(Model &model) {
  findIn(model.graph.nodes, model.graph.initializers);
  for (Function &f : model.functions) findIn(f.nodes, {});
}

} // namespace zero::onnx
