// RUN: zero-opt %s --nn-recompute=min-bytes=0 | FileCheck %s

// What a product with keep_lhs reads is kept, through views too, though a tanh would make it again; what one without it reads is made again.
// CHECK-LABEL: func.func @train(
// CHECK: %[[T:.*]] = nn.tanh
// CHECK: %[[V:.*]] = nn.reshape %[[T]]
// CHECK: nn.matmul %[[V]], %{{.*}} {keep_lhs, recompute}
// CHECK: nn.reduce sum {{.*}} dims [0, 1]
// CHECK: %[[AGAIN:.*]] = nn.matmul %[[V]], %{{.*}} {keep_lhs, recompute}
// CHECK: nn.matmul %[[V]], %[[AGAIN]] {transpose_lhs = true}
// CHECK: nn.sin
// CHECK: nn.gradient @v
nn.parameter @w : tensor<4x8xf32> {trainable = true}
nn.parameter @v : tensor<4x8xf32> {trainable = true}
func.func @train(%x: tensor<2x4xf32>) -> tensor<f32> {
  %w = nn.get @w : tensor<4x8xf32>
  %v = nn.get @v : tensor<4x8xf32>
  %t = nn.tanh %x : tensor<2x4xf32>
  %s = nn.sin %x : tensor<2x4xf32>
  %view = nn.reshape %t : tensor<2x4xf32> -> tensor<2x4xf32>
  %y = nn.matmul %view, %w {keep_lhs, recompute} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %z = nn.matmul %s, %v : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %sum = nn.add %y, %z : tensor<2x8xf32>
  %loss = nn.reduce sum %sum dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
  %dw = nn.matmul %view, %y {transpose_lhs = true} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  nn.gradient @w, %dw : tensor<4x8xf32>
  %dv = nn.matmul %s, %y {transpose_lhs = true} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  nn.gradient @v, %dv : tensor<4x8xf32>
  return %loss : tensor<f32>
}
