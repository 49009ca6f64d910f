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

/// How many of a lane's steps are complete when each step of the next run begins.
class Progress {
public:
  explicit Progress(size_t steps) : complete(steps) {}
  size_t count = 0;

  /// One more, complete before `step`; −1: before none that is known.
  void add(int64_t step) {
    ++count;
    if (step >= 0) complete[size_t(step)] = std::max(complete[size_t(step)], count);
  }
  void close() {
    for (size_t at = 1; at < complete.size(); ++at) complete[at] = std::max(complete[at], complete[at - 1]);
  }
  int64_t stepWith(size_t many) const { return llvm::lower_bound(complete, many) - complete.begin(); }

private:
  std::vector<size_t> complete;
};

} // namespace

bool addNextRun(ProgramOp program, ArrayRef<BufferOp> buffers, OffsetProblem &problem) {
  if (program.getRole() != ProgramRole::step) return false; // another program comes after it
  SymbolTable symbols(program->getParentOfType<ModuleOp>());
  SmallVector<StepOp> steps = stepsOf(program);
  llvm::StringMap<int64_t> needed;                   // of each bucket, the first step of lane compute that touches it
  llvm::DenseMap<Value, int64_t> touched;            // of each buffer, the first of these
  llvm::DenseMap<Value, SmallVector<Value>> fetched; // of state, the buffers that it is copied to, but for these updates
  for (auto [at, step] : llvm::enumerate(steps)) {
    if (isOfUpdates(step.getLane())) continue;
    if (auto copy = dyn_cast<CopyStep>(*step); copy && step.getLane() != Lane::compute)
      fetched[step.getBuffers()[0]].push_back(step.getBuffers()[1]);
    if (step.getLane() != Lane::compute) continue;
    for (Value buffer : step.getBuffers()) {
      touched.try_emplace(buffer, int64_t(at));
      if (StringRef bucket = bucketOf(buffer, symbols); !bucket.empty()) needed.try_emplace(bucket, int64_t(at));
    }
  }
  // An update is complete before the step of the next run that computes with its bucket. A write-back is complete before the step that
  // computes with what is fetched from there. Both are in order, so that those before them are complete as well.
  Progress updates(steps.size()), copies(steps.size());
  struct Use {
    size_t updates = 0, copies = 0; // complete when the buffer is free
  };
  llvm::DenseMap<Value, Use> uses;
  for (StepOp step : steps) {
    if (!isOfUpdates(step.getLane())) continue;
    bool leaves = step.getLane() == Lane::update_write;
    for (Value buffer : step.getBuffers()) uses[buffer] = {updates.count + 1, leaves ? copies.count + 1 : 0};
    if (auto update = dyn_cast<UpdateStep>(*step)) {
      auto found = needed.find(update.getBucket());
      updates.add(found == needed.end() ? -1 : found->second);
    } else if (leaves) {
      int64_t first = -1;
      for (Value copy : fetched.lookup(step.getBuffers().back()))
        if (auto found = touched.find(copy); found != touched.end() && (first < 0 || found->second < first)) first = found->second;
      copies.add(first);
    }
  }
  if (!updates.count && !copies.count) return false;
  updates.close(), copies.close();
  for (auto [buffer, its] : llvm::zip(buffers, problem.buffers)) {
    auto found = uses.find(Value(BufferOp(buffer).getResult()));
    if (found == uses.end()) continue;
    int64_t free = std::min(updates.stepWith(found->second.updates), its.first);
    if (found->second.copies) free = std::min(free, copies.stepWith(found->second.copies));
    its.nextLast = free - 1;
  }
  return true;
}

} // namespace zero::place
