//===- rows.cpp - what a kernel of rows does in which pass over a row -------------------------------===//
#include "compiler/codegen/rows.h"
#include "llvm/ADT/STLExtras.h"
#include <climits>

namespace zero::codegen {
namespace {

/// A kept row is read back from the core's own cache or not worth it: half of the second-level cache of the machines at hand.
constexpr int64_t kMostKeptBytes = 1 << 20;

class Planner {
public:
  explicit Planner(const Program &p) : p(p), inplace(inplacePairs(p)) {}

  RowPasses run(bool keep) {
    int64_t points = p.points(p.outer) * p.points(p.inner);
    for (const Store &s : p.stores)
      (p.outputs[s.result].elements == points && points != p.points(p.outer) ? rows.full : perRow).push_back(s);
    std::vector<int> roots;
    for (const Store &s : rows.full) roots.push_back(s.node);
    for (int r : p.reductions) roots.push_back(p.nodes[r].operands[0]);
    for (const Store &s : p.sums) roots.push_back(p.nodes[s.node].operands[0]);
    std::vector<int> needed = p.below(roots);
    for (int r : p.reductions)
      if ((!rows.full.empty() || !p.sums.empty()) && !llvm::is_contained(needed, r))
        rows.trailing.push_back(r);
      else
        rows.byLevel[p.nodes[r].level].reductions.push_back(r);
    if (keep)
      for (const Store &s : rows.full) keepIn(s);
    for (const Store &s : perRow) (waits(s.node) ? rows.late : rows.early).push_back(s);

    for (const Store &s : perRow) roots.push_back(s.node);
    for (int n : p.below(roots)) {
      const Node &node = p.nodes[n];
      bool reads = node.kind == Node::Load || (node.kind == Node::Reduce && !isPass(n));
      if (reads && p.oncePerRow(node) && !waits(n)) rows.readOncePerRow.push_back(n);
    }
    return std::move(rows);
  }

private:
  const Program &p;
  std::vector<std::pair<unsigned, unsigned>> inplace;
  RowPasses rows;
  std::vector<Store> perRow;
  std::map<int, int> keptAt; // node -> level of the pass that keeps it
  static constexpr int kLast = INT_MAX;

  bool isPass(int n) const { return llvm::is_contained(p.reductions, n); }

  bool waits(int node) const {
    return llvm::any_of(p.below({node}), [&](int n) { return llvm::is_contained(rows.trailing, n); });
  }

  /// What the pass of this level evaluates for these: neither reductions nor what earlier passes kept.
  std::vector<int> evaluated(const std::vector<int> &roots, int level) const {
    std::vector<int> done(p.reductions);
    for (auto &[node, keptIn] : keptAt)
      if (keptIn < level) done.push_back(node);
    return p.below(roots, done);
  }
  std::vector<int> evaluatedIn(int level) const {
    std::vector<int> roots;
    for (int r : rows.byLevel.at(level).reductions) roots.push_back(p.nodes[r].operands[0]);
    return evaluated(roots, level);
  }
  std::vector<int> evaluatedAfter(int level) const {
    std::vector<int> roots;
    for (const auto *stores : {&rows.full, &perRow})
      for (const Store &s : *stores) roots.push_back(s.node);
    for (int r : rows.trailing) roots.push_back(p.nodes[r].operands[0]);
    std::vector<int> all = evaluated(roots, kLast);
    for (auto &[l, pass] : rows.byLevel)
      if (l > level) llvm::append_range(all, evaluatedIn(l));
    return all;
  }

  /// The first long function that the result's row may hold.
  void keepIn(const Store &place) {
    if (p.outputs[place.result].type != Scalar::F32 || p.points(p.inner) * bytesOf(Scalar::F32) > kMostKeptBytes) return;
    std::vector<int> levels;
    for (auto &[level, pass] : rows.byLevel) levels.push_back(level);
    for (int level : levels) {
      std::vector<int> candidates = evaluatedIn(level);
      for (int n : llvm::reverse(candidates)) // the topmost first
        if (isLongOverColumns(p.nodes[n]) && !keptAt.contains(n) && tryToKeep(n, level, place)) return;
    }
  }

  bool isLongOverColumns(const Node &n) const {
    if (n.kind != Node::Apply || !isTranscendental(n.fn) || n.type != Scalar::F32 || n.guarded || !n.depends[p.inner.back()]) return false;
    for (size_t a = 0; a < n.depends.size(); ++a)
      if (n.depends[a] && !llvm::is_contained(p.outer, a) && !llvm::is_contained(p.inner, a)) return false;
    return true;
  }

  bool tryToKeep(int n, int level, const Store &place) {
    if (!llvm::is_contained(evaluatedAfter(level), n)) return false;
    // From here on the operands that may share bytes with the result are gone. Sums that were to read them in the last pass are
    // made in that of their level.
    auto byLevel = rows.byLevel;
    auto trailing = rows.trailing;
    auto overwritten = [&](int m) {
      return p.nodes[m].kind == Node::Load && llvm::is_contained(inplace, std::pair(place.result, p.nodes[m].arg));
    };
    llvm::erase_if(rows.trailing, [&](int r) {
      int own = p.nodes[r].level;
      if (own > level || llvm::none_of(evaluated({p.nodes[r].operands[0]}, kLast), overwritten)) return false;
      rows.byLevel[own].reductions.push_back(r);
      return true;
    });
    keptAt[n] = level;
    bool fits = llvm::none_of(evaluatedAfter(level), [&](int m) {
      // What a row reads once it reads before, if it knows by then where.
      return overwritten(m) && !(p.oncePerRow(p.nodes[m]) && p.nodes[m].level < level);
    });
    if (fits) {
      rows.byLevel[level].kept.push_back({n, place});
    } else {
      keptAt.erase(n);
      rows.byLevel = std::move(byLevel);
      rows.trailing = std::move(trailing);
    }
    return fits;
  }
};

} // namespace

RowPasses passesOf(const Program &program, bool keep) { return Planner(program).run(keep); }

unsigned sumsAtOnce(const Program &p, size_t reductions, llvm::ArrayRef<int> roots) {
  constexpr int kMostInterleaved = 8; // long functions: beyond, a body is long enough for a processor, and for what compiles it
  // Enough sums in flight to hide the latency of an addition, within the registers. Long functions are chains that
  // want company too, and registers.
  auto longChains = llvm::count_if(p.below(roots, p.reductions), [&](int i) {
    const Node &n = p.nodes[i];
    return n.kind == Node::Apply && isTranscendental(n.fn) && llvm::any_of(p.inner, [&](unsigned d) { return n.depends[d]; });
  });
  bool longChain = longChains > 0;
  if (reductions == 0) return longChain && longChains <= kMostInterleaved ? 4 : 1;
  if (reductions == 1 || (reductions == 2 && !longChain)) return 4;
  return reductions <= 4 ? 2 : 1;
}

std::vector<int> termsOf(const Program &program, llvm::ArrayRef<int> reductions) {
  std::vector<int> terms;
  for (int r : reductions) terms.push_back(program.nodes[r].operands[0]);
  return terms;
}

std::vector<int> nodesOf(llvm::ArrayRef<Store> stores) {
  std::vector<int> nodes;
  for (const Store &s : stores) nodes.push_back(s.node);
  return nodes;
}

std::set<unsigned> sumsAtOnce(const Program &program) {
  RowPasses rows = passesOf(program, /*keep=*/program.sums.empty());
  std::set<unsigned> numbers;
  for (auto &[level, pass] : rows.byLevel)
    if (!pass.reductions.empty()) numbers.insert(sumsAtOnce(program, pass.reductions.size(), termsOf(program, pass.reductions)));
  if (!rows.trailing.empty()) numbers.insert(sumsAtOnce(program, rows.trailing.size(), nodesOf(rows.full)));
  return numbers;
}

} // namespace zero::codegen
