// Virtual time (runtime/simulate): small schedules whose times are known.
#include "runtime/base/error.h"
#include "runtime/simulate/machines.h"
#include "runtime/simulate/measured.h"
#include "runtime/simulate/step_cost.h"
#include "runtime/simulate/step_time.h"
#include "runtime/simulate/timeline.h"
#include "test/unit/plan_builder.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace zero;
using namespace zero::simulate;

namespace {

constexpr int kCompute = plan::COMPUTE, kGather = plan::GATHER, kReduce = plan::REDUCE, kRead = plan::DISK_READ, kWrite = plan::DISK_WRITE;

using Tasks = std::vector<Task>;
using Ends = std::vector<std::vector<double>>;

Ends endsOf(std::span<const ProgramRun> runs) {
  Ends ends;
  for (const std::vector<Interval> &run : intervalsOf(runs)) {
    ends.emplace_back();
    for (Interval task : run) ends.back().push_back(task.end);
  }
  return ends;
}

void expectEnds(std::span<const ProgramRun> runs, const Ends &expected) {
  Ends found = endsOf(runs);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t run = 0; run < found.size(); ++run) {
    ASSERT_EQ(found[run].size(), expected[run].size());
    for (size_t task = 0; task < found[run].size(); ++task) EXPECT_NEAR(found[run][task], expected[run][task], 1e-9) << run << ":" << task;
  }
}

TEST(Timeline, LanesRunSideBySideAndWait) {
  Tasks tasks{{kRead, 3},
              {kRead, 3},                                // after the first of its lane
              {kCompute, 2},                             // beside them
              {kCompute, 2, {{kRead, 1}}},               // begins at 3
              {kCompute, 2, {{kRead, 1}}},               // long known
              {kWrite, 1, {{kCompute, 2}, {kRead, 2}}}}; // begins at 6
  expectEnds(std::array{ProgramRun{tasks}}, {{3, 6, 2, 5, 7, 7}});
}

TEST(Timeline, TasksBeginWhenTheirLaneAndWhatTheyWaitForAreReady) {
  Tasks tasks{{kRead, 3}, {kCompute, 2}, {kCompute, 2, {{kRead, 1}}}};
  std::vector<std::vector<Interval>> found = intervalsOf(std::array{ProgramRun{tasks}});
  EXPECT_EQ(found[0][0].begin, 0);
  EXPECT_EQ(found[0][1].begin, 0);
  EXPECT_EQ(found[0][2].begin, 3);
  EXPECT_EQ(found[0][2].end, 5);
}

TEST(Timeline, LanesRunOnOrAreDrained) {
  for (bool drained : {false, true}) {
    Tasks first{{kCompute, 2}, {kWrite, 5, {{kCompute, 1}}}}; // until 7
    Tasks second{{kCompute, 2}, {kRead, 1}}, third{{kRead, 1}, {kCompute, 1}};
    EntryWait written{1, {kWrite, 1}}; // for the program before
    std::vector<ProgramRun> runs{{first}, {second, drained, {}}, {third, false}};
    if (!drained) runs[1].entry = std::span(&written, 1);
    // The third runs on after the second, but not before the first is complete.
    expectEnds(runs, drained ? Ends{{2, 7}, {9, 8}, {9, 10}} : Ends{{2, 7}, {4, 8}, {9, 8}});
  }
}

TEST(Timeline, LanesOfOneResourceShareIt) {
  Tasks both{{kRead, 4}, {kWrite, 1}, {kCompute, 4}};
  expectEnds(std::array{ProgramRun{both}}, {{5, 2, 4}}); // half as fast until 2, when 3 s of the reading are left
  Tasks later{{kRead, 4}, {kCompute, 1}, {kWrite, 1, {{kCompute, 1}}}, {kWrite, 1, {{kRead, 1}}}};
  expectEnds(std::array{ProgramRun{later}}, {{5, 1, 3, 6}}); // alone until 1, together until 3, alone again
  Tasks link{{kGather, 2}, {kReduce, 2}, {kRead, 2}};
  expectEnds(std::array{ProgramRun{link}}, {{4, 4, 2}}); // the disk is another resource than the link
}

/// However lanes wait, a resource has never done more than time has passed, and is never idle while one of its lanes could go on.
TEST(Timeline, ResourcesRestOnlyWhenNothingIsUnderWay) {
  for (double read : {1., 2., 5.})
    for (double write : {1., 3., 7.}) {
      Tasks tasks;
      for (int i = 0; i < 10; ++i) tasks.push_back({kRead, read}), tasks.push_back({kWrite, write});
      Ends ends = endsOf(std::array{ProgramRun{tasks}});
      EXPECT_NEAR(std::max(ends[0][18], ends[0][19]), 10 * (read + write), 1e-9);
      EXPECT_NEAR(std::min(ends[0][18], ends[0][19]), 20 * std::min(read, write), 1e-9); // with half of it all the time
    }
}

TEST(Timeline, WaitsInACircleAreSaid) {
  Tasks tasks{{kRead, 1, {{kWrite, 1}}}, {kWrite, 1, {{kRead, 1}}}};
  EXPECT_THROW(endsOf(std::array{ProgramRun{tasks}}), Error);
}

Machine simple() {
  Machine machine;
  machine.productsF32 = 1000, machine.productsTf32 = 1250, machine.productsBf16 = 4000, machine.memory = 100, machine.step = 1e-9;
  machine.link = 10, machine.linkLatency = 2, machine.toDevice = 50, machine.toHost = 25, machine.diskRead = 20, machine.diskWrite = 5;
  return machine;
}

TEST(StepTime, OfEachKindOfStep) {
  test::PlanBuilder b(4);
  plan::Ref a = b.floats("a", 100), c = b.floats("c", 100);
  auto seconds = [&](plan::Step &step) { return secondsOf(b.plan, step, simple()); };
  plan::Step &copy = b.step("copy", {a}, {c});
  copy.mutable_copy();
  EXPECT_NEAR(seconds(copy), 8, 1e-6); // 400 bytes read and as many written, of 100 in a second
  plan::Ref host = b.bytesIn(b.addArena(plan::HOST, 64), "host", 400), disk = b.bytesIn(b.addArena(plan::DISK, 4096), "disk", 400);
  auto between = [&](const plan::Ref &from, const plan::Ref &to, plan::Lane lane) {
    plan::Step &step = b.step("copy", {from}, {to}, lane);
    step.mutable_copy();
    return seconds(step);
  };
  EXPECT_NEAR(between(host, a, plan::TO_DEVICE), 8, 1e-6);
  EXPECT_NEAR(between(a, host, plan::TO_HOST), 16, 1e-6);
  EXPECT_NEAR(between(disk, a, plan::DISK_READ), 20, 1e-6);
  EXPECT_NEAR(between(a, disk, plan::DISK_WRITE), 80, 1e-6);
  EXPECT_NEAR(between(host, a, plan::UPDATE_READ), 8, 1e-6); // an update's copies, by what they work with
  EXPECT_NEAR(between(a, disk, plan::UPDATE_WRITE), 80, 1e-6);
  plan::Ref rows = b.floats("rows", 10), indices = b.bytes("indices", 80);
  auto write = [&](const plan::Ref &window, plan::Lane lane) {
    plan::Step &step = b.step("rows", {rows, indices, window}, {window}, lane);
    step.mutable_write_rows()->set_index_type(plan::I64), step.mutable_write_rows()->set_row_bytes(4);
    return seconds(step);
  };
  EXPECT_NEAR(write(a, plan::COMPUTE), 0.8, 1e-6); // 40 bytes read and as many written
  EXPECT_NEAR(write(host, plan::TO_HOST), 1.6, 1e-6);
  EXPECT_NEAR(write(disk, plan::DISK_WRITE), 20 * 4096 / 20. + 20 * 4096 / 5., 1e-6); // two blocks of each
  Machine fast;
  EXPECT_NEAR(secondsOf(b.plan, *b.program().mutable_steps()->rbegin(), fast), 10 * 4e-5 + fast.step, 1e-9); // two requests for each
  plan::Step &product = b.step("product", {a, a}, {c});
  plan::MatMul &m = *product.mutable_matmul();
  m.set_dtype(plan::F32), m.set_m(100), m.set_n(20), m.set_k(10), m.set_batch(1);
  EXPECT_NEAR(seconds(product), 20, 1e-6); // 20000 multiply-adds
  m.set_tf32(true);
  EXPECT_NEAR(seconds(product), 16, 1e-6);
  m.set_tf32(false), m.set_dtype(plan::BF16);
  EXPECT_NEAR(seconds(product), 12, 1e-6); // 5 of them, but 1200 bytes take 12
  plan::Step &gather = b.step("gather", {a}, {c}, plan::GATHER);
  gather.mutable_collective()->set_count(25), gather.mutable_collective()->set_dtype(plan::F32);
  EXPECT_NEAR(seconds(gather), 32, 1e-6); // 100 bytes to each of three others, and the latency
  plan::Step &sum = b.step("sum", {a}, b.staged(a, c), plan::REDUCE);
  test::collect(sum, plan::Collective::ALL_REDUCE, 25).set_slice(10);
  EXPECT_NEAR(seconds(sum), 36, 1e-6); // the same, and the latency of three slices
}

/// A disk read of 4 s, then 1 s of computation that waits for it.
plan::Plan cycle(bool runsOn, uint32_t accumulate) {
  test::PlanBuilder b;
  plan::Ref disk = b.bytesIn(b.addArena(plan::DISK, 4096), "disk", 80), whole = b.bytes("whole", 80), room = b.bytes("room", 50);
  b.step("read", {disk}, {whole}, plan::DISK_READ).mutable_copy();
  plan::Step &compute = b.step("compute", {room}, {room});
  compute.mutable_copy();
  plan::Wait *wait = compute.add_waits();
  wait->set_lane(plan::DISK_READ), wait->set_tick(1);
  plan::Plan &plan = b.plan;
  plan.set_accumulate(accumulate);
  auto enter = [&](int program, uint32_t after) {
    plan::Entry *entry = plan.mutable_programs(program)->add_entries();
    entry->set_after(after);
    plan::EntryWait *free = entry->add_waits(); // nothing is read while the program before still computes
    free->set_step(0), free->set_lane(plan::COMPUTE), free->set_tick(1);
  };
  if (accumulate > 1) {
    plan.mutable_programs(0)->set_role(plan::Program::FIRST);
    for (auto role : {plan::Program::MIDDLE, plan::Program::LAST}) {
      *plan.add_programs() = plan.programs(0);
      plan.mutable_programs(plan.programs_size() - 1)->set_role(role);
    }
    if (runsOn) enter(0, 2), enter(1, 0), enter(1, 1), enter(2, 1);
  } else if (runsOn) {
    enter(0, 0);
    plan.mutable_programs(0)->mutable_entries(0)->clear_waits();
  }
  return plan;
}

TEST(StepTime, OfACycle) {
  StepTime time = timeOf(cycle(/*runsOn=*/false, 1), simple(), false);
  EXPECT_NEAR(time.seconds, 5, 1e-6);
  time = timeOf(cycle(/*runsOn=*/true, 1), simple(), false);
  EXPECT_NEAR(time.seconds, 4, 1e-6); // the next step's read runs beside computation
  EXPECT_NEAR(time.least(), 4, 1e-6);
  EXPECT_NEAR(time.busy[kCompute], 1, 1e-6);
  EXPECT_NEAR(time.busy[kRead], 4, 1e-6);
}

/// An update beside computation: both use the processors, its copies the disk.
TEST(StepTime, UpdatesShareTheProcessors) {
  test::PlanBuilder b;
  plan::Ref disk = b.bytesIn(b.addArena(plan::DISK, 4096), "disk", 80), whole = b.bytes("whole", 80), room = b.bytes("room", 50);
  b.step("fetch", {disk}, {whole}, plan::UPDATE_READ).mutable_copy();                                        // 4 s
  for (plan::Lane lane : {plan::COMPUTE, plan::UPDATE}) b.step("work", {room}, {room}, lane).mutable_copy(); // 1 s each
  StepTime time = timeOf(b.plan, simple(), false);
  EXPECT_NEAR(time.of(kProcessors), 2, 1e-6);
  EXPECT_NEAR(time.of(kDisk), 4, 1e-6);
  EXPECT_NEAR(time.seconds, 4, 1e-6);
}

/// An update that the host makes for a GPU runs beside its computation, at the speed of the host's memory.
TEST(StepTime, UpdatesOnTheHostHaveItToThemselves) {
  test::PlanBuilder b;
  plan::Ref kept = b.bytesIn(b.addArena(plan::HOST, 64), "kept", 100), room = b.bytes("room", 150);
  b.step("work", {room}, {room}).mutable_copy(); // 3 s
  b.plan.add_kernels()->set_bytes(400);
  b.step("update", {kept, kept}, {kept}, plan::UPDATE_HOST).mutable_update()->mutable_launch()->set_kernel(0);
  Machine machine = simple();
  machine.hostMemory = 200; // 2 s
  StepTime time = timeOf(b.plan, machine, false);
  EXPECT_NEAR(time.of(kProcessors), 3, 1e-6);
  EXPECT_NEAR(time.of(kHost), 2, 1e-6);
  EXPECT_NEAR(time.seconds, 3, 1e-6);
}

/// One of state on disk, which comes and returns beside the GPU; through the GPU it goes over the link as well.
TEST(StepTime, UpdatesOfStateOnDisk) {
  for (bool onHost : {true, false}) {
    test::PlanBuilder b;
    b.plan.mutable_target()->set_kind(plan::Target::CUDA);
    int memory = onHost ? b.addArena(plan::HOST, 64) : 0;
    plan::Ref disk = b.bytesIn(b.addArena(plan::DISK, 4096), "disk", 80), there = b.bytesIn(memory, "there", 80);
    b.step("fetch", {disk}, {there}, plan::DISK_READ).mutable_copy(); // 4 s
    b.plan.add_kernels()->set_bytes(100);
    b.step("update", {there, there}, {there}, onHost ? plan::UPDATE_HOST : plan::COMPUTE).mutable_update()->mutable_launch()->set_kernel(0);
    test::waitFor(*b.program().mutable_steps(1), plan::DISK_READ, 1);
    b.step("return", {there}, {disk}, plan::DISK_WRITE).mutable_copy(); // 16 s
    test::waitFor(*b.program().mutable_steps(2), onHost ? plan::UPDATE_HOST : plan::COMPUTE, 1);
    Machine machine = simple();
    machine.hostMemory = 50; // 2 s
    StepTime time = timeOf(b.plan, machine, false);
    EXPECT_NEAR(time.of(kHost), onHost ? 2 : 0, 1e-6);
    EXPECT_NEAR(time.of(kProcessors), onHost ? 0 : 1, 1e-6);
    EXPECT_NEAR(time.of(kDisk), onHost ? 20 : 20 + 80 / machine.toDevice + 80 / machine.toHost, 1e-6);
  }
}

TEST(StepTime, ReadingAndWritingShareTheDisk) {
  test::PlanBuilder b;
  int arena = b.addArena(plan::DISK, 4096);
  plan::Ref disk = b.bytesIn(arena, "disk", 80), other = b.bytesIn(arena, "other", 20), whole = b.bytes("whole", 80),
            room = b.bytes("room", 20);
  b.step("read", {disk}, {whole}, plan::DISK_READ).mutable_copy();   // 4 s
  b.step("write", {room}, {other}, plan::DISK_WRITE).mutable_copy(); // 4 s
  StepTime time = timeOf(b.plan, simple(), false);
  EXPECT_NEAR(time.seconds, 8, 1e-6);
  EXPECT_NEAR(time.busy[kRead], 4, 1e-6);
  EXPECT_NEAR(time.busy[kWrite], 4, 1e-6);
  EXPECT_EQ(time.busiest(), kDisk);
  EXPECT_NEAR(time.least(), 8, 1e-6);
}

TEST(StepTime, OfManyMicroSteps) {
  for (bool runsOn : {false, true}) {
    StepTime time = timeOf(cycle(runsOn, 1000), simple(), false);
    EXPECT_NEAR(time.seconds, 5000, 1e-3);
    EXPECT_NEAR(time.busy[kRead], 4000, 1e-3);
  }
}

TEST(Measured, IsWhatTheSecondRunOfAProgramShows) {
  test::PlanBuilder b;
  int arena = b.addArena(plan::DISK, 4096);
  plan::Ref disk = b.bytesIn(arena, "disk", 80), other = b.bytesIn(arena, "other", 20), whole = b.bytes("whole", 80),
            room = b.bytes("room", 20), c = b.floats("c", 100);
  b.step("read", {disk}, {whole}, plan::DISK_READ).mutable_copy();
  b.step("write", {room}, {other}, plan::DISK_WRITE).mutable_copy();
  b.step("copy", {c}, {c}).mutable_copy();
  plan::MatMul &m = *b.step("product", {c, c}, {c}).mutable_matmul();
  m.set_dtype(plan::F32), m.set_m(100), m.set_n(20), m.set_k(10), m.set_batch(1);
  auto event = [&](const char *name, int lane, double begin, double end) {
    return fmt::format(R"({{"ph": "X", "name": "{}", "cat": "{}", "pid": 0, "tid": {}, "ts": {}, "dur": {}}})", name,
                       b.plan.programs(0).name(), lane, begin * 1e6, (end - begin) * 1e6);
  };
  std::string first = event("read", kRead, 0, 1) + ", " + event("write", kWrite, 0, 1) + ", " + event("copy", kCompute, 0, 1) + ", " +
                      event("product", kCompute, 1, 2);
  std::string second = event("read", kRead, 10, 16) + ", " + event("write", kWrite, 12, 16) + ", " + // half of 4 s is the other's
                       event("copy", kCompute, 10, 18) + ", " + event("product", kCompute, 18, 28);
  auto measured = [&](const std::string &events) { return measuredMachine(b.plan, "[" + events + "]", "t.json"); };
  Machine machine = parseCluster(measured(first + ", " + second), "measured").rank;
  EXPECT_NEAR(machine.diskRead, 20, 1e-6);  // 80 bytes in 4 s
  EXPECT_NEAR(machine.diskWrite, 10, 1e-6); // 20 bytes in 2 s
  EXPECT_NEAR(machine.memory, 100, 1e-6);   // 400 bytes read and 400 written in 8 s
  EXPECT_NEAR(machine.productsF32, 2000, 1e-6);
  EXPECT_EQ(machine.link, Machine().link); // not shown
  auto refusal = [&](const std::string &events) -> std::string {
    try {
      measured(events);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal("{").find("'t.json' is no trace"), std::string::npos);
  EXPECT_NE(refusal(R"({"ph": 5})").find("'t.json' is no trace: an event of it has another type of value"), std::string::npos);
  EXPECT_NE(refusal(first).find("'t.json' has no second run of a program"), std::string::npos);
  EXPECT_NE(refusal(event("sum", kCompute, 0, 1)).find("'t.json' is a trace of another plan: it has 'sum' on lane compute"),
            std::string::npos);
  EXPECT_NE(refusal(event("read", plan::GATHER, 0, 1)).find("where this plan has nothing"), std::string::npos);
}

TEST(Machine, IsWhatThePlanIsForWhereNobodySays) {
  plan::Target target;
  EXPECT_EQ(print(defaultMachine(target, 1)), print(Machine()));
  target.set_cpu("x86-64-v3");
  EXPECT_LT(defaultMachine(target, 1).productsBf16, defaultMachine(target, 1).productsF32) << "they are widened";
  target.set_kind(plan::Target::CUDA); // and updates on the host
  target.add_features("sm_80");
  EXPECT_EQ(print(defaultMachine(target, 1)), print(clusterNamed("a100")->rank));
  target.set_features(0, "sm_90a");
  EXPECT_EQ(print(defaultMachine(target, 1)), print(namedOrRead("h100").rank));
  EXPECT_EQ(clusterNamed("h1000"), nullptr);
  try {
    namedOrRead("/no/h1000");
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(),
                 "the machine's description cannot be read: cannot open '/no/h1000': No such file or directory; known by name "
                 "are a100 and h100");
  }
}

} // namespace
