//===- host_updates.cpp - updates that the host makes: a gradient comes, what is read goes up -------------===//
#include "runtime/judge/tiers.h"
#include <algorithm>

namespace zero::judge {
bool Tiers::isOnHost(const plan::Ref &ref) const {
  const plan::Buffer &buffer = plan.buffers(int(ref.buffer()));
  return buffer.program() >= 0 && buffer.kind() == plan::GRADIENT && tierOf(ref) == plan::HOST;
}

void Tiers::bringDown(int s, const plan::Step &step) {
  int from = contents.of(step.reads(0)).bucket, to = contents.of(step.writes(0)).bucket;
  if (from != to)
    return report(name(s) + " takes to the host the gradient of " + bucketText(from) + " where that of " + bucketText(to) + " belongs");
  sameElements(s, step, "takes to the host the gradient of " + bucketText(to));
  down[step.writes(0).buffer()] = s;
  if (plan.buffers(int(step.reads(0).buffer())).kind() == plan::GRADIENT) wentDown[step.reads(0).buffer()] = s;
}

void Tiers::updateOnHost(int s, const plan::Step &step) {
  uint32_t b = step.update().bucket();
  const plan::Bucket &bucket = plan.buckets(int(b));
  if (const plan::Ref &gradient = plan::gradientOf(step); !down.contains(gradient.buffer()) || contents.of(gradient).bucket != int(b))
    report(name(s) + " updates bucket '" + bucket.name() + "' with a gradient that has not come to the host");
  else if (!beginsAt(gradient, step))
    report(name(s) + " updates bucket '" + bucket.name() + "' with the gradient of other elements");
  std::vector<Role> roles = updatedRoles(plan);
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
  makeResult(s, step);
}

void Tiers::makeResult(int s, const plan::Step &step) {
  uint32_t b = step.update().bucket();
  const plan::Bucket &bucket = plan.buckets(int(b));
  const plan::StateTensor &isRead = plan::readOf(bucket);
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

void Tiers::addOnHost(int s, const plan::Step &step) {
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

const plan::Ref &Tiers::resultOf(const plan::Step &update) const {
  const plan::Bucket &bucket = plan.buckets(int(update.update().bucket()));
  auto after = int(1 + plan::momentsOf(plan.optimizer().kind()).size());
  bool rounded = plan::readOf(bucket).dtype() != plan::masterOf(bucket).dtype() && after < update.writes_size();
  return update.writes(rounded ? after : 0);
}

bool Tiers::joins(int s, const plan::Step &step) {
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

void Tiers::bringUp(int s, const plan::Step &step) {
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

} // namespace zero::judge
