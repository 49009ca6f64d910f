// RUN: zero-opt %s --nn-recompute=min-bytes=0 | FileCheck %s
// RUN: zero-opt %s --nn-recompute=mode=none | FileCheck %s --check-prefix=NONE
// RUN: not zero-opt %s --nn-recompute=mode=full 2>&1 | FileCheck %s --check-prefix=FULL

// FULL: error: recomputation of cheap values is auto or none, not 'full'

// The activation is made again from the sum before it, which its own gradient needs; the sum is kept, for the product before it would
// have to be kept instead.
// CHECK-LABEL: func.func @train(
// CHECK: %[[H:.*]] = nn.matmul
// CHECK: %[[BIAS:.*]] = nn.broadcast
// CHECK: %[[U:.*]] = nn.add %[[H]], %[[BIAS]]
// CHECK: %[[T:.*]] = nn.tanh %[[U]]
// CHECK: %[[V:.*]] = nn.reshape %[[T]]
// CHECK: nn.matmul %[[V]]
// CHECK: nn.reduce sum {{.*}} dims [0, 1]
// CHECK: %[[T2:.*]] = nn.tanh %[[U]]
// CHECK-NEXT: %[[V2:.*]] = nn.reshape %[[T2]]
// CHECK-NEXT: nn.matmul %[[V2]]
// CHECK: nn.cos %[[U]]
// NONE: nn.tanh
// NONE-NOT: nn.tanh
nn.parameter @w : tensor<4x8xf32> {trainable = true}
nn.parameter @b : tensor<8xf32> {trainable = true}
nn.parameter @v : tensor<8x4xf32> {trainable = true}
func.func @train(%x: tensor<2x4xf32>) -> tensor<f32> {
  %w = nn.get @w : tensor<4x8xf32>
  %b = nn.get @b : tensor<8xf32>
  %v = nn.get @v : tensor<8x4xf32>
  %h = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %bias = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<2x8xf32>
  %u = nn.add %h, %bias : tensor<2x8xf32>
  %t = nn.tanh %u : tensor<2x8xf32>
  %view = nn.reshape %t : tensor<2x8xf32> -> tensor<2x8xf32>
  %y = nn.matmul %view, %v : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %loss = nn.reduce sum %y dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  %dv = nn.matmul %view, %y {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  nn.gradient @v, %dv : tensor<8x4xf32>
  %c = nn.cos %u : tensor<2x8xf32>
  %db = nn.reduce sum %c dims [0] : tensor<2x8xf32> -> tensor<8xf32>
  nn.gradient @b, %db : tensor<8xf32>
  %dw = nn.matmul %x, %c {transpose_lhs = true} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  nn.gradient @w, %dw : tensor<4x8xf32>
  return %loss : tensor<f32>
}
