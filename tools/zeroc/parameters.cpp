//===- parameters.cpp - the table of what is trained -------------------------------------------------===//
#include "tools/zeroc/parameters.h"
#include "runtime/inspect/names.h"
#include <algorithm>
#include <map>
#include <vector>

namespace zero {
namespace {

struct Line {
  std::string before, after; // of the layer's number in the name; `after` is empty and `layers` too if there is none
  std::vector<uint64_t> layers;
  std::string shape, what;

  std::string name() const {
    if (layers.empty()) return before;
    std::string numbers;
    for (size_t i = 0; i < layers.size();) { // "0-11", "0,2,4"
      size_t j = i;
      while (j + 1 < layers.size() && layers[j + 1] == layers[j] + 1) ++j;
      if (!numbers.empty()) numbers += ',';
      numbers += std::to_string(layers[i]);
      if (j > i) (numbers += '-') += std::to_string(layers[j]);
      i = j + 1;
    }
    return before + (layers.size() > 1 ? "[" + numbers + "]" : numbers) + after;
  }
};

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t d : shape) text += (text.empty() ? "" : " x ") + std::to_string(d);
  return text.empty() ? "scalar" : text;
}

/// Splits at the first part of the name, between dots, that is a number.
Line lineOf(const std::string &name, const std::vector<int64_t> &shape, const std::string &what) {
  Line line{name, "", {}, shapeText(shape), what};
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    size_t end = name.find_first_not_of("0123456789", dot + 1);
    if (end == dot + 1 || end == std::string::npos || name[end] != '.' || end - dot > 10) continue;
    line.before = name.substr(0, dot + 1);
    line.after = name.substr(end);
    line.layers.push_back(std::stoull(name.substr(dot + 1, end - dot - 1)));
    break;
  }
  return line;
}

class Lines {
public:
  void add(Line line) {
    std::string key = line.before + '\n' + line.after + '\n' + line.shape + '\n' + line.what;
    auto [place, fresh] = places.emplace(line.layers.empty() ? key + line.name() : key, lines.size());
    if (fresh)
      lines.push_back(std::move(line));
    else if (!line.layers.empty()) // otherwise it is said already: of constants, each body has names of its own
      lines[place->second].layers.push_back(line.layers[0]);
  }

  std::string text() const {
    size_t name = 0, shape = 0;
    for (const Line &line : lines) {
      name = std::max(name, std::min<size_t>(line.name().size(), 60));
      shape = std::max(shape, line.shape.size());
    }
    std::string text;
    auto padded = [](std::string s, size_t width) { return s + std::string(width > s.size() ? width - s.size() : 0, ' '); };
    for (const Line &line : lines) text += "  " + padded(line.name(), name) + "  " + padded(line.shape, shape) + "  " + line.what + "\n";
    return text;
  }

private:
  std::vector<Line> lines;
  std::map<std::string, size_t> places;
};

template <typename List, typename What> std::string section(const std::string &title, const List &list, What what) {
  if (list.empty()) return "";
  uint64_t elements = 0;
  Lines lines;
  for (const auto &entry : list) {
    uint64_t n = 1;
    for (int64_t d : entry.shape) n *= uint64_t(d);
    elements += n;
    lines.add(lineOf(entry.name, entry.shape, what(entry)));
  }
  return title + ": " + inspect::counted(list.size(), "tensor") + ", " + inspect::counted(elements, "element") + "\n" + lines.text();
}

} // namespace

std::string parameterTable(const onnx::ImportReport &report) {
  std::string text = section("trained", report.parameters, [](auto &p) { return p.where.empty() ? p.role : p.role + ", " + p.where; });
  for (const auto &tie : report.ties) text += "tied: " + tie.alias + (tie.transposed ? " (transposed)" : "") + " is " + tie.name + "\n";
  return text + section("constant", report.constants, [](auto &c) { return c.why; });
}

} // namespace zero
