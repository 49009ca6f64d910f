// RUN: zero-opt %s --nn-fuse --split-input-file | FileCheck %s

// Softmax is one kernel; both sums over rows share another, which makes the product it sums itself.
// CHECK: func.func private @softmax_0(%{{.*}}: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {nn.inplace = {{\[}}[0, 0]], nn.kernel}
// CHECK: func.func private @columns_0(%{{.*}}) -> (tensor<8xf32>, tensor<8xf32>) attributes {nn.inplace = [], nn.kernel}
// CHECK: nn.mul
// CHECK: func.func @train
// CHECK-NEXT: %[[P:.*]] = nn.matmul
// CHECK-NEXT: %[[S:.*]] = nn.launch @softmax_0(%[[P]])
// CHECK-NEXT: %[[Q:.*]] = nn.matmul %[[S]]
// CHECK-NEXT: %[[D:.*]]:2 = nn.launch @columns_0({{.*}})
// CHECK-NEXT: nn.gradient @b, %[[D]]#{{[01]}}
// CHECK-NEXT: nn.gradient @g, %[[D]]#{{[01]}}
nn.parameter @b : tensor<8xf32> {trainable = true, init = "zeros"}
nn.parameter @g : tensor<8xf32> {trainable = true, init = "zeros"}
func.func @train(%a: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %p = nn.matmul %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %m = nn.reduce max %p dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %mb = nn.broadcast %m dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %d = nn.sub %p, %mb : tensor<4x8xf32>
  %e = nn.exp %d : tensor<4x8xf32>
  %t = nn.reduce sum %e dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %tb = nn.broadcast %t dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %s = nn.div %e, %tb : tensor<4x8xf32>
  %q = nn.matmul %s, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %db = nn.reduce sum %q dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  nn.gradient @b, %db : tensor<8xf32>
  %qs = nn.mul %q, %s : tensor<4x8xf32>
  %dg = nn.reduce sum %qs dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  nn.gradient @g, %dg : tensor<8xf32>
  return %q : tensor<4x8xf32>
}

// -----
// One number that backward reads, too, is no reason to have all elements in a row of its own, which is one thread's.
// CHECK: func.func private @exp_0(%{{.*}}: tensor<f32>) -> tensor<f32>
// CHECK: func.func private @{{.*}}(%{{.*}}: tensor<f32>, %{{.*}}: tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-LABEL: func.func @scaled
// CHECK: nn.launch @exp_0
func.func @scaled(%a: tensor<4x8xf32>, %w: tensor<8x8xf32>, %s: tensor<f32>) -> (tensor<4x8xf32>, tensor<f32>) {
  %p = nn.matmul %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %e = nn.exp %s : tensor<f32>
  %all = nn.broadcast %e dims [] : tensor<f32> -> tensor<4x8xf32>
  %y = nn.mul %all, %p : tensor<4x8xf32>
  %q = nn.matmul %y, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %q, %e : tensor<4x8xf32>, tensor<f32>
}
