//===- masks.h - what the additive mask of an attention says ---------------------------------------===//
#pragma once
#include "compiler/nn/build.h"
#include "passes/raise/match.h"

namespace zero::raise {

/// Numbers from this one down hide what they are added to: no score is as large.
inline constexpr float kHides = -1e4f;

/// Query i sees keys i + first to i + last.
struct Band {
  int64_t first, last;

  /// Whether each query sees a key.
  bool reachesAll(int64_t queries, int64_t keys) const { return first <= last && last >= 0 && first <= keys - queries; }
};

/// How much of an expression is looked at: a mask says what it says in a few operations, and a model may have chains of any length.
class Budget {
public:
  bool take() { return left-- > 0; }

private:
  int left = 256;
};

/// A constant mask, with dimensions along which nothing changes reduced to one. Where the program selects between two numbers, the
/// choices are kept instead of the numbers: a fourth of the memory.
class ConstantMask {
public:
  llvm::SmallVector<int64_t> shape;

  static std::optional<ConstantMask> of(mlir::Value v);
  /// Of the condition under which a key is seen, or if not `seen`, hidden.
  static std::optional<ConstantMask> ofCondition(mlir::Value v, bool seen);

  bool isZero() const;
  /// What it has wherever it is not zero, if that is one number.
  std::optional<float> number() const;
  /// Whether it hides nothing but what comes later, which a causal attention hides in any case.
  bool seesTriangle(int64_t queries, int64_t keys) const;
  /// Where it lets each query see the keys of a band, of which there are some for each, and hides all others: a sliding window.
  std::optional<Band> band(int64_t queries, int64_t keys) const;
  nn::Tensor tensor(mlir::MLIRContext *context) const;

private:
  ConstantMask(nn::Tensor all, bool choices, float onTrue, float onFalse) : choices(choices), onTrue(onTrue), onFalse(onFalse) {
    all.dropEqual();
    shape.assign(all.shape().begin(), all.shape().end());
    cells = std::move(all.bytes);
  }

  std::vector<char> cells; ///< f32, or one byte per choice
  bool choices;
  float onTrue, onFalse;

  bool isOfPositions(int64_t queries, int64_t keys) const;
  bool sees(Band band, int64_t queries, int64_t keys) const;
  bool hidesOutside(Band band, int64_t queries, int64_t keys) const;
  float at(int64_t i) const { return choices ? (cells[i] ? onTrue : onFalse) : reinterpret_cast<const float *>(cells.data())[i]; }
};

/// Where `seen` says that a key is seen, or if not, hidden, as far as that is a comparison of positions: of a condition of rank 4, which
/// may have more elements than can be looked at.
std::optional<Band> bandOfPositions(mlir::Value condition, bool seen, int64_t queries, int64_t keys);

/// A value of rank 4 where it is stored once, of rank 4, too.
mlir::Value narrowed(mlir::Value v, nn::Build b);

/// A mask of rank 4 taken apart: the band of keys that it lets each query see whatever the data says, and what else it says.
struct MaskParts {
  std::optional<Band> band;
  mlir::Value rest;            ///< of rank 4, as narrow as what it is made of; null: nothing
  std::optional<float> number; ///< by which both hide; none where it is not one, or the mask does more than hide
};
/// Such as a causal triangle or a sliding window, and the padding of samples. Without a band `rest` is the mask itself. What is made for it
/// stands after the mask.
MaskParts takeApart(mlir::Value mask, int64_t queries, int64_t keys);

} // namespace zero::raise
