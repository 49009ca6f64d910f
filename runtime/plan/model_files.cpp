#include "runtime/plan/model_files.h"
#include "runtime/plan/error.h"
#include <algorithm>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace zero::plan {
namespace {

// Of a stretch between weights: enough for every header of a tensor and for the heart of a graph, and little to read where large
// constants lie between the weights.
constexpr uint64_t kSample = 64 << 10;

using Extents = std::vector<std::pair<uint64_t, uint64_t>>;

std::optional<uint32_t> crcBetween(int fd, uint64_t size, const Extents &weights) {
  std::vector<Bytef> sample(kSample);
  uLong crc = crc32(0, nullptr, 0);
  auto stretch = [&](uint64_t begin, uint64_t end) {
    for (uint64_t most = std::min(end, begin + kSample); begin < most;) {
      ssize_t got = pread(fd, sample.data(), most - begin, static_cast<off_t>(begin));
      if (got <= 0) return false;
      crc = crc32(crc, sample.data(), static_cast<uInt>(got));
      begin += static_cast<uint64_t>(got);
    }
    return true;
  };
  uint64_t at = 0;
  for (auto [begin, end] : weights) {
    if (begin > at && !stretch(at, std::min(begin, size))) return std::nullopt;
    at = std::max(at, end);
  }
  if (!stretch(at, size)) return std::nullopt;
  return static_cast<uint32_t>(crc);
}

std::optional<ModelFile> read(const std::string &name, const Extents &weights) {
  int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat status{};
  std::optional<ModelFile> file;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    auto size = static_cast<uint64_t>(status.st_size);
    if (auto crc = crcBetween(fd, size, weights)) {
      file.emplace();
      file->set_file(name);
      file->set_bytes(size);
      file->set_crc(*crc);
    }
  }
  close(fd);
  return file;
}

} // namespace

ModelFiles::ModelFiles(const Plan &plan) {
  if (!plan.model().empty()) files[plan.model()]; // of a model with weights elsewhere the file is all graph
  auto add = [&](const Source &source) {
    if (!source.file().empty()) files[source.file()].weights.emplace_back(source.offset(), source.offset() + source.bytes());
  };
  for (const Parameter &parameter : plan.parameters()) {
    add(parameter.source());
    for (const Alias &alias : parameter.aliases()) add(alias.source());
  }
  for (auto &[name, contents] : files) std::sort(contents.weights.begin(), contents.weights.end());
  for (const ModelFile &file : plan.files())
    if (auto found = files.find(file.file()); found != files.end()) found->second.recorded = file;
}

std::vector<std::string> ModelFiles::names() const {
  std::vector<std::string> names;
  for (const auto &[name, contents] : files) names.push_back(name);
  return names;
}

std::vector<ModelFile> ModelFiles::record() const {
  std::vector<ModelFile> records;
  for (const auto &[name, contents] : files)
    if (auto file = read(name, contents.weights)) records.push_back(*file);
  return records;
}

void ModelFiles::check(const std::string &name) const {
  auto found = files.find(name);
  if (found == files.end() || found->second.recorded.file().empty()) return;
  const auto &[weights, recorded] = found->second;
  auto now = read(name, weights);
  if (!now) throw Error("cannot read '" + name + "', which the plan was compiled from");
  if (now->bytes() != recorded.bytes())
    throw Error("'" + name + "' has " + std::to_string(now->bytes()) + " bytes, but had " + std::to_string(recorded.bytes()) +
                " when the plan was compiled from it; compile it again");
  if (now->crc() != recorded.crc())
    throw Error("'" + name + "' is another model than the one the plan was compiled from: it differs beside the values of its weights; " +
                "compile it again");
}

} // namespace zero::plan
