// RUN: zero-opt %s --nn-fuse --nn-rematerialize | FileCheck %s
// RUN: zero-opt %s --nn-fuse --nn-rematerialize=keep-bytes=18432 | FileCheck %s --check-prefix=SOME
// RUN: zero-opt %s --nn-fuse --nn-rematerialize=keep-bytes=1000000 | FileCheck %s --check-prefix=ALL

// Layers x + dropout(tanh(x) w) w: forward leaves their inputs. The tanh and the first product of a layer are made again right before its own
// backward, after that of the next layer, and the mask from the same seed, by the same kernel. What made x and tanh(x) in one go makes the
// second from the first. Of the last layer, whose backward comes first, everything is kept.
// CHECK: nn.rematerialized = [2, 4, 14340, 22532, 32768, 327680]
// CHECK: func.func private @[[$TANH:gelu_[0-9]+]](%arg0: tensor<16x32xf32>) -> tensor<16x32xf32>
// CHECK-NEXT: nn.tanh %arg0
// CHECK-LABEL: func.func @train(
// CHECK: %[[X0:.*]] = nn.matmul %arg0
// CHECK: nn.launch @[[MASK0:.*]](%arg1, %{{.*}}) : (tensor<2xi64>
// CHECK: %[[X1:.*]]:2 = nn.launch @{{.*}}(%[[X0]], %{{.*}}) : {{.*}} -> (tensor<16x32xf32>, tensor<16x32xf32>)
// CHECK: nn.launch @[[MASK1:.*]](%arg1, %{{.*}}) : (tensor<2xi64>
// CHECK: nn.gradient @w2
// CHECK: %[[N1:.*]] = nn.launch @gelu_{{.*}}(%[[X1]]#0)
// CHECK-NEXT: %[[P1:.*]] = nn.matmul %[[N1]], %[[W1:.*]] :
// CHECK-NEXT: %[[D1:.*]] = nn.launch @[[MASK1]](%arg1, %[[P1]])
// CHECK-NEXT: nn.matmul %[[D1]], %{{.*}} {transpose_lhs = true}
// CHECK: nn.matmul %[[N1]], %{{.*}} {transpose_lhs = true}
// CHECK: nn.gradient @w1
// CHECK: %[[N0:.*]] = nn.launch @[[$TANH]](%[[X0]])
// CHECK-NEXT: %[[P0:.*]] = nn.matmul %[[N0]]
// CHECK-NEXT: %[[D0:.*]] = nn.launch @[[MASK0]](%arg1, %[[P0]])
// CHECK-NEXT: nn.matmul %[[D0]], %{{.*}} {transpose_lhs = true}
// CHECK: nn.gradient @w0

// With room for one tensor more it is that of a product, in the later layer.
// SOME: nn.rematerialized = [2, 4, 16388, 22532, 16384, 327680]
// SOME: nn.gradient @w2
// SOME-NOT: nn.launch @random
// SOME: nn.gradient @w1
// SOME: nn.launch @random
// ALL: nn.rematerialized = [0, 4, 22532, 22532, 0, 327680]
nn.parameter @wi : tensor<32x32xf32> {trainable = true}
nn.parameter @w0 : tensor<32x32xf32> {trainable = true}
nn.parameter @w1 : tensor<32x32xf32> {trainable = true}
nn.parameter @w2 : tensor<32x32xf32> {trainable = true}
nn.parameter @wh : tensor<32x32xf32> {trainable = true}
func.func @train(%data: tensor<16x32xf32>, %seed: tensor<2xi64>) -> tensor<f32> {
  %wi = nn.get @wi : tensor<32x32xf32>
  %w0 = nn.get @w0 : tensor<32x32xf32>
  %w1 = nn.get @w1 : tensor<32x32xf32>
  %w2 = nn.get @w2 : tensor<32x32xf32>
  %wh = nn.get @wh : tensor<32x32xf32>
  %half = nn.constant dense<5.0e-1> : tensor<16x32xf32>
  %zero = nn.constant dense<0.0> : tensor<16x32xf32>
  %x0 = nn.matmul %data, %wi : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %n0 = nn.tanh %x0 : tensor<16x32xf32>
  %p0 = nn.matmul %n0, %w0 : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %r0 = nn.random %seed {id = 0 : i64, samples = 16 : i64} : tensor<2xi64> -> tensor<16x32xf32>
  %k0 = nn.compare lt %r0, %half : tensor<16x32xf32> -> tensor<16x32xi1>
  %d0 = nn.select %k0, %p0, %zero : tensor<16x32xi1>, tensor<16x32xf32>
  %q0 = nn.matmul %d0, %w0 {transpose_rhs = true} : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %x1 = nn.add %x0, %q0 : tensor<16x32xf32>
  %n1 = nn.tanh %x1 : tensor<16x32xf32>
  %p1 = nn.matmul %n1, %w1 : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %r1 = nn.random %seed {id = 1 : i64, samples = 16 : i64} : tensor<2xi64> -> tensor<16x32xf32>
  %k1 = nn.compare lt %r1, %half : tensor<16x32xf32> -> tensor<16x32xi1>
  %d1 = nn.select %k1, %p1, %zero : tensor<16x32xi1>, tensor<16x32xf32>
  %q1 = nn.matmul %d1, %w1 {transpose_rhs = true} : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %x2 = nn.add %x1, %q1 : tensor<16x32xf32>
  %n2 = nn.tanh %x2 : tensor<16x32xf32>
  %p2 = nn.matmul %n2, %w2 : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %r2 = nn.random %seed {id = 2 : i64, samples = 16 : i64} : tensor<2xi64> -> tensor<16x32xf32>
  %k2 = nn.compare lt %r2, %half : tensor<16x32xf32> -> tensor<16x32xi1>
  %d2 = nn.select %k2, %p2, %zero : tensor<16x32xi1>, tensor<16x32xf32>
  %q2 = nn.matmul %d2, %w2 {transpose_rhs = true} : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %x3 = nn.add %x2, %q2 : tensor<16x32xf32>
  %h = nn.matmul %x3, %wh : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %s = nn.cos %h : tensor<16x32xf32>
  %loss = nn.reduce sum %s dims [0, 1] : tensor<16x32xf32> -> tensor<f32>
  %dh = nn.sin %h : tensor<16x32xf32>
  %dwh = nn.matmul %x3, %dh {transpose_lhs = true} : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  nn.gradient @wh, %dwh : tensor<32x32xf32>
  %g3 = nn.matmul %dh, %wh {transpose_rhs = true} : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %dw2 = nn.matmul %d2, %g3 {transpose_lhs = true} : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  %dn2 = nn.matmul %g3, %w2 : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %dv2 = nn.matmul %n2, %dn2 {transpose_lhs = true} : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  %sum2 = nn.add %dw2, %dv2 : tensor<32x32xf32>
  nn.gradient @w2, %sum2 : tensor<32x32xf32>
  %g2 = nn.mul %dn2, %x2 : tensor<16x32xf32>
  %dw1 = nn.matmul %d1, %g2 {transpose_lhs = true} : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  %dn1 = nn.matmul %g2, %w1 : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %dv1 = nn.matmul %n1, %dn1 {transpose_lhs = true} : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  %sum1 = nn.add %dw1, %dv1 : tensor<32x32xf32>
  nn.gradient @w1, %sum1 : tensor<32x32xf32>
  %g1 = nn.mul %dn1, %x1 : tensor<16x32xf32>
  %dw0 = nn.matmul %d0, %g1 {transpose_lhs = true} : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  %dn0 = nn.matmul %g1, %w0 : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %dv0 = nn.matmul %n0, %dn0 {transpose_lhs = true} : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  %sum0 = nn.add %dw0, %dv0 : tensor<32x32xf32>
  nn.gradient @w0, %sum0 : tensor<32x32xf32>
  %g0 = nn.mul %dn0, %x0 : tensor<16x32xf32>
  %dwi = nn.matmul %data, %g0 {transpose_lhs = true} : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  nn.gradient @wi, %dwi : tensor<32x32xf32>
  return %loss : tensor<f32>
}
