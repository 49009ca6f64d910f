// What the zero dialect does not take.
// RUN: zero-opt --split-input-file --verify-diagnostics %s

// expected-error @+1 {{'zero.world' is 0 : i64; it must be an i64 from 1 to 2^30}}
module attributes {zero.world = 0 : i64} {
}

// -----

// expected-error @+1 {{'zero.optimizer' is "adam"; it must be adamw or sgd}}
module attributes {zero.optimizer = "adam"} {
}

// -----

// expected-error @+1 {{program @step must be one block}}
func.func private @step() attributes {zero.role = "step"}

// -----

// expected-error @+1 {{takes and returns tensors of static shape, not 'tensor<?xf32>'}}
func.func @step(%x: tensor<?xf32>) attributes {zero.role = "step"} {
  return
}

// -----

module attributes {zero.world = 4 : i64} {
  // expected-error @+1 {{32 elements do not split into shards of 16 for 4 ranks}}
  zero.bucket @a {elements = 32 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
}

// -----

// expected-error @+1 {{offsets must rise and lie below its 16 elements}}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w, @v], offsets = array<i64: 0, 16>, trainable = true}

// -----

// expected-error @+1 {{keeps its master twice}}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true,
                tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<master f32 shard on disk>]}

// -----

// expected-error @+1 {{is frozen and keeps its momentum}}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false,
                tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 shard on device>]}

// -----

// expected-error @+1 {{its numbers are f32, bf16 or f16}}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true,
                tensors = [#zero.tensor<master i64 whole on host>]}

// -----

func.func @f() {
  // expected-error @+1 {{no zero.bucket is called @a}}
  %a = zero.gather @a : tensor<16xf32>
  return
}

// -----

zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
func.func @f() {
  // expected-error @+1 {{has 'tensor<8xf32>' where the whole of @a has 16 elements}}
  %a = zero.resident @a : tensor<8xf32>
  return
}

// -----

zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true,
                tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
func.func @f() {
  // expected-error @+1 {{brings 'bf16' of parameters that @a keeps as 'f32', and names no kernel that rounds them}}
  %a = zero.gather @a : tensor<16xbf16>
  return
}

// -----

zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true,
                tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
func.func @f() {
  // expected-error @+1 {{no kernel is called @k}}
  %a = zero.gather @a {kernel = @k} : tensor<16xbf16>
  return
}

// -----

zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
func.func @f(%g: tensor<16xf32>, %h: tensor<16xf32>) {
  // expected-error @+1 {{no kernel is called @k}}
  %s = zero.update @a, %g, %h {kernel = @k} : (tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32>
  return
}

// -----

zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
func.func @f(%g: tensor<16xf32>) {
  // expected-error @+1 {{adds to the accumulator but names no kernel}}
  %s = zero.accumulate @a, %g : tensor<16xf32> -> tensor<16xf32>
  return
}

// -----

zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
func.func @f(%g: tensor<16xf32>) {
  // expected-error @+1 {{is the first and adds to a sum}}
  %s = zero.accumulate @a, %g onto %g : tensor<16xf32> {first} : tensor<16xf32> -> tensor<16xf32>
  return
}

// -----

// expected-error @+1 {{'zero.vertical' is 1 : i64; it must be a unit, of the module}}
module attributes {zero.vertical = 1 : i64} {
}

// -----

module attributes {zero.world = 2 : i64} {
  func.func @f(%g: tensor<16xf32>) {
    // expected-error @+1 {{'tensor<16xf32>' is not 2 shards of 'tensor<4xf32>'}}
    %s = zero.reduce_scatter %g : tensor<16xf32> -> tensor<4xf32>
    return
  }
}

// -----

module attributes {zero.world = 2 : i64} {
  func.func @f(%g: tensor<16xf16>) {
    // expected-error @+1 {{sums 'f16' to 'f32'; sums are f32, of f32 or bf16}}
    %s = zero.reduce_scatter %g : tensor<16xf16> -> tensor<8xf32>
    return
  }
}

// -----

func.func @f(%w: tensor<16xf32>) {
  // expected-error @+1 {{elements -4 to 4 of a buffer of 16}}
  %v = zero.view %w at -4 : tensor<16xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%w: tensor<?xf32>) {
  // expected-error @+1 {{must be flat tensor of static size}}
  zero.release %w : tensor<?xf32>
  return
}
