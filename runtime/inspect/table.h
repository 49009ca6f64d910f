//===- table.h - columns of text -------------------------------------------------------------------------===//
#pragma once
#include "runtime/inspect/names.h"
#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace zero::inspect {

inline std::string orDash(uint64_t n) { return n ? grouped(n) : "-"; }

/// A name on the left, right-aligned columns, each as wide as its widest entry, and a remark after them.
class Table {
public:
  void row(std::string name, std::vector<std::string> cells, std::string remark = {}) {
    rows.push_back({std::move(name), std::move(cells), std::move(remark)});
  }

  std::string text() const {
    size_t left = 0;
    std::vector<size_t> widths;
    for (const Row &row : rows) {
      left = std::max(left, row.name.size());
      widths.resize(std::max(widths.size(), row.cells.size()));
      for (size_t c = 0; c < row.cells.size(); ++c) widths[c] = std::max(widths[c], row.cells[c].size());
    }
    std::string text;
    for (const Row &row : rows) {
      text += fmt::format("{:<{}}", row.name, left);
      for (size_t c = 0; c < row.cells.size(); ++c) text += fmt::format("{:>{}}", row.cells[c], widths[c] + 3);
      text += (row.remark.empty() ? "" : "   " + row.remark) + "\n";
    }
    return text;
  }

private:
  struct Row {
    std::string name;
    std::vector<std::string> cells;
    std::string remark;
  };
  std::vector<Row> rows;
};

} // namespace zero::inspect
