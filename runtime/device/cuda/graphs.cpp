#include "runtime/device/cuda/graphs.h"
#include <algorithm>

namespace zero::runtime::cuda {
namespace {

constexpr size_t kLeastCalls = 3; // of a graph, whose launch takes as long as that of two or three kernels

bool canBeCaptured(const Call &call) {
  return std::holds_alternative<LaunchCall>(call) || std::holds_alternative<ProductRun>(call) || std::holds_alternative<CopyCall>(call) ||
         std::holds_alternative<FillCall>(call) || std::holds_alternative<SumCall>(call) || std::holds_alternative<Nothing>(call);
}

bool isWorthIt(const CudaProgram &program, const Segment &segment) {
  auto isNothing = [&](uint32_t i) { return std::holds_alternative<Nothing>(program.operations[i].call); };
  return segment.size() - static_cast<size_t>(std::ranges::count_if(segment, isNothing)) >= kLeastCalls;
}

} // namespace

std::vector<Segment> segmentsOf(const CudaProgram &program, const IsAwaited &isAwaited) {
  std::vector<bool> waits(program.operations.size());
  for (uint32_t i = 0; i < waits.size(); ++i) waits[i] = !program.operations[i].waits.empty();
  for (const CudaEntry &entry : program.entries)
    for (const CudaEntry::Joins &joins : entry.waits) waits[joins.operation] = true;
  std::vector<Segment> segments;
  std::array<Segment, kLanes> open;
  auto close = [&](Segment &segment) {
    if (isWorthIt(program, segment)) segments.push_back(segment);
    segment.clear();
  };
  for (uint32_t i = 0; i < waits.size(); ++i) {
    const CudaOperation &operation = program.operations[i];
    Segment &segment = open[static_cast<size_t>(operation.lane)];
    bool fits = canBeCaptured(operation.call);
    if (waits[i] || !fits) close(segment);
    if (!fits) continue;
    segment.push_back(i);
    if (operation.signals && isAwaited(operation.lane, operation.tick)) close(segment);
  }
  for (Segment &segment : open) close(segment);
  return segments;
}

Graphs::Graphs(const CudaProgram &program, const IsAwaited &isAwaited) : places(program.operations.size(), kAlone) {
  for (Segment &segment : segmentsOf(program, isAwaited)) {
    for (uint32_t operation : segment) places[operation] = kHeld;
    places[segment.front()] = static_cast<int32_t>(graphs.size());
    graphs.push_back({std::move(segment)});
  }
}

const Graphs::Graph *Graphs::beginningWith(uint32_t operation) const {
  int32_t place = places[operation];
  return place < 0 ? nullptr : &graphs[static_cast<size_t>(place)];
}

void Graphs::capture(const CudaProgram &program, const Issuer &issuer, const std::function<StreamHandle(int lane)> &streamOf) {
  const Driver &driver = Driver::get();
  const std::string what = "cannot make a graph of its steps; zerorun runs without graphs with --no-graphs";
  for (Graph &graph : graphs) {
    int lane = program.operations[graph.segment.front()].lane;
    StreamHandle stream = streamOf(lane);
    driver.require(driver.beginCapture(stream, kThreadLocalCapture), what);
    GraphHandle captured{};
    try {
      for (uint32_t i : graph.segment) issuer.put(program.operations[i].call, lane, stream);
    } catch (...) {
      driver.endCapture(stream, &captured); // the stream is as it was; what was captured is of no use
      OwnedGraph(captured, driver.graphDestroy).reset();
      throw;
    }
    driver.require(driver.endCapture(stream, &captured), what);
    OwnedGraph whole(captured, driver.graphDestroy);
    GraphExecHandle exec{};
    driver.require(driver.graphInstantiate(&exec, captured, 0), what);
    graph.exec = {exec, driver.graphExecDestroy};
  }
  wasCaptured = true;
}

} // namespace zero::runtime::cuda
