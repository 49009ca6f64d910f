// gpu-check speed, slowest: what a run of zerorun reached.
#include "runtime/inspect/inspect.h"
#include "runtime/plan/container.h"
#include "runtime/plan/epilogue.h"
#include "runtime/plan/lanes.h"
#include "runtime/report/record.h"
#include "test/gpu/check/trace.h"
#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace zero::check {
namespace {

constexpr double kMiB = double(1 << 20);
constexpr size_t kListed = 10;

std::string shareText(double part, double whole) { return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "unknown"; }

std::string whatOf(const plan::Plan &plan, const plan::Step &step) {
  if (step.has_launch()) return plan.kernels(int(step.launch().kernel())).summary();
  if (step.has_update()) return "update";
  if (!step.has_matmul()) return std::string(plan::kLaneNames[size_t(step.lane())]);
  const plan::MatMul &p = step.matmul();
  return fmt::format("product {} x {} x {}{}{}", p.m(), p.k(), p.n(), p.batch() > 1 ? fmt::format(", {} of them", p.batch()) : "",
                     plan::formOf(p.epilogue()).text);
}

/// The fastest that a step can be by what was measured, as a part of its time; and of what.
std::string reachedOf(const plan::Plan &plan, const plan::Step &step, double seconds, const Limits &limits) {
  inspect::Work work = inspect::workOf(plan, step);
  const char *products = step.has_matmul() && step.matmul().dtype() == plan::F32 ? "products_f32" : "products_bf16";
  double copy = limits.of("device_copy"), multiply = step.has_matmul() ? limits.of(products) : 0;
  double byBytes = copy > 0 ? double(work.touched) / copy / seconds : 0,
         byFlops = multiply > 0 ? double(work.flops) / multiply / seconds : 0;
  if (byBytes == 0 && byFlops == 0) return "unknown";
  return fmt::format("{:.0f} % of {}", 100 * std::max(byBytes, byFlops), byFlops > byBytes ? "products" : "device copy");
}

} // namespace

void speed(const Arguments &arguments) {
  if (arguments.names.size() != 1) throw BadUsage("speed wants RUN");
  const std::string &run = arguments.names[0];
  double flops = arguments.number("--flops-per-token", 0), peak = arguments.number("--peak", 0);
  Limits limits(arguments.text("--limits"));
  Metrics metrics = readMetrics(run + ".jsonl", /*least=*/4);
  auto &[seconds, rates, proven] = metrics;
  auto skipped = long(std::min<size_t>(10, seconds.size() / 2)); // while code is loaded and steps are traced
  seconds.erase(seconds.begin(), seconds.begin() + skipped), rates.erase(rates.begin(), rates.begin() + skipped);
  double each = median(seconds), rate = median(rates), reached = rate * flops;
  fmt::print("| | |\n|---|---|\n| step | {:.4f} s, the fastest {:.4f} s, of {} |\n| tokens | {:.0f} in a second |\n", each,
             *std::ranges::min_element(seconds), seconds.size(), rate);
  fmt::print("| model flops | {:.2f} TFLOP/s: {:.4g} for a token |\n", reached / 1e12, flops);
  fmt::print("| of this GPU's peak ({:.0f} TFLOP/s) | {} |\n", peak / 1e12, shareText(reached, peak));
  fmt::print("| of the fastest product measured | {} |\n", shareText(reached, limits.of("products_bf16")));
  std::ifstream memory(run + ".memory");
  std::string taken = "not measured";
  if (double used = 0; memory >> used) {
    taken = fmt::format("{:.1f} MiB with everything around them", used / kMiB);
    if (used == 0) taken = "not measured: the GPU's free memory did not change";
    if (used > 0 && used < proven * 0.5)
      throw Error(fmt::format("the GPU gave {:.0f} bytes, where the plan's arenas have {:.0f}", used, proven));
    if (used > proven + 2048 * kMiB)
      throw Error(fmt::format("the run took {:.0f} bytes of the GPU, where the plan says {:.0f}", used, proven));
  }
  fmt::print("| memory | {:.1f} MiB of arenas as proven; {} |\n\n", proven / kMiB, taken);
  fmt::print("{:.0f} tokens/s, {} of the GPU's peak\n", rate, shareText(reached, peak));
}

void slowest(const Arguments &arguments) {
  if (arguments.names.size() != 2) throw BadUsage("slowest wants PLAN TRACE");
  plan::PlanFile file = plan::load(arguments.names[0]);
  Limits limits(arguments.text("--limits"));
  Trace trace = readTrace(file.plan, arguments.names[1]);
  std::map<std::string, std::pair<uint64_t, double>> kinds;
  double all = 0;
  for (const Traced &each : trace.steps) {
    std::string kind = each.step->has_launch()   ? "kernels"
                       : each.step->has_matmul() ? "products"
                       : each.step->has_update() ? "updates"
                                                 : "copies, fills, collectives";
    ++kinds[kind].first, kinds[kind].second += each.mean();
    all += each.mean();
  }
  fmt::print("| steps | | ms | |\n|---|---|---|---|\n");
  for (const auto &[kind, sum] : kinds)
    fmt::print("| {} | {} | {:.3f} | {} |\n", kind, sum.first, sum.second * 1e3, shareText(sum.second, all));
  if (trace.span > 0) fmt::print("| lane compute between its steps | | | {} |\n", shareText(trace.span - trace.busy, trace.span));
  std::ranges::stable_sort(trace.steps, std::greater(), &Traced::mean);
  fmt::print("\n| step | what | lane | µs | MB | GFLOP | GB/s | TFLOP/s | of what was measured |\n|---|---|---|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < std::min(kListed, trace.steps.size()); ++i) {
    const Traced &each = trace.steps[i];
    inspect::Work work = inspect::workOf(file.plan, *each.step);
    double seconds = std::max(each.mean(), 1e-9);
    fmt::print("| {} | {} | {} | {:.1f} | {:.2f} | {:.3f} | {:.1f} | {:.2f} | {} |\n", each.step->name(), whatOf(file.plan, *each.step),
               plan::kLaneNames[size_t(each.step->lane())], seconds * 1e6, double(work.touched) / 1e6, double(work.flops) / 1e9,
               double(work.touched) / seconds / 1e9, double(work.flops) / seconds / 1e12,
               reachedOf(file.plan, *each.step, seconds, limits));
  }
  fmt::print("\n{} steps, the slowest is {} with {:.1f} µs\n", trace.steps.size(), trace.steps.front().step->name(),
             trace.steps.front().mean() * 1e6);
}

} // namespace zero::check
