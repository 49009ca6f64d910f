// Parameters that are read in bf16 have a master in f32 beside their compute copy. What is gathered is the copy; from stage 1 on a rank
// keeps its shard of the master alone, as of the moments. --offload-params says where the copy rests, --offload-optimizer where the master.
// Where the master is whole on the device no copy is kept: it is rounded around each use.
// RUN: zero-opt %s "--pass-pipeline=builtin.module(zero-partition{world=2 stage=0})" | FileCheck %s --check-prefix=ZERO
// RUN: zero-opt %s "--pass-pipeline=builtin.module(zero-partition{world=2 stage=1 accumulate=2},zero-assign-tiers{offload-params=host offload-optimizer=disk})" | FileCheck %s --check-prefix=ONE
// RUN: zero-opt %s "--pass-pipeline=builtin.module(zero-partition,zero-assign-tiers{offload-params=auto offload-optimizer=auto device-bytes=384})" | FileCheck %s --check-prefix=MASTER
// RUN: zero-opt %s "--pass-pipeline=builtin.module(zero-partition,zero-assign-tiers{offload-params=auto offload-optimizer=auto device-bytes=383})" | FileCheck %s --check-prefix=COPY
// RUN: zero-opt %s --zero-shard-pipeline="world=2 stage=0" | FileCheck %s --check-prefix=ROUNDED
// RUN: zero-opt %s --zero-shard-pipeline="world=1 stage=3 offload-params=host" | FileCheck %s --check-prefix=ALONE
// RUN: zero-opt %s --zero-shard-pipeline="world=1 offload-optimizer=host" | FileCheck %s --check-prefix=HOST
// RUN: zero-opt %s --zero-shard-pipeline="world=1 offload-params=disk offload-optimizer=disk fetch-masters=true" | FileCheck %s --check-prefix=FETCHED
// RUN: zero-opt %s --zero-shard-pipeline="world=1 offload-params=host offload-optimizer=disk fetch-masters=true" | FileCheck %s --check-prefix=APART
// RUN: zero-opt %s "--pass-pipeline=builtin.module(zero-partition,zero-assign-tiers{offload-params=auto offload-optimizer=auto device-bytes=0 fetch-masters=true})" | FileCheck %s --check-prefix=LESS
// RUN: zero-opt %s --zero-shard-pipeline="world=2 stage=2" | FileCheck %s --check-prefix=TWO
// RUN: zero-opt %s --zero-shard-pipeline="world=2 stage=3" | FileCheck %s --check-prefix=THREE

// Shards are multiples of 64 bytes in bf16 too: 36 elements a rank are rounded up to 48 in f32 and to 64 here.
// ZERO: zero.bucket @bucket0 {elements = 128 : i64, {{.*}}shard = 64 : i64, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<compute bf16 whole on device>, #zero.tensor<first_moment f32 whole on device>, #zero.tensor<second_moment f32 whole on device>]
// ONE: tensors = [#zero.tensor<master f32 shard on disk>, #zero.tensor<compute bf16 whole on host>, #zero.tensor<gradient f32 shard on disk>, #zero.tensor<first_moment f32 shard on disk>, #zero.tensor<second_moment f32 shard on disk>]
// A master on the device spares its own copies and the compute copy: it comes before that, and before moments.
// MASTER: zero.removals = array<i64: 768, 1536, 384, 1152>
// MASTER: tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<first_moment f32 whole on disk>, #zero.tensor<second_moment f32 whole on disk>]
// COPY: tensors = [#zero.tensor<master f32 whole on disk>, #zero.tensor<compute bf16 whole on device>, #zero.tensor<first_moment f32 whole on disk>, #zero.tensor<second_moment f32 whole on disk>]
// ROUNDED: tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<first_moment f32 whole on device>, #zero.tensor<second_moment f32 whole on device>]
// ROUNDED-LABEL: func.func @step(
// ROUNDED: %[[B:.*]] = zero.gather @bucket0 {kernel = @round_bf16_4x32} : tensor<128xbf16>
// ROUNDED-NEXT: %[[W:.*]] = zero.view %[[B]] at 0 : tensor<128xbf16> -> tensor<9x8xbf16>
// ROUNDED-NEXT: nn.matmul %{{.*}}, %[[W]]
// ROUNDED-NEXT: zero.release %[[B]]
// The rows that squares are summed over are those of a bucket with a copy: the norm's bits do not depend on it.
// ROUNDED: zero.update @bucket0{{.*}}kernel = @adamw_4x32, whole
// ROUNDED-LABEL: func.func @eval(
// ROUNDED: zero.gather @bucket0 {kernel = @round_bf16_4x32} : tensor<128xbf16>
// ROUNDED-LABEL: func.func private @round_bf16_4x32(%{{.*}}: tensor<4x32xf32>) -> tensor<4x32xbf16>
// ROUNDED-NOT: func.func private @adamw_bf16
// ALONE: tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<first_moment
// ALONE: zero.gather @bucket0 {kernel = @round_bf16
// HOST: tensors = [#zero.tensor<master f32 whole on host>, #zero.tensor<compute bf16 whole on device>, #zero.tensor<first_moment
// HOST: zero.resident @bucket0 : tensor<{{.*}}xbf16>
// Used once, a master that is fetched for it and for its update and returns takes 8 bytes of each element, 2 uses of a copy and 2 of it 12.
// FETCHED: tensors = [#zero.tensor<master f32 whole on disk>, #zero.tensor<first_moment f32 whole on disk>, #zero.tensor<second_moment f32 whole on disk>]
// FETCHED: zero.gather @bucket0 {kernel = @round_bf16_3x32} : tensor<96xbf16>
// FETCHED: zero.update @bucket0{{.*}}kernel = @adamw_3x32
// APART: tensors = [#zero.tensor<master f32 whole on disk>, #zero.tensor<compute bf16 whole on host>,
// LESS: zero.removals = array<i64: 1152, 2304>
// TWO: func.func @step
// TWO: zero.resident @bucket0 : tensor<128xbf16>
// TWO: zero.update @bucket0{{.*}}kernel = @adamw_bf16_2x32
// TWO: zero.publish @bucket0
// TWO: func.func private @adamw_bf16_2x32({{.*}}) -> (tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xbf16>, tensor<2xf32>)
// THREE: tensors = [#zero.tensor<master f32 shard on device>, #zero.tensor<compute bf16 shard on device>,
// THREE: func.func @step
// THREE: %[[B:.*]] = zero.gather @bucket0 : tensor<128xbf16>
// THREE: zero.view %[[B]] at 0 : tensor<128xbf16> -> tensor<9x8xbf16>
// THREE-NOT: zero.publish
nn.parameter @w : tensor<9x8xf32> {trainable = true}
func.func private @loss(%y: tensor<4x8xbf16>) -> (tensor<1xf32>, tensor<4x8xbf16>) attributes {nn.kernel, nn.inplace = []} {
  %w = nn.cast %y : tensor<4x8xbf16> -> tensor<4x8xf32>
  %s = nn.reduce sum %w dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %l = nn.reshape %s : tensor<f32> -> tensor<1xf32>
  %d = nn.cast %w : tensor<4x8xf32> -> tensor<4x8xbf16>
  return %l, %d : tensor<1xf32>, tensor<4x8xbf16>
}
func.func @train(%x: tensor<4x9xbf16> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> {
  %w = nn.get @w : tensor<9x8xbf16>
  %y = nn.matmul %x, %w : (tensor<4x9xbf16>, tensor<9x8xbf16>) -> tensor<4x8xbf16>
  %l, %d = nn.launch @loss(%y) : (tensor<4x8xbf16>) -> (tensor<1xf32>, tensor<4x8xbf16>)
  %g = nn.matmul %x, %d {transpose_lhs = true} : (tensor<4x9xbf16>, tensor<4x8xbf16>) -> tensor<9x8xf32>
  nn.gradient @w, %g : tensor<9x8xf32>
  return %l : tensor<1xf32>
}
func.func @eval(%x: tensor<4x9xbf16> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> {
  %w = nn.get @w : tensor<9x8xbf16>
  %y = nn.matmul %x, %w : (tensor<4x9xbf16>, tensor<9x8xbf16>) -> tensor<4x8xbf16>
  %l, %d = nn.launch @loss(%y) : (tensor<4x8xbf16>) -> (tensor<1xf32>, tensor<4x8xbf16>)
  return %l : tensor<1xf32>
}
