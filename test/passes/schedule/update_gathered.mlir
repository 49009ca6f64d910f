// An update works on what the last gather brought, if at most one other bucket is gathered in between.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-update-gathered))" %s | FileCheck %s

module attributes {zero.world = 1 : i64} {
  plan.state parameter @p0 bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 whole on host>}
  plan.state parameter @p1 bytes 256 {bucket = @b1, tensor = #zero.tensor<master f32 whole on host>}
  plan.state parameter @p2 bytes 256 {bucket = @b2, tensor = #zero.tensor<master f32 whole on host>}
  plan.state scalar @result.loss bytes 4
  plan.program step @step {
    %h0 = plan.use @p0
    %h1 = plan.use @p1
    %h2 = plan.use @p2
    %r = plan.use @result.loss
    %x = plan.buffer activation "x" bytes 256
    %w1 = plan.buffer gathered "b1.gathered" bytes 256
    %w2 = plan.buffer gathered "b2.gathered" bytes 256
    %w0 = plan.buffer gathered "b0.gathered" bytes 256
    %d0 = plan.buffer fetched "p0.fetched" bytes 128
    %d1 = plan.buffer fetched "p1.fetched" bytes 256
    // CHECK: plan.copy to_device %[[H1:.*]][0, 256] -> %[[W1:.*]][0, 256]
    plan.copy to_device %h1[0, 256] -> %w1[0, 256]
    plan.copy compute %w1[0, 64] -> %x[0, 64]
    // CHECK: plan.copy to_device %[[H0:.*]][0, 256] -> %[[W0:.*]][0, 256]
    plan.copy to_device %h0[0, 256] -> %w0[0, 256]
    plan.copy compute %w0[0, 64] -> %x[0, 64]
    // A slice of the gathered bucket.
    // CHECK-NOT: to_device %[[H0]]
    // CHECK: plan.fill compute -> %[[W0]][128, 128] : 1
    // CHECK: plan.copy to_host %[[W0]][128, 128] -> %[[H0]][128, 128]
    plan.copy to_device %h0[128, 128] -> %d0[0, 128]
    plan.fill compute -> %d0[0, 128] : 1
    plan.copy to_host %d0[0, 128] -> %h0[128, 128]
    // Two others were gathered since this one was.
    plan.copy to_device %h2[0, 256] -> %w2[0, 256]
    plan.copy compute %w2[0, 64] -> %x[0, 64]
    // CHECK: plan.copy to_device %[[H1]][0, 256] -> %[[D1:.*]][0, 256]
    // CHECK: plan.fill compute -> %[[D1]]
    plan.copy to_device %h1[0, 256] -> %d1[0, 256]
    plan.fill compute -> %d1[0, 256] : 1
    plan.copy to_host %d1[0, 256] -> %h1[0, 256]
    // CHECK: plan.decision "b0" : "updated where it is gathered"
    // CHECK-NOT: plan.decision "b1"
    plan.return %r[0, 4]
  }
}

// A shard that is fetched to be gathered from all ranks stays for its update if that is wanted, where it is not gathered in place.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-update-gathered{shards=true}))" %S/Inputs/shards.mlir | FileCheck %S/Inputs/shards.mlir --check-prefixes=CHECK,KEPT
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-update-gathered))" %S/Inputs/shards.mlir | FileCheck %S/Inputs/shards.mlir --check-prefixes=CHECK,FETCHED

// A master that is rounded where it is used stays for its update, too.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-update-gathered,plan-hoist-gathers))" %S/Inputs/masters.mlir | FileCheck %S/Inputs/masters.mlir
