// Threads that work ahead of a search (passes/pipeline/speculation.h): what they take, what they leave, and when they stop.
#include "passes/pipeline/quiet.h"
#include "passes/pipeline/speculation.h"
#include <future>
#include <gtest/gtest.h>

namespace zero::pipeline {
namespace {

/// Work of which it is known that it has begun, and which ends when it is told to.
struct Task {
  std::shared_ptr<std::atomic<bool>> stop = std::make_shared<std::atomic<bool>>(false);
  std::promise<void> begun, mayEnd;

  Speculation::Work work() {
    return {stop, [this] {
              begun.set_value();
              mayEnd.get_future().wait();
            }};
  }
};

TEST(Speculation, TakesTheFirstFirst) {
  std::vector<int> order;
  std::promise<void> done;
  auto never = std::make_shared<std::atomic<bool>>(false);
  Speculation speculation(1);
  ASSERT_TRUE(speculation.any());
  std::vector<Speculation::Work> works;
  for (int i = 0; i < 3; ++i)
    works.push_back({never, [&, i] {
                       order.push_back(i);
                       if (i == 2) done.set_value();
                     }});
  speculation.begin(std::move(works));
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST(Speculation, DoesNotBeginWhatTheSearchHasReached) {
  Task first, second, third;
  Speculation speculation(1);
  speculation.begin({first.work(), second.work(), third.work()});
  first.begun.get_future().wait();
  speculation.reached(0);
  speculation.reached(1);
  EXPECT_TRUE(*first.stop) << "it is under way, and shall end";
  EXPECT_FALSE(*third.stop);
  first.mayEnd.set_value();
  third.begun.get_future().wait();
  EXPECT_EQ(second.begun.get_future().wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  third.mayEnd.set_value();
}

TEST(Speculation, LeavesOldWorkForNew) {
  Task old, waiting, fresh;
  Speculation speculation(1);
  speculation.begin({old.work(), waiting.work()});
  old.begun.get_future().wait();
  speculation.begin({fresh.work()});
  EXPECT_TRUE(*old.stop);
  EXPECT_TRUE(*waiting.stop);
  old.mayEnd.set_value();
  fresh.begun.get_future().wait();
  EXPECT_EQ(waiting.begun.get_future().wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  fresh.mayEnd.set_value();
}

TEST(Speculation, EndsWithWhatIsUnderWay) {
  auto stop = std::make_shared<std::atomic<bool>>(false);
  std::promise<void> begun;
  bool ended = false;
  {
    Speculation speculation(2);
    speculation.begin({{stop, [&] {
                          begun.set_value();
                          while (!*stop) std::this_thread::yield();
                          ended = true;
                        }}});
    begun.get_future().wait();
  }
  EXPECT_TRUE(ended);
}

TEST(Speculation, GoesOnAfterAnException) {
  std::promise<void> done;
  auto never = std::make_shared<std::atomic<bool>>(false);
  Speculation speculation(1);
  speculation.begin({{never, [] { throw std::runtime_error("which the search would say"); }}, {never, [&] { done.set_value(); }}});
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

TEST(Speculation, IsQuiet) {
  std::promise<bool> here;
  Speculation speculation(1);
  speculation.begin({{std::make_shared<std::atomic<bool>>(false), [&] { here.set_value(Quiet::here()); }}});
  EXPECT_TRUE(here.get_future().get());
  EXPECT_FALSE(Quiet::here());
}

TEST(Speculation, NeedsNoThreads) {
  Speculation speculation(0);
  EXPECT_FALSE(speculation.any());
  speculation.begin({{std::make_shared<std::atomic<bool>>(false), [] { FAIL(); }}});
  speculation.reached(0);
}

} // namespace
} // namespace zero::pipeline
