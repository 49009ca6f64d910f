// A few steps with much work let a large buffer leave that waits while memory is full; few with little work, or a small buffer, do not.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-offload-activations{tier=disk work=1000}))" %s | FileCheck %s --implicit-check-not=.away
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-offload-activations{tier=disk work=100000}))" %s | FileCheck %s --check-prefix=LITTLE --implicit-check-not=.away
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-offload-activations{tier=disk}))" %s | FileCheck %s --check-prefix=LITTLE --implicit-check-not=.away
module attributes {zero.world = 1 : i64} {
  plan.state scalar @result.loss bytes 4
  // LITTLE: plan.program
  plan.program step @step {
    %r = plan.use @result.loss
    %a = plan.buffer activation "a" bytes 4194304
    %c = plan.buffer activation "c" bytes 4194304
    // CHECK: %[[WAITS:.*]] = plan.buffer activation "waits" bytes 4194304
    // CHECK-NEXT: %[[AWAY:.*]] = plan.buffer activation "waits.away" on disk bytes 4194304
    // CHECK-NEXT: %[[BACK:.*]] = plan.buffer activation "waits.back" bytes 4194304
    %waits = plan.buffer activation "waits" bytes 4194304
    %small = plan.buffer activation "small" bytes 8192
    %early = plan.buffer activation "early" bytes 4194304
    // Waits before memory is full.
    plan.fill compute -> %early[0, 4194304] : 1
    plan.fill compute -> %a[0, 4194304] : 1
    plan.matmul compute %a[0, 4194304], %a[0, 4194304] -> %a[0, 4194304] : 1024 x 1024 x 4096 of f32 to f32 ld [1024, 1024, 1024] batch 1 [0, 0, 0]
    plan.copy compute %early[0, 4194304] -> %a[0, 4194304]
    // CHECK: plan.fill compute -> %[[WAITS]][0, 4194304] : 1
    // CHECK-NEXT: plan.copy disk_write %[[WAITS]][0, 4194304] -> %[[AWAY]][0, 4194304]
    plan.fill compute -> %waits[0, 4194304] : 1
    plan.fill compute -> %small[0, 8192] : 1
    plan.matmul compute %a[0, 4194304], %a[0, 4194304] -> %c[0, 4194304] : 1024 x 1024 x 4096 of f32 to f32 ld [1024, 1024, 1024] batch 1 [0, 0, 0]
    // CHECK: plan.copy disk_read %[[AWAY]][0, 4194304] -> %[[BACK]][0, 4194304]
    // CHECK-NEXT: plan.copy compute %[[BACK]][0, 4194304] ->
    plan.copy compute %waits[0, 4194304] -> %a[0, 4194304]
    plan.copy compute %small[0, 8192] -> %c[0, 8192]
    plan.copy compute %c[0, 4] -> %r[0, 4]
    plan.return %r[0, 4]
  }
}
