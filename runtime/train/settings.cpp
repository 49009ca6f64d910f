#include "runtime/train/settings.h"
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zero::runtime {
namespace {

const char *nameOf(Schedule schedule) {
  static constexpr const char *names[] = {"constant", "cosine", "linear"};
  return names[static_cast<int>(schedule)];
}

std::string text(Schedule value) { return nameOf(value); }
std::string text(double value) { return fmt::format("{}", value); }
std::string text(uint64_t value) { return fmt::format("{}", value); }
std::string text(const std::vector<std::string> &values) { return values.empty() ? "" : fmt::format("'{}'", fmt::join(values, "' '")); }
std::string text(const std::vector<std::pair<std::string, double>> &scales) {
  std::vector<std::string> values;
  for (const auto &[expression, scale] : scales) values.push_back(fmt::format("{}={}", expression, scale));
  return text(values);
}
std::string text(const std::vector<double> &values) { return fmt::format("{}", fmt::join(values, ",")); }
template <typename T> std::string text(const std::optional<T> &value) { return value ? text(*value) : ""; }

std::string given(const std::optional<std::string> &path) { return path ? "given" : ""; }
std::string fileName(const std::optional<std::string> &path) {
  return path ? fmt::format("'{}'", std::filesystem::path(*path).filename().string()) : "";
}

} // namespace

Settings flagSettings(const TrainOptions &options) {
  // Naming every member here is what keeps a new flag from being forgotten: without its place in the list below this does not compile.
  const auto &[plan, requireSignature, data, reading, showBatch, shuffle, steps, lr, schedule, warmup, weightDecay, eps, clip, lossScale,
               betas, noDecay, lrScales, seed, drain, noGraphs, tune, metrics, gradients, checkpoint, resume, exportTo, trace, onlyTrained,
               every, keep, evalData, evalEvery, diskPaths, threads, timeout] = options;
  static_cast<void>(showBatch); // rank 0 shows it
  static_cast<void>(plan);      // compared by its contents
  static_cast<void>(threads);   // machines have what they have
  static_cast<void>(diskPaths); // the same
  return {{"--require-signature", given(requireSignature)},
          {"--data", given(data)},
          {"--labels", textOf(reading.labels)},
          {"--ignore-tensor", text(reading.ignored)},
          {"--shuffle", shuffle ? "given" : ""},
          {"--steps", text(steps)},
          {"--lr", text(lr)},
          {"--schedule", text(schedule)},
          {"--warmup", text(warmup)},
          {"--weight-decay", text(weightDecay)},
          {"--eps", text(eps)},
          {"--clip", text(clip)},
          {"--loss-scale", lossScale == 0u ? "auto" : text(lossScale)},
          {"--betas", text(betas)},
          {"--no-decay", text(noDecay)},
          {"--lr-scale", text(lrScales)},
          {"--seed", text(seed)},
          {"--drain", drain ? "given" : ""},
          {"--no-graphs", noGraphs ? "given" : ""},
          {"--tune", tune ? "given" : ""},
          {"--metrics", given(metrics)},
          {"--gradients", fileName(gradients)},
          {"--checkpoint", given(checkpoint)},
          {"--resume", given(resume)},
          {"--export", fileName(exportTo)},
          {"--only-trained", onlyTrained ? "given" : ""},
          {"--trace", fileName(trace)},
          {"--every", text(every)},
          {"--keep", text(keep)},
          {"--eval-data", given(evalData)},
          {"--eval-every", text(evalEvery)},
          {"--timeout", text(timeout)}};
}

Settings hyperSettings(const plan::Plan &plan, const TrainOptions &options, const Hyper &hyper) {
  bool sgd = plan.optimizer().kind() == plan::SGD;
  Settings settings{{"--lr", text(options.lr)}, {"--schedule", text(options.schedule)}, {"--warmup", text(options.warmup)}};
  if (options.schedule != Schedule::Constant) settings.emplace_back("--steps", text(options.steps)); // where it ends
  settings.emplace_back("--weight-decay", text(hyper.weightDecay));
  settings.emplace_back("--betas", sgd ? text(hyper.momentum) : text(std::vector{hyper.beta1, hyper.beta2}));
  if (!sgd) settings.emplace_back("--eps", text(hyper.eps));
  settings.emplace_back("--clip", text(hyper.clip));
  auto orNothing = [](const std::string &value) { return value.empty() ? "none" : value; };
  settings.emplace_back("--no-decay", orNothing(text(options.noDecay)));
  settings.emplace_back("--lr-scale", orNothing(text(options.lrScales)));
  return settings;
}

uint64_t keptBy(const Settings &settings) {
  constexpr uint64_t kUsual = 2;
  for (const auto &[name, value] : settings) {
    uint64_t kept = 0;
    if (name == "--keep" && std::from_chars(value.data(), value.data() + value.size(), kept).ec == std::errc() && kept > 0) return kept;
  }
  return kUsual;
}

std::vector<std::string> changes(const Settings &before, const Settings &now) {
  std::vector<std::string> sentences;
  for (const auto &[name, value] : now)
    for (const auto &[other, old] : before)
      if (name == other && value != (old == "not given" ? "none" : old)) // as checkpoints of before had it
        sentences.push_back(fmt::format("{} is {}, where the checkpoint's run had {}", name, value, old));
  return sentences;
}

} // namespace zero::runtime
