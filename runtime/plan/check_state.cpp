#include "runtime/base/error.h"
#include "runtime/plan/checks.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/pieces.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <set>
#include <unordered_set>
#include <vector>

namespace zero::plan {
namespace {

constexpr int kMaxPieces = 4096; // of one parameter

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
  std::set<StateTensor::Role> found, expected;
  for (const StateTensor &tensor : bucket.tensors()) {
    if (!StateTensor::Role_IsValid(tensor.role()) || tensor.role() == StateTensor::ROLE_UNSPECIFIED)
      throw Error(what + " keeps a tensor of the unknown role " + std::to_string(tensor.role()));
    if (!found.insert(tensor.role()).second) throw Error(what + " keeps its " + roleName(tensor.role()) + " twice");
    checkTensor(plan, bucket, tensor, std::string("the ") + roleName(tensor.role()) + " of " + what);
  }
  if (bucket.trainable()) {
    expected.insert(StateTensor::MASTER);
    for (StateTensor::Role role : momentsOf(plan.optimizer().kind())) expected.insert(role);
  } else {
    bool master = found.contains(StateTensor::MASTER);
    if (master && found.contains(StateTensor::COMPUTE))
      throw Error(what + " is frozen and keeps its parameters twice, as master and as compute copy");
    expected.insert(master ? StateTensor::MASTER : StateTensor::COMPUTE);
  }
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

} // namespace

void checkState(const Plan &plan) {
  checkBuckets(plan);
  checkParameters(plan);
}

} // namespace zero::plan
