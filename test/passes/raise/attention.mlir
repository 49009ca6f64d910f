// RUN: zero-opt %s --nn-raise-attention --nn-fold-constants --split-input-file | FileCheck %s

// GPT-2, eager: keys transposed by [0, 2, 3, 1], the scale after the product, a constant mask that is the causal triangle in
// the smallest number for every sample.
// CHECK-LABEL: @eager_causal
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x2x8xf32>, %[[K:.*]]: tensor<2x4x2x8xf32>, %[[V:.*]]: tensor<2x4x2x8xf32>)
// CHECK-DAG: %[[QT:.*]] = nn.transpose %[[Q]] perm [0, 2, 1, 3]
// CHECK-DAG: %[[KT:.*]] = nn.transpose %[[K]] perm [0, 2, 1, 3]
// CHECK-DAG: %[[VT:.*]] = nn.transpose %[[V]] perm [0, 2, 1, 3]
// CHECK: %[[Y:.*]], %{{.*}} = nn.attention %[[QT]], %[[KT]], %[[VT]] {causal = true, scale = 0.353553385 : f32}
// CHECK-NOT: nn.softmax
// CHECK: return %[[Y]]
func.func @eager_causal(%q: tensor<2x4x2x8xf32>, %k: tensor<2x4x2x8xf32>, %v: tensor<2x4x2x8xf32>) -> tensor<2x2x4x8xf32> {
  %qt = nn.transpose %q perm [0, 2, 1, 3] : tensor<2x4x2x8xf32> -> tensor<2x2x4x8xf32>
  %kt = nn.transpose %k perm [0, 2, 3, 1] : tensor<2x4x2x8xf32> -> tensor<2x2x8x4xf32>
  %vt = nn.transpose %v perm [0, 2, 1, 3] : tensor<2x4x2x8xf32> -> tensor<2x2x4x8xf32>
  %q3 = nn.reshape %qt : tensor<2x2x4x8xf32> -> tensor<4x4x8xf32>
  %k3 = nn.reshape %kt : tensor<2x2x8x4xf32> -> tensor<4x8x4xf32>
  %v3 = nn.reshape %vt : tensor<2x2x4x8xf32> -> tensor<4x4x8xf32>
  %s3 = nn.matmul %q3, %k3 : (tensor<4x4x8xf32>, tensor<4x8x4xf32>) -> tensor<4x4x4xf32>
  %s = nn.reshape %s3 : tensor<4x4x4xf32> -> tensor<2x2x4x4xf32>
  %c = nn.constant dense<0.353553385> : tensor<2x2x4x4xf32>
  %scaled = nn.mul %s, %c : tensor<2x2x4x4xf32>
  %mask = nn.constant dense<[[[[0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38, -3.40282347E+38],
                               [0.0, 0.0, 0.0, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0]]],
                             [[[0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38, -3.40282347E+38],
                               [0.0, 0.0, 0.0, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0]]]]> : tensor<2x1x4x4xf32>
  %masks = nn.broadcast %mask dims [0, 1, 2, 3] : tensor<2x1x4x4xf32> -> tensor<2x2x4x4xf32>
  %masked = nn.add %scaled, %masks : tensor<2x2x4x4xf32>
  %p = nn.softmax %masked : tensor<2x2x4x4xf32>
  %p3 = nn.reshape %p : tensor<2x2x4x4xf32> -> tensor<4x4x4xf32>
  %y3 = nn.matmul %p3, %v3 : (tensor<4x4x4xf32>, tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
  %y = nn.reshape %y3 : tensor<4x4x8xf32> -> tensor<2x2x4x8xf32>
  return %y : tensor<2x2x4x8xf32>
}

// -----
// PyTorch's scaled_dot_product_attention by the dynamo exporter: the root of the scale on q and on the transposed keys, heads repeated
// by expand, NaN replaced by zero. The mask comes from the user's data.
// CHECK-LABEL: @sdpa_grouped
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x3x8xf32>, %[[K:.*]]: tensor<2x2x3x8xf32>, %[[V:.*]]: tensor<2x2x3x8xf32>, %[[M:.*]]: tensor<2x1x3x3xi1>)
// CHECK: %[[MASK:.*]] = nn.select %[[M]], %{{.*}}, %{{.*}} : tensor<2x1x3x3xi1>, tensor<2x1x3x3xf32>
// CHECK: %[[Y:.*]], %{{.*}} = nn.attention %[[Q]], %[[K]], %[[V]] mask %[[MASK]] {scale = {{0.176776[0-9]*}} : f32}
// CHECK-NEXT: return %[[Y]]
func.func @sdpa_grouped(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>, %m: tensor<2x1x3x3xi1>) -> tensor<2x4x3x8xf32> {
  %root = nn.constant dense<0.420448214> : tensor<2x4x3x8xf32>
  %rootT = nn.constant dense<0.420448214> : tensor<2x4x8x3xf32>
  %zero = nn.constant dense<0.0> : tensor<2x1x3x3xf32>
  %low = nn.constant dense<0xFF800000> : tensor<2x1x3x3xf32>
  %zeros = nn.constant dense<0.0> : tensor<2x4x3x3xf32>
  %ku = nn.reshape %k : tensor<2x2x3x8xf32> -> tensor<2x2x1x3x8xf32>
  %ke = nn.broadcast %ku dims [0, 1, 2, 3, 4] : tensor<2x2x1x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %k3 = nn.reshape %ke : tensor<2x2x2x3x8xf32> -> tensor<8x3x8xf32>
  %kt = nn.transpose %k3 perm [0, 2, 1] : tensor<8x3x8xf32> -> tensor<8x8x3xf32>
  %k4 = nn.reshape %kt : tensor<8x8x3xf32> -> tensor<2x4x8x3xf32>
  %vu = nn.reshape %v : tensor<2x2x3x8xf32> -> tensor<2x2x1x3x8xf32>
  %ve = nn.broadcast %vu dims [0, 1, 2, 3, 4] : tensor<2x2x1x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %v3 = nn.reshape %ve : tensor<2x2x2x3x8xf32> -> tensor<8x3x8xf32>
  %qs = nn.mul %q, %root : tensor<2x4x3x8xf32>
  %ks = nn.mul %k4, %rootT : tensor<2x4x8x3xf32>
  %q3 = nn.reshape %qs : tensor<2x4x3x8xf32> -> tensor<8x3x8xf32>
  %ks3 = nn.reshape %ks : tensor<2x4x8x3xf32> -> tensor<8x8x3xf32>
  %s3 = nn.matmul %q3, %ks3 : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
  %s = nn.reshape %s3 : tensor<8x3x3xf32> -> tensor<2x4x3x3xf32>
  %mask = nn.select %m, %zero, %low : tensor<2x1x3x3xi1>, tensor<2x1x3x3xf32>
  %masks = nn.broadcast %mask dims [0, 1, 2, 3] : tensor<2x1x3x3xf32> -> tensor<2x4x3x3xf32>
  %masked = nn.add %s, %masks : tensor<2x4x3x3xf32>
  %p = nn.softmax %masked : tensor<2x4x3x3xf32>
  %nan = nn.is_nan %p : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xi1>
  %g = nn.select %nan, %zeros, %p : tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>
  %p3 = nn.reshape %g : tensor<2x4x3x3xf32> -> tensor<8x3x3xf32>
  %y3 = nn.matmul %p3, %v3 : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
  %y = nn.reshape %y3 : tensor<8x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----
// Scores replaced where a mask says so, in rank 3, divided by the scale; the mask is not the causal triangle (the first
// row may see the second key), so it stays.
// CHECK-LABEL: @selected
// CHECK: %[[MASK:.*]] = nn.constant dense<{{\[\[\[\[}}0.000000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00], [0.000000e+00, -1.000000e+30]]]]> : tensor<1x1x3x2xf32>
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[MASK]] {scale = 5.000000e-01 : f32} : (tensor<2x1x3x8xf32>, tensor<2x1x2x8xf32>, tensor<2x1x2x8xf32>, tensor<1x1x3x2xf32>)
// CHECK-NOT: nn.softmax
func.func @selected(%q: tensor<2x3x8xf32>, %k: tensor<2x2x8xf32>, %v: tensor<2x2x8xf32>) -> tensor<2x3x8xf32> {
  %two = nn.constant dense<2.0> : tensor<2x3x2xf32>
  %low = nn.constant dense<-1.0E+30> : tensor<2x3x2xf32>
  %m = nn.constant dense<[[false, false], [false, false], [false, true]]> : tensor<3x2xi1>
  %ms = nn.broadcast %m dims [1, 2] : tensor<3x2xi1> -> tensor<2x3x2xi1>
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x8xf32>, tensor<2x2x8xf32>) -> tensor<2x3x2xf32>
  %d = nn.div %s, %two : tensor<2x3x2xf32>
  %masked = nn.select %ms, %low, %d : tensor<2x3x2xi1>, tensor<2x3x2xf32>
  %p = nn.softmax %masked : tensor<2x3x2xf32>
  %y = nn.matmul %p, %v : (tensor<2x3x2xf32>, tensor<2x2x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----
// A number too small to swallow every score: replacing is not adding.
// CHECK-LABEL: @mild_replacement
// CHECK-NOT: nn.attention
// CHECK: nn.softmax
// CHECK-NOT: nn.attention
func.func @mild_replacement(%q: tensor<2x3x8xf32>, %k: tensor<2x2x8xf32>, %v: tensor<2x2x8xf32>, %m: tensor<2x3x2xi1>) -> tensor<2x3x8xf32> {
  %low = nn.constant dense<-1.0E+4> : tensor<2x3x2xf32>
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x8xf32>, tensor<2x2x8xf32>) -> tensor<2x3x2xf32>
  %masked = nn.select %m, %low, %s : tensor<2x3x2xi1>, tensor<2x3x2xf32>
  %p = nn.softmax %masked : tensor<2x3x2xf32>
  %y = nn.matmul %p, %v : (tensor<2x3x2xf32>, tensor<2x2x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----
// T5: the added bias is trained.
// CHECK-LABEL: @trained_bias
// CHECK: %[[B:.*]] = nn.get @bias
// CHECK: %[[H:.*]] = nn.reshape %[[B]] : tensor<3x2xf32> -> tensor<1x3x2xf32>
// CHECK: nn.attention {{.*}} bias %[[H]] {scale = 1.000000e+00 : f32} : (tensor<2x1x3x8xf32>, tensor<2x1x2x8xf32>, tensor<2x1x2x8xf32>, tensor<1x3x2xf32>)
// CHECK-NOT: nn.softmax
nn.parameter @bias : tensor<3x2xf32> {trainable = true}
func.func @trained_bias(%q: tensor<2x3x8xf32>, %k: tensor<2x2x8xf32>, %v: tensor<2x2x8xf32>) -> tensor<2x3x8xf32> {
  %b = nn.get @bias : tensor<3x2xf32>
  %bs = nn.broadcast %b dims [1, 2] : tensor<3x2xf32> -> tensor<2x3x2xf32>
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x8xf32>, tensor<2x2x8xf32>) -> tensor<2x3x2xf32>
  %biased = nn.add %s, %bs : tensor<2x3x2xf32>
  %p = nn.softmax %biased : tensor<2x3x2xf32>
  %y = nn.matmul %p, %v : (tensor<2x3x2xf32>, tensor<2x2x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----
// With it the padding that the data says, and the triangle of a decoder, as T5 adds them up: each is taken for what it is.
// CHECK-LABEL: @trained_bias_and_masks
// CHECK-SAME: %[[PADDING:[^:]*]]: tensor<2x1x1x3xf32>) ->
// CHECK: %[[B:.*]] = nn.get @bias
// CHECK: %[[H:.*]] = nn.reshape %[[B]] : tensor<1x2x3x3xf32> -> tensor<2x3x3xf32>
// CHECK: nn.attention {{.*}} mask %[[PADDING]] bias %[[H]] {causal = true, scale = 1.000000e+00 : f32}
// CHECK-NOT: nn.softmax
nn.parameter @bias : tensor<1x2x3x3xf32> {trainable = true}
func.func @trained_bias_and_masks(%q: tensor<4x3x8xf32>, %k: tensor<4x3x8xf32>, %v: tensor<4x3x8xf32>, %padding: tensor<2x1x1x3xf32>) -> tensor<4x3x8xf32> {
  %b = nn.get @bias : tensor<1x2x3x3xf32>
  %c = nn.constant dense<[[0.0, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %cs = nn.broadcast %c dims [2, 3] : tensor<3x3xf32> -> tensor<1x2x3x3xf32>
  %later = nn.add %b, %cs : tensor<1x2x3x3xf32>
  %all = nn.broadcast %later dims [0, 1, 2, 3] : tensor<1x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %paddings = nn.broadcast %padding dims [0, 1, 2, 3] : tensor<2x1x1x3xf32> -> tensor<2x2x3x3xf32>
  %added = nn.add %all, %paddings : tensor<2x2x3x3xf32>
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> tensor<4x3x3xf32>
  %s4 = nn.reshape %s : tensor<4x3x3xf32> -> tensor<2x2x3x3xf32>
  %biased = nn.add %s4, %added : tensor<2x2x3x3xf32>
  %p = nn.softmax %biased : tensor<2x2x3x3xf32>
  %p3 = nn.reshape %p : tensor<2x2x3x3xf32> -> tensor<4x3x3xf32>
  %y = nn.matmul %p3, %v : (tensor<4x3x3xf32>, tensor<4x3x8xf32>) -> tensor<4x3x8xf32>
  return %y : tensor<4x3x8xf32>
}

// -----
// A bias of each sample's own, of indices that a file says for every sample of a batch, stays with the scores.
// CHECK-LABEL: @bias_of_samples
// CHECK-NOT: nn.attention
// CHECK: nn.softmax
nn.parameter @bias : tensor<2x2x3x3xf32> {trainable = true}
func.func @bias_of_samples(%q: tensor<4x3x8xf32>, %k: tensor<4x3x8xf32>, %v: tensor<4x3x8xf32>) -> tensor<4x3x8xf32> {
  %b = nn.get @bias : tensor<2x2x3x3xf32>
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> tensor<4x3x3xf32>
  %s4 = nn.reshape %s : tensor<4x3x3xf32> -> tensor<2x2x3x3xf32>
  %biased = nn.add %s4, %b : tensor<2x2x3x3xf32>
  %p = nn.softmax %biased : tensor<2x2x3x3xf32>
  %p3 = nn.reshape %p : tensor<2x2x3x3xf32> -> tensor<4x3x3xf32>
  %y = nn.matmul %p3, %v : (tensor<4x3x3xf32>, tensor<4x3x8xf32>) -> tensor<4x3x8xf32>
  return %y : tensor<4x3x8xf32>
}

// -----
// Swin: four windows of two images, some of which are cut in two, and a bias that all of them share.
// CHECK-LABEL: @windows
// CHECK: %[[MASK:.*]] = nn.reshape {{.*}} -> tensor<4x1x3x3xf32>
// CHECK: nn.attention {{.*}} mask %[[MASK]] bias {{.*}} : (tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x1x3x3xf32>, tensor<2x3x3xf32>)
// CHECK-NOT: nn.softmax
nn.parameter @bias : tensor<2x3x3xf32> {trainable = true}
func.func @windows(%q: tensor<8x3x8xf32>, %k: tensor<8x3x8xf32>, %v: tensor<8x3x8xf32>, %cut: tensor<2x3x3xf32>) -> tensor<8x3x8xf32> {
  %b = nn.get @bias : tensor<2x3x3xf32>
  %bs = nn.broadcast %b dims [1, 2, 3] : tensor<2x3x3xf32> -> tensor<4x2x3x3xf32>
  %cuts = nn.broadcast %cut dims [1, 3, 4] : tensor<2x3x3xf32> -> tensor<2x2x2x3x3xf32>
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<8x3x8xf32>, tensor<8x3x8xf32>) -> tensor<8x3x3xf32>
  %s4 = nn.reshape %s : tensor<8x3x3xf32> -> tensor<4x2x3x3xf32>
  %biased = nn.add %s4, %bs : tensor<4x2x3x3xf32>
  %s5 = nn.reshape %biased : tensor<4x2x3x3xf32> -> tensor<2x2x2x3x3xf32>
  %masked = nn.add %s5, %cuts : tensor<2x2x2x3x3xf32>
  %p = nn.softmax %masked : tensor<2x2x2x3x3xf32>
  %p3 = nn.reshape %p : tensor<2x2x2x3x3xf32> -> tensor<8x3x3xf32>
  %y = nn.matmul %p3, %v : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
  return %y : tensor<8x3x8xf32>
}

// -----
// DeBERTa: what is learnt depends on the samples, too, and has the size of the scores.
// CHECK-LABEL: @learnt_of_samples
// CHECK-NOT: nn.attention
// CHECK: nn.softmax
// CHECK-NOT: nn.attention
nn.parameter @w : tensor<2x2xf32> {trainable = true}
func.func @learnt_of_samples(%q: tensor<2x3x8xf32>, %k: tensor<2x2x8xf32>, %v: tensor<2x2x8xf32>, %x: tensor<2x3x2xf32>) -> tensor<2x3x8xf32> {
  %w = nn.get @w : tensor<2x2xf32>
  %x2 = nn.reshape %x : tensor<2x3x2xf32> -> tensor<6x2xf32>
  %b2 = nn.matmul %x2, %w : (tensor<6x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
  %b = nn.reshape %b2 : tensor<6x2xf32> -> tensor<2x3x2xf32>
  %bt = nn.tanh %b : tensor<2x3x2xf32>
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x8xf32>, tensor<2x2x8xf32>) -> tensor<2x3x2xf32>
  %biased = nn.add %s, %bt : tensor<2x3x2xf32>
  %p = nn.softmax %biased : tensor<2x3x2xf32>
  %y = nn.matmul %p, %v : (tensor<2x3x2xf32>, tensor<2x2x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----
// The same bias frozen is a mask.
// CHECK-LABEL: @frozen_bias
// CHECK: %[[B:.*]] = nn.get @bias
// CHECK: %[[M:.*]] = nn.reshape %[[B]] : tensor<3x2xf32> -> tensor<1x1x3x2xf32>
// CHECK: nn.attention {{.*}} mask %[[M]]
nn.parameter @bias : tensor<3x2xf32> {trainable = false}
func.func @frozen_bias(%q: tensor<2x3x8xf32>, %k: tensor<2x2x8xf32>, %v: tensor<2x2x8xf32>) -> tensor<2x3x8xf32> {
  %b = nn.get @bias : tensor<3x2xf32>
  %bs = nn.broadcast %b dims [1, 2] : tensor<3x2xf32> -> tensor<2x3x2xf32>
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x8xf32>, tensor<2x2x8xf32>) -> tensor<2x3x2xf32>
  %biased = nn.add %s, %bs : tensor<2x3x2xf32>
  %p = nn.softmax %biased : tensor<2x3x2xf32>
  %y = nn.matmul %p, %v : (tensor<2x3x2xf32>, tensor<2x2x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----
// The probabilities leave the model.
// CHECK-LABEL: @probabilities_read
// CHECK-NOT: nn.attention
// CHECK: nn.softmax
// CHECK-NOT: nn.attention
func.func @probabilities_read(%q: tensor<2x3x8xf32>, %k: tensor<2x2x8xf32>, %v: tensor<2x2x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x2xf32>) {
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x8xf32>, tensor<2x2x8xf32>) -> tensor<2x3x2xf32>
  %p = nn.softmax %s : tensor<2x3x2xf32>
  %y = nn.matmul %p, %v : (tensor<2x3x2xf32>, tensor<2x2x8xf32>) -> tensor<2x3x8xf32>
  return %y, %p : tensor<2x3x8xf32>, tensor<2x3x2xf32>
}

// -----
// Heads repeated before a transposition, on an attention the model names itself; a mask of zeros does nothing.
// CHECK-LABEL: @falcon
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x3x8xf32>, %[[K:.*]]: tensor<2x3x2x8xf32>
// CHECK: %[[KT:.*]] = nn.transpose %[[K]] perm [0, 2, 1, 3]
// CHECK: nn.attention %[[Q]], %{{.*}}, %[[KT]] {scale = 1.000000e+00 : f32} : (tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x8xf32>)
func.func @falcon(%q: tensor<2x4x3x8xf32>, %k: tensor<2x3x2x8xf32>) -> tensor<2x4x3x8xf32> {
  %mask = nn.constant dense<0.0> : tensor<2x1x3x3xf32>
  %e = nn.broadcast %k dims [0, 1, 2, 4] : tensor<2x3x2x8xf32> -> tensor<2x3x2x2x8xf32>
  %r = nn.reshape %e : tensor<2x3x2x2x8xf32> -> tensor<2x3x4x8xf32>
  %t = nn.transpose %r perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
  %y, %lse = nn.attention %q, %t, %t mask %mask {scale = 1.0 : f32} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x1x3x3xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return %y : tensor<2x4x3x8xf32>
}

// -----
// Interleaved heads (0 1 0 1) are not runs of equal heads.
// CHECK-LABEL: @interleaved
// CHECK: nn.attention {{.*}} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>)
func.func @interleaved(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %e = nn.broadcast %k dims [0, 2, 3, 4] : tensor<2x2x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %r = nn.reshape %e : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %y, %lse = nn.attention %q, %r, %r {scale = 1.0 : f32} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return %y : tensor<2x4x3x8xf32>
}

// -----
// One sample with one head: products of rank 2.
// CHECK-LABEL: @single
// CHECK: nn.attention {{.*}} {causal = true, scale = 5.000000e-01 : f32} : (tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>)
// CHECK-NOT: nn.softmax
func.func @single(%q: tensor<2x4xf32>, %k: tensor<2x4xf32>, %v: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = nn.constant dense<0.5> : tensor<2x2xf32>
  %m = nn.constant dense<[[0.0, 0xFF800000], [0.0, 0.0]]> : tensor<2x2xf32>
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
  %d = nn.mul %c, %s : tensor<2x2xf32>
  %masked = nn.add %m, %d : tensor<2x2xf32>
  %p = nn.softmax %masked : tensor<2x2xf32>
  %y = nn.matmul %p, %v : (tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----
// Half precision with the softmax in f32.
// CHECK-LABEL: @half_precision
// CHECK: nn.attention {{.*}} : (tensor<2x1x3x8xf16>, tensor<2x1x2x8xf16>, tensor<2x1x2x8xf16>) -> (tensor<2x1x3x8xf16>, tensor<2x1x3xf32>)
// CHECK-NOT: nn.softmax
func.func @half_precision(%q: tensor<2x3x8xf16>, %k: tensor<2x2x8xf16>, %v: tensor<2x2x8xf16>) -> tensor<2x3x8xf16> {
  %s = nn.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x8xf16>, tensor<2x2x8xf16>) -> tensor<2x3x2xf16>
  %w = nn.cast %s : tensor<2x3x2xf16> -> tensor<2x3x2xf32>
  %p = nn.softmax %w : tensor<2x3x2xf32>
  %n = nn.cast %p : tensor<2x3x2xf32> -> tensor<2x3x2xf16>
  %y = nn.matmul %n, %v : (tensor<2x3x2xf16>, tensor<2x2x8xf16>) -> tensor<2x3x8xf16>
  return %y : tensor<2x3x8xf16>
}

// -----
// A constant mask of a sliding window becomes a band; one with a hole stays, and so does one in which the first query sees nothing: its
// numbers are finite, so that the query gets the mean of all values.
// CHECK-LABEL: @windows
// CHECK: nn.attention %arg0, %arg0, %arg0 {band = array<i64: -1, 0>, scale = 1.000000e+00 : f32}
// CHECK: nn.attention %arg0, %arg0, %arg0 {band = array<i64: -1, 1>, causal = true, scale = 1.000000e+00 : f32}
// CHECK: nn.attention %arg0, %arg0, %arg0 mask
// CHECK: nn.attention %arg0, %arg0, %arg0 mask
func.func @windows(%x: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
  %past = nn.constant dense<[[[[0.0, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF], [0.0, 0.0, 0xFF7FFFFF, 0xFF7FFFFF], [0xFF7FFFFF, 0.0, 0.0, 0xFF7FFFFF], [0xFF7FFFFF, 0xFF7FFFFF, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32>
  %both = nn.constant dense<[[[[0.0, 0.0, -1.0e4, -1.0e4], [0.0, 0.0, 0.0, -1.0e4], [-1.0e4, 0.0, 0.0, 0.0], [-1.0e4, -1.0e4, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32>
  %hole = nn.constant dense<[[[[0.0, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF], [0.0, 0.0, 0xFF7FFFFF, 0xFF7FFFFF], [0xFF7FFFFF, 0xFF7FFFFF, 0.0, 0xFF7FFFFF], [0xFF7FFFFF, 0xFF7FFFFF, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32>
  %late = nn.constant dense<[[[[-1.0e4, -1.0e4, -1.0e4, -1.0e4], [0.0, -1.0e4, -1.0e4, -1.0e4], [-1.0e4, 0.0, -1.0e4, -1.0e4], [-1.0e4, -1.0e4, 0.0, -1.0e4]]]]> : tensor<1x1x4x4xf32>
  %a, %la = nn.attention %x, %x, %x mask %past {scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  %b, %lb = nn.attention %x, %x, %x mask %both {causal = true, scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  %c, %lc = nn.attention %x, %x, %x mask %hole {scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  %d, %ld = nn.attention %x, %x, %x mask %late {scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return %a, %b, %c, %d : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
}

// -----
// A triangle and the padding that the data says: the triangle is of the positions, the padding one row of a sample, as a conjunction of
// conditions, the negation of a disjunction, a sum of masks and a choice between them. Where one finite number hides both, rows that see nothing
// else weigh what is beyond the bounds, too.
// CHECK-LABEL: @padded
// CHECK-SAME: %[[REAL:[a-z0-9]+]]: tensor<2x4xi1>, %[[PADDING:[a-z0-9]+]]: tensor<2x1x1x4xf32>
// CHECK: %[[ROW:.*]] = nn.reshape %[[REAL]] : tensor<2x4xi1> -> tensor<2x1x1x4xi1>
// CHECK: %[[SHORT:.*]] = nn.select %[[ROW]], %{{.*}}, %{{.*}} : tensor<2x1x1x4xi1>, tensor<2x1x1x4xf32>
// CHECK: %[[LONG:.*]] = nn.not %{{.*}} : tensor<2x1x1x4xi1>
// CHECK: %[[NEGATED:.*]] = nn.select %[[LONG]], %{{.*}}, %{{.*}} : tensor<2x1x1x4xi1>, tensor<2x1x1x4xf32>
// CHECK: %[[CHOSEN:.*]] = nn.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x1x1x4xi1>, tensor<2x1x1x4xf32>
// CHECK: nn.attention %arg0, %arg0, %arg0 mask %[[SHORT]] {beyond = -3.40282347E+38 : f32, causal = true, scale = 1.000000e+00 : f32}
// CHECK: nn.attention %arg0, %arg0, %arg0 mask %[[NEGATED]] {band = array<i64: -1, 0>, beyond = -3.40282347E+38 : f32, scale = 1.000000e+00 : f32}
// CHECK: nn.attention %arg0, %arg0, %arg0 mask %[[PADDING]] {causal = true, scale = 1.000000e+00 : f32}
// CHECK: nn.attention %arg0, %arg0, %arg0 mask %[[CHOSEN]] {causal = true, scale = 1.000000e+00 : f32}
!x = tensor<2x2x4x8xf32>
!c = tensor<2x1x4x4xi1>
!m = tensor<2x1x4x4xf32>
func.func @padded(%x: !x, %real: tensor<2x4xi1>, %padding: tensor<2x1x1x4xf32>) -> (!x, !x, !x, !x) {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %triangle = nn.constant dense<[[[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]]]> : tensor<1x1x4x4xi1>
  %outside = nn.constant dense<[[false, true, true, true], [false, false, true, true], [true, false, false, true], [true, true, false, false]]> : tensor<4x4xi1>
  %added = nn.constant dense<[[[[0.0, -1.0e4, -1.0e4, -1.0e4], [0.0, 0.0, -1.0e4, -1.0e4], [0.0, 0.0, 0.0, -1.0e4], [0.0, 0.0, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32>
  %t = nn.broadcast %triangle dims [0, 1, 2, 3] : tensor<1x1x4x4xi1> -> !c
  %r = nn.broadcast %real dims [0, 3] : tensor<2x4xi1> -> !c
  %both = nn.and %t, %r : !c
  %conjunction = nn.select %both, %zero, %low : !c, !m
  %o = nn.broadcast %outside dims [2, 3] : tensor<4x4xi1> -> !c
  %s = nn.not %r : !c
  %either = nn.or %s, %o : !c
  %disjunction = nn.select %either, %low, %zero : !c, !m
  %a = nn.broadcast %added dims [0, 1, 2, 3] : tensor<1x1x4x4xf32> -> !m
  %p = nn.broadcast %padding dims [0, 1, 2, 3] : tensor<2x1x1x4xf32> -> !m
  %sum = nn.add %p, %a : !m
  %choice = nn.select %r, %a, %low : !c, !m
  %y0, %l0 = nn.attention %x, %x, %x mask %conjunction {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<2x2x4xf32>)
  %y1, %l1 = nn.attention %x, %x, %x mask %disjunction {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<2x2x4xf32>)
  %y2, %l2 = nn.attention %x, %x, %x mask %sum {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<2x2x4xf32>)
  %y3, %l3 = nn.attention %x, %x, %x mask %choice {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<2x2x4xf32>)
  return %y0, %y1, %y2, %y3 : !x, !x, !x, !x
}

// -----
// One number after the other hides what is beyond, the same or another; -inf hides for good.
// CHECK-LABEL: @beyond
// CHECK: nn.attention %arg0, %arg0, %arg0 mask %{{[^ ]*}} {beyond = -1.000000e+09 : f32, causal = true, scale = 1.000000e+00 : f32}
// CHECK: nn.attention %arg0, %arg0, %arg0 mask %{{[^ ]*}} {causal = true, scale = 1.000000e+00 : f32}
// CHECK: nn.attention %arg0, %arg0, %arg0 mask %{{[^ ]*}} {causal = true, scale = 1.000000e+00 : f32}
!x = tensor<2x2x3x8xf32>
!c = tensor<2x1x3x3xi1>
!m = tensor<2x1x3x3xf32>
func.func @beyond(%x: !x, %real: tensor<2x3xi1>) -> (!x, !x, !x) {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<-1.0e9> : !m
  %lower = nn.constant dense<-1.0e30> : !m
  %never = nn.constant dense<0xFF800000> : !m
  %triangle = nn.constant dense<[[[[true, false, false], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>
  %t = nn.broadcast %triangle dims [0, 1, 2, 3] : tensor<1x1x3x3xi1> -> !c
  %r = nn.broadcast %real dims [0, 3] : tensor<2x3xi1> -> !c
  %hidden = nn.select %t, %zero, %low : !c, !m
  %same = nn.select %r, %hidden, %low : !c, !m
  %other = nn.select %r, %hidden, %lower : !c, !m
  %both = nn.and %t, %r : !c
  %infinite = nn.select %both, %zero, %never : !c, !m
  %y0, %l0 = nn.attention %x, %x, %x mask %same {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<2x2x3xf32>)
  %y1, %l1 = nn.attention %x, %x, %x mask %other {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<2x2x3xf32>)
  %y2, %l2 = nn.attention %x, %x, %x mask %infinite {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<2x2x3xf32>)
  return %y0, %y1, %y2 : !x, !x, !x
}

// -----
// What is seen where one of two holds is no band, nor is a window of which queries see nothing, nor a mask of several heads; those stay as
// they are.
// CHECK-LABEL: @not_apart
// CHECK-COUNT-3: nn.attention %arg0, %arg0, %arg0 mask %{{.*}} {scale = 1.000000e+00 : f32} : ({{.*}}, tensor<2x2x4x4xf32>)
!x = tensor<2x2x4x8xf32>
!c = tensor<2x2x4x4xi1>
!m = tensor<2x2x4x4xf32>
func.func @not_apart(%x: !x, %data: !c) -> (!x, !x, !x) {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %triangle = nn.constant dense<[[[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]]]> : tensor<1x1x4x4xi1>
  %late = nn.constant dense<[[[[false, false, false, false], [true, false, false, false], [false, true, false, false], [false, false, true, false]]]]> : tensor<1x1x4x4xi1>
  %heads = nn.constant dense<[[[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]], [[true, true, true, true], [true, true, true, true], [true, true, true, true], [true, true, true, true]]]]> : tensor<1x2x4x4xi1>
  %t = nn.broadcast %triangle dims [0, 1, 2, 3] : tensor<1x1x4x4xi1> -> !c
  %l = nn.broadcast %late dims [0, 1, 2, 3] : tensor<1x1x4x4xi1> -> !c
  %h = nn.broadcast %heads dims [0, 1, 2, 3] : tensor<1x2x4x4xi1> -> !c
  %either = nn.or %t, %data : !c
  %none = nn.and %l, %data : !c
  %some = nn.and %h, %data : !c
  %m0 = nn.select %either, %zero, %low : !c, !m
  %m1 = nn.select %none, %zero, %low : !c, !m
  %m2 = nn.select %some, %zero, %low : !c, !m
  %y0, %l0 = nn.attention %x, %x, %x mask %m0 {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<2x2x4xf32>)
  %y1, %l1 = nn.attention %x, %x, %x mask %m1 {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<2x2x4xf32>)
  %y2, %l2 = nn.attention %x, %x, %x mask %m2 {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<2x2x4xf32>)
  return %y0, %y1, %y2 : !x, !x, !x
}

// -----
// GPT-OSS: a column of learnt numbers joined to the scores, whose probability is dropped; the largest of a row taken off before.
// CHECK-LABEL: @sinks
// CHECK-SAME: (%[[X:.*]]: tensor<2x2x4x8xf32>, %[[S:.*]]: tensor<2xf32>)
// CHECK: %[[Y:.*]], %{{.*}} = nn.attention %[[X]], %[[X]], %[[X]] sink %[[S]] {scale = 5.000000e-01 : f32}
// CHECK-NOT: nn.softmax
// CHECK: return %[[Y]]
func.func @sinks(%x: tensor<2x2x4x8xf32>, %sink: tensor<2xf32>) -> tensor<2x2x4x8xf32> {
  %half = nn.constant dense<0.5> : tensor<2x2x4x4xf32>
  %rows = nn.reshape %x : tensor<2x2x4x8xf32> -> tensor<4x4x8xf32>
  %product = nn.matmul %rows, %rows {transpose_rhs = true} : (tensor<4x4x8xf32>, tensor<4x4x8xf32>) -> tensor<4x4x4xf32>
  %heads = nn.reshape %product : tensor<4x4x4xf32> -> tensor<2x2x4x4xf32>
  %scores = nn.mul %heads, %half : tensor<2x2x4x4xf32>
  %column = nn.broadcast %sink dims [1] : tensor<2xf32> -> tensor<2x2x4x1xf32>
  %joined = nn.concat %scores, %column dim 3 : (tensor<2x2x4x4xf32>, tensor<2x2x4x1xf32>) -> tensor<2x2x4x5xf32>
  %peak = nn.reduce max %joined dims [3] : tensor<2x2x4x5xf32> -> tensor<2x2x4xf32>
  %peaks = nn.broadcast %peak dims [0, 1, 2] : tensor<2x2x4xf32> -> tensor<2x2x4x5xf32>
  %less = nn.sub %joined, %peaks : tensor<2x2x4x5xf32>
  %p = nn.softmax %less : tensor<2x2x4x5xf32>
  %kept = nn.slice %p starts [0, 0, 0, 0] sizes [2, 2, 4, 4] steps [1, 1, 1, 1] : tensor<2x2x4x5xf32> -> tensor<2x2x4x4xf32>
  %q = nn.reshape %kept : tensor<2x2x4x4xf32> -> tensor<4x4x4xf32>
  %y = nn.matmul %q, %rows : (tensor<4x4x4xf32>, tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
  %out = nn.reshape %y : tensor<4x4x8xf32> -> tensor<2x2x4x8xf32>
  return %out : tensor<2x2x4x8xf32>
}

// -----
// A column of zeros may come first (x-transformers); one that varies along the queries is no sink, nor is what drops a score and keeps the column.
// CHECK-LABEL: @columns
// CHECK: nn.attention %{{.*}} sink %{{.*}} {scale = 1.000000e+00 : f32}
// CHECK: nn.softmax
// CHECK: nn.softmax
func.func @columns(%x: tensor<2x2x4x8xf32>, %sink: tensor<2xf32>, %each: tensor<2x4xf32>) -> (tensor<4x4x8xf32>, tensor<4x4x8xf32>, tensor<4x4x8xf32>) {
  %rows = nn.reshape %x : tensor<2x2x4x8xf32> -> tensor<4x4x8xf32>
  %product = nn.matmul %rows, %rows {transpose_rhs = true} : (tensor<4x4x8xf32>, tensor<4x4x8xf32>) -> tensor<4x4x4xf32>
  %scores = nn.reshape %product : tensor<4x4x4xf32> -> tensor<2x2x4x4xf32>
  %c0 = nn.broadcast %sink dims [1] : tensor<2xf32> -> tensor<2x2x4x1xf32>
  %j0 = nn.concat %c0, %scores dim 3 : (tensor<2x2x4x1xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x4x5xf32>
  %p0 = nn.softmax %j0 : tensor<2x2x4x5xf32>
  %k0 = nn.slice %p0 starts [0, 0, 0, 1] sizes [2, 2, 4, 4] steps [1, 1, 1, 1] : tensor<2x2x4x5xf32> -> tensor<2x2x4x4xf32>
  %q0 = nn.reshape %k0 : tensor<2x2x4x4xf32> -> tensor<4x4x4xf32>
  %y0 = nn.matmul %q0, %rows : (tensor<4x4x4xf32>, tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
  %c1 = nn.broadcast %each dims [1, 2] : tensor<2x4xf32> -> tensor<2x2x4x1xf32>
  %j1 = nn.concat %scores, %c1 dim 3 : (tensor<2x2x4x4xf32>, tensor<2x2x4x1xf32>) -> tensor<2x2x4x5xf32>
  %p1 = nn.softmax %j1 : tensor<2x2x4x5xf32>
  %k1 = nn.slice %p1 starts [0, 0, 0, 0] sizes [2, 2, 4, 4] steps [1, 1, 1, 1] : tensor<2x2x4x5xf32> -> tensor<2x2x4x4xf32>
  %q1 = nn.reshape %k1 : tensor<2x2x4x4xf32> -> tensor<4x4x4xf32>
  %y1 = nn.matmul %q1, %rows : (tensor<4x4x4xf32>, tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
  %p2 = nn.softmax %j0 : tensor<2x2x4x5xf32>
  %k2 = nn.slice %p2 starts [0, 0, 0, 0] sizes [2, 2, 4, 4] steps [1, 1, 1, 1] : tensor<2x2x4x5xf32> -> tensor<2x2x4x4xf32>
  %q2 = nn.reshape %k2 : tensor<2x2x4x4xf32> -> tensor<4x4x4xf32>
  %y2 = nn.matmul %q2, %rows : (tensor<4x4x4xf32>, tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
  return %y0, %y1, %y2 : tensor<4x4x8xf32>, tensor<4x4x8xf32>, tensor<4x4x8xf32>
}

// -----
// Gemma 2: scores under a cap, and the triangle after it. A mask below the cap is none.
// CHECK-LABEL: @capped
// CHECK: nn.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {causal = true, scale = 2.500000e-01 : f32, softcap = 5.000000e+01 : f32}
// CHECK: nn.softmax
// CHECK-NOT: nn.attention
func.func @capped(%x: tensor<4x3x8xf32>) -> (tensor<4x3x8xf32>, tensor<4x3x8xf32>) {
  %scale = nn.constant dense<0.25> : tensor<4x3x3xf32>
  %cap = nn.constant dense<50.0> : tensor<4x3x3xf32>
  %mask = nn.constant dense<[[[0.0, -3.0e38, -3.0e38], [0.0, 0.0, -3.0e38], [0.0, 0.0, 0.0]]]> : tensor<1x3x3xf32>
  %triangle = nn.broadcast %mask dims [0, 1, 2] : tensor<1x3x3xf32> -> tensor<4x3x3xf32>
  %product = nn.matmul %x, %x {transpose_rhs = true} : (tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> tensor<4x3x3xf32>
  %0 = nn.mul %product, %scale : tensor<4x3x3xf32>
  %1 = nn.div %0, %cap : tensor<4x3x3xf32>
  %2 = nn.tanh %1 : tensor<4x3x3xf32>
  %3 = nn.mul %2, %cap : tensor<4x3x3xf32>
  %4 = nn.add %3, %triangle : tensor<4x3x3xf32>
  %p = nn.softmax %4 : tensor<4x3x3xf32>
  %y = nn.matmul %p, %x : (tensor<4x3x3xf32>, tensor<4x3x8xf32>) -> tensor<4x3x8xf32>
  %5 = nn.add %0, %triangle : tensor<4x3x3xf32>
  %6 = nn.tanh %5 : tensor<4x3x3xf32>
  %7 = nn.mul %6, %cap : tensor<4x3x3xf32>
  %p1 = nn.softmax %7 : tensor<4x3x3xf32>
  %y1 = nn.matmul %p1, %x : (tensor<4x3x3xf32>, tensor<4x3x8xf32>) -> tensor<4x3x8xf32>
  return %y, %y1 : tensor<4x3x8xf32>, tensor<4x3x8xf32>
}

// -----
// Of one sample dimensions of size 1 stand where others have none.
// CHECK-LABEL: @sinks_of_one
// CHECK-SAME: (%[[X:.*]]: tensor<1x2x4x8xf32>, %[[S:.*]]: tensor<1x2x1x1xf32>)
// CHECK: %[[ONE:.*]] = nn.reshape %[[S]] : tensor<1x2x1x1xf32> -> tensor<2xf32>
// CHECK: nn.attention %[[X]], %[[X]], %[[X]] sink %[[ONE]]
// CHECK-NOT: nn.softmax
func.func @sinks_of_one(%x: tensor<1x2x4x8xf32>, %sink: tensor<1x2x1x1xf32>) -> tensor<2x4x8xf32> {
  %rows = nn.reshape %x : tensor<1x2x4x8xf32> -> tensor<2x4x8xf32>
  %product = nn.matmul %rows, %rows {transpose_rhs = true} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x4xf32>
  %scores = nn.reshape %product : tensor<2x4x4xf32> -> tensor<1x2x4x4xf32>
  %column = nn.broadcast %sink dims [0, 1, 2, 3] : tensor<1x2x1x1xf32> -> tensor<1x2x4x1xf32>
  %joined = nn.concat %scores, %column dim 3 : (tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x4x5xf32>
  %peak = nn.reduce max %joined dims [3] : tensor<1x2x4x5xf32> -> tensor<1x2x4xf32>
  %peak1 = nn.reshape %peak : tensor<1x2x4xf32> -> tensor<1x2x4x1xf32>
  %peaks = nn.broadcast %peak1 dims [0, 1, 2, 3] : tensor<1x2x4x1xf32> -> tensor<1x2x4x5xf32>
  %less = nn.sub %joined, %peaks : tensor<1x2x4x5xf32>
  %p = nn.softmax %less : tensor<1x2x4x5xf32>
  %kept = nn.slice %p starts [0, 0, 0, 0] sizes [1, 2, 4, 4] steps [1, 1, 1, 1] : tensor<1x2x4x5xf32> -> tensor<1x2x4x4xf32>
  %q = nn.reshape %kept : tensor<1x2x4x4xf32> -> tensor<2x4x4xf32>
  %y = nn.matmul %q, %rows : (tensor<2x4x4xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
