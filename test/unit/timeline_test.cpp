#include "runtime/device/cpu/timeline.h"
#include "runtime/process/wake_soon.h"
#include <chrono>
#include <random>
#include <sys/resource.h>
#include <thread>

namespace zero::runtime {
namespace {

void pauseFor(std::chrono::microseconds time) { std::this_thread::sleep_for(time); }

// Times that this thread slept.
long sleeps() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Lanes that wait for each other's ticks, now near, now far: each ends, and none goes on before its time.
TEST(Timeline, LanesMeet) {
  constexpr int kUsed = 4;
  constexpr uint32_t kTicks = 20'000;
  Timeline timeline;
  std::array<std::atomic<uint32_t>, kUsed> reached{};
  std::atomic<int> early{0};
  std::vector<std::jthread> lanes;
  for (int lane = 0; lane < kUsed; ++lane)
    lanes.emplace_back([&, lane] {
      std::mt19937 random(static_cast<unsigned>(lane));
      for (uint32_t tick = 0; tick < kTicks; ++tick) {
        int other = static_cast<int>(random() % kUsed);
        uint32_t most = tick + (other < lane ? 1 : 0), target = most - std::min<uint32_t>(most, random() % 3); // nobody waits in a circle
        if (other != lane && random() % 4 == 0) {
          timeline.wait(lane, other, target);
          early += reached[static_cast<size_t>(other)].load() < target;
        }
        if (random() % 512 == 0) pauseFor(std::chrono::microseconds(random() % 100));
        ++reached[static_cast<size_t>(lane)];
        timeline.advance(lane);
      }
    });
  lanes.clear();
  EXPECT_EQ(early, 0);
}

TEST(Timeline, LanesTakeTurns) {
  Timeline timeline;
  std::jthread other([&] {
    for (uint32_t tick = 1; tick <= 20'000; ++tick) timeline.wait(1, 0, tick), timeline.advance(1);
  });
  for (uint32_t tick = 1; tick <= 20'000; ++tick) timeline.advance(0), timeline.wait(0, 1, tick);
}

// More lanes than processors wait for one that is just ahead: a wait often ends by itself while the lane it waits for is about to wake it,
// and that wake must not cost the next wait its own.
TEST(Timeline, AWakeThatComesLateIsNotTheNextWaits) {
  constexpr uint32_t kTicks = 5'000;
  Timeline timeline;
  std::vector<std::jthread> others;
  for (int lane = 1; lane < Timeline::kLanes; ++lane)
    others.emplace_back([&, lane] {
      for (uint32_t tick = 1; tick <= kTicks; ++tick) timeline.wait(lane, 0, tick), timeline.advance(lane);
    });
  for (uint32_t tick = 1; tick <= kTicks; ++tick) {
    timeline.advance(0);
    timeline.wait(0, 1 + static_cast<int>(tick) % (Timeline::kLanes - 1), tick);
  }
}

TEST(Timeline, StepsBeforeTheOneThatIsWaitedForWakeNobody) {
  constexpr uint32_t kSteps = 300;
  Timeline timeline;
  long slept = 0;
  std::jthread waiting([&] {
    long before = sleeps();
    timeline.wait(1, 0, kSteps);
    slept = sleeps() - before;
  });
  for (uint32_t step = 0; step < kSteps; ++step) pauseFor(std::chrono::microseconds(50)), timeline.advance(0);
  waiting.join();
  EXPECT_LE(slept, 20); // it yields its processor before it sleeps
}

TEST(Timeline, TicksWrap) {
  Timeline timeline;
  for (uint32_t tick = 0; tick < 3; ++tick) timeline.advance(0);
  timeline.wait(1, 0, UINT32_MAX - 1); // four ticks before it, and not far behind it
  timeline.wait(1, 0, 3);
}

TEST(Timeline, AFailureWakesAll) {
  Timeline timeline;
  std::vector<std::jthread> lanes;
  for (int lane = 1; lane < 4; ++lane) lanes.emplace_back([&, lane] { timeline.wait(lane, 0, 7); });
  pauseFor(std::chrono::milliseconds(5));
  timeline.fail(std::make_exception_ptr(std::runtime_error("the first")));
  timeline.fail(std::make_exception_ptr(std::runtime_error("the second")));
  lanes.clear();
  EXPECT_TRUE(timeline.hasFailed());
  timeline.wait(1, 2, 100); // returns from now on
  EXPECT_THROW(
      try { std::rethrow_exception(timeline.reason()); } catch (const std::runtime_error &error) {
        EXPECT_STREQ(error.what(), "the first");
        throw;
      },
      std::runtime_error);
}

// What the user has set for the process stays as it is.
TEST(WakeSoon, KeepsNicenessAndPolicy) {
  std::jthread([] {
    ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 7), 0);
    wakeSoon();
    EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())), 7);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  }).join();
  std::jthread([] {
    sched_param none{};
    ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    wakeSoon();
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  }).join();
}

} // namespace
} // namespace zero::runtime
