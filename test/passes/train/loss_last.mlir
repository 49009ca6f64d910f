// Where kept logits are more than the gradient of their weights, what adds up the loss follows backward, as far as it reads few numbers of
// each token. What reads logits stays where it is.
// RUN: zero-opt %s --nn-tile="parts=2 keep-logits" --nn-differentiate --nn-decompose --nn-loss-last | FileCheck %s
// RUN: zero-opt %s --nn-tile="parts=2" --nn-differentiate --nn-decompose > %t.before
// RUN: zero-opt %t.before --nn-loss-last | diff %t.before -

// CHECK-LABEL: func.func @train(
// CHECK: %[[LABELS:.*]] = nn.select %{{.*}} : tensor<600x2512xi1>, tensor<600x2512xf32>
// CHECK: nn.reduce sum %[[LABELS]] dims [1] : tensor<600x2512xf32> -> tensor<600xf32>
// CHECK: nn.gradient @"head#0"
// CHECK-NOT: tensor<600x2512xf32>
// CHECK: %[[FIRST:.*]] = nn.reduce sum %{{.*}} dims [0] : tensor<600xf32> -> tensor<f32>
// CHECK: %[[SECOND:.*]] = nn.reduce sum %{{.*}} dims [0] : tensor<600xf32> -> tensor<f32>
// CHECK: %[[BOTH:.*]] = nn.add %[[FIRST]], %[[SECOND]]
// CHECK: %[[LOSS:.*]] = nn.add %[[BOTH]], %{{.*}}
// CHECK-NEXT: return %[[LOSS]]
nn.parameter @head : tensor<5000x8xf32> {trainable = true}
func.func @train(%x: tensor<600x8xf32>, %labels: tensor<600xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %head = nn.get @head : tensor<5000x8xf32>
  %logits = nn.matmul %x, %head {transpose_rhs = true} : (tensor<600x8xf32>, tensor<5000x8xf32>) -> tensor<600x5000xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %scale {ignore_index = -100 : i64} : (tensor<600x5000xf32>, tensor<600xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<600xf32>)
  return %loss : tensor<f32>
}
