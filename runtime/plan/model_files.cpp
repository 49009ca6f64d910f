#include "runtime/plan/model_files.h"
#include "runtime/base/error.h"
#include "runtime/files/descriptor.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace zero::plan {
namespace {

// Of a range between weights: enough for every header of a tensor and for the heart of a graph, and little to read where large
// constants lie between the weights.
constexpr uint64_t kSample = 64 << 10;

using Extents = std::vector<std::pair<uint64_t, uint64_t>>;

Error cannotRead(const std::string &name, const char *reason) { return Error("cannot read '" + name + "': " + reason); }

uint32_t crcBetween(int fd, const std::string &name, uint64_t size, const Extents &weights) {
  std::vector<Bytef> sample(kSample);
  uLong crc = crc32(0, nullptr, 0);
  auto range = [&](uint64_t begin, uint64_t end) {
    for (uint64_t most = std::min(end, begin + kSample); begin < most;) {
      ssize_t got = pread(fd, sample.data(), most - begin, static_cast<off_t>(begin));
      if (got <= 0) throw cannotRead(name, got < 0 ? std::strerror(errno) : "it was cut short meanwhile");
      crc = crc32(crc, sample.data(), static_cast<uInt>(got));
      begin += static_cast<uint64_t>(got);
    }
  };
  uint64_t at = 0;
  for (auto [begin, end] : weights) {
    if (begin > at && at < size) range(at, std::min(begin, size));
    at = std::max(at, end);
  }
  if (at < size) range(at, size);
  return static_cast<uint32_t>(crc);
}

ModelFile read(const std::string &name, const Extents &weights) {
  runtime::Descriptor file(open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // a pipe is refused, not waited for
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) throw cannotRead(name, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw cannotRead(name, "it is no regular file");
  ModelFile facts;
  facts.set_file(name);
  facts.set_bytes(static_cast<uint64_t>(status.st_size));
  facts.set_crc(crcBetween(file.get(), name, facts.bytes(), weights));
  return facts;
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
  for (const auto &[name, contents] : files) records.push_back(read(name, contents.weights));
  return records;
}

void ModelFiles::check(const std::string &name) const {
  auto found = files.find(name);
  if (found == files.end() || found->second.recorded.file().empty()) return;
  const auto &[weights, recorded] = found->second;
  ModelFile now = read(name, weights);
  if (now.bytes() != recorded.bytes())
    throw Error("'" + name + "' has " + std::to_string(now.bytes()) + " bytes, but had " + std::to_string(recorded.bytes()) +
                " when the plan was compiled from it; compile it again");
  if (now.crc() != recorded.crc())
    throw Error("'" + name + "' is another model than the one the plan was compiled from: it differs beside the values of its weights; " +
                "compile it again");
}

} // namespace zero::plan
