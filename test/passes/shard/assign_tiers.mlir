// Where flags name a tier, tensors rest there; what is left open fills the device's bytes, then the host's, and the rest is on disk:
// parameters first, which are copied three times in a step with one micro-step, and in the order of buckets.
// RUN: zero-opt "--zero-assign-tiers=offload-params=host offload-optimizer=disk" %s | FileCheck %s --check-prefix=NAMED
// RUN: zero-opt "--zero-assign-tiers=offload-params=auto offload-optimizer=auto" %s | FileCheck %s --check-prefix=ALL
// RUN: zero-opt "--zero-assign-tiers=offload-params=auto offload-optimizer=auto device-bytes=1300 host-bytes=500" %s | FileCheck %s --check-prefix=SOME
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=auto device-bytes=256" %s | FileCheck %s --check-prefix=STAY
// RUN: zero-opt "--zero-assign-tiers=offload-params=auto offload-optimizer=auto device-bytes=0" %s | FileCheck %s --check-prefix=DISK
// RUN: not zero-opt "--zero-assign-tiers=offload-params=tape" %s 2>&1 | FileCheck %s --check-prefix=TAPE
// TAPE: state rests on none (the device), host or disk, or where there is room (auto), not on tape
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
// NAMED: @w : {{.*}}
// NAMED: zero.bucket @big
// NAMED-SAME: master f32 whole on host>, #zero.tensor<momentum f32 whole on disk>
// NAMED: zero.bucket @small
// NAMED-SAME: master f32 whole on host>, #zero.tensor<momentum f32 whole on disk>
// NAMED: zero.bucket @frozen
// NAMED-SAME: master f32 whole on host>
// ALL: zero.bucket @big
// ALL-SAME: master f32 whole on device>, #zero.tensor<momentum f32 whole on device>
// SOME: zero.bucket @big
// SOME-SAME: master f32 whole on device>, #zero.tensor<momentum f32 whole on disk>
// SOME: zero.bucket @small
// SOME-SAME: master f32 whole on device>, #zero.tensor<momentum f32 whole on host>
// SOME: zero.bucket @frozen
// SOME-SAME: master f32 whole on disk>
// STAY: zero.bucket @big
// STAY-SAME: master f32 whole on device>, #zero.tensor<momentum f32 whole on disk>
// STAY: zero.bucket @small
// STAY-SAME: master f32 whole on device>, #zero.tensor<momentum f32 whole on device>
// DISK: zero.bucket @big
// DISK-SAME: master f32 whole on disk>, #zero.tensor<momentum f32 whole on disk>
// DISK: zero.bucket @frozen
// DISK-SAME: master f32 whole on disk>
nn.parameter @w : tensor<256xf32> {trainable = true}
nn.parameter @b : tensor<64xf32> {trainable = true}
nn.parameter @f : tensor<64xf32> {trainable = false}
zero.bucket @big {elements = 256 : i64, shard = 256 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true,
                  tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
zero.bucket @small {elements = 64 : i64, shard = 64 : i64, parameters = [@b], offsets = array<i64: 0>, trainable = true,
                    tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
zero.bucket @frozen {elements = 64 : i64, shard = 64 : i64, parameters = [@f], offsets = array<i64: 0>, trainable = false,
                     tensors = [#zero.tensor<master f32 whole on device>]}
}
