//===- deferral.h - which products are better made when their result is needed ---------------------------===//
// Plain data. A product's result may wait long for what uses it: the gradient of a table that both ends of a model read is begun where
// backward begins and ended where it ends. Made later, its operands wait in its place.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace zero::schedule {

struct WaitingProduct {
  int64_t bytes = 0;              // of its result: not there until it is needed, if the product is made then
  std::vector<uint32_t> operands; // that nothing else keeps until then, by index
};

/// For each product whether it is to be made later: where its operands take fewer bytes than its result. What several of those products
/// read counts for each of them in equal parts. `operands`: bytes of each.
std::vector<bool> worthDeferring(std::span<const WaitingProduct> products, std::span<const int64_t> operands);

} // namespace zero::schedule
