//===- index.cpp - index arithmetic of a kernel --------------------------------------------------===//
#include "compiler/nn/index.h"
#include "compiler/nn/dims.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace zero::nn {

int64_t Index::scaleOf(unsigned atom) const {
  for (const Term &t : terms)
    if (t.atom == atom) return t.scale;
  return 0;
}

Index Index::operator+(const Index &other) const {
  Index sum(constant + other.constant);
  auto a = terms.begin(), b = other.terms.begin();
  while (a != terms.end() || b != other.terms.end()) {
    if (b == other.terms.end() || (a != terms.end() && a->atom < b->atom)) {
      sum.terms.push_back(*a++);
    } else if (a == terms.end() || b->atom < a->atom) {
      sum.terms.push_back(*b++);
    } else {
      if (int64_t s = a->scale + b->scale) sum.terms.push_back({a->atom, s});
      ++a, ++b;
    }
  }
  return sum;
}

Index Index::operator*(int64_t factor) const {
  Index product(constant * factor);
  if (factor)
    for (const Term &t : terms) product.terms.push_back({t.atom, t.scale * factor});
  return product;
}

Index Index::without(unsigned atom) const {
  Index rest = *this;
  llvm::erase_if(rest.terms, [&](const Term &t) { return t.atom == atom; });
  return rest;
}

unsigned Space::dim(int64_t size, int splitKey, int splitAt) {
  Atom a(Atom::Dim, size);
  a.splitKey = splitKey, a.splitAt = splitAt;
  atoms.push_back(std::move(a));
  return atoms.size() - 1;
}

unsigned Space::value(int node, int64_t size) {
  for (auto [i, a] : llvm::enumerate(atoms))
    if (a.kind == Atom::Value && a.node == node && a.size == size) return i;
  Atom a(Atom::Value, size);
  a.node = node;
  atoms.push_back(std::move(a));
  return atoms.size() - 1;
}

unsigned Space::opaque(Atom::Kind kind, const Index &of, int64_t divisor, int64_t size) {
  for (auto [i, a] : llvm::enumerate(atoms))
    if (a.kind == kind && a.of == of && a.divisor == divisor) return i;
  Atom a(kind, size);
  a.of = of, a.divisor = divisor;
  if (kind == Atom::Quotient) a.low = std::min<int64_t>(0, llvm::divideFloorSigned(range(of).first, divisor));
  atoms.push_back(std::move(a));
  return atoms.size() - 1;
}

std::pair<int64_t, int64_t> Space::range(const Index &index) const {
  int64_t low = index.constant, high = index.constant;
  for (const Term &t : index.terms) {
    int64_t least = t.scale * atoms[t.atom].low, most = t.scale * (atoms[t.atom].size - 1);
    low += std::min(least, most), high += std::max(least, most);
  }
  return {low, high};
}

void Space::divide(const Index &index, int64_t divisor, Index &whole, Index &rest) const {
  for (const Term &t : index.terms)
    if (t.scale % divisor == 0)
      whole.terms.push_back({t.atom, t.scale / divisor});
    else
      rest.terms.push_back(t);
  whole.constant = llvm::divideFloorSigned(index.constant, divisor);
  rest.constant = index.constant - whole.constant * divisor;
}

void Space::requestSplit(const Index &rest, int64_t divisor) {
  if (wanted) return;
  for (const Term &t : rest.terms) {
    const Atom &a = atoms[t.atom];
    int64_t scale = std::abs(t.scale); // negative: read backwards
    if (a.kind != Atom::Dim || divisor % scale) continue;
    int64_t inner = divisor / scale;
    if (inner > 1 && inner < a.size && a.size % inner == 0) {
      wanted = Split{a.splitKey, a.splitAt, inner};
      return;
    }
  }
}

Index Space::quotient(const Index &index, int64_t divisor) {
  if (divisor == 1) return index;
  Index whole, rest;
  divide(index, divisor, whole, rest);
  auto [low, high] = range(rest);
  if (low >= 0 && high < divisor) return whole;
  requestSplit(rest, divisor);
  // Guarded indices may be negative; floor division keeps the identity, and the size is only a bound where the guard holds.
  return whole + Index::atom(opaque(Atom::Quotient, rest, divisor, std::max<int64_t>(1, high / divisor + 1)));
}

Index Space::remainder(const Index &index, int64_t divisor) {
  if (divisor == 1) return Index(0);
  Index whole, rest;
  divide(index, divisor, whole, rest);
  auto [low, high] = range(rest);
  if (low >= 0 && high < divisor) return rest;
  requestSplit(rest, divisor);
  return Index::atom(opaque(Atom::Remainder, rest, divisor, divisor));
}

Index Space::linearize(llvm::ArrayRef<Index> at, llvm::ArrayRef<int64_t> shape) const {
  Index linear;
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1) linear = linear + at[i] * stride;
    stride *= shape[i];
  }
  return joined(linear);
}

// index = quotient * divisor + remainder: what one reshape took apart, another puts together again.
Index Space::joined(Index index) const {
  auto parts = [&]() -> std::optional<std::pair<Term, Term>> {
    for (const Term &r : index.terms)
      for (const Term &q : index.terms) {
        const Atom &remainder = atoms[r.atom], &quotient = atoms[q.atom];
        if (remainder.kind == Atom::Remainder && quotient.kind == Atom::Quotient && remainder.divisor == quotient.divisor &&
            remainder.of == quotient.of && q.scale == r.scale * remainder.divisor)
          return std::pair(r, q);
      }
    return std::nullopt;
  };
  while (auto found = parts())
    index = index.without(found->first.atom).without(found->second.atom) + atoms[found->first.atom].of * found->first.scale;
  return index;
}

Indices Space::delinearize(Index linear, llvm::ArrayRef<int64_t> shape) {
  Indices at(shape.size());
  size_t first = 0;
  while (first < shape.size() && shape[first] == 1) ++first;
  for (size_t i = shape.size(); i-- > first;) {
    at[i] = i == first ? linear : remainder(linear, shape[i]);
    linear = quotient(linear, shape[i]);
  }
  return at;
}

Indices Space::reshape(llvm::ArrayRef<Index> at, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  if (from == to) return Indices(at.begin(), at.end());
  Indices result(to.size());
  for (const DimGroup &group : dimGroups(from, to)) {
    size_t taken = group.fromEnd - group.from, given = group.toEnd - group.to;
    Index linear = linearize(at.slice(group.from, taken), from.slice(group.from, taken));
    Indices part = delinearize(linear, to.slice(group.to, given));
    std::move(part.begin(), part.end(), result.begin() + group.to);
  }
  return result;
}

std::optional<Guard> Space::simplify(Guard guard) const {
  if (guard.step == 1) {
    auto [low, high] = range(guard.index);
    if (low >= guard.low && high < guard.high) return std::nullopt;
    // Take the constant out, then try to drop terms below a common divisor of the others and of both bounds.
    int64_t low0 = guard.low - guard.index.constant, high0 = guard.high - guard.index.constant;
    llvm::SmallVector<Term> terms(guard.index.terms.begin(), guard.index.terms.end());
    llvm::stable_sort(terms, [](const Term &x, const Term &y) { return std::abs(x.scale) > std::abs(y.scale); });
    for (size_t keep = 1; keep < terms.size(); ++keep) {
      int64_t common = std::gcd(low0, high0);
      Index upper, lower;
      for (size_t i = 0; i < terms.size(); ++i) {
        Index t = Index::atom(terms[i].atom, terms[i].scale);
        if (i < keep)
          common = std::gcd(common, terms[i].scale), upper = upper + t;
        else
          lower = lower + t;
      }
      auto [l, h] = range(lower);
      if (common > 1 && l >= 0 && h < common) {
        for (Term &t : upper.terms) t.scale /= common;
        Guard simpler{upper, low0 / common, high0 / common, 1};
        auto [ul, uh] = range(upper);
        if (ul >= simpler.low && uh < simpler.high) return std::nullopt;
        return simpler;
      }
    }
    return Guard{guard.index - Index(guard.index.constant), low0, high0, 1};
  }
  return guard;
}

} // namespace zero::nn
