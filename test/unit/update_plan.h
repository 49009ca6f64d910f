// Plans whose steps tests move, change and take away, to hear what the judge says of it.
#pragma once
#include "runtime/base/error.h"
#include "runtime/judge/judge.h"
#include "runtime/plan/validate.h"
#include "test/unit/plan_builder.h"
#include <functional>
#include <gtest/gtest.h>

namespace zero::test {

struct UpdatePlan : PlanBuilder {
  explicit UpdatePlan(uint32_t world) : PlanBuilder(world) {}

  plan::Ref holds(plan::Ref ref, plan::BufferKind kind, plan::Part part, plan::DType type) {
    plan::Buffer *buffer = plan.mutable_buffers(static_cast<int>(ref.buffer()));
    buffer->set_kind(kind), buffer->set_bucket(0), buffer->set_part(part), buffer->set_dtype(type);
    return ref;
  }

  void liveThroughout() {
    for (plan::Buffer &buffer : *plan.mutable_buffers())
      if (buffer.program() == 0) buffer.set_last(static_cast<uint32_t>(program().steps_size() - 1));
  }

  int indexOf(const std::string &name) {
    for (int i = 0; i < program().steps_size(); ++i)
      if (program().steps(i).name() == name) return i;
    throw std::logic_error(name);
  }
  plan::Step &named(const std::string &name) { return *program().mutable_steps(indexOf(name)); }
  plan::Ref &ref(const std::string &step, int write) { return *named(step).mutable_writes(write); }
  // `name` comes to stand right before `other`, and waits for nothing.
  void moveBefore(const std::string &name, const std::string &other) {
    named(name).clear_waits();
    auto *steps = program().mutable_steps();
    for (int i = indexOf(name); i > indexOf(other); --i) steps->SwapElements(i, i - 1);
  }

  // And nobody waits for it.
  void remove(const std::string &name) {
    program().mutable_steps()->DeleteSubrange(indexOf(name), 1);
    liveThroughout();
  }
};

// What the judge says of a plan that the validator takes, a sentence a line.
inline std::string judged(const PlanBuilder &made) {
  plan::validate(made.plan, 0);
  std::string all;
  for (const std::string &sentence : judge::checkPlan(made.plan)) all += sentence + "\n";
  return all;
}

// A plan that was changed is told so.
template <typename Plan> void expectSentence(Plan made, const std::string &sentence, const std::function<void(Plan &)> &change) {
  change(made);
  std::string found = judged(made);
  EXPECT_NE(found.find(sentence), std::string::npos) << "expected: " << sentence << "\nfound: " << found;
}

} // namespace zero::test
