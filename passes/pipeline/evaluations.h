//===- evaluations.h - what choices need and take, found out once -------------------------------------===//
#pragma once
#include "passes/pipeline/try_out.h"
#include <map>
#include <mutex>
#include <tuple>

namespace zero::pipeline {

/// What distinguishes choices.
using Key = std::tuple<std::optional<uint64_t>, Tiling, int64_t, bool, int64_t, int64_t, bool, int64_t, std::string, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t, int64_t, bool>;
Key keyOf(const Settings &settings, bool places);

/// Any thread may ask; who asks for what another is finding out waits for it.
class Evaluations {
public:
  Evaluations(const Modules &modules, const Question &question) : modules(modules), question(question) {}

  /// As tryOut, without the module if it was made for another. That of one that was placed ahead (quiet.h) waits for who listens. Failures
  /// are not kept: who asks again is told the errors again.
  mlir::FailureOr<TriedOut> of(const Settings &settings, bool places);
  /// Nobody will ask for the modules that wait.
  void dropModules();
  /// The same with its module, made again.
  mlir::FailureOr<TriedOut> again(const Settings &settings, bool places) {
    return tryOut(modules(settings.tiling), settings, question, places);
  }
  /// As estimateApart of one that was not placed, which is made again if it has no module.
  mlir::LogicalResult estimate(TriedOut &tried);

private:
  struct Entry {
    std::mutex making;
    bool isMade = false, isTimed = false;
    Trial trial;               // its time is that of one that was placed
    simulate::StepTime time{}; // of one that was not, with every buffer apart
    uint64_t steps = 0;
    mlir::OwningOpRef<mlir::ModuleOp> waiting;
  };
  Entry &at(const Key &key);

  const Modules &modules;
  const Question &question;
  std::mutex mutex; // of entries
  std::map<Key, Entry> entries;
};

} // namespace zero::pipeline
