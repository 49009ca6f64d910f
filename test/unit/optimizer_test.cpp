// The optimizer kernels against the formulas of torch.optim in double, over several steps.
#include "compiler/nn/eval/eval.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "passes/train/optimizer.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace zero;

namespace {

constexpr int64_t kRows = 3, kCols = 5, kElements = kRows * kCols;
constexpr double kLr = 0.01, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8, kDecay = 0.1, kMomentum = 0.8, kClip = 1.0, kScale = 4096;

struct Optimizer : ::testing::Test {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Type f32;

  Optimizer() {
    context.loadDialect<nn::NnDialect, func::FuncDialect>();
    module = ModuleOp::create(UnknownLoc::get(&context));
    f32 = Float32Type::get(&context);
  }
  nn::Tensor tensor(std::vector<int64_t> shape, std::vector<double> values) {
    return nn::Tensor::fromValues(RankedTensorType::get(shape, f32), values);
  }
  nn::Tensor hyper(int t) {
    std::vector<double> h(16);
    double known[] = {kLr, kBeta1, kBeta2, kEps, kDecay, 1 - std::pow(kBeta1, t), 1 - std::pow(kBeta2, t), kMomentum, kClip, 1 / kScale};
    std::copy(std::begin(known), std::end(known), h.begin());
    return tensor({16}, h);
  }
  static double gradient(int step, int64_t i) { return std::sin(1.0 + 3.0 * step + 0.7 * double(i)); }

  /// `scaled`: the gradient comes multiplied by kScale, and a step whose gradient is not finite stands between others.
  void train(train::OptimizerKind kind, bool clips, bool scaled = false) {
    Type compute = scaled ? Type(Float16Type::get(&context)) : Type();
    auto kernel = train::buildUpdateKernel(*module, "update", kind, kRows, kCols, {clips, scaled, compute});
    ASSERT_TRUE(succeeded(verify(*module)));
    ASSERT_TRUE(kernel.isPrivate() && kernel->hasAttr("nn.kernel"));
    std::vector<double> p(kElements), m(kElements), v(kElements);
    for (int64_t i = 0; i < kElements; ++i) p[i] = std::cos(double(i));
    std::vector<nn::Tensor> state{tensor({kRows, kCols}, p)};
    for (int64_t s = 0; s < train::statesOf(kind); ++s) state.push_back(nn::Tensor(state[0].type));
    for (int t = 1; t <= 4; ++t) {
      std::vector<double> g(kElements);
      double norm2 = 0;
      for (int64_t i = 0; i < kElements; ++i) {
        g[i] = gradient(t, i);
        norm2 += g[i] * g[i];
      }
      auto run = [&](std::vector<double> gradient, double squared) {
        for (double &value : gradient) value *= scaled ? kScale : 1;
        std::vector<nn::Tensor> inputs{state[0], tensor({kRows, kCols}, gradient)};
        inputs.insert(inputs.end(), state.begin() + 1, state.end());
        inputs.push_back(hyper(t));
        if (clips) inputs.push_back(tensor({1}, {squared * (scaled ? kScale * kScale : 1)}));
        return nn::evaluateFunction(kernel, inputs);
      };
      for (double squared : {double(INFINITY), double(NAN)}) {
        if (!scaled) continue;
        std::vector<double> broken = g;
        broken[3] = squared;
        auto results = run(broken, squared);
        ASSERT_TRUE(succeeded(results));
        for (size_t s = 0; s < state.size(); ++s) EXPECT_EQ((*results)[s].bytes, state[s].bytes) << "a skipped step changes " << s;
        for (int64_t i = 0; i < kElements; ++i) EXPECT_NEAR(results->back().at(i), state[0].at(i), 5e-4 * std::abs(state[0].at(i)));
      }
      auto results = run(g, norm2);
      ASSERT_TRUE(succeeded(results));
      ASSERT_EQ(int64_t(results->size()), 1 + train::statesOf(kind) + (clips ? 0 : 1) + (scaled ? 1 : 0));
      if (!clips)
        for (int64_t r = 0; r < kRows; ++r) {
          double sum = 0;
          for (int64_t c = 0; c < kCols; ++c) sum += g[r * kCols + c] * g[r * kCols + c];
          EXPECT_NEAR(results->back().at(r), sum, 1e-5 * sum);
        }
      double factor = clips ? std::min(1.0, kClip / (std::sqrt(norm2) + 1e-6)) : 1;
      for (int64_t i = 0; i < kElements; ++i) {
        double d = g[i] * factor;
        if (kind == train::OptimizerKind::AdamW) {
          p[i] *= 1 - kLr * kDecay;
          m[i] = kBeta1 * m[i] + (1 - kBeta1) * d;
          v[i] = kBeta2 * v[i] + (1 - kBeta2) * d * d;
          double denominator = std::sqrt(v[i]) / std::sqrt(1 - std::pow(kBeta2, t)) + kEps;
          p[i] -= kLr / (1 - std::pow(kBeta1, t)) * m[i] / denominator;
        } else {
          d += kDecay * p[i];
          m[i] = t == 1 ? d : kMomentum * m[i] + d;
          p[i] -= kLr * m[i];
        }
        EXPECT_NEAR((*results)[0].at(i), p[i], 2e-6) << "step " << t << " element " << i;
        EXPECT_NEAR((*results)[1].at(i), m[i], 2e-6);
        if (kind == train::OptimizerKind::AdamW) {
          EXPECT_NEAR((*results)[2].at(i), v[i], 2e-6);
        }
      }
      for (size_t s = 0; s < state.size(); ++s) state[s] = (*results)[s];
    }
  }
};

TEST_F(Optimizer, AdamW) { train(train::OptimizerKind::AdamW, false); }
TEST_F(Optimizer, AdamWClipped) { train(train::OptimizerKind::AdamW, true); }
TEST_F(Optimizer, Sgd) { train(train::OptimizerKind::SGD, false); }
TEST_F(Optimizer, SgdClipped) { train(train::OptimizerKind::SGD, true); }
TEST_F(Optimizer, AdamWScaled) { train(train::OptimizerKind::AdamW, true, true); }
TEST_F(Optimizer, SgdScaled) { train(train::OptimizerKind::SGD, true, true); }

TEST_F(Optimizer, SumSquaresAndAccumulate) {
  auto squares = train::buildSumSquaresKernel(*module, "squares", 2, 3);
  auto add = train::buildAccumulateKernel(*module, "accumulate", 2, 3);
  ASSERT_TRUE(succeeded(verify(*module)));
  auto g = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  auto sums = nn::evaluateFunction(squares, {g});
  ASSERT_TRUE(succeeded(sums));
  EXPECT_EQ((*sums)[0].at(0), 14);
  EXPECT_EQ((*sums)[0].at(1), 77);
  auto total = nn::evaluateFunction(add, {g, g});
  ASSERT_TRUE(succeeded(total));
  EXPECT_EQ((*total)[0].at(5), 12);
}

// To nearest even, as an update rounds the copy that it writes.
TEST_F(Optimizer, Rounds) {
  auto round = train::buildRoundKernel(*module, "round", 2, 2, BFloat16Type::get(&context));
  ASSERT_TRUE(succeeded(verify(*module)));
  ASSERT_TRUE(round.isPrivate() && round->hasAttr("nn.kernel"));
  auto rounded = nn::evaluateFunction(round, {tensor({2, 2}, {1 + 0x1p-8, 1 + 0x3p-8, -1 - 0x1.8p-8, 0})});
  ASSERT_TRUE(succeeded(rounded));
  ASSERT_TRUE((*rounded)[0].elementType().isBF16());
  const double wanted[] = {1, 1 + 0x1p-6, -1 - 0x1p-7, 0};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ((*rounded)[0].at(i), wanted[i]) << i;
}

} // namespace
