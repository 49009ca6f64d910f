// RUN: zero-opt %s --nn-simplify | FileCheck %s

// CHECK-LABEL: func.func @arithmetic(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32>
// CHECK-DAG: %[[SIX:.*]] = nn.constant dense<6.000000e+00> : tensor<4xf32>
// CHECK: %[[Y:.*]] = nn.mul %[[X]], %[[SIX]]
// CHECK-NEXT: %[[Z:.*]] = nn.sub %[[Y]], %[[X]]
// CHECK-NEXT: return %[[Z]]
func.func @arithmetic(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = nn.constant dense<0.0> : tensor<4xf32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %ones = nn.broadcast %one dims [] : tensor<f32> -> tensor<4xf32>
  %two = nn.constant dense<2.0> : tensor<4xf32>
  %three = nn.constant dense<3.0> : tensor<4xf32>
  %a = nn.mul %x, %ones : tensor<4xf32>
  %b = nn.add %zero, %a : tensor<4xf32>
  %c = nn.mul %b, %two : tensor<4xf32>
  %d = nn.mul %three, %c : tensor<4xf32>
  %n = nn.neg %x : tensor<4xf32>
  %e = nn.add %d, %n : tensor<4xf32>
  return %e : tensor<4xf32>
}

// CHECK-LABEL: func.func @flags(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8xf32>, %[[W:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.matmul %[[W]], %[[X]] {transpose_rhs = true} : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: return %[[Y]]
func.func @flags(%x: tensor<2x8xf32>, %w: tensor<4x8xf32>) -> tensor<4x2xf32> {
  %t = nn.transpose %w perm [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %y = nn.matmul %x, %t : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %z = nn.transpose %y perm [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  return %z : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @sum_of_repeated(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3xf32>
// CHECK: %[[FIVE:.*]] = nn.constant dense<5.000000e+00> : tensor<3xf32>
// CHECK: %[[Y:.*]] = nn.mul %[[X]], %[[FIVE]]
// CHECK: return %[[Y]]
func.func @sum_of_repeated(%x: tensor<3xf32>) -> tensor<3xf32> {
  %b = nn.broadcast %x dims [1] : tensor<3xf32> -> tensor<5x3xf32>
  %y = nn.reduce sum %b dims [0] : tensor<5x3xf32> -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// What is repeated alike is computed before it is repeated.
// CHECK-LABEL: func.func @repeat_later(
// CHECK: %[[Y:.*]] = nn.mul %{{.*}} : tensor<3xf32>
// CHECK: nn.broadcast %[[Y]] dims [1] : tensor<3xf32> -> tensor<5x3xf32>
func.func @repeat_later(%x: tensor<3xf32>, %z: tensor<3xf32>) -> tensor<5x3xf32> {
  %a = nn.broadcast %x dims [1] : tensor<3xf32> -> tensor<5x3xf32>
  %b = nn.broadcast %z dims [1] : tensor<3xf32> -> tensor<5x3xf32>
  %y = nn.mul %a, %b : tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// CHECK-LABEL: func.func @slices_of_a_whole(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x6xf32>
// CHECK-NEXT: return %[[X]]
func.func @slices_of_a_whole(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %a = nn.slice %x starts [0, 0] sizes [2, 4] steps [1, 1] : tensor<2x6xf32> -> tensor<2x4xf32>
  %b = nn.slice %x starts [0, 4] sizes [2, 2] steps [1, 1] : tensor<2x6xf32> -> tensor<2x2xf32>
  %y = nn.concat %a, %b dim 1 : (tensor<2x4xf32>, tensor<2x2xf32>) -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}

// Backward does not keep forward's exp alive, but shares its product.
nn.parameter @w : tensor<4x4xf32> {trainable = true}
// CHECK-LABEL: func.func @train(
// CHECK: %[[P:.*]] = nn.matmul
// CHECK: %[[E:.*]] = nn.exp %[[P]]
// CHECK: %[[LOSS:.*]] = nn.reduce sum %[[E]]
// CHECK-NOT: nn.matmul
// CHECK: %[[AGAIN:.*]] = nn.exp %[[P]]
// CHECK-NEXT: %[[G:.*]] = nn.mul %[[AGAIN]], %[[AGAIN]]
// CHECK-NEXT: nn.gradient @w, %[[G]]
func.func @train(%x: tensor<4x4xf32>) -> tensor<f32> {
  %w = nn.get @w : tensor<4x4xf32>
  %p = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = nn.exp %p : tensor<4x4xf32>
  %loss = nn.reduce sum %e dims [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %q = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = nn.exp %q : tensor<4x4xf32>
  %h = nn.exp %q : tensor<4x4xf32>
  %g = nn.mul %f, %h : tensor<4x4xf32>
  nn.gradient @w, %g : tensor<4x4xf32>
  return %loss : tensor<f32>
}

// A slice of what was padded, of which nothing is padding, and one that is part of it.
// CHECK-LABEL: func.func @padded(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<6xf32>
// CHECK-DAG: %[[INSIDE:.*]] = nn.slice %[[X]] starts [1] sizes [3] steps [1]
// CHECK-DAG: %[[PAD:.*]] = nn.pad %[[X]]
// CHECK-DAG: %[[EDGE:.*]] = nn.slice %[[PAD]] starts [1] sizes [3] steps [1]
// CHECK: return %[[INSIDE]], %[[EDGE]]
func.func @padded(%x: tensor<6xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %p = nn.pad %x with 0.0 : f32 low [2] high [1] interior [0] : tensor<6xf32> -> tensor<9xf32>
  %inside = nn.slice %p starts [3] sizes [3] steps [1] : tensor<9xf32> -> tensor<3xf32>
  %edge = nn.slice %p starts [1] sizes [3] steps [1] : tensor<9xf32> -> tensor<3xf32>
  return %inside, %edge : tensor<3xf32>, tensor<3xf32>
}
