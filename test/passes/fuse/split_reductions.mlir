// Sums around a dimension are made of rows and then of what these leave; few terms, and sums of rows or columns alone, stay as they are.
// RUN: zero-opt %s --nn-split-reductions="least=12" | FileCheck %s
// RUN: for f in channels middle; do zero-opt %s --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.before
// RUN: for f in channels middle; do zero-opt %s --nn-split-reductions="least=12" --nn-evaluate="function=$f digits=4" -o /dev/null; done | diff %t.before -
// RUN: FileCheck %s --check-prefix=VALUES < %t.before
// VALUES: result tensor<3xf32>:

// CHECK-LABEL: func.func @channels
// CHECK: %[[ROWS:.*]] = nn.reduce sum %arg0 dims [2, 3] : tensor<4x3x2x5xf32> -> tensor<4x3xf32>
// CHECK: nn.reduce sum %[[ROWS]] dims [0] : tensor<4x3xf32> -> tensor<3xf32>
// CHECK: nn.reduce max %{{.*}} dims [0] : tensor<4x3xf32> -> tensor<3xf32>
func.func @channels(%x: tensor<4x3x2x5xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %sum = nn.reduce sum %x dims [0, 2, 3] : tensor<4x3x2x5xf32> -> tensor<3xf32>
  %max = nn.reduce max %x dims [0, 2, 3] : tensor<4x3x2x5xf32> -> tensor<3xf32>
  return %sum, %max : tensor<3xf32>, tensor<3xf32>
}

// CHECK-LABEL: func.func @middle
// CHECK: nn.reduce sum %arg0 dims [1] : tensor<2x12x3xf32>
// CHECK: nn.reduce sum %arg1 dims [0, 2] : tensor<2x4x3xf32>
// CHECK: nn.reduce sum %arg0 dims [1, 2]
// CHECK: nn.reduce sum %arg0 dims [0, 1]
func.func @middle(%x: tensor<2x12x3xf32>, %few: tensor<2x4x3xf32>) -> (tensor<2x3xf32>, tensor<4xf32>, tensor<2xf32>, tensor<3xf32>) {
  %a = nn.reduce sum %x dims [1] : tensor<2x12x3xf32> -> tensor<2x3xf32>
  %b = nn.reduce sum %few dims [0, 2] : tensor<2x4x3xf32> -> tensor<4xf32>
  %c = nn.reduce sum %x dims [1, 2] : tensor<2x12x3xf32> -> tensor<2xf32>
  %d = nn.reduce sum %x dims [0, 1] : tensor<2x12x3xf32> -> tensor<3xf32>
  return %a, %b, %c, %d : tensor<2x3xf32>, tensor<4xf32>, tensor<2xf32>, tensor<3xf32>
}
