// RUN: zero-opt %s --nn-add-loss=loss=output:mean | FileCheck %s
// RUN: not zero-opt %s --nn-add-loss 2>&1 | FileCheck %s --check-prefix=TAKEN
// RUN: not zero-opt %s --nn-add-loss=loss=output:nothing 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not zero-opt %s --nn-add-loss=loss=output:logits 2>&1 | FileCheck %s --check-prefix=BIG
// RUN: not zero-opt %s --nn-add-loss=loss=hinge 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not zero-opt %s --nn-add-loss=loss=mse 2>&1 | FileCheck %s --check-prefix=TAKEN

// CHECK-LABEL: func.func @train(
// CHECK-SAME: nn.name = "labels", nn.role = "data"
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<1xf32> {nn.name = "loss_scale", nn.role = "loss_scale"}
// CHECK: %[[MEAN:.*]] = nn.reduce sum
// CHECK: %[[ONE:.*]] = nn.reshape %[[SCALE]]
// CHECK: %[[LOSS:.*]] = nn.mul %[[MEAN]], %[[ONE]] : tensor<f32>
// CHECK: return %[[LOSS]]

// TAKEN: error: the model has an input 'labels' of its own
// NONE: error: no output is called 'nothing'; the outputs are 'logits' 'tensor<2x4xf32>', 'mean' 'tensor<f32>'
// BIG: error: output 'logits' cannot be the loss: it is 'tensor<2x4xf32>', not one float
// UNKNOWN: error: loss 'hinge' is not known; it is cross_entropy[:OUTPUT], mse[:OUTPUT] or output:OUTPUT
nn.parameter @w : tensor<2x4xf32> {trainable = true}
func.func @forward(%labels: tensor<2x4xf32> {nn.name = "labels"}) -> (tensor<2x4xf32> {nn.name = "logits"}, tensor<f32> {nn.name = "mean"}) {
  %w = nn.get @w : tensor<2x4xf32>
  %y = nn.mul %w, %labels : tensor<2x4xf32>
  %mean = nn.reduce sum %y dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %y, %mean : tensor<2x4xf32>, tensor<f32>
}
