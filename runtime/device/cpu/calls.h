// Operations whose places are pointers: what the cpu executes.
#pragma once
#include "runtime/device/program.h"
#include "runtime/storage/row_writer.h"
#include "runtime/storage/storage.h"
#include <cstdint>
#include <variant>
#include <vector>

namespace zero::runtime {

using MatMulCall = MatMulOf<void *>; // of the types that the shape says
using AttentionCall = AttentionOf<void *>;
using AttentionGradCall = AttentionGradOf<void *>;
using CopyCall = CopyOf<void *>;
using FillCall = FillOf<void *>;
using AllGatherCall = AllGatherOf<void *>;
using ReduceScatterCall = ReduceScatterOf<void *>; // of the type that it says, into f32
using AllReduceCall = AllReduceOf<float *>;

// A kernel of the plan's shared object: iterations [begin, end) of the launch.
using KernelFunction = void (*)(void *const *args, int64_t begin, int64_t end);

struct LaunchCall {
  KernelFunction function;
  void *const *args;
  int64_t extent, grain; // extent: iterations
  int64_t begin = 0;     // the first one
};

// A copy one side of which lies on disk.
struct DiskCall {
  Storage *storage;
  bool writes; // to disk
  uint64_t offset;
  std::byte *memory;
  uint64_t bytes;
};

using RowsCall = RowsOf<void *>;
// Rows that are put where they belong on disk.
struct DiskRowsCall {
  RowWriter *writer;
  TableRows table;
  const void *indices;
  const std::byte *rows;
  uint64_t offset; // of the window
};

using Call = std::variant<LaunchCall, MatMulCall, AttentionCall, AttentionGradCall, CopyCall, DiskCall, FillCall, AllGatherCall,
                          ReduceScatterCall, AllReduceCall, RowsCall, DiskRowsCall>;

// The largest attention of all programs, so that scratch is allocated once.
struct AttentionLimits {
  int64_t dim = 0, kvLen = 0, qLen = 0;
  bool half = false; // one of them at least
};

// What the executor must be prepared for.
struct Needs {
  AttentionLimits attention{};
  std::vector<MatMulShape> halfProducts{};
};

} // namespace zero::runtime
