//===- names.h - how numbers, kinds and places are written --------------------------------------------===//
#pragma once
#include "runtime/plan/pieces.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zero::inspect {

using plan::elementsOf;

const char *kindName(int kind);
const char *elementName(int type); // of plan.DType
const char *tierName(int tier);
const char *roleName(int role);
const char *collectiveName(int kind);

/// 1234567 -> "1 234 567".
std::string grouped(uint64_t n);
/// 1234567 -> "1.2 MiB".
std::string human(uint64_t bytes);
/// "3 ranks", "1 rank".
std::string counted(uint64_t n, const std::string &noun);

/// Where in the model a step, value or parameter stands: the name up to its first number ("transformer.h.3" of
/// "transformer.h.3.mlp/node_addmm_14", of "/transformer/h.3/mlp/Gemm" and of "transformer.h.3.mlp.c_fc.weight"), or else its module.
std::string layerOf(std::string_view name);

/// Who owns which elements of a bucket, so that bytes of it can be named.
class BucketNames {
public:
  explicit BucketNames(const plan::Plan &plan);

  /// The parameters whose elements the range holds: "wte.weight", or "wte.weight and 3 more". Empty where that depends on the rank, and
  /// for what is no bucket.
  std::string parametersIn(const plan::Ref &ref) const;

  /// The layers of a transient buffer and how many of its bytes each has: a bucket's are those of its parameters.
  std::vector<std::pair<std::string, uint64_t>> layersOf(const plan::Buffer &buffer) const;

private:
  const plan::Plan &plan;
  plan::Contents contents;
  plan::PieceMap pieces;
};

} // namespace zero::inspect
