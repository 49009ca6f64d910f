//===- table_rows.cpp - rows that are set apart are updated and come to their places ----------------------===//
#include "runtime/judge/history.h"
#include "runtime/judge/judge.h"
#include "runtime/judge/program_check.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <map>

namespace zero::judge {
namespace {

using Role = plan::StateTensor::Role;

class Rows : ProgramCheck {
public:
  Rows(const plan::Plan &plan, const plan::Program &program)
      : ProgramCheck(plan, program), moments(plan::momentsOf(plan.optimizer().kind())) {
    for (int s = 0; s < program.steps_size(); ++s)
      if (const plan::Step &step = program.steps(s); step.has_copy() && step.reads(0).offset() == 0 && step.writes(0).offset() == 0)
        sources.try_emplace(step.writes(0).buffer(), Source{step.reads(0).buffer(), s});
  }

  std::vector<std::string> run() {
    for (int s = 0; s < program.steps_size(); ++s) {
      const plan::Step &step = program.steps(s);
      checkOverwritten(s, step);
      if (step.has_update()) setApart(s, step);
      if (step.has_update_rows()) update(s, step);
      if (step.has_write_rows()) write(s, step);
    }
    for (const auto &[bucket, last] : apart)
      report("the rows of bucket '" + nameOf(bucket) + "' that " + name(last) + " sets apart are never updated");
    for (const auto &[bucket, last] : updated)
      for (const plan::StateTensor &tensor : plan.buckets(int(bucket)).tensors())
        if (uint64_t end = written[{bucket, tensor.role()}], all = ownedBytes(bucket, tensor);
            tensor.role() != plan::StateTensor::GRADIENT && end < all)
          report("of what " + name(last) + " makes of rows, bytes " + std::to_string(end) + " to " + std::to_string(all) + " of the " +
                 of(bucket, tensor.role()) + " never come to their place");
    return std::move(found);
  }

private:
  /// The same bytes, or bytes that were copied from these, after step `after`: what waits in another tier comes back to a buffer of its
  /// own.
  bool same(const plan::Ref &a, const plan::Ref &b, int after = -1) const {
    return source(a, after).SerializeAsString() == source(b, after).SerializeAsString();
  }
  plan::Ref source(plan::Ref ref, int after) const {
    for (size_t copies = 0; copies < sources.size(); ++copies) { // what is wrong may go round in circles
      auto from = sources.find(ref.buffer());
      if (from == sources.end() || from->second.copied <= after) break;
      ref.set_buffer(from->second.buffer);
    }
    return ref;
  }

  /// All updates of a bucket set the rows of its table apart, or none does.
  void setApart(int s, const plan::Step &step) {
    uint32_t bucket = step.update().bucket();
    if (updated.contains(bucket))
      report(name(s) + " updates bucket '" + nameOf(bucket) + "' after " + name(updated.at(bucket)) +
             ", which updates the rows set apart of it");
    bool isFirst = step.update().begin_elements() == 0;
    if (step.update().has_apart() ? !isFirst && !apart.contains(bucket) : apart.contains(bucket))
      report(name(s) + " sets no rows of bucket '" + nameOf(bucket) + "' apart as its other updates do, or alone does so");
    if (step.update().has_apart()) apart[bucket] = s;
  }

  /// The tiles are those of which rows were set apart, and the rows are these.
  void update(int s, const plan::Step &step) {
    const plan::UpdateRows &call = step.update_rows();
    for (const plan::UpdateRows::Tile &tile : call.tiles()) {
      auto from = apart.find(tile.bucket());
      if (from == apart.end()) {
        report(name(s) + " updates rows of bucket '" + nameOf(tile.bucket()) + "', of which none were set apart");
        continue;
      }
      for (int u = 0; u <= from->second; ++u)
        if (const plan::Step &each = program.steps(u); each.update().has_apart() && each.update().bucket() == tile.bucket())
          checkPlace(s, step, u, tile);
      apart.erase(from);
      updated[tile.bucket()] = s;
      begins[tile.bucket()] = tile.begin();
    }
  }

  void checkPlace(int s, const plan::Step &rows, int u, const plan::UpdateRows::Tile &tile) {
    const plan::Step &update = program.steps(u);
    const plan::TableRows &table = update.update().apart();
    uint64_t size = plan::bytesOf(plan::F32), begin = (tile.begin() + update.update().begin_elements()) * size;
    if (table.begin() != begin)
      report(name(u) + " sets apart rows of its table from byte " + std::to_string(table.begin()) + " on where bucket '" +
             nameOf(tile.bucket()) + "' has those from " + std::to_string(begin) + " on");
    const plan::Ref &kept = update.reads(plan::kernelReads(update) + 1);
    plan::Ref part = kept;
    part.set_bytes(kept.bytes() / (moments.size() + 2));
    bool isIts = table.row_bytes() == rows.update_rows().row_elements() * size && table.index_type() == rows.update_rows().index_type() &&
                 same(update.reads(plan::kernelReads(update)), rows.reads(plan::kernelReads(rows)));
    std::vector<int> reads{0};
    for (size_t i = 0; i < moments.size(); ++i) reads.push_back(int(i) + 2);
    for (int read : reads) {
      isIts = isIts && same(rows.reads(read), part, u); // all of it is there when it leaves
      part.set_offset(part.offset() + part.bytes());
    }
    if (!isIts) report(name(s) + " does not update the rows that " + name(u) + " sets apart, parameters and states");
  }

  /// What was made of the rows comes to where the same elements rest.
  void write(int s, const plan::Step &step) {
    const plan::Ref &window = step.writes(0);
    for (const auto &[bucket, last] : updated)
      for (const plan::StateTensor &tensor : plan.buckets(int(bucket)).tensors())
        if (tensor.ref().buffer() == window.buffer() && tensor.ref().offset() <= window.offset() &&
            window.offset() < tensor.ref().offset() + tensor.ref().bytes())
          return writeTensor(s, step, bucket, tensor);
    report(name(s) + " writes rows where no tensor rests whose rows were updated");
  }

  void writeTensor(int s, const plan::Step &step, uint32_t bucket, const plan::StateTensor &tensor) {
    const plan::TableRows &table = step.write_rows();
    const plan::Step &made = program.steps(updated.at(bucket));
    uint64_t size = plan::bytesOf(tensor.dtype()), from = step.writes(0).offset() - tensor.ref().offset();
    if (table.begin() != begins.at(bucket) * size + from || table.row_bytes() != made.update_rows().row_elements() * size ||
        table.index_type() != made.update_rows().index_type() || !same(step.reads(1), made.reads(plan::kernelReads(made))))
      report(name(s) + " writes other rows of the " + of(bucket, tensor.role()) + " than " + name(updated.at(bucket)) + " updates");
    if (!isResult(step.reads(0), made, tensor))
      report(name(s) + " writes to the " + of(bucket, tensor.role()) + " what " + name(updated.at(bucket)) + " has not made of it");
    uint64_t &end = written[{bucket, tensor.role()}], to = from + step.writes(0).bytes();
    if (from != end || to > ownedBytes(bucket, tensor))
      report(name(s) + " writes rows to bytes " + std::to_string(from) + " to " + std::to_string(to) + " of the " +
             of(bucket, tensor.role()) + ", which go on from " + std::to_string(end) + " and end at " +
             std::to_string(ownedBytes(bucket, tensor)));
    end = std::max(end, to);
    places[step.writes(0).buffer()] = s;
  }

  bool isResult(const plan::Ref &rows, const plan::Step &made, const plan::StateTensor &tensor) const {
    auto moment = std::ranges::find(moments, tensor.role());
    int result = moment == moments.end() ? 0 : int(moment - moments.begin()) + 1;
    if (tensor.role() == plan::StateTensor::COMPUTE && tensor.dtype() != plan::F32) result = int(moments.size()) + 1;
    return result < made.writes_size() && same(rows, made.writes(result));
  }

  /// What an update changed must be in its place before rows are.
  void checkOverwritten(int s, const plan::Step &step) {
    if (step.has_write_rows()) return;
    for (const plan::Ref &ref : step.writes())
      if (auto rows = places.find(ref.buffer()); rows != places.end())
        report(name(s) + " writes over the rows that " + name(rows->second) + " has written");
  }

  uint64_t ownedBytes(uint32_t bucket, const plan::StateTensor &tensor) const {
    const plan::Bucket &b = plan.buckets(int(bucket));
    return (b.elements() - b.padding_elements()) * plan::bytesOf(tensor.dtype());
  }

  std::string nameOf(uint32_t bucket) const { return plan.buckets(int(bucket)).name(); }
  std::string of(uint32_t bucket, Role role) const { return std::string(plan::roleName(role)) + " of bucket '" + nameOf(bucket) + "'"; }
  std::vector<Role> moments;
  struct Source {
    uint32_t buffer;
    int copied; // by which step
  };
  std::map<uint32_t, Source> sources;                    // buffers of which others are copies
  std::map<uint32_t, int> apart, updated;                // buckets: the last step that sets rows apart, or that updates them
  std::map<uint32_t, uint64_t> begins;                   // element of the table that such a bucket begins with
  std::map<std::pair<uint32_t, Role>, uint64_t> written; // up to which byte of a tensor rows have come
  std::map<uint32_t, int> places;                        // buffers that rows have come to, by which step
};

} // namespace

std::vector<std::string> checkRows(const plan::Plan &plan, int program) { return Rows(plan, plan.programs(program)).run(); }

} // namespace zero::judge
