//===- interleave_test.cpp - pieces of a program, and what vertical order gathers ---------------------===//
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/shard/pieces.h"
#include "passes/shard/uses.h"
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace zero::shard {
namespace {

/// Operations that read none, one or two of some buckets, mostly of those that the one before reads, as layers do.
std::vector<BucketSet> randomOperations(std::mt19937 &random) {
  std::vector<BucketSet> operations(random() % 30);
  int64_t current = 0;
  for (BucketSet &read : operations) {
    if (random() % 4 == 0) current = int64_t(random() % 6);
    if (random() % 3) read.push_back(current);
    if (random() % 6 == 0) read.push_back((current + 1) % 6);
  }
  return operations;
}

/// What `micros` micro-steps read in vertical order.
std::vector<BucketSet> interleaved(const std::vector<BucketSet> &operations, const std::vector<size_t> &begins, int micros) {
  std::vector<BucketSet> all;
  for (size_t piece = 0; piece < begins.size(); ++piece)
    for (int micro = 0; micro < micros; ++micro)
      for (size_t i = begins[piece]; i < (piece + 1 < begins.size() ? begins[piece + 1] : operations.size()); ++i)
        all.push_back(operations[i]);
  return all;
}

/// Gathers that are left where a bucket stays between uses near each other.
int gathersOf(const std::vector<BucketSet> &operations, mlir::MLIRContext &context) {
  RecentUses recent(kMergeDistance);
  int gathers = 0;
  for (const BucketSet &read : operations)
    for (int64_t bucket : read) gathers += !recent.isNear(mlir::StringAttr::get(&context, std::to_string(bucket)));
  return gathers;
}

TEST(Pieces, GoAsFarAsTheirBucketsAllow) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    auto operations = randomOperations(random);
    for (int64_t most : {1, 2, 3}) {
      auto begins = cutPieces(operations, most);
      ASSERT_EQ(begins.empty(), operations.empty());
      if (begins.empty()) continue;
      ASSERT_EQ(begins.front(), 0u);
      for (size_t piece = 0; piece < begins.size(); ++piece) {
        size_t end = piece + 1 < begins.size() ? begins[piece + 1] : operations.size();
        ASSERT_LT(begins[piece], end);
        std::set<int64_t> read;
        for (size_t i = begins[piece]; i < end; ++i) read.insert(operations[i].begin(), operations[i].end());
        bool single = false; // an operation reads as many
        for (size_t i = begins[piece]; i < end; ++i) single |= std::set<int64_t>(operations[i].begin(), operations[i].end()) == read;
        EXPECT_TRUE(int64_t(read.size()) <= most || single);
        if (end == operations.size()) continue;
        read.insert(operations[end].begin(), operations[end].end());
        EXPECT_GT(int64_t(read.size()), most) << "the piece could have gone further";
      }
    }
  }
}

TEST(Pieces, AllMicroStepsGatherAsOneDoes) {
  mlir::MLIRContext context;
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    auto operations = randomOperations(random);
    auto begins = cutPieces(operations, kMergeDistance + 1);
    for (int micros : {1, 2, 5}) EXPECT_EQ(gathersOf(interleaved(operations, begins, micros), context), gathersOf(operations, context));
    if (operations.size() > 20 && begins.size() > 4) { // and in horizontal order they do not
      EXPECT_GT(gathersOf(interleaved(operations, {0}, 3), context), gathersOf(operations, context));
    }
  }
}

} // namespace
} // namespace zero::shard
