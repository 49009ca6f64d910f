// What an update needs from another tier comes while the one before is computed: that of one other, of more if they are small.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-hoist-fetches{ahead=1}))" %s | FileCheck %s
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-hoist-fetches))" %s | FileCheck %s
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-hoist-fetches{part=1}))" %s | FileCheck %s --check-prefix=SEVERAL
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-hoist-fetches{ahead=0}))" %s | FileCheck %s --check-prefix=NONE
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-hoist-fetches{ahead=1 reach=1}))" %s | FileCheck %s --check-prefix=NEAR

module attributes {zero.world = 1 : i64} {
  plan.state optimizer @m0 bytes 256 {bucket = @b0, tensor = #zero.tensor<momentum f32 whole on host>}
  plan.state optimizer @m1 bytes 256 {bucket = @b1, tensor = #zero.tensor<momentum f32 whole on host>}
  plan.state optimizer @m2 bytes 256 {bucket = @b2, tensor = #zero.tensor<momentum f32 whole on host>}
  plan.state scalar @result.loss bytes 4
  plan.program step @step {
    %h0 = plan.use @m0
    %h1 = plan.use @m1
    %h2 = plan.use @m2
    %r = plan.use @result.loss
    %x = plan.buffer activation "x" bytes 256
    %d0 = plan.buffer fetched "m0.fetched" bytes 256
    %d1 = plan.buffer fetched "m1.fetched" bytes 256
    %d2 = plan.buffer fetched "m2.fetched" bytes 256
    // The first needs nothing before it; the second comes with it, the third when the first has gone home.
    // CHECK: plan.copy to_device %[[H0:.*]][0, 256] -> %[[D0:.*]][0, 256]
    // CHECK-NEXT: plan.copy to_device %[[H1:.*]][0, 256] -> %[[D1:.*]][0, 256]
    // CHECK-NEXT: plan.fill compute
    // CHECK-NEXT: plan.fill compute -> %[[D0]]
    // CHECK-NEXT: plan.copy to_host %[[D0]][0, 256] -> %[[H0]][0, 256]
    // CHECK-NEXT: plan.copy to_device %{{.*}}[0, 256] -> %[[D2:.*]][0, 256]
    // CHECK-NEXT: plan.fill compute -> %[[D1]]
    // CHECK: plan.decision "b1" : "fetched 4 steps early" because "what at most {{1 other step needs|3 other steps need}} is on the device from the start on"
    // One step early at most: the first update is after the second one's fetch.
    // NEAR: plan.copy to_device
    // NEAR-NEXT: plan.fill compute -> %x
    // NEAR-NEXT: plan.copy to_device
    // NEAR-NEXT: plan.fill compute -> %m0.fetched
    // SEVERAL-COUNT-3: plan.copy to_device
    // SEVERAL-NEXT: plan.fill compute -> %x
    // SEVERAL: plan.decision "b2" : {{.*}}because "what at most 3 other steps need is on the device
    // NONE: plan.copy to_host
    // NONE-NEXT: plan.copy to_device
    // NONE-NEXT: plan.fill compute
    plan.fill compute -> %x[0, 256] : 0
    plan.copy to_device %h0[0, 256] -> %d0[0, 256]
    plan.fill compute -> %d0[0, 4] : 1
    plan.copy to_host %d0[0, 256] -> %h0[0, 256]
    plan.copy to_device %h1[0, 256] -> %d1[0, 256]
    plan.fill compute -> %d1[0, 4] : 1
    plan.copy to_host %d1[0, 256] -> %h1[0, 256]
    plan.copy to_device %h2[0, 256] -> %d2[0, 256]
    plan.fill compute -> %d2[0, 4] : 1
    plan.copy to_host %d2[0, 256] -> %h2[0, 256]
    plan.return %r[0, 4]
  }
}
