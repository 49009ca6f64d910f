#include "runtime/process/streams.h"
#include "runtime/report/metrics.h"
#include "runtime/report/progress.h"
#include "runtime/report/trace.h"
#include "test/unit/run_fixtures.h"
#include <cerrno>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <pty.h>

using namespace zero::runtime;
using zero::test::Folder;

namespace {
StepRecord record(uint64_t step) {
  StepRecord r;
  r.step = step, r.steps = 40, r.loss = 1.1f, r.lr = 1e-3, r.seconds = 0.5, r.perSecond = 100, r.epoch = 0.375;
  r.laneBytes[1] = 64, r.laneBytes[2] = 128;
  return r;
}
} // namespace

TEST(Metrics, ALineHoldsWhatIsKnown) {
  StepRecord r = record(3);
  nlohmann::json line = nlohmann::json::parse(metricsLine(r));
  EXPECT_EQ(line["step"], 3);
  EXPECT_EQ(line["loss"].get<float>(), 1.1f);
  EXPECT_EQ(line["bytes"], (nlohmann::json{{"gather", 64}, {"reduce", 128}}));
  EXPECT_FALSE(line.contains("grad_norm"));
  EXPECT_FALSE(line.contains("eval_loss"));
  EXPECT_EQ(line["epoch"], 0.375);
  EXPECT_EQ(line["tokens_per_s"], 100);
  r.gradientNorm = 2.5f, r.evalLoss = 0.25, r.loss = NAN;
  line = nlohmann::json::parse(metricsLine(r));
  EXPECT_EQ(line["grad_norm"], 2.5);
  EXPECT_EQ(line["eval_loss"], 0.25);
  EXPECT_TRUE(line["loss"].is_null());
  r.losses = {1.5f, INFINITY};
  EXPECT_EQ(nlohmann::json::parse(metricsLine(r))["losses"], (nlohmann::json{1.5, nullptr}));
  r.countsTokens = false;
  line = nlohmann::json::parse(metricsLine(r));
  EXPECT_EQ(line["samples_per_s"], 100);
  EXPECT_FALSE(line.contains("tokens_per_s"));
}

TEST(Metrics, AResumedRunDropsTheStepsItMakesAgain) {
  Folder folder;
  {
    Metrics metrics(folder / "m.jsonl", std::nullopt);
    for (uint64_t step : {1, 2, 3, 4}) metrics.write(record(step));
  }
  folder.write("m.jsonl", folder.read("m.jsonl") + "{\"step\": 5, \"lo"); // killed while writing
  {
    Metrics metrics(folder / "m.jsonl", 2);
    metrics.write(record(3));
  }
  std::stringstream lines(folder.read("m.jsonl"));
  std::vector<uint64_t> steps;
  for (std::string line; std::getline(lines, line);) steps.push_back(nlohmann::json::parse(line)["step"]);
  EXPECT_EQ(steps, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_NE(zero::test::refusalOf([&] { Metrics(folder / "no/such/m.jsonl", std::nullopt); }), "");
}

TEST(Metrics, WhatIsThereMayStay) {
  Folder folder;
  Metrics(folder / "m.jsonl", std::nullopt).write(record(7));
  std::string seventh = folder.read("m.jsonl");
  folder.write("m.jsonl.1", "of the user");
  Metrics metrics(folder / "m.jsonl", std::nullopt, /*stays=*/true);
  metrics.write(record(1));
  EXPECT_EQ(metrics.before(), folder / "m.jsonl.2");
  EXPECT_EQ(folder.read("m.jsonl"), metricsLine(record(1)) + "\n");
  EXPECT_EQ(folder.read("m.jsonl.2"), seventh);
  EXPECT_EQ(folder.read("m.jsonl.1"), "of the user");
  EXPECT_NE(zero::test::refusalOf([&] { Metrics(folder / "m.jsonl", std::nullopt, true); }).find("another run"), std::string::npos);
  EXPECT_EQ(Metrics(folder / "new.jsonl", std::nullopt, true).before(), "");
}

TEST(Metrics, OneRunAtATime) {
  Folder folder;
  Metrics first(folder / "m.jsonl", std::nullopt);
  first.write(record(1));
  for (std::optional<uint64_t> resumed : {std::optional<uint64_t>(), std::optional<uint64_t>(0)})
    EXPECT_NE(zero::test::refusalOf([&] { Metrics(folder / "m.jsonl", resumed); }).find("is being written by another run"),
              std::string::npos);
  EXPECT_EQ(folder.read("m.jsonl"), metricsLine(record(1)) + "\n"); // nothing is lost by trying
}

TEST(Streams, NamesDoNotCommandATerminal) {
  testing::internal::CaptureStderr();
  complain("'a\x1b[2J\n\x7f\u00e9\u009b1m' is damaged");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "'a\\x1b[2J\\x0a\\x7f\u00e9\\xc2\\x9b1m' is damaged\n");
}

TEST(Progress, WhatNobodyReadsIsSaidOnce) {
  Folder folder;
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  std::FILE *out = fdopen(ends[1], "w");
  testing::internal::CaptureStderr();
  {
    ProgressLine line(out, false);
    EXPECT_EQ(line.failure(), 0);
    line.show(record(1));
    EXPECT_EQ(line.failure(), EPIPE);
    line.show(record(2));
    line.say("stopped after step 2");
  }
  std::fclose(out);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "zerorun: cannot write to standard output: Broken pipe\nzerorun: stopped after step 2\n");
}

TEST(Progress, TextNamesStepLossAndRest) {
  EXPECT_EQ(durationText(48), "0:48");
  EXPECT_EQ(durationText(3723), "1:02:03");
  EXPECT_EQ(durationText(47 * 3600), "47:00:00");
  EXPECT_EQ(durationText(75 * 3600), "3 days");
  EXPECT_EQ(progressText(record(3), 65), "step  3/40  epoch 0.38  loss 1.1000  lr 1.00e-03  100 tokens/s  1:05 left");
  StepRecord r = record(40);
  r.losses = {0.5f, 1.2f};
  EXPECT_EQ(progressText(r, 0), "step 40/40  epoch 0.38  loss 1.1000 (0.5000 1.2000)  lr 1.00e-03  100 tokens/s");
  r.losses.clear();
  r.countsTokens = false, r.perSecond = 2.25;
  EXPECT_EQ(progressText(r, 0), "step 40/40  epoch 0.38  loss 1.1000  lr 1.00e-03  2.2 samples/s");
}

TEST(Progress, LinesStandARoundNumberOfStepsApart) {
  EXPECT_EQ(logStride(500, 0.1), 20u);
  EXPECT_EQ(logStride(1000, 0.1), 50u);
  EXPECT_EQ(logStride(1000, 0.9), 10u); // ten seconds are eleven steps
  EXPECT_EQ(logStride(1000, 30), 1u);
  EXPECT_EQ(logStride(7, 0.1), 1u);
  Folder folder;
  std::FILE *out = std::fopen((folder / "log").c_str(), "w");
  {
    ProgressLine line(out, false);
    for (uint64_t step = 1; step <= 100; ++step) {
      StepRecord r = record(step);
      r.steps = 100;
      if (step % 50 == 0) r.evalLoss = 2;
      line.show(r);
    }
  }
  std::fclose(out);
  std::stringstream log(folder.read("log"));
  std::vector<uint64_t> shown, expected{1};
  for (uint64_t step = 5; step <= 100; step += 5) expected.push_back(step);
  for (std::string line; std::getline(log, line);) shown.push_back(std::stoull(line.substr(5)));
  EXPECT_EQ(shown, expected);
}

TEST(Progress, ANarrowTerminalIsNotOverrun) {
  winsize size{24, 30, 0, 0};
  int terminal = 0, end = 0;
  ASSERT_EQ(openpty(&terminal, &end, nullptr, nullptr, &size), 0);
  std::FILE *out = fdopen(end, "w");
  {
    ProgressLine line(out, true);
    line.show(record(1)), line.show(record(40));
  }
  char bytes[1000];
  std::string text(bytes, static_cast<size_t>(std::max<ssize_t>(0, read(terminal, bytes, sizeof bytes))));
  std::string first = progressText(record(1), 0), last = progressText(record(40), 0);
  EXPECT_EQ(text, "\r\x1b[K" + first.substr(0, 29) + "\r\x1b[K" + last + "\r\n"); // what stays is whole
  std::fclose(out), close(terminal);
}

TEST(Progress, ALogGetsAboutTwentyLines) {
  Folder folder;
  std::FILE *out = std::fopen((folder / "log").c_str(), "w");
  {
    ProgressLine line(out, false);
    for (uint64_t step = 1; step <= 40; ++step) line.show(record(step));
  }
  std::fclose(out);
  std::string log = folder.read("log");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 21); // the first, and every second one
  EXPECT_EQ(log.find('\r'), std::string::npos);
  EXPECT_NE(log.find("step 40/40"), std::string::npos);
}

TEST(Trace, EventsAreJson) {
  std::string text = "[" + traceNames(1, {0, 1}) + traceEvent(1, {"mat\"mul", "step", 0, 0.001, 0.002}) +
                     traceEvent(1, {"gather", "step", 1, 0, 0.5}) + "]";
  nlohmann::json events = nlohmann::json::parse(text);
  ASSERT_EQ(events.size(), 5u); // the process, two lanes, two steps
  EXPECT_EQ(events[3]["name"], "mat\"mul");
  EXPECT_EQ(events[3]["ts"], 1000.0);
  EXPECT_EQ(events[4]["tid"], 1);
}
