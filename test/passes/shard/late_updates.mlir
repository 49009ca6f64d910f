// Of updates that come last some are of buckets from all of forward: by the time that it comes to one of them, there was time for as large a
// part of `late-bytes`.
// RUN: zero-opt %s --zero-partition="bucket-elements=64" --zero-assign-tiers="offload-optimizer=disk" --zero-programs="clip=never" --zero-insert-movement="late-bytes=768" | FileCheck %s
// RUN: zero-opt %s --zero-partition="bucket-elements=64" --zero-assign-tiers="offload-optimizer=disk" --zero-programs="clip=never" --zero-insert-movement="late-bytes=1536" | FileCheck %s --check-prefix=ALL
// RUN: zero-opt %s --zero-partition="bucket-elements=64" --zero-assign-tiers="offload-params=disk" --zero-programs="clip=never" --zero-insert-movement="late-bytes=1536" | FileCheck %s --check-prefix=ALL
// RUN: zero-opt %s --zero-partition="bucket-elements=64" --zero-programs="clip=never" --zero-insert-movement="late-bytes=1536" | FileCheck %s --check-prefix=NONE

// Their squares are summed apart, and their updates are the last of the step.
// CHECK: func.func @step(
// CHECK-COUNT-3: kernel = @adamw_4x16
// CHECK-NOT: kernel = @adamw_4x16
// CHECK: nn.launch @sum_
// CHECK: zero.update @bucket2, {{.*}}kernel = @adamw_apart_4x16
// CHECK-NEXT: zero.update @bucket4, {{.*}}kernel = @adamw_apart_4x16
// CHECK-NEXT: zero.update @bucket5, {{.*}}kernel = @adamw_apart_4x16
// CHECK-NEXT: return
// What forward begins with is never late.
// ALL: zero.update @bucket0, {{.*}}kernel = @adamw_4x16
// ALL: zero.update @bucket1, {{.*}}kernel = @adamw_apart_4x16
// ALL: zero.update @bucket5, {{.*}}kernel = @adamw_apart_4x16
// Where all updates wait for the norm, this changes nothing.
// RUN: zero-opt %s --zero-partition="bucket-elements=64" --zero-assign-tiers="offload-optimizer=disk" --zero-programs="clip=always" --zero-insert-movement="late-bytes=768" | FileCheck %s --check-prefix=CLIP
// CLIP-COUNT-6: kernel = @adamw_clip_4x16
// CLIP-NEXT: return
// On two ranks each sums the squares of its shards, and no update is before the sum over both. What has no room is not late.
// RUN: zero-opt %s --zero-partition="world=2 stage=3 bucket-elements=64" --zero-assign-tiers="offload-optimizer=disk" --zero-programs --zero-insert-movement="late-bytes=128" | FileCheck %s --check-prefix=TWO
// RUN: zero-opt %s --zero-partition="world=2 stage=3 bucket-elements=64" --zero-assign-tiers="offload-optimizer=disk" --zero-programs --zero-insert-movement="late-bytes=127" | FileCheck %s --check-prefix=TIGHT
// TWO-LABEL: func.func @step(
// TWO: nn.launch @sum_squares_2x16(
// TWO-NOT: adamw_apart
// TWO: nn.launch @sum_
// TWO: zero.all_reduce
// TWO-NEXT: zero.view
// TWO-NEXT: zero.view
// TWO-NEXT: zero.update @bucket5, %{{.*}} {kernel = @adamw_apart_2x16}
// TWO-NEXT: return
// TWO-LABEL: func.func @step_clip(
// TWO-COUNT-6: kernel = @adamw_clip_2x16
// TIGHT-LABEL: func.func @step(
// TIGHT-NOT: adamw_apart
// TIGHT-LABEL: func.func @step_clip(
// State on the device is updated at once.
// NONE-NOT: adamw_apart

nn.parameter @w0 : tensor<8x8xf32> {trainable = true, init = "zeros"}
nn.parameter @w1 : tensor<8x8xf32> {trainable = true, init = "zeros"}
nn.parameter @w2 : tensor<8x8xf32> {trainable = true, init = "zeros"}
nn.parameter @w3 : tensor<8x8xf32> {trainable = true, init = "zeros"}
nn.parameter @w4 : tensor<8x8xf32> {trainable = true, init = "zeros"}
nn.parameter @w5 : tensor<8x8xf32> {trainable = true, init = "zeros"}
func.func private @loss(%y: tensor<2x8xf32>) -> (tensor<f32>, tensor<2x8xf32>) attributes {nn.kernel} {
  %loss = nn.reduce sum %y dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<2x8xf32>
  return %loss, %one : tensor<f32>, tensor<2x8xf32>
}
func.func @train(%x0: tensor<2x8xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> {
  %w0 = nn.get @w0 : tensor<8x8xf32>
  %x1 = nn.matmul %x0, %w0 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %w1 = nn.get @w1 : tensor<8x8xf32>
  %x2 = nn.matmul %x1, %w1 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %w2 = nn.get @w2 : tensor<8x8xf32>
  %x3 = nn.matmul %x2, %w2 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %w3 = nn.get @w3 : tensor<8x8xf32>
  %x4 = nn.matmul %x3, %w3 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %w4 = nn.get @w4 : tensor<8x8xf32>
  %x5 = nn.matmul %x4, %w4 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %w5 = nn.get @w5 : tensor<8x8xf32>
  %x6 = nn.matmul %x5, %w5 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %loss, %d6 = nn.launch @loss(%x6) : (tensor<2x8xf32>) -> (tensor<f32>, tensor<2x8xf32>)
  %g5 = nn.matmul %x5, %d6 {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w5, %g5 : tensor<8x8xf32>
  %d5 = nn.matmul %d6, %w5 {transpose_rhs = true} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %g4 = nn.matmul %x4, %d5 {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w4, %g4 : tensor<8x8xf32>
  %d4 = nn.matmul %d5, %w4 {transpose_rhs = true} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %g3 = nn.matmul %x3, %d4 {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w3, %g3 : tensor<8x8xf32>
  %d3 = nn.matmul %d4, %w3 {transpose_rhs = true} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %g2 = nn.matmul %x2, %d3 {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w2, %g2 : tensor<8x8xf32>
  %d2 = nn.matmul %d3, %w2 {transpose_rhs = true} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %g1 = nn.matmul %x1, %d2 {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w1, %g1 : tensor<8x8xf32>
  %d1 = nn.matmul %d2, %w1 {transpose_rhs = true} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %g0 = nn.matmul %x0, %d1 {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w0, %g0 : tensor<8x8xf32>
  return %loss : tensor<f32>
}
func.func @eval(%x: tensor<2x8xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> {
  %w = nn.get @w0 : tensor<8x8xf32>
  %y = nn.matmul %x, %w : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %loss, %dy = nn.launch @loss(%y) : (tensor<2x8xf32>) -> (tensor<f32>, tensor<2x8xf32>)
  return %loss : tensor<f32>
}
