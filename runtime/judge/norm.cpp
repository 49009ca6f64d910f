//===- norm.cpp - updates wait for the norm of the gradients that they use --------------------------------===//
#include "runtime/judge/judge.h"
#include "runtime/judge/origins.h"
#include "runtime/judge/program_check.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace zero::judge {
namespace {

class Norm : ProgramCheck {
public:
  Norm(const plan::Plan &plan, const plan::Program &program) : ProgramCheck(plan, program), contents(plan), origins(plan, program) {}

  std::vector<std::string> run() {
    if (!program.has_gradient_norm()) return {};
    norm = origins.of(program.gradient_norm());
    follow(program.gradient_norm());
    for (int s = 0; s < program.steps_size(); ++s) {
      const plan::Step &step = program.steps(s);
      if (step.has_update()) checkUpdate(s, step);
      if (step.has_update_rows() && !inNorm.contains(s))
        report("the squares of the gradient that " + name(s) + " uses are not in the norm");
    }
    for (int b = 0; b < plan.buckets_size(); ++b)
      if (plan.buckets(b).trainable()) compare(plan.buckets(b), squared[b], updated[b]);
    return std::move(found);
  }

private:
  /// Of a bucket's gradient: which steps made it, and how many elements on each rank.
  struct Gradient {
    std::set<int> makers;
    double elements = 0;
  };

  /// From the norm back through sums to the gradients whose squares are in it.
  void follow(const plan::Ref &result) {
    std::vector<std::pair<plan::Ref, int>> open{{result, program.steps_size()}};
    while (!open.empty()) {
      auto [ref, before] = open.back();
      open.pop_back();
      for (const Origin &origin : origins.of(ref, before)) {
        if (origin.step == kBefore) continue; // which is for the values to see
        const plan::Step &step = program.steps(origin.step);
        bool isNew = inNorm.insert(origin.step).second;
        if (const plan::Ref *gradient = squaredBy(step))
          addSquares(origin, step, *gradient);
        else if (step.has_collective()) // which sums the loss beside the norm
          open.push_back({summedTo(origin, step), origin.step});
        else if (isNew && !step.has_update_rows()) // which sums the squares of its own gradient
          for (const plan::Ref &read : step.reads()) open.push_back({read, origin.step});
      }
    }
  }

  /// What an all-reduce has made some bytes from.
  static plan::Ref summedTo(const Origin &sums, const plan::Step &step) {
    plan::Ref ref = step.reads(0);
    ref.set_offset(ref.offset() + (sums.begin - step.writes(0).offset()));
    ref.set_bytes(sums.end - sums.begin);
    return ref;
  }

  /// The gradient whose squares a step sums, row by row; null if it does not.
  const plan::Ref *squaredBy(const plan::Step &step) const {
    if (step.has_update()) return &plan::gradientOf(step);
    bool ofBucket = step.has_launch() && step.reads_size() == 1 && contents.of(step.reads(0)).part != plan::PART_UNSPECIFIED;
    return ofBucket ? &step.reads(0) : nullptr;
  }

  /// Of the rows the norm may have some alone: this rank's.
  void addSquares(const Origin &sums, const plan::Step &step, const plan::Ref &gradient) {
    auto written = std::ranges::find_if(step.writes(), [&](const plan::Ref &ref) {
      return ref.buffer() == sums.buffer && ref.offset() <= sums.begin && sums.end <= ref.offset() + ref.bytes();
    });
    double share = double(sums.end - sums.begin) / double(written->bytes());
    add(squared[contents.of(gradient).bucket], gradient, sums.step, share);
  }

  void add(Gradient &to, const plan::Ref &gradient, int step, double share) {
    to.elements += share * double(gradient.bytes()) / double(plan::bytesOf(plan::F32));
    for (const Origin &origin : origins.of(gradient, step)) to.makers.insert(origin.step);
  }

  /// Its arguments are parameters, their gradient, what the optimizer keeps, hyper-parameters, and the norm if it waits for it.
  void checkUpdate(int s, const plan::Step &step) {
    add(updated[int(step.update().bucket())], plan::gradientOf(step), s, 1);
    if (!program.clips() && !plan.scales_loss()) return;
    auto at = int(3 + plan::momentsOf(plan.optimizer().kind()).size());
    if (plan::kernelReads(step) <= at || origins.of(step.reads(at), s) != norm)
      report(name(s) + " does not read the norm of all gradients, which says how much of its own it may use");
  }

  void compare(const plan::Bucket &bucket, const Gradient &squares, const Gradient &updates) {
    if (squares.makers != updates.makers)
      return report("the squares in the norm are not those of the gradient that bucket '" + bucket.name() + "' is updated with");
    if (auto shard = double(bucket.shard_elements()); std::abs(squares.elements - shard) > 0.5)
      report("the norm has the squares of " + std::to_string(uint64_t(squares.elements)) + " elements of bucket '" + bucket.name() +
             "', of which each rank owns " + std::to_string(bucket.shard_elements()));
  }

  plan::Contents contents;
  Origins origins;
  std::vector<Origin> norm;                 // as the program leaves it
  std::set<int> inNorm;                     // steps that the norm comes from
  std::map<int, Gradient> squared, updated; // by bucket
};

} // namespace

std::vector<std::string> checkNorm(const plan::Plan &plan, int program) { return Norm(plan, plan.programs(program)).run(); }

} // namespace zero::judge
