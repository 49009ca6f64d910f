#include "runtime/checkpoint/initial.h"
#include "runtime/data/element.h"
#include "runtime/data/feeder.h"
#include "runtime/files/file.h"
#include "runtime/plan/error.h"
#include "runtime/plan/model_files.h"
#include "runtime/plan/start_thread.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <thread>

namespace zero::runtime {
namespace {

// Opened once per run: hundreds of parameters usually share one file.
class Weights {
public:
  explicit Weights(const plan::Plan &plan) : modelFiles(plan) {}

  const File &open(const plan::Parameter &parameter) {
    const plan::Source &source = parameter.source();
    auto &file = files[source.file()];
    if (!file) {
      try {
        file = std::make_unique<File>(source.file(), File::Mode::Read);
      } catch (const Error &error) {
        throw Error(fmt::format("{}; the plan takes parameter '{}' from it; move plan and model together, or compile again", error.what(),
                                parameter.name()));
      }
      modelFiles.check(source.file());
    }
    if (source.bytes() != elementsOf(parameter) * sizeOf(source.dtype()))
      throw Error(fmt::format("the plan says that parameter '{}' of {} elements has {} bytes in '{}'", parameter.name(),
                              elementsOf(parameter), source.bytes(), source.file()));
    if (uint64_t size = file->size(); source.offset() > size || source.bytes() > size - source.offset())
      throw Error(fmt::format("'{}' has {} bytes, but parameter '{}' should lie at bytes {} to {}: it is not the file the plan was "
                              "compiled from",
                              source.file(), size, parameter.name(), source.offset(), source.offset() + source.bytes()));
    return *file;
  }

private:
  plan::ModelFiles modelFiles;
  std::map<std::string, std::unique_ptr<File>> files;
};

void readSlice(Weights &weights, const plan::Parameter &parameter, const Slice &slice, float *out) {
  const plan::Source &source = parameter.source();
  const File &file = weights.open(parameter);
  uint64_t size = sizeOf(source.dtype()), at = source.offset() + slice.start * size;
  if (source.dtype() == plan::F32) {
    file.read(at, out, slice.count * size);
    return;
  }
  if (!isFloat(elementOf(source.dtype())))
    throw Error(
        fmt::format("parameter '{}' is stored as {}, which cannot be trained", parameter.name(), nameOf(elementOf(source.dtype()))));
  std::vector<std::byte> chunk(std::min<uint64_t>(slice.count, 1 << 20) * size);
  for (uint64_t done = 0; done < slice.count;) {
    uint64_t count = std::min<uint64_t>(slice.count - done, 1 << 20);
    file.read(at + done * size, chunk.data(), count * size);
    convert(elementOf(source.dtype()), chunk.data(), plan::F32, reinterpret_cast<std::byte *>(out + done), count);
    done += count;
  }
}

void makeSlice(const plan::Init &init, const Slice &slice, float *out, int threads) {
  if (init.rule() != plan::Init::NORMAL) {
    std::fill_n(out, slice.count, init.rule() == plan::Init::ONES ? 1.0f : 0.0f);
    return;
  }
  uint64_t parts = std::clamp<uint64_t>(slice.count >> 16, 1, static_cast<uint64_t>(std::max(threads, 1)));
  std::vector<std::jthread> workers;
  for (uint64_t p = 0; p < parts; ++p) {
    uint64_t begin = slice.count * p / parts, end = slice.count * (p + 1) / parts;
    auto work = [&, begin, end] { normalNumbers(init.seed(), init.std(), slice.start + begin, end - begin, out + begin); };
    if (p + 1 == parts)
      work();
    else
      workers.push_back(startThread<std::jthread>("a thread that makes initial weights", work));
  }
}

} // namespace

// Box-Muller on a counter: elements 2k and 2k + 1 are the two coordinates of the k-th point.
void normalNumbers(uint64_t seed, float std, uint64_t start, uint64_t count, float *out) {
  uint64_t key = mix(seed);
  for (uint64_t i = start, end = start + count; i < end;) {
    uint64_t bits = mix(key + (i >> 1));
    float u = (static_cast<float>(bits >> 40) + 1.0f) * 0x1p-24f; // (0, 1]: the logarithm is finite
    float angle = static_cast<float>(bits & 0xffffff) * (6.283185307f * 0x1p-24f);
    float radius = std * std::sqrt(-2.0f * std::log(u));
    if (i % 2 == 0) out[i - start] = radius * std::cos(angle), ++i;
    if (i < end && i % 2 == 1) out[i - start] = radius * std::sin(angle), ++i;
  }
}

void initialiseParameters(const Rank &rank, int threads) {
  PieceMap map(rank.plan);
  Weights weights(rank.plan);
  for (int b = 0; b < rank.plan.buckets_size(); ++b) {
    const plan::Bucket &bucket = rank.plan.buckets(b);
    Range range = heldIn(bucket, plan::masterOf(bucket), rank.rank);
    auto *values = static_cast<float *>(rank.locate(plan::masterOf(bucket).ref()));
    for (const Slice &slice : map.slices(b, range)) {
      const plan::Parameter &parameter = rank.plan.parameters(slice.parameter);
      float *out = values + (slice.at - range.begin);
      if (parameter.has_source())
        readSlice(weights, parameter, slice, out);
      else
        makeSlice(parameter.init(), slice, out, threads);
    }
  }
}

} // namespace zero::runtime
