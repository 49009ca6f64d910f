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
    for (int b = 0; b < plan.buckets_size(); ++b)
      for (const plan::StateTensor &tensor : plan.buckets(b).tensors())
        if (plan.arenas(int(plan.buffers(int(tensor.ref().buffer())).arena())).tier() != plan::DEVICE)
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
               "' behind " + name(gone->second) + ", which took it to the host");
    if (step.lane() == plan::UPDATE_HOST) return updateOnHost(s, step);
    if (step.has_update()) return update(s, step);
    if (step.has_copy() && isOnHost(step.writes(0)) && contents.of(step.writes(0)).part) return bringDown(s, step);
    if (step.has_copy() && copies.contains(step.writes(0).buffer())) return bringUp(s, step);
    uint32_t from = step.reads_size() ? step.reads(0).buffer() : 0, to = step.writes_size() ? step.writes(0).buffer() : 0;
    if (step.has_copy() && homes.contains(from)) return fetch(s, {homes.at(from), step.reads(0).offset()}, to);
    if (step.has_copy() && homes.contains(to)) return bringBack(s, {homes.at(to), step.writes(0).offset()}, step.reads(0));
    if (step.has_collective() && from == to && holds.contains(to)) { // the other ranks' shards join this one's
      published.insert(holds.at(to).bucket);
      return;
    }
    for (const plan::Ref &ref : step.writes())
      if (auto held = holds.find(ref.buffer()); held != holds.end() && held->second.role != plan::StateTensor::GRADIENT)
        report(name(s) + " changes the " + of(held->second) + ", which is for its update to do");
  }

  void fetch(int s, Kept kept, uint32_t to) {
    if (auto change = unpublished.find(kept); change != unpublished.end()) { // what the host has changed, for the other ranks
      changed.insert(*change);
      unpublished.erase(change);
    } else if (auto change = changed.find(kept); change != changed.end())
      report(name(s) + " fetches the " + of(kept) + " before what " + name(change->second) + " changed of it has returned");
    const plan::Buffer &buffer = plan.buffers(int(to));
    if (!buffer.has_bucket() || buffer.bucket() != kept.bucket || buffer.begin_elements() * plan::bytesOf(buffer.dtype()) != kept.begin)
      report(name(s) + " fetches the " + of(kept) + " from byte " + std::to_string(kept.begin) + " on to buffer '" + buffer.name() +
             "', where something else belongs");
    holds.insert_or_assign(to, kept);
  }

  /// Whether the bytes at `ref` are those of the tensor that `kept` begins with.
  bool isAt(const plan::Ref &ref, Kept kept) const {
    auto held = holds.find(ref.buffer());
    return held != holds.end() && Tensor(held->second) == Tensor(kept) && held->second.begin + ref.offset() == kept.begin;
  }

  void bringBack(int s, Kept kept, const plan::Ref &ref) {
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
    if (isPartial(bucket, *plan::tensorOf(bucket, kept.role), program.steps(change->second)) && !published.contains(kept.bucket))
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
      uint32_t buffer = step.reads(read).buffer();
      Kept kept{{bucket, roles[i]}, step.update().begin_elements() * plan::bytesOf(tensor->dtype())};
      bool inPlace = step.writes(int(i)).buffer() == buffer && step.writes(int(i)).offset() == step.reads(read).offset();
      if (!isAt(step.reads(read), kept) || !inPlace)
        report(name(s) + " updates the " + of(kept) + " in buffer '" + plan.buffers(int(buffer)).name() + "', to which it was not fetched");
      changed[kept] = s;
    }
    if (const plan::StateTensor *copy = plan::tensorOf(plan.buckets(int(bucket)), plan::StateTensor::COMPUTE);
        copy && homes.contains(copy->ref().buffer()) && int(roles.size()) < step.writes_size())
      makeCopy(s, step.writes(int(roles.size())),
               {{bucket, plan::StateTensor::COMPUTE}, step.update().begin_elements() * plan::bytesOf(copy->dtype())});
  }

  // ------------------------------------------------------------------------------------ updates that the host makes

  bool isOnHost(const plan::Ref &ref) const {
    const plan::Buffer &buffer = plan.buffers(int(ref.buffer()));
    return buffer.program() >= 0 && buffer.kind() == plan::GRADIENT && plan.arenas(int(buffer.arena())).tier() == plan::HOST;
  }

  /// A gradient that the host is to read, or that waits there for its update on the device: a buffer of its own, of the same elements.
  void bringDown(int s, const plan::Step &step) {
    int from = contents.of(step.reads(0)).bucket, to = contents.of(step.writes(0)).bucket;
    if (from != to)
      return report(name(s) + " takes to the host the gradient of " + bucketText(from) + " where that of " + bucketText(to) + " belongs");
    for (uint64_t rank : ranks())
      if (uint64_t first = elementAt(step.reads(0), rank), other = elementAt(step.writes(0), rank); first != other)
        return report(name(s) + " takes to the host the gradient of " + bucketText(to) + " from element " + std::to_string(first) +
                      " on where that from " + std::to_string(other) + " on belongs");
    down[step.writes(0).buffer()] = s;
    if (plan.buffers(int(step.reads(0).buffer())).kind() == plan::GRADIENT) wentDown[step.reads(0).buffer()] = s;
  }

  /// What is updated at home, in host memory, by a gradient that has come there; what programs read is to go up.
  void updateOnHost(int s, const plan::Step &step) {
    uint32_t b = step.update().bucket();
    const plan::Bucket &bucket = plan.buckets(int(b));
    if (const plan::Ref &gradient = plan::gradientOf(step); !down.contains(gradient.buffer()) || contents.of(gradient).bucket != int(b))
      report(name(s) + " updates bucket '" + bucket.name() + "' with a gradient that has not come to the host");
    else if (!std::ranges::all_of(ranks(), [&](uint64_t rank) { return elementAt(gradient, rank) == firstOf(step, rank); }))
      report(name(s) + " updates bucket '" + bucket.name() + "' with the gradient of other elements");
    std::vector<Role> roles{plan::StateTensor::MASTER};
    for (Role role : plan::momentsOf(plan.optimizer().kind())) roles.push_back(role);
    for (size_t i = 0; i < roles.size(); ++i) {
      const plan::StateTensor *tensor = plan::tensorOf(bucket, roles[i]);
      int read = int(i ? i + 1 : 0); // the gradient is second
      if (!tensor || read >= step.reads_size() || int(i) >= step.writes_size()) continue;
      if (!isHomeOf(step.reads(read), *tensor, step) || !isHomeOf(step.writes(int(i)), *tensor, step))
        report(name(s) + " updates the " + of({b, roles[i]}) + " in buffer '" + plan.buffers(int(step.reads(read).buffer())).name() +
               "', where it does not rest");
    }
    const plan::StateTensor &master = plan::masterOf(bucket), *copy = plan::tensorOf(bucket, plan::StateTensor::COMPUTE);
    const plan::StateTensor &isRead = copy ? *copy : master;
    const plan::Ref &result =
        copy && copy->dtype() != master.dtype() && int(roles.size()) < step.writes_size() ? step.writes(int(roles.size())) : step.writes(0);
    if (!homes.contains(isRead.ref().buffer())) // rests on the device
      made.push_back({b, s, result});
    else if (copy && !isHomeOf(result, isRead, step))
      report(name(s) + " makes the " + of({b, plan::StateTensor::COMPUTE}) + " in buffer '" + plan.buffers(int(result.buffer())).name() +
             "', where it does not rest");
    else if (isPartial(bucket, isRead, step))
      unpublished[{{b, isRead.role()}, 0}] = s;
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
    const plan::StateTensor *tensor = plan::tensorOf(plan.buckets(int(kept.bucket)), kept.role);
    static constexpr const char *names[] = {"the device", "host", "disk"};
    return names[plan.arenas(int(plan.buffers(int(tensor->ref().buffer())).arena())).tier()];
  }
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
