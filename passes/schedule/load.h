//===- load.h - what is held in each step -----------------------------------------------------------------===//
#pragma once
#include <cstdint>
#include <vector>

namespace zero::schedule {

/// Plain data: of each step a sum of bytes, as the leaves of a binary tree. Adding to a range of steps and asking for the largest sum in
/// one take time with the logarithm of their number.
class Load {
public:
  explicit Load(int64_t steps);

  /// In the steps [from, to), which is not empty.
  void add(int64_t from, int64_t to, int64_t bytes);
  int64_t most(int64_t from, int64_t to) const;

private:
  /// The largest sum of the steps below, of which `own` was added to all of them; what was added further up comes on top.
  struct Node {
    int64_t most = 0, own = 0;
  };
  void add(size_t node, int64_t begin, int64_t end, int64_t from, int64_t to, int64_t bytes);
  int64_t most(size_t node, int64_t begin, int64_t end, int64_t from, int64_t to) const;

  int64_t leaves = 1;
  std::vector<Node> nodes; // the root is 1, the two below a node twice its index and the one after
};

} // namespace zero::schedule
