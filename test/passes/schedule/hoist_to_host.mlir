// What the host updates comes from disk to its memory in the same way, and takes no place from what comes to the device.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-hoist-fetches{ahead=1}))" %s | FileCheck %s
// CHECK: plan.use @far
module attributes {zero.world = 1 : i64} {
  plan.state optimizer @far bytes 12288 {bucket = @b0, tensor = #zero.tensor<momentum f32 whole on disk>}
  plan.state optimizer @m bytes 256 {bucket = @b1, tensor = #zero.tensor<momentum f32 whole on host>}
  plan.state scalar @result.loss bytes 4
  plan.program step @step {
    %far = plan.use @far
    %m = plan.use @m
    %r = plan.use @result.loss
    %x = plan.buffer activation "x" bytes 256
    %h0 = plan.buffer fetched "h0" on host bytes 4096
    %h1 = plan.buffer fetched "h1" on host bytes 4096
    %h2 = plan.buffer fetched "h2" on host bytes 4096
    %d = plan.buffer fetched "d" bytes 256
    // CHECK: plan.copy disk_read %{{.*}}[0, 4096] -> %h0[0, 4096]
    // CHECK-NEXT: plan.copy disk_read %{{.*}}[4096, 4096] -> %h1[0, 4096]
    // CHECK-NEXT: plan.copy to_device %{{.*}}[0, 256] -> %d[0, 256]
    // CHECK-NEXT: plan.fill compute -> %x
    // CHECK-NEXT: plan.fill update_host -> %h0
    // CHECK-NEXT: plan.copy disk_write %h0
    // CHECK-NEXT: plan.copy disk_read %{{.*}}[8192, 4096] -> %h2[0, 4096]
    // CHECK-NEXT: plan.fill update_host -> %h1
    // CHECK: plan.decision "b1" : "fetched {{.*}} is on the device from the start on"
    // CHECK: plan.decision "b0" : "fetched {{.*}} is in the host's memory from the start on"
    plan.fill compute -> %x[0, 256] : 0
    plan.copy disk_read %far[0, 4096] -> %h0[0, 4096]
    plan.fill update_host -> %h0[0, 4] : 1
    plan.copy disk_write %h0[0, 4096] -> %far[0, 4096]
    plan.copy disk_read %far[4096, 4096] -> %h1[0, 4096]
    plan.fill update_host -> %h1[0, 4] : 1
    plan.copy disk_write %h1[0, 4096] -> %far[4096, 4096]
    plan.copy disk_read %far[8192, 4096] -> %h2[0, 4096]
    plan.fill update_host -> %h2[0, 4] : 1
    plan.copy disk_write %h2[0, 4096] -> %far[8192, 4096]
    plan.copy to_device %m[0, 256] -> %d[0, 256]
    plan.fill compute -> %d[0, 4] : 1
    plan.copy to_host %d[0, 256] -> %m[0, 256]
    plan.return %r[0, 4]
  }
}
