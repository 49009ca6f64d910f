#include "compiler/codegen/ptx/kept_row.h"
#include "compiler/codegen/ptx/division.h"
#include "compiler/codegen/rows.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace zero::codegen {

int keptLoad(const Program &p, unsigned lanes) {
  RowPasses rows = passesOf(p, /*keep=*/false);
  if (rows.byLevel.empty() || rows.full.empty()) return -1;
  auto loadsBelow = [&](llvm::ArrayRef<int> roots, llvm::ArrayRef<int> reductions) {
    llvm::SmallVector<int> all(roots);
    for (int r : reductions) all.push_back(p.nodes[r].operands[0]);
    std::vector<int> loads = p.below(all, p.reductions);
    llvm::erase_if(loads, [&](int n) { return p.nodes[n].kind != Node::Load; });
    return loads;
  };
  llvm::SmallVector<int> stored;
  for (const Store &s : rows.full) stored.push_back(s.node);
  std::vector<int> last = loadsBelow(stored, rows.trailing);
  unsigned dim = p.inner.back();
  for (int n : loadsBelow({}, rows.byLevel.begin()->second.reductions)) {
    const Node &load = p.nodes[n];
    // A bias, which all rows read, stays in a cache anyway.
    bool ofRow = llvm::any_of(p.outer, [&](unsigned d) { return load.depends[d]; });
    bool everyPoint = ofRow && llvm::all_of(p.inner, [&](unsigned d) { return load.depends[d]; }) && load.guards.empty();
    bool neighbours = lanes == 1 || (load.index.scaleOf(dim) == 1 && p.inner.size() == 1);
    if (everyPoint && neighbours && llvm::is_contained(last, n)) return n;
  }
  return -1;
}

unsigned keptBytes(const Program &p, unsigned lanes, unsigned threads) {
  // What a block may have on every GPU that runs code of sm_80 (99 KiB on those of compute capability 8.6, 8.9 and 12.x: CUDA C++
  // Programming Guide, technical specifications).
  constexpr int64_t kMost = 99 << 10, kWarp = 32, kNumber = 8;
  int load = keptLoad(p, lanes);
  if (load < 0) return 0;
  int64_t row = int64_t(llvm::alignTo(uint64_t(p.points(p.inner)) * bytesOf(p.inputs[p.nodes[load].arg].type), 16));
  // Each reduction joins the sums of warps, twice where it is of an online softmax (GpuEmitter::joinTeam).
  int64_t joins = 2 * int64_t(p.reductions.size()) * threads / kWarp * kNumber;
  return row > kStaticShared && row + joins <= kMost ? unsigned(row + joins) : 0;
}

} // namespace zero::codegen
