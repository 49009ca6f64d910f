//===- apart.cpp - every buffer at bytes of its own ---------------------------------------------------===//
#include "passes/place/apart.h"
#include "compiler/plan/Plan.h"
#include <array>

using namespace mlir;
using namespace zero::planir;

namespace zero::place {
namespace {

/// The next free byte of each tier.
class Ends {
public:
  int64_t take(state::Tier tier, int64_t bytes) {
    int64_t &end = ends[size_t(tier)], begin = end;
    end += int64_t(llvm::alignTo(uint64_t(bytes), 4096));
    return begin;
  }
  int64_t of(state::Tier tier) const { return ends[size_t(tier)]; }

private:
  std::array<int64_t, 3> ends{};
};

} // namespace

void placeApart(ModuleOp module) {
  Ends persistent;
  for (auto state : module.getOps<StateOp>()) state.setOffset(persistent.take(tierOf(state), int64_t(state.getBytes())));
  for (auto program : module.getOps<ProgramOp>()) {
    Ends ends;
    for (auto buffer : program.getBody().front().getOps<BufferOp>())
      buffer.setOffset(ends.take(buffer.getTier(), int64_t(buffer.getBytes())));
    program.setHeight(ends.of(state::Tier::device));
    int64_t host = ends.of(state::Tier::host), disk = ends.of(state::Tier::disk);
    if (host || disk) program.setAway(ArrayRef<int64_t>{host, host, disk, disk});
  }
}

} // namespace zero::place
