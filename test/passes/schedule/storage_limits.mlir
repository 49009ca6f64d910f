// Where bytes must not be shared.
// RUN: zero-opt --split-input-file --plan-lower %s | FileCheck %s

// A small part of a packed buffer: computing its operand there would keep the whole buffer alive for it.
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {nn.kernel, nn.inplace = [[0, 0]]}
func.func private @sum(tensor<48xf32>) -> tensor<1xf32> attributes {nn.kernel}
// CHECK-LABEL: plan.program eval @small
func.func @small(%x: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}, %y: tensor<32xf32> {nn.name = "y", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "eval"} {
  // CHECK: plan.matmul compute {{.*}} -> %matmul[0, 64]
  %a = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %flat = nn.reshape %a : tensor<4x4xf32> -> tensor<16xf32>
  // CHECK: plan.launch compute %matmul[0, 64] -> %pack[0, 64] : @k
  %c = nn.launch @k(%flat) : (tensor<16xf32>) -> tensor<16xf32>
  %p = zero.pack %c, %y at [0, 16] : (tensor<16xf32>, tensor<32xf32>) -> tensor<48xf32>
  %s = nn.launch @sum(%p) : (tensor<48xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}

// -----

// An operand that is read once more is not computed where its kernel's result is packed.
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {nn.kernel, nn.inplace = [[0, 0]]}
func.func private @two(tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32> attributes {nn.kernel}
// CHECK-LABEL: plan.program eval @again
func.func @again(%x: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "eval"} {
  // CHECK: plan.matmul compute {{.*}} -> %matmul[0, 64]
  %a = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %flat = nn.reshape %a : tensor<4x4xf32> -> tensor<16xf32>
  // CHECK: plan.launch compute %matmul[0, 64] -> %pack[0, 64] : @k
  %c = nn.launch @k(%flat) : (tensor<16xf32>) -> tensor<16xf32>
  %p = zero.pack %c at [0] : (tensor<16xf32>) -> tensor<16xf32>
  // CHECK: plan.launch compute %pack[0, 64], %matmul[0, 64] -> %result.loss
  %s = nn.launch @two(%p, %flat) : (tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}

// -----

// A part of a packed buffer is not overwritten: the whole would live on for the result. And of two results that could lie over
// one operand only the first does.
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {nn.kernel, nn.inplace = [[0, 0]]}
func.func private @both(tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) attributes {nn.kernel, nn.inplace = [[0, 0], [1, 0]]}
func.func private @sum(tensor<32xf32>) -> tensor<16xf32> attributes {nn.kernel}
func.func private @three(tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32> attributes {nn.kernel}
// CHECK-LABEL: plan.program eval @parts
func.func @parts(%x: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "eval"} {
  %a = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = nn.matmul %x, %x {transpose_lhs = true} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %flat = nn.reshape %a : tensor<4x4xf32> -> tensor<16xf32>
  %p = zero.pack %a, %b at [0, 16] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<32xf32>
  %s = nn.launch @sum(%p) : (tensor<32xf32>) -> tensor<16xf32> loc("s")
  // CHECK: plan.launch compute %pack[0, 64] -> %r[0, 64] : @k
  %r = nn.launch @k(%flat) : (tensor<16xf32>) -> tensor<16xf32> loc("r")
  // CHECK: plan.launch compute %r[0, 64] -> %r[0, 64], %[[O:.*]][0, 64] : @both
  %y, %z = nn.launch @both(%r) : (tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) loc("y")
  // CHECK: plan.launch compute %r[0, 64], %[[O]][0, 64], %s[0, 64] -> %result.loss
  %l = nn.launch @three(%y, %z, %s) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32>
  return %l : tensor<1xf32>
}

// -----

// Nor do both where nobody reads the first.
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {nn.kernel}
func.func private @both(tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) attributes {nn.kernel, nn.inplace = [[0, 0], [1, 0]]}
func.func private @sum(tensor<16xf32>) -> tensor<1xf32> attributes {nn.kernel}
// CHECK-LABEL: plan.program eval @unread
func.func @unread(%x: tensor<16xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "eval"} {
  %r = nn.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32> loc("r")
  // CHECK: plan.launch compute %r[0, 64] -> %r[0, 64], %[[O:[^r].*]][0, 64] : @both
  %y, %z = nn.launch @both(%r) : (tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) loc("y")
  // CHECK: plan.launch compute %[[O]][0, 64] -> %result.loss
  %l = nn.launch @sum(%z) : (tensor<16xf32>) -> tensor<1xf32>
  return %l : tensor<1xf32>
}

// -----

// A gathered bucket is never overwritten: it may be kept for its next use.
module attributes {zero.world = 2 : i64, zero.stage = 3 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<64xf32> {trainable = true}
  zero.bucket @b0 {elements = 64 : i64, shard = 32 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 shard on device>]}
  func.func private @k(tensor<64xf32>) -> tensor<64xf32> attributes {nn.kernel, nn.inplace = [[0, 0]]}
  func.func private @sum(tensor<64xf32>) -> tensor<1xf32> attributes {nn.kernel}
  // CHECK-LABEL: plan.program eval @gathered
  func.func @gathered() -> tensor<1xf32> attributes {zero.role = "eval"} {
    %b = zero.gather @b0 : tensor<64xf32>
    // CHECK: plan.launch compute %b0.gathered[0, 256] -> %r[0, 256] : @k
    %r = nn.launch @k(%b) : (tensor<64xf32>) -> tensor<64xf32> loc("r")
    zero.release %b : tensor<64xf32>
    %s = nn.launch @sum(%r) : (tensor<64xf32>) -> tensor<1xf32>
    return %s : tensor<1xf32>
  }
}

// -----

// What is read after a collective is not overwritten by it; a loss inside a buffer of more than scalars is copied for the host.
module attributes {zero.world = 2 : i64} {
  func.func private @shards(tensor<8xf32>, tensor<16xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<32xf32> attributes {nn.kernel}
  func.func private @two(tensor<2xf32>) -> tensor<2xf32> attributes {nn.kernel}
  // CHECK-LABEL: plan.program eval @read
  func.func @read(%x: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}, %y: tensor<2xf32> {nn.name = "y", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "eval"} {
    %a = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %p = zero.pack %a at [0] : (tensor<4x4xf32>) -> tensor<16xf32>
    %s = zero.reduce_scatter %p : tensor<16xf32> -> tensor<8xf32>
    // CHECK: plan.collective compute %pack[0 + rank * 32, 32] -> %all_gather[0, 64] : all_gather
    %all = zero.all_gather %s : tensor<8xf32> -> tensor<16xf32>
    %n = nn.launch @two(%y) : (tensor<2xf32>) -> tensor<2xf32> loc("n")
    // CHECK: plan.copy compute %n[0, 8] -> %all_reduce[0, 8]
    // CHECK: plan.collective compute %all_reduce[0, 8] -> %all_reduce[0, 8]
    %r = zero.all_reduce %n : tensor<2xf32>
    // CHECK: plan.launch compute %pack[0 + rank * 32, 32], %all_gather[0, 64], %n[0, 8], %all_reduce[0, 8] -> %o[0, 128] : @shards
    %o = nn.launch @shards(%s, %all, %n, %r) : (tensor<8xf32>, tensor<16xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<32xf32> loc("o")
    // CHECK: plan.copy compute %o[0, 4] -> %result.loss[0, 4]
    %l = zero.view %o at 0 : tensor<32xf32> -> tensor<1xf32>
    return %l : tensor<1xf32>
  }
}

// -----

// A state that only the second program has.
// CHECK: plan.state input @input.x
// CHECK: plan.program step @one
// CHECK: plan.state input @input.y
// CHECK: plan.program eval @other
func.func @one(%x: tensor<1xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "step"} {
  return %x : tensor<1xf32>
}
func.func @other(%y: tensor<2xf32> {nn.name = "y", nn.role = "data"}) -> tensor<2xf32> attributes {zero.role = "eval"} {
  return %y : tensor<2xf32>
}
