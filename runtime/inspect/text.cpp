//===- text.cpp - tables and the schedule, for people and for tests -----------------------------------===//
#include "runtime/inspect/inspect.h"
#include "runtime/judge/problem.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::inspect {
namespace {

constexpr const char *kKindNames[kKinds] = {"?",     "parameter",  "gradient", "optimizer", "constant",
                                            "input", "activation", "gathered", "staging",   "scalar"};

std::string mebibytes(uint64_t bytes) { return fmt::format("{:.1f} MiB", double(bytes) / (1 << 20)); }

std::string row(const std::string &what, const std::string &kind, uint64_t bytes) {
  return fmt::format("  {:<8}{:<12}{:>20}{:>14}\n", what, kind, grouped(bytes), mebibytes(bytes));
}

class StepText {
public:
  explicit StepText(const plan::Plan &plan) : plan(plan) {}

  std::string ref(const plan::Ref &r) const {
    const plan::Buffer &b = plan.buffers(int(r.buffer()));
    std::string text = b.name();
    if (r.bytes() != b.bytes() || r.offset() || r.rank_stride())
      text += fmt::format("[{}{}:+{}]", r.offset(), r.rank_stride() ? fmt::format("+rank*{}", r.rank_stride()) : "", r.bytes());
    return text;
  }

  std::string args(const plan::Launch &launch) const {
    std::string text = "(";
    for (int i = 0; i < launch.args_size(); ++i)
      text += (uint32_t(i) == launch.outputs_from() ? (i ? " -> " : "-> ") : i ? ", " : "") + ref(launch.args(i));
    return text + ")";
  }

  std::string what(const plan::Step &step) const {
    switch (step.what_case()) {
    case plan::Step::kLaunch:
      return "launch " + plan.kernels(int(step.launch().kernel())).symbol() + args(step.launch());
    case plan::Step::kMatmul: {
      const plan::MatMul &m = step.matmul();
      return fmt::format("matmul {}{}x{}x{}{} ({}{}, {}{} -> {})", m.batch() > 1 ? fmt::format("{} of ", m.batch()) : "", m.m(), m.n(),
                         m.k(), m.accumulate() ? " added" : "", ref(m.a()), m.trans_a() ? "^T" : "", ref(m.b()), m.trans_b() ? "^T" : "",
                         ref(m.c()));
    }
    case plan::Step::kAttention: {
      const plan::Attention &a = step.attention();
      return fmt::format("attention {}x{}x{}x{}{} ({}, {}, {}{} -> {}, {})", a.batch(), a.heads(), a.q_len(), a.dim(),
                         a.causal() ? " causal" : "", ref(a.q()), ref(a.k()), ref(a.v()), a.mask_shape_size() ? ", " + ref(a.mask()) : "",
                         ref(a.out()), ref(a.lse()));
    }
    case plan::Step::kAttentionGrad: {
      const plan::AttentionGrad &g = step.attention_grad();
      const plan::Attention &a = g.forward();
      return fmt::format("attention_grad {}x{}x{}x{}{} ({}, {}, {}, {}, {}, {} -> {}, {}, {})", a.batch(), a.heads(), a.q_len(), a.dim(),
                         a.causal() ? " causal" : "", ref(a.q()), ref(a.k()), ref(a.v()), ref(a.out()), ref(a.lse()), ref(g.dout()),
                         ref(g.dq()), ref(g.dk()), ref(g.dv()));
    }
    case plan::Step::kCollective: {
      static constexpr const char *names[] = {"all_gather", "reduce_scatter", "all_reduce"};
      const plan::Collective &c = step.collective();
      return fmt::format("{} {} each ({} -> {})", names[c.kind()], c.count(), ref(c.src()), ref(c.dst()));
    }
    case plan::Step::kCopy:
      return fmt::format("copy ({} -> {})", ref(step.copy().src()), ref(step.copy().dst()));
    case plan::Step::kFill:
      return fmt::format("fill {:#x} ({})", step.fill().pattern(), ref(step.fill().dst()));
    case plan::Step::kUpdate:
      return fmt::format("update {} by {}{}", plan.buckets(int(step.update().bucket())).name(),
                         plan.kernels(int(step.update().launch().kernel())).symbol(), args(step.update().launch()));
    case plan::Step::WHAT_NOT_SET:
      break;
    }
    return "nothing";
  }

private:
  const plan::Plan &plan;
};

} // namespace

const char *kindName(int kind) { return kind >= 0 && kind < kKinds ? kKindNames[kind] : "?"; }

std::string grouped(uint64_t n) {
  std::string digits = std::to_string(n), text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) text += ' ';
    text += digits[i];
  }
  return text;
}

std::string headline(const plan::Plan &plan) {
  uint64_t parameters = 0;
  for (const plan::Parameter &p : plan.parameters()) {
    uint64_t n = 1;
    for (int64_t d : p.shape()) n *= uint64_t(d);
    parameters += n;
  }
  return fmt::format("{}: {} parameters in {} buckets, {} rank{}, ZeRO stage {}, {} micro-step{} of {} sample{}, {}\n", plan.model(),
                     grouped(parameters), plan.buckets_size(), plan.world(), plan.world() == 1 ? "" : "s", plan.stage(), plan.accumulate(),
                     plan.accumulate() == 1 ? "" : "s", plan.samples(), plan.samples() == 1 ? "" : "s", plan.target().cpu());
}

std::string memoryTable(const plan::Plan &plan) {
  Memory memory = memoryOf(plan);
  std::string text = "memory of one rank\n";
  for (int k = 0; k < kKinds; ++k)
    if (memory.persistent[k]) text += row("state", kKindNames[k], memory.persistent[k]);
  text += row("", "arena", memory.state);
  for (const ProgramMemory &p : memory.programs) {
    const plan::Program &program =
        *std::find_if(plan.programs().begin(), plan.programs().end(), [&](auto &q) { return q.name() == p.program; });
    text += fmt::format("  work of @{}, fullest at step {} '{}'\n", p.program, p.peakStep,
                        p.peakStep < uint32_t(program.steps_size()) ? program.steps(int(p.peakStep)).name() : "");
    for (int k = 0; k < kKinds; ++k)
      if (p.atPeak[k]) text += row("", kKindNames[k], p.atPeak[k]);
    text += row("", "arena", p.height);
  }
  text += row("all", "", memory.total());
  text +=
      fmt::format("  padding {} bytes of {} ({:.4f} %)\n", grouped(memory.padding), grouped(memory.persistent[plan::PARAMETER]),
                  memory.persistent[plan::PARAMETER] ? 100.0 * double(memory.padding) / double(memory.persistent[plan::PARAMETER]) : 0.0);
  return text;
}

std::string trafficTable(const plan::Plan &plan) {
  Traffic traffic = trafficOf(plan);
  std::string text = "sent by one rank in one step\n";
  for (const auto &[name, kind] : traffic.collectives)
    text += fmt::format("  {:<16}{:>6} calls{:>20}{:>14}\n", name, kind.calls, grouped(kind.bytes), mebibytes(kind.bytes));
  return text + fmt::format("  {:<28}{:>20}{:>14}\n", "all", grouped(traffic.bytes), mebibytes(traffic.bytes));
}

std::string kernelTable(const plan::Plan &plan) {
  std::vector<uint64_t> launches(plan.kernels_size());
  for (int program : programsOfStep(plan, false))
    for (const plan::Step &step : plan.programs(program).steps())
      if (step.has_launch() || step.has_update()) ++launches[step.has_launch() ? step.launch().kernel() : step.update().launch().kernel()];
  std::string text = "kernels (launches in one step, bytes and flops of one launch)\n";
  for (int i = 0; i < plan.kernels_size(); ++i) {
    const plan::Kernel &k = plan.kernels(i);
    text += fmt::format("  {:<36}{:>5}{:>16}{:>16}  {}\n", k.symbol(), launches[i], grouped(k.bytes()), grouped(k.flops()), k.summary());
  }
  return text;
}

std::string scheduleText(const plan::Plan &plan) {
  StepText steps(plan);
  std::string text;
  for (const plan::Program &program : plan.programs()) {
    text += fmt::format("@{}\n", program.name());
    std::array<uint64_t, 8> ticks{};
    for (int i = 0; i < program.steps_size(); ++i) {
      const plan::Step &step = program.steps(i);
      std::string waits;
      for (const plan::Wait &w : step.waits()) waits += fmt::format(" after {}:{}", judge::laneName(w.lane()), w.tick());
      text += fmt::format("  {:>4} {:>8}:{:<4} {}{}  '{}'\n", i, judge::laneName(step.lane()), ++ticks[step.lane()], steps.what(step),
                          waits, step.name());
    }
  }
  return text;
}

std::string decisionText(const plan::Plan &plan) {
  std::string text;
  for (const plan::Decision &d : plan.decisions()) text += fmt::format("{}: {} ({})\n", d.subject(), d.choice(), d.reason());
  return text.empty() ? "no decision was recorded\n" : text;
}

} // namespace zero::inspect
