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

// Elements from `start` on of a parameter's file.
void readValues(Weights &weights, const plan::Parameter &parameter, uint64_t start, std::span<float> out) {
  const plan::Source &source = parameter.source();
  const File &file = weights.open(parameter);
  uint64_t size = sizeOf(source.dtype()), at = source.offset() + start * size;
  if (source.dtype() == plan::F32) return file.read(at, out.data(), out.size_bytes());
  if (!isFloat(elementOf(source.dtype())))
    throw Error(
        fmt::format("parameter '{}' is stored as {}, which cannot be trained", parameter.name(), nameOf(elementOf(source.dtype()))));
  std::vector<std::byte> stored(out.size() * size);
  file.read(at, stored.data(), stored.size());
  convert(elementOf(source.dtype()), stored.data(), plan::F32, reinterpret_cast<std::byte *>(out.data()), out.size());
}

// Elements from `start` on of what the rule yields.
void makeValues(const plan::Init &init, uint64_t start, std::span<float> out, int threads) {
  if (init.rule() != plan::Init::NORMAL) {
    std::fill(out.begin(), out.end(), init.rule() == plan::Init::ONES ? 1.0f : 0.0f);
    return;
  }
  uint64_t parts = std::clamp<uint64_t>(out.size() >> 16, 1, static_cast<uint64_t>(std::max(threads, 1)));
  std::vector<std::jthread> workers;
  for (uint64_t p = 0; p < parts; ++p) {
    uint64_t begin = out.size() * p / parts, end = out.size() * (p + 1) / parts;
    auto work = [&, begin, end] { normalNumbers(init.seed(), init.std(), start + begin, end - begin, out.data() + begin); };
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
    for (const plan::StateTensor *copy : copiesOfParameters(bucket)) {
      Range range = heldIn(bucket, *copy, rank.rank);
      for (const Slice &slice : map.slices(b, range)) {
        const plan::Parameter &parameter = rank.plan.parameters(slice.parameter);
        writeNumbers(rank.state, *copy, slice.at - range.begin, slice.count, [&](uint64_t first, std::span<float> values) {
          if (parameter.has_source())
            readValues(weights, parameter, slice.start + first, values);
          else
            makeValues(parameter.init(), slice.start + first, values, threads);
        });
      }
    }
  }
}

} // namespace zero::runtime
