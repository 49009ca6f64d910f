// Streams whose work is captured into a graph, by the rules of the driver: what may not be captured makes the capture invalid, and says so
// when it ends.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace zero::fake {

struct Graph {
  struct Node {
    std::function<int()> work;
    std::vector<size_t> after; // nodes that are complete before it begins
  };
  std::vector<Node> nodes;

  // All of them, in any order that what they come after allows. The first status that is not 0, or 0.
  int run(std::mt19937_64 &random) const;
};

// What has been captured so far. Streams join it by waiting for an event that was recorded in it.
struct Capture {
  Graph graph;
  const void *origin; // the stream in which it began
  std::thread::id thread;
  bool valid = true, ended = false;

  // Whether all nodes come before these.
  bool isAllBefore(const std::vector<size_t> &tails) const;
};

// The captures that this thread has begun and not ended: calls that could wait or allocate are refused meanwhile, and make them invalid.
std::vector<std::shared_ptr<Capture>> &capturesOfThread();

} // namespace zero::fake
