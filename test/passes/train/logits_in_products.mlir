// Products add the bias of logits, for a loss and its gradient read them more than once.
// RUN: zero-opt %s --nn-logits-in-products | FileCheck %s
// RUN: zero-opt %s --nn-evaluate="function=padded digits=4" -o /dev/null > %t.apart
// RUN: zero-opt %s --nn-logits-in-products --nn-evaluate="function=padded digits=4" -o /dev/null > %t.together
// RUN: diff %t.apart %t.together && FileCheck %s --check-prefix=VALUES < %t.together
// VALUES-COUNT-2: tensor<

// Classes that were added: the loss sees none of them, and whoever else reads the sum reads that of the product.
// CHECK-LABEL: func.func @padded(
// CHECK-SAME: %[[X:.*]]: tensor<6x4xf32>, %[[W:.*]]: tensor<4x5xf32>, %[[B:.*]]: tensor<5xf32>
// CHECK-DAG: %[[WP:.*]] = nn.pad %[[W]]
// CHECK-DAG: %[[BP:.*]] = nn.pad %[[B]]
// CHECK: %[[Y:.*]] = nn.matmul_epilogue bias %[[X]], %[[WP]], %[[BP]]
// CHECK: %[[YV:.*]] = nn.reshape %[[Y]]
// CHECK: %[[V:.*]] = nn.reshape %[[YV]]
// CHECK-NOT: nn.add
// CHECK: %[[S:.*]] = nn.select %{{.*}}, %[[V]]
// CHECK: nn.cross_entropy %[[S]]
// CHECK: nn.exp %[[V]]
func.func @padded(%x: tensor<6x4xf32>, %w: tensor<4x5xf32>, %b: tensor<5xf32>, %labels: tensor<6xi64>, %scale: tensor<f32>)
    -> (tensor<f32>, tensor<6x8xf32>) {
  %wp = nn.pad %w with 0.0 : f32 low [0, 0] high [0, 3] interior [0, 0] : tensor<4x5xf32> -> tensor<4x8xf32>
  %bp = nn.pad %b with 0.0 : f32 low [0] high [3] interior [0] : tensor<5xf32> -> tensor<8xf32>
  %p = nn.matmul %x, %wp : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %pv = nn.reshape %p : tensor<6x8xf32> -> tensor<2x3x8xf32>
  %r = nn.broadcast %bp dims [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %u = nn.add %pv, %r : tensor<2x3x8xf32>
  %v = nn.reshape %u : tensor<2x3x8xf32> -> tensor<6x8xf32>
  %i = nn.iota 1 : tensor<6x8xi32>
  %end = nn.constant dense<5> : tensor<6x8xi32>
  %exists = nn.compare lt %i, %end : tensor<6x8xi32> -> tensor<6x8xi1>
  %low = nn.constant dense<0xFF800000> : tensor<6x8xf32>
  %s = nn.select %exists, %v, %low : tensor<6x8xi1>, tensor<6x8xf32>
  %loss, %lse = nn.cross_entropy %s, %labels, %scale {ignore_index = -1 : i64} : (tensor<6x8xf32>, tensor<6xi64>, tensor<f32>) -> (tensor<f32>, tensor<6xf32>)
  %e = nn.exp %v : tensor<6x8xf32>
  return %loss, %e : tensor<f32>, tensor<6x8xf32>
}

// Not where somebody reads the product without its bias, nor where there is no bias.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: nn.matmul_epilogue
// CHECK-COUNT-2: nn.cross_entropy
func.func @others(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>, %labels: tensor<6xi64>, %scale: tensor<f32>)
    -> (tensor<f32>, tensor<f32>, tensor<6x8xf32>) {
  %p = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %r = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %u = nn.add %p, %r : tensor<6x8xf32>
  %loss, %lse = nn.cross_entropy %u, %labels, %scale {ignore_index = -1 : i64} : (tensor<6x8xf32>, tensor<6xi64>, tensor<f32>) -> (tensor<f32>, tensor<6xf32>)
  %q = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %more, %mlse = nn.cross_entropy %q, %labels, %scale {ignore_index = -1 : i64} : (tensor<6x8xf32>, tensor<6xi64>, tensor<f32>) -> (tensor<f32>, tensor<6xf32>)
  %e = nn.exp %p : tensor<6x8xf32>
  return %loss, %more, %e : tensor<f32>, tensor<f32>, tensor<6x8xf32>
}
