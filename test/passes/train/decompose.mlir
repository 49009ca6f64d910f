// RUN: zero-opt %s --nn-decompose | FileCheck %s

// CHECK-LABEL: func.func @softmax(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK: %[[MAX:.*]] = nn.reduce max %[[X]] dims [1]
// CHECK: %[[SHIFTED:.*]] = nn.sub %[[X]]
// CHECK: %[[E:.*]] = nn.exp %[[SHIFTED]]
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[E]] dims [1]
// CHECK: %[[INVERSE:.*]] = nn.div %{{.*}}, %[[SUM]] : tensor<4xf32>
// CHECK: %[[SPREAD:.*]] = nn.broadcast %[[INVERSE]] dims [0]
// CHECK: nn.mul %[[E]], %[[SPREAD]]
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = nn.softmax %x : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// The variance comes from centred values.
// CHECK-LABEL: func.func @layer_norm(
// CHECK: %[[CENTRED:.*]] = nn.sub %{{.*}} : tensor<4x8xf32>
// CHECK: %[[SQUARE:.*]] = nn.mul %[[CENTRED]], %[[CENTRED]]
// CHECK: nn.reduce sum %[[SQUARE]] dims [1]
// CHECK: %[[RSTD:.*]] = nn.rsqrt %{{.*}} : tensor<4xf32>
// CHECK: return %{{.*}}, %{{.*}}, %[[RSTD]]
func.func @layer_norm(%x: tensor<4x8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) {
  %y, %m, %r = nn.layer_norm %x, %s, %b {eps = 1.0e-5 : f32} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return %y, %m, %r : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
}

// The label is compared with, never used as an index.
// CHECK-LABEL: func.func @cross_entropy(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32>, %[[LABELS:[a-z0-9]+]]: tensor<4xi64>
// CHECK-NOT: nn.take_along
// CHECK-NOT: nn.gather
// CHECK: %[[HERE:.*]] = nn.compare eq
// CHECK: nn.select %[[HERE]], %[[X]]
// CHECK: %[[COUNTS:.*]] = nn.compare ne %[[LABELS]]
// CHECK: %[[EACH:.*]] = nn.select %[[COUNTS]]
// CHECK: nn.reduce sum %[[EACH]] dims [0] : tensor<4xf32> -> tensor<f32>
func.func @cross_entropy(%x: tensor<4x8xf32>, %l: tensor<4xi64>, %s: tensor<1xf32>) -> tensor<f32> {
  %loss, %lse = nn.cross_entropy %x, %l, %s {ignore_index = -100 : i64} : (tensor<4x8xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}

// A smoothed label weighs all centred logits in one sum; the row's maximum is subtracted before anything is added.
// CHECK-LABEL: func.func @smoothed(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK: %[[CENTRED:.*]] = nn.sub %[[X]]
// CHECK: nn.exp %[[CENTRED]]
// CHECK-DAG: %[[AT:.*]] = nn.constant dense<7.812500e-01> : tensor<4x8xf32>
// CHECK-DAG: %[[ELSEWHERE:.*]] = nn.constant dense<3.125000e-02> : tensor<4x8xf32>
// CHECK-DAG: %[[HERE:.*]] = nn.compare eq
// CHECK: %[[Q:.*]] = nn.select %[[HERE]], %[[AT]], %[[ELSEWHERE]]
// CHECK: %[[TERMS:.*]] = nn.mul %[[Q]], %[[CENTRED]]
// CHECK: nn.reduce sum %[[TERMS]] dims [1]
func.func @smoothed(%x: tensor<4x8xf32>, %l: tensor<4xi64>, %s: tensor<1xf32>) -> tensor<f32> {
  %loss, %lse = nn.cross_entropy %x, %l, %s {ignore_index = -100 : i64, label_smoothing = 0.25 : f32} : (tensor<4x8xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}

// CHECK-LABEL: func.func @dropout(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK: %[[R:.*]] = nn.random %{{.*}} {id = 2 : i64, samples = 4 : i64}
// CHECK: %[[KEEP:.*]] = nn.compare ge %[[R]]
// CHECK: %[[SCALED:.*]] = nn.mul %[[X]]
// CHECK: nn.select %[[KEEP]], %[[SCALED]]
func.func @dropout(%x: tensor<4x8xf32>, %seed: tensor<2xi64>) -> tensor<4x8xf32> {
  %y = nn.dropout %x, %seed {rate = 0.25 : f32, id = 2 : i64, samples = 4 : i64} : tensor<4x8xf32>, tensor<2xi64>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @curves(
// CHECK-NOT: nn.gelu
// CHECK-NOT: nn.silu
// CHECK-NOT: nn.rms_norm
// CHECK: nn.erf
// CHECK-NOT: nn.tanh
// CHECK: nn.sigmoid
// CHECK: nn.sigmoid
// CHECK: nn.rsqrt
func.func @curves(%x: tensor<4x8xf32>, %s: tensor<8xf32>) -> tensor<4x8xf32> {
  %a = nn.gelu erf %x : tensor<4x8xf32>
  %b = nn.gelu tanh %a : tensor<4x8xf32>
  %c = nn.silu %b : tensor<4x8xf32>
  %y, %r = nn.rms_norm %c, %s {eps = 1.0e-5 : f32} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  return %y : tensor<4x8xf32>
}
