// What is left of the device's memory lets lanes run apart: with room for one fetch the second waits until the first has been read, with
// room for two it does not. What persists counts.
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-mark-lifetimes),plan-assign-offsets,plan-insert-waits)" %s | FileCheck %s --check-prefixes=CHECK,TIGHT
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-mark-lifetimes),plan-assign-offsets{device-bytes=20480},plan-insert-waits)" %s | FileCheck %s --check-prefixes=CHECK,TIGHT
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-mark-lifetimes),plan-assign-offsets{device-bytes=20544},plan-insert-waits)" %s | FileCheck %s --check-prefixes=CHECK,ROOM
module attributes {zero.world = 1 : i64} {
  nn.parameter @w : tensor<2048xf32> {trainable = true}
  zero.bucket @b {elements = 2048 : i64, shard = 2048 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<momentum f32 whole on disk>]}
  plan.state optimizer @m bytes 8192 {bucket = @b, tensor = #zero.tensor<momentum f32 whole on disk>}
  plan.state parameter @p bytes 8192
  plan.state scalar @loss bytes 4
  // TIGHT: plan.program step @step height 8192 live 8192
  // ROOM: plan.program step @step height 12288 live 8192
  plan.program step @step {
    %m = plan.use @m
    %p = plan.use @p
    %loss = plan.use @loss
    %x = plan.buffer activation "x" bytes 4096
    %f0 = plan.buffer fetched "f0" bytes 4096
    %f1 = plan.buffer fetched "f1" bytes 4096
    // CHECK: plan.fill compute -> %x
    plan.fill compute -> %x[0, 4096] : 1
    plan.copy disk_read %m[0, 4096] -> %f0[0, 4096]
    // CHECK: plan.copy compute waits(disk_read 1) %f0
    plan.copy compute %f0[0, 4096] -> %p[0, 4096]
    // TIGHT: plan.copy disk_read waits(compute 2) %m[4096, 4096]
    // ROOM: plan.copy disk_read %m[4096, 4096]
    plan.copy disk_read %m[4096, 4096] -> %f1[0, 4096]
    plan.copy compute %f1[0, 4096] -> %p[4096, 4096]
    plan.copy compute %x[0, 4] -> %loss[0, 4]
    plan.return %loss[0, 4]
  }
}
