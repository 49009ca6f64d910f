// What the nn dialect does not take.
// RUN: zero-opt --split-input-file --verify-diagnostics %s

// expected-error @+1 {{starts from "uniform", which is not zeros, ones or normal}}
nn.parameter @w : tensor<4xf32> {trainable = true, init = "uniform"}

// -----

// expected-error @+1 {{which lacks a name}}
nn.parameter @w : tensor<4xf32> {trainable = true, aliases = [{transposed = true}]}

// -----

// expected-error @+1 {{its fields are name, transposed, file, offset, bytes and stored}}
nn.parameter @w : tensor<4xf32> {trainable = true, aliases = [{name = "v", offset = "4"}]}

// -----

func.func @f(%s: tensor<2xi64>) {
  // expected-error @+1 {{covers -1 samples; it is at least one, or 0 for all of them}}
  %r = nn.random %s {id = 1 : i64, samples = -1 : i64} : tensor<2xi64> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %l: tensor<4xi64>, %s: tensor<1xf32>) {
  // expected-error @+1 {{smooths labels by 1.500000e+00, which is not in [0, 1]}}
  %r, %lse = nn.cross_entropy %x, %l, %s {ignore_index = -100 : i64, label_smoothing = 1.5 : f32} : (tensor<4x3xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32> {nn.symbols = ["batch", "seq"]}) { // expected-error {{which is no text for each dimension}}
  return
}

// -----

func.func @f(%x: tensor<4xi64> {nn.classes = array<i64: 0, -100>}) { // expected-error {{which is no positive number of classes, alone or with the label that is ignored}}
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<3xi64>) {
  // expected-error @+1 {{needs a seed of two numbers}}
  %r = nn.dropout %x, %s {id = 1 : i64, samples = 1 : i64, rate = 0.5 : f32} : tensor<4xf32>, tensor<3xi64>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<2xi64>) {
  // expected-error @+1 {{drops at a rate of}}
  %r = nn.dropout %x, %s {id = 1 : i64, samples = 1 : i64, rate = 1.5 : f32} : tensor<4xf32>, tensor<2xi64>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{needs a last dimension}}
  %r = nn.softmax %x : tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{surrounds 'tensor<2xf32>' with 0 : i64}}
  %r = nn.pad %x with 0 : i64 low [1] high [1] interior [0] : tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<3x2xf64>) {
  // expected-error @+2 {{element types differ}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = nn.matmul %x, %y : (tensor<2x3xf32>, tensor<3x2xf64>) -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %l: tensor<1x2x4xf32>, %d: tensor<1x2x4x4xf32>) {
  // expected-error @+1 {{takes the results of the forward and the gradient of the first}}
  %r:3 = nn.attention_grad %q, %q, %q, %q, %l, %d {scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %l: tensor<1x2x4xf32>, %d: tensor<1x2x5xf32>) {
  // expected-error @+1 {{takes the row sums and the gradient of the forward's result}}
  %r:3 = nn.attention_grad_by_row_sums %q, %q, %q, %l, %d, %q {scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x5xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %l: tensor<1x2x4xf32>) {
  // expected-error @+1 {{gives gradients of the types of q, k and v}}
  %r = nn.attention_grad_by_row_sums %q, %q, %q, %l, %l, %q {scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4xf32>
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %s: tensor<4xf32>) {
  // expected-error @+2 {{sink 'tensor<4xf32>' is not one number for each of 2 heads}}
  // expected-error @+1 {{failed to infer returned types}}
  %r:2 = nn.attention %q, %q, %q sink %s {scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>) {
  // expected-error @+2 {{beyond is a finite number that hides keys, below -1.000000e+05, as the mask beside it does}}
  // expected-error @+1 {{failed to infer returned types}}
  %r:2 = nn.attention %q, %q, %q {beyond = -1.0e9 : f32, causal = true, scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>) {
  // expected-error @+2 {{a softcap is larger than zero}}
  // expected-error @+1 {{failed to infer returned types}}
  %r:2 = nn.attention %q, %q, %q {softcap = 0.0 : f32, scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>) {
  // expected-error @+2 {{a band is two distances from a query's position: to the first and to the last key that it sees}}
  // expected-error @+1 {{failed to infer returned types}}
  %r:2 = nn.attention %q, %q, %q {band = array<i64: 1, 0>, scale = 1.0 : f32} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x4x6x8xf32>, %y: tensor<1x4x6x8xf32>) {
  // expected-error @+2 {{packed_kv_heads means that q, k and v are one value with the heads of a position side by side (bshd)}}
  // expected-error @+1 {{failed to infer returned types}}
  %r:2 = nn.attention %x, %x, %y {bshd = true, packed_kv_heads = 2 : i64, scale = 1.0 : f32} : (tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x4x6x8xf32>) {
  // expected-error @+2 {{packed_kv_heads means that q, k and v are one value with the heads of a position side by side (bshd)}}
  // expected-error @+1 {{failed to infer returned types}}
  %r:2 = nn.attention %x, %x, %x {packed_kv_heads = 2 : i64, scale = 1.0 : f32} : (tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x4x6x8xf32>) {
  // expected-error @+2 {{'tensor<1x4x6x8xf32>' do not fit together}}
  // expected-error @+1 {{failed to infer returned types}}
  %r:2 = nn.attention %x, %x, %x {bshd = true, packed_kv_heads = 3 : i64, scale = 1.0 : f32} : (tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x4x6x8xf32>, %y: tensor<1x4x2x8xf32>, %l: tensor<1x4x2xf32>) {
  // expected-error @+1 {{gives one gradient, of the type of the packed value}}
  %r:3 = nn.attention_grad %x, %x, %x, %y, %l, %y {bshd = true, packed_kv_heads = 2 : i64, scale = 1.0 : f32} : (tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>)
  return
}

// -----

// expected-error @+1 {{it lists pairs [result, operand] that the kernel has}}
func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {nn.kernel, nn.inplace = [[0, 1]]}

// -----

// expected-error @+1 {{takes and returns tensors of static shape, not 'tensor<?xf32>'}}
func.func private @k(tensor<?xf32>) attributes {nn.kernel}

// -----

// expected-error @+1 {{which is not data, shared, labels, loss_scale, seed or hyper}}
func.func @f(%x: tensor<4xf32> {nn.name = "x", nn.role = "label"}) {
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{takes rows 3 to 5 of 'tensor<4x3xf32>'}}
  %r = nn.rows %x from 3 : tensor<4x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{'tensor<2x2xf32>' are no rows of 'tensor<4x3xf32>'}}
  %r = nn.rows %x from 0 : tensor<4x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x4xf32>, %y: tensor<2x4xf32>) {
  // expected-error @+1 {{of 'tensor<4x4xf32>' is added to 'tensor<2x4xf32>'}}
  %r = nn.matmul %x, %x onto %y : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<1x5x2xf32>, %k: tensor<3x2xf32>) {
  // expected-error @+2 {{nn.depthwise: dimension 0 of the window does not fit 'tensor<1x5x2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = "nn.depthwise"(%x, %k) {low = array<i64: 3>, high = array<i64: 0>, strides = array<i64: 1>, dilations = array<i64: 1>} : (tensor<1x5x2xf32>, tensor<3x2xf32>) -> tensor<1x6x2xf32>
  return
}

// -----

func.func @f(%x: tensor<1x5x2xf32>, %k: tensor<3x4xf32>) {
  // expected-error @+2 {{'tensor<1x5x2xf32>' and 'tensor<3x4xf32>' are no places and taps of equal channels}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = "nn.depthwise"(%x, %k) {low = array<i64: 1>, high = array<i64: 1>, strides = array<i64: 1>, dilations = array<i64: 1>} : (tensor<1x5x2xf32>, tensor<3x4xf32>) -> tensor<1x5x2xf32>
  return
}
