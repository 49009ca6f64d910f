// Bandwidth of generated kernels beside a plain copy of as many bytes cut the same way, in one run:
//   kernel_bench [--target native|x86-64-v3|x86-64-v4] [--check] [FILE.mlir]      default: test/bench/kernels.mlir
// Results go in place where the kernel allows it. --save FILE.so keeps the code; with --check the kernels are compared with the interpreter
// instead.
#include "../unit/kernel_check.h"
#include "mlir/Parser/Parser.h"
#include <barrier>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <set>
#include <thread>

using namespace zero;
using Clock = std::chrono::steady_clock;

namespace {

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Seconds of a launch of `pieces` pieces on all threads at once: each piece as fast as in its best round, so that a moment in which
/// another process had the processor costs one piece of one round and not the round.
double best(int threads, int64_t pieces, const std::function<void(int64_t)> &work) {
  std::vector<double> least(pieces, 1e9);
  bool done = false;
  auto begin = Clock::now();
  auto nextRound = [&, round = 0]() mutable noexcept {
    done = round == 200 || (round >= 5 && secondsSince(begin) > 0.6);
    ++round;
  };
  std::barrier start(threads, nextRound);
  auto rounds = [&](int thread) {
    for (;;) {
      start.arrive_and_wait();
      if (done) return;
      for (int64_t piece = pieces * thread / threads; piece < pieces * (thread + 1) / threads; ++piece) {
        auto from = Clock::now();
        work(piece);
        least[piece] = std::min(least[piece], secondsSince(from));
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(rounds, t);
    rounds(0);
  }
  double slowest = 0;
  for (int t = 0; t < threads; ++t)
    slowest = std::max(slowest, std::accumulate(least.begin() + pieces * t / threads, least.begin() + pieces * (t + 1) / threads, 0.0));
  return slowest;
}

struct Memory {
  char *data;
  explicit Memory(size_t bytes) : data(static_cast<char *>(std::aligned_alloc(4096, (bytes + 8191) / 4096 * 4096))) {}
  ~Memory() { std::free(data); }
  Memory(const Memory &) = delete;
};

double copyBandwidth(size_t bytes, int threads, int64_t pieces) {
  size_t half = std::max<size_t>(bytes / 2, 4096);
  Memory from(half), to(half);
  std::memset(from.data, 1, half);
  std::memset(to.data, 2, half);
  double s = best(threads, pieces, [&](int64_t piece) {
    size_t begin = half * piece / pieces, end = half * (piece + 1) / pieces;
    std::memcpy(to.data + begin, from.data + begin, end - begin);
  });
  return 2.0 * half / s;
}

} // namespace

int main(int argc, char **argv) {
  std::string file = ZERO_BENCH_KERNELS, target = "native", save;
  bool check = false;
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]) == "--target" && i + 1 < argc)
      target = argv[++i];
    else if (std::string(argv[i]) == "--save" && i + 1 < argc)
      save = argv[++i];
    else if (std::string(argv[i]) == "--check")
      check = true;
    else
      file = argv[i];
  test::Context context;
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(file, &context.context);
  if (!module) return 1;
  llvm::SmallVector<mlir::func::FuncOp> kernels;
  for (auto f : module->getOps<mlir::func::FuncOp>())
    if (f->hasAttr(nn::NnDialect::kKernelAttr)) kernels.push_back(f);
  auto from = Clock::now();
  test::Library library(kernels, target);
  std::printf("%zu kernels compiled in %.0f ms, %zu bytes\n", kernels.size(), secondsSince(from) * 1e3, library.bytes.size());
  if (!save.empty()) std::ofstream(save, std::ios::binary).write(library.bytes.data(), library.bytes.size());
  if (check) {
    int wrong = 0;
    for (auto kernel : kernels)
      if (auto what = test::checkKernel(kernel, library, {.limit = 2}); !what.empty())
        std::printf("%s: %s\n", kernel.getSymName().str().c_str(), what.c_str()), ++wrong;
    return wrong != 0;
  }
  std::printf("%-24s %9s %7s | %9s %8s %8s %5s | %9s %8s %8s %5s\n", "kernel", "MB", "extent", "1t us", "GB/s", "copy", "%", "2t us",
              "GB/s", "copy", "%");
  for (auto kernel : kernels) {
    auto info = codegen::describe(kernel);
    if (failed(info) || !library[info->symbol]) return 1;
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<void *> args;
    auto types = llvm::to_vector(llvm::concat<const mlir::Type>(kernel.getArgumentTypes(), kernel.getResultTypes()));
    for (mlir::Type type : types) {
      auto tensor = mlir::cast<mlir::RankedTensorType>(type);
      memory.push_back(std::make_unique<Memory>(nn::bytesOf(tensor)));
      args.push_back(memory.back()->data);
      std::memset(memory.back()->data, 0, nn::bytesOf(tensor));
      if (tensor.getElementType().isF32())
        for (int64_t i = 0; i < tensor.getNumElements(); ++i)
          reinterpret_cast<float *>(memory.back()->data)[i] = 0.01f + float(i % 97) * 0.01f;
    }
    std::set<unsigned> results, operands;
    for (auto [result, operand] : info->inplace)
      if (!results.count(result) && !operands.count(operand)) {
        results.insert(result), operands.insert(operand);
        args[info->outputsFrom + result] = args[operand];
      }
    std::printf("%-24s %9.2f %7lu |", info->symbol.c_str(), info->bytes / 1e6, info->extent);
    for (int threads : {1, 2}) {
      auto function = library[info->symbol];
      int64_t extent = info->extent;
      // Long enough to be timed, short beside the slices in which the system deals out processors.
      constexpr uint64_t kPieceBytes = 1 << 18;
      int64_t pieces = std::clamp<int64_t>(info->bytes / kPieceBytes, threads, extent);
      double s = best(threads, pieces, [&](int64_t p) { function(args.data(), extent * p / pieces, extent * (p + 1) / pieces); });
      double copy = copyBandwidth(info->bytes, threads, pieces), rate = info->bytes / s;
      std::printf(" %9.1f %8.2f %8.2f %4.0f%% %s", s * 1e6, rate / 1e9, copy / 1e9, 100 * rate / copy, threads == 1 ? "|" : "\n");
    }
    std::fflush(stdout);
  }
}
