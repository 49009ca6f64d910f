#include "runtime/engine/resolve.h"
#include "runtime/plan/error.h"
#include "runtime/plan/validate.h"
#include <algorithm>

namespace zero::runtime {
namespace {

class Resolver {
public:
  Resolver(const plan::Plan &plan, const plan::Program &program, const std::vector<KernelSymbol> &kernels, const Pointer &address,
           const ParameterGroups &groups, uint64_t rank)
      : plan(plan), program(program), kernels(kernels), address(address), groups(groups), rank(rank), state(plan),
        result(std::make_unique<ResolvedProgram>()) {}

  std::unique_ptr<ResolvedProgram> run() {
    // Calls point into `args`, so it must not move while it grows.
    size_t count = 0;
    for (const plan::Step &step : program.steps())
      if (step.has_launch() || step.has_update()) count += static_cast<size_t>(step.reads_size() + step.writes_size());
    result->args.reserve(count);
    for (int i = 0; i < program.steps_size(); ++i) {
      const plan::Step &step = program.steps(i);
      name = "step " + std::to_string(i) + " '" + step.name() + "' of program '" + program.name() + "'";
      auto waitBegin = static_cast<uint32_t>(result->waits.size());
      for (const plan::Wait &wait : step.waits())
        if (wait.lane() != step.lane() && wait.tick() > 0) // a lane is in order: it never waits for itself
          result->waits.push_back({wait.lane(), static_cast<uint32_t>(wait.tick())});
      auto waitEnd = static_cast<uint32_t>(result->waits.size());
      result->lanes[static_cast<size_t>(step.lane())].push_back({callOf(step), static_cast<uint32_t>(i), waitBegin, waitEnd});
    }
    return std::move(result);
  }

private:
  float *floats(const plan::Ref &ref) const { return static_cast<float *>(address(ref)); }

  Call callOf(const plan::Step &step) {
    switch (step.what_case()) {
    case plan::Step::kLaunch:
      return launch(step, step.launch());
    case plan::Step::kMatmul:
      return matmul(step, step.matmul());
    case plan::Step::kAttention:
      return attention(step, step.attention(), step.writes(0), step.writes(1));
    case plan::Step::kAttentionGrad: {
      int last = step.reads_size() - 1; // out, lse and the output's gradient are read behind what forward reads
      return AttentionGradCall{attention(step, step.attention_grad(), step.reads(last - 2), step.reads(last - 1)), floats(step.reads(last)),
                               floats(step.writes(0)), floats(step.writes(1)), floats(step.writes(2))};
    }
    case plan::Step::kCollective:
      return collective(step, step.collective());
    case plan::Step::kCopy:
      return CopyCall{address(step.writes(0)), address(step.reads(0)), step.writes(0).bytes()};
    case plan::Step::kFill:
      return FillCall{address(step.writes(0)), step.fill().pattern(), step.writes(0).bytes()};
    case plan::Step::kUpdate: {
      UpdateCall call{launch(step, step.update().launch()), &step, {}};
      if (!groups.of.empty())
        call.parts = cutUpdate(plan, state, step, call.launch, groups, rank, groups.scratch[static_cast<size_t>(step.lane())]);
      return call;
    }
    case plan::Step::WHAT_NOT_SET:
      break;
    }
    throw Error(name + " does nothing this program knows");
  }

  LaunchCall launch(const plan::Step &step, const plan::Launch &launch) {
    const plan::Kernel &kernel = plan.kernels(static_cast<int>(launch.kernel()));
    void *const *args = result->args.data() + result->args.size();
    for (const plan::Ref &ref : step.reads()) result->args.push_back(address(ref));
    for (const plan::Ref &ref : step.writes()) result->args.push_back(address(ref));
    return {kernels[launch.kernel()].function, args, static_cast<int64_t>(launch.extent()), static_cast<int64_t>(kernel.grain())};
  }

  MatMulCall matmul(const plan::Step &step, const plan::MatMul &p) const {
    if (p.dtype() != plan::F32)
      throw Error(name + " multiplies " + plan::DType_Name(p.dtype()) +
                  " matrices, which is not built yet for the CPU; compile with --precision f32");
    auto i = [](uint64_t value) { return static_cast<int64_t>(value); };
    return {floats(step.reads(0)),
            floats(step.reads(1)),
            floats(step.writes(0)),
            i(p.m()),
            i(p.n()),
            i(p.k()),
            i(p.batch()),
            p.trans_a(),
            p.trans_b(),
            i(p.lda()),
            i(p.ldb()),
            i(p.ldc()),
            i(p.stride_a()),
            i(p.stride_b()),
            i(p.stride_c()),
            p.accumulate()};
  }

  AttentionCall attention(const plan::Step &step, const plan::Attention &p, const plan::Ref &out, const plan::Ref &lse) const {
    AttentionCall call{};
    call.q = floats(step.reads(0)), call.k = floats(step.reads(1)), call.v = floats(step.reads(2));
    call.out = floats(out), call.lse = floats(lse);
    call.batch = static_cast<int64_t>(p.batch());
    call.heads = static_cast<int64_t>(p.heads());
    call.kvHeads = static_cast<int64_t>(p.kv_heads());
    call.qLen = static_cast<int64_t>(p.q_len());
    call.kvLen = static_cast<int64_t>(p.kv_len());
    call.dim = static_cast<int64_t>(p.dim());
    call.scale = p.scale();
    call.causal = p.causal();
    if (p.mask_shape_size() == 4) {
      call.mask = floats(step.reads(3));
      int64_t stride = 1;
      for (int i = 3; i >= 0; --i) {
        call.maskStride[i] = p.mask_shape(i) == 1 ? 0 : stride;
        stride *= static_cast<int64_t>(p.mask_shape(i));
      }
    }
    return call;
  }

  Call collective(const plan::Step &step, const plan::Collective &p) const {
    const plan::Ref &src = step.reads(0), &dst = step.writes(0);
    float *staging = step.writes_size() > 1 ? floats(step.writes(1)) : nullptr;
    switch (p.kind()) {
    case plan::Collective::ALL_GATHER:
      return AllGatherCall{address(src), address(dst), p.count() * plan::bytesOf(p.dtype())};
    case plan::Collective::REDUCE_SCATTER:
      return ReduceScatterCall{floats(src), floats(dst), p.count(), staging};
    case plan::Collective::ALL_REDUCE:
      return AllReduceCall{floats(src), p.count(), staging};
    default:
      throw Error(name + " is an unknown collective");
    }
  }

  const plan::Plan &plan;
  const plan::Program &program;
  const std::vector<KernelSymbol> &kernels;
  const Pointer &address;
  const ParameterGroups &groups;
  uint64_t rank;
  StateMaps state;
  std::unique_ptr<ResolvedProgram> result;
  std::string name;
};

} // namespace

bool ResolvedProgram::communicates(int lane) const {
  for (const Operation &operation : lanes[static_cast<size_t>(lane)])
    if (std::holds_alternative<AllGatherCall>(operation.call) || std::holds_alternative<ReduceScatterCall>(operation.call) ||
        std::holds_alternative<AllReduceCall>(operation.call))
      return true;
  return false;
}

std::unique_ptr<ResolvedProgram> resolve(const plan::Plan &plan, const plan::Program &program, const std::vector<KernelSymbol> &kernels,
                                         const Pointer &address, const ParameterGroups &groups, uint64_t rank) {
  return Resolver(plan, program, kernels, address, groups, rank).run();
}

AttentionLimits attentionLimits(const plan::Plan &plan, const std::vector<uint32_t> &programs) {
  AttentionLimits limits;
  for (uint32_t index : programs)
    for (const plan::Step &step : plan.programs(static_cast<int>(index)).steps()) {
      const plan::Attention *call = step.has_attention() ? &step.attention() : step.has_attention_grad() ? &step.attention_grad() : nullptr;
      if (!call) continue;
      limits.dim = std::max(limits.dim, static_cast<int64_t>(call->dim()));
      limits.qLen = std::max(limits.qLen, static_cast<int64_t>(call->q_len()));
      limits.kvLen = std::max(limits.kvLen, static_cast<int64_t>(call->kv_len()));
    }
  return limits;
}

} // namespace zero::runtime
