// Parameters on disk and momentum on host, one rank: what is used is fetched, what an update changes is brought back, each on the lane of its
// way. Disks read and write whole blocks, so their buffers end with one.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan-lower,plan.program(plan-assign-lanes))" %s | FileCheck %s

// CHECK-DAG: plan.state parameter @b0.parameter bytes 4096 {bucket = @b0, tensor = #zero.tensor<master f32 whole on disk>}
// CHECK-DAG: plan.state optimizer @b0.momentum bytes 256 {bucket = @b0, tensor = #zero.tensor<momentum f32 whole on host>}
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<8x8xf32> {trainable = true}
  zero.bucket @b0 {elements = 64 : i64, shard = 64 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on disk>, #zero.tensor<momentum f32 whole on host>]}
  func.func private @loss(%y: tensor<4x8xf32>) -> (tensor<1xf32>, tensor<4x8xf32>) attributes {nn.kernel, nn.inplace = [[1, 0]]}
  func.func private @sgd(%p: tensor<2x16xf32>, %g: tensor<2x16xf32>, %m: tensor<2x16xf32>, %h: tensor<16xf32>)
      -> (tensor<2x16xf32>, tensor<2x16xf32>, tensor<2xf32>) attributes {nn.kernel}
  func.func private @sum(%s: tensor<4xf32>) -> tensor<1xf32> attributes {nn.kernel}

  // CHECK: plan.program step @step {
  // CHECK-DAG: %[[P:.*]] = plan.use @b0.parameter
  // CHECK-DAG: %[[M:.*]] = plan.use @b0.momentum
  // CHECK-DAG: %[[W:.*]] = plan.buffer gathered "b0.gathered" bytes 4096 {bucket = @b0, tensor = #zero.tensor<master f32 whole on device>}
  func.func @step(%x: tensor<4x8xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> (tensor<1xf32>, tensor<1xf32>) attributes {zero.role = "step"} {
    // CHECK: plan.copy disk_read %[[P]][0, 4096] -> %[[W]][0, 4096]
    %b = zero.gather @b0 : tensor<64xf32>
    %w = zero.view %b at 0 : tensor<64xf32> -> tensor<8x8xf32>
    // CHECK: plan.matmul compute {{.*}} %[[W]][0, 256]
    %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    zero.release %b : tensor<64xf32>
    %l, %dy = nn.launch @loss(%y) : (tensor<4x8xf32>) -> (tensor<1xf32>, tensor<4x8xf32>)
    %gw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %g = zero.pack %gw at [0] : (tensor<8x8xf32>) -> tensor<64xf32>
    // The second slice of 32 elements: 128 bytes of the momentum, and of the disk the block's rest.
    %g0 = zero.view %g at 0 : tensor<64xf32> -> tensor<32xf32>
    %g1 = zero.view %g at 32 : tensor<64xf32> -> tensor<32xf32>
    // CHECK: plan.copy disk_read %[[P]][0, 128] -> %[[P0:.*]][0, 128]
    // CHECK: plan.copy to_device %[[M]][0, 128] -> %[[M0:.*]][0, 128]
    // CHECK: plan.update compute %[[P0]][0, 128], %{{.*}}[0, 128], %[[M0]][0, 128], {{.*}} -> %[[P0]][0, 128], %[[M0]][0, 128], {{.*}} : @b0 @sgd of f32{{$}}
    // CHECK: plan.copy disk_write %[[P0]][0, 128] -> %[[P]][0, 128]
    // CHECK: plan.copy to_host %[[M0]][0, 128] -> %[[M]][0, 128]
    %s0 = zero.update @b0, %g0, %hyper {kernel = @sgd} : (tensor<32xf32>, tensor<16xf32>) -> tensor<2xf32>
    // CHECK: plan.copy disk_read %[[P]][128, 3968] -> %[[P1:.*]][0, 3968]
    // CHECK: plan.copy to_device %[[M]][128, 128] -> %[[M1:.*]][0, 128]
    // CHECK: plan.update compute %[[P1]][0, 128], %{{.*}}[128, 128], %[[M1]][0, 128], {{.*}} : @b0 @sgd of f32 from 32
    %s1 = zero.update @b0, %g1, %hyper {kernel = @sgd, begin = 32 : i64} : (tensor<32xf32>, tensor<16xf32>) -> tensor<2xf32>
    %s = zero.pack %s0, %s1 at [0, 2] : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
    %n = nn.launch @sum(%s) : (tensor<4xf32>) -> tensor<1xf32>
    %r = zero.pack %l, %n at [0, 1] : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %loss = zero.view %r at 0 : tensor<2xf32> -> tensor<1xf32>
    %norm = zero.view %r at 1 : tensor<2xf32> -> tensor<1xf32>
    return %loss, %norm : tensor<1xf32>, tensor<1xf32>
  }
}
