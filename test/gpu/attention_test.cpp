// Attention's kernels for a GPU against the reference interpreter: lengths that no tile divides, heads that share keys, masks, rows that
// see nothing. Layouts of the same numbers give the same bits.
#include "compiler/codegen/program.h"
#include "compiler/codegen/ptx/attention_tiles.h"
#include "gpu_check.h"
#include "runtime/plan/hidden.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace zero;

namespace {

enum class Layout { ByHead, SideBySide, Packed }; // [batch, heads, rows, dim], bshd, and that with q, k and v in one

struct Shape {
  int64_t batch, heads, keyHeads, queries, keys, dim;
  bool causal = false;
  std::vector<int64_t> mask = {};
  std::string type = "f32";
  bool warpgroups = false; // products of four warps, where sizes are theirs
  int64_t window = 0;      // the mask has the lowest number where a key is so far from its query, or further
  std::vector<int64_t> band = {};
};

std::string tensor(std::vector<int64_t> sizes, const std::string &type) {
  std::string text = "tensor<";
  for (int64_t size : sizes) text += std::to_string(size) + "x";
  return text + type + ">";
}

const char *const kForward = "attention", *const kGradient = "attention_grad_by_row_sums", *const kKernels[] = {kForward, kGradient};

std::string textOf(const Shape &s, const std::string &name, Layout layout = Layout::ByHead) {
  bool packed = layout == Layout::Packed;
  auto sizes = [&](int64_t heads, int64_t rows) {
    return layout == Layout::ByHead ? std::vector<int64_t>{s.batch, heads, rows} : std::vector<int64_t>{s.batch, rows, heads};
  };
  auto rowsOf = [&](int64_t heads, int64_t rows) {
    std::vector<int64_t> all = sizes(heads, rows);
    all.push_back(s.dim);
    return tensor(all, s.type);
  };
  std::string q = rowsOf(s.heads, s.queries), k = rowsOf(s.keyHeads, s.keys), x = rowsOf(s.heads + 2 * s.keyHeads, s.keys);
  std::string row = tensor(sizes(s.heads, s.queries), "f32"), mask = s.mask.empty() ? "" : tensor(s.mask, "f32");
  std::string types = packed ? x + ", " + x + ", " + x : q + ", " + k + ", " + k, names = packed ? "%x, %x, %x" : "%q, %k, %v";
  std::string arguments = packed ? "%x: " + x : "%q: " + q + ", %k: " + k + ", %v: " + k;
  if (!mask.empty()) types += ", " + mask, names += " mask %mask", arguments += ", %mask: " + mask;
  std::string results = q + ", " + row, values = "%a#0, %a#1";
  if (name == kGradient) {
    types += ", " + row + ", " + row + ", " + q, names += ", %lse, %delta, %dout";
    arguments += ", %lse: " + row + ", %delta: " + row + ", %dout: " + q;
    results = packed ? x : q + ", " + k + ", " + k, values = packed ? "%a#0" : "%a#0, %a#1, %a#2";
  }
  std::string form = layout == Layout::ByHead ? "" : "bshd = true, ";
  if (!s.band.empty()) form += "band = array<i64: " + std::to_string(s.band[0]) + ", " + std::to_string(s.band[1]) + ">, ";
  if (packed) form += "packed_kv_heads = " + std::to_string(s.keyHeads) + " : i64, ";
  return "func.func private @kernel(" + arguments + ") -> (" + results + ") attributes {nn.kernel" +
         (s.warpgroups ? ", nn.warpgroups" : "") + "} {\n  %a:" + std::to_string(llvm::count(values, '%')) + " = nn." + name + " " + names +
         " {" + form + "causal = " + (s.causal ? "true" : "false") + ", scale = 0.25 : f32} : (" + types + ") -> (" + results +
         ")\n  return " + values + " : " + results + "\n}";
}

/// Of an operand or a result by head: its heads and their rows; which tensor of another layout it lies in, from which head on and of how
/// many.
struct Piece {
  int64_t heads, rows;
  size_t tensor;
  int64_t first, all;
};

std::vector<Piece> piecesOf(const Shape &s, const std::string &name, bool results, Layout layout) {
  Piece q{s.heads, s.queries, 0, 0, s.heads}, k{s.keyHeads, s.keys, 0, 0, s.keyHeads}, mask{};
  std::vector<Piece> pieces{q, k, k};
  if (results && name == kForward) pieces = {q, q}; // and the log of a row's sum
  if (!results && !s.mask.empty()) pieces.push_back(mask);
  if (!results && name == kGradient) pieces.insert(pieces.end(), {q, q, q});
  bool packed = layout == Layout::Packed && pieces.size() > 2;
  for (size_t i = 0; i < pieces.size(); ++i) {
    pieces[i].tensor = !packed ? i : i < 3 ? 0 : i - 2;
    if (packed && i < 3) pieces[i].first = i == 0 ? 0 : pieces[i - 1].first + pieces[i - 1].heads, pieces[i].all = s.heads + 2 * s.keyHeads;
  }
  return pieces;
}

using Bytes = std::vector<char>;

/// Copies tensors by head, which have their sizes, to those of another layout, or `back`.
void turn(const Shape &s, const std::vector<Piece> &pieces, Layout layout, std::vector<Bytes> &byHead, std::vector<Bytes> &others,
          bool back) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    auto [heads, rows, tensor, first, all] = pieces[i];
    Bytes &x = byHead[i], &y = others[tensor];
    if (layout == Layout::ByHead || !heads) { // a mask has one layout
      (back ? x : y) = back ? y : x;
      continue;
    }
    size_t bytes = x.size() / size_t(s.batch * heads * rows); // of a row
    for (int64_t at = 0; at < s.batch * heads * rows; ++at) {
      int64_t b = at / rows / heads, h = at / rows % heads, r = at % rows;
      char *mine = x.data() + size_t(at) * bytes, *theirs = y.data() + size_t((b * rows + r) * all + first + h) * bytes;
      back ? std::memcpy(mine, theirs, bytes) : std::memcpy(theirs, mine, bytes);
    }
  }
}

/// A mask of [queries, keys] as exporters write those of a sliding window.
void hideBeyond(int64_t window, const Shape &s, nn::Tensor &mask) {
  for (int64_t i = 0; i < s.queries; ++i)
    for (int64_t j = 0; j < s.keys; ++j) mask.set(i * s.keys + j, std::abs(i - j) < window ? 0 : std::numeric_limits<float>::lowest());
}

/// Each layout against the interpreter, and the same bits of the same numbers in all of them.
void check(Shape shape) {
  for (const char *name : kKernels) {
    std::vector<Bytes> numbers, wanted;
    for (Layout layout : {Layout::ByHead, Layout::SideBySide, Layout::Packed}) {
      if (layout == Layout::Packed && shape.queries != shape.keys) continue;
      test::Context context;
      std::string text = textOf(shape, name, layout);
      auto module = context.parse(text);
      ASSERT_TRUE(module) << text;
      auto kernel = *module->getOps<func::FuncOp>().begin();
      std::mt19937 random(7);
      std::vector<nn::Tensor> inputs;
      std::vector<Bytes> laid, results;
      for (Type t : kernel.getArgumentTypes()) {
        inputs.push_back(test::randomTensor(cast<RankedTensorType>(t), random, 4));
        if (shape.window && ArrayRef(shape.mask) == cast<RankedTensorType>(t).getShape()) hideBeyond(shape.window, shape, inputs.back());
        laid.push_back(inputs.back().bytes);
      }
      if (numbers.empty()) numbers = laid;
      turn(shape, piecesOf(shape, name, false, layout), layout, numbers, laid, false);
      for (auto [input, bytes] : llvm::zip_equal(inputs, laid)) input.bytes = bytes;
      test::CheckOptions options;
      options.tolerance = shape.type == "f32" ? 5e-5 : shape.type == "f16" ? 2e-3 : 1.6e-2;
      options.inputs = inputs;
      options.results = &results;
      ASSERT_EQ(test::checkOnGpu(kernel, options), "") << text;
      if (wanted.empty()) wanted = results;
      std::vector<Bytes> turned = wanted;
      turn(shape, piecesOf(shape, name, true, layout), layout, turned, results, true);
      EXPECT_EQ(turned, wanted) << "differs: " << text;
    }
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
// As many keys as queries: q, k and v may be one tensor.
TEST(Attention, GroupedHeadsOfOneLength) { check({2, 4, 2, 70, 70, 24, true}), check({2, 6, 2, 37, 37, 8}); }
TEST(Attention, MasksOfOneLength) {
  check({2, 4, 2, 35, 35, 8, true, {2, 1, 1, 35}}), check({2, 2, 1, 35, 35, 40, false, {1, 1, 35, 35}, "bf16"});
}
TEST(Attention, Bf16OfOneLength) {
  check({2, 2, 2, 150, 150, 64, true, {}, "bf16"}); // two buffers
  check({1, 4, 2, 75, 75, 24, false, {}, "bf16"});
  check({1, 4, 1, 16, 16, 128, true, {}, "bf16"});
}

TEST(Attention, Warpgroups) {
  check({2, 2, 2, 150, 150, 64, true, {}, "bf16", true});
  check({1, 4, 2, 64, 64, 64, false, {}, "bf16", true});
  check({2, 2, 1, 150, 130, 64, true, {}, "bf16", true});
  check({1, 2, 2, 60, 200, 64, false, {1, 2, 60, 200}, "bf16", true}); // all of four tiles but the last one's end
  check({1, 4, 2, 75, 75, 128, true, {}, "bf16", true});               // two panels
}

// The first tiles of most rows are masked as a whole, by a number of which no multiple is finite.
TEST(Attention, SlidingWindows) {
  check({1, 2, 1, 150, 150, 24, false, {1, 1, 150, 150}, "f32", false, 20});
  check({1, 2, 1, 150, 150, 24, true, {1, 1, 150, 150}, "bf16", false, 20});
  check({1, 2, 2, 200, 200, 64, false, {1, 1, 200, 200}, "bf16", true, 20});
}

// Tiles that no query of a tile sees are passed over; rows before and after all keys see nothing.
TEST(Attention, Bands) {
  auto banded = [](Shape shape, std::vector<int64_t> band) {
    shape.band = std::move(band);
    check(shape);
  };
  banded({1, 2, 1, 150, 150, 24, false, {}, "f32"}, {-19, 0});
  banded({1, 2, 1, 150, 150, 24, false, {}, "bf16"}, {-19, 30});
  banded({1, 2, 1, 150, 70, 24, true, {}, "bf16"}, {-9, 200});
  banded({1, 2, 2, 100, 150, 64, false, {}, "bf16"}, {20, 30});
  banded({1, 1, 1, 150, 40, 40, false, {}, "bf16"}, {-20, -10});
  banded({1, 2, 2, 200, 200, 64, false, {}, "bf16", true}, {-70, 0});
  banded({1, 4, 2, 200, 200, 64, false, {}, "bf16", true}, {-20, 20});
  banded({2, 2, 2, 130, 130, 128, false, {1, 2, 130, 130}, "bf16", true}, {-199, 3});
}

/// Forward, and the gradient of what it made, where some rows see nothing but what the mask hides by `number`; the numbers that forward
/// gives.
std::vector<std::vector<double>> checkHidden(const Shape &shape, float number) {
  std::mt19937 random(3);
  std::vector<nn::Tensor> inputs, forward;
  std::vector<std::vector<double>> numbers;
  for (const char *name : kKernels) {
    test::Context context;
    auto module = context.parse(textOf(shape, name));
    auto kernel = *module->getOps<func::FuncOp>().begin();
    if (inputs.empty()) {
      for (Type t : kernel.getArgumentTypes()) inputs.push_back(test::randomTensor(cast<RankedTensorType>(t), random, 4));
      for (int64_t i = 0; i < inputs[3].size(); ++i)
        if (i / shape.keys % 3 == 1) inputs[3].set(i, number);
      for (int64_t i = 2; i < inputs[3].size(); i += 7) inputs[3].set(i, -INFINITY);
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
    auto object = test::compileDouble(codegen::GpuKernel{kernel, std::vector<unsigned>(mine.size() + expected->size(), 16)});
    test::GpuLibrary library(object->data(), object->size());
    llvm::SmallVector<nn::Tensor> results;
    std::vector<void *> args;
    for (const nn::Tensor &t : *expected) results.emplace_back(t.type);
    for (nn::Tensor &t : mine) args.push_back(t.bytes.data());
    for (nn::Tensor &t : results) args.push_back(t.bytes.data());
    library.launch("kernel", args.data(), 1);
    double tolerance = shape.type == "f32" ? 5e-5 : 1.6e-2;
    for (auto [wanted, got] : llvm::zip(*expected, results)) EXPECT_EQ(test::difference(wanted, got.bytes.data(), tolerance), "") << name;
    if (!forward.empty()) continue;
    forward.assign(results.begin(), results.end());
    for (const nn::Tensor &t : results)
      for (auto &of = numbers.emplace_back(); int64_t(of.size()) < t.size();) of.push_back(t.at(int64_t(of.size())));
  }
  return numbers;
}

// Zeros, and no gradient.
TEST(Attention, RowsThatSeeNothing) {
  auto forward = checkHidden({1, 2, 2, 24, 40, 8, false, {1, 1, 24, 40}}, -INFINITY);
  EXPECT_EQ(forward[1][1], -INFINITY);
  EXPECT_EQ(forward[0][8], 0);
}
// Means, with gradients.
TEST(Attention, RowsThatSeeNothingButWhatIsHidden) {
  float low = std::numeric_limits<float>::lowest();
  auto forward = checkHidden({1, 2, 2, 24, 40, 8, false, {1, 1, 24, 40}}, low);
  EXPECT_EQ(forward[1][1], plan::lseOfHidden(34)); // and six hidden by -inf
  checkHidden({1, 2, 1, 150, 150, 24, true, {1, 1, 150, 150}}, low),
      checkHidden({1, 1, 1, 70, 90, 40, true, {1, 1, 70, 90}, "bf16"}, -1e9f);
  checkHidden({1, 2, 2, 100, 100, 64, false, {1, 1, 100, 100}, "bf16", true}, low);
}

TEST(Attention, TilesOfWarpgroups) {
  auto tiles = [](int64_t length, int64_t dim, const char *name, const char *type = "bf16") {
    return tilesOf({1, 1, 1, length, length, dim, true, {}, type, true}, name);
  };
  EXPECT_EQ(tiles(1024, 64, kForward).sharedBytes, 40u << 10);
  EXPECT_EQ(tiles(1024, 64, kForward).resident, 4u);
  EXPECT_EQ(tiles(1024, 64, kGradient).sharedBytes, 49u << 10); // more than code may declare
  EXPECT_EQ(tiles(1024, 64, kGradient).resident, 3u);
  EXPECT_EQ(tiles(1024, 128, kGradient).sharedBytes, 97u << 10);
  EXPECT_EQ(tiles(1024, 128, kGradient).resident, 2u);
  for (auto shape : {std::pair(1024, 40), std::pair(48, 64)}) EXPECT_FALSE(tiles(shape.first, shape.second, kForward).warpgroup);
  EXPECT_FALSE(tiles(1024, 64, kForward, "f32").warpgroup);
}

TEST(Attention, HeadsWhoseRowsStayInTheCache) {
  EXPECT_EQ(codegen::headsAtOnce(192, 256 << 10), 64);
  EXPECT_EQ(codegen::headsAtOnce(200, 256 << 10), 50);
  EXPECT_EQ(codegen::headsAtOnce(12, 256 << 10), 12);
  EXPECT_EQ(codegen::headsAtOnce(127, 256 << 10), 1);
  EXPECT_EQ(codegen::headsAtOnce(3, 64 << 20), 1);
}
TEST(Attention, SomeHeadsBeforeOthers) {
  EXPECT_EQ(codegen::headsAtOnce(4, 2 * 4200 * 128 * 4), 2);
  check({1, 4, 4, 17, 4200, 128});
}

// What a block needs of shared memory is there on every GPU, whatever the sizes.
TEST(Attention, TilesFitIntoSharedMemory) {
  for (int64_t dim = 8; dim <= 128; dim += 8)
    for (int64_t length : {1, 16, 17, 64, 1000})
      for (const char *name : kKernels) {
        auto tiles = tilesOf({1, 1, 1, length, length, dim, true}, name);
        EXPECT_LE(tiles.sharedBytes, codegen::kStaticShared) << name << " of " << dim;
        EXPECT_EQ(tiles.owned(length), (length + tiles.own - 1) / tiles.own);
        EXPECT_EQ(tiles.blocks, uint64_t(tiles.owned(length)) * (name == kForward ? 1 : 2));
      }
  auto tiles = tilesOf({8, 12, 12, 1024, 1024, 64, true}, "attention");
  EXPECT_EQ(tiles.own, 64);
  EXPECT_EQ(tiles.blocks, uint64_t(8 * 12 * 16));
  auto gradient = tilesOf({8, 12, 4, 1024, 640, 64, true}, kGradient);
  EXPECT_EQ(gradient.keyBlocks, uint64_t(8 * 4 * 10));
  EXPECT_EQ(gradient.blocks, uint64_t(8 * 4 * 10 + 8 * 12 * 16));
}
