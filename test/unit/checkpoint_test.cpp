#include "runtime/checkpoint/checksums.h"
#include "runtime/checkpoint/finite.h"
#include "runtime/comm/collectively.h"
#include "test/unit/full_disk.h"
#include "test/unit/state_fixture.h"
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/stat.h>

using namespace zero;
using namespace zero::runtime;
using namespace zero::test;

TEST(Checkpoint, AnyWorldAndStageResumes) {
  for (auto [world, stage] : {std::pair{2u, 3u}, {4u, 1u}, {1u, 0u}}) {
    Folder folder;
    plan::Plan from = makePlan(world, stage);
    auto saved = onRanks(from, [&](const Rank &rank, Memory &memory) {
      fillState(rank, memory);
      saveCheckpoint(rank, fillFrozen(rank), folder / "c", {20, 160, 42}, std::nullopt);
    });
    for (auto [toWorld, toStage] : {std::pair{1u, 0u}, {1u, 3u}, {2u, 3u}, {4u, 2u}, {2u, 0u}}) {
      plan::Plan to = makePlan(toWorld, toStage);
      auto loaded = onRanks(to, [&](const Rank &rank, Memory &) {
        Progress progress = loadCheckpoint(rank, fillFrozen(rank), checkpointsToResume(folder / "c").front());
        EXPECT_EQ(progress.step, 20u);
        EXPECT_EQ(progress.position, 160u);
        EXPECT_EQ(progress.seed, 42u);
      });
      auto same = [&](plan::StateTensor::Role role, int bucket) {
        EXPECT_EQ(whole(from, saved, role, from.buckets(bucket)), whole(to, loaded, role, to.buckets(bucket)));
      };
      same(plan::StateTensor::MASTER, 0);
      same(plan::StateTensor::MASTER, 1);
      same(plan::StateTensor::FIRST_MOMENT, 0);
      same(plan::StateTensor::SECOND_MOMENT, 0);
    }
  }
}

// A checkpoint holds masters, and does not know what precision its plan has.
TEST(Checkpoint, ResumesAcrossPrecisions) {
  for (auto [world, stage, bf16] : {std::tuple{2u, 3u, true}, {4u, 1u, true}, {1u, 0u, true}, {2u, 2u, false}}) {
    Folder folder;
    plan::Plan from = makePlan(world, stage, bf16);
    auto saved = onRanks(from, [&](const Rank &rank, Memory &memory) {
      fillState(rank, memory);
      saveCheckpoint(rank, fillFrozen(rank), folder / "c", {20, 160, 42}, std::nullopt);
    });
    if (bf16) expectRounded(from, saved);
    for (auto [toWorld, toStage, toBf16] :
         {std::tuple{1u, 0u, true}, {2u, 0u, true}, {2u, 1u, true}, {4u, 2u, true}, {4u, 3u, true}, {2u, 3u, false}}) {
      plan::Plan to = makePlan(toWorld, toStage, toBf16);
      auto loaded = onRanks(to, [&](const Rank &rank, Memory &) { loadCheckpoint(rank, fillFrozen(rank), folder / "c/step-20"); });
      EXPECT_EQ(whole(from, saved, plan::StateTensor::MASTER, from.buckets(0)),
                whole(to, loaded, plan::StateTensor::MASTER, to.buckets(0)));
      EXPECT_EQ(whole(from, saved, plan::StateTensor::FIRST_MOMENT, from.buckets(0)),
                whole(to, loaded, plan::StateTensor::FIRST_MOMENT, to.buckets(0)));
      if (toBf16) expectRounded(to, loaded);
    }
  }
}

// State is lent in pieces that begin elsewhere than the checksums' blocks when another number of ranks resumes.
TEST(Checkpoint, LargeTensorsComeInPieces) {
  Folder folder;
  const uint64_t elements = 6 * 400000; // 2.3 blocks; a third of it is 0.8, a half 1.1
  auto planOf = [&](uint32_t world) {
    plan::Plan plan = makePlan(1, 0);
    uint64_t shard = elements / world;
    plan.set_world(world), plan.set_stage(3);
    plan.mutable_parameters()->DeleteSubrange(1, 2), plan.mutable_buckets()->DeleteSubrange(1, 1);
    plan.mutable_parameters(0)->set_shape(0, static_cast<int64_t>(elements)), plan.mutable_parameters(0)->set_shape(1, 1);
    plan::Bucket *bucket = plan.mutable_buckets(0);
    bucket->mutable_tensors()->DeleteSubrange(1, 2);
    bucket->set_elements(elements), bucket->set_shard_elements(shard);
    plan::StateTensor *master = bucket->mutable_tensors(0);
    master->set_part(plan::SHARD), master->mutable_ref()->set_bytes(shard * 4);
    return plan;
  };
  plan::Plan from = planOf(1);
  auto saved = onRanks(from, [&](const Rank &rank, Memory &) {
    initialiseParameters(rank, 1);
    requireFinite(rank);
    saveCheckpoint(rank, fillFrozen(rank), folder / "c", {1, 8, 42}, std::nullopt);
  });
  auto expected = whole(from, saved, plan::StateTensor::MASTER, from.buckets(0));
  for (uint32_t world : {1u, 2u, 3u}) {
    plan::Plan to = planOf(world);
    auto loaded = onRanks(to, [&](const Rank &rank, Memory &) { loadCheckpoint(rank, fillFrozen(rank), folder / "c/step-1"); });
    EXPECT_TRUE(expected == whole(to, loaded, plan::StateTensor::MASTER, to.buckets(0))) << world;
    plan::Bucket *bucket = to.mutable_buckets(0); // and a compute copy
    plan::Ref copy;
    copy.set_buffer(9), copy.set_bytes(2 * elements);
    addTensor(*bucket, plan::StateTensor::COMPUTE, copy, plan::WHOLE, plan::BF16);
    loaded = onRanks(to, [&](const Rank &rank, Memory &) { loadCheckpoint(rank, fillFrozen(rank), folder / "c/step-1"); });
    expectRounded(to, loaded);
  }
}

TEST(Checkpoint, ThereIsAlwaysAWholeOne) {
  Folder folder;
  plan::Plan plan = makePlan(2, 3);
  for (const char *left : {"step-30.partial", "step-4.removed"}) { // a run was killed while writing, one while removing
    std::filesystem::create_directories(folder / (std::string("c/") + left));
    folder.write(std::string("c/") + left + "/index.json", "{}");
  }
  std::filesystem::create_directories(folder / "c/step-notes");
  EXPECT_NE(refusalOf([&] { checkpointsToResume(folder / "c"); }).find("no whole checkpoint"), std::string::npos);
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    for (uint64_t step : {9u, 10u, 11u, 20u}) saveCheckpoint(rank, fillFrozen(rank), folder / "c", {step, 0, 0}, std::nullopt);
  });
  EXPECT_EQ(checkpointsIn(folder / "c").size(), 4u);
  removeLeftovers(folder / "c");
  EXPECT_FALSE(std::filesystem::exists(folder / "c/step-30.partial"));
  EXPECT_FALSE(std::filesystem::exists(folder / "c/step-4.removed"));
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-notes"));
  setAside(folder / "c/step-20");
  EXPECT_TRUE(removeOlder(folder / "c", 2).empty());
  EXPECT_EQ(checkpointsIn(folder / "c"), (std::vector<std::string>{folder / "c/step-10", folder / "c/step-11"}));
  EXPECT_EQ(checkpointsToResume(folder / "c"), (std::vector<std::string>{folder / "c/step-11", folder / "c/step-10"}));
  EXPECT_TRUE(removeOlder(folder / "c", 1).empty());
  EXPECT_EQ(checkpointsIn(folder / "c"), (std::vector<std::string>{folder / "c/step-11"}));
  std::set<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder / "c")) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"step-11", "step-20.damaged", "step-notes"}));
}

TEST(Checkpoint, WhatSomebodyHasPlantedIsNotFollowed) {
  Folder folder;
  std::filesystem::create_directories(folder / "c"), std::filesystem::create_directories(folder / "theirs");
  folder.write("theirs/index.json", "theirs"), folder.write("theirs/rank-0.safetensors", "theirs");
  std::filesystem::create_directory_symlink(folder / "theirs", folder / "c/step-9.partial");
  onRanks(makePlan(1, 0), [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    EXPECT_EQ(loadCheckpoint(rank, fillFrozen(rank), saveCheckpoint(rank, fillFrozen(rank), folder / "c", {9, 0, 0}, std::nullopt)).step,
              9u);
  });
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "c/step-9"));
  std::filesystem::create_directory_symlink(folder / "theirs", folder / "c/step-8.removed");
  removeLeftovers(folder / "c");
  EXPECT_EQ(folder.read("theirs/index.json") + folder.read("theirs/rank-0.safetensors"), "theirstheirs");
}

TEST(Checkpoint, NumbersThatAreNotFiniteAreNamed) {
  std::vector<float> values(10000, -0.0f);
  values[17] = std::numeric_limits<float>::max(), values[18] = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(firstNotFinite(values.data(), values.size()), values.size());
  for (float bad : {NAN, -NAN, INFINITY, -INFINITY})
    for (size_t at : {size_t(0), size_t(4095), size_t(4096), size_t(9999)}) {
      std::vector<float> with = values;
      with[at] = bad;
      EXPECT_EQ(firstNotFinite(with.data(), with.size()), at);
    }
  for (uint32_t stage : {0u, 3u}) {
    plan::Plan plan = makePlan(2, stage);
    const plan::Bucket &layer = plan.buckets(0), &frozen = plan.buckets(1);
    auto refusals = [&](const plan::Bucket &bucket, const plan::StateTensor &tensor, uint64_t element, float value) {
      std::vector<std::string> sentences(2);
      onRanks(plan, [&](const Rank &rank, Memory &memory) {
        fillState(rank, memory);
        Range held = heldIn(bucket, tensor, rank.rank);
        if (element >= held.begin && element < held.end) static_cast<float *>(memory.at(tensor.ref()))[element - held.begin] = value;
        sentences[rank.rank] = refusalOf([&] { requireFinite(rank); });
      });
      return sentences[0] + "|" + sentences[1]; // of who owns it
    };
    EXPECT_EQ(refusals(layer, layer.tensors(0), 1, 0), "|");
    EXPECT_EQ(refusals(layer, layer.tensors(0), 33, NAN), "|the run has diverged: parameter 'w' holds nan at element 33");
    EXPECT_EQ(refusals(layer, layer.tensors(2), 36, INFINITY),
              "|the run has diverged: the optimizer's 'v' of parameter 'b' holds inf at element 1");
    EXPECT_EQ(refusals(layer, layer.tensors(1), 0, -INFINITY),
              "the run has diverged: the optimizer's 'm' of parameter 'w' holds -inf at element 0|");
    EXPECT_EQ(refusals(frozen, frozen.tensors(0), 3, -INFINITY), "|"); // a mask of the model's own
  }
}

// Numbers are looked at while they are written: the rank that has one that is not finite says so, and all stop.
TEST(Checkpoint, NothingIsSavedOfARunThatHasDiverged) {
  Folder folder;
  plan::Plan plan = makePlan(2, 3);
  const plan::StateTensor &v = plan.buckets(0).tensors(2);
  std::vector<std::string> said(2), saved(2);
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    saved[rank.rank] = saveCheckpoint(rank, fillFrozen(rank), folder / "c", {9, 0, 0}, std::nullopt);
    if (rank.rank == 1) static_cast<float *>(memory.at(v.ref()))[0] = NAN;
    try {
      saveCheckpoint(rank, fillFrozen(rank), folder / "c", {10, 0, 0}, saved[rank.rank]);
      said[rank.rank] = "saved";
    } catch (const ReportedElsewhere &) {
      said[rank.rank] = "reported elsewhere";
    } catch (const CollectiveError &error) {
      said[rank.rank] = error.what();
    }
  });
  EXPECT_EQ(said[0], "reported elsewhere");
  EXPECT_TRUE(said[1].starts_with("rank 1: the run has diverged: the optimizer's 'v' of parameter '")) << said[1];
  EXPECT_NE(said[1].find("holds nan at element"), std::string::npos) << said[1];
  EXPECT_NE(said[1].find("after step 10, so nothing of it is saved, and '" + saved[1] + "' stays the last checkpoint; a smaller --lr"),
            std::string::npos)
      << said[1];
  EXPECT_FALSE(std::filesystem::exists(folder / "c/step-10.partial"));
  EXPECT_FALSE(std::filesystem::exists(folder / "c/step-10"));
}

TEST(Checkpoint, WhatIsNotWholeIsInNobodysWay) {
  Folder folder;
  std::filesystem::create_directories(folder / "c/step-10");
  folder.write("c/step-10/rank-0.safetensors", "without an index");
  std::string endless = "step-" + std::string(30, '9'); // beyond any step
  std::filesystem::create_directories(folder / ("c/" + endless));
  folder.write("c/" + endless + "/index.json", "{}");
  EXPECT_TRUE(checkpointsIn(folder / "c").empty());
  onRanks(makePlan(1, 0), [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    std::string saved = saveCheckpoint(rank, fillFrozen(rank), folder / "c", {10, 0, 0}, std::nullopt);
    EXPECT_EQ(loadCheckpoint(rank, fillFrozen(rank), saved).step, 10u);
    EXPECT_EQ(saveCheckpoint(rank, fillFrozen(rank), folder / "c", {10, 0, 0}, saved), saved); // it replaces itself
    EXPECT_EQ(loadCheckpoint(rank, fillFrozen(rank), saved).step, 10u);
  });
}

TEST(Checkpoint, ChecksumsAreThoseOfCrc32c) {
  EXPECT_EQ(checksum("123456789", 9), 0xe3069283u); // the check value of its definition
  EXPECT_EQ(checksum("", 0), 0u);
  EXPECT_EQ(checksumBlocks(2 * kChecksumBlock + 3), 3u);
}

TEST(Checkpoint, AChangedByteIsNoticed) {
  Folder folder;
  onRanks(makePlan(2, 3), [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    saveCheckpoint(rank, fillFrozen(rank), folder / "c", {9, 0, 0}, std::nullopt);
  });
  std::string file = "c/step-9/rank-1.safetensors", bytes = folder.read(file);
  for (const Tensor &tensor : openSafetensors(folder / file).tensors) {
    std::string damaged = bytes;
    damaged[tensor.offset + tensor.bytes.size() / 2] ^= 1;
    folder.write(file, damaged);
    for (uint32_t world : {1u, 4u}) { // whole pieces, and parts of them
      std::vector<std::string> sentences(world);
      onRanks(makePlan(world, 3), [&](const Rank &rank, Memory &) {
        sentences[rank.rank] = refusalOf([&] { loadCheckpoint(rank, fillFrozen(rank), folder / "c/step-9"); });
      });
      std::string all;
      for (const std::string &sentence : sentences) all += sentence;
      std::string words = tensor.type == Element::F32 ? "damaged: the elements 0 to" : "damaged, or of another step or run";
      EXPECT_NE(all.find("rank-1.safetensors' is " + words), std::string::npos) << tensor.name << " on " << world;
    }
  }
}

// Each file of them is whole, so no checksum of its own tells.
TEST(Checkpoint, AFileOfAnotherCheckpointIsNoticed) {
  Folder folder;
  plan::Plan plan = makePlan(2, 3);
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    saveCheckpoint(rank, fillFrozen(rank), folder / "c", {9, 0, 0}, std::nullopt);
    auto *values = static_cast<float *>(memory.at(plan.buckets(0).tensors(0).ref()));
    values[0] += 1; // of a step
    saveCheckpoint(rank, fillFrozen(rank), folder / "c", {10, 0, 0}, std::nullopt);
  });
  auto refused = [&] {
    std::vector<std::string> sentences(2);
    onRanks(plan, [&](const Rank &rank, Memory &) {
      try {
        loadCheckpoint(rank, fillFrozen(rank), folder / "c/step-10");
      } catch (const Damaged &damaged) {
        sentences[rank.rank] = damaged.what();
      }
    });
    return sentences[0] + sentences[1];
  };
  EXPECT_EQ(refused(), "");
  folder.write("c/step-10/rank-1.safetensors", folder.read("c/step-9/rank-1.safetensors"));
  EXPECT_NE(refused().find("rank-1.safetensors' is damaged, or of another step or run"), std::string::npos) << refused();
  folder.write("c/step-10/index.json", folder.read("c/step-9/index.json")); // now that of rank 0 is of another one
  EXPECT_NE(refused().find("rank-0.safetensors' is damaged, or of another step or run"), std::string::npos) << refused();
}

TEST(Checkpoint, WhatIsNoFileIsNotWaitedFor) {
  Folder folder;
  plan::Plan plan = makePlan(1, 0);
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    saveCheckpoint(rank, fillFrozen(rank), folder / "c", {9, 0, 0}, std::nullopt);
  });
  std::string file = folder / "c/step-9/rank-0.safetensors";
  for (bool pipe : {true, false}) {
    std::filesystem::remove(file);
    ASSERT_EQ(pipe ? ::mkfifo(file.c_str(), 0600) : ::mkdir(file.c_str(), 0700), 0);
    onRanks(plan, [&](const Rank &rank, Memory &) { EXPECT_THROW(loadCheckpoint(rank, fillFrozen(rank), folder / "c/step-9"), Damaged); });
  }
}

TEST(Checkpoint, AFullDiskSparesTheOneBefore) {
  Folder folder;
  plan::Plan plan = makePlan(1, 0);
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    auto first = saveCheckpoint(rank, fillFrozen(rank), folder / "c", {9, 0, 0}, std::nullopt);
    auto bytes = std::filesystem::file_size(first + "/rank-0.safetensors");
    for (auto limit : {bytes / 2, bytes - 1}) {
      zero::test::FullDisk full(limit);
      std::string sentence = refusalOf([&] { saveCheckpoint(rank, fillFrozen(rank), folder / "c", {10, 0, 0}, first); });
      EXPECT_NE(sentence.find("step-9' is still whole"), std::string::npos) << sentence;
      EXPECT_FALSE(std::filesystem::exists(folder / "c/step-10.partial"));
    }
    EXPECT_EQ(loadCheckpoint(rank, fillFrozen(rank), checkpointsToResume(folder / "c").front()).step, 9u);
  });
}

TEST(Checkpoint, WhatDoesNotFitIsRefused) {
  Folder folder;
  plan::Plan plan = makePlan(1, 0);
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    fillState(rank, memory);
    saveCheckpoint(rank, fillFrozen(rank), folder / "c", {1, 0, 0}, std::nullopt);
  });
  auto refused = [&](const plan::Plan &other) {
    std::string sentence;
    onRanks(other, [&](const Rank &rank, Memory &) {
      sentence = refusalOf([&] { loadCheckpoint(rank, fillFrozen(rank), folder / "c/step-1"); });
    });
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

  std::string written = folder.read("c/step-1/index.json");
  auto index = nlohmann::json::parse(written);
  auto changed = [&](auto change) {
    auto copy = index;
    change(copy);
    copy.erase("crc32c");
    std::string text = copy.dump(1);
    text.resize(text.size() - 2);
    folder.write("c/step-1/index.json", text + fmt::format(",\n \"crc32c\": \"{:08x}\"\n}}\n", checksum(text.data(), text.size())));
    return refused(plan);
  };
  EXPECT_EQ(changed([](auto &) {}), "");
  // Kinds and ranges of all fields.
  for (const char *field : {"step", "position", "seed", "world", "stage", "format"})
    for (const nlohmann::json &value :
         {nlohmann::json(-1), nlohmann::json(1.5), nlohmann::json("1"), nlohmann::json(nullptr), nlohmann::json(true)})
      EXPECT_NE(changed([&](auto &i) { i[field] = value; }).find(fmt::format("for '{}'", field)), std::string::npos) << field << value;
  EXPECT_NE(changed([](auto &i) { i["world"] = 0; }), "");
  EXPECT_NE(changed([](auto &i) { i["stage"] = 4; }), "");
  EXPECT_NE(changed([](auto &i) { i["position"] = UINT64_MAX; }), "");
  EXPECT_NE(changed([](auto &i) { i["optimizer"] = 1; }), "");
  EXPECT_NE(changed([](auto &i) { i.erase("step"); }), "");
  EXPECT_NE(changed([](auto &i) { i["shuffled"] = 1; }), "");
  EXPECT_NE(changed([](auto &i) { i["settings"] = 1; }), "");
  EXPECT_NE(changed([](auto &i) { i["settings"]["--lr"] = 1; }), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"][0] = 1; }), "");
  EXPECT_NE(changed([](auto &i) { i["files"] = 1; }).find("no list of files"), std::string::npos);
  EXPECT_NE(changed([](auto &i) { i["files"].erase(0); }).find("no sum of its file 'rank-0.safetensors'"), std::string::npos);
  EXPECT_NE(changed([](auto &i) { i["files"].push_back(i["files"][0]); }).find("'rank-0.safetensors' twice"), std::string::npos);
  EXPECT_NE(changed([](auto &i) { i["files"][0]["sum"] = "00c0ffee00c0ffee"; }).find("for 'sum'"), std::string::npos);
  EXPECT_EQ(changed([](auto &i) { i.erase("files"); }), ""); // older ones have none
  EXPECT_NE(changed([](auto &i) { i["frozen"] = 1; }).find("no list of what is frozen"), std::string::npos);
  EXPECT_NE(changed([](auto &i) { i["frozen"][0] = 1; }), "");
  for (const char *sum : {"", "00c0ffee00c0ffee0", "x", "-1", "12 "})
    EXPECT_NE(changed([&](auto &i) { i["frozen"][0]["sum"] = sum; }).find("for 'sum'"), std::string::npos) << sum;
  EXPECT_NE(changed([](auto &i) { i["frozen"].push_back(i["frozen"][0]); }).find("'e' twice"), std::string::npos);
  EXPECT_NE(changed([](auto &i) { i["frozen"][0]["parameter"] = "b"; }).find("'b' twice"), std::string::npos);
  EXPECT_NE(changed([](auto &i) { i.erase("frozen"); }).find("no param of parameter 'e'"), std::string::npos);
  EXPECT_NE(changed([](auto &i) { i["pieces"][0]["tensor"] = "w"; }), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"][0]["count"] = 0; }), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"][0]["start"] = -1; }), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"].push_back(i["pieces"][0]); }).find("has twice element 0"), std::string::npos);
  // Any byte of the index.
  for (size_t at = 0; at < written.size(); at += at + 20 < written.size() ? 7 : 1) {
    std::string other = written;
    other[at] = static_cast<char>(other[at] ^ 1);
    folder.write("c/step-1/index.json", other);
    EXPECT_TRUE(at == written.size() - 1 || refused(plan).find("damaged") != std::string::npos) << at << refused(plan);
    folder.write("c/step-1/index.json", written.substr(0, at));
    EXPECT_NE(refused(plan).find("damaged"), std::string::npos) << at;
  }
  // Format 1 had no checksum of its own.
  auto older = index;
  older["format"] = 1, older.erase("crc32c");
  folder.write("c/step-1/index.json", older.dump(1));
  EXPECT_EQ(refused(plan), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"].erase(0); }), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"][0]["count"] = 30; }), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"][0]["start"] = UINT64_MAX; }), "");
  EXPECT_NE(changed([](auto &i) { i["pieces"][0]["file"] = "../rank-0.safetensors"; }).find("outside"), std::string::npos);
  EXPECT_NE(changed([](auto &i) { i["pieces"] = 3; }), "");
  EXPECT_NE(changed([](auto &i) { i["format"] = 4; }).find("format 4"), std::string::npos);
  EXPECT_EQ(changed([](auto &) {}), "");
  EXPECT_EQ(changed([](auto &i) { std::reverse(i["pieces"].begin(), i["pieces"].end()); }), ""); // their order means nothing
  EXPECT_EQ(changed([](auto &) {}), "");
  std::string pieces = folder.read("c/step-1/rank-0.safetensors");
  // Types and names of the tensors are those that the index promises.
  for (auto [from, to, sentence] : {std::array{"\"F32\"", "\"I32\"", "F32 elements, which its index promises"},
                                    {"\"U32\"", "\"I32\"", "U32 elements"},
                                    {".crc32c", ".crc32x", "its checksums are not those that were written"}}) {
    std::string other = pieces;
    other.replace(other.find(from), std::strlen(from), to);
    folder.write("c/step-1/rank-0.safetensors", other);
    EXPECT_NE(refused(plan).find(sentence), std::string::npos) << to;
  }
  folder.write("c/step-1/rank-0.safetensors", pieces.substr(0, pieces.size() - 1));
  EXPECT_NE(refused(plan), "");
}
