// RUN: zero-opt %s --nn-emit-kernels --split-input-file --verify-diagnostics

func.func private @constant(%x: tensor<2xf32>) -> tensor<2xf32> attributes {nn.kernel} {
  // expected-error @below {{has several values and cannot stand in a kernel}}
  %c = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = nn.add %x, %c : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func private @product(%x: tensor<2x2xf32>) -> tensor<2x2xf32> attributes {nn.kernel} {
  // expected-error @below {{cannot stand at this place of a kernel}}
  %y = nn.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// expected-error @below {{its results have 6 and 4 elements, which share no rows}}
func.func private @sizes(%x: tensor<6xf32>, %y: tensor<4xf32>) -> (tensor<6xf32>, tensor<4xf32>) attributes {nn.kernel} {
  %a = nn.neg %x : tensor<6xf32>
  %b = nn.neg %y : tensor<4xf32>
  return %a, %b : tensor<6xf32>, tensor<4xf32>
}

// -----

func.func private @double(%x: tensor<6xf64>) -> tensor<6xf64> attributes {nn.kernel} {
  // expected-error @below {{has no generated form for f64}}
  %a = nn.exp %x : tensor<6xf64>
  return %a : tensor<6xf64>
}

// -----

// expected-error @below {{sums columns that are no vectors of 8}}
func.func private @strided_columns(%x: tensor<8x2x4xf32>) -> (tensor<8xf32>, tensor<2x8xf32>) attributes {nn.kernel} {
  %t = nn.transpose %x perm [0, 2, 1] : tensor<8x2x4xf32> -> tensor<8x4x2xf32>
  %r = nn.reduce sum %t dims [1, 2] : tensor<8x4x2xf32> -> tensor<8xf32>
  %v = nn.reshape %t : tensor<8x4x2xf32> -> tensor<2x4x8xf32>
  %c = nn.reduce sum %v dims [1] : tensor<2x4x8xf32> -> tensor<2x8xf32>
  return %r, %c : tensor<8xf32>, tensor<2x8xf32>
}

// -----

func.func private @capped(%x: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>) attributes {nn.kernel} {
  // expected-error @below {{has no kernel: scores have a bias that is learnt, or a cap}}
  %y, %l = nn.attention %x, %x, %x {scale = 0.5 : f32, softcap = 30.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return %y, %l : tensor<1x2x4x8xf32>, tensor<1x2x4xf32>
}

// -----

func.func private @biased(%x: tensor<1x2x4x8xf32>, %b: tensor<2x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>) attributes {nn.kernel} {
  // expected-error @below {{has no kernel: scores have a bias that is learnt, or a cap}}
  %y, %l = nn.attention %x, %x, %x bias %b {scale = 0.5 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<2x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return %y, %l : tensor<1x2x4x8xf32>, tensor<1x2x4xf32>
}
