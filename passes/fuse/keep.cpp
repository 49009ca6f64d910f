//===- keep.cpp - the cheapest choice of what is kept ------------------------------------------------------===//
#include "passes/fuse/keep.h"
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>

namespace zero::fuse {
namespace {

/// A block by itself: what it reads of earlier ones stands in front.
struct Item {
  uint64_t bytes = 0, cost = 0;
  std::vector<uint32_t> needs;
  bool input = false; // of an earlier block
  bool read = false;  // by backward
  bool out = false;   // read by later blocks
  bool open() const { return read && !input && !out; }
};
using Block = std::vector<Item>;

/// A choice for one block. `bytes` of what is open, and of inputs that are kept for it alone.
struct Option {
  uint64_t bytes = 0, cost = 0;
  std::vector<uint32_t> dropped = {}; // items
};

/// Marks what must be made for `dropped` and returns what it costs.
Option evaluate(const Block &block, std::vector<uint32_t> dropped, std::vector<bool> &again) {
  Option option;
  again.assign(block.size(), false);
  std::vector<bool> gone(block.size(), false);
  for (uint32_t i : dropped) again[i] = gone[i] = true;
  std::vector<bool> inputs(block.size(), false);
  for (uint32_t i = uint32_t(block.size()); i-- > 0;) {
    const Item &item = block[i];
    if (item.open() && !gone[i]) option.bytes += item.bytes;
    if (!again[i]) continue;
    option.cost += item.cost;
    for (uint32_t need : item.needs) {
      if (block[need].input)
        inputs[need] = true;
      else if (!block[need].read || gone[need])
        again[need] = true;
    }
  }
  for (uint32_t i = 0; i < block.size(); ++i)
    if (inputs[i] && !block[i].read) option.bytes += block[i].bytes;
  option.dropped = std::move(dropped);
  return option;
}

/// What it costs to drop one item more. What is made again already stays so: added is what this item needs that is neither kept nor made
/// again, which is little beside the block.
class MarginalCost {
public:
  explicit MarginalCost(const Block &block) : block(block), visited(block.size(), 0) {}

  /// `again`: what is made again so far.
  uint64_t of(uint32_t dropped, const std::vector<bool> &again) {
    ++visit;
    uint64_t cost = 0;
    pending.assign(1, dropped);
    while (!pending.empty()) {
      uint32_t i = pending.back();
      pending.pop_back();
      if (again[i] || visited[i] == visit) continue;
      visited[i] = visit;
      cost += block[i].cost;
      for (uint32_t need : block[i].needs)
        if (!block[need].input && !block[need].read) pending.push_back(need);
    }
    return cost;
  }

private:
  const Block &block;
  std::vector<uint32_t> visited, pending; // the last visit of each item
  uint32_t visit = 0;
};

/// Those that nothing beats in both, fewest bytes first.
void prune(std::vector<Option> &options) {
  std::stable_sort(options.begin(), options.end(),
                   [](const Option &a, const Option &b) { return std::pair(a.bytes, a.cost) < std::pair(b.bytes, b.cost); });
  std::vector<Option> best;
  for (Option &option : options)
    if (best.empty() || option.cost < best.back().cost) best.push_back(std::move(option));
  options = std::move(best);
}

std::vector<Option> optionsOf(const Block &block) {
  std::vector<uint32_t> open, large;
  uint64_t largest = 0;
  for (uint32_t i = 0; i < block.size(); ++i)
    if (block[i].open()) open.push_back(i), largest = std::max(largest, block[i].bytes);
  large = open;
  if (open.size() > kMostExact) std::erase_if(large, [&](uint32_t i) { return block[i].bytes < largest / 32; });
  std::vector<bool> again;
  std::vector<Option> options{evaluate(block, {}, again), evaluate(block, open, again)};
  if (large.size() <= kMostExact) {
    for (uint32_t subset = 1; subset < 1u << large.size(); ++subset) {
      std::vector<uint32_t> dropped;
      for (uint32_t bit = 0; bit < large.size(); ++bit)
        if (subset >> bit & 1) dropped.push_back(large[bit]);
      options.push_back(evaluate(block, std::move(dropped), again));
    }
  } else {
    Option now = options[0];
    MarginalCost marginal(block);
    while (!large.empty()) {
      evaluate(block, now.dropped, again);
      std::optional<std::pair<double, size_t>> best;
      for (size_t k = 0; k < large.size(); ++k) {
        double price = double(marginal.of(large[k], again)) / double(std::max<uint64_t>(block[large[k]].bytes, 1));
        if (!best || price < best->first) best = {price, k};
      }
      auto dropped = std::move(now.dropped);
      dropped.push_back(large[best->second]);
      large.erase(large.begin() + std::ptrdiff_t(best->second));
      options.push_back(now = evaluate(block, std::move(dropped), again));
    }
  }
  prune(options);
  return options;
}

/// Sums over the blocks so far.
struct Sum {
  uint64_t bytes, cost;
  uint32_t before, option; // which sum it continues, and with what
};

constexpr size_t kMostSums = 2048; // beyond it neighbours are thinned out

std::vector<Sum> extend(const std::vector<Sum> &sums, const std::vector<Option> &options, uint64_t bytes) {
  std::vector<Sum> all;
  for (uint32_t o = 0; o < options.size(); ++o) {
    size_t middle = all.size();
    for (uint32_t s = 0; s < sums.size(); ++s)
      if (o == 0 || sums[s].bytes + options[o].bytes <= bytes) // the least is always there to go on with
        all.push_back({sums[s].bytes + options[o].bytes, sums[s].cost + options[o].cost, s, o});
    std::inplace_merge(all.begin(), all.begin() + std::ptrdiff_t(middle), all.end(),
                       [](const Sum &a, const Sum &b) { return std::pair(a.bytes, a.cost) < std::pair(b.bytes, b.cost); });
  }
  std::vector<Sum> best;
  for (const Sum &sum : all)
    if (best.empty() || (sum.cost < best.back().cost && sum.bytes <= bytes)) best.push_back(sum);
  if (best.size() <= kMostSums) return best;
  uint64_t step = (best.back().bytes - best.front().bytes) / kMostSums + 1;
  std::vector<Sum> thinned{best.front()};
  for (size_t i = 1; i < best.size(); ++i) // the cheapest of each step
    if (i + 1 == best.size() || best[i + 1].bytes / step != best[i].bytes / step) thinned.push_back(best[i]);
  return thinned;
}

class Problem {
public:
  Problem(std::span<const Made> forward, std::span<const uint32_t> ends) : forward(forward) {
    std::vector<uint32_t> home(forward.size());
    std::vector<bool> out(forward.size(), false);
    for (uint32_t b = 0, i = 0; b < ends.size(); ++b)
      for (; i < ends[b]; ++i) {
        home[i] = b;
        for (uint32_t need : forward[i].needs)
          if (home[need] != b) out[need] = true;
      }
    for (uint32_t b = 0, begin = 0; b < ends.size(); begin = ends[b++]) add(begin, ends[b], out, b + 1 == ends.size());
  }

  Keeping solve(uint64_t bytes) const {
    uint64_t fixed = 0;
    for (const Made &made : forward)
      if (made.read) fixed += made.bytes;
    for (uint32_t kind : kinds)
      for (const Item &item : blocks[kind])
        if (item.open()) fixed -= item.bytes;
    uint64_t room = bytes - std::min(bytes, fixed);

    std::vector<std::vector<Sum>> sums{{{0, 0, 0, 0}}};
    for (uint32_t kind : kinds) sums.push_back(extend(sums.back(), options[kind], room));
    std::vector<uint32_t> chosen(kinds.size());
    uint32_t at = uint32_t(sums.back().size()) - 1; // the most bytes, and so the least cost
    for (size_t b = kinds.size(); b-- > 0;) {
      chosen[b] = sums[b + 1][at].option;
      at = sums[b + 1][at].before;
    }
    // Which of equal blocks drop what is free: the first do, for when their turn comes what the later ones kept has gone.
    std::map<uint32_t, std::vector<uint32_t>> ofKind;
    for (size_t b = 0; b < kinds.size(); ++b) ofKind[kinds[b]].push_back(chosen[b]);
    for (auto &[kind, list] : ofKind) std::sort(list.begin(), list.end(), std::greater<>());
    Keeping keeping;
    keeping.dropped.assign(forward.size(), false);
    keeping.again.assign(forward.size(), false);
    std::vector<bool> kept(forward.size(), false), again;
    for (size_t b = 0; b < kinds.size(); ++b) {
      const Option &option = options[kinds[b]][ofKind[kinds[b]].back()];
      ofKind[kinds[b]].pop_back();
      const Block &block = blocks[kinds[b]];
      evaluate(block, option.dropped, again);
      for (uint32_t i : option.dropped) keeping.dropped[places[b][i]] = true;
      for (uint32_t i = 0; i < block.size(); ++i)
        if (again[i]) {
          keeping.again[places[b][i]] = true;
          for (uint32_t need : block[i].needs)
            if (block[need].input) kept[places[b][need]] = true;
        }
      keeping.cost += option.cost;
      keeping.blocks += !option.dropped.empty();
    }
    for (size_t i = 0; i < forward.size(); ++i)
      if (kept[i] || (forward[i].read && !keeping.dropped[i])) keeping.bytes += forward[i].bytes;
    return keeping;
  }

private:
  void add(uint32_t begin, uint32_t end, const std::vector<bool> &out, bool last) {
    std::vector<uint32_t> place; // in forward, by item
    for (uint32_t i = begin; i < end; ++i)
      for (uint32_t need : forward[i].needs)
        if (need < begin) place.push_back(need);
    std::sort(place.begin(), place.end());
    place.erase(std::unique(place.begin(), place.end()), place.end());
    uint32_t inputs = uint32_t(place.size());
    for (uint32_t i = begin; i < end; ++i) place.push_back(i);
    Block block;
    std::vector<uint64_t> text{last};
    for (uint32_t k = 0; k < place.size(); ++k) {
      const Made &made = forward[place[k]];
      bool input = k < inputs;
      Item item{made.bytes, input ? 0 : made.cost, {}, input, made.read, !input && (last || out[place[k]])};
      text.insert(text.end(), {made.bytes, item.cost, uint64_t(item.input * 4 + item.read * 2 + item.out)});
      if (!input) {
        for (uint32_t need : made.needs)
          item.needs.push_back(need >= begin ? need - begin + inputs
                                             : uint32_t(std::lower_bound(place.begin(), place.begin() + inputs, need) - place.begin()));
        text.push_back(item.needs.size());
        text.insert(text.end(), item.needs.begin(), item.needs.end());
      }
      block.push_back(std::move(item));
    }
    auto [known, fresh] = known_.try_emplace(std::move(text), uint32_t(blocks.size()));
    if (fresh) {
      options.push_back(optionsOf(block));
      blocks.push_back(std::move(block));
    }
    kinds.push_back(known->second);
    places.push_back(std::move(place));
  }

  std::span<const Made> forward;
  std::map<std::vector<uint64_t>, uint32_t> known_;
  std::vector<Block> blocks; // of each kind
  std::vector<std::vector<Option>> options;
  std::vector<uint32_t> kinds;               // of each block
  std::vector<std::vector<uint32_t>> places; // in forward, of each block's items
};

} // namespace

Keeping keep(std::span<const Made> forward, std::span<const uint32_t> ends, uint64_t bytes) { return Problem(forward, ends).solve(bytes); }

} // namespace zero::fuse
