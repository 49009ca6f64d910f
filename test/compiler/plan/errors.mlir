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
  plan.matmul compute %x[0, 4] -> %x[4, 4] : 1 x 1 x 1 of f32 ld [1, 1, 1] batch 1 [0, 0, 0]
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
