//===- plan.cpp - ranks, updates, and all promises of a plan -------------------------------------------===//
#include "runtime/judge/history.h"
#include "runtime/judge/judge.h"
#include "runtime/judge/program_check.h"
#include "runtime/plan/lanes.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/micro_steps.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
#include <map>
#include <set>

namespace zero::judge {

std::vector<std::string> checkRanks(const std::vector<Problem> &ranks) {
  std::vector<std::string> found;
  for (uint32_t lane = 0; lane < kLaneCount; ++lane) {
    std::vector<std::vector<std::string>> called;
    for (const Problem &p : ranks) {
      called.emplace_back();
      for (const Step &s : p.steps)
        if (s.lane == lane && !s.collective.empty()) called.back().push_back(s.collective);
    }
    for (size_t r = 1; r < called.size(); ++r)
      for (size_t i = 0; i < std::max(called[0].size(), called[r].size()); ++i) {
        auto at = [&](size_t rank) { return i < called[rank].size() ? called[rank][i] : std::string("nothing"); };
        if (at(0) == at(r)) continue;
        found.push_back("ranks disagree on collective " + std::to_string(i) + " of lane " + plan::laneName(lane) + ": '" + ranks[0].name +
                        "' calls " + at(0) + ", '" + ranks[r].name + "' calls " + at(r));
        break;
      }
  }
  return found;
}

namespace {

/// The buckets of one program: each is updated once where the role says so, after all that reads the old parameters, and what one rank
/// updated reaches the others.
class Updates : ProgramCheck {
public:
  Updates(const plan::Plan &plan, const plan::Program &program) : ProgramCheck(plan, program), contents(plan) {}

  std::vector<std::string> run() {
    bool updates = program.role() == plan::Program::STEP || program.role() == plan::Program::LAST;
    std::vector<Update> at(size_t(plan.buckets_size()));
    for (int s = 0; s < program.steps_size(); ++s) {
      if (!program.steps(s).has_update()) continue;
      const plan::Update &update = program.steps(s).update();
      const plan::Bucket &bucket = plan.buckets(int(update.bucket()));
      Update &known = at[update.bucket()];
      if (!updates || !bucket.trainable())
        report(name(s) + " updates bucket '" + bucket.name() + "', which " + (updates ? "is frozen" : "this program must not change"));
      if (known.first >= 0 && update.begin_elements() < known.end)
        report(name(s) + " updates bucket '" + bucket.name() + "' a second time");
      else if (update.begin_elements() > known.end)
        report(name(s) + " leaves out elements " + std::to_string(known.end) + " to " + std::to_string(update.begin_elements()) +
               " of bucket '" + bucket.name() + "'");
      if (known.first < 0) known.first = s;
      known.last = s;
      known.end = update.begin_elements() + plan::gradientOf(program.steps(s)).bytes() / plan::bytesOf(update.dtype());
    }
    findTouches();
    for (int b = 0; b < plan.buckets_size(); ++b) {
      const plan::Bucket &bucket = plan.buckets(b);
      for (const plan::StateTensor &tensor : bucket.tensors())
        if (isCopy(tensor)) checkCopy(bucket, tensor, at[size_t(b)]);
      if (at[size_t(b)].first < 0 && updates && bucket.trainable()) report("bucket '" + bucket.name() + "' is never updated");
      if (at[size_t(b)].first < 0) continue;
      if (uint64_t part = plan::elementsOf(bucket, program.steps(at[size_t(b)].last).update().part()); at[size_t(b)].end < part)
        report("elements " + std::to_string(at[size_t(b)].end) + " to " + std::to_string(part) + " of bucket '" + bucket.name() +
               "' are never updated");
    }
    if (plan.world() > 1) {
      checkSums();
      if (program.has_loss()) checkResult(program.loss(), "loss");
      if (program.has_gradient_norm()) checkResult(program.gradient_norm(), "gradient norm");
    }
    return std::move(found);
  }

private:
  /// The gradient of each trained bucket is reduced once for every micro-step of a program of training (or, of a table, all ranks' rows of
  /// it are gathered), and gathered again where all of it is updated. What a collective takes from a bucket comes to where that bucket's
  /// elements belong.
  void checkSums() {
    std::vector<int> reduced(size_t(plan.buckets_size())), rows(reduced), gathered(reduced), updatedWhole(reduced);
    for (int s = 0; s < program.steps_size(); ++s) {
      const plan::Step &step = program.steps(s);
      if (step.has_update() && step.update().part() == plan::WHOLE) updatedWhole[step.update().bucket()] = 1;
      if (!step.has_collective()) continue;
      const plan::Collective &c = step.collective();
      int from = contents.of(step.reads(0)).bucket, to = contents.of(step.writes(0)).bucket;
      plan::BufferKind kind = plan.buffers(int(step.writes(0).buffer())).kind();
      bool takesRows = c.kind() == plan::Collective::ALL_GATHER && kind == plan::ACTIVATION; // from wherever they were computed
      if (from >= 0 && to >= 0 && from != to && !takesRows)
        report(name(s) + " takes elements of bucket '" + plan.buckets(from).name() + "' to where those of bucket '" +
               plan.buckets(to).name() + "' belong");
      if (to < 0) continue;
      if (!takesRows && c.count() != plan.buckets(to).shard_elements())
        report(name(s) + " moves " + std::to_string(c.count()) + " elements of each rank, where a shard of bucket '" +
               plan.buckets(to).name() + "' has " + std::to_string(plan.buckets(to).shard_elements()));
      if (plan::axesOf(plan, c.axes()) != plan::axesOf(plan, plan.buckets(to).axes()))
        report(name(s) + " runs along other axes than those that bucket '" + plan.buckets(to).name() + "' is split over");
      if (c.kind() == plan::Collective::REDUCE_SCATTER) ++reduced[size_t(to)];
      if (c.kind() == plan::Collective::ALL_GATHER && kind == plan::GRADIENT) ++gathered[size_t(to)];
      rows[size_t(to)] += takesRows;
    }
    for (size_t b = 0; b < reduced.size(); ++b) {
      const plan::Bucket &bucket = plan.buckets(int(b));
      bool reduces = bucket.trainable() && program.role() != plan::Program::EVAL && plan::groupSize(plan, bucket.axes()) > 1;
      int sums = reduces ? int(plan::microStepsOf(plan, program)) : 0;
      auto expect = [&](int found, int expected, const char *what) {
        if (found != expected)
          report("the gradient of bucket '" + bucket.name() + "' is " + what + " " + std::to_string(found) + " times, not " +
                 (expected > 1 ? std::to_string(expected) + " times"
                  : expected   ? "once"
                               : "never"));
      };
      bool byRows = reduced[b] == 0 && sums > 0 && rows[b] >= sums && rows[b] % sums == 0; // of as many lookups in each micro-step
      expect(reduced[b], byRows ? 0 : sums, "reduced");
      expect(gathered[b], updatedWhole[b], "gathered for an update");
    }
  }

  /// The last of the first `steps` steps that writes there; -1: none.
  int lastWriter(const plan::Ref &to, int steps) const {
    for (int s = steps - 1; s >= 0; --s)
      for (const Access &a : accessesOf(plan, program.steps(s), 0))
        if (a.writes && a.buffer == to.buffer() && a.begin < to.offset() + to.bytes() && to.offset() < a.end) return s;
    return -1;
  }

  /// The last step that writes a result sums it over the ranks, or moves what was.
  void checkResult(const plan::Ref &result, const char *what) {
    int last = lastWriter(result, program.steps_size());
    while (last >= 0 && program.steps(last).has_copy()) last = lastWriter(program.steps(last).reads(0), last);
    if (last < 0) return; // which is for the values to see
    const plan::Step &step = program.steps(last);
    if (!step.has_collective() || step.collective().kind() != plan::Collective::ALL_REDUCE)
      report(std::string("the ") + what + " is not summed over the ranks");
  }

  /// Of the parameters.
  static bool isCopy(const plan::StateTensor &tensor) {
    return tensor.role() == plan::StateTensor::MASTER || tensor.role() == plan::StateTensor::COMPUTE;
  }

  /// Which steps touch the buffers of parameters, in order.
  void findTouches() {
    for (const plan::Bucket &bucket : plan.buckets())
      for (const plan::StateTensor &tensor : bucket.tensors())
        if (isCopy(tensor)) touches[tensor.ref().buffer()];
    for (int s = 0; s < program.steps_size(); ++s)
      for (const Access &a : accessesOf(plan, program.steps(s), 0))
        if (auto found = touches.find(a.buffer); found != touches.end()) {
          if (found->second.empty() || found->second.back().step != s) found->second.push_back({s, false, false});
          (a.writes ? found->second.back().writes : found->second.back().reads) = true;
        }
  }

  /// The steps that update a bucket, one or one slice after the other; none in programs that leave it as it is.
  struct Update {
    int first = -1, last = -1;
    uint64_t end = 0; // of what they update, in elements
  };

  void checkCopy(const plan::Bucket &bucket, const plan::StateTensor &copy, const Update &update) {
    if (tierOf(copy) != plan::DEVICE) return checkHome(bucket, copy, update);
    bool none = update.first < 0;
    bool published = none || plan::groupSize(plan, bucket.axes()) == 1 || program.steps(update.last).update().part() == plan::WHOLE ||
                     copy.part() == plan::SHARD;
    // Of what the host updates a copy brings each slice, which is for checkTiers to see.
    bool onHost = isOnHost(update), gathered = false;
    int silent = onHost ? -1 : update.first; // an update that changes nothing; -1: none
    for (auto [s, reads, writes] : touches[copy.ref().buffer()]) {
      gathered |= !none && writes && program.steps(s).has_collective();
      if (program.steps(s).has_write_rows()) {
        // Of rows that the update has set apart, which is for checkRows to see.
      } else if (onHost && writes && s > update.first && program.steps(s).has_copy()) {
        if (gathered) report(name(s) + " brings the " + of(bucket, copy) + " when the other ranks' parts have already joined it");
      } else if (onHost && !writes && program.steps(s).has_copy() && tierOf(program.steps(s).writes(0)) != plan::DEVICE) {
        // For an update of what rests here, which is for checkTiers to see as well.
      } else if (isUpdateOf(bucket, s)) {
        if (s == silent) silent = writes ? nextUpdate(bucket, s) : s;
      } else if (writes && (none || !program.steps(s).has_collective())) {
        report(name(s) + " writes the " + of(bucket, copy) + " but is not its update");
      } else if (writes && s > update.last) {
        published = true;
      } else if (writes || (reads && !none && s > update.first)) {
        report(name(s) + (writes ? " publishes" : " reads") + " the " + of(bucket, copy) + (writes ? " before" : " after") +
               " its update, " + name(writes ? update.last : update.first));
      }
    }
    if (silent >= 0) report(name(silent) + " does not write the " + of(bucket, copy));
    if (!published) report("what " + name(update.last) + " changes of the " + of(bucket, copy) + " never reaches the other ranks");
  }

  bool isOnHost(const Update &update) const { return update.first >= 0 && program.steps(update.first).lane() == plan::UPDATE_HOST; }
  bool isUpdateOf(const plan::Bucket &bucket, int step) const {
    return program.steps(step).has_update() && &plan.buckets(int(program.steps(step).update().bucket())) == &bucket;
  }
  int nextUpdate(const plan::Bucket &bucket, int step) const {
    for (int s = step + 1; s < program.steps_size(); ++s)
      if (isUpdateOf(bucket, s)) return s;
    return -1;
  }

  /// Where parameters rest in another tier, the update works on a copy; that this comes and returns is for checkTiers to see. Nobody
  /// fetches the new parameters, and nothing else is written over the old ones.
  void checkHome(const plan::Bucket &bucket, const plan::StateTensor &copy, const Update &update) {
    for (auto [s, reads, writes] : touches[copy.ref().buffer()]) {
      if (program.steps(s).has_write_rows()) continue; // as above
      if (isOnHost(update) && (isUpdateOf(bucket, s) || (!writes && program.steps(s).has_copy())))
        continue; // there, and for the other ranks
      if (writes && (update.first < 0 || s < update.first || !program.steps(s).has_copy()))
        report(name(s) + " writes the " + of(bucket, copy) + " but does not bring back what its update changed");
      if (reads && update.first >= 0 && s > update.last)
        report(name(s) + " reads the " + of(bucket, copy) + " after its update, " + name(update.last));
    }
  }
  plan::Tier tierOf(const plan::Ref &ref) const { return plan.arenas(int(plan.buffers(int(ref.buffer())).arena())).tier(); }
  plan::Tier tierOf(const plan::StateTensor &copy) const { return tierOf(copy.ref()); }
  static std::string of(const plan::Bucket &bucket, const plan::StateTensor &copy) {
    return std::string(plan::roleName(copy.role())) + " of bucket '" + bucket.name() + "'";
  }

  struct Touch {
    int step;
    bool reads, writes;
  };

  plan::Contents contents;
  std::map<uint32_t, std::vector<Touch>> touches; // by buffer
};

} // namespace

std::vector<std::string> checkUpdates(const plan::Plan &plan, int program) { return Updates(plan, plan.programs(program)).run(); }

static Problem collectivesOf(Problem problem) {
  std::erase_if(problem.steps, [](const Step &step) { return step.collective.empty(); });
  Problem rest;
  rest.name = std::move(problem.name);
  rest.steps = std::move(problem.steps);
  return rest;
}

std::vector<std::string> checkPlan(const plan::Plan &plan) {
  std::vector<std::string> found;
  std::set<uint64_t> ranks{0, plan.world() - 1};
  uint64_t neighbour = 1; // along an axis
  for (int axis = plan.axes_size() - 1; axis >= 0; --axis) {
    if (plan.axes(axis).size() > 1) ranks.insert(neighbour);
    neighbour *= plan.axes(axis).size();
  }
  std::vector<std::vector<Problem>> each(size_t(plan.programs_size())); // of each program what ranks must agree on
  for (uint64_t rank : ranks) {
    size_t before = found.size();
    auto add = [&](const std::vector<std::string> &sentences) {
      for (const std::string &sentence : sentences) found.push_back("rank " + std::to_string(rank) + ": " + sentence);
    };
    std::vector<Problem> problems;
    std::vector<Judged> judged;
    for (int program = 0; program < plan.programs_size(); ++program) {
      problems.push_back(fromPlan(plan, program, rank));
      judged.push_back(judge(problems.back()));
      add(judged.back().found);
    }
    for (size_t program = 0; found.size() == before && program < problems.size(); ++program)
      for (size_t e = 0; e < problems[program].entries.size(); ++e) {
        size_t after = plan.programs(int(program)).entries(int(e)).after();
        add(checkEntry(problems[after], judged[after], problems[program], judged[program], problems[program].entries[e]));
      }
    for (size_t program = 0; program < problems.size(); ++program) each[program].push_back(collectivesOf(std::move(problems[program])));
  }
  for (std::string &sentence : checkOwners(plan)) found.push_back(std::move(sentence));
  for (int program = 0; program < plan.programs_size(); ++program) {
    for (std::string &sentence : checkRanks(each[size_t(program)])) found.push_back("@" + plan.programs(program).name() + ": " + sentence);
    for (auto check : {checkUpdates, checkGradientSums, checkNorm, checkTiers, checkRows})
      for (std::string &sentence : check(plan, program)) found.push_back(std::move(sentence));
  }
  return found;
}

} // namespace zero::judge
