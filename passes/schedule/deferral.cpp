//===- deferral.cpp - which products are better made when their result is needed -------------------------===//
#include "passes/schedule/deferral.h"

namespace zero::schedule {

/// Fewer products share an operand with each that is left as it is, so that what does not pay once never will.
std::vector<bool> worthDeferring(std::span<const WaitingProduct> products, std::span<const int64_t> operands) {
  std::vector<bool> deferred(products.size(), true);
  std::vector<int64_t> readers(operands.size(), 0);
  for (const WaitingProduct &product : products)
    for (uint32_t operand : product.operands) ++readers[operand];
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < products.size(); ++i) {
      if (!deferred[i]) continue;
      int64_t cost = 0;
      for (uint32_t operand : products[i].operands) cost += (operands[operand] + readers[operand] - 1) / readers[operand];
      if (cost < products[i].bytes) continue;
      deferred[i] = false, changed = true;
      for (uint32_t operand : products[i].operands) --readers[operand];
    }
  }
  return deferred;
}

} // namespace zero::schedule
