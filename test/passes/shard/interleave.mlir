// Vertical order: pieces of a program are done for all micro-steps before the next, with a sum of gradients that no bucket keeps.
// RUN: zero-opt %s --zero-partition="accumulate=3 vertical=1 bucket-elements=32" --zero-programs --zero-interleave="buckets=1" | FileCheck %s --check-prefix=PIECES
// RUN: zero-opt %s --zero-partition="accumulate=3 vertical=1 bucket-elements=32" --zero-programs --zero-interleave | FileCheck %s --check-prefix=TOGETHER
// RUN: zero-opt %s --zero-shard-pipeline="world=2 stage=3 accumulate=3 vertical=1 bucket-elements=32" | FileCheck %s --check-prefix=MOVED
// RUN: zero-opt %s --zero-shard-pipeline="world=2 stage=3 accumulate=1 vertical=1 bucket-elements=32" | FileCheck %s --check-prefix=ONE
// RUN: not zero-opt %s --zero-partition="accumulate=3 vertical=1" --zero-programs --zero-insert-movement 2>&1 | FileCheck %s --check-prefix=APART

// Each micro-step has samples of its own, and what depends on none of them (@scaled) is computed once.
// PIECES: module attributes {{{.*}}zero.vertical
// PIECES-NOT: gradient f32
// PIECES-LABEL: func.func @step(
// PIECES-SAME: %[[X0:[a-z0-9]+]]: tensor<2x4xf32> {nn.name = "x", nn.role = "data"}
// PIECES-SAME: %[[S:[a-z0-9]+]]: tensor<1xf32> {nn.name = "scale", nn.role = "loss_scale"}
// PIECES-SAME: %[[X1:[a-z0-9]+]]: tensor<2x4xf32> {nn.name = "x", nn.role = "data", zero.micro_step = 1 : i64}
// PIECES-SAME: %[[X2:[a-z0-9]+]]: tensor<2x4xf32> {nn.name = "x", nn.role = "data", zero.micro_step = 2 : i64}
// PIECES-SAME: %{{[a-z0-9]+}}: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"}) -> (tensor<f32>, tensor<f32>, tensor<f32>)
// PIECES: %[[W:.*]] = nn.get @w
// PIECES: %[[V:.*]] = nn.get @v
// PIECES: nn.launch @scaled(%[[S]])
// PIECES-NOT: nn.launch @scaled
// PIECES: %[[H0:.*]] = nn.matmul %[[X0]], %[[W]]
// PIECES-NEXT: %[[H1:.*]] = nn.matmul %[[X1]], %[[W]]
// PIECES-NEXT: %[[H2:.*]] = nn.matmul %[[X2]], %[[W]]
// PIECES-NEXT: nn.matmul %[[H0]], %[[V]]
// After the last use of @v its piece goes on, with loss and gradients of one micro-step after the other.
// PIECES: nn.gradient @v
// PIECES: nn.gradient @w
// PIECES: nn.matmul %[[H1]], %[[V]]
// PIECES: nn.gradient @v
// PIECES: nn.gradient @w
// PIECES: nn.matmul %[[H2]], %[[V]]
// PIECES: return %[[L0:.*]], %[[L1:.*]], %[[L2:.*]] : tensor<f32>, tensor<f32>, tensor<f32>
// Evaluation takes one batch.
// PIECES-LABEL: func.func @eval(%{{[^%]*}}, %{{[^%]*}}) -> tensor<f32>

// Two buckets fit into a piece: no other stands between two uses of the same.
// TOGETHER-LABEL: func.func @step(
// TOGETHER: %[[H0:.*]] = nn.matmul %{{.*}}, %[[W:.*]] : (tensor<2x4xf32>, tensor<4x8xf32>)
// TOGETHER-NEXT: nn.matmul %[[H0]], %{{.*}}

// All micro-steps use what was gathered once. Their gradients are reduced one by one, in order, and added; the update takes the sum.
// MOVED-LABEL: func.func @step(
// MOVED-COUNT-2: zero.gather
// MOVED-NOT: zero.gather
// MOVED: %[[V0:.*]] = zero.reduce_scatter
// MOVED: %[[W0:.*]] = zero.reduce_scatter
// MOVED: %[[V1:.*]] = zero.reduce_scatter
// MOVED-NEXT: %[[V01:.*]] = zero.accumulate @bucket1, %[[V1]] onto %[[V0]] : tensor<16xf32> {kernel = @accumulate_1x16}
// MOVED: %[[W1:.*]] = zero.reduce_scatter
// MOVED-NEXT: %[[W01:.*]] = zero.accumulate @bucket0, %[[W1]] onto %[[W0]] : tensor<16xf32> {kernel = @accumulate_1x16}
// MOVED: %[[V2:.*]] = zero.reduce_scatter
// MOVED-NEXT: %[[V:.*]] = zero.accumulate @bucket1, %[[V2]] onto %[[V01]]
// MOVED: zero.update @bucket1, %[[V]]
// MOVED: %[[W2:.*]] = zero.reduce_scatter
// MOVED-NEXT: %[[W:.*]] = zero.accumulate @bucket0, %[[W2]] onto %[[W01]]
// MOVED-NEXT: zero.update @bucket0, %[[W]]
// Three losses and the norm go over the ranks together.
// MOVED: %[[ALL:.*]] = zero.all_reduce %{{.*}} : tensor<4xf32>
// MOVED-NEXT: %[[LOSSES:.*]] = zero.view %[[ALL]] at 0 : tensor<4xf32> -> tensor<3xf32>
// MOVED-NEXT: %[[NORM:.*]] = zero.view %[[ALL]] at 3 : tensor<4xf32> -> tensor<1xf32>
// MOVED-NEXT: return %[[LOSSES]], %[[NORM]]

// One micro-step has no order.
// ONE-NOT: zero.vertical
// ONE-NOT: zero.accumulate @
// ONE: func.func @step(

// APART: @step returns 1 values, not the loss alone of each micro-step; run zero-interleave first

nn.parameter @w : tensor<4x8xf32> {trainable = true, init = "zeros"}
nn.parameter @v : tensor<8x4xf32> {trainable = true, init = "zeros"}
func.func private @scaled(%s: tensor<1xf32>) -> tensor<1xf32> attributes {nn.kernel} {
  %double = nn.add %s, %s : tensor<1xf32>
  return %double : tensor<1xf32>
}
func.func private @loss(%y: tensor<2x4xf32>, %s: tensor<1xf32>) -> (tensor<f32>, tensor<2x4xf32>) attributes {nn.kernel} {
  %loss = nn.reduce sum %y dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<2x4xf32>
  return %loss, %one : tensor<f32>, tensor<2x4xf32>
}
func.func @train(%x: tensor<2x4xf32> {nn.name = "x", nn.role = "data"}, %s: tensor<1xf32> {nn.name = "scale", nn.role = "loss_scale"}) -> tensor<f32> {
  %w = nn.get @w : tensor<4x8xf32>
  %v = nn.get @v : tensor<8x4xf32>
  %t = nn.launch @scaled(%s) : (tensor<1xf32>) -> tensor<1xf32>
  %h = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %y = nn.matmul %h, %v : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %loss, %dy = nn.launch @loss(%y, %t) : (tensor<2x4xf32>, tensor<1xf32>) -> (tensor<f32>, tensor<2x4xf32>)
  %dv = nn.matmul %h, %dy {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  nn.gradient @v, %dv : tensor<8x4xf32>
  %dh = nn.matmul %dy, %v {transpose_rhs = true} : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %dw = nn.matmul %x, %dh {transpose_lhs = true} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  nn.gradient @w, %dw : tensor<4x8xf32>
  return %loss : tensor<f32>
}
func.func @eval(%x: tensor<2x4xf32> {nn.name = "x", nn.role = "data"}, %s: tensor<1xf32> {nn.name = "scale", nn.role = "loss_scale"}) -> tensor<f32> {
  %w = nn.get @w : tensor<4x8xf32>
  %v = nn.get @v : tensor<8x4xf32>
  %h = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %y = nn.matmul %h, %v : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %loss, %dy = nn.launch @loss(%y, %s) : (tensor<2x4xf32>, tensor<1xf32>) -> (tensor<f32>, tensor<2x4xf32>)
  return %loss : tensor<f32>
}
