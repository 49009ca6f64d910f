// The matrices of five groups in tiles of two, each of which multiplies the rows of its groups onto those of the tiles before. The numbers stay what they were.
// RUN: zero-opt %s --nn-tile=parts=3 | FileCheck %s

// CHECK: nn.parameter @"experts#0" : tensor<2x3x4xf32> {begin = array<i64: 0, 0, 0>, tile_of = "experts", trainable = true, whole = array<i64: 5, 3, 4>}
// CHECK: nn.parameter @"experts#1" : tensor<2x3x4xf32> {begin = array<i64: 2, 0, 0>
// CHECK: nn.parameter @"experts#2" : tensor<1x3x4xf32> {begin = array<i64: 4, 0, 0>
// CHECK-LABEL: func.func @eval(
// CHECK: %{{.*}}, %{{.*}}, %[[OF:.*]] = nn.group_rows
// CHECK: %[[W0:.*]] = nn.get @"experts#0"
// CHECK: %[[W1:.*]] = nn.get @"experts#1"
// CHECK: %[[W2:.*]] = nn.get @"experts#2"
// CHECK: nn.grouped_matmul %{{.*}}, %[[W0]], %[[W1]], %[[W2]] by %{{.*}}, %{{.*}}, %[[OF]] :

// RUN: zero-opt %s --nn-tile=parts=3 --nn-decompose | FileCheck %s --check-prefix=BLOCKS
// BLOCKS-LABEL: func.func @eval(
// BLOCKS: %[[Y0:.*]] = nn.block_matmul %[[X:.*]], %{{.*}} by %{{.*}} {all_groups = 5 : i64} :
// BLOCKS: %[[Y1:.*]] = nn.block_matmul %[[X]], %{{.*}} by %{{.*}} onto %[[Y0]] {all_groups = 5 : i64} :
// BLOCKS: %[[Y2:.*]] = nn.block_matmul %[[X]], %{{.*}} by %{{.*}} onto %[[Y1]] {all_groups = 5 : i64} :
// BLOCKS: nn.gather

// RUN: for f in one three; do zero-opt %s --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.before
// RUN: for f in one three; do zero-opt %s --nn-decompose --nn-evaluate="function=$f digits=4" -o /dev/null; done | diff %t.before -
// RUN: for f in one three; do zero-opt %s --nn-decompose --nn-expand-blocks --nn-evaluate="function=$f digits=4" -o /dev/null; done | diff %t.before -
// RUN: FileCheck %s --check-prefix=VALUES < %t.before
// VALUES-COUNT-2: result tensor<6x4xf32>:
nn.parameter @experts : tensor<5x3x4xf32> {trainable = true}
func.func @eval(%x: tensor<6x3xf32>) -> tensor<6x4xf32> {
  %groups = nn.constant dense<[4, 0, 3, 3, 1, 0]> : tensor<6xi64>
  %slot, %row, %of = nn.group_rows %groups {groups = 5 : i64, height = 2 : i64} : (tensor<6xi64>) -> (tensor<6xi64>, tensor<10xi64>, tensor<5xi64>)
  %w = nn.get @experts : tensor<5x3x4xf32>
  %y = nn.grouped_matmul %x, %w by %slot, %row, %of : (tensor<6x3xf32>, tensor<5x3x4xf32>, tensor<6xi64>, tensor<10xi64>, tensor<5xi64>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}

func.func @one(%x: tensor<6x3xf32>, %w: tensor<5x3x4xf32>) -> tensor<6x4xf32> {
  %groups = nn.constant dense<[4, 0, 3, 3, 1, 0]> : tensor<6xi64>
  %slot, %row, %of = nn.group_rows %groups {groups = 5 : i64, height = 2 : i64} : (tensor<6xi64>) -> (tensor<6xi64>, tensor<10xi64>, tensor<5xi64>)
  %y = nn.grouped_matmul %x, %w by %slot, %row, %of : (tensor<6x3xf32>, tensor<5x3x4xf32>, tensor<6xi64>, tensor<10xi64>, tensor<5xi64>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
func.func @three(%x: tensor<6x3xf32>, %a: tensor<2x3x4xf32>, %b: tensor<2x3x4xf32>, %c: tensor<1x3x4xf32>) -> tensor<6x4xf32> {
  %groups = nn.constant dense<[4, 0, 3, 3, 1, 0]> : tensor<6xi64>
  %slot, %row, %of = nn.group_rows %groups {groups = 5 : i64, height = 2 : i64} : (tensor<6xi64>) -> (tensor<6xi64>, tensor<10xi64>, tensor<5xi64>)
  %y = nn.grouped_matmul %x, %a, %b, %c by %slot, %row, %of : (tensor<6x3xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<1x3x4xf32>, tensor<6xi64>, tensor<10xi64>, tensor<5xi64>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
