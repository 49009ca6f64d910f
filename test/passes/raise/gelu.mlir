// RUN: zero-opt %s --nn-raise-gelu --split-input-file | FileCheck %s
// RUN: zero-opt %s --nn-tidy-import --nn-raise-gelu --split-input-file | FileCheck %s

// As BERT and ViT are exported: x / 1.4142135, x * (erf + 1), * 0.5.
// CHECK-LABEL: @erf_by_division
// CHECK-NEXT: nn.gelu erf %arg0 : tensor<4x8xf32>
// CHECK-NEXT: return
func.func @erf_by_division(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %root2 = nn.constant dense<1.41421354> : tensor<4x8xf32>
  %one = nn.constant dense<1.0> : tensor<4x8xf32>
  %half = nn.constant dense<0.5> : tensor<4x8xf32>
  %0 = nn.div %x, %root2 : tensor<4x8xf32>
  %1 = nn.erf %0 : tensor<4x8xf32>
  %2 = nn.add %1, %one : tensor<4x8xf32>
  %3 = nn.mul %x, %2 : tensor<4x8xf32>
  %4 = nn.mul %3, %half : tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

// -----
// Half of x first, the number broadcast from a scalar, 0.7071 as a factor on the left.
// CHECK-LABEL: @erf_by_product
// CHECK: nn.gelu erf %arg0
// CHECK-NOT: nn.erf
func.func @erf_by_product(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = nn.constant dense<0.707106769> : tensor<f32>
  %cs = nn.broadcast %c dims [] : tensor<f32> -> tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %0 = nn.mul %cs, %x : tensor<8xf32>
  %1 = nn.erf %0 : tensor<8xf32>
  %2 = nn.add %one, %1 : tensor<8xf32>
  %3 = nn.mul %half, %x : tensor<8xf32>
  %4 = nn.mul %3, %2 : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----
// x is a product itself, and phi is 0.5 erf + 0.5.
// CHECK-LABEL: @erf_of_product
// CHECK: %[[X:.*]] = nn.mul %arg0, %arg1
// CHECK: nn.gelu erf %[[X]]
// CHECK-NOT: nn.erf
func.func @erf_of_product(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %x = nn.mul %a, %b : tensor<8xf32>
  %c = nn.constant dense<0.707106769> : tensor<8xf32>
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %0 = nn.mul %x, %c : tensor<8xf32>
  %1 = nn.erf %0 : tensor<8xf32>
  %2 = nn.mul %1, %half : tensor<8xf32>
  %3 = nn.add %2, %half : tensor<8xf32>
  %4 = nn.mul %3, %x : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----
// GPT-2's: x³ as a power.
// CHECK-LABEL: @tanh_by_power
// CHECK: nn.gelu tanh %arg0
// CHECK-NOT: nn.tanh
func.func @tanh_by_power(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %three = nn.constant dense<3.0> : tensor<4x8xf32>
  %cubic = nn.constant dense<0.0447149985> : tensor<4x8xf32>
  %slope = nn.constant dense<0.797884583> : tensor<4x8xf32>
  %one = nn.constant dense<1.0> : tensor<4x8xf32>
  %half = nn.constant dense<0.5> : tensor<4x8xf32>
  %0 = nn.mul %x, %half : tensor<4x8xf32>
  %1 = nn.pow %x, %three : tensor<4x8xf32>
  %2 = nn.mul %1, %cubic : tensor<4x8xf32>
  %3 = nn.add %x, %2 : tensor<4x8xf32>
  %4 = nn.mul %3, %slope : tensor<4x8xf32>
  %5 = nn.tanh %4 : tensor<4x8xf32>
  %6 = nn.add %5, %one : tensor<4x8xf32>
  %7 = nn.mul %0, %6 : tensor<4x8xf32>
  return %7 : tensor<4x8xf32>
}

// -----
// The "fast" form: x * 0.79788 * (1 + 0.044715 * x * x).
// CHECK-LABEL: @tanh_factored
// CHECK: nn.gelu tanh %arg0
// CHECK-NOT: nn.tanh
func.func @tanh_factored(%x: tensor<8xf32>) -> tensor<8xf32> {
  %cubic = nn.constant dense<0.0447149985> : tensor<8xf32>
  %slope = nn.constant dense<0.797884583> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %0 = nn.mul %cubic, %x : tensor<8xf32>
  %1 = nn.mul %0, %x : tensor<8xf32>
  %2 = nn.add %1, %one : tensor<8xf32>
  %3 = nn.mul %x, %slope : tensor<8xf32>
  %4 = nn.mul %3, %2 : tensor<8xf32>
  %5 = nn.tanh %4 : tensor<8xf32>
  %6 = nn.add %5, %one : tensor<8xf32>
  %7 = nn.mul %half, %6 : tensor<8xf32>
  %8 = nn.mul %x, %7 : tensor<8xf32>
  return %8 : tensor<8xf32>
}

// -----
// Another function: the factor in front is not a half.
// CHECK-LABEL: @not_half
// CHECK-NOT: nn.gelu
// CHECK: nn.erf
// CHECK-NOT: nn.gelu
func.func @not_half(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = nn.constant dense<0.707106769> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %factor = nn.constant dense<0.4> : tensor<8xf32>
  %0 = nn.mul %x, %c : tensor<8xf32>
  %1 = nn.erf %0 : tensor<8xf32>
  %2 = nn.add %1, %one : tensor<8xf32>
  %3 = nn.mul %x, %2 : tensor<8xf32>
  %4 = nn.mul %3, %factor : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----
// A gate: the curve is of another value than the factor.
// CHECK-LABEL: @gate
// CHECK-NOT: nn.gelu
// CHECK: nn.erf
// CHECK-NOT: nn.gelu
func.func @gate(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c = nn.constant dense<0.707106769> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %0 = nn.mul %x, %c : tensor<8xf32>
  %1 = nn.erf %0 : tensor<8xf32>
  %2 = nn.add %1, %one : tensor<8xf32>
  %3 = nn.mul %y, %2 : tensor<8xf32>
  %4 = nn.mul %3, %half : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----
// Another cubic coefficient.
// CHECK-LABEL: @other_cubic
// CHECK-NOT: nn.gelu
// CHECK: nn.tanh
// CHECK-NOT: nn.gelu
func.func @other_cubic(%x: tensor<8xf32>) -> tensor<8xf32> {
  %three = nn.constant dense<3.0> : tensor<8xf32>
  %cubic = nn.constant dense<0.04> : tensor<8xf32>
  %slope = nn.constant dense<0.797884583> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %0 = nn.mul %x, %half : tensor<8xf32>
  %1 = nn.pow %x, %three : tensor<8xf32>
  %2 = nn.mul %1, %cubic : tensor<8xf32>
  %3 = nn.add %x, %2 : tensor<8xf32>
  %4 = nn.mul %3, %slope : tensor<8xf32>
  %5 = nn.tanh %4 : tensor<8xf32>
  %6 = nn.add %5, %one : tensor<8xf32>
  %7 = nn.mul %0, %6 : tensor<8xf32>
  return %7 : tensor<8xf32>
}
