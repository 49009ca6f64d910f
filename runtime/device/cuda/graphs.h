// Segments of a program's operations that are put into a lane's stream as one CUDA graph: launching a graph costs the host little more
// than launching one kernel.
//
// A segment lies on one lane, and lanes wait for each other outside of graphs, by events recorded after them. So lanes run on from one
// program into the next as they do without graphs. A graph of all lanes could not: as a whole it would begin after all of the program
// before it. Events inside of it that others wait for (external ones) would help only if a wait in a graph meant the record launched last,
// which is not documented: it might be over before the record has begun. A program on one lane is one graph.
#pragma once
#include "runtime/device/cuda/issue.h"
#include <functional>
#include <vector>

namespace zero::runtime::cuda {

// Operations of a lane, by their places in a program, one after the other: only the first waits, and only the last completes a tick that
// somebody waits for.
using Segment = std::vector<uint32_t>;

// Whether somebody waits for a tick of a lane of the program.
using IsAwaited = std::function<bool(int lane, uint32_t tick)>;

// What is worth a graph. Host functions, which may take as long as a disk, and collectives, whose library counts its calls, are in none.
std::vector<Segment> segmentsOf(const CudaProgram &program, const IsAwaited &isAwaited);

class Graphs {
public:
  Graphs(const CudaProgram &program, const IsAwaited &isAwaited);

  bool captured() const { return wasCaptured; }
  // Once, after a run of the program as streams: libraries make what they need when they are first called, which cannot be captured.
  // Throws a sentence if the driver refuses it.
  void capture(const CudaProgram &program, const Issuer &issuer, const std::function<StreamHandle(int lane)> &streamOf);

  struct Graph {
    Segment segment;
    OwnedGraphExec exec{};
  };
  // The one that begins with this operation; null if none does.
  const Graph *beginningWith(uint32_t operation) const;
  // Whether the operation is in a graph that another begins.
  bool holds(uint32_t operation) const { return places[operation] == kHeld; }

private:
  static constexpr int32_t kAlone = -1, kHeld = -2;

  std::vector<Graph> graphs;
  std::vector<int32_t> places; // of each operation: the graph it begins, or one of these
  bool wasCaptured = false;
};

} // namespace zero::runtime::cuda
