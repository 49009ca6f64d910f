//===- by_mask.cpp - tensors that are indexed by a mask ---------------------------------------------===//
#include "compiler/onnx/by_mask.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

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
    for (const Node *same; counted.size() < kMostSteps && (same = maker(counted.back(), {"Expand", "Unsqueeze", "Cast"}));)
      counted.push_back(same->inputs[0]);
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
    const Node *same;
    for (int steps = 0; !found && steps < kMostSteps && (same = maker(source, {"Reshape", "Expand"})); ++steps) {
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

  static std::optional<int64_t> single(const TensorProto &t) {
    int64_t number = 0;
    if (t.elements != 1 || t.type != Type::Int64 || t.inModel().size() != sizeof(number)) return std::nullopt;
    std::memcpy(&number, t.inModel().data(), sizeof(number));
    return number;
  }

  /// A whole number that stands in the file, converted and given another shape at most.
  std::optional<int64_t> number(StringRef name) const {
    for (int steps = 0; steps < kMostSteps; ++steps) {
      if (const TensorProto *t = stored.lookup(name)) return single(*t);
      const Node *n = made.lookup(name);
      if (n && n->op == "Constant" && n->domain.empty() && n->attributes.size() == 1) {
        const Attribute &value = n->attributes[0];
        if (value.tensor) return single(*value.tensor);
        return value.name == "value_int" ? std::optional(value.i) : value.ints.size() == 1 ? std::optional(value.ints[0]) : std::nullopt;
      }
      const Node *moved = maker(name, {"Cast", "Reshape", "Unsqueeze", "Squeeze", "Identity"});
      if (!moved) return std::nullopt;
      name = moved->inputs[0];
    }
    return std::nullopt;
  }

  /// "x[:]", as the newer exporter writes it where the number of samples is symbolic.
  bool isWhole(const Node &slice) const {
    llvm::ArrayRef<StringRef> in = slice.inputs;
    return in.size() >= 4 && number(in[1]) == 0 && number(in[2]) >= int64_t(1) << 31 && number(in[3]) == 0 &&
           (in.size() < 5 || number(in[4]) == 1);
  }

  void pick(Node &n) {
    StringRef samples = n.inputs[0];
    const Node *slice;
    for (int steps = 0; (slice = maker(samples, {"Slice"})); ++steps) {
      if (!isWhole(*slice) || steps == kMostSteps) return;
      samples = slice->inputs[0];
    }
    const Node *rows = maker(samples, {"Reshape"}), *chosen = rows ? maker(rows->inputs[0], {"GatherND"}) : nullptr;
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
