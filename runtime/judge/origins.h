//===- origins.h - which step made the bytes that another one reads ---------------------------------------===//
// Steps in the program's order, whose conflicting accesses happen in it (judge.h). Copies and all-gathers make nothing: bytes come from who
// made what they move. Every rank runs the same steps, so bytes that another rank sent come from the step that made them there. Addresses
// are rank 0's.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <vector>

namespace zero::judge {

inline constexpr int kBefore = -1; // no step: they were there before the program

/// Bytes [begin, end) of a buffer, as `step` wrote them there.
struct Origin {
  int step = kBefore;
  uint32_t buffer = 0;
  uint64_t begin = 0, end = 0;
  auto operator<=>(const Origin &) const = default;
};

class Origins {
public:
  Origins(const plan::Plan &plan, const plan::Program &program);
  /// Of the bytes at `ref` when `step` begins; in no order.
  std::vector<Origin> of(const plan::Ref &ref, int step) const;
  /// When the program has ended.
  std::vector<Origin> of(const plan::Ref &ref) const { return of(ref, program.steps_size()); }

private:
  void trace(uint32_t buffer, uint64_t begin, uint64_t end, int step, std::vector<Origin> &found) const;
  /// Bytes that a copy or an all-gather wrote, where they were before.
  void traceMoved(int step, uint32_t buffer, uint64_t begin, uint64_t end, std::vector<Origin> &found) const;

  struct Write {
    int step;
    uint64_t begin, end;
  };
  const plan::Program &program;
  std::vector<std::vector<Write>> writes; // by buffer, in order
};

} // namespace zero::judge
