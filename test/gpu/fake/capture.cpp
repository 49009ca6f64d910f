#include "test/gpu/fake/capture.h"

namespace zero::fake {

int Graph::run(std::mt19937_64 &random) const {
  std::vector<size_t> missing(nodes.size()), ready; // missing: nodes that each still waits for
  std::vector<std::vector<size_t>> next(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    missing[n] = nodes[n].after.size();
    for (size_t before : nodes[n].after) next[before].push_back(n);
    if (missing[n] == 0) ready.push_back(n);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    size_t node = ready.back();
    ready.pop_back();
    if (int status = nodes[node].work()) return status;
    for (size_t after : next[node])
      if (--missing[after] == 0) ready.push_back(after);
  }
  return 0;
}

bool Capture::isAllBefore(const std::vector<size_t> &tails) const {
  std::vector<bool> before(graph.nodes.size());
  std::vector<size_t> open = tails;
  while (!open.empty()) {
    size_t node = open.back();
    open.pop_back();
    if (before[node]) continue;
    before[node] = true;
    open.insert(open.end(), graph.nodes[node].after.begin(), graph.nodes[node].after.end());
  }
  for (bool each : before)
    if (!each) return false;
  return true;
}

std::vector<std::shared_ptr<Capture>> &capturesOfThread() {
  thread_local std::vector<std::shared_ptr<Capture>> captures;
  return captures;
}

} // namespace zero::fake
