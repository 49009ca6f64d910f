// gpu-check products: operands repeat a table of random numbers, so that the host knows each element and holds none of them; some elements
// of the result are held against their sums in double.
#include "runtime/device/cuda/products.h"
#include "runtime/data/element.h"
#include "runtime/plan/container.h"
#include "runtime/plan/epilogue.h"
#include "runtime/plan/validate.h"
#include "test/gpu/check/check.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <numbers>
#include <random>
#include <tuple>

namespace zero::check {
namespace {

using runtime::MatMulShape;

constexpr uint64_t kPeriod = 1048573; // a prime, so that rows of matrices do not repeat each other
constexpr int kSamples = 64, kRepeats = 5, kLane = plan::COMPUTE;

/// Numbers as a type has them, on both sides.
class Table {
public:
  Table(plan::DType type, unsigned seed) : width(plan::bytesOf(type)), bytes(cuda::allocatePinned(kPeriod * width, "products")) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (uint64_t i = 0; i < kPeriod; ++i) set(type, i, uniform(random));
  }
  double at(uint64_t index) const { return double(values[index % kPeriod]); }
  /// Memory of the GPU that repeats the table. `to` has room for the elements.
  void fill(cuda::Pointer to, uint64_t elements, cuda::StreamHandle stream) const {
    const cuda::Driver &driver = cuda::Driver::get();
    uint64_t done = std::min(elements, kPeriod);
    driver.require(driver.copyAsync(to, cuda::pointerTo(bytes.get()), done * width, stream), "cannot copy");
    for (uint64_t next; done < elements; done += next) { // whole periods, until the last
      next = std::min(done, elements - done);
      driver.require(driver.copyAsync(to + done * width, to, next * width, stream), "cannot copy");
    }
  }

private:
  void set(plan::DType type, uint64_t index, float value) {
    auto *at = static_cast<char *>(bytes.get()) + index * width;
    if (type == plan::F32) {
      std::memcpy(at, &value, width);
    } else {
      uint16_t half = type == plan::BF16 ? runtime::floatToBfloat(value) : runtime::floatToHalf(value);
      std::memcpy(at, &half, width);
      value = type == plan::BF16 ? runtime::bfloatToFloat(half) : runtime::halfToFloat(half);
    }
    values.push_back(value);
  }

  uint64_t width;
  cuda::PinnedMemory bytes;
  std::vector<float> values;
};

/// A matrix or a batch of them, as a product reads it.
struct Operand {
  uint64_t rows, columns, ld, stride, batch;
  uint64_t elements() const { return (batch - 1) * stride + (rows - 1) * ld + columns; }
  uint64_t index(uint64_t b, uint64_t row, uint64_t column) const { return b * stride + row * ld + column; }
};

Operand operand(bool transposed, int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch) {
  if (transposed) std::swap(rows, columns);
  return {uint64_t(rows), uint64_t(columns), uint64_t(ld), uint64_t(stride), uint64_t(batch)};
}

float resultAt(plan::DType type, const void *at) {
  if (type == plan::F32) {
    float value;
    return std::memcpy(&value, at, sizeof(value)), value;
  }
  uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  return type == plan::BF16 ? runtime::bfloatToFloat(half) : runtime::halfToFloat(half);
}

/// What rounding to a type may change, of a number's size.
double roundingOf(plan::DType type) { return type == plan::F32 ? 0x1p-23 : type == plan::BF16 ? 0x1p-8 : 0x1p-11; }

/// What a sum may be off by, given that of its terms' sizes: sums in f32 of exact products, of which TF32 would be off by thirty times as
/// much; and where TF32 may be used, two operands of 10 bits of fraction. Matrix units add 16 terms of half precision at a time and cut off
/// what does not fit, so that errors do not even out (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021).
double allowedIn(const MatMulShape &shape, double sum, double size) {
  if (shape.tf32) return 0x1p-9 * size;
  double additions = shape.dtype == plan::F32 ? 0 : double(shape.k) / 16, partial = std::max(std::abs(sum), std::sqrt(size));
  return 0x1p-21 * size + additions * 0x1p-23 * partial;
}

/// GELU in its tanh form, and its slope, which is between -0.13 and 1.13. A library approximates tanh: of half precision by instructions
/// that have some eleven bits.
constexpr double kSteepest = 1.13, kGeluError = 0x1p-10;
double cubic(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }
double gelu(double x) { return 0.5 * x * (1 + std::tanh(cubic(x))); }
double cubicSlope(double x) { return std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x); }
double geluSlope(double x) {
  double t = std::tanh(cubic(x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * cubicSlope(x);
}
/// How far the slope is off where tanh is off by so much.
double slopeError(double x, double ofTanh) { return ofTanh * (0.5 + std::abs(x * std::tanh(cubic(x))) * cubicSlope(x)); }

class Bench {
public:
  /// Seconds that the product takes. Throws a sentence where a result is wrong.
  double run(const MatMulShape &shape) {
    Operand a = operand(shape.transA, shape.m, shape.k, shape.lda, shape.strideA, shape.batch),
            b = operand(shape.transB, shape.k, shape.n, shape.ldb, shape.strideB, shape.batch),
            c = operand(false, shape.m, shape.n, shape.ldc, shape.strideC, shape.batch);
    uint64_t width = plan::bytesOf(shape.dtype), resultWidth = plan::bytesOf(shape.cDtype);
    cuda::DeviceMemory first = cuda::allocateDevice(a.elements() * width, "products"),
                       second = cuda::allocateDevice(b.elements() * width, "products"),
                       result = cuda::allocateDevice(c.elements() * resultWidth, "products");
    runtime::cuda::Products products;
    products.addLane(kLane);
    cuda::ProductCall call{};
    static_cast<MatMulShape &>(call) = shape;
    call.a = first.get(), call.b = second.get(), call.c = result.get();
    plan::EpilogueForm epilogue = plan::formOf(shape.epilogue);
    uint64_t count = epilogue.readsBias ? uint64_t(shape.n) : 0;
    cuda::DeviceMemory vector = cuda::allocateDevice(std::max<uint64_t>(count, 1) * resultWidth, "products"),
                       aux = cuda::allocateDevice((epilogue.hasAux() ? c.elements() : 1) * resultWidth, "products");
    if (epilogue.readsBias) call.bias = vector.get();
    if (epilogue.hasAux()) call.aux = aux.get();
    size_t product = products.prepare(call);
    const Table &left = table(shape.dtype, 1), &right = table(shape.dtype, 2), &before = table(shape.cDtype, 3),
                &bias = table(shape.cDtype, 4), &slopes = table(shape.cDtype, 5);
    left.fill(first.get(), a.elements(), watch.stream());
    right.fill(second.get(), b.elements(), watch.stream());
    before.fill(result.get(), c.elements(), watch.stream());
    if (count) bias.fill(vector.get(), count, watch.stream());
    if (epilogue.hasAux()) slopes.fill(aux.get(), c.elements(), watch.stream());
    products.run(product, kLane, watch.stream());
    std::mt19937_64 random(7);
    for (int i = 0; i < kSamples; ++i) {
      uint64_t batch = random() % uint64_t(shape.batch), row = random() % uint64_t(shape.m), column = random() % uint64_t(shape.n);
      double sum = shape.accumulate ? before.at(c.index(batch, row, column)) : 0, size = std::abs(sum);
      for (uint64_t k = 0; k < uint64_t(shape.k); ++k) {
        double term = left.at(shape.transA ? a.index(batch, k, row) : a.index(batch, row, k)) *
                      right.at(shape.transB ? b.index(batch, column, k) : b.index(batch, k, column));
        sum += term, size += std::abs(term);
      }
      double off = allowedIn(shape, sum, size), expected = sum;
      auto hold = [&](const cuda::DeviceMemory &at, double value, double within, const char *what) {
        float found = fetch(at.get() + c.index(batch, row, column) * resultWidth, shape.cDtype);
        double allowed = within + roundingOf(shape.cDtype) * std::abs(value);
        if (!(std::abs(double(found) - value) <= allowed))
          throw Error(fmt::format("element [{}, {}] of {} {} of the batch is {}, expected {} within {:.1e}", row, column, what, batch,
                                  found, value, allowed));
      };
      if (epilogue.readsBias) expected += bias.at(column);
      if (epilogue.writesAux) {
        hold(aux, expected, off, "aux of product");
        off = off * kSteepest + kGeluError * (1 + std::abs(expected)), expected = gelu(expected);
      }
      if (epilogue.readsAux) {
        double x = slopes.at(c.index(batch, row, column)), slope = geluSlope(x);
        // cuBLASLt 13.1 gives 2.078125 where 2.0645 is right, further off than tanh could be, as if the product were rounded before.
        off += roundingOf(shape.cDtype) * std::abs(sum);
        expected *= slope, off = off * std::abs(slope) + std::abs(sum) * slopeError(x, kGeluError);
      }
      hold(result, expected, off, "product");
    }
    return watch.seconds([&](cuda::StreamHandle stream) { products.run(product, kLane, stream); });
  }

private:
  const Table &table(plan::DType type, unsigned seed) {
    auto &place = tables[{type, seed}];
    if (!place) place = std::make_unique<Table>(type, seed);
    return *place;
  }
  float fetch(cuda::Pointer at, plan::DType type) {
    const cuda::Driver &driver = cuda::Driver::get();
    driver.require(driver.copyAsync(cuda::pointerTo(sample.get()), at, plan::bytesOf(type), watch.stream()), "cannot copy");
    watch.synchronize();
    return resultAt(type, sample.get());
  }

  cuda::Gpu gpu{0};
  Stopwatch watch{kRepeats};
  cuda::PinnedMemory sample = cuda::allocatePinned(16, "products");
  std::map<std::pair<plan::DType, unsigned>, std::unique_ptr<Table>> tables;
};

struct Counted {
  MatMulShape shape;
  uint64_t times;
};

/// Different products of the plan's optimizer step.
void collect(const std::string &path, std::vector<Counted> &list) {
  auto key = [](const MatMulShape &s) {
    return std::tuple(s.m, s.n, s.k, s.batch, s.transA, s.transB, s.lda, s.ldb, s.ldc, s.strideA, s.strideB, s.strideC, s.accumulate,
                      s.dtype, s.cDtype, s.epilogue, s.tf32);
  };
  plan::PlanFile file = plan::load(path);
  auto i = [](uint64_t value) { return int64_t(value); };
  for (const plan::Program &program : file.plan.programs())
    for (const plan::Step &step : program.steps()) {
      if (!step.has_matmul() || program.role() == plan::Program::EVAL || program.clips()) continue;
      const plan::MatMul &p = step.matmul();
      MatMulShape shape{i(p.m()),       i(p.n()),   i(p.k()),    i(p.batch()),    p.trans_a(),     p.trans_b(),
                        i(p.lda()),     i(p.ldb()), i(p.ldc()),  i(p.stride_a()), i(p.stride_b()), i(p.stride_c()),
                        p.accumulate(), p.dtype(),  p.c_dtype(), p.epilogue(),    p.tf32()};
      auto known = std::ranges::find_if(list, [&](const Counted &other) { return key(other.shape) == key(shape); });
      if (known == list.end())
        list.push_back({shape, 1});
      else
        ++known->times;
    }
}

double flopsOf(const MatMulShape &s) { return 2.0 * double(s.m) * double(s.n) * double(s.k) * double(s.batch); }

std::string nameOf(const MatMulShape &s) {
  return fmt::format("{}{} x {}{} x {}{}{}", s.m, s.transA ? "ᵀ" : "", s.k, s.transB ? "ᵀ" : "", s.n,
                     s.batch > 1 ? fmt::format(", {} of them", s.batch) : "", s.accumulate ? ", added" : "") +
         (s.tf32 ? ", in TF32" : "") + plan::formOf(s.epilogue).text;
}

} // namespace

void products(const Arguments &arguments) {
  std::vector<Counted> list;
  for (const std::string &path : arguments.names) collect(path, list);
  if (auto n = int64_t(arguments.number("--square", 0)))
    for (plan::DType type : {plan::F32, plan::BF16}) list.push_back({{n, n, n, 1, false, true, n, n, n, 0, 0, 0, false, type, type}, 1});
  if (list.empty()) throw BadUsage("no plan with a product, and no --square, was given");
  std::ranges::stable_sort(list, std::greater(), [](const Counted &each) { return flopsOf(each.shape) * double(each.times); });
  Limits limits(arguments.text("--limits"));
  Bench bench;
  std::vector<std::string> wrong;
  std::map<plan::DType, double> best;
  fmt::print("| product (m x k x n) | type | times | µs | TFLOP/s |\n|---|---|---|---|---|\n");
  for (const auto &[shape, times] : list) {
    std::string name = nameOf(shape),
                type = plan::DType_Name(shape.dtype) + (shape.cDtype != shape.dtype ? " to " + plan::DType_Name(shape.cDtype) : "");
    try {
      double seconds = bench.run(shape), rate = flopsOf(shape) / seconds;
      fmt::print("| {} | {} | {} | {:.1f} | {:.2f} |\n", name, type, times, seconds * 1e6, rate / 1e12);
      best[shape.dtype] = std::max(best[shape.dtype], rate);
    } catch (const Error &error) {
      wrong.push_back(fmt::format("{} {}: {}", name, type, error.what()));
      fmt::print("| {} | {} | {} | wrong | |\n", name, type, times);
    }
  }
  std::string reached;
  for (auto [type, rate] : best) {
    limits.raise(type == plan::F32 ? "products_f32" : "products_bf16", rate);
    reached += fmt::format(", {} up to {:.1f} TFLOP/s", plan::DType_Name(type), rate / 1e12);
  }
  fmt::print("\n");
  for (const std::string &each : wrong) fmt::print("- {}\n", each);
  if (!wrong.empty()) throw Error(fmt::format("{} of {} products are wrong: {}", wrong.size(), list.size(), wrong.front()));
  fmt::print("{} products{}\n", list.size(), reached);
}

} // namespace zero::check
