// Weights as they come in and go out: initial ones, gradients, exports.
#include "runtime/checkpoint/export.h"
#include "runtime/checkpoint/export_onnx.h"
#include "runtime/checkpoint/initial.h"
#include "runtime/checkpoint/transposed.h"
#include "runtime/data/permutation.h"
#include "test/unit/state_fixture.h"
#include <nlohmann/json.hpp>

using namespace zero;
using namespace zero::runtime;
using namespace zero::test;

namespace {

// More than a tile in both directions, by several ranks.
TEST(Transposed, TileByTile) {
  Folder folder;
  const uint64_t rows = 1300, columns = 2100;
  std::vector<float> values(rows * columns), found(values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 100003);
  File file(folder / "matrix", File::Mode::Create);
  file.reserve(2 * values.size() * sizeof(float));
  file.write(0, values.data(), values.size() * sizeof(float));
  for (uint64_t rank = 0; rank < 3; ++rank)
    writeTransposed({file, 0}, {file, values.size() * sizeof(float)}, rows, columns, sizeof(float), rank, 3);
  file.read(values.size() * sizeof(float), found.data(), found.size() * sizeof(float));
  uint64_t wrong = 0;
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < columns; ++c) wrong += found[c * rows + r] != values[r * columns + c];
  EXPECT_EQ(wrong, 0u);
}

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

TEST(Initial, DoesNotDependOnTheWorld) {
  plan::Plan one = makePlan(1, 0), two = makePlan(2, 3), four = makePlan(4, 3);
  auto a = onRanks(one, [](const Rank &rank, Memory &) { initialiseParameters(rank, 1); });
  auto b = onRanks(two, [](const Rank &rank, Memory &) { initialiseParameters(rank, 1); });
  auto c = onRanks(four, [](const Rank &rank, Memory &) { initialiseParameters(rank, 2); });
  for (int bucket = 0; bucket < 2; ++bucket) {
    auto of = [&](const plan::Plan &plan, std::vector<Memory> &m) {
      return whole(plan, m, plan::StateTensor::MASTER, plan.buckets(bucket));
    };
    EXPECT_EQ(of(one, a), of(two, b));
    EXPECT_EQ(of(one, a), of(four, c));
  }
  for (auto [world, stage] : {std::pair{1u, 0u}, {2u, 0u}, {2u, 1u}, {4u, 2u}, {4u, 3u}}) { // in bf16 too
    plan::Plan plan = makePlan(world, stage, true);
    auto memories = onRanks(plan, [](const Rank &rank, Memory &) { initialiseParameters(rank, 1); });
    EXPECT_EQ(whole(one, a, plan::StateTensor::MASTER, one.buckets(0)), whole(plan, memories, plan::StateTensor::MASTER, plan.buckets(0)));
    expectRounded(plan, memories);
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

TEST(Initial, NormalNumbersAreThoseOfBoxAndMuller) {
  std::vector<float> made(1 << 18);
  normalNumbers(11, 1.0f, 0, made.size(), made.data());
  for (size_t i = 0; i < made.size(); ++i) {
    uint64_t bits = mix(mix(11) + i / 2);
    double radius = std::sqrt(-2 * std::log((static_cast<double>(bits >> 40) + 1) * 0x1p-24));
    double angle = static_cast<double>(bits & 0xffffff) * 0x1p-23 * std::numbers::pi;
    ASSERT_NEAR(made[i], radius * (i % 2 ? std::sin(angle) : std::cos(angle)), 1e-6) << i;
  }
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
  auto all = whole(plan, memories, plan::StateTensor::MASTER, plan.buckets(0));
  EXPECT_TRUE(std::equal(values.begin(), values.end(), all.begin()));
  EXPECT_EQ(all[63], 0);

  source->set_dtype(plan::BF16), source->set_bytes(70);
  memories = onRanks(plan, [](const Rank &rank, Memory &) { initialiseParameters(rank, 1); });
  EXPECT_EQ(whole(plan, memories, plan::StateTensor::MASTER, plan.buckets(0))[1], 1.0f); // high half of the little-endian 1.0f

  Memory memory;
  Ranks(1).run([&](Communicator &communicator) {
    Rank rank{plan, 1, memory, communicator};
    auto sentence = [&] { return refusalOf([&] { initialiseParameters(rank, 1); }); };
    source->set_dtype(plan::F32), source->set_bytes(140), source->set_offset(5);
    EXPECT_NE(sentence().find("not the file"), std::string::npos);
    source->set_bytes(139);
    EXPECT_NE(sentence().find("of 35 elements has 139 bytes"), std::string::npos);
    source->set_bytes(280), source->set_dtype(plan::I64), source->set_offset(0);
    folder.write("w", std::string(280, '\0'));
    EXPECT_NE(sentence().find("stored as I64, which cannot be trained"), std::string::npos);
    source->set_bytes(140), source->set_dtype(plan::F32);
    std::filesystem::create_directories(folder / "folder");
    source->set_file(folder / "folder");
    EXPECT_NE(sentence().find("is not a regular file"), std::string::npos);
    source->set_file(folder / "gone");
    EXPECT_NE(sentence().find("'w'"), std::string::npos);
  });
}

// More elements than one thread makes or one conversion takes at a time.
TEST(Initial, LargeParametersComeInParts) {
  Folder folder;
  const uint64_t elements = (1 << 20) + 5;
  plan::Plan plan = makePlan(1, 0);
  plan.mutable_parameters()->DeleteSubrange(1, 2);
  plan.mutable_parameters(0)->set_shape(0, static_cast<int64_t>(elements)), plan.mutable_parameters(0)->set_shape(1, 1);
  plan::Bucket *bucket = plan.mutable_buckets(0);
  bucket->set_elements(elements), bucket->set_shard_elements(elements), bucket->mutable_tensors(0)->mutable_ref()->set_bytes(elements * 4);
  auto values = [&](int threads) {
    auto memories = onRanks(plan, [&](const Rank &rank, Memory &) { initialiseParameters(rank, threads); });
    return whole(plan, memories, plan::StateTensor::MASTER, *bucket);
  };
  std::vector<float> normal = values(1);
  EXPECT_EQ(normal, values(3));
  plan.mutable_parameters(0)->mutable_init()->set_rule(plan::Init::ONES);
  EXPECT_EQ(values(1), std::vector<float>(elements, 1.0f));

  // The same numbers through a file of halves, and out into one again.
  std::string halves;
  for (float value : normal) {
    uint16_t half = floatToHalf(value);
    halves.append(reinterpret_cast<char *>(&half), 2);
  }
  std::string model = field(7, field(5, field(9, halves)));
  plan::Source *source = plan.mutable_parameters(0)->mutable_source();
  source->set_file(folder.write("m.onnx", model)), source->set_offset(model.find(halves)), source->set_bytes(halves.size());
  source->set_dtype(plan::F16), plan.set_model(source->file());
  std::vector<float> read = values(1);
  for (uint64_t i : {uint64_t(0), elements / 2, (elements - 5), elements - 1}) EXPECT_NEAR(read[i], normal[i], 0.01) << i;
  onRanks(plan, [&](const Rank &rank, Memory &) {
    initialiseParameters(rank, 1);
    exportWeights(rank, folder / "out.onnx");
  });
  EXPECT_EQ(folder.read("out.onnx"), model);
}

TEST(Gradients, ShardsAndWholeBucketsGiveOneFile) {
  std::string files[2];
  for (int stage : {0, 3}) {
    Folder folder;
    plan::Plan plan = makePlan(2, static_cast<uint32_t>(stage));
    plan::Step step;
    plan::Update &update = *step.mutable_update();
    update.set_dtype(plan::F32);
    update.set_bucket(0), update.set_part(stage == 0 ? plan::WHOLE : plan::SHARD);
    step.add_reads();
    onRanks(plan, [&](const Rank &rank, Memory &memory) {
      GradientFile file(rank, folder / "g.safetensors");
      Range held = stage == 0 ? Range{0, 64} : ownedBy(plan.buckets(0), rank.rank);
      plan::Step mine = step;
      plan::Ref &ref = *mine.add_reads(); // after the parameters
      ref.set_buffer(100), ref.set_bytes((held.end - held.begin) * sizeof(float));
      float *gradient = memory.at(plan::gradientOf(mine));
      std::iota(gradient, gradient + (held.end - held.begin), static_cast<float>(held.begin));
      file.add(mine);
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
  auto all = whole(plan, memories, plan::StateTensor::MASTER, plan.buckets(0));
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

// A folder that was removed during the run, and a link to a place where nothing is yet.
TEST(Export, ItsPlaceNeedNotBeThere) {
  Folder folder;
  plan::Plan plan = makePlan(1, 0);
  std::filesystem::create_directories(folder / "far");
  std::filesystem::create_symlink("far/x.safetensors", folder / "link.safetensors");
  onRanks(plan, [&](const Rank &rank, Memory &) {
    initialiseParameters(rank, 1);
    for (const char *name : {"gone/below/x.safetensors", "link.safetensors"}) exportWeights(rank, folder / name);
  });
  EXPECT_EQ(folder.read("gone/below/x.safetensors").size(), exportedFiles(plan, "x.safetensors").at(0).bytes);
  EXPECT_EQ(folder.read("far/x.safetensors"), folder.read("gone/below/x.safetensors"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.safetensors"));
}

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
    const plan::Ref &ref = plan::masterOf(plan.buckets(0)).ref();
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

  // What bf16 would make infinite is not written, and nothing takes the place of what was exported before.
  plan::Plan alone = makePlan(1, 0);
  alone.set_model(plan.model()), *alone.mutable_parameters() = plan.parameters();
  onRanks(alone, [&](const Rank &rank, Memory &memory) {
    auto *values = static_cast<float *>(memory.at(plan::masterOf(alone.buckets(0)).ref()));
    values[36] = 3.4e38f;
    EXPECT_NE(refusalOf([&] {
                exportWeights(rank, folder / "out/m.onnx");
              }).find("'b' holds 3.4e+38 at element 1, which is beyond BF16, the type that the model stores it in"),
              std::string::npos);
  });
  EXPECT_EQ(folder.read("out/m.onnx"), out);
  EXPECT_FALSE(std::filesystem::exists(folder / "out/m.onnx.partial"));

  auto refused = [&](const std::string &path) { return refusalOf([&] { checkExport(plan, folder / path); }); };
  EXPECT_EQ(refused("new/other.onnx"), "");
  EXPECT_EQ(refused("out/m.onnx"), ""); // replaces what it has left
  EXPECT_NE(refused("out/other.onnx").find("which holds data of '" + (folder / "out/m.onnx'")), std::string::npos);
  folder.write("out/sub/below.onnx", field(7, external("more.data")));
  EXPECT_NE(refused("out/m.onnx").find("which holds data of '" + (folder / "out/sub/below.onnx'")), std::string::npos);
  std::filesystem::remove(folder / "out/sub/below.onnx");
  std::filesystem::remove(folder / "out/m.onnx"); // as if the export had ended before it
  folder.write("out/broken.onnx", "no model");
  EXPECT_EQ(refused("out/m.onnx"), "");
  EXPECT_EQ(exportedFiles(plan, folder / "out/m.onnx").size(), 3u);
  folder.write("out/constants.data", "somebody else's");
  EXPECT_NE(refused("out/m.onnx").find("constants.data', which is not of an earlier export under this name"), std::string::npos);
  std::filesystem::remove_all(folder / "out");
  EXPECT_NE(refused("in/m.onnx").find("overwrite"), std::string::npos);
  EXPECT_NE(refused("in/other.onnx").find("overwrite"), std::string::npos); // its data files would be
  EXPECT_NE(refused("in/../in/m.onnx").find("overwrite"), std::string::npos);
  std::filesystem::create_symlink("in/m.onnx", folder / "link.onnx");
  EXPECT_NE(refused("link.onnx").find("overwrite"), std::string::npos);
  folder.write("in/outside.onnx", field(7, external("../weights.data")));
  plan.set_model(folder / "in/outside.onnx");
  EXPECT_NE(refused("out/m.onnx").find("outside its own folder"), std::string::npos);
  plan.set_model(folder / "in/m.onnx");
  plan.mutable_parameters(1)->clear_source();
  EXPECT_NE(refused("out/m.onnx").find("'b'"), std::string::npos);
  *plan.mutable_parameters(1)->mutable_source() = plan.parameters(0).source();
  plan.mutable_parameters(1)->set_shape(0, 35);
  EXPECT_NE(refused("out/m.onnx").find("cannot hold both"), std::string::npos);
  folder.write("in/m.onnx", model.substr(0, model.size() - 3));
  EXPECT_NE(refused("out/m.onnx").find("damaged"), std::string::npos);
}
