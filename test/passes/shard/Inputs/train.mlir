// y = x w, loss = sum of y (by a kernel that also yields ones for dy); dw = x^T dy.
nn.parameter @w : tensor<4x8xf32> {trainable = true, init = "zeros"}
func.func private @loss(%y: tensor<2x8xf32>) -> (tensor<f32>, tensor<2x8xf32>) attributes {nn.kernel} {
  %loss = nn.reduce sum %y dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<2x8xf32>
  return %loss, %one : tensor<f32>, tensor<2x8xf32>
}
func.func @train(%x: tensor<2x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> {
  %w = nn.get @w : tensor<4x8xf32>
  %y = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %loss, %dy = nn.launch @loss(%y) : (tensor<2x8xf32>) -> (tensor<f32>, tensor<2x8xf32>)
  %dw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  nn.gradient @w, %dw : tensor<4x8xf32>
  %again = nn.matmul %dy, %w {transpose_rhs = true} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  return %loss : tensor<f32>
}
func.func @eval(%x: tensor<2x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> {
  %w = nn.get @w : tensor<4x8xf32>
  %y = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %loss, %dy = nn.launch @loss(%y) : (tensor<2x8xf32>) -> (tensor<f32>, tensor<2x8xf32>)
  return %loss : tensor<f32>
}
