// The last copies to disk of updates beside the next forward go after all updates, as many as the gradients before them leave room for.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-defer-writes{most-bytes=9000}))" %s | FileCheck %s --check-prefixes=CHECK,MORE
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-defer-writes{most-bytes=5000}))" %s | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-defer-writes{most-bytes=4000}))" %s | FileCheck %s --check-prefix=NONE

module attributes {zero.world = 1 : i64} {
  plan.state parameter @p bytes 12288
  plan.state optimizer @m0 bytes 4096 {bucket = @b0, tensor = #zero.tensor<momentum f32 whole on disk>}
  plan.state optimizer @m1 bytes 4096 {bucket = @b1, tensor = #zero.tensor<momentum f32 whole on disk>}
  plan.state optimizer @m2 bytes 4096 {bucket = @b2, tensor = #zero.tensor<momentum f32 whole on disk>}
  plan.state optimizer @h bytes 4096 {bucket = @b2, tensor = #zero.tensor<master f32 whole on host>}
  plan.state scalar @r bytes 4
  // CHECK-LABEL: @step
  // The copy to host memory takes no disk's time.
  // NONE-NOT: plan.copy update %
  // CHECK: plan.copy update_write %f0[0, 4096] -> %m0[0, 4096]
  // CHECK: plan.update update {{.*}} @b1
  // ONE-NEXT: plan.copy update_write %f1[0, 4096] -> %m1[0, 4096]
  // CHECK: plan.update update {{.*}} @b2
  // CHECK-NEXT: plan.copy update_write %fh[0, 4096] -> %h[0, 4096]
  // MORE-NEXT: plan.copy update %f1[0, 4096] -> %m1[0, 4096]
  // CHECK-NEXT: plan.copy update %f2[0, 4096] -> %m2[0, 4096]
  // MORE: plan.decision "write-backs" : "8192 bytes in 2 steps after all updates"
  // ONE: plan.decision "write-backs" : "4096 bytes in 1 step after all updates"
  plan.program step clips @step {
    %p = plan.use @p
    %m0 = plan.use @m0
    %m1 = plan.use @m1
    %m2 = plan.use @m2
    %h = plan.use @h
    %r = plan.use @r
    %g0 = plan.buffer gradient "g0" bytes 8192
    %g1 = plan.buffer gradient "g1" bytes 8192
    %g2 = plan.buffer gradient "g2" bytes 4096
    %f0 = plan.buffer fetched "f0" bytes 4096
    %f1 = plan.buffer fetched "f1" bytes 4096
    %f2 = plan.buffer fetched "f2" bytes 4096
    %fh = plan.buffer fetched "fh" bytes 4096
    plan.fill compute -> %r[0, 4] : 0
    plan.fill compute -> %g0[0, 8192] : 0
    plan.fill compute -> %g1[0, 8192] : 0
    plan.fill compute -> %g2[0, 4096] : 0
    plan.copy update_read %m0[0, 4096] -> %f0[0, 4096]
    plan.update update %p[0, 4096], %g0[0, 4096], %f0[0, 4096] -> %p[0, 4096], %f0[0, 4096] : @b0 @k of f32 whole
    plan.copy update_write %f0[0, 4096] -> %m0[0, 4096]
    plan.copy update_read %m1[0, 4096] -> %f1[0, 4096]
    plan.update update %p[4096, 4096], %g1[0, 4096], %f1[0, 4096] -> %p[4096, 4096], %f1[0, 4096] : @b1 @k of f32 whole
    plan.copy update_write %f1[0, 4096] -> %m1[0, 4096]
    plan.copy update_read %m2[0, 4096] -> %f2[0, 4096]
    plan.copy update_read %h[0, 4096] -> %fh[0, 4096]
    plan.update update %p[8192, 4096], %g2[0, 4096], %f2[0, 4096], %fh[0, 4096] -> %p[8192, 4096], %f2[0, 4096], %fh[0, 4096] : @b2 @k of f32 whole
    plan.copy update_write %f2[0, 4096] -> %m2[0, 4096]
    plan.copy update_write %fh[0, 4096] -> %h[0, 4096]
    plan.return %r[0, 4]
  }
  // What forward fetches is written at once, and so is what is read again.
  // CHECK-LABEL: @fetched
  // CHECK: plan.copy update_write %f0[0, 4096] -> %m0[0, 4096]
  // CHECK: plan.copy update_write %f1[0, 4096] -> %m1[0, 4096]
  // CHECK: plan.copy update %x[0, 4096] -> %m1[0, 4096]
  plan.program step clips @fetched {
    %p = plan.use @p
    %m0 = plan.use @m0
    %m1 = plan.use @m1
    %m2 = plan.use @m2
    %r = plan.use @r
    %x = plan.buffer fetched "x" bytes 4096
    %g0 = plan.buffer gradient "g0" bytes 16384
    %f0 = plan.buffer fetched "f0" bytes 4096
    %f1 = plan.buffer fetched "f1" bytes 4096
    plan.copy disk_read %m0[0, 4096] -> %x[0, 4096]
    plan.copy compute %x[0, 4] -> %r[0, 4]
    plan.fill compute -> %g0[0, 16384] : 0
    plan.copy update_read %m0[0, 4096] -> %f0[0, 4096]
    plan.update update %p[0, 4096], %g0[0, 4096], %f0[0, 4096] -> %p[0, 4096], %f0[0, 4096] : @b0 @k of f32 whole
    plan.copy update_write %f0[0, 4096] -> %m0[0, 4096]
    plan.copy update_read %m1[0, 4096] -> %f1[0, 4096]
    plan.update update %p[4096, 4096], %g0[0, 4096], %f1[0, 4096] -> %p[4096, 4096], %f1[0, 4096] : @b1 @k of f32 whole
    plan.copy update_write %f1[0, 4096] -> %m1[0, 4096]
    plan.copy update_read %m1[0, 4096] -> %x[0, 4096]
    plan.copy update_write %x[0, 4096] -> %m1[0, 4096]
    plan.return %r[0, 4]
  }
}
