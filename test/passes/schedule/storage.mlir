// Which bytes tensors share, and when they must not.
// RUN: zero-opt --split-input-file --plan-lower %s | FileCheck %s

// A kernel result over its operand; not when the operand is read later, is an input, or is only part of a larger buffer.
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {nn.kernel, nn.inplace = [[0, 0]]}
func.func private @two(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {nn.kernel, nn.inplace = [[0, 0], [0, 1]]}
// CHECK-LABEL: plan.program eval @overwrite
func.func @overwrite(%x: tensor<16xf32> {nn.name = "x", nn.role = "data"}) -> tensor<16xf32> attributes {zero.role = "eval"} {
  // CHECK: plan.launch compute %input.x[0, 64] -> %a[0, 64] : @k
  %a = nn.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32> loc("a")
  // CHECK: plan.launch compute %a[0, 64] -> %b[0, 64] : @k
  %b = nn.launch @k(%a) : (tensor<16xf32>) -> tensor<16xf32> loc("b")
  // CHECK: plan.launch compute %a[0, 64], %b[0, 64] -> %a[0, 64] : @two
  %c = nn.launch @two(%a, %b) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> loc("c")
  // Both operands are the same bytes: the kernel would read what it has written.
  // CHECK: plan.launch compute %a[0, 64], %a[0, 64] -> %result.loss[0, 64] : @two
  %d = nn.launch @two(%c, %c) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> loc("d")
  // CHECK: plan.return %result.loss[0, 64]
  return %d : tensor<16xf32>
}

// -----

// What is packed is computed in the packed buffer, and so is what its kernel may overwrite if it is most of the buffer; an input is copied.
func.func private @add(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {nn.kernel, nn.inplace = [[0, 0], [0, 1]]}
func.func private @sum(tensor<28xf32>) -> tensor<1xf32> attributes {nn.kernel}
// CHECK-LABEL: plan.program eval @packed
func.func @packed(%x: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}, %y: tensor<4xf32> {nn.name = "y", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "eval"} {
  // CHECK: plan.matmul compute %input.x[0, 64], %input.x[0, 64] -> %pack[0, 64]
  %a = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %flat = nn.reshape %a : tensor<4x4xf32> -> tensor<16xf32>
  // CHECK: plan.matmul compute {{.*}} -> %matmul[0, 64]
  %b = nn.matmul %x, %x {transpose_lhs = true} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %other = nn.reshape %b : tensor<4x4xf32> -> tensor<16xf32>
  // CHECK: plan.launch compute %pack[0, 64], %matmul[0, 64] -> %pack[0, 64] : @add
  %c = nn.launch @add(%flat, %other) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  // CHECK: plan.fill compute -> %pack[64, 32] : 0
  // CHECK: plan.copy compute %input.y[0, 16] -> %pack[96, 16]
  %p = zero.pack %c, %y at [0, 24] : (tensor<16xf32>, tensor<4xf32>) -> tensor<28xf32>
  %s = nn.launch @sum(%p) : (tensor<28xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}

// -----

// One rank, several micro-steps: the first computes its gradients in the accumulator, the last adds to it.
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 2 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<4x4xf32> {trainable = true}
  zero.bucket @b0 {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<gradient f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
  func.func private @acc(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {nn.kernel}
  func.func private @sgd(tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<1xf32>) attributes {nn.kernel}
  func.func private @loss(tensor<4x4xf32>) -> tensor<1xf32> attributes {nn.kernel}
  // CHECK-LABEL: plan.program first @first
  // CHECK: plan.matmul compute {{.*}} -> %b0.gradient[0, 64]
  // CHECK-NOT: plan.copy
  func.func @first(%x: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "first"} {
    %l = nn.launch @loss(%x) : (tensor<4x4xf32>) -> tensor<1xf32>
    %g = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %p = zero.pack %g at [0] : (tensor<4x4xf32>) -> tensor<16xf32>
    %s = zero.accumulate @b0, %p {first} : tensor<16xf32> -> tensor<16xf32>
    return %l : tensor<1xf32>
  }
  // CHECK-LABEL: plan.program last @last
  // CHECK: %b0.gradient = plan.use @b0.gradient
  // CHECK: %[[G:.*]] = plan.buffer gradient "b0.gradient"
  // CHECK: plan.matmul compute {{.*}} -> %[[G]][0, 64]
  // CHECK: plan.launch compute %b0.gradient[0, 64], %[[G]][0, 64] -> %b0.gradient[0, 64] : @acc
  // CHECK: plan.update compute %b0.parameter[0, 64], %b0.gradient[0, 64], %b0.momentum[0, 64], %input.hyper[0, 64] -> %b0.parameter[0, 64], %b0.momentum[0, 64], %b0.squares[0, 4] : @b0 @sgd of f32
  func.func @last(%x: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> tensor<1xf32> attributes {zero.role = "last"} {
    %l = nn.launch @loss(%x) : (tensor<4x4xf32>) -> tensor<1xf32>
    %g = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %p = zero.pack %g at [0] : (tensor<4x4xf32>) -> tensor<16xf32>
    %s = zero.accumulate @b0, %p {kernel = @acc} : tensor<16xf32> -> tensor<16xf32>
    %sums = zero.update @b0, %s, %hyper {kernel = @sgd} : (tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32>
    return %l : tensor<1xf32>
  }
}

// -----

// Several micro-steps in one program: the sum is made where the first one's gradients are, and inputs say whose they are.
module attributes {zero.world = 1 : i64, zero.stage = 0 : i64, zero.accumulate = 2 : i64, zero.vertical, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<4x4xf32> {trainable = true}
  zero.bucket @b0 {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
  func.func private @acc(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {nn.kernel}
  func.func private @sgd(tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<1xf32>) attributes {nn.kernel}
  func.func private @loss(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<2xf32> attributes {nn.kernel}
  // CHECK: plan.state input @input.x bytes 64 {input = "x", role = "data", type = tensor<4x4xf32>}
  // CHECK: plan.state input @input.x.1 bytes 64 {input = "x", micro_step = 1 : i64, role = "data", type = tensor<4x4xf32>}
  // CHECK-LABEL: plan.program step @step
  // CHECK: %[[ONE:.*]] = plan.buffer gradient "b0.gradient"
  // CHECK: %[[TWO:.*]] = plan.buffer gradient "b0.gradient"
  // CHECK: plan.matmul compute %input.x[0, 64], %input.x[0, 64] -> %[[ONE]][0, 64]
  // CHECK: plan.matmul compute %input.x.1[0, 64], %input.x.1[0, 64] -> %[[TWO]][0, 64]
  // CHECK-NOT: plan.copy
  // CHECK: plan.launch compute %[[ONE]][0, 64], %[[TWO]][0, 64] -> %[[ONE]][0, 64] : @acc
  // CHECK: plan.update compute %b0.parameter[0, 64], %[[ONE]][0, 64]
  func.func @step(%x: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}, %x1: tensor<4x4xf32> {nn.name = "x", nn.role = "data", zero.micro_step = 1 : i64},
                  %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"}) -> tensor<2xf32> attributes {zero.role = "step"} {
    %l = nn.launch @loss(%x, %x1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<2xf32>
    %g = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %p = zero.pack %g at [0] : (tensor<4x4xf32>) -> tensor<16xf32>
    %g1 = nn.matmul %x1, %x1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %p1 = zero.pack %g1 at [0] : (tensor<4x4xf32>) -> tensor<16xf32>
    %s = zero.accumulate @b0, %p1 onto %p : tensor<16xf32> {kernel = @acc} : tensor<16xf32> -> tensor<16xf32>
    %sums = zero.update @b0, %s, %hyper {kernel = @sgd} : (tensor<16xf32>, tensor<16xf32>) -> tensor<1xf32>
    return %l : tensor<2xf32>
  }
}

// -----

// Stage 0: the gradient is reduced and gathered again where it lies, and every rank updates the whole bucket.
module attributes {zero.world = 2 : i64, zero.stage = 0 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<4x4xf32> {trainable = true}
  zero.bucket @b0 {elements = 16 : i64, shard = 8 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
  func.func private @sgd(tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<2xf32>) attributes {nn.kernel}
  // CHECK-LABEL: plan.program step @step
  func.func @step(%x: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}, %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"})
      -> tensor<1xf32> attributes {zero.role = "step"} {
    %b = zero.resident @b0 : tensor<16xf32>
    %w = zero.view %b at 0 : tensor<16xf32> -> tensor<4x4xf32>
    // CHECK: plan.matmul compute %input.x[0, 64], %b0.parameter[0, 64] -> %[[G:b0.gradient]][0, 64]
    %g = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %p = zero.pack %g at [0] : (tensor<4x4xf32>) -> tensor<16xf32>
    // CHECK: plan.collective compute %[[G]][0, 64] -> %[[G]][0 + rank * 32, 32], %{{.*}}[0, 64] : reduce_scatter 8 of f32 by 8
    %s = zero.reduce_scatter %p : tensor<16xf32> -> tensor<8xf32>
    // CHECK: plan.collective compute %[[G]][0 + rank * 32, 32] -> %[[G]][0, 64] : all_gather 8 of f32
    %all = zero.all_gather %s : tensor<8xf32> -> tensor<16xf32>
    // CHECK: plan.update compute %b0.parameter[0, 64], %[[G]][0, 64], {{.*}} : @b0 @sgd of f32 whole
    %sums = zero.update @b0, %all, %hyper {kernel = @sgd, whole} : (tensor<16xf32>, tensor<16xf32>) -> tensor<2xf32>
    // CHECK: plan.copy compute %b0.squares[0 + rank * 4, 4] -> %result.loss[0, 4]
    %mine = zero.own_shard %sums : tensor<2xf32> -> tensor<1xf32>
    %r = zero.pack %mine at [0] : (tensor<1xf32>) -> tensor<1xf32>
    %loss = zero.all_reduce %r : tensor<1xf32>
    return %loss : tensor<1xf32>
  }
}

// -----

// Stage 1: the shard of the resident bucket is updated in place, then published. Two gradients that wait together (for the norm, say)
// leave their buffers; the last one may stay.
module attributes {zero.world = 2 : i64, zero.stage = 1 : i64, zero.optimizer = "sgd"} {
  nn.parameter @w : tensor<16xf32> {trainable = true}
  nn.parameter @v : tensor<16xf32> {trainable = true}
  zero.bucket @b0 {elements = 16 : i64, shard = 8 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 shard on device>]}
  zero.bucket @b1 {elements = 16 : i64, shard = 8 : i64, parameters = [@v], offsets = array<i64: 0>, trainable = true, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 shard on device>]}
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {nn.kernel}
  func.func private @sgd(tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<16xf32>, tensor<1xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {nn.kernel}
  // CHECK-LABEL: plan.program step clips @step_clip
  func.func @step_clip(%x: tensor<16xf32> {nn.name = "x", nn.role = "data"}, %n: tensor<1xf32> {nn.name = "n", nn.role = "loss_scale"},
                       %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"}) -> tensor<1xf32> attributes {zero.role = "step", zero.clips} {
    %g0 = nn.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
    %p0 = zero.pack %g0 at [0] : (tensor<16xf32>) -> tensor<16xf32>
    // CHECK: plan.collective compute %b0.gradient[0, 64] -> %[[S0:b0.gradient_[0-9]+]][0, 32], {{.*}} : reduce_scatter
    %s0 = zero.reduce_scatter %p0 : tensor<16xf32> -> tensor<8xf32>
    %g1 = nn.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
    %p1 = zero.pack %g1 at [0] : (tensor<16xf32>) -> tensor<16xf32>
    // CHECK: plan.collective compute %b1.gradient[0, 64] -> %b1.gradient[0 + rank * 32, 32], {{.*}} : reduce_scatter
    %s1 = zero.reduce_scatter %p1 : tensor<16xf32> -> tensor<8xf32>
    // CHECK: plan.update compute %b0.parameter[0 + rank * 32, 32], %[[S0]][0, 32], %b0.momentum[0, 32], %input.hyper[0, 64], %input.n[0, 4] -> %b0.parameter[0 + rank * 32, 32], %b0.momentum[0, 32] : @b0 @sgd of f32
    zero.update @b0, %s0, %hyper clip %n {kernel = @sgd} : (tensor<8xf32>, tensor<16xf32>, tensor<1xf32>) -> ()
    // CHECK: plan.collective compute %b0.parameter[0 + rank * 32, 32] -> %b0.parameter[0, 64] : all_gather 8 of f32
    zero.publish @b0
    zero.update @b1, %s1, %hyper clip %n {kernel = @sgd} : (tensor<8xf32>, tensor<16xf32>, tensor<1xf32>) -> ()
    zero.publish @b1
    // An input is no place the host looks for results.
    // CHECK: plan.copy compute %input.n[0, 4] -> %result.loss[0, 4]
    return %n : tensor<1xf32>
  }
}

// -----

// Equal constants are one buffer, whatever program uses them; all programs share inputs and results.
func.func private @c(tensor<2xf32>, tensor<2xf32>) -> tensor<1xf32> attributes {nn.kernel}
// CHECK-COUNT-1: plan.state constant
// CHECK-NOT: plan.state constant
// CHECK-LABEL: plan.program eval @one
func.func @one() -> tensor<1xf32> attributes {zero.role = "eval"} {
  %a = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %r = nn.launch @c(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %r : tensor<1xf32>
}

// -----

// Rows are read where they lie, and joined where they belong: whoever computes some writes them there; an input's are copied.
func.func private @k(tensor<2x4xf32>) -> tensor<2x4xf32> attributes {nn.kernel, nn.inplace = [[0, 0]]}
func.func private @sum(tensor<5x4xf32>) -> tensor<1xf32> attributes {nn.kernel}
// CHECK-LABEL: plan.program eval @rows
func.func @rows(%x: tensor<5x4xf32> {nn.name = "x", nn.role = "data"}, %w: tensor<4x4xf32> {nn.name = "w", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "eval"} {
  // CHECK: plan.matmul compute %input.x[48, 32], %input.w[0, 64] -> %[[PART:.*]][0, 32]
  %last = nn.rows %x from 3 : tensor<5x4xf32> -> tensor<2x4xf32>
  %a = nn.matmul %last, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("a")
  // CHECK: plan.launch compute %[[PART]][0, 32] -> %[[WHOLE:.*]][48, 32] : @k
  %b = nn.launch @k(%a) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("b")
  %first = nn.rows %x from 0 : tensor<5x4xf32> -> tensor<2x4xf32>
  // CHECK: plan.matmul compute %input.x[0, 32], %input.w[0, 64] -> %[[WHOLE]][0, 32]
  %c = nn.matmul %first, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %middle = nn.rows %x from 2 : tensor<5x4xf32> -> tensor<1x4xf32>
  // CHECK: plan.copy compute %input.x[32, 16] -> %[[WHOLE]][32, 16]
  %all = nn.join_rows %c, %middle, %b : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<5x4xf32> loc("all")
  // CHECK: plan.launch compute %[[WHOLE]][0, 80] -> %result.loss[0, 4] : @sum
  %s = nn.launch @sum(%all) : (tensor<5x4xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}

// -----

// A product is made onto a sum that dies with it; onto a copy of one that is read once more.
func.func private @two(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<1xf32> attributes {nn.kernel}
// CHECK-LABEL: plan.program eval @onto
func.func @onto(%x: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<1xf32> attributes {zero.role = "eval"} {
  // CHECK: plan.matmul compute %input.x[0, 64], %input.x[0, 64] -> %a[0, 64]
  %a = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("a")
  // CHECK: plan.matmul compute %input.x[0, 64], %input.x[0, 64], %a[0, 64] -> %a[0, 64] {{.*}}accumulate
  %b = nn.matmul %x, %x onto %a : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("b")
  // CHECK: plan.copy compute %a[0, 64] -> %c[0, 64]
  // CHECK: plan.matmul compute %input.x[0, 64], %input.x[0, 64], %c[0, 64] -> %c[0, 64] {{.*}}accumulate
  %c = nn.matmul %x, %x onto %b : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("c")
  // CHECK: plan.launch compute %a[0, 64], %c[0, 64]
  %s = nn.launch @two(%b, %c) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}
