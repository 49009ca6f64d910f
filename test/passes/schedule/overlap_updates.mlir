// Updates that wait for the norm and for another tier go on lanes of their own, and read a copy of the hyper-parameters.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-overlap-updates))" %s | FileCheck %s

module attributes {zero.world = 1 : i64} {
  plan.state parameter @p0 bytes 128
  plan.state optimizer @m0 bytes 128 {bucket = @b0, tensor = #zero.tensor<momentum f32 whole on host>}
  plan.state input @hyper bytes 64 {input = "hyper", role = "hyper", type = tensor<16xf32>}
  plan.state scalar @result.loss bytes 8
  // CHECK-LABEL: @clipped
  plan.program step clips @clipped {
    %p0 = plan.use @p0
    %h0 = plan.use @m0
    %hyper = plan.use @hyper
    %r = plan.use @result.loss
    %g0 = plan.buffer gradient "g0" bytes 128
    %d0 = plan.buffer fetched "d0" bytes 64
    %d1 = plan.buffer fetched "d1" bytes 128
    // CHECK: %[[KEPT:.*]] = plan.buffer scalar "hyper.kept" bytes 64
    // CHECK: plan.copy disk_read
    // CHECK-NEXT: plan.fill compute
    // CHECK-NEXT: plan.copy compute %{{.*}}[0, 64] -> %[[KEPT]][0, 64]
    // CHECK-NEXT: plan.update update {{.*}}, %[[KEPT]][0, 64], %{{.*}}[4, 4] ->
    // CHECK-NEXT: plan.copy update_write
    // CHECK-NEXT: plan.copy update_read
    // What the update does not write of a block belongs to it.
    // CHECK-NEXT: plan.fill update
    // CHECK-NEXT: plan.update update {{.*}}, %[[KEPT]][0, 64], %{{.*}}[4, 4] ->
    // CHECK-NEXT: plan.copy update_write
    // CHECK: plan.decision "updates" : "2 updates on a lane of their own"
    plan.copy disk_read %h0[0, 64] -> %d0[0, 64]
    plan.fill compute -> %r[0, 8] : 0
    plan.update compute %p0[0, 64], %g0[0, 64], %d0[0, 64], %hyper[0, 64], %r[4, 4] -> %p0[0, 64], %d0[0, 64] : @b0 @k of f32 whole
    plan.copy disk_write %d0[0, 64] -> %h0[0, 64]
    plan.copy disk_read %h0[64, 64] -> %d1[0, 64]
    plan.fill compute -> %d1[64, 64] : 0
    plan.update compute %p0[64, 64], %g0[64, 64], %d1[0, 64], %hyper[0, 64], %r[4, 4] -> %p0[64, 64], %d1[0, 64] : @b0 @k of f32 whole from 16
    plan.copy disk_write %d1[0, 64] -> %h0[64, 64]
    plan.return %r[0, 4], %r[4, 4]
  }
  // Nothing comes from another tier: the kernels of compute are as fast.
  // CHECK-LABEL: @resident
  // CHECK-NOT: lane of their own
  plan.program step clips @resident {
    %p0 = plan.use @p0
    %hyper = plan.use @hyper
    %r = plan.use @result.loss
    %g0 = plan.buffer gradient "g0" bytes 128
    plan.fill compute -> %r[0, 8] : 0
    // CHECK: plan.update compute
    plan.update compute %p0[0, 128], %g0[0, 128], %hyper[0, 64], %r[4, 4] -> %p0[0, 128] : @b0 @k of f32 whole
    plan.return %r[0, 4], %r[4, 4]
  }
}
