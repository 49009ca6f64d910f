//===- inline_thread_pool.h - tasks of a pool, done by the thread that gives them ---------------===//
#pragma once
#include "llvm/Support/ThreadPool.h"

namespace zero::pipeline {

/// For an MLIR context that several threads use: what a pass manager would share among threads is done by the thread that runs it, in
/// order. So one order of work gives one plan, and programs of a module are not moved from one processor to another.
class InlineThreadPool : public llvm::ThreadPoolInterface {
  void asyncEnqueue(std::function<void()> task, llvm::ThreadPoolTaskGroup *) override { task(); }

public:
  void wait() override {}
  void wait(llvm::ThreadPoolTaskGroup &) override {}
  unsigned getMaxConcurrency() const override { return 1; }
};

} // namespace zero::pipeline
