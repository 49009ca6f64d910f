// The types that values are stored in, and gradients handed over in.
// RUN: zero-opt %s "--nn-mixed-precision=stored=f16" | FileCheck %s --check-prefix=F16
// RUN: zero-opt %s "--nn-mixed-precision=stored=bf16 gradients=bf16" | FileCheck %s --check-prefix=BF16
// RUN: zero-opt %s "--nn-mixed-precision=stored=f32 gradients=bf16" | FileCheck %s --check-prefix=F32
// RUN: not zero-opt %s "--nn-mixed-precision=gradients=f16" 2>&1 | FileCheck %s --check-prefix=WRONG

// F16: func.func private @narrow(%{{.*}}: tensor<4x8xf32>) -> tensor<4x8xf16>
// F16: func.func private @row_sum(%{{.*}}: tensor<4x8xf16>) -> tensor<8xf32>
// F16: nn.get @w : tensor<8x8xf16>
// F16: nn.matmul {{.*}} -> tensor<4x8xf16>
// F16: nn.matmul {{.*}} {transpose_lhs = true} : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<8x8xf32>
// F16: nn.gradient @w, {{.*}} : tensor<8x8xf32>
// F16: nn.gradient @b, {{.*}} : tensor<8xf32>

// A product or kernel that makes a gradient rounds it; what is added up in memory, or is read by another as well, is rounded by a kernel.
// BF16: func.func private @row_sum(%{{.*}}: tensor<4x8xbf16>) -> tensor<8xbf16>
// BF16: %[[W:.*]] = nn.matmul {{.*}} {transpose_lhs = true} : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<8x8xbf16>
// BF16: nn.gradient @w, %[[W]] : tensor<8x8xbf16>
// BF16: %[[B:.*]] = nn.launch @row_sum({{.*}}) : (tensor<4x8xbf16>) -> tensor<8xbf16>
// BF16: nn.gradient @b, %[[B]] : tensor<8xbf16>
// BF16: %[[E:.*]] = nn.launch @scatter({{.*}}) : {{.*}} -> tensor<5x8xf32>
// BF16: %[[N:.*]] = nn.launch @narrow{{.*}}(%[[E]]) : (tensor<5x8xf32>) -> tensor<5x8xbf16>
// BF16: nn.gradient @e, %[[N]] : tensor<5x8xbf16>
// BF16: return {{.*}} : tensor<4x8xf32>

// The library's products of f32 make f32.
// F32: func.func private @row_sum(%{{.*}}: tensor<4x8xf32>) -> tensor<8xbf16>
// F32: nn.get @w : tensor<8x8xf32>
// F32: %[[P:.*]] = nn.matmul {{.*}} {transpose_lhs = true} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
// F32: %[[N:.*]] = nn.launch @narrow{{.*}}(%[[P]]) : (tensor<8x8xf32>) -> tensor<8x8xbf16>
// F32: nn.gradient @w, %[[N]] : tensor<8x8xbf16>
// F32: nn.gradient @b, {{.*}} : tensor<8xbf16>

// WRONG: stored is f32, bf16 or f16, and gradients are f32 or bf16
nn.parameter @w : tensor<8x8xf32> {trainable = true}
nn.parameter @b : tensor<8xf32> {trainable = true}
nn.parameter @e : tensor<5x8xf32> {trainable = true}
func.func private @row_sum(%y: tensor<4x8xf32>) -> tensor<8xf32> attributes {nn.kernel, nn.inplace = []} {
  %s = nn.reduce sum %y dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  return %s : tensor<8xf32>
}
func.func private @scatter(%i: tensor<4xi64>, %y: tensor<4x8xf32>) -> tensor<5x8xf32> attributes {nn.kernel, nn.inplace = []} {
  %s = nn.scatter_add %i, %y : tensor<4xi64>, tensor<4x8xf32> -> tensor<5x8xf32>
  return %s : tensor<5x8xf32>
}
func.func @train(%x: tensor<4x8xf32>, %i: tensor<4xi64>) -> tensor<4x8xf32> {
  %w = nn.get @w : tensor<8x8xf32>
  %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = nn.matmul %y, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %gw = nn.matmul %x, %y {transpose_lhs = true} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w, %gw : tensor<8x8xf32>
  %gb = nn.launch @row_sum(%y) : (tensor<4x8xf32>) -> tensor<8xf32>
  nn.gradient @b, %gb : tensor<8xf32>
  %ge = nn.launch @scatter(%i, %y) : (tensor<4xi64>, tensor<4x8xf32>) -> tensor<5x8xf32>
  nn.gradient @e, %ge : tensor<5x8xf32>
  return %z : tensor<4x8xf32>
}
