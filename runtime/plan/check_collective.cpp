// Collectives: what travels, where sums lie, and in which order they are made.
#include "runtime/plan/mesh.h"
#include "runtime/plan/step_operands.h"
#include "runtime/plan/validate.h"

namespace zero::plan {
namespace {

struct CollectiveChecker : StepOperands {
  void collective(const Collective &call) const {
    uint64_t part = product({call.count(), bytesOf(call.dtype())});
    checkAxes(plan, call.axes(), what);
    uint64_t ranks = groupSize(plan, call.axes()), whole = multiply(part, ranks, what);
    bool gathers = call.kind() == Collective::ALL_GATHER, scatters = call.kind() == Collective::REDUCE_SCATTER;
    if (!Collective::Kind_IsValid(call.kind())) throw Error(what + " is a collective of the unknown kind " + std::to_string(call.kind()));
    form(1, gathers || ranks == 1 || call.order() == Collective::LIBRARY ? 1 : 2);
    if (!gathers && call.dtype() != F32 && !(scatters && call.dtype() == BF16))
      throw Error(what + " sums elements of type " + DType_Name(call.dtype()) + "; expected F32" + (scatters ? " or BF16" : ""));
    if (!gathers && !scatters && !same(step.reads(0), step.writes(0)))
      throw Error(what + " is an all-reduce with a source that is not its destination");
    reads(0, "the source", scatters ? whole : part);
    writes(0, "the destination", gathers ? whole : scatters ? product({call.count(), bytesOf(F32)}) : part);
    if (scatters && step.reads(0).buffer() == step.writes(0).buffer()) inPlace(call, part);
    if (gathers && step.reads(0).buffer() == step.writes(0).buffer())
      ownPart(call, step.reads(0), step.writes(0), part, "gathers from a place among what", "gets from others");
    if (!gathers) return sum(call, ranks);
    if (call.order() || call.slice()) throw Error(what + " gathers, but says how it sums");
  }

  // While later slices are sent, sums of the earlier ones may lie in this rank's own part alone, which nobody is sent.
  void inPlace(const Collective &call, uint64_t part) const {
    if (call.dtype() != F32)
      throw Error(what + " puts sums in f32 among what it reads of type " + DType_Name(call.dtype()) + "; expected another buffer");
    ownPart(call, step.writes(0), step.reads(0), part, "puts its sums among what", "sends to others");
  }

  // Each rank's part lies at that rank's place in the whole, where both are in one buffer.
  void ownPart(const Collective &call, const Ref &one, const Ref &whole, uint64_t part, const char *does, const char *moves) const {
    auto check = [&](uint64_t rank) {
      if (offsetOf(plan, one, rank) != offsetOf(plan, whole, rank) + placeOf(plan, call.axes(), rank) * part)
        throw Error(what + " " + does + " rank " + std::to_string(rank) + " " + moves + "; expected its own part of it, or another buffer");
    };
    check(0);
    uint64_t neighbour = 1; // along an axis; addresses are affine in the coordinates
    for (int axis = plan.axes_size() - 1; axis >= 0; neighbour *= plan.axes(axis--).size())
      if (plan.axes(axis).size() > 1) check(neighbour);
  }

  // The order is promised, and the slices take all of it through a room that holds one of each rank.
  void sum(const Collective &call, uint64_t ranks) const {
    if (call.order() == Collective::LIBRARY) return librarySum(call);
    if (call.order() != Collective::RANK)
      throw Error(what + " sums over ranks in the order " +
                  (Collective::Order_IsValid(call.order()) ? Collective::Order_Name(call.order()) : std::to_string(call.order())) +
                  "; expected RANK or LIBRARY");
    if (call.slice() == 0 || call.slice() > call.count())
      throw Error(what + " goes in slices of " + std::to_string(call.slice()) + " elements, which do not cover the " +
                  std::to_string(call.count()) + " that it sums; expected at least 1 and no more than these");
    if (ranks == 1) return;
    writes(1, "the staging room", product({ranks, call.slice(), bytesOf(call.dtype())}));
    requireApart(step.writes(1), step.reads(0), "its staging room", "what it reads");
    requireApart(step.writes(1), step.writes(0), "its staging room", "its sums");
  }

  void librarySum(const Collective &call) const {
    if (call.dtype() != F32)
      throw Error(what + " sums elements of type " + DType_Name(call.dtype()) + " in the order LIBRARY, which is for F32; expected RANK");
    if (call.slice())
      throw Error(what + " goes in slices of " + std::to_string(call.slice()) +
                  " elements, but sums in the order LIBRARY, which goes in one call; expected no slices");
  }
};

} // namespace

void checkCollective(const Plan &plan, const Step &step, int program, const std::string &what) {
  CollectiveChecker{{plan, step, program, what}}.collective(step.collective());
}

} // namespace zero::plan
