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

// What windows look at is filled up with zeros once, rather than asked at each of eighteen indices whether it is there.
// CHECK-LABEL: func.func @padded
// CHECK: %[[P:.*]] = nn.launch @{{.*}}(%{{.*}}) : (tensor<32xf32>) -> tensor<40xf32>
// CHECK: nn.launch @{{.*}}(%[[P]]) : (tensor<40xf32>) -> tensor<8xf32>
func.func @padded(%x: tensor<32xf32>) -> tensor<8xf32> {
  %p = nn.pad %x with 0.0 : f32 low [4] high [4] interior [0] : tensor<32xf32> -> tensor<40xf32>
  %w0 = nn.slice %p starts [0] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w1 = nn.slice %p starts [1] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w2 = nn.slice %p starts [2] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w3 = nn.slice %p starts [3] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w4 = nn.slice %p starts [4] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w5 = nn.slice %p starts [5] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w6 = nn.slice %p starts [6] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w7 = nn.slice %p starts [7] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w8 = nn.slice %p starts [8] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w9 = nn.slice %p starts [9] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w10 = nn.slice %p starts [10] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w11 = nn.slice %p starts [11] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w12 = nn.slice %p starts [12] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w13 = nn.slice %p starts [13] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w14 = nn.slice %p starts [14] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w15 = nn.slice %p starts [15] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w16 = nn.slice %p starts [16] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
  %w17 = nn.slice %p starts [17] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
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

// A kernel that every place reads is turned once, so that its channels lie side by side.
// CHECK-LABEL: func.func @turned
// CHECK: %[[T:.*]] = nn.launch @{{.*}}(%{{.*}}) : (tensor<96x2xf32>) -> tensor<2x96xf32>
// CHECK: nn.launch @{{.*}}(%{{.*}}, %[[T]]) : (tensor<1024x96xf32>, tensor<2x96xf32>) -> tensor<1024x96xf32>
func.func @turned(%x: tensor<1024x96xf32>, %k: tensor<96x2xf32>) -> tensor<1024x96xf32> {
  %t = nn.transpose %k perm [1, 0] : tensor<96x2xf32> -> tensor<2x96xf32>
  %s = nn.slice %t starts [1, 0] sizes [1, 96] steps [1, 1] : tensor<2x96xf32> -> tensor<1x96xf32>
  %w = nn.broadcast %s dims [0, 1] : tensor<1x96xf32> -> tensor<1024x96xf32>
  %y = nn.mul %x, %w : tensor<1024x96xf32>
  return %y : tensor<1024x96xf32>
}

// For few places it is not worth a kernel.
// CHECK-LABEL: func.func @turned_for_few
// CHECK-NEXT: nn.launch @{{.*}}(%{{.*}}, %{{.*}}) : (tensor<64x96xf32>, tensor<96x2xf32>) -> tensor<64x96xf32>
// CHECK-NEXT: return
func.func @turned_for_few(%x: tensor<64x96xf32>, %k: tensor<96x2xf32>) -> tensor<64x96xf32> {
  %t = nn.transpose %k perm [1, 0] : tensor<96x2xf32> -> tensor<2x96xf32>
  %s = nn.slice %t starts [1, 0] sizes [1, 96] steps [1, 1] : tensor<2x96xf32> -> tensor<1x96xf32>
  %w = nn.broadcast %s dims [0, 1] : tensor<1x96xf32> -> tensor<64x96xf32>
  %y = nn.mul %x, %w : tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}

// A window is computed in the order of what it reads, and turned afterwards.
// CHECK-LABEL: func.func @window_turned
// CHECK: %[[W:.*]] = nn.launch @{{.*}}(%{{.*}}) : (tensor<16x4xf32>) -> tensor<8x4xf32>
// CHECK: nn.launch @{{.*}}(%[[W]], %{{.*}}) : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @window_turned(%x: tensor<16x4xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w0 = nn.slice %x starts [0, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w1 = nn.slice %x starts [1, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w2 = nn.slice %x starts [2, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w3 = nn.slice %x starts [3, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w4 = nn.slice %x starts [4, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w5 = nn.slice %x starts [5, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w6 = nn.slice %x starts [6, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w7 = nn.slice %x starts [7, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w8 = nn.slice %x starts [8, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %m1 = nn.max %w0, %w1 : tensor<8x4xf32>
  %m2 = nn.max %m1, %w2 : tensor<8x4xf32>
  %m3 = nn.max %m2, %w3 : tensor<8x4xf32>
  %m4 = nn.max %m3, %w4 : tensor<8x4xf32>
  %m5 = nn.max %m4, %w5 : tensor<8x4xf32>
  %m6 = nn.max %m5, %w6 : tensor<8x4xf32>
  %m7 = nn.max %m6, %w7 : tensor<8x4xf32>
  %m8 = nn.max %m7, %w8 : tensor<8x4xf32>
  %t = nn.transpose %m8 perm [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  %s = nn.add %t, %y : tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// And once, where sums over its rows go over them again.
// CHECK-LABEL: func.func @window_in_rows
// CHECK: %[[W:.*]] = nn.launch @{{.*}}(%{{.*}}) : (tensor<16x4xf32>) -> tensor<8x4xf32>
// CHECK: nn.launch @{{.*}}(%[[W]]) : (tensor<8x4xf32>) -> tensor<8x4xf32>
func.func @window_in_rows(%x: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %w0 = nn.slice %x starts [0, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w1 = nn.slice %x starts [1, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w2 = nn.slice %x starts [2, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w3 = nn.slice %x starts [3, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w4 = nn.slice %x starts [4, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w5 = nn.slice %x starts [5, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w6 = nn.slice %x starts [6, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w7 = nn.slice %x starts [7, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %w8 = nn.slice %x starts [8, 0] sizes [8, 4] steps [1, 1] : tensor<16x4xf32> -> tensor<8x4xf32>
  %m1 = nn.max %w0, %w1 : tensor<8x4xf32>
  %m2 = nn.max %m1, %w2 : tensor<8x4xf32>
  %m3 = nn.max %m2, %w3 : tensor<8x4xf32>
  %m4 = nn.max %m3, %w4 : tensor<8x4xf32>
  %m5 = nn.max %m4, %w5 : tensor<8x4xf32>
  %m6 = nn.max %m5, %w6 : tensor<8x4xf32>
  %m7 = nn.max %m6, %w7 : tensor<8x4xf32>
  %m8 = nn.max %m7, %w8 : tensor<8x4xf32>
  %r = nn.reduce sum %m8 dims [1] : tensor<8x4xf32> -> tensor<8xf32>
  %b = nn.broadcast %r dims [0] : tensor<8xf32> -> tensor<8x4xf32>
  %s = nn.sub %m8, %b : tensor<8x4xf32>
  return %s : tensor<8x4xf32>
}

// Three windows of three places are a window of nine: the inner ones are kept.
// CHECK-LABEL: func.func @windows_of_windows
// CHECK: %[[W:.*]] = nn.launch @{{.*}}(%{{.*}}) : (tensor<32xf32>) -> tensor<30xf32>
// CHECK: nn.launch @{{.*}}(%[[W]]) : (tensor<30xf32>) -> tensor<28xf32>
func.func @windows_of_windows(%x: tensor<32xf32>) -> tensor<28xf32> {
  %a = nn.slice %x starts [0] sizes [30] steps [1] : tensor<32xf32> -> tensor<30xf32>
  %b = nn.slice %x starts [1] sizes [30] steps [1] : tensor<32xf32> -> tensor<30xf32>
  %c = nn.slice %x starts [2] sizes [30] steps [1] : tensor<32xf32> -> tensor<30xf32>
  %ab = nn.max %a, %b : tensor<30xf32>
  %abc = nn.max %ab, %c : tensor<30xf32>
  %d = nn.slice %abc starts [0] sizes [28] steps [1] : tensor<30xf32> -> tensor<28xf32>
  %e = nn.slice %abc starts [1] sizes [28] steps [1] : tensor<30xf32> -> tensor<28xf32>
  %f = nn.slice %abc starts [2] sizes [28] steps [1] : tensor<30xf32> -> tensor<28xf32>
  %de = nn.max %d, %e : tensor<28xf32>
  %def = nn.max %de, %f : tensor<28xf32>
  return %def : tensor<28xf32>
}

// The same where each window is summed by a kernel of its own at first.
// CHECK-LABEL: func.func @padded_for_sums
// CHECK: %[[P:.*]] = nn.launch @{{.*}}(%{{.*}}) : (tensor<32x4xf32>) -> tensor<48x4xf32>
// CHECK: nn.launch @{{.*}}(%[[P]], %{{.*}}) : (tensor<48x4xf32>, tensor<32x4xf32>) -> (tensor<4xf32>,
func.func @padded_for_sums(%x: tensor<32x4xf32>, %y: tensor<32x4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %p = nn.pad %x with 0.0 : f32 low [8, 0] high [8, 0] interior [0, 0] : tensor<32x4xf32> -> tensor<48x4xf32>
  %w0 = nn.slice %p starts [0, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m0 = nn.mul %w0, %y : tensor<32x4xf32>
  %s0 = nn.reduce sum %m0 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w1 = nn.slice %p starts [1, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m1 = nn.mul %w1, %y : tensor<32x4xf32>
  %s1 = nn.reduce sum %m1 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w2 = nn.slice %p starts [2, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m2 = nn.mul %w2, %y : tensor<32x4xf32>
  %s2 = nn.reduce sum %m2 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w3 = nn.slice %p starts [3, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m3 = nn.mul %w3, %y : tensor<32x4xf32>
  %s3 = nn.reduce sum %m3 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w4 = nn.slice %p starts [4, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m4 = nn.mul %w4, %y : tensor<32x4xf32>
  %s4 = nn.reduce sum %m4 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w5 = nn.slice %p starts [5, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m5 = nn.mul %w5, %y : tensor<32x4xf32>
  %s5 = nn.reduce sum %m5 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w6 = nn.slice %p starts [6, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m6 = nn.mul %w6, %y : tensor<32x4xf32>
  %s6 = nn.reduce sum %m6 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w7 = nn.slice %p starts [7, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m7 = nn.mul %w7, %y : tensor<32x4xf32>
  %s7 = nn.reduce sum %m7 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w8 = nn.slice %p starts [8, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m8 = nn.mul %w8, %y : tensor<32x4xf32>
  %s8 = nn.reduce sum %m8 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w9 = nn.slice %p starts [9, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m9 = nn.mul %w9, %y : tensor<32x4xf32>
  %s9 = nn.reduce sum %m9 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w10 = nn.slice %p starts [10, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m10 = nn.mul %w10, %y : tensor<32x4xf32>
  %s10 = nn.reduce sum %m10 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w11 = nn.slice %p starts [11, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m11 = nn.mul %w11, %y : tensor<32x4xf32>
  %s11 = nn.reduce sum %m11 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w12 = nn.slice %p starts [12, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m12 = nn.mul %w12, %y : tensor<32x4xf32>
  %s12 = nn.reduce sum %m12 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w13 = nn.slice %p starts [13, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m13 = nn.mul %w13, %y : tensor<32x4xf32>
  %s13 = nn.reduce sum %m13 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w14 = nn.slice %p starts [14, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m14 = nn.mul %w14, %y : tensor<32x4xf32>
  %s14 = nn.reduce sum %m14 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w15 = nn.slice %p starts [15, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m15 = nn.mul %w15, %y : tensor<32x4xf32>
  %s15 = nn.reduce sum %m15 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  %w16 = nn.slice %p starts [16, 0] sizes [32, 4] steps [1, 1] : tensor<48x4xf32> -> tensor<32x4xf32>
  %m16 = nn.mul %w16, %y : tensor<32x4xf32>
  %s16 = nn.reduce sum %m16 dims [0] : tensor<32x4xf32> -> tensor<4xf32>
  return %s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7, %s8, %s9, %s10, %s11, %s12, %s13, %s14, %s15, %s16 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
