// A device that has a memory of its own, and a bucket whose momentum rests in the host's: the host's processors update it there. Its master goes along, and
// what programs read on the device is a compute copy. Where something rests on disk, the host updates it if it is told to, and a master that programs read on
// the device stays there.
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=host host-updates=true" %s | FileCheck %s
// RUN: zero-opt "--zero-assign-tiers=offload-params=host offload-optimizer=host host-updates=true" %s | FileCheck %s --check-prefix=BOTH
// RUN: zero-opt "--zero-assign-tiers=offload-params=disk offload-optimizer=host host-updates=true" %s | FileCheck %s --check-prefix=DEVICE
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=disk host-updates=true" %s | FileCheck %s --check-prefix=DEVICE
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=host" %s | FileCheck %s --check-prefix=DEVICE
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=host host-updates=true disk-updates=true" %s | FileCheck %s
// RUN: zero-opt "--zero-assign-tiers=offload-params=disk offload-optimizer=host host-updates=true disk-updates=true" %s | FileCheck %s --check-prefixes=DISK,PARAMS
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=disk host-updates=true disk-updates=true" %s | FileCheck %s --check-prefixes=DISK,MOMENTS
// On the host a shard's momentum takes 128 bytes, and its master and gradient as many each.
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=auto device-bytes=0 host-bytes=384 host-updates=true" %s | FileCheck %s
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=auto device-bytes=0 host-bytes=383 host-updates=true" %s | FileCheck %s --check-prefix=DEVICE
// The gradient's squares are summed on the device; then the gradient goes down, and with it, once, the hyper-parameters and the norm.
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=host host-updates=true" --zero-programs --zero-insert-movement --zero-verify-shard %s | FileCheck %s --check-prefix=MOVE
// Of several micro-steps each gradient comes down; the host adds those between the first and the last, the device the last one, whose squares it sums.
// RUN: zero-opt %S/Inputs/train.mlir --zero-partition="world=2 stage=2 accumulate=3" "--zero-assign-tiers=offload-optimizer=host host-updates=true" --zero-programs --zero-insert-movement --zero-verify-shard | FileCheck %s --check-prefix=ADD
// ADD: func.func @first(
// ADD-NOT: zero.to_host
// ADD: zero.accumulate @bucket0, %{{.*}} {first}
// ADD: func.func @middle(
// ADD: %[[SHARD:.*]] = zero.reduce_scatter
// ADD: %[[DOWN:.*]] = zero.to_host %[[SHARD]] : tensor<16xf32>
// ADD: zero.accumulate @bucket0, %[[DOWN]] {kernel = @accumulate_1x16}
// ADD: func.func @last(
// ADD: %[[SHARD:.*]] = zero.reduce_scatter
// ADD: %[[SUM:.*]] = zero.accumulate @bucket0, %[[SHARD]] {kernel = @accumulate_1x16}
// ADD: nn.launch @sum_squares
// ADD: %[[DOWN:.*]] = zero.to_host %[[SUM]] : tensor<16xf32>
// ADD: zero.update @bucket0, %[[DOWN]],
module attributes {zero.world = 2 : i64, zero.stage = 1 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
// CHECK: zero.bucket @b0
// CHECK-SAME: tensors = [#zero.tensor<master f32 shard on host>, #zero.tensor<compute f32 whole on device>, #zero.tensor<momentum f32 shard on host>]
// CHECK-SAME: updated_on_host
// CHECK: zero.bucket @frozen
// CHECK-SAME: tensors = [#zero.tensor<master f32 whole on device>]
// CHECK-NOT: updated_on_host
// BOTH: zero.bucket @b0
// BOTH-SAME: tensors = [#zero.tensor<master f32 whole on host>, #zero.tensor<momentum f32 shard on host>]
// BOTH-SAME: updated_on_host
// DISK: zero.bucket @b0
// PARAMS-SAME: tensors = [#zero.tensor<master f32 whole on disk>, #zero.tensor<momentum f32 shard on host>]
// MOMENTS-SAME: tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 shard on disk>]
// DISK-SAME: updated_on_host
// DISK: zero.bucket @frozen
// DISK-NOT: updated_on_host
// DEVICE-NOT: updated_on_host
// DEVICE-NOT: compute
nn.parameter @w : tensor<8x8xf32> {trainable = true}
nn.parameter @f : tensor<8x8xf32> {trainable = false}
zero.bucket @b0 {elements = 64 : i64, shard = 32 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true,
                 tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 shard on device>]}
zero.bucket @frozen {elements = 64 : i64, shard = 32 : i64, parameters = [@f], offsets = array<i64: 0>, trainable = false,
                     tensors = [#zero.tensor<master f32 whole on device>]}
// MOVE: func.func @step(
// MOVE-SAME: %[[HYPER:[a-z0-9]*]]: tensor<16xf32> {{.*}}"hyper"
// MOVE: %[[H:.*]] = zero.to_host %[[HYPER]] : tensor<16xf32>
// MOVE: %[[SHARD:.*]] = zero.reduce_scatter
// MOVE: nn.launch @sum_squares
// MOVE: %[[G:.*]] = zero.to_host %[[SHARD]] : tensor<32xf32>
// MOVE: zero.update @b0, %[[G]], %[[H]] {kernel = @sgd_apart_{{.*}}} : (tensor<32xf32>, tensor<16xf32>) -> ()
// MOVE: zero.publish @b0
// MOVE: func.func @step_clip(
// MOVE: %[[G:.*]] = zero.to_host %{{.*}} : tensor<32xf32>
// MOVE: zero.all_reduce
// MOVE: %[[NORM:.*]] = zero.view
// MOVE: %[[N:.*]] = zero.to_host %{{.*}} : tensor<1xf32>
// MOVE: zero.update @b0, %[[G]], %{{.*}} clip %[[N]] {kernel = @sgd_clip_{{.*}}}
func.func @train(%x: tensor<4x8xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> {
  %w = nn.get @w : tensor<8x8xf32>
  %f = nn.get @f : tensor<8x8xf32>
  %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = nn.matmul %y, %f : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %l, %dz = nn.launch @loss(%z) : (tensor<4x8xf32>) -> (tensor<1xf32>, tensor<4x8xf32>)
  %dy = nn.matmul %dz, %f {transpose_rhs = true} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %gw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w, %gw : tensor<8x8xf32>
  return %l : tensor<1xf32>
}
func.func @eval(%x: tensor<4x8xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> {
  %w = nn.get @w : tensor<8x8xf32>
  %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %l, %dy = nn.launch @loss(%y) : (tensor<4x8xf32>) -> (tensor<1xf32>, tensor<4x8xf32>)
  return %l : tensor<1xf32>
}
func.func private @loss(%y: tensor<4x8xf32>) -> (tensor<1xf32>, tensor<4x8xf32>) attributes {nn.kernel, nn.inplace = [[1, 0]]}
}
