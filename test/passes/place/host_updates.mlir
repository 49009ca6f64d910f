// What comes down for an update on the host stays there until the end, since the host may be far behind; what goes up from it only until the
// next goes. Such updates stay on their lane where others that wait for the norm go on one of their own, and so do copies to what rests on the device.
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-overlap-updates,plan-mark-lifetimes))" %s | FileCheck %s
module attributes {zero.world = 1 : i64} {
  plan.state optimizer @p bytes 128 {bucket = @b0, tensor = #zero.tensor<master f32 whole on host>}
  plan.state parameter @c bytes 64 {bucket = @b0, tensor = #zero.tensor<compute bf16 whole on device>}
  plan.state scalar @result.loss bytes 8
  // CHECK-LABEL: plan.program
  plan.program step clips @step_clip {
    %p = plan.use @p
    %c = plan.use @c
    %r = plan.use @result.loss
    // CHECK: plan.buffer gradient "g" bytes 128 live 0 to 3
    // CHECK: plan.buffer gradient "g.on_host" on host bytes 128 live 1 to 6
    // CHECK: plan.buffer fetched "up0" on host bytes 32 live 3 to 6
    // CHECK: plan.buffer fetched "up1" on host bytes 32 live 5 to 6
    %g = plan.buffer gradient "g" bytes 128
    %h = plan.buffer gradient "g.on_host" on host bytes 128
    %up0 = plan.buffer fetched "up0" on host bytes 32
    %up1 = plan.buffer fetched "up1" on host bytes 32
    // CHECK: plan.update update_host
    // CHECK: plan.copy to_device
    plan.fill compute -> %g[0, 128] : 0
    plan.copy to_host %g[0, 128] -> %h[0, 128]
    plan.fill compute -> %r[0, 8] : 0
    plan.update update_host %p[0, 64], %h[0, 64] -> %p[0, 64], %up0[0, 32] : @b0 @k of f32
    plan.copy to_device %up0[0, 32] -> %c[0, 32]
    plan.update update_host %p[64, 64], %h[64, 64] -> %p[64, 64], %up1[0, 32] : @b0 @k of f32 from 16
    plan.copy to_device %up1[0, 32] -> %c[32, 32]
    plan.return %r[0, 4], %r[4, 4]
  }
  // Where the host waits for a disk in any case, a gradient's room is free after the lane's next update: the next but one waits for the disk as well.
  plan.state optimizer @far bytes 4096 {bucket = @b1, tensor = #zero.tensor<master f32 whole on disk>}
  plan.program step @step {
    %p = plan.use @far
    %r = plan.use @result.loss
    // CHECK: plan.buffer gradient "h0" on host bytes 4096 live 1 to 5
    // CHECK: plan.buffer gradient "h1" on host bytes 4096 live 4 to 7
    // CHECK: plan.buffer fetched "there" on host bytes 4096 live 2 to 7
    %g = plan.buffer gradient "g" bytes 4096
    %h0 = plan.buffer gradient "h0" on host bytes 4096
    %h1 = plan.buffer gradient "h1" on host bytes 4096
    %there = plan.buffer fetched "there" on host bytes 4096
    plan.fill compute -> %g[0, 4096] : 0
    plan.copy to_host %g[0, 4096] -> %h0[0, 4096]
    plan.copy disk_read %p[0, 4096] -> %there[0, 4096]
    plan.update update_host %there[0, 2048], %h0[0, 2048] -> %there[0, 2048] : @b1 @k of f32
    plan.copy to_host %g[0, 4096] -> %h1[0, 4096]
    plan.update update_host %there[2048, 2048], %h1[2048, 2048] -> %there[2048, 2048] : @b1 @k of f32 from 512
    plan.copy disk_write %there[0, 4096] -> %p[0, 4096]
    plan.fill compute -> %r[0, 8] : 0
    plan.return %r[0, 4], %r[4, 4]
  }
}
