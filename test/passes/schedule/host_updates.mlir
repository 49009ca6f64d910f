// A bucket that the host updates: its gradient comes down to a buffer in host memory, the update touches host memory alone and works on the
// state where it rests, and what programs read on the device goes up after it, slice by slice: the compute copy that the update has made, or the
// master where that has the same numbers.
// RUN: zero-opt "--pass-pipeline=builtin.module(plan-lower,plan.program(plan-assign-lanes))" %s | FileCheck %s --check-prefixes=CHECK,ROUND
// RUN: sed 's/compute bf16/compute f32/; s/tensor<64xbf16>/tensor<64xf32>/; s/tensor<8x8xbf16>/tensor<8x8xf32>/g; s/, tensor<32xbf16>)/)/' %s | zero-opt "--pass-pipeline=builtin.module(plan-lower,plan.program(plan-assign-lanes))" | FileCheck %s --check-prefixes=CHECK,SAME
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<8x8xf32> {trainable = true}
  zero.bucket @b0 {elements = 64 : i64, shard = 64 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, updated_on_host, tensors = [#zero.tensor<master f32 whole on host>, #zero.tensor<compute bf16 whole on device>, #zero.tensor<momentum f32 whole on host>]}
  func.func private @half(%x: tensor<4x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<1xf32>, tensor<8x8xf32>) attributes {nn.kernel}
  func.func private @sgd(%p: tensor<2x16xf32>, %g: tensor<2x16xf32>, %m: tensor<2x16xf32>, %h: tensor<16xf32>)
      -> (tensor<2x16xf32>, tensor<2x16xf32>, tensor<32xbf16>) attributes {nn.kernel}
  func.func private @squares(%g: tensor<64xf32>) -> tensor<1xf32> attributes {nn.kernel}

  // CHECK-DAG: %[[P:.*]] = plan.use @b0.parameter
  // CHECK-DAG: %[[C:.*]] = plan.use @b0.compute
  // CHECK-DAG: %[[M:.*]] = plan.use @b0.momentum
  // CHECK-DAG: %[[HYPER:.*]] = plan.use @input.hyper
  // CHECK-DAG: %[[G:.*]] = plan.buffer gradient "b0.gradient.on_host" on host bytes 256
  // CHECK-DAG: %[[H:.*]] = plan.buffer scalar {{.*}} on host bytes 64
  // ROUND-DAG: %[[C0:.*]] = plan.buffer fetched "b0.compute.updated" on host bytes 64
  func.func @step(%x: tensor<4x8xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> (tensor<1xf32>, tensor<1xf32>) attributes {zero.role = "step"} {
    // CHECK: plan.copy to_host %[[HYPER]][0, 64] -> %[[H]][0, 64]
    %h = zero.to_host %hyper : tensor<16xf32>
    %b = zero.resident @b0 : tensor<64xbf16>
    %w = zero.view %b at 0 : tensor<64xbf16> -> tensor<8x8xbf16>
    %l, %gw = nn.launch @half(%x, %w) : (tensor<4x8xf32>, tensor<8x8xbf16>) -> (tensor<1xf32>, tensor<8x8xf32>)
    %g = zero.pack %gw at [0] : (tensor<8x8xf32>) -> tensor<64xf32>
    %s = nn.launch @squares(%g) : (tensor<64xf32>) -> tensor<1xf32>
    // CHECK: plan.copy to_host %{{.*}}[0, 256] -> %[[G]][0, 256]
    %there = zero.to_host %g : tensor<64xf32>
    %g0 = zero.view %there at 0 : tensor<64xf32> -> tensor<32xf32>
    %g1 = zero.view %there at 32 : tensor<64xf32> -> tensor<32xf32>
    // ROUND: plan.update update_host %[[P]][0, 128], %[[G]][0, 128], %[[M]][0, 128], %[[H]][0, 64] -> %[[P]][0, 128], %[[M]][0, 128], %[[C0]][0, 64] : @b0 @sgd of f32{{$}}
    // ROUND: plan.copy to_device %[[C0]][0, 64] -> %[[C]][0, 64]
    // SAME: plan.update update_host %[[P]][0, 128], %[[G]][0, 128], %[[M]][0, 128], %[[H]][0, 64] -> %[[P]][0, 128], %[[M]][0, 128] : @b0 @sgd of f32{{$}}
    // SAME: plan.copy to_device %[[P]][0, 128] -> %[[C]][0, 128]
    zero.update @b0, %g0, %h {kernel = @sgd} : (tensor<32xf32>, tensor<16xf32>) -> ()
    // CHECK: plan.update update_host %[[P]][128, 128], %[[G]][128, 128], %[[M]][128, 128], %[[H]][0, 64] -> %[[P]][128, 128], %[[M]][128, 128]
    // ROUND: plan.copy to_device %{{.*}}[0, 64] -> %[[C]][64, 64]
    // SAME: plan.copy to_device %[[P]][128, 128] -> %[[C]][128, 128]
    zero.update @b0, %g1, %h {kernel = @sgd, begin = 32 : i64} : (tensor<32xf32>, tensor<16xf32>) -> ()
    %r = zero.pack %l, %s at [0, 1] : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %loss = zero.view %r at 0 : tensor<2xf32> -> tensor<1xf32>
    %norm = zero.view %r at 1 : tensor<2xf32> -> tensor<1xf32>
    return %loss, %norm : tensor<1xf32>, tensor<1xf32>
  }
}
