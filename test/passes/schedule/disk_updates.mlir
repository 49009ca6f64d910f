// Buckets that the host updates and of which something rests on disk: it comes to buffers in host memory, is changed there and returns, slice by
// slice, the last with the rest of its block. What the update makes for programs to read goes home from there: to the device, to disk, or from a
// master on the device and back. No state goes through the device.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan-lower,plan.program(plan-assign-lanes))" %s | FileCheck %s --check-prefixes=CHECK,UP
// RUN: sed 's/compute bf16 whole on device/compute bf16 whole on disk/; s/zero.resident @b0/zero.gather @b0/' %s | zero-opt "--pass-pipeline=builtin.module(plan-lower,plan.program(plan-assign-lanes))" | FileCheck %s --check-prefixes=CHECK,AWAY
// RUN: sed 's/#zero.tensor<master f32 whole on disk>, #zero.tensor<compute bf16 whole on device>/#zero.tensor<master f32 whole on device>/; s/tensor<1280xbf16>)/)/; s/, )/)/; s/bf16/f32/g' %s | zero-opt "--pass-pipeline=builtin.module(plan-lower,plan.program(plan-assign-lanes))" | FileCheck %s --check-prefix=STAYS
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<160x16xf32> {trainable = true}
  zero.bucket @b0 {elements = 2560 : i64, shard = 2560 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, updated_on_host, tensors = [#zero.tensor<master f32 whole on disk>, #zero.tensor<compute bf16 whole on device>, #zero.tensor<momentum f32 whole on disk>]}
  func.func private @half(%x: tensor<4x160xf32>, %w: tensor<160x16xbf16>) -> (tensor<1xf32>, tensor<160x16xf32>) attributes {nn.kernel}
  func.func private @sgd(%p: tensor<2x1024xf32>, %g: tensor<2x1024xf32>, %m: tensor<2x1024xf32>, %h: tensor<16xf32>)
      -> (tensor<2x1024xf32>, tensor<2x1024xf32>, tensor<2048xbf16>) attributes {nn.kernel}
  func.func private @sgd_rest(%p: tensor<1x512xf32>, %g: tensor<1x512xf32>, %m: tensor<1x512xf32>, %h: tensor<16xf32>)
      -> (tensor<1x512xf32>, tensor<1x512xf32>, tensor<512xbf16>) attributes {nn.kernel}
  func.func private @squares(%g: tensor<2560xf32>) -> tensor<1xf32> attributes {nn.kernel}

  // CHECK-DAG: plan.state optimizer @b0.parameter bytes 12288
  // CHECK-DAG: %[[P:.*]] = plan.use @b0.parameter
  // CHECK-DAG: %[[C:.*]] = plan.use @b0.compute
  // CHECK-DAG: %[[M:.*]] = plan.use @b0.momentum
  // CHECK-DAG: %[[G:.*]] = plan.buffer gradient "b0.gradient.on_host" on host bytes 10240
  // CHECK-DAG: plan.buffer fetched "b0.parameter.fetched" on host bytes 8192 {{{.*}}master f32 whole on disk
  // CHECK-DAG: plan.buffer fetched "b0.momentum.fetched" on host bytes 4096 {begin = 2048 : i64
  // UP-DAG: plan.buffer fetched "b0.compute.updated" on host bytes 1024 {begin = 2048 : i64
  // STAYS-DAG: %[[P:.*]] = plan.use @b0.parameter
  // STAYS-DAG: %[[M:.*]] = plan.use @b0.momentum
  func.func @step(%x: tensor<4x160xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> (tensor<1xf32>, tensor<1xf32>) attributes {zero.role = "step"} {
    %h = zero.to_host %hyper : tensor<16xf32>
    %b = zero.resident @b0 : tensor<2560xbf16>
    %w = zero.view %b at 0 : tensor<2560xbf16> -> tensor<160x16xbf16>
    %l, %gw = nn.launch @half(%x, %w) : (tensor<4x160xf32>, tensor<160x16xbf16>) -> (tensor<1xf32>, tensor<160x16xf32>)
    %g = zero.pack %gw at [0] : (tensor<160x16xf32>) -> tensor<2560xf32>
    %s = nn.launch @squares(%g) : (tensor<2560xf32>) -> tensor<1xf32>
    // CHECK: plan.copy to_host %{{.*}}[0, 10240] -> %[[G]][0, 10240]
    %there = zero.to_host %g : tensor<2560xf32>
    %g0 = zero.view %there at 0 : tensor<2560xf32> -> tensor<2048xf32>
    %g1 = zero.view %there at 2048 : tensor<2560xf32> -> tensor<512xf32>
    // CHECK-NEXT: plan.copy disk_read %[[P]][0, 8192] -> %[[P0:.*]][0, 8192]
    // CHECK-NEXT: plan.copy disk_read %[[M]][0, 8192] -> %[[M0:.*]][0, 8192]
    // CHECK-NEXT: plan.update update_host %[[P0]][0, 8192], %[[G]][0, 8192], %[[M0]][0, 8192], %[[H:.*]][0, 64] -> %[[P0]][0, 8192], %[[M0]][0, 8192], %[[C0:.*]][0, 4096] : @b0 @sgd of f32{{$}}
    // CHECK-NEXT: plan.copy disk_write %[[P0]][0, 8192] -> %[[P]][0, 8192]
    // CHECK-NEXT: plan.copy disk_write %[[M0]][0, 8192] -> %[[M]][0, 8192]
    // UP-NEXT: plan.copy to_device %[[C0]][0, 4096] -> %[[C]][0, 4096]
    // AWAY-NEXT: plan.copy disk_write %[[C0]][0, 4096] -> %[[C]][0, 4096]
    zero.update @b0, %g0, %h {kernel = @sgd} : (tensor<2048xf32>, tensor<16xf32>) -> ()
    // CHECK-NEXT: plan.copy disk_read %[[P]][8192, 4096] -> %[[P1:.*]][0, 4096]
    // CHECK-NEXT: plan.copy disk_read %[[M]][8192, 4096] -> %[[M1:.*]][0, 4096]
    // AWAY-NEXT: plan.fill update_host -> %[[C1:.*]][1024, 3072] : 0
    // CHECK-NEXT: plan.update update_host %[[P1]][0, 2048], %[[G]][8192, 2048], %[[M1]][0, 2048], %[[H]][0, 64] -> %[[P1]][0, 2048], %[[M1]][0, 2048], %[[C1:.*]][0, 1024] : @b0 @sgd_rest of f32 from 2048
    // CHECK-NEXT: plan.copy disk_write %[[P1]][0, 4096] -> %[[P]][8192, 4096]
    // CHECK-NEXT: plan.copy disk_write %[[M1]][0, 4096] -> %[[M]][8192, 4096]
    // UP-NEXT: plan.copy to_device %[[C1]][0, 1024] -> %[[C]][4096, 1024]
    // AWAY-NEXT: plan.copy disk_write %[[C1]][0, 4096] -> %[[C]][4096, 4096]
    // STAYS: plan.copy to_host %[[P]][8192, 2048] -> %[[P1:.*]][0, 2048]
    // STAYS-NEXT: plan.copy disk_read %[[M]][8192, 4096] -> %[[M1:.*]][0, 4096]
    // STAYS-NEXT: plan.update update_host %[[P1]][0, 2048], %{{.*}}[8192, 2048], %[[M1]][0, 2048], %{{.*}} -> %[[P1]][0, 2048], %[[M1]][0, 2048] : @b0 @sgd_rest of f32 from 2048
    // STAYS-NEXT: plan.copy to_device %[[P1]][0, 2048] -> %[[P]][8192, 2048]
    // STAYS-NEXT: plan.copy disk_write %[[M1]][0, 4096] -> %[[M]][8192, 4096]
    zero.update @b0, %g1, %h {kernel = @sgd_rest, begin = 2048 : i64} : (tensor<512xf32>, tensor<16xf32>) -> ()
    %r = zero.pack %l, %s at [0, 1] : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %loss = zero.view %r at 0 : tensor<2xf32> -> tensor<1xf32>
    %norm = zero.view %r at 1 : tensor<2xf32> -> tensor<1xf32>
    return %loss, %norm : tensor<1xf32>, tensor<1xf32>
  }
}
