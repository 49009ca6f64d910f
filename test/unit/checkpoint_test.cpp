#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checksums.h"
#include "runtime/checkpoint/export.h"
#include "runtime/checkpoint/export_onnx.h"
#include "runtime/checkpoint/initial.h"
#include "runtime/data/tensor_file.h"
#include "test/unit/full_disk.h"
#include "test/unit/run_fixtures.h"
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace zero;
using namespace zero::runtime;
using zero::test::Folder;
using zero::test::Ranks;
using zero::test::refusalOf;

namespace {

constexpr uint64_t kShardOf2 = 32; // elements; shards are multiples of 64 bytes

void setRef(plan::Ref *ref, uint32_t buffer, uint64_t elements) { ref->set_buffer(buffer), ref->set_bytes(elements * 4); }

// Bucket 0: w [5 x 7], b [3], padding; bucket 1: e [4 x 4] frozen. Whole parameters at stage 0 to 2, shards at 3; whole states at 0.
plan::Plan makePlan(uint32_t world, uint32_t stage) {
  plan::Plan plan;
  plan.set_world(world), plan.set_stage(stage), plan.mutable_optimizer()->set_states(2);
  uint32_t buffer = 0;
  for (bool trainable : {true, false}) {
    plan::Bucket *bucket = plan.add_buckets();
    uint64_t shard = (trainable ? 2 * kShardOf2 : 64) / world, all = shard * world;
    bucket->set_name(trainable ? "layer" : "frozen"), bucket->set_trainable(trainable);
    bucket->set_elements(all), bucket->set_shard_elements(shard);
    setRef(bucket->mutable_parameter(), buffer++, stage == 3 ? shard : all);
    for (int i = 0; trainable && i < 2; ++i) setRef(bucket->add_states(), buffer++, stage == 0 ? all : shard);
  }
  auto add = [&](const char *name, std::vector<int64_t> shape, uint32_t bucket, uint64_t offset) {
    plan::Parameter *p = plan.add_parameters();
    p->set_name(name), p->set_bucket(bucket), p->set_offset_elements(offset);
    p->mutable_shape()->Add(shape.begin(), shape.end());
    p->mutable_init()->set_rule(plan::Init::NORMAL), p->mutable_init()->set_std(1),
        p->mutable_init()->set_seed(static_cast<uint64_t>(name[0]));
    return p;
  };
  add("w", {5, 7}, 0, 0);
  add("b", {3}, 0, 35);
  add("e", {4, 4}, 1, 0);
  return plan;
}

// One rank's memory.
struct Memory {
  std::map<uint32_t, std::vector<float>> buffers;
  void *at(const plan::Ref &ref) {
    auto &values = buffers[ref.buffer()];
    values.resize(ref.bytes() / 4);
    return values.data();
  }
};

using Body = std::function<void(const Rank &, Memory &)>;

std::vector<Memory> onRanks(const plan::Plan &plan, const Body &body) {
  std::vector<Memory> memories(plan.world());
  Ranks(static_cast<int>(plan.world())).run([&](Communicator &communicator) {
    auto rank = static_cast<uint64_t>(communicator.rank());
    Memory &memory = memories[rank];
    body({plan, rank, [&](const plan::Ref &ref) { return memory.at(ref); }, communicator}, memory);
  });
  return memories;
}

// Every tensor of every bucket as one whole, from whichever ranks hold it.
std::vector<float> whole(const plan::Plan &plan, std::vector<Memory> &memories, const plan::Ref &ref, const plan::Bucket &bucket) {
  std::vector<float> all(bucket.elements(), NAN);
  for (uint64_t r = 0; r < plan.world(); ++r) {
    Range held = heldIn(bucket, ref, r);
    auto *values = static_cast<float *>(memories[r].at(ref));
    std::copy(values, values + (held.end - held.begin), all.begin() + static_cast<long>(held.begin));
  }
  return all;
}

// Fills parameters from rules and states with numbers that tell their place.
void fillState(const Rank &rank, Memory &memory) {
  initialiseParameters(rank, 1);
  const plan::Bucket &bucket = rank.plan.buckets(0);
  for (int i = 0; i < 2; ++i) {
    Range held = heldIn(bucket, bucket.states(i), rank.rank);
    auto *values = static_cast<float *>(memory.at(bucket.states(i)));
    for (uint64_t e = held.begin; e < held.end; ++e)
      values[e - held.begin] = e < 38 ? static_cast<float>(1000 * (i + 1) + static_cast<int>(e)) : 0; // padding stays zero
  }
}

std::vector<float> floats(const Tensor &tensor) {
  std::vector<float> values(tensor.bytes.size() / 4);
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

} // namespace

TEST(Initial, DoesNotDependOnTheWorld) {
  plan::Plan one = makePlan(1, 0), two = makePlan(2, 3), four = makePlan(4, 3);
  auto a = onRanks(one, [](const Rank &rank, Memory &) { initialiseParameters(rank, 1); });
  auto b = onRanks(two, [](const Rank &rank, Memory &) { initialiseParameters(rank, 1); });
  auto c = onRanks(four, [](const Rank &rank, Memory &) { initialiseParameters(rank, 2); });
  for (int bucket = 0; bucket < 2; ++bucket) {
    auto of = [&](const plan::Plan &plan, std::vector<Memory> &m) {
      return whole(plan, m, plan.buckets(bucket).parameter(), plan.buckets(bucket));
    };
    EXPECT_EQ(of(one, a), of(two, b));
    EXPECT_EQ(of(one, a), of(four, c));
  }
  std::vector<float> many(100000), part(11);
  normalNumbers(7, 0.5f, 0, many.size(), many.data());
  normalNumbers(7, 0.5f, 33, part.size(), part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), many.begin() + 33));
  double mean = std::accumulate(many.begin(), many.end(), 0.0) / static_cast<double>(many.size()), square = 0;
  for (float x : many) square += x * x;
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(many.size())), 0.5, 0.01);
}

TEST(Initial, ReadsSlicesOfFilesAndRefusesShortOnes) {
  Folder folder;
  plan::Plan plan = makePlan(2, 3);
  std::vector<float> values(35);
  std::iota(values.begin(), values.end(), 1.0f);
  std::string bytes = "head" + std::string(reinterpret_cast<char *>(values.data()), 140);
  plan::Source *source = plan.mutable_parameters(0)->mutable_source();
  source->set_file(folder.write("w", bytes)), source->set_offset(4), source->set_bytes(140), source->set_dtype(plan::F32);
  auto memories = onRanks(plan, [](const Rank &rank, Memory &) { initialiseParameters(rank, 1); });
  auto all = whole(plan, memories, plan.buckets(0).parameter(), plan.buckets(0));
  EXPECT_TRUE(std::equal(values.begin(), values.end(), all.begin()));
  EXPECT_EQ(all[63], 0);

  source->set_dtype(plan::BF16), source->set_bytes(70);
  memories = onRanks(plan, [](const Rank &rank, Memory &) { initialiseParameters(rank, 1); });
  EXPECT_EQ(whole(plan, memories, plan.buckets(0).parameter(), plan.buckets(0))[1], 1.0f); // high half of the little-endian 1.0f

  Memory memory;
  Ranks(1).run([&](Communicator &communicator) {
    Rank rank{plan, 1, [&](const plan::Ref &ref) { return memory.at(ref); }, communicator};
    auto sentence = [&] { return refusalOf([&] { initialiseParameters(rank, 1); }); };
    source->set_dtype(plan::F32), source->set_bytes(140), source->set_offset(5);
    EXPECT_NE(sentence().find("not the file"), std::string::npos);
    source->set_bytes(139);
    EXPECT_NE(sentence(), "");
    source->set_file(folder / "gone");
    EXPECT_NE(sentence().find("'w'"), std::string::npos);
  });
}

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
  std::string pieces = folder.read("c/step-1/rank-0.safetensors");
  folder.write("c/step-1/rank-0.safetensors", pieces.substr(0, pieces.size() - 1));
  EXPECT_NE(refused(plan), "");
}

TEST(Gradients, ShardsAndWholeBucketsGiveOneFile) {
  std::string files[2];
  for (int stage : {0, 3}) {
    Folder folder;
    plan::Plan plan = makePlan(2, static_cast<uint32_t>(stage));
    plan::Update update;
    update.set_bucket(0), update.set_whole(stage == 0);
    onRanks(plan, [&](const Rank &rank, Memory &) {
      GradientFile file(rank, folder / "g.safetensors");
      Range held = stage == 0 ? Range{0, 64} : ownedBy(plan.buckets(0), rank.rank);
      std::vector<float> gradient(held.end - held.begin);
      std::iota(gradient.begin(), gradient.end(), static_cast<float>(held.begin));
      file.add(update, gradient.data());
      file.finish();
    });
    TensorFile read = openTensorFile(folder / "g.safetensors");
    ASSERT_EQ(read.tensors.size(), 2u); // nothing of the frozen bucket
    EXPECT_EQ(read.find("w")->shape, (std::vector<uint64_t>{5, 7}));
    EXPECT_EQ(floats(*read.find("w"))[34], 34);
    EXPECT_EQ(floats(*read.find("b")), (std::vector<float>{35, 36, 37}));
    files[stage / 3] = folder.read("g.safetensors");
  }
  EXPECT_EQ(files[0], files[1]);
}

TEST(Gradients, ABucketWithoutUpdateIsNoticed) {
  Folder folder;
  plan::Plan plan = makePlan(1, 0);
  onRanks(plan, [&](const Rank &rank, Memory &) {
    GradientFile file(rank, folder / "g.safetensors");
    EXPECT_NE(refusalOf([&] { file.finish(); }).find("layer"), std::string::npos);
  });
  EXPECT_FALSE(std::filesystem::exists(folder / "g.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder / "g.safetensors.partial"));
}

TEST(Export, SafetensorsHoldsParametersAndTheirAliases) {
  Folder folder;
  plan::Plan plan = makePlan(2, 3);
  plan::Alias *turned = plan.mutable_parameters(0)->add_aliases(), *same = plan.mutable_parameters(1)->add_aliases();
  turned->set_name("wT"), turned->set_transposed(true), same->set_name("b2");
  auto memories = onRanks(plan, [&](const Rank &rank, Memory &) {
    initialiseParameters(rank, 1);
    exportWeights(rank, folder / "x.safetensors");
  });
  auto all = whole(plan, memories, plan.buckets(0).parameter(), plan.buckets(0));
  TensorFile file = openTensorFile(folder / "x.safetensors");
  ASSERT_EQ(file.tensors.size(), 5u);
  auto w = floats(*file.find("w")), wT = floats(*file.find("wT"));
  EXPECT_TRUE(std::equal(w.begin(), w.end(), all.begin()));
  EXPECT_EQ(file.find("wT")->shape, (std::vector<uint64_t>{7, 5}));
  for (size_t r = 0; r < 5; ++r)
    for (size_t c = 0; c < 7; ++c) EXPECT_EQ(wT[c * 5 + r], w[r * 7 + c]);
  EXPECT_EQ(floats(*file.find("b2")), floats(*file.find("b")));
  EXPECT_EQ(floats(*file.find("e")).size(), 16u);
  EXPECT_NE(refusalOf([&] { checkExport(plan, "x.pt"); }).find("ending"), std::string::npos);
}

namespace {

std::string field(int number, const std::string &bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (size_t size = bytes.size();; size >>= 7) {
    out += static_cast<char>((size & 127) | (size > 127 ? 128 : 0));
    if (size < 128) return out + bytes;
  }
}

std::string external(const std::string &location) {
  return field(5, field(13, field(1, "location") + field(2, location)) + field(13, field(1, "offset") + field(2, "0")));
}

} // namespace

TEST(Export, OnnxIsTheOriginalWithNewBytes) {
  Folder folder;
  std::filesystem::create_directories(folder / "in/sub");
  std::string model = field(7, field(5, field(9, std::string(140, 'w'))) + external("sub/more.data") + external("constants.data"));
  folder.write("in/m.onnx", model);
  folder.write("in/sub/more.data", std::string(300, '.'));
  folder.write("in/constants.data", "fixed");
  EXPECT_EQ(externalFiles(folder / "in/m.onnx"), (std::set<std::string>{"constants.data", "sub/more.data"}));

  plan::Plan plan = makePlan(2, 3);
  plan.set_model(folder / "in/m.onnx");
  auto place = [&](plan::Source *source, const std::string &file, uint64_t offset, uint64_t bytes) {
    source->set_file(folder / file), source->set_offset(offset), source->set_bytes(bytes), source->set_dtype(plan::F32);
  };
  uint64_t at = model.find("www");
  place(plan.mutable_parameters(0)->mutable_source(), "in/m.onnx", at, 140);
  plan::Alias *turned = plan.mutable_parameters(0)->add_aliases();
  turned->set_name("wT"), turned->set_transposed(true);
  place(turned->mutable_source(), "in/sub/more.data", 8, 140);
  plan.mutable_parameters(1)->mutable_source()->set_dtype(plan::BF16); // trained in f32, stored as bf16
  place(plan.mutable_parameters(1)->mutable_source(), "in/sub/more.data", 200, 6);
  plan.mutable_parameters(1)->mutable_source()->set_dtype(plan::BF16);

  std::filesystem::create_directories(folder / "out");
  onRanks(plan, [&](const Rank &rank, Memory &memory) {
    const plan::Ref &ref = plan.buckets(0).parameter();
    auto *values = static_cast<float *>(memory.at(ref));
    std::iota(values, values + 32, static_cast<float>(rank.rank * 32));
    exportWeights(rank, folder / "out/m.onnx");
  });
  std::string out = folder.read("out/m.onnx"), more = folder.read("out/sub/more.data");
  EXPECT_EQ(folder.read("out/constants.data"), "fixed");
  ASSERT_EQ(out.size(), model.size());
  ASSERT_EQ(more.size(), 300u);
  EXPECT_EQ(out.substr(0, at), model.substr(0, at));
  EXPECT_EQ(out.substr(at + 140), model.substr(at + 140));
  float w33, wT33;
  std::memcpy(&w33, &out[at + 33 * 4], 4);
  std::memcpy(&wT33, &more[8 + ((33 % 7) * 5 + 33 / 7) * 4], 4);
  EXPECT_EQ(w33, 33);
  EXPECT_EQ(wT33, 33);
  EXPECT_EQ(more.substr(0, 8), "........");
  uint16_t b1;
  std::memcpy(&b1, &more[202], 2);
  EXPECT_EQ(b1, 0x4210); // 36 in bf16
  EXPECT_EQ(more.substr(206), std::string(94, '.'));
  EXPECT_EQ(folder.read("in/m.onnx"), model);

  auto refused = [&](const std::string &path) { return refusalOf([&] { checkExport(plan, folder / path); }); };
  EXPECT_EQ(refused("out/other.onnx"), "");
  EXPECT_NE(refused("in/m.onnx").find("overwrite"), std::string::npos);
  EXPECT_NE(refused("in/other.onnx").find("overwrite"), std::string::npos); // its data files would be
  plan.mutable_parameters(1)->clear_source();
  EXPECT_NE(refused("out/m.onnx").find("'b'"), std::string::npos);
  *plan.mutable_parameters(1)->mutable_source() = plan.parameters(0).source();
  plan.mutable_parameters(1)->set_shape(0, 35);
  EXPECT_NE(refused("out/m.onnx").find("cannot hold both"), std::string::npos);
  folder.write("in/m.onnx", model.substr(0, model.size() - 3));
  EXPECT_NE(refused("out/m.onnx").find("damaged"), std::string::npos);
}
