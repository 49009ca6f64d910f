// Products of bf16 matrices on one of a processor's units, of any form, summed in f32 in the order of k, whatever they are cut into.
#pragma once
#include "runtime/device/cpu/bf16/unit.h"
#include "runtime/device/program.h"
#include <cstddef>

namespace zero::runtime::bf16 {

// Bytes in which a product of this shape packs operands and keeps sums; they begin at a multiple of 64.
size_t roomOf(const MatMulShape &shape);

// Of any product of at most these extents.
size_t mostRoomOf(int64_t m, int64_t n, int64_t k);

// C (+)= op(A) · op(B), a single one, on the calling thread.
void product(Unit unit, const MatMulShape &shape, const void *a, const void *b, void *c, std::byte *room);

} // namespace zero::runtime::bf16
