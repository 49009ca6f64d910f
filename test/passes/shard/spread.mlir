// What the optimizer keeps of eight equal buckets, of which the device has room for three: without `spread` of those whose gradients are
// complete last, with it of some from all of backward.
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=auto device-bytes=300" %s | FileCheck %s --check-prefix=LAST
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=auto device-bytes=300 spread=true" %s | FileCheck %s --check-prefix=SPREAD
// LAST: @b0 {{.*}}momentum f32 whole on device
// LAST: @b1 {{.*}}momentum f32 whole on device
// LAST: @b2 {{.*}}momentum f32 whole on device
// LAST-COUNT-5: momentum f32 whole on disk
// SPREAD: @b0 {{.*}}momentum f32 whole on device
// SPREAD: @b1 {{.*}}momentum f32 whole on disk
// SPREAD: @b2 {{.*}}momentum f32 whole on device
// SPREAD: @b3 {{.*}}momentum f32 whole on disk
// SPREAD: @b4 {{.*}}momentum f32 whole on disk
// SPREAD: @b5 {{.*}}momentum f32 whole on device
// SPREAD: @b6 {{.*}}momentum f32 whole on disk
// SPREAD: @b7 {{.*}}momentum f32 whole on disk
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
nn.parameter @p0 : tensor<25xf32> {trainable = true}
nn.parameter @p1 : tensor<25xf32> {trainable = true}
nn.parameter @p2 : tensor<25xf32> {trainable = true}
nn.parameter @p3 : tensor<25xf32> {trainable = true}
nn.parameter @p4 : tensor<25xf32> {trainable = true}
nn.parameter @p5 : tensor<25xf32> {trainable = true}
nn.parameter @p6 : tensor<25xf32> {trainable = true}
nn.parameter @p7 : tensor<25xf32> {trainable = true}
zero.bucket @b0 {elements = 25 : i64, shard = 25 : i64, parameters = [@p0], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
zero.bucket @b1 {elements = 25 : i64, shard = 25 : i64, parameters = [@p1], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
zero.bucket @b2 {elements = 25 : i64, shard = 25 : i64, parameters = [@p2], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
zero.bucket @b3 {elements = 25 : i64, shard = 25 : i64, parameters = [@p3], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
zero.bucket @b4 {elements = 25 : i64, shard = 25 : i64, parameters = [@p4], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
zero.bucket @b5 {elements = 25 : i64, shard = 25 : i64, parameters = [@p5], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
zero.bucket @b6 {elements = 25 : i64, shard = 25 : i64, parameters = [@p6], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
zero.bucket @b7 {elements = 25 : i64, shard = 25 : i64, parameters = [@p7], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
func.func @train() {
  %0 = nn.get @p0 : tensor<25xf32>
  %1 = nn.get @p1 : tensor<25xf32>
  %2 = nn.get @p2 : tensor<25xf32>
  %3 = nn.get @p3 : tensor<25xf32>
  %4 = nn.get @p4 : tensor<25xf32>
  %5 = nn.get @p5 : tensor<25xf32>
  %6 = nn.get @p6 : tensor<25xf32>
  %7 = nn.get @p7 : tensor<25xf32>
  %d7 = nn.neg %7 : tensor<25xf32>
  nn.gradient @p7, %d7 : tensor<25xf32>
  %d6 = nn.neg %6 : tensor<25xf32>
  nn.gradient @p6, %d6 : tensor<25xf32>
  %d5 = nn.neg %5 : tensor<25xf32>
  nn.gradient @p5, %d5 : tensor<25xf32>
  %d4 = nn.neg %4 : tensor<25xf32>
  nn.gradient @p4, %d4 : tensor<25xf32>
  %d3 = nn.neg %3 : tensor<25xf32>
  nn.gradient @p3, %d3 : tensor<25xf32>
  %d2 = nn.neg %2 : tensor<25xf32>
  nn.gradient @p2, %d2 : tensor<25xf32>
  %d1 = nn.neg %1 : tensor<25xf32>
  nn.gradient @p1, %d1 : tensor<25xf32>
  %d0 = nn.neg %0 : tensor<25xf32>
  nn.gradient @p0, %d0 : tensor<25xf32>
  return
}
}
