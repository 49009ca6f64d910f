#include "runtime/storage/thread_queue.h"
#include "runtime/process/start_thread.h"
#include "runtime/process/wake_soon.h"
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <unistd.h>
#include <vector>

namespace zero::runtime {
namespace {

constexpr size_t kThreadsOfADisk = 8; // they sleep in the system nearly all of the time

// First in, first out, in room that is made once.
template <typename T> class Fifo {
public:
  explicit Fifo(size_t room) : items(room) {}
  bool empty() const { return count == 0; }
  size_t size() const { return count; }
  void push(const T &item) { items[(first + count++) % items.size()] = item; }
  T pop() {
    T item = items[first];
    first = (first + 1) % items.size(), --count;
    return item;
  }

private:
  std::vector<T> items;
  size_t first = 0, count = 0;
};

class ThreadQueue final : public RequestQueue {
public:
  ThreadQueue(std::span<const int> given, std::string why)
      : why(std::move(why)), files(given.begin(), given.end()), asked(kThreadsOfADisk * files.size()),
        complete(kThreadsOfADisk * files.size()) {
    try {
      for (size_t i = 0; i < kThreadsOfADisk * files.size(); ++i)
        threads.push_back(startThread("a thread of the disk", [this] { work(); }));
    } catch (...) {
      end();
      throw;
    }
  }
  ~ThreadQueue() override { end(); }
  ThreadQueue(const ThreadQueue &) = delete;
  ThreadQueue &operator=(const ThreadQueue &) = delete;

  uint32_t depth() const override { return static_cast<uint32_t>(threads.size()); }

  void submit(uint32_t slot, const Request &request) override {
    {
      std::lock_guard lock(mutex);
      asked.push({slot, request});
    }
    isAsked.notify_one();
  }

  Outcome wait(uint32_t together) override {
    std::unique_lock lock(mutex);
    if (complete.empty()) {
      awaited = together;
      isComplete.wait(lock, [this] { return complete.size() >= awaited; });
    }
    return complete.pop();
  }

  std::string remark() const override { return why; }

private:
  struct Asked {
    uint32_t slot;
    Request request;
  };

  void work() {
    wakeSoon();
    std::unique_lock lock(mutex);
    for (;;) {
      isAsked.wait(lock, [this] { return ending || !asked.empty(); });
      if (asked.empty()) return;
      auto [slot, r] = asked.pop();
      lock.unlock();
      auto offset = static_cast<off_t>(r.offset);
      ssize_t done = r.writes ? ::pwrite(files[r.file], r.memory, r.bytes, offset) : ::pread(files[r.file], r.memory, r.bytes, offset);
      int64_t result = done < 0 ? -int64_t(errno) : done;
      lock.lock();
      complete.push({slot, result});
      if (complete.size() == awaited) isComplete.notify_one();
    }
  }

  void end() {
    {
      std::lock_guard lock(mutex);
      ending = true;
    }
    isAsked.notify_all();
    for (std::thread &thread : threads) thread.join();
  }

  std::string why;
  std::vector<int> files;
  std::mutex mutex;
  std::condition_variable isAsked, isComplete;
  Fifo<Asked> asked;
  Fifo<Outcome> complete;
  size_t awaited = 0; // complete ones, by who sleeps
  bool ending = false;
  std::vector<std::thread> threads;
};

} // namespace

std::unique_ptr<RequestQueue> makeThreadQueue(std::span<const int> files) { return makeThreadQueueBecause(files, ""); }
std::unique_ptr<RequestQueue> makeThreadQueueBecause(std::span<const int> files, const std::string &remark) {
  return std::make_unique<ThreadQueue>(files, remark);
}

} // namespace zero::runtime
