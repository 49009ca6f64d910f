// What is frozen is what the model says: checkpoints leave it out, and a run that goes on beside other values is refused.
#include "runtime/checkpoint/export.h"
#include "runtime/data/tensor_file.h"
#include "test/unit/state_fixture.h"
#include <mutex>
#include <nlohmann/json.hpp>

using namespace zero;
using namespace zero::runtime;
using namespace zero::test;

namespace {

// makePlan with the frozen parameter e trained.
plan::Plan trainedPlan(uint32_t world, uint32_t stage) {
  plan::Plan plan = makePlan(world, stage);
  plan::Bucket *bucket = plan.mutable_buckets(1);
  bucket->set_trainable(true);
  uint32_t buffer = 50;
  for (auto role : {plan::StateTensor::FIRST_MOMENT, plan::StateTensor::SECOND_MOMENT}) {
    plan::Part part = stage == 0 ? plan::WHOLE : plan::SHARD;
    plan::Ref ref;
    ref.set_buffer(buffer++), ref.set_bytes(4 * plan::elementsOf(*bucket, part));
    addTensor(*bucket, role, ref, part);
  }
  return plan;
}

void save(const plan::Plan &plan, const std::string &directory) {
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    saveCheckpoint(rank, fillFrozen(rank), directory, {7, 0, 0}, std::nullopt);
  });
}

// Why the first rank that refuses it does not go on from a checkpoint; empty if none does.
std::string refusal(const plan::Plan &plan, const std::string &checkpoint) {
  std::vector<std::string> sentences(plan.world());
  onRanks(plan, [&](const Rank &rank, Memory &) {
    FrozenSums frozen = fillFrozen(rank);
    try {
      loadCheckpoint(rank, frozen, checkpoint);
    } catch (const Error &error) {
      sentences[rank.rank] = error.what();
    }
  });
  for (const std::string &sentence : sentences)
    if (!sentence.empty()) return sentence;
  return "";
}

} // namespace

TEST(Frozen, SumsDoNotDependOnWhoOwnsWhat) {
  std::vector<float> values(100);
  normalNumbers(3, 1, 0, values.size(), values.data());
  std::span<const float> all(values);
  EXPECT_EQ(frozenSum(5, all), frozenSum(5, all.first(33)) + frozenSum(38, all.subspan(33)));
  EXPECT_NE(frozenSum(5, all), frozenSum(6, all));
  uint64_t before = frozenSum(5, all);
  std::swap(values[3], values[4]);
  EXPECT_NE(frozenSum(5, all), before);
  std::vector<uint64_t> sums;
  for (auto [world, stage] : {std::pair{1u, 0u}, {2u, 1u}, {2u, 3u}, {4u, 3u}})
    for (bool bf16 : {false, true})
      onRanks(makePlan(world, stage, bf16), [&](const Rank &rank, Memory &) {
        FrozenSums frozen = fillFrozen(rank);
        ASSERT_EQ(frozen.whole.size(), 1u);
        static std::mutex guard;
        std::lock_guard lock(guard);
        sums.push_back(frozen.whole.at("e"));
      });
  for (uint64_t sum : sums) EXPECT_EQ(sum, sums.front());
}

TEST(Frozen, CheckpointsHoldSumsAlone) {
  Folder folder;
  save(makePlan(2, 3), folder / "c");
  auto index = nlohmann::json::parse(folder.read("c/step-7/index.json"));
  ASSERT_EQ(index["frozen"].size(), 1u);
  EXPECT_EQ(index["frozen"][0]["parameter"], "e");
  EXPECT_EQ(index["frozen"][0]["sum"].get<std::string>().size(), 16u);
  for (const auto &piece : index["pieces"]) EXPECT_NE(piece["parameter"], "e");
  for (const char *file : {"c/step-7/rank-0.safetensors", "c/step-7/rank-1.safetensors"})
    for (const Tensor &tensor : openSafetensors(folder / file).tensors) EXPECT_FALSE(tensor.name.starts_with("e["));
  for (auto [world, stage, bf16] : {std::tuple{1u, 0u, false}, {4u, 2u, true}, {2u, 3u, true}})
    EXPECT_EQ(refusal(makePlan(world, stage, bf16), folder / "c/step-7"), "");
}

TEST(Frozen, OtherValuesAreRefused) {
  Folder folder;
  save(makePlan(2, 3), folder / "c");
  plan::Plan other = makePlan(2, 1);
  other.mutable_parameters(2)->mutable_init()->set_seed(99);
  EXPECT_EQ(refusal(other, folder / "c/step-7"),
            "the frozen parameter 'e' has other values in --init random than in the run that saved checkpoint '" + (folder / "c/step-7") +
                "', whose other parameters were trained beside those; run with the weights of then");
  // It cannot be trained from there on: its optimizer has no state.
  EXPECT_EQ(refusal(trainedPlan(1, 0), folder / "c/step-7"), "checkpoint '" + (folder / "c/step-7") +
                                                                 "' has no param of parameter 'e': it belongs to another model, or the "
                                                                 "parameter was frozen");
  // The index says so if it is of another model.
  plan::Plan without = makePlan(1, 0);
  without.mutable_parameters()->DeleteSubrange(2, 1), without.mutable_buckets()->DeleteSubrange(1, 1);
  EXPECT_EQ(refusal(without, folder / "c/step-7"),
            "checkpoint '" + (folder / "c/step-7") + "' has a parameter 'e' that the plan has not: it belongs to another model");
}

// What was trained is frozen only with the values that it has.
TEST(Frozen, WhatWasTrainedMustBeInTheModel) {
  for (auto [world, stage] : {std::pair{1u, 0u}, {2u, 3u}, {4u, 1u}}) {
    Folder folder;
    save(trainedPlan(2, 1), folder / "c"); // with first values
    for (bool bf16 : {false, true}) EXPECT_EQ(refusal(makePlan(world, stage, bf16), folder / "c/step-7"), "");
    plan::Plan trained = trainedPlan(2, 1);
    onRanks(trained, [&](const Rank &rank, Memory &memory) {
      fillState(rank, memory);
      static_cast<float *>(memory.at(trained.buckets(1).tensors(0).ref()))[13] += 1;
      saveCheckpoint(rank, fillFrozen(rank), folder / "d", {7, 0, 0}, std::nullopt);
    });
    for (bool bf16 : {false, true})
      EXPECT_EQ(refusal(makePlan(world, stage, bf16), folder / "d/step-7"),
                "the plan freezes parameter 'e', and checkpoint '" + (folder / "d/step-7") +
                    "' has other values of it than --init random: it was trained until then, or that has changed; write the weights of "
                    "that run (zerorun with its "
                    "own plan, --resume and --export to .onnx) and compile those");
  }
}

TEST(Frozen, MayBeLeftOutOfAnExport) {
  Folder folder;
  for (auto [world, stage] : {std::pair{1u, 0u}, {4u, 3u}}) {
    plan::Plan plan = makePlan(world, stage);
    for (int p : {0, 2}) { // tied copies of both kinds
      plan::Alias *alias = plan.mutable_parameters(p)->add_aliases();
      alias->set_name(plan.parameters(p).name() + "T"), alias->set_transposed(true);
    }
    std::vector<std::string> names;
    for (auto which : {Exported::All, Exported::Trained}) {
      onRanks(plan, [&](const Rank &rank, Memory &) {
        initialiseParameters(rank, 1);
        exportWeights(rank, folder / "w.safetensors", which);
      });
      names.emplace_back();
      for (const Tensor &tensor : openSafetensors(folder / "w.safetensors").tensors) names.back() += tensor.name + " ";
    }
    EXPECT_EQ(names, (std::vector<std::string>{"b e eT w wT ", "b w wT "}));
    EXPECT_EQ(refusalOf([&] { checkExport(plan, "w.onnx", Exported::Trained); }),
              "--export 'w.onnx' with --only-trained: an ONNX file holds the whole model; export to .safetensors");
  }
}

// In bf16 it rests rounded, and is exported as the model has it.
TEST(Frozen, ExportsAreNotRounded) {
  Folder folder;
  for (auto [world, stage] : {std::pair{1u, 0u}, {2u, 1u}, {4u, 3u}})
    for (bool bf16 : {false, true}) {
      onRanks(makePlan(world, stage, bf16), [&](const Rank &rank, Memory &) {
        initialiseParameters(rank, 1);
        exportWeights(rank, folder / "w.safetensors");
      });
      std::vector<float> expected(16);
      normalNumbers('e', 1, 0, expected.size(), expected.data());
      for (const Tensor &tensor : openSafetensors(folder / "w.safetensors").tensors)
        EXPECT_TRUE(tensor.name != "e" || floats(tensor) == expected) << world << " ranks at stage " << stage;
    }
}
