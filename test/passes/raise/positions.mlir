// Conditions of 65536 positions, which are too many pairs to be looked at, are compared as what grows evenly along queries and keys.
// RUN: zero-opt %s --nn-raise-attention -split-input-file | FileCheck %s

// -----
// key <= query
// CHECK-LABEL: @triangle(
// CHECK: nn.attention %arg0, %arg0, %arg0 {causal = true, scale = 1.000000e+00 : f32}
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @triangle(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %c = nn.compare le %column, %row : !i -> !c
  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// What comes later is hidden.
// CHECK-LABEL: @later(
// CHECK: nn.attention %arg0, %arg0, %arg0 {causal = true, scale = 1.000000e+00 : f32}
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @later(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %c = nn.compare lt %row, %column : !i -> !c
  %mask = nn.select %c, %low, %zero : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// window > query - key, and query >= key
// CHECK-LABEL: @window(
// CHECK: nn.attention %arg0, %arg0, %arg0 {band = array<i64: -511, 0>, scale = 1.000000e+00 : f32}
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @window(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %distance = nn.sub %row, %column : !i
  %width = nn.constant dense<512> : !i
  %near = nn.compare gt %width, %distance : !i -> !c
  %past = nn.compare ge %row, %column : !i -> !c
  %c = nn.and %near, %past : !c
  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// |query - (key - 3)| <= 64
// CHECK-LABEL: @both_sides(
// CHECK: nn.attention %arg0, %arg0, %arg0 {band = array<i64: -61, 67>, scale = 1.000000e+00 : f32}
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @both_sides(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %offset = nn.constant dense<-3> : !i
  %moved = nn.add %column, %offset : !i
  %distance = nn.sub %row, %moved : !i
  %size = nn.abs %distance : !i
  %width = nn.constant dense<64> : !i
  %c = nn.compare le %size, %width : !i -> !c
  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// Neither before the window nor later.
// CHECK-LABEL: @outside(
// CHECK: nn.attention %arg0, %arg0, %arg0 {band = array<i64: -64, 0>, scale = 1.000000e+00 : f32}
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @outside(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %width = nn.constant dense<64> : !i
  %back = nn.sub %row, %width : !i
  %far = nn.compare lt %column, %back : !i -> !c
  %ahead = nn.compare gt %column, %row : !i -> !c
  %either = nn.or %far, %ahead : !c
  %c = nn.not %either : !c
  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// The padding of a sample remains.
// CHECK-LABEL: @padded(
// CHECK: nn.attention %arg0, %arg0, %arg0 mask %{{.*}} {beyond = -3.40282347E+38 : f32, causal = true, scale = 1.000000e+00 : f32} : {{.*}}, tensor<1x1x1x65536xf32>)
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @padded(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %past = nn.compare le %column, %row : !i -> !c
  %one = nn.constant dense<1> : !i
  %same = nn.compare eq %one, %one : !i -> !c
  %all = nn.and %same, %past : !c
  %real = nn.broadcast %data dims [0, 1, 2, 3] : tensor<1x1x1x65536xi1> -> !c
  %c = nn.and %all, %real : !c
  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// What is said of keys alone is looked at: these are all seen.
// CHECK-LABEL: @everything(
// CHECK: nn.attention %arg0, %arg0, %arg0 {scale = 1.000000e+00 : f32}
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @everything(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %none = nn.constant dense<-1> : !i
  %c = nn.compare gt %column, %none : !i -> !c

  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// -key >= -query, of positions in 32 bits
// CHECK-LABEL: @narrow_numbers(
// CHECK: nn.attention %arg0, %arg0, %arg0 {causal = true, scale = 1.000000e+00 : f32}
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @narrow_numbers(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %n = nn.iota 3 : tensor<1x1x65536x65536xi32>
  %key = nn.cast %n : tensor<1x1x65536x65536xi32> -> !i
  %back = nn.neg %key : !i
  %other = nn.neg %row : !i
  %c = nn.compare ge %back, %other : !i -> !c
  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// Keys that all queries see are a row of a mask.
// CHECK-LABEL: @first_keys(
// CHECK: nn.attention %arg0, %arg0, %arg0 mask %{{.*}} {scale = 1.000000e+00 : f32} : {{.*}}, tensor<1x1x1x65536xf32>)
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @first_keys(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %ten = nn.constant dense<10> : !i
  %c = nn.compare lt %column, %ten : !i -> !c
  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// And so are queries that see all keys.
// CHECK-LABEL: @first_queries(
// CHECK: nn.attention %arg0, %arg0, %arg0 mask %{{.*}} {scale = 1.000000e+00 : f32} : {{.*}}, tensor<1x1x65536x1xf32>)
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @first_queries(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %ten = nn.constant dense<10> : !i
  %c = nn.compare lt %row, %ten : !i -> !c
  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// key <= 2 query is no band.
// CHECK-LABEL: @slower(
// CHECK: nn.attention %arg0, %arg0, %arg0 mask
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @slower(%x: !x, %data: tensor<1x1x1x65536xi1>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %row = nn.broadcast %place dims [2] : tensor<65536xi64> -> !i
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %two = nn.constant dense<2> : !i
  %half = nn.add %row, %row : !i
  %c = nn.compare le %column, %half : !i -> !c
  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}

// -----
// Numbers that the data says are not followed: how many keys of a sample count.
// CHECK-LABEL: @lengths(
// CHECK: nn.attention %arg0, %arg0, %arg0 mask
!c = tensor<1x1x65536x65536xi1>
!i = tensor<1x1x65536x65536xi64>
!m = tensor<1x1x65536x65536xf32>
!x = tensor<1x1x65536x8xf32>
func.func @lengths(%x: !x, %length: tensor<1xi64>) -> !x {
  %zero = nn.constant dense<0.0> : !m
  %low = nn.constant dense<0xFF7FFFFF> : !m
  %place = nn.iota 0 : tensor<65536xi64>
  %column = nn.broadcast %place dims [3] : tensor<65536xi64> -> !i
  %end = nn.broadcast %length dims [0] : tensor<1xi64> -> !i
  %c = nn.compare lt %column, %end : !i -> !c
  %mask = nn.select %c, %zero, %low : !c, !m
  %y, %lse = nn.attention %x, %x, %x mask %mask {scale = 1.0 : f32} : (!x, !x, !x, !m) -> (!x, tensor<1x1x65536xf32>)
  return %y : !x
}
