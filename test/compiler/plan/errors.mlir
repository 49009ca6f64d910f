// RUN: zero-opt --split-input-file --verify-diagnostics %s
plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{reference 1 ends at byte 128 of a buffer of 64}}
  plan.copy compute %x[0, 64] -> %x[64, 64]
  plan.return
}

// -----

plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{copies 32 bytes to 16}}
  plan.copy compute %x[0, 32] -> %x[32, 16]
  plan.return
}

// -----

plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{reads 1 references, which is not its form}}
  plan.matmul compute %x[0, 4] -> %x[4, 4] : 1 x 1 x 1 of f32 to f32 ld [1, 1, 1] batch 1 [0, 0, 0]
  plan.return
}

// -----

plan.program step @step {
  // expected-error @+1 {{no plan.state is called @p}}
  %p = plan.use @p
  plan.return
}

// -----

plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{no lane is called 'computer'}}
  plan.fill computer -> %x[0, 4] : 0
  plan.return
}

// -----

plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{reference 0 ends at byte 68 of a buffer of 64}}
  plan.return %x[64, 4]
}

// -----

// expected-error @+1 {{does not end with plan.return}}
"plan.program"() ({
  "llvm.unreachable"() : () -> ()
}) {sym_name = "step", role = 0 : i32} : () -> ()

// -----

plan.program step @step {
  // expected-error @+1 {{cannot stand in a plan.program}}
  %x = "builtin.unrealized_conversion_cast"() : () -> !plan.buffer
  plan.return
}

// -----

plan.program step @step {
  // expected-error @+1 {{has one end of a life without the other}}
  %x = "plan.buffer"() {name = "x", kind = 6 : i32, bytes = 64 : i64, first = 0 : i64} : () -> !plan.buffer
  plan.return
}

// -----

plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{waits for tick 1 of lane 11, which cannot be}}
  "plan.fill"(%x) {offsets = array<i64: 0>, strides = array<i64: 0>, bytes = array<i64: 4>, inputs = 0 : i64, lane = 0 : i32, waits = array<i64: 11, 1>, pattern = 0 : i32} : (!plan.buffer) -> ()
  plan.return
}

// -----

plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{reads parameters and their gradient and writes parameters}}
  plan.update update %x[0, 64] -> %x[0, 64] : @b @k of f32
  plan.return
}

// -----

// expected-error @+1 {{is an input without a role or a type}}
plan.state input @x bytes 64 {input = "x"}

// -----

// expected-error @+1 {{has 64 bytes for 'tensor<4xf32>', which takes 16}}
plan.state input @x bytes 64 {input = "x", role = "data", type = tensor<4xf32>}

// -----

// expected-error @+1 {{keeps something of @b without saying what}}
plan.state parameter @p bytes 64 {bucket = @b}

// -----

plan.program step @step {
  // expected-error @+1 {{of no bucket}}
  %g = plan.buffer gradient "g" bytes 64 {tensor = #zero.tensor<gradient f32 whole on device>}
  plan.return
}

// -----

plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{sums 8 elements by slices of 9; expected 1 to 8}}
  plan.collective reduce %x[0, 32] -> %x[0, 32] : all_reduce 8 of f32 by 9
  plan.return
}

// -----

plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{sums 8 elements by slices of 0; expected 1 to 8}}
  plan.collective reduce %x[0, 32] -> %x[0, 32] : all_reduce 8 of f32 by 0
  plan.return
}

// -----

plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{leaves a sum of 'bf16' to the library, which makes those of f32}}
  plan.collective reduce %x[0, 32] -> %x[0, 32] : reduce_scatter 8 of bf16
  plan.return
}

// -----

plan.program step @step {
  %x = plan.buffer activation "x" bytes 64
  // expected-error @+1 {{gathers by slices, which only sums have}}
  plan.collective gather %x[0, 32] -> %x[0, 32] : all_gather 8 of f32 by 8
  plan.return
}
