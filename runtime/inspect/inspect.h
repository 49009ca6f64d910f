//===- inspect.h - what a plan will do, as numbers and as text -------------------------------------===//
// All of it follows from the plan alone: no step runs, no memory is allocated.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zero::inspect {

inline constexpr int kKinds = 10; // plan.BufferKind

/// Bytes by kind of buffer.
using ByKind = std::array<uint64_t, kKinds>;

/// One program's use of the transient arenas.
struct ProgramMemory {
  std::string program;
  uint64_t height = 0;   // bytes of the transient arenas it needs
  uint64_t live = 0;     // largest sum of live bytes: no placement can be lower
  uint32_t peakStep = 0; // where that is reached
  ByKind atPeak{};       // what is live there
  ByKind largest{};      // the largest sum of live bytes of each kind alone
};

/// Memory of one rank.
struct Memory {
  ByKind persistent{};
  uint64_t state = 0; // bytes of the persistent arenas
  uint64_t work = 0;  // bytes of the transient arenas: the highest program
  std::vector<ProgramMemory> programs;
  uint64_t padding = 0; // bytes of parameters' padding in all buckets, one copy
  uint64_t total() const { return state + work; }
};
Memory memoryOf(const plan::Plan &plan);

/// What one rank sends in one optimizer step (all its micro-steps), without clipping unless `clips`.
struct Traffic {
  struct Kind {
    uint64_t calls = 0, bytes = 0;
  };
  std::map<std::string, Kind> collectives; // all_gather, reduce_scatter, all_reduce
  uint64_t bytes = 0;
};
Traffic trafficOf(const plan::Plan &plan, bool clips = false);

/// Programs an optimizer step runs, in order.
std::vector<int> programsOfStep(const plan::Plan &plan, bool clips);

std::string memoryTable(const plan::Plan &plan);
std::string trafficTable(const plan::Plan &plan);
std::string kernelTable(const plan::Plan &plan);
/// The schedule of each program, one line a step; every byte range and wait is shown.
std::string scheduleText(const plan::Plan &plan);
std::string decisionText(const plan::Plan &plan);
std::string headline(const plan::Plan &plan);
nlohmann::json toJson(const plan::Plan &plan);

const char *kindName(int kind);
/// 1234567 -> "1 234 567".
std::string grouped(uint64_t n);

} // namespace zero::inspect
