// Bandwidth of generated kernels beside a plain copy of as many bytes, in one run:
//   kernel_bench [--target native|x86-64-v3|x86-64-v4] [--check] [FILE.mlir]      default: test/bench/kernels.mlir
// Results go in place where the kernel allows it. --save FILE.so keeps the code; with --check the kernels are compared with the interpreter
// instead.
#include "../unit/kernel_check.h"
#include "mlir/Parser/Parser.h"
#include <barrier>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <thread>

using namespace zero;
using Clock = std::chrono::steady_clock;

namespace {

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Best of several rounds of `work(thread)` on all threads at once.
double best(int threads, const std::function<void(int)> &work) {
  double least = 1e9;
  std::barrier start(threads), stop(threads);
  std::atomic<bool> done = false;
  std::vector<std::jthread> others;
  for (int t = 1; t < threads; ++t)
    others.emplace_back([&, t] {
      for (;;) {
        start.arrive_and_wait();
        if (done) return;
        work(t);
        stop.arrive_and_wait();
      }
    });
  auto begin = Clock::now();
  for (int round = 0; round < 200 && (round < 5 || secondsSince(begin) < 0.6); ++round) {
    auto from = Clock::now();
    start.arrive_and_wait();
    work(0);
    stop.arrive_and_wait();
    least = std::min(least, secondsSince(from));
  }
  done = true;
  start.arrive_and_wait();
  return least;
}

struct Memory {
  char *data;
  explicit Memory(size_t bytes) : data(static_cast<char *>(std::aligned_alloc(4096, (bytes + 8191) / 4096 * 4096))) {}
  ~Memory() { std::free(data); }
  Memory(const Memory &) = delete;
};

double copyBandwidth(size_t bytes, int threads) {
  size_t half = std::max<size_t>(bytes / 2 / 4096 * 4096, 4096);
  Memory from(half), to(half);
  std::memset(from.data, 1, half);
  std::memset(to.data, 2, half);
  double s = best(threads, [&](int t) {
    size_t part = half / threads / 64 * 64, at = part * t;
    std::memcpy(to.data + at, from.data + at, t + 1 == threads ? half - at : part);
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
      double s = best(threads, [&](int t) { function(args.data(), extent * t / threads, extent * (t + 1) / threads); });
      double copy = copyBandwidth(info->bytes, threads), rate = info->bytes / s;
      std::printf(" %9.1f %8.2f %8.2f %4.0f%% %s", s * 1e6, rate / 1e9, copy / 1e9, 100 * rate / copy, threads == 1 ? "|" : "\n");
    }
    std::fflush(stdout);
  }
}
