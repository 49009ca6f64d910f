// A parameter in several pieces: tiles of it in buckets of their own. Whatever leaves or enters a run is the same to the bit.
#include "runtime/checkpoint/export.h"
#include "runtime/checkpoint/finite.h"
#include "test/unit/state_fixture.h"
#include <array>

using namespace zero;
using namespace zero::runtime;
using namespace zero::test;

namespace {

// As makePlan, but that w [5 x 7] lies in two buckets: columns 0 to 2 beside b, columns 3 to 6 after some padding in a bucket of its own.
plan::Plan makeTiledPlan(uint32_t world, uint32_t stage) {
  plan::Plan plan = makePlan(world, stage);
  plan::Bucket *columns = plan.add_buckets();
  *columns = plan.buckets(0);
  columns->set_name("columns");
  for (plan::StateTensor &tensor : *columns->mutable_tensors()) tensor.mutable_ref()->set_buffer(100 + tensor.ref().buffer());
  plan.mutable_parameters(0)->clear_pieces();
  addPiece(*plan.mutable_parameters(0), 0, 0, {0, 0}, {5, 3});
  addPiece(*plan.mutable_parameters(0), 2, 6, {0, 3}, {5, 4});
  return plan;
}

// A number that tells parameter, element and tensor apart.
float valueOf(int parameter, uint64_t element, int tensor) {
  return static_cast<float>(10000 * tensor + 1000 * parameter) + static_cast<float>(element);
}

// Calls `each` with every number of every trained tensor that this rank holds: where it is, and what it should be.
void forEachNumber(const Rank &rank, Memory &memory, const std::function<void(float &, float)> &each) {
  plan::PieceMap map(rank.plan);
  for (int b = 0; b < rank.plan.buckets_size(); ++b) {
    const plan::Bucket &bucket = rank.plan.buckets(b);
    if (!bucket.trainable()) continue;
    for (const plan::StateTensor &tensor : bucket.tensors()) {
      Range held = heldIn(bucket, tensor, rank.rank);
      auto *values = static_cast<float *>(memory.at(tensor.ref()));
      for (const plan::Slice &slice : map.slices(b, held))
        for (uint64_t i = 0; i < slice.count; ++i)
          each(values[slice.at - held.begin + i], valueOf(slice.parameter, slice.start + i, tensor.role()));
    }
  }
}

constexpr std::array<std::pair<uint32_t, uint32_t>, 4> kRuns{{{1, 0}, {2, 1}, {2, 3}, {4, 2}}}; // ranks and stage

} // namespace

TEST(Pieces, ATileIsRowsOfItsParameter) {
  plan::Plan plan = makeTiledPlan(1, 0);
  plan::PieceMap map(plan);
  auto rows = [&](int bucket, Range range) {
    std::vector<std::array<uint64_t, 3>> found;
    for (const plan::Slice &slice : map.slices(bucket, range)) found.push_back({slice.start, slice.count, slice.at});
    return found;
  };
  using Rows = std::vector<std::array<uint64_t, 3>>;
  EXPECT_EQ(rows(2, {0, 64}), (Rows{{3, 4, 6}, {10, 4, 10}, {17, 4, 14}, {24, 4, 18}, {31, 4, 22}}));
  EXPECT_EQ(rows(2, {8, 15}), (Rows{{5, 2, 8}, {10, 4, 10}, {17, 1, 14}}));
  EXPECT_EQ(rows(2, {26, 64}), Rows{});
  EXPECT_EQ(rows(0, {14, 64}), (Rows{{30, 1, 14}, {0, 3, 35}})); // the end of w's first columns, and b
  // Two outer dimensions, and whole inner ones.
  plan::Parameter *deep = plan.mutable_parameters(0);
  deep->clear_shape(), deep->clear_pieces();
  for (int64_t extent : {2, 3, 4, 5}) deep->add_shape(extent);
  addPiece(*deep, 2, 0, {0, 1, 2, 0}, {2, 2, 1, 5});
  plan::PieceMap deeper(plan);
  std::vector<uint64_t> starts;
  for (const plan::Slice &slice : deeper.slices(2, {0, 64})) {
    EXPECT_EQ(slice.count, 5u);
    starts.push_back(slice.start);
  }
  EXPECT_EQ(starts, (std::vector<uint64_t>{30, 50, 90, 110})); // (0, 1, 2), (0, 2, 2), (1, 1, 2), (1, 2, 2)
}

TEST(Pieces, FirstValuesAndExportsAreTheSame) {
  Folder folder;
  for (auto [world, stage] : kRuns) {
    auto exported = [&, world = world](const plan::Plan &plan) {
      onRanks(plan, [&](const Rank &rank, Memory &) {
        initialiseParameters(rank, 1);
        exportWeights(rank, folder / "w.safetensors");
      });
      return folder.read("w.safetensors");
    };
    plan::Plan plan = makePlan(world, stage), tiled = makeTiledPlan(world, stage);
    for (plan::Plan *each : {&plan, &tiled}) { // a tied copy the other way round
      plan::Alias *alias = each->mutable_parameters(0)->add_aliases();
      alias->set_name("wT"), alias->set_transposed(true);
    }
    EXPECT_EQ(exported(plan), exported(tiled)) << world << " ranks at stage " << stage;
  }
}

TEST(Pieces, CheckpointsOfOneResumeTheOther) {
  for (auto [world, stage] : kRuns)
    for (bool fromTiles : {true, false}) {
      Folder folder;
      plan::Plan from = fromTiles ? makeTiledPlan(world, stage) : makePlan(world, stage);
      onRanks(from, [&](const Rank &rank, Memory &memory) {
        forEachNumber(rank, memory, [](float &value, float expected) { value = expected; });
        saveCheckpoint(rank, fillFrozen(rank), folder / "c", {7, 0, 0}, std::nullopt);
      });
      for (auto [toWorld, toStage] : kRuns) {
        plan::Plan to = fromTiles ? makePlan(toWorld, toStage) : makeTiledPlan(toWorld, toStage);
        onRanks(to, [&](const Rank &rank, Memory &memory) {
          EXPECT_EQ(loadCheckpoint(rank, fillFrozen(rank), folder / "c/step-7").step, 7u);
          int wrong = 0, seen = 0;
          forEachNumber(rank, memory, [&](float &value, float expected) { ++seen, wrong += value != expected; });
          EXPECT_GT(seen, 0);
          EXPECT_EQ(wrong, 0) << "rank " << rank.rank << " of " << toWorld << " at stage " << toStage;
        });
      }
    }
}

TEST(Pieces, GradientsAreTheSameFile) {
  for (auto [world, stage] : kRuns) {
    Folder folder;
    auto written = [&, stage = stage](const plan::Plan &plan) {
      onRanks(plan, [&](const Rank &rank, Memory &memory) {
        GradientFile file(rank, folder / "g.safetensors");
        plan::PieceMap map(plan);
        for (int b = 0; b < plan.buckets_size(); ++b) {
          if (!plan.buckets(b).trainable()) continue;
          plan::Step step;
          plan::Update &update = *step.mutable_update();
          update.set_dtype(plan::F32);
          update.set_bucket(static_cast<uint32_t>(b)), update.set_part(stage == 0 ? plan::WHOLE : plan::SHARD);
          Range held = plan::rangeOf(plan.buckets(b), update.part(), rank.rank);
          step.add_reads(); // the parameters
          plan::Ref &ref = *step.add_reads();
          ref.set_buffer(100), ref.set_bytes((held.end - held.begin) * sizeof(float));
          float *gradient = memory.at(ref);
          for (const plan::Slice &slice : map.slices(b, held))
            for (uint64_t i = 0; i < slice.count; ++i) gradient[slice.at - held.begin + i] = valueOf(slice.parameter, slice.start + i, 0);
          file.add(step);
        }
        file.finish();
      });
      return folder.read("g.safetensors");
    };
    EXPECT_EQ(written(makePlan(world, stage)), written(makeTiledPlan(world, stage))) << world << " ranks at stage " << stage;
  }
}

// An infinite number in any piece is found, and named by its place in the parameter.
TEST(Pieces, WhatIsNotFiniteIsNamed) {
  plan::Plan plan = makeTiledPlan(1, 0);
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    initialiseParameters(rank, 1);
    static_cast<float *>(memory.at(plan.buckets(2).tensors(0).ref()))[11] = INFINITY;
    EXPECT_EQ(refusalOf([&] { requireFinite(rank); }), "the run has diverged: parameter 'w' holds inf at element 11");
  });
}
