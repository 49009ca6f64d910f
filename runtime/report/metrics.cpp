#include "runtime/report/metrics.h"
#include "runtime/plan/error.h"
#include "runtime/plan/paths.h"
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

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

Error cannotWrite(const std::string &path) { return Error(fmt::format("cannot write --metrics '{}': {}", path, std::strerror(errno))); }

// Drops the later lines. The file is replaced as a whole: a run killed meanwhile keeps its past.
void keepLines(const std::string &name, uint64_t step) {
  std::string path = plan::replaceable(name), kept = linesUpTo(path, step), partial = path + ".partial";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  out << kept;
  out.close();
  if (!out || std::rename(partial.c_str(), path.c_str()) != 0) {
    Error error = cannotWrite(path);
    std::remove(partial.c_str());
    throw error;
  }
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
  std::error_code missing;
  bool goesOn = resumed && std::filesystem::is_regular_file(path, missing);
  if (goesOn) keepLines(path, *resumed);
  file.reset(std::fopen(path.c_str(), goesOn ? "a" : "w"));
  if (!file) throw cannotWrite(path);
  std::setvbuf(file.get(), nullptr, _IONBF, 0); // a line is one write, and nothing is left over when it fails
  std::fseek(file.get(), 0, SEEK_END);
  whole = std::ftell(file.get());
}

void Metrics::write(const StepRecord &record) {
  std::string line = metricsLine(record) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file.get()) != line.size()) {
    Error error = cannotWrite(path);
    if (whole >= 0 && ::ftruncate(::fileno(file.get()), whole) != 0) throw error; // no half line stays
    throw error;
  }
  if (whole >= 0) whole += static_cast<long>(line.size());
}

} // namespace zero::runtime
