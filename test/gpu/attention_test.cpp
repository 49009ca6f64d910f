// Attention's kernels for a GPU against the reference interpreter: lengths that no tile divides, heads that share keys, masks, rows that
// see nothing.
#include "compiler/codegen/program.h"
#include "compiler/codegen/ptx/attention_tiles.h"
#include "gpu_check.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace zero;

namespace {

struct Shape {
  int64_t batch, heads, keyHeads, queries, keys, dim;
  bool causal = false;
  std::vector<int64_t> mask = {};
  std::string type = "f32";
  bool bshd = false;
};

std::string tensor(std::vector<int64_t> sizes, const std::string &type) {
  std::string text = "tensor<";
  for (int64_t size : sizes) text += std::to_string(size) + "x";
  return text + type + ">";
}

/// One of the kernels: "attention", "attention_grad_keys", "attention_grad_queries".
std::string textOf(const Shape &s, const std::string &name) {
  auto sizes = [&](int64_t heads, int64_t rows) {
    return s.bshd ? std::vector<int64_t>{s.batch, rows, heads} : std::vector<int64_t>{s.batch, heads, rows};
  };
  auto rowsOf = [&](int64_t heads, int64_t rows) {
    std::vector<int64_t> all = sizes(heads, rows);
    all.push_back(s.dim);
    return tensor(all, s.type);
  };
  std::string q = rowsOf(s.heads, s.queries), k = rowsOf(s.keyHeads, s.keys);
  std::string row = tensor(sizes(s.heads, s.queries), "f32"), mask = s.mask.empty() ? "" : tensor(s.mask, "f32");
  std::string types = q + ", " + k + ", " + k, names = "%q, %k, %v", arguments = "%q: " + q + ", %k: " + k + ", %v: " + k;
  if (!mask.empty()) types += ", " + mask, names += " mask %mask", arguments += ", %mask: " + mask;
  std::string results = q + ", " + row, values = "%a#0, %a#1";
  bool gradient = name != "attention";
  if (gradient) {
    types += ", " + row + ", " + row + ", " + q, names += ", %lse, %delta, %dout";
    arguments += ", %lse: " + row + ", %delta: " + row + ", %dout: " + q;
    bool keys = name == "attention_grad_keys";
    results = keys ? k + ", " + k : q, values = keys ? "%a#0, %a#1" : "%a";
  }
  bool single = name == "attention_grad_queries";
  return "func.func private @kernel(" + arguments + ") -> (" + results + ") attributes {nn.kernel} {\n  %a" + (single ? "" : ":2") +
         " = nn." + name + " " + names + " {bshd = " + (s.bshd ? "true" : "false") + ", causal = " + (s.causal ? "true" : "false") +
         ", scale = 0.25 : f32} : (" + types + ") -> " + (single ? results : "(" + results + ")") + "\n  return " + values + " : " +
         results + "\n}";
}

const char *const kKernels[] = {"attention", "attention_grad_keys", "attention_grad_queries"};

void check(Shape shape) {
  test::CheckOptions options;
  double tolerance = shape.type == "f32" ? 5e-5 : shape.type == "f16" ? 2e-3 : 1.6e-2;
  for (bool bshd : {false, true})
    for (const char *name : kKernels) {
      test::Context context;
      shape.bshd = bshd;
      // The rows' log-sum-exps are made up, so that weights reach far above 1 and bf16 between the products shows in their gradients.
      bool far = bshd && shape.type == "bf16" && name != kKernels[0];
      options.tolerance = far ? 5e-2 : tolerance;
      std::string text = textOf(shape, name);
      auto module = context.parse(text);
      ASSERT_TRUE(module) << text;
      EXPECT_EQ(test::checkOnGpu(*module->getOps<func::FuncOp>().begin(), options), "") << text;
    }
}

codegen::AttentionTiles tilesOf(const Shape &shape, const char *name) {
  test::Context context;
  auto module = context.parse(textOf(shape, name));
  auto program = codegen::buildProgram(*module->getOps<func::FuncOp>().begin());
  return codegen::attentionTiles(program->attention);
}

} // namespace

TEST(Attention, OneTile) { check({2, 2, 2, 16, 16, 8}); }
TEST(Attention, LengthsThatNoTileDivides) { check({1, 2, 2, 100, 75, 16}); }
TEST(Attention, CausalOverManyTiles) { check({1, 1, 1, 150, 150, 64, true}); }
TEST(Attention, GroupedHeads) { check({2, 4, 2, 37, 70, 24, true}); }
TEST(Attention, FewerKeysThanQueries) { check({1, 2, 1, 90, 40, 8, true}); }
TEST(Attention, LongRows) { check({1, 1, 1, 40, 40, 128, true}); }
TEST(Attention, OneQuery) { check({2, 2, 1, 1, 33, 8}); }
TEST(Attention, MaskOfEveryScore) { check({2, 2, 2, 20, 35, 8, false, {2, 2, 20, 35}}); }
TEST(Attention, MaskThatRepeats) { check({2, 4, 2, 20, 35, 8, true, {2, 1, 1, 35}}); }
TEST(Attention, MaskOfQueries) { check({2, 2, 2, 20, 19, 8, false, {1, 2, 20, 1}}); }
TEST(Attention, Bf16) { check({1, 4, 2, 70, 90, 40, true, {}, "bf16"}); }
TEST(Attention, Bf16WholeRows) { check({2, 2, 1, 150, 130, 64, true, {}, "bf16"}); }
TEST(Attention, Bf16LongRows) { check({1, 1, 1, 70, 90, 128, false, {1, 1, 70, 90}, "bf16"}); }
TEST(Attention, F16) { check({1, 2, 2, 50, 50, 64, true, {}, "f16"}); }

// Rows that a mask lets see nothing: zeros, and no gradient.
TEST(Attention, RowsThatSeeNothing) {
  Shape shape{1, 2, 2, 24, 40, 8, false, {1, 1, 24, 40}};
  std::mt19937 random(3);
  std::vector<nn::Tensor> inputs, forward;
  for (const char *name : kKernels) {
    test::Context context;
    auto module = context.parse(textOf(shape, name));
    ASSERT_TRUE(module);
    auto kernel = *module->getOps<func::FuncOp>().begin();
    if (inputs.empty()) {
      for (Type t : kernel.getArgumentTypes()) inputs.push_back(test::randomTensor(cast<RankedTensorType>(t), random, 4));
      for (int64_t i = 0; i < inputs[3].size(); ++i)
        if (i / 40 % 3 == 1 || i % 7 == 2) inputs[3].set(i, -INFINITY);
    }
    // Types belong to a context: the numbers go on in tensors of this one.
    llvm::SmallVector<nn::Tensor> mine;
    for (auto [i, t] : llvm::enumerate(kernel.getArgumentTypes())) {
      mine.emplace_back(cast<RankedTensorType>(t));
      const nn::Tensor *from = i < 4 ? &inputs[i] : i == 4 ? &forward[1] : i == 6 ? &forward[0] : nullptr;
      if (from)
        mine.back().bytes = from->bytes;
      else
        mine.back() = test::randomTensor(cast<RankedTensorType>(t), random, 4);
    }
    auto expected = nn::evaluateFunction(kernel, mine);
    ASSERT_TRUE(succeeded(expected));
    auto object = test::compileDouble(codegen::GpuKernel{kernel, std::vector<unsigned>(mine.size() + expected->size(), 16)});
    ASSERT_TRUE(succeeded(object));
    test::GpuLibrary library(object->data(), object->size());
    llvm::SmallVector<nn::Tensor> results;
    std::vector<void *> args;
    for (const nn::Tensor &t : *expected) results.emplace_back(t.type);
    for (nn::Tensor &t : mine) args.push_back(t.bytes.data());
    for (nn::Tensor &t : results) args.push_back(t.bytes.data());
    library.launch("kernel", args.data(), 1);
    for (auto [wanted, got] : llvm::zip(*expected, results)) EXPECT_EQ(test::difference(wanted, got.bytes.data(), 5e-5), "") << name;
    if (forward.empty()) {
      for (const nn::Tensor &t : results) forward.push_back(t);
      EXPECT_EQ(forward[1].at(1), -INFINITY);
      EXPECT_EQ(forward[0].at(8), 0);
    }
  }
}

// What a block needs of shared memory is there on every GPU, whatever the sizes.
TEST(Attention, TilesFitIntoSharedMemory) {
  for (int64_t dim = 8; dim <= 128; dim += 8)
    for (int64_t length : {1, 16, 17, 64, 1000})
      for (const char *name : kKernels) {
        auto tiles = tilesOf({1, 1, 1, length, length, dim, true}, name);
        EXPECT_LE(tiles.sharedBytes, codegen::kStaticShared) << name << " of " << dim;
        EXPECT_GE(tiles.perHead * tiles.own, length);
        EXPECT_LT((tiles.perHead - 1) * tiles.own, length);
      }
  auto tiles = tilesOf({8, 12, 12, 1024, 1024, 64, true}, "attention");
  EXPECT_EQ(tiles.own, 64);
  EXPECT_EQ(tiles.blocks, uint64_t(8 * 12 * 16));
}
