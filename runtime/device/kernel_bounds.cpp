#include "runtime/device/kernel_bounds.h"
#include <algorithm>

namespace zero::runtime {
namespace {

std::string text(uint64_t extent, uint64_t row, std::span<const uint64_t> bytes) {
  std::string list;
  for (uint64_t n : bytes) list += (list.empty() ? "" : ", ") + std::to_string(n);
  return std::to_string(extent) + " iterations" + (row ? " of " + std::to_string(row) + " elements" : "") + " over " + list + " bytes";
}

} // namespace

std::string boundsRefusal(std::span<const uint64_t> bounds, const KernelSymbol &symbol) {
  if (bounds.size() < 3 || bounds[1] != bounds.size() - 3) return "does not say how far it reaches";
  std::span<const uint64_t> argBytes = bounds.subspan(2, bounds[1]);
  uint64_t extent = bounds.front(), row = bounds.back();
  if (extent == symbol.extent && row == symbol.row && std::ranges::equal(argBytes, symbol.argBytes)) return "";
  return "is made for " + text(extent, row, argBytes) + ", but the plan says " + text(symbol.extent, symbol.row, symbol.argBytes);
}

} // namespace zero::runtime
