#include "runtime/checkpoint/first_values.h"
#include "runtime/base/error.h"
#include "runtime/data/element.h"
#include "runtime/plan/pieces.h"
#include "runtime/process/in_parts.h"
#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace zero::runtime {
namespace {

constexpr uint64_t kPart = 1 << 17; // elements that are worth starting a thread

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

const File &FirstValues::open(const plan::Parameter &parameter) {
  const plan::Source &source = parameter.source();
  uint64_t elements = plan::elementsOf(parameter);
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
  if (source.bytes() != elements * sizeOf(source.dtype()))
    throw Error(fmt::format("the plan says that parameter '{}' of {} elements has {} bytes in '{}'", parameter.name(), elements,
                            source.bytes(), source.file()));
  if (uint64_t size = file->size(); source.offset() > size || source.bytes() > size - source.offset())
    throw Error(fmt::format("'{}' has {} bytes, but parameter '{}' should lie at bytes {} to {}: it is not the file the plan was "
                            "compiled from",
                            source.file(), size, parameter.name(), source.offset(), source.offset() + source.bytes()));
  return *file;
}

void FirstValues::readStored(const plan::Parameter &parameter, uint64_t start, std::span<float> out) {
  const plan::Source &source = parameter.source();
  const File &file = open(parameter);
  uint64_t size = sizeOf(source.dtype()), at = source.offset() + start * size;
  if (source.dtype() == plan::F32) return file.read(at, out.data(), out.size_bytes());
  if (!isFloat(elementOf(source.dtype())))
    throw Error(
        fmt::format("parameter '{}' is stored as {}, which cannot be trained", parameter.name(), nameOf(elementOf(source.dtype()))));
  std::vector<std::byte> stored(out.size() * size);
  file.read(at, stored.data(), stored.size());
  convert(elementOf(source.dtype()), stored.data(), plan::F32, reinterpret_cast<std::byte *>(out.data()), out.size());
}

void FirstValues::read(const plan::Parameter &parameter, uint64_t start, std::span<float> out) {
  if (parameter.has_source())
    readStored(parameter, start, out);
  else
    makeValues(parameter.init(), start, out, threads);
}

} // namespace zero::runtime
