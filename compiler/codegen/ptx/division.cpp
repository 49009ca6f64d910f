//===- division.cpp - how the threads of a GPU share the work of a kernel ---------------------------------===//
#include "compiler/codegen/ptx/division.h"
#include "compiler/codegen/ptx/attention_tiles.h"
#include "compiler/codegen/ptx/kept_row.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace zero::codegen {
namespace {

constexpr unsigned kWarp = 32;
// Threads of a block. Half of what a block may have leaves each twice the registers; long rows have work for all of them.
constexpr unsigned kThreads = 256, kMostThreads = 512;
// A warp that goes over a row this often is as fast as several that must wait for each other.
constexpr int64_t kMostOfAWarp = 4;
// Memory comes in sectors of this many bytes: what a group of columns takes at least of a row.
constexpr unsigned kSector = 32;
// Blocks that keep a large GPU busy.
constexpr int64_t kEnoughBlocks = 256;
// Threads of a multiprocessor that wait for memory in turn, each with 64 registers: half of all that it can hold.
constexpr unsigned kResident = 1024;

unsigned wholeWarps(int64_t threads, unsigned most) {
  return unsigned(std::min<int64_t>(llvm::alignTo(std::max<int64_t>(threads, 1), kWarp), most));
}

/// Of floats in tensors, and at most so many.
unsigned narrowestBytes(llvm::ArrayRef<Argument> arguments, unsigned bytes = 4) {
  for (const Argument &a : arguments)
    if (isFloat(a.type) && a.elements > 1) bytes = std::min(bytes, bytesOf(a.type));
  return bytes;
}

unsigned narrowestBytes(const Program &p) { return narrowestBytes(p.inputs, narrowestBytes(p.outputs)); }

unsigned lanesFor(const Program &p, unsigned last, unsigned bytes) {
  for (unsigned lanes = 16 / bytes; lanes > 1; lanes /= 2)
    if (p.size(last) % lanes == 0) return lanes;
  return 1;
}

unsigned lanesFor(const Program &p, unsigned last) { return lanesFor(p, last, narrowestBytes(p)); }

/// Whether an operand that shares bytes with a result may be read elsewhere than at the element about to be written: then the threads of a
/// row wait for each other in between.
bool readsRowInPlace(const Program &p) {
  for (auto [result, operand] : inplacePairs(p))
    for (const Store &s : p.stores)
      for (const Node &n : p.nodes)
        if (s.result == result && n.kind == Node::Load && n.arg == operand && !(n.index == s.index)) return true;
  return false;
}

Division rowsOf(const Program &p) {
  Division d;
  d.form = Division::Rows;
  // By what is read: sums over it have one order, whatever else a kernel writes (the squares of a gradient, with or without an update).
  d.lanes = lanesFor(p, p.inner.back(), narrowestBytes(p.inputs));
  int64_t vectors = p.points(p.inner) / d.lanes, rows = p.points(p.outer);
  if (vectors <= kMostOfAWarp * kWarp && rows > 1) {
    // Short rows: several teams in a warp, if no warp has threads without a row, since all of them take part in shuffles.
    for (d.team = kWarp; d.team / 2 >= vectors && rows * (d.team / 2) % kWarp == 0;) d.team /= 2;
    d.threads = wholeWarps(rows * d.team, kThreads);
  } else {
    d.threads = d.team = wholeWarps(vectors, kMostThreads);
  }
  d.blocks = llvm::divideCeil(rows, d.threads / d.team);
  if (d.team == kMostThreads) {
    d.resident = kResident / d.threads; // they wait for each other, too
    d.shared = keptBytes(p, d.lanes, d.threads);
  }
  return d;
}

/// A block per part: its threads keep the sums of their columns in registers, and join those of each row.
Division partsOf(const Program &p) {
  constexpr unsigned kMostLoads = 12, kMostRows = 4, kMostThreadsOfRows = 512, kThreadsOfMostRows = 384;
  Division d;
  d.form = Division::Parts;
  d.lanes = lanesFor(p, p.inner.back(), narrowestBytes(p.inputs));
  d.threads = d.team = wholeWarps(p.points(p.inner) / d.lanes, kMostThreads);
  d.blocks = p.extent();
  // As many rows at once as have loads under way, and registers: a long function of each element takes more of these.
  int64_t loads = 0, functions = 0;
  for (const Node &n : p.nodes) {
    bool each = n.depends[p.inner.back()] && llvm::any_of(p.outer, [&](unsigned dim) { return n.depends[dim]; });
    loads += each && n.kind == Node::Load;
    functions += each && n.kind == Node::Apply && isTranscendental(n.fn);
  }
  int64_t most = std::min<int64_t>(kMostThreadsOfRows / d.threads, kMostLoads / std::max<int64_t>(loads, 1));
  d.width = unsigned(std::clamp<int64_t>(functions ? most / 2 : most, 1, kMostRows));
  while (p.points(p.reduced) % d.width) --d.width;
  // Of long rows two at once, or one while the next is loaded. With several sums to join the latter was faster on an H200 (42 us, not 61,
  // of 1600 columns in bf16), with one sum the former (51 us, not 57, of 1536).
  d.ahead = kMostThreadsOfRows / d.threads < kMostRows && p.reductions.size() > 1;
  if (d.ahead) d.width = 1;
  if (d.width == kMostRows) d.resident = kThreadsOfMostRows / d.threads; // each with 168 registers
  return d;
}

Division columnsOf(const Program &p) {
  Division d;
  d.form = Division::Columns;
  int64_t columns = p.points(p.inner), rows = p.points(p.reduced);
  for (d.lanes = lanesFor(p, p.inner.back()); d.lanes > 1 && columns / (d.lanes * kWarp) < kEnoughBlocks;) d.lanes /= 2;
  unsigned least = std::max(1u, kSector / (narrowestBytes(p) * d.lanes));
  for (d.width = kWarp; d.width > least && columns / (d.lanes * d.width) < kEnoughBlocks;) d.width /= 2;
  d.blocks = llvm::divideCeil(columns, d.lanes * d.width);
  // A group for every row at most, and as many as share their sums in the memory there is. Many blocks are even shares for multiprocessors
  // if they are small, and each has fewer sums to join.
  unsigned bytes = 0;
  for (int r : p.reductions) bytes += d.lanes * std::max(4u, bytesOf(p.nodes[r].type));
  unsigned groups = std::max(1u, (int64_t(d.blocks) >= kEnoughBlocks ? kThreads : kMostThreads) / d.width);
  while (groups * d.width > kWarp && (groups / 2 >= rows || groups * d.width * bytes > kStaticShared)) groups /= 2;
  d.threads = groups * d.width;
  if (d.threads >= kThreads) d.resident = kResident / d.threads; // registers are given out by four warps
  return d;
}

Division scatterOf(const Program &p) {
  Division d;
  d.form = Division::Scatter;
  d.lanes = lanesFor(p, p.inner.back());
  int64_t rows = p.points(p.reduced);
  // Every block looks at all updates: no more of them than a large GPU holds at once.
  d.width = unsigned(std::clamp<int64_t>(rows / (4 * kEnoughBlocks), 1, 64));
  d.threads = wholeWarps(std::max(p.points(p.inner) / d.lanes, p.points(p.outer)), kThreads); // for all updates are looked at
  d.blocks = llvm::divideCeil(rows, d.width);
  return d;
}

Division tilesOf(const Program &p) {
  AttentionTiles tiles = attentionTiles(p.attention);
  Division d;
  d.form = Division::Tiles;
  d.threads = tiles.warps() * kWarp;
  d.blocks = tiles.blocks;
  d.resident = tiles.resident;
  if (tiles.sharedBytes > kStaticShared) d.shared = tiles.sharedBytes;
  return d;
}

Division onePerThread(const Program &p, Division::Form form, int64_t points, unsigned lanes) {
  Division d;
  d.form = form;
  d.lanes = lanes;
  d.threads = wholeWarps(points, kThreads);
  d.blocks = llvm::divideCeil(points, d.threads);
  return d;
}

} // namespace

bool approximates(const Program &p) {
  bool half = llvm::any_of(p.inputs, [](const Argument &a) { return (a.type == Scalar::BF16 || a.type == Scalar::F16) && a.elements > 1; });
  auto byExponentials = [](Fn fn) { return fn == Fn::Exp || fn == Fn::Sigmoid || fn == Fn::Tanh || fn == Fn::Erf; };
  return half && llvm::any_of(p.nodes, [&](const Node &n) { return n.kind == Node::Apply && byExponentials(n.fn); });
}

Division divisionOf(const Program &p) {
  switch (p.kind) {
  case Program::Columns:
    return columnsOf(p);
  case Program::Scatter:
    return scatterOf(p);
  case Program::Tiles:
    return tilesOf(p);
  case Program::Scan:
    return onePerThread(p, Division::Scan, p.points(p.outer), 1);
  case Program::Rows:
    break;
  }
  if (!p.sums.empty()) return partsOf(p);
  int64_t points = p.points(p.outer) * p.points(p.inner);
  bool map = p.reductions.empty() && llvm::all_of(p.stores, [&](const Store &s) { return p.outputs[s.result].elements == points; });
  if (!map || readsRowInPlace(p)) return rowsOf(p);
  unsigned lanes = lanesFor(p, p.inner.back());
  return onePerThread(p, Division::Map, points / lanes, lanes);
}

} // namespace zero::codegen
