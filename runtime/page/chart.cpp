#include "runtime/page/chart.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::page {
namespace {

constexpr double kWidth = 1100, kLeft = 110; // of a drawing, and of the names on its left, in pixels

std::string svg(double height, const std::string &inside) {
  return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\">\n{}</svg>\n", kLeft + kWidth, height, inside);
}

std::string label(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

} // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  return result;
}

std::string draw(const Area &area) {
  constexpr double kHeight = 160, kTop = 24;
  if (area.values.empty() || !(area.limit > 0)) return "";
  size_t columns = std::min(area.values.size(), size_t(kWidth));
  auto y = [&](double value) { return kTop + kHeight * (1 - value / area.limit); };
  std::string points = fmt::format("{},{:.1f}", kLeft, y(0));
  double most = *std::max_element(area.values.begin(), area.values.end());
  for (size_t column = 0; column < columns; ++column) { // the largest of those that fall together
    size_t first = column * area.values.size() / columns, last = (column + 1) * area.values.size() / columns;
    double value = *std::max_element(area.values.begin() + long(first), area.values.begin() + long(last));
    double left = kLeft + kWidth * double(column) / double(columns), right = kLeft + kWidth * double(column + 1) / double(columns);
    points += fmt::format(" {:.1f},{:.1f} {:.1f},{:.1f}", left, y(value), right, y(value));
  }
  points += fmt::format(" {:.1f},{:.1f}", kLeft + kWidth, y(0));
  std::string inside = fmt::format("<polygon class=\"area\" points=\"{}\"/>\n", points);
  inside += fmt::format("<line class=\"limit\" x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\"/>\n", kLeft, y(area.limit),
                        kLeft + kWidth);
  inside += label(kLeft, kTop - 8, "start",
                  fmt::format("{}: {:.4g} {} at most; {} {:.4g}", area.title, most, area.unit, area.limitName, area.limit));
  inside += label(kLeft - 6, y(0), "end", "0") + label(kLeft - 6, y(area.limit) + 4, "end", fmt::format("{:.3g}", area.limit));
  inside += label(kLeft, kTop + kHeight + 16, "start", "step 0") +
            label(kLeft + kWidth, kTop + kHeight + 16, "end", fmt::format("step {}", area.values.size() - 1));
  return svg(kTop + kHeight + 24, inside);
}

std::string draw(const Bars &bars) {
  constexpr double kRow = 26, kBar = 18;
  if (bars.rows.empty() || !(bars.end > 0)) return "";
  double pixel = bars.end / kWidth;
  std::string inside;
  for (size_t row = 0; row < bars.rows.size(); ++row) inside += label(kLeft - 6, double(row) * kRow + 14, "end", bars.rows[row]);
  auto bar = [&](const Bars::Span &first, double end, size_t count) {
    std::string what = count == 1 ? first.name : fmt::format("{} and {} more", first.name, count - 1);
    inside += fmt::format(
        "<rect class=\"lane{}\" x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{}\"><title>{}, {:.6f} to {:.6f} s</title></rect>\n",
        first.row % 6, kLeft + first.begin / pixel, double(first.row) * kRow, std::max((end - first.begin) / pixel, 0.2), kBar,
        escaped(what), first.begin, end);
  };
  for (size_t row = 0; row < bars.rows.size(); ++row) { // what is shorter than a pixel is drawn with what follows it closely
    const Bars::Span *first = nullptr;
    double end = 0;
    size_t count = 0;
    for (const Bars::Span &span : bars.spans) {
      if (span.row != row) continue;
      bool together = first && span.begin - end < pixel / 4 && (end - first->begin < pixel || span.end - span.begin < pixel / 2);
      if (first && !together) bar(*first, end, count), first = nullptr;
      if (!first) first = &span, count = 0;
      end = span.end, ++count;
    }
    if (first) bar(*first, end, count);
  }
  double bottom = double(bars.rows.size()) * kRow + 12;
  for (int tick = 0; tick <= 4; ++tick)
    inside += label(kLeft + kWidth * tick / 4, bottom,
                    tick == 0   ? "start"
                    : tick == 4 ? "end"
                                : "middle",
                    fmt::format("{:.3g} s", bars.end * tick / 4));
  return svg(bottom + 8, inside);
}

} // namespace zero::page
