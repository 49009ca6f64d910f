// x = rows of a table, loss = sum of y = x w^T over it (by a kernel that also yields dy), so that its gradient is a projection's and the rows'. A second
// table is only looked up.
nn.parameter @words : tensor<4097x16xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32}
nn.parameter @places : tensor<8192x16xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32}
func.func @train(%at: tensor<2x2xi64> {nn.name = "at", nn.role = "data"}) -> tensor<f32> {
  %words = nn.get @words : tensor<4097x16xf32>
  %places = nn.get @places : tensor<8192x16xf32>
  %a = nn.gather %words, %at : tensor<4097x16xf32>, tensor<2x2xi64> -> tensor<2x2x16xf32>
  %b = nn.gather %places, %at : tensor<8192x16xf32>, tensor<2x2xi64> -> tensor<2x2x16xf32>
  %sum = nn.add %a, %b : tensor<2x2x16xf32>
  %x = nn.reshape %sum : tensor<2x2x16xf32> -> tensor<4x16xf32>
  %y = nn.matmul %x, %words {transpose_rhs = true} : (tensor<4x16xf32>, tensor<4097x16xf32>) -> tensor<4x4097xf32>
  %loss = nn.reduce sum %y dims [0, 1] : tensor<4x4097xf32> -> tensor<f32>
  %dy = nn.tanh %y : tensor<4x4097xf32>
  %p = nn.matmul %dy, %x {transpose_lhs = true} : (tensor<4x4097xf32>, tensor<4x16xf32>) -> tensor<4097x16xf32>
  %dx = nn.matmul %dy, %words : (tensor<4x4097xf32>, tensor<4097x16xf32>) -> tensor<4x16xf32>
  %d = nn.reshape %dx : tensor<4x16xf32> -> tensor<2x2x16xf32>
  %s = nn.scatter_add %at, %d : tensor<2x2xi64>, tensor<2x2x16xf32> -> tensor<4097x16xf32>
  %g = nn.add %p, %s : tensor<4097x16xf32>
  nn.gradient @words, %g : tensor<4097x16xf32>
  %h = nn.scatter_add %at, %d : tensor<2x2xi64>, tensor<2x2x16xf32> -> tensor<8192x16xf32>
  nn.gradient @places, %h : tensor<8192x16xf32>
  return %loss : tensor<f32>
}
func.func @eval(%at: tensor<2x2xi64> {nn.name = "at", nn.role = "data"}) -> tensor<f32> {
  %words = nn.get @words : tensor<4097x16xf32>
  %a = nn.gather %words, %at : tensor<4097x16xf32>, tensor<2x2xi64> -> tensor<2x2x16xf32>
  %loss = nn.reduce sum %a dims [0, 1, 2] : tensor<2x2x16xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
