//===- row_regions.h - where rows can be computed tile by tile ------------------------------------------===//
// Plain data: a function as a list of steps, and the regions of it that may be done for some rows (tokens) after others, so that what is
// wide inside exists for these rows only.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace zero::train {

struct RowTensor {
  uint64_t width = 0; // elements of one row; 0: it has none
  bool returned = false;
};

/// One operation. Tensors are known by their index.
struct RowStep {
  bool splits = false;          // it can be done for some rows of what it reads in `rows` and makes
  bool widens = false;          // and is a product: where something wide may begin
  std::vector<uint32_t> rows;   // read row by row, or by one that does not split, in any way
  std::vector<uint32_t> wholes; // read by one that splits, for every row the same
  std::vector<uint32_t> makes;
};

/// Indices of steps, rising.
using RowRegion = std::vector<uint32_t>;

/// Regions of steps that split, none in two of them. Each begins where a product makes rows wider and ends where they are as narrow
/// again, and nothing leads out of it and back. What leaves it is narrower than the widest tensor that does not. What is made for it alone,
/// of no more than that takes to make (a norm), belongs to it as well.
std::vector<RowRegion> findRowRegions(std::span<const RowStep> steps, std::span<const RowTensor> tensors);

} // namespace zero::train
