#include "runtime/device/cuda/tuner.h"
#include "runtime/base/error.h"
#include "runtime/device/cuda/gpu.h"
#include "runtime/device/cuda/products.h"
#include "runtime/plan/epilogue.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <random>
#include <set>

namespace zero::runtime::cuda {
namespace {

constexpr int kMostCandidates = 16, kTimes = 9, kLane = plan::COMPUTE;
constexpr double kAsFast = 0.98; // of the time of one that the heuristic ranks higher: what is not below that is no faster
constexpr uint64_t kPiece = uint64_t(4) << 20;

// Bytes from the first element of a matrix, or of a batch of them, to after the last.
uint64_t reachOf(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t stride, plan::DType type) {
  return static_cast<uint64_t>((batch - 1) * stride + (rows - 1) * ld + columns) * plan::bytesOf(type);
}

// Numbers of a type, again and again: sums of them depend on their order, and how fast they are multiplied does not depend on luck.
PinnedMemory randomNumbers(plan::DType type) {
  PinnedMemory memory = allocatePinned(kPiece, "measuring products");
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  auto *bytes = static_cast<std::byte *>(memory.get());
  for (uint64_t at = 0, size = plan::bytesOf(type); at < kPiece; at += size) {
    float value = uniform(random);
    auto bits = std::bit_cast<uint32_t>(value);
    auto half = static_cast<uint16_t>(bits >> 16);          // bf16: cut
    if (type == plan::F16) half = 0x3000 | (half & 0x83ff); // 1/8 to 1/4, of either sign
    std::memcpy(bytes + at, type == plan::F32 ? static_cast<void *>(&bits) : &half, size);
  }
  return memory;
}

// One product with operands of its own, aligned as the plan's are, and two results.
class Bench {
public:
  Bench(Products &products, const ProductCall &like, StreamHandle stream) : products(products), stream(stream) {
    ProductCall call = like;
    adds = like.accumulate;
    PinnedMemory numbers = randomNumbers(like.dtype), before = randomNumbers(like.cDtype);
    bytesC = reachOf(like.m, like.n, like.ldc, like.batch, like.strideC, like.cDtype);
    call.a = place(reachOf(like.transA ? like.k : like.m, like.transA ? like.m : like.k, like.lda, like.batch, like.strideA, like.dtype),
                   like.a, numbers);
    call.b = place(reachOf(like.transB ? like.n : like.k, like.transB ? like.k : like.n, like.ldb, like.batch, like.strideB, like.dtype),
                   like.b, numbers);
    plan::EpilogueForm epilogue = plan::formOf(like.epilogue);
    if (epilogue.readsBias) call.bias = place(static_cast<uint64_t>(like.n) * plan::bytesOf(like.cDtype), like.bias, before);
    if (epilogue.hasAux()) bytesAux = bytesC;
    for (Result &result : results) {
      call.c = result.c = place(bytesC, like.c, before);
      if (bytesAux) call.aux = result.aux = place(bytesAux, like.aux, before);
      calls.push_back(products.prepare(call));
    }
    driver.require(driver.streamSynchronize(stream), "cannot copy");
  }

  std::vector<Algorithm> candidates() const { return products.candidates(calls[0], kMostCandidates); }

  // False if the library refuses to run it.
  bool takes(const Algorithm &algorithm) {
    if (adds) driver.require(driver.copyAsync(results[1].c, results[0].c, bytesC, stream), "cannot copy"); // to the same: one was timed
    for (size_t call : calls) products.use(call, algorithm);
    try {
      for (size_t call : calls) products.run(call, kLane, stream);
    } catch (const Error &) {
      return false;
    }
    return true;
  }

  // Whether both results have the same bits, of what takes() has run; what is only read has them in any case.
  bool sameTwice() { return sameTwice(results[0].c, results[1].c, bytesC) && sameTwice(results[0].aux, results[1].aux, bytesAux); }

  // The median, in microseconds.
  double time() {
    std::vector<float> times(kTimes);
    for (float &each : times) {
      driver.require(driver.eventRecord(begin.get(), stream), "cannot record an event");
      products.run(calls[0], kLane, stream);
      driver.require(driver.eventRecord(end.get(), stream), "cannot record an event");
      driver.require(driver.eventSynchronize(end.get()), "a product failed while it ran");
      driver.require(driver.eventElapsedTime(&each, begin.get(), end.get()), "cannot ask how long a product ran");
    }
    std::ranges::nth_element(times, times.begin() + kTimes / 2);
    return static_cast<double>(times[kTimes / 2]) * 1000;
  }

private:
  struct Result {
    Pointer c = 0, aux = 0;
  };

  bool sameTwice(Pointer one, Pointer other, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += kPiece) {
      uint64_t size = std::min(kPiece, bytes - at);
      driver.require(driver.copyAsync(pointerTo(seen[0].get()), one + at, size, stream), "cannot copy");
      driver.require(driver.copyAsync(pointerTo(seen[1].get()), other + at, size, stream), "cannot copy");
      driver.require(driver.streamSynchronize(stream), "a product failed while it ran");
      if (std::memcmp(seen[0].get(), seen[1].get(), size) != 0) return false;
    }
    return true;
  }

  Pointer place(uint64_t bytes, Pointer like, const PinnedMemory &numbers) {
    memory.push_back(allocateDevice(bytes + kMostAlignment, "measuring products"));
    uint32_t alignment = alignmentOf(like, 1, 0);
    Pointer at = memory.back().get() + (alignment < kMostAlignment ? alignment : 0);
    for (uint64_t done = 0; done < bytes; done += kPiece)
      driver.require(driver.copyAsync(at + done, pointerTo(numbers.get()), std::min(kPiece, bytes - done), stream), "cannot copy");
    driver.require(driver.streamSynchronize(stream), "cannot copy");
    return at;
  }

  const Driver &driver = Driver::get();
  Products &products;
  StreamHandle stream;
  std::vector<DeviceMemory> memory;
  uint64_t bytesC = 0, bytesAux = 0;
  bool adds = false; // to the result
  Result results[2];
  std::vector<size_t> calls; // into each result
  PinnedMemory seen[2]{allocatePinned(kPiece, "measuring products"), allocatePinned(kPiece, "measuring products")};
  OwnedEvent begin = makeEvent(kTimed), end = makeEvent(kTimed);
};

// The fastest of those that run and give the same bits twice. Throws a sentence if there is none.
MeasuredProduct measure(Bench &bench, const std::string &key, const std::function<void(const std::string &)> &say) {
  MeasuredProduct best;
  int refused = 0, restless = 0;
  for (const Algorithm &algorithm : bench.candidates()) {
    if (!bench.takes(algorithm)) {
      ++refused;
      continue;
    }
    if (!bench.sameTwice()) {
      ++restless;
      continue;
    }
    double microseconds = bench.time();
    best.tried.push_back(microseconds);
    if (best.tried.size() == 1) best.heuristic = microseconds;
    if (best.tried.size() > 1 && microseconds >= kAsFast * best.microseconds) continue;
    best.algorithm = algorithm, best.microseconds = microseconds;
  }
  if (best.tried.empty())
    throw Error(
        fmt::format("of the algorithms that cuBLASLt has for the product {} none can be taken: {} would not run, {} gave other bits "
                    "the second time",
                    key, refused, restless));
  say(fmt::format("{}: {:.1f} us, where the heuristic's first takes {:.1f} ({} tried{}{})", key, best.microseconds, best.heuristic,
                  best.tried.size(), refused ? fmt::format(", {} would not run", refused) : "",
                  restless ? fmt::format(", {} gave other bits the second time", restless) : ""));
  return best;
}

} // namespace

std::string tuneProducts(std::span<const DeviceProgram> programs, const MeasuredTable &known,
                         const std::function<void(const std::string &)> &say) {
  ProductTable table;
  if (!known.text.empty()) table = parseTable(known.text, known.name);
  Gpu gpu(0);
  gpu.enter();
  uint64_t library = BlasLt::get().version();
  auto place =
      std::ranges::find_if(table, [&](const MeasuredDevice &each) { return each.device == gpu.name() && each.library == library; });
  if (place == table.end()) place = table.insert(table.end(), {gpu.name(), library, {}});
  auto &entries = place->products;
  say(fmt::format("measuring on {} with cuBLASLt {}", gpu.name(), library));
  OwnedStream stream = makeStream();
  size_t before = 0, fresh = 0;
  std::set<std::string> seen;
  for (const DeviceProgram &program : programs)
    for (const Operation &operation : program.operations) {
      const auto *product = std::get_if<MatMulOf<Place>>(&operation.work);
      if (!product) continue;
      // An arena begins at a whole page, so that an offset is aligned as the address will be.
      auto at = [](const Place &place) { return place ? place->offset : 0; };
      ProductCall call{*product, at(product->a), at(product->b), at(product->c), at(product->bias), at(product->aux)};
      std::string key = keyOf(call);
      if (!seen.insert(key).second) continue;
      if (entries.contains(key)) {
        ++before;
        continue;
      }
      Products products;
      products.addLane(kLane);
      Bench bench(products, call, stream.get());
      entries[key] = measure(bench, key, say);
      ++fresh;
    }
  say(fmt::format("{} products measured{}", fresh, before ? fmt::format(", {} were in '{}' already", before, known.name) : ""));
  return textOf(table);
}

} // namespace zero::runtime::cuda
