//===- tiers.h - what rests in another tier comes, is changed, and returns --------------------------------===//
// Private to checkTiers: one program's steps, in order, and what each tier and buffer holds by then.
#pragma once
#include "runtime/judge/program_check.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace zero::judge {

using Role = plan::StateTensor::Role;

/// A tensor that a bucket keeps.
struct Tensor {
  uint32_t bucket;
  Role role;
  auto operator<=>(const Tensor &) const = default;
};
/// Bytes of one, from `begin` on: what comes and returns at once.
struct Kept : Tensor {
  uint64_t begin;
  auto operator<=>(const Kept &) const = default;
};

class Tiers : ProgramCheck {
public:
  Tiers(const plan::Plan &plan, const plan::Program &program);
  /// Sentences, one per broken promise.
  std::vector<std::string> run();

private:
  void visit(int s, const plan::Step &step);

  // What is fetched, updated on the device and brought back (tiers.cpp).
  void fetch(int s, const plan::Step &step);
  void bringBack(int s, Kept kept, const plan::Step &step);
  /// What an update reads and writes is at home on the device, or has come.
  void update(int s, const plan::Step &step);
  /// What has come is changed in its place.
  void updateFetched(int s, Kept kept, const plan::Ref &read, const plan::Ref &written);
  /// An update does not read the compute copy, so it is made wherever there is room for it; what was there before is out of date.
  void makeCopy(int s, const plan::Ref &ref, Kept kept);
  /// Whether the bytes are beyond the end of a tensor: the rest of the disk's last block.
  bool isBehind(const plan::Ref &ref, Kept held) const;
  /// Whether the bytes at `ref` are those of the tensor that `kept` begins with.
  bool isAt(const plan::Ref &ref, Kept kept) const;
  void wrong(int s, Kept kept, uint32_t from);

  // Updates that the host makes (host_updates.cpp).
  /// A gradient that the host is to read, or that waits there for its update on the device: a buffer of its own, of the same elements.
  void bringDown(int s, const plan::Step &step);
  /// What is updated in host memory, at home or where it has come, by a gradient that has come there.
  void updateOnHost(int s, const plan::Step &step);
  /// What programs read of the bucket is to go up, to other ranks, or home.
  void makeResult(int s, const plan::Step &step);
  /// A gradient that has come to the host is added to the sum that rests there, in its place: (sum, gradient) -> sum.
  void addOnHost(int s, const plan::Step &step);
  /// A copy that takes what one rank has updated on the host, of what every rank has whole elsewhere, to the device, where the other ranks'
  /// parts join it. False if it is no such copy.
  bool joins(int s, const plan::Step &step);
  /// What programs read on the device gets what an update has made.
  void bringUp(int s, const plan::Step &step);
  bool isOnHost(const plan::Ref &ref) const;
  /// What an update on the host has made of the tensor that programs read.
  const plan::Ref &resultOf(const plan::Step &update) const;

  // Which elements lie where (tier_elements.cpp).
  /// A copy takes elements of a bucket to where those belong, on every rank.
  void sameElements(int s, const plan::Step &step, const std::string &does);
  /// The first rank and its neighbour: addresses are affine in the rank.
  std::vector<uint64_t> ranks() const;
  uint64_t placeOf(const plan::Bucket &bucket, uint64_t rank) const;
  /// The element of its bucket that lies first at `ref`, and the one that an update begins with.
  uint64_t elementAt(const plan::Ref &ref, uint64_t rank) const;
  uint64_t firstOf(const plan::Step &update, uint64_t rank) const;
  /// Whether what lies at `ref` on each rank begins with the element that the update begins with.
  bool beginsAt(const plan::Ref &ref, const plan::Step &update) const;
  /// Whether the bytes are those of the tensor that the update is for.
  bool isHomeOf(const plan::Ref &ref, const plan::StateTensor &tensor, const plan::Step &update) const;
  /// Whether the update changes one rank's part of what every rank has whole.
  bool isPartial(const plan::Bucket &bucket, const plan::StateTensor &tensor, const plan::Step &update) const;

  plan::Tier tierOf(const plan::Ref &ref) const;
  std::string tierOf(Tensor kept) const;
  std::string of(Tensor kept) const;
  std::string bucketText(int bucket) const;

  /// What an update on the host has made of parameters that rest on the device.
  struct Made {
    uint32_t bucket;
    int step;
    plan::Ref result;
  };

  plan::Contents contents;
  std::map<uint32_t, Tensor> homes;    // by persistent buffer
  std::map<uint32_t, uint32_t> copies; // buckets whose compute copies rest on the device, by persistent buffer
  std::vector<Made> made;              // and not yet brought to the device
  std::map<Kept, int> unpublished;     // changed at home on the host, for other ranks to have
  std::map<uint32_t, int> down;        // buffers on the host to which a gradient came, by which step
  std::map<uint32_t, int> wentDown;    // buffers that it came from
  std::map<uint32_t, Kept> holds;      // what came to a transient buffer
  std::map<Kept, int> changed;         // by which step, and not yet brought back
  std::set<uint32_t> published;        // buckets
  std::set<Tensor> returned;
};

/// The roles of what an update changes in place: the master, then the optimizer's moments. It reads the gradient second.
std::vector<Role> updatedRoles(const plan::Plan &plan);
/// The first byte of a tensor that an update changes.
uint64_t beginOf(const plan::Step &update, const plan::StateTensor &tensor);

} // namespace zero::judge
