//===- check.h - what gpu-check's commands have in common -------------------------------------------------===//
// A command writes lines of a report (markdown) to standard output. Its last line is its result in a few words.
#pragma once
#include "runtime/base/error.h"
#include "runtime/device/cuda/gpu.h"
#include "runtime/device/cuda/handles.h"
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace zero::check {

namespace cuda = runtime::cuda;

/// Exit statuses. What this machine cannot run is neither right nor wrong.
inline constexpr int kPassed = 0, kFailed = 1, kUsage = 2, kNotRun = 3;

class NotRun : public Error {
public:
  using Error::Error;
};
class BadUsage : public Error {
public:
  using Error::Error;
};

/// A command's arguments: names and `--flag VALUE`.
class Arguments {
public:
  Arguments(int count, char **values);
  std::vector<std::string> names;
  /// The flag's value, or `otherwise`. Throws BadUsage for a flag that is no number.
  std::string text(const std::string &flag, const std::string &otherwise = "") const;
  double number(const std::string &flag, double otherwise) const;

private:
  std::map<std::string, std::string> flags;
};

/// Commands throw Error for what is wrong, NotRun for what cannot be tried here.
void machine(const Arguments &);
void copies(const Arguments &);
void products(const Arguments &);
void kernels(const Arguments &);
void training(const Arguments &);
void equal(const Arguments &);
void speed(const Arguments &);
void slowest(const Arguments &);
void room(const Arguments &);
void tiers(const Arguments &);
/// Runs a command line and measures meanwhile what is taken of the GPU's memory, the host's, and the disk of the file that says so. Yields
/// its exit status.
int watch(int count, char **values);

/// Bytes, flops in a second that were measured, by name; kept in a file between commands.
class Limits {
public:
  explicit Limits(std::string path);                 // empty: none, and nothing is kept
  double of(const std::string &name) const;          // 0: not measured
  void raise(const std::string &name, double value); // to at least that
private:
  std::string path;
  std::map<std::string, double> values;
};

/// The median of the seconds that work put into a stream takes there, by the GPU's own clock.
class Stopwatch {
public:
  explicit Stopwatch(int repeats) : repeats(repeats) {}
  double seconds(const std::function<void(cuda::StreamHandle)> &work);
  cuda::StreamHandle stream() const { return own.get(); }
  void synchronize() const;

private:
  int repeats;
  cuda::OwnedStream own = cuda::makeStream();
  cuda::OwnedEvent begin = cuda::makeEvent(cuda::kTimed), end = cuda::makeEvent(cuda::kTimed);
};

} // namespace zero::check
