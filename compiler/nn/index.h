//===- index.h - index arithmetic of a kernel ----------------------------------------------------===//
// Where an element lies is a sum of atoms times constants. Atoms are loop dimensions, or quantities that are
// not affine in them (a loaded index, a quotient that does not come out even). Knowing every atom's range makes
// most divisions of reshapes exact; where a dimension would have to be split for that, the split is noted and
// the caller starts over with finer dimensions.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace zero::nn {

struct Term {
  unsigned atom;
  int64_t scale;
  bool operator==(const Term &) const = default;
};

/// constant + sum of scale * atom; terms sorted by atom, no zero scale.
struct Index {
  llvm::SmallVector<Term, 4> terms;
  int64_t constant = 0;

  Index(int64_t constant = 0) : constant(constant) {}
  static Index atom(unsigned a, int64_t scale = 1) {
    Index i;
    if (scale) i.terms.push_back({a, scale});
    return i;
  }
  bool operator==(const Index &other) const { return constant == other.constant && terms == other.terms; }
  bool isConstant() const { return terms.empty(); }
  int64_t scaleOf(unsigned atom) const;

  Index operator+(const Index &other) const;
  Index operator*(int64_t factor) const;
  Index operator-(const Index &other) const { return *this + other * -1; }
  /// The same with `atom` taken out.
  Index without(unsigned atom) const;
};
using Indices = llvm::SmallVector<Index, 4>;

/// What an atom stands for; its values lie in [low, size).
struct Atom {
  enum Kind { Dim, Value, Quotient, Remainder };
  Atom(Kind kind, int64_t size) : kind(kind), size(size) {}

  Kind kind;
  int64_t size;
  int64_t low = 0; // Quotient: of what is read backwards it may be negative
  int node = -1;   // Value: the integer node whose value it is
  Index of;        // Quotient, Remainder: of this by `divisor`
  int64_t divisor = 0;
  int splitKey = -1; // Dim: which original dimension it is a factor of, and
  int splitAt = 0;   //      which factor of it
};

/// "low <= index < high and index is a multiple of step"
struct Guard {
  Index index;
  int64_t low, high, step;
  bool operator==(const Guard &other) const { return index == other.index && low == other.low && high == other.high && step == other.step; }
};

/// A request to write factor `factor` of dimension `key` as (outer, inner) with this inner size.
struct Split {
  int key;
  int factor;
  int64_t inner;
};

class Space {
public:
  std::vector<Atom> atoms;
  std::optional<Split> wanted; // the first split that would have made a division exact

  unsigned dim(int64_t size, int splitKey, int splitAt);
  unsigned value(int node, int64_t size);

  /// Smallest and largest value, both inclusive.
  std::pair<int64_t, int64_t> range(const Index &index) const;
  Index quotient(const Index &index, int64_t divisor);
  Index remainder(const Index &index, int64_t divisor);

  Index linearize(llvm::ArrayRef<Index> at, llvm::ArrayRef<int64_t> shape) const;
  /// Indices into `to` of the element that lies at `at` of `from` (same elements, row-major). The first dimension of each
  /// group of dimensions that correspond is left unbounded, so that guarded indices outside the tensor stay exact.
  Indices reshape(llvm::ArrayRef<Index> at, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

  /// Nothing when the guard always holds; otherwise with low-order terms that cannot matter dropped.
  std::optional<Guard> simplify(Guard guard) const;

private:
  Index joined(Index index) const;
  Indices delinearize(Index linear, llvm::ArrayRef<int64_t> shape);
  /// index = whole * divisor + rest, constant of rest in [0, divisor)
  void divide(const Index &index, int64_t divisor, Index &whole, Index &rest) const;
  void requestSplit(const Index &rest, int64_t divisor);
  unsigned opaque(Atom::Kind kind, const Index &of, int64_t divisor, int64_t size);
};

} // namespace zero::nn
