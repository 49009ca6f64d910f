// RUN: zero-opt %s --split-input-file --nn-add-loss | FileCheck %s
// RUN: zero-opt %s --split-input-file --nn-add-loss=loss=mse | FileCheck %s --check-prefix=MSE

// CHECK-LABEL: func.func @train(
// CHECK-SAME: tensor<2x8xi64> {nn.limit = 50 : i64, nn.name = "ids", nn.role = "data"}
// CHECK-SAME: %[[SEED:[a-z0-9]+]]: tensor<2xi64> {nn.name = "seed", nn.role = "seed"}
// CHECK-SAME: %[[LABELS:[a-z0-9]+]]: tensor<2x8xi64> {nn.limit = 4 : i64, nn.name = "labels", nn.role = "labels"}
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<1xf32> {nn.name = "loss_scale", nn.role = "loss_scale"}
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"})
// CHECK: %[[X:.*]] = nn.dropout
// CHECK: %[[ROWS:.*]] = nn.reshape %[[X]] : tensor<2x8x4xf32> -> tensor<16x4xf32>
// CHECK: %[[FLAT:.*]] = nn.reshape %[[LABELS]] : tensor<2x8xi64> -> tensor<16xi64>
// CHECK: %[[LOSS:.*]], %{{.*}} = nn.cross_entropy %[[ROWS]], %[[FLAT]], %[[SCALE]] {ignore_index = -100 : i64}
// CHECK: return %[[LOSS]] : tensor<f32>
// In evaluation nothing is dropped.
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: nn.role = "seed"
// CHECK-NOT: nn.dropout
// CHECK: nn.cross_entropy
// CHECK-NOT: @forward

// MSE-LABEL: func.func @train(
// MSE-SAME: %[[LABELS:[a-z0-9]+]]: tensor<2x8x4xf32> {nn.name = "labels", nn.role = "labels"}
// MSE-SAME: %[[SCALE:[a-z0-9]+]]: tensor<1xf32>
// MSE: %[[ERROR:.*]] = nn.sub %{{.*}}, %[[LABELS]]
// MSE: %[[SQUARE:.*]] = nn.mul %[[ERROR]], %[[ERROR]]
// MSE: %[[SUM:.*]] = nn.reduce sum %[[SQUARE]] dims [0, 1, 2]
// MSE: %[[ONE:.*]] = nn.reshape %[[SCALE]] : tensor<1xf32> -> tensor<f32>
// MSE: %[[LOSS:.*]] = nn.mul %[[SUM]], %[[ONE]] : tensor<f32>
// MSE: return %[[LOSS]]
nn.parameter @w : tensor<50x4xf32> {trainable = true}
func.func @forward(%ids: tensor<2x8xi64> {nn.name = "ids", nn.limit = 50 : i64}, %seed: tensor<2xi64> {nn.name = "seed", nn.role = "seed"})
    -> (tensor<2x8x4xf32> {nn.name = "logits"}) {
  %w = nn.get @w : tensor<50x4xf32>
  %x = nn.gather %w, %ids : tensor<50x4xf32>, tensor<2x8xi64> -> tensor<2x8x4xf32>
  %y = nn.dropout %x, %seed {rate = 0.1 : f32, id = 0 : i64, samples = 2 : i64} : tensor<2x8x4xf32>, tensor<2xi64>
  return %y : tensor<2x8x4xf32>
}
