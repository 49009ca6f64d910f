//===- data.cpp - what the data file of a run holds, and what is trained on it ---------------------------===//
#include "runtime/inspect/inspect.h"
#include "runtime/inspect/table.h"
#include <cmath>
#include <optional>

namespace zero::inspect {
namespace {

const plan::Loss *lossOf(const plan::Plan &plan, const plan::Input &input) {
  for (const plan::Loss &loss : plan.losses())
    if (input.role() == plan::Input::LABELS && loss.labels() == input.name()) return &loss;
  return nullptr;
}

std::string rangeOf(const plan::Plan &plan, const plan::Input &input) {
  auto text = [](int64_t count, std::optional<int64_t> ignored) {
    return fmt::format("0 to {}{}", count - 1, ignored ? fmt::format(", or {} to be ignored", *ignored) : "");
  };
  const plan::Loss *loss = lossOf(plan, input);
  bool ignores = loss && loss->kind() == plan::CROSS_ENTROPY;
  std::string range = input.limit() ? text(input.limit(), ignores ? std::optional(loss->ignore_index()) : std::nullopt) : "";
  if (!input.classes()) return range;
  return range + (range.empty() ? "" : " and as labels ") +
         text(input.classes(), input.has_ignored() ? std::optional(input.ignored()) : std::nullopt);
}

std::string termOf(const plan::Loss &loss) {
  if (loss.kind() == plan::OUTPUT) return fmt::format("output '{}'", loss.output());
  return fmt::format("{} of '{}' and '{}'", loss.kind() == plan::MSE ? "mse" : "cross_entropy", loss.output(), loss.labels());
}

} // namespace

std::string dataTable(const plan::Plan &plan) {
  Table table;
  for (const plan::Input &input : plan.inputs()) {
    bool shared = input.role() == plan::Input::SHARED;
    if (input.micro_step() > 0) continue; // of the same tensor of the file
    if (!shared && input.role() != plan::Input::DATA && input.role() != plan::Input::LABELS) continue;
    std::string shape = shared ? "" : "samples";
    for (int i = shared ? 0 : 1; i < input.shape_size(); ++i) shape += (shape.empty() ? "" : " x ") + std::to_string(input.shape(i));
    std::string remark = rangeOf(plan, input);
    if (shared) remark = remark.empty() ? "the same for all samples" : remark + ", the same for all samples";
    table.row("  " + input.name(), {elementName(input.dtype()), shape.empty() ? "scalar" : shape}, remark);
  }
  std::string loss;
  for (const plan::Loss &term : plan.losses()) {
    double weight = term.has_weight() ? term.weight() : 1;
    if (!loss.empty()) loss += weight < 0 ? " - " : " + ";
    if (loss.empty() && weight < 0) loss += "-";
    if (std::abs(weight) != 1) loss += fmt::format("{} * ", std::abs(weight));
    loss += termOf(term);
  }
  return "data\n" + table.text() + (loss.empty() ? "" : "  loss: " + loss + "\n");
}

} // namespace zero::inspect
