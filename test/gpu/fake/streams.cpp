#include "test/gpu/fake/streams.h"
#include "test/gpu/fake/faults.h"
#include <atomic>

namespace zero::fake {
namespace {

using namespace std::chrono_literals;

std::atomic<int> lost{0};
thread_local std::chrono::microseconds pretended{0}; // of the stream that this thread is
constexpr auto kLook = 20ms;                         // how soon those who wait see that the device was lost

} // namespace

void pretend(std::chrono::microseconds longer) { pretended += longer; }

int lostDevice() { return lost.load(); }
void loseDevice(int status) {
  int none = 0;
  lost.compare_exchange_strong(none, status);
}

uint64_t Event::record() {
  std::lock_guard lock(mutex);
  return ++last;
}

void Event::complete(uint64_t number) {
  std::lock_guard lock(mutex);
  if (number <= done) return;
  done = number, at = std::chrono::steady_clock::now() + pretended;
  changed.notify_all();
}

void Event::await(uint64_t number) {
  std::unique_lock lock(mutex);
  while (done < number && !lostDevice()) changed.wait_for(lock, kLook);
}

uint64_t Event::recorded() const {
  std::lock_guard lock(mutex);
  return last;
}

bool Event::completed() const {
  std::lock_guard lock(mutex);
  return done >= last;
}

std::chrono::steady_clock::time_point Event::when() const {
  std::lock_guard lock(mutex);
  return at;
}

std::vector<Stream *> &Stream::all() { // made and used by one thread
  static std::vector<Stream *> streams;
  return streams;
}

void Stream::letGo(const std::shared_ptr<Capture> &capture) {
  for (Stream *stream : all())
    if (stream->capture == capture) stream->capture = nullptr, stream->tails.clear();
}

Stream::Stream() {
  all().push_back(this);
  static std::atomic<uint64_t> number{0};
  random.seed(setting("ZERO_FAKE_SEED", 1) * 1000003 + ++number);
  thread = std::thread([this] { run(); });
}

Stream::~Stream() {
  std::erase(all(), this);
  {
    std::lock_guard lock(mutex);
    ending = true;
    changed.notify_all();
  }
  thread.join();
}

void Stream::put(std::function<int()> work) {
  if (capture) {
    capture->graph.nodes.push_back({std::move(work), std::move(tails)});
    tails = {capture->graph.nodes.size() - 1};
    return;
  }
  std::lock_guard lock(mutex);
  waiting.push_back(std::move(work));
  changed.notify_all();
}

void Stream::put(std::shared_ptr<const Graph> graph) {
  put([this, graph = std::move(graph)] { return graph->run(random); });
}

void Stream::synchronize() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return waiting.empty() && !busy; });
}

// Most operations begin at once, some a little later, few much later.
void Stream::pause() {
  uint64_t drawn = random() % 64;
  if (drawn == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
  else if (drawn < 8)
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
}

void Stream::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return ending || !waiting.empty(); });
    if (waiting.empty()) return;
    std::function<int()> work = std::move(waiting.front());
    waiting.pop_front();
    busy = true;
    lock.unlock();
    if (!lostDevice()) {
      pause();
      if (int status = work()) loseDevice(status);
    }
    work = nullptr;
    lock.lock();
    busy = false;
    changed.notify_all();
  }
}

} // namespace zero::fake
