#include "runtime/report/metrics.h"
#include "runtime/base/error.h"
#include "runtime/base/why_not_written.h"
#include "runtime/plan/lanes.h"
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zero::runtime {
namespace {

// Shortest text that reads back as the same number.
template <class T> std::string number(T value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

// Where the lines up to `step` end: after the last whole one of them before the first of a later step.
off_t endOfLines(const std::string &path, uint64_t step) {
  std::ifstream in(path, std::ios::binary);
  off_t at = 0, end = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    at += static_cast<off_t>(line.size()) + 1;
    nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_unsigned()) continue;
    if (entry["step"].get<uint64_t>() > step) break;
    end = at;
  }
  // Taken for the end of the file, it would cut off the run's past.
  if (!in.is_open() || in.bad())
    throw Error(fmt::format("cannot read --metrics '{}', in which the run goes on: {}", path, std::strerror(errno)));
  return end;
}

// PATH.1, PATH.2, …: the first that nothing has.
std::string freeName(const std::string &path) {
  struct stat info = {};
  for (int number = 1;; ++number)
    if (std::string name = fmt::format("{}.{}", path, number); ::lstat(name.c_str(), &info) != 0) return name;
}

// Such as /dev/stdout behind `>> log`: it holds what others have said as well.
bool isOurOutput(const struct stat &file) {
  for (int fd : {STDOUT_FILENO, STDERR_FILENO})
    if (struct stat info = {}; ::fstat(fd, &info) == 0 && info.st_dev == file.st_dev && info.st_ino == file.st_ino) return true;
  return false;
}

Error cannotWrite(const std::string &path) { return Error(fmt::format("cannot write --metrics '{}': {}", path, whyNotWritten(errno))); }

} // namespace

std::string metricsLine(const StepRecord &record) {
  std::string line = fmt::format(R"({{"step": {}, "loss": {})", record.step, number(record.loss));
  for (size_t i = 0; i < record.losses.size(); ++i) line += (i ? ", " : R"(, "losses": [)") + number(record.losses[i]);
  line += fmt::format(R"({}, "lr": {})", record.losses.empty() ? "" : "]", number(record.lr));
  if (record.gradientNorm) line += fmt::format(R"(, "grad_norm": {})", number(*record.gradientNorm));
  if (record.lossScale) line += fmt::format(R"(, "loss_scale": {}, "skipped": {})", *record.lossScale, record.skipped);
  line += fmt::format(R"(, "epoch": {:.6g}, "{}_per_s": {:.1f}, "seconds": {:.6f}, "bytes": {{)", record.epoch,
                      record.countsTokens ? "tokens" : "samples", record.perSecond, record.seconds);
  bool first = true;
  for (size_t lane = 0; lane < record.laneBytes.size(); ++lane)
    if (record.laneBytes[lane]) {
      line += fmt::format(R"({}"{}": {})", first ? "" : ", ", plan::kLaneNames[lane], record.laneBytes[lane]);
      first = false;
    }
  line += fmt::format(R"(}}, "memory_bytes": {})", record.memoryBytes);
  if (record.evalLoss) line += fmt::format(R"(, "eval_loss": {})", number(*record.evalLoss));
  return line + "}";
}

Metrics::Metrics(const std::string &path, std::optional<uint64_t> resumed, bool stays) : path(path) {
  open();
  begin(resumed, stays);
}

void Metrics::open() {
  fd.emplace(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!*fd) throw cannotWrite(path);
}

void Metrics::begin(std::optional<uint64_t> resumed, bool stays) {
  struct stat info = {};
  if (::fstat(fd->get(), &info) != 0) throw cannotWrite(path);
  if (!S_ISREG(info.st_mode) || isOurOutput(info)) return;
  // The lock is the system's and ends with the process; file systems that know no locks are trusted.
  if (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(fmt::format("--metrics '{}' is being written by another run; name another file", path));
  if (!resumed && stays && info.st_size > 0) {
    before_ = freeName(path);
    if (::rename(path.c_str(), before_.c_str()) != 0) throw cannotWrite(path);
    open();
    return begin(resumed, /*stays=*/false);
  }
  whole = resumed ? endOfLines(path, *resumed) : 0;
  if (::ftruncate(fd->get(), whole) != 0) throw cannotWrite(path);
}

void Metrics::write(const StepRecord &record) {
  std::string line = metricsLine(record) + "\n";
  for (size_t at = 0; at < line.size();) { // usually one write
    ssize_t done = ::write(fd->get(), line.data() + at, line.size() - at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      if (done == 0) errno = ENOSPC;
      Error error = cannotWrite(path);
      if (whole >= 0 && ::ftruncate(fd->get(), whole) != 0) throw error; // no half line stays
      throw error;
    }
    at += static_cast<size_t>(done);
  }
  if (whole >= 0) whole += static_cast<off_t>(line.size());
}

} // namespace zero::runtime
