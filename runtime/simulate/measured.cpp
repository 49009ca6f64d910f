//===- measured.cpp - how fast a machine was in a run ---------------------------------------------------===//
#include "runtime/simulate/measured.h"
#include "runtime/base/error.h"
#include "runtime/inspect/inspect.h"
#include "runtime/plan/lanes.h"
#include "runtime/simulate/step_cost.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace zero::simulate {
namespace {

using Json = nlohmann::ordered_json;

struct Event {
  const plan::Step *step;
  double begin, seconds; // since some time
};

/// What was done at one of the machine's speeds.
struct Done {
  double amount = 0, seconds = 0;
};

/// The speed that a step shows, by its name in machine.h, and how much of it the step does; no name: none.
std::pair<std::string, double> shown(const plan::Plan &plan, const plan::Step &step) {
  inspect::Work work = inspect::workOf(plan, step);
  auto products = [&](plan::DType type, bool tf32 = false) {
    return std::pair(std::string(tf32 ? "products_tf32" : type == plan::F32 ? "products_f32" : "products_bf16"), double(work.flops) / 2);
  };
  if (step.has_matmul()) return products(step.matmul().dtype(), step.matmul().tf32());
  if (step.has_attention()) return products(step.attention().dtype());
  if (step.has_attention_grad()) return products(step.attention_grad().dtype());
  if (step.has_collective()) return {};
  if (step.has_write_rows() && tierOf(plan, step.writes(0)) != plan::DEVICE) return {};
  if (step.has_copy()) {
    plan::Tier from = tierOf(plan, step.reads(0)), to = tierOf(plan, step.writes(0));
    bool direct = plan.target().kind() != plan::Target::CUDA; // else through the host's memory, at two speeds
    bool disk = from == plan::DISK || to == plan::DISK;
    if (disk && !direct) return {};
    double bytes = double(work.touched) / 2;
    if (disk) return {from == plan::DISK ? "disk_read" : "disk_write", bytes};
    if (from != to) return {to == plan::DEVICE ? "to_device" : "to_host", bytes};
  }
  return {step.lane() == plan::UPDATE_HOST ? "host_memory" : "memory", double(work.touched)};
}

/// Events of rank 0 with their steps, without the first run of each program.
std::vector<Event> eventsOf(const plan::Plan &plan, const std::string &text, const std::string &name) {
  auto trace = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!trace.is_array()) throw Error("'" + name + "' is no trace: zerorun --trace FILE writes one");
  std::map<std::pair<std::string, int>, std::vector<const plan::Step *>> steps; // of each program's lanes, in order
  for (const plan::Program &program : plan.programs())
    for (const plan::Step &step : program.steps()) steps[{program.name(), int(step.lane())}].push_back(&step);
  std::map<std::pair<std::string, int>, std::vector<std::pair<Event, std::string>>> ran;
  for (const Json &event : trace) {
    if (!event.is_object() || event.value("ph", "") != "X" || event.value("pid", -1) != 0) continue;
    double begin = event.value("ts", 0.0) * 1e-6, seconds = event.value("dur", 0.0) * 1e-6;
    ran[{event.value("cat", ""), event.value("tid", -1)}].push_back({{nullptr, begin, seconds}, event.value("name", "")});
  }
  std::vector<Event> events;
  for (auto &[lane, all] : ran) {
    std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.first.begin < b.first.begin; });
    const std::vector<const plan::Step *> &wanted = steps[lane];
    for (size_t i = 0; i < all.size(); ++i) {
      auto &[event, what] = all[i];
      event.step = wanted.empty() ? nullptr : wanted[i % wanted.size()];
      if (!event.step || event.step->name() != what)
        throw Error("'" + name + "' is a trace of another plan: it has '" + what + "' on lane " + plan::laneName(size_t(lane.second)) +
                    " of @" + lane.first +
                    (event.step ? ", where this plan has '" + event.step->name() + "'" : ", where this plan has nothing"));
      if (i >= wanted.size()) events.push_back(event);
    }
  }
  if (events.empty()) throw Error("'" + name + "' has no second run of a program: the first is not counted; train for two steps or more");
  return events;
}

/// What each of these took of what they share.
std::vector<double> shares(const std::vector<Event> &events) {
  std::vector<std::pair<double, size_t>> moments; // begins and ends
  for (size_t i = 0; i < events.size(); ++i)
    moments.insert(moments.end(), {{events[i].begin, i}, {events[i].begin + events[i].seconds, i}});
  std::sort(moments.begin(), moments.end());
  std::vector<double> taken(events.size());
  std::set<size_t> underWay;
  double now = 0;
  for (auto [moment, i] : moments) {
    for (size_t other : underWay) taken[other] += (moment - now) / double(underWay.size());
    now = moment;
    if (!underWay.insert(i).second) underWay.erase(i);
  }
  return taken;
}

} // namespace

std::string measuredMachine(const plan::Plan &plan, const std::string &trace, const std::string &name) {
  std::map<std::string, Done> done;
  std::vector<Event> onDisk, events;
  try {
    events = eventsOf(plan, trace, name);
  } catch (const Json::type_error &) {
    throw Error("'" + name + "' is no trace: an event of it has another type of value than zerorun --trace FILE writes");
  }
  for (const Event &event : events) {
    auto [speed, amount] = shown(plan, *event.step);
    if (speed.starts_with("disk_")) onDisk.push_back(event);
    if (!speed.empty()) done[speed].amount += amount;
    if (!speed.empty() && !speed.starts_with("disk_")) done[speed].seconds += event.seconds;
  }
  std::vector<double> taken = shares(onDisk);
  for (size_t i = 0; i < onDisk.size(); ++i) done[shown(plan, *onDisk[i].step).first].seconds += taken[i];
  Json machine;
  for (const auto &[speed, sum] : done)
    if (sum.amount > 0 && sum.seconds > 0) machine[speed] = std::round(sum.amount / sum.seconds);
  return machine.dump(1);
}

} // namespace zero::simulate
