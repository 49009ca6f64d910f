// What a plan says of model state, asked in one place: which tensors a bucket keeps, as what type, and how much of the bucket each buffer
// holds. Nothing is concluded from sizes or names.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace zero::plan {

// A half-open range of a bucket's elements.
struct Range {
  uint64_t begin, end;
};

// The bucket's tensor of this role; null if it keeps none.
const StateTensor *tensorOf(const Bucket &bucket, StateTensor::Role role);
// What steps other than updates read of its parameters: the compute copy if it keeps one, else the master.
const StateTensor &readOf(const Bucket &bucket);
// What its parameters are to the optimizer: the master, or of what is frozen the one copy there is.
const StateTensor &masterOf(const Bucket &bucket);

// Elements of `part` of the bucket, and those that this is on the rank at `place` along the bucket's axes (mesh.h; where there is one axis,
// that is the rank).
uint64_t elementsOf(const Bucket &bucket, Part part);
Range rangeOf(const Bucket &bucket, Part part, uint64_t place);

// Roles that the optimizer keeps beside the parameters, in the order of its kernels.
std::vector<StateTensor::Role> momentsOf(OptimizerKind optimizer);

// How sentences call a role: "master copy", "first moment".
const char *roleName(StateTensor::Role role);

// What an update consumes: of a bucket, or of rows.
inline const Ref &gradientOf(const Step &update) { return update.reads(1); }

// What a step launches, whatever else it means; null if it launches no kernel. Its first reads and writes are the kernel's arguments, those
// after them say which rows an update is about.
const Launch *launchOf(const Step &step);
int kernelReads(const Step &step);
int kernelWrites(const Step &step);

// How many rows of a table a step is about, by their indices; 0: none.
uint64_t rowsOf(const Step &step);
// How many of them may be expected in the window that a write_rows is about, the more the larger it is.
uint64_t expectedRows(const Step &step);

// What lies in some bytes of a plan's buffers.
struct Content {
  int bucket = -1;              // whose elements they are, or that the buffer works for; -1: none
  Part part = PART_UNSPECIFIED; // of the bucket, from byte `offset` of the buffer on; PART_UNSPECIFIED: no elements of it
  DType dtype = DTYPE_UNSPECIFIED;
  uint64_t offset = 0;
  uint64_t begin = 0; // element of the part that lies there
};

// Of persistent buffers the buckets say it, of transient ones the buffers.
class Contents {
public:
  explicit Contents(const Plan &plan);
  // The bytes must belong to one tensor.
  Content of(const Ref &ref) const;

private:
  const Plan &plan;
  std::map<std::pair<uint32_t, uint64_t>, std::pair<uint64_t, Content>> kept; // by buffer and first byte: the last byte + 1
};

} // namespace zero::plan
