// RUN: zero-opt %s --split-input-file --nn-verify-train --verify-diagnostics

// expected-error @below {{one is missing}}
module {
  func.func @train() -> tensor<f32> {
    %0 = nn.constant dense<1.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// expected-error @below {{parameter 'w' has 0 gradients in @train, expected 1}}
nn.parameter @w : tensor<4xf32> {trainable = true}
func.func @train() -> tensor<f32> {
  %w = nn.get @w : tensor<4xf32>
  // expected-error @below {{'nn.softmax' may not be left by the train phase}}
  %y = nn.softmax %w : tensor<4xf32>
  %loss = nn.reduce sum %y dims [0] : tensor<4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @eval() -> tensor<f32> {
  %w = nn.get @w : tensor<4xf32>
  %loss = nn.reduce sum %w dims [0] : tensor<4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

nn.parameter @w : tensor<f32> {trainable = true}
// expected-error @below {{argument #0 lacks nn.name or nn.role}}
func.func @train(%x: tensor<f32>) -> tensor<f32> {
  %w = nn.get @w : tensor<f32>
  nn.gradient @w, %x : tensor<f32>
  return %w : tensor<f32>
}
// expected-error @below {{arguments of @eval differ from those of @train}}
func.func @eval() -> tensor<f32> {
  %w = nn.get @w : tensor<f32>
  return %w : tensor<f32>
}
