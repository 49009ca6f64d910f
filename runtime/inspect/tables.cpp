//===- tables.cpp - the first page: memory, communication, lanes, kernels ------------------------------===//
#include "runtime/inspect/inspect.h"
#include "runtime/inspect/names.h"
#include "runtime/inspect/table.h"
#include "runtime/plan/lanes.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/state.h"
#include "runtime/plan/target.h"
#include "runtime/plan/validate.h"
#include <algorithm>

namespace zero::inspect {
namespace {

std::string tierTable(const plan::Plan &plan, plan::Tier tier) {
  Memory memory = memoryOf(plan, tier);
  Table table;
  std::vector<std::string> cells{"kept"};
  for (const ProgramMemory &p : memory.programs) cells.push_back("@" + p.program);
  table.row(fmt::format("{} memory of one rank, in bytes", tierName(tier)), cells);
  auto row = [&](const std::string &name, uint64_t kept, auto ofProgram) {
    cells = {orDash(kept)};
    for (const ProgramMemory &p : memory.programs) cells.push_back(orDash(ofProgram(p)));
    table.row(name, cells);
  };
  uint64_t kept = 0;
  for (int k = 0; k < kKinds; ++k) {
    kept += memory.persistent[k];
    if (memory.persistent[k] || std::any_of(memory.programs.begin(), memory.programs.end(), [&](auto &p) { return p.atPeak[k]; }))
      row(std::string("  ") + kindName(k), memory.persistent[k], [&](auto &p) { return p.atPeak[k]; });
  }
  row("  all at the fullest step", kept, [](auto &p) { return p.live; });
  row("  arena", memory.state, [](auto &p) { return p.height; });
  cells = {human(memory.state)};
  for (const ProgramMemory &p : memory.programs) cells.push_back(human(p.height));
  table.row("", cells);
  std::string text = table.text();
  for (int i = 0; i < plan.programs_size(); ++i) {
    const ProgramMemory &p = memory.programs[size_t(i)];
    if (p.live)
      text += fmt::format("  @{} is fullest at step {} of {}, '{}'\n", p.program, p.peakStep, plan.programs(i).steps_size(),
                          plan.programs(i).steps(int(p.peakStep)).name());
  }
  std::string clipped = memory.total() == memory.unclipped() ? "" : fmt::format(", with --clip {}", grouped(memory.total()));
  return text + fmt::format("  one rank takes {} bytes ({}){}: what is kept and the largest program, since one runs at a time\n",
                            grouped(memory.unclipped()), human(memory.unclipped()), clipped);
}

/// The type in which steps read parameters: that of compute copies, whether buckets keep them or masters are rounded around their uses.
plan::DType readTypeOf(const plan::Plan &plan) {
  for (const plan::Bucket &bucket : plan.buckets())
    if (const plan::StateTensor *copy = plan::tensorOf(bucket, plan::StateTensor::COMPUTE)) return copy->dtype();
  for (const plan::Buffer &buffer : plan.buffers())
    if (buffer.kind() == plan::GATHERED) return buffer.dtype();
  return plan::F32;
}

} // namespace

std::string headline(const plan::Plan &plan) {
  uint64_t parameters = 0;
  for (const plan::Parameter &p : plan.parameters()) parameters += elementsOf(p);
  plan::DType type = readTypeOf(plan);
  std::string computed = type == plan::F32 ? "" : fmt::format(", computed in {}", elementName(type));
  std::string target = plan.target().kind() == plan::Target::CPU ? plan.target().cpu() : plan::targetName(plan.target().kind());
  if (plan.target().kind() == plan::Target::CUDA) target += " " + plan.target().features(0);
  return fmt::format("{}: {} in {}, {}, ZeRO stage {}, {} of {}{}{}\n", plan.model(), counted(parameters, "parameter"),
                     counted(uint64_t(plan.buckets_size()), "bucket"),
                     counted(plan.world(), "rank") + (plan.axes_size() > 1 ? " on axes " + plan::axesText(plan) : ""), plan.stage(),
                     counted(plan.accumulate(), "micro-step") + (plan.vertical() ? " in vertical order" : ""),
                     counted(plan.samples(), "sample"), target.empty() ? "" : ", " + target, computed);
}

std::string memoryTable(const plan::Plan &plan) {
  std::string text;
  for (plan::Tier tier : {plan::DEVICE, plan::HOST, plan::DISK})
    if (std::any_of(plan.arenas().begin(), plan.arenas().end(), [&](const plan::Arena &a) { return a.tier() == tier; }))
      text += tierTable(plan, tier);
  uint64_t all = 0, padding = memoryOf(plan).padding;
  for (const plan::Bucket &bucket : plan.buckets()) all += plan::bytesOf(plan::masterOf(bucket).dtype()) * bucket.elements();
  return text + fmt::format("  padding of buckets, over all ranks: {} bytes of {} ({:.4f} %)\n", grouped(padding), grouped(all),
                            all ? 100.0 * double(padding) / double(all) : 0.0);
}

std::string trafficTable(const plan::Plan &plan) {
  Traffic traffic = trafficOf(plan);
  if (traffic.collectives.empty()) return "sent by one rank in one step: nothing\n";
  Table table;
  table.row("sent by one rank in one step", {"calls", "slices", "bytes"});
  uint64_t calls = 0, slices = 0;
  for (const auto &[name, kind] : traffic.collectives) {
    table.row("  " + name, {grouped(kind.calls), orDash(kind.slices), grouped(kind.bytes)}, human(kind.bytes));
    calls += kind.calls, slices += kind.slices;
  }
  table.row("  all", {grouped(calls), orDash(slices), grouped(traffic.bytes)}, human(traffic.bytes));
  return table.text();
}

std::string laneTable(const plan::Plan &plan) {
  Table table;
  table.row("one step by lane", {"steps", "bytes read and written", "bytes sent", "operations"});
  std::array<Work, kLanes> lanes = workByLane(plan);
  for (int lane = 0; lane < kLanes; ++lane)
    if (const Work &w = lanes[size_t(lane)]; w.steps)
      table.row(std::string("  ") + plan::laneName(size_t(lane)), {grouped(w.steps), orDash(w.touched), orDash(w.sent), orDash(w.flops)});
  return table.text();
}

std::string fileLine(const plan::PlanFile &file) {
  std::string code = file.plan.kernels_size() == 0 ? "no kernels"
                     : file.kernels.empty()        ? "no machine code: it can be read, not run"
                                                   : fmt::format("{} of {}", human(file.kernels.size()),
                                                          file.plan.target().kind() == plan::Target::CUDA ? "PTX" : "machine code");
  return code + "; " + (file.signer ? "signed by key " + file.signer->fingerprint() : "not signed") + "\n";
}

std::string firstPage(const plan::Plan &plan, const std::string &fileLine) {
  return headline(plan) + fileLine + "\n" + memoryTable(plan) + "\n" + trafficTable(plan) + "\n" + laneTable(plan);
}

std::string kernelTable(const plan::Plan &plan) {
  std::vector<uint64_t> launches(size_t(plan.kernels_size()));
  for (auto [program, times] : programsOfStep(plan, false))
    for (const plan::Step &step : plan.programs(program).steps())
      if (const plan::Launch *launch = plan::launchOf(step)) launches[launch->kernel()] += times;
  Table table;
  table.row("kernels", {"launches", "bytes", "operations"});
  for (int i = 0; i < plan.kernels_size(); ++i) {
    const plan::Kernel &k = plan.kernels(i);
    std::string grid = k.has_gpu() ? fmt::format("; {} blocks of {} threads", grouped(k.gpu().blocks()), k.gpu().threads()) : "";
    table.row("  " + k.symbol(), {orDash(launches[size_t(i)]), grouped(k.bytes()), grouped(k.flops())}, k.summary() + grid);
  }
  return table.text();
}

std::string decisionText(const plan::Plan &plan) {
  std::string text;
  for (const plan::Decision &d : plan.decisions()) text += fmt::format("{}: {} ({})\n", d.subject(), d.choice(), d.reason());
  return text.empty() ? "no decision was recorded\n" : text;
}

} // namespace zero::inspect
