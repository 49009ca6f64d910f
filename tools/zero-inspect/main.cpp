//===- zero-inspect - read exactly what a plan will do ------------------------------------------------===//
#include "runtime/inspect/inspect.h"
#include "runtime/judge/judge.h"
#include "runtime/plan/container.h"
#include "runtime/plan/error.h"
#include "tools/command_line.h"
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

/// Prints the judge's sentences; 0 when there is none.
int verdict(const std::vector<std::string> &found, const std::string &what, std::ostream &out = std::cout) {
  for (const std::string &sentence : found) std::cerr << "zero-inspect: " << sentence << "\n";
  if (found.empty()) out << what << " holds: places, order, values and ranks are as promised\n";
  return found.empty() ? 0 : 1;
}

int judgeText(const std::string &path) {
  std::ifstream file(path);
  if (!file) throw zero::Error(path + " cannot be read");
  std::stringstream text;
  text << file.rdbuf();
  auto ranks = zero::judge::parse(text.str());
  std::vector<std::string> found;
  for (const auto &rank : ranks)
    for (auto &sentence : zero::judge::check(rank)) found.push_back(sentence);
  for (auto &sentence : zero::judge::checkRanks(ranks)) found.push_back(sentence);
  return verdict(found, path);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{"Read what a plan will do: memory by tier and kind, communication, kernels, the schedule"};
  std::string path, problem;
  bool json = false, check = false, why = false, schedule = false, kernels = false;
  app.add_option("plan", path, "plan.bin, as zeroc wrote it");
  app.add_flag("--json", json, "The numbers for programs");
  app.add_flag("--schedule", schedule, "Every step with its lane, tick, byte ranges and waits");
  app.add_flag("--kernels", kernels, "The generated kernels");
  app.add_flag("--check", check, "Run the judge: places, order, values and ranks are checked again");
  app.add_flag("--why", why, "The reason of each scheduling decision");
  app.add_option("--judge", problem, "Judge a problem in its text form instead of a plan (see runtime/judge/problem.h)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return zero::usageError(app, error, "zero-inspect");
  }
  try {
    if (!problem.empty() && !path.empty()) throw zero::Error("a plan or a problem in text form (--judge), not both");
    if (!problem.empty()) return judgeText(problem);
    if (path.empty()) throw zero::Error("which plan? Usage: zero-inspect plan.bin");
    zero::plan::PlanFile file = zero::plan::load(path);
    const zero::plan::Plan &plan = file.plan;
    if (json) std::cout << zero::inspect::toJson(plan).dump(1) << "\n";
    if (schedule) std::cout << zero::inspect::scheduleText(plan);
    if (kernels) std::cout << zero::inspect::kernelTable(plan);
    if (why) std::cout << zero::inspect::decisionText(plan);
    if (check) return verdict(zero::judge::checkPlan(plan), path, json ? std::cerr : std::cout);
    if (!json && !schedule && !kernels && !why)
      std::cout << zero::inspect::headline(plan) << zero::inspect::memoryTable(plan) << zero::inspect::trafficTable(plan);
    return 0;
  } catch (const std::exception &error) {
    std::cerr << "zero-inspect: " << error.what() << "\n";
    return 1;
  }
}
