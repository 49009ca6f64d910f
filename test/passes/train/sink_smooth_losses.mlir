// RUN: zero-opt %s --nn-tile-tokens=tokens=2 --nn-tile="parts=4 keep-logits=true" --nn-differentiate --nn-sink-losses | FileCheck %s

// A head in tiles, with label smoothing: of each tile of tokens one term, the mean over all labels, reads the logarithm of the sum of
// exponentials that another one gives beside its sum. Both sink, in their order, and so no logits wait for those of another tile.
// CHECK-LABEL: func.func @train(
// CHECK: nn.cross_entropy {{.*}} : (tensor<2x3xf32>
// CHECK: nn.reduce sum {{.*}} dims [0] : tensor<2xf32> -> tensor<f32>
// CHECK: %[[G:.*]] = nn.matmul {{.*}} {transpose_lhs = true} {{.*}} -> tensor<16x8xf32>
// CHECK: nn.matmul {{.*}} {keep_lhs, transpose_rhs = true} {{.*}} -> tensor<2x16xf32>
// CHECK: nn.cross_entropy {{.*}} : (tensor<2x3xf32>
// CHECK: nn.reduce sum {{.*}} dims [0] : tensor<2xf32> -> tensor<f32>
// CHECK: nn.matmul {{.*}} onto %[[G]] {transpose_lhs = true} {{.*}} -> tensor<16x8xf32>
// CHECK-NOT: transpose_rhs = true
// CHECK: return
nn.parameter @head : tensor<48x8xf32> {trainable = true}
nn.parameter @small : tensor<8x8xf32> {trainable = true}
func.func @train(%x: tensor<4x8xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %small = nn.get @small : tensor<8x8xf32>
  %h = nn.matmul %x, %small : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %head = nn.get @head : tensor<48x8xf32>
  %logits = nn.matmul %h, %head {transpose_rhs = true} : (tensor<4x8xf32>, tensor<48x8xf32>) -> tensor<4x48xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %scale {ignore_index = -100 : i64, label_smoothing = 0.5 : f32} : (tensor<4x48xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
