//===- tiers.cpp - what rests in another tier comes, is changed, and returns -------------------------===//
#include "runtime/judge/judge.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <map>
#include <set>

namespace zero::judge {
namespace {

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

class Tiers {
public:
  Tiers(const plan::Plan &plan, const plan::Program &program) : plan(plan), program(program), contents(plan) {
    std::set<uint32_t> onHost; // buckets that the host updates
    for (const plan::Step &step : program.steps())
      if (step.has_update() && step.lane() == plan::UPDATE_HOST) onHost.insert(step.update().bucket());
    for (int b = 0; b < plan.buckets_size(); ++b)
      for (const plan::StateTensor &tensor : plan.buckets(b).tensors())
        if (plan::Tier tier = tierOf(tensor.ref());
            tier != plan::DEVICE || (tensor.role() == plan::StateTensor::MASTER && onHost.contains(uint32_t(b))))
          homes[tensor.ref().buffer()] = {uint32_t(b), tensor.role()};
        else if (tensor.role() == plan::StateTensor::COMPUTE)
          copies[tensor.ref().buffer()] = uint32_t(b);
  }

  std::vector<std::string> run() {
    if (homes.empty()) return {};
    for (int s = 0; s < program.steps_size(); ++s) visit(s, program.steps(s));
    for (auto [kept, step] : unpublished) report("what " + name(step) + " changes of the " + of(kept) + " never reaches the other ranks");
    for (const Made &each : made)
      report("what " + name(each.step) + " changes of the " + of({each.bucket, plan::StateTensor::COMPUTE}) + " never reaches the device");
    for (auto [kept, step] : changed) report("what " + name(step) + " changes of the " + of(kept) + " never returns to " + tierOf(kept));
    if (program.role() == plan::Program::FIRST || program.role() == plan::Program::MIDDLE)
      for (auto [buffer, tensor] : homes)
        if (tensor.role == plan::StateTensor::GRADIENT && !returned.contains(tensor))
          report("the " + of(tensor) + " is not brought up to date in " + tierOf(tensor));
    return std::move(found);
  }

private:
  void visit(int s, const plan::Step &step) {
    for (const plan::Ref &ref : step.writes())
      if (auto gone = wentDown.find(ref.buffer()); gone != wentDown.end())
        report(name(s) + " changes the gradient of bucket '" + plan.buckets(int(plan.buffers(int(ref.buffer())).bucket())).name() +
               "' after " + name(gone->second) + ", which took it to the host");
    if (step.has_update()) return step.lane() == plan::UPDATE_HOST ? updateOnHost(s, step) : update(s, step);
    if (step.has_launch() && step.lane() == plan::UPDATE_HOST) return addOnHost(s, step);
    if (step.has_copy() && isOnHost(step.writes(0)) && contents.of(step.writes(0)).part) return bringDown(s, step);
    if (step.has_copy() && copies.contains(step.writes(0).buffer())) return bringUp(s, step);
    uint32_t from = step.reads_size() ? step.reads(0).buffer() : 0, to = step.writes_size() ? step.writes(0).buffer() : 0;
    if (step.has_copy() && joins(s, step)) return;
    if (step.has_copy() && homes.contains(from) && tierOf(step.reads(0)) != tierOf(step.writes(0))) return fetch(s, step);
    if (step.has_copy() && homes.contains(to)) return bringBack(s, {homes.at(to), step.writes(0).offset()}, step);
    if (step.has_collective() && from == to && holds.contains(to)) { // the other ranks' shards join this one's
      published.insert(holds.at(to).bucket);
      return;
    }
    for (const plan::Ref &ref : step.writes())
      if (auto held = holds.find(ref.buffer());
          held != holds.end() && held->second.role != plan::StateTensor::GRADIENT && !(step.has_fill() && isBehind(ref, held->second)))
        report(name(s) + " changes the " + of(held->second) + ", which is for its update to do");
  }

  /// Whether the bytes are beyond the end of a tensor: the rest of the disk's last block.
  bool isBehind(const plan::Ref &ref, Kept held) const {
    const plan::Bucket &bucket = plan.buckets(int(held.bucket));
    const plan::StateTensor &tensor = *plan::tensorOf(bucket, held.role);
    return held.begin + ref.offset() >= plan::elementsOf(bucket, tensor.part()) * plan::bytesOf(tensor.dtype());
  }

  void fetch(int s, const plan::Step &step) {
    Kept kept{homes.at(step.reads(0).buffer()), step.reads(0).offset()};
    for (const auto *changes : {&changed, &unpublished})
      if (auto change = changes->find(kept); change != changes->end())
        report(name(s) + " fetches the " + of(kept) + " before what " + name(change->second) + " changed of it has returned");
    const plan::Buffer &buffer = plan.buffers(int(step.writes(0).buffer()));
    if (!buffer.has_bucket() || buffer.bucket() != kept.bucket || buffer.begin_elements() * plan::bytesOf(buffer.dtype()) != kept.begin)
      report(name(s) + " fetches the " + of(kept) + " from byte " + std::to_string(kept.begin) + " on to buffer '" + buffer.name() +
             "', where something else belongs");
    else if (tierOf(step.reads(0)) == plan::DEVICE)
      sameElements(s, step, "brings the " + of(kept));
    holds.insert_or_assign(step.writes(0).buffer(), kept);
  }

  /// A copy takes elements of a bucket to where those belong, on every rank.
  void sameElements(int s, const plan::Step &step, const std::string &does) {
    for (uint64_t rank : ranks())
      if (uint64_t first = elementAt(step.reads(0), rank), other = elementAt(step.writes(0), rank); first != other)
        return report(name(s) + " " + does + " from element " + std::to_string(first) + " on where that from " + std::to_string(other) +
                      " on belongs");
  }

  /// Whether the bytes at `ref` are those of the tensor that `kept` begins with.
  bool isAt(const plan::Ref &ref, Kept kept) const {
    auto held = holds.find(ref.buffer());
    return held != holds.end() && Tensor(held->second) == Tensor(kept) && held->second.begin + ref.offset() == kept.begin;
  }

  void bringBack(int s, Kept kept, const plan::Step &step) {
    const plan::Ref &ref = step.reads(0);
    uint32_t from = ref.buffer();
    if (kept.role == plan::StateTensor::GRADIENT) {
      if (plan.buffers(int(from)).bucket() != kept.bucket || !plan.buffers(int(from)).has_bucket()) wrong(s, kept, from);
      returned.insert(kept);
      return;
    }
    if (!isAt(ref, kept)) return wrong(s, kept, from);
    auto change = changed.find(kept);
    if (change == changed.end()) return report(name(s) + " brings back the " + of(kept) + ", which nothing has changed");
    const plan::Bucket &bucket = plan.buckets(int(kept.bucket));
    if (tierOf(step.writes(0)) == plan::DEVICE) // where the other ranks' parts join it, which is for checkUpdates to see
      sameElements(s, step, "brings back the " + of(kept));
    else if (isPartial(bucket, *plan::tensorOf(bucket, kept.role), program.steps(change->second)) && !published.contains(kept.bucket))
      report(name(s) + " brings back the " + of(kept) + " without what the other ranks have changed of it");
    changed.erase(change);
  }

  /// What an update reads and writes is at home on the device, or has come.
  void update(int s, const plan::Step &step) {
    uint32_t bucket = step.update().bucket();
    std::vector<Role> roles{plan::StateTensor::MASTER};
    for (Role role : plan::momentsOf(plan.optimizer().kind())) roles.push_back(role);
    for (size_t i = 0; i < roles.size(); ++i) {
      const plan::StateTensor *tensor = plan::tensorOf(plan.buckets(int(bucket)), roles[i]);
      int read = int(i ? i + 1 : 0); // the gradient is second
      if (!tensor || !homes.contains(tensor->ref().buffer()) || read >= step.reads_size() || int(i) >= step.writes_size()) continue;
      updateFetched(s, {{bucket, roles[i]}, beginOf(step, *tensor)}, step.reads(read), step.writes(int(i)));
    }
    if (const plan::StateTensor *copy = plan::tensorOf(plan.buckets(int(bucket)), plan::StateTensor::COMPUTE);
        copy && homes.contains(copy->ref().buffer()) && int(roles.size()) < step.writes_size())
      makeCopy(s, step.writes(int(roles.size())), {{bucket, plan::StateTensor::COMPUTE}, beginOf(step, *copy)});
  }

  /// The first byte of a tensor that an update changes.
  static uint64_t beginOf(const plan::Step &update, const plan::StateTensor &tensor) {
    return update.update().begin_elements() * plan::bytesOf(tensor.dtype());
  }

  /// What has come is changed in its place.
  void updateFetched(int s, Kept kept, const plan::Ref &read, const plan::Ref &written) {
    bool inPlace = written.buffer() == read.buffer() && written.offset() == read.offset();
    if (!isAt(read, kept) || !inPlace)
      report(name(s) + " updates the " + of(kept) + " in buffer '" + plan.buffers(int(read.buffer())).name() +
             "', to which it was not fetched");
    changed[kept] = s;
  }

  // ------------------------------------------------------------------------------------ updates that the host makes

  bool isOnHost(const plan::Ref &ref) const {
    const plan::Buffer &buffer = plan.buffers(int(ref.buffer()));
    return buffer.program() >= 0 && buffer.kind() == plan::GRADIENT && tierOf(ref) == plan::HOST;
  }

  /// A gradient that the host is to read, or that waits there for its update on the device: a buffer of its own, of the same elements.
  void bringDown(int s, const plan::Step &step) {
    int from = contents.of(step.reads(0)).bucket, to = contents.of(step.writes(0)).bucket;
    if (from != to)
      return report(name(s) + " takes to the host the gradient of " + bucketText(from) + " where that of " + bucketText(to) + " belongs");
    sameElements(s, step, "takes to the host the gradient of " + bucketText(to));
    down[step.writes(0).buffer()] = s;
    if (plan.buffers(int(step.reads(0).buffer())).kind() == plan::GRADIENT) wentDown[step.reads(0).buffer()] = s;
  }

  /// What is updated in host memory, at home or where it has come, by a gradient that has come there; what programs read is to go up.
  void updateOnHost(int s, const plan::Step &step) {
    uint32_t b = step.update().bucket();
    const plan::Bucket &bucket = plan.buckets(int(b));
    if (const plan::Ref &gradient = plan::gradientOf(step); !down.contains(gradient.buffer()) || contents.of(gradient).bucket != int(b))
      report(name(s) + " updates bucket '" + bucket.name() + "' with a gradient that has not come to the host");
    else if (!beginsAt(gradient, step))
      report(name(s) + " updates bucket '" + bucket.name() + "' with the gradient of other elements");
    std::vector<Role> roles{plan::StateTensor::MASTER};
    for (Role role : plan::momentsOf(plan.optimizer().kind())) roles.push_back(role);
    for (size_t i = 0; i < roles.size(); ++i) {
      const plan::StateTensor *tensor = plan::tensorOf(bucket, roles[i]);
      int read = int(i ? i + 1 : 0); // the gradient is second
      if (!tensor || read >= step.reads_size() || int(i) >= step.writes_size()) continue;
      const plan::Ref &from = step.reads(read), &to = step.writes(int(i));
      if (tierOf(tensor->ref()) != plan::HOST) {
        updateFetched(s, {{b, roles[i]}, beginOf(step, *tensor)}, from, to);
        if (contents.of(from).bucket != int(b) || !beginsAt(from, step) || !beginsAt(to, step))
          report(name(s) + " updates other elements of the " + of({b, roles[i]}) + " than its gradient has");
      } else if (!isHomeOf(from, *tensor, step) || !isHomeOf(to, *tensor, step)) {
        report(name(s) + " updates the " + of({b, roles[i]}) + " in buffer '" + plan.buffers(int(from.buffer())).name() +
               "', where it does not rest");
      }
    }
    const plan::StateTensor &isRead = readOf(bucket);
    const plan::Ref &result = resultOf(step);
    bool copied = isRead.role() == plan::StateTensor::COMPUTE, atHome = tierOf(isRead.ref()) == plan::HOST;
    Kept kept{{b, isRead.role()}, beginOf(step, isRead)};
    if (!homes.contains(isRead.ref().buffer())) // rests on the device
      made.push_back({b, s, result});
    else if (copied && atHome && !isHomeOf(result, isRead, step))
      report(name(s) + " makes the " + of(kept) + " in buffer '" + plan.buffers(int(result.buffer())).name() + "', where it does not rest");
    else if (isPartial(bucket, isRead, step) && tierOf(isRead.ref()) != plan::DEVICE)
      changed.erase(kept), unpublished[kept] = s;
    else if (copied && !atHome)
      makeCopy(s, result, kept);
  }

  /// A gradient that has come to the host is added to the sum that rests there, in its place: (sum, gradient) -> sum.
  void addOnHost(int s, const plan::Step &step) {
    auto home = step.writes_size() == 1 ? homes.find(step.writes(0).buffer()) : homes.end();
    if (step.reads_size() != 2 || home == homes.end() || home->second.role != plan::StateTensor::GRADIENT)
      return report(name(s) + " runs on the host, but neither updates nor adds to a sum of gradients that rests there");
    Tensor sum = home->second;
    if (step.reads(0).SerializeAsString() != step.writes(0).SerializeAsString())
      report(name(s) + " adds to the " + of(sum) + " in another place than it reads");
    const plan::Ref &gradient = step.reads(1);
    if (!down.contains(gradient.buffer()) || contents.of(gradient).bucket != int(sum.bucket))
      report(name(s) + " adds to the " + of(sum) + " what is no gradient of it that has come to the host");
    else if (std::ranges::any_of(ranks(), [&](uint64_t rank) { return elementAt(gradient, rank) != elementAt(step.writes(0), rank); }))
      report(name(s) + " adds to the " + of(sum) + " the gradient of other elements");
    returned.insert(sum);
  }

  /// The tensor that programs read, and what an update on the host has made of it.
  static const plan::StateTensor &readOf(const plan::Bucket &bucket) {
    const plan::StateTensor *copy = plan::tensorOf(bucket, plan::StateTensor::COMPUTE);
    return copy ? *copy : plan::masterOf(bucket);
  }
  const plan::Ref &resultOf(const plan::Step &update) const {
    const plan::Bucket &bucket = plan.buckets(int(update.update().bucket()));
    auto after = int(1 + plan::momentsOf(plan.optimizer().kind()).size());
    bool rounded = readOf(bucket).dtype() != plan::masterOf(bucket).dtype() && after < update.writes_size();
    return update.writes(rounded ? after : 0);
  }

  /// Whether what lies at `ref` on each rank begins with the element that the update begins with.
  bool beginsAt(const plan::Ref &ref, const plan::Step &update) const {
    return std::ranges::all_of(ranks(), [&](uint64_t rank) { return elementAt(ref, rank) == firstOf(update, rank); });
  }

  /// A copy that takes what one rank has updated on the host, of what every rank has whole elsewhere, to the device, where the other ranks'
  /// parts join it. False if it is no such copy.
  bool joins(int s, const plan::Step &step) {
    if (tierOf(step.reads(0)) != plan::HOST || tierOf(step.writes(0)) != plan::DEVICE) return false;
    auto found = std::ranges::find_if(unpublished, [&](const auto &change) {
      return resultOf(program.steps(change.second)).SerializeAsString() == step.reads(0).SerializeAsString();
    });
    if (found == unpublished.end()) return false;
    const auto &[kept, update] = *found;
    if (contents.of(step.writes(0)).bucket != int(kept.bucket) || !beginsAt(step.writes(0), program.steps(update)))
      report(name(s) + " brings what " + name(update) + " made of the " + of(kept) + " to buffer '" +
             plan.buffers(int(step.writes(0).buffer())).name() + "', where something else belongs");
    holds.erase(step.reads(0).buffer()); // the other ranks' parts are old there
    holds.insert_or_assign(step.writes(0).buffer(), kept);
    changed.insert(*found);
    unpublished.erase(found);
    return true;
  }

  /// Whether the update changes one rank's part of what every rank has whole.
  bool isPartial(const plan::Bucket &bucket, const plan::StateTensor &tensor, const plan::Step &update) const {
    return tensor.part() == plan::WHOLE && plan::groupSize(plan, bucket.axes()) > 1 && update.update().part() == plan::SHARD;
  }

  /// The first rank and its neighbour: addresses are affine in the rank.
  std::vector<uint64_t> ranks() const { return plan.world() > 1 ? std::vector<uint64_t>{0, 1} : std::vector<uint64_t>{0}; }
  uint64_t placeOf(const plan::Bucket &bucket, uint64_t rank) const { return plan::placeOf(plan, bucket.axes(), rank); }
  /// The element of its bucket that lies first at `ref`, and the one that an update begins with.
  uint64_t elementAt(const plan::Ref &ref, uint64_t rank) const {
    plan::Content content = contents.of(ref);
    const plan::Bucket &bucket = plan.buckets(content.bucket);
    uint64_t before = (plan::offsetOf(plan, ref, rank) - content.offset) / std::max<uint64_t>(plan::bytesOf(content.dtype), 1);
    return plan::rangeOf(bucket, content.part, placeOf(bucket, rank)).begin + content.begin + before;
  }
  uint64_t firstOf(const plan::Step &update, uint64_t rank) const {
    const plan::Bucket &bucket = plan.buckets(int(update.update().bucket()));
    return plan::rangeOf(bucket, update.update().part(), placeOf(bucket, rank)).begin + update.update().begin_elements();
  }

  /// Whether the bytes are those of the tensor that the update is for.
  bool isHomeOf(const plan::Ref &ref, const plan::StateTensor &tensor, const plan::Step &update) const {
    const plan::Bucket &bucket = plan.buckets(int(update.update().bucket()));
    uint64_t size = plan::bytesOf(tensor.dtype()), begin = tensor.ref().offset() + update.update().begin_elements() * size;
    uint64_t stride = isPartial(bucket, tensor, update) ? bucket.shard_elements() * size : 0;
    return ref.buffer() == tensor.ref().buffer() &&
           std::ranges::all_of(ranks(), [&](uint64_t rank) { return plan::offsetOf(plan, ref, rank) == begin + rank * stride; });
  }

  /// What programs read on the device gets what an update has made.
  void bringUp(int s, const plan::Step &step) {
    uint32_t bucket = copies.at(step.writes(0).buffer());
    const plan::StateTensor &copy = *plan::tensorOf(plan.buckets(int(bucket)), plan::StateTensor::COMPUTE);
    auto found = std::ranges::find_if(made, [&](const Made &each) {
      return each.bucket == bucket && each.result.SerializeAsString() == step.reads(0).SerializeAsString() &&
             isHomeOf(step.writes(0), copy, program.steps(each.step));
    });
    if (found == made.end())
      return report(name(s) + " writes the " + of({bucket, plan::StateTensor::COMPUTE}) + ", but not what an update on the host has made");
    made.erase(found);
  }

  std::string bucketText(int bucket) const { return bucket < 0 ? "no bucket" : "bucket '" + plan.buckets(bucket).name() + "'"; }

  // ---------------------------------------------------------------------------------- updates of what has been fetched

  /// An update does not read the compute copy, so it is made wherever there is room for it; what was there before is out of date.
  void makeCopy(int s, const plan::Ref &ref, Kept kept) {
    const plan::Buffer &buffer = plan.buffers(int(ref.buffer()));
    if (!isAt(ref, kept) && (!buffer.has_bucket() || buffer.bucket() != kept.bucket || ref.offset() > kept.begin))
      report(name(s) + " makes the " + of(kept) + " in buffer '" + buffer.name() + "', where something else belongs");
    else if (!isAt(ref, kept))
      holds.insert_or_assign(ref.buffer(), Kept{kept, kept.begin - ref.offset()});
    changed[kept] = s;
  }

  void wrong(int s, Kept kept, uint32_t from) {
    report(name(s) + " brings back the " + of(kept) + " from buffer '" + plan.buffers(int(from)).name() + "', which does not hold it");
  }

  std::string of(Tensor kept) const {
    return std::string(plan::roleName(kept.role)) + " of bucket '" + plan.buckets(int(kept.bucket)).name() + "'";
  }
  std::string tierOf(Tensor kept) const {
    static constexpr const char *names[] = {"the device", "host", "disk"};
    return names[tierOf(plan::tensorOf(plan.buckets(int(kept.bucket)), kept.role)->ref())];
  }
  plan::Tier tierOf(const plan::Ref &ref) const { return plan.arenas(int(plan.buffers(int(ref.buffer())).arena())).tier(); }
  std::string name(int step) const { return "step " + std::to_string(step) + " '" + program.steps(step).name() + "'"; }
  void report(const std::string &sentence) { found.push_back("@" + program.name() + ": " + sentence); }

  const plan::Plan &plan;
  const plan::Program &program;
  plan::Contents contents;
  /// What an update on the host has made of parameters that rest on the device.
  struct Made {
    uint32_t bucket;
    int step;
    plan::Ref result;
  };

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
  std::vector<std::string> found;
};

} // namespace

std::vector<std::string> checkTiers(const plan::Plan &plan, int program) { return Tiers(plan, plan.programs(program)).run(); }

} // namespace zero::judge
