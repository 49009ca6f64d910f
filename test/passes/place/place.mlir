// Offsets, waits and the check that both are right.
// RUN: zero-opt --zero-place-pipeline %s | FileCheck %s
module attributes {zero.world = 2 : i64} {
  // CHECK: plan.state parameter @p bytes 100 at 0
  plan.state parameter @p bytes 100
  // CHECK: plan.state scalar @loss bytes 4 at 128
  plan.state scalar @loss bytes 4
  // CHECK: plan.program step @step height 384 live 300
  // After itself: the first gather reads what the fourth step of compute writes, to bytes that the fifth writes. All else follows from that and
  // from the order of lanes.
  // CHECK-NEXT: plan.entry after @step (0: compute 5)
  plan.program step @step {
    %p = plan.use @p
    %loss = plan.use @loss
    // CHECK-DAG: "w0" bytes 200 at 0 live 0 to 1
    // CHECK-DAG: "x" bytes 100 at 256 live 1 to 3
    // CHECK-DAG: "w1" bytes 200 at 0 live 2 to 3
    %w0 = plan.buffer gathered "w0" bytes 200
    %x = plan.buffer activation "x" bytes 100
    %w1 = plan.buffer gathered "w1" bytes 200
    %y = plan.buffer activation "y" bytes 100
    // CHECK: plan.collective gather %p[0, 100] -> %w0
    plan.collective gather %p[0, 100] -> %w0[0, 200] : all_gather 25 of f32
    // CHECK: plan.copy compute waits(gather 1) %w0
    plan.copy compute %w0[0, 100] -> %x[0, 100]
    // %w1 has the bytes of %w0, which are read until here.
    // CHECK: plan.collective gather waits(compute 1) %p[0, 100] -> %w1
    plan.collective gather %p[0, 100] -> %w1[0, 200] : all_gather 25 of f32
    // CHECK: plan.copy compute waits(gather 2) %w1
    plan.copy compute %w1[0, 100] -> %x[0, 100]
    // Known already: lane order.
    // CHECK: plan.fill compute -> %loss
    plan.fill compute -> %loss[0, 4] : 0
    // CHECK: plan.fill compute -> %p
    plan.fill compute -> %p[0, 100] : 0
    // CHECK: plan.fill compute -> %y
    plan.fill compute -> %y[0, 100] : 0
    plan.return %loss[0, 4]
  }
}
