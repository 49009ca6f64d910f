// RUN: zero-opt %s --zero-partition="world=2 stage=3 bucket-elements=2088" | FileCheck %s
// RUN: zero-opt %s --zero-partition="world=2 stage=3 bucket-elements=2087" | FileCheck %s --check-prefix=TIGHT
// RUN: zero-opt %s --zero-partition="world=2 stage=1 accumulate=2 optimizer=sgd" | FileCheck %s --check-prefix=SGD
// RUN: not zero-opt %s --zero-partition="world=0" 2>&1 | FileCheck %s --check-prefix=WORLD

// Parameters in the order of their first use, @b after @w; @b is padded from 40 to 48 elements by alignment.
// 2048 + 48 elements over 2 ranks: 1048 each, rounded up to a multiple of 16: 1056.
// CHECK: module attributes {{{.*}}zero.accumulate = 1 : i64, zero.optimizer = "adamw", zero.stage = 3 : i64, zero.world = 2 : i64}
// CHECK: zero.bucket @bucket0 {elements = 2112 : i64, offsets = array<i64: 0, 2048>, parameters = [@w, @b], shard = 1056 : i64, tensors = [#zero.tensor<master f32 shard on device>, #zero.tensor<first_moment f32 shard on device>, #zero.tensor<second_moment f32 shard on device>], trainable = true}
// A frozen parameter lies in a bucket of its own kind.
// CHECK: zero.bucket @frozen0 {elements = 32 : i64, offsets = array<i64: 0>, parameters = [@f], shard = 16 : i64, tensors = [#zero.tensor<master f32 shard on device>], trainable = false}
// Stage 1 shards the optimizer's tensors alone; a gradient is kept between micro-steps.
// SGD: tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<gradient f32 shard on device>, #zero.tensor<momentum f32 shard on device>], trainable = true}
// SGD: tensors = [#zero.tensor<master f32 whole on device>], trainable = false}
// One element less, and the second parameter starts a bucket: 2048 / 2 = 1024 and 48 / 2 = 24, rounded up to 32.
// TIGHT: @bucket0 {elements = 2048 : i64, {{.*}}parameters = [@w], shard = 1024 : i64
// TIGHT: @bucket1 {elements = 64 : i64, {{.*}}parameters = [@b], shard = 32 : i64
// WORLD: world and accumulate are at least 1
nn.parameter @b : tensor<40xf32> {trainable = true, init = "zeros"}
nn.parameter @w : tensor<64x32xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32}
nn.parameter @f : tensor<20xf32> {trainable = false, init = "ones"}
func.func @train(%x: tensor<4x64xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> {
  %w = nn.get @w : tensor<64x32xf32>
  %b = nn.get @b : tensor<40xf32>
  %f = nn.get @f : tensor<20xf32>
  %loss = nn.reduce sum %f dims [0] : tensor<20xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
