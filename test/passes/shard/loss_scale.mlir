// Trained parameters that are read in f16: the loss is scaled, every update waits for the norm, and there is no variant that clips. Gradients
// that come in bf16 are reduced to f32, and shards are multiples of 64 bytes in either.
// RUN: zero-opt %s --zero-shard-pipeline="world=2 stage=2 optimizer=sgd" | FileCheck %s

// CHECK: zero.scales_loss
// CHECK: zero.bucket @bucket0 {elements = 128 : i64, {{.*}}shard = 64 : i64
// CHECK-NOT: @step_clip
// CHECK: func.func @step
// CHECK: %[[PACK:.*]] = zero.pack %{{.*}} at [0] : (tensor<9x8xbf16>) -> tensor<128xbf16>
// CHECK: %[[SHARD:.*]] = zero.reduce_scatter %[[PACK]] : tensor<128xbf16> -> tensor<64xf32>
// CHECK: nn.launch @sum_squares_{{.*}} -> tensor<2xf32>
// CHECK: zero.all_reduce
// CHECK: zero.update @bucket0, %[[SHARD]], %{{.*}} clip %{{.*}}kernel = @sgd_scaled_f16_2x32
// CHECK-NOT: @step_clip
// CHECK: func.func private @sgd_scaled_f16_2x32
// CHECK: nn.compare le
// CHECK: nn.select
nn.parameter @w : tensor<9x8xf32> {trainable = true}
func.func private @loss(%y: tensor<4x8xf16>) -> (tensor<1xf32>, tensor<4x8xf16>) attributes {nn.kernel, nn.inplace = []} {
  %w = nn.cast %y : tensor<4x8xf16> -> tensor<4x8xf32>
  %s = nn.reduce sum %w dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %l = nn.reshape %s : tensor<f32> -> tensor<1xf32>
  %d = nn.cast %w : tensor<4x8xf32> -> tensor<4x8xf16>
  return %l, %d : tensor<1xf32>, tensor<4x8xf16>
}
func.func private @narrow(%g: tensor<9x8xf32>) -> tensor<9x8xbf16> attributes {nn.kernel, nn.inplace = []} {
  %n = nn.cast %g : tensor<9x8xf32> -> tensor<9x8xbf16>
  return %n : tensor<9x8xbf16>
}
func.func @train(%x: tensor<4x9xf16> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> {
  %w = nn.get @w : tensor<9x8xf16>
  %y = nn.matmul %x, %w : (tensor<4x9xf16>, tensor<9x8xf16>) -> tensor<4x8xf16>
  %l, %d = nn.launch @loss(%y) : (tensor<4x8xf16>) -> (tensor<1xf32>, tensor<4x8xf16>)
  %g = nn.matmul %x, %d {transpose_lhs = true} : (tensor<4x9xf16>, tensor<4x8xf16>) -> tensor<9x8xf32>
  %n = nn.launch @narrow(%g) : (tensor<9x8xf32>) -> tensor<9x8xbf16>
  nn.gradient @w, %n : tensor<9x8xbf16>
  return %l : tensor<1xf32>
}
func.func @eval(%x: tensor<4x9xf16> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> {
  %w = nn.get @w : tensor<9x8xf16>
  %y = nn.matmul %x, %w : (tensor<4x9xf16>, tensor<9x8xf16>) -> tensor<4x8xf16>
  %l, %d = nn.launch @loss(%y) : (tensor<4x8xf16>) -> (tensor<1xf32>, tensor<4x8xf16>)
  return %l : tensor<1xf32>
}
