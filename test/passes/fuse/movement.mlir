// RUN: zero-opt %s --nn-fuse | FileCheck %s

// Bias, split and head transposition in one kernel with two results; views stay outside; a repetition that a product wants is
// written; the scatter begins with the tensor it is added to.
// CHECK: func.func private @[[$SPLIT:.*]](%{{.*}}: tensor<2x3x16xf32>, %{{.*}}: tensor<16xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
// CHECK-LABEL: func.func @train
// CHECK: nn.launch @[[$SPLIT]](
// CHECK: nn.reshape
// CHECK: nn.matmul
// CHECK: %[[S:.*]] = nn.launch @{{.*}}(%[[W:.*]], %{{.*}}, %{{.*}}) : (tensor<9x4xf32>, tensor<3xi64>, tensor<3x4xf32>) -> tensor<9x4xf32>
// CHECK: return
func.func @train(%x: tensor<2x3x16xf32>, %b: tensor<16xf32>, %w: tensor<9x4xf32>, %i: tensor<3xi64>, %u: tensor<3x4xf32>)
    -> (tensor<4x3x3xf32>, tensor<9x4xf32>) {
  %bb = nn.broadcast %b dims [2] : tensor<16xf32> -> tensor<2x3x16xf32>
  %y = nn.add %x, %bb : tensor<2x3x16xf32>
  %q = nn.slice %y starts [0, 0, 0] sizes [2, 3, 8] steps [1, 1, 1] : tensor<2x3x16xf32> -> tensor<2x3x8xf32>
  %k = nn.slice %y starts [0, 0, 8] sizes [2, 3, 8] steps [1, 1, 1] : tensor<2x3x16xf32> -> tensor<2x3x8xf32>
  %q4 = nn.reshape %q : tensor<2x3x8xf32> -> tensor<2x3x2x4xf32>
  %k4 = nn.reshape %k : tensor<2x3x8xf32> -> tensor<2x3x2x4xf32>
  %qt = nn.transpose %q4 perm [0, 2, 1, 3] : tensor<2x3x2x4xf32> -> tensor<2x2x3x4xf32>
  %kt = nn.transpose %k4 perm [0, 2, 1, 3] : tensor<2x3x2x4xf32> -> tensor<2x2x3x4xf32>
  %q3 = nn.reshape %qt : tensor<2x2x3x4xf32> -> tensor<4x3x4xf32>
  %k3 = nn.reshape %kt : tensor<2x2x3x4xf32> -> tensor<4x3x4xf32>
  %s = nn.matmul %q3, %k3 {transpose_rhs = true} : (tensor<4x3x4xf32>, tensor<4x3x4xf32>) -> tensor<4x3x3xf32>
  %t = nn.tanh %u : tensor<3x4xf32>
  %g = nn.scatter_add %i, %t : tensor<3xi64>, tensor<3x4xf32> -> tensor<9x4xf32>
  %o = nn.add %w, %g : tensor<9x4xf32>
  return %s, %o : tensor<4x3x3xf32>, tensor<9x4xf32>
}
