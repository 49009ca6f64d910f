//===- gradient_sums.cpp - micro-steps leave sums of their gradients, and use what earlier ones have left -===//
#include "runtime/judge/judge.h"
#include "runtime/judge/program_check.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <map>

namespace zero::judge {
namespace {

using Range = plan::Range;

class GradientSums : ProgramCheck {
public:
  GradientSums(const plan::Plan &plan, const plan::Program &program) : ProgramCheck(plan, program) {}

  std::vector<std::string> run() {
    bool leaves = program.role() == plan::Program::FIRST || program.role() == plan::Program::MIDDLE;
    bool uses = program.role() == plan::Program::MIDDLE || program.role() == plan::Program::LAST;
    if (!leaves && !uses) return {};
    findParameters();
    for (uint64_t rank : {uint64_t(0), uint64_t(plan.world() - 1)}) {
      if (!found.empty()) break;
      findAccesses(rank);
      for (int b = 0; b < plan.buckets_size(); ++b)
        if (const plan::StateTensor *sum = plan::tensorOf(plan.buckets(b), plan::StateTensor::GRADIENT)) {
          if (uses)
            hold(b, *sum, rank, used[sum->ref().buffer()], "what earlier micro-steps have summed of the gradient of ", " is never used");
          if (leaves) hold(b, *sum, rank, written[sum->ref().buffer()], "no sum of the gradient of ", " is left for the next micro-step");
        }
    }
    return std::move(found);
  }

private:
  /// Elements of each bucket that belong to parameters: the others are padding, and stay zero.
  void findParameters() {
    for (const plan::Parameter &parameter : plan.parameters())
      for (const plan::Piece &piece : parameter.pieces()) {
        uint64_t elements = 1;
        if (piece.size_size())
          for (uint64_t size : piece.size()) elements *= size;
        else
          for (int64_t size : parameter.shape()) elements *= uint64_t(size);
        owned[int(piece.bucket())].push_back({piece.offset_elements(), piece.offset_elements() + elements});
      }
    for (auto &[bucket, ranges] : owned) std::ranges::sort(ranges, {}, &Range::begin);
  }

  /// Bytes that the program leaves in sums, and bytes it reads as earlier programs left them, by buffer.
  void findAccesses(uint64_t rank) {
    written.clear(), used.clear();
    for (const plan::Bucket &bucket : plan.buckets())
      if (const plan::StateTensor *sum = plan::tensorOf(bucket, plan::StateTensor::GRADIENT))
        written[sum->ref().buffer()], used[sum->ref().buffer()];
    for (const plan::Step &step : program.steps()) {
      for (const plan::Ref &ref : step.reads())
        if (auto sum = used.find(ref.buffer()); sum != used.end())
          for (Range range : without(rangeOf(ref, rank), written[ref.buffer()])) sum->second.push_back(range);
      for (const plan::Ref &ref : step.writes())
        if (auto sum = written.find(ref.buffer()); sum != written.end()) sum->second.push_back(rangeOf(ref, rank));
    }
  }
  Range rangeOf(const plan::Ref &ref, uint64_t rank) const {
    uint64_t begin = plan::offsetOf(plan, ref, rank);
    return {begin, begin + ref.bytes()};
  }

  /// What of a range none of the others covers.
  static std::vector<Range> without(Range range, const std::vector<Range> &others) {
    std::vector<Range> left{range};
    for (Range other : others) {
      std::vector<Range> next;
      for (Range part : left) {
        if (part.begin < std::min(other.begin, part.end)) next.push_back({part.begin, std::min(other.begin, part.end)});
        if (std::max(other.end, part.begin) < part.end) next.push_back({std::max(other.end, part.begin), part.end});
      }
      left = std::move(next);
    }
    return left;
  }

  void hold(int b, const plan::StateTensor &sum, uint64_t rank, const std::vector<Range> &covered, const char *before, const char *after) {
    const plan::Bucket &bucket = plan.buckets(b);
    Range here = plan::rangeOf(bucket, sum.part(), plan::placeOf(plan, bucket.axes(), rank));
    uint64_t size = plan::bytesOf(sum.dtype());
    for (Range parameter : owned[b]) {
      uint64_t begin = std::max(parameter.begin, here.begin), end = std::min(parameter.end, here.end);
      if (begin >= end) continue;
      auto at = [&](uint64_t element) { return sum.ref().offset() + (element - here.begin) * size; };
      if (std::vector<Range> left = without({at(begin), at(end)}, covered); !left.empty())
        return report(std::string(before) + "elements " + std::to_string(here.begin + (left[0].begin - sum.ref().offset()) / size) +
                      " to " + std::to_string(here.begin + (left[0].end - sum.ref().offset()) / size) + " of bucket '" + bucket.name() +
                      "'" + after);
    }
  }

  std::map<int, std::vector<Range>> owned; // by bucket
  std::map<uint32_t, std::vector<Range>> written, used;
};

} // namespace

std::vector<std::string> checkGradientSums(const plan::Plan &plan, int program) { return GradientSums(plan, plan.programs(program)).run(); }

} // namespace zero::judge
