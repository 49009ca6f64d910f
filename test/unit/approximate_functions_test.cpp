// Functions that kernels of half precision take by a GPU's units, at every number that bf16 has, against the C library. The double's units
// are exact: a GPU's add 2^-22 of what they give.
#include "../gpu/gpu_check.h"
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <sstream>

using namespace mlir;
using namespace zero;

namespace {

constexpr int64_t kNumbers = 1 << 16; // of two bytes

double valueOf(int64_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

const char *const kErf = "%r = nn.erf %w : tensor<65536xf32>", *const kTanh = "%r = nn.tanh %w : tensor<65536xf32>";
// As exporters write it.
const char *const kGelu = R"(
    %root = nn.constant dense<0.707106769> : tensor<65536xf32>
    %one = nn.constant dense<1.0> : tensor<65536xf32>
    %half = nn.constant dense<0.5> : tensor<65536xf32>
    %scaled = nn.mul %w, %root : tensor<65536xf32>
    %erf = nn.erf %scaled : tensor<65536xf32>
    %sum = nn.add %erf, %one : tensor<65536xf32>
    %product = nn.mul %w, %sum : tensor<65536xf32>
    %r = nn.mul %product, %half : tensor<65536xf32>)";

struct OneKernel {
  test::Context context;
  OwningOpRef<ModuleOp> module;
  codegen::GpuKernel kernel;

  OneKernel(const std::string &function, const std::string &from)
      : module(
            context.parse("func.func private @kernel(%x: tensor<65536x" + from + ">) -> tensor<65536xf32> attributes {nn.kernel} {\n" +
                          (from == "f32" ? "%zero = nn.constant dense<0.0> : tensor<65536xf32>\n%w = nn.add %x, %zero : tensor<65536xf32>\n"
                                         : "%w = nn.cast %x : tensor<65536x" + from + "> -> tensor<65536xf32>\n") +
                          function + "\nreturn %r : tensor<65536xf32>\n}")) {
    if (module) kernel = {*module->getOps<func::FuncOp>().begin(), {16, 16}};
  }
};

/// The function's results in f32, of all bf16, as a GPU computes them.
void compute(const std::string &function, std::vector<float> &results) {
  OneKernel made(function, "bf16");
  ASSERT_TRUE(made.module);
  auto object = test::compileDouble(made.kernel);
  ASSERT_TRUE(succeeded(object));
  test::GpuLibrary library(object->data(), object->size());
  std::vector<uint16_t> x(kNumbers);
  for (int64_t i = 0; i < kNumbers; ++i) x[i] = uint16_t(i);
  results.assign(kNumbers, -77);
  void *args[] = {x.data(), results.data()};
  library.launch("kernel", args);
}

/// The kernel's instructions of PTX for an element that compute with f32, and how many of them are units'.
double instructions(const std::string &function, const std::string &from, int &units) {
  OneKernel made(function, from);
  auto target = codegen::GpuTarget{"sm_80"};
  auto text = codegen::compileToPtx(made.kernel, target, 1);
  if (failed(text)) return -1;
  int all = 0;
  units = 0;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    bool unit = line.find(".approx.") != std::string::npos;
    all += line.find(".f32 \t") != std::string::npos && line.find("mov.") == std::string::npos;
    units += unit;
  }
  int lanes = from == "f32" ? 4 : 8;
  units /= lanes;
  return double(all) / lanes;
}

/// Every result within `bound` of the exact one; where that is NaN it is, too.
void expectWithin(const std::vector<float> &results, double (*exact)(double), double (*bound)(double x, double exact)) {
  ASSERT_EQ(results.size(), kNumbers);
  for (int64_t i = 0; i < kNumbers; ++i) {
    double x = valueOf(i), wanted = exact(x);
    if (std::isnan(wanted))
      ASSERT_TRUE(std::isnan(results[i])) << "at " << x;
    else if (std::isinf(wanted))
      ASSERT_EQ(results[i], wanted) << "at " << x;
    else
      ASSERT_LE(std::abs(results[i] - wanted), bound(x, wanted)) << "at " << x << ": " << results[i] << ", expected " << wanted;
  }
}

/// The formula leaves f32 where x (1 + erf) does, and of -∞ it has no number.
double gelu(double x) {
  if (x >= 0x1p127) return INFINITY;
  return std::isinf(x) && x < 0 ? std::nan("") : x / 2 * std::erfc(-x / std::sqrt(2.0));
}

} // namespace

TEST(ApproximateFunctions, Erf) {
  std::vector<float> results;
  compute(kErf, results);
  expectWithin(results, std::erf, [](double, double) { return 7e-7; });
  EXPECT_EQ(results[0], 0);
  for (int64_t i = 0; i < kNumbers / 2; ++i) {
    double x = valueOf(i);
    if (std::isnan(x)) continue;
    ASSERT_EQ(results[i], -results[i + kNumbers / 2]) << "of -x, at " << x;
    if (x >= 4) ASSERT_EQ(results[i], 1) << "at " << x; // as on a processor
  }
}

// Where 1 + erf cancels, too, an eighth of what rounding to bf16 is off by: of GELU, or of x / 2^9 where GELU is less.
TEST(ApproximateFunctions, Gelu) {
  std::vector<float> results;
  compute(kGelu, results);
  expectWithin(results, gelu, [](double x, double exact) { return 0x1p-12 * std::max(std::abs(exact), 0x1p-9 * std::abs(x)); });
}

// It is an activation itself: near 0, where it is x, it has the digits of x.
TEST(ApproximateFunctions, Tanh) {
  std::vector<float> results;
  compute(kTanh, results);
  expectWithin(results, std::tanh, [](double, double exact) { return 3e-6 * std::abs(exact); });
}

// So that kernels take as long as memory does. f32 has the bits of a processor.
TEST(ApproximateFunctions, AreShort) {
  struct Case {
    const char *name, *function;
    int most, units;
  };
  for (const Case &c : {Case{"erf", kErf, 9, 1}, {"tanh", kTanh, 12, 2}, {"gelu", kGelu, 13, 1}}) {
    SCOPED_TRACE(c.name);
    int units = 0;
    for (const char *half : {"bf16", "f16"}) {
      double number = instructions(c.function, half, units);
      EXPECT_GT(number, 0);
      EXPECT_LE(number, c.most) << half;
      EXPECT_EQ(units, c.units) << half;
    }
    EXPECT_GT(instructions(c.function, "f32", units), 20);
    EXPECT_EQ(units, 0);
  }
}
