// RUN: zero-opt %s --zero-verify-shard -split-input-file -verify-diagnostics

nn.parameter @w : tensor<16xf32> {trainable = false}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false}
func.func @leak() attributes {zero.role = "eval"} {
  // expected-error@+1 {{'zero.gather' op is never released}}
  %a = zero.gather @a : tensor<16xf32>
  return
}
// -----
nn.parameter @w : tensor<16xf32> {trainable = false}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false}
func.func @late() attributes {zero.role = "eval"} {
  %a = zero.gather @a : tensor<16xf32>
  zero.release %a : tensor<16xf32>
  // expected-error@+1 {{'zero.view' op uses @a after its release}}
  %0 = zero.view %a at 0 : tensor<16xf32> -> tensor<4xf32>
  return
}
// -----
nn.parameter @w : tensor<4xf32> {trainable = true}
func.func @forgotten() attributes {zero.role = "eval"} {
  // expected-error@+1 {{'nn.get' op must not survive zero-insert-movement}}
  %w = nn.get @w : tensor<4xf32>
  return
}
// -----
nn.parameter @w : tensor<16xf32> {trainable = true}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
// expected-error@+1 {{@never never updates @a}}
func.func @never() attributes {zero.role = "step"} {
  return
}
// -----
nn.parameter @w : tensor<16xf32> {trainable = true}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
func.func private @k(tensor<16xf32>) -> tensor<1xf32> attributes {nn.kernel}
func.func @early(%h: tensor<16xf32>) attributes {zero.role = "step"} {
  %w = zero.resident @a : tensor<16xf32>
  %v = zero.view %w at 0 : tensor<16xf32> -> tensor<4x4xf32>
  %g = zero.pack %v at [0] : (tensor<4x4xf32>) -> tensor<16xf32>
  %s = zero.update @a, %g, %h {kernel = @k} : (tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32>
  // expected-error@+1 {{reads @a after its update}}
  %y = nn.matmul %v, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
// -----
nn.parameter @w : tensor<4x4xf32> {trainable = true}
// expected-error@+1 {{@w ends at element 20 of 16}}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 4>, trainable = true}
// -----
nn.parameter @w : tensor<8xf32> {trainable = true}
nn.parameter @v : tensor<8xf32> {trainable = true}
// expected-error@+1 {{@v lies at element 7, inside the parameter that ends at 8}}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w, @v], offsets = array<i64: 0, 7>, trainable = true}
// -----
nn.parameter @w : tensor<8xf32> {trainable = false}
// expected-error@+1 {{trains, unlike its parameter @w}}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
// -----
nn.parameter @w : tensor<8xf32> {trainable = true}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
// expected-error@+1 {{@w already lies in a bucket}}
zero.bucket @b {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
// -----
// expected-error@+1 {{no nn.parameter is called @w}}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
// -----
nn.parameter @w : tensor<16xf32> {trainable = true}
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true}
func.func private @k(tensor<16xf32>) -> tensor<1xf32> attributes {nn.kernel}
func.func @twice(%g: tensor<16xf32>, %h: tensor<16xf32>) attributes {zero.role = "step"} {
  %s = zero.update @a, %g, %h {kernel = @k} : (tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32>
  // expected-error@+1 {{updates @a a second time}}
  %t = zero.update @a, %g, %h {kernel = @k} : (tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32>
  return
}
