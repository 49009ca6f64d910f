// Products of bf16 on the shapes of GPT-2 124M, each way that this processor has of making them: TFLOP/s of the median of several products,
// whose second operands take turns, so that weights come from memory as they do in a step.
//
// usage: products_bench [THREADS] [TOKENS]     (2, 256)
#include "runtime/device/cpu/executor.h"
#include "runtime/device/cpu/memory.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace zero;
using namespace zero::runtime;

namespace {

constexpr uint64_t kOperands = uint64_t(512) << 20; // bytes of second operands that take turns

struct Case {
  const char *what;
  int64_t m, n, k;
  bool transA, transB;
  plan::DType result;
};

// Numbers between 1/128 and 1 of either sign: registers of zeros take less power, and the clock is higher.
void fill(std::span<std::byte> bytes) {
  uint32_t state = 1;
  for (auto &half : std::span(reinterpret_cast<uint16_t *>(bytes.data()), bytes.size() / 2)) {
    state = state * 1664525 + 1013904223;
    half = static_cast<uint16_t>(0x3c00 + (state >> 16 & 0x83ff));
  }
}

double teraflops(const Case &c, HalfProducts::Way way, int threads, std::byte *a, std::span<std::byte> b, std::byte *result) {
  MatMulShape shape{c.m, c.n, c.k, 1,     c.transA,   c.transB, c.transA ? c.m : c.k, c.transB ? c.k : c.n, c.n,
                    0,   0,   0,   false, plan::BF16, c.result};
  Executor executor(threads, way);
  executor.prepare({{}, {shape}});
  uint64_t operand = uint64_t(c.n) * uint64_t(c.k) * 2, operands = std::max<uint64_t>(b.size() / operand, 1);
  double flops = 2.0 * double(c.m) * double(c.n) * double(c.k);
  auto times = std::clamp<uint64_t>(static_cast<uint64_t>(1e11 / flops), 5, 100);
  std::vector<double> seconds;
  for (uint64_t i = 0; i < times + 1; ++i) {
    auto begin = std::chrono::steady_clock::now();
    executor.matmul({shape, a, b.data() + i % operands * operand, result});
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin() + 1, seconds.end()); // after the first
  return flops / seconds[1 + times / 2] * 1e-12;
}

} // namespace

int main(int argc, char **argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  int64_t t = argc > 2 ? std::atoll(argv[2]) : 256, width = 768, inner = 3072, words = 50257;
  const Case cases[] = {
      {"forward, widening", t, inner, width, false, false, plan::BF16},
      {"forward, narrowing", t, width, inner, false, false, plan::BF16},
      {"gradient of an input, widening", t, width, inner, false, true, plan::BF16},
      {"gradient of an input, narrowing", t, inner, width, false, true, plan::BF16},
      {"gradient of a weight, widening", width, inner, t, true, false, plan::F32},
      {"gradient of a weight, narrowing", inner, width, t, true, false, plan::F32},
      {"logits", t, words, width, false, true, plan::BF16},
      {"gradient of what logits are made of", t, width, words, false, false, plan::BF16},
      {"gradient of the table", words, width, t, true, false, plan::F32},
  };
  MappedArena a("first operands", uint64_t(words) * uint64_t(std::max(t, width)) * 2), b("second operands", kOperands),
      c("results", uint64_t(words) * uint64_t(std::max(t, width)) * 4);
  fill(a.bytes()), fill(b.bytes()), fill(c.bytes());
  const char *names[] = {"AMX", "oneDNN", "widened"};
  std::printf("%-38s", "TFLOP/s in bf16");
  for (HalfProducts::Way way : HalfProducts::ways()) std::printf("%9s", names[way]);
  std::printf("\n");
  for (const Case &one : cases) {
    std::printf("%-38s", one.what);
    for (HalfProducts::Way way : HalfProducts::ways()) std::printf("%9.2f", teraflops(one, way, threads, a.data(), b.bytes(), c.data()));
    std::printf("   %lld x %lld x %lld\n", static_cast<long long>(one.m), static_cast<long long>(one.n), static_cast<long long>(one.k));
  }
}
