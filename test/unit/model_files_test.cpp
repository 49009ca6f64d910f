// A plan knows its model again: other weights in the same places are welcome, any other file is not.
#include "runtime/plan/model_files.h"
#include "test/unit/run_fixtures.h"
#include <sys/stat.h>

namespace zero::plan {
namespace {

using test::refusalOf;

class ModelFilesTest : public testing::Test {
protected:
  void SetUp() override {
    name = folder.write("model.onnx", bytes);
    plan.set_model(name);
    source(16, 8);
    source(4, 8); // not in the order of the file
  }
  void source(uint64_t offset, uint64_t size) {
    Source *source = plan.add_parameters()->mutable_source();
    source->set_file(name);
    source->set_offset(offset);
    source->set_bytes(size);
  }
  void record() {
    for (const ModelFile &file : ModelFiles(plan).record()) *plan.add_files() = file;
  }
  std::string refusal(const std::string &now) {
    folder.write("model.onnx", now);
    return refusalOf([&] { ModelFiles(plan).check(name); });
  }

  test::Folder folder;
  std::string bytes = "headWEIGHTS_midlWEIGHTS_tail", name;
  Plan plan;
};

TEST_F(ModelFilesTest, OtherWeightsInTheSamePlacesAreWelcome) {
  record();
  ASSERT_EQ(plan.files_size(), 1);
  EXPECT_EQ(plan.files(0).bytes(), bytes.size());
  EXPECT_EQ(refusal("headtrained!midltrained!tail"), "");
}

TEST_F(ModelFilesTest, EveryByteAroundThemCounts) {
  record();
  for (size_t i : {0, 3, 12, 15, 24, 27}) {
    std::string other = bytes;
    other[i] ^= 1;
    EXPECT_NE(refusal(other).find("another model"), std::string::npos) << i;
  }
}

TEST_F(ModelFilesTest, SoDoesTheSize) {
  record();
  EXPECT_NE(refusal(bytes + "!").find("has 29 bytes, but had 28"), std::string::npos);
  EXPECT_NE(refusal("headWEIGHTS_midlWEI").find("has 19 bytes"), std::string::npos);
  std::filesystem::remove(name);
  EXPECT_NE(refusalOf([&] { ModelFiles(plan).check(name); }).find("cannot read"), std::string::npos);
}

// Left out, it would never be checked: a disk that fails for a moment must not make another plan.
TEST_F(ModelFilesTest, WhatCannotBeReadIsNoPlan) {
  std::filesystem::remove(name);
  EXPECT_NE(refusalOf([&] { record(); }).find("model.onnx': No such file"), std::string::npos);
  ASSERT_EQ(mkfifo(name.c_str(), 0600), 0); // nobody writes into it
  EXPECT_NE(refusalOf([&] { record(); }).find("model.onnx': it is no regular file"), std::string::npos);
}

// The graph of a model with weights elsewhere says where they are.
TEST_F(ModelFilesTest, TheModelCountsWhereWeightsAreElsewhere) {
  std::string graph = folder.write("graph.onnx", "all graph");
  plan.set_model(graph);
  record();
  ASSERT_EQ(plan.files_size(), 2);
  EXPECT_EQ(ModelFiles(plan).names(), (std::vector{graph, name}));
  folder.write("graph.onnx", "all Graph");
  EXPECT_NE(refusalOf([&] { ModelFiles(plan).check(graph); }), "");
  EXPECT_EQ(refusalOf([&] { ModelFiles(plan).check(name); }), "");
}

TEST_F(ModelFilesTest, TiedCopiesCountToo) {
  std::string copies = folder.write("copies.bin", "WEIGHTS_");
  Source *source = plan.mutable_parameters(0)->add_aliases()->mutable_source();
  source->set_file(copies);
  source->set_bytes(8);
  EXPECT_EQ(ModelFiles(plan).names(), (std::vector{copies, name}));
}

TEST_F(ModelFilesTest, LittleIsReadBetweenWeights) {
  constexpr size_t kLong = 200'000;
  std::string large = bytes.substr(0, 24) + std::string(kLong, 'x');
  folder.write("model.onnx", large);
  record();
  large[24 + (64 << 10) - 1] = 'y';
  EXPECT_NE(refusal(large), "");
  large[24 + (64 << 10) - 1] = 'x';
  large.back() = 'y'; // a constant beyond what is read
  EXPECT_EQ(refusal(large), "");
}

TEST_F(ModelFilesTest, WhatWasNotRecordedIsNotChecked) { EXPECT_EQ(refusal("anything else"), ""); }

} // namespace
} // namespace zero::plan
