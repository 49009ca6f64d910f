// What the host's processors do in a stream: updates of what rests in host memory.
//
// A host function of the driver could do it, but those of all streams take turns on one thread, and a disk's transfers would stand after
// an update. So a thread of our own follows the stream: it waits for an event recorded where its call stands, makes the call on a pool of
// threads, and counts it in pinned memory, for which the stream waits before it goes on. All that the thread waits for has been put into
// streams before, so that nothing waits in a circle.
#pragma once
#include "runtime/device/cpu/launch.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/gpu.h"
#include "runtime/device/cuda/handles.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

namespace zero::runtime::cuda {

struct HostCall {
  std::variant<runtime::LaunchCall, runtime::CopyCall, runtime::FillCall> work; // in memory of the host
  const plan::Program *program;
  uint32_t step;
};

class HostLane {
public:
  // `threads` make each call together. What goes wrong is told to `failure`; nothing is done once there is one.
  HostLane(const Gpu &gpu, int threads, Failure &failure);
  ~HostLane(); // when the streams it was put into are drained
  HostLane(const HostLane &) = delete;
  HostLane &operator=(const HostLane &) = delete;

  // Of one stream, always the same. The call must stay as it is until it is made. Throws a sentence if the driver refuses it.
  void put(const HostCall &call, StreamHandle stream);

private:
  struct Job {
    const HostCall *call;
    OwnedEvent ready; // recorded after all that the call waits for
  };
  void work();
  void run(const Job &job);

  const Driver &driver;
  const Gpu &gpu;
  Failure &failure;
  PinnedMemory count; // a u32: calls that are done
  uint32_t given = 0; // calls so far; the driver compares modulo 2^32
  std::mutex mutex;   // of what follows
  std::condition_variable changed;
  std::deque<Job> jobs;
  std::vector<OwnedEvent> idle; // as many as were needed so far
  bool ends = false;
  ThreadPool pool;
  std::thread thread; // last: it uses the others
};

} // namespace zero::runtime::cuda
