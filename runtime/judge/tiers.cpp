//===- tiers.cpp - what rests in another tier comes, is changed, and returns ------------------------------===//
#include "runtime/judge/tiers.h"
#include "runtime/judge/judge.h"

namespace zero::judge {

std::vector<Role> updatedRoles(const plan::Plan &plan) {
  std::vector<Role> roles{plan::StateTensor::MASTER};
  for (Role role : plan::momentsOf(plan.optimizer().kind())) roles.push_back(role);
  return roles;
}

uint64_t beginOf(const plan::Step &update, const plan::StateTensor &tensor) {
  return update.update().begin_elements() * plan::bytesOf(tensor.dtype());
}

Tiers::Tiers(const plan::Plan &plan, const plan::Program &program) : ProgramCheck(plan, program), contents(plan) {
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

std::vector<std::string> Tiers::run() {
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

void Tiers::visit(int s, const plan::Step &step) {
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

bool Tiers::isBehind(const plan::Ref &ref, Kept held) const {
  const plan::Bucket &bucket = plan.buckets(int(held.bucket));
  const plan::StateTensor &tensor = *plan::tensorOf(bucket, held.role);
  return held.begin + ref.offset() >= plan::elementsOf(bucket, tensor.part()) * plan::bytesOf(tensor.dtype());
}

void Tiers::fetch(int s, const plan::Step &step) {
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

bool Tiers::isAt(const plan::Ref &ref, Kept kept) const {
  auto held = holds.find(ref.buffer());
  return held != holds.end() && Tensor(held->second) == Tensor(kept) && held->second.begin + ref.offset() == kept.begin;
}

void Tiers::bringBack(int s, Kept kept, const plan::Step &step) {
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

void Tiers::update(int s, const plan::Step &step) {
  uint32_t bucket = step.update().bucket();
  std::vector<Role> roles = updatedRoles(plan);
  if (plan::Content gradient = contents.of(plan::gradientOf(step));
      gradient.bucket != int(bucket) || (gradient.part && !beginsAt(plan::gradientOf(step), step)))
    report(name(s) + " updates " + bucketText(int(bucket)) + " with the gradient of other elements");
  for (size_t i = 0; i < roles.size(); ++i) {
    const plan::StateTensor *tensor = plan::tensorOf(plan.buckets(int(bucket)), roles[i]);
    int read = int(i ? i + 1 : 0); // the gradient is second
    if (!tensor || read >= step.reads_size() || int(i) >= step.writes_size()) continue;
    if (!homes.contains(tensor->ref().buffer())) {
      if (!isHomeOf(step.reads(read), *tensor, step) || !isHomeOf(step.writes(int(i)), *tensor, step))
        report(name(s) + " updates the " + of({bucket, roles[i]}) + " in buffer '" + plan.buffers(int(step.reads(read).buffer())).name() +
               "', where it does not rest");
      continue;
    }
    Kept kept{{bucket, roles[i]}, beginOf(step, *tensor)};
    updateFetched(s, kept, step.reads(read), step.writes(int(i)));
    if (isAt(step.reads(read), kept) && !(beginsAt(step.reads(read), step) && beginsAt(step.writes(int(i)), step)))
      report(name(s) + " updates the " + of(kept) + " of another rank");
  }
  if (const plan::StateTensor *copy = plan::tensorOf(plan.buckets(int(bucket)), plan::StateTensor::COMPUTE);
      copy && homes.contains(copy->ref().buffer()) && int(roles.size()) < step.writes_size())
    makeCopy(s, step.writes(int(roles.size())), {{bucket, plan::StateTensor::COMPUTE}, beginOf(step, *copy)});
}

void Tiers::updateFetched(int s, Kept kept, const plan::Ref &read, const plan::Ref &written) {
  bool inPlace = written.buffer() == read.buffer() && written.offset() == read.offset();
  if (!isAt(read, kept) || !inPlace)
    report(name(s) + " updates the " + of(kept) + " in buffer '" + plan.buffers(int(read.buffer())).name() +
           "', to which it was not fetched");
  changed[kept] = s;
}

void Tiers::makeCopy(int s, const plan::Ref &ref, Kept kept) {
  const plan::Buffer &buffer = plan.buffers(int(ref.buffer()));
  if (!isAt(ref, kept) && (!buffer.has_bucket() || buffer.bucket() != kept.bucket || ref.offset() > kept.begin))
    report(name(s) + " makes the " + of(kept) + " in buffer '" + buffer.name() + "', where something else belongs");
  else if (!isAt(ref, kept))
    holds.insert_or_assign(ref.buffer(), Kept{kept, kept.begin - ref.offset()});
  changed[kept] = s;
}

void Tiers::wrong(int s, Kept kept, uint32_t from) {
  report(name(s) + " brings back the " + of(kept) + " from buffer '" + plan.buffers(int(from)).name() + "', which does not hold it");
}

std::string Tiers::bucketText(int bucket) const { return bucket < 0 ? "no bucket" : "bucket '" + plan.buckets(bucket).name() + "'"; }

std::string Tiers::of(Tensor kept) const {
  return std::string(plan::roleName(kept.role)) + " of bucket '" + plan.buckets(int(kept.bucket)).name() + "'";
}

std::string Tiers::tierOf(Tensor kept) const {
  static constexpr const char *names[] = {"the device", "host", "disk"};
  return names[tierOf(plan::tensorOf(plan.buckets(int(kept.bucket)), kept.role)->ref())];
}

plan::Tier Tiers::tierOf(const plan::Ref &ref) const { return plan.arenas(int(plan.buffers(int(ref.buffer())).arena())).tier(); }

std::vector<std::string> checkTiers(const plan::Plan &plan, int program) { return Tiers(plan, plan.programs(program)).run(); }

} // namespace zero::judge
