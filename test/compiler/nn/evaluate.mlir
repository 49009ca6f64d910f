// RUN: zero-opt %s --nn-evaluate="function=elementwise" -o /dev/null | FileCheck %s --check-prefix=ELEMENTWISE
// RUN: zero-opt %s --nn-evaluate="function=integers" -o /dev/null | FileCheck %s --check-prefix=INTEGERS
// RUN: zero-opt %s --nn-evaluate="function=bits" -o /dev/null | FileCheck %s --check-prefix=BITS
// RUN: zero-opt %s --nn-evaluate="function=movement" -o /dev/null | FileCheck %s --check-prefix=MOVEMENT
// RUN: zero-opt %s --nn-evaluate="function=reductions" -o /dev/null | FileCheck %s --check-prefix=REDUCTIONS
// RUN: zero-opt %s --nn-evaluate="function=composites" -o /dev/null | FileCheck %s --check-prefix=COMPOSITES
// RUN: zero-opt %s --nn-evaluate="function=products" -o /dev/null | FileCheck %s --check-prefix=PRODUCTS
// RUN: zero-opt %s --nn-evaluate="function=narrow" -o /dev/null | FileCheck %s --check-prefix=NARROW

func.func @elementwise() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<3xi1>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %x = nn.constant dense<[1.0, -2.0, 0x7FC00000]> : tensor<3xf32>
  %y = nn.constant dense<[3.0, 0.5, 1.0]> : tensor<3xf32>
  // ELEMENTWISE: result tensor<3xf32>: 3 0.5 nan
  %max = nn.max %x, %y : tensor<3xf32>
  // ELEMENTWISE-NEXT: 1 -2 nan
  %min = nn.min %y, %x : tensor<3xf32>
  // ELEMENTWISE-NEXT: 0.333333 -4 nan
  %div = nn.div %x, %y : tensor<3xf32>
  // ELEMENTWISE-NEXT: 0.333333 2 1
  %one = nn.constant dense<1.0> : tensor<3xf32>
  %rec = nn.div %one, %y : tensor<3xf32>
  // Ordered comparison: false with NaN, but NaN is unequal.
  // ELEMENTWISE-NEXT: 1 0 0
  %gt = nn.compare gt %x, %one : tensor<3xf32> -> tensor<3xi1>
  %ge = nn.compare ge %x, %one : tensor<3xf32> -> tensor<3xi1>
  // ELEMENTWISE-NEXT: 0 1 1
  %ne = nn.compare ne %x, %one : tensor<3xf32> -> tensor<3xi1>
  // ELEMENTWISE-NEXT: 1 0.5 1
  %sel = nn.select %ge, %x, %y : tensor<3xi1>, tensor<3xf32>
  // ELEMENTWISE-NEXT: 0.952574 0.622459 0.731059
  %sig = nn.sigmoid %y : tensor<3xf32>
  // ELEMENTWISE-NEXT: 27 0.125 1
  %three = nn.constant dense<3.0> : tensor<3xf32>
  %pow = nn.pow %y, %three : tensor<3xf32>
  return %max, %min, %div, %rec, %ge, %ne, %sel, %sig, %pow : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<3xi1>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

func.func @bits() -> (tensor<4xi64>, tensor<4xi64>, tensor<4xi32>, tensor<4xi64>, tensor<4xi32>) {
  %a = nn.constant dense<[12, -1, 5, -8]> : tensor<4xi64>
  %b = nn.constant dense<[10, 6, 64, 1]> : tensor<4xi64>
  %c = nn.constant dense<[12, -1, 5, -8]> : tensor<4xi32>
  %d = nn.constant dense<[10, 31, 32, 28]> : tensor<4xi32>
  // BITS: result tensor<4xi64>: 8 6 0 0
  %and = nn.bit_and %a, %b : tensor<4xi64>
  // BITS-NEXT: 14 -1 69 -7
  %or = nn.bit_or %a, %b : tensor<4xi64>
  // BITS-NEXT: tensor<4xi32>: 6 -32 37 -28
  %xor = nn.bit_xor %c, %d : tensor<4xi32>
  // BITS-NEXT: 12288 -64 0 -16
  %left = nn.shift_left %a, %b : tensor<4xi64>
  // BITS-NEXT: tensor<4xi32>: 0 1 0 15
  %right = nn.shift_right %c, %d : tensor<4xi32>
  return %and, %or, %xor, %left, %right : tensor<4xi64>, tensor<4xi64>, tensor<4xi32>, tensor<4xi64>, tensor<4xi32>
}

func.func @integers() -> (tensor<4xi64>, tensor<4xi64>, tensor<4xi32>, tensor<4xi1>, tensor<4xi64>) {
  %a = nn.constant dense<[7, -7, 7, -7]> : tensor<4xi64>
  %b = nn.constant dense<[2, 2, -2, -2]> : tensor<4xi64>
  // INTEGERS: result tensor<4xi64>: 3 -3 -3 3
  %div = nn.div %a, %b : tensor<4xi64>
  // INTEGERS-NEXT: 1 1 -1 -1
  %mod = nn.mod %a, %b : tensor<4xi64>
  // INTEGERS-NEXT: tensor<4xi32>: 7 -7 7 -7
  %c = nn.cast %a : tensor<4xi64> -> tensor<4xi32>
  %p = nn.constant dense<[true, true, false, false]> : tensor<4xi1>
  %q = nn.constant dense<[true, false, true, false]> : tensor<4xi1>
  // INTEGERS-NEXT: tensor<4xi1>: 0 1 1 0
  %x = nn.xor %p, %q : tensor<4xi1>
  // INTEGERS-NEXT: 0 1 2 3
  %i = nn.iota 0 : tensor<4xi64>
  return %div, %mod, %c, %x, %i : tensor<4xi64>, tensor<4xi64>, tensor<4xi32>, tensor<4xi1>, tensor<4xi64>
}

func.func @movement() -> (tensor<3x2xi64>, tensor<2x2x3xi64>, tensor<2x2xi64>, tensor<2x7xi64>, tensor<2x4xi64>, tensor<2x3xi64>, tensor<2xi64>) {
  %m = nn.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  // MOVEMENT: result tensor<3x2xi64>: 1 4 2 5 3 6
  %t = nn.transpose %m perm [1, 0] : tensor<2x3xi64> -> tensor<3x2xi64>
  %row = nn.constant dense<[[7], [8]]> : tensor<2x1xi64>
  // MOVEMENT-NEXT: 7 7 7 8 8 8 7 7 7 8 8 8
  %b = nn.broadcast %row dims [1, 2] : tensor<2x1xi64> -> tensor<2x2x3xi64>
  // MOVEMENT-NEXT: 3 1 6 4
  %s = nn.slice %m starts [0, 2] sizes [2, 2] steps [1, -2] : tensor<2x3xi64> -> tensor<2x2xi64>
  // MOVEMENT-NEXT: 0 1 0 2 0 3 0 0 4 0 5 0 6 0
  %p = nn.pad %m with 0 : i64 low [0, 1] high [0, 1] interior [0, 1] : tensor<2x3xi64> -> tensor<2x7xi64>
  // MOVEMENT-NEXT: 1 2 3 7 4 5 6 8
  %c = nn.concat %m, %row dim 1 : (tensor<2x3xi64>, tensor<2x1xi64>) -> tensor<2x4xi64>
  %ones = nn.constant dense<[1, 1]> : tensor<2xi64>
  // MOVEMENT-NEXT: 4 5 6 4 5 6
  %g = nn.gather %m, %ones : tensor<2x3xi64>, tensor<2xi64> -> tensor<2x3xi64>
  %at = nn.constant dense<[2, 0]> : tensor<2xi64>
  // MOVEMENT-NEXT: 3 4
  %a = nn.take_along %m, %at : tensor<2x3xi64>, tensor<2xi64> -> tensor<2xi64>
  return %t, %b, %s, %p, %c, %g, %a : tensor<3x2xi64>, tensor<2x2x3xi64>, tensor<2x2xi64>, tensor<2x7xi64>, tensor<2x4xi64>, tensor<2x3xi64>, tensor<2xi64>
}

func.func @reductions() -> (tensor<2xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<2x2xi64>) {
  %m = nn.constant dense<[[1.0, 2.0, 3.0], [4.0, 0x7FC00000, 6.0]]> : tensor<2x3xf32>
  %n = nn.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  // REDUCTIONS: result tensor<2xf32>: 3 nan
  %max = nn.reduce max %m dims [1] : tensor<2x3xf32> -> tensor<2xf32>
  // REDUCTIONS-NEXT: 5 7 9
  %columns = nn.reduce sum %n dims [0] : tensor<2x3xf32> -> tensor<3xf32>
  // REDUCTIONS-NEXT: 1 4
  %min = nn.reduce min %n dims [1] : tensor<2x3xf32> -> tensor<2xf32>
  // REDUCTIONS-NEXT: 1 3 6 4 9 15
  %sum = nn.cumsum %n : tensor<2x3xf32> -> tensor<2x3xf32>
  // REDUCTIONS-NEXT: 5 3 0 11 6 0
  %rest = nn.cumsum %n {exclusive = true, reverse = true} : tensor<2x3xf32> -> tensor<2x3xf32>
  %rows = nn.constant dense<[2, 0, 2]> : tensor<3xi64>
  %u = nn.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  // REDUCTIONS-NEXT: 3 4 0 0 6 8
  %scatter = nn.scatter_add %rows, %u : tensor<3xi64>, tensor<3x2xf32> -> tensor<3x2xf32>
  %i = nn.constant dense<[[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]> : tensor<2x3x2xi64>
  // REDUCTIONS-NEXT: 9 12 27 30
  %middle = nn.reduce sum %i dims [1] : tensor<2x3x2xi64> -> tensor<2x2xi64>
  return %max, %columns, %min, %sum, %rest, %scatter, %middle : tensor<2xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<2x2xi64>
}

func.func @composites() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>) {
  %x = nn.constant dense<[1.0, -2.0, 0.5]> : tensor<3xf32>
  // Against torch.nn.functional.
  // COMPOSITES: result tensor<3xf32>: 0.841345 -0.0455003 0.345731
  %erf = nn.gelu erf %x : tensor<3xf32>
  // COMPOSITES-NEXT: 0.841192 -0.0454023 0.345714
  %tanh = nn.gelu tanh %x : tensor<3xf32>
  // COMPOSITES-NEXT: 0.731059 -0.238406 0.31123
  %silu = nn.silu %x : tensor<3xf32>
  %m = nn.constant dense<[[1.0, 2.0, 3.0], [0.0, 0.0, 6.0]]> : tensor<2x3xf32>
  // COMPOSITES-NEXT: 0.0900306 0.244728 0.665241 0.00246652 0.00246652 0.995067
  %p = nn.softmax %m : tensor<2x3xf32>
  %g = nn.constant dense<[1.0, 2.0, 1.0]> : tensor<3xf32>
  %b = nn.constant dense<[0.0, 1.0, 0.0]> : tensor<3xf32>
  // COMPOSITES-NEXT: -1.22474 1 1.22474 -0.707107 -0.414213 1.41421
  %ln, %mean, %rstd = nn.layer_norm %m, %g, %b {eps = 1.0e-6 : f32} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  // COMPOSITES-NEXT: 2 2
  // COMPOSITES-NEXT: 0.46291 1.85164 1.38873 0 0 1.73205
  %rms, %r = nn.rms_norm %m, %g {eps = 1.0e-6 : f32} : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  // COMPOSITES-NEXT: 0.46291 0.288675
  %labels = nn.constant dense<[1, -100]> : tensor<2xi64>
  %scale = nn.constant dense<0.5> : tensor<1xf32>
  // COMPOSITES-NEXT: tensor<f32>: 0.703803
  // COMPOSITES-NEXT: 3.40761 6.00495
  %loss, %lse = nn.cross_entropy %m, %labels, %scale {ignore_index = -100 : i64} : (tensor<2x3xf32>, tensor<2xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<2xf32>)
  return %erf, %tanh, %silu, %p, %ln, %mean, %rms, %r, %loss, %lse : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>
}

func.func @products() -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<3x3xf32>, tensor<2x1x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<4x2xf32>) {
  %a = nn.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %b = nn.constant dense<[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]> : tensor<3x2xf32>
  // PRODUCTS: result tensor<2x2xf32>: 4 5 10 11
  %ab = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  // PRODUCTS-NEXT: 14 32 32 77
  %aat = nn.matmul %a, %a {transpose_rhs = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  // PRODUCTS-NEXT: 1 4 5 2 5 7 3 6 9
  %atb = nn.matmul %a, %b {transpose_lhs = true, transpose_rhs = true} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<3x3xf32>
  %l = nn.constant dense<[[[1.0, 1.0]], [[2.0, 0.0]]]> : tensor<2x1x2xf32>
  %r = nn.constant dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf32>
  // PRODUCTS-NEXT: 4 6 10 12
  %batched = nn.matmul %l, %r : (tensor<2x1x2xf32>, tensor<2x2x2xf32>) -> tensor<2x1x2xf32>
  // PRODUCTS-NEXT: 18 37 42 88
  %onto = nn.matmul %a, %a onto %ab {transpose_rhs = true} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  // PRODUCTS-NEXT: 0 1 1 1
  %rows = nn.rows %b from 1 : tensor<3x2xf32> -> tensor<2x2xf32>
  // PRODUCTS-NEXT: 1 1 4 5 10 11 1 1
  %row = nn.rows %b from 2 : tensor<3x2xf32> -> tensor<1x2xf32>
  %joined = nn.join_rows %row, %ab, %row : (tensor<1x2xf32>, tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  return %ab, %aat, %atb, %batched, %onto, %rows, %joined : tensor<2x2xf32>, tensor<2x2xf32>, tensor<3x3xf32>, tensor<2x1x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<4x2xf32>
}

// bf16 and f16 are computed in f32 and rounded once.
func.func @narrow() -> (tensor<2xbf16>, tensor<2xf16>, tensor<2xf16>) {
  %x = nn.constant dense<[1.0, 256.0]> : tensor<2xbf16>
  %y = nn.constant dense<[0.0039, 1.0]> : tensor<2xbf16>
  // NARROW: result tensor<2xbf16>: 1 256
  %s = nn.add %x, %y : tensor<2xbf16>
  %h = nn.constant dense<[6.0e4, 0.1]> : tensor<2xf16>
  // NARROW-NEXT: tensor<2xf16>: inf 0.199951
  %t = nn.add %h, %h : tensor<2xf16>
  // NARROW-NEXT: -60000 -0.0999756
  %n = nn.neg %h : tensor<2xf16>
  return %s, %t, %n : tensor<2xbf16>, tensor<2xf16>, tensor<2xf16>
}
