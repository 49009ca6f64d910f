// RUN: zero-opt %s --nn-fuse | FileCheck %s

// A norm over rows, wanted in their order and with samples and tokens exchanged. The exchange is a kernel of its own: in that of the norm
// it would need the sums of rows other than the one at hand. What needs no sum of a row is exchanged where it is made.
// CHECK-LABEL: func.func @train
// CHECK: %[[NORM:.*]] = nn.launch @{{.*}}(%{{.*}}) : (tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
// CHECK: nn.launch @{{.*}}(%[[NORM]]) : (tensor<4x8x16xf32>) -> tensor<8x4x16xf32>
// CHECK: nn.launch @{{.*}} : (tensor<4x8x16xf32>) -> (tensor<4x8x16xf32>, tensor<8x4x16xf32>)
func.func @train(%x: tensor<4x8x16xf32>, %y: tensor<4x8x16xf32>, %w: tensor<16x16xf32>)
    -> (tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>) {
  %s = nn.reduce sum %x dims [2] : tensor<4x8x16xf32> -> tensor<4x8xf32>
  %b = nn.broadcast %s dims [0, 1] : tensor<4x8xf32> -> tensor<4x8x16xf32>
  %n = nn.div %x, %b : tensor<4x8x16xf32>
  %nt = nn.transpose %n perm [1, 0, 2] : tensor<4x8x16xf32> -> tensor<8x4x16xf32>
  %n0 = nn.reshape %n : tensor<4x8x16xf32> -> tensor<32x16xf32>
  %n1 = nn.reshape %nt : tensor<8x4x16xf32> -> tensor<32x16xf32>
  %p0 = nn.matmul %n0, %w : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %p1 = nn.matmul %n1, %w : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %t = nn.tanh %y : tensor<4x8x16xf32>
  %tt = nn.transpose %t perm [1, 0, 2] : tensor<4x8x16xf32> -> tensor<8x4x16xf32>
  %t0 = nn.reshape %t : tensor<4x8x16xf32> -> tensor<32x16xf32>
  %t1 = nn.reshape %tt : tensor<8x4x16xf32> -> tensor<32x16xf32>
  %p2 = nn.matmul %t0, %w : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %p3 = nn.matmul %t1, %w : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  return %p0, %p1, %p2, %p3 : tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>
}

// The same where the sum is kept and what is made of it per row, here its mean, is made once more by another kernel.
// CHECK-LABEL: func.func @both
// CHECK: %[[SUM:.*]]:2 = nn.launch @{{.*}} : (tensor<4x8x16xf32>) -> (tensor<4x8xf32>, tensor<4x8x16xf32>)
// CHECK: nn.launch @{{.*}}(%[[SUM]]#1) : (tensor<4x8x16xf32>) -> tensor<8x4x16xf32>
// CHECK: nn.launch @{{.*}}(%{{.*}}, %[[SUM]]#0)
func.func @both(%x: tensor<4x8x16xf32>, %w: tensor<16x16xf32>) -> (tensor<4x8xf32>, tensor<4x8x16xf32>, tensor<32x16xf32>) {
  %s = nn.reduce sum %x dims [2] : tensor<4x8x16xf32> -> tensor<4x8xf32>
  %c = nn.constant dense<6.250000e-02> : tensor<4x8xf32>
  %m = nn.mul %s, %c : tensor<4x8xf32>
  %b = nn.broadcast %m dims [0, 1] : tensor<4x8xf32> -> tensor<4x8x16xf32>
  %n = nn.sub %x, %b : tensor<4x8x16xf32>
  %nt = nn.transpose %n perm [1, 0, 2] : tensor<4x8x16xf32> -> tensor<8x4x16xf32>
  %n0 = nn.reshape %n : tensor<4x8x16xf32> -> tensor<32x16xf32>
  %n1 = nn.reshape %nt : tensor<8x4x16xf32> -> tensor<32x16xf32>
  %p0 = nn.matmul %n0, %w : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %p1 = nn.matmul %n1, %w : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %r = nn.reshape %p0 : tensor<32x16xf32> -> tensor<4x8x16xf32>
  %z = nn.sub %r, %b : tensor<4x8x16xf32>
  return %s, %z, %p1 : tensor<4x8xf32>, tensor<4x8x16xf32>, tensor<32x16xf32>
}
