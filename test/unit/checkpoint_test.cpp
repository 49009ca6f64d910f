#include "runtime/checkpoint/checksums.h"
#include "test/unit/full_disk.h"
#include "test/unit/state_fixture.h"
#include <nlohmann/json.hpp>

using namespace zero;
using namespace zero::runtime;
using namespace zero::test;

TEST(Checkpoint, AnyWorldAndStageResumes) {
  for (auto [world, stage] : {std::pair{2u, 3u}, {4u, 1u}, {1u, 0u}}) {
    Folder folder;
    plan::Plan from = makePlan(world, stage);
    auto saved = onRanks(from, [&](const Rank &rank, Memory &memory) {
      fillState(rank, memory);
      saveCheckpoint(rank, folder / "c", {20, 160, 42}, std::nullopt);
    });
    for (auto [toWorld, toStage] : {std::pair{1u, 0u}, {1u, 3u}, {2u, 3u}, {4u, 2u}, {2u, 0u}}) {
      plan::Plan to = makePlan(toWorld, toStage);
      auto loaded = onRanks(to, [&](const Rank &rank, Memory &) {
        Progress progress = loadCheckpoint(rank, findCheckpoint(folder / "c"));
        EXPECT_EQ(progress.step, 20u);
        EXPECT_EQ(progress.position, 160u);
        EXPECT_EQ(progress.seed, 42u);
      });
      auto same = [&](auto ref, int bucket) {
        EXPECT_EQ(whole(from, saved, ref(from.buckets(bucket)), from.buckets(bucket)),
                  whole(to, loaded, ref(to.buckets(bucket)), to.buckets(bucket)));
      };
      same([](const plan::Bucket &b) { return b.parameter(); }, 0);
      same([](const plan::Bucket &b) { return b.parameter(); }, 1);
      same([](const plan::Bucket &b) { return b.states(0); }, 0);
      same([](const plan::Bucket &b) { return b.states(1); }, 0);
    }
  }
}

TEST(Checkpoint, ThereIsAlwaysAWholeOne) {
  Folder folder;
  plan::Plan plan = makePlan(2, 3);
  std::filesystem::create_directories(folder / "c/step-30.partial"); // a run was killed while writing
  std::filesystem::create_directories(folder / "c/step-notes");
  EXPECT_NE(refusalOf([&] { findCheckpoint(folder / "c"); }).find("no whole checkpoint"), std::string::npos);
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    auto first = saveCheckpoint(rank, folder / "c", {9, 0, 0}, std::nullopt);
    auto second = saveCheckpoint(rank, folder / "c", {10, 0, 0}, std::nullopt);
    rank.communicator.barrier();
    EXPECT_EQ(wholeCheckpoints(folder / "c").size(), 2u);
    rank.communicator.barrier();
    saveCheckpoint(rank, folder / "c", {11, 0, 0}, second);
  });
  EXPECT_EQ(wholeCheckpoints(folder / "c"), (std::vector<std::string>{folder / "c/step-9", folder / "c/step-11"}));
  EXPECT_FALSE(std::filesystem::exists(folder / "c/step-30.partial"));
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-notes"));
}

TEST(Checkpoint, WhatIsNotWholeIsInNobodysWay) {
  Folder folder;
  std::filesystem::create_directories(folder / "c/step-10");
  folder.write("c/step-10/rank-0.safetensors", "without an index");
  std::string endless = "step-" + std::string(30, '9'); // beyond any step
  std::filesystem::create_directories(folder / ("c/" + endless));
  folder.write("c/" + endless + "/index.json", "{}");
  EXPECT_TRUE(wholeCheckpoints(folder / "c").empty());
  onRanks(makePlan(1, 0), [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    std::string saved = saveCheckpoint(rank, folder / "c", {10, 0, 0}, std::nullopt);
    EXPECT_EQ(loadCheckpoint(rank, saved).step, 10u);
    EXPECT_EQ(saveCheckpoint(rank, folder / "c", {10, 0, 0}, saved), saved); // it replaces itself
    EXPECT_EQ(loadCheckpoint(rank, saved).step, 10u);
  });
}

TEST(Checkpoint, ChecksumsAreThoseOfCrc32c) {
  EXPECT_EQ(checksum("123456789", 9), 0xe3069283u); // the check value of its definition
  EXPECT_EQ(checksum("", 0), 0u);
  std::vector<float> values(2 * kChecksumBlock + 3);
  std::iota(values.begin(), values.end(), 0.5f);
  std::vector<uint32_t> sums = checksums(values.data(), values.size());
  ASSERT_EQ(sums.size(), checksumBlocks(values.size()));
  EXPECT_EQ(sums[2], checksum(&values[2 * kChecksumBlock], 12));
  EXPECT_NE(sums[0], sums[1]);
}

TEST(Checkpoint, AChangedByteIsNoticed) {
  Folder folder;
  onRanks(makePlan(2, 3), [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    saveCheckpoint(rank, folder / "c", {9, 0, 0}, std::nullopt);
  });
  std::string file = "c/step-9/rank-1.safetensors", bytes = folder.read(file);
  for (const Tensor &tensor : openSafetensors(folder / file).tensors) {
    std::string damaged = bytes;
    damaged[tensor.offset + tensor.bytes.size() / 2] ^= 1;
    folder.write(file, damaged);
    for (uint32_t world : {1u, 4u}) { // whole pieces, and parts of them
      std::vector<std::string> sentences(world);
      onRanks(makePlan(world, 3),
              [&](const Rank &rank, Memory &) { sentences[rank.rank] = refusalOf([&] { loadCheckpoint(rank, folder / "c/step-9"); }); });
      std::string all;
      for (const std::string &sentence : sentences) all += sentence;
      EXPECT_NE(all.find("rank-1.safetensors' is damaged: the elements 0 to"), std::string::npos) << tensor.name << " on " << world;
    }
  }
}

TEST(Checkpoint, AFullDiskSparesTheOneBefore) {
  Folder folder;
  plan::Plan plan = makePlan(1, 0);
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    auto first = saveCheckpoint(rank, folder / "c", {9, 0, 0}, std::nullopt);
    auto bytes = std::filesystem::file_size(first + "/rank-0.safetensors");
    for (auto limit : {bytes / 2, bytes - 1}) {
      zero::test::FullDisk full(limit);
      std::string sentence = refusalOf([&] { saveCheckpoint(rank, folder / "c", {10, 0, 0}, first); });
      EXPECT_NE(sentence.find("step-9' is still whole"), std::string::npos) << sentence;
      EXPECT_FALSE(std::filesystem::exists(folder / "c/step-10.partial"));
    }
    EXPECT_EQ(loadCheckpoint(rank, findCheckpoint(folder / "c")).step, 9u);
  });
}

TEST(Checkpoint, WhatDoesNotFitIsRefused) {
  Folder folder;
  plan::Plan plan = makePlan(1, 0);
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    saveCheckpoint(rank, folder / "c", {1, 0, 0}, std::nullopt);
  });
  auto refused = [&](const plan::Plan &other) {
    std::string sentence;
    onRanks(other, [&](const Rank &rank, Memory &) { sentence = refusalOf([&] { loadCheckpoint(rank, folder / "c/step-1"); }); });
    return sentence;
  };
  EXPECT_EQ(refused(plan), "");
  plan::Plan sgd = plan, bigger = plan, renamed = plan, fewer = plan;
  sgd.mutable_optimizer()->set_kind(plan::SGD);
  EXPECT_NE(refused(sgd).find("adamw"), std::string::npos);
  bigger.mutable_parameters(1)->set_shape(0, 4);
  EXPECT_NE(refused(bigger).find("'b'"), std::string::npos);
  renamed.mutable_parameters(1)->set_name("c");
  EXPECT_NE(refused(renamed).find("'c'"), std::string::npos);
  fewer.mutable_parameters()->DeleteSubrange(1, 1);
  EXPECT_NE(refused(fewer).find("'b'"), std::string::npos);

  auto index = nlohmann::json::parse(folder.read("c/step-1/index.json"));
  auto changed = [&](auto change) {
    auto copy = index;
    change(copy);
    folder.write("c/step-1/index.json", copy.dump());
    return refused(plan);
  };
  EXPECT_EQ(changed([](auto &) {}), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"].erase(0); }), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"][0]["count"] = 30; }), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"][0]["start"] = UINT64_MAX; }), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"][0]["file"] = "../rank-0.safetensors"; }).find("outside"), std::string::npos);
  EXPECT_NE(changed([](auto &i) { i["pieces"] = 3; }), "");
  EXPECT_NE(changed([](auto &i) { i["format"] = 2; }).find("format 2"), std::string::npos);
  EXPECT_EQ(changed([](auto &) {}), "");
  EXPECT_EQ(changed([](auto &i) { std::reverse(i["pieces"].begin(), i["pieces"].end()); }), ""); // their order means nothing
  EXPECT_EQ(changed([](auto &) {}), "");
  std::string pieces = folder.read("c/step-1/rank-0.safetensors");
  // Types and names of the tensors are those that the index promises.
  for (auto [from, to, sentence] : {std::array{"\"F32\"", "\"I32\"", "F32 elements, which its index promises"},
                                    {"\"U32\"", "\"I32\"", "U32 elements"},
                                    {".crc32c", ".crc32x", "U32 elements"}}) {
    std::string other = pieces;
    other.replace(other.find(from), std::strlen(from), to);
    folder.write("c/step-1/rank-0.safetensors", other);
    EXPECT_NE(refused(plan).find(sentence), std::string::npos) << to;
  }
  folder.write("c/step-1/rank-0.safetensors", pieces.substr(0, pieces.size() - 1));
  EXPECT_NE(refused(plan), "");
}
