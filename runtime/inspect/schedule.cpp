//===- schedule.cpp - the steps of each program, for people and for tests -------------------------------===//
#include "runtime/inspect/inspect.h"
#include "runtime/inspect/names.h"
#include "runtime/plan/epilogue.h"
#include "runtime/plan/lanes.h"
#include "runtime/plan/mesh.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::inspect {
namespace {

/// "norm_0 [4 x 32 x 64]": a kernel and what its summary says it covers.
std::string kernelText(const plan::Kernel &kernel) {
  size_t shape = kernel.summary().rfind('[');
  return shape == std::string::npos ? kernel.symbol() : fmt::format("{} {}", kernel.symbol(), kernel.summary().substr(shape));
}

/// " bf16"; nothing for f32.
std::string typeText(plan::DType type) { return type == plan::F32 ? "" : fmt::format(" {}", elementName(type)); }

std::string attentionText(const plan::Attention &a) {
  // A window of 3: a query sees its own position, and two before it where it is causal.
  std::string band = a.has_band() ? fmt::format(" in a window of {}", a.band().last() - a.band().first() + 1) : "";
  std::string cap = a.softcap() > 0 ? fmt::format(" capped at {:g}", a.softcap()) : "";
  return fmt::format("{}x{}x{}x{}{}{}{}{}{}{}", a.batch(), a.heads(), a.q_len(), a.dim(), a.causal() ? " causal" : "", band,
                     a.mask_shape_size() ? " masked" : "", a.bias_parts() ? " biased" : "", cap, typeText(a.dtype()));
}

std::string collectiveText(const plan::Plan &plan, const plan::Collective &c) {
  std::string text = fmt::format("{} {} each{}", collectiveName(c.kind()), c.count(), typeText(c.dtype()));
  if (uint64_t slices = slicesOf(c); slices > 1) text += fmt::format(" in {} slices", slices);
  if (c.order() == plan::Collective::LIBRARY) text += " in the library's order";
  for (uint32_t axis : c.axes()) text += " along " + plan.axes(int(axis)).name();
  return text;
}

/// "tile 0" or "tile 0 to tile 3": buckets, in the table's order.
std::string tilesText(const plan::Plan &plan, const plan::UpdateRows &update) {
  auto name = [&](const plan::UpdateRows::Tile &tile) { return plan.buckets(int(tile.bucket())).name(); };
  std::string first = name(update.tiles(0));
  return update.tiles_size() == 1 ? first : fmt::format("{} to {}", first, name(*update.tiles().rbegin()));
}

std::string whatText(const plan::Plan &plan, const plan::Step &step) {
  switch (step.what_case()) {
  case plan::Step::kLaunch:
    return kernelText(plan.kernels(int(step.launch().kernel())));
  case plan::Step::kUpdate:
    return fmt::format("update {} by {}{}", plan.buckets(int(step.update().bucket())).name(),
                       plan.kernels(int(step.update().launch().kernel())).symbol(),
                       step.update().has_apart() ? fmt::format(", {} set apart", counted(plan::rowsOf(step), "row")) : "");
  case plan::Step::kUpdateRows:
    return fmt::format("update {} of {} by {}", counted(plan::rowsOf(step), "row"), tilesText(plan, step.update_rows()),
                       plan.kernels(int(step.update_rows().launch().kernel())).symbol());
  case plan::Step::kWriteRows:
    return fmt::format("write {} of {} bytes", counted(plan::rowsOf(step), "row"), step.write_rows().row_bytes());
  case plan::Step::kMatmul: {
    const plan::MatMul &m = step.matmul();
    std::string grouped = m.grouped() == plan::MatMul::UNGROUPED ? "" : fmt::format(" in {}", counted(m.groups(), "group"));
    return fmt::format("matmul {}{}x{}x{}{}{}{}{}{}{}{}{}", m.batch() > 1 ? fmt::format("{} of ", m.batch()) : "", m.m(), m.n(), m.k(),
                       m.trans_a() ? " A^T" : "", m.trans_b() ? " B^T" : "", m.accumulate() ? " added" : "", typeText(m.dtype()),
                       m.tf32() ? " as tf32" : "", m.c_dtype() == m.dtype() ? "" : " to f32", plan::formOf(m.epilogue()).text, grouped);
  }
  case plan::Step::kAttention:
    return "attention " + attentionText(step.attention());
  case plan::Step::kAttentionGrad:
    return "attention_grad " + attentionText(step.attention_grad());
  case plan::Step::kCollective:
    return collectiveText(plan, step.collective());
  case plan::Step::kCopy:
    return "copy";
  case plan::Step::kFill:
    return fmt::format("fill {:#x}", step.fill().pattern());
  case plan::Step::WHAT_NOT_SET:
    break;
  }
  return "nothing";
}

std::string operandText(const plan::Plan &plan, const BucketNames &names, const plan::Ref &r, const char *does) {
  if (!r.bytes()) return "";
  const plan::Buffer &b = plan.buffers(int(r.buffer()));
  std::string range, owner = names.parametersIn(r);
  if (r.bytes() != b.bytes() || r.offset() || plan::dependsOnRank(r)) {
    range = fmt::format("[{}", r.offset());
    for (int axis = 0; axis < r.strides_size(); ++axis)
      if (r.strides(axis)) range += fmt::format("+{}*{}", plan.axes_size() == 1 ? "rank" : plan.axes(axis).name(), r.strides(axis));
    range += fmt::format(":+{}]", r.bytes());
  }
  return fmt::format("{:>10}{:<8}{:>14}  {}{}{}\n", "", does, grouped(r.bytes()), b.name(), range, owner.empty() ? "" : "  " + owner);
}

template <typename Waits> std::string waitsText(const Waits &waits) {
  std::string text;
  for (const plan::Wait &w : waits) text += fmt::format(" {}:{}", plan::laneName(w.lane()), w.tick());
  return text;
}

/// What the host's own steps wait for, if they do: in the programs before, and in this one.
std::string hostText(const plan::Plan &plan, const plan::Program &program) {
  std::string text;
  for (const plan::Entry &entry : program.entries())
    if (entry.input_waits_size())
      text += fmt::format("  inputs are written after @{}{}\n", plan.programs(int(entry.after())).name(), waitsText(entry.input_waits()));
  if (program.result_waits_size()) text += fmt::format("  results are read after{}\n", waitsText(program.result_waits()));
  return text;
}

/// " after @step compute:12 disk_write:3" of each step: what it waits for in the program before.
std::vector<std::string> entryTexts(const plan::Plan &plan, const plan::Program &program) {
  std::vector<std::string> texts(size_t(program.steps_size()));
  for (const plan::Entry &entry : program.entries()) {
    int last = -1;
    for (const plan::EntryWait &w : entry.waits()) {
      std::string &text = texts[w.step()];
      if (int(w.step()) != last) text += fmt::format(" after @{}", plan.programs(int(entry.after())).name());
      text += fmt::format(" {}:{}", plan::laneName(w.lane()), w.tick());
      last = int(w.step());
    }
  }
  return texts;
}

} // namespace

std::string scheduleText(const plan::Plan &plan, bool operands) {
  constexpr size_t kWidest = 44; // of `what`; longer ones push what follows to the right
  BucketNames names(plan);
  Memory memory = memoryOf(plan);
  std::string text;
  for (int p = 0; p < plan.programs_size(); ++p) {
    const plan::Program &program = plan.programs(p);
    const ProgramMemory &live = memory.programs[size_t(p)];
    std::vector<std::string> what;
    size_t width = 4;
    for (const plan::Step &step : program.steps()) {
      what.push_back(whatText(plan, step));
      if (what.back().size() <= kWidest) width = std::max(width, what.back().size());
    }
    text += fmt::format("@{}: {}\n  step       lane:tick     live bytes  {:<{}}  where\n", program.name(),
                        counted(uint64_t(program.steps_size()), "step"), "what", width);
    text += hostText(plan, program);
    std::array<uint64_t, kLanes> ticks{};
    std::vector<std::string> after = entryTexts(plan, program);
    for (int i = 0; i < program.steps_size(); ++i) {
      const plan::Step &step = program.steps(i);
      std::string waits;
      for (const plan::Wait &w : step.waits()) waits += fmt::format(" after {}:{}", plan::laneName(w.lane()), w.tick());
      waits += after[size_t(i)];
      text += fmt::format("  {:>4} {:>10}:{:<4} {:>14}  {:<{}}  '{}'{}{}\n", i, plan::laneName(step.lane()), ++ticks[step.lane()],
                          grouped(live.inStep[size_t(i)]), what[size_t(i)], width, step.name(), waits,
                          live.live && uint32_t(i) == live.peakStep ? "  (fullest)" : "");
      if (!operands) continue;
      for (const plan::Ref &ref : step.reads()) text += operandText(plan, names, ref, "reads");
      for (const plan::Ref &ref : step.writes()) text += operandText(plan, names, ref, "writes");
    }
  }
  return text;
}

} // namespace zero::inspect
