// The plan file: a header, a segment table, and three segments that start on page boundaries.
//
//   bytes 0..7    "ZEROPLAN"
//   bytes 8..11   format version (kFormat)
//   bytes 12..15  number of segments
//   then per segment 32 bytes: kind u32, crc32 u32 (zlib, of the segment's bytes), offset u64, size u64, reserved u64 (0)
//
// All numbers are little-endian. Kinds unknown to a reader are skipped, so that a segment can be added without a new
// format. A file is written as PATH.partial and renamed into place when it is on disk, so a reader never sees half of one.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace zero::plan {

inline constexpr char kMagic[9] = "ZEROPLAN";
inline constexpr uint32_t kFormat = 1;

enum class SegmentKind : uint32_t { Plan = 1, Kernels = 2, Constants = 3 };

// A loaded plan. The two spans point into the mapped file and live as long as any copy of this object.
struct PlanFile {
  Plan plan;
  std::span<const std::byte> kernels;   // shared object, empty if the plan launches none
  std::span<const std::byte> constants; // what Constant.segment_offset points into
  std::string path;                     // for messages; empty for a plan that was never a file
  std::shared_ptr<const void> mapping;  // keeps the file mapped
};

// Reads, checks the checksums and validates (validate.h). Throws zero::Error with a sentence that names the file. Names of
// the model and of weights can be opened as they stand afterwards (paths.h); parse() leaves them as they are stored.
PlanFile load(const std::string &path);

// The same for bytes already in memory (what the fuzzer calls); `name` stands for the path in messages. The bytes must
// outlive the result.
PlanFile parse(std::span<const std::byte> file, const std::string &name);

// Writes the plan to `path` through `path`.partial. plan.format is set to kFormat, names of files are stored as paths.h says.
void save(const std::string &path, Plan plan, std::span<const std::byte> kernels, std::span<const std::byte> constants);

} // namespace zero::plan
