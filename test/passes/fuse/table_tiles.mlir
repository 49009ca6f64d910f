// What a lookup adds to the tiles of a table is added by launches that know the table's indices and all updates, as nn-tile has them before it
// masks them. On several ranks tiles stay as they are.
// RUN: zero-opt %s --nn-table-rows --nn-fuse | FileCheck %s
// RUN: zero-opt %s --nn-table-rows=world=2 --nn-fuse | FileCheck %s --check-prefix=RANKS

// CHECK: func.func private @scatter_add_0(%[[D:.*]]: tensor<2048x16xf32>, %[[I:.*]]: tensor<4xi64>, %[[R:.*]]: tensor<4x16xf32>) -> tensor<2048x16xf32> attributes {nn.inplace = {{\[\[}}0, 0]], nn.kernel}
// CHECK: nn.compare
// CHECK: nn.scatter_add
// CHECK-LABEL: func.func @train
// CHECK-NOT: nn.looks_up
// CHECK: nn.launch @scatter_add_0(%{{.*}}, %arg0, %[[DX:[^)]*]]) {nn.adds_rows}
// CHECK: nn.launch @scatter_add_1(%{{.*}}, %arg0, %[[DX]]) {nn.adds_rows}
// RANKS-NOT: nn.adds_rows
nn.parameter @"words#0" : tensor<2048x16xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32, tile_of = "words", whole = array<i64: 4096, 16>, begin = array<i64: 0, 0>}
nn.parameter @"words#1" : tensor<2048x16xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32, tile_of = "words", whole = array<i64: 4096, 16>, begin = array<i64: 2048, 0>}
func.func @train(%at: tensor<4xi64>, %y: tensor<4x2048xf32>, %dy: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = nn.constant dense<0> : tensor<4xi64>
  %half = nn.constant dense<2048> : tensor<4xi64>
  %none = nn.constant dense<0.0> : tensor<4x16xf32>
  %w0 = nn.get @"words#0" : tensor<2048x16xf32>
  %w1 = nn.get @"words#1" : tensor<2048x16xf32>
  %in0 = nn.compare lt %at, %half : tensor<4xi64> -> tensor<4xi1>
  %at0 = nn.select %in0, %at, %zero : tensor<4xi1>, tensor<4xi64>
  %x0 = nn.gather %w0, %at0 : tensor<2048x16xf32>, tensor<4xi64> -> tensor<4x16xf32>
  %m0 = nn.broadcast %in0 dims [0] : tensor<4xi1> -> tensor<4x16xi1>
  %r0 = nn.select %m0, %x0, %none : tensor<4x16xi1>, tensor<4x16xf32>
  %in1 = nn.compare ge %at, %half : tensor<4xi64> -> tensor<4xi1>
  %less = nn.sub %at, %half : tensor<4xi64>
  %at1 = nn.select %in1, %less, %zero : tensor<4xi1>, tensor<4xi64>
  %x1 = nn.gather %w1, %at1 : tensor<2048x16xf32>, tensor<4xi64> -> tensor<4x16xf32>
  %m1 = nn.broadcast %in1 dims [0] : tensor<4xi1> -> tensor<4x16xi1>
  %r1 = nn.select %m1, %x1, %none : tensor<4x16xi1>, tensor<4x16xf32>
  %x = nn.add %r0, %r1 : tensor<4x16xf32>
  %0 = nn.tanh %x : tensor<4x16xf32>
  %p = nn.matmul %y, %0 {transpose_lhs = true} : (tensor<4x2048xf32>, tensor<4x16xf32>) -> tensor<2048x16xf32>
  %d = nn.mul %0, %dy : tensor<4x16xf32>
  %d0 = nn.select %m0, %d, %none : tensor<4x16xi1>, tensor<4x16xf32>
  %s0 = nn.scatter_add %at0, %d0 : tensor<4xi64>, tensor<4x16xf32> -> tensor<2048x16xf32>
  %g0 = nn.add %p, %s0 : tensor<2048x16xf32>
  nn.gradient @"words#0", %g0 : tensor<2048x16xf32>
  %d1 = nn.select %m1, %d, %none : tensor<4x16xi1>, tensor<4x16xf32>
  %s1 = nn.scatter_add %at1, %d1 : tensor<4xi64>, tensor<4x16xf32> -> tensor<2048x16xf32>
  %g1 = nn.add %p, %s1 : tensor<2048x16xf32>
  nn.gradient @"words#1", %g1 : tensor<2048x16xf32>
  return %0 : tensor<4x16xf32>
}
