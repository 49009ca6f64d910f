// Experts that are computed one after another, each for the rows that have chosen it, as readers of exports get them: computed for all rows, with the others masked.
// The numbers stay what they were where each row is computed by its own expert alone.
// RUN: zero-opt %s --nn-raise-experts="height=8" --canonicalize | FileCheck %s
// RUN: for f in sum chain any onto other_rows twice; do zero-opt %s --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.before
// RUN: for f in sum chain any onto other_rows twice; do zero-opt %s --nn-raise-experts="height=8" --nn-evaluate="function=$f digits=4" -o /dev/null; done | diff %t.before -
// RUN: for f in sum chain any onto other_rows twice; do zero-opt %s --nn-raise-experts="height=8" --nn-decompose --nn-evaluate="function=$f digits=4" -o /dev/null; done | diff %t.before -
// RUN: grep -c "result tensor<6x3xf32>" %t.before | FileCheck %s --check-prefix=SIX
// SIX: 6

// A layer each, whose rows are the choices of all tokens, first choices first; number 7 is no expert's. Masks are columns of a one-hot table.
// CHECK-LABEL: func.func @sum
// CHECK-NOT: nn.matmul
// CHECK: %[[SLOT:.*]], %[[ROW:.*]], %[[GROUP:.*]] = nn.group_rows %{{.*}} {{{groups = 2 : i64, height = 8 : i64}}} : (tensor<12xi64>)
// CHECK: nn.grouped_matmul %{{.*}}, %{{.*}}, %{{.*}} by %[[SLOT]], %[[ROW]], %[[GROUP]] : (tensor<12x2xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>,
// CHECK: nn.concat %{{.*}} dim 0 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
// CHECK: nn.tanh %{{.*}} : tensor<12x3xf32>
// CHECK-NOT: nn.tanh
// CHECK: return
func.func @sum(%x: tensor<6x2xf32>, %y: tensor<6x3xf32>, %w0: tensor<2x3xf32>, %w1: tensor<2x3xf32>, %b0: tensor<3xf32>, %b1: tensor<3xf32>) -> tensor<6x3xf32> {
  %zeros = nn.constant dense<0.0> : tensor<6x3xf32>
  %none = nn.constant dense<0> : tensor<2x6xi64>
  %chosen = nn.constant dense<[[1, 0], [0, 7], [1, 7], [0, 1], [7, 7], [0, 1]]> : tensor<6x2xi64>
  %numbers = nn.constant dense<[0, 1]> : tensor<2xi64>
  %which = nn.broadcast %chosen dims [0, 1] : tensor<6x2xi64> -> tensor<6x2x2xi64>
  %all = nn.broadcast %numbers dims [2] : tensor<2xi64> -> tensor<6x2x2xi64>
  %equal = nn.compare eq %which, %all : tensor<6x2x2xi64> -> tensor<6x2x2xi1>
  %ones = nn.cast %equal : tensor<6x2x2xi1> -> tensor<6x2x2xi64>
  %hot = nn.transpose %ones perm [2, 1, 0] : tensor<6x2x2xi64> -> tensor<2x2x6xi64>
  %rows = nn.concat %x, %x dim 0 : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<12x2xf32>

  %column0 = nn.slice %hot starts [0, 0, 0] sizes [1, 2, 6] steps [1, 1, 1] : tensor<2x2x6xi64> -> tensor<1x2x6xi64>
  %flat0 = nn.reshape %column0 : tensor<1x2x6xi64> -> tensor<2x6xi64>
  %holds0 = nn.compare ne %flat0, %none : tensor<2x6xi64> -> tensor<2x6xi1>
  %mask0 = nn.reshape %holds0 : tensor<2x6xi1> -> tensor<12xi1>
  %p0 = nn.matmul %rows, %w0 : (tensor<12x2xf32>, tensor<2x3xf32>) -> tensor<12x3xf32>
  %bias0 = nn.broadcast %b0 dims [1] : tensor<3xf32> -> tensor<12x3xf32>
  %s0 = nn.add %p0, %bias0 : tensor<12x3xf32>
  %t0 = nn.tanh %s0 : tensor<12x3xf32>
  %mask00 = nn.slice %mask0 starts [0] sizes [6] steps [1] : tensor<12xi1> -> tensor<6xi1>
  %t00 = nn.slice %t0 starts [0, 0] sizes [6, 3] steps [1, 1] : tensor<12x3xf32> -> tensor<6x3xf32>
  %m00 = nn.broadcast %mask00 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %y00 = nn.select %m00, %t00, %zeros : tensor<6x3xi1>, tensor<6x3xf32>
  %a00 = nn.add %y, %y00 : tensor<6x3xf32>
  %mask01 = nn.slice %mask0 starts [6] sizes [6] steps [1] : tensor<12xi1> -> tensor<6xi1>
  %t01 = nn.slice %t0 starts [6, 0] sizes [6, 3] steps [1, 1] : tensor<12x3xf32> -> tensor<6x3xf32>
  %m01 = nn.broadcast %mask01 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %y01 = nn.select %m01, %t01, %zeros : tensor<6x3xi1>, tensor<6x3xf32>
  %a01 = nn.add %a00, %y01 : tensor<6x3xf32>

  %column1 = nn.slice %hot starts [1, 0, 0] sizes [1, 2, 6] steps [1, 1, 1] : tensor<2x2x6xi64> -> tensor<1x2x6xi64>
  %flat1 = nn.reshape %column1 : tensor<1x2x6xi64> -> tensor<2x6xi64>
  %holds1 = nn.compare ne %flat1, %none : tensor<2x6xi64> -> tensor<2x6xi1>
  %mask1 = nn.reshape %holds1 : tensor<2x6xi1> -> tensor<12xi1>
  %p1 = nn.matmul %rows, %w1 : (tensor<12x2xf32>, tensor<2x3xf32>) -> tensor<12x3xf32>
  %bias1 = nn.broadcast %b1 dims [1] : tensor<3xf32> -> tensor<12x3xf32>
  %s1 = nn.add %p1, %bias1 : tensor<12x3xf32>
  %t1 = nn.tanh %s1 : tensor<12x3xf32>
  %mask10 = nn.slice %mask1 starts [0] sizes [6] steps [1] : tensor<12xi1> -> tensor<6xi1>
  %t10 = nn.slice %t1 starts [0, 0] sizes [6, 3] steps [1, 1] : tensor<12x3xf32> -> tensor<6x3xf32>
  %m10 = nn.broadcast %mask10 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %y10 = nn.select %m10, %t10, %zeros : tensor<6x3xi1>, tensor<6x3xf32>
  %a10 = nn.add %a01, %y10 : tensor<6x3xf32>
  %mask11 = nn.slice %mask1 starts [6] sizes [6] steps [1] : tensor<12xi1> -> tensor<6xi1>
  %t11 = nn.slice %t1 starts [6, 0] sizes [6, 3] steps [1, 1] : tensor<12x3xf32> -> tensor<6x3xf32>
  %m11 = nn.broadcast %mask11 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %y11 = nn.select %m11, %t11, %zeros : tensor<6x3xi1>, tensor<6x3xf32>
  %a11 = nn.add %a10, %y11 : tensor<6x3xf32>
  return %a11 : tensor<6x3xf32>
}

// The one expert of a row in place of what was there; numbers from 1 on.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: nn.matmul
// CHECK: nn.grouped_matmul %{{.*}} {{{transpose = true}}} : (tensor<6x2xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>,
// CHECK: nn.select %{{.*}}, %{{.*}}, %arg1
// CHECK: return
func.func @chain(%x: tensor<6x2xf32>, %y: tensor<6x3xf32>, %w1: tensor<3x2xf32>, %w2: tensor<3x2xf32>) -> tensor<6x3xf32> {
  %chosen = nn.constant dense<[1, 2, 0, 2, 1, 2]> : tensor<6xi64>
  %one = nn.constant dense<1> : tensor<6xi64>
  %two = nn.constant dense<2> : tensor<6xi64>
  %mask1 = nn.compare eq %chosen, %one : tensor<6xi64> -> tensor<6xi1>
  %mask2 = nn.compare eq %two, %chosen : tensor<6xi64> -> tensor<6xi1>
  %p1 = nn.matmul %x, %w1 {transpose_rhs = true} : (tensor<6x2xf32>, tensor<3x2xf32>) -> tensor<6x3xf32>
  %p2 = nn.matmul %x, %w2 {transpose_rhs = true} : (tensor<6x2xf32>, tensor<3x2xf32>) -> tensor<6x3xf32>
  %m1 = nn.broadcast %mask1 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %m2 = nn.broadcast %mask2 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %y1 = nn.select %m1, %p1, %y : tensor<6x3xi1>, tensor<6x3xf32>
  %y2 = nn.select %m2, %p2, %y1 : tensor<6x3xi1>, tensor<6x3xf32>
  return %y2 : tensor<6x3xf32>
}

// "any(chosen == e)", also where both choices are the same expert, which computes such a row once; each expert has a column of the shares.
// CHECK-LABEL: func.func @any
// CHECK-NOT: nn.matmul
// CHECK: nn.group_rows %{{.*}} : (tensor<12xi64>)
// CHECK: nn.grouped_matmul %{{.*}} : (tensor<12x2xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>,
// CHECK: nn.take_along %{{.*}} : tensor<12x2xf32>, tensor<12xi64> -> tensor<12xf32>
// CHECK: return
func.func @any(%x: tensor<6x2xf32>, %shares: tensor<6x2xf32>, %w0: tensor<2x3xf32>, %w1: tensor<2x3xf32>) -> tensor<6x3xf32> {
  %zeros = nn.constant dense<0.0> : tensor<6x3xf32>
  %none = nn.constant dense<0> : tensor<6xi64>
  %first = nn.constant dense<0> : tensor<6x2xi64>
  %second = nn.constant dense<1> : tensor<6x2xi64>
  %chosen = nn.constant dense<[[1, 0], [0, 0], [1, 1], [0, 1], [4, 1], [0, 4]]> : tensor<6x2xi64>
  %equal0 = nn.compare eq %chosen, %first : tensor<6x2xi64> -> tensor<6x2xi1>
  %ones0 = nn.cast %equal0 : tensor<6x2xi1> -> tensor<6x2xi64>
  %many0 = nn.reduce sum %ones0 dims [1] : tensor<6x2xi64> -> tensor<6xi64>
  %mask0 = nn.compare gt %many0, %none : tensor<6xi64> -> tensor<6xi1>
  %equal1 = nn.compare eq %chosen, %second : tensor<6x2xi64> -> tensor<6x2xi1>
  %ones1 = nn.cast %equal1 : tensor<6x2xi1> -> tensor<6x2xi64>
  %many1 = nn.reduce sum %ones1 dims [1] : tensor<6x2xi64> -> tensor<6xi64>
  %mask1 = nn.compare gt %many1, %none : tensor<6xi64> -> tensor<6xi1>
  %p0 = nn.matmul %x, %w0 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %p1 = nn.matmul %x, %w1 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %column0 = nn.slice %shares starts [0, 0] sizes [6, 1] steps [1, 1] : tensor<6x2xf32> -> tensor<6x1xf32>
  %column1 = nn.slice %shares starts [0, 1] sizes [6, 1] steps [1, 1] : tensor<6x2xf32> -> tensor<6x1xf32>
  %share0 = nn.broadcast %column0 dims [0, 1] : tensor<6x1xf32> -> tensor<6x3xf32>
  %share1 = nn.broadcast %column1 dims [0, 1] : tensor<6x1xf32> -> tensor<6x3xf32>
  %r0 = nn.mul %p0, %share0 : tensor<6x3xf32>
  %r1 = nn.mul %p1, %share1 : tensor<6x3xf32>
  %m0 = nn.broadcast %mask0 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %m1 = nn.broadcast %mask1 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %y0 = nn.select %m0, %r0, %zeros : tensor<6x3xi1>, tensor<6x3xf32>
  %y1 = nn.select %m1, %r1, %zeros : tensor<6x3xi1>, tensor<6x3xf32>
  %y = nn.add %y0, %y1 : tensor<6x3xf32>
  return %y : tensor<6x3xf32>
}

// "y[rows] += expert(x[rows])": what was there is read, added to, and put back.
// CHECK-LABEL: func.func @onto
// CHECK-NOT: nn.matmul
// CHECK: nn.grouped_matmul
// CHECK: nn.add %arg1, %{{.*}} : tensor<6x3xf32>
// CHECK-NOT: nn.add
// CHECK: return
func.func @onto(%x: tensor<6x2xf32>, %y: tensor<6x3xf32>, %w0: tensor<2x3xf32>, %w1: tensor<2x3xf32>) -> tensor<6x3xf32> {
  %chosen = nn.constant dense<[1, 0, 1, 0, 3, 0]> : tensor<6xi64>
  %rows = nn.constant dense<[0, 1, 2, 3, 4, 5]> : tensor<6xi64>
  %zero = nn.constant dense<0> : tensor<6xi64>
  %one = nn.constant dense<1> : tensor<6xi64>
  %mask0 = nn.compare eq %chosen, %zero : tensor<6xi64> -> tensor<6xi1>
  %mask1 = nn.compare eq %chosen, %one : tensor<6xi64> -> tensor<6xi1>
  %p0 = nn.matmul %x, %w0 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %p1 = nn.matmul %x, %w1 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %m0 = nn.broadcast %mask0 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %m1 = nn.broadcast %mask1 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %g0 = nn.gather %y, %rows : tensor<6x3xf32>, tensor<6xi64> -> tensor<6x3xf32>
  %s0 = nn.add %g0, %p0 : tensor<6x3xf32>
  %y0 = nn.select %m0, %s0, %y : tensor<6x3xi1>, tensor<6x3xf32>
  %g1 = nn.gather %y0, %rows : tensor<6x3xf32>, tensor<6xi64> -> tensor<6x3xf32>
  %s1 = nn.add %g1, %p1 : tensor<6x3xf32>
  %y1 = nn.select %m1, %s1, %y0 : tensor<6x3xi1>, tensor<6x3xf32>
  return %y1 : tensor<6x3xf32>
}

// What is read in another order is not what was there.
// CHECK-LABEL: func.func @other_rows
// CHECK-COUNT-2: nn.matmul
// CHECK: return
func.func @other_rows(%x: tensor<6x2xf32>, %y: tensor<6x3xf32>, %w0: tensor<2x3xf32>, %w1: tensor<2x3xf32>) -> tensor<6x3xf32> {
  %chosen = nn.constant dense<[1, 0, 1, 0, 3, 0]> : tensor<6xi64>
  %rows = nn.constant dense<[5, 4, 3, 2, 1, 0]> : tensor<6xi64>
  %zero = nn.constant dense<0> : tensor<6xi64>
  %one = nn.constant dense<1> : tensor<6xi64>
  %mask0 = nn.compare eq %chosen, %zero : tensor<6xi64> -> tensor<6xi1>
  %mask1 = nn.compare eq %chosen, %one : tensor<6xi64> -> tensor<6xi1>
  %p0 = nn.matmul %x, %w0 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %p1 = nn.matmul %x, %w1 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %m0 = nn.broadcast %mask0 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %m1 = nn.broadcast %mask1 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %g0 = nn.gather %y, %rows : tensor<6x3xf32>, tensor<6xi64> -> tensor<6x3xf32>
  %s0 = nn.add %g0, %p0 : tensor<6x3xf32>
  %y0 = nn.select %m0, %s0, %y : tensor<6x3xi1>, tensor<6x3xf32>
  %g1 = nn.gather %y0, %rows : tensor<6x3xf32>, tensor<6xi64> -> tensor<6x3xf32>
  %s1 = nn.add %g1, %p1 : tensor<6x3xf32>
  %y1 = nn.select %m1, %s1, %y0 : tensor<6x3xi1>, tensor<6x3xf32>
  return %y1 : tensor<6x3xf32>
}

// Numbers with a gap, and experts that do not compute alike.
// CHECK-LABEL: func.func @gap
// CHECK-COUNT-2: nn.matmul
// CHECK-NOT: nn.grouped_matmul
// CHECK-LABEL: func.func @unlike
// CHECK-COUNT-2: nn.matmul
// CHECK-NOT: nn.grouped_matmul
func.func @gap(%x: tensor<6x2xf32>, %chosen: tensor<6xi64>, %y: tensor<6x3xf32>, %w0: tensor<2x3xf32>, %w2: tensor<2x3xf32>) -> tensor<6x3xf32> {
  %zero = nn.constant dense<0> : tensor<6xi64>
  %two = nn.constant dense<2> : tensor<6xi64>
  %mask0 = nn.compare eq %chosen, %zero : tensor<6xi64> -> tensor<6xi1>
  %mask2 = nn.compare eq %chosen, %two : tensor<6xi64> -> tensor<6xi1>
  %p0 = nn.matmul %x, %w0 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %p2 = nn.matmul %x, %w2 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %m0 = nn.broadcast %mask0 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %m2 = nn.broadcast %mask2 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %y0 = nn.select %m0, %p0, %y : tensor<6x3xi1>, tensor<6x3xf32>
  %y2 = nn.select %m2, %p2, %y0 : tensor<6x3xi1>, tensor<6x3xf32>
  return %y2 : tensor<6x3xf32>
}
func.func @unlike(%x: tensor<6x2xf32>, %chosen: tensor<6xi64>, %y: tensor<6x3xf32>, %w0: tensor<2x3xf32>, %w1: tensor<2x3xf32>) -> tensor<6x3xf32> {
  %zero = nn.constant dense<0> : tensor<6xi64>
  %one = nn.constant dense<1> : tensor<6xi64>
  %mask0 = nn.compare eq %chosen, %zero : tensor<6xi64> -> tensor<6xi1>
  %mask1 = nn.compare eq %chosen, %one : tensor<6xi64> -> tensor<6xi1>
  %p0 = nn.matmul %x, %w0 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %t0 = nn.tanh %p0 : tensor<6x3xf32>
  %p1 = nn.matmul %x, %w1 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %m0 = nn.broadcast %mask0 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %m1 = nn.broadcast %mask1 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %y0 = nn.select %m0, %t0, %y : tensor<6x3xi1>, tensor<6x3xf32>
  %y1 = nn.select %m1, %p1, %y0 : tensor<6x3xi1>, tensor<6x3xf32>
  return %y1 : tensor<6x3xf32>
}

// One stream of random numbers for the rows of all experts.
// CHECK-LABEL: func.func @dropped
// CHECK: nn.grouped_matmul
// CHECK: nn.dropout %{{.*}}, %{{.*}} {id = 3 : i64,
// CHECK-NOT: nn.dropout
// CHECK: return
func.func @dropped(%x: tensor<6x2xf32>, %chosen: tensor<6xi64>, %seed: tensor<2xi64>, %y: tensor<6x3xf32>, %w0: tensor<2x3xf32>, %w1: tensor<2x3xf32>) -> tensor<6x3xf32> {
  %zero = nn.constant dense<0> : tensor<6xi64>
  %one = nn.constant dense<1> : tensor<6xi64>
  %mask0 = nn.compare eq %chosen, %zero : tensor<6xi64> -> tensor<6xi1>
  %mask1 = nn.compare eq %chosen, %one : tensor<6xi64> -> tensor<6xi1>
  %p0 = nn.matmul %x, %w0 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %d0 = nn.dropout %p0, %seed {id = 3 : i64, rate = 0.5 : f32, samples = 1 : i64} : tensor<6x3xf32>, tensor<2xi64>
  %p1 = nn.matmul %x, %w1 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %d1 = nn.dropout %p1, %seed {id = 4 : i64, rate = 0.5 : f32, samples = 1 : i64} : tensor<6x3xf32>, tensor<2xi64>
  %m0 = nn.broadcast %mask0 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %m1 = nn.broadcast %mask1 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %y0 = nn.select %m0, %d0, %y : tensor<6x3xi1>, tensor<6x3xf32>
  %y1 = nn.select %m1, %d1, %y0 : tensor<6x3xi1>, tensor<6x3xf32>
  return %y1 : tensor<6x3xf32>
}

// A choice onto nothing, of another shape, that is read twice.
// CHECK-LABEL: func.func @twice
// CHECK-NOT: nn.matmul
// CHECK: nn.grouped_matmul
// CHECK: return
func.func @twice(%x: tensor<6x2xf32>, %w0: tensor<2x3xf32>, %w1: tensor<2x3xf32>) -> tensor<6x3xf32> {
  %zeros = nn.constant dense<0.0> : tensor<6x3xf32>
  %chosen = nn.constant dense<[1, 0, 1, 0, 3, 0]> : tensor<6xi64>
  %zero = nn.constant dense<0> : tensor<6xi64>
  %one = nn.constant dense<1> : tensor<6xi64>
  %mask0 = nn.compare eq %chosen, %zero : tensor<6xi64> -> tensor<6xi1>
  %mask1 = nn.compare eq %chosen, %one : tensor<6xi64> -> tensor<6xi1>
  %p0 = nn.matmul %x, %w0 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %p1 = nn.matmul %x, %w1 : (tensor<6x2xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %m0 = nn.broadcast %mask0 dims [0] : tensor<6xi1> -> tensor<6x3xi1>
  %y0 = nn.select %m0, %p0, %zeros : tensor<6x3xi1>, tensor<6x3xf32>
  %r0 = nn.reshape %y0 : tensor<6x3xf32> -> tensor<2x3x3xf32>
  %pairs = nn.reshape %mask1 : tensor<6xi1> -> tensor<2x3xi1>
  %m1 = nn.broadcast %pairs dims [0, 1] : tensor<2x3xi1> -> tensor<2x3x3xi1>
  %r1 = nn.reshape %p1 : tensor<6x3xf32> -> tensor<2x3x3xf32>
  %y1 = nn.select %m1, %r1, %r0 : tensor<2x3x3xi1>, tensor<2x3x3xf32>
  %flat = nn.reshape %y1 : tensor<2x3x3xf32> -> tensor<6x3xf32>
  %square = nn.mul %flat, %flat : tensor<6x3xf32>
  return %square : tensor<6x3xf32>
}
