// Parameters and what the optimizer keeps rest in tiers of their own; gradients between micro-steps go with the latter.
// RUN: zero-opt --split-input-file "--pass-pipeline=builtin.module(zero-partition{world=2 stage=3 accumulate=2},zero-assign-tiers{offload-params=host offload-optimizer=disk})" %s | FileCheck %s

// CHECK: zero.bucket @bucket0
// CHECK-SAME: #zero.tensor<master f32 shard on host>, #zero.tensor<gradient f32 shard on disk>, #zero.tensor<first_moment f32 shard on disk>, #zero.tensor<second_moment f32 shard on disk>
nn.parameter @w : tensor<8x8xf32> {trainable = true}
func.func @train(%x: tensor<4x8xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"}) -> tensor<4x8xf32> {
  %w = nn.get @w : tensor<8x8xf32>
  %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
