// A product moves to the step that needs its result, where what it is made of is smaller.
// RUN: zero-opt --split-input-file --pass-pipeline="builtin.module(plan.program(plan-defer-products{distance=2}))" %s | FileCheck %s
// RUN: zero-opt --split-input-file --pass-pipeline="builtin.module(plan.program(plan-defer-products{distance=4}))" %s | FileCheck %s --check-prefix=NEAR
// RUN: zero-opt --split-input-file --pass-pipeline="builtin.module(plan.program(plan-defer-products{distance=2 grow=true}))" %s | FileCheck %s --check-prefix=GROW
module attributes {zero.world = 1 : i64} {
  // Two tiles of a gradient share %x: each logits' 256 bytes and half of 128 are less than 512.
  // CHECK: plan.fill compute -> %l1[0, 256] : 0
  // CHECK-NEXT: plan.fill compute -> %y[0, 4] : 1
  // CHECK-NEXT: plan.fill compute -> %y[0, 4] : 2
  // CHECK-NEXT: plan.matmul compute %l0[0, 256], %x[0, 128] -> %g0[0, 512]
  // CHECK-NEXT: plan.copy compute %g0
  // CHECK-NEXT: plan.matmul compute %l1[0, 256], %x[0, 128] -> %g1[0, 512]
  // CHECK-NEXT: plan.copy compute %g1
  // CHECK-NEXT: plan.decision "logits" : "made 4 steps of lane compute later" because "what it is made of takes less than its result, which would wait for lookup in 512 bytes"
  // NEAR: plan.fill compute -> %l0
  // NEAR-NEXT: plan.fill compute -> %l1
  // NEAR-NEXT: plan.matmul compute %l1
  // NEAR-NEXT: plan.fill compute -> %y[0, 4] : 1
  // NEAR-NEXT: plan.fill compute -> %y[0, 4] : 2
  // NEAR-NEXT: plan.matmul compute %l0
  plan.program step @step {
    %l0 = plan.buffer activation "l0" bytes 256
    %l1 = plan.buffer activation "l1" bytes 256
    %x = plan.buffer activation "x" bytes 128
    %g0 = plan.buffer gradient "g0" bytes 512
    %g1 = plan.buffer gradient "g1" bytes 512
    %y = plan.buffer activation "y" bytes 4
    plan.fill compute -> %x[0, 128] : 0
    plan.fill compute -> %l0[0, 256] : 0
    plan.matmul compute %l0[0, 256], %x[0, 128] -> %g0[0, 512] : 16 x 8 x 4 of f32 to f32 ld [16, 8, 8] batch 1 [0, 0, 0] {transpose_a} loc("logits")
    plan.fill compute -> %l1[0, 256] : 0
    plan.matmul compute %l1[0, 256], %x[0, 128] -> %g1[0, 512] : 16 x 8 x 4 of f32 to f32 ld [16, 8, 8] batch 1 [0, 0, 0] {transpose_a} loc("logits")
    plan.fill compute -> %y[0, 4] : 1
    plan.fill compute -> %y[0, 4] : 2
    plan.copy compute %g0[0, 512] -> %g0[0, 512] loc("lookup")
    plan.copy compute %g1[0, 512] -> %g1[0, 512] loc("lookup")
    plan.return %y[0, 4]
  }
}

// -----

// Not where operands are larger, where they are gathered parameters, where the result's buffer is there already, nor past a step that
// overwrites an operand.
module attributes {zero.world = 1 : i64} {
  // CHECK: plan.matmul compute {{.*}} -> %large
  // CHECK-NEXT: plan.matmul compute {{.*}} -> %weighted
  // CHECK-NEXT: plan.matmul compute {{.*}} -> %begun
  // CHECK-NEXT: plan.matmul compute {{.*}} -> %near
  // CHECK-NEXT: plan.fill compute -> %z
  // CHECK-NEXT: plan.fill compute -> %y[0, 4] : 1
  // CHECK-NEXT: plan.fill compute -> %y[0, 4] : 2
  // CHECK-NEXT: plan.copy compute %large
  // CHECK-NOT: plan.decision
  plan.program step @step {
    %a = plan.buffer activation "a" bytes 1024
    %x = plan.buffer activation "x" bytes 128
    %z = plan.buffer activation "z" bytes 128
    %w = plan.buffer gathered "w" bytes 256
    %large = plan.buffer gradient "large" bytes 512
    %weighted = plan.buffer gradient "weighted" bytes 512
    %begun = plan.buffer gradient "begun" bytes 1024
    %near = plan.buffer gradient "near" bytes 512
    %y = plan.buffer activation "y" bytes 4
    plan.fill compute -> %a[0, 1024] : 0
    plan.fill compute -> %x[0, 128] : 0
    plan.fill compute -> %z[0, 128] : 0
    plan.fill compute -> %w[0, 256] : 0
    plan.fill compute -> %begun[512, 512] : 0
    plan.matmul compute %a[0, 1024], %a[0, 1024] -> %large[0, 256] : 8 x 8 x 32 of f32 to f32 ld [8, 8, 8] batch 1 [0, 0, 0] {transpose_a}
    plan.matmul compute %w[0, 256], %x[0, 128] -> %weighted[0, 512] : 16 x 8 x 4 of f32 to f32 ld [16, 8, 8] batch 1 [0, 0, 0] {transpose_a}
    plan.matmul compute %x[0, 128], %x[0, 128] -> %begun[0, 256] : 8 x 8 x 4 of f32 to f32 ld [8, 8, 8] batch 1 [0, 0, 0] {transpose_a}
    plan.matmul compute %z[0, 128], %z[0, 128] -> %near[0, 256] : 8 x 8 x 4 of f32 to f32 ld [8, 8, 8] batch 1 [0, 0, 0] {transpose_a}
    plan.fill compute -> %z[0, 128] : 1
    plan.fill compute -> %y[0, 4] : 1
    plan.fill compute -> %y[0, 4] : 2
    plan.copy compute %large[0, 4] -> %y[0, 4]
    plan.copy compute %weighted[0, 4] -> %y[0, 4]
    plan.copy compute %begun[0, 4] -> %y[0, 4]
    plan.copy compute %near[0, 4] -> %y[0, 4]
    plan.return %y[0, 4]
  }
}

// -----

// Nor where more would be live than at the fullest step: at the end, where all gradients wait for the norm.
module attributes {zero.world = 1 : i64} {
  // CHECK-LABEL: plan.program step clips @step
  // CHECK: plan.matmul compute
  // CHECK-NEXT: plan.fill compute -> %y[0, 4] : 1
  // CHECK-NOT: plan.decision
  // GROW-LABEL: plan.program step clips @step
  // GROW: plan.fill compute -> %others
  // GROW-NEXT: plan.matmul compute
  plan.program step clips @step {
    %l = plan.buffer activation "l" bytes 256
    %x = plan.buffer activation "x" bytes 128
    %g = plan.buffer gradient "g" bytes 512
    %others = plan.buffer gradient "others" bytes 1024
    %y = plan.buffer activation "y" bytes 4
    plan.fill compute -> %x[0, 128] : 0
    plan.fill compute -> %l[0, 256] : 0
    plan.matmul compute %l[0, 256], %x[0, 128] -> %g[0, 512] : 16 x 8 x 4 of f32 to f32 ld [16, 8, 8] batch 1 [0, 0, 0] {transpose_a}
    plan.fill compute -> %y[0, 4] : 1
    plan.fill compute -> %others[0, 1024] : 2
    plan.copy compute %g[0, 4] -> %others[0, 4]
    plan.return %y[0, 4]
  }
}
