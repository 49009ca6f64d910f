//===- limits.h - a compilation may take so much memory and time ----------------------------------===//
#pragma once
#include "passes/pipeline/progress.h"
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

namespace zero {

/// What compiling may take: of memory that is no mapped file, in bytes; of processor time, in seconds. 0: anything.
/// Where the user sets nothing a limit follows the model, see docs/tutorial.md.
struct Limits {
  std::optional<uint64_t> bytes, seconds;

  uint64_t bytesFor(const onnx::ImportProgress &model) const;
  uint64_t secondsFor(const onnx::ImportProgress &model) const;
};

/// Ends the program with a sentence and status 1 when a limit is passed, and when memory runs out before.
class Watch {
public:
  Watch(Limits limits, pipeline::Progress &progress);
  ~Watch();
  Watch(const Watch &) = delete;

private:
  void run();
  Limits limits;
  pipeline::Progress &progress;
  std::mutex mutex;
  std::condition_variable wake;
  bool done = false;
  std::thread thread;
};

} // namespace zero
