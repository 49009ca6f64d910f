// Sums over ranks go in slices for which there is room: whole lines of 32 elements of each rank, or all where that is less.
// RUN: zero-opt "--plan-lower=staging-bytes=1024" %s | FileCheck %s
// RUN: zero-opt "--plan-lower=staging-bytes=10" %s | FileCheck %s --check-prefix=LEAST
// RUN: zero-opt --plan-lower %s | FileCheck %s --check-prefix=ALL
// RUN: zero-opt "--plan-lower=library-sums" %s | FileCheck %s --check-prefix=LIBRARY
module attributes {zero.world = 2 : i64, zero.stage = 2 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<8x64xf32> {trainable = true}
  zero.bucket @b0 {elements = 512 : i64, shard = 256 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 shard on device>]}
  func.func private @sgd(%p: tensor<16x16xf32>, %g: tensor<16x16xf32>, %m: tensor<16x16xf32>, %h: tensor<16xf32>)
      -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>) attributes {nn.kernel}
  func.func private @grad(%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<1xf32>) attributes {nn.kernel}
  func.func private @narrow(%x: tensor<8x64xf32>) -> tensor<512xbf16> attributes {nn.kernel}

  // A shard of 256 elements: 1024 bytes are room for 128 of each rank in f32, and for 256 in bf16.
  // CHECK-LABEL: plan.program step @step
  // CHECK: plan.buffer staging "b0.staging" bytes 1024
  // CHECK: plan.buffer staging "staging" bytes 8
  // CHECK: plan.collective compute %{{.*}}, %b0.staging[0, 1024] : reduce_scatter 256 of f32 by 128
  // CHECK: plan.collective compute %{{.*}}, %staging[0, 8] : all_reduce 1 of f32 by 1
  // LEAST: : reduce_scatter 256 of f32 by 32
  // LEAST: : all_reduce 1 of f32 by 1
  // ALL: plan.buffer staging "b0.staging" bytes 2048
  // ALL: : reduce_scatter 256 of f32 by 256
  // What the device's library sums needs no room.
  // LIBRARY-NOT: staging
  // LIBRARY: plan.collective compute %b0.gradient[0, 2048] -> %b0.gradient[0 + rank * 1024, 1024] : reduce_scatter 256 of f32{{$}}
  // LIBRARY: : all_reduce 1 of f32{{$}}
  func.func @step(%x: tensor<8x64xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> tensor<1xf32> attributes {zero.role = "step"} {
    %gw, %l = nn.launch @grad(%x) : (tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<1xf32>)
    %g = zero.pack %gw at [0] : (tensor<8x64xf32>) -> tensor<512xf32>
    %s = zero.reduce_scatter %g : tensor<512xf32> -> tensor<256xf32>
    %sums = zero.update @b0, %s, %hyper {kernel = @sgd} : (tensor<256xf32>, tensor<16xf32>) -> tensor<16xf32>
    %r = zero.all_reduce %l : tensor<1xf32>
    return %r : tensor<1xf32>
  }
}
