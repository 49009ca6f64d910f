#include "passes/train/undrawn.h"
#include "compiler/nn/build.h"

using namespace mlir;

namespace zero::train {
namespace {

using nn::Predicate;

/// The probability that `noise` holds in the comparison, of each element; null if it is compared in another way.
Value probability(nn::Build &b, nn::CompareOp compare, Value noise) {
  bool left = compare.getLhs() == noise;
  Value other = left ? compare.getRhs() : compare.getLhs();
  Predicate how = compare.getPredicate();
  bool below = how == Predicate::lt || how == Predicate::le, above = how == Predicate::gt || how == Predicate::ge;
  if (other == noise || (!below && !above)) return {};
  Value limit = b.max(other, b.like(other, 0));
  limit = b.select(b.compare(Predicate::gt, limit, b.like(limit, 1)), b.like(limit, 1), limit);
  return below == left ? limit : b.sub(b.like(limit, 1), limit);
}

/// 0 or 1 by a comparison with the noise, as a number.
void replaceCompared(Value noise, nn::CompareOp compare) {
  OpBuilder builder(compare);
  nn::Build b{builder, compare.getLoc()};
  Value kept;
  for (Operation *user : llvm::make_early_inc_range(compare->getUsers())) {
    auto cast = dyn_cast<nn::CastOp>(user);
    if (!cast || !isa<FloatType>(nn::elementOf(cast.getResult()))) continue;
    if (!kept) kept = probability(b, compare, noise);
    if (!kept) return;
    cast.getResult().replaceAllUsesWith(b.cast(kept, nn::elementOf(cast.getResult())));
  }
}

/// 0 or 1 as the floor of the noise and what is added to it, between 0 and 1.
void replaceFloor(Value noise, nn::AddOp sum) {
  Value keep = sum.getLhs() == noise ? sum.getRhs() : sum.getLhs();
  if (keep == noise) return;
  for (Operation *user : llvm::make_early_inc_range(sum->getUsers()))
    if (auto floor = dyn_cast<nn::FloorOp>(user)) floor.getResult().replaceAllUsesWith(keep);
}

} // namespace

void removeDraws(func::FuncOp function) {
  for (auto dropout : llvm::make_early_inc_range(function.getOps<nn::DropoutOp>())) {
    dropout.getResult().replaceAllUsesWith(dropout.getInput());
    dropout.erase();
  }
  for (auto noise : function.getOps<nn::NoiseOp>()) {
    if (noise.getNormal()) continue;
    for (Operation *user : llvm::make_early_inc_range(noise->getUsers())) {
      if (auto compare = dyn_cast<nn::CompareOp>(user)) replaceCompared(noise, compare);
      if (auto sum = dyn_cast<nn::AddOp>(user)) replaceFloor(noise, sum);
    }
  }
}

} // namespace zero::train
