// Experts whose matrices are parameters of their own, cut alike: results side by side where rows of a matrix make them, partial sums where they are summed over.
// RUN: zero-opt %s --nn-tile=parts=2 | FileCheck %s

// CHECK: nn.parameter @"up0#0" : tensor<16x3xf32> {begin = array<i64: 0, 0>, tile_of = "up0"
// CHECK: nn.parameter @"up0#1" : tensor<16x3xf32> {begin = array<i64: 16, 0>
// CHECK: nn.parameter @"down1#1" : tensor<16x3xf32>
// CHECK-LABEL: func.func @eval(
// CHECK: nn.grouped_matmul %{{.*}}, %{{.*}}, %{{.*}} by %{{.*}} {{{transpose = true}}} : (tensor<6x3xf32>, tensor<1x16x3xf32>, tensor<1x16x3xf32>, {{.*}} -> tensor<6x16xf32>
// CHECK: nn.grouped_matmul %{{.*}}, %{{.*}}, %{{.*}} by %{{.*}} {{{transpose = true}}} : (tensor<6x3xf32>, tensor<1x16x3xf32>, tensor<1x16x3xf32>, {{.*}} -> tensor<6x16xf32>
// CHECK: %[[H:.*]] = nn.concat %{{.*}}, %{{.*}} dim 1 : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<6x32xf32>
// CHECK: %[[H0:.*]] = nn.slice %[[H]] starts [0, 0] sizes [6, 16]
// CHECK: %[[Y0:.*]] = nn.grouped_matmul %[[H0]], %{{.*}}, %{{.*}} by %{{.*}} : (tensor<6x16xf32>, tensor<1x16x3xf32>, tensor<1x16x3xf32>, {{.*}} -> tensor<6x3xf32>
// CHECK: %[[H1:.*]] = nn.slice %[[H]] starts [0, 16] sizes [6, 16]
// CHECK: %[[Y1:.*]] = nn.grouped_matmul %[[H1]]
// CHECK: %[[Y:.*]] = nn.add %[[Y0]], %[[Y1]]
// CHECK: return %[[Y]]
nn.parameter @up0 : tensor<32x3xf32> {trainable = true}
nn.parameter @up1 : tensor<32x3xf32> {trainable = true}
nn.parameter @down0 : tensor<32x3xf32> {trainable = true}
nn.parameter @down1 : tensor<32x3xf32> {trainable = true}
func.func @eval(%x: tensor<6x3xf32>) -> tensor<6x3xf32> {
  %groups = nn.constant dense<[1, 0, 1, 1, 0, 0]> : tensor<6xi64>
  %slot, %row, %of = nn.group_rows %groups {groups = 2 : i64, height = 2 : i64} : (tensor<6xi64>) -> (tensor<6xi64>, tensor<8xi64>, tensor<4xi64>)
  %u0 = nn.get @up0 : tensor<32x3xf32>
  %u1 = nn.get @up1 : tensor<32x3xf32>
  %d0 = nn.get @down0 : tensor<32x3xf32>
  %d1 = nn.get @down1 : tensor<32x3xf32>
  %v0 = nn.reshape %u0 : tensor<32x3xf32> -> tensor<1x32x3xf32>
  %v1 = nn.reshape %u1 : tensor<32x3xf32> -> tensor<1x32x3xf32>
  %e0 = nn.reshape %d0 : tensor<32x3xf32> -> tensor<1x32x3xf32>
  %e1 = nn.reshape %d1 : tensor<32x3xf32> -> tensor<1x32x3xf32>
  %h = nn.grouped_matmul %x, %v0, %v1 by %slot, %row, %of {transpose = true} : (tensor<6x3xf32>, tensor<1x32x3xf32>, tensor<1x32x3xf32>, tensor<6xi64>, tensor<8xi64>, tensor<4xi64>) -> tensor<6x32xf32>
  %y = nn.grouped_matmul %h, %e0, %e1 by %slot, %row, %of : (tensor<6x32xf32>, tensor<1x32x3xf32>, tensor<1x32x3xf32>, tensor<6xi64>, tensor<8xi64>, tensor<4xi64>) -> tensor<6x3xf32>
  return %y : tensor<6x3xf32>
}
