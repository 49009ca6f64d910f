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
        feeder.fill({start, start / 8, micro, 42, {}}, rank, memory.locate);
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
  EXPECT_EQ(feeder.divisors(0)[0], 15);
  EXPECT_EQ(feeder.divisors(4)[0], 14);
  Memory memory;
  feeder.fill({4, 1, 1, 0, feeder.scales({14})}, 1, memory.locate);
  EXPECT_EQ(memory.as<float>(2)[0], 1.0f / 14);
  EXPECT_EQ(memory.as<int64_t>(1)[3], -100); // sample 7
  feeder.fill({4, 1, 1, 0, feeder.scales({0})}, 1, memory.locate);
  EXPECT_EQ(memory.as<float>(2)[0], 0.0f);
  for (auto [kind, divisor] : {std::pair(plan::OUTPUT, 4), std::pair(plan::MSE, 16)}) {
    plan.mutable_losses(0)->set_kind(kind);
    EXPECT_EQ(Feeder(plan, *data, 2, "--data").divisors(0)[0], divisor);
  }
}

// Each loss counts its own labels, ignores its own value, and weighs as the plan says.
TEST(Feeder, SeveralLossesHaveTheirOwnScales) {
  Folder folder;
  std::vector<int64_t> tokens(8 * 4, 1), start(8, 2), end(8, 3);
  start[1] = start[2] = -100, end[5] = 7;
  SafetensorsLayout layout =
      layoutSafetensors({{"tokens", Element::I64, {8, 4}}, {"labels.start", Element::I64, {8}}, {"labels.end", Element::I64, {8}}});
  std::string path = folder.write("x.safetensors", layout.header + raw(tokens) + raw(start) + raw(end));
  plan::Plan plan = tokenPlan(2, 2, 1);
  plan::Input labels = plan.inputs(1);
  labels.clear_shape(), labels.add_shape(1), labels.mutable_ref()->set_bytes(8);
  *plan.add_inputs() = labels;
  plan.mutable_inputs(4)->mutable_ref()->set_buffer(4);
  *plan.mutable_inputs(1) = labels;
  plan.mutable_inputs(1)->set_name("labels.start"), plan.mutable_inputs(4)->set_name("labels.end");
  plan.mutable_losses(0)->set_labels("labels.start"), *plan.add_losses() = plan.losses(0);
  plan.mutable_losses(1)->set_labels("labels.end"), plan.mutable_losses(1)->set_weight(0.5), plan.mutable_losses(1)->set_ignore_index(7);
  plan.add_losses()->set_kind(plan::OUTPUT), plan.mutable_losses(2)->set_weight(-3);
  plan.mutable_inputs(2)->set_shape(0, 3), plan.mutable_inputs(2)->mutable_ref()->set_bytes(12);
  auto data = openDataset(plan, path);
  Feeder feeder(plan, *data, 2, "--data");
  LossDivisors first = feeder.divisors(0), second = feeder.divisors(4);
  EXPECT_EQ(std::vector(first.begin(), first.begin() + 3), (std::vector<double>{2, 4, 4}));
  EXPECT_EQ(std::vector(second.begin(), second.begin() + 3), (std::vector<double>{4, 3, 4}));
  Memory memory;
  feeder.fill({4, 1, 0, 0, feeder.scales(second)}, 1, memory.locate);
  EXPECT_EQ(memory.as<float>(2), (std::vector<float>{0.25f, 0.5f / 3, -0.75f}));
  EXPECT_EQ(memory.as<int64_t>(1)[0], 2);
  EXPECT_EQ(memory.as<int64_t>(4)[0], 7); // sample 5, which only its own loss may ignore
  plan.mutable_losses(1)->set_ignore_index(-100);
  for (auto index : {1, 4}) plan.mutable_inputs(index)->set_limit(5);
  std::vector<std::byte> out(8);
  EXPECT_EQ(refusalOf([&] { data->read(1, 1, out); }), "");
  EXPECT_NE(refusalOf([&] { data->read(4, 5, out); }).find("'labels.end' has the value 7"), std::string::npos);
}

TEST(Dataset, SharedTensorsAreReadWholeForEverySample) {
  Folder folder;
  std::vector<int64_t> tokens(6 * 4, 1), labels(6 * 4, 2), positions{3, 2, 1, 0};
  SafetensorsLayout layout = layoutSafetensors(
      {{"tokens", Element::I64, {6, 4}}, {"labels", Element::I64, {6, 4}}, {"positions", Element::I64, {1, 4}}, {"k", Element::F32, {}}});
  std::string path = folder.write("x.safetensors", layout.header + raw(tokens) + raw(labels) + raw(positions) + raw<float>({0.5f}));
  plan::Plan plan = tokenPlan(2, 1, 2);
  auto share = [&](const char *name, plan::DType type, std::vector<int64_t> shape, uint64_t bytes) {
    plan::Input *input = plan.add_inputs();
    input->set_name(name), input->set_role(plan::Input::SHARED), input->set_dtype(type);
    input->mutable_shape()->Add(shape.begin(), shape.end());
    input->mutable_ref()->set_buffer(static_cast<uint32_t>(plan.inputs_size() - 1)), input->mutable_ref()->set_bytes(bytes);
    return input;
  };
  plan::Input *shared = share("positions", plan::I64, {1, 4}, 32);
  share("k", plan::F32, {}, 4);
  auto data = openDataset(plan, path);
  EXPECT_EQ(data->samples(), 6u);
  Feeder feeder(plan, *data, 1, "--data");
  for (uint64_t start : {0, 4})
    for (uint64_t rank : {0, 1}) {
      Memory memory;
      feeder.fill({start, 0, 0, 0, {}}, rank, memory.locate);
      EXPECT_EQ(memory.as<int64_t>(4), positions);
      EXPECT_EQ(memory.as<float>(5), std::vector<float>{0.5f});
    }
  shared->set_limit(3);
  std::vector<std::byte> out(32);
  EXPECT_NE(refusalOf([&] { data->read(4, 0, out); }).find("'positions' has the value 3 at position 0"), std::string::npos);
  shared->set_shape(0, 2);
  std::string sentence = refusalOf([&] { openDataset(plan, path); });
  EXPECT_NE(sentence.find("has shape [1 x 4], but the plan needs [2 x 4], once for all samples"), std::string::npos) << sentence;
  EXPECT_NE(refusalOf([&] { openDataset(plan, folder.write("x.txt", "abcdefghi")); }).find("'positions', which is the same for all"),
            std::string::npos);
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
  plan.mutable_losses(0)->set_ignore_index('a');
  auto data = openDataset(plan, folder.write("x.txt", "abacaaxyz"));
  EXPECT_EQ(data->countedLabels(1, 0), 2u); // of b a c a
  EXPECT_EQ(data->countedLabels(1, 1), 3u); // of a x y z
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
      feeder.fill({0, step, 0, seed, {}}, 0, memory.locate);
      seeds.insert(memory.as<int64_t>(3)[0]);
    }
  EXPECT_EQ(seeds.size(), 6u);
}

TEST(Sampler, TheStreamIsEndless) {
  Sampler sampler{10, 1, 1, 1};
  EXPECT_EQ(sampler.sample(UINT64_MAX, 7), 2u); // 2^64 - 1 ends in a 5
}
