// The reference interpreter: host tensors and their conversions, the generator, and results computed by hand here.
// Whole operations on small numbers are in test/compiler/nn/evaluate.mlir.
#include "compiler/nn/eval/eval.h"
#include "compiler/nn/random.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>

using namespace mlir;
using namespace zero::nn;

namespace {

class Eval : public ::testing::Test {
protected:
  MLIRContext context;
  std::string diagnostics;
  OwningOpRef<ModuleOp> module;

  Eval() {
    context.loadDialect<NnDialect, func::FuncDialect>();
    context.disableMultithreading();
    context.getDiagEngine().registerHandler([this](Diagnostic &d) { diagnostics += d.str() + "\n"; });
  }

  Type f32() { return Float32Type::get(&context); }
  Type f64() { return Float64Type::get(&context); }
  Type f16() { return Float16Type::get(&context); }
  Type bf16() { return BFloat16Type::get(&context); }
  Type integer(unsigned width) { return IntegerType::get(&context, width); }
  Tensor tensor(ArrayRef<int64_t> shape, Type type, ArrayRef<double> values) {
    return Tensor::fromValues(RankedTensorType::get(shape, type), values);
  }
  /// Values in [-1, 1) that differ everywhere.
  Tensor random(ArrayRef<int64_t> shape, Type type, uint64_t id) {
    Tensor t(RankedTensorType::get(shape, type));
    for (int64_t i = 0; i < t.size(); ++i) t.set(i, 2 * uniform(randomKey(7, id), uint64_t(i)) - 1);
    return t;
  }

  /// Parses @f and runs it.
  FailureOr<SmallVector<Tensor>> run(const std::string &text, ArrayRef<Tensor> inputs, const ParameterLookup &parameters = {},
                                     const GradientSink &gradients = {}) {
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module) return failure();
    return evaluateFunction(module->lookupSymbol<func::FuncOp>("f"), inputs, parameters, gradients);
  }
};

// What an operation lacks is missed here and not by whoever trains with it.
TEST_F(Eval, EveryOperationHasAMeaning) {
  unsigned count = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (name.getDialectNamespace() != "nn") continue;
    SCOPED_TRACE(name.getStringRef().str());
    ++count;
    bool ofModule = llvm::is_contained({"nn.parameter", "nn.get", "nn.gradient", "nn.launch"}, name.getStringRef());
    bool formula = name.hasInterface<PointwiseOpInterface>(), composite = name.hasInterface<CompositeOpInterface>();
    EXPECT_EQ(formula || name.hasInterface<EvaluableOpInterface>(), !ofModule);
    EXPECT_TRUE(!name.hasTrait<Elementwise>() || formula != composite) << "either a formula, or primitives that have one";
    bool place = llvm::is_contained({"nn.rows", "nn.join_rows"}, name.getStringRef()); // in memory, never in a kernel
    EXPECT_EQ(name.hasTrait<Movement>() && name.hasInterface<IndexedOpInterface>(), name.hasTrait<Movement>() && !place);
    // What a kernel may hold is one of these; composites are rewritten before, and the rest is called.
    EXPECT_LE(formula + composite + name.hasInterface<IndexedOpInterface>() + name.hasTrait<Accumulates>(), 1);
  }
  EXPECT_GT(count, 50u);
}

// A formula is one thing to the interpreter, whatever it is made of: near 0, where it is a logarithm of nearly 1, and far out.
TEST_F(Eval, FormulasKeepTheirDigits) {
  std::vector<double> at{0, 1e-30, -1e-9, 1e-4, 0.3, -1, 7, -1e5, 1e15, -1e30, HUGE_VAL};
  for (Type type : {f32(), f64()}) {
    std::string t = "tensor<" + std::to_string(at.size()) + (type.isF32() ? "xf32>" : "xf64>");
    Tensor x = tensor({int64_t(at.size())}, type, at);
    for (auto [name, function] : {std::pair<const char *, double (*)(double)>{"asinh", std::asinh}, {"atan", std::atan}}) {
      auto y = run("func.func @f(%x: " + t + ") -> " + t + " {\n %y = nn." + name + " %x : " + t + "\n return %y : " + t + "\n}", {x});
      ASSERT_TRUE(succeeded(y)) << diagnostics;
      for (int64_t i = 0; i < x.size(); ++i) {
        double exact = function(x.at(i)), off = std::abs((*y)[0].at(i) - exact);
        if (std::isinf(exact))
          EXPECT_EQ((*y)[0].at(i), exact);
        else
          EXPECT_LE(off, std::abs(exact) * (type.isF32() ? 3e-7 : 5e-16)) << name << " at " << x.at(i);
      }
    }
  }
}

// Noise has the moments of its distribution, and a sample the same numbers whichever rank draws them.
TEST_F(Eval, Noise) {
  auto drawn = [&](int samples, int64_t first, bool normal) {
    std::string shape = "tensor<" + std::to_string(samples) + "x1000xf32>";
    return run(
        "func.func @f(%x: " + shape + ", %s: tensor<2xi64>) -> " + shape +
            " {\n %y = nn.noise %x, %s {id = 4 : i64, normal = " + (normal ? "true" : "false") + ", samples = " + std::to_string(samples) +
            " : i64} : " + shape + ", tensor<2xi64>\n return %y : " + shape + "\n}",
        {tensor({samples, 1000}, f32(), std::vector<double>(size_t(samples) * 1000, 7)), tensor({2}, integer(64), {11, double(first)})});
  };
  for (bool normal : {false, true}) {
    auto all = drawn(8, 0, normal), part = drawn(2, 6, normal);
    ASSERT_TRUE(succeeded(all) && succeeded(part)) << diagnostics;
    double sum = 0, squares = 0, fourth = 0, beside = 0;
    for (int64_t i = 0; i < 8000; ++i) {
      double v = (*all)[0].at(i) - (normal ? 0 : 0.5);
      sum += v, squares += v * v, fourth += v * v * v * v, beside += i ? v * ((*all)[0].at(i - 1) - (normal ? 0 : 0.5)) : 0;
    }
    double variance = normal ? 1 : 1.0 / 12;
    EXPECT_NEAR(sum / 8000, 0, 0.04);
    EXPECT_NEAR(squares / 8000, variance, variance * 0.06);
    EXPECT_NEAR(fourth / 8000, normal ? 3 : 1.0 / 80, (normal ? 3 : 1.0 / 80) * 0.15);
    EXPECT_NEAR(beside / 8000, 0, variance * 0.04);
    for (int64_t i = 0; i < 2000; ++i) EXPECT_EQ((*part)[0].at(i), (*all)[0].at(6000 + i));
  }
}

TEST_F(Eval, AttributesComeBackAsTheyWent) {
  for (Type type : {f32(), f64(), f16(), bf16(), integer(64), integer(32)}) {
    Tensor t = tensor({2, 3}, type, {1, -2, 0, 7, 0.5, -100});
    for (size_t resourceFrom : {size_t(0), size_t(1) << 20}) { // once as a resource, once as dense elements
      auto back = Tensor::fromAttribute(t.toAttribute(resourceFrom));
      ASSERT_TRUE(succeeded(back));
      EXPECT_EQ(back->type, t.type);
      EXPECT_EQ(back->bytes, t.bytes);
    }
  }
  Tensor bits = tensor({3, 3}, integer(1), {1, 0, 1, 1, 0, 0, 0, 1, 1});
  EXPECT_TRUE(isa<DenseElementsAttr>(bits.toAttribute()));
  EXPECT_EQ(Tensor::fromAttribute(bits.toAttribute())->bytes, bits.bytes);
  EXPECT_EQ(Tensor::fromAttribute(bits.toAttribute(0))->bytes, bits.bytes);
  Tensor all = tensor({2, 2}, integer(1), {1, 1, 1, 1});
  EXPECT_TRUE(cast<DenseElementsAttr>(all.toAttribute(0)).isSplat());
  EXPECT_EQ(Tensor::fromAttribute(all.toAttribute(0))->bytes, all.bytes);
  Tensor empty(RankedTensorType::get({0, 4}, f32()));
  EXPECT_EQ(Tensor::fromAttribute(empty.toAttribute())->size(), 0);
}

TEST_F(Eval, AResourceOfTheWrongSizeIsRefused) {
  auto blob = HeapAsmResourceBlob::allocateAndCopyWithAlign(ArrayRef<char>("12345678", 8), 8);
  auto attribute = DenseResourceElementsAttr::get(RankedTensorType::get({3}, f32()), "short", std::move(blob));
  EXPECT_TRUE(failed(Tensor::fromAttribute(attribute)));
}

TEST_F(Eval, NarrowFloatsRoundLikeLlvm) {
  // Every half, and halves with the neighbourhood of their ties, against APFloat.
  std::vector<float> values{0.0f,  -0.0f,  INFINITY, -INFINITY, 65504.0f, 65519.0f, 65520.0f,
                            1e30f, 1e-30f, 2.98e-8f, 2.99e-8f,  5.97e-8f, 6.1e-5f,  3.4e38f};
  for (uint32_t half = 0; half < 0x7c00; half += 37) {
    float value = float(APFloat(APFloat::IEEEhalf(), APInt(16, half)).convertToFloat());
    for (float factor : {1.0f, 1.0002441f, 1.0004883f, 1.0009f}) values.push_back(value * factor);
  }
  for (float value : values)
    for (bool half : {true, false}) {
      APFloat expected(value);
      bool lost;
      expected.convert(half ? APFloat::IEEEhalf() : APFloat::BFloat(), APFloat::rmNearestTiesToEven, &lost);
      Tensor narrow = tensor({1}, f32(), {value}).cast(half ? f16() : bf16());
      EXPECT_EQ(narrow.data<uint16_t>()[0], expected.bitcastToAPInt().getZExtValue()) << value;
      EXPECT_EQ(float(narrow.at(0)), expected.convertToFloat()) << value;
    }
  EXPECT_TRUE(std::isnan(tensor({1}, f32(), {NAN}).cast(f16()).at(0)));
  EXPECT_TRUE(std::isnan(tensor({1}, f32(), {NAN}).cast(bf16()).at(0)));
}

TEST_F(Eval, ConversionsTruncateAndSaturate) {
  Tensor t = tensor({6}, f32(), {2.9, -2.9, 1e20, -1e20, NAN, 0.25});
  auto wide = t.cast(integer(64));
  EXPECT_EQ(wide.data<int64_t>(), (ArrayRef<int64_t>{2, -2, INT64_MAX, INT64_MIN, 0, 0}));
  EXPECT_EQ(t.cast(integer(32)).data<int32_t>(), (ArrayRef<int32_t>{2, -2, INT32_MAX, INT32_MIN, 0, 0}));
  EXPECT_EQ(t.cast(integer(1)).data<uint8_t>(), (ArrayRef<uint8_t>{1, 1, 1, 1, 1, 1}));
  Tensor big(RankedTensorType::get({1}, integer(64)));
  big.data<int64_t>()[0] = (int64_t(1) << 53) + 1; // exact where a detour over double would not be
  EXPECT_EQ(big.cast(integer(32)).data<int32_t>()[0], 1);
}

TEST(Random, NumbersAreThoseOfTheHeader) {
  // The comment of random.h, written down once more.
  auto mix = [](uint32_t x) {
    x ^= x >> 16, x *= 0x7feb352d, x ^= x >> 15, x *= 0x846ca68b, x ^= x >> 16;
    return x;
  };
  auto number = [&](uint64_t seed, uint64_t id, uint64_t index) {
    uint32_t k0 = mix(uint32_t(seed) ^ mix(uint32_t(seed >> 32) ^ mix(uint32_t(id) + 0x9e3779b9))), k1 = mix(k0 + 0x9e3779b9);
    uint32_t x = uint32_t(index) ^ k0;
    x ^= x >> 16, x *= 0x7feb352d, x += k1 + uint32_t(index >> 32), x ^= x >> 15, x *= 0x846ca68b, x ^= x >> 16;
    return float(x >> 8) / 16777216.0f;
  };
  for (uint64_t seed : {0ull, 1ull, 123456789012345ull})
    for (uint64_t id : {0ull, 3ull})
      for (uint64_t index : {0ull, 1ull, 4294967295ull, 4294967296ull})
        EXPECT_EQ(uniform(randomKey(seed, id), index), number(seed, id, index));
}

TEST(Random, NumbersAreUniformAndStreamsIndependent) {
  const int n = 1 << 18;
  double sum = 0, squares = 0, neighbours = 0, streams = 0;
  std::vector<int> bins(64);
  for (int i = 0; i < n; ++i) {
    double u = uniform(randomKey(42, 5), i), next = uniform(randomKey(42, 5), i + 1), other = uniform(randomKey(42, 6), i);
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    squares += u * u;
    neighbours += (u - 0.5) * (next - 0.5);
    streams += (u - 0.5) * (other - 0.5);
    ++bins[int(u * 64)];
  }
  EXPECT_NEAR(sum / n, 0.5, 0.003);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.003);
  EXPECT_NEAR(neighbours / n, 0, 0.001); // deviation 1/12/sqrt(n) = 0.00016
  EXPECT_NEAR(streams / n, 0, 0.001);
  double chi = 0;
  for (int count : bins) chi += (count - n / 64.0) * (count - n / 64.0) / (n / 64.0);
  EXPECT_LT(chi, 63 + 6 * std::sqrt(2 * 63.0));
}

TEST_F(Eval, RandomDoesNotDependOnHowTheBatchIsSplit) {
  auto text = [](int samples) {
    std::string shape = "tensor<" + std::to_string(samples) + "x3x5xf32>";
    return "func.func @f(%s: tensor<2xi64>, %x: " + shape + ") -> (" + shape + ", " + shape +
           ") {\n %r = nn.random %s {id = 9 : i64, samples = " + std::to_string(samples) + " : i64} : tensor<2xi64> -> " + shape +
           "\n %d = nn.dropout %x, %s {rate = 0.25 : f32, id = 9 : i64, samples = " + std::to_string(samples) + " : i64} : " + shape +
           ", tensor<2xi64>\n return %r, %d : " + shape + ", " + shape + "\n}";
  };
  std::vector<double> ones(60, 1);
  auto whole = run(text(4), {tensor({2}, integer(64), {11, 8}), tensor({4, 3, 5}, f32(), ones)});
  ASSERT_TRUE(succeeded(whole));
  auto second = run(text(2), {tensor({2}, integer(64), {11, 10}), tensor({2, 3, 5}, f32(), ArrayRef(ones).take_front(30))});
  ASSERT_TRUE(succeeded(second));
  int dropped = 0;
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ((*whole)[0].at(30 + i), (*second)[0].at(i));
    EXPECT_EQ((*whole)[1].at(30 + i), (*second)[1].at(i));
  }
  for (int i = 0; i < 60; ++i) { // the same numbers decide what is dropped
    bool keep = (*whole)[0].at(i) >= 0.25;
    EXPECT_FLOAT_EQ((*whole)[1].at(i), keep ? 4.0 / 3 : 0);
    dropped += !keep;
  }
  EXPECT_GT(dropped, 5);
  EXPECT_LT(dropped, 28);
}

// Rows 0 and 1 see nothing but what the mask hides: they weigh these keys alike, with `beyond` those after them as well, and pass gradients on.
TEST_F(Eval, AttentionOfWhatIsHidden) {
  const int N = 3, D = 2;
  const float low = std::numeric_limits<float>::lowest();
  Tensor q = random({1, 1, N, D}, f64(), 1), k = random({1, 1, N, D}, f64(), 2), v = random({1, 1, N, D}, f64(), 3),
         dout = random({1, 1, N, D}, f64(), 4), mask = tensor({1, 1, 1, N}, f32(), {low, low, 0});
  for (bool beyond : {false, true}) {
    std::string attributes = std::string("{scale = 0.5 : f32, causal = true") + (beyond ? ", beyond = 0xFF7FFFFF : f32}" : "}");
    std::string x = "tensor<1x1x3x2xf64>", lse = "tensor<1x1x3xf64>", types = x + ", " + x + ", " + x + ", tensor<1x1x1x3xf32>";
    auto results = run("func.func @f(%q: " + x + ", %k: " + x + ", %v: " + x + ", %m: tensor<1x1x1x3xf32>, %d: " + x + ") -> (" + x + ", " + x +
                           ", " + x + ", " + x + ") {\n%y, %lse = nn.attention %q, %k, %v mask %m " + attributes + " : (" + types + ") -> (" + x +
                           ", " + lse + ")\n%dq, %dk, %dv = nn.attention_grad %q, %k, %v mask %m, %y, %lse, %d " + attributes + " : (" + types +
                           ", " + x + ", " + lse + ", " + x + ") -> (" + x + ", " + x + ", " + x + ")\nreturn %y, %dq, %dk, %dv : " + x + ", " +
                           x + ", " + x + ", " + x + "\n}",
                       {q, k, v, mask, dout});
    ASSERT_TRUE(succeeded(results)) << diagnostics;
    std::vector<double> y(N * D), dq(N * D), dk(N * D), dv(N * D);
    for (int i = 0; i < N; ++i) {
      std::vector<double> p(N, 0.0), dp(N, 0.0);
      int weighed = i == 2 ? 1 : beyond ? N : i + 1; // row 2 sees key 2
      for (int j = 0; j < N; ++j) p[j] = (i == 2 ? j == 2 : j < weighed) ? 1.0 / weighed : 0;
      double mean = 0;
      for (int j = 0; j < N; ++j)
        for (int d = 0; d < D; ++d) {
          dp[j] += dout.at(i * D + d) * v.at(j * D + d);
          y[i * D + d] += p[j] * v.at(j * D + d);
          dv[j * D + d] += p[j] * dout.at(i * D + d);
        }
      for (int j = 0; j < N; ++j) mean += p[j] * dp[j];
      for (int j = 0; j < N; ++j)
        for (int d = 0; d < D; ++d) {
          dq[i * D + d] += 0.5 * p[j] * (dp[j] - mean) * k.at(j * D + d);
          dk[j * D + d] += 0.5 * p[j] * (dp[j] - mean) * q.at(i * D + d);
        }
    }
    const std::vector<double> *wanted[] = {&y, &dq, &dk, &dv};
    for (int r = 0; r < 4; ++r)
      for (int i = 0; i < N * D; ++i) EXPECT_NEAR((*results)[r].at(i), (*wanted[r])[i], 1e-7) << "result " << r << " at " << i;
  }
}

TEST_F(Eval, AttentionIsItsFormula) {
  // Two query heads per key head, four queries over five keys, causal, with a mask that blinds one row.
  const int B = 2, H = 4, G = 2, T = 4, S = 5, D = 3;
  Tensor q = random({B, H, T, D}, f64(), 1), k = random({B, H / G, S, D}, f64(), 2), v = random({B, H / G, S, D}, f64(), 3);
  Tensor mask = random({B, 1, 1, S}, f32(), 4), dout = random({B, H, T, D}, f64(), 5);
  for (int j = 0; j < 2; ++j) mask.set(j, -INFINITY); // sample 0, row 0 sees keys 0 and 1 only
  std::string types = "tensor<2x4x4x3xf64>, tensor<2x2x5x3xf64>, tensor<2x2x5x3xf64>, tensor<2x1x1x5xf32>";
  auto results = run(
      "func.func @f(%q: tensor<2x4x4x3xf64>, %k: tensor<2x2x5x3xf64>, %v: tensor<2x2x5x3xf64>, %m: tensor<2x1x1x5xf32>, %d: "
      "tensor<2x4x4x3xf64>) -> (tensor<2x4x4x3xf64>, tensor<2x4x4xf64>, tensor<2x4x4x3xf64>, tensor<2x2x5x3xf64>, tensor<2x2x5x3xf64>) {\n"
      "%y, %lse = nn.attention %q, %k, %v mask %m {scale = 0.5 : f32, causal = true} : (" +
          types +
          ") -> (tensor<2x4x4x3xf64>, tensor<2x4x4xf64>)\n"
          "%dq, %dk, %dv = nn.attention_grad %q, %k, %v mask %m, %y, %lse, %d {scale = 0.5 : f32, causal = true} : (" +
          types +
          ", tensor<2x4x4x3xf64>, tensor<2x4x4xf64>, tensor<2x4x4x3xf64>) -> (tensor<2x4x4x3xf64>, tensor<2x2x5x3xf64>, "
          "tensor<2x2x5x3xf64>)\n"
          "return %y, %lse, %dq, %dk, %dv : tensor<2x4x4x3xf64>, tensor<2x4x4xf64>, tensor<2x4x4x3xf64>, tensor<2x2x5x3xf64>, "
          "tensor<2x2x5x3xf64>\n}",
      {q, k, v, mask, dout});
  ASSERT_TRUE(succeeded(results)) << diagnostics;

  auto at = [](const Tensor &t, int a, int b, int c, int d) {
    auto s = t.shape();
    return t.at(((int64_t(a) * s[1] + b) * s[2] + c) * s[3] + d);
  };
  // sum(out * dout) as a function of everything, for central differences.
  auto forward = [&](const Tensor &q, const Tensor &k, const Tensor &v, bool compare) {
    double total = 0;
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int i = 0; i < T; ++i) {
          double p[S], sum = 0;
          for (int j = 0; j < S; ++j) {
            double s = 0;
            for (int d = 0; d < D; ++d) s += 0.5 * at(q, b, h, i, d) * at(k, b, h / G, j, d);
            p[j] = j <= i + S - T ? std::exp(s + mask.at(b * S + j)) : 0;
            sum += p[j];
          }
          for (int d = 0; d < D; ++d) {
            double y = 0;
            for (int j = 0; j < S && sum > 0; ++j) y += p[j] / sum * at(v, b, h / G, j, d);
            total += y * at(dout, b, h, i, d);
            if (compare) {
              EXPECT_NEAR(at((*results)[0], b, h, i, d), y, 1e-12);
            }
          }
          if (compare) {
            EXPECT_TRUE(sum == 0 || std::abs((*results)[1].at((b * H + h) * T + i) - std::log(sum)) < 1e-12);
          }
        }
    return total;
  };
  forward(q, k, v, true);
  EXPECT_EQ((*results)[1].at(0), -INFINITY);
  EXPECT_EQ((*results)[0].at(0), 0);
  Tensor *inputs[] = {&q, &k, &v};
  for (int which = 0; which < 3; ++which)
    for (int64_t i = 0; i < inputs[which]->size(); i += 7) {
      double value = inputs[which]->at(i);
      inputs[which]->set(i, value + 1e-5);
      double up = forward(q, k, v, false);
      inputs[which]->set(i, value - 1e-5);
      double down = forward(q, k, v, false);
      inputs[which]->set(i, value);
      EXPECT_NEAR((*results)[2 + which].at(i), (up - down) / 2e-5, 1e-8);
    }
}

TEST_F(Eval, FunctionsReadParametersLaunchKernelsAndHandOverGradients) {
  std::vector<std::string> told;
  auto results = run(R"(
    nn.parameter @w : tensor<2xf32> {trainable = true}
    func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> attributes {nn.kernel} {
      %y = nn.add %x, %x : tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %w = nn.get @w : tensor<2xf32>
      %p = nn.mul %w, %x : tensor<2xf32>
      %d = nn.launch @double(%p) : (tensor<2xf32>) -> tensor<2xf32>
      nn.gradient @w, %d : tensor<2xf32>
      return %d : tensor<2xf32>
    })",
                     {tensor({2}, f32(), {3, 4})},
                     [&](ParameterOp p) -> FailureOr<Tensor> {
                       return tensor({2}, f32(), {1, 10});
                     },
                     [&](ParameterOp p, const Tensor &g) { told.push_back(p.getSymName().str() + std::to_string(g.at(1))); });
  ASSERT_TRUE(succeeded(results)) << diagnostics;
  EXPECT_EQ((*results)[0].at(0), 6);
  EXPECT_EQ((*results)[0].at(1), 80);
  EXPECT_EQ(told, std::vector<std::string>{"w80.000000"});
}

TEST_F(Eval, WhatHasNoResultIsAnError) {
  EXPECT_TRUE(
      failed(run("func.func @f(%x: tensor<3x2xf32>, %i: tensor<1xi64>) -> tensor<1x2xf32> {\n %y = nn.gather %x, %i : tensor<3x2xf32>, "
                 "tensor<1xi64> -> tensor<1x2xf32>\n return %y : tensor<1x2xf32>\n}",
                 {random({3, 2}, f32(), 1), tensor({1}, integer(64), {3})})));
  EXPECT_NE(diagnostics.find("index 3 is not in [0, 3)"), std::string::npos) << diagnostics;
  EXPECT_TRUE(
      failed(run("func.func @f(%x: tensor<1xi64>, %y: tensor<1xi64>) -> tensor<1xi64> {\n %z = nn.div %x, %y : tensor<1xi64>\n return %z : "
                 "tensor<1xi64>\n}",
                 {tensor({1}, integer(64), {1}), tensor({1}, integer(64), {0})})));
  EXPECT_NE(diagnostics.find("divides an integer by zero"), std::string::npos) << diagnostics;
  EXPECT_TRUE(failed(run("func.func @f(%x: tensor<1xf32>) -> tensor<1xf32> {\n return %x : tensor<1xf32>\n}", {tensor({1}, f64(), {1})})));
  EXPECT_NE(diagnostics.find("argument 0 is"), std::string::npos) << diagnostics;
}

TEST_F(Eval, ParametersComeFromTheirFileOrRule) {
  std::string path = ::testing::TempDir() + "eval_test_weights.bin";
  std::ofstream(path, std::ios::binary) << std::string("skip\x00\x3c\x00\xc0", 8); // 1 and -2 in f16
  module = parseSourceString<ModuleOp>(R"(
    nn.parameter @file : tensor<2xf32> {trainable = true, file = "eval_test_weights.bin", offset = 4 : i64, bytes = 4 : i64, stored = f16}
    nn.parameter @short : tensor<2xf32> {trainable = true, file = "eval_test_weights.bin", offset = 6 : i64, bytes = 4 : i64, stored = f16}
    nn.parameter @normal : tensor<10000xf32> {trainable = true, init = "normal", init_std = 0.5 : f32}
    nn.parameter @ones : tensor<2xf32> {trainable = true, init = "ones"})",
                                       &context);
  ASSERT_TRUE(module) << diagnostics;
  auto load = [&](StringRef name) { return loadParameter(module->lookupSymbol<ParameterOp>(name), ::testing::TempDir(), 3); };
  auto file = load("file");
  ASSERT_TRUE(succeeded(file)) << diagnostics;
  EXPECT_EQ(file->at(0), 1);
  EXPECT_EQ(file->at(1), -2);
  EXPECT_TRUE(failed(load("short")));
  EXPECT_NE(diagnostics.find("cannot read 4 bytes at 6"), std::string::npos) << diagnostics;
  auto normal = load("normal");
  ASSERT_TRUE(succeeded(normal));
  double sum = 0, squares = 0;
  for (float x : normal->data<float>()) sum += x, squares += double(x) * x;
  EXPECT_NEAR(sum / 1e4, 0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / 1e4), 0.5, 0.02);
  EXPECT_EQ(load("ones")->at(1), 1);
}

} // namespace
