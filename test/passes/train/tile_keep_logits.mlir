// RUN: zero-opt %s --nn-tile="parts=2" | FileCheck %s --check-prefix=AGAIN --implicit-check-not=nn.kept_logits
// RUN: zero-opt %s --nn-tile="parts=2 keep-logits" | FileCheck %s

// Either way what the product reads is kept too, so that logits made again are those of forward. Logits wait for backward, and of the step it is said what they and the gradient of their weights take.
// CHECK: module attributes {nn.kept_logits = [1600, 1600]}
// CHECK-LABEL: func.func @train(
// CHECK-NOT: recompute
// CHECK: nn.matmul %{{.*}} {keep_lhs, transpose_rhs = true} : (tensor<8x8xf32>, tensor<32x8xf32>) -> tensor<8x32xf32>
// CHECK-NOT: recompute
// CHECK: return
// AGAIN: nn.matmul %{{.*}} {keep_lhs, recompute, transpose_rhs = true} : (tensor<8x8xf32>, tensor<32x8xf32>) -> tensor<8x32xf32>
nn.parameter @head : tensor<50x8xf32> {trainable = true}
func.func @train(%x: tensor<8x8xf32>, %labels: tensor<8xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %head = nn.get @head : tensor<50x8xf32>
  %logits = nn.matmul %x, %head {transpose_rhs = true} : (tensor<8x8xf32>, tensor<50x8xf32>) -> tensor<8x50xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %scale {ignore_index = -100 : i64} : (tensor<8x50xf32>, tensor<8xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<8xf32>)
  return %loss : tensor<f32>
}
