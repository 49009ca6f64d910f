//===- compile.h - from an ONNX file to a plan ------------------------------------------------------===//
#pragma once
#include "passes/pipeline/progress.h"
#include "passes/pipeline/search.h"
#include "runtime/plan/plan.pb.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>
#include <optional>
#include <string>

namespace zero::pipeline {

/// Where a compilation may stop and print what it has.
enum class Phase { Import, Train, Shard, Schedule, Place, Plan };

struct CompileOptions {
  std::string model;
  onnx::ImportOptions import;
  uint64_t initSeed = 0;
  std::vector<std::string> losses{"cross_entropy"}; // of the weighted sum: "0.5*mse:OUTPUT", … (passes/train/losses.h)
  double labelSmoothing = 0;                        // of cross_entropy
  std::optional<int64_t> tileParts = 1;  // no tile is larger than this part of the largest parameter; 1: nothing is cut; none: chosen
  std::optional<int64_t> tileTokens = 0; // tokens for which an MLP, or logits and their loss, are computed at a time; 0: all; none: chosen
  bool prefetch = true;                  // gather and fetch ahead of the step that needs it, and reduce while the next gradient is computed
  std::string recompute = "auto";        // what backward computes again instead of keeping: auto | none | full
  std::string optimizer = "adamw";
  std::string clip = "any"; // whether runs clip the norm of gradients: any | never | always
  int64_t world = 1, accumulate = 1;
  std::string accumulateOrder = "horizontal"; // of micro-steps: horizontal | vertical | auto (chosen, where there is a budget)
  std::optional<int64_t> stage = 0;           // none: chosen
  std::string precision = "f32";              // of parameters and activations in memory: f32 | bf16 | f16; masters of parameters are f32
  std::string reduceType = "f32";             // of gradients on their way between ranks: f32 | bf16; sums are f32
  // Tiers where state rests: none (the device) | host | disk | auto (where budgets have room, the device first).
  std::string offloadParams = "auto", offloadOptimizer = "auto", offloadActivations = "auto";
  int64_t bucketElements = 0;                    // 0: chosen by the model's size
  plan::Target::Kind target = plan::Target::CPU; // or CUDA; or SIM: without machine code
  std::string cpu = "native";                    // of target CPU
  std::string gpu = "sm_80";                     // of target CUDA
  bool epilogues = true;                         // of target CUDA: products do more where that spares a pass over memory
  bool tf32 = false;                             // of target CUDA: products of f32 multiply with 10 bits of fraction
  Budgets budgets;
  simulate::Machine machine;    // that steps are estimated on
  Progress *progress = nullptr; // written to if given
  unsigned threads = 1;         // that may make it; their number does not change the plan
  std::string signWith;         // file of a private key; empty: not signed
};

/// A phase by the name `--emit` gives it; none if unknown.
std::optional<Phase> phaseFromName(llvm::StringRef name);
/// "import, train, …", for messages.
std::string phaseNames();

/// The passes of a phase, as text zero-opt understands.
std::string describePipeline(const CompileOptions &options);

/// Said of the model on the way; `seconds` of each phase for --timing.
struct CompileReport {
  onnx::ImportReport import;
  std::vector<std::pair<std::string, double>> seconds;
  std::optional<std::pair<unsigned, uint64_t>> searched; // choices, and steps of programs that were scheduled for them
};

/// Diagnostics are sentences without "zeroc:".
using Say = std::function<void(llvm::StringRef severity, llvm::StringRef sentence)>;

/// Compile to `output`, or with `emit` print the module (for Phase::Plan: the schedule of the plan) to `os` and write nothing.
/// False after an error has been said. The plan is judged before it is written.
bool compile(const CompileOptions &options, std::optional<Phase> emit, llvm::raw_ostream &os, const std::string &output, const Say &say,
             CompileReport &report, plan::Plan &result);

} // namespace zero::pipeline
