//===- inspect.h - what a plan will do, as numbers and as text -------------------------------------===//
// All of it follows from the plan alone: no step runs, no memory is allocated.
#pragma once
#include "runtime/plan/container.h"
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace zero::inspect {

inline constexpr int kKinds = plan::BufferKind_ARRAYSIZE;
inline constexpr int kLanes = plan::Lane_ARRAYSIZE;

/// Bytes by kind of buffer.
using ByKind = std::array<uint64_t, kKinds>;

/// One program's use of the transient arenas.
struct ProgramMemory {
  std::string program;
  uint64_t height = 0;          // bytes of the transient arenas it needs
  uint64_t live = 0;            // largest sum of live bytes: no placement can be lower
  uint32_t peakStep = 0;        // where that is reached
  ByKind atPeak{};              // what is live there
  ByKind largest{};             // the largest sum of live bytes of each kind alone
  std::vector<uint64_t> inStep; // the sum of live bytes in each step
};

/// Memory of one rank in one tier.
struct Memory {
  ByKind persistent{};
  uint64_t state = 0;         // bytes of the persistent arenas
  uint64_t work = 0;          // bytes of the transient arenas: the highest program
  uint64_t workUnclipped = 0; // the highest program of a run without --clip
  std::vector<ProgramMemory> programs;
  uint64_t padding = 0; // bytes of parameters' padding in all buckets, one copy
  uint64_t total() const { return state + work; }
  uint64_t unclipped() const { return state + workUnclipped; }
};
Memory memoryOf(const plan::Plan &plan, plan::Tier tier = plan::DEVICE);

/// Transient buffers of a tier that are live in one of a program's steps, the largest first.
std::vector<uint32_t> liveBuffers(const plan::Plan &plan, int program, uint32_t step, plan::Tier tier = plan::DEVICE);

/// What one step does: of kernels and products bytes read and written and operations, of collectives bytes one rank sends.
struct Work {
  uint64_t steps = 0, flops = 0, touched = 0, sent = 0;
  Work &operator+=(const Work &other);
};
Work workOf(const plan::Plan &plan, const plan::Step &step);

/// How many slices a sum goes in, one after the other; 0: nothing is summed.
uint64_t slicesOf(const plan::Collective &collective);

/// One optimizer step (all its micro-steps) by lane, without clipping unless `clips`.
std::array<Work, kLanes> workByLane(const plan::Plan &plan, bool clips = false);

/// What one rank sends in one optimizer step (all its micro-steps), without clipping unless `clips`.
struct Traffic {
  struct Kind {
    uint64_t calls = 0, slices = 0, bytes = 0; // slices: of sums
  };
  std::map<std::string, Kind> collectives; // all_gather, reduce_scatter, all_reduce
  uint64_t bytes = 0;
};
Traffic trafficOf(const plan::Plan &plan, bool clips = false);

/// Programs an optimizer step runs, in order, and how often: those that clip if `clips`, or those that a plan has alone.
struct Runs {
  int program = 0;
  uint64_t times = 1;
};
std::vector<Runs> programsOfStep(const plan::Plan &plan, bool clips);

std::string headline(const plan::Plan &plan);
/// What the data file holds: each input's type and shape, and the loss that is trained.
std::string dataTable(const plan::Plan &plan);
std::string memoryTable(const plan::Plan &plan);
std::string trafficTable(const plan::Plan &plan);
std::string laneTable(const plan::Plan &plan);
/// Of the file: the machine code it carries, and who has signed it.
std::string fileLine(const plan::PlanFile &file);
std::string firstPage(const plan::Plan &plan, const std::string &fileLine = ""); // all of the above
/// What the process of one rank takes in memory with so many threads, line by line.
std::string processTable(const plan::PlanFile &file, int threads);
nlohmann::json processJson(const plan::PlanFile &file, int threads);
std::string kernelTable(const plan::Plan &plan);
/// The fullest moment of each program: bytes by layer and kind, and the largest buffers.
std::string peakText(const plan::Plan &plan);
/// The schedule of each program, one line a step; with `operands` one more for each byte range it reads or writes.
std::string scheduleText(const plan::Plan &plan, bool operands = false);
std::string decisionText(const plan::Plan &plan);
nlohmann::json toJson(const plan::Plan &plan, bool schedule = false);
/// The same as text, with what the file says beside its plan and what its process takes.
std::string fileJson(const plan::PlanFile &file, int threads, bool schedule);

} // namespace zero::inspect
