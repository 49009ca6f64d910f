//===- origins.h - which step made the bytes that another one reads ---------------------------------------===//
// The reaching definitions of bytes. Steps in the program's order, whose conflicting accesses happen in it (judge.h). Copies and
// all-gathers make nothing: bytes come from who made what they move. Every rank runs the same steps, so bytes that another rank sent come
// from the step that made them there. Addresses are rank 0's.
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
  struct Write {
    int step;
    uint64_t begin, end;
  };
  /// Bytes whose makers are looked for, as they are when `step` begins.
  struct Part {
    uint32_t buffer;
    uint64_t begin, end;
    int step;
    size_t known; // the first writes of that buffer, of which some may have made them
  };
  Part whole(uint32_t buffer, uint64_t begin, uint64_t end, int step) const { return {buffer, begin, end, step, writes[buffer].size()}; }
  /// Whether a step takes to that buffer what it finds elsewhere.
  bool moves(int step, uint32_t buffer) const;
  /// Bytes that such a step wrote, where they were before.
  void openSources(int step, uint64_t begin, uint64_t end, std::vector<Part> &open) const;

  const plan::Program &program;
  std::vector<std::vector<Write>> writes; // by buffer, in order
};

} // namespace zero::judge
