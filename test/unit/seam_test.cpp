// The seam between engine and device: programs on a device that completes operations in any order their waits allow (virtual_device.h)
// give the bits of the cpu, and do not once a wait is missing. Alone and under mpirun.
#include "runtime/base/error.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/plan/validate.h"
#include "test/unit/mpi_environment.h"
#include "test/unit/plan_builder.h"
#include "test/unit/run_fixtures.h"
#include "test/unit/sample_plans.h"
#include "test/unit/virtual_device.h"
#include <algorithm>
#include <cmath>

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using zero::test::kElements;
using zero::test::PlanBuilder;
using zero::test::refusalOf;
using zero::test::resultsOf;
using zero::test::RoundsPlan;
using zero::test::VirtualDevice;
using zero::test::world;

namespace {

auto *environment = testing::AddGlobalTestEnvironment(new zero::test::MpiEnvironment);

bool same(const std::vector<float> &a, const std::vector<float> &b) { // NaNs are not equal to themselves
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Seam : testing::Test {
  uint32_t ranks = static_cast<uint32_t>(world->world());
  RoundsPlan plan{ranks};

  std::vector<float> onCpu() {
    auto device = makeCpuDevice({.threads = 2});
    PlanFile file = plan.file();
    return resultsOf(file, plan.own, plan.input, plan.result, *device);
  }
  std::vector<float> onVirtual(uint64_t seed) {
    PlanFile file = plan.file();
    VirtualDevice device(file.plan, seed);
    return resultsOf(file, plan.own, plan.input, plan.result, device);
  }
};

TEST_F(Seam, AnyOrderGivesTheSameBits) {
  std::vector<float> expected = onCpu();
  for (float value : expected) ASSERT_TRUE(std::isfinite(value));
  EXPECT_NE(expected[0], expected[2 * kElements]);
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_TRUE(same(expected, onVirtual(seed))) << seed;
}

// Each wait, taken away: some order gives other bits.
TEST_F(Seam, EveryWaitThatIsMissingIsSeen) {
  if (ranks > 1) GTEST_SKIP() << "ranks would not agree on what they see";
  std::vector<float> expected = onCpu();
  int waits = 0;
  for (int s = 0; s < plan.program().steps_size(); ++s)
    for (int w = 0; w < plan.program().steps(s).waits_size(); ++w, ++waits) {
      RoundsPlan whole = plan;
      plan.program().mutable_steps(s)->mutable_waits()->DeleteSubrange(w, 1);
      bool seen = false;
      for (uint64_t seed = 0; seed < 40 && !seen; ++seed) seen = !same(expected, onVirtual(seed));
      EXPECT_TRUE(seen) << "step " << s << " '" << plan.program().steps(s).name() << "'";
      plan = whole;
    }
  EXPECT_EQ(waits, 16);
}

TEST_F(Seam, AWaitForTheProgramBeforeThatIsMissingIsSeen) {
  if (ranks > 1) GTEST_SKIP() << "ranks would not agree on what they see";
  std::vector<float> expected = onCpu();
  auto *wait = plan.program().mutable_entries(0)->mutable_waits(0);
  auto seen = [&] {
    for (uint64_t seed = 0; seed < 40; ++seed)
      if (!same(expected, onVirtual(seed))) return true;
    return false;
  };
  wait->set_tick(wait->tick() - 1);
  EXPECT_TRUE(seen());
  plan.program().mutable_entries(0)->clear_waits();
  EXPECT_TRUE(seen());
  plan.program().clear_entries(); // drained
  EXPECT_FALSE(seen());
}

// A result that another lane than compute leaves, which takes its time.
TEST_F(Seam, ResultsAreReadWhenTheyAreThere) {
  PlanBuilder builder(ranks);
  Ref value = builder.floats("value", 1 << 20), input = builder.floats("input", 1);
  builder.fill("slow", value, 3, UPDATE);
  builder.program().add_entries();
  auto onDevice = [&](Device &device) {
    PlanFile file = builder.file();
    validate(file.plan, 0);
    Engine engine(file, device, *world, {});
    std::vector<float> result(1 << 20, 1.0f), given{1.0f};
    std::vector<HostTransfer> writes{engine.transfer(input, std::as_writable_bytes(std::span(given)))},
        reads{engine.transfer(value, std::as_writable_bytes(std::span(result)))};
    engine.submit({.program = 0, .writes = writes, .reads = reads});
    engine.finish();
    return std::ranges::all_of(result, [](float v) { return v == 3; });
  };
  auto onVirtual = [&] {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      VirtualDevice device(builder.plan, seed);
      if (!onDevice(device)) return false;
    }
    return true;
  };
  EXPECT_FALSE(onVirtual());
  Wait *reading = builder.program().add_result_waits();
  reading->set_lane(UPDATE), reading->set_tick(1);
  EXPECT_TRUE(onVirtual());
  auto device = makeCpuDevice({.threads = 1});
  EXPECT_TRUE(onDevice(*device));
}

TEST_F(Seam, TheHostCannotMissThatItIsEarly) {
  PlanFile file = plan.file();
  VirtualDevice device(file.plan, 1);
  Engine engine(file, device, *world, {});
  std::vector<float> input(kElements, 1.0f), output(kElements, 1.0f);
  std::vector<HostTransfer> writes{engine.transfer(plan.input, std::as_writable_bytes(std::span(input)))},
      reads{engine.transfer(plan.result, std::as_writable_bytes(std::span(output)))};
  Submission submission{.program = 0, .writes = writes, .reads = reads};
  engine.submit(submission);
  EXPECT_TRUE(std::isnan(output[0])); // read before it is there
  engine.finish();
  EXPECT_FALSE(std::isnan(output[0]));
  engine.submit(submission);
  input[7] = 2; // written while it may still be read
  EXPECT_NE(refusalOf([&] { engine.finish(); }).find("changed an input"), std::string::npos);
}

// Without an entry the device of the cpu begins nothing before what was submitted before is complete. It refuses a third.
TEST_F(Seam, SubmissionsWaitForTheirTurn) {
  plan.program().clear_entries();
  PlanFile file = plan.file();
  auto device = makeCpuDevice({.threads = 1});
  Engine engine(file, *device, *world, {});
  for (int i = 0; i < 50; ++i) {
    engine.submit({}), engine.submit({});
    EXPECT_NE(refusalOf([&] { engine.submit({}); }), "");
    Completion first = engine.finish(), second = engine.finish();
    EXPECT_LE(first.begin, first.end);
    EXPECT_LE(first.end, second.begin);
    EXPECT_NE(refusalOf([&] { engine.finish(); }), "");
  }
  engine.submit({}), engine.submit({}); // the engine waits for them when it goes
}

// With one, lane compute is in the second program while another lane is still in the first. It has no step of its own, which
// would have to wait for the threads that the other lane uses.
TEST_F(Seam, LanesRunOn) {
  PlanBuilder builder(ranks);
  Ref large = builder.floats("large", 8 << 20);
  for (int i = 0; i < 20; ++i) builder.fill("slow" + std::to_string(i), large, 1, UPDATE);
  builder.program().add_entries();
  PlanFile file = builder.file();
  auto device = makeCpuDevice({.threads = 1});
  Engine engine(file, *device, *world, {});
  int ranOn = 0;
  for (int i = 0; i < 5 && ranOn == 0; ++i) {
    engine.submit({}), engine.submit({});
    Completion first = engine.finish(), second = engine.finish();
    ranOn += second.begin < first.end;
    EXPECT_LE(first.end, second.end);
  }
  EXPECT_GT(ranOn, 0);
}

} // namespace
