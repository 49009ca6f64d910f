//===- offsets.cpp - at which byte of an arena each buffer lies ------------------------------------===//
#include "passes/place/offsets.h"
#include "passes/place/placed.h"
#include <algorithm>
#include <atomic>
#include <future>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace zero::place {
namespace {

enum class Fit { First, Best };

/// Steps of the inner loops that a search may take: a fraction of a second.
constexpr int64_t kWork = 50'000'000;
/// An arena is no lower after a search than so many percent of what it was, as a rule.
constexpr int64_t kLeastAfterSearch = 90;

/// Places buffers in the given order, each in the lowest gap (or the tightest) among those it is alive with. None if the arena becomes as
/// high as `tooHigh`.
std::optional<OffsetSolution> placeInOrder(const OffsetProblem &problem, const std::vector<size_t> &order, Fit fit, Bytes tooHigh) {
  OffsetSolution solution;
  solution.offsets.resize(problem.buffers.size());
  PlacedBuffers placed(problem.buffers.size(), stepsOf(problem));
  for (size_t index : order) {
    const OffsetBuffer &buffer = problem.buffers[index];
    auto first = int32_t(buffer.first), last = int32_t(buffer.last);
    Bytes size = buffer.size.alignedTo(problem.alignment), end, best;
    bool found = false;
    Bytes tightest;
    placed.visit(first, last, int32_t(buffer.nextLast), [&](Bytes otherBegin, Bytes otherEnd) {
      if (otherBegin >= end + size && (!found || otherBegin - end < tightest)) {
        found = true;
        best = end;
        tightest = otherBegin - end;
        if (fit == Fit::First) return false;
      }
      end = std::max(end, otherEnd);
      return true;
    });
    if (!found) best = end;
    solution.offsets[index] = best;
    solution.height = std::max(solution.height, best + size);
    if (solution.height >= tooHigh) return std::nullopt;
    placed.add(best, best + size, first, last);
    if (buffer.nextLast >= 0) placed.add(best, best + size, 0, int32_t(buffer.nextLast), /*next=*/true);
  }
  return solution;
}

struct Order {
  const char *name;
  std::vector<size_t> indices;
};

/// `peak`: the step with the most live bytes.
std::vector<Order> orders(const OffsetProblem &problem, int64_t peak) {
  std::vector<size_t> given(problem.buffers.size());
  std::iota(given.begin(), given.end(), 0);
  auto sorted = [&](const char *name, auto key) { // ascending; equal keys stay in the order of the problem
    auto indices = given;
    std::stable_sort(indices.begin(), indices.end(), [&](size_t a, size_t b) { return key(problem.buffers[a]) < key(problem.buffers[b]); });
    return Order{name, std::move(indices)};
  };
  auto length = [](const OffsetBuffer &b) { return b.last - b.first + 1; };
  auto atPeak = [peak](const OffsetBuffer &b) { return (b.first <= peak && peak <= b.last) || peak <= b.nextLast; };
  return {
      sorted("size", [&](const OffsetBuffer &b) { return std::tuple(-b.size.count, -length(b)); }),
      sorted("lifetime", [&](const OffsetBuffer &b) { return std::tuple(-length(b), -b.size.count); }),
      sorted("area", [&](const OffsetBuffer &b) { return -double(b.size.count) * double(length(b)); }),
      // What is live at the peak is stacked first, so it takes no more than it must; the rest finds room around it.
      sorted("peak first", [&](const OffsetBuffer &b) { return std::tuple(!atPeak(b), -b.size.count, -length(b)); }),
      // Two stacks: what reaches the peak from before, as it comes; then what follows, as it goes.
      sorted("phases", [&](const OffsetBuffer &b) { return std::tuple(!atPeak(b), b.first > peak, b.first > peak ? b.first : -b.last); }),
      sorted("program", [&](const OffsetBuffer &b) { return b.first; }),
  };
}

/// Local search over orders: a buffer that reaches the top goes to an earlier place, or two change places; what is not worse stays.
/// Deterministic, and bounded by the size of the problem.
class Improver {
public:
  Improver(const OffsetProblem &problem, std::vector<size_t> order, Fit fit, OffsetSolution start)
      : problem(problem), order(std::move(order)), fit(fit), current(std::move(start)) {}

  /// Gives up, with what it has, when told to `stop`.
  OffsetSolution run(Bytes enough, const std::atomic<bool> &stop) {
    size_t n = order.size();
    int64_t rounds = std::min<int64_t>(4000, kWork / int64_t(n * n + 1));
    OffsetSolution best = current;
    for (int64_t round = 0; round < rounds && best.height > enough && !stop; ++round) {
      std::vector<size_t> changed = order;
      if (round % 2 == 0)
        raise(changed);
      else
        std::swap(changed[next(n)], changed[next(n)]);
      std::optional<OffsetSolution> candidate = placeInOrder(problem, changed, fit, current.height + Bytes(1));
      if (!candidate) continue;
      order = std::move(changed);
      current = std::move(*candidate);
      if (current.height < best.height) best = current;
    }
    return best;
  }

private:
  /// One of the buffers at the top moves somewhere in front of its place.
  void raise(std::vector<size_t> &changed) {
    std::vector<size_t> top; // places in the order
    for (size_t place = 1; place < changed.size(); ++place) {
      size_t index = changed[place];
      if (current.offsets[index] + problem.buffers[index].size.alignedTo(problem.alignment) == current.height) top.push_back(place);
    }
    if (top.empty()) return;
    size_t from = top[next(top.size())], to = next(from);
    std::rotate(changed.begin() + to, changed.begin() + from, changed.begin() + from + 1);
  }

  size_t next(size_t below) { // xorshift
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
  }

  const OffsetProblem &problem;
  std::vector<size_t> order;
  Fit fit;
  OffsetSolution current;
  uint64_t state = 0x9e3779b97f4a7c15u;
};

} // namespace

OffsetSolution solveOffsets(const OffsetProblem &problem, Bytes most, Bytes low) {
  for (const OffsetBuffer &buffer : problem.buffers)
    if (buffer.first < 0 || buffer.last > std::numeric_limits<int32_t>::max())
      throw std::runtime_error("buffer " + buffer.name + " is live to step " + std::to_string(buffer.last) + "; steps have 31 bits");
  std::vector<int64_t> live = liveBytes(problem, problem.alignment);
  auto peak = std::max_element(live.begin(), live.end()); // the first of them if there are several
  Bytes bound(peak == live.end() ? 0 : *peak), enough = std::max(low, Bytes(bound.count + bound.count / 500));
  struct Attempt {
    std::vector<size_t> order;
    Fit fit;
    OffsetSolution solution;
  };
  std::vector<Attempt> attempts; // the best two
  Bytes tooHigh(std::numeric_limits<int64_t>::max());
  // An attempt takes the square of the number of buffers: of three thousand, the first that comes near the bound is taken, and of very many
  // only some are made.
  int64_t each = int64_t(problem.buffers.size()) * int64_t(problem.buffers.size()) / 2, work = 0;
  for (const Order &order : orders(problem, peak - live.begin())) {
    if (!attempts.empty() && work > 20 * kWork) break;
    auto place = [&, tooHigh](Fit fit) { return placeInOrder(problem, order.indices, fit, tooHigh); };
    bool both = each > kWork / 1000 && work + each <= 20 * kWork; // side by side, as if one after another, where that is worth a thread
    std::future<std::optional<OffsetSolution>> first;
    if (both) first = std::async(place, Fit::First);
    for (Fit fit : {Fit::Best, Fit::First}) {
      if (!attempts.empty() && work > 20 * kWork) break;
      std::optional<OffsetSolution> found = fit == Fit::First && both ? first.get() : place(fit);
      work += each;
      if (!found || found->height >= tooHigh) continue;
      found->solver = std::string(order.name) + (fit == Fit::Best ? ", best fit" : ", first fit");
      if (found->height <= std::max(bound, low) || (each > kWork / 10 && found->height <= enough)) return std::move(*found);
      attempts.push_back({order.indices, fit, std::move(*found)});
      std::stable_sort(attempts.begin(), attempts.end(), [](auto &a, auto &b) { return a.solution.height < b.solution.height; });
      if (attempts.size() > 2) attempts.pop_back();
      if (attempts.size() == 2) tooHigh = attempts[1].solution.height;
    }
  }
  OffsetSolution best = attempts[0].solution;
  if (best.height <= enough || bound > most || best.height.count / 100 * kLeastAfterSearch > most.count) return best;
  // Side by side, as if one after another: the second does not count where the first comes near the bound.
  std::atomic<bool> stop = false;
  auto improve = [&](const Attempt &attempt) { return Improver(problem, attempt.order, attempt.fit, attempt.solution).run(enough, stop); };
  std::future<OffsetSolution> second;
  if (attempts.size() > 1) second = std::async(improve, std::cref(attempts[1]));
  auto take = [&](OffsetSolution improved, const Attempt &from) {
    if (improved.height >= best.height) return;
    best = std::move(improved);
    best.solver = from.solution.solver + ", improved";
  };
  take(improve(attempts[0]), attempts[0]);
  stop = best.height <= enough;
  if (second.valid())
    if (OffsetSolution improved = second.get(); !stop) take(std::move(improved), attempts[1]);
  return best;
}

std::string checkOffsets(const OffsetProblem &problem, const OffsetSolution &solution) {
  if (solution.offsets.size() != problem.buffers.size())
    return std::to_string(problem.buffers.size()) + " buffers but " + std::to_string(solution.offsets.size()) + " offsets";
  std::vector<size_t> byFirst(problem.buffers.size());
  std::iota(byFirst.begin(), byFirst.end(), 0);
  std::stable_sort(byFirst.begin(), byFirst.end(), [&](size_t a, size_t b) { return problem.buffers[a].first < problem.buffers[b].first; });
  std::map<int64_t, size_t> live; // by offset; they never overlap
  std::multimap<int64_t, size_t> ends;
  for (size_t index : byFirst) {
    const OffsetBuffer &buffer = problem.buffers[index];
    int64_t begin = solution.offsets[index].count, end = begin + buffer.size.count;
    if (begin < 0 || begin % problem.alignment.count || end > solution.height.count)
      return "buffer " + buffer.name + " lies at bytes " + std::to_string(begin) + " to " + std::to_string(end) +
             ", which is not aligned to " + std::to_string(problem.alignment.count) + " or leaves the arena of " +
             std::to_string(solution.height.count);
    while (!ends.empty() && ends.begin()->first < buffer.first) {
      live.erase(solution.offsets[ends.begin()->second].count);
      ends.erase(ends.begin());
    }
    if (!buffer.size.count) continue;
    auto above = live.upper_bound(begin);
    for (auto other : {above, above == live.begin() ? live.end() : std::prev(above)}) {
      if (other == live.end()) continue;
      const OffsetBuffer &neighbour = problem.buffers[other->second];
      if (other->first < end && begin < other->first + neighbour.size.count)
        return "buffers " + neighbour.name + " and " + buffer.name + " are both live in step " + std::to_string(buffer.first) +
               " and share byte " + std::to_string(std::max(begin, other->first));
    }
    live[begin] = index;
    ends.emplace(buffer.last, index);
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    for (size_t j : byFirst) {
      const OffsetBuffer &buffer = problem.buffers[i], &other = problem.buffers[j];
      if (other.first > buffer.nextLast) break;
      if (i != j && solution.offsets[i] < solution.offsets[j] + other.size && solution.offsets[j] < solution.offsets[i] + buffer.size)
        return "buffers " + buffer.name + " and " + other.name + " are in use together when the program runs again, and share bytes";
    }
  return "";
}

std::string print(const OffsetProblem &problem) {
  std::ostringstream out;
  out << "alignment " << problem.alignment.count << "\n# name size first last\n";
  for (const OffsetBuffer &buffer : problem.buffers)
    out << buffer.name << " " << buffer.size.count << " " << buffer.first << " " << buffer.last
        << (buffer.nextLast < 0 ? "" : " " + std::to_string(buffer.nextLast)) << "\n";
  return out.str();
}

OffsetProblem parseOffsetProblem(const std::string &text) {
  OffsetProblem problem;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    OffsetBuffer buffer;
    if (!(words >> buffer.name)) continue;
    words >> buffer.size.count >> std::ws;
    if (buffer.name == "alignment" && words.eof()) {
      problem.alignment = buffer.size;
      if (problem.alignment < Bytes(1)) throw std::runtime_error("line " + std::to_string(number) + " is not \"alignment N\": " + line);
      continue;
    }
    if (!(words >> buffer.first >> buffer.last) || buffer.size.count < 0 || buffer.last < buffer.first)
      throw std::runtime_error("line " + std::to_string(number) + " is not \"name size first last\": " + line);
    if (words >> std::ws; !words.eof() && (!(words >> buffer.nextLast) || buffer.nextLast < 0))
      throw std::runtime_error("line " + std::to_string(number) + " does not end with a step of the next run: " + line);
    problem.buffers.push_back(std::move(buffer));
  }
  return problem;
}

} // namespace zero::place
