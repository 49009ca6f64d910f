// RUN: zero-opt %s --nn-add-loss="loss=cross_entropy:start,0.5*mse:value,-2*output:mean label-smoothing=0.1" | FileCheck %s
// RUN: zero-opt %s --nn-add-loss="loss=3*cross_entropy:start,output:mean" | FileCheck %s --check-prefix=ONE
// RUN: not zero-opt %s --nn-add-loss 2>&1 | FileCheck %s --check-prefix=WHICH
// RUN: not zero-opt %s --nn-add-loss=loss=mse:nothing 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not zero-opt %s --nn-add-loss=loss=cross_entropy:mean 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not zero-opt %s --nn-add-loss=loss=mse:found 2>&1 | FileCheck %s --check-prefix=FLOAT
// RUN: not zero-opt %s --nn-add-loss=loss=mse:start,cross_entropy:start 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not zero-opt %s --nn-add-loss=loss=half*mse:start 2>&1 | FileCheck %s --check-prefix=WEIGHT
// RUN: not zero-opt %s --nn-add-loss=loss=0*mse:start 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not zero-opt %s --nn-add-loss="loss=mse:start label-smoothing=0.1" 2>&1 | FileCheck %s --check-prefix=SMOOTHING
// RUN: not zero-opt %s --nn-add-loss=loss=cross_entropy:start,mse:time 2>&1 | FileCheck %s --check-prefix=SAMPLES

// CHECK: module attributes {nn.losses = [
// CHECK-SAME: {ignore_index = -100 : i64, kind = "cross_entropy", labels = "labels.start", output = "start", weight = 1.000000e+00 : f64}
// CHECK-SAME: {kind = "mse", labels = "labels.value", output = "value", weight = 5.000000e-01 : f64}
// CHECK-SAME: {kind = "output", output = "mean", weight = -2.000000e+00 : f64}
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[START:[a-z0-9]+]]: tensor<4xi64> {nn.limit = 3 : i64, nn.name = "labels.start", nn.role = "labels"}
// CHECK-SAME: %[[VALUE:[a-z0-9]+]]: tensor<4x5xf32> {nn.name = "labels.value", nn.role = "labels"}
// CHECK-SAME: %[[SCALES:[a-z0-9]+]]: tensor<3xf32> {nn.name = "loss_scale", nn.role = "loss_scale"}
// CHECK: %[[FIRST:.*]] = nn.slice %[[SCALES]] starts [0] sizes [1]
// CHECK: %[[A:.*]], %{{.*}} = nn.cross_entropy %{{.*}}, %{{.*}}, %[[FIRST]] {ignore_index = -100 : i64, label_smoothing = 1.000000e-01 : f32}
// CHECK: %[[SECOND:.*]] = nn.slice %[[SCALES]] starts [1] sizes [1]
// CHECK: nn.sub %{{.*}}, %[[VALUE]]
// CHECK: %[[THIRD:.*]] = nn.slice %[[SCALES]] starts [2] sizes [1]
// CHECK: %[[ALL:.*]] = nn.concat {{.*}} dim 0 : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
// CHECK: return %[[ALL]] : tensor<3xf32>

// One loss with labels calls them so.
// ONE: labels = "labels", output = "start", weight = 3.000000e+00 : f64
// ONE: nn.name = "labels"
// ONE-NOT: label_smoothing

// WHICH: error: loss 'cross_entropy' needs an output called 'logits' or exactly one of floats of rank 2 or more, classes last; the outputs are 'start' 'tensor<4x3xf32>', 'value' {{.*}}; --loss cross_entropy:OUTPUT takes one by its name
// NONE: error: no output is called 'nothing'; the outputs are 'start' 'tensor<4x3xf32>', 'value' 'tensor<4x5xf32>', 'mean' 'tensor<f32>'
// RANK: error: output 'mean' cannot be the loss of cross_entropy: it is 'tensor<f32>', not floats of rank 2 or more, classes last; the outputs are 'start'
// FLOAT: error: output 'found' cannot be the loss of mse: it is 'tensor<4x3xi1>', not floats of rank 1 or more; the outputs are
// TWICE: error: output 'start' is in two losses
// WEIGHT: error: loss 'half*mse:start': 'half' is no weight; it is a number other than 0
// ZERO: error: loss '0*mse:start': '0' is no weight
// SMOOTHING: error: label smoothing is of cross_entropy, and no loss is one
// SAMPLES: error: output 'time' is 'tensor<5x4xf32>' and output 'start' 'tensor<4x3xf32>': their losses need the same number of samples
nn.parameter @w : tensor<4x5xf32> {trainable = true}
func.func @forward(%x: tensor<4x3xf32> {nn.name = "x"})
    -> (tensor<4x3xf32> {nn.name = "start"}, tensor<4x5xf32> {nn.name = "value"}, tensor<f32> {nn.name = "mean"},
        tensor<4x3xi1> {nn.name = "found"}, tensor<5x4xf32> {nn.name = "time"}) {
  %w = nn.get @w : tensor<4x5xf32>
  %y = nn.mul %x, %x : tensor<4x3xf32>
  %mean = nn.reduce sum %y dims [0, 1] : tensor<4x3xf32> -> tensor<f32>
  %found = nn.compare lt %x, %y : tensor<4x3xf32> -> tensor<4x3xi1>
  %time = nn.transpose %w perm [1, 0] : tensor<4x5xf32> -> tensor<5x4xf32>
  return %y, %w, %mean, %found, %time : tensor<4x3xf32>, tensor<4x5xf32>, tensor<f32>, tensor<4x3xi1>, tensor<5x4xf32>
}
