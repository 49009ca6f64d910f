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
