// RUN: zero-opt --split-input-file --verify-diagnostics --plan-lower %s
// expected-error @+1 {{argument 0 of program @step has no nn.name or nn.role}}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> attributes {zero.role = "step"} {
  return %x : tensor<4xf32>
}

// -----

func.func @step(%x: tensor<4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<4xf32> attributes {zero.role = "step"} {
  // expected-error @+1 {{the schedule phase does not know nn.exp; it should be part of a kernel by now}}
  %y = nn.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @step(%q: tensor<1x4x2x8xf32> {nn.name = "q", nn.role = "data"}) -> tensor<1x4x2x8xf32> attributes {zero.role = "step"} {
  // expected-error @+1 {{is not a kernel, and only kernels take the heads of a position side by side (bshd)}}
  %out, %lse = nn.attention %q, %q, %q {bshd = true, causal = false, scale = 1.0 : f32} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2xf32>)
  return %out : tensor<1x4x2x8xf32>
}

// -----

// expected-error @+1 {{'zero.role' is "stop"; it must be step, first, middle, last or eval, of a function}}
func.func @step(%x: tensor<1xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "stop"} {
  return %x : tensor<1xf32>
}

// -----

module attributes {zero.world = 2 : i64, zero.stage = 3 : i64} {
  nn.parameter @w : tensor<8xf32> {trainable = true}
  zero.bucket @b0 {elements = 8 : i64, shard = 4 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 shard on device>]}
  func.func @step() -> tensor<8xf32> attributes {zero.role = "step"} {
    // expected-error @+1 {{bucket @b0 is kept in shards, so no rank has it whole; zero.gather it}}
    %b = zero.resident @b0 : tensor<8xf32>
    return %b : tensor<8xf32>
  }
}

// -----

func.func @a(%x: tensor<1xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "step"} {
  return %x : tensor<1xf32>
}
// expected-error @+1 {{input 'x' is 'tensor<2xf32>' in program @b but 'tensor<1xf32>' in another}}
func.func @b(%x: tensor<2xf32> {nn.name = "x", nn.role = "data"}) -> tensor<2xf32> attributes {zero.role = "eval"} {
  return %x : tensor<2xf32>
}

// -----

module attributes {zero.world = 1 : i64} {
  nn.parameter @w : tensor<8xf32> {trainable = true}
  zero.bucket @b0 {elements = 8 : i64, shard = 8 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<momentum f32 whole on device>]}
  func.func @eval(%x: tensor<1xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "eval"} {
    // expected-error @+1 {{needs the master of bucket @b0, which keeps none}}
    %b = zero.resident @b0 : tensor<8xf32>
    %v = zero.view %b at 0 : tensor<8xf32> -> tensor<1xf32>
    return %v : tensor<1xf32>
  }
}
