// RUN: zero-opt %s --split-input-file --nn-tile-tokens=tokens=3 | FileCheck %s
// RUN: zero-opt %s --split-input-file --nn-tile-tokens=tokens=3 --nn-differentiate | FileCheck %s --check-prefix=GRAD
// RUN: zero-opt %s --split-input-file --nn-tile-tokens | FileCheck %s --check-prefix=OFF
// RUN: not zero-opt %s --split-input-file --nn-tile-tokens=tokens=-1 2>&1 | FileCheck %s --check-prefix=NONE

// OFF-NOT: nn.rows
// NONE: error: a tile has one token or more, or 0 for all of them, not -1

// Eight tokens of two samples: tiles of 3, 3 and 2, the last first. The norm is made for the tile; the residual is not part of it.
// CHECK-LABEL: func.func @train(
// CHECK: %[[X:.*]] = nn.tanh
// CHECK: %[[FLAT:.*]] = nn.reshape %[[X]] : tensor<2x4x8xf32> -> tensor<8x8xf32>
// CHECK: %[[X2:.*]] = nn.rows %[[FLAT]] from 6 : tensor<8x8xf32> -> tensor<2x8xf32>
// CHECK: %[[N2:.*]], %{{.*}} = nn.rms_norm %[[X2]], %{{.*}} : (tensor<2x8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>)
// CHECK: %[[U2:.*]] = nn.matmul %{{.*}}, %{{.*}} {recompute} : (tensor<2x8xf32>, tensor<8x32xf32>) -> tensor<2x32xf32>
// CHECK: %[[B2:.*]] = nn.broadcast %{{.*}} dims [1] : tensor<32xf32> -> tensor<2x32xf32>
// CHECK: nn.add
// CHECK: nn.gelu tanh %{{.*}} : tensor<2x32xf32>
// CHECK: %[[Y2:.*]] = nn.matmul %{{.*}}, %{{.*}} : (tensor<2x32xf32>, tensor<32x8xf32>) -> tensor<2x8xf32>
// CHECK: nn.rows %[[FLAT]] from 3 : tensor<8x8xf32> -> tensor<3x8xf32>
// CHECK: nn.rows %[[FLAT]] from 0 : tensor<8x8xf32> -> tensor<3x8xf32>
// CHECK: %[[Y0:.*]] = nn.matmul %{{.*}}, %{{.*}} : (tensor<3x32xf32>, tensor<32x8xf32>) -> tensor<3x8xf32>
// CHECK: nn.join_rows %[[Y0]], %{{.*}}, %[[Y2]] : (tensor<3x8xf32>, tensor<3x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
// CHECK-NOT: 8x32xf32> ->
// CHECK: return

// Backward begins with the first tile; each adds to what there is.
// GRAD-LABEL: func.func @train(
// GRAD: return
nn.parameter @scale : tensor<8xf32> {trainable = true}
nn.parameter @up : tensor<8x32xf32> {trainable = true}
nn.parameter @bias : tensor<32xf32> {trainable = true}
nn.parameter @down : tensor<32x8xf32> {trainable = true}
func.func @train(%in: tensor<2x4x8xf32>) -> tensor<f32> {
  %scale = nn.get @scale : tensor<8xf32>
  %up = nn.get @up : tensor<8x32xf32>
  %bias = nn.get @bias : tensor<32xf32>
  %down = nn.get @down : tensor<32x8xf32>
  %x = nn.tanh %in : tensor<2x4x8xf32>
  %n, %rstd = nn.rms_norm %x, %scale {eps = 1.0e-5 : f32} : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  %flat = nn.reshape %n : tensor<2x4x8xf32> -> tensor<8x8xf32>
  %u = nn.matmul %flat, %up : (tensor<8x8xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %u3 = nn.reshape %u : tensor<8x32xf32> -> tensor<2x4x32xf32>
  %b = nn.broadcast %bias dims [2] : tensor<32xf32> -> tensor<2x4x32xf32>
  %sum = nn.add %u3, %b : tensor<2x4x32xf32>
  %g = nn.gelu tanh %sum : tensor<2x4x32xf32>
  %g2 = nn.reshape %g : tensor<2x4x32xf32> -> tensor<8x32xf32>
  %y = nn.matmul %g2, %down : (tensor<8x32xf32>, tensor<32x8xf32>) -> tensor<8x8xf32>
  %y3 = nn.reshape %y : tensor<8x8xf32> -> tensor<2x4x8xf32>
  %res = nn.add %x, %y3 : tensor<2x4x8xf32>
  %loss = nn.reduce sum %res dims [0, 1, 2] : tensor<2x4x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Logits are of one tile, the loss is the sum of the tiles' losses, in their order.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[X:.*]]: tensor<8x8xf32>, %[[LABELS:.*]]: tensor<8xi64>
// CHECK: nn.rows %[[X]] from 6
// CHECK: nn.matmul %{{.*}} {transpose_rhs = true} : (tensor<2x8xf32>, tensor<50x8xf32>) -> tensor<2x50xf32>
// CHECK: nn.rows %[[LABELS]] from 6 : tensor<8xi64> -> tensor<2xi64>
// CHECK: %[[L2:.*]], %{{.*}} = nn.cross_entropy
// CHECK: %[[L1:.*]], %{{.*}} = nn.cross_entropy
// CHECK: %[[L0:.*]], %{{.*}} = nn.cross_entropy {{.*}} (tensor<3x50xf32>, tensor<3xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<3xf32>)
// CHECK: %[[S:.*]] = nn.add %[[L0]], %[[L1]]
// CHECK: %[[LOSS:.*]] = nn.add %[[S]], %[[L2]]
// CHECK: return %[[LOSS]]

// GRAD-LABEL: func.func @train(
// GRAD: return
nn.parameter @head : tensor<50x8xf32> {trainable = true}
func.func @train(%x: tensor<8x8xf32>, %labels: tensor<8xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %head = nn.get @head : tensor<50x8xf32>
  %logits = nn.matmul %x, %head {transpose_rhs = true} : (tensor<8x8xf32>, tensor<50x8xf32>) -> tensor<8x50xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %scale {ignore_index = -100 : i64} : (tensor<8x50xf32>, tensor<8xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<8xf32>)
  return %loss : tensor<f32>
}

// -----

// Dropout within a tile draws the numbers of its tokens: as many samples as tokens, counted from the first.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[SEED:.*]]: tensor<2xi64>
// CHECK: nn.matmul
// CHECK-DAG: nn.constant dense<[1, 4]> : tensor<2xi64>
// CHECK-DAG: nn.constant dense<[0, 6]> : tensor<2xi64>
// CHECK: nn.dropout %{{.*}}, %{{.*}} {id = 5 : i64, rate = 1.000000e-01 : f32, samples = 2 : i64} : tensor<2x32xf32>
// CHECK: nn.constant dense<[0, 3]> : tensor<2xi64>
// CHECK: nn.dropout {{.*}} samples = 3

// GRAD-LABEL: func.func @train(
// GRAD: return
nn.parameter @up : tensor<8x32xf32> {trainable = true}
nn.parameter @down : tensor<32x8xf32> {trainable = true}
func.func @train(%x: tensor<8x8xf32>, %seed: tensor<2xi64>) -> tensor<f32> {
  %up = nn.get @up : tensor<8x32xf32>
  %down = nn.get @down : tensor<32x8xf32>
  %u = nn.matmul %x, %up : (tensor<8x8xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %u3 = nn.reshape %u : tensor<8x32xf32> -> tensor<2x4x32xf32>
  %d = nn.dropout %u3, %seed {id = 5 : i64, rate = 0.1 : f32, samples = 2 : i64} : tensor<2x4x32xf32>, tensor<2xi64>
  %d2 = nn.reshape %d : tensor<2x4x32xf32> -> tensor<8x32xf32>
  %y = nn.matmul %d2, %down : (tensor<8x32xf32>, tensor<32x8xf32>) -> tensor<8x8xf32>
  %loss = nn.reduce sum %y dims [0, 1] : tensor<8x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
