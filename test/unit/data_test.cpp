// From files to batches: which values reach which input, in which order.
#include "test/unit/data_fixture.h"
#include <set>

using namespace zero;
using namespace zero::runtime;
using namespace zero::test;

// Four ranks, two ranks accumulating two, one accumulating four: the same samples, and the same place for each.
TEST(Sampler, EveryWorldSeesTheSameGlobalBatch) {
  Folder folder;
  std::string text(4 * 21 + 1, ' ');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i);
  std::string path = folder.write("x.txt", text);
  auto order = [&](uint32_t world, uint32_t accumulate, uint64_t start) {
    plan::Plan plan = tokenPlan(world, accumulate, 2);
    auto data = openDataset(plan, path);
    EXPECT_EQ(data->samples(), 21u);
    Feeder feeder(plan, *data, accumulate, "--data");
    EXPECT_EQ(feeder.globalBatch(), 8u);
    std::vector<int64_t> seen;
    for (uint64_t micro = 0; micro < accumulate; ++micro)
      for (uint64_t rank = 0; rank < world; ++rank) {
        Memory memory;
        feeder.fill({start, start / 8, micro, 42, 1}, rank, memory.locate);
        auto tokens = memory.as<int64_t>(0), labels = memory.as<int64_t>(1), seed = memory.as<int64_t>(3);
        EXPECT_EQ(tokens[1], labels[0]);
        EXPECT_EQ(tokens[7] + 1, labels[7]);
        EXPECT_EQ(seed[1], static_cast<int64_t>(seen.size() / 8 * 2)); // two samples of four tokens each
        seen.insert(seen.end(), tokens.begin(), tokens.end());
      }
    return seen;
  };
  for (uint64_t start : {0, 8, 16}) { // the third batch wraps around
    auto four = order(4, 1, start);
    EXPECT_EQ(four, order(2, 2, start));
    EXPECT_EQ(four, order(1, 4, start));
    EXPECT_EQ(four[0], static_cast<int64_t>(start * 4));
    EXPECT_EQ(four[28], static_cast<int64_t>((start + 7) % 21 * 4));
  }
}

TEST(Feeder, LossScaleCountsTheGlobalBatch) {
  Folder folder;
  std::vector<int64_t> tokens(8 * 4, 1), labels(8 * 4, 2);
  labels[3] = labels[17] = labels[31] = -100;
  SafetensorsLayout layout = layoutSafetensors({{"tokens", Element::I64, {8, 4}}, {"labels", Element::I64, {8, 4}}});
  std::string path = folder.write("x.safetensors", layout.header + raw(tokens) + raw(labels));
  plan::Plan plan = tokenPlan(2, 2, 1);
  auto data = openDataset(plan, path);
  Feeder feeder(plan, *data, 2, "--data");
  EXPECT_EQ(feeder.divisor(0), 15u);
  EXPECT_EQ(feeder.divisor(4), 14u);
  Memory memory;
  feeder.fill({4, 1, 1, 0, 14}, 1, memory.locate);
  EXPECT_EQ(memory.as<float>(2)[0], 1.0f / 14);
  EXPECT_EQ(memory.as<int64_t>(1)[3], -100); // sample 7
  feeder.fill({4, 1, 1, 0, 0}, 1, memory.locate);
  EXPECT_EQ(memory.as<float>(2)[0], 0.0f);
  plan.mutable_loss()->set_kind(plan::OUTPUT);
  EXPECT_EQ(feeder.divisor(0), 4u);
  plan.mutable_loss()->set_kind(plan::MSE);
  EXPECT_EQ(feeder.divisor(0), 16u);
}

TEST(Dataset, WhatDoesNotFitThePlanIsRefused) {
  Folder folder;
  auto refused = [&](std::vector<TensorSpec> specs, const plan::Plan &plan) {
    SafetensorsLayout layout = layoutSafetensors(specs);
    std::string path = folder.write("x.safetensors", layout.header + std::string(layout.bytes - layout.header.size(), '\0'));
    return refusalOf([&] {
      auto data = openDataset(plan, path);
      Feeder(plan, *data, plan.accumulate(), "--data");
    });
  };
  plan::Plan plan = tokenPlan(2, 1, 2);
  EXPECT_EQ(refused({{"tokens", Element::I32, {4, 4}}, {"labels", Element::I64, {4, 4}}}, plan), "");
  EXPECT_NE(refused({{"tokens", Element::I64, {4, 4}}}, plan).find("no tensor named 'labels'"), std::string::npos);
  EXPECT_NE(refused({{"tokens", Element::F32, {4, 4}}, {"labels", Element::I64, {4, 4}}}, plan).find("fraction"), std::string::npos);
  EXPECT_NE(refused({{"tokens", Element::I64, {4, 5}}, {"labels", Element::I64, {4, 4}}}, plan).find("[samples x 4]"), std::string::npos);
  EXPECT_NE(refused({{"tokens", Element::I64, {4, 4}}, {"labels", Element::I64, {5, 4}}}, plan).find("5"), std::string::npos);
  EXPECT_NE(refused({{"tokens", Element::I64, {3, 4}}, {"labels", Element::I64, {3, 4}}}, plan).find("one global batch takes 4"),
            std::string::npos);
  EXPECT_NE(refusalOf([&] { openDataset(plan, folder.write("x.csv", "1,2")); }).find("ending"), std::string::npos);
}

TEST(Dataset, ValuesBeyondTheVocabularyNameTheirSample) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 1, 200);
  std::vector<uint16_t> tokens(13, 3);
  tokens[6] = 200;
  auto data = openDataset(plan, folder.write("x.bin", raw(tokens)));
  ASSERT_EQ(data->samples(), 3u);
  std::vector<std::byte> out(4 * 8);
  EXPECT_EQ(refusalOf([&] { data->read(0, 0, out); }), "");
  std::string sentence = refusalOf([&] { data->read(0, 1, out); });
  EXPECT_NE(sentence.find("sample 1 has the token 200 at position 2"), std::string::npos) << sentence;

  std::vector<int64_t> values(8, 0), labels(8, -100);
  values[5] = -200, labels[6] = -1;
  SafetensorsLayout layout = layoutSafetensors({{"tokens", Element::I64, {2, 4}}, {"labels", Element::I64, {2, 4}}});
  auto tensors = openDataset(plan, folder.write("x.safetensors", layout.header + raw(values) + raw(labels)));
  EXPECT_EQ(refusalOf([&] { tensors->read(0, 1, out); }), ""); // an index may count from the end
  EXPECT_EQ(refusalOf([&] { tensors->read(1, 0, out); }), "");
  EXPECT_NE(refusalOf([&] { tensors->read(1, 1, out); }).find("-1"), std::string::npos);
}

TEST(TokenFile, WidthFollowsTheName) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 1, 100000);
  auto data = openDataset(plan, folder.write("x.u32.bin", raw<uint32_t>({1, 2, 3, 4, 70000, 6, 7, 8, 9})));
  ASSERT_EQ(data->samples(), 2u);
  std::vector<int64_t> labels(4);
  data->read(1, 0, {reinterpret_cast<std::byte *>(labels.data()), 32});
  EXPECT_EQ(labels, (std::vector<int64_t>{2, 3, 4, 70000}));
  EXPECT_NE(refusalOf([&] { openDataset(plan, folder.write("odd.bin", "abc")); }), "");
  EXPECT_NE(refusalOf([&] { openDataset(plan, folder.write("empty.bin", "")); }).find("holds 0 tokens, but one sample takes 5"),
            std::string::npos);
  plan.mutable_inputs(0)->set_dtype(plan::F32);
  EXPECT_NE(refusalOf([&] { openDataset(plan, folder.write("x.txt", "abcdefghij")); }).find("takes F32"), std::string::npos);
}

TEST(TokenFile, TakesOneInputOfSequences) {
  Folder folder;
  std::string path = folder.write("x.txt", "abcdefghi");
  plan::Plan plan = tokenPlan(1, 1, 1);
  auto refused = [&](const plan::Plan &other) { return refusalOf([&] { openDataset(other, path); }); };
  EXPECT_EQ(refused(plan), "");
  plan::Plan flat = plan, two = plan, classes = plan, alone = plan;
  flat.mutable_inputs(0)->mutable_shape()->Truncate(1);
  EXPECT_NE(refused(flat).find("not [batch x sequence]"), std::string::npos);
  two.mutable_inputs(1)->set_role(plan::Input::DATA);
  EXPECT_NE(refused(two).find("one stream of tokens, but the plan also needs 'labels' beside 'tokens'"), std::string::npos);
  for (int i : {0, 1}) classes.mutable_inputs(i)->mutable_shape()->Truncate(1);
  classes.mutable_inputs(0)->add_shape(1); // one token and one class look alike
  EXPECT_NE(refused(classes).find("not one label per token"), std::string::npos);
  alone.mutable_inputs()->DeleteSubrange(1, 1);
  EXPECT_EQ(openDataset(alone, folder.write("short.txt", "abcdefgh"))->samples(), 2u); // no label beyond the last token
  EXPECT_EQ(openDataset(plan, path)->samples(), 2u);
}

TEST(TokenFile, LabelsThatAreIgnoredDoNotCount) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 1);
  plan.mutable_loss()->set_ignore_index('a');
  auto data = openDataset(plan, folder.write("x.txt", "abacaaxyz"));
  EXPECT_EQ(data->countedLabels(0), 2u); // of b a c a
  EXPECT_EQ(data->countedLabels(1), 3u); // of a x y z
}

TEST(Dataset, OnlyLabelsMayBeIgnored) {
  Folder folder;
  SafetensorsLayout layout = layoutSafetensors({{"tokens", Element::I64, {1, 4}}, {"labels", Element::I64, {1, 4}}});
  std::string path = folder.write("x.safetensors", layout.header + raw<int64_t>({1, -100, 2, 3}) + raw<int64_t>({1, -100, 2, 3}));
  plan::Plan plan = tokenPlan(1, 1, 1, 50);
  auto data = openDataset(plan, path);
  std::vector<std::byte> out(32);
  EXPECT_EQ(refusalOf([&] { data->read(1, 0, out); }), "");
  EXPECT_NE(refusalOf([&] { data->read(0, 0, out); }).find("has the value -100 at position 1"), std::string::npos);
}

TEST(Feeder, SeedsDifferByRunAndStep) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 1);
  auto data = openDataset(plan, folder.write("x.txt", "abcdefghi"));
  Feeder feeder(plan, *data, 1, "--data");
  std::set<int64_t> seeds;
  for (uint64_t seed : {0, 1})
    for (uint64_t step : {0, 1, 2}) {
      Memory memory;
      feeder.fill({0, step, 0, seed, 1}, 0, memory.locate);
      seeds.insert(memory.as<int64_t>(3)[0]);
    }
  EXPECT_EQ(seeds.size(), 6u);
}

TEST(Sampler, TheStreamIsEndless) {
  Sampler sampler{10, 1, 1, 1};
  EXPECT_EQ(sampler.sample(UINT64_MAX, 7), 2u); // 2^64 - 1 ends in a 5
}
