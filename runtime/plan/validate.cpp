#include "runtime/plan/validate.h"
#include "runtime/plan/checks.h"
#include "runtime/plan/container.h"
#include "runtime/plan/error.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/micro_steps.h"
#include "runtime/plan/pieces.h"
#include "runtime/plan/target.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>
#include <vector>

namespace zero::plan {
namespace {

constexpr uint64_t kMaxWorld = 1 << 20;
constexpr int kMaxAxes = 8;
constexpr uint64_t kMinAlignment = 64, kMaxAlignment = kDiskBlock; // arenas themselves start at multiples of the latter
constexpr size_t kMaxText = 4096;
constexpr int kMaxPieces = 4096; // of one parameter
constexpr size_t kMaxReason = 65536;

void requireText(const std::string &what, const std::string &text, size_t limit = kMaxText) {
  if (text.size() > limit)
    throw Error(what + " has a text of " + std::to_string(text.size()) + " bytes; at most " + std::to_string(limit) + " are allowed");
  if (text.find('\0') != std::string::npos) throw Error(what + " has a text with a zero byte");
}

void requireName(const std::string &what, const std::string &text) {
  if (text.empty()) throw Error(what + " has no name");
  requireText(what, text);
}

void checkArenas(const Plan &plan) {
  for (int i = 0; i < plan.arenas_size(); ++i) {
    const Arena &arena = plan.arenas(i);
    std::string what = "arena " + std::to_string(i);
    requireText(what, arena.name());
    what += " '" + arena.name() + "'";
    if (!Tier_IsValid(arena.tier())) throw Error(what + " has the unknown tier " + std::to_string(arena.tier()));
    if (arena.bytes() > kMaxBytes)
      throw Error(what + " has " + std::to_string(arena.bytes()) + " bytes, more than any machine can address");
    uint64_t least = arena.tier() == DISK ? kMaxAlignment : kMinAlignment;
    if (!std::has_single_bit(arena.alignment()) || arena.alignment() < least || arena.alignment() > kMaxAlignment)
      throw Error(what + " aligns buffers to " + std::to_string(arena.alignment()) + " bytes; expected a power of two from " +
                  std::to_string(least) + " to " + std::to_string(kMaxAlignment));
  }
}

// What a transient buffer says of the bucket it works for; of persistent ones the buckets say it.
void checkContent(const Plan &plan, const Buffer &buffer, const std::string &what) {
  bool holds = buffer.part() != PART_UNSPECIFIED;
  if (!Part_IsValid(buffer.part())) throw Error(what + " holds the unknown part " + std::to_string(buffer.part()) + " of a bucket");
  if (!buffer.has_bucket()) {
    if (holds || buffer.dtype() != DTYPE_UNSPECIFIED) throw Error(what + " holds a part of a bucket without saying which bucket");
    return;
  }
  if (buffer.program() == -1) throw Error(what + " is persistent and names a bucket; the bucket's tensors say what it holds");
  if (buffer.bucket() >= static_cast<uint32_t>(plan.buckets_size()))
    throw Error(what + " works for bucket " + std::to_string(buffer.bucket()) + ", but the plan has " +
                std::to_string(plan.buckets_size()));
  if (!holds) return;
  const Bucket &bucket = plan.buckets(static_cast<int>(buffer.bucket()));
  uint64_t part = elementsOf(bucket, buffer.part()), size = bytesOf(buffer.dtype());
  if (buffer.begin_elements() >= part)
    throw Error(what + " begins with element " + std::to_string(buffer.begin_elements()) + " of a part of bucket '" + bucket.name() +
                "' that has " + std::to_string(part));
  uint64_t bytes = multiply(part - buffer.begin_elements(), size, what);
  if (buffer.kind() == FETCHED && buffer.bytes() < bytes && buffer.bytes() % size == 0) return; // some of them
  if (plan.arenas(static_cast<int>(buffer.arena())).alignment() == kDiskBlock && buffer.bytes() > bytes)
    bytes = (bytes + kDiskBlock - 1) / kDiskBlock * kDiskBlock; // whole blocks, for copies from and to disk
  requireBytes(buffer.bytes(), bytes, what);
}

void checkBuffers(const Plan &plan) {
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const Buffer &buffer = plan.buffers(i);
    std::string what = "buffer " + std::to_string(i);
    requireText(what, buffer.name());
    what += " '" + buffer.name() + "'";
    if (buffer.arena() >= static_cast<uint32_t>(plan.arenas_size()))
      throw Error(what + " names arena " + std::to_string(buffer.arena()) + ", but the plan has " + std::to_string(plan.arenas_size()));
    if (!BufferKind_IsValid(buffer.kind())) throw Error(what + " has the unknown kind " + std::to_string(buffer.kind()));
    const Arena &arena = plan.arenas(static_cast<int>(buffer.arena()));
    if (buffer.offset() % arena.alignment() != 0)
      throw Error(what + " starts at byte " + std::to_string(buffer.offset()) + " of arena '" + arena.name() +
                  "', which is not a multiple of " + std::to_string(arena.alignment()));
    uint64_t limit = arena.bytes();
    std::string whose = "arena '" + arena.name() + "'";
    checkContent(plan, buffer, what);
    if (buffer.program() == -1) {
      if (!arena.persistent()) throw Error(what + " is persistent but lies in the transient " + whose);
    } else {
      if (buffer.program() < 0 || buffer.program() >= plan.programs_size())
        throw Error(what + " belongs to program " + std::to_string(buffer.program()) + ", but the plan has " +
                    std::to_string(plan.programs_size()));
      if (arena.persistent()) throw Error(what + " belongs to a program but lies in the persistent " + whose);
      const Program &program = plan.programs(buffer.program());
      limit = program.arena_bytes(static_cast<int>(buffer.arena()));
      whose += " of program '" + program.name() + "'";
      if (buffer.first() > buffer.last() || buffer.last() >= static_cast<uint32_t>(program.steps_size()))
        throw Error(what + " lives in steps [" + std::to_string(buffer.first()) + ", " + std::to_string(buffer.last()) + "] of program '" +
                    program.name() + "', which has " + std::to_string(program.steps_size()) + " steps");
    }
    if (buffer.offset() > limit || buffer.bytes() > limit - buffer.offset())
      throw Error(what + " ends at byte " + std::to_string(buffer.offset()) + " + " + std::to_string(buffer.bytes()) + ", outside the " +
                  std::to_string(limit) + " bytes of " + whose);
  }
}

void checkInputs(const Plan &plan) {
  for (const Input &input : plan.inputs()) {
    requireName("an input", input.name());
    std::string what = "input '" + input.name() + "'";
    if (!Input::Role_IsValid(input.role())) throw Error(what + " has the unknown role " + std::to_string(input.role()));
    checkRef(plan, input.ref(), what, kPersistent);
    requireDevice(plan, input.ref(), what);
    uint64_t bytes = bytesOfShape(input.shape(), bytesOf(input.dtype()), what);
    requireBytes(input.ref().bytes(), bytes, what);
    bool fits = true;
    if (input.role() == Input::LOSS_SCALE)
      fits = input.dtype() == F32 && bytes == 4 * static_cast<uint64_t>(plan.losses_size());
    else if (input.role() == Input::HYPER)
      fits = input.dtype() == F32 && bytes == 64;
    else if (input.role() == Input::SEED)
      fits = input.dtype() == I64 && bytes == 16;
    else if (input.role() != Input::SHARED)
      fits = input.shape_size() > 0 && static_cast<uint64_t>(input.shape(0)) == plan.samples();
    if (!fits) throw Error(what + " does not have the type and shape its role asks for");
    if (input.limit() < 0) throw Error(what + " has the negative index limit " + std::to_string(input.limit()));
  }
}

// Where one program holds all micro-steps, each has its samples and its seed, as the first has them.
void checkMicroSteps(const Plan &plan) {
  if (!plan.vertical()) {
    for (const Input &input : plan.inputs())
      if (input.micro_step())
        throw Error("input '" + input.name() + "' is of micro-step " + std::to_string(input.micro_step()) +
                    ", but the plan's programs hold one each");
    return;
  }
  for (const Program &program : plan.programs())
    if (program.role() != Program::STEP && program.role() != Program::EVAL)
      throw Error("program '" + program.name() +
                  "' holds one of several micro-steps, but the plan's order of them is vertical: one program "
                  "has them all");
  std::map<std::pair<uint32_t, std::string>, const Input *> first; // by role and name
  std::map<const Input *, std::set<uint32_t>> others;              // micro-steps beside the first
  auto differs = [](const Input &input) {
    return input.role() == Input::DATA || input.role() == Input::LABELS || input.role() == Input::SEED;
  };
  for (const Input &input : plan.inputs())
    if (differs(input) && input.micro_step() == 0) first[{input.role(), input.name()}] = &input;
  for (const Input &input : plan.inputs()) {
    if (input.micro_step() == 0) continue;
    std::string what = "input '" + input.name() + "' of micro-step " + std::to_string(input.micro_step());
    auto found = first.find({input.role(), input.name()});
    if (input.micro_step() >= plan.accumulate() || found == first.end())
      throw Error(what + (found == first.end() ? " has no like in the first micro-step"
                                               : ": the plan has " + std::to_string(plan.accumulate()) + " micro-steps"));
    const Input &like = *found->second;
    if (!std::equal(input.shape().begin(), input.shape().end(), like.shape().begin(), like.shape().end()) ||
        input.dtype() != like.dtype() || input.limit() != like.limit())
      throw Error(what + " has another type or shape than that of the first");
    if (!others[&like].insert(input.micro_step()).second) throw Error(what + " occurs twice");
  }
  for (const auto &[key, input] : first)
    if (others[input].size() + 1 != plan.accumulate())
      throw Error("input '" + input->name() + "' is there for " + std::to_string(others[input].size() + 1) + " of " +
                  std::to_string(plan.accumulate()) + " micro-steps");
}

void checkLosses(const Plan &plan) {
  if (plan.losses_size() > kMaxLosses)
    throw Error("the plan has " + std::to_string(plan.losses_size()) + " losses; expected at most " + std::to_string(kMaxLosses));
  for (int i = 0; i < plan.losses_size(); ++i) {
    const Loss &loss = plan.losses(i);
    std::string what = "loss " + std::to_string(i);
    if (!LossKind_IsValid(loss.kind())) throw Error(what + " is of the unknown kind " + std::to_string(loss.kind()));
    requireText(what, loss.output());
    requireText(what, loss.labels());
    if (loss.has_weight() && !std::isfinite(loss.weight())) throw Error(what + " has a weight that is not finite");
    bool found = loss.kind() == OUTPUT;
    for (const Input &input : plan.inputs()) found |= input.role() == Input::LABELS && input.name() == loss.labels();
    if (!found) throw Error(what + " reads the labels '" + loss.labels() + "', which no input of the plan holds");
  }
}

void checkConstants(const Plan &plan, uint64_t constantBytes) {
  for (int i = 0; i < plan.constants_size(); ++i) {
    const Constant &constant = plan.constants(i);
    std::string what = "constant " + std::to_string(i);
    checkRef(plan, constant.ref(), what, kPersistent);
    if (constant.segment_offset() > constantBytes || constant.ref().bytes() > constantBytes - constant.segment_offset())
      throw Error(what + " takes bytes " + std::to_string(constant.segment_offset()) + " + " + std::to_string(constant.ref().bytes()) +
                  " of a constant segment of " + std::to_string(constantBytes) + " bytes");
  }
}

// A tensor of a bucket has the bytes that its type and part ask for.
void checkTensor(const Plan &plan, const Bucket &bucket, const StateTensor &tensor, const std::string &what) {
  if (tensor.dtype() != F32 && tensor.dtype() != BF16 && tensor.dtype() != F16)
    throw Error(what + " is of type " + DType_Name(tensor.dtype()) + "; expected F32, BF16 or F16");
  if (tensor.part() != WHOLE && tensor.part() != SHARD) throw Error(what + " is said to be neither the whole bucket nor a shard");
  checkRef(plan, tensor.ref(), what, kPersistent);
  if (dependsOnRank(tensor.ref())) throw Error(what + " lies at another place on each rank");
  uint64_t element = bytesOf(tensor.dtype()), expected = elementsOf(bucket, tensor.part()) * element;
  if (tensor.ref().bytes() != expected)
    throw Error(what + " has " + std::to_string(tensor.ref().bytes()) + " bytes where " +
                (tensor.part() == WHOLE ? "the whole bucket" : "a shard") + " in " + DType_Name(tensor.dtype()) + " takes " +
                std::to_string(expected));
}

// The optimizer finds its tensors, and nothing else is kept: each role once.
void checkTensors(const Plan &plan, const Bucket &bucket, const std::string &what) {
  std::set<StateTensor::Role> found, expected{StateTensor::MASTER};
  for (const StateTensor &tensor : bucket.tensors()) {
    if (!StateTensor::Role_IsValid(tensor.role()) || tensor.role() == StateTensor::ROLE_UNSPECIFIED)
      throw Error(what + " keeps a tensor of the unknown role " + std::to_string(tensor.role()));
    if (!found.insert(tensor.role()).second) throw Error(what + " keeps its " + roleName(tensor.role()) + " twice");
    checkTensor(plan, bucket, tensor, std::string("the ") + roleName(tensor.role()) + " of " + what);
  }
  if (bucket.trainable())
    for (StateTensor::Role role : momentsOf(plan.optimizer().kind())) expected.insert(role);
  for (StateTensor::Role role : expected)
    if (!found.contains(role)) throw Error(what + " keeps no " + roleName(role));
  if (const StateTensor *compute = tensorOf(bucket, StateTensor::COMPUTE); compute && found.erase(StateTensor::COMPUTE)) {
    if (compute->part() == SHARD && masterOf(bucket).part() == WHOLE)
      throw Error("the compute copy of " + what + " is a shard, but its master copy is whole; expected the whole bucket");
  }
  if (bucket.trainable()) found.erase(StateTensor::GRADIENT);
  for (StateTensor::Role role : found)
    if (!expected.contains(role))
      throw Error(what + " keeps a " + roleName(role) + ", which " +
                  (bucket.trainable() ? "the plan's optimizer has not" : "nothing that is frozen has"));
}

void checkBuckets(const Plan &plan) {
  std::map<std::pair<uint32_t, uint64_t>, std::pair<uint64_t, std::string>> places; // of all tensors: buffer and first byte, the end
  for (int i = 0; i < plan.buckets_size(); ++i) {
    const Bucket &bucket = plan.buckets(i);
    std::string what = "bucket " + std::to_string(i);
    requireText(what, bucket.name());
    what += " '" + bucket.name() + "'";
    checkAxes(plan, bucket.axes(), what);
    uint64_t shards = groupSize(plan, bucket.axes());
    if (multiply(multiply(bucket.shard_elements(), 4, what), shards, what) != multiply(bucket.elements(), 4, what))
      throw Error(what + " has " + std::to_string(bucket.elements()) + " elements, not " + std::to_string(shards) + " shards of " +
                  std::to_string(bucket.shard_elements()));
    if (bucket.padding_elements() > bucket.elements()) throw Error(what + " has more padding than elements");
    checkTensors(plan, bucket, what);
    for (const StateTensor &tensor : bucket.tensors()) {
      const Ref &ref = tensor.ref();
      if (ref.bytes() == 0) continue;
      std::string whose = std::string("the ") + roleName(tensor.role()) + " of " + what;
      auto next = places.lower_bound({ref.buffer(), ref.offset()});
      auto clash = places.end();
      if (next != places.end() && next->first.first == ref.buffer() && next->first.second < ref.offset() + ref.bytes()) clash = next;
      if (next != places.begin() && std::prev(next)->first.first == ref.buffer() && std::prev(next)->second.first > ref.offset())
        clash = std::prev(next);
      if (clash != places.end()) throw Error(whose + " shares bytes with " + clash->second.second);
      places[{ref.buffer(), ref.offset()}] = {ref.offset() + ref.bytes(), whose};
    }
  }
}

void checkSource(const Source &source, uint64_t elements, const std::string &what) {
  requireName("the source of " + what, source.file());
  if (source.offset() > kMaxBytes)
    throw Error("the source of " + what + " starts at the impossible offset " + std::to_string(source.offset()));
  requireBytes(source.bytes(), multiply(elements, bytesOf(source.dtype()), what), "the source of " + what);
}

// A piece lies inside its parameter and its bucket.
void checkPiece(const Plan &plan, const Parameter &parameter, const Piece &piece, const std::string &what) {
  if (piece.bucket() >= static_cast<uint32_t>(plan.buckets_size()))
    throw Error(what + " lies in bucket " + std::to_string(piece.bucket()) + ", but the plan has " + std::to_string(plan.buckets_size()));
  bool all = piece.begin_size() == 0 && piece.size_size() == 0;
  if (!all && (piece.begin_size() != parameter.shape_size() || piece.size_size() != parameter.shape_size()))
    throw Error(what + " has " + std::to_string(piece.begin_size()) + " first indices and " + std::to_string(piece.size_size()) +
                " sizes for the " + std::to_string(parameter.shape_size()) + " dimensions of its parameter");
  for (int d = 0; !all && d < parameter.shape_size(); ++d)
    if (auto extent = static_cast<uint64_t>(parameter.shape(d)); piece.begin(d) > extent || piece.size(d) > extent - piece.begin(d))
      throw Error(what + " takes indices " + std::to_string(piece.begin(d)) + " + " + std::to_string(piece.size(d)) + " of dimension " +
                  std::to_string(d) + ", which has " + std::to_string(extent));
  uint64_t elements = elementsOf(parameter, piece), room = plan.buckets(static_cast<int>(piece.bucket())).elements();
  if (piece.offset_elements() > room || elements > room - piece.offset_elements())
    throw Error(what + " ends at element " + std::to_string(piece.offset_elements()) + " + " + std::to_string(elements) +
                " of a bucket with " + std::to_string(room));
}

bool overlap(const Parameter &parameter, const Piece &a, const Piece &b) {
  for (int d = 0; d < parameter.shape_size(); ++d)
    if (beginOf(a, d) >= beginOf(b, d) + sizeOf(parameter, b, d) || beginOf(b, d) >= beginOf(a, d) + sizeOf(parameter, a, d)) return false;
  return true;
}

// Pieces hold every element of the parameter once: none lies in two, and together they have as many.
void checkPieces(const Plan &plan, const Parameter &parameter, uint64_t elements, const std::string &what) {
  if (parameter.pieces_size() == 0 || parameter.pieces_size() > kMaxPieces)
    throw Error(what + " has " + std::to_string(parameter.pieces_size()) + " pieces; expected 1 to " + std::to_string(kMaxPieces));
  uint64_t held = 0;
  std::vector<int> order;
  for (int i = 0; i < parameter.pieces_size(); ++i) {
    checkPiece(plan, parameter, parameter.pieces(i), "piece " + std::to_string(i) + " of " + what);
    if (plan.buckets(static_cast<int>(parameter.pieces(i).bucket())).trainable() != isTrainable(plan, parameter))
      throw Error(what + " lies in a bucket that is trained and in one that is frozen");
    uint64_t own = elementsOf(parameter, parameter.pieces(i));
    held = add(held, own, what);
    if (own) order.push_back(i);
  }
  auto begin = [&](int i) { return parameter.shape_size() ? beginOf(parameter.pieces(i), 0) : 0; };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return std::pair(begin(a), a) < std::pair(begin(b), b); });
  for (size_t a = 0; a < order.size(); ++a) {
    const Piece &piece = parameter.pieces(order[a]);
    uint64_t end = parameter.shape_size() ? begin(order[a]) + sizeOf(parameter, piece, 0) : 1;
    for (size_t b = a + 1; b < order.size() && begin(order[b]) < end; ++b)
      if (overlap(parameter, piece, parameter.pieces(order[b])))
        throw Error("pieces " + std::to_string(std::min(order[a], order[b])) + " and " + std::to_string(std::max(order[a], order[b])) +
                    " of " + what + " hold the same elements");
  }
  if (held != elements)
    throw Error("the pieces of " + what + " hold " + std::to_string(held) + " of its " + std::to_string(elements) + " elements");
}

// No element of a bucket belongs to two parameters.
void checkPlaces(const Plan &plan) {
  PieceMap pieces(plan);
  for (int b = 0; b < plan.buckets_size(); ++b) {
    const PieceMap::Entry *last = nullptr;
    for (const PieceMap::Entry &entry : pieces.piecesOf(b)) {
      if (entry.begin == entry.end) continue;
      if (last && entry.begin < last->end)
        throw Error("parameters '" + plan.parameters(last->parameter).name() + "' and '" + plan.parameters(entry.parameter).name() +
                    "' share element " + std::to_string(entry.begin) + " of bucket '" + plan.buckets(b).name() + "'");
      last = &entry;
    }
  }
}

void checkParameters(const Plan &plan) {
  std::unordered_set<std::string> names;
  for (const Parameter &parameter : plan.parameters()) {
    requireName("a parameter", parameter.name());
    std::string what = "parameter '" + parameter.name() + "'";
    if (!names.insert(parameter.name()).second) throw Error(what + " occurs twice");
    uint64_t elements = bytesOfShape(parameter.shape(), 1, what);
    checkPieces(plan, parameter, elements, what);
    if (parameter.has_source()) checkSource(parameter.source(), elements, what);
    if (!Init::Rule_IsValid(parameter.init().rule()))
      throw Error(what + " has the unknown initialisation rule " + std::to_string(parameter.init().rule()));
    for (const Alias &alias : parameter.aliases()) {
      requireName("an alias of " + what, alias.name());
      if (alias.transposed() && parameter.shape_size() != 2)
        throw Error("alias '" + alias.name() + "' of " + what + " is transposed, but the parameter has " +
                    std::to_string(parameter.shape_size()) + " dimensions");
      if (alias.has_source()) checkSource(alias.source(), elements, "alias '" + alias.name() + "' of " + what);
    }
  }
  checkPlaces(plan);
}

// What every GPU can launch: along x 2^31 - 1 blocks of 1024 threads; a block of those at hand has no more shared memory.
constexpr uint32_t kMaxBlocks = 0x7fffffff, kMaxThreads = 1024, kWarp = 32, kMaxSharedBytes = 227 << 10;

void checkGrid(const Plan &plan, const Kernel &kernel, const std::string &what) {
  if (kernel.has_gpu() && plan.target().kind() != Target::CUDA) throw Error(what + " has a grid, but the plan is not for cuda");
  if (!kernel.has_gpu()) return;
  const Grid &grid = kernel.gpu();
  if (grid.blocks() == 0 || grid.blocks() > kMaxBlocks)
    throw Error(what + " has a grid of " + std::to_string(grid.blocks()) + " blocks; expected 1 to " + std::to_string(kMaxBlocks));
  if (kernel.row() && kernel.extent() != grid.blocks())
    throw Error(what + " has a grid of " + std::to_string(grid.blocks()) + " blocks for " + std::to_string(kernel.extent()) +
                " iterations of " + std::to_string(kernel.row()) + " elements; expected a block for each");
  if (grid.threads() == 0 || grid.threads() > kMaxThreads || grid.threads() % kWarp)
    throw Error(what + " has blocks of " + std::to_string(grid.threads()) + " threads; expected a multiple of " + std::to_string(kWarp) +
                " up to " + std::to_string(kMaxThreads));
  if (grid.shared_bytes() > kMaxSharedBytes)
    throw Error(what + " wants " + std::to_string(grid.shared_bytes()) + " bytes of shared memory; a block has at most " +
                std::to_string(kMaxSharedBytes));
}

void checkKernels(const Plan &plan) {
  for (int i = 0; i < plan.kernels_size(); ++i) {
    const Kernel &kernel = plan.kernels(i);
    std::string what = "kernel " + std::to_string(i);
    requireName(what, kernel.symbol());
    requireText(what, kernel.summary(), kMaxReason);
    for (char c : kernel.symbol())
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '$')
        throw Error(what + " has the symbol '" + kernel.symbol() + "', which is not an identifier");
    if (kernel.args() > kMaxArgs)
      throw Error(what + " '" + kernel.symbol() + "' takes " + std::to_string(kernel.args()) + " arguments; at most " +
                  std::to_string(kMaxArgs) + " are allowed");
    what += " '" + kernel.symbol() + "'";
    if (static_cast<uint32_t>(kernel.arg_bytes_size()) != kernel.args())
      throw Error(what + " says the bytes of " + std::to_string(kernel.arg_bytes_size()) + " of its " + std::to_string(kernel.args()) +
                  " arguments");
    if (kernel.extent() == 0 || kernel.extent() > kMaxBytes)
      throw Error(what + " is made for an impossible extent of " + std::to_string(kernel.extent()));
    if (kernel.grain() > kMaxBytes) throw Error(what + " has an impossible grain");
    checkGrid(plan, kernel, what);
    if (i > 0 && isForHost(plan, plan.kernels(i - 1)) && !isForHost(plan, kernel))
      throw Error(what + " is for the device and comes behind one for the host's processors; expected those last");
  }
}

// The ranks are as many as the axes have coordinates.
void checkMesh(const Plan &plan) {
  std::set<std::string> names;
  uint64_t ranks = 1;
  if (plan.axes_size() > kMaxAxes)
    throw Error("the plan has " + std::to_string(plan.axes_size()) + " axes; expected at most " + std::to_string(kMaxAxes));
  for (const Axis &axis : plan.axes()) {
    requireName("an axis", axis.name());
    if (!names.insert(axis.name()).second) throw Error("axis '" + axis.name() + "' occurs twice");
    if (axis.size() < 1 || axis.size() > kMaxWorld)
      throw Error("axis '" + axis.name() + "' has " + std::to_string(axis.size()) + " coordinates; expected 1 to " +
                  std::to_string(kMaxWorld));
    ranks = multiply(ranks, axis.size(), "the mesh of the plan's axes");
  }
  if (ranks != plan.world())
    throw Error("the plan is for " + std::to_string(plan.world()) + " ranks, but " +
                (plan.axes_size() ? "its axes " + axesText(plan) + " have " + std::to_string(ranks) : "names no axis"));
}

bool isArchitecture(const std::string &feature) { // "sm_90"
  return feature.starts_with("sm_") && feature.size() > 4 && feature.size() < 8 &&
         std::all_of(feature.begin() + 3, feature.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void checkHeader(const Plan &plan) {
  requireText("the producer", plan.producer());
  requireText("the model", plan.model());
  requireText("the target", plan.target().cpu());
  for (const std::string &feature : plan.target().features()) requireText("the target", feature);
  for (const std::string &feature : plan.target().host_features()) requireText("the target", feature);
  if (!Target::Kind_IsValid(plan.target().kind()))
    throw Error("the plan is for the unknown target " + std::to_string(plan.target().kind()));
  if (plan.target().kind() == Target::CUDA && (plan.target().features_size() != 1 || !isArchitecture(plan.target().features(0))))
    throw Error("the plan is for cuda without naming one architecture, as sm_90");
  if (plan.world() < 1 || plan.world() > kMaxWorld)
    throw Error("the plan is for " + std::to_string(plan.world()) + " ranks; expected 1 to " + std::to_string(kMaxWorld));
  checkMesh(plan);
  if (plan.stage() > 3) throw Error("the plan has ZeRO stage " + std::to_string(plan.stage()) + "; expected 0 to 3");
  if (plan.accumulate() < 1 || plan.accumulate() > kMaxWorld)
    throw Error("the plan accumulates " + std::to_string(plan.accumulate()) + " micro-steps; expected 1 to " + std::to_string(kMaxWorld));
  if (plan.samples() > kMaxBytes || plan.tokens() > kMaxBytes) throw Error("the plan's samples or tokens per micro-step are impossible");
  if (!OptimizerKind_IsValid(plan.optimizer().kind())) throw Error("the plan has an unknown optimizer");
  for (const Decision &decision : plan.decisions()) {
    requireText("a decision", decision.subject());
    requireText("a decision", decision.choice(), kMaxReason);
    requireText("a decision", decision.reason(), kMaxReason);
  }
}

void checkProgramHeaders(const Plan &plan) {
  for (int i = 0; i < plan.programs_size(); ++i) {
    const Program &program = plan.programs(i);
    std::string what = "program " + std::to_string(i);
    requireText(what, program.name());
    what += " '" + program.name() + "'";
    if (!Program::Role_IsValid(program.role())) throw Error(what + " has the unknown role " + std::to_string(program.role()));
    bool updates = program.role() == Program::STEP || program.role() == Program::LAST;
    if (plan.scales_loss() && updates && (program.clips() || !program.has_gradient_norm()))
      throw Error(what + (program.clips() ? " is a variant that clips" : " leaves no gradient norm") +
                  ", but the plan scales its loss: its updates all wait for the norm, which says whether they are made");
    if (program.arena_bytes_size() != plan.arenas_size())
      throw Error(what + " gives the height of " + std::to_string(program.arena_bytes_size()) + " arenas, but the plan has " +
                  std::to_string(plan.arenas_size()));
    if (program.live_bytes_size() != 0 && program.live_bytes_size() != plan.arenas_size())
      throw Error(what + " gives the live bytes of " + std::to_string(program.live_bytes_size()) + " arenas, but the plan has " +
                  std::to_string(plan.arenas_size()));
    for (int a = 0; a < plan.arenas_size(); ++a)
      if (program.arena_bytes(a) > plan.arenas(a).bytes())
        throw Error(what + " needs " + std::to_string(program.arena_bytes(a)) + " bytes of arena '" + plan.arenas(a).name() +
                    "', which has " + std::to_string(plan.arenas(a).bytes()));
  }
}

} // namespace

void validate(const Plan &plan, uint64_t constantBytes) {
  if (plan.format() > kFormat)
    throw Error("the plan message has format " + std::to_string(plan.format()) + ", newer than " + std::to_string(kFormat));
  checkHeader(plan);
  checkArenas(plan);
  checkProgramHeaders(plan);
  checkBuffers(plan);
  checkInputs(plan);
  checkMicroSteps(plan);
  checkLosses(plan);
  checkConstants(plan, constantBytes);
  checkBuckets(plan);
  checkParameters(plan);
  checkKernels(plan);
  for (int i = 0; i < plan.programs_size(); ++i) {
    const Program &program = plan.programs(i);
    std::string what = "program '" + program.name() + "'";
    for (int s = 0; s < program.steps_size(); ++s) checkStep(plan, i, s);
    if (program.has_loss())
      checkNumbers(plan, program.loss(), int(microStepsOf(plan, program)) * std::max(1, plan.losses_size()), "the loss of " + what, i);
    if (program.has_gradient_norm()) checkNumbers(plan, program.gradient_norm(), 1, "the gradient norm of " + what, i);
    checkWaits(program);
  }
  for (const Program &program : plan.programs()) checkEntries(plan, program); // whose steps are known to be right
}

} // namespace zero::plan
