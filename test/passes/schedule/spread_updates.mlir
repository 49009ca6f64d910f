// Updates in slices move apart, evenly over what compute does until the next bucket's update.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-spread-updates))" %s | FileCheck %s

module attributes {zero.world = 1 : i64} {
  plan.state parameter @p0 bytes 128
  plan.state parameter @p1 bytes 128
  plan.state optimizer @m0 bytes 128 {bucket = @b0, tensor = #zero.tensor<momentum f32 whole on host>}
  plan.state scalar @result.loss bytes 4
  // CHECK-LABEL: @apart
  plan.program step @apart {
    %p0 = plan.use @p0
    %p1 = plan.use @p1
    %h0 = plan.use @m0
    %r = plan.use @result.loss
    %g0 = plan.buffer gradient "g0" bytes 128
    %x = plan.buffer activation "x" bytes 64
    %large = plan.buffer activation "large" bytes 1024
    %d0 = plan.buffer fetched "d0" bytes 64
    %d1 = plan.buffer fetched "d1" bytes 64
    plan.fill compute -> %large[0, 1024] : 0
    // CHECK: plan.copy to_device %{{.*}}[0, 64] -> %d0
    // CHECK-NEXT: plan.update compute
    // CHECK-NEXT: plan.copy to_host %d0
    // CHECK-NEXT: plan.fill compute -> %x[0, 64] : 1
    // CHECK-NEXT: plan.fill compute -> %x[0, 64] : 2
    // CHECK-NEXT: plan.copy to_device %{{.*}}[64, 64] -> %d1
    // CHECK-NEXT: plan.update compute {{.*}} from 16
    // CHECK-NEXT: plan.copy to_host %d1
    // CHECK-NEXT: plan.fill compute -> %x[0, 64] : 3
    // CHECK-NEXT: plan.fill compute -> %x[0, 64] : 4
    // CHECK-NEXT: plan.update compute {{.*}} @b1
    // CHECK: plan.decision "b0" : "updated in 2 slices while what follows is computed"
    plan.copy to_device %h0[0, 64] -> %d0[0, 64]
    plan.update compute %p0[0, 64], %g0[0, 64], %d0[0, 64] -> %p0[0, 64], %d0[0, 64] : @b0 @k of f32 whole
    plan.copy to_host %d0[0, 64] -> %h0[0, 64]
    plan.copy to_device %h0[64, 64] -> %d1[0, 64]
    plan.update compute %p0[64, 64], %g0[64, 64], %d1[0, 64] -> %p0[64, 64], %d1[0, 64] : @b0 @k of f32 whole from 16
    plan.copy to_host %d1[0, 64] -> %h0[64, 64]
    plan.fill compute -> %x[0, 64] : 1
    plan.fill compute -> %x[0, 64] : 2
    plan.fill compute -> %x[0, 64] : 3
    plan.fill compute -> %x[0, 64] : 4
    plan.update compute %p1[0, 128], %g0[0, 128] -> %p1[0, 128] : @b1 @k of f32 whole
    plan.fill compute -> %x[0, 64] : 5
    plan.return %r[0, 4]
  }
  // One after the other they need less than at any other step: apart they would need the most.
  // CHECK-LABEL: @fullest
  plan.program step @fullest {
    %p0 = plan.use @p0
    %h0 = plan.use @m0
    %r = plan.use @result.loss
    %g0 = plan.buffer gradient "g0" bytes 128
    %x = plan.buffer activation "x" bytes 192
    %d0 = plan.buffer fetched "d0" bytes 64
    %d1 = plan.buffer fetched "d1" bytes 64
    // CHECK: plan.copy to_host %d0
    // CHECK-NEXT: plan.copy to_device
    // CHECK-NEXT: plan.update compute {{.*}} from 16
    // CHECK-NOT: plan.decision
    plan.copy to_device %h0[0, 64] -> %d0[0, 64]
    plan.update compute %p0[0, 64], %g0[0, 64], %d0[0, 64] -> %p0[0, 64], %d0[0, 64] : @b0 @k of f32 whole
    plan.copy to_host %d0[0, 64] -> %h0[0, 64]
    plan.copy to_device %h0[64, 64] -> %d1[0, 64]
    plan.update compute %p0[64, 64], %g0[64, 64], %d1[0, 64] -> %p0[64, 64], %d1[0, 64] : @b0 @k of f32 whole from 16
    plan.copy to_host %d1[0, 64] -> %h0[64, 64]
    plan.fill compute -> %x[0, 64] : 1
    plan.fill compute -> %x[64, 64] : 2
    plan.return %r[0, 4]
  }
  // What all of them write leaves among the copies of the last: none goes after that.
  // CHECK-LABEL: @leaves
  plan.program step @leaves {
    %p0 = plan.use @p0
    %h0 = plan.use @m0
    %r = plan.use @result.loss
    %g0 = plan.buffer gradient "g0" bytes 128
    %at = plan.buffer activation "at" bytes 16
    %rows = plan.buffer gradient "rows" bytes 64
    %away = plan.buffer gradient "away" on disk bytes 64
    %x = plan.buffer activation "x" bytes 64
    %large = plan.buffer activation "large" bytes 1024
    %d0 = plan.buffer fetched "d0" bytes 64
    %d1 = plan.buffer fetched "d1" bytes 64
    plan.fill compute -> %large[0, 1024] : 0
    // CHECK: plan.copy to_host %d0
    // CHECK-NEXT: plan.copy to_device
    // CHECK-NEXT: plan.update compute {{.*}} from 16
    // CHECK-NEXT: plan.copy disk_write %rows
    // CHECK-NOT: plan.decision
    plan.copy to_device %h0[0, 64] -> %d0[0, 64]
    plan.update compute %p0[0, 64], %g0[0, 64], %d0[0, 64], %at[0, 16], %rows[0, 64] -> %p0[0, 64], %d0[0, 64], %rows[0, 64], %g0[0, 64] : @b0 @k of f32 whole apart <8 x 16 from 0 by i64>
    plan.copy to_host %d0[0, 64] -> %h0[0, 64]
    plan.copy to_device %h0[64, 64] -> %d1[0, 64]
    plan.update compute %p0[64, 64], %g0[64, 64], %d1[0, 64], %at[0, 16], %rows[0, 64] -> %p0[64, 64], %d1[0, 64], %rows[0, 64], %g0[64, 64] : @b0 @k of f32 whole from 16 apart <8 x 16 from 64 by i64>
    plan.copy disk_write %rows[0, 64] -> %away[0, 64]
    plan.copy to_host %d1[0, 64] -> %h0[64, 64]
    plan.fill compute -> %x[0, 64] : 1
    plan.fill compute -> %x[0, 64] : 2
    plan.return %r[0, 4]
  }
  // What follows needs the gradient's bytes: nothing moves.
  // CHECK-LABEL: @needed
  plan.program step @needed {
    %p0 = plan.use @p0
    %h0 = plan.use @m0
    %r = plan.use @result.loss
    %g0 = plan.buffer gradient "g0" bytes 128
    %large = plan.buffer activation "large" bytes 1024
    %d0 = plan.buffer fetched "d0" bytes 64
    %d1 = plan.buffer fetched "d1" bytes 64
    // CHECK: plan.copy to_host %d0
    // CHECK-NEXT: plan.copy to_device
    // CHECK-NEXT: plan.update compute {{.*}} from 16
    // CHECK-NOT: plan.decision
    plan.fill compute -> %large[0, 1024] : 0
    plan.copy to_device %h0[0, 64] -> %d0[0, 64]
    plan.update compute %p0[0, 64], %g0[0, 64], %d0[0, 64] -> %p0[0, 64], %d0[0, 64] : @b0 @k of f32 whole
    plan.copy to_host %d0[0, 64] -> %h0[0, 64]
    plan.copy to_device %h0[64, 64] -> %d1[0, 64]
    plan.update compute %p0[64, 64], %g0[64, 64], %d1[0, 64] -> %p0[64, 64], %d1[0, 64] : @b0 @k of f32 whole from 16
    plan.copy to_host %d1[0, 64] -> %h0[64, 64]
    plan.fill compute -> %g0[64, 64] : 1
    plan.fill compute -> %g0[0, 64] : 2
    plan.return %r[0, 4]
  }
}
