// A run has diverged where a number is not finite: what holds one is no checkpoint and no result.
#pragma once
#include "runtime/base/error.h"
#include "runtime/checkpoint/slices.h"
#include <optional>
#include <string>

namespace zero::runtime {

// Where the first of the values that is infinite or no number lies; `count` if there is none.
uint64_t firstNotFinite(const float *values, uint64_t count);

class Diverged : public Error {
public:
  using Error::Error;
};

// Of the elements from `first` of a slice on, of the tensor that checkpoints call `tensor`: throws Diverged, a sentence that names the
// parameter, if one is such a number.
void requireFinite(const plan::Plan &plan, const std::string &tensor, const Slice &slice, uint64_t first, std::span<const float> values);
// Of all that this rank owns of trained parameters and the state of their optimizer.
void requireFinite(const Rank &rank);

// What a run says that ends for it: after which step, what comes of it ("it is not exported"), and which checkpoint was saved last.
std::string sentenceOf(const Diverged &diverged, uint64_t step, const char *outcome, const std::optional<std::string> &last);

} // namespace zero::runtime
