// Stage 3 on two ranks: gathers, views, gradients packed in place, an in-place reduce-scatter, scalars for the host.
// RUN: zero-opt --split-input-file --plan-lower %s | FileCheck %s

// CHECK-LABEL: module
// CHECK-DAG: plan.state parameter @b0.parameter bytes 128 {bucket = @b0, tensor = #zero.tensor<master f32 shard on device>}
// CHECK-DAG: plan.state optimizer @b0.momentum bytes 128 {bucket = @b0, tensor = #zero.tensor<momentum f32 shard on device>}
// CHECK-DAG: plan.state input @input.x bytes 128 {input = "x", role = "data", type = tensor<4x8xf32>}
// CHECK-DAG: plan.state scalar @result.loss bytes 8
module attributes {zero.world = 2 : i64, zero.stage = 3 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<8x6xf32> {trainable = true}
  zero.bucket @b0 {elements = 64 : i64, shard = 32 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 shard on device>, #zero.tensor<momentum f32 shard on device>]}
  func.func private @loss(%y: tensor<4x6xf32>) -> (tensor<1xf32>, tensor<4x6xf32>) attributes {nn.kernel, nn.inplace = [[1, 0]]}
  func.func private @sgd(%p: tensor<2x16xf32>, %g: tensor<2x16xf32>, %m: tensor<2x16xf32>, %h: tensor<16xf32>)
      -> (tensor<2x16xf32>, tensor<2x16xf32>, tensor<2xf32>) attributes {nn.kernel}
  func.func private @sum(%s: tensor<2xf32>) -> tensor<1xf32> attributes {nn.kernel}

  // CHECK: plan.program step @step {
  // CHECK-DAG: %[[P:.*]] = plan.use @b0.parameter
  // CHECK-DAG: %[[X:.*]] = plan.use @input.x
  // CHECK-DAG: %[[R:.*]] = plan.use @result.loss
  // CHECK-DAG: %[[G:.*]] = plan.buffer gradient "b0.gradient" bytes 256 {bucket = @b0, tensor = #zero.tensor<gradient f32 whole on device>}
  // CHECK-DAG: %[[W:.*]] = plan.buffer gathered "b0.gathered" bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 whole on device>}
  // CHECK-DAG: %[[Y:.*]] = plan.buffer activation "matmul" bytes 96
  // CHECK-DAG: %[[S:.*]] = plan.buffer scalar "pack" bytes 8
  func.func @step(%x: tensor<4x8xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> (tensor<1xf32>, tensor<1xf32>) attributes {zero.role = "step"} {
    // CHECK: plan.collective compute %[[P]][0, 128] -> %[[W]][0, 256] : all_gather 32 of f32
    %b = zero.gather @b0 : tensor<64xf32>
    %w = zero.view %b at 0 : tensor<64xf32> -> tensor<8x6xf32>
    // CHECK: plan.matmul compute %[[X]][0, 128], %[[W]][0, 192] -> %[[Y]][0, 96] : 4 x 6 x 8 of f32 to f32 ld [8, 6, 6] batch 1 [0, 0, 0]
    %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    zero.release %b : tensor<64xf32>
    // The gradient of the logits lies over the logits; the loss is computed where the host reads it.
    // CHECK: plan.launch compute %[[Y]][0, 96] -> %[[R]][0, 4], %[[Y]][0, 96] : @loss
    %l, %dy = nn.launch @loss(%y) : (tensor<4x6xf32>) -> (tensor<1xf32>, tensor<4x6xf32>)
    // CHECK: plan.matmul compute %[[X]][0, 128], %[[Y]][0, 96] -> %[[G]][0, 192] : 8 x 6 x 4 of f32 to f32 ld [8, 6, 6] batch 1 [0, 0, 0] {transpose_a}
    %gw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    // CHECK: plan.fill compute -> %[[G]][192, 64] : 0
    %g = zero.pack %gw at [0] : (tensor<8x6xf32>) -> tensor<64xf32>
    // CHECK: plan.collective compute %[[G]][0, 256] -> %[[G]][0 + rank * 128, 128], %{{.*}}[0, 256] : reduce_scatter 32 of f32 by 32
    %s = zero.reduce_scatter %g : tensor<64xf32> -> tensor<32xf32>
    // CHECK: plan.update compute %[[P]][0, 128], %[[G]][0 + rank * 128, 128], %[[M:.*]][0, 128], %{{.*}}[0, 64] -> %[[P]][0, 128], %[[M]][0, 128], %[[S]][0, 8] : @b0 @sgd of f32
    %sums = zero.update @b0, %s, %hyper {kernel = @sgd} : (tensor<32xf32>, tensor<16xf32>) -> tensor<2xf32>
    // A pack of one whole value is that value.
    %ps = zero.pack %sums at [0] : (tensor<2xf32>) -> tensor<2xf32>
    // CHECK: plan.launch compute %[[S]][0, 8] -> %[[R]][4, 4] : @sum
    %n = nn.launch @sum(%ps) : (tensor<2xf32>) -> tensor<1xf32>
    %p = zero.pack %l, %n at [0, 1] : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    // CHECK: plan.collective compute %[[R]][0, 8] -> %[[R]][0, 8], %{{.*}}[0, 16] : all_reduce 2 of f32 by 2
    %r = zero.all_reduce %p : tensor<2xf32>
    %loss = zero.view %r at 0 : tensor<2xf32> -> tensor<1xf32>
    %norm = zero.view %r at 1 : tensor<2xf32> -> tensor<1xf32>
    // CHECK: plan.return %[[R]][0, 4], %[[R]][4, 4]
    return %loss, %norm : tensor<1xf32>, tensor<1xf32>
  }
}
