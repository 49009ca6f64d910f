// Streams and events of the fake device. Its other libraries put what they do into the same streams.
#pragma once
#include "test/gpu/fake/capture.h"
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

namespace zero::fake {

// The status with which the device was lost, after which nothing is run and everything is refused; 0 as long as it was not.
int lostDevice();
void loseDevice(int status);

// Of the stream whose work calls it: events after say that this took so much longer, and nobody waits for it.
void pretend(std::chrono::microseconds longer);

class Event {
public:
  explicit Event(bool timed) : timed(timed) {}
  uint64_t record(); // the number of this time
  void complete(uint64_t number);
  void await(uint64_t number); // returns also when the device is lost
  uint64_t recorded() const;
  bool completed() const; // the last time it was recorded
  std::chrono::steady_clock::time_point when() const;
  const bool timed;
  // Where it was recorded last, if that was captured: only streams of that capture can wait for it.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> tails;

private:
  mutable std::mutex mutex;
  std::condition_variable changed;
  uint64_t last = 0, done = 0;
  std::chrono::steady_clock::time_point at{};
};

class Stream {
public:
  Stream();
  ~Stream(); // runs what is in it first
  // Runs it after all that was put before; where the stream is captured, adds it to the graph. It returns a status, with which the device
  // is lost unless it is 0.
  void put(std::function<int()> work);
  void put(std::shared_ptr<const Graph> graph);
  void synchronize();

  static void letGo(const std::shared_ptr<Capture> &capture); // all streams that are captured into it

  std::shared_ptr<Capture> capture; // null: it is not captured
  std::vector<size_t> tails;        // what its next node comes after

private:
  void run();
  void pause();
  static std::vector<Stream *> &all();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<int()>> waiting;
  bool busy = false, ending = false;
  std::mt19937_64 random;
  std::thread thread;
};

} // namespace zero::fake
