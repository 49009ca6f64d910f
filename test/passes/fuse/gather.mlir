// RUN: zero-opt %s --nn-fuse | FileCheck %s

// Rows of an image, looked up at the taps of many places: two kernels that read them look them up themselves, and nothing keeps them.
// CHECK-LABEL: func.func @small
// CHECK: nn.launch @{{.*}}(%arg0, %arg1, %arg2) : (tensor<16x32xf32>, tensor<64x4xi64>, tensor<64x4xf32>) -> tensor<64x32xf32>
// CHECK: nn.launch @{{.*}}(%arg0, %arg1, %arg3) : (tensor<16x32xf32>, tensor<64x4xi64>, tensor<64x32xf32>) -> tensor<64x4xf32>
func.func @small(%image: tensor<16x32xf32>, %at: tensor<64x4xi64>, %weights: tensor<64x4xf32>, %d: tensor<64x32xf32>)
    -> (tensor<64x32xf32>, tensor<64x4xf32>) {
  %rows = nn.gather %image, %at : tensor<16x32xf32>, tensor<64x4xi64> -> tensor<64x4x32xf32>
  %w = nn.broadcast %weights dims [0, 1] : tensor<64x4xf32> -> tensor<64x4x32xf32>
  %m = nn.mul %rows, %w : tensor<64x4x32xf32>
  %sum = nn.reduce sum %m dims [1] : tensor<64x4x32xf32> -> tensor<64x32xf32>
  %e = nn.broadcast %d dims [0, 2] : tensor<64x32xf32> -> tensor<64x4x32xf32>
  %g = nn.mul %rows, %e : tensor<64x4x32xf32>
  %dw = nn.reduce sum %g dims [2] : tensor<64x4x32xf32> -> tensor<64x4xf32>
  return %sum, %dw : tensor<64x32xf32>, tensor<64x4xf32>
}

// Rows of a table that is as large are looked up once, by one of the two, and kept for the other.
// CHECK-LABEL: func.func @large
// CHECK: %[[ROWS:.*]]:2 = nn.launch @{{.*}}(%arg0, %arg1, %arg3) : {{.*}} -> (tensor<64x4x32xf32>, tensor<64x4xf32>)
// CHECK: nn.launch @{{.*}}(%[[ROWS]]#0, %arg2)
func.func @large(%table: tensor<512x32xf32>, %at: tensor<64x4xi64>, %weights: tensor<64x4xf32>, %d: tensor<64x32xf32>)
    -> (tensor<64x32xf32>, tensor<64x4xf32>) {
  %rows = nn.gather %table, %at : tensor<512x32xf32>, tensor<64x4xi64> -> tensor<64x4x32xf32>
  %w = nn.broadcast %weights dims [0, 1] : tensor<64x4xf32> -> tensor<64x4x32xf32>
  %m = nn.mul %rows, %w : tensor<64x4x32xf32>
  %sum = nn.reduce sum %m dims [1] : tensor<64x4x32xf32> -> tensor<64x32xf32>
  %e = nn.broadcast %d dims [0, 2] : tensor<64x32xf32> -> tensor<64x4x32xf32>
  %g = nn.mul %rows, %e : tensor<64x4x32xf32>
  %dw = nn.reduce sum %g dims [2] : tensor<64x4x32xf32> -> tensor<64x4xf32>
  return %sum, %dw : tensor<64x32xf32>, tensor<64x4xf32>
}
