// The matrices of five groups in tiles of two: each tile multiplies the rows of its groups, and the others get zeros.
// RUN: zero-opt %s --nn-tile=parts=3 | FileCheck %s

// CHECK: nn.parameter @"experts#0" : tensor<2x3x4xf32> {begin = array<i64: 0, 0, 0>, tile_of = "experts", trainable = true, whole = array<i64: 5, 3, 4>}
// CHECK: nn.parameter @"experts#1" : tensor<2x3x4xf32> {begin = array<i64: 2, 0, 0>
// CHECK: nn.parameter @"experts#2" : tensor<1x3x4xf32> {begin = array<i64: 4, 0, 0>
// CHECK-LABEL: func.func @eval(
// CHECK: %{{.*}}, %{{.*}}, %[[OF:.*]] = nn.group_rows
// CHECK: nn.compare ge %[[OF]]
// CHECK: nn.compare lt %[[OF]]
// CHECK: %[[FIRST:.*]] = nn.select %{{.*}}, %[[OF]], %{{.*}} : tensor<5xi1>, tensor<5xi64>
// CHECK: %[[W0:.*]] = nn.get @"experts#0"
// CHECK: %[[Y0:.*]] = nn.grouped_matmul %{{.*}}, %[[W0]] by %{{.*}}, %{{.*}}, %[[FIRST]]
// CHECK: nn.compare ge %[[OF]]
// CHECK: nn.compare lt %[[OF]]
// CHECK: %[[LOCAL:.*]] = nn.sub %[[OF]]
// CHECK: %[[SECOND:.*]] = nn.select %{{.*}}, %[[LOCAL]]
// CHECK: %[[Y1:.*]] = nn.grouped_matmul %{{.*}} by %{{.*}}, %{{.*}}, %[[SECOND]]
// CHECK: nn.add %[[Y0]], %[[Y1]]
nn.parameter @experts : tensor<5x3x4xf32> {trainable = true}
func.func @eval(%x: tensor<6x3xf32>) -> tensor<6x4xf32> {
  %groups = nn.constant dense<[4, 0, 3, 3, 1, 0]> : tensor<6xi64>
  %slot, %row, %of = nn.group_rows %groups {groups = 5 : i64, height = 2 : i64} : (tensor<6xi64>) -> (tensor<6xi64>, tensor<10xi64>, tensor<5xi64>)
  %w = nn.get @experts : tensor<5x3x4xf32>
  %y = nn.grouped_matmul %x, %w by %slot, %row, %of : (tensor<6x3xf32>, tensor<5x3x4xf32>, tensor<6xi64>, tensor<10xi64>, tensor<5xi64>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
