#include "runtime/report/metrics.h"
#include "runtime/plan/error.h"
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace zero::runtime {
namespace {

// Shortest text that reads back as the same number.
template <class T> std::string number(T value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string linesUpTo(const std::string &path, uint64_t step) {
  std::ifstream in(path);
  std::string kept, line;
  while (std::getline(in, line)) {
    nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("step") && entry["step"].is_number_unsigned() && entry["step"].get<uint64_t>() <= step)
      kept += line + "\n";
  }
  return kept;
}

} // namespace

std::string metricsLine(const StepRecord &record) {
  std::string line = fmt::format(R"({{"step": {}, "loss": {}, "lr": {})", record.step, number(record.loss), number(record.lr));
  if (record.gradientNorm) line += fmt::format(R"(, "grad_norm": {})", number(*record.gradientNorm));
  line += fmt::format(R"(, "tokens_per_s": {:.1f}, "seconds": {:.6f}, "bytes": {{)", record.tokensPerSecond, record.seconds);
  bool first = true;
  for (size_t lane = 0; lane < record.laneBytes.size(); ++lane)
    if (record.laneBytes[lane]) {
      line += fmt::format(R"({}"{}": {})", first ? "" : ", ", kLaneNames[lane], record.laneBytes[lane]);
      first = false;
    }
  line += fmt::format(R"(}}, "memory_bytes": {})", record.memoryBytes);
  if (record.evalLoss) line += fmt::format(R"(, "eval_loss": {})", number(*record.evalLoss));
  return line + "}";
}

Metrics::Metrics(const std::string &path, std::optional<uint64_t> resumed) : path(path), file(nullptr, std::fclose) {
  std::string kept = resumed ? linesUpTo(path, *resumed) : "";
  file.reset(std::fopen(path.c_str(), "w"));
  if (!file || std::fwrite(kept.data(), 1, kept.size(), file.get()) != kept.size())
    throw Error(fmt::format("cannot write --metrics '{}': {}", path, std::strerror(errno)));
}

void Metrics::write(const StepRecord &record) {
  std::string line = metricsLine(record) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file.get()) != line.size() || std::fflush(file.get()) != 0)
    throw Error(fmt::format("cannot write --metrics '{}': {}", path, std::strerror(errno)));
}

} // namespace zero::runtime
