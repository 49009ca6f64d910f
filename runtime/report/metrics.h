// --metrics: one JSON object a line, flushed line by line, so that a run can be watched and a killed one keeps its past.
#pragma once
#include "runtime/files/descriptor.h"
#include "runtime/report/record.h"
#include <optional>
#include <string>
#include <sys/types.h>

namespace zero::runtime {

// The line without its end. Numbers JSON cannot hold (a loss that is not finite) are null.
std::string metricsLine(const StepRecord &record);

class Metrics {
public:
  // A run resumed after step `resumed` goes on in a file that exists: lines of later steps, which it will make again, are
  // dropped. Otherwise the file starts empty; what it holds `stays` as another file if that is asked for. Throws a sentence if another run
  // writes to it.
  Metrics(const std::string &path, std::optional<uint64_t> resumed, bool stays = false);
  void write(const StepRecord &record);
  const std::string &before() const { return before_; } // the file that keeps what was there; or empty

private:
  void open();
  void begin(std::optional<uint64_t> resumed, bool stays);

  std::string path, before_;
  std::optional<Descriptor> fd;
  off_t whole = -1; // bytes of whole lines; -1 for what has no position, such as a pipe
};

} // namespace zero::runtime
