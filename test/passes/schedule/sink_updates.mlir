// The update of a bucket stands after the reduction of the next one; an all-gather of the gradient travels on at once.
// RUN: zero-opt --split-input-file --pass-pipeline="builtin.module(plan.program(plan-sink-updates))" %s | FileCheck %s
// RUN: zero-opt --split-input-file --pass-pipeline="builtin.module(plan.program(plan-sink-updates{delay=2}))" %s | FileCheck %s --check-prefix=TWO
module attributes {zero.world = 2 : i64} {
  plan.state parameter @p0 bytes 512
  plan.state parameter @p1 bytes 512
  // CHECK: plan.collective reduce %g0[0, 512] -> %g0[0 + rank * 256, 256], %s0[0, 512] : reduce_scatter
  // CHECK-NEXT: plan.collective reduce {{.*}} : all_gather
  // CHECK-NEXT: plan.fill compute -> %x[0, 4] : 0
  // CHECK-NEXT: plan.fill compute -> %g1[0, 512] : 0
  // CHECK-NEXT: plan.collective reduce %g1[0, 512] -> %g1[0 + rank * 256, 256], %s1[0, 512] : reduce_scatter
  // CHECK-NEXT: plan.copy compute %g0[0, 512] -> %p0
  // CHECK-NEXT: plan.collective gather %p0
  // The last one has nothing to hide behind.
  // CHECK-NEXT: plan.copy compute %g1[0, 512] -> %p1
  // CHECK-NEXT: plan.decision "b0.reduce_scatter" : "followed later by 2 steps" because "it travels while the gradient of b1.reduce_scatter is computed"
  plan.program step @step {
    %p0 = plan.use @p0
    %p1 = plan.use @p1
    %g0 = plan.buffer gradient "g0" bytes 512
    %g1 = plan.buffer gradient "g1" bytes 512
    %s0 = plan.buffer staging "s0" bytes 512
    %s1 = plan.buffer staging "s1" bytes 512
    %x = plan.buffer activation "x" bytes 4
    plan.fill compute -> %g0[0, 512] : 0
    plan.collective reduce %g0[0, 512] -> %g0[0 + rank * 256, 256], %s0[0, 512] : reduce_scatter 64 of f32 by 64 loc("b0.reduce_scatter")
    plan.collective reduce %g0[0 + rank * 256, 256] -> %g0[0, 512] : all_gather 64 of f32
    plan.copy compute %g0[0, 512] -> %p0[0, 512]
    plan.collective gather %p0[0 + rank * 256, 256] -> %p0[0, 512] : all_gather 64 of f32
    plan.fill compute -> %x[0, 4] : 0
    plan.fill compute -> %g1[0, 512] : 0
    plan.collective reduce %g1[0, 512] -> %g1[0 + rank * 256, 256], %s1[0, 512] : reduce_scatter 64 of f32 by 64 loc("b1.reduce_scatter")
    plan.copy compute %g1[0, 512] -> %p1[0, 512]
    plan.return %x[0, 4]
  }
}

// -----

// Other bytes of the same buffer are no reason to move; a step that a later reduction needs stays before it.
// CHECK-LABEL: plan.program step @apart
// CHECK-NOT: plan.decision
// CHECK-LABEL: plan.program step @needed
// CHECK-NOT: plan.decision
// TWO-LABEL: plan.program step @needed
// TWO: plan.copy compute %g0[0, 512] -> %g1[0, 512]
// TWO-NEXT: plan.collective reduce %g1
// TWO-NOT: plan.decision
module attributes {zero.world = 2 : i64} {
  plan.program step @apart {
    %g0 = plan.buffer gradient "g0" bytes 1024
    %g1 = plan.buffer gradient "g1" bytes 512
    %g2 = plan.buffer gradient "g2" bytes 512
    %s = plan.buffer staging "s" bytes 512
    plan.collective reduce %g0[0, 512] -> %g0[0 + rank * 256, 256], %s[0, 512] : reduce_scatter 64 of f32 by 64 loc("b0.reduce_scatter")
    plan.fill compute -> %g0[512, 512] : 0
    plan.collective reduce %g2[0, 512] -> %g2[0 + rank * 256, 256], %s[0, 512] : reduce_scatter 64 of f32 by 64 loc("b2.reduce_scatter")
    plan.return
  }
  plan.program step @needed {
    %g0 = plan.buffer gradient "g0" bytes 512
    %g1 = plan.buffer gradient "g1" bytes 512
    %g2 = plan.buffer gradient "g2" bytes 512
    %s0 = plan.buffer staging "s0" bytes 512
    %s1 = plan.buffer staging "s1" bytes 512
    %s2 = plan.buffer staging "s2" bytes 512
    plan.collective reduce %g0[0, 512] -> %g0[0 + rank * 256, 256], %s0[0, 512] : reduce_scatter 64 of f32 by 64 loc("b0.reduce_scatter")
    plan.copy compute %g0[0, 512] -> %g1[0, 512]
    plan.collective reduce %g1[0, 512] -> %g1[0 + rank * 256, 256], %s1[0, 512] : reduce_scatter 64 of f32 by 64 loc("b1.reduce_scatter")
    plan.collective reduce %g2[0, 512] -> %g2[0 + rank * 256, 256], %s2[0, 512] : reduce_scatter 64 of f32 by 64 loc("b2.reduce_scatter")
    plan.return
  }
}

// -----

// What would travel beyond the last goes after that, in the order in which the sums arrive.
// CHECK-LABEL: plan.program step @last
// TWO-LABEL: plan.program step @last
// TWO: plan.collective reduce %g2
// TWO-NEXT: plan.copy compute %g0[0, 512] -> %p[0, 512]
// TWO-NEXT: plan.copy compute %g1[0, 512] -> %p[512, 512]
// TWO-NEXT: plan.copy compute %g2[0, 512] -> %p[1024, 512]
module attributes {zero.world = 2 : i64} {
  plan.state parameter @p bytes 1536
  plan.program step @last {
    %p = plan.use @p
    %g0 = plan.buffer gradient "g0" bytes 512
    %g1 = plan.buffer gradient "g1" bytes 512
    %g2 = plan.buffer gradient "g2" bytes 512
    %s0 = plan.buffer staging "s0" bytes 512
    %s1 = plan.buffer staging "s1" bytes 512
    %s2 = plan.buffer staging "s2" bytes 512
    plan.collective reduce %g0[0, 512] -> %g0[0 + rank * 256, 256], %s0[0, 512] : reduce_scatter 64 of f32 by 64 loc("b0.reduce_scatter")
    plan.copy compute %g0[0, 512] -> %p[0, 512]
    plan.collective reduce %g1[0, 512] -> %g1[0 + rank * 256, 256], %s1[0, 512] : reduce_scatter 64 of f32 by 64 loc("b1.reduce_scatter")
    plan.copy compute %g1[0, 512] -> %p[512, 512]
    plan.collective reduce %g2[0, 512] -> %g2[0 + rank * 256, 256], %s2[0, 512] : reduce_scatter 64 of f32 by 64 loc("b2.reduce_scatter")
    plan.copy compute %g2[0, 512] -> %p[1024, 512]
    plan.return
  }
}
