// One .npy array: a Python dictionary as header, then the elements.
#pragma once
#include "runtime/data/tensor_file.h"

namespace zero::runtime {

// `member` names the array in messages. The result views `bytes`.
Tensor parseNpy(std::span<const std::byte> bytes, const std::string &path, const std::string &member);

} // namespace zero::runtime
