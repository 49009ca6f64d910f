// The references of a step, held against the form and the extents that its kind has. Shared between the files that check steps.
#pragma once
#include "runtime/base/error.h"
#include "runtime/plan/checks.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/state.h"
#include <initializer_list>

namespace zero::plan {

struct StepOperands {
  const Plan &plan;
  const Step &step;
  int program;
  std::string what;

  // As many references as the kind has.
  void form(int reads, int writes) const {
    if (step.reads_size() != reads || step.writes_size() != writes)
      throw Error(what + " reads " + std::to_string(step.reads_size()) + " and writes " + std::to_string(step.writes_size()) +
                  " references; one of its kind reads " + std::to_string(reads) + " and writes " + std::to_string(writes));
  }
  void operand(const Ref &ref, const std::string &name, uint64_t bytes) const {
    checkRef(plan, ref, name + " of " + what, program);
    requireReach(ref.bytes(), bytes, name + " of " + what);
  }
  void reads(int index, const std::string &name, uint64_t bytes) const { operand(step.reads(index), name, bytes); }
  void writes(int index, const std::string &name, uint64_t bytes) const { operand(step.writes(index), name, bytes); }
  static bool same(const Ref &a, const Ref &b) { return a.SerializeAsString() == b.SerializeAsString(); }
  // Bytes that no rank has in both.
  void requireApart(const Ref &a, const Ref &b, const char *ofA, const char *ofB) const {
    uint64_t last = plan.world() - 1;
    if (a.buffer() == b.buffer() && a.offset() < offsetOf(plan, b, last) + b.bytes() && b.offset() < offsetOf(plan, a, last) + a.bytes())
      throw Error(what + " has " + ofA + " in bytes of " + ofB + "; expected others");
  }
  uint64_t product(std::initializer_list<uint64_t> factors) const {
    uint64_t result = 1;
    for (uint64_t factor : factors) result = multiply(result, factor, what);
    return result;
  }

  // What products and attention are made for.
  void number(DType dtype, const std::string &does) const {
    if (dtype != F32 && dtype != BF16 && dtype != F16)
      throw Error(what + " " + does + " of type " + DType_Name(dtype) + "; expected F32, BF16 or F16");
  }
};

} // namespace zero::plan
