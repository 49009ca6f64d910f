// A master on host and its compute copy on disk, one rank: forward fetches the copy; the update fetches the master, makes the copy where
// there is room and brings both back. The copy is never fetched for it: all of it is written.
// RUN: zero-opt -split-input-file "--pass-pipeline=builtin.module(plan-lower,plan.program(plan-assign-lanes))" %s | FileCheck %s

// CHECK-DAG: plan.state parameter @b0.compute bytes 4096 {bucket = @b0, tensor = #zero.tensor<compute bf16 whole on disk>}
// CHECK-DAG: plan.state optimizer @b0.parameter bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 whole on host>}
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<8x8xf32> {trainable = true}
  zero.bucket @b0 {elements = 64 : i64, shard = 64 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on host>, #zero.tensor<compute bf16 whole on disk>, #zero.tensor<momentum f32 whole on device>]}
  func.func private @loss(%y: tensor<4x8xbf16>) -> (tensor<1xf32>, tensor<4x8xbf16>) attributes {nn.kernel, nn.inplace = [[1, 0]]}
  func.func private @sgd(%p: tensor<2x32xf32>, %g: tensor<2x32xf32>, %m: tensor<2x32xf32>, %h: tensor<16xf32>)
      -> (tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xbf16>, tensor<2xf32>) attributes {nn.kernel}
  func.func private @sum(%s: tensor<2xf32>) -> tensor<1xf32> attributes {nn.kernel}

  // CHECK: plan.program step @step {
  // CHECK-DAG: %[[C:.*]] = plan.use @b0.compute
  // CHECK-DAG: %[[P:.*]] = plan.use @b0.parameter
  // CHECK-DAG: %[[M:.*]] = plan.use @b0.momentum
  // CHECK-DAG: %[[W:.*]] = plan.buffer gathered "b0.gathered" bytes 4096 {bucket = @b0, tensor = #zero.tensor<compute bf16 whole on device>}
  func.func @step(%x: tensor<4x8xbf16> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> (tensor<1xf32>, tensor<1xf32>) attributes {zero.role = "step"} {
    // CHECK: plan.copy disk_read %[[C]][0, 4096] -> %[[W]][0, 4096]
    %b = zero.gather @b0 : tensor<64xbf16>
    %w = zero.view %b at 0 : tensor<64xbf16> -> tensor<8x8xbf16>
    // CHECK: plan.matmul compute %{{.*}}[0, 64], %[[W]][0, 128] -> %{{.*}}[0, 64] : 4 x 8 x 8 of bf16 to bf16
    %y = nn.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    zero.release %b : tensor<64xbf16>
    %l, %dy = nn.launch @loss(%y) : (tensor<4x8xbf16>) -> (tensor<1xf32>, tensor<4x8xbf16>)
    // CHECK: plan.matmul compute {{.*}} -> %[[G:.*]][0, 256] : 8 x 8 x 4 of bf16 to f32
    %gw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<8x8xf32>
    %g = zero.pack %gw at [0] : (tensor<8x8xf32>) -> tensor<64xf32>
    // CHECK: plan.copy to_device %[[P]][0, 256] -> %[[MASTER:.*]][0, 256]
    // CHECK: plan.fill compute -> %[[COPY:.*]][128, 3968] : 0
    // CHECK: plan.update compute %[[MASTER]][0, 256], %[[G]][0, 256], %[[M]][0, 256], {{.*}} -> %[[MASTER]][0, 256], %[[M]][0, 256], %[[COPY]][0, 128], {{.*}} : @b0 @sgd of f32
    // CHECK: plan.copy to_host %[[MASTER]][0, 256] -> %[[P]][0, 256]
    // CHECK: plan.copy disk_write %[[COPY]][0, 4096] -> %[[C]][0, 4096]
    %s = zero.update @b0, %g, %hyper {kernel = @sgd} : (tensor<64xf32>, tensor<16xf32>) -> tensor<2xf32>
    %n = nn.launch @sum(%s) : (tensor<2xf32>) -> tensor<1xf32>
    %r = zero.pack %l, %n at [0, 1] : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %loss = zero.view %r at 0 : tensor<2xf32> -> tensor<1xf32>
    %norm = zero.view %r at 1 : tensor<2xf32> -> tensor<1xf32>
    return %loss, %norm : tensor<1xf32>, tensor<1xf32>
  }
}

// -----

// No copy is kept: a kernel rounds the master to room that lives as long as it is read, on lane compute.
// CHECK: plan.state parameter @b0.parameter bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 whole on device>}
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<8x8xf32> {trainable = true}
  zero.bucket @b0 {elements = 64 : i64, shard = 64 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
  func.func private @round(%p: tensor<2x32xf32>) -> tensor<2x32xbf16> attributes {nn.kernel}
  func.func private @sum(%y: tensor<4x8xbf16>) -> tensor<1xf32> attributes {nn.kernel, nn.inplace = []}
  // CHECK: plan.program eval @eval {
  // CHECK-DAG: %[[P:.*]] = plan.use @b0.parameter
  // CHECK-DAG: %[[W:.*]] = plan.buffer gathered "b0.gathered" bytes 128 {bucket = @b0, tensor = #zero.tensor<compute bf16 whole on device>}
  func.func @eval(%x: tensor<4x8xbf16> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "eval"} {
    // CHECK: plan.launch compute %[[P]][0, 256] -> %[[W]][0, 128] : @round
    %b = zero.gather @b0 {kernel = @round} : tensor<64xbf16>
    %w = zero.view %b at 0 : tensor<64xbf16> -> tensor<8x8xbf16>
    // CHECK: plan.matmul compute %{{.*}}[0, 64], %[[W]][0, 128]
    %y = nn.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    zero.release %b : tensor<64xbf16>
    %l = nn.launch @sum(%y) : (tensor<4x8xbf16>) -> tensor<1xf32>
    return %l : tensor<1xf32>
  }
}
