//===- ties.cpp - copies, and what makes them one ----------------------------------------------------===//
#include "compiler/onnx/ties.h"
#include "compiler/onnx/content.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace zero::onnx {

std::vector<std::vector<Copy>> equalParameters(llvm::ArrayRef<std::unique_ptr<Parameter>> list, Weights &weights) {
  std::map<uint64_t, std::vector<Parameter *>> bySize; // only tensors of the same number of elements can be equal
  for (auto &p : list)
    if (p->tensor->elements > 1 && p->tensor->hasData) bySize[p->tensor->elements].push_back(p.get());
  std::vector<std::vector<Copy>> sets;
  for (auto &[size, group] : bySize) {
    // Embeddings come first so that they keep the name.
    llvm::stable_sort(group, [](Parameter *a, Parameter *b) { return (a->role == "embedding") > (b->role == "embedding"); });
    size_t first = sets.size();
    for (Parameter *p : group) {
      Content content(*p->tensor, weights);
      if (content.isConstant()) continue;
      bool transposed = false;
      auto same = std::find_if(sets.begin() + first, sets.end(), [&](const std::vector<Copy> &set) {
        Content other(*set[0].parameter->tensor, weights);
        return other.equals(content, false) || (transposed = other.equals(content, true));
      });
      if (same == sets.end())
        sets.push_back({{p, false}});
      else
        same->push_back({p, transposed});
    }
  }
  llvm::erase_if(sets, [](const std::vector<Copy> &set) { return set.size() < 2; });
  return sets;
}

/// Which of the two products a parameter takes part in: bit 0 by the matrix as the set's first has it, bit 1 by its transpose.
static unsigned products(const Copy &copy) {
  unsigned seen = 0;
  for (const Site *s : copy.parameter->uses)
    if (s->summed) seen |= 1u << (*s->summed ^ unsigned(copy.transposed));
  return seen;
}

std::vector<std::vector<Copy>> onesAmong(llvm::ArrayRef<Copy> copies, const Origins &origins, Weights &weights, bool automatic) {
  llvm::EquivalenceClasses<size_t> one;
  for (size_t i = 0; i < copies.size(); ++i) one.insert(i);
  auto saidSame = [&](size_t i, size_t j) {
    if (copies[i].parameter->tensor == copies[j].parameter->tensor) return false; // a piece of a merged one
    for (const Site *a : llvm::ArrayRef(copies[i].parameter->uses).take_front(8)) // those that come after say no more
      for (const Site *b : llvm::ArrayRef(copies[j].parameter->uses).take_front(8))
        if (origins.compare(*a, *b) == Sameness::Same) return true;
    return false;
  };
  for (size_t j = 1; j < copies.size(); ++j)
    for (size_t i = 0; i < j; ++i)
      if (!one.isEquivalent(i, j) && ((copies[i].parameter->maybeTied && copies[j].parameter->maybeTied) || (automatic && saidSame(i, j))))
        one.unionSets(i, j);

  Content first(*copies[0].parameter->tensor, weights);
  if (automatic && !first.equals(first, true)) { // else it is its own transpose
    std::map<size_t, unsigned> seen;             // by the first member of each
    for (size_t i = 0; i < copies.size(); ++i)
      if (!copies[i].parameter->untied) seen[one.getLeaderValue(i)] |= products(copies[i]);
    std::vector<size_t> straight, transposed;
    for (size_t i = 0; i < copies.size(); ++i)
      if (one.getLeaderValue(i) == i && seen[i] && seen[i] != 3) (seen[i] == 1 ? straight : transposed).push_back(i);
    // As many projections as embeddings are pairs in the order of their use: copies of a model, each with its own. Otherwise all are one,
    // as the embeddings of encoder and decoder are one with the output projection.
    if (!straight.empty() && !transposed.empty())
      for (size_t k = 0; k < std::max(straight.size(), transposed.size()); ++k) {
        bool pairs = straight.size() == transposed.size();
        one.unionSets(straight[pairs ? k : 0], transposed[pairs ? k : 0]);
        if (pairs) continue;
        if (k < straight.size()) one.unionSets(straight[0], straight[k]);
        if (k < transposed.size()) one.unionSets(transposed[0], transposed[k]);
      }
  }
  std::map<size_t, size_t> place; // leader -> result
  std::vector<std::vector<Copy>> result;
  for (size_t i = 0; i < copies.size(); ++i) {
    auto [it, fresh] = place.emplace(one.getLeaderValue(i), result.size());
    if (fresh) result.emplace_back();
    result[it->second].push_back(copies[i]);
  }
  return result;
}

} // namespace zero::onnx
