// What is looked for among a maximum's numbers is rounded on both sides as activations are stored; other comparisons, and integers, are not.
// RUN: zero-opt %s --nn-round-extrema | FileCheck %s
// RUN: zero-opt %s --nn-round-extrema=stored=f32 | FileCheck %s --check-prefix=F32
// RUN: not zero-opt %s --nn-round-extrema=stored=f64 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: stored is f32, bf16 or f16
// F32-NOT: nn.cast

// CHECK-LABEL: func.func @pooled
// CHECK: %[[MAX:.*]] = nn.broadcast
// CHECK: %[[X:.*]] = nn.cast %arg0 : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: %[[ROUNDED:.*]] = nn.cast %[[X]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: %[[M:.*]] = nn.cast %[[MAX]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: %[[LARGEST:.*]] = nn.cast %[[M]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: nn.compare eq %[[ROUNDED]], %[[LARGEST]]
func.func @pooled(%x: tensor<4x8xf32>) -> tensor<4x8xi1> {
  %max = nn.reduce max %x dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  %repeated = nn.broadcast %max dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %is = nn.compare eq %x, %repeated : tensor<4x8xf32> -> tensor<4x8xi1>
  return %is : tensor<4x8xi1>
}

// CHECK-LABEL: func.func @others
// CHECK-NOT: nn.cast
func.func @others(%x: tensor<4x8xf32>, %n: tensor<4x8xi64>) -> (tensor<4x8xi1>, tensor<4x8xi1>, tensor<4x8xi1>) {
  %sum = nn.reduce sum %x dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  %sums = nn.broadcast %sum dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %a = nn.compare eq %x, %sums : tensor<4x8xf32> -> tensor<4x8xi1>
  %max = nn.reduce max %n dims [0] : tensor<4x8xi64> -> tensor<8xi64>
  %most = nn.broadcast %max dims [1] : tensor<8xi64> -> tensor<4x8xi64>
  %b = nn.compare eq %n, %most : tensor<4x8xi64> -> tensor<4x8xi1>
  %top = nn.reduce max %x dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  %tops = nn.broadcast %top dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %c = nn.compare lt %x, %tops : tensor<4x8xf32> -> tensor<4x8xi1>
  return %a, %b, %c : tensor<4x8xi1>, tensor<4x8xi1>, tensor<4x8xi1>
}
