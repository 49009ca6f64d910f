#include "test/gpu/check/trace.h"
#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace zero::check {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + long(values.size() / 2), values.end());
  return values[values.size() / 2];
}

Metrics readMetrics(const std::string &path, size_t least) {
  std::ifstream in(path);
  Metrics metrics;
  for (std::string line; std::getline(in, line);) {
    nlohmann::json entry = nlohmann::json::parse(line);
    metrics.seconds.push_back(entry.at("seconds")), metrics.rates.push_back(entry.at("tokens_per_s"));
    metrics.proven = entry.at("memory_bytes");
  }
  if (metrics.seconds.size() < least)
    throw Error(fmt::format("'{}' has {} steps, where {} are wanted", path, metrics.seconds.size(), least));
  return metrics;
}

Trace readTrace(const plan::Plan &plan, const std::string &path) {
  std::ifstream in(path);
  nlohmann::json events = nlohmann::json::parse(in, nullptr, false);
  if (!events.is_array()) throw Error("'" + path + "' is no trace");
  std::map<std::pair<std::string, int>, std::vector<size_t>> order; // of program and lane
  Trace trace;
  for (const plan::Program &program : plan.programs())
    for (const plan::Step &step : program.steps()) {
      order[{program.name(), int(step.lane())}].push_back(trace.steps.size());
      trace.steps.push_back({&program, &step});
    }
  std::map<std::pair<std::string, int>, size_t> next;
  double begin = -1, end = 0;
  for (const nlohmann::json &event : events) {
    if (event.value("ph", "") != "X" || event.value("pid", 0) != 0) continue;
    std::pair<std::string, int> key{event.at("cat"), event.at("tid")};
    const std::vector<size_t> &places = order[key];
    if (places.empty()) throw Error("the trace is of another plan: it has no program '" + key.first + "' with such a lane");
    size_t number = next[key]++;
    Traced &traced = trace.steps[places[number % places.size()]];
    if (traced.step->name() != event.at("name").get<std::string>())
      throw Error("the trace is of another plan: step '" + traced.step->name() + "' is '" + event.at("name").get<std::string>() +
                  "' there");
    double at = event.at("ts").get<double>() / 1e6, seconds = event.at("dur").get<double>() / 1e6;
    traced.seconds.push_back(seconds);
    if (key.second != plan::COMPUTE || number < places.size()) continue;
    if (begin < 0) begin = at;
    trace.busy += seconds, end = std::max(end, at + seconds);
  }
  trace.span = end - begin;
  std::erase_if(trace.steps, [](const Traced &each) { return each.seconds.empty(); });
  if (trace.steps.empty()) throw Error("the trace has no steps");
  return trace;
}

} // namespace zero::check
