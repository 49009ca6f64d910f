// RUN: zero-opt %s --nn-channels-last --split-input-file | FileCheck %s

// A norm by running statistics, an activation and what another convolution gave: all in the order of the product.
// CHECK-LABEL: @between_convolutions
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x8x16xf32>, %[[Y:.*]]: tensor<2x8x8x16xf32>, %[[SCALE:.*]]: tensor<16xf32>)
// CHECK-NEXT: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<2x8x8x16xf32>
// CHECK-NEXT: %[[S:.*]] = nn.broadcast %[[SCALE]] dims [3] : tensor<16xf32> -> tensor<2x8x8x16xf32>
// CHECK-NEXT: %[[N:.*]] = nn.mul %[[X]], %[[S]]
// CHECK-NEXT: %[[A:.*]] = nn.max %[[N]], %[[ZERO]]
// CHECK-NEXT: %[[SUM:.*]] = nn.add %[[A]], %[[Y]]
// CHECK-NEXT: return %[[SUM]]
func.func @between_convolutions(%x: tensor<2x8x8x16xf32>, %y: tensor<2x8x8x16xf32>, %scale: tensor<16xf32>) -> tensor<2x8x8x16xf32> {
  %0 = nn.transpose %x perm [0, 3, 1, 2] : tensor<2x8x8x16xf32> -> tensor<2x16x8x8xf32>
  %1 = nn.broadcast %scale dims [1] : tensor<16xf32> -> tensor<2x16x8x8xf32>
  %2 = nn.mul %0, %1 : tensor<2x16x8x8xf32>
  %3 = nn.constant dense<0.0> : tensor<2x16x8x8xf32>
  %4 = nn.max %2, %3 : tensor<2x16x8x8xf32>
  %5 = nn.transpose %y perm [0, 3, 1, 2] : tensor<2x8x8x16xf32> -> tensor<2x16x8x8xf32>
  %6 = nn.add %4, %5 : tensor<2x16x8x8xf32>
  %7 = nn.transpose %6 perm [0, 2, 3, 1] : tensor<2x16x8x8xf32> -> tensor<2x8x8x16xf32>
  return %7 : tensor<2x8x8x16xf32>
}

// -----
// A pool, which pads and cuts; two halves joined; a picture repeated to twice its size; and sums over places.
// CHECK-LABEL: @moved
// CHECK-NEXT: %[[P:.*]] = nn.pad %arg0 with 0xFF800000 : f32 low [0, 1, 0, 0] high [0, 0, 1, 0] interior [0, 0, 0, 0] : tensor<2x4x4x6xf32> -> tensor<2x5x5x6xf32>
// CHECK-NEXT: %[[C:.*]] = nn.slice %[[P]] starts [0, 0, 1, 2] sizes [2, 4, 4, 4] steps [1, 1, 1, 1]
// CHECK-NEXT: %[[J:.*]] = nn.concat %[[C]], %arg0 dim 3 : (tensor<2x4x4x4xf32>, tensor<2x4x4x6xf32>) -> tensor<2x4x4x10xf32>
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[J]] dims [0, 1, 3, 5] : tensor<2x4x4x10xf32> -> tensor<2x4x2x4x2x10xf32>
// CHECK-NEXT: %[[W:.*]] = nn.reshape %[[B]] : tensor<2x4x2x4x2x10xf32> -> tensor<2x8x8x10xf32>
// CHECK-NEXT: %[[R:.*]] = nn.reduce sum %[[W]] dims [1, 2] : tensor<2x8x8x10xf32> -> tensor<2x10xf32>
// CHECK-NEXT: return %[[R]]
func.func @moved(%x: tensor<2x4x4x6xf32>) -> tensor<2x10xf32> {
  %0 = nn.transpose %x perm [0, 3, 1, 2] : tensor<2x4x4x6xf32> -> tensor<2x6x4x4xf32>
  %1 = nn.pad %0 with 0xFF800000 : f32 low [0, 0, 1, 0] high [0, 0, 0, 1] interior [0, 0, 0, 0] : tensor<2x6x4x4xf32> -> tensor<2x6x5x5xf32>
  %2 = nn.slice %1 starts [0, 2, 0, 1] sizes [2, 4, 4, 4] steps [1, 1, 1, 1] : tensor<2x6x5x5xf32> -> tensor<2x4x4x4xf32>
  %3 = nn.concat %2, %0 dim 1 : (tensor<2x4x4x4xf32>, tensor<2x6x4x4xf32>) -> tensor<2x10x4x4xf32>
  %4 = nn.broadcast %3 dims [0, 1, 2, 4] : tensor<2x10x4x4xf32> -> tensor<2x10x4x2x4x2xf32>
  %5 = nn.reshape %4 : tensor<2x10x4x2x4x2xf32> -> tensor<2x10x8x8xf32>
  %6 = nn.reduce sum %5 dims [2, 3] : tensor<2x10x8x8xf32> -> tensor<2x10xf32>
  return %6 : tensor<2x10xf32>
}

// -----
// A sum that has channels before places moves what it leaves. What stays: a tensor that would have to be moved, groups of channels, and matrices.
// CHECK-LABEL: @needed
// CHECK-NEXT: %[[T:.*]] = nn.transpose %arg0 perm [0, 3, 1, 2]
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum %arg0 dims [2] : tensor<2x4x4x6xf32> -> tensor<2x4x6xf32>
// CHECK-NEXT: nn.transpose %[[S]] perm [0, 2, 1] : tensor<2x4x6xf32> -> tensor<2x6x4xf32>
// CHECK-NEXT: nn.add %[[T]], %arg1
// CHECK-NEXT: nn.reshape %[[T]] : tensor<2x6x4x4xf32> -> tensor<2x2x48xf32>
// CHECK-NEXT: %[[M:.*]] = nn.transpose %arg2 perm [0, 2, 1]
// CHECK-NEXT: nn.exp %[[M]]
func.func @needed(%x: tensor<2x4x4x6xf32>, %y: tensor<2x6x4x4xf32>, %m: tensor<2x4x6xf32>)
    -> (tensor<2x6x4xf32>, tensor<2x6x4x4xf32>, tensor<2x2x48xf32>, tensor<2x6x4xf32>) {
  %0 = nn.transpose %x perm [0, 3, 1, 2] : tensor<2x4x4x6xf32> -> tensor<2x6x4x4xf32>
  %1 = nn.reduce sum %0 dims [3] : tensor<2x6x4x4xf32> -> tensor<2x6x4xf32>
  %2 = nn.add %0, %y : tensor<2x6x4x4xf32>
  %3 = nn.reshape %0 : tensor<2x6x4x4xf32> -> tensor<2x2x48xf32>
  %4 = nn.transpose %m perm [0, 2, 1] : tensor<2x4x6xf32> -> tensor<2x6x4xf32>
  %5 = nn.exp %4 : tensor<2x6x4xf32>
  return %1, %2, %3, %5 : tensor<2x6x4xf32>, tensor<2x6x4x4xf32>, tensor<2x2x48xf32>, tensor<2x6x4xf32>
}

// -----
// A number for each channel and sample keeps its places of one.
// CHECK-LABEL: @of_each_sample
// CHECK-NEXT: %[[E:.*]] = nn.reshape %arg1 : tensor<2x6x1x1xf32> -> tensor<2x1x1x6xf32>
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[E]] dims [0, 1, 2, 3] : tensor<2x1x1x6xf32> -> tensor<2x4x4x6xf32>
// CHECK-NEXT: %[[S:.*]] = nn.add %arg0, %[[B]]
// CHECK-NEXT: nn.transpose %[[S]] perm [0, 3, 1, 2]
func.func @of_each_sample(%x: tensor<2x4x4x6xf32>, %e: tensor<2x6x1x1xf32>) -> tensor<2x6x4x4xf32> {
  %0 = nn.transpose %x perm [0, 3, 1, 2] : tensor<2x4x4x6xf32> -> tensor<2x6x4x4xf32>
  %1 = nn.broadcast %e dims [0, 1, 2, 3] : tensor<2x6x1x1xf32> -> tensor<2x6x4x4xf32>
  %2 = nn.add %0, %1 : tensor<2x6x4x4xf32>
  return %2 : tensor<2x6x4x4xf32>
}
