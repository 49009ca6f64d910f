// What waits for what, on streams.
#include "runtime/device/cuda/cuda_program.h"
#include "test/gpu/cuda_session.h"

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using namespace zero::test;

namespace {

std::vector<float> roundsOn(RoundsPlan plan, bool cuda, uint64_t seed = 1) {
  ::setenv("ZERO_FAKE_SEED", std::to_string(seed).c_str(), 1);
  if (cuda) makeCuda(plan.plan);
  PlanFile file = plan.file();
  auto device = deviceFor(file.plan.target(), "p.bin").make({});
  return resultsOf(file, plan.own, plan.input, plan.result, *device);
}

TEST(CudaOrder, AnyDelaysGiveTheSameBits) {
  RoundsPlan plan(1);
  std::vector<float> cpu = roundsOn(plan, false), first = roundsOn(plan, true);
  ASSERT_EQ(cpu.size(), first.size());
  float largest = 0;
  for (float value : cpu) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < cpu.size(); ++i) ASSERT_NEAR(cpu[i], first[i], 1e-5 * largest);
  for (uint64_t seed = 2; seed < 12; ++seed) EXPECT_TRUE(same(first, roundsOn(plan, true, seed))) << seed;
}

// The double is worth something: without the waits some delays give other bits.
TEST(CudaOrder, WaitsThatAreMissingAreSeen) {
  RoundsPlan plan(1), careless(1);
  for (Step &step : *careless.program().mutable_steps()) step.clear_waits();
  std::vector<float> expected = roundsOn(plan, true);
  bool seen = false;
  for (uint64_t seed = 0; seed < 40 && !seen; ++seed) seen = !same(expected, roundsOn(careless, true, seed));
  EXPECT_TRUE(seen);
}

TEST(CudaOrder, SubmissionsWaitForTheirTurn) {
  RoundsPlan plan(1);
  plan.program().clear_entries();
  Session run(plan, true);
  for (int i = 0; i < 20; ++i) {
    run.engine->submit({}), run.engine->submit({});
    EXPECT_NE(refusalOf([&] { run.engine->submit({}); }), "");
    Completion first = run.engine->finish(), second = run.engine->finish();
    EXPECT_LE(first.begin, first.end);
    EXPECT_LE(first.end, second.begin + std::chrono::microseconds(2)); // as exact as a float of milliseconds
    EXPECT_NE(refusalOf([&] { run.engine->finish(); }), "");
  }
  run.engine->submit({}), run.engine->submit({}); // the engine waits for them when it goes
}

// With an entry lane compute is in the second program while another lane is still in the first.
TEST(CudaOrder, LanesRunOn) {
  PlanBuilder b;
  Ref large = b.floats("large", 1 << 20);
  for (int i = 0; i < 20; ++i) b.fill("slow" + std::to_string(i), large, 1, UPDATE);
  b.program().add_entries();
  Session run(b, true);
  int ranOn = 0;
  for (int i = 0; i < 5; ++i) {
    run.engine->submit({}), run.engine->submit({});
    Completion first = run.engine->finish(), second = run.engine->finish();
    ranOn += second.begin < first.end;
    EXPECT_LE(first.end, second.end);
  }
  EXPECT_GT(ranOn, 0);
}

// The plan's order need not be one in which all that is waited for comes first; several waits for a lane are one.
TEST(CudaOrder, IsMadeForStreams) {
  PlanBuilder b;
  Ref x = b.floats("x", 8), y = b.floats("y", 8), z = b.floats("z", 8);
  Step &late = b.step("late", {x}, {y});
  late.mutable_copy(), waitFor(late, UPDATE, 1), waitFor(late, UPDATE, 2), waitFor(late, UPDATE, 1);
  Step &later = b.step("later", {y}, {z});
  later.mutable_copy(), waitFor(later, UPDATE, 2);
  b.fill("early", x, 3, UPDATE);
  b.fill("early too", x, 4, UPDATE);
  Session run(b, true);
  run.engine->run(0);
  EXPECT_EQ(run.read(z), std::vector<float>(8, 4));
  DeviceProgram program;
  program.source = &b.program();
  FillOf<Place> fill{Address{0, 0}, 0, 4};
  program.waits = {{UPDATE, 1}, {UPDATE, 2}, {UPDATE, 1}, {UPDATE, 2}, {COMPUTE, 0}};
  program.operations = {{COMPUTE, fill, 0, 0, 3}, {COMPUTE, fill, 1, 3, 4}, {UPDATE, fill, 2, 4, 5}, {UPDATE, fill, 3, 5, 5}};
  EXPECT_EQ(cuda::submissionOrder(program), (std::vector<uint32_t>{2, 3, 0, 1}));
  cuda::Failure failure;
  DiskArenas disk{{}, 0};
  cuda::Binding binding{[](Address a) { return a.offset; }, [](Address) { return nullptr; }, {}, disk, nullptr, {}, &failure};
  cuda::CudaProgram bound = cuda::boundProgram(program, binding);
  std::vector<std::vector<uint32_t>> waits;
  for (const cuda::CudaOperation &operation : bound.operations) {
    waits.emplace_back();
    for (const LaneWait &wait : operation.waits) waits.back().push_back(wait.tick);
  }
  EXPECT_EQ(waits, (std::vector<std::vector<uint32_t>>{{0}, {}, {2}, {}}));
}

TEST(CudaOrder, ATraceHasEveryStep) {
  RoundsPlan b(1);
  Session run(b, true, {}, "", {.programs = {}, .trace = true});
  run.engine->submit({}), run.engine->submit({});
  run.engine->finish(), run.engine->finish();
  auto steps = static_cast<size_t>(b.program().steps_size());
  EXPECT_EQ(run.engine->trace().size(), 2 * steps);
  std::array<double, kLanes> busy{};
  for (const TraceEvent &event : run.engine->trace()) {
    EXPECT_LE(event.begin, event.end);
    busy[static_cast<size_t>(event.lane)] += event.end - event.begin;
  }
  for (size_t lane = 0; lane < kLanes; ++lane) EXPECT_NEAR(run.engine->stats()[lane].busySeconds, busy[lane], 1e-9);
}

} // namespace
