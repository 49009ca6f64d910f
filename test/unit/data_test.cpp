// From files to batches: which values reach which input, in which order.
#include "runtime/data/permutation.h"
#include "runtime/data/show.h"
#include "test/unit/data_fixture.h"
#include <array>
#include <mutex>
#include <numeric>
#include <set>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>

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
        InputValues memory(plan);
        feeder.fill({start, start / 8, micro, 42, {}}, rank, memory.inputs);
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
  InputValues memory(plan);
  feeder.fill({4, 1, 1, 0, feeder.scales({14})}, 1, memory.inputs);
  EXPECT_EQ(memory.as<float>(2)[0], 1.0f / 14);
  EXPECT_EQ(memory.as<int64_t>(1)[3], -100); // sample 7
  feeder.fill({4, 1, 1, 0, feeder.scales({0})}, 1, memory.inputs);
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
  InputValues memory(plan);
  feeder.fill({4, 1, 0, 0, feeder.scales(second)}, 1, memory.inputs);
  EXPECT_EQ(memory.as<float>(2), (std::vector<float>{0.25f, 0.5f / 3, -0.75f}));
  EXPECT_EQ(memory.as<int64_t>(1)[0], 2);
  EXPECT_EQ(memory.as<int64_t>(4)[0], 7); // sample 5, which only its own loss may ignore
  plan.mutable_losses(1)->set_ignore_index(-100);
  for (auto index : {1, 4}) plan.mutable_inputs(index)->set_limit(5);
  std::vector<std::byte> out(8);
  EXPECT_EQ(refusalOf([&] { data->read(1, 1, out); }), "");
  EXPECT_NE(refusalOf([&] { data->read(4, 5, out); }).find("'labels.end' has the value 7"), std::string::npos);
}

// Tokens that a loss of the model's own takes for labels too: each must be one of both.
TEST(Dataset, LabelsThatTheModelReadsItselfAreHeldAgainstItsClasses) {
  Folder folder;
  std::vector<int64_t> tokens{1, 2, 3, 4, 9, 1, 1, 1, -100, 1, 1, 1, -1, 1, 1, 1};
  SafetensorsLayout layout = layoutSafetensors({{"tokens", Element::I64, {4, 4}}});
  plan::Plan plan = tokenPlan(1, 1, 1);
  plan.mutable_inputs()->DeleteSubrange(1, 1);
  plan.mutable_inputs(0)->set_limit(0), plan.mutable_inputs(0)->set_classes(9), plan.mutable_inputs(0)->set_ignored(-100);
  auto data = openDataset(plan, folder.write("x.safetensors", layout.header + raw(tokens)));
  auto refused = [&](uint64_t sample) {
    std::vector<std::byte> out(32);
    return refusalOf([&] { data->read(0, sample, out); });
  };
  EXPECT_EQ(refused(0), "");
  EXPECT_NE(refused(1).find("sample 1 of 'tokens' has the value 9 at position 0, but the model knows 9 of them, 0 to 8 (and -100 for"),
            std::string::npos);
  EXPECT_EQ(refused(2), "");
  EXPECT_NE(refused(3).find("has the value -1 at"), std::string::npos);
  EXPECT_EQ(sampleTokens(plan), 0u);    // labels are no tokens
  plan.mutable_inputs(0)->set_limit(4); // [-4, 4), where -1 is the last
  EXPECT_NE(refused(0).find("has the value 4 at position 3, but the model knows 4 of them"), std::string::npos);
  EXPECT_NE(refused(2).find("has the value -100 at"), std::string::npos);
  EXPECT_NE(refused(3).find("has the value -1 at position 0, but the model knows 9 of them"), std::string::npos);
  std::vector<uint16_t> stream{1, 2, 3, 3, 1, 2, 3, 9};
  plan.mutable_inputs(0)->set_limit(0);
  data = openDataset(plan, folder.write("x.bin", raw(stream)));
  EXPECT_EQ(refused(0), "");
  EXPECT_NE(refused(1).find("has the token 9 at position 3, but 'tokens' knows 9 of them"), std::string::npos);
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
      InputValues memory(plan);
      feeder.fill({start, 0, 0, 0, {}}, rank, memory.inputs);
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

TEST(Feeder, FillsTheMicroStepsOfAProgramAsOneAfterAnother) {
  Folder folder;
  std::vector<uint16_t> tokens(49);
  std::iota(tokens.begin(), tokens.end(), uint16_t(0));
  std::string path = folder.write("x.bin", raw(tokens));
  plan::Plan one = tokenPlan(2, 3, 2), all = one;
  for (uint32_t micro : {2, 1})
    for (int i : {0, 1, 3}) { // tokens, labels and the seed
      plan::Input *input = all.add_inputs();
      *input = one.inputs(i), input->set_micro_step(micro);
      input->mutable_ref()->set_buffer(static_cast<uint32_t>(all.inputs_size() - 1));
    }
  auto data = openDataset(one, path), same = openDataset(all, path);
  Feeder apart(one, *data, 3, "--data"), together(all, *same, 3, "--data"), evaluation(all, *same, 1, "--eval-data");
  for (uint64_t rank : {0, 1}) {
    InputValues held(all);
    together.fill({0, 4, 0, 9, {}}, rank, held.inputs);
    for (uint64_t micro = 0; micro < 3; ++micro) {
      InputValues wanted(one);
      apart.fill({0, 4, micro, 9, {}}, rank, wanted.inputs);
      int base = micro == 0 ? 0 : micro == 2 ? 4 : 7;
      EXPECT_EQ(held.as<int64_t>(base), wanted.as<int64_t>(0));
      EXPECT_EQ(held.as<int64_t>(base + 1), wanted.as<int64_t>(1));
      EXPECT_EQ(held.as<int64_t>(micro ? base + 2 : 3), wanted.as<int64_t>(3));
    }
    InputValues batch(all); // evaluation takes the first micro-step's place alone
    evaluation.fill({0, 0, 0, 9, {}}, rank, batch.inputs);
    EXPECT_EQ(batch.as<int64_t>(0)[0], int64_t(rank) * 8);
    for (int input : {4, 5, 6, 7, 8, 9}) EXPECT_EQ(batch.as<int64_t>(input), std::vector<int64_t>(batch.as<int64_t>(input).size()));
  }
  EXPECT_EQ(together.divisors(0)[0], apart.divisors(0)[0]);
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

// Of held-out data what whole batches take is looked at beforehand.
TEST(Feeder, FindsABadValueBeforeItIsFed) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 2, 200);
  std::vector<int64_t> tokens(12, 0), labels(12, -100); // three samples, one batch
  auto refused = [&] {
    SafetensorsLayout layout = layoutSafetensors({{"tokens", Element::I64, {3, 4}}, {"labels", Element::I64, {3, 4}}});
    auto data = openDataset(plan, folder.write("x.safetensors", layout.header + raw(tokens) + raw(labels)));
    return refusalOf([&] { Feeder(plan, *data, 1, "--eval-data").checkValues(); });
  };
  tokens[9] = 200; // in a sample that makes no batch
  EXPECT_EQ(refused(), "");
  labels[6] = -1;
  EXPECT_NE(refused().find("sample 1 of 'labels' has the value -1 at position 2"), std::string::npos) << refused();
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
  std::vector<int32_t> header(256);
  header[0] = 20240520, header[1] = 1, header[2] = 0;
  EXPECT_NE(refusalOf([&] { openDataset(plan, folder.write("headed.bin", raw(header))); }).find("cut it off: tail -c +1025"),
            std::string::npos);
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
      InputValues memory(plan);
      feeder.fill({0, step, 0, seed, {}}, 0, memory.inputs);
      seeds.insert(memory.as<int64_t>(3)[0]);
    }
  EXPECT_EQ(seeds.size(), 6u);
}

namespace {

// Samples of a number of bytes that are their number, read by whoever; some cannot be read.
class NumberedSamples : public Dataset {
public:
  explicit NumberedSamples(std::set<uint64_t> bad) : bad(std::move(bad)) { path_ = "numbers", samples_ = 64; }
  void read(int, uint64_t sample, std::span<std::byte> dst) const override {
    {
      std::lock_guard lock(mutex);
      readers.insert(std::this_thread::get_id());
    }
    if (bad.contains(sample)) throw Error(fmt::format("sample {} is bad", sample));
    std::ranges::fill(dst, std::byte(sample));
  }
  bool mayRefuse(int) const override { return true; }
  uint64_t countedLabels(int, uint64_t) const override { return 1; }
  bool holds(const std::string &) const override { return false; }

  mutable std::mutex mutex;
  mutable std::set<std::thread::id> readers;

private:
  std::set<uint64_t> bad;
};

} // namespace

TEST(Feeder, ThreadsReadLargeSamplesEachIntoItsPlace) {
  plan::Plan plan = tokenPlan(1, 1, 16);
  for (int i : {0, 1}) { // 1 MiB of tokens, and a label
    plan.mutable_inputs(i)->set_shape(1, i == 0 ? 1 << 17 : 1);
    plan.mutable_inputs(i)->mutable_ref()->set_bytes(16 * sampleElements(plan.inputs(i)) * 8);
  }
  for (auto [threads, several] : {std::pair(1, 1u), std::pair(3, 3u), std::pair(64, 4u)}) { // 4 MiB are worth a thread
    NumberedSamples data({});
    Feeder feeder(plan, data, 1, "--data");
    feeder.readWith(threads), feeder.shuffle(5);
    InputValues memory(plan);
    feeder.fill({16, 0, 0, 0, {}}, 0, memory.inputs);
    EXPECT_EQ(data.readers.size(), several);
    for (uint64_t i = 0; i < 16; ++i) {
      auto tokens = memory.inputs.of(0).subspan(i << 20, 1 << 20);
      EXPECT_EQ(std::to_integer<uint64_t>(tokens[0]), feeder.sampleAt(16 + i));
      EXPECT_TRUE(std::ranges::all_of(tokens, [&](std::byte b) { return b == tokens[0]; }));
      EXPECT_EQ(memory.inputs.of(1)[8 * i], tokens[0]);
    }
    NumberedSamples bad({31, 22, 27}); // of parts of their own
    Feeder refused(plan, bad, 1, "--data");
    refused.readWith(threads);
    EXPECT_EQ(refusalOf([&] { refused.fill({16, 0, 0, 0, {}}, 0, memory.inputs); }), "sample 22 is bad");
  }
}

TEST(Sampler, TheStreamIsEndless) {
  Sampler sampler{10, 1, 1, 1, {}};
  EXPECT_EQ(sampler.sample(UINT64_MAX, 7), 2u); // 2^64 - 1 ends in a 5
}

TEST(Permutation, IsABijectionOfAnySize) {
  for (uint64_t n : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4097, 100000})
    for (uint64_t epoch : {0, 1, 2}) {
      Permutation permutation(n, 7, epoch);
      std::vector<bool> seen(n);
      for (uint64_t i = 0; i < n; ++i) {
        uint64_t value = permutation(i);
        ASSERT_LT(value, n);
        ASSERT_FALSE(seen[value]) << n << " has " << value << " twice";
        seen[value] = true;
      }
    }
  for (uint64_t n : {uint64_t(1) << 40, UINT64_MAX}) EXPECT_LT(Permutation(n, 1, 0)(n - 1), n);
}

// Every place sees every value about equally often, and neighbours do not stay neighbours.
TEST(Permutation, IsSpreadEvenly) {
  constexpr uint64_t kSize = 10, kOrders = 20000;
  std::array<std::array<int, kSize>, kSize> counts{};
  int neighbours = 0;
  for (uint64_t order = 0; order < kOrders; ++order) {
    Permutation permutation(kSize, order % 100, order / 100);
    for (uint64_t i = 0; i < kSize; ++i) {
      ++counts[i][permutation(i)];
      neighbours += i > 0 && permutation(i) == permutation(i - 1) + 1;
    }
  }
  double chi = 0;
  for (const auto &row : counts)
    for (int count : row) chi += std::pow(count - kOrders / 10.0, 2) / (kOrders / 10.0);
  EXPECT_LT(chi, 140);                                  // 81 degrees of freedom: beyond one in ten thousand
  EXPECT_NEAR(neighbours / double(kOrders), 0.9, 0.03); // 9 pairs, of which each is one of 90 in 9 orders
}

TEST(Sampler, ShuffledEpochsHoldEachSampleOnceForAnyNumberOfRanks) {
  std::vector<uint64_t> orders[3];
  struct {
    uint64_t perRank, world, micros;
  } layouts[] = {{8, 1, 1}, {2, 4, 1}, {2, 2, 2}};
  for (int l = 0; l < 3; ++l) {
    auto [perRank, world, micros] = layouts[l];
    Sampler sampler{21, perRank, world, micros, 42};
    for (uint64_t start = 0; start < 21 * 8; start += sampler.globalBatch())
      for (uint64_t micro = 0; micro < micros; ++micro)
        for (uint64_t rank = 0; rank < world; ++rank)
          for (uint64_t i = 0; i < perRank; ++i) orders[l].push_back(sampler.sample(start, sampler.within(micro, rank, i)));
  }
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_EQ(orders[0], orders[2]);
  std::set<std::vector<uint64_t>> epochs;
  for (size_t e = 0; e < 8; ++e) {
    std::vector<uint64_t> epoch(orders[0].begin() + static_cast<long>(e * 21), orders[0].begin() + static_cast<long>(e * 21 + 21));
    EXPECT_EQ(std::set<uint64_t>(epoch.begin(), epoch.end()).size(), 21u);
    epochs.insert(epoch);
  }
  EXPECT_EQ(epochs.size(), 8u);
  EXPECT_EQ((Sampler{21, 8, 1, 1, 42}.sample(8, 3)), orders[0][11]); // a resumed run goes on where it was
  EXPECT_NE((Sampler{21, 21, 1, 1, 42}.sample(0, 0)), (Sampler{21, 21, 1, 1, 43}.sample(0, 0)));
}

namespace {

// tokens and other tensors of two samples of four, under names.
std::string fourPlaces(const Folder &folder, const std::vector<std::pair<std::string, std::vector<int64_t>>> &tensors) {
  std::vector<TensorSpec> specs;
  std::string bytes;
  for (const auto &[name, values] : tensors) specs.push_back({name, Element::I64, {values.size() / 4, 4}}), bytes += raw(values);
  return folder.write("places.safetensors", layoutSafetensors(specs).header + bytes);
}

std::vector<int64_t> labelsOf(const Dataset &data, uint64_t sample) {
  std::vector<int64_t> labels(4);
  data.read(1, sample, std::as_writable_bytes(std::span(labels)));
  return labels;
}

} // namespace

TEST(Dataset, WhatThePlanDoesNotReadIsRefused) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 1);
  std::vector<int64_t> some{1, 2, 3, 4, 5, 6, 7, 8};
  std::string path = fourPlaces(folder, {{"attention_mask", some}, {"labels", some}, {"tokens", some}});
  std::string sentence = refusalOf([&] { openDataset(plan, path); });
  EXPECT_NE(sentence.find("holds 'attention_mask', which the plan does not read (it reads 'tokens', 'labels')"), std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("--ignore-tensor attention_mask"), std::string::npos) << sentence;
  EXPECT_EQ(openDataset(plan, path, {{}, {"attention_mask"}})->samples(), 2u);
  EXPECT_TRUE(openDataset(plan, path, {{}, {"attention_mask"}})->holds("attention_mask"));
  EXPECT_NE(refusalOf([&] { openDataset(plan, path, {{}, {"attention_mask", "tokens"}}); }).find("cannot be ignored"), std::string::npos);
}

// Strings, objects, numbers of eight bits: what is ignored may be anything, and is not even inflated.
TEST(Dataset, WhatIsIgnoredMayHaveAnyType) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 1);
  std::string ids = npy("<i8", "(2, 4)", raw<int64_t>({1, 2, 3, 4, 5, 6, 7, 8})), fortran = ids;
  fortran.replace(fortran.find("False"), 5, "True ");
  for (const std::string &other : {npy("<U3", "(2,)", std::string(24, 'x')), npy("|O", "(2,)", "pickled"), npy(">f4", "(1,)", "1234"),
                                   fortran, std::string("no array")}) {
    std::string path = folder.write("x.npz", zip({{"tokens.npy", ids}, {"text.npy", other}, {"labels.npy", ids}}, true));
    EXPECT_EQ(openDataset(plan, path, {{}, {"text"}})->samples(), 2u);
    EXPECT_NE(refusalOf([&] { openDataset(plan, path); }).find("holds 'text', which the plan does not read"), std::string::npos);
  }
  std::string path = folder.write("x.npz", zip({{"tokens.npy", fortran}, {"labels.npy", ids}}, false));
  EXPECT_NE(refusalOf([&] { openDataset(plan, path); }).find("'tokens.npy' is in Fortran order"), std::string::npos);

  std::string header = R"({"tokens":{"dtype":"I64","shape":[2,4],"data_offsets":[0,64]},"labels":{"dtype":"I64","shape":[2,4],)"
                       R"("data_offsets":[64,128]},"scale":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[128,131]}})";
  path = folder.write("x.safetensors", safetensors(header, std::string(131, '\0')));
  EXPECT_EQ(openDataset(plan, path, {{}, {"scale"}})->samples(), 2u);
  header.replace(header.find("[128,131]"), 9, "[128,130]");
  EXPECT_NE(refusalOf([&] {
              openDataset(plan, folder.write("x.safetensors", safetensors(header, std::string(131, '\0'))), {{}, {"scale"}});
            }).find("belong to nothing"),
            std::string::npos);
}

TEST(Dataset, LabelsAreReadWhereTheyBelong) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 1, 50);
  std::string path = fourPlaces(folder, {{"tokens", {1, 2, 3, 4, 5, 6, 7, 8}}, {"labels", {-100, 2, 3, 4, 5, -100, 7, 8}}});
  auto same = openDataset(plan, path), shifted = openDataset(plan, path, {*labelRule("shifted"), {}});
  EXPECT_EQ(labelsOf(*same, 1), (std::vector<int64_t>{5, -100, 7, 8}));
  EXPECT_EQ(labelsOf(*shifted, 0), (std::vector<int64_t>{2, 3, 4, -100}));
  EXPECT_EQ(labelsOf(*shifted, 1), (std::vector<int64_t>{-100, 7, 8, -100}));
  EXPECT_EQ(same->countedLabels(1, 0), 3u);
  EXPECT_EQ(shifted->countedLabels(1, 0), 3u); // not the last, and the first has gone
  EXPECT_EQ(shifted->countedLabels(1, 1), 2u);
  std::string alone = fourPlaces(folder, {{"tokens", {1, 2, 3, 4, 5, 6, 7, 8}}});
  auto next = openDataset(plan, alone, {*labelRule("next:tokens"), {}});
  EXPECT_EQ(labelsOf(*next, 1), (std::vector<int64_t>{6, 7, 8, -100}));
  EXPECT_EQ(next->countedLabels(1, 1), 3u);
  EXPECT_NE(refusalOf([&] { openDataset(plan, alone); }).find("--labels next:INPUT"), std::string::npos);
  EXPECT_NE(refusalOf([&] {
              openDataset(plan, alone, {*labelRule("next:words"), {}});
            }).find("no tensor named 'words', which --labels names"),
            std::string::npos);
  // labels that lie in the file would not be read
  EXPECT_NE(refusalOf([&] {
              openDataset(plan, fourPlaces(folder, {{"tokens", {1, 2, 3, 4}}, {"labels", {1, 2, 3, 4}}}), {*labelRule("next:tokens"), {}});
            }).find("holds 'labels', which the plan does not read"),
            std::string::npos);
  EXPECT_NE(refusalOf([&] {
              openDataset(plan, folder.write("x.txt", "abcdefghi"), {*labelRule("shifted"), {}});
            }).find("stream of tokens"),
            std::string::npos);
  plan.mutable_inputs(1)->mutable_shape()->Truncate(1); // a class
  EXPECT_NE(refusalOf([&] { openDataset(plan, alone, {*labelRule("shifted"), {}}); }), "");
  for (const char *text : {"", "next", "next:", "Same", "shifted:x"}) EXPECT_FALSE(labelRule(text)) << text;
}

TEST(Labels, ThatEqualTheInputsAreSaid) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 1, 50);
  auto warned = [&](std::vector<int64_t> tokens, std::vector<int64_t> labels, const char *rule = "same") {
    auto data = openDataset(plan, fourPlaces(folder, {{"tokens", tokens}, {"labels", labels}}), {*labelRule(rule), {}});
    return labelWarning(plan, *data, *labelRule(rule));
  };
  std::vector<int64_t> tokens{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_NE(warned(tokens, tokens).find("learns to copy its input"), std::string::npos);
  EXPECT_NE(warned(tokens, {1, 2, -100, -100, 5, 6, -100, -100}).find("--labels shifted"), std::string::npos); // padding does not count
  EXPECT_EQ(warned(tokens, tokens, "shifted"), "");
  EXPECT_EQ(warned(tokens, {2, 3, 4, -100, 6, 7, 8, -100}), "");
  EXPECT_NE(warned(tokens, {2, 3, 4, -100, 6, 7, 8, -100}, "shifted").find("two places later"), std::string::npos);
  EXPECT_EQ(warned({3, 3, 3, 3}, {3, 3, 3, 3}), ""); // the next token as well
  EXPECT_EQ(warned(tokens, {1, 2, 3, 4, 5, 6, 7, 9}), "");
  EXPECT_EQ(warned(tokens, {-100, -100, -100, -100, -100, -100, -100, -100}), "");
}

TEST(Show, ASampleIsToldInWords) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 1, 256);
  auto text = openDataset(plan, folder.write("x.txt", "ab\"\n\xff"
                                                      "fghi"));
  EXPECT_EQ(describeSample(plan, *text, 0), "sample 0 of '" + (folder / "x.txt") +
                                                "':\n"
                                                "  tokens  I64  [4]  97 98 34 10\n"
                                                "          \"ab\\\"\\n\"\n"
                                                "  labels  I64  [4]  98 34 10 255\n"
                                                "  place      tokens      labels\n"
                                                "      0          97          98\n"
                                                "      1          98          34\n"
                                                "      2          34          10\n"
                                                "      3          10         255");
  auto tensors = openDataset(plan, fourPlaces(folder, {{"tokens", {1, 2, 3, 4}}}), {*labelRule("next:tokens"), {}});
  EXPECT_NE(describeSample(plan, *tensors, 0).find("      3           4        -100 (does not count)"), std::string::npos);
  plan::Input *positions = plan.add_inputs(), *scale = plan.add_inputs();
  positions->set_name("positions"), positions->set_role(plan::Input::SHARED), positions->set_dtype(plan::I64);
  positions->add_shape(1), positions->add_shape(4);
  scale->set_name("scale"), scale->set_role(plan::Input::SHARED), scale->set_dtype(plan::I64);
  auto layout = layoutSafetensors({{"positions", Element::I64, {1, 4}}, {"scale", Element::I64, {}}, {"tokens", Element::I64, {2, 4}}});
  std::vector<int64_t> values{3, 4, 5, 6, 9, 1, 2, 3, 4, 5, 6, 7, 8};
  auto shared = openDataset(plan, folder.write("shared.safetensors", layout.header + raw(values)), {*labelRule("next:tokens"), {}});
  std::string shown = describeSample(plan, *shared, 1);
  EXPECT_NE(shown.find("  positions  I64  [1 x 4]  3 4 5 6 (the same for every sample)\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("  scale      I64  []       9 (the same for every sample)\n"), std::string::npos) << shown;
}

TEST(SampleTokens, AreTheLargestInputOfIndices) {
  plan::Plan plan = tokenPlan(1, 1, 2);
  EXPECT_EQ(sampleTokens(plan), 4u);
  plan.mutable_inputs(1)->mutable_shape()->Truncate(1); // one class per sample
  EXPECT_EQ(sampleTokens(plan), 4u);
  plan::Input *longer = plan.add_inputs(); // of an encoder
  *longer = plan.inputs(0), longer->set_shape(1, 6);
  EXPECT_EQ(sampleTokens(plan), 6u);
  for (plan::Input &input : *plan.mutable_inputs()) input.set_limit(0); // an image, a mask
  EXPECT_EQ(sampleTokens(plan), 0u);
}

// A pipe would wait for a writer.
TEST(Dataset, WhatIsNoRegularFileIsRefusedAtOnce) {
  Folder folder;
  plan::Plan plan = tokenPlan(1, 1, 1);
  auto refused = [&](const std::string &path) { return refusalOf([&] { openDataset(plan, path); }); };
  ASSERT_EQ(mkfifo((folder / "x.npz").c_str(), 0600), 0);
  EXPECT_NE(refused(folder / "x.npz").find("is a pipe, but a regular file is needed"), std::string::npos);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string name = folder / "x.bin";
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
  EXPECT_NE(refused(name).find("is a socket"), std::string::npos);
  close(fd);
  EXPECT_NE(refused("/dev/null").find("is a device"), std::string::npos);
  EXPECT_NE(refused(folder / "").find("is a folder"), std::string::npos);
  EXPECT_NE(refused(folder / "none.txt").find("No such file"), std::string::npos);
}
