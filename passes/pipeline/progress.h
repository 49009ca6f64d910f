//===- progress.h - what a compilation is at, for a watcher in another thread ---------------------===//
#pragma once
#include "compiler/onnx/import.h"

namespace zero::pipeline {

/// Texts are null or end in a zero and live until the compilation ends. One thread writes, any may read.
struct Progress {
  std::atomic<const char *> phase = "start"; // "read", "train", …
  std::atomic<const char *> pass = nullptr;  // of the phase
  std::atomic<const char *> node = nullptr;  // of the model, once it is read: the one that has become most operations
  std::atomic<bool> writing = false;         // the plan: nothing may end the program now
  onnx::ImportProgress reading;
};

} // namespace zero::pipeline
