// RUN: zero-opt %s --nn-fuse | FileCheck %s

// A sum that eighteen windows read is kept rather than computed at eighteen indices; that two windows read is computed twice.
// CHECK-LABEL: func.func @many
// CHECK: %[[S:.*]] = nn.launch @{{.*}}(%{{.*}}, %{{.*}}) : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
// CHECK: nn.launch @{{.*}}(%[[S]]) : (tensor<32xf32>) -> tensor<8xf32>
func.func @many(%x: tensor<32xf32>, %y: tensor<32xf32>) -> tensor<8xf32> {
  %s = nn.add %x, %y : tensor<32xf32>
  %w0 = nn.slice %s starts [0] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w1 = nn.slice %s starts [1] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w2 = nn.slice %s starts [2] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w3 = nn.slice %s starts [3] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w4 = nn.slice %s starts [4] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w5 = nn.slice %s starts [5] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w6 = nn.slice %s starts [6] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w7 = nn.slice %s starts [7] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w8 = nn.slice %s starts [8] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w9 = nn.slice %s starts [9] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w10 = nn.slice %s starts [10] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w11 = nn.slice %s starts [11] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w12 = nn.slice %s starts [12] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w13 = nn.slice %s starts [13] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w14 = nn.slice %s starts [14] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w15 = nn.slice %s starts [15] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w16 = nn.slice %s starts [16] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w17 = nn.slice %s starts [17] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %m1 = nn.max %w0, %w1 : tensor<8xf32>
  %m2 = nn.max %m1, %w2 : tensor<8xf32>
  %m3 = nn.max %m2, %w3 : tensor<8xf32>
  %m4 = nn.max %m3, %w4 : tensor<8xf32>
  %m5 = nn.max %m4, %w5 : tensor<8xf32>
  %m6 = nn.max %m5, %w6 : tensor<8xf32>
  %m7 = nn.max %m6, %w7 : tensor<8xf32>
  %m8 = nn.max %m7, %w8 : tensor<8xf32>
  %m9 = nn.max %m8, %w9 : tensor<8xf32>
  %m10 = nn.max %m9, %w10 : tensor<8xf32>
  %m11 = nn.max %m10, %w11 : tensor<8xf32>
  %m12 = nn.max %m11, %w12 : tensor<8xf32>
  %m13 = nn.max %m12, %w13 : tensor<8xf32>
  %m14 = nn.max %m13, %w14 : tensor<8xf32>
  %m15 = nn.max %m14, %w15 : tensor<8xf32>
  %m16 = nn.max %m15, %w16 : tensor<8xf32>
  %m17 = nn.max %m16, %w17 : tensor<8xf32>
  return %m17 : tensor<8xf32>
}

// CHECK-LABEL: func.func @few
// CHECK-NEXT: nn.launch @{{.*}}(%{{.*}}, %{{.*}}) : (tensor<32xf32>, tensor<32xf32>) -> tensor<8xf32>
// CHECK-NEXT: return
func.func @few(%x: tensor<32xf32>, %y: tensor<32xf32>) -> tensor<8xf32> {
  %s = nn.add %x, %y : tensor<32xf32>
  %w0 = nn.slice %s starts [0] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %w1 = nn.slice %s starts [1] sizes [8] steps [1] : tensor<32xf32> -> tensor<8xf32>
  %m = nn.max %w0, %w1 : tensor<8xf32>
  return %m : tensor<8xf32>
}
