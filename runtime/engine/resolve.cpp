#include "runtime/engine/resolve.h"
#include "runtime/base/error.h"
#include "runtime/device/step_name.h"
#include "runtime/plan/attention.h"
#include "runtime/plan/epilogue.h"
#include "runtime/plan/validate.h"
#include <algorithm>

namespace zero::runtime {
namespace {

class Resolver {
public:
  Resolver(const plan::Plan &plan, const plan::Program &program, const Locate &locate, const ParameterGroups &groups, uint64_t rank)
      : plan(plan), program(program), locate(locate), groups(groups), rank(rank), state(plan) {
    result.source = &program;
  }

  DeviceProgram run() {
    for (int i = 0; i < program.steps_size(); ++i) {
      const plan::Step &step = program.steps(i);
      name = "step " + std::to_string(i) + " '" + step.name() + "' of program '" + program.name() + "'";
      WaitRange waits = addWaits(step.waits(), step.lane());
      firsts.push_back(static_cast<uint32_t>(result.operations.size()));
      add(step, static_cast<uint32_t>(i));
      Operation &first = result.operations[firsts.back()];
      first.waitBegin = waits.begin, first.waitEnd = waits.end;
      if (step.has_update() || step.has_update_rows()) first.update = &step;
      result.operations.back().signals = true;
    }
    result.resultWaits = addWaits(program.result_waits(), plan::COMPUTE);
    for (const plan::Entry &entry : program.entries()) addEntry(entry);
    return std::move(result);
  }

private:
  WaitRange addWaits(const google::protobuf::RepeatedPtrField<plan::Wait> &waits, plan::Lane lane) {
    auto begin = static_cast<uint32_t>(result.waits.size());
    for (const plan::Wait &wait : waits)
      if (wait.lane() != lane) // which is in order: it never waits for itself
        result.waits.push_back({wait.lane(), static_cast<uint32_t>(wait.tick())});
    return {begin, static_cast<uint32_t>(result.waits.size())};
  }

  void addEntry(const plan::Entry &entry) {
    result.entries.push_back({entry.after(), addWaits(entry.input_waits(), plan::COMPUTE), {}});
    for (const plan::EntryWait &wait : entry.waits())
      if (wait.lane() != program.steps(static_cast<int>(wait.step())).lane())
        result.entries.back().waits.push_back({firsts[wait.step()], {wait.lane(), static_cast<uint32_t>(wait.tick())}});
  }

  void add(const plan::Step &step, uint32_t index) {
    auto push = [&](Work work) { result.operations.push_back({step.lane(), std::move(work), index, 0, 0, false, nullptr}); };
    if (step.has_update() && step.update().has_apart())
      for (RowsOf<Place> &rows : setApart(step)) push(rows);
    if (groups.of.empty()) return push(workOf(step));
    if (step.has_copy() && place(step.reads(0)) == groups.hyper[0]) { // all groups' are kept with it
      std::vector<Address> &kept = step.lane() == plan::COMPUTE ? groups.kept : groups.onHost;
      if (kept.empty() || step.writes(0).bytes() != sizeof(std::array<float, 16>))
        throw Error(stepName(program, index) + " copies the hyper-parameters in a form that groups of parameters cannot have");
      kept[0] = *place(step.writes(0));
      for (size_t g = 0; g < kept.size(); ++g) push(CopyOf<Place>{kept[g], groups.hyper[g], step.writes(0).bytes()});
      return;
    }
    if (step.has_update_rows()) return push(updateOfRows(step));
    if (!step.has_update()) return push(workOf(step));
    LaunchOp whole = launch(step, step.update().launch());
    std::vector<Address> args(result.args.begin() + whole.firstArg, result.args.end());
    result.args.resize(whole.firstArg);
    for (UpdatePart &part : cutUpdate(plan, state, step, whole, args, groups, rank, groups.scratch[static_cast<size_t>(step.lane())])) {
      for (const CopyOf<Place> &copy : part.before) push(copy);
      part.launch.firstArg = static_cast<uint32_t>(result.args.size());
      result.args.insert(result.args.end(), part.args.begin(), part.args.end());
      push(part.launch);
      for (const CopyOf<Place> &copy : part.after) push(copy);
    }
  }

  // All rows of a table are of one parameter.
  LaunchOp updateOfRows(const plan::Step &step) {
    auto bucket = static_cast<int>(step.update_rows().tiles(0).bucket());
    uint32_t group = groups.of[static_cast<size_t>(state.pieces.piecesOf(bucket).front().parameter)];
    LaunchOp whole = launch(step, step.update_rows().launch());
    for (size_t a = whole.firstArg; a < result.args.size(); ++a) result.args[a] = groups.argumentOf(group, result.args[a]);
    return whole;
  }

  Place place(const plan::Ref &ref) const { return locate(ref); }

  Work workOf(const plan::Step &step) {
    switch (step.what_case()) {
    case plan::Step::kLaunch:
      return launch(step, step.launch());
    case plan::Step::kMatmul:
      return matmul(step, step.matmul());
    case plan::Step::kAttention:
      return attention(step, step.attention(), step.writes(0), step.writes(1));
    case plan::Step::kAttentionGrad: {
      int last = step.reads_size() - 1; // out, lse and the output's gradient are read after what forward reads
      return AttentionGradOf<Place>{attention(step, step.attention_grad(), step.reads(last - 2), step.reads(last - 1)),
                                    place(step.reads(last)),
                                    place(step.writes(0)),
                                    place(step.writes(1)),
                                    place(step.writes(2)),
                                    step.writes_size() > 3 ? place(step.writes(3)) : Place{}};
    }
    case plan::Step::kCollective:
      return collective(step, step.collective());
    case plan::Step::kCopy:
      return CopyOf<Place>{place(step.writes(0)), place(step.reads(0)), step.writes(0).bytes()};
    case plan::Step::kFill:
      return FillOf<Place>{place(step.writes(0)), step.fill().pattern(), step.writes(0).bytes()};
    case plan::Step::kUpdate:
      return launch(step, step.update().launch());
    case plan::Step::kUpdateRows:
      return launch(step, step.update_rows().launch());
    case plan::Step::kWriteRows:
      return rows(step.write_rows(), RowsDo::Put, step.reads(1), place(step.reads(0)), step.reads(2), step.reads(2).bytes());
    case plan::Step::WHAT_NOT_SET:
      break;
    }
    throw Error(name + " does nothing this program knows");
  }

  LaunchOp launch(const plan::Step &step, const plan::Launch &launch) {
    const plan::Kernel &kernel = plan.kernels(static_cast<int>(launch.kernel()));
    auto first = static_cast<uint32_t>(result.args.size());
    for (int i = 0; i < plan::kernelReads(step); ++i) result.args.push_back(locate(step.reads(i)));
    for (int i = 0; i < plan::kernelWrites(step); ++i) result.args.push_back(locate(step.writes(i)));
    return {launch.kernel(), first, static_cast<uint32_t>(result.args.size()) - first, static_cast<int64_t>(launch.extent()),
            static_cast<int64_t>(kernel.grain())};
  }

  RowsOf<Place> rows(const plan::TableRows &p, RowsDo does, const plan::Ref &indices, Place rows, const plan::Ref &window,
                     uint64_t bytes) const {
    uint64_t count = indices.bytes() / plan::bytesOf(p.index_type());
    return {{p.index_type(), count, p.row_bytes(), p.begin(), bytes}, does, place(indices), rows, place(window)};
  }

  // Before an update: the parameters of its rows, their states, and their gradient, which becomes zero; of the bucket's padding nothing.
  std::vector<RowsOf<Place>> setApart(const plan::Step &step) const {
    const plan::Update &update = step.update();
    const plan::Bucket &bucket = plan.buckets(static_cast<int>(update.bucket()));
    const plan::Ref &indices = step.reads(plan::kernelReads(step)), &kept = step.reads(plan::kernelReads(step) + 1);
    uint64_t end = bucket.elements() - bucket.padding_elements(), left = end - std::min<uint64_t>(update.begin_elements(), end);
    uint64_t bytes = std::min<uint64_t>(plan::gradientOf(step).bytes(), left * plan::bytesOf(plan::F32));
    std::vector<int> tensors{0};
    for (int state = 0; state < static_cast<int>(plan::momentsOf(plan.optimizer().kind()).size()); ++state) tensors.push_back(state + 2);
    tensors.push_back(1);
    std::vector<RowsOf<Place>> all;
    for (int tensor : tensors) {
      Address at = locate(kept) + all.size() * (kept.bytes() / tensors.size());
      all.push_back(rows(update.apart(), tensor == 1 ? RowsDo::Move : RowsDo::Copy, indices, at, step.reads(tensor), bytes));
    }
    return all;
  }

  MatMulOf<Place> matmul(const plan::Step &step, const plan::MatMul &p) const {
    auto i = [](uint64_t value) { return static_cast<int64_t>(value); };
    MatMulShape shape{i(p.m()),    i(p.n()),     i(p.k()),        i(p.batch()),    p.trans_a(),     p.trans_b(),    i(p.lda()),
                      i(p.ldb()),  i(p.ldc()),   i(p.stride_a()), i(p.stride_b()), i(p.stride_c()), p.accumulate(), p.dtype(),
                      p.c_dtype(), p.epilogue(), p.tf32(),        p.grouped(),     i(p.groups())};
    MatMulOf<Place> call{shape, place(step.reads(0)), place(step.reads(1)), place(step.writes(0))};
    plan::EpilogueForm epilogue = plan::formOf(p.epilogue());
    if (p.grouped() != plan::MatMul::UNGROUPED) call.group = place(step.reads(2));
    if (epilogue.readsBias) call.bias = place(step.reads(2));
    if (epilogue.hasAux()) call.aux = place(epilogue.readsAux ? step.reads(2) : step.writes(1));
    return call;
  }

  AttentionOf<Place> attention(const plan::Step &step, const plan::Attention &p, const plan::Ref &out, const plan::Ref &lse) const {
    AttentionOf<Place> call{};
    call.q = place(step.reads(0)), call.k = place(step.reads(1)), call.v = place(step.reads(2));
    call.out = place(out), call.lse = place(lse);
    call.batch = static_cast<int64_t>(p.batch());
    call.heads = static_cast<int64_t>(p.heads());
    call.kvHeads = static_cast<int64_t>(p.kv_heads());
    call.qLen = static_cast<int64_t>(p.q_len());
    call.kvLen = static_cast<int64_t>(p.kv_len());
    call.dim = static_cast<int64_t>(p.dim());
    call.scale = p.scale();
    call.softcap = p.softcap();
    call.beyond = p.beyond();
    call.biasParts = static_cast<int64_t>(p.bias_parts());
    if (call.biasParts > 0) call.bias = place(step.reads(p.mask_shape_size() == 4 ? 4 : 3));
    auto [first, last] = plan::seenKeys(p);
    call.first = first, call.last = last;
    call.dtype = p.dtype();
    if (p.mask_shape_size() == 4) {
      call.mask = place(step.reads(3));
      int64_t stride = 1;
      for (int i = 3; i >= 0; --i) {
        call.maskStride[i] = p.mask_shape(i) == 1 ? 0 : stride;
        stride *= static_cast<int64_t>(p.mask_shape(i));
      }
    }
    return call;
  }

  Work collective(const plan::Step &step, const plan::Collective &p) const {
    const plan::Ref &src = step.reads(0), &dst = step.writes(0);
    Place staging = step.writes_size() > 1 ? place(step.writes(1)) : std::nullopt;
    switch (p.kind()) {
    case plan::Collective::ALL_GATHER:
      return AllGatherOf<Place>{place(src), place(dst), p.count() * plan::bytesOf(p.dtype())};
    case plan::Collective::REDUCE_SCATTER:
      return ReduceScatterOf<Place>{place(src), place(dst), p.count(), staging, p.slice(), p.dtype()};
    case plan::Collective::ALL_REDUCE:
      return AllReduceOf<Place>{place(src), p.count(), staging, p.slice()};
    default:
      throw Error(name + " is an unknown collective");
    }
  }

  const plan::Plan &plan;
  const plan::Program &program;
  const Locate &locate;
  ParameterGroups groups;
  uint64_t rank;
  StateMaps state;
  DeviceProgram result;
  std::vector<uint32_t> firsts; // operation of each step
  std::string name;
};

} // namespace

DeviceProgram resolve(const plan::Plan &plan, const plan::Program &program, const Locate &locate, const ParameterGroups &groups,
                      uint64_t rank) {
  return Resolver(plan, program, locate, groups, rank).run();
}

} // namespace zero::runtime
