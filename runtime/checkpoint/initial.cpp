#include "runtime/checkpoint/initial.h"
#include "runtime/data/element.h"
#include "runtime/files/file.h"
#include "runtime/plan/error.h"
#include "runtime/plan/in_parts.h"
#include "runtime/plan/model_files.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace zero::runtime {
namespace {

constexpr uint64_t kPart = 1 << 17; // elements that are worth starting a thread

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
  inParts(out.size(), kPart, threads, "a thread that makes initial weights",
          [&](uint64_t begin, uint64_t end) { normalNumbers(init.seed(), init.std(), start + begin, end - begin, out.data() + begin); });
}

} // namespace

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
