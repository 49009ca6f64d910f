#include "runtime/checkpoint/folders.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/files/file.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <utility>

namespace fs = std::filesystem;

namespace zero::runtime {
namespace {

// N of "step-N", or nothing for any other name.
std::optional<uint64_t> stepOf(const std::string &name) {
  if (!name.starts_with("step-") || name.size() == 5 || name.size() > 23 || name.find_first_not_of("0123456789", 5) != std::string::npos)
    return std::nullopt;
  return std::stoull(name.substr(5));
}

bool isLeftover(const std::string &name) {
  for (std::string_view ending : {".partial", ".removed"})
    if (name.ends_with(ending) && stepOf(name.substr(0, name.size() - ending.size()))) return true;
  return false;
}

// What cannot be looked at is not taken for what is not there: a run would start again at its beginning.
std::vector<fs::path> entriesOf(const std::string &directory) {
  std::vector<fs::path> entries;
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end; at.increment(failed)) entries.push_back(at->path());
  if (failed && failed != std::errc::no_such_file_or_directory && failed != std::errc::not_a_directory)
    throw Error(fmt::format("cannot read the folder '{}': {}", directory, failed.message()));
  return entries;
}

void removeAll(const fs::path &path) {
  std::error_code failed;
  fs::remove_all(path, failed); // of a link only the link
  if (failed) throw Error(fmt::format("cannot remove '{}': {}", path.string(), failed.message()));
}

} // namespace

bool hasIndex(const fs::path &checkpoint) { return isThere(checkpoint / "index.json"); }

void makePartial(const std::string &partial) {
  makeFolders(parentOf(partial));
  removeAll(partial);
  if (::mkdir(partial.c_str(), 0777) != 0) throw Error(fmt::format("cannot create '{}': {}", partial, std::strerror(errno)));
}

void removeCheckpoint(const std::string &checkpoint) {
  std::string removed = checkpoint + ".removed";
  removeAll(removed);
  renameOver(checkpoint, removed);
  syncDirectory(parentOf(checkpoint)); // before its files: after a power failure, too, half of one has no name
  removeAll(removed);
}

void setAside(const std::string &checkpoint) {
  std::string damaged = checkpoint + ".damaged";
  removeAll(damaged);
  renameOver(checkpoint, damaged);
  syncDirectory(parentOf(checkpoint));
}

std::vector<std::string> checkpointsIn(const std::string &directory) {
  std::vector<std::pair<uint64_t, std::string>> found;
  for (const fs::path &entry : entriesOf(directory))
    if (auto step = stepOf(entry.filename().string()); step && hasIndex(entry)) found.emplace_back(*step, entry.string());
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto &[step, path] : found) paths.push_back(path);
  return paths;
}

std::vector<std::string> checkpointsToResume(const std::string &directory) {
  if (hasIndex(directory)) return {directory};
  if (!isThere(directory)) throw Error(fmt::format("'{}' holds no checkpoint: there is no such folder", directory));
  std::vector<std::string> all = checkpointsIn(directory);
  if (all.empty()) throw Error(fmt::format("'{}' holds no whole checkpoint: neither index.json nor a folder step-N with one", directory));
  std::reverse(all.begin(), all.end());
  return all;
}

void removeLeftovers(const std::string &directory) {
  for (const fs::path &entry : entriesOf(directory))
    if (isLeftover(entry.filename().string())) removeAll(entry);
}

std::vector<std::string> removeOlder(const std::string &directory, uint64_t keep) {
  std::vector<std::string> sentences, all = checkpointsIn(directory);
  for (size_t i = 0; i + keep < all.size(); ++i) {
    try {
      removeCheckpoint(all[i]);
    } catch (const Error &error) {
      sentences.push_back(error.what());
    }
  }
  return sentences;
}

} // namespace zero::runtime
