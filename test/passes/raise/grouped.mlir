// Rows each multiplied by a matrix of its own, looked up in a table, as exporters write experts: on either side of the product, stored either way. Group 1 has
// no rows, and some have more than a block. The numbers stay what they were, in every form on the way down.
// RUN: zero-opt %s --nn-raise-grouped="height=8" | FileCheck %s
// RUN: for f in right left; do zero-opt %s --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.before
// RUN: for f in right left; do zero-opt %s --nn-raise-grouped="height=8" --nn-evaluate="function=$f digits=4" -o /dev/null; done | diff %t.before -
// RUN: for f in right left; do zero-opt %s --nn-raise-grouped="height=8" --nn-decompose --nn-evaluate="function=$f digits=4" -o /dev/null; done | diff %t.before -
// RUN: for f in right left; do zero-opt %s --nn-raise-grouped="height=8" --nn-decompose --nn-expand-blocks --nn-evaluate="function=$f digits=4" -o /dev/null; done | diff %t.before -
// RUN: FileCheck %s --check-prefix=VALUES < %t.before
// VALUES: result tensor<40x6xf32>:
// VALUES: result tensor<40x6xf32>:

// Found out once where rows go: 40 rows of 4 groups take 8 blocks of 8 at most.
// CHECK-LABEL: func.func @right
// CHECK: %[[SLOT:.*]], %[[ROW:.*]], %[[GROUP:.*]] = nn.group_rows %{{.*}} {{{groups = 4 : i64, height = 8 : i64}}} : (tensor<40xi64>) -> (tensor<40xi64>, tensor<64xi64>, tensor<8xi64>)
// CHECK: nn.grouped_matmul %{{.*}}, %{{.*}} by %[[SLOT]], %[[ROW]], %[[GROUP]] {{{transpose = true}}} : (tensor<40x5xf32>, tensor<4x3x5xf32>,
// CHECK-NOT: nn.group_rows
// CHECK: nn.grouped_matmul %{{.*}}, %{{.*}} by %[[SLOT]], %[[ROW]], %[[GROUP]] : (tensor<40x3xf32>, tensor<4x3x6xf32>,
// CHECK-NOT: nn.matmul
// CHECK: return
func.func @right(%x: tensor<40x5xf32>, %up: tensor<4x3x5xf32>, %down: tensor<4x3x6xf32>) -> tensor<40x6xf32> {
  %experts = nn.constant dense<[3, 3, 3, 0, 0, 3, 2, 3, 3, 0, 3, 0, 2, 0, 3, 0, 0, 3, 2, 3, 3, 2, 2, 3, 0, 0, 3, 0, 3, 2, 3, 0, 3, 0, 0, 3, 0, 0, 0, 0]> : tensor<40xi64>
  %u = nn.gather %up, %experts : tensor<4x3x5xf32>, tensor<40xi64> -> tensor<40x3x5xf32>
  %column = nn.reshape %x : tensor<40x5xf32> -> tensor<40x5x1xf32>
  %h = nn.matmul %u, %column : (tensor<40x3x5xf32>, tensor<40x5x1xf32>) -> tensor<40x3x1xf32>
  %hidden = nn.tanh %h : tensor<40x3x1xf32>
  %d = nn.gather %down, %experts : tensor<4x3x6xf32>, tensor<40xi64> -> tensor<40x3x6xf32>
  %y = nn.matmul %d, %hidden {transpose_lhs = true} : (tensor<40x3x6xf32>, tensor<40x3x1xf32>) -> tensor<40x6x1xf32>
  %out = nn.reshape %y : tensor<40x6x1xf32> -> tensor<40x6xf32>
  return %out : tensor<40x6xf32>
}

// CHECK-LABEL: func.func @left
// CHECK: nn.grouped_matmul %{{.*}} : (tensor<40x5xf32>, tensor<4x5x3xf32>,
// CHECK: nn.grouped_matmul %{{.*}} {{{transpose = true}}} : (tensor<40x3xf32>, tensor<4x6x3xf32>,
// CHECK: return
func.func @left(%x: tensor<40x5xf32>, %up: tensor<4x5x3xf32>, %down: tensor<4x6x3xf32>) -> tensor<40x6xf32> {
  %experts = nn.constant dense<[[3, 3], [3, 0], [0, 3], [2, 3], [3, 0], [3, 0], [2, 0], [3, 0], [0, 3], [2, 3], [3, 2], [2, 3], [0, 0], [3, 0], [3, 2], [3, 0], [3, 0], [0, 3], [0, 0], [0, 0]]> : tensor<20x2xi64>
  %u = nn.gather %up, %experts : tensor<4x5x3xf32>, tensor<20x2xi64> -> tensor<20x2x5x3xf32>
  %each = nn.reshape %u : tensor<20x2x5x3xf32> -> tensor<40x5x3xf32>
  %row = nn.reshape %x : tensor<40x5xf32> -> tensor<40x1x5xf32>
  %h = nn.matmul %row, %each : (tensor<40x1x5xf32>, tensor<40x5x3xf32>) -> tensor<40x1x3xf32>
  %d = nn.gather %down, %experts : tensor<4x6x3xf32>, tensor<20x2xi64> -> tensor<20x2x6x3xf32>
  %every = nn.reshape %d : tensor<20x2x6x3xf32> -> tensor<40x6x3xf32>
  %y = nn.matmul %h, %every {transpose_rhs = true} : (tensor<40x1x3xf32>, tensor<40x6x3xf32>) -> tensor<40x1x6xf32>
  %out = nn.reshape %y : tensor<40x1x6xf32> -> tensor<40x6xf32>
  return %out : tensor<40x6xf32>
}

// One row has no others beside it, and what is looked up per matrix row is another thing.
// CHECK-LABEL: func.func @others
// CHECK-NOT: nn.grouped_matmul
// CHECK: return
func.func @others(%x: tensor<4x3x5xf32>, %table: tensor<9x5xf32>, %i: tensor<4x2xi64>) -> tensor<4x3x2xf32> {
  %g = nn.gather %table, %i : tensor<9x5xf32>, tensor<4x2xi64> -> tensor<4x2x5xf32>
  %y = nn.matmul %x, %g {transpose_rhs = true} : (tensor<4x3x5xf32>, tensor<4x2x5xf32>) -> tensor<4x3x2xf32>
  return %y : tensor<4x3x2xf32>
}
