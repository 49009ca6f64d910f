//===- zero-inspect - read exactly what a plan will do ------------------------------------------------===//
// It never loads a plan's code, whatever it is asked: to look at a stranger's plan is safe.
#include "runtime/base/error.h"
#include "runtime/files/file.h"
#include "runtime/inspect/inspect.h"
#include "runtime/judge/judge.h"
#include "runtime/plan/container.h"
#include "runtime/plan/micro_steps.h"
#include "runtime/process/processors.h"
#include "runtime/process/streams.h"
#include "runtime/simulate/machines.h"
#include "runtime/simulate/measured.h"
#include "runtime/simulate/text.h"
#include "runtime/simulate/trace.h"
#include "tools/command_line.h"
#include <iostream>

namespace {

/// Prints the judge's sentences; 0 when there is none.
int verdict(const std::vector<std::string> &found, const std::string &what, std::ostream &out = std::cout) {
  for (const std::string &sentence : found) zero::runtime::complain("zero-inspect: " + sentence);
  if (found.empty()) out << what << " holds: places, order, values, updates and ranks are as promised\n";
  return found.empty() ? 0 : 1;
}

int judgeText(const std::string &path) { return verdict(zero::judge::checkAll(zero::judge::parse(zero::runtime::readText(path))), path); }

struct Pages {
  bool json = false, peak = false, schedule = false, operands = false, kernels = false, why = false, time = false, trace = false,
       check = false;
  zero::simulate::Machine machine;
  int threads = 0; // of zerorun; 0: as many as it would use here
  bool none() const { return !json && !peak && !schedule && !kernels && !why && !time; }
};

void print(const zero::plan::PlanFile &file, const Pages &pages) {
  using namespace zero::inspect;
  const zero::plan::Plan &plan = file.plan;
  int threads = pages.threads ? pages.threads : int(zero::runtime::processors());
  if (pages.json) {
    std::cout << fileJson(file, threads, pages.schedule) << "\n";
    return; // all of the other pages is in it
  }
  if (pages.peak) std::cout << peakText(plan);
  if (pages.schedule) std::cout << scheduleText(plan, pages.operands);
  if (pages.kernels) std::cout << kernelTable(plan);
  if (pages.why) std::cout << decisionText(plan);
  if (pages.time) std::cout << zero::simulate::timeText(plan, pages.machine);
  if (pages.none() && !pages.check) std::cout << firstPage(plan, fileLine(file)) << "\n" << processTable(file, threads);
}

/// What the command line asks for.
struct Request {
  std::string path, problem, machine, measured;
  Pages pages;
  CLI::Option *operands = nullptr, *described = nullptr; // --operands, --machine
};

void declare(CLI::App &app, Request &r) {
  app.add_option("plan", r.path, "the plan, as zeroc wrote it")->type_name("FILE");
  app.add_flag("--peak", r.pages.peak, "what fills each program's fullest moment, by layer and by buffer")->group("More pages");
  app.add_flag("--schedule", r.pages.schedule, "every step: lane, tick, live bytes, what it does and what it waits for")
      ->group("More pages");
  r.operands = app.add_flag("--operands", r.pages.operands, "with --schedule: the bytes each step reads and writes")->group("More pages");
  app.add_flag("--kernels", r.pages.kernels, "the generated kernels: launches in a step, bytes and operations of one launch")
      ->group("More pages");
  app.add_flag("--why", r.pages.why, "the reason of each scheduling decision")->group("More pages");
  app.add_flag("--time", r.pages.time, "the seconds that a step is estimated to take, and each lane in it")->group("More pages");
  r.described =
      app.add_option(
             "--machine", r.machine,
             "with --time or --trace: how fast the machine is, a name or a file of JSON (docs/offloading.md) [by what the plan is for]")
          ->type_name("a100|h100|FILE")
          ->group("More pages");
  app.add_flag("--trace", r.pages.trace,
               "nothing but what each lane is estimated to do when, in four steps, as zerorun --trace writes it of a run")
      ->group("More pages");
  app.add_option("--measured", r.measured,
                 "nothing but how fast the machine was in a run of the plan, from zerorun --trace FILE: for zeroc --machine")
      ->type_name("FILE")
      ->group("More pages");
  app.add_flag("--json", r.pages.json, "all the numbers for programs; with --schedule the steps too (docs/inspect.md lists the keys)")
      ->group("More pages");
  app.add_option("--threads", r.pages.threads, "of zerorun, for the memory of its process [as many as this one may use]")
      ->type_name("N")
      ->check(zero::wholeNumber(1, 4096))
      ->group("More pages");
  app.add_flag("--check", r.pages.check, "check places, order, values, updates and ranks again with the judge, which trusts no solver")
      ->group("Judge");
  app.add_option("--judge", r.problem, "judge a schedule written as text instead of a plan (docs/inspect.md has the form)")
      ->type_name("FILE")
      ->group("Judge");
}

int answer(Request &r) {
  Pages &pages = r.pages;
  if (*r.operands && !pages.schedule) throw zero::Error("--operands goes with --schedule");
  if (*r.described && !pages.time && !pages.trace) throw zero::Error("--machine goes with --time or --trace");
  if (!r.problem.empty() && !r.path.empty()) throw zero::Error("a plan or a problem in text form (--judge), not both");
  if (!r.problem.empty()) return judgeText(r.problem);
  if (r.path.empty()) throw zero::Error("which plan? Usage: zero-inspect plan.bin");
  zero::plan::PlanFile file = zero::plan::load(r.path);
  pages.machine = *r.described ? zero::simulate::equalRank(zero::simulate::namedOrRead(r.machine), file.plan.world())
                               : zero::simulate::defaultMachine(file.plan.target(), file.plan.world());
  if (!r.measured.empty()) {
    std::cout << zero::simulate::measuredMachine(file.plan, zero::runtime::readText(r.measured), r.measured) << "\n";
    return 0;
  }
  if (pages.trace) {
    std::cout << zero::simulate::estimatedTrace(file.plan, pages.machine, !zero::plan::trains(file.plan, false));
    return 0;
  }
  print(file, pages);
  return pages.check ? verdict(zero::judge::checkPlan(file.plan), r.path, pages.json ? std::cerr : std::cout) : 0;
}

int run(int argc, char **argv) {
  CLI::App app{"Read what a plan will do, before it runs: memory by kind to the byte, communication, work by lane.", "zero-inspect"};
  Request request;
  declare(app, request);
  try {
    zero::parse(app, argc, argv);
    return answer(request);
  } catch (const CLI::ParseError &error) {
    return zero::usageError(app, error, "zero-inspect");
  } catch (const std::exception &error) {
    zero::runtime::complain(std::string("zero-inspect: ") + error.what());
    return 1;
  }
}

} // namespace

int main(int argc, char **argv) {
  zero::runtime::openStandardStreams();
  int status = run(argc, argv);
  std::cout.flush();
  if (std::cout) return status;
  zero::runtime::complain("zero-inspect: what it found could not be written: the standard output takes no more");
  return 1;
}
