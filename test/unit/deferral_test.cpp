//===- deferral_test.cpp - which products are better made when their result is needed -------------------===//
#include "passes/schedule/deferral.h"
#include <gtest/gtest.h>
#include <random>

namespace zero::schedule {
namespace {

using Deferred = std::vector<bool>;

Deferred of(std::vector<WaitingProduct> products, std::vector<int64_t> operands) { return worthDeferring(products, operands); }

TEST(Deferral, WhereOperandsTakeLessThanTheResult) {
  EXPECT_EQ(of({{100, {0, 1}}, {100, {2}}, {100, {}}}, {40, 59, 100}), (Deferred{true, false, true}));
}

TEST(Deferral, WhatSeveralReadIsSharedByThoseThatAreDeferred) {
  EXPECT_EQ(of({{10, {0}}, {10, {0}}, {10, {0}}}, {27}), (Deferred{true, true, true}));
  EXPECT_EQ(of({{10, {0}}, {10, {0}}, {1, {0}}}, {27}), (Deferred{false, false, false})) << "14 for each of two";
  EXPECT_EQ(of({{20, {0}}, {20, {0}}, {1, {0}}}, {27}), (Deferred{true, true, false}));
}

/// Nothing that is deferred would rather not be, alone with the others; and what is deferred together takes fewer bytes than its results.
TEST(Deferral, RandomProducts) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<int64_t> operands(1 + random() % 6);
    for (int64_t &bytes : operands) bytes = 1 + int64_t(random() % 100);
    std::vector<WaitingProduct> products(random() % 8);
    for (WaitingProduct &product : products) {
      product.bytes = 1 + int64_t(random() % 60);
      for (uint32_t operand = 0; operand < operands.size(); ++operand)
        if (random() % 4 == 0) product.operands.push_back(operand);
    }
    Deferred deferred = worthDeferring(products, operands);
    int64_t results = 0, kept = 0;
    std::vector<bool> read(operands.size());
    for (size_t i = 0; i < products.size(); ++i) {
      if (!deferred[i]) continue;
      results += products[i].bytes;
      for (uint32_t operand : products[i].operands) {
        if (!read[operand]) kept += operands[operand];
        read[operand] = true;
      }
    }
    EXPECT_LE(kept, results);
    if (results > 0) EXPECT_LT(kept, results);
  }
}

} // namespace
} // namespace zero::schedule
