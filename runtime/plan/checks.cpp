#include "runtime/plan/checks.h"
#include "runtime/base/control_characters.h"
#include "runtime/base/error.h"
#include "runtime/plan/validate.h"
#include <array>
#include <set>
#include <vector>

namespace zero::plan {

uint64_t bytesOf(DType dtype) {
  switch (dtype) {
  case F32:
  case I32:
    return 4;
  case BF16:
  case F16:
    return 2;
  case I64:
    return 8;
  case BOOL:
    return 1;
  default:
    throw Error("the plan uses the unknown element type " + std::to_string(dtype));
  }
}

uint64_t multiply(uint64_t a, uint64_t b, const std::string &what) {
  uint64_t result;
  if (__builtin_mul_overflow(a, b, &result) || result > kMaxBytes)
    throw Error(what + " has a size that overflows: " + std::to_string(a) + " x " + std::to_string(b));
  return result;
}

uint64_t add(uint64_t a, uint64_t b, const std::string &what) {
  uint64_t result;
  if (__builtin_add_overflow(a, b, &result) || result > kMaxBytes)
    throw Error(what + " has a size that overflows: " + std::to_string(a) + " + " + std::to_string(b));
  return result;
}

void requireText(const std::string &what, const std::string &text, size_t limit) {
  if (text.size() > limit)
    throw Error(what + " has a text of " + std::to_string(text.size()) + " bytes; at most " + std::to_string(limit) + " are allowed");
  for (size_t i = 0; i < text.size(); ++i)
    if (controlBytes(text, i))
      throw Error(what + " has a text with a control character"); // that could say on a terminal what no program has
}

void requireName(const std::string &what, const std::string &text) {
  if (text.empty()) throw Error(what + " has no name");
  requireText(what, text);
}

uint64_t bytesOfShape(const google::protobuf::RepeatedField<int64_t> &shape, uint64_t elementBytes, const std::string &what) {
  if (shape.size() > 16) throw Error(what + " has " + std::to_string(shape.size()) + " dimensions; at most 16 are allowed");
  uint64_t bytes = elementBytes;
  for (int64_t dimension : shape) {
    if (dimension < 0) throw Error(what + " has the negative dimension " + std::to_string(dimension));
    bytes = multiply(bytes, static_cast<uint64_t>(dimension), what);
  }
  return bytes;
}

void requireBytes(uint64_t found, uint64_t expected, const std::string &what) {
  if (found != expected)
    throw Error(what + " has " + std::to_string(found) + " bytes where its shape asks for " + std::to_string(expected));
}

void requireReach(uint64_t found, uint64_t needed, const std::string &what) {
  if (found != needed) throw Error(what + " has " + std::to_string(found) + " bytes where the step reaches " + std::to_string(needed));
}

void checkAxes(const Plan &plan, const google::protobuf::RepeatedField<uint32_t> &axes, const std::string &what) {
  for (int i = 0; i < axes.size(); ++i)
    if (axes.Get(i) >= static_cast<uint32_t>(plan.axes_size()) || (i > 0 && axes.Get(i) <= axes.Get(i - 1)))
      throw Error(what + " runs along axis " + std::to_string(axes.Get(i)) + "; expected ascending indices of the plan's " +
                  std::to_string(plan.axes_size()) + " axes");
}

void checkRef(const Plan &plan, const Ref &ref, const std::string &what, int program) {
  if (ref.buffer() >= static_cast<uint32_t>(plan.buffers_size()))
    throw Error(what + " names buffer " + std::to_string(ref.buffer()) + ", but the plan has " + std::to_string(plan.buffers_size()));
  const Buffer &buffer = plan.buffers(static_cast<int>(ref.buffer()));
  if (buffer.program() != kPersistent && buffer.program() != program)
    throw Error(what + " uses buffer '" + buffer.name() + "', which belongs to another program");
  if (ref.strides_size() != 0 && ref.strides_size() != plan.axes_size())
    throw Error(what + " has strides along " + std::to_string(ref.strides_size()) + " axes, but the plan has " +
                std::to_string(plan.axes_size()));
  uint64_t last = ref.offset();         // where it begins on the last rank
  bool aligned = ref.offset() % 2 == 0; // of the smallest that is multiplied
  for (int axis = 0; axis < ref.strides_size(); ++axis) {
    last = add(last, multiply(ref.strides(axis), plan.axes(axis).size() - 1, what), what);
    aligned = aligned && ref.strides(axis) % 2 == 0;
  }
  uint64_t end = add(last, ref.bytes(), what);
  if (end > buffer.bytes())
    throw Error(what + " reaches byte " + std::to_string(end) + " of buffer '" + buffer.name() + "', which has " +
                std::to_string(buffer.bytes()) + (last != ref.offset() ? " (on the last rank)" : ""));
  if (!aligned) throw Error(what + " is not aligned to 2 bytes in buffer '" + buffer.name() + "'");
}

Tier tierOf(const Plan &plan, const Ref &ref) {
  return plan.arenas(static_cast<int>(plan.buffers(static_cast<int>(ref.buffer())).arena())).tier();
}

const char *tierText(Tier tier) { return tier == DISK ? "disk" : tier == HOST ? "host memory" : "the device's memory"; }
std::string placeText(Tier tier) { return std::string(tier == DISK ? "on " : "in ") + tierText(tier); }

void requireDevice(const Plan &plan, const Ref &ref, const std::string &what) {
  if (Tier tier = tierOf(plan, ref); tier != DEVICE)
    throw Error(what + " uses buffer '" + plan.buffers(static_cast<int>(ref.buffer())).name() + "', which lies " + placeText(tier) +
                "; only copies reach there, anything else must be in the device's memory");
}

void checkNumbers(const Plan &plan, const Ref &ref, int count, const std::string &what, int program) {
  checkRef(plan, ref, what, program);
  requireDevice(plan, ref, what);
  requireBytes(ref.bytes(), 4 * static_cast<uint64_t>(count), what);
}

namespace {

using Ticks = std::array<uint64_t, Lane_ARRAYSIZE>;

Ticks ticksOf(const Program &program) {
  Ticks ticks{};
  for (const Step &step : program.steps()) ++ticks[static_cast<size_t>(step.lane())];
  return ticks;
}

void checkTick(int lane, uint64_t tick, const Ticks &ticks, const std::string &who) {
  if (!Lane_IsValid(lane)) throw Error(who + " waits for the unknown lane " + std::to_string(lane));
  if (tick > ticks[static_cast<size_t>(lane)])
    throw Error(who + " waits for tick " + std::to_string(tick) + " of lane " + Lane_Name(static_cast<Lane>(lane)) + ", which has only " +
                std::to_string(ticks[static_cast<size_t>(lane)]) + " steps");
}

} // namespace

void checkEntries(const Plan &plan, const Program &program) {
  std::string whose = " of program '" + program.name() + "'";
  Ticks own = ticksOf(program);
  for (const Wait &wait : program.result_waits()) checkTick(wait.lane(), wait.tick(), own, "reading the results" + whose);
  std::set<uint32_t> seen;
  for (const Entry &entry : program.entries()) {
    if (entry.after() >= static_cast<uint32_t>(plan.programs_size()))
      throw Error("an entry" + whose + " follows program " + std::to_string(entry.after()) + ", but the plan has " +
                  std::to_string(plan.programs_size()));
    const Program &before = plan.programs(static_cast<int>(entry.after()));
    std::string after = whose + " after program '" + before.name() + "'";
    if (!seen.insert(entry.after()).second) throw Error("there are two entries" + after);
    Ticks ticks = ticksOf(before);
    ++ticks[COMPUTE]; // the last: its results are read
    for (const Wait &wait : entry.input_waits()) checkTick(wait.lane(), wait.tick(), ticks, "writing the inputs" + after);
    uint32_t last = 0;
    for (const EntryWait &wait : entry.waits()) {
      if (wait.step() >= static_cast<uint32_t>(program.steps_size()) || wait.step() < last)
        throw Error("an entry" + after + " has a wait of step " + std::to_string(wait.step()) + " where one from " + std::to_string(last) +
                    " to " + std::to_string(program.steps_size()) + " is due");
      last = wait.step();
      checkTick(wait.lane(), wait.tick(), ticks,
                "step " + std::to_string(last) + " '" + program.steps(static_cast<int>(last)).name() + "'" + after);
    }
  }
}

void checkWaits(const Program &program) {
  constexpr int lanes = Lane_ARRAYSIZE;
  std::array<std::vector<int>, lanes> order;
  for (int s = 0; s < program.steps_size(); ++s) order[program.steps(s).lane()].push_back(s);
  Ticks ticks = ticksOf(program);
  auto nameOfStep = [&](int s) {
    return "step " + std::to_string(s) + " '" + program.steps(s).name() + "' of program '" + program.name() + "'";
  };
  for (int s = 0; s < program.steps_size(); ++s)
    for (const Wait &wait : program.steps(s).waits()) checkTick(wait.lane(), wait.tick(), ticks, nameOfStep(s));
  // Run all lanes as far as they get. Ticks only grow, so any order of trying finds the same end.
  std::array<size_t, lanes> tick{};
  std::array<int, lanes> met{}; // of the waits of the lane's next step
  size_t done = 0;
  for (bool progress = true; progress;) {
    progress = false;
    for (int lane = 0; lane < lanes; ++lane)
      while (tick[lane] < order[lane].size()) {
        const Step &step = program.steps(order[lane][tick[lane]]);
        while (met[lane] < step.waits_size() && tick[step.waits(met[lane]).lane()] >= step.waits(met[lane]).tick()) ++met[lane];
        if (met[lane] < step.waits_size()) break;
        ++tick[lane], met[lane] = 0;
        ++done;
        progress = true;
      }
  }
  if (done == static_cast<size_t>(program.steps_size())) return;
  for (int lane = 0; lane < lanes; ++lane)
    if (tick[lane] < order[lane].size())
      throw Error(nameOfStep(order[lane][tick[lane]]) + " waits for itself through other steps: the program would never end");
}

} // namespace zero::plan
