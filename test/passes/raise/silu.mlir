// RUN: zero-opt %s --nn-raise-silu --split-input-file | FileCheck %s

// CHECK-LABEL: @product
// CHECK-NEXT: nn.silu %arg0 : tensor<8xf32>
// CHECK-NEXT: return
func.func @product(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = nn.sigmoid %x : tensor<8xf32>
  %y = nn.mul %s, %x : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----
// CHECK-LABEL: @quotient
// CHECK-NEXT: nn.silu %arg0
// CHECK-NEXT: return
func.func @quotient(%x: tensor<8xf32>) -> tensor<8xf32> {
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %n = nn.neg %x : tensor<8xf32>
  %e = nn.exp %n : tensor<8xf32>
  %d = nn.add %e, %one : tensor<8xf32>
  %y = nn.div %x, %d : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----
// CLIP's quick GELU: the sigmoid is of 1.702 x.
// CHECK-LABEL: @quick_gelu
// CHECK-NOT: nn.silu
// CHECK: return
func.func @quick_gelu(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = nn.constant dense<1.702> : tensor<8xf32>
  %0 = nn.mul %x, %c : tensor<8xf32>
  %s = nn.sigmoid %0 : tensor<8xf32>
  %y = nn.mul %x, %s : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----
// A gate of another value.
// CHECK-LABEL: @gate
// CHECK-NOT: nn.silu
// CHECK: return
func.func @gate(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %s = nn.sigmoid %x : tensor<8xf32>
  %z = nn.mul %y, %s : tensor<8xf32>
  return %z : tensor<8xf32>
}
