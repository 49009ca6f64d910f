//===- json.cpp - the same numbers for programs -------------------------------------------------------===//
// docs/inspect.md lists the keys.
#include "runtime/inspect/names.h"
#include "runtime/inspect/peak.h"
#include "runtime/plan/lanes.h"
#include "runtime/plan/target.h"
#include <nlohmann/json.hpp>

namespace zero::inspect {
namespace {
using nlohmann::json;

json byKind(const ByKind &bytes) {
  json kinds = json::object();
  for (int k = 0; k < kKinds; ++k)
    if (bytes[size_t(k)]) kinds[kindName(k)] = bytes[size_t(k)];
  return kinds;
}

json memoryJson(const plan::Plan &plan, plan::Tier tier) {
  Memory memory = memoryOf(plan, tier);
  json out = {{"persistent", byKind(memory.persistent)},
              {"state_bytes", memory.state},
              {"work_bytes", memory.work},
              {"total_bytes", memory.total()}};
  for (const ProgramMemory &p : memory.programs)
    out["programs"][p.program] = {{"arena_bytes", p.height},
                                  {"live_bytes", p.live},
                                  {"peak_step", p.peakStep},
                                  {"at_peak", byKind(p.atPeak)},
                                  {"largest", byKind(p.largest)}};
  return out;
}

json peakJson(const plan::Plan &plan, int program) {
  Peak peak = peakOf(plan, program);
  json layers = json::object(), buffers = json::array();
  for (const Peak::Layer &layer : peak.layers) layers[layer.name] = byKind(layer.kinds);
  for (uint32_t i : peak.largest) {
    const plan::Buffer &b = plan.buffers(int(i));
    buffers.push_back({{"name", b.name()}, {"kind", kindName(b.kind())}, {"bytes", b.bytes()}, {"first", b.first()}, {"last", b.last()}});
  }
  return {{"layers", layers}, {"largest", buffers}};
}

json communicationJson(const plan::Plan &plan) {
  Traffic traffic = trafficOf(plan);
  json out = {{"bytes_sent", traffic.bytes}, {"collectives", json::object()}};
  for (const auto &[name, kind] : traffic.collectives)
    out["collectives"][name] = {{"calls", kind.calls}, {"slices", kind.slices}, {"bytes_sent", kind.bytes}};
  return out;
}

json workJson(const Work &w) { return {{"bytes_touched", w.touched}, {"bytes_sent", w.sent}, {"flops", w.flops}}; }

json lanesJson(const plan::Plan &plan) {
  json lanes = json::object();
  std::array<Work, kLanes> work = workByLane(plan);
  for (int lane = 0; lane < kLanes; ++lane)
    if (const Work &w = work[size_t(lane)]; w.steps) {
      json &entry = lanes[plan::laneName(size_t(lane))] = workJson(w);
      entry["steps"] = w.steps;
    }
  return lanes;
}

json programJson(const plan::Plan &plan, int index, bool schedule) {
  const plan::Program &program = plan.programs(index);
  json out = {{"name", program.name()},
              {"role", roleName(program.role())},
              {"clips", program.clips()},
              {"steps", program.steps_size()},
              {"peak", peakJson(plan, index)}};
  if (!schedule) return out;
  out["schedule"] = json::array();
  for (const plan::Step &step : program.steps()) {
    json entry = workJson(workOf(plan, step));
    entry["name"] = step.name();
    entry["lane"] = plan::laneName(step.lane());
    entry["waits"] = json::array();
    for (const plan::Wait &w : step.waits()) entry["waits"].push_back({{"lane", plan::laneName(w.lane())}, {"tick", w.tick()}});
    out["schedule"].push_back(std::move(entry));
  }
  auto waits = [](const auto &list) {
    json all = json::array();
    for (const plan::Wait &w : list) all.push_back({{"lane", plan::laneName(w.lane())}, {"tick", w.tick()}});
    return all;
  };
  out["result_waits"] = waits(program.result_waits());
  out["entries"] = json::array();
  for (const plan::Entry &entry : program.entries()) {
    json joins = json::array();
    for (const plan::EntryWait &w : entry.waits())
      joins.push_back({{"step", w.step()}, {"lane", plan::laneName(w.lane())}, {"tick", w.tick()}});
    out["entries"].push_back(
        {{"after", plan.programs(int(entry.after())).name()}, {"input_waits", waits(entry.input_waits())}, {"waits", joins}});
  }
  return out;
}

json parametersJson(const plan::Plan &plan, uint64_t &elements) {
  json out = json::array();
  for (const plan::Parameter &p : plan.parameters()) {
    elements += elementsOf(p);
    json aliases = json::array();
    for (const plan::Alias &alias : p.aliases()) aliases.push_back({{"name", alias.name()}, {"transposed", alias.transposed()}});
    json pieces = json::array();
    for (const plan::Piece &piece : p.pieces()) {
      std::vector<uint64_t> begin, size;
      for (int d = 0; d < p.shape_size(); ++d) begin.push_back(beginOf(piece, d)), size.push_back(sizeOf(p, piece, d));
      pieces.push_back(
          {{"bucket", plan.buckets(int(piece.bucket())).name()}, {"offset", piece.offset_elements()}, {"begin", begin}, {"size", size}});
    }
    out.push_back({{"name", p.name()},
                   {"shape", std::vector<int64_t>(p.shape().begin(), p.shape().end())},
                   {"trainable", plan::isTrainable(plan, p)},
                   {"pieces", pieces},
                   {"aliases", aliases}});
  }
  return out;
}

} // namespace

json toJson(const plan::Plan &plan, bool schedule) {
  json out;
  out["model"] = plan.model();
  out["producer"] = plan.producer();
  out["target"] = plan::targetName(plan.target().kind());
  out["cpu"] = plan.target().cpu();
  if (plan.target().kind() == plan::Target::CUDA) out["gpu"] = plan.target().features(0);
  out["world"] = plan.world();
  out["axes"] = json::array();
  for (const plan::Axis &axis : plan.axes()) out["axes"].push_back({{"name", axis.name()}, {"size", axis.size()}});
  out["stage"] = plan.stage();
  out["accumulate"] = plan.accumulate();
  out["vertical"] = plan.vertical();
  out["samples"] = plan.samples();
  out["memory"] = memoryJson(plan, plan::DEVICE);
  out["memory"]["padding_bytes"] = memoryOf(plan).padding;
  for (plan::Tier tier : {plan::HOST, plan::DISK})
    for (const plan::Arena &arena : plan.arenas())
      if (arena.tier() == tier) out["memory"][tierName(tier)] = memoryJson(plan, tier);
  out["communication"] = communicationJson(plan);
  out["lanes"] = lanesJson(plan);
  out["programs"] = json::array();
  for (int i = 0; i < plan.programs_size(); ++i) out["programs"].push_back(programJson(plan, i, schedule));
  uint64_t elements = 0;
  out["parameters"] = parametersJson(plan, elements);
  out["parameter_elements"] = elements;
  out["buckets"] = json::array();
  for (const plan::Bucket &b : plan.buckets())
    out["buckets"].push_back({{"name", b.name()},
                              {"elements", b.elements()},
                              {"shard_elements", b.shard_elements()},
                              {"padding_elements", b.padding_elements()},
                              {"trainable", b.trainable()}});
  out["kernels"] = json::array();
  for (const plan::Kernel &k : plan.kernels()) {
    out["kernels"].push_back({{"symbol", k.symbol()}, {"flops", k.flops()}, {"bytes", k.bytes()}, {"summary", k.summary()}});
    if (k.has_gpu())
      out["kernels"].back()["grid"] = {
          {"blocks", k.gpu().blocks()}, {"threads", k.gpu().threads()}, {"shared_bytes", k.gpu().shared_bytes()}};
  }
  out["decisions"] = json::array();
  for (const plan::Decision &d : plan.decisions())
    out["decisions"].push_back({{"subject", d.subject()}, {"choice", d.choice()}, {"reason", d.reason()}});
  return out;
}

std::string fileJson(const plan::PlanFile &file, int threads, bool schedule) {
  json numbers = toJson(file.plan, schedule);
  numbers["machine_code_bytes"] = file.kernels.size();
  numbers["process"] = processJson(file, threads);
  numbers["signed_by"] = file.signer ? json(file.signer->fingerprint()) : json();
  return numbers.dump(1, ' ', false, json::error_handler_t::replace);
}

} // namespace zero::inspect
