//===- tiers.cpp - what rests in another tier comes, is changed, and returns -------------------------===//
#include "runtime/judge/judge.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
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
  Tiers(const plan::Plan &plan, const plan::Program &program) : plan(plan), program(program) {
    for (int b = 0; b < plan.buckets_size(); ++b)
      for (const plan::StateTensor &tensor : plan.buckets(b).tensors())
        if (plan.arenas(int(plan.buffers(int(tensor.ref().buffer())).arena())).tier() != plan::DEVICE)
          homes[tensor.ref().buffer()] = {uint32_t(b), tensor.role()};
  }

  std::vector<std::string> run() {
    if (homes.empty()) return {};
    for (int s = 0; s < program.steps_size(); ++s) visit(s, program.steps(s));
    for (auto [kept, step] : changed) report("what " + name(step) + " changes of the " + of(kept) + " never returns to " + tierOf(kept));
    if (program.role() == plan::Program::FIRST || program.role() == plan::Program::MIDDLE)
      for (auto [buffer, tensor] : homes)
        if (tensor.role == plan::StateTensor::GRADIENT && !returned.contains(tensor))
          report("the " + of(tensor) + " is not brought up to date in " + tierOf(tensor));
    return std::move(found);
  }

private:
  void visit(int s, const plan::Step &step) {
    if (step.has_update()) return update(s, step);
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
    if (auto change = changed.find(kept); change != changed.end())
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
    bool partial = plan::tensorOf(bucket, kept.role)->part() == plan::WHOLE && plan::groupSize(plan, bucket.axes()) > 1 &&
                   program.steps(change->second).update().part() == plan::SHARD;
    if (partial && !published.contains(kept.bucket))
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
  std::map<uint32_t, Tensor> homes; // by persistent buffer
  std::map<uint32_t, Kept> holds;   // what came to a transient buffer
  std::map<Kept, int> changed;      // by which step, and not yet brought back
  std::set<uint32_t> published;     // buckets
  std::set<Tensor> returned;
  std::vector<std::string> found;
};

} // namespace

std::vector<std::string> checkTiers(const plan::Plan &plan, int program) { return Tiers(plan, plan.programs(program)).run(); }

} // namespace zero::judge
