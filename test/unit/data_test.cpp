#include "runtime/data/dataset.h"
#include "runtime/data/element.h"
#include "runtime/data/feeder.h"
#include "runtime/data/safetensors.h"
#include "runtime/data/tensor_file.h"
#include "runtime/plan/error.h"
#include "test/unit/run_fixtures.h"
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <zlib.h>

using namespace zero;
using namespace zero::runtime;
using zero::test::Folder;
using zero::test::refusalOf;

namespace {

template <class T> std::string raw(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

std::string safetensors(const std::string &header, const std::string &data) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<char *>(&length), 8) + header + data;
}

std::string npy(const std::string &descr, const std::string &shape, const std::string &data, int version = 1) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}\n", descr, shape);
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  auto length = static_cast<uint32_t>(header.size());
  out.append(reinterpret_cast<char *>(&length), version == 1 ? 2 : 4);
  return out + header + data;
}

template <class T> void put(std::string &out, T value) { out.append(reinterpret_cast<char *>(&value), sizeof value); }

std::string zip(const std::vector<std::pair<std::string, std::string>> &members, bool deflated) {
  std::string out, directory;
  for (const auto &[name, data] : members) {
    std::string packed = data;
    if (deflated) {
      z_stream stream{};
      deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
      packed.resize(data.size() + 100);
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(data.data())), stream.avail_in = static_cast<uInt>(data.size());
      stream.next_out = reinterpret_cast<Bytef *>(packed.data()), stream.avail_out = static_cast<uInt>(packed.size());
      deflate(&stream, Z_FINISH);
      packed.resize(packed.size() - stream.avail_out);
      deflateEnd(&stream);
    }
    auto crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef *>(data.data()), data.size()));
    std::string common; // the fields both headers share
    put<uint16_t>(common, 20), put<uint16_t>(common, 0), put<uint16_t>(common, deflated ? 8 : 0), put<uint32_t>(common, 0),
        put(common, crc);
    put(common, static_cast<uint32_t>(packed.size())), put(common, static_cast<uint32_t>(data.size()));
    put(common, static_cast<uint16_t>(name.size())), put<uint16_t>(common, 0);
    auto local = static_cast<uint32_t>(out.size());
    out += "PK\3\4" + common + name + packed;
    directory += "PK\1\2";
    put<uint16_t>(directory, 20);
    directory += common;
    put<uint16_t>(directory, 0), put<uint16_t>(directory, 0), put<uint16_t>(directory, 0), put<uint32_t>(directory, 0),
        put(directory, local);
    directory += name;
  }
  auto at = static_cast<uint32_t>(out.size());
  out += directory + "PK\5\6";
  put<uint32_t>(out, 0);
  put(out, static_cast<uint16_t>(members.size())), put(out, static_cast<uint16_t>(members.size()));
  put(out, static_cast<uint32_t>(directory.size())), put(out, at), put<uint16_t>(out, 0);
  return out;
}

// tokens [batch x 4], labels [batch x 4].
plan::Plan tokenPlan(uint32_t world, uint32_t accumulate, uint64_t batch, int64_t vocabulary = 1000) {
  plan::Plan plan;
  plan.set_world(world), plan.set_accumulate(accumulate), plan.set_samples(batch);
  plan.mutable_loss()->set_kind(plan::CROSS_ENTROPY), plan.mutable_loss()->set_ignore_index(-100);
  auto add = [&](const char *name, plan::Input::Role role, plan::DType type, std::vector<int64_t> shape) {
    plan::Input *input = plan.add_inputs();
    input->set_name(name), input->set_role(role), input->set_dtype(type);
    uint64_t bytes = sizeOf(type);
    for (int64_t extent : shape) input->add_shape(extent), bytes *= static_cast<uint64_t>(extent);
    input->mutable_ref()->set_buffer(static_cast<uint32_t>(plan.inputs_size() - 1)), input->mutable_ref()->set_bytes(bytes);
    return input;
  };
  auto b = static_cast<int64_t>(batch);
  add("tokens", plan::Input::DATA, plan::I64, {b, 4})->set_limit(vocabulary);
  add("labels", plan::Input::LABELS, plan::I64, {b, 4})->set_limit(vocabulary);
  add("scale", plan::Input::LOSS_SCALE, plan::F32, {1});
  add("seed", plan::Input::SEED, plan::I64, {2});
  return plan;
}

// The inputs of a plan as memory of their own.
struct Memory {
  std::map<uint32_t, std::vector<std::byte>> buffers;
  Locate locate = [this](const plan::Ref &ref) -> void * {
    auto &bytes = buffers[ref.buffer()];
    bytes.resize(ref.bytes());
    return bytes.data();
  };
  template <class T> std::vector<T> as(uint32_t buffer) {
    std::vector<T> values(buffers[buffer].size() / sizeof(T));
    std::memcpy(values.data(), buffers[buffer].data(), buffers[buffer].size());
    return values;
  }
};

} // namespace

TEST(Element, HalfAndBfloatRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto h = static_cast<uint16_t>(bits);
    if (float f = halfToFloat(h); !std::isnan(f)) {
      ASSERT_EQ(floatToHalf(f), h);
    }
    if (float f = bfloatToFloat(h); !std::isnan(f)) {
      ASSERT_EQ(floatToBfloat(f), h);
    }
  }
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);          // rounds to infinity
  EXPECT_EQ(floatToHalf(1.0f + 0x1p-11f), 0x3c00);   // tie to even
  EXPECT_EQ(floatToHalf(1.0f + 0x1.8p-10f), 0x3c02); // tie to even, upwards
  EXPECT_EQ(floatToBfloat(1.0f + 0x1p-8f), 0x3f80);
}

TEST(Safetensors, WhatIsLaidOutIsReadBack) {
  Folder folder;
  SafetensorsLayout layout = layoutSafetensors({{"b", Element::I64, {2}}, {"a", Element::F32, {2, 2}}, {"none", Element::F32, {0}}});
  std::string file = layout.header + raw<int64_t>({7, -8}) + raw<float>({1, 2, 3, 4});
  ASSERT_EQ(file.size(), layout.bytes);
  TensorFile read = openTensorFile(folder.write("x.safetensors", file));
  ASSERT_EQ(read.tensors.size(), 3u);
  const Tensor *a = read.find("a"), *b = read.find("b");
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->shape, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(a->offset, layout.offsets[1]);
  EXPECT_EQ(integerAt(b->type, b->bytes.data(), 1), -8);
  EXPECT_THROW(layoutSafetensors({{"a", Element::F32, {1}}, {"a", Element::F32, {1}}}), Error);
}

TEST(Safetensors, BrokenFilesAreRefused) {
  Folder folder;
  auto refused = [&](const std::string &bytes) { return refusalOf([&] { openTensorFile(folder.write("x.safetensors", bytes)); }); };
  auto entry = [](const char *shape, uint64_t begin, uint64_t end) {
    return fmt::format(R"({{"dtype":"F32","shape":{},"data_offsets":[{},{}]}})", shape, begin, end);
  };
  std::string good = safetensors("{\"a\":" + entry("[2]", 0, 8) + "}", std::string(8, 'x'));
  EXPECT_EQ(refused(good), "");
  for (size_t cut = 0; cut < good.size(); ++cut) EXPECT_NE(refused(good.substr(0, cut)), "") << cut;
  EXPECT_NE(refused(std::string(8, '\xff')).find("header claims"), std::string::npos);
  EXPECT_NE(refused(safetensors("[1]", "")), "");
  EXPECT_NE(refused(safetensors("{\"a\":" + std::string(50000, '['), "")), "");
  std::string two = "{\"a\":" + entry("[2]", 0, 8) + ",\"b\":" + entry("[2]", 4, 12) + "}";
  EXPECT_NE(refused(safetensors(two, std::string(12, 'x'))).find("overlaps"), std::string::npos);
  std::string hole = "{\"a\":" + entry("[2]", 0, 8) + ",\"b\":" + entry("[1]", 12, 16) + "}";
  EXPECT_NE(refused(safetensors(hole, std::string(16, 'x'))).find("hole"), std::string::npos);
  EXPECT_NE(refused(safetensors("{\"a\":" + entry("[2]", 0, 8) + "}", std::string(9, 'x'))), "");
  EXPECT_NE(refused(safetensors("{\"a\":" + entry("[3]", 0, 8) + "}", std::string(8, 'x'))), "");
  EXPECT_NE(refused(safetensors("{\"a\":" + entry("[4611686018427387904,4611686018427387904,4]", 0, 0) + "}", "")), "");
  EXPECT_NE(refused(safetensors("{\"a\":" + entry("[-1]", 0, 8) + "}", std::string(8, 'x'))), "");
}

TEST(Npz, StoredAndDeflatedMembersAreRead) {
  Folder folder;
  std::vector<std::pair<std::string, std::string>> members{{"a.npy", npy("<f4", "(2, 2)", raw<float>({1, 2, 3, 4}))},
                                                           {"n.npy", npy("<i8", "(3,)", raw<int64_t>({5, -6, 7}), 2)},
                                                           {"s.npy", npy("|b1", "()", "\1")}};
  for (bool deflated : {false, true}) {
    TensorFile file = openTensorFile(folder.write("x.npz", zip(members, deflated)));
    ASSERT_EQ(file.tensors.size(), 3u);
    const Tensor *n = file.find("n");
    ASSERT_TRUE(n && file.find("s"));
    EXPECT_EQ(file.find("a")->shape, (std::vector<uint64_t>{2, 2}));
    EXPECT_EQ(integerAt(n->type, n->bytes.data(), 1), -6);
    EXPECT_TRUE(file.find("s")->shape.empty());
  }
}

TEST(Npz, BrokenFilesAreRefused) {
  Folder folder;
  auto refused = [&](const std::string &bytes) { return refusalOf([&] { openTensorFile(folder.write("x.npz", bytes)); }); };
  std::string body = npy("<f4", "(2, 2)", raw<float>({1, 2, 3, 4}));
  for (bool deflated : {false, true}) {
    std::string good = zip({{"a.npy", body}}, deflated);
    ASSERT_EQ(refused(good), "");
    for (size_t cut = 0; cut < good.size(); ++cut) EXPECT_NE(refused(good.substr(0, cut)), "") << cut;
  }
  std::string flipped = zip({{"a.npy", body}}, true);
  flipped[50] = static_cast<char>(flipped[50] ^ 0x10); // inside the deflated bytes
  EXPECT_NE(refused(flipped), "");
  EXPECT_NE(refused(zip({{"a.npy", npy("<f4", "(99999999999999999, 99999999999999999)", "")}}, false)), "");
  EXPECT_NE(refused(zip({{"a.npy", npy(">f4", "(1,)", "1234")}}, false)).find("'>f4'"), std::string::npos);
  EXPECT_NE(refused(zip({{"a.npy", npy("<f4", "(2,)", "1234")}}, false)), "");
  EXPECT_NE(refused(zip({{"a.npy", "not an array"}}, false)), "");
}

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
