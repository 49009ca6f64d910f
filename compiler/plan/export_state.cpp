//===- export_state.cpp - model state, inputs and constants into plan.proto --------------------------===//
#include "compiler/plan/export_state.h"
#include "compiler/nn/eval/eval.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace zero::planir {

plan::DType dtypeOf(Type type) {
  if (type.isF32()) return plan::F32;
  if (type.isBF16()) return plan::BF16;
  if (type.isF16()) return plan::F16;
  if (type.isInteger(64)) return plan::I64;
  if (type.isInteger(32)) return plan::I32;
  return type.isInteger(1) ? plan::BOOL : plan::DTYPE_UNSPECIFIED;
}

/// Appends the elements as they lie in memory, an i1 as a byte.
static LogicalResult appendBytes(StateOp op, std::vector<char> &out) {
  auto value = nn::Tensor::fromAttribute(cast<ElementsAttr>(*op.getValue()));
  if (failed(value)) return op.emitOpError() << "has a constant whose bytes are not at hand";
  out.insert(out.end(), value->bytes.begin(), value->bytes.end());
  return success();
}

/// A parameter's random numbers depend on the run's seed and its name, not on its place: the same for every world and stage.
static uint64_t seedOf(uint64_t seed, StringRef name) {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3u;
  hash ^= seed + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u; // splitmix64
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

void StateExport::addHeader() {
  auto number = [&](StringRef name, int64_t otherwise) {
    auto attribute = module->getAttrOfType<IntegerAttr>(name);
    return attribute ? attribute.getInt() : otherwise;
  };
  plan.set_world(number(state::ZeroDialect::kWorld, 1));
  auto *axis = plan.add_axes();
  axis->set_name("data");
  axis->set_size(plan.world());
  plan.set_stage(number(state::ZeroDialect::kStage, 0));
  plan.set_accumulate(number(state::ZeroDialect::kAccumulate, 1));
  auto optimizer = module->getAttrOfType<StringAttr>(state::ZeroDialect::kOptimizer);
  bool sgd = optimizer && optimizer.getValue() == "sgd";
  plan.mutable_optimizer()->set_kind(sgd ? plan::SGD : plan::ADAMW);
  plan.set_vertical(module->hasAttr(state::ZeroDialect::kVertical));
  plan.set_scales_loss(module->hasAttr(state::ZeroDialect::kScalesLoss));
  addLosses();
  arenaOf(state::Tier::device);
}

/// The persistent arena of a tier, made when it is first asked for.
int StateExport::arenaOf(state::Tier tier) {
  static constexpr const char *names[] = {"state", "state on host", "state on disk"};
  int &index = arenas[size_t(tier)];
  if (index >= 0) return index;
  index = plan.arenas_size();
  auto *arena = plan.add_arenas();
  arena->set_name(names[size_t(tier)]);
  arena->set_tier(plan::Tier(tier));
  arena->set_persistent(true);
  arena->set_alignment(uint32_t(alignmentOf(tier)));
  return index;
}

void StateExport::addLosses() {
  auto losses = module->getAttrOfType<ArrayAttr>(nn::NnDialect::kLossesAttr);
  if (!losses) return;
  for (auto fields : losses.getAsRange<DictionaryAttr>()) {
    auto text = [&](StringRef name) { return fields.getAs<StringAttr>(name) ? fields.getAs<StringAttr>(name).str() : ""; };
    auto *loss = plan.add_losses();
    loss->set_kind(text("kind") == "output" ? plan::OUTPUT : text("kind") == "mse" ? plan::MSE : plan::CROSS_ENTROPY);
    loss->set_output(text("output"));
    loss->set_labels(text("labels"));
    if (auto ignored = fields.getAs<IntegerAttr>("ignore_index")) loss->set_ignore_index(ignored.getInt());
    if (auto weight = fields.getAs<FloatAttr>("weight")) loss->set_weight(weight.getValueAsDouble());
  }
}

LogicalResult StateExport::addState(StateOp op) {
  if (!op.getOffset()) return op.emitOpError() << "has no offset; run the place phase first";
  states[op.getSymNameAttr()] = plan.buffers_size();
  auto *buffer = plan.add_buffers();
  buffer->set_name(op.getSymName().str());
  buffer->set_arena(arenaOf(tierOf(op)));
  buffer->set_offset(*op.getOffset());
  buffer->set_bytes(op.getBytes());
  buffer->set_kind(plan::BufferKind(op.getKind()));
  buffer->set_program(-1);
  auto *arena = plan.mutable_arenas(int(buffer->arena()));
  arena->set_bytes(std::max<uint64_t>(arena->bytes(), llvm::alignTo(*op.getOffset() + op.getBytes(), arena->alignment())));
  if (op.getInput()) addInput(op);
  if (op.getValue() && failed(addConstant(op))) return failure();
  if (auto bucket = op.getBucketAttr()) statesOfBucket[bucket.getAttr()].push_back(op);
  return success();
}

plan::Ref StateExport::wholeOf(StateOp op) const {
  plan::Ref ref;
  ref.set_buffer(states.lookup(op.getSymNameAttr()));
  ref.set_bytes(op.getBytes());
  return ref;
}

void StateExport::addInput(StateOp op) {
  auto *input = plan.add_inputs();
  auto type = cast<ShapedType>(*op.getType());
  auto role = llvm::StringSwitch<plan::Input::Role>(*op.getRole())
                  .Case("shared", plan::Input::SHARED)
                  .Case("labels", plan::Input::LABELS)
                  .Case("loss_scale", plan::Input::LOSS_SCALE)
                  .Case("hyper", plan::Input::HYPER)
                  .Case("seed", plan::Input::SEED)
                  .Default(plan::Input::DATA);
  input->set_name(op.getInput()->str());
  input->set_role(role);
  input->set_dtype(dtypeOf(type.getElementType()));
  for (int64_t size : type.getShape()) input->add_shape(size);
  *input->mutable_ref() = wholeOf(op);
  input->set_limit(op.getLimit().value_or(0));
  if (auto classes = op.getClasses()) {
    input->set_classes(classes->front());
    if (classes->size() > 1) input->set_ignored(classes->back());
  }
  input->set_micro_step(uint32_t(op.getMicroStep().value_or(0)));
}

LogicalResult StateExport::addConstant(StateOp op) {
  while (constants.size() % 64) constants.push_back(0);
  auto *constant = plan.add_constants();
  *constant->mutable_ref() = wholeOf(op);
  constant->set_segment_offset(constants.size());
  return appendBytes(op, constants);
}

LogicalResult StateExport::addBucket(state::BucketOp op, SymbolTable &symbols) {
  int index = plan.buckets_size();
  buckets[op.getSymNameAttr()] = index;
  auto *bucket = plan.add_buckets();
  bucket->set_name(op.getSymName().str());
  bucket->set_elements(op.getElements());
  bucket->set_shard_elements(op.getShard());
  bucket->set_trainable(op.getTrainable());
  auto found = statesOfBucket[op.getSymNameAttr()];
  if (found.empty()) return op.emitOpError() << "is not used by any program";
  llvm::stable_sort(found, [](StateOp a, StateOp b) { return a.getTensor()->getRole() < b.getTensor()->getRole(); });
  for (StateOp state : found) {
    state::TensorAttr tensor = *state.getTensor();
    if (int64_t room = roomOf(op, tensor); int64_t(state.getBytes()) != room)
      return state.emitOpError() << "has " << state.getBytes() << " bytes for " << tensor << " of @" << op.getSymName() << ", which takes "
                                 << room;
    auto *to = bucket->add_tensors();
    to->set_role(plan::StateTensor::Role(tensor.getRole()));
    to->set_dtype(dtypeOf(tensor.getType()));
    to->set_part(plan::Part(tensor.getPart()));
    *to->mutable_ref() = wholeOf(state);
    to->mutable_ref()->set_bytes(op.bytesOf(tensor));
  }
  int64_t owned = 0;
  for (auto [name, offset] : llvm::zip(op.getParameters(), op.getOffsets())) {
    auto parameter = symbols.lookup<nn::ParameterOp>(cast<FlatSymbolRefAttr>(name).getAttr());
    if (!parameter) return op.emitOpError() << "no nn.parameter is called " << name;
    owned += cast<ShapedType>(parameter.getType()).getNumElements();
    addParameter(parameter, index, offset);
  }
  bucket->set_padding_elements(op.getElements() - owned);
  return success();
}

static void fillSource(plan::Source *to, StringRef file, int64_t offset, int64_t bytes, Type stored) {
  to->set_file(file.str());
  to->set_offset(offset);
  to->set_bytes(bytes);
  to->set_dtype(dtypeOf(stored));
}

/// A parameter, or the tile of one that may have others already.
void StateExport::addParameter(nn::ParameterOp op, int bucket, int64_t offset) {
  auto type = cast<ShapedType>(op.getType());
  StringRef name = op.getTileOf().value_or(op.getSymName());
  auto [known, isNew] = parameters.try_emplace(name, plan.parameters_size());
  auto *parameter = isNew ? plan.add_parameters() : plan.mutable_parameters(known->second);
  auto *piece = parameter->add_pieces();
  piece->set_bucket(bucket);
  piece->set_offset_elements(offset);
  if (op.getTileOf())
    for (auto [begin, size] : llvm::zip(*op.getBegin(), type.getShape())) {
      piece->add_begin(begin);
      piece->add_size(size);
    }
  if (!isNew) return;
  parameter->set_name(name.str());
  for (int64_t size : op.getWhole().value_or(type.getShape())) parameter->add_shape(size);
  parameter->set_decay(true);
  if (op.getFile())
    fillSource(parameter->mutable_source(), *op.getFile(), op.getOffset(), op.getBytes(), op.getStored().value_or(type.getElementType()));
  auto *init = parameter->mutable_init();
  StringRef rule = op.getInit().value_or("zeros");
  init->set_rule(rule == "ones" ? plan::Init::ONES : rule == "normal" ? plan::Init::NORMAL : plan::Init::ZEROS);
  init->set_std(op.getInitStd().convertToFloat());
  init->set_seed(seedOf(initSeed, name));
  if (!op.getAliases()) return;
  ArrayAttr aliases = *op.getAliases(); // by value: a range over the optional's content would outlive it
  for (Attribute entry : aliases) {
    auto fields = cast<DictionaryAttr>(entry);
    auto *alias = parameter->add_aliases();
    alias->set_name(fields.getAs<StringAttr>("name").str());
    if (auto transposed = fields.getAs<BoolAttr>("transposed")) alias->set_transposed(transposed.getValue());
    auto number = [&](StringRef name) { return fields.getAs<IntegerAttr>(name) ? fields.getAs<IntegerAttr>(name).getInt() : 0; };
    auto stored = fields.getAs<TypeAttr>("stored");
    if (auto file = fields.getAs<StringAttr>("file"))
      fillSource(alias->mutable_source(), file.getValue(), number("offset"), number("bytes"),
                 stored ? stored.getValue() : type.getElementType());
  }
}

/// Samples are the leading dimension of data and labels; label positions are what is counted as tokens.
void StateExport::countSamples() {
  for (const plan::Input &input : plan.inputs()) {
    uint64_t elements = 1;
    for (int64_t size : input.shape()) elements *= size;
    bool begins = input.role() == plan::Input::DATA || input.role() == plan::Input::LABELS;
    if (begins && !plan.samples() && input.shape_size()) plan.set_samples(input.shape(0));
    if (input.role() == plan::Input::LABELS) plan.set_tokens(std::max<uint64_t>(plan.tokens(), elements));
  }
  if (!plan.tokens()) plan.set_tokens(plan.samples());
}

LogicalResult StateExport::run() {
  addHeader();
  for (auto state : module.getOps<StateOp>())
    if (failed(addState(state))) return failure();
  SymbolTable symbols(module);
  for (auto bucket : module.getOps<state::BucketOp>())
    if (failed(addBucket(bucket, symbols))) return failure();
  countSamples();
  return success();
}

} // namespace zero::planir
