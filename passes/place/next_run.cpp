//===- next_run.cpp - buffers that are in use when the program runs again -----------------------------===//
#include "passes/place/next_run.h"

using namespace mlir;
using namespace zero::planir;

namespace zero::place {
namespace {

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

/// What a program does first, but for its updates.
struct FirstUses {
  FirstUses(ProgramOp program, ArrayRef<StepOp> steps);

  llvm::StringMap<int64_t> needed;                   // of each bucket, the first step of lane compute that touches it
  llvm::DenseMap<Value, int64_t> touched;            // of each buffer, the first of these
  llvm::DenseMap<Value, SmallVector<Value>> fetched; // of state, the buffers that it is copied to
};

FirstUses::FirstUses(ProgramOp program, ArrayRef<StepOp> steps) {
  SymbolTable symbols(program->getParentOfType<ModuleOp>());
  for (auto [at, given] : llvm::enumerate(steps)) {
    StepOp step = given;
    if (isOfUpdates(step.getLane())) continue;
    if (auto copy = dyn_cast<CopyStep>(*step); copy && step.getLane() != Lane::compute)
      fetched[step.getBuffers()[0]].push_back(step.getBuffers()[1]);
    if (step.getLane() != Lane::compute) continue;
    for (Value buffer : step.getBuffers()) {
      touched.try_emplace(buffer, int64_t(at));
      if (StringRef bucket = bucketIn(buffer, symbols); !bucket.empty()) needed.try_emplace(bucket, int64_t(at));
    }
  }
}

} // namespace

/// Of each step, the multiply-adds of products before it.
static std::vector<int64_t> workBefore(ArrayRef<StepOp> steps) {
  std::vector<int64_t> work{0};
  for (StepOp step : steps) {
    auto product = dyn_cast<MatMulStep>(*step);
    work.push_back(work.back() + (product ? multiplyAddsOf(product) : 0));
  }
  return work;
}

bool addNextRun(ProgramOp program, ArrayRef<BufferOp> buffers, int64_t writeWork, OffsetProblem &problem) {
  if (program.getRole() != ProgramRole::step) return false; // another program comes after it
  SmallVector<StepOp> steps = stepsOf(program);
  FirstUses first(program, steps);
  // An update is complete before the step of the next run that computes with its bucket. A write-back is complete before the step that
  // computes with what is fetched from there. Both are in order, so that those before them are complete as well.
  Progress updates(steps.size()), copies(steps.size());
  struct Use {
    size_t updates = 0, copies = 0; // complete when the buffer is free
  };
  llvm::DenseMap<Value, Use> uses;
  llvm::DenseMap<Value, int64_t> deferred; // of what is written after all updates, bytes with what is written before it
  int64_t deferredBytes = 0;
  for (StepOp step : steps) {
    if (!isOfUpdates(step.getLane())) continue;
    bool leaves = step.getLane() == Lane::update_write;
    for (Value buffer : step.getBuffers()) uses[buffer] = {updates.count + 1, leaves ? copies.count + 1 : 0};
    if (auto update = dyn_cast<UpdateStep>(*step)) {
      auto found = first.needed.find(update.getBucket());
      updates.add(found == first.needed.end() ? -1 : found->second);
    } else if (step.getLane() == Lane::update && isa<CopyStep>(*step)) {
      deferredBytes += step.getBytes()[0];
      deferred[step.getBuffers()[0]] = deferredBytes;
    } else if (leaves) {
      int64_t read = -1;
      for (Value copy : first.fetched.lookup(step.getBuffers().back()))
        if (auto found = first.touched.find(copy); found != first.touched.end() && (read < 0 || found->second < read)) read = found->second;
      copies.add(read);
    }
  }
  if (!updates.count && !copies.count) return false;
  updates.close(), copies.close();
  std::vector<int64_t> work = deferred.empty() ? std::vector<int64_t>{} : workBefore(steps);
  auto writtenBy = [&](int64_t bytes) { // begins when all updates are complete
    int64_t begin = updates.stepWith(updates.count);
    auto end = std::lower_bound(work.begin() + begin, work.end(), work[size_t(begin)] + bytes * writeWork);
    return writeWork ? int64_t(end - work.begin()) : int64_t(steps.size());
  };
  for (auto [buffer, its] : llvm::zip(buffers, problem.buffers)) {
    auto found = uses.find(Value(BufferOp(buffer).getResult()));
    if (found == uses.end()) continue;
    int64_t free = std::min(updates.stepWith(found->second.updates), its.first);
    if (found->second.copies) free = std::min(free, copies.stepWith(found->second.copies));
    if (auto late = deferred.find(found->first); late != deferred.end()) free = std::min(writtenBy(late->second), its.first);
    its.nextLast = free - 1;
  }
  return true;
}

} // namespace zero::place
