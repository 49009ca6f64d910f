//===- pieces.cpp - a program in pieces that read few buckets ----------------------------------------===//
#include "passes/shard/pieces.h"
#include "llvm/ADT/SmallSet.h"

namespace zero::shard {

std::vector<size_t> cutPieces(llvm::ArrayRef<BucketSet> operations, int64_t most) {
  std::vector<size_t> begins;
  llvm::SmallSet<int64_t, 4> read; // by the piece
  for (size_t i = 0; i < operations.size(); ++i) {
    auto before = int64_t(read.size());
    for (int64_t bucket : operations[i]) read.insert(bucket);
    if (!begins.empty() && (before == 0 || int64_t(read.size()) == before || int64_t(read.size()) <= most)) continue;
    begins.push_back(i);
    read.clear();
    for (int64_t bucket : operations[i]) read.insert(bucket);
  }
  return begins;
}

} // namespace zero::shard
