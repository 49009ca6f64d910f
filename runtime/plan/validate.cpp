#include "runtime/plan/validate.h"
#include "runtime/base/error.h"
#include "runtime/plan/checks.h"
#include "runtime/plan/container.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/micro_steps.h"
#include "runtime/plan/target.h"
#include <algorithm>
#include <set>

namespace zero::plan {
namespace {

constexpr uint64_t kMaxWorld = 1 << 20;
constexpr int kMaxAxes = 8, kMaxPrograms = 64;
constexpr size_t kMaxReason = 65536;

// What every GPU can launch: along x 2^31 - 1 blocks of 1024 threads; a block of those at hand has no more shared memory.
constexpr uint32_t kMaxBlocks = 0x7fffffff, kMaxThreads = 1024, kWarp = 32, kMaxSharedBytes = 227 << 10;

void checkGrid(const Plan &plan, const Kernel &kernel, const std::string &what) {
  if (kernel.has_gpu() && plan.target().kind() != Target::CUDA) throw Error(what + " has a grid, but the plan is not for cuda");
  if (!kernel.has_gpu()) return;
  const Grid &grid = kernel.gpu();
  if (grid.blocks() == 0 || grid.blocks() > kMaxBlocks)
    throw Error(what + " has a grid of " + std::to_string(grid.blocks()) + " blocks; expected 1 to " + std::to_string(kMaxBlocks));
  if (kernel.row() && kernel.extent() != grid.blocks())
    throw Error(what + " has a grid of " + std::to_string(grid.blocks()) + " blocks for " + std::to_string(kernel.extent()) +
                " iterations of " + std::to_string(kernel.row()) + " elements; expected a block for each");
  if (grid.threads() == 0 || grid.threads() > kMaxThreads || grid.threads() % kWarp)
    throw Error(what + " has blocks of " + std::to_string(grid.threads()) + " threads; expected a multiple of " + std::to_string(kWarp) +
                " up to " + std::to_string(kMaxThreads));
  if (grid.shared_bytes() > kMaxSharedBytes)
    throw Error(what + " wants " + std::to_string(grid.shared_bytes()) + " bytes of shared memory; a block has at most " +
                std::to_string(kMaxSharedBytes));
}

void checkKernels(const Plan &plan) {
  for (int i = 0; i < plan.kernels_size(); ++i) {
    const Kernel &kernel = plan.kernels(i);
    std::string what = "kernel " + std::to_string(i);
    requireName(what, kernel.symbol());
    requireText(what, kernel.summary(), kMaxReason);
    for (char c : kernel.symbol())
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '$')
        throw Error(what + " has the symbol '" + kernel.symbol() + "', which is not an identifier");
    if (kernel.args() > kMaxArgs)
      throw Error(what + " '" + kernel.symbol() + "' takes " + std::to_string(kernel.args()) + " arguments; at most " +
                  std::to_string(kMaxArgs) + " are allowed");
    what += " '" + kernel.symbol() + "'";
    if (static_cast<uint32_t>(kernel.arg_bytes_size()) != kernel.args())
      throw Error(what + " says the bytes of " + std::to_string(kernel.arg_bytes_size()) + " of its " + std::to_string(kernel.args()) +
                  " arguments");
    if (kernel.extent() == 0 || kernel.extent() > kMaxBytes)
      throw Error(what + " is made for an impossible extent of " + std::to_string(kernel.extent()));
    if (kernel.grain() > kMaxBytes) throw Error(what + " has an impossible grain");
    checkGrid(plan, kernel, what);
    if (i > 0 && isForHost(plan, plan.kernels(i - 1)) && !isForHost(plan, kernel))
      throw Error(what + " is for the device and comes after one for the host's processors; expected those last");
  }
}

// The ranks are as many as the axes have coordinates.
void checkMesh(const Plan &plan) {
  std::set<std::string> names;
  uint64_t ranks = 1;
  if (plan.axes_size() > kMaxAxes)
    throw Error("the plan has " + std::to_string(plan.axes_size()) + " axes; expected at most " + std::to_string(kMaxAxes));
  for (const Axis &axis : plan.axes()) {
    requireName("an axis", axis.name());
    if (!names.insert(axis.name()).second) throw Error("axis '" + axis.name() + "' occurs twice");
    if (axis.size() < 1 || axis.size() > kMaxWorld)
      throw Error("axis '" + axis.name() + "' has " + std::to_string(axis.size()) + " coordinates; expected 1 to " +
                  std::to_string(kMaxWorld));
    ranks = multiply(ranks, axis.size(), "the mesh of the plan's axes");
  }
  if (ranks != plan.world())
    throw Error("the plan is for " + std::to_string(plan.world()) + " ranks, but " +
                (plan.axes_size() ? "its axes " + axesText(plan) + " have " + std::to_string(ranks) : "names no axis"));
}

bool isArchitecture(std::string feature) { // "sm_90", "sm_90a"
  if (feature.ends_with('a')) feature.pop_back();
  return feature.starts_with("sm_") && feature.size() > 4 && feature.size() < 8 &&
         std::all_of(feature.begin() + 3, feature.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void checkHeader(const Plan &plan) {
  requireText("the producer", plan.producer());
  requireText("the model", plan.model());
  requireText("the target", plan.target().cpu());
  for (const std::string &feature : plan.target().features()) requireText("the target", feature);
  for (const std::string &feature : plan.target().host_features()) requireText("the target", feature);
  if (!Target::Kind_IsValid(plan.target().kind()))
    throw Error("the plan is for the unknown target " + std::to_string(plan.target().kind()));
  if (plan.target().kind() == Target::CUDA && (plan.target().features_size() != 1 || !isArchitecture(plan.target().features(0))))
    throw Error("the plan is for cuda without naming one architecture, as sm_90");
  if (plan.world() < 1 || plan.world() > kMaxWorld)
    throw Error("the plan is for " + std::to_string(plan.world()) + " ranks; expected 1 to " + std::to_string(kMaxWorld));
  checkMesh(plan);
  if (plan.stage() > 3) throw Error("the plan has ZeRO stage " + std::to_string(plan.stage()) + "; expected 0 to 3");
  if (plan.accumulate() < 1 || plan.accumulate() > kMaxWorld)
    throw Error("the plan accumulates " + std::to_string(plan.accumulate()) + " micro-steps; expected 1 to " + std::to_string(kMaxWorld));
  if (plan.samples() > kMaxBytes || plan.tokens() > kMaxBytes) throw Error("the plan's samples or tokens per micro-step are impossible");
  if (!OptimizerKind_IsValid(plan.optimizer().kind())) throw Error("the plan has an unknown optimizer");
  for (const Decision &decision : plan.decisions()) {
    requireText("a decision", decision.subject());
    requireText("a decision", decision.choice(), kMaxReason);
    requireText("a decision", decision.reason(), kMaxReason);
  }
}

void checkProgramHeaders(const Plan &plan) {
  if (plan.programs_size() > kMaxPrograms) // each may run on from any
    throw Error("the plan has " + std::to_string(plan.programs_size()) + " programs; at most " + std::to_string(kMaxPrograms) +
                " are allowed");
  for (int i = 0; i < plan.programs_size(); ++i) {
    const Program &program = plan.programs(i);
    std::string what = "program " + std::to_string(i);
    requireText(what, program.name());
    what += " '" + program.name() + "'";
    if (!Program::Role_IsValid(program.role())) throw Error(what + " has the unknown role " + std::to_string(program.role()));
    bool updates = program.role() == Program::STEP || program.role() == Program::LAST;
    if (plan.scales_loss() && updates && (program.clips() || !program.has_gradient_norm()))
      throw Error(what + (program.clips() ? " is a variant that clips" : " leaves no gradient norm") +
                  ", but the plan scales its loss: its updates all wait for the norm, which says whether they are made");
    if (program.arena_bytes_size() != plan.arenas_size())
      throw Error(what + " gives the height of " + std::to_string(program.arena_bytes_size()) + " arenas, but the plan has " +
                  std::to_string(plan.arenas_size()));
    if (program.live_bytes_size() != 0 && program.live_bytes_size() != plan.arenas_size())
      throw Error(what + " gives the live bytes of " + std::to_string(program.live_bytes_size()) + " arenas, but the plan has " +
                  std::to_string(plan.arenas_size()));
    for (int a = 0; a < plan.arenas_size(); ++a)
      if (program.arena_bytes(a) > plan.arenas(a).bytes())
        throw Error(what + " needs " + std::to_string(program.arena_bytes(a)) + " bytes of arena '" + plan.arenas(a).name() +
                    "', which has " + std::to_string(plan.arenas(a).bytes()));
  }
}

} // namespace

void validate(const Plan &plan, uint64_t constantBytes) {
  if (plan.format() > kFormat)
    throw Error("the plan message has format " + std::to_string(plan.format()) + ", newer than " + std::to_string(kFormat));
  checkHeader(plan);
  checkArenas(plan);
  checkProgramHeaders(plan);
  checkMemory(plan, constantBytes);
  checkState(plan);
  checkKernels(plan);
  for (int i = 0; i < plan.programs_size(); ++i) {
    const Program &program = plan.programs(i);
    std::string what = "program '" + program.name() + "'";
    for (int s = 0; s < program.steps_size(); ++s) checkStep(plan, i, s);
    if (program.has_loss())
      checkNumbers(plan, program.loss(), int(microStepsOf(plan, program)) * std::max(1, plan.losses_size()), "the loss of " + what, i);
    if (program.has_gradient_norm()) checkNumbers(plan, program.gradient_norm(), 1, "the gradient norm of " + what, i);
    checkWaits(program);
  }
  for (const Program &program : plan.programs()) checkEntries(plan, program); // whose steps are known to be right
}

} // namespace zero::plan
