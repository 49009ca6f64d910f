//===- speculation.h - what the search will ask for next, by threads that are idle --------------------===//
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace zero::pipeline {

/// Speculative execution: threads go through work before the search comes to it, or in vain. They decide nothing: all they leave is what
/// they have found out (evaluations.h), so that how many they are, and how far they come, changes nothing but the time. What they say is
/// for nobody (quiet.h), and what ends one of them with an exception does so again when the search comes to it.
class Speculation {
public:
  /// Ends early where `stop` says so.
  struct Work {
    std::shared_ptr<std::atomic<bool>> stop;
    std::function<void()> run;
  };

  /// As many threads as the system gives; none is as good.
  explicit Speculation(unsigned threads);
  ~Speculation();
  Speculation(const Speculation &) = delete;
  Speculation &operator=(const Speculation &) = delete;

  bool any() const { return !threads.empty(); }
  /// In place of what was given before; threads take the first first.
  void begin(std::vector<Work> works);
  /// After what was given before.
  void add(Work work);
  /// The search has come to this one: who is at it stops, and nobody begins it.
  void reached(size_t work);

private:
  void run();

  std::mutex mutex;
  std::condition_variable wake;
  std::vector<Work> works;
  size_t next = 0; // that nobody has taken
  bool ending = false;
  std::vector<std::thread> threads;
};

} // namespace zero::pipeline
