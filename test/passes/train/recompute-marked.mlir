// RUN: zero-opt %s --nn-recompute --nn-simplify | FileCheck %s
// RUN: zero-opt %s --nn-recompute=mode=none --nn-simplify | FileCheck %s

// A marked product is made again whatever the mode, and what is added to it and not kept; an equal product that is not marked is kept.
// Neither is the second one taken for the first afterwards.
// CHECK-LABEL: func.func @train(
// CHECK: %[[X:.*]] = nn.tanh
// CHECK: nn.matmul %[[X]], %[[W:.*]] {recompute}
// CHECK: nn.matmul %[[X]], %{{.*}} : (tensor
// CHECK: nn.reduce sum {{.*}} dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
// CHECK: %[[AGAIN:.*]] = nn.matmul %{{.*}}, %[[W]] {recompute}
// CHECK: %[[SUM:.*]] = nn.add %[[AGAIN]]
// CHECK: %[[D:.*]] = nn.exp %[[SUM]]
// CHECK-NOT: nn.matmul %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<4x8xf32>)
// CHECK: nn.gradient @w
nn.parameter @w : tensor<4x8xf32> {trainable = true}
nn.parameter @v : tensor<4x8xf32> {trainable = true}
func.func @train(%data: tensor<2x4xf32>, %bias: tensor<2x8xf32>) -> tensor<f32> {
  %w = nn.get @w : tensor<4x8xf32>
  %v = nn.get @v : tensor<4x8xf32>
  %x = nn.tanh %data : tensor<2x4xf32>
  %p = nn.matmul %x, %w {recompute} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %s = nn.add %p, %bias : tensor<2x8xf32>
  %e = nn.exp %s : tensor<2x8xf32>
  %q = nn.matmul %x, %v : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %y = nn.mul %e, %q : tensor<2x8xf32>
  %loss = nn.reduce sum %y dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
  %d = nn.exp %s : tensor<2x8xf32>
  %g = nn.mul %d, %q : tensor<2x8xf32>
  %dw = nn.matmul %x, %g {transpose_lhs = true} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  nn.gradient @w, %dw : tensor<4x8xf32>
  %dv = nn.matmul %x, %d {transpose_lhs = true} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  nn.gradient @v, %dv : tensor<4x8xf32>
  return %loss : tensor<f32>
}
