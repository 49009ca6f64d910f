// The plan file: a header, a table of segments, and the segments, each on pages of its own. All numbers are little-endian.
//
//   bytes 0..7    "ZEROPLAN"
//   bytes 8..11   format version (kFormat)
//   bytes 12..15  number of segments, n
//   then per segment 32 bytes: kind u32, crc32 u32 (zlib, of the segment's bytes), offset u64, size u64, reserved u64 (0)
//   then 4 bytes  crc32 of all bytes before: of the header and the table
//   then the segments in the table's order; each starts on the next page boundary, the first at byte 4096
//   then zeros to the end of the page, and nothing else but for a signature (signature.h), which covers every byte before it
//
// Every byte of a file has its place: it belongs to a segment, is under a checksum, or is zero. So the same plan has one form,
// segments cannot overlap, and nothing travels along unseen. Kinds unknown to a reader are checked and left alone, so that a segment
// can be added without a new format. Checksums find damage; only a signature finds intent.
//
// A file is written as PATH.partial and renamed into place when it is on disk, so a reader never sees half of one. It is read into
// memory once, and what was checked there is what is used: nobody who writes to the file afterwards changes a run.
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/signature.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace zero::plan {

inline constexpr char kMagic[9] = "ZEROPLAN";
inline constexpr uint32_t kFormat = 13;

enum class SegmentKind : uint32_t { Plan = 1, Kernels = 2, Constants = 3, HostKernels = 4 };

// A loaded plan. The spans point into the file's bytes and live as long as any copy of this object.
struct PlanFile {
  Plan plan;
  std::span<const std::byte> kernels;   // shared object, PTX text where the target is CUDA; empty if the plan launches none or runs on no
                                        // machine (zeroc --target sim)
  std::span<const std::byte> constants; // what Constant.segment_offset points into
  std::string path;                     // for messages; empty for a plan that was never a file
  std::shared_ptr<const void> bytes;    // keeps the file's bytes
  std::optional<PublicKey> signer = {}; // whose signature is in the file, and holds
  std::span<const std::byte> hostKernels = {}; // shared object of kernels for the host, where others are for a GPU; empty if there are none
};

// Reads, checks layout, checksums and the signature if there is one, and validates (validate.h), in this order. Throws zero::Error
// with a sentence that names the file; with `required` also for a file that this key has not signed, before the message is parsed.
// Names of the model and of weights can be opened as they stand afterwards (paths.h); parse() leaves them as they are stored.
PlanFile load(const std::string &path, const PublicKey *required = nullptr);

// The same for bytes already in memory (what the fuzzer calls); `name` stands for the path in messages. The bytes must
// outlive the result.
PlanFile parse(std::span<const std::byte> file, const std::string &name, const PublicKey *required = nullptr);

// Writes the plan to `path` through `path`.partial, signed if there is a key. plan.format is set to kFormat, names of files are
// stored as paths.h says.
void save(const std::string &path, Plan plan, std::span<const std::byte> kernels, std::span<const std::byte> constants,
          const SigningKey *key = nullptr, std::span<const std::byte> hostKernels = {});

// Whether a file begins as plans do.
bool isPlan(const std::string &path);

// Writes the plan file `from` as it is to `to` (which may be the same), signed, in place of the signature it may have had.
void sign(const std::string &from, const std::string &to, const SigningKey &key);

} // namespace zero::plan
