// RUN: zero-opt %s --nn-fuse | FileCheck %s

// A kernel reads one tile of a parameter at most: the first would have to stay whole until the last is. Tables of their own are read together.
// CHECK-LABEL: func.func @train
// CHECK: %[[T0:.*]] = nn.get @"t#0"
// CHECK: %[[FIRST:.*]] = nn.launch @{{.*}}(%{{.*}}, %[[T0]], %{{.*}}) : (tensor<3x4xi1>, tensor<8x4xf32>, tensor<3xi64>)
// CHECK: %[[T1:.*]] = nn.get @"t#1"
// CHECK: %[[OTHER:.*]] = nn.get @other
// CHECK: nn.launch @{{.*}}(%[[FIRST]], %{{.*}}, %[[T1]], %{{.*}}, %[[OTHER]], %{{.*}})
nn.parameter @"t#0" : tensor<8x4xf32> {trainable = true, tile_of = "t", whole = array<i64: 14, 4>, begin = array<i64: 0, 0>}
nn.parameter @"t#1" : tensor<6x4xf32> {trainable = true, tile_of = "t", whole = array<i64: 14, 4>, begin = array<i64: 8, 0>}
nn.parameter @other : tensor<5x4xf32> {trainable = true}
func.func @train(%i: tensor<3xi64>, %j: tensor<3xi64>, %here: tensor<3x4xi1>) -> tensor<3x4xf32> {
  %zero = nn.constant dense<0.0> : tensor<3x4xf32>
  %t0 = nn.get @"t#0" : tensor<8x4xf32>
  %a = nn.gather %t0, %i : tensor<8x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  %b = nn.select %here, %a, %zero : tensor<3x4xi1>, tensor<3x4xf32>
  %t1 = nn.get @"t#1" : tensor<6x4xf32>
  %c = nn.gather %t1, %i : tensor<6x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  %d = nn.select %here, %zero, %c : tensor<3x4xi1>, tensor<3x4xf32>
  %e = nn.add %b, %d : tensor<3x4xf32>
  %other = nn.get @other : tensor<5x4xf32>
  %f = nn.gather %other, %j : tensor<5x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  %g = nn.add %e, %f : tensor<3x4xf32>
  return %g : tensor<3x4xf32>
}
