//===- problem.cpp - a plan's program as the judge's plain data ---------------------------------------===//
#include "runtime/judge/problem.h"
#include <map>

namespace zero::judge {
namespace {

constexpr const char *kLanes[] = {"compute", "gather", "reduce", "to_device", "to_host", "disk_read", "disk_write", "update"};

class Reader {
public:
  Reader(Step &step, uint64_t rank) : step(step), rank(rank) {}
  void reads(const plan::Ref &ref) { add(ref, false); }
  void writes(const plan::Ref &ref) { add(ref, true); }

  void launch(const plan::Launch &launch) {
    for (int i = 0; i < launch.args_size(); ++i) add(launch.args(i), uint32_t(i) >= launch.outputs_from());
  }

  void collective(const plan::Collective &c) {
    static constexpr const char *names[] = {"all_gather", "reduce_scatter", "all_reduce"};
    step.collective = std::string(names[c.kind()]) + " of " + std::to_string(c.count());
    reads(c.src());
    writes(c.dst());
    if (c.staging().bytes()) writes(c.staging());
  }

private:
  void add(const plan::Ref &ref, bool write) {
    if (ref.bytes() == 0) return;
    uint64_t begin = ref.offset() + rank * ref.rank_stride();
    step.accesses.push_back({ref.buffer(), begin, begin + ref.bytes(), write});
  }
  Step &step;
  uint64_t rank;
};

void readAttention(Reader &r, const plan::Attention &a) {
  for (const plan::Ref *ref : {&a.q(), &a.k(), &a.v()}) r.reads(*ref);
  if (a.mask_shape_size()) r.reads(a.mask());
}

Step convert(const plan::Step &from, uint64_t rank) {
  Step step{from.name(), uint32_t(from.lane()), {}, {}, {}};
  for (const plan::Wait &w : from.waits()) step.waits.push_back({uint32_t(w.lane()), w.tick()});
  Reader r(step, rank);
  switch (from.what_case()) {
  case plan::Step::kLaunch:
    r.launch(from.launch());
    break;
  case plan::Step::kMatmul:
    r.reads(from.matmul().a());
    r.reads(from.matmul().b());
    if (from.matmul().accumulate()) r.reads(from.matmul().c());
    r.writes(from.matmul().c());
    break;
  case plan::Step::kAttention:
    readAttention(r, from.attention());
    r.writes(from.attention().out());
    r.writes(from.attention().lse());
    break;
  case plan::Step::kAttentionGrad: {
    const plan::AttentionGrad &g = from.attention_grad();
    readAttention(r, g.forward());
    r.reads(g.forward().out());
    r.reads(g.forward().lse());
    r.reads(g.dout());
    for (const plan::Ref *ref : {&g.dq(), &g.dk(), &g.dv()}) r.writes(*ref);
    break;
  }
  case plan::Step::kCollective:
    r.collective(from.collective());
    break;
  case plan::Step::kCopy:
    r.reads(from.copy().src());
    r.writes(from.copy().dst());
    break;
  case plan::Step::kFill:
    r.writes(from.fill().dst());
    break;
  case plan::Step::kUpdate:
    r.launch(from.update().launch());
    r.reads(from.update().gradient());
    break;
  case plan::Step::WHAT_NOT_SET:
    break;
  }
  return step;
}

} // namespace

std::vector<Access> accessesOf(const plan::Step &step, uint64_t rank) { return convert(step, rank).accesses; }

const char *laneName(uint32_t lane) { return lane < std::size(kLanes) ? kLanes[lane] : "?"; }

Problem fromPlan(const plan::Plan &plan, int program, uint64_t rank) {
  Problem problem;
  const plan::Program &p = plan.programs(program);
  problem.name = p.name();
  for (int i = 0; i < plan.arenas_size(); ++i)
    problem.arenas.push_back({plan.arenas(i).name(), plan.arenas(i).persistent() ? plan.arenas(i).bytes() : p.arena_bytes(i)});
  // Buffers of other programs keep their index but are out of reach: they are given no life.
  for (const plan::Buffer &b : plan.buffers()) {
    bool ours = b.program() == program || b.program() < 0;
    problem.buffers.push_back({b.name(), b.arena(), ours ? b.offset() : 0, ours ? b.bytes() : 0, b.program() < 0, b.first(), b.last()});
  }
  for (const plan::Step &step : p.steps()) problem.steps.push_back(convert(step, rank));
  auto result = [&](const char *name, const plan::Ref &ref) {
    problem.results.push_back({name, ref.buffer(), ref.offset(), ref.offset() + ref.bytes()});
  };
  if (p.has_loss()) result("loss", p.loss());
  if (p.has_gradient_norm()) result("gradient norm", p.gradient_norm());
  return problem;
}

} // namespace zero::judge
