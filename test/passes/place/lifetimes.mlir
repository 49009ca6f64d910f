// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-mark-lifetimes))" %s | FileCheck %s
module attributes {zero.world = 2 : i64} {
  // CHECK-LABEL: plan.program
  plan.program step @step {
    // Both inclusive.
    // CHECK: plan.buffer activation "x" bytes 64 live 0 to 6
    // What is being sent stays until the result is needed (step 4) …
    // CHECK: plan.buffer gradient "g0" bytes 512 live 1 to 4
    // CHECK: plan.buffer staging "s0" bytes 512 live 2 to 4
    // … or until the lane has its next step.
    // CHECK: plan.buffer staging "s1" bytes 512 live 4 to 5
    // CHECK: plan.buffer staging "s2" bytes 512 live 5 to 6
    // CHECK-NOT: "unused"
    %x = plan.buffer activation "x" bytes 64
    %g0 = plan.buffer gradient "g0" bytes 512
    %s0 = plan.buffer staging "s0" bytes 512
    %s1 = plan.buffer staging "s1" bytes 512
    %s2 = plan.buffer staging "s2" bytes 512
    %unused = plan.buffer activation "unused" bytes 64
    plan.fill compute -> %x[0, 64] : 0
    plan.fill compute -> %g0[0, 512] : 0
    plan.collective reduce %g0[0, 512] -> %g0[0 + rank * 256, 256], %s0[0, 512] : reduce_scatter 64 of f32 by 64
    plan.fill compute -> %x[0, 64] : 1
    plan.collective reduce %x[0, 4] -> %x[0, 4], %s1[0, 8] : all_reduce 1 of f32 by 1
    plan.collective reduce %x[0, 4] -> %x[0, 4], %s2[0, 8] : all_reduce 1 of f32 by 1
    plan.fill compute -> %x[0, 64] : 2
    plan.return %x[0, 4]
  }
}
