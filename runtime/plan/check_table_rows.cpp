// Steps about rows of a table: their references beside a kernel's, and how these fit together.
#include "runtime/base/error.h"
#include "runtime/plan/checks.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/pieces.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"

namespace zero::plan {
namespace {

// Parameters of the rows, the states of their optimizer, and their gradient.
uint64_t tensorsOfRows(const Plan &plan) { return momentsOf(plan.optimizer().kind()).size() + 2; }

void refuseCuda(const Plan &plan, const std::string &what) {
  if (plan.target().kind() == Target::CUDA) throw Error(what + " is about rows of a table, which plans for cuda cannot have");
}

void requireForm(const Step &step, int reads, int writes, const std::string &what) {
  if (step.reads_size() < reads || step.writes_size() < writes)
    throw Error(what + " reads " + std::to_string(step.reads_size()) + " and writes " + std::to_string(step.writes_size()) +
                " references; one of its kind reads at least " + std::to_string(reads) + " and writes " + std::to_string(writes));
}

// Of as many rows as there are indices.
uint64_t indicesIn(const Plan &plan, const Ref &ref, DType type, int program, const std::string &what) {
  if (type != I64 && type != I32) throw Error(what + " has indices of type " + DType_Name(type) + "; expected I64 or I32");
  checkRef(plan, ref, "the indices of " + what, program);
  if (ref.bytes() == 0 || ref.bytes() % bytesOf(type) != 0)
    throw Error(what + " has " + std::to_string(ref.bytes()) + " bytes of indices; expected some, in units of " +
                std::to_string(bytesOf(type)));
  return ref.bytes() / bytesOf(type);
}

void requireSame(const Ref &found, const Ref &expected, const std::string &name) {
  if (found.SerializeAsString() != expected.SerializeAsString()) throw Error(name + " is written to another place than it is read from");
}

// Part of a table, at the same place on all ranks: where it begins in the table is one number of the plan.
void requireWindow(const Plan &plan, const Ref &window, uint64_t begin, const std::string &what) {
  if (window.bytes() == 0) throw Error(what + " has an empty window of its table");
  add(begin, window.bytes(), "the window of " + what);
  if (offsetOf(plan, window, plan.world() - 1) != offsetOf(plan, window, 0))
    throw Error(what + " has a window of its table that each rank has elsewhere; expected one place");
}

// Which rows are copied between it and the window, byte by byte.
void requireRows(const Plan &plan, const Ref &rows, const Ref &window, uint64_t bytes, int program, const std::string &what) {
  checkRef(plan, rows, "the rows of " + what, program);
  requireReach(rows.bytes(), bytes, "the rows of " + what);
  if (rows.buffer() == window.buffer()) throw Error(what + " has its rows in the buffer of the table; expected one of their own");
}

void requireRowBytes(uint64_t bytes, uint64_t unit, const std::string &what) {
  if (bytes == 0 || bytes % unit != 0)
    throw Error(what + " has rows of " + std::to_string(bytes) + " bytes; expected a multiple of " + std::to_string(unit));
}

// The bucket of a tile: it has nothing but the table's elements from `begin` on, of which none is elsewhere in between.
int tableOf(const Plan &plan, const PieceMap &pieces, const UpdateRows::Tile &tile, const std::string &what) {
  if (tile.bucket() >= static_cast<uint32_t>(plan.buckets_size()))
    throw Error(what + " updates rows of bucket " + std::to_string(tile.bucket()) + ", but the plan has " +
                std::to_string(plan.buckets_size()));
  auto bucket = static_cast<int>(tile.bucket());
  const std::vector<PieceMap::Entry> &found = pieces.piecesOf(bucket);
  auto startOf = [&](uint64_t element) { return pieces.slices(bucket, {element, element + 1}).front().start; };
  if (found.size() != 1 || found[0].begin != 0 || found[0].end == 0 || startOf(0) != tile.begin() ||
      startOf(found[0].end - 1) != tile.begin() + found[0].end - 1)
    throw Error(what + " updates rows of bucket '" + plan.buckets(bucket).name() +
                "', which does not hold the elements of one parameter from " + std::to_string(tile.begin()) + " on and nothing else");
  return found[0].parameter;
}

} // namespace

void checkApart(const Plan &plan, const Step &step, int program, const std::string &what) {
  refuseCuda(plan, what);
  const TableRows &rows = step.update().apart();
  uint64_t tensors = tensorsOfRows(plan);
  requireForm(step, static_cast<int>(tensors) + 2, 3, what);
  const Bucket &bucket = plan.buckets(static_cast<int>(step.update().bucket()));
  if (elementsOf(bucket, step.update().part()) != bucket.elements())
    throw Error(what + " sets rows apart of a shard of bucket '" + bucket.name() + "'; expected all of it");
  int indices = kernelReads(step);
  uint64_t count = indicesIn(plan, step.reads(indices), rows.index_type(), program, what);
  requireRowBytes(rows.row_bytes(), bytesOf(F32), what);
  uint64_t all = multiply(multiply(count, rows.row_bytes(), what), tensors, what);
  for (uint64_t tensor = 0; tensor < tensors; ++tensor) {
    const Ref &window = step.reads(static_cast<int>(tensor));
    requireWindow(plan, window, rows.begin(), what);
    requireReach(window.bytes(), gradientOf(step).bytes(), "tensor " + std::to_string(tensor) + " of " + what);
    requireRows(plan, step.reads(indices + 1), window, all, program, what);
  }
  requireSame(step.writes(kernelWrites(step)), step.reads(indices + 1), "what " + what + " sets apart");
  requireSame(step.writes(kernelWrites(step) + 1), gradientOf(step), "the gradient of " + what);
}

void checkUpdateRows(const Plan &plan, const Step &step, int program, const std::string &what) {
  refuseCuda(plan, what);
  const UpdateRows &call = step.update_rows();
  int tensors = static_cast<int>(tensorsOfRows(plan));
  requireForm(step, tensors + 1, tensors - 1, what);
  uint64_t count = indicesIn(plan, step.reads(kernelReads(step)), call.index_type(), program, what);
  uint64_t bytes = multiply(multiply(count, call.row_elements(), what), bytesOf(F32), what);
  if (bytes == 0) throw Error(what + " updates rows of no elements");
  for (int i = 0; i < tensors; ++i) requireReach(step.reads(i).bytes(), bytes, "tensor " + std::to_string(i) + " of " + what);
  for (int i = 0; i < tensors - 1; ++i) requireReach(step.writes(i).bytes(), bytes, "result " + std::to_string(i) + " of " + what);
  if (call.tiles_size() == 0) throw Error(what + " updates rows of no bucket");
  PieceMap pieces(plan);
  int table = tableOf(plan, pieces, call.tiles(0), what);
  for (int i = 1; i < call.tiles_size(); ++i)
    if (tableOf(plan, pieces, call.tiles(i), what) != table || call.tiles(i).begin() <= call.tiles(i - 1).begin())
      throw Error(what + " has tiles of several tables, or not in the order of one");
  if (elementsOf(plan.parameters(table)) % call.row_elements() != 0)
    throw Error(what + " has rows of " + std::to_string(call.row_elements()) + " elements, which do not divide the " +
                std::to_string(elementsOf(plan.parameters(table))) + " of parameter '" + plan.parameters(table).name() + "'");
}

void checkWriteRows(const Plan &plan, const Step &step, int program, const std::string &what) {
  refuseCuda(plan, what);
  if (step.reads_size() != 3 || step.writes_size() != 1)
    throw Error(what + " reads " + std::to_string(step.reads_size()) + " and writes " + std::to_string(step.writes_size()) +
                " references; one of its kind reads 3 and writes 1");
  const TableRows &rows = step.write_rows();
  uint64_t count = indicesIn(plan, step.reads(1), rows.index_type(), program, what);
  requireRowBytes(rows.row_bytes(), bytesOf(BF16), what);
  const Ref &window = step.reads(2);
  checkRef(plan, window, "the window of " + what, program);
  requireWindow(plan, window, rows.begin(), what);
  requireRows(plan, step.reads(0), window, multiply(count, rows.row_bytes(), what), program, what);
  requireSame(step.writes(0), window, "the window of " + what);
}

} // namespace zero::plan
