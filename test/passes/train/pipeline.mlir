// The whole phase on a small language model with tied embeddings.
// RUN: zero-opt %s --zero-train-pipeline | FileCheck %s

// CHECK: nn.parameter @emb
// CHECK-LABEL: func.func @train(
// CHECK-SAME: nn.role = "data"
// CHECK-SAME: nn.role = "labels"
// CHECK-SAME: nn.role = "loss_scale"
// CHECK: %[[W:.*]] = nn.get @emb
// CHECK-NOT: nn.transpose
// The product with the tied table, its loss and gradient, and the sum of both uses at the very end.
// CHECK: %[[LOGITS:.*]] = nn.matmul %{{.*}}, %[[W]] {transpose_rhs = true}
// CHECK: %[[LOSS:.*]] = nn.reduce sum %{{.*}} dims [0] : tensor<8xf32> -> tensor<f32>
// CHECK: %[[DLOGITS:.*]] = nn.mul %{{.*}} : tensor<8x50xf32>
// CHECK: %[[HEAD:.*]] = nn.matmul %[[DLOGITS]], %{{.*}} {transpose_lhs = true}
// CHECK: nn.gradient @b
// CHECK: %[[TABLE:.*]] = nn.scatter_add
// CHECK-NEXT: %[[BOTH:.*]] = nn.add %[[HEAD]], %[[TABLE]]
// CHECK-NEXT: nn.gradient @emb, %[[BOTH]]
// CHECK-NEXT: return %[[LOSS]]
// CHECK-LABEL: func.func @eval(
// CHECK-NOT: nn.gradient
// CHECK-NOT: nn.random
nn.parameter @emb : tensor<50x8xf32> {trainable = true}
nn.parameter @s : tensor<8xf32> {trainable = true}
nn.parameter @b : tensor<8xf32> {trainable = true}
func.func @forward(%ids: tensor<2x4xi64> {nn.name = "ids", nn.limit = 50 : i64}, %seed: tensor<2xi64> {nn.name = "seed", nn.role = "seed"})
    -> (tensor<2x4x50xf32> {nn.name = "logits"}) {
  %w = nn.get @emb : tensor<50x8xf32>
  %s = nn.get @s : tensor<8xf32>
  %b = nn.get @b : tensor<8xf32>
  %x = nn.gather %w, %ids : tensor<50x8xf32>, tensor<2x4xi64> -> tensor<2x4x8xf32>
  %d = nn.dropout %x, %seed {rate = 0.1 : f32, id = 0 : i64, samples = 2 : i64} : tensor<2x4x8xf32>, tensor<2xi64>
  %h, %m, %r = nn.layer_norm %d, %s, %b {eps = 1.0e-5 : f32} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  %flat = nn.reshape %h : tensor<2x4x8xf32> -> tensor<8x8xf32>
  %t = nn.transpose %w perm [1, 0] : tensor<50x8xf32> -> tensor<8x50xf32>
  %l = nn.matmul %flat, %t : (tensor<8x8xf32>, tensor<8x50xf32>) -> tensor<8x50xf32>
  %logits = nn.reshape %l : tensor<8x50xf32> -> tensor<2x4x50xf32>
  return %logits : tensor<2x4x50xf32>
}
