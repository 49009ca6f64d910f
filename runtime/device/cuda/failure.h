// The first failure of a device: what streams find when they look, whoever it happened to.
#pragma once
#include <atomic>
#include <exception>
#include <mutex>

namespace zero::runtime::cuda {

class Failure {
public:
  // The first one counts.
  void set(std::exception_ptr why) {
    std::lock_guard lock(mutex);
    if (!reason) reason = std::move(why);
    happened.store(true, std::memory_order_release);
  }
  bool has() const { return happened.load(std::memory_order_acquire); }
  [[noreturn]] void rethrow() const {
    std::lock_guard lock(mutex);
    std::rethrow_exception(reason);
  }

private:
  mutable std::mutex mutex;
  std::atomic<bool> happened{false};
  std::exception_ptr reason;
};

} // namespace zero::runtime::cuda
