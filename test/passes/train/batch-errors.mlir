// RUN: zero-opt %s --split-input-file --nn-add-loss=loss=cross_entropy --verify-diagnostics
// RUN: not zero-opt %s --split-input-file --nn-add-loss=loss=output:mean 2>&1 | FileCheck %s

// expected-error @+1 {{output 'logits' is 'tensor<8x3xf32>', whose first dimension no input has; the inputs are 'x' 'tensor<4x2xf32>', 'k' 'tensor<f32>'; export the model with an output that has the batch first}}
func.func @forward(%x: tensor<4x2xf32> {nn.name = "x"}, %k: tensor<f32> {nn.name = "k"}) -> (tensor<8x3xf32> {nn.name = "logits"}) {
  %w = nn.constant dense<1.0> : tensor<8x3xf32>
  return %w : tensor<8x3xf32>
}

// -----

// Rows that are not one sample's after the other's stay what they are.
// expected-error @+1 {{output 'logits' is 'tensor<8x3xf32>', whose first dimension no input has}}
func.func @forward(%x: tensor<4x2x3xf32> {nn.name = "x"}, %k: tensor<f32> {nn.name = "k"}) -> (tensor<8x3xf32> {nn.name = "logits"}) {
  %t = nn.transpose %x perm [1, 0, 2] : tensor<4x2x3xf32> -> tensor<2x4x3xf32>
  %r = nn.reshape %t : tensor<2x4x3xf32> -> tensor<8x3xf32>
  return %r : tensor<8x3xf32>
}

// -----

// CHECK: error: no input has a first dimension, along which samples could lie; the inputs are 'k' 'tensor<f32>'
// expected-error @+1 {{loss 'cross_entropy' needs an output called 'logits'}}
func.func @forward(%k: tensor<f32> {nn.name = "k"}) -> (tensor<f32> {nn.name = "mean"}) {
  return %k : tensor<f32>
}
