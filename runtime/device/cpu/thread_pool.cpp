#include "runtime/device/cpu/thread_pool.h"
#include "runtime/process/processors.h"
#include "runtime/process/start_thread.h"
#include <mutex>
#include <utility>

namespace zero::runtime {
namespace {

// Until `word` no longer holds `old`: a short spin, then the kernel's futex.
uint32_t waitWhile(const std::atomic<uint32_t> &word, uint32_t old, int spins) {
  for (int i = 0; i < spins; ++i) {
    uint32_t value = word.load(std::memory_order_acquire);
    if (value != old) return value;
    FairMutex::pause();
  }
  uint32_t value;
  while ((value = word.load(std::memory_order_acquire)) == old) word.wait(old, std::memory_order_acquire);
  return value;
}

// About 50 microseconds. With more threads than processors spinning only delays the one being waited for.
int spinsFor(int threads) { return threads <= static_cast<int>(processors()) ? 1000 : 1; }

} // namespace

ThreadPool::ThreadPool(int threads) : shares(static_cast<size_t>(threads)), spins(spinsFor(threads)), jobs(spins) {
  try {
    for (int thread = 1; thread < threads; ++thread)
      workers.push_back(startThread("thread " + std::to_string(thread + 1) + " of the " + std::to_string(threads) + " that compute",
                                    [this, thread] { work(thread); }));
  } catch (...) {
    end();
    throw;
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  stop.store(true, std::memory_order_relaxed);
  generation.fetch_add(2, std::memory_order_release);
  generation.notify_all();
  for (std::thread &worker : workers) worker.join();
}

void ThreadPool::claimShare(Share &share, int thread) {
  while (share.next.load(std::memory_order_relaxed) < share.end) {
    int64_t piece = share.next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= share.end) return;
    try {
      function(context, piece, thread);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  }
}

void ThreadPool::claimPieces(int thread) {
  size_t count = shares.size();
  for (size_t i = 0; i < count; ++i) claimShare(shares[(static_cast<size_t>(thread) + i) % count], thread);
}

// A worker announces itself before it looks whether a job is open, and a caller closes the job before it looks who is
// active; both orders are sequentially consistent, so one of the two sees the other. A worker that wakes late finds
// the job closed and delays nobody.
void ThreadPool::work(int thread) {
  uint32_t seen = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    uint32_t now = waitWhile(generation, seen, spins);
    seen = now;
    if (now % 2 == 0) continue;
    active.fetch_add(1, std::memory_order_seq_cst);
    seen = generation.load(std::memory_order_seq_cst);
    if (seen % 2 == 1) claimPieces(thread);
    if (active.fetch_sub(1, std::memory_order_acq_rel) == 1) active.notify_one();
  }
}

void ThreadPool::runJob(int64_t count, Function body, void *argument) {
  std::unique_lock lock(jobs);
  function = body;
  context = argument;
  auto threads = static_cast<int64_t>(shares.size());
  for (int64_t thread = 0; thread < threads; ++thread) {
    shares[static_cast<size_t>(thread)].next.store(count * thread / threads, std::memory_order_relaxed);
    shares[static_cast<size_t>(thread)].end = count * (thread + 1) / threads;
  }
  bool alone = count <= 1 || workers.empty();
  if (!alone) {
    generation.fetch_add(1, std::memory_order_seq_cst);
    generation.notify_all();
  }
  claimPieces(0);
  if (!alone) {
    generation.fetch_add(1, std::memory_order_seq_cst);
    for (uint32_t left; (left = active.load(std::memory_order_seq_cst)) != 0;) waitWhile(active, left, spins);
  }
  std::exception_ptr error;
  if (failed.exchange(false)) error = std::exchange(failure, nullptr);
  lock.unlock();
  if (error) std::rethrow_exception(error);
}

} // namespace zero::runtime
