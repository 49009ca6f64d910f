// Every differentiation rule against central differences in f64, through nn-differentiate; and the same gradients again after
// nn-simplify and nn-decompose, which must not change them.
#include "compiler/nn/eval/eval.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/train/Passes.h"
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace mlir;
using namespace zero;

namespace {

using Values = std::map<std::string, nn::Tensor>;

struct Range {
  double low = -1, high = 1;
};

class Gradients : public ::testing::Test {
protected:
  MLIRContext context;
  std::string diagnostics;

  Gradients() {
    context.loadDialect<nn::NnDialect, func::FuncDialect>();
    context.disableMultithreading();
    context.getDiagEngine().registerHandler([this](Diagnostic &d) { diagnostics += d.str() + "\n"; });
  }

  /// A module whose @train computes `body`, which reads the parameters and ends with the tensor %y : `type`; the loss is a fixed random
  /// combination of the elements of %y.
  OwningOpRef<ModuleOp> parse(std::vector<std::pair<std::string, std::string>> parameters, std::string arguments, std::string body,
                              std::string type) {
    std::string text = "module {\n";
    for (auto &[name, t] : parameters) text += "  nn.parameter @" + name + " : " + t + " {trainable = true}\n";
    text += "  func.func @train(%weights: " + type + (arguments.empty() ? "" : ", " + arguments) + ") -> tensor<f64> {\n";
    for (auto &[name, t] : parameters) text += "    %" + name + " = nn.get @" + name + " : " + t + "\n";
    text += body;
    int64_t rank = std::count(type.begin(), type.end(), 'x');
    std::string dims;
    for (int64_t i = 0; i < rank; ++i) dims += (i ? ", " : "") + std::to_string(i);
    text += "\n    %weighted = nn.mul %y, %weights : " + type + "\n    %loss = nn.reduce sum %weighted dims [" + dims + "] : " + type +
            " -> tensor<f64>\n    return %loss : tensor<f64>\n  }\n}\n";
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text << diagnostics;
    return module;
  }

  double loss(ModuleOp module, ArrayRef<nn::Tensor> inputs, const Values &parameters, Values *gradients = nullptr) {
    auto train = module.lookupSymbol<func::FuncOp>("train");
    auto results = nn::evaluateFunction(
        train, inputs, [&](nn::ParameterOp p) -> FailureOr<nn::Tensor> { return parameters.at(p.getSymName().str()); },
        [&](nn::ParameterOp p, const nn::Tensor &g) {
          if (gradients) {
            EXPECT_FALSE(gradients->count(p.getSymName().str())) << "two gradients";
            (*gradients)[p.getSymName().str()] = g;
          }
        });
    EXPECT_TRUE(succeeded(results)) << diagnostics;
    return succeeded(results) ? (*results)[0].at(0) : NAN;
  }

  void run(ModuleOp module, std::unique_ptr<Pass> pass, bool nested = false) {
    PassManager pm(&context);
    nested ? pm.addNestedPass<func::FuncOp>(std::move(pass)) : pm.addPass(std::move(pass));
    ASSERT_TRUE(succeeded(pm.run(module))) << diagnostics;
  }

  static void expectSame(const Values &found, const Values &wanted, double tolerance, const char *when) {
    ASSERT_EQ(found.size(), wanted.size()) << when;
    for (auto &[name, w] : wanted) {
      const nn::Tensor &f = found.at(name);
      ASSERT_EQ(f.size(), w.size());
      for (int64_t i = 0; i < w.size(); ++i)
        EXPECT_NEAR(f.at(i), w.at(i), tolerance * (1 + std::abs(w.at(i)))) << when << ": gradient of " << name << " at " << i;
    }
  }

  void check(OwningOpRef<ModuleOp> module, Range range = {}, std::vector<nn::Tensor> more = {}) {
    ASSERT_TRUE(module);
    std::mt19937_64 random(7);
    auto fill = [&](nn::Tensor &t, Range r) {
      for (int64_t i = 0; i < t.size(); ++i) t.set(i, std::uniform_real_distribution<double>(r.low, r.high)(random));
    };
    auto train = module->lookupSymbol<func::FuncOp>("train");
    std::vector<nn::Tensor> inputs{nn::Tensor(cast<RankedTensorType>(train.getArgumentTypes()[0]))};
    fill(inputs[0], {-1, 1});
    inputs.insert(inputs.end(), more.begin(), more.end());
    Values parameters;
    for (auto p : module->getOps<nn::ParameterOp>()) {
      auto &t = parameters[p.getSymName().str()] = nn::Tensor(cast<RankedTensorType>(p.getType()));
      fill(t, range);
    }
    Values expected;
    const double h = 1e-5;
    for (auto &[name, t] : parameters) {
      nn::Tensor g(t.type);
      for (int64_t i = 0; i < t.size(); ++i) {
        double x = t.at(i);
        t.set(i, x + h);
        double up = loss(*module, inputs, parameters);
        t.set(i, x - h);
        double down = loss(*module, inputs, parameters);
        t.set(i, x);
        g.set(i, (up - down) / (2 * h));
      }
      expected[name] = g;
    }
    double before = loss(*module, inputs, parameters);
    Values found, again;
    run(*module, train::createDifferentiatePass());
    EXPECT_DOUBLE_EQ(loss(*module, inputs, parameters, &found), before);
    expectSame(found, expected, 1e-6, "nn-differentiate");
    run(*module, train::createSimplifyPass(), true);
    run(*module, train::createDecomposePass());
    run(*module, train::createSimplifyPass(), true);
    EXPECT_NEAR(loss(*module, inputs, parameters, &again), before, 1e-7 * (1 + std::abs(before)));
    expectSame(again, found, 1e-6, "nn-simplify, nn-decompose");
  }

  /// `op` of one operand x, or of x and z.
  void unary(std::string op, Range range = {}) {
    SCOPED_TRACE(op);
    check(parse({{"x", "tensor<3x4xf64>"}}, "", "    %y = nn." + op + " %x : tensor<3x4xf64>", "tensor<3x4xf64>"), range);
  }
  void binary(std::string op, Range range = {}) {
    SCOPED_TRACE(op);
    check(parse({{"x", "tensor<3x4xf64>"}, {"z", "tensor<3x4xf64>"}}, "", "    %y = nn." + op + " %x, %z : tensor<3x4xf64>",
                "tensor<3x4xf64>"),
          range);
  }
  void moved(std::string from, std::string op, std::string to) {
    SCOPED_TRACE(op);
    check(parse({{"x", from}}, "", "    %y = nn." + op + " : " + from + " -> " + to, to));
  }
  nn::Tensor integers(std::vector<int64_t> shape, std::vector<double> values) {
    return nn::Tensor::fromValues(RankedTensorType::get(shape, IntegerType::get(&context, 64)), values);
  }
};

TEST_F(Gradients, Unary) {
  for (const char *op :
       {"neg", "abs", "exp", "tanh", "erf", "sin", "cos", "asinh", "atan", "sigmoid", "silu", "gelu erf", "gelu tanh", "softmax"})
    unary(op, {-2, 2});
  for (const char *op : {"log", "log1p", "sqrt", "rsqrt"}) unary(op, {0.3, 2});
}

TEST_F(Gradients, Binary) {
  for (const char *op : {"add", "sub", "mul", "max", "min"}) binary(op);
  binary("div", {0.4, 2});
}

TEST_F(Gradients, Power) {
  for (const char *exponent : {"0.0", "1.0", "2.0", "3.0", "-0.5", "2.5"}) {
    SCOPED_TRACE(exponent);
    check(parse({{"x", "tensor<5xf64>"}}, "",
                std::string("    %p = nn.constant dense<") + exponent + "> : tensor<5xf64>\n    %y = nn.pow %x, %p : tensor<5xf64>",
                "tensor<5xf64>"),
          {0.3, 2});
  }
  check(parse({{"x", "tensor<3xf64>"}}, "",
              "    %p = nn.constant dense<[2.0, 0.5, 3.5]> : tensor<3xf64>\n    %y = nn.pow %x, %p : tensor<3xf64>", "tensor<3xf64>"),
        {0.3, 2});
}

TEST_F(Gradients, PowerThatIsComputed) {
  binary("pow", {0.3, 2});
  auto module = parse({{"x", "tensor<4xf64>"}, {"z", "tensor<4xf64>"}}, "", "    %y = nn.pow %x, %z : tensor<4xf64>", "tensor<4xf64>");
  auto of = [&](std::vector<double> values) {
    return nn::Tensor::fromValues(RankedTensorType::get({4}, Float64Type::get(&context)), values);
  };
  run(*module, train::createDifferentiatePass());
  Values found;
  loss(*module, {of({1, 1, 1, 1})}, {{"x", of({0, 0, 0, 2})}, {"z", of({0, 1, 2, 3})}}, &found);
  const double slopes[] = {0, 1, 0, 12};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(found["x"].at(i), slopes[i]);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(found["z"].at(i), 0);
  EXPECT_NEAR(found["z"].at(3), 8 * std::log(2.0), 1e-12);
}

TEST_F(Gradients, ReluIsZeroAtZero) {
  auto module = parse({{"x", "tensor<3xf64>"}}, "",
                      "    %c = nn.constant dense<0.0> : tensor<3xf64>\n    %y = nn.max %x, %c : tensor<3xf64>", "tensor<3xf64>");
  auto type = RankedTensorType::get({3}, Float64Type::get(&context));
  run(*module, train::createDifferentiatePass());
  Values found;
  loss(*module, {nn::Tensor::fromValues(type, {1, 1, 1})}, {{"x", nn::Tensor::fromValues(type, {-1, 0, 2})}}, &found);
  EXPECT_EQ(found["x"].at(0), 0);
  EXPECT_EQ(found["x"].at(1), 0);
  EXPECT_EQ(found["x"].at(2), 1);
}

TEST_F(Gradients, SelectAndCast) {
  check(parse({{"x", "tensor<4xf64>"}, {"z", "tensor<4xf64>"}}, "",
              "    %c = nn.compare lt %x, %z : tensor<4xf64> -> tensor<4xi1>\n    %y = nn.select %c, %x, %z : tensor<4xi1>, tensor<4xf64>",
              "tensor<4xf64>"));
}

TEST_F(Gradients, Movement) {
  moved("tensor<3x1xf64>", "broadcast %x dims [1, 2]", "tensor<2x3x4xf64>");
  moved("tensor<f64>", "broadcast %x dims []", "tensor<2x3xf64>");
  moved("tensor<2x6xf64>", "reshape %x", "tensor<3x4xf64>");
  moved("tensor<2x3x4xf64>", "transpose %x perm [2, 0, 1]", "tensor<4x2x3xf64>");
  moved("tensor<5x7xf64>", "slice %x starts [1, 0] sizes [2, 4] steps [2, 1]", "tensor<2x4xf64>");
  moved("tensor<5x7xf64>", "slice %x starts [4, 6] sizes [3, 3] steps [-2, -3]", "tensor<3x3xf64>");
  moved("tensor<2x3xf64>", "pad %x with 0.5 : f64 low [1, 0] high [2, 1] interior [0, 2]", "tensor<5x8xf64>");
}

TEST_F(Gradients, Concat) {
  check(parse({{"x", "tensor<2x3xf64>"}, {"z", "tensor<2x1xf64>"}}, "",
              "    %y = nn.concat %x, %z, %x dim 1 : (tensor<2x3xf64>, tensor<2x1xf64>, tensor<2x3xf64>) -> tensor<2x7xf64>",
              "tensor<2x7xf64>"));
}

TEST_F(Gradients, SlicesThatTileAreJoined) {
  auto body = R"(
    %x2 = nn.exp %x : tensor<2x6xf64>
    %a = nn.slice %x2 starts [0, 0] sizes [2, 2] steps [1, 1] : tensor<2x6xf64> -> tensor<2x2xf64>
    %b = nn.slice %x2 starts [0, 2] sizes [2, 2] steps [1, 1] : tensor<2x6xf64> -> tensor<2x2xf64>
    %c = nn.slice %x2 starts [0, 4] sizes [2, 2] steps [1, 1] : tensor<2x6xf64> -> tensor<2x2xf64>
    %ab = nn.mul %a, %b : tensor<2x2xf64>
    %y = nn.sub %ab, %c : tensor<2x2xf64>)";
  check(parse({{"x", "tensor<2x6xf64>"}}, "", body, "tensor<2x2xf64>"));
  auto module = parse({{"x", "tensor<2x6xf64>"}}, "", body, "tensor<2x2xf64>");
  run(*module, train::createDifferentiatePass());
  int pads = 0, concats = 0;
  module->walk([&](nn::PadOp) { ++pads; });
  module->walk([&](nn::ConcatOp) { ++concats; });
  EXPECT_EQ(pads, 0);
  EXPECT_EQ(concats, 1);
}

TEST_F(Gradients, Indexing) {
  check(parse({{"x", "tensor<5x3xf64>"}}, "%i: tensor<2x2xi64>",
              "    %y = nn.gather %x, %i : tensor<5x3xf64>, tensor<2x2xi64> -> tensor<2x2x3xf64>", "tensor<2x2x3xf64>"),
        {}, {integers({2, 2}, {4, 1, 1, 0})});
  check(parse({{"x", "tensor<3x5xf64>"}}, "%i: tensor<3xi64>",
              "    %y = nn.take_along %x, %i : tensor<3x5xf64>, tensor<3xi64> -> tensor<3xf64>", "tensor<3xf64>"),
        {}, {integers({3}, {4, 0, 2})});
  check(parse({{"x", "tensor<2x3xf64>"}}, "%i: tensor<2x4xi64>",
              "    %y = nn.take_along %x, %i : tensor<2x3xf64>, tensor<2x4xi64> -> tensor<2x4xf64>", "tensor<2x4xf64>"),
        {}, {integers({2, 4}, {2, 0, 2, 2, 1, 1, 0, 0})});
  check(parse({{"x", "tensor<4x3xf64>"}}, "%i: tensor<4xi64>",
              "    %y = nn.scatter_add %i, %x : tensor<4xi64>, tensor<4x3xf64> -> tensor<5x3xf64>", "tensor<5x3xf64>"),
        {}, {integers({4}, {4, 1, 1, 0})});
}

TEST_F(Gradients, RunningSum) {
  for (const char *form : {"", " {exclusive = true}", " {reverse = true}", " {exclusive = true, reverse = true}"})
    check(parse({{"x", "tensor<2x5xf64>"}}, "", "    %y = nn.cumsum %x" + std::string(form) + " : tensor<2x5xf64> -> tensor<2x5xf64>",
                "tensor<2x5xf64>"),
          {}, {});
}

TEST_F(Gradients, Reduce) {
  for (const char *kind : {"sum", "max", "min"}) {
    moved("tensor<2x3x4xf64>", std::string("reduce ") + kind + " %x dims [0, 2]", "tensor<3xf64>");
    moved("tensor<2x3xf64>", std::string("reduce ") + kind + " %x dims [0, 1]", "tensor<f64>");
  }
}

TEST_F(Gradients, Norms) {
  std::string type = "tensor<2x3x5xf64>", row = "tensor<5xf64>";
  check(parse({{"x", type}, {"s", row}, {"c", row}}, "",
              "    %y, %m, %r = nn.layer_norm %x, %s, %c {eps = 1.0e-3 : f32} : (" + type + ", " + row + ", " + row + ") -> (" + type +
                  ", tensor<2x3xf64>, tensor<2x3xf64>)",
              type));
  check(parse({{"x", type}, {"s", row}}, "",
              "    %y, %m, %r = nn.layer_norm %x, %s {eps = 1.0e-3 : f32} : (" + type + ", " + row + ") -> (" + type +
                  ", tensor<2x3xf64>, tensor<2x3xf64>)",
              type));
  check(parse({{"x", type}, {"s", row}}, "",
              "    %y, %r = nn.rms_norm %x, %s {eps = 1.0e-3 : f32} : (" + type + ", " + row + ") -> (" + type + ", tensor<2x3xf64>)",
              type));
}

TEST_F(Gradients, CrossEntropy) {
  auto labels = integers({4}, {2, -100, 0, 5});
  auto scale = nn::Tensor::fromValues(RankedTensorType::get({1}, Float64Type::get(&context)), {0.25});
  check(parse({{"x", "tensor<4x6xf64>"}}, "%labels: tensor<4xi64>, %scale: tensor<1xf64>",
              "    %y, %lse = nn.cross_entropy %x, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x6xf64>, tensor<4xi64>, "
              "tensor<1xf64>) -> "
              "(tensor<f64>, tensor<4xf64>)",
              "tensor<f64>"),
        {-3, 3}, {labels, scale});
}

// The log of the sum of exponentials is a result like others: alone, and beside the loss.
TEST_F(Gradients, CrossEntropyThroughBothResults) {
  auto labels = integers({4}, {2, -100, 0, 5});
  auto scale = nn::Tensor::fromValues(RankedTensorType::get({1}, Float64Type::get(&context)), {0.25});
  std::string op = "%term, %lse = nn.cross_entropy %x, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x6xf64>, tensor<4xi64>, "
                   "tensor<1xf64>) -> (tensor<f64>, tensor<4xf64>)\n";
  for (std::string y : {"%y = nn.reshape %lse : tensor<4xf64> -> tensor<4xf64>",
                        "%l = nn.broadcast %term dims [] : tensor<f64> -> tensor<4xf64>\n    %y = nn.mul %l, %lse : tensor<4xf64>"})
    check(parse({{"x", "tensor<4x6xf64>"}}, "%labels: tensor<4xi64>, %scale: tensor<1xf64>", "    " + op + "    " + y, "tensor<4xf64>"),
          {-3, 3}, {labels, scale});
}

TEST_F(Gradients, CrossEntropyOfSmoothedLabels) {
  auto scale = nn::Tensor::fromValues(RankedTensorType::get({1}, Float64Type::get(&context)), {0.25});
  for (const char *smoothing : {"0.125", "1.0"})
    check(parse({{"x", "tensor<4x6xf64>"}}, "%labels: tensor<4xi64>, %scale: tensor<1xf64>",
                std::string("    %y, %lse = nn.cross_entropy %x, %labels, %scale {ignore_index = -100 : i64, label_smoothing = ") +
                    smoothing + " : f32} : (tensor<4x6xf64>, tensor<4xi64>, tensor<1xf64>) -> (tensor<f64>, tensor<4xf64>)",
                "tensor<f64>"),
          {-3, 3}, {integers({4}, {2, -100, 0, 5}), scale});
}

TEST_F(Gradients, Dropout) {
  check(parse({{"x", "tensor<4x6xf64>"}}, "%seed: tensor<2xi64>",
              "    %y = nn.dropout %x, %seed {rate = 0.5 : f32, id = 3 : i64, samples = 4 : i64} : tensor<4x6xf64>, tensor<2xi64>",
              "tensor<4x6xf64>"),
        {}, {integers({2}, {11, 8})});
}

TEST_F(Gradients, MatMul) {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (std::string batch : {"", "2x"}) {
        std::string a = "tensor<" + batch + (ta ? "4x3" : "3x4") + "xf64>", b = "tensor<" + batch + (tb ? "5x4" : "4x5") + "xf64>";
        std::string flags =
            std::string("{transpose_lhs = ") + (ta ? "true" : "false") + ", transpose_rhs = " + (tb ? "true" : "false") + "}";
        std::string to = "tensor<" + batch + "3x5xf64>";
        SCOPED_TRACE(flags + batch);
        check(parse({{"x", a}, {"z", b}}, "", "    %y = nn.matmul %x, %z " + flags + " : (" + a + ", " + b + ") -> " + to, to));
      }
}

TEST_F(Gradients, TransposesBecomeFlags) {
  auto module = parse({{"x", "tensor<3x4xf64>"}, {"z", "tensor<5x4xf64>"}}, "", R"(
    %t = nn.transpose %z perm [1, 0] : tensor<5x4xf64> -> tensor<4x5xf64>
    %y = nn.matmul %x, %t : (tensor<3x4xf64>, tensor<4x5xf64>) -> tensor<3x5xf64>)",
                      "tensor<3x5xf64>");
  run(*module, train::createDifferentiatePass());
  run(*module, train::createSimplifyPass(), true);
  int transposes = 0;
  module->walk([&](nn::TransposeOp) { ++transposes; });
  EXPECT_EQ(transposes, 0);
}

TEST_F(Gradients, Attention) {
  std::string q = "tensor<2x4x3x5xf64>", k = "tensor<2x2x3x5xf64>", lse = "tensor<2x4x3xf64>", mask = "tensor<2x1x3x3xf64>";
  std::string types = "(" + q + ", " + k + ", " + k;
  check(parse({{"q", q}, {"k", k}, {"v", k}}, "",
              "    %y, %l = nn.attention %q, %k, %v {scale = 0.4 : f32, causal = true} : " + types + ") -> (" + q + ", " + lse + ")", q));
  nn::Tensor m(RankedTensorType::get({2, 1, 3, 3}, Float64Type::get(&context)));
  for (int64_t i = 0; i < m.size(); ++i) m.set(i, i % 3 == 2 ? -1e30 : 0.1 * double(i));
  check(parse({{"q", q}, {"k", k}, {"v", k}}, "%mask: " + mask,
              "    %y, %l = nn.attention %q, %k, %v mask %mask {scale = 0.4 : f32} : " + types + ", " + mask + ") -> (" + q + ", " + lse +
                  ")",
              q),
        {}, {m});
}

// Of each head one more score, scores under a cap, or both, in either layout.
TEST_F(Gradients, AttentionWithSinksAndCap) {
  std::string q = "tensor<2x4x3x5xf64>", k = "tensor<2x2x3x5xf64>", lse = "tensor<2x4x3xf64>", sink = "tensor<4xf64>";
  for (std::string cap : {"", ", softcap = 0.5 : f32"}) {
    SCOPED_TRACE(cap);
    check(parse({{"q", q}, {"k", k}, {"v", k}, {"s", sink}}, "",
                "    %y, %l = nn.attention %q, %k, %v sink %s {scale = 0.4 : f32, causal = true" + cap + "} : (" + q + ", " + k + ", " + k +
                    ", " + sink + ") -> (" + q + ", " + lse + ")",
                q));
    std::string x = "tensor<2x3x8x5xf64>", y = "tensor<2x3x4x5xf64>";
    check(parse({{"x", x}, {"s", sink}}, "",
                "    %y, %l = nn.attention %x, %x, %x sink %s {bshd = true, packed_kv_heads = 2 : i64, scale = 0.4 : f32" + cap + "} : (" +
                    x + ", " + x + ", " + x + ", " + sink + ") -> (" + y + ", tensor<2x3x4xf64>)",
                y));
  }
}

// A learnt bias, beside a mask or a cap, in either layout.
TEST_F(Gradients, AttentionWithBias) {
  std::string q = "tensor<2x4x3x5xf64>", k = "tensor<2x2x3x5xf64>", lse = "tensor<2x4x3xf64>", bias = "tensor<4x3x3xf64>",
              mask = "tensor<2x1x1x3xf64>";
  check(parse({{"q", q}, {"k", k}, {"v", k}, {"b", bias}}, "",
              "    %y, %l = nn.attention %q, %k, %v bias %b {scale = 0.4 : f32, causal = true, softcap = 0.5 : f32} : (" + q + ", " + k +
                  ", " + k + ", " + bias + ") -> (" + q + ", " + lse + ")",
              q));
  nn::Tensor m(RankedTensorType::get({2, 1, 1, 3}, Float64Type::get(&context)));
  for (int64_t i = 0; i < m.size(); ++i) m.set(i, 0.1 * double(i));
  std::string x = "tensor<2x3x8x5xf64>", y = "tensor<2x3x4x5xf64>";
  check(parse({{"x", x}, {"b", bias}}, "%mask: " + mask,
              "    %y, %l = nn.attention %x, %x, %x mask %mask bias %b {bshd = true, packed_kv_heads = 2 : i64, scale = 0.4 : f32} : (" +
                  x + ", " + x + ", " + x + ", " + mask + ", " + bias + ") -> (" + y + ", tensor<2x3x4xf64>)",
              y),
        {}, {m});
}

TEST_F(Gradients, PackedAttention) {
  std::string x = "tensor<2x3x8x5xf64>", y = "tensor<2x3x4x5xf64>";
  check(parse({{"x", x}}, "",
              "    %y, %l = nn.attention %x, %x, %x {bshd = true, packed_kv_heads = 2 : i64, scale = 0.4 : f32, causal = true} : (" + x +
                  ", " + x + ", " + x + ") -> (" + y + ", tensor<2x3x4xf64>)",
              y));
}

// Matrices of groups in two tensors.
TEST_F(Gradients, MatricesOfGroupsInTiles) {
  std::string x = "tensor<7x3xf64>", y = "tensor<7x2xf64>", v = "tensor<1x3x2xf64>", w = "tensor<2x3x2xf64>";
  check(parse({{"x", x}, {"v", v}, {"w", w}}, "",
              R"(
    %g = nn.constant dense<[2, 0, 2, 2, 0, 2, 2]> : tensor<7xi64>
    %slot, %row, %of = nn.group_rows %g {groups = 3, height = 2} : (tensor<7xi64>) -> (tensor<7xi64>, tensor<10xi64>, tensor<5xi64>)
    %y = nn.grouped_matmul %x, %v, %w by %slot, %row, %of : ()" +
                  x + ", " + v + ", " + w + ", tensor<7xi64>, tensor<10xi64>, tensor<5xi64>) -> " + y,
              y));
}

// A group without rows, and one of more than a block.
TEST_F(Gradients, MatricesOfGroups) {
  for (bool transpose : {false, true}) {
    SCOPED_TRACE(transpose);
    std::string x = "tensor<7x3xf64>", y = "tensor<7x2xf64>", w = transpose ? "tensor<3x2x3xf64>" : "tensor<3x3x2xf64>";
    check(parse({{"x", x}, {"w", w}}, "",
                R"(
    %g = nn.constant dense<[2, 0, 2, 2, 0, 2, 2]> : tensor<7xi64>
    %slot, %row, %of = nn.group_rows %g {groups = 3, height = 2} : (tensor<7xi64>) -> (tensor<7xi64>, tensor<10xi64>, tensor<5xi64>)
    %y = nn.grouped_matmul %x, %w by %slot, %row, %of )" +
                    std::string(transpose ? "{transpose = true} " : "") + ": (" + x + ", " + w +
                    ", tensor<7xi64>, tensor<10xi64>, tensor<5xi64>) -> " + y,
                y));
  }
}

// Windows that overlap, that stand apart so that places between them are never met, and that reach beyond both ends.
TEST_F(Gradients, DepthwiseConvolution) {
  auto of = [&](std::string x, std::string k, std::string y, std::string attributes) {
    SCOPED_TRACE(attributes);
    check(parse({{"x", x}, {"k", k}}, "", "    %y = nn.depthwise %x by %k " + attributes + " : (" + x + ", " + k + ") -> " + y, y));
  };
  of("tensor<2x5x3xf64>", "tensor<3x3xf64>", "tensor<2x5x3xf64>", "low [1] high [1] strides [1] dilations [1]");
  of("tensor<2x5x3xf64>", "tensor<4x3xf64>", "tensor<2x5x3xf64>", "low [3] high [0] strides [1] dilations [1]");
  of("tensor<1x9x2xf64>", "tensor<2x2xf64>", "tensor<1x3x2xf64>", "low [0] high [0] strides [3] dilations [1]");
  of("tensor<1x6x5x2xf64>", "tensor<3x2x2xf64>", "tensor<1x3x4x2xf64>", "low [1, 0] high [1, 1] strides [2, 1] dilations [1, 2]");
  of("tensor<1x5x2xf64>", "tensor<3x2xf64>", "tensor<1x3x2xf64>", "low [2] high [2] strides [3] dilations [1]");
}

TEST_F(Gradients, AttentionMaskHasNone) {
  std::string q = "tensor<1x1x3x5xf64>", mask = "tensor<1x1x3x3xf64>";
  auto module = parse({{"q", q}, {"m", mask}}, "",
                      "    %y, %l = nn.attention %q, %q, %q mask %m {scale = 0.4 : f32} : (" + q + ", " + q + ", " + q + ", " + mask +
                          ") -> (" + q + ", tensor<1x1x3xf64>)",
                      q);
  PassManager pm(&context);
  pm.addPass(train::createDifferentiatePass());
  EXPECT_TRUE(failed(pm.run(*module)));
  EXPECT_NE(diagnostics.find("no gradient for its operand #3"), std::string::npos) << diagnostics;
}

TEST_F(Gradients, SharedParameterIsSummedOnce) {
  check(parse({{"w", "tensor<4x4xf64>"}}, "", R"(
    %w2 = nn.get @w : tensor<4x4xf64>
    %a = nn.matmul %w, %w2 : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
    %b = nn.tanh %a : tensor<4x4xf64>
    %y = nn.matmul %b, %w {transpose_rhs = true} : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>)",
              "tensor<4x4xf64>"));
}

// An addition hands the same product on to both of its operands, of which one, or both, are added to what there is.
TEST_F(Gradients, ProductsThatAdditionsShare) {
  std::string type = "tensor<4x4xf64>", product = " : (" + type + ", " + type + ") -> " + type;
  for (auto [left, right] : {std::pair("%s", "%p"), {"%p", "%s"}, {"%s", "%s"}}) {
    SCOPED_TRACE(std::string(left) + " + " + right);
    check(parse({{"x", type}, {"s", type}, {"p", type}, {"q", type}}, "",
                "    %a = nn.add " + std::string(left) + ", " + right + " : " + type + "\n    %m = nn.matmul %x, %a" + product +
                    "\n    %t = nn.tanh %m : " + type + "\n    %b = nn.add %s, %q : " + type + "\n    %n = nn.matmul %t, %b" + product +
                    "\n    %y = nn.add %n, %p : " + type,
                type));
  }
}

TEST_F(Gradients, ParameterWithoutInfluenceIsNotTrained) {
  auto module = parse({{"x", "tensor<2xf64>"}, {"unused", "tensor<3xf64>"}}, "", "    %y = nn.exp %x : tensor<2xf64>", "tensor<2xf64>");
  run(*module, train::createDifferentiatePass());
  EXPECT_TRUE(module->lookupSymbol<nn::ParameterOp>("x").getTrainable());
  EXPECT_FALSE(module->lookupSymbol<nn::ParameterOp>("unused").getTrainable());
  EXPECT_NE(diagnostics.find("parameter 'unused' does not influence the loss"), std::string::npos) << diagnostics;
}

} // namespace
