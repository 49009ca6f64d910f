#include "runtime/train/resume.h"
#include "runtime/checkpoint/checksums.h"
#include "runtime/checkpoint/folders.h"
#include "runtime/comm/collectively.h"
#include "runtime/data/mapped_file.h"
#include "runtime/files/file.h"
#include "runtime/process/streams.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace zero::runtime {
namespace {

void makeFolder(const std::string &path) {
  std::string why;
  try {
    makeFolders(path);
  } catch (const Error &error) {
    why = fmt::format(": {}", error.what());
  }
  std::error_code failed;
  if (!why.empty() || !fs::is_directory(path, failed))
    throw Error(fmt::format("--checkpoint '{}' is no folder and cannot be made one{}", path, why));
  if (::access(path.c_str(), W_OK) != 0) throw Error(fmt::format("--checkpoint '{}' cannot be written: {}", path, std::strerror(errno)));
}

bool sameFolder(const std::string &a, const std::string &b) {
  std::error_code failed;
  return fs::equivalent(a, b, failed);
}

// The same folder for both flags means "go on with this run", which has to begin once: a job that is started again and
// again keeps its command line.
bool beginsHere(const TrainOptions &options) {
  return options.checkpoint && sameFolder(*options.resume, *options.checkpoint) && checkpointsIn(*options.checkpoint).empty() &&
         !hasIndex(*options.resume);
}

// A newer checkpoint of another run would be what --resume finds afterwards, so it must not lie in the same folder.
void requireOwn(const std::string &folder, const std::vector<std::string> &candidates) {
  std::vector<std::string> present = checkpointsIn(folder);
  if (present.empty() || (!candidates.empty() && sameFolder(present.back(), candidates.front()))) return;
  std::string newest = fs::path(present.back()).filename().string();
  bool older =
      std::any_of(present.begin(), present.end(), [&](const auto &p) { return !candidates.empty() && sameFolder(p, candidates.front()); });
  throw Error(
      older ? fmt::format("--checkpoint '{}' already holds {}, which is newer than the one resumed; remove it, or name another folder",
                          folder, newest)
            : fmt::format("--checkpoint '{}' already holds {} of another run; resume it, or name another folder", folder, newest));
}

void choose(const TrainOptions &options, Setup &setup) {
  if (options.checkpoint) {
    makeFolder(*options.checkpoint);
    setup.lock = std::make_unique<DirectoryLock>(*options.checkpoint);
    removeLeftovers(*options.checkpoint);
  }
  if (options.resume && !beginsHere(options)) setup.candidates = checkpointsToResume(*options.resume);
  if (options.checkpoint) requireOwn(*options.checkpoint, setup.candidates);
}

// The root's text, everywhere.
void broadcast(Communicator &communicator, std::string &text, int root) {
  uint64_t size = text.size();
  communicator.broadcast(&size, sizeof size, root);
  text.resize(size);
  if (size > 0) communicator.broadcast(text.data(), size, root);
}

// The first rank's text that is not empty, everywhere.
std::string firstOf(Communicator &communicator, std::string text) {
  std::vector<uint64_t> sizes(static_cast<size_t>(communicator.world()));
  uint64_t size = text.size();
  communicator.allGather(&size, sizes.data(), sizeof size);
  auto first = std::find_if(sizes.begin(), sizes.end(), [](uint64_t s) { return s > 0; });
  if (first == sizes.end()) return "";
  broadcast(communicator, text, static_cast<int>(first - sizes.begin()));
  return text;
}

// A shared file system that is not shared would give every rank a state of its own.
void requireSameIndex(Communicator &communicator, const std::string &checkpoint) {
  std::vector<uint32_t> sums(static_cast<size_t>(communicator.world()));
  uint32_t mine = 0;
  collectively(communicator, [&] {
    MappedFile index((fs::path(checkpoint) / "index.json").string());
    mine = checksum(index.bytes().data(), index.bytes().size());
  });
  communicator.allGather(&mine, sums.data(), sizeof mine);
  collectively(communicator, [&] {
    if (mine != sums[0]) throw Error(fmt::format("'{}' is not what rank 0 reads there; all ranks must see the same files", checkpoint));
  });
}

} // namespace

void chooseCheckpoints(const TrainOptions &options, Communicator &communicator, Setup &setup) {
  collectively(communicator, [&] {
    if (communicator.rank() == 0) choose(options, setup);
  });
  // Their names inside --resume, which each rank may have under another path; a point stands for the folder itself.
  std::string names;
  for (const std::string &path : setup.candidates)
    names += (path == *options.resume ? "." : fs::path(path).filename().string()) + '\0'; // a zero after each
  broadcast(communicator, names, 0);
  setup.candidates.clear();
  for (size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
    std::string name = &names[at];
    setup.candidates.push_back(name == "." ? *options.resume : (fs::path(*options.resume) / name).string());
  }
}

Progress resume(const Rank &rank, const FrozenSums &frozen, Setup &setup) {
  std::vector<std::string> sentences; // why each newer one was not taken
  for (const std::string &candidate : setup.candidates) {
    Progress progress;
    std::string damage;
    collectively(rank.communicator, [&] {
      try {
        progress = loadCheckpoint(rank, frozen, candidate);
      } catch (const Damaged &error) {
        damage = error.what();
      }
    });
    damage = firstOf(rank.communicator, damage);
    if (!damage.empty()) {
      sentences.push_back(damage);
      setup.damaged.push_back(candidate);
      continue;
    }
    requireSameIndex(rank.communicator, candidate);
    setup.resumedFrom = candidate;
    if (rank.rank == 0)
      for (const std::string &sentence : sentences) complain(fmt::format("zerorun: {}; the run goes on from '{}'", sentence, candidate));
    return progress;
  }
  collectively(rank.communicator, [&] {
    throw Error(fmt::format("{}; {}", sentences.front(),
                            sentences.size() == 1
                                ? "resume another checkpoint"
                                : fmt::format("none of the {} checkpoints beside it is whole either", sentences.size() - 1)));
  });
  return {}; // not reached
}

void checkResumed(const TrainOptions &options, const Setup &setup, const Progress &at) {
  if (options.shuffle && !at.shuffled)
    throw Error(fmt::format("--shuffle: checkpoint '{}' has read its samples in the order of the file; leave it out to go on with that run",
                            *setup.resumedFrom));
  if (options.seed && *options.seed != at.seed)
    throw Error(fmt::format("--seed {} differs from the seed {} of checkpoint '{}'; leave it out to go on with that run", *options.seed,
                            at.seed, *setup.resumedFrom));
  if (setup.steps > 0 && at.step > setup.steps)
    throw Error(fmt::format("checkpoint '{}' has already made {} steps; --steps {} counts the whole run", *setup.resumedFrom, at.step,
                            setup.steps));
  if (options.gradients && at.step == setup.steps)
    throw Error(fmt::format("--gradients shows the first step's gradients, but checkpoint '{}' has made all {} steps; ask for more, or "
                            "leave it out",
                            *setup.resumedFrom, setup.steps));
}

} // namespace zero::runtime
