#include "runtime/train/same_files.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/checksums.h"
#include "runtime/checkpoint/folders.h"
#include "runtime/comm/collectively.h"
#include "runtime/files/file.h"
#include "runtime/plan/model_files.h"
#include "runtime/plan/paths.h"
#include "runtime/process/random_bits.h"
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <set>

namespace fs = std::filesystem;

namespace zero::runtime {
namespace {

constexpr uint64_t kBudget = 64 << 20, kPiece = 64 << 10;

// Size and checksum of a file of which at most `budget` bytes are read, in pieces that are spread evenly over it.
std::string digest(const std::string &path, uint64_t budget = kBudget) try {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return "no file"; // a pipe would wait for someone to write
  File file(path, File::Mode::Read);
  uint64_t size = file.size(), pieces = std::max<uint64_t>(2, budget / kPiece);
  std::vector<std::byte> bytes(size <= pieces * kPiece ? std::min(size, kBudget) : kPiece);
  uint32_t sum = 0;
  if (size <= pieces * kPiece) {
    file.read(0, bytes.data(), size);
    sum = checksum(bytes.data(), size);
  } else {
    std::vector<uint32_t> sums;
    for (uint64_t i = 0; i < pieces; ++i) {
      // In units of a piece, so that no product is larger than 64 bits hold; the last piece ends with the file.
      uint64_t at = i + 1 == pieces ? size - kPiece : (size / kPiece) * i / pieces * kPiece;
      file.read(at, bytes.data(), kPiece);
      sums.push_back(checksum(bytes.data(), kPiece));
    }
    sum = checksum(sums.data(), sums.size() * sizeof(uint32_t));
  }
  return fmt::format("a file of {} bytes with checksum {:08x}", size, sum);
} catch (const Error &) {
  return "a file that cannot be read";
}

std::string digestOfFolder(const std::string &path) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto &entry : fs::directory_iterator(path, ignored)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string &name : names)
    all += fmt::format("{}: {}\n", name, digest((fs::path(path) / name).string(), kBudget / names.size()));
  return fmt::format("'{}' of {} files with checksum {:08x}", fs::path(path).filename().string(), names.size(),
                     checksum(all.data(), all.size()));
}

// A checkpoint has all parameters, and a plan may have rules for them; the model is then read only for its copy.
std::vector<std::string> modelFiles(const TrainOptions &options, const Setup &setup) {
  const plan::Plan &plan = setup.file.plan;
  if (options.exportTo && options.exportTo->ends_with(".onnx")) return plan::ModelFiles(plan).names();
  std::set<std::string> names;
  if (setup.candidates.empty())
    for (const plan::Parameter &parameter : plan.parameters())
      if (parameter.has_source()) names.insert(parameter.source().file());
  return {names.begin(), names.end()};
}

// What rank 0 has chosen; where this rank has no such checkpoint, the newest that it has.
std::string resumedFrom(const std::string &folder, const Setup &setup) {
  if (setup.candidates.empty()) return "a folder without a checkpoint";
  if (hasIndex(setup.candidates.front())) return digestOfFolder(setup.candidates.front());
  std::vector<std::string> own = checkpointsIn(folder);
  return own.empty() ? "a folder without a checkpoint" : digestOfFolder(own.back());
}

// Rank 0 writes a number into a file beside `result` that all others must then read there. The file's name is the result's, so that a run
// with the same result removes what one that was killed has left.
void requireSharedFolder(Communicator &communicator, const char *flag, const std::string &path, const std::string &result) {
  bool leads = communicator.rank() == 0;
  std::array<uint64_t, 2> number{randomBits(), randomBits()};
  communicator.broadcast(number.data(), sizeof number, 0);
  std::string probe = result + ".probe";
  auto removeProbe = [&] {
    if (std::remove(probe.c_str()) != 0 && errno != ENOENT)
      throw Error(fmt::format("{} '{}': cannot remove '{}' again: {}", flag, path, probe, std::strerror(errno)));
  };
  collectively(communicator, [&] {
    if (!leads) return;
    File file(probe, File::Mode::Create);
    try {
      file.write(0, number.data(), sizeof number);
    } catch (const Error &) {
      std::remove(probe.c_str());
      throw;
    }
  });
  std::array<uint64_t, 2> seen{};
  std::ifstream(probe, std::ios::binary).read(reinterpret_cast<char *>(seen.data()), sizeof seen);
  communicator.barrier();
  collectively(communicator, [&] { // removed before any rank may end the others
    if (leads) removeProbe();
    if (seen != number)
      throw Error(fmt::format("{} '{}' is in another folder than rank 0's: what rank 0 writes there cannot be seen here; name the same "
                              "folder everywhere, in a file system that all machines share",
                              flag, path));
  });
}

} // namespace

std::string textOf(const MeasuredTable &measured) {
  if (measured.text.empty()) return "no file";
  return fmt::format("a file with checksum {:08x}", checksum(measured.text.data(), measured.text.size()));
}

Settings inputFiles(const TrainOptions &options) {
  Settings settings{{"the plan", digest(options.plan)}};
  if (options.data) settings.emplace_back("--data", digest(*options.data));
  if (options.evalData) settings.emplace_back("--eval-data", digest(*options.evalData));
  return settings;
}

Settings stateFiles(const TrainOptions &options, const Setup &setup) {
  Settings settings;
  if (options.resume) settings.emplace_back("--resume", resumedFrom(*options.resume, setup));
  // What this rank has read, and not what is there by now.
  if (setup.device->tune) settings.emplace_back("the table of algorithms beside the plan", textOf(setup.measured));
  std::vector<std::string> names = modelFiles(options, setup);
  for (size_t i = 0; i < names.size(); ++i) {
    std::string which = names.size() == 1 ? "" : fmt::format("{} of {}, ", i + 1, names.size());
    settings.emplace_back(fmt::format("the model's file {}'{}'", which, fs::path(names[i]).filename().string()),
                          digest(names[i], kBudget / names.size()));
  }
  return settings;
}

void requireSharedFolders(Communicator &communicator, const TrainOptions &options) {
  if (communicator.world() == 1) return;
  auto require = [&](const char *flag, const std::optional<std::string> &path) {
    if (path) requireSharedFolder(communicator, flag, *path, plan::replaceable(*path));
  };
  if (options.checkpoint) requireSharedFolder(communicator, "--checkpoint", *options.checkpoint, *options.checkpoint + "/");
  require("--export", options.exportTo);
  require("--gradients", options.gradients);
  require("--trace", options.trace);
}

} // namespace zero::runtime
