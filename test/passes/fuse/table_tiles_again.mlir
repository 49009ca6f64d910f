// Indices that were made again for backward (nn-rematerialize), while masks are of those of forward: what a lookup adds to a tile of a table is not
// computed from the former alone, and the tile's gradient stays one.
// RUN: zero-opt %s --nn-table-rows --nn-fuse | FileCheck %s

// CHECK-LABEL: func.func @train
// CHECK-NOT: nn.adds_rows
// CHECK: nn.gradient @"words#1"
nn.parameter @"words#1" : tensor<2048x16xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32, tile_of = "words", whole = array<i64: 4096, 16>, begin = array<i64: 2048, 0>}
func.func @train(%raw: tensor<4xi64>, %y: tensor<4x2048xf32>, %dy: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = nn.constant dense<0> : tensor<4xi64>
  %half = nn.constant dense<2048> : tensor<4xi64>
  %none = nn.constant dense<0.0> : tensor<4x16xf32>
  %w1 = nn.get @"words#1" : tensor<2048x16xf32>
  %at = nn.add %raw, %half : tensor<4xi64>
  %in1 = nn.compare ge %at, %half : tensor<4xi64> -> tensor<4xi1>
  %less = nn.sub %at, %half : tensor<4xi64>
  %at1 = nn.select %in1, %less, %zero : tensor<4xi1>, tensor<4xi64>
  %x1 = nn.gather %w1, %at1 : tensor<2048x16xf32>, tensor<4xi64> -> tensor<4x16xf32>
  %m1 = nn.broadcast %in1 dims [0] : tensor<4xi1> -> tensor<4x16xi1>
  %x = nn.select %m1, %x1, %none : tensor<4x16xi1>, tensor<4x16xf32>
  %0 = nn.tanh %x : tensor<4x16xf32>
  %p = nn.matmul %y, %0 {transpose_lhs = true} : (tensor<4x2048xf32>, tensor<4x16xf32>) -> tensor<2048x16xf32>
  %d = nn.mul %0, %dy : tensor<4x16xf32>
  %again = nn.add %raw, %half : tensor<4xi64>
  %less_again = nn.sub %again, %half : tensor<4xi64>
  %at1_again = nn.select %in1, %less_again, %zero : tensor<4xi1>, tensor<4xi64>
  %d1 = nn.select %m1, %d, %none : tensor<4x16xi1>, tensor<4x16xf32>
  %s1 = nn.scatter_add %at1_again, %d1 : tensor<4xi64>, tensor<4x16xf32> -> tensor<2048x16xf32>
  %g1 = nn.add %p, %s1 : tensor<2048x16xf32>
  nn.gradient @"words#1", %g1 : tensor<2048x16xf32>
  return %0 : tensor<4x16xf32>
}
