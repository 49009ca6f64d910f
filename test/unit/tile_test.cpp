// nn-tile changes no mathematics: the loss and every gradient are those of the parameters in one piece.
#include "compiler/nn/eval/eval.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/train/Passes.h"
#include "passes/train/tile.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace mlir;
using namespace zero;

namespace {

// A table that is also the output projection, a projection of its own with a bias, and weights in both layouts. Some labels do not count;
// the first of a tile, the last of one and the last of all are among the others.
const char *const kModel = R"(module {
  nn.parameter @table : tensor<37x34xf64> {trainable = true}
  nn.parameter @in : tensor<34x40xf64> {trainable = true}
  nn.parameter @out : tensor<34x40xf64> {trainable = true}
  nn.parameter @head : tensor<34x37xf64> {trainable = true}
  nn.parameter @bias : tensor<37xf64> {trainable = true}
  func.func @train(%ids: tensor<2x4xi64>, %labels: tensor<8xi64>, %scale: tensor<1xf64>) -> tensor<f64> {
    %table = nn.get @table : tensor<37x34xf64>
    %in = nn.get @in : tensor<34x40xf64>
    %out = nn.get @out : tensor<34x40xf64>
    %head = nn.get @head : tensor<34x37xf64>
    %bias = nn.get @bias : tensor<37xf64>
    %rows = nn.gather %table, %ids : tensor<37x34xf64>, tensor<2x4xi64> -> tensor<2x4x34xf64>
    %x = nn.reshape %rows : tensor<2x4x34xf64> -> tensor<8x34xf64>
    %h = nn.matmul %x, %in : (tensor<8x34xf64>, tensor<34x40xf64>) -> tensor<8x40xf64>
    %t = nn.tanh %h : tensor<8x40xf64>
    %y = nn.matmul %t, %out {transpose_rhs = true} : (tensor<8x40xf64>, tensor<34x40xf64>) -> tensor<8x34xf64>
    %tied = nn.matmul %y, %table {transpose_rhs = true} : (tensor<8x34xf64>, tensor<37x34xf64>) -> tensor<8x37xf64>
    %first, %lse = nn.cross_entropy %tied, %labels, %scale {ignore_index = 3 : i64} : (tensor<8x37xf64>, tensor<8xi64>, tensor<1xf64>) -> (tensor<f64>, tensor<8xf64>)
    %own = nn.matmul %y, %head : (tensor<8x34xf64>, tensor<34x37xf64>) -> tensor<8x37xf64>
    %view = nn.reshape %own : tensor<8x37xf64> -> tensor<2x4x37xf64>
    %repeated = nn.broadcast %bias dims [2] : tensor<37xf64> -> tensor<2x4x37xf64>
    %sum = nn.add %repeated, %view : tensor<2x4x37xf64>
    %logits = nn.reshape %sum : tensor<2x4x37xf64> -> tensor<8x37xf64>
    %second, %lse2 = nn.cross_entropy %logits, %labels, %scale {ignore_index = -100 : i64SMOOTHING} : (tensor<8x37xf64>, tensor<8xi64>, tensor<1xf64>) -> (tensor<f64>, tensor<8xf64>)
    %loss = nn.add %first, %second : tensor<f64>
    return %loss : tensor<f64>
  }
})";

class Tiles : public ::testing::Test {
protected:
  MLIRContext context;
  std::string diagnostics;
  std::map<std::string, nn::Tensor> whole; // values of parameters

  Tiles() {
    context.loadDialect<nn::NnDialect, func::FuncDialect>();
    context.disableMultithreading();
    context.getDiagEngine().registerHandler([this](Diagnostic &d) { diagnostics += d.str() + "\n"; });
  }

  OwningOpRef<ModuleOp> prepared(std::string smoothing, int64_t parts, int64_t tokens = 0) {
    std::string text = kModel;
    text.replace(text.find("SMOOTHING"), 9, smoothing);
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << diagnostics;
    for (auto p : module->getOps<nn::ParameterOp>()) {
      auto [at, isNew] = whole.try_emplace(p.getSymName().str(), nn::Tensor(cast<RankedTensorType>(p.getType())));
      std::mt19937_64 random(7);
      for (int64_t i = 0; isNew && i < at->second.size(); ++i) at->second.set(i, std::uniform_real_distribution<double>(-1, 1)(random));
    }
    PassManager pm(&context);
    pm.addPass(train::createTileTokensPass({tokens}));
    train::TilePassOptions options;
    options.parts = parts;
    pm.addPass(train::createTilePass(options));
    pm.addPass(train::createDifferentiatePass());
    pm.addNestedPass<func::FuncOp>(train::createSimplifyPass());
    pm.addPass(train::createDecomposePass());
    pm.addNestedPass<func::FuncOp>(train::createRecomputePass());
    pm.addNestedPass<func::FuncOp>(train::createSimplifyPass());
    EXPECT_TRUE(succeeded(pm.run(*module))) << diagnostics;
    return module;
  }

  /// Calls `each` with the index of every element of a parameter or tile in the whole parameter, and in itself.
  static void forEachElement(nn::ParameterOp p, llvm::function_ref<void(int64_t, int64_t)> each) {
    auto shape = cast<ShapedType>(p.getType()).getShape();
    int64_t columns = shape.back(), wide = p.getWhole() ? p.getWhole()->back() : columns;
    int64_t row = p.getBegin() && shape.size() == 2 ? (*p.getBegin())[0] : 0, column = p.getBegin() ? p.getBegin()->back() : 0;
    int64_t count = cast<ShapedType>(p.getType()).getNumElements();
    for (int64_t i = 0; i < count; ++i) each((row + i / columns) * wide + column + i % columns, i);
  }
  static std::string nameOf(nn::ParameterOp p) { return p.getTileOf().value_or(p.getSymName()).str(); }

  double run(ModuleOp module, std::map<std::string, nn::Tensor> &gradients) {
    auto integers = [&](std::vector<int64_t> shape, std::vector<double> values) {
      return nn::Tensor::fromValues(RankedTensorType::get(shape, IntegerType::get(&context, 64)), values);
    };
    std::vector<nn::Tensor> inputs{integers({2, 4}, {0, 15, 16, 36, 31, 32, 5, 16}), integers({8}, {3, 0, 15, 16, 36, 32, 3, 31}),
                                   nn::Tensor::fromValues(RankedTensorType::get({1}, Float64Type::get(&context)), {0.25})};
    for (auto &[name, value] : whole) gradients.emplace(name, nn::Tensor(value.type));
    auto results = nn::evaluateFunction(
        module.lookupSymbol<func::FuncOp>("train"), inputs,
        [&](nn::ParameterOp p) -> FailureOr<nn::Tensor> {
          nn::Tensor tile(cast<RankedTensorType>(p.getType()));
          forEachElement(p, [&](int64_t of, int64_t i) { tile.set(i, whole.at(nameOf(p)).at(of)); });
          return tile;
        },
        [&](nn::ParameterOp p, const nn::Tensor &g) {
          forEachElement(p, [&](int64_t of, int64_t i) { gradients.at(nameOf(p)).set(of, g.at(i)); });
        });
    EXPECT_TRUE(succeeded(results)) << diagnostics;
    return succeeded(results) ? (*results)[0].at(0) : NAN;
  }
};

} // namespace

TEST_F(Tiles, AreEqualAndNoLargerThanAsked) {
  using Ends = SmallVector<int64_t>;
  EXPECT_EQ(train::tileEnds(100, 8, 800), Ends{100});
  EXPECT_EQ(train::tileEnds(100, 8, 799), (Ends{64, 100})); // two parts of 50, each rounded up to 16 indices
  EXPECT_EQ(train::tileEnds(64, 1, 16), (Ends{16, 32, 48, 64}));
  EXPECT_EQ(train::tileEnds(50257, 768, 50257 * 96), (Ends{6288, 12576, 18864, 25152, 31440, 37728, 44016, 50257}));
  EXPECT_EQ(train::tileEnds(10, 1000, 1), Ends{10}); // fewer indices than a tile is rounded up to
}

TEST_F(Tiles, ChangeNeitherLossNorGradients) {
  for (std::string smoothing : {"", ", label_smoothing = 0.25 : f32", ", label_smoothing = 1.0 : f32"})
    for (int64_t parts : {2, 3, 7}) {
      SCOPED_TRACE(smoothing + " " + std::to_string(parts));
      std::map<std::string, nn::Tensor> wanted, found;
      auto one = prepared(smoothing, 1), many = prepared(smoothing, parts);
      ASSERT_TRUE(one && many);
      int tiles = 0, products = 0;
      for (auto p : many->getOps<nn::ParameterOp>()) tiles += bool(p.getTileOf());
      EXPECT_GE(tiles, 8); // of four parameters; the bias stays whole
      EXPECT_NEAR(run(*many, found), run(*one, wanted), 1e-12);
      for (auto &[name, g] : wanted)
        for (int64_t i = 0; i < g.size(); ++i) ASSERT_NEAR(found.at(name).at(i), g.at(i), 1e-12) << "gradient of " << name << " at " << i;
      // Every tile's logits are computed in forward and again in backward, labels smoothed or not.
      many->walk([&](nn::MatMulOp op) { products += op.getRecompute(); });
      int ofTable = 0, ofHead = 0;
      for (auto p : many->getOps<nn::ParameterOp>()) ofTable += nameOf(p) == "table", ofHead += nameOf(p) == "head";
      EXPECT_EQ(products, 2 * (ofTable + ofHead));
    }
}

TEST_F(Tiles, OfTokensChangeNeitherLossNorGradients) {
  for (int64_t parts : {1, 3})
    for (int64_t tokens : {1, 3, 4, 7}) {
      SCOPED_TRACE(std::to_string(parts) + " parts, " + std::to_string(tokens) + " tokens");
      std::map<std::string, nn::Tensor> wanted, found;
      auto one = prepared(", label_smoothing = 0.25 : f32", 1), many = prepared(", label_smoothing = 0.25 : f32", parts, tokens);
      ASSERT_TRUE(one && many);
      EXPECT_NEAR(run(*many, found), run(*one, wanted), 1e-12);
      for (auto &[name, g] : wanted)
        for (int64_t i = 0; i < g.size(); ++i) ASSERT_NEAR(found.at(name).at(i), g.at(i), 1e-12) << "gradient of " << name << " at " << i;
      // Inside of the MLP, and logits, are of one tile; the gradient of each piece of a parameter is added up in products.
      many->walk([&](Operation *op) {
        for (Value v : op->getResults())
          if (auto type = nn::typeOf(v); type.getRank() == 2 && type.getDimSize(0) == 8)
            EXPECT_LE(type.getDimSize(1), 34) << op->getName().getStringRef().str();
      });
      int64_t onto = 0, pieces = 0, tiles = int64_t(llvm::divideCeil(8, tokens));
      many->walk([&](nn::MatMulOp op) { onto += bool(op.getOnto()); });
      for (auto p : many->getOps<nn::ParameterOp>()) pieces += nameOf(p) != "bias";
      EXPECT_EQ(onto, pieces * (tiles - 1));
    }
}

// Inside a region dropout and noise draw the numbers that they draw for all tokens at once, of samples or of a tensor that all samples
// share.
TEST_F(Tiles, OfTokensDrawTheSameNumbers) {
  for (int64_t samples : {0, 2}) {
    std::string text = R"(module {
      nn.parameter @up : tensor<4x9xf64> {trainable = true}
      nn.parameter @down : tensor<9x3xf64> {trainable = true}
      func.func @train(%x: tensor<8x4xf64>, %seed: tensor<2xi64>) -> tensor<2x4x3xf64> {
        %up = nn.get @up : tensor<4x9xf64>
        %down = nn.get @down : tensor<9x3xf64>
        %u = nn.matmul %x, %up : (tensor<8x4xf64>, tensor<4x9xf64>) -> tensor<8x9xf64>
        %u3 = nn.reshape %u : tensor<8x9xf64> -> tensor<2x4x9xf64>
        %d = nn.dropout %u3, %seed {id = 5 : i64, rate = 0.5 : f32, samples = SAMPLES : i64} : tensor<2x4x9xf64>, tensor<2xi64>
        %n = nn.noise %u3, %seed {id = 6 : i64, normal = true, samples = SAMPLES : i64} : tensor<2x4x9xf64>, tensor<2xi64>
        %dn = nn.add %d, %n : tensor<2x4x9xf64>
        %d2 = nn.reshape %dn : tensor<2x4x9xf64> -> tensor<8x9xf64>
        %y = nn.matmul %d2, %down : (tensor<8x9xf64>, tensor<9x3xf64>) -> tensor<8x3xf64>
        %y3 = nn.reshape %y : tensor<8x3xf64> -> tensor<2x4x3xf64>
        return %y3 : tensor<2x4x3xf64>
      }
    })";
    for (size_t at; (at = text.find("SAMPLES")) != std::string::npos;) text.replace(at, 7, std::to_string(samples));
    std::vector<std::vector<double>> results;
    for (int64_t tokens : {0, 3}) {
      auto module = parseSourceString<ModuleOp>(text, &context);
      ASSERT_TRUE(module) << diagnostics;
      PassManager pm(&context);
      pm.addPass(train::createTileTokensPass({tokens}));
      ASSERT_TRUE(succeeded(pm.run(*module))) << diagnostics;
      int parts = 0;
      module->walk([&](nn::RowsOp) { ++parts; });
      EXPECT_EQ(parts, tokens ? 3 : 0);
      auto ones = [&](std::vector<int64_t> shape) {
        nn::Tensor t(RankedTensorType::get(shape, Float64Type::get(&context)));
        for (int64_t i = 0; i < t.size(); ++i) t.set(i, double(i % 7) + 1);
        return t;
      };
      std::vector<nn::Tensor> inputs{ones({8, 4}),
                                     nn::Tensor::fromValues(RankedTensorType::get({2}, IntegerType::get(&context, 64)), {11, 6})};
      auto found = nn::evaluateFunction(
          module->lookupSymbol<func::FuncOp>("train"), inputs,
          [&](nn::ParameterOp p) -> FailureOr<nn::Tensor> { return ones(std::vector<int64_t>(cast<ShapedType>(p.getType()).getShape())); },
          [](nn::ParameterOp, const nn::Tensor &) {});
      ASSERT_TRUE(succeeded(found)) << diagnostics;
      auto &numbers = results.emplace_back();
      for (int64_t i = 0; i < (*found)[0].size(); ++i) numbers.push_back((*found)[0].at(i));
    }
    EXPECT_EQ(results[0], results[1]) << samples << " samples";
  }
}
