// RUN: zero-opt --split-input-file --verify-diagnostics --plan-verify %s
module {
  // expected-error @+1 {{@step: buffers x and y are both live in step 1 and share byte 64}}
  plan.program step @step height 192 live 192 {
    %x = plan.buffer activation "x" bytes 128 at 0 live 0 to 1
    %y = plan.buffer activation "y" bytes 64 at 64 live 1 to 1
    plan.fill compute -> %x[0, 128] : 0
    plan.copy compute %x[0, 64] -> %y[0, 64]
    plan.return
  }
}

// -----

module {
  // expected-error @+1 {{buffer x lies at bytes 0 to 128, which is not aligned to 64 or leaves the arena of 64}}
  plan.program step @step height 64 live 64 {
    %x = plan.buffer activation "x" bytes 128 at 0 live 0 to 0
    plan.fill compute -> %x[0, 128] : 0
    plan.return
  }
}

// -----

module {
  plan.program step @step height 128 live 128 {
    %x = plan.buffer activation "x" bytes 64 at 0 live 0 to 0
    %y = plan.buffer activation "y" bytes 64 at 64 live 1 to 1
    plan.fill compute -> %x[0, 64] : 0
    // expected-error @+1 {{is step 1 and touches buffer 'x', which is live in steps 0 to 0}}
    plan.copy compute %x[0, 64] -> %y[0, 64]
    plan.return
  }
}

// -----

module attributes {zero.world = 2 : i64} {
  plan.state parameter @p bytes 64 at 0
  plan.program step @step height 128 live 128 {
    %p = plan.use @p
    %x = plan.buffer gathered "x" bytes 128 at 0 live 0 to 1
    plan.collective gather %p[0, 64] -> %x[0, 128] : all_gather 16 of f32 loc("b0.gather")
    // expected-error @+1 {{is step 1 and may start before step 0 ('b0.gather') is complete, but both touch byte 64 of arena work; it lacks a wait}}
    plan.fill compute -> %x[64, 64] : 0
    plan.return
  }
}

// -----

module attributes {zero.world = 2 : i64} {
  // On rank 1 the reference reaches beyond the buffer.
  plan.state parameter @p bytes 64 at 0
  plan.program step @step height 64 live 64 {
    %p = plan.use @p
    // expected-error @+1 {{reference 0 ends at byte 96 of a buffer of 64}}
    plan.fill compute -> %p[0 + rank * 64, 32] : 0
    plan.return
  }
}

// -----

module {
  plan.state parameter @p bytes 100 at 0
  // expected-error @+1 {{shares bytes with @p}}
  plan.state parameter @q bytes 64 at 64
}

// -----

module {
  // expected-error @+1 {{@step: a step waits for a step that comes after it, or that does not exist}}
  plan.program step @step height 64 live 64 {
    %x = plan.buffer activation "x" bytes 64 at 0 live 0 to 0
    plan.fill compute waits(gather 1) -> %x[0, 64] : 0
    plan.return
  }
}

// -----

module {
  // What is still being read may not be written.
  plan.program step @step height 128 live 128 {
    %x = plan.buffer activation "x" bytes 64 at 0 live 0 to 1
    %y = plan.buffer activation "y" bytes 64 at 64 live 0 to 0
    plan.copy compute %x[0, 64] -> %y[0, 64] loc("copy")
    // expected-error @+1 {{is step 1 and may start before step 0 ('copy') is complete, but both touch byte 0 of arena work; it lacks a wait}}
    plan.fill gather -> %x[0, 64] : 0
    plan.return
  }
}

// -----

module attributes {zero.world = 2 : i64} {
  // Byte 32 is rank 1's part of what is reduced.
  plan.program step @step height 128 live 128 {
    %x = plan.buffer gradient "x" bytes 64 at 0 live 0 to 1
    %s = plan.buffer staging "s" bytes 64 at 64 live 0 to 0
    plan.collective reduce %s[0, 64] -> %x[0 + rank * 32, 32], %s[0, 64] : reduce_scatter 8 of f32 by 8 loc("reduce")
    // expected-error @+1 {{is step 1 and may start before step 0 ('reduce') is complete, but both touch byte 32 of arena work; it lacks a wait}}
    plan.fill compute -> %x[32, 32] : 0
    plan.return
  }
}
