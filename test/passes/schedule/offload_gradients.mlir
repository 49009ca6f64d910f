// A gradient that waits in host memory for the norm, where the host is to update with it, waits on disk where activations do, and comes back to host memory.
// On the host it waits where it is, and so does in either case what would have to be filled up to whole blocks there: lane compute may not reach it.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-offload-activations{tier=disk distance=3}))" %s | FileCheck %s
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-offload-activations{tier=host distance=3}))" %s | FileCheck %s --check-prefix=STAYS
// STAYS-NOT: away
// CHECK-NOT: "ragged.away"
module attributes {zero.world = 1 : i64} {
  plan.state optimizer @p bytes 4096 {bucket = @b0, tensor = #zero.tensor<master f32 whole on host>}
  plan.state scalar @result.loss bytes 4
  plan.program step clips @step {
    %p = plan.use @p
    %r = plan.use @result.loss
    // CHECK-DAG: plan.buffer gradient "g.on_host.away" on disk bytes 4096
    // CHECK-DAG: plan.buffer gradient "g.on_host.back" on host bytes 4096
    %g = plan.buffer gradient "g" bytes 4096
    %h = plan.buffer gradient "g.on_host" on host bytes 4096
    %ragged = plan.buffer gradient "ragged" on host bytes 65600
    %back = plan.buffer gradient "back" bytes 65600
    %x = plan.buffer activation "x" bytes 256
    plan.fill compute -> %g[0, 4096] : 7
    // CHECK: plan.copy to_host %g[0, 4096] -> %[[H:.*]][0, 4096]
    // CHECK-NEXT: plan.copy disk_write %[[H]][0, 4096] -> %[[AWAY:.*]][0, 4096]
    plan.copy to_host %g[0, 4096] -> %h[0, 4096]
    plan.fill compute -> %back[0, 65600] : 1
    plan.copy to_host %back[0, 65600] -> %ragged[0, 65600]
    plan.fill compute -> %x[0, 256] : 1
    plan.fill compute -> %x[0, 256] : 2
    plan.fill compute -> %x[0, 256] : 3
    // CHECK: plan.copy disk_read %[[AWAY]][0, 4096] -> %[[BACK:.*]][0, 4096]
    // CHECK-NEXT: plan.update update_host %p[0, 4096], %[[BACK]][0, 4096]
    plan.update update_host %p[0, 4096], %h[0, 4096] -> %p[0, 4096] : @b0 @k of f32
    plan.copy to_device %ragged[0, 65600] -> %back[0, 65600]
    plan.return %r[0, 4]
  }
}
