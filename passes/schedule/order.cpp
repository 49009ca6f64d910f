//===- order.cpp - the steps of a program and who touches which buffer when ------------------------===//
#include "passes/schedule/order.h"
#include "compiler/zero/Zero.h"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {

Order::Order(ProgramOp program) : world(state::worldOf(program)), steps(stepsOf(program)) {
  positions.reserve(steps.size());
  for (auto [position, step] : llvm::enumerate(steps)) {
    positions[step] = position;
    for (const Access &access : accessesOf(step)) {
      auto [found, isNew] = buffers.try_emplace(access.ref.buffer, byBuffer.size());
      if (isNew) byBuffer.emplace_back();
      byBuffer[found->second].push_back({int64_t(position), access.writes, access.ref.offset, access.ref.end(world)});
    }
  }
}

ArrayRef<Order::Touch> Order::touches(Value buffer) const {
  auto found = buffers.find(buffer);
  return found == buffers.end() ? ArrayRef<Touch>() : ArrayRef<Touch>(byBuffer[found->second]);
}

int64_t Order::lastTouch(Value buffer) const { return touches(buffer).empty() ? -1 : touches(buffer).back().position; }

static bool conflicts(const Order::Touch &touch, const Access &access, int64_t world) {
  return (touch.writes || access.writes) && touch.begin < access.ref.end(world) && access.ref.offset < touch.end;
}

int64_t Order::firstConflictAfter(int64_t position, ArrayRef<Access> accesses) const {
  int64_t first = size();
  for (const Access &access : accesses) {
    auto all = touches(access.ref.buffer);
    auto it = llvm::partition_point(all, [&](const Touch &touch) { return touch.position <= position; });
    for (; it != all.end() && it->position < first; ++it)
      if (conflicts(*it, access, world)) first = it->position;
  }
  return first;
}

int64_t Order::lastConflictBefore(int64_t position, ArrayRef<Access> accesses) const {
  int64_t last = -1;
  for (const Access &access : accesses) {
    auto all = touches(access.ref.buffer);
    auto it = llvm::partition_point(all, [&](const Touch &touch) { return touch.position < position; });
    while (it != all.begin() && (--it)->position > last)
      if (conflicts(*it, access, world)) last = it->position;
  }
  return last;
}

bool isTransient(Value buffer) {
  auto own = buffer.getDefiningOp<BufferOp>();
  return own && own.getTier() == state::Tier::device;
}

std::vector<int64_t> liveBytes(const Order &order) {
  std::vector<int64_t> live(order.size() + 1);
  llvm::DenseSet<Value> seen;
  for (int64_t at = 0; at < int64_t(order.size()); ++at)
    for (Value buffer : order[at].getBuffers())
      if (isTransient(buffer) && seen.insert(buffer).second) {
        int64_t bytes = buffer.getDefiningOp<BufferOp>().getBytes();
        live[at] += bytes, live[order.lastTouch(buffer) + 1] -= bytes;
      }
  for (size_t at = 1; at < live.size(); ++at) live[at] += live[at - 1];
  return live;
}

std::string counted(uint64_t n, StringRef noun) { return std::to_string(n) + " " + noun.str() + (n == 1 ? "" : "s"); }

void decide(ProgramOp program, const Twine &subject, const Twine &choice, const Twine &reason) {
  OpBuilder b(program.getBody().front().getTerminator());
  b.create<DecisionOp>(program.getLoc(), subject.str(), choice.str(), reason.str());
}

} // namespace zero::schedule
