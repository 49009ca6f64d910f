// RUN: zero-opt %s --nn-tidy-import --split-input-file | FileCheck %s

// Keys of the dynamo exporter: heads merged, transposed, heads split again, merged for the product.
// CHECK-LABEL: @keys
// CHECK-NEXT: %[[K:.*]] = nn.reshape %arg1 : tensor<2x4x8x16xf32> -> tensor<8x8x16xf32>
// CHECK-NEXT: nn.matmul %arg0, %[[K]] {transpose_rhs = true}
// CHECK-NEXT: return
func.func @keys(%q: tensor<8x8x16xf32>, %k: tensor<2x4x8x16xf32>) -> tensor<8x8x8xf32> {
  %0 = nn.reshape %k : tensor<2x4x8x16xf32> -> tensor<8x8x16xf32>
  %1 = nn.transpose %0 perm [0, 2, 1] : tensor<8x8x16xf32> -> tensor<8x16x8xf32>
  %2 = nn.reshape %1 : tensor<8x16x8xf32> -> tensor<2x4x16x8xf32>
  %3 = nn.reshape %2 : tensor<2x4x16x8xf32> -> tensor<8x16x8xf32>
  %4 = nn.matmul %q, %3 : (tensor<8x8x16xf32>, tensor<8x16x8xf32>) -> tensor<8x8x8xf32>
  return %4 : tensor<8x8x8xf32>
}

// -----
// The last two dimensions exchanged in rank 4, then merged.
// CHECK-LABEL: @keys_in_rank_4
// CHECK-NEXT: %[[K:.*]] = nn.reshape %arg1 : tensor<2x4x8x16xf32> -> tensor<8x8x16xf32>
// CHECK-NEXT: nn.matmul %arg0, %[[K]] {transpose_rhs = true}
func.func @keys_in_rank_4(%q: tensor<8x8x16xf32>, %k: tensor<2x4x8x16xf32>) -> tensor<8x8x8xf32> {
  %0 = nn.transpose %k perm [0, 1, 3, 2] : tensor<2x4x8x16xf32> -> tensor<2x4x16x8xf32>
  %1 = nn.reshape %0 : tensor<2x4x16x8xf32> -> tensor<8x16x8xf32>
  %2 = nn.matmul %q, %1 : (tensor<8x8x16xf32>, tensor<8x16x8xf32>) -> tensor<8x8x8xf32>
  return %2 : tensor<8x8x8xf32>
}

// -----
// This reshape mixes the exchanged dimensions: it stays.
// CHECK-LABEL: @mixed
// CHECK-NEXT: nn.transpose
// CHECK-NEXT: nn.reshape
// CHECK-NEXT: nn.matmul %arg0, %{{.*}} : (
func.func @mixed(%q: tensor<2x4x16xf32>, %k: tensor<2x4x8x16xf32>) -> tensor<2x4x32xf32> {
  %0 = nn.transpose %k perm [0, 1, 3, 2] : tensor<2x4x8x16xf32> -> tensor<2x4x16x8xf32>
  %1 = nn.reshape %0 : tensor<2x4x16x8xf32> -> tensor<2x16x32xf32>
  %2 = nn.matmul %q, %1 : (tensor<2x4x16xf32>, tensor<2x16x32xf32>) -> tensor<2x4x32xf32>
  return %2 : tensor<2x4x32xf32>
}

// -----
// Position embeddings 0 to 2 of 5.
// CHECK-LABEL: @positions
// CHECK: nn.slice %arg0 starts [0, 0] sizes [3, 2] steps [1, 1]
// CHECK-NOT: nn.gather
func.func @positions(%w: tensor<5x2xf32>) -> tensor<1x3x2xf32> {
  %i = nn.constant dense<[[0, 1, 2]]> : tensor<1x3xi64>
  %y = nn.gather %w, %i : tensor<5x2xf32>, tensor<1x3xi64> -> tensor<1x3x2xf32>
  return %y : tensor<1x3x2xf32>
}

// -----
// CHECK-LABEL: @scattered_rows
// CHECK: nn.gather
func.func @scattered_rows(%w: tensor<5x2xf32>) -> tensor<3x2xf32> {
  %i = nn.constant dense<[0, 2, 1]> : tensor<3xi64>
  %y = nn.gather %w, %i : tensor<5x2xf32>, tensor<3xi64> -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----
// CHECK-LABEL: @conversions
// CHECK-NEXT: %[[F:.*]] = nn.cast %arg0 : tensor<2xi1> -> tensor<2xf32>
// CHECK-NEXT: %[[I:.*]] = nn.cast %arg1 : tensor<2xi64> -> tensor<2xi32>
// CHECK-NEXT: %[[W:.*]] = nn.cast %[[I]] : tensor<2xi32> -> tensor<2xi64>
// CHECK-NEXT: return %arg0, %[[F]], %[[W]]
func.func @conversions(%b: tensor<2xi1>, %i: tensor<2xi64>) -> (tensor<2xi1>, tensor<2xf32>, tensor<2xi64>) {
  %0 = nn.cast %b : tensor<2xi1> -> tensor<2xi64>
  %1 = nn.cast %0 : tensor<2xi64> -> tensor<2xi1>
  %2 = nn.cast %0 : tensor<2xi64> -> tensor<2xf32>
  %3 = nn.cast %i : tensor<2xi64> -> tensor<2xi32>
  %4 = nn.cast %3 : tensor<2xi32> -> tensor<2xi64>
  return %1, %2, %4 : tensor<2xi1>, tensor<2xf32>, tensor<2xi64>
}

// -----
// CHECK-LABEL: @logic
// CHECK-NEXT: %[[T:.*]] = nn.constant dense<true>
// CHECK-NEXT: return %arg0, %[[T]], %arg0
func.func @logic(%b: tensor<2xi1>) -> (tensor<2xi1>, tensor<2xi1>, tensor<2xi1>) {
  %t = nn.constant dense<true> : tensor<2xi1>
  %0 = nn.and %t, %b : tensor<2xi1>
  %1 = nn.or %b, %t : tensor<2xi1>
  %2 = nn.not %b : tensor<2xi1>
  %3 = nn.not %2 : tensor<2xi1>
  return %0, %1, %3 : tensor<2xi1>, tensor<2xi1>, tensor<2xi1>
}
