//===- next_run.cpp - buffers that are in use when the program runs again -----------------------------===//
#include "passes/place/next_run.h"

using namespace mlir;
using namespace zero::planir;

namespace zero::place {
namespace {

bool isOfUpdates(Lane lane) { return lane == Lane::update || lane == Lane::update_read || lane == Lane::update_write; }

/// The bucket of which something lies in the buffer, or "".
StringRef bucketOf(Value buffer, const SymbolTable &symbols) {
  std::optional<StringRef> bucket;
  if (auto own = buffer.getDefiningOp<BufferOp>()) bucket = own.getBucket();
  if (auto use = buffer.getDefiningOp<UseOp>()) bucket = symbols.lookup<StateOp>(use.getStateAttr().getAttr()).getBucket();
  return bucket.value_or("");
}

} // namespace

bool addNextRun(ProgramOp program, ArrayRef<BufferOp> buffers, OffsetProblem &problem) {
  if (program.getRole() != ProgramRole::step) return false; // another program comes after it
  SymbolTable symbols(program->getParentOfType<ModuleOp>());
  llvm::StringMap<int64_t> needed;    // of each bucket, the first step of lane compute that touches it
  llvm::DenseMap<Value, size_t> uses; // of each buffer, how many updates have been made when it is free
  std::vector<size_t> complete;       // of each step, how many updates are sure to be complete when it begins
  SmallVector<StepOp> steps = stepsOf(program), updates;
  for (auto [at, step] : llvm::enumerate(steps)) {
    if (isOfUpdates(step.getLane())) {
      for (Value buffer : step.getBuffers()) uses[buffer] = updates.size() + 1;
      if (isa<UpdateStep>(*step)) updates.push_back(step);
    } else if (step.getLane() == Lane::compute) {
      for (Value buffer : step.getBuffers())
        if (StringRef bucket = bucketOf(buffer, symbols); !bucket.empty()) needed.try_emplace(bucket, int64_t(at));
    }
  }
  if (updates.empty()) return false;
  complete.resize(steps.size());
  for (auto [i, update] : llvm::enumerate(updates))
    if (auto found = needed.find(cast<UpdateStep>(*update).getBucket()); found != needed.end())
      complete[size_t(found->second)] = std::max(complete[size_t(found->second)], i + 1);
  for (size_t at = 1; at < complete.size(); ++at) complete[at] = std::max(complete[at], complete[at - 1]);
  for (auto [buffer, its] : llvm::zip(buffers, problem.buffers))
    if (auto found = uses.find(Value(BufferOp(buffer).getResult())); found != uses.end())
      its.nextLast = std::min(llvm::lower_bound(complete, found->second) - complete.begin(), ptrdiff_t(its.first)) - 1;
  return true;
}

} // namespace zero::place
