// Pieces of validate.h shared between its files: overflow-checked arithmetic and the checks of each part of a plan.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <string>

namespace zero::plan {

inline constexpr uint64_t kMaxBytes = uint64_t(1) << 47; // user address space of x86-64
inline constexpr uint64_t kMaxArgs = 256;
inline constexpr uint64_t kDiskBlock = 4096; // what a disk reads and writes directly
inline constexpr int kPersistent = -1;

// a * b and a + b, throwing Error with `what` where the result exceeds kMaxBytes.
uint64_t multiply(uint64_t a, uint64_t b, const std::string &what);
uint64_t add(uint64_t a, uint64_t b, const std::string &what);

// A text of the plan's has a sane length and no control characters; a name is one that is there.
void requireText(const std::string &what, const std::string &text, size_t limit = 4096);
void requireName(const std::string &what, const std::string &text);

// Product of the dimensions times elementBytes.
uint64_t bytesOfShape(const google::protobuf::RepeatedField<int64_t> &shape, uint64_t elementBytes, const std::string &what);

void requireBytes(uint64_t found, uint64_t expected, const std::string &what);
// The step touches all of what it is given: what it said of its bytes is what the judge believes.
void requireReach(uint64_t found, uint64_t needed, const std::string &what);

// Ascending indices of the plan's axes.
void checkAxes(const Plan &plan, const google::protobuf::RepeatedField<uint32_t> &axes, const std::string &what);

// The Ref lies inside its buffer on every rank, is 2-byte aligned, and the buffer is persistent or belongs to `program`
// (kPersistent: must be persistent).
void checkRef(const Plan &plan, const Ref &ref, const std::string &what, int program);

Tier tierOf(const Plan &plan, const Ref &ref); // of a Ref that was checked
// As sentences call it: "disk", "on disk".
const char *tierText(Tier tier);
std::string placeText(Tier tier);
// It lies in the device's memory.
void requireDevice(const Plan &plan, const Ref &ref, const std::string &what);

void checkArenas(const Plan &plan);
// Buffers, and what programs are given in them: inputs of every micro-step, losses, constants. After arenas and the headers of programs.
void checkMemory(const Plan &plan, uint64_t constantBytes);
// Buckets and their tensors, parameters and their pieces. After memory.
void checkState(const Plan &plan);
void checkNumbers(const Plan &plan, const Ref &ref, int count, const std::string &what, int program); // an f32[count]
void checkStep(const Plan &plan, int program, int step);
void checkCollective(const Plan &plan, const Step &step, int program, const std::string &what);
// Steps about rows of a table: an update that sets some apart, the update of these, and what writes them to their places. Of the first two
// the launch was checked.
void checkApart(const Plan &plan, const Step &step, int program, const std::string &what);
void checkUpdateRows(const Plan &plan, const Step &step, int program, const std::string &what);
void checkWriteRows(const Plan &plan, const Step &step, int program, const std::string &what);
// Only copies and rows of tables reach host memory and disk, on the lane of the link they go over, which does nothing else; and the host's
// own updates reach its memory alone. Of a step that has passed all else.
void checkTiers(const Plan &plan, const Step &step, const std::string &what);

// Every wait names ticks its lane reaches, and the program ends: no cycle of waits.
void checkWaits(const Program &program);
// Those of its entries and of its results too; after all programs' steps.
void checkEntries(const Plan &plan, const Program &program);

} // namespace zero::plan
