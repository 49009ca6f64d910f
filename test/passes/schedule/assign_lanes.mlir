// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-assign-lanes))" %s | FileCheck %s
module attributes {zero.world = 2 : i64} {
  plan.state parameter @b0.parameter bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 shard on device>}
  plan.state optimizer @b0.gradient bytes 256 {bucket = @b0, tensor = #zero.tensor<gradient f32 shard on host>}
  // CHECK-LABEL: plan.program step @step
  plan.program step @step {
    %p = plan.use @b0.parameter
    %w = plan.buffer gathered "b0.gathered" bytes 512
    %g = plan.buffer gradient "b0.gradient" bytes 512
    %s = plan.buffer staging "staging" bytes 512
    // A gather of parameters and the publishing of updated ones.
    // CHECK: plan.collective gather
    plan.collective compute %p[0, 256] -> %w[0, 512] : all_gather 64 of f32
    // CHECK: plan.collective gather
    plan.collective compute %p[0 + rank * 128, 128] -> %p[0, 256] : all_gather 32 of f32
    // CHECK: plan.fill compute
    plan.fill compute -> %g[0, 512] : 0
    // CHECK: plan.collective reduce
    plan.collective compute %g[0, 512] -> %g[0 + rank * 256, 256], %s[0, 512] : reduce_scatter 64 of f32 by 64
    // An all-gather of gradients.
    // CHECK: plan.collective reduce
    plan.collective compute %g[0 + rank * 256, 256] -> %g[0, 512] : all_gather 64 of f32
    // CHECK: plan.collective reduce
    plan.collective compute %g[0, 4] -> %g[0, 4], %s[0, 8] : all_reduce 1 of f32 by 1
    // CHECK: plan.copy compute
    plan.copy compute %g[0, 64] -> %s[0, 64]
    // What the host adds where it rests, and what the device does.
    %sum = plan.use @b0.gradient
    %there = plan.buffer gradient "b0.gradient.on_host" on host bytes 256
    // CHECK: plan.launch update_host
    plan.launch compute %sum[0, 256], %there[0, 256] -> %sum[0, 256] : @add
    // CHECK: plan.launch compute
    plan.launch compute %g[0, 256], %g[256, 256] -> %g[0, 256] : @add
    plan.return %g[0, 4]
  }
}
