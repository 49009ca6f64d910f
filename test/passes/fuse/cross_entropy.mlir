// RUN: zero-opt %s --nn-decompose --nn-fuse | FileCheck %s

// The loss per row and the gradient of the logits, written over them, are one kernel; a small one adds the rows up.
// CHECK: func.func private @cross_entropy_0(%[[X:.*]]: tensor<4x50xf32>, {{.*}}) -> ({{.*}}tensor<4x50xf32>) attributes {nn.inplace = {{\[}}[{{[0-9]}}, 0]], nn.kernel}
// CHECK-LABEL: func.func @train
// CHECK: %[[L:.*]] = nn.matmul
// CHECK-NEXT: nn.launch @cross_entropy_0(%[[L]]
// CHECK-NEXT: nn.launch @
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: return
func.func @train(%a: tensor<4x8xf32>, %w: tensor<8x50xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> (tensor<f32>, tensor<4x8xf32>) {
  %x = nn.matmul %a, %w : (tensor<4x8xf32>, tensor<8x50xf32>) -> tensor<4x50xf32>
  %loss, %lse = nn.cross_entropy %x, %labels, %scale {ignore_index = -100 : i64}
    : (tensor<4x50xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  %lb = nn.broadcast %lse dims [0] : tensor<4xf32> -> tensor<4x50xf32>
  %d = nn.sub %x, %lb : tensor<4x50xf32>
  %p = nn.exp %d : tensor<4x50xf32>
  %da = nn.matmul %p, %w {transpose_rhs = true} : (tensor<4x50xf32>, tensor<8x50xf32>) -> tensor<4x8xf32>
  return %loss, %da : tensor<f32>, tensor<4x8xf32>
}
