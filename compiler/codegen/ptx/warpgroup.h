//===- warpgroup.h - what four warps do together ----------------------------------------------------------===//
// Products by `wgmma`, of which LLVM 19 has no intrinsics: kernels call functions of these names, which nobody defines, and calls become
// instructions when PTX is made. A tile's panel is 64 rows of 128 bytes, swizzled (tiles.h), and begins at a multiple of kPanelAlignment.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"

namespace zero::codegen {

inline constexpr int64_t kPanelAlignment = 1024; // bytes after which the pattern of swizzling begins again

/// a · bᵀ of 64 x 64 and 64 x 64 elements of bf16: {32 x f32} (ptr a, ptr b), both panels in shared memory. Of the result each thread of
/// the four warps has what it would have of four products of mma.sync.m16n8, 16 rows for each warp.
inline constexpr llvm::StringLiteral kTimesTransposed = "zero.warpgroup.times.transposed";
/// sum + a · bᵀ: {32 x f32} (32 x f32 sum, ptr a, ptr b).
inline constexpr llvm::StringLiteral kPlusTimesTransposed = "zero.warpgroup.plus.times.transposed";
/// sum + f · b: {32 x f32} (32 x f32 sum, 16 x i32 f, ptr b). f is a result rounded to bf16, two neighbours of a row in a word.
inline constexpr llvm::StringLiteral kPlusTimes = "zero.warpgroup.plus.times";
/// What this thread has written to shared memory is seen by products after a barrier: void ().
inline constexpr llvm::StringLiteral kFenceShared = "zero.warpgroup.fence.shared";
inline constexpr llvm::StringLiteral kWarpgroupCalls = "zero.warpgroup."; // what their names begin with

/// Calls of them as instructions of sm_90a.
void lowerWarpgroupCalls(llvm::Module &module);

} // namespace zero::codegen
