// --show-batch: a sample in words, as the model will read it.
#pragma once
#include "runtime/data/dataset.h"
#include <string>

namespace zero::runtime {

// Each input with its type, shape and first values, the text of a stream of bytes, and labels beside the tokens of their places. Lines
// without the last one's end.
std::string describeSample(const plan::Plan &plan, const Dataset &data, uint64_t sample);

} // namespace zero::runtime
