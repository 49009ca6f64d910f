// RUN: zero-opt %s --split-input-file --nn-differentiate --verify-diagnostics

nn.parameter @w : tensor<4xf32> {trainable = true}
func.func @train() -> tensor<f32> {
  %w = nn.get @w : tensor<4xf32>
  // expected-error @+1 {{'nn.gelu_grad' has no gradient, but a trainable parameter reaches the loss through it}}
  %y = nn.gelu_grad erf %w, %w : tensor<4xf32>
  %loss = nn.reduce sum %y dims [0] : tensor<4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

nn.parameter @w : tensor<4xf32> {trainable = false}
// expected-error @+1 {{the loss depends on no trainable parameter}}
func.func @train() -> tensor<f32> {
  %w = nn.get @w : tensor<4xf32>
  %loss = nn.reduce sum %w dims [0] : tensor<4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

nn.parameter @mask : tensor<1x1x3x3xf32> {trainable = true}
func.func @train(%q: tensor<1x1x3x2xf32>) -> tensor<f32> {
  %m = nn.get @mask : tensor<1x1x3x3xf32>
  // expected-error @+1 {{'nn.attention' has no gradient for its operand #3, but that depends on a trainable parameter}}
  %y, %lse = nn.attention %q, %q, %q mask %m {scale = 1.0 : f32}
    : (tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x3xf32>) -> (tensor<1x1x3x2xf32>, tensor<1x1x3xf32>)
  %loss = nn.reduce sum %y dims [0, 1, 2, 3] : tensor<1x1x3x2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
