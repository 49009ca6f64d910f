// Where flags name a tier, tensors rest there; what is left open fills the device's bytes, then the host's, and the rest is on disk:
// what is copied most often first, of that parameters, and of those the bucket whose gradient is complete last.
// RUN: zero-opt "--zero-assign-tiers=offload-params=host offload-optimizer=disk" %s | FileCheck %s --check-prefix=NAMED
// RUN: zero-opt "--zero-assign-tiers=offload-params=auto offload-optimizer=auto" %s | FileCheck %s --check-prefix=ALL
// RUN: zero-opt "--zero-assign-tiers=offload-params=auto offload-optimizer=auto device-bytes=1300 host-bytes=500" %s | FileCheck %s --check-prefix=SOME
// RUN: zero-opt "--zero-assign-tiers=offload-optimizer=auto device-bytes=256" %s | FileCheck %s --check-prefix=STAY
// RUN: zero-opt "--zero-assign-tiers=offload-params=auto offload-optimizer=auto device-bytes=0" %s | FileCheck %s --check-prefix=DISK
// RUN: not zero-opt "--zero-assign-tiers=offload-params=tape" %s 2>&1 | FileCheck %s --check-prefix=TAPE
// RUN: sed 's/@train/@other/' %s | not zero-opt "--zero-assign-tiers=offload-params=auto" 2>&1 | FileCheck %s --check-prefix=NOTRAIN
// NOTRAIN: there is no function @train whose uses of parameters could be counted
// A table that is read a third time, far from the others, is worth more than what is read twice.
// RUN: sed 's/^.*AGAIN//' %s | zero-opt "--zero-assign-tiers=offload-params=auto offload-optimizer=auto device-bytes=1100" | FileCheck %s --check-prefix=OFTEN
// OFTEN: zero.bucket @big
// OFTEN-SAME: master f32 whole on disk>
// OFTEN: zero.bucket @small
// OFTEN-SAME: master f32 whole on device>
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
// SOME-SAME: master f32 whole on device>, #zero.tensor<momentum f32 whole on disk>
// SOME: zero.bucket @frozen
// SOME-SAME: master f32 whole on host>
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
func.func @train() {
  %small = nn.get @b : tensor<64xf32>
  %0 = nn.neg %small : tensor<64xf32>
  %big = nn.get @w : tensor<256xf32>
  %1 = nn.neg %big : tensor<256xf32>
  %frozen = nn.get @f : tensor<64xf32>
  %2 = nn.neg %frozen : tensor<64xf32>
  %flat = nn.reshape %small : tensor<64xf32> -> tensor<8x8xf32>
  %3 = nn.neg %flat : tensor<8x8xf32>
  %4 = nn.neg %big : tensor<256xf32>
  %5 = nn.neg %frozen : tensor<64xf32>
  // AGAIN  %6 = nn.neg %small : tensor<64xf32>
  nn.gradient @w, %1 : tensor<256xf32>
  nn.gradient @b, %0 : tensor<64xf32>
  return
}
}
