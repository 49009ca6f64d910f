// --metrics: one JSON object a line, flushed line by line, so that a run can be watched and a killed one keeps its past.
#pragma once
#include "runtime/report/record.h"
#include <cstdio>
#include <memory>
#include <string>

namespace zero::runtime {

// The line without its end. Numbers JSON cannot hold (a loss that is not finite) are null.
std::string metricsLine(const StepRecord &record);

class Metrics {
public:
  // A run resumed after step `resumed` goes on in a file that exists: lines of later steps, which it will make again, are
  // dropped. Otherwise the file starts empty.
  Metrics(const std::string &path, std::optional<uint64_t> resumed);
  void write(const StepRecord &record);

private:
  std::string path;
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file;
  long whole = -1; // bytes of whole lines; -1 for what has no position, such as a pipe
};

} // namespace zero::runtime
