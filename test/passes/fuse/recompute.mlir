// RUN: zero-opt %s --nn-fuse | FileCheck %s

// x + b is wanted before and after the product: it is computed twice from x rather than kept, since x is in memory anyway.
// CHECK-LABEL: func.func @one_tensor
// CHECK: %[[P:.*]] = nn.matmul
// CHECK: %[[T:.*]] = nn.launch @{{.*}}(%[[P]], %{{.*}}) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK: %[[Q:.*]] = nn.matmul %[[T]]
// CHECK: nn.launch @{{.*}}(%[[Q]], %[[P]], %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
func.func @one_tensor(%a: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %p = nn.matmul %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %bb = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %s = nn.add %p, %bb : tensor<4x8xf32>
  %t = nn.tanh %s : tensor<4x8xf32>
  %q = nn.matmul %t, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %r = nn.mul %q, %s : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// The sum of two products would have to be made again from both: the first kernel keeps it.
// CHECK-LABEL: func.func @two_tensors
// CHECK: %[[T:.*]]:2 = nn.launch @{{.*}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK: %[[Q:.*]] = nn.matmul %[[T]]#1
// CHECK: nn.launch @{{.*}}(%[[Q]], %[[T]]#0)
func.func @two_tensors(%a: tensor<4x8xf32>, %w: tensor<8x8xf32>, %v: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %p = nn.matmul %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %o = nn.matmul %a, %v : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = nn.add %p, %o : tensor<4x8xf32>
  %t = nn.tanh %s : tensor<4x8xf32>
  %q = nn.matmul %t, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %r = nn.mul %q, %s : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
