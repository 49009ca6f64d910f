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
  // dropped. Otherwise the file starts empty. Throws a sentence if another run writes to it.
  Metrics(const std::string &path, std::optional<uint64_t> resumed);
  void write(const StepRecord &record);

private:
  void begin(std::optional<uint64_t> resumed);

  std::string path;
  Descriptor fd;
  off_t whole = -1; // bytes of whole lines; -1 for what has no position, such as a pipe
};

} // namespace zero::runtime
