// One block of a decoder as an eager export writes it, and what the pipeline makes of it; both compute the same.
// RUN: zero-opt %s --nn-raise-pipeline | FileCheck %s
// RUN: zero-opt %s --nn-evaluate=digits=4 -o /dev/null > %t.written
// RUN: zero-opt %s --nn-raise-pipeline --nn-evaluate=digits=4 -o /dev/null > %t.raised
// RUN: diff %t.written %t.raised
// RUN: FileCheck %s --check-prefix=VALUES < %t.raised

// VALUES: hidden tensor<2x3x8xf32>: sum {{.*}} norm {{.*}} mixed

nn.parameter @scale : tensor<8xf32> {trainable = true, init = "normal", init_std = 1.0 : f32}
nn.parameter @shift : tensor<8xf32> {trainable = true, init = "normal", init_std = 1.0 : f32}
nn.parameter @qkv : tensor<8x24xf32> {trainable = true, init = "normal", init_std = 0.5 : f32}
nn.parameter @up : tensor<8x8xf32> {trainable = true, init = "normal", init_std = 0.5 : f32}

// CHECK-LABEL: func.func @forward
// CHECK-NOT: nn.softmax
// CHECK-NOT: nn.sqrt
// CHECK-NOT: nn.erf
// CHECK: %[[N:.*]], %{{.*}}, %{{.*}} = nn.layer_norm %arg0, %{{.*}}, %{{.*}} {eps = 9.99999974E-6 : f32}
// CHECK: %[[A:.*]], %{{.*}} = nn.attention %{{.*}}, %{{.*}}, %{{.*}} {causal = true, scale = 5.000000e-01 : f32}
// CHECK: %[[R:.*]] = nn.add %arg0
// CHECK: %[[U:.*]] = nn.matmul %{{.*}}, %{{.*}} {transpose_rhs = true}
// CHECK: nn.gelu erf
// CHECK: return
func.func @forward(%x: tensor<2x3x8xf32> {nn.name = "x"}) -> (tensor<2x3x8xf32> {nn.name = "hidden"}) {
  // layer norm
  %n = nn.constant dense<8.0> : tensor<2x3xf32>
  %two = nn.constant dense<2.0> : tensor<2x3x8xf32>
  %eps = nn.constant dense<1.0E-5> : tensor<2x3x1xf32>
  %g = nn.get @scale : tensor<8xf32>
  %b = nn.get @shift : tensor<8xf32>
  %s0 = nn.reduce sum %x dims [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m0 = nn.div %s0, %n : tensor<2x3xf32>
  %m1 = nn.broadcast %m0 dims [0, 1] : tensor<2x3xf32> -> tensor<2x3x8xf32>
  %c = nn.sub %x, %m1 : tensor<2x3x8xf32>
  %c2 = nn.pow %c, %two : tensor<2x3x8xf32>
  %s1 = nn.reduce sum %c2 dims [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %v0 = nn.div %s1, %n : tensor<2x3xf32>
  %v1 = nn.reshape %v0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %v2 = nn.add %v1, %eps : tensor<2x3x1xf32>
  %v3 = nn.sqrt %v2 : tensor<2x3x1xf32>
  %v4 = nn.broadcast %v3 dims [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %h0 = nn.div %c, %v4 : tensor<2x3x8xf32>
  %gb = nn.broadcast %g dims [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %bb = nn.broadcast %b dims [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %h1 = nn.mul %h0, %gb : tensor<2x3x8xf32>
  %h2 = nn.add %h1, %bb : tensor<2x3x8xf32>
  // attention with two heads of four
  %w = nn.get @qkv : tensor<8x24xf32>
  %rows = nn.reshape %h2 : tensor<2x3x8xf32> -> tensor<6x8xf32>
  %qkv = nn.matmul %rows, %w : (tensor<6x8xf32>, tensor<8x24xf32>) -> tensor<6x24xf32>
  %q0 = nn.slice %qkv starts [0, 0] sizes [6, 8] steps [1, 1] : tensor<6x24xf32> -> tensor<6x8xf32>
  %k0 = nn.slice %qkv starts [0, 8] sizes [6, 8] steps [1, 1] : tensor<6x24xf32> -> tensor<6x8xf32>
  %u0 = nn.slice %qkv starts [0, 16] sizes [6, 8] steps [1, 1] : tensor<6x24xf32> -> tensor<6x8xf32>
  %q1 = nn.reshape %q0 : tensor<6x8xf32> -> tensor<2x3x2x4xf32>
  %k1 = nn.reshape %k0 : tensor<6x8xf32> -> tensor<2x3x2x4xf32>
  %u1 = nn.reshape %u0 : tensor<6x8xf32> -> tensor<2x3x2x4xf32>
  %q2 = nn.transpose %q1 perm [0, 2, 1, 3] : tensor<2x3x2x4xf32> -> tensor<2x2x3x4xf32>
  %k2 = nn.transpose %k1 perm [0, 2, 3, 1] : tensor<2x3x2x4xf32> -> tensor<2x2x4x3xf32>
  %u2 = nn.transpose %u1 perm [0, 2, 1, 3] : tensor<2x3x2x4xf32> -> tensor<2x2x3x4xf32>
  %q3 = nn.reshape %q2 : tensor<2x2x3x4xf32> -> tensor<4x3x4xf32>
  %k3 = nn.reshape %k2 : tensor<2x2x4x3xf32> -> tensor<4x4x3xf32>
  %u3 = nn.reshape %u2 : tensor<2x2x3x4xf32> -> tensor<4x3x4xf32>
  %sc0 = nn.matmul %q3, %k3 : (tensor<4x3x4xf32>, tensor<4x4x3xf32>) -> tensor<4x3x3xf32>
  %sc1 = nn.reshape %sc0 : tensor<4x3x3xf32> -> tensor<2x2x3x3xf32>
  %root = nn.constant dense<2.0> : tensor<2x2x3x3xf32>
  %sc2 = nn.div %sc1, %root : tensor<2x2x3x3xf32>
  // the causal mask from positions
  %i = nn.iota 0 : tensor<3x3xi64>
  %j = nn.iota 1 : tensor<3x3xi64>
  %seen = nn.compare le %j, %i : tensor<3x3xi64> -> tensor<3x3xi1>
  %zero = nn.constant dense<0.0> : tensor<3x3xf32>
  %low = nn.constant dense<-3.40282347E+38> : tensor<3x3xf32>
  %mask = nn.select %seen, %zero, %low : tensor<3x3xi1>, tensor<3x3xf32>
  %masks = nn.broadcast %mask dims [2, 3] : tensor<3x3xf32> -> tensor<2x2x3x3xf32>
  %sc3 = nn.add %sc2, %masks : tensor<2x2x3x3xf32>
  %p0 = nn.softmax %sc3 : tensor<2x2x3x3xf32>
  %p1 = nn.reshape %p0 : tensor<2x2x3x3xf32> -> tensor<4x3x3xf32>
  %a0 = nn.matmul %p1, %u3 : (tensor<4x3x3xf32>, tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
  %a1 = nn.reshape %a0 : tensor<4x3x4xf32> -> tensor<2x2x3x4xf32>
  %a2 = nn.transpose %a1 perm [0, 2, 1, 3] : tensor<2x2x3x4xf32> -> tensor<2x3x2x4xf32>
  %a3 = nn.reshape %a2 : tensor<2x3x2x4xf32> -> tensor<2x3x8xf32>
  %r = nn.add %x, %a3 : tensor<2x3x8xf32>
  // projection by a transposed weight, GELU
  %up = nn.get @up : tensor<8x8xf32>
  %upT = nn.transpose %up perm [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
  %r2 = nn.reshape %r : tensor<2x3x8xf32> -> tensor<6x8xf32>
  %f0 = nn.matmul %r2, %upT : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %root2 = nn.constant dense<1.41421354> : tensor<6x8xf32>
  %one = nn.constant dense<1.0> : tensor<6x8xf32>
  %half = nn.constant dense<0.5> : tensor<6x8xf32>
  %f1 = nn.div %f0, %root2 : tensor<6x8xf32>
  %f2 = nn.erf %f1 : tensor<6x8xf32>
  %f3 = nn.add %f2, %one : tensor<6x8xf32>
  %f4 = nn.mul %f0, %f3 : tensor<6x8xf32>
  %f5 = nn.mul %f4, %half : tensor<6x8xf32>
  %y = nn.reshape %f5 : tensor<6x8xf32> -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}
