// RUN: zero-opt %s --zero-partition="accumulate=1" --zero-programs | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: zero-opt %s --zero-partition="accumulate=2" --zero-programs | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: zero-opt %s --zero-partition="accumulate=5" --zero-programs | FileCheck %s --check-prefixes=CHECK,FIVE
// RUN: zero-opt %s --zero-partition="accumulate=1" --zero-programs="clip=never" | FileCheck %s --check-prefix=NEVER --implicit-check-not="zero.clips"
// RUN: zero-opt %s --zero-partition="accumulate=2" --zero-programs="clip=always" | FileCheck %s --check-prefix=ALWAYS --implicit-check-not="@last("
// RUN: not zero-opt %s --zero-programs 2>&1 | FileCheck %s --check-prefix=ALONE

// RUN: sed 's/^func.func @train/nn.parameter @step : tensor<2xf32> {trainable = false}\n&/' %s | zero-opt --zero-partition="accumulate=1" --zero-programs | FileCheck %s --check-prefix=TAKEN
// A parameter may be called as a program is.
// TAKEN: func.func @step_program({{.*}}zero.role = "step"

// ALONE: needs @train, @eval and the attributes of zero-partition
// One micro-step: a program that updates as gradients come, and one that waits for the global norm.
// ONE: func.func @step(%{{.*}}: tensor<2x4xf32> {nn.name = "x", nn.role = "data"}, %{{.*}}: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"}) -> tensor<f32> attributes {zero.role = "step"}
// ONE: func.func @step_clip({{.*}}zero.clips, zero.role = "step"
// Two: the first only accumulates and knows no hyper-parameters.
// TWO: func.func @first(%{{[^%]*}}) -> tensor<f32> attributes {zero.role = "first"}
// TWO-NOT: @middle
// TWO: func.func @last({{.*}}"hyper"{{.*}}zero.role = "last"
// TWO: func.func @last_clip(
// FIVE: func.func @first(
// FIVE: func.func @middle(%{{[^%]*}}) -> tensor<f32> attributes {zero.role = "middle"}
// FIVE: func.func @last(
// NEVER: func.func @step({{.*}}"hyper"
// ALWAYS: func.func @first(
// ALWAYS: func.func @last_clip({{.*}}zero.clips
// CHECK-NOT: @train
// CHECK: func.func @eval({{.*}}zero.role = "eval"
func.func @train(%x: tensor<2x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> {
  %loss = nn.reduce sum %x dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @eval(%x: tensor<2x4xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> {
  %loss = nn.reduce sum %x dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
