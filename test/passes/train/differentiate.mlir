// RUN: zero-opt %s --split-input-file --nn-differentiate | FileCheck %s
// RUN: zero-opt %s --split-input-file --nn-differentiate 2>&1 >/dev/null | FileCheck %s --check-prefix=WARNING

// The gradient of the last layer leaves before the first layer's is begun; reads move to their first use.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8xf32>
// CHECK: %[[W1:.*]] = nn.get @w1
// CHECK-NEXT: %[[H:.*]] = nn.matmul %[[X]], %[[W1]]
// CHECK-NEXT: %[[T:.*]] = nn.tanh %[[H]]
// CHECK-NEXT: %[[W2:.*]] = nn.get @w2
// CHECK-NEXT: nn.matmul %[[T]], %[[W2]]
// CHECK: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = nn.broadcast %[[ONE]] dims [] : tensor<f32> -> tensor<2x4xf32>
// CHECK: %[[DT:.*]] = nn.matmul %[[DY]], %[[W2]] {transpose_rhs = true}
// CHECK: %[[DW2:.*]] = nn.matmul %[[T]], %[[DY]] {transpose_lhs = true}
// CHECK: nn.gradient @w2, %[[DW2]]
// CHECK: %[[DH:.*]] = nn.mul %[[DT]]
// The data needs no gradient: one product is left.
// CHECK-NEXT: %[[DW1:.*]] = nn.matmul %[[X]], %[[DH]] {transpose_lhs = true}
// CHECK-NEXT: nn.gradient @w1, %[[DW1]]
// CHECK-NEXT: return
nn.parameter @w1 : tensor<8x8xf32> {trainable = true}
nn.parameter @w2 : tensor<8x4xf32> {trainable = true}
func.func @train(%x: tensor<2x8xf32> {nn.name = "x"}) -> tensor<f32> {
  %w1 = nn.get @w1 : tensor<8x8xf32>
  %w2 = nn.get @w2 : tensor<8x4xf32>
  %h = nn.matmul %x, %w1 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %t = nn.tanh %h : tensor<2x8xf32>
  %y = nn.matmul %t, %w2 : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %loss = nn.reduce sum %y dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A shared parameter has one gradient, the sum; frozen and unused parameters have none.
// CHECK-LABEL: nn.parameter @shared
// CHECK-SAME: trainable = true
// CHECK: nn.parameter @unused
// CHECK-SAME: trainable = false
// CHECK-LABEL: func.func @train(
// CHECK: %[[SUM:.*]] = nn.add
// CHECK-NEXT: nn.gradient @shared, %[[SUM]]
// CHECK-NOT: nn.gradient
nn.parameter @shared : tensor<4xf32> {trainable = true}
nn.parameter @frozen : tensor<4xf32> {trainable = false}
nn.parameter @unused : tensor<4xf32> {trainable = true}
func.func @train() -> tensor<f32> {
  %a = nn.get @shared : tensor<4xf32>
  %f = nn.get @frozen : tensor<4xf32>
  %u = nn.get @unused : tensor<4xf32>
  %x = nn.mul %a, %f : tensor<4xf32>
  %b = nn.get @shared : tensor<4xf32>
  %y = nn.mul %x, %b : tensor<4xf32>
  %loss = nn.reduce sum %y dims [0] : tensor<4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
// WARNING: warning: parameter 'unused' does not influence the loss and is not trained

// -----

// The gradient of a depthwise convolution's input is another one: of what arrives, apart by the stride, by the reversed kernel.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[D:[a-z0-9]+]]: tensor<1x4x2xf32>
// CHECK: %[[K:.*]] = nn.get @kernel
// CHECK: %[[APART:.*]] = nn.pad %[[D]] with 0.000000e+00 : f32 low [0, 0, 0] high [0, 0, 0] interior [0, 1, 0]
// CHECK: %[[REVERSED:.*]] = nn.slice %[[K]] starts [2, 0] sizes [3, 2] steps [-1, 1]
// CHECK: %[[DX:.*]] = nn.depthwise %[[APART]] by %[[REVERSED]] low [1] high [1] strides [1] dilations [1]
// CHECK-COUNT-3: nn.reduce sum %{{.*}} dims [0, 1]
// CHECK: %[[DK:.*]] = nn.concat
// CHECK: nn.gradient @places, %[[DX]]
// CHECK: nn.gradient @kernel, %[[DK]]
nn.parameter @kernel : tensor<3x2xf32> {trainable = true}
nn.parameter @places : tensor<1x7x2xf32> {trainable = true}
func.func @train(%y: tensor<1x4x2xf32>) -> tensor<f32> {
  %x = nn.get @places : tensor<1x7x2xf32>
  %k = nn.get @kernel : tensor<3x2xf32>
  %c = nn.depthwise %x by %k low [1] high [1] strides [2] dilations [1] : (tensor<1x7x2xf32>, tensor<3x2xf32>) -> tensor<1x4x2xf32>
  %m = nn.mul %c, %y : tensor<1x4x2xf32>
  %loss = nn.reduce sum %m dims [0, 1, 2] : tensor<1x4x2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Gradients of slices that overlap nowhere are joined, along one dimension after another; where no slice was there are zeros.
// CHECK-LABEL: func.func @train(
// CHECK-NOT: nn.add
// CHECK: %[[ROWS:.*]] = nn.concat %{{.*}}, %{{.*}} dim 0 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
// CHECK: %[[END:.*]] = nn.pad %{{.*}} with 0.000000e+00 : f32 low [0, 0] high [0, 1] interior [0, 0] : tensor<2x1xf32> -> tensor<2x2xf32>
// CHECK: %[[ALL:.*]] = nn.concat %[[ROWS]], %[[END]] dim 1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
// CHECK: nn.gradient @places, %[[ALL]]
nn.parameter @places : tensor<2x4xf32> {trainable = true}
func.func @train(%a: tensor<1x2xf32>, %b: tensor<1x2xf32>, %c: tensor<2x1xf32>) -> tensor<f32> {
  %x = nn.get @places : tensor<2x4xf32>
  %p = nn.slice %x starts [1, 0] sizes [1, 2] steps [1, 1] : tensor<2x4xf32> -> tensor<1x2xf32>
  %q = nn.slice %x starts [0, 0] sizes [1, 2] steps [1, 1] : tensor<2x4xf32> -> tensor<1x2xf32>
  %r = nn.slice %x starts [0, 2] sizes [2, 1] steps [1, 1] : tensor<2x4xf32> -> tensor<2x1xf32>
  %pa = nn.mul %p, %a : tensor<1x2xf32>
  %qb = nn.mul %q, %b : tensor<1x2xf32>
  %rc = nn.mul %r, %c : tensor<2x1xf32>
  %s = nn.reduce sum %pa dims [0, 1] : tensor<1x2xf32> -> tensor<f32>
  %t = nn.reduce sum %qb dims [0, 1] : tensor<1x2xf32> -> tensor<f32>
  %u = nn.reduce sum %rc dims [0, 1] : tensor<2x1xf32> -> tensor<f32>
  %st = nn.mul %s, %t : tensor<f32>
  %loss = nn.mul %st, %u : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Windows over each other are added.
// CHECK-LABEL: func.func @train(
// CHECK-COUNT-2: nn.pad
// CHECK: %[[SUM:.*]] = nn.add
// CHECK: nn.gradient @places, %[[SUM]]
nn.parameter @places : tensor<4xf32> {trainable = true}
func.func @train(%a: tensor<3xf32>) -> tensor<f32> {
  %x = nn.get @places : tensor<4xf32>
  %p = nn.slice %x starts [0] sizes [3] steps [1] : tensor<4xf32> -> tensor<3xf32>
  %q = nn.slice %x starts [1] sizes [3] steps [1] : tensor<4xf32> -> tensor<3xf32>
  %pq = nn.mul %p, %q : tensor<3xf32>
  %loss = nn.reduce sum %pq dims [0] : tensor<3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Eight products of one row each, of weights that a loop over time has used eight times, are one of eight rows, in the order of forward.
// CHECK-LABEL: func.func @train(
// CHECK: %[[LHS:.*]] = nn.concat %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7 dim 0
// CHECK: %[[RHS:.*]] = nn.concat
// CHECK: %[[ALL:.*]] = nn.matmul %[[LHS]], %[[RHS]] {transpose_lhs = true} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: nn.gradient @weights, %[[ALL]]
nn.parameter @weights : tensor<8x8xf32> {trainable = true}
func.func @train(%x0: tensor<1x8xf32>, %x1: tensor<1x8xf32>, %x2: tensor<1x8xf32>, %x3: tensor<1x8xf32>, %x4: tensor<1x8xf32>, %x5: tensor<1x8xf32>, %x6: tensor<1x8xf32>, %x7: tensor<1x8xf32>) -> tensor<f32> {
  %w = nn.get @weights : tensor<8x8xf32>
  %y0 = nn.matmul %x0, %w : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %y1 = nn.matmul %x1, %w : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %y2 = nn.matmul %x2, %w : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %y3 = nn.matmul %x3, %w : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %y4 = nn.matmul %x4, %w : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %y5 = nn.matmul %x5, %w : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %y6 = nn.matmul %x6, %w : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %y7 = nn.matmul %x7, %w : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %m1 = nn.mul %y0, %y1 : tensor<1x8xf32>
  %m2 = nn.mul %m1, %y2 : tensor<1x8xf32>
  %m3 = nn.mul %m2, %y3 : tensor<1x8xf32>
  %m4 = nn.mul %m3, %y4 : tensor<1x8xf32>
  %m5 = nn.mul %m4, %y5 : tensor<1x8xf32>
  %m6 = nn.mul %m5, %y6 : tensor<1x8xf32>
  %m7 = nn.mul %m6, %y7 : tensor<1x8xf32>
  %loss = nn.reduce sum %m7 dims [0, 1] : tensor<1x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
