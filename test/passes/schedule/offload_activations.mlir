// What nothing touches for a while waits elsewhere: copied after its last touch and back before the next.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-offload-activations{tier=host distance=3 min-bytes=64}))" %s | FileCheck %s
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-offload-activations{tier=disk distance=3 min-bytes=64}))" %s | FileCheck %s --check-prefix=DISK
// RUN: zero-opt "--pass-pipeline=builtin.module(plan.program(plan-offload-activations{tier=host distance=3 min-bytes=64 most-bytes=4100}))" %s | FileCheck %s --check-prefix=MOST
// RUN: not zero-opt "--pass-pipeline=builtin.module(plan.program(plan-offload-activations{tier=tape}))" %s 2>&1 | FileCheck %s --check-prefix=TAPE

// MOST-NOT: "x.away"
// MOST: plan.buffer gradient "g.away" on host bytes 4096
// MOST-NOT: "x.away"
// TAPE: activations wait on host or disk, not on tape
// DISK: plan.buffer activation "x.away" on disk bytes 4096
// DISK-NOT: "y.away"
// DISK: %[[R:.*]] = plan.buffer activation "ragged" bytes 69632
// DISK: plan.buffer activation "ragged.away" on disk bytes 69632
// DISK: plan.buffer activation "ragged.back" bytes 69632
// DISK: plan.copy disk_write
// DISK: plan.fill compute -> %[[R]][0, 65600] : 1
// DISK-NEXT: plan.fill compute -> %[[R]][65600, 4032] : 0
// DISK-NEXT: plan.copy disk_write %[[R]][0, 69632]
// DISK: plan.copy disk_read
// DISK: plan.copy compute %{{.*}}[0, 65600]
module attributes {zero.world = 1 : i64} {
  plan.state scalar @result.loss bytes 4
  plan.program step @step {
    %r = plan.use @result.loss
    // CHECK: %[[X:.*]] = plan.buffer activation "x" bytes 4096
    // CHECK-DAG: %[[XA:.*]] = plan.buffer activation "x.away" on host bytes 4096
    // CHECK-DAG: %[[XB:.*]] = plan.buffer activation "x.back" bytes 4096
    %x = plan.buffer activation "x" bytes 4096
    // Far less than a whole block: it goes to host alone.
    // CHECK: plan.buffer activation "y"
    // CHECK: plan.buffer activation "y.away" on host bytes 100
    %y = plan.buffer activation "y" bytes 100
    // Half of it is never written before the gap, or nothing reads it after that.
    // CHECK-NOT: "half.away"
    // CHECK-NOT: "dead.away"
    // CHECK: plan.buffer activation "ragged.away" on host bytes 65600
    %ragged = plan.buffer activation "ragged" bytes 65600
    %half = plan.buffer activation "half" bytes 4096
    %dead = plan.buffer activation "dead" bytes 4096
    %z = plan.buffer activation "z" bytes 4096
    %big = plan.buffer activation "big" bytes 65600
    %g = plan.buffer gradient "g" bytes 4096
    // CHECK: plan.fill compute -> %[[G:.*]][0, 4000] : 7
    // CHECK-NEXT: plan.fill compute -> %[[G]][4000, 96] : 0
    // CHECK-NEXT: plan.copy to_host %[[G]][0, 4096] -> %[[GA:.*]][0, 4096]
    plan.fill compute -> %g[0, 4000] : 7
    // CHECK: plan.fill compute -> %[[X]][0, 4096] : 1
    // CHECK-NEXT: plan.copy to_host %[[X]][0, 4096] -> %[[XA]][0, 4096]
    plan.fill compute -> %x[0, 4096] : 1
    plan.fill compute -> %y[0, 100] : 1
    plan.fill compute -> %ragged[0, 65600] : 1
    plan.fill compute -> %half[0, 2048] : 1
    plan.fill compute -> %dead[0, 4096] : 1
    plan.fill compute -> %z[0, 4096] : 1
    plan.fill compute -> %z[0, 4096] : 2
    plan.fill compute -> %z[0, 4096] : 3
    // CHECK: plan.copy to_device %[[XA]][0, 4096] -> %[[XB]][0, 4096]
    // CHECK-NEXT: plan.copy compute %[[XB]][0, 4096] -> %{{.*}}[0, 4096]
    plan.copy compute %x[0, 4096] -> %z[0, 4096]
    plan.copy compute %y[0, 100] -> %z[0, 100]
    plan.copy compute %ragged[0, 65600] -> %big[0, 65600]
    plan.copy compute %half[0, 64] -> %z[0, 64]
    plan.fill compute -> %dead[0, 4096] : 2
    // It has not changed, so the copy elsewhere is still good.
    // CHECK: plan.copy to_device %[[XA]][0, 4096] -> %[[XC:.*]][0, 4096]
    // CHECK-NEXT: plan.copy compute %[[XC]][0, 64]
    plan.copy compute %x[0, 64] -> %z[0, 64]
    // CHECK: plan.copy to_device %[[GA]][0, 4096] -> %[[GB:.*]][0, 4096]
    // CHECK-NEXT: plan.copy compute %[[GB]][0, 64] -> %[[GB]][64, 64]
    // CHECK-NEXT: plan.copy to_host %[[GB]][0, 4096] -> %[[GC:.*]][0, 4096]
    // CHECK-NOT: plan.fill compute -> %{{.*}}[4000, 96]
    plan.copy compute %g[0, 64] -> %g[64, 64]
    plan.fill compute -> %g[4000, 96] : 0
    plan.fill compute -> %z[0, 4096] : 4
    plan.fill compute -> %z[0, 4096] : 5
    plan.fill compute -> %z[0, 4096] : 6
    // CHECK: plan.copy to_device %[[GC]][0, 4096] -> %[[GD:.*]][0, 4096]
    // CHECK-NEXT: plan.copy compute %[[GD]][0, 64]
    plan.copy compute %g[0, 64] -> %z[0, 64]
    // Padding that is filled late is filled before it leaves, and what has changed leaves again.
    // CHECK: plan.decision "activations" : "4 buffers away until backward"
    plan.return %r[0, 4]
  }
}
