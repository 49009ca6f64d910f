//===- load.cpp - what is held in each step ---------------------------------------------------------------===//
#include "passes/schedule/load.h"
#include <algorithm>

namespace zero::schedule {

Load::Load(int64_t steps) {
  while (leaves < steps) leaves *= 2;
  nodes.resize(size_t(2 * leaves));
}

void Load::add(int64_t from, int64_t to, int64_t bytes) { add(1, 0, leaves, from, to, bytes); }

int64_t Load::most(int64_t from, int64_t to) const { return most(1, 0, leaves, from, to); }

void Load::add(size_t node, int64_t begin, int64_t end, int64_t from, int64_t to, int64_t bytes) {
  if (to <= begin || end <= from) return;
  if (from <= begin && end <= to) {
    nodes[node].own += bytes, nodes[node].most += bytes;
    return;
  }
  int64_t middle = begin + (end - begin) / 2;
  add(2 * node, begin, middle, from, to, bytes);
  add(2 * node + 1, middle, end, from, to, bytes);
  nodes[node].most = nodes[node].own + std::max(nodes[2 * node].most, nodes[2 * node + 1].most);
}

int64_t Load::most(size_t node, int64_t begin, int64_t end, int64_t from, int64_t to) const {
  if (from <= begin && end <= to) return nodes[node].most;
  int64_t middle = begin + (end - begin) / 2;
  if (to <= middle) return nodes[node].own + most(2 * node, begin, middle, from, to);
  if (middle <= from) return nodes[node].own + most(2 * node + 1, middle, end, from, to);
  return nodes[node].own + std::max(most(2 * node, begin, middle, from, to), most(2 * node + 1, middle, end, from, to));
}

} // namespace zero::schedule
