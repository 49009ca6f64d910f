// RUN: zero-opt %s --nn-fuse | FileCheck %s

// A chain between two products is one kernel; what only repeats or is constant is made inside; equal layers share it.
// CHECK: func.func private @gelu_0(%[[X:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8xf32>) -> tensor<4x8xf32> attributes {nn.inplace = {{\[}}[0, 0]], nn.kernel}
// CHECK-DAG: nn.constant dense<2.0
// CHECK-DAG: nn.broadcast %[[B]] dims [1]
// CHECK-NOT: nn.kernel
// CHECK-LABEL: func.func @train
// CHECK-SAME: (%[[A:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[BIAS:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[P:.*]] = nn.matmul %[[A]], %[[W]]
// CHECK-NEXT: %[[H:.*]] = nn.launch @gelu_0(%[[P]], %[[BIAS]])
// CHECK-NEXT: %[[Q:.*]] = nn.matmul %[[H]], %[[W]]
// CHECK-NEXT: %[[G:.*]] = nn.launch @gelu_0(%[[Q]], %[[BIAS]])
// CHECK-NEXT: %[[R:.*]] = nn.matmul %[[G]], %[[W]]
// CHECK-NEXT: return %[[R]]
func.func @train(%a: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %two = nn.constant dense<2.0> : tensor<4x8xf32>
  %p = nn.matmul %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %bb = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %s = nn.add %p, %bb : tensor<4x8xf32>
  %t = nn.tanh %s : tensor<4x8xf32>
  %h = nn.mul %t, %two : tensor<4x8xf32>
  %q = nn.matmul %h, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %bb2 = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %s2 = nn.add %q, %bb2 : tensor<4x8xf32>
  %t2 = nn.tanh %s2 : tensor<4x8xf32>
  %h2 = nn.mul %t2, %two : tensor<4x8xf32>
  %r = nn.matmul %h2, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
