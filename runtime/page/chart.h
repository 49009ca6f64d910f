//===- chart.h - drawings for a page ----------------------------------------------------------------------===//
// SVG that stands in HTML. However long the plan, a drawing has no more points than a screen shows.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zero::page {

/// Text with what HTML reads as its own written as entities.
std::string escaped(std::string_view text);

/// Values one after another as an area on zero, beneath a line at `limit`, which is the largest of them or above.
struct Area {
  std::string title;          // of what is drawn, shown above
  std::string unit = "bytes"; // of values
  std::vector<double> values;
  double limit = 0;
  std::string limitName; // what the line is
};
std::string draw(const Area &area);

/// Spans of time on rows.
struct Bars {
  struct Span {
    size_t row;
    double begin, end;
    std::string name;
  };
  std::vector<std::string> rows{}; // their names
  std::vector<Span> spans{};       // of each row in their order, none before 0
  double end = 0;                  // of the time axis, in seconds
};
std::string draw(const Bars &bars);

} // namespace zero::page
