//===- rows.h - what a kernel of rows does in which pass over a row ---------------------------------===//
// Plain data between the program and its emission. A row is passed over once per level of reductions and once more for the
// stores. A long function that a pass evaluates and a later one needs again is kept: the row of a result in memory, which nothing
// else stands in before the last pass, holds its values until then.
#pragma once
#include "compiler/codegen/program.h"
#include <set>

namespace zero::codegen {

/// Node whose values stand in a result's row from one pass to the last one.
struct Kept {
  int node;
  Store place; // of the result; its own node is not meant
};

struct RowPass {
  std::vector<int> reductions;
  std::vector<Kept> kept; // by this pass
};

struct RowPasses {
  std::map<int, RowPass> byLevel;
  std::vector<int> trailing;       // reductions made beside the last stores: only results per row ask for them
  std::vector<Store> full;         // one element per point: the last pass
  std::vector<Store> early, late;  // one per row: before the last pass; after it
  std::vector<int> readOncePerRow; // before the row is written, as soon as they are known
};

/// How many sums are under way at once for each of so many reductions of one pass, which evaluates all below `roots`: it decides in which
/// order a row's elements are added.
unsigned sumsAtOnce(const Program &program, size_t reductions, llvm::ArrayRef<int> roots);
/// What reductions add up, and what is stored.
std::vector<int> termsOf(const Program &program, llvm::ArrayRef<int> reductions);
std::vector<int> nodesOf(llvm::ArrayRef<Store> stores);
/// The numbers of sums at once of all passes over a row that reduce it, ascending, each once.
std::set<unsigned> sumsAtOnce(const Program &program);

/// Without `keep` nothing is kept: every pass evaluates what it needs.
RowPasses passesOf(const Program &program, bool keep = true);

} // namespace zero::codegen
