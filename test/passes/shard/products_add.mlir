// Products that make gradients of weights add to the sum of the micro-steps themselves: in their slices of the accumulator, without a buffer of
// their own. They come first in the bucket, and the other gradients are added by one launch.
// RUN: zero-opt %s --zero-partition="accumulate=3 many-threads=true" --zero-programs --zero-insert-movement=products-add=true --zero-verify-shard -o %t
// RUN: FileCheck %s < %t
// RUN: zero-opt %t --plan-lower | FileCheck %s --check-prefix=STEPS
// Where nobody says that bits stay, where ranks' gradients are summed before, and where micro-steps are of one program, products do not add.
// RUN: zero-opt %s --zero-partition="accumulate=3 many-threads=true" --zero-programs --zero-insert-movement | FileCheck %s --check-prefix=NOT
// RUN: zero-opt %s --zero-partition="accumulate=3 many-threads=true world=2" --zero-programs --zero-insert-movement=products-add=true | FileCheck %s --check-prefix=NOT
// RUN: zero-opt %s --zero-partition="accumulate=3 many-threads=true vertical=true" --zero-programs --zero-interleave --zero-insert-movement=products-add=true | FileCheck %s --check-prefix=NOT
// Nor where the sum rests elsewhere.
// RUN: zero-opt %s --zero-partition="accumulate=3 many-threads=true" --zero-assign-tiers=offload-optimizer=host --zero-programs --zero-insert-movement=products-add=true | FileCheck %s --check-prefix=NOT
// NOT-NOT: onto %{{.*}}transpose_lhs

// CHECK: zero.bucket @bucket0 {{{.*}}offsets = array<i64: 0, 32, 64, 80>, parameters = [@w, @v, @b, @c]
// CHECK-LABEL: func.func @first(
// CHECK-NOT: onto
// CHECK: zero.accumulate @bucket0, %{{.*}} {overwrites}
// CHECK-LABEL: func.func @middle(
// CHECK: %[[BEFORE:.*]] = zero.accumulated @bucket0 : tensor<96xf32>
// CHECK: %[[V:.*]] = zero.view %[[BEFORE]] at 32 : tensor<96xf32> -> tensor<8x4xf32>
// CHECK-NEXT: %[[DV:.*]] = nn.matmul %{{.*}} onto %[[V]] {transpose_lhs = true}
// CHECK: %[[W:.*]] = zero.view %[[BEFORE]] at 0 : tensor<96xf32> -> tensor<4x8xf32>
// CHECK-NEXT: %[[DW:.*]] = nn.matmul %{{.*}} onto %[[W]] {transpose_lhs = true}
// CHECK: %[[P:.*]] = zero.pack %{{.*}}, %{{.*}} at [0, 16] : (tensor<8xf32>, tensor<4xf32>) -> tensor<32xf32>
// CHECK: %[[S:.*]] = zero.view %[[BEFORE]] at 64 : tensor<96xf32> -> tensor<32xf32>
// CHECK: %[[A:.*]] = zero.accumulate @bucket0, %[[P]] onto %[[S]] : tensor<32xf32> {kernel = @accumulate_1x32}
// CHECK: %[[SUM:.*]] = zero.pack %[[DW]], %{{.*}}, %[[A]] at [0, 32, 64]
// CHECK: zero.accumulate @bucket0, %[[SUM]] {overwrites}
// CHECK-LABEL: func.func @last(
// CHECK: zero.pack
// CHECK: %[[LAST:.*]] = zero.accumulate @bucket0, %{{.*}} {overwrites}
// CHECK: zero.update @bucket0, %[[LAST]]
// A norm is that of the whole sum.
// CHECK-LABEL: func.func @last_clip(
// CHECK: %[[ALL:.*]] = zero.accumulate @bucket0, %{{.*}} {overwrites}
// CHECK: nn.reshape %[[ALL]]
// CHECK: nn.launch @sum_squares

// STEPS-LABEL: plan.program middle @middle
// STEPS: %[[G:.*]] = plan.use @bucket0.gradient
// STEPS: %[[REST:.*]] = plan.buffer gradient "bucket0.gradient" bytes 128
// STEPS-SAME: begin = 64
// STEPS-NOT: plan.copy
// STEPS: plan.matmul compute %{{.*}}, %[[G]][128, 128] -> %[[G]][128, 128]{{.*}}accumulate
// STEPS: plan.matmul compute %{{.*}}, %[[G]][0, 128] -> %[[G]][0, 128]{{.*}}accumulate
// STEPS: plan.launch compute %[[G]][256, 128], %[[REST]][0, 128] -> %[[G]][256, 128] : @accumulate_1x32

nn.parameter @b : tensor<8xf32> {trainable = true, init = "zeros"}
nn.parameter @w : tensor<4x8xf32> {trainable = true, init = "zeros"}
nn.parameter @c : tensor<4xf32> {trainable = true, init = "zeros"}
nn.parameter @v : tensor<8x4xf32> {trainable = true, init = "zeros"}
func.func private @loss(%y: tensor<2x4xf32>) -> (tensor<f32>, tensor<2x4xf32>) attributes {nn.kernel} {
  %loss = nn.reduce sum %y dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<2x4xf32>
  return %loss, %one : tensor<f32>, tensor<2x4xf32>
}
func.func private @grad_b(%b: tensor<8xf32>) -> tensor<8xf32> attributes {nn.kernel} {
  %g = nn.neg %b : tensor<8xf32>
  return %g : tensor<8xf32>
}
func.func private @grad_c(%c: tensor<4xf32>) -> tensor<4xf32> attributes {nn.kernel} {
  %g = nn.neg %c : tensor<4xf32>
  return %g : tensor<4xf32>
}
func.func @train(%x: tensor<2x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> {
  %b = nn.get @b : tensor<8xf32>
  %w = nn.get @w : tensor<4x8xf32>
  %h = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %c = nn.get @c : tensor<4xf32>
  %v = nn.get @v : tensor<8x4xf32>
  %y = nn.matmul %h, %v : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %loss, %dy = nn.launch @loss(%y) : (tensor<2x4xf32>) -> (tensor<f32>, tensor<2x4xf32>)
  %db = nn.launch @grad_b(%b) : (tensor<8xf32>) -> tensor<8xf32>
  %dc = nn.launch @grad_c(%c) : (tensor<4xf32>) -> tensor<4xf32>
  nn.gradient @b, %db : tensor<8xf32>
  nn.gradient @c, %dc : tensor<4xf32>
  %dv = nn.matmul %h, %dy {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %flat = nn.reshape %dv : tensor<8x4xf32> -> tensor<32xf32>
  %again = nn.reshape %flat : tensor<32xf32> -> tensor<8x4xf32>
  nn.gradient @v, %again : tensor<8x4xf32>
  %dh = nn.matmul %dy, %v {transpose_rhs = true} : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %dw = nn.matmul %x, %dh {transpose_lhs = true} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  nn.gradient @w, %dw : tensor<4x8xf32>
  return %loss : tensor<f32>
}
func.func @eval(%x: tensor<2x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> {
  %loss, %dy = nn.launch @loss(%x) : (tensor<2x4xf32>) -> (tensor<f32>, tensor<2x4xf32>)
  return %loss : tensor<f32>
}
