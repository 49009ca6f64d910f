// What a device is asked to run: a program of a plan as one rank runs it, in addresses that only the device can follow. Plain data, made
// once (engine/resolve.h).
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/storage/table_rows.h"
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace zero::runtime {

inline constexpr int kLanes = plan::Lane_ARRAYSIZE;

// A byte of an arena, by the number its device gave it. Offsets wrap: an argument of a launch may lie before the arena, if the iterations
// that are launched do not.
struct Address {
  uint32_t arena = 0;
  uint64_t offset = 0;

  Address operator+(uint64_t bytes) const { return {arena, offset + bytes}; }
  bool operator==(const Address &) const = default;
};

// Shapes and operands are apart, since a device has its own idea of a place: `Place` is an Address here and a pointer on the cpu.

// C[b] (+)= op(A[b]) · op(B[b]) and what an epilogue makes of it; see plan.MatMul.
struct MatMulShape {
  int64_t m, n, k, batch;
  bool transA, transB;
  int64_t lda, ldb, ldc;
  int64_t strideA, strideB, strideC;
  bool accumulate;
  plan::DType dtype = plan::F32, cDtype = plan::F32; // of A and B, of C
  plan::MatMul::Epilogue epilogue = plan::MatMul::NONE;
  bool tf32 = false;
  plan::MatMul::Grouped grouped = plan::MatMul::UNGROUPED;
  int64_t groups = 0;

  // As messages name it: "M x N x K".
  std::string text() const { return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k); }
};
template <typename Place> struct MatMulOf : MatMulShape {
  Place a, b, c;
  Place bias{}, aux{}; // a row, and a matrix like C, where the epilogue has them; else empty
  Place group{};       // of each product, where they are grouped; else empty
};

// See plan.Attention. Query i sees keys i + first to i + last, of those there are. The mask's strides are in elements, and 0 along
// broadcast dimensions.
struct AttentionShape {
  int64_t batch, heads, kvHeads, qLen, kvLen, dim;
  float scale;
  int64_t first, last;
  int64_t maskStride[4];
  plan::DType dtype = plan::F32; // of all but mask and lse
  float softcap = 0;             // 0: scores are not capped
  int64_t biasParts = 0;         // 0: no bias
  bool beyond = false;           // rows that see nothing but what is hidden weigh the keys outside of first to last, too
};
template <typename Place> struct AttentionOf : AttentionShape {
  Place q, k, v, mask; // the mask: an empty place if there is none
  Place out, lse;
  Place bias{}; // likewise
};
template <typename Place> struct AttentionGradOf {
  AttentionOf<Place> forward; // out and lse are read
  Place dout, dq, dk, dv;
  Place dbias{}; // empty where there is no bias
};

template <typename Place> struct CopyOf {
  Place dst, src; // the same, or apart
  uint64_t bytes;
};
template <typename Place> struct FillOf {
  Place dst;
  uint32_t pattern;
  uint64_t bytes;
};
template <typename Place> struct AllGatherOf {
  Place src, dst;
  uint64_t bytes; // of one rank
};
template <typename Place> struct ReduceScatterOf {
  Place src, dst;
  uint64_t count; // of one rank
  Place staging;
  uint64_t slice; // elements of each rank that are exchanged and summed at a time, for which there is room in staging; 0: the
                  // order of the sum is that of the device's library, which has room of its own
  plan::DType dtype = plan::F32; // of src and staging
};
template <typename Place> struct AllReduceOf {
  Place data;
  uint64_t count;
  Place staging;
  uint64_t slice; // as there
};
// Rows of a table and a window of it; see plan.TableRows. What is done to them is a function of table_rows.h.
enum class RowsDo { Copy, Move, Put };
template <typename Place> struct RowsOf : TableRows {
  RowsDo does;
  Place indices, rows, window;
};

// Iterations [begin, begin + extent) of a kernel; its arguments are some of DeviceProgram::args. On a GPU the first ones: begin is 0.
struct LaunchOp {
  uint32_t kernel;
  uint32_t firstArg, args;
  int64_t extent, grain;
  int64_t begin = 0;
};

using Place = std::optional<Address>;
using Work = std::variant<LaunchOp, MatMulOf<Place>, AttentionOf<Place>, AttentionGradOf<Place>, CopyOf<Place>, FillOf<Place>,
                          AllGatherOf<Place>, ReduceScatterOf<Place>, AllReduceOf<Place>, RowsOf<Place>>;

struct LaneWait {
  int lane;
  uint32_t tick; // until so many steps of the lane are complete; 0 of COMPUTE: the transfers from the host
};

// A lane's operations run in their order. One begins when those before it on its lane are complete and its waits are over.
struct Operation {
  int lane;
  Work work;
  uint32_t step;                      // that it belongs to: index into plan.Program.steps
  uint32_t waitBegin, waitEnd;        // into DeviceProgram::waits
  bool signals = true;                // completing it raises its lane's tick: it is the last of its step
  const plan::Step *update = nullptr; // on the first operation of an update, of a bucket or of rows: what an UpdateHook is shown before
};

// Waits are numbered by DeviceProgram::waits.
struct WaitRange {
  uint32_t begin = 0, end = 0;
};

// How lanes run on into a program from program `after`, of whose lanes the ticks are.
struct Entry {
  struct Joins {
    uint32_t operation; // that waits besides its own waits
    LaneWait wait;
  };
  uint32_t after;
  WaitRange inputWaits;
  std::vector<Joins> waits; // in the order of operations
};

struct DeviceProgram {
  const plan::Program *source = nullptr; // for names
  std::vector<Operation> operations;     // in the plan's order
  std::vector<LaneWait> waits;
  std::vector<Address> args;
  WaitRange resultWaits; // what the transfers to the host wait for
  std::vector<Entry> entries;
};

} // namespace zero::runtime
