//===- problem.cpp - a plan's program as the judge's plain data ---------------------------------------===//
#include "runtime/judge/problem.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/state.h"

namespace zero::judge {
namespace {

void add(const plan::Plan &plan, Step &step, const plan::Ref &ref, uint64_t rank, bool writes) {
  if (ref.bytes() == 0) return;
  uint64_t begin = plan::offsetOf(plan, ref, rank), stop = plan::offsetOf(plan, ref, plan.world() - 1) + ref.bytes();
  step.accesses.push_back({ref.buffer(), begin, begin + ref.bytes(), writes, ref.offset(), stop});
}

Step convert(const plan::Plan &plan, const plan::Step &from, uint64_t rank) {
  static constexpr const char *collectives[] = {"all_gather", "reduce_scatter", "all_reduce"};
  Step step{from.name(), uint32_t(from.lane()), {}, {}, {}};
  for (const plan::Wait &w : from.waits()) step.waits.push_back({uint32_t(w.lane()), w.tick()});
  for (const plan::Ref &ref : from.reads()) add(plan, step, ref, rank, false);
  for (const plan::Ref &ref : from.writes()) add(plan, step, ref, rank, true);
  if (!from.has_collective()) return step;
  step.collective = std::string(collectives[from.collective().kind()]) + " of " + std::to_string(from.collective().count());
  if (uint64_t slice = from.collective().slice(); slice && slice < from.collective().count())
    step.collective += " in slices of " + std::to_string(slice);
  if (from.collective().order() == plan::Collective::LIBRARY) step.collective += " in the library's order";
  for (uint32_t axis : from.collective().axes()) step.collective += " along " + plan.axes(int(axis)).name();
  return step;
}

} // namespace

std::vector<Access> accessesOf(const plan::Plan &plan, const plan::Step &step, uint64_t rank) { return convert(plan, step, rank).accesses; }

void addHost(Problem &problem) {
  problem.host = uint32_t(problem.steps.size());
  Step inputs{"the host's inputs", plan::COMPUTE, {}, {}, {}}, results{"the host's results", plan::COMPUTE, problem.resultWaits, {}, {}};
  for (Access input : problem.inputs) input.writes = true, inputs.accesses.push_back(input);
  for (const Result &result : problem.results) results.accesses.push_back({result.buffer, result.begin, result.end, false});
  problem.steps.push_back(std::move(inputs));
  problem.steps.push_back(std::move(results));
}

Problem fromPlan(const plan::Plan &plan, int program, uint64_t rank) {
  Problem problem;
  const plan::Program &p = plan.programs(program);
  problem.name = p.name();
  for (int i = 0; i < plan.arenas_size(); ++i)
    problem.arenas.push_back(
        {plan.arenas(i).name(), plan.arenas(i).persistent() ? plan.arenas(i).bytes() : p.arena_bytes(i), plan.arenas(i).alignment()});
  // Buffers of other programs keep their index but are out of reach: they are given no life.
  for (const plan::Buffer &b : plan.buffers()) {
    bool ours = b.program() == program || b.program() < 0;
    problem.buffers.push_back({b.name(), b.arena(), ours ? b.offset() : 0, ours ? b.bytes() : 0, b.program() < 0, b.first(), b.last()});
  }
  if (p.role() == plan::Program::FIRST) // the sums that are there are of the optimizer step before
    for (const plan::Bucket &bucket : plan.buckets())
      if (const plan::StateTensor *sum = plan::tensorOf(bucket, plan::StateTensor::GRADIENT))
        problem.buffers[sum->ref().buffer()].stale = true;
  for (const plan::Step &step : p.steps()) problem.steps.push_back(convert(plan, step, rank));
  auto result = [&](const char *name, const plan::Ref &ref) {
    problem.results.push_back({name, ref.buffer(), ref.offset(), ref.offset() + ref.bytes()});
  };
  if (p.has_loss()) result("loss", p.loss());
  if (p.has_gradient_norm()) result("gradient norm", p.gradient_norm());
  auto waits = [](const google::protobuf::RepeatedPtrField<plan::Wait> &list) {
    std::vector<Wait> waits;
    for (const plan::Wait &w : list) waits.push_back({uint32_t(w.lane()), w.tick()});
    return waits;
  };
  for (const plan::Input &input : plan.inputs()) {
    uint64_t begin = plan::offsetOf(plan, input.ref(), rank);
    problem.inputs.push_back({input.ref().buffer(), begin, begin + input.ref().bytes(), true});
  }
  problem.resultWaits = waits(p.result_waits());
  for (const plan::Entry &entry : p.entries()) {
    Entry &to = problem.entries.emplace_back(Entry{plan.programs(int(entry.after())).name(), waits(entry.input_waits()), {}});
    for (const plan::EntryWait &w : entry.waits()) to.waits.push_back({w.step(), {uint32_t(w.lane()), w.tick()}});
  }
  addHost(problem);
  return problem;
}

} // namespace zero::judge
