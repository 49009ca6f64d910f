// How far a kernel reaches: what its code says must be what the plan says (plan.Kernel), whatever kind of code it is.
#pragma once
#include "runtime/device/device.h"
#include <cstdint>
#include <span>
#include <string>

namespace zero::runtime {

// `bounds`: what the code has beside the kernel (extent, number of arguments, bytes of each, row). Says where it is not what the plan says,
// as the rest of a sentence about the kernel; empty otherwise.
std::string boundsRefusal(std::span<const uint64_t> bounds, const KernelSymbol &symbol);

} // namespace zero::runtime
