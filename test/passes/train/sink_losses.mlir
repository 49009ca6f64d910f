// RUN: zero-opt %s --split-input-file --nn-tile-tokens=tokens=2 --nn-differentiate --nn-sink-losses | FileCheck %s
// RUN: zero-opt %s --split-input-file --nn-differentiate --nn-sink-losses | FileCheck %s --check-prefix=ONE

// Of two tiles' logits each is followed by its gradients, and none is made twice. The sum follows the last term.
// CHECK-LABEL: func.func @train(
// CHECK: nn.matmul {{.*}} -> tensor<2x50xf32>
// CHECK-NEXT: nn.rows %{{.*}} from 0 : tensor<4xi64> -> tensor<2xi64>
// CHECK-NEXT: nn.reshape
// CHECK-NEXT: %[[L0:.*]], %{{.*}} = nn.cross_entropy
// CHECK: %[[G:.*]] = nn.matmul {{.*}} {transpose_lhs = true} {{.*}} -> tensor<50x8xf32>
// CHECK: nn.matmul {{.*}} -> tensor<2x50xf32>
// CHECK: %[[L1:.*]], %{{.*}} = nn.cross_entropy
// CHECK-NEXT: %[[LOSS:.*]] = nn.add %[[L0]], %[[L1]]
// CHECK: nn.matmul {{.*}} onto %[[G]] {transpose_lhs = true} {{.*}} -> tensor<50x8xf32>
// CHECK-NOT: -> tensor<2x50xf32>
// CHECK: return %[[LOSS]]

// One term stays where it is.
// ONE-LABEL: func.func @train(
// ONE: %[[LOSS:.*]], %{{.*}} = nn.cross_entropy
// ONE-NEXT: nn.broadcast
// ONE: return %[[LOSS]]
nn.parameter @head : tensor<50x8xf32> {trainable = true}
func.func @train(%x: tensor<4x8xf32>, %labels: tensor<2x2xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %head = nn.get @head : tensor<50x8xf32>
  %logits = nn.matmul %x, %head {transpose_rhs = true} : (tensor<4x8xf32>, tensor<50x8xf32>) -> tensor<4x50xf32>
  %flat = nn.reshape %labels : tensor<2x2xi64> -> tensor<4xi64>
  %loss, %lse = nn.cross_entropy %logits, %flat, %scale {ignore_index = -100 : i64} : (tensor<4x50xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
