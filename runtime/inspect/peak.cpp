//===- peak.cpp - what fills the fullest moment, by layer and by buffer ----------------------------------===//
#include "runtime/inspect/peak.h"
#include "runtime/inspect/names.h"
#include "runtime/inspect/table.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::inspect {
namespace {

constexpr size_t kLayers = 20; // rows of the table

void addRow(Table &table, const std::string &name, const Peak::Layer &layer, const std::vector<int> &kinds) {
  std::vector<std::string> cells;
  for (int k : kinds) cells.push_back(orDash(layer.kinds[size_t(k)]));
  cells.push_back(grouped(layer.bytes));
  table.row("  " + name, cells);
}

} // namespace

Peak peakOf(const plan::Plan &plan, int program) {
  constexpr size_t kLargest = 10;
  BucketNames names(plan);
  Peak peak;
  peak.step = memoryOf(plan).programs[size_t(program)].peakStep;
  std::map<std::string, size_t> rows;
  for (uint32_t i : liveBuffers(plan, program, peak.step)) {
    const plan::Buffer &b = plan.buffers(int(i));
    for (const auto &[layer, bytes] : names.layersOf(b)) {
      auto [row, fresh] = rows.emplace(layer, peak.layers.size());
      if (fresh) peak.layers.push_back({layer, {}, 0});
      peak.layers[row->second].kinds[size_t(b.kind())] += bytes;
      peak.layers[row->second].bytes += bytes;
    }
    peak.bytes += b.bytes();
    if (peak.largest.size() < kLargest) peak.largest.push_back(i);
  }
  std::stable_sort(peak.layers.begin(), peak.layers.end(), [](auto &a, auto &b) { return a.bytes > b.bytes; });
  return peak;
}

std::string peakText(const plan::Plan &plan) {
  std::string text;
  for (int p = 0; p < plan.programs_size(); ++p) {
    const plan::Program &program = plan.programs(p);
    Peak peak = peakOf(plan, p);
    if (!peak.bytes) continue;
    text += fmt::format("@{} is fullest at step {} of {}, '{}': {} bytes ({})\n", program.name(), peak.step, program.steps_size(),
                        program.steps(int(peak.step)).name(), grouped(peak.bytes), human(peak.bytes));
    Table table;
    std::vector<int> kinds;
    std::vector<std::string> cells;
    for (int k = 0; k < kKinds; ++k)
      if (std::any_of(peak.layers.begin(), peak.layers.end(), [&](auto &layer) { return layer.kinds[size_t(k)]; })) {
        kinds.push_back(k);
        cells.push_back(kindName(k));
      }
    cells.push_back("all");
    table.row("  by layer", cells);
    Peak::Layer rest;
    for (size_t i = 0; i < peak.layers.size(); ++i)
      if (i < kLayers)
        addRow(table, peak.layers[i].name, peak.layers[i], kinds);
      else {
        for (int k : kinds) rest.kinds[size_t(k)] += peak.layers[i].kinds[size_t(k)];
        rest.bytes += peak.layers[i].bytes;
      }
    if (rest.bytes) addRow(table, counted(peak.layers.size() - kLayers, "other"), rest, kinds);
    text += table.text();
    text += "  the largest buffers\n";
    for (uint32_t i : peak.largest) {
      const plan::Buffer &b = plan.buffers(int(i));
      text += fmt::format("  {:>18}  {:<10}  steps {} to {}  {}\n", grouped(b.bytes()), kindName(b.kind()), b.first(), b.last(), b.name());
    }
  }
  return text;
}

} // namespace zero::inspect
