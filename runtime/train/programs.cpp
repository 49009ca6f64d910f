#include "runtime/train/programs.h"
#include "runtime/base/error.h"
#include "runtime/plan/micro_steps.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::runtime {
namespace {

uint32_t find(const plan::Plan &plan, plan::Program::Role role, bool clips) {
  bool updates = role == plan::Program::STEP || role == plan::Program::LAST;
  bool other = false;
  for (int i = 0; i < plan.programs_size(); ++i) {
    const plan::Program &program = plan.programs(i);
    if (program.role() != role) continue;
    if (!updates || program.clips() == clips) return static_cast<uint32_t>(i);
    other = true;
  }
  if (other)
    throw Error(clips
                    ? "--clip needs a step that waits for the gradient norm, and this plan has none; compile it again without --clip never"
                    : "this plan was compiled with --clip always; give --clip X, or compile it again");
  static constexpr const char *names[] = {"whole-step", "first micro-step", "middle micro-step", "last micro-step", "evaluation"};
  throw Error(fmt::format("this plan has no {} program; compile it again", names[role]));
}

} // namespace

std::vector<uint32_t> Programs::used() const {
  std::vector<uint32_t> all = micros;
  if (eval >= 0) all.push_back(static_cast<uint32_t>(eval));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Programs choosePrograms(const plan::Plan &plan, bool train, bool clip, bool evaluate) {
  Programs programs;
  if (train && plan::stepsInOneProgram(plan)) {
    programs.micros.push_back(find(plan, plan::Program::STEP, clip));
  } else if (train) {
    programs.micros.push_back(find(plan, plan::Program::FIRST, false));
    if (plan.accumulate() > 2)
      programs.micros.insert(programs.micros.end(), plan.accumulate() - 2, find(plan, plan::Program::MIDDLE, false));
    programs.micros.push_back(find(plan, plan::Program::LAST, clip));
  }
  if (evaluate) programs.eval = static_cast<int>(find(plan, plan::Program::EVAL, false));
  return programs;
}

} // namespace zero::runtime
