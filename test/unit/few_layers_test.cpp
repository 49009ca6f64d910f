// A model with a few of its layers (passes/pipeline/few_layers.h): where words repeat, and what is left of a model.
#include "compiler/nn/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/pipeline/few_layers.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace zero::pipeline {
namespace {

std::vector<uint32_t> wordsOf(const std::string &text) { return {text.begin(), text.end()}; }

void expectRepetition(const std::string &text, size_t begin, size_t period, size_t times) {
  std::vector<uint32_t> words = wordsOf(text);
  Repetition found = longestRepetition(words);
  EXPECT_EQ(found.begin, begin) << text;
  EXPECT_EQ(found.period, period) << text;
  EXPECT_EQ(found.times, times) << text;
}

TEST(Repetition, IsTheLongest) {
  expectRepetition("", 0, 0, 0);
  expectRepetition("abcdef", 0, 0, 0);
  expectRepetition("abcab", 0, 0, 0); // no two whole periods
  expectRepetition("xyzxyzx-abababab", 8, 2, 4);
  expectRepetition("embed-lnqkvplnffp-lnqkvplnffp-lnqkvplnffp-norm", 5, 12, 3); // within a layer words repeat too
  expectRepetition("aaaaaaaa", 0, 1, 8);
}

/// `layers` times a product of a weight with what the layer before gives, and of the first one's result at last.
std::string modelOf(int layers) {
  std::string text = "module {\n", body = "func.func @forward(%x0: tensor<4x8xf32>) -> tensor<4x8xf32> {\n";
  for (int i = 0; i < layers; ++i) {
    std::string n = std::to_string(i), next = std::to_string(i + 1);
    text += "nn.parameter @w" + n + " : tensor<8x8xf32> {trainable = true}\n";
    body += "%w" + n + " = nn.get @w" + n + " : tensor<8x8xf32>\n%y" + n + " = nn.matmul %x" + n + ", %w" + n +
            " : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>\n%x" + next + " = nn.tanh %y" + n + " : tensor<4x8xf32>\n";
  }
  std::string last = std::to_string(layers), middle = std::to_string(layers / 2);
  return text + body + "%sum = nn.add %x" + last + ", %x" + middle + " : tensor<4x8xf32>\nreturn %sum : tensor<4x8xf32>\n}\n}\n";
}

struct FewLayers : testing::Test {
  MLIRContext context;
  FewLayers() { context.loadDialect<func::FuncDialect, nn::NnDialect>(); }

  OwningOpRef<ModuleOp> parse(int layers) { return parseSourceString<ModuleOp>(modelOf(layers), &context); }
  static std::vector<std::string> parametersOf(ModuleOp module) {
    std::vector<std::string> names;
    for (auto parameter : module.getOps<nn::ParameterOp>()) names.push_back(parameter.getSymName().str());
    return names;
  }
};

TEST_F(FewLayers, AreTheFirstAndTheLast) {
  for (int layers : {8, 50, 200}) {
    OwningOpRef<ModuleOp> module = parse(layers);
    ASSERT_TRUE(module);
    EXPECT_TRUE(keepFewLayers(*module));
    EXPECT_TRUE(succeeded(verify(*module)));
    EXPECT_EQ(parametersOf(*module), (std::vector<std::string>{"w0", "w1", "w" + std::to_string(layers - 1)}));
    // The last reads the second in place of what has gone, and so does what read a layer in the middle.
    func::FuncOp forward = module->lookupSymbol<func::FuncOp>("forward");
    SmallVector<Operation *> sums(forward.getOps<nn::TanhOp>().begin(), forward.getOps<nn::TanhOp>().end());
    ASSERT_EQ(sums.size(), 3u);
    nn::AddOp add = *forward.getOps<nn::AddOp>().begin();
    EXPECT_EQ(add->getOperand(0).getDefiningOp(), sums[2]);
    EXPECT_EQ(add->getOperand(1).getDefiningOp(), sums[1]);
    EXPECT_EQ(sums[2]->getOperand(0).getDefiningOp()->getOperand(0).getDefiningOp(), sums[1]);
  }
}

TEST_F(FewLayers, OfAFewNothingIsLeftOut) {
  OwningOpRef<ModuleOp> module = parse(7);
  ASSERT_TRUE(module);
  EXPECT_FALSE(keepFewLayers(*module));
  EXPECT_EQ(parametersOf(*module).size(), 7u);
}

} // namespace
} // namespace zero::pipeline
