// Stage 2 on two ranks, momentum on disk: shards of a parameter that every rank keeps whole are updated slice by slice where they lie, each rank's
// 32 elements further on than the one's before, and all of it is published once.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan-lower,plan.program(plan-assign-lanes))" %s | FileCheck %s

module attributes {zero.world = 2 : i64, zero.stage = 2 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<8x8xf32> {trainable = true}
  zero.bucket @b0 {elements = 64 : i64, shard = 32 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 shard on disk>]}
  func.func private @loss(%y: tensor<4x8xf32>) -> (tensor<1xf32>, tensor<4x8xf32>) attributes {nn.kernel, nn.inplace = [[1, 0]]}
  func.func private @sgd(%p: tensor<1x16xf32>, %g: tensor<1x16xf32>, %m: tensor<1x16xf32>, %h: tensor<16xf32>)
      -> (tensor<1x16xf32>, tensor<1x16xf32>, tensor<1xf32>) attributes {nn.kernel}
  func.func private @sum(%s: tensor<2xf32>) -> tensor<1xf32> attributes {nn.kernel}

  // CHECK: plan.program step @step {
  // CHECK-DAG: %[[P:.*]] = plan.use @b0.parameter
  // CHECK-DAG: %[[M:.*]] = plan.use @b0.momentum
  func.func @step(%x: tensor<4x8xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> (tensor<1xf32>, tensor<1xf32>) attributes {zero.role = "step"} {
    %b = zero.resident @b0 : tensor<64xf32>
    %w = zero.view %b at 0 : tensor<64xf32> -> tensor<8x8xf32>
    %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %l, %dy = nn.launch @loss(%y) : (tensor<4x8xf32>) -> (tensor<1xf32>, tensor<4x8xf32>)
    %gw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %packed = zero.pack %gw at [0] : (tensor<8x8xf32>) -> tensor<64xf32>
    %g = zero.reduce_scatter %packed : tensor<64xf32> -> tensor<32xf32>
    %g0 = zero.view %g at 0 : tensor<32xf32> -> tensor<16xf32>
    %g1 = zero.view %g at 16 : tensor<32xf32> -> tensor<16xf32>
    // CHECK: plan.copy disk_read %[[M]][0, 64] -> %[[M0:.*]][0, 64]
    // CHECK: plan.update compute %[[P]][0 + rank * 128, 64], %{{.*}}[0 + rank * 128, 64], %[[M0]][0, 64], {{.*}} : @b0 @sgd of f32{{$}}
    // CHECK: plan.copy disk_write %[[M0]][0, 64] -> %[[M]][0, 64]
    %s0 = zero.update @b0, %g0, %hyper {kernel = @sgd} : (tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32>
    // CHECK: plan.copy disk_read %[[M]][64, 4032] -> %[[M1:.*]][0, 4032]
    // CHECK: plan.update compute %[[P]][64 + rank * 128, 64], %{{.*}}[64 + rank * 128, 64], %[[M1]][0, 64], {{.*}} : @b0 @sgd of f32 from 16
    // CHECK: plan.copy disk_write %[[M1]][0, 4032] -> %[[M]][64, 4032]
    %s1 = zero.update @b0, %g1, %hyper {kernel = @sgd, begin = 16 : i64} : (tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32>
    // CHECK: plan.collective gather %[[P]][0 + rank * 128, 128] -> %[[P]][0, 256] : all_gather 32 of f32
    zero.publish @b0
    %s = zero.pack %s0, %s1 at [0, 1] : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %n = nn.launch @sum(%s) : (tensor<2xf32>) -> tensor<1xf32>
    %r = zero.pack %l, %n at [0, 1] : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %loss = zero.view %r at 0 : tensor<2xf32> -> tensor<1xf32>
    %norm = zero.view %r at 1 : tensor<2xf32> -> tensor<1xf32>
    return %loss, %norm : tensor<1xf32>, tensor<1xf32>
  }
}
