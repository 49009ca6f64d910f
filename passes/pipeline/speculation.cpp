//===- speculation.cpp - what the search will ask for next, by threads that are idle ------------------===//
#include "passes/pipeline/speculation.h"
#include "passes/pipeline/quiet.h"
#include "runtime/base/error.h"
#include "runtime/process/start_thread.h"

namespace zero::pipeline {

Speculation::Speculation(unsigned count) {
  try {
    for (unsigned i = 0; i < count; ++i) threads.push_back(startThread("a thread of the search", [this] { run(); }));
  } catch (const Error &) { // the search goes on without
  }
}

Speculation::~Speculation() {
  begin({});
  {
    std::lock_guard lock(mutex);
    ending = true;
  }
  wake.notify_all();
  for (std::thread &thread : threads) thread.join();
}

void Speculation::begin(std::vector<Work> given) {
  std::lock_guard lock(mutex);
  for (const Work &work : works) *work.stop = true;
  works = std::move(given), next = 0;
  wake.notify_all();
}

void Speculation::add(Work work) {
  std::lock_guard lock(mutex);
  works.push_back(std::move(work));
  wake.notify_one();
}

void Speculation::reached(size_t work) {
  std::lock_guard lock(mutex);
  if (work < works.size()) *works[work].stop = true;
}

void Speculation::run() {
  Quiet quiet;
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return ending || next < works.size(); });
    if (ending) return;
    Work work = std::move(works[next]);
    works[next++].stop = work.stop;
    lock.unlock();
    try {
      if (!*work.stop) work.run();
    } catch (const std::exception &) { // the search comes to it, and says so
    }
    work = {}; // what it holds ends with it
    lock.lock();
  }
}

} // namespace zero::pipeline
