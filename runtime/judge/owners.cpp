//===- owners.cpp - who fills what outlives a program -----------------------------------------------------===//
#include "runtime/judge/judge.h"
#include "runtime/judge/program_check.h"
#include "runtime/plan/state.h"
#include <algorithm>
#include <map>
#include <set>

namespace zero::judge {
namespace {

class Owners {
public:
  explicit Owners(const plan::Plan &plan) : plan(plan) {
    for (int b = 0; b < plan.buckets_size(); ++b)
      for (const plan::StateTensor &tensor : plan.buckets(b).tensors()) state[tensor.ref().buffer()] = {b, tensor.role()};
    for (const plan::Input &input : plan.inputs()) filled.insert(input.ref().buffer());
    for (const plan::Constant &constant : plan.constants()) filled.insert(constant.ref().buffer());
  }

  std::vector<std::string> run() {
    for (const plan::Program &program : plan.programs())
      for (int s = 0; s < program.steps_size(); ++s) {
        for (const plan::Ref &ref : program.steps(s).writes()) checkWrite({program, s}, ref.buffer());
        for (const plan::Ref &ref : program.steps(s).reads()) readers[ref.buffer()].push_back({program, s});
      }
    for (const auto &[buffer, places] : readers)
      if (plan.buffers(int(buffer)).program() < 0 && !state.contains(buffer) && !filled.contains(buffer) && !written.contains(buffer))
        report(places[0], "reads buffer '" + plan.buffers(int(buffer)).name() + "', which nothing ever fills");
    checkMicroSteps();
    return std::move(found);
  }

private:
  struct Place {
    const plan::Program &program;
    int step;
  };

  void checkWrite(Place at, uint32_t number) {
    const plan::Buffer &buffer = plan.buffers(int(number));
    if (buffer.program() >= 0) return;
    written.insert(number);
    if (filled.contains(number)) return report(at, "writes buffer '" + buffer.name() + "', which only the host fills");
    auto kept = state.find(number);
    if (kept == state.end()) return;
    auto [b, role] = kept->second;
    std::string what = std::string(plan::roleName(role)) + " of bucket '" + plan.buckets(b).name() + "'";
    if (at.program.role() == plan::Program::EVAL) return report(at, "changes the " + what + " in evaluation");
    std::vector<plan::StateTensor::Role> moments = plan::momentsOf(plan.optimizer().kind());
    const plan::Step &step = at.program.steps(at.step);
    bool updates = (step.has_update() && int(step.update().bucket()) == b) || step.has_write_rows();
    bool returns = step.has_copy(); // from another tier, which is for checkTiers to see
    if (std::ranges::count(moments, role) && !updates && !returns) report(at, "writes the " + what + " but is not its update");
  }

  /// Where one program holds all micro-steps, each reads inputs of its own as often as the others read theirs.
  void checkMicroSteps() {
    std::map<std::string, long> first;
    for (const plan::Input &input : plan.inputs())
      if (input.micro_step() == 0) first[input.name()] = readersInTraining(input);
    for (const plan::Input &input : plan.inputs())
      if (long count = readersInTraining(input); input.micro_step() && count != first[input.name()])
        found.push_back("input '" + input.name() + "' is read by " + std::to_string(count) + " steps of micro-step " +
                        std::to_string(input.micro_step()) + ", and by " + std::to_string(first[input.name()]) + " of the first");
  }
  long readersInTraining(const plan::Input &input) const {
    auto all = readers.find(input.ref().buffer());
    if (all == readers.end()) return 0;
    return std::ranges::count_if(all->second, [](const Place &at) { return at.program.role() != plan::Program::EVAL; });
  }

  void report(Place at, const std::string &sentence) {
    found.push_back("@" + at.program.name() + ": " + nameOf(at.program, at.step) + " " + sentence);
  }

  const plan::Plan &plan;
  std::map<uint32_t, std::pair<int, plan::StateTensor::Role>> state; // whose tensor a buffer is
  std::set<uint32_t> filled, written;                                // by the host; by steps
  std::map<uint32_t, std::vector<Place>> readers;                    // by buffer
  std::vector<std::string> found;
};

} // namespace

std::vector<std::string> checkOwners(const plan::Plan &plan) { return Owners(plan).run(); }

} // namespace zero::judge
