// gpu-check speed, slowest, watch: what a run of zerorun reached, and how much of the GPU's memory it took.
#include "runtime/inspect/inspect.h"
#include "runtime/plan/container.h"
#include "runtime/report/record.h"
#include "test/gpu/check/check.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace zero::check {
namespace {

constexpr double kMiB = double(1 << 20);
constexpr size_t kListed = 10;

std::string shareText(double part, double whole) { return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "unknown"; }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + long(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// One step of the plan over all traced runs of its program.
struct Traced {
  const plan::Program *program = nullptr;
  const plan::Step *step = nullptr;
  std::vector<double> seconds{};
  double mean() const { // the first run loads code
    size_t from = seconds.size() > 1;
    double sum = 0;
    for (size_t i = from; i < seconds.size(); ++i) sum += seconds[i];
    return sum / double(seconds.size() - from);
  }
};

struct Trace {
  std::vector<Traced> steps;
  double busy = 0, span = 0; // of lane compute, from the second run of a program on
};

/// Rank 0's events. Each lane's are its steps in the plan's order, again and again.
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

std::string whatOf(const plan::Plan &plan, const plan::Step &step) {
  if (step.has_launch()) return plan.kernels(int(step.launch().kernel())).summary();
  if (step.has_update()) return "update";
  if (!step.has_matmul()) return std::string(runtime::kLaneNames[size_t(step.lane())]);
  const plan::MatMul &p = step.matmul();
  return fmt::format("product {} x {} x {}{}", p.m(), p.k(), p.n(), p.batch() > 1 ? fmt::format(", {} of them", p.batch()) : "");
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
  std::ifstream in(run + ".jsonl");
  std::vector<double> seconds, rates;
  double proven = 0;
  for (std::string line; std::getline(in, line);) {
    nlohmann::json entry = nlohmann::json::parse(line);
    seconds.push_back(entry.at("seconds")), rates.push_back(entry.at("tokens_per_s")), proven = entry.at("memory_bytes");
  }
  if (seconds.size() < 4) throw Error("'" + run + ".jsonl' has fewer than four steps");
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
               runtime::kLaneNames[size_t(each.step->lane())], seconds * 1e6, double(work.touched) / 1e6, double(work.flops) / 1e9,
               double(work.touched) / seconds / 1e9, double(work.flops) / seconds / 1e12,
               reachedOf(file.plan, *each.step, seconds, limits));
  }
  fmt::print("\n{} steps, the slowest is {} with {:.1f} µs\n", trace.steps.size(), trace.steps.front().step->name(),
             trace.steps.front().mean() * 1e6);
}

int watch(int count, char **values) {
  if (count < 2) throw BadUsage("watch wants FILE COMMAND…");
  pid_t child = ::fork(); // before the driver, which does not survive it
  if (child < 0) throw Error(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    std::vector<char *> command(values + 1, values + count);
    command.push_back(nullptr);
    ::execvp(command[0], command.data());
    ::_exit(127);
  }
  int status = 0;
  uint64_t used = 0;
  bool ended = false;
  auto over = [&] { return ended = ended || ::waitpid(child, &status, WNOHANG) == child; };
  try {
    cuda::Gpu gpu(0);
    for (uint64_t most = gpu.freeBytes(), now; !over(); std::this_thread::sleep_for(std::chrono::milliseconds(5)))
      now = gpu.freeBytes(), most = std::max(most, now), used = std::max(used, most - now);
  } catch (const Error &) { // the command will say so itself
  }
  if (!ended) ::waitpid(child, &status, 0);
  std::ofstream(values[0]) << used << "\n";
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace zero::check
