// RUN: zero-opt %s --split-input-file --nn-tile=parts=2 | FileCheck %s
// RUN: zero-opt %s --split-input-file --nn-tile=parts=2 2>&1 >/dev/null | FileCheck %s --check-prefix=NOTE
// RUN: zero-opt %s --split-input-file --nn-tile | FileCheck %s --check-prefix=OFF
// RUN: not zero-opt %s --split-input-file --nn-tile=parts=0 2>&1 | FileCheck %s --check-prefix=NONE

// OFF-NOT: tile_of
// NONE: error: a parameter is cut into one part or more, not 0

// A table whose rows are the classes of a tied head: each tile contributes the rows it holds; of the logits there is one tile at a time.
// CHECK: nn.parameter @"table#0" : tensor<32x8xf32> {aliases = [{name = "head"}], begin = array<i64: 0, 0>, bytes = 1600 : i64, file = "w", tile_of = "table", trainable = true, whole = array<i64: 50, 8>}
// CHECK: nn.parameter @"table#1" : tensor<18x8xf32> {{.*}}begin = array<i64: 32, 0>
// CHECK-NOT: nn.parameter @table :
// CHECK: nn.parameter @small : tensor<8xf32>
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[IDS:.*]]: tensor<4xi64>, %[[LABELS:.*]]: tensor<4xi64>, %[[SCALE:.*]]: tensor<1xf32>)
// CHECK: nn.compare lt %[[IDS]]
// CHECK: nn.get @"table#0"
// CHECK: %[[R0:.*]] = nn.gather {{.*}} tensor<32x8xf32>, tensor<4xi64>
// CHECK: %[[S0:.*]] = nn.select %{{.*}}, %[[R0]], %{{.*}}
// CHECK: nn.compare ge %[[IDS]]
// CHECK: nn.get @"table#1"
// CHECK: %[[R1:.*]] = nn.gather {{.*}} tensor<18x8xf32>, tensor<4xi64>
// CHECK: %[[S1:.*]] = nn.select %{{.*}}, %[[R1]], %{{.*}}
// CHECK: %[[X:.*]] = nn.add %[[S0]], %[[S1]]
// CHECK-NOT: tensor<4x50xf32>
// CHECK: %[[L0:.*]] = nn.matmul %[[X]], %{{.*}} {keep_lhs, recompute, transpose_rhs = true} {{.*}} -> tensor<4x32xf32>
// CHECK: %{{.*}}, %[[E0:.*]] = nn.cross_entropy %[[L0]], %{{.*}}, %[[SCALE]] {ignore_index = -1 : i64
// CHECK: %[[V0:.*]] = nn.reshape %[[E0]] : tensor<4xf32> -> tensor<4x1xf32>
// CHECK: nn.matmul %[[X]], %{{.*}} {keep_lhs, recompute, transpose_rhs = true} {{.*}} -> tensor<4x18xf32>
// CHECK: %[[ALL:.*]] = nn.concat %[[V0]], %{{.*}} dim 1
// CHECK: nn.cross_entropy %[[ALL]]
nn.parameter @table : tensor<50x8xf32> {trainable = true, file = "w", bytes = 1600 : i64, aliases = [{name = "head"}]}
nn.parameter @small : tensor<8xf32> {trainable = true}
func.func @train(%ids: tensor<4xi64>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %table = nn.get @table : tensor<50x8xf32>
  %small = nn.get @small : tensor<8xf32>
  %x = nn.gather %table, %ids : tensor<50x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
  %logits = nn.matmul %x, %table {transpose_rhs = true} : (tensor<4x8xf32>, tensor<50x8xf32>) -> tensor<4x50xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x50xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}

// -----

// Rows that are results lie side by side, rows that are summed over make partial sums; classes that are columns are cut as columns, with their bias.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[X:.*]]: tensor<4x40xf32>
// CHECK: %[[A:.*]] = nn.matmul %[[X]], %{{.*}} {transpose_rhs = true} : (tensor<4x40xf32>, tensor<32x40xf32>)
// CHECK: %[[B:.*]] = nn.matmul %[[X]], %{{.*}} {transpose_rhs = true} : (tensor<4x40xf32>, tensor<8x40xf32>)
// CHECK: %[[Y:.*]] = nn.concat %[[A]], %[[B]] dim 1
// CHECK: %[[Y0:.*]] = nn.slice %[[Y]] starts [0, 0] sizes [4, 32] steps [1, 1]
// CHECK: %[[P0:.*]] = nn.matmul %[[Y0]], %{{.*}} : (tensor<4x32xf32>, tensor<32x40xf32>)
// CHECK: %[[Y1:.*]] = nn.slice %[[Y]] starts [0, 32] sizes [4, 8] steps [1, 1]
// CHECK: %[[P1:.*]] = nn.matmul %[[Y1]], %{{.*}} : (tensor<4x8xf32>, tensor<8x40xf32>)
// CHECK: %[[Z:.*]] = nn.add %[[P0]], %[[P1]]
// CHECK: nn.matmul %[[Z]], %{{.*}} {keep_lhs, recompute} : (tensor<4x40xf32>, tensor<40x32xf32>)
// CHECK: nn.slice %{{.*}} starts [0] sizes [32] steps [1] : tensor<48xf32> -> tensor<32xf32>
// CHECK: nn.matmul %[[Z]], %{{.*}} {keep_lhs, recompute} : (tensor<4x40xf32>, tensor<40x16xf32>)
nn.parameter @in : tensor<40x40xf32> {trainable = true}
nn.parameter @out : tensor<40x40xf32> {trainable = true}
nn.parameter @head : tensor<40x48xf32> {trainable = true}
nn.parameter @bias : tensor<48xf32> {trainable = true}
func.func @train(%x: tensor<4x40xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %in = nn.get @in : tensor<40x40xf32>
  %out = nn.get @out : tensor<40x40xf32>
  %head = nn.get @head : tensor<40x48xf32>
  %bias = nn.get @bias : tensor<48xf32>
  %y = nn.matmul %x, %in {transpose_rhs = true} : (tensor<4x40xf32>, tensor<40x40xf32>) -> tensor<4x40xf32>
  %z = nn.matmul %y, %out : (tensor<4x40xf32>, tensor<40x40xf32>) -> tensor<4x40xf32>
  %p = nn.matmul %z, %head : (tensor<4x40xf32>, tensor<40x48xf32>) -> tensor<4x48xf32>
  %b = nn.broadcast %bias dims [1] : tensor<48xf32> -> tensor<4x48xf32>
  %logits = nn.add %p, %b : tensor<4x48xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x48xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}

// -----

// Smoothed labels take of each tile the sum of its logits as well; what is neither a table nor a product's weights stays in one piece.
// NOTE-NOT: are made whole
// NOTE: parameter 'other' is not cut into tiles: this node reads it neither as a table nor as a product's weights
// CHECK: nn.parameter @"head#1"
// CHECK: nn.parameter @other : tensor<40x48xf32>
// CHECK-LABEL: func.func @train(
// CHECK: %[[A:.*]] = nn.matmul {{.*}} -> tensor<4x32xf32>
// CHECK: nn.cross_entropy %[[A]], {{.*}} {ignore_index = -1 : i64}
// CHECK: nn.reduce sum %[[A]] dims [1]
// CHECK: %[[B:.*]] = nn.matmul {{.*}} -> tensor<4x8xf32>
// CHECK: nn.cross_entropy %[[B]], {{.*}} {ignore_index = -1 : i64}
// CHECK: nn.reduce sum %[[B]] dims [1]
// CHECK: nn.cross_entropy {{.*}} : (tensor<4x2xf32>
// CHECK-NOT: tensor<4x40xf32>
nn.parameter @head : tensor<40x48xf32> {trainable = true}
nn.parameter @other : tensor<40x48xf32> {trainable = true}
func.func @train(%x: tensor<4x48xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %head = nn.get @head : tensor<40x48xf32>
  %other = nn.get @other : tensor<40x48xf32>
  %logits = nn.matmul %x, %head {transpose_rhs = true} : (tensor<4x48xf32>, tensor<40x48xf32>) -> tensor<4x40xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %scale {ignore_index = -100 : i64, label_smoothing = 0.5 : f32} : (tensor<4x40xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  %sum = nn.reduce sum %other dims [0, 1] : tensor<40x48xf32> -> tensor<f32>
  %both = nn.add %loss, %sum : tensor<f32>
  return %both : tensor<f32>
}

// -----

// What is done to each logit alone, as views, a scale, a cap and a number of each class, is done to those of a tile.
// CHECK-LABEL: func.func @train(
// CHECK-NOT: nn.div
// CHECK: %[[A:.*]] = nn.matmul {{.*}} -> tensor<4x32xf32>
// CHECK: %[[P:.*]] = nn.div %[[A]], %{{.*}} : tensor<4x32xf32>
// CHECK: %[[T:.*]] = nn.tanh %[[P]] : tensor<4x32xf32>
// CHECK: %[[W:.*]] = nn.slice %{{.*}} starts [0] sizes [32] steps [1] : tensor<40xf32> -> tensor<32xf32>
// CHECK: %[[V:.*]] = nn.broadcast %[[W]] dims [1] : tensor<32xf32> -> tensor<4x32xf32>
// CHECK: %[[L:.*]] = nn.mul %[[T]], %[[V]] : tensor<4x32xf32>
// CHECK: nn.cross_entropy %[[L]], {{.*}} {ignore_index = -1 : i64}
// CHECK: %[[B:.*]] = nn.matmul {{.*}} -> tensor<4x8xf32>
// CHECK: nn.tanh {{.*}} : tensor<4x8xf32>
// CHECK: nn.slice %{{.*}} starts [32] sizes [8] steps [1] : tensor<40xf32> -> tensor<8xf32>
nn.parameter @head : tensor<40x48xf32> {trainable = true}
nn.parameter @weights : tensor<40xf32> {trainable = true}
func.func @train(%x: tensor<4x48xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %head = nn.get @head : tensor<40x48xf32>
  %weights = nn.get @weights : tensor<40xf32>
  %y = nn.matmul %x, %head {transpose_rhs = true} : (tensor<4x48xf32>, tensor<40x48xf32>) -> tensor<4x40xf32>
  %r = nn.reshape %y : tensor<4x40xf32> -> tensor<2x2x40xf32>
  %cap = nn.constant dense<30.0> : tensor<2x2x40xf32>
  %part = nn.div %r, %cap : tensor<2x2x40xf32>
  %tanh = nn.tanh %part : tensor<2x2x40xf32>
  %each = nn.broadcast %weights dims [2] : tensor<40xf32> -> tensor<2x2x40xf32>
  %capped = nn.mul %tanh, %each : tensor<2x2x40xf32>
  %logits = nn.reshape %capped : tensor<2x2x40xf32> -> tensor<4x40xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x40xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}

// -----

// What compares classes with each other reads all of them.
// CHECK-LABEL: func.func @train(
// CHECK: nn.concat {{.*}} -> tensor<4x40xf32>
// CHECK: nn.reduce max
nn.parameter @head : tensor<40x48xf32> {trainable = true}
func.func @train(%x: tensor<4x48xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %head = nn.get @head : tensor<40x48xf32>
  %y = nn.matmul %x, %head {transpose_rhs = true} : (tensor<4x48xf32>, tensor<40x48xf32>) -> tensor<4x40xf32>
  %max = nn.reduce max %y dims [1] : tensor<4x40xf32> -> tensor<4xf32>
  %rows = nn.broadcast %max dims [0] : tensor<4xf32> -> tensor<4x40xf32>
  %logits = nn.sub %y, %rows : tensor<4x40xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x40xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
