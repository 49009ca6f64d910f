//===- json.cpp - the same numbers for programs -------------------------------------------------------===//
#include "runtime/inspect/inspect.h"

namespace zero::inspect {
namespace {
nlohmann::json byKind(const ByKind &bytes) {
  nlohmann::json json = nlohmann::json::object();
  for (int k = 0; k < kKinds; ++k)
    if (bytes[k]) json[kindName(k)] = bytes[k];
  return json;
}
} // namespace

nlohmann::json toJson(const plan::Plan &plan) {
  nlohmann::json json;
  Memory memory = memoryOf(plan);
  json["model"] = plan.model();
  json["world"] = plan.world();
  json["stage"] = plan.stage();
  json["accumulate"] = plan.accumulate();
  json["memory"] = {{"persistent", byKind(memory.persistent)},
                    {"state_bytes", memory.state},
                    {"work_bytes", memory.work},
                    {"total_bytes", memory.total()},
                    {"padding_bytes", memory.padding}};
  for (const ProgramMemory &p : memory.programs)
    json["memory"]["programs"][p.program] = {{"arena_bytes", p.height},
                                             {"live_bytes", p.live},
                                             {"peak_step", p.peakStep},
                                             {"at_peak", byKind(p.atPeak)},
                                             {"largest", byKind(p.largest)}};
  Traffic traffic = trafficOf(plan);
  json["communication"]["bytes_sent"] = traffic.bytes;
  json["communication"]["collectives"] = nlohmann::json::object();
  for (const auto &[name, kind] : traffic.collectives)
    json["communication"]["collectives"][name] = {{"calls", kind.calls}, {"bytes_sent", kind.bytes}};
  uint64_t elements = 0;
  json["parameters"] = nlohmann::json::array();
  for (const plan::Parameter &p : plan.parameters()) {
    uint64_t n = 1;
    for (int64_t d : p.shape()) n *= uint64_t(d);
    elements += n;
    json["parameters"].push_back({{"name", p.name()},
                                  {"shape", std::vector<int64_t>(p.shape().begin(), p.shape().end())},
                                  {"bucket", plan.buckets(int(p.bucket())).name()},
                                  {"offset", p.offset_elements()}});
  }
  json["parameter_elements"] = elements;
  json["buckets"] = nlohmann::json::array();
  for (const plan::Bucket &b : plan.buckets())
    json["buckets"].push_back({{"name", b.name()},
                               {"elements", b.elements()},
                               {"shard_elements", b.shard_elements()},
                               {"padding_elements", b.padding_elements()},
                               {"trainable", b.trainable()}});
  json["kernels"] = nlohmann::json::array();
  for (const plan::Kernel &k : plan.kernels())
    json["kernels"].push_back({{"symbol", k.symbol()}, {"flops", k.flops()}, {"bytes", k.bytes()}, {"summary", k.summary()}});
  return json;
}

} // namespace zero::inspect
