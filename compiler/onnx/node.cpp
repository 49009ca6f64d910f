//===- node.cpp - inputs and attributes of a node ------------------------------------------------===//
#include "compiler/onnx/importer.h"

namespace zero::onnx {

Val NodeContext::in(size_t i) {
  if (has(i)) return inputs[i];
  return e.fail("input " + llvm::Twine(i) + " is missing");
}

std::shared_ptr<const nn::Tensor> NodeContext::known(size_t i) {
  Val v = in(i);
  if (!v) return nullptr;
  auto t = v.sequence ? nullptr : importer.known(v, e);
  if (!t) e.fail("input " + llvm::Twine(i) + " ('" + node.inputs[i] + "') must be known at compile time but depends on the model's inputs");
  return t;
}

std::optional<Ints> NodeContext::knownInts(size_t i) {
  auto t = known(i);
  if (!t) return std::nullopt;
  if (!t->elementType().isIntOrIndex() || t->type.getRank() > 1) {
    e.fail("input " + llvm::Twine(i) + " is no list of integers");
    return std::nullopt;
  }
  Ints r;
  for (int64_t k = 0; k < t->size(); ++k) r.push_back(t->integer(k));
  return r;
}

const Attribute *NodeContext::attribute(StringRef name) const {
  for (const Attribute &a : node.attributes) {
    if (a.name != name) continue;
    if (a.reference.empty()) return &a;
    auto it = importer.present->attributes.find(a.reference);
    return it == importer.present->attributes.end() ? nullptr : it->second;
  }
  return nullptr;
}

int64_t NodeContext::integer(StringRef name, int64_t otherwise) const {
  const Attribute *a = attribute(name);
  return a ? a->i : otherwise;
}

double NodeContext::real(StringRef name, double otherwise) const {
  const Attribute *a = attribute(name);
  return a ? double(a->f) : otherwise;
}

std::string NodeContext::string(StringRef name, StringRef otherwise) const {
  const Attribute *a = attribute(name);
  return (a ? a->s : otherwise).str();
}

std::optional<Ints> NodeContext::ints(StringRef name) const {
  const Attribute *a = attribute(name);
  if (!a) return std::nullopt;
  return Ints(a->ints.begin(), a->ints.end());
}

bool NodeContext::only(llvm::ArrayRef<StringRef> names) {
  for (const Attribute &a : node.attributes)
    if (!llvm::is_contained(names, a.name)) {
      e.fail("its attribute '" + a.name + "' is not supported");
      return false;
    }
  return true;
}

std::optional<Ints> NodeContext::axesSince(int64_t since, StringRef name, size_t i) {
  if (opset < since || (!has(i) && attribute(name))) return ints(name); // or of a file that has them where they were
  return has(i) ? knownInts(i) : std::nullopt;
}

int64_t NodeContext::dimension(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  e.fail("axis " + llvm::Twine(axis) + " does not exist in a tensor of rank " + llvm::Twine(rank));
  return -1;
}

Ints NodeContext::permutation(int64_t rank) {
  Ints perm = upTo(rank);
  std::reverse(perm.begin(), perm.end());
  if (auto given = ints("perm")) perm = *given;
  for (int64_t &p : perm) // PyTorch's older exporter writes dimensions from the end as the model has them
    if (p < 0 && p >= -rank) p += rank;
  return perm;
}

} // namespace zero::onnx
