#include "runtime/engine/parameter_groups.h"
#include "runtime/base/error.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <cstdint>
#include <optional>

namespace zero::runtime {
namespace {

constexpr uint64_t kAlignment = 64, kLargest = sizeof(float); // bytes; of an element

// Elements up to `end` belong to `group`.
struct Run {
  uint64_t end;
  uint32_t group;
};

// The groups along elements [begin, begin + count) of a bucket. Padding, which stays 0 whatever is done to it, goes with its neighbour.
std::vector<Run> runsOf(const std::vector<plan::PieceMap::Entry> &pieces, const std::vector<uint32_t> &groupOf, uint64_t begin,
                        uint64_t count) {
  std::vector<Run> runs;
  for (size_t i = 0; i < pieces.size(); ++i) {
    uint32_t group = groupOf[static_cast<size_t>(pieces[i].parameter)];
    uint64_t end = i + 1 < pieces.size() ? pieces[i + 1].begin : begin + count;
    if (end <= begin) continue;
    end = std::min(end - begin, count);
    if (!runs.empty() && runs.back().group == group)
      runs.back().end = end;
    else if (runs.empty() || end > runs.back().end)
      runs.push_back({end, group});
  }
  if (runs.empty()) runs.push_back({count, 0});
  return runs;
}

class Cutter {
public:
  Cutter(const plan::Plan &plan, const StateMaps &state, const plan::Step &step, const LaunchOp &whole, std::span<const Address> args,
         const ParameterGroups &groups, uint64_t rank, Address scratch)
      : inputs(plan::kernelReads(step)), whole(whole), args(args), groups(groups), row(step.update().row()),
        forGpu(plan.kernels(static_cast<int>(whole.kernel)).has_gpu()) {
    const plan::Update &update = step.update();
    const plan::Bucket &bucket = plan.buckets(static_cast<int>(update.bucket()));
    count = plan::gradientOf(step).bytes() / plan::bytesOf(update.dtype());
    runs = runsOf(state.pieces.piecesOf(static_cast<int>(update.bucket())), groups.of,
                  plan::rangeOf(bucket, update.part(), rank).begin + update.begin_elements(), count);
    for (int a = 0; a < inputs + plan::kernelWrites(step); ++a) {
      const plan::Ref &ref = a < inputs ? step.reads(a) : step.writes(a - inputs);
      // Numbers per element: the gradient, and what the bucket keeps. What else is written has a number for every so many elements.
      plan::Content content = state.contents.of(ref);
      bool isState = content.part != plan::PART_UNSPECIFIED, isGradient = &ref == &plan::gradientOf(step);
      uint64_t size = plan::bytesOf(isState ? content.dtype : isGradient ? update.dtype() : plan::F32);
      if (isState && ref.bytes() < count * size)
        throw Error("an update of bucket '" + bucket.name() +
                    "' has an argument in a tensor of it that is shorter than its gradient, which groups of parameters cannot have");
      bool isSum = forGpu && !isState && a >= inputs;
      uint64_t per = isSum ? count / std::max<uint64_t>(ref.bytes() / size, 1) : 1;
      aside.push_back(isState || isGradient || isSum ? std::optional(placeOf(args[static_cast<size_t>(a)], size, per, scratch))
                                                     : std::nullopt);
    }
  }

  std::vector<UpdatePart> run() {
    auto extent = static_cast<uint64_t>(whole.extent);
    size_t r = 0;
    for (uint64_t i = 0; i < extent;) {
      while (runs[r].end <= i * row) ++r;
      uint64_t last = runs[r].end == count ? extent : runs[r].end / row;
      if (forGpu && i > 0 && last == extent && count % row != 0) --last;
      if (last > i)
        launch(runs[r].group, i, last, false);
      else
        shared(r, i);
      i = std::max(last, i + 1);
    }
    return std::move(parts);
  }

private:
  struct Aside {
    Address memory, scratch;
    uint64_t size, per; // bytes of a number, elements that it is for

    uint64_t bytes(uint64_t elements) const { return (elements + per - 1) / per * size; }
  };

  // Arguments at the same address, read and written in place, share their scratch.
  Aside placeOf(Address memory, uint64_t size, uint64_t per, Address scratch) {
    for (const Aside &slot : slots)
      if (slot.memory == memory) return slot;
    uint64_t stride = (row * kLargest + kAlignment - 1) / kAlignment * kAlignment;
    slots.push_back({memory, scratch + slots.size() * stride, size, per});
    return slots.back();
  }

  // Iterations [begin, end) for one group; with `inScratch`, the one iteration finds its elements there.
  UpdatePart &launch(uint32_t group, uint64_t begin, uint64_t end, bool inScratch) {
    UpdatePart &part = parts.emplace_back();
    uint64_t from = forGpu ? 0 : begin; // where the kernel begins, counted from its addresses
    for (size_t a = 0; a < args.size(); ++a) {
      part.args.push_back(groups.argumentOf(group, args[a]));
      if (!aside[a]) continue;
      uint64_t added = aside[a]->bytes(from * row); // by the kernel
      part.args[a] = inScratch ? aside[a]->scratch + -added : part.args[a] + (aside[a]->bytes(begin * row) - added);
    }
    part.launch = whole;
    part.launch.extent = static_cast<int64_t>(end - begin), part.launch.begin = static_cast<int64_t>(from);
    return part;
  }

  // Iteration i, whose elements belong to several runs, the first of which is runs[r].
  void shared(size_t r, uint64_t i) {
    uint64_t begin = i * row, end = std::min(begin + row, count);
    std::vector<uint32_t> done;
    for (size_t first = r; first < runs.size() && (first == r || runs[first - 1].end < end); ++first) {
      uint32_t group = runs[first].group;
      if (std::find(done.begin(), done.end(), group) != done.end()) continue;
      done.push_back(group);
      UpdatePart &part = launch(group, i, i + 1, true);
      for (const Aside &slot : slots) {
        if (slot.per == 1)
          part.before.push_back({slot.scratch, slot.memory + slot.bytes(begin), slot.bytes(end - begin)});
        else
          part.after.push_back({slot.memory + slot.bytes(begin), slot.scratch, slot.bytes(end - begin)}); // sums are those of all
      }
      for (size_t k = first; k < runs.size() && (k == r || runs[k - 1].end < end); ++k) {
        if (runs[k].group != group) continue;
        uint64_t from = k == r ? begin : runs[k - 1].end, to = std::min(runs[k].end, end);
        for (const Aside &slot : slots)
          if (slot.per == 1 && isWritten(slot))
            part.after.push_back({slot.memory + slot.bytes(from), slot.scratch + slot.bytes(from - begin), slot.bytes(to - from)});
      }
    }
  }

  bool isWritten(const Aside &slot) const {
    for (size_t a = static_cast<size_t>(inputs); a < aside.size(); ++a)
      if (aside[a] && aside[a]->scratch == slot.scratch) return true;
    return false;
  }

  int inputs; // arguments that are read
  const LaunchOp &whole;
  std::span<const Address> args;
  const ParameterGroups &groups;
  uint64_t row, count; // elements of one iteration, of the update
  bool forGpu;
  std::vector<Run> runs;
  std::vector<std::optional<Aside>> aside; // of an argument that has a number for each element of the gradient
  std::vector<Aside> slots;
  std::vector<UpdatePart> parts;
};

} // namespace

Address ParameterGroups::argumentOf(uint32_t group, Address argument) const {
  if (argument == hyper[0]) return hyper[group];
  if (argument == kept[0]) return kept[group];
  return !onHost.empty() && argument == onHost[0] ? onHost[group] : argument;
}

uint64_t scratchBytes(const plan::Plan &plan, const std::vector<uint32_t> &programs) {
  uint64_t bytes = 0;
  for (uint32_t index : programs)
    for (const plan::Step &step : plan.programs(static_cast<int>(index)).steps()) {
      if (!step.has_update()) continue;
      if (step.update().row() == 0)
        throw Error("this plan does not say where its updates can be cut, which --no-decay and --lr-scale need; compile it again");
      uint64_t stride = (step.update().row() * kLargest + kAlignment - 1) / kAlignment * kAlignment;
      bytes = std::max(bytes, stride * static_cast<uint64_t>(plan::kernelReads(step) + plan::kernelWrites(step)));
    }
  return bytes;
}

std::vector<UpdatePart> cutUpdate(const plan::Plan &plan, const StateMaps &state, const plan::Step &step, const LaunchOp &whole,
                                  std::span<const Address> args, const ParameterGroups &groups, uint64_t rank, Address scratch) {
  return Cutter(plan, state, step, whole, args, groups, rank, scratch).run();
}

} // namespace zero::runtime
