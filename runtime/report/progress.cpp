#include "runtime/report/progress.h"
#include "runtime/base/why_not_written.h"
#include "runtime/process/streams.h"
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace zero::runtime {
namespace {
double since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

// A line that wraps could not be rewritten in place: it is cut to the terminal's width, asked each time because windows change.
std::string fitting(std::string text, std::FILE *out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && text.size() >= size.ws_col) text.resize(size.ws_col - 1u);
  return text;
}
} // namespace

std::string durationText(double seconds) {
  auto s = static_cast<uint64_t>(std::llround(seconds));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  if (s >= 48 * 3600) return fmt::format("{} days", s / 86400);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string progressText(const StepRecord &record, double secondsLeft) {
  std::string text = fmt::format("step {:>{}}/{}  epoch {:.2f}  loss {:.4f}", record.step, fmt::to_string(record.steps).size(),
                                 record.steps, record.epoch, record.loss);
  for (size_t i = 0; i < record.losses.size(); ++i) text += fmt::format("{}{:.4f}", i ? " " : " (", record.losses[i]);
  text += fmt::format("{}  lr {:.2e}", record.losses.empty() ? "" : ")", record.lr);
  if (record.gradientNorm) text += fmt::format("  |g| {:.3f}", *record.gradientNorm);
  if (record.lossScale)
    text += fmt::format("  scale {}{}", *record.lossScale, record.skipped ? fmt::format(" ({} skipped)", record.skipped) : "");
  if (record.evalLoss) text += fmt::format("  held-out loss {:.4f}", *record.evalLoss);
  text += fmt::format("  {:.{}f} {}/s", record.perSecond, record.perSecond < 10 ? 1 : 0, record.countsTokens ? "tokens" : "samples");
  if (record.step < record.steps) text += fmt::format("  {} left", durationText(secondsLeft));
  return text;
}

uint64_t logStride(uint64_t steps, double secondsPerStep) {
  double most = std::min(static_cast<double>(steps) / 20, 10 / std::max(secondsPerStep, 1e-9));
  uint64_t stride = 1;
  for (uint64_t unit = 1; static_cast<double>(unit) <= most; unit *= 10)
    for (uint64_t n : {1, 2, 5})
      if (static_cast<double>(n * unit) <= most) stride = n * unit;
  return stride;
}

ProgressLine::ProgressLine(std::FILE *out, bool rewrite)
    : out(out), rewrite(rewrite), start(std::chrono::steady_clock::now()), last(start) {}

ProgressLine::~ProgressLine() {
  if (open) put("\n");
}

void ProgressLine::put(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fflush(out) == 0) {
    failed = 0;
    return;
  }
  int reason = errno;
  if (!failed) complain(fmt::format("zerorun: cannot write to standard output: {}", whyNotWritten(reason)));
  failed = reason;
  __fpurge(out); // it would be tried again, and block what follows
}

void ProgressLine::show(const StepRecord &record) {
  if (first == 0) first = record.step;
  // The first step also warms caches up; from the second on the mean is a fair forecast. It includes evaluation and checkpoints.
  double left = since(start) / static_cast<double>(record.step - first + 1) * static_cast<double>(record.steps - record.step);
  bool finished = record.step == record.steps;
  if (rewrite) {
    if (!finished && !record.evalLoss && record.step != first && since(last) < 0.1) return;
    open = !finished && !record.evalLoss;
    std::string text = progressText(record, left);
    put("\r\x1b[K" + (open ? fitting(text, out) : text + "\n"));
  } else {
    // The first step, the last and each multiple of a round number, so that the lines fall where evaluations do.
    double mean = since(start) / static_cast<double>(record.step - first + 1);
    if (!finished && !record.evalLoss && record.step != first && record.step % logStride(record.steps, mean) != 0) return;
    put(progressText(record, left) + "\n");
  }
  last = std::chrono::steady_clock::now();
}

void ProgressLine::say(const std::string &sentence) {
  put((open ? "\r\x1b[K" : "") + sentence + "\n");
  open = false;
  if (failed) complain("zerorun: " + sentence);
}

} // namespace zero::runtime
