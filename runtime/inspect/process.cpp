//===- process.cpp - what the whole process takes, not the arenas alone -------------------------------===//
#include "runtime/footprint/footprint.h"
#include "runtime/inspect/inspect.h"
#include "runtime/inspect/names.h"
#include "runtime/inspect/table.h"
#include <nlohmann/json.hpp>

namespace zero::inspect {

std::string processTable(const plan::PlanFile &file, int threads) {
  uint64_t arenas = runtime::arenaBytes(file.plan, false), clipped = runtime::arenaBytes(file.plan, true) - arenas;
  std::vector<runtime::FootprintPart> parts = runtime::besideArenas(file, threads);
  uint64_t all = arenas + runtime::bytesOf(parts);
  Table table;
  table.row(fmt::format("the process of one rank with {}, at most", counted(uint64_t(threads), "thread")), {"bytes"});
  table.row("  arenas in memory", {grouped(arenas)});
  for (const runtime::FootprintPart &part : parts) table.row("  " + part.what, {grouped(part.bytes)});
  table.row("  all", {grouped(all)}, human(all));
  return table.text() + (clipped ? fmt::format("  with --clip {} bytes\n", grouped(all + clipped)) : "") +
         "  beside it the system holds pages of files, which it takes back when it needs them\n";
}

nlohmann::json processJson(const plan::PlanFile &file, int threads) {
  uint64_t arenas = runtime::arenaBytes(file.plan, false), clipped = runtime::arenaBytes(file.plan, true);
  std::vector<runtime::FootprintPart> parts = runtime::besideArenas(file, threads);
  nlohmann::json out = {{"threads", threads}, {"parts", {{"arenas", arenas}}}};
  for (const runtime::FootprintPart &part : parts) out["parts"][part.key] = part.bytes;
  out["total_bytes"] = arenas + runtime::bytesOf(parts);
  out["clipped_bytes"] = clipped + runtime::bytesOf(parts);
  return out;
}

} // namespace zero::inspect
