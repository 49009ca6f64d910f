// A product with an epilogue is one step: what it reads beside its operands follows them, aux follows the result.
// RUN: zero-opt --plan-lower %s | FileCheck %s
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<8x16xf32> {trainable = true}
  nn.parameter @b : tensor<16xf32> {trainable = true}
  zero.bucket @b0 {elements = 192 : i64, shard = 192 : i64, parameters = [@w, @b], offsets = array<i64: 0, 128>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
  func.func private @loss(%y: tensor<4x16xf32>, %z: tensor<4x16xf32>) -> (tensor<1xf32>, tensor<4x8xf32>) attributes {nn.kernel, nn.inplace = []}
  func.func private @rest(%g: tensor<4x16xf32>) -> (tensor<192xf32>, tensor<1xf32>) attributes {nn.kernel, nn.inplace = []}
  func.func private @sgd(%p: tensor<192xf32>, %g: tensor<192xf32>, %m: tensor<192xf32>, %h: tensor<16xf32>)
      -> (tensor<192xf32>, tensor<192xf32>, tensor<1xf32>) attributes {nn.kernel}

  // CHECK: plan.program step @step {
  // CHECK-DAG: %[[X:.*]] = plan.use @input.x
  // CHECK-DAG: %[[P:.*]] = plan.use @b0.parameter
  func.func @step(%x: tensor<4x8xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> (tensor<1xf32>, tensor<1xf32>) attributes {zero.role = "step"} {
    %p = zero.resident @b0 : tensor<192xf32>
    %w = zero.view %p at 0 : tensor<192xf32> -> tensor<8x16xf32>
    %b = zero.view %p at 128 : tensor<192xf32> -> tensor<16xf32>
    // CHECK: plan.matmul compute %[[X]][0, 128], %[[P]][0, 512], %[[P]][512, 64] -> %[[Z:.*]][0, 256] : 4 x 16 x 8 {{.*}} with bias
    %z = nn.matmul_epilogue bias %x, %w, %b : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
    // CHECK-NEXT: plan.matmul compute %[[X]][0, 128], %[[P]][0, 512], %[[P]][512, 64] -> %[[Y:.*]][0, 256], %[[U:.*]][0, 256] : 4 x 16 x 8 {{.*}} with gelu
    %y, %u = nn.matmul_epilogue gelu %x, %w, %b : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>)
    // CHECK-NEXT: plan.launch compute %[[Y]][0, 256], %[[Z]][0, 256] -> {{.*}}, %[[D:.*]][0, 128] : @loss
    %l, %d = nn.launch @loss(%y, %z) : (tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<1xf32>, tensor<4x8xf32>)
    // CHECK-NEXT: plan.matmul compute %[[D]][0, 128], %[[P]][0, 512], %[[U]][0, 256] -> %[[G:.*]][0, 256] : 4 x 16 x 8 {{.*}} with gelu_gradient
    %g = nn.matmul_epilogue gelu_grad %d, %w, %u : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    // CHECK-NEXT: plan.launch compute %[[G]][0, 256] -> {{.*}} : @rest
    %all, %n = nn.launch @rest(%g) : (tensor<4x16xf32>) -> (tensor<192xf32>, tensor<1xf32>)
    %packed = zero.pack %all at [0] : (tensor<192xf32>) -> tensor<192xf32>
    %sums = zero.update @b0, %packed, %hyper {kernel = @sgd} : (tensor<192xf32>, tensor<16xf32>) -> tensor<1xf32>
    return %l, %n : tensor<1xf32>, tensor<1xf32>
  }
}
