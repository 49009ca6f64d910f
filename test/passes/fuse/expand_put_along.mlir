// Sums of elements that were taken out of rows: of the flat tensor, or by every column. Either way they are what the operation says.
// RUN: zero-opt %s --nn-expand-put-along | FileCheck %s --check-prefix=FLAT
// RUN: zero-opt %s --nn-expand-put-along=compare | FileCheck %s --check-prefix=COLUMNS
// RUN: zero-opt %s --nn-evaluate="function=f digits=4" -o /dev/null > %t.before
// RUN: zero-opt %s --nn-expand-put-along --nn-evaluate="function=f digits=4" -o /dev/null | diff %t.before -
// RUN: zero-opt %s --nn-expand-put-along=compare --nn-evaluate="function=f digits=4" -o /dev/null | diff %t.before -
// RUN: FileCheck %s --check-prefix=VALUES < %t.before
// VALUES: result tensor<2x3x5xf32>:

// FLAT-LABEL: func.func @f
// FLAT: nn.scatter_add %{{.*}} : tensor<6x4xi64>, tensor<6x4xf32> -> tensor<30xf32>
// COLUMNS-LABEL: func.func @f
// COLUMNS: nn.compare eq %{{.*}} : tensor<6x4x5xi32>
// COLUMNS: nn.reduce sum %{{.*}} dims [1] : tensor<6x4x5xf32> -> tensor<6x5xf32>
func.func @f(%d: tensor<2x3x4xf32>) -> tensor<2x3x5xf32> {
  %i = nn.constant dense<[[[0, 4, 4, 1], [2, 2, 2, 2], [3, 0, 1, 4]], [[1, 1, 0, 0], [4, 3, 2, 1], [0, 0, 0, 3]]]> : tensor<2x3x4xi64>
  %y = nn.put_along %d, %i : tensor<2x3x4xf32>, tensor<2x3x4xi64> -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}
