// A gradient that several kernels read goes to memory, however large the table is that its rows are added to in the end: otherwise each kernel
// of a lower layer would make it again from what all layers above have left.
// RUN: zero-opt %s --nn-fuse | FileCheck %s

// CHECK-LABEL: func.func @train
// CHECK: %[[SUM:.*]]:2 = nn.launch @{{.*}} -> (tensor<16x8xf32>, tensor<16x8xf32>)
// CHECK: nn.matmul %[[SUM]]#1
// CHECK: nn.launch @scatter_add_0(%{{.*}}, %[[SUM]]#0, %{{.*}}) : (tensor<16xi64>, tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<1000x8xf32>
func.func @train(%tokens: tensor<16xi64>, %a: tensor<16x8xf32>, %b: tensor<16x8xf32>, %c: tensor<16x8xf32>, %s: tensor<16x8xf32>, %w: tensor<8x8xf32>) -> (tensor<16x8xf32>, tensor<1000x8xf32>) {
  %0 = nn.add %a, %b : tensor<16x8xf32>
  %g = nn.add %0, %c : tensor<16x8xf32>
  %scaled = nn.mul %g, %s : tensor<16x8xf32>
  %y = nn.matmul %scaled, %w : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %d = nn.add %g, %y : tensor<16x8xf32>
  %table = nn.scatter_add %tokens, %d : tensor<16xi64>, tensor<16x8xf32> -> tensor<1000x8xf32>
  return %y, %table : tensor<16x8xf32>, tensor<1000x8xf32>
}
