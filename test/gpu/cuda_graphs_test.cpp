// Steps of a lane as graphs.
#include "runtime/device/cuda/graphs.h"
#include "test/gpu/cuda_session.h"

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using namespace zero::test;

namespace {

// One on lane compute, cut where a step waits, where others wait for it, where an entry joins and at what cannot be captured.
TEST(CudaGraphs, AreStretchesOfALane) {
  cuda::CudaProgram program;
  cuda::FillCall fill{8, 0, 4};
  auto add = [&](int lane, cuda::Call call, std::vector<LaneWait> waits = {}) {
    uint32_t tick = ++program.ticks[static_cast<size_t>(lane)];
    program.operations.push_back({lane, call, 0, true, true, tick, nullptr, std::move(waits)});
  };
  for (int i = 0; i < 3; ++i) add(COMPUTE, fill); // 0, 1, 2
  add(UPDATE, fill);                              // 3: alone
  for (int i = 0; i < 2; ++i) add(COMPUTE, fill); // 4, 5: somebody waits for the second
  add(COMPUTE, cuda::Nothing{});                  // 6
  for (int i = 0; i < 2; ++i) add(COMPUTE, fill); // 7, 8: too few
  add(COMPUTE, fill, {{UPDATE, 1}});              // 9
  for (int i = 0; i < 2; ++i) add(COMPUTE, fill); // 10, 11
  add(COMPUTE, cuda::DiskCall{});                 // 12
  for (int i = 0; i < 3; ++i) add(COMPUTE, fill); // 13, 14, 15
  for (int i = 0; i < 3; ++i) add(COMPUTE, fill); // 16: an entry joins; 17, 18
  program.entries.push_back({0, {}, {{16, {UPDATE, 1}}}});
  auto isAwaited = [](int lane, uint32_t tick) { return lane == COMPUTE && tick == 5; };
  EXPECT_EQ(cuda::segmentsOf(program, isAwaited), (std::vector<cuda::Segment>{{0, 1, 2, 4, 5}, {9, 10, 11}, {13, 14, 15}, {16, 17, 18}}));
}

// A run of several steps, the later ones as graphs, has the bits of streams whatever the delays.
TEST(CudaGraphs, GiveTheBitsOfStreams) {
  RoundsPlan plan(1);
  makeCuda(plan.plan);
  PlanFile file = plan.file();
  std::vector<float> expected;
  for (uint64_t seed = 1; seed < 9; ++seed) {
    ::setenv("ZERO_FAKE_SEED", std::to_string(seed).c_str(), 1);
    for (bool graphs : {false, true}) {
      auto device = deviceFor(file.plan.target(), "p.bin").make({.graphs = graphs});
      std::vector<float> values = resultsOf(file, plan.own, plan.input, plan.result, *device);
      if (expected.empty()) expected = values;
      EXPECT_TRUE(same(expected, values)) << seed << graphs;
    }
  }
}

// What the driver's documentation says cannot be captured the fake refuses.
TEST(CudaGraphs, TheFakeKnowsTheRules) {
  auto device = makeCudaDevice({}); // whose context is current
  const cuda::Driver &driver = cuda::Driver::get();
  cuda::OwnedStream origin = cuda::makeStream(), other = cuda::makeStream();
  cuda::OwnedEvent forks = cuda::makeEvent(cuda::kUntimed), joins = cuda::makeEvent(cuda::kUntimed);
  cuda::DeviceMemory memory = cuda::allocateDevice(64, "a test");
  auto fill = [&](const cuda::OwnedStream &on, unsigned value) { return driver.fill32Async(memory.get(), value, 4, on.get()); };
  auto captured = [&](auto &&during) {
    cuda::GraphHandle graph{};
    EXPECT_EQ(driver.beginCapture(origin.get(), cuda::kThreadLocalCapture), cuda::kSuccess);
    during();
    cuda::Status status = driver.endCapture(origin.get(), &graph);
    return std::pair(status, graph);
  };
  auto statusOf = [&](auto &&during) {
    auto [status, graph] = captured(during);
    cuda::OwnedGraph owned(graph, driver.graphDestroy);
    return status;
  };
  EXPECT_EQ(statusOf([&] { fill(origin, 1); }), cuda::kSuccess);
  EXPECT_EQ(statusOf([&] { EXPECT_EQ(driver.streamSynchronize(origin.get()), 900); }), 901); // invalidated
  EXPECT_EQ(statusOf([&] { EXPECT_EQ(driver.eventQuery(forks.get()), 900); }), 901);
  EXPECT_EQ(statusOf([&] {
              void *pinned = nullptr;
              EXPECT_EQ(driver.hostAllocate(&pinned, 64, cuda::kPortable), 900);
            }),
            901);
  driver.eventRecord(joins.get(), other.get());
  EXPECT_EQ(statusOf([&] { EXPECT_EQ(driver.streamWaitEvent(origin.get(), joins.get(), 0), 905); }), 901); // recorded outside
  auto fork = [&] { driver.eventRecord(forks.get(), origin.get()), driver.streamWaitEvent(other.get(), forks.get(), 0), fill(other, 2); };
  EXPECT_EQ(statusOf([&] { fill(origin, 1), fork(); }), 904); // a stream has not joined again
  auto [status, graph] = captured([&] {
    fill(origin, 1), fork();
    driver.eventRecord(joins.get(), other.get()), driver.streamWaitEvent(origin.get(), joins.get(), 0);
    driver.copyAsync(memory.get() + 32, memory.get(), 16, origin.get());
  });
  ASSERT_EQ(status, cuda::kSuccess);
  cuda::OwnedGraph owned(graph, driver.graphDestroy);
  cuda::GraphExecHandle exec{};
  EXPECT_EQ(driver.graphInstantiate(&exec, graph, 0), cuda::kSuccess);
  cuda::OwnedGraphExec runs(exec, driver.graphExecDestroy);
  EXPECT_EQ(driver.eventSynchronize(joins.get()), 907); // it was captured
  cuda::PinnedMemory pinned = cuda::allocatePinned(16, "a test");
  auto *words = static_cast<unsigned *>(pinned.get());
  words[3] = 7;
  for (int i = 0; i < 3; ++i) {
    fill(origin, 9);
    EXPECT_EQ(driver.graphLaunch(exec, origin.get()), cuda::kSuccess);
    driver.copyAsync(cuda::pointerTo(words), memory.get() + 32, 16, origin.get());
    EXPECT_EQ(driver.streamSynchronize(origin.get()), cuda::kSuccess);
    EXPECT_EQ(words[3], 2u);
  }
}

} // namespace
