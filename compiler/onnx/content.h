//===- content.h - what the numbers of an initializer tell ---------------------------------------===//
#pragma once
#include "compiler/onnx/weights.h"

namespace zero::onnx {

/// The elements of a float initializer, read where they lie. Nothing is known of a tensor without data.
class Content {
public:
  Content(const TensorProto &t, Weights &weights);
  bool known() const { return bool(width) && t.elements; }
  float at(uint64_t i) const;
  uint64_t size() const { return t.elements; }
  size_t rank() const { return t.dims.size(); }

  bool isConstant() const;                 // all elements have the same bits
  bool isSigns() const;                    // nothing but 0, 1 and -1, and not all the same: a permutation, a mask
  bool isZeroRow() const;                  // [1, n] zeros
  bool isMask() const;                     // holds -inf or values beyond ±1e4
  bool isTriangle() const;                 // zeros above the diagonal of its last two dimensions, not all of them: a mask, a decay
  bool isPlaces() const;                   // a grid of points of up to three coordinates
  bool isCopies() const;                   // equal slices along dimension 0, more than one: a folded repetition
  bool isCopiesFor(int64_t samples) const; // one for each sample, in dimension 0 or 1 of three or more
  bool isStateFor(int64_t samples) const;  // zeros of three dimensions or more, of no module: for each sample what a recurrence begins with
  bool isUnit() const;                     // a vector of length 1: the estimate of a singular vector beside the matrix it is of
  bool isSinusoid() const; // rows hold sines and cosines, in halves or in turn, or begin with those of 0 and keep within 1; not all signs
  bool isMadeUp() const;   // its name is none of a module's but one an exporter counts up
  bool isFilled() const;   // one number throughout, under the name of the function that fills tensors with it
  bool isOfModule() const; // its name is a path of modules
  bool isWeight() const;   // and ends as that of a layer's weight does, whatever it starts from (an identity, say)
  /// Cosines or sines, maybe times a number: |x| <= 1.5, and those of 0 first. Of what is not known, whatever has several dimensions.
  bool maybeRotary() const;
  /// Bitwise equal to `other`, or to its transpose.
  bool equals(const Content &other, bool transposed) const;

private:
  const TensorProto &t;
  StringRef raw;
  unsigned width = 0;
};

} // namespace zero::onnx
