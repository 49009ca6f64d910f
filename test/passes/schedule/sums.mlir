// A marked launch is no step: the product before it writes its result as well, where that belongs. One that is not marked, or that stands before
// its product, is a step as ever.
// RUN: zero-opt --plan-lower %s | FileCheck %s
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<8x6xf32> {trainable = true}
  nn.parameter @b : tensor<6xf32> {trainable = true}
  zero.bucket @b0 {elements = 64 : i64, shard = 64 : i64, parameters = [@w, @b], offsets = array<i64: 0, 48>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
  func.func private @loss(%y: tensor<4x6xf32>) -> (tensor<1xf32>, tensor<2x2x6xf32>) attributes {nn.kernel, nn.inplace = [[1, 0]]}
  func.func private @columns(%y: tensor<2x2x6xf32>) -> tensor<6xf32> attributes {nn.kernel, nn.inplace = []}
  func.func private @rest(%a: tensor<6xf32>, %b: tensor<6xf32>, %c: tensor<6x8xf32>) -> tensor<1xf32> attributes {nn.kernel, nn.inplace = []}
  func.func private @sgd(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %h: tensor<16xf32>)
      -> (tensor<64xf32>, tensor<64xf32>, tensor<1xf32>) attributes {nn.kernel}

  // CHECK: plan.program step @step {
  // CHECK-DAG: %[[X:.*]] = plan.use @input.x
  // CHECK-DAG: %[[G:.*]] = plan.buffer gradient "b0.gradient" bytes 256
  // CHECK-DAG: %[[Y:.*]] = plan.buffer activation "matmul" bytes 96
  func.func @step(%x: tensor<4x8xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> (tensor<1xf32>, tensor<1xf32>) attributes {zero.role = "step"} {
    %b = zero.resident @b0 : tensor<64xf32>
    %w = zero.view %b at 0 : tensor<64xf32> -> tensor<8x6xf32>
    // CHECK: plan.matmul
    %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    // CHECK-NEXT: plan.launch {{.*}} : @loss
    %l, %dy = nn.launch @loss(%y) : (tensor<4x6xf32>) -> (tensor<1xf32>, tensor<2x2x6xf32>)
    // CHECK-NEXT: plan.launch {{.*}} : @columns
    %early = nn.launch @columns(%dy) {nn.in_product} : (tensor<2x2x6xf32>) -> tensor<6xf32>
    %d = nn.reshape %dy : tensor<2x2x6xf32> -> tensor<4x6xf32>
    // CHECK-NEXT: plan.matmul compute %[[X]][0, 128], %[[Y]][0, 96] -> %[[G]][0, 192], %[[G]][192, 24] : 8 x 6 x 4 of f32 to f32 ld [8, 6, 6] batch 1 [0, 0, 0] with sums_of_b {transpose_a}
    %gw = nn.matmul %x, %d {transpose_lhs = true} : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %gb = nn.launch @columns(%dy) {nn.in_product} : (tensor<2x2x6xf32>) -> tensor<6xf32>
    // CHECK-NEXT: plan.matmul {{.*}} : 6 x 8 x 4 {{.*}} with sums_of_a {transpose_a}
    %t = nn.matmul %d, %x {transpose_lhs = true} : (tensor<4x6xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
    %late = nn.launch @columns(%dy) {nn.in_product} : (tensor<2x2x6xf32>) -> tensor<6xf32>
    // CHECK-NEXT: plan.launch {{.*}} : @rest
    %n = nn.launch @rest(%early, %late, %t) : (tensor<6xf32>, tensor<6xf32>, tensor<6x8xf32>) -> tensor<1xf32>
    %g = zero.pack %gw, %gb at [0, 48] : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<64xf32>
    %sums = zero.update @b0, %g, %hyper {kernel = @sgd} : (tensor<64xf32>, tensor<16xf32>) -> tensor<1xf32>
    return %l, %n : tensor<1xf32>, tensor<1xf32>
  }
}
