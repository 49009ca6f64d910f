// Persistent threads that run one job at a time, cut into pieces. The calling thread is one of them. A job costs two
// cache-line handshakes: no allocation, and a mutex that only several lanes contend for. Threads that find nothing to do spin for a moment
// (the next launch is usually microseconds away) and then sleep, so that communication lanes get the processor.
#pragma once
#include "runtime/device/cpu/fair_mutex.h"
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

namespace zero::runtime {

class ThreadPool {
public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int threads() const { return static_cast<int>(workers.size()) + 1; }

  // Calls body(piece, thread) once for every piece in [0, pieces) and returns when all are done. Every thread starts with
  // its own contiguous share of the pieces, the same in every job, so that data stays in its cache; one that has
  // finished takes what others have not begun. Bodies must not depend on who runs them; `thread` in [0, threads()) is
  // for scratch memory. Lanes that call at the same time take turns, in the order in which they came: one whose jobs follow each other
  // closely leaves the threads to another one after each.
  template <typename Body> void run(int64_t pieces, Body &&body) {
    using Plain = std::remove_reference_t<Body>;
    runJob(
        pieces, [](void *context, int64_t piece, int thread) { (*static_cast<Plain *>(context))(piece, thread); },
        const_cast<void *>(static_cast<const void *>(&body)));
  }

private:
  struct alignas(64) Share {
    std::atomic<int64_t> next{0}; // next unclaimed piece of this thread's share
    int64_t end = 0;
  };
  using Function = void (*)(void *context, int64_t piece, int thread);
  void runJob(int64_t pieces, Function function, void *context);
  void work(int thread);
  void end();
  void claimPieces(int thread);
  void claimShare(Share &share, int thread);

  // Written by the caller while no worker is active, before `generation` becomes odd.
  Function function = nullptr;
  void *context = nullptr;
  std::exception_ptr failure;

  std::vector<Share> shares;
  alignas(64) std::atomic<uint32_t> generation{0}; // odd while a job is open
  alignas(64) std::atomic<uint32_t> active{0};     // workers that may be looking at the job
  std::atomic<bool> failed{false};
  std::atomic<bool> stop{false};
  int spins;
  FairMutex jobs; // one at a time
  std::vector<std::thread> workers;
};

} // namespace zero::runtime
