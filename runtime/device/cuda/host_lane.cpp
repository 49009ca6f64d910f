#include "runtime/device/cuda/host_lane.h"
#include "runtime/base/error.h"
#include "runtime/device/step_name.h"
#include "runtime/process/start_thread.h"
#include <atomic>
#include <cstring>
#include <exception>

namespace zero::runtime::cuda {
namespace {

constexpr uint64_t kLine = 64; // bytes that nothing else lies in

} // namespace

HostLane::HostLane(const Gpu &gpu, int threads, Failure &failure)
    : driver(Driver::get()), gpu(gpu), failure(failure), count(allocatePinned(kLine, "updates on the host")), pool(threads) {
  std::memset(count.get(), 0, kLine);
  thread = startThread("the thread that updates on the host", [this] { work(); });
}

HostLane::~HostLane() {
  {
    std::lock_guard lock(mutex);
    ends = true;
  }
  changed.notify_one();
  thread.join();
}

void HostLane::put(const HostCall &call, StreamHandle stream) {
  OwnedEvent ready;
  {
    std::lock_guard lock(mutex);
    if (!idle.empty()) ready = std::move(idle.back()), idle.pop_back();
  }
  if (!ready) ready = makeEvent(kUntimed | kBlocking);
  driver.require(driver.eventRecord(ready.get(), stream), "cannot record an event");
  {
    std::lock_guard lock(mutex);
    jobs.push_back({&call, std::move(ready)});
  }
  changed.notify_one();
  driver.require(driver.streamWaitValue(stream, pointerTo(count.get()), ++given, kAtLeast), "cannot let a lane wait for the host");
}

void HostLane::work() {
  std::atomic_ref<uint32_t> done(*static_cast<uint32_t *>(count.get()));
  for (std::unique_lock lock(mutex);;) {
    changed.wait(lock, [this] { return ends || !jobs.empty(); });
    if (jobs.empty()) return;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    run(job);
    done.store(done.load(std::memory_order_relaxed) + 1, std::memory_order_release); // whatever became of it: streams must end
    lock.lock();
    idle.push_back(std::move(job.ready));
  }
}

void HostLane::run(const Job &job) {
  if (failure.has()) return;
  try {
    gpu.enter();
    driver.require(driver.eventSynchronize(job.ready.get()), "the GPU failed");
    if (failure.has()) return;
    if (const auto *launched = std::get_if<runtime::LaunchCall>(&job.call->work))
      launch(pool, *launched);
    else if (const auto *filled = std::get_if<runtime::FillCall>(&job.call->work))
      fill(*filled);
    else if (const auto &copy = std::get<runtime::CopyCall>(job.call->work); copy.bytes > 0)
      std::memcpy(copy.dst, copy.src, copy.bytes);
  } catch (const std::exception &error) {
    failure.set(std::make_exception_ptr(Error(stepName(*job.call->program, job.call->step) + ": " + error.what())));
  }
}

} // namespace zero::runtime::cuda
