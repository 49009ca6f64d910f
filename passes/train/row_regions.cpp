//===- row_regions.cpp - where rows can be computed tile by tile ----------------------------------------===//
#include "passes/train/row_regions.h"
#include <algorithm>

namespace zero::train {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

class Finder {
public:
  Finder(std::span<const RowStep> steps, std::span<const RowTensor> tensors)
      : steps(steps), tensors(tensors), maker(tensors.size(), kNobody), readers(tensors.size()), member(steps.size(), false),
        taken(steps.size(), false) {
    for (uint32_t s = 0; s < steps.size(); ++s) {
      for (uint32_t t : steps[s].makes) maker[t] = s;
      for (const auto *read : {&steps[s].rows, &steps[s].wholes})
        for (uint32_t t : *read) readers[t].push_back(s);
    }
  }

  std::vector<RowRegion> run() {
    std::vector<RowRegion> found;
    for (uint32_t s = 0; s < steps.size(); ++s) {
      if (!steps[s].splits || !steps[s].widens || taken[s]) continue;
      if (grow(s) && narrows()) {
        takeMakers();
        std::sort(list.begin(), list.end());
        for (uint32_t m : list) taken[m] = !isFree(m);
        found.push_back(list);
      }
      for (uint32_t m : list) member[m] = false;
      list.clear();
    }
    return found;
  }

private:
  uint64_t widest(std::span<const uint32_t> of) const {
    uint64_t width = 0;
    for (uint32_t t : of) width = std::max(width, tensors[t].width);
    return width;
  }

  /// Made of nothing that has rows (a bias repeated for each): every region makes it for itself.
  bool isFree(uint32_t s) const { return steps[s].splits && steps[s].rows.empty(); }

  bool add(uint32_t s) {
    if (member[s]) return true;
    if (!steps[s].splits || taken[s]) return false;
    member[s] = true;
    list.push_back(s);
    return true;
  }

  static bool has(const std::vector<uint32_t> &all, uint32_t one) { return std::find(all.begin(), all.end(), one) != all.end(); }

  /// Whatever makes or reads what is wider than what `seed` reads. False if that cannot be done row by row.
  bool grow(uint32_t seed) {
    uint64_t narrow = widest(steps[seed].rows);
    if (widest(steps[seed].makes) <= narrow || !add(seed)) return false;
    for (size_t next = 0; next < list.size();) {
      for (; next < list.size(); ++next) {
        if (isFree(list[next])) continue;
        const RowStep &step = steps[list[next]];
        for (uint32_t t : step.makes)
          for (uint32_t r : readers[t])
            if (tensors[t].width > narrow && has(steps[r].rows, t)) add(r); // else it leaves the region
        for (uint32_t t : step.rows)
          if (uint32_t m = maker[t]; m != kNobody && (tensors[t].width > narrow || isFree(m))) add(m);
      }
      if (!close()) return false;
    }
    return true;
  }

  /// Adds what lies between two members; false if that does not split, or reads one of them as a whole.
  bool close() {
    uint32_t begin = UINT32_MAX, end = 0;
    for (uint32_t s : list)
      if (!isFree(s)) begin = std::min(begin, s), end = std::max(end, s + 1);
    std::vector<bool> below(end - begin, false), above(end - begin, false);
    auto inside = [&](uint32_t s) { return s != kNobody && s >= begin && s < end; };
    for (uint32_t s = begin; s < end; ++s)
      for (const auto *read : {&steps[s].rows, &steps[s].wholes})
        for (uint32_t t : *read)
          if (uint32_t m = maker[t]; inside(m) && (member[m] || below[m - begin])) {
            if (member[s] && read == &steps[s].wholes) return false;
            below[s - begin] = true;
          }
    for (uint32_t s = end; s-- > begin;)
      if (member[s] || above[s - begin])
        for (const auto *read : {&steps[s].rows, &steps[s].wholes})
          for (uint32_t t : *read)
            if (uint32_t m = maker[t]; inside(m)) above[m - begin] = true;
    for (uint32_t s = begin; s < end; ++s)
      if (!member[s] && below[s - begin] && above[s - begin] && !add(s)) return false;
    return true;
  }

  bool leaves(uint32_t t) const {
    return tensors[t].returned || std::any_of(readers[t].begin(), readers[t].end(), [&](uint32_t r) { return !member[r]; });
  }

  /// Whether what leaves is narrower than the widest that does not.
  bool narrows() const {
    uint64_t out = 0, within = 0;
    for (uint32_t s : list)
      for (uint32_t t : steps[s].makes)
        if (isFree(s))
          continue;
        else if (leaves(t))
          out += tensors[t].width;
        else
          within = std::max(within, tensors[t].width);
    return out < within;
  }

  /// What makes an input for the region alone, and reads no more than that is.
  void takeMakers() {
    for (size_t next = 0; next < list.size(); ++next)
      for (uint32_t t : steps[list[next]].rows) {
        uint32_t m = maker[t];
        if (m == kNobody || member[m] || taken[m] || !steps[m].splits || steps[m].widens || isFree(m)) continue;
        uint64_t reads = 0;
        for (uint32_t input : steps[m].rows) reads += tensors[input].width;
        if (reads <= tensors[t].width && std::none_of(steps[m].makes.begin(), steps[m].makes.end(), [&](uint32_t o) { return leaves(o); }))
          add(m);
      }
  }

  std::span<const RowStep> steps;
  std::span<const RowTensor> tensors;
  std::vector<uint32_t> maker;
  std::vector<std::vector<uint32_t>> readers;
  std::vector<bool> member, taken; // of the region that grows; of one that was found
  RowRegion list;
};

} // namespace

std::vector<RowRegion> findRowRegions(std::span<const RowStep> steps, std::span<const RowTensor> tensors) {
  return Finder(steps, tensors).run();
}

} // namespace zero::train
