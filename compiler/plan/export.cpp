//===- export.cpp - programs and steps into plan.proto ----------------------------------------------===//
#include "compiler/plan/export.h"
#include "compiler/plan/Plan.h"
#include "compiler/plan/export_state.h"
#include "runtime/plan/container.h"

using namespace mlir;

namespace zero::planir {

static FlatSymbolRefAttr kernelOf(Operation &op) {
  if (auto launch = dyn_cast<LaunchStep>(op)) return launch.getKernelAttr();
  if (auto update = dyn_cast<UpdateStep>(op)) return update.getKernelAttr();
  if (auto update = dyn_cast<UpdateRowsStep>(op)) return update.getKernelAttr();
  return nullptr;
}

static bool isOnHost(Operation &op) { return cast<StepOp>(op).getLane() == Lane::update_host; }

std::vector<LaunchedKernel> launchedKernels(ModuleOp module) {
  SymbolTable symbols(module);
  std::vector<LaunchedKernel> kernels;
  for (bool onHost : {false, true}) {
    llvm::DenseSet<Attribute> seen;
    for (auto program : module.getOps<ProgramOp>())
      for (Operation &op : program.getBody().front())
        if (auto kernel = kernelOf(op); kernel && isOnHost(op) == onHost && seen.insert(kernel).second)
          if (auto function = symbols.lookup<func::FuncOp>(kernel.getAttr())) kernels.push_back({function, onHost});
  }
  return kernels;
}

namespace {

class Exporter {
public:
  Exporter(ModuleOp module, const ExportOptions &options, plan::Plan &plan, std::vector<char> &constants)
      : module(module), options(options), plan(plan), constants(constants) {}

  LogicalResult run() {
    StateExport state(module, options.initSeed, plan, constants);
    if (failed(state.run())) return failure();
    states = state.indices();
    persistent = plan.arenas_size();
    buckets = state.bucketIndices();
    plan.set_producer(options.producer);
    plan.set_format(plan::kFormat);
    plan.set_model(options.model);
    *plan.mutable_target() = options.target;
    addWorkArenas();
    if (failed(addKernels())) return failure();
    for (auto [index, program] : llvm::enumerate(module.getOps<ProgramOp>())) programs[program.getSymNameAttr()] = uint32_t(index);
    for (auto program : module.getOps<ProgramOp>())
      if (failed(addProgram(program))) return failure();
    return success();
  }

private:
  /// The transient arenas, after the persistent ones: always that of the device.
  void addWorkArenas() {
    static constexpr const char *names[] = {"work", "work on host", "work on disk"};
    for (int tier = 0; tier < 3; ++tier) {
      bool used = llvm::any_of(module.getOps<ProgramOp>(), [&](ProgramOp program) { return heightOf(program, tier) > 0; });
      if (tier && !used) continue;
      workArenas[size_t(tier)] = plan.arenas_size();
      auto *arena = plan.add_arenas();
      arena->set_name(names[tier]);
      arena->set_tier(plan::Tier(tier));
      arena->set_alignment(uint32_t(workAlignmentOf(module)));
    }
  }
  static int64_t heightOf(ProgramOp program, int tier) {
    return tier == 0 ? int64_t(program.getHeight().value_or(0)) : program.getAway() ? (*program.getAway())[2 * tier - 2] : 0;
  }
  static int64_t liveOf(ProgramOp program, int tier) {
    return tier == 0 ? int64_t(program.getLive().value_or(0)) : program.getAway() ? (*program.getAway())[2 * tier - 1] : 0;
  }

  LogicalResult addKernels();
  LogicalResult addProgram(ProgramOp op);
  LogicalResult addBuffer(BufferOp op, int program);
  LogicalResult addStep(StepOp op, plan::Program &program);
  void addEntry(EntryOp op, plan::Program &program) const;
  void fill(plan::Ref *to, const Ref &ref) const;
  /// A kernel by its name, and whether the host launches it: its index in the plan.
  using KernelKey = std::pair<StringAttr, unsigned>;
  static KernelKey keyOf(Operation *step) { return {kernelOf(*step).getAttr(), isOnHost(*step)}; }
  void fillLaunch(plan::Launch *to, Operation *step) const;
  ModuleOp module;
  const ExportOptions &options;
  plan::Plan &plan;
  std::vector<char> &constants;
  int persistent = 0;                           // arenas; the transient ones come after them
  std::array<int, 3> workArenas = {-1, -1, -1}; // by tier; -1: none
  llvm::DenseMap<StringAttr, int> states, buckets;
  llvm::DenseMap<Value, int> buffers;
  llvm::DenseMap<KernelKey, int> kernels;
  llvm::DenseMap<StringAttr, uint32_t> programs;
  std::vector<codegen::KernelInfo> infos;
};

LogicalResult Exporter::addKernels() {
  for (auto [function, onHost] : launchedKernels(module)) {
    auto info = onHost ? codegen::describe(function) : options.describe(function);
    if (failed(info)) return failure();
    kernels[{function.getSymNameAttr(), onHost}] = plan.kernels_size();
    auto *kernel = plan.add_kernels();
    kernel->set_symbol(info->symbol);
    kernel->set_args(info->args);
    kernel->set_grain(info->grain);
    kernel->set_summary(info->summary);
    kernel->set_flops(info->flops);
    kernel->set_bytes(info->bytes);
    kernel->set_extent(info->extent);
    kernel->set_row(info->row);
    if (info->grid) {
      kernel->mutable_gpu()->set_blocks(uint32_t(info->grid->blocks));
      kernel->mutable_gpu()->set_threads(info->grid->threads);
      if (info->grid->sharedBytes) kernel->mutable_gpu()->set_shared_bytes(info->grid->sharedBytes);
    }
    for (uint64_t bytes : info->argBytes) kernel->add_arg_bytes(bytes);
    infos.push_back(std::move(*info));
  }
  return success();
}

void Exporter::fill(plan::Ref *to, const Ref &ref) const {
  to->set_buffer(buffers.lookup(ref.buffer));
  to->set_offset(ref.offset);
  if (ref.stride) to->add_strides(ref.stride); // one axis
  to->set_bytes(ref.bytes);
}

void Exporter::fillLaunch(plan::Launch *to, Operation *step) const {
  int index = kernels.lookup(keyOf(step));
  to->set_kernel(index);
  to->set_extent(infos[index].extent);
}

static void fillRows(plan::TableRows *to, TableRowsAttr rows) {
  to->set_index_type(dtypeOf(rows.getIndexType()));
  to->set_row_bytes(rows.getRow());
  to->set_begin(rows.getBegin());
  to->set_table_rows(rows.getRows());
}

/// What attention and its gradient share.
template <typename Op> static void fillSizes(plan::Attention *to, Op op) {
  ArrayRef<int64_t> sizes = op.getSizes();
  to->set_dtype(dtypeOf(op.getType()));
  to->set_batch(sizes[0]);
  to->set_heads(sizes[1]);
  to->set_kv_heads(sizes[2]);
  to->set_q_len(sizes[3]);
  to->set_kv_len(sizes[4]);
  to->set_dim(sizes[5]);
  to->set_scale(op.getScale().convertToFloat());
  to->set_causal(op.getCausal());
  if (auto cap = op.getSoftcap()) to->set_softcap(cap->convertToFloat());
  to->set_bias_parts(op.getBiasParts().value_or(0));
  to->set_beyond(op.getBeyond());
  if (auto band = op.getBand()) {
    to->mutable_band()->set_first((*band)[0]);
    to->mutable_band()->set_last((*band)[1]);
  }
  if (auto shape = op.getMaskShape())
    for (int64_t size : *shape) to->add_mask_shape(size);
}

static void fillWaits(google::protobuf::RepeatedPtrField<plan::Wait> *to, DenseI64ArrayAttr waits) {
  for (int64_t i = 0; waits && i + 1 < waits.size(); i += 2) {
    plan::Wait *wait = to->Add();
    wait->set_lane(plan::Lane(waits[i]));
    wait->set_tick(waits[i + 1]);
  }
}

void Exporter::addEntry(EntryOp op, plan::Program &program) const {
  plan::Entry *entry = program.add_entries();
  entry->set_after(programs.lookup(op.getAfterAttr().getAttr()));
  fillWaits(entry->mutable_input_waits(), op.getInputWaitsAttr());
  for (size_t i = 0; i + 2 < op.getWaits().size(); i += 3) {
    plan::EntryWait *wait = entry->add_waits();
    wait->set_step(op.getWaits()[i]);
    wait->set_lane(plan::Lane(op.getWaits()[i + 1]));
    wait->set_tick(op.getWaits()[i + 2]);
  }
}

static void fillProduct(plan::MatMul *to, MatMulStep product) {
  to->set_dtype(dtypeOf(product.getType()));
  to->set_c_dtype(dtypeOf(product.getResultType()));
  to->set_m(product.getM());
  to->set_n(product.getN());
  to->set_k(product.getK());
  to->set_batch(product.getBatch());
  to->set_trans_a(product.getTransposeA());
  to->set_trans_b(product.getTransposeB());
  to->set_accumulate(product.getAccumulate());
  to->set_lda(product.getLd()[0]);
  to->set_ldb(product.getLd()[1]);
  to->set_ldc(product.getLd()[2]);
  to->set_stride_a(product.getStep()[0]);
  to->set_stride_b(product.getStep()[1]);
  to->set_stride_c(product.getStep()[2]);
  to->set_epilogue(plan::MatMul::Epilogue(product.getEpilogue()));
  to->set_tf32(product.getTf32());
  to->set_grouped(plan::MatMul::Grouped(product.getGrouped()));
  to->set_groups(product.getGroups());
  to->set_all_groups(product.getAllGroups());
}

static void fillCollective(plan::Collective *to, CollectiveStep collective) {
  to->set_kind(plan::Collective::Kind(collective.getKind()));
  to->set_count(collective.getCount());
  to->set_dtype(dtypeOf(collective.getType()));
  if (auto slice = collective.getSlice())
    to->set_order(plan::Collective::RANK), to->set_slice(*slice);
  else if (to->kind() != plan::Collective::ALL_GATHER)
    to->set_order(plan::Collective::LIBRARY);
}

LogicalResult Exporter::addStep(StepOp op, plan::Program &program) {
  auto *step = program.add_steps();
  std::string name = nameOf(op->getLoc());
  step->set_name(name.empty() ? op->getName().stripDialect().str() : name);
  step->set_lane(plan::Lane(op.getLane()));
  fillWaits(step->mutable_waits(), op.getWaitsAttr());
  for (const Access &access : accessesOf(op)) fill(access.writes ? step->add_writes() : step->add_reads(), access.ref);

  if (auto launch = dyn_cast<LaunchStep>(*op)) {
    if (!kernels.count(keyOf(launch))) return launch.emitOpError() << "no kernel is called " << launch.getKernelAttr();
    fillLaunch(step->mutable_launch(), launch);
  } else if (auto update = dyn_cast<UpdateStep>(*op)) {
    if (!kernels.count(keyOf(update)) || !buckets.count(update.getBucketAttr().getAttr()))
      return update.emitOpError() << "no kernel is called " << update.getKernelAttr() << " or no bucket " << update.getBucketAttr();
    auto *to = step->mutable_update();
    to->set_bucket(buckets.lookup(update.getBucketAttr().getAttr()));
    fillLaunch(to->mutable_launch(), update);
    to->set_dtype(dtypeOf(update.getType()));
    to->set_part(update.getWhole() ? plan::WHOLE : plan::SHARD);
    to->set_begin_elements(update.getBegin());
    to->set_row(infos[kernels.lookup(keyOf(update))].row);
    if (auto rows = update.getApart()) fillRows(to->mutable_apart(), *rows);
  } else if (auto update = dyn_cast<UpdateRowsStep>(*op)) {
    auto *to = step->mutable_update_rows();
    fillLaunch(to->mutable_launch(), update);
    to->set_index_type(dtypeOf(update.getIndexType()));
    to->set_row_elements(update.getRow());
    for (auto [bucket, begin] : llvm::zip(update.getBuckets().getAsRange<FlatSymbolRefAttr>(), update.getBegins())) {
      auto *tile = to->add_tiles();
      tile->set_bucket(buckets.lookup(bucket.getAttr()));
      tile->set_begin(begin);
    }
  } else if (auto write = dyn_cast<WriteRowsStep>(*op)) {
    fillRows(step->mutable_write_rows(), write.getRows());
  } else if (auto product = dyn_cast<MatMulStep>(*op)) {
    fillProduct(step->mutable_matmul(), product);
  } else if (auto attention = dyn_cast<AttentionStep>(*op)) {
    fillSizes(step->mutable_attention(), attention);
  } else if (auto gradient = dyn_cast<AttentionGradStep>(*op)) {
    fillSizes(step->mutable_attention_grad(), gradient);
  } else if (auto collective = dyn_cast<CollectiveStep>(*op)) {
    fillCollective(step->mutable_collective(), collective);
  } else if (isa<CopyStep>(*op)) {
    step->mutable_copy();
  } else if (auto fillStep = dyn_cast<FillStep>(*op)) {
    step->mutable_fill()->set_pattern(fillStep.getPattern());
  } else {
    return op->emitOpError() << "has no form in the plan file";
  }
  return success();
}

LogicalResult Exporter::addBuffer(BufferOp op, int program) {
  if (!op.getOffset() || !op.getFirst()) return op.emitOpError() << "has no offset or life; run the place phase first";
  buffers[op.getResult()] = plan.buffers_size();
  auto *buffer = plan.add_buffers();
  buffer->set_name(op.getName().str());
  buffer->set_arena(uint32_t(workArenas[size_t(op.getTier())]));
  buffer->set_offset(*op.getOffset());
  buffer->set_bytes(op.getBytes());
  buffer->set_kind(plan::BufferKind(op.getKind()));
  buffer->set_program(program);
  buffer->set_first(*op.getFirst());
  buffer->set_last(*op.getLast());
  if (!op.getBucket()) return success();
  auto bucket = buckets.find(op.getBucketAttr().getAttr());
  if (bucket == buckets.end()) return op.emitOpError() << "no zero.bucket is called " << op.getBucketAttr();
  buffer->set_bucket(bucket->second);
  if (!op.getTensor()) return success();
  buffer->set_part(plan::Part(op.getTensor()->getPart()));
  buffer->set_dtype(dtypeOf(op.getTensor()->getType()));
  buffer->set_begin_elements(op.getBegin().value_or(0));
  return success();
}

LogicalResult Exporter::addProgram(ProgramOp op) {
  int index = plan.programs_size();
  auto *program = plan.add_programs();
  program->set_name(op.getSymName().str());
  program->set_role(plan::Program::Role(op.getRole()));
  program->set_clips(op.getClips());
  for (int i = 0; i < persistent; ++i) program->add_arena_bytes(0), program->add_live_bytes(0);
  for (int tier = 0; tier < 3; ++tier) {
    if (workArenas[size_t(tier)] < 0) continue;
    program->add_arena_bytes(heightOf(op, tier));
    program->add_live_bytes(liveOf(op, tier));
    auto *work = plan.mutable_arenas(workArenas[size_t(tier)]);
    work->set_bytes(std::max<uint64_t>(work->bytes(), heightOf(op, tier)));
  }

  for (Operation &inner : op.getBody().front()) {
    if (auto buffer = dyn_cast<BufferOp>(inner)) {
      if (failed(addBuffer(buffer, index))) return failure();
    } else if (auto use = dyn_cast<UseOp>(inner)) {
      buffers[use.getResult()] = states.lookup(use.getStateAttr().getAttr());
    } else if (auto step = dyn_cast<StepOp>(inner)) {
      if (failed(addStep(step, *program))) return failure();
    } else if (auto decision = dyn_cast<DecisionOp>(inner)) {
      auto *to = plan.add_decisions();
      to->set_subject((op.getSymName() + ": " + decision.getSubject()).str());
      to->set_choice(decision.getChoice().str());
      to->set_reason(decision.getReason().str());
    } else if (auto entry = dyn_cast<EntryOp>(inner)) {
      addEntry(entry, *program);
    } else if (auto end = dyn_cast<ReturnOp>(inner)) {
      fillWaits(program->mutable_result_waits(), end.getWaitsAttr());
      for (size_t i = 0; i < std::min<size_t>(end.getBuffers().size(), 2); ++i)
        fill(i ? program->mutable_gradient_norm() : program->mutable_loss(),
             {end.getBuffers()[i], end.getOffsets()[i], end.getStrides()[i], end.getBytes()[i]});
    }
  }
  return success();
}

} // namespace

LogicalResult exportPlan(ModuleOp module, const ExportOptions &options, plan::Plan &plan, std::vector<char> &constants) {
  plan.Clear();
  constants.clear();
  return Exporter(module, options, plan, constants).run();
}

} // namespace zero::planir
