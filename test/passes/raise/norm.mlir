// RUN: zero-opt %s --nn-raise-norm --split-input-file | FileCheck %s
// RUN: zero-opt %s --nn-tidy-import --nn-raise-norm --split-input-file | FileCheck %s

// torch's TorchScript exporter at opset 14: Sub, Pow 2, ReduceMean, Add, Sqrt, Div, Mul, Add.
// CHECK-LABEL: @layer_norm_by_division
// CHECK-NOT: nn.sqrt
// CHECK: nn.layer_norm %arg0, %arg1, %arg2 {eps = 9.99999996E-13 : f32}
// CHECK-NEXT: return
func.func @layer_norm_by_division(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %n = nn.constant dense<8.0> : tensor<2x3xf32>
  %two = nn.constant dense<2.0> : tensor<2x3x8xf32>
  %eps = nn.constant dense<9.99999996E-13> : tensor<2x3x1xf32>
  %0 = nn.reduce sum %x dims [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %1 = nn.div %0, %n : tensor<2x3xf32>
  %2 = nn.reshape %1 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %3 = nn.broadcast %2 dims [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %4 = nn.sub %x, %3 : tensor<2x3x8xf32>
  %5 = nn.pow %4, %two : tensor<2x3x8xf32>
  %6 = nn.reduce sum %5 dims [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %7 = nn.div %6, %n : tensor<2x3xf32>
  %8 = nn.reshape %7 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %9 = nn.add %8, %eps : tensor<2x3x1xf32>
  %10 = nn.sqrt %9 : tensor<2x3x1xf32>
  %11 = nn.broadcast %10 dims [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %12 = nn.div %4, %11 : tensor<2x3x8xf32>
  %13 = nn.broadcast %w dims [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %14 = nn.mul %12, %13 : tensor<2x3x8xf32>
  %15 = nn.broadcast %b dims [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %16 = nn.add %14, %15 : tensor<2x3x8xf32>
  return %16 : tensor<2x3x8xf32>
}

// -----
// Reciprocal root, the square as a product, means by multiplication, no bias; the addition after it is a residual.
// CHECK-LABEL: @layer_norm_by_rsqrt
// CHECK: %[[Y:.*]], %{{.*}}, %{{.*}} = nn.layer_norm %arg0, %arg1 {eps = 9.99999974E-6 : f32}
// CHECK-NEXT: nn.add %[[Y]], %arg2
func.func @layer_norm_by_rsqrt(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = nn.constant dense<0.125> : tensor<4xf32>
  %eps = nn.constant dense<1.0E-5> : tensor<4xf32>
  %0 = nn.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %1 = nn.mul %0, %n : tensor<4xf32>
  %2 = nn.broadcast %1 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %3 = nn.sub %x, %2 : tensor<4x8xf32>
  %4 = nn.mul %3, %3 : tensor<4x8xf32>
  %5 = nn.reduce sum %4 dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %6 = nn.mul %5, %n : tensor<4xf32>
  %7 = nn.add %6, %eps : tensor<4xf32>
  %8 = nn.rsqrt %7 : tensor<4xf32>
  %9 = nn.broadcast %8 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %10 = nn.mul %3, %9 : tensor<4x8xf32>
  %11 = nn.broadcast %w dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %12 = nn.mul %11, %10 : tensor<4x8xf32>
  %13 = nn.add %12, %r : tensor<4x8xf32>
  return %13 : tensor<4x8xf32>
}

// -----
// Llama: Pow, ReduceMean, Add, Sqrt, Reciprocal, Mul, weight on the left.
// CHECK-LABEL: @rms_norm
// CHECK: nn.rms_norm %arg0, %arg1 {eps = 9.99999997E-7 : f32}
// CHECK-NEXT: return
func.func @rms_norm(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %n = nn.constant dense<8.0> : tensor<2x3xf32>
  %two = nn.constant dense<2.0> : tensor<2x3x8xf32>
  %one = nn.constant dense<1.0> : tensor<2x3x1xf32>
  %eps = nn.constant dense<9.99999997E-7> : tensor<2x3x1xf32>
  %0 = nn.pow %x, %two : tensor<2x3x8xf32>
  %1 = nn.reduce sum %0 dims [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %2 = nn.div %1, %n : tensor<2x3xf32>
  %3 = nn.reshape %2 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %4 = nn.add %3, %eps : tensor<2x3x1xf32>
  %5 = nn.sqrt %4 : tensor<2x3x1xf32>
  %6 = nn.div %one, %5 : tensor<2x3x1xf32>
  %7 = nn.broadcast %6 dims [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %8 = nn.mul %x, %7 : tensor<2x3x8xf32>
  %9 = nn.broadcast %w dims [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %10 = nn.mul %9, %8 : tensor<2x3x8xf32>
  return %10 : tensor<2x3x8xf32>
}

// -----
// Half precision outside, f32 inside: the conversion stays after the operation.
// CHECK-LABEL: @rms_norm_with_conversions
// CHECK-DAG: %[[X:.*]] = nn.cast %arg0 : tensor<4x8xf16> -> tensor<4x8xf32>
// CHECK-DAG: %[[W:.*]] = nn.cast %arg1 : tensor<8xf16> -> tensor<8xf32>
// CHECK: %[[Y:.*]], %{{.*}} = nn.rms_norm %[[X]], %[[W]]
// CHECK-NEXT: nn.cast %[[Y]] : tensor<4x8xf32> -> tensor<4x8xf16>
// CHECK-NEXT: return
func.func @rms_norm_with_conversions(%h: tensor<4x8xf16>, %w: tensor<8xf16>) -> tensor<4x8xf16> {
  %n = nn.constant dense<8.0> : tensor<4xf32>
  %eps = nn.constant dense<1.0E-6> : tensor<4xf32>
  %x = nn.cast %h : tensor<4x8xf16> -> tensor<4x8xf32>
  %0 = nn.mul %x, %x : tensor<4x8xf32>
  %1 = nn.reduce sum %0 dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %2 = nn.div %1, %n : tensor<4xf32>
  %3 = nn.add %2, %eps : tensor<4xf32>
  %4 = nn.rsqrt %3 : tensor<4xf32>
  %5 = nn.broadcast %4 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %6 = nn.mul %x, %5 : tensor<4x8xf32>
  %7 = nn.cast %6 : tensor<4x8xf32> -> tensor<4x8xf16>
  %8 = nn.broadcast %w dims [1] : tensor<8xf16> -> tensor<4x8xf16>
  %9 = nn.mul %7, %8 : tensor<4x8xf16>
  return %9 : tensor<4x8xf16>
}

// -----
// Not a mean: the sum is divided by another number than the columns.
// CHECK-LABEL: @wrong_count
// CHECK-NOT: nn.rms_norm
// CHECK: nn.rsqrt
// CHECK-NOT: nn.rms_norm
func.func @wrong_count(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = nn.constant dense<7.0> : tensor<4xf32>
  %eps = nn.constant dense<1.0E-6> : tensor<4xf32>
  %0 = nn.mul %x, %x : tensor<4x8xf32>
  %1 = nn.reduce sum %0 dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %2 = nn.div %1, %n : tensor<4xf32>
  %3 = nn.add %2, %eps : tensor<4xf32>
  %4 = nn.rsqrt %3 : tensor<4xf32>
  %5 = nn.broadcast %4 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %6 = nn.mul %x, %5 : tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}

// -----
// Per column, not per row (square tensors make the two look alike).
// CHECK-LABEL: @over_columns
// CHECK-NOT: nn.rms_norm
// CHECK: nn.rsqrt
// CHECK-NOT: nn.rms_norm
func.func @over_columns(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %n = nn.constant dense<8.0> : tensor<8xf32>
  %eps = nn.constant dense<1.0E-6> : tensor<8xf32>
  %0 = nn.mul %x, %x : tensor<8x8xf32>
  %1 = nn.reduce sum %0 dims [0] : tensor<8x8xf32> -> tensor<8xf32>
  %2 = nn.div %1, %n : tensor<8xf32>
  %3 = nn.add %2, %eps : tensor<8xf32>
  %4 = nn.rsqrt %3 : tensor<8xf32>
  %5 = nn.broadcast %4 dims [1] : tensor<8xf32> -> tensor<8x8xf32>
  %6 = nn.mul %x, %5 : tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
}

// -----
// Another value is normalised than the one that was measured.
// CHECK-LABEL: @other_value
// CHECK-NOT: nn.rms_norm
// CHECK: nn.rsqrt
// CHECK-NOT: nn.rms_norm
func.func @other_value(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = nn.constant dense<8.0> : tensor<4xf32>
  %eps = nn.constant dense<1.0E-6> : tensor<4xf32>
  %0 = nn.mul %x, %x : tensor<4x8xf32>
  %1 = nn.reduce sum %0 dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %2 = nn.div %1, %n : tensor<4xf32>
  %3 = nn.add %2, %eps : tensor<4xf32>
  %4 = nn.rsqrt %3 : tensor<4xf32>
  %5 = nn.broadcast %4 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %6 = nn.mul %y, %5 : tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}
