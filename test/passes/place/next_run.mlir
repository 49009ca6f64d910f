// What late updates work on is in use beside the next run until that is sure to be done with: an update, when what it has made is computed
// with; what is copied away, when what comes back has been copied away after it. So %y, which comes
// after the parameter is computed with, shares the bytes of what updates it, and %x does not, which comes before.
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-mark-lifetimes),plan-assign-offsets)" %s | FileCheck %s
module attributes {zero.world = 1 : i64} {
  nn.parameter @w : tensor<1024xf32> {trainable = true}
  zero.bucket @b {elements = 1024 : i64, shard = 1024 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on disk>, #zero.tensor<momentum f32 whole on disk>]}
  plan.state parameter @p bytes 4096 {bucket = @b, tensor = #zero.tensor<master f32 whole on disk>}
  plan.state optimizer @m bytes 4096 {bucket = @b, tensor = #zero.tensor<momentum f32 whole on disk>}
  plan.state scalar @loss bytes 4
  // CHECK: plan.program step @step height 16384 live 16384
  plan.program step @step {
    %p = plan.use @p
    %m = plan.use @m
    %loss = plan.use @loss
    // CHECK: "x" bytes 4096 at 8192
    // CHECK: "y" bytes 12288 at 0
    %x = plan.buffer activation "x" bytes 4096
    %y = plan.buffer activation "y" bytes 12288
    %here = plan.buffer gathered "here" bytes 4096 {bucket = @b}
    %g = plan.buffer gradient "g" bytes 4096
    // CHECK: "g" bytes 4096 at 12288
    // CHECK: "p.fetched" bytes 4096 at 0
    // CHECK: "m.fetched" bytes 4096 at 4096
    %pf = plan.buffer fetched "p.fetched" bytes 4096
    %mf = plan.buffer fetched "m.fetched" bytes 4096
    plan.fill compute -> %x[0, 4096] : 1
    plan.copy disk_read %p[0, 4096] -> %here[0, 4096]
    plan.copy compute %here[0, 4096] -> %g[0, 4096]
    plan.fill compute -> %y[0, 12288] : 1
    plan.copy compute %y[0, 4] -> %loss[0, 4]
    plan.copy update_read %p[0, 4096] -> %pf[0, 4096]
    plan.copy update_read %m[0, 4096] -> %mf[0, 4096]
    plan.update update %pf[0, 4096], %g[0, 4096], %mf[0, 4096] -> %pf[0, 4096], %mf[0, 4096] : @b @k of f32
    plan.copy update_write %mf[0, 4096] -> %m[0, 4096]
    plan.copy update_write %pf[0, 4096] -> %p[0, 4096]
    plan.return %loss[0, 4]
  }
}
