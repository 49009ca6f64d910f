// RUN: zero-opt %s --nn-fold-constants --split-input-file | FileCheck %s
// RUN: zero-opt %s --nn-fold-constants=limit=8 --split-input-file | FileCheck %s --check-prefix=LIMIT

// The causal triangle of an export, from positions.
// CHECK-LABEL: @causal_mask
// CHECK-NEXT: %[[M:.*]] = nn.constant dense<{{\[\[}}0.000000e+00, -1.000000e+30, -1.000000e+30], [0.000000e+00, 0.000000e+00, -1.000000e+30], [0.000000e+00, 0.000000e+00, 0.000000e+00]]> : tensor<3x3xf32>
// CHECK-NEXT: nn.add %arg0, %[[M]]
// Nine elements are more than the limit: nothing is computed.
// LIMIT-LABEL: @causal_mask
// LIMIT: nn.iota
// LIMIT: nn.compare
func.func @causal_mask(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %low = nn.constant dense<-1.0E+30> : tensor<f32>
  %i = nn.iota 1 : tensor<3x3xi64>
  %j = nn.iota 0 : tensor<3x3xi64>
  %m = nn.compare le %i, %j : tensor<3x3xi64> -> tensor<3x3xi1>
  %zeros = nn.broadcast %zero dims [] : tensor<f32> -> tensor<3x3xf32>
  %lows = nn.broadcast %low dims [] : tensor<f32> -> tensor<3x3xf32>
  %mask = nn.select %m, %zeros, %lows : tensor<3x3xi1>, tensor<3x3xf32>
  %y = nn.add %x, %mask : tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

// -----
// A row repeated for every token is not written out, but what is computed below it is.
// CHECK-LABEL: @row
// CHECK-NEXT: %[[R:.*]] = nn.constant dense<[2.000000e+00, 4.000000e+00]> : tensor<2xf32>
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[R]] dims [1] : tensor<2xf32> -> tensor<4x2xf32>
// CHECK-NEXT: nn.add %arg0, %[[B]]
func.func @row(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %d = nn.add %r, %r : tensor<2xf32>
  %b = nn.broadcast %d dims [1] : tensor<2xf32> -> tensor<4x2xf32>
  %y = nn.add %x, %b : tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----
// What depends on data, parameters or the generator stays.
// CHECK-LABEL: @stays
// CHECK: nn.get
// CHECK: nn.random
nn.parameter @w : tensor<2xf32> {trainable = false}
func.func @stays() -> (tensor<2xf32>, tensor<2xf32>) {
  %w = nn.get @w : tensor<2xf32>
  %s = nn.constant dense<[1, 2]> : tensor<2xi64>
  %r = nn.random %s {id = 1 : i64, samples = 1 : i64} : tensor<2xi64> -> tensor<2xf32>
  return %w, %r : tensor<2xf32>, tensor<2xf32>
}

// -----
// What is repeated for an operation that stays and computed from as well becomes a constant where it is computed.
// CHECK-LABEL: @both
// CHECK-DAG: %[[D:.*]] = nn.constant dense<[2.000000e+00, 4.000000e+00]> : tensor<2xf32>
// CHECK-DAG: %[[T:.*]] = nn.constant dense<{{\[\[}}4.000000e+00, 8.000000e+00], [4.000000e+00, 8.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: %[[B:.*]] = nn.broadcast %[[D]] dims [1]
// CHECK: nn.add %arg0, %[[B]]
// CHECK: nn.add %{{.*}}, %[[T]]
func.func @both(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %r = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %d = nn.add %r, %r : tensor<2xf32>
  %b = nn.broadcast %d dims [1] : tensor<2xf32> -> tensor<2x2xf32>
  %t = nn.add %b, %b : tensor<2x2xf32>
  %y = nn.add %x, %b : tensor<2x2xf32>
  %z = nn.add %y, %t : tensor<2x2xf32>
  return %z : tensor<2x2xf32>
}

// -----
// Repetitions of one number are splats, those of positions stay.
// CHECK-LABEL: @splats
// CHECK-NEXT: nn.constant dense<6.000000e+00> : tensor<4x2xf32>
// CHECK-DAG: nn.constant dense<0> : tensor<1x2xi64>
// CHECK-DAG: nn.iota 1 : tensor<1x2xi64>
func.func @splats(%x: tensor<4x2xf32>, %i: tensor<1x2xi64>) -> (tensor<4x2xf32>, tensor<1x2xi64>) {
  %three = nn.constant dense<3.0> : tensor<f32>
  %six = nn.add %three, %three : tensor<f32>
  %row = nn.broadcast %six dims [] : tensor<f32> -> tensor<2xf32>
  %all = nn.broadcast %row dims [1] : tensor<2xf32> -> tensor<4x2xf32>
  %y = nn.add %x, %all : tensor<4x2xf32>
  %zeros = nn.iota 0 : tensor<1x2xi64>
  %counts = nn.iota 1 : tensor<1x2xi64>
  %j = nn.add %i, %zeros : tensor<1x2xi64>
  %k = nn.add %j, %counts : tensor<1x2xi64>
  return %y, %k : tensor<4x2xf32>, tensor<1x2xi64>
}
